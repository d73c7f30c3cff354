/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ITEMS_OP_H
#define ITEMS_OP_H

#include "items/core.h"

/* One operation under way that may link a new entry. Inside src/items only; the
 * caller's thread only. */

enum { ITEMS__ROOM_WANTED = -1 }; /* of a step; no enum err is negative */

struct op {
    struct items *items;
    struct items_key key;
    uint64_t now_s;
    const struct items_terms *terms; /* never NULL */
    const void *ask;                 /* the step's own */
    void *answer;                    /* the step's own */
    struct entry *draft;             /* owned; NULL: none */
    struct entry *done; /* what the step has changed; under the lock only */
    size_t room_wanted; /* for the value in the next draft */
};

/* How a draft is published. */
enum items_birth {
    ITEMS__BORN, /* owes nothing to an older value */
    ITEMS__HEIR  /* could not be there but for the old one: shares its birth */
};

struct op items__op_of(struct items *items, const char *key, size_t key_len,
    const struct items_terms *terms, uint64_t now_s);

/* The longest value that the key may have. */
size_t items__op_value_len_max(const struct op *op, uint32_t flags);

/* True where the draft has room for such a value. Else the step returns what
 * items__op_want answers, and begins again with a larger one. */
bool items__op_has_room(const struct op *op, size_t room);
int items__op_want(struct op *op, size_t room);

/* Puts value (NULL where value_len is 0) into the draft, which has the room
 * for it. */
void items__op_fill(struct op *op, const char *value, size_t value_len,
    uint32_t flags, uint64_t expiry_s);

/* Puts more behind the value in the draft, which has the room for it. */
void items__op_add(struct op *op, const char *value, size_t value_len);

/* Links the draft, filled, in place of old (NULL: nothing is there; its birth
 * is then ITEMS__BORN). cas 0: the next one. op->done is the new entry
 * then. */
void items__op_publish(struct op *op, struct stripe *stripe, struct entry *old,
    enum items_birth birth, uint64_t cas);

/* Runs step under the lock of the key's stripe until it has the room it
 * wants; drops the draft. Returns what the step did, or ERR_NO_MEMORY. */
int items__op_run(
    struct op *op, int (*step)(struct op *op, struct stripe *stripe));

#endif
