/* SPDX-License-Identifier: BSD-3-Clause */
/* Times of requests.
 *
 *   read --> turn --> sent                          hot
 *              +--> parked --> turn --> sent        cold, room
 *              +--> held at the gate --> sent       commit
 *              +--> ready list, full --> turn       (queue, socket)
 *
 * The clock is read once a turn, at its end, which is taken for the beginning
 * of the next one, and once for the first turn in a round of the worker's
 * loop. What a turn does not wait for is its own work, so only waits are
 * measured; a turn that waits for nothing pays for the clock and one count.
 *
 * since_ns stays while requests that were read then are under way: who waits
 * behind another one waits. What was read meanwhile has come later, so its
 * times are too long by what is left of that; they are never too short.
 *
 * The slow log wants the first command of a turn, which is looked at when it
 * was slow only. Where the replies are held, its beginning is copied; else its
 * bytes are where the turn has found them, in the worker's buffer. */
#include "net/timing.h"

#include "net/conn.h"
#include "net/conn_priv.h"
#include "proto/command_key.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/lock.h"
#include "base/uri.h"
#include "session/watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NS_PER_US = 1000, US_PER_MS = 1000 };

/* The spare one is for all that have none: what it says is of no use, and does
 * no harm. */
void
timing__create(struct conn *conn)
{
    conn->timing = calloc(1, sizeof *conn->timing);
    if (conn->timing == NULL) {
        conn->timing = &conn->worker->spare_timing;
    }
}

void
timing_destroy(struct conn *conn)
{
    if (conn->timing != &conn->worker->spare_timing) {
        free(conn->timing);
    }
    conn->timing = NULL;
}

void
timing__begin_round(struct worker *worker)
{
    worker->now_ns = fast_clock_ns(&worker->clock);
    worker->round_ns = worker->now_ns;
}

/* Reads the clock. */
static inline uint64_t
now_exactly(struct worker *worker)
{
    uint64_t now_ns = fast_clock_ns(&worker->clock);
    if (worker->now_ns == 0) {
        worker->round_ns = now_ns;
    }
    worker->now_ns = now_ns;
    return now_ns;
}

static void
add_phase(struct timing *timing, enum slow_phase phase, uint64_t ns)
{
    uint64_t us = timing->phase_us[phase] + ns / NS_PER_US;
    timing->phase_us[phase] = us < UINT32_MAX ? (uint32_t)us : UINT32_MAX;
}

static void
take_path(struct timing *timing, enum latency_path path)
{
    timing->path = path > timing->path ? (uint8_t)path : timing->path;
}

static void
begin_wait(struct timing *timing, enum slow_phase phase, uint64_t now_ns)
{
    timing->wait_ns = now_ns;
    timing->has_waited = true;
    timing->waits_for = (uint8_t)phase;
}

void
timing__end_wait(struct conn *conn, uint64_t now_ns)
{
    struct timing *timing = conn->timing;
    uint64_t ns = now_ns > timing->wait_ns ? now_ns - timing->wait_ns : 0;
    add_phase(timing, (enum slow_phase)timing->waits_for, ns);
    if (timing->waits_for == SLOW_queue) {
        hist_add(&conn->worker->latency->loop[LATENCY_LOOP_queue], ns, 1);
    }
    timing->wait_ns = 0;
}

void
timing_arrive(struct conn *conn)
{
    struct worker *worker = conn->worker;
    if (worker->now_ns == 0) {
        timing__begin_round(worker);
    }
    if (conn->timing == NULL) {
        timing__create(conn);
    }
    if (conn->timing->since_ns == 0) {
        conn->timing->since_ns = worker->now_ns;
        begin_wait(conn->timing, SLOW_commit, worker->now_ns);
    }
}

void
timing_keep(struct conn *conn, struct timing_turn *turn)
{
    struct worker *worker = conn->worker;
    size_t n = sizeof worker->command;
    n = turn->len < n ? turn->len : n;
    memcpy(worker->command, turn->bytes, n);
    turn->bytes = worker->command;
    turn->len = n;
}

/* For how long the worker has waited for locks since the last turn's end. */
static inline uint64_t
take_lock_ns(struct worker *worker)
{
    uint64_t all_ns = lock_waited_ns();
    uint64_t ns = all_ns - worker->lock_ns;
    worker->lock_ns = all_ns;
    if (__builtin_expect(ns != 0, 0)) {
        metric_add(&worker->metrics, METRIC_lock_wait_us, ns / NS_PER_US);
    }
    return ns;
}

