/* SPDX-License-Identifier: BSD-3-Clause */
/* One version of the schema, and what is looked up in it.
 *
 * A schema is one block of memory: the counters that there are, found by slot,
 * and behind them an open-addressing index over every name that can stand
 * after the dot (counters, columns, suffixes, what marks leave unread: one
 * namespace). Nothing is shared between versions, so that freeing one is one
 * free. A counter takes 2.8 KB; at the worst 0.9 MB are copied for an
 * edit, which is rare.
 *
 * Invariants: a place of counter is in use exactly where its name has a
 * length, and then place says so at its own slot; every name is in the index
 * once, but for those of counters of pairs, which nobody may name; the index
 * is at most half full, so that a probe ends, mostly at the first place. The
 * index is filled when the schema is made and never changes.
 *
 * Names come from operators, so the hash needs no secret: a client that asks
 * for names of its own choice finds clusters no longer than they already are.
 *
 * What can go wrong: memory, when a version is made. */
#include "schema/schema.h"

#include "base/assert.h"
#include "schema/schema_priv.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { INDEX_PLACES_MIN = 16 };

_Static_assert(
    sizeof(struct schema_counter) % _Alignof(struct schema__entry) == 0,
    "the index stands behind counters");

static size_t
size_of(uint32_t index_mask, uint32_t n_places)
{
    return sizeof(struct schema) + n_places * sizeof(struct schema_counter) +
        ((size_t)index_mask + 1) * sizeof(struct schema__entry);
}

static uint32_t
index_mask_for(uint32_t n_names)
{
    uint32_t places = INDEX_PLACES_MIN;

    while (places < 2 * n_names) {
        places *= 2;
    }
    return places - 1;
}

static struct schema *
make(const struct alloc *alloc, uint32_t n_names, uint32_t n_places)
{
    uint32_t mask = index_mask_for(n_names);
    struct schema *schema = alloc_zeroed(alloc, size_of(mask, n_places));

    if (schema != NULL) {
        schema->alloc = alloc;
        schema->index_mask = mask;
        schema->n_places = n_places;
        schema->index = (struct schema__entry *)&schema->counter[n_places];
    }
    return schema;
}

struct schema *
schema_create_from(const struct alloc *alloc)
{
    return make(alloc, 0, 0);
}

struct schema *
schema_create(void)
{
    return schema_create_from(NULL);
}

void
schema_destroy(struct schema **schema)
{
    if (*schema != NULL) {
        alloc_free((*schema)->alloc, *schema,
            size_of((*schema)->index_mask, (*schema)->n_places));
        *schema = NULL;
    }
}

uint64_t
schema_version(const struct schema *schema)
{
    return schema->version;
}

static const struct schema_name *
name_of(const struct schema *schema, const struct schema__entry *entry)
{
    const struct schema_counter *counter =
        schema_counter_at(schema, entry->counter);

    switch (entry->kind) {
    case SCHEMA_COUNTER_NAME:
        return &counter->name;
    case SCHEMA_COLUMN_NAME:
        return &counter->column[entry->column].name;
    case SCHEMA_COLUMN_UNREAD:
        return &counter->column[entry->column].unread;
    default:
        return &counter->column[entry->column].suffix;
    }
}

/* The place where name is in the index, or the empty one where it would be. */
static inline const struct schema__entry *
probe(const struct schema *schema, const char *name, size_t len, uint32_t *tag)
{
    uint64_t hash = XXH3_64bits(name, len);
    uint32_t at = (uint32_t)hash & schema->index_mask;
    const struct schema__entry *entry;

    *tag = (uint32_t)(hash >> 32);
    for (;; at = (at + 1) & schema->index_mask) {
        entry = &schema->index[at];
        if (entry->kind == SCHEMA_NOTHING) {
            return entry;
        }
        if (entry->tag == *tag &&
            schema__name_is(name_of(schema, entry), name, len)) {
            return entry;
        }
    }
}

