/* SPDX-License-Identifier: BSD-3-Clause */
/* How a move goes (ADR 46):
 *
 *   BEGIN     the new group is told that it has not the ids yet
 *   DUMP      a position in the log of a node of the old group; then all
 *             records of the rule, as they are at that position or later
 *   FOLLOW    what the log says behind that position, until the lag is small
 *             and somebody wants the cut
 *   CUT       the old primary is told to hand over: its log gets an entry
 *             behind which no change of these ids comes
 *   THROUGH   that entry has come, and all before it is acknowledged by the
 *             new group, which is told now that the ids are its own
 *   DONE
 *
 * Each step may be taken twice: what is sent are states. So the file that says
 * how far it is may be behind the truth, never before it: a position is written
 * when all up to it is acknowledged, CUT before the old primary is told, and
 * THROUGH in one write with the position behind the entry.
 *
 * Where the node is lost, the next one is asked to go on behind the position.
 * One that cannot, begins anew: what the new group has of the ids is removed
 * there, for it may have been deleted in what is not known of the log. */
#include "cli/reshard.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/err.h"
#include "cli/ask.h"
#include "cli/reshard_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum {
    NS_PER_MS = 1000000,
    US_PER_MS = 1000,
    EXIT_USAGE = 2,
    PATH_BYTES = 4096,
    OLD_TIMEOUT_MS = 5000, /* a node that is asked before the cut */
    COMMAND_BYTES = 512
};

uint64_t
reshard__now_ms(void)
{
    return clock_monotonic_ns() / NS_PER_MS;
}

enum reshard_went
reshard__fail(struct reshard *move, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    (void)vsnprintf(move->why, sizeof move->why, format, list);
    va_end(list);
    return RESHARD_FAIL;
}

/* Also while a server is waited for. */
static bool
tick(void *context)
{
    struct reshard *move = context;
    reshard_source_tick(&move->source);
    return !stop_is_asked(&move->stop);
}

enum reshard_went
reshard__pause(struct reshard *move, uint64_t ms)
{
    uint64_t until = reshard__now_ms() + ms;
    for (uint64_t now = until - ms; now < until; now = reshard__now_ms()) {
        uint64_t left = until - now;
        if (!tick(move)) {
            return RESHARD_STOP;
        }
        stop_sleep(&move->stop, left > TALK_TICK_MS ? TALK_TICK_MS : left);
    }
    return tick(move) ? RESHARD_OK : RESHARD_STOP;
}

enum reshard_went
reshard__save(struct reshard *move)
{
    int err = reshard_state_write(move->setup.state, &move->state);
    move->saved_ms = reshard__now_ms();
    return err == 0 ? RESHARD_OK
                    : reshard__fail(move, "--state=%.120s: %s",
                          move->setup.state, strerror(err));
}

/* ---- the node that is read ---- */

static enum reshard_went prepare(struct reshard *move);

/* Takes a payload, as far as the new group takes its lines. */
static enum reshard_went
take_payload(struct reshard *move, const struct message_batch *batch)
{
    struct entry_reader reader = {
        .at = batch->payload, .end = batch->payload + batch->len};
    enum reshard_take take = RESHARD_SEND;
    enum reshard_went went = RESHARD_OK;
    while (went == RESHARD_OK && take == RESHARD_SEND) {
        take = reshard_lines_take(&move->lines, &reader);
        if (take == RESHARD_WRONG) {
            return reshard__fail(move, "%s", move->lines.why);
        }
        if (take == RESHARD_SEND ||
            move->lines.text.len >= RESHARD_CHUNK_BYTES) {
            went = reshard__flush(move);
        }
    }
    return went;
}

/* All counters and producers of the source have come: what it has no more goes
 * at the new group, the others come. */
