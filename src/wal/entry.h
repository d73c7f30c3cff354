/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WAL_ENTRY_H
#define WAL_ENTRY_H

#include "base/assert.h"
#include "base/bytes.h"
#include "base/moved.h"
#include "base/node.h"
#include "base/producer.h"
#include "schema/schema.h"
#include "wal/entry_members.h"
#include "wal/schema_code.h"
#include "wal/seen_code.h"
#include "wal/seq.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a batch's payload is made of: entries, one behind the other
 * (doc/format-log.md). An entry says what something has become, not what was
 * done: reading it twice gives the same state. Pure; any thread.
 *
 *   cells:   1 byte: kind in bits 0..2, number of cells (1..16) in bits 3..7
 *            varint: the id (ENTRY_CELLS), or the zigzag distance from the
 *            id of the entry before (ENTRY_CELLS_NEAR)
 *            then for each cell: varint serial of the column, varint value.
 *            Where the number is 16 + n, these are n (1..15) cells, and only
 *            the values follow: behind the serial of the first column, of
 *            columns whose serials go up by one (ENTRY_CELLS); or at once, of
 *            those that the record before has, which are as many
 *            (ENTRY_CELLS_NEAR)
 *   counter: 1 byte: kind; varint: last serial given out; then the counter
 *            as it is now (schema_code.h)
 *   dropped: 1 byte: kind; varint: last serial given out; varint: serial of
 *            the counter
 *   number:  1 byte: kind 5, 0 in bits 3..7; varints: serial of the producer,
 *            shard, number: a numbered change of that shard was done. What it
 *            changed is in the same batch
 *   producer made:    1 byte: kind 5, 1 in bits 3..7; varint: its serial; its
 *            name, one byte with the length before it
 *   producer dropped: 1 byte: kind 5, 2 in bits 3..7; varint: its serial
 *   producer joined:  1 byte: kind 5, 3 in bits 3..7; varint: its serial; then
 *            a window (seen_code.h): its numbers were seen in every shard
 *   term:    1 byte: kind 6, 0 in bits 3..7; varint: the term; 8 bytes: its
 *            branch; varint: number of the last batch before it; the node's
 *            name, one byte with the length before it
 *   moved:   1 byte: kind 6, 1 in bits 3..7; a rule of ids, and the address
 *            where these are, "" for here again, each with one byte with its
 *            length before it. All changes of such ids that were made before
 *            they went are before the entry
 *   about:   1 byte: kind 6, 2 in bits 3..7; varint: serial of the column;
 *            1 byte: number of pairs (1..64); then for each: varint, the id
 *            (the first), or the zigzag distance from the one before; varint,
 *            the member. They are in its tables from now on
 *   rolled:  1 byte: kind 6, 3 in bits 3..7; varint: serial of the column;
 *            varint: the first id of its newest table, from now on; varint: the
 *            first id of its lowest one
 *   name:    1 byte: kind 6, 5 in bits 3..7; varints: shard, number; the name
 *            that this number of the shard's dictionary has from now on, one
 *            byte with its length before it; of length 0: it has none any more.
 *            Before the first cells of that id
 *   members: kind 7, see entry_members.h
 */

enum entry_kind {
    ENTRY_END, /* not in files: no entry is left */
    ENTRY_CELLS,
    ENTRY_CELLS_NEAR,
    ENTRY_COUNTER,
    ENTRY_DROPPED,
    /* these have one kind in files, and are told apart by its upper bits */
    ENTRY_NUMBER = 5,
    ENTRY_PRODUCER = 5 | 1 << 3,
    ENTRY_PRODUCER_DROPPED = 5 | 2 << 3,
    ENTRY_PRODUCER_JOINED = 5 | 3 << 3,
    ENTRY_TERM = 6,
    ENTRY_MOVED = 6 | 1 << 3,
    ENTRY_ABOUT = 6 | 2 << 3,
    ENTRY_ABOUT_ROLLED = 6 | 3 << 3,
    ENTRY_NAME = 6 | 5 << 3,
    /* in files only: it is read as cells, two for each change */
    ENTRY_MEMBERS = 7
};

