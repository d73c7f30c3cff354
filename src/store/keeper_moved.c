/* SPDX-License-Identifier: BSD-3-Clause */
/* Handovers: ids that are another group's from now on, or this one's again.
 *
 * Behind the entry of a handover the log has no change of its ids that a client
 * has made. So it is published first: whoever begins a change of them from then
 * on refuses it. Who has begun one before is waited for, by a grace period of
 * readers (a worker is one while it is at a change), and by the era of changes
 * that wait for a block of the cold tier or for room (tier/cold_call.h). Then
 * comes the entry. One that ends is logged first, and published then.
 *
 *   handover to:    publish -> grace -> era -> grace -> all of the era are made
 *                           -> entry
 *   handover here:  entry -> publish
 *
 * What is waited for may take a second; the lock of edits is not held
 * meanwhile. If the server becomes a replica in between, there is no entry, and
 * what was published is taken back. */
#include "store/keeper_priv.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/err.h"
#include "durable/durable_position.h"
#include "tier/cold_call.h"

enum { LOOK_NS = 1000 * 1000 /* between looks at what is under way */ };

static void
lock_edits(struct keeper *keeper)
{
    if (keeper->durable != NULL) {
        mutex_lock(&keeper->durable->edit_lock);
    }
}

static void
unlock_edits(struct keeper *keeper)
{
    if (keeper->durable != NULL) {
        mutex_unlock(&keeper->durable->edit_lock);
    }
}

/* The handovers as the log has them. */
static const struct moved_list *
logged(const struct keeper *keeper)
{
    return keeper->durable != NULL ? &keeper->durable->handovers
                                   : &keeper->unlogged;
}

bool
keeper__has_numbers_only(const struct keeper *keeper)
{
    const struct moved_list *list = logged(keeper);
    bool has = false;
    for (uint32_t i = 0; i < list->n; i++) {
        has = has || !moved_one_takes_names(&list->one[i]);
    }
    return has;
}

/* Logs it, where there is a log, and it is one of those that are logged. */
static uint64_t
log_moved(struct keeper *keeper, const struct moved_one *one)
{
    if (keeper->durable != NULL) {
        return durable_log_moved(keeper->durable, one);
    }
    bool has_room = moved_list_put(&keeper->unlogged, one);
    ASSERT(has_room);
    return 0;
}

/* Why nothing can be logged now. */
static int
fault_of(const struct keeper *keeper)
{
    if (keeper->durable == NULL) {
        return 0;
    }
    return durable_is_replica(keeper->durable)
        ? ERR_NOT_PRIMARY
        : wal_fault(keeper->durable->wal);
}

/* What is to be published with one more, or without it: NULL where it is
 * empty. 0, ERR_MANY_HANDOVERS, ERR_NO_MEMORY. */
static int
work_out(const struct moved_list *list, const struct moved_one *one,
    struct moved **out)
{
    struct moved_list next = *list;
    *out = NULL;
    if (!moved_list_put(&next, one)) {
        return ERR_MANY_HANDOVERS;
    }
    return next.n == 0 ? 0 : moved_create(&next, out);
}

/* Publishes which ids are at other groups, NULL for none, takes it over, and
 * frees the one before when nobody can see it any more. */
static void
publish(struct keeper *keeper, struct moved *next)
{
    /* seq_cst: see store_schema */
    struct moved *old = (struct moved *)atomic_exchange_explicit(
        keeper->store->moved, next, memory_order_seq_cst);
    keeper->n_moved++;
    if (old != NULL || next != NULL) {
        qsbr_wait(keeper->store->qsbr);
    }
    moved_destroy(&old);
}

/* All have seen what was published: waits until what they had begun before is
 * made. */
static void
await_changes(struct keeper *keeper)
{
    struct cold *cold = keeper->cold;
    if (cold == NULL) {
        return;
    }
    cold_begin_era(cold);
    qsbr_wait(keeper->store->qsbr);
    while (!cold_is_era_over(cold)) {
        clock_sleep_until(cold->clock, clock_now_ns(cold->clock) + LOOK_NS);
    }
}

/* The ids go. */
static int
hand_away(struct keeper *keeper, const struct moved_one *one, uint64_t *seq)
{
    struct moved *next = NULL;
    struct moved *back = NULL; /* what is published now */
    lock_edits(keeper);
    int err = fault_of(keeper);
    if (err == 0 && schema_has_text(keeper__current(keeper)) &&
        !moved_one_takes_names(one)) {
        err = ERR_NAMES_RULE;
    }
    if (err == 0) {
        err = work_out(logged(keeper), one, &next);
    }
    if (err == 0 && logged(keeper)->n > 0) {
        err = moved_create(logged(keeper), &back);
    }
    if (err != 0) {
        unlock_edits(keeper);
        moved_destroy(&next);
        return err;
    }
    publish(keeper, next);
    uint64_t published = keeper->n_moved;
    unlock_edits(keeper);

    await_changes(keeper);

    lock_edits(keeper);
    bool is_ours = keeper->n_moved == published;
    err = is_ours ? fault_of(keeper) : ERR_NOT_PRIMARY;
    if (err == 0) {
        *seq = log_moved(keeper, one);
    } else if (is_ours) {
        publish(keeper, back);
        back = NULL;
    }
    unlock_edits(keeper);
    moved_destroy(&back);
    return err;
}

/* The ids come back. */
static int
take_back(struct keeper *keeper, const struct moved_one *one, uint64_t *seq)
{
    struct moved *next = NULL;
    lock_edits(keeper);
    int err = fault_of(keeper);
    if (err == 0 && moved_list_find(logged(keeper), one->rule) != NULL) {
        err = work_out(logged(keeper), one, &next);
        if (err == 0) {
            *seq = log_moved(keeper, one);
            publish(keeper, next);
        }
    }
    unlock_edits(keeper);
    return err;
}

int
keeper__hand_over(
    struct keeper *keeper, const struct moved_one *one, uint64_t *seq)
{
    ASSERT(one->rule[0] != '\0');
    return one->address[0] == '\0' ? take_back(keeper, one, seq)
                                   : hand_away(keeper, one, seq);
}

int
keeper__apply_moved(struct keeper *keeper, const struct moved_one *one)
{
    struct durable *durable = keeper->durable;
    struct moved *next;
    ASSERT(durable != NULL && durable_is_replica(durable));
    mutex_lock(&durable->edit_lock);
    int err = work_out(&durable->handovers, one, &next);
    if (err == 0) {
        (void)moved_list_put(&durable->handovers, one);
        publish(keeper, next);
    }
    mutex_unlock(&durable->edit_lock);
    return err == ERR_MANY_HANDOVERS ? ERR_CORRUPT : err;
}
