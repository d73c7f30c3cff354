/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LIB_FAKE_COVER_H
#define LIB_FAKE_COVER_H

#include "base/mutex.h"
#include "engine/cover.h"

/* A cold tier for tests of the engine, without disk or blocks: the rows of one
 * counter in each shard are cut into cells, and a cell is covered by a segment,
 * a plain sorted array, or by nothing. What is wrong ends in an ASSERT. */

struct fake_record {
    uint64_t row;
    struct engine_base base; /* its id and version are void */
};

/* Immutable once it covers something. */
struct fake_segment {
    uint64_t version;
    size_t n;
    struct fake_record *record; /* ascending; owned */
};

struct fake_cover {
    struct engine_cover cover; /* first: the seam */
    unsigned slot, shards, cells;
    uint64_t *bound; /* owned; of shard s, cell c: its first row is in place
                      * s * (cells + 1) + c, the next one's behind it */
    /* owned; of shard s, cell c in place s * cells + c; NULL: not covered.
     * Under the engine's lock of that shard, or by the one thread that seals */
    const struct fake_segment **cell;
    bool is_loading;   /* version_fn says ENGINE_COVER_LOADING; set while
                           * nothing is under way */
    struct mutex lock; /* what follows: */
    size_t n;          /* segments; that of version v is in place v - 1 */
    struct fake_segment **segment;
};

/* Cells are cut where n ids (ascending) are, so that each has some; ends are
 * at odd places. Nothing is covered yet. */
void fake_cover_init(struct fake_cover *fake, const struct engine *engine,
    unsigned slot, unsigned shards, unsigned cells, const uint64_t *id,
    size_t n);
void fake_cover_fini(struct fake_cover *fake);

/* Nothing is covered any more. */
void fake_cover_clear(struct fake_cover *fake);

/* The cell of a row. */
unsigned fake_cover_cell(
    const struct fake_cover *fake, unsigned shard, uint64_t row);

/* What the segment of that version has of a row; the id is the caller's to
 * fill in. Any thread. */
void fake_cover_base(struct fake_cover *fake, uint64_t version, uint64_t row,
    struct engine_base *base);

/* The value of a column in a base; its default where that has none. */
uint64_t fake_cover_value(
    const struct engine_base *base, const struct schema_column *column);

/* What happens while cells are sealed. */
struct fake_sealing {
    /* after the copy is made; NULL: nothing. */
    void (*meanwhile_fn)(void *context);
    /* under the shard's lock, where the new segment is published */
    void (*published_fn)(void *context);
    void *context;
};

/* Seals cells first..last of a shard: what is in the engine, merged with what
 * covers them, becomes a new segment. 0, or what engine_copy_range or
 * engine_evict says; then nothing has changed. One thread at a time. */
int fake_cover_seal(struct fake_cover *fake, struct engine *engine,
    unsigned shard, unsigned first, unsigned last, const struct alloc *alloc,
    const struct fake_sealing *sealing);

#endif