enum {
    /* what a reader of this version knows: up to 7 it was a kind in files; 8
     * are all of these, what producers have seen elsewhere, and what has
     * moved; 9 are columns of about, and their members; 10 are names, and
     * counters whose keys they are; 11 are short cells */
    ENTRY_KIND_NEWEST = 11,
    ENTRY_KIND_BITS = 3, /* of the first byte; the number of cells has the
                          * others */
    ENTRY_SHORT = 16,    /* added to the number of cells */
    ENTRY_SHORT_MAX = 15,
    ENTRY_MEMBERS_HAS_SERIAL = 1 << 7, /* in the first byte of members */
    ENTRY_MEMBERS_CELL_BITS = 4,       /* of the second one; the others: */
    ENTRY_MEMBERS_HAS_VALUE = 1 << 7,
    ENTRY_HEAD_BYTES_MAX = 1 + 10, /* kind and id */
    ENTRY_CELL_BYTES_MAX = 5 + 10, /* serial and value */
    ENTRY_CELLS_BYTES_MAX =
        ENTRY_HEAD_BYTES_MAX + SCHEMA_COLUMNS_MAX * ENTRY_CELL_BYTES_MAX,
    ENTRY_COUNTER_BYTES_MAX = 1 + 5 + SCHEMA_CODE_BYTES_MAX,
    ENTRY_DROPPED_BYTES_MAX = 1 + 2 * 5,
    ENTRY_NUMBER_BYTES_MAX = 1 + 5 + 3 + 10,
    ENTRY_PRODUCER_BYTES_MAX = 1 + 5 + 1 + PRODUCER_NAME_MAX,
    ENTRY_PRODUCER_DROPPED_BYTES_MAX = 1 + 5,
    ENTRY_TERM_BYTES_MAX = 1 + 4 + 8 + 10 + 1 + NODE_NAME_MAX,
    ENTRY_MOVED_BYTES_MAX = 1 + 1 + OWNS_RULE_BYTES - 1 + 1 + ADDRESS_MAX,
    ENTRY_PRODUCER_JOINED_BYTES_MAX = 1 + 5 + SEEN_CODE_BYTES_MAX,
    ENTRY_ABOUT_PAIRS_MAX = 64,
    ENTRY_ABOUT_BYTES_MAX = 1 + 5 + 1 + ENTRY_ABOUT_PAIRS_MAX * 2 * 10,
    ENTRY_ABOUT_ROLLED_BYTES_MAX = 1 + 5 + 2 * 10,
    ENTRY_NAME_MAX = 200, /* bytes, as in names/own_id.h */
    ENTRY_NAME_BYTES_MAX = 1 + 3 + 5 + 1 + ENTRY_NAME_MAX
};

/* The name of a number of a shard's dictionary. */
struct entry_name {
    uint16_t shard;
    uint32_t number;
    uint8_t len; /* 0: it has gone */
    char bytes[ENTRY_NAME_MAX];
};

/* Members that were added to the tables of a column of about. */
struct entry_about {
    uint32_t serial; /* of the column */
    unsigned n;      /* 1..ENTRY_ABOUT_PAIRS_MAX */
    uint64_t id[ENTRY_ABOUT_PAIRS_MAX];
    uint64_t member[ENTRY_ABOUT_PAIRS_MAX];
};

/* Where its newest table begins, and its lowest one. */
struct entry_rolled {
    uint32_t serial;
    uint64_t first, lowest; /* lowest <= first */
};

/* A primary begins to change the directory: what the log says before anything
 * else of its term. */
struct entry_term {
    uint32_t term;         /* 1..SEQ_TERM_MAX */
    uint64_t branch;       /* random, not 0: tells reigns of one term apart */
    uint64_t last_seq;     /* of the batch before; 0: none */
    struct node_name node; /* who */
};

/* Values that cells of one record have now. */
struct entry_cells {
    uint64_t id;
    unsigned n; /* 1..16 */
    uint32_t serial[SCHEMA_COLUMNS_MAX];
    uint64_t value[SCHEMA_COLUMNS_MAX];
};

/* A record that was written just before in the same call of wal_append. */
struct entry_before {
    uint64_t id;
    unsigned n;
    const uint32_t *serial;
};

/* The first byte, and a number. */
static inline size_t
entry__put_first(uint8_t *out, unsigned kind, unsigned n, uint64_t number)
{
    out[0] = (uint8_t)(kind | n << ENTRY_KIND_BITS);
    return 1 + bytes_put_varint_wide(out + 1, number);
}

/* The kind and the id of n cells; see entry_put_columns. */
static inline size_t
entry__put_head(
    uint8_t *out, uint64_t id, unsigned n, const uint64_t *id_before)
{
    uint64_t distance = id_before == NULL ? id : bytes_zigzag(id - *id_before);

    return distance < id ? entry__put_first(out, ENTRY_CELLS_NEAR, n, distance)
                         : entry__put_first(out, ENTRY_CELLS, n, id);
}

