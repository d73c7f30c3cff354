/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes, frees and verifies tables. */
#include "base/assert.h"
#include "engine/edits.h"
#include "engine/table.h"
#include "engine/table_each.h"
#include "engine/table_place.h"

#include <string.h>

enum { SMALLEST_PIECE_LINES = ARENA_PIECE_BYTES_MIN / LINE_BYTES };

_Static_assert((int)TABLE_LINES_MIN == (int)SMALLEST_PIECE_LINES,
    "the smallest table is the smallest piece");

/* The class of the smallest piece for n lines, 1..TABLE_PIECE_LINES. */
static unsigned
class_of(uint32_t n)
{
    unsigned class_ = 0;
    while ((uint32_t)SMALLEST_PIECE_LINES << class_ < n) {
        class_++;
    }
    return class_;
}

uint32_t
table_lines_round(uint32_t n)
{
    uint32_t rest = n % TABLE_PIECE_LINES;
    if (n > 0 && rest == 0) {
        return n;
    }
    return n - rest + ((uint32_t)SMALLEST_PIECE_LINES << class_of(rest));
}

uint32_t
table_lines_cut(uint32_t n)
{
    uint32_t rest = n % TABLE_PIECE_LINES;
    uint32_t last = SMALLEST_PIECE_LINES;
    if (rest < last) {
        return n - rest;
    }
    while (last * 2 <= rest) {
        last *= 2;
    }
    return n - rest + last;
}

unsigned
table_extra_bits(unsigned width, uint32_t n_lines, bool is_single)
{
    /* the exact share, its start rounded down (1), the error of step (at most
     * one part in 2^64 of the range for each line), and 1 for y itself */
    uint64_t largest = perm_mask(width) / n_lines;
    uint64_t slack = ((uint64_t)n_lines >> (64 - width)) + 2;
    largest = largest > UINT64_MAX - slack ? UINT64_MAX : largest + slack;
    unsigned bits = shapes_bits(largest);
    unsigned elsewhere = LINE_TAG_BITS + (is_single ? LINE_SHAPE_BITS : 0);
    return bits > elsewhere ? bits - elsewhere : 0;
}

int
shapes_set_create(struct pool *pool, const struct shapes *shapes,
    enum pool_purpose purpose, struct shapes_set **out)
{
    void *block;
    int err = pool_take_block(pool, sizeof **out, purpose, &block);
    if (err == 0) {
        *out = block;
        (*out)->refs = 1;
        (*out)->shapes = *shapes;
    }
    return err;
}

static void
free_set(struct pool *pool, struct pool_garbage *garbage)
{
    pool_give_block(pool, garbage, sizeof(struct shapes_set));
}

void
shapes_set_drop(struct pool *pool, struct shapes_set *set)
{
    if (set == NULL) {
        return;
    }
    ASSERT(set->refs > 0 && set->refs != UINT32_MAX);
    if (--set->refs == 0) {
        pool_retire(pool, &set->garbage, sizeof *set, free_set);
    }
}

static size_t
head_bytes(uint32_t n_pieces)
{
    return sizeof(struct table) + n_pieces * sizeof(struct line *);
}

static unsigned
piece_class(const struct table *table, uint32_t i)
{
    return i + 1 == table->n_pieces ? table->last_class : ARENA_CLASSES - 1;
}

static void
free_now(struct pool *pool, struct table *table)
{
    ASSERT(table->magic == TABLE_MAGIC);
    table->magic = 0;
    for (uint32_t i = 0; i < table->n_pieces; i++) {
        if (table->piece[i] != NULL) {
            pool_give_piece(pool, table->piece[i], piece_class(table, i));
        }
    }
    pool_give_block(pool, table, head_bytes(table->n_pieces));
}

static void
free_garbage(struct pool *pool, struct pool_garbage *garbage)
{
    free_now(pool, (struct table *)garbage);
}

static int
take_pieces(struct pool *pool, struct table *table, enum pool_purpose purpose)
{
    for (uint32_t i = 0; i < table->n_pieces; i++) {
        void *piece;
        unsigned class_ = piece_class(table, i);
        int err = pool_take_piece(pool, class_, purpose, &piece);
        if (err != 0) {
            return err;
        }
        memset(piece, 0, (size_t)ARENA_PIECE_BYTES_MIN << class_);
        table->piece[i] = piece;
    }
    return 0;
}

int
table_create(struct pool *pool, uint64_t base, unsigned width,
    uint32_t n_lines, struct shapes_set *set, enum pool_purpose purpose,
    struct table **out)
{
    uint32_t n_pieces = (n_lines + TABLE_PIECE_LINES - 1) / TABLE_PIECE_LINES;
    void *block;
    ASSERT(set->refs > 0);
    ASSERT(
        n_lines >= TABLE_LINES_MIN && n_lines == table_lines_round(n_lines));
    ASSERT(width >= 1 && width <= 64 && (base & perm_mask(width)) == 0);
    ASSERT(!set->shapes.is_single ||
        set->shapes.total[0] == set->shapes.total[SHAPES_N - 1]);
    int err = pool_take_block(pool, head_bytes(n_pieces), purpose, &block);
    if (err != 0) {
        return err;
    }
    struct table *table = block;
    table->magic = TABLE_MAGIC;
    table->base = base;
    table->mask = perm_mask(width);
    table->width = (uint8_t)width;
    table->shift = (uint8_t)(64 - width);
    table->fold = (uint8_t)perm_fold(width);
    table->n_lines = n_lines;
    table->step = (uint64_t)(((unsigned __int128)1 << 64) / n_lines);
    table->n_pieces = n_pieces;
    table->last_class = (uint8_t)class_of(
        n_lines - (n_pieces - 1) * (uint32_t)TABLE_PIECE_LINES);
    table->form.extra_bits =
        (uint8_t)table_extra_bits(width, n_lines, set->shapes.is_single);
    table->form.single = set->shapes.is_single ? UINT16_MAX : 0;
    table->form.shapes = &set->shapes;
    for (int i = 0; i < SHAPES_N; i++) {
        unsigned total = set->shapes.total[i] + table->form.extra_bits;
        ASSERT(total <= SHAPES_BITS_MAX);
        table->form.total[i] = (uint8_t)total;
        table->form.wide |= (uint16_t)((total > LINE_NEAR_BITS) << i);
    }
    err = take_pieces(pool, table, purpose);
    if (err != 0) {
        free_now(pool, table);
        return err;
    }
    table->set = set;
    set->refs++;
    *out = table;
    return 0;
}

