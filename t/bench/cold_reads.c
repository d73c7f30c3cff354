/* SPDX-License-Identifier: BSD-3-Clause */

/* Measures lookups in the cold tier's segments below the server: in blocks that
 * are cached; in blocks that are read, beside the same reads with nothing
 * around them, by a pool of threads and by an io_uring; and how many lookups of
 * ids without a record could be told without a read. A number that is wrong
 * ends it with status 1. See doc/measurements.md. */

#include "base/clock.h"
#include "base/mutex.h"
#include "bench/cold_file.h"
#include "bench/cold_misses.h"
#include "bench/fail.h"
#include "bench/number.h"
#include "bench/proc.h"
#include "bench/raw_reads.h"
#include "bench/rounds.h"
#include "bench/sheet.h"
#include "cold/block_build.h"
#include "cold/fetch.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
    EXIT_USAGE = 2,
    ROUNDS = 9,
    THREADS = 16,
    LOOKUPS = 20000, /* in cached blocks, a round */
    CALL_MAX = 100,
    ASKS_MAX = 64,         /* calls at a time */
    CACHE_BYTES = 2 << 20, /* where blocks are read: less than they are */
    ALL_BYTES = 1 << 30    /* and where they are not */
};

struct lab {
    struct cold_choice choice;
    const char *directory;
    const char *what; /* NULL: all */
    uint64_t threads;
    struct disk *disk;
    struct cold_records records;
    struct segment *segment;
    size_t *start; /* owned: first record of each block, and one more */
    uint64_t *at;  /* owned: offsets of all blocks, in random order */
    uint64_t *id;  /* owned: an id of each, in the same order */
    int fd, fd_direct;
    struct sheet cached, disk_sheet, misses;
};

static const struct sheet_column cached_columns[] = {
    {"call1", "calls of 1, us", 2},
    {"call10", "of 10", 2},
    {"call100", "of 100", 2},
};

static const struct sheet_column disk_columns[] = {
    {"cpu_us", "CPU a read, us", 1},
    {"more_us", "more than the pool, us", 1},
    {"rate", "10^3 reads a second", 1},
    {"share", "% of the pool's", 0},
};

/* Calls under way, and a thread that is told of those that are answered as a
 * worker of the server is. */

struct ask {
    struct fetch_call call;
    struct fetch_lookup lookup[CALL_MAX];
    struct ask *next; /* answered, or free */
    struct asker *asker;
};

struct asker {
    struct fetch *fetch;
    struct mutex lock;
    struct ask *answered;
    int event;
    unsigned columns;
    struct ask *ask; /* owned: ASKS_MAX */
};

static void
on_answer(struct fetch_call *call)
{
    struct ask *ask = call->owner;
    struct asker *asker = ask->asker;
    uint64_t one = 1;
    bool is_first;

    mutex_lock(&asker->lock);
    ask->next = asker->answered;
    is_first = ask->next == NULL;
    asker->answered = ask;
    mutex_unlock(&asker->lock);
    if (is_first && write(asker->event, &one, sizeof one) != sizeof one) {
        fail_errno("eventfd");
    }
}

static struct ask *
take_answered(struct asker *asker)
{
    uint64_t count;
    struct ask *ask;

    if (read(asker->event, &count, sizeof count) != sizeof count) {
        fail_errno("eventfd");
    }
    mutex_lock(&asker->lock);
    ask = asker->answered;
    asker->answered = NULL;
    mutex_unlock(&asker->lock);
    return ask;
}

static void
start_asker(struct asker *asker, unsigned threads, uint64_t cache_bytes)
{
    struct fetch_config config = {
        .threads = threads, .cache_bytes = cache_bytes};

    *asker = (struct asker){.ask = cold_take(ASKS_MAX * sizeof(struct ask)),
        .event = eventfd(0, EFD_CLOEXEC),
        .columns = BLOCK_COLUMNS_ALL};
    mutex_init(&asker->lock);
    if (asker->event < 0 || fetch_start(&config, &asker->fetch) != 0) {
        fail("the pool does not start");
    }
    for (size_t i = 0; i < ASKS_MAX; i++) {
        struct ask *ask = &asker->ask[i];

        ask->asker = asker;
        ask->call = (struct fetch_call){
            .lookup = ask->lookup, .done_fn = on_answer, .owner = ask};
    }
}

static void
stop_asker(struct asker *asker)
{
    fetch_stop(&asker->fetch);
    close(asker->event);
    mutex_fini(&asker->lock);
    free(asker->ask);
}

static void
fill_ask(const struct lab *lab, struct ask *ask, const uint64_t *id, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        ask->lookup[i].segment = lab->segment;
        ask->lookup[i].id = id[i];
        ask->lookup[i].columns = ask->asker->columns;
    }
    ask->call.n = n;
}

