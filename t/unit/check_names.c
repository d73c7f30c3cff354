/* SPDX-License-Identifier: BSD-3-Clause */
/* wal/names: what is made is read back; nothing else is a name. */
#include "wal/names.h"

#include "unit/check_help.h"

static const struct {
    enum names_kind kind;
    uint64_t number;
    const char *name;
} named[] = {
    {NAMES_LOG, 1, "log-00000000000000000001.wal"},
    {NAMES_LOG, UINT64_MAX, "log-18446744073709551615.wal"},
    {NAMES_LOG_NEW, 0, "log-00000000000000000000.wal.new"},
    {NAMES_CHECKPOINT, 4711, "checkpoint-00000000000000004711.ckpt"},
    {NAMES_CUT, 12, "cut-00000000000000000012.wal"},
    {NAMES_CUT_NEW, 13, "cut-00000000000000000013.wal.new"},
};

static const char *const not_named[] = {"", "log-", "log-1.wal",
    "log-0000000000000000001.wal", "log-000000000000000000001.wal",
    "log-18446744073709551616.wal", "log-0000000000000000000a.wal",
    "log- 0000000000000000001.wal", "log-+0000000000000000001.wal",
    "log-00000000000000000001.wa", "log-00000000000000000001.wal.old",
    "log-00000000000000000001.wal.new2", "Log-00000000000000000001.wal",
    "log-00000000000000000001.ckpt", "log-00000000000000000001",
    "log-00000000000000000001.new", "log-00000000000000000001.wal.1",
    "checkpoint-00000000000000000001",
    "checkpoint-00000000000000000001.ckpt.new", "checkpoint-1.ckpt",
    "MANIFEST", "MANIFEST.new", "00000000000000000001"};

START_TEST(test_names_are_read_back)
{
    for (size_t i = 0; i < COUNT_OF(named); i++) {
        char name[NAMES_BYTES];
        enum names_kind kind = NAMES_KINDS;
        uint64_t number = 99;
        names_make(name, named[i].kind, named[i].number);
        ck_assert_str_eq(name, named[i].name);
        ck_assert(names_parse(name, &kind, &number));
        ck_assert_int_eq((int)kind, (int)named[i].kind);
        ck_assert_uint_eq(number, named[i].number);
    }
}
END_TEST

START_TEST(test_other_names_are_none)
{
    for (size_t i = 0; i < COUNT_OF(not_named); i++) {
        /* exactly its bytes, for ASan */
        char *name = copy_of(not_named[i], strlen(not_named[i]) + 1);
        enum names_kind kind;
        uint64_t number;
        ck_assert_msg(!names_parse(name, &kind, &number), "%s", not_named[i]);
        free(name);
    }
}
END_TEST

int
main(void)
{
    const TTest *test[] = {
        test_names_are_read_back, test_other_names_are_none};
    return run_tests("names", test, COUNT_OF(test));
}
