/* SPDX-License-Identifier: BSD-3-Clause */
/* Room: what is given up, and what stays.
 *
 * Fresh segments are cleaned from the oldest on while they are more than half
 * of the memory, else kept ones. An entry that was used since it came, or since
 * it was last spared, moves to an open kept segment, one use poorer; all others
 * go. So an item that is read stays, one that is read often stays for some
 * rounds without being read, and one that nobody reads passes through the fresh
 * half once, whatever goes on in the kept one: a FIFO with a second queue for
 * what was read (like S3-FIFO, Yang and others, 2023, with a larger first queue
 * instead of its list of ghosts). A use costs a counter in the entry, no list.
 * doc/adr/0019 has what was measured.
 *
 * Sparse segments come before all that: what lives in them moves, nothing is
 * given up.
 *
 * A store that has cleaned n_gentle segments and still has no room spares
 * nothing any more, and stops after a bounded number of vain cleanings. One
 * stripe is locked at a time, for one entry. */
#include "items/core.h"

#include "base/assert.h"

#include <stdatomic.h>
#include <string.h>

enum {
    BARREN_MAX = 64,   /* segments that could not be freed, in one store */
    KEEPING_LOOKS = 8, /* at segments where nothing may be given up */
    ROOM_SLACK = 32 /* bytes that a moved entry may keep for a longer value */
};

struct cleaning {
    struct items *items;
    struct segment *segment;
    uint64_t now_s;
    bool sparse; /* all that lives moves */
    bool urgent; /* nothing is spared */
    bool keeps;  /* nothing alive is given up */
};

/* A copy of the entry in another segment takes its place; false where there is
 * no room for it. */
static bool
move(const struct cleaning *cleaning, struct stripe *stripe,
    struct entry *entry)
{
    bool spared = !cleaning->sparse;
    size_t len = entry->item.value_len;
    struct items_take take = {.key_len = entry->key_len,
        .room = entry->room - len <= ROOM_SLACK ? entry->room : len,
        .stripe = stripe->number,
        .class_ = items__stripe_class(stripe, entry),
        .now_s = cleaning->now_s,
        .is_hidden = entry->is_hidden,
        .queue = spared ? ITEMS__KEPT : cleaning->segment->queue,
        .moves = true};
    struct entry *copy = items__pool_take(&cleaning->items->pool, &take);
    struct items_key key = {.text = entry->bytes,
        .len = entry->key_len,
        .is_hidden = entry->is_hidden};

    ASSERT(len <= entry->room && entry->heat >= spared);
    if (copy == NULL) {
        return false;
    }
    ASSERT(len <= copy->room && copy->key_len == entry->key_len);
    key.hash = items__hash(key.text, key.len, cleaning->items->seed);
    ASSERT(items__core_stripe(cleaning->items, &key) == stripe);
    memcpy(copy->bytes, entry->bytes, entry->key_len + len);
    copy->item.value_len = entry->item.value_len;
    copy->item.flags = entry->item.flags;
    copy->item.cas = entry->item.cas;
    copy->expiry_s = entry->expiry_s;
    copy->used_s = entry->used_s;
    copy->born = entry->born;
    copy->marks = (uint8_t)(entry->marks & ~ITEMS__LINKED); /* not yet */
    copy->heat = (uint8_t)(entry->heat - spared);
    items__stripe_link(stripe, &key, copy, entry);
    return true;
}

static void
count_move(
    const struct cleaning *cleaning, struct stripe *stripe, unsigned class_)
{
    bool is_first =
        !cleaning->sparse && cleaning->segment->queue == ITEMS__FRESH;

    stripe->sums.moves_to_warm += is_first;
    stripe->sums.moves_within_lru += !is_first;
    ITEMS__COUNT(stripe, class_, moves_to_warm, is_first);
    ITEMS__COUNT(stripe, class_, moves_within_lru, !is_first);
}

static void
report(const struct cleaning *cleaning, const struct stripe *stripe,
    const struct entry *entry)
{
    struct items_witness *witness = cleaning->items->witness;
    uint64_t now_s = cleaning->now_s;
    const struct items_evicted item = {.key = entry->bytes,
        .key_len = entry->key_len,
        .value_len = entry->item.value_len,
        .class_ = items__stripe_class(stripe, entry),
        .ttl_s = entry->expiry_s == ITEMS_NEVER
            ? -1
            : (int64_t)entry->expiry_s - (int64_t)now_s,
        .idle_s = now_s > entry->used_s ? now_s - entry->used_s : 0,
        .was_fetched = (entry->marks & ITEMS__FETCHED) != 0};
    witness->evicted_fn(witness, &item);
}

static void
evict(const struct cleaning *cleaning, struct stripe *stripe,
    struct entry *entry)
{
    unsigned class_ = items__stripe_class(stripe, entry);
    bool unread = (entry->marks & ITEMS__FETCHED) == 0;

