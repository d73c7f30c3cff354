/* SPDX-License-Identifier: BSD-3-Clause */
/* cold/fetch on a disk that counts, holds and fails reads: one read of a block,
 * however many ask; blocks of a call side by side; errors for those that ask
 * for the block that failed, and never a wrong number. */
#include "unit/fetch_help.h"

#include "cold/fetch_priv.h"
#include "lib/fake_disk.h"
#include "lib/fault_alloc.h"
#include "unit/survives.h"

#include <errno.h>
#include <sched.h>
#include <unistd.h>

enum { CACHE_BYTES = 4 << 20, THREADS = 32 };

struct rig {
    struct records records;
    struct segment_head head;
    struct fake_disk *fake;
    struct fault_alloc fault;
    struct segment *segment;
    struct fetch *fetch;
    struct ask *ask;
    unsigned reads; /* that the disk has counted */
};

static struct rig *rig;

static void
start(unsigned threads, uint64_t cache_bytes)
{
    struct fetch_config config = {
        .threads = threads, .cache_bytes = cache_bytes};

    ck_assert_int_eq(fetch_start(&config, &rig->fetch), 0);
}

/* A segment of many blocks. */
static void
make_segment(enum id_family family, enum block_codec codec, size_t n)
{
    struct segment_write_config write = {.disk = fake_disk_as_disk(rig->fake),
        .codec = codec,
        .level = BLOCK_LEVEL_DEFAULT};
    struct segment_config read = {.disk = write.disk};

    make_records(&rig->records, family, LOOK_WIDE, n, 3);
    ck_assert_int_eq(
        write_records(&write, SEGMENT_NUMBER, &rig->records, &rig->head), 0);
    ck_assert_int_eq(
        segment_open(&read, SEGMENT_EPOCH, SEGMENT_NUMBER, &rig->segment), 0);
}

static void
setup(void)
{
    rig = calloc(1, sizeof *rig);
    ck_assert_ptr_nonnull(rig);
    rig->fake = fake_disk_create(1);
    rig->ask = ask_create();
    fault_alloc_init(&rig->fault);
    make_segment(ID_SECONDS, BLOCK_AUTO, 10000);
    ck_assert_uint_ge(rig->head.n_blocks, 60);
    rig->reads = fake_disk_count(rig->fake, FAKE_READ);
}

static void
teardown(void)
{
    fetch_stop(&rig->fetch);
    segment_close(&rig->segment);
    fake_disk_destroy(&rig->fake);
    ask_destroy(&rig->ask);
    free(rig);
}

/* Reads since it was asked last. */
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
    uint64_t timed = 0;

    fetch_stats(rig->fetch, &stats);
    for (unsigned i = 0; i < FETCH_LATENCIES; i++) {
        timed += stats.read_us[i];
    }
    ck_assert_uint_eq(timed, stats.reads);
    return stats;
}

/* The id of record i of block `block`. */
static uint64_t
id_in(uint32_t block, size_t i)
{
    size_t at;

    ck_assert(find_record(
        &rig->records, segment_first_id(rig->segment, block), &at));
    return rig->records.id[at + i];
}

START_TEST(test_answers_are_right)
{
    enum { ROUNDS = 200, IDS = 100 };
    struct dist_rng rng;
    bool at_once = true;

    dist_rng_init(&rng, 3, 0);
    start(4, _i == 0 ? CACHE_BYTES : 0);
    for (int round = 0; round < ROUNDS; round++) {
        ask_clear(rig->ask);
        for (int i = 0; i < IDS; i++) {
            uint64_t bits = dist_rng_u64(&rng);
            uint64_t id = rig->records.id[(bits >> 8) % rig->records.n];

            ask_add(rig->ask, rig->segment,
                bits % 4 == 0        ? id + 1
                    : bits % 16 == 1 ? bits
                                     : id);
        }
        at_once = ask_run(rig->ask, rig->fetch);
        (void)ask_check(rig->ask, &rig->records, 0);
        ck_assert_uint_eq(rig->ask->n_done, at_once ? 0 : 1);
    }
    struct fetch_stats stats = stats_of();
    ck_assert_uint_eq(stats.lookups, ROUNDS * IDS);
    ck_assert_uint_eq(stats.reads, reads_since());
    ck_assert_uint_eq(stats.read_bytes, stats.reads * BLOCK_BYTES_MAX);
    ck_assert_uint_eq(
        stats.lookups, stats.gaps + stats.hits + stats.joins + stats.reads);
    ck_assert_uint_eq(stats.read_failures + stats.damaged + stats.queued, 0);
    if (_i == 0) {
        ck_assert(at_once);
        ck_assert_uint_eq(stats.reads, rig->head.n_blocks);
        ck_assert_uint_eq(stats.cache.blocks, rig->head.n_blocks);
    } else {
        ck_assert_uint_eq(stats.hits, 0);
        ck_assert_uint_eq(stats.uncached, stats.reads);
    }
}
END_TEST

