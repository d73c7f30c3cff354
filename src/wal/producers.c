/* SPDX-License-Identifier: BSD-3-Clause */
/* Producers to bytes and back:
 *
 *   each producer:  varint  serial, less that of the one before and 1 (the
 *                           first one: less 1)
 *                   1       bytes of the name, 1..32, then the name
 *                   varint  windows, at most one a shard
 *   each window:    varint  shard, less the one before and 1 (the first one of
 *                           a producer: the shard)
 *                           the window, see seen_code.h
 *
 * What can go wrong: memory, damage. */
#include "wal/producers.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "base/err.h"
#include "wal/seen_code.h"

#include <stdlib.h>
#include <string.h>

enum {
    ONE_BYTES_MAX = BYTES_VARINT_MAX + 1 + PRODUCER_NAME_MAX + 3,
    ONE_BYTES_MIN = 4,
    WINDOW_BYTES_MAX = 3 + SEEN_CODE_BYTES_MAX,
    WINDOW_BYTES_MIN = 1 + SEEN_CODE_BYTES_MIN
};

void
producers__list_fini(struct producers_list *list)
{
    free(list->one);
    free(list->window);
    *list = (struct producers_list){0};
}

static size_t
put_window(
    uint8_t *out, const struct producers_window *window, uint64_t next_shard)
{
    ASSERT(window->shard >= next_shard);
    size_t len = bytes_put_varint(out, window->shard - next_shard);
    return len + seen_code_put(out + len, &window->seen);
}

/* The windows from number at on that are of this producer; how many. */
static uint32_t
count_windows(
    const struct producers_list *list, uint32_t at, uint32_t producer)
{
    uint32_t n = 0;

    while (at + n < list->n_windows &&
        list->window[at + n].producer == producer) {
        n++;
    }
    return n;
}

/* False where memory is out. */
static bool
put_one(const struct producers_list *list, uint32_t i, uint32_t n_windows,
    struct buf *out)
{
    const struct producers_one *one = &list->one[i];
    uint32_t next = i == 0 ? 1 : list->one[i - 1].serial + 1;
    uint8_t *at = (uint8_t *)buf_reserve(out, ONE_BYTES_MAX);
    size_t len = 0;

    if (at == NULL) {
        return false;
    }
    ASSERT(one->serial >= next && one->serial <= list->last_serial);
    ASSERT(producer_name_is_right(one->name.text, one->name.len));
    len += bytes_put_varint(at, one->serial - next);
    at[len++] = one->name.len;
    memcpy(at + len, one->name.text, one->name.len);
    len += one->name.len;
    len += bytes_put_varint(at + len, n_windows);
    out->len += len;
    return true;
}

static int
by_name(const void *a, const void *b)
{
    const struct producer_name *const *x = a, *const *y = b;

    if ((*x)->len != (*y)->len) {
        return (*x)->len < (*y)->len ? -1 : 1;
    }
    return memcmp((*x)->text, (*y)->text, (*x)->len);
}

/* Asserts that no name is there twice: nobody could read that again. False
 * where memory is out. */
static bool
assert_names(const struct producers_list *list)
{
    const struct producer_name **name;

    if (list->n < 2) {
        return true;
    }
    name = calloc(list->n, sizeof *name);
    if (name == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < list->n; i++) {
        name[i] = &list->one[i].name;
    }
    qsort(name, list->n, sizeof *name, by_name);
    for (uint32_t i = 1; i < list->n; i++) {
        ASSERT(by_name(&name[i - 1], &name[i]) != 0);
    }
    free(name);
    return true;
}

void
producers__list_put(const struct producers_list *list, struct buf *out)
{
    uint32_t w = 0;

    ASSERT(list->n <= PRODUCERS_MAX);
    if (!assert_names(list)) {
        out->failed = true;
        return;
    }
    for (uint32_t i = 0; i < list->n; i++) {
        uint32_t n = count_windows(list, w, i);
        uint64_t next_shard = 0;

        if (!put_one(list, i, n, out)) {
            return;
        }
        for (; n > 0; n--, w++) {
            uint8_t *at = (uint8_t *)buf_reserve(out, WINDOW_BYTES_MAX);

            if (at == NULL) {
                return;
            }
            out->len += put_window(at, &list->window[w], next_shard);
            next_shard = (uint64_t)list->window[w].shard + 1;
        }
    }
    ASSERT(w == list->n_windows);
}

