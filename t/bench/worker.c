/* SPDX-License-Identifier: BSD-3-Clause */

/* The loop of a thread: keep every connection at its depth, wait, read, ask
 * again. All commands that one read makes room for leave in one write, as a
 * pipelining client's do. A closed loop: a slow server is asked less. */

#include "bench/worker.h"

#include "base/assert.h"
#include "base/clock.h"
#include "bench/fail.h"
#include "bench/talk.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

enum {
    EVENTS_MAX = 256,
    WAIT_MS = 100,     /* how late PHASE_STOP may be seen by an idle thread */
    SILENCE_S_MAX = 30 /* then the server is taken for dead */
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

/* Asks until the depth is reached and sends. False where the connection has
 * nothing under way and nothing more to ask. */
static bool
ask(struct worker *worker, struct conn *conn, uint64_t now_ns)
{
    /* acquire: nothing else hangs on it, but it costs nothing here */
    int phase =
        atomic_load_explicit(&worker->run->phase, memory_order_acquire);
    while (phase != PHASE_STOP && conn->n < conn->depth &&
        talk_ask(worker, conn, now_ns)) {
    }
    bool was_writing = conn->is_writing;
    conn_flush(conn);
    if (conn->is_writing != was_writing) {
        watch(worker, conn, EPOLL_CTL_MOD);
    }
    return conn->n > 0;
}

static void
say_done(struct run *run)
{
    pthread_mutex_lock(&run->lock);
    run->n_done++;
    pthread_cond_signal(&run->done);
    pthread_mutex_unlock(&run->lock);
}

/* Serves the connections of n events; returns how many of them fell idle. */
static uint64_t
serve(struct worker *worker, struct epoll_event *event, int n)
{
    uint64_t idle = 0;
    for (int i = 0; i < n; i++) {
        struct conn *conn = event[i].data.ptr;
        bool was_busy = conn->n > 0;
        if (event[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
            conn_receive(conn);
            talk_hear(worker, conn, clock_monotonic_ns());
        }
        idle += !ask(worker, conn, clock_monotonic_ns()) && was_busy;
    }
    return idle;
}

static void *
loop(void *argument)
{
    struct worker *worker = argument;
    struct epoll_event event[EVENTS_MAX];
    uint64_t busy = 0;
    for (uint64_t i = 0; i < worker->n_conns; i++) {
        watch(worker, &worker->conn[i], EPOLL_CTL_ADD);
        busy += ask(worker, &worker->conn[i], clock_monotonic_ns());
    }
    uint64_t heard_s = clock_monotonic_s();
    while (busy > 0) {
        int n = epoll_wait(worker->epoll_fd, event, EVENTS_MAX, WAIT_MS);
        if (n < 0 && errno != EINTR) {
            fail_errno("epoll_wait");
        }
        if (n > 0) {
            busy -= serve(worker, event, n);
            heard_s = clock_monotonic_s();
        } else if (clock_monotonic_s() - heard_s > SILENCE_S_MAX) {
            fail("no reply for %d seconds", SILENCE_S_MAX);
        }
    }
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
    worker->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (worker->conn == NULL || worker->epoll_fd < 0) {
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
    close(worker->epoll_fd);
    worker->conn = NULL;
}
