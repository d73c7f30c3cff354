/* SPDX-License-Identifier: BSD-3-Clause */
/* Both ends of a stream, joined by wires that cut bytes anywhere, lose
 * connections, flip bits and stop; nodes that are killed and lose what they had
 * not synced; primaries that are replaced, also while they go on. At each
 * batch: the replica has what the primary has, at the same place. In the end,
 * when nothing is broken any more, all have the same log. */
#include "unit/link_help.h"

#include <stdio.h>

enum {
    NODES = 3,
    SEEDS = 120,
    STEPS = 9000,
    WIRE_BYTES = 64 << 10,
    QUIET_STEPS = 40000,
    MOST_BATCHES = 3000
};

/* Bytes on their way, and the reader at the far end. */
struct wire {
    uint8_t bytes[WIRE_BYTES];
    size_t len;
    struct stream_reader reader;
};

/* A replica's connection to a primary. */
struct join {
    bool is_open;
    unsigned to; /* node */
    struct link_primary primary;
    struct link_replica replica;
    struct wire up, down; /* to the primary; to the replica */
    bool is_copied;       /* the snapshot has been sent */
};

struct world {
    struct peer peer[NODES];
    struct join join[NODES]; /* of the node as a replica */
    uint64_t now_us, state, content;
    bool is_quiet; /* nothing is broken any more */
    unsigned cuts, copies, refusals, flips, follows;
};

static uint64_t
below(struct world *world, uint64_t n)
{
    return random_below(&world->state, n);
}

static void
join_close(struct join *join)
{
    if (join->is_open) {
        stream_reader_fini(&join->up.reader);
        stream_reader_fini(&join->down.reader);
        join->is_open = false;
    }
}

static void
join_open(struct world *world, unsigned node, unsigned to)
{
    struct join *join = &world->join[node];
    uint8_t nonce[2][STREAM_NONCE_BYTES];

    for (unsigned i = 0; i < STREAM_NONCE_BYTES; i++) {
        nonce[0][i] = (uint8_t)below(world, 256);
        nonce[1][i] = (uint8_t)below(world, 256);
    }
    join->is_open = true;
    join->is_copied = false;
    join->to = to;
    join->up.len = join->down.len = 0;
    ck_assert_int_eq(stream_reader_init(&join->up.reader), 0);
    ck_assert_int_eq(stream_reader_init(&join->down.reader), 0);
    link_primary_init(
        &join->primary, &world->peer[to].self, nonce[0], world->now_us);
    link_replica_init(
        &join->replica, &world->peer[node].self, nonce[1], world->now_us);
}

static void
wire_put(struct wire *wire, const uint8_t *bytes, size_t len)
{
    ck_assert_uint_le(wire->len + len, WIRE_BYTES);
    memcpy(wire->bytes + wire->len, bytes, len);
    wire->len += len;
}

/* A primary that learns of a later term is none any more. */
static void
step_down(struct world *world, unsigned node, const struct link_end *end)
{
    if (end->reason == LINK_NEWER_TERM) {
        struct peer *peer = &world->peer[node];

        ck_assert_uint_gt(end->term, peer->term);
        peer->is_primary = false;
        world->refusals++;
    }
}

static void
send_snapshot(struct world *world, struct join *join)
{
    struct peer *from = &world->peer[join->to];
    const struct message_snapshot snapshot = {.first = peer_last(from) + 1,
        .files = 1,
        .manifest_len = 8,
        .source = from->self.name};
    const struct message_end end = {MESSAGE_END_SNAPSHOT, 0};
    uint8_t frame[LINK_SEND_MAX];
    size_t len;

    len = message_put_snapshot(frame + STREAM_HEAD_BYTES, &snapshot);
    len = link_primary_copy(
        &join->primary, STREAM_SNAPSHOT, frame, (uint32_t)len, world->now_us);
    wire_put(&join->down, frame, len);
    len = message_put_end(frame + STREAM_HEAD_BYTES, &end);
    len = link_primary_copy(
        &join->primary, STREAM_END, frame, (uint32_t)len, world->now_us);
    wire_put(&join->down, frame, len);
    join->is_copied = true;
}

