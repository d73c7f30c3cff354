/* SPDX-License-Identifier: BSD-3-Clause */
/* Names are few: each is looked for from the first to the last. Who votes,
 * leads or is ordered to lead gets a number before all others, so that a state
 * of as many nodes as there may be leaves none of them out: a set of voters
 * that lacks one would be another set. */
#include "repl/roster.h"

#include "base/assert.h"
#include "wal/seq.h"

#include <stdio.h>
#include <string.h>

_Static_assert((int)QUORUM_VOTERS_MAX == (int)CONTROL_VOTERS_MAX &&
        (int)QUORUM_NODES >= (int)CONTROL_NODES_MAX,
    "all voters, and all nodes, can have numbers");

static bool
is_same(const struct node_name *a, const struct node_name *b)
{
    return a->len == b->len && memcmp(a->text, b->text, a->len) == 0;
}

void
roster_init(struct roster *roster, const struct node_name *self)
{
    ASSERT(self->len > 0);
    memset(roster, 0, sizeof *roster);
    roster->name[ROSTER_SELF] = *self;
}

unsigned
roster_find(const struct roster *roster, const struct node_name *name)
{
    for (unsigned i = 0; i < QUORUM_NODES; i++) {
        if (name->len > 0 && is_same(&roster->name[i], name)) {
            return i;
        }
    }
    return ROLE_NOBODY;
}

/* A number that nobody has, or else one that nobody needs; ROLE_NOBODY. */
static unsigned
find_free(const struct roster *roster)
{
    uint32_t needed = roster->stated | roster->held | quorum_bit(ROSTER_SELF);
    unsigned unneeded = ROLE_NOBODY;

    for (unsigned i = 0; i < QUORUM_NODES; i++) {
        if (roster->name[i].len == 0) {
            return i;
        }
        if (unneeded == ROLE_NOBODY && !quorum_has(needed, i)) {
            unneeded = i;
        }
    }
    return unneeded;
}

unsigned
roster_give(
    struct roster *roster, const struct node_name *name, uint32_t *fresh)
{
    unsigned number = roster_find(roster, name);

    if (number != ROLE_NOBODY || name->len == 0) {
        return number;
    }
    number = find_free(roster);
    if (number != ROLE_NOBODY) {
        if (roster->name[number].len != 0) {
            *fresh |= quorum_bit(number);
        }
        roster->name[number] = *name;
        roster->repl[number].text[0] = '\0';
    }
    return number;
}

/* One more that the state names. */
static unsigned
state_one(struct roster *roster, const struct node_name *name, uint32_t *fresh)
{
    unsigned number = roster_give(roster, name, fresh);

    if (number != ROLE_NOBODY) {
        roster->stated |= quorum_bit(number);
    }
    return number;
}

struct quorum_voters
roster_voters(struct roster *roster, const struct control_voters *voters,
    uint32_t *fresh)
{
    struct quorum_voters out = {0};

    if (voters->revision == 0) {
        return out;
    }
    ASSERT(voters->n <= CONTROL_VOTERS_MAX);
    out.need = voters->need;
    for (uint32_t i = 0; i < voters->n; i++) {
        unsigned number = state_one(roster, &voters->node[i], fresh);

        ASSERT(number != ROLE_NOBODY);
        out.nodes |= quorum_bit(number);
    }
    return out;
}

static bool
can_be(const struct control_state *state)
{
    return state->term <= SEQ_TERM_MAX && state->primary.term <= state->term &&
        (state->voters.revision == 0 ||
            (state->voters.n > 0 && state->voters.need > 0));
}

