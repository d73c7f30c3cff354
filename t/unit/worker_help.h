/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIT_WORKER_HELP_H
#define UNIT_WORKER_HELP_H

/* Workers on a store, and the clients' ends of their sockets. */

#include "lib/fake_clock.h"
#include "lib/small_store.h"
#include "net/worker.h"
#include "proto/reply.h"
#include "unit/check_help.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

enum { RIG_WORKERS = 2 };

#define RIG_NEVER_MS (UINT64_C(1) << 40) /* of all timeouts, at first */

struct rig {
    struct store *inner; /* the real one */
    struct store *store; /* what the workers talk to */
    struct admin admin;
    struct logger logger;
    struct conn_gauge gauge;
    struct fake_clock clock; /* the workers'; stands */
    struct worker_config config;
    struct worker *worker[RIG_WORKERS];
};

static inline bool
say_nothing(struct admin *admin, const char *args, size_t len,
    struct admin_reply *reply, struct reply_stats *out)
{
    (void)admin, (void)args, (void)len, (void)reply;
    return reply_stats_end(out), false;
}

static inline void
set_nothing(struct admin *admin, unsigned level)
{
    (void)admin, (void)level;
}

/* Everything but the workers; then config may be changed. */
static inline void
rig_init(struct rig *rig)
{
    (void)signal(SIGPIPE, SIG_IGN); /* as the server's process does */
    *rig = (struct rig){.inner = small_store(NULL),
        .admin = {.stats_fn = say_nothing,
            .verbosity_fn = set_nothing,
            .version = "test"}};
    rig->store = rig->inner;
    rig->config = (struct worker_config){.admin = &rig->admin,
        .logger = &rig->logger,
        .gauge = &rig->gauge,
        .value_bytes_max = SMALL_STORE_ITEM_BYTES,
        .requests_per_turn = 20,
        .clock = &rig->clock.clock,
        .command_timeout_ms = RIG_NEVER_MS,
        .write_timeout_ms = RIG_NEVER_MS,
        .login_timeout_ms = RIG_NEVER_MS,
        .commit_timeout_ms = RIG_NEVER_MS,
        .shake_timeout_ms = RIG_NEVER_MS,
        .stop_timeout_ms = RIG_NEVER_MS,
        .verifies = true};
    fake_clock_init(&rig->clock);
    fake_clock_stand(&rig->clock);
}

static inline void
rig_start(struct rig *rig)
{
    rig->config.store = rig->store;
    for (int i = 0; i < RIG_WORKERS; i++) {
        ck_assert_int_eq(worker_start(&rig->config, &rig->worker[i]), 0);
    }
}

static inline void
rig_stop(struct rig *rig)
{
    for (int i = 0; i < RIG_WORKERS; i++) {
        worker_stop(rig->worker[i]);
    }
}

/* Waits for the workers; no connection may be left. */
static inline void
rig_join(struct rig *rig)
{
    for (int i = 0; i < RIG_WORKERS; i++) {
        worker_join(rig->worker[i]);
    }
    for (int i = 0; i < RIG_WORKERS; i++) {
        worker_destroy(&rig->worker[i]);
        ck_assert_ptr_null(rig->worker[i]);
    }
    ck_assert_uint_eq(atomic_load(&rig->gauge.current), 0);
}

static inline void
rig_fini(struct rig *rig)
{
    store_verify(rig->inner);
    store_destroy(&rig->inner);
}

/* A connection to one of the workers; the client's end. */
static inline int
connect_to(struct rig *rig, int worker)
{
    int pair[2];
    ck_assert_int_eq(
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    ck_assert_int_eq(fcntl(pair[1], F_SETFL, O_NONBLOCK), 0);
    atomic_fetch_add(&rig->gauge.current, 1);
    ck_assert(worker__add_fd(
        rig->worker[worker], pair[1], true, SESSION_AUTO, TLS_USE_NONE, NULL));
    return pair[0];
}

static inline void
send_bytes(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t n = send(fd, bytes, len, MSG_NOSIGNAL);
        ck_assert_msg(n > 0, "send: %s", strerror(errno));
        bytes += n;
        len -= (size_t)n;
    }
}

static inline void
say(int fd, const char *text)
{
    send_bytes(fd, text, strlen(text));
}

/* Receives len bytes. */
static inline void
receive(int fd, char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t n = read(fd, bytes, len);
        ck_assert_msg(n > 0, "read: %s", n == 0 ? "end" : strerror(errno));
        bytes += n;
        len -= (size_t)n;
    }
}

static inline void
expect(int fd, const char *text)
{
    size_t len = strlen(text);
    char *bytes = malloc(len + 1);
    ck_assert_ptr_nonnull(bytes);
    receive(fd, bytes, len);
    bytes[len] = '\0';
    ck_assert_str_eq(bytes, text);
    free(bytes);
}

/* The server has closed, and sent nothing before. */
static inline void
expect_end(int fd)
{
    char byte;
    ck_assert_int_eq(read(fd, &byte, 1), 0);
    close(fd);
}

static inline void
talk(int fd, const char *said, const char *answer)
{
    say(fd, said);
    expect(fd, answer);
}

static inline uint64_t
metric_of(const struct worker *worker, enum metric metric)
{
    uint64_t sum[METRIC_COUNT] = {0};
    metric_sum(&worker->metrics, sum);
    return sum[metric];
}

static inline void
stop_all(struct rig *rig)
{
    rig_stop(rig);
    rig_join(rig);
    rig_fini(rig);
}

#endif
