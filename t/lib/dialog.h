/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LIB_DIALOG_H
#define LIB_DIALOG_H

#include "base/buf.h"
#include "session/session.h"
#include "stats/metric.h"
#include "store/store.h"

#include <semaphore.h>
#include <stdbool.h>

/* A conversation with a session, without a socket and without a worker: what
 * is said is worked on before the call returns. Each has an executor of its
 * own. One thread at a time; that thread becomes a reader of the store's qsbr
 * while the session works.
 *
 * Every call of the session gets its bytes at another address, in a block of
 * just their size, and an empty buffer for its replies. What session.h
 * promises of each state is asserted; and that it comes to an end, so that a
 * test of a session that turns in a circle fails and does not hang. */

enum {
    DIALOG_MARK = 64 << 10,
    DIALOG_BUDGET = 20,
    DIALOG_IDLE_MAX = 1000, /* calls in a row that take and say nothing */
    DIALOG_WAIT_S = 300     /* for the store, beside other tests */
};

struct dialog {
    struct store *store;
    struct metric_set *metrics; /* owned: a stack may lack its alignment */
    struct admin admin;         /* stats repeats its arguments */
    struct executor executor;
    struct session session;
    struct qsbr_reader reader;
    sem_t woken;     /* posted by wake_fn */
    size_t mark;     /* of each call; may be changed */
    unsigned budget; /* likewise */
    struct buf in;   /* said, but not yet done */
    struct buf replies;
    size_t out_bytes_max; /* the most that one call replied */
    unsigned n_calls, n_full, n_yield, n_parked;
    unsigned n_idle;    /* the last calls, which took and said nothing */
    unsigned verbosity; /* what a client has set */
    bool is_closed;     /* the session has said CLOSE */
};

/* store must outlive it. Values above value_bytes_max are too large. */
void dialog_open(
    struct dialog *dialog, struct store *store, uint64_t value_bytes_max);

/* Nothing may be parked. */
void dialog_close(struct dialog *dialog);

/* Appends bytes to what is not yet done, without working on it. */
void dialog_add(struct dialog *dialog, const void *bytes, size_t len);

/* One call of the session. After SESSION_PARKED comes dialog_wait. */
enum session_state dialog_step(struct dialog *dialog);

/* Waits for the store, and wakes the session. */
void dialog_wait(struct dialog *dialog);

/* Says bytes and steps until the session wants more of them, or closes. */
void dialog_say(struct dialog *dialog, const void *bytes, size_t len);

#endif
