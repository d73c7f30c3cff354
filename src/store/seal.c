/* SPDX-License-Identifier: BSD-3-Clause */
/* One range of ids becomes a segment.
 *
 *   hot ---copy---> copied ---write, sync---> written ---publish---> cold
 *    ^                 |                         |
 *    +---- failure ----+-------------------------+
 *
 * Until it is published nothing has changed for anybody: the engine has the
 * records, and the file is removed if it does not come to that. Publishing goes
 * shard by shard, each under its lock in one hold: the log's open batch is
 * closed, the shard's map is exchanged, and what the engine has as it was
 * copied goes out of it; what differs by now stays, and is logged whole, behind
 * that batch. So whatever the log has of these rows up to there is in the
 * segment, and what it has behind needs no look at the segment.
 *
 * All shards are published under the edit lock, which whoever copies tables for
 * a checkpoint takes too: so no manifest is ever made of tables that have lost
 * their records and of maps that do not have the segment yet. The manifest that
 * names the segment comes later; until then the one before, its images and the
 * log have all that was sealed. */
#include "store/seal.h"

#include "base/assert.h"
#include "base/err.h"
#include "engine/engine_copy.h"
#include "store/seal_merge.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    LOOK_EVERY = 4096,          /* records between looks at is_stopping */
    RETRY_NS = 10 * 1000 * 1000 /* where an eviction finds no memory */
};

/* One range on its way. */
struct work {
    struct seal *seal;
    struct seal_range *range;
    struct segment_head head;
    struct engine_rows *rows; /* owned; a shard each */
    struct covers_map *list;  /* owned; what covers the range now */
    struct covers_file *file; /* owned reference; NULL: nothing is left */
    struct covers_change change;
    uint64_t *seq;  /* owned until the file has it */
    unsigned shard; /* that is being published */
};

static bool
is_stopping(const struct seal *seal)
{
    /* relaxed: it only has to be seen some time */
    return atomic_load_explicit(seal->is_stopping, memory_order_relaxed);
}

/* What a file's head says of the counter as it is now, its columns by slot;
 * false where there is none. Under edit_lock. */
static bool
describe(const struct work *work, struct segment_head *head)
{
    /* relaxed: under edit_lock, like all who store it */
    const struct schema_counter *counter = schema_counter_at(
        atomic_load_explicit(work->seal->schema, memory_order_relaxed),
        work->range->slot);
    *head = (struct segment_head){.epoch = work->seal->epoch};
    if (counter == NULL) {
        return false;
    }
    head->counter = (uint8_t)work->range->slot;
    head->counter_serial = counter->serial;
    for (unsigned slot = 0; slot < SCHEMA_COLUMNS_MAX; slot++) {
        for (unsigned i = 0; i < counter->n_columns; i++) {
            const struct schema_column *column = &counter->column[i];
            if (column->slot == slot) {
                head->column[head->n_columns++] = (struct segment_column){
                    column->serial, column->slot, column->default_value};
            }
        }
    }
    return true;
}

/* The file's head; ERR_GONE where there is no counter. One without columns has
 * records all the same, of columns that it had: they go out, and there is no
 * file. */
static int
take_counter(struct work *work)
{
    struct durable *durable = work->seal->durable;
    pthread_mutex_lock(&durable->edit_lock);
    bool is_there = describe(work, &work->head);
    work->head.seq = wal_last(durable->wal);
    pthread_mutex_unlock(&durable->edit_lock);
    return is_there ? 0 : ERR_GONE;
}

/* True where the counter has other columns by now. Under edit_lock. */
static bool
has_changed(const struct work *work)
{
    const struct segment_head *head = &work->head;
    struct segment_head now;
    bool same = describe(work, &now) &&
        now.counter_serial == head->counter_serial &&
        now.n_columns == head->n_columns;
    for (unsigned c = 0; same && c < now.n_columns; c++) {
        same = now.column[c].serial == head->column[c].serial;
    }
    return !same;
}

static int
copy_rows(struct work *work)
{
    struct seal *seal = work->seal;
    const struct seal_range *range = work->range;
    unsigned n = seal->n_shards;
    work->range->n_rows = 0;
    work->range->unreadable = 0;
    work->rows = calloc(n, sizeof *work->rows);
    if (work->rows == NULL) {
        return ERR_NO_MEMORY;
    }
    for (unsigned shard = 0; shard < n; shard++) {
        int err = engine_copy_range(seal->engine, range->slot, shard,
            range->first_id / n, range->last_id / n, &work->rows[shard]);
        if (err != 0) {
            return err;
        }
        work->range->n_rows += work->rows[shard].n;
        if (is_stopping(seal)) {
            return ERR_CLOSED;
        }
    }
    return covers_list(seal->covers, range->slot, range->first_id,
        range->last_id, &work->list);
}

/* Notes which segment could not be read, where that is what has failed; the
 * error of that. The log has the place in it. */
static int
note_unreadable(struct work *work, const struct seal_merge *merge, int err)
{
    const struct covers_map *list = merge->list;
    if (err == 0 || err == ERR_NO_MEMORY) {
        return err;
    }
    ASSERT(list != NULL && merge->at_entry < list->n);
    const struct segment *segment = list->entry[merge->at_entry].file->segment;
    work->range->unreadable = segment_head(segment)->number;
    fetch_count_fault(work->seal->fetch, err);
    return err == ERR_CORRUPT || err == ERR_NEWER_FORMAT ? ERR_CORRUPT
                                                         : ERR_COLD_READ;
}

/* Adds all records to a file that begins with the first one; NULL in *writer
 * where there is none. */
