/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

#include "base/alloc.h"
#include "base/qsbr.h"
#include "engine/cell.h"
#include "engine/reader.h"
#include "engine/sum.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The hot engine: all records of all counters, cut into shards. Reads take no
 * lock; changes take the lock of one shard. */

enum {
    ENGINE_SHARDS_MAX = 4096,
    ENGINE_TABLE_RECORDS_MAX = 49152 /* a table with more is split */
};

/* The smallest budget: below it tables would have to be too small. */
#define ENGINE_HOT_BYTES_MIN (UINT64_C(16) << 20)

struct engine_config {
    unsigned shards;    /* a power of two, 1..4096 */
    uint64_t seed;      /* of the places of ids; random against chosen ids */
    uint64_t hot_bytes; /* budget; >= ENGINE_HOT_BYTES_MIN */
    struct qsbr *qsbr;  /* readers register here; NULL: one thread only */
    const struct alloc *alloc;  /* NULL: the arena; else everything is from
                                * it, piece by piece, so that a test can fail
                                * the n-th */
    enum reader_isa isa;        /* READER_BEST but in tests */
    uint32_t table_records_max; /* 0: ENGINE_TABLE_RECORDS_MAX; else 64..that,
                                 * for tests that want many splits */
};

struct engine; /* opaque */

/* What cells of one record have become, those that differ from before (but see
 * engine_set_whole). A
 * record that is removed has them at their defaults. Of a numbered change that
 * is also told which one it was; it may have changed no cell. */
struct engine_write {
    uint64_t id;
    uint32_t producer; /* serial; 0: not of a numbered change */
    uint16_t shard;    /* these two: of a numbered change only */
    uint64_t number;
    uint8_t counter; /* slot */
    uint8_t n;       /* cells, 1..16, by slot ascending; 0..16 of a numbered
                      * change */
    /* the one before, in the same call, is the record that has this as a
     * member: one change became both */
    bool is_pair;
    uint32_t serial[SCHEMA_COLUMNS_MAX];
    uint64_t value[SCHEMA_COLUMNS_MAX];
};

enum { ENGINE_WRITES_MAX = 64 };

/* Who is told of all changes; a seam. */
struct engine_sink {
    /* Called under the lock of their shard with what n records
     * (0..ENGINE_WRITES_MAX) have become, in order: where memory was short, a
     * record may be there several times. Returns a position, which never goes
     * back. n = 0: changes that changed nothing have been answered, or a range
     * is being copied; the position of what was told last. Must not call the
     * engine. */
    uint64_t (*write_fn)(
        struct engine_sink *sink, const struct engine_write *write, size_t n);
};

/* Asserts that this thread has the lock of a shard: for what the engine calls
 * under it. */
void engine_assert_held(const struct engine *engine, unsigned shard);

/* *out is the caller's. 0 or ERR_NO_MEMORY. */
int engine_create(const struct engine_config *config, struct engine **out);

/* Frees all and nulls *engine; NULL in it is fine. No reader may be online
 * and no other call under way. */
void engine_destroy(struct engine **engine);

/* Makes the columns of counter known (or takes over changed ones); columns in
 * slots that counter no longer has, or whose serial differs, are dropped with
 * all their numbers, and records that hold nothing else go too. Added columns:
 * nothing stored is touched. A drop clears the numbers table by table. Readers
 * that were online before the call may still read under the old columns until
 * they are quiescent: the caller waits a grace period after a drop before it
 * defines that slot anew. Not two at a time. 0 or ERR_NO_MEMORY, ERR_HOT_FULL
 * (then nothing has changed; a drop never fails for a counter that exists). */
int engine_define(struct engine *engine, const struct schema_counter *counter);

/* As engine_define of a counter that is there and has no records, of which some
 * columns have other serials than before and nothing else is dropped: no number
 * is stored in these from a moment on at which the counter had no records and
 * nothing covered it. log_fn is called in between, without a lock, once nothing
 * can fail any more. Requests that know the old serials find those columns gone
 * from then on, and for a moment where it is refused. 0 or ERR_CHANGE_DEFAULT
 * (there is something, all is as it was), ERR_NO_MEMORY, ERR_HOT_FULL. */
int engine_renew(struct engine *engine, const struct schema_counter *counter,
    void (*log_fn)(void *context), void *context);

/* Forgets the counter in slot with all its records. */
void engine_undefine(struct engine *engine, unsigned slot);

/* Reads n cells: value[i] and state[i] (enum cell_state) for key[i]. value is
 * the default where the cell has none, 0 where it is gone. Cells of one record
 * that stand side by side are read at one moment and cost one lookup. The
 * calling thread is an online reader of config.qsbr. No lock is taken but
 * after 64 vain tries. */
