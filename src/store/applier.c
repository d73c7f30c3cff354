/* SPDX-License-Identifier: BSD-3-Clause */
/* Applies batches of the primary's log.
 *
 *   put -> [ queue ] -> begin(seq), entries, end(seq) -> applied
 *
 * An entry of cells has all columns of its record, so it is a SET that needs no
 * look at what was there, be that in memory or in a segment (change.is_redo).
 * Some are given to the engine together, up to the end of the batch. Where the
 * hot memory is full they wait for the sealer as clients' changes do
 * (tier/cold_change.c), but as long as it takes.
 *
 * Until the end of a batch the sink says its number, so images and segments
 * that are copied meanwhile count as made before it, and it is replayed over
 * them. Entries say what something has become: that does no harm.
 *
 * What can go wrong: an entry that this program does not know, or that does not
 * fit the schema; more producers than there is room for. Then nothing more is
 * applied, the log is told, and reads go on. */
#include "store/applier.h"

#include "base/assert.h"
#include "base/err.h"
#include "durable/durable_about.h"
#include "durable/durable_naming.h"
#include "durable/durable_position.h"
#include "store/keeper_priv.h"
#include "wal/frame.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { RETRY_NS = 10 * 1000 * 1000 };

struct applier_batch {
    struct applier_batch *next;
    uint64_t seq;
    size_t len;
    uint8_t payload[];
};

static size_t
bytes_of(size_t len)
{
    return sizeof(struct applier_batch) + len;
}

static bool
is_stopping(const struct applier *it)
{
    /* relaxed: it only has to be seen some time */
    return atomic_load_explicit(&it->is_stopping, memory_order_relaxed);
}

static void
rest(const struct applier *it)
{
    const struct clock *clock = it->durable->config.clock;
    clock_sleep_until(clock, clock_now_ns(clock) + RETRY_NS);
}

static void
post(sem_t *semaphore)
{
    int err = sem_post(semaphore);
    ASSERT(err == 0);
}

static void
wait_for(sem_t *semaphore)
{
    while (sem_wait(semaphore) != 0) {
        ASSERT(errno == EINTR);
    }
}

/* ---- the schema ---- */

/* What serials and slots mean by the schema that is published now. */
static int
map_schema(struct applier *it)
{
    const struct schema *schema = keeper__current(it->keeper);
    it->places.schema = (struct schema *)schema;
    memset(it->pair_bits, 0, sizeof it->pair_bits);
    for (unsigned slot = 0; slot < SCHEMA_COUNTERS_MAX; slot++) {
        const struct schema_counter *counter = schema_counter_at(schema, slot);
        for (unsigned i = 0; counter != NULL && i < counter->n_columns; i++) {
            const struct schema_column *column = &counter->column[i];
            if (column->kind == SCHEMA_MEMBERS) {
                it->pair_bits[schema_pairs(schema, column)->slot] =
                    column->member_bits;
            }
        }
    }
    return recover_map_places(&it->places);
}

/* True where it is worth another try, after a rest. */
static bool
may_retry(const struct applier *it, int err)
{
    if ((err != ERR_NO_MEMORY && err != ERR_HOT_FULL) || is_stopping(it)) {
        return false;
    }
    rest(it);
    return true;
}

static int
apply_schema(struct applier *it, const struct entry *entry)
{
    int err;
    do {
        err = keeper__apply(it->keeper, entry);
    } while (may_retry(it, err));
    if (err != 0) {
        return err;
    }
    do {
        err = map_schema(it);
    } while (may_retry(it, err));
    return err;
}

static int
apply_moved(struct applier *it, const struct moved_one *moved)
{
    int err;
    do {
        err = keeper__apply_moved(it->keeper, moved);
    } while (may_retry(it, err));
    return err;
}

/* ---- records ---- */

static void
on_answer(struct store_call *call)
{
    struct applier *it = call->owner;
    post(&it->come);
}

/* Makes the changes that are gathered; where there is no room they wait for it,
 * a second at most. */
static void
make_changes(struct applier *it)
{
    struct store_change *call = &it->call;
    call->call = (struct store_call){.done_fn = on_answer, .owner = it};
    call->change = it->change;
    qsbr_online(it->qsbr, &it->reader);
    (void)engine_change(it->engine, it->change, call->n);
    enum store_answer answer = cold_change(it->cold, call);
    qsbr_offline(&it->reader);
    if (answer == STORE_LATER) {
        wait_for(&it->come);
    }
}

