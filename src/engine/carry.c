/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies records from the lines of tables into those of a new table: most of
 * the work of building one.
 *
 * A line is walked from its first record to its last, so each payload's place
 * is one addition from the place before. A record is appended behind the others
 * of its new line, so only the nibbles of the shapes move. Values are copied as
 * bits where both tables have the same set of shapes.
 *
 * line.h draws a line. While records are carried, a line of the new table keeps
 * the number of its payload bits where its overflow mask will be (carry_end
 * clears it). It has home records only, and all bits between its shapes and its
 * payloads are 0, so new bits are flipped in.
 *
 * Invariants: any[shape] is the or of all values under that shape; the widest
 * code of a column has as many bits as the or of all its codes. What was read
 * of a table's lines adds up to the sums in its head (check_sums). */
#include "engine/carry.h"

#include "base/assert.h"
#include "base/give_way.h"
#include "engine/edits.h"
#include "engine/line_bits.h"
#include "engine/table_place.h"

#include <string.h>

enum {
    VALUE_WORDS = SHAPES_BITS_MAX / 64 + 1,
    PAYLOAD_BITS = 0xffff, /* in word[0] of a line that is being filled */
    NIBBLES_SHORT = 11,    /* with a tag's width behind them, in a word */
    PLACES_AT_ONCE = 2048  /* listed before others get the core */
};

/* A record on its way. */
struct carried {
    uint32_t shape;
    uint32_t index;
    uint64_t remainder;
    uint64_t value[VALUE_WORDS + 1]; /* from bit 0 on; above them zeros */
};

static uint64_t
word_get(const struct line *line, unsigned i)
{
    /* relaxed, here and below: nobody else sees the table */
    return atomic_load_explicit(&line->word[i], memory_order_relaxed);
}

static void
word_set(struct line *line, unsigned i, uint64_t word)
{
    atomic_store_explicit(&line->word[i], word, memory_order_relaxed);
}

/* Flips the bits of value from bit at on. */
static inline void
flip(struct line *line, unsigned at, uint64_t value)
{
    unsigned first = at / 64 % LINE_WORDS;
    unsigned next = (first + 1) % LINE_WORDS;
    word_set(line, first, word_get(line, first) ^ value << at % 64);
    word_set(line, next, word_get(line, next) ^ value >> 1 >> (63 - at % 64));
}

/* 64 bits from bit at on. */
static inline uint64_t
bits_at(const struct line_copy *copy, unsigned at)
{
    return line_bits_join(copy->word[at / 64 % LINE_WORDS],
        copy->word[(at / 64 + 1) % LINE_WORDS], at % 64);
}

/* Makes room for a tag between n tags and their shapes, and puts in the tag
 * and one more shape. */
static inline void
append_tag(struct line *line, unsigned n, uint64_t tag, uint64_t shape)
{
    unsigned at = LINE_MASK_BITS + LINE_TAG_BITS * n;
    uint64_t low = word_get(line, at / 64);
    uint64_t high = word_get(line, at / 64 + 1);
    uint64_t nibbles = line_bits_join(low, high, at % 64);
    if (n <= NIBBLES_SHORT) {
        nibbles &= (UINT64_C(1) << 4 * n) - 1;
        nibbles ^= nibbles << LINE_TAG_BITS ^ tag ^
            shape << (LINE_TAG_BITS + 4 * n) % 64;
        flip(line, at, nibbles);
        return;
    }
    uint64_t above = word_get(line, (at / 64 + 2) % LINE_WORDS);
    unsigned __int128 all =
        (unsigned __int128)line_bits_join(high, above, at % 64) << 64 |
        nibbles;
    all &= ((unsigned __int128)1 << 4 * n) - 1;
    all ^= all << LINE_TAG_BITS ^ tag ^
        (unsigned __int128)shape << (LINE_TAG_BITS + 4 * n);
    flip(line, at, (uint64_t)all);
    flip(line, at + 64, (uint64_t)(all >> 64));
}

/* False where it has no room. */
static inline bool
append(struct line *line, const struct line_form *form,
    const struct carried *carried)
{
    unsigned n = (unsigned)(word_get(line, 7) >> LINE_COUNTS_SHIFT) & 31;
    unsigned used = (unsigned)(word_get(line, 0) & PAYLOAD_BITS);
    unsigned total = form->total[carried->shape];
    if (n == LINE_RECORDS_MAX ||
        LINE_RECORD_BITS * (n + 1) + used + total > LINE_USABLE_BITS) {
        return false;
    }
    append_tag(line, n, carried->remainder & 0xffff, carried->shape);
    unsigned at = LINE_PAYLOADS_END - used - total;
    uint64_t extra = line_extra(form, carried->remainder);
    if (total <= 64) {
        flip(line, at, extra | carried->value[0] << form->extra_bits);
    } else {
        flip(line, at, extra);
        at += form->extra_bits;
        for (unsigned i = 0; i * 64 + form->extra_bits < total; i++) {
            flip(line, at + 64 * i, carried->value[i]);
        }
    }
    word_set(line, 0, word_get(line, 0) + total);
    word_set(line, 7, word_get(line, 7) + (UINT64_C(1) << LINE_COUNTS_SHIFT));
    return true;
}

