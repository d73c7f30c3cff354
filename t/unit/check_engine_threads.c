/* SPDX-License-Identifier: BSD-3-Clause */
/* engine/engine with many threads at once, in tables so small that they split,
 * merge, are made anew and packed all the while. What would go wrong shows:
 *
 *   shared   all writers count in these, each in 16 bits of its own (its
 *            lane): a lost, doubled or torn change shows in the end, a lane
 *            that falls or passes into another at once
 *   present  never change: a false miss shows
 *   absent   never are: a record under a wrong id shows
 *   churned  each belongs to one writer, comes and goes, and is some top bits
 *            of a hash of its id: a reader sees that it is of that id
 *   walking  the same, but never 0, and often too wide for a line: walks
 *            between lines and stash, and a false miss shows
 *
 * All columns of a record are always set alike and read together, so a record
 * that is read half old and half new shows. A column beside them comes and
 * goes under a new serial, which is also the only number stored in it; all
 * present ids have it from when others hear of the serial, so a number that is
 * taken for a default while the column goes shows.
 *
 * Built with TALLYD_HOOKS the engine calls engine_hook between its steps, and
 * threads give their core away there at random.
 *
 * A round is one engine; its shards, sizes and ids vary. A test is some rounds,
 * in a process of its own. ENGINE_THREAD_MINUTES=N makes N tests, each of as
 * many rounds as begin within a minute. Threads use ASSERT:
 * ck_assert belongs to the main thread. */
#include "base/assert.h"
#include "base/clock.h"
#include "base/fold.h"
#include "base/sanitizer.h"
#include "engine/hook.h"
#include "lib/id_family.h"
#include "unit/engine_help.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

/* The thread sanitizer sees a race without meeting it, and is slow; the other
 * one is to see memory that is touched too late, which comes soon; a thread
 * that sleeps is slow, too. The plain build does all. */
#if SANITIZER_THREAD
#define SLOWNESS 12
#elif SANITIZER_ADDRESS && defined(TALLYD_HOOKS)
#define SLOWNESS 6
#elif SANITIZER_ADDRESS || defined(TALLYD_HOOKS)
#define SLOWNESS 3
#else
#define SLOWNESS 1
#endif

enum {
    SLOT = 17,
    WRITERS = 4,
    READERS = 3,
    LANE_BITS = 16,
    ROUNDS = 6,      /* of the test that is always run */
    NUMBERS = 10001, /* rounds of two tests are that far apart: no multiple of
                      * the kinds of rounds */
    MINUTES_MAX = 100000,
    BATCHES = 24000 / SLOWNESS, /* of each writer in a round of a long run */
    PHASES = 4,                 /* of a round: records come, go, come, go */
    BATCH_MAX = 8,
    GETS_MAX = 240,
    IDS = 6400,
    KIND_EACH = 16,    /* of so many ids one is absent, one present ... */
    SHARED_EACH = 160, /* and one shared */
    WALKING_EACH = 320,
    WALKING = IDS / WALKING_EACH,
    SHARED = IDS / SHARED_EACH,
    COLUMNS = 4, /* that stay; even ids use two of them */
    PASSING = 9, /* slot of the column that comes and goes */
    PASSING_BITS = 32
};

#define SLICE_NS UINT64_C(60000000000) /* of one of many tests: a minute */

enum kind {
    KIND_SHARED,
    KIND_PRESENT,
    KIND_ABSENT,
    KIND_CHURNED,
    KIND_WALKING
};

struct round {
    struct engine *engine;
    struct qsbr qsbr;
    struct schema_counter def; /* without the passing column */
    uint64_t id[IDS];
    _Atomic uint32_t serial; /* of the passing column */
    atomic_uint n_writing;
};

struct writer {
    struct round *round;
    unsigned number;
    pthread_t thread;
    struct dist_rng rng;
    struct qsbr_reader reader;
    uint64_t added[SHARED]; /* in this writer's lane */
    uint8_t bits[IDS]; /* of its churned ids: of the hash stored, 0: none */
    unsigned sweep;    /* the next churned id */
    bool is_clearing;
};

struct watcher {
    struct round *round;
    pthread_t thread;
    struct dist_rng rng;
    struct qsbr_reader reader;
    uint64_t last[SHARED];
};

