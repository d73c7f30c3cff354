/* SPDX-License-Identifier: BSD-3-Clause */

/* The command line of the load generator, from one table: what the parser
 * accepts, in which range, and what --help says. A value that is not wholly
 * understood is refused. */

#include "bench/options.h"

#include "base/num.h"
#include "bench/wire.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum option_kind {
    OPTION_COUNT, /* uint64_t in [min, max] */
    OPTION_SHARE, /* double in [0, max] */
    OPTION_TEXT,  /* const char * */
    OPTION_WORD,  /* int, the index in words */
    OPTION_FLAG   /* bool; takes no value */
};

struct option_row {
    const char *name;
    char letter; /* 0: none */
    enum option_kind kind;
    size_t offset; /* in struct options */
    uint64_t min, max;
    const char *const *words;
    const char *argument; /* for --help */
    const char *text;
};

static const char *const mode_words[] = {
    "fill", "get", "multi", "incr", "mixed", NULL};
static const char *const fill_words[] = {"record", "cell", "incr", NULL};
static const char *const order_words[] = {"id", "random", NULL};
static const char *const kind_words[] = {"main", "heavy", "lognormal", NULL};
static const char *const age_words[] = {
    "newest", "exp", "flat", "one", "zipf", NULL};

#define AT(field) offsetof(struct options, field)