static void
check_ask(const struct ask *ask, bool is_there)
{
    for (size_t i = 0; i < ask->call.n; i++) {
        if (ask->lookup[i].err != 0 || ask->lookup[i].found != is_there) {
            fail("a lookup is answered wrong");
        }
    }
}

/* Asks for n ids in calls of `size`, as many of these at a time as asks. */
static void
ask_all(const struct lab *lab, struct asker *asker, const uint64_t *id,
    size_t n, size_t size, size_t asks, bool is_there)
{
    struct ask *free_ask = NULL;
    size_t left = n;

    for (size_t i = 0; i < asks; i++) {
        asker->ask[i].next = free_ask;
        free_ask = &asker->ask[i];
    }
    for (size_t waiting = 0; left > 0 || waiting > 0;) {
        while (left > 0 && free_ask != NULL) {
            struct ask *ask = free_ask;
            size_t part = left < size ? left : size;

            free_ask = ask->next;
            fill_ask(lab, ask, id + (n - left), part);
            left -= part;
            if (fetch_begin(asker->fetch, &ask->call)) {
                check_ask(ask, is_there);
                ask->next = free_ask;
                free_ask = ask;
            } else {
                waiting++;
            }
        }
        for (struct ask *ask = waiting > 0 ? take_answered(asker) : NULL;
             ask != NULL;) {
            struct ask *next = ask->next;

            check_ask(ask, is_there);
            ask->next = free_ask;
            free_ask = ask;
            waiting--;
            ask = next;
        }
    }
}

/* Lookups in cached blocks. */

static const size_t call_sizes[] = {1, 10, CALL_MAX};

enum { CALL_SIZES = sizeof call_sizes / sizeof *call_sizes };

static void
measure_cached(struct lab *lab, struct asker *asker, const char *name,
    const uint64_t *id, bool is_there)
{
    double *cell = sheet_add(&lab->cached, "%s", name);

    for (size_t s = 0; s < CALL_SIZES; s++) {
        double us[ROUNDS_MAX];

        for (uint64_t r = 0; r < lab->choice.rounds; r++) {
            uint64_t begun = rounds_cpu_ns();

            ask_all(lab, asker, id, LOOKUPS, call_sizes[s], 1, is_there);
            us[r] = (double)(rounds_cpu_ns() - begun) / 1e3 / LOOKUPS;
        }
        cell[s] = rounds_spread(us, (unsigned)lab->choice.rounds).least;
    }
}

static void
run_cached(struct lab *lab)
{
    uint64_t *id = cold_take(LOOKUPS * sizeof *id);
    uint64_t *none = cold_take(LOOKUPS * sizeof *none);
    struct asker asker;
    struct dist_rng rng;

    rounds_progress("cached blocks");
    dist_rng_init(&rng, lab->choice.seed, 1);
    start_asker(&asker, (unsigned)lab->threads, ALL_BYTES);
    for (size_t i = 0; i < LOOKUPS; i++) {
        size_t drawn = dist_rng_u64(&rng) % (lab->records.n - 1);

        while (lab->records.id[drawn] + 1 == lab->records.id[drawn + 1]) {
            drawn = dist_rng_u64(&rng) % (lab->records.n - 1);
        }
        id[i] = lab->records.id[drawn];
        none[i] = id[i] + 1;
    }
    ask_all(lab, &asker, lab->id, segment_head(lab->segment)->n_blocks,
        CALL_MAX, 1, true);
    measure_cached(lab, &asker, "all columns", id, true);
    asker.columns = 1;
    measure_cached(lab, &asker, "one column", id, true);
    measure_cached(lab, &asker, "no record", none, false);
    stop_asker(&asker);
    free(id);
    free(none);
    rounds_progress(NULL);
}

/* Lookups whose blocks are read. */

enum way {
    POOL_DIRECT,
    RING_DIRECT_ONES,
    RING_DIRECT,
    POOL,
    RING,
    FETCH_1,
    FETCH_100,
    WAYS
};

static const char *const way_names[WAYS] = {
    "pool of threads, O_DIRECT",
    "io_uring one by one, O_DIRECT",
    "io_uring in batches, O_DIRECT",
    "pool of threads",
    "io_uring in batches",
    "lookups one by one",
    "lookups, calls of 100",
};

static bool
is_direct(enum way way)
{
    return way == POOL_DIRECT || way == RING_DIRECT_ONES || way == RING_DIRECT;
}

static bool
is_ring(enum way way)
{
    return way == RING_DIRECT_ONES || way == RING_DIRECT || way == RING;
}

/* The system has nothing of the file in memory. */
static void
drop_pages(const struct lab *lab)
{
    if (posix_fadvise(lab->fd, 0, 0, POSIX_FADV_DONTNEED) != 0) {
        fail("the page cache is not dropped");
    }
}

