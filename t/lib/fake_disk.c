/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls of a fake disk, all under one lock. A file descriptor is the
 * number of the file. */
#include "lib/fake_disk.h"

#include "base/assert.h"
#include "base/mutex.h"
#include "lib/fake_disk_priv.h"
#include "lib/fake_ring.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fake_disk {
    struct disk disk;     /* first: what callers hold */
    struct mutex lock;    /* all that follows */
    pthread_cond_t moved; /* held, n_held */
    uint64_t random;
    struct fake_file *file; /* owned; by number */
    unsigned n_files;
    struct fake_names now;     /* what a lookup finds */
    struct fake_names stored;  /* what a crash leaves */
    struct fake_names pending; /* changes from stored to now */
    uint64_t bytes_max;
    unsigned fail_mask, fail_in, fails; /* fail_in: 1 is the next one */
    int fail_err;
    bool fails_forever;
    const char *fail_name; /* those about such a name; NULL: all */
    unsigned die_in;       /* 0: never */
    bool is_dead;
    unsigned held;         /* mask of calls that wait */
    const char *held_name; /* those about such a name; NULL: all */
    unsigned n_held;
    unsigned count[FAKE_CALLS];
    struct fake_event *event; /* owned */
    size_t n_events, events_capacity;
};

static struct fake_disk *
fake_of(struct disk *disk)
{
    return (struct fake_disk *)disk;
}

/* What is to become of a call. */
enum fate {
    FATE_DONE,
    FATE_FAILS, /* and may have been done in part */
    FATE_DIES,  /* may have been done, too */
    FATE_DEAD   /* changes nothing */
};

struct call {
    struct fake_disk *fake;
    struct fake_event event;
    enum fate fate;
};

/* True where a call about that name is one of those that fail. */
static bool
is_meant(const struct fake_disk *fake, enum fake_call kind, const char *name)
{
    const char *start = fake->fail_name;
    return (fake->fail_mask & 1u << kind) != 0 &&
        (start == NULL ||
            (name != NULL && strncmp(name, start, strlen(start)) == 0));
}

static enum fate
choose(struct fake_disk *fake, enum fake_call kind, const char *name)
{
    unsigned bit = 1u << kind;
    if (fake->is_dead) {
        return FATE_DEAD;
    }
    if (fake->die_in > 0 && (FAKE_CHANGES & bit) != 0 && --fake->die_in == 0) {
        fake->is_dead = true;
        return FATE_DIES;
    }
    if (!is_meant(fake, kind, name)) {
        return FATE_DONE;
    }
    if (fake->fail_in > 1) {
        fake->fail_in--;
        return FATE_DONE;
    }
    if (!fake->fails_forever) {
        fake->fail_mask = 0;
    }
    fake->fails++;
    return FATE_FAILS;
}

static bool
is_held(const struct fake_disk *fake, enum fake_call kind, const char *name)
{
    const char *start = fake->held_name;
    return (fake->held & 1u << kind) != 0 &&
        (start == NULL ||
            (name != NULL && strncmp(name, start, strlen(start)) == 0));
}

/* Takes the lock. name: of what the call is about; or NULL, and fd is that of
 * the file. */
static struct call
begin(struct disk *disk, enum fake_call kind, const char *name, int fd)
{
    struct fake_disk *fake = fake_of(disk);
    struct call call = {.fake = fake, .event = {.call = kind}};
    mutex_lock(&fake->lock);
    if (is_held(fake, kind, name)) {
        fake->n_held++;
        pthread_cond_broadcast(&fake->moved);
        do {
            mutex_wait(&fake->lock, &fake->moved);
        } while (is_held(fake, kind, name));
        fake->n_held--;
    }
    call.fate = choose(fake, kind, name != NULL ? name : fake->file[fd].name);
    if (call.fate == FATE_FAILS) {
        call.event.err = fake->fail_err;
    } else if (call.fate != FATE_DONE) {
        call.event.err = EIO;
    }
    if (name != NULL) {
        (void)snprintf(call.event.name, FAKE_NAME_BYTES, "%s", name);
    }
    return call;
}

