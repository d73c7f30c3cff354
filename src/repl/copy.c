/* SPDX-License-Identifier: BSD-3-Clause */
/* What both ends of a copy are made of. The caller's thread and the copy's meet
 * in two rings of a few frames, whose buffers are there from the start: so
 * handing a frame over takes a lock and at most a copy of its bytes, and no
 * memory. Whoever finds a ring full or empty goes away and is woken: the
 * copy's thread by the condition, the caller by wake_fn, which is called
 * without the lock. */
#include "repl/copy_priv.h"

#include "base/assert.h"
#include "base/err.h"

#include <stdlib.h>
#include <string.h>

static int
queue_init(struct copy_queue *queue)
{
    ASSERT(queue->n_pieces >= 1 && queue->n_pieces <= COPY_PIECES);
    for (unsigned i = 0; i < queue->n_pieces; i++) {
        queue->piece[i].frame = malloc(queue->bytes);
        if (queue->piece[i].frame == NULL) {
            return ERR_NO_MEMORY;
        }
    }
    return 0;
}

static void
queue_fini(struct copy_queue *queue)
{
    for (unsigned i = 0; i < queue->n_pieces; i++) {
        free(queue->piece[i].frame);
        queue->piece[i].frame = NULL;
    }
}

static bool
has_room(const struct copy_queue *queue)
{
    ASSERT(queue->n_taken <= queue->n_put);
    ASSERT(queue->n_put - queue->n_taken <= queue->n_pieces);
    return queue->n_put - queue->n_taken < queue->n_pieces;
}

static struct copy_piece *
next_to_put(struct copy_queue *queue)
{
    return &queue->piece[queue->n_put % queue->n_pieces];
}

/* What was given last comes back. True where there was something. */
static bool
take_back(struct copy_queue *queue)
{
    bool was_given = queue->is_given;

    queue->n_taken += was_given;
    queue->is_given = false;
    return was_given;
}

/* NULL: there is none. */
static const struct copy_piece *
give(struct copy_queue *queue)
{
    ASSERT(!queue->is_given);
    if (queue->n_taken == queue->n_put) {
        return NULL;
    }
    queue->is_given = true;
    return &queue->piece[queue->n_taken % queue->n_pieces];
}

int
copy__init(struct copy_end *end, struct copy_queue to_thread,
    struct copy_queue to_caller)
{
    int err;

    mutex_init(&end->lock);
    clock_cond_init(&end->changed);
    end->to_thread = to_thread;
    end->to_caller = to_caller;
    err = queue_init(&end->to_thread);
    return err == 0 ? queue_init(&end->to_caller) : err;
}

void
copy__fini(struct copy_end *end)
{
    queue_fini(&end->to_thread);
    queue_fini(&end->to_caller);
    pthread_cond_destroy(&end->changed);
    mutex_fini(&end->lock);
}

int
copy__start(struct copy_end *end, void *(*run)(void *), void *arg)
{
    ASSERT(end->wake_fn != NULL);
    return pthread_create(&end->thread, NULL, run, arg) == 0 ? 0
                                                             : ERR_NO_THREAD;
}

/* ---- the caller's side ---- */

bool
copy__may_hand(struct copy_end *end)
{
    bool may;

    mutex_lock(&end->lock);
    may = has_room(&end->to_thread);
    mutex_unlock(&end->lock);
    return may;
}

void
copy__hand(struct copy_end *end, const struct stream_frame *frame)
{
    struct copy_queue *queue = &end->to_thread;
    bool is_over;

    mutex_lock(&end->lock);
    ASSERT(has_room(queue));
    is_over = end->outcome != COPY_NOTHING || end->is_stopping;
    /* what is longer than the frames that are due is not one of them */
    if (!is_over && STREAM_HEAD_BYTES + frame->len <= queue->bytes) {
        struct copy_piece *piece = next_to_put(queue);

        piece->type = frame->type;
        piece->len = frame->len;
        memcpy(piece->frame + STREAM_HEAD_BYTES, frame->body, frame->len);
        queue->n_put++;
        pthread_cond_signal(&end->changed);
        mutex_unlock(&end->lock);
        return;
    }
    mutex_unlock(&end->lock);
    if (!is_over) {
        copy__end(end, ERR_CORRUPT, "a frame is not due");
    }
}

enum copy_next
copy__next(struct copy_end *end, struct copy_piece *piece)
{
    const struct copy_piece *given = NULL;
    enum copy_next next;

    mutex_lock(&end->lock);
    if (take_back(&end->to_caller)) {
        pthread_cond_signal(&end->changed);
    }
    next = end->outcome;
    if (next != COPY_FAILED) {
        given = give(&end->to_caller);
    }
    if (given != NULL) {
        *piece = *given;
        next = COPY_FRAME;
    }
    mutex_unlock(&end->lock);
    return next;
}

void
copy__figures(struct copy_end *end, struct copy_figures *figures)
{
    mutex_lock(&end->lock);
    *figures = end->figures;
    mutex_unlock(&end->lock);
}

void
copy__stop(struct copy_end *end)
{
    mutex_lock(&end->lock);
    end->is_stopping = true;
    pthread_cond_signal(&end->changed);
    mutex_unlock(&end->lock);
}