const struct schema_counter *
schema_counter(const struct schema *schema, const char *name, size_t len)
{
    const struct schema__entry *entry;
    uint32_t tag;

    if (len == 0 || len > SCHEMA_NAME_MAX) {
        return NULL;
    }
    entry = probe(schema, name, len, &tag);
    return entry->kind == SCHEMA_COUNTER_NAME
        ? schema_counter_at(schema, entry->counter)
        : NULL;
}

bool
schema_is_empty(const struct schema *schema)
{
    return schema->n_counters == 0;
}

bool
schema_has_text(const struct schema *schema)
{
    return schema->n_text > 0;
}

const struct schema_counter *
schema_counter_at(const struct schema *schema, unsigned slot)
{
    ASSERT(slot < SCHEMA_COUNTERS_MAX);
    unsigned place = schema->place[slot];

    return place == 0 ? NULL : &schema->counter[place - 1];
}

bool
schema_find(const struct schema *schema, const char *name, size_t len,
    struct schema_target *out)
{
    const struct schema__entry *entry;
    const struct schema_counter *counter;
    uint32_t tag;

    if (len == 0 || len > SCHEMA_NAME_MAX) {
        return false;
    }
    entry = probe(schema, name, len, &tag);
    if (entry->kind == SCHEMA_NOTHING) {
        return false;
    }
    counter = schema_counter_at(schema, entry->counter);
    out->counter = counter;
    out->column = entry->kind == SCHEMA_COUNTER_NAME
        ? NULL
        : &counter->column[entry->column];
    out->is_unread = entry->kind == SCHEMA_COLUMN_UNREAD;
    return true;
}

const struct schema_column *
schema_column_of(const struct schema_counter *counter, uint32_t serial)
{
    for (unsigned i = 0; i < counter->n_columns; i++) {
        if (counter->column[i].serial == serial) {
            return &counter->column[i];
        }
    }
    return NULL;
}

/* The same as schema_source where the column does not say where that is. */
static __attribute__((noinline)) bool
look_for_source(const struct schema *schema,
    const struct schema_counter *beside, uint32_t serial,
    struct schema_target *out)
{
    const struct schema_counter *counter = beside;
    uint32_t n = beside != NULL ? 1 : schema->n_places;

    for (uint32_t k = 0; k < n && serial != 0; k++) {
        if (beside == NULL) {
            counter = &schema->counter[k];
        }
        const struct schema_column *column = schema_column_of(counter, serial);

        if (column != NULL) {
            *out = (struct schema_target){counter, column, false};
            return true;
        }
    }
    return false;
}

const struct schema_column *
schema_counted_by(
    const struct schema_counter *counter, const struct schema_column *column)
{
    for (unsigned i = 0; i < counter->n_columns; i++) {
        if (counter->column[i].counts == column->serial) {
            return &counter->column[i];
        }
    }
    return NULL;
}

bool
schema_source(const struct schema *schema,
    const struct schema_counter *counter, const struct schema_column *column,
    struct schema_target *out)
{
    const struct schema_source *source = &column->source;
    bool is_beside = column->kind == SCHEMA_MARK && !source->is_fixed;
    const struct schema_counter *of =
        is_beside ? counter : schema_counter_at(schema, source->counter);
    const struct schema_column *it =
        of == NULL ? NULL : schema_source_in(of, source);

    if (it == NULL) {
        return look_for_source(
            schema, is_beside ? counter : NULL, source->serial, out);
    }
    *out = (struct schema_target){of, it, false};
    return true;
}

const struct schema_column *
schema_counter_column(
    const struct schema_counter *counter, const char *name, size_t len)
{
    if (len == 0) {
        return NULL;
    }
    for (unsigned i = 0; i < counter->n_columns; i++) {
        const struct schema_column *column = &counter->column[i];

        if (schema__name_is(&column->name, name, len) ||
            schema__name_is(&column->suffix, name, len)) {
            return column;
        }
    }
    return NULL;
}

