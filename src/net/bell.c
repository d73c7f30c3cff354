/* SPDX-License-Identifier: BSD-3-Clause */
/* A bell in place of uv_async.
 *
 * uv_async_send marks its handle busy, writes to the loop's descriptor, and
 * unmarks it. A loop that is woken by that write, on the sender's own core,
 * finds the mark and waits for the sender by sched_yield. Where the sender has
 * a lower priority than the loop's thread, and the core has others to run, that
 * is as long as those please: 90 ms were seen on a busy machine.
 *
 * Here the last thing that a ringer does to the bell is the write; so nobody
 * waits for it but who frees the bell. A ringer that is held up between its
 * mark and its write holds up those that ring meanwhile: some instructions
 * without a call, where before it was a call that invites to be preempted.
 *
 *   ringer: leaves what it has to tell; is_rung = true; if it was not: write
 *   loop:   read; is_rung = false; takes what there is
 *
 * Both exchange is_rung: who rings and finds it rung comes before the loop's
 * exchange, and what it has left is seen after that. */
#include "net/bell.h"

#include "base/assert.h"
#include "base/err.h"

#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

static void
on_poll(uv_poll_t *poll, int status, int events)
{
    struct bell *bell = poll->data;
    uint64_t n;
    (void)status;
    (void)events;
    /* that nothing is there to be read is as good */
    ssize_t ignored = read(bell->fd, &n, sizeof n);
    (void)ignored;
    /* acq_rel: see the head of this file */
    (void)atomic_exchange_explicit(
        &bell->is_rung, false, memory_order_acq_rel);
    bell->rung_fn(bell);
}

int
bell_init(
    struct bell *bell, uv_loop_t *loop, void (*rung_fn)(struct bell *bell))
{
    bell->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    bell->rung_fn = rung_fn;
    atomic_init(&bell->is_rung, false);
    atomic_init(&bell->n_holders, 0);
    if (bell->fd < 0) {
        return ERR_SYSTEM;
    }
    if (uv_poll_init(loop, &bell->poll, bell->fd) != 0) {
        close(bell->fd);
        return ERR_SYSTEM;
    }
    bell->poll.data = bell;
    uv_poll_start(&bell->poll, UV_READABLE, on_poll);
    return 0;
}

void
bell_hold(struct bell *bell)
{
    /* relaxed: whoever frees the bell comes after what this thread publishes
     * next, by that one's order */
    atomic_fetch_add_explicit(&bell->n_holders, 1, memory_order_relaxed);
}

void
bell_ring(struct bell *bell)
{
    uint64_t one = 1;
    /* acq_rel: see the head of this file */
    if (!atomic_exchange_explicit(
            &bell->is_rung, true, memory_order_acq_rel)) {
        ssize_t n;
        do {
            n = write(bell->fd, &one, sizeof one);
        } while (n < 0 && errno == EINTR);
        ASSERT(n == sizeof one); /* the count is 0 or 1 */
    }
    /* release: all that was done to the bell comes before its end */
    atomic_fetch_sub_explicit(&bell->n_holders, 1, memory_order_release);
}

void
bell_close(struct bell *bell)
{
    uv_close((uv_handle_t *)&bell->poll, NULL);
}

void
bell_fini(struct bell *bell)
{
    /* acquire: with the release of each bell_ring */
    while (atomic_load_explicit(&bell->n_holders, memory_order_acquire) > 0) {
        (void)sched_yield();
    }
    close(bell->fd);
}
