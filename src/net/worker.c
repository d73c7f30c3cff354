/* SPDX-License-Identifier: BSD-3-Clause */
/* The worker: one loop of libuv's, its connections, and a mailbox.
 *
 *   poll:    sockets --> turns; bell --> mail; ring --> answers of cold reads
 *   idle:    ready connections, one turn each
 *   timers:  the sweep looks at deadlines, and verifies the connections
 *   prepare: cold reads are begun, the gate commits, the room is cleared
 *
 * Mail. Other threads reach a worker through its mailbox only: new sockets from
 * the listener, sessions that the store has answered, chores that helpers have
 * done, and the order to stop. They put it there under the lock and ring the
 * bell (bell.h), which they hold from before: the worker may take what it finds
 * at another one's ringing, and end; it must not be gone while someone still
 * rings. They ring without the lock: the bell wakes the worker, which would
 * wait for it. The worker opens WORKER_OPENS_MAX sockets at a time, so that
 * those who are there have their turns in between.
 *
 * Grace periods. The worker is an online reader of the store's qsbr while it
 * runs callbacks. libuv runs I/O callbacks inside its poll, after it has slept
 * there, so the worker goes offline in uv_prepare, just before the poll, and
 * every callback comes back online through worker__enter. No callback keeps a
 * pointer that it got from the store's schema for the next one.
 *
 * Ready connections (a turn's budget used up, or room for replies again) go on
 * from a uv_idle handle. While it is active the poll does not sleep, and each
 * connection gets one turn per iteration of the loop, after the events of all
 * others.
 *
 * uv_prepare commits the replies that wait at the gate (gate.h), once for all
 * turns since the last poll, and sends them. A connection that becomes ready
 * there starts the idle handle, so that the poll does not sleep. It also begins
 * the reads of cold records that turns have asked for (call/ring.h), some in
 * each iteration; the idle handle runs while others are left. What the ring
 * answers goes on at once, without the mailbox. */
#include "net/worker.h"

#include "base/assert.h"
#include "base/err.h"
#include "call/ring.h"
#include "net/conn.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { NS_PER_MS = 1000000 };

void
worker__enter(struct worker *worker)
{
    qsbr_online(worker->config.store->qsbr, &worker->reader);
}

static void
on_idle(uv_idle_t *idle)
{
    struct worker *worker = idle->data;
    worker__enter(worker);
    /* those that become ready meanwhile are for the next iteration */
    unsigned n = worker->n_ready;
    for (; n > 0 && worker->first_ready != NULL; n--) {
        struct conn *conn = worker->first_ready;
        worker__unready(worker, conn);
        conn_continue(conn);
    }
    if (worker->n_ready == 0) {
        uv_idle_stop(idle);
    }
}

static void
on_prepare(uv_prepare_t *prepare)
{
    struct worker *worker = prepare->data;
    qsbr_offline(&worker->reader);
    if (worker->ring != NULL && store_ring_submit(worker->ring)) {
        uv_idle_start(&worker->idle, on_idle); /* the poll must not sleep */
    }
    gate_commit(&worker->gate); /* may write to a disk */
    if (worker->now_ns != 0) {
        timing__note_round(worker);
    }
    if (worker->room.is_over) {
        (void)conn_room_make(worker, NULL, 0); /* none: it looks again */
    }
    if (worker->config.verifies) {
        conn_verify_all(worker);
    }
}

void
worker__ready(struct worker *worker, struct conn *conn)
{
    if (conn->is_ready) {
        return;
    }
    conn->is_ready = true;
    conn->next_ready = NULL;
    if (worker->n_ready++ == 0) {
        worker->first_ready = conn;
        uv_idle_start(&worker->idle, on_idle);
    } else {
        worker->last_ready->next_ready = conn;
    }
    worker->last_ready = conn;
}

void
worker__unready(struct worker *worker, struct conn *conn)
{
    struct conn **link = &worker->first_ready;
    struct conn *before = NULL;
    if (!conn->is_ready) {
        return;
    }
    ASSERT(worker->n_ready > 0);
    while (*link != conn) {
        before = *link;
        link = &before->next_ready;
    }
    *link = conn->next_ready;
    if (worker->last_ready == conn) {
        worker->last_ready = before;
    }
    conn->is_ready = false;
    worker->n_ready--;
}

