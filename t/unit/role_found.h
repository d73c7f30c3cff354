/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIT_ROLE_FOUND_H
#define UNIT_ROLE_FOUND_H

#include "repl/role_rules.h"

/* A seed of unit/role_world.h that finds that a rule is out, of each rule that
 * one of some thousand finds. The others have a schedule in check_role.c, which
 * asks that none is left. */
static const struct {
    enum role_rule rule;
    unsigned seed;
} role_found[] = {
    {ROLE_RULE_NEED, 1},
    {ROLE_RULE_VOTERS, 27},
    {ROLE_RULE_BOTH, 815},
    {ROLE_RULE_CARRY, 2422},
    {ROLE_RULE_RETRY, 345},
    {ROLE_RULE_PROMISES, 15},
    {ROLE_RULE_DOUBTFUL, 20},
    {ROLE_RULE_LONGEST, 5},
    {ROLE_RULE_PARTED, 259},
    {ROLE_RULE_RESIGN, 647},
    {ROLE_RULE_TAKEN_VOTERS, 1323},
    {ROLE_RULE_DEADLINE, 353},
    {ROLE_RULE_ALONE, 586},
    {ROLE_RULE_SURE, 652880},
    {ROLE_RULE_OF_VOTERS, 705530},
};

#endif
