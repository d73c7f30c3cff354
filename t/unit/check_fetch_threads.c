/* SPDX-License-Identifier: BSD-3-Clause */
/* cold/fetch under threads: many ask, blocks come and go in a cache that is too
 * small, reads fail now and then, and segments are exchanged meanwhile, as
 * merges do: forgotten, and closed when the last call that has one is answered.
 * An answer is right or an error. Without rings, with some, with rings only. */
#include "base/mutex.h"
#include "unit/fetch_help.h"

#include "lib/fake_disk.h"
#include "lib/fake_ring.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>

enum {
    POOL = 6,
    ASKERS = 4,
    ROUNDS = 300,
    IDS = 40,
    SEGMENTS = 12, /* files of the same records */
    CACHE_BYTES = 160 << 10
};

/* A segment with those who hold it. */
struct held {
    struct segment *segment;
    unsigned refs; /* one of them is the rig's */
};

struct rig {
    struct records records;
    struct fake_disk *fake;
    struct fetch *fetch;
    struct mutex lock; /* now, refs */
    struct held *now;
    _Atomic bool is_over;
};

static struct rig *rig;

static struct held *
hold_open(uint64_t number)
{
    struct segment_config config = {.disk = fake_disk_as_disk(rig->fake)};
    struct held *held = calloc(1, sizeof *held);

    if (held != NULL &&
        segment_open(&config, SEGMENT_EPOCH, number, &held->segment) != 0) {
        free(held);
        return NULL;
    }
    return held;
}

static struct held *
get_now(void)
{
    mutex_lock(&rig->lock);
    struct held *held = rig->now;
    held->refs++;
    mutex_unlock(&rig->lock);
    return held;
}

static void
drop(struct held *held)
{
    mutex_lock(&rig->lock);
    bool is_last = --held->refs == 0;
    mutex_unlock(&rig->lock);
    if (is_last) {
        fetch_forget(rig->fetch, held->segment);
        segment_close(&held->segment);
        free(held);
    }
}

static void
set_now(struct held *held)
{
    mutex_lock(&rig->lock);
    struct held *old = rig->now;
    rig->now = held;
    held->refs = 1;
    mutex_unlock(&rig->lock);
    if (old != NULL) {
        fetch_forget(rig->fetch, old->segment);
        drop(old);
    }
}

struct asker {
    pthread_t thread;
    unsigned number;
    bool has_ring;
    bool is_right;
    size_t failed, waited;
};

/* As a loop would: has the ring read and answer until its own call is answered,
 * by whomever. Others may wait for its reads meanwhile. */
static bool
run_by_ring(struct ask *ask, struct fetch_ring *ring)
{
    if (fetch_begin(rig->fetch, &ask->call)) {
        return true;
    }
    for (bool is_over = false; !is_over; sched_yield()) {
        (void)fetch_ring_submit(ring);
        fetch_ring_reap(ring);
        mutex_lock(&ask->lock);
        is_over = ask->n_done > 0;
        mutex_unlock(&ask->lock);
    }
    return false;
}

static struct fetch_ring *
open_ring(void)
{
    struct disk_ring *disk_ring =
        &fake_ring_create(fake_disk_as_disk(rig->fake))->ring;
    struct fetch_ring *ring = NULL;

    ck_assert_int_eq(fetch_ring_create(rig->fetch, disk_ring, &ring), 0);
    return ring;
}

static void *
run_asker(void *context)
{
    struct asker *asker = context;
    struct ask *ask = ask_create();
    struct fetch_ring *ring = asker->has_ring ? open_ring() : NULL;
    struct dist_rng rng;

    ask->call.ring = ring;
    dist_rng_init(&rng, 11, asker->number);
    asker->is_right = true;
    for (int round = 0; round < ROUNDS && asker->is_right; round++) {
        struct held *held = get_now();
        /* half of them near each other, so that some are joined */
        size_t from = (size_t)round * rig->records.n / ROUNDS;

        ask_clear(ask);
        for (int i = 0; i < IDS; i++) {
            uint64_t bits = dist_rng_u64(&rng);
            size_t at = bits % 2 == 0 ? from + (bits >> 8) % 200 : bits >> 8;

            ask_add(ask, held->segment,
                rig->records.id[at % rig->records.n] + (bits % 8 == 1));
        }
        asker->waited += !(
            ring != NULL ? run_by_ring(ask, ring) : ask_run(ask, rig->fetch));
        for (size_t i = 0; i < ask->call.n; i++) {
            const struct fetch_lookup *lookup = &ask->lookup[i];

            asker->failed += lookup->err == ERR_DISK;
            asker->is_right = asker->is_right &&
                (lookup->err == ERR_DISK ? !lookup->found
                                         : is_right(lookup, &rig->records));
        }
        drop(held);
    }
    fetch_ring_destroy(&ring);
    ask_destroy(&ask);
    return NULL;
}