static void
on_sweep(struct alarm *sweep)
{
    struct worker *worker =
        (struct worker *)((char *)sweep - offsetof(struct worker, sweep));
    worker__enter(worker);
    conn_verify_all(worker);
    alarm_set(sweep, WORKER_SWEEP_MS);
    conn_room_trim(&worker->room);
    fast_clock_adjust(&worker->clock);
    hot_tick(&worker->executor.hot);
    uint64_t now_ms = alarm_now_ms(&worker->sweep);
    bool give_up = worker->stopping && now_ms >= worker->stop_deadline_ms;
    struct conn *next;
    for (struct conn *conn = worker->conns; conn != NULL; conn = next) {
        next = conn->next;
        if (give_up) {
            conn_close(conn);
        } else {
            conn_sweep(conn, now_ms);
        }
    }
}

static void
on_poll_closed(uv_handle_t *handle)
{
    struct worker *worker = handle->data;
    store_ring_close(&worker->ring);
}

/* No connection is left and none will come: ends the loop. */
static void
close_handles(struct worker *worker)
{
    gate_fini(&worker->gate); /* first: it rings */
    bell_close(&worker->bell);
    uv_close((uv_handle_t *)&worker->prepare, NULL);
    uv_close((uv_handle_t *)&worker->idle, NULL);
    alarm_close(&worker->sweep);
    if (worker->ring != NULL) {
        uv_close((uv_handle_t *)&worker->poll, on_poll_closed);
    }
}

void
worker__conn_gone(struct worker *worker)
{
    if (worker->stopping && worker->conns == NULL) {
        close_handles(worker);
    }
}

static void
begin_stop(struct worker *worker)
{
    struct conn *next;
    worker->stopping = true;
    worker->stop_deadline_ms =
        alarm_now_ms(&worker->sweep) + worker->config.stop_timeout_ms;
    if (worker->conns == NULL) {
        close_handles(worker);
        return;
    }
    for (struct conn *conn = worker->conns; conn != NULL; conn = next) {
        next = conn->next;
        conn_end(conn);
    }
}

/* Puts the mail, the latest first, behind what waits to be opened. */
static void
sort_fds(struct worker *worker, struct mail_fd *mail)
{
    struct mail_fd *first = NULL;
    struct mail_fd **end = &worker->opening;
    while (mail != NULL) {
        struct mail_fd *before = mail->next;
        mail->next = first;
        first = mail;
        mail = before;
    }
    while (*end != NULL) {
        end = &(*end)->next;
    }
    *end = first;
}

/* Some of them; at a stop all. */
static void
open_fds(struct worker *worker)
{
    for (int i = 0; worker->opening != NULL; i++) {
        struct mail_fd *mail = worker->opening;
        if (i == WORKER_OPENS_MAX && !worker->stopping) {
            bell_hold(&worker->bell);
            bell_ring(&worker->bell); /* the others: after this poll */
            return;
        }
        worker->opening = mail->next;
        if (worker->stopping) {
            close(mail->fd);
            if (!mail->is_inner) {
                conn_gauge_leave(worker->config.gauge);
            }
        } else {
            conn_open(worker, mail);
        }
        free(mail);
    }
}

static void
wake_all(struct conn *woken)
{
    while (woken != NULL) {
        struct conn *next = woken->next_woken;
        conn_woken(woken);
        woken = next;
    }
}

static void
wake_watchers(struct worker *worker)
{
    for (unsigned i = 0; i < worker->n_watching; i++) {
        worker__ready(worker, worker->watching[i]);
    }
}

void
worker__watches(struct worker *worker, struct conn *conn)
{
    for (unsigned i = 0; i < worker->n_watching; i++) {
        if (worker->watching[i] == conn) {
            return;
        }
    }
    ASSERT(worker->n_watching < WATCH_MAX);
    worker->watching[worker->n_watching++] = conn;
}

void
worker__unwatch(struct worker *worker, struct conn *conn)
{
    for (unsigned i = 0; i < worker->n_watching; i++) {
        if (worker->watching[i] == conn) {
            worker->watching[i] = worker->watching[--worker->n_watching];
            return;
        }
    }
}

