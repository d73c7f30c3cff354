/* SPDX-License-Identifier: BSD-3-Clause */
/* Records of the engine in front of those of segments, beside an array that
 * says of each id what it has. */
#include "tier/seal_merge.h"

#include "base/err.h"
#include "unit/segment_map_help.h"
#include "unit/survives.h"

#include <errno.h>

enum {
    SHARDS = 4,
    IDS = 400,
    HOT = 100, /* serials: of a column that only the engine has, */
    BOTH,      /* that both have, */
    COLD,      /* that only segments have, */
    NEW,       /* that neither has, */
    GONE       /* and of one that is asked for no more */
};

/* What there is of one id. */
struct source {
    bool is_hot; /* in the engine; with both codes 0: a tombstone */
    uint64_t hot, hot_both;
    bool is_cold;
    uint64_t cold, cold_both;
};

struct world {
    struct qsbr qsbr;
    struct engine *engine;
    struct fake_disk *fake;
    struct source source[IDS];
    uint64_t first_id;
    uint64_t random;
    struct engine_rows rows[SHARDS];
    uint64_t row[SHARDS][IDS];
    uint64_t code[SHARDS][3][IDS];
    struct segment_map_list *list;
};

static uint64_t
some_code(struct world *world)
{
    return random_below(&world->random, 3) == 0
        ? 0
        : random_below(&world->random, UINT64_MAX);
}

/* ---- what is merged ---- */

/* The rows of each shard, ascending, as engine_copy_range gives them. */
static void
make_rows(struct world *world, uint64_t one_in)
{
    for (uint64_t i = 0; i < IDS; i++) {
        struct source *source = &world->source[i];
        unsigned shard;
        uint64_t row;
        if (random_below(&world->random, one_in) != 0) {
            continue;
        }
        source->is_hot = true;
        source->hot = some_code(world);
        source->hot_both = some_code(world);
        engine_row(world->engine, world->first_id + i, &shard, &row);
        struct engine_rows *rows = &world->rows[shard];
        size_t n = rows->n++;
        ck_assert(n == 0 || world->row[shard][n - 1] < row);
        world->row[shard][n] = row;
        world->code[shard][0][n] = source->hot_both;
        world->code[shard][1][n] = 9; /* of no use any more */
        world->code[shard][2][n] = source->hot;
    }
    for (unsigned shard = 0; shard < SHARDS; shard++) {
        struct engine_rows *rows = &world->rows[shard];
        rows->n_columns = 3;
        rows->serial[0] = BOTH;
        rows->serial[1] = GONE;
        rows->serial[2] = HOT;
        rows->row = world->row[shard];
        for (unsigned c = 0; c < 3; c++) {
            rows->code[c] = world->code[shard][c];
        }
    }
}

/* A segment with records of all ids; which of them count says the list. */
static struct segment_map_file *
make_file(struct world *world, uint64_t number, uint64_t one_in)
{
    const struct segment_write_config config = write_to(world->fake);
    struct segment_head head = {.epoch = SEGMENT_EPOCH,
        .number = number,
        .counter_serial = 9,
        .n_columns = 3,
        .column = {{GONE, 0, 0}, {COLD, 1, 0}, {BOTH, 2, 0}}};
    struct segment_writer *writer;
    ck_assert_int_eq(segment_write_begin(&config, &head, &writer), 0);
    for (uint64_t i = 0; i < IDS; i++) {
        struct source *source = &world->source[i];
        /* the second file has the other half of the ids */
        bool is_ours = (i < IDS / 2) == (number == 1);
        uint64_t code[3] = {77, i + 1, number};
        if (random_below(&world->random, one_in) != 0) {
            continue;
        }
        if (is_ours) {
            source->is_cold = true;
            source->cold = code[1] = some_code(world);
            source->cold_both = code[2] = some_code(world);
        }
        ck_assert_int_eq(
            segment_write_add(writer, world->first_id + i, code), 0);
    }
    ck_assert_int_eq(segment_write_end(&writer, &head), 0);
    return segment_map__file_create(
        open_segment(world->fake, number), NULL, NULL);
}

static void
begin(struct world *world, uint64_t first_id, uint64_t seed)
{
    *world = (struct world){.first_id = first_id, .random = seed};
    ground_init(SHARDS, seed, &world->qsbr, &world->engine, &world->fake);
    make_rows(world, 1 + seed % 7);
    world->list =
        calloc(1, sizeof *world->list + 2 * sizeof(struct segment_map_entry));
    ck_assert_ptr_nonnull(world->list);
    for (uint64_t k = 0; k < 2; k++) {
        struct segment_map_entry *entry = &world->list->entry[k];
        entry->first_id = first_id + k * (IDS / 2);
        entry->last_id = entry->first_id + IDS / 2 - 1;
        entry->file = make_file(world, 1 + k, 1 + seed % 5);
    }
    world->list->n = 2;
}

static void
end(struct world *world)
{
    segment_map_list_destroy(world->list);
    ground_fini(&world->qsbr, &world->engine, &world->fake);
}

/* ---- what comes out ---- */

static const struct segment_head wanted_head = {.n_columns = 4,
    .column = {{HOT, 0, 0}, {BOTH, 1, 0}, {COLD, 2, 0}, {NEW, 3, 0}}};

static struct seal_merge
merge_of(const struct world *world)
{
    return (struct seal_merge){.engine = world->engine,
        .rows = world->rows,
        .list = world->list,
        .head = &wanted_head};
}