/* Has a record these columns, few enough to go unsaid? */
static inline bool
entry__has_columns(
    const struct entry_before *before, unsigned n, const uint32_t *serial)
{
    unsigned i = 0;

    while (i < n && n == before->n && serial[i] == before->serial[i]) {
        i++;
    }
    return i == n && n <= ENTRY_SHORT_MAX;
}

/* Bytes of a number. */
static inline unsigned
entry__bytes(uint64_t number)
{
    return 1 + (63 - (unsigned)__builtin_clzll(number | 1)) / 7;
}

/* Do serials go up by one, and are they few enough for the short form? */
static inline bool
entry__is_run(unsigned n, const uint32_t *serial)
{
    unsigned i = 1;

    while (i < n && serial[i] == serial[0] + i) {
        i++;
    }
    return i == n && n <= ENTRY_SHORT_MAX;
}

/* Bytes that an entry takes to say its columns, where they are not those of the
 * record before. */
static inline unsigned
entry__said_bytes(unsigned n, const uint32_t *serial)
{
    unsigned bytes = entry__bytes(serial[0]);

    for (unsigned i = 1; i < n && !entry__is_run(n, serial); i++) {
        bytes += entry__bytes(serial[i]);
    }
    return bytes;
}

/* Writes cells to out (room for ENTRY_HEAD_BYTES_MAX + n x
 * ENTRY_CELL_BYTES_MAX, all of which may be written to) and returns the length:
 * n (1..16) serials, none of them 0, and values. id_before: of the cells
 * written just before in the same call of wal_append, NULL for the first. */
static inline size_t
entry_put_columns(uint8_t *out, uint64_t id, unsigned n,
    const uint32_t *serial, const uint64_t *value, const uint64_t *id_before)
{
    ASSERT(n >= 1 && n <= SCHEMA_COLUMNS_MAX);
    size_t len = entry__put_head(out, id, n, id_before);
    for (unsigned i = 0; i < n; i++) {
        len += bytes_put_varint(out + len, serial[i]);
        len += bytes_put_varint_wide(out + len, value[i]);
    }
    return len;
}

/* As entry_put_columns, with short cells where it can be, which older programs
 * cannot read. before: NULL for the first. */
static inline size_t
entry_put_record(uint8_t *out, uint64_t id, unsigned n, const uint32_t *serial,
    const uint64_t *value, const struct entry_before *before)
{
    uint64_t distance =
        before == NULL ? UINT64_MAX : bytes_zigzag(id - before->id);
    size_t len;
    ASSERT(n >= 1 && n <= SCHEMA_COLUMNS_MAX);
    if (before != NULL && entry__has_columns(before, n, serial) &&
        (distance <= id ||
            entry__bytes(distance) <=
                entry__bytes(id) + entry__said_bytes(n, serial))) {
        len =
            entry__put_first(out, ENTRY_CELLS_NEAR, ENTRY_SHORT + n, distance);
    } else if (entry__is_run(n, serial) &&
        (before == NULL ||
            entry__bytes(id) + 1 < entry__bytes(distance) + n)) {
        len = entry__put_first(out, ENTRY_CELLS, ENTRY_SHORT + n, id);
        len += bytes_put_varint(out + len, serial[0]);
    } else {
        return entry_put_columns(
            out, id, n, serial, value, before == NULL ? NULL : &before->id);
    }
    for (unsigned i = 0; i < n; i++) {
        len += bytes_put_varint_wide(out + len, value[i]);
    }
    return len;
}

/* The same for one cell. */
static inline size_t
entry_put_cell(uint8_t *out, uint64_t id, uint32_t serial, uint64_t value,
    const uint64_t *id_before)
{
    size_t len = entry__put_head(out, id, 1, id_before);
    len += bytes_put_varint(out + len, serial);
    return len + bytes_put_varint_wide(out + len, value);
}

/* Puts the values of entry from, of cells, in the place of those of entry to,
 * of the same record, where both have the same columns in the same order and
 * their values are as long in all. False: it has changed nothing; so where one
 * of them is of members, or says nothing of its columns. */
bool entry__replace(uint8_t *to, const uint8_t *from);

/* As entry_put_columns, for a counter (made, or a column added or dropped),
 * with the last serial that the schema has given out. */
size_t entry_put_counter(
    uint8_t *out, const struct schema_counter *counter, uint32_t last_serial);
size_t entry_put_dropped(
    uint8_t *out, uint32_t counter_serial, uint32_t last_serial);