static void
run_primary(struct world *world, unsigned node)
{
    struct join *join = &world->join[node];
    struct peer *peer = &world->peer[join->to];
    struct link_view view = peer_view(peer);
    uint8_t out[WIRE_BYTES / 4];
    struct link_order order;

    if (join->down.len > WIRE_BYTES / 2) {
        return; /* no room to send */
    }
    link_primary_next(&join->primary, &view, world->now_us, out, &order);
    switch (order.what) {
    case LINK_SEND:
        wire_put(&join->down, out, order.len);
        break;
    case LINK_BATCHES:
        wire_put(&join->down, out,
            peer_put_batches(peer, &join->primary, order.seq,
                1 + below(world, 40), world->now_us, out));
        break;
    case LINK_COPY:
        if (!join->is_copied && below(world, 4) == 0) {
            send_snapshot(world, join);
        }
        break;
    case LINK_CLOSE:
        step_down(world, join->to, &join->primary.end);
        if (join->down.len == 0) {
            join_close(join); /* what was said has come */
        }
        break;
    default:
        break;
    }
}

/* All that is the same is kept, and nothing else. */
static void
cut_log(struct world *world, unsigned node, uint64_t seq)
{
    struct join *join = &world->join[node];
    struct peer *peer = &world->peer[node], *to = &world->peer[join->to];
    size_t n = peer_find(peer, seq);

    ck_assert_uint_lt(n, peer->n);
    ck_assert_uint_eq(peer_seq(peer, n), seq);
    for (size_t i = 0; i < n; i++) {
        ck_assert_uint_eq(peer->at[i].content, to->at[i].content);
    }
    ck_assert(n >= to->n || peer->at[n].content != to->at[n].content);
    peer_cut(peer, n);
    world->cuts++;
    join_close(join);
}

static void
check_same(const struct world *world, unsigned node)
{
    const struct join *join = &world->join[node];
    const struct peer *peer = &world->peer[node], *to = &world->peer[join->to];

    ck_assert_uint_le(peer->n, to->n);
    for (size_t i = 0; i < peer->n; i++) {
        ck_assert_uint_eq(peer->at[i].seq, to->at[i].seq);
        ck_assert_uint_eq(peer->at[i].content, to->at[i].content);
    }
}

static void
run_replica(struct world *world, unsigned node)
{
    struct join *join = &world->join[node];
    struct peer *peer = &world->peer[node];
    struct link_node now = peer_node(peer);
    uint8_t out[LINK_SEND_MAX];
    struct link_order order;

    if (join->up.len > WIRE_BYTES / 2) {
        return;
    }
    link_replica_next(&join->replica, &now, world->now_us, out, &order);
    switch (order.what) {
    case LINK_SEND:
        wire_put(&join->up, out, order.len);
        break;
    case LINK_PROMISE:
        ck_assert_uint_gt(order.term, peer->promised);
        peer->promised = order.term;
        peer->is_primary = false;
        link_replica_promised(&join->replica);
        break;
    case LINK_CUT_LOG:
        cut_log(world, node, order.seq);
        break;
    case LINK_CLOSE:
        if (join->up.len == 0) {
            join_close(join);
        }
        break;
    default:
        break;
    }
}

static void
write_batches(struct world *world, unsigned node)
{
    struct join *join = &world->join[node];
    struct peer *peer = &world->peer[node];
    struct message_batch batch;

    if (world->join[node].replica.received != peer_last(peer)) {
        check_same(world, node);
    }
    while (message_next_batch(&join->replica.batches, &batch)) {
        ck_assert_uint_eq(batch.len, PEER_PAYLOAD);
        peer_write(peer, batch.seq, bytes_get_u64(batch.payload));
        world->follows++;
    }
    ck_assert_uint_eq(join->replica.received, peer_last(peer));
    check_same(world, node);
}

/* What a snapshot brings: all the primary's log. */
static void
take_snapshot(struct world *world, unsigned node)
{
    struct join *join = &world->join[node];
    struct peer *peer = &world->peer[node], *to = &world->peer[join->to];

    peer->n = peer->n_synced = peer->n_gone = to->n;
    peer->n_applied = 0;
    peer->committed = 0;
    memcpy(peer->at, to->at, sizeof to->at);
    peer->history = to->history;
    peer->directory = to->directory;
    world->copies++;
    join_close(join);
}

