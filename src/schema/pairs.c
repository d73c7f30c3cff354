/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters of pairs. A column of members stores them as records of a counter
 * of their own, which nobody has made: it is there because the column is. All
 * of it is made of the column and its counter, so nothing of it is stored, and
 * a schema that is restored has the same ones.
 *
 * Invariant: there is one for each column of members, in the slot that the
 * column says, and no other. It is found by slot only: no name that a person
 * can give begins with #. */
#include "schema/schema.h"

#include "base/assert.h"
#include "base/num.h"
#include "schema/schema_priv.h"

_Static_assert(1 + NUM_U64_DIGITS_MAX <= SCHEMA_NAME_MAX, "the name fits");

void
schema__pairs_add(struct schema *schema, const struct schema_counter *counter,
    const struct schema_column *column)
{
    struct schema_counter *pairs = schema__add(schema, column->pairs);

    ASSERT(column->kind == SCHEMA_MEMBERS);
    ASSERT(column->value_bits >= 1 &&
        column->value_bits <= SCHEMA_VALUE_BITS_MAX);
    pairs->name.text[0] = '#';
    pairs->name.len =
        (uint8_t)(1 + num_format_u64(column->serial, pairs->name.text + 1));
    pairs->name.text[pairs->name.len] = '\0';
    pairs->serial = column->serial + 1;
    pairs->members_of = column->serial;
    pairs->absent_is_miss = counter->absent_is_miss;
    pairs->overflow_is_error = counter->overflow_is_error;
    pairs->exptime_is_ignored = counter->exptime_is_ignored;
    pairs->cold_is_never = counter->cold_is_never;
    pairs->cold_is_quietest = counter->cold_is_quietest;
    /* cold_after is about the ids of records: pairs have others */
    pairs->column[0] = (struct schema_column){
        .serial = schema_pairs_serial(column),
        .hint_bits = column->value_bits,
        .max_bits = column->value_bits,
    };
    pairs->n_columns = 1;
}

void
schema__pairs_remove(
    struct schema *schema, const struct schema_counter *counter)
{
    for (unsigned i = 0; i < counter->n_columns; i++) {
        const struct schema_column *column = &counter->column[i];

        if (column->kind == SCHEMA_MEMBERS) {
            ASSERT(schema_pairs(schema, column)->members_of == column->serial);
            schema__remove(schema, column->pairs);
        }
    }
}

const struct schema_counter *
schema_owner(const struct schema *schema, const struct schema_counter *counter)
{
    const struct schema_counter *owner = NULL;

    if (counter->members_of == 0) {
        return counter;
    }
    for (unsigned slot = 0; owner == NULL && slot < SCHEMA_COUNTERS_MAX;
         slot++) {
        const struct schema_counter *one = schema_counter_at(schema, slot);

        if (one != NULL &&
            schema_column_of(one, counter->members_of) != NULL) {
            owner = one;
        }
    }
    ASSERT(owner != NULL);
    return owner;
}

const struct schema_column *
schema_members(const struct schema *schema, const struct schema_counter *pairs)
{
    const struct schema_column *column =
        schema_column_of(schema_owner(schema, pairs), pairs->members_of);

    ASSERT(column != NULL && column->kind == SCHEMA_MEMBERS);
    return column;
}

unsigned
schema_pairs_beside(const struct schema *schema, const struct schema *other,
    uint8_t slot[SCHEMA_COLUMNS_MAX])
{
    unsigned n = 0;

    for (unsigned i = 0; i < SCHEMA_COUNTERS_MAX; i++) {
        const struct schema_counter *pairs = schema_counter_at(schema, i);
        const struct schema_counter *there = schema_counter_at(other, i);

        if (pairs != NULL && pairs->members_of != 0 &&
            (there == NULL || there->serial != pairs->serial)) {
            ASSERT(n < SCHEMA_COLUMNS_MAX);
            slot[n++] = (uint8_t)i;
        }
    }
    return n;
}
