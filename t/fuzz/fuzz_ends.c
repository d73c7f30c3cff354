/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzzes both ends of the replication stream together. The input is a script of
 * a conversation: who is asked next, how many bytes arrive, which bit of those
 * on their way is flipped, which frame comes with another body and a checksum
 * that holds, when the connection is lost and made again. The first byte says
 * how the nodes are at first; each step is two bytes.
 *
 * While no frame is forged, a flipped bit is found or does no harm: the replica
 * takes the primary's batches, in order, with what is in them, and
 * acknowledges what it has; and what a candidate is told was asked for. After
 * that still all holds that each end has to see to by itself. */
#include "base/assert.h"
#include "base/bytes.h"
#include "base/checksum.h"
#include "repl/link_asker.h"
#include "repl/link_feed.h"
#include "repl/link_primary.h"
#include "repl/link_replica.h"
#include "repl/message_forward.h"

#include "fuzz/fuzz_frames.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

enum {
    TERM = 3,
    NEXT_TERM = 5, /* of a candidate */
    WIRE_BYTES = 16 << 10,
    PAYLOAD = 8,
    AT_ONCE = 6, /* batches of a frame */
    FLOW_MAX = 16,
    BATCHES_MAX = 100000,
    STEP_BYTES = 2
};

enum step {
    ASK_PRIMARY,
    ASK_REPLICA,
    ARRIVE_UP,   /* at the primary */
    ARRIVE_DOWN, /* at the replica */
    FLIP_UP,
    FLIP_DOWN,
    FORGE_UP, /* another byte in a frame, with a checksum that holds */
    FORGE_DOWN,
    RETYPE, /* likewise, another type */
    WRITE,
    TIME,
    FLOW,   /* all that is due is done a few times */
    AGAIN,  /* also for another purpose: questions, a fetch, a feed */
    SWITCH, /* or a question */
    GONE,   /* the primary's log begins later */
    PAUSE,  /* or a request of the replica */
    STEPS
};

/* Frames that an end has taken, in this process. Told at the end where
 * $FUZZ_COUNT is set. */
static uint64_t n_taken;

struct wire {
    uint8_t bytes[WIRE_BYTES];
    size_t len;
    size_t begin; /* of the first frame that has not begun to arrive */
    struct stream_reader reader;
};

struct world {
    struct proof_secret secret;
    struct link_self self[2];
    struct history history[2];
    struct link_view view;
    struct link_node node;
    struct link_primary primary;
    enum message_purpose purpose;
    struct link_replica replica;
    struct link_asker asker; /* in its place, for PROMISE, */
    struct link_feed feed;   /* for FEED, of */
    struct link_node fed;
    struct history fed_history;
    uint64_t request; /* the last one */
    struct wire up, down;
    uint64_t now_us, number;
    unsigned copied; /* frames of the snapshot */
    bool is_forged;
};

static struct message_text
text_of(const char *text)
{
    return (struct message_text){
        .at = (const uint8_t *)text, .len = (uint8_t)strlen(text)};
}

static uint64_t
content_of(uint64_t seq)
{
    return seq * UINT64_C(0x9e3779b97f4a7c15);
}

static void
connect_ends(struct world *world)
{
    const struct message_text rule = text_of("modulo:0/2");
    uint8_t nonce[2][STREAM_NONCE_BYTES] = {{0}};
    struct wire *wires[2] = {&world->up, &world->down};

    for (unsigned i = 0; i < 2; i++) {
        uint8_t *kept = wires[i]->reader.kept;

        bytes_put_u64(nonce[i], ++world->number);
        wires[i]->len = wires[i]->begin = 0;
        wires[i]->reader = (struct stream_reader){.kept = kept};
    }
    world->copied = 0;
    link_primary_init(
        &world->primary, &world->self[0], nonce[0], world->now_us);
    link_replica_init(
        &world->replica, &world->self[1], nonce[1], world->now_us);
    link_asker_init(&world->asker, &world->self[1], &world->self[0].name,
        nonce[1], world->now_us);
    link_feed_init(
        &world->feed, &world->self[1], &rule, nonce[1], world->now_us);
    if (world->purpose == MESSAGE_FETCH) {
        link_replica_fetch(&world->replica, NEXT_TERM);
    }
}

/* Who is asked, or fetched from, is no primary any more; who wants to follow,
 * or to be fed, comes to one again. */
