/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes a range of ids to a segment (tier/states.h).
 *
 *   HOT --copy--> COPIED --merge--> MERGED --sync--> WRITTEN --publish--> COLD
 *    ^              |                 |                 |
 *    +--- failure --+-----------------+-----------------+
 *
 * What is copied is merged twice where the counter has marks with forget=: at
 * first these are looked for and deleted (tier/seal_forget.h), then what is
 * left is copied and written.
 *
 * The segment has all that the engine and the older segments had of the range,
 * each record once (seal_merge__check). Its sequence numbers are not below
 * those that the seal was begun with, nor below those of the segments that it
 * replaces (check_seq).
 *
 * Until it is published nothing has changed for anybody: the engine has the
 * records, and a failure removes the file. Publishing goes shard by shard, each
 * under its lock in one hold: the log's open batch is closed, the shard's map
 * is exchanged, and what the engine has as it was copied goes out of it; what
 * differs by now stays, and is logged whole, behind that batch. So whatever the
 * log has of these rows up to there is in the segment, and what it has behind
 * needs no look at the segment. On a replica, which logs nothing of its own,
 * the batch is the last one that was applied before the shard was copied.
 *
 * All shards are published under the edit lock, which a checkpoint that copies
 * tables takes too: so no manifest is ever made of tables that have lost their
 * records and of maps that do not have the segment yet. The manifest that names
 * the segment comes later; until then the one before, its images and the log
 * have all that was sealed. */
#include "tier/seal.h"

#include "base/assert.h"
#include "base/err.h"
#include "durable/durable_owner.h"
#include "durable/durable_position.h"
#include "engine/engine_copy.h"
#include "tier/seal_forget.h"
#include "tier/seal_merge.h"
#include "tier/states.h"

#include <stdlib.h>
#include <string.h>

enum {
    LOOK_EVERY = 4096,           /* records between looks at is_stopping */
    RETRY_NS = 10 * 1000 * 1000, /* where an eviction finds no memory */
    WORK_MAGIC = 0x3b60d8e5
};

/* One range on its way. */
struct seal_work {
    uint32_t magic; /* WORK_MAGIC */
    enum seal_state state;
    struct seal *seal;
    struct seal_range range;
    bool is_slow;     /* others are sealed before it ends */
    bool is_replicas; /* begun on a replica, where it is to end */
    struct segment_head head;
    struct engine_rows *rows;      /* owned; a shard each */
    struct segment_map_list *list; /* owned; what covers the range now */
    struct seal_merge merge;
    struct seal_forget *forget;    /* owned; NULL: it is done with */
    struct segment_writer *writer; /* owned; NULL: no record so far */
    struct segment_map_file *file; /* owned reference; NULL: nothing is left */
    struct segment_map_change change;
    uint64_t *seq;  /* owned until the file has it */
    unsigned shard; /* that is being published */
};

static void
move(struct seal_work *work, enum seal_state to)
{
    ASSERT(work->magic == WORK_MAGIC);
    work->state = seal__step(work->state, to);
}

static bool
is_stopping(const struct seal *seal)
{
    /* relaxed: it only has to be seen some time */
    return atomic_load_explicit(seal->is_stopping, memory_order_relaxed);
}

/* What a file's head says of the counter as it is now, its columns by slot;
 * false where there is none. One with cold=never, whose records may be in no
 * file, has come to the slot since somebody chose it. */
static bool
describe(const struct seal_work *work, struct segment_head *head)
{
    mutex_assert_held(&work->seal->durable->edit_lock);
    /* relaxed: under edit_lock, like all who store it */
    const struct schema_counter *counter = schema_counter_at(
        atomic_load_explicit(work->seal->schema, memory_order_relaxed),
        work->range.slot);
    *head = (struct segment_head){.epoch = work->seal->epoch};
    if (counter == NULL || counter->cold_is_never) {
        return false;
    }
    head->counter = (uint8_t)work->range.slot;
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
    ASSERT(head->n_columns == counter->n_columns);
    return true;
}

