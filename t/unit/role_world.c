/* SPDX-License-Identifier: BSD-3-Clause */
/* Discrete events in an order of time. A node's log is an array of entries, a
 * number of a batch and the client's change in it; what of it is synced
 * survives a power cut, all of it a kill. Streams are as those of repl/link, in
 * a few messages; who hears nothing connects anew. Each node has a clock of its
 * own speed. etcd is one thing that does transactions one after the other; a
 * request to it may be lost, its answer as well, and it may be done long after
 * the node has ceased to wait for it. */
#include "unit/role_world.h"

#include "repl/role_rules.h"
#include "unit/check_help.h"
#include "wal/seq.h"

#include <stdio.h>

enum {
    LOG_MAX = 2048,
    OPS_MAX = 1024,
    EVENTS_MAX = 8192,
    BATCH_MAX = 6,
    ETCD = WORLD_NODES, /* its place in the network */
    PLACES,
    TTL_US = 3000000,
    MARGIN_US = 300000,
    LAG_US = 1500000,
    FAULTS_US = 12000000, /* until then there are faults */
    HEALED_US = 25000000  /* so long until all is well again */
};

struct entry {
    uint64_t seq;
    uint32_t op; /* 0: the entry of a term */
};

enum message_type {
    M_PROBE,
    M_HEARS,
    M_ASK,
    M_ANSWER,
    M_REFUSE,
    M_HELLO,
    M_WELCOME,
    M_CUT,
    M_BATCH,
    M_BEAT,
    M_ACK,
    M_FETCH,
    M_TAIL,
    M_DOWN
};

struct message {
    enum message_type type;
    unsigned session, n;
    uint64_t term, seq; /* seq: a position; of BATCH and TAIL that before */
    bool flag;          /* heard; doubtful; the tail's end; authority */
    struct entry entry[BATCH_MAX];
};

enum etcd_what { E_LOOK, E_TAKE, E_KEEP, E_SET, E_ALIVE, E_REVOKE, E_HAND };

struct request {
    enum etcd_what what;
    unsigned number; /* of the node's requests */
    unsigned lease;
    uint64_t sent_us; /* by the node's clock */
    struct role_order order;
    /* the answer */
    enum role_answer answer;
    uint64_t revision;
    struct role_look look;
};

enum event_type {
    EV_MESSAGE,
    EV_ETCD, /* a request comes there */
    EV_ANSWER,
    EV_LATE, /* a request was not answered */
    EV_TURN,
    EV_TICK, /* of a node: looks, beats, connections */
    EV_SYNC,
    EV_DURABLE,
    EV_CLIENT,
    EV_FAULT,
    EV_HEAL,
    EV_START,
    EV_RESUME
};

struct event {
    enum event_type type;
    unsigned node, from, life, next;
    union {
        struct message message;
        struct request request;
        uint64_t value;
    } of;
};

struct place {
    uint64_t at, order;
    unsigned event;
};

struct stream {
    unsigned session; /* 0: none */
    unsigned sent;    /* entries */
};

struct waiting {
    uint64_t seq;
    uint32_t op;
};

struct node {
    struct role role;
    struct role_config config;
    bool is_up, is_paused;
    unsigned life, held; /* held: events of a paused one, a list */
    unsigned *held_end;
    uint64_t offset_us, rate; /* of its clock, in millionths */
    /* the disk */
    struct entry log[LOG_MAX];
    unsigned n_log, n_synced;
    uint64_t at_op[OPS_MAX]; /* batch that has it; 0: none */
    uint64_t disk_promised;
    bool disk_doubtful;
    /* the process */
    uint64_t turn_us;
    unsigned requests, lease;
    unsigned open[E_HAND + 1]; /* number of the request that is waited for */
    uint64_t alive_us;         /* next keepalive, of the node's clock */
    unsigned follows, session; /* as a replica */
    bool is_welcome;
    uint64_t stream_term, stream_us;
    unsigned gap;
    uint64_t leads; /* term; 0: none */
    enum role_changes changes;
    struct stream stream[WORLD_NODES];
    struct waiting wait[OPS_MAX];
    unsigned n_wait;
    uint64_t fetches; /* term */
    unsigned source;
};

static struct world {
    uint64_t random, now, order;
    unsigned n, copies, least;
    enum world_level level;
    struct node node[WORLD_NODES];
    bool cut[PLACES][PLACES];
    uint64_t fifo[WORLD_NODES][WORLD_NODES];
    struct place heap[EVENTS_MAX];
    unsigned n_heap, free;
    struct role_look etcd;
    unsigned key_lease, leases;
    uint64_t lease_us[OPS_MAX];
    bool is_acked[OPS_MAX];
    unsigned n_ops, lost_from;
    uint64_t acked_term;
    unsigned acker;
    uint64_t power_us;
    bool is_healed, is_delayed;
    bool is_eager;   /* nobody asks first: so there are more candidates */
    unsigned n_slow; /* messages of a hundred */
    struct world_result *result;
    struct event event[EVENTS_MAX]; /* last: as they are, from seed to seed */
} * world;

static uint64_t rules_out;
static bool etcd_forgets;