static void
connect_for(struct world *world, enum message_purpose purpose)
{
    bool leads = purpose == MESSAGE_FOLLOW || purpose == MESSAGE_FEED;
    uint64_t term = leads ? TERM : NEXT_TERM;

    if (purpose != world->purpose) {
        world->view.is_replica = !leads;
        world->view.has_authority = leads;
        world->view.term = world->node.promised = term;
    }
    world->purpose = purpose;
    connect_ends(world);
}

/* The replica's log: the beginning of the primary's, or not. */
static void
begin_node(struct world *world, unsigned how)
{
    const uint64_t ends[] = {0, seq_make(1, 15), seq_make(1, 25),
        seq_make(TERM, 40), seq_make(TERM, 200)};
    struct link_node *node = &world->node;
    struct history *history = &world->history[1];

    *history = (struct history){0};
    *node = (struct link_node){
        .directory = world->view.directory, .history = history};
    node->written = ends[how % (sizeof ends / sizeof ends[0])];
    if (node->written == 0) {
        node->directory = (struct link_directory){0};
        return;
    }
    ASSERT(history_begin(history, 1, 0x11, 0));
    if (seq_term(node->written) == TERM) {
        ASSERT(history_begin(history, TERM, 0x33, seq_make(1, 20)));
    }
    node->promised = seq_term(node->written);
    node->synced = node->applied = node->written;
}

static void
begin(struct world *world, uint8_t how)
{
    static uint8_t kept[2][STREAM_FRAME_MAX];

    memset(world, 0, sizeof *world);
    world->up.reader.kept = kept[0];
    world->down.reader.kept = kept[1];
    world->now_us = 1000000;
    if (how >= 128 && proof_is_there()) {
        world->secret.n_bytes = PROOF_SECRET_MIN;
    }
    ASSERT(history_begin(&world->history[0], 1, 0x11, 0));
    ASSERT(history_begin(&world->history[0], TERM, 0x33, seq_make(1, 20)));
    for (unsigned i = 0; i < 2; i++) {
        world->self[i] = (struct link_self){.group = text_of("g"),
            .name = text_of(i == 0 ? "a" : "b"),
            .client = text_of("10.0.0.1:1"),
            .secret = &world->secret,
            .formats = {6, 7, 1},
            .timeout_us = 5000000};
    }
    world->self[1].hello_flags = how % 64 >= 32 ? HELLO_FORWARDS : 0;
    world->fed.history = &world->fed_history;
    world->view =
        (struct link_view){.directory = {.epoch = 7, .seed = 8, .shards = 16},
            .term = TERM,
            .history = &world->history[0],
            .written = seq_make(TERM, 100),
            .committed = seq_make(TERM, 90),
            .fed = seq_make(TERM, 90),
            .may_feed = true,
            .has_authority = true,
            .is_asked = true};
    world->purpose = MESSAGE_FOLLOW;
    begin_node(world, how);
    connect_ends(world);
}

static void
wire_put(struct wire *wire, const uint8_t *bytes, size_t len)
{
    ASSERT(wire->len + len <= WIRE_BYTES);
    memcpy(wire->bytes + wire->len, bytes, len);
    wire->len += len;
}

/* The batch of the primary's log behind one. */
static uint64_t
next_of(uint64_t seq)
{
    return seq == 0              ? seq_first(1)
        : seq == seq_make(1, 20) ? seq_first(TERM)
                                 : seq + 1;
}

static size_t
put_batch(uint8_t *at, uint64_t seq)
{
    message_put_batch(at, seq, PAYLOAD);
    bytes_put_u64(at + MESSAGE_BATCH_BYTES, content_of(seq));
    return MESSAGE_BATCH_BYTES + PAYLOAD;
}

/* What of the log is of the rule, of which every other batch has nothing; first
 * the schema, in two frames. */
