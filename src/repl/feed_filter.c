/* SPDX-License-Identifier: BSD-3-Clause */
/* Goes through a payload once. An entry of cells that stays is written anew:
 * its id is told as near the one before it in what is sent, where that is
 * shorter, and its columns are told where they are not those before it there:
 *
 *   in:    | a, 3 cells | b, 1 cell | number | c, the same column |
 *   out:   | a, 3 cells |             number | c, 1 cell |   b is not of it
 *
 * So what is written is not longer than what was read: the distance over what
 * was left out is no longer than all of that, and columns that are told here
 * were told by something that was left out.
 *
 * What can go wrong: bytes that are no entries, of which a checksum held. */
#include "repl/feed_filter.h"

#include "base/bytes.h"
#include "base/err.h"
#include "wal/entry.h"
#include "wal/frame.h"

#include <stdlib.h>
#include <string.h>

enum { KIND_MASK = (1 << ENTRY_KIND_BITS) - 1, FIRST_PAIRS = 16 };

_Static_assert((int)FEED_FILTER_MORE >= (int)ENTRY_CELLS_BYTES_MAX &&
        (int)FEED_FILTER_MORE >=
            (int)ENTRY_MEMBERS_HEAD_BYTES_MAX + (int)ENTRY_MEMBER_BYTES_MAX,
    "an entry is begun where there is room for it");

/* A payload under way. */
struct pass {
    struct feed_filter *filter;
    struct entry_reader in; /* not used for parts of entries of members */
    uint8_t *out, *out_end; /* out_end: less FEED_FILTER_MORE */
    uint64_t out_id;        /* that what was written last was of */
    unsigned n_out_columns; /* of that; 0: nothing was written yet */
    uint32_t out_serial[SCHEMA_COLUMNS_MAX];
    struct entry entry;
};

void
feed_filter_fini(struct feed_filter *filter)
{
    free(filter->pairs);
    filter->pairs = NULL;
    filter->n_pairs = filter->capacity = 0;
}

