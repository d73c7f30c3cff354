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
    MEMBERS_AGAIN,   /* then those that have come from there meanwhile, */
    MEMBERS_STORED   /* and then the stored note, which is in a covered row */
};

/* A number that was given up: its pairs are to be taken out. */
struct members_note {
    uint64_t number;
    uint32_t serial; /* of the one column of pairs */
    uint16_t shard;
    uint8_t pairs; /* slot of the counter of pairs */
    uint8_t bits;
    uint8_t stage; /* enum members_stage */
};

struct members_notes; /* members_notes.c */

/* What it does next: members_find.c draws it. */
enum members_find_state {
    MEMBERS_FIND_OVER,
    MEMBERS_FIND_BEGIN,
    MEMBERS_FIND_STORED,
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
    bool is_looking; /* for what was given up before the start */
    /* the tending thread's: */
    unsigned stack; /* the last one that notes were taken from */
    unsigned n_now; /* notes of one shard and counter of pairs, by number */
    struct members_note now[MEMBERS_BATCH];
    bool is_last;   /* nothing is to be looked at behind row[] */
    uint64_t from;  /* the next row to look at */
    unsigned n, at; /* of row[] */
    uint64_t row[MEMBERS_TAKE_MAX];
    unsigned n_ended; /* notes whose pairs here are out, and that have been
                       * ended or passed on */
    struct members_find find;
    bool has_left; /* one of covered rows is under way: */
    struct members_note left;
};

#endif
