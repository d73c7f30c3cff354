/* SPDX-License-Identifier: BSD-3-Clause */
/* wal/segments and what the manifest has of them: what is written is read back,
 * bytes that make no segment are damage however right their checksum is, and a
 * manifest that never had one is as before. And what segments take from images:
 * compared row by row with what the rule says. */
#include "wal/manifest.h"

#include "unit/manifest_help.h"

enum { MORE_BYTES = 16, SHARDS = 4 };

static void
add(struct manifest *manifest, struct manifest_segment segment,
    const uint64_t *seq)
{
    uint64_t copy[SHARDS];
    memcpy(copy, seq, sizeof copy);
    segment.seq = copy;
    ck_assert_int_eq(segments_add(&manifest->segments, &segment), 0);
}

static void
add_counter(struct manifest *manifest, uint8_t slot, uint32_t serial)
{
    struct schema_counter *counter = &manifest->counter[manifest->n_counters];
    counter->slot = slot;
    counter->serial = serial;
    counter->name.len = 2;
    counter->name.text[0] = 'c';
    counter->name.text[1] = (char)('a' + manifest->n_counters++);
}

/* What is in t/data/manifest-v2. Its segments are not added in their order. */
static void
manifest_some(struct manifest *manifest)
{
    manifest_init(manifest);
    manifest->epoch = UINT64_C(0xfedcba9876543210);
    manifest->seed = UINT64_C(0x0123456789abcdef);
    manifest->shards = SHARDS;
    manifest->log_number = 12;
    manifest->next_file = 9;
    manifest->schema_seq = 600;
    manifest->last_serial = 77;
    manifest->last_segment = 40;
    manifest->segments.shards = SHARDS;
    manifest->counter = calloc(2, sizeof *manifest->counter);
    ck_assert_ptr_nonnull(manifest->counter);
    add_counter(manifest, 3, 5);
    add_counter(manifest, 255, 70);
    struct images_entry image = {.counter = 3,
        .shard = 2,
        .last_row = 499,
        .seq = 99,
        .file = 8,
        .len = 3000,
        .n = 7};
    ck_assert_int_eq(images_add(&manifest->images, &image), 0);
    add(manifest,
        (struct manifest_segment){.number = UINT64_C(40),
            .counter_serial = 70,
            .counter = 255,
            .last_id = UINT64_MAX,
            .records = UINT64_MAX},
        (uint64_t[]){0, UINT64_MAX, 0, UINT64_C(1) << 63});
    add(manifest,
        (struct manifest_segment){.number = 39,
            .counter_serial = 5,
            .counter = 3,
            .first_id = 4000,
            .last_id = 7999,
            .records = 900},
        (uint64_t[]){500, 500, 501, 499});
    add(manifest,
        (struct manifest_segment){.number = 7,
            .counter_serial = 5,
            .counter = 3,
            .first_id = 8,
            .last_id = 3999,
            .records = 1},
        (uint64_t[]){100, 101, 102, 103});
    add(manifest,
        (struct manifest_segment){.number = 7,
            .counter_serial = 5,
            .counter = 3,
            .first_id = UINT64_MAX - 3,
            .last_id = UINT64_MAX,
            .records = 1},
        (uint64_t[]){100, 101, 102, 103});
}

static void
check_same(const struct segments *a, const struct segments *b)
{
    segments_verify(a);
    ck_assert_uint_eq(a->n, b->n);
    for (size_t i = 0; i < a->n; i++) {
        const struct manifest_segment *p = &a->segment[i], *q = &b->segment[i];
        ck_assert_uint_eq(p->number, q->number);
        ck_assert_uint_eq(p->counter_serial, q->counter_serial);
        ck_assert_uint_eq(p->counter, q->counter);
        ck_assert_uint_eq(p->first_id, q->first_id);
        ck_assert_uint_eq(p->last_id, q->last_id);
        ck_assert_uint_eq(p->records, q->records);
        ck_assert_mem_eq(p->seq, q->seq, a->shards * sizeof(uint64_t));
    }
}

static void
check_same_segments(const struct manifest *a, const struct manifest *b)
{
    check_same(&a->segments, &b->segments);
}

static uint32_t
version_of(const struct buf *buf)
{
    return bytes_get_u32((const uint8_t *)buf->data + 8);
}

