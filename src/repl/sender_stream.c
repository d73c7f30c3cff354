/* SPDX-License-Identifier: BSD-3-Clause */
/* A connection of a primary: a socket, and a link that says what to do:
 *
 *   accepted --> SEND     --> the socket
 *                BATCHES  --> sender_batches.c --> the socket
 *                COPY     --> sender_copy.c --> the socket
 *                WAIT     --> a frame, the log, the clock
 *                a question of a candidate --> peers.c
 *                CLOSE    --> the socket ends; the place in the log is kept
 *
 * At most one frame waits to be written, and one is gathered. Who comes to a
 * node that is no primary is told so and closed; also a replica too many. Where
 * candidates are answered, or feeds are sent what they want, that is said only
 * to who wants to follow.
 *
 * Until it has proved who it is an end is a stranger. These have places of
 * their own: whoever connects gets one, and the oldest stranger goes for it. So
 * many strangers do not keep a replica out for longer than it takes to say
 * HELLO, and what they cost is bounded.
 *
 * What can go wrong: who connects, and each frame. It ends the connection. */
#include "base/assert.h"
#include "base/err.h"
#include "repl/forward_in.h"
#include "repl/node_priv.h"
#include "repl/sender_priv.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BEGIN_LOOK_US = 10000 /* whether the term is in the log */ };

/* ---- its end ---- */

void
sender_free(struct sender_stream *stream)
{
    struct sender_stream **at = &stream->node->sender.streams;

    while (*at != stream) {
        ASSERT(*at != NULL);
        at = &(*at)->next;
    }
    *at = stream->next;
    stream->node->sender.n_all--;
    stream_reader_fini(&stream->reader);
    free(stream->frame);
    sender_feed_end(&stream->feed);
    stream->magic = 0;
    free(stream);
}

void
sender_release(struct sender_stream *stream)
{
    ASSERT(stream->magic == SENDER_MAGIC);
    if (!stream->is_wire_closed || stream->is_working) {
        return;
    }
    ASSERT(stream->is_over);
    stream_reader_fini(&stream->reader);
    if (stream->is_followed || stream->keeps_place) {
        sender_leave_log(stream);
    } else {
        sender_free(stream);
    }
}

static void
on_wire_closed(struct wire *wire)
{
    struct sender_stream *stream = (struct sender_stream *)wire;

    stream->is_wire_closed = true;
    sender_release(stream);
}

/* Of which it is one, once it is known. */
static unsigned *
count_of(struct sender_stream *stream)
{
    struct sender *sender = &stream->node->sender;

    return stream->link.purpose == MESSAGE_FOLLOW ? &sender->n_streams
        : stream->link.purpose == MESSAGE_FEED    ? &sender->n_feeds
                                                  : &sender->n_peers;
}

bool
sender_keeps_places(const struct sender_stream *stream)
{
    const struct node *node = stream->node;

    return stream->link.purpose == MESSAGE_FEED
        ? sender_may_feed(node)
        : node->state == NODE_STATE_LEADING;
}

void
sender_end_stream(struct sender_stream *stream, bool gently)
{
    struct sender *sender = &stream->node->sender;

    forward_in_end(stream);
    if (!stream->is_over) {
        stream->is_over = true;
        stream->keeps_place = stream->is_told &&
            stream->link.end.reason != LINK_BEHIND &&
            stream->link.end.reason != LINK_GONE &&
            sender_keeps_places(stream);
        node_control_unlinked(stream);
        sender_leave_copy(stream);
        sender->n_refused -= stream->is_refused;
        *count_of(stream) -= stream->is_known;
    }
    if (gently) {
        wire_end(&stream->wire);
    } else {
        wire_close(&stream->wire);
    }
}

/* The level of a line that says why the stream ends, or else would be of that
 * level. Of those who have followed, it is; others come again each second, or
 * as often as they like: of these only some are told. */
static enum log_level
level_of(struct sender_stream *stream, enum log_level level)
{
    struct node *node = stream->node;
    struct sender *sender = &node->sender;

    if (stream->is_told) {
        return level;
    }
    if (stream->is_known && stream->link.purpose == MESSAGE_PROMISE &&
        level == LOG_INFO) {
        return LOG_DEBUG; /* it comes when it has something to ask */
    }
    if (sender->n_lines == 0 ||
        node->now_us - sender->lines_us >= SENDER_LINES_MS * UINT64_C(1000)) {
        if (sender->n_untold > 0) {
            log_event(node->config.logger, "repl_link", LOG_WARNING,
                "%u more connections of replicas have ended before one "
                "followed, of which nothing was said",
                sender->n_untold);
        }
        sender->lines_us = node->now_us;
        sender->n_lines = sender->n_untold = 0;
    }
    if (sender->n_lines == SENDER_LINES) {
        sender->n_untold++;
        return LOG_DEBUG;
    }
    sender->n_lines++;
    return level;
}