/* Column codes out of the bits of values. */
static inline uint64_t
value_get(const uint64_t *value, struct shapes_field field)
{
    return line_bits_join(value[field.start / 64], value[field.start / 64 + 1],
               field.start % 64) &
        line_bits_mask(field.width);
}

/* Gives a record these codes, those of columns, and a shape for them; false
 * where none is wide enough. */
static inline bool
encode(struct carried *carried, const struct shapes *to, const uint64_t *code,
    uint32_t columns)
{
    struct shapes_need need = shapes_need_of(code, columns);
    int shape = shapes_fit(to, &need);
    if (shape < 0) {
        return false;
    }
    carried->shape = (uint32_t)shape;
    memset(carried->value, 0, sizeof carried->value);
    for (unsigned left = columns & to->columns; left != 0; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        unsigned start = to->field[i][shape].start;
        uint64_t *value = &carried->value[start / 64];
        value[0] |= code[i] << start % 64;
        value[1] |= code[i] >> 1 >> (63 - start % 64);
    }
    return true;
}

/* The same from another set. */
static bool
recode(struct carried *carried, const struct shapes *from,
    const struct shapes *to)
{
    uint64_t code[SHAPES_COLUMNS_MAX] = {0};
    for (unsigned left = from->columns; left != 0; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        code[i] = value_get(carried->value, from->field[i][carried->shape]);
    }
    return encode(carried, to, code, from->columns);
}

/* The permuted number of a record in its table. */
static inline uint64_t
number_of(
    const struct table *table, uint32_t line, uint64_t remainder, bool is_far)
{
    uint32_t home =
        is_far ? edits_partner(table, line, remainder, true) : line;
    return table__start(table, home) + remainder;
}

uint64_t
carry_row(const struct table_owner *owner, const struct table *table,
    uint32_t line, const struct line_record *record)
{
    uint64_t y = number_of(table, line, record->remainder, record->is_far);
    return table->base + perm_undo(owner->perm, y, table->width);
}

/* The row of a permuted number. */
static uint64_t
row_at(const struct carry *carry, const struct table *source, uint64_t number)
{
    return source->base + perm_undo(carry->owner->perm, number, source->width);
}

/* Turns the number of a record in its table into that in the new one; false
 * where that does not cover it. */
static inline bool
translate(
    const struct carry *carry, const struct table *source, uint64_t *number)
{
    const struct table *table = carry->table;
    const struct perm *perm = carry->owner->perm;
    if (source->base == table->base && source->width == table->width) {
        return true;
    }
    uint64_t row = row_at(carry, source, *number);
    if (!table_covers(table, row)) {
        return false;
    }
    *number = perm_apply(perm, row & table->mask, table->width);
    return true;
}

/* True where a record with that many bits of values has nothing in them. */
static bool
is_empty(const struct carried *carried, unsigned bits)
{
    uint64_t any = 0;
    for (unsigned i = 0; i * 64 < bits; i++) {
        any |= carried->value[i];
    }
    return any == 0;
}

/* To its first line; false where it has no room there. */
static inline bool
settle(struct carry *carry, struct carried *carried, uint64_t number)
{
    struct table *table = carry->table;
    const struct line_form *form = &table->form;
    uint32_t line = table__line(table, number);
    carried->remainder = number - table__start(table, line);
    carried->shape = line_shape(form, carried->remainder, carried->shape);
    ASSERT(line_extra(form, carried->remainder) >> form->extra_bits == 0);
    if (!append(table_line(table, line), form, carried)) {
        return false;
    }
    uint64_t *any = carry->any[carried->shape];
    for (unsigned i = 0; i * 64 < form->shapes->total[carried->shape]; i++) {
        any[i] |= carried->value[i];
    }
    carry->n_records++;
    carry->used_bits +=
        (unsigned)LINE_RECORD_BITS + form->total[carried->shape];
    return true;
}

/* The remainder of record index, which has that shape and whose payload begins
 * with those bits. */
static inline uint64_t
remainder_at(const struct line_copy *copy, const struct line_form *form,
    unsigned index, unsigned shape, uint64_t bits)
{
    unsigned at = LINE_MASK_BITS + LINE_TAG_BITS * index;
    return line_remainder(form, bits & line_bits_mask(form->extra_bits), shape,
        copy->word[at / 64] >> at % 64 & 0xffff);
}