START_TEST(test_no_block_no_read)
{
    start(1, CACHE_BYTES);
    ask_add(rig->ask, rig->segment, rig->head.first_id - 1);
    ask_add(rig->ask, rig->segment, rig->head.last_id + 1);
    ck_assert(fetch_begin(rig->fetch, &rig->ask->call));
    (void)ask_check(rig->ask, &rig->records, 0);
    ask_clear(rig->ask);
    ck_assert(fetch_begin(rig->fetch, &rig->ask->call));
    ck_assert_uint_eq(reads_since(), 0);
}
END_TEST

START_TEST(test_one_id_is_read_once)
{
    start(THREADS, CACHE_BYTES);
    for (int i = 0; i < ASKS_MAX; i++) {
        ask_clear(rig->ask);
        ask_add(rig->ask, rig->segment, id_in(9, 5));
        ck_assert(ask_run(rig->ask, rig->fetch) || i == 0);
        (void)ask_check(rig->ask, &rig->records, 0);
    }
    ck_assert_uint_eq(reads_since(), 1);
    ck_assert_uint_eq(stats_of().hits, ASKS_MAX - 1);

    /* and so it is when all of them come at the same time */
    ask_clear(rig->ask);
    for (int i = 0; i < ASKS_MAX; i++) {
        ask_add(rig->ask, rig->segment, id_in(10, 6));
    }
    (void)ask_run(rig->ask, rig->fetch);
    (void)ask_check(rig->ask, &rig->records, 0);
    ck_assert_uint_eq(reads_since(), 1);
    ck_assert_uint_eq(stats_of().joins, ASKS_MAX - 1);
}
END_TEST

START_TEST(test_blocks_are_read_side_by_side)
{
    enum { IDS = 100, BLOCKS = 30 };

    start(THREADS, CACHE_BYTES);
    for (uint32_t i = 0; i < IDS; i++) {
        ask_add(rig->ask, rig->segment, id_in(i % BLOCKS, i));
    }
    fake_disk_hold(rig->fake, FAKE_READ);
    ck_assert(!fetch_begin(rig->fetch, &rig->ask->call));
    fake_disk_wait_held_many(rig->fake, BLOCKS);
    ck_assert_uint_eq(stats_of().reading, BLOCKS);
    ck_assert_uint_eq(rig->ask->n_done, 0);
    fake_disk_let_go(rig->fake);
    ask_wait(rig->ask);
    (void)ask_check(rig->ask, &rig->records, 0);
    ck_assert_uint_eq(reads_since(), BLOCKS);
    ck_assert_uint_eq(stats_of().joins, IDS - BLOCKS);
}
END_TEST

/* Other calls wait for a read that is under way, or in the queue, and do not
 * wait for what they did not ask for. */
