/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIT_COVERS_HELP_H
#define UNIT_COVERS_HELP_H

/* What tests of the maps of segments, and of what is merged by them, stand on:
 * an empty engine, and a fake disk for files. */

#include "engine/engine.h"
#include "lib/fake_disk.h"
#include "unit/segment_help.h"

/* Makes them; the engine is as small as may be and has readers of qsbr. Ended
 * with ground_fini. */
static inline void
ground_init(unsigned shards, uint64_t seed, struct qsbr *qsbr,
    struct engine **engine_out, struct fake_disk **fake_out)
{
    const struct engine_config config = {.shards = shards,
        .seed = seed,
        .hot_bytes = ENGINE_HOT_BYTES_MIN,
        .qsbr = qsbr};
    qsbr_init(qsbr);
    ck_assert_int_eq(engine_create(&config, engine_out), 0);
    *fake_out = fake_disk_create(seed);
}

static inline void
ground_fini(struct qsbr *qsbr, struct engine **engine, struct fake_disk **fake)
{
    fake_disk_destroy(fake);
    engine_destroy(engine);
    qsbr_fini(qsbr);
}

/* How a segment is written to the fake disk. */
static inline struct segment_write_config
write_to(struct fake_disk *fake)
{
    return (struct segment_write_config){
        .disk = fake_disk_as_disk(fake), .codec = BLOCK_AUTO, .level = 1};
}

/* One that was written, opened; the caller's. */
static inline struct segment *
open_segment(struct fake_disk *fake, uint64_t number)
{
    const struct segment_config config = {.disk = fake_disk_as_disk(fake)};
    struct segment *segment;
    ck_assert_int_eq(
        segment_open(&config, SEGMENT_EPOCH, number, &segment), 0);
    return segment;
}

#endif
