/* SPDX-License-Identifier: BSD-3-Clause */
/* engine/line and engine/line_read.h beside a slow model: an array of records
 * that is written into a line bit by bit. Each test is run for a form of 16
 * shapes, and for a single one, whose shapes are of the remainder. */
#include "engine/line.h"

#include "unit/check_help.h"
#include "unit/line_form.h"
#include "unit/line_model.h"
#include "unit/line_reader.h"

#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct line_reader *const readers[] = {&line_reader_portable,
    &line_reader_sse2, &line_reader_avx2, &line_reader_neon};

/* Random records */

/* Codes for a shape, often all ones. */
static void
random_codes(const struct form *form, uint64_t *state, unsigned shape,
    uint64_t code[SHAPES_COLUMNS_MAX])
{
    for (unsigned column = 0; column < SHAPES_COLUMNS_MAX; column++) {
        unsigned width = form->shapes.field[column][shape].width;
        code[column] = random_bits(state, width);
        if (width != 0 && random_below(state, 4) == 0) {
            code[column] = UINT64_MAX >> (64 - width);
        }
    }
}

/* Few tags and few extra bits, so that many records look alike; but for the
 * lowest of the latter, perhaps, which a single form has elsewhere. */
static uint64_t
random_remainder(const struct form *form, uint64_t *state)
{
    static const uint64_t tag[] = {0, 1, 0x8000, 0xffff, 0x7fff, 0x0100};
    unsigned width = form_high_bits(form);
    uint64_t high = random_bits(state, width);
    if (random_below(state, 2) == 0 && width > 3) {
        high = random_below(state, 4) << (width - 2);
        high ^= form->form.single != 0 ? random_below(state, 4) : 0;
    }
    return high << 16 |
        (random_below(state, 2) == 0 ? tag[random_below(state, COUNT_OF(tag))]
                                     : random_bits(state, 16));
}

/* Comparisons */

static void
check_record(const struct line_record *found, const struct line_record *wanted)
{
    MUST(found->remainder == wanted->remainder);
    MUST(found->shape == wanted->shape);
    MUST(found->is_far == wanted->is_far);
    MUST(memcmp(found->code, wanted->code, sizeof wanted->code) == 0);
}

/* The place of a record is the model's, or -1 where that has none. */
static void
check_fetch(const struct line_copy *copy, const struct model *model,
    const struct form *form, uint64_t remainder, bool is_far)
{
    struct line_record found;
    MUST(line_fetch(copy, &form->form, remainder, is_far, &found) ==
        model_find(model, remainder, is_far));
}

/* The writers' functions give what the model has. */
static void
check_copy(const struct line_copy *copy, const struct model *model,
    const struct form *form)
{
    struct line_copy wanted;
    encode(model, form, &wanted);
    MUST(memcmp(copy, &wanted, sizeof wanted) == 0);
    line_verify(copy, &form->form);
    unsigned used = model_used(model, form);
    struct line_head head[LINE_RECORDS_MAX];
    MUST(line_used_bits(copy, &form->form) == used);
    MUST(line_heads(copy, &form->form, head) == model->n);
    for (unsigned i = 0; i < model->n; i++) {
        const struct line_record *record = &model->record[i];
        struct line_record found;
        MUST(head[i].remainder == record->remainder);
        MUST(head[i].shape == record->shape);
        MUST(head[i].is_far == record->is_far);
        memset(&found, 0xff, sizeof found);
        line_get(copy, &form->form, i, &found);
        check_record(&found, record);
        check_fetch(copy, model, form, record->remainder, record->is_far);
        check_fetch(copy, model, form, record->remainder, !record->is_far);
    }
    for (unsigned i = 0; i < SHAPES_N; i++) {
        bool fits = model->n < LINE_RECORDS_MAX &&
            used + 20 + form->form.total[i] <= LINE_USABLE_BITS;
        MUST(line_has_room(copy, &form->form, i, false) == fits);
        MUST(line_has_room(copy, &form->form, i, true) ==
            (fits && model->far < LINE_FAR_MAX));
    }
}

/* A glance finds what the model has, or says that more is to be looked at:
 * because of a mask bit, or because the first tag that matches is another
 * record's. */
