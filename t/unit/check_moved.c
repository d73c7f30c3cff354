/* SPDX-License-Identifier: BSD-3-Clause */
/* base/moved: handovers as a list, as texts that come from anywhere, and what
 * they say of ids. */
#include "base/moved.h"

#include "base/err.h"
#include "unit/check_help.h"

#include <stdio.h>
#include <string.h>

static struct moved_one
one_of(const char *rule, const char *address)
{
    struct moved_one one;
    ck_assert_int_eq(
        moved_one_set(&one, rule, strlen(rule), address, strlen(address)), 0);
    return one;
}

static void
put(struct moved_list *list, const char *rule, const char *address)
{
    struct moved_one one = one_of(rule, address);
    ck_assert(moved_list_put(list, &one));
}

START_TEST(test_texts)
{
    static const struct {
        const char *rule, *address;
        int err;
    } rows[] = {{"modulo:1/2", "db:1", 0}, {"crc32a:3/4", "[::1]:11211", 0},
        {"fnv1a_64:0/1", "", 0}, {"modulo:2/2", "db:1", ERR_BAD_RULE},
        {"modulo:1", "db:1", ERR_BAD_RULE}, {"", "db:1", ERR_BAD_RULE},
        {"ketama:1/2", "db:1", ERR_BAD_RULE},
        {"modulo:0/1,a:1:1", "db:1", ERR_BAD_RULE},
        {"modulo:1/2", "db", ERR_BAD_ADDRESS},
        {"modulo:1/2", "db:0", ERR_BAD_ADDRESS},
        {"modulo:1/2", ":1", ERR_BAD_ADDRESS},
        {"modulo:1/2", "d b:1", ERR_BAD_ADDRESS}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct moved_one one;
        size_t rule_len = strlen(rows[i].rule);
        size_t len = strlen(rows[i].address);
        ck_assert_int_eq(
            moved_one_set(&one, rows[i].rule, rule_len, rows[i].address, len),
            rows[i].err);
        ck_assert_int_eq(
            moved_one_is_right(rows[i].rule, rule_len, rows[i].address, len),
            rows[i].err == 0);
        if (rows[i].err == 0) {
            ck_assert_str_eq(one.rule, rows[i].rule);
            ck_assert_str_eq(one.address, rows[i].address);
        }
    }
    /* a rule in another spelling is not how it is stored */
    ck_assert_str_eq(one_of("modulo:01/2", "db:1").rule, "modulo:1/2");
    ck_assert(!moved_one_is_right("modulo:01/2", 11, "db:1", 4));
    ck_assert(!moved_one_is_right("modulo:1/2", 10, "db:1\0", 5));
}
END_TEST

START_TEST(test_longest)
{
    char address[ADDRESS_MAX + 2];
    struct moved_one one;
    memset(address, 'x', sizeof address);
    memcpy(address + ADDRESS_MAX - 2, ":7", 2);
    ck_assert_int_eq(
        moved_one_set(&one, "modulo:0/2", 10, address, ADDRESS_MAX), 0);
    ck_assert_uint_eq(strlen(one.address), ADDRESS_MAX);
    memcpy(address + ADDRESS_MAX - 1, ":7", 2);
    ck_assert_int_eq(
        moved_one_set(&one, "modulo:0/2", 10, address, ADDRESS_MAX + 1),
        ERR_BAD_ADDRESS);
}
END_TEST

START_TEST(test_list)
{
    struct moved_list list = {0};
    put(&list, "modulo:1/2", "");
    ck_assert_uint_eq(list.n, 0);
    put(&list, "modulo:0/4", "a:1");
    put(&list, "modulo:1/4", "b:1");
    put(&list, "modulo:2/4", "c:1");
    put(&list, "modulo:1/4", "d:1");
    ck_assert_uint_eq(list.n, 3);
    ck_assert_str_eq(moved_list_find(&list, "modulo:1/4")->address, "d:1");
    put(&list, "modulo:1/4", "");
    ck_assert_uint_eq(list.n, 2);
    ck_assert_ptr_null(moved_list_find(&list, "modulo:1/4"));
    ck_assert_str_eq(list.one[0].rule, "modulo:0/4");
    ck_assert_str_eq(list.one[1].rule, "modulo:2/4");
}
END_TEST

START_TEST(test_full)
{
    struct moved_list list = {0};
    char rule[OWNS_RULE_BYTES];
    for (unsigned i = 0; i < MOVED_MAX; i++) {
        snprintf(rule, sizeof rule, "modulo:%u/100", i);
        put(&list, rule, "a:1");
    }
    struct moved_one more = one_of("modulo:99/100", "a:1");
    ck_assert(!moved_list_put(&list, &more));
    ck_assert_uint_eq(list.n, MOVED_MAX);
    put(&list, "modulo:63/100", "b:1"); /* in the place of the last one */
    put(&list, "modulo:99/100", "");    /* is not there: nothing */
    ck_assert_uint_eq(list.n, MOVED_MAX);
    put(&list, "modulo:0/100", "");
    ck_assert(moved_list_put(&list, &more));
}
END_TEST

START_TEST(test_ids)
{
    struct moved_list list = {0};
    struct moved *moved;
    put(&list, "modulo:1/4", "a:1");
    put(&list, "modulo:1/2", "b:1");
    ck_assert_int_eq(moved_create(&list, &moved), 0);
    for (uint64_t id = 0; id < 1000; id++) {
        const struct moved_one *one = moved_find(moved, id);
        if (id % 2 == 0) {
            ck_assert_ptr_null(one);
        } else {
            ck_assert_str_eq(one->address, id % 4 == 1 ? "a:1" : "b:1");
        }
    }
    ck_assert_uint_eq(moved_list_of(moved)->n, 2);
    moved_destroy(&moved);
    ck_assert_ptr_null(moved);
    moved_destroy(&moved);
    ck_assert_uint_eq(moved_list_of(NULL)->n, 0);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        test_texts, test_longest, test_list, test_full, test_ids};
    return run_tests("moved", tests, COUNT_OF(tests));
}
