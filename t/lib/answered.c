/* SPDX-License-Identifier: BSD-3-Clause */
/* A history, and the search for the step after which a found state was so. The
 * steps are done one after the other on a copy of the base, and it is counted
 * how many cells differ from what was found. */
#include "lib/answered.h"

#include "base/assert.h"
#include "schema/restore.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct answered_step {
    uint64_t seq;
    size_t first_cell; /* of those of this step */
    char *schema;      /* owned; NULL: as before */
};

struct answered_cell {
    uint32_t serial;
    size_t i; /* of the id */
    uint64_t value;
};

static void *
grown(void *list, size_t n, size_t *capacity, size_t size)
{
    if (n < *capacity) {
        return list;
    }
    *capacity = *capacity * 2 + 64;
    list = realloc(list, *capacity * size);
    ASSERT(list != NULL);
    return list;
}

static void
print_counter(FILE *out, const struct schema_counter *counter)
{
    fprintf(out, "%u %s serial %" PRIu32 " key %s %u%u%u jump %" PRIu64 "\n",
        counter->slot, counter->name.text, counter->serial,
        counter->key_name.text, counter->absent_is_miss,
        counter->overflow_is_error, counter->exptime_is_ignored,
        counter->max_jump);
    for (unsigned i = 0; i < counter->n_columns; i++) {
        const struct schema_column *column = &counter->column[i];
        fprintf(out,
            "  %u %s %s serial %" PRIu32 " bits %u %u flags %" PRIu32
            " default %" PRIu64 "\n",
            column->slot, column->name.text, column->suffix.text,
            column->serial, column->hint_bits, column->max_bits, column->flags,
            column->default_value);
    }
}

char *
answered_schema_text(const struct schema *schema)
{
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    ASSERT(out != NULL);
    fprintf(out, "last serial %" PRIu32 "\n", schema_last_serial(schema));
    for (unsigned slot = 0; slot < SCHEMA_COUNTERS_MAX; slot++) {
        const struct schema_counter *counter = schema_counter_at(schema, slot);
        if (counter != NULL) {
            print_counter(out, counter);
        }
    }
    fclose(out);
    return text;
}

void
answered_init(struct answered *history, const uint64_t *id, size_t n_ids)
{
    struct schema *none = schema_create();
    *history = (struct answered){.n_ids = n_ids};
    history->id = malloc(n_ids * sizeof(*id));
    ASSERT(history->id != NULL && none != NULL);
    memcpy(history->id, id, n_ids * sizeof(*id));
    history->base_schema = answered_schema_text(none);
    schema_destroy(&none);
}

static void
forget_steps(struct answered *history)
{
    for (size_t i = 0; i < history->n_steps; i++) {
        free(history->step[i].schema);
    }
    history->n_steps = 0;
    history->n_cells = 0;
}

void
answered_fini(struct answered *history)
{
    forget_steps(history);
    for (unsigned i = 0; i < ANSWERED_SERIALS; i++) {
        free(history->base[i]);
    }
    free(history->base_schema);
    free(history->step);
    free(history->cell);
    free(history->id);
}

