/* SPDX-License-Identifier: BSD-3-Clause */
/* Marks, lists, members and counters with cold=never in the manifest: it has
 * version 6 where there is one of them, and nowhere else; what is written is
 * read back, and damage is seen. */
#include "wal/manifest.h"

#include "schema/restore.h"
#include "unit/manifest_help.h"

#include <stdlib.h>

enum { USER, AUTHOR, N_COUNTERS };

static const struct schema_counter user = {.name = {4, "user"},
    .key_name = {3, "uid"},
    .serial = 1,
    .slot = 0,
    .n_columns = 4,
    .key_hint_bits = 64,
    .column = {{.name = {6, "at_num"},
                   .suffix = {2, "at"},
                   .serial = 2,
                   .slot = 0,
                   .hint_bits = 9,
                   .max_bits = 48},
        {.name = {7, "at_seen"},
            .suffix = {6, "atseen"},
            .serial = 3,
            .slot = 1,
            .hint_bits = 9,
            .max_bits = 48,
            .flags = 5,
            .kind = SCHEMA_MARK,
            .source = {.serial = 2},
            .unread = {4, "unat"}},
        {.name = {8, "dot_seen"},
            .serial = 6,
            .slot = 2,
            .hint_bits = 16,
            .max_bits = 32,
            .kind = SCHEMA_MARK,
            .source = {.serial = 5, .is_fixed = true, .id = 1ull << 63},
            .unread = {5, "undot"},
            .unmarked_is_none = true,
            .forget = 2592000},
        {.name = {4, "feed"},
            .serial = 7,
            .slot = 3,
            .max_bits = 1,
            .kind = SCHEMA_FOLLOWS,
            .source = {.serial = 5}}}};

static const struct schema_counter author = {.name = {6, "author"},
    .key_name = {3, "aid"},
    .serial = 4,
    .slot = 1,
    .n_columns = 2,
    .key_hint_bits = 64,
    .cold_is_never = true,
    .column = {{.name = {5, "posts"},
                   .serial = 5,
                   .slot = 0,
                   .hint_bits = 16,
                   .max_bits = 32},
        {.name = {8, "admirers"},
            .suffix = {3, "adm"},
            .serial = 8,
            .slot = 1,
            .hint_bits = 16,
            .max_bits = 24,
            .flags = 7,
            .kind = SCHEMA_MEMBERS,
            .counts = 5,
            .member_bits = 40,
            .value_bits = 2,
            .pairs = 3}}};

static void
make(struct manifest *manifest, bool has_user, bool has_author)
{
    make_bare(manifest, 2);
    ck_assert_int_eq(histories_add(&manifest->histories, 12, 77), 0);
    manifest->writes = 9;
    manifest->last_serial = 10;
    manifest->counter = calloc(N_COUNTERS, sizeof *manifest->counter);
    ck_assert_ptr_nonnull(manifest->counter);
    if (has_user) {
        manifest->counter[manifest->n_counters++] = user;
    }
    if (has_author) {
        manifest->counter[manifest->n_counters++] = author;
    }
}

/* What is in t/data/manifest-v6. */
static void
manifest_kinds(struct manifest *manifest)
{
    make(manifest, true, true);
}

static void
manifest_user(struct manifest *manifest)
{
    make(manifest, true, false);
}

static void
manifest_author(struct manifest *manifest)
{
    make(manifest, false, true);
}

/* The same counters with what there was before: numbers. */
static void
manifest_numbers(struct manifest *manifest)
{
    make(manifest, true, true);
    manifest->counter[AUTHOR].cold_is_never = false;
    manifest->counter[AUTHOR].column[1].kind = SCHEMA_NUMBER;
    manifest->counter[AUTHOR].column[1].counts = 0;
    manifest->counter[AUTHOR].column[1].member_bits = 0;
    manifest->counter[AUTHOR].column[1].value_bits = 0;
    manifest->counter[AUTHOR].column[1].pairs = 0;
    for (unsigned i = 1; i < user.n_columns; i++) {
        struct schema_column *column = &manifest->counter[USER].column[i];
        column->kind = SCHEMA_NUMBER;
        column->source = (struct schema_source){0};
        column->unread = (struct schema_name){0};
        column->unmarked_is_none = false;
        column->forget = 0;
    }
}