static void
check_glance(const struct line_reader *reader, const struct line *line,
    const struct model *model, const struct form *form, uint64_t remainder,
    bool is_far)
{
    int index = model_find(model, remainder, is_far);
    int first = model_find_tag(model, (uint16_t)remainder, is_far);
    for (unsigned bit = 0; bit < LINE_MASK_BITS; bit++) {
        uint64_t code[SHAPES_COLUMNS_MAX];
        uint32_t open =
            reader->glance(line, &form->form, remainder, is_far, bit, code);
        if (first != index) {
            MUST(open > LINE_LOOK_ELSEWHERE);
            continue;
        }
        MUST(open == (index >= 0 ? 0 : (uint32_t)(model->mask >> bit & 1)));
        for (unsigned j = 0; j < SHAPES_COLUMNS_MAX; j++) {
            MUST(code[j] == (index < 0 ? 0 : model->record[index].code[j]));
        }
    }
}

/* Every reader gives what the model has, for a record or none. */
static void
check_readers(const struct line *line, const struct model *model,
    const struct form *form, uint64_t remainder, bool is_far)
{
    int index = model_find(model, remainder, is_far);
    for (size_t i = 0; i < COUNT_OF(readers); i++) {
        struct line_hit hit;
        if (!readers[i]->runs()) {
            continue;
        }
        check_glance(readers[i], line, model, form, remainder, is_far);
        MUST(readers[i]->find(line, &form->form, remainder, is_far, &hit) ==
            (index >= 0));
        MUST(hit.mask == model->mask);
        if (index < 0) {
            continue;
        }
        const struct line_record *record = &model->record[index];
        MUST(hit.index == index);
        MUST(hit.shape == record->shape);
        for (unsigned j = 0; j < SHAPES_COLUMNS_MAX; j++) {
            MUST(readers[i]->value(line, &form->form, &hit, j) ==
                record->code[j]);
        }
    }
}

static void
check_line(const struct line_copy *copy, const struct model *model,
    const struct form *form, uint64_t *state)
{
    struct line *line = calloc(1, sizeof *line);
    MUST(line != NULL);
    line_store(line, copy);
    for (unsigned i = 0; i < model->n; i++) {
        uint64_t remainder = model->record[i].remainder;
        check_readers(line, model, form, remainder, false);
        check_readers(line, model, form, remainder, true);
    }
    for (int i = 0; i < 4; i++) {
        uint64_t other = random_remainder(form, state);
        check_readers(line, model, form, other, false);
        check_readers(line, model, form, other, true);
        check_fetch(copy, model, form, other, false);
    }
    free(line);
}

/* Random operations */

static void
try_insert(struct line_copy *copy, struct model *model,
    const struct form *form, uint64_t *state)
{
    struct line_record record = {.is_far = random_below(state, 4) == 0};
    record.remainder = random_remainder(form, state);
    unsigned shape = (unsigned)random_below(state, SHAPES_N);
    if (random_below(state, 2) == 0) {
        shape = (unsigned)random_below(state, 3);
    }
    record.shape = (uint8_t)form_shape(form, record.remainder, shape);
    random_codes(form, state, record.shape, record.code);
    if (model_find(model, record.remainder, record.is_far) >= 0) {
        return;
    }
    bool fits = line_has_room(copy, &form->form, record.shape, record.is_far);
    struct line_copy before = *copy;
    MUST(line_insert(copy, &form->form, &record) == fits);
    if (fits) {
        model_insert(model, &record);
    } else {
        MUST(memcmp(copy, &before, sizeof before) == 0);
    }
}

static void
try_rewrite(struct line_copy *copy, struct model *model,
    const struct form *form, uint64_t *state)
{
    if (model->n == 0) {
        return;
    }
    uint64_t code[SHAPES_COLUMNS_MAX];
    unsigned index = (unsigned)random_below(state, model->n);
    struct line_record *record = &model->record[index];
    unsigned shape = random_below(state, 3) == 0
        ? record->shape
        : (unsigned)random_below(state, SHAPES_N);
    shape = form_shape(form, record->remainder, shape);
    random_codes(form, state, shape, code);
    bool fits = model_used(model, form) - form->form.total[record->shape] +
            form->form.total[shape] <=
        LINE_USABLE_BITS;
    struct line_copy before = *copy;
    MUST(line_rewrite(copy, &form->form, index, shape, code) == fits);
    if (fits) {
        record->shape = (uint8_t)shape;
        memcpy(record->code, code, sizeof code);
    } else {
        MUST(memcmp(copy, &before, sizeof before) == 0);
    }
}