static struct call
begin_file(
    struct disk *disk, enum fake_call kind, int fd, uint64_t at, uint64_t len)
{
    struct call call = begin(disk, kind, NULL, fd);
    ASSERT(fd >= 0 && (unsigned)fd < call.fake->n_files);
    struct fake_file *file = &call.fake->file[fd];
    ASSERT(file->opens > 0);
    call.event.file = (unsigned)fd;
    call.event.at = at;
    call.event.len = len;
    memcpy(call.event.name, file->name, FAKE_NAME_BYTES);
    return call;
}

/* Notes the call and gives the lock back. */
static int
end(struct call *call)
{
    struct fake_disk *fake = call->fake;
    fake->count[call->event.call]++;
    if (fake->n_events == fake->events_capacity) {
        fake->events_capacity = fake->events_capacity * 2 + 64;
        fake->event =
            realloc(fake->event, fake->events_capacity * sizeof(*fake->event));
        ASSERT(fake->event != NULL);
    }
    fake->event[fake->n_events++] = call->event;
    mutex_unlock(&fake->lock);
    return call->event.err;
}

static struct fake_file *
file_of(const struct call *call)
{
    return &call->fake->file[call->event.file];
}

/* Whether a call that changes one thing does so. */
static bool
is_done(const struct call *call)
{
    return call->fate == FATE_DONE ||
        (call->fate == FATE_DIES && fake_random(&call->fake->random, 2) == 0);
}

static void
set_name(struct fake_disk *fake, const char *name, unsigned file)
{
    struct fake_name *old = fake_names_find(&fake->now, name);
    if (old != NULL) {
        fake->file[old->file].names = 0;
    }
    if (file != FAKE_NO_FILE) {
        fake->file[file].names = 1;
    }
    fake_names_set(&fake->now, name, file);
    fake_names_add(&fake->pending, name, file);
}

static unsigned
make_file(struct fake_disk *fake, const char *name)
{
    fake->file =
        realloc(fake->file, (fake->n_files + 1) * sizeof(*fake->file));
    ASSERT(fake->file != NULL);
    fake->file[fake->n_files] = (struct fake_file){0};
    (void)snprintf(
        fake->file[fake->n_files].name, FAKE_NAME_BYTES, "%s", name);
    set_name(fake, name, fake->n_files);
    return fake->n_files++;
}

static int
fake_open(struct disk *disk, const char *name, enum disk_open how, int *fd)
{
    struct call call = begin(disk, FAKE_OPEN, name, -1);
    struct fake_name *found = fake_names_find(&call.fake->now, name);
    if (call.fate != FATE_DONE) {
        return end(&call);
    }
    if (how == DISK_CREATE && found != NULL) {
        call.event.err = EEXIST;
    } else if (how == DISK_CREATE) {
        call.event.file = make_file(call.fake, name);
    } else if (found == NULL) {
        call.event.err = ENOENT;
    } else {
        call.event.file = found->file;
    }
    if (call.event.err == 0) {
        file_of(&call)->opens++;
        *fd = (int)call.event.file;
    }
    return end(&call);
}

static void
fake_close(struct disk *disk, int fd)
{
    struct fake_disk *fake = fake_of(disk);
    mutex_lock(&fake->lock);
    ASSERT(fd >= 0 && (unsigned)fd < fake->n_files);
    ASSERT(fake->file[fd].opens > 0);
    fake->file[fd].opens--;
    mutex_unlock(&fake->lock);
}

static int
fake_read(struct disk *disk, int fd, void *bytes, size_t len, uint64_t at,
    size_t *n_read)
{
    struct call call = begin_file(disk, FAKE_READ, fd, at, len);
    const struct fake_bytes *now = &file_of(&call)->now;
    *n_read = 0;
    if (call.fate == FATE_DONE && at < now->len) {
        *n_read = now->len - at < len ? now->len - at : len;
        memcpy(bytes, now->byte + at, *n_read);
    }
    return end(&call);
}

