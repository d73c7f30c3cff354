/* SPDX-License-Identifier: BSD-3-Clause */
/* engine/cover with threads: writers, a reader without lock and background
 * work, while ranges are sealed and evicted all the time into a fake cold tier
 * (lib/fake_cover), from which records come back as bases.
 *
 * There are three kinds of ids. Shared ones are counted up by all writers, each
 * in 16 bits of its own, so that a change which is lost or done twice shows.
 * Owned ones are set and deleted by one writer, which reads them back. Steady
 * ones never change, and whoever looks must find them: the engine has them, or
 * something covers their row. In the end what the sink was told behind each
 * eviction must give what is there. Threads use ASSERT: ck_assert belongs to
 * the main thread. */
#include "base/assert.h"
#include "base/sanitizer.h"
#include "lib/fake_cover.h"
#include "lib/id_family.h"
#include "unit/crowd_help.h"

enum {
    SLOWNESS = SANITIZER_THREAD ? 6
        : SANITIZER_ADDRESS     ? 3
                                : 1,
    SLOT = 30,
    SHARDS = 2,
    CELLS = 4,
    IDS = 600,
    COLUMNS = 2,
    RECORDS_MAX = 64,
    WRITERS = 3,
    SEALS = 160 / SLOWNESS, /* at least, in a long run; for each of them: */
    SEAL_BATCHES = 20,      /* batches of each writer */
    BATCH_MAX = 12,
    LANE_BITS = 16,
    STEADY = 77
};

enum kind { SHARED, OWNED, STEADY_KIND, KINDS };

struct stage {
    struct crowd crowd;
    struct fake_cover fake;
    struct schema_counter def;
    uint64_t id[IDS];
    atomic_uint n_seals;
    /* who looks without a lock: what covers a cell; 0: nothing */
    _Atomic uint64_t version[SHARDS * CELLS];
    /* the sealer's: what is being sealed, and where in the journal a cell's
     * redo records begin */
    unsigned shard, cell;
    size_t published[SHARDS * CELLS];
};

struct writer {
    struct stage *stage;
    pthread_t thread;
    unsigned number;
    struct dist_rng rng;
    struct qsbr_reader reader;
    uint64_t count[IDS]; /* of the shared ones, by this writer */
    uint64_t value[IDS]; /* of the owned ones; 0: deleted */
    uint64_t n_cold;
};

/* Reads a record wherever it is. */
static bool
find(struct stage *stage, uint64_t id, uint64_t *value)
{
    struct cell_key key[COLUMNS];
    uint8_t state[COLUMNS];
    struct engine_found found;
    struct engine_base base;
    unsigned shard;
    uint64_t row;
    for (unsigned k = 0; k < COLUMNS; k++) {
        key[k] = key_of(&stage->def, k, id);
    }
    engine_look(stage->crowd.engine, key, COLUMNS, value, state, &found);
    if (!found.is_here && found.version != 0) {
        engine_row(stage->crowd.engine, id, &shard, &row);
        fake_cover_base(&stage->fake, found.version, row, &base);
        for (unsigned k = 0; k < COLUMNS; k++) {
            value[k] = fake_cover_value(&base, &stage->def.column[k]);
        }
    }
    return found.is_here;
}

/* Brings the record to a change that wants it; false where it is in the engine
 * by now. */
static bool
bring(struct stage *stage, struct change *change, struct engine_base *base)
{
    struct cell_key key = key_of(&stage->def, 0, change->id);
    struct engine_found found;
    uint64_t value, row;
    uint8_t state;
    unsigned shard;
    engine_look(stage->crowd.engine, &key, 1, &value, &state, &found);
    change->base = NULL;
    if (found.is_here) {
        return false;
    }
    ASSERT(found.version != 0);
    engine_row(stage->crowd.engine, change->id, &shard, &row);
    fake_cover_base(&stage->fake, found.version, row, base);
    base->id = change->id;
    change->base = base;
    return true;
}

/* Does changes until none is refused for want of its record. */
static void
change_all(struct writer *writer, struct change *change, unsigned n)
{
    struct engine_base base[BATCH_MAX];
    while (n > 0) {
        unsigned n_left = 0;
        qsbr_online(&writer->stage->crowd.qsbr, &writer->reader);
        engine_change(writer->stage->crowd.engine, change, n);
        qsbr_offline(&writer->reader);
        for (unsigned i = 0; i < n; i++) {
            ASSERT(change[i].err == 0 || change[i].err == ERR_COLD ||
                change[i].err == ERR_NOT_FOUND);
            if (change[i].err == ERR_COLD) {
                (void)bring(writer->stage, &change[i], &base[n_left]);
                change[n_left] = change[i];
                n_left++;
                writer->n_cold++;
            }
        }
        n = n_left;
    }
}

