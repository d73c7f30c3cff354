/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPL_QUORUM_H
#define REPL_QUORUM_H

#include <stdbool.h>
#include <stdint.h>

/* What makes a change committed, and how many nodes have to promise before one
 * of them leads. Both ask the voters: a set of nodes, and how many of them
 * "need" to have a change. Who changes the set holds both rules until etcd has
 * the new one. Pure; any thread.
 *
 * Nodes are numbers below QUORUM_NODES, given out by the caller; a set of them
 * is a bit for each. Positions are numbers of batches; 0: none. */

enum { QUORUM_NODES = 32, QUORUM_VOTERS_MAX = 5 };

struct quorum_voters {
    uint32_t nodes; /* at most QUORUM_VOTERS_MAX of them; 0: not known */
    unsigned need; /* of them have to have a change; >= 1. More than there are:
                     * nothing is committed */
};

/* What holds at a primary. */
struct quorum_rule {
    struct quorum_voters now;
    struct quorum_voters next; /* while is_changing it holds as well */
    bool is_changing;
};

static inline uint32_t
quorum_bit(unsigned node)
{
    return UINT32_C(1) << node;
}

static inline bool
quorum_has(uint32_t nodes, unsigned node)
{
    return (nodes >> node & 1) != 0;
}

unsigned quorum_count(uint32_t nodes);

/* True where both are the same. */
bool quorum_is_same(
    const struct quorum_voters *a, const struct quorum_voters *b);

/* The nth largest of n positions; 0 where there are not so many. nth is not 0.
 * They change places. */
uint64_t quorum_nth(uint64_t *position, unsigned n, unsigned nth);

/* How many of n voters need to have a change, where `copies` besides the
 * primary's are wanted and `least` of them (<= copies) at the least. May be
 * more than n. */
unsigned quorum_need(unsigned n, unsigned copies, unsigned least);

/* The batch up to which so many voters have all. position: of each node, by
 * its own level, QUORUM_NODES of them. */
uint64_t quorum_position(
    const struct quorum_voters *voters, const uint64_t *position);

/* The same by all that hold at this moment; 0 below first, the first batch of
 * the term: what is older counts only once something of the term does. */
uint64_t quorum_committed(
    const struct quorum_rule *rule, const uint64_t *position, uint64_t first);

/* True where the next voters may be written to etcd: they have all that was
 * acknowledged, up to committed, and all of former terms, which is what lies
 * before first. Else who is promoted by them alone may lack it. */
bool quorum_may_change(const struct quorum_rule *rule,
    const uint64_t *position, uint64_t first, uint64_t committed);

/* True where so many have promised that one of them has each change that was
 * acknowledged. sure: who has promised and has lost nothing; doubtful: who has
 * promised, and may have. Others than the voters do not count. */
bool quorum_may_lead(
    const struct quorum_voters *voters, uint32_t sure, uint32_t doubtful);

/* True where as many voters as are needed are among heard. */
bool quorum_is_heard(const struct quorum_voters *voters, uint32_t heard);

/* How voters are to change, one node at a time. */
struct quorum_wish {
    unsigned copies, least; /* as quorum_need */
    uint32_t gone;          /* are to leave: not heard, doubtful, disk full */
    uint32_t near; /* may join: stream, have nearly all, not doubtful */
};

/* True where there is something to change: *next. Who is gone leaves only where
 * as many stay as are needed then. */
bool quorum_next(const struct quorum_voters *voters,
    const struct quorum_wish *wish, struct quorum_voters *next);

#endif
