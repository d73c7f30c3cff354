/* SPDX-License-Identifier: BSD-3-Clause */
/* Quiescent-state-based reclamation.
 *
 * A reader's epoch is 0 while it is offline, else a value that qsbr.epoch had
 * when the reader last said online. A writer first unpublishes (it stores the
 * new pointer), then calls qsbr_begin, which raises qsbr.epoch to a target. The
 * grace period is over once a look at all readers finds each one's epoch at 0
 * or at least at the target: qsbr_is_over looks, qsbr_wait looks until it is
 * so. Then no reader can still hold what was unpublished, and it is freed.
 *
 * Why that is so, in the terms of C11 (no fences, which TSan cannot follow;
 * and a seq_cst store alone would not do: it is not ordered before a later
 * acquire load of another object):
 *
 * The dangerous race is a reader that comes online (A: write reader.epoch,
 * then B: load the pointer) against a writer (C: store the pointer, then D:
 * look at reader.epoch). It must not happen that B sees the old pointer and D
 * an offline reader. A and D are therefore both read-modify-writes, acq_rel,
 * of the same object, of which one comes first:
 *   - A before D: D reads what A wrote, sees the reader online, and waits;
 *   - D before A: A reads what D wrote back, so C happens before B, and B
 *     loads the new pointer.
 * Each reader's epoch is on the reader's own line, so coming online costs an
 * exchange on a line that is usually in the reader's cache; only a writer's
 * check takes it away.
 *
 * A reader that stays online and sees the target takes it over: it read
 * qsbr.epoch by acquire what the writer raised after C, so it uses the new
 * pointer from there on, and what it read before happens before the writer's
 * free through the release half of its exchange.
 *
 * A reader that is online in the current epoch already has nothing to say:
 * no grace period that it could see waits for it. If one began just now, the
 * reader holds it up until it next says online or offline, which is only a
 * delay.
 *
 * The thread that looks need not be the one that began: the target came to it
 * by something that orders the two (a lock), so C still happens before D. Nor
 * does it matter which readers are in the list: one that registers after the
 * look comes after C through qsbr.lock, and one that left before it did so
 * after its last read, through the same lock.
 *
 * Every look starts anew, and a reader that passed the last one may fail the
 * next: it may have loaded qsbr.epoch long ago and come online with that only
 * now. It then holds nothing old (D before A), and the false answer is only a
 * delay, until it next says online. So true may be followed by false: whoever
 * has seen true once must act on that and not ask again.
 *
 * A reader's own thread may look while it is online. Its epoch is then below
 * the target until it says online again, so it cannot free under its own feet,
 * and it must not wait, for it would wait for itself.
 *
 * What can go wrong: a reader that stays online without ever saying so again
 * blocks qsbr_wait for ever, and what polls never frees. That is the callers'
 * contract. */
#include "base/qsbr.h"

#include "base/assert.h"

#include <sched.h>
#include <stddef.h>
#include <time.h>

enum {
    EPOCH_OFFLINE = 0,
    EPOCH_START = 1,
    WAIT_YIELDS = 64,           /* tries before the waiter sleeps */
    WAIT_SLEEP_NS_MIN = 20000,  /* then doubling */
    WAIT_SLEEP_NS_MAX = 1000000 /* up to this */
};

void
qsbr_init(struct qsbr *qsbr)
{
    mutex_init(&qsbr->lock);
    atomic_init(&qsbr->epoch, EPOCH_START);
    qsbr->readers = NULL;
}

void
qsbr_fini(struct qsbr *qsbr)
{
    ASSERT(qsbr->readers == NULL);
    mutex_fini(&qsbr->lock);
}

void
qsbr_register(struct qsbr *qsbr, struct qsbr_reader *reader)
{
    atomic_init(&reader->epoch, EPOCH_OFFLINE);
    reader->prev = NULL;
    mutex_lock(&qsbr->lock);
    reader->next = qsbr->readers;
    if (reader->next != NULL) {
        reader->next->prev = reader;
    }
    qsbr->readers = reader;
    mutex_unlock(&qsbr->lock);
}