/* Reads the record whose payload begins at bit at. */
static inline void
pick_up(const struct line_copy *copy, const struct line_form *form,
    unsigned at, struct carried *carried)
{
    uint64_t bits = bits_at(copy, at);
    unsigned extra_bits = form->extra_bits;
    unsigned rest = form->total[carried->shape] - extra_bits;
    carried->remainder =
        remainder_at(copy, form, carried->index, carried->shape, bits);
    if (rest + extra_bits <= 64) {
        carried->value[0] = bits >> extra_bits & line_bits_mask(rest);
        carried->value[1] = 0;
        return;
    }
    at += extra_bits;
    unsigned i = 0;
    for (; rest > 64; rest -= 64) {
        carried->value[i++] = bits_at(copy, at);
        at += 64;
    }
    carried->value[i] = bits_at(copy, at) & line_bits_mask(rest);
    carried->value[i + 1] = 0;
}

void
carry_begin(
    struct carry *carry, const struct table_owner *owner, struct table *table)
{
    table_owner_assert_held(owner);
    memset(carry, 0, sizeof *carry);
    carry->owner = owner;
    carry->table = table;
    ASSERT(table->n_records == 0);
}

/* What has been read of a table's lines, against what its head says. */
struct sums {
    uint64_t n, n_far, used_bits;
};

/* A line whose last payload begins at bit at. */
static inline void
add_line(struct sums *sums, const struct line_copy *copy, unsigned at)
{
    unsigned n = line_count(copy);
    sums->n += n;
    sums->n_far += line_far(copy);
    sums->used_bits += (uint64_t)LINE_RECORD_BITS * n + LINE_PAYLOADS_END - at;
}

static void
check_sums(const struct sums *sums, const struct table *table)
{
    ASSERT(sums->n + table_n_stashed(table) == table->n_records);
    ASSERT(sums->n_far == table->n_far);
    ASSERT(sums->used_bits == table->used_bits);
}

void
carry_lines(struct carry *carry, const struct table *source,
    const struct cover_at *cover,
    void (*late_fn)(void *context, uint32_t line, unsigned index),
    void *context)
{
    struct line_copy copy;
    struct carried carried;
    struct sums sums = {0, 0, 0};
    bool has_empty = source->n_empty > 0;
    table_owner_assert_held(carry->owner);
    memset(&carried, 0, sizeof carried);
    for (uint32_t i = 0; i < source->n_lines; i++) {
        line_load(table_line(source, i), &copy);
        unsigned n = line_count(&copy);
        unsigned home = n - line_far(&copy);
        unsigned at = LINE_PAYLOADS_END;
        unsigned shape_at = LINE_MASK_BITS + LINE_TAG_BITS * n;
        for (unsigned j = 0; j < n; j++, shape_at += 4) {
            carried.index = j;
            carried.shape = copy.word[shape_at / 64] >> shape_at % 64 & 15;
            at -= source->form.total[carried.shape];
            pick_up(&copy, &source->form, at, &carried);
            uint64_t number =
                number_of(source, i, carried.remainder, j >= home);
            bool is_void = has_empty &&
                is_empty(&carried, source->form.shapes->total[carried.shape]);
            if ((is_void &&
                    !cover_keeps(cover, row_at(carry, source, number))) ||
                !translate(carry, source, &number)) {
                continue;
            }
            bool has_shape = source->set == carry->table->set ||
                recode(
                    &carried, source->form.shapes, carry->table->form.shapes);
            if (!has_shape || !settle(carry, &carried, number)) {
                late_fn(context, i, j);
            } else {
                carry->n_empty += is_void;
            }
        }
        add_line(&sums, &copy, at);
    }
    check_sums(&sums, source);
}

void
carry_in(struct carry *carry, const struct carry_rows *rows,
    void (*late_fn)(void *context, size_t i), void *context)
{
    const struct table *table = carry->table;
    const struct perm *perm = carry->owner->perm;
    uint64_t code[SHAPES_COLUMNS_MAX] = {0};
    uint32_t columns = 0;
    struct carried carried;
    table_owner_assert_held(carry->owner);
    for (unsigned c = 0; c < rows->n_columns; c++) {
        columns |= 1U << rows->column[c];
    }
    for (size_t i = 0; i < rows->n; i++) {
        if (!carry_codes(rows, i, code)) {
            continue;
        }
        ASSERT(table_covers(table, rows->row[i]));
        uint64_t number = perm__apply(
            perm, rows->row[i] & table->mask, table->mask, table->fold);
        if (!encode(&carried, table->form.shapes, code, columns) ||
            !settle(carry, &carried, number)) {
            late_fn(context, i);
        } else if (rows->cover != NULL) {
            carry->n_empty += table_is_nothing(code);
        }
    }
}