static void
send_feed(struct world *world, uint64_t seq)
{
    uint8_t frame[STREAM_HEAD_BYTES + MESSAGE_NEWS_BYTES +
        AT_ONCE * (MESSAGE_BATCH_BYTES + PAYLOAD)];
    uint8_t *at = frame + STREAM_HEAD_BYTES + MESSAGE_NEWS_BYTES;
    struct link_primary *link = &world->primary;
    size_t len = 0;

    if (!link->has_schema) {
        len = link_primary_seal_schema(link, &world->view, frame,
            put_batch(at, seq), world->copied++ > 0, world->now_us);
    } else {
        for (unsigned n = 0; n < AT_ONCE && seq < world->view.fed; n++) {
            seq = next_of(seq);
            len += seq % 2 == 0 ? put_batch(at + len, seq) : 0;
        }
        len = link_primary_seal_feed(
            link, &world->view, frame, len, seq, world->now_us);
    }
    wire_put(&world->down, frame, len);
}

/* Batches behind one, as few as there is room for. */
static void
send_batches(struct world *world, uint64_t seq)
{
    uint8_t frame[STREAM_HEAD_BYTES + MESSAGE_NEWS_BYTES +
        AT_ONCE * (MESSAGE_BATCH_BYTES + PAYLOAD)];
    uint8_t *at = frame + STREAM_HEAD_BYTES + MESSAGE_NEWS_BYTES;
    uint64_t last = seq;
    size_t len = 0;

    while (len < AT_ONCE * (MESSAGE_BATCH_BYTES + PAYLOAD) &&
        last < world->view.written) {
        last = next_of(last);
        len += put_batch(at + len, last);
    }
    ASSERT(len > 0);
    wire_put(&world->down, frame,
        link_primary_seal(
            &world->primary, &world->view, frame, len, last, world->now_us));
}

/* The next frame of a snapshot of one file. */
static void
send_copy(struct world *world)
{
    uint8_t frame[LINK_SEND_MAX], *body = frame + STREAM_HEAD_BYTES;
    const struct message_snapshot snapshot = {.first = world->view.written + 1,
        .bytes = PAYLOAD,
        .files = 1,
        .manifest_len = 8,
        .source = text_of("a")};
    const struct message_file file = {MESSAGE_SEGMENT, 4, PAYLOAD};
    const struct message_end end = {
        world->copied == 3 ? MESSAGE_END_FILE : MESSAGE_END_SNAPSHOT, 0};
    static const enum stream_type types[] = {
        STREAM_SNAPSHOT, STREAM_FILE, STREAM_DATA, STREAM_END, STREAM_END};
    size_t len;

    switch (world->copied) {
    case 0:
        len = message_put_snapshot(body, &snapshot);
        break;
    case 1:
        len = message_put_file(body, &file);
        break;
    case 2:
        message_put_data(body, 0);
        memset(body + MESSAGE_DATA_BYTES, 'd', PAYLOAD);
        len = MESSAGE_DATA_BYTES + PAYLOAD;
        break;
    case 3:
    case 4:
        len = message_put_end(body, &end);
        break;
    default:
        return;
    }
    wire_put(&world->down, frame,
        link_primary_copy(&world->primary, types[world->copied], frame,
            (uint32_t)len, world->now_us));
    world->copied++;
}

static void
ask_primary(struct world *world)
{
    uint8_t out[LINK_SEND_MAX];
    struct link_order order;

    if (world->down.len > WIRE_BYTES / 2) {
        return; /* no room */
    }
    link_primary_next(
        &world->primary, &world->view, world->now_us, out, &order);
    switch (order.what) {
    case LINK_SEND:
        wire_put(&world->down, out, order.len);
        break;
    case LINK_BATCHES:
        if (world->purpose == MESSAGE_FEED) {
            send_feed(world, order.seq);
        } else {
            ASSERT(order.seq >= world->view.begin);
            send_batches(world, order.seq);
        }
        break;
    case LINK_COPY:
        send_copy(world);
        break;
    case LINK_CLOSE:
        connect_ends(world);
        break;
    default:
        break;
    }
}

static void
cut_node(struct world *world, uint64_t seq)
{
    struct link_node *node = &world->node;

    ASSERT(seq < node->written);
    if (!world->is_forged) {
        ASSERT(history_find(&world->history[0], seq) != NULL);
        ASSERT(seq == 0 || history_find(&world->history[1], seq) != NULL);
    }
    if (history_find(&world->history[1], seq) == NULL) {
        begin_node(world, 0);
    } else {
        history_cut(&world->history[1], seq);
        node->written = node->synced = node->applied = seq;
    }
    connect_ends(world);
}

