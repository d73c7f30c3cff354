/* SPDX-License-Identifier: BSD-3-Clause */

/* Measures the engine without a server around it: what a lookup, an increment
 * and an insert cost, as ratios to a loop that only prefetches and loads one
 * line an id; bytes a record; lines looked at; other tables beside it. See
 * doc/measurements.md. Figures go to stdout as Markdown, part by part, and with
 * --json all of them to a file. A number that reads back wrong ends it with
 * status 1. */

#include "bench/fail.h"
#include "bench/lab.h"
#include "bench/number.h"
#include "bench/rounds.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    EXIT_USAGE = 2,
    ROUNDS = 11,
    ROUNDS_QUICK = 3,
    DRAWS = 1 << 22,
    DRAWS_QUICK = 1 << 18,
    SHARDS = 16,
    USER_BITS = 29
};

static const struct option options[] = {
    {"what", required_argument, NULL, 'w'},
    {"records", required_argument, NULL, 'n'},
    {"rounds", required_argument, NULL, 'r'},
    {"draws", required_argument, NULL, 'd'},
    {"shards", required_argument, NULL, 's'},
    {"isa", required_argument, NULL, 'i'},
    {"seed", required_argument, NULL, 'S'},
    {"users", required_argument, NULL, 'u'},
    {"case", required_argument, NULL, 'c'},
    {"tsv", required_argument, NULL, 't'},
    {"json", required_argument, NULL, 'j'},
    {"quick", no_argument, NULL, 'q'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static void
help(void)
{
    printf("Usage: engine [OPTION]...\n"
           "Measures tallyd's engine without a server around it.\n\n"
           "  --what=PART[,PART...]  only these parts [all]:\n");
#define X(name, word, text) printf("      %-9s          %s\n", word, text);
    LAB_PARTS(X)
#undef X
    printf("  --records=N      records in every part [lookup and insert: "
           "80000000;\n"
           "                   memory and members: 10000000; churn: 2000000]"
           "\n"
           "  --rounds=N       rounds of lookups [%d]\n"
           "  --draws=N        ids drawn before, asked in a ring [%d]\n"
           "  --shards=N       shards of the engine [%d]\n"
           "  --isa=NAME       instructions for the lookup in a line:",
        ROUNDS, DRAWS, SHARDS);
    for (int isa = READER_BEST + 1; isa < READER_ISA_COUNT; isa++) {
        printf(" %s", reader_name((enum reader_isa)isa));
    }
    printf("\n                   [the best that the machine has]\n"
           "  --seed=N         of posts, numbers and questions [1]\n"
           "  --users=N        members: users are below 2^N [29]\n"
           "  --case=TEXT      memory: only cases whose name has TEXT in it\n"
           "  --tsv=FILE       memory: also real posts, lines of an id and "
           "three numbers\n"
           "  --json=FILE      write all figures there too\n"
           "  --quick          small tables: to see that it works\n"
           "  --help           this text\n");
}

static enum reader_isa
isa_of(const char *text)
{
    for (int i = READER_BEST + 1; i < READER_ISA_COUNT; i++) {
        enum reader_isa isa = (enum reader_isa)i;
        if (strcmp(text, reader_name(isa)) == 0 && reader_has(isa)) {
            return isa;
        }
    }
    fail("--isa=%s is not known or not here; see --help", text);
}

static void
want_parts(struct lab *lab, const char *text)
{
    static const char *const words[] = {
#define X(name, word, text) word,
        LAB_PARTS(X)
#undef X
    };
    while (*text != '\0') {
        size_t len = strcspn(text, ",");
        size_t i = 0;
        while (i < LAB_PART_COUNT &&
            (strlen(words[i]) != len || memcmp(words[i], text, len) != 0)) {
            i++;
        }
        if (i == LAB_PART_COUNT) {
            fail("--what: no part %.*s; see --help", (int)len, text);
        }
        lab->is_wanted[i] = true;
        text += len + (text[len] == ',');
    }
    /* those are rows among the lookups */
    lab->is_wanted[LAB_LOOKUP] |= lab->is_wanted[LAB_RIVALS];
}

/* Takes one option. False for one that does not exist. */
static bool
take_option(struct lab *lab, int letter, const char **json)
{
    switch (letter) {
    case 'w':
        want_parts(lab, optarg);
        return true;
    case 'n':
        lab->records =
            number_within("records", optarg, 10000, UINT64_C(4000000000));
        return true;
    case 'r':
        lab->rounds = (unsigned)number_within("rounds", optarg, 1, ROUNDS_MAX);
        return true;
    case 'd':
        lab->draws = number_within("draws", optarg, 1000, UINT64_C(1) << 32);
        return true;
    case 's':
        lab->shards =
            (unsigned)number_within("shards", optarg, 1, ENGINE_SHARDS_MAX);
        return true;
    case 'i':
        lab->isa = isa_of(optarg);
        return true;
    case 'S':
        lab->seed = number_within("seed", optarg, 0, UINT64_MAX);
        return true;
    case 'u':
        lab->user_bits = (unsigned)number_within(
            "users", optarg, LAB_USER_BITS_MIN, LAB_USER_BITS_MAX);
        return true;
    case 'c':
        lab->only = optarg;
        return true;
    case 't':
        lab->tsv = optarg;
        return true;
    case 'j':
        *json = optarg;
        return true;
    case 'q':
        lab->is_quick = true;
        return true;
    default:
        return false;
    }
}

static void
fill_in(struct lab *lab)
{
    bool any = false;
    for (size_t i = 0; i < LAB_PART_COUNT; i++) {
        any = any || lab->is_wanted[i];
    }
    for (size_t i = 0; !any && i < LAB_PART_COUNT; i++) {
        lab->is_wanted[i] = true;
    }
    if (lab->rounds == 0) {
        lab->rounds = lab->is_quick ? ROUNDS_QUICK : ROUNDS;
    }
    if (lab->draws == 0) {
        lab->draws = lab->is_quick ? DRAWS_QUICK : DRAWS;
    }
}

static void
write_json(const struct lab *lab, FILE *out, const char *path)
{
    const struct sheet *sheet[] = {&lab->lookup, &lab->insert, &lab->memory,
        &lab->bytes, &lab->churn, &lab->members};
    fprintf(out, "{\"isa\": \"%s\", \"shards\": %u, \"rounds\": %u",
        reader_name(lab->isa == READER_BEST ? reader_best() : lab->isa),
        lab->shards, lab->rounds);
    for (size_t i = 0; i < sizeof(sheet) / sizeof(sheet[0]); i++) {
        if (sheet[i]->n_rows > 0) {
            fprintf(out, ",\n ");
            sheet_json(sheet[i], out);
        }
    }
    fprintf(out, "}\n");
    if (fclose(out) != 0) {
        fail_errno(path);
    }
}

int
main(int argc, char **argv)
{
    static struct lab lab = {
        .shards = SHARDS, .seed = 1, .user_bits = USER_BITS};
    const char *json = NULL;
    int letter;
    while ((letter = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        if (letter == 'h') {
            help();
            return EXIT_SUCCESS;
        }
        if (!take_option(&lab, letter, &json)) {
            return EXIT_USAGE;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "engine: no option %s; see --help\n", argv[optind]);
        return EXIT_USAGE;
    }
    FILE *out = json != NULL ? fopen(json, "w") : NULL;
    if (json != NULL && out == NULL) {
        fail_errno(json);
    }
    fill_in(&lab);
    if (lab.is_wanted[LAB_LOOKUP] || lab.is_wanted[LAB_INSERT]) {
        lab_speed(&lab);
    }
    if (lab.is_wanted[LAB_MEMORY]) {
        lab_memory(&lab);
    }
    if (lab.is_wanted[LAB_CHURN]) {
        lab_churn(&lab);
    }
    if (lab.is_wanted[LAB_MEMBERS]) {
        lab_members(&lab);
    }
    if (out != NULL) {
        write_json(&lab, out, json);
    }
    return EXIT_SUCCESS;
}
