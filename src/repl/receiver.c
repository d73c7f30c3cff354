/* SPDX-License-Identifier: BSD-3-Clause */
/* What a receiver does while it has a link: bytes are read, up to
 * WIRE_READ_BYTES at a time, and made to frames; batches go to the store one by
 * one. What the store has no room for waits here, with the bytes behind it, and
 * nothing is read meanwhile. Once a turn the link is asked what is next: as a
 * rule one ACK for all that has come.
 *
 * What can go wrong: the other end; the store does not take a batch, or the
 * disk a promise. Each ends the connection, if it is not to be tried again
 * soon. */
#include "repl/receiver.h"

#include "base/assert.h"
#include "base/err.h"
#include "durable/snapshot_folder.h"
#include "repl/message_files.h"
#include "repl/node_priv.h"
#include "repl/receiver_priv.h"

#include <errno.h>

enum { NEXT_MAX = 64 /* orders of the link in one turn */ };

/* ---- what comes ---- */

/* True once in RECEIVER_TELL_MS: what fails is tried again many times a
 * second. */
static bool
may_tell(struct receiver *receiver)
{
    uint64_t now_us = receiver->node->now_us;

    if (receiver->told_us != 0 &&
        now_us - receiver->told_us < RECEIVER_TELL_MS * UINT64_C(1000)) {
        return false;
    }
    receiver->told_us = now_us;
    return true;
}

/* The store takes nothing for some time. What is committed meanwhile is said
 * behind the batch that waits here, and it may be what the store waits for, in
 * a checkpoint that would make room. So the node comes again, and is told at
 * the beginning. False: the link is over. */
static bool
look_for_room(struct receiver *receiver)
{
    uint64_t now_us = receiver->node->now_us;

    if (receiver->paused_us == 0) {
        receiver->paused_us = now_us;
    }
    if (now_us - receiver->paused_us < receiver->node->self.timeout_us) {
        return true;
    }
    receiver->has_failed = true;
    receiver_break(receiver,
        "nothing can be taken here: what is committed is asked for anew");
    return false;
}

/* Takes note that the store has not taken a batch. False: the link is over. */
static bool
pause_for(struct receiver *receiver, int err)
{
    struct node *node = receiver->node;

    if (err == ERR_LOG_FULL || err == ERR_DISK_FULL || err == ERR_FILE_SIZE ||
        err == ERR_NO_MEMORY || err == ERR_DISK) {
        if (err != ERR_LOG_FULL && may_tell(receiver)) {
            receiver->is_pause_told = true;
            log_event(node->config.logger, "repl_link", LOG_WARNING,
                "nothing is taken from the primary: %s", err_text(err));
        }
        receiver->put_err = err;
        receiver->is_paused = true;
        node_wake_at(node,
            node->now_us +
                (err == ERR_LOG_FULL ? 1U : 10U) * RECEIVER_RETRY_MS * 1000);
        return err == ERR_LOG_FULL || look_for_room(receiver);
    }
    receiver->rest_ms = RECEIVER_REST_MS_MAX;
    receiver->has_failed = true;
    log_event(node->config.logger, "repl_link",
        may_tell(receiver) ? LOG_ERROR : LOG_DEBUG,
        "batch %llu of the primary at %s: %s",
        (unsigned long long)receiver->batch.seq, receiver->address,
        err_text(err));
    receiver_break(receiver, "what it sends cannot be taken");
    return false;
}

/* The store has taken a batch. */
static void
note_put(struct receiver *receiver)
{
    receiver->has_batch = false;
    receiver->is_paused = false;
    receiver->has_failed = false;
    receiver->put_err = 0;
    receiver->paused_us = 0;
    receiver->put = receiver->batch.seq;
    receiver->node->figures.received_batches++;
    if (receiver->is_pause_told) {
        receiver->is_pause_told = false;
        log_event(receiver->node->config.logger, "repl_link", LOG_WARNING,
            "batches of the primary are taken again");
    }
}

/* Hands what is left of the newest batches to the store. False: not all of it,
 * or the link is over. */
