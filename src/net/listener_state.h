/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NET_LISTENER_STATE_H
#define NET_LISTENER_STATE_H

#include "base/steps.h"

/* Whether a listener accepts. Inside listener.c, which draws it, and for its
 * test. */
enum listener_state {
    LISTENER_NEW,     /* addresses are being added; nothing is polled */
    LISTENER_ACCEPTS, /* the sockets are polled */
    LISTENER_PAUSED,  /* they are not; the alarm is set */
    LISTENER_TRIES,   /* they are again, and nothing has come of it yet */
    LISTENER_HELD,    /* they are not, until listener_start */
    LISTENER_STOPPED, /* all is closed */
    LISTENER_STATES_N
};

static const unsigned listener_steps[LISTENER_STATES_N] = {
    [LISTENER_NEW] = STEP_TO(LISTENER_ACCEPTS) | STEP_TO(LISTENER_STOPPED),
    [LISTENER_ACCEPTS] = STEP_TO(LISTENER_PAUSED) | STEP_TO(LISTENER_HELD) |
        STEP_TO(LISTENER_STOPPED),
    [LISTENER_PAUSED] = STEP_TO(LISTENER_TRIES) | STEP_TO(LISTENER_ACCEPTS) |
        STEP_TO(LISTENER_HELD) | STEP_TO(LISTENER_STOPPED),
    [LISTENER_TRIES] = STEP_TO(LISTENER_PAUSED) | STEP_TO(LISTENER_ACCEPTS) |
        STEP_TO(LISTENER_HELD) | STEP_TO(LISTENER_STOPPED),
    [LISTENER_HELD] = STEP_TO(LISTENER_ACCEPTS) | STEP_TO(LISTENER_STOPPED),
};

/* Returns the new state. */
static inline enum listener_state
listener__step(enum listener_state from, enum listener_state to)
{
    ASSERT_STEP(listener_steps, from, to);
    return to;
}

#endif