static enum reshard_went
bring_schema(struct reshard *move)
{
    if (move->has_schema) {
        return RESHARD_OK;
    }
    enum reshard_went went = reshard_lines_learnt(&move->lines)
        ? reshard__flush(move)
        : reshard__fail(move, "%s", move->lines.why);
    if (went == RESHARD_OK) {
        went = reshard__copy_schema(move);
    }
    move->has_schema = went == RESHARD_OK;
    return went;
}

/* What the log says: lines, sent where they are many or change columns. */
static bool
take_batches(void *context, struct message_batches *batches, bool is_schema)
{
    struct reshard *move = context;
    struct message_batch batch;
    move->went = prepare(move);
    if (move->went == RESHARD_OK && !is_schema) {
        move->went = bring_schema(move);
    }
    while (move->went == RESHARD_OK && message_next_batch(batches, &batch)) {
        if (!is_schema) {
            move->went = take_payload(move, &batch);
        } else if (!reshard_lines_learn(
                       &move->lines, batch.payload, batch.len)) {
            move->went = reshard__fail(move, "%s", move->lines.why);
        }
    }
    return move->went == RESHARD_OK;
}

/* Reads once; all that has come is sent then. */
static enum reshard_went
read_some(struct reshard *move, unsigned wait_ms)
{
    move->went = RESHARD_OK;
    if (!reshard_source_read(&move->source, wait_ms)) {
        if (move->went == RESHARD_OK) {
            reshard__trouble(move, move->source.why);
        }
        buf_clear(&move->lines.text);
        return move->went == RESHARD_OK ? RESHARD_LOST : move->went;
    }
    return stop_is_asked(&move->stop) ? RESHARD_STOP : RESHARD_OK;
}

/* Asks the node for its name and its group. */
static bool
meet_node(struct reshard *move)
{
    struct talk *node = &move->node;
    node->server[0] = move->setup.from.server[move->at];
    node->n_servers = 1;
    talk_close(node);
    if (!talk_connect(node) || !talk_login(node, move->setup.login) ||
        !reshard__ask(move, node, "stats replication\r\n")) {
        reshard__trouble(move, node->why);
        return false;
    }
    char *group = move->source.group, what[RESHARD_WHY_MAX];
    if (!reshard__stat(
            move, "node", move->node_name, sizeof move->node_name) ||
        !reshard__stat(move, "group", group, sizeof move->source.group)) {
        (void)snprintf(what, sizeof what,
            "%.80s has no --repl-port, from which changes could be read",
            node->at.text);
        reshard__trouble(move, what);
        return false;
    }
    if (group[0] == '\0') { /* what nodes without --repl-group say */
        memcpy(group, "/", sizeof "/");
    }
    return true;
}

/* No log is known: the next node is asked for a beginning, which must know of
 * no part of another one. */
static void
forget_log(struct reshard_state *state)
{
    state->epoch = state->seed = state->position = 0;
    state->shards = 0;
    state->history.n = 0;
}

/* Opens the log of the node that is next. */
static enum reshard_went
open_node(struct reshard *move)
{
    struct reshard_source *source = &move->source;
    move->has_schema = false;
    move->is_prepared = false;
    if (!meet_node(move)) {
        return RESHARD_LOST;
    }
    source->talk.server[0] = move->setup.from_repl.server[move->at];
    source->talk.n_servers = 1;
    source->node.directory =
        (struct link_directory){.epoch = move->state.epoch,
            .seed = move->state.seed,
            .shards = move->state.shards};
    source->history = move->state.history;
    source->node.written = move->state.epoch == 0 ? 0 : move->state.position;
    move->went = RESHARD_OK;
    if (!reshard_source_open(source)) {
        if (source->why[0] != '\0') {
            reshard__trouble(move, source->why);
        }
        return move->went == RESHARD_OK ? RESHARD_LOST : move->went;
    }
    return RESHARD_OK;
}

