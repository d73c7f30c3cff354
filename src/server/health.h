/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SERVER_HEALTH_H
#define SERVER_HEALTH_H

#include "server/figures.h"

#include <stdbool.h>
#include <stdint.h>

/* Whether the server does its work, and what is wrong, worst first: judged from
 * the figures that `stats` tells, of now and of a minute ago. Pure. */

/* name, word, what it means */
#define HEALTH_STATES(X)                                                      \
    X(STARTING, "starting", "nothing has been loaded yet")                    \
    X(LOADING, "loading", "the data directory is being loaded")               \
    X(READY, "ready", "all that it is there for is done")                     \
    X(READ_ONLY, "read-only", "counters can be read, and not changed")        \
    X(NOT_READY, "not ready", "it stops, or what it shows would be old")

enum health_state {
#define X(name, word, text) HEALTH_##name,
    HEALTH_STATES(X)
#undef X
};

enum { HEALTH_PROBLEMS_MAX = 16, HEALTH_TEXT_BYTES = 320 };

struct health {
    enum health_state state;
    unsigned percent; /* 0..100 of what is being loaded; only while it is */
    unsigned n;       /* 0: nothing is wrong */
    /* One line each, "what; what to do". */
    char problem[HEALTH_PROBLEMS_MAX][HEALTH_TEXT_BYTES];
};

/* What is counted, and looked at as it grows: field, group, name of the
 * figure. */
#define HEALTH_GROWING(X)                                                     \
    X(rejected, general, "rejected_connections")                              \
    X(auth_errors, general, "auth_errors")                                    \
    X(writes, wal, "writes")                                                  \
    X(slow_writes, wal, "slow_writes")                                        \
    X(sync_failures, wal, "sync_failures")                                    \
    X(changes_unsure, wal, "changes_unsure")                                  \
    X(reads_unsure, wal, "reads_unsure")                                      \
    X(checkpoint_failures, wal, "checkpoint_failures")                        \
    X(read_failures, cold, "read_failures")                                   \
    X(seal_failures, cold, "seal_failures")                                   \
    X(room_waits, cold, "room_waits")                                         \
    X(slow_by_lock, counters, "slow_by_lock")                                 \
    X(lock_wait_us, counters, "lock_wait_us")                                 \
    X(uptime_s, general, "uptime")

/* field, group, what the names begin with: of a histogram by powers of two of
 * microseconds, how many took HEALTH_SLOW_US or longer, and how many there
 * were. */
#define HEALTH_HISTOGRAMS(X)                                                  \
    X(syncs, wal, "sync_us_below_")                                           \
    X(reads, cold, "read_us_below_")

/* A disk that is well answers within a few milliseconds, a spinning one
 * under load in some tens; what took longer than this stood in a queue. */
#define HEALTH_SLOW_US UINT64_C(131072)

struct health_growing {
#define X(field, group, name) uint64_t field;
    HEALTH_GROWING(X)
#undef X
#define X(field, group, name) uint64_t field, slow_##field;
    HEALTH_HISTOGRAMS(X)
#undef X
};

/* What may be so for a moment and means something only where it goes on. */
#define HEALTH_MOMENTS(X)                                                     \
    X(cold_queue,                                                             \
        "more blocks of the cold tier wait than are read at a time")          \
    X(stuck, "the server can neither lead nor follow")                        \
    X(etcd_away, "etcd does not answer")

enum health_moment {
#define X(name, text) HEALTH_MOMENT_##name,
    HEALTH_MOMENTS(X)
#undef X
        HEALTH_MOMENTS_COUNT
};

enum { HEALTH_HOLD_S = 5 /* for so long, at each look */ };

/* Of each whether it was so at the last look, and since which one. All zero:
 * nobody has looked. */
struct health_stands {
    bool is_so[HEALTH_MOMENTS_COUNT];
    uint64_t since_s[HEALTH_MOMENTS_COUNT]; /* of the clock of the looks */
};

/* What is judged. */
struct health_facts {
    bool is_open;          /* there is a store; else only is_over counts */
    bool is_over;          /* there was one, and it stops or is loaded anew */
    int fault;             /* store_fault */
    bool has_groups;       /* it is one of several with copies */
    uint64_t stale_ms;     /* of --replica-serve-stale-data; 0: yes */
    uint64_t max_lag_ms;   /* of --min-replicas-max-lag */
    uint64_t interval_ms;  /* of --sync-interval; 0: another --sync */
    uint64_t cold_threads; /* of --cold-threads */
    const struct figures *now;
    struct health_growing grown; /* in the last minute */
    uint64_t now_s;              /* of a clock that never jumps */
    /* health_look at now_s; NULL: what is so has been so for long */
    const struct health_stands *stands;
};

/* Notes what is so at facts->now_s. */
void health_look(
    const struct health_facts *facts, struct health_stands *stands);

void health_judge(const struct health_facts *facts, struct health *out);

/* What has been counted so far. */
void health_count(const struct figures *figures, struct health_growing *out);

/* How much more that is than then; what is less was begun anew, and is all
 * new. */
void health_grown(const struct health_growing *now,
    const struct health_growing *then, struct health_growing *out);

/* Static storage. */
const char *health_word(enum health_state state);

/* True where clients should be sent elsewhere. */
bool health_is_ready(const struct health *health);

/* Counts of the last minute, taken every HEALTH_SAMPLE_S. All zero: none.
 * The caller's lock. */
enum { HEALTH_SAMPLES = 7, HEALTH_SAMPLE_S = 10 };

struct health_past {
    struct health_growing sample[HEALTH_SAMPLES]; /* a ring */
    unsigned n, next;
    struct health_stands stands;
};

/* One more, in place of the oldest. */
void health_past_add(
    struct health_past *past, const struct health_growing *now);

/* What had been counted a minute ago; nothing where the server is younger. */
struct health_growing health_past_oldest(const struct health_past *past);

#endif