static const struct option_row rows[] = {
    {"host", 'H', OPTION_TEXT, AT(host), 0, 0, NULL, "ADDRESS",
        "server's address, numeric [127.0.0.1]"},
    {"port", 'p', OPTION_COUNT, AT(port), 1, 65535, NULL, "N",
        "server's TCP port [11211]"},
    {"pid", 0, OPTION_COUNT, AT(pid), 1, INT32_MAX, NULL, "PID",
        "measure the CPU time and memory of this process, the server"},
    {"items", 'i', OPTION_FLAG, AT(items), 0, 0, NULL, NULL,
        "the server has plain items: fill stores the numbers that are not 0 "
        "one by one, and a miss stands for 0"},
    {"protocol", 'P', OPTION_WORD, AT(protocol), 0, 0, wire_protocol_words,
        NULL,
        "memcached's text, its meta commands (mg with v and k, in a multi-get "
        "with q and mn behind all; ma with v; ms), its binary protocol (get, "
        "getkq with noop, increment, set), or Redis's: GET, MGET, INCRBY; "
        "fill by record is HSET, which is not asked for, by cell SET, and a "
        "number that is 0 is not stored [text]"},
    {"counter", 0, OPTION_TEXT, AT(counter), 0, 0, NULL, "NAME",
        "counter's name, for fill by record [weibo]"},
    {"suffixes", 0, OPTION_TEXT, AT(suffixes), 0, 0, NULL, "A,B,...",
        "suffixes of its columns, 1 to 4 [cntcm,cntrn,cntan]"},
    {"with", 'w', OPTION_WORD, AT(fill_with), 0, 0, fill_words, NULL,
        "what fill sends: a set a record, a set or an incr a number "
        "[record; cell with --items]"},
    {"order", 0, OPTION_WORD, AT(order), 0, 0, order_words, NULL,
        "order in which fill stores the posts [id]"},
    {"by-column", 0, OPTION_FLAG, AT(by_column), 0, 0, NULL, NULL,
        "fill the first column of all posts, then the next, number by number"},
    {"samples", 0, OPTION_TEXT, AT(samples), 0, 0, NULL, "FILE",
        "with --pid, write every 50 ms of a fill to FILE: ms since the "
        "begin, records stored, VmRSS and RssAnon in bytes; the first line "
        "is from before"},
    {"connections", 'c', OPTION_COUNT, AT(connections), 1,
        OPTIONS_CONNECTIONS_MAX, NULL, "N", "connections [50]"},
    {"depth", 'd', OPTION_COUNT, AT(depth), 1, OPTIONS_DEPTH_MAX, NULL, "N",
        "commands under way on each connection, with --rate at most [1]"},
    {"rate", 'r', OPTION_COUNT, AT(rate), 1, OPTIONS_RATE_MAX, NULL, "N",
        "open loop: commands a second in all, at random times (Poisson), "
        "whether the server keeps up or not; latency then counts from when "
        "a command was to be sent [closed loop: as fast as answers come]"},
    {"threads", 'T', OPTION_COUNT, AT(threads), 1, OPTIONS_THREADS_MAX, NULL,
        "N", "threads of the load generator [1]"},
    {"keys", 'k', OPTION_COUNT, AT(keys), 1, OPTIONS_KEYS_MAX, NULL, "N",
        "keys of one multi-get [100]"},
    {"columns", 's', OPTION_COUNT, AT(columns), 1, DIST_COLUMNS_MAX, NULL, "N",
        "columns asked of each id in a multi-get [1]"},
    {"records", 'n', OPTION_COUNT, AT(records), 1, UINT32_MAX, NULL, "N",
        "posts, with and without numbers [1000000]"},
    {"ids", 0, OPTION_WORD, AT(ids), 0, 0, posts_ids_words, NULL,
        "ids of the posts [main]"},
    {"dist", 0, OPTION_WORD, AT(kind), 0, 0, kind_words, NULL,
        "distribution of the numbers [main]"},
    {"age", 'a', OPTION_WORD, AT(age), 0, 0, age_words, NULL,
        "which posts are asked for: newest hottest (Zipf of exponent 1 over "
        "age), exponential with a mean of 5 % of the posts, all alike, the "
        "newest only that fits, or Zipf of --zipf over posts in random order "
        "[newest]"},
    {"zipf", 0, OPTION_SHARE, AT(zipf), 0, OPTIONS_ZIPF_MAX, NULL, "S",
        "its exponent: the post of rank r is asked for r^-S times as often as "
        "the first [0.99]"},
    {"from", 0, OPTION_SHARE, AT(from), 0, 1, NULL, "SHARE",
        "of the posts, ask for none of this oldest share [0]"},
    {"to", 0, OPTION_SHARE, AT(to), 0, 1, NULL, "SHARE",
        "and for none behind this one [1]"},
    {"seed", 0, OPTION_COUNT, AT(seed), 0, UINT64_MAX, NULL, "N",
        "seed of posts, numbers and questions [1]"},
    {"draws", 0, OPTION_COUNT, AT(draws), 1000, 1 << 28, NULL, "N",
        "questions prepared before the run, then asked in a ring [1000000]"},
    {"miss", 'm', OPTION_SHARE, AT(miss), 0, 1, NULL, "SHARE",
        "share of the ids asked for that have no record [as it comes: 0.22 "
        "with the main distribution]"},
    {"nonzero", 0, OPTION_FLAG, AT(nonzero), 0, 0, NULL, NULL,
        "of ids that have a record, ask only for numbers that are not 0"},
    {"mix", 0, OPTION_SHARE, AT(mix), 0, 1, NULL, "SHARE",
        "share of gets in mixed, the rest is incr [0.95]"},
    {"seconds", 't', OPTION_SHARE, AT(seconds), 0, 86400, NULL, "S",
        "length of the measured phase [5]"},
    {"warmup", 0, OPTION_SHARE, AT(warmup_s), 0, 86400, NULL, "S",
        "seconds before it [1]"},
    {"ops", 'o', OPTION_COUNT, AT(ops), 1, UINT64_MAX >> 1, NULL, "N",
        "measure so many commands instead, without warm-up"},
    {"verify", 'v', OPTION_FLAG, AT(verify), 0, 0, NULL, NULL,
        "check every number that comes back; the server must hold what fill "
        "stored and nothing else"},
    {"json", 'j', OPTION_FLAG, AT(json), 0, 0, NULL, NULL,
        "write the result as one JSON object"},
};

enum { N_ROWS = sizeof(rows) / sizeof(rows[0]), HELP_WIDTH = 54 };

