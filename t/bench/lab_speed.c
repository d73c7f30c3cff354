/* SPDX-License-Identifier: BSD-3-Clause */

/* Lookups, increments and fills of a table larger than the caches, and of the
 * other tables with the same records, all as ratios to the loop that only
 * prefetches and loads a line (rounds.h) from memory of the size of the
 * engine's lines.
 *
 * Ids are drawn evenly among those with a record (misses: among those
 * without, in the same range), as the baseline's lines are. Before anything
 * is timed, numbers read are compared with what was stored. */

#include "bench/lab.h"

#include "base/assert.h"
#include "bench/bound.h"
#include "bench/fail.h"
#include "bench/rival.h"
#include "bench/rounds.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    COLUMNS = 3,
    RECORDS = 80000000, /* above 256 MB of lines */
    RECORDS_QUICK = 300000,
    CHAINED_RECORDS_MAX = 10000000, /* a gigabyte of nodes */
    BATCH_IDS = 400000,             /* a round */
    SINGLE_IDS = 40000,
    ROWS_MAX = 16,
    STREAM_DRAWS = 11
};

#define MISS_SHARE 0.55

_Static_assert(BATCH_IDS % HOT_BATCH == 0 && SINGLE_IDS % HOT_BATCH == 0,
    "a ring begins anew where a batch does, in increments one by one too");

#define LOOKUP_COLUMNS(X)                                                     \
    X(NS, "ns", "ns an id", 1)                                                \
    X(RATIO, "ratio", "x baseline", 2)                                        \
    X(LEAST, "ratio_min", "least", 2)                                         \
    X(MOST, "ratio_max", "most", 2)                                           \
    X(BYTES, "bytes", "bytes a record", 2)                                    \
    X(RECORDS, "records", "records", 0)
#define INSERT_COLUMNS(X)                                                     \
    X(NS, "ns", "ns a record", 1)                                             \
    X(RATIO, "ratio", "x baseline", 2)                                        \
    X(BACKGROUND, "background_ns", "background ns a record", 1)               \
    X(RECORDS, "records", "records", 0)

enum {
#define X(name, key, head, decimals) LOOKUP_##name,
    LOOKUP_COLUMNS(X)
#undef X
};
enum {
#define X(name, key, head, decimals) INSERT_##name,
    INSERT_COLUMNS(X)
#undef X
};

static const struct sheet_column lookup_columns[] = {
#define X(name, key, head, decimals) {key, head, decimals},
    LOOKUP_COLUMNS(X)
#undef X
};
static const struct sheet_column insert_columns[] = {
#define X(name, key, head, decimals) {key, head, decimals},
    INSERT_COLUMNS(X)
#undef X
};

/* Questions drawn before: columns keys side by side for each id. */
struct ring {
    struct cell_key *key; /* owned */
    size_t n, at;         /* keys */
    size_t room;          /* keys, n of which are there */
    size_t columns;
    unsigned turns; /* times it has begun anew */
};

/* WANT_EVEN: a number that is even and not 0, so that it takes as many bits
 * with 1 added; of other posts than those of WANT_NONZERO, whose numbers grow
 * from round to round. */
enum want { WANT_HITS, WANT_MISSES, WANT_NONZERO, WANT_EVEN };

struct speed {
    struct lab *lab;
    struct posts posts;
    uint64_t *mask;
    struct hot hot;
    struct ring hits, records, misses, nonzero, even;
    struct ring chained_hits, chained_misses;
    struct rounds_baseline baseline;
    struct classic large, small;
    struct chained chained;
    struct rounds_row row[ROWS_MAX];
    size_t n_rows;
    uint64_t sum; /* so that nothing is optimised away */
};

/* What a row asks of what. */
struct question {
    struct speed *speed;
    struct ring *ring;
    const struct classic *classic;
};

/* The next n ids of the ring. */
static const struct cell_key *
take(struct ring *ring, size_t n)
{
    size_t keys = n * ring->columns;
    if (ring->at + keys > ring->n) {
        ring->at = 0;
        ring->turns++;
    }
    const struct cell_key *key = ring->key + ring->at;
    ring->at += keys;
    return key;
}

static void
ask_batches(void *context, size_t n)
{
    struct question *question = context;
    struct speed *speed = question->speed;
    uint64_t value[HOT_BATCH * COLUMNS];
    uint8_t state[HOT_BATCH * COLUMNS];
    size_t cells = HOT_BATCH * question->ring->columns;
    for (size_t done = 0; done < n; done += HOT_BATCH) {
        engine_get(speed->hot.engine, take(question->ring, HOT_BATCH), cells,
            value, state);
        hot_pause(&speed->hot);
        speed->sum += value[done % cells];
    }
}