static void
check_same(const struct manifest *a, const struct manifest *b)
{
    ck_assert_uint_eq(a->writes, b->writes);
    ck_assert_uint_eq(a->n_counters, b->n_counters);
    ck_assert_mem_eq(
        a->counter, b->counter, a->n_counters * sizeof *a->counter);
}

START_TEST(test_version_6_only_where_it_is_needed)
{
    expect_version(manifest_kinds, 6, check_same);
    expect_version(manifest_user, 6, check_same);
    expect_version(manifest_author, 6, check_same);
    expect_version(manifest_numbers, 5, check_same);
}
END_TEST

START_TEST(test_damage)
{
    expect_damage_is_seen(manifest_kinds);
}
END_TEST

/* It has the head of version 5, where some manifest has been written. */
START_TEST(test_the_head_is_that_of_version_5)
{
    enum { WRITES_AT = HEAD_BYTES + 32 };
    struct manifest manifest, got;
    struct buf buf;
    encode_some(manifest_kinds, &manifest, &buf);
    ck_assert_uint_eq(bytes_get_u64((uint8_t *)buf.data + WRITES_AT), 9);
    bytes_put_u64((uint8_t *)buf.data + WRITES_AT, 0);
    seal(&buf);
    ck_assert_int_eq(decode(buf.data, buf.len, &got), ERR_CORRUPT);
    forget(&manifest, &buf);
}
END_TEST

/* ---- segments of pairs ---- */

enum { PAIRS_SERIAL = 9, PAIRS_SLOT = 3 }; /* of author's admirers */

/* Counters that go cold, but for author where it is_never, and what one segment
 * covers of that serial, in that slot. */
static void
make_covered(
    struct manifest *manifest, uint32_t serial, unsigned slot, bool is_never)
{
    uint64_t seq[] = {50, 60};
    const struct manifest_segment segment = {.number = 1,
        .history = 77,
        .counter_serial = serial,
        .counter = (uint8_t)slot,
        .first_id = 8,
        .last_id = 15,
        .records = 3,
        .seq = seq};
    make(manifest, false, true);
    manifest->counter[0].cold_is_never = is_never;
    manifest->last_segment = 1;
    ck_assert_int_eq(segments_add(&manifest->segments, &segment), 0);
}

static int
decode_covered(uint32_t serial, unsigned slot, bool is_never)
{
    struct manifest manifest, got;
    struct buf buf = {0};
    make_covered(&manifest, serial, slot, is_never);
    ck_assert_int_eq(manifest__encode(&manifest, &buf), 0);
    int err = decode(buf.data, buf.len, &got);
    if (err == 0) {
        ck_assert_uint_eq(got.segments.n, 1);
        manifest_fini(&got);
    }
    forget(&manifest, &buf);
    return err;
}

/* Their counter is found by its column, though it is not written. */
START_TEST(test_segments_of_pairs)
{
    ck_assert_int_eq(decode_covered(PAIRS_SERIAL, PAIRS_SLOT, false), 0);
    ck_assert_int_eq(
        decode_covered(PAIRS_SERIAL, PAIRS_SLOT + 1, false), ERR_CORRUPT);
    ck_assert_int_eq(
        decode_covered(PAIRS_SERIAL, PAIRS_SLOT, true), ERR_CORRUPT);
    /* of what has been dropped */
    ck_assert_int_eq(decode_covered(PAIRS_SERIAL + 1, 0, true), 0);
}
END_TEST

