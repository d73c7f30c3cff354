/* SPDX-License-Identifier: BSD-3-Clause */
/* Empties and removes checkpoint files that newer images have thinned out: of
 * one of which less than half is live the rest moves to the file under way,
 * block by block, with nothing changed but the history. Files that nothing
 * names are removed, segments too. All of it goes in steps, like the images of
 * a pass. */
#include "durable/checkpoint_priv.h"
#include "durable/durable_owner.h"

#include "base/assert.h"
#include "base/err.h"
#include "cold/segment_head.h"
#include "wal/names.h"

#include <stdlib.h>

/* What is known of one checkpoint file. */
struct file_use {
    uint64_t number, bytes, live;
};

struct file_uses {
    struct pass *pass;
    struct file_use *use;
    size_t n, capacity;
    int err;
};

static void
note_file(void *context, const char *name)
{
    struct file_uses *uses = context;
    struct disk *disk = uses->pass->durable->disk;
    enum names_kind kind;
    struct file_use use = {0};
    int fd;
    if (uses->err != 0 || !names_parse(name, &kind, &use.number) ||
        kind != NAMES_CHECKPOINT || use.number == uses->pass->file ||
        disk->calls->open(disk, name, DISK_READ, &fd) != 0) {
        return;
    }
    int error = disk->calls->size(disk, fd, &use.bytes);
    disk->calls->close(disk, fd);
    use.live =
        images_file_bytes(&uses->pass->durable->manifest.images, use.number);
    if (error != 0) {
        return;
    }
    if (uses->n == uses->capacity) {
        size_t n = uses->capacity == 0 ? 16 : 2 * uses->capacity;
        struct file_use *more = realloc(uses->use, n * sizeof *more);
        if (more == NULL) {
            uses->err = ERR_NO_MEMORY;
            return;
        }
        uses->use = more;
        uses->capacity = n;
    }
    uses->use[uses->n++] = use;
}

/* The live entries of one file. */
struct entries {
    uint64_t file;
    struct images_entry *entry; /* owned; n of capacity, which is for all */
    size_t n, capacity;
};

static void
note_entry(void *context, const struct images_entry *entry)
{
    struct entries *entries = context;
    if (entry->file == entries->file) {
        ASSERT(entries->n < entries->capacity);
        entries->entry[entries->n++] = *entry;
    }
}

static int
move_entry(struct pass *pass, const struct images_entry *entry)
{
    const uint8_t *block;
    struct op op = {.kind = OP_ADD, .entry = *entry};
    int err = recover_read_raw(&pass->reader, entry, &block);
    if (err != 0) {
        return err;
    }
    ASSERT(entry->file != pass->file);
    op.entry.offset = pass->block.len;
    buf_add(&pass->block, block, entry->len);
    if (pass->block.failed) {
        return ERR_NO_MEMORY;
    }
    /* it is of the file now; one that is damaged, or of another history than it
     * should be, stays what it is, and a start tells */
    if (image_put_history((uint8_t *)pass->block.data + op.entry.offset,
            entry->len, entry->history, pass->durable->history)) {
        op.entry.history = pass->durable->history;
    }
    durable_count(&pass->durable->stats.checkpoint_moved_bytes, entry->len);
    return checkpoint__add(pass, &op);
}

/* True where the map still has the entry as it was: between two steps a segment
 * may have taken rows from it, which must not come back. */
static bool
is_same_now(const struct images *images, const struct images_entry *entry)
{
    const struct images_entry *now =
        images_find(images, entry->counter, entry->shard, entry->first_row);
    return now != NULL && now->file == entry->file &&
        now->offset == entry->offset && now->first_row == entry->first_row &&
        now->last_row == entry->last_row;
}

/* Empties one file, step by step. */
static int
empty(struct pass *pass, uint64_t file)
{
    const struct manifest *manifest = &pass->durable->manifest;
    struct entries entries = {.file = file, .capacity = manifest->images.n};
    ASSERT(file != pass->file && pass->n_ops == 0);
    entries.entry = calloc(manifest->images.n, sizeof *entries.entry);
    if (entries.entry == NULL) {
        return ERR_NO_MEMORY;
    }
    images_each(&manifest->images, note_entry, &entries);
    int err = 0;
    for (size_t i = 0; err == 0 && i < entries.n; i++) {
        if (checkpoint__is_stopping(pass)) {
            err = ERR_CLOSED;
        } else if (is_same_now(&manifest->images, &entries.entry[i])) {
            err = move_entry(pass, &entries.entry[i]);
        }
        if (err == 0 &&
            (pass->block.len >= pass->step_bytes || i + 1 == entries.n)) {
            err = checkpoint__step(pass);
        }
        checkpoint__rest(pass);
    }
    free(entries.entry);
    return err;
}

int
checkpoint__compact(struct pass *pass)
{
    struct disk *disk = pass->durable->disk;
    struct file_uses uses = {.pass = pass};
    (void)disk->calls->list(disk, note_file, &uses);
    int err = uses.err;
    for (size_t i = 0; err == 0 && i < uses.n; i++) {
        const struct file_use *use = &uses.use[i];
        if (use->live != 0 && use->live * 2 < use->bytes) {
            err = empty(pass, use->number);
        }
    }
    free(uses.use);
    return err;
}

/* Numbers are published in their order, but for one that is spared: what is not
 * named, but is no later than one that was, is not on its way. */
static bool
is_dead_segment(struct durable *durable, const char *name)
{
    const struct manifest *manifest = &durable->manifest;
    uint64_t number;
    bool is_new;
    return segment_name_parse(name, &number, &is_new) && !is_new &&
        number <= manifest->last_segment &&
        !segments_has_file(&manifest->segments, number) &&
        /* acquire: the number was stored before its file was made */
        number !=
        atomic_load_explicit(&durable->spared_segment, memory_order_acquire);
}

static void
remove_if_dead(void *context, const char *name)
{
    struct pass *pass = context;
    struct disk *disk = pass->durable->disk;
    const struct manifest *manifest = &pass->durable->manifest;
    enum names_kind kind;
    uint64_t number;
    ASSERT(!pass->owner->is_in_doubt);
    bool is_dead = names_parse(name, &kind, &number) &&
        kind == NAMES_CHECKPOINT && number != pass->file &&
        images_file_bytes(&manifest->images, number) == 0;
    if (is_dead || is_dead_segment(pass->durable, name)) {
        (void)disk->calls->unlink(disk, name);
    }
}

void
checkpoint__remove_dead(struct pass *pass)
{
    struct disk *disk = pass->durable->disk;
    if (!pass->owner->is_in_doubt && !checkpoint__keeps_names(pass->owner) &&
        durable_may_write(pass->durable) == 0) {
        (void)disk->calls->list(disk, remove_if_dead, pass);
    }
}
