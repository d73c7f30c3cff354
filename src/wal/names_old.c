/* SPDX-License-Identifier: BSD-3-Clause */
/* A disk in front of another one, which looks for the old name of a file where
 * there is none of that name. Most calls are about open files and go straight
 * through.
 *
 * What can go wrong: what can go wrong with the disk behind it. */
#include "wal/names_old.h"

#include "base/buf.h"
#include "base/disk_front.h"
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
    struct disk *under = disk_front_under(disk);
    char room[NAMES_BYTES];
    const char *as = found_as(under, name, room);
    return how == DISK_CREATE && as != name
        ? EEXIST
        : under->calls->open(under, as, how, fd);
}

static int
old_look(struct disk *disk, const char *name, int fd, struct disk_file *out)
{
    struct disk *under = disk_front_under(disk);
    char room[NAMES_BYTES];
    return under->calls->look(
        under, name == NULL ? NULL : found_as(under, name, room), fd, out);
}

/* Today's name counts where both are there, so the other one may go later. */
static int
old_rename(struct disk *disk, const char *from, const char *to)
{
    struct disk *under = disk_front_under(disk);
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
    struct disk *under = disk_front_under(disk);
    char room[NAMES_BYTES];
    return under->calls->unlink(under, found_as(under, name, room));
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
    return disk_front_under(disk)->calls->list(
        disk_front_under(disk), hand_on, &listing);
}

static const struct disk_calls old_calls = {DISK_FRONT_FILE_CALLS,
    .open = old_open, .look = old_look, .rename = old_rename,
    .unlink = old_unlink, .list = old_list};

int
names_old_create(struct disk *under, struct disk **out)
{
    return disk_front_create(&old_calls, under, NULL, out);
}

void
names_old_destroy(struct disk **disk)
{
    disk_front_destroy(disk);
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
    struct disk *under = disk_front_under(disk);
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
