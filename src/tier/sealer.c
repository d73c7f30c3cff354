/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs the thread that seals ranges, so that there is room in memory.
 *
 * Every 20 ms (seal_tidy_bounds.slice_ms), where the hot tables take more than
 * BEGIN of their budget, it seals ranges until they take less than END of it.
 * What waits for readers is on its way out and does not count. Where they take
 * less, the tidier has a turn.
 *
 * Above HASTE writers fill memory sooner than it is emptied. From there on the
 * range that frees most for what it writes goes first, in parts that are
 * written soon: a change waits for room a second at most. That lasts until
 * memory has been below HASTE for CALM_MS: to begin each round of a lasting
 * load in the usual way would free less for what it writes, until it is late
 * again. Where nobody waits the tidier has its slices in between, for there are
 * many small files then. From URGENT on another thread seals, with the priority
 * of the workers: a change that waits must not wait for all else that the
 * machine does. A round ends where as many ranges could not be read as can be
 * set aside: the next one would be one of these again.
 *
 * A table that grows takes much at once, and may find no room below BEGIN:
 * where a change has waited for a while, one range is sealed all the same.
 *
 * A range that is due by its counter's cold_after= is sealed without that, one
 * a round, so that room is made and calls are heard in between.
 *
 * `seal NAME all` seals a counter's ranges one after the other, then asks for a
 * checkpoint; when that has come through, all is durable. A stop ends it behind
 * the range under way, or within it; what it has sealed stays so. */
#include "tier/sealer.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/give_way.h"
#include "base/num.h"
#include "engine/engine_extents.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define NS_PER_MS UINT64_C(1000000)

_Static_assert((int)STORE_FILE_BYTES == (int)SEGMENT_NAME_BYTES,
    "a call has room for the name of a segment");

enum {
    NICE = 10,
    DUE_MS = 1000,   /* where nothing is due, the next look comes then */
    RETRY_MS = 2000, /* after a failure */
    BEGIN = 80,      /* percent of the budget */
    END = 75,
    URGENT = 85,     /* from there on with the workers' priority */
    HASTE = 90,      /* from there on what frees most */
    SAY_MS = 60000,  /* between two lines of the log about seals */
    CALM_MS = 30000, /* until it has been less for so long */
    TRIES = 16,      /* where the counter's columns change meanwhile */
    ENDING_MAGIC = 0x53e9a21f
};

_Static_assert(END < BEGIN && BEGIN < URGENT && URGENT < HASTE && HASTE < 100,
    "more is done the more memory is taken");

/* The checkpoint that makes a call durable. */
struct ending {
    struct store_checkpoint checkpoint; /* first */
    uint32_t magic;                     /* ENDING_MAGIC */
    struct store_seal *call;
};

static bool
is_stopping(const struct sealer *sealer)
{
    /* relaxed: it only has to be seen some time */
    return atomic_load_explicit(&sealer->stopping, memory_order_relaxed);
}

static const struct clock *
clock_of(const struct sealer *sealer)
{
    return sealer->seal.durable->config.clock;
}

static uint64_t
time_ns(const struct sealer *sealer)
{
    return clock_now_ns(clock_of(sealer));
}

static uint64_t
used_bytes(const struct sealer *sealer)
{
    uint64_t garbage = 0;
    uint64_t used = engine_hot_bytes(sealer->seal.engine, &garbage);
    return used > garbage ? used - garbage : 0;
}

/* What the log says of a slot. */
struct label {
    char text[2 * SCHEMA_NAME_MAX + sizeof ".: members"];
};

/* The counter in a slot, of pairs the column that has them; empty where there
 * is none any more. */