/* What the replica is called; of one who has not said it yet: unknown. */
static struct message_text
name_of(const struct sender_stream *stream)
{
    static const char unknown[] = "unknown";
    const struct link_primary *link = &stream->link;

    return link->name_len > 0
        ? (struct message_text){(const uint8_t *)link->name, link->name_len}
        : (struct message_text){(const uint8_t *)unknown, sizeof unknown - 1};
}

static const char *
what_of(const struct sender_stream *stream)
{
    return stream->link.purpose == MESSAGE_FEED ? "feed"
        : stream->link.purpose == MESSAGE_PROMISE ||
            stream->link.purpose == MESSAGE_FETCH
        ? "node"
        : "replica";
}

/* It has promised a term above this one's, or this one to another primary: so
 * that it is known to who asks. But nobody makes this node begin a term that
 * leaves few behind it, or none. What is to be done about it. */
static const char *
note_newer_term(struct sender_stream *stream)
{
    struct node *node = stream->node;
    uint64_t term = stream->link.end.term;

    if (node_control_is_there(node)) { /* etcd gives terms out */
        node_control_saw(node, term);
        return "";
    }
    if (term > node->term + LINK_TERMS_MAX) {
        return "; that cannot come of promotions: no term above it begins "
               "here, and that node has to begin with an empty directory";
    }
    if (term > node->refused_term) {
        node->refused_term = term;
    }
    return "; if this node is the right primary, say replicaof no one here, "
           "and it begins a later one";
}

/* Says why a link has ended, and ends the stream. */
static void
end_link(struct sender_stream *stream)
{
    const struct link_end *end = &stream->link.end;
    struct message_text name = name_of(stream);
    bool is_newer =
        (end->reason == LINK_NEWER_TERM || end->reason == LINK_SAME_TERM) &&
        stream->link.purpose == MESSAGE_FOLLOW;
    bool is_usual = end->reason == LINK_CUT || end->reason == LINK_FETCHED;
    bool is_early = end->reason == LINK_NO_PRIMARY &&
        node_control_is_candidate(stream->node); /* it comes again at once */
    char why[512];

    node_count_end(stream->node, end);
    stream->node->figures.behind += end->reason == LINK_BEHIND;
    node_end_text(end, why, sizeof why);
    log_event(stream->node->config.logger, "repl_link",
        is_early ? LOG_DEBUG
                 : level_of(stream, is_usual ? LOG_INFO : LOG_WARNING),
        "%s %.*s at %s: %s%s", what_of(stream), (int)name.len,
        (const char *)name.at, stream->address, why,
        is_newer ? note_newer_term(stream) : "");
    sender_end_stream(stream, end->reason != LINK_TIMEOUT);
}

void
sender_break(struct sender_stream *stream, const char *why)
{
    struct message_text name = name_of(stream);

    log_event(stream->node->config.logger, "repl_link",
        level_of(stream, LOG_INFO), "%s %.*s at %s: %s", what_of(stream),
        (int)name.len, (const char *)name.at, stream->address, why);
    sender_end_stream(stream, false);
}

/* Sends an ERROR, for which the wire has room. */
static void
send_error(struct sender_stream *stream, enum message_code code,
    const char *text, uint64_t term, uint64_t session)
{
    struct message_error error = {
        .code = code, .text = {(const uint8_t *)text, (uint8_t)strlen(text)}};
    uint8_t out[LINK_SEND_MAX];
    size_t len = message_put_error(out + STREAM_HEAD_BYTES, &error);

    len = stream_seal(out, STREAM_ERROR, (uint32_t)len, term, session);
    wire_send(&stream->wire, out, len);
}

void
sender_refuse(
    struct sender_stream *stream, enum message_code code, const char *text)
{
    struct message_text name = name_of(stream);

    send_error(stream, code, text, stream->link.term, stream->link.session);
    log_event(stream->node->config.logger, "repl_link",
        level_of(stream, LOG_WARNING), "%s %.*s at %s is refused: %s",
        what_of(stream), (int)name.len, (const char *)name.at, stream->address,
        text);
    sender_end_stream(stream, true);
}

/* ---- what comes ---- */

