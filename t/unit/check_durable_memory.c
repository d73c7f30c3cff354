/* SPDX-License-Identifier: BSD-3-Clause */
/* A store with a directory, where memory runs out at each point of a start in
 * turn: while the manifest is read, images are loaded, the log is replayed and
 * opened anew, threads are made. The start says so and leaves nothing behind,
 * or does without; and the next one has everything.
 *
 * All that the program takes from the heap goes through here (the linker's
 * --wrap), and the engine takes its tables there piece by piece. The disk's
 * own memory is spared: it stands for the machine's. */
#include "base/sanitizer.h"
#include "unit/durable_help.h"

#include <limits.h>
#include <stdatomic.h>
#include <sys/mman.h>

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t n, size_t bytes);
void *__real_realloc(void *block, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
void __real_free(void *block);
void *__real_mmap(
    void *at, size_t bytes, int prot, int flags, int fd, off_t offset);

void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);
void *__wrap_realloc(void *block, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);
void __wrap_free(void *block);
void *__wrap_mmap(
    void *at, size_t bytes, int prot, int flags, int fd, off_t offset);

/* What is asked of the heap by threads that are not in the disk. */
static struct {
    atomic_uint calls;
    atomic_uint fail_from, fail_to; /* of calls, from 1; 0: none fails */
    atomic_uint failures;
    atomic_int live; /* blocks */
} heap;

static _Thread_local unsigned n_spared; /* disk calls this thread is in */

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
static const struct alloc heap_alloc = {heap_zeroed, heap_free, NULL};

/* A fake disk whose calls are spared. */
struct spared_disk {
    struct disk disk;
    struct disk *inner;
};

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

/* A directory with images, a log behind them, and edits in it. */
static void
begin(struct rig *rig, struct spared_disk *disk)
{
    rig_init(rig, WAL_SYNC_ALWAYS, ID_SPREAD, 5);
    *disk = (struct spared_disk){{&spared_calls}, rig->data.disk};
    rig->data.disk = &disk->disk;
    rig->config.alloc = &heap_alloc;
    ck_assert_int_eq(rig_open(rig), 0);
    rig_add_counter(rig, 'a');
    rig_add_counter(rig, 'b');
    (void)rig_work(rig, 40);
    (void)rig_set_all(rig, 'a', 5);
    (void)rig_set_all(rig, 'b', 6);
    ck_assert_int_eq(rig_edit(rig, "add counter m cold=never"), 0);
    ck_assert_int_eq(rig_edit(rig, "add column m mk primarykey"), 0);
    ck_assert_int_eq(rig_edit(rig, "add column m mx members=exact"), 0);
    ck_assert_int_eq(rig_checkpoint(rig), 0);
    ck_assert_int_eq(rig_edit(rig, "add column m my members=exact"), 0);
    ck_assert_int_eq(rig_edit(rig, "drop column m mx mx"), 0);
    ck_assert_int_eq(rig_edit(rig, "drop counter b b"), 0);
    (void)rig_set_all(rig, 'a', UINT64_C(1) << 40);
    ck_assert_int_eq(rig_edit(rig, "add column a ay max=64 default=3"), 0);
    rig_add_counter(rig, 'c');
    (void)rig_set_all(rig, 'c', UINT64_C(1) << 20);
    ck_assert_int_eq(rig_close(rig), 0);
}

/* What the test library takes, in here, is not the store's. */
static void
expect_all(struct rig *rig)
{
    n_spared++;
    rig_expect_all(rig);
    n_spared--;
}

/* A start in which the calls for memory from number `from` to `to` fail.
 * Returns how many did. */
static unsigned
start_short(struct rig *rig, unsigned from, unsigned to)
{
    int live = atomic_load(&heap.live);
    atomic_store(&heap.calls, 0);
    atomic_store(&heap.failures, 0);
    atomic_store(&heap.fail_to, to);
    atomic_store(&heap.fail_from, from);
    int err = rig_open(rig);
    atomic_store(&heap.fail_to, 0);
    unsigned failures = atomic_load(&heap.failures);
    int last_err = 0;
    if (err == 0) {
        expect_all(rig);
        last_err = rig_close(rig);
    }
    live = atomic_load(&heap.live) - live;
    EXPECT(err == 0 || (err == ERR_NO_MEMORY && failures > 0),
        "calls %u to %u fail: err %d", from, to, err);
    EXPECT(last_err == 0, "calls %u to %u fail: err %d at the end", from, to,
        last_err);
    EXPECT(live == 0, "calls %u to %u fail: err %d, %d blocks are left", from,
        to, err, live);
    return failures;
}

/* Calls from one that fails to the next: a start takes long with a sanitizer,
 * to which each third shows the same ways out. */
enum { STEP = SANITIZER_THREAD || SANITIZER_ADDRESS ? 3 : 1 };

/* n_threads load. Each call in turn fails, or all from it on do. */
static void
sweep(unsigned n_threads, bool forever)
{
    struct rig rig;
    struct spared_disk disk;
    begin(&rig, &disk);
    rig.data.threads = n_threads;
    unsigned n_failed = 0;
    for (unsigned n = 1; start_short(&rig, n, forever ? UINT_MAX : n) > 0;
         n += STEP) {
        n_failed++;
        if (n_failed % 8 == 0) {
            ck_assert_uint_eq(start_short(&rig, 0, 0), 0);
        }
    }
    ck_assert_uint_gt(n_failed * STEP, 100); /* tables' pieces among them */
    ck_assert_int_eq(rig_open(&rig), 0);
    rig_expect_all(&rig);
    rig_end(&rig);
}

START_TEST(test_one_fails)
{
    sweep(1, false);
}
END_TEST

START_TEST(test_one_fails_threads)
{
    sweep(3, false);
}
END_TEST

START_TEST(test_all_fail)
{
    sweep(2, true);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        test_one_fails, test_one_fails_threads, test_all_fail};
    return run_tests("durable_memory", tests, COUNT_OF(tests));
}