static struct label
label_of(struct sealer *sealer, unsigned slot)
{
    struct label label = {""};
    struct durable *durable = sealer->seal.durable;
    ASSERT(slot < SCHEMA_COUNTERS_MAX);
    mutex_lock(&durable->edit_lock);
    /* relaxed: under edit_lock, like all who store it */
    const struct schema *schema =
        atomic_load_explicit(sealer->seal.schema, memory_order_relaxed);
    const struct schema_counter *counter = schema_counter_at(schema, slot);
    if (counter != NULL && counter->members_of != 0) {
        (void)snprintf(label.text, sizeof label.text, "%s.%s: members",
            schema_owner(schema, counter)->name.text,
            schema_members(schema, counter)->name.text);
    } else if (counter != NULL) {
        (void)snprintf(
            label.text, sizeof label.text, "%s, ids", counter->name.text);
    }
    mutex_unlock(&durable->edit_lock);
    return label;
}

static void
set_aside(struct sealer *sealer, const struct seal_range *range, int err)
{
    durable_count(&sealer->seal.stats.seal_asides, 1);
    if (seal_aside_add(&sealer->aside, range)) {
        struct label label = label_of(sealer, range->slot);
        log_line(sealer->seal.durable->config.logger, LOG_WARNING,
            "%s %" PRIu64 " to %" PRIu64 ": %s; what is in memory of "
            "them cannot be moved to the cold tier now, other ranges are",
            label.text, range->first_id, range->last_id, err_file_text(err));
    }
}

/* A range has been sealed: a manifest is to name it soon, so that a crash does
 * not bring all that a long seal has done back into memory; and who waits for
 * room may have some. */
static void
after_range(struct sealer *sealer, const struct seal_range *range)
{
    ASSERT(range->unreadable == 0);
    tidier_note(&sealer->tidier, range);
    checkpointer_want_segments(sealer->checkpointer, NULL);
    cold__retry(sealer->cold, true);
}

/* A range has been sealed, or not. One that lies over a segment which cannot be
 * read is set aside; after any other error nothing is sealed for a while. */
static void
note_seal(struct sealer *sealer, const struct seal_range *range, int err)
{
    if (err == 0) {
        seal_aside_drop(&sealer->aside, range);
        after_range(sealer, range);
    }
    if (err != 0 && range->unreadable != 0) {
        set_aside(sealer, range, err);
    } else if (err != 0 && err != ERR_GONE && err != ERR_CLOSED) {
        log_line(sealer->seal.durable->config.logger, LOG_WARNING,
            "records could not be moved to the cold tier: %s; they stay in "
            "memory, next try in %d s",
            err_file_text(err), RETRY_MS / 1000);
        sealer->not_before_ns = time_ns(sealer) + RETRY_MS * NS_PER_MS;
    }
}

/* True where ranges may be sealed now. */
static bool
is_free(struct sealer *sealer)
{
    uint64_t now_ns = time_ns(sealer);
    sealer->aside.now_s = now_ns / (1000 * NS_PER_MS);
    return !sealer->is_told && !is_stopping(sealer) &&
        now_ns >= sealer->not_before_ns;
}

/* One range of a round. */
struct turn {
    struct sealer *sealer;
    bool is_hasty;  /* what frees most goes first */
    bool is_urgent; /* nothing else is done for it */
    bool is_found;  /* out: there was one */
    int err;        /* out, of its seal */
    struct seal_range range;
};

/* Part of it is to let those go on who wait for room, and soon. */
static void
take_turn(void *context)
{
    struct turn *it = context;
    struct sealer *sealer = it->sealer;
    struct seal *seal = &sealer->seal;
    ASSERT(sealer->magic == SEALER_MAGIC && !it->is_found);
    it->is_found = it->is_hasty
        ? seal_pick__soon(seal, &sealer->aside, &sealer->rest, &it->range)
        : seal_pick__best(seal, &sealer->aside, &it->range);
    if (it->is_found) {
        ASSERT(it->range.first_id <= it->range.last_id);
        it->range.is_urgent = it->is_urgent;
        it->err = seal_run(seal, &it->range);
        note_seal(sealer, &it->range, it->err);
    }
}

static bool
is_above(const struct sealer *sealer, unsigned percent)
{
    return used_bytes(sealer) > sealer->hot_bytes / 100 * percent;
}