/* Each column of members has one, wherever it stands. */
START_TEST(test_counters_of_pairs)
{
    struct manifest manifest;
    struct manifest_counters at = {0};
    struct manifest_counter one;
    make(&manifest, false, true);
    manifest.counter[0].column[0] = manifest.counter[0].column[1];
    manifest.counter[0].column[0].serial = 20;
    manifest.counter[0].column[0].pairs = 200;
    static const struct manifest_counter wanted[] = {
        {4, 1, true}, {21, 200, true}, {PAIRS_SERIAL, PAIRS_SLOT, true}};
    for (size_t i = 0; i < COUNT_OF(wanted); i++) {
        ck_assert(manifest__next_counter(&manifest, &at, &one));
        ck_assert_uint_eq(one.serial, wanted[i].serial);
        ck_assert_uint_eq(one.slot, wanted[i].slot);
        ck_assert_int_eq(one.cold_is_never, wanted[i].cold_is_never);
    }
    ck_assert(!manifest__next_counter(&manifest, &at, &one));
    ck_assert(!manifest__next_counter(&manifest, &at, &one));
    manifest_fini(&manifest);
}
END_TEST

/* They take rows from images, and are let go of with the column. */
START_TEST(test_pairs_that_go)
{
    struct manifest manifest;
    size_t n_cut;
    make_covered(&manifest, PAIRS_SERIAL, PAIRS_SLOT, false);
    const struct images_entry image = {.counter = PAIRS_SLOT,
        .shard = 1,
        .last_row = 9,
        .seq = 59,
        .file = 2,
        .len = 100,
        .n = 7};
    ck_assert_int_eq(images_add(&manifest.images, &image), 0);
    ck_assert(manifest_has_counter(&manifest, 4));
    ck_assert(manifest_has_counter(&manifest, PAIRS_SERIAL));
    ck_assert(!manifest_has_counter(&manifest, PAIRS_SERIAL + 1));
    ck_assert_int_eq(manifest_drop_gone(&manifest), 0);
    ck_assert_uint_eq(manifest.segments.n, 1);
    ck_assert_int_eq(manifest_cut_images(&manifest, &n_cut), 0);
    ck_assert_uint_eq(n_cut, 1);
    ck_assert_ptr_nonnull(images_find(&manifest.images, PAIRS_SLOT, 1, 3));
    ck_assert_ptr_null(images_find(&manifest.images, PAIRS_SLOT, 1, 4));
    manifest.counter[0].n_columns = 1;
    ck_assert(!manifest_has_counter(&manifest, PAIRS_SERIAL));
    ck_assert_int_eq(manifest_drop_gone(&manifest), 0);
    ck_assert_uint_eq(manifest.segments.n, 0);
    manifest_fini(&manifest);
}
END_TEST

/* Version 6 as it was first written. */
START_TEST(test_golden)
{
    expect_golden(DATA_DIR "/manifest-v6", manifest_kinds, check_same);
}
END_TEST

/* The first counter is about the second one. */
START_TEST(test_the_counters_make_a_schema)
{
    struct manifest manifest;
    struct schema *schema = schema_create();
    manifest_kinds(&manifest);
    for (unsigned i = USER; i <= AUTHOR; i++) {
        struct schema *next;
        ck_assert_int_eq(
            schema_restore(schema, &manifest.counter[i], 10, &next), 0);
        ck_assert_int_eq(schema_check(next), i == USER ? ERR_CORRUPT : 0);
        schema_destroy(&schema);
        schema = next;
    }
    ck_assert_uint_eq(schema_counter_at(schema, 3)->members_of, 8);
    schema_destroy(&schema);
    manifest_fini(&manifest);
}
END_TEST

int
main(void)
{
    const TTest *test[] = {test_version_6_only_where_it_is_needed, test_damage,
        test_the_head_is_that_of_version_5, test_golden,
        test_segments_of_pairs, test_counters_of_pairs, test_pairs_that_go,
        test_the_counters_make_a_schema};
    return run_tests("manifest_kinds", test, COUNT_OF(test));
}
