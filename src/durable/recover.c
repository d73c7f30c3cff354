/* SPDX-License-Identifier: BSD-3-Clause */
/* Loads the counters of the manifest, then the images, several shards at a
 * time. recover_segments.c comes before it, recover_log.c behind.
 *
 * An image is of a counter by its serial: one whose counter has been dropped
 * since is passed over and leaves the map of live images, so that nothing of
 * it keeps the log's changes of a later counter in the same slot from being
 * replayed. Its file stays until a manifest is written that does not name it.
 * Columns are matched by serial too, by the engine. */
#include "durable/recover.h"

#include "durable/durable_about.h"
#include "durable/durable_naming.h"

#include "base/assert.h"
#include "base/err.h"
#include "base/mutex.h"
#include "base/progress.h"
#include "engine/engine_copy.h"
#include "schema/restore.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

int
recover_map_places(struct recover_schema *recover)
{
    uint32_t n = schema_last_serial(recover->schema) + 1;
    struct recover_place *place = calloc(n, sizeof *place);
    if (place == NULL) {
        return ERR_NO_MEMORY;
    }
    for (unsigned slot = 0; slot < SCHEMA_COUNTERS_MAX; slot++) {
        const struct schema_counter *counter =
            schema_counter_at(recover->schema, slot);
        for (unsigned i = 0; counter != NULL && i < counter->n_columns; i++) {
            const struct schema_column *column = &counter->column[i];
            ASSERT(column->serial < n);
            place[column->serial] = (struct recover_place){
                .counter = counter, .column = column->slot};
        }
    }
    free(recover->place);
    recover->place = place;
    recover->n_places = n;
    return 0;
}

int
recover_schema_init(struct recover_schema *recover, struct schema **schema)
{
    ASSERT(*schema != NULL);
    *recover = (struct recover_schema){.schema = *schema};
    int err = recover_map_places(recover);
    if (err == 0) {
        *schema = NULL;
    } else {
        recover->schema = NULL;
    }
    return err;
}

void
recover_schema_fini(struct recover_schema *recover)
{
    schema_destroy(&recover->schema);
    free(recover->place);
    *recover = (struct recover_schema){0};
}

int
recover_slot_of(const struct schema *schema, uint32_t serial)
{
    for (int slot = 0; slot < SCHEMA_COUNTERS_MAX; slot++) {
        const struct schema_counter *counter =
            schema_counter_at(schema, (unsigned)slot);
        if (counter != NULL && counter->serial == serial) {
            return slot;
        }
    }
    return -1;
}

/* What an entry has made of the counters of pairs. */
struct pairs_edit {
    uint8_t gone[SCHEMA_COLUMNS_MAX], made[SCHEMA_COLUMNS_MAX]; /* slots */
    unsigned n_gone, n_made;
};

static int
apply_pairs(struct engine *engine, const struct schema *schema,
    const struct pairs_edit *pairs)
{
    int err = 0;
    for (unsigned i = 0; i < pairs->n_gone; i++) {
        engine_undefine(engine, pairs->gone[i]);
    }
    for (unsigned i = 0; err == 0 && i < pairs->n_made; i++) {
        err = engine_define(engine, schema_counter_at(schema, pairs->made[i]));
    }
    return err;
}

/* The engine does as the schema, which the entry has made. */
static int
apply(struct engine *engine, const struct schema *schema,
    const struct entry *entry, int dropped_slot,
    const struct pairs_edit *pairs)
{
    if (engine == NULL) {
        return 0;
    }
    int err = apply_pairs(engine, schema, pairs);
    if (err != 0) {
        return err;
    }
    if (entry->kind == ENTRY_COUNTER) {
        struct schema_counter counter = entry->counter;
        counter.max_jump = 0; /* see define_all in durable.c */
        return engine_define(engine, &counter);
    }
    if (dropped_slot >= 0) {
        engine_undefine(engine, (unsigned)dropped_slot);
    }
    return 0;
}

int
recover_schema_after(
    const struct schema *now, const struct entry *entry, struct schema **next)
{
    int err = entry->kind == ENTRY_COUNTER
        ? schema_restore(now, &entry->counter, entry->last_serial, next)
        : schema_restore_drop(
              now, entry->counter_serial, entry->last_serial, next);
    if (err == 0 && schema_check(*next) != 0) {
        schema_destroy(next);
        err = ERR_CORRUPT;
    }
    return err;
}