static bool
put_batches(struct receiver *receiver)
{
    struct node *node = receiver->node;

    while (receiver->has_batches) {
        int err;

        if (!receiver->has_batch &&
            !message_next_batch(&receiver->batches, &receiver->batch)) {
            receiver->has_batches = false;
            return true;
        }
        if (receiver->batch.seq <= receiver->put) {
            continue; /* it comes again: see link_replica.c */
        }
        receiver->has_batch = true;
        err = store_put_batch(node->config.store, receiver->batch.seq,
            receiver->batch.payload, receiver->batch.len);
        if (err != 0) {
            (void)pause_for(receiver, err);
            return false;
        }
        note_put(receiver);
    }
    return true;
}

static struct link_node
node_of(const struct receiver *receiver)
{
    const struct node *node = receiver->node;
    const struct store_position *position = &node->position;
    const struct replica_file *file = &node->config.file;
    struct link_node out = {.directory = node->directory,
        .promised = file->promised,
        .history = &position->history,
        .written = position->written,
        .synced = position->synced,
        .applied = position->applied,
        .flags = (file->is_doubtful ? ACK_DOUBTFUL : 0U) |
            (receiver->put_err == ERR_DISK_FULL ? ACK_DISK_FULL : 0U) |
            (receiver->put_err == ERR_LOG_FULL ? ACK_HELD_UP : 0U),
        .is_paused = receiver->is_paused};

    return out;
}

static struct link_node
node_to_greet(const struct receiver *receiver)
{
    struct link_node out = node_of(receiver);

    if (!node_has_log(receiver->node)) {
        out.directory = (struct link_directory){0};
        out.history = &node_no_history;
        out.written = out.synced = out.applied = 0;
    }
    return out;
}

/* How old what is shown here is. */
static void
note_news(struct receiver *receiver, enum stream_type type)
{
    const struct message_news *news = &receiver->link.news;
    struct fresh *fresh = &receiver->fresh;
    uint64_t now_us = receiver->node->now_us, way_us;

    if ((type != STREAM_BATCHES && type != STREAM_HEARTBEAT) ||
        (news->flags & NEWS_AUTHORITY) == 0 ||
        receiver->link.call.state != LINK_REPLICA_FOLLOWING) {
        return;
    }
    if (fresh->n > 0 && fresh->at[fresh->n - 1].last > news->last) {
        fresh->n = 0; /* of another log */
    }
    way_us =
        fresh_way_us(&receiver->way, news->clock_us, now_us, news->rtt_us);
    fresh_add(fresh, news->last, now_us, way_us);
    node_control_heard(receiver->node);
}

/* True of the last frame of a snapshot. */
static bool
is_end_of_copy(const struct stream_frame *frame)
{
    struct message_end end;
    struct stream_fault fault;

    return frame->type == STREAM_END &&
        message_get_end(frame, &end, &fault) == 0 &&
        end.of == MESSAGE_END_SNAPSHOT;
}

/* False: it is wrong, and the link ends. */
static bool
take_reply(struct receiver *receiver, const struct stream_frame *frame)
{
    struct stream_fault fault = {0};

    if (forward_out_take(receiver->node, frame, &fault)) {
        return true;
    }
    link_replica_wrong(&receiver->link, &fault);
    return false;
}

static enum link_step
take_for_link(struct receiver *receiver, const struct stream_frame *frame)
{
    struct link_node here = node_to_greet(receiver);
    struct history given;

    if (receiver->link.call.state == LINK_CALLER_GREETED &&
        receiver->put > here.written && node_has_log(receiver->node)) {
        here.given = store_given(receiver->node->config.store, &given);
        here.given_history = &given;
    }
    return link_replica_take(
        &receiver->link, &here, frame, receiver->node->now_us);
}

/* Does with one frame what is to be done. False: the link is over, or nothing
 * more can be taken now. */
static bool
take_frame(struct receiver *receiver, const struct stream_frame *frame)
{
    enum link_step step = take_for_link(receiver, frame);

    receiver->reader.session = receiver->link.call.session;
    if (step == LINK_ENDING) {
        return false;
    }
    note_news(receiver, frame->type);
    if (frame->type == STREAM_BATCHES && !receiver_count_fetch(receiver)) {
        return false;
    }
    if (step == LINK_YOURS && frame->type == STREAM_REPLY) {
        return take_reply(receiver, frame);
    }
    if (step == LINK_YOURS && frame->type == STREAM_BATCHES) {
        receiver->batches = receiver->link.batches;
        receiver->has_batches = true;
    } else if (step == LINK_YOURS) {
        copy_in_put(receiver->copy, frame);
        receiver->copy_us = receiver->node->now_us;
        receiver->is_copy_whole = is_end_of_copy(frame);
    }
    return true;
}

