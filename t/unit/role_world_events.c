/* SPDX-License-Identifier: BSD-3-Clause */
/* What happens next: events in the order of their times, and of their making
 * where these are equal, in a heap. And what is drawn, and what time it is. */
#include "unit/role_world_priv.h"

#include <stdio.h>

uint64_t
world__below(uint64_t n)
{
    return random_below(&world->random, n);
}

bool
world__chance(unsigned percent)
{
    return world__below(100) < percent;
}

void
world__wrong(const char *what, uint64_t a, uint64_t b)
{
    if (world->result->wrong[0] == '\0') {
        (void)snprintf(world->result->wrong, WORLD_WORDS,
            "%s: %llu, %llu, at %llu ms", what, (unsigned long long)a,
            (unsigned long long)b, (unsigned long long)(world->now / 1000));
    }
}

static bool
is_before(const struct place *a, const struct place *b)
{
    return a->at < b->at || (a->at == b->at && a->order < b->order);
}

struct event *
world__push(uint64_t delay_us, enum event_type type, unsigned node)
{
    unsigned at = world->n_heap++, index = world->free;
    struct event *event = &world->event[index];
    struct place place = {world->now + delay_us, world->order++, index};

    ck_assert_uint_lt(at, EVENTS_MAX);
    ck_assert_uint_lt(index, EVENTS_MAX);
    world->free = event->next;
    for (; at > 0 && is_before(&place, &world->heap[(at - 1) / 2]);
         at = (at - 1) / 2) {
        world->heap[at] = world->heap[(at - 1) / 2];
    }
    world->heap[at] = place;
    event->type = type;
    event->node = node;
    event->life = node < WORLD_NODES ? world->node[node].life : 0;
    return event;
}

struct event *
world__pop(void)
{
    struct place first = world->heap[0];
    struct place last = world->heap[--world->n_heap];
    unsigned at = 0;

    for (unsigned child = 1; child < world->n_heap; child = 2 * at + 1) {
        if (child + 1 < world->n_heap &&
            is_before(&world->heap[child + 1], &world->heap[child])) {
            child++;
        }
        if (is_before(&last, &world->heap[child])) {
            break;
        }
        world->heap[at] = world->heap[child];
        at = child;
    }
    world->heap[at] = last;
    world->now = first.at;
    return &world->event[first.event];
}

void
world__give_back(struct event *event)
{
    event->next = world->free;
    world->free = (unsigned)(event - world->event);
}

unsigned
world__number(const struct node *node)
{
    return (unsigned)(node - world->node);
}

/* The node's own clock. */
uint64_t
world__clock(const struct node *node)
{
    return node->offset_us + world->now / 1000000 * node->rate +
        world->now % 1000000 * node->rate / 1000000;
}
