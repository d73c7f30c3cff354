/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SESSION_EXEC_H
#define SESSION_EXEC_H

#include "call/store_calls.h"
#include "items/items.h"
#include "names/names.h"
#include "proto/answer.h"
#include "proto/key.h"
#include "proto/words.h"
#include "session/exec_list.h"
#include "session/session.h"

#include <stdbool.h>

/* Execution of requests: the one command path of all protocols. Used by
 * session.c and among the exec_*.c files only; the session's thread. */

enum {
    EXEC_SLICE_KEYS_MAX = 128,  /* keys of a multi-get that are read at once */
    EXEC_CHECK_KEYS_MAX = 1024, /* and that are checked at once */
    EXEC_BATCH_MAX = 64,        /* changes that the store is given at once */
    EXEC_ABOUTS_MAX = EXEC_BATCH_MAX / 2, /* the same of members=about, behind
                                           * which their counts have room */
    EXEC_NAMES_BYTES = 8192,              /* of names in a slice */
    EXEC_ANSWER_TEXT_MAX = 128 /* of a reply without numbers, about */
};

enum exec_step {
    EXEC_DONE,     /* the reply is complete */
    EXEC_GATHERED, /* it waits for exec_flush; go on with the next request */
    EXEC_MORE,     /* more bytes are needed */
    EXEC_FULL,     /* the reply buffer has reached its mark; resume later */
    EXEC_YIELD,    /* the budget is used up; resume later */
    EXEC_LATER,    /* the store answers later; resume after exec_wake */
    EXEC_CLOSE     /* close the connection */
};

/* What one call of session_run gives to all its requests. */
struct exec_turn {
    const char *base; /* the first byte not done with */
    const char *end;  /* behind the last byte there is */
    size_t mark;
    unsigned *budget;
    struct buf *out;
    struct session_acks *acks; /* what out waits for */
    int fault;                 /* of the store, when the turn began */
    size_t done;       /* bytes of the requests answered, which are before
                        * base once exec_flush has done it */
    size_t whole;      /* of out: a reply behind it that finds no memory takes
                        * nothing of that back ... */
    size_t whole_acks; /* ... nor of acks->at */
    bool is_batch;     /* of gathered requests, that reply */
    bool is_known;     /* of gathered gets that find none: unanswered is the
                        * first behind whole */
    struct echo unanswered;
};

enum { JOB_MAGIC = 0x424f4a };

/* What to do with a job when it is resumed; exec.c draws the steps. */
enum job_stage {
    JOB_GET_JOIN,   /* gets are being gathered; never between turns */
    JOB_GET_CHECK,  /* look whether all keys are well formed */
    JOB_GET_GATHER, /* take the next slice of keys */
    JOB_GET_ASK,    /* ask the store for the slice */
    JOB_GET_PAIRS,  /* the same, and the numbers of its members are read */
    JOB_GET_PINS,   /* the same, and members that marks are about are pinned */
    JOB_GET_FORMAT, /* answer the slice */
    JOB_GATHER,     /* changes are being gathered; never between turns */
    JOB_SOURCES,    /* make the changes: their sources have been read ... */
    JOB_PINS,       /* ... and members that are sources are pinned */
    JOB_CHANGE,     /* answer the changes */
    /* gather changes for the primary; never between turns: */
    JOB_FORWARD_JOIN,
    JOB_EDIT,       /* answer a schema edit */
    JOB_CHECKPOINT, /* answer a checkpoint */
    JOB_SEAL,       /* answer a seal */
    JOB_DUMP,       /* show more items */
    JOB_STATS,      /* show more figures */
    JOB_LIST,       /* change a list */
    JOB_RECORDS,    /* show more records of a counter */
    JOB_BACKUP,     /* answer a begin of a backup, or show more of its files */
    JOB_DIGEST,     /* answer a digest of a counter, or read more */
    JOB_NUMBERS,    /* show more numbers of producers */
    JOB_ORDER,      /* answer a replicaof */
    JOB_FAILOVER,   /* answer a failover */
    JOB_WAIT,       /* answer a wait */
    JOB_FORWARD,    /* answer what the primary was to change */
    JOB_LOGIN       /* answer a login */
};

/* Members that marks of a job are about. Their numbers are read first, as
 * sources are. */
