/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_TABLE_H
#define ENGINE_TABLE_H

#include "base/lock.h"
#include "base/perm.h"
#include "engine/line.h"
#include "engine/pool.h"
#include "engine/stash.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A range table: the records of one aligned range of row numbers, packed in
 * lines. Its size and its shapes never change; a table that does not suit any
 * more is built anew (build.h) and exchanged. Readers need no lock: see
 * reader_body.h. Everything here but table_line is for the
 * holder of the shard's lock. */

enum {
    TABLE_PIECE_LINES = ARENA_PIECE_BYTES_MAX / LINE_BYTES,
    TABLE_LINES_MIN = 2,   /* two candidates a record */
    TABLE_STRIPES = 64,    /* sequence counters of lines, by line number */
    TABLE_STASH_SHARE = 64 /* narrow records in the stash: at most 1 in 64 */
};

/* Sequence counters of a shard: odd while what they guard is being changed.
 * Written under the shard's lock. */
struct stripes {
    _Atomic uint32_t line[TABLE_STRIPES];
    _Atomic uint32_t stash;
    _Atomic uint32_t n_exchanges; /* of tables; goes up behind each */
};

/* A set of shapes shared by tables of one counter in one shard. */
struct shapes_set {
    struct pool_garbage garbage;
    uint32_t refs; /* tables, and the counter itself */
    struct shapes shapes;
};

/* What a table's writer needs of its shard. */
struct table_owner {
    const struct lock *lock; /* the shard's; NULL: in a test that has none */
    struct pool *pool;
    const struct perm *perm;
    struct stripes *stripes; /* NULL: nobody else sees the tables */
    uint64_t moves;          /* records moved to make room; under the lock */
    bool is_thorough; /* two may be moved for one, where one is not enough */
};

static inline void
table_owner_assert_held(const struct table_owner *owner)
{
    if (owner->lock != NULL) {
        lock_assert_held(owner->lock);
    }
}

/* True where a record holds nothing. */
static inline bool
table_is_nothing(const uint64_t *code)
{
    uint64_t any = 0;
    for (unsigned i = 0; i < SHAPES_COLUMNS_MAX; i++) {
        any |= code[i];
    }
    return any == 0;
}

enum table_kind { /* why a record is in the stash */
    TABLE_NARROW, /* it would fit a line, had its lines room */
    TABLE_MISFIT, /* fits no shape of this set */
    TABLE_WIDE,   /* fits no shape of any set */
    TABLE_KINDS
};

enum { TABLE_MAGIC = 0x7ab1 };

struct table {
    struct pool_garbage garbage;
    /* under the lock: */
    struct shapes_need widest; /* no record ever needed more in a column */
    uint64_t used_bits;
    uint64_t seen_bits;   /* used_bits at tend's last look ... */
    uint64_t seen_ms;     /* ... that found them changed */
    uint64_t packed_bits; /* used_bits when it was last packed; 0: never */
    /* by purpose: memory in use when it could not grow; 0: never */
    uint64_t refused_bytes[2];
    uint32_t n_records; /* stash included */
    uint32_t n_far;
    uint32_t n_stash[TABLE_KINDS];
    uint32_t n_misfits_max; /* more of them call for new shapes */
    uint32_t n_stale;       /* mask bits that may stand for nothing */
    uint32_t n_planned;     /* records when the range was last thought over */
    uint32_t reach;         /* how full lines of its records get, in 1/1024 */
    float heat;             /* see table_heat.h; as of heat_ms */
    uint64_t built_bits;    /* used_bits when it was built */
    bool is_clean;          /* not changed since it was copied or loaded */
    bool is_quiet;          /* not changed since tend's last look */
    uint8_t apart[2];       /* what writers write, from what readers read */
    uint32_t n_empty;       /* records without a number: tombstones */
    uint64_t copied;        /* the copy of its range since which it has not
                             * changed (engine_rows.number); 0: it has */
    uint64_t heat_ms;       /* tend's clock; 0: not looked at yet */
    /* constant: */
    uint64_t mask;          /* 2^w - 1, for writers; see table_mask */
    struct shapes_set *set; /* a reference; form.shapes is in it */
    uint32_t n_pieces;
    uint8_t last_class; /* of the last piece; the others are full */
    uint16_t magic;     /* TABLE_MAGIC, until it is freed */
    /* what a look needs (table_prefetch); constant but for the stash: */
    uint64_t base;                 /* of the rows base + 0..mask */
    _Atomic(struct stash *) stash; /* owned, NULL while empty; seldom stored,
                                    * under the lock */
    uint64_t step;                 /* floor(2^64 / n_lines): see table_place */
    uint32_t n_lines;
    uint8_t width; /* w: mask is 2^w - 1 */
    uint8_t shift; /* 64 - w */
    uint8_t fold;  /* perm_fold(w) */
    struct line_form form;
    struct line *piece[]; /* n_pieces */
};
_Static_assert(offsetof(struct table, is_clean) / LINE_BYTES ==
        offsetof(struct table, copied) / LINE_BYTES,
    "a change looks at one cache line of marks (table_prefetch_marks)");
