/* SPDX-License-Identifier: BSD-3-Clause */
/* Values by key, the last of each. They are appended; where the array is full
 * it is sorted, so that of each key one is left, and grows only if that leaves
 * more than half of it. Sorted by merging runs of 1, 2, 4, ... (Knuth, TAOCP 3,
 * 5.2.4), which keeps the order of those with one key. */
#include "offline/latest.h"

#include "base/assert.h"
#include "base/err.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST = 4096 };

static size_t
smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Runs from[0..m-1] and from[m..n-1] become one; the first goes first. */
static void
merge(const struct latest_one *from, size_t m, size_t n, struct latest_one *to)
{
    size_t a = 0, b = m;
    for (size_t i = 0; i < n; i++) {
        bool is_first = b == n || (a < m && from[a].key <= from[b].key);
        to[i] = is_first ? from[a++] : from[b++];
    }
    ASSERT(a == m && b == n);
}

int
latest_sort(struct latest *latest)
{
    size_t n = latest->n, n_left = 0;
    if (n < 2) {
        return 0;
    }
    struct latest_one *from = latest->one;
    struct latest_one *to = malloc(n * sizeof *to);
    struct latest_one *spare = to;
    if (to == NULL) {
        return ERR_NO_MEMORY;
    }
    for (size_t run = 1; run < n; run *= 2) {
        for (size_t at = 0; at < n; at += smaller(2 * run, n - at)) {
            merge(from + at, smaller(run, n - at), smaller(2 * run, n - at),
                to + at);
        }
        struct latest_one *swap = from;
        from = to;
        to = swap;
    }
    for (size_t i = 0; i < n; i++) {
        if (i + 1 == n || from[i].key != from[i + 1].key) {
            latest->one[n_left++] = from[i];
        }
    }
    latest->n = n_left;
    free(spare);
    return 0;
}

static int
make_room(struct latest *latest)
{
    int err = latest_sort(latest);
    if (err != 0 || (latest->n > 0 && latest->n <= latest->capacity / 2)) {
        return err;
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
        latest->one[latest->n++] = (struct latest_one){key, value};
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