START_TEST(test_calls_join)
{
    enum { CALLS = 20 };
    struct ask *ask[CALLS];

    start(1, CACHE_BYTES);
    ask_add(rig->ask, rig->segment, id_in(3, 3));
    (void)ask_run(rig->ask, rig->fetch);
    ck_assert_uint_eq(reads_since(), 1);
    fake_disk_hold(rig->fake, FAKE_READ);
    for (uint32_t i = 0; i < CALLS; i++) {
        ask[i] = ask_create();
        ask_add(ask[i], rig->segment, id_in(1 + i % 2, i));
        ask_add(ask[i], rig->segment, id_in(3, i));
        ck_assert(!fetch_begin(rig->fetch, &ask[i]->call));
    }
    fake_disk_wait_held(rig->fake);
    ck_assert_uint_eq(stats_of().queued, 1);
    ck_assert_uint_le(stats_of().queued_max, 2);
    ask_clear(rig->ask);
    ask_add(rig->ask, rig->segment, id_in(3, 4));
    ck_assert(fetch_begin(rig->fetch, &rig->ask->call));
    fake_disk_let_go(rig->fake);
    for (uint32_t i = 0; i < CALLS; i++) {
        ask_wait(ask[i]);
        (void)ask_check(ask[i], &rig->records, 0);
        ask_destroy(&ask[i]);
    }
    ck_assert_uint_eq(reads_since(), 2);
    ck_assert_uint_eq(stats_of().joins, CALLS - 2);
}
END_TEST

/* Asks for two ids of each of the first blocks; returns how many had the
 * error. */
static size_t
ask_blocks(uint32_t blocks, int may_err)
{
    ask_clear(rig->ask);
    for (uint32_t i = 0; i < 2 * blocks; i++) {
        ask_add(rig->ask, rig->segment, id_in(i % blocks, i));
    }
    (void)ask_run(rig->ask, rig->fetch);
    return ask_check(rig->ask, &rig->records, may_err);
}

START_TEST(test_a_failed_read_fails_its_lookups)
{
    enum { BLOCKS = 8 };

    start(4, CACHE_BYTES);
    for (unsigned n = 1; n <= BLOCKS; n++) {
        fake_disk_fail(rig->fake, 1 << FAKE_READ, n, EIO, false);
        ck_assert_uint_eq(ask_blocks(BLOCKS, ERR_DISK), 2);
        ck_assert_uint_eq(fake_disk_heal(rig->fake), 1);
        ck_assert_uint_eq(reads_since(), BLOCKS);
        ck_assert_uint_eq(stats_of().read_failures, n);
        /* what failed is read again, and only that */
        ck_assert_uint_eq(ask_blocks(BLOCKS, 0), 0);
        ck_assert_uint_eq(reads_since(), 1);
        fetch_forget(rig->fetch, rig->segment);
        ck_assert_uint_eq(stats_of().cache.blocks, 0);
    }
}
END_TEST

START_TEST(test_a_damaged_block_fails_its_lookups)
{
    enum { BLOCKS = 8, BAD = 5, TRIES = 3 };
    char name[SEGMENT_NAME_BYTES];

    segment_name(name, SEGMENT_NUMBER, false);
    start(4, CACHE_BYTES);
    fake_disk_flip(rig->fake, name, segment_block_at(BAD) + 1000, 1);
    for (unsigned n = 1; n <= TRIES; n++) {
        ck_assert_uint_eq(ask_blocks(BLOCKS, ERR_CORRUPT), 2);
        ck_assert_uint_eq(reads_since(), n == 1 ? BLOCKS : 1);
        ck_assert_uint_eq(stats_of().damaged, n);
    }
    fake_disk_flip(rig->fake, name, segment_block_at(BAD) + 1000, 1);
    ck_assert_uint_eq(ask_blocks(BLOCKS, 0), 0);
    ck_assert_uint_eq(reads_since(), 1);
}
END_TEST

