/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef STATS_LATENCY_H
#define STATS_LATENCY_H

#include "stats/hist.h"

#include <stdint.h>

/* How long requests take, by what they ask for and what they wait for. */

#define LATENCY_VERBS(X)                                                      \
    X(get, "get, gets, gat, gats, mg, and those of the binary protocol")      \
    X(set, "set, add, replace, append, prepend, cas, ms")                     \
    X(incr, "incr, and ma that adds")                                         \
    X(delete, "delete, md")                                                   \
    X(decr, "decr, and ma that takes away")                                   \
    X(touch, "touch")                                                         \
    X(other, "all others: stats, dumps, edits of the schema")

/* The first one that is so, from below. */
#define LATENCY_PATHS(X)                                                      \
    X(hot, "answered at once")                                                \
    X(cold, "waited for blocks of segments, or for what another thread does") \
    X(commit, "waited for the log, or replicas, at the gate")                 \
    X(room, "waited for memory for counters")

/* What is timed of a worker, besides. */
#define LATENCY_LOOPS(X)                                                      \
    X(lag, "a round of the loop, without its sleep")                          \
    X(queue, "a turn that was ready, until it was had")

enum latency_verb {
#define X(name, text) LATENCY_##name,
    LATENCY_VERBS(X)
#undef X
        LATENCY_VERB_COUNT
};

enum latency_path {
#define X(name, text) LATENCY_PATH_##name,
    LATENCY_PATHS(X)
#undef X
        LATENCY_PATH_COUNT
};

enum latency_loop {
#define X(name, text) LATENCY_LOOP_##name,
    LATENCY_LOOPS(X)
#undef X
        LATENCY_LOOP_COUNT
};

/* One worker's: written by its thread, read by any. All zero: empty. Some 250
 * KB, of which few pages are used; from calloc. */
struct latency_set {
    struct hist request[LATENCY_VERB_COUNT][LATENCY_PATH_COUNT];
    struct hist loop[LATENCY_LOOP_COUNT];
};

/* Requests of a turn, by verb, and what else is to be known of them. One
 * thread; all zero: none. */
struct latency_tally {
    uint32_t verbs; /* bit v: n[v] is not 0 */
    uint32_t n[LATENCY_VERB_COUNT];
    uint64_t room_ns; /* that changes have waited for memory */
};

static inline void
latency_count(struct latency_tally *tally, enum latency_verb verb, uint32_t n)
{
    tally->n[verb] += n;
    tally->verbs |= (uint32_t)(n > 0) << verb;
}

/* There are none any more. */
static inline void
latency_clear(struct latency_tally *tally)
{
    for (; tally->verbs != 0; tally->verbs &= tally->verbs - 1) {
        tally->n[__builtin_ctz(tally->verbs)] = 0;
    }
    tally->room_ns = 0;
}

/* Adds what the other has, which is empty then. */
void latency_tally_move(
    struct latency_tally *tally, struct latency_tally *from);

/* Counts them all as having taken ns on that path. The set's own thread. */
static inline void
latency_add(struct latency_set *set, const struct latency_tally *tally,
    enum latency_path path, uint64_t ns)
{
    for (uint32_t left = tally->verbs; left != 0; left &= left - 1) {
        unsigned verb = (unsigned)__builtin_ctz(left);
        hist_add(&set->request[verb][path], ns, tally->n[verb]);
    }
}

/* What sets had when they were read. */
struct latency_sums {
    struct hist_sum request[LATENCY_VERB_COUNT][LATENCY_PATH_COUNT];
};

/* Adds all that the set has of requests. Any thread. */
void latency_sums_read(
    struct latency_sums *sums, const struct latency_set *set);

/* Static storage. */
const char *latency_verb_name(enum latency_verb verb);
const char *latency_path_name(enum latency_path path);

/* Adds what the set has of a verb and a path (LATENCY_PATH_COUNT: of all paths)
 * to the sum. Any thread. */
void latency_read(const struct latency_set *set, enum latency_verb verb,
    enum latency_path path, struct hist_sum *sum);

#endif
