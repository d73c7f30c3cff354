/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef STORE_DUMP_MEMBERS_H
#define STORE_DUMP_MEMBERS_H

#include "engine/engine_copy.h"
#include "schema/schema.h"

/* The members of the records of a dump: read from the engine for some records
 * at a time. Part of the store; nobody else calls it. One thread at a time. */

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
    uint32_t found_max;    /* DUMP_MEMBERS_FOUND; fewer in tests */
    unsigned n_columns;    /* 1..SCHEMA_COLUMNS_MAX */
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
};

/* The caller fills engine, found_max, n_columns and column, rows.alloc, and
 * nothing else. 0 or ERR_NO_MEMORY. */
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
 * shard while lines of one table are copied. 0, ERR_NO_MEMORY,
 * ERR_OTHER_COLUMNS (a column has been dropped). Not when it is over. */
int dump_members_next(struct dump_members *it);

#endif