/* share: insertions in 8 operations. */
static void
try_any(struct line_copy *copy, struct model *model, const struct form *form,
    unsigned share, uint64_t *state)
{
    if (random_below(state, 8) < share) {
        try_insert(copy, model, form, state);
    } else if (random_below(state, 2) == 0) {
        try_rewrite(copy, model, form, state);
    } else if (model->n != 0 && random_below(state, 4) != 0) {
        unsigned index = (unsigned)random_below(state, model->n);
        line_remove(copy, &form->form, index);
        model_remove(model, index);
    } else {
        unsigned bit = (unsigned)random_below(state, LINE_MASK_BITS);
        unsigned mask = model->mask;
        MUST((copy->word[0] >> bit & 1) == (mask >> bit & 1));
        line_mask_add(copy, bit);
        model->mask |= (uint16_t)(1u << bit);
    }
    check_copy(copy, model, form);
}

START_TEST(test_random)
{
    enum { ROUNDS = 320, STEPS = 240 };
    uint64_t state = 1;
    unsigned fullest = 0;
    unsigned most = 0;
    unsigned rounds = long_part(ROUNDS);
    for (unsigned round = 0; round < rounds; round++) {
        struct form form;
        struct model model = {0};
        struct line_copy copy = {{0}};
        form_random(&form, &state, round, _i == 1);
        check_copy(&copy, &model, &form);
        for (unsigned step = 0; step < STEPS; step++) {
            /* Fill to the brim, live at the brim, drain, live half full. */
            static const unsigned share[] = {8, 5, 1, 4};
            try_any(&copy, &model, &form,
                share[step * COUNT_OF(share) / STEPS], &state);
            if (step % 8 == 7) {
                check_line(&copy, &model, &form, &state);
            }
            unsigned used = model_used(&model, &form);
            fullest = used > fullest ? used : fullest;
            most = model.n > most ? model.n : most;
        }
        while (model.n != 0) {
            line_remove(&copy, &form.form, model.n - 1);
            model_remove(&model, model.n - 1);
            check_copy(&copy, &model, &form);
        }
    }
    /* records of one size leave a few bits */
    ck_assert_uint_ge(fullest, LINE_USABLE_BITS - (_i == 1 ? 4 : 0));
    ck_assert_uint_le(fullest, LINE_USABLE_BITS);
    ck_assert_uint_eq(most, LINE_RECORDS_MAX);
}
END_TEST

/* One line by hand, so that code and model cannot be wrong together. */
START_TEST(test_layout)
{
    static const unsigned width[SHAPES_N][SHAPES_COLUMNS_MAX] = {
        {0}, {3, 5}, {8, 0}};
    static const unsigned one_width[SHAPES_COLUMNS_MAX] = {8};
    struct form form = {.form = {.extra_bits = 4}};
    struct line_copy copy = {{0}};
    form.form.shapes = &form.shapes;
    for (unsigned i = 0; i < SHAPES_N; i++) {
        form_set(&form, i, _i == 1 ? one_width : width[i < 3 ? i : 2]);
    }
    struct line_record home = {
        .remainder = 0x51234, .shape = 1, .code = {6, 17}};
    struct line_record far = {
        .remainder = 0xfabcd, .shape = 2, .is_far = true, .code = {200, 0}};
    if (_i == 1) { /* the same bits stand for this */
        form_make_single(&form);
        home.remainder = 0x511234;
        home.code[0] = 6 | 17 << 3;
        home.code[1] = 0;
        far.remainder = 0xf2abcd;
    }
    ck_assert(line_insert(&copy, &form.form, &far));
    ck_assert(line_insert(&copy, &form.form, &home));
    line_mask_add(&copy, 3);
    line_mask_add(&copy, 15);
    ck_assert_uint_eq(copy.word[0], UINT64_C(0x0021abcd12348008));
    for (unsigned i = 1; i < 7; i++) {
        ck_assert_uint_eq(copy.word[i], 0);
    }
    ck_assert_uint_eq(copy.word[7],
        UINT64_C(0x22) << 56 |                       /* 2, of them 1 far */
            (uint64_t)(5 | 6 << 4 | 17 << 7) << 44 | /* 12 bits to 504 */
            (uint64_t)(15 | 200 << 4) << 32);        /* 12 bits to that */
}
END_TEST