static unsigned
below(struct dist_rng *rng, unsigned n)
{
    return (unsigned)(dist_rng_u64(rng) % n);
}

#ifdef TALLYD_HOOKS
void
engine_hook(const char *name)
{
    enum { YIELD_EACH = 8, SLEEP_EACH = 128, SLEEP_US = 50 };
    static _Thread_local struct dist_rng rng;
    uintptr_t here = (uintptr_t)&rng ^ (uintptr_t)name;
    uint64_t dice = dist_rng_u64(&rng) ^ fold_id(here);
    if (dice % SLEEP_EACH == 0) {
        (void)usleep(SLEEP_US);
    } else if (dice % YIELD_EACH == 0) {
        (void)sched_yield();
    }
}
#endif

static enum kind
kind_of(unsigned i)
{
    if (i % SHARED_EACH == 0) {
        return KIND_SHARED;
    }
    switch (i % KIND_EACH) {
    case 1:
        return KIND_PRESENT;
    case 2:
        return KIND_ABSENT;
    default:
        return i % WALKING_EACH == 3 ? KIND_WALKING : KIND_CHURNED;
    }
}

static unsigned
columns_of(unsigned i)
{
    bool has_two = (i / KIND_EACH + i / SHARED_EACH) % 2 == 0;
    return has_two && kind_of(i) != KIND_WALKING ? COLUMNS / 2 : COLUMNS;
}

/* The writer of a churned or a walking id. */
static unsigned
owner_of(unsigned i)
{
    return (i / KIND_EACH + i / WALKING_EACH) % WRITERS;
}

static unsigned
random_shared(struct dist_rng *rng)
{
    return below(rng, SHARED) * SHARED_EACH;
}

/* Any, or with an owner one of its own. */
static unsigned
random_walking(struct dist_rng *rng, unsigned owner)
{
    unsigned n = below(rng, WALKING);
    n = owner == WRITERS ? n : n - n % WRITERS + owner;
    return n * WALKING_EACH + 3;
}

/* Of an id's hash, its top bits: what a churned record holds. */
static uint64_t
hash_bits(uint64_t id, unsigned bits)
{
    uint64_t hash = fold_id(id + 1) | UINT64_C(1) << 63;
    return bits == 0 ? 0 : hash >> (64 - bits);
}

static uint64_t
present_value(uint64_t id)
{
    return hash_bits(id, id % 8 == 0 ? 64 : 1 + (unsigned)(id % 11));
}

static uint64_t
lane_of(uint64_t value, unsigned number)
{
    return value >> (LANE_BITS * number) & (UINT64_MAX >> (64 - LANE_BITS));
}

/* True where value is what some churned state of id may be. */
static bool
is_of_id(uint64_t id, uint64_t value)
{
    unsigned bits = value == 0 ? 0 : 64 - (unsigned)__builtin_clzll(value);
    return value == hash_bits(id, bits);
}

/* Keys of all columns of id number i; returns how many. */
static unsigned
add_keys(const struct round *round, unsigned i, struct cell_key *key)
{
    unsigned n = columns_of(i);
    for (unsigned k = 0; k < n; k++) {
        key[k] = key_of(&round->def, k, round->id[i]);
    }
    return n;
}

/* All columns alike. */
static uint64_t
one_value(const uint64_t *value, const uint8_t *state, unsigned n)
{
    for (unsigned k = 0; k < n; k++) {
        ASSERT(value[k] == value[0]); /* else torn */
        ASSERT(state[k] == (value[k] == 0 ? CELL_DEFAULT : CELL_SET));
    }
    return value[0];
}

static void
check_value(const struct round *round, unsigned i, uint64_t value)
{
    uint64_t id = round->id[i];
    switch (kind_of(i)) {
    case KIND_PRESENT:
        ASSERT(value == present_value(id)); /* else a false miss */
        break;
    case KIND_ABSENT:
        ASSERT(value == 0);
        break;
    case KIND_WALKING:
        ASSERT(value != 0); /* else a false miss */
        ASSERT(is_of_id(id, value));
        break;
    case KIND_CHURNED:
        ASSERT(is_of_id(id, value));
        break;
    case KIND_SHARED:
        break;
    }
}

/* No lane of a shared cell falls from one call to a later one. Within one call
 * the same id may be asked for twice, in any order: next is what the call has
 * seen at most. */
