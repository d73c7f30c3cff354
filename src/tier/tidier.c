/* SPDX-License-Identifier: BSD-3-Clause */
/* Works on cold ranges: one piece at a time, in slices, so that ranges go to
 * the cold tier and calls are answered at most a slice later, and it has the
 * disk and the core for half of the time at most (tier/states.h).
 *
 *   IDLE --look--> SEALING or HEATING --end--> SETTLING --manifest--> IDLE
 *    ^                     |
 *    +------ given up -----+
 *
 * A join or merge is a seal like others, but others come between its slices.
 * Where one of them seals some of its ids the work was for nothing, and it is
 * given up at once; that is rare, for what presses is where records are hot.
 *
 * The next piece begins when a manifest has the one before it, so that one file
 * at most is spared from removal, and a disk that is full stops all of this. */
#include "tier/tidier.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/err.h"
#include "durable/durable_position.h"
#include "tier/seal_pick.h"

#include <stdlib.h>

#define NS_PER_MS UINT64_C(1000000)

enum {
    RETRY_MS = 10000,  /* after a failure; twice as long after the next */
    FAILURES_MAX = 6,  /* that make it longer */
    MEASURES_MAX = 64, /* ranges that are counted in a look */
    HEAT_BEGIN = 50,   /* percent of the budget, with all of the range */
    HEAT_END = 65,     /* beyond that it is given up */
    HOT_BYTES = 16     /* of a record that becomes hot, about; 8 more for
                          * each column */
};

static uint64_t
now_ns(const struct tidier *tidier)
{
    return clock_now_ns(tidier->seal->durable->config.clock);
}

void
tidier_init(struct tidier *tidier, struct seal *seal,
    struct checkpointer *checkpointer, uint64_t hot_bytes,
    const struct seal_tidy_bounds *bounds)
{
    ASSERT(tidier->magic == 0 && tidier_state(tidier) == TIDIER_IDLE);
    tidier->seal = seal;
    tidier->checkpointer = checkpointer;
    tidier->hot_bytes = hot_bytes;
    tidier->bounds = bounds == NULL ? seal_tidy_usual() : *bounds;
    ASSERT(tidier->bounds.fan_in >= 2 && tidier->bounds.step_records > 0);
    ASSERT(tidier->bounds.join_blocks >= 2 * tidier->bounds.fan_in);
    tidier->magic = TIDIER_MAGIC;
    tidier->look_ns = now_ns(tidier) + tidier->bounds.look_ms * NS_PER_MS;
}

enum tidier_state
tidier_state(const struct tidier *tidier)
{
    /* acquire: where it has settled, the manifest is in place */
    return (enum tidier_state)atomic_load_explicit(
        &tidier->state, memory_order_acquire);
}

static void
move(struct tidier *tidier, enum tidier_state to)
{
    unsigned state = (unsigned)tidier__step(tidier_state(tidier), to);
    /* release: see tidier_state */
    atomic_store_explicit(&tidier->state, state, memory_order_release);
}

static bool
is_at_work(const struct tidier *tidier)
{
    enum tidier_state state = tidier_state(tidier);
    ASSERT(tidier->magic == TIDIER_MAGIC);
    ASSERT((state == TIDIER_SEALING) == (tidier->work != NULL));
    ASSERT((state == TIDIER_HEATING) == (tidier->reheat != NULL));
    return state == TIDIER_SEALING || state == TIDIER_HEATING;
}

/* What is left of the work is freed. */
static void
give_up(struct tidier *tidier)
{
    seal_abort(&tidier->work);
    reheat_abort(&tidier->reheat);
    move(tidier, TIDIER_IDLE);
}

void
tidier_stop(struct tidier *tidier)
{
    if (is_at_work(tidier)) {
        give_up(tidier);
    }
}

void
tidier_note(struct tidier *tidier, const struct seal_range *range)
{
    ASSERT(range->first_id <= range->last_id);
    if (is_at_work(tidier) && range->slot == tidier->range.slot &&
        range->first_id <= tidier->range.last_id &&
        range->last_id >= tidier->range.first_id) {
        tidier_stop(tidier);
    }
}

/* ---- the end of a piece of work ---- */

static void
on_settled(struct store_call *call)
{
    struct tidier *tidier =
        (struct tidier *)((char *)call - offsetof(struct tidier, settle));
    ASSERT(tidier->magic == TIDIER_MAGIC);
    move(tidier, TIDIER_IDLE);
}

