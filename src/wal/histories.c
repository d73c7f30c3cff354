/* SPDX-License-Identifier: BSD-3-Clause */
/* The histories of log files, and the list of all that a manifest names. Both
 * are short: a history for each start since the oldest file that is left.
 *
 * What can go wrong: memory. */
#include "wal/histories.h"

#include "base/assert.h"
#include "base/err.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { START = 4 };

int
histories_draw(uint64_t *history)
{
    do {
        if (getrandom(history, sizeof *history, 0) != sizeof *history) {
            return ERR_SYSTEM;
        }
    } while (*history == 0);
    return 0;
}

void
histories_fini(struct histories *histories)
{
    free(histories->entry);
    *histories = (struct histories){0};
}

int
histories_add(struct histories *histories, uint64_t from, uint64_t history)
{
    size_t n = histories->n;

    ASSERT(from > 0 && history != 0);
    if (n == histories->capacity) {
        size_t more = n == 0 ? START : 2 * n;
        struct histories_entry *entry =
            realloc(histories->entry, more * sizeof *entry);

        if (entry == NULL) {
            return ERR_NO_MEMORY;
        }
        histories->entry = entry;
        histories->capacity = more;
    }
    while (n > 0 && histories->entry[n - 1].from >= from) {
        n--;
    }
    histories->entry[n] = (struct histories_entry){from, history};
    histories->n = n + 1;
    return 0;
}

void
histories_verify(const struct histories *histories)
{
    ASSERT(histories->n <= histories->capacity);
    for (size_t i = 0; i < histories->n; i++) {
        const struct histories_entry *entry = &histories->entry[i];

        ASSERT(entry->from > 0 && entry->history != 0);
        ASSERT(i == 0 || entry[-1].from < entry->from);
    }
}

/* The place behind the entry that number is of; 0: there is none. */
static size_t
place_behind(const struct histories *histories, uint64_t number)
{
    size_t n = histories->n;

    while (n > 0 && histories->entry[n - 1].from > number) {
        n--;
    }
    return n;
}

void
histories_forget(struct histories *histories, uint64_t number)
{
    size_t n = place_behind(histories, number);

    if (n > 1) {
        ASSERT(histories->entry[n - 1].from <= number);
        memmove(histories->entry, histories->entry + n - 1,
            (histories->n - n + 1) * sizeof histories->entry[0]);
        histories->n -= n - 1;
    }
}

uint64_t
histories_of(const struct histories *histories, uint64_t number)
{
    size_t n = place_behind(histories, number);

    return n == 0 ? 0 : histories->entry[n - 1].history;
}

uint64_t
histories_epoch(
    const struct histories *histories, uint64_t number, uint64_t epoch)
{
    uint64_t history = histories == NULL ? 0 : histories_of(histories, number);

    return history == 0 ? epoch : history;
}

int
histories_copy(const struct histories *from, struct histories *out)
{
    *out = (struct histories){0};
    for (size_t i = 0; i < from->n; i++) {
        int err =
            histories_add(out, from->entry[i].from, from->entry[i].history);

        if (err != 0) {
            histories_fini(out);
            return err;
        }
    }
    return 0;
}

void
histories__set_fini(struct histories_set *set)
{
    free(set->history);
    *set = (struct histories_set){0};
}

/* The place of the first one that is not below it. */
static size_t
set_place(const struct histories_set *set, uint64_t history)
{
    size_t low = 0, high = set->n;

    while (low < high) {
        size_t mid = low + (high - low) / 2;

        if (set->history[mid] < history) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low;
}

void
histories__set_add(struct histories_set *set, uint64_t history)
{
    size_t place;

    if (history == 0 || history == set->last) {
        return;
    }
    set->last = history;
    place = set_place(set, history);
    if (place < set->n && set->history[place] == history) {
        return;
    }
    if (set->n == set->capacity) {
        size_t more = set->n == 0 ? START : 2 * set->n;
        uint64_t *grown = realloc(set->history, more * sizeof *grown);

        if (grown == NULL) {
            set->is_short = true;
            return;
        }
        set->history = grown;
        set->capacity = more;
    }
    ASSERT(place == 0 || set->history[place - 1] < history);
    memmove(&set->history[place + 1], &set->history[place],
        (set->n - place) * sizeof set->history[0]);
    set->history[place] = history;
    set->n++;
}

uint64_t
histories__set_place(const struct histories_set *set, uint64_t history)
{
    size_t place = history == 0 ? 0 : set_place(set, history);

    ASSERT(history == 0 || (place < set->n && set->history[place] == history));
    return history == 0 ? 0 : place + 1;
}

bool
histories__set_get(
    const struct histories_set *set, uint64_t place, uint64_t *history)
{
    if (place > set->n) {
        return false;
    }
    *history = place == 0 ? 0 : set->history[place - 1];
    return true;
}