static void
replica_takes(
    struct world *world, unsigned node, const struct stream_frame *frame)
{
    struct join *join = &world->join[node];
    struct link_node now = peer_node(&world->peer[node]);
    struct message_end end;
    struct stream_fault fault;

    if (link_replica_take(&join->replica, &now, frame, world->now_us) !=
        LINK_YOURS) {
        return;
    }
    if (frame->type == STREAM_BATCHES) {
        write_batches(world, node);
    } else if (frame->type == STREAM_END) {
        ck_assert_int_eq(message_get_end(frame, &end, &fault), 0);
        take_snapshot(world, node);
    }
}

static void
primary_takes(
    struct world *world, unsigned node, const struct stream_frame *frame)
{
    struct join *join = &world->join[node];
    struct link_view view = peer_view(&world->peer[join->to]);

    (void)link_primary_take(&join->primary, &view, frame, world->now_us);
    if (join->primary.state == LINK_PRIMARY_STREAMING) {
        ck_assert_uint_le(
            join->primary.ack.written, peer_last(&world->peer[node]));
    }
}

/* Some of the bytes arrive. */
static void
deliver(struct world *world, unsigned node, bool is_up)
{
    struct join *join = &world->join[node];
    struct wire *wire = is_up ? &join->up : &join->down;
    size_t len =
        below(world, 3) == 0 ? wire->len : below(world, wire->len + 1);
    const uint8_t *at = wire->bytes;
    size_t left = len;
    struct stream_frame frame;
    enum stream_step step = STREAM_MORE;

    if (!world->is_quiet && len > 0 && below(world, 300) == 0) {
        wire->bytes[below(world, len)] ^= (uint8_t)(1U << below(world, 8));
        world->flips++;
    }
    while (is_up || link_replica_may_take(&join->replica)) {
        step = stream_read(&wire->reader, &at, &left, &frame);
        if (step != STREAM_FRAME) {
            break;
        }
        if (is_up) {
            primary_takes(world, node, &frame);
        } else {
            replica_takes(world, node, &frame);
        }
        if (!join->is_open) {
            return;
        }
        wire->reader.session =
            is_up ? join->primary.session : join->replica.call.session;
    }
    if (step == STREAM_WRONG && is_up) {
        link_primary_wrong(&join->primary, &wire->reader.fault);
        left = 0;
    } else if (step == STREAM_WRONG) {
        link_replica_wrong(&join->replica, &wire->reader.fault);
        left = 0;
    }
    memmove(wire->bytes, wire->bytes + (len - left), wire->len - (len - left));
    wire->len -= len - left;
}

static unsigned
any_primary(struct world *world)
{
    unsigned from = (unsigned)below(world, NODES);

    for (unsigned i = 0; i < NODES; i++) {
        if (world->peer[(from + i) % NODES].is_primary) {
            return (from + i) % NODES;
        }
    }
    return NODES;
}

/* Connections of it and to it are lost. */
static void
disconnect(struct world *world, unsigned node)
{
    for (unsigned i = 0; i < NODES; i++) {
        if (i == node || world->join[i].to == node) {
            join_close(&world->join[i]);
        }
    }
}

static void
kill_node(struct world *world, unsigned node)
{
    struct peer *peer = &world->peer[node];

    disconnect(world, node);
    peer->is_primary = false;
    peer_cut(peer,
        peer->n_synced + (size_t)below(world, peer->n - peer->n_synced + 1));
    peer->n_applied = 0;
}

static void
work(struct world *world, unsigned node)
{
    struct peer *peer = &world->peer[node];

    for (uint64_t n = peer->is_primary && !world->is_quiet ? below(world, 12)
                                                           : 0;
         n > 0 && peer->n < MOST_BATCHES; n--) {
        peer_write(peer, peer_last(peer) + 1, ++world->content);
    }
    peer->n_synced += (size_t)below(world, peer->n - peer->n_synced + 1);
    if (peer->is_primary) {
        uint64_t synced = peer_seq(peer, peer->n_synced);

        peer->committed = synced > peer->committed ? synced : peer->committed;
    } else if (world->join[node].is_open &&
        world->join[node].replica.call.state == LINK_REPLICA_FOLLOWING) {
        size_t n = peer_find(
            peer, link_replica_committed(&world->join[node].replica));

        peer->n_applied = n > peer->n_applied ? n : peer->n_applied;
    }
}