void engine_get(struct engine *engine, const struct cell_key *key, size_t n,
    uint64_t *value, uint8_t *state);

/* Returns when the sink has been told of all that an engine_get of these keys
 * which has returned may have seen: a change is seen before it is told. Takes
 * the locks of their shards, one after the other. */
void engine_settle(
    struct engine *engine, const struct cell_key *key, size_t n);

/* Returns when no change that had begun is under way in any shard: the sink has
 * been told of all of them. Takes the locks of all, one after the other. */
void engine_settle_all(struct engine *engine);

/* Does n changes, each all or nothing; answers in change[i].err and
 * change[i].value. Changes of one id are done in their order; between ids the
 * order is the engine's. Several changes of one record cost one lookup and one
 * write, and the sink is told once. Returns the sink's position: all that was
 * answered with err = 0 was told up to it; 0 where nothing was, or without a
 * sink. With n > 1 the calling thread is an online reader of config.qsbr, or
 * no other thread uses the engine meanwhile; one change may be done offline.
 */
uint64_t engine_change(struct engine *engine, struct change *change, size_t n);

/* A change of a covered record that is not in the engine (engine/cover.h) is
 * refused with ERR_COLD unless it, or another one of that id among the same 64
 * changes, brings the record as a base with the version of the cover. Then
 * the record is made whole from it, changed, and the sink told all columns;
 * where nothing changes, it is not made. Of the changes of one id among 64 all
 * are refused so, or none (but where memory is short). */

/* Where a member of the record `id` is stored: the id of its pair, in the
 * counter of pairs and in the shard of id. number is what the column of members
 * of id holds; of 0, which no record has, the pair is none's. member < 2^bits.
 * Pure. */
uint64_t engine_pair(const struct engine *engine, uint64_t id, uint64_t number,
    unsigned bits, uint64_t member);

/* From now on the sink is told of all changes; NULL: nobody is. No other call
 * may be under way. */
void engine_set_sink(struct engine *engine, struct engine_sink *sink);

/* From now on the sink is told all columns of each record of which it is told
 * any, or, as at first, those that have changed. Told whole, what a record is
 * follows from the last that was told of it. No other call may be under way. */
void engine_set_whole(struct engine *engine, bool is_whole);

/* Where an id is: its shard and its row in it; and back. */
void engine_row(
    const struct engine *engine, uint64_t id, unsigned *shard, uint64_t *row);
uint64_t engine_id(const struct engine *engine, unsigned shard, uint64_t row);

/* Adds what is held of the counter in slot to *sum: in one shard, or in all
 * with shard = -1. */
void engine_sum(
    struct engine *engine, unsigned slot, int shard, struct engine_sum *sum);

/* Records of the counter in slot, covered ones too, and the memory of those
 * that are here, without a look at lines: some hundred nanoseconds a table.
 * Where there is a cover (engine/cover.h), the number of records is exact for
 * what has changed since the load. Of what was loaded for covered rows it is
 * taken that the cover has it too, and of covered records that held nothing but
 * a column which has been dropped, that they are there. */
void engine_size(
    struct engine *engine, unsigned slot, uint64_t *records, uint64_t *bytes);

/* Adds figures of the counter in slot in one shard to *sum, a piece a call:
 * those of its tables from *at on, which is 0 at first and is moved, and in the
 * end what there is beside them. Where width is not NULL, to
 * width[column slot][bits] is added how many values of a sample of records need
 * so many bits, 0 to 64. *n_left is counted down by one a table and one for the
 * end, some 10 us each at most. True where all is added, and *at is 0 again. */
bool engine_survey(struct engine *engine, unsigned slot, unsigned shard,
    size_t *at, unsigned *n_left, struct engine_sum *sum,
    uint64_t (*width)[ENGINE_WIDTHS]);

/* Bytes of tables, stashes and directories now, and of these, what waits for
 * readers. */
uint64_t engine_hot_bytes(struct engine *engine, uint64_t *garbage_bytes);

/* From now on *beside, bytes that others have, is within config.hot_bytes, too,
 * and in what engine_hot_bytes says; returns where the engine's own are. No
 * other call may be under way. */
const _Atomic uint64_t *engine_share_budget(
    struct engine *engine, const _Atomic uint64_t *beside);

/* Background work of one round: frees garbage, packs tables that have stopped
 * growing, joins sparse neighbours. now_ms is any monotonic clock; a table has
 * stopped growing when its records have not become more for a second. Holds no
 * lock longer than one table takes. True where there was work. The calling
 * thread is not an online reader. One thread at a time. */
bool engine_tend(struct engine *engine, uint64_t now_ms);

/* Walks all structures and asserts their invariants; for tests. */
void engine_verify(struct engine *engine);

#endif
