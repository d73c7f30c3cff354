/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/schema_model.h"

#include "base/err.h"

struct model_counter *
model_find(struct model *model, int name)
{
    for (int i = 0; i < SCHEMA_COUNTERS_MAX; i++) {
        if (model->counter[i].used && model->counter[i].name == name) {
            return &model->counter[i];
        }
    }
    return NULL;
}

/* What a name stands for; *column is NOTHING for a counter's own name. */
struct model_counter *
model_lookup(struct model *model, int name, int *column, bool *is_unread)
{
    *column = NOTHING;
    *is_unread = false;
    for (int i = 0; i < SCHEMA_COUNTERS_MAX; i++) {
        struct model_counter *counter = &model->counter[i];

        if (!counter->used || counter->members_of != 0) {
            continue;
        }
        if (counter->name == name) {
            return counter;
        }
        for (int j = 0; j < counter->n_columns; j++) {
            *is_unread = counter->column[j].unread == name;
            if (counter->column[j].name == name ||
                counter->column[j].suffix == name || *is_unread) {
                *column = j;
                return counter;
            }
        }
    }
    return NULL;
}

static bool
model_taken(struct model *model, int name)
{
    int column;
    bool is_unread;

    return name != NOTHING &&
        model_lookup(model, name, &column, &is_unread) != NULL;
}

/* What a mark or a list is to be about: serial, widths. */
static int
model_source(struct model *model, struct model_counter *counter, int name,
    struct model_column *want)
{
    bool follows = want->kind == SCHEMA_FOLLOWS, is_unread = false;
    int column = 0;

    if (follows || want->is_fixed) {
        counter = model_lookup(model, name, &column, &is_unread);
    } else {
        while (column < counter->n_columns &&
            counter->column[column].name != name &&
            counter->column[column].suffix != name) {
            column++;
        }
        column = column == counter->n_columns ? NOTHING : column;
    }
    if (counter == NULL || column == NOTHING || is_unread) {
        return follows ? ERR_NO_FOLLOWED : ERR_BAD_SOURCE;
    }
    const struct model_column *source = &counter->column[column];
    bool is_members = !follows && source->kind == SCHEMA_MEMBERS;
    if (source->kind == SCHEMA_ABOUT) {
        return ERR_ABOUT_SOURCE;
    }
    if (source->kind != SCHEMA_NUMBER && !is_members) {
        return ERR_SOURCE_KIND;
    }
    if (follows && !counter->never) {
        return ERR_FOLLOW_COLD;
    }
    want->source = source->serial;
    want->max = follows ? 1 : is_members ? source->member_bits : source->max;
    want->hint = follows ? 0 : is_members ? source->member_bits : source->hint;
    return 0;
}

/* True where a column of another counter than except is about it. */
static bool
model_is_source(const struct model *model, uint32_t serial,
    const struct model_counter *except)
{
    for (int i = 0; i < SCHEMA_COUNTERS_MAX; i++) {
        const struct model_counter *counter = &model->counter[i];

        for (int j = 0;
             counter->used && counter != except && j < counter->n_columns;
             j++) {
            if (counter->column[j].source == serial) {
                return true;
            }
        }
    }
    return false;
}

static int
model_free_slot(const struct model *model)
{
    int slot = 0;

    while (slot < SCHEMA_COUNTERS_MAX && model->counter[slot].used) {
        slot++;
    }
    return slot;
}

int
model_add_counter(struct model *model, const struct model_counter *want)
{
    int slot = model_free_slot(model);

    if (model_taken(model, want->name)) {
        return ERR_NAME_TAKEN;
    }
    if (slot == SCHEMA_COUNTERS_MAX) {
        return ERR_TOO_MANY_COUNTERS;
    }
    model->counter[slot] = *want;
    model->counter[slot].serial = ++model->last_serial;
    return 0;
}

int
model_add_key(struct model *model, int counter_name, int name)
{
    struct model_counter *counter = model_find(model, counter_name);

    if (counter == NULL) {
        return ERR_NO_COUNTER;
    }
    if (counter->key != NOTHING) {
        return ERR_TWO_KEYS;
    }
    counter->key = name;
    return 0;
}

