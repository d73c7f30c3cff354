/* SPDX-License-Identifier: BSD-3-Clause */
/* Rings of cold/fetch, over a disk that counts and fails: who asks is answered
 * by reaping; what the ring cannot do the pool does; nothing is read twice that
 * is asked for twice, and no answer is wrong. */
#include "unit/fetch_help.h"

#include "lib/fake_disk.h"
#include "lib/fake_ring.h"
#include "lib/fault_alloc.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

enum { CACHE_BYTES = 8 << 20, BLOCKS_MIN = 300 };

struct rig {
    struct records records;
    struct segment_head head;
    struct fake_disk *fake;
    struct segment *segment;
    struct fetch *fetch;
    struct fake_ring *disk_ring; /* the fetch_ring's */
    struct fetch_ring *ring;
    struct ask *ask;
    unsigned reads; /* that the disk has counted */
};

static struct rig *rig;

static void
start(uint64_t cache_bytes)
{
    struct fetch_config config = {.threads = 2, .cache_bytes = cache_bytes};

    ck_assert_int_eq(fetch_start(&config, &rig->fetch), 0);
    rig->disk_ring = fake_ring_create(fake_disk_as_disk(rig->fake));
    ck_assert_int_eq(
        fetch_ring_create(rig->fetch, &rig->disk_ring->ring, &rig->ring), 0);
    rig->ask->call.ring = rig->ring;
}

static void
setup(void)
{
    struct segment_write_config write = {
        .codec = BLOCK_PLAIN, .level = BLOCK_LEVEL_DEFAULT};
    struct segment_config read;

    rig = calloc(1, sizeof *rig);
    ck_assert_ptr_nonnull(rig);
    rig->fake = fake_disk_create(1);
    rig->ask = ask_create();
    write.disk = fake_disk_as_disk(rig->fake);
    read = (struct segment_config){.disk = write.disk};
    make_records(&rig->records, ID_RANDOM, LOOK_WIDE, 20000, 8);
    ck_assert_int_eq(
        write_records(&write, SEGMENT_NUMBER, &rig->records, &rig->head), 0);
    ck_assert_int_eq(
        segment_open(&read, SEGMENT_EPOCH, SEGMENT_NUMBER, &rig->segment), 0);
    ck_assert_uint_ge(rig->head.n_blocks, BLOCKS_MIN);
    rig->reads = fake_disk_count(rig->fake, FAKE_READ);
}

static void
teardown(void)
{
    fetch_ring_destroy(&rig->ring);
    fetch_stop(&rig->fetch);
    segment_close(&rig->segment);
    fake_disk_destroy(&rig->fake);
    ask_destroy(&rig->ask);
    free(rig);
}

static unsigned
reads_since(void)
{
    unsigned before = rig->reads;

    rig->reads = fake_disk_count(rig->fake, FAKE_READ);
    return rig->reads - before;
}

static struct fetch_stats
stats_of(void)
{
    struct fetch_stats stats;

    fetch_stats(rig->fetch, &stats);
    return stats;
}

static uint64_t
id_in(uint32_t block, size_t i)
{
    size_t at;

    ck_assert(find_record(
        &rig->records, segment_first_id(rig->segment, block), &at));
    return rig->records.id[at + i];
}

/* Asks for a record of each of n blocks from the first on. */
static void
begin(struct ask *ask, uint32_t first, uint32_t n)
{
    ask_clear(ask);
    for (uint32_t i = 0; i < n; i++) {
        ask_add(ask, rig->segment, id_in(first + i, i % 5));
    }
    ck_assert(!fetch_begin(rig->fetch, &ask->call));
}

static void
submit_all(void)
{
    while (fetch_ring_submit(rig->ring)) {
    }
}

static bool
is_ready(void)
{
    struct pollfd poll_fd = {.fd = fetch_ring_fd(rig->ring), .events = POLLIN};

    return poll(&poll_fd, 1, 0) == 1;
}

static void
reap_all(void)
{
    while (is_ready()) {
        fetch_ring_reap(rig->ring);
    }
}

/* Has the ring do all that it can, then waits for the pool. */
static void
finish(struct ask *ask)
{
    submit_all();
    reap_all();
    ask_wait(ask);
    ck_assert_uint_eq(ask->n_done, 1);
}

