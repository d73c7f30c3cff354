/* SPDX-License-Identifier: BSD-3-Clause */
/* lists/coded against a sorted array: what is coded is decoded, found, changed
 * and no longer than it should be; damaged bytes are refused or read without
 * harm. */
#include "lists/coded.h"

#include "unit/check_help.h"

enum { ROUNDS = 300, TRIES = 40 };

struct fixture {
    uint64_t seed;
    struct coded_room room, model;
    uint8_t *bytes; /* of exactly len, so that a sanitizer sees its end */
    size_t len;
    uint8_t out[CODED_BYTES_MAX];
};

static struct fixture *
create(void)
{
    struct fixture *f = calloc(1, sizeof *f);

    ck_assert_ptr_nonnull(f);
    ck_assert_uint_le(coded_bytes_max(CODED_IDS_MAX), sizeof f->out);
    f->seed = 1;
    return f;
}

static void
destroy(struct fixture *f)
{
    free(f->bytes);
    free(f);
}

/* A number below limit (0: any). */
static uint64_t
below(struct fixture *f, uint64_t limit)
{
    uint64_t high = random_below(&f->seed, UINT64_C(1) << 32);

    return limit > 0 ? random_below(&f->seed, limit)
                     : high << 32 | random_below(&f->seed, UINT64_C(1) << 32);
}

/* Posts as a power law gives them: half have 1, one in 1,000 has 1,000. */
static uint64_t
posts(struct fixture *f)
{
    return 1000000 / (1 + below(f, 1000000));
}

static void
code(struct fixture *f)
{
    f->len = coded_make(f->model.id, f->model.count, f->model.n, f->out);
    free(f->bytes);
    f->bytes = malloc(f->len);
    ck_assert_ptr_nonnull(f->bytes);
    memcpy(f->bytes, f->out, f->len);
}

static void
open_list(struct fixture *f, struct coded *list)
{
    ck_assert(coded_open(list, f->bytes, f->len));
    ck_assert_uint_eq(list->n, f->model.n);
}

/* All that is coded is there, and what is beside it is not. */
static void
compare(struct fixture *f)
{
    struct coded list;
    struct coded_walk walk = {0};
    uint64_t count;
    const struct coded_room *model = &f->model;

    open_list(f, &list);
    coded_decode(&list, &f->room);
    ck_assert_uint_eq(f->room.n, model->n);
    for (unsigned n = 0, m = 1; m > 0; n += m) {
        m = coded_next(&list, &walk, f->room.id, f->room.count);
        ck_assert_uint_eq(m,
            model->n - n < CODED_BLOCK_IDS ? model->n - n : CODED_BLOCK_IDS);
        ck_assert_mem_eq(f->room.id, model->id + n, m * sizeof *model->id);
    }
    coded_decode(&list, &f->room);
    ck_assert_mem_eq(f->room.id, model->id, model->n * sizeof *model->id);
    ck_assert_mem_eq(
        f->room.count, model->count, model->n * sizeof *model->count);
    for (unsigned i = 0; i < model->n; i += 1 + model->n / 97) {
        uint64_t id = model->id[i];

        ck_assert(coded_find(&list, id, &count));
        ck_assert_uint_eq(count, model->count[i]);
        if (id < UINT64_MAX &&
            (i + 1 == model->n || model->id[i + 1] != id + 1)) {
            ck_assert(!coded_find(&list, id + 1, &count));
        }
        if (id > 0 && (i == 0 || model->id[i - 1] != id - 1)) {
            ck_assert(!coded_find(&list, id - 1, &count));
        }
    }
}