static void
check_lanes(
    const struct watcher *watcher, unsigned i, uint64_t value, uint64_t *next)
{
    unsigned cell = i / SHARED_EACH;
    uint64_t last = watcher->last[cell];
    uint64_t most = 0;
    for (unsigned lane = 0; lane < WRITERS; lane++) {
        uint64_t now = lane_of(value, lane);
        uint64_t seen = lane_of(next[cell], lane);
        ASSERT(now >= lane_of(last, lane));
        most |= (now > seen ? now : seen) << (LANE_BITS * lane);
    }
    next[cell] = most;
}

static void
change_one(struct round *round, unsigned i, uint64_t value)
{
    int err = change_id(round->engine, &round->def, CHANGE_SET, round->id[i],
        columns_of(i), value);
    ASSERT(err == 0);
}

static struct change
passing_change(uint64_t id, uint32_t serial)
{
    return (struct change){.id = id,
        .op = CHANGE_SET,
        .counter = SLOT,
        .n_columns = 1,
        .column = {PASSING},
        .serial = {serial},
        .operand = {serial}};
}

/* The next of this writer's own churned ids, in order, round and round. */
static unsigned
next_churned(struct writer *writer)
{
    do {
        writer->sweep = (writer->sweep + 1) % IDS;
    } while (kind_of(writer->sweep) != KIND_CHURNED ||
        owner_of(writer->sweep) != writer->number);
    return writer->sweep;
}

static unsigned
random_bits(struct writer *writer, unsigned i)
{
    unsigned dice = below(&writer->rng, 16);
    if (kind_of(i) == KIND_WALKING) { /* 4 x 61 bits fit no line */
        return dice < 8 ? 1 + dice : 57 + below(&writer->rng, 8);
    }
    if (dice == 0) {
        return below(&writer->rng, 65);
    }
    return writer->is_clearing && dice > 2 ? 0 : 1 + below(&writer->rng, 9);
}

static struct change
random_change(struct writer *writer, unsigned *i_out)
{
    const struct round *round = writer->round;
    unsigned dice = below(&writer->rng, 6);
    unsigned i = random_shared(&writer->rng);
    uint64_t operand = UINT64_C(1) << (LANE_BITS * writer->number);
    enum change_op op = CHANGE_INCR;
    if (dice > 1) {
        i = dice == 2 ? random_walking(&writer->rng, writer->number)
                      : next_churned(writer);
        op = CHANGE_SET;
        operand = hash_bits(round->id[i], random_bits(writer, i));
    }
    *i_out = i;
    if (op == CHANGE_SET && below(&writer->rng, 16) == 0) {
        return passing_change(round->id[i], atomic_load(&round->serial));
    }
    return change_of(&round->def, op, round->id[i], columns_of(i), operand);
}

/* Whether the answer is right, and remembers what was done. */
static void
take_answer(struct writer *writer, unsigned i, const struct change *change)
{
    if (change->column[0] == PASSING) {
        ASSERT(change->err == 0 || change->err == ERR_GONE);
        return;
    }
    ASSERT(change->err == 0 && change->n_saturated == 0);
    uint64_t value = change->value[0];
    for (unsigned k = 0; k < change->n_columns; k++) {
        ASSERT(change->value[k] == value);
    }
    if (kind_of(i) == KIND_SHARED) {
        uint64_t *added = &writer->added[i / SHARED_EACH];
        ASSERT(++*added < UINT64_C(1) << LANE_BITS);
        ASSERT(lane_of(value, writer->number) == *added);
        return;
    }
    ASSERT(value == change->operand[0]);
    writer->bits[i] = (uint8_t)(value == 0 ? 0 : 64 - __builtin_clzll(value));
}

static void
change_batch(struct writer *writer)
{
    struct change change[BATCH_MAX];
    unsigned at[BATCH_MAX];
    unsigned n = 1 + below(&writer->rng, BATCH_MAX);
    for (unsigned m = 0; m < n; m++) {
        change[m] = random_change(writer, &at[m]);
        if (m > 0 && kind_of(at[m - 1]) == KIND_SHARED &&
            below(&writer->rng, 3) == 0) {
            change[m] = change[m - 1];
            at[m] = at[m - 1];
        }
    }
    if (n > 1) { /* one alone may come from a thread that is offline */
        qsbr_online(&writer->round->qsbr, &writer->reader);
    }
    engine_change(writer->round->engine, change, n);
    qsbr_offline(&writer->reader);
    for (unsigned m = 0; m < n; m++) {
        take_answer(writer, at[m], &change[m]);
    }
}

