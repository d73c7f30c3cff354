/* SPDX-License-Identifier: BSD-3-Clause */
/* Segments in a data directory: sealed, published, merged, and what is found
 * after a start, be it after a stop or a crash at any call to the disk. Every
 * change is synced before the next, so it is known what must be there. */
#include "unit/cold_help.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/sanitizer.h"
#include "cold/segment_write.h"
#include "offline/data_check.h"
#include "schema/restore.h"

#include <errno.h>
#include <sched.h>
#include <time.h>

/* One thread does most of it, and the thread sanitizer, which is slow, sees a
 * race without meeting it. */
enum {
    SEEDS = SANITIZER_THREAD ? 5
        : SANITIZER_ADDRESS  ? 5
                             : 25,
    STEPS = 80, /* of a seed; after one of so many all is looked at: */
    LOOK_EACH = SANITIZER_THREAD || SANITIZER_ADDRESS ? 5 : 1
};

static void
begin(struct cold_rig *rig, uint64_t seed)
{
    cold_init(rig, seed);
    ck_assert_int_eq(cold_open(rig), 0);
}

static void
end(struct cold_rig *rig)
{
    cold_judge(rig);
    ck_assert_int_eq(cold_close(rig, false), 0);
    ck_assert_int_eq(cold_open(rig), 0);
    cold_judge(rig);
    ck_assert_int_eq(cold_close(rig, true), 0);
    cold_fini(rig);
}

static void
restart(struct cold_rig *rig, bool at_end)
{
    ck_assert_int_eq(cold_close(rig, at_end), 0);
    ck_assert_int_eq(cold_open(rig), 0);
    cold_judge(rig);
}

static uint64_t
stat_of(_Atomic uint64_t *stat)
{
    return atomic_load(stat);
}

/* Sets both columns of an id. */
static void
set(struct cold_rig *rig, uint64_t id, uint64_t x, uint64_t y)
{
    const uint64_t operand[] = {x, y};
    ck_assert(cold_change(rig, id, CHANGE_SET, 0, 2, operand));
}

static void
set_all(struct cold_rig *rig, uint64_t x)
{
    for (uint64_t id = 0; id < COLD_IDS; id++) {
        set(rig, id, x + id, id % 3);
    }
}

static void
work_some(struct cold_rig *rig)
{
    (void)cold_work(rig, 12);
}

/* ---- whatever happens in whatever order ---- */

static void
random_step(struct cold_rig *rig)
{
    uint64_t *random = &rig->random;
    unsigned first = (unsigned)random_below(random, COLD_BLOCKS);
    unsigned last =
        first + (unsigned)random_below(random, COLD_BLOCKS - first);
    switch (random_below(random, 16)) {
    case 0:
    case 1:
    case 2:
        ck_assert_int_eq(cold_seal(rig, first, last,
                             random_below(random, 3) > 0 ? work_some : NULL),
            0);
        break;
    case 3:
        ck_assert_int_eq(cold_publish(rig), 0);
        break;
    case 4:
        checkpointer_want_segments(&rig->checkpointer, NULL);
        break;
    case 5:
        ck_assert_int_eq(cold_checkpoint(rig), 0);
        break;
    case 6:
        checkpointer_want(&rig->checkpointer, NULL);
        break;
    case 7:
        if (random_below(random, 3) == 0) {
            restart(rig, random_below(random, 2) == 0);
        }
        break;
    case 8:
        if (random_below(random, 2) == 0) {
            cold_crash(rig, random_below(random, 2) == 0);
        }
        break;
    default:
        ck_assert(cold_work(rig, 1 + (unsigned)random_below(random, 20)));
    }
}

START_TEST(test_random)
{
    for (uint64_t seed = 1; seed <= plain_part(SEEDS); seed++) {
        struct cold_rig rig;
        begin(&rig, seed);
        ck_assert(cold_work(&rig, 100));
        for (unsigned i = 1; i <= STEPS; i++) {
            random_step(&rig);
            if (i % LOOK_EACH == 0) {
                cold_judge(&rig);
            }
        }
        end(&rig);
    }
}
END_TEST

/* ---- crashes ---- */

/* A directory with all kinds of things: an image older than any segment, rows
 * removed from it since, entries in the log before and behind, a segment that
 * is merged, and one that is about to be. */