static void
begin_turn(struct sealer *sealer, struct turn *turn)
{
    uint64_t now_ns = time_ns(sealer);
    if (is_above(sealer, HASTE)) {
        sealer->haste_ns = now_ns + CALM_MS * NS_PER_MS;
    }
    *turn =
        (struct turn){.sealer = sealer, .is_hasty = now_ns < sealer->haste_ns};
}

/* Of what is written in haste, which is in small files. */
static void
after_haste(struct sealer *sealer)
{
    durable_count(&sealer->seal.stats.seals_pressed, 1);
    if (!is_above(sealer, HASTE)) {
        tidier_turn(&sealer->tidier, used_bytes(sealer));
    }
}

/* Seals while the budget asks for it; false where that cannot be done now. */
static bool
make_room(struct sealer *sealer)
{
    struct turn turn;
    unsigned n_aside = 0;
    if (!is_free(sealer)) {
        return false;
    }
    bool is_full = is_above(sealer, BEGIN);
    bool is_wanted = cold__waits_long(sealer->cold);
    if (!is_full && !is_wanted) {
        return true;
    }
    for (; is_wanted || is_above(sealer, END); is_wanted = false) {
        if (!is_free(sealer) || n_aside == SEAL_ASIDE_MAX) {
            return false;
        }
        begin_turn(sealer, &turn);
        turn.is_urgent = turn.is_hasty || is_above(sealer, URGENT);
        if (turn.is_urgent) {
            delegate_do(&sealer->hasty, take_turn, &turn);
        } else {
            take_turn(&turn);
        }
        if (!turn.is_found) {
            return !is_full;
        }
        if (turn.err == 0 && turn.is_hasty) {
            after_haste(sealer);
        }
        n_aside += turn.err != 0 && turn.range.unreadable != 0;
    }
    return true;
}

/* Seals a range that is due, if there is one. */
static void
seal_due(struct sealer *sealer)
{
    struct seal_range range;
    uint64_t now_ns = time_ns(sealer);
    if (!is_free(sealer) || now_ns < sealer->due_ns) {
        return;
    }
    if (!seal_pick__due(&sealer->seal, &sealer->aside, &range)) {
        sealer->due_ns = now_ns + DUE_MS * NS_PER_MS;
        return;
    }
    int err = seal_run(&sealer->seal, &range);
    note_seal(sealer, &range, err);
    if (err == 0) {
        durable_count(&sealer->seal.stats.seals_after, 1);
    } else {
        sealer->due_ns = now_ns + DUE_MS * NS_PER_MS;
    }
}

/* The slots of the counter that a call names and of those of its pairs, *n <=
 * SCHEMA_COLUMNS_MAX + 1; 0, or ERR_GONE, or ERR_NEVER_COLD. */
static int
take_slots(struct sealer *sealer, const struct store_seal *call, uint8_t *slot,
    unsigned *n)
{
    struct durable *durable = sealer->seal.durable;
    *n = 0;
    mutex_lock(&durable->edit_lock);
    /* relaxed: under edit_lock, like all who store it */
    const struct schema_counter *counter = schema_counter_at(
        atomic_load_explicit(sealer->seal.schema, memory_order_relaxed),
        call->slot);
    int err = counter == NULL || counter->serial != call->serial ? ERR_GONE
        : counter->cold_is_never ? ERR_NEVER_COLD
                                 : 0;
    slot[(*n)++] = (uint8_t)call->slot;
    for (unsigned i = 0; err == 0 && i < counter->n_columns; i++) {
        if (counter->column[i].kind == SCHEMA_MEMBERS) {
            slot[(*n)++] = counter->column[i].pairs;
        }
    }
    mutex_unlock(&durable->edit_lock);
    return err;
}

/* Whether the counter in a slot may be sealed for a call: as take_slots; a
 * column of members may have gone with its pairs. */
static int
look_at_slot(
    struct sealer *sealer, const struct store_seal *call, unsigned slot)
{
    uint8_t known[SCHEMA_COLUMNS_MAX + 1];
    unsigned n, i = 0;
    int err = take_slots(sealer, call, known, &n);
    while (err == 0 && i < n && known[i] != slot) {
        i++;
    }
    return err == 0 && i == n ? ERR_GONE : err;
}

