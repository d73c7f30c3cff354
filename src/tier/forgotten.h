/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TIER_FORGOTTEN_H
#define TIER_FORGOTTEN_H

#include "base/qsbr.h"
#include "engine/engine.h"
#include "schema/schema.h"

/* Which marks of a counter count as none (forget=), and their removal. Part of
 * the store: of the forgetter, and of seals; one thread at a time. */

/* A mark with forget=. */
struct forgotten_mark {
    uint32_t serial;
    uint8_t column;  /* slot */
    bool is_fixed;   /* source is that of one id; else of the mark's own */
    bool of_members; /* it is the largest member */
    uint64_t source_default;
    uint64_t forget;            /* > 0 */
    struct cell_key source;     /* without the id where that is the own one */
    uint64_t fixed;             /* its value, see forgotten_look */
    uint32_t pairs_serial;      /* of_members: as struct sorted_key */
    uint8_t pairs, member_bits; /* likewise */
};

/* Who looks sets the first three. */
struct forgotten {
    struct engine *engine;
    struct qsbr *qsbr;
    struct qsbr_reader *reader; /* registered, and offline between calls */
    uint8_t slot;               /* of the counter */
    unsigned n;
    struct forgotten_mark mark[SCHEMA_COLUMNS_MAX];
};

/* A mark of a record, as it was found there. */
struct forgotten_found {
    uint64_t id;
    uint64_t stored; /* the mark */
    uint64_t own;    /* code of the source where it is of the same id, of
                      * members their number; else anything */
};

/* Takes over the marks of a counter; it->n is how many they are, and 0 for no
 * counter (NULL). */
void forgotten_take(struct forgotten *it, const struct schema *schema,
    const struct schema_counter *counter);

/* Reads the sources of a fixed id. What is not in memory, a number in a segment
 * or the array of members that nobody has asked for, counts as 0, of which
 * nothing is far below. The thread is no online reader, but for the time of
 * this call; so it is in those that follow. */
void forgotten_look(struct forgotten *it);

/* Whether a mark counts as none, as far as known: of members of the own id by
 * their array, if there is one in memory now. */
bool forgotten_is(const struct forgotten *it,
    const struct forgotten_mark *mark, const struct forgotten_found *found);

/* Deletes that mark where it is still the one that is stored, and still counts
 * as none: 0, or an error of the change, and then it stays: ERR_HOT_FULL,
 * ERR_COLD where it has become cold meanwhile. By a fixed source as it was
 * looked at last, so that is right before; by members of the own id as they are
 * now. base: as struct change has it, or NULL. The sink is told. */
int forgotten_delete(const struct forgotten *it,
    const struct forgotten_mark *mark, const struct forgotten_found *found,
    const struct engine_base *base);

#endif