static void
prepare(struct cold_rig *rig, uint64_t seed, uint64_t log_file_bytes)
{
    cold_init(rig, seed);
    rig->data.log_file_bytes = log_file_bytes;
    ck_assert_int_eq(cold_open(rig), 0);
    set_all(rig, 1);
    ck_assert_int_eq(cold_checkpoint(rig), 0);
    ck_assert(cold_work(rig, 60));
    ck_assert_int_eq(cold_seal(rig, 0, 2, work_some), 0);
    ck_assert_int_eq(cold_publish(rig), 0);
    ck_assert(cold_work(rig, 40));
}

/* The calls to the disk of a sealing and its manifest are cut short at number
 * n. False: there were fewer. */
static bool
cut_publish(unsigned n, bool with_checkpoint)
{
    struct cold_rig rig;
    prepare(&rig, n, WAL_FILE_BYTES_MIN);
    fake_disk_die(rig.fake, n);
    int err = cold_seal(&rig, 1, 4, work_some);
    if (err == 0) {
        (void)cold_work(&rig, 10);
        if (with_checkpoint) {
            err = cold_checkpoint(&rig);
        } else {
            checkpointer_want_segments(&rig.checkpointer, NULL);
        }
    }
    if (err == 0) {
        (void)cold_work(&rig, 10);
    }
    bool is_cut = fake_disk_is_dead(rig.fake);
    cold_crash(&rig, n % 3 > 0);
    ck_assert(cold_work(&rig, 20));
    ck_assert_int_eq(cold_seal(&rig, 0, 5, work_some), 0);
    ck_assert_int_eq(cold_checkpoint(&rig), 0);
    cold_crash(&rig, true);
    end(&rig);
    return is_cut;
}

START_TEST(test_cut_publish)
{
    unsigned n = 1;
    while (cut_publish(n, false)) {
        n += sweep_stride();
    }
    ck_assert_uint_gt(n, 20);
}
END_TEST

START_TEST(test_cut_publish_by_checkpoint)
{
    unsigned n = 1;
    while (cut_publish(n, true)) {
        n += sweep_stride();
    }
    ck_assert_uint_gt(n, 20);
}
END_TEST

/* A start that is cut short, and the next one. */
START_TEST(test_cut_start)
{
    for (unsigned n = 1; n <= 40; n = long_next(n)) {
        struct cold_rig rig;
        prepare(&rig, n, WAL_FILE_BYTES_MIN);
        ck_assert_int_eq(cold_seal(&rig, 3, 3, work_some), 0);
        ck_assert_int_eq(cold_close(&rig, false), 0);
        fake_disk_die(rig.fake, n);
        if (cold_open(&rig) == 0) {
            (void)cold_close(&rig, n % 2 == 0);
        }
        fake_disk_crash(rig.fake);
        ck_assert_int_eq(cold_open(&rig), 0);
        end(&rig);
    }
}
END_TEST

/* ---- one rule after the other ---- */

static void
change_again(struct cold_rig *rig)
{
    set(rig, 7, 70, 71);
    ck_assert(cold_change(rig, 8, CHANGE_DELETE, 0, 2, (uint64_t[]){0, 0}));
}

/* A record that changed after it was copied was told whole behind the cut, and
 * that is durable when the manifest is: the change itself, though it was synced
 * and acknowledged, is passed over by a start. */
START_TEST(test_what_stays_is_synced)
{
    struct cold_rig rig;
    begin(&rig, 1);
    set_all(&rig, 5);
    ck_assert_int_eq(cold_checkpoint(&rig), 0);
    ck_assert_int_eq(cold_seal(&rig, 0, 0, change_again), 0);
    ck_assert_int_eq(cold_publish(&rig), 0);
    cold_crash(&rig, true);
    ck_assert_uint_eq(rig.value[7][0], 70);
    ck_assert_uint_eq(rig.value[8][0], 0);
    end(&rig);
}
END_TEST

/* The very last batch before the cut is in the segment as well: it has one
 * column only, and nothing tells the other one anew. */
