/* SPDX-License-Identifier: BSD-3-Clause */
/* Measures names as ids: which share of names is its own id; bytes a name of
 * the dictionaries, which hold the others, index included, as they are
 * accounted and as the C library's heap has them; CPU time of adding a name and
 * of a lookup in a page of 100. All names are looked up, and read back; one
 * that is wrong ends it with status 1. See doc/measurements.md. */

#include "base/num.h"
#include "bench/fail.h"
#include "bench/name_kinds.h"
#include "bench/rounds.h"
#include "bench/sheet.h"
#include "lib/dist.h"
#include "names/dict.h"

#include <getopt.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    EXIT_USAGE = 2,
    NAMES = 10000000,
    QUICK_NAMES = 50000,
    SHARDS = 64,
    SHARDS_MAX = 4096,
    PAGE = 100,
    PAGES = 2000, /* that are looked up for the time */
    TRIES = 4     /* names that are drawn for one that is new, at most */
};

static const struct sheet_column columns[] = {
    {"length", "letters a name", 1},
    {"own", "own ids, %", 1},
    {"repeats", "drawn twice, %", 1},
    {"length_dict", "letters of others", 1},
    {"bytes", "bytes each", 2},
    {"blocks", "of which blocks", 2},
    {"index", "index", 2},
    {"heap", "by the heap", 2},
    {"add_ns", "add, ns", 0},
    {"find_ns", "lookup, ns", 0},
    {"miss_ns", "none there, ns", 0},
};

struct lab {
    uint64_t names, shards, seed;
    const char *kind; /* NULL: all */
    bool prints;      /* the names, and nothing else */
    struct name_account account;
    struct dict_config config;
    struct dict *dict[SHARDS_MAX];
    struct sheet sheet;
};

