/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables that are joined while a range is copied, one copied already with one
 * that is not: no record is copied twice, and none that has changed since goes
 * out of the engine. The joining happens where the copy asks for memory, which
 * it does between two tables and without a lock. */
#include "engine/cover.h"

#include "engine/engine_extents.h"
#include "unit/engine_help.h"

#include <stdlib.h>

enum { IDS = 1024, TABLE = 64, LEFT = 16 /* one in so many stays */ };

/* What covers all rows, once it is published. */
struct all {
    struct engine_cover cover; /* first */
    uint64_t version;
};

struct joining {
    struct alloc alloc;
    struct engine *engine;
    struct schema_counter def;
    unsigned n_calls; /* so far */
    unsigned at;      /* the call at which tables are joined */
};

static unsigned
count_tables(struct engine *engine)
{
    struct engine_extent extent;
    unsigned n = 0;
    for (uint64_t row = 0; engine_extent(engine, 0, 0, row, &extent);
         row = extent.last_row + 1) {
        n++;
    }
    return n;
}

static void
join(struct joining *it)
{
    unsigned before = count_tables(it->engine);
    for (uint64_t id = 0; id < IDS; id++) {
        if (id % LEFT != 0) {
            CHECK(
                change_id(it->engine, &it->def, CHANGE_DELETE, id, 1, 0) == 0);
        }
    }
    for (uint64_t now_ms = 0; now_ms < 1000; now_ms++) {
        (void)engine_tend(it->engine, now_ms);
    }
    CHECK(count_tables(it->engine) < before);
    for (uint64_t id = 0; id < IDS; id += LEFT) {
        CHECK(change_id(it->engine, &it->def, CHANGE_INCR, id, 1, 1) == 0);
    }
}

static void *
zeroed(void *context, size_t bytes)
{
    struct joining *it = context;
    if (++it->n_calls == it->at) {
        join(it);
    }
    return calloc(1, bytes);
}

static void
give(void *context, void *block, size_t bytes)
{
    (void)context;
    (void)bytes;
    free(block);
}

static uint64_t
version_of(const struct engine_cover *cover, unsigned slot, unsigned shard,
    uint64_t row)
{
    (void)slot;
    (void)shard;
    (void)row;
    return ((const struct all *)cover)->version;
}

static bool
any_of(const struct engine_cover *cover, unsigned slot, unsigned shard,
    uint64_t first_row, uint64_t last_row)
{
    (void)first_row;
    (void)last_row;
    return version_of(cover, slot, shard, 0) != 0;
}

static void
publish(void *context)
{
    struct all *all = context;
    all->version = 1;
}

static void
fill(struct engine *engine, const struct schema_counter *def)
{
    CHECK(engine_define(engine, def) == 0);
    for (uint64_t id = 0; id < IDS; id++) {
        CHECK(change_id(engine, def, CHANGE_SET, id, 1, 5) == 0);
    }
}

/* False where there is no such call any more. */
static bool
join_at(unsigned at)
{
    struct joining it = {.engine = small_engine(1, TABLE),
        .def = plain_counter(0, 1),
        .at = at};
    it.alloc = (struct alloc){zeroed, give, &it};
    struct engine_rows rows = {.alloc = &it.alloc};
    struct all all = {.cover = {version_of, any_of}};
    engine_set_cover(it.engine, &all.cover);
    fill(it.engine, &it.def);
    ck_assert_int_eq(engine_copy_range(it.engine, 0, 0, 0, IDS - 1, &rows), 0);
    bool has_joined = it.n_calls >= at;
    for (uint32_t i = 1; i < rows.n; i++) {
        CHECK(rows.row[i - 1] < rows.row[i]);
    }
    ck_assert_int_eq(engine_evict(it.engine, 0, 0, &rows, publish, &all), 0);
    for (uint64_t id = 0; has_joined && id < IDS; id += LEFT) {
        uint64_t row, copied = 0;
        unsigned shard;
        engine_row(it.engine, id, &shard, &row);
        for (uint32_t i = 0; i < rows.n; i++) {
            copied = rows.row[i] == row ? rows.code[0][i] : copied;
        }
        /* what was copied late enough is not there any more */
        CHECK(copied == 5 || copied == 6);
        expect_value(it.engine, &it.def, 0, id, copied == 5 ? 6 : 0);
    }
    engine_rows_fini(&rows);
    finish_engine(&it.engine);
    return has_joined;
}

START_TEST(test_joined)
{
    unsigned at = 1;
    while (join_at(at)) {
        at++;
    }
    ck_assert_uint_gt(at, 3);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_joined};
    return run_tests("engine joined", tests, COUNT_OF(tests));
}
