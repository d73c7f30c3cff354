/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COLD_WARM_H
#define COLD_WARM_H

#include "cold/block.h"

/* A block made for lookups: what the block cache holds. A lookup takes neither
 * room nor memory; why it is not the block itself, warm.c says. */

/* In one piece of memory, with pointers into itself: it must not move. Once
 * made it says the same for ever: any number of threads. */
struct warm;

/* Makes a block, which is not needed any more then, in memory that
 * take_fn(context, bytes) gives; it is called once at most, may return NULL,
 * and the memory stays the caller's, also after an error. 0, ERR_CORRUPT (not
 * all ids or places of a block that does not decode are looked at, so that it
 * may show later), ERR_NO_MEMORY. */
int warm_make(const struct block *block, struct block_room *room,
    void *(*take_fn)(void *context, size_t bytes), void *context,
    struct warm **out);

/* Asks for the memory that warm_find will look at first. */
static inline void
warm_prefetch(const struct warm *warm)
{
    enum { LINE_BYTES = 64, LINES = 3 };

    for (int i = 0; i < LINES; i++) {
        __builtin_prefetch((const uint8_t *)warm + i * LINE_BYTES);
    }
}

/* And when that has come, for what it looks at next. */
void warm_prefetch_parts(const struct warm *warm, unsigned columns);

/* Looks for one record; where *found, code[c] is written for each column c
 * that is in the set (see BLOCK_COLUMNS_ALL) and in the block; each one costs
 * about as much as finding the record. 0 or ERR_CORRUPT (*found is false then).
 * In a block that decodes, it finds what block_decode shows, and nothing else.
 */
int warm_find(const struct warm *warm, uint64_t id, unsigned columns,
    uint64_t *code, bool *found);

#endif