/* Nobody else writes there, so it is exact at any time. */
static void
check_own(struct writer *writer)
{
    struct cell_key key[COLUMNS] = {0};
    uint64_t value[COLUMNS];
    uint8_t state[COLUMNS];
    const struct round *round = writer->round;
    unsigned i = below(&writer->rng, 2) == 0 ? random_shared(&writer->rng)
                                             : next_churned(writer);
    unsigned n = add_keys(round, i, key);
    qsbr_online(&writer->round->qsbr, &writer->reader);
    engine_get(round->engine, key, n, value, state);
    qsbr_offline(&writer->reader);
    uint64_t found = one_value(value, state, n);
    if (kind_of(i) == KIND_SHARED) {
        ASSERT(
            lane_of(found, writer->number) == writer->added[i / SHARED_EACH]);
    } else {
        ASSERT(found == hash_bits(round->id[i], writer->bits[i]));
    }
}

static void *
write_all(void *arg)
{
    struct writer *writer = arg;
    struct qsbr *qsbr = &writer->round->qsbr;
    unsigned n = long_part(BATCHES);
    qsbr_register(qsbr, &writer->reader);
    for (unsigned b = 0; b < n; b++) {
        /* about the same for all, so that whole tables fill and empty */
        writer->is_clearing = b / (n / PHASES) % 2 == 1;
        change_batch(writer);
        if (below(&writer->rng, 4) == 0) {
            check_own(writer);
        }
    }
    qsbr_unregister(qsbr, &writer->reader);
    atomic_fetch_sub(&writer->round->n_writing, 1);
    return NULL;
}

/* Random records in one call, each with all its columns side by side. */
static void
watch(struct watcher *watcher)
{
    struct cell_key key[GETS_MAX] = {0};
    uint64_t value[GETS_MAX];
    uint8_t state[GETS_MAX];
    unsigned at[GETS_MAX];
    uint64_t next[SHARED];
    unsigned n_ids = 1 + below(&watcher->rng, GETS_MAX / COLUMNS);
    unsigned n = 0;
    memcpy(next, watcher->last, sizeof(next));
    for (unsigned m = 0; m < n_ids; m++) {
        unsigned dice = below(&watcher->rng, 4);
        at[m] = dice == 0 ? random_shared(&watcher->rng)
            : dice == 1   ? random_walking(&watcher->rng, WRITERS)
                          : below(&watcher->rng, IDS);
        n += add_keys(watcher->round, at[m], &key[n]);
    }
    engine_get(watcher->round->engine, key, n, value, state);
    n = 0;
    for (unsigned m = 0; m < n_ids; m++) {
        unsigned columns = columns_of(at[m]);
        uint64_t found = one_value(&value[n], &state[n], columns);
        check_value(watcher->round, at[m], found);
        if (kind_of(at[m]) == KIND_SHARED) {
            check_lanes(watcher, at[m], found, next);
        }
        n += columns;
    }
    memcpy(watcher->last, next, sizeof(next));
}

/* The passing column of n ids holds nothing but its serial. Present ids have
 * it, or it is gone. */
static void
check_passing(struct round *round, unsigned first, unsigned n)
{
    struct cell_key key[GETS_MAX] = {0};
    uint64_t value[GETS_MAX];
    uint8_t state[GETS_MAX];
    uint32_t serial = atomic_load(&round->serial);
    for (unsigned m = 0; m < n; m++) {
        key[m] = (struct cell_key){.id = round->id[(first + m) % IDS],
            .serial = serial,
            .counter = SLOT,
            .column = PASSING};
    }
    engine_get(round->engine, key, n, value, state);
    for (unsigned m = 0; m < n; m++) {
        ASSERT(value[m] == (state[m] == CELL_SET ? serial : 0));
        ASSERT(state[m] != CELL_DEFAULT ||
            kind_of((first + m) % IDS) != KIND_PRESENT);
    }
}