/* Writes text in lines of HELP_WIDTH, each behind an indent of 26. */
static void
help_text(const char *text)
{
    size_t len = strlen(text);
    while (len > HELP_WIDTH) {
        size_t cut = HELP_WIDTH;
        while (cut > 0 && text[cut] != ' ') {
            cut--;
        }
        if (cut == 0) {
            break;
        }
        printf("%.*s\n%26s", (int)cut, text, "");
        text += cut + 1;
        len -= cut + 1;
    }
    printf("%s\n", text);
}

static void
help_row(const struct option_row *row)
{
    char left[80];
    char argument[48] = "";
    if (row->argument != NULL) {
        snprintf(argument, sizeof(argument), "=%s", row->argument);
    } else if (row->words != NULL) {
        size_t len = 0;
        for (size_t i = 0; row->words[i] != NULL; i++) {
            len += (size_t)snprintf(argument + len, sizeof(argument) - len,
                "%c%s", i == 0 ? '=' : '|', row->words[i]);
        }
    }
    if (row->letter != 0) {
        snprintf(left, sizeof(left), "-%c, --%s%s", row->letter, row->name,
            argument);
    } else {
        snprintf(left, sizeof(left), "    --%s%s", row->name, argument);
    }
    printf("  %-23s ", left);
    if (strlen(left) > 23) {
        printf("\n%26s", "");
    }
    help_text(row->text);
}

static void
help(void)
{
    printf("Usage: load [OPTION]... MODE\n"
           "Loads a server that speaks memcached's protocols or Redis's, "
           "and\nmeasures it.\n\n"
           "Modes:\n"
           "  fill    store the numbers of all posts\n"
           "  get     one key a command\n"
           "  multi   many keys a command, named ID.SUFFIX\n"
           "  incr    add 1\n"
           "  mixed   get, now and then incr\n\n"
           "Options [default]:\n");
    for (size_t i = 0; i < N_ROWS; i++) {
        help_row(&rows[i]);
    }
    printf("  -h, --help              this text\n");
}

static bool
parse_share(const char *text, double max, double *out)
{
    char *end;
    errno = 0;
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || errno != 0 || !(value >= 0.0) ||
        value > max) {
        return false;
    }
    *out = value;
    return true;
}

static bool
parse_word(const char *text, const char *const *words, int *out)
{
    for (int i = 0; words[i] != NULL; i++) {
        if (strcmp(text, words[i]) == 0) {
            *out = i;
            return true;
        }
    }
    return false;
}

/* Stores the value of one option; false where it is no good. */
static bool
apply(struct options *options, const struct option_row *row, const char *text)
{
    void *field = (char *)options + row->offset;
    uint64_t count;
    switch (row->kind) {
    case OPTION_COUNT:
        if (!num_parse_u64(text, strlen(text), &count) || count < row->min ||
            count > row->max) {
            return false;
        }
        *(uint64_t *)field = count;
        return true;
    case OPTION_SHARE:
        return parse_share(text, (double)row->max, field);
    case OPTION_TEXT:
        *(const char **)field = text;
        return true;
    case OPTION_WORD:
        return parse_word(text, row->words, field);
    case OPTION_FLAG:
        *(bool *)field = true;
        return true;
    }
    return false;
}

static const struct option_row *
find_row(const char *name, size_t len, char letter)
{
    for (size_t i = 0; i < N_ROWS; i++) {
        if (letter != 0 ? rows[i].letter == letter
                        : strlen(rows[i].name) == len &&
                    memcmp(rows[i].name, name, len) == 0) {
            return &rows[i];
        }
    }
    return NULL;
}

/* Takes the option at argv[*at], and its value; false where it is wrong. */
static bool
take_option(struct options *options, char **argv, int argc, int *at)
{
    const char *word = argv[*at];
    const char *value = NULL;
    const struct option_row *row;
    if (word[1] == '-') {
        size_t len = strcspn(word + 2, "=");
        row = find_row(word + 2, len, 0);
        value = word[2 + len] == '=' ? word + 3 + len : NULL;
    } else {
        row = word[1] == '\0' ? NULL : find_row(NULL, 0, word[1]);
        value = word[1] != '\0' && word[2] != '\0' ? word + 2 : NULL;
    }
    if (row == NULL) {
        fprintf(stderr, "load: no option %s; see --help\n", word);
        return false;
    }
    if (row->kind == OPTION_FLAG) {
        return value == NULL && apply(options, row, NULL);
    }
    if (value == NULL && *at + 1 < argc) {
        value = argv[++*at];
    }
    if (value == NULL || !apply(options, row, value)) {
        fprintf(stderr, "load: bad value of --%s; see --help\n", row->name);
        return false;
    }
    return true;
}