START_TEST(test_last_batch_before)
{
    struct cold_rig rig;
    begin(&rig, 1);
    set_all(&rig, 5);
    ck_assert(cold_change(&rig, 7, CHANGE_INCR, 0, 1, (uint64_t[]){3}));
    ck_assert_int_eq(cold_seal(&rig, 0, 0, NULL), 0);
    ck_assert_int_eq(cold_publish(&rig), 0);
    cold_crash(&rig, true);
    end(&rig);
}
END_TEST

/* An image that was made right behind the cut, of a batch that is still open,
 * has what was told anew in it, and counts. */
START_TEST(test_first_batch_behind)
{
    struct cold_rig rig;
    begin(&rig, 1);
    set_all(&rig, 5);
    ck_assert_int_eq(cold_checkpoint(&rig), 0);
    ck_assert_int_eq(cold_seal(&rig, 0, 0, change_again), 0);
    ck_assert_int_eq(cold_checkpoint(&rig), 0); /* the log goes */
    cold_crash(&rig, true);
    ck_assert_uint_eq(rig.value[7][0], 70);
    ck_assert_uint_eq(rig.value[8][0], 0);
    end(&rig);
}
END_TEST

/* What was removed while it was hot is in an old image, and in the log, but in
 * no segment. It stays away when the cover is gone as well. */
START_TEST(test_removed_before)
{
    struct cold_rig rig;
    const uint64_t none[] = {0, 0};
    begin(&rig, 1);
    set_all(&rig, 5);
    ck_assert_int_eq(cold_checkpoint(&rig), 0);
    ck_assert(cold_change(&rig, 9, CHANGE_DELETE, 0, 2, none));
    ck_assert_int_eq(cold_seal(&rig, 0, 0, NULL), 0);
    ck_assert_int_eq(cold_publish(&rig), 0);
    ck_assert_uint_gt(stat_of(&rig.durable.stats.cut_images), 0);
    restart(&rig, false);
    ck_assert_int_eq(cold_checkpoint(&rig), 0);
    for (uint64_t id = 0; id < COLD_BLOCK_IDS; id++) {
        ck_assert(cold_change(&rig, id, CHANGE_DELETE, 0, 2, none));
    }
    ck_assert_int_eq(cold_seal(&rig, 0, 0, NULL), 0); /* nothing is left */
    ck_assert_int_eq(cold_publish(&rig), 0);
    ck_assert_uint_eq(rig.durable.manifest.segments.n, 0);
    ck_assert_uint_eq(cold_count_files(&rig), 0);
    cold_crash(&rig, true);
    end(&rig);
}
END_TEST

/* Files go when a manifest is durable that does not name them, not before; and
 * what nothing names goes at the start. */
START_TEST(test_files_that_go)
{
    struct cold_rig rig;
    int fd;
    begin(&rig, 1);
    set_all(&rig, 5);
    ck_assert_int_eq(cold_seal(&rig, 0, 3, NULL), 0);
    ck_assert_int_eq(cold_publish(&rig), 0);
    ck_assert_uint_eq(cold_count_files(&rig), 1);
    ck_assert_int_eq(cold_seal(&rig, 1, 2, NULL), 0);
    ck_assert_int_eq(cold_publish(&rig), 0);
    ck_assert_uint_eq(cold_count_files(&rig), 2); /* parts are left of it */
    ck_assert_uint_eq(rig.durable.manifest.segments.n, 4);
    ck_assert_int_eq(cold_seal(&rig, 0, 0, NULL), 0);
    ck_assert_int_eq(cold_seal(&rig, 2, 3, NULL), 0);
    ck_assert_uint_eq(cold_count_files(&rig), 4);
    restart(&rig, false); /* as if they had never been */
    ck_assert_uint_eq(cold_count_files(&rig), 2);
    ck_assert_int_eq(cold_seal(&rig, 0, 0, NULL), 0);
    ck_assert_int_eq(cold_seal(&rig, 2, 3, NULL), 0);
    ck_assert_uint_eq(cold_count_files(&rig), 4);
    ck_assert_int_eq(cold_publish(&rig), 0);
    ck_assert_uint_eq(cold_count_files(&rig), 3); /* one has block 1 still */
    uint64_t last = rig.durable.manifest.last_segment;
    ck_assert_int_eq(cold_close(&rig, false), 0);
    char name[SEGMENT_NAME_BYTES];
    for (unsigned is_new = 0; is_new < 2; is_new++) {
        segment_name(name, last + 1 + is_new, is_new);
        ck_assert_int_eq(
            rig.data.disk->calls->open(rig.data.disk, name, DISK_CREATE, &fd),
            0);
        rig.data.disk->calls->close(rig.data.disk, fd);
    }
    ck_assert_int_eq(cold_open(&rig), 0);
    ck_assert_uint_eq(cold_count_files(&rig), 3);
    /* their numbers are not used again */
    ck_assert_uint_eq(durable_next_segment(&rig.durable), last + 3);
    ck_assert_int_eq(cold_close(&rig, false), 0);
    /* nor is the largest that counts the last that there can be */
    segment_name(name, NAMES_NUMBER_MAX, false);
    ck_assert_int_eq(
        rig.data.disk->calls->open(rig.data.disk, name, DISK_CREATE, &fd), 0);
    rig.data.disk->calls->close(rig.data.disk, fd);
    ck_assert_int_eq(cold_open(&rig), 0);
    ck_assert_uint_eq(
        durable_next_segment(&rig.durable), NAMES_NUMBER_MAX + 1);
    end(&rig);
}
END_TEST