static void
go(struct lab *lab, enum way way, struct asker *asker)
{
    struct raw_reads reads = {.fd = is_direct(way) ? lab->fd_direct : lab->fd,
        .at = lab->at,
        .n = segment_head(lab->segment)->n_blocks,
        .depth = (unsigned)lab->threads};

    if (way == POOL || way == POOL_DIRECT) {
        raw_reads_pool(&reads);
    } else if (is_ring(way)) {
        raw_reads_ring(&reads, way != RING_DIRECT_ONES);
    } else {
        bool is_many = way == FETCH_100;

        ask_all(lab, asker, lab->id, reads.n, is_many ? CALL_MAX : 1,
            is_many ? 4 : ASKS_MAX, true);
    }
}

struct result {
    double us[ROUNDS_MAX], rate[ROUNDS_MAX];
};

static void
measure(struct lab *lab, enum way way, struct asker *asker, uint64_t r,
    struct result *result)
{
    double n = segment_head(lab->segment)->n_blocks;

    fetch_forget(asker->fetch, lab->segment);
    drop_pages(lab);
    uint64_t begun_ns = clock_monotonic_ns();
    uint64_t begun_us = proc_own_cpu_us();
    go(lab, way, asker);
    result->us[r] = (double)(proc_own_cpu_us() - begun_us) / n;
    result->rate[r] = n * 1e6 / (double)(clock_monotonic_ns() - begun_ns);
}

static void
run_disk(struct lab *lab)
{
    struct result *result = cold_take(WAYS * sizeof *result);
    const char *no_ring = raw_reads_no_ring();
    unsigned rounds = (unsigned)lab->choice.rounds;
    double pool_us = 0, pool_rate = 0;
    struct asker asker;

    start_asker(&asker, (unsigned)lab->threads, CACHE_BYTES);
    for (uint64_t r = 0; r < rounds; r++) {
        for (enum way way = 0; way < WAYS; way++) {
            rounds_progress("round %d: %s", (int)r + 1, way_names[way]);
            if ((is_direct(way) && lab->fd_direct < 0) ||
                (is_ring(way) && no_ring != NULL)) {
                continue;
            }
            measure(lab, way, &asker, r, &result[way]);
        }
    }
    rounds_progress(NULL);
    for (enum way way = 0; way < WAYS; way++) {
        double *cell = sheet_add(&lab->disk_sheet, "%s", way_names[way]);

        if (result[way].us[0] == 0) {
            continue;
        }
        cell[0] = rounds_spread(result[way].us, rounds).median;
        cell[2] = rounds_spread(result[way].rate, rounds).median;
        if (way == POOL_DIRECT || way == POOL) {
            pool_us = cell[0];
            pool_rate = cell[2];
        }
        cell[1] = cell[0] - pool_us;
        cell[3] = 100 * cell[2] / pool_rate;
    }
    if (no_ring != NULL) {
        printf("io_uring is not at hand: %s\n\n", no_ring);
    }
    stop_asker(&asker);
    free(result);
}

/* The file, and what is asked of it. */

static void
draw(struct lab *lab)
{
    uint32_t n = segment_head(lab->segment)->n_blocks;
    struct dist_rng rng;
    size_t record = 0;

    dist_rng_init(&rng, lab->choice.seed, 0);
    lab->start = cold_take((n + 1) * sizeof *lab->start);
    lab->at = cold_take(n * sizeof *lab->at);
    lab->id = cold_take(n * sizeof *lab->id);
    for (uint32_t b = 0; b < n; b++) {
        while (lab->records.id[record] != segment_first_id(lab->segment, b)) {
            record++;
        }
        lab->start[b] = record;
    }
    lab->start[n] = lab->records.n;
    for (uint32_t b = 0; b < n; b++) {
        uint32_t place = (uint32_t)(dist_rng_u64(&rng) % (b + 1));
        size_t in = dist_rng_u64(&rng) % (lab->start[b + 1] - lab->start[b]);

        lab->at[b] = lab->at[place];
        lab->id[b] = lab->id[place];
        lab->at[place] = segment_block_at(b);
        lab->id[place] = lab->records.id[lab->start[b] + in];
    }
}

static bool
wants(const struct lab *lab, const char *what)
{
    return lab->what == NULL || strcmp(lab->what, what) == 0;
}

static void
open_files(struct lab *lab, int directory)
{
    char name[SEGMENT_NAME_BYTES];

    segment_name(name, COLD_FILE_NUMBER, false);
    lab->fd = openat(directory, name, O_RDONLY | O_CLOEXEC);
    lab->fd_direct = openat(directory, name, O_RDONLY | O_CLOEXEC | O_DIRECT);
    if (lab->fd < 0) {
        fail_errno("the segment");
    }
    (void)posix_fadvise(lab->fd, 0, 0, POSIX_FADV_RANDOM);
}