/* False while the first batch of the term is on its way to a disk that fails:
 * until then the log does not know the term that a welcome would be of. */
static bool
has_begun(const struct node *node)
{
    return node->state != NODE_STATE_LEADING ||
        node->position.written >= node->sender.term_seq;
}

static void
take_yours(struct sender_stream *stream, const struct stream_frame *frame)
{
    const struct link_primary *link = &stream->link;
    const struct message_promise *question = &link->question;
    struct node *node = stream->node;
    struct stream_fault fault = {0};
    struct node_name name;

    if (frame->type == STREAM_REQUEST) {
        if (!forward_in_take(stream, frame, &fault)) {
            link_primary_wrong(&stream->link, &fault);
        }
    } else if (frame->type == STREAM_HAVE) {
        sender_take_have(stream, frame);
    } else if (frame->type == STREAM_WANT) {
        sender_feed_begin(stream);
    } else if (node_is_asked(node) &&
        node_name_set(&name, link->name, link->name_len)) {
        node->peers.calls->asked_fn(node, &name, question->term,
            question->last, (question->flags & PROMISE_ASKS_ONLY) != 0);
    }
}

/* Takes the frames that are there, as far as they can be taken. */
static void
take_frames(struct sender_stream *stream)
{
    struct node *node = stream->node;
    struct link_view view = sender_view(node);

    if (!has_begun(node)) {
        node_wake_at(node, node->now_us + BEGIN_LOOK_US);
        return;
    }
    while (!stream->is_over && sender_may_take(stream)) {
        const uint8_t *bytes = stream->in + stream->in_at;
        size_t len = stream->in_len - stream->in_at;
        struct stream_frame frame;
        enum stream_step read =
            stream_read(&stream->reader, &bytes, &len, &frame);
        enum link_step step;

        stream->in_at = stream->in_len - len;
        if (read == STREAM_WRONG) {
            link_primary_wrong(&stream->link, &stream->reader.fault);
        }
        if (read != STREAM_FRAME) {
            return;
        }
        step = link_primary_take(&stream->link, &view, &frame, node->now_us);
        stream->reader.session = stream->link.session;
        if (step == LINK_YOURS) {
            take_yours(stream, &frame);
        } else if (step == LINK_ENDING) {
            return;
        } else if (frame.type == STREAM_ACK) {
            node_control_acked(stream);
        }
    }
}

static void
on_moved(struct wire *wire)
{
    struct sender_stream *stream = (struct sender_stream *)wire;
    struct node *node = stream->node;
    bool is_more;

    ASSERT(stream->magic == SENDER_MAGIC);
    node->now_us = node_clock_us(node);
    if (stream->is_over || !wire->is_reading) {
        return;
    }
    ASSERT(stream->in_at == stream->in_len);
    stream->in_at = 0;
    is_more = wire_read(wire, stream->in, sizeof stream->in, &stream->in_len);
    if (stream->in_len > 0 && !stream->is_refused) {
        link_primary_heard(&stream->link, node->now_us);
        take_frames(stream);
    }
    if (is_more || stream->is_over) {
        return;
    }
    if (stream->is_refused || stream->link.state >= LINK_PRIMARY_ENDING) {
        sender_end_stream(stream, false);
    } else {
        sender_break(stream, wire->why);
    }
}

/* ---- a turn ---- */

/* An earlier connection of the same replica; NULL: there is none. */
static struct sender_stream *
find_earlier(const struct sender_stream *stream)
{
    struct sender_stream *it = stream->next;

    while (it != NULL &&
        (!it->is_known || it->is_over ||
            it->link.purpose != stream->link.purpose ||
            !sender_is_same(it, stream))) {
        it = it->next;
    }
    return it;
}

/* A node that asks, or fetches, has proved who it is; it does so by one
 * connection. False: there are too many; it is told so. */
static bool
admit_peer(struct sender_stream *stream)
{
    struct sender *sender = &stream->node->sender;
    struct sender_stream *earlier = find_earlier(stream);

    if (earlier != NULL) {
        sender_break(earlier, "it has come anew");
    }
    if (sender->n_peers >= SENDER_PEERS_MAX) {
        stream->node->figures.refused++;
        sender_refuse(stream, MESSAGE_BUSY, "too many nodes ask");
        return false;
    }
    stream->is_known = true;
    sender->n_peers++;
    return true;
}