/* The file's head; ERR_GONE where there is no counter. One without columns has
 * records all the same, of columns that it had: they go out, and there is no
 * file. */
static int
take_counter(struct seal_work *work)
{
    struct durable *durable = work->seal->durable;
    mutex_lock(&durable->edit_lock);
    bool is_there = describe(work, &work->head);
    work->is_replicas = durable_is_replica(durable);
    uint64_t seq = durable_applied(durable);
    work->head.seq = work->is_replicas && seq > 0 ? seq - 1 : seq;
    mutex_unlock(&durable->edit_lock);
    return is_there ? 0 : ERR_GONE;
}

/* True where the counter has other columns by now. */
static bool
has_changed(const struct seal_work *work)
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
copy_rows(struct seal_work *work)
{
    struct seal *seal = work->seal;
    const struct seal_range *range = &work->range;
    unsigned n = seal->n_shards;
    ASSERT(work->rows == NULL && work->list == NULL);
    work->range.n_rows = 0;
    work->range.unreadable = 0;
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
        const struct engine_rows *rows = &work->rows[shard];
        ASSERT(rows->n == 0 ||
            (rows->row[0] >= range->first_id / n &&
                rows->row[rows->n - 1] <= range->last_id / n));
        work->range.n_rows += rows->n;
        if (is_stopping(seal)) {
            return ERR_CLOSED;
        }
    }
    return segment_map_list(seal->segment_map, range->slot, range->first_id,
        range->last_id, &work->list);
}

/* Notes which segment could not be read, where that is what has failed; the
 * error of that. The log has the place in it. */
static int
note_unreadable(struct seal_work *work, int err)
{
    const struct seal_merge *merge = &work->merge;
    const struct segment_map_list *list = merge->list;
    if (err == 0 || err == ERR_NO_MEMORY) {
        return err;
    }
    ASSERT(list != NULL && merge->at_entry < list->n);
    const struct segment *segment = list->entry[merge->at_entry].file->segment;
    work->range.unreadable = segment_head(segment)->number;
    fetch_count_fault(work->seal->fetch, err);
    return err == ERR_CORRUPT || err == ERR_NEWER_FORMAT ? ERR_CORRUPT
                                                         : ERR_COLD_READ;
}

/* Begins the file, with the first record. */
static int
begin_file(struct seal_work *work)
{
    struct seal *seal = work->seal;
    const struct segment_write_config config = {.disk = seal->durable->disk,
        .logger = seal->durable->config.logger,
        .codec = seal->codec,
        .level = seal->level};
    int err = durable_may_write(seal->durable);
    if (err != 0) {
        return err;
    }
    ASSERT(work->head.counter == work->range.slot && work->head.number == 0);
    work->head.number = durable_next_segment(seal->durable);
    if (work->is_slow) {
        durable_spare_segment(seal->durable, work->head.number);
    }
    return segment_write_begin(&config, &work->head, &work->writer);
}

/* Begins with what has been copied. */
static int
begin_merge(struct seal_work *work)
{
    work->merge = (struct seal_merge){.engine = work->seal->engine,
        .rows = work->rows,
        .list = work->list,
        .head = &work->head};
    return seal_merge_init(&work->merge, work->seal->n_shards);
}

/* Gives up what has been copied. */
static void
drop_rows(struct seal_work *work)
{
    seal_merge_fini(&work->merge);
    for (unsigned i = 0; work->rows != NULL && i < work->seal->n_shards; i++) {
        engine_rows_fini(&work->rows[i]);
    }
    free(work->rows);
    segment_map_list_destroy(work->list);
    work->rows = NULL;
    work->list = NULL;
}

/* All has been looked at for marks: begins anew, with another copy if any has
 * been taken out. */
static int
end_forget(struct seal_work *work)
{
    uint64_t n = work->forget->n_forgotten;
    int err = 0;
    seal_forget_end(&work->forget);
    if (n > 0) {
        drop_rows(work);
        err = copy_rows(work);
    } else {
        seal_merge_fini(&work->merge);
    }
    return err == 0 ? begin_merge(work) : err;
}

