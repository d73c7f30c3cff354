/* SPDX-License-Identifier: BSD-3-Clause */
/* A node without a directory, for etcd.test: starts the process that speaks
 * with etcd, beats, asks what lines of the standard input say, and prints what
 * it hears, a line each.
 *
 * usage: etcd_node PREFIX TTL_S HANG_MS TIMEOUT_MS [CA CERT KEY]
 *     [user=NAME:PASSWORD] URL...
 *
 * beats on | off,
 * take | keep NUMBER NAME TERM KEY_REVISION TERM_REVISION, take has NEED
 * VOTER... behind it where these are the first ones, hand NUMBER NAME,
 * give_up NUMBER, voters NUMBER TERM NEED REVISION NAME...,
 * node NUMBER NAME ROLE, epoch NUMBER EPOCH SHARDS SEED, order NUMBER NAME|- */
#include "base/clock.h"
#include "repl/control_pair.h"
#include "server/etcd_child.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 1024, WORDS_MAX = 16, BEAT_MS = 50 };

struct node {
    struct control_pair pair;
    bool is_beating;
    uint32_t n_beats;
    uint64_t beat_at_ms;
    char line[LINE_MAX_BYTES];
    size_t len;
};

static void
say_state(const struct control_state *state)
{
    printf("state rev=%" PRIu64 " term=%" PRIu32 ",%" PRIu64, state->revision,
        state->term, state->term_revision);
    printf(" epoch=%" PRIx64 ",%" PRIu32 ",%" PRIx64, state->epoch.epoch,
        state->epoch.shards, state->epoch.seed);
    printf(" primary=%.*s,%" PRIu32 ",%" PRIu64, (int)state->primary.node.len,
        state->primary.node.text, state->primary.term,
        state->primary.revision);
    printf(" need=%" PRIu32 ",%" PRIu64 " voters=", state->voters.need,
        state->voters.revision);
    for (uint32_t i = 0; i < state->voters.n; i++) {
        printf("%.*s,", (int)state->voters.node[i].len,
            state->voters.node[i].text);
    }
    printf(" nodes=");
    for (uint32_t i = 0; i < state->n_nodes; i++) {
        printf("%.*s:%s,", (int)state->node[i].name.len,
            state->node[i].name.text, state->node[i].role);
    }
    printf(" order=%.*s\n", (int)state->order.to.len, state->order.to.text);
}

