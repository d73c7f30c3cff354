/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPL_COPY_OUT_H
#define REPL_COPY_OUT_H

#include "base/clock.h"
#include "base/log.h"
#include "repl/copy.h"
#include "repl/message.h"

#include <stdbool.h>
#include <stdint.h>

struct store;

/* Sends a snapshot of a store's directory to one replica (repl/copy.h):
 *
 *   OPENING --> LISTING --> ASKING --> SENDING --> HOLDING --> OVER
 *
 * From each of them it can be over, by copy_out_stop or by a failure. HOLDING:
 * all was handed out and the files are closed, but the log behind the snapshot
 * is kept until the replica has loaded it and asks for that: for hold_ms, or
 * until copy_out_stop. So the caller keeps the copy, by the replica's name,
 * when the connection has ended behind COPY_DONE, and stops it once the replica
 * of that name follows the log.
 *
 * A store has one that reads at a time (copy_out_is_reading): another replica
 * is told to come again (MESSAGE_BUSY). One thread for all calls. */

struct copy_out_config {
    struct store *store; /* with a data directory; outlives the copy */
    struct logger *logger;
    const struct clock *clock;  /* NULL: the system's */
    struct message_text source; /* this node's name; copied */
    uint64_t rate;              /* bytes that are read a second; 0: any */
    uint64_t pin_bytes_max;     /* of log kept for the replica, see wal_pin */
    uint64_t hold_ms;
    copy_wake_fn *wake_fn;
    void *context;
};

struct copy_out;

/* Begins. *out is the caller's. 0, ERR_NO_MEMORY, ERR_NO_THREAD. */
int copy_out_start(
    const struct copy_out_config *config, struct copy_out **out);

/* False: a HAVE is not to be read from the stream yet; wake_fn will tell. */
bool copy_out_may_take(struct copy_out *copy);

/* A HAVE has come, and may be taken. Whatever is wrong with it fails the
 * copy. */
void copy_out_take(struct copy_out *copy, const struct stream_frame *frame);

/* What is next. COPY_FRAME: SNAPSHOT, FILE, DATA or END, for link_primary_copy;
 * it counts as sent. COPY_DONE: all were handed out. */
enum copy_next copy_out_next(struct copy_out *copy, struct copy_piece *piece);

/* False: it has no file open, and the store can take another snapshot. */
bool copy_out_is_reading(struct copy_out *copy);

void copy_out_figures(struct copy_out *copy, struct copy_figures *figures);

/* It is to end, from whatever point; does not wait. Then, or after a failure,
 * or when hold_ms are over, copy_out_is_over becomes true, and wake_fn tells
 * so. */
void copy_out_stop(struct copy_out *copy);
bool copy_out_is_over(struct copy_out *copy);

/* Frees *copy and nulls it; NULL is fine. Waits for the disk unless it is over.
 * Before store_end_calls. */
void copy_out_destroy(struct copy_out **copy);

#endif
