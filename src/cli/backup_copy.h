/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CLI_BACKUP_COPY_H
#define CLI_BACKUP_COPY_H

#include "base/checksum.h"
#include "cli/shown.h"

#include <stdbool.h>
#include <stdint.h>

/* Files of a backup, one after the other: copied, linked, read; held back by a
 * rate, with progress on a terminal. One thread. */

enum { BACKUP_WHY_MAX = 300 };

struct backup_copy {
    /* The caller's: */
    const char *what;   /* "copied", for the progress */
    uint64_t rate;      /* bytes a second at most; 0: no limit */
    uint64_t all_bytes; /* of all that will be read, for the progress */
    /* Called for each piece; false: stop, with why. NULL: nobody is. */
    bool (*tick_fn)(struct backup_copy *copy);
    void *context;
    /* out: */
    uint64_t
        done_bytes; /* that were read; the caller may add what it left out */
    char why[BACKUP_WHY_MAX];
    /* its own: */
    uint8_t *bytes;              /* owned */
    struct checksum_stream *sum; /* owned */
    uint64_t due_ns;             /* when the next piece may be read */
    struct shown shown;
};

/* Writes why. Always false. */
__attribute__((format(printf, 2, 3))) bool backup_copy_fail(
    struct backup_copy *copy, const char *format, ...);

/* False with why: no memory. */
bool backup_copy_init(struct backup_copy *copy);
void backup_copy_fini(struct backup_copy *copy);

/* Another len bytes have been read: shows that, and waits as the rate wants it.
 * False with why: who is told by tick_fn has had enough. */
bool backup_copy_count(struct backup_copy *copy, size_t len);

/* XXH3 of the first bytes of a file. False with why, as all that follow. */
bool backup_copy_hash(struct backup_copy *copy, int dir, const char *name,
    uint64_t bytes, uint64_t *xxh3);

/* Copies the first bytes of a file to one of that name, which is replaced, and
 * synced; source: its name where it is copied from. A log file is as long as
 * its header says then, with a hole behind. */
bool backup_copy_file(struct backup_copy *copy, int from, const char *source,
    int to, const char *name, uint64_t bytes, uint64_t *xxh3);

/* Gives a file its name in another folder, too, in the place of one that has
 * it. *is_linked false, and true as result: that cannot be done there, it is to
 * be copied. */
bool backup_copy_link(struct backup_copy *copy, int from, int to,
    const char *name, bool *is_linked);

/* True where two folders have a file of that name that is surely the same up to
 * that many bytes: by its inode, or by its length, its beginning and its end,
 * where the number of who wrote it is. Not of log files, which may be cut. */
bool backup_copy_is_same(int dir, int other, const char *name, uint64_t bytes);

/* Shows how far it is, where that is a terminal; at the end clears that. */
void backup_copy_show(struct backup_copy *copy);
void backup_copy_end(struct backup_copy *copy);

#endif