int
recover_schema_apply(struct recover_schema *recover, const struct entry *entry,
    struct engine *engine)
{
    struct schema *next;
    int slot = entry->kind == ENTRY_DROPPED
        ? recover_slot_of(recover->schema, entry->counter_serial)
        : -1;
    int err = recover_schema_after(recover->schema, entry, &next);
    if (err != 0) {
        return err;
    }
    struct schema *old = recover->schema;
    struct pairs_edit pairs;
    pairs.n_gone = schema_pairs_beside(old, next, pairs.gone);
    pairs.n_made = schema_pairs_beside(next, old, pairs.made);
    recover->schema = next;
    err = recover_map_places(recover);
    if (err != 0) { /* others still look at the old places */
        recover->schema = old;
        schema_destroy(&next);
        return err;
    }
    schema_destroy(&old);
    return apply(engine, next, entry, slot, &pairs);
}

int
durable_schema(struct durable *durable, struct schema **schema)
{
    return recover_manifest_schema(&durable->manifest, schema);
}

int
recover_manifest_schema(
    const struct manifest *manifest, struct schema **schema)
{
    for (uint32_t i = 0; i < manifest->n_counters; i++) {
        struct schema *next;
        int err = schema_restore(
            *schema, &manifest->counter[i], manifest->last_serial, &next);
        if (err != 0) {
            return err;
        }
        schema_destroy(schema);
        *schema = next;
    }
    /* the last serial counts also where no counter is left */
    struct schema *next;
    int err = schema_restore_serial(*schema, manifest->last_serial, &next);
    if (err == 0) {
        schema_destroy(schema);
        *schema = next;
    }
    return err != 0 ? err : schema_check(*schema);
}

void
recover_log_manifest_error(struct logger *logger, int err, int error)
{
    switch (err) {
    case ERR_CORRUPT:
        log_line(logger, LOG_ERROR,
            "%s is damaged; restore the data directory from a backup, or see "
            "--salvage",
            MANIFEST_NAME);
        break;
    case ERR_NEWER_FORMAT:
        log_line(logger, LOG_ERROR,
            "%s was written by a newer tallyd; start that one", MANIFEST_NAME);
        break;
    default:
        log_line(logger, LOG_ERROR, "%s cannot be read: %s", MANIFEST_NAME,
            error != 0 ? disk_text(error) : err_file_text(err));
    }
}

int
recover_check_names(
    const struct manifest *manifest, const char *today, struct logger *logger)
{
    if (manifest->writes != 0 || today[0] == '\0') {
        return 0;
    }
    log_line(logger, LOG_ERROR,
        "%s is of an older tallyd, and %s of a newer one: they are not of one "
        "moment. Restore a backup into an empty directory, or see --salvage",
        MANIFEST_NAME, today);
    return ERR_CORRUPT;
}

static void
close_file(struct recover_reader *reader)
{
    if (reader->file != 0) {
        reader->disk->calls->close(reader->disk, reader->fd);
        reader->file = 0;
    }
}

void
recover_reader_fini(struct recover_reader *reader)
{
    close_file(reader);
    free(reader->block);
    reader->block = NULL;
    reader->block_bytes = 0;
    image_room_fini(&reader->room);
}

static int
cannot_read(const struct recover_reader *reader,
    const struct images_entry *entry, int error)
{
    char name[NAMES_BYTES];
    names_make(name, NAMES_CHECKPOINT, entry->file);
    log_line(reader->logger, LOG_ERROR,
        "%s, offset %" PRIu64 ": cannot read %" PRIu32
        " bytes: %s; see to the disk and start again",
        name, entry->offset, entry->len, disk_text(error));
    return ERR_DISK;
}

static int
missing(const struct recover_reader *reader, const char *name)
{
    log_line(reader->logger, LOG_ERROR,
        "%s is missing, and %s names it; restore the data directory from a "
        "backup, or see --salvage",
        name, MANIFEST_NAME);
    return ERR_CORRUPT;
}

/* What the head of the block at that offset of the open file says. */
static bool
peek(const struct recover_reader *reader, uint64_t offset, uint32_t *len,
    uint64_t *history)
{
    uint8_t head[IMAGE_HEAD_BYTES];
    size_t n = 0;
    return reader->disk->calls->read(
               reader->disk, reader->fd, head, sizeof head, offset, &n) == 0 &&
        n == sizeof head && image_peek(head, len, history);
}