/* Something is next of a snapshot. Any thread. */
static void
on_wake(void *context)
{
    struct node *node = context;

    bell_hold(&node->bell);
    bell_ring(&node->bell);
}

/* False: it cannot begin, and the link is over. */
static bool
begin_copy(struct receiver *receiver)
{
    struct node *node = receiver->node;
    struct link_node here = node_to_greet(receiver);
    const struct copy_in_config config = {
        .disk = store_disk(node->config.store),
        .logger = node->config.logger,
        .epoch = here.directory.epoch,
        .wake_fn = on_wake,
        .context = node};
    int err = copy_in_start(&config, &receiver->copy);

    receiver->copy_us = node->now_us;
    receiver->is_copy_whole = false;
    if (err != 0) {
        receiver_break(receiver, err_text(err));
        return false;
    }
    log_event(node->config.logger, "repl_snapshot", LOG_WARNING,
        "the primary %.*s at %s sends a snapshot",
        (int)receiver->link.call.name_len, receiver->link.call.name,
        receiver->address);
    return true;
}

/* True where the next frame may be taken. */
static bool
may_take(struct receiver *receiver)
{
    if (receiver->state != RECEIVER_JOINED ||
        !link_replica_may_take(&receiver->link)) {
        return false;
    }
    if (receiver->link.call.state != LINK_REPLICA_COPYING) {
        return true;
    }
    if (receiver->copy == NULL && !begin_copy(receiver)) {
        return false;
    }
    receiver->is_paused = !copy_in_may_put(receiver->copy);
    if (receiver->is_paused) { /* it is this node that is waited for */
        receiver->copy_us = receiver->node->now_us;
    }
    return !receiver->is_paused;
}

/* Takes the frames that are there, as far as they can be taken. */
static void
take_frames(struct receiver *receiver)
{
    for (;;) {
        const uint8_t *bytes = receiver->in + receiver->in_at;
        size_t len = receiver->in_len - receiver->in_at;
        struct stream_frame frame;
        enum stream_step step;

        if (!put_batches(receiver) || !may_take(receiver)) {
            return;
        }
        step = stream_read(&receiver->reader, &bytes, &len, &frame);
        receiver->in_at = receiver->in_len - len;
        if (step == STREAM_WRONG) {
            link_replica_wrong(&receiver->link, &receiver->reader.fault);
        }
        if (step != STREAM_FRAME || !take_frame(receiver, &frame)) {
            return;
        }
    }
}

/* Bytes wait, or it is to be looked at. */
void
receiver_on_moved(struct wire *wire)
{
    struct receiver *receiver = (struct receiver *)wire;
    struct node *node = receiver->node;
    size_t len;

    ASSERT(receiver->magic == RECEIVER_MAGIC);
    node->now_us = node_clock_us(node);
    if (receiver->state != RECEIVER_JOINED || !wire->is_reading) {
        return;
    }
    ASSERT(receiver->in_at == receiver->in_len);
    (void)wire_read(wire, receiver->in, WIRE_READ_BYTES, &len);
    receiver->in_at = 0;
    receiver->in_len = len;
    if (len > 0) {
        node->figures.received_bytes += len;
        link_replica_heard(&receiver->link, node->now_us);
    }
}

/* ---- what the link orders ---- */

static void
tell_follows(struct receiver *receiver)
{
    struct node *node = receiver->node;
    const struct link_replica *link = &receiver->link;

    if (receiver->is_following || link->call.state != LINK_REPLICA_FOLLOWING) {
        return;
    }
    receiver->is_following = true;
    commit_waits_begin(&receiver->waits, 0);
    node_control_welcomed(node, link->last);
    if (!node_control_is_there(node)) { /* else etcd knows it */
        node_set_primary(node, link->call.client, link->call.client_len);
    }
    receiver->why[0] = '\0';
    if (!receiver->has_failed) { /* else it is likely to end as before */
        receiver->is_failing = false;
        receiver->rest_ms = RECEIVER_REST_MS_MIN;
    }
    receiver->sound_seq = link->last;
    if (receiver->put < link->verdict_seq) {
        receiver->put = link->verdict_seq;
    }
    log_event(node->config.logger, "repl_link",
        receiver->has_failed ? LOG_DEBUG : LOG_INFO,
        "follows the primary %.*s at %s, term %llu, from batch %llu on",
        (int)link->call.name_len, link->call.name, receiver->address,
        (unsigned long long)link->term, (unsigned long long)link->verdict_seq);
}