START_TEST(test_they_come_back)
{
    struct manifest manifest, got;
    struct buf buf;
    encode_some(manifest_some, &manifest, &buf);
    ck_assert_uint_eq(version_of(&buf), 2);
    ck_assert_int_eq(decode(buf.data, buf.len, &got), 0);
    ck_assert_uint_eq(got.last_segment, 40);
    ck_assert_uint_eq(got.n_counters, 2);
    ck_assert_uint_eq(got.images.n, 1);
    ck_assert_uint_eq(got.segments.n, 4);
    check_same(&got.segments, &manifest.segments);
    manifest_fini(&got);
    forget(&manifest, &buf);
}
END_TEST

/* Random ones, in a random order, for each number of shards that a manifest may
 * have; and copies of them. */
START_TEST(test_random_ones_come_back)
{
    uint64_t random = 7, *seq = calloc(4096, sizeof *seq);
    ck_assert_ptr_nonnull(seq);
    for (uint32_t shards = 1; shards <= 4096; shards *= 2) {
        struct manifest manifest = {.epoch = 1, .shards = shards}, got;
        struct buf buf = {0};
        uint64_t row = 0;
        manifest.segments.shards = shards;
        manifest.last_segment = 1 + random_below(&random, UINT64_MAX - 1);
        for (unsigned i = 0; i < 20; i++) {
            uint64_t first = row + random_below(&random, 3) * 100;
            row = first + 1 + random_below(&random, 1000);
            for (uint32_t s = 0; s < shards; s++) {
                seq[s] = (s == 0 ? 0 : seq[s - 1]) + random_below(&random, 3);
            }
            const struct manifest_segment segment = {
                .number = 1 + random_below(&random, manifest.last_segment),
                .counter_serial = 9 - i / 5,
                .counter = (uint8_t)(9 - i / 5),
                .first_id = first * shards,
                .last_id = row * shards - 1,
                .records = 1 + random_below(&random, 1 << 20),
                .seq = seq};
            ck_assert_int_eq(segments_add(&manifest.segments, &segment), 0);
        }
        ck_assert_int_eq(manifest__encode(&manifest, &buf), 0);
        ck_assert_int_eq(decode(buf.data, buf.len, &got), 0);
        check_same(&got.segments, &manifest.segments);
        manifest_fini(&got);
        manifest_fini(&manifest);
        buf_fini(&buf);
    }
    free(seq);
}
END_TEST

/* Until the first one there is nothing new in the file, and afterwards it is
 * known for good that there was one. */
START_TEST(test_version_1_until_there_is_one)
{
    struct manifest manifest = {.epoch = 1, .shards = 16}, got;
    struct buf buf = {0};
    manifest.segments.shards = 16;
    ck_assert_int_eq(manifest__encode(&manifest, &buf), 0);
    ck_assert_uint_eq(version_of(&buf), 1);
    ck_assert_uint_eq(buf.len, HEAD_BYTES + SUM_BYTES);
    buf_clear(&buf);
    manifest.last_segment = 3;
    ck_assert(manifest_names_log(&manifest));
    ck_assert_int_eq(manifest__encode(&manifest, &buf), 0);
    ck_assert_uint_eq(version_of(&buf), 2);
    ck_assert_uint_eq(buf.len, HEAD_BYTES + MORE_BYTES + SUM_BYTES);
    ck_assert_int_eq(decode(buf.data, buf.len, &got), 0);
    ck_assert_uint_eq(got.last_segment, 3);
    manifest_fini(&got);
    /* it would have been version 1 */
    bytes_put_u64((uint8_t *)buf.data + HEAD_BYTES, 0);
    seal(&buf);
    ck_assert_int_eq(decode(buf.data, buf.len, &got), ERR_CORRUPT);
    buf_fini(&buf);
}
END_TEST

START_TEST(test_every_flipped_bit_and_every_cut_is_damage)
{
    expect_damage_is_seen(manifest_some);
}
END_TEST