void
table_destroy(struct pool *pool, struct table **table)
{
    struct table *it = *table;
    if (it == NULL) {
        return;
    }
    /* relaxed: nobody else sees it */
    struct stash *stash =
        atomic_load_explicit(&it->stash, memory_order_relaxed);
    stash_destroy(pool, &stash);
    shapes_set_drop(pool, it->set);
    free_now(pool, it);
    *table = NULL;
}

void
table_retire(struct pool *pool, struct table *table)
{
    if (table == NULL) {
        return;
    }
    ASSERT(table->magic == TABLE_MAGIC);
    stash_retire(pool, table_stash(table));
    shapes_set_drop(pool, table->set);
    pool_retire(pool, &table->garbage,
        table_line_bytes(table) + head_bytes(table->n_pieces), free_garbage);
}

size_t
table_line_bytes(const struct table *table)
{
    return (size_t)table->n_lines * LINE_BYTES;
}

size_t
table_other_bytes(const struct table *table)
{
    return head_bytes(table->n_pieces);
}

struct verify {
    const struct table_owner *owner;
    const struct table *table;
    uint32_t n_records, n_far, n_empty;
    uint32_t n_stash[TABLE_KINDS];
    uint64_t used_bits;
};

static void
verify_record(void *context, uint64_t row, const uint64_t *code)
{
    struct verify *verify = context;
    const struct table *table = verify->table;
    struct table_spot spot;
    struct shapes_need need = shapes_need_all(code);
    ASSERT(table_covers(table, row));
    table_find(verify->owner, table, row, &spot);
    ASSERT(spot.where != TABLE_NOWHERE);
    ASSERT(memcmp(spot.record.code, code, sizeof spot.record.code) == 0);
    verify->n_records++;
    verify->n_empty += table_is_nothing(code);
    ASSERT(shapes_covers(&table->widest, &need));
    if (spot.where == TABLE_LINE) {
        int fit = shapes_fit(table->form.shapes, &need);
        ASSERT(fit >= 0);
        ASSERT(spot.record.shape ==
            line_shape(&table->form, spot.place.remainder, (unsigned)fit));
        verify->n_far += spot.record.is_far;
        verify->used_bits +=
            LINE_RECORD_BITS + (uint64_t)table->form.total[spot.record.shape];
        return;
    }
    bool is_narrow = shapes_fit(table->form.shapes, &need) >= 0;
    bool is_wide =
        shapes_need_sum(&need) + table->form.extra_bits > SHAPES_BITS_MAX;
    verify->n_stash[is_narrow ? TABLE_NARROW
            : is_wide         ? TABLE_WIDE
                              : TABLE_MISFIT]++;
}

void
table_verify_sums(const struct table *table)
{
    const struct stash *stash = table_stash(table);
    uint32_t n_stashed = table_n_stashed(table);
    ASSERT(table->magic == TABLE_MAGIC);
    ASSERT(n_stashed == stash_count(stash));
    ASSERT(n_stashed <= table->n_records);
    uint64_t n_in_lines = table->n_records - n_stashed;
    uint64_t bits_min = (uint64_t)LINE_RECORD_BITS + table->form.extra_bits;
    ASSERT(n_in_lines <= (uint64_t)table->n_lines * LINE_RECORDS_MAX);
    ASSERT(table->n_far <= n_in_lines);
    ASSERT(table->n_empty <= table->n_records);
    ASSERT(table->used_bits >= n_in_lines * bits_min);
    ASSERT(table->used_bits <= (uint64_t)table->n_lines * LINE_USABLE_BITS);
}

void
table_verify(const struct table_owner *owner, const struct table *table)
{
    struct verify verify = {.owner = owner, .table = table};
    struct line_copy copy;
    uint64_t used_bits = 0;
    uint32_t n_lines = 0;
    table_verify_sums(table);
    for (uint32_t i = 0; i < table->n_lines; i++) {
        line_load(table_line(table, i), &copy);
        line_verify(&copy, &table->form);
        used_bits += line_used_bits(&copy, &table->form);
        n_lines += line_count(&copy);
    }
    const struct stash *stash = table_stash(table);
    if (stash != NULL) {
        stash_verify(stash);
    }
    table_each(owner, table, verify_record, &verify);
    ASSERT(verify.n_records == n_lines + stash_count(stash));
    ASSERT(verify.n_records == table->n_records);
    ASSERT(verify.used_bits == table->used_bits);
    ASSERT(used_bits == table->used_bits);
    ASSERT(verify.n_far == table->n_far);
    ASSERT(verify.n_empty == table->n_empty);
    for (int i = 0; i < TABLE_KINDS; i++) {
        ASSERT(verify.n_stash[i] == table->n_stash[i]);
    }
    ASSERT(table->set->refs > 0);
}
