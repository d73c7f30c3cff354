/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists the files of a snapshot by what the manifest names. What can go wrong:
 * memory, and a list of somebody else that does not go with its manifest. */
#include "durable/snapshot_files.h"

#include "base/assert.h"
#include "base/err.h"
#include "base/numbers.h"
#include "cold/segment_head.h"

#include <stdlib.h>

_Static_assert((int)SEGMENT_NAME_BYTES <= (int)NAMES_BYTES,
    "a name of any kind has room");

void
snapshot_files_fini(struct snapshot_files *files)
{
    free(files->file);
    *files = (struct snapshot_files){0};
}

static int
add(struct snapshot_files *files, uint32_t kind, uint64_t number)
{
    if (files->n == SNAPSHOT_FILES_MAX) {
        return ERR_CORRUPT;
    }
    if (files->n == files->capacity) {
        size_t capacity = files->capacity == 0 ? 16 : 2 * files->capacity;
        struct snapshot_file *file =
            realloc(files->file, capacity * sizeof *file);
        if (file == NULL) {
            return ERR_NO_MEMORY;
        }
        files->file = file;
        files->capacity = capacity;
    }
    files->file[files->n++] =
        (struct snapshot_file){.kind = kind, .number = number};
    return 0;
}

/* Adds each of some numbers once. */
static int
add_all(struct snapshot_files *files, uint32_t kind, struct numbers *numbers)
{
    int err = 0;
    numbers_sort(numbers);
    for (size_t i = 0; err == 0 && i < numbers->n; i++) {
        if (i == 0 || numbers->number[i] != numbers->number[i - 1]) {
            err = add(files, kind, numbers->number[i]);
        }
    }
    return err;
}

struct gather {
    struct numbers numbers;
    int err;
};

static void
note_image(void *context, const struct images_entry *entry)
{
    struct gather *gather = context;
    const struct numbers *numbers = &gather->numbers;
    bool is_last =
        numbers->n > 0 && numbers->number[numbers->n - 1] == entry->file;
    if (gather->err == 0 && !is_last) {
        gather->err = numbers_add(&gather->numbers, entry->file);
    }
}

static int
add_checkpoints(const struct manifest *manifest, struct snapshot_files *files)
{
    struct gather gather = {{0}, 0};
    images_each(&manifest->images, note_image, &gather);
    int err = gather.err != 0
        ? gather.err
        : add_all(files, SNAPSHOT_CHECKPOINT, &gather.numbers);
    numbers_fini(&gather.numbers);
    return err;
}

static int
add_segments(const struct manifest *manifest, struct snapshot_files *files)
{
    struct numbers numbers = {0};
    int err = 0;
    for (size_t i = 0; err == 0 && i < manifest->segments.n; i++) {
        err = numbers_add(&numbers, manifest->segments.segment[i].number);
    }
    if (err == 0) {
        err = add_all(files, SNAPSHOT_SEGMENT, &numbers);
    }
    numbers_fini(&numbers);
    return err;
}

int
snapshot_files__of(const struct manifest *manifest, uint64_t last_log,
    struct snapshot_files *files)
{
    ASSERT(files->n == 0);
    int err = manifest->writes == 0 || manifest->log_number == 0 ||
            last_log < manifest->log_number ||
            last_log - manifest->log_number >= SNAPSHOT_FILES_MAX
        ? ERR_CORRUPT
        : 0;
    for (uint64_t number = manifest->log_number;
         err == 0 && number <= last_log; number++) {
        err = add(files, SNAPSHOT_LOG, number);
    }
    if (err == 0) {
        err = add_checkpoints(manifest, files);
    }
    return err == 0 ? add_segments(manifest, files) : err;
}

int
snapshot_files__agree(
    const struct manifest *manifest, const struct snapshot_files *others)
{
    struct snapshot_files files = {0};
    uint64_t last_log = 0;
    for (size_t i = 0; i < others->n; i++) {
        const struct snapshot_file *other = &others->file[i];
        if (other->kind == SNAPSHOT_LOG && other->number > last_log) {
            last_log = other->number;
        }
    }
    int err = snapshot_files__of(manifest, last_log, &files);
    if (err == 0 && files.n != others->n) {
        err = ERR_CORRUPT;
    }
    for (size_t i = 0; err == 0 && i < files.n; i++) {
        const struct snapshot_file *other = &others->file[i];
        err = files.file[i].kind != other->kind ||
                files.file[i].number != other->number || other->bytes == 0 ||
                other->bytes > INT64_MAX
            ? ERR_CORRUPT
            : 0;
    }
    snapshot_files_fini(&files);
    return err;
}

size_t
snapshot_files_find(
    const struct snapshot_files *files, uint32_t kind, uint64_t number)
{
    size_t from = 0, to = files->n;
    while (from < to) {
        size_t at = from + (to - from) / 2;
        const struct snapshot_file *file = &files->file[at];
        if (file->kind == kind && file->number == number) {
            return at;
        }
        if (file->kind < kind ||
            (file->kind == kind && file->number < number)) {
            from = at + 1;
        } else {
            to = at;
        }
    }
    return files->n;
}

bool
snapshot__file_parse(const char *name, struct snapshot_file *file)
{
    enum names_kind kind;
    uint64_t number;
    bool is_new;
    if (segment_name_parse(name, &number, &is_new)) {
        *file = (struct snapshot_file){SNAPSHOT_SEGMENT, number, 0};
        return !is_new;
    }
    if (!names_parse(name, &kind, &number) ||
        (kind != NAMES_LOG && kind != NAMES_CHECKPOINT)) {
        return false;
    }
    *file = (struct snapshot_file){
        kind == NAMES_LOG ? SNAPSHOT_LOG : SNAPSHOT_CHECKPOINT, number, 0};
    return true;
}

void
snapshot_file_name(const struct snapshot_file *file, char out[NAMES_BYTES])
{
    ASSERT(file->number > 0);
    switch (file->kind) {
    case SNAPSHOT_LOG:
        names_make(out, NAMES_LOG, file->number);
        return;
    case SNAPSHOT_CHECKPOINT:
        names_make(out, NAMES_CHECKPOINT, file->number);
        return;
    default:
        ASSERT(file->kind == SNAPSHOT_SEGMENT);
        segment_name(out, file->number, false);
    }
}