/* The same of a feed. */
static bool
admit_feed(struct sender_stream *stream)
{
    struct sender *sender = &stream->node->sender;
    struct sender_stream *earlier = find_earlier(stream);

    if (earlier != NULL) {
        sender_break(earlier, "it has come anew");
    }
    if (sender->n_feeds >= NODE_FEEDS_MAX) {
        stream->node->figures.refused++;
        sender_refuse(stream, MESSAGE_BUSY, "too many feeds");
        return false;
    }
    stream->is_known = true;
    sender->n_feeds++;
    return true;
}

/* A stranger has proved who it is. False: there are too many replicas; it is
 * told so. */
static bool
admit(struct sender_stream *stream)
{
    struct node *node = stream->node;
    struct sender *sender = &node->sender;
    struct sender_stream *earlier = find_earlier(stream);

    if (stream->link.purpose == MESSAGE_FEED) {
        return admit_feed(stream);
    }
    if (stream->link.purpose != MESSAGE_FOLLOW) {
        return admit_peer(stream);
    }
    if (sender->n_streams >= NODE_STREAMS_MAX && earlier != NULL) {
        sender_break(earlier, "it has come anew");
    }
    if (sender->n_streams >= NODE_STREAMS_MAX) {
        node->figures.refused++;
        sender_refuse(stream, MESSAGE_BUSY, "too many replicas are connected");
        return false;
    }
    stream->is_known = true;
    sender->n_streams++;
    return true;
}

static void
tell_begin(struct sender_stream *stream)
{
    struct node *node = stream->node;
    const struct link_primary *link = &stream->link;

    if (stream->is_told || link->state != LINK_PRIMARY_STREAMING) {
        return;
    }
    stream->is_told = true;
    node_control_linked(stream);
    sender_end_copies_of(stream);
    node->figures.sync_partial_ok++;
    log_event(node->config.logger, "repl_link", LOG_INFO,
        "replica %.*s at %s follows from batch %llu on", (int)link->name_len,
        link->name, stream->address, (unsigned long long)link->verdict_seq);
}

/* Does what the link orders. False: nothing is left to do now. */
static bool
do_next(struct sender_stream *stream, const struct link_view *view)
{
    struct node *node = stream->node;
    uint8_t out[LINK_SEND_MAX];
    struct link_order order;
    enum link_primary_state before = stream->link.state;

    if (before == LINK_PRIMARY_JUDGED && !admit(stream)) {
        return false;
    }
    if (before == LINK_PRIMARY_STREAMING && forward_in_send(stream)) {
        return true;
    }
    link_primary_next(&stream->link, view, node->now_us, out, &order);
    if (before == LINK_PRIMARY_JUDGED &&
        stream->link.purpose == MESSAGE_FOLLOW) {
        node->figures.sync_full += stream->link.verdict == MESSAGE_SNAPSHOT;
        node->figures.sync_partial_err += stream->link.verdict == MESSAGE_CUT;
        tell_begin(stream);
    }
    switch (order.what) {
    case LINK_SEND:
        wire_send(&stream->wire, out, order.len);
        node->figures.sent_bytes += order.len;
        return true;
    case LINK_BATCHES:
        return sender_begin_batches(stream, order.seq);
    case LINK_COPY:
        return sender_send_copy(stream, order.until_us);
    case LINK_CLOSE:
        end_link(stream);
        return false;
    default:
        node_wake_at(node, order.until_us);
        return false;
    }
}

/* An ERROR to who is not served. */
static void
refuse(struct sender_stream *stream)
{
    struct node *node = stream->node;

    if (!wire_has_room(&stream->wire)) {
        uint64_t until_us = stream->opened_us + node->self.timeout_us;

        if (node->now_us >= until_us || stream->wire.has_failed) {
            sender_end_stream(stream, false);
        }
        node_wake_at(node, until_us);
        return;
    }
    send_error(stream, MESSAGE_BUSY, "this node is no primary", node->term, 0);
    sender_end_stream(stream, true);
}

void
sender_turn_stream(struct sender_stream *stream)
{
    unsigned n = 0;

    if (stream->is_refused) {
        refuse(stream);
        return;
    }
    take_frames(stream);
    while (!stream->is_over && !stream->is_working &&
        wire_has_room(&stream->wire)) {
        struct link_view view = sender_view(stream->node);

        if (stream->has_filled) {
            if (link_primary_is_sent_log(&stream->link) ||
                stream->link.state == LINK_PRIMARY_FEEDING) {
                sender_send_batches(stream);
                n++;
            }
            stream->has_filled = false;
            continue;
        }
        if (n == SENDER_TURN_FRAMES) { /* others have their turn first */
            node_wake_at(stream->node, stream->node->now_us);
            return;
        }
        if (!do_next(stream, &view)) {
            break;
        }
    }
    if (!stream->is_over && stream->wire.has_failed) {
        sender_break(stream, stream->wire.why);
        return;
    }
    wire_read_on(&stream->wire, stream->in_at == stream->in_len);
    /* who does not read, or waits for the disk, may be dead as well */
    if (!stream->is_over) {
        node_wake_at(stream->node,
            stream->link.heard_us + stream->link.self->timeout_us);
        if (stream->node->now_us - stream->link.heard_us >=
            stream->link.self->timeout_us) {
            sender_break(stream, link_reason_text(LINK_TIMEOUT));
        }
    }
}