/* What the files take that have a name, or are open. */
static uint64_t
used_bytes(const struct fake_disk *fake)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < fake->n_files; i++) {
        const struct fake_file *each = &fake->file[i];
        if (each->names > 0 || each->opens > 0) {
            sum += fake_file_bytes(each, 0, each->sectors, true);
        }
    }
    return sum;
}

/* Never fails, and is no event: who asks loses nothing by it. */
static int
fake_room(struct disk *disk, uint64_t *bytes)
{
    struct fake_disk *fake = (struct fake_disk *)disk;
    mutex_lock(&fake->lock);
    uint64_t used = used_bytes(fake);
    *bytes = fake->bytes_max == 0 ? UINT64_MAX
        : used > fake->bytes_max  ? 0
                                  : fake->bytes_max - used;
    mutex_unlock(&fake->lock);
    return 0;
}

/* ENOSPC where there is no room for these bytes of the file. */
static int
has_room(struct fake_disk *fake, const struct fake_file *file, uint64_t at,
    uint64_t len)
{
    if (fake->bytes_max == 0 || len == 0) {
        return 0;
    }
    uint64_t more = fake_file_bytes(file, at / FAKE_SECTOR_BYTES,
        (at + len - 1) / FAKE_SECTOR_BYTES + 1, false);
    if (more == 0) {
        return 0;
    }
    return used_bytes(fake) + more > fake->bytes_max ? ENOSPC : 0;
}

static int
fake_write(
    struct disk *disk, int fd, const void *bytes, size_t len, uint64_t at)
{
    struct call call = begin_file(disk, FAKE_WRITE, fd, at, len);
    struct fake_disk *fake = call.fake;
    struct fake_file *file = file_of(&call);
    if (call.fate == FATE_DONE) {
        call.event.err = has_room(fake, file, at, len);
    }
    if (call.event.err == 0) {
        fake_file_write(file, bytes, len, at);
    } else if (call.fate != FATE_DEAD) {
        uint64_t part = fake_random(&fake->random, len + 1);
        if (has_room(fake, file, at, part) == 0) {
            fake_file_write(file, bytes, part, at);
        }
    }
    return end(&call);
}

static int
fake_allocate(struct disk *disk, int fd, uint64_t at, uint64_t len)
{
    struct call call = begin_file(disk, FAKE_ALLOCATE, fd, at, len);
    struct fake_file *file = file_of(&call);
    if (is_done(&call)) {
        int err = has_room(call.fake, file, at, len);
        if (err == 0 && at + len > file->now.len) {
            fake_file_resize(file, at + len);
        }
        if (err == 0) {
            fake_file_allocate(file, at, len);
        } else if (call.event.err == 0) {
            call.event.err = err;
        }
    }
    return end(&call);
}

static int
fake_punch(struct disk *disk, int fd, uint64_t at, uint64_t len)
{
    struct call call = begin_file(disk, FAKE_PUNCH, fd, at, len);
    if (is_done(&call)) {
        fake_file_punch(file_of(&call), at, len);
    }
    return end(&call);
}

/* Runs of sectors that are in no hole. */
static int
fake_next_data(
    struct disk *disk, int fd, uint64_t at, uint64_t *from, uint64_t *to)
{
    struct call call = begin_file(disk, FAKE_NEXT_DATA, fd, at, 0);
    const struct fake_file *file = file_of(&call);
    *from = at;
    while (*from < file->now.len && !file->room[*from / FAKE_SECTOR_BYTES]) {
        *from += FAKE_SECTOR_BYTES - *from % FAKE_SECTOR_BYTES;
    }
    *to = *from;
    while (call.fate == FATE_DONE && *to < file->now.len &&
        file->room[*to / FAKE_SECTOR_BYTES]) {
        *to += FAKE_SECTOR_BYTES - *to % FAKE_SECTOR_BYTES;
    }
    if (*to > *from && *to > file->now.len) {
        *to = file->now.len;
    }
    return end(&call);
}