START_TEST(test_answers_come_by_reaping)
{
    enum { BLOCKS = 10 };

    start(_i == 0 ? CACHE_BYTES : 0);
    begin(rig->ask, 0, BLOCKS);
    ck_assert_uint_eq(rig->disk_ring->n_reads, 0);
    ck_assert(!fetch_ring_submit(rig->ring));
    ck_assert_uint_eq(rig->disk_ring->n_submits, 1);
    ck_assert_uint_eq(rig->disk_ring->n_reads, BLOCKS);
    ck_assert_uint_eq(stats_of().reading, BLOCKS);
    ck_assert_uint_eq(rig->ask->n_done, 0);
    ck_assert(is_ready());
    fetch_ring_reap(rig->ring);
    ck_assert_uint_eq(rig->ask->n_done, 1);
    (void)ask_check(rig->ask, &rig->records, 0);
    ck_assert(!is_ready());
    struct fetch_stats stats = stats_of();
    ck_assert_uint_eq(stats.rings, 1);
    ck_assert_uint_eq(stats.reads, BLOCKS);
    ck_assert_uint_eq(stats.ring_reads, BLOCKS);
    ck_assert_uint_eq(stats.read_bytes, BLOCKS * BLOCK_BYTES_MAX);
    ck_assert_uint_eq(stats.uncached, _i == 0 ? 0 : BLOCKS);
    ck_assert_uint_eq(stats.reading + stats.queued + stats.queued_max, 0);
    ck_assert_uint_eq(reads_since(), BLOCKS);
    rig->ask->n_done = 0;
    ck_assert_uint_eq(fetch_begin(rig->fetch, &rig->ask->call), _i == 0);
    if (_i != 0) {
        finish(rig->ask);
    }
    /* nothing to do costs no system call */
    unsigned n_submits = rig->disk_ring->n_submits;
    ck_assert(!fetch_ring_submit(rig->ring));
    ck_assert_uint_eq(rig->disk_ring->n_submits, n_submits);
}
END_TEST

START_TEST(test_a_turn_is_bounded)
{
    enum { BLOCKS = 100 };
    unsigned turns = 1;

    start(CACHE_BYTES);
    begin(rig->ask, 0, BLOCKS);
    while (fetch_ring_submit(rig->ring)) {
        ck_assert_uint_eq(rig->disk_ring->n_reads, turns * FETCH_RING_TURN);
        turns++;
    }
    ck_assert_uint_eq(rig->disk_ring->n_reads, BLOCKS);
    ck_assert_uint_eq(turns, (BLOCKS + FETCH_RING_TURN - 1) / FETCH_RING_TURN);
    /* and so is one of answers, down to a half of what fills two */
    for (unsigned left = BLOCKS; left > 0;) {
        unsigned share = left >= FETCH_RING_TURN && left < 2 * FETCH_RING_TURN
            ? left / 2
            : FETCH_RING_TURN;

        share = share < left ? share : left;
        ck_assert_uint_eq(rig->ask->n_done, 0);
        ck_assert(is_ready());
        fetch_ring_reap(rig->ring);
        left -= share;
        ck_assert_uint_eq(stats_of().reads, BLOCKS - left);
    }
    ck_assert(!is_ready());
    ck_assert_uint_eq(rig->ask->n_done, 1);
    (void)ask_check(rig->ask, &rig->records, 0);
}
END_TEST

/* Those who are answered may ask anew before the others are; all together
 * where no disk was waited for. */
START_TEST(test_half_of_a_turn_is_answered)
{
    enum { CALLS = FETCH_RING_TURN };
    struct ask *ask[CALLS];
    unsigned n_done = 0;

    start(CACHE_BYTES);
    rig->disk_ring->ring.is_quick = _i != 0;
    for (uint32_t i = 0; i < CALLS; i++) {
        ask[i] = ask_create();
        ask[i]->call.ring = rig->ring;
        begin(ask[i], i, 1);
    }
    submit_all();
    fetch_ring_reap(rig->ring);
    for (unsigned i = 0; i < CALLS; i++) {
        n_done += ask[i]->n_done;
    }
    ck_assert_uint_eq(n_done, _i != 0 ? CALLS : CALLS / 2);
    begin(rig->ask, CALLS, 1);
    submit_all();
    ck_assert_uint_eq(rig->disk_ring->n_reads, CALLS + 1);
    reap_all();
    for (unsigned i = 0; i < CALLS; i++) {
        ck_assert_uint_eq(ask[i]->n_done, 1);
        (void)ask_check(ask[i], &rig->records, 0);
        ask_destroy(&ask[i]);
    }
    (void)ask_check(rig->ask, &rig->records, 0);
}
END_TEST