/* What a whole and sound block at the beginning of the open file says. */
static bool
read_first(struct recover_reader *reader, struct image *out)
{
    size_t n = 0;
    uint64_t history;
    uint32_t len;
    if (!peek(reader, 0, &len, &history) || len > image_bytes_max()) {
        return false;
    }
    uint8_t *block = malloc(len);
    bool is_sound = block != NULL &&
        reader->disk->calls->read(
            reader->disk, reader->fd, block, len, 0, &n) == 0 &&
        n == len && image_decode(block, len, &reader->room, out) == 0;
    free(block);
    return is_sound;
}

struct known {
    uint64_t file, history;
    bool is_known;
};

static void
note_known(void *context, const struct images_entry *entry)
{
    struct known *known = context;
    known->is_known |=
        entry->file == known->file && entry->history == known->history;
}

/* True where the open file, by what it begins with, is not the one that the
 * manifest names. Blocks of one file may be of several histories: those that a
 * salvage mended, and damaged ones that were moved. */
static bool
is_foreign(struct recover_reader *reader, const struct images_entry *entry)
{
    struct image first;
    uint64_t history;
    uint32_t len;
    if (!read_first(reader, &first)) {
        return false;
    }
    struct known known = {.file = entry->file, .history = first.history};
    known.is_known = first.history == entry->history ||
        (peek(reader, entry->offset, &len, &history) && len == entry->len &&
            history == entry->history);
    if (reader->images != NULL) {
        images_each(reader->images, note_known, &known);
    }
    return !known.is_known;
}

/* Its block, or its whole file, is not of the history that it should be. */
static int
foreign(const struct recover_reader *reader, const struct images_entry *entry)
{
    char name[NAMES_BYTES];
    names_make(name, NAMES_CHECKPOINT, entry->file);
    log_line(reader->logger, LOG_ERROR, "%s, offset %" PRIu64 ": %s", name,
        entry->offset, HISTORIES_FOREIGN);
    return ERR_CORRUPT;
}

static int
damaged(
    struct recover_reader *reader, const struct images_entry *entry, int err)
{
    char name[NAMES_BYTES];
    names_make(name, NAMES_CHECKPOINT, entry->file);
    if (err == ERR_CORRUPT && reader->file == entry->file &&
        is_foreign(reader, entry)) {
        return foreign(reader, entry);
    }
    log_line(reader->logger, LOG_ERROR, "%s, offset %" PRIu64 ": %s", name,
        entry->offset,
        err == ERR_NEWER_FORMAT
            ? "was written by a newer tallyd; start that one"
            : "is damaged; restore the data directory from a backup, or "
              "see --salvage");
    return err;
}

static int
open_file(struct recover_reader *reader, const struct images_entry *entry)
{
    char name[NAMES_BYTES];
    if (reader->file == entry->file) {
        return 0;
    }
    close_file(reader);
    ASSERT(reader->file == 0);
    names_make(name, NAMES_CHECKPOINT, entry->file);
    int error =
        reader->disk->calls->open(reader->disk, name, DISK_READ, &reader->fd);
    if (error == ENOENT) {
        return missing(reader, name);
    }
    if (error == DISK_NOT_REGULAR) {
        log_line(reader->logger, LOG_ERROR, "%s: %s", name, disk_text(error));
        return ERR_CORRUPT;
    }
    if (error != 0) {
        return cannot_read(reader, entry, error);
    }
    reader->file = entry->file;
    return 0;
}

int
recover_read_raw(struct recover_reader *reader,
    const struct images_entry *entry, const uint8_t **block)
{
    size_t n = 0;
    if (entry->len > image_bytes_max()) {
        return damaged(reader, entry, ERR_CORRUPT);
    }
    int err = open_file(reader, entry);
    if (err != 0) {
        return err;
    }
    if (entry->len > reader->block_bytes) {
        free(reader->block);
        reader->block_bytes = 0;
        reader->block = malloc(entry->len);
        if (reader->block == NULL) {
            return ERR_NO_MEMORY;
        }
        reader->block_bytes = entry->len;
    }
    int error = reader->disk->calls->read(reader->disk, reader->fd,
        reader->block, entry->len, entry->offset, &n);
    if (error != 0) {
        return cannot_read(reader, entry, error);
    }
    ASSERT(n <= entry->len && entry->len <= reader->block_bytes);
    if (n != entry->len) {
        return damaged(reader, entry, ERR_CORRUPT);
    }
    *block = reader->block;
    return 0;
}

