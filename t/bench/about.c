/* SPDX-License-Identifier: BSD-3-Clause */

/* Measures the tables of members=about without a server around them: what an
 * add and a look cost, in batches as a server has them, how many looks for what
 * is no member are wrong, beside what stats members would say and beside the
 * arithmetic of filters with other bits and hashes. Members come as in a feed:
 * ids go up, and most are of the newest ones. See doc/measurements.md. A member
 * that is lost, of an id in the window, ends it with status 1. */

#include "about/about_life.h"
#include "bench/fail.h"
#include "bench/feed_draw.h"
#include "bench/number.h"
#include "bench/rounds.h"

#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    EXIT_USAGE = 2,
    MEGA = 1 << 20,
    MEMORY_MB = 1024,
    MEMORY_MB_QUICK = 16,
    ERROR = 100,
    BATCH = 32,    /* adds: as many as a session gathers */
    PAGE = 100,    /* looks */
    PAGES = 10000, /* of each kind */
    CACHED_BYTES = 1 << 14,
    AT_ONCE = 50 /* batches, or pages, that are timed together: to look at the
                   * clock takes as long as some adds */
};

static const struct option options[] = {
    {"memory", required_argument, NULL, 'm'},
    {"error", required_argument, NULL, 'e'},
    {"members", required_argument, NULL, 'n'},
    {"quick", no_argument, NULL, 'q'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

struct run {
    uint64_t memory_bytes, n_inserts;
    unsigned error;
    struct feed_draw draw;
    struct qsbr qsbr;
    struct qsbr_reader reader;
    struct about *about;
    uint64_t n_added, n_new, n_below;
};

static void
help(void)
{
    printf("Usage: about [OPTION]...\n"
           "Measures tallyd's tables of members=about without a server.\n\n"
           "  --memory=SIZE    as memory= of a column has: 1.2g [%dm]\n"
           "  --error=N        as error= has [%d]\n"
           "  --members=N      that are added: 1e9 [what memory is for]\n"
           "  --quick          %dm: to see that it works\n"
           "  --help           this text\n",
        MEMORY_MB, ERROR, MEMORY_MB_QUICK);
}

static void
begin(struct run *run)
{
    struct about_figures figures;
    qsbr_init(&run->qsbr);
    qsbr_register(&run->qsbr, &run->reader);
    const struct about_config config = {.memory_bytes = run->memory_bytes,
        .error = run->error,
        .seed = 1,
        .serial = 1,
        .qsbr = &run->qsbr};
    if (about_create(&config, &run->about) != 0) {
        fail("there is no memory");
    }
    qsbr_online(&run->qsbr, &run->reader);
    about_figures(run->about, &figures);
    if (run->n_inserts == 0) {
        run->n_inserts = figures.members_max * figures.tables_max;
    }
}

static void
end(struct run *run)
{
    qsbr_offline(&run->reader);
    about_destroy(&run->about);
    qsbr_unregister(&run->qsbr, &run->reader);
    qsbr_fini(&run->qsbr);
}

/* ns of CPU an add; the members themselves are drawn before. */
static double
fill(struct run *run)
{
    enum { ADDS = AT_ONCE * BATCH };
    static struct about_pair pair[ADDS];
    static uint8_t said[ADDS];
    uint64_t ns = 0;
    for (uint64_t n = 0; n < run->n_inserts; n += ADDS) {
        for (unsigned i = 0; i < ADDS; i++) {
            pair[i] = feed_draw_pair(&run->draw);
        }
        uint64_t begun = rounds_cpu_ns();
        for (unsigned i = 0; i < ADDS; i += BATCH) {
            (void)about_add(run->about, &pair[i], BATCH, 0, &said[i]);
        }
        ns += rounds_cpu_ns() - begun;
        for (unsigned i = 0; i < ADDS; i++) {
            run->n_new += said[i] == ABOUT_OUT;
            run->n_below += said[i] == ABOUT_BELOW;
        }
        run->n_added += ADDS;
        about_tend(run->about);
        qsbr_online(&run->qsbr, &run->reader); /* it is nowhere in a look */
        if (n / ADDS % 1024 == 0) {
            rounds_progress(
                "%" PRIu64 " of %" PRIu64 " members", n, run->n_inserts);
        }
    }
    rounds_progress(NULL);
    return (double)ns / (double)run->n_added;
}

/* Pages of members that have just been added, or of others, over all ids of the
 * window: ns of CPU a look; *n_in: how many are in. */
static double
look(struct run *run, bool adds, uint64_t *n_in)
{
    enum { LOOKS = AT_ONCE * PAGE };
    static struct about_pair pair[LOOKS];
    static uint8_t said[LOOKS];
    struct about_figures figures;
    uint64_t ns = 0;
    about_figures(run->about, &figures);
    *n_in = 0;
    for (unsigned page = 0; page < PAGES; page += AT_ONCE) {
        for (unsigned i = 0; i < LOOKS; i++) {
            pair[i] = feed_draw_other(
                &run->draw, figures.first_id, figures.largest_id);
        }
        if (adds) {
            (void)about_add(run->about, pair, LOOKS, 0, said);
        }
        uint64_t begun = rounds_cpu_ns();
        for (unsigned i = 0; i < LOOKS; i += PAGE) {
            about_get(run->about, &pair[i], PAGE, &said[i]);
        }
        ns += rounds_cpu_ns() - begun;
        for (unsigned i = 0; i < LOOKS; i++) {
            *n_in += said[i] == ABOUT_IN;
            if (adds && said[i] == ABOUT_OUT) {
                fail("a member is lost: id %" PRIu64 ", member %" PRIu64,
                    pair[i].id, pair[i].member);
            }
        }
    }
    return (double)ns / ((double)PAGES * PAGE);
}

/* What this machine can do at all: ns of CPU a line, of so many bytes, where a
 * batch of n lines is prefetched, and then one word of each is read, or changed
 * by one locked or. */
static double
floor_ns(struct run *run, uint64_t bytes, unsigned n, bool changes)
{
    enum { LINES = AT_ONCE * PAGE, LINE_WORDS = 8, TURNS = 200 };
    static size_t at[LINES];
    _Atomic uint64_t *word = rounds_map(bytes);
    uint64_t lines = bytes / (LINE_WORDS * sizeof word[0]);
    uint64_t ns = 0, n_lines = 0, sum = 0;
    for (unsigned turn = 0; turn < TURNS; turn++) {
        for (unsigned i = 0; i < LINES; i++) {
            at[i] = feed_draw_number(&run->draw) % lines * LINE_WORDS;
        }
        uint64_t begun = rounds_cpu_ns();
        for (unsigned i = 0; i + n <= LINES; i += n, n_lines += n) {
            for (unsigned k = i; k < i + n; k++) {
                __builtin_prefetch((const void *)&word[at[k]]);
            }
            for (unsigned k = i; k < i + n; k++) {
                /* relaxed: there is one thread */
                sum += changes
                    ? atomic_fetch_or_explicit(
                          &word[at[k]], k, memory_order_relaxed)
                    : atomic_load_explicit(&word[at[k]], memory_order_relaxed);
            }
        }
        ns += rounds_cpu_ns() - begun;
    }
    if (sum == UINT64_MAX) { /* never: so that nothing is optimised away */
        fail("a word is wrong");
    }
    rounds_unmap((void *)word, bytes);
    return (double)ns / (double)n_lines;
}

/* The words of its line that a new member changes, each by one locked or, on
 * the mean of a table that becomes full: a bit is missing with e^(-k n / b)
 * where n of the members are there, and k bits are in 8 words. */
static double
words_changed(const struct run *run)
{
    struct about_shape shape;
    about_shape_init(&shape, 1, run->error, 1, 1);
    double full = 100.0 * shape.bits / shape.bits_a_member;
    double missing = (1 - exp(-full)) / full;
    return ABOUT_LINE_WORDS *
        (1 - pow(1 - missing / ABOUT_LINE_WORDS, shape.bits));
}

static void
say_floor(struct run *run, double add_ns, double look_ns)
{
    double read_ns = floor_ns(run, run->memory_bytes, PAGE, false);
    double or_ns = floor_ns(run, run->memory_bytes, BATCH, true);
    printf("| ns a line that is fetched and read, in batches of %d; a look "
           "to that | %.1f; %.1f |\n",
        PAGE, read_ns, look_ns / read_ns);
    printf("| ns a line that is fetched, with one locked or, in batches of "
           "%d; an add to that | %.1f; %.1f |\n",
        BATCH, or_ns, add_ns / or_ns);
    printf("| words that an add changes, by arithmetic; ns a locked or to a "
           "line in the cache | %.2f; %.1f |\n",
        words_changed(run), floor_ns(run, CACHED_BYTES, BATCH, true));
}

/* A number that may have a point, an exponent and one of k, m, g and t behind
 * it, which are powers of 1024. */
static uint64_t
size_within(
    const char *option, const char *text, uint64_t least, uint64_t most)
{
    static const char units[] = "kmgt";
    char *end;
    double value = strtod(text, &end);
    const char *unit = *end == '\0' ? NULL : strchr(units, *end);
    if (unit != NULL) {
        value = ldexp(value, 10 * (int)(unit - units + 1));
        end++;
    }
    if (end == text || *end != '\0' || !(value >= (double)least) ||
        value > (double)most) {
        fail("--%s takes %" PRIu64 " to %" PRIu64 ", as 1e9 or 1.2g", option,
            least, most);
    }
    return (uint64_t)value;
}

/* The share of wrong looks in a filter without lines, full, with so many bits a
 * member and so many hashes: (1 - e^(-k/b))^k. */
static double
share_of(double bits, double hashes)
{
    return pow(1 - exp(-hashes / bits), hashes);
}

static void
say(const struct run *run, double add_ns, double look_ns, uint64_t n_wrong)
{
    struct about_figures of;
    about_figures(run->about, &of);
    double looks = (double)PAGES * PAGE;
    double bits = 8 * (double)run->memory_bytes /
        ((double)of.members_max * (double)of.tables_max);
    printf("| figure | |\n|---|---:|\n");
    printf("| members added, of them new | %" PRIu64 ", %" PRIu64 " |\n",
        run->n_added, run->n_new);
    printf("| of ids below the window | %" PRIu64 " |\n", run->n_below);
    printf("| tables, closed, gone | %" PRIu64 ", %" PRIu64 ", %" PRIu64
           " |\n",
        of.tables, of.closed, of.forgotten);
    printf("| bits a member, tables full | %.2f |\n", bits);
    printf("| bits a member now | %.2f |\n",
        of.members == 0 ? 0 : 8 * (double)of.bytes / (double)of.members);
    printf("| ns an add, in batches of %d | %.1f |\n", BATCH, add_ns);
    printf("| ns a look, in pages of %d | %.1f |\n", PAGE, look_ns);
    printf("| wrong looks measured, of %.0f | %.3f %% |\n", looks,
        100 * (double)n_wrong / looks);
    printf("| the same by stats members, and of the worst table | %.3f %%, "
           "%.3f %% |\n",
        of.wrong_one_in == 0 ? 0 : 100 / (double)of.wrong_one_in,
        of.fullest_wrong == 0 ? 0 : 100 / (double)of.fullest_wrong);
    printf("| a filter of 10 bits, 3 hashes (the arithmetic of RedisBloom's) "
           "| %.3f %% |\n",
        100 * share_of(10, 3));
    double hashes = round(bits * log(2));
    printf("| of %.2f bits, %.0f hashes, the best number of them | %.3f %% "
           "|\n",
        bits, hashes, 100 * share_of(bits, hashes));
}

int
main(int argc, char **argv)
{
    struct run run = {.memory_bytes = (uint64_t)MEMORY_MB * MEGA,
        .error = ERROR,
        .draw = {.state = 1, .id = 1}};
    int option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (option) {
        case 'm':
            run.memory_bytes = size_within(
                "memory", optarg, ABOUT_MEMORY_MIN, (uint64_t)1 << 40);
            break;
        case 'e':
            run.error = (unsigned)number_within(
                "error", optarg, ABOUT_ERROR_MIN, ABOUT_ERROR_MAX);
            break;
        case 'n':
            run.n_inserts =
                size_within("members", optarg, BATCH, UINT64_MAX / 2);
            break;
        case 'q':
            run.memory_bytes = (uint64_t)MEMORY_MB_QUICK * MEGA;
            break;
        case 'h':
            help();
            return 0;
        default:
            return EXIT_USAGE;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "about: %s? see --help\n", argv[optind]);
        return EXIT_USAGE;
    }
    begin(&run);
    uint64_t n_wrong, n_in;
    double add_ns = fill(&run);
    double look_ns = look(&run, false, &n_wrong);
    say(&run, add_ns, look_ns, n_wrong);
    (void)look(&run, true, &n_in);
    end(&run);
    say_floor(&run, add_ns, look_ns);
    return 0;
}
