/* SPDX-License-Identifier: BSD-3-Clause */
/* Entries to bytes and back; the layout is in entry.h and doc/format-log.md.
 *
 * entry_put_columns is called under the lock of a shard for every change, and
 * entry_next for every change that is recovered: both touch only what is there
 * and zero nothing. The common entry is some ten bytes.
 *
 * What can go wrong: bytes may be anything, though they have passed a
 * checksum. What is no entry is refused, and the reader stays before it. */
#include "wal/entry.h"

#include "base/assert.h"
#include "base/bytes.h"

#include <string.h>

enum {
    KIND_BITS = ENTRY_KIND_BITS,
    KIND_MASK = (1 << KIND_BITS) - 1,
    SMALL = 0x80 /* a varint below is one byte */
};

_Static_assert((int)ENTRY_TERM <= KIND_MASK, "a kind has three bits");
_Static_assert((int)ENTRY_SHORT == (int)SCHEMA_COLUMNS_MAX &&
        ENTRY_SHORT + ENTRY_SHORT_MAX == UINT8_MAX >> KIND_BITS,
    "the number of cells has the rest of the byte");
_Static_assert(BYTES_VARINT_MAX == 10, "as in ENTRY_CELLS_BYTES_MAX");
_Static_assert((int)ENTRY_MEMBERS <= KIND_MASK, "likewise");

/* The first byte. */
static inline uint8_t
head_of(enum entry_kind kind, unsigned n)
{
    return (uint8_t)((unsigned)kind | n << KIND_BITS);
}

static inline const uint8_t *
skip_number(const uint8_t *at)
{
    while (*at++ >= SMALL) {
    }
    return at;
}

/* Moves both behind a number; false where it is not the same. */
static inline bool
skip_same(const uint8_t **a, const uint8_t **b)
{
    do {
        if (*(*a)++ != **b) {
            return false;
        }
    } while (*(*b)++ >= SMALL);
    return true;
}

/* How many cells an entry has that says its columns by itself; 0: another
 * one. *serials: how many of theirs it says. */
static inline unsigned
said_cells(unsigned head, unsigned *serials)
{
    unsigned kind = head & KIND_MASK, n = head >> KIND_BITS;

    *serials = n <= SCHEMA_COLUMNS_MAX ? n : 1;
    if (kind == ENTRY_MEMBERS || (kind == ENTRY_CELLS_NEAR && *serials < n)) {
        return 0;
    }
    return n <= SCHEMA_COLUMNS_MAX ? n : n - ENTRY_SHORT;
}

bool
entry__replace(uint8_t *to, const uint8_t *from)
{
    unsigned serials, from_serials, n = said_cells(*to, &serials);
    const uint8_t *old = skip_number(to + 1);
    const uint8_t *new = skip_number(from + 1);
    const uint8_t *old_end = old, *new_end = new;

    if (n == 0 || said_cells(*from, &from_serials) != n ||
        from_serials != serials) {
        return false;
    }
    for (unsigned i = 0; i < n; i++) {
        if (i < serials && !skip_same(&old_end, &new_end)) {
            return false;
        }
        old_end = skip_number(old_end);
        new_end = skip_number(new_end);
    }
    if (old_end - old != new_end - new) {
        return false;
    }
    memcpy(to + (old - to), new, (size_t)(new_end - new));
    return true;
}

size_t
entry_put_counter(
    uint8_t *out, const struct schema_counter *counter, uint32_t last_serial)
{
    size_t len = 1;

    out[0] = head_of(ENTRY_COUNTER, 0);
    len += bytes_put_varint(out + len, last_serial);
    return len + schema_code_put(out + len, counter);
}

size_t
entry_put_dropped(uint8_t *out, uint32_t counter_serial, uint32_t last_serial)
{
    size_t len = 1;

    out[0] = head_of(ENTRY_DROPPED, 0);
    len += bytes_put_varint(out + len, last_serial);
    return len + bytes_put_varint(out + len, counter_serial);
}

size_t
entry_put_number(
    uint8_t *out, uint32_t producer, uint16_t shard, uint64_t number)
{
    size_t len = 1;

    ASSERT(producer > 0);
    out[0] = (uint8_t)ENTRY_NUMBER;
    len += bytes_put_varint(out + len, producer);
    len += bytes_put_varint(out + len, shard);
    return len + bytes_put_varint(out + len, number);
}

