/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIT_COLD_HELP_H
#define UNIT_COLD_HELP_H

/* A data directory on a fake disk with a small cold tier over it: one counter
 * with two columns and few ids, which are sealed by the block. What each cell
 * must be is known; what is found is that of the engine, else of the segment.
 * One thread beside those of the log and the checkpointer. */

#include "cold/segment.h"
#include "durable/checkpoint.h"
#include "durable/producers.h"
#include "engine/cover.h"
#include "lib/fake_disk.h"
#include "unit/check_help.h"

#include <semaphore.h>

enum {
    COLD_SHARDS = 4,
    COLD_COLUMNS = 2,
    COLD_BLOCKS = 6,
    COLD_BLOCK_IDS = 80,
    COLD_IDS = COLD_BLOCKS * COLD_BLOCK_IDS,
    COLD_FILES_MAX = 4096
};

struct cold_file {
    uint64_t number;
    struct segment *segment;
    uint64_t seq[COLD_SHARDS];
};

struct cold_rig {
    struct durable_segments segment_map; /* first: the seam */
    struct engine_cover cover;
    struct fake_disk *fake;
    struct logger logger;
    struct data_config data;
    uint64_t random;

    /* while it is open */
    struct durable durable;
    struct producers producers; /* there are none */
    struct engine *engine;
    struct qsbr qsbr;
    struct schema *loading;
    _Atomic(const struct schema *) schema;
    struct checkpointer checkpointer;
    struct cell_key key[COLD_COLUMNS]; /* without the id */
    struct cold_file *file[COLD_FILES_MAX];
    size_t n_files;
    struct cold_file *map[COLD_SHARDS][COLD_BLOCKS]; /* under shards' locks */
    struct cold_file *settled[COLD_BLOCKS];          /* under edit_lock */
    bool is_loading;

    uint64_t value[COLD_IDS][COLD_COLUMNS]; /* what must be there */
    /* of the change that was made last and may not be durable */
    bool has_doubt;
    uint64_t doubt_id, before[COLD_COLUMNS];
    bool is_lazy; /* changes are not synced one by one */
};

void cold_init(struct cold_rig *rig, uint64_t seed);
void cold_fini(struct cold_rig *rig);

/* Opens the directory, makes the counter where there is none. 0 or why not. */
int cold_open(struct cold_rig *rig);
/* A stop, with a last checkpoint or not; what durable_close says. */
int cold_close(struct cold_rig *rig, bool at_end);

/* Changes one record; false where the log takes none, or has failed. */
bool cold_change(struct cold_rig *rig, uint64_t id, enum change_op op,
    unsigned first, unsigned n, const uint64_t *operand);
/* n random ones; ends early where one is not taken. */
bool cold_work(struct cold_rig *rig, unsigned n);

/* Seals blocks first..last. meanwhile_fn is called after the file is written
 * and before the engine lets go; NULL: nothing happens then. 0, or why there is
 * no new segment (the disk). */
int cold_seal(struct cold_rig *rig, unsigned first, unsigned last,
    void (*meanwhile_fn)(struct cold_rig *rig));

/* What the checkpointer is asked for. */
struct cold_asked {
    struct store_checkpoint call;
    sem_t come;
};

/* Asks for a manifest with what is covered now; waits for it. The err. */
void cold_ask(struct cold_rig *rig, struct cold_asked *asked);
int cold_wait(struct cold_asked *asked);

/* Asks for a manifest, or a checkpoint, and waits. The err. */
int cold_publish(struct cold_rig *rig);
int cold_checkpoint(struct cold_rig *rig);

/* All is as it must be. */
void cold_judge(struct cold_rig *rig);

/* The machine stops, with a power cut or not, and starts again. */
void cold_crash(struct cold_rig *rig, bool is_power_cut);

/* How many files of segments there are, those being written too. */
unsigned cold_count_files(struct cold_rig *rig);

#endif