bool
roster_look(struct roster *roster, const struct control_state *state,
    struct role_look *look, uint32_t *fresh)
{
    *fresh = 0;
    if (!can_be(state)) {
        return false;
    }
    roster->stated = 0;
    *look = (struct role_look){.revision = state->revision,
        .term = state->term,
        .term_rev = state->term_revision,
        .voters_rev = state->voters.revision};
    look->voters = roster_voters(roster, &state->voters, fresh);
    look->holder = ROLE_NOBODY;
    if (state->primary.revision != 0) {
        look->holder = state_one(roster, &state->primary.node, fresh);
        ASSERT(look->holder != ROLE_NOBODY);
        look->key_term = state->primary.term;
        look->key_rev = state->primary.revision;
    }
    look->ordered = state_one(roster, &state->order.to, fresh);
    for (uint32_t i = 0; i < state->n_nodes; i++) {
        unsigned number = state_one(roster, &state->node[i].name, fresh);

        if (number != ROLE_NOBODY) {
            look->nodes |= quorum_bit(number);
            roster->repl[number] = state->node[i].repl;
        }
    }
    if (look->holder != ROLE_NOBODY &&
        state->primary.repl.text[0] != '\0') { /* as it is in this term */
        roster->repl[look->holder] = state->primary.repl;
    }
    return true;
}

static struct control_voters
voters_of(const struct roster *roster, const struct quorum_voters *voters,
    uint64_t revision, uint64_t term)
{
    struct control_voters out = {
        .revision = revision, .term = (uint32_t)term, .need = voters->need};

    for (unsigned i = 0; i < QUORUM_NODES; i++) {
        if (quorum_has(voters->nodes, i)) {
            ASSERT(out.n < CONTROL_VOTERS_MAX);
            ASSERT(roster->name[i].len > 0);
            out.node[out.n++] = roster->name[i];
        }
    }
    return out;
}

static bool
ask_to_take(const struct roster *roster, const struct role_order *order,
    const struct control_primary *self, uint64_t seen_term,
    struct control_request *out)
{
    uint64_t term = seen_term + 1 > order->term ? seen_term + 1 : order->term;

    if (term > SEQ_TERM_MAX) {
        return false;
    }
    out->ask = CONTROL_TAKE;
    out->of.take.primary = *self;
    out->of.take.primary.revision = order->key_rev;
    out->of.take.primary.term = (uint32_t)term;
    out->of.take.term_revision = order->term_rev;
    out->of.take.voters = voters_of(roster, &order->voters, 0, term);
    return true;
}

bool
roster_request(const struct roster *roster, const struct role_order *order,
    const struct control_primary *self, uint64_t seen_term,
    struct control_request *out)
{
    memset(out, 0, sizeof *out);
    switch (order->what) {
    case ROLE_DO_TAKE:
        return ask_to_take(roster, order, self, seen_term, out);
    case ROLE_DO_KEEP:
        out->ask = CONTROL_KEEP;
        out->of.keep.primary = *self;
        out->of.keep.primary.revision = 0;
        out->of.keep.primary.term = (uint32_t)order->term;
        out->of.keep.term_revision = order->term_rev;
        return true;
    case ROLE_DO_SET:
        out->ask = CONTROL_VOTERS;
        out->of.voters =
            voters_of(roster, &order->voters, order->voters_rev, order->term);
        return true;
    case ROLE_DO_HAND:
        out->ask = CONTROL_HAND;
        out->of.hand.to = roster->name[order->node];
        return true;
    default:
        ASSERT(order->what == ROLE_DO_REVOKE);
        out->ask = CONTROL_GIVE_UP;
        return true;
    }
}

void
roster_names(
    const struct roster *roster, uint32_t nodes, char *out, size_t size)
{
    size_t at = 0;

    ASSERT(size > 0);
    out[0] = '\0';
    for (unsigned i = 0; i < QUORUM_NODES; i++) {
        if (quorum_has(nodes, i) && at < size) {
            int n = snprintf(out + at, size - at, "%s%.*s", at == 0 ? "" : ",",
                roster->name[i].len, roster->name[i].text);

            at += n > 0 ? (size_t)n : 0;
        }
    }
}
