/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LIB_FAKE_DISK_PRIV_H
#define LIB_FAKE_DISK_PRIV_H

#include "lib/fake_disk.h"

/* Files and names of a fake disk as they are for the process and as they
 * would be after a crash. One thread at a time. */

struct fake_bytes {
    uint8_t *byte; /* owned; zero from len on */
    uint64_t len;
    uint64_t capacity;
};

struct fake_file {
    struct fake_bytes now;    /* what a read finds */
    struct fake_bytes stored; /* what a crash leaves */
    bool *pending;            /* by sector of now: it would be synced */
    bool *room;               /* the same: it is in no hole */
    bool *used;               /* the same: it may be other than zero in now or
                               * stored, or has been */
    uint64_t sectors;         /* of pending, room and used */
    unsigned names;           /* that lead to it now */
    unsigned opens;
    uint64_t changes;           /* so far, of bytes and length */
    char name[FAKE_NAME_BYTES]; /* the first one */
};

struct fake_name {
    char name[FAKE_NAME_BYTES];
    unsigned file;
};

/* A directory, or changes of one: file NONE removes the name. */
enum { FAKE_NO_FILE = ~0u };
struct fake_names {
    struct fake_name *name; /* owned */
    size_t n;
};

uint64_t fake_random(uint64_t *state, uint64_t n);

void fake_file_write(
    struct fake_file *file, const void *bytes, uint64_t len, uint64_t at);
void fake_file_resize(struct fake_file *file, uint64_t len);
/* Room for these bytes, within the length. */
void fake_file_allocate(struct fake_file *file, uint64_t at, uint64_t len);
/* Zeroes, and the sectors that are wholly in them become a hole. */
void fake_file_punch(struct fake_file *file, uint64_t at, uint64_t len);
/* Bytes of the sectors from first up to last that are in a hole, or not. */
uint64_t fake_file_bytes(
    const struct fake_file *file, uint64_t first, uint64_t last, bool is_room);
/* Everything that is pending is stored; or, where random is not NULL, some of
 * it is and the rest is forgotten. */
void fake_file_sync(struct fake_file *file, uint64_t *random);
void fake_file_crash(struct fake_file *file, uint64_t *random);
void fake_file_fini(struct fake_file *file);

/* Returns NULL where there is no such name. */
struct fake_name *fake_names_find(struct fake_names *names, const char *name);
void fake_names_set(struct fake_names *names, const char *name, unsigned file);
void fake_names_add(struct fake_names *names, const char *name, unsigned file);
/* Does the first n of changes to names, and forgets them. */
void fake_names_apply(
    struct fake_names *names, struct fake_names *changes, size_t n);
void fake_names_copy(struct fake_names *to, const struct fake_names *from);

#endif
