/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NET_ALARM_H
#define NET_ALARM_H

#include "base/clock.h"

#include <stdbool.h>
#include <uv.h>

/* A timer of an event loop that goes off by a clock that was handed in. The
 * loop's thread only. In the caller's memory, which must stay until the loop
 * has run once more after alarm_close. */
struct alarm {
    uv_timer_t timer;
    const struct clock *clock;
    uint64_t due_ms; /* by the clock */
    void (*due_fn)(struct alarm *alarm);
};

/* Prepares one that is not set. due_fn is called once each time that it goes
 * off, outside the loop's poll, and may set it anew. */
void alarm_init(struct alarm *alarm, uv_loop_t *loop,
    const struct clock *clock, void (*due_fn)(struct alarm *alarm));

/* What the clock says, in ms, as of the time that the loop has. */
static inline uint64_t
alarm_now_ms(const struct alarm *alarm)
{
    return clock_at_ms(alarm->clock, uv_now(alarm->timer.loop));
}

/* It goes off in so many ms; if it was set, then instead. */
void alarm_set(struct alarm *alarm, uint64_t in_ms);

static inline bool
alarm_is_set(const struct alarm *alarm)
{
    return uv_is_active((const uv_handle_t *)&alarm->timer) != 0;
}

/* Gives it back. */
void alarm_close(struct alarm *alarm);

#endif