static int
fake_truncate(struct disk *disk, int fd, uint64_t len)
{
    struct call call = begin_file(disk, FAKE_TRUNCATE, fd, 0, len);
    if (is_done(&call)) {
        fake_file_resize(file_of(&call), len);
    }
    return end(&call);
}

static int
fake_size(struct disk *disk, int fd, uint64_t *len)
{
    struct call call = begin_file(disk, FAKE_SIZE, fd, 0, 0);
    *len = call.fate == FATE_DONE ? file_of(&call)->now.len : 0;
    return end(&call);
}

static int
fake_look(struct disk *disk, const char *name, int fd, struct disk_file *out)
{
    struct call call = name == NULL ? begin_file(disk, FAKE_LOOK, fd, 0, 0)
                                    : begin(disk, FAKE_LOOK, name, -1);
    if (name != NULL && call.fate == FATE_DONE) {
        struct fake_name *found = fake_names_find(&call.fake->now, name);
        if (found == NULL) {
            call.event.err = ENOENT;
            return end(&call);
        }
        call.event.file = found->file;
    }
    if (call.fate == FATE_DONE) {
        const struct fake_file *file = file_of(&call);
        *out = (struct disk_file){.device = 1,
            .inode = call.event.file + 1,
            .bytes = file->now.len,
            .changed_ns = file->changes,
            .names = file->names};
    }
    return end(&call);
}

static int
fake_sync(struct disk *disk, int fd)
{
    struct call call = begin_file(disk, FAKE_SYNC, fd, 0, 0);
    if (is_done(&call)) {
        fake_file_sync(file_of(&call), NULL);
    } else if (call.fate == FATE_FAILS) {
        fake_file_sync(file_of(&call), &call.fake->random);
    }
    return end(&call);
}

static int
fake_rename(struct disk *disk, const char *from, const char *to)
{
    struct call call = begin(disk, FAKE_RENAME, to, -1);
    struct fake_name *found = fake_names_find(&call.fake->now, from);
    if (found == NULL && call.fate == FATE_DONE) {
        call.event.err = ENOENT;
    } else if (found != NULL) {
        call.event.file = found->file;
        if (is_done(&call) ||
            (call.fate == FATE_FAILS &&
                fake_random(&call.fake->random, 2) == 0)) {
            set_name(call.fake, to, found->file);
        }
    }
    return end(&call);
}

static int
fake_unlink(struct disk *disk, const char *name)
{
    struct call call = begin(disk, FAKE_UNLINK, name, -1);
    struct fake_name *found = fake_names_find(&call.fake->now, name);
    if (found == NULL && call.fate == FATE_DONE) {
        call.event.err = ENOENT;
    } else if (found != NULL) {
        call.event.file = found->file; /* also where it fails */
        if (is_done(&call)) {
            set_name(call.fake, name, FAKE_NO_FILE);
        }
    }
    return end(&call);
}

static int
fake_sync_names(struct disk *disk)
{
    struct call call = begin(disk, FAKE_SYNC_NAMES, ".", -1);
    struct fake_disk *fake = call.fake;
    size_t n = 0;
    if (is_done(&call)) {
        n = fake->pending.n;
    } else if (call.fate != FATE_DEAD) {
        n = fake_random(&fake->random, fake->pending.n + 1);
    }
    fake_names_apply(&fake->stored, &fake->pending, n);
    return end(&call);
}

static int
fake_list(struct disk *disk, void (*name_fn)(void *context, const char *name),
    void *context)
{
    struct call call = begin(disk, FAKE_LIST, ".", -1);
    struct fake_names names = {0};
    if (call.fate == FATE_DONE) {
        fake_names_copy(&names, &call.fake->now);
    }
    int err = end(&call);
    for (size_t i = 0; i < names.n; i++) {
        name_fn(context, names.name[i].name);
    }
    free(names.name);
    return err;
}