/* Blocks 2 and 3 get a later file, which a manifest has. */
static void
seal_others(struct cold_rig *rig)
{
    /* relaxed: one thread */
    uint64_t number =
        atomic_load_explicit(&rig->durable.last_segment, memory_order_relaxed);
    durable_spare_segment(&rig->durable, number);
    ck_assert_int_eq(cold_seal(rig, 2, 3, NULL), 0);
    ck_assert_int_eq(cold_publish(rig), 0);
    ck_assert_int_eq(cold_checkpoint(rig), 0);
}

/* A file that takes long stays while later ones are named; one that came to
 * nothing goes once it is spared no more. */
START_TEST(test_spared)
{
    struct cold_rig rig;
    begin(&rig, 1);
    ck_assert(cold_work(&rig, 500));
    ck_assert_int_eq(cold_seal(&rig, 0, 1, seal_others), 0);
    ck_assert_uint_eq(cold_count_files(&rig), 2);
    ck_assert_int_eq(cold_publish(&rig), 0);
    ck_assert_uint_eq(cold_count_files(&rig), 2);
    restart(&rig, false);
    ck_assert_uint_eq(cold_count_files(&rig), 2);
    durable_spare_segment(&rig.durable, rig.file[0]->number);
    ck_assert_int_eq(cold_seal(&rig, 0, 3, NULL), 0);
    ck_assert_int_eq(cold_publish(&rig), 0);
    ck_assert_uint_eq(cold_count_files(&rig), 2);
    durable_spare_segment(&rig.durable, 0);
    ck_assert_int_eq(cold_publish(&rig), 0);
    ck_assert_uint_eq(cold_count_files(&rig), 1);
    end(&rig);
}
END_TEST

/* A manifest that cannot be written keeps everything as it was, and is written
 * when it can be; who waits is answered then. */
START_TEST(test_published_later)
{
    struct cold_rig rig;
    struct cold_asked asked;
    prepare(&rig, 3, 1 << 24); /* no log file is made meanwhile */
    fake_disk_fail(rig.fake, 1 << FAKE_RENAME, 1, ENOSPC, true);
    ck_assert_int_eq(cold_seal(&rig, 0, 2, work_some), ERR_DISK_FULL);
    (void)fake_disk_heal(rig.fake);
    ck_assert_int_eq(cold_seal(&rig, 0, 2, work_some), 0);
    unsigned n_files = cold_count_files(&rig);
    fake_disk_fail(rig.fake, 1 << FAKE_RENAME, 1, ENOSPC, true);
    cold_ask(&rig, &asked);
    while (stat_of(&rig.durable.stats.checkpoint_failures) == 0) {
        sched_yield();
    }
    ck_assert_uint_eq(cold_count_files(&rig), n_files);
    ck_assert(cold_work(&rig, 20));
    uint64_t manifests = stat_of(&rig.durable.stats.manifests);
    (void)fake_disk_heal(rig.fake);
    ck_assert_int_eq(cold_wait(&asked), 0);
    ck_assert_uint_eq(stat_of(&rig.durable.stats.manifests), manifests + 1);
    ck_assert_uint_lt(cold_count_files(&rig), n_files);
    cold_crash(&rig, true);
    end(&rig);
}
END_TEST

