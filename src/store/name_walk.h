/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef STORE_NAME_WALK_H
#define STORE_NAME_WALK_H

#include "base/qsbr.h"
#include "engine/cover.h"
#include "engine/engine.h"
#include "names/names.h"
#include "schema/schema.h"
#include "wal/wal.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* The gardener's work on names (primarykey=text): takes out those without a
 * record, has tables of symbols learned, and frees what readers have left. */

struct dumper; /* store/dumper.h */

enum {
    NAME_WALK_MAGIC = 0x6e61776b,
    NAME_WALK_STEP = 2048, /* names that a step looks at */
    NAME_WALK_PAGE = 32    /* and under one hold of the lock */
};

struct name_walk_config {
    struct engine *engine;
    struct names *names;
    struct qsbr *qsbr;
    _Atomic(const struct schema *) *schema;
    const struct engine_cover *cover; /* NULL: nothing is covered */
    struct dumper *dumper;
    struct wal *wal;           /* NULL: there is none */
    _Atomic uint64_t *rounds;  /* struct store, names_rounds */
    _Atomic uint64_t *dropped; /* counts names that were taken out */
    unsigned n_shards;
};

struct name_walk {
    uint32_t magic;
    struct name_walk_config config;
    struct qsbr_reader reader; /* offline between the steps */
    bool is_in_pass, pauses;
    uint64_t paused_ms;
    unsigned shard;  /* of the pass ... */
    uint32_t number; /* ... and where it goes on there */
    unsigned tended; /* the shard that was last tended */
};

/* What config has outlives it. */
void name_walk_init(
    struct name_walk *walk, const struct name_walk_config *config);
void name_walk_fini(struct name_walk *walk);

/* One step. now_ms is any monotonic clock. takes_out: names may be taken out,
 * which only who may change records does. The gardener's thread. */
void name_walk_step(struct name_walk *walk, uint64_t now_ms, bool takes_out);

#endif
