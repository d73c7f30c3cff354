/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NET_WORKER_H
#define NET_WORKER_H

#include "base/assert.h"
#include "base/buf.h"
#include "base/fast_clock.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/qsbr.h"
#include "call/store_calls.h"
#include "net/alarm.h"
#include "net/bell.h"
#include "net/conn_list.h"
#include "net/conn_room.h"
#include "net/gate.h"
#include "net/helpers.h"
#include "net/timing.h"
#include "net/tls.h"
#include "session/session.h"
#include "session/watch.h"
#include "stats/metric.h"

#include <pthread.h>
#include <uv.h>

/* A worker: one thread with one event loop and its own connections. */

enum {
    WORKER_READ_BYTES = 64 << 10,   /* one read takes at most this */
    WORKER_OUT_BYTES = 64 << 10,    /* for replies of a turn, kept for good */
    WORKER_ACKS_BYTES = 4 << 10,    /* likewise, for what they wait for */
    WORKER_SWEEP_MS = 1000,         /* how often deadlines are looked at */
    WORKER_STOP_MS = 2000,          /* stop_timeout_ms of the server, */
    WORKER_LOGIN_MS = 10000,        /* its login_timeout_ms, */
    WORKER_SHAKE_MS = 10000,        /* and its shake_timeout_ms */
    WORKER_CIPHER_BYTES = 30 << 10, /* one read where there is TLS */
    WORKER_SHAKES_MAX = 1024,       /* handshakes at a time */
    WORKER_OPENS_MAX = 32,          /* sockets that come, in one go */
    WORKER_FAULT_MS = 60000 /* how often a client's fault is logged at most */
};

enum { WORKER_MAGIC = 0x4b524f57 };

/* Connections of all workers together, but for those of worker_add_inner: none
 * of these takes a client's place. */
struct conn_gauge {
    _Atomic unsigned current;
    _Atomic uint64_t total;
    _Atomic uint64_t rejected; /* answered with ERROR Too many ... */
    _Atomic bool is_accepting; /* the listener's: it takes new ones */
    _Atomic uint64_t pauses;   /* how often it did not */
    _Atomic uint64_t pause_us; /* and how long in all */
};

/* A connection is none any more. Any thread. */
static inline void
conn_gauge_leave(struct conn_gauge *gauge)
{
    unsigned before = atomic_fetch_sub(&gauge->current, 1);
    ASSERT(before > 0); /* each has come once, and goes once */
}

struct worker_config {
    struct store *store;
    struct admin *admin;
    struct logger *logger;
    struct conn_gauge *gauge;
    const struct clock *clock;    /* of timeouts; NULL: the system's */
    struct tls *tls;              /* NULL: no socket asks for it */
    struct helpers *helpers;      /* for handshakes, where there is tls */
    struct watch_ring *watch;     /* the worker's; NULL: nobody can watch */
    enum session_binding binding; /* of sockets that have none */
    struct session_rules rules;
    struct access *access; /* NULL: every client may do everything */
    struct group *group;   /* NULL: the directory has no copies */
    bool waits_for_copies; /* changes are held until replicas have them */
    struct owner *owner;   /* NULL: every id is this server's */
    uint64_t value_bytes_max;
    unsigned fds_max;         /* file descriptors are below it; 0: not known */
    struct conn_rooms *rooms; /* NULL: requests have no limit; */
    unsigned n_workers;       /* that share the room of replies; 0: no limit */
    unsigned requests_per_turn;  /* memcached's -R; at least 1 */
    uint64_t command_timeout_ms; /* for the bytes of one command */
    uint64_t write_timeout_ms;   /* for a client that does not read */
    uint64_t idle_timeout_ms;    /* for one that says nothing; 0: for ever */
    uint64_t login_timeout_ms;   /* from the connection to the login */
    uint64_t commit_timeout_ms;  /* for the log, until a change is answered
                                  * with an error; at least 1 */
    uint64_t shake_timeout_ms;   /* for a TLS handshake; at least 1 */
    uint64_t stop_timeout_ms;    /* for replies on their way at a stop */
    uint64_t slow_ms; /* what takes so long goes into the slow log at first;
                       * 0: none does */
    bool verifies;    /* conn_verify_all before each poll, and not at the sweep
                    * only: for tests */
};

struct conn; /* net/conn.h */

/* A socket on its way from the listener. */
struct mail_fd {
    struct mail_fd *next;
    int fd;
    struct watch_peer peer;
    bool is_unix;
    bool is_inner; /* see worker_add_inner */
    enum tls_use tls_use;
    enum session_binding binding;
};

struct worker {
    uint32_t magic;              /* WORKER_MAGIC */
    struct worker_config config; /* read-only */
    struct metric_set metrics;   /* written by the worker's thread only */
    struct latency_set *latency; /* likewise; owned */
    struct slow_log *slow;       /* owned */
    pthread_t thread;
    struct conn_list conn_list; /* what others may see of conns */

    pthread_t self; /* its thread; read-only once there are connections */

    /* what other threads leave here, under lock; then they ring the bell */
    struct mutex lock;
    struct mail_fd *new_fds;
    struct conn *woken;
    struct chore *chores_done;
    bool must_stop;
    bool has_lines;    /* some watcher has */
    bool has_users;    /* other ones than before, perhaps */
    bool has_unwanted; /* connections that are to be closed */
    struct bell bell;