static void
ask_replica(struct world *world)
{
    uint8_t out[LINK_SEND_MAX];
    struct link_order order;
    size_t len;

    if (world->up.len > WIRE_BYTES / 2) {
        return;
    }
    if (world->purpose == MESSAGE_PROMISE) {
        link_asker_next(
            &world->asker, &world->node, world->now_us, out, &order);
    } else if (world->purpose == MESSAGE_FEED) {
        link_feed_next(&world->feed, &world->fed, world->now_us, out, &order);
    } else {
        link_replica_next(
            &world->replica, &world->node, world->now_us, out, &order);
    }
    switch (order.what) {
    case LINK_SEND:
        wire_put(&world->up, out, order.len);
        break;
    case LINK_PROMISE:
        ASSERT(world->purpose == MESSAGE_FOLLOW);
        ASSERT(order.term > world->node.promised);
        world->node.promised = order.term;
        link_replica_promised(&world->replica);
        break;
    case LINK_COPY:
        if (world->number % 2 == 0 && world->up.len == 0) {
            len = message_put_have(out + STREAM_HEAD_BYTES, 0);
            wire_put(&world->up, out,
                link_replica_have(
                    &world->replica, out, (uint32_t)len, world->now_us));
        }
        break;
    case LINK_CUT_LOG:
        cut_node(world, order.seq);
        break;
    case LINK_CLOSE:
        connect_ends(world);
        break;
    default:
        break;
    }
}

static void
take_batches(struct world *world)
{
    struct link_node *node = &world->node;
    struct message_batch batch;

    while (message_next_batch(&world->replica.batches, &batch)) {
        ASSERT(batch.seq > node->written && batch.len > 0);
        ASSERT(history_follows(
            &world->replica.history, node->written, batch.seq));
        if (!world->is_forged) {
            ASSERT(batch.len == PAYLOAD);
            ASSERT(bytes_get_u64(batch.payload) == content_of(batch.seq));
            ASSERT(batch.seq <= world->view.written);
        }
        node->written = batch.seq;
    }
    ASSERT(node->written == world->replica.received);
    if (node->history->n == 0 ||
        !history_is_end(node->history, node->written)) {
        world->history[1] = world->replica.history;
        history_cut(&world->history[1], node->written);
    }
}

/* The snapshot is here. */
static void
take_copy(struct world *world)
{
    world->history[1] = world->history[0];
    world->node.directory = world->view.directory;
    world->node.written = world->node.synced = world->node.applied =
        world->view.written;
    connect_ends(world);
}

static void
asker_takes(struct world *world, const struct stream_frame *frame)
{
    const struct link_asker *link = &world->asker;

    if (link_asker_take(&world->asker, frame) != LINK_YOURS) {
        return;
    }
    switch (link->reply) {
    case LINK_REPLY_PROMISED:
        ASSERT(link->reply_term > 0 && link->reply_term <= link->asked_term);
        ASSERT(world->is_forged || link->reply_last <= world->view.written);
        break;
    case LINK_REPLY_REFUSED:
        ASSERT(link->asked_term > 0);
        break;
    default:
        ASSERT(link->has_probed);
    }
}

/* What comes is where it is to be, at once. */
static void
feed_takes(struct world *world, const struct stream_frame *frame)
{
    struct link_feed *link = &world->feed;
    struct link_node *fed = &world->fed;
    struct message_batch batch;
    uint64_t seq = fed->written;
    enum link_step step = link_feed_take(link, fed, frame, world->now_us);

    if (step == LINK_TAKEN && frame->type == STREAM_WELCOME) {
        fed->written = fed->synced = fed->applied = link->verdict_seq;
        world->fed_history = link->history;
    }
    if (step != LINK_YOURS) {
        return;
    }
    while (message_next_batch(&link->batches, &batch)) {
        ASSERT(batch.len > 0 && batch.seq <= link->position);
        ASSERT(link->is_schema || batch.seq > seq);
        seq = batch.seq;
        if (!world->is_forged) {
            ASSERT(bytes_get_u64(batch.payload) == content_of(seq));
            ASSERT(seq <= world->view.fed);
        }
    }
    fed->directory = link->directory;
    fed->written = fed->synced = fed->applied = link->position;
}