/* A range stays hot, since what covers part of it cannot be read. */
static void
note_left(struct store_seal *call, const struct seal_range *range)
{
    if (call->n_left == 0) {
        segment_name(call->file, range->unreadable, false);
    }
    call->n_left++;
}

/* What one slot has. Ranges that cannot be sealed for want of what they have on
 * the disk do not keep the others from it. */
static int
seal_slot(struct sealer *sealer, struct store_seal *call, unsigned slot)
{
    struct seal_candidate it;
    uint64_t from = 0;
    int err = 0;
    for (unsigned tries = 0; err == 0 && !is_stopping(sealer) &&
         seal_pick_next(&sealer->seal, slot, from, &it);) {
        err = look_at_slot(sealer, call, slot);
        if (err != 0) {
            return err;
        }
        err = seal_run(&sealer->seal, &it.range);
        if (err == ERR_GONE && tries++ < TRIES) {
            err = 0;
            continue;
        }
        tries = 0;
        if (err == 0) {
            after_range(sealer, &it.range);
        } else if (it.range.unreadable != 0) {
            note_left(call, &it.range);
            err = 0;
        }
        if (err == 0 && it.range.last_id == UINT64_MAX) {
            break;
        }
        ASSERT(it.range.last_id >= from); /* each is behind the one before */
        from = it.range.last_id + 1;
    }
    return err == 0 && is_stopping(sealer) ? ERR_CLOSED : err;
}

/* ---- how far a call is ---- */

static uint64_t
sealed_records(const struct sealer *sealer)
{
    /* relaxed: a figure */
    return atomic_load_explicit(
        &sealer->seal.stats.seal_hot_records, memory_order_relaxed);
}

static void
begin_progress(struct sealer *sealer, const uint8_t *slot, unsigned n)
{
    uint64_t all = 0;
    for (unsigned i = 0; i < n; i++) {
        for (unsigned k = 0; k < sealer->seal.n_shards; k++) {
            all +=
                engine_count(sealer->seal.engine, slot[i], k, 0, UINT64_MAX);
        }
    }
    /* relaxed, here and below: figures */
    atomic_store_explicit(&sealer->progress.before, sealed_records(sealer),
        memory_order_relaxed);
    atomic_store_explicit(
        &sealer->progress.begun_ns, time_ns(sealer), memory_order_relaxed);
    atomic_store_explicit(&sealer->progress.all, all, memory_order_relaxed);
}

static void
end_progress(struct sealer *sealer)
{
    atomic_store_explicit(&sealer->progress.all, 0, memory_order_relaxed);
}

void
sealer_progress(const struct sealer *sealer, struct seal_progress_now *out)
{
    const struct seal_progress *progress = &sealer->progress;
    /* relaxed, all: figures of moments that may differ a little */
    uint64_t all = atomic_load_explicit(&progress->all, memory_order_relaxed);
    uint64_t before =
        atomic_load_explicit(&progress->before, memory_order_relaxed);
    uint64_t begun_ns =
        atomic_load_explicit(&progress->begun_ns, memory_order_relaxed);
    uint64_t now = sealed_records(sealer), now_ns = time_ns(sealer);
    *out = (struct seal_progress_now){.all = all};
    if (all == 0 || now <= before) {
        return;
    }
    out->done = now - before < all ? now - before : all;
    double share = (double)out->done / (double)all;
    uint64_t ms = now_ns > begun_ns ? (now_ns - begun_ns) / NS_PER_MS : 0;
    out->percent = (unsigned)(100 * share);
    out->left_ms = (uint64_t)((double)ms / share) - ms;
}

