/* SPDX-License-Identifier: BSD-3-Clause */
/* wal/histories and what the manifest has of them: which log files are of which
 * history, and which images and segments; what is written is read back, damage
 * is seen, and bytes that name no history are refused. */
#include "wal/manifest.h"

#include "unit/manifest_help.h"

#include <stdlib.h>

enum {
    SHARDS = 2,
    N_AT = HEAD_BYTES + 24,
    LIST_AT = HEAD_BYTES + 32,
    WRITES_AT = LIST_AT
};

static void
manifest_bare(struct manifest *manifest)
{
    make_bare(manifest, SHARDS);
}

static void
add_log(struct manifest *manifest, uint64_t from, uint64_t history)
{
    ck_assert_int_eq(histories_add(&manifest->histories, from, history), 0);
}

/* One that has nothing of a later version but histories. */
static void
manifest_of_log(struct manifest *manifest)
{
    manifest_bare(manifest);
    add_log(manifest, 13, 5);
}

/* What is in t/data/manifest-v4. */
static void
manifest_some(struct manifest *manifest)
{
    static const uint64_t histories[] = {7, 0, UINT64_MAX, 7, 1};
    uint64_t seq[SHARDS] = {100, 90};
    manifest_bare(manifest);
    add_log(manifest, 12, UINT64_MAX);
    add_log(manifest, 13, 7);
    add_log(manifest, 4000, UINT64_C(0x8000000000000001));
    for (unsigned i = 0; i < COUNT_OF(histories); i++) {
        const struct images_entry entry = {.first_row = 10 * i,
            .last_row = 10 * i + 9,
            .history = histories[i],
            .seq = 50 + i,
            .file = 3 + i / 2,
            .offset = 1000 * i,
            .len = 100 + i,
            .n = i,
            .shard = (uint16_t)(i / 3),
            .counter = 1};
        ck_assert_int_eq(images_add(&manifest->images, &entry), 0);
    }
    manifest->last_segment = 6;
    for (unsigned i = 0; i < COUNT_OF(histories); i++) {
        const struct manifest_segment segment = {.number = 1 + i,
            .history = histories[COUNT_OF(histories) - 1 - i],
            .counter_serial = 4,
            .counter = 1,
            .first_id = 100 * i,
            .last_id = 100 * i + 99,
            .records = 7 + i,
            .seq = seq};
        ck_assert_int_eq(segments_add(&manifest->segments, &segment), 0);
    }
}

struct seen {
    uint64_t history[16];
    size_t n;
};

static void
note_image(void *context, const struct images_entry *entry)
{
    struct seen *seen = context;
    ck_assert_uint_lt(seen->n, COUNT_OF(seen->history));
    seen->history[seen->n++] = entry->history;
}

static void
check_same(const struct manifest *a, const struct manifest *b)
{
    struct seen of_a = {.n = 0}, of_b = {.n = 0};
    ck_assert_uint_eq(a->histories.n, b->histories.n);
    for (size_t i = 0; i < a->histories.n; i++) {
        ck_assert_uint_eq(
            a->histories.entry[i].from, b->histories.entry[i].from);
        ck_assert_uint_eq(
            a->histories.entry[i].history, b->histories.entry[i].history);
    }
    images_each(&a->images, note_image, &of_a);
    images_each(&b->images, note_image, &of_b);
    ck_assert_uint_eq(of_a.n, of_b.n);
    ck_assert_mem_eq(of_a.history, of_b.history, sizeof of_a.history[0] * 5);
    ck_assert_uint_eq(a->segments.n, b->segments.n);
    for (size_t i = 0; i < a->segments.n; i++) {
        const struct manifest_segment *x = &a->segments.segment[i];
        const struct manifest_segment *y = &b->segments.segment[i];
        ck_assert_uint_eq(x->history, y->history);
        ck_assert_uint_eq(manifest_segment_epoch(a, x),
            x->history == 0 ? a->epoch : x->history);
        ck_assert_uint_eq(x->records, y->records);
    }
}

static void
expect_back(void (*some_fn)(struct manifest *manifest), unsigned version)
{
    struct manifest manifest, got;
    struct buf buf;
    encode_some(some_fn, &manifest, &buf);
    ck_assert_uint_eq(bytes_get_u32((uint8_t *)buf.data + 8), version);
    ck_assert_int_eq(decode(buf.data, buf.len, &got), 0);
    check_same(&got, &manifest);
    manifest_fini(&got);
    forget(&manifest, &buf);
}