/* Each id once the number before is known. */
static void
ask_singles(void *context, size_t n)
{
    struct question *question = context;
    struct speed *speed = question->speed;
    uint64_t value = 0;
    uint8_t state;
    for (size_t done = 0; done < n; done++) {
        struct cell_key key = *take(question->ring, 1);
        key.id ^= value >> 63; /* 0, which the compiler does not know */
        engine_get(speed->hot.engine, &key, 1, &value, &state);
        hot_pause(&speed->hot);
    }
    speed->sum += value;
}

/* Adds 1 to the ids of the ring; where they are to stay in place it is taken
 * away again in every second turn. */
static void
increment(struct question *question, size_t n, size_t batch)
{
    struct speed *speed = question->speed;
    struct change change[HOT_BATCH];
    for (size_t i = 0; i < batch; i++) {
        change[i] = hot_change(&speed->hot, CHANGE_INCR);
        change[i].n_columns = 1;
        change[i].operand[0] = 1;
    }
    for (size_t done = 0; done < n; done += batch) {
        const struct cell_key *key = take(question->ring, batch);
        bool is_back =
            question->ring == &speed->even && speed->even.turns % 2 != 0;
        for (size_t i = 0; i < batch; i++) {
            change[i].op = is_back ? CHANGE_DECR : CHANGE_INCR;
            change[i].id = key[i].id;
            change[i].column[0] = key[i].column;
            change[i].serial[0] = key[i].serial;
        }
        hot_do(&speed->hot, change, batch);
    }
}

static void
increment_batches(void *context, size_t n)
{
    increment(context, n, HOT_BATCH);
}

static void
increment_singles(void *context, size_t n)
{
    increment(context, n, 1);
}

static void
ask_classic(void *context, size_t n)
{
    struct question *question = context;
    uint64_t value[HOT_BATCH];
    for (size_t done = 0; done < n; done += HOT_BATCH) {
        classic_get(question->classic, take(question->ring, HOT_BATCH),
            HOT_BATCH, value);
        question->speed->sum += value[done % HOT_BATCH];
    }
}

static void
ask_chained(void *context, size_t n)
{
    struct question *question = context;
    struct speed *speed = question->speed;
    uint64_t value[HOT_BATCH];
    for (size_t done = 0; done < n; done += HOT_BATCH) {
        chained_get(&speed->chained, take(question->ring, HOT_BATCH),
            HOT_BATCH, value);
        speed->sum += value[done % HOT_BATCH];
    }
}

static bool
has_record(const struct speed *speed, uint64_t post)
{
    return speed->mask[post / 64] >> post % 64 & 1;
}

/* Whether WANT_EVEN or WANT_NONZERO takes that number of a post. */
static bool
is_wanted(enum want want, uint64_t post, uint64_t number)
{
    bool is_even = want == WANT_EVEN;
    return number != 0 && (post % 2 == 0) == is_even &&
        !(is_even && number % 2 != 0);
}

/* One of the first posts posts, and a column to ask of it. */
static uint64_t
draw_post(const struct speed *speed, struct dist_rng *rng, enum want want,
    uint64_t posts, unsigned *column)
{
    bool is_miss = want == WANT_MISSES && dist_rng_unit(rng) < MISS_SHARE;
    for (;;) {
        uint64_t post = dist_rng_u64(rng) % posts;
        uint64_t value[COLUMNS];
        if (has_record(speed, post) == is_miss) {
            continue;
        }
        *column = (unsigned)(dist_rng_u64(rng) % COLUMNS);
        if (want != WANT_NONZERO && want != WANT_EVEN) {
            return post;
        }
        posts_values(&speed->posts, post, value);
        if (is_wanted(want, post, value[*column])) {
            return post;
        }
    }
}

static void
ring_init(struct ring *ring, const struct speed *speed, enum want want,
    size_t columns, uint64_t posts)
{
    size_t ids = speed->lab->draws / columns / HOT_BATCH * HOT_BATCH;
    *ring = (struct ring){
        .n = ids * columns, .room = ids * columns, .columns = columns};
    ring->key = rounds_map(ring->room * sizeof(ring->key[0]));
    struct dist_rng rng;
    dist_rng_init(&rng, speed->lab->seed, STREAM_DRAWS + want);
    for (size_t i = 0; i < ids; i++) {
        unsigned column;
        uint64_t post = draw_post(speed, &rng, want, posts, &column);
        uint64_t id = posts_id(&speed->posts, post);
        for (size_t k = 0; k < columns; k++) {
            ring->key[i * columns + k] =
                hot_key(&speed->hot, id, columns > 1 ? (unsigned)k : column);
        }
    }
}