static void *
watch_all(void *arg)
{
    struct watcher *watcher = arg;
    struct round *round = watcher->round;
    qsbr_register(&round->qsbr, &watcher->reader);
    do {
        qsbr_online(&round->qsbr, &watcher->reader);
        watch(watcher);
        check_passing(round, below(&watcher->rng, IDS), 16);
        if (below(&watcher->rng, 8) == 0) {
            qsbr_offline(&watcher->reader);
            (void)sched_yield();
        }
    } while (atomic_load(&round->n_writing) > 0);
    qsbr_offline(&watcher->reader);
    qsbr_unregister(&round->qsbr, &watcher->reader);
    return NULL;
}

static void *
tend_often(void *arg)
{
    struct round *round = arg;
    uint64_t now_ms = 0, garbage = 0;
    struct engine_sum sum = {0};
    while (atomic_load(&round->n_writing) > 0) {
        bool has_worked = engine_tend(round->engine, now_ms += 150);
        engine_sum(round->engine, SLOT, -1, &sum);
        (void)engine_hot_bytes(round->engine, &garbage);
        if (!has_worked) {
            (void)usleep(200);
        }
    }
    return NULL;
}

/* Gives all present ids the passing column. */
static void
fill_passing(struct round *round, uint32_t serial)
{
    for (unsigned i = 0; i < IDS; i++) {
        if (kind_of(i) == KIND_PRESENT) {
            struct change change = passing_change(round->id[i], serial);
            engine_change(round->engine, &change, 1);
            ASSERT(change.err == 0);
        }
    }
}

/* The passing column goes, a grace period passes, and it comes again under
 * another serial. */
static void *
define_often(void *arg)
{
    struct round *round = arg;
    struct schema_counter with = round->def;
    struct qsbr_reader reader = {0};
    unsigned last = with.n_columns++;
    uint32_t serial = 100;
    qsbr_register(&round->qsbr, &reader);
    while (atomic_load(&round->n_writing) > 0) {
        serial++;
        with.column[last] = (struct schema_column){.serial = serial,
            .slot = PASSING,
            .hint_bits = (uint8_t)(serial % 9),
            .max_bits = PASSING_BITS};
        int err = engine_define(round->engine, &with);
        ASSERT(err == 0);
        fill_passing(round, serial);
        atomic_store(&round->serial, serial);
        for (unsigned i = 0; i < IDS; i += GETS_MAX) {
            qsbr_online(&round->qsbr, &reader);
            check_passing(round, i, GETS_MAX);
        }
        qsbr_offline(&reader);
        err = engine_define(round->engine, &round->def);
        ASSERT(err == 0);
        qsbr_wait(&round->qsbr);
    }
    qsbr_unregister(&round->qsbr, &reader);
    return NULL;
}

static void
round_init(struct round *round, unsigned number)
{
    static const unsigned shards[] = {1, 2, 16, 4};
    static const uint32_t records[] = {64, 200, 64, 500};
    static const enum id_family family[] = {ID_SEQUENTIAL, ID_SECONDS,
        ID_RANDOM, ID_MILLIS, ID_CLUSTERS, ID_SPREAD};
    qsbr_init(&round->qsbr);
    struct engine_config config = {.shards = shards[number % 4],
        .seed = number,
        .hot_bytes = ROOMY_BYTES,
        .qsbr = &round->qsbr,
        .table_records_max = records[number % 4]};
    round->engine = engine_of(&config);
    round->def = plain_counter(SLOT, COLUMNS);
    ck_assert_int_eq(engine_define(round->engine, &round->def), 0);
    id_family_make(family[number % COUNT_OF(family)], number, IDS, round->id);
    for (unsigned i = 0; i < IDS; i++) {
        if (kind_of(i) == KIND_PRESENT) {
            change_one(round, i, present_value(round->id[i]));
        } else if (kind_of(i) == KIND_WALKING) {
            change_one(round, i, hash_bits(round->id[i], 1));
        }
    }
    atomic_init(&round->serial, 1);
    atomic_init(&round->n_writing, WRITERS);
}

/* The last values, and the count of records. Adds what the engine has done to
 * *total. */
