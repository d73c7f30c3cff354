/* SPDX-License-Identifier: BSD-3-Clause */
/* base/uri: every single byte, and what is one word already. */
#include "base/uri.h"

#include "unit/check_help.h"

#include <check.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { BYTES = 256, OUT_MAX = 64 };

/* What uri_encode_word makes of text, as a string. */
static const char *
word_of(const char *text, size_t len, char out[OUT_MAX])
{
    out[uri_encode_word(text, len, out)] = '\0';
    return out;
}

START_TEST(test_every_byte)
{
    for (int byte = 0; byte < BYTES; byte++) {
        char c = (char)byte;
        char out[OUT_MAX], expected[OUT_MAX];
        bool stays = byte < 0x80 &&
            (isalnum(byte) || strchr("-._~", byte) != NULL) && byte != 0;
        bool is_word = byte > ' ' && byte != 0x7f;
        (void)snprintf(expected, sizeof expected, stays ? "%c" : "%%%02X",
            (unsigned)byte);
        out[uri_encode(&c, 1, out)] = '\0';
        ck_assert_str_eq(out, expected);
        ck_assert(uri_is_word(&c, 1) == is_word);
        if (is_word) {
            (void)snprintf(expected, sizeof expected, "%c", byte);
        }
        ck_assert_str_eq(word_of(&c, 1, out), expected);
    }
}
END_TEST

START_TEST(test_words)
{
    char out[OUT_MAX];
    ck_assert(!uri_is_word("", 0));
    ck_assert_str_eq(word_of("", 0, out), "");
    ck_assert_str_eq(word_of("user:1%0A/x", 11, out), "user:1%0A/x");
    ck_assert_str_eq(
        word_of("a:b\r\nEND\r\n", 10, out), "a%3Ab%0D%0AEND%0D%0A");
    ck_assert_str_eq(word_of("a\0b", 3, out), "a%00b");
    ck_assert_str_eq(word_of("\xc3\xa9", 2, out), "\xc3\xa9");
}
END_TEST

int
main(void)
{
    TCase *tcase = tcase_create("uri");
    tcase_add_test(tcase, test_every_byte);
    tcase_add_test(tcase, test_words);
    return run_case("uri", tcase);
}