/* At once: what they have asked for and not got they may not have any more. */
static void
turn_out(struct worker *worker)
{
    struct conn *next;
    for (struct conn *conn = worker->conns; conn != NULL; conn = next) {
        next = conn->next;
        if (!conn_is_closing(conn) && access_is_void(&conn->session)) {
            metric_add(&worker->metrics, METRIC_revoked_logins, 1);
            conn_close(conn);
        }
    }
}

static void
close_unwanted(struct worker *worker)
{
    struct conn *next;
    for (struct conn *conn = worker->conns; conn != NULL; conn = next) {
        next = conn->next;
        /* relaxed: it was set before this thread was told */
        if (!conn_is_closing(conn) &&
            atomic_load_explicit(
                &conn->entry.is_unwanted, memory_order_relaxed)) {
            metric_add(&worker->metrics, METRIC_killed, 1);
            conn->reason = "killed";
            conn_close(conn);
        }
    }
}

static void
end_chores(struct chore *chore)
{
    while (chore != NULL) {
        struct chore *next = chore->next;
        ASSERT(chore->magic == CHORE_MAGIC);
        chore->magic = 0;
        chore->done_fn(chore);
        chore = next;
    }
}

static void
on_mail(struct bell *bell)
{
    struct worker *worker =
        (struct worker *)((char *)bell - offsetof(struct worker, bell));
    ASSERT(worker->magic == WORKER_MAGIC);
    worker__enter(worker);
    mutex_lock(&worker->lock);
    struct mail_fd *fds = worker->new_fds;
    struct conn *woken = worker->woken;
    struct chore *chores = worker->chores_done;
    bool stop = worker->must_stop;
    bool has_lines = worker->has_lines;
    bool has_users = worker->has_users;
    worker->has_lines = false;
    bool has_unwanted = worker->has_unwanted;
    worker->has_users = false;
    worker->has_unwanted = false;
    worker->new_fds = NULL;
    worker->woken = NULL;
    worker->chores_done = NULL;
    mutex_unlock(&worker->lock);
    if (has_users) {
        turn_out(worker);
    }
    if (has_unwanted) {
        close_unwanted(worker);
    }
    gate_look(&worker->gate);
    wake_all(woken);
    end_chores(chores);
    sort_fds(worker, fds);
    open_fds(worker);
    if (has_lines) {
        wake_watchers(worker);
    }
    if (stop && !worker->stopping) {
        begin_stop(worker);
        open_fds(worker); /* closes those that are left */
    }
}

/* What has been left is announced: the bell is held. Unlocks. */
static void
announce(struct worker *worker)
{
    mutex_assert_held(&worker->lock);
    mutex_unlock(&worker->lock);
    bell_ring(&worker->bell);
}

static void
begin_mail(struct worker *worker)
{
    ASSERT(worker->magic == WORKER_MAGIC);
    bell_hold(&worker->bell);
    mutex_lock(&worker->lock);
}

void
worker__chore_done(struct worker *worker, struct chore *chore)
{
    begin_mail(worker);
    chore->next = worker->chores_done;
    worker->chores_done = chore;
    announce(worker);
}

void
worker__mail_woken(struct worker *worker, struct conn *conn)
{
    begin_mail(worker);
    conn->next_woken = worker->woken;
    worker->woken = conn;
    announce(worker);
}

void
worker__mail_lines(struct worker *worker)
{
    begin_mail(worker);
    worker->has_lines = true;
    announce(worker);
}

static void
on_ring(uv_poll_t *poll, int status, int events)
{
    struct worker *worker = poll->data;
    ASSERT(worker->magic == WORKER_MAGIC);
    worker__enter(worker);
    (void)status; /* of a poll that fails: there is nothing to be reaped */
    (void)events;
    worker->is_reaping = true;
    store_ring_reap(worker->ring);
    worker->is_reaping = false;
    struct conn *woken = worker->answered;
    worker->answered = NULL;
    wake_all(woken);
}

