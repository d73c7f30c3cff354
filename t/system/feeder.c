/* SPDX-License-Identifier: BSD-3-Clause */
/* Who is fed, for t/system/feed.test: connects, and says in lines what comes.
 *
 *     feeder PORT GROUP NAME RULE [EPOCH SEED SHARDS POSITION HISTORY]
 *
 * with what it said in its last life of source and position, to go on from
 * there. Lines of its input: `pause`, `resume`: it does not read, or reads
 * again; it acknowledges what has come in any case. Once it reads again it says
 * no entries any more: megabytes have come, and who has sent them gives it a
 * second for the reason why nothing follows. Its lines:
 *
 *     welcome continue|anew SEQ
 *     source EPOCH SEED SHARDS HISTORY
 *     counter SERIAL NAME, producer SERIAL NAME, number SERIAL NUMBER
 *     cells ID SERIAL=VALUE ...       one for each part of an entry
 *     position SEQ
 *     end REASON CODE TEXT
 */
#include "base/clock.h"
#include "repl/link_feed.h"
#include "wal/entry.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    IN_BYTES = 64 << 10,
    KERNEL_BYTES = 64 << 10, /* that wait where it does not read */
    TIMEOUT_US = 5000000,
    WAIT_MS = 20
};

struct feeder {
    struct link_feed link;
    struct link_self self;
    struct link_node node;
    struct history history;
    struct proof_secret secret;
    struct stream_reader reader;
    uint8_t in[IN_BYTES];
    size_t at, len; /* of in */
    int fd;
    uint64_t position; /* that was said */
    bool was_source_said;
    bool says_no_entries;
};

static uint64_t
now_us(void)
{
    return clock_monotonic_ns() / 1000;
}

static void
die(const char *what)
{
    perror(what);
    exit(2);
}

static struct message_text
text_of(const char *text)
{
    return (struct message_text){(const uint8_t *)text, (uint8_t)strlen(text)};
}

static void
say_cells(const struct entry_cells *cells)
{
    printf("cells %" PRIu64, cells->id);
    for (unsigned i = 0; i < cells->n; i++) {
        printf(" %u=%" PRIu64, cells->serial[i], cells->value[i]);
    }
    printf("\n");
}

static void
say_entry(const struct entry *entry)
{
    switch (entry->kind) {
    case ENTRY_CELLS:
        say_cells(&entry->cells);
        break;
    case ENTRY_COUNTER:
        printf("counter %u %s\n", entry->counter.serial,
            entry->counter.name.text);
        break;
    case ENTRY_PRODUCER:
        printf("producer %u %.*s\n", entry->producer, (int)entry->name.len,
            entry->name.text);
        break;
    case ENTRY_NUMBER:
        printf("number %u %" PRIu64 "\n", entry->producer, entry->number);
        break;
    default:
        printf("other %u\n", (unsigned)entry->kind);
    }
}

static void
say_batches(struct message_batches batches)
{
    struct message_batch batch;

    while (message_next_batch(&batches, &batch)) {
        struct entry_reader reader = {
            .at = batch.payload, .end = batch.payload + batch.len};
        struct entry entry;

        while (entry_has_next(&reader)) {
            if (!entry_next(&reader, &entry)) {
                printf("wrong entry\n");
                return;
            }
            say_entry(&entry);
        }
    }
}

static void
say_source(struct feeder *feeder)
{
    const struct link_directory *source = &feeder->link.directory;
    uint8_t bytes[HISTORY_BYTES_MAX];
    size_t len = history_put(&feeder->link.history, bytes);

    printf("welcome %s %" PRIu64 "\n",
        feeder->link.verdict == MESSAGE_CONTINUE ? "continue" : "anew",
        feeder->link.verdict_seq);
    printf("source %" PRIu64 " %" PRIu64 " %u ", source->epoch, source->seed,
        source->shards);
    for (size_t i = 0; i < len; i++) {
        printf("%02x", bytes[i]);
    }
    printf("\n");
    feeder->was_source_said = true;
}

/* Takes the frames that are there. */
static void
take(struct feeder *feeder)
{
    while (link_feed_may_take(&feeder->link)) {
        const uint8_t *bytes = feeder->in + feeder->at;
        size_t len = feeder->len - feeder->at;
        struct stream_frame frame;
        enum stream_step read =
            stream_read(&feeder->reader, &bytes, &len, &frame);
        enum link_step step;

        feeder->at = feeder->len - len;
        if (read == STREAM_WRONG) {
            link_feed_wrong(&feeder->link, &feeder->reader.fault);
        }
        if (read != STREAM_FRAME) {
            return;
        }
        step = link_feed_take(&feeder->link, &feeder->node, &frame, now_us());
        feeder->reader.session = feeder->link.call.session;
        if (!feeder->was_source_said && feeder->link.directory.epoch != 0) {
            say_source(feeder);
        }
        if (step == LINK_YOURS && !feeder->says_no_entries) {
            say_batches(feeder->link.batches);
        }
        if (feeder->was_source_said && step != LINK_ENDING &&
            feeder->link.position != feeder->position) {
            feeder->position = feeder->link.position;
            feeder->node.written = feeder->node.synced = feeder->node.applied =
                feeder->position;
            printf("position %" PRIu64 "\n", feeder->position);
        }
        fflush(stdout);
    }
}

