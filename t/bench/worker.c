/* SPDX-License-Identifier: BSD-3-Clause */

/* The loop of a thread. All commands that one read makes room for leave in
 * one write, as a pipelining client's do.
 *
 * Closed loop: keep every connection at its depth, wait, read, ask again. A
 * slow server is asked less, so what clients would have waited for meanwhile
 * is not seen: latency is then that of the commands that were sent.
 *
 * Open loop, with --rate: a schedule says when commands are due, whatever the
 * server does. Each goes to the next connection in turn that has room. While
 * none has, commands wait here, in the schedule, and their waiting counts:
 * latency begins when a command was due. (That a load generator which waits
 * for a slow server leaves out just the slow moments is what Gil Tene calls
 * coordinated omission, in his talk "How NOT to Measure Latency".) Those that
 * still wait at the end count, too. */

#include "bench/worker.h"

#include "base/assert.h"
#include "base/clock.h"
#include "bench/fail.h"
#include "bench/talk.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <unistd.h>

enum {
    EVENTS_MAX = 256,
    NS_PER_MS = 1000000,
    SILENCE_S_MAX = 30, /* then the server is taken for dead */

    /* How late an idle thread may see the end. */
    WAIT_NS_MAX = 100 * NS_PER_MS
};

static void
watch(struct worker *worker, struct conn *conn, int operation)
{
    struct epoll_event event = {.data.ptr = conn,
        .events = conn->is_writing ? EPOLLIN | EPOLLOUT : EPOLLIN};
    if (epoll_ctl(worker->epoll_fd, operation, conn->fd, &event) != 0) {
        fail_errno("epoll_ctl");
    }
}

static bool
is_open_loop(const struct worker *worker)
{
    return worker->run->options->rate != 0;
}

/* Whether more is to be asked. */
static bool
asks(struct worker *worker)
{
    /* acquire: what the main thread wrote before it, so end_ns */
    int phase =
        atomic_load_explicit(&worker->run->phase, memory_order_acquire);
    if (phase == PHASE_STOP) {
        worker->has_ended = true;
    }
    return !worker->has_ended;
}

/* Sends what was asked. */
static void
flush(struct worker *worker, struct conn *conn)
{
    bool was_writing = conn->is_writing;
    conn_flush(conn);
    if (conn->is_writing != was_writing) {
        watch(worker, conn, EPOLL_CTL_MOD);
    }
}

/* Closed loop: asks until the depth is reached. */
static void
ask(struct worker *worker, struct conn *conn, uint64_t now_ns)
{
    while (asks(worker) && conn->n < conn->depth &&
        talk_ask(worker, conn, now_ns)) {
    }
    flush(worker, conn);
}

/* The next connection in turn that has room; one has. */
static struct conn *
next_with_room(struct worker *worker)
{
    struct pace *pace = &worker->pace;
    for (;;) {
        struct conn *conn = &worker->conn[pace->next];
        pace->next = pace->next + 1 < worker->n_conns ? pace->next + 1 : 0;
        if (conn->n < conn->depth) {
            return conn;
        }
    }
}

static bool
is_measured(const struct worker *worker, uint64_t due_ns)
{
    /* relaxed: a command more or less at the edge of the phase */
    return due_ns >=
        atomic_load_explicit(&worker->run->begin_ns, memory_order_relaxed);
}

/* Asks the command that is due on a connection that has room. */
static void
ask_due(struct worker *worker, uint64_t now_ns)
{
    struct pace *pace = &worker->pace;
    uint64_t due_ns = pace->schedule.next_ns;
    struct conn *conn = next_with_room(worker);
    if (!talk_ask(worker, conn, due_ns)) {
        worker->has_ended = true;
        return;
    }
    schedule_step(&pace->schedule);
    pace->n_room -= conn->n == conn->depth;
    if (!conn->is_asked) {
        conn->is_asked = true;
        pace->asked[pace->n_asked++] = conn;
    }
    if (is_measured(worker, due_ns)) {
        bool is_late = due_ns < pace->room_since_ns;
        worker->paced.sent++;
        worker->paced.late += is_late;
        hist_add(&worker->paced.lag,
            now_ns - (is_late ? pace->room_since_ns : due_ns));
    }
}

/* Open loop: asks all that is due and sends it. */
static void
ask_all_due(struct worker *worker, uint64_t now_ns)
{
    struct pace *pace = &worker->pace;
    while (
        pace->n_room > 0 && pace->schedule.next_ns <= now_ns && asks(worker)) {
        ask_due(worker, now_ns);
    }
    for (uint64_t i = 0; i < pace->n_asked; i++) {
        pace->asked[i]->is_asked = false;
        flush(worker, pace->asked[i]);
    }
    pace->n_asked = 0;
}

static void
hear(struct worker *worker, struct conn *conn, uint64_t now_ns)
{
    struct pace *pace = &worker->pace;
    bool had_room = conn->n < conn->depth;
    talk_hear(worker, conn, now_ns);
    if (!had_room && conn->n < conn->depth && pace->n_room++ == 0) {
        pace->room_since_ns = now_ns;
    }
}

