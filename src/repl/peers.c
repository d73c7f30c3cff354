/* SPDX-License-Identifier: BSD-3-Clause */
/* To each node that is asked there is one connection, made for the first
 * question, and closed when nothing was asked for some time:
 *
 *   IDLE <--> DIALLING --> JOINED --> CLOSING --> IDLE
 *
 * One question waits for the connection. It is lost with it: whoever decides
 * knows that no answer came, and whether it still wants one.
 *
 * What can go wrong: nobody is there, or it is somebody else; each frame. The
 * log says so once, until that node has answered. */
#include "repl/peers.h"

#include "base/assert.h"
#include "base/err.h"
#include "base/steps.h"
#include "repl/link_asker.h"
#include "repl/node_priv.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum {
    PEERS_MAGIC = 0x72656570,
    PEERS_NEXT_MAX = 8 /* orders of a link in one turn */
};

enum state { IDLE, DIALLING, JOINED, CLOSING };

struct peers_conn {
    struct wire wire; /* first */
    uint32_t magic;   /* PEERS_MAGIC */
    enum state state;
    struct node *node;
    struct peers_conn *next;
    struct node_name name;
    char address[NODE_ADDRESS_MAX + 1];
    struct node_dial_call dial;
    bool is_failing; /* the log says so */
    /* the question, before there is a link for it */
    bool is_due, is_probe;
    uint64_t term;
    /* JOINED */
    struct stream_reader reader;
    struct link_asker link;
    uint8_t *in; /* owned, WIRE_READ_LEAST */
    size_t in_at, in_len;
};

static const unsigned may_lead[] = {[IDLE] = STEP_TO(DIALLING),
    [DIALLING] = STEP_TO(IDLE) | STEP_TO(JOINED),
    [JOINED] = STEP_TO(CLOSING),
    [CLOSING] = STEP_TO(IDLE)};

static void
move_to(struct peers_conn *conn, enum state state)
{
    ASSERT_STEP(may_lead, conn->state, state);
    conn->state = state;
}

/* ---- its end ---- */

static void
tell(struct peers_conn *conn, bool is_usual, const char *why)
{
    log_event(conn->node->config.logger, "repl_link",
        conn->is_failing || is_usual ? LOG_DEBUG : LOG_WARNING,
        "node %.*s at %s, which was asked: %s", (int)conn->name.len,
        conn->name.text, conn->address, why);
    conn->is_failing = conn->is_failing || !is_usual;
}

static void
leave(struct peers_conn *conn, bool gently)
{
    move_to(conn, CLOSING);
    if (gently) {
        wire_end(&conn->wire);
    } else {
        wire_close(&conn->wire);
    }
}

static void
end_link(struct peers_conn *conn)
{
    const struct link_end *end = &conn->link.call.end;
    char why[512];

    node_count_end(conn->node, end);
    node_end_text(end, why, sizeof why);
    tell(conn, end->reason == LINK_IDLE, why);
    leave(conn, end->reason != LINK_TIMEOUT);
}

static void
on_wire_closed(struct wire *wire)
{
    struct peers_conn *conn = (struct peers_conn *)wire;

    ASSERT(conn->magic == PEERS_MAGIC);
    stream_reader_fini(&conn->reader);
    free(conn->in);
    conn->in = NULL;
    move_to(conn, IDLE);
    node_wake_at(conn->node, conn->node->now_us);
}

/* ---- what comes ---- */

static void
hand_on(struct peers_conn *conn)
{
    const struct link_asker *link = &conn->link;
    const struct peers_calls *calls = conn->node->peers.calls;

    conn->is_failing = false;
    switch (link->reply) {
    case LINK_REPLY_PROMISED:
        calls->answered_fn(conn->node, &conn->name, link->reply_term,
            link->reply_last, link->is_doubtful);
        return;
    case LINK_REPLY_REFUSED:
        calls->refused_fn(conn->node, &conn->name, link->reply_term);
        return;
    case LINK_REPLY_HEARS_ONE:
    case LINK_REPLY_HEARS_NONE:
        calls->told_fn(
            conn->node, &conn->name, link->reply == LINK_REPLY_HEARS_ONE);
        return;
    }
}