static const struct disk_calls fake_calls = {
    .open = fake_open,
    .close = fake_close,
    .read = fake_read,
    .write = fake_write,
    .allocate = fake_allocate,
    .truncate = fake_truncate,
    .punch = fake_punch,
    .next_data = fake_next_data,
    .size = fake_size,
    .room = fake_room,
    .look = fake_look,
    .sync = fake_sync,
    .rename = fake_rename,
    .unlink = fake_unlink,
    .sync_names = fake_sync_names,
    .list = fake_list,
    .ring = fake_ring_open,
};

struct fake_disk *
fake_disk_create(uint64_t seed)
{
    struct fake_disk *fake = calloc(1, sizeof(*fake));
    ASSERT(fake != NULL);
    fake->disk.calls = &fake_calls;
    fake->random = seed;
    mutex_init(&fake->lock);
    pthread_cond_init(&fake->moved, NULL);
    return fake;
}

void
fake_disk_destroy(struct fake_disk **fake)
{
    struct fake_disk *it = *fake;
    for (unsigned i = 0; i < it->n_files; i++) {
        fake_file_fini(&it->file[i]);
    }
    free(it->file);
    free(it->now.name);
    free(it->stored.name);
    free(it->pending.name);
    free(it->event);
    pthread_cond_destroy(&it->moved);
    mutex_fini(&it->lock);
    free(it);
    *fake = NULL;
}

struct disk *
fake_disk_as_disk(struct fake_disk *fake)
{
    return &fake->disk;
}

void
fake_disk_fail(
    struct fake_disk *fake, unsigned mask, unsigned n, int err, bool forever)
{
    ASSERT(n > 0 && err != 0);
    mutex_lock(&fake->lock);
    fake->fail_mask = mask;
    fake->fail_in = n;
    fake->fail_err = err;
    fake->fails_forever = forever;
    fake->fail_name = NULL;
    fake->fails = 0;
    mutex_unlock(&fake->lock);
}

void
fake_disk_fail_name(
    struct fake_disk *fake, enum fake_call call, int err, const char *start)
{
    fake_disk_fail(fake, 0, 1, err, false);
    mutex_lock(&fake->lock);
    fake->fail_mask = 1u << call;
    fake->fail_name = start;
    mutex_unlock(&fake->lock);
}

unsigned
fake_disk_heal(struct fake_disk *fake)
{
    mutex_lock(&fake->lock);
    fake->fail_mask = 0;
    unsigned fails = fake->fails;
    mutex_unlock(&fake->lock);
    return fails;
}

void
fake_disk_limit(struct fake_disk *fake, uint64_t bytes)
{
    mutex_lock(&fake->lock);
    fake->bytes_max = bytes;
    mutex_unlock(&fake->lock);
}

void
fake_disk_die(struct fake_disk *fake, unsigned n)
{
    mutex_lock(&fake->lock);
    fake->die_in = n;
    mutex_unlock(&fake->lock);
}

bool
fake_disk_is_dead(struct fake_disk *fake)
{
    mutex_lock(&fake->lock);
    bool is_dead = fake->is_dead;
    mutex_unlock(&fake->lock);
    return is_dead;
}

static void
come_back(struct fake_disk *fake)
{
    fake->is_dead = false;
    fake->die_in = 0;
    fake->fail_mask = 0;
    for (unsigned i = 0; i < fake->n_files; i++) {
        fake->file[i].opens = 0;
    }
}

/* What was stored is what there is. */
static void
take_stored(struct fake_disk *fake)
{
    fake->pending.n = 0;
    fake_names_copy(&fake->now, &fake->stored);
    for (unsigned i = 0; i < fake->n_files; i++) {
        fake_file_crash(&fake->file[i], &fake->random);
    }
    for (size_t i = 0; i < fake->now.n; i++) {
        fake->file[fake->now.name[i].file].names = 1;
    }
    come_back(fake);
}