/* Does what is next. False: this is the end. */
static bool
go_on(struct feeder *feeder)
{
    uint8_t out[LINK_SEND_MAX];
    struct link_order order;

    for (;;) {
        link_feed_next(&feeder->link, &feeder->node, now_us(), out, &order);
        if (order.what == LINK_CLOSE) {
            return false;
        }
        if (order.what != LINK_SEND) {
            return true;
        }
        if (send(feeder->fd, out, order.len, MSG_NOSIGNAL) !=
            (ssize_t)order.len) {
            return false;
        }
    }
}

/* Reads a line of the input. */
static void
obey(struct feeder *feeder)
{
    char line[16];
    ssize_t n = read(STDIN_FILENO, line, sizeof line - 1);

    if (n <= 0) {
        exit(0);
    }
    line[n] = '\0';
    feeder->node.is_paused = strcmp(line, "pause\n") == 0;
    feeder->says_no_entries = !feeder->node.is_paused;
}

static void
run(struct feeder *feeder)
{
    while (go_on(feeder)) {
        struct pollfd polls[2] = {{.fd = STDIN_FILENO, .events = POLLIN},
            {.fd = feeder->node.is_paused ? -1 : feeder->fd,
                .events = POLLIN}};

        if (poll(polls, 2, WAIT_MS) < 0) {
            die("poll");
        }
        if (polls[0].revents != 0) {
            obey(feeder);
        }
        if (polls[1].revents != 0) {
            ssize_t n = read(feeder->fd, feeder->in, sizeof feeder->in);

            if (n <= 0) {
                break;
            }
            feeder->at = 0;
            feeder->len = (size_t)n;
        }
        take(feeder);
    }
    printf("end %s, %u %.*s\n", link_reason_text(feeder->link.call.end.reason),
        feeder->link.call.end.code, (int)feeder->link.call.end.text_len,
        feeder->link.call.end.text);
}

static void
set_history(struct feeder *feeder, const char *hex)
{
    uint8_t bytes[HISTORY_BYTES_MAX];
    const uint8_t *at = bytes;
    size_t len = 0;
    unsigned byte;

    while (len < sizeof bytes && sscanf(hex + 2 * len, "%2x", &byte) == 1) {
        bytes[len++] = (uint8_t)byte;
    }
    if (!history_get(&at, bytes + len, &feeder->history)) {
        fprintf(stderr, "no history\n");
        exit(2);
    }
}

int
main(int argc, char **argv)
{
    static struct feeder feeder;
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct message_text rule;
    uint8_t nonce[STREAM_NONCE_BYTES];

    if ((argc != 5 && argc != 10) ||
        getrandom(nonce, sizeof nonce, 0) != (ssize_t)sizeof nonce ||
        stream_reader_init(&feeder.reader) != 0) {
        return 2;
    }
    feeder.self = (struct link_self){.group = text_of(argv[2]),
        .name = text_of(argv[3]),
        .secret = &feeder.secret,
        .formats = {ENTRY_KIND_NEWEST, 0, 0},
        .hello_flags = HELLO_NEVER_VOTES,
        .timeout_us = TIMEOUT_US};
    feeder.node.history = &feeder.history;
    rule = text_of(argv[4]);
    if (argc == 10) {
        feeder.node.directory =
            (struct link_directory){.epoch = strtoull(argv[5], NULL, 10),
                .seed = strtoull(argv[6], NULL, 10),
                .shards = (uint32_t)strtoul(argv[7], NULL, 10)};
        feeder.node.written = feeder.node.synced = feeder.node.applied =
            strtoull(argv[8], NULL, 10);
        set_history(&feeder, argv[9]);
    }
    to.sin_port = htons((uint16_t)strtoul(argv[1], NULL, 10));
    feeder.fd = socket(AF_INET, SOCK_STREAM, 0);
    if (feeder.fd < 0 ||
        setsockopt(feeder.fd, SOL_SOCKET, SO_RCVBUF, &(int){KERNEL_BYTES},
            sizeof(int)) != 0 ||
        connect(feeder.fd, (struct sockaddr *)&to, sizeof to) != 0) {
        die("connect");
    }
    link_feed_init(&feeder.link, &feeder.self, &rule, nonce, now_us());
    run(&feeder);
    return 0;
}
