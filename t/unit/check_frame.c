/* SPDX-License-Identifier: BSD-3-Clause */
/* wal/frame: what is put is got back, and with any bit of it changed, or cut
 * anywhere, or in another file, it is no frame. */
#include "wal/frame.h"

#include "base/bytes.h"
#include "base/checksum.h"
#include "unit/check_help.h"

static const struct frame_file file_1 = {
    .epoch = 0x1122334455667788, .number = 1, .first_seq = 1, .bytes = 64};
static const struct frame_file file_7 = {.epoch = 77,
    .number = 7,
    .first_seq = 1000,
    .bytes = 1 << 20,
    .before_end = 4711};

static enum frame_fault
get_file(const uint8_t *bytes, size_t len, struct frame_file *out)
{
    char *copy = copy_of((const char *)bytes, len);
    enum frame_fault fault = frame_file_get((const uint8_t *)copy, len, out);

    free(copy);
    return fault;
}

static enum frame_fault
get_batch(const struct frame_file *file, const uint8_t *bytes, size_t len,
    struct frame_batch *out)
{
    char *copy = copy_of((const char *)bytes, len);
    enum frame_fault fault =
        frame_batch_get(file, (const uint8_t *)copy, len, out);

    free(copy);
    return fault;
}

START_TEST(test_file_layout)
{
    uint8_t bytes[FRAME_FILE_BYTES];
    struct frame_file got;

    frame_file_put(&file_7, bytes);
    ck_assert_mem_eq(bytes, "TALLYLOG\1\0\0\0\0\0\0\0", 16);
    ck_assert_uint_eq(bytes_get_u64(bytes + 16), 77);
    ck_assert_uint_eq(bytes_get_u64(bytes + 24), 7);
    ck_assert_uint_eq(bytes_get_u64(bytes + 32), 1000);
    ck_assert_uint_eq(bytes_get_u64(bytes + 40), 1 << 20);
    ck_assert_uint_eq(bytes_get_u64(bytes + 48), 4711);
    ck_assert_uint_eq(bytes_get_u64(bytes + 56), checksum64(bytes, 56, 0));
    ck_assert_int_eq(get_file(bytes, sizeof bytes, &got), FRAME_OK);
    ck_assert_uint_eq(got.epoch, 77);
    ck_assert_uint_eq(got.number, 7);
    ck_assert_uint_eq(got.first_seq, 1000);
    ck_assert_uint_eq(got.bytes, 1 << 20);
    ck_assert_uint_eq(got.before_end, 4711);
    frame_file_put(&file_1, bytes);
    ck_assert_int_eq(get_file(bytes, sizeof bytes, &got), FRAME_OK);
    ck_assert_uint_eq(got.bytes, 64);
    ck_assert_uint_eq(got.before_end, 0);
}
END_TEST

