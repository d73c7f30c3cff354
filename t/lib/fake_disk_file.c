/* SPDX-License-Identifier: BSD-3-Clause */
/* What a fake disk stores. A sector is the unit of loss: a crash leaves its
 * old or its new bytes, whichever was pending, in any combination over a file.
 * Length is lost or kept on its own: where only the length was kept, zeroes
 * stand. Changes of names are kept in their order, up to any one of them. A
 * rename is one change, which sets one name and removes the other. */
#include "base/assert.h"
#include "lib/fake_disk_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* splitmix64 (Steele, Lea, Flood, 2014): a number below n. */
uint64_t
fake_random(uint64_t *state, uint64_t n)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (z ^ (z >> 31)) % n;
}

static uint64_t
sectors_of(uint64_t len)
{
    return (len + FAKE_SECTOR_BYTES - 1) / FAKE_SECTOR_BYTES;
}

/* Makes zeroes of bytes from..to of the file, which are there. Of a long file
 * few sectors are ever written: the others are zero, and not touched. */
static void
zero(const struct fake_file *file, struct fake_bytes *bytes, uint64_t from,
    uint64_t to)
{
    while (from < to) {
        uint64_t i = from / FAKE_SECTOR_BYTES;
        uint64_t end = (i + 1) * FAKE_SECTOR_BYTES;
        end = end < to ? end : to;
        if (file->used[i]) {
            memset(bytes->byte + from, 0, end - from);
        }
        from = end;
    }
}

static void
resize(const struct fake_file *file, struct fake_bytes *bytes, uint64_t len)
{
    zero(file, bytes, len, bytes->len);
    if (len > bytes->capacity) {
        /* calloc: what nobody writes to costs no memory */
        uint8_t *more = calloc(2, len);
        ASSERT(more != NULL);
        if (bytes->len > 0) {
            memcpy(more, bytes->byte, bytes->len);
        }
        free(bytes->byte);
        bytes->byte = more;
        bytes->capacity = len * 2;
    }
    bytes->len = len;
}

static bool *
lengthen(bool *flags, uint64_t n, uint64_t more)
{
    flags = realloc(flags, more);
    ASSERT(flags != NULL);
    memset(flags + n, 0, more - n);
    return flags;
}

void
fake_file_resize(struct fake_file *file, uint64_t len)
{
    uint64_t sectors = sectors_of(len);
    uint64_t cut = sectors_of(file->now.len);
    file->changes++;
    resize(file, &file->now, len);
    if (sectors > file->sectors) {
        file->pending = lengthen(file->pending, file->sectors, sectors * 2);
        file->room = lengthen(file->room, file->sectors, sectors * 2);
        file->used = lengthen(file->used, file->sectors, sectors * 2);
        file->sectors = sectors * 2;
    }
    /* what was cut off is zero if it comes back */
    for (uint64_t i = sectors; i < cut; i++) {
        file->pending[i] = true;
        file->room[i] = false;
    }
    if (len % FAKE_SECTOR_BYTES != 0) {
        file->pending[sectors - 1] = true;
    }
}

void
fake_file_write(
    struct fake_file *file, const void *bytes, uint64_t len, uint64_t at)
{
    if (len == 0) {
        return;
    }
    if (at + len > file->now.len) {
        fake_file_resize(file, at + len);
    }
    file->changes++;
    memcpy(file->now.byte + at, bytes, len);
    for (uint64_t i = at / FAKE_SECTOR_BYTES; i < sectors_of(at + len); i++) {
        file->pending[i] = true;
        file->room[i] = true;
        file->used[i] = true;
    }
}

void
fake_file_allocate(struct fake_file *file, uint64_t at, uint64_t len)
{
    for (uint64_t i = at / FAKE_SECTOR_BYTES; i < sectors_of(at + len); i++) {
        file->room[i] = true;
    }
}

void
fake_file_punch(struct fake_file *file, uint64_t at, uint64_t len)
{
    uint64_t end = at + len < file->now.len ? at + len : file->now.len;
    if (at >= end) {
        return;
    }
    file->changes++;
    zero(file, &file->now, at, end);
    for (uint64_t i = at / FAKE_SECTOR_BYTES; i < sectors_of(end); i++) {
        uint64_t first = i * FAKE_SECTOR_BYTES;
        bool is_part = first < at ||
            (first + FAKE_SECTOR_BYTES > end && end < file->now.len);
        file->pending[i] = file->pending[i] || file->room[i];
        file->room[i] = file->room[i] && is_part;
    }
}

