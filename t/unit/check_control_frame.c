/* SPDX-License-Identifier: BSD-3-Clause */
/* repl/control_frame: each request and event there and back; cut, longer, and
 * with each byte changed. And repl/control_pair, over a pair. */
#include "repl/control_frame.h"

#include "repl/control_pair.h"
#include "unit/control_help.h"

#include <errno.h>
#include <sys/socket.h>

enum { REQUESTS = 11, EVENTS = 7 };

static unsigned
make_requests(struct control_request out[REQUESTS])
{
    const struct control_request others[] = {
        {.ask = CONTROL_BEAT, .number = UINT32_MAX},
        {.ask = CONTROL_GIVE_UP, .number = 4},
        {.ask = CONTROL_EPOCH,
            .number = 5,
            .of.epoch = {.epoch = UINT64_MAX, .seed = 1, .shards = 16}},
        {.ask = CONTROL_ORDER, .number = 6},
        {.ask = CONTROL_ORDER, .number = 7, .of.order.to = name_of("b")}};
    memcpy(out, others, sizeof others);
    out[5] = take_request("a", CONTROL_TERM_MAX, 0, INT64_MAX);
    out[6] = voters_request(3, 2, 3, 9);
    out[7] = node_request("node-1.example");
    out[8] = take_request("a", 1, 0, 0);
    out[8].of.take.voters =
        voters_request(1, 2, CONTROL_VOTERS_MAX, 0).of.voters;
    out[9] = keep_request("a", CONTROL_TERM_MAX, 5, INT64_MAX);
    out[10] = hand_request("b");
    return REQUESTS;
}

/* As large as one can be. */
static void
fill_state(struct control_state *state)
{
    struct control_primary *primary = &state->primary;
    char name[NODE_NAME_MAX + 1];
    memset(name, 'n', NODE_NAME_MAX);
    name[NODE_NAME_MAX] = '\0';
    *primary = take_request(name, 5, 7, 8).of.take.primary;
    memset(primary->client.text, 'x', CONTROL_ADDRESS_MAX);
    state->revision = INT64_MAX;
    state->term_revision = state->primary.revision = INT64_MAX;
    state->term = CONTROL_TERM_MAX;
    state->epoch = (struct control_epoch){.revision = 1, .shards = 1};
    state->voters = voters_request(1, 1, CONTROL_VOTERS_MAX, 5).of.voters;
    state->order = (struct control_order){.revision = 3, .to = primary->node};
    state->n_nodes = CONTROL_NODES_MAX;
    for (uint32_t i = 0; i < CONTROL_NODES_MAX; i++) {
        name[0] = (char)('A' + i % 26);
        name[1] = (char)('A' + i / 26);
        state->node[i] = node_request(name).of.node;
        memset(state->node[i].client.text, 'c', CONTROL_ADDRESS_MAX);
        memset(state->node[i].repl.text, 'r', CONTROL_ADDRESS_MAX);
        memset(state->node[i].role, 'l', CONTROL_ROLE_MAX);
        state->node[i].formats = UINT32_MAX;
    }
}

static unsigned
make_events(struct control_event out[EVENTS])
{
    memset(out, 0, EVENTS * sizeof *out);
    out[0].say = CONTROL_SAY_BEAT_BACK;
    out[0].of.beat =
        (struct control_beat){.number = 1, .deadline_ns = UINT64_MAX};
    out[1].say = CONTROL_SAY_RESULT;
    out[1].of.result.number = 5;
    out[1].of.result.outcome = CONTROL_UNKNOWN;
    memset(out[1].of.result.why, ' ', CONTROL_WHY_MAX);
    out[2].say = CONTROL_SAY_RESULT;
    out[2].of.result.revision = 77;
    out[2].of.result.voters = voters_request(1, 4, 2, 5).of.voters;
    out[3].say = CONTROL_SAY_STATE;
    out[3].of.state.revision = 1;
    out[4].say = CONTROL_SAY_STATE;
    fill_state(&out[4].of.state);
    out[5].say = CONTROL_SAY_LOST;
    (void)snprintf(out[5].of.why, sizeof out[5].of.why, "so it is");
    out[6].say = CONTROL_SAY_UNREACHABLE;
    return EVENTS;
}

/* What is read is what was put; or it is none. */
static bool
request_is_canonical(const uint8_t *bytes, size_t len)
{
    uint8_t again[CONTROL_FRAME_MAX];
    struct control_request request;
    if (!control_frame__get_request(bytes, len, &request)) {
        return false;
    }
    ck_assert_uint_eq(control_frame__put_request(&request, again), len);
    ck_assert_mem_eq(again, bytes, len);
    return true;
}

static bool
event_is_canonical(const uint8_t *bytes, size_t len)
{
    uint8_t again[CONTROL_FRAME_MAX];
    static struct control_event event;
    if (!control_frame__get_event(bytes, len, &event)) {
        return false;
    }
    ck_assert(control_frame_is_right(&event));
    ck_assert_uint_eq(control_frame__put_event(&event, again), len);
    ck_assert_mem_eq(again, bytes, len);
    return true;
}

