/* SPDX-License-Identifier: BSD-3-Clause */

/* A look for one record, for the instruction set that the including file has
 * chosen; included by reader_body.h only.
 *
 * A look is right if the sequence counters of all it has read, even before the
 * first word, are unchanged after the last (line_read.h). A record may move
 * between its first line, its second and the stash; its overflow bits are set
 * before it leaves the first, so a first line that is seen whole and has
 * neither the record nor its bit is a miss. Otherwise first line, second line
 * and stash are all read between the two looks at their counters. A table that
 * has been exchanged meanwhile is frozen and remains what it was. */
#include "engine/engine_priv.h"
#include "engine/hook.h"
#include "engine/line_read.h"
#include "engine/table_place.h"

#if LINE_READ_HAVE

LINE_TARGET_BEGIN

enum {
    READ_BATCH = 128, /* records under way together */
    READ_TRIES = 64   /* before the lock is taken */
};

struct look {
    const struct view *view;   /* NULL: no such counter */
    const struct table *table; /* NULL: no record */
    struct table_place place;
    uint64_t row;
    uint32_t shard;
    uint32_t first, n; /* keys */
};

/* How a look went. */
enum found { FOUND, ABSENT, DISTURBED };

static inline uint32_t
counter_now(const _Atomic uint32_t *stripe)
{
    /* acquire: what it guards is read after it */
    return atomic_load_explicit(stripe, memory_order_acquire);
}

static inline bool
is_unchanged(const _Atomic uint32_t *stripe, uint32_t before)
{
    /* relaxed: behind line_read_fence, or behind acquire loads */
    return atomic_load_explicit(stripe, memory_order_relaxed) == before;
}

/* Reads the codes of the look's cells into value. */
static inline void
take_codes(const struct look *look, const struct line *line,
    const struct line_hit *hit, const struct cell_key *key, uint64_t *value)
{
    for (uint32_t i = look->first; i < look->first + look->n; i++) {
        value[i] =
            line_read_value(line, &look->table->form, hit, key[i].column);
    }
}

static inline void
spread_codes(const struct look *look, const struct cell_key *key,
    const uint64_t *code, uint64_t *value)
{
    for (uint32_t i = look->first; i < look->first + look->n; i++) {
        value[i] = code == NULL ? 0 : code[key[i].column];
    }
}

/* All three places; the rare way, out of line. */
static __attribute__((noinline)) enum found
look_further(const struct stripes *stripes, const struct look *look,
    const struct cell_key *key, uint64_t *value)
{
    const struct table *table = look->table;
    const struct table_place *place = &look->place;
    const _Atomic uint32_t *stripe_1 =
        &stripes->line[place->line_1 % TABLE_STRIPES];
    const _Atomic uint32_t *stripe_2 =
        &stripes->line[place->line_2 % TABLE_STRIPES];
    uint32_t seq_1 = counter_now(stripe_1);
    uint32_t seq_2 = counter_now(stripe_2);
    uint32_t seq_stash = counter_now(&stripes->stash);
    uint64_t code[SHAPES_COLUMNS_MAX];
    struct line_hit hit;
    enum found found = ABSENT;
    if (((seq_1 | seq_2 | seq_stash) & 1) != 0) {
        return DISTURBED;
    }
    const struct line *line = table_line(table, place->line_1);
    if (line_read_find(line, &table->form, place->remainder, false, &hit)) {
        take_codes(look, line, &hit, key, value);
        found = FOUND;
    } else if ((hit.mask >> place->bit & 1) != 0) {
        ENGINE_HOOK("second line");
        line = table_line(table, place->line_2);
        if (line_read_find(line, &table->form, place->remainder, true, &hit)) {
            take_codes(look, line, &hit, key, value);
            found = FOUND;
        } else if ((hit.mask >> place->bit & 1) != 0) {
            ENGINE_HOOK("stash");
            /* acquire: a whole stash is seen */
            const struct stash *stash =
                atomic_load_explicit(&table->stash, memory_order_acquire);
            if (stash != NULL &&
                stash_find(stash, look->row & table->mask, code)) {
                spread_codes(look, key, code, value);
                found = FOUND;
            }
        }
    }
    line_read_fence();
    ENGINE_HOOK("validate");
    return is_unchanged(stripe_1, seq_1) && is_unchanged(stripe_2, seq_2) &&
            is_unchanged(&stripes->stash, seq_stash)
        ? found
        : DISTURBED;
}

/* One try. Most records are in their first line, and most misses show there.
 */
static inline enum found
look_once(const struct stripes *stripes, const struct look *look,
    const struct cell_key *key, uint64_t *value)
{
    const struct table *table = look->table;
    const struct line *line = table_line(table, look->place.line_1);
    const _Atomic uint32_t *stripe =
        &stripes->line[look->place.line_1 % TABLE_STRIPES];
    uint32_t seq = counter_now(stripe);
    struct line_hit hit;
    enum found found = ABSENT;
    if ((seq & 1) != 0) {
        return DISTURBED;
    }
    if (line_read_find(
            line, &table->form, look->place.remainder, false, &hit)) {
        take_codes(look, line, &hit, key, value);
        found = FOUND;
    } else if ((hit.mask >> look->place.bit & 1) != 0) {
        return look_further(stripes, look, key, value);
    }
    line_read_fence();
    ENGINE_HOOK("validate");
    return is_unchanged(stripe, seq) ? found : DISTURBED;
}

LINE_TARGET_END

#endif
