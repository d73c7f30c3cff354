/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef STORE_STORE_REPL_H
#define STORE_STORE_REPL_H

#include "base/disk.h"
#include "store/store.h"
#include "wal/history.h"
#include "wal/wal_follow.h"

#include <stddef.h>
#include <stdint.h>

/* What replication asks of a store with a data directory that is one of several
 * copies (data_config.is_replicated). All is loaded. Any thread, but where
 * something else is said. */

/* Which directory it is a copy of: constant. */
struct store_directory {
    uint64_t epoch, seed;
    uint32_t shards;
};

void store_directory(struct store *store, struct store_directory *out);

/* The disk of the data directory, until the store is destroyed. */
struct disk *store_disk(struct store *store);

/* Positions of one moment: numbers of batches. */
struct store_position {
    uint64_t begin; /* the log has all batches behind this one */
    uint64_t
        written; /* the last one that is in the log's file; the history can
                       * end with it */
    uint64_t written_bytes; /* of log up to there, since it was opened */
    uint64_t synced;        /* <= written */
    uint64_t applied;       /* <= written; of a primary: written */
    uint64_t given; /* the last one that the log was given; >= written */
    struct history history;
};

/* A look under the log's lock; does not wait for the disk. */
void store_position(struct store *store, struct store_position *out);

/* The last batch that a replica's log was given, and its history up to there,
 * which can end with it. Likewise. */
uint64_t store_given(struct store *store, struct history *history);

/* wal_follow_open of the store's log. */
int store_follow(struct store *store, struct wal_follow *follow,
    uint64_t from_seq, uint64_t bytes_max,
    void (*more_fn)(struct wal_follow *follow));

/* Calls counter_fn for each counter (of pairs for none), with the last serial
 * that was given out, then producer_fn for each producer: as they are once all
 * that was applied before the call has been. Under locks: neither may wait, nor
 * call the store. Waits for edits; not for event loops. */
void store_each_named(struct store *store,
    void (*counter_fn)(void *context, const struct schema_counter *counter,
        uint32_t last_serial),
    void (*producer_fn)(
        void *context, uint32_t serial, const struct producer_name *name),
    void *context);

/* A replica, all of whose batches are applied first, becomes the primary: a
 * term begins, at least least_term, as that of the node of that name (a right
 * one, base/node.h), and changes are taken. *seq is the number of the term's
 * first batch: nothing is to be acknowledged before that is committed. Waits
 * for the disk. One thread at a time for this, store_set_replica and
 * store_put_batch. 0; what store_put_batch says, or wal_begin_term
 * (ERR_LOG_ORDER: there is no further term), ERR_SYSTEM: it stays a replica. */
int store_begin_term(struct store *store, const char *name, size_t name_len,
    uint32_t least_term, uint64_t *seq);

/* Nothing behind batch seq is acknowledged, nor has a manifest any of it; what
 * is up to it may be, once the log itself lets it. UINT64_MAX: the log alone
 * decides. A start begins with 0, so nothing is until this was called, no
 * checkpoint comes through and what is sealed stays in memory. A number that is
 * not above the last one changes nothing. store_begin_term leaves it as it is;
 * store_set_replica too, but makes of UINT64_MAX the last batch of the log.
 * Whoever waits is told. */
void store_set_committed(struct store *store, uint64_t seq);

/* Why changes are refused from now on (store_fault says it) before they are
 * made: an ERR_; 0: they are not. Of a primary, besides all other reasons: too
 * few replicas are there. Whoever has asked store_fault before may still make
 * one. The thread of store_begin_term. */
void store_refuse_changes(struct store *store, int err);

/* True where a change waits for a block of the cold tier, or for room: it is
 * still to be made, whatever is refused since. */
bool store_has_changes(struct store *store);

/* Has store_destroy note in REPLICA, once the whole log is synced, that the
 * stop was a clean one. Who has noted in it that it runs. */
void store_want_clean_end(struct store *store);

#endif