int
role_rule_holds(enum role_rule rule)
{
    if (rule == ROLE_RULE_ASK_FIRST && world != NULL && world->is_eager) {
        return false;
    }
    return (rules_out >> rule & 1) == 0;
}

void
world_without(uint64_t rules)
{
    rules_out = rules;
}

void
world_etcd_forgets(bool forgets)
{
    etcd_forgets = forgets;
}

static uint64_t
below(uint64_t n)
{
    return random_below(&world->random, n);
}

static bool
chance(unsigned percent)
{
    return below(100) < percent;
}

static void
wrong(const char *what, uint64_t a, uint64_t b)
{
    if (world->result->wrong[0] == '\0') {
        (void)snprintf(world->result->wrong, WORLD_WORDS,
            "%s: %llu, %llu, at %llu ms", what, (unsigned long long)a,
            (unsigned long long)b, (unsigned long long)(world->now / 1000));
    }
}

/* ---- events ---- */

static bool
is_before(const struct place *a, const struct place *b)
{
    return a->at < b->at || (a->at == b->at && a->order < b->order);
}

static struct event *
push(uint64_t delay_us, enum event_type type, unsigned node)
{
    unsigned at = world->n_heap++, index = world->free;
    struct event *event = &world->event[index];
    struct place place = {world->now + delay_us, world->order++, index};

    ck_assert_uint_lt(at, EVENTS_MAX);
    ck_assert_uint_lt(index, EVENTS_MAX);
    world->free = event->next;
    for (; at > 0 && is_before(&place, &world->heap[(at - 1) / 2]);
         at = (at - 1) / 2) {
        world->heap[at] = world->heap[(at - 1) / 2];
    }
    world->heap[at] = place;
    event->type = type;
    event->node = node;
    event->life = node < WORLD_NODES ? world->node[node].life : 0;
    return event;
}

static struct event *
pop(void)
{
    struct place first = world->heap[0];
    struct place last = world->heap[--world->n_heap];
    unsigned at = 0;

    for (unsigned child = 1; child < world->n_heap; child = 2 * at + 1) {
        if (child + 1 < world->n_heap &&
            is_before(&world->heap[child + 1], &world->heap[child])) {
            child++;
        }
        if (is_before(&last, &world->heap[child])) {
            break;
        }
        world->heap[at] = world->heap[child];
        at = child;
    }
    world->heap[at] = last;
    world->now = first.at;
    return &world->event[first.event];
}

static void
give_back(struct event *event)
{
    event->next = world->free;
    world->free = (unsigned)(event - world->event);
}

static unsigned
number_of(const struct node *node)
{
    return (unsigned)(node - world->node);
}

/* The node's own clock. */
static uint64_t
clock_of(const struct node *node)
{
    return node->offset_us + world->now / 1000000 * node->rate +
        world->now % 1000000 * node->rate / 1000000;
}

/* ---- logs ---- */

static uint64_t
last_of(const struct node *node)
{
    return node->n_log == 0 ? 0 : node->log[node->n_log - 1].seq;
}

static uint64_t
position_of(const struct node *node)
{
    if (world->level == WORLD_WRITTEN) {
        return last_of(node);
    }
    return node->n_synced == 0 ? 0 : node->log[node->n_synced - 1].seq;
}

static void
tell_log(struct node *node)
{
    role_set_log(&node->role, last_of(node), position_of(node));
}

static void
append(struct node *node, struct entry entry)
{
    ck_assert_uint_lt(node->n_log, LOG_MAX);
    if (entry.seq <= last_of(node)) {
        wrong("a batch that does not follow", entry.seq, last_of(node));
    }
    if (entry.op != 0 && node->at_op[entry.op] != 0) {
        wrong("doubled", entry.op, entry.seq);
    }
    node->log[node->n_log++] = entry;
    node->at_op[entry.op] = entry.seq;
}

static void
cut_to(struct node *node, unsigned n)
{
    for (unsigned i = n; i < node->n_log; i++) {
        node->at_op[node->log[i].op] = 0;
    }
    node->n_log = n < node->n_log ? n : node->n_log;
    node->n_synced = n < node->n_synced ? n : node->n_synced;
}