/* Where the serial is, or would be. */
static size_t
find_pairs(const struct feed_filter *filter, uint32_t serial)
{
    size_t low = 0, high = filter->n_pairs;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (filter->pairs[middle] < serial) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static int
add_pairs(struct feed_filter *filter, uint32_t serial)
{
    size_t at = find_pairs(filter, serial);

    if (at < filter->n_pairs && filter->pairs[at] == serial) {
        return 0;
    }
    if (filter->n_pairs == filter->capacity) {
        size_t capacity =
            filter->capacity == 0 ? FIRST_PAIRS : 2 * filter->capacity;
        uint32_t *pairs =
            realloc(filter->pairs, capacity * sizeof *filter->pairs);

        if (pairs == NULL) {
            return ERR_NO_MEMORY;
        }
        filter->pairs = pairs;
        filter->capacity = capacity;
    }
    memmove(&filter->pairs[at + 1], &filter->pairs[at],
        (filter->n_pairs - at) * sizeof *filter->pairs);
    filter->pairs[at] = serial;
    filter->n_pairs++;
    return 0;
}

int
feed_filter_know(
    struct feed_filter *filter, const struct schema_counter *counter)
{
    int err = 0;

    for (unsigned i = 0; i < counter->n_columns && err == 0; i++) {
        const struct schema_column *column = &counter->column[i];

        if (column->kind == SCHEMA_MEMBERS) {
            err = add_pairs(filter, schema_pairs_serial(column));
        }
    }
    return err;
}

/* Moves behind n varints. */
static inline bool
skip_numbers(const uint8_t **in, const uint8_t *end, unsigned n)
{
    uint64_t number;

    while (n > 0 && bytes_get_number(in, end, &number)) {
        n--;
    }
    return n == 0;
}

static inline void
copy(struct pass *pass, const uint8_t *from, const uint8_t *to)
{
    memcpy(pass->out, from, (size_t)(to - from));
    pass->out += to - from;
}

/* Is one cell of that serial told for itself, and not of a record? */
static bool
is_of_no_id(const struct feed_filter *filter, uint64_t serial)
{
    size_t at;

    if (serial >= ENTRY_MARK_SERIAL) {
        return serial == ENTRY_MARK_SERIAL;
    }
    at = find_pairs(filter, (uint32_t)serial);
    return at < filter->n_pairs && filter->pairs[at] == serial;
}

/* What is written last has these columns, and that id. */
static inline void
has_written(struct pass *pass, uint64_t id, unsigned n, const uint32_t *serial)
{
    pass->out_id = id;
    pass->n_out_columns = n;
    for (unsigned i = 0; i < n; i++) {
        pass->out_serial[i] = serial[i];
    }
}

/* An entry of cells: short ones stay short, where they may. */
static int
take_cells(struct pass *pass)
{
    const struct entry_cells *cells = &pass->entry.cells;
    bool is_short = *pass->in.at >> ENTRY_KIND_BITS > SCHEMA_COLUMNS_MAX;
    struct entry_before before = {
        pass->out_id, pass->n_out_columns, pass->out_serial};
    bool has_before = before.n > 0;

    if (!entry_next(&pass->in, &pass->entry)) {
        return ERR_CORRUPT;
    }
    if (!owns_has(pass->filter->owns, cells->id) ||
        (cells->n == 1 && is_of_no_id(pass->filter, cells->serial[0]))) {
        return 0;
    }
    pass->out += is_short
        ? entry_put_record(pass->out, cells->id, cells->n, cells->serial,
              cells->value, has_before ? &before : NULL)
        : entry_put_columns(pass->out, cells->id, cells->n, cells->serial,
              cells->value, has_before ? &before.id : NULL);
    has_written(pass, cells->id, cells->n, cells->serial);
    return 0;
}

/* Moves behind the head of an entry of members, from its second byte on; its
 * form is that one. */
static bool
skip_members_head(struct pass *pass, unsigned head, unsigned *form)
{
    struct entry_reader *in = &pass->in;
    unsigned more = (head & ENTRY_MEMBERS_HAS_SERIAL) != 0;
    uint64_t serial;

    if (in->at == in->end) {
        return false;
    }
    *form = *in->at++;
    in->n_columns = 1 + (*form & ((1U << ENTRY_MEMBERS_CELL_BITS) - 1));
    for (unsigned i = 0; i < in->n_columns; i++) {
        if (!bytes_get_number(&in->at, in->end, &serial) || serial == 0 ||
            serial > UINT32_MAX) {
            return false;
        }
        in->serial[i] = (uint32_t)serial;
    }
    more += (*form & ENTRY_MEMBERS_HAS_VALUE) != 0;
    return skip_numbers(&in->at, in->end, more);
}

/* One of its changes, of n cells. *is_kept: it was written. */
static bool
take_member(struct pass *pass, unsigned n, size_t pair_bytes, bool is_first,
    bool is_first_out, bool *is_kept)
{
    const uint8_t *values;
    uint64_t id;

    if (!bytes_get_number(&pass->in.at, pass->in.end, &id)) {
        return false;
    }
    id = is_first ? id : pass->in.id + bytes_unzigzag(id);
    pass->in.id = id;
    values = pass->in.at;
    if (!skip_numbers(&pass->in.at, pass->in.end, n) ||
        (size_t)(pass->in.end - pass->in.at) < pair_bytes) {
        return false;
    }
    pass->in.at += pair_bytes;
    *is_kept = owns_has(pass->filter->owns, id);
    if (*is_kept) {
        pass->out += bytes_put_varint_wide(
            pass->out, is_first_out ? id : bytes_zigzag(id - pass->out_id));
        copy(pass, values, pass->in.at);
        has_written(pass, id, n, pass->in.serial);
    }
    return true;
}

/* An entry of changes of members, behind its first byte: those that stay have
 * the same head but for their number. */
static int
take_members(struct pass *pass, unsigned head)
{
    const uint8_t *second = pass->in.at;
    uint8_t *out = pass->out;
    unsigned n_changes = head >> ENTRY_KIND_BITS & ENTRY_MEMBERS_MAX;
    unsigned form, n_kept = 0;

    if (n_changes == 0 || !skip_members_head(pass, head, &form)) {
        return ERR_CORRUPT;
    }
    pass->out++;
    copy(pass, second, pass->in.at);
    for (unsigned i = 0; i < n_changes; i++) {
        bool is_kept;

        if (pass->out > pass->out_end ||
            !take_member(pass,
                1 + (form & ((1U << ENTRY_MEMBERS_CELL_BITS) - 1)),
                1 + (form >> ENTRY_MEMBERS_CELL_BITS & 7), i == 0, n_kept == 0,
                &is_kept)) {
            return ERR_CORRUPT;
        }
        n_kept += is_kept;
    }
    if (n_kept == 0) {
        pass->out = out;
    } else {
        *out = (uint8_t)(ENTRY_MEMBERS | n_kept << ENTRY_KIND_BITS |
            (head & ENTRY_MEMBERS_HAS_SERIAL));
    }
    return 0;
}

/* Copies an entry, from there to where the reader is. False: it is longer than
 * any that has room. */
static bool
copy_entry(struct pass *pass, const uint8_t *from)
{
    if (pass->in.at - from > pass->out_end - pass->out + FEED_FILTER_MORE) {
        return false;
    }
    copy(pass, from, pass->in.at);
    return true;
}

/* Members of about: those that stay, as one entry; or all of it, where that
 * would take more bytes: an id that becomes the first one is written out, which
 * as a distance was short though it is far, around the end of the numbers.
 * Members of others' ids do no harm. */
static int
take_about(struct pass *pass)
{
    const uint8_t *from = pass->in.at;
    struct entry_about *about = &pass->entry.about;
    uint8_t kept[ENTRY_ABOUT_BYTES_MAX];
    unsigned n_kept = 0;

    if (!entry_next(&pass->in, &pass->entry)) {
        return ERR_CORRUPT;
    }
    for (unsigned i = 0; i < about->n; i++) {
        if (owns_has(pass->filter->owns, about->id[i])) {
            about->id[n_kept] = about->id[i];
            about->member[n_kept] = about->member[i];
            n_kept++;
        }
    }
    about->n = n_kept;
    if (n_kept == 0) {
        return 0;
    }
    size_t len = entry_put_about(kept, about);
    if (len > (size_t)(pass->in.at - from) ||
        (ptrdiff_t)len > pass->out_end - pass->out + FEED_FILTER_MORE) {
        return copy_entry(pass, from) ? 0 : ERR_CORRUPT;
    }
    copy(pass, kept, kept + len);
    return 0;
}

/* What is of no id, from its first byte on. */
static int
take_other(struct pass *pass)
{
    const uint8_t *from = pass->in.at;
    const struct entry *entry = &pass->entry;

    if (!entry_next(&pass->in, &pass->entry) ||
        (entry->kind != ENTRY_TERM && entry->kind != ENTRY_NAME &&
            !copy_entry(pass, from))) {
        return ERR_CORRUPT;
    }
    return entry->kind == ENTRY_COUNTER
        ? feed_filter_know(pass->filter, &entry->counter)
        : 0;
}

int
feed_filter_run(struct feed_filter *filter, const uint8_t *payload, size_t len,
    uint8_t *out, size_t *n)
{
    struct pass pass = {.filter = filter,
        .in = {.at = payload, .end = payload + len},
        .out = out,
        .out_end = out + len};
    int err = 0;

    while (err == 0 && pass.in.at < pass.in.end) {
        unsigned head = *pass.in.at, kind = head & KIND_MASK;

        if (pass.out > pass.out_end) { /* no log of ours has that */
            return ERR_CORRUPT;
        }
        if (kind == ENTRY_CELLS || kind == ENTRY_CELLS_NEAR) {
            err = take_cells(&pass);
        } else if (kind == ENTRY_MEMBERS) {
            pass.in.at++;
            err = take_members(&pass, head);
        } else if (head == ENTRY_ABOUT) {
            err = take_about(&pass);
        } else {
            err = take_other(&pass);
        }
    }
    *n = (size_t)(pass.out - out);
    return err == 0 && *n > FRAME_PAYLOAD_MAX ? ERR_CORRUPT : err;
}
