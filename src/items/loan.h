/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ITEMS_LOAN_H
#define ITEMS_LOAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Loans: pins that may last. Any thread. */

struct items; /* items/items.h */
struct item;

/* Makes a loan of the caller's pin: the item may then be kept for as long as
 * a client takes to read it. False where too much is lent already, more than
 * 3/8 of the limit or too many times; the pin stays a pin then. */
bool items_lend(struct items *items, const struct item *item);

/* Gives a loan back, in the place of items_unpin. */
void items_unlend(struct items *items, const struct item *item);

/* What is lent now. */
#define ITEMS_LENT(X)                                                         \
    X(loans, "values that are being sent from the memory of items")           \
    X(lent_bytes, "memory of items that cannot be given up meanwhile")

struct items_lent {
#define X(name, text) uint64_t name;
    ITEMS_LENT(X)
#undef X
};

void items_lent(struct items *items, struct items_lent *out);

/* Bytes of the value under key, as far as can be seen without using it; 0
 * where there is none. */
size_t items_value_len(
    struct items *items, const char *key, size_t key_len, uint64_t now_s);

#endif
