/* SPDX-License-Identifier: BSD-3-Clause */
/* What is done first with cold ranges, on lists that are made up, and what
 * comes of it in the long run. */
#include "tier/seal_tidy.h"

#include "unit/check_help.h"

#include <stdlib.h>
#include <string.h>

enum {
    BLOCK_RECORDS = 1400,
    RANGES_MAX = 20000,
    COPY = 1 << 20,
    HEAT = 1 << 20,
    LEAST = 4096
};

struct list {
    struct seal_tidy_range range[RANGES_MAX];
    size_t n;
    uint64_t next_file;
};

static struct list list;
static struct seal_tidy_bounds bounds;
static struct seal_tidy_room room;

static void
begin(void)
{
    memset(&list, 0, sizeof list);
    bounds = seal_tidy_usual();
    room = (struct seal_tidy_room){COPY, HEAT};
}

/* A range of its own file behind the others. */
static struct seal_tidy_range *
add(uint64_t blocks)
{
    ck_assert_uint_lt(list.n, RANGES_MAX);
    struct seal_tidy_range *it = &list.range[list.n];
    *it = (struct seal_tidy_range){.first_id = list.n * 1000,
        .last_id = list.n * 1000 + 999,
        .blocks = blocks,
        .records = blocks * BLOCK_RECORDS,
        .file = ++list.next_file,
        .file_blocks = blocks,
        .file_live = blocks,
        .is_quiet = true};
    list.n++;
    return it;
}

static void
add_many(size_t n, uint64_t blocks)
{
    for (size_t i = 0; i < n; i++) {
        (void)add(blocks);
    }
}

static void
expect(enum seal_tidy_kind kind, size_t first, size_t last)
{
    struct seal_tidy_choice it =
        seal_tidy_choose(&bounds, &room, list.range, list.n);
    ck_assert_int_eq(it.kind, kind);
    if (kind != SEAL_TIDY_NOTHING) {
        ck_assert_uint_eq(it.first, first);
        ck_assert_uint_eq(it.last, last);
    }
}

/* ---- joins ---- */

START_TEST(test_join)
{
    begin();
    expect(SEAL_TIDY_NOTHING, 0, 0);
    add_many(7, 40);
    expect(SEAL_TIDY_NOTHING, 0, 0);
    add_many(1, 40);
    expect(SEAL_TIDY_JOIN, 0, 7);
    list.n = 0;
    (void)add(5000); /* large enough */
    add_many(10, 40);
    (void)add(5000);
    expect(SEAL_TIDY_JOIN, 1, 10);
    list.n = 0;
    (void)add(3000); /* not with those that are too small for it */
    add_many(7, 40);
    expect(SEAL_TIDY_NOTHING, 0, 0);
    (void)add(40);
    expect(SEAL_TIDY_JOIN, 1, 8);
    list.n = 0;
    add_many(8, 5000);
    expect(SEAL_TIDY_NOTHING, 0, 0);
    list.n = 0; /* so that it does not become too large */
    add_many(20, 4000);
    expect(SEAL_TIDY_JOIN, 0, bounds.join_blocks / 4000 - 1);
}
END_TEST

/* Many small ones among larger ones do not stay. */
START_TEST(test_neighbours)
{
    begin();
    for (size_t i = 0; i < 63; i++) {
        (void)add(i % 4 == 0 ? 20 : 1);
    }
    bounds.fan_in = 8;
    list.range[62].blocks = 1;
    expect(SEAL_TIDY_JOIN, 0, 62); /* together they reach the bound of 64 */
    begin();
    add_many(63, 0);
    expect(SEAL_TIDY_NOTHING, 0, 0);
    add_many(1, 0);
    expect(SEAL_TIDY_JOIN, 0, 63);
}
END_TEST

/* Where many records are in memory in between, or on top, nothing is joined. */
START_TEST(test_join_and_memory)
{
    begin();
    add_many(8, 40);
    list.range[4].n_gap = LEAST;
    expect(SEAL_TIDY_JOIN, 0, 7);
    list.range[4].n_gap = LEAST + 1;
    expect(SEAL_TIDY_NOTHING, 0, 0);
    list.range[4].n_gap = 0;
    list.range[0].n_gap = UINT64_MAX; /* before all of them */
    expect(SEAL_TIDY_JOIN, 0, 7);
    list.range[3].is_quiet = false;
    list.range[3].n_hot = 40 * BLOCK_RECORDS / 4;
    expect(SEAL_TIDY_JOIN, 0, 7);
    list.range[3].n_hot++;
    expect(SEAL_TIDY_NOTHING, 0, 0);
    list.range[3].n_hot = 0;
    room.copy_records = 100;
    list.range[1].n_hot = list.range[7].n_hot = 50;
    expect(SEAL_TIDY_JOIN, 0, 7);
    list.range[7].n_hot++;
    expect(SEAL_TIDY_NOTHING, 0, 0);
    list.range[7].n_hot = 0;
    list.range[6].n_gap = 51;
    expect(SEAL_TIDY_NOTHING, 0, 0);
}
END_TEST

