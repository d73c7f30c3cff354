/* SPDX-License-Identifier: BSD-3-Clause */
/* Logs what is added to tables of members=about, and loads them.
 *
 * A member is logged before its bits are set, and a table that begins before
 * anybody sees it; so whoever finds a member finds its batch in the log. What
 * is read again does no harm: bits are set once more, tables that are there
 * stay, ids below the window are passed over.
 *
 * What can go wrong: memory; images that do not make tables, of which a
 * checksum held. */
#include "durable/durable_about.h"

#include "about/about_copy.h"
#include "about/abouts.h"
#include "base/assert.h"
#include "base/err.h"
#include "durable/durable_position.h"
#include "durable/recover.h"

#include <inttypes.h>
#include <stdlib.h>

struct log_sink {
    struct about_sink sink; /* first: the tables' seam */
    struct durable *durable;
    uint32_t serial; /* of the column */
};

_Static_assert((int)ABOUT_BATCH == (int)ENTRY_ABOUT_PAIRS_MAX,
    "what is added together is one entry");

static uint64_t
log_add(struct about_sink *sink, const struct about_pair *pair, size_t n)
{
    const struct log_sink *it = (const struct log_sink *)sink;
    struct entry_about about;
    uint8_t entry[ENTRY_ABOUT_BYTES_MAX];
    ASSERT(n >= 1 && n <= ENTRY_ABOUT_PAIRS_MAX);
    if (durable_is_replica(it->durable)) {
        return durable_touched(it->durable); /* see log_writes */
    }
    about.serial = it->serial;
    about.n = (unsigned)n;
    for (size_t i = 0; i < n; i++) {
        about.id[i] = pair[i].id;
        about.member[i] = pair[i].member;
    }
    size_t len = entry_put_about(entry, &about);
    return wal_append(it->durable->wal, entry, len);
}

static uint64_t
log_last(struct about_sink *sink)
{
    return durable_touched(((const struct log_sink *)sink)->durable);
}

static void
log_roll(struct about_sink *sink, uint64_t first, uint64_t lowest)
{
    const struct log_sink *it = (const struct log_sink *)sink;
    const struct entry_rolled rolled = {it->serial, first, lowest};
    uint8_t entry[ENTRY_ABOUT_ROLLED_BYTES_MAX];
    if (!durable_is_replica(it->durable)) {
        size_t len = entry_put_rolled(entry, &rolled);
        (void)wal_append(it->durable->wal, entry, len);
    }
}

struct about_sink *
durable_about_sink(void *durable, uint32_t serial)
{
    struct log_sink *it = calloc(1, sizeof *it);
    if (it == NULL) {
        return NULL;
    }
    *it = (struct log_sink){
        .sink = {.add_fn = log_add, .last_fn = log_last, .roll_fn = log_roll},
        .durable = durable,
        .serial = serial};
    return &it->sink;
}

void
durable_about_sink_end(void *durable, struct about_sink *sink)
{
    ASSERT(((const struct log_sink *)sink)->durable == durable);
    free(sink);
}

/* ---- images ---- */

/* The column whose image that is; NULL: it has gone. */
static const struct schema_column *
column_of(const struct schema *schema, const struct images_entry *entry,
    const struct image *image)
{
    const struct schema_counter *counter =
        schema_counter_at(schema, entry->counter);
    const struct schema_column *column = counter == NULL
        ? NULL
        : schema_column_of(counter, image->counter_serial);
    return column != NULL && column->kind == SCHEMA_ABOUT &&
            column->slot == entry->first_row >> DURABLE_ABOUT_SLOT_SHIFT
        ? column
        : NULL;
}

static int
load_window(struct about *about, const struct image *image)
{
    struct about_part *part = calloc(image->n, sizeof *part);
    if (part == NULL) {
        return ERR_NO_MEMORY;
    }
    for (uint32_t i = 1; i < image->n; i++) {
        part[i - 1] = (struct about_part){.number = image->code[0][i],
            .first = image->code[1][i],
            .n_new = image->code[2][i],
            .n_closed = image->code[3][i]};
    }
    int err = about_load_window(
        about, image->code[1][0], image->code[0][0], part, image->n - 1);
    free(part);
    return err;
}

struct heads {
    struct durable *durable;
    const struct schema *schema;
    struct recover_reader reader;
    int err;
};

