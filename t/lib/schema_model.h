/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LIB_SCHEMA_MODEL_H
#define LIB_SCHEMA_MODEL_H

#include "schema/schema.h"

#include <stdbool.h>
#include <stdint.h>

/* A slow, obvious model of the schema: all counters by slot, with their columns
 * in order. Names are numbers. Each edit does what schema_apply does and
 * returns what that returns. */

enum { NOTHING = -1 /* no name */ };

struct model_column {
    int name, suffix, unread; /* numbers of names; NOTHING */
    unsigned slot, hint, max;
    uint32_t serial, flags, source; /* source: a serial, 0: none */
    uint64_t default_value, id, forget;
    enum schema_kind kind;
    bool is_fixed, none;
    unsigned member_bits, value_bits, pairs; /* of members; else 0 */
    uint32_t counts;
    unsigned error; /* of about, as memory; else 0 */
    uint64_t memory;
};

struct model_counter {
    bool used;
    bool miss, error, ignore, quietest, never;
    uint32_t members_of; /* not 0: of pairs, with no name */
    uint64_t max_jump, cold_after;
    int name, key, n_columns;
    uint32_t serial;
    struct model_column column[SCHEMA_COLUMNS_MAX];
};

struct model {
    uint32_t last_serial;
    struct model_counter counter[SCHEMA_COUNTERS_MAX];
};

/* NULL where there is none. */
struct model_counter *model_find(struct model *model, int name);

/* What a name stands for, or NULL; *column is NOTHING for a counter's own
 * name. */
struct model_counter *model_lookup(
    struct model *model, int name, int *column, bool *is_unread);

/* 0, or ERR_. */
int model_add_counter(struct model *model, const struct model_counter *want);
int model_add_key(struct model *model, int counter_name, int name);
/* want: without serial and slots; source: the name of what a mark or a list is
 * about, or of what members are counted in. */
int model_add_column(struct model *model, int counter_name,
    struct model_column want, int source);
/* Each NOTHING, memory 0: it stays. */
struct model_change {
    int name, suffix, max, hint;
    uint64_t memory;
};
int model_change_column(struct model *model, int counter_name, int name,
    const struct model_change *change);
int model_drop_column(struct model *model, int counter_name, int name);
int model_drop_counter(struct model *model, int name);

#endif
