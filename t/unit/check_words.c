/* SPDX-License-Identifier: BSD-3-Clause */
/* proto/words: lines are cut at spaces, and at nothing else. */
#include "proto/words.h"

#include "unit/check_help.h"

#include <stdio.h>

/* The words of a line, each in brackets. */
static void
expect_words(const char *line, const char *expected)
{
    char said[256];
    size_t n = 0;
    char *bytes = copy_of(line, strlen(line));
    struct words words = {bytes, 0, (uint32_t)strlen(line)};
    struct span word;
    said[0] = '\0';
    while (words_next(&words, &word)) {
        n += (size_t)snprintf(said + n, sizeof said - n, "[%.*s]",
            (int)word.len, bytes + word.at);
    }
    ck_assert_str_eq(said, expected);
    ck_assert_uint_eq(words.at, words.end);
    ck_assert(!words_next(&words, &word));
    free(bytes);
}

START_TEST(test_words)
{
    expect_words("", "");
    expect_words(" ", "");
    expect_words("     ", "");
    expect_words("a", "[a]");
    expect_words(" a", "[a]");
    expect_words("a ", "[a]");
    expect_words("get a b", "[get][a][b]");
    expect_words("  get   a  b   ", "[get][a][b]");
    expect_words("a\tb c\rd", "[a\tb][c\rd]");
    expect_words("\xff \x80", "[\xff][\x80]");
}
END_TEST

START_TEST(test_nul_is_a_byte)
{
    static const char line[] = {'a', '\0', 'b', ' ', '\0'};
    struct words words = {line, 0, sizeof line};
    struct span word;
    ck_assert(words_next(&words, &word));
    ck_assert_uint_eq(word.at, 0);
    ck_assert_uint_eq(word.len, 3);
    ck_assert(words_next(&words, &word));
    ck_assert_uint_eq(word.at, 4);
    ck_assert_uint_eq(word.len, 1);
    ck_assert(!words_next(&words, &word));
}
END_TEST

START_TEST(test_rest)
{
    static const char line[] = "set weibo  1 2";
    struct words words = {line, 0, sizeof line - 1};
    struct span word;
    ck_assert_uint_eq(words_rest(&words).len, sizeof line - 1);
    ck_assert(words_next(&words, &word));
    ck_assert(words_next(&words, &word));
    struct span rest = words_rest(&words);
    ck_assert_uint_eq(rest.at, 9);
    ck_assert_uint_eq(rest.len, 5);
    struct words again = words_of(line, rest);
    ck_assert(words_next(&again, &word));
    ck_assert_uint_eq(word.at, 11); /* spans count from the line's start */
    ck_assert(words_next(&again, &word));
    ck_assert_uint_eq(word.at, 13);
    ck_assert(!words_next(&again, &word));
    ck_assert_uint_eq(words_rest(&again).len, 0);
}
END_TEST

START_TEST(test_span_is)
{
    static const char line[] = "gets";
    ck_assert(span_is(line, (struct span){0, 4}, "gets"));
    ck_assert(span_is(line, (struct span){0, 3}, "get"));
    ck_assert(!span_is(line, (struct span){0, 4}, "get"));
    ck_assert(!span_is(line, (struct span){0, 3}, "gets"));
    ck_assert(!span_is(line, (struct span){0, 3}, "Get"));
    ck_assert(span_is(line, (struct span){4, 0}, ""));
    ck_assert(!span_is(line, (struct span){0, 1}, ""));
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        test_words, test_nul_is_a_byte, test_rest, test_span_is};
    return run_tests("words", tests, COUNT_OF(tests));
}
