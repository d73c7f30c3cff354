/* SPDX-License-Identifier: BSD-3-Clause */
/* cold/series, cold/rice and cold/ids: what is written comes back, as a whole
 * and number by number; sums are found where they are; what is cut off or
 * changed is refused or comes out as some other numbers, and nothing is read
 * behind the end: bits lie in heap blocks of exactly their size and slack, so
 * that ASan sees it. */
#include "cold/ids.h"

#include "base/assert.h"
#include "cold/join.h"
#include "cold/rice.h"
#include "cold/series.h"
#include "lib/dist.h"
#include "lib/id_family.h"
#include "unit/check_help.h"

enum { ROUNDS = 400, N_MAX = 3000, ROOM = 9 * N_MAX + 4096 };

/* How the numbers of a round are drawn. */
enum draw {
    DRAW_ZERO,
    DRAW_RARE,   /* nearly all 0 */
    DRAW_COMMON, /* nearly all the same, not 0 */
    DRAW_SMALL,  /* geometric */
    DRAW_WIDTHS, /* any width */
    DRAW_LARGE,  /* 2^64-1 and next to it */
    DRAW_COUNT
};

struct rig {
    struct series_work *work;
    struct dist_rng rng;
    uint64_t value[N_MAX], back[N_MAX], spare[N_MAX];
    uint8_t bytes[ROOM];
    size_t n, len, bits;
};

static struct rig *rig;

static void
set_up(void)
{
    rig = calloc(1, sizeof *rig);
    ASSERT(rig != NULL);
    rig->work = calloc(1, sizeof *rig->work);
    ASSERT(rig->work != NULL);
    dist_rng_init(&rig->rng, 1, 1);
}

static void
tear_down(void)
{
    free(rig->work);
    free(rig);
}

static uint64_t
draw_one(enum draw draw)
{
    uint64_t bits = dist_rng_u64(&rig->rng);

    switch (draw) {
    case DRAW_ZERO:
        return 0;
    case DRAW_RARE:
        return bits % 40 == 0 ? bits >> 50 : 0;
    case DRAW_COMMON:
        return bits % 30 == 0 ? bits >> 60 : 77;
    case DRAW_SMALL:
        return (uint64_t)__builtin_ctzll(bits | UINT64_C(1) << 40) * 3 / 2;
    case DRAW_WIDTHS:
        return bits & bits_mask((unsigned)(bits >> 6) % 65);
    default:
        return UINT64_MAX - bits % 3;
    }
}

static void
draw_all(enum draw draw, size_t n)
{
    rig->n = n;
    for (size_t i = 0; i < n; i++) {
        rig->value[i] = draw_one(draw);
    }
}

/* n of a round: often few, sometimes none or all. */
static size_t
draw_n(void)
{
    uint64_t bits = dist_rng_u64(&rig->rng);

    return bits % 4 == 0 ? bits / 4 % 5
                         : bits / 4 % (bits % 4 == 1 ? N_MAX + 1 : 200);
}

static void
write_series(unsigned favour)
{
    struct bits_out out;

    memset(rig->bytes, 0, sizeof rig->bytes);
    bits_out_init(&out, rig->bytes, sizeof rig->bytes);
    series_put(rig->work, &out, rig->value, rig->n, favour);
    rig->bits = out.at;
    rig->len = bits_out_end(&out);
}

/* The bits in a block of just that size, slack behind it. */
static uint8_t *
tight_copy(size_t len)
{
    uint8_t *copy = malloc(len + BITS_SLACK);

    ck_assert_ptr_nonnull(copy);
    memcpy(copy, rig->bytes, len);
    memset(copy + len, 0xff, BITS_SLACK);
    return copy;
}

static void
check_back(void)
{
    uint8_t *copy = tight_copy(rig->len);
    struct bits_in in = {copy, 0, rig->bits};

    ck_assert(series_get(&in, rig->back, rig->spare, rig->n));
    ck_assert_uint_eq(in.at, rig->bits);
    if (rig->n > 0) {
        ck_assert_mem_eq(rig->back, rig->value, rig->n * sizeof *rig->value);
    }
    in.at = 0;
    for (size_t i = 0; i < rig->n; i += 1 + rig->n / 50) {
        uint64_t one;

        ck_assert(series_at(&in, rig->n, i, &one));
        ck_assert_uint_eq(one, rig->value[i]);
    }
    if (rig->bits > 0) {
        in = (struct bits_in){copy, 0, rig->bits - 1};
        ck_assert(!series_get(&in, rig->back, rig->spare, rig->n));
    }
    free(copy);
}