void
carry_end(struct carry *carry)
{
    struct table *table = carry->table;
    const struct shapes *shapes = table->form.shapes;
    for (uint32_t i = 0; i < table->n_lines; i++) {
        struct line *line = table_line(table, i);
        word_set(line, 0, word_get(line, 0) & ~(uint64_t)PAYLOAD_BITS);
    }
    for (unsigned shape = 0; shape < SHAPES_N; shape++) {
        uint64_t code[SHAPES_COLUMNS_MAX] = {0};
        for (unsigned left = shapes->columns; left != 0; left &= left - 1) {
            unsigned i = (unsigned)__builtin_ctz(left);
            code[i] = value_get(carry->any[shape], shapes->field[i][shape]);
        }
        table->widest = shapes_need_join(table->widest, shapes_need_all(code));
    }
    ASSERT(carry->n_records <= UINT32_MAX - table->n_records);
    ASSERT(carry->n_empty <= carry->n_records);
    table->n_records += (uint32_t)carry->n_records;
    table->n_empty += (uint32_t)carry->n_empty;
    table->used_bits += carry->used_bits;
}

/* Calls place_fn for each record of a table, in lines first. */
static inline __attribute__((always_inline)) void
walk(const struct table_owner *owner, const struct table *table,
    void (*place_fn)(void *context, const struct carry_place *place),
    void *context)
{
    const struct line_form *form = &table->form;
    struct line_copy copy;
    struct carry_place place;
    struct sums sums = {0, 0, 0};
    for (uint32_t i = 0; i < table->n_lines; i++) {
        line_load(table_line(table, i), &copy);
        unsigned n = line_count(&copy);
        unsigned home = n - line_far(&copy);
        unsigned at = LINE_PAYLOADS_END;
        unsigned shape_at = LINE_MASK_BITS + LINE_TAG_BITS * n;
        for (unsigned j = 0; j < n; j++, shape_at += 4) {
            unsigned shape = copy.word[shape_at / 64] >> shape_at % 64 & 15;
            at -= form->total[shape];
            uint64_t remainder =
                remainder_at(&copy, form, j, shape, bits_at(&copy, at));
            uint64_t y = number_of(table, i, remainder, j >= home);
            place.row = table->base + perm_undo(owner->perm, y, table->width);
            place.line = i;
            place.at = (uint16_t)(at + form->extra_bits);
            place.shape = (uint8_t)shape;
            place_fn(context, &place);
        }
        add_line(&sums, &copy, at);
    }
    check_sums(&sums, table);
}

/* The same for the stash. */
struct stashed {
    const struct table *table;
    void (*place_fn)(void *context, const struct carry_place *place);
    void *context;
};

static void
place_in_stash(void *context, uint64_t key, const uint64_t *code)
{
    const struct stashed *stashed = context;
    struct carry_place place = {
        .row = stashed->table->base + key, .shape = SHAPES_N};
    (void)code;
    stashed->place_fn(stashed->context, &place);
}

static void
walk_stash(const struct table *table,
    void (*place_fn)(void *context, const struct carry_place *place),
    void *context)
{
    struct stashed stashed = {table, place_fn, context};
    const struct stash *stash = table_stash(table);
    if (stash != NULL) {
        stash_each(stash, place_in_stash, &stashed);
    }
}

struct rows {
    void (*row_fn)(void *context, uint64_t row);
    void *context;
};

static inline void
hand_row(void *context, const struct carry_place *place)
{
    const struct rows *rows = context;
    rows->row_fn(rows->context, place->row);
}

void
carry_each(const struct table_owner *owner, const struct table *table,
    void (*row_fn)(void *context, uint64_t row), void *context)
{
    struct rows rows = {row_fn, context};
    walk(owner, table, hand_row, &rows);
    walk_stash(table, hand_row, &rows);
}

struct placing {
    struct carry_place *place;
    uint32_t n, n_max;
};

static inline void
write_place(void *context, const struct carry_place *place)
{
    struct placing *placing = context;
    ASSERT(placing->n < placing->n_max);
    placing->place[placing->n++] = *place;
    if (placing->n % PLACES_AT_ONCE == 0) {
        give_way();
    }
}

void
carry_places(const struct table_owner *owner, const struct table *table,
    struct carry_place *place)
{
    struct placing placing = {.place = place, .n_max = table->n_records};
    walk(owner, table, write_place, &placing);
    walk_stash(table, write_place, &placing);
    ASSERT(placing.n == table->n_records);
}
