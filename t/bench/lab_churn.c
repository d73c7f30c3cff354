/* SPDX-License-Identifier: BSD-3-Clause */

/* What coming and going does to a packed table. A step takes a record,
 * increments it, resets it to zero, and increments an id that has no record
 * by the numbers that the other had: so there are as many records, with the
 * same numbers, at any time, under ids that change. In a turn every record is
 * taken once, in random order; after ten turns every id of the range has come
 * and gone many times. Steps are done by the hundred: all first increments,
 * all resets, all second ones, each lot in one call, so that no change finds
 * the one before it still in hand. At the end every id is read back. */

#include "base/assert.h"
#include "bench/fail.h"
#include "bench/lab.h"
#include "bench/rounds.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    COLUMNS = 3,
    RECORDS = 2000000,
    RECORDS_QUICK = 50000,
    TURNS = 10,
    SAMPLES_A_TURN = 50,
    STREAM_CHURN = 13
};

#define CHURN_COLUMNS(X)                                                      \
    X(RECORDS, "records", "records", 0)                                       \
    X(BYTES, "bytes", "bytes a record", 2)                                    \
    X(WORST, "worst_bytes", "worst", 2)                                       \
    X(LOAD, "load", "load", 3)                                                \
    X(LOAD_MIN, "load_min", "least load", 3)                                  \
    X(STASH, "stash_percent", "in stash, %", 2)                               \
    X(STASH_MAX, "stash_percent_max", "most", 2)                              \
    X(HIT, "lines_hit", "lines a hit", 3)                                     \
    X(MISS, "lines_miss", "lines a miss", 3)                                  \
    X(MISS_MAX, "lines_miss_max", "most", 3)                                  \
    X(COUNTED_HIT, "counted_hit", "counted a hit", 3)                         \
    X(COUNTED_MISS, "counted_miss", "counted a miss", 3)                      \
    X(REBUILDS, "rebuilds", "rebuilds", 0)                                    \
    X(NS, "ns_step", "ns a step", 0)

enum {
#define X(name, key, head, decimals) CHURN_##name,
    CHURN_COLUMNS(X)
#undef X
};

static const struct sheet_column columns[] = {
#define X(name, key, head, decimals) {key, head, decimals},
    CHURN_COLUMNS(X)
#undef X
};

struct churn {
    struct posts posts;
    struct hot hot;
    struct dist_rng rng;
    uint64_t n_in, n_out;
    uint32_t *in;     /* owned: posts with a record */
    uint32_t *out;    /* owned: and those without */
    uint32_t *source; /* owned: by post, whose numbers it has */
    uint64_t cpu_ns;  /* of a turn */
    /* most and least of a turn: */
    double bytes_worst, load_min, stash_max, miss_max;
};

static void
churn_init(struct churn *churn, struct lab *lab)
{
    *churn =
        (struct churn){.posts = {.dist.seed = lab->seed, .columns = COLUMNS}};
    lab_size(&churn->posts, lab_records(lab, RECORDS, RECORDS_QUICK));
    uint64_t n = churn->posts.n;
    ASSERT(n < UINT32_MAX);
    churn->in = calloc(n, sizeof(churn->in[0]));
    churn->out = calloc(n, sizeof(churn->out[0]));
    churn->source = calloc(n, sizeof(churn->source[0]));
    if (churn->in == NULL || churn->out == NULL || churn->source == NULL) {
        fail("out of memory for the churn");
    }
    for (uint32_t post = 0; post < n; post++) {
        uint64_t value[COLUMNS];
        churn->source[post] = post;
        if (posts_values(&churn->posts, post, value)) {
            churn->in[churn->n_in++] = post;
        } else {
            churn->out[churn->n_out++] = post;
        }
    }
    dist_rng_init(&churn->rng, lab->seed, STREAM_CHURN);
    lab_start(lab, &churn->posts, &churn->hot);
}

static void
churn_fini(struct churn *churn)
{
    hot_stop(&churn->hot);
    free(churn->in);
    free(churn->out);
    free(churn->source);
}

/* One lot of steps; the changes are made before the clock runs. */
struct lot {
    struct change up[HOT_BATCH], reset[HOT_BATCH], other[HOT_BATCH];
};

static void
add_step(struct churn *churn, struct lot *lot, size_t n, uint64_t place)
{
    uint64_t random = dist_rng_u64(&churn->rng);
    uint64_t other = (random >> 8) % churn->n_out;
    uint32_t goes = churn->in[place];
    uint32_t comes = churn->out[other];
    churn->in[place] = comes;
    churn->out[other] = goes;
    churn->source[comes] = churn->source[goes];

    unsigned column = (unsigned)(random % COLUMNS);
    lot->up[n].id = posts_id(&churn->posts, goes);
    lot->up[n].column[0] = churn->hot.counter.column[column].slot;
    lot->up[n].serial[0] = churn->hot.counter.column[column].serial;
    lot->reset[n].id = lot->up[n].id;
    lot->other[n].id = posts_id(&churn->posts, comes);
    posts_values(&churn->posts, churn->source[comes], lot->other[n].operand);
}

static void
lot_init(struct lot *lot, const struct hot *hot)
{
    for (size_t i = 0; i < HOT_BATCH; i++) {
        lot->up[i] = hot_change(hot, CHANGE_INCR);
        lot->up[i].n_columns = 1;
        lot->up[i].operand[0] = 1;
        lot->reset[i] = hot_change(hot, CHANGE_SET);
        lot->other[i] = hot_change(hot, CHANGE_INCR);
    }
}

