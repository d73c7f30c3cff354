/* SPDX-License-Identifier: BSD-3-Clause */
/* One thread for all dumps of a running server: they take turns, a piece each,
 * and a client that does not read has no turn. The thread reads files and
 * copies tables, so it is not a worker; to end a dump may close a file, so the
 * thread does that, too. Its priority is lower than the workers'. */
#include "store/dumper.h"

#include "base/assert.h"
#include "base/err.h"
#include "base/give_way.h"
#include "engine/engine_extents.h"
#include "store/digest.h"

#include <string.h>

enum { NICE = 10 };

static bool
is_stopping(const struct dumper *dumper)
{
    /* relaxed: under the lock, or only has to be seen some time */
    return atomic_load_explicit(&dumper->stopping, memory_order_relaxed);
}

/* A new dump's work; NULL where there are too many, or no memory. */
static int
make_work(struct dumper *dumper, struct store_dump *call)
{
    mutex_lock(&dumper->lock);
    ASSERT(dumper->n_works <= DUMPER_WORKS_MAX);
    bool may = dumper->n_works < DUMPER_WORKS_MAX;
    dumper->n_works += may;
    mutex_unlock(&dumper->lock);
    if (!may) {
        return ERR_MANY_DUMPS;
    }
    call->work = dump_work_create(&dumper->source, call->slot, call->serial,
        call->first_id, call->last_id);
    if (call->work != NULL) {
        call->work->owns = call->owns;
    } else {
        mutex_lock(&dumper->lock);
        dumper->n_works--;
        mutex_unlock(&dumper->lock);
    }
    return call->work == NULL ? ERR_NO_MEMORY : 0;
}

/* Sees to it that no id of a work's piece is above its largest_id; true where
 * that is another one then. The piece has been read, so all its ids count. */
static bool
take_largest(struct dumper *dumper, struct dump_work *work)
{
    bool is_new = work->n > 0 &&
        (!work->has_largest || work->id[work->n - 1] > work->largest_id);
    if (is_new) {
        work->has_largest = engine_largest(
            dumper->source.engine, work->slot, &work->largest_id);
    }
    return is_new && work->has_largest;
}

/* The next piece of a digest: nothing of it is shown. */
static void
do_digest(struct dumper *dumper, struct store_dump *call)
{
    const struct dump_source *source = &dumper->source;
    ASSERT(call->first_id == 0 && call->last_id == UINT64_MAX);
    ASSERT(call->owns == NULL);
    call->n = 0;
    if (source->durable == NULL) {
        call->err = ERR_NO_DATA_DIR;
        return;
    }
    if (call->work == NULL) {
        call->err = make_work(dumper, call);
        if (call->err != 0) {
            return;
        }
        digest_begin(call->digest, source->durable);
        call->work->shows_counts = true;
    }
    call->err = dump_work_next(source, call->work);
    digest_add(call->digest, call->work);
    call->is_end = call->err == 0 && dump_work_is_end(call->work);
    if (call->is_end) {
        digest_end(call->digest, source->durable);
    }
}

static void
do_call(struct dumper *dumper, struct store_dump *call)
{
    if (call->digest != NULL) {
        do_digest(dumper, call);
        call->call.done_fn(&call->call);
        return;
    }
    call->err = call->work == NULL ? make_work(dumper, call) : 0;
    call->n = 0;
    struct dump_work *work = call->work;
    if (call->err == 0) {
        call->err = dump_work_next(&dumper->source, work);
        ASSERT(call->slot == work->slot && call->serial == work->serial);
        call->n = work->n;
        call->n_columns = work->n_shown;
        memcpy(call->column_serial, work->shown, sizeof work->shown);
        call->id = work->id;
        call->value = work->value;
        call->member = work->batch == NULL ? NULL : work->batch->one;
        call->bad_first = work->bad_first;
        call->bad_last = work->bad_last;
        call->has_largest = take_largest(dumper, work);
        call->largest_id = work->largest_id;
        call->is_end = dump_work_is_end(work);
    }
    call->call.done_fn(&call->call);
}