size_t
entry_put_producer(
    uint8_t *out, uint32_t producer, const struct producer_name *name)
{
    size_t len = 1;

    ASSERT(producer > 0 && producer_name_is_right(name->text, name->len));
    out[0] = (uint8_t)ENTRY_PRODUCER;
    len += bytes_put_varint(out + len, producer);
    out[len++] = name->len;
    memcpy(out + len, name->text, name->len);
    return len + name->len;
}

size_t
entry_put_producer_dropped(uint8_t *out, uint32_t producer)
{
    ASSERT(producer > 0);
    out[0] = (uint8_t)ENTRY_PRODUCER_DROPPED;
    return 1 + bytes_put_varint(out + 1, producer);
}

size_t
entry_put_producer_joined(
    uint8_t *out, uint32_t producer, const struct seen_window *seen)
{
    size_t len = 1;

    ASSERT(producer > 0);
    out[0] = (uint8_t)ENTRY_PRODUCER_JOINED;
    len += bytes_put_varint(out + len, producer);
    return len + seen_code_put(out + len, seen);
}

static bool
term_is_right(const struct entry_term *term)
{
    uint64_t least = seq_next_term(term->last_seq);

    return term->term > 0 && term->term <= SEQ_TERM_MAX && term->branch != 0 &&
        least != 0 && least <= term->term;
}

size_t
entry__put_term(uint8_t *out, const struct entry_term *term)
{
    size_t len = 1;

    ASSERT(term_is_right(term));
    ASSERT(node_name_is_right(term->node.text, term->node.len));
    out[0] = (uint8_t)ENTRY_TERM;
    len += bytes_put_varint(out + len, term->term);
    bytes_put_u64(out + len, term->branch);
    len += 8;
    len += bytes_put_varint(out + len, term->last_seq);
    out[len++] = term->node.len;
    memcpy(out + len, term->node.text, term->node.len);
    return len + term->node.len;
}

static size_t
put_text(uint8_t *out, const char *text)
{
    size_t len = strlen(text);

    ASSERT(len <= UINT8_MAX);
    out[0] = (uint8_t)len;
    memcpy(out + 1, text, len);
    return 1 + len;
}

size_t
entry_put_about(uint8_t *out, const struct entry_about *about)
{
    size_t len = 1;

    ASSERT(about->serial != 0);
    ASSERT(about->n >= 1 && about->n <= ENTRY_ABOUT_PAIRS_MAX);
    out[0] = ENTRY_ABOUT;
    len += bytes_put_varint(out + len, about->serial);
    out[len++] = (uint8_t)about->n;
    for (unsigned i = 0; i < about->n; i++) {
        uint64_t id = i == 0 ? about->id[0]
                             : bytes_zigzag(about->id[i] - about->id[i - 1]);

        len += bytes_put_varint(out + len, id);
        len += bytes_put_varint(out + len, about->member[i]);
    }
    ASSERT(len <= ENTRY_ABOUT_BYTES_MAX);
    return len;
}

size_t
entry_put_rolled(uint8_t *out, const struct entry_rolled *rolled)
{
    size_t len = 1;

    ASSERT(rolled->serial != 0 && rolled->lowest <= rolled->first);
    out[0] = ENTRY_ABOUT_ROLLED;
    len += bytes_put_varint(out + len, rolled->serial);
    len += bytes_put_varint(out + len, rolled->first);
    return len + bytes_put_varint(out + len, rolled->lowest);
}

size_t
entry_put_name(uint8_t *out, unsigned shard, uint32_t number,
    const char *bytes, size_t len)
{
    size_t n = 1;

    ASSERT(shard <= UINT16_MAX && len <= ENTRY_NAME_MAX);
    out[0] = (uint8_t)ENTRY_NAME;
    n += bytes_put_varint(out + n, shard);
    n += bytes_put_varint(out + n, number);
    out[n++] = (uint8_t)len;
    if (len > 0) {
        memcpy(out + n, bytes, len);
    }
    return n + len;
}

size_t
entry_put_moved(uint8_t *out, const struct moved_one *moved)
{
    size_t len = 1;

    ASSERT(moved->rule[0] != '\0');
    out[0] = (uint8_t)ENTRY_MOVED;
    len += put_text(out + len, moved->rule);
    len += put_text(out + len, moved->address);
    ASSERT(len <= ENTRY_MOVED_BYTES_MAX);
    return len;
}

/* Up to the value, which is the last byte. */
static const uint8_t mark_head[ENTRY_MARK_BYTES - 1] = {
    ENTRY_CELLS | 1 << KIND_BITS, 0, 0xff, 0xff, 0xff, 0xff, 0x0f};