uint64_t
fake_file_bytes(
    const struct fake_file *file, uint64_t first, uint64_t last, bool is_room)
{
    uint64_t n = 0;
    for (uint64_t i = first; i < last; i++) {
        n += (i < file->sectors && file->room[i]) == is_room;
    }
    return n * FAKE_SECTOR_BYTES;
}

/* Bytes of sector i that are within bytes. */
static uint64_t
sector_len(const struct fake_bytes *bytes, uint64_t i)
{
    uint64_t at = i * FAKE_SECTOR_BYTES;
    if (bytes->len <= at) {
        return 0;
    }
    return bytes->len - at < FAKE_SECTOR_BYTES ? bytes->len - at
                                               : FAKE_SECTOR_BYTES;
}

static void
store_sector(struct fake_file *file, uint64_t i)
{
    uint64_t at = i * FAKE_SECTOR_BYTES;
    uint64_t len = sector_len(&file->stored, i);
    uint64_t there = sector_len(&file->now, i);
    if (len == 0) {
        return;
    }
    memset(file->stored.byte + at, 0, len);
    if (there > 0) {
        memcpy(file->stored.byte + at, file->now.byte + at,
            there < len ? there : len);
    }
}

void
fake_file_sync(struct fake_file *file, uint64_t *random)
{
    if (random == NULL || fake_random(random, 2) == 0) {
        resize(file, &file->stored, file->now.len);
    }
    for (uint64_t i = 0; i < file->sectors; i++) {
        if (file->pending[i] &&
            (random == NULL || fake_random(random, 2) == 0)) {
            store_sector(file, i);
        }
        file->pending[i] = false;
    }
}

/* Sector i is what was stored of it; what a hole was made in may be back. */
static void
restore_sector(struct fake_file *file, uint64_t i)
{
    static const uint8_t zeroes[FAKE_SECTOR_BYTES];
    uint64_t at = i * FAKE_SECTOR_BYTES;
    uint64_t len = sector_len(&file->now, i);
    if (len > 0) {
        memcpy(file->now.byte + at, file->stored.byte + at, len);
    }
    if (len == 0) {
        file->room[i] = false;
    } else if (memcmp(file->now.byte + at, zeroes, len) != 0) {
        file->room[i] = true;
    }
}

void
fake_file_crash(struct fake_file *file, uint64_t *random)
{
    fake_file_sync(file, random);
    resize(file, &file->now, file->stored.len);
    for (uint64_t i = 0; i < file->sectors; i++) {
        if (file->used[i] || sector_len(&file->now, i) == 0) {
            restore_sector(file, i);
        }
    }
    file->opens = 0;
    file->names = 0;
}

void
fake_file_fini(struct fake_file *file)
{
    free(file->now.byte);
    free(file->stored.byte);
    free(file->pending);
    free(file->room);
    free(file->used);
}

struct fake_name *
fake_names_find(struct fake_names *names, const char *name)
{
    for (size_t i = 0; i < names->n; i++) {
        if (strcmp(names->name[i].name, name) == 0) {
            return &names->name[i];
        }
    }
    return NULL;
}

void
fake_names_add(struct fake_names *names, const char *name, unsigned file)
{
    names->name = realloc(names->name, (names->n + 1) * sizeof(*names->name));
    ASSERT(names->name != NULL && strlen(name) < FAKE_NAME_BYTES);
    (void)snprintf(names->name[names->n].name, FAKE_NAME_BYTES, "%s", name);
    names->name[names->n++].file = file;
}

/* A file has one name here, so a name that is set is all that leads to it. */
void
fake_names_set(struct fake_names *names, const char *name, unsigned file)
{
    size_t n = 0;
    for (size_t i = 0; i < names->n; i++) {
        if (strcmp(names->name[i].name, name) != 0 &&
            names->name[i].file != file) {
            names->name[n++] = names->name[i];
        }
    }
    names->n = n;
    if (file != FAKE_NO_FILE) {
        fake_names_add(names, name, file);
    }
}

void
fake_names_apply(
    struct fake_names *names, struct fake_names *changes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        fake_names_set(names, changes->name[i].name, changes->name[i].file);
    }
    for (size_t i = n; i < changes->n; i++) {
        changes->name[i - n] = changes->name[i];
    }
    changes->n -= n;
}

void
fake_names_copy(struct fake_names *to, const struct fake_names *from)
{
    to->n = 0;
    for (size_t i = 0; i < from->n; i++) {
        fake_names_add(to, from->name[i].name, from->name[i].file);
    }
}