static uint64_t
heap_bytes(void)
{
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

/* What a dictionary is asked for; name is in use until the answer. */
static struct dict_ask
ask_of(const struct lab *lab, const char *name, size_t len)
{
    uint64_t hash = dict_hash(lab->config.key, name, len);
    return (struct dict_ask){
        .dict = lab->dict[dict_shard(hash, (unsigned)lab->shards)],
        .bytes = name,
        .len = len,
        .hash = hash};
}

struct tally {
    uint64_t drawn, own, repeats, letters, dict_letters, dict_names, ns;
};

static void
add(struct lab *lab, const char *name, size_t len, struct tally *tally)
{
    uint32_t number;
    bool is_new;
    uint64_t start = rounds_cpu_ns();
    struct dict_ask ask = ask_of(lab, name, len);
    struct dict *dict = lab->dict[dict_shard(ask.hash, (unsigned)lab->shards)];
    if (dict_add(dict, name, len, &number, &is_new) != 0) {
        fail("out of memory");
    }
    if (dict_wants_table(dict) && dict_learn(dict) != 0) {
        fail("out of memory");
    }
    tally->ns += rounds_cpu_ns() - start;
    tally->repeats += !is_new;
    tally->dict_names += is_new;
    tally->dict_letters += is_new ? len : 0;
}

/* Draws names until there are as many, own ids among them; returns how many
 * were drawn. */
static struct tally
fill(struct lab *lab, enum name_kind kind)
{
    char name[NAME_ROOM_BYTES];
    struct tally tally = {0};
    uint64_t id;
    for (uint64_t i = 0; tally.own + tally.dict_names < lab->names; i++) {
        size_t len = name_kind_make(kind, lab->seed, i, name);
        tally.drawn++;
        tally.letters += len;
        if (own_id_of(name, len, &id)) {
            tally.own++;
        } else {
            add(lab, name, len, &tally);
        }
        if (tally.drawn % 100000 == 0) {
            rounds_progress("%s: %" PRIu64, name_kind_words[kind], i);
        }
        if (i > TRIES * lab->names) {
            fail("there are not so many different names");
        }
    }
    rounds_progress(NULL);
    return tally;
}

/* All names again: their numbers, and their letters. */
static void
verify(const struct lab *lab, enum name_kind kind, uint64_t drawn)
{
    char name[NAME_ROOM_BYTES], again[NAME_ROOM_BYTES];
    uint64_t id;
    for (uint64_t i = 0; i < drawn; i++) {
        size_t len = name_kind_make(kind, lab->seed, i, name);
        if (own_id_of(name, len, &id)) {
            if (own_id_name(id, again) != len ||
                memcmp(again, name, len) != 0) {
                fail("%s reads back wrong", name);
            }
            continue;
        }
        struct dict_ask ask = ask_of(lab, name, len);
        dict_find(&ask, 1);
        if (ask.number == DICT_NO_NUMBER ||
            dict_name(ask.dict, ask.number, again) != len ||
            memcmp(again, name, len) != 0) {
            fail("%s is not found", name);
        }
    }
}

/* CPU time of a lookup of random names in pages, their hash included; of names
 * of another seed, which are not there. */
static double
time_finds(
    const struct lab *lab, enum name_kind kind, uint64_t drawn, uint64_t seed)
{
    struct dict_ask ask[PAGE];
    static char name[PAGE][NAME_ROOM_BYTES];
    struct dist_rng rng;
    uint64_t id, ns = 0, found = 0;
    dist_rng_init(&rng, lab->seed, 1);
    for (unsigned page = 0; page < PAGES; page++) {
        size_t len[PAGE];
        for (unsigned i = 0; i < PAGE; i++) {
            do {
                len[i] = name_kind_make(
                    kind, seed, dist_rng_u64(&rng) % drawn, name[i]);
            } while (own_id_of(name[i], len[i], &id));
        }
        uint64_t start = rounds_cpu_ns();
        for (unsigned i = 0; i < PAGE; i++) {
            ask[i] = ask_of(lab, name[i], len[i]);
        }
        dict_find(ask, PAGE);
        ns += rounds_cpu_ns() - start;
        for (unsigned i = 0; i < PAGE; i++) {
            found += ask[i].number != DICT_NO_NUMBER;
        }
    }
    if (seed == lab->seed && found != PAGES * PAGE) {
        fail("%" PRIu64 " names are found", found);
    }
    return (double)ns / PAGES / PAGE;
}

static void
run(struct lab *lab, enum name_kind kind)
{
    uint64_t heap = heap_bytes();
    for (uint64_t i = 0; i < lab->shards; i++) {
        if (dict_create(&lab->dict[i], &lab->config) != 0) {
            fail("out of memory");
        }
    }
    struct tally tally = fill(lab, kind);
    double n = (double)tally.dict_names, drawn = (double)tally.drawn;
    double *cell = sheet_add(&lab->sheet, "%s", name_kind_words[kind]);
    uint64_t blocks = 0, index = 0;
    for (uint64_t i = 0; i < lab->shards; i++) {
        dict_collect(lab->dict[i]);
        struct dict_sums sums = dict_sums(lab->dict[i]);
        blocks += sums.blocks_bytes;
        index += sums.index_bytes;
    }
    size_t at = 0;
    cell[at++] = (double)tally.letters / drawn;
    cell[at++] = 100 * (double)tally.own / drawn;
    cell[at++] = 100 * (double)tally.repeats / drawn;
    cell[at++] = (double)tally.dict_letters / n;
    cell[at++] = (double)lab->account.used_bytes / n;
    cell[at++] = (double)blocks / n;
    cell[at++] = (double)index / n;
    cell[at++] = (double)(heap_bytes() - heap) / n;
    cell[at++] = (double)tally.ns / (double)(tally.drawn - tally.own);
    verify(lab, kind, tally.drawn);
    cell[at++] = time_finds(lab, kind, tally.drawn, lab->seed);
    cell[at++] = time_finds(lab, kind, tally.drawn, lab->seed + 1);
    for (uint64_t i = 0; i < lab->shards; i++) {
        dict_destroy(&lab->dict[i]);
    }
    (void)malloc_trim(0);
}

static void
print(const struct lab *lab, enum name_kind kind)
{
    char name[NAME_ROOM_BYTES];
    for (uint64_t i = 0; i < lab->names; i++) {
        size_t len = name_kind_make(kind, lab->seed, i, name);
        if (fwrite(name, 1, len, stdout) != len || putchar('\n') == EOF) {
            fail_errno("standard output");
        }
    }
}

/* Of each kind that is wanted. */
static void
run_all(struct lab *lab)
{
    for (int kind = 0; kind < NAME_KINDS; kind++) {
        if (lab->kind != NULL &&
            strstr(name_kind_words[kind], lab->kind) == NULL) {
            continue;
        }
        if (lab->prints) {
            print(lab, (enum name_kind)kind);
        } else {
            run(lab, (enum name_kind)kind);
        }
    }
    if (!lab->prints) {
        sheet_print(&lab->sheet, stdout);
    }
}

static const struct option options[] = {
    {"names", required_argument, NULL, 'n'},
    {"shards", required_argument, NULL, 's'},
    {"seed", required_argument, NULL, 'd'},
    {"case", required_argument, NULL, 'c'},
    {"print", no_argument, NULL, 'p'},
    {"quick", no_argument, NULL, 'q'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static void
help(void)
{
    printf("Usage: names [OPTION]...\n"
           "Measures names as ids of tallyd's counters: bytes a name and CPU "
           "time.\n\n"
           "  --names=N        different names of each kind [%d]\n"
           "  --shards=N       a power of two up to %d [%d]\n"
           "  --seed=N         of the names [1]\n"
           "  --case=TEXT      only kinds that have TEXT in their name\n"
           "  --print          writes so many names, a line each, some twice\n"
           "  --quick          few names: to see that it works\n"
           "  --help           this text\n",
        NAMES, SHARDS_MAX, SHARDS);
}

static bool
take(uint64_t *out, uint64_t least, uint64_t most)
{
    if (num_parse_u64(optarg, strlen(optarg), out) && *out >= least &&
        *out <= most) {
        return true;
    }
    fprintf(stderr,
        "names: a number from %" PRIu64 " to %" PRIu64 " is wanted, not %s\n",
        least, most, optarg);
    return false;
}

static bool
take_shards(struct lab *lab)
{
    if (!take(&lab->shards, 1, SHARDS_MAX)) {
        return false;
    }
    bool is_power = (lab->shards & (lab->shards - 1)) == 0;
    if (!is_power) {
        fprintf(stderr, "names: --shards is a power of two, 64 for one\n");
    }
    return is_power;
}

static bool
choose(struct lab *lab, int letter)
{
    switch (letter) {
    case 'n':
        return take(&lab->names, 1, UINT32_MAX);
    case 's':
        return take_shards(lab);
    case 'd':
        return take(&lab->seed, 0, UINT32_MAX);
    case 'c':
        lab->kind = optarg;
        return true;
    case 'p':
        lab->prints = true;
        return true;
    case 'q':
        lab->names = QUICK_NAMES;
        return true;
    default:
        return false;
    }
}

int
main(int argc, char **argv)
{
    static struct lab lab = {.names = NAMES,
        .shards = SHARDS,
        .seed = 1,
        .account = {.limit_bytes = UINT64_MAX / 2},
        .config = {.key = "sixteen letters"},
        .sheet = {.key = "names",
            .head = "names",
            .column = columns,
            .n_columns = sizeof(columns) / sizeof(columns[0])}};
    int letter;
    lab.config.account = &lab.account;
    while ((letter = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        if (letter == 'h') {
            help();
            return EXIT_SUCCESS;
        }
        if (!choose(&lab, letter)) {
            return EXIT_USAGE;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "names: no option %s; see --help\n", argv[optind]);
        return EXIT_USAGE;
    }
    run_all(&lab);
    return EXIT_SUCCESS;
}
