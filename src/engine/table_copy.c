/* SPDX-License-Identifier: BSD-3-Clause */
/* A copy is made under the shard's lock, while clients wait, so it is made of
 * memory: lines, stash and shapes go into one block,
 *
 *   | head | pieces | shapes | stash | lines | places | places |
 *
 * with a head whose pointers stay inside it. That is a table like any other,
 * which nobody changes.
 *
 * In their lines records lie in the order of permuted rows. To read them out
 * their places are listed (carry_places) and sorted by row, digit by digit
 * from the low end (Knuth, TAOCP 3, 5.2.5: radix sorting); only then the codes
 * are read, each once, into arrays that are written from front to back. */
#include "engine/table_copy.h"

#include "base/assert.h"
#include "base/give_way.h"
#include "engine/carry.h"
#include "engine/line_bits.h"
#include "engine/table_place.h"

#include <string.h>

enum {
    RADIX_BITS = 11,
    RADIX = 1 << RADIX_BITS,
    ALIGN = LINE_BYTES,
    ROWS_AT_ONCE = 4096 /* read before others get the core */
};

/* Where the parts of a block begin, in bytes from its first aligned one. */
struct layout {
    size_t shapes, stash, lines, places, end;
};

static size_t
round_up(size_t bytes)
{
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

static struct layout
lay_out(const struct table *table)
{
    struct layout layout;
    layout.shapes = round_up(table_other_bytes(table));
    layout.stash = layout.shapes + round_up(sizeof(struct shapes));
    layout.lines = layout.stash + round_up(stash_bytes(table_stash(table)));
    layout.places = layout.lines + table_line_bytes(table);
    layout.end = layout.places +
        2 * (size_t)table->n_records * sizeof(struct carry_place);
    return layout;
}

size_t
table_copy_bytes(const struct table *table)
{
    return ALIGN + lay_out(table).end;
}

static size_t
piece_bytes(const struct table *table, uint32_t i)
{
    size_t rest = (table->n_lines - (size_t)i * TABLE_PIECE_LINES);
    return (rest < TABLE_PIECE_LINES ? rest : TABLE_PIECE_LINES) * LINE_BYTES;
}

const struct table *
table_copy(const struct table *table, void *block)
{
    struct layout layout = lay_out(table);
    const struct stash *stash = table_stash(table);
    uintptr_t at = (uintptr_t)block + ALIGN - 1;
    char *base = (char *)(at - at % ALIGN);
    struct table *copy = (struct table *)base;
    table_verify_sums(table);
    memcpy(copy, table, table_other_bytes(table));
    memcpy(base + layout.shapes, table->form.shapes, sizeof(struct shapes));
    copy->set = NULL;
    copy->form.shapes = (const struct shapes *)(base + layout.shapes);
    if (stash != NULL) {
        memcpy(base + layout.stash, stash, stash_bytes(stash));
        atomic_init(&copy->stash, (struct stash *)(base + layout.stash));
    }
    for (uint32_t i = 0; i < table->n_pieces; i++) {
        char *piece =
            base + layout.lines + (size_t)i * TABLE_PIECE_LINES * LINE_BYTES;
        memcpy(piece, table->piece[i], piece_bytes(table, i));
        copy->piece[i] = (struct line *)piece;
        ASSERT(piece + piece_bytes(table, i) <= base + layout.places);
    }
    ASSERT(base + layout.end <= (char *)block + table_copy_bytes(table));
    table_verify_sums(copy);
    return copy;
}

/* Sorts n places by row, with room for as many in spare; returns where they
 * are then. */
static struct carry_place *
sort(struct carry_place *place, struct carry_place *spare, uint32_t n)
{
    uint32_t count[RADIX];
    uint64_t differ = 0;
    for (uint32_t i = 1; i < n; i++) {
        differ |= place[i].row ^ place[0].row;
    }
    for (unsigned shift = 0; shift < 64 && differ >> shift != 0;
         shift += RADIX_BITS) {
        uint32_t sum = 0;
        if ((differ >> shift & (RADIX - 1)) == 0) {
            continue;
        }
        memset(count, 0, sizeof count);
        for (uint32_t i = 0; i < n; i++) {
            count[place[i].row >> shift & (RADIX - 1)]++;
        }
        for (unsigned i = 0; i < RADIX; i++) {
            uint32_t here = count[i];
            count[i] = sum;
            sum += here;
        }
        for (uint32_t i = 0; i < n; i++) {
            spare[count[place[i].row >> shift & (RADIX - 1)]++] = place[i];
        }
        struct carry_place *swap = place;
        place = spare;
        spare = swap;
        give_way();
    }
    return place;
}

struct reading {
    const struct table *copy;
    unsigned n_columns;
    const uint8_t *column;
    struct shapes_field field[SHAPES_N][SHAPES_COLUMNS_MAX]; /* by column[] */
};

static void
reading_init(struct reading *reading, const struct table *copy,
    unsigned n_columns, const uint8_t *column)
{
    const struct shapes *shapes = copy->form.shapes;
    reading->copy = copy;
    reading->n_columns = n_columns;
    reading->column = column;
    for (unsigned shape = 0; shape < SHAPES_N; shape++) {
        for (unsigned i = 0; i < n_columns; i++) {
            bool has = (shapes->columns >> column[i] & 1) != 0;
            reading->field[shape][i] = has ? shapes->field[column[i]][shape]
                                           : (struct shapes_field){0};
        }
    }
}

/* Bits of a line, which nobody changes any more. */
static inline uint64_t
bits_get(const struct line *line, unsigned at, unsigned width)
{
    unsigned first = at / 64 % LINE_WORDS;
    /* relaxed: a copy */
    uint64_t low =
        atomic_load_explicit(&line->word[first], memory_order_relaxed);
    uint64_t high = atomic_load_explicit(
        &line->word[(first + 1) % LINE_WORDS], memory_order_relaxed);
    return line_bits_join(low, high, at % 64) & line_bits_mask(width);
}

/* The codes of a record, to position i of the arrays; their or. */
static inline uint64_t
read_place(const struct reading *reading, const struct carry_place *place,
    uint32_t i, uint64_t *const *out)
{
    uint64_t any = 0;
    if (place->shape == SHAPES_N) {
        uint64_t code[SHAPES_COLUMNS_MAX];
        ASSERT(stash_find(table_stash(reading->copy),
            place->row & reading->copy->mask, code));
        for (unsigned c = 0; c < reading->n_columns; c++) {
            out[c][i] = code[reading->column[c]];
            any |= out[c][i];
        }
        return any;
    }
    const struct line *line = table_line(reading->copy, place->line);
    const struct shapes_field *field = reading->field[place->shape];
    for (unsigned c = 0; c < reading->n_columns; c++) {
        uint64_t code =
            bits_get(line, place->at + field[c].start, field[c].width);
        out[c][i] = code;
        any |= code;
    }
    return any;
}

uint32_t
table_copy_read(const struct table *copy, const struct perm *perm,
    bool with_empty, unsigned n_columns, const uint8_t *column, uint64_t *row,
    uint64_t *const *code)
{
    const struct table_owner owner = {.perm = perm};
    struct reading reading;
    uint32_t n_all = copy->n_records;
    uint32_t n = 0;
    /* the copy is the block's own memory: its places may be written */
    struct carry_place *place =
        (void *)((uintptr_t)copy + lay_out(copy).places);
    carry_places(&owner, copy, place);
    place = sort(place, place + n_all, n_all);
    reading_init(&reading, copy, n_columns, column);
    ASSERT(n_all == 0 ||
        (table_covers(copy, place[0].row) &&
            table_covers(copy, place[n_all - 1].row)));
    for (uint32_t i = 0; i < n_all; i++) {
        ASSERT(i == 0 || place[i - 1].row < place[i].row);
        row[n] = place[i].row;
        n += read_place(&reading, &place[i], n, code) != 0 || with_empty;
        if (i % ROWS_AT_ONCE == 0) {
            give_way();
        }
    }
    /* a tombstone is nothing in these columns too */
    ASSERT(with_empty ? n == n_all : n <= n_all - copy->n_empty);
    return n;
}
