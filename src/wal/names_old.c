/* SPDX-License-Identifier: BSD-3-Clause */
/* A disk in front of another one, which looks for the old name of a file where
 * there is none of that name. Most calls are about open files and go straight
 * through.
 *
 * What can go wrong: what can go wrong with the disk behind it. */
#include "wal/names_old.h"

#include "base/assert.h"
#include "base/buf.h"
#include "base/num.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What stands before and behind the number, then and now. */
static const struct {
    const char *before, *old, *now;
} forms[] = {
    {"log-", "", ".wal"},
    {"log-", ".new", ".wal.new"},
    {"checkpoint-", "", ".ckpt"},
};

enum { FORMS = sizeof forms / sizeof forms[0] };

/* True where name has that form; out: the other one. */
static bool
translate(const char *name, const char *before, const char *from,
    const char *to, char out[NAMES_BYTES])
{
    size_t len = strlen(name), n = strlen(before);
    uint64_t number;
    if (len != n + NUM_U64_DIGITS_MAX + strlen(from) ||
        memcmp(name, before, n) != 0 ||
        strcmp(name + n + NUM_U64_DIGITS_MAX, from) != 0 ||
        !num_parse_u64(name + n, NUM_U64_DIGITS_MAX, &number)) {
        return false;
    }
    (void)snprintf(
        out, NAMES_BYTES, "%.*s%s", (int)(n + NUM_U64_DIGITS_MAX), name, to);
    return true;
}

bool
names_old_parse(const char *name, char out[NAMES_BYTES])
{
    for (size_t i = 0; i < FORMS; i++) {
        if (translate(
                name, forms[i].before, forms[i].old, forms[i].now, out)) {
            return true;
        }
    }
    return false;
}

bool
names_old_make(const char *name, char out[NAMES_BYTES])
{
    for (size_t i = 0; i < FORMS; i++) {
        if (translate(
                name, forms[i].before, forms[i].now, forms[i].old, out)) {
            return true;
        }
    }
    return false;
}

static void
note_form(void *context, const char *name)
{
    struct names_old_found *found = context;
    char other[NAMES_BYTES];
    found->has_old |= names_old_parse(name, other);
    if (names_old_make(name, other) && strcmp(name, found->today) > 0) {
        (void)snprintf(found->today, sizeof found->today, "%s", name);
    }
}

int
names_old_find(struct disk *disk, struct names_old_found *found)
{
    *found = (struct names_old_found){0};
    return disk->calls->list(disk, note_form, found);
}

/* ---- the disk ---- */

enum { OLD_DISK_MAGIC = 0x01dd15c0 };

struct old_disk {
    struct disk disk; /* first: what callers hold */
    uint32_t magic;   /* OLD_DISK_MAGIC */
    struct disk *under;
};

static struct disk *
under_of(struct disk *disk)
{
    const struct old_disk *it = (const struct old_disk *)disk;
    ASSERT(it->magic == OLD_DISK_MAGIC);
    return it->under;
}

/* The name that the file has: out is room for it. */
static const char *
found_as(struct disk *under, const char *name, char out[NAMES_BYTES])
{
    struct disk_file is;
    return names_old_make(name, out) &&
            under->calls->look(under, name, -1, &is) == ENOENT &&
            under->calls->look(under, out, -1, &is) == 0
        ? out
        : name;
}

static int
old_open(struct disk *disk, const char *name, enum disk_open how, int *fd)
{
    struct disk *under = under_of(disk);
    char room[NAMES_BYTES];
    const char *as = found_as(under, name, room);
    return how == DISK_CREATE && as != name
        ? EEXIST
        : under->calls->open(under, as, how, fd);
}

static void
old_close(struct disk *disk, int fd)
{
    under_of(disk)->calls->close(under_of(disk), fd);
}

static int
old_read(struct disk *disk, int fd, void *bytes, size_t len, uint64_t at,
    size_t *n_read)
{
    struct disk *under = under_of(disk);
    return under->calls->read(under, fd, bytes, len, at, n_read);
}

static int
old_write(
    struct disk *disk, int fd, const void *bytes, size_t len, uint64_t at)
{
    struct disk *under = under_of(disk);
    return under->calls->write(under, fd, bytes, len, at);
}

static int
old_allocate(struct disk *disk, int fd, uint64_t at, uint64_t len)
{
    return under_of(disk)->calls->allocate(under_of(disk), fd, at, len);
}

static int
old_truncate(struct disk *disk, int fd, uint64_t len)
{
    return under_of(disk)->calls->truncate(under_of(disk), fd, len);
}

static int
old_punch(struct disk *disk, int fd, uint64_t at, uint64_t len)
{
    return under_of(disk)->calls->punch(under_of(disk), fd, at, len);
}

