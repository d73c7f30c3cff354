/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NET_GATE_H
#define NET_GATE_H

#include "base/buf.h"
#include "call/store_calls.h"
#include "net/alarm.h"
#include "net/bell.h"
#include "net/timing.h"
#include "session/session.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

/* Where the replies of turns that have changed something wait until the store
 * has committed that, but no longer than late_ms. One a worker; its thread
 * only, unless said otherwise. */

/* What the log is at, what it takes next, and what comes before it is known
 * that it has done so. */
enum { HELD_PARTS = 3 };

/* From there on a connection begins no turn while it has replies here: changes
 * that they acknowledge, and their bytes. The last turn may pass both. */
enum { HELD_CHANGES_MAX = 2048, HELD_BYTES_MAX = 64 << 10 };

enum { HELD_MAGIC = 0x444c4548 };

/* Replies that wait for the same commit. */
struct held_part {
    uint64_t seq;              /* to be committed */
    uint64_t since_ms;         /* when the first came, by the alarm's clock */
    struct buf out;            /* the replies, of one turn or several */
    struct buf acks;           /* struct session_acks, at, in out */
    struct timing_held *times; /* of the heap, net/timing.h; NULL: none */
};

/* What one connection has at the gate. All zero: nothing. */
struct held {
    uint32_t magic;             /* HELD_MAGIC while it is in gate->first */
    struct held *prev, *next;   /* in gate->first */
    unsigned n;                 /* parts; 0: nothing is held */
    int unsaid;                 /* an err that ends the connection, see
                               * gate_refuse; 0 */
    struct held_part *part;     /* HELD_PARTS, in the order of the replies, and
                               * so of seq; NULL until something is held, so
                               * that who only reads pays nothing for it */
    struct timing_held *passed; /* during pass_fn: of what passes, who takes it
                                 * sets NULL */
};

struct gate {
    struct store *store;
    struct metric_set *metrics;
    struct bell *bell; /* rung when gate_look is to be called */
    /* gives up what has passed: out, the gate's, may be sent, and the
     * connection goes on; held->n is what is left. May call gate_drop for it
     * and nothing else of the gate; where held->unsaid is not 0 it must, and
     * close the connection when out is sent. */
    void (*pass_fn)(struct held *held, struct buf *out);
    struct store_listener listener;
    /* The listener is to signal when the outcome of one of them, the least and
     * the largest that is held, is there; wait_seq 0: not. Any thread. */
    _Atomic uint64_t wait_seq, wait_last;
    struct held *first;
    uint64_t new_seq; /* the largest that no commit was asked for; 0: none */
    uint64_t late_ms; /* what is held as long is not waited for any more */
    int late_err; /* what it is answered with: ERR_UNSURE_SLOW, unless who has
                   * made the gate says ERR_UNSURE_COPIES */
    struct alarm alarm; /* set while something may become late */
};

/* Prepares an empty gate on the bell's loop and listens to the store. late_ms,
 * by the clock, is at least 1. */
void gate_init(struct gate *gate, struct store *store,
    struct metric_set *metrics, struct bell *bell, const struct clock *clock,
    uint64_t late_ms, void (*pass_fn)(struct held *held, struct buf *out));

/* Nothing may be held. When it returns the bell is rung no more; the loop
 * has to run on until the gate's alarm is closed. */
void gate_fini(struct gate *gate);

/* True where the replies with these acks may leave now. */
static inline bool
gate_is_open(const struct gate *gate, const struct session_acks *acks)
{
    return acks->seq == 0 ||
        store_outcome(gate->store, acks->seq) == STORE_COMMITTED;
}

/* Bytes of replies that are held. */
size_t held_bytes(const struct held *held);

/* True where no other turn may be begun behind what is held. */
bool held_is_full(const struct held *held);

/* Keeps the replies of a turn behind those held already, and empties out and
 * acks. Where acks waits for nothing they wait for those before them, of which
 * there must be some. False where memory is out; out and acks stay then. */
bool gate_hold(struct gate *gate, struct held *held, struct buf *out,
    struct session_acks *acks);

/* Of replies that could not be held: appends them to *said with an error in the
 * place of each that acks has; what became of those changes nobody knows then.
 * Where the client of a change wants no reply, it would take the next reply to
 * mean that its change lasts: they end before that. Where the reply to a read
 * goes on in another turn, they end with its error. Then the error is returned,
 * with which the connection is to be closed when *said is sent; else 0.
 * said->failed: there is no memory for that either. */
int gate_refuse(struct gate *gate, const struct buf *out,
    const struct session_acks *acks, struct buf *said);

/* Asserts what must hold of it: parts in the order of their numbers, and in
 * each what is acknowledged in the order of the replies. */
void held_verify(const struct held *held);

/* The same of all that the gate has: how many connections' that is. */
unsigned gate_verify(const struct gate *gate);

/* Forgets what is held, if anything, and gives its memory back. */
void gate_drop(struct gate *gate, struct held *held);

/* Has the store commit what is held, and lets pass what can: to be called
 * before the loop sleeps. */
void gate_commit(struct gate *gate);

/* Lets pass what can, after async was signalled. */
void gate_look(struct gate *gate);

#endif
