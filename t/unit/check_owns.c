/* SPDX-License-Identifier: BSD-3-Clause */
/* base/owns, base/keyhash and base/md5: which server an id belongs to. All
 * expected numbers were computed by libhashkit and libmemcached 1.1.4, but for
 * crc32a, which is zlib's crc32, and modulo. */
#include "base/owns.h"

#include "base/err.h"
#include "base/keyhash.h"
#include "base/md5.h"
#include "unit/check_help.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SAME_WEIGHTS "10.0.0.1:11211:1\n10.0.0.2:11212:1\n10.0.0.3:11211:1\n"
#define OTHER_WEIGHTS "10.0.0.1:11211:1\n10.0.0.2:11212:2\n10.0.0.3:11211:5\n"

static const uint64_t some_ids[] = {1, 42, 1234, 1000000,
    UINT64_C(5000000000000000), UINT64_C(5000000000003624),
    UINT64_C(9223372036854775807), UINT64_MAX};

/* The n-th id of a row below: those, and then 40 that a post's might be. */
static uint64_t
id_of(size_t n)
{
    return n < COUNT_OF(some_ids)
        ? some_ids[n]
        : UINT64_C(5000000000000000) + 3624 * (n - COUNT_OF(some_ids));
}

/* A rule, its list, and the servers of the ids, a digit each. */
static const struct row {
    const char *rule, *list, *servers;
} rows[] = {
    {"modulo", "", "101122102222222222222222222222222222222222222222"},
    {"crc32", "", "122001020121120001211211122111201110100012111101"},
    {"crc32a", "", "221211101112101011100200100210220011212102212201"},
    {"fnv1a_64", "", "111122022220111122110011001121222000111000002120"},
    {"fnv1a", "", "111122022220111122110011001121222000111000002120"},
    {"fnv1a_32", "", "121002120221011200000011220201022100101202022211"},
    {"md5", "", "110011221102201102001121221001101001211201121020"},
    {"one_at_a_time", "", "012202100201002212201102212202112201221000221120"},
    {"md5", SAME_WEIGHTS, "110011221102201102001121221001101001211201121020"},
    {"ketama", SAME_WEIGHTS,
        "110202010211122020222112022020111021221200120021"},
    {"ketama", OTHER_WEIGHTS,
        "112222012222122222222222222020111221221211220121"},
    {"ketama-md5", OTHER_WEIGHTS,
        "112222012222122222222222222020111221221211220121"},
    {"ketama-fnv1a_64", OTHER_WEIGHTS,
        "121122222201121212022221210222222001222222212212"},
    {"ketama-crc32", OTHER_WEIGHTS,
        "222222222222222222222222222222222222222222222222"},
    {"ketama-one_at_a_time", OTHER_WEIGHTS,
        "222210221020222212222211201200212212112222221222"},
    {"consistent", SAME_WEIGHTS,
        "020121002122210211212200101020201101000120102212"},
    {"consistent-one_at_a_time", SAME_WEIGHTS,
        "020121002122210211212200101020201101000120102212"},
    {"consistent-crc32", SAME_WEIGHTS,
        "102212221222012111210111211212121112121110112010"},
    {"consistent-md5", SAME_WEIGHTS,
        "101201100122211022220210001220020212111100210022"},
};

static struct owns *
make(const char *text)
{
    struct owns *owns = NULL;
    struct buf why = {0};
    int err = owns_create(text, strlen(text), &owns, &why);
    ck_assert_msg(err == 0, "%s: %.*s", text, (int)why.len,
        why.len == 0 ? "" : why.data);
    ck_assert_uint_eq(why.len, 0);
    buf_fini(&why);
    return owns;
}

static void
expect_servers(const char *text, const char *servers, uint32_t index)
{
    struct owns *owns = make(text);
    for (size_t n = 0; n < strlen(servers); n++) {
        uint32_t wanted = (uint32_t)(servers[n] - '0');
        ck_assert_msg(owns_server_of(owns, id_of(n)) == wanted,
            "%s: %" PRIu64 " is %" PRIu32 ", not %" PRIu32, text, id_of(n),
            owns_server_of(owns, id_of(n)), wanted);
        ck_assert(owns_has(owns, id_of(n)) == (wanted == index));
    }
    owns_destroy(&owns);
    ck_assert_ptr_null(owns);
}