bool
recover_agrees(const struct images_entry *entry, const struct image *image)
{
    return image->counter == entry->counter && image->shard == entry->shard &&
        image->n == entry->n && image->seq == entry->seq &&
        image->history == entry->history &&
        image->first_row <= entry->first_row &&
        image->last_row >= entry->last_row;
}

int
recover_read(struct recover_reader *reader, const struct images_entry *entry,
    struct image *out)
{
    const uint8_t *block;
    int err = recover_read_raw(reader, entry, &block);
    if (err != 0) {
        return err;
    }
    err = image_decode(block, entry->len, &reader->room, out);
    if (err == 0 && out->history != entry->history) {
        return foreign(reader, entry);
    }
    if (err == 0 && !recover_agrees(entry, out)) {
        err = ERR_CORRUPT;
    }
    return err == ERR_CORRUPT || err == ERR_NEWER_FORMAT
        ? damaged(reader, entry, err)
        : err;
}

/* Loading images: entries sorted by shard, handed out shard by shard. */
struct image_work {
    struct durable *durable;
    const struct schema *schema;
    struct images_entry *entry; /* n of capacity, in the end all */
    size_t n, capacity;
    struct progress progress;
    struct mutex lock; /* all below */
    size_t next;
    int err;                /* the first one */
    struct images *orphans; /* of no counter */
};

static void
gather(void *context, const struct images_entry *entry)
{
    struct image_work *work = context;
    ASSERT(work->n < work->capacity);
    work->entry[work->n++] = *entry;
    /* relaxed: no thread but this one yet */
    atomic_fetch_add_explicit(
        &work->progress.all_bytes, entry->len, memory_order_relaxed);
}

static int
by_shard(const void *a, const void *b)
{
    const struct images_entry *x = a;
    const struct images_entry *y = b;
    if (x->shard != y->shard) {
        return x->shard < y->shard ? -1 : 1;
    }
    return x->file != y->file   ? (x->file < y->file ? -1 : 1)
        : x->offset < y->offset ? -1
                                : 1;
}

static int
by_first_row(const void *a, const void *b)
{
    const struct images_entry *x = a;
    const struct images_entry *y = b;
    return x->shard != y->shard       ? (x->shard < y->shard ? -1 : 1)
        : x->first_row < y->first_row ? -1
                                      : 1;
}

/* By shard, and as they are in the files; names, whose shards are behind all
 * others, in their order. */
static void
sort(struct image_work *work)
{
    const struct manifest *manifest = &work->durable->manifest;
    size_t n = 0;
    qsort(work->entry, work->n, sizeof *work->entry, by_shard);
    while (n < work->n && !manifest_is_of_names(manifest, &work->entry[n])) {
        n++;
    }
    qsort(work->entry + n, work->n - n, sizeof *work->entry, by_first_row);
}

/* The entries of the next shard: [*from, *to). */
static bool
take_shard(struct image_work *work, size_t *from, size_t *to)
{
    mutex_lock(&work->lock);
    size_t at = work->next;
    *from = at;
    while (at < work->n && work->entry[at].shard == work->entry[*from].shard) {
        at++;
    }
    ASSERT(*from <= at && at <= work->n);
    *to = at;
    work->next = at;
    bool goes_on = work->err == 0 && *from < *to;
    mutex_unlock(&work->lock);
    return goes_on;
}

static void
note_error(struct image_work *work, int err)
{
    mutex_lock(&work->lock);
    if (work->err == 0) {
        work->err = err;
    }
    mutex_unlock(&work->lock);
}

static int
load_image(struct image_work *work, const struct images_entry *entry,
    const struct image *image)
{
    ASSERT(image->counter == entry->counter && image->n == entry->n);
    ASSERT(image->n == 0 || image->row[0] >= image->first_row);
    ASSERT(image->n == 0 || image->row[image->n - 1] <= image->last_row);
    struct engine_rows rows = {.first_row = entry->first_row,
        .last_row = entry->last_row,
        .n_columns = image->n_columns,
        .n = image->n,
        .row = image->row};
    for (unsigned i = 0; i < image->n_columns; i++) {
        rows.column[i] = image->column[i];
        rows.serial[i] = image->serial[i];
        rows.code[i] = image->code[i];
    }
    return engine_load(
        work->durable->engine, entry->counter, entry->shard, &rows);
}

