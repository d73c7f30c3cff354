/* SPDX-License-Identifier: BSD-3-Clause */
/* The plan as a file:
 *
 *   OFFSET SIZE
 *        0    8 "TALLYSYN"
 *        8    4 version, 1
 *       12    4 bytes of the source's name, 1..SNAPSHOT_SOURCE_MAX
 *       16    8 epoch
 *       24    8 files
 *       32      the name
 *               files, 32 bytes each: kind 4, here 4 (0 or 1), number 8,
 *               bytes 8, XXH3 8 (0 where it is not here)
 *               checksum 8, of all before it
 *
 * What can go wrong: memory, the disk, damage. */
#include "durable/snapshot_plan.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "base/disk_whole.h"
#include "base/err.h"
#include "durable/snapshot_folder.h"
#include "wal/envelope.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    HEAD_BYTES = 32,
    FILE_BYTES = 32,
    PLAN_BYTES_MAX = HEAD_BYTES + SNAPSHOT_SOURCE_MAX +
        SNAPSHOT_FILES_MAX * FILE_BYTES + ENVELOPE_CHECKSUM_BYTES
};

static const struct envelope envelope = {
    8, {'T', 'A', 'L', 'L', 'Y', 'S', 'Y', 'N'}, 1};

void
snapshot_plan_fini(struct snapshot_plan *plan)
{
    snapshot_files_fini(&plan->files);
    free(plan->here);
    *plan = (struct snapshot_plan){0};
}

/* Room for n files, all zero. */
static int
make_room(struct snapshot_plan *plan, size_t n)
{
    plan->files.file = calloc(n + 1, sizeof *plan->files.file);
    plan->here = calloc(n + 1, sizeof *plan->here);
    if (plan->files.file == NULL || plan->here == NULL) {
        snapshot_plan_fini(plan);
        return ERR_NO_MEMORY;
    }
    plan->files.n = n;
    plan->files.capacity = n + 1;
    return 0;
}

int
snapshot_plan_init(struct snapshot_plan *plan, const char *source,
    uint64_t epoch, const struct snapshot_files *files)
{
    size_t len = strlen(source);
    ASSERT(len > 0 && len <= SNAPSHOT_SOURCE_MAX);
    ASSERT(files->n <= SNAPSHOT_FILES_MAX);
    int err = make_room(plan, files->n);
    if (err != 0) {
        return err;
    }
    memcpy(plan->source, source, len + 1);
    plan->epoch = epoch;
    if (files->n > 0) {
        memcpy(plan->files.file, files->file, files->n * sizeof *files->file);
    }
    return 0;
}

static bool
get_file(
    const uint8_t *in, struct snapshot_file *file, struct snapshot_here *here)
{
    uint32_t is_whole = bytes_get_u32(in + 4);
    *file = (struct snapshot_file){.kind = bytes_get_u32(in),
        .number = bytes_get_u64(in + 8),
        .bytes = bytes_get_u64(in + 16)};
    *here = (struct snapshot_here){is_whole == 1, bytes_get_u64(in + 24)};
    return file->kind >= SNAPSHOT_LOG && file->kind <= SNAPSHOT_SEGMENT &&
        file->number > 0 && file->bytes > 0 && is_whole <= 1 &&
        (is_whole == 1 || here->xxh3 == 0);
}

/* True where a comes before b. */
static bool
is_before(const struct snapshot_file *a, const struct snapshot_file *b)
{
    return a->kind < b->kind || (a->kind == b->kind && a->number < b->number);
}

static int
decode(const uint8_t *in, size_t len, struct snapshot_plan *plan)
{
    int err = envelope_check(&envelope, in, len);
    if (err != 0) {
        return err;
    }
    if (len < HEAD_BYTES + ENVELOPE_CHECKSUM_BYTES) {
        return ERR_CORRUPT;
    }
    uint32_t name_bytes = bytes_get_u32(in + 12);
    uint64_t n = bytes_get_u64(in + 24);
    if (name_bytes == 0 || name_bytes > SNAPSHOT_SOURCE_MAX ||
        n > SNAPSHOT_FILES_MAX ||
        len !=
            HEAD_BYTES + name_bytes + n * FILE_BYTES +
                ENVELOPE_CHECKSUM_BYTES ||
        memchr(in + HEAD_BYTES, '\0', name_bytes) != NULL) {
        return ERR_CORRUPT;
    }
    err = make_room(plan, (size_t)n);
    if (err != 0) {
        return err;
    }
    memcpy(plan->source, in + HEAD_BYTES, name_bytes);
    plan->epoch = bytes_get_u64(in + 16);
    in += HEAD_BYTES + name_bytes;
    for (size_t i = 0; i < n; i++) {
        struct snapshot_file *file = &plan->files.file[i];
        if (!get_file(in + i * FILE_BYTES, file, &plan->here[i]) ||
            (i > 0 && !is_before(&file[-1], file))) {
            snapshot_plan_fini(plan);
            return ERR_CORRUPT;
        }
    }
    return 0;
}

int
snapshot_plan_read(struct disk *disk, const char *name,
    struct snapshot_plan *plan, int *error)
{
    uint8_t *bytes;
    size_t len;
    ASSERT(plan->files.file == NULL && plan->here == NULL);
    *error = disk_whole_read(disk, name, PLAN_BYTES_MAX, &bytes, &len);
    if (*error == EFBIG) {
        *error = 0;
        return ERR_CORRUPT;
    }
    if (*error != 0) {
        return *error == ENOENT ? ERR_NOT_FOUND
            : *error == ENOMEM  ? ERR_NO_MEMORY
                                : ERR_DISK;
    }
    int err = decode(bytes, len, plan);
    free(bytes);
    return err;
}

int
snapshot_plan_write(struct disk *folder, const struct snapshot_plan *plan)
{
    size_t name_bytes = strlen(plan->source);
    size_t n = plan->files.n;
    size_t len = HEAD_BYTES + name_bytes + n * FILE_BYTES;
    ASSERT(name_bytes > 0 && n <= SNAPSHOT_FILES_MAX);
    uint8_t *bytes = malloc(len + ENVELOPE_CHECKSUM_BYTES);
    if (bytes == NULL) {
        return ENOMEM;
    }
    envelope_begin(&envelope, bytes);
    bytes_put_u32(bytes + 12, (uint32_t)name_bytes);
    bytes_put_u64(bytes + 16, plan->epoch);
    bytes_put_u64(bytes + 24, n);
    memcpy(bytes + HEAD_BYTES, plan->source, name_bytes);
    for (size_t i = 0; i < n; i++) {
        const struct snapshot_file *file = &plan->files.file[i];
        uint8_t *out = bytes + HEAD_BYTES + name_bytes + i * FILE_BYTES;
        bytes_put_u32(out, file->kind);
        bytes_put_u32(out + 4, plan->here[i].is_whole);
        bytes_put_u64(out + 8, file->number);
        bytes_put_u64(out + 16, file->bytes);
        bytes_put_u64(
            out + 24, plan->here[i].is_whole ? plan->here[i].xxh3 : 0);
    }
    envelope_end(bytes, len);
    int error = disk_whole_replace(folder, SNAPSHOT_PLAN, SNAPSHOT_PLAN ".new",
        bytes, len + ENVELOPE_CHECKSUM_BYTES, NULL);
    free(bytes);
    return error;
}