/* The limits: 23 records, 7 far ones, 488 bits. */
START_TEST(test_full)
{
    static const unsigned none[SHAPES_COLUMNS_MAX] = {0};
    static const unsigned wide[SHAPES_COLUMNS_MAX] = {64, 38};
    static const unsigned wider[SHAPES_COLUMNS_MAX] = {64, 39};
    static const uint64_t ones[SHAPES_COLUMNS_MAX] = {
        UINT64_MAX, (UINT64_C(1) << 38) - 1};
    struct form form = {.form = {.shapes = NULL}};
    struct line_copy copy = {{0}};
    struct line_record record = {.shape = 0};
    form.form.shapes = &form.shapes;
    bool is_single = _i == 1;
    for (unsigned i = 0; i < SHAPES_N; i++) {
        form_set(&form, i,
            is_single || i < 14 ? none
                : i == 14       ? wide
                                : wider);
    }
    if (is_single) {
        form_make_single(&form);
    }
    for (unsigned i = 0; i < LINE_RECORDS_MAX; i++) {
        record.is_far = i < LINE_FAR_MAX;
        record.remainder = is_single ? (uint64_t)(i % 12) << 16 | i / 12 : i;
        record.shape = (uint8_t)form_shape(&form, record.remainder, 0);
        ck_assert(line_insert(&copy, &form.form, &record));
        ck_assert_int_eq(
            line_has_room(&copy, &form.form, 0, true), i + 1 < LINE_FAR_MAX);
    }
    ck_assert_uint_eq(line_used_bits(&copy, &form.form), 460);
    record.remainder = 100;
    record.shape = 0;
    ck_assert(!line_insert(&copy, &form.form, &record));
    ck_assert(!line_has_room(&copy, &form.form, 0, false));
    line_verify(&copy, &form.form);
    if (is_single) {
        return;
    }
    while (line_count(&copy) > 4) {
        line_remove(&copy, &form.form, 0);
    }
    for (unsigned i = 0; i < 4; i++) {
        ck_assert(line_rewrite(&copy, &form.form, i, 14, ones));
    }
    ck_assert_uint_eq(line_used_bits(&copy, &form.form), LINE_USABLE_BITS);
    line_verify(&copy, &form.form);
    struct line_copy before = copy;
    ck_assert(!line_rewrite(&copy, &form.form, 2, 15, ones));
    ck_assert(!line_insert(&copy, &form.form, &record));
    ck_assert_mem_eq(&copy, &before, sizeof copy);
}
END_TEST

/* Payloads of 63 to 240 bits, with fields as long as a word. */
START_TEST(test_words)
{
    static const unsigned width[][SHAPES_COLUMNS_MAX] = {{62}, {0, 63},
        {63, 0}, {64}, {0, 64}, {0, 0, 64}, {63, 1}, {1, 63}, {64, 1}, {1, 64},
        {63, 3}, {64, 63}, {64, 64}, {0, 64, 64}, {1, 63, 64, 64},
        {64, 64, 64}};
    uint64_t state = 4;
    unsigned step = tests_are_long() ? 1 : 3;
    for (unsigned extra_bits = 0; extra_bits <= 48; extra_bits += step) {
        struct form form = {.form = {.extra_bits = (uint8_t)extra_bits}};
        form.form.shapes = &form.shapes;
        for (unsigned i = 0; i < SHAPES_N; i++) {
            form_set(&form, i, width[_i == 1 ? extra_bits / 3 % 16 : i]);
        }
        if (_i == 1) {
            form_make_single(&form);
        }
        struct model model = {0};
        struct line_copy copy = {{0}};
        for (unsigned i = 0; i < 40; i++) {
            try_any(&copy, &model, &form, 2, &state);
            check_line(&copy, &model, &form, &state);
        }
    }
}
END_TEST

/* Garbage */

/* What a reader may see: noise, a line with noise in it, two lines mixed. */
static void
make_garbage(struct line *line, const struct line_copy *copy, uint64_t *state)
{
    unsigned kind = (unsigned)random_below(state, 4);
    for (unsigned i = 0; i < LINE_WORDS; i++) {
        uint64_t noise = random_bits(state, 64);
        uint64_t word = copy[0].word[i];
        if (kind == 0) {
            word = noise;
        } else if (kind == 1) {
            word ^= noise & random_bits(state, 64) & random_bits(state, 64);
        } else if (kind == 2) {
            word = copy[noise % 2].word[i];
        } else if (i == LINE_WORDS - 1) {
            word = (word & (UINT64_MAX >> 8)) | noise << LINE_COUNTS_SHIFT;
        }
        atomic_init(&line->word[i], word);
    }
}