static int
take_names(struct image_work *work, struct recover_reader *reader,
    const struct images_entry *entry)
{
    const struct durable_naming naming = durable__naming(work->durable);
    int err = durable_naming__load_one(&naming, reader, entry);
    progress_add(&work->progress, entry->len, 0);
    durable_count(&work->durable->stats.load_done_bytes, entry->len);
    return err;
}

/* One entry: loaded, or noted as an orphan. */
static int
take_entry(struct image_work *work, struct recover_reader *reader,
    const struct images_entry *entry)
{
    struct image image;
    const struct schema_counter *counter =
        schema_counter_at(work->schema, entry->counter);
    if (manifest_is_of_names(&work->durable->manifest, entry)) {
        return take_names(work, reader, entry);
    }
    int err = durable__is_cancelled(work->durable)
        ? ERR_CLOSED
        : recover_read(reader, entry, &image);
    if (err != 0) {
        return err;
    }
    bool is_about = manifest_is_of_tables(&work->durable->manifest, entry);
    if (is_about
            ? !durable_about__load(work->durable, work->schema, entry, &image)
            : counter == NULL || counter->serial != image.counter_serial) {
        mutex_lock(&work->lock);
        err = images_add(work->orphans, entry);
        mutex_unlock(&work->lock);
    } else if (!is_about) {
        engine_drain(work->durable->engine);
        err = load_image(work, entry, &image);
        durable_count(&work->durable->stats.loaded_records, image.n);
    }
    progress_add(&work->progress, entry->len, image.n);
    durable_count(&work->durable->stats.load_done_bytes, entry->len);
    return err;
}

static void *
load_shards(void *arg)
{
    struct image_work *work = arg;
    struct recover_reader reader = {.disk = work->durable->disk,
        .logger = work->durable->config.logger,
        .images = &work->durable->manifest.images};
    size_t at, to;
    while (take_shard(work, &at, &to)) {
        for (; at < to; at++) {
            int err = take_entry(work, &reader, &work->entry[at]);
            if (err != 0) {
                note_error(work, err);
                break;
            }
        }
    }
    recover_reader_fini(&reader);
    return NULL;
}

/* Runs load_shards on config.threads threads, this one among them. */
static int
run_threads(struct image_work *work)
{
    unsigned n = work->durable->config.threads;
    ASSERT(n >= 1);
    pthread_t *thread = calloc(n, sizeof *thread);
    unsigned started = 1;
    if (thread == NULL) {
        return ERR_NO_MEMORY;
    }
    while (started < n &&
        pthread_create(&thread[started], NULL, load_shards, work) == 0) {
        started++;
    }
    load_shards(work);
    for (unsigned i = 1; i < started; i++) {
        pthread_join(thread[i], NULL);
    }
    free(thread);
    ASSERT(work->err != 0 || work->next == work->n); /* all are loaded */
    return work->err;
}

struct orphan_drop {
    struct images *images;
    int err;
};

static void
drop_orphan(void *context, const struct images_entry *entry)
{
    struct orphan_drop *drop = context;
    if (drop->err == 0) {
        drop->err = images_drop(drop->images, entry->counter, entry->shard,
            entry->first_row, entry->last_row);
    }
}

int
recover__images(struct durable *durable, const struct schema *schema)
{
    struct images *images = &durable->manifest.images;
    struct images orphans = {0};
    struct image_work work = {
        .durable = durable, .schema = schema, .orphans = &orphans};
    int head_err = durable_about__load_heads(durable, schema);
    if (head_err != 0 || images->n == 0) {
        return head_err;
    }
    images_verify(images); /* as decoding left it: no row is loaded twice */
    work.capacity = images->n;
    work.entry = calloc(images->n, sizeof *work.entry);
    if (work.entry == NULL) {
        return ERR_NO_MEMORY;
    }
    mutex_init(&work.lock);
    progress_begin(&work.progress, durable->config.logger,
        durable->config.clock, "checkpoint", "records", 0);
    images_each(images, gather, &work);
    durable_note(&durable->stats.load_all_bytes,
        atomic_load_explicit(
            &work.progress.all_bytes, memory_order_relaxed)); /* a figure */
    ASSERT(work.n == images->n);
    sort(&work);
    int err = run_threads(&work);
    progress_end(&work.progress);
    struct orphan_drop drop = {.images = images, .err = err};
    durable->names_orphans |= orphans.n > 0;
    images_each(&orphans, drop_orphan, &drop);
    images_verify(images);
    images_fini(&orphans);
    mutex_fini(&work.lock);
    free(work.entry);
    return drop.err;
}
