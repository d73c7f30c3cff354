/* SPDX-License-Identifier: BSD-3-Clause */
/* engine/engine_copy while other threads change everything. Two writers change
 * the same ids, one thread tends tables, which are so small that they split
 * and merge all the time, and the main thread copies, round after round. In
 * the end the copies, with all that the sink was told behind them, must be
 * what is there. In some rounds many calls of the sink have one position, as
 * the batches of a log; then what has the position of the copy is replayed
 * too. Threads use ASSERT: ck_assert belongs to the main thread. */
#include "base/assert.h"
#include "base/sanitizer.h"
#include "lib/id_family.h"
#include "unit/crowd_help.h"

#include <unistd.h>

enum {
    SLOWNESS = SANITIZER_THREAD ? 6 : 1,
    SLOT = 30,
    SHARDS = 2,
    IDS = 1200,
    RECORDS_MAX = 64,
    WRITERS = 2,
    BATCHES = 3000 / SLOWNESS,
    BATCH_MAX = 24,
    GROUP = 9
};

struct stage {
    struct crowd crowd;
    struct cell_model model; /* read only: it makes random changes */
    _Atomic bool is_copied;  /* something was, beside the writers */
};

struct writer {
    struct stage *stage;
    pthread_t thread;
    struct dist_rng rng;
    struct qsbr_reader reader;
};

static void *
write_all(void *context)
{
    struct writer *writer = context;
    struct stage *stage = writer->stage;
    struct change change[BATCH_MAX];
    qsbr_register(&stage->crowd.qsbr, &writer->reader);
    /* relaxed: a wish, nothing hangs on it */
    for (unsigned i = 0; i < BATCHES ||
         !atomic_load_explicit(&stage->is_copied, memory_order_relaxed);
         i++) {
        if (i >= BATCHES) {
            (void)usleep(1000);
        }
        /* fill, empty, and widen */
        const struct cell_mood mood = {.value_bits = 1 + i % 40,
            .resets_of_16 = i / 50 % 2 == 0 ? 1 : 12,
            .climbs_of_16 = 1};
        unsigned n = 1 + (unsigned)(dist_rng_u64(&writer->rng) % BATCH_MAX);
        for (unsigned k = 0; k < n; k++) {
            size_t at = dist_rng_u64(&writer->rng) % IDS;
            cell_model_random_change(
                &stage->model, &writer->rng, &mood, at, &change[k]);
        }
        qsbr_online(&stage->crowd.qsbr, &writer->reader);
        uint64_t position = engine_change(stage->crowd.engine, change, n);
        qsbr_offline(&writer->reader);
        for (unsigned k = 0; k < n; k++) {
            ASSERT(change[k].err != 0 || position > 0);
            ASSERT(change[k].err != ERR_NO_MEMORY);
        }
    }
    qsbr_unregister(&stage->crowd.qsbr, &writer->reader);
    crowd_leave(&stage->crowd);
    return NULL;
}

static void
stage_init(struct stage *stage, enum id_family family, uint64_t group)
{
    struct dist_rng rng;
    memset(stage, 0, sizeof(*stage));
    dist_rng_init(&rng, 4, family);
    crowd_init(&stage->crowd, SHARDS, RECORDS_MAX, WRITERS);
    stage->crowd.journal.group = group;
    stage->crowd.journal.position = group > 0;
    cell_model_init(&stage->model, SLOT, family, 1, IDS);
    for (unsigned i = 0; i < 3; i++) {
        (void)cell_model_add_column(&stage->model, &rng);
    }
    ck_assert_int_eq(engine_define(stage->crowd.engine, &stage->model.def), 0);
    engine_set_sink(stage->crowd.engine, &stage->crowd.journal.sink);
}

static void
check_end(struct stage *stage, struct replica *replica)
{
    struct qsbr_reader reader;
    replica_replay(replica, &stage->crowd.journal);
    qsbr_register(&stage->crowd.qsbr, &reader);
    qsbr_online(&stage->crowd.qsbr, &reader);
    replica_check(replica, stage->crowd.engine);
    qsbr_offline(&reader);
    qsbr_unregister(&stage->crowd.qsbr, &reader);
}

static void
run_stage(enum id_family family, uint64_t group)
{
    struct stage stage;
    struct replica replica;
    struct engine_rows rows = {0};
    struct writer writer[WRITERS];
    size_t count[3];
    size_t n_done = 0;
    stage_init(&stage, family, group);
    replica_init(
        &replica, stage.crowd.engine, &stage.model.def, stage.model.id, IDS);
    for (unsigned i = 0; i < WRITERS; i++) {
        writer[i].stage = &stage;
        dist_rng_init(&writer[i].rng, 5 + i, family);
        ck_assert_int_eq(
            pthread_create(&writer[i].thread, NULL, write_all, &writer[i]), 0);
    }
    crowd_start_tender(&stage.crowd);
    /* The last pass is not the end: what came after it must be in the journal.
     */
    while (crowd_is_writing(&stage.crowd)) {
        replica_pass(&replica, stage.crowd.engine, SHARDS, &rows, count);
        n_done += count[ENGINE_COPY_DONE];
        /* relaxed: as in write_all */
        atomic_store_explicit(
            &stage.is_copied, n_done > 0, memory_order_relaxed);
    }
    for (unsigned i = 0; i < WRITERS; i++) {
        ck_assert_int_eq(pthread_join(writer[i].thread, NULL), 0);
    }
    crowd_join_tender(&stage.crowd);
    ck_assert_uint_gt(n_done, 0);
    check_end(&stage, &replica);
    engine_rows_fini(&rows);
    replica_fini(&replica);
    cell_model_fini(&stage.model);
    crowd_fini(&stage.crowd);
}

START_TEST(test_copies_while_changing)
{
    for (unsigned family = 0; family < ID_FAMILY_COUNT; family++) {
        run_stage(family, 0);
    }
}
END_TEST

START_TEST(test_positions_of_batches)
{
    for (unsigned family = 0; family < ID_FAMILY_COUNT; family++) {
        run_stage(family, GROUP);
    }
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        test_copies_while_changing, test_positions_of_batches};
    return run_tests("engine_copy_threads", tests, COUNT_OF(tests));
}