static bool
slot_is_used(const struct model_counter *counter, unsigned slot)
{
    for (int i = 0; i < counter->n_columns; i++) {
        if (counter->column[i].slot == slot) {
            return true;
        }
    }
    return false;
}

/* What members are to be counted in, if that has a name. */
static int
model_counts(struct model *model, const struct model_counter *counter,
    int name, struct model_column *want)
{
    int column = 0;

    while (name != NOTHING && column < counter->n_columns &&
        counter->column[column].name != name &&
        counter->column[column].suffix != name) {
        column++;
    }
    if (name != NOTHING) {
        if (column == counter->n_columns ||
            counter->column[column].kind != SCHEMA_NUMBER ||
            counter->column[column].default_value != 0) {
            return ERR_BAD_COUNTS;
        }
        want->counts = counter->column[column].serial;
    }
    for (int i = 0; want->counts != 0 && i < counter->n_columns; i++) {
        if (counter->column[i].counts == want->counts) {
            return ERR_BAD_COUNTS;
        }
    }
    return want->kind == SCHEMA_MEMBERS &&
            model_free_slot(model) == SCHEMA_COUNTERS_MAX
        ? ERR_TOO_MANY_COUNTERS
        : 0;
}

/* The counter of pairs of a column that counter is about to get. */
static void
model_add_pairs(struct model *model, const struct model_counter *counter,
    struct model_column *members)
{
    struct model_counter *pairs;

    members->pairs = (unsigned)model_free_slot(model);
    pairs = &model->counter[members->pairs];
    *pairs = (struct model_counter){.used = true,
        .miss = counter->miss,
        .error = counter->error,
        .ignore = counter->ignore,
        .quietest = counter->quietest,
        .never = counter->never,
        .members_of = members->serial,
        .name = NOTHING,
        .key = NOTHING,
        .n_columns = 1,
        .serial = ++model->last_serial};
    pairs->column[0] = (struct model_column){.name = NOTHING,
        .suffix = NOTHING,
        .unread = NOTHING,
        .hint = members->value_bits,
        .max = members->value_bits,
        .serial = ++model->last_serial};
}

/* source: the name of what a mark or a list is about, or of what members are
 * counted in. */
int
model_add_column(struct model *model, int counter_name,
    struct model_column want, int source)
{
    struct model_counter *counter = model_find(model, counter_name);
    int err;

    if (counter == NULL) {
        return ERR_NO_COUNTER;
    }
    if (counter->key == NOTHING) {
        return ERR_NO_KEY;
    }
    if (model_taken(model, want.name) || model_taken(model, want.suffix) ||
        want.name == counter->key || want.suffix == counter->key) {
        return ERR_NAME_TAKEN;
    }
    if (want.unread != NOTHING &&
        (model_taken(model, want.unread) || want.unread == counter->key ||
            want.unread == want.name || want.unread == want.suffix)) {
        return ERR_NAME_TAKEN;
    }
    if (counter->n_columns == SCHEMA_COLUMNS_MAX) {
        return ERR_TOO_MANY_COLUMNS;
    }
    if (want.kind != SCHEMA_NUMBER) {
        err = want.kind == SCHEMA_MEMBERS || want.kind == SCHEMA_ABOUT
            ? model_counts(model, counter, source, &want)
            : model_source(model, counter, source, &want);
        if (err != 0) {
            return err;
        }
    }
    while (slot_is_used(counter, want.slot)) {
        want.slot++;
    }
    want.serial = ++model->last_serial;
    if (want.kind == SCHEMA_MEMBERS) {
        model_add_pairs(model, counter, &want);
    }
    counter->column[counter->n_columns++] = want;
    return 0;
}

static bool
model_is_marked(struct model *model, uint32_t serial)
{
    for (int i = 0; i < SCHEMA_COUNTERS_MAX; i++) {
        struct model_counter *counter = &model->counter[i];

        for (int j = 0; counter->used && j < counter->n_columns; j++) {
            if (counter->column[j].kind == SCHEMA_MARK &&
                counter->column[j].source == serial) {
                return true;
            }
        }
    }
    return false;
}