bool
copy__is_over(struct copy_end *end)
{
    bool is_over;

    mutex_lock(&end->lock);
    is_over = end->is_over;
    mutex_unlock(&end->lock);
    return is_over;
}

/* ---- the thread's side ---- */

/* Also after a failure that the caller has seen first. */
static bool
is_stopping(const struct copy_end *end)
{
    mutex_assert_held(&end->lock);
    return end->is_stopping || end->outcome == COPY_FAILED;
}

bool
copy__is_stopping(struct copy_end *end)
{
    bool is;

    mutex_lock(&end->lock);
    is = is_stopping(end);
    mutex_unlock(&end->lock);
    return is;
}

uint8_t *
copy__room(struct copy_end *end)
{
    uint8_t *room = NULL;

    mutex_lock(&end->lock);
    while (!is_stopping(end) && !has_room(&end->to_caller)) {
        mutex_wait(&end->lock, &end->changed);
    }
    if (!is_stopping(end)) {
        room = next_to_put(&end->to_caller)->frame;
    }
    mutex_unlock(&end->lock);
    return room;
}

void
copy__put(struct copy_end *end, enum stream_type type, uint32_t len)
{
    struct copy_queue *queue = &end->to_caller;
    struct copy_piece *piece;

    ASSERT(STREAM_HEAD_BYTES + len <= queue->bytes);
    mutex_lock(&end->lock);
    ASSERT(has_room(queue));
    piece = next_to_put(queue);
    piece->type = type;
    piece->len = len;
    queue->n_put++;
    mutex_unlock(&end->lock);
    end->wake_fn(end->context);
}

void
copy__taken(struct copy_end *end)
{
    bool was_given;

    mutex_lock(&end->lock);
    was_given = take_back(&end->to_thread);
    mutex_unlock(&end->lock);
    if (was_given) {
        end->wake_fn(end->context);
    }
}

bool
copy__take(struct copy_end *end, struct stream_frame *frame)
{
    const struct copy_piece *given = NULL;

    copy__taken(end);
    mutex_lock(&end->lock);
    while (!is_stopping(end) && (given = give(&end->to_thread)) == NULL) {
        mutex_wait(&end->lock, &end->changed);
    }
    mutex_unlock(&end->lock);
    if (given != NULL) {
        *frame = (struct stream_frame){.type = given->type,
            .body = given->frame + STREAM_HEAD_BYTES,
            .len = given->len};
    }
    return given != NULL;
}

bool
copy__wait_until(struct copy_end *end, uint64_t until_ns)
{
    bool is;

    mutex_lock(&end->lock);
    while (!is_stopping(end) && clock_now_ns(end->clock) < until_ns) {
        (void)clock_cond_wait(end->clock, &end->changed, &end->lock, until_ns);
    }
    is = is_stopping(end);
    mutex_unlock(&end->lock);
    return !is;
}

void
copy__count(struct copy_end *end, uint64_t bytes, bool is_kept)
{
    struct copy_figures *figures = &end->figures;

    mutex_lock(&end->lock);
    figures->files_kept += is_kept;
    figures->bytes_kept += is_kept ? bytes : 0;
    figures->files_moved += !is_kept;
    figures->bytes_moved += is_kept ? 0 : bytes;
    mutex_unlock(&end->lock);
}

void
copy__uncount(struct copy_end *end, uint64_t bytes)
{
    mutex_lock(&end->lock);
    ASSERT(end->figures.files_kept > 0 && end->figures.bytes_kept >= bytes);
    end->figures.files_kept--;
    end->figures.bytes_kept -= bytes;
    mutex_unlock(&end->lock);
}

void
copy__expect(struct copy_end *end, uint64_t files, uint64_t bytes)
{
    mutex_lock(&end->lock);
    end->figures.files = files;
    end->figures.bytes = bytes;
    mutex_unlock(&end->lock);
}

void
copy__end(struct copy_end *end, int err, const char *what)
{
    bool is_told;

    ASSERT(err == 0 || what != NULL);
    mutex_lock(&end->lock);
    is_told = end->outcome == COPY_NOTHING && !end->is_stopping;
    if (end->outcome == COPY_NOTHING) {
        end->outcome = err == 0 ? COPY_DONE : COPY_FAILED;
        end->figures.err = err;
        end->figures.what = what;
        pthread_cond_signal(&end->changed);
    }
    mutex_unlock(&end->lock);
    if (is_told && err == ERR_CORRUPT) { /* of a frame, or of a file */
        log_event(end->logger, "repl_snapshot", LOG_WARNING,
            "a copy of the directory has failed, this is wrong: %s", what);
    } else if (is_told && err != 0) {
        log_event(end->logger, "repl_snapshot", LOG_WARNING,
            "a copy of the directory has failed: %s: %s", what,
            err_file_text(err));
    }
    end->wake_fn(end->context);
}

void
copy__over(struct copy_end *end)
{
    mutex_lock(&end->lock);
    end->is_over = true;
    mutex_unlock(&end->lock);
    end->wake_fn(end->context);
}