/* A node that is behind the position, as one that has just started may be or a
 * replica that is cut off: another one has the log, or this one a moment later.
 * To copy all anew takes hours; after the cut that is as long as nobody can
 * change the ids. Not for ever: maybe nobody will come so far. */
static bool
is_behind(struct reshard *move)
{
    const struct link_feed *link = &move->source.link;
    uint64_t now = reshard__now_ms();
    if (move->state.epoch == 0 || link->verdict_seq >= move->state.position) {
        return false;
    }
    if (move->behind_ms == 0) {
        move->behind_ms = now;
    }
    return now - move->behind_ms < RESHARD_BEHIND_MS;
}

/* Where the log goes on: behind the position; or all is copied from here. */
static enum reshard_went
take_verdict(struct reshard *move)
{
    const struct link_feed *link = &move->source.link;
    enum reshard_went went;
    if (link->verdict == MESSAGE_CONTINUE) {
        move->behind_ms = 0;
        move->state.history = link->history;
        return RESHARD_OK;
    }
    if (is_behind(move)) {
        reshard__trouble(
            move, "the node that is read is behind what was read before");
        return RESHARD_LOST;
    }
    move->behind_ms = 0;
    bool is_dirty = move->state.phase != RESHARD_BEGIN || move->setup.is_anew;
    if (move->state.phase >= RESHARD_FOLLOW) {
        reshard__trouble(
            move, "the log behind the position is gone: all is copied anew");
    }
    move->state.phase = RESHARD_BEGIN;
    if (is_dirty) { /* a start before all is removed finds it so, too */
        move->state.phase = RESHARD_DUMP;
    }
    forget_log(&move->state);
    reshard_state_clear_dumped(&move->state);
    went = reshard__save(move);
    if (went == RESHARD_OK) {
        went = reshard__empty_new(move, is_dirty);
    }
    if (went != RESHARD_OK) {
        return went;
    }
    move->lines.moved[0] = '\0';
    move->state.phase = RESHARD_DUMP;
    move->state.epoch = link->directory.epoch;
    move->state.seed = link->directory.seed;
    move->state.shards = link->directory.shards;
    move->state.history = link->history;
    move->state.position = link->verdict_seq;
    move->source.node.written = link->verdict_seq;
    return reshard__save(move);
}

/* The stream has begun: it is that of the right node, and goes on where it
 * should; before anything that comes in it is looked at. */
static enum reshard_went
prepare(struct reshard *move)
{
    const struct link_feed *link = &move->source.link;
    if (move->is_prepared) {
        return RESHARD_OK;
    }
    if (strlen(move->node_name) != link->call.name_len ||
        memcmp(move->node_name, link->call.name, link->call.name_len) != 0) {
        return reshard__fail(move,
            "%.80s and %.80s are two nodes: --from and --from-repl are of the "
            "same nodes, in the same order",
            move->node.at.text, move->source.talk.at.text);
    }
    if (!reshard_lines_begin(&move->lines, link->directory.shards)) {
        return reshard__fail(move, "%s", move->lines.why);
    }
    move->is_prepared = true;
    move->has_off = false;
    return take_verdict(move);
}

/* When the newest frame was sent, on this clock: the quickest of all shows how
 * far the other clock is off, but for the time that one took. */
static uint64_t
sent_ms(struct reshard *move, uint64_t read_ms)
{
    uint64_t clock_ms = move->source.link.news.clock_us / US_PER_MS;
    uint64_t off = read_ms - clock_ms; /* modulo 2^64 */
    if (!move->has_off || (int64_t)(off - move->off_ms) < 0) {
        move->off_ms = off;
        move->has_off = true;
    }
    return clock_ms + move->off_ms;
}

/* Waits until the counters and producers have come, and brings them over. */
static enum reshard_went
learn(struct reshard *move)
{
    enum reshard_went went = prepare(move);
    while (went == RESHARD_OK && !move->source.is_told) {
        went = read_some(move, TALK_TICK_MS);
    }
    (void)sent_ms(move, reshard__now_ms());
    if (went == RESHARD_OK) {
        went = bring_schema(move);
    }
    return went == RESHARD_OK ? reshard__flush(move) : went;
}