static void
load_head(void *context, const struct images_entry *entry)
{
    struct heads *heads = context;
    struct durable *durable = heads->durable;
    struct image image;
    if (heads->err != 0 || !manifest_is_of_tables(&durable->manifest, entry) ||
        !durable_about_is_head(entry)) {
        return;
    }
    heads->err = recover_read(&heads->reader, entry, &image);
    const struct schema_column *column =
        heads->err == 0 ? column_of(heads->schema, entry, &image) : NULL;
    if (column == NULL) {
        return;
    }
    struct about *about = abouts_find(durable->abouts, column->serial);
    ASSERT(about != NULL); /* it follows the schema */
    heads->err = image.n < 2 || image.n_columns != DURABLE_ABOUT_HEAD_COLUMNS
        ? ERR_CORRUPT
        : load_window(about, &image);
    if (heads->err == ERR_CORRUPT) {
        log_line(durable->config.logger, LOG_ERROR,
            "checkpoint %" PRIu64 ", offset %" PRIu64
            ": tables of %s that cannot be; restore the data directory from "
            "a backup, or see --salvage",
            entry->file, entry->offset, column->name.text);
    }
}

int
durable_about__load_heads(struct durable *durable, const struct schema *schema)
{
    struct heads heads = {.durable = durable,
        .schema = schema,
        .reader = {.disk = durable->disk,
            .logger = durable->config.logger,
            .images = &durable->manifest.images}};
    if (durable->abouts == NULL) {
        return 0;
    }
    int err = abouts_follow(durable->abouts, schema);
    if (err == 0) {
        images_each(&durable->manifest.images, load_head, &heads);
        err = heads.err;
    }
    recover_reader_fini(&heads.reader);
    return err;
}

/* The number of the table in the window that has that place in rows; 0: it is
 * gone. */
static uint64_t
number_at(struct about *about, uint64_t row)
{
    struct about_part part[ABOUT_TABLES_MAX];
    unsigned n = about_copy_list(about, part);
    uint64_t place = row >> DURABLE_ABOUT_TABLE_SHIFT & DURABLE_ABOUT_HEAD;
    for (unsigned i = 0; i < n; i++) {
        if (part[i].number % DURABLE_ABOUT_HEAD == place) {
            return part[i].number;
        }
    }
    return 0;
}

bool
durable_about__load(struct durable *durable, const struct schema *schema,
    const struct images_entry *entry, const struct image *image)
{
    const struct schema_column *column = column_of(schema, entry, image);
    struct about *about = column == NULL || durable->abouts == NULL
        ? NULL
        : abouts_find(durable->abouts, column->serial);
    if (about == NULL) {
        return false;
    }
    if (durable_about_is_head(entry) || image->n_columns != ABOUT_LINE_WORDS) {
        return true;
    }
    uint64_t number = number_at(about, entry->first_row);
    for (uint32_t i = 0; i < image->n && number != 0; i++) {
        uint64_t word[ABOUT_LINE_WORDS];
        uint64_t row = image->row[i];
        for (unsigned w = 0; w < ABOUT_LINE_WORDS; w++) {
            word[w] = image->code[w][i];
        }
        if (row >= entry->first_row && row <= entry->last_row) {
            (void)about_load_line(about, number,
                row & ((UINT64_C(1) << DURABLE_ABOUT_TABLE_SHIFT) - 1), word);
        }
    }
    return true;
}

/* ---- the log ---- */

static struct about *
find(struct durable *durable, uint32_t serial)
{
    return durable->abouts == NULL ? NULL
                                   : abouts_find(durable->abouts, serial);
}

void
durable_about_redo(struct durable *durable, const struct entry_about *entry)
{
    struct about_pair pair[ENTRY_ABOUT_PAIRS_MAX];
    struct about *about = find(durable, entry->serial);
    if (about == NULL) {
        return;
    }
    for (unsigned i = 0; i < entry->n; i++) {
        pair[i] = (struct about_pair){entry->id[i], entry->member[i]};
    }
    about_redo(about, pair, entry->n);
}

int
durable_about_roll(struct durable *durable, const struct entry_rolled *entry)
{
    struct about *about = find(durable, entry->serial);
    return about == NULL ? 0
                         : about_redo_roll(about, entry->first, entry->lowest);
}
