/* SPDX-License-Identifier: BSD-3-Clause */
/* base/buf: appends of every kind, growth, failure, consumption, and random
 * operations against a plain array. */
#include "base/buf.h"

#include "unit/check_help.h"

#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 20000, MODEL_BYTES = 65536, PIECE_MAX = 700 };

static uint64_t
next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void
check_content(const struct buf *buf, const char *expected, size_t len)
{
    ck_assert_uint_eq(buf->len, len);
    ck_assert_uint_le(buf->len, buf->capacity);
    if (len > 0) {
        ck_assert_mem_eq(buf->data, expected, len);
    }
}

START_TEST(test_empty)
{
    struct buf buf = {0};

    buf_add(&buf, NULL, 0);
    buf_consume(&buf, 0);
    buf_clear(&buf);
    ck_assert_ptr_null(buf.data);
    ck_assert(!buf.failed);
    buf_fini(&buf);
    ck_assert_ptr_null(buf.data);
    ck_assert_uint_eq(buf.capacity, 0);
}
END_TEST

START_TEST(test_appends)
{
    const char *expected = "VALUE 18446744073709551615 0 x=-7 y=zed";
    struct buf buf = {0};

    buf_add(&buf, "VALUE ", 6);
    buf_add_u64(&buf, UINT64_MAX);
    buf_add_text(&buf, " ");
    buf_add_u64(&buf, 0);
    buf_add_text(&buf, "");
    buf_addf(&buf, " x=%d y=%s", -7, "zed");
    buf_addf(&buf, "%s", "");
    check_content(&buf, expected, strlen(expected));
    ck_assert_uint_eq(buf.capacity, BUF_START_BYTES);
    buf_fini(&buf);
}
END_TEST

START_TEST(test_growth_doubles)
{
    struct buf buf = {0};
    char *at = buf_reserve(&buf, 0);

    ck_assert_ptr_nonnull(at);
    ck_assert_uint_eq(buf.capacity, BUF_START_BYTES);
    ck_assert_uint_eq(buf.len, 0);
    at = buf_reserve(&buf, BUF_START_BYTES);
    ck_assert_uint_eq(buf.capacity, BUF_START_BYTES);
    memset(at, 'a', BUF_START_BYTES);
    buf.len = BUF_START_BYTES;
    buf_add(&buf, "b", 1);
    ck_assert_uint_eq(buf.capacity, 2 * BUF_START_BYTES);
    ck_assert_int_eq(buf.data[0], 'a');
    ck_assert_int_eq(buf.data[BUF_START_BYTES], 'b');
    ck_assert_ptr_nonnull(buf_reserve(&buf, 5 * BUF_START_BYTES));
    ck_assert_uint_eq(buf.capacity, 8 * BUF_START_BYTES);
    buf_fini(&buf);
}
END_TEST

/* Sizes that no machine has: nothing changes but failed, until cleared. */
START_TEST(test_failure)
{
    struct buf buf = {0};

    ck_assert_ptr_null(buf_reserve(&buf, SIZE_MAX));
    ck_assert(buf.failed);
    ck_assert_ptr_null(buf.data);
    buf_clear(&buf);
    ck_assert(!buf.failed);
    buf_add_text(&buf, "kept");
    ck_assert_ptr_null(buf_reserve(&buf, SIZE_MAX));
    ck_assert_ptr_null(buf_reserve(&buf, SIZE_MAX - 4));
    ck_assert(buf.failed);
    check_content(&buf, "kept", 4);
    ck_assert_uint_eq(buf.capacity, BUF_START_BYTES);
    buf_add_text(&buf, "!");
    check_content(&buf, "kept!", 5);
    ck_assert(buf.failed);
    buf_fini(&buf);
    ck_assert(!buf.failed);
}
END_TEST

START_TEST(test_consume)
{
    struct buf buf = {0};

    buf_add_text(&buf, "abcdef");
    buf_consume(&buf, 2);
    check_content(&buf, "cdef", 4);
    buf_consume(&buf, 4);
    check_content(&buf, "", 0);
    buf_add_text(&buf, "g");
    check_content(&buf, "g", 1);
    buf_clear(&buf);
    ck_assert_uint_eq(buf.len, 0);
    ck_assert_uint_eq(buf.capacity, BUF_START_BYTES);
    buf_fini(&buf);
}
END_TEST

START_TEST(test_shrink)
{
    struct buf buf = {0};
    ck_assert_ptr_nonnull(buf_reserve(&buf, 100000));
    buf_add_text(&buf, "abc");
    buf_shrink(&buf, 1000);
    ck_assert_uint_eq(buf.capacity, 1000);
    buf_shrink(&buf, 2000); /* it has less */
    ck_assert_uint_eq(buf.capacity, 1000);
    check_content(&buf, "abc", 3);
    buf_add(&buf, (char[998]){0}, 998);
    ck_assert_uint_ge(buf.capacity, 1001);
    buf_fini(&buf);
}
END_TEST

/* A long formatted text has to make room for itself. */
START_TEST(test_addf_grows)
{
    struct buf buf = {0};
    char text[3 * BUF_START_BYTES];

    memset(text, 'q', sizeof text);
    text[sizeof text - 1] = '\0';
    buf_add_text(&buf, "1");
    buf_addf(&buf, "%s|", text);
    ck_assert_uint_eq(buf.len, sizeof text + 1);
    ck_assert_int_eq(buf.data[0], '1');
    ck_assert_mem_eq(buf.data + 1, text, sizeof text - 1);
    ck_assert_int_eq(buf.data[buf.len - 1], '|');
    buf_fini(&buf);
}
END_TEST

START_TEST(test_random)
{
    static char model[MODEL_BYTES];
    char piece[PIECE_MAX];
    uint64_t state = 0x9e3779b97f4a7c15;
    struct buf buf = {0};
    size_t model_len = 0, n;

    for (int round = 0; round < ROUNDS; round++) {
        n = next_random(&state) % PIECE_MAX;
        if (next_random(&state) % 2 == 0 || model_len + n > MODEL_BYTES) {
            n = n > model_len ? model_len : n;
            memmove(model, model + n, model_len - n);
            model_len -= n;
            buf_consume(&buf, n);
        } else {
            memset(piece, (int)('a' + round % 26), n);
            memcpy(model + model_len, piece, n);
            model_len += n;
            buf_add(&buf, piece, n);
        }
        check_content(&buf, model, model_len);
    }
    buf_fini(&buf);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("buf");
    TCase *tcase = tcase_create("buf");
    SRunner *sr = srunner_create(suite);
    int failed;

    tcase_add_test(tcase, test_empty);
    tcase_add_test(tcase, test_appends);
    tcase_add_test(tcase, test_growth_doubles);
    tcase_add_test(tcase, test_failure);
    tcase_add_test(tcase, test_consume);
    tcase_add_test(tcase, test_shrink);
    tcase_add_test(tcase, test_addf_grows);
    tcase_add_test(tcase, test_random);
    suite_add_tcase(suite, tcase);
    srunner_set_tap(sr, "-");
    srunner_run_all(sr, CK_SILENT);
    failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
