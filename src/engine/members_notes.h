/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_MEMBERS_NOTES_H
#define ENGINE_MEMBERS_NOTES_H

#include "base/mutex.h"

#include <stdbool.h>
#include <stdint.h>

/* What an engine knows of members that are to be taken out (members.c). */

enum {
    MEMBERS_TAKE_MAX = 512,
    MEMBERS_BATCH = 128, /* notes that are done together ... */
    MEMBERS_STACKS = 64  /* ... of those whose shards are alike modulo this */
};

/* What is done with a note next. */
enum members_stage {
    MEMBERS_HERE,    /* its pairs that are here are to be taken out, */
    MEMBERS_COVERED, /* then those of covered rows, */
    MEMBERS_AGAIN    /* and then those that have come from there meanwhile */
};

/* A record whose members are to be taken out. */
struct members_note {
    uint64_t id, number;
    uint32_t serial; /* of the one column of pairs */
    uint32_t column_serial;
    uint16_t shard;
    uint8_t counter, column; /* slots: where the record's number was, */
    uint8_t pairs;           /* and of the counter of pairs */
    uint8_t bits;
    uint8_t stage;    /* enum members_stage */
    bool is_replayed; /* from a log: the number may have come back */
};

struct members_notes; /* members_notes.c */

/* What it does next: members_find.c draws it. */
enum members_find_state {
    MEMBERS_FIND_OVER,
    MEMBERS_FIND_BEGIN,
    MEMBERS_FIND_RECORDS,
    MEMBERS_FIND_PAIRS
};

/* The search for what nobody has noted; the tending thread's. */
struct members_find {
    enum members_find_state state;
    unsigned slot, column, shard; /* where it is */
    uint32_t serial;              /* of the column */
    uint64_t first, end;          /* of numbers: the window's; behind all */
    uint64_t row;                 /* the next one to be looked at */
    uint64_t n_evictions;         /* of the shard, at the beginning */
    uint64_t *map;                /* owned; NULL: none yet */
};

/* What is to be taken out (members.h). */
struct members {
    struct mutex lock;                         /* of these: */
    struct members_notes *top[MEMBERS_STACKS]; /* owned; NULL: none */
    struct members_notes *covered;             /* owned; likewise */
    uint64_t n_waiting, n_lost, n_unread, n_pairs;
    /* the tending thread's: */
    unsigned stack; /* the last one that notes were taken from */
    unsigned n_now; /* notes of one shard and counter of pairs, by number */
    struct members_note now[MEMBERS_BATCH];
    bool is_last;   /* nothing is to be looked at behind row[] */
    uint64_t from;  /* the next row to look at */
    unsigned n, at; /* of row[] */
    uint64_t row[MEMBERS_TAKE_MAX];
    struct members_find find;
    bool has_left; /* one of covered rows is under way: */
    struct members_note left;
};

#endif