START_TEST(test_a_full_ring_leaves_the_rest_to_the_pool)
{
    enum { BLOCKS = 250 };

    start(CACHE_BYTES);
    begin(rig->ask, 0, BLOCKS);
    finish(rig->ask);
    (void)ask_check(rig->ask, &rig->records, 0);
    ck_assert_uint_eq(stats_of().reads, BLOCKS);
    ck_assert_uint_eq(stats_of().ring_reads, FETCH_RING_READS);
    ck_assert_uint_eq(stats_of().ring_failures, 0);
    ck_assert_uint_eq(reads_since(), BLOCKS);
    /* and has room again */
    begin(rig->ask, BLOCKS, 40);
    finish(rig->ask);
    ck_assert_uint_eq(stats_of().ring_reads, FETCH_RING_READS + 40);
}
END_TEST

/* Has the segment opened for reads past the page cache. */
static void
open_direct(void)
{
    const struct segment_config read = {
        .disk = fake_disk_as_disk(rig->fake), .is_direct = true};

    segment_close(&rig->segment);
    ck_assert_int_eq(
        segment_open(&read, SEGMENT_EPOCH, SEGMENT_NUMBER, &rig->segment), 0);
    (void)reads_since();
}

/* Past the page cache; through it, where the file system has no such reads. */
START_TEST(test_reads_past_the_page_cache)
{
    enum { BLOCKS = 20 };
    bool has_any = _i == 0;

    start(CACHE_BYTES);
    if (!has_any) { /* it is opened for all else first */
        fake_disk_fail(rig->fake, 1 << FAKE_OPEN, 2, EINVAL, false);
    }
    open_direct();
    ck_assert(segment__is_direct(rig->segment) == has_any);
    begin(rig->ask, 0, BLOCKS);
    finish(rig->ask);
    (void)ask_check(rig->ask, &rig->records, 0);
    ck_assert_uint_eq(stats_of().direct_reads, has_any ? BLOCKS : 0);
    ck_assert_uint_eq(stats_of().ring_reads, BLOCKS);
    ck_assert_uint_eq(reads_since(), BLOCKS);
}
END_TEST

/* Where half of the descriptors are in use the file is opened once only. */
static void
check_scarce(const struct segment_config *config)
{
    struct rlimit limit, less;
    struct segment *segment;
    int next = dup(STDIN_FILENO); /* and so is the number of the next one */

    ck_assert_int_ge(next, 0);
    close(next);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    less = limit;
    less.rlim_cur = (rlim_t)next + 2;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &less), 0);
    ck_assert_int_eq(
        segment_open(config, SEGMENT_EPOCH, SEGMENT_NUMBER, &segment), 0);
    ck_assert(!segment__is_direct(segment));
    segment_close(&segment);
    ck_assert_int_eq(dup(STDIN_FILENO), next); /* nothing is left open */
    close(next);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* The read that a ring gets is of a descriptor that goes past the page cache:
 * with a real disk. */
START_TEST(test_a_direct_read)
{
    static _Alignas(DISK_DIRECT_BYTES) uint8_t bytes[BLOCK_BYTES_MAX];
    struct segment_write_config write = {
        .codec = BLOCK_PLAIN, .level = BLOCK_LEVEL_DEFAULT};
    struct segment_config config = {.is_direct = true};
    char path[] = "check_fetch_ring.XXXXXX", name[SEGMENT_NAME_BYTES];
    struct segment_fault fault;
    struct segment *segment;
    struct disk_read read;
    struct block block;
    struct disk *disk;

    ck_assert_ptr_nonnull(mkdtemp(path));
    int dir_fd = open(path, O_RDONLY | O_DIRECTORY);
    ck_assert_int_eq(disk_real_create(dir_fd, &disk), 0);
    write.disk = config.disk = disk;
    ck_assert_int_eq(
        write_records(&write, SEGMENT_NUMBER, &rig->records, &rig->head), 0);
    ck_assert_int_eq(
        segment_open(&config, SEGMENT_EPOCH, SEGMENT_NUMBER, &segment), 0);
    segment__block_read(segment, 3, bytes, &read);
    ck_assert(((fcntl(read.fd, F_GETFL) & O_DIRECT) != 0) ==
        segment__is_direct(segment));
    ck_assert_int_eq(
        pread(read.fd, read.bytes, read.len, (off_t)read.at), BLOCK_BYTES_MAX);
    ck_assert_int_eq(
        segment__check_block(segment, 3, bytes, &block, &fault), 0);
    segment_close(&segment);
    check_scarce(&config);
    segment_name(name, SEGMENT_NUMBER, false);
    ck_assert_int_eq(disk->calls->unlink(disk, name), 0);
    disk_real_destroy(&disk);
    close(dir_fd);
    ck_assert_int_eq(rmdir(path), 0);
}
END_TEST