/* Takes the frames that are there, as far as they can be taken. */
static void
take_frames(struct peers_conn *conn)
{
    while (conn->state == JOINED && link_asker_may_take(&conn->link)) {
        const uint8_t *bytes = conn->in + conn->in_at;
        size_t len = conn->in_len - conn->in_at;
        struct stream_frame frame;
        enum stream_step read =
            stream_read(&conn->reader, &bytes, &len, &frame);
        enum link_step step;

        conn->in_at = conn->in_len - len;
        if (read == STREAM_WRONG) {
            link_asker_wrong(&conn->link, &conn->reader.fault);
        }
        if (read != STREAM_FRAME) {
            return;
        }
        step = link_asker_take(&conn->link, &frame);
        conn->reader.session = conn->link.call.session;
        if (step == LINK_YOURS) {
            hand_on(conn);
        } else if (step == LINK_ENDING) {
            return;
        }
    }
}

static void
on_moved(struct wire *wire)
{
    struct peers_conn *conn = (struct peers_conn *)wire;

    ASSERT(conn->magic == PEERS_MAGIC);
    conn->node->now_us = node_clock_us(conn->node);
    if (conn->state != JOINED || !wire->is_reading) {
        return;
    }
    ASSERT(conn->in_at == conn->in_len);
    conn->in_at = 0;
    (void)wire_read(wire, conn->in, WIRE_READ_LEAST, &conn->in_len);
    take_frames(conn);
}

/* ---- its beginning ---- */

static void
fail_to_dial(struct peers_conn *conn, const char *why)
{
    tell(conn, false, why);
    conn->is_due = false;
    move_to(conn, IDLE);
}

static struct message_text
name_of(const struct peers_conn *conn)
{
    return (struct message_text){
        (const uint8_t *)conn->name.text, conn->name.len};
}

/* There is a socket. 0, or why there is no link. */
static int
join(struct peers_conn *conn, int fd)
{
    struct node *node = conn->node;
    struct message_text name = name_of(conn);
    uint8_t nonce[STREAM_NONCE_BYTES];
    int err = ERR_NO_MEMORY;

    conn->in = malloc(WIRE_READ_LEAST);
    if (conn->in == NULL ||
        getrandom(nonce, sizeof nonce, 0) != (ssize_t)sizeof nonce ||
        stream_reader_init(&conn->reader) != 0) {
        close(fd);
        goto err_after_memory;
    }
    conn->wire =
        (struct wire){.moved_fn = on_moved, .closed_fn = on_wire_closed};
    err = wire_open(&conn->wire, &node->loop, fd, node->config.tls, true);
    if (err != 0) {
        stream_reader_fini(&conn->reader);
        goto err_after_memory;
    }
    conn->in_at = conn->in_len = 0;
    link_asker_init(&conn->link, &node->self, &name, nonce, node->now_us);
    move_to(conn, JOINED);
    wire_read_on(&conn->wire, true);
    return 0;

err_after_memory:
    free(conn->in);
    conn->in = NULL;
    return err;
}

static void
on_dialled(struct node_dial_call *call, int fd, const char *why)
{
    struct peers_conn *conn = (struct peers_conn *)((char *)call -
        offsetof(struct peers_conn, dial));
    int err;

    ASSERT(conn->magic == PEERS_MAGIC && conn->state == DIALLING);
    if (fd < 0) {
        fail_to_dial(conn, why);
        return;
    }
    err = join(conn, fd);
    if (err != 0) {
        fail_to_dial(conn, err_text(err));
    }
}

static void
dial(struct peers_conn *conn)
{
    const char *why;

    move_to(conn, DIALLING);
    why = node_dial(conn->node, &conn->dial, conn->address);
    if (why != NULL) {
        fail_to_dial(conn, why);
    }
}

