/* SPDX-License-Identifier: BSD-3-Clause */
/* Sets ranges aside that cannot be sealed now. A list without order; what waits
 * no more stays in it, so that its next pause is longer and it is not told of
 * again. */
#include "tier/seal_aside.h"

#include "base/assert.h"

static bool
overlaps(const struct seal_aside_range *it, unsigned slot, uint64_t first_id,
    uint64_t last_id)
{
    return it->slot == slot && it->first_id <= last_id &&
        it->last_id >= first_id;
}

static void
take_out(struct seal_aside *aside, size_t i)
{
    ASSERT(i < aside->n && aside->n <= SEAL_ASIDE_MAX);
    aside->range[i] = aside->range[--aside->n];
}

/* That which ends first. */
static size_t
soonest(const struct seal_aside *aside)
{
    size_t least = 0;
    ASSERT(aside->n > 0);
    for (size_t i = 1; i < aside->n; i++) {
        if (aside->range[i].until_s < aside->range[least].until_s) {
            least = i;
        }
    }
    return least;
}

bool
seal_aside_add(struct seal_aside *aside, const struct seal_range *range)
{
    uint64_t pause_s = 0;
    ASSERT(range->first_id <= range->last_id);
    for (size_t i = aside->n; i-- > 0;) {
        const struct seal_aside_range *it = &aside->range[i];
        if (overlaps(it, range->slot, range->first_id, range->last_id)) {
            pause_s = it->pause_s > pause_s ? it->pause_s : pause_s;
            take_out(aside, i);
        }
    }
    bool is_news = pause_s == 0;
    pause_s = is_news ? SEAL_ASIDE_LEAST_S : 2 * pause_s;
    pause_s = pause_s < SEAL_ASIDE_MOST_S ? pause_s : SEAL_ASIDE_MOST_S;
    if (aside->n == SEAL_ASIDE_MAX) {
        take_out(aside, soonest(aside));
    }
    ASSERT(aside->n < SEAL_ASIDE_MAX && pause_s >= SEAL_ASIDE_LEAST_S);
    aside->range[aside->n++] = (struct seal_aside_range){range->slot,
        range->first_id, range->last_id, aside->now_s + pause_s, pause_s};
    return is_news;
}

void
seal_aside_drop(struct seal_aside *aside, const struct seal_range *range)
{
    for (size_t i = aside->n; i-- > 0;) {
        const struct seal_aside_range *it = &aside->range[i];
        if (it->slot == range->slot && it->first_id >= range->first_id &&
            it->last_id <= range->last_id) {
            take_out(aside, i);
        }
    }
}

const struct seal_aside_range *
seal_aside_find(const struct seal_aside *aside, unsigned slot,
    uint64_t first_id, uint64_t last_id)
{
    const struct seal_aside_range *found = NULL;
    ASSERT(first_id <= last_id);
    for (size_t i = 0; i < aside->n; i++) {
        const struct seal_aside_range *it = &aside->range[i];
        if (overlaps(it, slot, first_id, last_id) &&
            it->until_s > aside->now_s &&
            (found == NULL || it->first_id < found->first_id)) {
            found = it;
        }
    }
    return found;
}
