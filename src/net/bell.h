/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NET_BELL_H
#define NET_BELL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <uv.h>

/* What other threads wake a loop with, also threads of a lower priority. */
struct bell {
    uv_poll_t poll;
    int fd; /* an eventfd */
    void (*rung_fn)(struct bell *bell);
    atomic_bool is_rung;   /* and the loop has not come yet */
    atomic_uint n_holders; /* threads between bell_hold and bell_ring's end */
};

/* Prepares one. rung_fn is called on the loop's thread after every bell_ring;
 * one call may stand for several. 0 or ERR_SYSTEM. */
int bell_init(
    struct bell *bell, uv_loop_t *loop, void (*rung_fn)(struct bell *bell));

/* From now on, until this thread's bell_ring returns, the bell is there. To be
 * called while that is sure anyway: before whoever may end the loop can find
 * what is to be told. Any thread. */
void bell_hold(struct bell *bell);

/* What the thread has written before is seen by a rung_fn to come. After
 * bell_hold. Any thread; never waits. */
void bell_ring(struct bell *bell);

/* The loop does not listen any more. On its thread; it has to run on until the
 * handle is closed. */
void bell_close(struct bell *bell);

/* Waits until nobody holds it, and gives back the descriptor. After the end of
 * the loop. */
void bell_fini(struct bell *bell);

#endif