struct schema *
schema__copy(
    const struct schema *old, uint32_t more_names, uint32_t more_counters)
{
    struct schema *copy = make(old->alloc, old->n_names + more_names,
        old->n_counters + more_counters);
    unsigned n = 0;

    if (copy == NULL) {
        return NULL;
    }
    copy->version = old->version;
    copy->last_serial = old->last_serial;
    for (unsigned i = 0; i < SCHEMA_COUNTERS_MAX; i++) {
        const struct schema_counter *counter = schema_counter_at(old, i);

        if (counter != NULL) {
            ASSERT(n < old->n_counters);
            copy->counter[n] = *counter;
            copy->place[i] = (uint16_t)++n;
        }
    }
    return copy;
}

struct schema_counter *
schema__add(struct schema *schema, unsigned slot)
{
    uint32_t place = 0;

    ASSERT(slot < SCHEMA_COUNTERS_MAX && schema->place[slot] == 0);
    while (place < schema->n_places && schema->counter[place].name.len > 0) {
        place++;
    }
    ASSERT(place < schema->n_places);
    schema->place[slot] = (uint16_t)(place + 1);
    schema->counter[place].slot = (uint8_t)slot;
    return &schema->counter[place];
}

unsigned
schema__free_slot(const struct schema *schema)
{
    unsigned slot = 0;

    while (schema->place[slot] != 0) {
        slot++;
        ASSERT(slot < SCHEMA_COUNTERS_MAX);
    }
    return slot;
}

void
schema__remove(struct schema *schema, unsigned slot)
{
    ASSERT(slot < SCHEMA_COUNTERS_MAX && schema->place[slot] != 0);
    *schema__at(schema, slot) = (struct schema_counter){0};
    schema->place[slot] = 0;
}

/* entry: where name is found; its tag is filled in here. */
static void
index_add(struct schema *schema, struct schema__entry entry)
{
    const struct schema_name *name = name_of(schema, &entry);
    const struct schema__entry *found;

    ASSERT(name->len > 0 && name->len <= SCHEMA_NAME_MAX);
    found = probe(schema, name->text, name->len, &entry.tag);
    ASSERT(found->kind == SCHEMA_NOTHING);
    schema->index[found - schema->index] = entry;
    schema->n_names++;
    ASSERT(2 * schema->n_names <= schema->index_mask + 1);
}

static void
index_counter(struct schema *schema, unsigned slot)
{
    const struct schema_counter *counter = schema_counter_at(schema, slot);
    struct schema__entry entry = {
        .kind = SCHEMA_COUNTER_NAME, .counter = (uint8_t)slot};

    ASSERT(counter->slot == slot);
    ASSERT(counter->n_columns <= SCHEMA_COLUMNS_MAX);
    if (counter->members_of != 0) {
        return; /* it is not to be found by name */
    }
    index_add(schema, entry);
    for (unsigned i = 0; i < counter->n_columns; i++) {
        entry.column = (uint8_t)i;
        entry.kind = SCHEMA_COLUMN_NAME;
        index_add(schema, entry);
        if (counter->column[i].suffix.len > 0) {
            entry.kind = SCHEMA_COLUMN_SUFFIX;
            index_add(schema, entry);
        }
        if (counter->column[i].unread.len > 0) {
            entry.kind = SCHEMA_COLUMN_UNREAD;
            index_add(schema, entry);
        }
    }
}

/* Notes where the sources of the counter's columns are. Mostly that is where
 * they were before the edit. */
static void
note_sources(struct schema *schema, struct schema_counter *counter)
{
    struct schema_target target;

    for (unsigned i = 0; i < counter->n_columns; i++) {
        struct schema_column *column = &counter->column[i];

        if (column->source.serial != 0 &&
            schema_source(schema, counter, column, &target)) {
            column->source.counter = target.counter->slot;
            column->source.place =
                (uint8_t)(target.column - target.counter->column);
        }
    }
}

void
schema__index(struct schema *schema)
{
    ASSERT(schema->n_names == 0 && schema->n_counters == 0 &&
        schema->n_text == 0);
    for (unsigned i = 0; i < SCHEMA_COUNTERS_MAX; i++) {
        if (schema->place[i] != 0) {
            index_counter(schema, i);
            note_sources(schema, schema__at(schema, i));
            schema->n_counters++;
            schema->n_text += schema__at(schema, i)->key_is_text;
        }
    }
    ASSERT(schema->n_names <= SCHEMA_NAMES_MAX);
}
