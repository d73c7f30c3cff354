/* SPDX-License-Identifier: BSD-3-Clause */
/* The write in place of engine/line: a record's bits change as line_rewrite
 * would change them, and no other bit of its line does; words that keep their
 * bits are not written; what would not fit the record's shape is fatal. Random
 * lines are of 16 shapes, and of a single form. */
#include "engine/line.h"

#include "unit/check_help.h"
#include "unit/line_form.h"

#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* Codes of a shape: random, all ones or all zero. */
static uint64_t
random_code(
    const struct form *form, uint64_t *state, unsigned column, unsigned shape)
{
    unsigned width = form->shapes.field[column][shape].width;
    switch (random_below(state, 4)) {
    case 0:
        return width == 0 ? 0 : UINT64_MAX >> (64 - width);
    case 1:
        return 0;
    default:
        return random_bits(state, width);
    }
}

/* As many records as there is room for; their remainders are 0, 1, ... with
 * noise above the tag. */
static void
fill(struct line_copy *copy, const struct form *form, uint64_t *state)
{
    memset(copy, 0, sizeof *copy);
    for (unsigned i = 0; i < LINE_RECORDS_MAX; i++) {
        struct line_record record = {.is_far = random_below(state, 5) == 0};
        record.remainder = random_bits(state, form_high_bits(form)) << 16 | i;
        record.shape = (uint8_t)form_shape(
            form, record.remainder, (unsigned)random_below(state, SHAPES_N));
        for (unsigned k = 0; k < SHAPES_COLUMNS_MAX; k++) {
            record.code[k] = random_code(form, state, k, record.shape);
        }
        (void)line_insert(copy, &form->form, &record);
    }
}

/* No bit differs but in [from, to). */
static void
check_neighbours(const struct line_copy *before, const struct line_copy *after,
    unsigned from, unsigned to)
{
    for (unsigned i = 0; i < 512; i++) {
        uint64_t differs = before->word[i / 64] ^ after->word[i / 64];
        MUST((i >= from && i < to) || (differs >> i % 64 & 1) == 0);
    }
}

/* Changes some columns of the record at index, and only these. */
static void
change_one(const struct line_copy *before, const struct form *form,
    unsigned index, uint64_t *state)
{
    struct line line;
    struct line_record record, found;
    struct line_copy after, wanted = *before;
    uint64_t code[SHAPES_COLUMNS_MAX], whole[SHAPES_COLUMNS_MAX];
    uint32_t columns = (uint32_t)random_bits(state, SHAPES_COLUMNS_MAX);
    memset(&line, 0, sizeof line);
    memset(&found, 0xff, sizeof found);
    line_get(before, &form->form, index, &record);
    MUST(line_fetch(before, &form->form, record.remainder, record.is_far,
             &found) == (int)index);
    MUST(found.at == record.at && found.shape == record.shape &&
        found.remainder == record.remainder && found.is_far == record.is_far &&
        memcmp(found.code, record.code, sizeof found.code) == 0);
    for (unsigned i = 0; i < SHAPES_COLUMNS_MAX; i++) {
        bool is_named = (columns >> i & 1) != 0;
        code[i] = is_named ? random_code(form, state, i, record.shape)
                           : random_bits(state, 64);
        whole[i] = is_named ? code[i] : record.code[i];
    }
    MUST(line_rewrite(&wanted, &form->form, index, record.shape, whole));
    line_store(&line, before);
    line_flip(&line, &form->form, &found, code, columns);
    line_load(&line, &after);
    MUST(memcmp(&after, &wanted, sizeof after) == 0);
    check_neighbours(before, &after, record.at,
        record.at + form->shapes.total[record.shape]);
    line_verify(&after, &form->form);
}

START_TEST(test_random)
{
    enum { ROUNDS = 400, CHANGES = 100 };
    uint64_t state = 1;
    uint64_t absent = 0;
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct form form;
        struct line_copy copy;
        struct line_record none;
        form_random(&form, &state, round, _i == 1);
        fill(&copy, &form, &state);
        for (unsigned i = 0; i < CHANGES; i++) {
            unsigned n = line_count(&copy);
            change_one(
                &copy, &form, (unsigned)random_below(&state, n), &state);
        }
        absent += line_fetch(&copy, &form.form, 0xffff, false, &none) < 0;
    }
    ck_assert_uint_eq(absent, ROUNDS);
}
END_TEST

/* The lower half of the line lies where a store is fatal. */
START_TEST(test_other_words)
{
    static const unsigned width[SHAPES_COLUMNS_MAX] = {16, 16, 8};
    struct form form = {.form = {.extra_bits = 8}};
    struct line_copy copy = {{0}}, after;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(pages, MAP_FAILED);
    struct line *line = (struct line *)(void *)(pages + page - 32);
    form.form.shapes = &form.shapes;
    for (unsigned i = 0; i < SHAPES_N; i++) {
        form_set(&form, i, width);
    }
    for (unsigned i = 0; i < 7; i++) { /* 7 of 48 bits: from bit 168 on */
        struct line_record record = {.remainder = i, .code = {i, 1, 2}};
        ck_assert(line_insert(&copy, &form.form, &record));
    }
    line_store(line, &copy);
    ck_assert_int_eq(mprotect(pages, page, PROT_READ), 0);
    for (unsigned i = 0; i < 7; i++) {
        struct line_record record;
        uint64_t code[SHAPES_COLUMNS_MAX] = {100 + i, 200, 50};
        line_get(&copy, &form.form, i, &record);
        bool is_high = record.at >= 256;
        ck_assert_int_eq(is_high, i < 5);
        line_flip(line, &form.form, &record, is_high ? code : record.code, 7);
        if (is_high) {
            ck_assert(line_rewrite(&copy, &form.form, i, 0, code));
        }
    }
    line_load(line, &after);
    ck_assert_mem_eq(&after, &copy, sizeof after);
    ck_assert_int_eq(munmap(pages, 2 * page), 0);
}
END_TEST

/* In a child: the signal that ends it, 0 for none. */
static int
signal_of(unsigned shape, uint64_t first, uint64_t second)
{
    static const unsigned width[2][SHAPES_COLUMNS_MAX] = {{3, 5}, {64, 40}};
    struct form form = {.form = {.extra_bits = 4}};
    struct line line = {{0}};
    struct line_record record = {.shape = (uint8_t)shape, .at = 100};
    uint64_t code[SHAPES_COLUMNS_MAX] = {first, second};
    form.form.shapes = &form.shapes;
    for (unsigned i = 0; i < SHAPES_N; i++) {
        form_set(&form, i, width[i < 1 ? 0 : 1]);
    }
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        ck_assert_ptr_nonnull(freopen("/dev/null", "w", stderr));
        line_flip(&line, &form.form, &record, code, 3);
        _exit(EXIT_SUCCESS);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

START_TEST(test_too_wide)
{
    ck_assert_int_eq(signal_of(0, 7, 31), 0);
    ck_assert_int_eq(signal_of(0, 8, 31), SIGABRT);
    ck_assert_int_eq(signal_of(0, 7, 32), SIGABRT);
    ck_assert_int_eq(signal_of(1, UINT64_MAX, (UINT64_C(1) << 40) - 1), 0);
    ck_assert_int_eq(signal_of(1, UINT64_MAX, UINT64_C(1) << 40), SIGABRT);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        test_random, test_other_words, test_too_wide};
    return run_tests_often("line_diff", tests, COUNT_OF(tests), 2);
}