/* Asks for a manifest. */
static void
settle(struct tidier *tidier)
{
    ASSERT(tidier->work == NULL && tidier->reheat == NULL);
    move(tidier, TIDIER_SETTLING);
    tidier->settle =
        (struct store_checkpoint){.call = {.done_fn = on_settled}};
    checkpointer_want_segments(tidier->checkpointer, &tidier->settle);
}

/* A failure, with nothing under way any more: says so, and waits. What only
 * came at a bad moment is neither. */
static void
fail(struct tidier *tidier, int err)
{
    uint64_t wait_ms = RETRY_MS;
    ASSERT(err != 0 && tidier->n_failed <= FAILURES_MAX);
    if (err == ERR_CLOSED || err == ERR_GONE || err == ERR_HOT_FULL) {
        return;
    }
    wait_ms <<= tidier->n_failed;
    tidier->n_failed += tidier->n_failed < FAILURES_MAX;
    tidier->look_ns = now_ns(tidier) + wait_ms * NS_PER_MS;
    durable_count(&tidier->seal->stats.tidy_failures, 1);
    log_line(tidier->seal->durable->config.logger, LOG_WARNING,
        "cold ranges could not be joined, merged or made hot: %s; they stay "
        "as they are, next try in %u s",
        err_file_text(err), (unsigned)(wait_ms / 1000));
}

static void
count_end(struct tidier *tidier)
{
    struct seal_stats *stats = &tidier->seal->stats;
    switch (tidier->kind) {
    case SEAL_TIDY_JOIN:
        durable_count(&stats->range_joins, 1);
        break;
    case SEAL_TIDY_MERGE:
        durable_count(&stats->overlay_merges, 1);
        break;
    case SEAL_TIDY_SAVE:
        durable_count(&stats->file_saves, 1);
        break;
    case SEAL_TIDY_HEAT: /* counts itself */
    case SEAL_TIDY_NOTHING:
        break;
    }
}

static void
end(struct tidier *tidier)
{
    ASSERT(is_at_work(tidier));
    int err = tidier->work != NULL ? seal_end(&tidier->work)
                                   : reheat_end(&tidier->reheat);
    if (err != 0) {
        give_up(tidier);
        fail(tidier, err);
        return;
    }
    count_end(tidier);
    tidier->n_failed = 0;
    tidier->next_slot = tidier->range.slot; /* there may be more */
    tidier->look_ns = 0;
    settle(tidier);
}

/* ---- its slices ---- */

/* On a replica nothing becomes hot again: the log would have to have it. */
static bool
may_heat(const struct tidier *tidier)
{
    return !durable_is_replica(tidier->seal->durable);
}

static bool
is_too_hot(const struct tidier *tidier, uint64_t used_bytes)
{
    return tidier->reheat != NULL &&
        (used_bytes > tidier->hot_bytes / 100 * HEAT_END || !may_heat(tidier));
}

static void
go_on(struct tidier *tidier, uint64_t used_bytes)
{
    uint64_t until_ns = now_ns(tidier) + tidier->bounds.slice_ms * NS_PER_MS;
    bool is_end = false;
    int err = is_too_hot(tidier, used_bytes) ? ERR_HOT_FULL : 0;
    while (err == 0 && !is_end) {
        err = tidier->work != NULL
            ? seal_step(tidier->work, tidier->bounds.step_records, &is_end)
            : reheat_step(
                  tidier->reheat, tidier->bounds.step_records, &is_end);
        if (!is_end && now_ns(tidier) >= until_ns) {
            break;
        }
    }
    if (err != 0) {
        give_up(tidier);
        fail(tidier, err);
    } else if (is_end) {
        end(tidier);
    }
}

/* ---- its beginning ---- */

/* Columns of a counter; 0 where there is none. */
static unsigned
count_columns(const struct tidier *tidier, unsigned slot)
{
    struct seal *seal = tidier->seal;
    mutex_lock(&seal->durable->edit_lock);
    /* relaxed: under edit_lock, like all who store it */
    const struct schema_counter *counter = schema_counter_at(
        atomic_load_explicit(seal->schema, memory_order_relaxed), slot);
    unsigned n = counter == NULL ? 0 : counter->n_columns;
    mutex_unlock(&seal->durable->edit_lock);
    return n;
}

static struct seal_tidy_room
room_of(const struct tidier *tidier, unsigned n_columns, uint64_t used_bytes)
{
    uint64_t may_use = tidier->hot_bytes / 100 * HEAT_BEGIN;
    uint64_t free_bytes = used_bytes < may_use ? may_use - used_bytes : 0;
    return (struct seal_tidy_room){
        .copy_records = seal_pick__chunk(tidier->seal, n_columns),
        .heat_records =
            may_heat(tidier) ? free_bytes / (HOT_BYTES + 8 * n_columns) : 0};
}

