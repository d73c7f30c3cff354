/* SPDX-License-Identifier: BSD-3-Clause */
/* Handovers in the manifest: it has version 8 where there are some, with and
 * without terms and counters that ask for version 6, and nowhere else; what is
 * written is read back, and damage is seen. */
#include "wal/manifest.h"

#include "unit/manifest_help.h"

#include <stdlib.h>
#include <string.h>

enum { VERSION = 8 };

static void
add(struct manifest *manifest, const char *rule, const char *address)
{
    struct moved_one one;
    ck_assert_int_eq(
        moved_one_set(&one, rule, strlen(rule), address, strlen(address)), 0);
    ck_assert(moved_list_put(&manifest->handovers, &one));
}

static void
make(struct manifest *manifest, bool has_terms, unsigned n)
{
    static const char *const rules[] = {
        "crc32a:2/4", "modulo:7/8", "fnv1a_64:0/2"};
    static const char *const addresses[] = {
        "db2.example:11211", "[2001:db8::7]:21122", "a:1"};
    make_bare(manifest, 2);
    ck_assert_int_eq(histories_add(&manifest->histories, 12, 77), 0);
    manifest->writes = 9;
    if (has_terms) {
        ck_assert(
            history_begin(&manifest->terms, 3, 0x0102030405060708, 70000));
        manifest->committed_seq = seq_make(3, 5);
    }
    for (unsigned i = 0; i < n; i++) {
        add(manifest, rules[i], addresses[i]);
    }
}

/* What is in t/data/manifest-v8. */
static void
manifest_moved(struct manifest *manifest)
{
    make(manifest, true, 3);
}

static void
manifest_alone(struct manifest *manifest)
{
    make(manifest, false, 1);
}

static void
manifest_terms(struct manifest *manifest)
{
    make(manifest, true, 0);
}

static void
manifest_plain(struct manifest *manifest)
{
    make(manifest, false, 0);
}

static void
check_same(const struct manifest *a, const struct manifest *b)
{
    ck_assert_uint_eq(a->writes, b->writes);
    ck_assert_uint_eq(a->committed_seq, b->committed_seq);
    ck_assert_uint_eq(a->terms.n, b->terms.n);
    ck_assert_uint_eq(a->handovers.n, b->handovers.n);
    for (unsigned i = 0; i < a->handovers.n; i++) {
        ck_assert_str_eq(a->handovers.one[i].rule, b->handovers.one[i].rule);
        ck_assert_str_eq(
            a->handovers.one[i].address, b->handovers.one[i].address);
    }
}

START_TEST(test_version_8_only_where_it_is_needed)
{
    expect_version(manifest_moved, VERSION, check_same);
    expect_version(manifest_alone, VERSION, check_same);
    expect_version(manifest_terms, 7, check_same);
    expect_version(manifest_plain, 5, check_same);
}
END_TEST

START_TEST(test_damage)
{
    expect_damage_is_seen(manifest_moved);
    expect_damage_is_seen(manifest_alone);
}
END_TEST

/* Handovers that cannot be, though the checksum is right: none, one more than
 * there are, one that has ended, one twice. */
START_TEST(test_no_handovers)
{
    static const char ended[] = "\1\x0e\x0amodulo:7/8";
    static const char twice[] = "\2\x0e\x0amodulo:7/8\3a:1"
                                "\x0e\x0amodulo:7/8\3b:1";
    static const struct {
        const char *bytes;
        size_t len;
        int err;
    } rows[] = {{"\0", 1, ERR_CORRUPT}, {"", 0, ERR_CORRUPT},
        {twice, 1 + (sizeof twice - 2) / 2, ERR_CORRUPT},
        {twice, sizeof twice - 1, ERR_CORRUPT},
        {ended, sizeof ended, ERR_CORRUPT}, {"\1\x0f", 2, ERR_CORRUPT}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct manifest manifest, got;
        struct buf buf;
        encode_some(manifest_alone, &manifest, &buf);
        /* without what is behind the terms, of which there are none */
        size_t len = 1 + 1 + 1 + strlen(manifest.handovers.one[0].rule) + 1 +
            strlen(manifest.handovers.one[0].address);
        buf.len -= SUM_BYTES + len;
        buf_add(&buf, rows[i].bytes, rows[i].len);
        buf_add(&buf, "\0\0\0\0\0\0\0", SUM_BYTES);
        seal(&buf);
        ck_assert_int_eq(decode(buf.data, buf.len, &got), rows[i].err);
        forget(&manifest, &buf);
    }
}
END_TEST

/* Version 8 as it was first written. */
START_TEST(test_golden)
{
    expect_golden(DATA_DIR "/manifest-v8", manifest_moved, check_same);
}
END_TEST

int
main(void)
{
    const TTest *test[] = {test_version_8_only_where_it_is_needed, test_damage,
        test_no_handovers, test_golden};
    return run_tests("manifest_moved", test, COUNT_OF(test));
}