/* What has been waited for within the turn. */
static inline void
note_turn(struct conn *conn)
{
    uint64_t lock_ns = take_lock_ns(conn->worker);
    uint64_t room_ns = conn->worker->executor.tally.room_ns;
    struct timing *timing = conn->timing;
    if (__builtin_expect(lock_ns != 0, 0)) {
        timing->has_waited = true;
        add_phase(timing, SLOW_lock, lock_ns);
    }
    if (__builtin_expect(room_ns != 0, 0)) { /* it was taken for cold */
        uint64_t most = (uint64_t)timing->phase_us[SLOW_cold] * NS_PER_US;
        room_ns = room_ns < most ? room_ns : most;
        timing->phase_us[SLOW_cold] -= (uint32_t)(room_ns / NS_PER_US);
        add_phase(timing, SLOW_room, room_ns);
        take_path(timing, LATENCY_PATH_room);
    }
}

/* The same as go_on where something waits, or has waited. */
static __attribute__((noinline)) void
go_on_waiting(struct conn *conn, enum session_state state, uint64_t now_ns)
{
    struct timing *timing = conn->timing;
    switch (state) {
    case SESSION_PARKED:
        take_path(timing, LATENCY_PATH_cold);
        begin_wait(timing,
            session_waits_for_records(&conn->session) ? SLOW_cold : SLOW_queue,
            now_ns);
        break;
    case SESSION_FULL:
        begin_wait(
            timing, conn__is_drained(conn) ? SLOW_queue : SLOW_socket, now_ns);
        break;
    case SESSION_YIELD:
        begin_wait(timing, SLOW_queue, now_ns);
        break;
    case SESSION_READY:
    case SESSION_CLOSE:
        if (timing->has_waited) {
            *timing = (struct timing){.since_ns = 0};
        }
        timing->since_ns = 0;
        break;
    }
}

/* What follows for those that are not answered yet, if any. */
static inline void
go_on(struct conn *conn, enum session_state state, uint64_t now_ns)
{
    struct timing *timing = conn->timing;
    if (__builtin_expect(state == SESSION_READY && !timing->has_waited, 1)) {
        timing->since_ns = 0;
    } else {
        go_on_waiting(conn, state, now_ns);
    }
}

static const enum metric slow_metrics[SLOW_PHASE_COUNT] = {
#define X(name, text) [SLOW_##name] = METRIC_slow_by_##name,
    SLOW_PHASES(X)
#undef X
};

/* The names of who is at the other end. */
static void
name_client(const struct conn *conn, struct slow_entry *entry)
{
    char addr[CONN_ADDR_BYTES];
    char user[LOGIN_WORD_MAX + 1];
    struct access *access = conn->worker->executor.access;
    conn_list_peer_addr(&conn->peer, conn->session.fd, addr);
    snprintf(entry->client, sizeof entry->client, "%.*s",
        (int)sizeof entry->client - 1, addr);
    if (access != NULL && access->name_fn != NULL &&
        access->name_fn(access, conn->session.pass, user)) {
        char text[URI_BYTES * LOGIN_WORD_MAX + 1];
        text[uri_encode(user, strlen(user), text)] = '\0';
        snprintf(entry->user, sizeof entry->user, "%.*s",
            (int)sizeof entry->user - 1, text);
    }
}

static void
tell_watchers(struct conn *conn, const struct slow_entry *entry)
{
    char text[SLOW_TEXT_BYTES];
    struct watch_ring *ring = conn->worker->config.watch;
    if (ring != NULL && (watch_wanted(ring->hub) & WATCH_SLOW) != 0) {
        struct watch_event event = {.type = WATCH_SLOW_COMMAND,
            .fd = conn->session.fd,
            .key_len = (uint16_t)slow_format(entry, text)};
        watch_report(ring, &event, text);
    }
}

/* Of what was answered last, where nothing else is known. */
static uint8_t
last_verb(const struct conn *conn)
{
    uint8_t verb =
        atomic_load_explicit(&conn->entry.verb, memory_order_relaxed);
    return verb < LATENCY_VERB_COUNT ? verb : LATENCY_other;
}

/* Requests that took so long are slow. */
static __attribute__((noinline)) void
log_slow(struct conn *conn, const struct timing *timing,
    const struct latency_tally *tally, const char *bytes, size_t len,
    uint64_t n_bytes, uint64_t ns)
{
    struct slow_entry entry = {.unix_ms = clock_unix_us() / US_PER_MS,
        .us = ns / NS_PER_US,
        .bytes = n_bytes,
        .conn = conn->session.fd,
        .verb = last_verb(conn)};
    struct command_key key;
    uint32_t most = 0;
    for (unsigned i = 0; i < SLOW_PHASE_COUNT; i++) {
        entry.phase_us[i] = timing->phase_us[i];
    }
    for (unsigned verb = 0; verb < LATENCY_VERB_COUNT; verb++) {
        entry.keys += tally->n[verb];
        if (tally->n[verb] > most) {
            most = tally->n[verb];
            entry.verb = (uint8_t)verb;
        }
    }
    /* what a stranger says may be a password in the wrong place */
    command_key_read(bytes, session_is_stranger(&conn->session) ? 0 : len,
        conn->session.binding == SESSION_BINARY, &key);
    if (key.is_stats) {
        return; /* who looks at what is slow would drive it out */
    }
    if (entry.keys < key.n_keys) {
        entry.keys = key.n_keys;
    }
    entry.key_len =
        (uint8_t)(key.key.len < SLOW_KEY_BYTES ? key.key.len : SLOW_KEY_BYTES);
    memcpy(entry.key, bytes + key.key.at, entry.key_len);
    name_client(conn, &entry);
    slow_judge(&entry);
    metric_add(&conn->worker->metrics, slow_metrics[entry.why], 1);
    slow_add(conn->worker->slow, &entry);
    tell_watchers(conn, &entry);
}

