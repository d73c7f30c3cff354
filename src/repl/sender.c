/* SPDX-License-Identifier: BSD-3-Clause */
/* All connections of a primary: who connects, what their ACKs come to, and when
 * there are too few of them.
 *
 * What is committed: with semi_sync copies asked for, what so many replicas
 * have, from the first batch of the term on; it only grows. Without, what the
 * log says. */
#include "repl/sender.h"

#include "base/assert.h"
#include "base/err.h"
#include "base/num.h"
#include "net/accept.h"
#include "repl/node_priv.h"
#include "repl/quorum.h"
#include "repl/semi_sync.h"
#include "repl/sender_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Which primary is known here. */
static void
view_primary(const struct node *node, struct link_view *view)
{
    const struct link_replica *link = &node->receiver.link;

    if (!view->is_replica) {
        view->primary = node->self.name;
        view->primary_client = node->self.client;
    } else if (node->receiver.state == RECEIVER_JOINED &&
        link->call.state == LINK_REPLICA_FOLLOWING) {
        view->primary = (struct message_text){
            (const uint8_t *)link->call.name, link->call.name_len};
        view->primary_client = (struct message_text){
            (const uint8_t *)link->call.client, link->call.client_len};
    }
}

/* As far above what etcd has given out, or was promised here, as another node
 * may be that has heard of more. */
static uint64_t
term_most(const struct node *node)
{
    uint64_t given = node->control.role.look.term;
    uint64_t promised = node->config.file.promised;

    return (given > promised ? given : promised) + LINK_TERMS_MAX;
}

/* An ended term's log, too, may be fed from: what counts in it stays. */
bool
sender_may_feed(const struct node *node)
{
    return (node->state == NODE_STATE_LEADING ||
               node->state == NODE_STATE_FOLLOWING) &&
        node_has_log(node) && !node->config.file.is_doubtful &&
        node->position.history.n > 0 && node->position.applied > 0 &&
        node->committed > 0;
}

struct link_view
sender_view(struct node *node)
{
    const struct store_position *position = &node->position;
    bool leads = node->state == NODE_STATE_LEADING;
    bool is_there = node_control_is_there(node);
    bool is_alone = leads && !is_there && node->config.semi_sync == 0;
    bool has_log = leads || node_has_log(node);
    struct link_view view = {.term = node->term,
        .history = has_log ? &position->history : &node_no_history,
        .is_asked = node_is_asked(node),
        .term_most = term_most(node),
        .is_replica = !leads,
        .is_doubtful = !has_log || node->config.file.is_doubtful,
        .has_authority =
            leads && (!is_there || node_control_has_authority(node))};

    if (has_log) {
        view.directory = node->directory;
        view.begin = position->begin;
        view.written = position->written;
        view.committed = is_alone
            ? position->written
            : link__earlier(node->committed, position->written);
        view.fed = link__earlier(view.committed, position->applied);
        view.may_feed = sender_may_feed(node) && view.fed > 0;
    }
    view_primary(node, &view);
    return view;
}

/* Nobody can be accepted for now: who is waiting would have the loop spin. Said
 * once until somebody was. */
static void
pause_accepting(struct node *node, int error)
{
    struct sender *sender = &node->sender;

    for (unsigned i = 0; i < sender->n_listen; i++) {
        uv_poll_stop(&sender->listen[i]);
    }
    sender->accept_us = node->now_us + SENDER_PAUSE_MS * UINT64_C(1000);
    node->figures.accept_pauses++;
    if (!sender->is_short) {
        sender->is_short = true;
        log_event(node->config.logger, "repl_link", LOG_WARNING,
            "cannot accept connections of replicas: %s", strerror(error));
    }
}

