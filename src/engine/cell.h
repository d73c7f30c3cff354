/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_CELL_H
#define ENGINE_CELL_H

#include "base/fold.h"
#include "schema/schema.h"

#include <stdint.h>

/* What is asked of the engine: reads of cells and changes of records. */

/* Names one cell: the engine knows slots and serials, not names. A key whose
 * serial is not that of the column now in the slot is answered as gone, so a
 * request that was resolved before a drop can never touch later data. */
struct cell_key {
    uint64_t id;
    uint32_t serial; /* of the column */
    uint8_t counter; /* slot of the counter, 0..255 */
    uint8_t column;  /* slot of the column, 0..15 */
};

struct engine_base; /* engine/cover.h */

enum cell_state {
    CELL_DEFAULT,   /* at its default (there may be no record at all) */
    CELL_SET,       /* differs from its default */
    CELL_GONE,      /* the column has been dropped */
    CELL_UNREADABLE /* it is on the disk, which does not give it out; of the
                     * store, never of the engine */
};

enum change_op {
    CHANGE_SET,     /* every column named becomes its operand */
    CHANGE_ADD,     /* as SET, only while all named columns are default, or
                     * with of_record all columns there are */
    CHANGE_REPLACE, /* as SET, only while one of these is not default */
    CHANGE_CAS,     /* as SET, only while record_cas of these columns is cas */
    CHANGE_INCR,    /* plus operand, saturating at the column's max */
    CHANGE_DECR,    /* minus operand, stopping at 0 */
    CHANGE_DELETE,  /* back to the default */
    /* Of a mark, one column: see change_mark.c. The first seven are what those
     * above are of a number, in their order. */
    CHANGE_MARK_SET, /* to the operand, but never back nor past the source */
    CHANGE_MARK_ADD,
    CHANGE_MARK_REPLACE,
    CHANGE_MARK_CAS,
    CHANGE_MARK_INCR, /* plus operand, not past the source */
    CHANGE_MARK_DECR,
    CHANGE_MARK_DELETE, /* no mark */
    CHANGE_MARK_FORGET, /* no mark, only where what is stored is the operand
                         * and counts as none, by the source; of no client */
    CHANGE_READ_ALL,    /* nothing is unread; cas is of what is */
    /* Of a member, see struct change_member: what the first seven are of a
     * number, in their order. */
    CHANGE_MEMBER_SET,
    CHANGE_MEMBER_ADD,
    CHANGE_MEMBER_REPLACE,
    CHANGE_MEMBER_CAS,
    CHANGE_MEMBER_INCR,
    CHANGE_MEMBER_DECR,
    CHANGE_MEMBER_DELETE
};

/* What INCR and DECR of one column do where it is at its default. Only under
 * absent=miss does that mean that it is absent: elsewhere NOT_ABSENT counts,
 * and so does TO_INITIAL with an initial that is not above the default. */
enum change_absent {
    CHANGE_FROM_DEFAULT, /* count from the default */
    CHANGE_TO_INITIAL, /* the value becomes initial, and nothing is counted */
    CHANGE_NOT_ABSENT  /* ERR_NOT_FOUND */
};

/* Where the change of a mark finds its source. */
enum change_source_from {
    SOURCE_HERE,      /* a column of the same record, as it is at the change */
    SOURCE_GIVEN,     /* it is value: read before, and may be older */
    SOURCE_GONE,      /* it has been dropped: ERR_GONE */
    SOURCE_UNREADABLE /* it is on the disk, which does not give it out:
                       * ERR_COLD_READ */
};

/* What the change of a mark is judged by. */
struct change_source {
    enum change_source_from from;
    uint32_t serial; /* SOURCE_HERE: of the column in that slot */
    uint8_t column;
    bool unmarked_is_none; /* without a mark nothing is unread, else all */
    bool of_members; /* SOURCE_GIVEN: value is the largest member. Of READ_ALL
                      * with compares, operand[0] to operand[1] are the
                      * positions that as much is behind as cas says */
    uint64_t value;  /* SOURCE_GIVEN; not above the mark's max */
    uint64_t forget; /* a mark so far below the source, and one more, counts as
                      * none; 0: none does */
};

/* Which member a change is of. The change names the record that has members,
 * and of it one column, that of the members (SCHEMA_MEMBERS); operand, value,
 * cas, initial and absent are those of the member's value, which is at its
 * default 0 where it is no member. One that becomes a member, or ceases to be
 * one, is counted in the same change. */
struct change_member {
    uint8_t counter;       /* slot of the counter of pairs */
    uint8_t bits;          /* member < 2^bits */
    uint8_t counts_column; /* slot of the column that counts them */
    bool counts;           /* there is one */
    int8_t step; /* out, where err is 0: 1 it has become a member, -1 it has
                  * ceased to be one, 0 neither */
    uint32_t serial;        /* of the one column of pairs, in slot 0 */
    uint32_t counts_serial; /* of the column that counts them */
    uint64_t member;
    const struct engine_base *base; /* the pair where the engine has none, as
                                     * change.base is the record */
};

/* One change of one record, all or nothing. The caller owns it; only the
 * first n_columns entries of each array are used.
 *
 * A change that a producer has numbered is done once: where the number has been
 * seen in its shard, the change is answered as done, with the values now
 * (is_repeat), and changes nothing. A refused one uses no number up. */