/* Counts what has been answered. */
static inline void
record(struct conn *conn, const struct timing *timing,
    const struct latency_tally *tally, const char *bytes, size_t len,
    uint64_t n_bytes, uint64_t now_ns)
{
    struct worker *worker = conn->worker;
    uint64_t ns = now_ns > timing->since_ns ? now_ns - timing->since_ns : 0;
    latency_add(worker->latency, tally, (enum latency_path)timing->path, ns);
    if (__builtin_expect(ns >= worker_slow_ns(worker), 0)) {
        log_slow(conn, timing, tally, bytes, len, n_bytes, ns);
    }
}

/* Some request has been answered, mostly: of one of their verbs. */
static inline void
note_verb(struct conn *conn, const struct latency_tally *tally)
{
    if (tally->verbs != 0) {
        /* relaxed: to be shown only */
        atomic_store_explicit(&conn->entry.verb,
            (uint8_t)__builtin_ctz(tally->verbs), memory_order_relaxed);
    }
}

/* The same as timing_sent where there is more to it than one verb and no
 * wait. */
static __attribute__((noinline)) void
finish(struct conn *conn, const struct timing_turn *turn,
    enum session_state state, size_t bytes)
{
    struct latency_tally *tally = &conn->worker->executor.tally;
    uint64_t now_ns = conn->worker->now_ns;
    note_turn(conn);
    if (tally->verbs != 0) {
        record(
            conn, conn->timing, tally, turn->bytes, turn->len, bytes, now_ns);
        note_verb(conn, tally);
        latency_clear(tally);
    }
    go_on(conn, state, now_ns);
}

static __attribute__((noinline)) void
finish_by_system_clock(struct conn *conn, const struct timing_turn *turn,
    enum session_state state, size_t bytes)
{
    (void)now_exactly(conn->worker);
    finish(conn, turn, state, bytes);
}

/* The most frequent end of a turn. Fewer instructions than finish has: no call
 * whose end is waited for, so that no register has to be saved. */
void
timing_sent(struct conn *conn, const struct timing_turn *turn,
    enum session_state state, size_t bytes)
{
    struct worker *worker = conn->worker;
    if (!fast_clock_is_fast(&worker->clock)) {
        finish_by_system_clock(conn, turn, state, bytes);
        return;
    }
    struct latency_tally *tally = &worker->executor.tally;
    struct timing *timing = conn->timing;
    uint64_t now_ns = fast_clock_read(&worker->clock);
    uint64_t ns = now_ns - timing->since_ns;
    uint32_t verbs = tally->verbs;
    worker->now_ns = now_ns; /* a turn has begun, so the round has, too */
    /* a clock that goes back makes ns large, and that is seen to by finish */
    if (state != SESSION_READY || timing->has_waited || verbs == 0 ||
        (verbs & (verbs - 1)) != 0 || ns >= worker_slow_ns(worker) ||
        (int64_t)ns < 0 || tally->room_ns != 0 ||
        lock_waited_ns() != worker->lock_ns) {
        finish(conn, turn, state, bytes);
        return;
    }
    unsigned verb = (unsigned)__builtin_ctz(verbs);
    hist_add(
        &worker->latency->request[verb][LATENCY_PATH_hot], ns, tally->n[verb]);
    /* relaxed: to be shown only */
    atomic_store_explicit(
        &conn->entry.verb, (uint8_t)verb, memory_order_relaxed);
    tally->n[verb] = 0;
    tally->verbs = 0;
    timing->since_ns = 0;
}

static struct timing_held *
take_held(struct worker *worker)
{
    struct timing_held *held = worker->free_held;
    if (held == NULL) {
        return malloc(sizeof *held);
    }
    worker->free_held = held->next;
    worker->n_free_held--;
    return held;
}

static void
give_held_back(struct worker *worker, struct timing_held *held)
{
    if (worker->n_free_held == TIMING_HELD_KEPT) {
        free(held);
        return;
    }
    held->next = worker->free_held;
    worker->free_held = held;
    worker->n_free_held++;
}