static void
serve(struct worker *worker, struct epoll_event *event, int n)
{
    for (int i = 0; i < n; i++) {
        struct conn *conn = event[i].data.ptr;
        uint64_t now_ns = clock_monotonic_ns();
        if (event[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
            conn_receive(conn);
            now_ns = clock_monotonic_ns();
            hear(worker, conn, now_ns);
        }
        if (!is_open_loop(worker)) {
            ask(worker, conn, clock_monotonic_ns());
            continue;
        }
        if (conn->is_writing) {
            flush(worker, conn);
        }
        ask_all_due(worker, now_ns);
    }
}

/* Counts what was due before the end and never sent: a command that has waited
 * for a second has had at least that latency. */
static void
count_unsent(struct worker *worker)
{
    struct schedule *schedule = &worker->pace.schedule;
    /* relaxed: asks has seen PHASE_STOP, which came after it */
    uint64_t end_ns =
        atomic_load_explicit(&worker->run->end_ns, memory_order_relaxed);
    if (!is_open_loop(worker) || end_ns == UINT64_MAX) {
        return;
    }
    for (; schedule->next_ns < end_ns; schedule_step(schedule)) {
        if (is_measured(worker, schedule->next_ns)) {
            worker->paced.unsent++;
            hist_add(&worker->hist, end_ns - schedule->next_ns);
        }
    }
}

static void
say_done(struct run *run)
{
    mutex_lock(&run->lock);
    run->n_done++;
    pthread_cond_signal(&run->done);
    mutex_unlock(&run->lock);
}

/* Asks what can be asked before the first answer. */
static void
begin(struct worker *worker)
{
    const struct options *options = worker->run->options;
    for (uint64_t i = 0; i < worker->n_conns; i++) {
        watch(worker, &worker->conn[i], EPOLL_CTL_ADD);
        if (!is_open_loop(worker)) {
            ask(worker, &worker->conn[i], clock_monotonic_ns());
        }
    }
    if (is_open_loop(worker)) {
        /* this thread's sleeps are to end when they should; the kernel's
         * slack is 50 us otherwise */
        (void)prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
        double share = (double)worker->n_conns / (double)options->connections;
        worker->pace.n_room = worker->n_conns;
        schedule_init(&worker->pace.schedule, (double)options->rate * share,
            options->seed, worker->index, worker->run->start_ns);
    }
}

/* Open loop: asks what is due. For how long nothing else will be. */
static uint64_t
ask_and_look_ahead(struct worker *worker)
{
    uint64_t now_ns = clock_monotonic_ns();
    ask_all_due(worker, now_ns);
    uint64_t next_ns = worker->pace.schedule.next_ns;
    if (worker->pace.n_room == 0 || worker->has_ended) {
        return WAIT_NS_MAX;
    }
    uint64_t left_ns = next_ns > now_ns ? next_ns - now_ns : 0;
    return left_ns < WAIT_NS_MAX ? left_ns : WAIT_NS_MAX;
}

/* Until something comes, or is due. */
static int
wait(struct worker *worker, struct epoll_event *event)
{
    int n;
    if (is_open_loop(worker)) {
        uint64_t wait_ns = ask_and_look_ahead(worker);
        struct timespec limit = {.tv_nsec = (long)wait_ns};
        n = epoll_pwait2(worker->epoll_fd, event, EVENTS_MAX, &limit, NULL);
    } else {
        n = epoll_wait(
            worker->epoll_fd, event, EVENTS_MAX, WAIT_NS_MAX / NS_PER_MS);
    }
    if (n < 0 && errno != EINTR) {
        fail_errno("epoll_wait");
    }
    return n;
}

static void *
loop(void *argument)
{
    struct worker *worker = argument;
    struct epoll_event event[EVENTS_MAX];
    begin(worker);
    uint64_t heard_s = clock_monotonic_s();
    while (worker->under_way > 0 || (is_open_loop(worker) && asks(worker))) {
        int n = wait(worker, event);
        if (n > 0) {
            serve(worker, event, n);
        }
        if (n > 0 || worker->under_way == 0) {
            heard_s = clock_monotonic_s();
        } else if (clock_monotonic_s() - heard_s > SILENCE_S_MAX) {
            fail("no reply for %d seconds", SILENCE_S_MAX);
        }
    }
    count_unsent(worker);
    say_done(worker->run);
    return NULL;
}

void
worker_open(struct worker *worker, struct run *run, uint64_t index)
{
    const struct options *options = run->options;
    worker->run = run;
    worker->index = index;
    fill_init(&worker->cursor, options, index);
    worker->n_conns = (options->connections + index) / options->threads;
    if (run->tape->n > 0) {
        worker->tape_at = run->tape->n / options->threads * index;
    }
    worker->conn = calloc(worker->n_conns, sizeof(worker->conn[0]));
    worker->pace.asked =
        calloc(worker->n_conns, sizeof(worker->pace.asked[0]));
    worker->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (worker->conn == NULL || worker->pace.asked == NULL ||
        worker->epoll_fd < 0) {
        fail("out of memory or file descriptors");
    }
    for (uint64_t i = 0; i < worker->n_conns; i++) {
        conn_open(
            &worker->conn[i], options->host, options->port, options->depth);
    }
}

void
worker_start(struct worker *worker)
{
    int rv = pthread_create(&worker->thread, NULL, loop, worker);
    if (rv != 0) {
        errno = rv;
        fail_errno("pthread_create");
    }
}

void
worker_join(struct worker *worker)
{
    int rv = pthread_join(worker->thread, NULL);
    ASSERT(rv == 0);
    for (uint64_t i = 0; i < worker->n_conns; i++) {
        conn_close(&worker->conn[i]);
    }
    free(worker->conn);
    free(worker->pace.asked);
    close(worker->epoll_fd);
    worker->conn = NULL;
    worker->pace.asked = NULL;
}
