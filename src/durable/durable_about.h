/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DURABLE_DURABLE_ABOUT_H
#define DURABLE_DURABLE_ABOUT_H

#include "durable/durable.h"
#include "wal/entry.h"
#include "wal/image.h"

/* The tables of columns of members=about on disk: their entries in the log, and
 * their images.
 *
 * Images of a column are in the checkpoint files like others, under the slot of
 * its counter and a shard of their own, one beyond those of records. Their
 * serial is that of the column; their rows are
 *
 *   slot of the column << 56 | table << 36 | line: 8 words of 64 bits
 *   slot of the column << 56 | DURABLE_ABOUT_HEAD << 36 | 0: largest id + 1,
 *       lines of a table
 *   the same | 1, 2 ...: its tables, by ascending ids: number, first id,
 *       members in its lines, members when it closed
 *
 * table is its number modulo DURABLE_ABOUT_HEAD: fewer are there at a time. */

enum {
    DURABLE_ABOUT_SLOT_SHIFT = MANIFEST_TABLES_SLOT_SHIFT,
    DURABLE_ABOUT_TABLE_SHIFT = 36,
    DURABLE_ABOUT_HEAD = (1 << 20) - 1,
    DURABLE_ABOUT_HEAD_COLUMNS = 4
};

/* The row of a table's line. */
static inline uint64_t
durable_about_row(unsigned slot, uint64_t number, uint64_t line)
{
    return (uint64_t)slot << DURABLE_ABOUT_SLOT_SHIFT |
        number % DURABLE_ABOUT_HEAD << DURABLE_ABOUT_TABLE_SHIFT | line;
}

/* The first row of its head; the head has all up to the next column's. */
static inline uint64_t
durable_about_head_row(unsigned slot)
{
    return (uint64_t)slot << DURABLE_ABOUT_SLOT_SHIFT |
        (uint64_t)DURABLE_ABOUT_HEAD << DURABLE_ABOUT_TABLE_SHIFT;
}

static inline uint64_t
durable_about_last_row(unsigned slot)
{
    return ((uint64_t)slot + 1) << DURABLE_ABOUT_SLOT_SHIFT == 0
        ? UINT64_MAX
        : (((uint64_t)slot + 1) << DURABLE_ABOUT_SLOT_SHIFT) - 1;
}

/* True of an image of tables that is a head. */
static inline bool
durable_about_is_head(const struct images_entry *entry)
{
    return (entry->first_row >> DURABLE_ABOUT_TABLE_SHIFT &
               DURABLE_ABOUT_HEAD) == DURABLE_ABOUT_HEAD;
}

struct about_sink; /* about/about.h */

/* For struct abouts_config, whose context is the durable: the sink of a column,
 * NULL when memory is out; and what frees it. */
struct about_sink *durable_about_sink(void *durable, uint32_t serial);
void durable_about_sink_end(void *durable, struct about_sink *sink);

/* Makes the columns' tables, as their heads in the images say: before lines are
 * loaded. 0 or ERR_. */
int durable_about__load_heads(
    struct durable *durable, const struct schema *schema);

/* Loads lines; those of a table that has gone are passed over. False: it is of
 * no column that is there. Any thread. */
bool durable_about__load(struct durable *durable, const struct schema *schema,
    const struct images_entry *entry, const struct image *image);

/* What an ENTRY_ABOUT or ENTRY_ABOUT_ROLLED says; of a column that has gone
 * nothing. The first one is for an online reader, and may be in several
 * threads, the second for who is none. 0 or ERR_NO_MEMORY. */
void durable_about_redo(
    struct durable *durable, const struct entry_about *entry);
int durable_about_roll(
    struct durable *durable, const struct entry_rolled *entry);

#endif