/* Who waits when the server stops is told so. */
START_TEST(test_never_published)
{
    struct cold_rig rig;
    struct cold_asked asked;
    prepare(&rig, 3, 1 << 24);
    ck_assert_int_eq(cold_seal(&rig, 0, 2, work_some), 0);
    fake_disk_fail(rig.fake, 1 << FAKE_RENAME, 1, EIO, true);
    cold_ask(&rig, &asked);
    while (stat_of(&rig.durable.stats.checkpoint_failures) == 0) {
        sched_yield();
    }
    (void)cold_close(&rig, false);
    ck_assert_int_eq(cold_wait(&asked), ERR_CLOSED);
    (void)fake_disk_heal(rig.fake);
    ck_assert_int_eq(cold_open(&rig), 0);
    end(&rig);
}
END_TEST

/* A checkpoint has something to do where something was sealed, though nothing
 * was logged. */
START_TEST(test_checkpoint_publishes)
{
    struct cold_rig rig;
    begin(&rig, 1);
    set_all(&rig, 5);
    ck_assert_int_eq(cold_checkpoint(&rig), 0);
    uint64_t manifests = stat_of(&rig.durable.stats.manifests);
    ck_assert_int_eq(cold_checkpoint(&rig), 0);
    ck_assert_uint_eq(stat_of(&rig.durable.stats.manifests), manifests);
    ck_assert_int_eq(cold_seal(&rig, 0, 1, NULL), 0);
    ck_assert_uint_eq(stat_of(&rig.durable.stats.live_segments), 0);
    uint64_t n = stat_of(&rig.durable.stats.checkpoints);
    /* as checkpointer_want_segments, but that nobody is woken before; and a
     * pass is wanted, should somebody wake by himself */
    mutex_lock(&rig.checkpointer.lock);
    rig.checkpointer.is_publish_wanted = true;
    rig.checkpointer.is_wanted = true;
    mutex_unlock(&rig.checkpointer.lock);
    ck_assert_int_eq(cold_checkpoint(&rig), 0);
    ck_assert_uint_eq(stat_of(&rig.durable.stats.checkpoints), n + 1);
    ck_assert_uint_eq(stat_of(&rig.durable.stats.live_segments), 2);
    end(&rig);
}
END_TEST

/* A counter that is dropped takes its segments along, whether the manifest
 * knows of it or only the log; their files go with the next manifest. */
START_TEST(test_dropped_counter)
{
    for (unsigned with_manifest = 0; with_manifest < 2; with_manifest++) {
        struct cold_rig rig;
        struct schema *next;
        begin(&rig, 1);
        set_all(&rig, 5);
        ck_assert_int_eq(cold_seal(&rig, 0, 3, work_some), 0);
        ck_assert_int_eq(cold_publish(&rig), 0);
        const struct schema *old = atomic_load(&rig.schema);
        uint32_t serial = schema_counter_at(old, 0)->serial;
        uint32_t last_serial = schema_last_serial(old);
        mutex_lock(&rig.durable.edit_lock);
        ck_assert_int_eq(
            schema_restore_drop(old, serial, last_serial, &next), 0);
        uint64_t seq = durable_log_dropped(&rig.durable, serial, last_serial);
        atomic_store(&rig.schema, next);
        engine_undefine(rig.engine, 0);
        rig.segment_map.drop_fn(&rig.segment_map, 0);
        mutex_unlock(&rig.durable.edit_lock);
        schema_destroy((struct schema **)&old);
        ck_assert_int_eq(wal_sync_up_to(rig.durable.wal, seq), 0);
        memset(rig.value, 0, sizeof rig.value);
        if (with_manifest != 0) {
            ck_assert_int_eq(cold_publish(&rig), 0);
            ck_assert_uint_eq(cold_count_files(&rig), 0);
        }
        cold_crash(&rig, true); /* makes it anew */
        for (unsigned i = 0; i < COLD_BLOCKS; i++) {
            ck_assert_ptr_null(rig.settled[i]);
        }
        set_all(&rig, 9);
        ck_assert_int_eq(cold_seal(&rig, 1, 2, work_some), 0);
        cold_crash(&rig, true);
        ck_assert_int_eq(cold_checkpoint(&rig), 0);
        ck_assert_uint_eq(cold_count_files(&rig), 0);
        end(&rig);
    }
}
END_TEST

