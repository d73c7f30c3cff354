/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WAL_SEQ_H
#define WAL_SEQ_H

#include <stdbool.h>
#include <stdint.h>

/* Sequence numbers of batches in a replicated directory: the number of the
 * term in the upper 24 bits, and below it n, which counts from 1 in each term.
 * So no number is used twice with other contents, and a later term has the
 * larger numbers. Pure; any thread.
 *
 * Before its first term a directory has numbers that are not made so (restarts
 * << 32 | n); these are said to be of term 0 (wal/history.h). */

enum {
    SEQ_N_BITS = 40,
    SEQ_TERM_MAX = (1 << 24) - 2 /* no number is UINT64_MAX, or next to it */
};

/* A log file begins with the number that is due or one at least this much
 * above it (doc/format-log.md). */
#define SEQ_GAP (UINT64_C(1) << 32)

/* The largest n: the first number of the next term is SEQ_GAP above the one
 * that is due behind it. */
#define SEQ_N_MAX ((UINT64_C(1) << SEQ_N_BITS) - SEQ_GAP - 1)

static inline uint64_t
seq_term(uint64_t seq)
{
    return seq >> SEQ_N_BITS;
}

static inline uint64_t
seq_n(uint64_t seq)
{
    return seq & ((UINT64_C(1) << SEQ_N_BITS) - 1);
}

/* term is 1..SEQ_TERM_MAX, n is 1..SEQ_N_MAX. */
static inline uint64_t
seq_make(uint64_t term, uint64_t n)
{
    return term << SEQ_N_BITS | n;
}

/* The number of a term's first batch, which has the term's entry. */
static inline uint64_t
seq_first(uint64_t term)
{
    return seq_make(term, 1);
}

/* True where seq is a number that term (from 1 on) can have. */
static inline bool
seq_is_of(uint64_t seq, uint64_t term)
{
    return seq_term(seq) == term && seq_n(seq) >= 1 && seq_n(seq) <= SEQ_N_MAX;
}

/* The least term that may begin behind a batch of that number, of whatever
 * kind: its first number is SEQ_GAP above the one that is due. 0: there is
 * none. */
static inline uint64_t
seq_next_term(uint64_t last)
{
    uint64_t sum = last + SEQ_GAP;
    uint64_t term = seq_term(sum) + 1;

    return sum < last || term > SEQ_TERM_MAX ? 0 : term;
}

#endif
