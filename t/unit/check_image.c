/* SPDX-License-Identifier: BSD-3-Clause */
/* wal/image: what is encoded comes back; any flipped bit or missing byte is
 * damage; a newer version is told apart; blocks with a right checksum and
 * wrong content are refused without reading or making room beyond what they
 * bear out. Blocks lie in heap blocks of exactly their size. */
#include "wal/image.h"

#include "base/bytes.h"
#include "base/checksum.h"
#include "base/err.h"
#include "unit/check_help.h"

#include <stdio.h>

enum { SUM_BYTES = 8 };

/* Numbers that an image points to. */
struct content {
    struct image image;
    uint64_t *row;
    uint64_t *code[SCHEMA_COLUMNS_MAX];
};

static uint64_t *
numbers(size_t n)
{
    uint64_t *made = calloc(n + 1, sizeof *made);
    ck_assert_ptr_nonnull(made);
    return made;
}

static void
content_init(struct content *content, uint32_t n, unsigned n_columns)
{
    *content = (struct content){.image = {.counter = 200,
                                    .shard = 4095,
                                    .counter_serial = 7,
                                    .seq = UINT64_C(0x1122334455667788),
                                    .first_row = 1 << 20,
                                    .last_row = UINT64_MAX,
                                    .n_columns = n_columns,
                                    .n = n}};
    content->image.row = content->row = numbers(n);
    for (unsigned i = 0; i < n_columns; i++) {
        content->image.column[i] =
            (uint8_t)(SCHEMA_COLUMNS_MAX - n_columns + i);
        content->image.serial[i] = 100 + i;
        content->image.code[i] = content->code[i] = numbers(n);
    }
}

static void
content_fini(struct content *content)
{
    free(content->row);
    for (unsigned i = 0; i < content->image.n_columns; i++) {
        free(content->code[i]);
    }
}

/* Rows some thousands apart; codes mostly small. */
static void
content_fill(struct content *content, uint64_t *random)
{
    uint64_t row = content->image.first_row;
    for (uint32_t i = 0; i < content->image.n; i++) {
        row += random_below(random, 9000);
        content->row[i] = row++;
        for (unsigned c = 0; c < content->image.n_columns; c++) {
            bool is_rare = random_below(random, 100) == 0;
            content->code[c][i] =
                random_below(random, is_rare ? UINT64_MAX : 1 + 100 * c);
        }
    }
    content->image.last_row = row + 1000;
}

static void
check_same(const struct image *got, const struct image *want)
{
    ck_assert_uint_eq(got->counter, want->counter);
    ck_assert_uint_eq(got->shard, want->shard);
    ck_assert_uint_eq(got->counter_serial, want->counter_serial);
    ck_assert_uint_eq(got->seq, want->seq);
    ck_assert_uint_eq(got->first_row, want->first_row);
    ck_assert_uint_eq(got->last_row, want->last_row);
    ck_assert_uint_eq(got->n, want->n);
    ck_assert_uint_eq(got->n_columns, want->n_columns);
    ck_assert_mem_eq(got->row, want->row, want->n * sizeof *want->row);
    for (unsigned c = 0; c < want->n_columns; c++) {
        ck_assert_uint_eq(got->column[c], want->column[c]);
        ck_assert_uint_eq(got->serial[c], want->serial[c]);
        ck_assert_mem_eq(
            got->code[c], want->code[c], want->n * sizeof *want->row);
    }
}

static int
decode(
    const void *bytes, size_t len, struct image_room *room, struct image *out)
{
    char *copy = copy_of(bytes, len);
    int err = image_decode((uint8_t *)copy, len, room, out);
    free(copy);
    return err;
}

/* The head alone says the same, and only of a whole block. */
static void
check_head(const struct buf *block, const struct image *want)
{
    struct image head;
    const uint8_t *bytes = (const uint8_t *)block->data;
    ck_assert(image_head(bytes, block->len, &head));
    ck_assert_uint_eq(head.counter, want->counter);
    ck_assert_uint_eq(head.shard, want->shard);
    ck_assert_uint_eq(head.counter_serial, want->counter_serial);
    ck_assert_uint_eq(head.history, want->history);
    ck_assert_uint_eq(head.seq, want->seq);
    ck_assert_uint_eq(head.first_row, want->first_row);
    ck_assert_uint_eq(head.last_row, want->last_row);
    ck_assert_uint_eq(head.n, want->n);
    ck_assert_uint_eq(head.n_columns, want->n_columns);
    ck_assert(!image_head(bytes, block->len - 1, &head));
    ck_assert(!image_head(bytes, IMAGE_HEAD_BYTES - 1, &head));
    ck_assert(!image_head(bytes + 1, block->len - 1, &head));
}

