/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_HOT_H
#define BENCH_HOT_H

#include "base/qsbr.h"
#include "bench/posts.h"
#include "engine/engine.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* An engine with one counter, a thread that tends it as the server's does,
 * and the measuring thread as its one reader. */

struct hot {
    struct engine *engine;
    struct qsbr qsbr;
    struct qsbr_reader reader; /* of the measuring thread */
    struct schema_counter counter;
    pthread_t tender;
    _Atomic bool stop;
    _Atomic uint64_t idle;          /* rounds in a row without work */
    _Atomic uint64_t tender_cpu_ns; /* so far */
};

struct hot_config {
    unsigned columns;
    unsigned shards;
    uint64_t hot_bytes;
    enum reader_isa isa;
};

/* Makes it; the calling thread is online afterwards. Fails where it cannot. */
void hot_start(struct hot *hot, const struct hot_config *config);
void hot_stop(struct hot *hot);

/* Between batches: nothing got from the engine is used any more. */
static inline void
hot_pause(struct hot *hot)
{
    qsbr_online(&hot->qsbr, &hot->reader);
}

/* Waits until the background has had nothing to do for longer than it waits
 * for a table to stop growing. */
void hot_settle(struct hot *hot);

struct cell_key hot_key(const struct hot *hot, uint64_t id, unsigned column);

/* A change of all columns of an id, operands to be filled in. */
struct change hot_change(const struct hot *hot, enum change_op op);

/* Does n changes; fails where one is refused. */
void hot_do(struct hot *hot, struct change *change, size_t n);

/* Fails unless the record of id reads as value[0..columns). */
void hot_check(struct hot *hot, uint64_t id, const uint64_t *value);

/* What the engine says of itself. */
struct hot_state {
    struct engine_sum sum;
    double records;
    double bytes;      /* a record: tables, stashes, directories */
    double held_bytes; /* a record: the same with what waits for readers */
    double load;       /* used bits / usable bits of lines */
    double stash;      /* share of the records */
    double lines_hit;  /* lines looked at to find a record, on average: one,
                        * for a far record two, for one in a stash three */
    double lines_miss; /* and not to find one: a second where the bit in the
                        * first line's overflow mask is set, a third likewise
                        */
};

struct hot_state hot_look(struct hot *hot);

/* How many lines, and stashes, this process has looked at beyond the first
 * line of each record it asked for; one that is looked at again counts again.
 * Counted in t/bench/lines only, whose engine is slower for it: false
 * elsewhere. */
bool hot_further_looks(uint64_t *n);

/* A fill: in, then out. */
struct hot_fill {
    const struct posts *posts;
    const struct posts_order *order; /* NULL: in the order of posts */
    bool by_column; /* the first column of all posts, then the next */
    uint64_t *mask; /* NULL, or bit post % 64 of word post / 64 is set where
                     * post has a record; the caller's, zero */
    /* out: */
    uint64_t changes;
    uint64_t cpu_ns; /* of the measuring thread in engine_change */
    uint64_t tender_cpu_ns;
    /* over samples from HOT_SAMPLE_FROM records or a tenth on: */
    double load_min, load_mean, bytes_worst;
};

enum { HOT_BATCH = 100, HOT_SAMPLE_FROM = 100000 };

void hot_fill(struct hot *hot, struct hot_fill *fill);

#endif
