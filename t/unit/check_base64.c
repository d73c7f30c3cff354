/* SPDX-License-Identifier: BSD-3-Clause */
/* base/base64: the vectors of RFC 4648, every single character, and what is
 * not base64. Texts lie in blocks of exactly their size, so that ASan sees a
 * read past either end. */
#include "base/base64.h"

#include "unit/check_help.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { OUT_MAX = 64 };

/* Decodes text to out; the number of bytes, or -1. */
static int
decode(const char *text, size_t len, char *out)
{
    char *copy = malloc(len == 0 ? 1 : len);
    size_t n = 0;
    int result = -1;
    ck_assert_ptr_nonnull(copy);
    memcpy(copy, text, len);
    if (base64_check(copy, len, &n)) {
        ck_assert_uint_eq(base64_decode(copy, len, out), n);
        result = (int)n;
    }
    free(copy);
    return result;
}

START_TEST(test_vectors)
{
    static const struct {
        const char *text, *bytes;
    } rows[] = {{"Zg==", "f"}, {"Zm8=", "fo"}, {"Zm9v", "foo"},
        {"Zm9vYg==", "foob"}, {"Zm9vYmE=", "fooba"}, {"Zm9vYmFy", "foobar"},
        {"AAAA", "\0\0\0"}, {"//79", "\xff\xfe\xfd"}, {"+/A=", "\xfb\xf0"}};
    static const int len[] = {1, 2, 3, 4, 5, 6, 3, 3, 2};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char out[OUT_MAX];
        ck_assert_int_eq(
            decode(rows[i].text, strlen(rows[i].text), out), len[i]);
        ck_assert_mem_eq(out, rows[i].bytes, (size_t)len[i]);
        ck_assert_uint_eq(base64_encode(rows[i].bytes, (size_t)len[i], out),
            strlen(rows[i].text));
        ck_assert_mem_eq(out, rows[i].text, strlen(rows[i].text));
    }
}
END_TEST

START_TEST(test_round_trip)
{
    char bytes[256];
    char text[OUT_MAX * 8];
    char back[OUT_MAX * 8];
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (char)i;
    }
    for (size_t len = 1; len <= sizeof bytes; len++) {
        size_t n = base64_encode(bytes, len, text);
        ck_assert_uint_eq(n, (len + 2) / 3 * 4);
        ck_assert_int_eq(decode(text, n, back), (int)len);
        ck_assert_mem_eq(back, bytes, len);
    }
    ck_assert_uint_eq(base64_encode(bytes, 0, text), 0);
}
END_TEST

START_TEST(test_refused)
{
    static const char *const texts[] = {"", "Z", "Zg",
        "Zg=", "Zg===", "====", "Z===", "Zg==Zg==", "Zh==", "Zm9=", "Zm 8",
        "Zm9-", "Zm9_", "=Zg="};
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        char out[OUT_MAX];
        ck_assert_msg(decode(texts[i], strlen(texts[i]), out) == -1,
            "\"%s\" was taken", texts[i]);
    }
}
END_TEST

/* Of the 256 characters just those of the alphabet are taken, and they stand
 * for what their place in it says. */
START_TEST(test_alphabet)
{
    static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                   "abcdefghijklmnopqrstuvwxyz0123456789+/";
    for (int c = 0; c < 256; c++) {
        char text[] = {'A', 'A', 'A', (char)c};
        char out[OUT_MAX];
        const char *place = c == 0 ? NULL : strchr(alphabet, c);
        int n = decode(text, sizeof text, out);
        if (place == NULL) {
            ck_assert_int_eq(n, c == '=' ? 2 : -1);
            continue;
        }
        ck_assert_int_eq(n, 3);
        ck_assert_int_eq(out[2], place - alphabet);
    }
}
END_TEST

int
main(void)
{
    TCase *tcase = tcase_create("base64");
    tcase_add_test(tcase, test_vectors);
    tcase_add_test(tcase, test_round_trip);
    tcase_add_test(tcase, test_refused);
    tcase_add_test(tcase, test_alphabet);
    return run_case("base64", tcase);
}