struct job_pins {
    uint32_t n;
    uint16_t source[EXEC_SLICE_KEYS_MAX]; /* the number, among the keys of the
                                           * get that has the sources */
    uint8_t state[EXEC_SLICE_KEYS_MAX];   /* of the number, enum cell_state */
    struct store_members members[EXEC_SLICE_KEYS_MAX];
    struct store_pin call;
};

/* Requests under way, one or some gathered ones: everything they need that
 * must outlive a turn. Spans are counted from the first one's first byte. */
struct job {
    uint32_t magic; /* JOB_MAGIC while it is a session's */
    enum job_stage stage;
    struct job *next; /* in the executor's list of free ones */
    struct session *session;
    bool waits;           /* the store has not answered yet */
    bool has_pins;        /* some of pins.members are to be given back */
    size_t request_bytes; /* of gathered requests; 0: the job's one request
                             * is the session's */
    union {
        struct {               /* retrieval: */
            struct span words; /* of the last request: keys to gather ... */
            struct span unchecked; /* ... and those not yet checked */
            enum request_op op; /* of all; of the session's request is_alone */
            bool is_alone;      /* no other request may join */
            bool touches;       /* is_alone, and gives a new exptime */
            bool has_keys;      /* some key has been checked */
            int unreadable_err; /* of a cell that could not be read; 0: none;
                                  * of the request that is being answered */
            size_t key_bytes;   /* of the slots' keys */
            unsigned n_slots;
            unsigned formatted;  /* slots already answered */
            uint32_t n_requests; /* that share the job */
            uint64_t seen;       /* exec_seen.c's; void while formatted is 0 */
            struct slot slot[EXEC_SLICE_KEYS_MAX];
            struct echo single[EXEC_SLICE_KEYS_MAX]; /* of SLOT_SINGLE and
                                                      * behind */
            union { /* of the slice, what is more than a look for cells */
                struct {
                    uint16_t n_marks;   /* to be worked out when get is
                                          * answered ... */
                    uint16_t n_members; /* ... and before */
                    uint16_t n_lists;   /* likewise when it is */
                    uint8_t n_abouts;   /* ... and these */
                    uint8_t n_names;    /* that are to be looked up before */
                };
                uint64_t more; /* 0: nothing is */
            };
            uint16_t lists_read; /* of n_lists */
            struct slot_mark mark[EXEC_SLICE_KEYS_MAX];
            struct slot_member member[EXEC_SLICE_KEYS_MAX];
            unsigned n_worked; /* of mark: those of the slice that have been
                                * worked out */
            uint32_t n_cells;  /* of get, while numbers of members are read */
            struct store_get get;
            struct store_about about; /* n_abouts keys of members=about ... */
            uint16_t about_cell[EXEC_SLICE_KEYS_MAX]; /* ... and their cells,
                                                       * in get.key */
            uint32_t list_ids; /* of these, since the budget was charged */
            struct list_read list[EXEC_SLICE_KEYS_MAX];
            struct list_reading reading; /* the next one, begun or not */
            struct slot_name name[EXEC_SLICE_KEYS_MAX]; /* n_names */
            uint32_t name_bytes;                        /* of name_text */
            /* of the store, when they were looked up ... */
            uint64_t names_rounds, names_dropped;
            uint64_t names_s;                 /* ... and exec__now_s then */
            char name_text[EXEC_NAMES_BYTES]; /* theirs, one behind the
                                               * other */
        };
        struct { /* changes, store_change.n of them: */
            struct store_change store_change;
            size_t reply_bytes_max; /* about, of their replies */
            uint64_t plain; /* bit i: change i is a plain incr or decr that
                             * is answered, see proto/plain.h: no echo */
            struct echo echo[EXEC_BATCH_MAX];
            struct change change[EXEC_BATCH_MAX];
            uint64_t moved; /* bit i: its id was handed over while the job
                             * waited for what is read for marks */
            uint64_t marks; /* bit i: change i needs what is read of ... */
            uint8_t source[EXEC_BATCH_MAX]; /* ... this key of sources, or ...
                                             */
            uint64_t of_members; /* ... bit i: of this one of pins; void while
                                  * marks is 0 */
            struct store_get sources; /* asked for before the changes */
            bool has_names;           /* some change has a name ... */
            struct engine_name change_name[EXEC_BATCH_MAX]; /* ... one each */
            char change_name_text[EXEC_BATCH_MAX][NAME_BYTES_MAX];
            bool of_about; /* all changes are of members=about, and these are
                            * exec_about.c's: */
            unsigned n_abouts_made; /* of change; from EXEC_ABOUTS_MAX on are
                                     * ... */
            unsigned n_counts;      /* ... so many counts, ... */
            uint8_t count_of[EXEC_ABOUTS_MAX]; /* ... each of one of them */
            uint64_t about_seq;
        };
        struct {                   /* a dump of items: */
            uint64_t cursor;       /* of items_each */
            uint64_t classes;      /* bit n is class n */
            bool has_ended, as_mg; /* meta gets, not metadata */
        } dump;
        struct admin_reply stats; /* a reply to stats */
        struct {                  /* a dump or a digest of a counter: */
            struct store_dump call;
            struct store_digest digest;
            struct owns *owns; /* owned: of call, or NULL */
            uint32_t at;       /* of its n records, already shown */
            /* at the beginning: n_again of struct names, and what struct store
             * has */
            uint64_t names_again, names_dropped;
        } records;
        uint32_t windows_at; /* a dump of numbers: of store_windows */
        uint64_t backup_at;  /* the next line of the session's backup */
        struct list_change change_of_list;
        struct store_edit edit;
        struct store_checkpoint checkpoint;
        struct store_seal seal;
        struct group_order order;
        struct group_failover failover;
        struct group_wait wait;
        struct access_login login;
        struct {
            struct group_forward call;
            struct echo echo[EXEC_BATCH_MAX]; /* of its commands */
        } forward;
    };
    struct job_pins pins; /* of gets and changes with marks; else void */
};