/* ---- following ---- */

/* All that has come is at the new group: how far that is, and how old. */
static enum reshard_went
note_position(struct reshard *move, uint64_t read_ms)
{
    const struct link_feed *link = &move->source.link;
    uint64_t now = reshard__now_ms();
    if (link->position > move->state.position) {
        move->state.position = link->position;
        move->moved_ms = now;
    }
    move->source.node.written = move->source.node.synced =
        move->source.node.applied = move->state.position;
    bool is_there = move->told_ms != 0 && link->position >= move->told_last;
    if (is_there || now - move->told_ms > move->lag_ms) {
        move->lag_ms = move->told_ms == 0 ? UINT64_MAX : now - move->told_ms;
    }
    if (is_there || move->told_ms == 0) {
        move->told_ms = sent_ms(move, read_ms);
        move->told_last = link->last;
    }
    if (now - move->saved_ms < RESHARD_SAVE_MS) {
        return RESHARD_OK;
    }
    reshard__note_counters(move);
    return reshard__save(move);
}

static bool
is_through(const struct reshard *move)
{
    return strcmp(move->lines.moved, move->state.to) == 0;
}

/* Asks a node of the old group: it leads, has replicas, and does not wait for
 * any, so that one of them could lead without the handover. */
static bool
may_lose_cut(struct reshard *move, const struct talk_address *node)
{
    char role[16], copies[24], replicas[24];
    struct talk talk = {.server = {*node},
        .n_servers = 1,
        .timeout_ms = OLD_TIMEOUT_MS,
        .secure = &move->setup.secure,
        .fd = -1};
    bool may = talk_connect(&talk) && talk_login(&talk, move->setup.login) &&
        reshard__ask(move, &talk, "stats replication\r\n") &&
        reshard__stat(move, "role", role, sizeof role) &&
        reshard__stat(move, "semi_sync", copies, sizeof copies) &&
        reshard__stat(move, "replicas", replicas, sizeof replicas) &&
        strcmp(role, "primary") == 0 && strcmp(copies, "0") == 0 &&
        strcmp(replicas, "0") != 0;
    talk_fini(&talk);
    return may;
}

/* Both groups would take changes of the ids where the handover is lost. */
static enum reshard_went
look_at_old(struct reshard *move)
{
    const struct talk *from = &move->setup.from;
    for (unsigned i = 0; i < from->n_servers && !move->setup.is_unsafe; i++) {
        if (may_lose_cut(move, &from->server[i])) {
            return reshard__fail(move,
                "%.80s has --semi-sync=0: a replica could come to lead "
                "without the handover, and both groups take changes; start "
                "the old group with --semi-sync=1, or say --unsafe and let "
                "nobody be promoted there",
                from->server[i].text);
        }
    }
    return RESHARD_OK;
}

/* The old primary hands over, from which moment on changes of these ids are
 * refused there. */
static enum reshard_went
cut(struct reshard *move)
{
    char command[COMMAND_BYTES];
    enum reshard_went went = look_at_old(move);
    if (went != RESHARD_OK) {
        return went;
    }
    move->state.phase = RESHARD_CUT;
    move->state.is_cut_asked = true;
    went = reshard__save(move);
    reshard__show(move, true);
    (void)snprintf(command, sizeof command, "handover %s to %s\r\n",
        move->state.rule, move->state.to);
    return went == RESHARD_OK ? reshard__tell(move, &move->setup.from, command)
                              : went;
}

/* True where the handover's entry does not come by this node, but may by
 * another one: a replica that is cut off sends nothing new, and is taken for
 * near, for its own log goes no further. */