/* A manifest that names none is one of an older version. */
START_TEST(test_they_come_back)
{
    expect_back(manifest_bare, 1);
    expect_back(manifest_of_log, 4);
    expect_back(manifest_some, 4);
}
END_TEST

START_TEST(test_damage)
{
    expect_damage_is_seen(manifest_of_log);
    expect_damage_is_seen(manifest_some);
}
END_TEST

START_TEST(test_golden)
{
    expect_golden(DATA_DIR "/manifest-v4", manifest_some, check_same);
}
END_TEST

/* What is in t/data/manifest-v5: the same, as today. */
static void
manifest_today(struct manifest *manifest)
{
    manifest_some(manifest);
    manifest->writes = 4711;
}

static void
check_same_today(const struct manifest *a, const struct manifest *b)
{
    check_same(a, b);
    ck_assert_uint_eq(a->writes, b->writes);
    ck_assert_uint_eq(manifest_writer(a), UINT64_C(0x8000000000000001));
}

START_TEST(test_golden_today)
{
    expect_golden(DATA_DIR "/manifest-v5", manifest_today, check_same_today);
    expect_damage_is_seen(manifest_today);
}
END_TEST

static void
manifest_of_log_today(struct manifest *manifest)
{
    manifest_of_log(manifest);
    manifest->writes = 1;
}

/* Version 5 has some manifest written, and says who wrote it. */
START_TEST(test_writes)
{
    struct manifest manifest, got;
    struct buf buf;
    ck_assert_uint_eq(manifest_writer(&(struct manifest){0}), 0);
    expect_back(manifest_of_log_today, 5);
    encode_some(manifest_of_log_today, &manifest, &buf);
    ck_assert_uint_eq(manifest_writer(&manifest), 5);
    bytes_put_u64((uint8_t *)buf.data + WRITES_AT, 0);
    seal(&buf);
    ck_assert_int_eq(decode(buf.data, buf.len, &got), ERR_CORRUPT);
    forget(&manifest, &buf);
    /* the history, and no log file that is of it */
    encode_some(manifest_of_log_today, &manifest, &buf);
    bytes_put_u32((uint8_t *)buf.data + N_AT + 4, 0);
    buf.len -= 2;
    bytes_put_u64((uint8_t *)buf.data + 16, buf.len);
    seal(&buf);
    ck_assert_int_eq(decode(buf.data, buf.len, &got), ERR_CORRUPT);
    forget(&manifest, &buf);
}
END_TEST

START_TEST(test_memory)
{
    expect_want_of_memory_is_seen(manifest_some, 4, check_same);
}
END_TEST

/* The one history, then what the log files of it are: a list in the place of
 * that of manifest_of_log. */
static int
decode_lists(uint32_t n, uint32_t n_logs, const void *bytes, size_t len)
{
    static const char sum[SUM_BYTES];
    struct manifest manifest, got;
    struct buf buf;
    encode_some(manifest_of_log, &manifest, &buf);
    buf.len = LIST_AT;
    buf_add(&buf, bytes, len);
    buf_add(&buf, sum, SUM_BYTES);
    bytes_put_u32((uint8_t *)buf.data + N_AT, n);
    bytes_put_u32((uint8_t *)buf.data + N_AT + 4, n_logs);
    seal(&buf);
    int err = decode(buf.data, buf.len, &got);
    manifest_fini(&got);
    forget(&manifest, &buf);
    return err;
}

