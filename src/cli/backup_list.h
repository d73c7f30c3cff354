/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CLI_BACKUP_LIST_H
#define CLI_BACKUP_LIST_H

#include "base/buf.h"
#include "wal/names.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a backup consists of, as a small text (doc/format-backup.md): the file
 * that makes a backup whole, or, without its last line, the notes of one that
 * is under way. Pure; one thread at a time. */

#define BACKUP_WHOLE "BACKUP"     /* its name in a backup */
#define BACKUP_PART "BACKUP.part" /* that of the notes */
#define BACKUP_FILES "data"       /* the folder with the files */

enum {
    BACKUP_FILES_MAX = (1 << 20) + 1 /* those of a snapshot, and MANIFEST */
};

struct backup_file {
    char name[NAMES_BYTES]; /* in the folder, and in the data directory */
    uint64_t bytes;         /* that count, from its start on */
    uint64_t xxh3;          /* of these, with 64 bits and seed 0 */
};

/* All zero is empty. */
struct backup_list {
    uint64_t epoch;           /* of the data directory, not 0 */
    uint64_t last_seq;        /* the last batch of the log in it */
    uint64_t taken_s;         /* when it was begun, in seconds since 1970 */
    struct backup_file *file; /* owned; n of capacity, in no order */
    size_t n, capacity;
};

void backup_list_fini(struct backup_list *list);

/* 0 or ERR_NO_MEMORY. */
int backup_list_add(struct backup_list *list, const struct backup_file *file);

/* The last one of that name; NULL: there is none. */
const struct backup_file *backup_list_find(
    const struct backup_list *list, const char *name);

/* The bytes of all its files. */
uint64_t backup_list_bytes(const struct backup_list *list);

/* Appends the lines about all, one file, and the end of them: its checksum is
 * of out's bytes from 0 on. out->failed: no memory. */
void backup_list_put_head(const struct backup_list *list, struct buf *out);
void backup_list_put_file(const struct backup_file *file, struct buf *out);
void backup_list_put_end(size_t n_files, struct buf *out);

/* Reads a text; is_part: of notes, which have no end, and whose last line may
 * be cut off. 0, ERR_CORRUPT, ERR_NEWER_FORMAT, ERR_NO_MEMORY; *out is empty
 * before, and after an error. */
int backup_list_read(
    const char *text, size_t len, bool is_part, struct backup_list *out);

#endif