void
entry_put_mark(uint8_t out[ENTRY_MARK_BYTES], enum entry_mark mark)
{
    ASSERT(mark != ENTRY_MARK_NONE && mark <= ENTRY_MARK_FOLLOWED);
    memcpy(out, mark_head, sizeof mark_head);
    out[sizeof mark_head] = (uint8_t)mark;
}

enum entry_mark
entry_mark_of(const uint8_t *payload, size_t len)
{
    if (len != ENTRY_MARK_BYTES ||
        memcmp(payload, mark_head, sizeof mark_head) != 0 ||
        payload[sizeof mark_head] > ENTRY_MARK_FOLLOWED) {
        return ENTRY_MARK_NONE;
    }
    return (enum entry_mark)payload[sizeof mark_head];
}

static inline bool
get_serial(const uint8_t **in, const uint8_t *end, uint32_t *out)
{
    uint64_t serial;

    if (!bytes_get_number(in, end, &serial) || serial == 0 ||
        serial > UINT32_MAX) {
        return false;
    }
    *out = (uint32_t)serial;
    return true;
}

/* The columns of short cells. */
static bool
get_short_columns(const uint8_t **in, const uint8_t *end, bool is_near,
    const struct entry_reader *reader, struct entry_cells *out)
{
    uint32_t first;

    if (is_near) {
        memcpy(out->serial, reader->serial, sizeof out->serial);
        return reader->n_columns == out->n;
    }
    if (!get_serial(in, end, &first) || first > UINT32_MAX - out->n) {
        return false;
    }
    for (unsigned i = 0; i < out->n; i++) {
        out->serial[i] = first + i;
    }
    return true;
}

/* Cells, behind their first byte. */
static inline bool
get_cells(const uint8_t **in, const uint8_t *end, unsigned head,
    const struct entry_reader *reader, struct entry_cells *out)
{
    bool is_near = (head & KIND_MASK) == ENTRY_CELLS_NEAR;
    bool is_short = head >> KIND_BITS > SCHEMA_COLUMNS_MAX;
    uint64_t id;

    out->n = (head >> KIND_BITS) - (is_short ? ENTRY_SHORT : 0);
    if (out->n < 1 || !bytes_get_varint(in, end, &id)) {
        return false;
    }
    out->id = is_near ? reader->id + bytes_unzigzag(id) : id;
    if (is_short && !get_short_columns(in, end, is_near, reader, out)) {
        return false;
    }
    for (unsigned i = 0; i < out->n; i++) {
        if ((!is_short && !get_serial(in, end, &out->serial[i])) ||
            !bytes_get_number(in, end, &out->value[i])) {
            return false;
        }
    }
    return true;
}

/* The head of an entry of members, behind its first byte. */
static bool
get_members(const uint8_t **in, const uint8_t *end, unsigned head,
    struct entry_members *out, uint32_t *serial)
{
    bool has_serial = (head & ENTRY_MEMBERS_HAS_SERIAL) != 0;
    out->n_changes = head >> KIND_BITS & ENTRY_MEMBERS_MAX;
    if (out->n_changes == 0 || *in == end) {
        return false;
    }
    unsigned form = *(*in)++;
    out->n = 1 + (form & ((1 << ENTRY_MEMBERS_CELL_BITS) - 1));
    out->pair_bytes = 1 + (form >> ENTRY_MEMBERS_CELL_BITS & 7);
    for (unsigned i = 0; i < out->n; i++) {
        if (!get_serial(in, end, &serial[i])) {
            return false;
        }
    }
    out->pair_value = 1;
    out->pair_serial = serial[0] + ENTRY_MEMBERS_STEP;
    if (has_serial ? !get_serial(in, end, &out->pair_serial)
                   : out->pair_serial < ENTRY_MEMBERS_STEP) {
        return false;
    }
    return (form & ENTRY_MEMBERS_HAS_VALUE) == 0 ||
        bytes_get_number(in, end, &out->pair_value);
}

/* The record of a change of a member. */
static bool
get_record(const uint8_t **in, const uint8_t *end,
    const struct entry_reader *reader, bool is_first, struct entry_cells *out)
{
    uint64_t id;
    if (!bytes_get_number(in, end, &id)) {
        return false;
    }
    out->id = is_first ? id : reader->id + bytes_unzigzag(id);
    out->n = reader->members.n;
    for (unsigned i = 0; i < out->n; i++) {
        out->serial[i] = reader->serial[i];
        if (!bytes_get_number(in, end, &out->value[i])) {
            return false;
        }
    }
    return true;
}