/* The counter, and the pairs of its members. */
static int
seal_all(struct sealer *sealer, struct store_seal *call)
{
    uint8_t slot[SCHEMA_COLUMNS_MAX + 1];
    unsigned n;
    int err = take_slots(sealer, call, slot, &n);
    begin_progress(sealer, slot, err == 0 ? n : 0);
    for (unsigned i = 0; err == 0 && i < n; i++) {
        err = seal_slot(sealer, call, slot[i]);
        if (err == ERR_GONE && i > 0) { /* of a column that was dropped */
            err = look_at_slot(sealer, call, slot[0]);
        }
    }
    end_progress(sealer);
    return err;
}

static void
on_durable(struct store_call *call)
{
    struct ending *ending = (struct ending *)call;
    struct store_seal *seal = ending->call;
    ASSERT(ending->magic == ENDING_MAGIC);
    ending->magic = 0;
    seal->err = ending->checkpoint.err;
    if (seal->err == 0 && seal->n_left > 0) {
        seal->err = ERR_COLD_READ;
    }
    free(ending);
    seal->call.done_fn(&seal->call);
}

/* For the log, what a call has not done; nothing of what is no failure. */
static void
say_result(const struct sealer *sealer, const struct store_seal *call)
{
    struct logger *logger = sealer->seal.durable->config.logger;
    if (call->n_left > 0) {
        log_line(logger, LOG_WARNING,
            "seal all: %" PRIu32 " ranges stay in memory, %s cannot be read",
            call->n_left, call->file);
    }
    if (call->err != 0 && call->err != ERR_GONE && call->err != ERR_CLOSED) {
        log_line(logger, LOG_WARNING,
            "seal all ended early: %s; what is left stays in memory",
            err_file_text(call->err));
    }
}

/* Says in the log what has been sealed since that was said last: in a while,
 * or now. */
static void
say_seals(struct sealer *sealer, bool now)
{
    const struct seal_stats *stats = &sealer->seal.stats;
    struct seal_said *said = &sealer->said;
    /* relaxed, all: figures */
    struct seal_said is = {.ns = time_ns(sealer),
        .seals = atomic_load_explicit(&stats->seals, memory_order_relaxed),
        .records =
            atomic_load_explicit(&stats->seal_records, memory_order_relaxed),
        .hot_records = sealed_records(sealer),
        .bytes =
            atomic_load_explicit(&stats->seal_bytes, memory_order_relaxed)};
    if (is.seals == said->seals ||
        (!now && is.ns - said->ns < SAY_MS * NS_PER_MS)) {
        return;
    }
    log_line(sealer->seal.durable->config.logger, LOG_NOTICE,
        "sealed: %" PRIu64 " range%s of %" PRIu64 " record%s, %" PRIu64
        " of them from memory, in segments of %" PRIu64 " bytes",
        is.seals - said->seals, num_plural(is.seals - said->seals),
        is.records - said->records, num_plural(is.records - said->records),
        is.hot_records - said->hot_records, is.bytes - said->bytes);
    *said = is;
}

static void
do_call(struct sealer *sealer, struct store_seal *call)
{
    struct ending *ending = calloc(1, sizeof *ending);
    call->n_left = 0;
    call->err = ending == NULL ? ERR_NO_MEMORY : seal_all(sealer, call);
    say_result(sealer, call);
    say_seals(sealer, true);
    if (call->err != 0) {
        free(ending);
        call->call.done_fn(&call->call);
        return;
    }
    ASSERT(call->n_left == 0 || call->file[0] != '\0');
    ending->magic = ENDING_MAGIC;
    ending->call = call;
    ending->checkpoint.call.done_fn = on_durable;
    checkpointer_want(sealer->checkpointer, &ending->checkpoint);
}

/* The next call, or NULL after a round. */
static struct store_seal *
wait_for_work(struct sealer *sealer)
{
    uint64_t slice_ms = sealer->tidier.bounds.slice_ms;
    uint64_t round_ms = slice_ms == 0 ? 1 : slice_ms;
    uint64_t until_ns = time_ns(sealer) + round_ms * NS_PER_MS;
    mutex_lock(&sealer->lock);
    while (sealer->queue.first == NULL && !is_stopping(sealer) &&
        clock_cond_wait(
            clock_of(sealer), &sealer->changed, &sealer->lock, until_ns)) {
    }
    struct store_call *call = call_queue_take(&sealer->queue);
    mutex_unlock(&sealer->lock);
    return (struct store_seal *)call; /* call is its first member */
}

