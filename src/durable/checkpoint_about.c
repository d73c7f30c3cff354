/* SPDX-License-Identifier: BSD-3-Clause */
/* The tables of members=about in a checkpoint.
 *
 * A pass marks the tables when it has begun a log file, waits until who was
 * adding then is done (about_copy.c), and writes whole tables: those whose part
 * of the log is oldest first, but no more bytes than a LOG_SHARE-th of what was
 * logged since the last pass. So what is written for a member that is logged in
 * ten to fourteen bytes is less than four. For the tables that are left the log
 * is kept: from the file on in which the oldest of their changes are that are
 * in no image. That is at most LOG_SHARE times what all tables take, and some.
 *
 * A pass that somebody asks for, one that makes up for files that are gone, and
 * one on a disk that fills, writes all that have changed.
 *
 * A manifest that is written before, for a snapshot say, has the schema as it
 * is by then. How large tables are follows from the memory that the column was
 * made with, which that does not tell any more where it has been changed; so it
 * has the column's head.
 *
 * All is looked at under edit_lock, a block at a time: a column may go between
 * two blocks, and a table may. */
#include "about/about_copy.h"
#include "about/abouts.h"
#include "durable/checkpoint_priv.h"
#include "durable/durable_about.h"
#include "durable/durable_position.h"

#include "base/assert.h"
#include "base/err.h"

#include <stdlib.h>

enum {
    LOG_SHARE = 4,
    BLOCK_LINES = 1 << 15 /* in one image, 2 MiB */
};

/* A column, and where its images are. */
struct column {
    uint32_t serial;
    uint8_t counter, slot;
    uint64_t above, lines; /* of its tables, as they were listed */
    size_t first, n;       /* of these, in checkpoint_abouts.table */
};

/* A table of one, as it was listed. */
struct table {
    const struct column *column;
    struct about_part part;
    bool is_chosen; /* it is written */
};

struct checkpoint_abouts {
    struct column *column; /* n_columns */
    size_t n_columns;
    struct table *table; /* n_tables, of all columns */
    size_t n_tables;
    struct about_part *part; /* ABOUT_TABLES_MAX */
    uint64_t *numbers;       /* of one block: lines, and their words */
    uint64_t *line, *code[ABOUT_LINE_WORDS];
    struct qsbr_reader reader;
};

static const struct schema *
schema_of(const struct pass *pass)
{
    mutex_assert_held(&pass->durable->edit_lock);
    /* relaxed: stored under that lock */
    return atomic_load_explicit(pass->owner->schema, memory_order_relaxed);
}

/* All columns there are now, the caller's. 0 or ERR_NO_MEMORY. */
static int
list_columns(struct pass *pass, struct column **out, size_t *n)
{
    struct column *column = calloc(
        (size_t)SCHEMA_COUNTERS_MAX * SCHEMA_COLUMNS_MAX, sizeof *column);
    *n = 0;
    *out = column;
    if (column == NULL) {
        return ERR_NO_MEMORY;
    }
    mutex_lock(&pass->durable->edit_lock);
    for (unsigned slot = 0; slot < SCHEMA_COUNTERS_MAX; slot++) {
        const struct schema_counter *counter =
            schema_counter_at(schema_of(pass), slot);
        for (unsigned i = 0; counter != NULL && i < counter->n_columns; i++) {
            const struct schema_column *it = &counter->column[i];
            if (it->kind == SCHEMA_ABOUT) {
                column[(*n)++] = (struct column){.serial = it->serial,
                    .counter = (uint8_t)slot,
                    .slot = it->slot};
            }
        }
    }
    mutex_unlock(&pass->durable->edit_lock);
    return 0;
}