static void
run_reads(struct lab *lab, const struct cold_world *world)
{
    int directory;

    lab->disk = cold_file_disk(lab->directory, &directory);
    rounds_progress("%s", world->name);
    lab->records =
        cold_records_make(world, lab->choice.posts, lab->choice.seed);
    cold_file_write(
        lab->disk, &lab->records, BLOCK_AUTO, (int)lab->choice.level);
    lab->segment = cold_file_open(lab->disk);
    open_files(lab, directory);
    draw(lab);
    if (wants(lab, "misses")) {
        cold_misses(
            world, &lab->choice, &lab->records, lab->segment, &lab->misses);
    }
    if (wants(lab, "cached") && lab->cached.n_rows == 0) {
        run_cached(lab);
    }
    if (wants(lab, "disk") && lab->disk_sheet.n_rows == 0) {
        run_disk(lab);
    }
    cold_file_remove(lab->disk);
    segment_close(&lab->segment);
    close(lab->fd);
    if (lab->fd_direct >= 0) {
        close(lab->fd_direct);
    }
    disk_real_destroy(&lab->disk);
    close(directory);
    cold_records_drop(&lab->records);
    free(lab->start);
    free(lab->at);
    free(lab->id);
}

static const struct option options[] = {
    {"directory", required_argument, NULL, 'd'},
    {"threads", required_argument, NULL, 'T'},
    {"what", required_argument, NULL, 'w'},
    COLD_OPTIONS,
    {NULL, 0, NULL, 0},
};

static void
help(void)
{
    printf("Usage: cold_reads [OPTION]...\n"
           "Measures lookups in segments of tallyd's cold tier.\n\n"
           "  --what=PART      only cached, disk or misses\n"
           "  --records=N      posts in each distribution [%d]\n"
           "  --rounds=N       rounds; the best of cached, else the median "
           "[%d]\n"
           "  --threads=N      reads at a time [%d]\n"
           "  --level=N        of zstd [%d]\n"
           "  --seed=N         of posts and numbers [1]\n"
           "  --case=TEXT      only distributions whose name has TEXT in it "
           "[of cached\n"
           "                   and disk: the first]\n"
           "  --directory=DIR  where the file is made and removed [.]\n"
           "  --quick          few records: to see that it works\n"
           "  --help           this text\n",
        COLD_RECORDS, ROUNDS, THREADS, BLOCK_LEVEL_DEFAULT);
}

/* Takes one option. False for one that does not exist. */
static bool
take_option(struct lab *lab, int letter)
{
    switch (letter) {
    case 'd':
        lab->directory = optarg;
        return true;
    case 'T':
        lab->threads = number_within("threads", optarg, 1, RAW_DEPTH_MAX);
        return true;
    case 'w':
        lab->what = optarg;
        return true;
    default:
        return cold_choose(&lab->choice, letter);
    }
}

static void
run(struct lab *lab)
{
    bool wants_all = wants(lab, "misses");

    for (size_t i = 0; i < COLD_WORLDS; i++) {
        if (cold_is_wanted(&lab->choice, &cold_worlds[i])) {
            run_reads(lab, &cold_worlds[i]);
            if (!wants_all) {
                break;
            }
        }
    }
    sheet_print(&lab->cached, stdout);
    sheet_print(&lab->disk_sheet, stdout);
    sheet_print(&lab->misses, stdout);
}

int
main(int argc, char **argv)
{
    static struct lab lab = {.choice = {.posts = COLD_RECORDS,
                                 .rounds = ROUNDS,
                                 .seed = 1,
                                 .level = BLOCK_LEVEL_DEFAULT},
        .directory = ".",
        .threads = THREADS,
        .cached = {.key = "cached",
            .head = "cached blocks, CPU a lookup",
            .column = cached_columns,
            .n_columns = sizeof(cached_columns) / sizeof(cached_columns[0])},
        .disk_sheet = {.key = "disk",
            .head = "blocks that are read",
            .column = disk_columns,
            .n_columns = sizeof(disk_columns) / sizeof(disk_columns[0])},
        .misses = {.key = "misses",
            .head = "ids without a record: % that need a block",
            .column = cold_misses_columns,
            .n_columns = COLD_MISSES_COLUMNS}};
    int letter;

    while ((letter = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        if (letter == 'h') {
            help();
            return EXIT_SUCCESS;
        }
        if (!take_option(&lab, letter)) {
            return EXIT_USAGE;
        }
    }
    if (optind < argc) {
        fprintf(
            stderr, "cold_reads: no option %s; see --help\n", argv[optind]);
        return EXIT_USAGE;
    }
    run(&lab);
    return EXIT_SUCCESS;
}