START_TEST(test_rows)
{
    char text[256];
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        for (uint32_t index = 0; index < 3; index++) {
            snprintf(text, sizeof text, "%s:%" PRIu32 "/3\n%s", rows[i].rule,
                index, rows[i].list);
            ck_assert_uint_eq(
                strlen(rows[i].servers), COUNT_OF(some_ids) + 40);
            expect_servers(text, rows[i].servers, index);
        }
    }
}
END_TEST

/* A hash that is a point is that point's, not the next one's. */
START_TEST(test_on_a_point)
{
    static const uint64_t ids[] = {
        2988, 2989, 5266, 5277, 5286, 5296, 5297, 5299};
    struct owns *owns = make("consistent-crc32:0/3\n" SAME_WEIGHTS);
    for (size_t i = 0; i < COUNT_OF(ids); i++) {
        ck_assert_uint_eq(owns_server_of(owns, ids[i]), 0);
    }
    owns_destroy(&owns);
}
END_TEST

/* twemproxy gives a server as many slots as it weighs. */
START_TEST(test_weights)
{
    struct owns *owns = make("modulo:1/3\n" OTHER_WEIGHTS);
    for (uint64_t id = 0; id < 80; id++) {
        uint32_t wanted = id % 8 == 0 ? 0 : id % 8 < 3 ? 1 : 2;
        ck_assert_uint_eq(owns_server_of(owns, id), wanted);
    }
    owns_destroy(&owns);
}
END_TEST

/* A name is what stands for the server on the ring: the address at memcached's
 * port is the host alone. */
START_TEST(test_names)
{
    struct owns *plain = make("ketama:0/2\nh:11211:1\ng:1:1\n");
    struct owns *named = make("ketama:0/2\n1.1.1.1:5:1 h\n[::1]:6:1 g:1\n");
    struct owns *other = make("ketama:0/2\n1.1.1.1:5:1 x\n[::1]:6:1 y\n");
    unsigned n_differ = 0;
    for (uint64_t id = 0; id < 1000; id++) {
        uint32_t server = owns_server_of(plain, id);
        ck_assert_uint_eq(owns_server_of(named, id), server);
        n_differ += owns_server_of(other, id) != server;
    }
    ck_assert_uint_gt(n_differ, 100);
    owns_destroy(&plain);
    owns_destroy(&named);
    owns_destroy(&other);
}
END_TEST

START_TEST(test_forms)
{
    static const char *const same[] = {"crc32:2/3", "crc32:2/3\n",
        "# ours\n\n \t crc32:2/3 \r\n# a, b, c:1:1\n",
        ("crc32:2/3\n" SAME_WEIGHTS), "crc32:2/3,a:1:1,b:1:1,c:1:1",
        "crc32:2/3\n  a:1:1  x,b:1:1\n # , z\n c:1:1\n"};
    for (size_t i = 0; i < COUNT_OF(same); i++) {
        expect_servers(same[i], rows[1].servers, 2);
    }
    struct owns *owns = make("fnv1a:0/1");
    ck_assert_str_eq(owns_rule(owns), "fnv1a_64:0/1");
    ck_assert(owns_has(owns, 0) && owns_has(owns, UINT64_MAX));
    owns_destroy(&owns);
    owns = make("consistent:1/2,a:1:1,b:1:1");
    ck_assert_str_eq(owns_rule(owns), "consistent-one_at_a_time:1/2");
    owns_destroy(&owns);
    owns = make("modulo:1023/1024");
    ck_assert_str_eq(owns_rule(owns), "modulo:1023/1024");
    owns_destroy(&owns);
}
END_TEST

