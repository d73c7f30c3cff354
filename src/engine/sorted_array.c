/* SPDX-License-Identifier: BSD-3-Clause */
/* Arrays of members as such: how they are made, grow and are read. Which there
 * are, and when, is in sorted.c. */
#include "engine/sorted_array.h"

#include "base/assert.h"
#include "base/err.h"

#include <stdlib.h>
#include <string.h>

enum { ROOM_STEP = 128 /* bytes */ };

size_t
sorted__bytes(uint32_t room)
{
    return sizeof(struct sorted_array) + room * sizeof(uint64_t);
}

uint32_t
sorted__room_for(uint32_t n)
{
    size_t bytes = sorted__bytes(n + n / 8 + 1);
    bytes = (bytes + ROOM_STEP - 1) / ROOM_STEP * ROOM_STEP;
    size_t room = (bytes - sizeof(struct sorted_array)) / sizeof(uint64_t);
    ASSERT(n <= SORTED_ROOM_MAX && room > n);
    return room < SORTED_ROOM_MAX ? (uint32_t)room : (uint32_t)SORTED_ROOM_MAX;
}

struct sorted_array *
sorted__create(struct pool *pool, uint32_t room)
{
    void *block;
    if (pool_take_block(pool, sorted__bytes(room), POOL_EVICT, &block) != 0) {
        return NULL;
    }
    struct sorted_array *array = block;
    atomic_init(&array->n_users, 1);
    atomic_init(&array->n, 0);
    array->room = room;
    return array;
}

void
sorted__leave(struct pool *pool, struct sorted_array *array)
{
    /* acq_rel: who frees it comes behind all that the others did with it */
    uint32_t n_before =
        atomic_fetch_sub_explicit(&array->n_users, 1, memory_order_acq_rel);
    ASSERT(n_before > 0);
    if (n_before == 1) {
        pool_give_block(pool, array, sorted__bytes(array->room));
    }
}

uint32_t
sorted__place(const uint64_t *member, uint32_t n, uint64_t wanted)
{
    uint32_t first = 0;
    while (n > 0) {
        uint32_t half = n / 2;
        bool is_below = member[first + half] < wanted;
        first = is_below ? first + half + 1 : first;
        n = is_below ? n - half - 1 : half;
    }
    return first;
}

struct sorted_array *
sorted__remake(struct pool *pool, const struct sorted_array *old, uint32_t at,
    uint64_t member, bool is_in)
{
    uint32_t n_old = sorted__count(old);
    uint32_t n = is_in ? n_old + 1 : n_old - 1;
    uint32_t first =
        n > SORTED_ROOM_MAX ? n - SORTED_MAX : 0; /* of the old ones */
    first -= at < first; /* else the one that has come is not among them */
    struct sorted_array *made =
        sorted__create(pool, sorted__room_for(n - first));
    if (made == NULL) {
        return NULL;
    }
    uint64_t *to = made->member;
    made->is_cut = old->is_cut || first > 0;
    if (at > first) {
        memcpy(to, &old->member[first], (at - first) * sizeof *to);
        to += at - first;
    }
    if (is_in && at >= first) {
        *to++ = member;
    }
    uint32_t rest = is_in ? at : at + 1;
    rest = rest > first ? rest : first;
    memcpy(to, &old->member[rest], (n_old - rest) * sizeof *to);
    to += n_old - rest;
    sorted__set_count(made, (uint32_t)(to - made->member));
    ASSERT(!made->is_cut || sorted__count(made) >= SORTED_MAX);
    return made;
}

int
sorted__append(struct pool *pool, struct sorted_array **array, uint64_t member)
{
    struct sorted_array *it = *array;
    uint32_t n = sorted__count(it);
    ASSERT(n == 0 || it->member[n - 1] < member);
    if (n == it->room && n == SORTED_ROOM_MAX) {
        n = SORTED_MAX - 1;
        memmove(
            it->member, &it->member[SORTED_ROOM_MAX - n], n * sizeof member);
        it->is_cut = true;
    } else if (n == it->room) {
        uint32_t room = n > SORTED_ROOM_MAX / 2 ? SORTED_ROOM_MAX
                                                : sorted__room_for(2 * n);
        struct sorted_array *made = sorted__create(pool, room);
        if (made == NULL) {
            return ERR_NO_MEMORY;
        }
        memcpy(made->member, it->member, n * sizeof member);
        sorted__leave(pool, it);
        *array = it = made;
    }
    it->member[n] = member;
    sorted__set_count(it, n + 1);
    return 0;
}

static int
compare_notes(const void *a, const void *b)
{
    const struct sorted_note *x = a, *y = b;
    if (x->member != y->member) {
        return x->member < y->member ? -1 : 1;
    }
    return x->place < y->place ? -1 : 1;
}

int
sorted__merge(
    struct pool *pool, struct sorted_notes *notes, struct sorted_array **array)
{
    struct sorted_array *base = *array;
    uint32_t n = sorted__count(base), i = 0;
    struct sorted_array *made = sorted__create(pool, sorted__room_for(n));
    int err = 0;
    if (made == NULL) {
        return ERR_NO_MEMORY;
    }
    made->is_cut = base->is_cut;
    qsort(notes->note, notes->n, sizeof notes->note[0], compare_notes);
    for (uint32_t k = 0; err == 0 && k < notes->n; k++) {
        const struct sorted_note *it = &notes->note[k];
        if ((k + 1 < notes->n && it[1].member == it->member) ||
            (base->is_cut && it->member < base->member[0])) {
            continue;
        }
        while (err == 0 && i < n && base->member[i] < it->member) {
            err = sorted__append(pool, &made, base->member[i++]);
        }
        i += i < n && base->member[i] == it->member;
        if (err == 0 && it->is_in) {
            err = sorted__append(pool, &made, it->member);
        }
    }
    while (err == 0 && i < n) {
        err = sorted__append(pool, &made, base->member[i++]);
    }
    sorted__leave(pool, base);
    *array = made;
    return err;
}

uint64_t
sorted_largest(const struct sorted_pin *pin)
{
    return pin->n == 0 ? 0 : pin->array->member[pin->n - 1];
}

uint64_t
sorted_above(const struct sorted_pin *pin, uint64_t position)
{
    if (pin->n == 0 || position >= pin->array->member[pin->n - 1]) {
        return 0;
    }
    uint32_t n =
        pin->n - sorted__place(pin->array->member, pin->n, position + 1);
    return n < SORTED_MAX ? n : (uint32_t)SORTED_MAX;
}

bool
sorted_positions(const struct sorted_pin *pin, uint64_t above, uint64_t *first,
    uint64_t *last)
{
    if (above > SORTED_MAX || above > pin->n) {
        return false;
    }
    const uint64_t *end = pin->n == 0 ? NULL : &pin->array->member[pin->n];
    bool is_all = above == pin->n || above == SORTED_MAX;
    *first = is_all ? 0 : end[-(ptrdiff_t)above - 1];
    *last = above == 0 ? UINT64_MAX : end[-(ptrdiff_t)above] - 1;
    return above == 0 || end[-(ptrdiff_t)above] > 0;
}

void
sorted__verify_array(const struct sorted_array *array)
{
    uint32_t n = sorted__count(array);
    ASSERT(n <= array->room && array->room <= SORTED_ROOM_MAX);
    ASSERT(!array->is_cut || n >= SORTED_MAX);
    for (uint32_t i = 1; i < n; i++) {
        ASSERT(array->member[i - 1] < array->member[i]);
    }
}
