/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DURABLE_DURABLE_NAMING_H
#define DURABLE_DURABLE_NAMING_H

#include "durable/durable.h"
#include "wal/entry.h"
#include "wal/image.h"

/* Names on disk: their entries in the log, and their images.
 *
 * Images of a shard's dictionary are in the checkpoint files like others, in
 * slot 0 and a shard of their own (manifest_is_of_names). They have one column:
 * words of 8 bytes, of what doc/format-names.md says a table or a block is. A
 * row is
 *
 *   table << 10 | word, of a table of symbols, 1..15
 *   (16 + block) << 10 | word, of a block of names
 *
 * Blocks are written in groups of DURABLE_NAMING_GROUP. */

enum {
    DURABLE_NAMING_SHIFT = 10,
    DURABLE_NAMING_BLOCKS = 16, /* the first block's place */
    DURABLE_NAMING_GROUP = 64
};

/* In the place of the serials of counter and column: none ever has it. */
#define DURABLE_NAMING_SERIAL ENTRY_MARK_SERIAL

static inline uint64_t
durable_naming_table_row(unsigned table)
{
    return (uint64_t)table << DURABLE_NAMING_SHIFT;
}

static inline uint64_t
durable_naming_block_row(uint64_t block)
{
    return (block + DURABLE_NAMING_BLOCKS) << DURABLE_NAMING_SHIFT;
}

/* The shard that images of a shard's dictionary are in. */
static inline uint16_t
durable_naming_shard(const struct manifest *manifest, unsigned shard)
{
    return (uint16_t)(manifest->shards + 1 + shard);
}

struct recover_reader; /* durable/recover.h */

/* What loads names: at the start, and whoever looks at a directory. */
struct durable_naming {
    struct names *names; /* new; NULL: all is passed over */
    const struct manifest *manifest;
    struct disk *disk;
    struct logger *logger;
    struct durable *durable; /* NULL: it is not given up */
    bool passes_damage;      /* images that cannot be read are left out */
};

/* One after the other: loads images, all of them, or from durable_naming__begin
 * on one by one: those of a shard on one thread, by their first rows; then what
 * an entry says, which an image that was made later has already: one thread a
 * shard; then looks that all fits. 0 or ERR_ (the logger has been told
 * more). */
int durable_naming_load(const struct durable_naming *it);
void durable_naming__begin(const struct durable_naming *it);
int durable_naming__load_one(const struct durable_naming *it,
    struct recover_reader *reader, const struct images_entry *entry);
int durable_naming_replay(const struct durable_naming *it,
    const struct entry_name *name, uint64_t seq);
int durable_naming_end_load(const struct durable_naming *it);

struct durable_naming durable__naming(struct durable *durable);

/* From now on names that come and go are logged. 0 or ERR_NO_MEMORY. The end:
 * none comes or goes any more. */
int durable_naming__log(struct durable *durable);
void durable_naming__close(struct durable *durable);

/* Applies an entry of the primary's log. 0; ERR_HOT_FULL, where readers may
 * still have the number, too, or ERR_NO_MEMORY: the caller rests and comes
 * again; ERR_CORRUPT. For who is no online reader. */
int durable_naming_apply(
    struct durable *durable, const struct entry_name *name);

#endif
