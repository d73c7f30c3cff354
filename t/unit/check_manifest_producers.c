/* SPDX-License-Identifier: BSD-3-Clause */
/* wal/producers and what the manifest has of them: what is written is read
 * back, and a manifest that never had a producer is as before; damage is seen,
 * and bytes that make no producer are refused however right their checksum is.
 */
#include "wal/manifest.h"

#include "unit/manifest_help.h"

enum { SHARDS = 4, LIST_AT = HEAD_BYTES + 24, N_AT = HEAD_BYTES + 20 };

static void
add_one(struct producers_list *list, uint32_t serial, const char *name)
{
    struct producers_one *one = &list->one[list->n++];
    one->serial = serial;
    ck_assert(producer_name_set(&one->name, name, strlen(name)));
}

/* The window of the last producer in a shard, with numbers from..to. */
static void
add_window(
    struct producers_list *list, uint16_t shard, uint64_t from, uint64_t to)
{
    struct producers_window *window = &list->window[list->n_windows++];
    *window =
        (struct producers_window){.producer = list->n - 1, .shard = shard};
    for (uint64_t n = from; n != to + 1; n++) {
        seen_add(&window->seen, n);
    }
}

static void
make_lists(struct manifest *manifest, uint32_t n, uint32_t n_windows)
{
    manifest->producers.one = calloc(n, sizeof *manifest->producers.one);
    manifest->producers.window =
        calloc(n_windows, sizeof *manifest->producers.window);
    ck_assert_ptr_nonnull(manifest->producers.one);
    ck_assert_ptr_nonnull(manifest->producers.window);
}

/* A manifest without counters, and without a segment. */
static void
manifest_bare(struct manifest *manifest)
{
    make_bare(manifest, SHARDS);
}

/* What is in t/data/manifest-v3. */
static void
manifest_some(struct manifest *manifest)
{
    manifest_bare(manifest);
    make_lists(manifest, 4, 5);
    struct producers_list *list = &manifest->producers;
    list->last_serial = 70000;
    add_one(list, 1, "a");
    add_window(list, 0, 1, 2000);
    add_window(list, 3, 7, 7);
    add_one(list, 2, "queue-consumer.eu_1");
    add_window(list, 2, UINT64_MAX - 5, UINT64_MAX);
    add_one(list, 9, "without");
    add_one(list, 70000, "12345678901234567890123456789012");
    add_window(list, 0, 0, 0);
    add_window(list, 1, 100, 164);
}

static void
check_same(const struct manifest *x, const struct manifest *y)
{
    const struct producers_list *a = &x->producers, *b = &y->producers;
    ck_assert_uint_eq(a->last_serial, b->last_serial);
    ck_assert_uint_eq(a->n, b->n);
    ck_assert_uint_eq(a->n_windows, b->n_windows);
    for (uint32_t i = 0; i < a->n; i++) {
        ck_assert_uint_eq(a->one[i].serial, b->one[i].serial);
        ck_assert_uint_eq(a->one[i].name.len, b->one[i].name.len);
        ck_assert_mem_eq(
            a->one[i].name.text, b->one[i].name.text, a->one[i].name.len);
    }
    for (uint32_t i = 0; i < a->n_windows; i++) {
        ck_assert_uint_eq(a->window[i].producer, b->window[i].producer);
        ck_assert_uint_eq(a->window[i].shard, b->window[i].shard);
        ck_assert_mem_eq(
            &a->window[i].seen, &b->window[i].seen, sizeof a->window[i].seen);
    }
}

static void
expect_they_come_back(void (*some_fn)(struct manifest *manifest))
{
    struct manifest manifest, got;
    struct buf buf;
    encode_some(some_fn, &manifest, &buf);
    ck_assert_int_eq(decode(buf.data, buf.len, &got), 0);
    check_same(&got, &manifest);
    manifest_fini(&got);
    forget(&manifest, &buf);
}

/* All have been dropped; their serials are not given out again. */
static void
manifest_of_none(struct manifest *manifest)
{
    manifest_bare(manifest);
    manifest->last_segment = 3;
    manifest->producers.last_serial = 4;
}

START_TEST(test_they_come_back)
{
    expect_they_come_back(manifest_some);
    expect_they_come_back(manifest_of_none);
}
END_TEST

START_TEST(test_version_3_only_where_there_was_one)
{
    struct manifest manifest;
    struct buf buf;
    encode_some(manifest_bare, &manifest, &buf);
    ck_assert_uint_eq(bytes_get_u32((uint8_t *)buf.data + 8), 1);
    forget(&manifest, &buf);
    encode_some(manifest_of_none, &manifest, &buf);
    ck_assert_uint_eq(bytes_get_u32((uint8_t *)buf.data + 8), 3);
    /* a version that is not needed */
    bytes_put_u32((uint8_t *)buf.data + HEAD_BYTES + 16, 0);
    seal(&buf);
    struct manifest got;
    ck_assert_int_eq(decode(buf.data, buf.len, &got), ERR_CORRUPT);
    forget(&manifest, &buf);
}
END_TEST

START_TEST(test_damage)
{
    expect_damage_is_seen(manifest_some);
}
END_TEST