static bool
stands_still(struct reshard *move)
{
    if (move->setup.from.n_servers == 1 ||
        reshard__now_ms() - move->moved_ms < RESHARD_STILL_MS) {
        return false;
    }
    reshard__trouble(move, "the node that is read does not send the handover");
    return true;
}

/* True where it is time for that. */
static bool
may_cut(const struct reshard *move)
{
    return (move->setup.is_cut_over || move->stop.is_told ||
               move->state.is_cut_asked) &&
        move->lag_ms < RESHARD_LAG_MS;
}

static enum reshard_went
follow(struct reshard *move)
{
    bool is_told = false;
    move->lag_ms = UINT64_MAX;
    move->told_ms = 0;
    enum reshard_went went = RESHARD_OK;
    while (went == RESHARD_OK) {
        went = read_some(move, TALK_TICK_MS);
        uint64_t read_ms = reshard__now_ms();
        if (went == RESHARD_OK) {
            went = reshard__flush(move);
        }
        if (went == RESHARD_OK) {
            went = note_position(move, read_ms);
        }
        if (went == RESHARD_OK && is_told && is_through(move)) {
            move->state.phase = RESHARD_THROUGH;
            return reshard__save(move);
        }
        if (went == RESHARD_OK && !is_told && may_cut(move)) {
            move->lines.moved[0] = '\0'; /* of an earlier one */
            went = cut(move);
            is_told = true;
            move->moved_ms = reshard__now_ms();
        } else if (went == RESHARD_OK && is_told && stands_still(move)) {
            went = RESHARD_LOST;
        }
        reshard__show(move, false);
    }
    return went;
}

/* ---- the whole of it ---- */

/* One node of the old group, as far as it goes. */
static enum reshard_went
go_on_with(struct reshard *move)
{
    enum reshard_went went = open_node(move);
    if (went == RESHARD_OK) {
        went = learn(move);
    }
    if (went == RESHARD_OK && move->state.phase == RESHARD_DUMP) {
        reshard__show(move, true);
        went = reshard__copy(move);
        if (went == RESHARD_OK) {
            move->state.phase = RESHARD_FOLLOW;
            went = reshard__save(move);
            reshard__show(move, true);
        }
    }
    if (went == RESHARD_OK) {
        went = follow(move);
    }
    reshard_source_close(&move->source);
    talk_close(&move->node);
    return went;
}

/* Until all is through. */
static enum reshard_went
carry(struct reshard *move)
{
    enum reshard_went went = RESHARD_LOST;
    while (went == RESHARD_LOST || went == RESHARD_ANEW) {
        went = go_on_with(move);
        if (went == RESHARD_ANEW) {
            reshard__trouble(move,
                "columns have changed while records were read: all is copied "
                "anew");
            forget_log(&move->state);
        } else if (went == RESHARD_LOST) {
            move->at = (move->at + 1) % move->setup.from.n_servers;
        }
        if (went == RESHARD_LOST || went == RESHARD_ANEW) {
            enum reshard_went paused = reshard__pause(move, RESHARD_PAUSE_MS);
            went = paused == RESHARD_OK ? went : paused;
        }
    }
    return went;
}

static enum reshard_went
tell_new(struct reshard *move, const char *rest)
{
    char command[COMMAND_BYTES];
    (void)snprintf(
        command, sizeof command, "handover %s %s\r\n", move->state.rule, rest);
    return reshard__tell(move, move->to, command);
}

/* True where the lines of `show handovers` in move->answer have the rule. */
static bool
is_handed_over(const struct reshard *move)
{
    char wanted[COMMAND_BYTES];
    (void)snprintf(wanted, sizeof wanted, "HANDOVER %s ", move->state.rule);
    return strstr(move->answer.data, wanted) != NULL;
}

