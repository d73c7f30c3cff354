/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SESSION_SESSION_H
#define SESSION_SESSION_H

#include "base/buf.h"
#include "call/store_calls.h"
#include "proto/key_names.h"
#include "proto/request.h"
#include "proto/text.h"
#include "session/access.h"
#include "session/acks.h"
#include "session/admin.h"
#include "session/exec_form.h"
#include "session/group.h"
#include "session/loan.h"
#include "session/owner.h"
#include "session/rules.h"
#include "stats/hot.h"
#include "stats/latency.h"
#include "stats/metric.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One connection's conversation, without its socket: bytes in, reply bytes
 * out. Parses a request, has it executed, goes on with the next; may have to
 * wait for the store in between (parked). Where the bytes are cut makes no
 * difference to the replies. Belongs to one thread, which must be an online
 * reader of the store's qsbr during every call. */

/* That many lines in a row that are no request end a connection, so that who
 * has lost its place does not go on for ever. No person types as many. What is
 * no packet ends it at once; one of an unknown opcode is only refused. */
enum { SESSION_ERRORS_MAX = 128 };

struct list_work;  /* session/exec_list.h */
struct job;        /* session/exec.h: a request under way, or some changes */
struct watch_ring; /* session/watch.h, like the next */
struct watcher;

/* What a connection speaks (memcached's -B): as its first byte says, or only
 * one. Meta commands are text. */
enum session_binding { SESSION_AUTO, SESSION_TEXT, SESSION_BINARY };

/* What all sessions of one worker share; the worker's thread only. */
struct executor {
    struct store *store;
    struct metric_set *metrics;
    struct admin *admin;
    struct session_rules rules; /* read-only */
    struct access *access;      /* NULL: every client may do everything */
    struct group *group;        /* NULL: the directory has no copies */
    struct owner *owner;        /* NULL: every id is this server's */
    const struct owns *owns;    /* its rule, since the turn began; or NULL */
    const struct moved *moved;  /* ids at other groups, likewise */
    bool has_others;            /* one of both is not NULL */
    const struct moved_one *other_moved; /* likewise: that of the name that was
                                          * refused last; NULL: it was an id,
                                          * see other_id of the session */
    uint64_t value_bytes_max;            /* memcached's -I */
    enum session_binding binding;
    struct store_ring *ring;  /* the worker's; NULL: none (call/ring.h) */
    struct watch_ring *watch; /* likewise; NULL: nobody can watch */
    const _Atomic unsigned *wanted; /* kinds that somebody watches */
    unsigned watched; /* these, since the turn began, and rules.holds_reads:
                       * what else there is to be done for replies */
    /* of the item that the last command was about, for who watches: */
    int item_err;
    size_t item_value_len;
    bool item_is_new;
    struct session_acks acks; /* of the last session_run */
    struct loan loan;         /* likewise */
    struct hot hot;           /* ids that are asked for */
    struct latency_tally
        tally;               /* requests answered; who has called session_run
                                 * takes it */
    uint64_t near_since_s;   /* since then ... */
    unsigned near_said;      /* ... that many keys have been logged, of those
                            * that look like a cell's */
    struct key_names names;  /* of keys that were asked for */
    struct exec_forms forms; /* what these become */
    uint64_t unsaid_s;       /* no line about a refusal before, see below */
    char key[TEXT_KEY_MAX];  /* the request's, where it came encoded */
    struct list_work *list_work; /* kept for reuse; NULL: it is in use, or
                                  * there was none yet */
    struct job *free_jobs; /* kept for reuse: EXECUTOR_JOBS_KEPT at most */
    unsigned n_free_jobs;
    unsigned n_long; /* replies under way that come in pieces: dumps of items,
                      * stats tables */
};

enum { EXECUTOR_JOBS_KEPT = 64 };

/* Prepares an executor; the caller keeps all that is passed alive. binding is
 * SESSION_AUTO, the rules are all zero, and access, owner and group are NULL;
 * they may be changed before the first session. */
void executor_init(struct executor *executor, struct store *store,
    struct metric_set *metrics, struct admin *admin, uint64_t value_bytes_max);

/* From now on clients may watch. Before the first session. */
void executor_watch(struct executor *executor, struct watch_ring *watch);

/* Frees kept memory; no session may be parked. */
void executor_fini(struct executor *executor);

enum { SESSION_MAGIC = 0x53534553 };

/* How far a session is; session.c draws the steps. */
enum session_stage {
    SESSION_OPEN,  /* begins requests */
    SESSION_LAST,  /* begins no other: closes when what is left of the last one
                    * has been skipped */
    SESSION_ENDING /* begins no other: closes when that is answered */
};