/* A disk that fails makes one line at first, not one for each read. */
START_TEST(test_few_lines_are_told)
{
    enum { READS = 100, LINES_MAX = READS / 2 };
    static struct logger logger;
    struct segment_config config = {
        .disk = fake_disk_as_disk(rig->fake), .logger = &logger};
    char text[1 << 14] = "";
    int end[2];
    unsigned lines = 0;

    segment_close(&rig->segment);
    ck_assert_int_eq(
        segment_open(&config, SEGMENT_EPOCH, SEGMENT_NUMBER, &rig->segment),
        0);
    start(1, CACHE_BYTES);
    ck_assert_int_eq(pipe(end), 0);
    int kept = dup(STDERR_FILENO);
    dup2(end[1], STDERR_FILENO);
    fake_disk_fail(rig->fake, 1 << FAKE_READ, 1, EIO, true);
    for (int i = 0; i < READS; i++) {
        ask_clear(rig->ask);
        ask_add(rig->ask, rig->segment, id_in(1, 1));
        (void)ask_run(rig->ask, rig->fetch);
    }
    dup2(kept, STDERR_FILENO);
    close(kept);
    close(end[1]);
    ck_assert_int_ge(read(end[0], text, sizeof text - 1), 0);
    close(end[0]);
    ck_assert_uint_eq(fake_disk_heal(rig->fake), READS);
    ck_assert_msg(strstr(text,
                      "level=error msg=\"segment-00000000000000000005.seg, "
                      "offset 8192: Input/output error\"\n") != NULL,
        "%s", text);
    for (const char *c = text; *c != '\0'; c++) {
        lines += *c == '\n';
    }
    ck_assert_uint_lt(lines, LINES_MAX);
}
END_TEST

static void *
stop(void *context)
{
    (void)context;
    fetch_stop(&rig->fetch);
    return NULL;
}

/* Those that ask for a block under way until they are refused. */
struct prober {
    struct prober *next;
    struct ask *ask;
};

/* The read under way ends well, what is in the queue is not read. */
START_TEST(test_stop)
{
    enum { CALLS = 5 };
    struct ask *ask[CALLS];
    struct prober *probers = NULL;
    struct fetch *fetch;
    pthread_t thread;
    bool is_refused = false;

    start(1, CACHE_BYTES);
    fetch = rig->fetch;
    fake_disk_hold(rig->fake, FAKE_READ);
    for (uint32_t i = 0; i < CALLS; i++) {
        ask[i] = ask_create();
        ask_add(ask[i], rig->segment, id_in(i, i));
        ask_add(ask[i], rig->segment, id_in(i + i % 2, i));
        ck_assert(!fetch_begin(fetch, &ask[i]->call));
    }
    fake_disk_wait_held(rig->fake);
    ck_assert_int_eq(pthread_create(&thread, NULL, stop, NULL), 0);
    while (!is_refused) {
        struct prober *prober = calloc(1, sizeof *prober);

        prober->ask = ask_create();
        ask_add(prober->ask, rig->segment, id_in(0, 1));
        is_refused = fetch_begin(fetch, &prober->ask->call);
        prober->next = probers;
        probers = prober;
        (void)usleep(1000); /* each of them takes memory */
    }
    ck_assert_int_eq(probers->ask->lookup[0].err, ERR_CLOSED);
    fake_disk_let_go(rig->fake);
    pthread_join(thread, NULL);
    ck_assert_ptr_null(rig->fetch);
    ck_assert_uint_eq(reads_since(), 1);
    for (uint32_t i = 0; i < CALLS; i++) {
        ck_assert_uint_eq(ask[i]->n_done, 1);
        ck_assert_uint_eq(
            ask_check(ask[i], &rig->records, ERR_CLOSED), i == 0 ? 0 : 2);
        ask_destroy(&ask[i]);
    }
    while (probers != NULL) {
        struct prober *next = probers->next;

        ck_assert_uint_eq(
            ask_check(probers->ask, &rig->records, ERR_CLOSED), is_refused);
        is_refused = false;
        ask_destroy(&probers->ask);
        free(probers);
        probers = next;
    }
}
END_TEST

/* One call after the other on the thread of the pool, as a store would go on
 * with what it has found. */
struct chain {
    struct fetch_call call;
    struct fetch_lookup lookup;
    uint32_t block;
    bool good;
};

enum { CHAIN = 20 };

static void
begin_next(struct fetch_call *call)
{
    struct chain *chain = call->owner;

    do {
        chain->good = chain->good && is_right(&chain->lookup, &rig->records);
        if (++chain->block == CHAIN) {
            ask_done(&rig->ask->call);
            return;
        }
        chain->lookup.id = segment_first_id(rig->segment, chain->block);
    } while (fetch_begin(rig->fetch, call));
}