/* ---- damage ---- */

/* What data_check_disk finds. */
static int
check(struct cold_rig *rig, struct buf *out)
{
    buf_clear(out);
    int err = data_check_disk(rig->data.disk, &rig->logger, out);
    buf_add(out, "", 1);
    return err;
}

START_TEST(test_check)
{
    struct cold_rig rig;
    struct buf out = {0};
    prepare(&rig, 1, WAL_FILE_BYTES_MIN);
    ck_assert_int_eq(cold_seal(&rig, 4, 4, NULL), 0);
    ck_assert_int_eq(cold_publish(&rig), 0);
    ck_assert_int_eq(cold_close(&rig, false), 0);
    ck_assert_int_eq(check(&rig, &out), 0);
    ck_assert_ptr_nonnull(
        strstr(out.data, "\nsegments 2\nsegment_blocks 2\n"));
    ck_assert_ptr_nonnull(strstr(out.data, "\nall is well\n"));
    ck_assert_int_eq(cold_open(&rig), 0);
    end(&rig);
    buf_fini(&out);
}
END_TEST

/* Where a file is damaged, and who says so. */
static const struct {
    uint64_t at;
    bool at_start; /* else when it is read, and by the check */
} flips[] = {{0, true}, {16, true}, {40, true}, {4088, true}, {4096, false},
    {4100, false}, {8192, true}};

START_TEST(test_damage)
{
    struct cold_rig rig;
    struct buf out = {0};
    char name[SEGMENT_NAME_BYTES];
    begin(&rig, 1);
    set_all(&rig, 5);
    ck_assert_int_eq(cold_seal(&rig, 0, 0, NULL), 0);
    ck_assert_int_eq(cold_publish(&rig), 0);
    segment_name(name, rig.durable.manifest.last_segment, false);
    ck_assert_int_eq(cold_close(&rig, false), 0);
    for (size_t i = 0; i < COUNT_OF(flips); i++) {
        fake_disk_flip(rig.fake, name, flips[i].at, 4);
        ck_assert_int_eq(check(&rig, &out), ERR_CORRUPT);
        int err = cold_open(&rig);
        ck_assert_int_eq(err, flips[i].at_start ? ERR_CORRUPT : 0);
        if (err == 0) {
            ck_assert_int_eq(cold_close(&rig, false), 0);
        }
        fake_disk_flip(rig.fake, name, flips[i].at, 4);
    }
    ck_assert_int_eq(check(&rig, &out), 0);
    ck_assert_int_eq(cold_open(&rig), 0);
    end(&rig);
    buf_fini(&out);
}
END_TEST

/* A file of the same directory and number that has other records. */
START_TEST(test_other_records)
{
    struct cold_rig rig;
    struct buf out = {0};
    struct segment_writer *writer;
    const uint64_t code[COLD_COLUMNS] = {1, 1};
    begin(&rig, 1);
    const struct segment_write_config config = {
        .disk = rig.data.disk, .codec = BLOCK_PACKED};
    set_all(&rig, 5);
    ck_assert_int_eq(cold_seal(&rig, 0, 0, NULL), 0);
    ck_assert_int_eq(cold_publish(&rig), 0);
    struct segment_head head = *segment_head(rig.file[0]->segment);
    ck_assert_int_eq(cold_close(&rig, false), 0);
    ck_assert_int_eq(segment_write_begin(&config, &head, &writer), 0);
    ck_assert_int_eq(segment_write_add(writer, 3, code), 0);
    ck_assert_int_eq(segment_write_end(&writer, &head), 0);
    ck_assert_int_eq(check(&rig, &out), ERR_CORRUPT);
    ck_assert_int_eq(cold_open(&rig), ERR_CORRUPT);
    cold_fini(&rig);
    buf_fini(&out);
}
END_TEST

