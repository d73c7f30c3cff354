/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WAL_HISTORY_H
#define WAL_HISTORY_H

#include "wal/seq.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The terms of a replicated log: which primary wrote what, so that two copies
 * tell how far they are the same. (wal/histories.h is about another thing:
 * which process wrote which file.) Pure; any thread.
 *
 * A term has one writer, and its first batch draws 64 random bits, the branch.
 * So of two logs that both have a term with the same branch all before that
 * term is the same, and in it what both have.
 *
 * What a directory has from before its first term is term 0: it may have any
 * numbers, from 1 on, and its branch is that of the first term that began
 * behind it. */

enum {
    HISTORY_TERMS = 64, /* so many are kept; of older ones nothing is known */
    HISTORY_BYTES_MAX = 1 + HISTORY_TERMS * (4 + 8 + 10)
};

/* The last of the newest term. */
#define HISTORY_OPEN UINT64_MAX

struct history_term {
    uint64_t term;   /* 0..SEQ_TERM_MAX */
    uint64_t branch; /* not 0 */
    uint64_t last;   /* number of its last batch; of the newest HISTORY_OPEN */
};

/* Oldest first; all zero is empty: no term has begun. */
struct history {
    unsigned n;
    struct history_term at[HISTORY_TERMS];
};

/* True where terms ascend, each last is a number that the term can have and,
 * of term 0, lies below the next one; the newest is open, and no other is. */
bool history__is_sound(const struct history *history);

/* True where the log of that history can end with batch last: in its newest
 * term. Of an empty history any number is right, 0 (no batch) too. */
bool history_is_end(const struct history *history, uint64_t last);

/* The least term that may begin behind batch last (0: none). 0: there is no
 * further term. */
uint64_t history_next_term(const struct history *history, uint64_t last);

/* A term begins behind batch last; its entry says so. What was the newest one
 * ends there; before the first one there is term 0, where last is not 0. The
 * oldest of more than HISTORY_TERMS is dropped. A term that is known already
 * changes nothing, for entries may be read twice. False, and nothing has
 * changed: that cannot be. */
bool history_begin(
    struct history *history, uint64_t term, uint64_t branch, uint64_t last);

/* The term that batch seq is of; NULL: it is older than all that are kept, or
 * no batch of this history (above the last of its term). */
const struct history_term *history_find(
    const struct history *history, uint64_t seq);

/* True where batch next (not 0) may stand right behind batch seq (0: at the
 * very beginning) in the log of that history: n is one more, or its term is the
 * next one and seq the last before that. In term 0 numbers may leave out
 * SEQ_GAP or more, as files of a log may. */
bool history_follows(
    const struct history *history, uint64_t seq, uint64_t next);

/* The batch right before seq, which is one of that history or the next one: of
 * a term's first batch the last one of the term before. 0: there is none. What
 * lies before the oldest term that is kept is taken for seq - 1. */
uint64_t history__before(const struct history *history, uint64_t seq);

/* The log is cut behind batch seq: later terms are forgotten, and that of seq
 * is open again. seq is a batch of it, or 0: the history is empty then. */
void history_cut(struct history *history, uint64_t seq);

enum history_fit {
    HISTORY_FITS, /* all that the node has is here, in the same place */
    HISTORY_CUT,  /* it is up to *seq, and not behind it */
    HISTORY_APART /* nothing is known to be the same */
};

/* Does a node, whose log ends with batch node_last, fit the log of history,
 * which ends with batch last? Both are sound and end so. *seq: the last batch
 * that both have; 0 for HISTORY_APART. What no longer is in the log does not
 * matter here. A node without any batch fits, with 0; one that has batches and
 * no history is HISTORY_APART. */
enum history_fit history_fit(const struct history *history, uint64_t last,
    const struct history *node, uint64_t node_last, uint64_t *seq);

/* As bytes (doc/format-log.md has varints): how many terms, 1 byte; for each
 * varint: its term, less the one before; 8 bytes: branch; and, but for the
 * newest, varint: its last, less the number before its first (n; of term 0
 * the number itself). Writes to out (room for HISTORY_BYTES_MAX), returns the
 * length. */
size_t history_put(const struct history *history, uint8_t *out);

/* Reads at *in, which ends before end, and moves *in behind. False: no sound
 * history is there; *in stays, *out may have changed. */
bool history_get(const uint8_t **in, const uint8_t *end, struct history *out);

#endif
