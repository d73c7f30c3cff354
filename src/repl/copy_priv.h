/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPL_COPY_PRIV_H
#define REPL_COPY_PRIV_H

#include "base/clock.h"
#include "base/disk.h"
#include "base/log.h"
#include "base/mutex.h"
#include "durable/snapshot_files.h"
#include "repl/copy.h"
#include "repl/message_files.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What both ends of a copy have in common: a thread of its own, a queue of
 * frames to it and one from it. Inside repl/copy*.c. */

_Static_assert((int)MESSAGE_LOG == (int)SNAPSHOT_LOG &&
        (int)MESSAGE_CHECKPOINT == (int)SNAPSHOT_CHECKPOINT &&
        (int)MESSAGE_SEGMENT == (int)SNAPSHOT_SEGMENT,
    "kinds on the wire are those on the disk");
_Static_assert((int)MESSAGE_FILES_MAX == (int)SNAPSHOT_FILES_MAX,
    "the stream has room for what a directory may have");

enum {
    COPY_DATA_BYTES = STREAM_HEAD_BYTES + MESSAGE_DATA_BYTES + STREAM_DATA_MAX,
    COPY_HAVE_BYTES =
        STREAM_HEAD_BYTES + 4 + MESSAGE_HAVE_MAX * MESSAGE_HAVE_BYTES
};

/* A few frames in a ring; under the end's lock, but for the bytes. */
struct copy_queue {
    struct copy_piece piece[COPY_PIECES]; /* frame: owned, of `bytes` */
    uint32_t bytes;
    unsigned n_pieces;       /* that it has room for, 1..COPY_PIECES */
    uint64_t n_put, n_taken; /* n_taken <= n_put <= n_taken + n_pieces */
    bool is_given;           /* the next one is with who takes it */
};

struct copy_end {
    copy_wake_fn *wake_fn;
    void *context;
    const struct clock *clock;
    struct logger *logger;
    pthread_t thread;
    struct mutex lock;
    pthread_cond_t changed; /* something of what follows, for the thread */
    /* under the lock: */
    struct copy_queue to_thread, to_caller;
    enum copy_next outcome; /* COPY_NOTHING: it goes on */
    bool is_stopping;
    bool is_over; /* the thread does nothing any more */
    struct copy_figures figures;
};

/* Memory for both queues: n pieces of that many bytes each. 0 or
 * ERR_NO_MEMORY; fini in any case. */
int copy__init(struct copy_end *end, struct copy_queue to_thread,
    struct copy_queue to_caller);
void copy__fini(struct copy_end *end);

/* Starts the thread, which ends by copy__over. 0 or ERR_NO_THREAD. */
int copy__start(struct copy_end *end, void *(*run)(void *), void *arg);

/* ---- the caller's side; none of them waits ---- */

bool copy__may_hand(struct copy_end *end);
void copy__hand(struct copy_end *end, const struct stream_frame *frame);
enum copy_next copy__next(struct copy_end *end, struct copy_piece *piece);
void copy__figures(struct copy_end *end, struct copy_figures *figures);
void copy__stop(struct copy_end *end);
bool copy__is_over(struct copy_end *end);

/* ---- the thread's side ---- */

bool copy__is_stopping(struct copy_end *end);

/* Waits for room for a frame: its address, or NULL at a stop. */
uint8_t *copy__room(struct copy_end *end);
/* It is written; len bytes of body. */
void copy__put(struct copy_end *end, enum stream_type type, uint32_t len);

/* Waits for the next frame, which stays until this or copy__taken is called.
 * False at a stop. */
bool copy__take(struct copy_end *end, struct stream_frame *frame);
/* The last one has been read. */
void copy__taken(struct copy_end *end);

/* Waits until the clock says so. False at a stop. */
bool copy__wait_until(struct copy_end *end, uint64_t until_ns);

/* One file that was there, or has come. */
void copy__count(struct copy_end *end, uint64_t bytes, bool is_kept);
/* One that was counted as kept comes after all. */
void copy__uncount(struct copy_end *end, uint64_t bytes);
/* What there is in all. */
void copy__expect(struct copy_end *end, uint64_t files, uint64_t bytes);

/* How it has come out: err 0: well. what: static, see struct copy_figures; with
 * a stop there is nobody to be told. */
void copy__end(struct copy_end *end, int err, const char *what);

/* A disk in front of another one, of which all reads fail (ECANCELED) from a
 * stop on. *out is the caller's, freed by disk_front_destroy; both must outlive
 * it. 0 or ENOMEM. */
int copy__disk_create(
    struct disk *under, struct copy_end *end, struct disk **out);

/* The last thing that the thread does with it. */
void copy__over(struct copy_end *end);

#endif