/* Begins the session's request, whose first byte is bytes[0]. What has been
 * gathered before is answered first, unless the request joins it; where that
 * comes to something else than EXEC_DONE, nothing of the request has been
 * begun, and it is to be begun anew. */
enum exec_step exec_begin(
    struct session *session, const char *bytes, struct exec_turn *turn);

/* Which ids are other servers', as the turn begins. */
void exec_ask_owner(struct session *session);

/* The session's request has just been gathered: so are those that follow it,
 * from bytes on, while they are like it and plain. Changes are taken from the
 * turn's budget; of gets a slice counts as one request. */
void exec_follow(
    struct session *session, const char *bytes, struct exec_turn *turn);

/* Goes on with the session's job; turn->base is its first byte. */
enum exec_step exec_resume(struct session *session, struct exec_turn *turn);

/* True while the session has requests that exec_flush is to do. */
static inline bool
exec_is_gathering(const struct session *session)
{
    const struct job *job = session->job;
    return job != NULL &&
        (job->stage == JOB_GATHER || job->stage == JOB_GET_JOIN ||
            job->stage == JOB_FORWARD_JOIN);
}

/* True while the store owes the session's job an answer. */
static inline bool
exec_is_waiting(const struct session *session)
{
    return session->job != NULL && session->job->waits;
}

/* True while what it owes are records; see session_waits_for_records. */
bool exec_waits_for_records(const struct session *session);

/* What a request is counted as. Pure. */
enum latency_verb exec__verb(enum request_op op);

/* Bytes of the requests gathered. */
static inline size_t
exec_gathered_bytes(const struct session *session)
{
    return exec_is_gathering(session) ? session->job->request_bytes : 0;
}

/* True where the session's job is of gathered requests, which are counted in
 * exec_turn's done when they are answered. */
static inline bool
exec_is_batch(const struct session *session)
{
    return session->job->request_bytes > 0;
}

/* True where no other request may be gathered before exec_flush. */
bool exec_must_flush(
    const struct session *session, const struct exec_turn *turn);

/* Does what has been gathered. EXEC_FULL and EXEC_YIELD: of gets only. */
enum exec_step exec_flush(struct session *session, struct exec_turn *turn);

/* The store has answered the session's job. */
void exec_wake(struct session *session);

/* The client is gone: what waits for an answer need get its end only. */
void exec_give_up(struct session *session);

/* The client sends nothing more, and may be gone: what it waits for without
 * need is to be answered with what is so now. */
void exec_hurry(struct session *session);

/* Drops the session's job, if any, which must not wait; frees those kept. */
void exec_abandon(struct session *session);
void exec_free_jobs(struct executor *executor);

#endif