static void
replica_requests(struct world *world)
{
    uint8_t out[LINK_SEND_MAX], *body = out + STREAM_HEAD_BYTES;
    size_t len;

    if (world->purpose != MESSAGE_FOLLOW || world->up.len > 0 ||
        !link_replica_forwards(&world->replica)) {
        return;
    }
    len = message_put_request(body, ++world->request, world->request % 2 == 0);
    memset(body + len, 'r', PAYLOAD);
    wire_put(&world->up, out,
        link_replica_request(&world->replica, out, (uint32_t)(len + PAYLOAD)));
}

static void
primary_replies(struct world *world, const struct stream_frame *frame)
{
    uint8_t out[LINK_SEND_MAX], *body = out + STREAM_HEAD_BYTES;
    struct message_request request;
    struct stream_fault fault;
    size_t len;

    if (message_get_request(frame, &request, &fault) != 0) {
        link_primary_wrong(&world->primary, &fault);
        return;
    }
    ASSERT(request.len > 0);
    if (!world->is_forged) {
        ASSERT(request.id > 0 && request.id <= world->request);
        ASSERT(request.len == PAYLOAD);
    }
    if (world->down.len > WIRE_BYTES / 2) {
        return; /* no room: it has no reply */
    }
    const struct message_reply reply = {.id = request.id,
        .seq = world->view.written,
        .outcome = (enum message_outcome)(world->now_us / 2000 % 3)};
    len = message_put_reply(body, &reply);
    if (reply.outcome == MESSAGE_ANSWERED) {
        memset(body + len, 'a', PAYLOAD);
        len += PAYLOAD;
    }
    wire_put(&world->down, out,
        link_primary_reply(&world->primary, out, (uint32_t)len));
}

static void
replica_hears(struct world *world, const struct stream_frame *frame)
{
    struct message_reply reply;
    struct stream_fault fault;

    if (message_get_reply(frame, &reply, &fault) != 0) {
        link_replica_wrong(&world->replica, &fault);
        return;
    }
    ASSERT(reply.len == 0 || reply.outcome == MESSAGE_ANSWERED);
    ASSERT(world->is_forged || (reply.id > 0 && reply.id <= world->request));
}

/* A question has come: some are answered, rightly or not. */
static void
answer(struct world *world)
{
    const struct message_promise *question = &world->primary.question;

    if ((question->flags & PROMISE_ASKS_ONLY) != 0) {
        link_primary_answer(&world->primary,
            world->number % 2 == 0 ? LINK_ANSWER_HEARS_ONE
                                   : LINK_ANSWER_HEARS_NONE,
            0);
    } else if (world->now_us % 3 == 0) {
        link_primary_answer(&world->primary, LINK_ANSWER_REFUSED, 0);
    } else {
        link_primary_answer(
            &world->primary, LINK_ANSWER_PROMISED, question->term);
    }
}

static void
replica_takes(struct world *world, const struct stream_frame *frame)
{
    if (world->purpose == MESSAGE_PROMISE) {
        asker_takes(world, frame);
        return;
    }
    if (world->purpose == MESSAGE_FEED) {
        feed_takes(world, frame);
        return;
    }
    if (link_replica_take(&world->replica, &world->node, frame,
            world->now_us) != LINK_YOURS) {
        return;
    }
    if (frame->type == STREAM_BATCHES) {
        take_batches(world);
    } else if (frame->type == STREAM_REPLY) {
        replica_hears(world, frame);
    } else if (fuzz_read_file_frame(frame)) {
        take_copy(world);
    }
}

static void
primary_takes(struct world *world, const struct stream_frame *frame)
{
    const struct link_primary *link = &world->primary;

    if (link_primary_take(&world->primary, &world->view, frame,
            world->now_us) == LINK_YOURS) {
        if (frame->type == STREAM_PROMISE) {
            answer(world);
        } else if (frame->type == STREAM_REQUEST) {
            primary_replies(world, frame);
        } else if (frame->type == STREAM_WANT) {
            if (world->number % 8 == 0) {
                link_primary_refuse_rule(&world->primary);
            }
        } else if (fuzz_read_file_frame(frame)) {
            take_copy(world);
        }
    }
    ASSERT(link->ack.written <= link->sent);
    ASSERT(link->sent <= world->view.written);
    if (!world->is_forged && link_primary_is_sent_log(link)) {
        ASSERT(link->ack.written <= world->node.written);
    }
}