/* ---- a turn ---- */

/* What this node says of itself. Who asks has a directory. */
static struct link_node
node_of(const struct node *node)
{
    const struct store_position *position = &node->position;

    return (struct link_node){.directory = node->directory,
        .promised = node->config.file.promised,
        .history = &position->history,
        .written = position->written,
        .synced = position->synced,
        .applied = position->applied};
}

/* Does what the link orders. False: nothing is left to do now. */
static bool
do_next(struct peers_conn *conn)
{
    struct node *node = conn->node;
    struct link_node here = node_of(node);
    uint8_t out[LINK_SEND_MAX];
    struct link_order order;

    link_asker_next(&conn->link, &here, node->now_us, out, &order);
    switch (order.what) {
    case LINK_SEND:
        wire_send(&conn->wire, out, order.len);
        return true;
    case LINK_CLOSE:
        end_link(conn);
        return false;
    default:
        node_wake_at(node, order.until_us);
        return false;
    }
}

/* Nothing can be sent: the other end may be dead. */
static void
look_for_life(struct peers_conn *conn)
{
    struct node *node = conn->node;
    uint64_t until_us = link_asker_ends_us(&conn->link);

    if (node->now_us >= until_us) {
        tell(conn, false, link_reason_text(LINK_TIMEOUT));
        leave(conn, false);
    } else {
        node_wake_at(node, until_us);
    }
}

static void
turn_link(struct peers_conn *conn)
{
    if (conn->is_due) {
        conn->is_due = false;
        link_asker_ask(
            &conn->link, conn->term, conn->is_probe, conn->node->now_us);
    }
    for (unsigned n = 0; conn->state == JOINED; n++) {
        take_frames(conn);
        if (conn->state != JOINED) {
            return;
        }
        if (conn->wire.has_failed) {
            if (conn->link.call.state == LINK_CALLER_ENDED) {
                end_link(conn); /* the last frame has said why */
            } else {
                tell(conn, false, conn->wire.why);
                leave(conn, false);
            }
            return;
        }
        if (!wire_has_room(&conn->wire)) {
            look_for_life(conn);
            break;
        }
        if (n == PEERS_NEXT_MAX) {
            node_wake_at(conn->node, conn->node->now_us);
            break;
        }
        if (!do_next(conn)) {
            break;
        }
    }
    if (conn->state == JOINED) {
        wire_read_on(&conn->wire, conn->in_at == conn->in_len);
    }
}

void
peers_turn(struct node *node)
{
    uint64_t term;
    bool is_done;

    for (struct peers_conn *it = node->peers.conns; it != NULL;
         it = it->next) {
        if (it->state == IDLE && it->is_due) {
            dial(it);
        }
        if (it->state == JOINED) {
            turn_link(it);
        }
    }
    if (receiver_is_fetched(node, &term, &is_done)) {
        node->peers.calls->fetched_fn(node, term, is_done);
        node_wake_at(node, node->now_us);
    }
}

/* ---- what is asked ---- */

static bool
is_same(const struct node_name *a, const struct node_name *b)
{
    return a->len == b->len && memcmp(a->text, b->text, a->len) == 0;
}

/* One that nobody uses, for a node of another name; NULL: there is none. */
static struct peers_conn *
find_idle(const struct peers *peers)
{
    struct peers_conn *it = peers->conns;

    while (it != NULL && (it->state != IDLE || it->is_due)) {
        it = it->next;
    }
    return it;
}

/* That of the node; NULL: there are too many, or memory is out. */
static struct peers_conn *
get_conn(struct node *node, const struct node_name *name)
{
    struct peers *peers = &node->peers;
    struct peers_conn *conn = peers->conns;

    while (conn != NULL && !is_same(&conn->name, name)) {
        conn = conn->next;
    }
    if (conn != NULL) {
        return conn;
    }
    if (peers->n < PEERS_MAX) {
        conn = calloc(1, sizeof *conn);
        if (conn == NULL) {
            return NULL;
        }
        conn->next = peers->conns;
        peers->conns = conn;
        peers->n++;
    } else {
        conn = find_idle(peers);
        if (conn == NULL) {
            return NULL;
        }
    }
    conn->magic = PEERS_MAGIC;
    conn->node = node;
    conn->name = *name;
    conn->dial.done_fn = on_dialled;
    conn->is_failing = false;
    conn->address[0] = '\0';
    return conn;
}