void
checkpoint__mark_abouts(struct pass *pass, uint64_t log)
{
    struct checkpointer *owner = pass->owner;
    struct durable *durable = pass->durable;
    struct wal_stats stats;
    struct about *about;
    uint32_t serial = 0;
    bool any = false;
    if (durable->abouts == NULL) {
        return;
    }
    wal_stats(durable->wal, &stats);
    owner->about_budget += (stats.bytes - owner->about_logged) / LOG_SHARE;
    owner->about_logged = stats.bytes;
    if (owner->about_log == 0) {
        owner->about_log = durable->manifest.log_number;
    }
    mutex_lock(&durable->edit_lock);
    while ((about = abouts_next(durable->abouts, &serial)) != NULL) {
        about_copy_mark(about, log, owner->about_log);
        any = true;
    }
    mutex_unlock(&durable->edit_lock);
    owner->about_log = log;
    if (any) {
        qsbr_wait(durable->qsbr);
    }
}

void
checkpoint__end_abouts(struct pass *pass, bool is_durable)
{
    struct durable *durable = pass->durable;
    struct about *about;
    uint32_t serial = 0;
    if (durable->abouts == NULL) {
        return;
    }
    mutex_lock(&durable->edit_lock);
    while ((about = abouts_next(durable->abouts, &serial)) != NULL) {
        about_copy_end(about, is_durable);
        about_tend(about);
    }
    mutex_unlock(&durable->edit_lock);
}

static int
drop(struct pass *pass, const struct column *column, uint64_t first,
    uint64_t last)
{
    struct op op = {.kind = OP_DROP,
        .entry = {.counter = column->counter,
            .shard = (uint16_t)pass->durable->manifest.shards,
            .first_row = first,
            .last_row = last}};
    return first > last ? 0 : checkpoint__add(pass, &op);
}

/* Appends an image; n_columns of its columns are set, under any number. */
static int
put(struct pass *pass, const struct column *column, struct image *image)
{
    struct images_entry entry = {.counter = column->counter,
        .shard = (uint16_t)pass->durable->manifest.shards,
        .history = pass->durable->history,
        .seq = pass->about_seq,
        .first_row = image->first_row,
        .last_row = image->last_row,
        .n = image->n};
    struct op op = {.kind = OP_ADD, .entry = entry};
    image->counter = entry.counter;
    image->shard = entry.shard;
    image->counter_serial = column->serial;
    image->history = entry.history;
    image->seq = entry.seq;
    for (unsigned i = 0; i < image->n_columns; i++) {
        image->column[i] = (uint8_t)i;
        image->serial[i] = column->serial;
    }
    op.entry.offset = pass->block.len;
    int err = image_encode(image, &pass->block);
    if (err != 0) {
        return err;
    }
    op.entry.len = (uint32_t)(pass->block.len - op.entry.offset);
    pass->n_images++;
    /* what it has in it was logged by now */
    uint64_t seq = durable_touched(pass->durable);
    pass->seq = pass->seq < seq ? seq : pass->seq;
    return checkpoint__add(pass, &op);
}

/* The image of a column's head. Of a table that is not written it tells the
 * members that its last image has: a start counts the others when it finds them
 * in the log. */
static int
put_head(struct pass *pass, const struct checkpoint_abouts *it,
    const struct column *column)
{
    uint64_t number[1 + DURABLE_ABOUT_HEAD_COLUMNS][1 + ABOUT_TABLES_MAX];
    uint64_t row = durable_about_head_row(column->slot);
    struct image image = {.first_row = row,
        .last_row = durable_about_last_row(column->slot),
        .n_columns = DURABLE_ABOUT_HEAD_COLUMNS,
        .n = (uint32_t)column->n + 1,
        .row = number[DURABLE_ABOUT_HEAD_COLUMNS]};
    for (unsigned i = 0; i < DURABLE_ABOUT_HEAD_COLUMNS; i++) {
        image.code[i] = number[i];
        number[i][0] = 0;
    }
    number[0][0] = column->above;
    number[1][0] = column->lines;
    for (unsigned i = 0; i <= column->n; i++) {
        number[DURABLE_ABOUT_HEAD_COLUMNS][i] = row + i;
    }
    for (unsigned i = 0; i < column->n; i++) {
        const struct table *table = &it->table[column->first + i];
        number[0][1 + i] = table->part.number;
        number[1][1 + i] = table->part.first;
        number[2][1 + i] =
            table->is_chosen ? table->part.n_new : table->part.n_imaged;
        number[3][1 + i] = table->part.n_closed;
    }
    return put(pass, column, &image);
}

