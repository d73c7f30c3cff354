/* SPDX-License-Identifier: BSD-3-Clause */
/* Mends images. One that is right with one bit turned back goes to a
 * checkpoint file of its own; another leaves the manifest, and its records are
 * lost, but for what the log has of them. */
#include "offline/salvage_priv.h"

#include "base/assert.h"
#include "base/err.h"
#include "durable/durable_about.h"
#include "durable/durable_naming.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

struct look {
    struct salvage *salvage;
    struct recover_reader reader;
    int err;
};

static int
note_damaged(struct salvage *salvage, const struct images_entry *entry)
{
    if (salvage->n_images == salvage->images_capacity) {
        size_t n = 2 * salvage->images_capacity + 16;
        struct images_entry *more = realloc(salvage->image, n * sizeof *more);
        if (more == NULL) {
            return ERR_NO_MEMORY;
        }
        salvage->image = more;
        salvage->images_capacity = n;
    }
    salvage->image[salvage->n_images++] = *entry;
    salvage->need_bytes += entry->len;
    return 0;
}

static void
look_at(void *context, const struct images_entry *entry)
{
    struct look *look = context;
    struct image image;
    if (look->err != 0) {
        return;
    }
    look->err = recover_read(&look->reader, entry, &image);
    if (salvage__is_damage(look->err)) {
        look->err = note_damaged(look->salvage, entry);
    }
}

int
salvage__look_at_images(struct salvage *salvage)
{
    struct look look = {.salvage = salvage,
        .reader = {.disk = salvage->disk,
            .logger = salvage->logger,
            .images = &salvage->manifest.images}};
    images_each(&salvage->manifest.images, look_at, &look);
    recover_reader_fini(&look.reader);
    return look.err;
}

/* ---- mending ---- */

struct mend {
    struct salvage *salvage;
    struct recover_reader reader;
    const struct images_entry *entry;
    struct image image;
    int fd; /* of the new file; -1: there is none yet */
    uint64_t number, end;
};

static bool
is_right(void *context)
{
    struct mend *mend = context;
    int err = image_decode(mend->reader.block, mend->entry->len,
        &mend->reader.room, &mend->image);
    return err != ERR_CORRUPT;
}

/* The column whose pairs are in a slot; NULL: there is none. */
static const struct schema_column *
members_in(const struct schema_counter *counter, unsigned slot)
{
    for (unsigned i = 0; i < counter->n_columns; i++) {
        const struct schema_column *column = &counter->column[i];
        if (column->kind == SCHEMA_MEMBERS && column->pairs == slot) {
            return column;
        }
    }
    return NULL;
}

/* Says that an image of members is lost, whose ids are not those of the records
 * that they belong to. */
static void
say_members_lost(struct salvage *salvage, const struct images_entry *entry,
    const struct schema_counter *counter, const struct schema_column *column)
{
    char name[NAMES_BYTES];
    names_make(name, NAMES_CHECKPOINT, entry->file);
    salvage__say(salvage,
        "%s, offset %" PRIu64 ": an image is lost: up to %" PRIu32
        " members, column %s of %s, shard %u; what the log has of them later "
        "is not",
        name, entry->offset, entry->n, column->name.text, counter->name.text,
        entry->shard);
    salvage->is_lossy = true;
}

/* The same of tables of members=about: their members are read as none. Without
 * the head nobody knows which ids the tables of a column are for. */
static void
say_tables_lost(struct salvage *salvage, const struct images_entry *entry,
    const char *counter)
{
    char name[NAMES_BYTES];
    names_make(name, NAMES_CHECKPOINT, entry->file);
    if (durable_about_is_head(entry)) {
        salvage__say(salvage,
            "%s, offset %" PRIu64
            ": all tables of a column of members=about, of %s, are lost, for "
            "the list of them is; gets say 0 for all its members, but for "
            "those that the log has",
            name, entry->offset, counter);
    } else {
        salvage__say(salvage,
            "%s, offset %" PRIu64 ": an image of tables is lost: %" PRIu32
            " lines of members=about, of %s; gets say 0 for members that were "
            "in them, but for what the log has of them later",
            name, entry->offset, entry->n, counter);
    }
    salvage->is_lossy = true;
}

/* Names; their records stay (offline/salvage_names.c). Without a table of
 * symbols no block can be read that may need it. */
static void
say_names_lost(struct salvage *salvage, const struct images_entry *entry)
{
    char name[NAMES_BYTES];
    unsigned shard = entry->shard - salvage->manifest.shards - 1;
    bool is_table = entry->first_row < durable_naming_block_row(0);
    names_make(name, NAMES_CHECKPOINT, entry->file);
    salvage__say(salvage,
        "%s, offset %" PRIu64
        ": an image is lost: %s names of shard %u%s; what the log has of "
        "names later is not",
        name, entry->offset, is_table ? "symbols of all" : "up to 2048", shard,
        is_table ? ", which are lost with them" : "");
    salvage->is_lossy = true;
}

