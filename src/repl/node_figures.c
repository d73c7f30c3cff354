/* SPDX-License-Identifier: BSD-3-Clause */
/* What a node says of itself: figures, and lines of `stats`. Other threads see
 * a copy, which each turn brings up to date; what depends on the time is
 * reckoned when they ask. */
#include "repl/node_figures.h"

#include "base/assert.h"
#include "repl/node_priv.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const role_texts[] = {
#define X(name, text) [NODE_##name] = (text),
    NODE_ROLES(X)
#undef X
};

static const char *const level_texts[] = {[MESSAGE_WRITTEN] = "written",
    [MESSAGE_SYNCED] = "synced",
    [MESSAGE_APPLIED] = "applied"};

/* ---- why a link has ended ---- */

void
node_end_text(const struct link_end *end, char *out, size_t size)
{
    const char *text = link_reason_text(end->reason);

    switch (end->reason) {
    case LINK_BAD_FRAME:
    case LINK_BAD_ORDER:
    case LINK_GAP:
        snprintf(out, size, "%s: %s, at offset %u, in a frame %s at byte %llu",
            text, end->fault.what == NULL ? "its body" : end->fault.what,
            end->fault.offset, stream_type_name(end->fault.type),
            (unsigned long long)end->fault.frame_at);
        return;
    case LINK_TOLD:
        snprintf(out, size, "it says: %.*s", (int)end->text_len, end->text);
        return;
    case LINK_REFUSED:
    case LINK_NEWER_TERM:
    case LINK_OLDER_TERM:
    case LINK_TERM_OVER:
        snprintf(
            out, size, "%s (term %llu)", text, (unsigned long long)end->term);
        return;
    default:
        snprintf(out, size, "%s", text);
    }
}

void
node_count_end(struct node *node, const struct link_end *end)
{
    node->figures.frames_bad += end->reason == LINK_BAD_FRAME ||
        end->reason == LINK_BAD_ORDER || end->reason == LINK_GAP;
}

/* ---- the copy ---- */

static enum node_role
role_of(const struct node *node)
{
    if (node->state == NODE_STATE_LEADING) {
        return node_control_is_isolated(node) ? NODE_ISOLATED : NODE_PRIMARY;
    }
    if (node->state == NODE_STATE_FOLLOWING &&
        node_control_is_candidate(node)) {
        return NODE_CANDIDATE;
    }
    return node->state == NODE_STATE_RELOADING ||
            receiver_is_syncing(&node->receiver)
        ? NODE_SYNCING
        : NODE_REPLICA;
}

static const char *
link_of(const struct node *node)
{
    const struct receiver *receiver = &node->receiver;

    if (receiver_is_syncing(receiver)) {
        return "sync";
    }
    return receiver->state == RECEIVER_JOINED && receiver->is_following
        ? "up"
        : "down";
}

static struct node_lag
lag_behind(const struct node *node, uint64_t seq)
{
    struct node_lag lag;

    lag.is_known = node->state == NODE_STATE_LEADING &&
        lag_of(&node->sender.lag, seq, &lag.from_us, &lag.bytes);
    return lag;
}

static void
show_replica(const struct sender_stream *stream, struct node_replica *out)
{
    static const char *const states[] = {
#define X(name, text) [LINK_PRIMARY_##name] = #name,
        LINK_PRIMARY_STATES(X)
#undef X
    };
    const struct link_primary *link = &stream->link;

    memcpy(out->address, stream->address, sizeof out->address);
    memcpy(out->name, link->name, link->name_len);
    out->name[link->name_len] = '\0';
    out->name_len = link->name_len;
    out->state = states[link->state];
    out->level = link->level;
    out->written = link->ack.written;
    out->synced = link->ack.synced;
    out->applied = link->ack.applied;
    out->heard_us = link->heard_us;
    out->sent_bytes = stream->wire.bytes_out;
    out->lag = lag_behind(stream->node, link->ack.written);
    out->rtt_us = link->rtt_us;
    out->flags = link->ack.flags;
    out->priority = link->priority;
    out->is_in_set = node_control_is_in_set(stream);
}

