/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPL_ROLE_RULES_H
#define REPL_ROLE_RULES_H

/* The rules that keep what is acknowledged, each by a name, so that a test can
 * take one out and has to see that something is lost or stands still. In every
 * other build all hold, and the names are nothing. */
#define ROLE_RULES(X)                                                         \
    X(NEED, "a change is committed when as many as are needed have it")       \
    X(VOTERS, "only positions of voters count")                               \
    X(BOTH, "while the voters change both rules hold")                        \
    X(FIRST, "nothing is committed before the term's first batch")            \
    X(CARRY, "new voters have what is acknowledged before etcd has them")     \
    X(FORMER, "and what is of former terms")                                  \
    X(RETRY, "a change of voters without an answer is asked for again")       \
    X(PROMISES, "who leads has enough promises")                              \
    X(DOUBTFUL, "a promise of a doubtful node does not count")                \
    X(LONGEST, "who leads has the longest log of those who promised")         \
    X(OF_VOTERS, "of the voters: other logs may part from what counts")       \
    X(ONCE, "nothing is promised below what was promised")                    \
    X(DURABLE, "a promise is durable before it is answered")                  \
    X(PARTED, "who promises ends the stream that it follows")                 \
    X(RESIGN, "a primary that promises a later term is none any more")        \
    X(YIELD, "a candidate that promises a later term is none any more")       \
    X(TAKEN_VOTERS, "voters are those that came with the term")               \
    X(DEADLINE, "without copies nothing is acknowledged without a lease")     \
    X(ASK_FIRST, "a primary that others hear is left alone")                  \
    X(ISOLATED, "who has no authority refuses changes")                       \
    X(CAUGHT_UP, "doubt ends with all that the primary had")                  \
    X(SURE, "and with no less than counts by the level")                      \
    X(ALONE, "who leads without enough promises is the only voter before")

enum role_rule {
#define X(name, text) ROLE_RULE_##name,
    ROLE_RULES(X)
#undef X
        ROLE_RULES_N
};

#ifdef TALLYD_HOOKS
int role_rule_holds(enum role_rule rule);
#define RULE_HOLDS(name) (role_rule_holds(ROLE_RULE_##name) != 0)
#else
#define RULE_HOLDS(name) true
#endif

#endif