static void
expect_bad(const char *text, const char *wanted)
{
    struct owns *owns = NULL;
    struct buf why = {0};
    ck_assert_int_eq(
        owns_create(text, strlen(text), &owns, &why), ERR_BAD_FORMAT);
    ck_assert_ptr_null(owns);
    buf_add(&why, "", 1);
    ck_assert_msg(strstr(why.data, wanted) != NULL, "%s: %s", text, why.data);
    buf_fini(&why);
}

START_TEST(test_faults)
{
    expect_bad("", "no rule");
    expect_bad("# crc32:0/1\n\n", "no rule");
    expect_bad("crc32", "HASH:I/N");
    expect_bad("crc32:1", "HASH:I/N");
    expect_bad("0/3", "HASH:I/N");
    expect_bad("crc33:0/3", "none of modulo");
    expect_bad(":0/3", "none of modulo");
    expect_bad("ketama-modulo:0/3", "none of modulo");
    expect_bad("ketama-:0/3", "none of modulo");
    expect_bad("ketamas:0/3", "none of modulo");
    expect_bad("crc32:3/3", "numbered from 0");
    expect_bad("crc32:-1/3", "numbered from 0");
    expect_bad("crc32:/3", "numbered from 0");
    expect_bad("crc32:0/0", "1 to 1024");
    expect_bad("crc32:0/1025", "1 to 1024");
    expect_bad("crc32:0/x", "1 to 1024");
    expect_bad("ketama:0/3", "list of the servers");
    expect_bad("consistent:0/3\n", "list of the servers");
    expect_bad("ketama:0/3\na:1:1\nb:1:1\n", "fewer servers");
    expect_bad("ketama:0/1\na:1:1\nb:1:1\n", "more servers");
    expect_bad("ketama:0/1\na:1\n", "line 2: a server is written");
    expect_bad("ketama:0/1\n\n:1:1\n", "line 3: a server is written");
    expect_bad("ketama:0/1\na:65536:1\n", "a server is written");
    expect_bad("ketama:0/1\na:1:1 two names\n", "a server is written");
    expect_bad("ketama:0/1\na:1:0\n", "weight");
    expect_bad("ketama:0/1\na:1:1000001\n", "weight");
    expect_bad("ketama:0/1\na:1:x\n", "weight");
    expect_bad("crc32:0/2\na:1:1\nb:1:1 # no comment\n", "line 3");
}
END_TEST

static void
expect_bad_rule(const char *text)
{
    struct owns *owns = NULL;
    ck_assert_int_eq(
        owns_create_rule(text, strlen(text), &owns), ERR_BAD_RULE);
    ck_assert_ptr_null(owns);
}

/* In one word, without servers: a text that says all of it. */
START_TEST(test_rule_alone)
{
    static const char text[] = "fnv1a:02/4 and more";
    struct owns *owns = NULL;
    struct owns *again = NULL;
    ck_assert_int_eq(owns_create_rule(text, strlen("fnv1a:02/4"), &owns), 0);
    const char *rule = owns_rule(owns);
    ck_assert_str_eq(rule, "fnv1a_64:2/4");
    ck_assert_int_eq(owns_create_rule(rule, strlen(rule), &again), 0);
    ck_assert_str_eq(owns_rule(again), rule);
    for (uint64_t id = 0; id < 1000; id++) {
        ck_assert_uint_eq(owns_server_of(again, id), owns_server_of(owns, id));
    }
    owns_destroy(&owns);
    owns_destroy(&again);
    expect_bad_rule("");
    expect_bad_rule("modulo");
    expect_bad_rule("modulo:2/2");
    expect_bad_rule("ketama:0/2");
    expect_bad_rule("consistent:0/2,a:1:1,b:1:1");
    expect_bad_rule("modulo:0/2,a:1:1,b:1:2");
    expect_bad_rule("modulo:0/2\na:1:1\nb:1:2");
    expect_bad_rule("modulo:0/2,");
    expect_bad_rule("#modulo:0/2");
    expect_bad_rule("modulo:00000000000000000000000000000000000000000000000000"
                    "000000000000000/2");
}
END_TEST