static void
promise(struct receiver *receiver, uint64_t term)
{
    int err = node_promise(receiver->node, term);

    if (err != 0) {
        log_event(receiver->node->config.logger, "repl_role",
            may_tell(receiver) ? LOG_ERROR : LOG_DEBUG,
            "term %llu of the primary cannot be promised: %s",
            (unsigned long long)term, err_file_text(err));
        receiver_break(receiver, "its term is not promised");
        return;
    }
    node_control_promised(receiver->node, term);
    link_replica_promised(&receiver->link);
}

/* How many batches the log has behind batch seq; those from before its first
 * term, whose numbers may leave some out, do not count. */
static uint64_t
count_behind(const struct store_position *position, uint64_t seq)
{
    const struct history *history = &position->history;
    uint64_t n = 0;

    for (unsigned i = 0; i < history->n; i++) {
        const struct history_term *term = &history->at[i];
        uint64_t last = link__earlier(term->last, position->written);
        uint64_t before = term->term == 0 ? last : seq_first(term->term) - 1;

        before = before < seq ? seq : before;
        n += last > before ? last - before : 0;
    }
    return n;
}

/* The log has to be cut, which a start does. */
static void
cut_log(struct receiver *receiver, uint64_t seq)
{
    struct node *node = receiver->node;
    struct replica_file file = node->config.file;
    int err;

    file.cut_seq = seq;
    err = node_write_file(node, &file);
    if (err != 0) {
        log_event(node->config.logger, "repl_log", LOG_ERROR,
            "the log is to be cut behind batch %llu, and that cannot be "
            "noted: %s",
            (unsigned long long)seq, err_file_text(err));
        receiver_break(receiver, "the log cannot be cut");
        return;
    }
    node->figures.cuts++;
    node->figures.cut_batches += count_behind(&node->position, seq);
    log_event(node->config.logger, "repl_log", LOG_WARNING,
        "batches behind %llu are not the primary's: the log is cut, and the "
        "directory loaded anew",
        (unsigned long long)seq);
    receiver_leave(receiver, false);
    node_reload(node);
}

/* All of a snapshot is here: a start puts it in the directory's place. */
static void
exchange(struct receiver *receiver)
{
    struct node *node = receiver->node;

    log_event(node->config.logger, "repl_snapshot", LOG_WARNING,
        "a snapshot of the primary has come: the directory is loaded anew");
    if (receiver->state == RECEIVER_JOINED) {
        receiver_leave(receiver, false);
    }
    node_reload(node);
}

/* Ends the link where the primary says that it is there, but sends nothing of
 * the snapshot for so long that it cannot be at work: it reads what this node
 * has of it before it sends the rest, no slower than RECEIVER_COPY_RATE unless
 * it was told to. What is here stays for the next time. */
static void
look_at_copy(struct receiver *receiver)
{
    struct node *node = receiver->node;
    uint64_t rate = node->config.snapshot_rate, until_us;
    struct copy_figures figures;

    if (receiver->is_copy_whole) {
        return; /* it is checked here */
    }
    copy_in_figures(receiver->copy, &figures);
    if (rate == 0 || rate > RECEIVER_COPY_RATE) {
        rate = RECEIVER_COPY_RATE;
    }
    until_us = receiver->copy_us + node->config.copy_silent_ms * 1000 +
        figures.bytes_kept / rate * UINT64_C(1000000);
    if (node->now_us >= until_us) {
        receiver_break(receiver, "nothing came of its snapshot for too long");
    } else {
        node_wake_at(node, until_us);
    }
}