/* What id number i should come out with; false where it should not. */
static bool
want(const struct world *world, uint64_t i, uint64_t code[4])
{
    const struct source *source = &world->source[i];
    memset(code, 0, 4 * sizeof *code);
    if (source->is_hot) {
        code[0] = source->hot;
        code[1] = source->hot_both;
    } else if (source->is_cold && world->list != NULL) {
        code[1] = source->cold_both;
        code[2] = source->cold;
    }
    return (code[0] | code[1] | code[2]) != 0;
}

/* Rows that the engine has. */
static uint64_t
count_rows(const struct world *world)
{
    uint64_t n = 0;
    for (unsigned shard = 0; shard < SHARDS; shard++) {
        n += world->rows[shard].n;
    }
    return n;
}

static void
expect_all(struct world *world)
{
    struct seal_merge merge = merge_of(world);
    uint64_t code[SCHEMA_COLUMNS_MAX], id, wanted[4], n_hot = 0;
    bool is_end, same = true;
    ck_assert_int_eq(seal_merge_init(&merge, SHARDS), 0);
    for (uint64_t i = 0; i < IDS; i++) {
        if (!want(world, i, wanted)) {
            continue;
        }
        n_hot += world->source[i].is_hot;
        ck_assert_int_eq(seal_merge_next(&merge, &id, code, &is_end), 0);
        same = same && !is_end && id == world->first_id + i &&
            memcmp(code, wanted, sizeof wanted) == 0;
    }
    ck_assert(same);
    ck_assert_int_eq(seal_merge_next(&merge, &id, code, &is_end), 0);
    ck_assert(is_end);
    ck_assert_uint_eq(merge.n_hot, n_hot);
    seal_merge__check(&merge, count_rows(world));
    seal_merge_fini(&merge);
}

static const uint64_t places[] = {0, UINT64_C(1) << 33, UINT64_MAX - IDS + 1};

START_TEST(test_merge)
{
    for (uint64_t seed = 0; seed < 105; seed++) {
        struct world world;
        begin(&world, places[seed % COUNT_OF(places)], seed);
        expect_all(&world);
        segment_map_list_destroy(world.list);
        world.list = NULL;
        expect_all(&world);
        end(&world);
    }
}
END_TEST

/* Only segments, and nothing at all. */
START_TEST(test_no_rows)
{
    struct world world;
    begin(&world, 0, 1);
    memset(world.rows, 0, sizeof world.rows);
    for (uint64_t i = 0; i < IDS; i++) {
        world.source[i].is_hot = false;
    }
    expect_all(&world);
    world.list->n = 1;
    for (uint64_t i = IDS / 2; i < IDS; i++) {
        world.source[i].is_cold = false;
    }
    expect_all(&world);
    world.list->n = 2;
    segment_map_list_destroy(world.list);
    world.list = NULL;
    expect_all(&world);
    end(&world);
}
END_TEST

/* The n-th read fails: it says so, and what came before was right. */
START_TEST(test_reads_fail)
{
    struct world world;
    begin(&world, 0, 5);
    for (unsigned n = 1; n <= 2; n++) {
        struct seal_merge merge = merge_of(&world);
        uint64_t code[SCHEMA_COLUMNS_MAX], id, wanted[4], next = 0;
        bool is_end = false;
        int err = seal_merge_init(&merge, SHARDS);
        fake_disk_fail(world.fake, 1 << FAKE_READ, n, EIO, false);
        while (err == 0 && !is_end) {
            err = seal_merge_next(&merge, &id, code, &is_end);
            for (; err == 0 && !is_end && next < id; next++) {
                ck_assert(!want(&world, next, wanted));
            }
            if (err == 0 && !is_end) {
                ck_assert(want(&world, next++, wanted));
                ck_assert_mem_eq(code, wanted, sizeof wanted);
            }
        }
        ck_assert_int_eq(err, ERR_DISK);
        seal_merge_fini(&merge);
        (void)fake_disk_heal(world.fake);
        expect_all(&world);
    }
    end(&world);
}
END_TEST

/* ---- what the end must agree with ---- */

struct trial {
    struct seal_merge merge;
    uint64_t n_rows;
};

static void
check_end(void *context)
{
    const struct trial *trial = context;
    seal_merge__check(&trial->merge, trial->n_rows);
}

/* One more or one less of each number, and an end that is none. */
START_TEST(test_count)
{
    struct world world;
    begin(&world, 0, 3);
    struct seal_merge merge = merge_of(&world);
    uint64_t code[SCHEMA_COLUMNS_MAX], id, n_rows = count_rows(&world);
    bool is_end = false;
    ck_assert_int_eq(seal_merge_init(&merge, SHARDS), 0);
    struct trial trial = {merge, n_rows};
    ck_assert(!survives(check_end, &trial)); /* it has not begun */
    while (!is_end) {
        ck_assert_int_eq(seal_merge_next(&merge, &id, code, &is_end), 0);
    }
    ck_assert(merge.n_cold > 0 && merge.n_hidden > 0 && merge.n_empty > 0);
    trial.merge = merge;
    ck_assert(survives(check_end, &trial));
    uint64_t *const number[] = {&trial.n_rows, &trial.merge.n_out,
        &trial.merge.n_cold, &trial.merge.n_hidden, &trial.merge.n_empty};
    for (size_t i = 0; i < COUNT_OF(number); i++) {
        *number[i] += 1;
        ck_assert_msg(!survives(check_end, &trial), "%zu", i);
        *number[i] -= 2;
        ck_assert_msg(!survives(check_end, &trial), "%zu", i);
        *number[i] += 1;
    }
    trial.merge.at_entry--;
    ck_assert(!survives(check_end, &trial));
    seal_merge_fini(&merge);
    end(&world);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        test_merge, test_no_rows, test_reads_fail, test_count};
    return run_tests("seal merge", tests, COUNT_OF(tests));
}