static int
old_next_data(
    struct disk *disk, int fd, uint64_t at, uint64_t *from, uint64_t *to)
{
    struct disk *under = under_of(disk);
    return under->calls->next_data(under, fd, at, from, to);
}

static int
old_size(struct disk *disk, int fd, uint64_t *len)
{
    return under_of(disk)->calls->size(under_of(disk), fd, len);
}

static int
old_room(struct disk *disk, uint64_t *bytes)
{
    return under_of(disk)->calls->room(under_of(disk), bytes);
}

static int
old_look(struct disk *disk, const char *name, int fd, struct disk_file *out)
{
    struct disk *under = under_of(disk);
    char room[NAMES_BYTES];
    return under->calls->look(
        under, name == NULL ? NULL : found_as(under, name, room), fd, out);
}

static int
old_sync(struct disk *disk, int fd)
{
    return under_of(disk)->calls->sync(under_of(disk), fd);
}

/* Today's name counts where both are there, so the other one may go later. */
static int
old_rename(struct disk *disk, const char *from, const char *to)
{
    struct disk *under = under_of(disk);
    char room[NAMES_BYTES], old[NAMES_BYTES];
    int error = under->calls->rename(under, found_as(under, from, room), to);
    if (error == 0 && names_old_make(to, old)) {
        (void)under->calls->unlink(under, old);
    }
    return error;
}

static int
old_unlink(struct disk *disk, const char *name)
{
    struct disk *under = under_of(disk);
    char room[NAMES_BYTES];
    return under->calls->unlink(under, found_as(under, name, room));
}

static int
old_sync_names(struct disk *disk)
{
    return under_of(disk)->calls->sync_names(under_of(disk));
}

struct listing {
    void (*name_fn)(void *context, const char *name);
    void *context;
};

static void
hand_on(void *context, const char *name)
{
    const struct listing *listing = context;
    char now[NAMES_BYTES];
    listing->name_fn(
        listing->context, names_old_parse(name, now) ? now : name);
}

static int
old_list(struct disk *disk, void (*name_fn)(void *context, const char *name),
    void *context)
{
    struct listing listing = {name_fn, context};
    return under_of(disk)->calls->list(under_of(disk), hand_on, &listing);
}

static int
old_ring(struct disk *disk, unsigned n_reads, struct disk_ring **out)
{
    struct disk *under = under_of(disk);
    return under->calls->ring == NULL
        ? ENOSYS
        : under->calls->ring(under, n_reads, out);
}

static const char *
old_text(struct disk *disk, int error)
{
    return disk_say(under_of(disk), error);
}

static const struct disk_calls old_calls = {
    .open = old_open,
    .close = old_close,
    .read = old_read,
    .write = old_write,
    .allocate = old_allocate,
    .truncate = old_truncate,
    .punch = old_punch,
    .next_data = old_next_data,
    .size = old_size,
    .room = old_room,
    .look = old_look,
    .sync = old_sync,
    .rename = old_rename,
    .unlink = old_unlink,
    .sync_names = old_sync_names,
    .list = old_list,
    .ring = old_ring,
    .text = old_text,
};

int
names_old_create(struct disk *under, struct disk **out)
{
    struct old_disk *it = malloc(sizeof *it);
    if (it == NULL) {
        return ENOMEM;
    }
    *it = (struct old_disk){{&old_calls}, OLD_DISK_MAGIC, under};
    *out = &it->disk;
    return 0;
}

void
names_old_destroy(struct disk **disk)
{
    if (*disk != NULL) {
        (void)under_of(*disk);
        ((struct old_disk *)*disk)->magic = 0;
    }
    free(*disk);
    *disk = NULL;
}

/* ---- carrying over ---- */

static void
gather(void *context, const char *name)
{
    char now[NAMES_BYTES];
    if (names_old_parse(name, now)) {
        buf_add(context, name, strlen(name) + 1);
    }
}

static int
carry_one(struct disk *under, const char *name)
{
    struct disk_file is;
    char now[NAMES_BYTES];
    size_t len = strlen(name), suffix = strlen(".new");
    (void)names_old_parse(name, now);
    if (len > suffix && strcmp(name + len - suffix, ".new") == 0) {
        return under->calls->unlink(under, name);
    }
    int error = under->calls->look(under, now, -1, &is);
    return error == ENOENT ? under->calls->rename(under, name, now) : error;
}

int
names_old_carry(struct disk *disk)
{
    struct disk *under = under_of(disk);
    struct buf names = {0};
    int error = under->calls->list(under, gather, &names);
    if (error == 0 && names.failed) {
        error = ENOMEM;
    }
    for (size_t at = 0; error == 0 && at < names.len;
         at += strlen(names.data + at) + 1) {
        error = carry_one(under, names.data + at);
    }
    buf_fini(&names);
    return error == 0 ? under->calls->sync_names(under) : error;
}
