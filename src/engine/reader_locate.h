/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_READER_LOCATE_H
#define ENGINE_READER_LOCATE_H

/* A group of records on its way to their lines; for reader_body.h only. */
#include "engine/reader_keys.h"
#include "engine/table_place.h"

#if LINE_READ_HAVE

LINE_TARGET_BEGIN

/* What stands for the table of rows that have none: it has all rows, and one
 * line without records. */
static const struct shapes no_shapes = {.columns = 0};
static const struct line no_line;
static const struct table no_table = {.n_lines = 1,
    .width = 64,
    .fold = 32,
    .form = {.shapes = &no_shapes, .extra_bits = 48},
    .piece = {(struct line *)&no_line}};

/* A table that may have the row. */
static inline const struct table *
table_of(const struct counter *counter, uint32_t shard, uint64_t row)
{
    if (counter == NULL) {
        return &no_table;
    }
    const struct table *table = counter__table(counter, shard, row);
    if (table == NULL) {
        return &no_table;
    }
    table_prefetch(table);
    return table;
}

/* Round 1: the next records, and their tables. */
static inline void
resolve(struct part *part, struct group *group)
{
    group->n = 0;
    group->is_single = true;
    group->is_plain = true;
    if (part->at == part->n) {
        return;
    }
    take_some_keys(part, group);
    find_shards(part->engine, group);
    uint32_t n = group->n;
    if (group->is_row) {
        const struct counter *counter = group->counter[0];
        for (uint32_t i = 0; i < n; i++) {
            group->table[i] =
                table_of(counter, (uint32_t)group->shard[i], group->row[i]);
        }
    } else {
        for (uint32_t i = 0; i < n; i++) {
            group->table[i] = table_of(
                group->counter[i], (uint32_t)group->shard[i], group->row[i]);
        }
    }
    for (uint32_t i = n; i % LANES != 0; i++) {
        group->table[i] = &no_table;
    }
}

/* What place() needs of tables. */
#define TABLE_FIELD(name, field)                                              \
    static inline uint64_t name(const struct table *const *table, unsigned i) \
    {                                                                         \
        return table[i]->field;                                               \
    }
TABLE_FIELD(base_of, base)
TABLE_FIELD(step_of, step)
#undef TABLE_FIELD

/* n_lines in the low 32 bits, shift in the sixth 8, fold in the seventh. */
static inline uint64_t
sizes_of(const struct table *const *table, unsigned i)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    uint64_t sizes;
    const char *head = (const char *)table[i];
    memcpy(&sizes, head + offsetof(struct table, n_lines), sizeof sizes);
    return sizes;
#else
    return table[i]->n_lines | (uint64_t)table[i]->shift << 40 |
        (uint64_t)table[i]->fold << 48;
#endif
}

/* table_first for some places side by side; true where all tables have these
 * rows. */
LANES_INLINE bool
place(const struct perm *perm, struct group *group, uint32_t i)
{
    struct line_looks *looks = &group->looks;
    const struct table *const *table = &group->table[i];
    lanes row = lanes_load(&group->row[i]);
    lanes sizes = LANES_EACH(sizes_of, table);
    lanes n_lines = sizes & UINT32_MAX;
    lanes shift = sizes >> 40 & UINT8_MAX;
    lanes fold = sizes >> 48 & UINT8_MAX;
    lanes mask = lanes_all(UINT64_MAX) >> shift;
    lanes stray = (row ^ LANES_EACH(base_of, table)) & ~mask;
    /* perm__apply */
    lanes y = (row ^ perm->key) & mask;
    y ^= y >> fold;
    y = (y * perm->odd_1) & mask;
    y ^= y >> fold;
    y = (y * perm->odd_2) & mask;
    /* table__line */
    lanes share = y << shift;
    lanes low = lanes_mul_low(share, n_lines) >> 32;
    lanes line = (lanes_mul_low(share >> 32, n_lines) + low) >> 32;
    /* table__start */
    lanes step = LANES_EACH(step_of, table);
    lanes start =
        lanes_mul_low(line, step) + (lanes_mul_low(line, step >> 32) << 32);
    lanes remainder = y - (start >> shift);
    lanes_store(&looks->remainder[i], remainder);
    lanes_store(
        &looks->bit[i], remainder * TABLE__HASH_ODD >> TABLE__BIT_SHIFT);
    lanes_store(&group->number[i], line);
    lanes_store(&group->piece[i], line / TABLE_PIECE_LINES);
    lanes_store(&group->in_piece[i], line % TABLE_PIECE_LINES * LINE_BYTES);
    return !lanes_any(stray);
}

_Static_assert(
    offsetof(struct table, shift) == offsetof(struct table, n_lines) + 5 &&
        offsetof(struct table, fold) == offsetof(struct table, n_lines) + 6,
    "see sizes_of");

/* Where the form of each record's table is, and the counter of its line. */
static inline void
point(const struct engine *engine, struct group *group, uint32_t i)
{
    struct line_looks *looks = &group->looks;
    const uintptr_t stripes = (uintptr_t)&engine->shard->stripes.line;
    lanes table, form, stripe;
    _Static_assert(sizeof table == LANES * sizeof group->table[0],
        "a pointer is a number of 64 bits");
    memcpy(&table, &group->table[i], sizeof table);
    form = table + offsetof(struct table, form);
    stripe = stripes + lanes_load(&group->shard[i]) * sizeof(struct shard) +
        lanes_load(&group->number[i]) % TABLE_STRIPES * sizeof(uint32_t);
    memcpy(&looks->form[i], &form, sizeof form);
    memcpy(&looks->stripe[i], &stripe, sizeof stripe);
}

/* The same once more, where some table has not its row. */
static __attribute__((noinline)) void
place_strays(const struct perm *perm, struct group *group, uint32_t i)
{
    for (uint32_t j = i; j < i + LANES; j++) {
        if (!table_covers(group->table[j], group->row[j])) {
            group->table[j] = &no_table;
        }
    }
    place(perm, group, i);
}

/* Round 2: their lines. */
static inline void
locate(const struct engine *engine, struct group *group)
{
    const struct perm perm = engine->perm;
    struct line_looks *looks = &group->looks;
    uint32_t n = group->n;
    for (uint32_t i = 0; i < n; i += LANES) {
        if (!place(&perm, group, i)) {
            place_strays(&perm, group, i);
        }
    }
    LINE_TARGET_UNROLL
    for (uint32_t i = 0; i < n; i++) {
        const struct table *table = group->table[i];
        const char *piece = (const char *)table->piece[group->piece[i]];
        const char *line = piece + group->in_piece[i];
        __builtin_prefetch(line, 0, 2); /* the second level will do */
        looks->line[i] = (const struct line *)(const void *)line;
    }
    for (uint32_t i = 0; i < n; i += LANES) {
        point(engine, group, i);
    }
}

LINE_TARGET_END

#endif
#endif
