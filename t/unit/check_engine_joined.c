/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables that are joined while a range is copied or evicted, one that has been
 * looked at already with one that has not: no record is copied twice, and none
 * that has changed since goes out of the engine. The joining happens where the
 * core is given away, which is between two looks and without a lock. */
#include "engine/cover.h"

#include "base/give_way.h"
#include "engine/engine_extents.h"
#include "unit/engine_help.h"

enum { IDS = 1024, TABLE = 64, LEFT = 16 /* one in so many stays */ };

/* What covers all rows, once it is published. */
struct all {
    struct engine_cover cover; /* first */
    uint64_t version;
};

struct joining {
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

static struct joining *joining; /* NULL: nothing happens */

/* In place of the one in base. */
void
give_way(void)
{
    struct joining *it = joining;
    joining = NULL;
    if (it != NULL && ++it->n_calls == it->at) {
        join(it);
    }
    joining = it;
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

struct world {
    struct joining joining;
    struct engine_rows rows;
    struct all all;
};

static void
begin(struct world *it, unsigned at)
{
    *it = (struct world){.joining = {.engine = small_engine(1, TABLE),
                             .def = plain_counter(0, 1),
                             .at = at},
        .all = {.cover = {.version_fn = version_of, .any_fn = any_of}}};
    engine_set_cover(it->joining.engine, &it->all.cover);
    fill(it->joining.engine, &it->joining.def);
}

static void
end(struct world *it)
{
    engine_rows_fini(&it->rows);
    finish_engine(&it->joining.engine);
}

/* Tells where they are joined: at the copy or at the eviction. */
static void
copy_and_evict(struct world *it, bool at_copy)
{
    struct engine *engine = it->joining.engine;
    joining = at_copy ? &it->joining : NULL;
    ck_assert_int_eq(
        engine_copy_range(engine, 0, 0, 0, IDS - 1, &it->rows), 0);
    joining = NULL;
    /* so that each table is looked at once more */
    for (uint64_t id = 0; !at_copy && id < IDS; id += LEFT) {
        CHECK(change_id(engine, &it->joining.def, CHANGE_INCR, id, 1, 1) == 0);
    }
    joining = at_copy ? NULL : &it->joining;
    ck_assert_int_eq(
        engine_evict(engine, 0, 0, &it->rows, publish, &it->all), 0);
    joining = NULL;
}

/* False where there is no such call any more. */
static bool
join_at_copy(unsigned at)
{
    struct world it;
    begin(&it, at);
    copy_and_evict(&it, true);
    const struct engine_rows *rows = &it.rows;
    bool has_joined = it.joining.n_calls >= at;
    for (uint32_t i = 1; i < rows->n; i++) {
        CHECK(rows->row[i - 1] < rows->row[i]);
    }
    for (uint64_t id = 0; has_joined && id < IDS; id += LEFT) {
        uint64_t row, copied = 0;
        unsigned shard;
        engine_row(it.joining.engine, id, &shard, &row);
        for (uint32_t i = 0; i < rows->n; i++) {
            copied = rows->row[i] == row ? rows->code[0][i] : copied;
        }
        /* what was copied late enough is not there any more */
        CHECK(copied == 5 || copied == 6);
        expect_value(
            it.joining.engine, &it.joining.def, 0, id, copied == 5 ? 6 : 0);
    }
    end(&it);
    return has_joined;
}

static bool
join_at_eviction(unsigned at)
{
    struct world it;
    begin(&it, at);
    copy_and_evict(&it, false);
    bool has_joined = it.joining.n_calls >= at;
    for (uint64_t id = 0; id < IDS; id += LEFT) {
        expect_value(
            it.joining.engine, &it.joining.def, 0, id, has_joined ? 7 : 6);
    }
    end(&it);
    return has_joined;
}

START_TEST(test_joined_at_copy)
{
    unsigned at = 1;
    while (join_at_copy(at)) {
        at++;
    }
    ck_assert_uint_gt(at, IDS / TABLE);
}
END_TEST

/* What has been worked out for a table is of no use when it has been joined to
 * one that is looked at later. */
START_TEST(test_joined_at_eviction)
{
    unsigned at = 1;
    while (join_at_eviction(at)) {
        at++;
    }
    ck_assert_uint_gt(at, IDS / TABLE);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        test_joined_at_copy, test_joined_at_eviction};
    return run_tests("engine joined", tests, COUNT_OF(tests));
}
