/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LIB_REPLICA_H
#define LIB_REPLICA_H

#include "base/mutex.h"
#include "engine/engine_copy.h"

/* A sink that remembers all it is told, and a replica that is made of copies
 * and of what the sink was told after them, as a recovery would. For tests:
 * what is wrong ends in an ASSERT. */

struct journal_entry {
    uint64_t position;
    struct engine_write write;
};

struct journal {
    struct engine_sink sink; /* first: the seam */
    struct mutex lock;
    uint64_t group; /* calls that have one position; 0: one, and empty ones
                     * none of their own */
    uint64_t position;
    uint64_t calls, empty_calls; /* of all, those that told nothing */
    size_t n, capacity;
    struct journal_entry *entry;
};

void journal_init(struct journal *journal);
void journal_fini(struct journal *journal);

/* Where an id is, what it has in the replica, and up to where that holds. */
struct replica_id {
    uint64_t id, row;
    unsigned shard;
    bool is_changed; /* told of since its table was copied */
    uint64_t position;
    uint64_t value[SCHEMA_COLUMNS_MAX]; /* by slot */
};

struct replica {
    struct schema_counter def;
    size_t n;
    struct replica_id *id; /* ascending */
};

/* All of n ids (ascending) are at the defaults of def. */
void replica_init(struct replica *replica, const struct engine *engine,
    const struct schema_counter *def, const uint64_t *id, size_t n);
void replica_fini(struct replica *replica);

/* A copy of its own. */
struct replica replica_copy(const struct replica *replica);

/* Columns have come or gone: what is not there any more is forgotten. */
void replica_redefine(
    struct replica *replica, const struct schema_counter *def);

/* Marks what entries from `from` on are about. */
void replica_notice(
    struct replica *replica, const struct journal *journal, size_t from);

/* Takes over what a call of engine_copy from from_row on has said. Returns how
 * many ids of the copied table were told of since the last time. */
size_t replica_take(struct replica *replica, unsigned shard, uint64_t from_row,
    const struct engine_rows *rows, enum engine_copied copied);

/* Copies all of an engine, table by table; count[ENGINE_COPY_...]. */
void replica_pass(struct replica *replica, struct engine *engine,
    unsigned shards, struct engine_rows *rows, size_t count[3]);

/* Does all that was told behind the copies; what has the position of a copy
 * too, where that stands for several calls. */
void replica_replay(struct replica *replica, const struct journal *journal);

/* The engine must have what the replica has. The calling thread is an online
 * reader. */
void replica_check(const struct replica *replica, struct engine *engine);

#endif