static int
by_place(const void *a, const void *b)
{
    uint64_t x = ((const struct about_part *)a)->number % DURABLE_ABOUT_HEAD;
    uint64_t y = ((const struct about_part *)b)->number % DURABLE_ABOUT_HEAD;
    return x < y ? -1 : x > y;
}

/* Drops the images of tables that have gone. */
static int
drop_gone(struct pass *pass, struct checkpoint_abouts *it,
    const struct column *column, unsigned n)
{
    uint64_t from = durable_about_row(column->slot, 0, 0);
    int err = 0;
    qsort(it->part, n, sizeof *it->part, by_place);
    for (unsigned i = 0; i < n && err == 0; i++) {
        uint64_t row = durable_about_row(column->slot, it->part[i].number, 0);
        if (row > from) {
            err = drop(pass, column, from, row - 1);
        }
        from = row + (UINT64_C(1) << DURABLE_ABOUT_TABLE_SHIFT);
    }
    return err == 0
        ? drop(pass, column, from, durable_about_head_row(column->slot) - 1)
        : err;
}

/* Lists the tables of a column. */
static int
list_tables(
    struct pass *pass, struct checkpoint_abouts *it, struct column *column)
{
    struct durable *durable = pass->durable;
    struct table *more = NULL;
    mutex_lock(&durable->edit_lock);
    struct about *about = abouts_find(durable->abouts, column->serial);
    unsigned n = about == NULL ? 0 : about_copy_list(about, it->part);
    if (n > 0) {
        column->above = about_above(about); /* not below what it lists */
        column->lines = about_lines(about);
    }
    mutex_unlock(&durable->edit_lock);
    if (n == 0) {
        return 0;
    }
    more = realloc(it->table, (it->n_tables + n) * sizeof *more);
    if (more == NULL) {
        return ERR_NO_MEMORY;
    }
    column->first = it->n_tables;
    column->n = n;
    for (unsigned i = 0; i < n; i++) {
        more[it->n_tables++] =
            (struct table){.column = column, .part = it->part[i]};
    }
    it->table = more;
    return drop_gone(pass, it, column, n);
}

/* One block of a table's lines. */
static int
take_lines(struct pass *pass, struct checkpoint_abouts *it,
    const struct table *table, uint64_t from, uint32_t n)
{
    struct durable *durable = pass->durable;
    uint64_t row =
        durable_about_row(table->column->slot, table->part.number, from);
    struct image image = {.first_row = row,
        .last_row = row + n - 1,
        .n_columns = ABOUT_LINE_WORDS,
        .row = it->line};
    mutex_lock(&durable->edit_lock); /* first: its owner waits for readers */
    qsbr_online(durable->qsbr, &it->reader);
    const struct about *about =
        abouts_find(durable->abouts, table->column->serial);
    if (about != NULL) {
        image.n = about_copy_lines(
            about, table->part.number, from, n, it->line, it->code);
    }
    qsbr_offline(&it->reader);
    mutex_unlock(&durable->edit_lock);
    for (uint32_t i = 0; i < image.n; i++) {
        it->line[i] += row - from;
    }
    for (unsigned w = 0; w < ABOUT_LINE_WORDS; w++) {
        image.code[w] = it->code[w];
    }
    return image.n == 0 ? drop(pass, table->column, row, image.last_row)
                        : put(pass, table->column, &image);
}

static int
take_table(
    struct pass *pass, struct checkpoint_abouts *it, const struct table *table)
{
    struct durable *durable = pass->durable;
    int err = 0;
    for (uint64_t from = 0; from < table->column->lines && err == 0;
         from += BLOCK_LINES) {
        uint64_t left = table->column->lines - from;
        err = take_lines(pass, it, table, from,
            left < BLOCK_LINES ? (uint32_t)left : BLOCK_LINES);
        if (err == 0 && pass->block.len >= pass->step_bytes) {
            err = checkpoint__step(pass);
        }
        if (err == 0 && checkpoint__is_stopping(pass)) {
            err = ERR_CLOSED;
        }
        checkpoint__rest(pass);
    }
    if (err == 0) {
        mutex_lock(&durable->edit_lock);
        struct about *about =
            abouts_find(durable->abouts, table->column->serial);
        if (about != NULL) {
            about_copy_note(about, table->part.number);
        }
        mutex_unlock(&durable->edit_lock);
    }
    return err;
}

