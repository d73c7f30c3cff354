/* SPDX-License-Identifier: BSD-3-Clause */
/* names/name_symbols, names/name_code and names/name_image: names as bytes that
 * are kept, and what those bytes are in a file. */
#include "base/bytes.h"
#include "base/checksum.h"
#include "base/err.h"
#include "names/name_code.h"
#include "names/name_image.h"

#include "unit/check_help.h"

#include <stdio.h>

static struct name_symbols symbols;

/* What many addresses have in common. */
static void
learn(void)
{
    static char sample[NAME_SAMPLE_BYTES_MAX + NAME_SAMPLE_PAD];
    struct name_lesson *lesson = calloc(1, name_lesson_bytes());
    ck_assert_ptr_nonnull(lesson);
    size_t n = 0;
    for (unsigned i = 0; n + 64 < NAME_SAMPLE_BYTES_MAX; i++) {
        n += (size_t)snprintf(sample + n, 64, "https://www.example.com/%x/%u",
                 i * 2654435761U, i) +
            1;
    }
    name_symbols_learn(&symbols, sample, n, lesson);
    free(lesson);
}

static uint8_t code[NAME_CODE_BYTES_MAX];

/* Codes a name, and reads it again; the length of the code. */
static size_t
check_code(const struct name_symbols *with, const void *bytes, size_t len)
{
    char name[NAME_ROOM_BYTES] = {0}, again[NAME_ROOM_BYTES];
    memcpy(name, bytes, len);
    size_t n = name_code_put(with, name, len, code);
    ck_assert_uint_gt(n, 0);
    ck_assert_uint_le(n, 1 + len);
    ck_assert_uint_eq(name_code_get(with, code, n, again), len);
    ck_assert_mem_eq(again, bytes, len);
    return n;
}

static size_t
check_text(const struct name_symbols *with, const char *text)
{
    return check_code(with, text, strlen(text));
}

START_TEST(test_kinds)
{
    ck_assert_uint_eq(check_text(NULL, "123456789012345678"), 10);
    ck_assert_uint_eq(code[0], NAME_CODE_DIGITS);
    ck_assert_uint_eq(check_text(NULL, "0000000000000000000"), 10);
    ck_assert_uint_eq(check_text(NULL, "9999999999999999999"), 10);
    ck_assert_uint_eq(check_text(NULL, "99999999999999999999"), 11);
    ck_assert_uint_eq(check_text(NULL, "0123456789abcdef"), 9);
    ck_assert_uint_eq(code[0], NAME_CODE_HEX);
    ck_assert_uint_eq(check_text(NULL, "0123456789abcdeff"), 10);
    ck_assert_uint_eq(code[0], NAME_CODE_HEX_ODD);
    ck_assert_uint_eq(
        check_text(NULL, "01234567-89ab-cdef-0123-456789abcdef"), 17);
    ck_assert_uint_eq(code[0], NAME_CODE_UUID);
    ck_assert_uint_eq(
        check_text(NULL, "01234567-89ab-cdef-0123-456789abcdeF"), 37);
    ck_assert_uint_eq(
        check_text(NULL, "01234567-89ab-cdef-0123a456789abcdef"), 37);
    ck_assert_uint_eq(check_text(NULL, "A"), 2);
    ck_assert_uint_eq(code[0], NAME_CODE_RAW);
    learn();
    ck_assert_uint_gt(symbols.n, 100);
    ck_assert_uint_lt(check_text(&symbols, "https://www.example.com/"), 5);
    ck_assert_uint_lt(
        check_text(&symbols, "https://www.example.com/f0a1/12345"), 14);
    for (size_t len = 1; len <= NAME_BYTES_MAX; len++) {
        char name[NAME_BYTES_MAX];
        memset(name, '9', len);
        (void)check_code(NULL, name, len);
        (void)check_code(&symbols, name, len);
        memset(name, 'e', len);
        (void)check_code(NULL, name, len);
        memset(name, '\xff', len);
        ck_assert_uint_eq(check_code(&symbols, name, len), 1 + len);
    }
}
END_TEST