static void
show_primary(const struct node *node, struct node_shown *shown)
{
    shown->n_replicas = shown->n_feeds = 0;
    shown->n_strangers = shown->n_places = 0;
    shown->unshipped = lag_behind(node, node->sender.shipped);
    for (const struct sender_stream *it = node->sender.streams; it != NULL;
         it = it->next) {
        if (sender_is_known(it)) {
            ASSERT(shown->n_replicas < NODE_STREAMS_MAX);
            show_replica(it, &shown->replica[shown->n_replicas++]);
        } else if (sender_is_feed(it)) {
            ASSERT(shown->n_feeds < NODE_FEEDS_MAX);
            show_replica(it, &shown->feed[shown->n_feeds++]);
        }
        shown->n_strangers += !it->is_refused && !it->is_known && !it->is_over;
        shown->n_places += it->is_parked;
    }
}

static void
show_replica_side(const struct node *node, struct node_shown *shown)
{
    const struct receiver *receiver = &node->receiver;
    bool is_joined = receiver->state == RECEIVER_JOINED;

    memcpy(shown->master, receiver->address, sizeof shown->master);
    shown->link = link_of(node);
    shown->primary_len = is_joined ? receiver->link.call.name_len : 0;
    memcpy(shown->primary, receiver->link.call.name, shown->primary_len);
    shown->last = is_joined && receiver->is_following ? receiver->link.last
                                                      : shown->written;
    shown->heard_us = is_joined ? receiver->link.heard_us : 0;
    shown->fresh_us = receiver->fresh.left_us;
    shown->is_paused = receiver->is_paused;
    memcpy(shown->why, receiver->why, sizeof shown->why);
}

void
node__show(struct node *node)
{
    struct node_shown *shown = &node->shown;
    const struct store_position *position = &node->position;
    const struct history *history = &position->history;

    mutex_lock(&node->lock);
    shown->role = role_of(node);
    shown->term = node->term;
    shown->branch = history->n == 0 ? 0 : history->at[history->n - 1].branch;
    shown->committed = node->committed;
    shown->written = position->written;
    shown->synced = position->synced;
    shown->applied = position->applied;
    shown->last = position->written;
    shown->is_few = node->sender.refuses_changes;
    shown->is_doubtful = node->config.file.is_doubtful;
    shown->refused_term =
        node->state == NODE_STATE_LEADING && node->refused_term >= node->term
        ? node->refused_term
        : 0;
    shown->figures = node->figures;
    node_control_show(node, &shown->control);
    show_primary(node, shown);
    show_replica_side(node, shown);
    mutex_unlock(&node->lock);
}

/* ---- lines ---- */

struct teller {
    node_stat_fn *stat_fn;
    void *context;
};

static void tell(const struct teller *teller, const char *name,
    const char *format, ...) __attribute__((format(printf, 3, 4)));

static void
tell(const struct teller *teller, const char *name, const char *format, ...)
{
    char value[512];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(value, sizeof value, format, args);
    va_end(args);
    teller->stat_fn(teller->context, name, value);
}

static void
tell_u64(const struct teller *teller, const char *name, uint64_t value)
{
    tell(teller, name, "%" PRIu64, value);
}

static void
tell_known(const struct teller *teller, const char *name, bool is_known,
    uint64_t value)
{
    if (is_known) {
        tell_u64(teller, name, value);
    } else {
        tell(teller, name, "unknown");
    }
}

/* The log's positions as they are now: a primary to which nobody is connected
 * has no turns. */
static void
look_again(struct node *node, struct node_shown *copy)
{
    struct store_position position;

    store_position(node->config.store, &position);
    copy->written = position.written;
    copy->synced = position.synced;
    copy->applied = position.applied;
    if (copy->last < position.written) {
        copy->last = position.written;
    }
}

/* A copy of what is shown, for which memory may be out. */
static struct node_shown *
copy_shown(struct node *node)
{
    struct node_shown *copy = malloc(sizeof *copy);

    if (copy != NULL) {
        mutex_lock(&node->lock);
        *copy = node->shown;
        mutex_unlock(&node->lock);
        look_again(node, copy);
        if (copy->link == NULL) { /* there was no turn yet */
            copy->link = "down";
        }
    }
    return copy;
}