static void
sample(struct churn *churn)
{
    struct hot_state state = hot_look(&churn->hot);
    if (state.held_bytes > churn->bytes_worst) {
        churn->bytes_worst = state.held_bytes;
    }
    if (state.load < churn->load_min) {
        churn->load_min = state.load;
    }
    if (state.stash > churn->stash_max) {
        churn->stash_max = state.stash;
    }
    if (state.lines_miss > churn->miss_max) {
        churn->miss_max = state.lines_miss;
    }
}

/* Takes every record once. */
static void
turn(struct churn *churn, unsigned number)
{
    struct lot lot;
    struct posts_order order;
    posts_order_init(&order, churn->n_in, number);
    lot_init(&lot, &churn->hot);
    churn->cpu_ns = 0;
    uint64_t next = 0;
    for (uint64_t at = 0; at < churn->n_in; at += HOT_BATCH) {
        size_t n = 0;
        for (; n < HOT_BATCH && at + n < churn->n_in; n++) {
            add_step(churn, &lot, n, posts_order_at(&order, at + n));
        }
        uint64_t begin_ns = rounds_cpu_ns();
        hot_do(&churn->hot, lot.up, n);
        hot_do(&churn->hot, lot.reset, n);
        hot_do(&churn->hot, lot.other, n);
        churn->cpu_ns += rounds_cpu_ns() - begin_ns;
        if (at >= next) {
            sample(churn);
            next += churn->n_in / SAMPLES_A_TURN;
            rounds_progress("churn, turn %u, %u %%", number,
                (unsigned)(100 * at / churn->n_in));
        }
    }
}

/* Lines that a lookup of one of these posts looks at, counted over all of
 * them; NAN where nothing counts. */
static double
count_lines(struct churn *churn, const uint32_t *post, uint64_t n)
{
    uint64_t before, after;
    struct cell_key key[HOT_BATCH];
    uint64_t value[HOT_BATCH];
    uint8_t state[HOT_BATCH];
    if (!hot_further_looks(&before)) {
        return NAN;
    }
    for (uint64_t at = 0; at < n; at += HOT_BATCH) {
        size_t now = n - at < HOT_BATCH ? (size_t)(n - at) : HOT_BATCH;
        for (size_t i = 0; i < now; i++) {
            key[i] =
                hot_key(&churn->hot, posts_id(&churn->posts, post[at + i]), 0);
        }
        engine_get(churn->hot.engine, key, now, value, state);
        hot_pause(&churn->hot);
    }
    hot_further_looks(&after);
    return 1.0 + (double)(after - before) / (double)n;
}

static void
report(struct churn *churn, double *cell)
{
    struct hot_state state = hot_look(&churn->hot);
    cell[CHURN_COUNTED_HIT] = count_lines(churn, churn->in, churn->n_in);
    cell[CHURN_COUNTED_MISS] = count_lines(churn, churn->out, churn->n_out);
    cell[CHURN_RECORDS] = state.records;
    cell[CHURN_BYTES] = state.bytes;
    cell[CHURN_LOAD] = state.load;
    cell[CHURN_STASH] = 100.0 * state.stash;
    cell[CHURN_HIT] = state.lines_hit;
    cell[CHURN_MISS] = state.lines_miss;
    cell[CHURN_REBUILDS] = (double)state.sum.rebuilds;
    if (churn->cpu_ns > 0) {
        cell[CHURN_WORST] = churn->bytes_worst;
        cell[CHURN_LOAD_MIN] = churn->load_min;
        cell[CHURN_STASH_MAX] = 100.0 * churn->stash_max;
        cell[CHURN_MISS_MAX] = churn->miss_max;
        cell[CHURN_NS] = (double)churn->cpu_ns / state.records;
    }
    churn->cpu_ns = 0;
}

static void
check(struct churn *churn)
{
    for (uint64_t i = 0; i < churn->n_in; i++) {
        uint64_t value[COLUMNS];
        posts_values(&churn->posts, churn->source[churn->in[i]], value);
        hot_check(&churn->hot, posts_id(&churn->posts, churn->in[i]), value);
    }
    for (uint64_t i = 0; i < churn->n_out; i++) {
        static const uint64_t zero[COLUMNS];
        hot_check(&churn->hot, posts_id(&churn->posts, churn->out[i]), zero);
    }
}

void
lab_churn(struct lab *lab)
{
    struct churn churn;
    lab->churn.key = "churn";
    lab->churn.head = "engine after churn";
    lab->churn.column = columns;
    lab->churn.n_columns = sizeof(columns) / sizeof(columns[0]);
    churn_init(&churn, lab);
    struct hot_fill fill = {.posts = &churn.posts};
    hot_fill(&churn.hot, &fill);
    hot_settle(&churn.hot);
    report(&churn, sheet_add(&lab->churn, "fresh, packed"));
    for (unsigned i = 1; i <= TURNS; i++) {
        churn.bytes_worst = churn.stash_max = churn.miss_max = 0.0;
        churn.load_min = 1.0;
        turn(&churn, i);
        report(&churn, sheet_add(&lab->churn, "after %u x the records", i));
    }
    hot_settle(&churn.hot);
    report(&churn, sheet_add(&lab->churn, "after a rest"));
    check(&churn);
    churn_fini(&churn);
    rounds_progress(NULL);
    sheet_print(&lab->churn, stdout);
}