/* Looks at up to n records for marks that are forgotten. What cannot be read is
 * left to the merge that follows. */
static int
step_forget(struct seal_work *work, uint64_t n)
{
    uint64_t code[SCHEMA_COLUMNS_MAX], id;
    bool is_end = false;
    int err = 0;
    for (uint64_t i = 0; i < n && err == 0 && !is_end; i++) {
        uint64_t n_hot = work->merge.n_hot;
        err = seal_merge_next(&work->merge, &id, code, &is_end);
        if (err == 0 && !is_end) {
            seal_forget_look(work->forget, &work->merge, id, code,
                work->merge.n_hot > n_hot);
        }
    }
    seal_forget_flush(work->forget);
    err = err != 0 || is_end ? end_forget(work) : 0;
    return err == 0 && is_stopping(work->seal) ? ERR_CLOSED : err;
}

int
seal_step(struct seal_work *work, uint64_t n, bool *is_end)
{
    uint64_t code[SCHEMA_COLUMNS_MAX], id;
    ASSERT(work->magic == WORK_MAGIC && work->state == SEAL_COPIED);
    *is_end = false;
    if (work->forget != NULL) {
        return step_forget(work, n);
    }
    for (uint64_t i = 0; i < n; i++) {
        int err = seal_merge_next(&work->merge, &id, code, is_end);
        err = note_unreadable(work, err);
        if (err == 0 && *is_end) {
            seal_merge__check(&work->merge, work->range.n_rows);
            move(work, SEAL_MERGED);
        }
        if (err != 0 || *is_end) {
            return err;
        }
        ASSERT(id >= work->range.first_id && id <= work->range.last_id);
        if (work->writer == NULL) {
            err = begin_file(work);
        }
        if (err == 0) {
            err = segment_write_add(work->writer, id, code);
        }
        if (err != 0) {
            return err;
        }
    }
    return is_stopping(work->seal) ? ERR_CLOSED : 0;
}

/* Opens the file that has been written. */
static int
open_file(struct seal_work *work)
{
    struct durable *durable = work->seal->durable;
    const struct segment_config config = {.disk = durable->disk,
        .is_direct = durable->config.cold_io == COLD_IO_DIRECT,
        .logger = durable->config.logger};
    struct segment *segment = NULL;
    int err =
        segment_open(&config, work->head.epoch, work->head.number, &segment);
    if (err != 0) {
        return err;
    }
    work->file =
        segment_map__file_create(segment, work->seq, work->seal->fetch);
    if (work->file == NULL) {
        segment_close(&segment);
        return ERR_NO_MEMORY;
    }
    work->seq = NULL; /* the file's */
    return 0;
}

/* What the head must say of what was merged. */
static void
check_head(const struct seal_work *work)
{
    const struct segment_head *head = &work->head;
    const struct seal_range *range = &work->range;
    ASSERT(head->records == work->merge.n_out && head->records > 0);
    ASSERT(head->first_id <= head->last_id);
    ASSERT(
        head->first_id >= range->first_id && head->last_id <= range->last_id);
}

/* All records have been added. */
static int
end_file(struct seal_work *work)
{
    ASSERT(work->state == SEAL_MERGED && work->file == NULL);
    ASSERT((work->writer == NULL) == (work->merge.n_out == 0));
    if (work->writer == NULL) {
        return 0;
    }
    int err = durable_may_write(work->seal->durable);
    if (err != 0) {
        segment_write_abort(&work->writer);
        return err;
    }
    err = segment_write_end(&work->writer, &work->head);
    if (err != 0) {
        return err;
    }
    check_head(work);
    return open_file(work);
}

/* The sequence of a shard only rises: it is not below that of the beginning,
 * nor below those of the segments that go, as far as this process wrote
 * them. */
static void
check_seq(const struct seal_work *work, uint64_t seq)
{
    const struct segment_map_list *list = work->list;
    ASSERT(seq >= work->head.seq);
    for (size_t i = 0; list != NULL && i < list->n; i++) {
        const struct segment_map_file *file = list->entry[i].file;
        ASSERT(segment_head(file->segment)->epoch != work->seal->epoch ||
            file->seq[work->shard] <= seq);
    }
}