START_TEST(test_long_names)
{
    char text[400] = "ketama:0/1\na:1:1 ";
    size_t at = strlen(text);
    memset(text + at, 'n', 255);
    struct owns *owns = make(text);
    owns_destroy(&owns);
    memset(text + at, 'n', 256);
    expect_bad(text, "longer than 255");
}
END_TEST

/* As many servers as there may be, of very different weights. */
START_TEST(test_many)
{
    struct buf text = {0};
    buf_add_text(&text, "ketama:7/1024\n");
    for (unsigned i = 0; i < OWNS_SERVERS_MAX; i++) {
        buf_addf(&text, "10.0.0.1:%u:%u\n", i + 1, i % 2 == 0 ? 1 : 1000000);
    }
    buf_add(&text, "", 1);
    struct owns *owns = make(text.data);
    for (uint64_t id = 0; id < 10000; id++) {
        /* a weight of a millionth is not worth a point */
        ck_assert_uint_eq(owns_server_of(owns, id) % 2, 1);
    }
    owns_destroy(&owns);
    buf_fini(&text);
}
END_TEST

static const struct {
    const char *name;
    uint32_t of_0, of_1234, of_post, of_last;
} hashes[] = {
    {"crc32", 0x74db, 0x1be3, 0x5859, 0x3ffe},
    {"crc32a", 0xf4dbdf21, 0x9be3e0a3, 0xd859b672, 0xbffe511a},
    {"fnv1a_64", 0x86019caf, 0x0314a21d, 0x66887a20, 0x38fc3c54},
    {"fnv1a_32", 0x350ca8af, 0xfdc422fd, 0x3c348cc0, 0x86a8b3f4},
    {"md5", 0x8420cdcf, 0xdb9bdc81, 0x16f70320, 0xa325787e},
    {"one_at_a_time", 0x6e3c5c6b, 0xad414afe, 0x8bedc992, 0xca4b5ae3},
};

START_TEST(test_hashes)
{
    ck_assert_uint_eq(COUNT_OF(hashes), KEYHASH_COUNT);
    for (size_t i = 0; i < COUNT_OF(hashes); i++) {
        enum keyhash hash = KEYHASH_COUNT;
        const char *name = hashes[i].name;
        ck_assert(keyhash_find(name, strlen(name), &hash));
        ck_assert_str_eq(keyhash_name(hash), name);
        ck_assert_uint_eq(keyhash(hash, "0", 1), hashes[i].of_0);
        ck_assert_uint_eq(keyhash(hash, "1234", 4), hashes[i].of_1234);
        ck_assert_uint_eq(
            keyhash(hash, "5000000000000000", 16), hashes[i].of_post);
        ck_assert_uint_eq(
            keyhash(hash, "18446744073709551615", 20), hashes[i].of_last);
    }
}
END_TEST

/* Names: what the C library's hashes make of them, bytes above 127 included. */
static const char *const some_names[] = {
    "anna", "http://example.com/a?b=c", "M\xc3\xbcller", "\x80\xff", "007"};

static const struct {
    const char *hash;
    uint32_t of[COUNT_OF(some_names)];
} name_rows[] = {
    {"crc32", {0x215c, 0x5643, 0x6c47, 0x5758, 0x3cd1}},
    {"crc32a", {0x215cbeb7, 0xd6439325, 0x6c47b7c5, 0x57586539, 0xbcd1af7e}},
    {"fnv1a_64", {0xb55aa4bb, 0xd3f3d809, 0xee57afdc, 0xb58758e0, 0x1d60f22e}},
    {"fnv1a_32", {0xc9cce27b, 0xd8e24c69, 0xf48a353c, 0x945dce20, 0xe2cb360e}},
    {"md5", {0x389e0fa7, 0x065d40fd, 0xa7c05be3, 0x0a5824e2, 0x5eb1949e}},
    {"one_at_a_time",
        {0xd02db6ae, 0xca4f0f88, 0xeebb84e6, 0x00d2360d, 0xd80ec868}},
};

