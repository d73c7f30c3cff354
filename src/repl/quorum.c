/* SPDX-License-Identifier: BSD-3-Clause */
/* Of n voters `need` have each change that was acknowledged. So of any n - need
 * + 1 of them one has it. That is all there is to it, as long as those who
 * acknowledge and those who promise go by the same voters: whoever leads holds
 * to the voters of etcd and to those that may be there next. */
#include "repl/quorum.h"

#include "base/assert.h"
#include "repl/role_rules.h"

unsigned
quorum_count(uint32_t nodes)
{
    return (unsigned)__builtin_popcount(nodes);
}

bool
quorum_is_same(const struct quorum_voters *a, const struct quorum_voters *b)
{
    return a->nodes == b->nodes && a->need == b->need;
}

uint64_t
quorum_nth(uint64_t *position, unsigned n, unsigned nth)
{
    ASSERT(nth > 0);
    if (n < nth) {
        return 0;
    }
    for (unsigned i = 0; i < nth; i++) { /* the largest ones come first */
        for (unsigned k = i + 1; k < n; k++) {
            if (position[k] > position[i]) {
                uint64_t larger = position[k];

                position[k] = position[i];
                position[i] = larger;
            }
        }
    }
    return position[nth - 1];
}

unsigned
quorum_need(unsigned n, unsigned copies, unsigned least)
{
    unsigned others = n == 0 ? 0 : n - 1;
    unsigned need = others < copies ? others : copies;

    ASSERT(least <= copies);
    return 1 + (need < least ? least : need);
}

uint64_t
quorum_position(const struct quorum_voters *voters, const uint64_t *position)
{
    uint64_t of_voters[QUORUM_NODES];
    unsigned n = 0, need = RULE_HOLDS(NEED) ? voters->need : 1;

    ASSERT(voters->need > 0);
    for (unsigned i = 0; i < QUORUM_NODES; i++) {
        if (quorum_has(voters->nodes, i) || !RULE_HOLDS(VOTERS)) {
            of_voters[n++] = position[i];
        }
    }
    return quorum_nth(of_voters, n, need);
}

uint64_t
quorum_committed(
    const struct quorum_rule *rule, const uint64_t *position, uint64_t first)
{
    uint64_t seq = quorum_position(&rule->now, position);

    ASSERT(first > 0);
    if (rule->is_changing && RULE_HOLDS(BOTH)) {
        uint64_t next = quorum_position(&rule->next, position);

        seq = next < seq ? next : seq;
    }
    return seq < first && RULE_HOLDS(FIRST) ? 0 : seq;
}

bool
quorum_may_change(const struct quorum_rule *rule, const uint64_t *position,
    uint64_t first, uint64_t committed)
{
    struct quorum_voters voters = rule->next;
    unsigned n = quorum_count(voters.nodes);
    uint64_t next;

    ASSERT(rule->is_changing);
    if (voters.need > n) { /* any of them may lead: all have it */
        voters.need = n;
    }
    next = quorum_position(&voters, position);
    if (next < first && RULE_HOLDS(FORMER)) {
        return false;
    }
    return next >= committed || !RULE_HOLDS(CARRY);
}

bool
quorum_may_lead(
    const struct quorum_voters *voters, uint32_t sure, uint32_t doubtful)
{
    unsigned n = quorum_count(voters->nodes), least;

    ASSERT(voters->need > 0);
    ASSERT((sure & doubtful) == 0);
    if (!RULE_HOLDS(PROMISES)) {
        return true;
    }
    /* where more are needed than there are, nothing was acknowledged */
    least = voters->need > n ? 1 : n - voters->need + 1;
    if (!RULE_HOLDS(DOUBTFUL)) {
        sure |= doubtful;
    }
    return n > 0 &&
        (quorum_count(voters->nodes & sure) >= least ||
            (voters->nodes & ~(sure | doubtful)) == 0);
}

bool
quorum_is_heard(const struct quorum_voters *voters, uint32_t heard)
{
    return quorum_count(voters->nodes & heard) >= voters->need;
}

static bool
make_next(
    uint32_t nodes, const struct quorum_wish *wish, struct quorum_voters *next)
{
    unsigned n = quorum_count(nodes);

    next->nodes = nodes;
    next->need = quorum_need(n, wish->copies, wish->least);
    return n > 0 && n <= QUORUM_VOTERS_MAX;
}

/* The lowest of them alone. */
static uint32_t
first_of(uint32_t nodes)
{
    return nodes & -nodes;
}

bool
quorum_next(const struct quorum_voters *voters, const struct quorum_wish *wish,
    struct quorum_voters *next)
{
    uint32_t leaves = first_of(voters->nodes & wish->gone);
    uint32_t joins = first_of(wish->near & ~voters->nodes & ~wish->gone);

    if (leaves != 0 && make_next(voters->nodes & ~leaves, wish, next) &&
        next->need <= quorum_count(next->nodes)) {
        return true;
    }
    if (joins != 0 && make_next(voters->nodes | joins, wish, next)) {
        return true;
    }
    return make_next(voters->nodes, wish, next) &&
        !quorum_is_same(voters, next);
}