/* Calls with and without a ring wait for the same read, whosever it is. */
START_TEST(test_calls_join)
{
    struct ask *other = ask_create();

    start(CACHE_BYTES);
    begin(rig->ask, 0, 3);
    begin(other, 1, 1);
    ck_assert_uint_eq(stats_of().joins, 1);
    submit_all();
    ck_assert_uint_eq(other->n_done, 0);
    reap_all();
    ck_assert_uint_eq(other->n_done, 1);
    ck_assert_uint_eq(rig->ask->n_done, 1);
    (void)ask_check(rig->ask, &rig->records, 0);
    (void)ask_check(other, &rig->records, 0);
    ck_assert_uint_eq(reads_since(), 3);

    fake_disk_hold(rig->fake, FAKE_READ);
    begin(other, 7, 1);
    fake_disk_wait_held(rig->fake);
    begin(rig->ask, 7, 1);
    ck_assert(!fetch_ring_submit(rig->ring));
    ck_assert_uint_eq(rig->disk_ring->n_reads, 3);
    fake_disk_let_go(rig->fake);
    ask_wait(other);
    ask_wait(rig->ask);
    (void)ask_check(rig->ask, &rig->records, 0);
    ck_assert_uint_eq(reads_since(), 1);
    ask_destroy(&other);
}
END_TEST

enum trouble { REFUSED, CUT, FAILED_ONCE, TROUBLES };

/* What does not come whole is read again by the pool: so one fault of the ring
 * is nobody's error. */
START_TEST(test_the_pool_reads_what_the_ring_does_not)
{
    enum { BLOCKS = 20, AGAIN = 3 };

    start(CACHE_BYTES);
    if (_i == REFUSED) {
        rig->disk_ring->refuse = AGAIN;
    } else if (_i == CUT) {
        rig->disk_ring->cut = AGAIN;
    } else {
        fake_disk_fail(rig->fake, 1 << FAKE_READ, 2, EIO, false);
    }
    begin(rig->ask, 0, BLOCKS);
    finish(rig->ask);
    (void)ask_check(rig->ask, &rig->records, 0);
    struct fetch_stats stats = stats_of();
    ck_assert_uint_eq(stats.ring_failures, _i == FAILED_ONCE ? 1 : AGAIN);
    ck_assert_uint_eq(stats.ring_reads + stats.ring_failures, BLOCKS);
    ck_assert_uint_eq(stats.reads, BLOCKS);
    ck_assert_uint_eq(stats.read_failures + stats.reading + stats.queued, 0);
    ck_assert_uint_eq(
        reads_since(), BLOCKS + (_i == REFUSED ? 0 : stats.ring_failures));
}
END_TEST

START_TEST(test_a_disk_that_fails)
{
    enum { BLOCKS = 20 };

    start(CACHE_BYTES);
    fake_disk_fail(rig->fake, 1 << FAKE_READ, 1, EIO, true);
    begin(rig->ask, 0, BLOCKS);
    finish(rig->ask);
    ck_assert_uint_eq(ask_check(rig->ask, &rig->records, ERR_DISK), BLOCKS);
    ck_assert_uint_eq(stats_of().read_failures, BLOCKS);
    fake_disk_heal(rig->fake);
    begin(rig->ask, 0, BLOCKS);
    finish(rig->ask);
    ck_assert_uint_eq(ask_check(rig->ask, &rig->records, 0), 0);
    ck_assert_uint_eq(stats_of().ring_reads, BLOCKS);
}
END_TEST

START_TEST(test_a_damaged_block)
{
    enum { BLOCKS = 8, BAD = 5 };
    char name[SEGMENT_NAME_BYTES];

    segment_name(name, SEGMENT_NUMBER, false);
    start(CACHE_BYTES);
    fake_disk_flip(rig->fake, name, segment_block_at(BAD) + 1000, 1);
    begin(rig->ask, 0, BLOCKS);
    finish(rig->ask);
    ck_assert_uint_eq(ask_check(rig->ask, &rig->records, ERR_CORRUPT), 1);
    ck_assert_int_eq(rig->ask->lookup[BAD].err, ERR_CORRUPT);
    ck_assert_uint_eq(stats_of().damaged, 1);
    ck_assert_uint_eq(stats_of().ring_reads, BLOCKS);
    fake_disk_flip(rig->fake, name, segment_block_at(BAD) + 1000, 1);
    begin(rig->ask, BAD, 1);
    finish(rig->ask);
    ck_assert_uint_eq(ask_check(rig->ask, &rig->records, 0), 0);
    ck_assert_uint_eq(reads_since(), BLOCKS + 1);
}
END_TEST