_Static_assert(offsetof(struct table, base) % LINE_BYTES == 0 &&
        offsetof(struct table, piece) ==
            offsetof(struct table, base) + LINE_BYTES,
    "a table comes from the arena: one cache line for a look, then pieces");

static inline struct stash *
table_stash(const struct table *table)
{
    /* relaxed: for who holds the lock, under which it is stored, or whose copy
     * the table is */
    return atomic_load_explicit(&table->stash, memory_order_relaxed);
}

/* Where a row may lie. */
struct table_place {
    uint32_t line_1, line_2;
    uint32_t bit; /* in overflow masks */
    uint64_t remainder;
};

static inline struct line *
table_line(const struct table *table, uint32_t line)
{
    return &table->piece[line / TABLE_PIECE_LINES][line % TABLE_PIECE_LINES];
}

/* Records in its stash. */
uint32_t table_n_stashed(const struct table *table);

/* The smallest number of lines >= n that pieces make without waste. */
uint32_t table_lines_round(uint32_t n);
/* The largest one <= n; 0 where there is none. */
uint32_t table_lines_cut(uint32_t n);

/* Bits of a remainder that payloads have in such a table: 0..48. is_single:
 * its shapes are, and hold some of them. */
unsigned table_extra_bits(unsigned width, uint32_t n_lines, bool is_single);

/* An empty table of n_lines (from table_lines_round) with one reference to set
 * taken. 0, ERR_HOT_FULL, ERR_NO_MEMORY. */
int table_create(struct pool *pool, uint64_t base, unsigned width,
    uint32_t n_lines, struct shapes_set *set, enum pool_purpose purpose,
    struct table **out);

/* At once (nobody can see it); or when no reader can. NULL is fine. */
void table_destroy(struct pool *pool, struct table **table);
void table_retire(struct pool *pool, struct table *table);

/* A set with one reference, the caller's. */
int shapes_set_create(struct pool *pool, const struct shapes *shapes,
    enum pool_purpose purpose, struct shapes_set **out);
/* Gives a reference back; the last one retires it. NULL is fine. */
void shapes_set_drop(struct pool *pool, struct shapes_set *set);

/* Where a record is. */
struct table_spot {
    enum { TABLE_NOWHERE, TABLE_LINE, TABLE_STASH } where;
    uint64_t row;
    uint32_t line; /* TABLE_LINE: its number, and in it: */
    uint8_t index;
    struct table_place place;
    struct line_record record; /* codes all 0 where there is none */
};

void table_find(const struct table_owner *owner, const struct table *table,
    uint64_t row, struct table_spot *spot);

/* table_put's answer beside 0 and ERR_: build it anew, with this record in
 * view. */
enum { TABLE_FULL = -1 };

/* Gives the record at spot these codes (all 0: it is a tombstone), from
 * nowhere or over the old ones. 0, TABLE_FULL, ERR_HOT_FULL, ERR_NO_MEMORY;
 * nothing has changed unless it is 0. The spot is void afterwards. */
int table_put(struct table_owner *owner, struct table *table,
    const struct table_spot *spot, const uint64_t *code,
    enum pool_purpose purpose);

/* Removes the record at spot, which is somewhere. */
void table_remove(struct table_owner *owner, struct table *table,
    const struct table_spot *spot);

/* True where it had better be built anew: stale mask bits, a large stash. */
bool table_is_worn(const struct table *table);

/* Memory of lines, and of all else but the set. */
size_t table_line_bytes(const struct table *table);
size_t table_other_bytes(const struct table *table);

/* Asserts what the sums in the head say of each other, without a look at the
 * records: where a table is handed over, and in each round of tend. */
void table_verify_sums(const struct table *table);

/* Asserts the invariants, record by record. */
void table_verify(const struct table_owner *owner, const struct table *table);

#endif
