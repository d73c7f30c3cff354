/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes incremental checkpoints.
 *
 * A pass begins a new log file; when it is through, all that the older ones
 * hold is in images, and they go. In between it walks the tables of all
 * counters and shards. One that has changed since its last image is copied,
 * encoded, and appended to a checkpoint file; rows that no table covers take
 * their older images with them. Every STEP_BYTES the file is synced, the log
 * is synced past what the images have in them, and a manifest with them is
 * put in place: a pass that is cut short leaves what it has done, and the log
 * is as long as it was.
 *
 * The map of live images is changed in a copy, which takes the place of the
 * old one when the manifest is durable. Where something fails, the tables of
 * the step count as changed again, and the pass ends; files that a manifest
 * may name, though its writing failed, stay until a later one does not.
 *
 * Segments (durable_segments) enter the manifest with the next step, one that
 * the walk makes or one of its own (checkpointer_want_segments). What a segment
 * covers has left the tables by then, so images must not lose it before the
 * manifest has the segment, nor keep it afterwards:
 *
 *   sealer:  write, sync | edit_lock: shard by shard, out of the tables, and
 *                        |   into what list_fn says
 *   step:    ops         |                         | edit_lock: list_fn, the
 *                                                  |   log synced | manifest
 *
 * Tables are copied under edit_lock too, one at a time. So if some op was
 * gathered from tables that had lost records to a segment, all of that is in
 * what list_fn says at the step; and the last batch at that moment, up to which
 * the log is synced, is behind all that was told of records that stay. Until
 * the manifest is in place nothing is lost, however long that takes (a full
 * disk): the one before names images and log files that have all of it, no log
 * file goes but after a later manifest, and no segment file either.
 *
 * Files of which less than half is live are emptied: their blocks go into the
 * new file as they are. The thread gives way to others: it sleeps as long as
 * it has worked, and its priority is low. */
#include "durable/checkpoint_priv.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/give_way.h"
#include "base/num.h"
#include "durable/durable_commit.h"
#include "durable/durable_owner.h"
#include "durable/durable_position.h"
#include "durable/producers.h"
#include "durable/recover.h"
#include "engine/engine_copy.h"
#include "engine/engine_extents.h"
#include "schema/restore.h"
#include "wal/wal_replica.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define NS_PER_MS UINT64_C(1000000)

enum {
    STEP_BYTES = 8 << 20,       /* of images between two manifests */
    WRITE_BYTES = 256 << 10,    /* of them in one write */
    FILE_BYTES_MAX = 256 << 20, /* of a checkpoint file; then the next one */
    LOOK_NS = 10 * 1000 * 1000  /* between looks at what is applied */
};

bool
checkpoint__is_stopping(const struct pass *pass)
{
    struct checkpointer *owner = pass->owner;
    mutex_lock(&owner->lock);
    bool stopping = owner->stopping && !owner->is_urgent;
    mutex_unlock(&owner->lock);
    return stopping;
}

/* Sleeps for as long as it has worked, unless changes are refused meanwhile.
 * By the system's clock, whatever the store's is: it is for the sake of those
 * who share the machine. */
void
checkpoint__rest(struct pass *pass)
{
    struct checkpointer *owner = pass->owner;
    uint64_t now_ns = clock_monotonic_ns();
    if (now_ns - pass->rested_ns < NS_PER_MS || pass->durable->is_refusing) {
        return;
    }
    checkpoint__look_at_owner_soon(owner);
    uint64_t until_ns = now_ns + (now_ns - pass->rested_ns);
    mutex_lock(&owner->lock);
    while (!owner->is_urgent && !owner->stopping &&
        clock_cond_wait(
            &clock_system, &owner->changed, &owner->lock, until_ns)) {
    }
    mutex_unlock(&owner->lock);
    pass->rested_ns = clock_monotonic_ns();
}