/* With a right checksum as well: a cut is one, and no byte leads astray. */
START_TEST(test_a_right_checksum_does_not_make_them_sound)
{
    struct manifest manifest, got;
    struct buf buf;
    encode_some(manifest_some, &manifest, &buf);
    size_t len = buf.len;
    char *whole = copy_of(buf.data, len);
    for (size_t cut = 1; cut < len - HEAD_BYTES - SUM_BYTES; cut++) {
        buf_clear(&buf);
        buf_add(&buf, whole, len - cut);
        seal(&buf);
        ck_assert_int_eq(decode(buf.data, buf.len, &got), ERR_CORRUPT);
    }
    for (size_t at = HEAD_BYTES; at < len - SUM_BYTES; at++) {
        for (int value = 0; value < 256; value++) {
            buf_clear(&buf);
            buf_add(&buf, whole, len);
            buf.data[at] = (char)value;
            seal(&buf);
            int err = decode(buf.data, buf.len, &got);
            ck_assert(err == 0 || err == ERR_CORRUPT);
            if (err == 0) {
                segments_verify(&got.segments);
                images_verify(&got.images);
                manifest_fini(&got);
            }
        }
    }
    free(whole);
    forget(&manifest, &buf);
}
END_TEST

/* Bytes of one or two segments in an otherwise empty manifest of two shards:
 * serial, (slot,) gap, rows - 1, number, records, two sequence numbers. */
static const struct {
    const char *what;
    int err;
    uint8_t bytes[64];
    size_t len;
    uint64_t n;
} cases[] = {
/* 2^63 - 1, the last row of two shards */
#define LAST 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f
#define ONE 5, 3, 10, 9, 2, 50, 4, 0
#define CASE(what, err, n, ...)                                               \
    {                                                                         \
        what, err, {__VA_ARGS__}, sizeof((uint8_t[]){__VA_ARGS__}), n         \
    }
    CASE("one", 0, 1, ONE),
    CASE("two that touch", 0, 2, ONE, 0, 0, 9, 2, 50, 4, 0),
    CASE("another counter", 0, 2, ONE, 1, 4, 10, 9, 2, 50, 4, 0),
    CASE("no serial", ERR_CORRUPT, 1, 0, 10, 9, 2, 50, 4, 0),
    CASE("no file", ERR_CORRUPT, 1, 5, 3, 10, 9, 0, 50, 4, 0),
    CASE("a file before all", ERR_CORRUPT, 2, ONE, 0, 0, 9, 1, 50, 4, 0),
    CASE("the last file", 0, 2, ONE, 0, 0, 9, 14, 50, 4, 0),
    CASE("a file to come", ERR_CORRUPT, 2, ONE, 0, 0, 9, 16, 50, 4, 0),
    CASE("no records", ERR_CORRUPT, 1, 5, 3, 10, 9, 2, 0, 4, 0),
    CASE("all rows", 0, 1, 5, 3, 0, LAST, 2, 50, 4, 0),
    CASE("a row too many", ERR_CORRUPT, 1, 5, 3, 1, LAST, 2, 50, 4, 0),
    CASE("behind the last row", ERR_CORRUPT, 2, 5, 3, 0, LAST, 2, 50, 4, 0, 0,
        0, 0, 2, 50, 4, 0),
    CASE("rows that wrap", ERR_CORRUPT, 1, 5, 3, 2, 0xff, 0xff, 0xff, 0xff,
        0xff, 0xff, 0xff, 0xff, 0xff, 1, 2, 50, 4, 0),
    CASE("a serial too large", ERR_CORRUPT, 2, ONE, 0xfb, 0xff, 0xff, 0xff,
        0x0f, 4, 10, 9, 2, 50, 4, 0),
    CASE("the largest serial", 0, 2, ONE, 0xfa, 0xff, 0xff, 0xff, 0x0f, 4, 10,
        9, 2, 50, 4, 0),
    CASE("a sequence number missing", ERR_CORRUPT, 1, 5, 3, 10, 9, 2, 50, 4),
    CASE("something behind", ERR_CORRUPT, 1, ONE, 0),
    CASE("one missing", ERR_CORRUPT, 2, ONE),
    CASE("without end", ERR_CORRUPT, UINT64_MAX, ONE),
#undef CASE
#undef ONE
#undef LAST
};

START_TEST(test_segments_that_cannot_be)
{
    struct manifest manifest = {.epoch = 1, .shards = 2, .last_segment = 8};
    struct manifest got;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        int err = decode_listed(&manifest, HEAD_BYTES + 8, cases[i].n,
            cases[i].bytes, cases[i].len, &got);
        ck_assert_msg(err == cases[i].err, "%s: %d", cases[i].what, err);
        ck_assert_uint_eq(got.segments.n, err == 0 ? cases[i].n : 0);
        manifest_fini(&got);
    }
}
END_TEST

START_TEST(test_without_memory_nothing_is_decoded)
{
    expect_want_of_memory_is_seen(manifest_some, 5, check_same_segments);
}
END_TEST

