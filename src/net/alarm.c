/* SPDX-License-Identifier: BSD-3-Clause */
/* An alarm is a timer of libuv, which goes by CLOCK_MONOTONIC. It is set for
 * the moment at which the clock has to be looked at again; where the clock does
 * not say then that the alarm is due the timer is set anew. With the clock of
 * the system that does not happen. */
#include "net/alarm.h"

#define NS_PER_MS UINT64_C(1000000)

static void on_timer(uv_timer_t *timer);

/* Has the timer look again when it must, but never spin. */
static void
look_later(struct alarm *alarm)
{
    uint64_t now_ms = uv_now(alarm->timer.loop);
    uint64_t wake_ns =
        alarm->clock->calls->wake(alarm->clock, alarm->due_ms * NS_PER_MS);
    uint64_t wake_ms = wake_ns / NS_PER_MS + (wake_ns % NS_PER_MS != 0);
    uint64_t least_ms = alarm->due_ms > alarm_now_ms(alarm);
    uv_timer_start(&alarm->timer, on_timer,
        wake_ms > now_ms ? wake_ms - now_ms : least_ms, 0);
}

static void
on_timer(uv_timer_t *timer)
{
    struct alarm *alarm = timer->data;
    if (alarm_now_ms(alarm) < alarm->due_ms) {
        look_later(alarm);
    } else {
        alarm->due_fn(alarm);
    }
}

void
alarm_init(struct alarm *alarm, uv_loop_t *loop, const struct clock *clock,
    void (*due_fn)(struct alarm *alarm))
{
    alarm->clock = clock;
    alarm->due_fn = due_fn;
    alarm->due_ms = 0;
    uv_timer_init(loop, &alarm->timer);
    alarm->timer.data = alarm;
}

void
alarm_set(struct alarm *alarm, uint64_t in_ms)
{
    alarm->due_ms = alarm_now_ms(alarm) + in_ms;
    look_later(alarm);
}

void
alarm_close(struct alarm *alarm)
{
    uv_close((uv_handle_t *)&alarm->timer, NULL);
}