int
checkpoint__add(struct pass *pass, const struct op *op)
{
    ASSERT(op->entry.first_row <= op->entry.last_row);
    /* one beyond: tables of members=about */
    ASSERT(op->entry.shard <= 2 * pass->durable->manifest.shards);
    /* its block was gathered just now */
    ASSERT(op->kind == OP_DROP ||
        op->entry.offset + op->entry.len == pass->block.len);
    ASSERT(pass->n_ops <= pass->op_capacity);
    if (pass->n_ops == pass->op_capacity) {
        size_t n = pass->op_capacity == 0 ? 64 : 2 * pass->op_capacity;
        struct op *more = realloc(pass->op, n * sizeof *more);
        if (more == NULL) {
            return ERR_NO_MEMORY;
        }
        pass->op = more;
        pass->op_capacity = n;
    }
    pass->op[pass->n_ops++] = *op;
    return 0;
}

static int
drop_rows(struct pass *pass, uint8_t counter, uint16_t shard, uint64_t first,
    uint64_t last)
{
    struct op op = {.kind = OP_DROP,
        .entry = {.counter = counter,
            .shard = shard,
            .first_row = first,
            .last_row = last}};
    return checkpoint__add(pass, &op);
}

static int
begin_file(struct pass *pass)
{
    struct disk *disk = pass->durable->disk;
    struct manifest *manifest = &pass->durable->manifest;
    char name[NAMES_BYTES];
    int error;
    ASSERT(pass->file == 0);
    do {
        pass->file = manifest->next_file++;
        ASSERT(images_file_bytes(&manifest->images, pass->file) == 0);
        names_make(name, NAMES_CHECKPOINT, pass->file);
        error = disk->calls->open(disk, name, DISK_CREATE, &pass->fd);
    } while (error == EEXIST);
    pass->file_bytes = 0;
    if (error != 0) {
        pass->file = 0;
        return checkpoint__log_error(pass, "make a checkpoint file", error);
    }
    return 0;
}

static void
end_file(struct pass *pass)
{
    if (pass->file != 0) {
        pass->durable->disk->calls->close(pass->durable->disk, pass->fd);
        pass->file = 0;
    }
}

/* A piece at a time: copying megabytes into the page cache keeps the core. */
static int
write_pieces(struct pass *pass)
{
    struct disk *disk = pass->durable->disk;
    int error = 0;
    size_t at, len;
    for (at = 0; error == 0 && at < pass->block.len; at += len) {
        size_t left = pass->block.len - at;
        len = left < WRITE_BYTES ? left : WRITE_BYTES;
        error = disk->calls->write(
            disk, pass->fd, pass->block.data + at, len, pass->file_bytes + at);
        give_way();
    }
    ASSERT(error != 0 || at == pass->block.len);
    return error;
}

/* The ops to images of this file, which are behind file_bytes. What was
 * gathered is all of the block, in its order. */
static void
place_ops(struct pass *pass)
{
    uint64_t at = 0;
    for (size_t i = 0; i < pass->n_ops; i++) {
        struct images_entry *entry = &pass->op[i].entry;
        if (pass->op[i].kind == OP_ADD) {
            ASSERT(entry->offset == at);
            at += entry->len;
            entry->file = pass->file;
            entry->offset += pass->file_bytes;
        }
    }
    ASSERT(at == pass->block.len);
}

/* Writes and syncs the images that have been gathered. Offsets in ops are
 * within pass->block until here. */
static int
write_block(struct pass *pass)
{
    struct disk *disk = pass->durable->disk;
    if (pass->block.len == 0) {
        return 0;
    }
    int err = durable_may_write(pass->durable);
    if (err == 0 && pass->file == 0) {
        err = begin_file(pass);
    }
    if (err != 0) {
        return err;
    }
    int error = write_pieces(pass);
    if (error == 0) {
        error = disk->calls->sync(disk, pass->fd);
    }
    /* where that failed, too: images of earlier steps may be in the file */
    own_files_note_open(
        &pass->owner->own[OWN_CHECKPOINTS], disk, pass->file, pass->fd);
    if (error == 0) {
        error = disk->calls->sync_names(disk);
    }
    if (error != 0) {
        return checkpoint__log_error(pass, "write a checkpoint file", error);
    }
    place_ops(pass);
    pass->file_bytes += pass->block.len;
    pass->n_bytes += pass->block.len;
    durable_count(&pass->durable->stats.checkpoint_bytes, pass->block.len);
    buf_clear(&pass->block);
    return 0;
}

/* Adds an image, which then is live as it was written, until a later one of the
 * same step has some of its rows. */