/* The ids that are concerned. An overlay may be larger than what is copied at a
 * time: then its first part. */
static struct seal_range
ids_of(const struct tidier *tidier, unsigned slot,
    const struct seal_tidy_room *room, const struct seal_tidy_range *list,
    const struct seal_tidy_choice *choice)
{
    struct seal_candidate part;
    struct seal_range range = {.slot = slot,
        .first_id = list[choice->first].first_id,
        .last_id = list[choice->last].last_id};
    ASSERT(range.first_id <= range.last_id);
    if (choice->kind == SEAL_TIDY_MERGE &&
        list[choice->first].n_hot > room->copy_records &&
        seal_pick_next(tidier->seal, slot, range.first_id, &part) &&
        part.range.last_id < range.last_id) {
        range.last_id = part.range.last_id;
    }
    return range;
}

/* What is best. The list only estimates what is over a range: where that
 * matters it is counted, so that nothing is done again and again for records
 * that lie beside the range. */
static struct seal_tidy_choice
choose(const struct tidier *tidier, unsigned slot,
    const struct seal_tidy_room *room, struct seal_tidy_range *list, size_t n)
{
    struct seal_tidy_choice last = {SEAL_TIDY_NOTHING, 0, 0};
    for (unsigned i = 0; i < MEASURES_MAX; i++) {
        struct seal_tidy_choice it =
            seal_tidy_choose(&tidier->bounds, room, list, n);
        bool is_counted =
            it.kind != SEAL_TIDY_HEAT && it.kind != SEAL_TIDY_MERGE;
        if (is_counted || (it.kind == last.kind && it.first == last.first)) {
            return it;
        }
        ASSERT(it.first == it.last && it.last < n);
        seal_tidy_measure(tidier->seal, slot, &list[it.first]);
        last = it;
    }
    return (struct seal_tidy_choice){SEAL_TIDY_NOTHING, 0, 0};
}

/* Begins what is best for a counter. 0 also where there is nothing. */
static int
begin_in(struct tidier *tidier, unsigned slot, uint64_t used_bytes)
{
    struct seal_tidy_range *list = NULL;
    size_t n = 0;
    unsigned n_columns = count_columns(tidier, slot);
    int err = n_columns == 0 ? ERR_GONE
                             : seal_tidy_list(tidier->seal, slot, &list, &n);
    if (err != 0 || n == 0) {
        return err == ERR_GONE ? 0 : err;
    }
    const struct seal_tidy_room room = room_of(tidier, n_columns, used_bytes);
    struct seal_tidy_choice choice = choose(tidier, slot, &room, list, n);
    ASSERT(choice.first <= choice.last && choice.last < n);
    bool is_heat = choice.kind == SEAL_TIDY_HEAT;
    if (choice.kind != SEAL_TIDY_NOTHING) {
        tidier->kind = choice.kind;
        tidier->range = ids_of(tidier, slot, &room, list, &choice);
        err = is_heat
            ? reheat_begin(tidier->seal, &tidier->range, &tidier->reheat)
            : seal_begin(tidier->seal, &tidier->range, true, &tidier->work);
        if (err == 0) {
            move(tidier, is_heat ? TIDIER_HEATING : TIDIER_SEALING);
        }
    }
    free(list);
    return err;
}

/* Looks at one counter after the other, for something to begin. */
static void
look(struct tidier *tidier, uint64_t used_bytes)
{
    int err = 0;
    tidier->look_ns = now_ns(tidier) + tidier->bounds.look_ms * NS_PER_MS;
    ASSERT(tidier->next_slot < SCHEMA_COUNTERS_MAX);
    for (unsigned i = 0;
         i < SCHEMA_COUNTERS_MAX && err == 0 && !is_at_work(tidier); i++) {
        err = begin_in(tidier, tidier->next_slot, used_bytes);
        if (!is_at_work(tidier)) {
            tidier->next_slot = (tidier->next_slot + 1) % SCHEMA_COUNTERS_MAX;
        }
    }
    if (err != 0) {
        fail(tidier, err);
    }
    durable_count(
        &tidier->seal->stats.tidy_idle, err == 0 && !is_at_work(tidier));
}

void
tidier_turn(struct tidier *tidier, uint64_t used_bytes)
{
    if (is_at_work(tidier)) {
        go_on(tidier, used_bytes);
        return;
    }
    if (tidier_state(tidier) == TIDIER_IDLE &&
        now_ns(tidier) >= tidier->look_ns) {
        look(tidier, used_bytes);
    }
}