/* What comes next is not to be read yet. */
static bool
waits(const struct world *world, bool is_up)
{
    if (is_up) {
        return false;
    }
    switch (world->purpose) {
    case MESSAGE_PROMISE:
        return !link_asker_may_take(&world->asker);
    case MESSAGE_FEED:
        return !link_feed_may_take(&world->feed);
    default:
        return !link_replica_may_take(&world->replica);
    }
}

/* The session's number of that end. */
static uint64_t
session_of(const struct world *world, bool is_up)
{
    return is_up                            ? world->primary.session
        : world->purpose == MESSAGE_PROMISE ? world->asker.call.session
        : world->purpose == MESSAGE_FEED    ? world->feed.call.session
                                            : world->replica.call.session;
}

static void
end_wrong(struct world *world, bool is_up, const struct stream_fault *fault)
{
    if (is_up) {
        link_primary_wrong(&world->primary, fault);
    } else if (world->purpose == MESSAGE_PROMISE) {
        link_asker_wrong(&world->asker, fault);
    } else if (world->purpose == MESSAGE_FEED) {
        link_feed_wrong(&world->feed, fault);
    } else {
        link_replica_wrong(&world->replica, fault);
    }
}

/* Takes what it can of some bytes; what is left. */
static size_t
take(struct world *world, bool is_up, const uint8_t *at, size_t len)
{
    struct stream_reader *reader =
        is_up ? &world->up.reader : &world->down.reader;
    uint64_t number = world->number;
    struct stream_frame frame;
    enum stream_step step = STREAM_MORE;

    while (!waits(world, is_up)) {
        step = stream_read(reader, &at, &len, &frame);
        if (step != STREAM_FRAME) {
            break;
        }
        n_taken++;
        if (is_up) {
            primary_takes(world, &frame);
        } else {
            replica_takes(world, &frame);
        }
        if (number != world->number) {
            return 0; /* that was the end of the connection */
        }
        reader->session = session_of(world, is_up);
    }
    if (step != STREAM_WRONG) {
        return len;
    }
    end_wrong(world, is_up, &reader->fault);
    return 0;
}

/* The first n bytes have arrived. Frames stand behind each other; where a
 * flipped bit has made one longer than all there is, none begins any more. */
static void
wire_move(struct wire *wire, size_t n)
{
    while (wire->begin < n) {
        size_t left = wire->len - wire->begin;
        size_t len = STREAM_HEAD_BYTES;

        if (left >= STREAM_HEAD_BYTES) {
            len += bytes_get_u32(wire->bytes + wire->begin + 8);
        }
        wire->begin += len < left ? len : left;
    }
    memmove(wire->bytes, wire->bytes + n, wire->len - n);
    wire->len -= n;
    wire->begin -= n;
}

static void
arrive(struct world *world, bool is_up, size_t len)
{
    struct wire *wire = is_up ? &world->up : &world->down;
    uint64_t number = world->number;
    uint8_t *copy;
    size_t left;

    len = len < wire->len ? len : wire->len;
    if (len == 0) {
        return;
    }
    copy = malloc(len); /* a sanitizer sees a read past it */
    ASSERT(copy != NULL);
    memcpy(copy, wire->bytes, len);
    if (is_up) {
        link_primary_heard(&world->primary, world->now_us);
    } else if (world->purpose == MESSAGE_FEED) {
        link_feed_heard(&world->feed, world->now_us);
    } else if (world->purpose != MESSAGE_PROMISE) {
        link_replica_heard(&world->replica, world->now_us);
    }
    left = take(world, is_up, copy, len);
    free(copy);
    if (number == world->number) {
        wire_move(wire, len - left);
    }
}

static void
flip(struct wire *wire, uint8_t arg)
{
    if (wire->len > 0) {
        size_t bit = (size_t)arg * 37 % (8 * wire->len);

        wire->bytes[bit / 8] ^= (uint8_t)(1U << bit % 8);
    }
}

/* The first whole frame that has not begun to arrive, with another byte in its
 * body, or of another type: as an end would send it that is not sound. */