static int
add_image(struct images *images, const struct images_entry *entry)
{
    int err = images_add(images, entry);
    const struct images_entry *found = err != 0
        ? NULL
        : images_find(images, entry->counter, entry->shard, entry->first_row);
    if (err == 0) {
        ASSERT(found != NULL && found->file == entry->file);
        ASSERT(found->offset == entry->offset && found->n == entry->n);
        ASSERT(found->first_row == entry->first_row);
        ASSERT(found->last_row == entry->last_row);
        ASSERT(found->seq == entry->seq && found->len == entry->len);
    }
    return err;
}

/* The images as they will be. */
static int
apply_ops(const struct pass *pass, struct images *out)
{
    int err = images_copy(&pass->durable->manifest.images, out);
    for (size_t i = 0; err == 0 && i < pass->n_ops; i++) {
        const struct images_entry *entry = &pass->op[i].entry;
        err = pass->op[i].kind == OP_ADD
            ? add_image(out, entry)
            : images_drop(out, entry->counter, entry->shard, entry->first_row,
                  entry->last_row);
    }
    if (err != 0) {
        images_fini(out);
    }
    return err;
}

static const struct schema *
schema_of(const struct pass *pass)
{
    mutex_assert_held(&pass->durable->edit_lock);
    /* relaxed: stored under that lock */
    return atomic_load_explicit(pass->owner->schema, memory_order_relaxed);
}

/* What is covered now. */
static int
take_segments(struct pass *pass, struct manifest *next)
{
    struct durable *durable = pass->durable;
    mutex_assert_held(&durable->edit_lock);
    next->segments = (struct segments){.shards = next->shards};
    int err = durable->segment_map == NULL
        ? 0 /* there are none: see recover__segments */
        : durable->segment_map->list_fn(durable->segment_map, &next->segments);
    for (size_t i = 0; i < next->segments.n; i++) {
        struct manifest_segment *segment = &next->segments.segment[i];
        if (segment->history == next->epoch) {
            segment->history = 0; /* older than histories */
        }
    }
    uint64_t last = segments_last_file(&next->segments);
    if (last > next->last_segment) {
        next->last_segment = last;
    }
    return err;
}

/* The counters and handovers as they are now, and up to which batch: one that
 * is closed, so that no later edit comes under its number; and the segments.
 * Counters of pairs are made of their columns again. */
static int
take_schema(struct pass *pass, struct manifest *next)
{
    next->counter = calloc(SCHEMA_COUNTERS_MAX, sizeof(struct schema_counter));
    next->n_counters = 0;
    if (next->counter == NULL) {
        return ERR_NO_MEMORY;
    }
    mutex_lock(&pass->durable->edit_lock);
    const struct schema *schema = schema_of(pass);
    next->schema_seq = durable_applied(pass->durable);
    int err = take_segments(pass, next);
    if (err == 0) {
        err = wal_sync_up_to(pass->durable->wal, next->schema_seq);
    }
    ASSERT(schema_last_serial(schema) >= next->last_serial);
    ASSERT(next->schema_seq >= pass->durable->manifest.schema_seq);
    next->last_serial = schema_last_serial(schema);
    next->handovers = pass->durable->handovers;
    for (unsigned slot = 0; slot < SCHEMA_COUNTERS_MAX; slot++) {
        const struct schema_counter *counter = schema_counter_at(schema, slot);
        if (counter != NULL && counter->members_of == 0) {
            next->counter[next->n_counters++] = *counter;
        }
    }
    mutex_unlock(&pass->durable->edit_lock);
    return err;
}

static int
put_manifest(struct pass *pass, const struct manifest *next)
{
    const struct disk_file *file = &pass->durable->manifest_file;
    int error;
    mutex_assert_held(&pass->durable->manifest_lock);
    int err = durable__put_manifest(pass->durable, next, &error);
    if (err != 0) {
        pass->owner->is_in_doubt = true;
        if (error != 0) {
            (void)checkpoint__log_error(pass, "replace " MANIFEST_NAME, error);
        }
        return err;
    }
    pass->owner->is_in_doubt = false;
    pass->durable->is_history_named = true;
    (void)durable__copy_manifest(pass->durable, next);
    durable_count(&pass->durable->stats.manifests, 1);
    durable_count(&pass->durable->stats.manifest_bytes, file->bytes);
    durable_note(&pass->durable->stats.live_images, next->images.n);
    durable_note(&pass->durable->stats.live_segments, next->segments.n);
    return 0;
}