/* And the pair behind it. */
static bool
get_pair(const uint8_t **in, const uint8_t *end,
    const struct entry_members *members, struct entry_cells *out)
{
    if (members->pair_bytes > (size_t)(end - *in)) {
        return false;
    }
    out->id = 0;
    for (unsigned i = members->pair_bytes; i > 0; i--) {
        out->id = out->id << 8 | (*in)[i - 1];
    }
    *in += members->pair_bytes;
    out->n = 1;
    out->serial[0] = members->pair_serial;
    out->value[0] = members->pair_value;
    return true;
}

/* The part at `at` of an entry of members, of which n_parts are left. */
static bool
next_part(struct entry_reader *reader, const uint8_t *at, unsigned n_parts,
    struct entry *out)
{
    const struct entry_members *members = &reader->members;
    bool is_pair = n_parts % 2 != 0;
    ASSERT(n_parts > 0 && n_parts <= 2 * members->n_changes);
    bool ok = is_pair ? get_pair(&at, reader->end, members, &out->cells)
                      : get_record(&at, reader->end, reader,
                            n_parts == 2 * members->n_changes, &out->cells);
    if (!ok) {
        return false;
    }
    out->kind = ENTRY_CELLS;
    reader->id = is_pair ? reader->id : out->cells.id;
    reader->n_parts = n_parts - 1;
    reader->at = at;
    return true;
}

/* The first part of an entry of members, behind its first byte. */
static bool
next_members(struct entry_reader *reader, const uint8_t *at, unsigned head,
    struct entry *out)
{
    reader->n_columns = 0; /* its serials take the place of those */
    if (!get_members(
            &at, reader->end, head, &reader->members, reader->serial)) {
        return false;
    }
    reader->n_columns = reader->members.n;
    return next_part(reader, at, 2 * reader->members.n_changes, out);
}

/* What is read next may be near this record, or have its columns. */
static inline void
know_record(struct entry_reader *reader, const struct entry_cells *cells)
{
    reader->id = cells->id;
    reader->n_columns = cells->n;
    for (unsigned i = 0; i < cells->n; i++) {
        reader->serial[i] = cells->serial[i];
    }
}

static bool
get_counter(const uint8_t **in, const uint8_t *end, struct entry *out)
{
    if (!get_serial(in, end, &out->last_serial) ||
        !schema_code_get(in, end, &out->counter) ||
        out->counter.serial > out->last_serial) {
        return false;
    }
    for (unsigned i = 0; i < out->counter.n_columns; i++) {
        if (out->counter.column[i].serial > out->last_serial) {
            return false;
        }
    }
    return true;
}

static bool
get_dropped(const uint8_t **in, const uint8_t *end, struct entry *out)
{
    return get_serial(in, end, &out->last_serial) &&
        get_serial(in, end, &out->counter_serial) &&
        out->counter_serial <= out->last_serial;
}

static bool
get_number_done(const uint8_t **in, const uint8_t *end, struct entry *out)
{
    uint64_t shard;

    if (!get_serial(in, end, &out->producer) ||
        !bytes_get_number(in, end, &shard) || shard > UINT16_MAX) {
        return false;
    }
    out->shard = (uint16_t)shard;
    return bytes_get_number(in, end, &out->number);
}

static bool
get_producer(const uint8_t **in, const uint8_t *end, struct entry *out)
{
    size_t len;

    if (!get_serial(in, end, &out->producer) || *in == end) {
        return false;
    }
    len = *(*in)++;
    if (len > (size_t)(end - *in) ||
        !producer_name_set(&out->name, (const char *)*in, len)) {
        return false;
    }
    *in += len;
    return true;
}

static bool
get_term(const uint8_t **in, const uint8_t *end, struct entry_term *out)
{
    size_t len;

    if (!get_serial(in, end, &out->term) || end - *in < 8) {
        return false;
    }
    out->branch = bytes_get_u64(*in);
    *in += 8;
    if (!bytes_get_number(in, end, &out->last_seq) || *in == end) {
        return false;
    }
    len = *(*in)++;
    if (len > (size_t)(end - *in) ||
        !node_name_set(&out->node, (const char *)*in, len)) {
        return false;
    }
    *in += len;
    return term_is_right(out);
}