/* On the worker's thread: the ring is its own. */
static void
open_ring(struct worker *worker)
{
    if (store_ring_open(worker->config.store, &worker->ring) != 0) {
        return;
    }
    worker->poll.data = worker;
    if (uv_poll_init(
            &worker->loop, &worker->poll, store_ring_fd(worker->ring)) != 0) {
        store_ring_close(&worker->ring);
        return;
    }
    uv_poll_start(&worker->poll, UV_READABLE, on_ring);
    worker->executor.ring = worker->ring;
}

bool
worker__wakes(struct worker *worker, struct conn *conn)
{
    if (!pthread_equal(worker->self, pthread_self()) || !worker->is_reaping) {
        return false;
    }
    conn->next_woken = worker->answered;
    worker->answered = conn;
    return true;
}

static void *
run(void *arg)
{
    struct worker *worker = arg;
    struct qsbr *qsbr = worker->config.store->qsbr;
    worker->self = pthread_self();
    open_ring(worker);
    qsbr_register(qsbr, &worker->reader);
    uv_run(&worker->loop, UV_RUN_DEFAULT);
    qsbr_offline(&worker->reader);
    qsbr_unregister(qsbr, &worker->reader);
    return NULL;
}

/* Has libuv make its table of descriptors as large as it can become: later it
 * would end the process where there is no memory to make it larger. Where that
 * cannot be done it grows as it does. */
static int
widen_table(struct worker *worker)
{
    unsigned fds_max = worker->config.fds_max;
    void *room = malloc(2 * (fds_max + 2) * sizeof(void *));
    if (room == NULL) {
        return ERR_NO_MEMORY;
    }
    free(room);
    int fd = fds_max == 0 ? -1 : eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int last = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, (int)fds_max - 1);
    if (last >= 0 && uv_poll_init(&worker->loop, &worker->widest, last) == 0) {
        uv_poll_start(&worker->widest, UV_READABLE, NULL);
        uv_close((uv_handle_t *)&worker->widest, NULL);
    }
    if (last >= 0) {
        close(last);
    }
    if (fd >= 0) {
        close(fd);
    }
    return 0;
}

static int
init_loop(struct worker *worker)
{
    if (uv_loop_init(&worker->loop) != 0) {
        return ERR_SYSTEM;
    }
    int err = widen_table(worker);
    if (err == 0) {
        err = bell_init(&worker->bell, &worker->loop, on_mail);
    }
    if (err != 0) {
        uv_run(&worker->loop, UV_RUN_DEFAULT);
        uv_loop_close(&worker->loop);
        return err;
    }
    uv_prepare_init(&worker->loop, &worker->prepare);
    uv_idle_init(&worker->loop, &worker->idle);
    alarm_init(&worker->sweep, &worker->loop, worker->config.clock, on_sweep);
    worker->prepare.data = worker;
    worker->idle.data = worker;
    uv_prepare_start(&worker->prepare, on_prepare);
    alarm_set(&worker->sweep, WORKER_SWEEP_MS);
    return 0;
}

/* What a worker has of its own besides; give_back undoes it, also where it has
 * failed. */
static int
take_memory(struct worker *worker)
{
    const struct worker_config *config = &worker->config;
    worker_set_slow(worker, config->slow_ms);
    worker->latency = calloc(1, sizeof *worker->latency);
    worker->slow = calloc(1, sizeof *worker->slow);
    if (config->tls != NULL) {
        worker->cipher_buf = malloc(WORKER_CIPHER_BYTES);
    }
    return worker->latency == NULL || worker->slow == NULL ||
            (config->tls != NULL && worker->cipher_buf == NULL)
        ? ERR_NO_MEMORY
        : 0;
}

static void
give_back(struct worker *worker)
{
    free(worker->slow);
    timing_fini(worker);
    free(worker->latency);
    free(worker->cipher_buf);
}

static void
free_worker(struct worker *worker)
{
    bell_fini(&worker->bell);
    uv_loop_close(&worker->loop);
    mutex_fini(&worker->lock);
    conn_list__fini(&worker->conn_list);
    executor_fini(&worker->executor);
    slow_fini(worker->slow);
    buf_fini(&worker->out);
    buf_fini(&worker->sealed);
    give_back(worker);
    worker->magic = 0;
    free(worker);
}