/* True where one of the first n is of the same record. */
static bool
has_record(const struct applier *it, uint32_t n, const struct change *change)
{
    uint32_t i = 0;
    while (i < n &&
        (it->change[i].id != change->id ||
            it->change[i].counter != change->counter)) {
        i++;
    }
    return i < n;
}

/* Leaves those that have found no memory, and what is behind one of these in
 * its record: that may have been made, and is made again. 0, or what is wrong
 * with another. */
static int
keep_refused(struct applier *it)
{
    struct store_change *call = &it->call;
    uint32_t n = 0;
    int err = 0;
    for (uint32_t i = 0; i < call->n; i++) {
        int one = it->change[i].err;
        if (one == ERR_HOT_FULL || one == ERR_NO_MEMORY ||
            (one == 0 && has_record(it, n, &it->change[i]))) {
            it->change[n++] = it->change[i];
        } else if (one != 0) {
            err = ERR_CORRUPT; /* it is no change that a primary has made */
        }
    }
    call->n = n;
    return err;
}

/* Makes all that is gathered; records are told whole, so those that wait may
 * come behind others, but not behind others of their own. */
static int
flush(struct applier *it)
{
    while (it->call.n > 0) {
        make_changes(it);
        int err = keep_refused(it);
        if (err != 0) {
            return err;
        }
        if (it->call.n > 0) {
            if (is_stopping(it)) {
                return ERR_CLOSED;
            }
            rest(it);
        }
    }
    return 0;
}

/* Gathers the change that an entry is; columns that have been dropped since are
 * passed over. */
static int
take_cells(struct applier *it, const struct entry_cells *cells)
{
    struct change *change = &it->change[it->call.n];
    const struct schema_counter *counter = NULL;
    unsigned seen = 0;
    ASSERT(it->call.n < ENGINE_WRITES_MAX);
    *change =
        (struct change){.id = cells->id, .op = CHANGE_SET, .is_redo = true};
    for (unsigned i = 0; i < cells->n; i++) {
        uint32_t serial = cells->serial[i];
        if (serial >= it->places.n_places ||
            it->places.place[serial].counter == NULL) {
            continue;
        }
        const struct recover_place *place = &it->places.place[serial];
        unsigned at = change->n_columns++;
        if ((counter != NULL && counter != place->counter) ||
            (seen >> place->column & 1) != 0) {
            return ERR_CORRUPT;
        }
        seen |= 1U << place->column;
        counter = place->counter;
        change->column[at] = place->column;
        change->serial[at] = serial;
        change->operand[at] = cells->value[i];
    }
    if (counter == NULL) {
        return 0;
    }
    change->counter = counter->slot;
    change->pair_bits = it->pair_bits[counter->slot];
    return ++it->call.n == ENGINE_WRITES_MAX ? flush(it) : 0;
}

/* ---- batches ---- */

/* A number that is given again is waited for: readers here may have it yet. */
static int
apply_name(struct applier *it, const struct entry_name *name)
{
    int err;
    do {
        err = durable_naming_apply(it->durable, name);
    } while (may_retry(it, err));
    return err;
}

/* Takes a name out, and tells gets that wait for the disk meanwhile. A round of
 * the primary goes up from shard to shard and number to number, so what does
 * not is of the next one. How long it is after the one before is not known
 * here, for a replica that is behind is quicker: so it counts as two. */
static int
take_out(struct applier *it, const struct entry_name *name)
{
    uint64_t at = ((uint64_t)name->shard << 32 | name->number) + 1;
    /* what is gathered may be of the id whose name goes */
    int err = flush(it);
    if (err != 0) {
        return err;
    }
    if (at <= it->gone_at) {
        /* release, here and below: see struct store */
        atomic_fetch_add_explicit(it->names_rounds, 2, memory_order_release);
    }
    it->gone_at = at;
    err = apply_name(it, name);
    atomic_fetch_add_explicit(it->names_dropped, 1, memory_order_release);
    return err;
}

