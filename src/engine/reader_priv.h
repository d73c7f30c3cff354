/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_READER_PRIV_H
#define ENGINE_READER_PRIV_H

#include "engine/cell.h"
#include "engine/reader.h"

#include <stddef.h>
#include <stdint.h>

/* engine_get for one instruction set each (reader_body.h); reader_fn picks. */

struct engine;

typedef void reader_get_fn(struct engine *engine, const struct cell_key *key,
    size_t n, uint64_t *value, uint8_t *state);

/* The function, or NULL where this build or this machine lacks the
 * instructions. */
reader_get_fn *reader_portable(void);
reader_get_fn *reader_sse2(void);
reader_get_fn *reader_avx2(void);
reader_get_fn *reader_neon(void);

/* The function for isa, which this machine has. */
reader_get_fn *reader_fn(enum reader_isa isa);

/* The rare way, when the lines were never found still: the codes of one
 * record, under the shard's lock. */
void reader__locked(struct engine *engine, unsigned slot, uint32_t shard,
    uint64_t row, uint64_t *code);

#endif
