/* SPDX-License-Identifier: BSD-3-Clause */
/* Keeps what files were in arrays sorted by number: a directory has few, and
 * most are added at the end. */
#include "durable/own_files.h"

#include "base/assert.h"
#include "base/err.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_N = 16 };

void
own_files_fini(struct own_files *files)
{
    free(files->file);
    *files = (struct own_files){0};
}

/* The place of the first file whose number is not below. */
static size_t
place_of(const struct own_files *files, uint64_t number)
{
    size_t from = 0, to = files->n;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (files->file[middle].number < number) {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    return from;
}

struct own_file *
own_files_find(const struct own_files *files, uint64_t number)
{
    size_t at = place_of(files, number);
    return at < files->n && files->file[at].number == number ? &files->file[at]
                                                             : NULL;
}

int
own_files_note(
    struct own_files *files, uint64_t number, const struct disk_file *is)
{
    size_t at = place_of(files, number);
    if (at == files->n || files->file[at].number != number) {
        if (files->n == files->capacity) {
            size_t n = files->capacity == 0 ? FIRST_N : 2 * files->capacity;
            struct own_file *more = realloc(files->file, n * sizeof *more);
            if (more == NULL) {
                return ERR_NO_MEMORY;
            }
            files->file = more;
            files->capacity = n;
        }
        memmove(&files->file[at + 1], &files->file[at],
            (files->n - at) * sizeof files->file[0]);
        files->n++;
    }
    files->file[at] = (struct own_file){.number = number, .is = *is};
    ASSERT(files->n <= files->capacity);
    ASSERT(at == 0 || files->file[at - 1].number < number);
    ASSERT(at + 1 == files->n || number < files->file[at + 1].number);
    return 0;
}

void
own_files_note_open(
    struct own_files *files, struct disk *disk, uint64_t number, int fd)
{
    struct disk_file is;
    if (disk->calls->look(disk, NULL, fd, &is) == 0) {
        (void)own_files_note(files, number, &is);
    }
}

void
own_files_keep(struct own_files *files, const struct numbers *numbers)
{
    size_t n = 0;
    for (size_t i = 0; i < files->n; i++) {
        if (numbers_has(numbers, files->file[i].number)) {
            files->file[n++] = files->file[i];
        }
    }
    ASSERT(n <= files->n);
    files->n = n;
}