    /* the worker's thread only */
    uv_loop_t loop;
    uv_prepare_t prepare;
    uv_idle_t idle; /* runs while there are ready connections */
    struct alarm sweep;
    uv_poll_t widest;        /* closed before anything else happens */
    uv_poll_t poll;          /* of ring */
    struct store_ring *ring; /* NULL: there is none (call/ring.h) */
    bool is_reaping;         /* the ring answers now */
    struct mail_fd *opening; /* sockets that have come, the first first */
    struct conn *answered;   /* by the ring: on their way to conn_woken */
    struct qsbr_reader reader;
    struct executor executor;
    struct gate gate;
    struct conn_room room;
    struct fast_clock clock; /* of times of requests */
    uint64_t lock_ns;        /* lock_waited_ns at the last turn's end */
    uint32_t n_rounds;
    struct timing spare_timing;    /* of connections that got none */
    struct timing_held *free_held; /* that are not in use, */
    unsigned n_free_held;          /* at most TIMING_HELD_KEPT */
    uint64_t now_ns;          /* the clock as it was last read in this round of
                             * the loop; 0: it has not been */
    uint64_t round_ns;        /* and first; void while now_ns is 0 */
    _Atomic uint64_t slow_ns; /* worker_slow_ns */
    char command[SLOW_KEY_BYTES + 64]; /* the first bytes of a turn's, where
                                        * they may go before its end */
    uint64_t n_progress;    /* of all connections, see conn->progress */
    uint64_t fault_said_ms; /* when a client's fault was logged; 0: never */
    struct conn *conns;     /* all of them, doubly linked */
    struct conn *watching[WATCH_MAX]; /* of these, the watchers */
    unsigned n_watching;
    struct conn *first_ready; /* to go on without an event */
    struct conn *last_ready;
    unsigned n_ready;
    bool stopping;
    uint64_t stop_deadline_ms;
    struct buf out;                /* replies of the turn under way */
    struct tls_shake *first_shake; /* handshakes, the oldest first */
    struct tls_shake *last_shake;
    unsigned n_shakes;
    struct buf sealed; /* what goes to a socket with TLS next */
    char *cipher_buf;  /* WORKER_CIPHER_BYTES; NULL without TLS */
    char read_buf[WORKER_READ_BYTES];
};

/* Makes a worker and starts its thread. 0 or ERR_NO_MEMORY,
 * ERR_NO_THREAD, or ERR_SYSTEM (no more files). */
int worker_start(const struct worker_config *config, struct worker **out);

/* Hands an accepted, non-blocking socket over; the worker closes it. binding:
 * what it speaks; SESSION_AUTO leaves that to the worker's config. tls_use is
 * TLS_USE_NONE where the worker has no TLS. peer: for who watches; NULL:
 * unknown. Any thread. False (the caller keeps fd) when memory is out. */
bool worker__add_fd(struct worker *worker, int fd, bool is_unix,
    enum session_binding binding, enum tls_use tls_use,
    const struct watch_peer *peer);

/* The same of one end of a pair of sockets, whose other end is in this process:
 * who is there may write, and need not log in. */
bool worker_add_inner(
    struct worker *worker, int fd, enum session_binding binding);

/* Tells it to end; worker_join waits for that. Any thread but the worker's
 * own. The connections are closed; those with replies on their way get
 * stop_timeout_ms. */
void worker_stop(struct worker *worker);
void worker_join(struct worker *worker);

/* Has connections closed whose user would not be let in any more as it was.
 * Any thread. */
void worker_look_at_users(struct worker *worker);

/* Has the connection with that socket closed, soon: false where the worker has
 * none. Any thread. */
bool worker_kill(struct worker *worker, int fd);

/* From now on what takes so long goes into the slow log; 0: nothing. Any
 * thread. */
void worker_set_slow(struct worker *worker, uint64_t ms);

/* The same in ns; UINT64_MAX: nothing is slow. */
static inline uint64_t
worker_slow_ns(const struct worker *worker)
{
    /* relaxed: another limit may count a command later */
    return atomic_load_explicit(&worker->slow_ns, memory_order_relaxed);
}

/* Frees *worker, which has been joined, and nulls it. Other workers may read
 * its metrics until they have been joined too. */
void worker_destroy(struct worker **worker);

/* For conn.c: every callback of the loop begins with this (see worker.c). */
void worker__enter(struct worker *worker);

/* For conn.c: puts a connection on the list of those to be continued without
 * an event, or takes it off; twice is as good as once. */
void worker__ready(struct worker *worker, struct conn *conn);
void worker__unready(struct worker *worker, struct conn *conn);

/* The connection is a watcher's: it is made ready when there are lines, until
 * worker__unwatch, which does nothing for others. The worker's thread. */
void worker__watches(struct worker *worker, struct conn *conn);
void worker__unwatch(struct worker *worker, struct conn *conn);

/* For conn.c: the store has answered. True where that is the worker's own
 * doing, which calls conn_woken soon; else it is for the mailbox. Any thread.
 */
bool worker__wakes(struct worker *worker, struct conn *conn);

/* Gives back what a helper has done, or left out: done_fn is called on the
 * worker's thread. Any thread. */
void worker__chore_done(struct worker *worker, struct chore *chore);

/* The session is on its way to conn_woken; a watcher has lines. Any thread. */
void worker__mail_woken(struct worker *worker, struct conn *conn);
void worker__mail_lines(struct worker *worker);

/* For conn.c: the connection has left the list of connections. */
void worker__conn_gone(struct worker *worker);

#endif
