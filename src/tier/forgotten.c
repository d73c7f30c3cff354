/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds marks that are forgotten, and takes them out.
 *
 * Who looks reads records one after the other, without a lock: what it finds is
 * a guess. The engine decides under the shard's lock (CHANGE_MARK_FORGET), by
 * the source of the same record as it is then, or by that of a fixed id as it
 * was read last; and only where the mark is still the number that was found. So
 * a mark that somebody has moved stays, and so does one that counts again by a
 * number of its own id.
 *
 * A source of a fixed id is another record, of another shard: it is read right
 * before each batch, and no lock keeps it as it is while that is made. The
 * largest member of the own id is read right before each change, from the array
 * that a poll has made, likewise without a lock. Where a client lowers one of
 * these just then, the mark may go by what it was; a mark that is set in that
 * moment, to the number that it had, goes with it. */
#include "tier/forgotten.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "engine/cell.h"
#include "engine/cover.h"
#include "engine/sorted.h"

static void
take_mark(struct forgotten *it, const struct schema *schema,
    const struct schema_counter *counter, const struct schema_column *column)
{
    struct schema_target source;
    if (column->kind != SCHEMA_MARK || column->forget == 0 ||
        !schema_source(schema, counter, column, &source)) {
        return;
    }
    bool of_members = source.column->kind == SCHEMA_MEMBERS;
    ASSERT(it->n < SCHEMA_COLUMNS_MAX);
    it->mark[it->n++] = (struct forgotten_mark){.serial = column->serial,
        .column = column->slot,
        .is_fixed = column->source.is_fixed,
        .of_members = of_members,
        .source_default = source.column->default_value,
        .forget = column->forget,
        .source = {column->source.id, source.column->serial,
            source.counter->slot, source.column->slot},
        .pairs_serial = of_members ? schema_pairs_serial(source.column) : 0,
        .pairs = source.column->pairs,
        .member_bits = source.column->member_bits};
}

void
forgotten_take(struct forgotten *it, const struct schema *schema,
    const struct schema_counter *counter)
{
    it->n = 0;
    if (counter == NULL) {
        return;
    }
    it->slot = counter->slot;
    for (unsigned i = 0; i < counter->n_columns; i++) {
        take_mark(it, schema, counter, &counter->column[i]);
    }
}

/* The largest member of an id whose members have that number; 0 where they are
 * not known. */
static uint64_t
largest_of(const struct forgotten *it, const struct forgotten_mark *mark,
    uint64_t id, uint64_t number)
{
    const struct sorted_key key = {.id = id,
        .number = number,
        .serial = mark->pairs_serial,
        .pairs = mark->pairs,
        .bits = mark->member_bits};
    struct sorted_pin pin;
    uint64_t largest = 0;
    if (engine_pin(it->engine, &key, &pin)) {
        largest = sorted_largest(&pin);
        engine_unpin(it->engine, &pin);
    }
    return largest;
}

static uint64_t
fixed_source(const struct forgotten *it, const struct forgotten_mark *mark)
{
    struct engine_found found;
    uint64_t value;
    uint8_t state;
    engine_look(it->engine, &mark->source, 1, &value, &state, &found);
    bool is_known = found.is_here || found.version == 0;
    if (!is_known || state == CELL_GONE) {
        return 0;
    }
    return mark->of_members ? largest_of(it, mark, mark->source.id, value)
                            : value;
}

void
forgotten_look(struct forgotten *it)
{
    qsbr_online(it->qsbr, it->reader);
    for (unsigned k = 0; k < it->n; k++) {
        struct forgotten_mark *mark = &it->mark[k];
        mark->fixed = mark->is_fixed ? fixed_source(it, mark) : 0;
    }
    qsbr_offline(it->reader);
}

static uint64_t
source_of(const struct forgotten *it, const struct forgotten_mark *mark,
    const struct forgotten_found *found)
{
    uint64_t source;
    if (mark->is_fixed) {
        return mark->fixed;
    }
    source = bytes_of_code(found->own, mark->source_default);
    if (mark->of_members) {
        qsbr_online(it->qsbr, it->reader);
        source = largest_of(it, mark, found->id, source);
        qsbr_offline(it->reader);
    }
    return source;
}

bool
forgotten_is(const struct forgotten *it, const struct forgotten_mark *mark,
    const struct forgotten_found *found)
{
    ASSERT(mark->forget > 0);
    return found->stored != 0 &&
        mark_position(
            found->stored, source_of(it, mark, found), mark->forget) == 0;
}

int
forgotten_delete(const struct forgotten *it, const struct forgotten_mark *mark,
    const struct forgotten_found *found, const struct engine_base *base)
{
    bool is_here = !mark->is_fixed && !mark->of_members;
    struct change change = {.id = found->id,
        .op = CHANGE_MARK_FORGET,
        .counter = it->slot,
        .n_columns = 1,
        .column = {mark->column},
        .serial = {mark->serial},
        .operand = {found->stored},
        .source = {.from = is_here ? SOURCE_HERE : SOURCE_GIVEN,
            .serial = mark->source.serial,
            .column = mark->source.column,
            .unmarked_is_none = true,
            .of_members = mark->of_members,
            .value = is_here ? 0 : source_of(it, mark, found),
            .forget = mark->forget},
        .base = base};
    ASSERT(found->stored != 0);
    (void)engine_change(it->engine, &change, 1);
    return change.err;
}
