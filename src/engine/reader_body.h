/* SPDX-License-Identifier: BSD-3-Clause */

/* The batch read, for the one instruction set that the including file has
 * chosen (LINE_READ_... and READER_NAME); included once by each.
 *
 * Three rounds over the batch, each of which waits for no memory but what the
 * round before has asked for: (1) which table (directory) and ask for its
 * head; (2) which line, and ask for it; (3) look into it. Cells of one record
 * that stand side by side are one look.
 * How a record is looked for: reader_look.h. */
#include "base/assert.h"
#include "engine/engine_priv.h"
#include "engine/hook.h"
#include "engine/line_read.h"
#include "engine/reader_look.h"
#include "engine/reader_priv.h"
#include "engine/table_place.h"

#include <string.h>

#if LINE_READ_HAVE

LINE_TARGET_BEGIN

static inline void
pause_a_little(void)
{
#if defined __x86_64__
    __builtin_ia32_pause();
#endif
}

static __attribute__((noinline)) void
look_locked(struct engine *engine, const struct look *look,
    const struct cell_key *key, uint64_t *value)
{
    uint64_t code[SHAPES_COLUMNS_MAX];
    reader__locked(
        engine, key[look->first].counter, look->shard, look->row, code);
    spread_codes(look, key, code, value);
}

/* Fills the codes of the look's cells into value. */
static inline void
look_up(struct engine *engine, const struct look *look,
    const struct cell_key *key, uint64_t *value)
{
    const struct stripes *stripes = &engine->shard[look->shard].stripes;
    if (look->table == NULL) {
        spread_codes(look, key, NULL, value);
        return;
    }
    for (int i = 0; i < READ_TRIES; i++) {
        switch (look_once(stripes, look, key, value)) {
        case FOUND:
            return;
        case ABSENT:
            spread_codes(look, key, NULL, value);
            return;
        case DISTURBED:
            pause_a_little();
        }
    }
    look_locked(engine, look, key, value);
}

/* Turns the codes in value into values and states. */
static inline void
decode(const struct look *look, const struct cell_key *key, uint64_t *value,
    uint8_t *state)
{
    for (uint32_t i = look->first; i < look->first + look->n; i++) {
        const struct column *column =
            look->view == NULL ? NULL : &look->view->column[key[i].column];
        if (column == NULL || key[i].serial == 0 ||
            column->serial != key[i].serial) {
            value[i] = 0;
            state[i] = CELL_GONE;
            continue;
        }
        state[i] = value[i] == 0 ? CELL_DEFAULT : CELL_SET;
        value[i] = column_decode(column, value[i]);
    }
}

/* Round 1. Returns how many looks there are; *n_keys of the n keys are in
 * them. */
static inline uint32_t
resolve(const struct engine *engine, const struct cell_key *key, size_t n,
    struct look *look, size_t *n_keys)
{
    uint32_t n_looks = 0;
    size_t i = 0;
    while (i < n && n_looks < READ_BATCH) {
        struct look *it = &look[n_looks++];
        const struct counter *counter =
            engine__counter(engine, key[i].counter);
        struct engine_row at = engine__row(engine, key[i].id);
        it->row = at.row;
        it->shard = at.shard;
        it->first = (uint32_t)i;
        it->view = NULL;
        it->table = NULL;
        if (counter != NULL) {
            it->view = counter__view(counter);
            /* acquire: whole tables are seen behind it */
            const struct directory *directory = atomic_load_explicit(
                &counter->ranges[at.shard].directory, memory_order_acquire);
            if (directory != NULL && it->view != NULL) {
                it->table = directory_find(directory, at.row);
            }
        }
        if (it->table != NULL) {
            __builtin_prefetch(&it->table->stash);
            __builtin_prefetch(&it->table->form.total);
        }
        do {
            i++;
        } while (i < n && key[i].id == key[i - 1].id &&
            key[i].counter == key[i - 1].counter);
        it->n = (uint32_t)i - it->first;
    }
    *n_keys = i;
    return n_looks;
}

/* Round 2. */
static inline void
locate(const struct engine *engine, struct look *look, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const struct table *table = look[i].table;
        if (table != NULL && !table_covers(table, look[i].row)) {
            table = NULL;
            look[i].table = NULL;
        }
        if (table != NULL) {
            look[i].place = table_place(table, &engine->perm, look[i].row);
            __builtin_prefetch(table_line(table, look[i].place.line_1));
        }
    }
}

static void
get(struct engine *engine, const struct cell_key *key, size_t n,
    uint64_t *value, uint8_t *state)
{
    struct look look[READ_BATCH];
    while (n > 0) {
        size_t n_keys;
        uint32_t n_looks = resolve(engine, key, n, look, &n_keys);
        locate(engine, look, n_looks);
        ENGINE_HOOK("located");
        for (uint32_t i = 0; i < n_looks; i++) {
            look_up(engine, &look[i], key, value);
            decode(&look[i], key, value, state);
        }
        key += n_keys;
        value += n_keys;
        state += n_keys;
        n -= n_keys;
    }
}

LINE_TARGET_END

reader_get_fn *
READER_NAME(void)
{
    return LINE_TARGET_RUNS ? get : NULL;
}

#else

reader_get_fn *
READER_NAME(void)
{
    return NULL;
}

#endif