struct session {
    uint32_t magic;               /* SESSION_MAGIC */
    enum session_binding binding; /* SESSION_AUTO before the first byte */
    struct executor *executor;
    /* Called once for every SESSION_PARKED, on any thread, when the answer is
     * there; it must make the session's own thread call session_wake. */
    void (*wake_fn)(struct session *session);
    struct parse_scan scan;
    struct request request; /* the one under way; valid while job is set */
    struct job *job;        /* NULL between requests */
    uint64_t swallow_bytes; /* still to be skipped */
    bool swallow_line;      /* skip up to and with the next newline */
    uint8_t stage;          /* enum session_stage; session.c sets it */
    uint8_t rank;           /* enum access_rank: what the client is */
    uint8_t refusals;       /* since it was last known who it is */
    bool login_has_begun;   /* SASL: a step may follow */
    bool is_inner;          /* of a replica's client, whose changes are made
                             * here: it has no login, and none is handed on */
    bool has_quit;          /* as the client wished */
    bool is_feed; /* it brings records of other groups: every id is taken to be
                    * this server's */
    uint64_t pass;     /* what it was let in by */
    uint16_t n_errors; /* requests in a row that were none */
    bool knows_help;   /* it has been told of the command help */
    int unsaid;        /* ERR_: what it was not told, see below; 0 */
    int fault; /* ERR_: why the client is not listened to any more; 0 */
    int fd;    /* of its connection, for who watches */
    _Atomic uint64_t *shown_pass;  /* pass, or 0 of nobody, for other threads;
                                    * NULL: none asks */
    const struct watch_peer *peer; /* who came; the connection's. NULL: nobody
                                    * knows */
    uint64_t from; /* the client's address: an IPv4 one, or the first half of
                    * one of IPv6; 0: none, as of a Unix socket */
    uint64_t changed_seq; /* batch of its last change; 0: there was none */
    uint64_t late_seq;    /* what it has had the primary change is not to be
                        * read here before that batch is; 0: it is */
    uint64_t
        other_id; /* the last id that was another server's; what is refused
                        * with ERR_MOVED is refused for it */
    struct store_backup *backup; /* owned: files are kept for it; NULL: none */
    struct watcher *watcher; /* it takes no requests any more, but has lines */
    void (*lines_fn)(struct session *session); /* there are; see watch__add */
};

enum session_state {
    SESSION_READY,  /* wants more bytes */
    SESSION_FULL,   /* the reply buffer has reached its mark: drain it first */
    SESSION_YIELD,  /* the turn's budget is used up: call again */
    SESSION_PARKED, /* waits for the store: call after session_wake */
    SESSION_CLOSE   /* close the connection when out has been sent */
};

void session_init(struct session *session, struct executor *executor,
    void (*wake_fn)(struct session *session));

/* Gives back what a session holds; it must not be parked. */
void session_fini(struct session *session);

/* Works on bytes[0..len): *consumed of them are done with, the others must be
 * there again (at any address) in the next call. Replies go to out; once that
 * holds mark bytes no new request is begun. *budget requests may be executed,
 * a slice of gets being one; it is counted down. out is empty at first; the
 * executor's acks say what the replies wait for. If out->failed is set
 * afterwards, replies are missing and the connection must be closed. */
enum session_state session_run(struct session *session, const char *bytes,
    size_t len, size_t mark, unsigned *budget, struct buf *out,
    size_t *consumed);

/* Appends what is said of a request that memory is out for, whose first len
 * bytes, at least one, are there. */
void session_say_no_memory(const char *bytes, size_t len, struct buf *out);

/* A command whose client wants no reply has come to err, a SERVER_ERROR: a line
 * in the log, but one a minute and executor at most. Where the disk is at
 * fault, or was_made and so perhaps not for good, silence would be taken for
 * success: session->unsaid becomes err, no request is begun any more, and the
 * connection is to be closed when what was said before is sent. The same where
 * a read's reply is cut short, with the error that has been said. */
void session_leave_unsaid(struct session *session, int err, bool was_made);

/* The store has answered: the next session_run goes on. The session's own
 * thread, after wake_fn. */
void session_wake(struct session *session);

/* No request is begun any more: session_run finishes the one under way, if
 * any, and then says SESSION_CLOSE. */
void session_end(struct session *session);

/* True while the store owes the session an answer. */
bool session_is_parked(const struct session *session);

/* For session.c: goes to another stage, which has to be one that may follow. */
void session__move(struct session *session, enum session_stage to);

/* True while it is parked for records: for a block, or for memory. Else it is
 * for another thread: the keeper, a dump, a login, a replica. */
bool session_waits_for_records(const struct session *session);

/* Bytes that the session has allocated. */
size_t session_memory(const struct session *session);

/* The client is gone, and the session may be parked: makes its end come soon
 * where that can be. */
void session_give_up(struct session *session);

/* Nothing more comes from the client, which may be gone: where the session is
 * parked for something that can be answered as it is now, it soon is. */
void session_hurry(struct session *session);

/* True while the rest of a refused request is being skipped. */
bool session_is_skipping(const struct session *session);
/* True before the client has said who it is, where it must. */
static inline bool
session_is_stranger(const struct session *session)
{
    return session->rank == ACCESS_NOBODY;
}
/* It watches no more, if it did. */
void session_unwatch(struct session *session);
/* True where a request has begun and its bytes are not all there. */
bool session_waits_for_bytes(const struct session *session, size_t left);

#endif
