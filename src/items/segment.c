/* SPDX-License-Identifier: BSD-3-Clause */
/* A segment: its entries, one behind the other, and the state it is in.
 *
 *   | struct segment | entry, key, value | entry, key, value | ...   free |
 *   0                head_bytes                              used      size
 *
 * The states and their steps (items__segment_move):
 *
 *      FREE           -> OPEN                a new one, or the spare one
 *      OPEN           -> SEALED SPARSE LENT  it is full
 *      SEALED         -> SPARSE              much of it has died
 *      SEALED, SPARSE -> LENT                something in it is lent
 *      LENT           -> SEALED SPARSE       all of that was given back
 *      SEALED, SPARSE -> TAKEN               somebody cleans it
 *      TAKEN          -> SEALED SPARSE LENT  and returns it
 *      all but LENT   -> FREE                nothing lives in it
 *
 * All but the entries' own fields is under the pool's lock, or whose that has
 * taken the segment. */
#include "items/pool.h"

#include "base/assert.h"
#include "base/steps.h"

#include <stdatomic.h>

static size_t
round_up(size_t bytes, size_t step)
{
    return (bytes + step - 1) / step * step;
}

size_t
items__segment_head_bytes(void)
{
    return round_up(sizeof(struct segment), ITEMS__UNIT);
}

size_t
items__entry_bytes(size_t key_len, size_t room)
{
    return round_up(sizeof(struct entry) + key_len + room, ITEMS__UNIT);
}

static const unsigned steps[ITEMS__STATES] = {
    [ITEMS__FREE] = STEP_TO(ITEMS__OPEN),
    [ITEMS__OPEN] = STEP_TO(ITEMS__SEALED) | STEP_TO(ITEMS__SPARSE) |
        STEP_TO(ITEMS__LENT) | STEP_TO(ITEMS__FREE),
    [ITEMS__SEALED] = STEP_TO(ITEMS__SPARSE) | STEP_TO(ITEMS__LENT) |
        STEP_TO(ITEMS__TAKEN) | STEP_TO(ITEMS__FREE),
    [ITEMS__SPARSE] =
        STEP_TO(ITEMS__LENT) | STEP_TO(ITEMS__TAKEN) | STEP_TO(ITEMS__FREE),
    [ITEMS__LENT] = STEP_TO(ITEMS__SEALED) | STEP_TO(ITEMS__SPARSE),
    [ITEMS__TAKEN] = STEP_TO(ITEMS__SEALED) | STEP_TO(ITEMS__SPARSE) |
        STEP_TO(ITEMS__LENT) | STEP_TO(ITEMS__FREE)};

void
items__segment_move(struct segment *segment, enum segment_state to)
{
    ASSERT(segment->magic == SEGMENT_MAGIC);
    ASSERT_STEP(steps, segment->state, to);
    segment->state = to;
}

char *
items__entry_value(struct entry *entry)
{
    return entry->bytes + entry->key_len;
}

struct segment *
items__segment_of(struct entry *entry)
{
    char *start = (char *)entry - (size_t)entry->back * ITEMS__UNIT;
    struct segment *segment = (struct segment *)(void *)start;

    ASSERT(segment->magic == SEGMENT_MAGIC);
    return segment;
}

struct entry *
items__segment_next(struct segment *segment, const struct entry *at)
{
    size_t offset = items__segment_head_bytes();

    if (at != NULL) {
        offset = (size_t)at->back * ITEMS__UNIT +
            items__entry_bytes(at->key_len, at->room);
    }
    ASSERT(offset <= segment->used);
    return offset == segment->used
        ? NULL
        : (struct entry *)(void *)((char *)segment + offset);
}

uint64_t
items__segment_verify(struct segment *segment, uint64_t *held)
{
    struct entry *at = items__segment_next(segment, NULL);
    uint64_t n_live = 0, live_bytes = 0;

    *held += segment->size;
    ASSERT(segment->magic == SEGMENT_MAGIC && segment->state < ITEMS__STATES);
    ASSERT(segment->used <= segment->size);
    for (; at != NULL; at = items__segment_next(segment, at)) {
        ASSERT(items__segment_of(at) == segment);
        /* relaxed: nothing is read by it */
        if (atomic_load_explicit(&at->refs, memory_order_relaxed) > 0) {
            n_live++;
            live_bytes += items__entry_bytes(at->key_len, at->room);
        }
    }
    ASSERT(n_live <= segment->n_live); /* some may be dying just now */
    ASSERT(live_bytes <= segment->live_bytes);
    return segment->live_bytes;
}
