/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TIER_SEGMENT_MAP_H
#define TIER_SEGMENT_MAP_H

#include "base/mutex.h"
#include "base/qsbr.h"
#include "cold/fetch.h"
#include "cold/segment.h"
#include "durable/durable.h"
#include "engine/cover.h"
#include "engine/engine.h"

#include <stdatomic.h>

/* Which segment covers which ids, for each counter and shard. Part of the
 * store; nobody else calls it.
 *
 * In a covered row the engine has what differs from the segment; what it does
 * not have is as the segment says. A map is immutable. That of a shard is
 * exchanged under the shard's lock; so who holds that lock, and who is an
 * online reader, may follow the pointer. Exchanges come one at a time: under
 * edit_lock, from before the first shard to behind the last; so whoever holds
 * that finds the same map in all shards. */

enum { SEGMENT_MAP_MAGIC = 0x10c3a1d7, SEGMENT_MAP_FILE_MAGIC = 0x5e2f9b13 };

/* A segment file that is in use: by maps, and by lookups under way. */
struct segment_map_file {
    uint32_t magic; /* SEGMENT_MAP_FILE_MAGIC */
    _Atomic uint32_t n_refs;
    struct segment *segment; /* owned; closed with the last reference */
    uint64_t number;         /* of the file: the version of what it covers */
    struct fetch *fetch;     /* its cache forgets the segment; NULL: none */
    uint64_t *seq;           /* owned; n_shards: what the log has of covered
                              * rows of a shard up to that batch is in the
                              * file */
};

/* Ids first..last of a counter are covered by a file; first is a multiple of
 * the number of shards, and so is last + 1, modulo 2^64: whole rows. */
struct segment_map_entry {
    uint64_t first_id, last_id;
    struct segment_map_file *file; /* a reference */
};

struct segment_map_list {
    size_t n;
    struct segment_map_entry entry[]; /* by id; ids of two never overlap */
};

struct segment_map_counter {
    _Atomic(struct segment_map_list *) map[1]; /* n_shards; NULL: nothing */
};

struct segment_map {
    struct engine_cover cover; /* first: the engine's seam */
    uint32_t magic;            /* SEGMENT_MAP_MAGIC */
    struct durable_segments durable;
    struct mutex *edit_lock; /* the durable's; NULL: one thread exchanges */
    struct fetch *fetch;     /* not owned; NULL: none */
    struct engine *engine;
    struct qsbr *qsbr;
    unsigned n_shards;
    _Atomic bool any;     /* some counter has a map, or had one */
    _Atomic bool loading; /* what is not in the engine counts as default */
    struct mutex lock;    /* exchanges, against segment_map__hold */
    _Atomic(struct segment_map_counter *) counter[SCHEMA_COUNTERS_MAX];
};

/* An exchange: the map of a counter as it will be. */
struct segment_map_change {
    struct segment_map *segment_map;
    unsigned slot;
    struct segment_map_list *old, *next; /* owned; NULL: nothing is covered */
};

/* Nothing is covered. n_shards: of the engine. It is loading. engine, qsbr and
 * fetch (NULL: none) must outlive it. */
void segment_map__init(struct segment_map *segment_map, struct engine *engine,
    unsigned n_shards, struct qsbr *qsbr, struct fetch *fetch);

/* What the durable asks; valid as long as covers is. */
struct durable_segments *segment_map__as_durable(
    struct segment_map *segment_map);

/* No reader may be left. */
void segment_map__fini(struct segment_map *segment_map);

/* Asserts what must hold of all maps: whole rows, by id, of which no two
 * overlap; each of an open file of that counter; the same in all shards. Takes
 * some nanoseconds a range and shard. Under edit_lock. */
void segment_map_verify(const struct segment_map *segment_map);

/* From now on what is not in the engine is looked for in segments, and whoever
 * exchanges holds edit_lock. No change may be under way. */
void segment_map__end_loading(struct segment_map *segment_map);

/* Takes an open segment and seq (from the heap), with one reference, the
 * caller's. NULL: no memory, and both stay the caller's. */
struct segment_map_file *segment_map__file_create(
    struct segment *segment, uint64_t *seq, struct fetch *fetch);
/* The segment is the caller's again. */
void segment_map__file_disown(struct segment_map_file *file);
void segment_map_file_release(struct segment_map_file *file);

/* False: no id of any counter is covered. */
static inline bool
segment_map_any(const struct segment_map *segment_map)
{
    /* relaxed: who has seen a record leave the engine has taken its shard's
     * lock, or loaded the table's pointer, after that was stored */
    return atomic_load_explicit(&segment_map->any, memory_order_relaxed);
}

/* True where an id may be covered in its shard. For an online reader. */
bool segment_map__has(
    const struct segment_map *segment_map, unsigned slot, uint64_t id);

/* The file that covers an id, if it has that version; a reference, the
 * caller's. NULL: something else covers it by now, or nothing. Any thread. */
struct segment_map_file *segment_map__hold(struct segment_map *segment_map,
    unsigned slot, uint64_t id, uint64_t version);

/* What covers ids first..last of a counter now, in order, with references that
 * segment_map_list_destroy gives back; clipped to first..last. Any thread. 0 or
 * ERR_NO_MEMORY; *out NULL: nothing. */
int segment_map_list(struct segment_map *segment_map, unsigned slot,
    uint64_t first_id, uint64_t last_id, struct segment_map_list **out);
void segment_map_list_destroy(struct segment_map_list *map);

/* True where both have the same ids of the same files; NULL is an empty one.
 */
bool segment_map__map_is_same(
    const struct segment_map_list *a, const struct segment_map_list *b);

/* Begins an exchange: the n entries (files are referenced anew) take the place
 * of whatever covers ids first..last, all whole rows. 0 or ERR_NO_MEMORY. */
int segment_map__begin(struct segment_map *segment_map, unsigned slot,
    uint64_t first_id, uint64_t last_id, const struct segment_map_entry *entry,
    size_t n, struct segment_map_change *change);

/* Exchanges the map of a shard, under its lock. */
void segment_map__publish(struct segment_map_change *change, unsigned shard);

/* Frees the old map, which all shards have left. Waits for readers; the calling
 * thread is not an online one. */
void segment_map__end(struct segment_map_change *change);

/* Both at once, for rows of which the engine has nothing that goes: exchanges
 * the map of all shards, without their locks, and frees the old one. No change
 * of that counter may be under way. Waits for readers, as segment_map__end. */
void segment_map__publish_all(struct segment_map_change *change);

/* The map of a counter, the same in all shards, or NULL; for as long as
 * edit_lock is held. */
const struct segment_map_list *segment_map__settled(
    const struct segment_map *segment_map, unsigned slot);

/* What all maps hold; a file that is in several entries counts once, and whole,
 * but its records by entries. Any thread. */
struct segment_map_sum {
    uint64_t files, entries, blocks, records;
    uint64_t bytes;  /* of the files */
    uint64_t memory; /* of their indexes, and of the maps */
};
void segment_map__sum(
    struct segment_map *segment_map, struct segment_map_sum *sum);

/* The same of the counter in a slot. */
void segment_map__sum_of(struct segment_map *segment_map, unsigned slot,
    struct segment_map_sum *sum);

/* Records of its file that an entry covers, those that the engine has too
 * included. Where it covers a part of the file, some of a block may be missing,
 * or too many. */
uint64_t segment_map__entry_records(const struct segment_map_entry *entry);

/* Nothing of a counter is covered any more. The counter is gone from the
 * engine. Holds edit_lock. Waits for readers. */
void segment_map_clear(struct segment_map *segment_map, unsigned slot);

#endif