void
timing_fini(struct worker *worker)
{
    while (worker->free_held != NULL) {
        free(take_held(worker));
    }
    ASSERT(worker->n_free_held == 0);
}

/* The first that is noted there. All of it is written but next. The bytes are
 * in the worker's buffer, or in its command, where as many as are copied can be
 * read: a copy of one length is a few wide loads and stores. */
static inline void
begin_hold(struct conn *conn, const struct timing_turn *turn, uint64_t now_ns,
    struct timing_held *held)
{
    const struct worker *worker = conn->worker;
    _Static_assert(sizeof worker->read_buf >= TIMING_COMMAND_BYTES &&
            sizeof worker->command >= TIMING_COMMAND_BYTES,
        "see above");
    ASSERT(turn->bytes == worker->read_buf || turn->bytes == worker->command);
    if (conn->timing->has_waited) {
        held->timing = *conn->timing;
    } else { /* the waits are not looked at then */
        held->timing.since_ns = conn->timing->since_ns;
        held->timing.path = LATENCY_PATH_hot;
        held->timing.has_waited = false;
    }
    held->timing.wait_ns = now_ns;
    memcpy(held->command, turn->bytes, TIMING_COMMAND_BYTES);
    held->len =
        (uint8_t)(turn->len < TIMING_COMMAND_BYTES ? turn->len
                                                   : TIMING_COMMAND_BYTES);
}

void
timing_hold(struct conn *conn, const struct timing_turn *turn,
    enum session_state state, size_t bytes, struct timing_held **at)
{
    struct worker *worker = conn->worker;
    struct latency_tally *tally = &worker->executor.tally;
    struct timing_held *held = *at;
    uint64_t now_ns = now_exactly(worker);
    note_turn(conn);
    note_verb(conn, tally);
    if (held != NULL) {
        held->bytes += bytes;
        latency_tally_move(&held->tally, tally);
    } else if ((held = take_held(worker)) != NULL) {
        *at = held;
        begin_hold(conn, turn, now_ns, held);
        held->bytes = bytes;
        held->tally = *tally;
    }
    latency_clear(tally);
    go_on(conn, state, now_ns);
}

/* What has been held was slow. */
static __attribute__((noinline)) void
log_held(struct conn *conn, const struct timing_held *held, uint64_t now_ns)
{
    struct timing timing = {.since_ns = held->timing.since_ns};
    uint64_t wait_ns = held->timing.wait_ns;
    if (held->timing.has_waited) {
        timing = held->timing;
    }
    add_phase(&timing, SLOW_commit, now_ns > wait_ns ? now_ns - wait_ns : 0);
    log_slow(conn, &timing, &held->tally, held->command, held->len,
        held->bytes, now_ns - timing.since_ns);
}

void
timing_pass(struct conn *conn, struct timing_held *held)
{
    struct worker *worker = conn->worker;
    if (held == NULL) {
        return;
    }
    uint64_t now_ns = now_exactly(worker);
    uint64_t since_ns = held->timing.since_ns;
    uint64_t ns = now_ns > since_ns ? now_ns - since_ns : 0;
    latency_add(worker->latency, &held->tally,
        held->timing.path > LATENCY_PATH_commit
            ? (enum latency_path)held->timing.path
            : LATENCY_PATH_commit,
        ns);
    if (__builtin_expect(ns >= worker_slow_ns(worker), 0)) {
        log_held(conn, held, now_ns);
    }
    give_held_back(worker, held);
}

void
timing_read(struct conn *conn, uint64_t since_ns)
{
    static const struct latency_tally none;
    uint64_t now_ns = now_exactly(conn->worker);
    uint64_t ns = now_ns > since_ns ? now_ns - since_ns : 0;
    struct timing timing = {.since_ns = since_ns};
    if (ns >= worker_slow_ns(conn->worker)) {
        add_phase(&timing, SLOW_socket, ns);
        log_slow(conn, &timing, &none, "", 0, 0, ns);
    }
}

/* Of short rounds one in SHORT_ROUNDS stands for as many. */
void
timing__note_round(struct worker *worker)
{
    enum { SHORT_ROUNDS = 16, LONG_NS = 1000000 };
    uint64_t ns = worker->now_ns - worker->round_ns;
    bool is_long = ns >= LONG_NS; /* also where the clock has gone back */
    worker->now_ns = 0;
    if (!is_long && worker->n_rounds++ % SHORT_ROUNDS != 0) {
        return;
    }
    ns = (int64_t)ns < 0 ? 0 : ns;
    hist_add(&worker->latency->loop[LATENCY_LOOP_lag], ns,
        is_long ? 1 : SHORT_ROUNDS);
}