/* Up to which batch the segment has all of the shard that is being published.
 * On a primary what has changed since it was copied is told to the log again,
 * behind the batches up to now. On a replica the log has it already, whole
 * (has_whole_records), from the batch on that was being applied when the shard
 * was copied; but what older segments have stays in it. */
static uint64_t
seq_of_shard(const struct seal_work *work)
{
    const struct segment_map_list *list = work->list;
    uint64_t seq = work->rows[work->shard].position;
    if (!work->is_replicas) {
        return wal_cut(work->seal->durable->wal);
    }
    seq -= seq > 0;
    for (size_t i = 0; list != NULL && i < list->n; i++) {
        uint64_t older = list->entry[i].file->seq[work->shard];
        seq = older > seq ? older : seq;
    }
    return seq;
}

/* The engine's callback. */
static void
publish_shard(void *context)
{
    struct seal_work *work = context;
    ASSERT(work->magic == WORK_MAGIC && work->state == SEAL_WRITTEN);
    engine_assert_held(work->seal->engine, work->shard);
    uint64_t seq = seq_of_shard(work);
    check_seq(work, seq);
    if (work->file != NULL) {
        work->file->seq[work->shard] = seq;
    }
    segment_map__publish(&work->change, work->shard);
}

/* Publishes one shard. Where the ones before have left much to readers, waits
 * until they let go of it; no reader ever waits for edit_lock. Tries until
 * there is memory for it, also at a stop: some shards have been published
 * already, and a manifest must have all or none. */
static void
evict_shard(struct seal_work *work)
{
    struct seal *seal = work->seal;
    engine_drain_excess(seal->engine);
    while (engine_evict(seal->engine, work->range.slot, work->shard,
               &work->rows[work->shard], publish_shard, work) != 0) {
        const struct clock *clock = seal->durable->config.clock;
        clock_sleep_until(clock, clock_now_ns(clock) + RETRY_NS);
    }
}

/* Others may have been sealed since it began: what has been merged must be what
 * covers the range still. 0, ERR_GONE or ERR_NO_MEMORY. */
static int
check_list(const struct seal_work *work)
{
    const struct seal_range *range = &work->range;
    struct segment_map_list *now;
    int err = work->is_slow
        ? segment_map_list(work->seal->segment_map, range->slot,
              range->first_id, range->last_id, &now)
        : 0;
    if (err == 0 && work->is_slow) {
        err = segment_map__map_is_same(work->list, now) ? 0 : ERR_GONE;
        segment_map_list_destroy(now);
    }
    return err;
}

static int
publish(struct seal_work *work)
{
    struct seal *seal = work->seal;
    const struct seal_range *range = &work->range;
    struct segment_map_entry entry = {
        range->first_id, range->last_id, work->file};
    mutex_assert_held(&seal->durable->edit_lock);
    ASSERT((work->file == NULL) == (work->merge.n_out == 0));
    bool is_as_begun = work->is_replicas == durable_is_replica(seal->durable);
    int err = has_changed(work) || !is_as_begun ? ERR_GONE : check_list(work);
    if (err == 0) {
        err =
            segment_map__begin(seal->segment_map, range->slot, range->first_id,
                range->last_id, &entry, work->file != NULL, &work->change);
    }
    if (err != 0) {
        return err;
    }
    for (work->shard = 0; work->shard < seal->n_shards; work->shard++) {
        evict_shard(work);
    }
    move(work, SEAL_COLD);
    return 0;
}

/* A file that was written for nothing. */
static void
remove_file(struct seal_work *work)
{
    char name[SEGMENT_NAME_BYTES];
    struct disk *disk = work->seal->durable->disk;
    if (work->head.n_blocks > 0) {
        segment_name(name, work->head.number, false);
        (void)disk->calls->unlink(disk, name);
    }
}