/* Nothing that a manifest counts goes back. */
static void
expect_later(const struct manifest *now, const struct manifest *next)
{
    ASSERT(next->epoch == now->epoch && next->seed == now->seed);
    ASSERT(next->shards == now->shards);
    ASSERT(next->log_number >= now->log_number);
    ASSERT(next->next_file >= now->next_file);
    ASSERT(next->checkpoint_seq >= now->checkpoint_seq);
    ASSERT(next->last_segment >= now->last_segment);
    ASSERT(next->committed_seq >= now->committed_seq);
    ASSERT(next->terms.n >= now->terms.n);
    ASSERT(next->producers.last_serial >= now->producers.last_serial);
}

/* The same, and takes *next over where that works. */
static int
replace_manifest(struct pass *pass, const struct manifest *next)
{
    struct durable *durable = pass->durable;
    /* a mark may be behind the last batch, and in a file that is complete */
    manifest_verify(next, wal_last(durable->wal) + 1);
    mutex_lock(&durable->manifest_lock);
    expect_later(&durable->manifest, next);
    int err = put_manifest(pass, next);
    if (err == 0) {
        manifest_fini(&durable->manifest);
        durable->manifest = *next;
    }
    mutex_unlock(&durable->manifest_lock);
    return err;
}

/* Who numbers its changes, and what has been seen of that by now. The log is to
 * be synced past all of it: no number may last longer than its change. */
static int
take_producers(struct pass *pass, struct manifest *next)
{
    struct durable *durable = pass->durable;
    int err =
        producers__list(durable->producers, durable->engine, &next->producers);
    uint64_t last = wal_last(durable->wal);
    pass->seq = pass->seq < last ? last : pass->seq;
    return err;
}

static uint64_t
max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* True where a stop begins, also one that wants a last checkpoint: then nothing
 * is applied any more. */
static bool
is_ending(const struct pass *pass)
{
    struct checkpointer *owner = pass->owner;
    mutex_lock(&owner->lock);
    bool is_ending = owner->stopping;
    mutex_unlock(&owner->lock);
    return is_ending;
}

/* Waits until those who have copies have all up to that batch. A stop does not
 * wait, for nobody will say so any more. Whoever asks for a snapshot gets the
 * one before this step: it may be for the copy that is waited for. */
static int
await_committed(const struct pass *pass, uint64_t seq)
{
    const struct clock *clock = pass->durable->config.clock;
    while (!durable__is_committed(pass->durable, seq)) {
        if (is_ending(pass)) {
            return ERR_CLOSED;
        }
        checkpoint__hand_over_early(pass->owner);
        clock_sleep_until(clock, clock_now_ns(clock) + LOOK_NS);
    }
    return 0;
}

/* Waits until all that the manifest says is durable, and committed where others
 * have copies: what is in a manifest cannot be cut off the log any more. */
static int
settle(const struct pass *pass, struct manifest *next)
{
    uint64_t seq =
        max_u64(pass->seq, max_u64(next->schema_seq, next->checkpoint_seq));
    seq = max_u64(seq, segments_last_seq(&next->segments));
    int err = wal_sync_up_to(pass->durable->wal, seq);
    if (err == 0) {
        err = await_committed(pass, seq);
    }
    if (err == 0 && next->terms.n > 0) {
        next->committed_seq = max_u64(next->committed_seq, seq);
    }
    return err;
}

/* The manifest as it will be: with the images so far, and what is covered now.
 * done: what else becomes so with it, of a pass that is through; NULL: it is
 * not. All that it says is durable then. *next is the caller's, whatever is
 * returned. */
