/* SPDX-License-Identifier: BSD-3-Clause */
/* engine/line_read.h beside a writer of the same line, which is of 16 shapes,
 * or single: then nothing but what names the shape tells its records apart. */
#include "engine/line.h"

#include "unit/check_help.h"
#include "unit/line_form.h"
#include "unit/line_reader.h"

#include <pthread.h>
#include <stdatomic.h>

static const struct line_reader *const readers[] = {&line_reader_portable,
    &line_reader_sse2, &line_reader_avx2, &line_reader_neon};

/* A line under a sequence counter; each record has the same code in both
 * columns, so that a torn read shows. */
struct watched {
    struct form form;
    struct line line;
    _Atomic uint32_t sequence;
    atomic_bool done;
};

enum { WATCHED_RECORDS = 6, WATCHED_CHANGES = 30000 };

static uint64_t
remainder_of(const struct watched *watched, uint64_t i)
{
    return watched->form.form.single != 0 ? i << LINE_TAG_BITS : i;
}

struct watcher {
    struct watched *watched;
    const struct line_reader *reader;
    unsigned seen, wrong;
};

static void *
watch(void *argument)
{
    struct watcher *watcher = argument;
    struct watched *watched = watcher->watched;
    const struct line_form *form = &watched->form.form;
    const struct line *line = &watched->line;
    const struct line_reader *reader = watcher->reader;
    bool done = false;
    for (uint64_t i = 0; !done || watcher->seen == 0; i++) {
        struct line_hit hit;
        uint64_t code[2] = {0, 1};
        done = atomic_load(&watched->done);
        /* acquire: the look comes after. */
        uint32_t before =
            atomic_load_explicit(&watched->sequence, memory_order_acquire);
        int found = reader->find(line, form,
            remainder_of(watched, i % WATCHED_RECORDS), false, &hit);
        if (found) {
            code[0] = reader->value(line, form, &hit, 0);
            code[1] = reader->value(line, form, &hit, 1);
        }
        reader->fence();
        /* relaxed: the fence or the reader's own loads order it. */
        if (before % 2 == 0 &&
            atomic_load_explicit(&watched->sequence, memory_order_relaxed) ==
                before) {
            watcher->seen++;
            watcher->wrong += !found || code[0] != code[1];
        }
    }
    return NULL;
}

/* Changes shapes and order; the records 0..5 are always there. */
static void
change_watched(struct watched *watched, uint64_t *state)
{
    const struct line_form *form = &watched->form.form;
    struct line_copy copy;
    struct line_record record;
    line_load(&watched->line, &copy);
    unsigned index = (unsigned)random_below(state, WATCHED_RECORDS);
    unsigned shape = (unsigned)random_below(state, SHAPES_N);
    line_get(&copy, form, index, &record);
    shape = form_shape(&watched->form, record.remainder, shape);
    unsigned width = watched->form.shapes.field[0][shape].width;
    record.code[0] = record.code[1] = random_bits(state, width);
    if (shape % 2 == 0) {
        ck_assert(line_rewrite(&copy, form, index, shape, record.code));
    } else {
        record.shape = (uint8_t)shape;
        line_remove(&copy, form, index);
        ck_assert(line_insert(&copy, form, &record));
    }
    uint32_t sequence =
        atomic_load_explicit(&watched->sequence, memory_order_relaxed);
    /* relaxed: the stores of words are release and come after. */
    atomic_store_explicit(
        &watched->sequence, sequence + 1, memory_order_relaxed);
    line_store(&watched->line, &copy);
    /* release: after the words. */
    atomic_store_explicit(
        &watched->sequence, sequence + 2, memory_order_release);
}

START_TEST(test_watched)
{
    uint64_t state = 3;
    struct watched watched = {.sequence = 0};
    watched.form.form.shapes = &watched.form.shapes;
    for (unsigned i = 0; i < SHAPES_N; i++) {
        unsigned bits = _i == 1 ? 20 : 2 * i;
        unsigned width[SHAPES_COLUMNS_MAX] = {bits, bits};
        form_set(&watched.form, i, width);
    }
    if (_i == 1) {
        form_make_single(&watched.form);
    }
    struct line_copy copy = {{0}};
    for (unsigned i = 0; i < WATCHED_RECORDS; i++) {
        struct line_record record = {.remainder = remainder_of(&watched, i)};
        record.shape = (uint8_t)form_shape(&watched.form, record.remainder, 0);
        ck_assert(line_insert(&copy, &watched.form.form, &record));
    }
    line_store(&watched.line, &copy);
    struct watcher watcher[COUNT_OF(readers)];
    pthread_t thread[COUNT_OF(readers)];
    size_t n = 0;
    for (size_t i = 0; i < COUNT_OF(readers); i++) {
        if (readers[i]->runs()) {
            watcher[n] = (struct watcher){&watched, readers[i], 0, 0};
            ck_assert_int_eq(
                pthread_create(&thread[n], NULL, watch, &watcher[n]), 0);
            n++;
        }
    }
    for (unsigned i = 0; i < WATCHED_CHANGES; i++) {
        change_watched(&watched, &state);
    }
    atomic_store(&watched.done, true);
    for (size_t i = 0; i < n; i++) {
        ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
        ck_assert_uint_gt(watcher[i].seen, 0);
        ck_assert_uint_eq(watcher[i].wrong, 0);
    }
}
END_TEST

int
main(void)
{
    const TTest *test[] = {test_watched};
    return run_tests_often("line threads", test, COUNT_OF(test), 2);
}