START_TEST(test_a_call_begins_in_done_fn)
{
    struct chain chain = {.good = true};

    start(1, CACHE_BYTES);
    chain.call = (struct fetch_call){.lookup = &chain.lookup,
        .n = 1,
        .done_fn = begin_next,
        .owner = &chain};
    chain.lookup.segment = rig->segment;
    chain.lookup.columns = BLOCK_COLUMNS_ALL;
    chain.lookup.id = id_in(0, 0);
    if (fetch_begin(rig->fetch, &chain.call)) {
        begin_next(&chain.call);
    }
    ask_wait(rig->ask);
    ck_assert(chain.good);
    ck_assert_uint_eq(reads_since(), CHAIN);
}
END_TEST

/* One pass with the n-th allocation failing; false where none did. */
static bool
pass_with_fault(size_t n)
{
    struct fetch_config config = {
        .threads = 1, .cache_bytes = CACHE_BYTES, .alloc = &rig->fault.alloc};

    rig->fault.calls = 0;
    rig->fault.failures = 0;
    rig->fault.fail_from = rig->fault.fail_to = n;
    int err = fetch_start(&config, &rig->fetch);
    ck_assert(err == 0 || err == ERR_NO_MEMORY);
    if (err == 0) {
        (void)ask_blocks(2, ERR_NO_MEMORY);
        ck_assert_uint_eq(ask_blocks(2, 0), 0);
        fetch_stop(&rig->fetch);
    }
    ck_assert_uint_eq(rig->fault.live_bytes, 0);
    return rig->fault.failures > 0;
}

START_TEST(test_memory_that_runs_out)
{
    static const struct {
        enum id_family family;
        enum block_codec codec;
    } kind[] = {{ID_SECONDS, BLOCK_PACKED}, {ID_SEQUENTIAL, BLOCK_PACKED},
        {ID_SECONDS, BLOCK_ZSTD}, {ID_SECONDS, BLOCK_PLAIN}};
    size_t n = 1;

    segment_close(&rig->segment);
    make_segment(kind[_i].family, kind[_i].codec, 2000);
    while (pass_with_fault(n)) {
        n++;
    }
    ck_assert_uint_ge(n, 6);
}
END_TEST

static void
count_calls(void *context)
{
    (void)fetch__count_calls(context);
}

static void
begin_call(void *context)
{
    (void)fetch_begin(context, &rig->ask->call);
}

/* Of the pool's copy in a process of its own: here its threads look at it. */
static void
begin_call_of_no_pool(void *context)
{
    struct fetch *fetch = context;

    fetch->magic++;
    begin_call(fetch);
}

/* The block behind the last one. */
static void
check_no_block(void *context)
{
    const struct segment *segment = context;
    struct block block;
    struct segment_fault fault;
    uint8_t bytes[BLOCK_BYTES_MAX] = {0};

    (void)segment__check_block(
        segment, segment_head(segment)->n_blocks, bytes, &block, &fault);
}

/* What belongs under the lock, to a block that there is, to a pool that is
 * alive. */
START_TEST(test_misuse)
{
    start(1, CACHE_BYTES);
    ck_assert(!survives(count_calls, rig->fetch));
    ask_add(rig->ask, rig->segment, rig->records.id[0]);
    ck_assert(!survives(check_no_block, rig->segment));
    ck_assert(survives(begin_call, rig->fetch));
    ck_assert(!survives(begin_call_of_no_pool, rig->fetch));
}
END_TEST

int
main(void)
{
    TCase *tcase = tcase_create("fetch");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, test_answers_are_right, 0, 2);
    tcase_add_test(tcase, test_no_block_no_read);
    tcase_add_test(tcase, test_one_id_is_read_once);
    tcase_add_test(tcase, test_blocks_are_read_side_by_side);
    tcase_add_test(tcase, test_calls_join);
    tcase_add_test(tcase, test_a_failed_read_fails_its_lookups);
    tcase_add_test(tcase, test_a_damaged_block_fails_its_lookups);
    tcase_add_test(tcase, test_few_lines_are_told);
    tcase_add_test(tcase, test_stop);
    tcase_add_test(tcase, test_a_call_begins_in_done_fn);
    tcase_add_loop_test(tcase, test_memory_that_runs_out, 0, 4);
    tcase_add_test(tcase, test_misuse);
    return run_case("fetch", tcase);
}
