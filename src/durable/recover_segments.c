/* SPDX-License-Identifier: BSD-3-Clause */
/* Loads the segments, before anything else. A file is opened, and its head and
 * index are checked; blocks are read when somebody asks for them. So a start
 * takes as long as there are files, not records.
 *
 * What segments cover is not loaded and not replayed: rows of older images
 * leave the map here, entries of the log are passed over in recover_log.c.
 *
 * What can go wrong: a file that is missing, damaged, or another one than the
 * manifest names keeps the server from starting, for nothing else has what is
 * in it. */
#include "durable/recover.h"

#include "base/assert.h"
#include "base/err.h"
#include "cold/segment_scan.h"
#include "engine/cover.h"
#include "wal/names.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* By file, and by ids in each. */
static int
by_number(const void *a, const void *b)
{
    const struct manifest_segment *x = *(struct manifest_segment *const *)a;
    const struct manifest_segment *y = *(struct manifest_segment *const *)b;
    if (x->number != y->number) {
        return x->number < y->number ? -1 : 1;
    }
    return x->first_id < y->first_id ? -1 : x->first_id > y->first_id;
}

/* What the manifest says of a file and what that says of itself. */
static bool
agree(const struct segment_head *head,
    const struct manifest_segment *const *part, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (part[i]->history != part[0]->history ||
            part[i]->counter_serial != head->counter_serial ||
            part[i]->counter != head->counter ||
            part[i]->records != head->records) {
            return false;
        }
    }
    return true;
}

static int
open_file(const struct recover_segments *recover,
    const struct manifest_segment *const *part, size_t n)
{
    const struct segment_config config = {.disk = recover->disk,
        .is_direct = recover->is_direct,
        .logger = recover->logger};
    char name[SEGMENT_NAME_BYTES];
    struct segment *segment;
    segment_name(name, part[0]->number, false);
    int err = segment_open(&config,
        manifest_segment_epoch(recover->manifest, part[0]), part[0]->number,
        &segment);
    if (err == 0 && !agree(segment_head(segment), part, n)) {
        log_line(recover->logger, LOG_ERROR,
            "%s is not the file that %s names", name, MANIFEST_NAME);
        segment_close(&segment);
        err = ERR_CORRUPT;
    }
    if (err == ERR_CORRUPT) {
        log_line(recover->logger, LOG_ERROR,
            "%s: put it back from a backup of this directory that has the "
            "one that belongs here (a segment never changes), restore the "
            "data directory, or see --salvage",
            name);
    }
    return err != 0 ? err
                    : recover->file_fn(recover->context, segment, part, n);
}

int
recover_each_segment(const struct recover_segments *recover)
{
    const struct segments *segments = &recover->manifest->segments;
    const struct manifest_segment **part =
        calloc(segments->n + 1, sizeof(*part));
    size_t n = 0, end;
    int err = part == NULL ? ERR_NO_MEMORY : 0;
    for (size_t i = 0; err == 0 && i < segments->n; i++) {
        const struct manifest_segment *one = &segments->segment[i];
        if (manifest_has_counter(recover->manifest, one->counter_serial)) {
            part[n++] = one;
        }
    }
    if (n > 0) {
        qsort(part, n, sizeof(*part), by_number);
    }
    for (size_t at = 0; at < n; at = end) {
        for (end = at + 1; end < n && part[end]->number == part[at]->number;
             end++) {
        }
        int file_err = open_file(recover, part + at, end - at);
        err = err == 0 ? file_err : err;
    }
    free(part);
    return err;
}

int
recover__check_segment(
    const struct manifest *manifest, struct disk *disk, uint64_t number)
{
    const struct segments *segments = &manifest->segments;
    const struct segment_config config = {.disk = disk};
    struct segment *segment = NULL;
    int err = 0;
    for (size_t i = 0; err == 0 && i < segments->n; i++) {
        const struct manifest_segment *part = &segments->segment[i];
        if (part->number != number) {
            continue;
        }
        if (segment == NULL) {
            err = segment_open(&config, manifest_segment_epoch(manifest, part),
                number, &segment);
        }
        if (err == 0 && !agree(segment_head(segment), &part, 1)) {
            err = ERR_CORRUPT;
        }
    }
    if (err == 0) {
        err = segment == NULL ? ERR_NOT_FOUND : segment_check(segment, NULL);
    }
    segment_close(&segment);
    return err;
}

static int
take_file(void *context, struct segment *segment,
    const struct manifest_segment *const *part, size_t n)
{
    struct durable *durable = context;
    struct durable_segments *segment_map = durable->segment_map;
    const struct segment_head *head = segment_head(segment);
    uint64_t last = part[n - 1]->last_id;
    ASSERT(durable->magic == DURABLE_MAGIC && n > 0);
    for (size_t i = 1; i < n; i++) {
        ASSERT(part[i - 1]->last_id < part[i]->first_id);
    }
    if (durable__is_cancelled(durable)) {
        segment_close(&segment);
        return ERR_CLOSED;
    }
    engine_raise(durable->engine, head->counter,
        last < head->last_id ? last : head->last_id);
    int err = segment_map->take_fn(segment_map, segment, part, n);
    if (err != 0) {
        segment_close(&segment);
    }
    return err;
}

/* The numbers of all files there are, also those that nothing names: they may
 * be there a while longer. */
static void
note_number(void *context, const char *name)
{
    uint64_t *last = context;
    uint64_t number;
    bool is_new;
    if (segment_name_parse(name, &number, &is_new) && number > *last &&
        number <= NAMES_NUMBER_MAX) {
        *last = number;
    }
}

int
recover__segments(struct durable *durable)
{
    struct manifest *manifest = &durable->manifest;
    const struct recover_segments recover = {.manifest = manifest,
        .disk = durable->disk,
        .is_direct = durable->config.cold_io == COLD_IO_DIRECT,
        .logger = durable->config.logger,
        .file_fn = take_file,
        .context = durable};
    uint64_t last = manifest->last_segment;
    size_t n_cut = 0;
    int error = durable->disk->calls->list(durable->disk, note_number, &last);
    if (error != 0) {
        log_line(durable->config.logger, LOG_ERROR,
            "the data directory cannot be read: %s", disk_text(error));
        return ERR_DISK;
    }
    ASSERT(last >= manifest->last_segment); /* no number is given out twice */
    durable_note(&durable->last_segment, last);
    if (manifest->segments.n == 0) {
        return 0;
    }
    if (durable->segment_map == NULL) {
        log_line(durable->config.logger, LOG_ERROR,
            "%s names segments, which this tallyd does not read",
            MANIFEST_NAME);
        return ERR_NEWER_FORMAT;
    }
    segments_verify(&manifest->segments); /* as decoding left it */
    int err = recover_each_segment(&recover);
    if (err == 0) {
        err = manifest_cut_images(manifest, &n_cut);
    }
    images_verify(&manifest->images);
    /* a file of which nothing is left here is still named on the disk */
    durable->names_orphans = n_cut > 0;
    return err;
}
