/* SPDX-License-Identifier: BSD-3-Clause */
/* names/own_id: which bytes are a name, and names that are their own id. */
#include "names/own_id.h"

#include "unit/check_help.h"

/* That the name has this id, and the id this name. */
static void
check_id(const char *name, size_t len, uint64_t want)
{
    char again[OWN_DIGITS_MAX];
    uint64_t id;
    ck_assert(own_id_of(name, len, &id));
    ck_assert_uint_eq(id, want);
    ck_assert_uint_lt(id, OWN_ID_END);
    ck_assert_uint_eq(own_id_name(id, again), len);
    ck_assert_mem_eq(again, name, len);
}

static void
check_none(const char *name, size_t len)
{
    uint64_t id;
    ck_assert_msg(!own_id_of(name, len, &id), "%.*s", (int)len, name);
}

/* The ends of each alphabet and of each length, by hand. */
START_TEST(test_edges)
{
    const uint64_t lower = UINT64_C(6765811783780036260); /* 37 + ... 37^12 */
    const uint64_t mixed = UINT64_C(1171221845949812800); /* 64 + ... 64^10 */
    check_id("0", 1, 0);
    check_id("9", 1, 9);
    check_id("_", 1, 10);
    check_id("a", 1, 11);
    check_id("z", 1, 36);
    check_id("00", 2, 37);
    check_id("000", 3, 37 + 37 * 37);
    check_id("zz", 2, 37 + 37 * 37 - 1);
    check_id("zzzzzzzzzzzz", 12, lower - 1);
    check_id("-", 1, lower);
    check_id("A", 1, lower + 11);
    check_id("--", 2, lower + 64);
    check_id("zzzzzzzzzZ", 10, lower + mixed - 64 + 36);
    check_id("Zzzzzzzzzz", 10, lower + mixed - 1 - (UINT64_C(27) << 54));
    check_id("0000000000000", 13, lower + mixed + UINT64_C(1111111111110));
    check_id(
        "00000000000000000", 17, lower + mixed + UINT64_C(11111111111111110));
    check_id("99999999999999999", 17,
        lower + mixed + UINT64_C(111111111111111110) - 1);
    char again[OWN_DIGITS_MAX];
    ck_assert_uint_eq(
        own_id_name(lower + mixed + UINT64_C(111111111111111110), again), 0);
    ck_assert_uint_eq(own_id_name(OWN_ID_END - 1, again), 0);
    ck_assert_uint_eq(own_id_name(OWN_ID_END, again), 0);
    ck_assert_uint_eq(own_id_name(UINT64_MAX, again), 0);
    /* what the first alphabet has is no id of another one */
    ck_assert_uint_eq(own_id_name(lower + 1, again), 0);
    ck_assert_uint_eq(own_id_name(lower + mixed, again), 0);
}
END_TEST

START_TEST(test_others)
{
    check_none("", 0);
    check_none("zzzzzzzzzzzzz", 13);
    check_none("zzzzzzzzzzA", 11);
    check_none("-----------", 11);
    check_none("000000000000000000", 18);
    check_none("a.b", 3);
    check_none("1 2", 3);
    check_none("a\0b", 3);
    check_none("\xc3\xa9", 2);
    for (unsigned byte = 0; byte < 256; byte++) {
        char name[] = {'A', (char)byte, 'b'};
        uint64_t id;
        bool is_letter = byte == '-' || byte == '_' ||
            (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') ||
            (byte >= 'a' && byte <= 'z');
        ck_assert_int_eq(own_id_of(name, sizeof name, &id), is_letter);
        bool is_byte = byte > ' ' && byte != 127;
        ck_assert_int_eq(name_is_valid(name, sizeof name), is_byte);
        ck_assert_int_eq(name_is_valid(name + 1, 1), is_byte);
    }
}
END_TEST

START_TEST(test_valid)
{
    char name[NAME_BYTES_MAX + 1];
    memset(name, '\xff', sizeof name);
    ck_assert(!name_is_valid(name, 0));
    ck_assert(name_is_valid(name, 1));
    ck_assert(name_is_valid(name, NAME_BYTES_MAX));
    ck_assert(!name_is_valid(name, NAME_BYTES_MAX + 1));
    ck_assert(!name_is_valid(name, SIZE_MAX));
    name[NAME_BYTES_MAX - 1] = ' ';
    ck_assert(!name_is_valid(name, NAME_BYTES_MAX));
}
END_TEST

/* Any id is a name's that has that id, or none's; any short name has one. */
START_TEST(test_random)
{
    static const char letters[] = "0123456789_abcdefghijklmnopqrstuvwxyz-AZ";
    uint64_t random = 1;
    for (unsigned i = 0; i < 200000; i++) {
        char name[OWN_DIGITS_MAX];
        uint64_t id = random_below(&random, OWN_ID_END), again;
        id >>= random_below(&random, 63);
        size_t len = own_id_name(id, name);
        if (len > 0) {
            ck_assert(own_id_of(name, len, &again));
            ck_assert_uint_eq(again, id);
        }
        unsigned n = (unsigned)random_below(&random, 3);
        unsigned base = n == 0 ? 37 : n == 1 ? 40 : 10;
        size_t max = n == 0 ? OWN_LOWER_MAX
            : n == 1        ? OWN_MIXED_MAX
                            : OWN_DIGITS_MAX;
        len = 1 + random_below(&random, max);
        for (size_t j = 0; j < len; j++) {
            name[j] = letters[random_below(&random, base)];
        }
        ck_assert(own_id_of(name, len, &id));
        char other[OWN_DIGITS_MAX];
        ck_assert_uint_eq(own_id_name(id, other), len);
        ck_assert_mem_eq(name, other, len);
    }
}
END_TEST

/* Rows of numbers: above all own ids, and back. */
START_TEST(test_rows)
{
    static const uint32_t number[] = {0, 1, 31, 1U << 31, UINT32_MAX};
    for (unsigned bits = 0; bits <= 31; bits++) {
        for (size_t i = 0; i < COUNT_OF(number); i++) {
            uint32_t again;
            uint64_t row = own_id_row_of(number[i], bits);
            uint64_t low = bits == 0 ? 0 : (UINT64_C(1) << bits) - 1;
            ck_assert_uint_ge(row << bits, OWN_ID_END);
            ck_assert_uint_eq((row << bits | low) >> bits, row);
            ck_assert(own_id_number_of(row, bits, &again));
            ck_assert_uint_eq(again, number[i]);
        }
        uint32_t none;
        ck_assert(!own_id_number_of(0, bits, &none));
        ck_assert(!own_id_number_of((OWN_ID_END - 1) >> bits, bits, &none));
        if (bits < 31) {
            ck_assert(!own_id_number_of(
                (OWN_ID_END >> bits) + (UINT64_C(1) << 32), bits, &none));
        }
    }
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        test_edges, test_others, test_valid, test_random, test_rows};
    return run_tests("own_id", tests, COUNT_OF(tests));
}