static int
by_number(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

/* At most n ids below limit (0: any), with counts below count_limit, or of
 * posts. */
static void
fill(struct fixture *f, unsigned n, uint64_t limit, uint64_t count_limit,
    bool is_posts)
{
    struct coded_room *model = &f->model;
    unsigned kept = 0;

    for (unsigned i = 0; i < n; i++) {
        model->id[i] = below(f, limit);
        model->count[i] = is_posts ? posts(f) : below(f, count_limit);
    }
    qsort(model->id, n, sizeof *model->id, by_number);
    for (unsigned i = 0; i < n; i++) {
        if (kept == 0 || model->id[kept - 1] != model->id[i]) {
            model->id[kept++] = model->id[i];
        }
    }
    model->n = kept;
}

START_TEST(test_one_id)
{
    static const uint64_t number[] = {
        0, 1, 255, 1 << 20, UINT64_MAX - 1, UINT64_MAX};
    struct fixture *f = create();

    for (unsigned i = 0; i < 6; i++) {
        for (unsigned c = 0; c < 6; c++) {
            f->model.n = 1;
            f->model.id[0] = number[i];
            f->model.count[0] = number[c];
            code(f);
            compare(f);
        }
    }
    destroy(f);
}
END_TEST

START_TEST(test_ends_of_the_range)
{
    struct fixture *f = create();

    f->model.n = 2;
    f->model.id[0] = 0;
    f->model.id[1] = UINT64_MAX;
    f->model.count[0] = UINT64_MAX;
    f->model.count[1] = 0;
    code(f);
    compare(f);
    f->model.n = 3;
    f->model.id[1] = UINT64_MAX - 1;
    f->model.id[2] = UINT64_MAX;
    f->model.count[2] = 5;
    code(f);
    compare(f);
    destroy(f);
}
END_TEST

/* All lengths about a block, and the longest list. */
START_TEST(test_lengths)
{
    static const unsigned lengths[] = {2, 31, 32, 33, 63, 64, 65, 255, 256,
        257, 511, 512, 513, CODED_IDS_MAX - 1, CODED_IDS_MAX};
    struct fixture *f = create();

    for (unsigned i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        unsigned n = lengths[i];

        for (unsigned k = 0; k < n; k++) { /* dense */
            f->model.id[k] = 1000 + k;
            f->model.count[k] = k % 7 == 0 ? below(f, 0) : k % 3;
        }
        f->model.n = n;
        code(f);
        compare(f);
        for (unsigned k = 0; k < n; k++) { /* spread over all ids */
            f->model.id[k] = (UINT64_MAX / n) * k;
        }
        code(f);
        compare(f);
    }
    destroy(f);
}
END_TEST

START_TEST(test_random_lists)
{
    struct fixture *f = create();

    for (unsigned i = 0; i < ROUNDS; i++) {
        unsigned n = 1 + (unsigned)below(f, 1 + below(f, 2000));

        fill(f, n, UINT64_C(1) << below(f, 64), UINT64_C(1) << below(f, 64),
            i % 2 == 0);
        code(f);
        compare(f);
    }
    destroy(f);
}
END_TEST

/* Ids that come, go and get other counts, coded anew each time. */
START_TEST(test_changes)
{
    struct fixture *f = create();
    struct coded list;

    fill(f, 40, 100, 1000, false);
    code(f);
    for (unsigned i = 0; i < ROUNDS; i++) {
        uint64_t id = below(f, 100), count = posts(f), was;
        bool removes = f->model.n > 1 && below(f, 2) == 0;

        open_list(f, &list);
        bool is_there = coded_find(&list, id, &was);

        coded_decode(&list, &f->room);
        if (removes) {
            ck_assert_int_eq(coded_remove(&f->room, id), is_there);
        } else {
            ck_assert_int_eq(coded_put(&f->room, id, count), !is_there);
        }
        ck_assert_uint_eq(f->room.n,
            removes ? f->model.n - is_there : f->model.n + !is_there);
        f->model = f->room;
        code(f);
        open_list(f, &list);
        ck_assert_int_eq(coded_find(&list, id, &was), !removes);
        ck_assert(removes || was == count);
        compare(f);
    }
    destroy(f);
}
END_TEST

/* What doc/protocol.md says a list takes. */
START_TEST(test_bytes)
{
    static const unsigned lengths[] = {300, 2000};
    struct fixture *f = create();

    for (unsigned i = 0; i < 2; i++) {
        double a_followee;

        fill(f, lengths[i], 5000000, 0, true);
        code(f);
        a_followee = (double)f->len / f->model.n;
        ck_assert_msg(a_followee <= 3.0, "%.2f bytes", a_followee);
        fill(f, lengths[i], 50000000, 5000, false);
        code(f);
        a_followee = (double)f->len / f->model.n;
        ck_assert_msg(a_followee <= 4.8, "%.2f bytes", a_followee);
    }
    destroy(f);
}
END_TEST

/* Every bit turned over, and every length: refused, or read as far as it says
 * without a byte outside. */
START_TEST(test_damage)
{
    struct fixture *f = create();
    struct coded list;
    uint64_t count;

    for (unsigned i = 0; i < TRIES; i++) {
        fill(f, 1 + (unsigned)below(f, 300), 1 << 20, 1 << 12, false);
        code(f);
        for (size_t len = 0; len < f->len; len++) {
            uint8_t *shorter = malloc(len + 1);

            ck_assert_ptr_nonnull(shorter);
            memcpy(shorter, f->bytes, len);
            ck_assert(!coded_open(&list, shorter, len));
            free(shorter);
        }
        for (size_t bit = 0; bit < 8 * f->len; bit += 1 + bit / 100) {
            f->bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
            if (coded_open(&list, f->bytes, f->len)) {
                coded_decode(&list, &f->room);
                for (unsigned k = 0; k < 5; k++) {
                    (void)coded_find(
                        &list, f->room.id[below(f, f->room.n)] + k, &count);
                }
            }
            f->bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
    }
    destroy(f);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_one_id, test_ends_of_the_range,
        test_lengths, test_random_lists, test_changes, test_bytes,
        test_damage};
    return run_tests("coded", tests, COUNT_OF(tests));
}
