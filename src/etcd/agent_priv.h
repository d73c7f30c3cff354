/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ETCD_AGENT_PRIV_H
#define ETCD_AGENT_PRIV_H

#include "etcd/agent.h"

/* What the agent's two files share. */

enum {
    AGENT__NS_PER_MS = 1000000,
    AGENT__MS_PER_S = 1000,
    AGENT__ALIVE_PARTS = 3 /* a lease is asked for again each third of it */
};

uint64_t agent__after_ms(uint64_t now_ns, uint64_t ms);
uint64_t agent__ttl_ms(const struct agent *agent);

/* Of a lease that was asked for at that time: until when it surely is there. */
uint64_t agent__deadline_of(const struct agent *agent, uint64_t sent_ns);

void agent__set_why(char why[CONTROL_WHY_MAX + 1], const char *text);

/* Gives the result of what was asked, if one is due; else the address of one
 * that nobody reads. */
struct control_result *agent__add_result(struct agent *agent,
    enum control_ask ask, enum control_outcome outcome, const char *why);

/* Begins a call about that lease, or 0. body: as keys.h makes it; NULL: memory
 * was out, which is as if nobody could be reached. */
void agent__post(struct agent *agent, enum agent_call call, uint64_t lease,
    char *body, uint64_t now_ns);

/* The lease is to end; id 0: there is none. */
void agent__end_lease(struct agent *agent, uint64_t id, uint64_t now_ns);

/* That lease, if it is among those that are to end, has, or is left to end by
 * itself. */
void agent__forget_ending(struct agent *agent, uint64_t id, bool is_over);

/* True while a TAKE or a KEEP is under way; a lease comes of it, or a key. */
bool agent__is_taking(const struct agent *agent);

/* Who waits with GIVE_UP hears of it, once no lease is left. */
void agent__settle_give_up(struct agent *agent);

/* The primary's lease is over, or must not be relied on any more. */
void agent__lose_primary(struct agent *agent, const char *why);

/* It is to end as well. */
void agent__drop_primary(
    struct agent *agent, const char *why, uint64_t now_ns);
void agent__lose_node(struct agent *agent);

#endif