static int
make_next(struct pass *pass, const struct manifest *done,
    struct manifest *next, size_t *n_cut)
{
    *next = pass->durable->manifest;
    next->counter = NULL;
    next->images = (struct images){0};
    next->segments = (struct segments){0};
    next->producers = (struct producers_list){0};
    next->histories = (struct histories){0};
    if (done != NULL) {
        next->log_number = done->log_number;
        next->checkpoint_seq = done->checkpoint_seq;
        next->checkpoint_time = done->checkpoint_time;
    }
    /* before any number is asked for: what is of a later term is in none */
    wal_terms(pass->durable->wal, &next->terms);
    int err =
        histories_copy(&pass->durable->manifest.histories, &next->histories);
    histories_forget(&next->histories, next->log_number);
    if (err == 0) {
        err = take_producers(pass, next);
    }
    if (err == 0) {
        err = take_schema(pass, next);
    }
    if (err == 0) {
        err = apply_ops(pass, &next->images);
    }
    if (err == 0) {
        err = manifest_drop_gone(next);
    }
    if (err == 0) {
        err = manifest_cut_images(next, n_cut);
    }
    return err == 0 ? settle(pass, next) : err;
}

/* A manifest with the images so far; done: see make_next. */
static int
step(struct pass *pass, const struct manifest *done)
{
    struct manifest next = {0};
    size_t n_cut = 0;
    checkpoint__take_publish(pass);
    int err = checkpoint__take_heads(pass);
    if (err == 0) {
        err = write_block(pass);
    }
    if (err == 0) {
        err = make_next(pass, done, &next, &n_cut);
    }
    if (err == 0) {
        err = replace_manifest(pass, &next);
    }
    if (err != 0) {
        manifest_fini(&next);
        checkpoint__keep_publish(pass);
        checkpoint__hand_over(pass->owner, err);
        return err;
    }
    ASSERT(pass->block.len == 0);
    durable_count(&pass->durable->stats.cut_images, n_cut);
    pass->n_ops = 0;
    if (pass->is_publish_wanted) {
        checkpoint__remove_dead(pass); /* segments that have been replaced */
        checkpoint__answer(pass->publish, 0);
        pass->publish = NULL;
    }
    if (pass->file_bytes >= pass->file_bytes_max) {
        end_file(pass);
    }
    checkpoint__hand_over(pass->owner, 0);
    return 0;
}

int
checkpoint__step(struct pass *pass)
{
    return step(pass, NULL);
}

/* What the block says of itself, which is at the end of what was gathered, is
 * what the manifest will say, and of the rows that were copied. */
static void
expect_written(const struct pass *pass, const struct images_entry *entry,
    const struct image *image)
{
    struct image head;
    bool is_head = image_head(
        (const uint8_t *)pass->block.data + entry->offset, entry->len, &head);
    ASSERT(is_head && recover_agrees(entry, &head));
    ASSERT(head.first_row == entry->first_row);
    ASSERT(head.last_row == entry->last_row);
    ASSERT(head.counter_serial == image->counter_serial);
    ASSERT(head.n_columns == image->n_columns);
    ASSERT(image->n == 0 || image->row[0] >= entry->first_row);
    ASSERT(image->n == 0 || image->row[image->n - 1] <= entry->last_row);
}

/* Takes some of the copied rows, those from number `at` on, as an image of
 * rows first..last. All of the batches before their position is in it; of that
 * one, which may still be open, perhaps not all. */
static int
take_piece(struct pass *pass, const struct images_entry *piece, size_t at,
    uint32_t counter_serial)
{
    const struct engine_rows *rows = &pass->rows;
    ASSERT(at + piece->n <= rows->n);
    ASSERT(piece->seq <= pass->seq);
    struct image image = {.counter = piece->counter,
        .history = piece->history,
        .shard = piece->shard,
        .counter_serial = counter_serial,
        .seq = piece->seq,
        .first_row = piece->first_row,
        .last_row = piece->last_row,
        .n_columns = rows->n_columns,
        .n = piece->n,
        .row = rows->row + at};
    for (unsigned i = 0; i < rows->n_columns; i++) {
        image.column[i] = rows->column[i];
        image.serial[i] = rows->serial[i];
        image.code[i] = rows->code[i] + at;
    }
    struct op op = {.kind = OP_ADD, .is_copied = true, .entry = *piece};
    op.entry.offset = pass->block.len;
    int err = image_encode(&image, &pass->block);
    if (err != 0) {
        return err;
    }
    op.entry.len = (uint32_t)(pass->block.len - op.entry.offset);
    expect_written(pass, &op.entry, &image);
    pass->n_images++;
    pass->n_records += piece->n;
    return checkpoint__add(pass, &op);
}