/* The frame, everything shorter, one byte more, and each bit changed. */
static void
try_all(uint8_t *bytes, size_t len, bool (*is_right)(const uint8_t *, size_t))
{
    const size_t step = len > 1000 ? 97 : 1;
    ck_assert(is_right(bytes, len));
    for (size_t cut = 0; cut < len; cut += step) {
        ck_assert_msg(!is_right(bytes, cut), "cut at %zu", cut);
    }
    bytes[len] = 0;
    ck_assert(!is_right(bytes, len + 1));
    for (size_t i = 0; i < len * 8; i += step) {
        bytes[i / 8] ^= (uint8_t)(1U << i % 8);
        (void)is_right(bytes, len);
        bytes[i / 8] ^= (uint8_t)(1U << i % 8);
    }
    ck_assert(is_right(bytes, len));
}

START_TEST(test_requests)
{
    struct control_request request[REQUESTS], got;
    uint8_t bytes[CONTROL_FRAME_MAX + 1];
    unsigned n = make_requests(request);
    for (unsigned i = 0; i < n; i++) {
        size_t len = control_frame__put_request(&request[i], bytes);
        ck_assert(control_frame__get_request(bytes, len, &got));
        ck_assert_int_eq(got.ask, request[i].ask);
        ck_assert_uint_eq(got.number, request[i].number);
        try_all(bytes, len, request_is_canonical);
        ck_assert(!event_is_canonical(bytes, len));
    }
}
END_TEST

START_TEST(test_events)
{
    static struct control_event event[EVENTS];
    uint8_t bytes[CONTROL_FRAME_MAX + 1];
    unsigned n = make_events(event);
    for (unsigned i = 0; i < n; i++) {
        size_t len = control_frame__put_event(&event[i], bytes);
        try_all(bytes, len, event_is_canonical);
        ck_assert(!request_is_canonical(bytes, len));
    }
}
END_TEST

START_TEST(test_bounds)
{
    static struct control_event event;
    struct control_voters *voters = &event.of.state.voters;
    event.say = CONTROL_SAY_STATE;
    event.of.state.revision = 1;
    ck_assert(control_frame_is_right(&event));
    *voters =
        voters_request(1, 3, 2, 5).of.voters; /* needs more than it has */
    ck_assert(control_frame_is_right(&event));
    voters->node[1] = voters->node[0];
    ck_assert(!control_frame_is_right(&event));
    *voters = voters_request(1, 0, 2, 5).of.voters;
    ck_assert(!control_frame_is_right(&event));
    *voters = voters_request(CONTROL_TERM_MAX + 1, 1, 2, 5).of.voters;
    ck_assert(!control_frame_is_right(&event));
    *voters = (struct control_voters){0};
    event.of.state.n_nodes = 1;
    event.of.state.node[0] = node_request("a").of.node;
    ck_assert(control_frame_is_right(&event));
    event.of.state.node[0].client.text[0] = '\n';
    ck_assert(!control_frame_is_right(&event));
    event.of.state.node[0].client.text[0] = '\0';
    event.of.state.node[0].priority = CONTROL_PRIORITY_MAX + 1;
    ck_assert(!control_frame_is_right(&event));
    event.of.state.n_nodes = CONTROL_NODES_MAX + 1;
    ck_assert(!control_frame_is_right(&event));
}
END_TEST

struct heard {
    unsigned n;
    bool is_gone;
    enum control_say last;
};

static void
hear(void *context, const struct control_event *event)
{
    struct heard *heard = context;
    heard->n++;
    heard->is_gone = event == NULL;
    heard->last = event == NULL ? CONTROL_EVENTS_N : event->say;
}

START_TEST(test_pair)
{
    static struct control_event event[EVENTS];
    struct control_request request[REQUESTS], got;
    struct heard heard = {0};
    struct control_pair pair;
    int fds[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds), 0);
    control_pair__init(&pair, fds[0], hear, &heard);
    ck_assert_int_eq(control_pair_hear(fds[1], &got), EAGAIN);
    for (unsigned i = 0; i < make_requests(request); i++) {
        ck_assert(control_ask(&pair.control, &request[i]));
    }
    for (unsigned i = 0; i < REQUESTS; i++) {
        ck_assert_int_eq(control_pair_hear(fds[1], &got), 0);
        ck_assert_uint_eq(got.number, request[i].number);
    }
    for (unsigned i = 0; i < make_events(event); i++) {
        ck_assert_int_eq(control_pair_say(fds[1], &event[i]), 0);
    }
    control_pair__turn(&pair);
    ck_assert_uint_eq(heard.n, EVENTS);
    ck_assert_int_eq(heard.last, CONTROL_SAY_UNREACHABLE);

    while (control_pair_say(fds[1], &event[4]) == 0) {
    }
    ck_assert_int_eq(control_pair_say(fds[1], &event[4]), EAGAIN);
    while (control_ask(&pair.control, &request[7])) {
    }
    control_pair__turn(&pair);
    ck_assert(!heard.is_gone);
    while (control_pair_hear(fds[1], &got) == 0) {
    }
    ck_assert_int_eq(send(fds[0], "?", 1, 0), 1);
    ck_assert_int_eq(control_pair_hear(fds[1], &got), EBADMSG);
    ck_assert_int_eq(send(fds[1], "?", 1, 0), 1);
    control_pair__turn(&pair);
    ck_assert(heard.is_gone);
    ck_assert(!control_ask(&pair.control, &request[0]));
    close(fds[0]);
    ck_assert_int_eq(control_pair_hear(fds[1], &got), EPIPE);
    ck_assert_int_eq(control_pair_say(fds[1], &event[0]), EPIPE);
    close(fds[1]);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        test_requests, test_events, test_bounds, test_pair};
    return run_tests("control_frame", tests, COUNT_OF(tests));
}