START_TEST(test_file_damage)
{
    uint8_t bytes[FRAME_FILE_BYTES];
    struct frame_file got;

    frame_file_put(&file_7, bytes);
    for (size_t bit = 0; bit < 8 * sizeof bytes; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        ck_assert_int_eq(get_file(bytes, sizeof bytes, &got), FRAME_DAMAGED);
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    for (size_t len = 0; len < sizeof bytes; len++) {
        ck_assert_int_eq(get_file(bytes, len, &got), FRAME_DAMAGED);
    }
}
END_TEST

/* Sound bytes that say what cannot be. */
static enum frame_fault
get_forged(size_t at, uint64_t value, size_t n)
{
    uint8_t bytes[FRAME_FILE_BYTES];
    struct frame_file got;

    frame_file_put(&file_7, bytes);
    if (n == 4) {
        bytes_put_u32(bytes + at, (uint32_t)value);
    } else {
        bytes_put_u64(bytes + at, value);
    }
    bytes_put_u64(bytes + 56, checksum64(bytes, 56, 0));
    return get_file(bytes, sizeof bytes, &got);
}

START_TEST(test_file_forged)
{
    ck_assert_int_eq(get_forged(8, 1, 4), FRAME_OK);
    ck_assert_int_eq(get_forged(8, 0, 4), FRAME_DAMAGED);
    ck_assert_int_eq(get_forged(8, 2, 4), FRAME_NEWER);
    ck_assert_int_eq(get_forged(8, UINT32_MAX, 4), FRAME_NEWER);
    ck_assert_int_eq(get_forged(12, 1, 4), FRAME_NEWER);
    ck_assert_int_eq(get_forged(16, 0, 8), FRAME_DAMAGED);
    ck_assert_int_eq(get_forged(24, 0, 8), FRAME_DAMAGED);
    ck_assert_int_eq(get_forged(24, 1, 8), FRAME_DAMAGED);
    ck_assert_int_eq(get_forged(24, 2, 8), FRAME_OK);
    ck_assert_int_eq(get_forged(32, 0, 8), FRAME_DAMAGED);
    ck_assert_int_eq(get_forged(40, 63, 8), FRAME_DAMAGED);
    ck_assert_int_eq(get_forged(40, 64, 8), FRAME_OK);
    ck_assert_int_eq(get_forged(40, UINT64_MAX, 8), FRAME_OK);
    ck_assert_int_eq(get_forged(48, 0, 8), FRAME_OK);
    ck_assert_int_eq(get_forged(48, 64, 8), FRAME_OK);
    ck_assert_int_eq(get_forged(48, 63, 8), FRAME_DAMAGED);
}
END_TEST

enum { PAYLOAD = 45, WHOLE = FRAME_BATCH_BYTES + PAYLOAD };

static const struct frame_batch batch_9 = {
    .seq = 9, .synced_seq = 4, .payload_bytes = PAYLOAD};

static void
make_batch(uint8_t bytes[WHOLE])
{
    for (size_t i = 0; i < PAYLOAD; i++) {
        bytes[FRAME_BATCH_BYTES + i] = (uint8_t)(i * 7);
    }
    frame_batch_put(&file_7, &batch_9, bytes);
}

START_TEST(test_batch_layout)
{
    uint8_t bytes[WHOLE], place[16];
    struct frame_batch got;
    uint64_t sum;

    make_batch(bytes);
    ck_assert_mem_eq(bytes, "TLYB\55\0\0\0", 8);
    ck_assert_uint_eq(bytes_get_u64(bytes + 8), 9);
    ck_assert_uint_eq(bytes_get_u64(bytes + 16), 4);
    bytes_put_u64(place, 77);
    bytes_put_u64(place + 8, 7);
    sum = checksum64(place, 16, 0);
    sum = checksum64(bytes, 24, sum);
    sum = checksum64(bytes + 32, PAYLOAD, sum);
    ck_assert_uint_eq(bytes_get_u64(bytes + 24), sum);
    ck_assert_int_eq(get_batch(&file_7, bytes, WHOLE, &got), FRAME_OK);
    ck_assert_uint_eq(got.seq, 9);
    ck_assert_uint_eq(got.synced_seq, 4);
    ck_assert_uint_eq(got.payload_bytes, PAYLOAD);
}
END_TEST

START_TEST(test_batch_damage)
{
    uint8_t bytes[WHOLE];
    struct frame_batch got;

    make_batch(bytes);
    for (size_t bit = 0; bit < 8 * sizeof bytes; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        ck_assert_int_eq(
            get_batch(&file_7, bytes, sizeof bytes, &got), FRAME_DAMAGED);
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    for (size_t len = 0; len < sizeof bytes; len++) {
        ck_assert_int_eq(get_batch(&file_7, bytes, len, &got),
            len < FRAME_BATCH_BYTES ? FRAME_END : FRAME_DAMAGED);
    }
}
END_TEST

START_TEST(test_batch_of_another_file)
{
    uint8_t bytes[WHOLE];
    struct frame_batch got;
    struct frame_file file = file_7;

    make_batch(bytes);
    file.first_seq = 5; /* is not what makes it another */
    ck_assert_int_eq(get_batch(&file, bytes, WHOLE, &got), FRAME_OK);
    file.number++;
    ck_assert_int_eq(get_batch(&file, bytes, WHOLE, &got), FRAME_DAMAGED);
    file.number--;
    file.epoch++;
    ck_assert_int_eq(get_batch(&file, bytes, WHOLE, &got), FRAME_DAMAGED);
}
END_TEST

START_TEST(test_batch_end)
{
    uint8_t bytes[WHOLE] = {0};
    struct frame_batch got;

    ck_assert_int_eq(get_batch(&file_7, bytes, WHOLE, &got), FRAME_END);
    ck_assert_int_eq(
        get_batch(&file_7, bytes, FRAME_BATCH_BYTES, &got), FRAME_END);
    for (size_t i = 0; i < FRAME_BATCH_BYTES; i++) {
        bytes[i] = 1;
        ck_assert_int_eq(
            get_batch(&file_7, bytes, WHOLE, &got), FRAME_DAMAGED);
        bytes[i] = 0;
    }
    bytes[FRAME_BATCH_BYTES] = 1;
    ck_assert_int_eq(get_batch(&file_7, bytes, WHOLE, &got), FRAME_END);
}
END_TEST

START_TEST(test_batch_largest)
{
    size_t len = (size_t)FRAME_BATCH_BYTES + FRAME_PAYLOAD_MAX;
    uint8_t *bytes = calloc(1, len);
    struct frame_batch got;
    struct frame_batch batch = {.seq = UINT64_MAX - 1,
        .synced_seq = UINT64_MAX - 1,
        .payload_bytes = FRAME_PAYLOAD_MAX};

    ck_assert_ptr_nonnull(bytes);
    frame_batch_put(&file_1, &batch, bytes);
    ck_assert_int_eq(frame_batch_get(&file_1, bytes, len, &got), FRAME_OK);
    ck_assert_uint_eq(got.seq, UINT64_MAX - 1);
    bytes[len - 1] ^= 1;
    ck_assert_int_eq(
        frame_batch_get(&file_1, bytes, len, &got), FRAME_DAMAGED);
    free(bytes);
}
END_TEST

START_TEST(test_peek)
{
    uint8_t bytes[WHOLE];
    struct frame_batch got;

    make_batch(bytes);
    ck_assert(frame_batch_peek(bytes, &got));
    ck_assert_uint_eq(got.seq, 9);
    bytes_put_u32(bytes + 4, 0);
    ck_assert(!frame_batch_peek(bytes, &got));
    bytes_put_u32(bytes + 4, FRAME_PAYLOAD_MAX + 1);
    ck_assert(!frame_batch_peek(bytes, &got));
    bytes_put_u32(bytes + 4, FRAME_PAYLOAD_MAX);
    ck_assert(frame_batch_peek(bytes, &got));
    bytes_put_u64(bytes + 16, 10); /* synced beyond itself */
    ck_assert(!frame_batch_peek(bytes, &got));
    bytes_put_u64(bytes + 16, 0);
    bytes_put_u64(bytes + 8, 0);
    ck_assert(!frame_batch_peek(bytes, &got));
    bytes_put_u64(bytes + 8, UINT64_MAX); /* has no next one */
    ck_assert(!frame_batch_peek(bytes, &got));
}
END_TEST

START_TEST(test_seek)
{
    static const uint8_t text[] = "TLYTLYBxTLYBTL";

    ck_assert_uint_eq(frame_batch_seek(text, 14), 3);
    ck_assert_uint_eq(frame_batch_seek(text + 4, 10), 4);
    ck_assert_uint_eq(frame_batch_seek(text + 9, 5), 2);
    ck_assert_uint_eq(frame_batch_seek(text, 6), 3);
    ck_assert_uint_eq(frame_batch_seek(text, 4), 1);
    ck_assert_uint_eq(frame_batch_seek(text, 3), 0);
    ck_assert_uint_eq(frame_batch_seek(text, 0), 0);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_file_layout, test_file_damage,
        test_file_forged, test_batch_layout, test_batch_damage,
        test_batch_of_another_file, test_batch_end, test_batch_largest,
        test_peek, test_seek};

    return run_tests("frame", tests, COUNT_OF(tests));
}