/* Exchanges the segment again and again, and has reads fail. */
static void *
run_changer(void *context)
{
    size_t *changes = context;
    struct cache_stats stats;
    struct fetch_stats all;

    /* relaxed: only to end some time after it is set */
    while (!atomic_load_explicit(&rig->is_over, memory_order_relaxed)) {
        struct held *next = hold_open(1 + *changes % SEGMENTS);
        if (next == NULL) { /* the read that fails was one of its */
            fake_disk_heal(rig->fake);
            continue;
        }
        set_now(next);
        ++*changes;
        if (*changes % 64 == 0) {
            fake_disk_fail(rig->fake, 1 << FAKE_READ, 30, EIO, false);
        }
        fetch_stats(rig->fetch, &all);
        stats = all.cache;
        if (stats.bytes > stats.budget_bytes) {
            return NULL;
        }
    }
    return changes;
}

static void
setup(void)
{
    struct segment_write_config write = {
        .codec = BLOCK_AUTO, .level = BLOCK_LEVEL_DEFAULT};
    struct fetch_config config = {.threads = POOL, .cache_bytes = CACHE_BYTES};
    struct segment_head head;

    rig = calloc(1, sizeof *rig);
    ck_assert_ptr_nonnull(rig);
    mutex_init(&rig->lock);
    rig->fake = fake_disk_create(1);
    write.disk = fake_disk_as_disk(rig->fake);
    make_records(&rig->records, ID_SECONDS, LOOK_WIDE, 10000, 4);
    for (uint64_t number = 1; number <= SEGMENTS; number++) {
        ck_assert_int_eq(
            write_records(&write, number, &rig->records, &head), 0);
    }
    ck_assert_uint_gt(
        (uint64_t)head.n_blocks * BLOCK_BYTES_MAX, 2 * CACHE_BYTES);
    ck_assert_int_eq(fetch_start(&config, &rig->fetch), 0);
    set_now(hold_open(1));
}

START_TEST(test_threads)
{
    struct asker asker[ASKERS] = {{.number = 0}};
    struct fetch_stats stats;
    size_t changes = 0;
    size_t waited = 0;
    pthread_t changer;
    void *went_well;

    ck_assert_int_eq(pthread_create(&changer, NULL, run_changer, &changes), 0);
    for (unsigned i = 0; i < ASKERS; i++) {
        asker[i].number = i;
        asker[i].has_ring = _i == 1 ? i % 2 == 0 : _i == 2;
        ck_assert_int_eq(
            pthread_create(&asker[i].thread, NULL, run_asker, &asker[i]), 0);
    }
    for (unsigned i = 0; i < ASKERS; i++) {
        pthread_join(asker[i].thread, NULL);
        ck_assert(asker[i].is_right);
        waited += asker[i].waited;
    }
    /* relaxed: see run_changer */
    atomic_store_explicit(&rig->is_over, true, memory_order_relaxed);
    pthread_join(changer, &went_well);
    ck_assert_ptr_nonnull(went_well);
    fetch_stats(rig->fetch, &stats);
    printf("# %zu exchanges; of %d calls %zu waited; %ju reads, %ju failed, "
           "%ju joins, %ju evictions\n",
        changes, ASKERS * ROUNDS, waited, (uintmax_t)stats.reads,
        (uintmax_t)stats.read_failures, (uintmax_t)stats.joins,
        (uintmax_t)stats.cache.evicted);
    ck_assert_uint_eq(
        stats.lookups, stats.gaps + stats.hits + stats.joins + stats.reads);
    ck_assert_uint_gt(stats.hits, 0);
    ck_assert(_i == 0 ? stats.ring_reads == 0 : stats.ring_reads > 0);
    ck_assert_uint_eq(stats.rings, 0);
    ck_assert_uint_eq(stats.queued + stats.reading, 0);
    drop(rig->now);
    fetch_stop(&rig->fetch);
    fake_disk_destroy(&rig->fake);
    mutex_fini(&rig->lock);
    free(rig);
}
END_TEST

int
main(void)
{
    TCase *tcase = tcase_create("fetch_threads");

    tcase_add_checked_fixture(tcase, setup, NULL);
    tcase_add_loop_test(tcase, test_threads, 0, 3);
    return run_case("fetch_threads", tcase);
}