/* Numbers that are even and not 0, each of another id; as many as the other
 * rings have, or a part of the posts, or as are found in so many draws. */
static void
ring_init_even(struct ring *ring, const struct speed *speed)
{
    enum { DRAWS_EACH = 2, POSTS_PART = 16 };
    size_t room = speed->posts.n / POSTS_PART;
    if (room > speed->lab->draws) {
        room = speed->lab->draws;
    }
    room = room / HOT_BATCH * HOT_BATCH;
    uint64_t *drawn = calloc(speed->posts.n / 64 + 1, sizeof(drawn[0]));
    if (drawn == NULL) {
        fail("out of memory");
    }
    *ring = (struct ring){.room = room, .columns = 1};
    ring->key = rounds_map(room * sizeof(ring->key[0]));
    struct dist_rng rng;
    dist_rng_init(&rng, speed->lab->seed, STREAM_DRAWS + WANT_EVEN);
    for (size_t i = 0; i < DRAWS_EACH * room && ring->n < room; i++) {
        unsigned column;
        uint64_t post =
            draw_post(speed, &rng, WANT_EVEN, speed->posts.n, &column);
        if ((drawn[post / 64] >> post % 64 & 1) == 0) {
            drawn[post / 64] |= UINT64_C(1) << post % 64;
            ring->key[ring->n++] =
                hot_key(&speed->hot, posts_id(&speed->posts, post), column);
        }
    }
    ring->n = ring->n / HOT_BATCH * HOT_BATCH;
    free(drawn);
    if (ring->n == 0) {
        fail("too few records for increments in place");
    }
}

static void
ring_fini(struct ring *ring)
{
    rounds_unmap(ring->key, ring->room * sizeof(ring->key[0]));
}

static void
add_row(struct speed *speed, const char *name, size_t n,
    void (*run_fn)(void *, size_t), void *context)
{
    ASSERT(speed->n_rows < ROWS_MAX);
    speed->row[speed->n_rows++] = (struct rounds_row){
        .name = name, .run_fn = run_fn, .context = context, .n = n};
}

/* Fails where another table does not hold what it should. */
static void
check_rivals(struct speed *speed)
{
    struct ring *ring = &speed->chained_misses;
    for (size_t i = 0; i < LAB_CHECKS; i++) {
        const struct cell_key *key = take(ring, 1);
        uint64_t at_large;
        uint64_t at_small;
        uint64_t chained;
        classic_get(&speed->large, key, 1, &at_large);
        classic_get(&speed->small, key, 1, &at_small);
        chained_get(&speed->chained, key, 1, &chained);
        if ((at_large != chained && at_large < UINT16_MAX) ||
            (at_small != chained && at_small < (1 << 10) - 1)) {
            fail("the other tables do not agree on id %llu",
                (unsigned long long)key->id);
        }
    }
}

static void
fill_rivals(struct speed *speed)
{
    struct posts few = speed->posts;
    rounds_progress("filling the classic layout");
    classic_init(
        &speed->large, CLASSIC_ITEM_LARGE, &speed->posts, speed->mask);
    classic_init(
        &speed->small, CLASSIC_ITEM_SMALL, &speed->posts, speed->mask);
    if (few.n > CHAINED_RECORDS_MAX) {
        lab_size(&few, CHAINED_RECORDS_MAX);
    }
    if (!chained_is_there()) {
        return;
    }
    rounds_progress("filling uthash");
    chained_init(&speed->chained, &few, speed->mask);
    ring_init(&speed->chained_hits, speed, WANT_HITS, 1, few.n);
    ring_init(&speed->chained_misses, speed, WANT_MISSES, 1, few.n);
    check_rivals(speed);
}