START_TEST(test_ids_that_are_names)
{
    char text[64];
    ck_assert_uint_eq(COUNT_OF(name_rows), KEYHASH_COUNT);
    for (size_t i = 0; i < COUNT_OF(name_rows); i++) {
        snprintf(text, sizeof text, "%s:2/7", name_rows[i].hash);
        struct owns *owns = make(text);
        ck_assert(owns_takes_names(owns));
        for (size_t n = 0; n < COUNT_OF(some_names); n++) {
            uint32_t server = name_rows[i].of[n] % 7;
            size_t len = strlen(some_names[n]);
            ck_assert_msg(
                owns_server_of_name(owns, some_names[n], len) == server,
                "%s of name %zu", name_rows[i].hash, n);
            ck_assert(
                owns_has_name(owns, some_names[n], len) == (server == 2));
        }
        owns_destroy(&owns);
    }
}
END_TEST

/* A name of digits is where the number is; modulo has no names. */
START_TEST(test_names_of_digits)
{
    char text[256], digits[24];
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        snprintf(text, sizeof text, "%s:1/3\n%s", rows[i].rule, rows[i].list);
        struct owns *owns = make(text);
        bool takes = strncmp(rows[i].rule, "modulo", 6) != 0;
        ck_assert(owns_takes_names(owns) == takes);
        for (size_t n = 0; n < COUNT_OF(some_ids) + 40; n++) {
            int len = snprintf(digits, sizeof digits, "%" PRIu64, id_of(n));
            ck_assert(owns_has_name(owns, digits, (size_t)len) ==
                (takes && owns_has(owns, id_of(n))));
        }
        owns_destroy(&owns);
    }
}
END_TEST

/* Messages of RFC 1321, and of lengths around those of a block. */
START_TEST(test_md5)
{
    static const struct {
        size_t len;
        uint32_t first; /* four bytes of the digest of that many 'a' */
    } lengths[] = {{0, 0xd98c1dd4}, {1, 0xb975c10c}, {55, 0xb67217ef},
        {56, 0xc78a0c3b}, {63, 0xf32165b0}, {64, 0xd4424801}, {65, 0x5ea443c7},
        {119, 0x73d07b8a}, {120, 0xccc0615f}, {128, 0x3b6810e5},
        {200, 0xb4307f88}};
    static const char abc[] = "abcdefghijklmnopqrstuvwxyz";
    uint32_t word[MD5_WORDS];
    char text[200];
    memset(text, 'a', sizeof text);
    for (size_t i = 0; i < COUNT_OF(lengths); i++) {
        md5(text, lengths[i].len, word);
        ck_assert_uint_eq(word[0], lengths[i].first);
    }
    md5(abc, strlen(abc), word); /* c3fcd3d76192e4007dfb496cca67e13b */
    ck_assert_uint_eq(word[0], 0xd7d3fcc3);
    ck_assert_uint_eq(word[1], 0x00e49261);
    ck_assert_uint_eq(word[2], 0x6c49fb7d);
    ck_assert_uint_eq(word[3], 0x3be167ca);
}
END_TEST

/* Against the definition, bit by bit, for keys of each length. */
START_TEST(test_crc32)
{
    enum { KEY_MAX = 41 };
    char key[KEY_MAX];
    for (size_t i = 0; i < sizeof key; i++) {
        key[i] = (char)(i * 73 + 201);
    }
    for (size_t len = 0; len <= sizeof key; len++) {
        uint32_t crc = UINT32_MAX;
        for (size_t i = 0; i < len; i++) {
            crc ^= (unsigned char)key[i];
            for (unsigned bit = 0; bit < 8; bit++) {
                crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
            }
        }
        ck_assert_uint_eq(keyhash(KEYHASH_CRC32A, key, len), ~crc);
        ck_assert_uint_eq(
            keyhash(KEYHASH_CRC32, key, len), ~crc >> 16 & 0x7fff);
    }
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_rows, test_on_a_point, test_weights,
        test_names, test_forms, test_faults, test_rule_alone, test_long_names,
        test_many, test_hashes, test_ids_that_are_names, test_names_of_digits,
        test_md5, test_crc32};
    return run_tests("owns", tests, COUNT_OF(tests));
}