static int
apply_entry(struct applier *it, const struct entry *entry)
{
    int err;
    switch (entry->kind) {
    case ENTRY_END:
    case ENTRY_TERM: /* the log knows it (wal_put_batch) */
        return 0;
    case ENTRY_CELLS:
    case ENTRY_CELLS_NEAR:
        return take_cells(it, &entry->cells);
    case ENTRY_NUMBER:
        return producers_apply_number(it->producers, it->engine,
            entry->producer, entry->shard, entry->number);
    case ENTRY_PRODUCER:
        do {
            err = producers_apply_made(
                it->producers, it->engine, entry->producer, &entry->name);
        } while (may_retry(it, err));
        return err;
    case ENTRY_PRODUCER_DROPPED:
        producers_apply_dropped(it->producers, it->engine, entry->producer);
        return 0;
    case ENTRY_PRODUCER_JOINED:
        producers_apply_joined(
            it->producers, it->engine, entry->producer, &entry->seen);
        return 0;
    case ENTRY_COUNTER:
    case ENTRY_DROPPED:
        err = flush(it);
        return err == 0 ? apply_schema(it, entry) : err;
    case ENTRY_ABOUT:
        qsbr_online(it->qsbr, &it->reader);
        durable_about_redo(it->durable, &entry->about);
        qsbr_offline(&it->reader);
        return 0;
    case ENTRY_NAME:
        return entry->named.len == 0 ? take_out(it, &entry->named)
                                     : apply_name(it, &entry->named);
    case ENTRY_ABOUT_ROLLED:
        do {
            err = durable_about_roll(it->durable, &entry->rolled);
        } while (may_retry(it, err));
        return err;
    case ENTRY_MOVED:
        err = flush(it);
        return err == 0 ? apply_moved(it, &entry->moved) : err;
    case ENTRY_MEMBERS: /* is read as cells */
        break;
    }
    return ERR_NEWER_FORMAT;
}

static int
apply_batch(struct applier *it, const struct applier_batch *batch)
{
    struct entry_reader reader = {
        .at = batch->payload, .end = batch->payload + batch->len};
    struct entry entry;
    int err = 0;
    durable_apply_begin(it->durable, batch->seq);
    it->call.n = 0;
    while (err == 0 && entry_has_next(&reader)) {
        err = entry_next(&reader, &entry) ? apply_entry(it, &entry)
                                          : ERR_NEWER_FORMAT;
    }
    err = err == 0 ? flush(it) : err;
    if (err == 0) {
        durable_apply_end(it->durable, batch->seq);
    } else if (!is_stopping(it)) {
        durable_apply_fail(it->durable);
        log_line(it->durable->config.logger, LOG_ERROR,
            "batch %" PRIu64 " of the primary's log cannot be applied: %s; "
            "this replica stays as it is until it is started anew",
            batch->seq, err_text(err));
    }
    return err;
}

/* The next one; NULL when the thread is to end. */
static struct applier_batch *
take(struct applier *it)
{
    mutex_lock(&it->lock);
    while (!is_stopping(it) && (it->first == NULL || it->err != 0)) {
        it->is_resting = true;
        mutex_unlock(&it->lock);
        /* not a condition: who has waited for one has its mutex as one that
         * others wait for, and leaves it by a call of the kernel */
        wait_for(&it->wake);
        mutex_lock(&it->lock);
    }
    it->is_resting = false;
    struct applier_batch *batch = is_stopping(it) ? NULL : it->first;
    if (batch != NULL) {
        it->first = batch->next;
    }
    mutex_unlock(&it->lock);
    return batch;
}

static void
note_done(struct applier *it, const struct applier_batch *batch, int err)
{
    mutex_lock(&it->lock);
    ASSERT(it->n_bytes >= bytes_of(batch->len) && it->err == 0);
    it->n_bytes -= bytes_of(batch->len);
    it->err = err;
    pthread_cond_broadcast(&it->changed);
    mutex_unlock(&it->lock);
}

static void *
run(void *arg)
{
    struct applier *it = arg;
    struct applier_batch *batch;
    ASSERT(it->magic == APPLIER_MAGIC);
    qsbr_register(it->qsbr, &it->reader);
    while ((batch = take(it)) != NULL) {
        note_done(it, batch, apply_batch(it, batch));
        free(batch);
    }
    qsbr_unregister(it->qsbr, &it->reader);
    return NULL;
}