START_TEST(test_series_come_back)
{
    for (int draw = 0; draw < DRAW_COUNT; draw++) {
        for (int round = 0; round < ROUNDS; round++) {
            draw_all((enum draw)draw, draw_n());
            write_series(round % 2 == 0 ? 0 : 100);
            check_back();
        }
    }
}
END_TEST

/* Mixed numbers: several kinds in one series. */
START_TEST(test_mixed_series_come_back)
{
    for (int round = 0; round < ROUNDS; round++) {
        rig->n = 1 + dist_rng_u64(&rig->rng) % N_MAX;
        for (size_t i = 0; i < rig->n; i++) {
            rig->value[i] = draw_one(
                (enum draw)(dist_rng_u64(&rig->rng) % (DRAW_COUNT - 1)));
        }
        write_series(0);
        check_back();
    }
}
END_TEST

START_TEST(test_a_rare_number_costs_less_than_a_bit)
{
    for (int draw = DRAW_RARE; draw <= DRAW_COMMON; draw++) {
        draw_all((enum draw)draw, N_MAX);
        write_series(0);
        ck_assert_uint_lt(
            rig->bits, draw == DRAW_RARE ? N_MAX * 2 / 3 : 7 * N_MAX);
    }
    draw_all(DRAW_ZERO, N_MAX);
    write_series(0);
    ck_assert_uint_lt(rig->bits, 32);
}
END_TEST

/* Cost is what the choice goes by: it must not be far off. */
START_TEST(test_cost_is_near)
{
    for (int draw = 0; draw < DRAW_COUNT; draw++) {
        draw_all((enum draw)draw, N_MAX);
        write_series(0);
        uint64_t cost = series_cost(rig->work, rig->value, rig->n);
        ck_assert_uint_le(rig->bits, cost + cost / 10 + 64);
        ck_assert_uint_le(cost, rig->bits + rig->bits / 10 + 64);
    }
}
END_TEST

/* What does not fit is measured, and nothing is written behind the room. */
START_TEST(test_a_writer_measures_what_does_not_fit)
{
    enum { LITTLE = 64 };
    uint8_t *little = malloc(LITTLE);
    struct bits_out out;

    ck_assert_ptr_nonnull(little);
    draw_all(DRAW_WIDTHS, N_MAX);
    write_series(0);
    bits_out_init(&out, little, LITTLE);
    series_put(rig->work, &out, rig->value, rig->n, 0);
    ck_assert_uint_eq(out.at, rig->bits);
    ck_assert_uint_eq(bits_out_end(&out), rig->len);
    ck_assert_mem_eq(little, rig->bytes, LITTLE);
    free(little);
}
END_TEST

/* Any flipped bit, and noise: no reader leaves its bounds, and what is read
 * number by number is what is read at once. */
static void
read_whatever(const uint8_t *bytes, size_t bits, size_t n)
{
    struct bits_in in = {bytes, 0, bits};
    struct bits_in from_start = in;

    if (!series_get(&in, rig->back, rig->spare, n)) {
        return;
    }
    for (size_t i = 0; i < n; i += 1 + n / 10) {
        uint64_t one;

        ck_assert(series_at(&from_start, n, i, &one));
        ck_assert_uint_eq(one, rig->back[i]);
    }
}