static void
break_something(struct world *world, unsigned node)
{
    struct peer *peer = &world->peer[node];

    switch (below(world, 40)) {
    case 0:
        kill_node(world, node);
        break;
    case 1:
        if (peer->history.n > 0 && !peer->is_primary) {
            disconnect(world, node);
            peer_begin(peer, ++world->content);
        }
        break;
    case 2:
        if (peer->is_primary && peer->n > 0) {
            peer->n_gone += (size_t)below(world, peer->n - peer->n_gone);
        }
        break;
    case 3:
        world->now_us += below(world, 8000000);
        break;
    default:
        join_close(&world->join[node]);
    }
}

static void
step(struct world *world)
{
    unsigned node = (unsigned)below(world, NODES);
    struct join *join = &world->join[node];
    uint64_t what = below(world, 16);

    world->now_us += below(world, 2000);
    if (what == 0) {
        work(world, node);
    } else if (!world->is_quiet && what == 1 && below(world, 6) == 0) {
        break_something(world, node);
    } else if (!join->is_open) {
        unsigned to = any_primary(world);

        if (to < NODES && to != node && !world->peer[node].is_primary) {
            join_open(world, node, to);
        }
    } else if (what < 6) {
        run_primary(world, node);
    } else if (what < 10) {
        run_replica(world, node);
    } else {
        deliver(world, node, what < 13);
    }
}

static void
begin_world(struct world *world, uint64_t seed)
{
    static const struct proof_secret none;
    static const char *const names[NODES] = {"a", "b", "c"};

    memset(world, 0, sizeof *world);
    world->state = seed;
    world->now_us = 1 + seed;
    for (unsigned i = 0; i < NODES; i++) {
        peer_init(&world->peer[i], names[i], &none);
    }
    world->peer[0].directory = link_directory;
    for (uint64_t seq = 1; seed % 2 == 0 && seq < 8; seq++) {
        peer_write(&world->peer[0], seq, ++world->content);
    }
    peer_begin(&world->peer[0], ++world->content);
}

/* The one with the latest term goes on alone; all others follow it. */
static void
calm_down(struct world *world)
{
    unsigned best = 0;

    world->is_quiet = true;
    for (unsigned i = 0; i < NODES; i++) {
        join_close(&world->join[i]);
        if (world->peer[i].promised > world->peer[best].promised) {
            best = i;
        }
    }
    for (unsigned i = 0; i < NODES; i++) {
        world->peer[i].is_primary = false;
    }
    if (world->peer[best].history.n == 0) {
        best = 0; /* an empty one cannot lead */
    }
    peer_begin(&world->peer[best], ++world->content);
}

static bool
is_done(const struct world *world)
{
    for (unsigned i = 0; i < NODES; i++) {
        const struct peer *peer = &world->peer[i];

        if (peer->n == 0 || peer->n != world->peer[0].n ||
            peer_last(peer) != peer_last(&world->peer[0])) {
            return false;
        }
    }
    return true;
}

START_TEST(test_random)
{
    struct world *world = malloc(sizeof *world);
    unsigned quiet = 0;

    ck_assert_ptr_nonnull(world);
    begin_world(world, (uint64_t)_i);
    for (unsigned i = 0; i < STEPS; i++) {
        step(world);
    }
    calm_down(world);
    while (!is_done(world)) {
        step(world);
        ck_assert_msg(++quiet < QUIET_STEPS, "they do not come together");
    }
    for (unsigned i = 1; i < NODES; i++) {
        ck_assert_mem_eq(world->peer[i].at, world->peer[0].at,
            world->peer[0].n * sizeof world->peer[0].at[0]);
    }
    for (unsigned i = 0; i < NODES; i++) {
        join_close(&world->join[i]);
    }
    if (getenv("LINK_SAY") != NULL) {
        printf("# %d: cuts %u copies %u refusals %u flips %u follows %u\n", _i,
            world->cuts, world->copies, world->refusals, world->flips,
            world->follows);
    }
    free(world);
}
END_TEST

int
main(void)
{
    const TTest *tests[] = {test_random};

    return run_tests_often("link_random", tests, COUNT_OF(tests), SEEDS);
}