/* The same for a glance. The word with the counts is always whole, and so they
 * are never too large. */
static void
check_same_glance(const struct line_reader *reader, const struct line *line,
    const struct line_form *form, uint64_t remainder, bool is_far)
{
    uint64_t word = atomic_load(&line->word[LINE_WORDS - 1]);
    unsigned n = (unsigned)(word >> LINE_COUNTS_SHIFT) & 31;
    unsigned far = (unsigned)(word >> (LINE_COUNTS_SHIFT + 5));
    uint64_t code[SHAPES_COLUMNS_MAX], other[SHAPES_COLUMNS_MAX];
    if (n > LINE_RECORDS_MAX || far > n) {
        return;
    }
    MUST(reader->glance(line, form, remainder, is_far, 5, code) ==
        readers[0]->glance(line, form, remainder, is_far, 5, other));
    MUST(memcmp(code, other, sizeof code) == 0);
}

/* All readers see the same, and sanitizers see no wrong access. */
static void
check_garbage(const struct line *line, const struct line_form *form,
    uint64_t remainder, bool is_far)
{
    struct line_hit first = {.mask = 0};
    int found = readers[0]->find(line, form, remainder, is_far, &first);
    for (size_t i = 0; i < COUNT_OF(readers); i++) {
        struct line_hit hit = {.mask = 0};
        if (!readers[i]->runs()) {
            continue;
        }
        MUST(readers[i]->find(line, form, remainder, is_far, &hit) == found);
        check_same_glance(readers[i], line, form, remainder, is_far);
        if (!found) {
            continue;
        }
        MUST(hit.index < LINE_RECORDS_MAX);
        MUST(hit.shape < SHAPES_N);
        MUST(hit.at < 512);
        MUST(hit.index == first.index);
        for (unsigned j = 0; j < SHAPES_COLUMNS_MAX; j++) {
            MUST(readers[i]->value(line, form, &hit, j) ==
                readers[0]->value(line, form, &first, j));
        }
    }
}

START_TEST(test_garbage)
{
    enum { FORMS = 64, LINES = 40 };
    uint64_t state = 2;
    unsigned forms = long_part(FORMS);
    for (unsigned round = 0; round < forms; round++) {
        struct form form;
        struct model model[2] = {{0}};
        struct line_copy copy[2] = {{{0}}};
        form_random(&form, &state, round, _i == 1);
        for (unsigned i = 0; i < LINES; i++) {
            struct line *line = malloc(sizeof *line);
            MUST(line != NULL);
            try_insert(&copy[i % 2], &model[i % 2], &form, &state);
            make_garbage(line, copy, &state);
            for (unsigned j = 0; j < 32; j++) {
                uint64_t tag = atomic_load(&line->word[j / 4]) >> j % 4 * 16;
                uint64_t high = random_bits(&state, form_high_bits(&form));
                uint64_t remainder = high << 16 | (tag & 0xffff);
                check_garbage(line, &form.form, remainder, false);
                check_garbage(line, &form.form, remainder, true);
            }
            free(line);
        }
    }
}
END_TEST

/* Loads and stores */

/* Half of a line lies where a store is fatal. */
START_TEST(test_store)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(pages, MAP_FAILED);
    struct line *line = (struct line *)(void *)(pages + page - 32);
    struct line_copy copy, again;
    for (unsigned i = 0; i < LINE_WORDS; i++) {
        copy.word[i] = 0x0123456789abcdef * (i + 1);
    }
    line_store(line, &copy);
    line_load(line, &again);
    ck_assert_mem_eq(&copy, &again, sizeof copy);
    ck_assert_int_eq(mprotect(pages + page, page, PROT_READ), 0);
    for (unsigned i = 0; i < 4; i++) {
        copy.word[i]++;
        line_store(line, &copy);
        line_load(line, &again);
        ck_assert_mem_eq(&copy, &again, sizeof copy);
    }
    ck_assert_int_eq(munmap(pages, 2 * page), 0);
}
END_TEST

/* Misuse and broken lines are fatal */

enum misuse {
    GET_BEHIND,
    REMOVE_BEHIND,
    REWRITE_BEHIND,
    WIDE_CODE,
    WIDE_LONG_CODE,
    WIDE_REMAINDER,
    NO_SHAPE,
    OTHER_SHAPE,
    RESHAPE_SINGLE,
    DIRTY_LOW,
    DIRTY_HIGH,
    TOO_MANY,
    TOO_MANY_FAR,
    TOO_LONG,
    TWICE,
    WRONG_TOTAL,
    MISUSES
};

