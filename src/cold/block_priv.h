/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COLD_BLOCK_PRIV_H
#define COLD_BLOCK_PRIV_H

#include "cold/block.h"

/* The parts of a block that has been checked, for modules that keep it in
 * another form. None of them believes the bytes. One thread at a time for one
 * room. */

/* The bits of all series of a packed block, with *in at the first of them;
 * false where there is no room for them. */
bool block__bits(const struct block *block, struct bits_in *in);

/* The bit of *in, which block__bits gave out, where column c begins; of
 * n_columns: where the bits end. May be anywhere. */
size_t block__column(
    const struct block *block, const struct bits_in *in, unsigned c);

/* The numbers of a block that is not packed, as bytes. */
struct block__planes {
    unsigned width[1 + SCHEMA_COLUMNS_MAX]; /* of the gaps, of each column */
    const uint8_t *at; /* the bytes of the gaps, then of the columns */
};

/* Decodes the n - 1 gaps of any block into room->spare, which *gap is then; of
 * one that is not packed also says where its numbers are, in room->raw where
 * zstd had to make them. 0, ERR_CORRUPT, ERR_NO_MEMORY. */
int block__gaps(const struct block *block, struct block_room *room,
    uint64_t **gap, struct block__planes *planes);

#endif