/* A text with its length before it. */
static bool
get_text(
    const uint8_t **in, const uint8_t *end, const char **text, size_t *len)
{
    if (*in == end) {
        return false;
    }
    *len = *(*in)++;
    if (*len > (size_t)(end - *in)) {
        return false;
    }
    *text = (const char *)*in;
    *in += *len;
    return true;
}

static bool
get_moved(const uint8_t **in, const uint8_t *end, struct moved_one *out)
{
    const char *rule, *address;
    size_t rule_len, address_len;

    return get_text(in, end, &rule, &rule_len) &&
        get_text(in, end, &address, &address_len) &&
        moved_one_is_right(rule, rule_len, address, address_len) &&
        moved_one_set(out, rule, rule_len, address, address_len) == 0;
}

static bool
get_about(const uint8_t **in, const uint8_t *end, struct entry_about *out)
{
    uint64_t id = 0, number;

    if (!get_serial(in, end, &out->serial) || *in == end) {
        return false;
    }
    out->n = *(*in)++;
    if (out->n == 0 || out->n > ENTRY_ABOUT_PAIRS_MAX) {
        return false;
    }
    for (unsigned i = 0; i < out->n; i++) {
        if (!bytes_get_number(in, end, &number) ||
            !bytes_get_number(in, end, &out->member[i])) {
            return false;
        }
        id = i == 0 ? number : id + bytes_unzigzag(number);
        out->id[i] = id;
    }
    return true;
}

static bool
get_rolled(const uint8_t **in, const uint8_t *end, struct entry_rolled *out)
{
    return get_serial(in, end, &out->serial) &&
        bytes_get_number(in, end, &out->first) &&
        bytes_get_number(in, end, &out->lowest) && out->lowest <= out->first;
}

static bool
get_name(const uint8_t **in, const uint8_t *end, struct entry_name *out)
{
    uint64_t shard, number;

    if (!bytes_get_number(in, end, &shard) || shard > UINT16_MAX ||
        !bytes_get_number(in, end, &number) || number > UINT32_MAX ||
        *in == end || **in > ENTRY_NAME_MAX ||
        end - *in - 1 < (ptrdiff_t) * *in) {
        return false;
    }
    out->shard = (uint16_t)shard;
    out->number = (uint32_t)number;
    out->len = *(*in)++;
    memcpy(out->bytes, *in, out->len);
    *in += out->len;
    return true;
}

/* What is not cells: by its first byte. */
static bool
get_other(const uint8_t **in, const uint8_t *end, struct entry *out)
{
    switch (out->kind) {
    case ENTRY_COUNTER:
        return get_counter(in, end, out);
    case ENTRY_DROPPED:
        return get_dropped(in, end, out);
    case ENTRY_NUMBER:
        return get_number_done(in, end, out);
    case ENTRY_PRODUCER:
        return get_producer(in, end, out);
    case ENTRY_PRODUCER_DROPPED:
        return get_serial(in, end, &out->producer);
    case ENTRY_PRODUCER_JOINED:
        return get_serial(in, end, &out->producer) &&
            seen_code_get(in, end, &out->seen);
    case ENTRY_TERM:
        return get_term(in, end, &out->term);
    case ENTRY_MOVED:
        return get_moved(in, end, &out->moved);
    case ENTRY_ABOUT:
        return get_about(in, end, &out->about);
    case ENTRY_ABOUT_ROLLED:
        return get_rolled(in, end, &out->rolled);
    case ENTRY_NAME:
        return get_name(in, end, &out->named);
    default:
        return false;
    }
}

bool
entry_next(struct entry_reader *reader, struct entry *out)
{
    const uint8_t *at = reader->at;
    unsigned head, kind;

    _Static_assert(KIND_BITS == 3, "as in ENTRY_PRODUCER");
    if (reader->n_parts > 0) {
        return next_part(reader, at, reader->n_parts, out);
    }
    if (at == reader->end) {
        out->kind = ENTRY_END;
        return true;
    }
    head = *at++;
    kind = head & KIND_MASK;
    if (kind == ENTRY_CELLS || kind == ENTRY_CELLS_NEAR) {
        out->kind = ENTRY_CELLS;
        if (!get_cells(&at, reader->end, head, reader, &out->cells)) {
            return false;
        }
        know_record(reader, &out->cells);
    } else if (kind == ENTRY_MEMBERS) {
        return next_members(reader, at, head, out);
    } else {
        out->kind = (enum entry_kind)head;
        if (!get_other(&at, reader->end, out)) {
            return false;
        }
    }
    reader->at = at;
    return true;
}