/* Of a replica: for how long, at most, it has not shown what it knows that the
 * primary has; 0: it shows all. */
static void
tell_lag(const struct teller *teller, const struct node_shown *shown,
    uint64_t now_us)
{
    bool has_all = shown->applied >= shown->last;
    bool is_known =
        strcmp(shown->link, "up") == 0 && (has_all || shown->fresh_us != 0);

    tell_known(teller, "lag_ms", is_known,
        has_all ? 0 : (now_us - shown->fresh_us) / 1000);
}

/* How many took how long, as what_below_N. */
static void
tell_waits(const struct teller *teller, const char *what,
    const struct commit_figures *waits)
{
    char name[48];

    for (unsigned i = 0; i < COMMIT_WAITS_POWERS; i++) {
        if (waits->us[i] > 0) {
            (void)snprintf(name, sizeof name, "%s_below_%" PRIu64, what,
                UINT64_C(1) << i);
            tell_u64(teller, name, waits->us[i]);
        }
    }
}

static void
tell_replica_side(const struct node *node, const struct teller *teller,
    const struct node_shown *shown)
{
    uint64_t now_us = node_clock_us(node);

    tell(teller, "primary", "%.*s", (int)shown->primary_len, shown->primary);
    tell(teller, "primary_address", "%s", shown->master);
    tell(teller, "link_status", "%s", shown->link);
    tell(teller, "link_error", "%s", shown->why);
    if (shown->heard_us != 0) {
        tell_u64(teller, "link_silent_ms", (now_us - shown->heard_us) / 1000);
    }
    if (shown->fresh_us != 0) {
        tell_u64(teller, "staleness_ms", (now_us - shown->fresh_us) / 1000);
    }
    tell_lag(teller, shown, now_us);
    tell_u64(teller, "apply_held_up", shown->is_paused);
    tell_waits(teller, "lag_us", &shown->figures.lags);
}

/* What a primary knows of its commits. */
static void
tell_commits(const struct teller *teller, const struct node_shown *shown)
{
    const struct commit_figures *commits = &shown->figures.commits;

    tell_known(teller, "repl_unshipped_bytes", shown->unshipped.is_known,
        shown->unshipped.bytes);
    tell_u64(teller, "commits_late", commits->late);
    tell_waits(teller, "commit_us", commits);
}

static void
tell_positions(const struct teller *teller, const struct node_shown *shown)
{
    /* what the log alone decides is as good as written */
    uint64_t committed =
        shown->committed < shown->written ? shown->committed : shown->written;

    tell_u64(teller, "committed_seq", committed);
    tell_u64(teller, "last_seq", shown->last);
    tell_u64(teller, "written_seq", shown->written);
    tell_u64(teller, "synced_seq", shown->synced);
    tell_u64(teller, "applied_seq", shown->applied);
}

static bool
leads(const struct node_shown *shown)
{
    return shown->role == NODE_PRIMARY || shown->role == NODE_ISOLATED;
}

/* Of a group whose primary etcd knows. */
static void
tell_control(
    const struct teller *teller, const struct node_control_shown *shown)
{
    static const char *const stucks[] = {
#define X(name, word, text) [CONTROL_STUCK_##name] = (word),
        CONTROL_STUCKS(X)
#undef X
    };
    uint64_t now_us = clock_boottime_ns() / 1000;
    bool has_lease = shown->leads && now_us < shown->lease_us;

    if (!shown->is_there) {
        return;
    }
    tell(teller, "authority", "%s",
        has_lease                                  ? "lease"
            : shown->leads && shown->has_authority ? "replicas"
                                                   : "none");
    tell_u64(teller, "lease_ms_left",
        has_lease ? (shown->lease_us - now_us) / 1000 : 0);
    tell(teller, "voters", "%s", shown->voters);
    tell_u64(teller, "need", shown->need);
    tell_u64(teller, "set_in_doubt", shown->is_in_doubt);
    tell_u64(teller, "etcd_term", shown->etcd_term);
    tell(teller, "stuck", "%s", stucks[shown->stuck]);
    tell_known(teller, "etcd_silent_ms", shown->heard_us != 0,
        (now_us - shown->heard_us) / 1000);
    tell_u64(teller, "etcd_unreachable_ms",
        shown->unreachable_us == 0 ? 0
                                   : (now_us - shown->unreachable_us) / 1000);
}