static void
check_comes_back(const struct content *content)
{
    struct buf block = {0};
    struct image_room room = {0};
    struct image got;
    ck_assert_int_eq(image_encode(&content->image, &block), 0);
    ck_assert_uint_le(block.len, image_bytes_max());
    ck_assert_int_eq(decode(block.data, block.len, &room, &got), 0);
    check_same(&got, &content->image);
    check_head(&block, &content->image);
    image_room_fini(&room);
    buf_fini(&block);
}

/* Makes the checksum right again. */
static void
seal(struct buf *block)
{
    size_t len = block->len - SUM_BYTES;
    bytes_put_u64(
        (uint8_t *)block->data + len, checksum64(block->data, len, 0));
}

START_TEST(test_images_come_back)
{
    static const uint32_t n[] = {0, 1, 2, 127, 128, 129, 1000, 40000};
    uint64_t random = 1;
    for (size_t i = 0; i < COUNT_OF(n); i++) {
        for (unsigned columns = 0; columns <= SCHEMA_COLUMNS_MAX;
             columns += 1 + columns / 3) {
            struct content content;
            content_init(&content, n[i], columns);
            content_fill(&content, &random);
            check_comes_back(&content);
            content_fini(&content);
        }
    }
}
END_TEST

START_TEST(test_rows_at_the_ends)
{
    struct content content;
    content_init(&content, 3, 1);
    content.image.first_row = 0;
    content.row[0] = 0;
    content.row[1] = 1;
    content.row[2] = UINT64_MAX;
    content.code[0][1] = UINT64_MAX;
    check_comes_back(&content);
    content.image.first_row = UINT64_MAX;
    content.image.n = 1;
    content.row[0] = UINT64_MAX;
    check_comes_back(&content);
    content_fini(&content);
}
END_TEST

START_TEST(test_blocks_follow_each_other_in_one_buffer)
{
    uint64_t random = 3;
    struct buf out = {0};
    struct image_room room = {0};
    struct image got;
    struct content a, b;
    content_init(&a, 500, 3);
    content_init(&b, 5, 2);
    content_fill(&a, &random);
    content_fill(&b, &random);
    ck_assert_int_eq(image_encode(&a.image, &out), 0);
    size_t first = out.len;
    ck_assert_int_eq(image_encode(&b.image, &out), 0);
    ck_assert_int_eq(decode(out.data, first, &room, &got), 0);
    check_same(&got, &a.image);
    ck_assert_int_eq(
        decode(out.data + first, out.len - first, &room, &got), 0);
    check_same(&got, &b.image);
    ck_assert_int_eq(decode(out.data, out.len, &room, &got), ERR_CORRUPT);
    image_room_fini(&room);
    content_fini(&a);
    content_fini(&b);
    buf_fini(&out);
}
END_TEST

START_TEST(test_every_flipped_bit_and_every_cut_is_damage)
{
    uint64_t random = 4;
    struct buf block = {0};
    struct image_room room = {0};
    struct image got;
    struct content content;
    content_init(&content, 150, 2);
    content_fill(&content, &random);
    ck_assert_int_eq(image_encode(&content.image, &block), 0);
    for (size_t bit = 0; bit < 8 * block.len; bit++) {
        block.data[bit / 8] ^= (char)(1 << bit % 8);
        ck_assert_int_eq(
            decode(block.data, block.len, &room, &got), ERR_CORRUPT);
        block.data[bit / 8] ^= (char)(1 << bit % 8);
    }
    for (size_t len = 0; len < block.len; len++) {
        ck_assert_int_eq(decode(block.data, len, &room, &got), ERR_CORRUPT);
    }
    ck_assert_ptr_null(room.numbers);
    ck_assert_int_eq(decode(block.data, block.len, &room, &got), 0);
    image_room_fini(&room);
    content_fini(&content);
    buf_fini(&block);
}
END_TEST

START_TEST(test_a_newer_version_is_told_apart)
{
    struct buf block = {0};
    struct image_room room = {0};
    struct image got;
    struct content content;
    content_init(&content, 0, 0);
    ck_assert_int_eq(image_encode(&content.image, &block), 0);
    bytes_put_u32((uint8_t *)block.data + 4, IMAGE_VERSION + 1);
    seal(&block);
    ck_assert_int_eq(
        decode(block.data, block.len, &room, &got), ERR_NEWER_FORMAT);
    bytes_put_u32((uint8_t *)block.data + 4, 0);
    seal(&block);
    ck_assert_int_eq(decode(block.data, block.len, &room, &got), ERR_CORRUPT);
    image_room_fini(&room);
    content_fini(&content);
    buf_fini(&block);
}
END_TEST

