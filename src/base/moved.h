/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_MOVED_H
#define BASE_MOVED_H

#include "base/address.h"
#include "base/owns.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Handovers: which ids, by their rules, are another group's now, and where that
 * is. A list of them is what is logged and kept; made into a struct moved it
 * answers for ids. Pure; any thread. */

enum { MOVED_MAX = 64 /* handovers at a time */ };

/* Ids of a rule are at an address. Both end with a NUL. */
struct moved_one {
    char rule[OWNS_RULE_BYTES];    /* as owns_rule says it, never "" */
    char address[ADDRESS_MAX + 1]; /* HOST:PORT; "": here again */
};

/* In the order in which they came; no two of the same rule, none with the
 * address "". */
struct moved_list {
    uint32_t n; /* 0..MOVED_MAX */
    struct moved_one one[MOVED_MAX];
};

/* Fills out from texts that need not end with a NUL. An address of length 0 is
 * "". 0; ERR_BAD_RULE as of owns_create_rule, ERR_BAD_ADDRESS, ERR_NO_MEMORY:
 * out may be half full. */
int moved_one_set(struct moved_one *out, const char *rule, size_t rule_len,
    const char *address, size_t address_len);

/* True for what moved_one_set gives, of bytes that may be anything; the rule
 * must be written as it says it. Where memory is out it is false, too. */
bool moved_one_is_right(const char *rule, size_t rule_len, const char *address,
    size_t address_len);

/* The handover of that rule; NULL where there is none. */
const struct moved_one *moved_list_find(
    const struct moved_list *list, const char *rule);

/* The handover takes the place of that of the same rule, or comes behind all
 * others; with the address "" that goes, if there is one. False where there is
 * no room for one more: nothing has changed. */
bool moved_list_put(struct moved_list *list, const struct moved_one *one);

struct moved;

/* Makes the list, which is not empty and right, answer for ids. *out is the
 * caller's until moved_destroy. 0 or ERR_NO_MEMORY. */
int moved_create(const struct moved_list *list, struct moved **out);

/* Frees and nulls *moved, which may be NULL. */
void moved_destroy(struct moved **moved);

/* The first handover that the id belongs to; NULL: it is here. In moved. */
const struct moved_one *moved_find(const struct moved *moved, uint64_t id);

/* The same of an id that is a name. No rule about numbers has any. */
const struct moved_one *moved_find_name(
    const struct moved *moved, const char *name, size_t len);

/* False for a rule that is about numbers alone (modulo). */
bool moved_one_takes_names(const struct moved_one *one);

/* What it was made of; NULL, empty, of NULL. */
const struct moved_list *moved_list_of(const struct moved *moved);

#endif