START_TEST(test_lists_that_cannot_be)
{
#define HISTORY(x) x "\0\0\0\0\0\0\0"
#define LISTS(n, n_logs, bytes)                                               \
    decode_lists(n, n_logs, bytes, sizeof bytes - 1)
    ck_assert_int_eq(LISTS(1, 1, HISTORY("\5") "\14\1"), 0);
    ck_assert_int_eq(LISTS(1, 0, HISTORY("\5")), 0);
    ck_assert_int_eq(LISTS(2, 2, HISTORY("\5") HISTORY("\6") "\0\2\0\1"), 0);
    /* a version that is not needed */
    ck_assert_int_eq(LISTS(0, 0, ""), ERR_CORRUPT);
    /* 0; two that do not ascend; fewer than there are said to be */
    ck_assert_int_eq(LISTS(1, 0, HISTORY("\0")), ERR_CORRUPT);
    ck_assert_int_eq(LISTS(2, 0, HISTORY("\5") HISTORY("\5")), ERR_CORRUPT);
    ck_assert_int_eq(LISTS(2, 0, HISTORY("\6") HISTORY("\5")), ERR_CORRUPT);
    ck_assert_int_eq(LISTS(2, 0, HISTORY("\5")), ERR_CORRUPT);
    ck_assert_int_eq(LISTS(UINT32_MAX, 0, HISTORY("\5")), ERR_CORRUPT);
    /* log files of none, of one behind the last, too few of them */
    ck_assert_int_eq(LISTS(1, 1, HISTORY("\5") "\14\0"), ERR_CORRUPT);
    ck_assert_int_eq(LISTS(1, 1, HISTORY("\5") "\14\2"), ERR_CORRUPT);
    ck_assert_int_eq(LISTS(1, 1, HISTORY("\5") "\14"), ERR_CORRUPT);
    ck_assert_int_eq(LISTS(1, 2, HISTORY("\5") "\14\1"), ERR_CORRUPT);
    ck_assert_int_eq(LISTS(1, UINT32_MAX, HISTORY("\5") "\14\1"), ERR_CORRUPT);
    /* a number of a file beyond 2^64 - 1 */
    ck_assert_int_eq(
        LISTS(1, 1, HISTORY("\5") "\377\377\377\377\377\377\377\377\377\1\1"),
        ERR_CORRUPT);
    ck_assert_int_eq(LISTS(1, 2,
                         HISTORY("\5") "\0\1\376\377\377\377\377\377\377\377"
                                       "\377\1\1"),
        ERR_CORRUPT);
}
END_TEST

START_TEST(test_log_files)
{
    struct histories histories = {0}, copy;
    ck_assert_uint_eq(histories_epoch(NULL, 3, 77), 77);
    ck_assert_uint_eq(histories_epoch(&histories, 3, 77), 77);
    histories_forget(&histories, 5);
    for (uint64_t i = 1; i <= 20; i++) {
        ck_assert_int_eq(histories_add(&histories, 10 * i, 100 + i), 0);
    }
    ck_assert_uint_eq(histories_of(&histories, 9), 0);
    ck_assert_uint_eq(histories_epoch(&histories, 9, 77), 77);
    ck_assert_uint_eq(histories_of(&histories, 10), 101);
    ck_assert_uint_eq(histories_of(&histories, 19), 101);
    ck_assert_uint_eq(histories_epoch(&histories, 20, 77), 102);
    ck_assert_uint_eq(histories_of(&histories, UINT64_MAX), 120);
    /* a process that had begun there has not come to write a file */
    ck_assert_int_eq(histories_add(&histories, 200, 121), 0);
    ck_assert_uint_eq(histories_of(&histories, 200), 121);
    ck_assert_uint_eq(histories.n, 20);
    ck_assert_int_eq(histories_copy(&histories, &copy), 0);
    histories_forget(&histories, 10);
    ck_assert_uint_eq(histories.n, 20);
    histories_forget(&histories, 35);
    ck_assert_uint_eq(histories.n, 18);
    ck_assert_uint_eq(histories_of(&histories, 35), 103);
    ck_assert_uint_eq(histories_of(&histories, 45), 104);
    histories_forget(&histories, UINT64_MAX);
    ck_assert_uint_eq(histories.n, 1);
    ck_assert_uint_eq(histories_of(&histories, UINT64_MAX), 121);
    ck_assert_uint_eq(copy.n, 20);
    ck_assert_uint_eq(histories_of(&copy, 19), 101);
    histories_fini(&copy);
    histories_fini(&histories);
}
END_TEST

START_TEST(test_drawn)
{
    uint64_t some[3];
    for (unsigned i = 0; i < COUNT_OF(some); i++) {
        ck_assert_int_eq(histories_draw(&some[i]), 0);
        ck_assert_uint_ne(some[i], 0);
    }
    ck_assert(some[0] != some[1] && some[1] != some[2] && some[0] != some[2]);
}
END_TEST

int
main(void)
{
    const TTest *test[] = {test_they_come_back, test_damage, test_golden,
        test_golden_today, test_writes, test_memory, test_lists_that_cannot_be,
        test_log_files, test_drawn};
    return run_tests("manifest histories", test, COUNT_OF(test));
}
