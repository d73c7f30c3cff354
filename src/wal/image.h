/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WAL_IMAGE_H
#define WAL_IMAGE_H

#include "base/buf.h"
#include "schema/schema.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The image of one range of one shard in a checkpoint file: its records in
 * order of rows, packed column by column (doc/format-checkpoint.md). The
 * engine's codes are stored (the value where the default is 0, else the zigzag
 * of the distance to it). Pure; any thread. */

enum {
    IMAGE_HEAD_BYTES = 64,
    IMAGE_COLUMN_BYTES = 8, /* in the head, of each column */
    IMAGE_VERSION = 1,
    IMAGE_RECORDS_MAX = 1 << 18
};

struct image {
    uint8_t counter; /* slot */
    uint16_t shard;
    uint32_t counter_serial;
    uint64_t history; /* of who wrote the block (wal/histories.h) */
    uint64_t seq;     /* batches up to this one are in it */
    uint64_t first_row, last_row; /* rows without a record are at default */
    uint32_t n_columns;           /* 0..16 */
    uint8_t column[SCHEMA_COLUMNS_MAX]; /* slots, ascending */
    uint32_t serial[SCHEMA_COLUMNS_MAX];
    uint32_t n;                               /* 0..IMAGE_RECORDS_MAX */
    const uint64_t *row;                      /* n, each above the last */
    const uint64_t *code[SCHEMA_COLUMNS_MAX]; /* of column[i]: n */
};

/* Appends the image as one checksummed block to out, whose growth is the
 * block's length. 0 or ERR_NO_MEMORY (out has what it had). */
int image_encode(const struct image *image, struct buf *out);

/* The length of the block and the history that a head says (IMAGE_HEAD_BYTES,
 * any bytes), unchecked; false where it is no head. */
bool image_peek(const uint8_t *head, uint32_t *len, uint64_t *history);

/* What the head of a whole block says, without its rows and codes; false where
 * it is no head of such a block. The checksum is not looked at. */
bool image_head(const uint8_t *block, size_t len, struct image *out);

/* Has a whole block of one history say another, if it is sound and says that
 * one; false: it is not, or does not, and stays as it is. */
bool image_put_history(uint8_t *block, size_t len, uint64_t from, uint64_t to);

/* The most bytes that a block can have; longer ones are damage. */
uint64_t image_bytes_max(void);

/* What a reader needs room for. One thread at a time; all zero is empty. */
struct image_room {
    uint64_t *numbers; /* owned */
    size_t capacity;
};
void image_room_fini(struct image_room *room);

/* Checks and decodes the block at bytes[0..len), which must be all of it; out
 * points into room until its next use. 0, ERR_CORRUPT, ERR_NEWER_FORMAT,
 * ERR_NO_MEMORY. No size is believed before the checksum is right, and none
 * beyond what len allows. */
int image_decode(const uint8_t *bytes, size_t len, struct image_room *room,
    struct image *out);

#endif
