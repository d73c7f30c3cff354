/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzzes the reader of cold blocks. The bytes are read as they are, and once
 * more with version, length and checksum made right, so that what is behind
 * them is reached. What decodes ascends, each of its records is found as it was
 * decoded, also where the block is made warm, and built and read again it is
 * the same. */
#include "base/assert.h"
#include "base/bytes.h"
#include "base/checksum.h"
#include "base/err.h"
#include "cold/block_build.h"
#include "cold/warm.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { FINDS = 16 };

struct arrays {
    uint64_t id[BLOCK_RECORDS_MAX];
    uint64_t number[SCHEMA_COLUMNS_MAX][BLOCK_RECORDS_MAX];
    uint64_t *code[SCHEMA_COLUMNS_MAX];
};

static struct arrays *
new_arrays(void)
{
    struct arrays *arrays = malloc(sizeof *arrays);

    ASSERT(arrays != NULL);
    for (unsigned c = 0; c < SCHEMA_COLUMNS_MAX; c++) {
        arrays->code[c] = arrays->number[c];
    }
    return arrays;
}

/* Looks for one id in the block and in what is made of it. */
static bool
find(const struct block *block, struct block_room *room,
    const struct warm *warm, uint64_t id, uint64_t *code)
{
    uint64_t warm_code[SCHEMA_COLUMNS_MAX];
    bool found, warm_found;

    ASSERT(block_find(block, room, id, code, &found) == 0);
    ASSERT(
        warm_find(warm, id, BLOCK_COLUMNS_ALL, warm_code, &warm_found) == 0);
    ASSERT(warm_found == found);
    ASSERT(!found ||
        memcmp(code, warm_code, block->n_columns * sizeof *code) == 0);
    return found;
}

static void
check_found(const struct block *block, struct block_room *room,
    const struct warm *warm, const struct arrays *arrays)
{
    uint64_t code[SCHEMA_COLUMNS_MAX];

    for (size_t i = 0; i < block->n; i += 1 + block->n / FINDS) {
        ASSERT(i == 0 || arrays->id[i] > arrays->id[i - 1]);
        ASSERT(find(block, room, warm, arrays->id[i], code));
        for (unsigned c = 0; c < block->n_columns; c++) {
            ASSERT(code[c] == arrays->number[c][i]);
        }
        if (i + 1 < block->n && arrays->id[i + 1] - arrays->id[i] > 1) {
            ASSERT(!find(block, room, warm, arrays->id[i] + 1, code));
        }
    }
}

/* Builds the first records again, in the same codec, and compares. */
static void
check_again(const struct block *block, const struct arrays *arrays)
{
    struct block_options options = {
        block->codec, BLOCK_LEVEL_DEFAULT, block->n_columns};
    struct block_builder *builder;
    struct block_room room = {0};
    struct arrays *again = new_arrays();
    uint8_t out[BLOCK_BYTES_MAX];
    uint64_t code[SCHEMA_COLUMNS_MAX];
    struct block made;
    size_t len, n;

    ASSERT(block_builder_create(&options, NULL, &builder) == 0);
    for (size_t i = 0; i < block->n && !block_builder_is_full(builder); i++) {
        for (unsigned c = 0; c < block->n_columns; c++) {
            code[c] = arrays->number[c][i];
        }
        block_builder_add(builder, arrays->id[i], code);
    }
    ASSERT(block_builder_cut(builder, true, 0, out, &len, &n) == 0);
    ASSERT(block_open(out, len, 0, &made) == 0 && made.n == n);
    ASSERT(block_decode(&made, &room, again->id, again->code) == 0);
    ASSERT(memcmp(again->id, arrays->id, n * sizeof *again->id) == 0);
    for (unsigned c = 0; c < block->n_columns; c++) {
        ASSERT(memcmp(again->number[c], arrays->number[c],
                   n * sizeof *again->id) == 0);
    }
    block_builder_destroy(&builder);
    block_room_fini(&room);
    free(again);
}

struct memory {
    void *block;
};

static void *
take_memory(void *context, size_t bytes)
{
    struct memory *memory = context;

    memory->block = malloc(bytes);
    ASSERT(memory->block != NULL);
    return memory->block;
}

/* Whatever does not decode does no harm. */
static void
look_for(const struct block *block, struct block_room *room,
    const struct warm *warm, uint64_t id)
{
    uint64_t code[SCHEMA_COLUMNS_MAX];
    bool found;
    int err = block_find(block, room, id, code, &found);

    ASSERT(err == 0 || err == ERR_CORRUPT);
    if (warm != NULL) {
        err = warm_find(warm, id, BLOCK_COLUMNS_ALL, code, &found);
        ASSERT(err == 0 || err == ERR_CORRUPT);
    }
}

static void
read_block(const uint8_t *bytes, size_t len)
{
    struct block_room room = {0};
    struct memory memory = {NULL};
    struct warm *warm = NULL;
    struct block block;
    int err = block_open(bytes, len, 0, &block);

    ASSERT(err == 0 || err == ERR_CORRUPT || err == ERR_NEWER_FORMAT);
    if (err != 0) {
        return;
    }
    struct arrays *arrays = new_arrays();
    err = block_decode(&block, &room, arrays->id, arrays->code);
    ASSERT(err == 0 || err == ERR_CORRUPT);
    int warm_err = warm_make(&block, &room, take_memory, &memory, &warm);
    ASSERT(warm_err == 0 || (warm_err == ERR_CORRUPT && err != 0));
    if (err == 0) {
        check_found(&block, &room, warm, arrays);
        check_again(&block, arrays);
    } else {
        look_for(&block, &room, warm_err == 0 ? warm : NULL,
            block.first_id + bytes_get_u64(bytes) % 5000);
    }
    free(memory.block);
    free(arrays);
    block_room_fini(&room);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    uint8_t *copy;

    read_block(bytes, len);
    if (len < BLOCK_HEAD_BYTES || len + BLOCK_SUM_BYTES > BLOCK_BYTES_MAX) {
        return 0;
    }
    /* in a block of its own, so that a read past its end is seen */
    copy = malloc(len + BLOCK_SUM_BYTES);
    ASSERT(copy != NULL);
    memcpy(copy, bytes, len);
    copy[0] = BLOCK_VERSION;
    copy[1] %= BLOCK_CODEC_COUNT;
    bytes_put_u16(copy + 2, (uint16_t)(len + BLOCK_SUM_BYTES));
    copy[7] = 0;
    bytes_put_u64(copy + len, checksum64(copy, len, 0));
    read_block(copy, len + BLOCK_SUM_BYTES);
    free(copy);
    return 0;
}
