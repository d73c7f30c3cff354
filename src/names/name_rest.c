/* SPDX-License-Identifier: BSD-3-Clause */
/* What rests, in the order in which it came.
 *
 *   | covered: ends with target | not yet |
 *   0                   n_covered         n
 *
 * One grace period at a time: when that of the covered ones is over they go,
 * and the next one begins for all that have come meanwhile. So a change costs
 * no read-modify-write of a line that all threads read. */
#include "names/name_rest.h"

#include "base/assert.h"

#include <string.h>

enum { CAPACITY_MIN = 16 };

int
name_rest_reserve(struct name_rest *rest, size_t n)
{
    void *at;
    if (rest->n + n <= rest->capacity) {
        return 0;
    }
    size_t capacity = rest->capacity == 0 ? CAPACITY_MIN : rest->capacity * 2;
    while (capacity < rest->n + n) {
        capacity *= 2;
    }
    int err =
        name_account_take(rest->account, capacity * sizeof *rest->at, &at);
    if (err != 0) {
        return err;
    }
    if (rest->n > 0) {
        memcpy(at, rest->at, rest->n * sizeof *rest->at);
    }
    name_account_give(
        rest->account, rest->at, rest->capacity * sizeof *rest->at);
    rest->at = at;
    rest->capacity = capacity;
    return 0;
}

static void
add(struct name_rest *rest, struct name_rest_entry entry)
{
    ASSERT(rest->n < rest->capacity);
    rest->at[rest->n++] = entry;
}

void
name_rest_block(struct name_rest *rest, void *block, size_t bytes)
{
    ASSERT(block != NULL && bytes <= UINT32_MAX);
    add(rest,
        (struct name_rest_entry){.block = block, .bytes = (uint32_t)bytes});
}

void
name_rest_number(struct name_rest *rest, uint32_t number)
{
    add(rest, (struct name_rest_entry){.number = number});
}

static void
release(struct name_rest *rest, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct name_rest_entry *entry = &rest->at[i];
        if (entry->block == NULL) {
            rest->number_fn(rest->context, entry->number);
        } else {
            name_account_give(rest->account, entry->block, entry->bytes);
        }
    }
    rest->n -= n;
    rest->n_covered = 0;
    memmove(rest->at, rest->at + n, rest->n * sizeof *rest->at);
}

static bool
is_over(struct name_rest *rest)
{
    return rest->qsbr == NULL || qsbr_is_over(rest->qsbr, rest->target);
}

void
name_rest_collect(struct name_rest *rest)
{
    if (rest->n_covered > 0 && is_over(rest)) {
        release(rest, rest->n_covered);
    }
    if (rest->n_covered == 0 && rest->n > 0) {
        rest->target = rest->qsbr == NULL ? 0 : qsbr_begin(rest->qsbr);
        rest->n_covered = rest->n;
        if (is_over(rest)) {
            release(rest, rest->n_covered);
        }
    }
}

void
name_rest_fini(struct name_rest *rest)
{
    if (rest->n > 0) {
        release(rest, rest->n);
    }
    name_account_give(
        rest->account, rest->at, rest->capacity * sizeof *rest->at);
    rest->at = NULL;
    rest->capacity = 0;
}
