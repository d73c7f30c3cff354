/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef STORE_DUMP_MEMBERS_H
#define STORE_DUMP_MEMBERS_H

#include "base/err.h"
#include "engine/engine_copy.h"
#include "schema/schema.h"
#include "tier/segment_map.h"

/* The members of the records of a dump: read for some records at a time, from
 * the engine and from segments. Part of the store; nobody else calls it. One
 * thread at a time. */

enum {
    DUMP_MEMBERS_FOUND = 1 << 16, /* of one look, at most: 1 MB */
    DUMP_MEMBERS_RECORDS = 512    /* that are looked at together, at most */
};

/* A column of members. */
struct dump_members_column {
    uint32_t serial;       /* its own */
    uint32_t pairs_serial; /* of the one column of its pairs */
    uint8_t pairs;         /* slot of the counter of pairs */
    uint8_t bits;          /* members are below 2^bits */
};

/* One member. */
struct dump_members_one {
    uint16_t record; /* which one of those that were given */
    uint8_t column;  /* which column of members */
    uint8_t value;   /* not 0 */
    uint64_t member;
};

/* Where a record has members; number 0: it has none. */
struct dump_members_want {
    uint16_t record;
    uint8_t column;
    uint32_t shard;
    uint64_t number;
};

struct dump_members {
    struct engine *engine; /* not owned, like id and number */
    struct segment_map
        *segment_map;   /* likewise; NULL: there is no cold tier */
    uint32_t found_max; /* DUMP_MEMBERS_FOUND; fewer in tests */
    unsigned n_columns; /* 1..SCHEMA_COLUMNS_MAX */
    struct dump_members_column column[SCHEMA_COLUMNS_MAX];
    struct engine_rows rows; /* owned; of one table */
    /* The records, and how far they are: */
    uint32_t n;             /* of them */
    const uint64_t *id;     /* n */
    const uint64_t *number; /* n times n_columns */
    uint32_t at;            /* all members of those before it are out */
    uint32_t width;         /* so many are tried together next; 1: a column
                             * of one record, from column and member on */
    uint8_t from_column;
    uint64_t from_member;
    struct dump_members_want *want; /* owned; for all of these */
    /* What was found last, by record, column, member: */
    uint32_t n_found;
    struct dump_members_one *found; /* owned; of found_max */
    uint64_t bad_id; /* of a record, after an error of the disk */
};

/* The caller fills engine, segment_map, found_max, n_columns and column,
 * rows.alloc, and nothing else. 0 or ERR_NO_MEMORY. */
int dump_members_init(struct dump_members *it);
void dump_members_fini(struct dump_members *it);

/* Begins with n records (at most DUMP_MEMBERS_RECORDS), which stay where they
 * are until others begin; number[i * n_columns + c] is what column c of record
 * i holds. */
void dump_members_begin(struct dump_members *it, uint32_t n,
    const uint64_t *id, const uint64_t *number);

/* True where all members have been found. */
static inline bool
dump_members_is_over(const struct dump_members *it)
{
    return it->at == it->n;
}

/* Finds the next members, and moves `at`: those of all records before it have
 * been found then, and some of its own may be among the last. None is left out
 * that has been there all the time, and none comes twice. Holds the lock of a
 * shard while lines of one table are copied; where there is a cold tier also
 * edit_lock, from the first table on, and then reads segments. 0,
 * ERR_NO_MEMORY, ERR_OTHER_COLUMNS (a column has been dropped); or ERR_CORRUPT,
 * ERR_NEWER_FORMAT, ERR_DISK: some members of record bad_id cannot be read, but
 * what was found counts, and it goes on behind them, or may be over. Not when
 * it is over. */
int dump_members_next(struct dump_members *it);

/* True of the last three of these errors. */
static inline bool
dump_members_is_of_disk(int err)
{
    return err == ERR_CORRUPT || err == ERR_NEWER_FORMAT || err == ERR_DISK;
}

/* ---- of dump_members.c and dump_members_cold.c ---- */

struct cold_pairs;

/* In the order of what is found; for qsort. */
int dump_members__by_record(const void *a, const void *b);

/* Lists what covers the pairs that are wanted, by column; under edit_lock. The
 * caller ends all that are not zeroed. Sorts the wants in its own way. 0,
 * ERR_NO_MEMORY, or ERR_OTHER_COLUMNS. */
int dump_members__list_cold(
    struct dump_members *it, uint32_t n_wants, struct cold_pairs *cold);

/* Adds what is wanted of that, behind what the engine has, which counts, and
 * leaves out what that says is gone; or *is_full. 0, ERR_NO_MEMORY, or an error
 * of cold_pairs_next. */
int dump_members__add_cold(struct dump_members *it, uint32_t n_wants,
    struct cold_pairs *cold, bool *is_full);

#endif