int
worker_start(const struct worker_config *config, struct worker **out)
{
    struct worker *worker;
    if (posix_memalign(
            (void **)&worker, _Alignof(struct worker), sizeof *worker) != 0) {
        return ERR_NO_MEMORY;
    }
    *worker = (struct worker){.magic = WORKER_MAGIC, .config = *config};
    worker->config.clock = clock_or_system(config->clock);
    int err = take_memory(worker);
    if (err == 0) {
        err = init_loop(worker);
    }
    if (err != 0) {
        give_back(worker);
        free(worker);
        return err;
    }
    mutex_init(&worker->lock);
    slow_init(worker->slow);
    fast_clock_init(&worker->clock);
    conn_list__init(&worker->conn_list);
    executor_init(&worker->executor, config->store, &worker->metrics,
        config->admin, config->value_bytes_max);
    worker->executor.binding = config->binding;
    worker->executor.rules = config->rules;
    conn_room_init(&worker->room, config->rooms, config->n_workers,
        config->value_bytes_max);
    worker->executor.access = config->access;
    worker->executor.owner = config->owner;
    worker->executor.group = config->group;
    if (config->watch != NULL) {
        executor_watch(&worker->executor, config->watch);
    }
    gate_init(&worker->gate, config->store, &worker->metrics, &worker->bell,
        worker->config.clock, config->commit_timeout_ms, conn_pass);
    if (config->waits_for_copies) {
        worker->gate.late_err = ERR_UNSURE_COPIES;
    }
    /* held ready, so that a full heap is something that can be said */
    bool has_room = buf_reserve(&worker->out, WORKER_OUT_BYTES) != NULL &&
        buf_reserve(&worker->executor.acks.at, WORKER_ACKS_BYTES) != NULL;
    if (!has_room || pthread_create(&worker->thread, NULL, run, worker) != 0) {
        close_handles(worker);
        uv_run(&worker->loop, UV_RUN_DEFAULT);
        free_worker(worker);
        return has_room ? ERR_NO_THREAD : ERR_NO_MEMORY;
    }
    *out = worker;
    return 0;
}

static void
mail_fd(struct worker *worker, struct mail_fd *mail)
{
    begin_mail(worker);
    mail->next = worker->new_fds;
    worker->new_fds = mail;
    announce(worker);
}

bool
worker_add_inner(struct worker *worker, int fd, enum session_binding binding)
{
    struct mail_fd *mail = malloc(sizeof *mail);
    if (mail == NULL) {
        return false;
    }
    *mail = (struct mail_fd){.fd = fd,
        .is_unix = true,
        .is_inner = true,
        .tls_use = TLS_USE_NONE,
        .binding = binding};
    mail_fd(worker, mail);
    return true;
}

bool
worker__add_fd(struct worker *worker, int fd, bool is_unix,
    enum session_binding binding, enum tls_use tls_use,
    const struct watch_peer *peer)
{
    struct mail_fd *mail = malloc(sizeof *mail);
    if (mail == NULL) {
        return false;
    }
    *mail = (struct mail_fd){
        .fd = fd, .is_unix = is_unix, .tls_use = tls_use, .binding = binding};
    if (peer != NULL) {
        mail->peer = *peer;
    }
    mail_fd(worker, mail);
    return true;
}

void
worker_look_at_users(struct worker *worker)
{
    begin_mail(worker);
    worker->has_users = true;
    announce(worker);
}

void
worker_set_slow(struct worker *worker, uint64_t ms)
{
    /* relaxed: another limit may count a command later */
    atomic_store_explicit(&worker->slow_ns,
        ms == 0 ? UINT64_MAX : ms * NS_PER_MS, memory_order_relaxed);
}

bool
worker_kill(struct worker *worker, int fd)
{
    if (!conn_list__mark(&worker->conn_list, fd)) {
        return false;
    }
    begin_mail(worker);
    worker->has_unwanted = true;
    announce(worker);
    return true;
}

void
worker_stop(struct worker *worker)
{
    begin_mail(worker);
    worker->must_stop = true;
    announce(worker);
}

void
worker_join(struct worker *worker)
{
    pthread_join(worker->thread, NULL);
}

void
worker_destroy(struct worker **worker)
{
    free_worker(*worker);
    *worker = NULL;
}