START_TEST(test_golden)
{
    expect_golden(DATA_DIR "/manifest-v3", manifest_some, check_same);
}
END_TEST

/* Any byte of the list made any other, with a right checksum: it is refused, or
 * what is read can be written again. */
START_TEST(test_changed_bytes)
{
    struct manifest manifest, got;
    struct buf buf, again = {0};
    unsigned n_read = 0, n_refused = 0;
    encode_some(manifest_some, &manifest, &buf);
    for (size_t at = HEAD_BYTES + 16; at < buf.len - SUM_BYTES; at++) {
        for (unsigned by = 1; by < 256; by += 1 + by / 8) {
            buf.data[at] ^= (char)by;
            seal(&buf);
            int err = decode(buf.data, buf.len, &got);
            ck_assert(err == 0 || err == ERR_CORRUPT);
            n_read += err == 0;
            n_refused += err != 0;
            if (err == 0) {
                buf_clear(&again);
                ck_assert_int_eq(manifest__encode(&got, &again), 0);
                ck_assert_uint_eq(again.len, buf.len);
                ck_assert_mem_eq(again.data, buf.data, buf.len);
                manifest_fini(&got);
            }
            buf.data[at] ^= (char)by;
        }
    }
    ck_assert_uint_gt(n_read, 100);
    ck_assert_uint_gt(n_refused, 1000);
    buf_fini(&again);
    forget(&manifest, &buf);
}
END_TEST

/* One producer as bytes that cannot be. */
static const struct {
    const char *bytes;
    size_t len;
    int err;
} lists[] = {
#define L(text, err)                                                          \
    {                                                                         \
        text, sizeof text - 1, err                                            \
    }
    L("\0\1a\0", 0), L("\0\1a\1\0\5\1\0\x20\0\0\0\0\0\0\0", 0),
    L("\2\1a\1\3\5\1\0\x20\0\0\0\0\0\0\0", 0),
    L("\3\1a\0", ERR_CORRUPT),                           /* serial 4 */
    L("\0\0\0\0", ERR_CORRUPT),                          /* no name */
    L("\0\1 \0", ERR_CORRUPT),                           /* no safe one */
    L("\0\5a\0", ERR_CORRUPT),                           /* a cut one */
    L("\0\1a\1\4\5\1\0\x20\0\0\0\0\0\0\0", ERR_CORRUPT), /* shard 4 */
    L("\0\1a\1\0\5\1\0\0\0\0\0\0\0\0\0", ERR_CORRUPT),   /* an empty word */
    L("\0\1a\1\0\5\1\0\x40\0\0\0\0\0\0\0", ERR_CORRUPT), /* 6 is above 5 */
    L("\0\1a\5\0\5\1\0\x20\0\0\0\0\0\0\0", ERR_CORRUPT), /* 5 windows */
    L("\0\1a\2\0\5\1\0\x20\0\0\0\0\0\0\0", ERR_CORRUPT), /* one is not there */
    L("\0\1a\1\0\5\1\0\x20\0\0\0\0\0\0\0\0", ERR_CORRUPT), /* one byte more */
#undef L
};

static void
manifest_listed(struct manifest *manifest)
{
    manifest_bare(manifest);
    manifest->producers.last_serial = 3;
}

START_TEST(test_lists_that_cannot_be)
{
    for (size_t i = 0; i < COUNT_OF(lists); i++) {
        struct manifest manifest, got;
        struct buf buf;
        static const char sum[SUM_BYTES];
        encode_some(manifest_listed, &manifest, &buf);
        ck_assert_uint_eq(buf.len, LIST_AT + SUM_BYTES);
        buf.len = LIST_AT;
        buf_add(&buf, lists[i].bytes, lists[i].len);
        buf_add(&buf, sum, SUM_BYTES);
        bytes_put_u32((uint8_t *)buf.data + N_AT, 1);
        seal(&buf);
        int err = decode(buf.data, buf.len, &got);
        ck_assert_msg(err == lists[i].err, "list %zu: %d", i, err);
        manifest_fini(&got);
        forget(&manifest, &buf);
    }
}
END_TEST

static void
manifest_of_two(struct manifest *manifest)
{
    manifest_bare(manifest);
    make_lists(manifest, 2, 1);
    manifest->producers.last_serial = 2;
    add_one(&manifest->producers, 1, "a");
    add_one(&manifest->producers, 2, "b");
}

START_TEST(test_one_name_is_one_producer)
{
    enum { SECOND_NAME_AT = LIST_AT + 4 + 2 };
    struct manifest manifest, got;
    struct buf buf;
    encode_some(manifest_of_two, &manifest, &buf);
    ck_assert_int_eq(buf.data[SECOND_NAME_AT], 'b');
    buf.data[SECOND_NAME_AT] = 'a';
    seal(&buf);
    ck_assert_int_eq(decode(buf.data, buf.len, &got), ERR_CORRUPT);
    forget(&manifest, &buf);
}
END_TEST

int
main(void)
{
    const TTest *test[] = {test_they_come_back,
        test_version_3_only_where_there_was_one, test_damage, test_golden,
        test_changed_bytes, test_lists_that_cannot_be,
        test_one_name_is_one_producer};
    return run_tests("manifest producers", test, COUNT_OF(test));
}