/* ---- its beginning ---- */

/* Not by getnameinfo: it asks the kernel for the name of a link-local address's
 * interface, by a call that a server does not make (server/sandbox_calls.h). */
static void
name_peer(int fd, char *out, size_t size)
{
    struct sockaddr_storage addr;
    socklen_t len = sizeof addr;
    const struct sockaddr_in *in = (const void *)&addr;
    const struct sockaddr_in6 *in6 = (const void *)&addr;
    char host[INET6_ADDRSTRLEN];

    if (getpeername(fd, (struct sockaddr *)&addr, &len) != 0) {
        addr.ss_family = AF_UNSPEC;
    }
    if (addr.ss_family == AF_INET &&
        inet_ntop(AF_INET, &in->sin_addr, host, sizeof host) != NULL) {
        snprintf(out, size, "%s:%u", host, ntohs(in->sin_port));
    } else if (addr.ss_family == AF_INET6 &&
        inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof host) != NULL) {
        snprintf(out, size, "[%s]:%u", host, ntohs(in6->sin6_port));
    } else {
        snprintf(out, size, "unknown");
    }
}

/* Begins what there is of a stream besides its socket. False: memory is out. */
static bool
make_link(struct sender_stream *stream)
{
    uint8_t nonce[STREAM_NONCE_BYTES];

    if (stream->is_refused) {
        return true;
    }
    if (stream_reader_init(&stream->reader) != 0) {
        return false;
    }
    if (getrandom(nonce, sizeof nonce, 0) != (ssize_t)sizeof nonce) {
        stream_reader_fini(&stream->reader);
        return false;
    }
    link_primary_init(
        &stream->link, &stream->node->self, nonce, stream->node->now_us);
    return true;
}

/* One stranger more comes: where there are as many as may be, the oldest one
 * goes, also one that has ended and only waits to be read. */
static void
make_room_for_stranger(struct node *node)
{
    struct sender_stream *oldest = NULL;
    unsigned n = 0;

    for (struct sender_stream *it = node->sender.streams; it != NULL;
         it = it->next) {
        if (!it->is_refused && !it->is_known &&
            it->wire.state != WIRE_CLOSED) {
            oldest = it;
            n++;
        }
    }
    if (n < SENDER_STRANGERS_MAX) {
        return;
    }
    node->figures.refused++;
    if (oldest->is_over) {
        wire_close(&oldest->wire);
    } else {
        sender_break(oldest, "others come, and it has not said who it is");
    }
}

void
sender_open(struct node *node, int fd)
{
    struct sender *sender = &node->sender;
    struct sender_stream *stream = calloc(1, sizeof *stream);
    bool is_refused = node->state != NODE_STATE_LEADING &&
        !node_is_asked(node) && !sender_may_feed(node);

    node->figures.refused += is_refused;
    if (!is_refused) {
        make_room_for_stranger(node);
    }
    if (stream == NULL || sender->n_all >= SENDER_ALL_MAX ||
        (is_refused && sender->n_refused >= SENDER_REFUSED_MAX)) {
        free(stream);
        close(fd);
        return;
    }
    stream->magic = SENDER_MAGIC;
    stream->node = node;
    stream->is_refused = is_refused;
    stream->opened_us = node->now_us;
    stream->wire.moved_fn = on_moved;
    stream->wire.closed_fn = on_wire_closed;
    atomic_init(&stream->has_more, false);
    name_peer(fd, stream->address, sizeof stream->address);
    if (!make_link(stream)) {
        free(stream);
        close(fd);
        return;
    }
    if (wire_open(&stream->wire, &node->loop, fd, node->config.tls, false) !=
        0) {
        stream_reader_fini(&stream->reader);
        free(stream);
        return;
    }
    stream->next = sender->streams;
    sender->streams = stream;
    sender->n_all++;
    sender->n_refused += is_refused;
    wire_read_on(&stream->wire, true);
}