/* Takes one connection. False: no more for now. */
static bool
accept_one(struct node *node, int listen_fd)
{
    int fd = accept4(listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

    if (fd >= 0) {
        node->sender.is_short = false;
        sender_open(node, fd);
        return true;
    }
    switch (accept_end_of(errno)) {
    case ACCEPT_NOBODY:
        return false;
    case ACCEPT_SHORT:
        pause_accepting(node, errno);
        return false;
    default:
        return true;
    }
}

static void
on_connection(uv_poll_t *poll, int status, int events)
{
    struct node *node = poll->data;
    int listen_fd = -1;

    (void)status;
    (void)events;
    ASSERT(node->magic == NODE_MAGIC);
    node->now_us = node_clock_us(node);
    if (uv_fileno((const uv_handle_t *)poll, &listen_fd) != 0) {
        return;
    }
    for (unsigned n = 0; n < SENDER_ACCEPTS; n++) {
        if (!accept_one(node, listen_fd)) {
            return;
        }
    }
}

static void
begin_accepting(struct node *node)
{
    struct sender *sender = &node->sender;

    sender->accept_us = 0;
    for (unsigned i = 0; i < sender->n_listen; i++) {
        uv_poll_start(&sender->listen[i], UV_READABLE, on_connection);
    }
}

/* Accepts again when that is due. */
static void
look_at_pause(struct node *node)
{
    if (node->sender.accept_us == 0 || node->state == NODE_STATE_ENDING) {
        return;
    }
    if (node->now_us >= node->sender.accept_us) {
        begin_accepting(node);
    } else {
        node_wake_at(node, node->sender.accept_us);
    }
}

int
sender_start(struct node *node)
{
    struct sender *sender = &node->sender;
    unsigned n = node->config.n_listen;

    sender->listen = calloc(n == 0 ? 1 : n, sizeof *sender->listen);
    if (sender->listen == NULL) {
        return ERR_NO_MEMORY;
    }
    for (unsigned i = 0; i < n; i++) {
        if (uv_poll_init(&node->loop, &sender->listen[i],
                node->config.listen_fd[i]) != 0) {
            return ERR_SYSTEM;
        }
        sender->n_listen++;
        sender->listen[i].data = node;
    }
    begin_accepting(node);
    return 0;
}

/* ---- what is committed ---- */

bool
sender_is_same(const struct sender_stream *a, const struct sender_stream *b)
{
    return a->link.name_len == b->link.name_len &&
        memcmp(a->link.name, b->link.name, a->link.name_len) == 0;
}

/* True where the replica is one to count: it is sent the log, and has not come
 * anew since, as one does whose connection stands still. What it has by two
 * connections only it has. */
static bool
is_counted(const struct node *node, const struct sender_stream *stream)
{
    const struct sender_stream *it = node->sender.streams;

    for (; it != stream; it = it->next) { /* who came last is the first */
        bool has_come = !it->is_refused && !it->is_over &&
            it->link.purpose == MESSAGE_FOLLOW &&
            it->link.state >= LINK_PRIMARY_JUDGED &&
            it->link.state < LINK_PRIMARY_ENDING;

        if (has_come && sender_is_same(it, stream)) {
            return false;
        }
    }
    return sender_is_streaming(stream);
}

static void
move_committed(struct node *node)
{
    uint64_t position[NODE_STREAMS_MAX];
    unsigned n = 0;
    uint64_t seq;

    if (node_control_is_there(node)) {
        node_set_committed(node, node_control_committed(node));
        return;
    }
    if (node->config.semi_sync == 0) {
        return;
    }
    for (struct sender_stream *it = node->sender.streams; it != NULL;
         it = it->next) {
        if (is_counted(node, it)) {
            position[n++] = semi_sync_position(&it->link);
        }
    }
    seq = quorum_nth(position, n, node->config.semi_sync);
    if (seq >= node->sender.term_seq) {
        node_set_committed(node, seq);
    }
}

/* Looks at how far the log is, and what has become of it. */
static void
look_at_log(struct node *node)
{
    struct sender *sender = &node->sender;
    const struct store_position *position = &node->position;

    lag_look(&sender->lag, position->written, position->written_bytes,
        node->now_us);
    for (struct sender_stream *it = sender->streams; it != NULL;
         it = it->next) {
        if (sender_is_streaming(it) &&
            it->link.ack.written > sender->shipped) {
            sender->shipped = it->link.ack.written;
        }
    }
    if (node->config.semi_sync > 0) {
        commit_waits_look(&sender->waits, &node->figures.commits,
            position->written, node->committed,
            node->config.commit_timeout_ms * 1000, node->now_us);
    }
    node_wake_at(node, node->now_us + SENDER_LOOK_MS * UINT64_C(1000));
}

/* Refuses changes where too few replicas are heard, or takes them again. */
static void
look_for_replicas(struct node *node)
{
    struct sender *sender = &node->sender;
    uint64_t lag_us = node->config.max_lag_ms * 1000;
    unsigned n = 0;
    bool is_few;

    if (node->config.min_replicas == 0 || node_control_is_there(node)) {
        return;
    }
    for (struct sender_stream *it = sender->streams; it != NULL;
         it = it->next) {
        if (is_counted(node, it) &&
            node->now_us - it->link.heard_us <= lag_us) {
            n++;
            node_wake_at(node, it->link.heard_us + lag_us + 1);
        }
    }
    is_few = n < node->config.min_replicas;
    if (is_few != sender->refuses_changes && node->parting == NULL) {
        sender->refuses_changes = is_few;
        node__refuse_changes(node, is_few ? ERR_FEW_REPLICAS : 0);
        log_event(node->config.logger, "repl_changes", LOG_WARNING,
            is_few ? "%u replica%s heard: changes are refused"
                   : "%u replica%s heard: changes are taken again",
            n, n == 1 ? " is" : "s are");
    }
}

void
sender_take_changes(struct node *node)
{
    node__refuse_changes(
        node, node->sender.refuses_changes ? ERR_FEW_REPLICAS : 0);
}

void
sender_begin(struct node *node, uint64_t seq)
{
    struct sender *sender = &node->sender;

    sender->term_seq = seq;
    sender->shipped = node->position.written;
    lag_begin(&sender->lag, node->position.written,
        node->position.written_bytes, node->now_us);
    commit_waits_begin(&sender->waits, node->position.written);
    if (node_control_is_there(node)) {
        sender->refuses_changes = true; /* until they are to be taken */
        sender_keep_before(node);
    } else {
        sender->refuses_changes = node->config.min_replicas > 0;
        sender_take_changes(node);
        node_set_committed(node, node->config.semi_sync == 0 ? UINT64_MAX : 0);
    }
    receiver_clear_remains(node);
}

/* It is sent the log, and can be. */
static bool
gets_log(const struct sender_stream *stream)
{
    return !stream->is_over && !stream->wire.has_failed &&
        link_primary_is_sent_log(&stream->link);
}

bool
sender_is_behind(const struct node *node)
{
    for (const struct sender_stream *it = node->sender.streams; it != NULL;
         it = it->next) {
        if (gets_log(it) && it->link.sent < node->position.given) {
            return true;
        }
    }
    return false;
}

void
sender_end(struct node *node, bool in_full)
{
    struct sender *sender = &node->sender;

    for (struct sender_stream *it = sender->streams; it != NULL;
         it = it->next) {
        bool is_asker = it->link.purpose == MESSAGE_PROMISE;

        if (!it->is_over && (in_full || !is_asker)) {
            sender_end_stream(it, in_full && gets_log(it));
        } else if (it->is_parked) {
            sender_leave_place(it);
        } else if (in_full) {
            wire_close(&it->wire);
        }
    }
    sender_leave_before(node);
    sender_stop_copies(node);
    if (!in_full) {
        return;
    }
    for (unsigned i = 0; i < sender->n_listen; i++) {
        uv_close((uv_handle_t *)&sender->listen[i], NULL);
    }
}

/* True where the place of one that has gone is of no use any more: it is there
 * again, or has been away for too long. */
static bool
is_place_over(const struct node *node, const struct sender_stream *place)
{
    for (const struct sender_stream *it = node->sender.streams; it != NULL;
         it = it->next) {
        bool has_place = /* what is worked on is the other thread's */
            it->is_parked || (!it->is_working && it->is_followed);

        if (it != place && has_place &&
            it->link.purpose == place->link.purpose &&
            it->opened_us >= place->opened_us && sender_is_same(it, place)) {
            return true;
        }
    }
    return node->now_us - place->parked_us >= SENDER_KEPT_MS * UINT64_C(1000);
}

/* Of those who come for that, the place that is kept for longest goes where
 * there are too many. What is committed depends on none of them, and as many as
 * can be connected keep theirs: those whose return answers may wait for. */
static void
bound_places(struct node *node, enum message_purpose purpose, unsigned n_max)
{
    struct sender_stream *longest = NULL;
    unsigned n = 0;

    for (struct sender_stream *it = node->sender.streams; it != NULL;
         it = it->next) {
        if (it->is_parked && it->link.purpose == purpose) {
            n++;
            if (longest == NULL || it->parked_us < longest->parked_us) {
                longest = it;
            }
        }
    }
    if (n <= n_max) {
        return;
    }
    log_event(node->config.logger, "repl_log", LOG_WARNING,
        "more than %u %s are away: the log is kept no more for %.*s, "
        "which has been for %llu s",
        n_max, purpose == MESSAGE_FEED ? "feeds" : "replicas",
        (int)longest->link.name_len, longest->link.name,
        (unsigned long long)((node->now_us - longest->parked_us) / 1000000));
    node->figures.places_dropped++;
    sender_leave_place(longest);
    node_wake_at(node, node->now_us); /* it may not be the only one */
}

void
sender_turn(struct node *node)
{
    const struct sender *sender = &node->sender;
    struct sender_stream *next;

    look_at_pause(node);
    if (node->state == NODE_STATE_LEADING) {
        move_committed(node);
        look_at_log(node);
    }
    for (struct sender_stream *it = node->sender.streams; it != NULL;
         it = next) {
        next = it->next;
        if (!it->is_over) {
            sender_turn_stream(it);
        } else if (it->is_parked && is_place_over(node, it)) {
            sender_leave_place(it);
        }
    }
    if (sender->before != NULL &&
        node->now_us - sender->before->since_us >=
            SENDER_KEPT_MS * UINT64_C(1000)) {
        sender_leave_before(node);
    }
    bound_places(node, MESSAGE_FOLLOW, SENDER_PLACES_MAX);
    bound_places(node, MESSAGE_FEED, NODE_FEEDS_MAX);
    sender_look_at_copies(node);
    if (node->state == NODE_STATE_LEADING) {
        look_for_replicas(node);
    }
}

struct sender_stream *
sender_find_asker(struct node *node, const struct node_name *name)
{
    struct sender_stream *it = node->sender.streams;

    while (it != NULL &&
        (it->is_over || it->link.state != LINK_PRIMARY_ANSWERING ||
            it->link.name_len != name->len ||
            memcmp(it->link.name, name->text, name->len) != 0)) {
        it = it->next; /* who came last is the first */
    }
    return it;
}

bool
sender_all_have(const struct node *node, uint64_t seq)
{
    for (const struct sender_stream *it = node->sender.streams; it != NULL;
         it = it->next) {
        if (is_counted(node, it) && it->link.ack.written < seq) {
            return false;
        }
    }
    return true;
}

unsigned
sender_n_applied(const struct node *node, uint64_t seq)
{
    unsigned n = 0;

    for (const struct sender_stream *it = node->sender.streams; it != NULL;
         it = it->next) {
        n += is_counted(node, it) && it->link.ack.applied >= seq;
    }
    return n;
}
