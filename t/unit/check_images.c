/* SPDX-License-Identifier: BSD-3-Clause */
/* wal/images: random changes against a plain array that says of each row which
 * block it is in; each change is tried with every allocation failing first. */
#include "wal/images.h"

#include "base/err.h"
#include "lib/fault_alloc.h"
#include "unit/check_help.h"

enum {
    ROWS = 120,
    COUNTERS = 3,
    SHARDS = 3,
    FILES = 4,
    STEPS = 4000,
    MANY = 100000
};

static const uint8_t counters[COUNTERS] = {0, 7, 255};
static const uint16_t shards[SHARDS] = {0, 1, 4095};

struct model {
    struct fault_alloc fault;
    struct images images;
    uint64_t random;
    /* Which block (from 1 on) has the row; 0: none. */
    unsigned block[COUNTERS][SHARDS][ROWS];
    unsigned n_blocks;
};

/* All of a block follows from its number. */
static struct images_entry
entry_of(unsigned block, unsigned c, unsigned s)
{
    return (struct images_entry){.seq = 1000 + block,
        .file = block % FILES,
        .offset = 64 * block,
        .len = 100 + block % 77,
        .n = block,
        .counter = counters[c],
        .shard = shards[s]};
}

/* Not by ck_assert, of which a million take seconds. */
static bool
is_right(
    const struct images_entry *entry, unsigned block, unsigned c, unsigned s)
{
    if (entry == NULL || block == 0) {
        return entry == NULL && block == 0;
    }
    struct images_entry want = entry_of(block, c, s);
    return entry->n == want.n && entry->seq == want.seq &&
        entry->file == want.file && entry->offset == want.offset &&
        entry->len == want.len;
}

static void
check_rows(const struct model *model)
{
    for (unsigned c = 0; c < COUNTERS; c++) {
        for (unsigned s = 0; s < SHARDS; s++) {
            for (uint64_t row = 0; row < ROWS; row++) {
                const struct images_entry *entry =
                    images_find(&model->images, counters[c], shards[s], row);
                if (!is_right(entry, model->block[c][s][row], c, s)) {
                    ck_abort_msg("row %d of list %u, %u", (int)row, c, s);
                }
            }
        }
    }
}

static void
check_bytes(const struct model *model)
{
    uint64_t want[FILES] = {0};
    bool *seen = calloc(model->n_blocks + 1, sizeof *seen);
    ck_assert_ptr_nonnull(seen);
    seen[0] = true;
    const unsigned *block = &model->block[0][0][0];
    for (size_t i = 0; i < sizeof model->block / sizeof *block; i++) {
        if (!seen[block[i]]) {
            struct images_entry entry = entry_of(block[i], 0, 0);
            want[entry.file] += entry.len;
            seen[block[i]] = true;
        }
    }
    for (unsigned file = 0; file < FILES; file++) {
        ck_assert_uint_eq(images_file_bytes(&model->images, file), want[file]);
    }
    free(seen);
}

struct walk {
    struct images_entry before;
    size_t n, n_rows;
};

static void
walk_entry(void *context, const struct images_entry *entry)
{
    struct walk *walk = context;
    const struct images_entry *before = &walk->before;
    if (walk->n > 0) {
        uint64_t list = (uint64_t)entry->counter << 16 | entry->shard;
        uint64_t list_before = (uint64_t)before->counter << 16 | before->shard;
        if (list < list_before ||
            (list == list_before && entry->first_row <= before->last_row)) {
            ck_abort_msg("entry %zu is out of order", walk->n);
        }
    }
    walk->before = *entry;
    walk->n++;
    walk->n_rows += entry->last_row - entry->first_row + 1;
}

static void
check_walk(const struct model *model)
{
    struct walk walk = {0};
    size_t n_rows = 0;
    const unsigned *block = &model->block[0][0][0];
    images_each(&model->images, walk_entry, &walk);
    for (size_t i = 0; i < sizeof model->block / sizeof *block; i++) {
        n_rows += block[i] != 0;
    }
    ck_assert_uint_eq(walk.n, model->images.n);
    ck_assert_uint_eq(walk.n_rows, n_rows);
}