static void
join(const struct seal_tidy_choice *it)
{
    struct seal_tidy_range *into = &list.range[it->first];
    for (size_t i = it->first + 1; i <= it->last; i++) {
        into->blocks += list.range[i].blocks;
    }
    into->file_blocks = into->file_live = into->blocks;
    into->records = into->blocks * BLOCK_RECORDS;
    memmove(&list.range[it->first + 1], &list.range[it->last + 1],
        (list.n - it->last - 1) * sizeof list.range[0]);
    list.n -= it->last - it->first;
}

/* So many ranges are sealed one behind the other and joined: few are left, and
 * little was written for that. */
static void
seal_many(size_t n, uint64_t blocks_max, size_t left_max)
{
    uint64_t random = n, sealed = 0, joined = 0;
    begin();
    for (size_t i = 0; i < n; i++) {
        struct seal_tidy_choice it;
        sealed += add(1 + random_below(&random, blocks_max))->blocks;
        while (
            (it = seal_tidy_choose(&bounds, &room, list.range, list.n)).kind ==
            SEAL_TIDY_JOIN) {
            uint64_t largest = 0, sum = 0;
            for (size_t k = it.first; k <= it.last; k++) {
                uint64_t blocks = list.range[k].blocks;
                largest = blocks > largest ? blocks : largest;
                sum += blocks;
            }
            join(&it);
            joined += sum;
            ck_assert_uint_le(sum, bounds.join_blocks);
        }
        ck_assert_int_eq(it.kind, SEAL_TIDY_NOTHING);
    }
    ck_assert_uint_le(list.n, left_max);
    /* once for each bound: 8, 64, 512, 4096 */
    ck_assert_uint_le(joined, 4 * sealed);
}

START_TEST(test_growth)
{
    /* 10^9 records of 2.9 bytes are 7 * 10^5 blocks */
    seal_many(15000, 94, 250);  /* of 65,536 records */
    seal_many(1400, 1000, 250); /* with 200 MB of hot memory */
    seal_many(250, 5600, 250);  /* of 4 million records */
    seal_many(20000, 1, 60);
}
END_TEST

/* ---- overlays ---- */

START_TEST(test_merge)
{
    begin();
    add_many(3, 100);
    struct seal_tidy_range *it = &list.range[1];
    it->n_hot = it->records / 4;
    expect(SEAL_TIDY_MERGE, 1, 1);
    it->n_hot--;
    expect(SEAL_TIDY_NOTHING, 0, 0);
    it->n_hot++;
    it->is_quiet = false;
    expect(SEAL_TIDY_NOTHING, 0, 0);
    begin(); /* a small one waits until there is more */
    it = add(1);
    it->records = 3 * LEAST;
    it->n_hot = LEAST - 1;
    expect(SEAL_TIDY_NOTHING, 0, 0);
    it->n_hot++;
    expect(SEAL_TIDY_MERGE, 0, 0);
}
END_TEST

START_TEST(test_heat)
{
    begin();
    add_many(3, 10);
    struct seal_tidy_range *it = &list.range[2];
    it->is_quiet = false;
    it->n_hot = it->records / 2;
    expect(SEAL_TIDY_NOTHING, 0, 0);
    it->n_hot++;
    expect(SEAL_TIDY_HEAT, 2, 2);
    room.heat_records = it->records;
    expect(SEAL_TIDY_HEAT, 2, 2);
    room.heat_records--; /* no room: once it is quiet it is merged */
    expect(SEAL_TIDY_NOTHING, 0, 0);
    it->is_quiet = true;
    expect(SEAL_TIDY_MERGE, 2, 2);
    /* what is hot soon is not joined, nor moved */
    it->is_quiet = false;
    it->file_blocks = 100;
    expect(SEAL_TIDY_NOTHING, 0, 0);
    add_many(6, 10);
    expect(SEAL_TIDY_NOTHING, 0, 0);
    it->n_hot = 0;
    expect(SEAL_TIDY_SAVE, 2, 2);
}
END_TEST

START_TEST(test_save)
{
    begin();
    add_many(3, 100);
    list.range[0].file = list.range[2].file;
    for (size_t i = 0; i < 3; i += 2) {
        list.range[i].file_blocks = 400;
        list.range[i].file_live = 200;
    }
    expect(SEAL_TIDY_NOTHING, 0, 0);
    list.range[0].file_live = list.range[2].file_live = 199;
    expect(SEAL_TIDY_SAVE, 0, 0);
    room.copy_records = 10;
    list.range[0].n_hot = 11;
    expect(SEAL_TIDY_SAVE, 2, 2);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_join, test_neighbours,
        test_join_and_memory, test_growth, test_merge, test_heat, test_save};
    return run_tests("seal tidy", tests, COUNT_OF(tests));
}