static size_t
place_of(const struct answered *history, uint64_t id)
{
    size_t low = 0, high = history->n_ids;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (history->id[middle] < id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    ASSERT(low < history->n_ids && history->id[low] == id);
    return low;
}

static struct answered_step *
add_step(struct answered *history, uint64_t seq)
{
    history->step = grown(history->step, history->n_steps,
        &history->steps_capacity, sizeof(*history->step));
    struct answered_step *step = &history->step[history->n_steps++];
    *step = (struct answered_step){.seq = seq, .first_cell = history->n_cells};
    return step;
}

void
answered_change(struct answered *history, const struct change *change,
    size_t n, uint64_t seq)
{
    if (seq == 0) {
        return; /* nothing was done */
    }
    (void)add_step(history, seq);
    for (size_t i = 0; i < n; i++) {
        for (unsigned k = 0; change[i].err == 0 && k < change[i].n_columns;
             k++) {
            history->cell = grown(history->cell, history->n_cells,
                &history->cells_capacity, sizeof(*history->cell));
            history->cell[history->n_cells++] =
                (struct answered_cell){.serial = change[i].serial[k],
                    .i = place_of(history, change[i].id),
                    .value = change[i].value[k]};
        }
    }
}

/* A column that is new has been at its default ever since. */
static void
know_column(struct answered *history, const struct schema_column *column)
{
    ASSERT(column->serial < ANSWERED_SERIALS);
    uint64_t **base = &history->base[column->serial];
    if (*base == NULL) {
        *base = malloc(history->n_ids * sizeof(**base));
        ASSERT(*base != NULL);
        for (size_t i = 0; i < history->n_ids; i++) {
            (*base)[i] = column->default_value;
        }
    }
}

/* Marks the columns that there are. */
static void
list_columns(const struct schema *schema, bool live[ANSWERED_SERIALS],
    struct answered *history)
{
    memset(live, 0, ANSWERED_SERIALS);
    for (unsigned slot = 0; slot < SCHEMA_COUNTERS_MAX; slot++) {
        const struct schema_counter *counter = schema_counter_at(schema, slot);
        for (unsigned i = 0; counter != NULL && i < counter->n_columns; i++) {
            know_column(history, &counter->column[i]);
            live[counter->column[i].serial] = true;
        }
    }
}

void
answered_edit(
    struct answered *history, const struct schema *schema, uint64_t seq)
{
    bool live[ANSWERED_SERIALS];
    add_step(history, seq)->schema = answered_schema_text(schema);
    list_columns(schema, live, history);
}

uint64_t
answered_seq(const struct answered *history, size_t k)
{
    ASSERT(k < history->n_steps);
    return history->step[k].seq;
}

struct search {
    struct answered *history;
    const char *wanted; /* schema */
    bool live[ANSWERED_SERIALS];
    uint64_t *at[ANSWERED_SERIALS];    /* owned: state under way */
    uint64_t *found[ANSWERED_SERIALS]; /* owned */
    size_t n_wrong;                    /* cells in which they differ */
};

static void
begin_search(struct search *search, const struct answered_found *found)
{
    struct answered *history = search->history;
    size_t bytes = history->n_ids * sizeof(uint64_t);
    list_columns(found->schema, search->live, history);
    for (uint32_t serial = 0; serial < ANSWERED_SERIALS; serial++) {
        if (!search->live[serial]) {
            continue;
        }
        search->at[serial] = malloc(bytes);
        search->found[serial] = malloc(bytes);
        ASSERT(search->at[serial] != NULL && search->found[serial] != NULL);
        memcpy(search->at[serial], history->base[serial], bytes);
        for (size_t i = 0; i < history->n_ids; i++) {
            search->found[serial][i] =
                found->value_fn(found->context, serial, i);
            search->n_wrong +=
                search->found[serial][i] != search->at[serial][i];
        }
    }
}

static void
step_range(const struct answered *history, size_t k, size_t *from, size_t *to)
{
    *from = history->step[k].first_cell;
    *to = k + 1 < history->n_steps ? history->step[k + 1].first_cell
                                   : history->n_cells;
}

static void
do_step(struct search *search, size_t k)
{
    size_t at, end;
    step_range(search->history, k, &at, &end);
    for (; at < end; at++) {
        const struct answered_cell *cell = &search->history->cell[at];
        if (search->live[cell->serial]) {
            uint64_t *now = &search->at[cell->serial][cell->i];
            uint64_t wanted = search->found[cell->serial][cell->i];
            search->n_wrong -= *now != wanted;
            *now = cell->value;
            search->n_wrong += *now != wanted;
        }
    }
}

/* Whether all cells that differ now are as some change of step k made them. */
static bool
is_part(const struct search *search, size_t k)
{
    size_t from, to, n = 0;
    if (k == search->history->n_steps) {
        return false;
    }
    step_range(search->history, k, &from, &to);
    for (size_t at = from; at < to; at++) {
        const struct answered_cell *cell = &search->history->cell[at];
        bool is_new = search->live[cell->serial] &&
            search->found[cell->serial][cell->i] == cell->value &&
            search->at[cell->serial][cell->i] != cell->value;
        for (size_t b = from; is_new && b < at; b++) {
            const struct answered_cell *before = &search->history->cell[b];
            is_new = before->serial != cell->serial || before->i != cell->i ||
                before->value != cell->value;
        }
        n += is_new;
    }
    return n == search->n_wrong;
}

static const char *
run_search(struct search *search, size_t n_steps)
{
    struct answered *history = search->history;
    const char *schema = history->base_schema;
    bool had_schema = false;
    for (size_t k = 0;; k++) {
        bool is_right = strcmp(schema, search->wanted) == 0;
        if (k >= n_steps && is_right) {
            had_schema = true;
            if (search->n_wrong == 0 || is_part(search, k)) {
                return NULL;
            }
        }
        if (k == history->n_steps) {
            break;
        }
        do_step(search, k);
        if (history->step[k].schema != NULL) {
            schema = history->step[k].schema;
        }
    }
    return had_schema ? "numbers that there never were at once"
                      : "a schema that there never was";
}

const char *
answered_judge(struct answered *history, size_t n_steps,
    const struct answered_found *found, bool is_new)
{
    struct search *search = calloc(1, sizeof(*search));
    char *schema = answered_schema_text(found->schema);
    ASSERT(search != NULL);
    search->history = history;
    search->wanted = schema;
    begin_search(search, found);
    const char *wrong = run_search(search, n_steps);
    is_new = is_new && wrong == NULL;
    for (unsigned i = 0; i < ANSWERED_SERIALS; i++) {
        free(search->at[i]);
        if (is_new) {
            free(history->base[i]);
            history->base[i] = search->found[i];
        } else {
            free(search->found[i]);
        }
    }
    free(search);
    if (!is_new) {
        free(schema);
        return wrong;
    }
    forget_steps(history);
    free(history->base_schema);
    history->base_schema = schema;
    return NULL;
}
