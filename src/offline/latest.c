/* SPDX-License-Identifier: BSD-3-Clause */
/* Values by key, the last of each. They are appended; where the array is full
 * it is sorted, so that of each key one is left, and grows only if that leaves
 * more than half of it. What was sorted before is older than all that came
 * since, and of each key there is one: its order is 0, that of the others their
 * place. */
#include "offline/latest.h"

#include "base/assert.h"
#include "base/err.h"

#include <stdlib.h>

enum { FIRST = 4096 };

static int
by_key(const void *left, const void *right)
{
    const struct latest_one *a = left, *b = right;
    return a->key != b->key ? (a->key > b->key) - (a->key < b->key)
                            : (a->order > b->order) - (a->order < b->order);
}

void
latest_sort(struct latest *latest)
{
    size_t n = latest->n, n_left = 0;
    struct latest_one *one = latest->one;
    if (n > 1) {
        qsort(one, n, sizeof *one, by_key);
    }
    for (size_t i = 0; i < n; i++) {
        if (i + 1 == n || one[i].key != one[i + 1].key) {
            one[n_left] = one[i];
            one[n_left++].order = 0;
        }
    }
    latest->n = n_left;
}

static int
make_room(struct latest *latest)
{
    latest_sort(latest);
    if (latest->n > 0 && latest->n <= latest->capacity / 2) {
        return 0;
    }
    size_t n = latest->capacity == 0 ? (size_t)FIRST : 2 * latest->capacity;
    struct latest_one *one = realloc(latest->one, n * sizeof *one);
    if (one == NULL) {
        return ERR_NO_MEMORY;
    }
    latest->one = one;
    latest->capacity = n;
    return 0;
}

int
latest_add(struct latest *latest, uint64_t key, uint64_t value)
{
    int err = latest->n < latest->capacity ? 0 : make_room(latest);
    if (err == 0) {
        ASSERT(latest->n < latest->capacity);
        latest->one[latest->n] = (struct latest_one){key, value, latest->n};
        latest->n++;
    }
    return err;
}

const struct latest_one *
latest_find(const struct latest *latest, uint64_t key)
{
    size_t low = 0, high = latest->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (latest->one[middle].key < key) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < latest->n && latest->one[low].key == key ? &latest->one[low]
                                                          : NULL;
}

void
latest_fini(struct latest *latest)
{
    free(latest->one);
    *latest = (struct latest){0};
}