/* Asks any node of the old group for its handovers, until one answers. */
static enum reshard_went
ask_old(struct reshard *move)
{
    struct talk *old = &move->setup.from;
    while (!(talk_connect(old) && talk_login(old, move->setup.login) &&
        reshard__ask(move, old, "show handovers\r\n"))) {
        talk_close(old);
        reshard__trouble(move, old->why);
        if (reshard__pause(move, RESHARD_PAUSE_MS) == RESHARD_STOP) {
            return RESHARD_STOP;
        }
    }
    talk_close(old);
    return RESHARD_OK;
}

/* Before anything is told to the new group: that is new, and not one that
 * clients use, of which they would be refused these ids. */
static enum reshard_went
look_first(struct reshard *move)
{
    enum reshard_went went = reshard__ask_new(move, "show handovers\r\n");
    if (went == RESHARD_OK && !is_handed_over(move)) {
        went = ask_old(move);
        if (went == RESHARD_OK && is_handed_over(move)) {
            return reshard__fail(move,
                "the old group has handed %s over already, and the new group "
                "does not wait for them: they have been moved. See show "
                "handovers on both sides",
                move->state.rule);
        }
    }
    return went == RESHARD_OK && !move->setup.is_anew
        ? reshard__empty_new(move, false)
        : went;
}

static enum reshard_went
run(struct reshard *move)
{
    char rest[ADDRESS_MAX + 8];
    enum reshard_went went = RESHARD_OK;
    if (move->state.phase == RESHARD_BEGIN) {
        went = look_first(move);
    }
    if (went == RESHARD_OK && move->state.phase < RESHARD_THROUGH) {
        went = reshard__claim(move);
    }
    if (went == RESHARD_OK && move->state.phase < RESHARD_THROUGH) {
        (void)snprintf(rest, sizeof rest, "to %s", move->state.from);
        went = tell_new(move, rest);
        if (went == RESHARD_OK) {
            went = carry(move);
        }
    }
    if (went == RESHARD_OK && move->state.phase == RESHARD_THROUGH) {
        went = tell_new(move, "here");
        if (went == RESHARD_OK) {
            move->state.phase = RESHARD_DONE;
            went = reshard__save(move);
        }
    }
    return went == RESHARD_OK ? reshard__release(move) : went;
}

/* ---- a start ---- */

/* Nobody else works on the same file. *fd is to be closed. */
static enum reshard_went
lock_state(struct reshard *move, int *fd)
{
    char path[PATH_BYTES];
    int n = snprintf(path, sizeof path, "%s.lock", move->setup.state);
    if (n < 0 || (size_t)n >= sizeof path) {
        return reshard__fail(move, "--state: the name is too long");
    }
    *fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (*fd < 0 || flock(*fd, LOCK_EX | LOCK_NB) != 0) {
        return reshard__fail(move, "%.120s: %s", path,
            errno == EWOULDBLOCK ? "another tallyctl works on that move"
                                 : strerror(errno));
    }
    return RESHARD_OK;
}

static enum reshard_went
read_state(struct reshard *move)
{
    struct reshard_state *state = &move->state;
    const struct reshard_setup *setup = &move->setup;
    int err = reshard_state_read(setup->state, state);
    if (err == EBADMSG) {
        return reshard__fail(move,
            "--state=%.120s is damaged, or no file of a move", setup->state);
    }
    if (err != 0) {
        return reshard__fail(
            move, "--state=%.120s: %s", setup->state, strerror(err));
    }
    if (state->rule[0] == '\0') {
        (void)snprintf(state->rule, sizeof state->rule, "%s", setup->rule);
        (void)snprintf(
            state->from, sizeof state->from, "%s", setup->from_name);
        (void)snprintf(state->to, sizeof state->to, "%s", setup->to_name);
        return RESHARD_OK;
    }
    if (strcmp(state->rule, setup->rule) != 0 ||
        strcmp(state->from, setup->from_name) != 0 ||
        strcmp(state->to, setup->to_name) != 0) {
        return reshard__fail(move,
            "--state=%.60s is of another move: %s from %.60s to %.60s",
            setup->state, state->rule, state->from, state->to);
    }
    return RESHARD_OK;
}

