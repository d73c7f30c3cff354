/* SPDX-License-Identifier: BSD-3-Clause */
/* Terms in the manifest: it has version 7 where there are some, with and
 * without counters that ask for version 6, and nowhere else; what is written is
 * read back, and damage is seen. */
#include "wal/manifest.h"

#include "unit/manifest_help.h"

#include <stdlib.h>

enum { COMMITTED_AT = HEAD_BYTES + 40 };

static const struct schema_counter counter = {.name = {4, "post"},
    .key_name = {3, "pid"},
    .serial = 1,
    .slot = 0,
    .n_columns = 1,
    .key_hint_bits = 64,
    .column = {{.name = {5, "likes"},
        .serial = 2,
        .slot = 0,
        .hint_bits = 9,
        .max_bits = 48}}};

static void
make(struct manifest *manifest, bool has_terms, bool is_never_cold)
{
    make_bare(manifest, 2);
    ck_assert_int_eq(histories_add(&manifest->histories, 12, 77), 0);
    manifest->writes = 9;
    manifest->last_serial = 10;
    manifest->counter = calloc(1, sizeof *manifest->counter);
    ck_assert_ptr_nonnull(manifest->counter);
    manifest->counter[0] = counter;
    manifest->counter[0].cold_is_never = is_never_cold;
    manifest->n_counters = 1;
    if (has_terms) {
        struct history *terms = &manifest->terms;
        ck_assert(history_begin(terms, 3, 0x0102030405060708, 70000));
        ck_assert(history_begin(terms, 4, 0xfedcba9876543210, seq_make(3, 9)));
        ck_assert(history_begin(terms, 900, 1, seq_make(4, 1)));
        manifest->committed_seq = seq_make(900, 12345);
    }
}

/* What is in t/data/manifest-v7. */
static void
manifest_terms(struct manifest *manifest)
{
    make(manifest, true, false);
}

static void
manifest_both(struct manifest *manifest)
{
    make(manifest, true, true);
}

static void
manifest_kinds(struct manifest *manifest)
{
    make(manifest, false, true);
}

static void
manifest_plain(struct manifest *manifest)
{
    make(manifest, false, false);
}

static void
check_same(const struct manifest *a, const struct manifest *b)
{
    ck_assert_uint_eq(a->writes, b->writes);
    ck_assert_uint_eq(a->committed_seq, b->committed_seq);
    ck_assert_uint_eq(a->terms.n, b->terms.n);
    for (unsigned i = 0; i < a->terms.n; i++) {
        ck_assert_uint_eq(a->terms.at[i].term, b->terms.at[i].term);
        ck_assert_uint_eq(a->terms.at[i].branch, b->terms.at[i].branch);
        ck_assert_uint_eq(a->terms.at[i].last, b->terms.at[i].last);
    }
    ck_assert_uint_eq(a->n_counters, b->n_counters);
    ck_assert_mem_eq(
        a->counter, b->counter, a->n_counters * sizeof *a->counter);
}

START_TEST(test_version_7_only_where_it_is_needed)
{
    expect_version(manifest_terms, 7, check_same);
    expect_version(manifest_both, 7, check_same);
    expect_version(manifest_kinds, 6, check_same);
    expect_version(manifest_plain, 5, check_same);
}
END_TEST

START_TEST(test_damage)
{
    expect_damage_is_seen(manifest_terms);
}
END_TEST

/* Bytes that no history is, though the checksum is right. */
START_TEST(test_no_history)
{
    struct manifest manifest, got;
    struct buf buf;
    encode_some(manifest_terms, &manifest, &buf);
    uint8_t terms[HISTORY_BYTES_MAX];
    size_t len = history_put(&manifest.terms, terms);
    uint8_t *at = (uint8_t *)buf.data + buf.len - SUM_BYTES - len;
    ck_assert_mem_eq(at, terms, len);
    ck_assert_uint_eq(bytes_get_u64((uint8_t *)buf.data + COMMITTED_AT),
        seq_make(900, 12345));
    for (unsigned n = 0; n < 256; n++) {
        *at = (uint8_t)n;
        seal(&buf);
        int err = decode(buf.data, buf.len, &got);
        ck_assert_int_eq(err, n == terms[0] ? 0 : ERR_CORRUPT);
        if (err == 0) {
            manifest_fini(&got);
        }
    }
    forget(&manifest, &buf);
}
END_TEST

/* Version 7 as it was first written. */
START_TEST(test_golden)
{
    expect_golden(DATA_DIR "/manifest-v7", manifest_terms, check_same);
}
END_TEST

int
main(void)
{
    const TTest *test[] = {test_version_7_only_where_it_is_needed, test_damage,
        test_no_history, test_golden};
    return run_tests("manifest_terms", test, COUNT_OF(test));
}
