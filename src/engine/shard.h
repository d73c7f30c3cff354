/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_SHARD_H
#define ENGINE_SHARD_H

#include "base/alloc.h"
#include "schema/schema.h"

#include <stddef.h>
#include <stdint.h>

/* A shard holds the records of its part of the ids, for all counters. Its
 * functions lock it themselves; any thread may call them. */

/* Names one cell: the engine knows slots and serials, not names. A key whose
 * serial is not that of the column now in the slot is answered as gone, so a
 * request that was resolved before a drop can never touch later data. */
struct cell_key {
    uint64_t id;
    uint32_t serial; /* of the column */
    uint8_t counter; /* slot of the counter, 0..255 */
    uint8_t column;  /* slot of the column, 0..15 */
};

enum cell_state {
    CELL_DEFAULT, /* at its default (there may be no record at all) */
    CELL_SET,     /* differs from its default */
    CELL_GONE     /* the column has been dropped */
};

enum change_op {
    CHANGE_SET,     /* every column named becomes its operand */
    CHANGE_ADD,     /* as SET, only while all named columns are default */
    CHANGE_REPLACE, /* as SET, only while some named column is not default */
    CHANGE_CAS,     /* one column: as SET, only while value + 1 == cas */
    CHANGE_INCR,    /* plus operand, saturating at the column's max */
    CHANGE_DECR,    /* minus operand, stopping at 0 */
    CHANGE_DELETE   /* back to the default */
};

/* One change of one record, all or nothing. The caller owns it; only the
 * first n_columns entries of each array are used. */
struct change {
    uint64_t id;
    uint64_t cas; /* CAS: value + 1; the one collision is at 2^64-1, see cas */
    enum change_op op;
    uint8_t counter;                      /* slot */
    uint8_t n_columns;                    /* 1..16 */
    uint8_t column[SCHEMA_COLUMNS_MAX];   /* slots */
    uint32_t serial[SCHEMA_COLUMNS_MAX];  /* of those columns */
    uint64_t operand[SCHEMA_COLUMNS_MAX]; /* value or delta */
    /* out: */
    /* err: 0, ERR_NOT_STORED (add, replace), ERR_EXISTS (cas), ERR_NOT_FOUND
     * (delete of what is default already, cas of a default cell under
     * absent=miss), ERR_OVER_MAX (set ...), ERR_OVERFLOW (incr under
     * overflow=error), ERR_GONE, ERR_NO_MEMORY; nothing has changed unless it
     * is 0 */
    int err;
    uint8_t n_saturated; /* columns that incr stopped at their max */
    uint64_t value[SCHEMA_COLUMNS_MAX]; /* the values now; valid if err is 0 */
};

/* What a shard holds of one counter. */
struct shard_sum {
    uint64_t records;
    uint64_t bytes; /* allocated for tables of this counter */
};

struct shard; /* opaque */

/* The cas unique of a value: value + 1, except that 2^64-1 gives 2^64-1 too
 * (0 is never given out): the one documented collision. */
static inline uint64_t
cell_cas(uint64_t value)
{
    return value == UINT64_MAX ? UINT64_MAX : value + 1;
}

/* An empty shard; NULL when memory is out. alloc is where it and its tables
 * get their memory (NULL: the C library's heap); it must outlive the shard.
 * key makes the places of ids unknown to clients. */
struct shard *shard_create(const struct alloc *alloc, uint64_t key);

/* Frees *shard with all its records and nulls it; NULL is fine. */
void shard_destroy(struct shard **shard);

/* Makes the columns of counter known (or takes over changed ones); columns in
 * slots that counter no longer has, or whose serial differs, are dropped with
 * all their numbers, and records that hold nothing else go too. Immediate for
 * added columns: nothing stored is rewritten; a drop rewrites the table. 0 or
 * ERR_NO_MEMORY (then nothing has changed). */
int shard_define(struct shard *shard, const struct schema_counter *counter);

/* Forgets the counter in slot with all its records. */
void shard_undefine(struct shard *shard, unsigned slot);

/* Reads n cells of this shard: key[order[i]] for i in 0..n-1, results to
 * value[order[i]] and state[order[i]] (enum cell_state). value is the default
 * where the cell has none, 0 where it is gone. Cells of one record that stand
 * side by side in order are read at one moment. */
void shard_get(struct shard *shard, const struct cell_key *key,
    const uint16_t *order, size_t n, uint64_t *value, uint8_t *state);

/* Does one change; the answer is in change->err and change->value. */
void shard_change(struct shard *shard, struct change *change);

/* What the shard holds of the counter in slot; zeroes where there is none. */
struct shard_sum shard_sum(struct shard *shard, unsigned slot);

/* Walks the structures and asserts their invariants; for tests. */
void shard_verify(struct shard *shard);

#endif
