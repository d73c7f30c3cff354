/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_ENGINE_PRIV_H
#define ENGINE_ENGINE_PRIV_H

#include "base/assert.h"
#include "base/bytes.h"
#include "base/lock.h"
#include "engine/cover.h"
#include "engine/marks.h"
#include "engine/members_notes.h"
#include "engine/ranges.h"
#include "engine/sorted_priv.h"

/* What the engine is made of; for the files of this layer. */

/* A column as the engine knows it. */
struct column {
    uint64_t default_value;
    uint64_t max;
    _Atomic uint32_t serial; /* 0: no column in this slot, or not any more */
    /* what a change must name that is not of a member: the serial, or 0 where
     * the column counts members (but see check_closed) */
    _Atomic uint32_t open_serial;
};

/* What a counter's columns are now: immutable, published by one pointer. */
struct view {
    struct pool_garbage garbage;
    uint32_t columns; /* slots in use */
    bool absent_is_miss;
    bool overflow_is_error;
    uint64_t max_jump;                 /* 0: none */
    uint32_t members;                  /* of columns: those of members */
    uint32_t counted;                  /* of columns: those that count some */
    uint8_t pairs[SCHEMA_COLUMNS_MAX]; /* of those: the slot of the counter of
                                        * their pairs; else 0 */
    uint8_t counted_by[SCHEMA_COLUMNS_MAX]; /* of those that count: the slot
                                             * of the members; else 0 */
    struct column column[SCHEMA_COLUMNS_MAX];
};

/* A counter's slot: made at its first definition, kept until the end. */
struct counter {
    _Atomic(struct view *) view; /* owned; NULL: no counter in this slot */
    /* of ids that had a record, or were let in to make one, or that
     * engine_raise was told */
    _Atomic uint64_t largest_id;
    _Atomic bool has_largest;
    uint32_t dirty;         /* definer's: dropped columns with numbers left */
    struct ranges ranges[]; /* one a shard, under its lock */
};

struct shard {
    _Alignas(64) struct lock lock;
    struct table_owner owner;
    uint64_t n_copies;    /* by engine_copy_range, ever */
    uint64_t n_evictions; /* likewise, by engine_evict */
    /* apart from the lock: all readers look at them */
    _Alignas(64) struct stripes stripes;
};

struct engine {
    /* constant: */
    unsigned n_shards, shard_bits;
    uint64_t shard_odd; /* an odd number */
    struct perm perm;
    void (*get_fn)(struct engine *engine, const struct cell_key *key, size_t n,
        uint64_t *value, uint8_t *state);
    uint32_t n_records_max;
    const struct alloc *alloc;
    void *shard_block;
    struct shard *shard;      /* n_shards */
    struct engine_sink *sink; /* not owned; NULL: none. Set while nothing is
                               * under way */
    const struct engine_cover *cover; /* not owned; NULL: none. As sink */
    struct engine_marks *marks;       /* likewise */
    struct engine_names *names;       /* likewise */
    uint32_t whole; /* as a mask of columns, all or none: those that the sink
                     * is told of wherever one of the record has changed. As
                     * sink */
    _Atomic uint32_t n_guarded; /* counters with a maxjump */
    bool follows;               /* the tending thread's: see engine_follow */
    struct pool pool;
    _Atomic(struct counter *) counter[SCHEMA_COUNTERS_MAX];
    struct members members;
    struct sorted_state sorted;
};

/* The shard of an id, and the row in it: the id without its low bits, which
 * the shard and the row give back: invertible, and the order of ids stays. A
 * number of the row's own is added to the low bits, which may always be the
 * same: the upper bits of its product with an odd number (Knuth, TAOCP 3,
 * 6.4: multiplicative hashing). */
struct engine_row {
    uint32_t shard;
    uint64_t row;
};

enum { ENGINE_MIX_SHIFT = 52 };

static inline uint32_t
engine__mix(const struct engine *engine, uint64_t row)
{
    return (uint32_t)(row * engine->shard_odd >> ENGINE_MIX_SHIFT);
}

static inline struct engine_row
engine__row(const struct engine *engine, uint64_t id)
{
    uint64_t row = engine->shard_bits == 0 ? id : id >> engine->shard_bits;
    return (struct engine_row){
        .shard =
            ((uint32_t)id ^ engine__mix(engine, row)) & (engine->n_shards - 1),
        .row = row};
}

static inline uint64_t
engine__id(const struct engine *engine, uint32_t shard, uint64_t row)
{
    uint64_t low = (shard ^ engine__mix(engine, row)) & (engine->n_shards - 1);
    return row << engine->shard_bits | low;
}

/* A column with default 0 stores its values as they are. Else zigzag of the
 * distance to the default, modulo 2^64. */
static inline uint64_t
column_encode(const struct column *column, uint64_t value)
{
    if (column->default_value == 0) {
        return value;
    }
    return bytes_zigzag(value - column->default_value);
}

static inline uint64_t
column_decode(const struct column *column, uint64_t code)
{
    return bytes_of_code(code, column->default_value);
}

static inline struct counter *
engine__counter(const struct engine *engine, unsigned slot)
{
    /* acquire: a whole counter is seen */
    return atomic_load_explicit(&engine->counter[slot], memory_order_acquire);
}

/* Of a struct counter with its ranges. */
static inline size_t
counter__bytes(const struct engine *engine)
{
    return sizeof(struct counter) + engine->n_shards * sizeof(struct ranges);
}

static inline struct view *
counter__view(const struct counter *counter)
{
    /* acquire: a whole view is seen */
    return atomic_load_explicit(&counter->view, memory_order_acquire);
}

/* A table that may have the row, or NULL. For an online reader. */
static inline struct table *
counter__table(const struct counter *counter, uint32_t shard, uint64_t row)
{
    /* acquire: whole tables are seen behind it */
    const struct directory *directory = atomic_load_explicit(
        &counter->ranges[shard].directory, memory_order_acquire);
    return directory == NULL ? NULL : directory_find(directory, row);
}

static inline void
shard__lock(struct shard *shard)
{
    lock_take(&shard->lock);
}

static inline void
shard__unlock(struct shard *shard)
{
    lock_leave(&shard->lock);
}

/* Works out what a change makes of the record of view with these codes:
 * change->err, value and n_saturated; code is changed if err is 0. */
void change_apply(
    const struct view *view, struct change *change, uint64_t *code);

/* Whether columns that count members take other changes, as they do while an
 * engine is loaded. Nothing is under way. */
void engine__open_counted(struct engine *engine, bool is_open);

/* change_apply for the change of a mark. */
void change__mark(
    const struct view *view, struct change *change, uint64_t *code);

#endif
