/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_LAB_H
#define BENCH_LAB_H

#include "bench/hot.h"
#include "bench/posts.h"
#include "bench/sheet.h"

#include <stdbool.h>
#include <stdint.h>

/* The parts of t/bench/engine: what was asked for, and the figures so far. */

#define LAB_PARTS(X)                                                          \
    X(LOOKUP, "lookup", "lookups and increments in a large table")            \
    X(RIVALS, "rivals", "the same in the classic layout and in uthash")       \
    X(INSERT, "insert", "filling, growth included, in two orders")            \
    X(MEMORY, "memory", "bytes a record, distribution by distribution")       \
    X(CHURN, "churn", "the table after records have come and gone")           \
    X(MEMBERS, "members", "members: adds, and pages of a hundred")

enum lab_part {
#define X(name, word, text) LAB_##name,
    LAB_PARTS(X)
#undef X
        LAB_PART_COUNT
};

enum { LAB_USER_BITS_MIN = 16, LAB_USER_BITS_MAX = 44 };

struct lab {
    bool is_wanted[LAB_PART_COUNT];
    bool is_quick;
    uint64_t records; /* 0: each part's own */
    uint64_t draws;   /* ids drawn before, then asked in a ring */
    unsigned rounds;
    unsigned shards;
    enum reader_isa isa;
    uint64_t seed;
    unsigned user_bits; /* of members: users are below 2^user_bits */
    const char *only;   /* text in the names of memory's cases, or NULL */
    const char *tsv;    /* file of ids and numbers, or NULL */
    struct sheet lookup, insert, memory, bytes, churn, members;
};

/* How many records a part is to have; the numbers are its own choices. */
static inline uint64_t
lab_records(const struct lab *lab, uint64_t usual, uint64_t quick)
{
    return lab->records != 0 ? lab->records : lab->is_quick ? quick : usual;
}

/* Sets posts->n so that about that many posts have a record. */
void lab_size(struct posts *posts, uint64_t records);

/* An engine of its own for these posts. */
void lab_start(
    const struct lab *lab, const struct posts *posts, struct hot *hot);

/* Reads at least LAB_CHECKS posts, or all, and compares. */
enum { LAB_CHECKS = 200000 };
void lab_check(struct hot *hot, const struct posts *posts);

/* Each fills in its sheets, whose columns it sets, and prints them. */
void lab_speed(struct lab *lab); /* lookup, rivals, insert */
void lab_memory(struct lab *lab);
void lab_churn(struct lab *lab);
void lab_members(struct lab *lab);

#endif