/* What four bytes of a block of three records and two columns are made. */
static const struct lie {
    const char *what;
    size_t at;
    uint32_t value;
} lies[] = {
    {"more records than groups", 12, 129},
    {"fewer records", 12, 2},
    {"records without end", 12, UINT32_MAX},
    {"as many as are allowed", 12, IMAGE_RECORDS_MAX},
    {"another length", 8, 100},
    {"first row above last row", 28, UINT32_MAX},
    {"last row below the last record", 32, (1 << 20) + 11},
    {"counter without a serial", 40, 0},
    {"one column less", 44, 0x01000000},
    {"17 columns", 44, 0x11000000},
    {"255 columns", 44, 0xff000000},
    {"a reserved byte", 56, 1},
    {"the last reserved byte", 60, 0x01000000},
    {"a column without a serial", 64, 0},
    {"slots that do not ascend", 68, 15},
    {"slot 16", 76, 16},
    {"a reserved byte of a column", 76, 0x10f},
    {"numbers of 65 bits", 80, 65},
};

static void
check_lie(const struct lie *lie)
{
    struct buf block = {0};
    struct image_room room = {0};
    struct image got;
    struct content content;
    content_init(&content, 3, 2);
    for (uint64_t i = 0; i < 3; i++) {
        content.row[i] = content.image.first_row + 10 + i;
    }
    content.image.last_row = content.row[2];
    ck_assert_int_eq(image_encode(&content.image, &block), 0);
    bytes_put_u32((uint8_t *)block.data + lie->at, lie->value);
    seal(&block);
    int err = decode(block.data, block.len, &room, &got);
    ck_assert_msg(err == ERR_CORRUPT, "%s", lie->what);
    ck_assert_uint_le(room.capacity, 64 * block.len);
    image_room_fini(&room);
    content_fini(&content);
    buf_fini(&block);
}

START_TEST(test_a_right_checksum_does_not_make_it_sound)
{
    for (size_t i = 0; i < COUNT_OF(lies); i++) {
        check_lie(&lies[i]);
    }
}
END_TEST

START_TEST(test_rows_must_not_wrap)
{
    struct buf block = {0};
    struct image_room room = {0};
    struct image got;
    struct content content;
    content_init(&content, 2, 0);
    content.row[0] = content.image.first_row;
    content.row[1] = UINT64_MAX;
    ck_assert_int_eq(image_encode(&content.image, &block), 0);
    ck_assert_int_eq(decode(block.data, block.len, &room, &got), 0);
    /* the same distances from a higher row on */
    bytes_put_u64((uint8_t *)block.data + 24, content.image.first_row + 1);
    seal(&block);
    ck_assert_int_eq(decode(block.data, block.len, &room, &got), ERR_CORRUPT);
    /* and two neighbours, of which the first is the last row of all */
    content.image.first_row = content.row[0] = UINT64_MAX - 1;
    buf_clear(&block);
    ck_assert_int_eq(image_encode(&content.image, &block), 0);
    ck_assert_int_eq(decode(block.data, block.len, &room, &got), 0);
    bytes_put_u64((uint8_t *)block.data + 24, UINT64_MAX);
    seal(&block);
    ck_assert_int_eq(decode(block.data, block.len, &room, &got), ERR_CORRUPT);
    image_room_fini(&room);
    content_fini(&content);
    buf_fini(&block);
}
END_TEST

START_TEST(test_a_range_without_rows_is_damage)
{
    struct buf block = {0};
    struct image_room room = {0};
    struct image got;
    struct content content;
    content_init(&content, 0, 0);
    content.image.last_row = content.image.first_row;
    ck_assert_int_eq(image_encode(&content.image, &block), 0);
    ck_assert_int_eq(decode(block.data, block.len, &room, &got), 0);
    bytes_put_u64((uint8_t *)block.data + 32, content.image.first_row - 1);
    seal(&block);
    ck_assert_int_eq(decode(block.data, block.len, &room, &got), ERR_CORRUPT);
    image_room_fini(&room);
    content_fini(&content);
    buf_fini(&block);
}
END_TEST

START_TEST(test_bytes_behind_the_numbers_are_damage)
{
    static const char zero[1];
    struct buf block = {0};
    struct image_room room = {0};
    struct image got;
    struct content content;
    content_init(&content, 0, 0);
    ck_assert_int_eq(image_encode(&content.image, &block), 0);
    buf_add(&block, zero, sizeof zero);
    bytes_put_u32((uint8_t *)block.data + 8, (uint32_t)block.len);
    seal(&block);
    ck_assert_int_eq(decode(block.data, block.len, &room, &got), ERR_CORRUPT);
    image_room_fini(&room);
    content_fini(&content);
    buf_fini(&block);
}
END_TEST