/* Goes on with a snapshot. False: nothing is left to do now. */
static bool
do_copy(struct receiver *receiver, uint64_t until_us)
{
    struct node *node = receiver->node;
    struct copy_figures figures;
    struct copy_piece piece;
    size_t len;

    if (receiver->copy == NULL && !begin_copy(receiver)) {
        return false;
    }
    switch (copy_in_next(receiver->copy, &piece)) {
    case COPY_FRAME:
        len = link_replica_have(
            &receiver->link, piece.frame, piece.len, node->now_us);
        wire_send(&receiver->wire, piece.frame, len);
        receiver->copy_us = node->now_us;
        return true;
    case COPY_DONE:
        exchange(receiver);
        return false;
    case COPY_FAILED:
        copy_in_figures(receiver->copy, &figures);
        receiver->rest_ms = RECEIVER_REST_MS_MAX;
        receiver_break(receiver,
            figures.what != NULL ? figures.what : err_file_text(figures.err));
        return false;
    default:
        node_wake_at(node, until_us);
        look_at_copy(receiver);
        return false;
    }
}

/* Does what the link orders. False: nothing is left to do now. */
static bool
do_next(struct receiver *receiver, const struct link_node *here)
{
    struct node *node = receiver->node;
    uint8_t out[LINK_SEND_MAX];
    struct link_order order;

    link_replica_next(&receiver->link, here, node->now_us, out, &order);
    switch (order.what) {
    case LINK_SEND:
        wire_send(&receiver->wire, out, order.len);
        return true;
    case LINK_PROMISE:
        promise(receiver, order.term);
        return receiver->state == RECEIVER_JOINED;
    case LINK_CUT_LOG:
        cut_log(receiver, order.seq);
        return false;
    case LINK_COPY:
        return do_copy(receiver, order.until_us);
    case LINK_CLOSE:
        receiver_end_link(receiver);
        return false;
    default:
        if (forward_out_send(node)) {
            return true;
        }
        node_wake_at(node, order.until_us);
        return false;
    }
}

/* The node has all that its primary had when it came: it may be counted on
 * again. */
static void
look_whether_sound(struct receiver *receiver)
{
    struct node *node = receiver->node;
    struct replica_file file = node->config.file;

    if (!file.is_doubtful || !receiver->is_following ||
        node->position.synced < receiver->sound_seq) {
        return;
    }
    file.is_doubtful = false;
    if (node_write_file(node, &file) == 0) {
        node->self.hello_flags &= (uint16_t)~HELLO_DOUBTFUL;
        log_event(node->config.logger, "repl_log", LOG_INFO,
            "all is here that may have been lost");
    }
}

/* What has come of the frames so far. */
static void
note_positions(struct receiver *receiver)
{
    struct node *node = receiver->node;
    const struct store_position *position = &node->position;
    uint64_t committed = link_replica_committed(&receiver->link);

    if (receiver->link.call.state == LINK_REPLICA_FOLLOWING) {
        tell_follows(receiver);
        commit_waits_look(&receiver->waits, &node->figures.lags,
            receiver->link.news.last, position->applied, UINT64_MAX,
            node->now_us);
        node_set_committed(node, link__earlier(committed, receiver->put));
        look_whether_sound(receiver);
    } else if (receiver->link.call.state == LINK_REPLICA_FETCHING) {
        /* what is may be applied, which makes room for more */
        node_set_committed(node, link__earlier(committed, receiver->put));
    } else {
        return;
    }
    if (position->applied < position->written ||
        position->written < receiver->put) {
        node_wake_at(node, node->now_us + RECEIVER_LOOK_MS * 1000);
    }
}

/* Has what the store took be written: nobody else commits it. */
static void
write_batches(struct receiver *receiver)
{
    if (receiver->put > receiver->node->position.written) {
        (void)store_commit(receiver->node->config.store, receiver->put);
    }
}

/* The socket is at its end; the last frame may have said why. */
static void
end_or_break(struct receiver *receiver)
{
    if (receiver->link.call.state == LINK_CALLER_ENDED) {
        receiver_end_link(receiver);
    } else {
        receiver_break(receiver, receiver->wire.why);
    }
}