struct change {
    uint64_t id;
    uint64_t cas; /* CAS, compares: see record_cas */
    enum change_op op;
    enum change_absent absent;
    bool compares;  /* of any op: only where cas is that of the columns */
    bool is_redo;   /* SET, of all columns that the record has, as it was told
                   * elsewhere (engine_set_whole): it has been judged there,
                   * so nothing but memory refuses it, neither maxjump nor that
                   * a column counts members; and of a covered record no base
                   * is wanted */
    bool of_record; /* of ADD and REPLACE: whether there is a record is what
                     * counts, whichever columns are named */
    uint8_t pair_bits; /* of is_redo: where the record is the pair of a member,
                        * members are below 2^pair_bits; else 0 */
    uint16_t producer_slot; /* these three: engine/marks.h */
    uint32_t producer;      /* serial; 0: the change is not numbered */
    uint64_t number;
    uint64_t initial;                     /* CHANGE_TO_INITIAL */
    uint8_t counter;                      /* slot */
    uint8_t n_columns;                    /* 1..16 */
    uint8_t column[SCHEMA_COLUMNS_MAX];   /* slots */
    uint32_t serial[SCHEMA_COLUMNS_MAX];  /* of those columns */
    uint64_t operand[SCHEMA_COLUMNS_MAX]; /* value or delta */
    uint16_t kept; /* SET, ADD, REPLACE, CAS: bit i: columns i named stays as
                    * it is, and its operand is 0; DELETE: it has no part in
                    * what is compared; of others nothing */
    union {
        struct change_source source; /* of a mark */
        struct change_member member; /* of a member */
    };
    const struct engine_base *base; /* the record where the engine has
                                           * none; NULL: unknown */
    const struct engine_name *name; /* NULL, or the id follows from it: then
                                     * id is out, too (engine/naming.h) */
    /* out: */
    /* err: 0, ERR_NOT_STORED (add, replace), ERR_EXISTS (cas), ERR_NOT_FOUND
     * (delete of what is default already, cas of a default cell under
     * absent=miss), ERR_OVER_MAX (set ...), ERR_OVERFLOW (incr under
     * overflow=error), ERR_GONE, ERR_JUMP (the id is beyond maxjump),
     * ERR_HOT_FULL, ERR_NO_MEMORY, ERR_COLD (the record is not here and what
     * covers it was not brought: see engine_change), ERR_COLD_READ (source),
     * ERR_OLD_TX (its number is below the window), ERR_PRODUCER_GONE; nothing
     * has changed unless it is 0 */
    int err;
    uint8_t n_saturated; /* columns that incr stopped at their max */
    bool is_repeat;      /* of a numbered change: done before, not now */
    bool is_moved;       /* of a mark, where err is 0: it is another one now */
    uint64_t value[SCHEMA_COLUMNS_MAX]; /* the values now; valid if err is 0 */
};

/* True for a change that looks at all columns, whichever it names. */
static inline bool
change_is_of_record(const struct change *change)
{
    return (change->op == CHANGE_ADD || change->op == CHANGE_REPLACE) &&
        change->of_record;
}

/* True for the change of a mark. */
static inline bool
change_is_of_mark(const struct change *change)
{
    return change->op > CHANGE_DELETE && change->op <= CHANGE_READ_ALL;
}

/* True for the change of a member. */
static inline bool
change_is_of_member(const struct change *change)
{
    return change->op > CHANGE_READ_ALL;
}

/* How far an id has read, where `mark` is stored; 0: not at all, or it is
 * forgotten. */
static inline uint64_t
mark_position(uint64_t mark, uint64_t source, uint64_t forget)
{
    bool is_forgotten = forget != 0 && source > mark && source - mark > forget;
    return is_forgotten ? 0 : mark;
}

/* What is behind a position. */
static inline uint64_t
mark_unread(uint64_t position, uint64_t source, bool unmarked_is_none)
{
    if (source <= position || (position == 0 && unmarked_is_none)) {
        return 0;
    }
    return source - position;
}

/* The cas unique of a value: value + 1, except that 2^64-1 gives 2^64-1 too
 * (0 is never given out): the one documented collision. */
static inline uint64_t
cell_cas(uint64_t value)
{
    return value == UINT64_MAX ? UINT64_MAX : value + 1;
}

/* The cas unique of n columns of a record (1..16), in an order that the caller
 * keeps to: of one column that of its value, of more a hash of their serials
 * and values, 1 to 2^63-1, for some clients take no more (Java's long, and
 * libmemcached, which sends nothing where it has 20 digits). The same columns
 * with the same values have the same unique, whatever they were meanwhile;
 * other values have another one, but for one case in 2^63. It is no defence
 * against who chooses values so that it stays. Pure. */
static inline uint64_t
record_cas(const uint32_t *serial, const uint64_t *value, unsigned n)
{
    uint64_t hash = n;
    if (n == 1) {
        return cell_cas(value[0]);
    }
    for (unsigned i = 0; i < n; i++) {
        hash = fold_id(fold_id(hash ^ serial[i]) ^ value[i]);
    }
    hash >>= 1;
    return hash == 0 ? 1 : hash;
}

#endif
