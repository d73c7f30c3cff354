/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OFFLINE_LATEST_H
#define OFFLINE_LATEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What each key was given last. All zero is empty. One thread at a time. */

struct latest_one {
    uint64_t key, value;
    size_t order; /* of two of a key the larger one is the later one */
};

struct latest {
    struct latest_one *one; /* owned; n of capacity */
    size_t n, capacity;
};

/* Behind all that were added before. 0 or ERR_NO_MEMORY. What was added several
 * times under one key takes room only until there is no more: so it is that of
 * twice the keys at most, or of some thousand. */
int latest_add(struct latest *latest, uint64_t key, uint64_t value);

/* Keys ascend from now on, each with the value that it was given last, until
 * another is added. */
void latest_sort(struct latest *latest);

/* The one of that key, or NULL. They ascend. */
const struct latest_one *latest_find(
    const struct latest *latest, uint64_t key);

/* Empty again. */
void latest_fini(struct latest *latest);

#endif