/* Nothing can be sent: the other end may be dead. */
static void
look_for_life(struct receiver *receiver)
{
    struct node *node = receiver->node;
    uint64_t until_us = receiver->link.heard_us + node->self.timeout_us;

    if (node->now_us >= until_us && !receiver->is_paused) {
        receiver_break(receiver, link_reason_text(LINK_TIMEOUT));
        return;
    }
    node_wake_at(node, until_us);
}

static void
turn_link(struct receiver *receiver)
{
    struct node *node = receiver->node;

    for (unsigned n = 0; receiver->state == RECEIVER_JOINED; n++) {
        struct link_node here;

        take_frames(receiver);
        if (receiver->state != RECEIVER_JOINED) {
            return;
        }
        if (receiver->wire.has_failed) {
            end_or_break(receiver);
            return;
        }
        write_batches(receiver);
        node_look(node);
        note_positions(receiver);
        if (!wire_has_room(&receiver->wire)) {
            look_for_life(receiver);
            break;
        }
        if (n == NEXT_MAX) {
            node_wake_at(node, node->now_us);
            break;
        }
        here = receiver->link.call.state == LINK_REPLICA_FOLLOWING ||
                receiver->link.call.state == LINK_REPLICA_FETCHING
            ? node_of(receiver)
            : node_to_greet(receiver);
        if (!do_next(receiver, &here)) {
            break;
        }
    }
    if (receiver->state == RECEIVER_JOINED) {
        wire_read_on(&receiver->wire,
            receiver->in_at == receiver->in_len && !receiver->is_paused);
    }
}

/* Says once that reads are refused, and that they are answered again. */
static void
tell_freshness(struct receiver *receiver, bool is_fresh, uint64_t until_us)
{
    struct node *node = receiver->node;

    if (is_fresh) {
        node_wake_at(node, until_us);
    }
    if (is_fresh == receiver->is_fresh) {
        return;
    }
    receiver->is_fresh = is_fresh;
    log_event(node->config.logger, "repl_stale",
        is_fresh ? LOG_NOTICE : LOG_WARNING,
        is_fresh
            ? "reads are answered: what they show is from the last %llu ms"
            : "reads are refused: what they show may be older than %llu ms",
        (unsigned long long)node->config.stale_ms);
}

/* Up to when what is read here is fresh enough. */
static void
note_freshness(struct receiver *receiver)
{
    struct node *node = receiver->node;
    uint64_t stale_us = node->config.stale_ms * 1000;
    uint64_t age_us =
        fresh_age_us(&receiver->fresh, node->position.applied, node->now_us);
    uint64_t until_us = stale_us == 0 ? UINT64_MAX
        : age_us >= stale_us          ? 0
                                      : node->now_us + stale_us - age_us;

    /* relaxed: a number that stands for itself */
    atomic_store_explicit(
        &node->fresh_until_us, until_us, memory_order_relaxed);
    if (stale_us != 0) {
        tell_freshness(receiver, until_us != 0, until_us);
    }
}

/* Frees the copy of a link that is over, when its thread is through. */
static void
end_copy(struct receiver *receiver)
{
    struct copy_piece piece;

    if (receiver->copy == NULL || !copy_in_is_over(receiver->copy)) {
        return;
    }
    if (copy_in_next(receiver->copy, &piece) == COPY_DONE) {
        exchange(receiver);
    }
    copy_in_destroy(&receiver->copy);
}

bool
receiver_give_up_copy(struct node *node)
{
    struct disk *disk = store_disk(node->config.store);
    struct disk_file is;

    copy_in_destroy(&node->receiver.copy);
    return disk->calls->look(
               disk, SNAPSHOT_PREFIX SNAPSHOT_EXCHANGE, -1, &is) == ENOENT;
}

void
receiver_turn(struct node *node)
{
    struct receiver *receiver = &node->receiver;

    if (receiver->state != RECEIVER_JOINED) {
        write_batches(receiver);
        node_look(node);
        end_copy(receiver);
        receiver_turn_fetch(receiver);
    }
    switch (receiver->state) {
    case RECEIVER_RESTING:
        if (node->now_us >= receiver->until_us) {
            receiver_dial(receiver);
        }
        node_wake_at(node, receiver->until_us);
        break;
    case RECEIVER_JOINED:
        turn_link(receiver);
        break;
    default:
        break;
    }
    note_freshness(receiver);
}
