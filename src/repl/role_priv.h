/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPL_ROLE_PRIV_H
#define REPL_ROLE_PRIV_H

#include "repl/role.h"

/* What the parts of repl/role share. */

enum { ROLE_TURN_US = 100000 /* role_next is to be asked as often */ };

static inline bool
role__leads(const struct role *role)
{
    return role->state >= ROLE_PRIMARY;
}

static inline bool
role__is_candidate(const struct role *role)
{
    return role->state > ROLE_REPLICA && role->state < ROLE_PRIMARY;
}

/* All changes of state; asserts that there is such a one. */
void role__move(struct role *role, enum role_state state, uint64_t now_us);

/* A term is to be promised, where it is a later one. */
void role__promise(struct role *role, uint64_t term);

/* repl/role_candidate.c. The answer to SET of FORCING. */
void role__forced(struct role *role, enum role_answer answer,
    uint64_t revision, uint64_t now_us);
/* Of a candidate: it is none any more. */
void role__give_up(struct role *role, uint64_t now_us);
void role__campaign(struct role *role, uint64_t now_us);
/* True: there is an order. */
bool role__candidate_next(
    struct role *role, uint64_t now_us, struct role_order *order);

/* repl/role_primary.c. The log has begun its term. */
void role__lead(struct role *role, uint64_t seq, uint64_t now_us);
void role__resign(struct role *role, uint64_t now_us);
/* A look, or the log, has changed. */
void role__look_at_voters(struct role *role, uint64_t now_us);
void role__count(struct role *role);
bool role__primary_next(
    struct role *role, uint64_t now_us, struct role_order *order);

#endif