static void
count_some(struct writer *writer)
{
    struct change change[BATCH_MAX];
    unsigned n = 1 + (unsigned)(dist_rng_u64(&writer->rng) % BATCH_MAX);
    for (unsigned i = 0; i < n; i++) {
        /* now and then the same few, which are cold each time */
        size_t at = dist_rng_u64(&writer->rng) % (IDS / KINDS);
        at = KINDS * (i % 3 == 0 ? at % 4 : at) + SHARED;
        change[i] =
            change_of(&writer->stage->def, CHANGE_INCR, writer->stage->id[at],
                1, UINT64_C(1) << (LANE_BITS * writer->number));
        writer->count[at]++;
    }
    change_all(writer, change, n);
}

static void
set_one(struct writer *writer)
{
    struct stage *stage = writer->stage;
    uint64_t value[COLUMNS];
    size_t at = dist_rng_u64(&writer->rng) % (IDS / KINDS / WRITERS);
    at = KINDS * (WRITERS * at + writer->number) + OWNED;
    uint64_t operand = dist_rng_u64(&writer->rng) % 3 == 0
        ? 0
        : 1 + dist_rng_u64(&writer->rng) % 1000;
    struct change change =
        change_of(&stage->def, operand == 0 ? CHANGE_DELETE : CHANGE_SET,
            stage->id[at], COLUMNS, operand);
    change_all(writer, &change, 1);
    ASSERT(
        writer->value[at] != 0 || operand != 0 || change.err == ERR_NOT_FOUND);
    writer->value[at] = operand;
    (void)find(stage, stage->id[at], value);
    ASSERT(value[0] == operand && value[1] == operand);
}

static void *
write_all(void *context)
{
    struct writer *writer = context;
    unsigned n_batches = plain_part(SEALS) * SEAL_BATCHES;
    qsbr_register(&writer->stage->crowd.qsbr, &writer->reader);
    for (unsigned i = 0; i < n_batches; i++) {
        /* relaxed: only that none gets far ahead of the sealer */
        while (atomic_load_explicit(&writer->stage->n_seals,
                   memory_order_relaxed) < i / SEAL_BATCHES) {
            sched_yield();
        }
        count_some(writer);
        set_one(writer);
    }
    qsbr_unregister(&writer->stage->crowd.qsbr, &writer->reader);
    crowd_leave(&writer->stage->crowd);
    return NULL;
}

/* A steady id is in the engine, or was covered by the time it was missed. */
static void *
read_steady(void *context)
{
    struct stage *stage = context;
    struct qsbr_reader reader;
    struct dist_rng rng;
    dist_rng_init(&rng, 3, 3);
    qsbr_register(&stage->crowd.qsbr, &reader);
    while (crowd_is_writing(&stage->crowd)) {
        size_t at = dist_rng_u64(&rng) % (IDS / KINDS) * KINDS + STEADY_KIND;
        struct cell_key key = key_of(&stage->def, 0, stage->id[at]);
        uint64_t value[COLUMNS], row;
        uint8_t state;
        unsigned shard;
        engine_row(stage->crowd.engine, key.id, &shard, &row);
        unsigned cell = fake_cover_cell(&stage->fake, shard, row);
        qsbr_online(&stage->crowd.qsbr, &reader);
        engine_get(stage->crowd.engine, &key, 1, value, &state);
        qsbr_offline(&reader);
        if (value[0] == STEADY) {
            continue;
        }
        ASSERT(value[0] == 0);
        /* acquire: what was published before the record went */
        ASSERT(atomic_load_explicit(&stage->version[shard * CELLS + cell],
                   memory_order_acquire) != 0);
        (void)find(stage, key.id, value);
        ASSERT(value[0] == STEADY && value[1] == STEADY);
    }
    qsbr_unregister(&stage->crowd.qsbr, &reader);
    return NULL;
}

static void
meanwhile(void *context)
{
    (void)context;
    sched_yield();
}

static void
published(void *context)
{
    struct stage *stage = context;
    unsigned at = stage->shard * CELLS + stage->cell;
    sched_yield(); /* a record that has gone already is missed now */
    /* release: who misses a record afterwards sees it */
    atomic_store_explicit(&stage->version[at], stage->fake.cell[at]->version,
        memory_order_release);
    mutex_lock(&stage->crowd.journal.lock);
    stage->published[at] = stage->crowd.journal.n;
    mutex_unlock(&stage->crowd.journal.lock);
}

static void
seal_all(struct stage *stage)
{
    const struct fake_sealing sealing = {meanwhile, published, stage};
    for (unsigned i = 0; crowd_is_writing(&stage->crowd); i++) {
        stage->shard = i % SHARDS;
        stage->cell = i / SHARDS % CELLS;
        ck_assert_int_eq(
            fake_cover_seal(&stage->fake, stage->crowd.engine, stage->shard,
                stage->cell, stage->cell, NULL, &sealing),
            0);
        /* relaxed: see write_all */
        atomic_fetch_add_explicit(&stage->n_seals, 1, memory_order_relaxed);
    }
}