/* Names of every kind of letters, with a table and without. */
START_TEST(test_random)
{
    static const char *const some[] = {"https://", "www.", ".com/", "example",
        "0123456789", "abcdef", "@mail", "\xc3\xa9", "/", "-", "Z"};
    uint64_t random = 7;
    learn();
    for (unsigned i = 0; i < 100000; i++) {
        char name[NAME_BYTES_MAX];
        size_t len = 0, max = 1 + random_below(&random, NAME_BYTES_MAX);
        const char *piece = some[random_below(&random, COUNT_OF(some))];
        bool is_one = random_below(&random, 4) == 0;
        while (len < max) {
            if (!is_one && random_below(&random, 3) == 0) {
                piece = some[random_below(&random, COUNT_OF(some))];
            }
            name[len++] = piece[random_below(&random, strlen(piece))];
        }
        (void)check_code(
            random_below(&random, 3) == 0 ? NULL : &symbols, name, len);
    }
}
END_TEST

/* Any bytes are a code or none, and nothing outside the room is touched. */
START_TEST(test_garbage)
{
    uint64_t random = 9;
    learn();
    for (unsigned i = 0; i < 200000; i++) {
        size_t n = random_below(&random, NAME_CODE_BYTES_MAX + 3);
        uint8_t bytes[NAME_CODE_BYTES_MAX + 3];
        for (size_t j = 0; j < n; j++) {
            bytes[j] = (uint8_t)random_below(&random, 256);
        }
        if (n > 0 && i % 2 == 0) {
            bytes[0] = (uint8_t)(NAME_CODE_RAW + random_below(&random, 6));
        }
        uint8_t *copy = (uint8_t *)copy_of((const char *)bytes, n);
        char *room = malloc(NAME_ROOM_BYTES);
        size_t len = name_code_get(&symbols, copy, n, room);
        ck_assert_uint_le(len, NAME_BYTES_MAX);
        free(room);
        free(copy);
    }
}
END_TEST

START_TEST(test_tables)
{
    uint64_t symbol[] = {'a', 'a' | 'b' << 8, 0xff, 'b'};
    uint8_t len[] = {1, 2, 1, 1};
    struct name_symbols made;
    ck_assert(name_symbols_make(&made, symbol, len, 4));
    ck_assert_uint_eq(check_text(&made, "abaabb"), 4);
    symbol[3] = 'a';
    ck_assert(!name_symbols_make(&made, symbol, len, 4));
    symbol[3] = ' ';
    ck_assert(!name_symbols_make(&made, symbol, len, 4));
    symbol[3] = 'b' | 'c' << 8;
    ck_assert(!name_symbols_make(&made, symbol, len, 4));
    len[3] = 3;
    ck_assert(!name_symbols_make(&made, symbol, len, 4));
    len[3] = 9;
    ck_assert(!name_symbols_make(&made, symbol, len, 4));
    ck_assert(name_symbols_make(&made, symbol, len, 0));
    ck_assert_uint_eq(check_text(&made, "XY"), 3);
}
END_TEST

/* A block of some names. */
static struct name_block *
make_block(void)
{
    struct name_block *block = calloc(1, name_block_bytes(1000));
    ck_assert_ptr_nonnull(block);
    block->room_bytes = 1000;
    block->table = 1;
    for (unsigned slot = 0; slot < NAME_BLOCK_SLOTS; slot++) {
        char name[64];
        (void)snprintf(name, sizeof name, "https://mail.com/%u", slot * 77);
        size_t n = check_text(&symbols, name);
        if (slot % 5 != 3) {
            ck_assert(name_block_append(block, slot, code, n));
        }
    }
    name_block_clear(block, 7);
    return block;
}