/* ---- from other threads ---- */

static void
fini(struct applier *it)
{
    while (it->first != NULL) {
        struct applier_batch *batch = it->first;
        it->first = batch->next;
        free(batch);
    }
    free(it->places.place);
    it->places = (struct recover_schema){0};
    (void)sem_destroy(&it->come);
    (void)sem_destroy(&it->wake);
    pthread_cond_destroy(&it->changed);
    mutex_fini(&it->lock);
    it->magic = 0;
}

int
applier_start(struct applier *applier)
{
    ASSERT(durable_is_replica(applier->durable));
    ASSERT(applier->magic == 0 && applier->first == NULL);
    atomic_init(&applier->is_stopping, false);
    applier->n_bytes = 0;
    applier->err = 0;
    applier->is_resting = false;
    applier->last_seq = durable_applied(applier->durable);
    int err = map_schema(applier);
    if (err != 0) {
        return err;
    }
    if (sem_init(&applier->come, 0, 0) != 0 ||
        sem_init(&applier->wake, 0, 0) != 0) {
        ASSERT(false); /* of a value that it may have */
    }
    mutex_init(&applier->lock);
    pthread_cond_init(&applier->changed, NULL);
    applier->magic = APPLIER_MAGIC;
    if (pthread_create(&applier->thread, NULL, run, applier) != 0) {
        fini(applier);
        return ERR_NO_THREAD;
    }
    return 0;
}

void
applier_stop(struct applier *applier)
{
    ASSERT(applier->magic == APPLIER_MAGIC);
    mutex_lock(&applier->lock);
    /* relaxed: see is_stopping */
    atomic_store_explicit(&applier->is_stopping, true, memory_order_relaxed);
    mutex_unlock(&applier->lock);
    post(&applier->wake);
    pthread_join(applier->thread, NULL);
    fini(applier);
}

static struct applier_batch *
make_batch(uint64_t seq, const uint8_t *payload, size_t len)
{
    struct applier_batch *batch = malloc(bytes_of(len));
    if (batch != NULL) {
        batch->next = NULL;
        batch->seq = seq;
        batch->len = len;
        memcpy(batch->payload, payload, len);
    }
    return batch;
}

int
applier_make(struct applier *applier, uint64_t seq, const uint8_t *payload,
    size_t len, struct applier_batch **out)
{
    ASSERT(applier->magic == APPLIER_MAGIC);
    ASSERT(len > 0 && len <= FRAME_PAYLOAD_MAX);
    mutex_lock(&applier->lock);
    bool is_new = seq > applier->last_seq;
    bool has_room = applier->n_bytes + bytes_of(len) <= APPLIER_QUEUE_BYTES;
    int err = applier->err;
    mutex_unlock(&applier->lock);
    *out = NULL;
    if (err != 0 || !is_new) {
        return err;
    }
    *out = has_room ? make_batch(seq, payload, len) : NULL;
    return *out == NULL ? ERR_LOG_FULL : 0;
}

void
applier_unmake(struct applier_batch *batch)
{
    free(batch);
}

void
applier_put(struct applier *applier, struct applier_batch *batch)
{
    ASSERT(applier->magic == APPLIER_MAGIC);
    mutex_lock(&applier->lock);
    ASSERT(batch->seq > applier->last_seq);
    if (applier->first == NULL) {
        applier->first = batch;
    } else {
        applier->last->next = batch;
    }
    applier->last = batch;
    applier->last_seq = batch->seq;
    applier->n_bytes += bytes_of(batch->len);
    bool is_resting = applier->is_resting;
    applier->is_resting = false;
    mutex_unlock(&applier->lock);
    if (is_resting) { /* not under the lock, for which it would wait */
        post(&applier->wake);
    }
}

int
applier_drain(struct applier *applier)
{
    ASSERT(applier->magic == APPLIER_MAGIC);
    mutex_lock(&applier->lock);
    while (applier->n_bytes > 0 && applier->err == 0) {
        mutex_wait(&applier->lock, &applier->changed);
    }
    int err = applier->err;
    mutex_unlock(&applier->lock);
    return err;
}
