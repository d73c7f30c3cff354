/* SPDX-License-Identifier: BSD-3-Clause */
/* The manifest as a file; manifest_code.c has its bytes.
 *
 * It is replaced as a whole: MANIFEST.new is written and synced, takes the name
 * MANIFEST, and the directory is synced. Until that returns, a power cut may
 * leave the one or the other. A MANIFEST.new that is found is of a try that did
 * not get so far, and is removed before the next.
 *
 * Then MANIFEST.copy is replaced in the same way. No start reads it; it has
 * what no other file has, were the manifest lost: the epoch, the seed, names.
 *
 * What can go wrong: memory, damage, the disk. Where a write fails the caller
 * keeps the files of both manifests. */
#include "wal/manifest.h"

#include "base/assert.h"
#include "base/buf.h"
#include "base/bytes.h"
#include "base/checksum.h"
#include "base/disk_whole.h"
#include "base/err.h"
#include "wal/envelope.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define FILE_BYTES_MAX (UINT64_C(1) << 32)
#define NAME_NEW MANIFEST_NAME ".new"
#define COPY_NEW MANIFEST_COPY ".new"

void
manifest_init(struct manifest *manifest)
{
    *manifest = (struct manifest){0};
}

bool
manifest__next_counter(const struct manifest *manifest,
    struct manifest_counters *at, struct manifest_counter *out)
{
    for (; at->counter < manifest->n_counters; at->counter++) {
        const struct schema_counter *counter = &manifest->counter[at->counter];

        *out = (struct manifest_counter){
            counter->serial, counter->slot, counter->cold_is_never};
        if (at->column == 0) {
            at->column++;
            return true;
        }
        for (; at->column <= counter->n_columns; at->column++) {
            const struct schema_column *column =
                &counter->column[at->column - 1];

            if (column->kind == SCHEMA_MEMBERS) {
                out->serial = column->serial + 1; /* see schema/pairs.c */
                out->slot = column->pairs;
                at->column++;
                return true;
            }
        }
        at->column = 0;
    }
    return false;
}

bool
manifest__has_column(
    const struct manifest *manifest, const struct images_entry *entry)
{
    uint64_t slot = entry->first_row >> MANIFEST_TABLES_SLOT_SHIFT;

    for (uint32_t i = 0; i < manifest->n_counters; i++) {
        const struct schema_counter *counter = &manifest->counter[i];

        for (unsigned c = 0;
             counter->slot == entry->counter && c < counter->n_columns; c++) {
            if (counter->column[c].kind == SCHEMA_ABOUT &&
                counter->column[c].slot == slot) {
                return true;
            }
        }
    }
    return false;
}

bool
manifest_has_counter(const struct manifest *manifest, uint32_t serial)
{
    struct manifest_counters at = {0};
    struct manifest_counter one;

    while (manifest__next_counter(manifest, &at, &one)) {
        if (one.serial == serial) {
            return true;
        }
    }
    return false;
}

uint64_t
manifest_writer(const struct manifest *manifest)
{
    const struct histories *histories = &manifest->histories;

    return manifest->writes == 0 || histories->n == 0
        ? 0
        : histories->entry[histories->n - 1].history;
}

bool
manifest_names_log(const struct manifest *manifest)
{
    return manifest->next_file >= MANIFEST_NEXT_FILE_MIN ||
        manifest->images.n > 0 || manifest->last_segment > 0 ||
        manifest->schema_seq > 0 || manifest->log_number != 1;
}

void
manifest_fini(struct manifest *manifest)
{
    free(manifest->counter);
    images_fini(&manifest->images);
    segments_fini(&manifest->segments);
    producers__list_fini(&manifest->producers);
    histories_fini(&manifest->histories);
    *manifest = (struct manifest){
        .images = manifest->images, .segments = manifest->segments};
}

uint64_t
manifest_segment_epoch(
    const struct manifest *manifest, const struct manifest_segment *segment)
{
    return segment->history == 0 ? manifest->epoch : segment->history;
}

/* What an errno of the disk is. */
static int
err_of(int error)
{
    switch (error) {
    case 0:
        return 0;
    case ENOENT:
        return ERR_NOT_FOUND;
    case ENOMEM:
        return ERR_NO_MEMORY;
    default:
        return disk_err(error);
    }
}