static void
destroy(struct seal_work **out)
{
    struct seal_work *work = *out;
    *out = NULL;
    segment_write_abort(&work->writer);
    seal_forget_end(&work->forget);
    drop_rows(work);
    free(work->seq);
    if (work->file != NULL) {
        segment_map_file_release(work->file);
    }
    work->magic = 0;
    free(work);
}

void
seal_abort(struct seal_work **work)
{
    if (*work != NULL) {
        move(*work, SEAL_HOT);
        remove_file(*work);
        destroy(work);
    }
}

/* Copies what the engine has; all else comes step by step. */
static int
begin(struct seal_work *work)
{
    unsigned n = work->seal->n_shards;
    work->seq = calloc(n, sizeof *work->seq);
    int err = work->seq == NULL ? ERR_NO_MEMORY : take_counter(work);
    if (err == 0) {
        err = copy_rows(work);
    }
    if (err == 0) {
        err = begin_merge(work);
    }
    if (err == 0) {
        move(work, SEAL_COPIED);
    }
    if (err == 0 && !work->range.is_urgent) {
        seal_forget_begin(
            work->seal, &work->head, work->range.n_rows, &work->forget);
    }
    return err;
}

/* Gives up a range that could not be sealed. A stop is no failure, nor that
 * columns, or what covers it, have changed meanwhile. */
static void
fail(struct seal_work **work, int err)
{
    bool is_failure = err != ERR_GONE && err != ERR_CLOSED;
    durable_count(&(*work)->seal->stats.seal_failures, is_failure);
    seal_abort(work);
}

int
seal_begin(struct seal *seal, struct seal_range *range, bool is_slow,
    struct seal_work **out)
{
    struct seal_work *work = calloc(1, sizeof *work);
    ASSERT(range->first_id % seal->n_shards == 0);
    ASSERT((range->last_id + 1) % seal->n_shards == 0);
    ASSERT(range->first_id <= range->last_id &&
        range->slot < SCHEMA_COUNTERS_MAX);
    *out = NULL;
    range->unreadable = 0;
    if (work == NULL) {
        durable_count(&seal->stats.seal_failures, 1);
        return ERR_NO_MEMORY;
    }
    work->magic = WORK_MAGIC;
    work->seal = seal;
    work->range = *range;
    work->is_slow = is_slow;
    int err = begin(work);
    range->n_rows = work->range.n_rows;
    if (err != 0) {
        fail(&work, err);
    }
    *out = work;
    return err;
}

int
seal_end(struct seal_work **out)
{
    struct seal_work *work = *out;
    struct seal *seal = work->seal;
    int err = end_file(work);
    if (err == 0) {
        move(work, SEAL_WRITTEN);
        mutex_lock(&seal->durable->edit_lock);
        err = publish(work);
        mutex_unlock(&seal->durable->edit_lock);
    }
    if (err != 0) {
        fail(out, err);
        return err;
    }
    segment_map__end(&work->change);
    durable_count(&seal->stats.seals, 1);
    durable_count(&seal->stats.seal_records, work->head.records);
    durable_count(&seal->stats.seal_hot_records, work->merge.n_hot);
    if (work->head.n_blocks > 0) {
        durable_count(
            &seal->stats.seal_bytes, segment_file_bytes(&work->head));
    }
    destroy(out);
    return 0;
}

int
seal_run(struct seal *seal, struct seal_range *range)
{
    struct seal_work *work;
    bool is_end = false;
    /* relaxed, both times: a figure */
    atomic_store_explicit(&seal->is_running, true, memory_order_relaxed);
    int err = seal_begin(seal, range, false, &work);
    while (err == 0 && !is_end) {
        err = seal_step(work, LOOK_EVERY, &is_end);
        range->n_rows = work->range.n_rows;
        if (err != 0) {
            range->unreadable = work->range.unreadable;
            fail(&work, err);
        }
    }
    err = err == 0 ? seal_end(&work) : err;
    atomic_store_explicit(&seal->is_running, false, memory_order_relaxed);
    return err;
}