/* All rows with their questions. */
static void
measure_rows(struct speed *speed)
{
    bool has_rivals = speed->lab->is_wanted[LAB_RIVALS];
    struct question hits = {speed, &speed->hits, &speed->large};
    struct question records = {speed, &speed->records, NULL};
    struct question misses = {speed, &speed->misses, &speed->large};
    struct question nonzero = {speed, &speed->nonzero, NULL};
    struct question even = {speed, &speed->even, NULL};
    struct question small_hits = {speed, &speed->hits, &speed->small};
    struct question small_misses = {speed, &speed->misses, &speed->small};
    struct question chained_hits = {speed, &speed->chained_hits, NULL};
    struct question chained_misses = {speed, &speed->chained_misses, NULL};
    struct rounds_baseline *baseline = &speed->baseline;
    add_row(speed, "baseline, one line after the other", SINGLE_IDS,
        rounds_baseline_serial, baseline);
    add_row(speed, "batch, hits", BATCH_IDS, ask_batches, &hits);
    add_row(speed, "batch, 3 columns an id", BATCH_IDS, ask_batches, &records);
    add_row(speed, "batch, 55 % misses", BATCH_IDS, ask_batches, &misses);
    add_row(
        speed, "one after the other, hits", SINGLE_IDS, ask_singles, &hits);
    if (has_rivals) {
        add_row(
            speed, "classic 12 B, batch, hits", BATCH_IDS, ask_classic, &hits);
        add_row(speed, "classic 12 B, batch, 55 % misses", BATCH_IDS,
            ask_classic, &misses);
        add_row(speed, "classic 8 B, batch, hits", BATCH_IDS, ask_classic,
            &small_hits);
        add_row(speed, "classic 8 B, batch, 55 % misses", BATCH_IDS,
            ask_classic, &small_misses);
        add_row(speed, "uthash, hits", SINGLE_IDS, ask_chained, &chained_hits);
        add_row(speed, "uthash, 55 % misses", SINGLE_IDS, ask_chained,
            &chained_misses);
    }
    /* last in a round: they change what the others read */
    add_row(speed, "increment in place, batch", BATCH_IDS, increment_batches,
        &even);
    add_row(speed, "increment in place, one by one", SINGLE_IDS,
        increment_singles, &even);
    add_row(speed, "increment, batch", BATCH_IDS, increment_batches, &nonzero);
    add_row(speed, "increment, one by one", SINGLE_IDS, increment_singles,
        &nonzero);
    double baseline_ns =
        rounds_run(speed->row, speed->n_rows, baseline, speed->lab->rounds);
    double *cell = sheet_add(&speed->lab->lookup, "baseline");
    cell[LOOKUP_NS] = baseline_ns;
    cell[LOOKUP_RATIO] = 1.0;
}

/* The memory of the table that a row is about. */
static void
add_bytes(const struct speed *speed, const char *name, double *cell)
{
    cell[LOOKUP_RECORDS] = (double)speed->large.records;
    if (strstr(name, "classic 12") != NULL) {
        cell[LOOKUP_BYTES] = classic_bytes(&speed->large);
    } else if (strstr(name, "classic 8") != NULL) {
        cell[LOOKUP_BYTES] = classic_bytes(&speed->small);
    } else if (strstr(name, "uthash") != NULL) {
        cell[LOOKUP_BYTES] = speed->chained.bytes;
        cell[LOOKUP_RECORDS] = (double)speed->chained.records;
    }
}

static void
report_lookups(struct speed *speed, const struct hot_state *state)
{
    unsigned rounds = speed->lab->rounds;
    for (size_t i = 0; i < speed->n_rows; i++) {
        struct rounds_row *row = &speed->row[i];
        double *cell = sheet_add(&speed->lab->lookup, "%s", row->name);
        struct rounds_spread ratio = rounds_spread(row->ratio, rounds);
        cell[LOOKUP_NS] = rounds_spread(row->ns, rounds).median;
        cell[LOOKUP_RATIO] = ratio.median;
        cell[LOOKUP_LEAST] = ratio.least;
        cell[LOOKUP_MOST] = ratio.most;
        if (strstr(row->name, "classic") != NULL ||
            strstr(row->name, "uthash") != NULL) {
            add_bytes(speed, row->name, cell);
        } else if (row->context != &speed->baseline) {
            cell[LOOKUP_BYTES] = state->bytes;
            cell[LOOKUP_RECORDS] = state->records;
        }
    }
    printf("Engine (%s): %.0f records, %.1f MB of lines, load %.3f; the "
           "baseline has as many lines. Medians of %u rounds.\n\n",
        reader_name(
            speed->lab->isa == READER_BEST ? reader_best() : speed->lab->isa),
        state->records, (double)state->sum.line_bytes / 1e6, state->load,
        rounds);
    sheet_print(&speed->lab->lookup, stdout);
}

