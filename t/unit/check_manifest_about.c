/* SPDX-License-Identifier: BSD-3-Clause */
/* Columns of members=about, and counters whose ids are names, in the manifest:
 * it has version 9 where there is one of the first, with and without terms and
 * handovers, 10 where there is one of the second or names are left, and neither
 * else; what is written is read back, and damage is seen. */
#include "wal/manifest.h"

#include "unit/manifest_help.h"

#include <stdlib.h>
#include <string.h>

enum { VERSION = 9, VERSION_TEXT = 10 };

static const struct schema_counter weibo = {.name = {5, "weibo"},
    .key_name = {3, "wid"},
    .serial = 1,
    .slot = 0,
    .n_columns = 2,
    .key_hint_bits = 64,
    .column = {{.name = {5, "views"},
                   .serial = 2,
                   .slot = 0,
                   .hint_bits = 16,
                   .max_bits = 32},
        {.name = {4, "seen"},
            .suffix = {1, "s"},
            .serial = 3,
            .slot = 1,
            .max_bits = 1,
            .flags = 7,
            .kind = SCHEMA_ABOUT,
            .counts = 2,
            .member_bits = 40,
            .value_bits = 1,
            .error = 200,
            .memory = UINT64_C(8) << 30}}};

static void
make(struct manifest *manifest, bool has_terms, bool is_moved)
{
    make_bare(manifest, 2);
    ck_assert_int_eq(histories_add(&manifest->histories, 12, 77), 0);
    manifest->writes = 9;
    manifest->last_serial = 10;
    manifest->counter = calloc(1, sizeof *manifest->counter);
    ck_assert_ptr_nonnull(manifest->counter);
    manifest->counter[manifest->n_counters++] = weibo;
    if (has_terms) {
        ck_assert(
            history_begin(&manifest->terms, 3, 0x0102030405060708, 70000));
        manifest->committed_seq = seq_make(3, 5);
    }
    if (is_moved) {
        struct moved_one one;
        ck_assert_int_eq(
            moved_one_set(&one, "crc32a:2/4", 10, "db2:11211", 9), 0);
        ck_assert(moved_list_put(&manifest->handovers, &one));
    }
}

/* What is in t/data/manifest-v9. */
static void
manifest_about(struct manifest *manifest)
{
    make(manifest, true, true);
}

static void
manifest_alone(struct manifest *manifest)
{
    make(manifest, false, false);
}

/* Ids are names, and nothing else is new. */
static void
manifest_names(struct manifest *manifest)
{
    make(manifest, false, false);
    manifest->counter[0].n_columns = 1;
    manifest->counter[0].column[1] = (struct schema_column){0};
    manifest->counter[0].key_is_text = true;
}

/* Names are left, of counters that have gone. */
static void
manifest_left(struct manifest *manifest)
{
    make(manifest, false, true);
    for (unsigned i = 0; i < 2; i++) {
        const struct images_entry names = {.counter = 0,
            .shard =
                (uint16_t)(manifest->shards + 1 + i * (manifest->shards - 1)),
            .first_row = 16 << 10,
            .last_row = (80 << 10) - 1,
            .history = manifest_writer(manifest),
            .seq = 7 + i,
            .file = 3,
            .offset = 64 + 4096 * i,
            .len = 4000,
            .n = 500};
        ck_assert_int_eq(images_add(&manifest->images, &names), 0);
    }
}

/* What is in t/data/manifest-v10. */
static void
manifest_text(struct manifest *manifest)
{
    manifest_left(manifest);
    manifest->counter[0].key_is_text = true;
}

static void
manifest_moved(struct manifest *manifest)
{
    make(manifest, true, true);
    manifest->counter[0].n_columns = 1;
    manifest->counter[0].column[1] = (struct schema_column){0};
}

static void
check_same(const struct manifest *a, const struct manifest *b)
{
    ck_assert_uint_eq(a->writes, b->writes);
    ck_assert_uint_eq(a->n_counters, b->n_counters);
    ck_assert_mem_eq(
        a->counter, b->counter, a->n_counters * sizeof *a->counter);
    ck_assert_uint_eq(a->terms.n, b->terms.n);
    ck_assert_uint_eq(a->handovers.n, b->handovers.n);
    ck_assert_uint_eq(a->images.n, b->images.n);
}

START_TEST(test_versions_only_where_they_are_needed)
{
    expect_version(manifest_about, VERSION, check_same);
    expect_version(manifest_alone, VERSION, check_same);
    expect_version(manifest_names, VERSION_TEXT, check_same);
    expect_version(manifest_left, VERSION_TEXT, check_same);
    expect_version(manifest_text, VERSION_TEXT, check_same);
    expect_version(manifest_moved, 8, check_same);
}
END_TEST

START_TEST(test_damage)
{
    expect_damage_is_seen(manifest_about);
    expect_damage_is_seen(manifest_alone);
    expect_damage_is_seen(manifest_text);
}
END_TEST

/* Version 9 as it was first written. */
START_TEST(test_golden)
{
    expect_golden(DATA_DIR "/manifest-v9", manifest_about, check_same);
}
END_TEST

/* The same of version 10. */
START_TEST(test_golden_text)
{
    expect_golden(DATA_DIR "/manifest-v10", manifest_text, check_same);
}
END_TEST

int
main(void)
{
    const TTest *test[] = {test_versions_only_where_they_are_needed,
        test_damage, test_golden, test_golden_text};
    return run_tests("manifest_about", test, COUNT_OF(test));
}