/* A number above the one before by 1 and what is read, and not above last. */
static bool
get_next(const uint8_t **in, const uint8_t *end, uint64_t *next, uint64_t last)
{
    uint64_t distance;

    if (!bytes_get_varint(in, end, &distance) || *next > last ||
        distance > last - *next) {
        return false;
    }
    *next += distance;
    return true;
}

static bool
get_window(const uint8_t **in, const uint8_t *end, uint64_t *next_shard,
    uint32_t shards, struct producers_window *out)
{
    if (!get_next(in, end, next_shard, shards - 1)) {
        return false;
    }
    out->shard = (uint16_t)*next_shard;
    *next_shard += 1;
    return seen_code_get(in, end, &out->seen);
}

/* Room for n windows more. */
static int
grow(struct producers_list *out, uint64_t n)
{
    uint64_t all = out->n_windows + n;
    struct producers_window *more;

    if (n == 0) {
        return 0;
    }
    if (all > UINT32_MAX) {
        return ERR_CORRUPT;
    }
    more = realloc(out->window, (size_t)all * sizeof *more);
    if (more == NULL) {
        return ERR_NO_MEMORY;
    }
    out->window = more;
    return 0;
}

static int
get_windows(const uint8_t **in, const uint8_t *end, uint32_t shards,
    struct producers_list *out)
{
    uint64_t n, next_shard = 0;
    int err;

    if (!bytes_get_varint(in, end, &n) || n > shards ||
        n > (uint64_t)(end - *in) / WINDOW_BYTES_MIN) {
        return ERR_CORRUPT;
    }
    err = grow(out, n);
    for (; err == 0 && n > 0; n--) {
        struct producers_window *window = &out->window[out->n_windows];

        window->producer = out->n - 1;
        if (!get_window(in, end, &next_shard, shards, window)) {
            return ERR_CORRUPT;
        }
        out->n_windows++;
    }
    return err;
}

static bool
has_name(const struct producers_list *list, const struct producer_name *name)
{
    for (uint32_t i = 0; i < list->n; i++) {
        if (producer_name_is(&list->one[i].name, name->text, name->len)) {
            return true;
        }
    }
    return false;
}

static bool
get_one(const uint8_t **in, const uint8_t *end, struct producers_list *out)
{
    struct producers_one *one = &out->one[out->n];
    uint64_t serial = out->n == 0 ? 1 : (uint64_t)one[-1].serial + 1;
    size_t len;

    if (!get_next(in, end, &serial, out->last_serial) || *in == end) {
        return false;
    }
    one->serial = (uint32_t)serial;
    len = *(*in)++;
    if (len > (size_t)(end - *in) ||
        !producer_name_set(&one->name, (const char *)*in, len) ||
        has_name(out, &one->name)) {
        return false;
    }
    *in += len;
    out->n++;
    return true;
}

int
producers__list_get(const uint8_t **in, const uint8_t *end, uint32_t n,
    uint32_t shards, struct producers_list *out)
{
    int err = 0;

    ASSERT(out->n == 0 && out->one == NULL && out->window == NULL);
    if (n == 0) {
        return 0;
    }
    if (n > PRODUCERS_MAX || n > (uint64_t)(end - *in) / ONE_BYTES_MIN) {
        return ERR_CORRUPT;
    }
    out->one = calloc(n, sizeof *out->one);
    if (out->one == NULL) {
        return ERR_NO_MEMORY;
    }
    while (err == 0 && out->n < n) {
        err = get_one(in, end, out) ? get_windows(in, end, shards, out)
                                    : ERR_CORRUPT;
    }
    return err;
}
