/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIT_GATE_HELP_H
#define UNIT_GATE_HELP_H

/* What the tests of the gate share: workers on a store whose log the test
 * plays. */

#include "base/buf.h"
#include "lib/hold.h"
#include "net/conn.h"
#include "unit/worker_help.h"

#include <stdio.h>

#define DISK_FULL                                                             \
    "SERVER_ERROR the disk is full, counters are read-only until it has "     \
    "room\r\n"
#define UNSURE_TEXT                                                           \
    "outcome unknown, a crash may undo the change: get the value before a "   \
    "retry"
#define UNSURE "SERVER_ERROR " UNSURE_TEXT "\r\n"
#define UNSURE_SLOW_TEXT                                                      \
    "outcome unknown, the disk is slow: get the value before a retry"
#define UNSURE_SLOW "SERVER_ERROR " UNSURE_SLOW_TEXT "\r\n"
#define UNCOMMITTED_TEXT                                                       \
    "not shown, a crash or another primary may undo it: the disk has failed, " \
    "or this node leads no more, read again later"
#define UNCOMMITTED "SERVER_ERROR " UNCOMMITTED_TEXT "\r\n"
#define UNCOMMITTED_SLOW                                                      \
    "SERVER_ERROR not shown, a crash may undo it: the disk is slow, read "    \
    "again later\r\n"

/* Workers on a store whose log the test plays. */
struct gated {
    struct rig rig;
    struct outcomes *log;
    int other[RIG_WORKERS]; /* a connection to each */
};

/* How long replies are held at most, and how long a stop waits for them. Where
 * the former is not RIG_NEVER_MS time passes by itself, else when it is
 * passed. */
static inline void
open_gated_by(struct gated *gated, const struct session_rules *rules,
    unsigned requests_per_turn, uint64_t commit_timeout_ms,
    uint64_t stop_timeout_ms)
{
    struct rig *rig = &gated->rig;
    rig_init(rig);
    rig->config.rules = *rules;
    rig->config.requests_per_turn = requests_per_turn;
    rig->config.commit_timeout_ms = commit_timeout_ms;
    rig->config.stop_timeout_ms = stop_timeout_ms;
    if (commit_timeout_ms != RIG_NEVER_MS) {
        fake_clock_go(&rig->clock);
    }
    ck_assert_int_eq(hold_create(rig->inner, &rig->store), 0);
    rig_start(rig);
    for (int i = 0; i < RIG_WORKERS; i++) {
        gated->other[i] = connect_to(rig, i);
    }
    talk(gated->other[0],
        "add counter weibo\r\nadd column weibo weibo_id primarykey\r\n"
        "add column weibo a max=64\r\nadd column weibo b max=64\r\n",
        "STORED\r\nSTORED\r\nSTORED\r\nSTORED\r\n");
    gated->log = hold_log(rig->store, true);
}

static inline void
open_gated_for(struct gated *gated, unsigned requests_per_turn,
    uint64_t commit_timeout_ms, uint64_t stop_timeout_ms)
{
    static const struct session_rules none;
    open_gated_by(
        gated, &none, requests_per_turn, commit_timeout_ms, stop_timeout_ms);
}

static inline void
open_gated_until(struct gated *gated, unsigned requests_per_turn,
    uint64_t commit_timeout_ms)
{
    open_gated_for(gated, requests_per_turn, commit_timeout_ms, RIG_NEVER_MS);
}

static inline void
open_gated(struct gated *gated, unsigned requests_per_turn)
{
    open_gated_until(gated, requests_per_turn, RIG_NEVER_MS);
}

static inline void
end_gated(struct gated *gated)
{
    rig_join(&gated->rig);
    hold_destroy(&gated->rig.store);
    rig_fini(&gated->rig);
}

static inline void
close_gated(struct gated *gated)
{
    for (int i = 0; i < RIG_WORKERS; i++) {
        close(gated->other[i]);
    }
    rig_stop(&gated->rig);
    end_gated(gated);
}

/* Tells the workers to stop; they know it when this returns. */
static inline void
stop_gated(struct gated *gated)
{
    rig_stop(&gated->rig);
    for (int i = 0; i < RIG_WORKERS; i++) {
        expect_end(gated->other[i]);
    }
}

/* Has every ready connection of the worker had its turn. */
static inline void
go_round(struct gated *gated, int worker)
{
    for (int i = 0; i < 10; i++) {
        talk(gated->other[worker], "version\r\n", "VERSION test\r\n");
    }
}

/* The connection, of that worker, has been sent nothing. */
static inline void
expect_nothing(struct gated *gated, int worker, int fd)
{
    char byte;
    go_round(gated, worker);
    ck_assert_int_eq(recv(fd, &byte, 1, MSG_DONTWAIT), -1);
    ck_assert_int_eq(errno, EAGAIN);
}

static inline uint64_t
held_turns(const struct gated *gated, int worker)
{
    return metric_of(gated->rig.worker[worker], METRIC_turns_held);
}

/* n times the same. */
static inline void
say_often(int fd, const char *text, unsigned n)
{
    struct buf said = {0};
    for (unsigned i = 0; i < n; i++) {
        buf_add_text(&said, text);
    }
    send_bytes(fd, said.data, said.len);
    buf_fini(&said);
}

/* The numbers from first to last, a line each. */
static inline void
expect_numbers(int fd, unsigned first, unsigned last)
{
    char number[32];
    for (unsigned i = first; i <= last; i++) {
        snprintf(number, sizeof number, "%u\r\n", i);
        expect(fd, number);
    }
}

#endif
