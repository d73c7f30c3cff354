/* SPDX-License-Identifier: BSD-3-Clause */
/* The heap of a test that runs out: all that the program takes from it goes
 * through here (the linker's --wrap), but for what the check library takes when
 * an assertion holds. */
#include "unit/heap_help.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t n, size_t bytes);
void *__real_realloc(void *block, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
void __real_free(void *block);
void *__real_mmap(
    void *at, size_t bytes, int prot, int flags, int fd, off_t offset);

void __real__mark_point(const char *file, int line);

void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);
void *__wrap_realloc(void *block, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);
void __wrap_free(void *block);
void *__wrap_mmap(
    void *at, size_t bytes, int prot, int flags, int fd, off_t offset);
void __wrap__mark_point(const char *file, int line);

/* What is asked of the heap by threads that are not in the disk. */
static struct {
    atomic_uint calls;
    atomic_uint fail_from, fail_to; /* of calls, from 1; 0: none fails */
    atomic_uint failures;
    atomic_int live; /* blocks */
} heap;

static _Thread_local unsigned n_spared; /* heap_spare of this thread */

void
heap_spare(void)
{
    n_spared++;
}

void
heap_unspare(void)
{
    n_spared--;
}

void
heap_fail(unsigned from, unsigned to)
{
    atomic_store(&heap.calls, 0);
    atomic_store(&heap.failures, 0);
    atomic_store(&heap.fail_to, to);
    atomic_store(&heap.fail_from, from);
}

unsigned
heap_heal(void)
{
    atomic_store(&heap.fail_to, 0);
    return atomic_load(&heap.failures);
}

int
heap_live(void)
{
    return atomic_load(&heap.live);
}

static bool
fails(void)
{
    if (n_spared > 0) {
        return false;
    }
    unsigned n = atomic_fetch_add(&heap.calls, 1) + 1;
    bool is_out =
        n >= atomic_load(&heap.fail_from) && n <= atomic_load(&heap.fail_to);
    atomic_fetch_add(&heap.failures, is_out);
    return is_out;
}

static void *
counted(void *block)
{
    if (n_spared == 0 && block != NULL) {
        atomic_fetch_add(&heap.live, 1);
    }
    return block;
}

void *
__wrap_malloc(size_t bytes)
{
    return fails() ? NULL : counted(__real_malloc(bytes));
}

void *
__wrap_calloc(size_t n, size_t bytes)
{
    return fails() ? NULL : counted(__real_calloc(n, bytes));
}

void *
__wrap_realloc(void *block, size_t bytes)
{
    if (fails()) {
        return NULL;
    }
    bool is_new = block == NULL;
    void *made = __real_realloc(block, bytes);
    return is_new ? counted(made) : made;
}

void *
__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
    return fails() ? NULL : counted(__real_aligned_alloc(alignment, bytes));
}

void
__wrap_free(void *block)
{
    if (n_spared == 0 && block != NULL) {
        atomic_fetch_sub(&heap.live, 1);
    }
    __real_free(block);
}

void *
__wrap_mmap(void *at, size_t bytes, int prot, int flags, int fd, off_t offset)
{
    return fails() ? MAP_FAILED
                   : __real_mmap(at, bytes, prot, flags, fd, offset);
}

void
__wrap__mark_point(const char *file, int line)
{
    n_spared++;
    __real__mark_point(file, line);
    n_spared--;
}

static void *
heap_zeroed(void *context, size_t bytes)
{
    (void)context;
    return calloc(1, bytes);
}

static void
heap_free(void *context, void *block, size_t bytes)
{
    (void)context;
    (void)bytes;
    free(block);
}

/* Of the engine's pieces. */
const struct alloc heap_alloc = {heap_zeroed, heap_free, NULL};

#define SPARED(disk, call, ...)                                               \
    ({                                                                        \
        struct disk *inner = ((struct spared_disk *)(disk))->inner;           \
        n_spared++;                                                           \
        int error = inner->calls->call(inner, __VA_ARGS__);                   \
        n_spared--;                                                           \
        error;                                                                \
    })

static int
spared_open(struct disk *disk, const char *name, enum disk_open how, int *fd)
{
    return SPARED(disk, open, name, how, fd);
}

static void
spared_close(struct disk *disk, int fd)
{
    struct disk *inner = ((struct spared_disk *)disk)->inner;
    n_spared++;
    inner->calls->close(inner, fd);
    n_spared--;
}

static int
spared_read(struct disk *disk, int fd, void *bytes, size_t len, uint64_t at,
    size_t *n_read)
{
    return SPARED(disk, read, fd, bytes, len, at, n_read);
}

static int
spared_write(
    struct disk *disk, int fd, const void *bytes, size_t len, uint64_t at)
{
    return SPARED(disk, write, fd, bytes, len, at);
}

static int
spared_allocate(struct disk *disk, int fd, uint64_t at, uint64_t len)
{
    return SPARED(disk, allocate, fd, at, len);
}

static int
spared_truncate(struct disk *disk, int fd, uint64_t len)
{
    return SPARED(disk, truncate, fd, len);
}

static int
spared_punch(struct disk *disk, int fd, uint64_t at, uint64_t len)
{
    return SPARED(disk, punch, fd, at, len);
}

static int
spared_next_data(
    struct disk *disk, int fd, uint64_t at, uint64_t *from, uint64_t *to)
{
    return SPARED(disk, next_data, fd, at, from, to);
}

static int
spared_size(struct disk *disk, int fd, uint64_t *len)
{
    return SPARED(disk, size, fd, len);
}

static int
spared_look(struct disk *disk, const char *name, int fd, struct disk_file *out)
{
    return SPARED(disk, look, name, fd, out);
}

static int
spared_sync(struct disk *disk, int fd)
{
    return SPARED(disk, sync, fd);
}

static int
spared_rename(struct disk *disk, const char *from, const char *to)
{
    return SPARED(disk, rename, from, to);
}

static int
spared_unlink(struct disk *disk, const char *name)
{
    return SPARED(disk, unlink, name);
}

static int
spared_sync_names(struct disk *disk)
{
    struct disk *inner = ((struct spared_disk *)disk)->inner;
    n_spared++;
    int error = inner->calls->sync_names(inner);
    n_spared--;
    return error;
}

struct listing {
    void (*name_fn)(void *context, const char *name);
    void *context;
};

/* What the caller takes for a name is its own. */
static void
hand_on(void *context, const char *name)
{
    struct listing *listing = context;
    n_spared--;
    listing->name_fn(listing->context, name);
    n_spared++;
}

static int
spared_list(struct disk *disk,
    void (*name_fn)(void *context, const char *name), void *context)
{
    struct listing listing = {name_fn, context};
    return SPARED(disk, list, hand_on, &listing);
}

static int
spared_room(struct disk *disk, uint64_t *bytes)
{
    return SPARED(disk, room, bytes);
}

static const struct disk_calls spared_calls = {.open = spared_open,
    .close = spared_close,
    .read = spared_read,
    .write = spared_write,
    .allocate = spared_allocate,
    .truncate = spared_truncate,
    .punch = spared_punch,
    .next_data = spared_next_data,
    .size = spared_size,
    .sync = spared_sync,
    .rename = spared_rename,
    .unlink = spared_unlink,
    .sync_names = spared_sync_names,
    .room = spared_room,
    .look = spared_look,
    .list = spared_list};

void
spared_disk_init(struct spared_disk *disk, struct disk *inner)
{
    *disk = (struct spared_disk){{&spared_calls}, inner};
}
