/* SPDX-License-Identifier: BSD-3-Clause */
/* proto/command_key: the key of a command of which a beginning is there, and
 * nothing of its value. */
#include "proto/command_key.h"

#include "unit/check_help.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *text, *key;
    unsigned n_keys;
    bool is_stats;
} lines[] = {
    {"get a b  c\r\nget d\r\n", "a", 3, false},
    {"gets 12.cntcm\n", "12.cntcm", 1, false},
    {"gat 60 a b\r\n", "a", 2, false},
    {"mg abc v t\r\n", "abc", 1, false},
    {"set key 0 0 6\r\nSECRET\r\n", "key", 1, false},
    {"incr weibo 1 2\r\n", "weibo", 1, false},
    {"stats slow\r\n", "slow", 1, true},
    {"stats\r\n", "", 0, true},
    {"mn\r\n", "", 0, false},
    {"get abcdef", "abcdef", 1, false},
    {"\r\nSECRET\r\n", "", 0, false},
    {"   ", "", 0, false},
    {"", "", 0, false},
};

static void
read_copy(const char *text, size_t len, bool is_binary,
    struct command_key *out, char key[300])
{
    /* just as many bytes as there are, for AddressSanitizer */
    char *bytes = malloc(len + (len == 0));
    ck_assert_ptr_nonnull(bytes);
    memcpy(bytes, text, len);
    command_key_read(bytes, len, is_binary, out);
    ck_assert_uint_le(out->key.at + out->key.len, len);
    memcpy(key, bytes + out->key.at, out->key.len);
    key[out->key.len] = '\0';
    free(bytes);
}

START_TEST(test_lines)
{
    char key[300];
    struct command_key out;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        size_t len = strlen(lines[i].text);
        read_copy(lines[i].text, len, false, &out, key);
        ck_assert_str_eq(key, lines[i].key);
        ck_assert_uint_eq(out.n_keys, lines[i].n_keys);
        ck_assert_int_eq(out.is_stats, lines[i].is_stats);
        for (size_t cut = 0; cut < len; cut++) {
            read_copy(lines[i].text, cut, false, &out, key);
            ck_assert_ptr_null(strstr(key, "S"));
        }
    }
}
END_TEST

START_TEST(test_packets)
{
    /* a set: 8 bytes of extras, key, value */
    static const char packet[] = "\x80\x01\x00\x03\x08\x00\x00\x00"
                                 "\x00\x00\x00\x11\x00\x00\x00\x00"
                                 "\x00\x00\x00\x00\x00\x00\x00\x00"
                                 "EEEEEEEEkeySECRET";
    static const char stats[] = "\x80\x10\x00\x04\x00\x00\x00\x00"
                                "\x00\x00\x00\x04\x00\x00\x00\x00"
                                "\x00\x00\x00\x00\x00\x00\x00\x00"
                                "slow";
    char key[300];
    struct command_key out;
    for (size_t cut = 0; cut < sizeof packet; cut++) {
        read_copy(packet, cut, true, &out, key);
        size_t has = cut <= 32 ? 0 : cut - 32;
        ck_assert_uint_eq(strlen(key), has < 3 ? has : 3);
        ck_assert_int_eq(strncmp(key, "key", strlen(key)), 0);
        ck_assert_int_eq(out.is_stats, false);
    }
    read_copy(stats, sizeof stats - 1, true, &out, key);
    ck_assert_str_eq(key, "slow");
    ck_assert_int_eq(out.is_stats, true);
}
END_TEST

int
main(void)
{
    TCase *tcase = tcase_create("command_key");
    tcase_add_test(tcase, test_lines);
    tcase_add_test(tcase, test_packets);
    return run_case("command_key", tcase);
}