/* Takes all copied rows: one image, unless they are very many. */
static int
take_image(
    struct pass *pass, uint8_t slot, uint16_t shard, uint32_t counter_serial)
{
    const struct engine_rows *rows = &pass->rows;
    struct images_entry piece = {.counter = slot,
        .history = pass->durable->history,
        .shard = shard,
        .first_row = rows->first_row,
        .seq = rows->position == 0 ? 0 : rows->position - 1};
    size_t at = 0;
    int err = 0;
    if (pass->seq < rows->position) {
        pass->seq = rows->position;
    }
    do {
        size_t left = rows->n - at;
        bool is_last = left <= IMAGE_RECORDS_MAX;
        piece.n = is_last ? (uint32_t)left : IMAGE_RECORDS_MAX;
        piece.last_row =
            is_last ? rows->last_row : rows->row[at + piece.n] - 1;
        err = take_piece(pass, &piece, at, counter_serial);
        at += piece.n;
        ASSERT(piece.first_row <= piece.last_row);
        piece.first_row = piece.last_row + 1;
    } while (err == 0 && at < rows->n);
    /* all of it, no record twice */
    ASSERT(err != 0 || at == rows->n);
    ASSERT(err != 0 || piece.last_row == rows->last_row);
    return err;
}

/* The table that has rows from *row on; *row moves behind it. True in *ended
 * where there was none. */
static int
take_table(struct pass *pass, uint8_t slot, uint16_t shard, uint64_t *row,
    bool *ended)
{
    struct durable *durable = pass->durable;
    const struct engine_rows *rows = &pass->rows;
    enum engine_copied copied = ENGINE_COPY_END;
    uint32_t serial = 0;
    mutex_lock(&durable->edit_lock);
    const struct schema_counter *counter =
        schema_counter_at(schema_of(pass), slot);
    int err = 0;
    if (counter != NULL) {
        serial = counter->serial;
        err = engine_copy(
            durable->engine, slot, shard, *row, &pass->rows, &copied);
    }
    mutex_unlock(&durable->edit_lock);
    if (err != 0) {
        return err;
    }
    *ended = copied == ENGINE_COPY_END;
    if (*ended) {
        return drop_rows(pass, slot, shard, *row, UINT64_MAX);
    }
    ASSERT(rows->first_row <= rows->last_row);
    ASSERT(*row <= rows->last_row); /* else it would not end */
    if (rows->first_row > *row) {
        err = drop_rows(pass, slot, shard, *row, rows->first_row - 1);
    }
    if (copied == ENGINE_COPY_DONE) {
        int image_err = err == 0 ? take_image(pass, slot, shard, serial) : err;
        if (image_err != 0) {
            engine_mark(
                durable->engine, slot, shard, rows->first_row, rows->last_row);
            return image_err;
        }
    }
    *ended = rows->last_row == UINT64_MAX;
    *row = rows->last_row + 1;
    return err;
}

/* All tables of one counter in one shard. */
static int
walk(struct pass *pass, uint8_t slot, uint16_t shard)
{
    uint64_t row = 0;
    bool ended = false;
    int err = 0;
    while (err == 0 && !ended) {
        err = take_table(pass, slot, shard, &row, &ended);
        if (err == 0 && pass->block.len >= pass->step_bytes) {
            err = checkpoint__step(pass);
        }
        if (err == 0 && checkpoint__is_stopping(pass)) {
            err = ERR_CLOSED;
        }
        checkpoint__rest(pass);
    }
    return err;
}

/* Tables whose images come to nothing count as changed again. */
static void
undo(struct pass *pass)
{
    for (size_t i = 0; i < pass->n_ops; i++) {
        const struct op *op = &pass->op[i];
        if (op->kind == OP_ADD && op->is_copied) {
            engine_mark(pass->durable->engine, op->entry.counter,
                op->entry.shard, op->entry.first_row, op->entry.last_row);
        }
    }
}

static void
note_slot(void *context, const struct images_entry *entry)
{
    bool *is_used = context;
    is_used[entry->counter] = true;
}