static void *
run(void *arg)
{
    struct sealer *sealer = arg;
    ASSERT(sealer->magic == SEALER_MAGIC);
    give_way_begin(NICE); /* lower than the workers */
    while (!is_stopping(sealer)) {
        struct store_seal *call = wait_for_work(sealer);
        if (call != NULL) {
            do_call(sealer, call);
        }
        bool makes_room = make_room(sealer);
        cold__retry(sealer->cold, makes_room);
        seal_due(sealer);
        say_seals(sealer, false);
        if (makes_room && !is_stopping(sealer)) {
            tidier_turn(&sealer->tidier, used_bytes(sealer));
        }
    }
    say_seals(sealer, true);
    tidier_stop(&sealer->tidier);
    cold__retry(sealer->cold, false);
    for (struct store_seal *call; (call = wait_for_work(sealer)) != NULL;) {
        call->err = ERR_CLOSED;
        call->call.done_fn(&call->call);
    }
    return NULL;
}

int
sealer_start(struct sealer *sealer)
{
    ASSERT(sealer->magic == 0 && sealer->cold->magic == COLD_MAGIC);
    ASSERT(sealer->seal.schema != NULL && sealer->checkpointer != NULL);
    sealer->seal.is_stopping = &sealer->stopping;
    sealer->seal.room_bytes = sealer->hot_bytes / 100 * BEGIN;
    sealer->queue = (struct call_queue){0};
    tidier_init(&sealer->tidier, &sealer->seal, sealer->checkpointer,
        sealer->hot_bytes, sealer->tidy);
    atomic_init(&sealer->stopping, false);
    mutex_init(&sealer->lock);
    clock_cond_init(&sealer->changed);
    sealer->magic = SEALER_MAGIC; /* before its thread */
    cold__begin(sealer->cold, !sealer->is_told);
    int err = delegate_start(&sealer->hasty);
    if (err == 0 && pthread_create(&sealer->thread, NULL, run, sealer) != 0) {
        delegate_stop(&sealer->hasty);
        err = ERR_NO_THREAD;
    }
    if (err != 0) {
        pthread_cond_destroy(&sealer->changed);
        mutex_fini(&sealer->lock);
        sealer->magic = 0;
    }
    return err;
}

void
sealer_stop(struct sealer *sealer)
{
    ASSERT(sealer->magic == SEALER_MAGIC);
    mutex_lock(&sealer->lock);
    bool was_stopping = is_stopping(sealer);
    /* relaxed: see is_stopping */
    atomic_store_explicit(&sealer->stopping, true, memory_order_relaxed);
    pthread_cond_signal(&sealer->changed);
    mutex_unlock(&sealer->lock);
    if (!was_stopping) {
        pthread_join(sealer->thread, NULL);
        delegate_stop(&sealer->hasty);
        ASSERT(sealer->tidier.work == NULL && sealer->tidier.reheat == NULL);
    }
}

void
sealer_fini(struct sealer *sealer)
{
    ASSERT(sealer->magic == SEALER_MAGIC && is_stopping(sealer));
    ASSERT(sealer->queue.first == NULL);
    pthread_cond_destroy(&sealer->changed);
    mutex_fini(&sealer->lock);
    sealer->magic = 0;
}

void
sealer_add(struct sealer *sealer, struct store_seal *call)
{
    ASSERT(sealer->magic == SEALER_MAGIC && call->slot < SCHEMA_COUNTERS_MAX);
    mutex_lock(&sealer->lock);
    bool is_taken = !is_stopping(sealer);
    if (is_taken) {
        call_queue_add(&sealer->queue, &call->call);
        pthread_cond_signal(&sealer->changed);
    }
    mutex_unlock(&sealer->lock);
    if (!is_taken) {
        call->err = ERR_CLOSED;
        call->call.done_fn(&call->call);
    }
}