void
fake_disk_crash(struct fake_disk *fake)
{
    mutex_lock(&fake->lock);
    fake_names_apply(&fake->stored, &fake->pending,
        fake_random(&fake->random, fake->pending.n + 1));
    take_stored(fake);
    mutex_unlock(&fake->lock);
}

void
fake_disk_crash_unordered(struct fake_disk *fake)
{
    mutex_lock(&fake->lock);
    for (size_t i = 0; i < fake->pending.n; i++) {
        const struct fake_name *change = &fake->pending.name[i];
        if (fake_random(&fake->random, 2) == 0) {
            fake_names_set(&fake->stored, change->name, change->file);
        }
    }
    take_stored(fake);
    mutex_unlock(&fake->lock);
}

void
fake_disk_revive(struct fake_disk *fake)
{
    mutex_lock(&fake->lock);
    come_back(fake);
    mutex_unlock(&fake->lock);
}

void
fake_disk_hold(struct fake_disk *fake, enum fake_call call)
{
    mutex_lock(&fake->lock);
    fake->held |= 1u << call;
    fake->held_name = NULL;
    mutex_unlock(&fake->lock);
}

void
fake_disk_hold_name(
    struct fake_disk *fake, enum fake_call call, const char *start)
{
    mutex_lock(&fake->lock);
    fake->held = 1u << call;
    fake->held_name = start;
    mutex_unlock(&fake->lock);
}

void
fake_disk_wait_held(struct fake_disk *fake)
{
    fake_disk_wait_held_many(fake, 1);
}

void
fake_disk_wait_held_many(struct fake_disk *fake, unsigned n)
{
    mutex_lock(&fake->lock);
    while (fake->n_held < n) {
        mutex_wait(&fake->lock, &fake->moved);
    }
    mutex_unlock(&fake->lock);
}

void
fake_disk_let_go(struct fake_disk *fake)
{
    mutex_lock(&fake->lock);
    fake->held = 0;
    pthread_cond_broadcast(&fake->moved);
    mutex_unlock(&fake->lock);
}

void
fake_disk_flip(
    struct fake_disk *fake, const char *name, uint64_t at, uint8_t bits)
{
    mutex_lock(&fake->lock);
    struct fake_name *found = fake_names_find(&fake->now, name);
    ASSERT(found != NULL);
    struct fake_file *file = &fake->file[found->file];
    ASSERT(at < file->now.len && at < file->stored.len);
    file->now.byte[at] ^= bits;
    file->stored.byte[at] ^= bits;
    file->room[at / FAKE_SECTOR_BYTES] = true;
    file->used[at / FAKE_SECTOR_BYTES] = true;
    mutex_unlock(&fake->lock);
}

unsigned
fake_disk_count(struct fake_disk *fake, enum fake_call call)
{
    mutex_lock(&fake->lock);
    unsigned n = fake->count[call];
    mutex_unlock(&fake->lock);
    return n;
}

const struct fake_event *
fake_disk_events(struct fake_disk *fake, size_t *n)
{
    *n = fake->n_events;
    return fake->event;
}

size_t
fake_disk_count_events(struct fake_disk *fake, size_t from,
    bool (*match_fn)(const struct fake_event *event))
{
    size_t n = 0;
    mutex_lock(&fake->lock);
    for (size_t i = from; i < fake->n_events; i++) {
        n += match_fn == NULL || match_fn(&fake->event[i]);
    }
    mutex_unlock(&fake->lock);
    return n;
}

const uint8_t *
fake_disk_bytes(const struct fake_disk *fake, unsigned file, uint64_t *len)
{
    ASSERT(file < fake->n_files);
    *len = fake->file[file].now.len;
    return fake->file[file].now.byte;
}