/* All of a file; *bytes is the caller's, NULL after an error. */
static int
read_file(struct disk *disk, const char *name, uint8_t **bytes, size_t *len,
    int *error)
{
    int found = disk_whole_read(disk, name, FILE_BYTES_MAX, bytes, len);

    *error = found == EFBIG ? 0 : found;
    return found == EFBIG ? ERR_CORRUPT : err_of(found);
}

static int
read_named(
    struct disk *disk, const char *name, struct manifest *out, int *error)
{
    uint8_t *bytes;
    size_t len = 0;
    int ignored;
    int err =
        read_file(disk, name, &bytes, &len, error == NULL ? &ignored : error);

    if (err == 0) {
        err = manifest_decode(bytes, len, out);
    }
    free(bytes);
    return err;
}

int
manifest_read(struct disk *disk, struct manifest *out, int *error)
{
    return read_named(disk, MANIFEST_NAME, out, error);
}

int
manifest_read_copy(struct disk *disk, struct manifest *out)
{
    return read_named(disk, MANIFEST_COPY, out, NULL);
}

struct mend {
    const uint8_t *bytes;
    size_t len;
};

/* The checksum of every version is the last of it. */
static bool
is_right(void *context)
{
    const struct mend *mend = context;
    size_t len = mend->len - ENVELOPE_CHECKSUM_BYTES;

    return checksum64(mend->bytes, len, 0) == bytes_get_u64(mend->bytes + len);
}

int
manifest_mend(struct disk *disk, struct flip_budget *budget,
    struct manifest *out, uint64_t *at)
{
    uint8_t *bytes;
    size_t len = 0, found = 0;
    int error;
    int err = read_file(disk, MANIFEST_NAME, &bytes, &len, &error);

    if (err == 0) {
        struct mend mend = {bytes, len};
        const struct flip flip = {.bytes = bytes,
            .n = len,
            .cost = len,
            .is_right_fn = is_right,
            .context = &mend};

        err = len > ENVELOPE_CHECKSUM_BYTES && flip_find(&flip, budget, &found)
            ? manifest_decode(bytes, len, out)
            : ERR_CORRUPT;
    }
    free(bytes);
    *at = found;
    return err;
}

/* Puts bytes in the place of the file of that name; *file as in
 * manifest_write. An errno value. */
static int
replace(struct disk *disk, const char *name, const char *name_new,
    const struct buf *bytes, struct disk_file *file)
{
    /* what is longer could not be read again */
    ASSERT(bytes->len > ENVELOPE_CHECKSUM_BYTES);
    ASSERT(bytes->len <= FILE_BYTES_MAX);
    return disk_whole_replace(
        disk, name, name_new, bytes->data, bytes->len, file);
}

int
manifest_write(struct disk *disk, const struct manifest *manifest,
    struct disk_file *file, int *error)
{
    struct buf out = {0};
    int err = manifest__encode(manifest, &out);
    int ignored;

    error = error == NULL ? &ignored : error;
    *error = 0;
    ASSERT(err != 0 || out.len > 0);
    if (err == 0) {
        *error = replace(disk, MANIFEST_NAME, NAME_NEW, &out, file);
        err = err_of(*error);
    }
    if (file != NULL) {
        file->inode = err == 0 ? file->inode : 0;
        file->bytes = err == 0 ? out.len : 0;
    }
    buf_fini(&out);
    return err == ERR_NOT_FOUND ? ERR_DISK : err;
}

/* True where the copy has these bytes already. */
static bool
copy_has(struct disk *disk, const struct buf *bytes)
{
    uint8_t *copy;
    size_t len = 0;
    int error;
    bool has = read_file(disk, MANIFEST_COPY, &copy, &len, &error) == 0 &&
        len == bytes->len && memcmp(copy, bytes->data, len) == 0;

    free(copy);
    return has;
}

int
manifest_write_copy(struct disk *disk, const struct manifest *manifest)
{
    struct buf out = {0};
    int err = manifest__encode(manifest, &out);

    if (err == 0 && !copy_has(disk, &out)) {
        err = err_of(replace(disk, MANIFEST_COPY, COPY_NEW, &out, NULL));
    }
    buf_fini(&out);
    return err == ERR_NOT_FOUND ? ERR_DISK : err;
}