static void
report_fill(struct speed *speed, const char *name, const struct hot_fill *fill,
    double baseline_ns, double records)
{
    double *cell = sheet_add(&speed->lab->insert, "%s", name);
    cell[INSERT_NS] = (double)fill->cpu_ns / records;
    cell[INSERT_RATIO] = cell[INSERT_NS] / baseline_ns;
    cell[INSERT_BACKGROUND] = (double)fill->tender_cpu_ns / records;
    cell[INSERT_RECORDS] = records;
}

/* Fills one engine in random order, beside nothing else. */
static void
fill_at_random(struct speed *speed, double baseline_ns)
{
    struct hot hot;
    struct posts_order order;
    posts_order_init(&order, speed->posts.n, speed->lab->seed);
    struct hot_fill fill = {.posts = &speed->posts, .order = &order};
    lab_start(speed->lab, &speed->posts, &hot);
    hot_fill(&hot, &fill);
    lab_check(&hot, &speed->posts);
    report_fill(
        speed, "in random order", &fill, baseline_ns, hot_look(&hot).records);
    hot_stop(&hot);
}

static void
speed_fini(struct speed *speed)
{
    struct ring *ring[] = {&speed->hits, &speed->records, &speed->misses,
        &speed->nonzero, &speed->even, &speed->chained_hits,
        &speed->chained_misses};
    for (size_t i = 0; i < sizeof(ring) / sizeof(ring[0]); i++) {
        ring_fini(ring[i]);
    }
    rounds_baseline_fini(&speed->baseline);
    classic_fini(&speed->large);
    classic_fini(&speed->small);
    chained_fini(&speed->chained);
    free(speed->mask);
    free(speed);
}

static void
draw_questions(struct speed *speed)
{
    rounds_progress("drawing the questions");
    ring_init(&speed->hits, speed, WANT_HITS, 1, speed->posts.n);
    ring_init(&speed->records, speed, WANT_HITS, COLUMNS, speed->posts.n);
    ring_init(&speed->misses, speed, WANT_MISSES, 1, speed->posts.n);
    ring_init(&speed->nonzero, speed, WANT_NONZERO, 1, speed->posts.n);
    ring_init_even(&speed->even, speed);
}

static void
set_sheets(struct lab *lab)
{
    lab->lookup.key = "lookup";
    lab->lookup.head = "CPU time";
    lab->lookup.column = lookup_columns;
    lab->lookup.n_columns = sizeof(lookup_columns) / sizeof(lookup_columns[0]);
    lab->insert.key = "insert";
    lab->insert.head = "fill, growth included";
    lab->insert.column = insert_columns;
    lab->insert.n_columns = sizeof(insert_columns) / sizeof(insert_columns[0]);
}

void
lab_speed(struct lab *lab)
{
    struct speed *speed = calloc(1, sizeof(*speed));
    if (speed == NULL) {
        fail("out of memory");
    }
    set_sheets(lab);
    speed->lab = lab;
    speed->posts = (struct posts){.dist.seed = lab->seed, .columns = COLUMNS};
    lab_size(&speed->posts, lab_records(lab, RECORDS, RECORDS_QUICK));
    speed->mask = calloc(speed->posts.n / 64 + 1, sizeof(speed->mask[0]));
    if (speed->mask == NULL) {
        fail("out of memory");
    }
    struct hot_fill fill = {.posts = &speed->posts, .mask = speed->mask};
    lab_start(lab, &speed->posts, &speed->hot);
    hot_fill(&speed->hot, &fill);
    rounds_progress("letting the engine rest");
    hot_settle(&speed->hot);
    lab_check(&speed->hot, &speed->posts);
    struct hot_state state = hot_look(&speed->hot);
    rounds_baseline_init(&speed->baseline, state.sum.lines, lab->draws);
    if (lab->is_wanted[LAB_LOOKUP]) {
        draw_questions(speed);
        if (lab->is_wanted[LAB_RIVALS]) {
            fill_rivals(speed);
        }
        measure_rows(speed);
        report_lookups(speed, &state);
    }
    hot_stop(&speed->hot);
    if (lab->is_wanted[LAB_INSERT]) {
        double baseline_ns =
            rounds_run(NULL, 0, &speed->baseline, lab->rounds);
        report_fill(speed, "in id order", &fill, baseline_ns, state.records);
        fill_at_random(speed, baseline_ns);
        sheet_print(&lab->insert, stdout);
    }
    speed_fini(speed);
}