/* What makes another record of one, in a form that is single. */
static void
do_misuse_single(enum misuse misuse, struct form *form, struct line_copy *copy,
    struct line_record *record)
{
    form->form.single = UINT16_MAX;
    line_verify(copy, &form->form);
    if (misuse == OTHER_SHAPE) {
        record->remainder = 0x61236;
        line_insert(copy, &form->form, record);
    } else {
        record->code[0] = record->code[1] = 0;
        line_rewrite(copy, &form->form, 0, 0, record->code);
    }
}

static void
do_misuse(enum misuse misuse, struct form *form, struct line_copy *copy)
{
    struct line_record record;
    line_get(copy, &form->form, 1, &record);
    unsigned last = line_count(copy) - 1;
    switch (misuse) {
    case GET_BEHIND:
        line_get(copy, &form->form, last + 1, &record);
        break;
    case REMOVE_BEHIND:
        line_remove(copy, &form->form, last + 1);
        break;
    case REWRITE_BEHIND:
        line_rewrite(copy, &form->form, last + 1, 1, record.code);
        break;
    case WIDE_CODE:
        record.code[0] = 8;
        line_rewrite(copy, &form->form, 0, 1, record.code);
        break;
    case WIDE_LONG_CODE:
        record.code[1] = UINT64_C(1) << 40;
        line_rewrite(copy, &form->form, 0, 2, record.code);
        break;
    case WIDE_REMAINDER:
        record.remainder = 1 << 20;
        line_insert(copy, &form->form, &record);
        break;
    case NO_SHAPE:
        line_has_room(copy, &form->form, SHAPES_N, false);
        break;
    case OTHER_SHAPE:
    case RESHAPE_SINGLE:
        do_misuse_single(misuse, form, copy, &record);
        break;
    case DIRTY_LOW:
        copy->word[1] |= 1 << 12; /* right behind the last shape */
        break;
    case DIRTY_HIGH:
        copy->word[7] |= UINT64_C(1) << 19; /* right below the payloads */
        break;
    case TOO_MANY:
        memset(copy, 0, sizeof *copy);
        copy->word[7] = UINT64_C(24) << 56;
        break;
    case TOO_MANY_FAR:
        copy->word[7] |= UINT64_C(4) << 61;
        break;
    case TOO_LONG:
        for (unsigned i = 0; i < 5; i++) {
            record.remainder = 100 + i;
            ck_assert(line_insert(copy, &form->form, &record));
        }
        /* Eight records of shape 15 at once. */
        copy->word[2] |= UINT64_C(0xffffffff) << 16;
        break;
    case TWICE:
        record.remainder = 0x51234;
        line_insert(copy, &form->form, &record);
        break;
    case WRONG_TOTAL:
        form->form.total[1]++;
        form->shapes.total[1]--;
        break;
    default:
        break;
    }
    line_verify(copy, &form->form);
}

/* In a child: the signal that ends it, 0 for none. */
static int
misuse_signal(enum misuse misuse)
{
    static const unsigned width[3][SHAPES_COLUMNS_MAX] = {
        {0}, {3, 5}, {64, 40}};
    struct form form = {.form = {.extra_bits = 4}};
    struct line_copy copy = {{0}};
    form.form.shapes = &form.shapes;
    for (unsigned i = 0; i < SHAPES_N; i++) {
        form_set(&form, i, width[i < 3 ? i : 2]);
    }
    for (unsigned i = 0; i < 3; i++) {
        struct line_record record = {
            .remainder = 0x51234 + i, .shape = 1, .code = {6, 17}};
        ck_assert(line_insert(&copy, &form.form, &record));
    }
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        ck_assert_ptr_nonnull(freopen("/dev/null", "w", stderr));
        do_misuse(misuse, &form, &copy);
        _exit(EXIT_SUCCESS);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

START_TEST(test_misuse)
{
    for (int i = 0; i < MISUSES; i++) {
        ck_assert_msg(misuse_signal((enum misuse)i) == SIGABRT, "%d", i);
    }
    ck_assert_int_eq(misuse_signal(MISUSES), 0);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_layout, test_full, test_words,
        test_random, test_garbage, test_store, test_misuse};
    return run_tests_often("line", tests, COUNT_OF(tests), 2);
}