static void
check_end(
    struct round *round, const struct writer *writer, struct engine_sum *total)
{
    uint64_t records = 0;
    for (unsigned i = 0; i < IDS; i++) {
        unsigned owner = owner_of(i);
        uint64_t want = 0;
        switch (kind_of(i)) {
        case KIND_SHARED:
            for (unsigned w = 0; w < WRITERS; w++) {
                want |= writer[w].added[i / SHARED_EACH] << (LANE_BITS * w);
            }
            break;
        case KIND_PRESENT:
            want = present_value(round->id[i]);
            break;
        case KIND_ABSENT:
            break;
        case KIND_CHURNED:
        case KIND_WALKING:
            want = hash_bits(round->id[i], writer[owner].bits[i]);
            break;
        }
        for (unsigned k = 0; k < COLUMNS; k++) {
            expect_value(round->engine, &round->def, k, round->id[i],
                k < columns_of(i) ? want : 0);
        }
        records += want != 0;
    }
    struct engine_sum sum = sum_of(round->engine, SLOT);
    ck_assert_ptr_null(sum_fault(&sum, records));
    engine_sum(round->engine, SLOT, -1, total);
}

static void
run_round(unsigned number, struct engine_sum *total)
{
    struct round *round = calloc(1, sizeof(*round));
    struct writer *writer = calloc(WRITERS, sizeof(*writer));
    struct watcher *watcher = calloc(READERS, sizeof(*watcher));
    pthread_t tend, define;
    ck_assert(round != NULL && writer != NULL && watcher != NULL);
    round_init(round, number);
    for (unsigned i = 0; i < WRITERS; i++) {
        writer[i].round = round;
        writer[i].number = i;
        for (unsigned k = 0; k < IDS; k++) {
            writer[i].bits[k] = kind_of(k) == KIND_WALKING;
        }
        dist_rng_init(&writer[i].rng, number, i);
        ck_assert_int_eq(
            pthread_create(&writer[i].thread, NULL, write_all, &writer[i]), 0);
    }
    for (unsigned i = 0; i < READERS; i++) {
        watcher[i].round = round;
        dist_rng_init(&watcher[i].rng, number, WRITERS + i);
        ck_assert_int_eq(
            pthread_create(&watcher[i].thread, NULL, watch_all, &watcher[i]),
            0);
    }
    ck_assert_int_eq(pthread_create(&tend, NULL, tend_often, round), 0);
    ck_assert_int_eq(pthread_create(&define, NULL, define_often, round), 0);
    for (unsigned i = 0; i < WRITERS; i++) {
        ck_assert_int_eq(pthread_join(writer[i].thread, NULL), 0);
    }
    for (unsigned i = 0; i < READERS; i++) {
        ck_assert_int_eq(pthread_join(watcher[i].thread, NULL), 0);
    }
    ck_assert_int_eq(pthread_join(tend, NULL), 0);
    ck_assert_int_eq(pthread_join(define, NULL), 0);
    engine_verify(round->engine);
    check_end(round, writer, total);
    engine_destroy(&round->engine);
    qsbr_fini(&round->qsbr);
    free(round);
    free(writer);
    free(watcher);
}

/* 0: not asked for. */
static unsigned
minutes(void)
{
    const char *text = getenv("ENGINE_THREAD_MINUTES");
    unsigned long n = text == NULL ? 0 : strtoul(text, NULL, 10);
    return n > MINUTES_MAX ? MINUTES_MAX : (unsigned)n;
}

START_TEST(test_rounds)
{
    struct engine_sum total = {0};
    uint64_t end_ns = clock_monotonic_ns() + SLICE_NS;
    unsigned n = 0;
    do {
        run_round((unsigned)_i * NUMBERS + n++, &total);
    } while (minutes() > 0 ? clock_monotonic_ns() < end_ns : n < ROUNDS);
    printf("# %u rounds: %llu rebuilds, %llu splits, %llu merges\n", n,
        (unsigned long long)total.rebuilds, (unsigned long long)total.splits,
        (unsigned long long)total.merges);
    /* else it has proved little */
    ck_assert_uint_gt(total.splits, 0);
    ck_assert_uint_gt(total.merges, 0);
    ck_assert_uint_gt(total.moves, 0);
    ck_assert_uint_gt(total.tightened, 0);
    ck_assert_uint_gt(total.rebuilds, total.splits);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_rounds};
    unsigned n = minutes();
    return run_tests_often(
        "engine_threads", tests, COUNT_OF(tests), n > 0 ? (int)n : 1);
}