static void
check_all(const struct model *model)
{
    images_verify(&model->images);
    check_rows(model);
    check_bytes(model);
    check_walk(model);
}

static void
fill(struct model *model, unsigned c, unsigned s, uint64_t first,
    uint64_t last, unsigned block)
{
    for (uint64_t row = first; row <= last; row++) {
        model->block[c][s][row] = block;
    }
}

/* One change; n_fail: how many allocations fail from the next one on. */
static int
change(struct model *model, const struct images_entry *entry, bool is_drop,
    size_t n_ok, size_t n_fail)
{
    model->fault.fail_from = model->fault.calls + n_ok + 1;
    model->fault.fail_to = model->fault.calls + n_ok + n_fail;
    int err = is_drop ? images_drop(&model->images, entry->counter,
                            entry->shard, entry->first_row, entry->last_row)
                      : images_add(&model->images, entry);
    model->fault.fail_from = model->fault.fail_to = 0;
    return err;
}

/* Fails the first allocation, then the second ... until none is left. */
static void
change_swept(
    struct model *model, const struct images_entry *entry, bool is_drop)
{
    for (size_t n_ok = 0;; n_ok++) {
        size_t failures = model->fault.failures;
        int err = change(model, entry, is_drop, n_ok, 1);
        if (model->fault.failures == failures) {
            ck_assert_int_eq(err, 0);
            return;
        }
        ck_assert_int_eq(err, ERR_NO_MEMORY);
        check_all(model);
    }
}

/* Mostly some rows; now and then those that an entry has. */
static void
choose_rows(struct model *model, struct images_entry *entry)
{
    uint64_t a = random_below(&model->random, ROWS);
    uint64_t b = a + random_below(&model->random, 20);
    const struct images_entry *there =
        images_find(&model->images, entry->counter, entry->shard, a);
    entry->first_row = a;
    entry->last_row = b < ROWS ? b : ROWS - 1;
    if (there != NULL && random_below(&model->random, 3) == 0) {
        entry->first_row = there->first_row;
        entry->last_row = there->last_row;
    }
}

static void
step(struct model *model)
{
    unsigned c = (unsigned)random_below(&model->random, COUNTERS);
    unsigned s = (unsigned)random_below(&model->random, SHARDS);
    uint64_t what = random_below(&model->random, 100);
    struct images_entry entry = entry_of(model->n_blocks + 1, c, s);
    bool is_drop = what < 25;
    choose_rows(model, &entry);
    change_swept(model, &entry, is_drop);
    if (!is_drop) {
        model->n_blocks++;
    }
    fill(model, c, s, entry.first_row, entry.last_row,
        is_drop ? 0 : model->n_blocks);
}

START_TEST(test_random_changes_as_a_plain_array)
{
    struct model *model = calloc(1, sizeof *model);
    ck_assert_ptr_nonnull(model);
    fault_alloc_init(&model->fault);
    model->images.alloc = &model->fault.alloc;
    for (int i = 0; i < STEPS; i++) {
        step(model);
        if (i % 7 == 0) {
            check_all(model);
        }
    }
    ck_assert_uint_gt(model->fault.failures, 10);
    images_fini(&model->images);
    ck_assert_uint_eq(model->fault.live_bytes, 0);
    ck_assert_uint_eq(model->images.n, 0);
    free(model);
}
END_TEST

