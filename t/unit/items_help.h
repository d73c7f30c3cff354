/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIT_ITEMS_HELP_H
#define UNIT_ITEMS_HELP_H

/* What the tests of items/ share. Texts are terminated by a NUL here. */

#include "base/err.h"
#include "items/items.h"
#include "lib/store_item.h"
#include "unit/check_help.h"

#include <check.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define MIB (UINT64_C(1) << 20)

enum { NOW = 1000, SEED = 7 };

#define ROOMY (256 * MIB)

static inline struct items *
make(uint64_t limit_bytes)
{
    struct items_config config = {
        .limit_bytes = limit_bytes, .item_bytes_max = MIB, .seed = SEED};
    struct items *items = items_create(&config);

    ck_assert_ptr_nonnull(items);
    return items;
}

static inline void
finish(struct items **items)
{
    items_verify(*items);
    items_destroy(items);
    ck_assert_ptr_null(*items);
}

static inline struct items_stats
stats_of(struct items *items)
{
    struct items_stats stats;

    items_stats(items, &stats);
    return stats;
}

static inline struct items_store
store_of(enum items_op op, const char *key, const char *value)
{
    return (struct items_store){.op = op,
        .key = key,
        .key_len = strlen(key),
        .value = value,
        .value_len = strlen(value)};
}

static inline int
put(struct items *items, enum items_op op, const char *key, const char *value)
{
    struct items_store store = store_of(op, key, value);

    return store_item(items, &store, NOW, NULL);
}

static inline int
put_until(struct items *items, enum items_op op, const char *key,
    const char *value, uint64_t expiry_s)
{
    struct items_store store = store_of(op, key, value);

    store.expiry_s = expiry_s;
    return store_item(items, &store, NOW, NULL);
}

/* As the command touch: 0 or ERR_NOT_FOUND. */
static inline int
touch(struct items *items, const char *key, uint64_t expiry_s, uint64_t now_s)
{
    const struct item *item =
        items_get(items, key, strlen(key), now_s, true, expiry_s);

    if (item == NULL) {
        return ERR_NOT_FOUND;
    }
    items_unpin(items, item);
    return 0;
}

static inline const struct item *
pin_at(struct items *items, const char *key, uint64_t now_s)
{
    return items_get(items, key, strlen(key), now_s, false, 0);
}

/* As pin_at, without using it. */
static inline const struct item *
peek_at(struct items *items, const char *key, uint64_t now_s)
{
    struct items_terms terms = {.peeks = true};
    struct items_found found;

    items_look(items, key, strlen(key), &terms, now_s, &found);
    return found.item;
}

/* As the meta commands look for one; the item is unpinned at once. */
static inline struct items_found
look(struct items *items, const char *key, struct items_terms terms)
{
    struct items_found found;

    items_look(items, key, strlen(key), &terms, NOW, &found);
    if (found.item != NULL) {
        items_unpin(items, found.item);
    }
    return found;
}

static inline bool
has(struct items *items, const char *key, uint64_t now_s)
{
    return items_has(items, key, strlen(key), now_s);
}

/* Of the keys NAME0 to NAME<n - 1>, how many are there. */
static inline unsigned
count_many(struct items *items, const char *name, unsigned n)
{
    unsigned n_there = 0;
    char key[48];

    for (unsigned i = 0; i < n; i++) {
        snprintf(key, sizeof key, "%s%u", name, i);
        n_there += has(items, key, NOW);
    }
    return n_there;
}

static inline void
expect_item(struct items *items, const char *key, const char *value)
{
    const struct item *item = pin_at(items, key, NOW);

    ck_assert_msg(item != NULL, "%s is missing", key);
    ck_assert_uint_eq(item->value_len, strlen(value));
    ck_assert_mem_eq(item->value, value, item->value_len);
    ck_assert_uint_ne(item->cas, 0);
    items_unpin(items, item);
}

static inline int
arith_at(struct items *items, const char *key, bool negative, uint64_t delta,
    uint64_t now_s, uint64_t *out)
{
    struct items_arith arith = {.key = key,
        .key_len = strlen(key),
        .negative = negative,
        .delta = delta};
    struct items_number number = {0};
    int err = items_arith(items, &arith, now_s, &number);

    if (err == 0) {
        *out = number.value;
    }
    return err;
}

static inline int
add_number(struct items *items, const char *key, uint64_t delta, uint64_t *out)
{
    return arith_at(items, key, false, delta, NOW, out);
}

#endif