START_TEST(test_version_2_can_be_read_for_good)
{
    expect_golden(DATA_DIR "/manifest-v2", manifest_some, check_same_segments);
}
END_TEST

START_TEST(test_find)
{
    struct manifest manifest;
    size_t n;
    manifest_some(&manifest);
    const struct segments *it = &manifest.segments;
    static const struct {
        uint32_t serial;
        uint64_t id, number;
    } asked[] = {{5, 0, 0}, {5, 7, 0}, {5, 8, 7}, {5, 3999, 7}, {5, 4000, 39},
        {5, 7999, 39}, {5, 8000, 0}, {5, UINT64_MAX - 4, 0},
        {5, UINT64_MAX - 3, 7}, {5, UINT64_MAX, 7}, {4, 8, 0}, {6, 8, 0},
        {70, 0, 40}, {70, UINT64_MAX, 40}, {UINT32_MAX, 8, 0}};
    for (size_t i = 0; i < COUNT_OF(asked); i++) {
        const struct manifest_segment *found =
            segments_find(it, asked[i].serial, asked[i].id);
        ck_assert_uint_eq(found == NULL ? 0 : found->number, asked[i].number);
    }
    ck_assert_ptr_nonnull(segments_of(it, 5, &n));
    ck_assert_uint_eq(n, 3);
    ck_assert_ptr_null(segments_of(it, 6, &n));
    ck_assert_uint_eq(n, 0);
    ck_assert(segments_has_file(it, 39) && !segments_has_file(it, 38));
    ck_assert_uint_eq(segments_last_file(it), 40);
    manifest.n_counters = 1;
    ck_assert_int_eq(manifest_drop_gone(&manifest), 0);
    segments_verify(it);
    ck_assert_uint_eq(it->n, 3);
    ck_assert(!segments_has_file(it, 40));
    manifest.n_counters = 0;
    ck_assert_int_eq(manifest_drop_gone(&manifest), 0);
    ck_assert_uint_eq(it->n, 0);
    manifest_fini(&manifest);
}
END_TEST

START_TEST(test_a_segment_in_another_slot)
{
    struct manifest manifest, got;
    struct buf buf = {0};
    manifest_some(&manifest);
    manifest.counter[0].slot = 4;
    ck_assert_int_eq(manifest__encode(&manifest, &buf), 0);
    ck_assert_int_eq(decode(buf.data, buf.len, &got), ERR_CORRUPT);
    manifest.counter[0].serial = 6; /* those of 5 are of nobody then */
    buf_clear(&buf);
    ck_assert_int_eq(manifest__encode(&manifest, &buf), 0);
    ck_assert_int_eq(decode(buf.data, buf.len, &got), 0);
    manifest_fini(&got);
    manifest_fini(&manifest);
    buf_fini(&buf);
}
END_TEST

/* ---- what segments take from images ---- */

enum { ROWS = 200, IMAGES = 12, SLOTS = 2 };

/* Whether an image may have that row: none of a newer segment. */
static bool
may_have(const struct manifest *manifest, uint8_t slot, uint16_t shard,
    uint64_t row, uint64_t seq)
{
    const struct manifest_segment *segment =
        segments_find(&manifest->segments, 100U + slot, row * SHARDS + shard);
    return segment == NULL || seq >= segment->seq[shard];
}

static void
make_random(struct manifest *manifest, uint64_t *random)
{
    manifest_init(manifest);
    manifest->epoch = 1;
    manifest->shards = SHARDS;
    manifest->segments.shards = SHARDS;
    manifest->last_segment = 99;
    manifest->next_file = 2;
    manifest->counter = calloc(SLOTS, sizeof *manifest->counter);
    ck_assert_ptr_nonnull(manifest->counter);
    for (unsigned slot = 0; slot < SLOTS; slot++) {
        add_counter(manifest, (uint8_t)slot, 100 + slot);
        for (uint64_t row = random_below(random, 50); row < ROWS;) {
            uint64_t seq[SHARDS], last = row + random_below(random, 40);
            for (unsigned s = 0; s < SHARDS; s++) {
                seq[s] = random_below(random, 10);
            }
            add(manifest,
                (struct manifest_segment){.number = 1 + row % 99,
                    .counter_serial = 100 + slot,
                    .counter = (uint8_t)slot,
                    .first_id = row * SHARDS,
                    .last_id = last * SHARDS + SHARDS - 1,
                    .records = 1},
                seq);
            row = last + 1 + random_below(random, 3) * 10;
        }
    }
    for (unsigned i = 0; i < IMAGES * SLOTS * SHARDS; i++) {
        uint64_t first = random_below(random, ROWS);
        struct images_entry entry = {.counter = (uint8_t)(i % SLOTS),
            .shard = (uint16_t)(i / SLOTS % SHARDS),
            .first_row = first,
            .last_row =
                i % 50 == 0 ? UINT64_MAX : first + random_below(random, 60),
            .seq = random_below(random, 10),
            .offset = 10 * i,
            .len = 10,
            .file = 1};
        ck_assert_int_eq(images_add(&manifest->images, &entry), 0);
    }
}

