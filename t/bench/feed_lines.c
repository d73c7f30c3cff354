/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes members of ids as a feed has them (feed_draw.h) as commands for a
 * server, to standard output: as many as a socket takes. t/bench/seen starts
 * it. */
#include "base/num.h"
#include "bench/fail.h"
#include "bench/feed_draw.h"
#include "bench/number.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    EXIT_USAGE = 2,
    PAGE = 100,
    OUT_BYTES = 1 << 18,
    LINE_BYTES = 80 /* a key with what is around it, at most */
};

enum what { ADDED, AGAIN, OTHERS };

struct feed {
    enum what what;
    uint64_t members; /* that are added, all of them */
    uint64_t looks;
    uint64_t first, last; /* ids */
    char out[OUT_BYTES];
    size_t n;
};

static const struct option options[] = {
    {"members", required_argument, NULL, 'm'},
    {"again", required_argument, NULL, 'a'},
    {"others", required_argument, NULL, 'o'},
    {"first", required_argument, NULL, 'f'},
    {"last", required_argument, NULL, 'l'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static void
help(void)
{
    printf("Usage: feed_lines --members=N [OPTION]...\n"
           "Writes commands that add N members of post.seen, quietly, and mn "
           "behind them.\n\n"
           "  --again=M        instead gets of the last M of these, in pages "
           "of %d,\n"
           "                   but of ids below --first\n"
           "  --others=M       gets of M that are none, of the ids --first to "
           "--last\n"
           "  --help           this text\n",
        PAGE);
}

static void
flush(struct feed *feed)
{
    if (fwrite(feed->out, 1, feed->n, stdout) != feed->n ||
        fflush(stdout) != 0) {
        fail_errno("standard output");
    }
    feed->n = 0;
}

static void
put_text(struct feed *feed, const char *text)
{
    size_t len = strlen(text);
    memcpy(feed->out + feed->n, text, len);
    feed->n += len;
}

static void
put_key(struct feed *feed, struct about_pair pair)
{
    feed->n += num_format_u64(pair.id, feed->out + feed->n);
    put_text(feed, ".seen:");
    feed->n += num_format_u64(pair.member, feed->out + feed->n);
}

/* Room for one more line. */
static void
make_room(struct feed *feed)
{
    if (feed->n > OUT_BYTES - LINE_BYTES) {
        flush(feed);
    }
}

static void
add_all(struct feed *feed, struct feed_draw *draw)
{
    for (uint64_t i = 0; i < feed->members; i++) {
        make_room(feed);
        put_text(feed, "ms ");
        put_key(feed, feed_draw_pair(draw));
        put_text(feed, " 1 q\r\n1\r\n");
    }
    make_room(feed);
    put_text(feed, "mn\r\n");
}

/* Looks for so many, but those that are below the first id; says on standard
 * error how many keys that were. */
static void
look(struct feed *feed, struct feed_draw *draw)
{
    uint64_t n_keys = 0;
    unsigned in_page = 0;
    if (feed->what == AGAIN) {
        for (uint64_t i = feed->looks; i < feed->members; i++) {
            (void)feed_draw_pair(draw);
        }
    }
    for (uint64_t i = 0; i < feed->looks; i++) {
        struct about_pair pair = feed->what == AGAIN
            ? feed_draw_pair(draw)
            : feed_draw_other(draw, feed->first, feed->last);
        if (pair.id < feed->first) {
            continue;
        }
        make_room(feed);
        put_text(feed, in_page == 0 ? "get " : " ");
        put_key(feed, pair);
        n_keys++;
        in_page = (in_page + 1) % PAGE;
        if (in_page == 0) {
            put_text(feed, "\r\n");
        }
    }
    make_room(feed);
    put_text(feed, in_page > 0 ? "\r\nmn\r\n" : "mn\r\n");
    fprintf(stderr, "%" PRIu64 "\n", n_keys);
}

static bool
choose(struct feed *feed, int letter)
{
    switch (letter) {
    case 'm':
        feed->members = number_within("members", optarg, 1, UINT64_MAX / 2);
        return true;
    case 'a':
    case 'o':
        feed->what = letter == 'a' ? AGAIN : OTHERS;
        feed->looks =
            number_within("again and --others", optarg, PAGE, UINT64_MAX / 2);
        return true;
    case 'f':
        feed->first = number_within("first", optarg, 0, UINT64_MAX / 2);
        return true;
    case 'l':
        feed->last = number_within("last", optarg, 0, UINT64_MAX / 2);
        return true;
    default:
        return false;
    }
}

int
main(int argc, char **argv)
{
    static struct feed feed;
    struct feed_draw draw = {.state = 1, .id = 1};
    int letter;
    while ((letter = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (letter == 'h') {
            help();
            return EXIT_SUCCESS;
        }
        if (!choose(&feed, letter)) {
            return EXIT_USAGE;
        }
    }
    if (optind < argc || feed.last < feed.first ||
        (feed.members == 0 && feed.what != OTHERS) ||
        (feed.what == AGAIN && feed.looks > feed.members)) {
        fprintf(stderr, "feed_lines: see --help\n");
        return EXIT_USAGE;
    }
    if (feed.what == ADDED) {
        add_all(&feed, &draw);
    } else {
        draw.state += feed.what == OTHERS; /* other numbers */
        look(&feed, &draw);
    }
    flush(&feed);
    return EXIT_SUCCESS;
}