/* What there is to do: a call, or works to be freed; false at the end. */
static bool
wait_for_work(
    struct dumper *dumper, struct store_dump **call, struct dump_work **ended)
{
    mutex_lock(&dumper->lock);
    while (dumper->queue.first == NULL && dumper->ended == NULL &&
        !is_stopping(dumper)) {
        mutex_wait(&dumper->lock, &dumper->changed);
    }
    /* call is the first member */
    *call = (struct store_dump *)call_queue_take(&dumper->queue);
    *ended = dumper->ended;
    dumper->ended = NULL;
    bool is_over = is_stopping(dumper);
    mutex_unlock(&dumper->lock);
    return *call != NULL || *ended != NULL || !is_over;
}

static void
free_works(struct dumper *dumper, struct dump_work *ended)
{
    while (ended != NULL) {
        struct dump_work *next = ended->next;
        dump_work_destroy(&dumper->source, &ended);
        ended = next;
        mutex_lock(&dumper->lock);
        ASSERT(dumper->n_works > 0);
        dumper->n_works--;
        mutex_unlock(&dumper->lock);
    }
}

static void *
run(void *arg)
{
    struct dumper *dumper = arg;
    struct store_dump *call;
    struct dump_work *ended;
    ASSERT(dumper->magic == DUMPER_MAGIC);
    give_way_begin(NICE);
    qsbr_register(dumper->source.qsbr, &dumper->reader);
    qsbr_offline(&dumper->reader);
    while (wait_for_work(dumper, &call, &ended)) {
        free_works(dumper, ended);
        if (call != NULL) {
            do_call(dumper, call);
        }
        give_way();
    }
    qsbr_unregister(dumper->source.qsbr, &dumper->reader);
    return NULL;
}

int
dumper_start(struct dumper *dumper)
{
    dumper->magic = DUMPER_MAGIC;
    dumper->source.is_stopping = &dumper->stopping;
    dumper->source.reader = &dumper->reader;
    dumper->queue = (struct call_queue){0};
    atomic_init(&dumper->stopping, false);
    mutex_init(&dumper->lock);
    pthread_cond_init(&dumper->changed, NULL);
    if (pthread_create(&dumper->thread, NULL, run, dumper) != 0) {
        dumper_fini(dumper);
        return ERR_NO_THREAD;
    }
    return 0;
}

void
dumper_stop(struct dumper *dumper)
{
    mutex_lock(&dumper->lock);
    bool was_stopping = is_stopping(dumper);
    /* relaxed: see is_stopping */
    atomic_store_explicit(&dumper->stopping, true, memory_order_relaxed);
    pthread_cond_signal(&dumper->changed);
    mutex_unlock(&dumper->lock);
    if (!was_stopping) {
        pthread_join(dumper->thread, NULL);
    }
}

bool
dumper_has_works(struct dumper *dumper)
{
    ASSERT(dumper->magic == DUMPER_MAGIC);
    mutex_lock(&dumper->lock);
    bool has_works = dumper->n_works > 0;
    mutex_unlock(&dumper->lock);
    return has_works;
}

void
dumper_fini(struct dumper *dumper)
{
    ASSERT(dumper->magic == DUMPER_MAGIC);
    ASSERT(dumper->queue.first == NULL && dumper->n_works == 0);
    ASSERT(dumper->ended == NULL);
    dumper->magic = 0;
    pthread_cond_destroy(&dumper->changed);
    mutex_fini(&dumper->lock);
}

void
dumper_add(struct dumper *dumper, struct store_dump *call)
{
    ASSERT(dumper->magic == DUMPER_MAGIC);
    mutex_lock(&dumper->lock);
    bool is_taken = !is_stopping(dumper);
    if (is_taken) {
        call_queue_add(&dumper->queue, &call->call);
        pthread_cond_signal(&dumper->changed);
    }
    mutex_unlock(&dumper->lock);
    if (!is_taken) {
        call->err = ERR_CLOSED;
        call->n = 0;
        call->call.done_fn(&call->call);
    }
}

void
dumper_end(struct dumper *dumper, struct store_dump *call)
{
    struct dump_work *work = call->work;
    call->work = NULL;
    if (work == NULL) {
        return;
    }
    ASSERT(work->magic == DUMP_WORK_MAGIC);
    mutex_lock(&dumper->lock);
    bool is_taken = !is_stopping(dumper);
    if (is_taken) {
        work->next = dumper->ended;
        dumper->ended = work;
        pthread_cond_signal(&dumper->changed);
    }
    mutex_unlock(&dumper->lock);
    if (!is_taken) {
        work->next = NULL;
        free_works(dumper, work);
    }
}