    stripe->sums.evictions++;
    stripe->sums.evicted_unfetched += unread;
    stripe->sums.evicted_active += entry->heat > 0;
    ITEMS__COUNT(stripe, class_, evicted, 1);
    ITEMS__COUNT(stripe, class_, evicted_unfetched, unread);
    ITEMS__COUNT(stripe, class_, evicted_active, entry->heat > 0);
    ITEMS__COUNT(
        stripe, class_, evicted_nonzero, entry->expiry_s != ITEMS_NEVER);
    /* relaxed: a figure */
    atomic_store_explicit(&cleaning->items->evicted_time_s[class_],
        cleaning->now_s > entry->used_s ? cleaning->now_s - entry->used_s : 0,
        memory_order_relaxed);
    if (cleaning->items->witness != NULL && !entry->is_hidden) {
        report(cleaning, stripe, entry);
    }
    items__stripe_unlink(stripe, entry);
}

/* A large entry stays where it is: its segment goes round. */
static bool
spare(const struct cleaning *cleaning, struct stripe *stripe,
    struct entry *entry)
{
    unsigned class_ = items__stripe_class(stripe, entry);

    if (cleaning->segment->is_large) {
        ASSERT(entry->heat > 0 || cleaning->sparse);
        entry->heat = (uint8_t)(entry->heat - !cleaning->sparse);
    } else if (!move(cleaning, stripe, entry)) {
        return false;
    }
    count_move(cleaning, stripe, class_);
    return true;
}

static void
judge(const struct cleaning *cleaning, struct stripe *stripe,
    struct entry *entry)
{
    bool stays = cleaning->sparse || (entry->heat > 0 && !cleaning->urgent);

    mutex_assert_held(&stripe->lock);
    if (items__core_reclaim(cleaning->items, stripe, entry, cleaning->now_s)) {
        return;
    }
    if (stays && spare(cleaning, stripe, entry)) {
        return;
    }
    if (!cleaning->keeps) {
        evict(cleaning, stripe, entry);
    }
}

/* True if the segment could be freed. */
static bool
clean(const struct cleaning *cleaning)
{
    struct items *items = cleaning->items;
    struct segment *segment = cleaning->segment;
    enum items_queue queue = segment->is_large ? ITEMS__KEPT : segment->queue;
    struct entry *at = NULL;

    ASSERT(segment->state == ITEMS__TAKEN);
    while ((at = items__segment_next(segment, at)) != NULL) {
        struct stripe *stripe = &items->stripe[at->stripe];

        items__stripe_lock(stripe);
        if ((at->marks & ITEMS__LINKED) != 0) {
            judge(cleaning, stripe, at);
        }
        items__stripe_unlock(stripe);
    }
    return items__pool_return(&items->pool, segment, queue, true);
}

/* Gives up what is dead in a segment; nothing moves. */
static void
look_through(struct items *items, struct segment *segment, uint64_t now_s)
{
    struct entry *at = NULL;

    ASSERT(segment->state == ITEMS__TAKEN);
    while ((at = items__segment_next(segment, at)) != NULL) {
        struct stripe *stripe = &items->stripe[at->stripe];

        items__stripe_lock(stripe);
        if ((at->marks & ITEMS__LINKED) != 0) {
            (void)items__core_reclaim(items, stripe, at, now_s);
        }
        items__stripe_unlock(stripe);
    }
    (void)items__pool_return(&items->pool, segment, segment->queue, false);
}

bool
items__room_make(
    struct items *items, struct items_effort *effort, uint64_t now_s)
{
    struct cleaning cleaning = {.items = items,
        .now_s = now_s,
        .urgent = effort->n >= effort->n_gentle,
        .keeps = items->pool.keeps};
    unsigned barren_max = cleaning.keeps ? KEEPING_LOOKS : BARREN_MAX;

    if (effort->n_barren >= barren_max) {
        return false;
    }
    /* relaxed: a figure */
    atomic_fetch_add_explicit(
        &items->direct_reclaims, 1, memory_order_relaxed);
    effort->n++;
    ASSERT(effort->n_barren < effort->n);
    cleaning.segment = items__pool_victim(&items->pool, &cleaning.sparse);
    if (cleaning.segment != NULL) {
        bool is_free = clean(&cleaning);

        /* with care, a large one that was spared has lost a use for it */
        effort->n_barren += !is_free && (cleaning.urgent || cleaning.keeps);
        return true;
    }
    effort->n_barren++;
    cleaning.segment =
        cleaning.keeps ? items__pool_oldest(&items->pool) : NULL;
    if (cleaning.segment == NULL) {
        return false;
    }
    look_through(items, cleaning.segment, now_s);
    return true;
}