void
node_each_stat(struct node *node, node_stat_fn *stat_fn, void *context)
{
    const struct teller teller = {stat_fn, context};
    const struct node_config *config = &node->config;
    struct node_shown *shown = copy_shown(node);

    if (shown == NULL) {
        return;
    }
    tell(&teller, "role", "%s", role_texts[shown->role]);
    tell(&teller, "group", "%.*s", (int)config->group.len, config->group.text);
    tell(&teller, "node", "%.*s", (int)config->name.len, config->name.text);
    tell_u64(&teller, "term", shown->term);
    tell(&teller, "branch", "%016" PRIx64, shown->branch);
    tell_control(&teller, &shown->control);
    if (!leads(shown)) {
        tell_replica_side(node, &teller, shown);
    }
    tell_positions(&teller, shown);
    tell_u64(&teller, "refused_term", shown->refused_term);
    tell_u64(&teller, "replicas", shown->n_replicas);
    tell_u64(&teller, "feeds", shown->n_feeds);
    tell_u64(&teller, "strangers", shown->n_strangers);
    tell_u64(&teller, "places", shown->n_places);
    if (leads(shown)) {
        tell_commits(&teller, shown);
    }
    tell_u64(&teller, "semi_sync", config->semi_sync);
    tell_u64(&teller, "min_replicas", config->min_replicas);
    tell_u64(&teller, "priority", config->priority);
    tell_u64(&teller, "changes_refused_now", shown->is_few);
    tell_u64(&teller, "doubtful", shown->is_doubtful);
#define X(name, text) tell_u64(&teller, #name, shown->figures.name);
    NODE_FIGURES(X)
#undef X
    free(shown);
}

/* "3 17": as the format has them; "unknown unknown". */
static void
lag_texts(
    const struct node_lag *lag, uint64_t now_us, char bytes[24], char ms[24])
{
    uint64_t lag_us = lag->from_us == 0 ? 0 : now_us - lag->from_us;

    if (!lag->is_known) {
        strcpy(bytes, "unknown");
        strcpy(ms, "unknown");
        return;
    }
    (void)snprintf(bytes, 24, "%" PRIu64, lag->bytes);
    (void)snprintf(ms, 24, "%" PRIu64, (lag_us + 999) / 1000);
}

static void
tell_one_replica(const struct node *node, const struct teller *outer,
    const struct node_replica *replica)
{
    uint64_t now_us = node_clock_us(node);
    char lag_bytes[24], lag_ms[24];

    lag_texts(&replica->lag, now_us, lag_bytes, lag_ms);
    tell(outer, replica->name_len > 0 ? replica->name : "unknown",
        "address=%s state=%s level=%s written=%" PRIu64 " synced=%" PRIu64
        " applied=%" PRIu64 " lag_bytes=%s lag_ms=%s silent_ms=%" PRIu64
        " rtt_us=%u sent_bytes=%" PRIu64
        " priority=%u in_set=%u doubtful=%u disk_full=%u held_up=%u",
        replica->address, replica->state, level_texts[replica->level],
        replica->written, replica->synced, replica->applied, lag_bytes, lag_ms,
        (now_us - replica->heard_us) / 1000, replica->rtt_us,
        replica->sent_bytes, replica->priority, replica->is_in_set,
        (replica->flags & ACK_DOUBTFUL) != 0,
        (replica->flags & ACK_DISK_FULL) != 0,
        (replica->flags & ACK_HELD_UP) != 0);
}

void
node_each_replica(struct node *node, node_stat_fn *stat_fn, void *context)
{
    const struct teller teller = {stat_fn, context};
    struct node_shown *shown = copy_shown(node);

    if (shown == NULL) {
        return;
    }
    for (unsigned i = 0; i < shown->n_replicas; i++) {
        tell_one_replica(node, &teller, &shown->replica[i]);
    }
    for (unsigned i = 0; i < shown->n_feeds; i++) {
        tell_one_replica(node, &teller, &shown->feed[i]);
    }
    free(shown);
}
