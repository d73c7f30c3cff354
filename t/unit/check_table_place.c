/* SPDX-License-Identifier: BSD-3-Clause */
/* engine/table_place: where rows lie, against arithmetic without tricks; and
 * numbers of lines that pieces make. */
#include "engine/table_place.h"

#include "engine/edits.h"
#include "unit/table_help.h"

/* True for numbers of lines that pieces make. */
static bool
is_round(uint32_t n)
{
    uint32_t rest = n % TABLE_PIECE_LINES;
    return n >= TABLE_LINES_MIN && rest != 1 && (rest & (rest - 1)) == 0;
}

START_TEST(test_lines_round)
{
    for (uint32_t n = 0; n <= 3 * TABLE_PIECE_LINES + 1; n++) {
        uint32_t expected = n;
        while (!is_round(expected)) {
            expected++;
        }
        ck_assert_uint_eq(table_lines_round(n), expected);
        for (expected = n; expected > 0 && !is_round(expected);) {
            expected--;
        }
        ck_assert_uint_eq(table_lines_cut(n), expected);
    }
}
END_TEST

/* What is common to places of rows, and where a line's share of the permuted
 * numbers begins: the smallest y with y * n_lines / 2^w == line. */
static void
expect_place(const struct table *table, const struct perm *perm, uint64_t row)
{
    struct table_place place = table_place(table, perm, row);
    unsigned w = table->width;
    uint64_t y = perm_apply(perm, row & table->mask, w);
    unsigned __int128 product = (unsigned __int128)y * table->n_lines;
    uint64_t start = y - place.remainder;
    uint32_t n = table->n_lines;
    /* the same share's first number, rounded down */
    unsigned __int128 exact = ((unsigned __int128)place.line_1 << w) / n;
    bool is_right = place.line_1 == (uint32_t)(product >> w) &&
        place.line_2 < n && place.line_2 != place.line_1 &&
        place.bit < LINE_MASK_BITS && place.remainder <= y && start <= exact &&
        exact - start <= 1 + ((uint64_t)n >> (64 - w)) &&
        line_extra(&table->form, place.remainder) >> table->form.extra_bits ==
            0 &&
        edits_partner(table, place.line_1, place.remainder, false) ==
            place.line_2 &&
        edits_partner(table, place.line_2, place.remainder, true) ==
            place.line_1;
    if (!is_right) {
        ck_abort_msg("width %u, %u lines: row %llx is misplaced", w, n,
            (unsigned long long)row);
    }
}

/* A table's numbers only, without lines; of one form or the other. */
static struct table
bare_table(unsigned width, uint32_t n_lines, bool is_single)
{
    return (struct table){.mask = perm_mask(width),
        .width = (uint8_t)width,
        .shift = (uint8_t)(64 - width),
        .fold = (uint8_t)perm_fold(width),
        .n_lines = n_lines,
        .step = (uint64_t)(((unsigned __int128)1 << 64) / n_lines),
        .form.single = is_single ? UINT16_MAX : 0,
        .form.extra_bits =
            (uint8_t)table_extra_bits(width, n_lines, is_single)};
}

START_TEST(test_places_all_rows)
{
    static const uint32_t lines[] = {2, 4, 8, 64, 130, 192, 1024};
    struct perm perm = perm_make(1);
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        for (unsigned w = 1; w <= 18; w++) {
            struct table table = bare_table(w, lines[i], _i == 1);
            uint64_t largest = 0;
            for (uint64_t row = 0; row <= table.mask; row++) {
                uint64_t it = table_place(&table, &perm, row).remainder;
                largest = it > largest ? it : largest;
            }
            for (uint64_t row = 0; row <= table.mask; row += 61) {
                expect_place(&table, &perm, row);
            }
            /* enough bits, and not one more than the sum of shares asks */
            unsigned extra = table.form.extra_bits;
            unsigned bits = (_i == 1 ? 20 : 16) + extra;
            ck_assert_uint_eq(largest >> bits, 0);
            ck_assert(extra == 0 || largest + 4 > UINT64_C(1) << (bits - 1));
        }
    }
}
END_TEST

/* The first and the last number of the share of a line have the smallest and
 * the largest remainders. */
static void
expect_ends(const struct table *table, const struct perm *perm, uint32_t line)
{
    unsigned w = table->width;
    unsigned __int128 first =
        (((unsigned __int128)line << w) + table->n_lines - 1) / table->n_lines;
    unsigned __int128 end =
        (((unsigned __int128)(line + 1) << w) + table->n_lines - 1) /
        table->n_lines;
    if (first < end) {
        expect_place(table, perm, perm_undo(perm, (uint64_t)first, w));
        expect_place(table, perm, perm_undo(perm, (uint64_t)(end - 1), w));
    }
}

START_TEST(test_places_wide)
{
    enum { LINES_TRIED = 40, TABLES = 30 };
    uint64_t random = 2;
    struct perm perm = perm_make(2);
    for (unsigned w = 1; w <= 64; w++) {
        for (int i = 0; i < TABLES; i++) {
            uint32_t most = i == 0 ? 2 : i < TABLES / 2 ? 300 : 1 << 20;
            uint32_t n = 1 + (uint32_t)random_below(&random, most);
            /* a little more than a power of two: the largest remainder is
             * close to the next one */
            n = table_lines_round(i % 3 == 2 ? (1U << (i * 2 / 3)) + 2 : n);
            struct table table = bare_table(w, n, _i == 1);
            ck_assert_uint_le(table.form.extra_bits, _i == 1 ? 44 : 48);
            expect_ends(&table, &perm, 0);
            expect_ends(&table, &perm, n - 1);
            for (int k = 0; k < LINES_TRIED; k++) {
                expect_ends(&table, &perm, (uint32_t)random_below(&random, n));
                expect_place(&table, &perm,
                    random_below(&random, UINT64_MAX) & table.mask);
            }
        }
    }
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        test_lines_round, test_places_all_rows, test_places_wide};
    return run_tests_often("table_place", tests, COUNT_OF(tests), 2);
}