/* As entry_put_columns. A numbered change, a producer (its name is right), one
 * that is gone, and one whose numbers come from elsewhere (the window is not
 * empty). Serials of producers are not 0; shard is below 2^16. */
size_t entry_put_number(
    uint8_t *out, uint32_t producer, uint16_t shard, uint64_t number);
size_t entry_put_producer(
    uint8_t *out, uint32_t producer, const struct producer_name *name);
size_t entry_put_producer_dropped(uint8_t *out, uint32_t producer);
size_t entry_put_producer_joined(
    uint8_t *out, uint32_t producer, const struct seen_window *seen);

/* As entry_put_columns: a term, whose fields are right. */
size_t entry__put_term(uint8_t *out, const struct entry_term *term);

/* As entry_put_columns: a handover, which is right; address "" for one that
 * ends. */
size_t entry_put_moved(uint8_t *out, const struct moved_one *moved);

/* As entry_put_columns: members of about, and tables that have rolled. The
 * serial is not 0. */
size_t entry_put_about(uint8_t *out, const struct entry_about *about);
size_t entry_put_rolled(uint8_t *out, const struct entry_rolled *rolled);

/* As entry_put_columns: len bytes (0..ENTRY_NAME_MAX; 0: it has gone) are the
 * name of a number. */
size_t entry_put_name(uint8_t *out, unsigned shard, uint32_t number,
    const char *bytes, size_t len);

/* True where such an entry may stand: first in the first batch of its term. */
static inline bool
entry_term_is_at(const struct entry_term *term, uint64_t seq, bool is_first)
{
    return is_first && seq == seq_first(term->term);
}

/* What the log says of itself, in a batch of its own: an entry like any other,
 * of cells with a serial that no column ever has, so that who does not know
 * of marks passes over it. */
enum entry_mark {
    ENTRY_MARK_NONE,         /* not in files: another payload */
    ENTRY_MARK_IDLE,         /* all before was synced, and then nothing came */
    ENTRY_MARK_FOLLOWED_OLD, /* as the next one, not written any more */
    ENTRY_MARK_FOLLOWED /* this file has a successor, which is durable; two
                         * bits, so that none alone can be lost unseen */
};

enum { ENTRY_MARK_BYTES = 8 };
#define ENTRY_MARK_SERIAL UINT32_MAX

void entry_put_mark(uint8_t out[ENTRY_MARK_BYTES], enum entry_mark mark);

/* Which mark a payload is. */
enum entry_mark entry_mark_of(const uint8_t *payload, size_t len);

struct entry {
    enum entry_kind kind; /* ENTRY_CELLS for both kinds of cells, and for what
                           * an entry of members tells */
    struct entry_cells cells;
    struct schema_counter counter;
    uint32_t last_serial;
    uint32_t counter_serial;   /* ENTRY_DROPPED */
    uint32_t producer;         /* ENTRY_NUMBER, ENTRY_PRODUCER..: its serial */
    uint16_t shard;            /* ENTRY_NUMBER */
    uint64_t number;           /* likewise */
    struct producer_name name; /* ENTRY_PRODUCER */
    struct seen_window seen;   /* ENTRY_PRODUCER_JOINED */
    struct entry_term term;    /* ENTRY_TERM */
    struct moved_one moved;    /* ENTRY_MOVED */
    struct entry_about about;  /* ENTRY_ABOUT */
    struct entry_rolled rolled; /* ENTRY_ABOUT_ROLLED */
    struct entry_name named;    /* ENTRY_NAME */
};

struct entry_reader {
    const uint8_t *at, *end;
    uint64_t id; /* of the cells before; 0 at the start of a payload. Pairs of
                  * an entry of members do not count */
    /* of the entry of members that `at` is in: */
    unsigned n_parts; /* that are left of it: of each change the record, then
                       * the pair; 0: `at` is in none */
    struct entry_members members;
    /* the columns of that record (of an entry of members, its records'); 0 at
     * the start of a payload */
    unsigned n_columns;
    uint32_t serial[SCHEMA_COLUMNS_MAX];
};

/* True where the reader is not at the end. */
static inline bool
entry_has_next(const struct entry_reader *reader)
{
    return reader->at < reader->end || reader->n_parts > 0;
}

/* The next entry, or the next part of one of members; of out only what its
 * kind has is written. At the end true, and ENTRY_END. False, and the reader
 * stays where it is, where bytes do not make an entry. */
bool entry_next(struct entry_reader *reader, struct entry *out);

#endif