/* One file takes the name of another, or has none any more. */
START_TEST(test_wrong_and_missing_files)
{
    struct cold_rig rig;
    struct buf out = {0};
    char name[2][SEGMENT_NAME_BYTES];
    begin(&rig, 1);
    const struct disk_calls *calls = rig.data.disk->calls;
    set_all(&rig, 5);
    for (unsigned i = 0; i < 2; i++) {
        ck_assert_int_eq(cold_seal(&rig, i, i, NULL), 0);
        segment_name(name[i], rig.file[i]->number, false);
    }
    ck_assert_int_eq(cold_publish(&rig), 0);
    ck_assert_int_eq(cold_close(&rig, false), 0);
    ck_assert_int_eq(calls->rename(rig.data.disk, name[0], "kept"), 0);
    ck_assert_int_eq(check(&rig, &out), ERR_CORRUPT);
    ck_assert_int_eq(cold_open(&rig), ERR_CORRUPT);
    ck_assert_int_eq(calls->rename(rig.data.disk, name[1], name[0]), 0);
    ck_assert_int_eq(check(&rig, &out), ERR_CORRUPT);
    ck_assert_int_eq(cold_open(&rig), ERR_CORRUPT);
    ck_assert_int_eq(calls->rename(rig.data.disk, name[0], name[1]), 0);
    ck_assert_int_eq(calls->rename(rig.data.disk, "kept", name[0]), 0);
    ck_assert_int_eq(check(&rig, &out), 0);
    ck_assert_int_eq(cold_open(&rig), 0);
    end(&rig);
    buf_fini(&out);
}
END_TEST

/* The checkpointer looks once a second; meanwhile the core is for others. */
static void
wait_for_lost(struct cold_rig *rig, uint64_t missing)
{
    const struct timespec pause = {.tv_nsec = 1000 * 1000};
    while (stat_of(&rig->durable.stats.missing_files) < missing) {
        (void)nanosleep(&pause, NULL);
    }
}

/* A segment that somebody removes is missed, and no checkpoint is made in vain;
 * put back it is as if nothing had been; a merge makes up for it. */
START_TEST(test_lost)
{
    struct cold_rig rig;
    char name[SEGMENT_NAME_BYTES];
    begin(&rig, 1);
    const struct disk_calls *calls = rig.data.disk->calls;
    set_all(&rig, 5);
    ck_assert_int_eq(cold_seal(&rig, 0, 1, NULL), 0);
    ck_assert_int_eq(cold_checkpoint(&rig), 0);
    uint64_t n = stat_of(&rig.durable.stats.checkpoints);
    segment_name(name, rig.file[0]->number, false);
    ck_assert_int_eq(calls->rename(rig.data.disk, name, "kept"), 0);
    wait_for_lost(&rig, 1);
    cold_judge(&rig);
    ck_assert(cold_work(&rig, 20));
    ck_assert_uint_eq(stat_of(&rig.durable.stats.checkpoints), n);
    (void)checkpointer_stop(&rig.checkpointer, false);
    ck_assert_uint_eq(rig.checkpointer.n_lost, 1);
    ck_assert_uint_eq(rig.checkpointer.n_missing, 0);
    ck_assert_int_eq(calls->rename(rig.data.disk, "kept", name), 0);
    ck_assert_int_eq(
        checkpointer_start(&rig.checkpointer, &rig.durable, &rig.schema), 0);
    restart(&rig, false);
    ck_assert_int_eq(calls->unlink(rig.data.disk, name), 0);
    wait_for_lost(&rig, 1);
    ck_assert_int_eq(cold_seal(&rig, 0, 1, NULL), 0);
    ck_assert_int_eq(cold_publish(&rig), 0);
    end(&rig);
}
END_TEST

int
main(void)
{
    const TTest *test[] = {test_random, test_cut_publish,
        test_cut_publish_by_checkpoint, test_cut_start,
        test_what_stays_is_synced, test_last_batch_before,
        test_first_batch_behind, test_removed_before, test_files_that_go,
        test_spared, test_published_later, test_never_published,
        test_checkpoint_publishes, test_dropped_counter, test_check,
        test_damage, test_other_records, test_wrong_and_missing_files,
        test_lost};
    return run_tests("recover cold", test, COUNT_OF(test));
}
