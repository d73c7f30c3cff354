/* SPDX-License-Identifier: BSD-3-Clause */
/* Members of members=about, asked for and added by runs of keys of one column,
 * each of which goes to that column's tables; and what is told of these. */
#include "store/store_about.h"

#include "store/store_real.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    NAME_BYTES = 96, /* "<counter>.<column>:<figure>" */
    VALUE_BYTES = 32
};

/* What the tables say, and what it is called here. */
static const uint8_t about_states[] = {
    [ABOUT_OUT] = STORE_ABOUT_OUT,
    [ABOUT_IN] = STORE_ABOUT_IN,
    [ABOUT_BELOW] = STORE_ABOUT_BELOW,
    [ABOUT_JUMP] = STORE_ABOUT_JUMP,
};

/* The keys from number i on that are of one column: the number of the first
 * behind them. */
static uint32_t
take_run(const struct store_about *about, uint32_t i, struct about_pair *pair)
{
    uint32_t first = i;
    for (; i < about->n && about->key[i].serial == about->key[first].serial;
         i++) {
        pair[i - first] =
            (struct about_pair){about->key[i].id, about->key[i].member};
    }
    return i;
}

static void
work_on(struct store *store, struct store_about *about, bool adds)
{
    struct real_store *real = (struct real_store *)store;
    struct about_pair pair[STORE_ABOUT_MAX];
    uint8_t said[STORE_ABOUT_MAX];
    ASSERT(about->n <= STORE_ABOUT_MAX);
    about->seq = 0;
    for (uint32_t first = 0, end; first < about->n; first = end) {
        end = take_run(about, first, pair);
        struct about *tables =
            abouts_find(real->abouts, about->key[first].serial);
        if (tables == NULL) {
            memset(&about->state[first], STORE_ABOUT_GONE, end - first);
            continue;
        }
        if (adds) {
            uint64_t seq = about_add(
                tables, pair, end - first, about->max_jump[first], said);
            about->seq = seq > about->seq ? seq : about->seq;
        } else {
            about_get(tables, pair, end - first, said);
        }
        for (uint32_t i = first; i < end; i++) {
            about->state[i] = about_states[said[i - first]];
        }
    }
}

void
store_about__get(struct store *store, struct store_about *about)
{
    work_on(store, about, false);
}

void
store_about__add(struct store *store, struct store_about *about)
{
    work_on(store, about, true);
}

/* The names of the column of that serial; false where it has just been
 * dropped. */
static bool
find_names(const struct schema *schema, uint32_t serial,
    const struct schema_counter **counter, const struct schema_column **column)
{
    for (unsigned slot = 0; slot < SCHEMA_COUNTERS_MAX; slot++) {
        *counter = schema_counter_at(schema, slot);
        *column = *counter == NULL ? NULL : schema_column_of(*counter, serial);
        if (*column != NULL) {
            return true;
        }
    }
    return false;
}

/* What a share is told as, in percent. */
static void
put_percent(char value[VALUE_BYTES], uint64_t part, uint64_t whole)
{
    snprintf(value, VALUE_BYTES, "%.1f",
        whole == 0 ? 0.0 : 100.0 * (double)part / (double)whole);
}

bool
store_about__stats(struct store *store, uint32_t *serial,
    void (*stat_fn)(void *context, const char *name, const char *value),
    void *context)
{
    const struct about *tables =
        abouts_next(store__real(store)->abouts, serial);
    const struct schema_counter *counter;
    const struct schema_column *column;
    struct about_figures of;
    char name[NAME_BYTES], value[VALUE_BYTES];
    if (tables == NULL) {
        return false;
    }
    if (!find_names(store_schema(store), *serial, &counter, &column)) {
        return true;
    }
    about_figures(tables, &of);
#define X(figure, number)                                                     \
    snprintf(name, sizeof name, "%s.%s:" figure, counter->name.text,          \
        column->name.text);                                                   \
    snprintf(value, sizeof value, "%" PRIu64, (uint64_t)(number));            \
    stat_fn(context, name, value);
    X("memory", column->memory)
    X("bytes", of.bytes)
    X("tables", of.tables)
    X("tables_max", of.tables_max)
    X("members", of.members)
    X("first_id", of.first_id)
    X("largest_id", of.largest_id)
    X("wrong_one_in", of.wrong_one_in)
    X("wrong_one_in_worst", of.fullest_wrong)
    X("closed", of.closed)
    X("forgotten", of.forgotten)
    X("closes_at", of.share)
#undef X
    snprintf(name, sizeof name, "%s.%s:fill", counter->name.text,
        column->name.text);
    put_percent(value, of.fullest, of.members_max);
    stat_fn(context, name, value);
    return true;
}