/* It is to be another connection from now on, where that node has moved. */
static void
set_address(struct peers_conn *conn, const char *address)
{
    if (strcmp(conn->address, address) == 0) {
        return;
    }
    snprintf(conn->address, sizeof conn->address, "%s", address);
    conn->is_failing = false;
    if (conn->state == JOINED) {
        leave(conn, false);
    } else if (conn->state == DIALLING) {
        node_dial_forget(conn->node, &conn->dial);
        move_to(conn, IDLE);
    }
}

void
peers_ask(struct node *node, const struct node_name *name, const char *address,
    uint64_t term, bool is_probe)
{
    struct peers_conn *conn;

    ASSERT(node->peers.calls != NULL);
    ASSERT(is_probe || term == node->config.file.promised);
    if (node->state == NODE_STATE_ENDING || address[0] == '\0') {
        return;
    }
    conn = get_conn(node, name);
    if (conn == NULL) {
        return;
    }
    set_address(conn, address);
    conn->is_due = true;
    conn->is_probe = is_probe;
    conn->term = term;
    node_wake_at(node, node->now_us);
}

/* ---- answers ---- */

static void
answer(struct node *node, const struct node_name *name, enum link_answer what,
    uint64_t term)
{
    struct sender_stream *stream = sender_find_asker(node, name);

    if (stream != NULL) {
        link_primary_answer(&stream->link, what, term);
        node_wake_at(node, node->now_us);
    }
}

void
peers_answer(struct node *node, const struct node_name *name, uint64_t term)
{
    ASSERT(term > 0 && term <= node->config.file.promised);
    answer(node, name, LINK_ANSWER_PROMISED, term);
}

void
peers_refuse(struct node *node, const struct node_name *name)
{
    answer(node, name, LINK_ANSWER_REFUSED, 0);
}

void
peers_tell(struct node *node, const struct node_name *name, bool is_heard)
{
    answer(node, name,
        is_heard ? LINK_ANSWER_HEARS_ONE : LINK_ANSWER_HEARS_NONE, 0);
}

/* ---- a fetch ---- */

void
peers_fetch(struct node *node, const struct node_name *name,
    const char *address, uint64_t term)
{
    ASSERT(node->peers.calls != NULL && term == node->config.file.promised);
    log_event(node->config.logger, "repl_log", LOG_INFO,
        "node %.*s at %s has more of the log, which is fetched for term %llu",
        (int)name->len, name->text, address, (unsigned long long)term);
    receiver_fetch(node, address, term);
}

void
peers_stop_fetch(struct node *node)
{
    if (node->receiver.fetch != RECEIVER_FETCH_NONE) {
        receiver_follow(node, "");
    }
}

/* ---- the end ---- */

void
peers_end(struct node *node)
{
    for (struct peers_conn *it = node->peers.conns; it != NULL;
         it = it->next) {
        it->is_due = false;
        node_dial_forget(node, &it->dial);
        if (it->state == DIALLING) {
            move_to(it, IDLE);
        } else if (it->state == JOINED) {
            leave(it, false);
        } else if (it->state == CLOSING) {
            wire_close(&it->wire);
        }
    }
}

void
peers_fini(struct node *node)
{
    struct peers_conn *next;

    for (struct peers_conn *it = node->peers.conns; it != NULL; it = next) {
        next = it->next;
        ASSERT(it->state == IDLE);
        it->magic = 0;
        free(it);
    }
    node->peers.conns = NULL;
    node->peers.n = 0;
}