/* The slots that have a counter, or images of one. */
static void
find_slots(struct pass *pass, bool is_used[SCHEMA_COUNTERS_MAX])
{
    memset(is_used, 0, SCHEMA_COUNTERS_MAX * sizeof is_used[0]);
    images_each(&pass->durable->manifest.images, note_slot, is_used);
    mutex_lock(&pass->durable->edit_lock);
    for (unsigned slot = 0; slot < SCHEMA_COUNTERS_MAX; slot++) {
        is_used[slot] |= schema_counter_at(schema_of(pass), slot) != NULL;
    }
    mutex_unlock(&pass->durable->edit_lock);
}

/* Records in memory of the slots. */
static uint64_t
count_all(struct pass *pass, const bool is_used[SCHEMA_COUNTERS_MAX])
{
    uint64_t n = 0;
    for (unsigned slot = 0; slot < SCHEMA_COUNTERS_MAX; slot++) {
        for (unsigned shard = 0;
             is_used[slot] && shard < pass->durable->manifest.shards;
             shard++) {
            n += engine_count(
                pass->durable->engine, slot, shard, 0, UINT64_MAX);
        }
    }
    return n;
}

/* How far it is, for who asks: done of all records. */
static void
note_progress(
    struct pass *pass, uint64_t done, uint64_t all, uint64_t began_ns)
{
    struct durable_stats *stats = &pass->durable->stats;
    uint64_t ms = (clock_monotonic_ns() - began_ns) / NS_PER_MS;
    double share =
        all == 0 ? 0 : (double)(done < all ? done : all) / (double)all;
    durable_note(&stats->checkpoint_percent, (uint64_t)(100 * share));
    durable_note(&stats->checkpoint_left_ms,
        share == 0 ? 0 : (uint64_t)((double)ms / share) - ms);
    durable_note(&stats->checkpoint_all_records, all);
}

static int
walk_all(struct pass *pass)
{
    bool is_used[SCHEMA_COUNTERS_MAX];
    uint64_t began_ns = clock_monotonic_ns(), done = 0;
    int err = 0;
    find_slots(pass, is_used);
    uint64_t all = count_all(pass, is_used);
    note_progress(pass, 0, all, began_ns);
    for (unsigned slot = 0; err == 0 && slot < SCHEMA_COUNTERS_MAX; slot++) {
        for (unsigned shard = 0; is_used[slot] && err == 0 &&
             shard < pass->durable->manifest.shards;
             shard++) {
            err = walk(pass, (uint8_t)slot, (uint16_t)shard);
            done += engine_count(
                pass->durable->engine, slot, shard, 0, UINT64_MAX);
            note_progress(pass, done, all, began_ns);
        }
    }
    note_progress(pass, 0, 0, began_ns); /* files and the manifest are left */
    return err;
}

/* What a pass that came through leaves. */
static void
note_done(const struct pass *pass, uint64_t began_ns)
{
    struct durable_stats *stats = &pass->durable->stats;
    const struct manifest *manifest = &pass->durable->manifest;
    uint64_t took_ms = (clock_monotonic_ns() - began_ns) / NS_PER_MS;
    durable_count(&stats->checkpoints, 1);
    durable_note(&stats->last_checkpoint_seq, manifest->checkpoint_seq);
    durable_note(&stats->last_checkpoint_ms, took_ms);
    durable_note(&stats->last_checkpoint_time, manifest->checkpoint_time);
    log_line(pass->durable->config.logger, LOG_NOTICE,
        "checkpoint: %" PRIu64 " image%s, %" PRIu64 " record%s, %" PRIu64
        " bytes, in %" PRIu64 " ms",
        pass->n_images, num_plural(pass->n_images), pass->n_records,
        num_plural(pass->n_records), pass->n_bytes, took_ms);
}

/* On a replica the log is ahead of the tables: waits until these have all up to
 * that batch. Segments become durable meanwhile, for room may be wanted first.
 */
static int
await_applied(struct pass *pass, uint64_t seq)
{
    const struct clock *clock = pass->durable->config.clock;
    int err = 0;
    while (err == 0 && durable_is_replica(pass->durable) &&
        durable_applied(pass->durable) < seq) {
        if (is_ending(pass)) {
            return ERR_CLOSED;
        }
        if (durable__apply_is_over(pass->durable)) {
            return ERR_NO_CHECKPOINT;
        }
        clock_sleep_until(clock, clock_now_ns(clock) + LOOK_NS);
        err = checkpoint__is_publish_wanted(pass->owner)
            ? checkpoint__step(pass)
            : 0;
    }
    return err;
}