static void
forge(struct world *world, struct wire *wire, uint8_t arg, bool is_type)
{
    static const struct {
        uint32_t least, most;
    } bounds[32] = {
#define X(number, name, least, most) [number] = {(least), (most)},
        STREAM_TYPES(X)
#undef X
    };
    uint8_t *frame = wire->bytes + wire->begin;
    size_t left = wire->len - wire->begin;
    uint32_t len;
    unsigned type;

    if (wire->begin >= wire->len || left < STREAM_HEAD_BYTES) {
        return;
    }
    len = bytes_get_u32(frame + 8);
    type = is_type ? arg % 32 : frame[5];
    if (left - STREAM_HEAD_BYTES < len || type >= 32 ||
        bounds[type].most == 0 || len < bounds[type].least ||
        len > bounds[type].most) {
        return;
    }
    world->is_forged = true;
    if (!is_type) {
        frame[STREAM_HEAD_BYTES + arg % len] ^= (uint8_t)(1U << arg % 7);
    }
    (void)stream_seal(frame, (enum stream_type)type, len,
        bytes_get_u64(frame + 16), wire->reader.session);
}

/* Nothing comes behind a switch. */
static void
write_more(struct world *world, unsigned n)
{
    if (world->primary.switch_seq == 0 &&
        seq_n(world->view.written) < BATCHES_MAX) {
        world->view.written += n;
    }
}

static void
write_some(struct world *world, uint8_t arg)
{
    struct link_view *view = &world->view;
    struct link_node *node = &world->node;

    write_more(world, arg % 8);
    if (arg >= 64) {
        view->committed = view->fed = view->written;
    }
    node->synced = node->written;
    node->applied = link__earlier(node->written, node->applied + arg % 16);
}

static void
flow(struct world *world, unsigned n)
{
    for (; n > 0; n--) {
        write_more(world, n % 3 == 0);
        world->now_us += 2000;
        ask_primary(world);
        arrive(world, false, WIRE_BYTES);
        ask_replica(world);
        arrive(world, true, WIRE_BYTES);
    }
}

static void
step(struct world *world, enum step what, uint8_t arg)
{
    switch (what) {
    case ASK_PRIMARY:
        ask_primary(world);
        break;
    case ASK_REPLICA:
        ask_replica(world);
        break;
    case ARRIVE_UP:
    case ARRIVE_DOWN:
        arrive(world, what == ARRIVE_UP, 1 + arg);
        break;
    case FLIP_UP:
    case FLIP_DOWN:
        flip(what == FLIP_UP ? &world->up : &world->down, arg);
        break;
    case FORGE_UP:
    case FORGE_DOWN:
        forge(world, what == FORGE_UP ? &world->up : &world->down, arg, false);
        break;
    case RETYPE:
        forge(world, arg >= 128 ? &world->up : &world->down, arg, true);
        break;
    case WRITE:
        write_some(world, arg);
        break;
    case TIME:
        world->now_us += (uint64_t)arg * arg * 100;
        break;
    case FLOW:
        flow(world, 1 + arg % FLOW_MAX);
        break;
    case AGAIN:
        connect_for(world,
            arg % 8 == 5       ? MESSAGE_PROMISE
                : arg % 8 == 6 ? MESSAGE_FETCH
                : arg % 8 == 7 ? MESSAGE_FEED
                               : MESSAGE_FOLLOW);
        break;
    case SWITCH:
        if (world->purpose == MESSAGE_PROMISE) {
            link_asker_ask(&world->asker, NEXT_TERM - (arg % 4 == 0),
                arg % 2 != 0, world->now_us);
        } else if (world->primary.state == LINK_PRIMARY_STREAMING) {
            link_primary_switch(&world->primary, world->view.written);
        }
        break;
    case GONE:
        world->view.begin = world->view.written - arg % 64;
        break;
    default:
        if (arg >= 192) {
            replica_requests(world);
            return;
        }
        world->node.is_paused = arg % 2 != 0;
        world->node.flags = arg % 8;
    }
}

static void
tell_count(void)
{
    fprintf(stderr, "%llu frames taken\n", (unsigned long long)n_taken);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static struct world world;
    static bool is_begun;

    if (!is_begun && getenv("FUZZ_COUNT") != NULL) {
        ASSERT(atexit(tell_count) == 0);
    }
    is_begun = true;
    if (len == 0) {
        return 0;
    }
    begin(&world, bytes[0]);
    for (size_t at = 1; at + STEP_BYTES <= len; at += STEP_BYTES) {
        step(&world, (enum step)(bytes[at] % STEPS), bytes[at + 1]);
    }
    return 0;
}
