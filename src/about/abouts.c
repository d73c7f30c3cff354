/* SPDX-License-Identifier: BSD-3-Clause */
/* The columns of members=about of a store.
 *
 * They are a list, by serial, that does not change once it is published: an
 * edit makes a new one beside it, publishes that, and frees the old one, and
 * the columns that have gone, when no reader can see them any more. There are
 * few, and edits are rare.
 *
 * What can go wrong: memory, before anything has changed. */
#include "about/abouts.h"

#include "about/about_life.h"
#include "base/assert.h"
#include "base/err.h"

#include <stdatomic.h>
#include <stdlib.h>

struct place {
    uint32_t serial;
    uint64_t memory;
    struct about *about;
    struct about_sink *sink;
};

struct list {
    size_t n;
    struct place place[]; /* by serial, ascending */
};

struct abouts {
    struct abouts_config config;
    _Atomic(struct list *) list; /* NULL: no columns */
};

/* For who edits, or is an online reader. */
static struct list *
list_of(const struct abouts *abouts)
{
    /* seq_cst: with the epochs of qsbr.c in one order, see store_schema */
    return atomic_load_explicit(&abouts->list, memory_order_seq_cst);
}

int
abouts_create(const struct abouts_config *config, struct abouts **out)
{
    struct abouts *abouts = calloc(1, sizeof *abouts);

    if (abouts == NULL) {
        return ERR_NO_MEMORY;
    }
    abouts->config = *config;
    *out = abouts;
    return 0;
}

static void
end(const struct abouts_config *config, struct place *place)
{
    if (place->about != NULL) {
        about_destroy(&place->about);
    }
    if (place->sink != NULL && config->sink_end_fn != NULL) {
        config->sink_end_fn(config->context, place->sink);
    }
}

static const struct place *
find(const struct list *list, uint32_t serial)
{
    for (size_t i = 0; list != NULL && i < list->n; i++) {
        if (list->place[i].serial == serial) {
            return &list->place[i];
        }
    }
    return NULL;
}

/* Ends what list has and other has not; either may be NULL. */
static void
end_beside(const struct abouts_config *config, struct list *list,
    const struct list *other)
{
    for (size_t i = 0; list != NULL && i < list->n; i++) {
        if (find(other, list->place[i].serial) == NULL) {
            end(config, &list->place[i]);
        }
    }
}

void
abouts_destroy(struct abouts **abouts)
{
    struct list *list = list_of(*abouts);

    end_beside(&(*abouts)->config, list, NULL);
    free(list);
    free(*abouts);
    *abouts = NULL;
}

/* A new column's tables. */
static int
make(const struct abouts_config *config, const struct schema_column *column,
    struct place *out)
{
    struct about_config about = {.memory_bytes = column->memory,
        .error = column->error,
        .seed = config->seed,
        .serial = column->serial,
        .qsbr = config->qsbr,
        .alloc = config->alloc};
    int err;

    *out = (struct place){.serial = column->serial, .memory = column->memory};
    if (config->sink_fn != NULL) {
        out->sink = config->sink_fn(config->context, column->serial);
        if (out->sink == NULL) {
            return ERR_NO_MEMORY;
        }
        about.sink = out->sink;
    }
    err = about_create(&about, &out->about);
    if (err != 0) {
        out->about = NULL;
        end(config, out);
    }
    return err;
}

/* Puts a place where its serial belongs. */
static void
put(struct list *list, struct place place)
{
    size_t at = list->n++;

    for (; at > 0 && list->place[at - 1].serial > place.serial; at--) {
        list->place[at] = list->place[at - 1];
    }
    list->place[at] = place;
}

/* A place for column: that of old, or a new one. */
static int
add(const struct abouts_config *config, const struct schema_column *column,
    const struct list *old, struct list *list)
{
    const struct place *was = find(old, column->serial);
    struct place place;
    int err = 0;

    if (was == NULL) {
        err = make(config, column, &place);
    } else {
        place = *was;
        place.memory = column->memory;
    }
    if (err == 0) {
        put(list, place);
    }
    return err;
}

/* How many columns there are; of these, *n_same list has just so. */
static size_t
count(const struct schema *schema, const struct list *list, size_t *n_same)
{
    size_t n = 0;

    *n_same = 0;
    for (unsigned slot = 0; slot < SCHEMA_COUNTERS_MAX; slot++) {
        const struct schema_counter *counter = schema_counter_at(schema, slot);

        for (unsigned i = 0; counter != NULL && i < counter->n_columns; i++) {
            const struct schema_column *column = &counter->column[i];
            const struct place *place = find(list, column->serial);

            n += column->kind == SCHEMA_ABOUT;
            *n_same += place != NULL && place->memory == column->memory;
        }
    }
    return n;
}

/* All that schema has. */
static int
fill(const struct abouts_config *config, const struct schema *schema,
    const struct list *old, struct list *list)
{
    int err = 0;

    for (unsigned slot = 0; slot < SCHEMA_COUNTERS_MAX; slot++) {
        const struct schema_counter *counter = schema_counter_at(schema, slot);

        for (unsigned i = 0;
             counter != NULL && err == 0 && i < counter->n_columns; i++) {
            if (counter->column[i].kind == SCHEMA_ABOUT) {
                err = add(config, &counter->column[i], old, list);
            }
        }
    }
    return err;
}

static void
resize(const struct list *list, const struct list *old)
{
    for (size_t i = 0; i < list->n; i++) {
        const struct place *place = &list->place[i];
        const struct place *was = find(old, place->serial);

        if (was != NULL && was->memory != place->memory) {
            about_resize(place->about, place->memory);
        }
    }
}

int
abouts_follow(struct abouts *abouts, const struct schema *schema)
{
    const struct abouts_config *config = &abouts->config;
    struct list *old = list_of(abouts);
    size_t n_same, n = count(schema, old, &n_same);
    struct list *list;
    int err;

    if (n == n_same && n == (old == NULL ? 0 : old->n)) {
        return 0;
    }
    list = calloc(1, sizeof *list + n * sizeof list->place[0]);
    if (list == NULL) {
        return ERR_NO_MEMORY;
    }
    err = fill(config, schema, old, list);
    if (err != 0) {
        end_beside(config, list, old);
        free(list);
        return err;
    }
    ASSERT(list->n == n);
    resize(list, old);
    /* seq_cst: see list_of */
    atomic_store_explicit(&abouts->list, list, memory_order_seq_cst);
    qsbr_wait(config->qsbr);
    end_beside(config, old, list);
    free(old);
    return 0;
}

struct about *
abouts_find(const struct abouts *abouts, uint32_t serial)
{
    const struct place *place = find(list_of(abouts), serial);

    return place == NULL ? NULL : place->about;
}

struct about *
abouts_next(const struct abouts *abouts, uint32_t *serial)
{
    const struct list *list = list_of(abouts);

    for (size_t i = 0; list != NULL && i < list->n; i++) {
        if (list->place[i].serial > *serial) {
            *serial = list->place[i].serial;
            return list->place[i].about;
        }
    }
    return NULL;
}