void
qsbr_unregister(struct qsbr *qsbr, struct qsbr_reader *reader)
{
    /* relaxed: the thread's own last store */
    ASSERT(atomic_load_explicit(&reader->epoch, memory_order_relaxed) ==
        EPOCH_OFFLINE);
    mutex_lock(&qsbr->lock);
    if (reader->prev != NULL) {
        reader->prev->next = reader->next;
    } else {
        ASSERT(qsbr->readers == reader);
        qsbr->readers = reader->next;
    }
    if (reader->next != NULL) {
        reader->next->prev = reader->prev;
    }
    mutex_unlock(&qsbr->lock);
    reader->next = NULL;
    reader->prev = NULL;
}

void
qsbr_online(struct qsbr *qsbr, struct qsbr_reader *reader)
{
    /* acquire: what was published before this epoch began is seen after */
    uint64_t now = atomic_load_explicit(&qsbr->epoch, memory_order_acquire);

    /* relaxed: only this thread changes the value */
    if (atomic_load_explicit(&reader->epoch, memory_order_relaxed) == now) {
        return;
    }
    /* release: reads under the last epoch come before the waiter's free;
     * acquire, and an exchange: see A and D above */
    (void)atomic_exchange_explicit(&reader->epoch, now, memory_order_acq_rel);
}

void
qsbr_offline(struct qsbr_reader *reader)
{
    /* release: the reads while online come before the waiter's free. A plain
     * store will do: the next qsbr_online meets D by its exchange. */
    atomic_store_explicit(&reader->epoch, EPOCH_OFFLINE, memory_order_release);
}

static bool
is_past(uint64_t reader_epoch, uint64_t target)
{
    return reader_epoch == EPOCH_OFFLINE || reader_epoch >= target;
}

/* D for one reader: true when it can no longer hold what was unpublished
 * before target. */
static bool
reader_is_past(struct qsbr_reader *reader, uint64_t target)
{
    /* Writes back what it reads. acquire: the reader's reads come before our
     * free; release: if it was offline, it comes online after our store of
     * the pointer */
    uint64_t epoch =
        atomic_fetch_add_explicit(&reader->epoch, 0, memory_order_acq_rel);

    return is_past(epoch, target);
}

/* A guess that leaves the readers' lines with them while one of them still
 * holds up the rest. */
static bool
seem_past(const struct qsbr *qsbr, uint64_t target)
{
    mutex_assert_held(&qsbr->lock);
    for (struct qsbr_reader *reader = qsbr->readers; reader != NULL;
         reader = reader->next) {
        /* relaxed: confirmed by D where it matters */
        uint64_t epoch =
            atomic_load_explicit(&reader->epoch, memory_order_relaxed);

        if (!is_past(epoch, target)) {
            return false;
        }
    }
    return true;
}

uint64_t
qsbr_begin(struct qsbr *qsbr)
{
    /* release: a reader that sees target sees what was stored before; later
     * targets carry it on, being read-modify-writes */
    return atomic_fetch_add_explicit(&qsbr->epoch, 1, memory_order_release) +
        1;
}

bool
qsbr_is_over(struct qsbr *qsbr, uint64_t target)
{
    bool is_over;

    mutex_lock(&qsbr->lock);
    is_over = seem_past(qsbr, target);
    for (struct qsbr_reader *reader = qsbr->readers; is_over && reader != NULL;
         reader = reader->next) {
        is_over = reader_is_past(reader, target);
    }
    mutex_unlock(&qsbr->lock);
    return is_over;
}

/* Lets others run: readers first of all need the processor. */
static void
back_off(unsigned tries)
{
    long sleep_ns = WAIT_SLEEP_NS_MIN;
    struct timespec pause = {0};

    if (tries < WAIT_YIELDS) {
        (void)sched_yield();
        return;
    }
    for (tries -= WAIT_YIELDS; tries > 0; tries--) {
        sleep_ns *= 2;
        if (sleep_ns >= WAIT_SLEEP_NS_MAX) {
            sleep_ns = WAIT_SLEEP_NS_MAX;
            break;
        }
    }
    pause.tv_nsec = sleep_ns;
    /* a signal may cut it short: then it only looks again sooner */
    (void)nanosleep(&pause, NULL);
}

void
qsbr_wait(struct qsbr *qsbr)
{
    uint64_t target = qsbr_begin(qsbr);

    for (unsigned tries = 0; !qsbr_is_over(qsbr, target); tries++) {
        back_off(tries);
    }
}