static enum reshard_went
start(struct reshard *move, int *lock_fd)
{
    enum reshard_went went = lock_state(move, lock_fd);
    if (went == RESHARD_OK) {
        went = read_state(move);
        move->has_state = went == RESHARD_OK;
    }
    if (went == RESHARD_OK) {
        went = reshard__name_claim(move);
    }
    if (went != RESHARD_OK) {
        return went;
    }
    move->to = &move->setup.to;
    move->node = (struct talk){.fd = -1,
        .timeout_ms = RESHARD_TALK_TIMEOUT_MS,
        .secure = &move->setup.secure,
        .tick_fn = tick,
        .context = move};
    move->to->tick_fn = move->setup.from.tick_fn = tick;
    move->to->context = move->setup.from.context = move;
    move->source.secret = move->setup.secret;
    move->source.talk.timeout_ms = RESHARD_SOURCE_TIMEOUT_MS;
    move->source.batches_fn = take_batches;
    move->source.context = move;
    memcpy(move->source.rule, move->state.rule, sizeof move->state.rule);
    move->lag_ms = UINT64_MAX;
    shown_begin(&move->shown.line, "lines", 0);
    if (reshard_lines_init(&move->lines, move->setup.owns) != 0 ||
        reshard_source_init(&move->source) != 0 ||
        stop_init(&move->stop, SIGUSR1) != 0) {
        return reshard__fail(move, "no memory, or no descriptor, for a start");
    }
    move->lines.is_shared = move->setup.is_anew;
    return RESHARD_OK;
}

static void
end(struct reshard *move)
{
    reshard_source_fini(&move->source);
    reshard_lines_fini(&move->lines);
    talk_fini(&move->node);
    buf_fini(&move->chunk);
    buf_fini(&move->answer);
    buf_fini(&move->conns);
    stop_fini(&move->stop);
}

/* What is to be done next, or why it is not done. */
static int
say(struct reshard *move, enum reshard_went went)
{
    bool is_written = !move->setup.is_json || reshard__say_json(move, went);
    if (went == RESHARD_OK) {
        reshard__show(move, true);
        (void)fprintf(stderr,
            "tallyctl: %s are at %s now. Next: give routers and clients the "
            "new table; when none asks the old group any more, say there: "
            "forget ids %s\n",
            move->state.rule, move->state.to, move->state.rule);
        return is_written ? EXIT_SUCCESS : EXIT_FAILURE;
    }
    if (went == RESHARD_STOP) {
        (void)reshard__save(move);
        (void)fprintf(stderr,
            "\ntallyctl: ended by a signal while %s; the same command goes "
            "on\n",
            reshard_phase_text(move->state.phase));
        return EXIT_FAILURE;
    }
    (void)fprintf(stderr, "\ntallyctl: %s\n", move->why);
    return EXIT_FAILURE;
}

static int
say_help(enum reshard_do what)
{
    struct buf out = {0};
    reshard_setup_help(what, &out);
    return ask_write(&out);
}

int
reshard_main(int argc, char *const argv[])
{
    static struct reshard move;
    int status = EXIT_USAGE, lock_fd = -1;
    move.stop.fd = move.source.talk.fd = move.node.fd = -1;
    if (!reshard_setup_parse(&move.setup, argc, argv)) {
        (void)fprintf(stderr, "tallyctl reshard: %s\n", move.setup.line.why);
    } else if (move.setup.what != RESHARD_DO_RUN) {
        status = say_help(move.setup.what);
    } else {
        enum reshard_went went = start(&move, &lock_fd);
        status = say(&move, went == RESHARD_OK ? run(&move) : went);
        end(&move);
    }
    if (lock_fd >= 0) {
        (void)close(lock_fd);
    }
    reshard_setup_fini(&move.setup);
    return status;
}