static void
stage_init(struct stage *stage, enum id_family family)
{
    memset(stage, 0, sizeof *stage);
    crowd_init(&stage->crowd, SHARDS, RECORDS_MAX, WRITERS);
    stage->def = plain_counter(SLOT, COLUMNS);
    id_family_make(family, 1, IDS, stage->id);
    fake_cover_init(&stage->fake, stage->crowd.engine, SLOT, SHARDS, CELLS,
        stage->id, IDS);
    engine_set_cover(stage->crowd.engine, &stage->fake.cover);
    ck_assert_int_eq(engine_define(stage->crowd.engine, &stage->def), 0);
    engine_set_sink(stage->crowd.engine, &stage->crowd.journal.sink);
    for (unsigned i = STEADY_KIND; i < IDS; i += KINDS) {
        ck_assert_int_eq(change_id(stage->crowd.engine, &stage->def,
                             CHANGE_SET, stage->id[i], COLUMNS, STEADY),
            0);
    }
    atomic_init(&stage->n_seals, 0);
}

/* What a record must be. */
static uint64_t
wanted(const struct writer *writer, size_t at)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < WRITERS; i++) {
        sum += at % KINDS == SHARED ? writer[i].count[at] << (LANE_BITS * i)
                                    : writer[i].value[at];
    }
    return at % KINDS == STEADY_KIND ? STEADY : sum;
}

/* What was told of an id since its cell was covered makes it whole. */
static void
check_redo(struct stage *stage, size_t at, bool is_here, const uint64_t *value)
{
    unsigned shard;
    uint64_t row;
    uint64_t told[COLUMNS] = {0};
    bool is_told = false;
    engine_row(stage->crowd.engine, stage->id[at], &shard, &row);
    unsigned cell = shard * CELLS + fake_cover_cell(&stage->fake, shard, row);
    for (size_t i = stage->published[cell]; i < stage->crowd.journal.n; i++) {
        const struct engine_write *write =
            &stage->crowd.journal.entry[i].write;
        if (write->id == stage->id[at]) {
            CHECK(is_told || write->n == COLUMNS ||
                stage->fake.cell[cell] == NULL);
            is_told = true;
            for (unsigned k = 0; k < write->n; k++) {
                told[write->serial[k] - 1] = write->value[k];
            }
        }
    }
    CHECK(is_told == is_here || stage->fake.cell[cell] == NULL);
    CHECK(!is_told || memcmp(told, value, sizeof told) == 0);
}

static void
check_end(struct stage *stage, const struct writer *writer)
{
    uint64_t n_here = 0;
    for (size_t i = 0; i < IDS; i++) {
        uint64_t value[COLUMNS];
        uint64_t want = wanted(writer, i);
        bool is_here = find(stage, stage->id[i], value);
        if (value[0] != want || value[1] != (i % KINDS == SHARED ? 0 : want)) {
            ck_abort_msg("id %llu: %llx, not %llx",
                (unsigned long long)stage->id[i], (unsigned long long)value[0],
                (unsigned long long)want);
        }
        n_here += is_here;
        check_redo(stage, i, is_here, value);
    }
    CHECK(sum_of(stage->crowd.engine, SLOT).records == n_here);
}

static void
run_stage(enum id_family family)
{
    struct stage *stage = malloc(sizeof *stage);
    struct writer *writer = calloc(WRITERS, sizeof *writer);
    pthread_t reader;
    ck_assert(stage != NULL && writer != NULL);
    stage_init(stage, family);
    for (unsigned i = 0; i < WRITERS; i++) {
        writer[i].stage = stage;
        writer[i].number = i;
        dist_rng_init(&writer[i].rng, 5 + i, family);
        ck_assert_int_eq(
            pthread_create(&writer[i].thread, NULL, write_all, &writer[i]), 0);
    }
    crowd_start_tender(&stage->crowd);
    ck_assert_int_eq(pthread_create(&reader, NULL, read_steady, stage), 0);
    seal_all(stage);
    for (unsigned i = 0; i < WRITERS; i++) {
        ck_assert_int_eq(pthread_join(writer[i].thread, NULL), 0);
        ck_assert_uint_gt(writer[i].n_cold, 0);
    }
    crowd_join_tender(&stage->crowd);
    ck_assert_int_eq(pthread_join(reader, NULL), 0);
    ck_assert_uint_ge(stage->fake.n, SHARDS * CELLS);
    check_end(stage, writer);
    crowd_fini(&stage->crowd);
    fake_cover_fini(&stage->fake);
    free(writer);
    free(stage);
}

START_TEST(test_evictions_while_changing)
{
    run_stage((enum id_family)_i);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_evictions_while_changing};
    return run_tests_often(
        "cover_threads", tests, COUNT_OF(tests), ID_FAMILY_COUNT);
}