/* The changed table whose log begins first; NULL: there is none. */
static struct table *
oldest(const struct checkpoint_abouts *it)
{
    struct table *oldest = NULL;
    for (size_t i = 0; i < it->n_tables; i++) {
        struct table *table = &it->table[i];
        if (table->part.is_changed &&
            (oldest == NULL || table->part.log_from < oldest->part.log_from)) {
            oldest = table;
        }
    }
    return oldest;
}

static uint64_t
bytes_of(const struct table *table)
{
    return table->column->lines * ABOUT_LINE_BYTES;
}

/* Chooses the tables that are written: as many as may be. */
static void
choose_tables(const struct pass *pass, struct checkpoint_abouts *it)
{
    const struct checkpointer *owner = pass->owner;
    bool takes_all = owner->is_asked || owner->n_missing > 0 ||
        owner->wants_all_abouts || checkpoint__is_filling(owner);
    uint64_t budget = owner->about_budget;
    struct table *table;
    for (size_t i = 0; i < it->n_tables; i++) {
        it->table[i].part.is_changed |= owner->wants_all_abouts;
    }
    while ((table = oldest(it)) != NULL) {
        uint64_t bytes = bytes_of(table);
        if (!takes_all && bytes > budget) {
            break;
        }
        table->is_chosen = true;
        table->part.is_changed = false;
        budget -= bytes < budget ? bytes : budget;
    }
}

/* Heads, and the tables that were chosen; *log_number becomes what the others
 * need. */
static int
take_tables(
    struct pass *pass, struct checkpoint_abouts *it, uint64_t *log_number)
{
    uint64_t *budget = &pass->owner->about_budget;
    int err = 0;
    for (size_t i = 0; i < it->n_columns && err == 0; i++) {
        if (it->column[i].n > 0) {
            err = put_head(pass, it, &it->column[i]);
        }
    }
    for (size_t i = 0; i < it->n_tables && err == 0; i++) {
        if (it->table[i].is_chosen) {
            uint64_t bytes = bytes_of(&it->table[i]);
            err = take_table(pass, it, &it->table[i]);
            *budget -= bytes < *budget ? bytes : *budget;
        }
    }
    const struct table *table = oldest(it);
    if (table != NULL && table->part.log_from < *log_number) {
        *log_number = table->part.log_from;
    }
    pass->owner->wants_all_abouts &= err != 0;
    return err;
}

static int
make_room(struct checkpoint_abouts *it)
{
    it->part = calloc(ABOUT_TABLES_MAX, sizeof *it->part);
    it->numbers = calloc(
        (size_t)BLOCK_LINES * (1 + ABOUT_LINE_WORDS), sizeof *it->numbers);
    it->line = it->numbers;
    for (size_t w = 0; w < ABOUT_LINE_WORDS && it->numbers != NULL; w++) {
        it->code[w] = it->numbers + (w + 1) * BLOCK_LINES;
    }
    return it->part == NULL || it->numbers == NULL ? ERR_NO_MEMORY : 0;
}

/* Notes the slots that have images of tables. */
struct gone {
    uint32_t shards;
    bool has[SCHEMA_COUNTERS_MAX][SCHEMA_COLUMNS_MAX];
};

static void
note_images(void *context, const struct images_entry *entry)
{
    struct gone *gone = context;
    if (entry->shard == gone->shards) {
        gone->has[entry->counter]
                 [entry->first_row >> DURABLE_ABOUT_SLOT_SHIFT &
                     (SCHEMA_COLUMNS_MAX - 1)] = true;
    }
}