static int
add_records(struct work *work, struct seal_merge *merge,
    struct segment_writer **writer)
{
    struct seal *seal = work->seal;
    const struct segment_write_config config = {.disk = seal->durable->disk,
        .logger = seal->durable->config.logger,
        .codec = seal->codec,
        .level = seal->level};
    uint64_t code[SCHEMA_COLUMNS_MAX], id;
    bool is_end = false;
    int err = 0;
    for (uint64_t n = 1; err == 0; n++) {
        err = seal_merge_next(merge, &id, code, &is_end);
        err = note_unreadable(work, merge, err);
        if (err != 0 || is_end) {
            break;
        }
        if (*writer == NULL) {
            work->head.number = durable_next_segment(seal->durable);
            err = segment_write_begin(&config, &work->head, writer);
        }
        if (err == 0) {
            err = segment_write_add(*writer, id, code);
        }
        if (n % LOOK_EVERY == 0 && is_stopping(seal)) {
            err = err == 0 ? ERR_CLOSED : err;
        }
    }
    return err;
}

/* Opens the file that has been written. */
static int
open_file(struct work *work)
{
    struct durable *durable = work->seal->durable;
    const struct segment_config config = {
        .disk = durable->disk, .logger = durable->config.logger};
    struct segment *segment = NULL;
    int err =
        segment_open(&config, work->head.epoch, work->head.number, &segment);
    if (err != 0) {
        return err;
    }
    work->file = covers_file_create(segment, work->seq, work->seal->fetch);
    if (work->file == NULL) {
        segment_close(&segment);
        return ERR_NO_MEMORY;
    }
    work->seq = NULL; /* the file's */
    return 0;
}

static int
write_file(struct work *work)
{
    struct seal_merge merge = {.engine = work->seal->engine,
        .rows = work->rows,
        .list = work->list,
        .head = &work->head};
    struct segment_writer *writer = NULL;
    int err = seal_merge_init(&merge, work->seal->n_shards);
    if (err == 0) {
        err = add_records(work, &merge, &writer);
    }
    if (err == 0 && writer != NULL) {
        err = segment_write_end(&writer, &work->head);
    }
    if (err == 0 && work->head.n_blocks > 0) {
        err = open_file(work);
    }
    segment_write_abort(&writer);
    if (err == 0) {
        durable_count(&work->seal->stats.seal_hot_records, merge.n_hot);
    }
    seal_merge_fini(&merge);
    return err;
}

/* Under the lock of the shard; the engine's callback. */
static void
publish_shard(void *context)
{
    struct work *work = context;
    uint64_t seq = wal_cut(work->seal->durable->wal);
    if (work->file != NULL) {
        work->file->seq[work->shard] = seq;
    }
    covers_publish(&work->change, work->shard);
}

/* Publishes one shard. Tries until there is memory for it, also at a stop: some
 * shards have been published already, and a manifest must have all or none. */
static void
evict_shard(struct work *work)
{
    struct seal *seal = work->seal;
    while (engine_evict(seal->engine, work->range->slot, work->shard,
               &work->rows[work->shard], publish_shard, work) != 0) {
        struct timespec pause = {.tv_nsec = RETRY_NS};
        (void)nanosleep(&pause, NULL);
    }
}

/* Under edit_lock. */
static int
publish(struct work *work)
{
    struct seal *seal = work->seal;
    const struct seal_range *range = work->range;
    struct covers_entry entry = {range->first_id, range->last_id, work->file};
    int err = has_changed(work) ? ERR_GONE : 0;
    if (err == 0) {
        err = covers_begin(seal->covers, range->slot, range->first_id,
            range->last_id, &entry, work->file != NULL, &work->change);
    }
    if (err != 0) {
        return err;
    }
    for (work->shard = 0; work->shard < seal->n_shards; work->shard++) {
        evict_shard(work);
    }
    return 0;
}

/* A file that was written for nothing. */
static void
remove_file(struct work *work)
{
    char name[SEGMENT_NAME_BYTES];
    struct disk *disk = work->seal->durable->disk;
    if (work->head.n_blocks > 0) {
        segment_name(name, work->head.number, false);
        (void)disk->calls->unlink(disk, name);
    }
}

static void
fini(struct work *work)
{
    for (unsigned i = 0; work->rows != NULL && i < work->seal->n_shards; i++) {
        engine_rows_fini(&work->rows[i]);
    }
    free(work->rows);
    free(work->seq);
    covers_map_destroy(work->list);
    if (work->file != NULL) {
        covers_file_release(work->file);
    }
}

int
seal_run(struct seal *seal, struct seal_range *range)
{
    struct work work = {.seal = seal, .range = range};
    ASSERT(range->first_id % seal->n_shards == 0);
    ASSERT((range->last_id + 1) % seal->n_shards == 0);
    work.seq = calloc(seal->n_shards, sizeof *work.seq);
    int err = work.seq == NULL ? ERR_NO_MEMORY : take_counter(&work);
    if (err == 0) {
        err = copy_rows(&work);
    }
    if (err == 0) {
        err = write_file(&work);
    }
    if (err == 0) {
        pthread_mutex_lock(&seal->durable->edit_lock);
        err = publish(&work);
        pthread_mutex_unlock(&seal->durable->edit_lock);
    }
    if (err == 0) {
        covers_end(&work.change);
        durable_count(&seal->stats.seals, 1);
        durable_count(&seal->stats.seal_records, work.head.records);
        if (work.head.n_blocks > 0) {
            durable_count(
                &seal->stats.seal_bytes, segment_file_bytes(&work.head));
        }
    } else {
        bool is_failure = err != ERR_GONE && err != ERR_CLOSED;
        durable_count(&seal->stats.seal_failures, is_failure);
        remove_file(&work);
    }
    fini(&work);
    return err;
}