/* The walk, and the manifest that lets the log go. */
static int
do_pass(struct pass *pass, uint64_t began_ns)
{
    struct durable *durable = pass->durable;
    struct manifest done = {0};
    struct wal_stats begun;
    int err = wal_rotate(durable->wal, &done.log_number, &done.checkpoint_seq);
    uint64_t file = done.log_number; /* members=about may want older ones */
    wal_stats(durable->wal, &begun);
    if (err == 0) {
        err = await_applied(pass, done.checkpoint_seq);
    }
    if (err == 0) {
        pass->about_seq = done.checkpoint_seq;
        checkpoint__mark_abouts(pass, done.log_number);
        err = walk_all(pass);
    }
    if (err == 0) {
        err = checkpoint__take_abouts(pass, &done.log_number);
    }
    if (err == 0) {
        err = checkpoint__take_names(pass);
    }
    if (err == 0) {
        done.checkpoint_time = (uint64_t)clock_unix_s();
        err = step(pass, &done);
    }
    if (err == 0) {
        ASSERT(pass->n_ops == 0 && pass->block.len == 0);
        ASSERT(durable->manifest.log_number == done.log_number);
        wal_verify(durable->wal);
        checkpoint__end_abouts(pass, true);
        pass->has_names = false; /* they are durable */
        pass->owner->wants_all_names = false;
        checkpoint__forget_log(pass->owner);
        pass->owner->passed_file = file;
        pass->owner->passed_bytes = begun.bytes;
        note_done(pass, began_ns);
        checkpoint__log_done(pass);
        pass->owner->wants_ballast = true;
    }
    return err;
}

static void
fail(struct pass *pass, int err)
{
    undo(pass);
    checkpoint__end_abouts(pass, false);
    checkpoint__undo_names(pass);
    pass->n_ops = 0;
    buf_clear(&pass->block);
    if (err != ERR_CLOSED) {
        durable_count(&pass->durable->stats.checkpoint_failures, 1);
        checkpoint__log_failed(pass, err);
    }
}

static struct pass
begin_pass(struct checkpointer *owner)
{
    struct durable *durable = owner->durable;
    const struct data_config *config = &durable->config;
    uint64_t began_ns = clock_monotonic_ns();
    ASSERT(owner->magic == CHECKPOINTER_MAGIC);
    ASSERT(durable->magic == DURABLE_MAGIC);
    mutex_assert_not_held(&owner->lock);
    return (struct pass){.owner = owner,
        .durable = durable,
        .rested_ns = began_ns,
        .step_bytes = config->checkpoint_step_bytes == 0
            ? (uint64_t)STEP_BYTES
            : config->checkpoint_step_bytes,
        .file_bytes_max = config->checkpoint_file_bytes == 0
            ? (uint64_t)FILE_BYTES_MAX
            : config->checkpoint_file_bytes,
        .reader = {.disk = durable->disk,
            .logger = config->logger,
            .images = &durable->manifest.images},
        .is_quiet = checkpoint__is_quiet(owner, checkpointer_now_ns(owner))};
}

static void
end_pass(struct pass *pass)
{
    end_file(pass);
    checkpoint__remove_dead(pass);
    recover_reader_fini(&pass->reader);
    engine_rows_fini(&pass->rows);
    buf_fini(&pass->block);
    free(pass->op);
}

int
checkpoint__run(struct checkpointer *owner)
{
    struct durable *durable = owner->durable;
    struct pass pass = begin_pass(owner);
    checkpoint__remove_dead(&pass);
    int err = do_pass(&pass, pass.rested_ns);
    int compact_err = err == 0 ? checkpoint__compact(&pass) : 0;
    if (err != 0 || compact_err != 0) {
        fail(&pass, err != 0 ? err : compact_err);
    }
    end_pass(&pass);
    durable_count(&durable->stats.checkpoint_images, pass.n_images);
    durable_count(&durable->stats.checkpoint_records, pass.n_records);
    return err;
}

int
checkpoint__publish(struct checkpointer *owner)
{
    struct pass pass = begin_pass(owner);
    int err = checkpoint__step(&pass);
    if (err != 0) {
        fail(&pass, err);
    }
    owner->wants_ballast = true;
    end_pass(&pass);
    return err;
}