START_TEST(test_copies_stand_alone)
{
    struct model *model = calloc(1, sizeof *model);
    ck_assert_ptr_nonnull(model);
    fault_alloc_init(&model->fault);
    model->images.alloc = &model->fault.alloc;
    for (int i = 0; i < 300; i++) {
        step(model);
    }
    struct images original = model->images;
    size_t before = model->fault.live_bytes;
    size_t n_ok = 0;
    for (;; n_ok++) {
        size_t failures = model->fault.failures;
        model->fault.fail_from = model->fault.fail_to =
            model->fault.calls + n_ok + 1;
        int err = images_copy(&original, &model->images);
        model->fault.fail_from = model->fault.fail_to = 0;
        if (model->fault.failures == failures) {
            ck_assert_int_eq(err, 0);
            break;
        }
        ck_assert_int_eq(err, ERR_NO_MEMORY);
        ck_assert_uint_eq(model->fault.live_bytes, before);
        ck_assert_ptr_eq(model->images.list, original.list);
    }
    ck_assert_uint_gt(n_ok, 1);
    images_fini(&original);
    check_all(model);
    for (int i = 0; i < 300; i++) {
        step(model);
        check_all(model);
    }
    images_fini(&model->images);
    ck_assert_uint_eq(model->fault.live_bytes, 0);
    free(model);
}
END_TEST

START_TEST(test_rows_at_the_ends)
{
    struct images images = {0};
    struct images_entry all = {.last_row = UINT64_MAX, .len = 10, .n = 1};
    struct images_entry low = {.len = 20, .offset = 10, .n = 2};
    struct images_entry high = {.first_row = UINT64_MAX,
        .last_row = UINT64_MAX,
        .len = 40,
        .offset = 30,
        .n = 3};
    ck_assert_ptr_null(images_find(&images, 0, 0, 0));
    ck_assert_int_eq(images_add(&images, &all), 0);
    ck_assert(!images_find(&images, 0, 0, 5)->part);
    ck_assert_int_eq(images_add(&images, &low), 0);
    ck_assert_int_eq(images_add(&images, &high), 0);
    images_verify(&images);
    ck_assert_uint_eq(images.n, 3);
    ck_assert_uint_eq(images_find(&images, 0, 0, 0)->n, 2);
    ck_assert_uint_eq(images_find(&images, 0, 0, 1)->n, 1);
    ck_assert(images_find(&images, 0, 0, 1)->part);
    ck_assert_uint_eq(images_find(&images, 0, 0, 1)->last_row, UINT64_MAX - 1);
    ck_assert_uint_eq(images_find(&images, 0, 0, UINT64_MAX)->n, 3);
    ck_assert_uint_eq(images_file_bytes(&images, 0), 70);
    ck_assert_int_eq(images_drop(&images, 0, 0, 0, UINT64_MAX), 0);
    ck_assert_uint_eq(images.n, 0);
    ck_assert_int_eq(images_add(&images, &all), 0);
    ck_assert_int_eq(images_drop(&images, 0, 0, 100, UINT64_MAX), 0);
    ck_assert(images_find(&images, 0, 0, 99)->part);
    ck_assert_ptr_null(images_find(&images, 0, 0, 100));
    ck_assert_int_eq(images_drop(&images, 0, 0, 0, 99), 0);
    ck_assert_ptr_null(images_find(&images, 0, 0, UINT64_MAX));
    ck_assert_int_eq(images_drop(&images, 3, 3, 0, UINT64_MAX), 0);
    images_fini(&images);
}
END_TEST

START_TEST(test_a_hundred_thousand)
{
    struct images images = {0};
    for (uint64_t i = 0; i < MANY; i++) {
        struct images_entry entry = {.first_row = i / 16 * 100,
            .last_row = i / 16 * 100 + 99,
            .shard = i % 16,
            .file = i,
            .len = 7};
        ck_assert_int_eq(images_add(&images, &entry), 0);
    }
    images_verify(&images);
    ck_assert_uint_eq(images.n, MANY);
    for (uint64_t i = 0; i < MANY; i++) {
        const struct images_entry *entry =
            images_find(&images, 0, i % 16, i / 16 * 100 + i % 100);
        if (entry == NULL || entry->file != i) {
            ck_abort_msg("entry %d", (int)i);
        }
    }
    images_fini(&images);
}
END_TEST

int
main(void)
{
    const TTest *test[] = {test_random_changes_as_a_plain_array,
        test_copies_stand_alone, test_rows_at_the_ends,
        test_a_hundred_thousand};
    return run_tests("images", test, COUNT_OF(test));
}