/* How many entries are not above seq. */
static unsigned
entries_to(const struct node *node, uint64_t seq)
{
    unsigned low = 0, high = node->n_log;

    while (low < high) {
        unsigned middle = (low + high) / 2;

        if (node->log[middle].seq <= seq) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static uint64_t
common_with(const struct node *node, uint64_t seq)
{
    unsigned n = entries_to(node, seq);

    return n == 0 ? 0 : node->log[n - 1].seq;
}

/* ---- acknowledgements, and what is asked of them ---- */

static void
check_lost(const struct node *node)
{
    for (uint32_t op = 1; op <= world->n_ops; op++) {
        if (world->is_acked[op] && node->at_op[op] == 0) {
            wrong("lost", op, node->leads);
        }
    }
}

static void
acknowledge(struct node *node, uint32_t op)
{
    const struct node *newest = &world->node[world->acker];

    if (world->copies == 0 && node->leads < world->acked_term) {
        wrong("acknowledged in another one's term", node->leads,
            world->acked_term);
    }
    if (node->leads > world->acked_term) {
        world->acked_term = node->leads;
        world->acker = number_of(node);
        if (world->copies > 0) {
            check_lost(node);
        }
    } else if (node->leads < world->acked_term && world->copies > 0 &&
        newest->at_op[op] == 0) {
        wrong("acknowledged what a later term has not", op, node->leads);
    }
    if (!world->is_acked[op]) {
        world->is_acked[op] = true;
        world->result->n_acked++;
    }
}

static void
commit(struct node *node)
{
    uint64_t committed = role_committed(&node->role, clock_of(node));
    unsigned kept = 0;

    for (unsigned i = 0; i < node->n_wait && node->leads != 0; i++) {
        if (node->wait[i].seq <= committed) {
            acknowledge(node, node->wait[i].op);
        } else {
            node->wait[kept++] = node->wait[i];
        }
    }
    node->n_wait = kept;
}

/* ---- network ---- */

static void
send(struct node *from, unsigned to, const struct message *message)
{
    unsigned self = number_of(from);
    uint64_t at = world->now + 300 + below(4000);
    struct event *event;

    if (chance(world->n_slow)) {
        at += below(300000);
    }
    if (at <= world->fifo[self][to]) {
        at = world->fifo[self][to] + 1;
    }
    world->fifo[self][to] = at;
    if (world->cut[self][to]) {
        return;
    }
    event = push(at - world->now, EV_MESSAGE, to);
    event->from = self;
    event->life = 0; /* whoever is there then */
    event->of.message = *message;
}

static void
send_ack(struct node *node)
{
    struct message message = {.type = M_ACK,
        .session = node->session,
        .term = node->stream_term,
        .seq = position_of(node),
        .flag = node->role.is_doubtful};

    send(node, node->follows, &message);
}

static void
pump(struct node *node, unsigned to)
{
    struct stream *stream = &node->stream[to];

    while (stream->session != 0 && stream->sent < node->n_log) {
        unsigned n = node->n_log - stream->sent;
        struct message message = {.type = M_BATCH,
            .session = stream->session,
            .term = node->leads,
            .seq = stream->sent == 0 ? 0 : node->log[stream->sent - 1].seq};

        message.n = n < BATCH_MAX ? n : BATCH_MAX;
        memcpy(message.entry, node->log + stream->sent,
            message.n * sizeof message.entry[0]);
        stream->sent += message.n;
        send(node, to, &message);
    }
}

static void
connect_to(struct node *node, unsigned to)
{
    struct message message = {.type = M_HELLO,
        .session = ++node->session,
        .term = node->role.promised,
        .seq = last_of(node)};

    node->is_welcome = false;
    node->stream_us = world->now;
    role_parted(&node->role, clock_of(node));
    send(node, to, &message);
}

static void
hear_hello(struct node *node, unsigned from, const struct message *message)
{
    struct message reply = {.type = M_WELCOME,
        .session = message->session,
        .term = node->leads,
        .seq = last_of(node)};
    uint64_t common = common_with(node, message->seq);

    if (node->leads == 0) {
        return;
    }
    if (message->term > node->leads) {
        role_saw(&node->role, message->term, clock_of(node));
        return;
    }
    if (common != message->seq) {
        reply.type = M_CUT;
        reply.seq = common;
    } else {
        node->stream[from] =
            (struct stream){message->session, entries_to(node, common)};
        role_linked(&node->role, from, clock_of(node));
    }
    send(node, from, &reply);
    if (reply.type == M_WELCOME) {
        pump(node, from);
    }
}

/* Of the primary that this node follows. */
static void
hear_stream(struct node *node, unsigned from, const struct message *message)
{
    uint64_t now = clock_of(node);

    if (node->follows != from || node->session != message->session) {
        return;
    }
    if (message->type == M_WELCOME || message->type == M_CUT) {
        node->stream_us = world->now;
        if (message->term < node->role.promised) {
            return;
        }
        if (message->term > node->role.promised) {
            node->disk_promised = message->term;
            role_promised(&node->role, message->term, now);
        }
        if (message->type == M_CUT) {
            cut_to(node, entries_to(node, message->seq));
            tell_log(node);
            connect_to(node, from);
            return;
        }
        node->is_welcome = true;
        node->stream_term = message->term;
        node->gap = 0;
        role_welcomed(&node->role, message->seq, now);
        return;
    }
    if (!node->is_welcome) {
        return;
    }
    node->stream_us = world->now;
    if (message->type == M_BATCH) {
        if (last_of(node) != message->seq) {
            connect_to(node, from);
            return;
        }
        for (unsigned i = 0; i < message->n; i++) {
            append(node, message->entry[i]);
        }
        tell_log(node);
    } else {
        role_heard(&node->role, message->flag, now);
        node->gap = last_of(node) < message->seq ? node->gap + 1 : 0;
        if (node->gap > 5) {
            connect_to(node, from);
            return;
        }
    }
    send_ack(node);
}

static void
hear_fetch(struct node *node, unsigned from, const struct message *message)
{
    struct message reply = {.type = M_TAIL,
        .term = message->term,
        .seq = common_with(node, message->seq)};

    if (message->term != node->role.promised) {
        return;
    }
    if (reply.seq == message->seq) {
        unsigned at = entries_to(node, reply.seq);
        unsigned n = node->n_log - at;

        reply.n = n < BATCH_MAX ? n : BATCH_MAX;
        reply.flag = n == reply.n;
        memcpy(reply.entry, node->log + at, reply.n * sizeof reply.entry[0]);
    }
    send(node, from, &reply);
}

static void
fetch(struct node *node)
{
    struct message message = {
        .type = M_FETCH, .term = node->fetches, .seq = last_of(node)};

    send(node, node->source, &message);
}

static void
hear_tail(struct node *node, unsigned from, const struct message *message)
{
    if (node->fetches != message->term || node->source != from ||
        node->role.state != ROLE_FETCHING) {
        return;
    }
    if (message->seq != last_of(node)) {
        cut_to(node, entries_to(node, message->seq));
    }
    for (unsigned i = 0; i < message->n; i++) {
        append(node, message->entry[i]);
    }
    tell_log(node);
    if (message->flag) {
        role_fetched(&node->role, message->term, true, clock_of(node));
    } else {
        fetch(node);
    }
}

static void
hear(struct node *node, unsigned from, const struct message *message)
{
    uint64_t now = clock_of(node);
    struct role *role = &node->role;

    switch (message->type) {
    case M_PROBE:
    case M_ASK:
        role_asked(role, from, message->term, message->type == M_PROBE, now);
        break;
    case M_HEARS:
        role_told(role, from, message->flag, now);
        break;
    case M_ANSWER:
        role_answered(
            role, from, message->term, message->seq, message->flag, now);
        break;
    case M_REFUSE:
        role_saw(role, message->term, now);
        break;
    case M_HELLO:
        hear_hello(node, from, message);
        break;
    case M_ACK:
        if (node->stream[from].session == message->session) {
            role_acked(role, from, message->term,
                message->flag ? 0 : message->seq, message->flag,
                message->seq + 20 >= last_of(node), now);
        }
        break;
    case M_FETCH:
        hear_fetch(node, from, message);
        break;
    case M_TAIL:
        hear_tail(node, from, message);
        break;
    case M_DOWN:
        node->stream[from].session = 0;
        role_unlinked(role, from);
        if (node->follows == from) {
            node->is_welcome = false;
            role_parted(role, now);
        }
        break;
    default:
        hear_stream(node, from, message);
    }
}

/* ---- etcd ---- */

static void
expire(void)
{
    if (world->etcd.holder != ROLE_NOBODY &&
        world->lease_us[world->key_lease] <= world->now) {
        world->etcd.holder = ROLE_NOBODY;
        world->etcd.key_term = 0;
        world->etcd.key_rev = 0;
        world->etcd.revision++;
    }
}

static void
put_key(const struct request *request, unsigned node)
{
    struct role_look *etcd = &world->etcd;

    etcd->revision++;
    etcd->holder = node;
    etcd->key_term = etcd->term;
    etcd->key_rev = etcd->revision;
    world->key_lease = request->lease;
    world->lease_us[request->lease] = world->now + TTL_US;
}

static bool
do_take(const struct request *request, unsigned node)
{
    const struct role_order *order = &request->order;
    struct role_look *etcd = &world->etcd;
    uint64_t term = etcd->term + 1;

    if (etcd->key_rev != order->key_rev || etcd->term_rev != order->term_rev) {
        return false;
    }
    etcd->term = term < order->term ? order->term : term;
    put_key(request, node);
    etcd->term_rev = etcd->revision;
    etcd->ordered = ROLE_NOBODY;
    if (etcd->voters.nodes == 0) {
        etcd->voters = order->voters;
        etcd->voters_rev = etcd->revision;
    }
    world->result->n_terms++;
    return true;
}

static bool
do_request(struct request *request, unsigned node)
{
    const struct role_order *order = &request->order;
    struct role_look *etcd = &world->etcd;

    switch (request->what) {
    case E_TAKE:
        return do_take(request, node);
    case E_KEEP:
        if (etcd->holder != ROLE_NOBODY || etcd->term != order->term) {
            return false;
        }
        put_key(request, node);
        world->result->n_kept++;
        return true;
    case E_SET:
        if ((etcd->term != order->term && !etcd_forgets) ||
            etcd->voters_rev != order->voters_rev) {
            return false;
        }
        etcd->voters = order->voters;
        etcd->voters_rev = ++etcd->revision;
        world->result->n_sets++;
        return true;
    case E_ALIVE:
        if (world->lease_us[request->lease] <= world->now) {
            return false;
        }
        world->lease_us[request->lease] = world->now + TTL_US;
        return true;
    case E_REVOKE:
        world->lease_us[request->lease] = 0;
        expire();
        return true;
    case E_HAND:
        if (etcd->holder != node || etcd->term != order->term) {
            return false;
        }
        world->lease_us[world->key_lease] = 0;
        expire();
        etcd->ordered = order->node;
        world->result->n_handed++;
        return true;
    case E_LOOK:
        break;
    }
    return true;
}

static void
ask_etcd(struct node *node, enum etcd_what what, unsigned lease,
    const struct role_order *order)
{
    unsigned self = number_of(node);
    struct request request = {.what = what,
        .number = ++node->requests,
        .lease = lease,
        .sent_us = clock_of(node),
        .order = *order};
    struct event *event = push(500000, EV_LATE, self);

    event->of.request = request;
    node->open[what] = request.number;
    if (!world->cut[self][ETCD] && !chance(1)) {
        uint64_t delay = 1000 + below(6000);

        delay += world->is_delayed && chance(10) ? below(4000000) : 0;
        event = push(delay, EV_ETCD, ETCD);
        event->from = self;
        event->next = node->life;
        event->of.request = request;
    }
}

static void
at_etcd(const struct event *event)
{
    struct request request = event->of.request;
    unsigned node = event->from, life = event->next;
    struct event *answer;

    expire();
    request.answer = do_request(&request, node) ? ROLE_YES : ROLE_NO;
    request.revision = world->etcd.revision;
    request.look = world->etcd;
    if (!world->cut[ETCD][node] && !chance(1) &&
        life == world->node[node].life) {
        answer = push(1000 + below(6000), EV_ANSWER, node);
        answer->of.request = request;
    }
}

static void
get_answer(
    struct node *node, const struct request *request, enum role_answer answer)
{
    struct role *role = &node->role;
    uint64_t now = clock_of(node);

    if (node->open[request->what] != request->number) {
        return;
    }
    node->open[request->what] = 0;
    if (answer == ROLE_YES &&
        (request->what == E_TAKE || request->what == E_KEEP ||
            (request->what == E_ALIVE && request->lease == node->lease))) {
        node->alive_us = request->sent_us + TTL_US / 3;
    }
    switch (request->what) {
    case E_LOOK:
        if (answer == ROLE_YES) {
            role_looked(role, &request->look, now);
        }
        break;
    case E_TAKE:
        role_took(role, answer, &request->look, now);
        break;
    case E_KEEP:
        role_kept(role, request->order.term, answer, now);
        break;
    case E_SET:
        role_set(role, request->order.term, answer, request->revision, now);
        break;
    default:
        break;
    }
    if (answer == ROLE_YES && request->lease == node->lease &&
        (request->what == E_TAKE || request->what == E_KEEP ||
            request->what == E_ALIVE)) {
        role_set_lease(role, request->sent_us + TTL_US - MARGIN_US);
    }
}

static unsigned
new_lease(struct node *node)
{
    node->lease = ++world->leases;
    ck_assert_uint_lt(node->lease, OPS_MAX);
    return node->lease;
}

/* ---- what a role orders ---- */

static void
begin(struct node *node, uint64_t term)
{
    append(node, (struct entry){seq_first(term), 0});
    node->leads = term;
    node->n_wait = 0;
    memset(node->stream, 0, sizeof node->stream);
    tell_log(node);
    role_began(&node->role, term, seq_first(term), clock_of(node));
}

static void
cede(struct node *node)
{
    node->leads = 0;
    node->n_wait = 0;
    node->changes = ROLE_CHANGES_REFUSED;
    memset(node->stream, 0, sizeof node->stream);
}

static void
say(struct node *node, enum message_type type, const struct role_order *order)
{
    struct message message = {.type = type,
        .term = order->term,
        .seq = last_of(node),
        .flag = type == M_HEARS ? order->is_heard : node->role.is_doubtful};

    send(node, order->node, &message);
}

static void
obey_etcd(struct node *node, const struct role_order *order)
{
    switch (order->what) {
    case ROLE_DO_TAKE:
        ask_etcd(node, E_TAKE, new_lease(node), order);
        break;
    case ROLE_DO_KEEP:
        ask_etcd(node, E_KEEP, new_lease(node), order);
        break;
    case ROLE_DO_REVOKE:
        ask_etcd(node, E_REVOKE, node->lease, order);
        node->lease = 0;
        break;
    case ROLE_DO_SET:
        ask_etcd(node, E_SET, 0, order);
        break;
    case ROLE_DO_HAND:
        ask_etcd(node, E_HAND, 0, order);
        break;
    default:
        ck_assert_int_eq(order->what, ROLE_DO_LOOK);
        ask_etcd(node, E_LOOK, 0, order);
    }
}

static void
obey(struct node *node, const struct role_order *order)
{
    switch (order->what) {
    case ROLE_DO_CEDE:
        cede(node);
        break;
    case ROLE_DO_FOLLOW:
        node->follows = order->node;
        node->is_welcome = false;
        if (order->node != ROLE_NOBODY) {
            connect_to(node, order->node);
        }
        break;
    case ROLE_DO_PROMISE:
        push(1000 + below(10000), EV_DURABLE, number_of(node))->of.value =
            order->term;
        break;
    case ROLE_DO_ANSWER:
        say(node, M_ANSWER, order);
        break;
    case ROLE_DO_REFUSE:
        say(node, M_REFUSE, order);
        break;
    case ROLE_DO_HEARS:
        say(node, M_HEARS, order);
        break;
    case ROLE_DO_PROBE:
        say(node, M_PROBE, order);
        break;
    case ROLE_DO_ASK:
        say(node, M_ASK, order);
        break;
    case ROLE_DO_FETCH:
        node->fetches = order->term;
        node->source = order->node;
        fetch(node);
        break;
    case ROLE_DO_BEGIN:
        begin(node, order->term);
        break;
    case ROLE_DO_CHANGES:
        node->changes = order->changes;
        break;
    case ROLE_DO_SWITCH:
        break;
    case ROLE_DO_SURE:
        node->disk_doubtful = false;
        break;
    default:
        obey_etcd(node, order);
    }
}

static void
turn(struct node *node)
{
    struct role_order order = {.what = ROLE_DO_CEDE};
    uint64_t wake_us;
    unsigned n = 0;

    do {
        tell_log(node);
        role_next(&node->role, clock_of(node), &order);
        if (order.what != ROLE_DO_WAIT) {
            obey(node, &order);
        }
        ck_assert_uint_lt(++n, 1000);
    } while (order.what != ROLE_DO_WAIT);
    if (rules_out == 0) {
        role_verify(&node->role);
    }
    ck_assert(rules_out != 0 ||
        (node->leads != 0) == (node->role.state >= ROLE_PRIMARY));
    commit(node);
    wake_us = world->now + 1 +
        (order.until_us - clock_of(node)) * 1000000 / node->rate;
    if (node->turn_us <= world->now || wake_us < node->turn_us) {
        node->turn_us = wake_us;
        push(wake_us - world->now, EV_TURN, number_of(node));
    }
}

/* ---- what goes on in a node ---- */

static void
tick(struct node *node)
{
    static const struct role_order none = {.what = ROLE_DO_LOOK};
    unsigned self = number_of(node);

    push(100000 + below(20000), EV_TICK, self);
    if (node->open[E_LOOK] == 0) {
        ask_etcd(node, E_LOOK, 0, &none);
    }
    if (node->lease != 0 && clock_of(node) >= node->alive_us &&
        node->open[E_ALIVE] == 0) {
        ask_etcd(node, E_ALIVE, node->lease, &none);
    }
    for (unsigned i = 0; i < world->n && node->leads != 0; i++) {
        struct message beat = {.type = M_BEAT,
            .session = node->stream[i].session,
            .seq = last_of(node),
            .flag = role_has_authority(&node->role, clock_of(node))};

        if (beat.session != 0) {
            pump(node, i);
            send(node, i, &beat);
        }
    }
    if (node->follows != ROLE_NOBODY &&
        world->now - node->stream_us >
            700000 - (node->is_welcome ? 0 : 500000)) {
        connect_to(node, node->follows);
    }
}

static void
sync_log(struct node *node)
{
    push(world->level == WORLD_SYNCED ? 20000 : 500000, EV_SYNC,
        number_of(node));
    if (node->n_synced < node->n_log) {
        node->n_synced = node->n_log;
        if (node->is_welcome && world->level == WORLD_SYNCED) {
            send_ack(node);
        }
    }
}

static void
start(struct node *node)
{
    unsigned self = number_of(node);

    node->is_up = true;
    node->life++;
    node->turn_us = 0;
    node->lease = 0;
    node->follows = ROLE_NOBODY;
    node->is_welcome = false;
    node->leads = 0;
    node->n_wait = 0;
    node->changes = ROLE_CHANGES_REFUSED;
    memset(node->open, 0, sizeof node->open);
    memset(node->stream, 0, sizeof node->stream);
    role_init(&node->role, &node->config, node->disk_promised,
        node->disk_doubtful, clock_of(node));
    role_set_may_lead(&node->role, true);
    push(10000 + below(50000), EV_TICK, self);
    push(20000, EV_SYNC, self);
    turn(node);
}

static void
resume(struct node *node)
{
    if (node->is_paused) {
        unsigned index = node->held, next;

        node->is_paused = false;
        for (; index != EVENTS_MAX; index = next) {
            struct event *old = &world->event[index], *event;
            enum event_type type = old->type;

            next = old->next;
            event = push(0, type, old->node);
            event->from = old->from;
            event->life = old->life;
            event->of = old->of;
            give_back(old);
        }
        node->held = EVENTS_MAX;
    }
}

static void
stop(struct node *node, bool is_power)
{
    static const struct role_order none = {.what = ROLE_DO_REVOKE};
    unsigned self = number_of(node), index, next;

    if (!node->is_up) {
        return;
    }
    for (index = node->is_paused ? node->held : EVENTS_MAX;
         index != EVENTS_MAX; index = next) {
        next = world->event[index].next;
        give_back(&world->event[index]);
    }
    node->held = EVENTS_MAX;
    node->is_paused = false;
    if (node->lease != 0 && !is_power && chance(50)) {
        ask_etcd(node, E_REVOKE, node->lease, &none);
    }
    node->is_up = false;
    node->life++;
    for (unsigned i = 0; i < world->n; i++) {
        struct message down = {.type = M_DOWN};

        if (i != self && !is_power) {
            send(node, i, &down);
        }
    }
    if (is_power) {
        if (chance(80)) {
            cut_to(node, node->n_synced);
        }
        node->disk_doubtful = world->level == WORLD_WRITTEN;
    }
    push(100000 + below(3000000), EV_START, WORLD_NODES)->from = self;
}

/* ---- clients ---- */

static void
change(struct node *node, uint32_t op)
{
    uint64_t seq = node->at_op[op];

    if (!node->is_up || node->is_paused || node->leads == 0 ||
        node->changes != ROLE_CHANGES_TAKEN) {
        return;
    }
    if (seq == 0) {
        uint64_t last = last_of(node);

        seq = seq_term(last) == node->leads ? last + 1
                                            : seq_make(node->leads, 2);
        append(node, (struct entry){seq, op});
        for (unsigned i = 0; i < world->n; i++) {
            pump(node, i);
        }
    }
    if (node->n_wait < OPS_MAX) {
        node->wait[node->n_wait++] = (struct waiting){seq, op};
    }
    turn(node);
}

static struct node *
some_primary(void)
{
    unsigned first = (unsigned)below(world->n);

    for (unsigned i = 0; i < world->n; i++) {
        struct node *node = &world->node[(first + i) % world->n];

        if (node->leads != 0 && node->is_up) {
            return node;
        }
    }
    return NULL;
}

static void
client(void)
{
    struct node *node = some_primary();

    push(30000, EV_CLIENT, WORLD_NODES);
    if (node == NULL) {
        return;
    }
    if (!world->is_healed && world->n_ops + 1 < OPS_MAX) {
        change(node, ++world->n_ops);
    }
    for (unsigned n = 0; n < 10 && world->lost_from <= world->n_ops; n++) {
        if (world->is_acked[world->lost_from]) {
            world->lost_from++;
        } else {
            break;
        }
    }
    /* one that was not answered, or was to a node that is none any more */
    for (unsigned n = 0; n < 4 && world->lost_from <= world->n_ops; n++) {
        uint32_t op = world->lost_from +
            (uint32_t)below(world->n_ops - world->lost_from + 1);

        if (world->copies > 0 ? !world->is_acked[op] : node->at_op[op] == 0) {
            change(node, op);
            return;
        }
    }
    if (world->lost_from <= world->n_ops) {
        change(node, world->lost_from);
    }
}

/* ---- faults ---- */

static void
part(uint32_t side)
{
    for (unsigned a = 0; a < PLACES; a++) {
        for (unsigned b = 0; b < PLACES; b++) {
            world->cut[a][b] |= quorum_has(side, a) != quorum_has(side, b);
        }
    }
}

static void
heal(void)
{
    memset(world->cut, 0, sizeof world->cut);
}

static struct node *
victim(void)
{
    struct node *node = some_primary();

    return node != NULL && chance(60) ? node : &world->node[below(world->n)];
}

static void
fault_of_network(struct node *node)
{
    unsigned self = number_of(node);
    unsigned other = chance(30) ? ETCD : (unsigned)below(world->n);

    switch (below(4)) {
    case 0:
        part(quorum_bit(self));
        break;
    case 1:
        part(quorum_bit(self) | quorum_bit(ETCD));
        break;
    case 2:
        world->cut[self][other] = true;
        world->cut[other][self] |= chance(50);
        break;
    default:
        part(quorum_bit(ETCD));
    }
    if (chance(70)) {
        push(50000 + below(4000000), EV_HEAL, WORLD_NODES);
    }
}

static void
fault(void)
{
    struct node *node = victim();
    unsigned kind = (unsigned)below(100);
    bool may_cut_power = world->level == WORLD_SYNCED ||
        (world->least > 0 && world->now - world->power_us > 4000000);

    if (world->is_healed) {
        return;
    }
    push(200000 + below(2000000), EV_FAULT, WORLD_NODES);
    world->result->n_faults++;
    if (kind < 25) {
        stop(node, false);
    } else if (kind < 37 && may_cut_power) {
        world->power_us = world->now;
        stop(node, true);
    } else if (kind < 52 && node->is_up && !node->is_paused) {
        node->is_paused = true;
        node->held = EVENTS_MAX;
        node->held_end = &node->held;
        push(200000 + below(5000000), EV_RESUME, WORLD_NODES)->from =
            number_of(node);
    } else if (kind < (world->is_eager ? 65 : 57) && world->copies > 0) {
        /* without copies the lease is all that there is */
        world->lease_us[world->key_lease] = 0;
    } else if (kind < 70 && node->is_up && !node->is_paused) {
        (void)role_hand_over(
            &node->role, (unsigned)below(world->n), clock_of(node));
        turn(node);
    } else {
        fault_of_network(node);
    }
}

static void
end_faults(void)
{
    world->is_healed = true;
    heal();
    for (unsigned i = 0; i < world->n; i++) {
        if (!world->node[i].is_up) {
            start(&world->node[i]);
        }
        resume(&world->node[i]);
    }
}

/* ---- the world ---- */

static void
happen_in(struct node *node, const struct event *event)
{
    switch (event->type) {
    case EV_MESSAGE:
        hear(node, event->from, &event->of.message);
        break;
    case EV_ANSWER:
        get_answer(node, &event->of.request, event->of.request.answer);
        break;
    case EV_LATE:
        get_answer(node, &event->of.request, ROLE_UNKNOWN);
        break;
    case EV_TICK:
        tick(node);
        break;
    case EV_SYNC:
        sync_log(node);
        break;
    case EV_DURABLE:
        if (node->disk_promised < event->of.value) {
            node->disk_promised = event->of.value;
        }
        role_promised(&node->role, event->of.value, clock_of(node));
        break;
    default:
        break;
    }
    turn(node);
}

static void
happen(struct event *event)
{
    switch (event->type) {
    case EV_ETCD:
        at_etcd(event);
        break;
    case EV_CLIENT:
        client();
        break;
    case EV_FAULT:
        fault();
        break;
    case EV_HEAL:
        heal();
        break;
    case EV_START:
        if (!world->node[event->from].is_up) {
            start(&world->node[event->from]);
        }
        break;
    case EV_RESUME:
        resume(&world->node[event->from]);
        break;
    default: {
        struct node *node = &world->node[event->node];

        if (!node->is_up ||
            (event->type != EV_MESSAGE && event->life != node->life)) {
            break;
        }
        if (node->is_paused) {
            *node->held_end = (unsigned)(event - world->event);
            node->held_end = &event->next;
            event->next = EVENTS_MAX;
            return;
        }
        happen_in(node, event);
    }
    }
    give_back(event);
}

/* True where one leads by etcd, all logs are the same, and all is answered. */
static bool
is_well(void)
{
    const struct node *primary = NULL;

    for (unsigned i = 0; i < world->n; i++) {
        const struct node *node = &world->node[i];

        if (node->leads != 0) {
            if (primary != NULL || node->leads != world->etcd.term ||
                world->etcd.holder != i) {
                return false;
            }
            primary = node;
        }
        if (last_of(node) != last_of(&world->node[0]) ||
            node->n_log != world->node[0].n_log) {
            return false;
        }
    }
    return primary != NULL && primary->changes == ROLE_CHANGES_TAKEN &&
        world->lost_from > world->n_ops && primary->n_wait == 0;
}

static void
check_end(void)
{
    const struct node *first = &world->node[0];

    if (!is_well()) {
        wrong("all is not well", world->lost_from, world->etcd.term);
        return;
    }
    if (world->copies > 0) {
        check_lost(first);
    }
    for (unsigned i = 1; i < world->n; i++) {
        if (memcmp(first->log, world->node[i].log,
                first->n_log * sizeof first->log[0]) != 0) {
            wrong("logs differ", 0, i);
        }
    }
}

/* Copies, least: as many as a group of that size may have. */
static void
draw_world(uint64_t seed)
{
    static const struct {
        unsigned n, copies, least;
    } kinds[] = {{3, 1, 1}, {3, 1, 1}, {3, 1, 1}, {3, 1, 0}, {3, 2, 1},
        {2, 1, 0}, {2, 1, 1}, {5, 2, 2}, {5, 1, 1}, {3, 0, 0}};
    uint64_t kind;

    world->random = seed;
    kind = below(COUNT_OF(kinds));
    world->n = kinds[kind].n;
    world->copies = kinds[kind].copies;
    world->least = kinds[kind].least;
    world->level = chance(50) ? WORLD_SYNCED : WORLD_WRITTEN;
    world->is_delayed = chance(50);
    world->is_eager = chance(40);
    world->n_slow = chance(40) ? 8 : 1;
    world->etcd = (struct role_look){.revision = 1,
        .holder = ROLE_NOBODY,
        .ordered = ROLE_NOBODY,
        .nodes = (UINT32_C(1) << world->n) - 1};
    world->lost_from = 1;
    for (unsigned i = 0; i < EVENTS_MAX; i++) {
        world->event[i].next = i + 1;
    }
    for (unsigned i = 0; i < world->n; i++) {
        struct node *node = &world->node[i];

        node->config = (struct role_config){.self = i,
            .copies = world->copies,
            .least = world->least,
            .ttl_us = TTL_US,
            .lag_us = LAG_US,
            .priority = 100,
            .random = below(UINT64_MAX)};
        node->rate = 970000 + below(60001);
        node->offset_us = 1 + below(UINT64_C(1000000000000));
        node->held = EVENTS_MAX;
        start(node);
    }
}

void
world_run(uint64_t seed, struct world_result *result)
{
    uint64_t next_look_us = FAULTS_US + 1000000;

    memset(result, 0, sizeof *result);
    if (world == NULL) {
        world = malloc(sizeof *world);
        ck_assert_ptr_nonnull(world);
    }
    memset(world, 0, offsetof(struct world, event));
    world->result = result;
    draw_world(seed);
    push(100000, EV_CLIENT, WORLD_NODES);
    push(2500000, EV_FAULT, WORLD_NODES);
    while (result->wrong[0] == '\0') {
        struct event *event = pop();

        if (world->now > FAULTS_US && !world->is_healed) {
            end_faults();
        }
        if (world->now > next_look_us) {
            next_look_us += 100000;
            if (is_well() || world->now > FAULTS_US + HEALED_US) {
                break;
            }
        }
        happen(event);
    }
    check_end();
}