static bool
split_suffixes(struct options *options)
{
    const char *at = options->suffixes;
    options->n_suffixes = 0;
    for (;;) {
        size_t len = strcspn(at, ",");
        if (len == 0 || len > OPTIONS_SUFFIX_MAX ||
            options->n_suffixes == DIST_COLUMNS_MAX) {
            return false;
        }
        memcpy(options->suffix[options->n_suffixes], at, len);
        options->suffix[options->n_suffixes][len] = '\0';
        options->suffix_len[options->n_suffixes++] = len;
        if (at[len] == '\0') {
            return true;
        }
        at += len + 1;
    }
}

/* What no single option can see; NULL when all is well. */
static const char *
check_whole(struct options *options)
{
    if (options->mode < 0) {
        return "a mode is missing";
    }
    if (!split_suffixes(options)) {
        return "--suffixes takes 1 to 4 names of up to 32 bytes";
    }
    if (options->columns > options->n_suffixes) {
        return "--columns is above the number of suffixes";
    }
    if (options->keys % options->columns != 0) {
        return "--keys is not a multiple of --columns";
    }
    if (options->items && options->fill_with == FILL_INCR) {
        return "items cannot be filled with incr";
    }
    if (options->by_column && options->fill_with == FILL_RECORD) {
        return "--by-column stores numbers, not records";
    }
    if (options->samples != NULL &&
        (options->mode != MODE_FILL || options->pid == 0)) {
        return "--samples wants fill and --pid";
    }
    if (options->from >= options->to) {
        return "--from is not below --to";
    }
    if (options->threads > options->connections) {
        return "more threads than connections";
    }
    return NULL;
}

enum options_result
options_parse(struct options *out, int argc, char **argv)
{
    *out = (struct options){.mode = -1,
        .fill_with = -1,
        .port = 11211,
        .host = "127.0.0.1",
        .counter = "weibo",
        .suffixes = "cntcm,cntrn,cntan",
        .connections = 50,
        .depth = 1,
        .threads = 1,
        .keys = 100,
        .columns = 1,
        .records = 1000000,
        .seed = 1,
        .draws = 1000000,
        .seconds = 5,
        .warmup_s = 1,
        .miss = -1,
        .mix = 0.95,
        .zipf = 0.99,
        .to = 1};
    for (int at = 1; at < argc; at++) {
        if (strcmp(argv[at], "--help") == 0 || strcmp(argv[at], "-h") == 0) {
            help();
            return OPTIONS_HELPED;
        }
        if (argv[at][0] == '-') {
            if (!take_option(out, argv, argc, &at)) {
                return OPTIONS_BAD;
            }
        } else if (!parse_word(argv[at], mode_words, &out->mode)) {
            fprintf(stderr, "load: no mode %s; see --help\n", argv[at]);
            return OPTIONS_BAD;
        }
    }
    const char *wrong = check_whole(out);
    if (wrong != NULL) {
        fprintf(stderr, "load: %s; see --help\n", wrong);
        return OPTIONS_BAD;
    }
    if (out->fill_with < 0 || out->items) {
        out->fill_with =
            out->items || out->by_column ? FILL_CELL : FILL_RECORD;
    }
    out->has_absent = out->items || out->protocol == WIRE_RESP;
    out->posts = (struct posts){
        .dist = {.seed = out->seed, .kind = (enum dist_kind)out->kind},
        .ids = out->ids,
        .columns = (unsigned)out->n_suffixes,
        .n = out->records};
    return OPTIONS_RUN;
}

const char *
options_mode_name(int mode)
{
    return mode_words[mode];
}