static void
check_flips(const uint8_t *bytes, size_t n)
{
    struct name_image image;
    ck_assert_int_eq(name_image_get(bytes, n, &image), 0);
    ck_assert_uint_eq(image.bytes, n);
    for (size_t bit = 0; bit < 8 * n; bit++) {
        uint8_t *copy = (uint8_t *)copy_of((const char *)bytes, n);
        copy[bit / 8] ^= (uint8_t)(1U << bit % 8);
        ck_assert_int_eq(name_image_get(copy, n, &image), ERR_CORRUPT);
        free(copy);
    }
    for (size_t cut = 0; cut < n; cut++) {
        uint8_t *copy = (uint8_t *)copy_of((const char *)bytes, cut);
        ck_assert_int_eq(name_image_get(copy, cut, &image), ERR_CORRUPT);
        free(copy);
    }
}

START_TEST(test_images)
{
    uint8_t bytes[NAME_IMAGE_BYTES_MAX];
    struct name_image image;
    struct name_symbols again;
    learn();
    size_t n = name_image_put_table(&symbols, NAME_TABLES_MAX, bytes);
    check_flips(bytes, n);
    ck_assert_int_eq(name_image_get(bytes, sizeof bytes, &image), 0);
    ck_assert_int_eq(image.kind, NAME_IMAGE_TABLE);
    ck_assert_uint_eq(image.table, NAME_TABLES_MAX);
    ck_assert(name_symbols_make(
        &again, image.symbol, image.symbol_len, image.number));
    ck_assert_mem_eq(&again, &symbols, sizeof again);
    struct name_block *block = make_block();
    n = name_image_put_block(block, NAME_BLOCKS_MAX - 1, bytes);
    check_flips(bytes, n);
    ck_assert_int_eq(name_image_get(bytes, n, &image), 0);
    ck_assert_int_eq(image.kind, NAME_IMAGE_BLOCK);
    ck_assert_uint_eq(image.number, NAME_BLOCKS_MAX - 1);
    ck_assert_uint_eq(image.live, name_block_live(block));
    for (unsigned slot = 0; slot < NAME_BLOCK_SLOTS; slot++) {
        ck_assert_uint_eq(image.code_len[slot],
            name_block_has(block, slot) ? name_block_len(block, slot) : 0);
        ck_assert_mem_eq(image.code[slot],
            block->code + name_block_at(block, slot), image.code_len[slot]);
    }
    for (unsigned slot = 0; slot < NAME_BLOCK_SLOTS; slot++) {
        if (name_block_has(block, slot)) {
            name_block_clear(block, slot);
        }
    }
    ck_assert_uint_eq(name_image_put_block(block, 0, bytes), 0);
    free(block);
}
END_TEST

/* Garbage with a checksum that is right. */
START_TEST(test_image_garbage)
{
    uint8_t bytes[NAME_IMAGE_BYTES_MAX];
    struct name_image image;
    uint64_t random = 3;
    learn();
    struct name_block *block = make_block();
    for (unsigned i = 0; i < 100000; i++) {
        size_t n = i % 2 == 0 ? name_image_put_block(block, 3, bytes)
                              : name_image_put_table(&symbols, 2, bytes);
        unsigned flips = 1 + (unsigned)random_below(&random, 3);
        for (unsigned j = 0; j < flips; j++) {
            size_t at = 8 + random_below(&random, j == 0 ? 60 : n - 8);
            bytes[at] = (uint8_t)random_below(&random, 256);
        }
        size_t len = bytes_get_u16(bytes + 10);
        if (len < 16 || len > n) {
            bytes_put_u16(bytes + 10, (uint16_t)n);
            len = n;
        }
        bytes_put_u64(bytes, checksum64(bytes + 8, len - 8, 0));
        if (name_image_get(bytes, n, &image) == 0 &&
            image.kind == NAME_IMAGE_BLOCK) {
            for (unsigned slot = 0; slot < NAME_BLOCK_SLOTS; slot++) {
                ck_assert(
                    image.code[slot] + image.code_len[slot] <= bytes + len);
            }
        }
    }
    free(block);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_kinds, test_random, test_garbage,
        test_tables, test_images, test_image_garbage};
    return run_tests("name_code", tests, COUNT_OF(tests));
}