static void
hear(void *context, const struct control_event *event)
{
    static const char *const outcomes[] = {"yes", "no", "unknown"};
    struct timespec now;
    (void)context;
    if (event == NULL) {
        printf("gone\n");
        exit(EXIT_SUCCESS);
    }
    switch (event->say) {
    case CONTROL_SAY_BEAT_BACK:
        clock_gettime(CLOCK_BOOTTIME, &now);
        printf("beat %" PRIu32 " %" PRId64 "\n", event->of.beat.number,
            event->of.beat.deadline_ns == 0
                ? 0
                : (int64_t)event->of.beat.deadline_ns / 1000000 -
                    ((int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000));
        break;
    case CONTROL_SAY_RESULT:
        printf("result %" PRIu32 " %s %" PRIu64 " need=%" PRIu32 ",%" PRIu64
               " %s\n",
            event->of.result.number, outcomes[event->of.result.outcome],
            event->of.result.revision, event->of.result.voters.need,
            event->of.result.voters.revision, event->of.result.why);
        break;
    case CONTROL_SAY_STATE:
        say_state(&event->of.state);
        break;
    case CONTROL_SAY_LOST:
        printf("lost %s\n", event->of.why);
        break;
    default:
        printf("unreachable %s\n", event->of.why);
        break;
    }
}

static uint64_t
number(const char *word)
{
    return strtoull(word, NULL, 10);
}

static bool
fill_voters(struct control_voters *voters, char *words[], unsigned n)
{
    voters->term = (uint32_t)number(words[2]);
    voters->need = (uint32_t)number(words[3]);
    voters->revision = number(words[4]);
    for (unsigned i = 5; i < n && voters->n < CONTROL_VOTERS_MAX; i++) {
        (void)node_name_set(
            &voters->node[voters->n++], words[i], strlen(words[i]));
    }
    return voters->n > 0;
}

static bool
fill_primary(struct control_primary *primary, char *words[])
{
    primary->term = (uint32_t)number(words[3]);
    primary->revision = number(words[4]);
    primary->boot = (uint64_t)getpid();
    strcpy(primary->client.text, "127.0.0.1:11211");
    return node_name_set(&primary->node, words[2], strlen(words[2]));
}

static bool
fill_take(struct control_request *request, char *words[], unsigned n)
{
    struct control_voters *voters = &request->of.take.voters;
    request->ask = CONTROL_TAKE;
    request->of.take.term_revision = number(words[5]);
    for (unsigned i = 7; i < n && voters->n < CONTROL_VOTERS_MAX; i++) {
        voters->term = (uint32_t)number(words[3]);
        voters->need = (uint32_t)number(words[6]);
        (void)node_name_set(
            &voters->node[voters->n++], words[i], strlen(words[i]));
    }
    return fill_primary(&request->of.take.primary, words);
}

/* False where the line is no request. */
static bool
fill(struct control_request *request, char *words[], unsigned n)
{
    request->number = (uint32_t)number(words[1]);
    if (strcmp(words[0], "take") == 0 && n >= 6) {
        return fill_take(request, words, n);
    }
    if (strcmp(words[0], "keep") == 0 && n == 6) {
        request->ask = CONTROL_KEEP;
        request->of.keep.term_revision = number(words[5]);
        return fill_primary(&request->of.keep.primary, words);
    }
    if (strcmp(words[0], "hand") == 0 && n == 3) {
        request->ask = CONTROL_HAND;
        return node_name_set(&request->of.hand.to, words[2], strlen(words[2]));
    }
    if (strcmp(words[0], "give_up") == 0) {
        request->ask = CONTROL_GIVE_UP;
        return true;
    }
    if (strcmp(words[0], "voters") == 0 && n >= 6) {
        request->ask = CONTROL_VOTERS;
        return fill_voters(&request->of.voters, words, n);
    }
    if (strcmp(words[0], "node") == 0 && n == 4) {
        request->ask = CONTROL_NODE;
        (void)snprintf(request->of.node.role, sizeof request->of.node.role,
            "%s", words[3]);
        return node_name_set(
            &request->of.node.name, words[2], strlen(words[2]));
    }
    if (strcmp(words[0], "epoch") == 0 && n == 5) {
        request->ask = CONTROL_EPOCH;
        request->of.epoch = (struct control_epoch){.epoch = number(words[2]),
            .shards = (uint32_t)number(words[3]),
            .seed = number(words[4])};
        return true;
    }
    if (strcmp(words[0], "order") == 0 && n == 3) {
        request->ask = CONTROL_ORDER;
        return words[2][0] == '-' ||
            node_name_set(&request->of.order.to, words[2], strlen(words[2]));
    }
    return false;
}

static void
take_line(struct node *node, char *line)
{
    struct control_request request = {0};
    char *words[WORDS_MAX], *rest = NULL;
    unsigned n = 0;
    for (char *word = strtok_r(line, " ", &rest);
         word != NULL && n < WORDS_MAX; word = strtok_r(NULL, " ", &rest)) {
        words[n++] = word;
    }
    if (n == 2 && strcmp(words[0], "beats") == 0) {
        node->is_beating = strcmp(words[1], "on") == 0;
    } else if (n < 2 || !fill(&request, words, n) ||
        !control_ask(&node->pair.control, &request)) {
        printf("not asked\n");
    }
}

static void
read_lines(struct node *node)
{
    ssize_t n =
        read(0, node->line + node->len, sizeof node->line - node->len - 1);
    if (n <= 0) {
        exit(EXIT_SUCCESS);
    }
    node->len += (size_t)n;
    node->line[node->len] = '\0';
    char *end;
    while ((end = strchr(node->line, '\n')) != NULL) {
        *end = '\0';
        take_line(node, node->line);
        node->len -= (size_t)(end + 1 - node->line);
        memmove(node->line, end + 1, node->len + 1);
    }
}

static void
beat(struct node *node)
{
    const struct control_request request = {
        .ask = CONTROL_BEAT, .number = node->n_beats + 1};
    uint64_t now_ms = clock_monotonic_ns() / 1000000;
    if (node->is_beating && now_ms >= node->beat_at_ms) {
        node->n_beats++;
        node->beat_at_ms = now_ms + BEAT_MS;
        (void)control_ask(&node->pair.control, &request);
    }
}

static struct http_pem
read_pem(const char *path)
{
    struct http_pem pem = {0};
    FILE *file = fopen(path, "r");
    char *room = calloc(1, 1 << 16);
    if (file == NULL || room == NULL) {
        perror(path);
        exit(EXIT_FAILURE);
    }
    pem.len = fread(room, 1, 1 << 16, file);
    pem.data = room;
    fclose(file);
    return pem;
}

int
main(int argc, char *argv[])
{
    static struct node node;
    struct buf why = {0};
    int fd = -1, at = 5;
    if (argc < 6) {
        return EXIT_FAILURE;
    }
    struct run_config config = {.agent = {.prefix = argv[1],
                                    .ttl_s = (uint32_t)number(argv[2]),
                                    .hang_ms = (uint32_t)number(argv[3])},
        .holds_calls = true,
        .http = {.timeout_ms = (uint32_t)number(argv[4])}};
    if (argc > 8 && argv[at][0] == '/') {
        config.http.ca = read_pem(argv[at++]);
        config.http.cert = read_pem(argv[at++]);
        config.http.key = read_pem(argv[at++]);
    }
    if (at < argc && strncmp(argv[at], "user=", 5) == 0) {
        if (!login_read_user(
                argv[at] + 5, strlen(argv[at] + 5), &config.user)) {
            return EXIT_FAILURE;
        }
        at++;
    }
    for (; at < argc && http_is_endpoint(argv[at]); at++) {
        config.http.endpoint[config.http.n_endpoints++] = argv[at];
    }
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    if (etcd_child_start(&config, "", true, &fd, &why) != 0) {
        fprintf(stderr, "%.*s\n", (int)why.len, why.data);
        return EXIT_FAILURE;
    }
    node.is_beating = true;
    control_pair__init(&node.pair, fd, hear, &node);
    for (;;) {
        struct pollfd fds[2] = {
            {.fd = 0, .events = POLLIN}, {.fd = fd, .events = POLLIN}};
        beat(&node);
        (void)poll(fds, 2, BEAT_MS);
        if (fds[0].revents != 0) {
            read_lines(&node);
        }
        control_pair__turn(&node.pair);
    }
}