static void
say_lost(struct salvage *salvage, const struct images_entry *entry)
{
    char name[NAMES_BYTES];
    unsigned bits = (unsigned)__builtin_ctz(salvage->manifest.shards);
    const char *counter = "a counter that is gone";
    if (manifest_is_of_names(&salvage->manifest, entry)) {
        say_names_lost(salvage, entry);
        return;
    }
    for (uint32_t i = 0; i < salvage->manifest.n_counters; i++) {
        const struct schema_counter *one = &salvage->manifest.counter[i];
        counter = one->slot == entry->counter ? one->name.text : counter;
        const struct schema_column *members = members_in(one, entry->counter);
        if (members != NULL) {
            say_members_lost(salvage, entry, one, members);
            return;
        }
    }
    names_make(name, NAMES_CHECKPOINT, entry->file);
    if (manifest_is_of_tables(&salvage->manifest, entry)) {
        say_tables_lost(salvage, entry, counter);
        return;
    }
    salvage__say(salvage,
        "%s, offset %" PRIu64
        ": an image is lost: %s, shard %u, up to %" PRIu32
        " records among the ids %" PRIu64 " to %" PRIu64
        "; what the log has of them later is not",
        name, entry->offset, counter, entry->shard, entry->n,
        entry->first_row << bits,
        (entry->last_row << bits) + salvage->manifest.shards - 1);
    salvage->is_lossy = true;
}

/* Writes the block that has been mended, and has the manifest name it there.
 * 0 or ERR_. */
static int
write_block(struct mend *mend, const struct images_entry *entry)
{
    struct salvage *salvage = mend->salvage;
    struct disk *disk = salvage->disk;
    struct images_entry moved = *entry;
    char name[NAMES_BYTES];
    int error = 0;
    ASSERT(mend->number > salvage->last_checkpoint);
    ASSERT(mend->image.n == entry->n && mend->image.seq == entry->seq);
    if (mend->fd < 0) {
        names_make(name, NAMES_CHECKPOINT, mend->number);
        error = disk->calls->open(disk, name, DISK_CREATE, &mend->fd);
    }
    if (error == 0) {
        error = disk->calls->write(
            disk, mend->fd, mend->reader.block, entry->len, mend->end);
    }
    if (error != 0) {
        salvage->error = error;
        return disk_err(error);
    }
    moved.file = mend->number;
    moved.offset = mend->end;
    mend->end += entry->len;
    return images_add(&salvage->manifest.images, &moved);
}

/* Lines without their head go with it: a later table may have their number. So
 * do blocks of names, and later tables, with a table of symbols. */
static int
drop(struct salvage *salvage, const struct images_entry *entry)
{
    uint64_t first_row = entry->first_row, last_row = entry->last_row;
    if (manifest_is_of_names(&salvage->manifest, entry) &&
        first_row < durable_naming_block_row(0)) {
        last_row = UINT64_MAX;
    }
    if (manifest_is_of_tables(&salvage->manifest, entry) &&
        durable_about_is_head(entry)) {
        first_row = durable_about_row(
            (unsigned)(first_row >> DURABLE_ABOUT_SLOT_SHIFT), 0, 0);
    }
    return images_drop(&salvage->manifest.images, entry->counter, entry->shard,
        first_row, last_row);
}

static int
mend_one(struct mend *mend, const struct images_entry *entry)
{
    struct salvage *salvage = mend->salvage;
    const uint8_t *block;
    size_t at = 0;
    char name[NAMES_BYTES];
    mend->entry = entry;
    int err = recover_read_raw(&mend->reader, entry, &block);
    if (err != 0 && !salvage__is_damage(err)) {
        return err;
    }
    const struct flip flip = {.bytes = mend->reader.block,
        .n = entry->len,
        .cost = entry->len,
        .is_right_fn = is_right,
        .context = mend};
    /* one that is right, but not what the manifest names, is another's */
    if (err != 0 || is_right(mend) ||
        !flip_find(&flip, &salvage->budget, &at) ||
        !recover_agrees(entry, &mend->image)) {
        say_lost(salvage, entry);
        return drop(salvage, entry);
    }
    names_make(name, NAMES_CHECKPOINT, entry->file);
    salvage__say(salvage,
        "%s, offset %" PRIu64 ": one bit was turned over: no record is lost",
        name, entry->offset + at);
    return write_block(mend, entry);
}

int
salvage__mend_images(struct salvage *salvage)
{
    struct disk *disk = salvage->disk;
    struct mend mend = {.salvage = salvage,
        .reader = {.disk = disk, .logger = salvage->logger},
        .fd = -1,
        .number = salvage->last_checkpoint + 1};
    int err = 0;
    for (size_t i = 0; err == 0 && i < salvage->n_images; i++) {
        err = mend_one(&mend, &salvage->image[i]);
    }
    if (mend.fd >= 0) {
        int error = err == 0 ? disk->calls->sync(disk, mend.fd) : 0;
        disk->calls->close(disk, mend.fd);
        salvage->last_checkpoint = mend.number;
        if (error != 0) {
            salvage->error = error;
            err = disk_err(error);
        }
    }
    recover_reader_fini(&mend.reader);
    return err;
}
