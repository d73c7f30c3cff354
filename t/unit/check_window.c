/* SPDX-License-Identifier: BSD-3-Clause */
/* wal/window: what is seen through it is what the file has, whatever is asked
 * for and wherever the file ends. */
#include "wal/window.h"

#include "lib/still_disk.h"
#include "unit/check_help.h"

#include <errno.h>

enum { FILE_BYTES = 5 * WINDOW_ROOM + 77 };

static uint8_t *
make_file(struct still_disk *still)
{
    uint8_t *bytes = malloc(FILE_BYTES);
    uint64_t state = 3;

    ck_assert_ptr_nonnull(bytes);
    for (size_t i = 0; i < FILE_BYTES; i++) {
        bytes[i] = (uint8_t)random_below(&state, 256);
    }
    still_disk_init(still);
    still_disk_add(still, "x", bytes, FILE_BYTES);
    return bytes;
}

/* Goes through at..end of the file in random steps. */
static void
walk(struct window *window, const uint8_t *bytes, uint64_t at, uint64_t end,
    uint64_t *state)
{
    uint64_t stop = end < FILE_BYTES ? end : FILE_BYTES;

    window_open(window, 0, at, end);
    while (at < stop) {
        size_t need = random_below(state, WINDOW_NEED_MAX + 1);
        size_t skip;

        need >>= random_below(state, 20);
        ck_assert_int_eq(window_need(window, need), 0);
        ck_assert_uint_eq(window->at, at);
        ck_assert_uint_le(at + window->n, stop);
        ck_assert(window->n >= need || at + window->n == stop);
        ck_assert_mem_eq(window->bytes, bytes + at, window->n);
        skip = random_below(state, window->n + 1);
        window_skip(window, skip);
        at += skip;
    }
    ck_assert_int_eq(window_need(window, 1), 0);
    ck_assert_uint_eq(window->n, 0);
}

START_TEST(test_walk)
{
    struct still_disk still;
    struct window window;
    uint8_t *bytes = make_file(&still);
    uint64_t state = 1;

    ck_assert_int_eq(window_init(&window, &still.disk), 0);
    for (int round = 0; round < 5; round++) {
        uint64_t at = random_below(&state, FILE_BYTES);

        walk(&window, bytes, at, FILE_BYTES, &state);
        walk(&window, bytes, at / 4, at, &state);
    }
    walk(&window, bytes, FILE_BYTES, FILE_BYTES, &state);
    ck_assert_uint_gt(window.n_read, FILE_BYTES);
    window_fini(&window);
    free(bytes);
}
END_TEST

/* The file is shorter than it was said to be. */
START_TEST(test_short_file)
{
    struct still_disk still;
    struct window window;
    uint8_t *bytes = make_file(&still);
    uint64_t state = 1, n_calls;

    ck_assert_int_eq(window_init(&window, &still.disk), 0);
    walk(&window, bytes, 4 * WINDOW_ROOM, FILE_BYTES + 1000, &state);
    ck_assert_uint_eq(window.end, FILE_BYTES);
    n_calls = still.n_calls; /* once it is known it is not asked again */
    ck_assert_int_eq(window_need(&window, 9), 0);
    ck_assert_uint_eq(still.n_calls, n_calls);
    window_fini(&window);
    free(bytes);
}
END_TEST

START_TEST(test_disk_fails)
{
    struct still_disk still;
    struct window window;
    uint8_t *bytes = make_file(&still);

    ck_assert_int_eq(window_init(&window, &still.disk), 0);
    window_open(&window, 0, 0, FILE_BYTES);
    still.fail_at = 2;
    ck_assert_int_eq(window_need(&window, 10), 0);
    window_skip(&window, window.n - 5);
    ck_assert_int_eq(window_need(&window, 10), EIO);
    ck_assert_int_eq(window_need(&window, 10), 0); /* it was the disk's */
    ck_assert_mem_eq(window.bytes, bytes + window.at, window.n);
    window_fini(&window);
    free(bytes);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_walk, test_short_file, test_disk_fails};

    return run_tests("window", tests, COUNT_OF(tests));
}