static struct buf
golden_file(void)
{
    struct buf out = {0};
    char some[4096];
    FILE *file = fopen(DATA_DIR "/checkpoint-v1", "rb");
    ck_assert_ptr_nonnull(file);
    for (size_t n; (n = fread(some, 1, sizeof some, file)) > 0;) {
        buf_add(&out, some, n);
    }
    fclose(file);
    return out;
}

/* What is in t/data/checkpoint-v1. */
static void
golden_content(struct content *content, int i)
{
    content_init(content, i == 0 ? 300 : 0, i == 0 ? 3 : 1);
    content->image.seq += (uint64_t)i;
    content->image.last_row = 1 << 30;
    for (uint64_t k = 0; k < content->image.n; k++) {
        content->row[k] = content->image.first_row + 4700 * k + k * k % 97;
        content->code[0][k] = k % 7;
        content->code[1][k] = k % 50 == 3 ? 70000 * k : k % 2;
        content->code[2][k] = k == 299 ? UINT64_MAX : 0;
    }
}

START_TEST(test_version_1_can_be_read_for_good)
{
    struct buf file = golden_file();
    struct buf made = {0};
    struct image_room room = {0};
    struct image got;
    size_t at = 0;
    for (int i = 0; i < 2; i++) {
        struct content content;
        golden_content(&content, i);
        ck_assert_uint_ge(file.len, at + 12);
        size_t len = bytes_get_u32((uint8_t *)file.data + at + 8);
        ck_assert_uint_le(len, file.len - at);
        ck_assert_int_eq(decode(file.data + at, len, &room, &got), 0);
        check_same(&got, &content.image);
        at += len;
        ck_assert_int_eq(image_encode(&content.image, &made), 0);
        content_fini(&content);
    }
    ck_assert_uint_eq(at, file.len);
    ck_assert_uint_eq(made.len, file.len);
    ck_assert_mem_eq(made.data, file.data, file.len);
    image_room_fini(&room);
    buf_fini(&made);
    buf_fini(&file);
}
END_TEST

/* A block says whose it is; who moves it puts that in, unless it is damaged. */
START_TEST(test_history)
{
    static const uint64_t histories[] = {0, 1, UINT64_MAX};
    struct image_room room = {0};
    uint64_t random = 1;
    for (size_t i = 0; i < COUNT_OF(histories); i++) {
        struct buf block = {0};
        struct image got;
        struct content content;
        uint32_t len;
        uint64_t history;
        content_init(&content, 5, 2);
        content_fill(&content, &random);
        content.image.history = histories[i];
        ck_assert_int_eq(image_encode(&content.image, &block), 0);
        uint8_t *bytes = (uint8_t *)block.data;
        ck_assert(image_peek(bytes, &len, &history));
        ck_assert_uint_eq(len, block.len);
        ck_assert_uint_eq(history, histories[i]);
        ck_assert_int_eq(decode(bytes, block.len, &room, &got), 0);
        ck_assert_uint_eq(got.history, histories[i]);
        ck_assert(!image_put_history(bytes, block.len, 4711, 4711));
        ck_assert(image_put_history(bytes, block.len, histories[i], 4711));
        ck_assert_int_eq(decode(bytes, block.len, &room, &got), 0);
        ck_assert_uint_eq(got.history, 4711);
        got.history = histories[i];
        check_same(&got, &content.image);
        for (size_t at = 0; at < block.len; at++) {
            bytes[at] ^= 1;
            char *before = copy_of(block.data, block.len);
            ck_assert(!image_put_history(bytes, block.len, 4711, 5));
            ck_assert_mem_eq(bytes, before, block.len);
            free(before);
            bytes[at] ^= 1;
        }
        bytes[0] ^= 1;
        ck_assert(!image_peek(bytes, &len, &history));
        content_fini(&content);
        buf_fini(&block);
    }
    image_room_fini(&room);
}
END_TEST

int
main(void)
{
    const TTest *test[] = {test_images_come_back, test_rows_at_the_ends,
        test_blocks_follow_each_other_in_one_buffer,
        test_every_flipped_bit_and_every_cut_is_damage,
        test_a_newer_version_is_told_apart,
        test_a_right_checksum_does_not_make_it_sound, test_rows_must_not_wrap,
        test_a_range_without_rows_is_damage,
        test_bytes_behind_the_numbers_are_damage,
        test_version_1_can_be_read_for_good, test_history};
    return run_tests("image", test, COUNT_OF(test));
}