/* Drops the images of columns that have gone. */
static int
drop_gone_columns(struct pass *pass, const struct checkpoint_abouts *it)
{
    struct gone gone = {.shards = pass->durable->manifest.shards};
    int err = 0;
    images_each(&pass->durable->manifest.images, note_images, &gone);
    for (size_t i = 0; i < it->n_columns; i++) {
        gone.has[it->column[i].counter][it->column[i].slot] = false;
    }
    for (unsigned counter = 0; counter < SCHEMA_COUNTERS_MAX; counter++) {
        for (unsigned slot = 0; slot < SCHEMA_COLUMNS_MAX; slot++) {
            const struct column column = {
                .counter = (uint8_t)counter, .slot = (uint8_t)slot};
            if (gone.has[counter][slot] && err == 0) {
                err = drop(pass, &column, durable_about_row(slot, 0, 0),
                    durable_about_last_row(slot));
            }
        }
    }
    return err;
}

/* True where images, or what is to become of them, have the column's head. */
static bool
has_head(struct pass *pass, const struct column *column)
{
    const struct manifest *manifest = &pass->durable->manifest;
    uint64_t row = durable_about_head_row(column->slot);
    uint16_t shard = (uint16_t)manifest->shards;
    for (size_t i = 0; i < pass->n_ops; i++) {
        const struct images_entry *entry = &pass->op[i].entry;
        if (pass->op[i].kind == OP_ADD && entry->counter == column->counter &&
            entry->shard == shard && entry->first_row == row) {
            return true;
        }
    }
    const struct images_entry *found =
        images_find(&manifest->images, column->counter, shard, row);
    struct image image; /* it may be that of a column that has gone */
    return found != NULL && recover_read(&pass->reader, found, &image) == 0 &&
        image.counter_serial == column->serial;
}

/* True where tables made anew with the column's memory would have another size
 * than they have. */
static bool
has_other_size(struct pass *pass, const struct column *column)
{
    struct durable *durable = pass->durable;
    mutex_lock(&durable->edit_lock);
    const struct schema_counter *counter =
        schema_counter_at(schema_of(pass), column->counter);
    const struct schema_column *it =
        counter == NULL ? NULL : schema_column_of(counter, column->serial);
    const struct about *about = abouts_find(durable->abouts, column->serial);
    bool is_other = it != NULL && about != NULL &&
        about_lines(about) != about_lines_of(it->memory);
    mutex_unlock(&durable->edit_lock);
    return is_other;
}

int
checkpoint__take_heads(struct pass *pass)
{
    struct checkpoint_abouts it = {0};
    if (pass->durable->abouts == NULL) {
        return 0;
    }
    int err = list_columns(pass, &it.column, &it.n_columns);
    for (size_t i = 0; i < it.n_columns && err == 0; i++) {
        struct column *column = &it.column[i];
        if (!has_other_size(pass, column) || has_head(pass, column)) {
            continue;
        }
        if (pass->about_seq == 0) {
            pass->about_seq = durable_applied(pass->durable);
        }
        err = it.part == NULL ? make_room(&it) : 0;
        if (err == 0) {
            err = list_tables(pass, &it, column);
        }
        if (err == 0 && column->n > 0) {
            err = put_head(pass, &it, column);
        }
    }
    free(it.column);
    free(it.table);
    free(it.part);
    free(it.numbers);
    return err;
}

int
checkpoint__take_abouts(struct pass *pass, uint64_t *log_number)
{
    struct durable *durable = pass->durable;
    struct checkpoint_abouts it = {0};
    if (durable->abouts == NULL) {
        return 0;
    }
    int err = list_columns(pass, &it.column, &it.n_columns);
    if (err == 0) {
        err = drop_gone_columns(pass, &it);
    }
    if (err == 0 && it.n_columns > 0) {
        qsbr_register(durable->qsbr, &it.reader);
        err = make_room(&it);
        for (size_t i = 0; i < it.n_columns && err == 0; i++) {
            err = list_tables(pass, &it, &it.column[i]);
        }
        if (err == 0) {
            choose_tables(pass, &it);
            err = take_tables(pass, &it, log_number);
        }
        qsbr_unregister(durable->qsbr, &it.reader);
    }
    free(it.column);
    free(it.table);
    free(it.part);
    free(it.numbers);
    return err;
}
