/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef STORE_FORGETTER_H
#define STORE_FORGETTER_H

#include "base/qsbr.h"
#include "engine/engine_copy.h"
#include "schema/schema.h"
#include "tier/forgotten.h"
#include "wal/wal.h"

#include <stdatomic.h>

/* Takes out marks in memory that count as none (forget=), so that it comes
 * back: a part of the gardener. What a mark counts as does not hang on it. Of
 * those in segments seals take care (tier/seal_forget.h). */

enum {
    FORGETTER_MAGIC = 0x666f7267,
    FORGETTER_PAUSE_MS = 600000 /* between two passes */
};

/* What a forgetter is made of; all of it outlives it. */
struct forgetter_config {
    struct engine *engine;
    struct qsbr *qsbr;
    _Atomic(const struct schema *) *schema; /* the published one */
    struct wal *wal;                        /* NULL: there is no log */
    unsigned n_shards;
};

struct forgetter {
    uint32_t magic; /* FORGETTER_MAGIC */
    struct forgetter_config config;
    struct qsbr_reader reader;
    bool is_in_pass;
    bool pauses; /* since paused_ms; false: no step has been made yet */
    uint64_t paused_ms;
    unsigned slot; /* of the counter, or the next one to be looked at, where */
    struct forgotten marks; /* ... it has none: n is 0 */
    unsigned shard;         /* in it ... */
    uint64_t row;           /* ... the next one */
    struct engine_rows rows;
    uint64_t n_forgotten; /* marks taken out since the start */
};

void forgetter_init(
    struct forgetter *forgetter, const struct forgetter_config *config);
void forgetter_fini(struct forgetter *forgetter);

/* Looks at one table: copies it, under its shard's lock as a checkpoint does,
 * and deletes each of its marks that counts as none, by changes like those of
 * clients, which the log is told. What is in a segment stays as it is. False
 * where there is nothing to do now: a pass through all counters with such marks
 * begins FORGETTER_PAUSE_MS after the first step, or after the end of another
 * one. Blocks for a table's time (some
 * ms), and a microsecond for each mark; the gardener's thread. */
bool forgetter_step(struct forgetter *forgetter, uint64_t now_ms);

#endif