static void
check_cut(const struct manifest *manifest, const struct images *before)
{
    for (unsigned i = 0; i < SLOTS * SHARDS; i++) {
        uint8_t slot = (uint8_t)(i % SLOTS);
        uint16_t shard = (uint16_t)(i / SLOTS);
        for (uint64_t row = 0; row < ROWS + 70; row++) {
            const struct images_entry *was =
                images_find(before, slot, shard, row);
            const struct images_entry *is =
                images_find(&manifest->images, slot, shard, row);
            bool stays =
                was != NULL && may_have(manifest, slot, shard, row, was->seq);
            ck_assert_msg((is != NULL) == stays, "row %d", (int)row);
            if (stays) {
                ck_assert_uint_eq(is->offset, was->offset);
                ck_assert_uint_eq(is->seq, was->seq);
            }
        }
    }
}

START_TEST(test_images_are_cut)
{
    uint64_t random = 11;
    unsigned n_some = 0;
    for (unsigned round = 0; round < 100; round++) {
        struct manifest manifest;
        struct images before;
        size_t n, again;
        make_random(&manifest, &random);
        ck_assert_int_eq(images_copy(&manifest.images, &before), 0);
        ck_assert_int_eq(manifest_cut_images(&manifest, &n), 0);
        images_verify(&manifest.images);
        check_cut(&manifest, &before);
        n_some += n > 0;
        ck_assert_int_eq(manifest_cut_images(&manifest, &again), 0);
        ck_assert_uint_eq(again, 0);
        images_fini(&before);
        manifest_fini(&manifest);
    }
    ck_assert_uint_gt(n_some, 50);
}
END_TEST

/* Rows behind the last one that an id has are left alone; and segments of a
 * counter that had the slot before do not count. */
START_TEST(test_images_that_stay)
{
    struct manifest manifest;
    size_t n;
    manifest_some(&manifest);
    struct images_entry entry = {.counter = 255,
        .first_row = (UINT64_MAX >> 2) + 1,
        .last_row = UINT64_MAX,
        .file = 1,
        .len = 1};
    ck_assert_int_eq(images_add(&manifest.images, &entry), 0);
    ck_assert_int_eq(manifest_cut_images(&manifest, &n), 0);
    ck_assert_uint_eq(n, 1); /* that of slot 3: its seq is below 102 */
    ck_assert_uint_eq(manifest.images.n, 2);
    const struct images_entry *left = images_find(&manifest.images, 3, 2, 1);
    ck_assert_ptr_nonnull(left);
    ck_assert_uint_eq(left->last_row, 1);
    ck_assert(left->part);
    entry = (struct images_entry){
        .counter = 3, .shard = 2, .last_row = 499, .file = 1, .len = 1};
    ck_assert_int_eq(images_add(&manifest.images, &entry), 0);
    manifest.counter[0].serial = 6;
    ck_assert_int_eq(manifest_cut_images(&manifest, &n), 0);
    ck_assert_uint_eq(n, 0);
    manifest_fini(&manifest);
}
END_TEST

int
main(void)
{
    const TTest *test[] = {test_they_come_back, test_random_ones_come_back,
        test_version_1_until_there_is_one,
        test_every_flipped_bit_and_every_cut_is_damage,
        test_a_right_checksum_does_not_make_them_sound,
        test_segments_that_cannot_be, test_without_memory_nothing_is_decoded,
        test_version_2_can_be_read_for_good, test_find,
        test_a_segment_in_another_slot, test_images_are_cut,
        test_images_that_stay};
    return run_tests("manifest segments", test, COUNT_OF(test));
}
