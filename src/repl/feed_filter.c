/* SPDX-License-Identifier: BSD-3-Clause */
/* Goes through a payload once. An entry of cells is looked at up to its id, and
 * then only for its length; one that stays is copied but for the id, which is
 * told as near the one before it in what is sent, where that is shorter:
 *
 *   in:    | a, 3 cells | b, 1 cell | number | c, 2 cells |
 *   out:   | a, 3 cells |             number | c, 2 cells |   b is not of it
 *
 * So what is written is not longer than what was read: the distance over what
 * was left out is no longer than all of that.
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
    const uint8_t *at, *end;
    uint64_t id;            /* that what was read last is near */
    uint8_t *out, *out_end; /* out_end: less FEED_FILTER_MORE */
    uint64_t out_id;        /* that what was written last was of */
    bool has_out_id;
    struct entry entry; /* of about */
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

/* An entry of cells, behind its first byte. */
static int
take_cells(struct pass *pass, unsigned head)
{
    unsigned n = head >> ENTRY_KIND_BITS;
    const uint8_t *cells, *first;
    uint64_t id, serial;

    if (n < 1 || n > SCHEMA_COLUMNS_MAX ||
        !bytes_get_number(&pass->at, pass->end, &id)) {
        return ERR_CORRUPT;
    }
    if ((head & KIND_MASK) == ENTRY_CELLS_NEAR) {
        id = pass->id + bytes_unzigzag(id);
    }
    pass->id = id;
    cells = first = pass->at;
    if (!skip_numbers(&pass->at, pass->end, 2 * n)) {
        return ERR_CORRUPT;
    }
    if (!owns_has(pass->filter->owns, id)) {
        return 0;
    }
    if (n == 1 && bytes_get_number(&first, pass->end, &serial) &&
        is_of_no_id(pass->filter, serial)) {
        return 0;
    }
    pass->out += entry__put_head(
        pass->out, id, n, pass->has_out_id ? &pass->out_id : NULL);
    copy(pass, cells, pass->at);
    pass->out_id = id;
    pass->has_out_id = true;
    return 0;
}

/* Moves behind the head of an entry of members, from its second byte on; its
 * form is that one. */
static bool
skip_members_head(struct pass *pass, unsigned head, unsigned *form)
{
    unsigned n;

    if (pass->at == pass->end) {
        return false;
    }
    *form = *pass->at++;
    n = 1 + (*form & ((1U << ENTRY_MEMBERS_CELL_BITS) - 1));
    n += (head & ENTRY_MEMBERS_HAS_SERIAL) != 0;
    n += (*form & ENTRY_MEMBERS_HAS_VALUE) != 0;
    return skip_numbers(&pass->at, pass->end, n);
}

/* One of its changes, of n cells. *is_kept: it was written. */
static bool
take_member(struct pass *pass, unsigned n, size_t pair_bytes, bool is_first,
    bool is_first_out, bool *is_kept)
{
    const uint8_t *values;
    uint64_t id;

    if (!bytes_get_number(&pass->at, pass->end, &id)) {
        return false;
    }
    id = is_first ? id : pass->id + bytes_unzigzag(id);
    pass->id = id;
    values = pass->at;
    if (!skip_numbers(&pass->at, pass->end, n) ||
        (size_t)(pass->end - pass->at) < pair_bytes) {
        return false;
    }
    pass->at += pair_bytes;
    *is_kept = owns_has(pass->filter->owns, id);
    if (*is_kept) {
        pass->out += bytes_put_varint_wide(
            pass->out, is_first_out ? id : bytes_zigzag(id - pass->out_id));
        copy(pass, values, pass->at);
        pass->out_id = id;
        pass->has_out_id = true;
    }
    return true;
}

/* An entry of changes of members, behind its first byte: those that stay have
 * the same head but for their number. */
static int
take_members(struct pass *pass, unsigned head)
{
    const uint8_t *second = pass->at;
    uint8_t *out = pass->out;
    unsigned n_changes = head >> ENTRY_KIND_BITS & ENTRY_MEMBERS_MAX;
    unsigned form, n_kept = 0;

    if (n_changes == 0 || !skip_members_head(pass, head, &form)) {
        return ERR_CORRUPT;
    }
    pass->out++;
    copy(pass, second, pass->at);
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

/* Room for a copy of an entry that is read up to there? */
static inline bool
has_room(const struct pass *pass, const uint8_t *end)
{
    return end - pass->at <= pass->out_end - pass->out + FEED_FILTER_MORE;
}

/* Members of about: those that stay, as one entry; or all of it, where that
 * would take more bytes: an id that becomes the first one is written out, which
 * as a distance was short though it is far, around the end of the numbers.
 * Members of others' ids do no harm. */
static int
take_about(struct pass *pass)
{
    struct entry_reader reader = {.at = pass->at, .end = pass->end};
    struct entry_about *about = &pass->entry.about;
    uint8_t kept[ENTRY_ABOUT_BYTES_MAX];
    unsigned n_kept = 0;

    if (!entry_next(&reader, &pass->entry) || !has_room(pass, reader.at)) {
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
    if (n_kept > 0) {
        size_t len = entry_put_about(kept, about);

        if (len <= (size_t)(reader.at - pass->at)) {
            copy(pass, kept, kept + len);
        } else {
            copy(pass, pass->at, reader.at);
        }
    }
    pass->at = reader.at;
    return 0;
}

/* What is of no id, from its first byte on. */
static int
take_other(struct pass *pass)
{
    struct entry_reader reader = {.at = pass->at, .end = pass->end};
    struct entry entry;

    if (!entry_next(&reader, &entry) || !has_room(pass, reader.at)) {
        return ERR_CORRUPT;
    }
    if (entry.kind != ENTRY_TERM && entry.kind != ENTRY_NAME) {
        copy(pass, pass->at, reader.at);
    }
    pass->at = reader.at;
    return entry.kind == ENTRY_COUNTER
        ? feed_filter_know(pass->filter, &entry.counter)
        : 0;
}

int
feed_filter_run(struct feed_filter *filter, const uint8_t *payload, size_t len,
    uint8_t *out, size_t *n)
{
    struct pass pass = {.filter = filter,
        .at = payload,
        .end = payload + len,
        .out = out,
        .out_end = out + len};
    int err = 0;

    while (err == 0 && pass.at < pass.end) {
        unsigned head = *pass.at, kind = head & KIND_MASK;

        if (pass.out > pass.out_end) { /* no log of ours has that */
            return ERR_CORRUPT;
        }
        if (kind == ENTRY_CELLS || kind == ENTRY_CELLS_NEAR) {
            pass.at++;
            err = take_cells(&pass, head);
        } else if (kind == ENTRY_MEMBERS) {
            pass.at++;
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