START_TEST(test_flipped_bits_do_no_harm)
{
    for (int draw = 0; draw < DRAW_COUNT; draw++) {
        draw_all((enum draw)draw, 100 + (size_t)draw);
        write_series(0);
        uint8_t *copy = tight_copy(rig->len);
        for (size_t bit = 0; bit < rig->bits; bit++) {
            copy[bit / 8] ^= (uint8_t)(1 << bit % 8);
            read_whatever(copy, rig->bits, rig->n);
            copy[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
        free(copy);
    }
    for (int round = 0; round < 50 * ROUNDS; round++) {
        rig->len = 1 + dist_rng_u64(&rig->rng) % 60;
        for (size_t i = 0; i < rig->len; i++) {
            rig->bytes[i] = (uint8_t)dist_rng_u64(&rig->rng);
        }
        uint8_t *copy = tight_copy(rig->len);
        read_whatever(copy, 8 * rig->len, 1 + dist_rng_u64(&rig->rng) % 100);
        free(copy);
    }
}
END_TEST

/* Looks for a sum the slow way. */
static size_t
slow_seek(uint64_t target, uint64_t *sum)
{
    *sum = 0;
    for (size_t i = 0; i < rig->n; i++) {
        if (rig->value[i] == UINT64_MAX || *sum + rig->value[i] + 1 < *sum) {
            return rig->n;
        }
        *sum += rig->value[i] + 1;
        if (*sum >= target) {
            return i;
        }
    }
    return rig->n;
}

START_TEST(test_sums_are_found_in_rice)
{
    for (int round = 0; round < ROUNDS; round++) {
        unsigned k = (unsigned)dist_rng_u64(&rig->rng) % 64;
        struct rice_mark mark[300 / RICE_MARK];
        struct bits_out out;
        uint64_t total;

        rig->n = 1 + dist_rng_u64(&rig->rng) % 300;
        for (size_t i = 0; i < rig->n; i++) {
            uint64_t bits = dist_rng_u64(&rig->rng);
            uint64_t upper =
                bits % (k > 60 ? 2 : 5) * (bits % 7 / 4) * (1 + bits % 40);
            rig->value[i] = (upper & UINT64_MAX >> k) << k |
                (dist_rng_u64(&rig->rng) & bits_mask(k));
            /* low parts that add up to as much as they can */
            rig->value[i] |= round % 3 == 0 ? bits_mask(k) : 0;
        }
        memset(rig->bytes, 0, sizeof rig->bytes);
        bits_out_init(&out, rig->bytes, sizeof rig->bytes);
        rice_put(&out, rig->value, rig->n, k);
        rig->bits = out.at;
        uint8_t *copy = tight_copy(bits_out_end(&out));
        struct bits_in in = {copy, 0, rig->bits};
        slow_seek(UINT64_MAX, &total);
        bool has_marks = rice_marks(&in, rig->n, k, mark);
        ck_assert(has_marks || k > 50); /* where a sum passes 2^64-1 */
        for (int t = 0; t < 60; t++) {
            uint64_t target = 1 + dist_rng_u64(&rig->rng) % total;
            uint64_t sum, want_sum;
            size_t at, want = slow_seek(target, &want_sum);

            target = t % 2 == 0 && want < rig->n ? want_sum : target;
            ck_assert(rice_seek(&in, rig->n, k, target, &at, &sum));
            ck_assert_uint_eq(at, want);
            ck_assert(want == rig->n || sum == want_sum);
            if (has_marks) {
                ck_assert(
                    rice_seek_marked(&in, rig->n, k, mark, target, &at, &sum));
                ck_assert(at == want && (at == rig->n || sum == want_sum));
            }
        }
        ck_assert(rice_get(&in, rig->back, rig->n, k));
        ck_assert_mem_eq(rig->back, rig->value, rig->n * sizeof *rig->value);
        free(copy);
    }
}
END_TEST

/* Both ways of joining, from arrays of just their size. */
START_TEST(test_joins_agree)
{
    for (int round = 0; round < 5 * ROUNDS; round++) {
        size_t n = 1 + dist_rng_u64(&rig->rng) % 200;
        size_t at = dist_rng_u64(&rig->rng) % 9;
        unsigned dense = (unsigned)round % 5; /* 0: no ones; 4: no zeros */
        size_t ones = 0;

        rig->len = (at + n + 7) / 8;
        memset(rig->bytes, 0xff, rig->len);
        for (size_t i = 0; i < n; i++) {
            bool is_one = dist_rng_u64(&rig->rng) % 4 < dense;
            rig->bytes[(at + i) / 8] &=
                (uint8_t) ~((unsigned)!is_one << (at + i) % 8);
            rig->value[i] =
                (uint64_t)is_one << 32 | (is_one ? ones : i - ones);
            ones += is_one;
        }
        uint8_t *copy = tight_copy(rig->len);
        size_t zeros = n - ones;
        uint64_t *from = malloc(n * sizeof *from);
        ck_assert_ptr_nonnull(from);
        for (size_t i = 0; i < n; i++) {
            uint64_t place = rig->value[i] & UINT32_MAX;
            from[rig->value[i] >> 32 != 0 ? zeros + place : place] =
                rig->value[i];
        }
        join_by_plane(copy, at, n, from, zeros, rig->back);
        ck_assert_mem_eq(rig->back, rig->value, n * sizeof *from);
        join_by_plane_portable(copy, at, n, from, zeros, rig->spare);
        ck_assert_mem_eq(rig->spare, rig->value, n * sizeof *from);
        free(from);
        free(copy);
    }
}
END_TEST

static void
check_ids(struct ids_work *work, const uint64_t *id, size_t n)
{
    struct ids_shape shape, again;
    uint64_t *gap = calloc(n, sizeof *gap);
    uint64_t *back = calloc(n, sizeof *back);
    uint8_t head[IDS_HEAD_BYTES_MAX];
    uint64_t strides, sum = 0;

    ck_assert(gap != NULL && back != NULL);
    ids_plan(work, id, n, &shape, gap);
    size_t len = ids_put_shape(&shape, head);
    ck_assert_uint_le(len, sizeof head);
    for (size_t cut = 0; cut < len; cut++) {
        const uint8_t *at = head;
        ck_assert(!ids_get_shape(&at, head + cut, &again));
    }
    const uint8_t *at = head;
    ck_assert(ids_get_shape(&at, head + len, &again));
    ck_assert_ptr_eq(at, head + len);
    memcpy(back + 1, gap, (n - 1) * sizeof *gap);
    ck_assert(ids_of_gaps(&again, id[0], n, back + 1, back));
    ck_assert_mem_eq(back, id, n * sizeof *id);
    for (size_t i = 0; i < n; i++) {
        ck_assert(ids_distance(&again, id[0], id[i], &strides));
        ck_assert_uint_eq(strides, sum);
        sum += i + 1 < n ? gap[i] + 1 : 0;
    }
    free(back);
    free(gap);
}

START_TEST(test_ids_of_all_families_come_back)
{
    enum { MANY = 2000 };
    struct ids_work *work = calloc(1, sizeof *work);
    uint64_t id[MANY];

    ck_assert_ptr_nonnull(work);
    work->series = rig->work;
    for (int family = 0; family < ID_FAMILY_COUNT; family++) {
        for (uint64_t seed = 1; seed <= 10; seed++) {
            id_family_make((enum id_family)family, seed, MANY, id);
            check_ids(work, id, seed == 1 ? 1 : MANY / seed);
        }
    }
    check_ids(work, (const uint64_t[]){0, UINT64_MAX}, 2);
    check_ids(work, (const uint64_t[]){UINT64_MAX}, 1);
    check_ids(work, (const uint64_t[]){0, 5, UINT64_MAX - 5, UINT64_MAX}, 4);
    free(work);
}
END_TEST

/* Strides and low bits are found where they are. */
START_TEST(test_structure_of_ids_is_found)
{
    enum { MANY = 1500 };
    struct ids_work *work = calloc(1, sizeof *work);
    struct ids_shape shape;
    uint64_t id[MANY], gap[MANY];

    ck_assert_ptr_nonnull(work);
    work->series = rig->work;
    for (uint64_t i = 0; i < MANY; i++) {
        id[i] = (100 + i) << 22;
    }
    ids_plan(work, id, MANY, &shape, gap);
    ck_assert_uint_eq(gap[MANY - 2], 0);
    for (uint64_t i = 0; i < MANY; i++) {
        id[i] = 17 + 1000 * i * (i + 1);
    }
    ids_plan(work, id, MANY, &shape, gap);
    ck_assert_uint_eq(shape.stride, 2000);
    for (uint64_t i = 0; i < MANY; i++) {
        uint64_t worker = dist_rng_u64(&rig->rng) % 50 * 19;
        id[i] = (123456789 + i) << 22 | worker << 12;
    }
    ids_plan(work, id, MANY, &shape, gap);
    ck_assert_uint_eq(shape.n_lows, 50);
    ck_assert_uint_ge(shape.low_bits, 22);
    check_ids(work, id, MANY);
    free(work);
}
END_TEST

START_TEST(test_gaps_that_leave_64_bits_are_refused)
{
    struct ids_shape plain = {.stride = 1};
    struct ids_shape wide = {.stride = UINT64_C(1) << 40};
    struct ids_shape lows = {
        .stride = 1, .low_bits = 20, .n_lows = 2, .low = {3, 9}};
    uint64_t id[3];

    ck_assert(
        ids_of_gaps(&plain, 1, 2, (const uint64_t[]){UINT64_MAX - 2}, id));
    ck_assert_uint_eq(id[1], UINT64_MAX);
    ck_assert(
        !ids_of_gaps(&plain, 1, 2, (const uint64_t[]){UINT64_MAX - 1}, id));
    ck_assert(!ids_of_gaps(&plain, 0, 2, (const uint64_t[]){UINT64_MAX}, id));
    ck_assert(
        !ids_of_gaps(&wide, 0, 2, (const uint64_t[]){(1 << 24) - 1}, id));
    ck_assert(!ids_of_gaps(&lows, 4, 2, (const uint64_t[]){0}, id));
    ck_assert(ids_of_gaps(&lows, 9, 2, (const uint64_t[]){0}, id));
    ck_assert_uint_eq(id[1], (1 << 20) + 3);
    ck_assert(!ids_of_gaps(
        &lows, 9, 3, (const uint64_t[]){UINT64_C(1) << 45, 0}, id));
}
END_TEST

/* The counting without an instruction for it, which not every machine of the
 * tests uses. */
START_TEST(test_ones_are_counted)
{
    enum { BITS = 5000 };
    uint8_t bytes[BITS / 8 + 2 * BITS_SLACK];
    struct dist_rng rng;
    bool same = true;

    dist_rng_init(&rng, 8, 0);
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (uint8_t)dist_rng_u64(&rng);
    }
    for (size_t at = 0; at < 70; at++) {
        size_t ones = 0;

        for (size_t n = 0; n < BITS - 70; n++) {
            same = same && bits_rank(bytes, at, n) == ones;
            ones += bytes[(at + n) / 8] >> (at + n) % 8 & 1;
        }
    }
    ck_assert(same);
}
END_TEST

/* What n numbers cost in Rice's code with k. */
static uint64_t
rice_bits(const uint64_t *value, size_t n, unsigned k)
{
    uint64_t bits = n * (uint64_t)(k + 1);

    for (size_t i = 0; i < n; i++) {
        bits += value[i] >> k;
    }
    return bits;
}

/* The cost is that of the k; where numbers are alike no other k costs less. */
START_TEST(test_rice_is_chosen)
{
    for (unsigned round = 0; round < 4 * 65 * 5; round++) {
        static const size_t sizes[] = {1, 2, 63, 1000, RICE_MAX};
        static uint64_t value[RICE_MAX];
        unsigned width = round % 65;
        size_t n = sizes[round / 65 % 5];
        bool is_alike = round / 65 / 5 % 2 == 0;
        uint64_t cost;

        for (size_t i = 0; i < n; i++) {
            uint64_t bits = dist_rng_u64(&rig->rng);

            value[i] = is_alike || i == n / 2 ? bits & bits_mask(width)
                                              : bits >> 58 >> bits % 6;
        }
        unsigned k = rice_choose(value, n, &cost);

        ck_assert_uint_le(k, 63);
        ck_assert(cost == rice_bits(value, n, k));
        for (unsigned other = k < 4 ? 0 : k - 4; is_alike && other < 64;
             other++) {
            ck_assert(cost <= rice_bits(value, n, other) + n / 50);
        }
    }
}
END_TEST

int
main(void)
{
    const TTest *tests[] = {test_series_come_back, test_mixed_series_come_back,
        test_a_rare_number_costs_less_than_a_bit, test_cost_is_near,
        test_a_writer_measures_what_does_not_fit, test_flipped_bits_do_no_harm,
        test_sums_are_found_in_rice, test_joins_agree,
        test_ids_of_all_families_come_back, test_structure_of_ids_is_found,
        test_gaps_that_leave_64_bits_are_refused, test_ones_are_counted,
        test_rice_is_chosen};

    set_up();
    int status = run_tests("series", tests, COUNT_OF(tests));
    tear_down();
    return status;
}