/* One call after the other in done_fn, more of them than the ring has room for
 * at a time. */
struct chain {
    struct fetch_call call;
    struct fetch_lookup lookup;
    uint32_t block;
    bool good;
};

enum { CHAIN = 2 * FETCH_RING_READS };

static void
begin_next(struct fetch_call *call)
{
    struct chain *chain = call->owner;

    do {
        chain->good = chain->good && is_right(&chain->lookup, &rig->records);
        if (++chain->block == CHAIN) {
            return;
        }
        chain->lookup.id = segment_first_id(rig->segment, chain->block);
    } while (fetch_begin(rig->fetch, call));
}

START_TEST(test_a_call_begins_in_done_fn)
{
    struct chain chain = {.good = true};

    start(_i == 0 ? CACHE_BYTES : 0);
    chain.call = (struct fetch_call){.lookup = &chain.lookup,
        .n = 1,
        .done_fn = begin_next,
        .owner = &chain,
        .ring = rig->ring};
    chain.lookup.segment = rig->segment;
    chain.lookup.columns = BLOCK_COLUMNS_ALL;
    chain.lookup.id = id_in(0, 0);
    ck_assert(!fetch_begin(rig->fetch, &chain.call));
    while (chain.block < CHAIN) {
        ck_assert(!fetch_ring_submit(rig->ring));
        fetch_ring_reap(rig->ring);
    }
    ck_assert(chain.good);
    ck_assert_uint_eq(reads_since(), CHAIN);
    ck_assert_uint_eq(stats_of().ring_reads, CHAIN);
}
END_TEST

/* A held ring is not waited for by anybody else. */
START_TEST(test_others_go_on)
{
    struct ask *other = ask_create();

    start(CACHE_BYTES);
    rig->disk_ring->is_held = true;
    begin(rig->ask, 0, 4);
    submit_all();
    fetch_ring_reap(rig->ring);
    for (uint32_t i = 10; i < 14; i++) {
        ask_add(other, rig->segment, id_in(i, 0));
    }
    (void)ask_run(other, rig->fetch);
    (void)ask_check(other, &rig->records, 0);
    ck_assert_uint_eq(rig->ask->n_done, 0);
    rig->disk_ring->is_held = false;
    finish(rig->ask);
    (void)ask_check(rig->ask, &rig->records, 0);
    ask_destroy(&other);
}
END_TEST

START_TEST(test_no_memory_for_a_ring)
{
    struct fault_alloc fault;
    struct fetch_config config = {.threads = 1, .alloc = &fault.alloc};
    struct disk_ring *disk_ring =
        &fake_ring_create(fake_disk_as_disk(rig->fake))->ring;

    fault_alloc_init(&fault);
    ck_assert_int_eq(fetch_start(&config, &rig->fetch), 0);
    fault.calls = 0;
    fault.fail_from = fault.fail_to = 1;
    ck_assert_int_eq(
        fetch_ring_create(rig->fetch, disk_ring, &rig->ring), ERR_NO_MEMORY);
    ck_assert_ptr_null(rig->ring);
    ck_assert_int_eq(fetch_ring_create(rig->fetch, disk_ring, &rig->ring), 0);
    fetch_ring_destroy(&rig->ring);
    fetch_stop(&rig->fetch);
    ck_assert_uint_eq(fault.live_bytes, 0);
}
END_TEST

int
main(void)
{
    TCase *tcase = tcase_create("fetch_ring");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, test_answers_come_by_reaping, 0, 2);
    tcase_add_test(tcase, test_a_turn_is_bounded);
    tcase_add_loop_test(tcase, test_half_of_a_turn_is_answered, 0, 2);
    tcase_add_test(tcase, test_a_full_ring_leaves_the_rest_to_the_pool);
    tcase_add_loop_test(tcase, test_reads_past_the_page_cache, 0, 2);
    tcase_add_test(tcase, test_a_direct_read);
    tcase_add_test(tcase, test_calls_join);
    tcase_add_loop_test(
        tcase, test_the_pool_reads_what_the_ring_does_not, 0, TROUBLES);
    tcase_add_test(tcase, test_a_disk_that_fails);
    tcase_add_test(tcase, test_a_damaged_block);
    tcase_add_loop_test(tcase, test_a_call_begins_in_done_fn, 0, 2);
    tcase_add_test(tcase, test_others_go_on);
    tcase_add_test(tcase, test_no_memory_for_a_ring);
    return run_case("fetch_ring", tcase);
}