/* True where a column of counter may be called so. */
static bool
model_may_be(
    struct model *model, struct model_counter *counter, int place, int name)
{
    int column;
    bool is_unread;
    struct model_counter *found =
        model_lookup(model, name, &column, &is_unread);

    return name == NOTHING ||
        (name != counter->key &&
            (found == NULL ||
                (found == counter && column == place && !is_unread)));
}

int
model_change_column(struct model *model, int counter_name, int name,
    const struct model_change *change)
{
    struct model_counter *counter = model_find(model, counter_name);
    struct model_column next;
    int place = 0;

    if (counter == NULL) {
        return ERR_NO_COUNTER;
    }
    if (counter->key == name) {
        return ERR_CHANGE_KEY;
    }
    while (place < counter->n_columns && counter->column[place].name != name) {
        place++;
    }
    if (place == counter->n_columns) {
        return ERR_NO_COLUMN;
    }
    next = counter->column[place];
    if (change->memory != 0 && next.kind != SCHEMA_ABOUT) {
        return ERR_NOT_ABOUT;
    }
    if ((change->max != NOTHING || change->hint != NOTHING) &&
        (next.kind != SCHEMA_NUMBER || model_is_marked(model, next.serial))) {
        return ERR_CHANGE_WIDTH;
    }
    next.name = change->name == NOTHING ? next.name : change->name;
    next.suffix = change->suffix == NOTHING ? next.suffix : change->suffix;
    next.suffix = next.suffix == next.name ? NOTHING : next.suffix;
    next.max = change->max == NOTHING ? next.max : (unsigned)change->max;
    next.hint = change->hint == NOTHING ? next.hint : (unsigned)change->hint;
    next.memory = change->memory == 0 ? next.memory : change->memory;
    if (next.max < counter->column[place].max) {
        return ERR_CHANGE_DOWN;
    }
    if (next.hint > next.max) {
        return ERR_BAD_HINT;
    }
    if (!model_may_be(model, counter, place, next.name) ||
        !model_may_be(model, counter, place, next.suffix)) {
        return ERR_NAME_TAKEN;
    }
    counter->column[place] = next;
    return 0;
}

int
model_drop_column(struct model *model, int counter_name, int name)
{
    struct model_counter *counter = model_find(model, counter_name);
    int place = 0;
    uint32_t serial;

    if (counter == NULL) {
        return ERR_NO_COUNTER;
    }
    if (counter->key == name) {
        return ERR_DROP_KEY;
    }
    while (place < counter->n_columns && counter->column[place].name != name) {
        place++;
    }
    if (place == counter->n_columns) {
        return ERR_NO_COLUMN;
    }
    serial = counter->column[place].serial;
    for (int i = 0; i < counter->n_columns; i++) {
        if (counter->column[i].counts == serial) {
            return ERR_IN_USE;
        }
    }
    if (model_is_source(model, serial, NULL)) {
        return ERR_IN_USE;
    }
    if (counter->column[place].kind == SCHEMA_MEMBERS) {
        model->counter[counter->column[place].pairs].used = false;
    }
    counter->n_columns--;
    for (; place < counter->n_columns; place++) {
        counter->column[place] = counter->column[place + 1];
    }
    return 0;
}

int
model_drop_counter(struct model *model, int name)
{
    struct model_counter *counter = model_find(model, name);

    if (counter == NULL) {
        return ERR_NO_COUNTER;
    }
    for (int i = 0; i < counter->n_columns; i++) {
        if (model_is_source(model, counter->column[i].serial, counter)) {
            return ERR_IN_USE;
        }
    }
    for (int i = 0; i < counter->n_columns; i++) {
        if (counter->column[i].kind == SCHEMA_MEMBERS) {
            model->counter[counter->column[i].pairs].used = false;
        }
    }
    counter->used = false;
    return 0;
}
