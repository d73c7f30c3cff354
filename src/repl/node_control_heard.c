/* SPDX-License-Identifier: BSD-3-Clause */
/* What comes of a node's streams, and from other nodes that ask and answer, put
 * into numbers and told to the machine. */
#include "base/assert.h"
#include "repl/node_control_priv.h"
#include "repl/node_priv.h"
#include "repl/semi_sync.h"

_Static_assert((int)ROLE_TERMS_MAX == (int)LINK_TERMS_MAX,
    "what streams take for a term of this group, the machine does");

static struct node_name
name_at(const char *text, uint8_t len)
{
    struct node_name name = {0};

    (void)node_name_set(&name, text, len);
    return name;
}

void
control__hold_numbers(struct node *node)
{
    struct node_control *control = &node->control;
    const struct role *role = &control->role;
    uint32_t held = 0;

    if (role->term != 0) { /* else they are of a term that is over */
        held = role->asked | role->rule.now.nodes | role->rule.next.nodes;
    }

    for (unsigned i = 0; i < QUORUM_NODES; i++) {
        if (control->stream[i] != NULL || role->follows == i ||
            role->heir == i) {
            held |= quorum_bit(i);
        }
    }
    control->roster.held = held;
}

/* The number of a node that says something; ROLE_NOBODY: there are too many. */
static unsigned
number_of(struct node *node, const struct node_name *name)
{
    struct node_control *control = &node->control;
    uint32_t fresh = 0;
    unsigned number;

    control__hold_numbers(node);
    number = roster_give(&control->roster, name, &fresh);

    if (fresh != 0) {
        role_forget(&control->role, number);
    }
    return number == ROSTER_SELF ? ROLE_NOBODY : number;
}

/* ---- of other nodes ---- */

static void
on_asked(struct node *node, const struct node_name *name, uint64_t term,
    uint64_t last, bool is_probe)
{
    unsigned number = number_of(node, name);

    (void)last;
    if (number != ROLE_NOBODY && term <= SEQ_TERM_MAX) {
        role_asked(
            &node->control.role, number, term, is_probe, control__now(node));
    }
}

static void
on_answered(struct node *node, const struct node_name *name, uint64_t term,
    uint64_t last, bool is_doubtful)
{
    unsigned number = roster_find(&node->control.roster, name);

    if (number != ROLE_NOBODY && number != ROSTER_SELF) {
        role_answered(&node->control.role, number, term, last, is_doubtful,
            control__now(node));
    }
}

static void
on_told(struct node *node, const struct node_name *name, bool is_heard)
{
    unsigned number = roster_find(&node->control.roster, name);

    if (number != ROLE_NOBODY && number != ROSTER_SELF) {
        role_told(&node->control.role, number, is_heard, control__now(node));
    }
}

static void
on_refused(struct node *node, const struct node_name *name, uint64_t promised)
{
    (void)name;
    node_control_saw(node, promised);
}

static void
on_fetched(struct node *node, uint64_t term, bool is_done)
{
    node_look(node);
    control__tell_log(node);
    role_fetched(&node->control.role, term, is_done, control__now(node));
}

const struct peers_calls control__peers_calls = {.asked_fn = on_asked,
    .answered_fn = on_answered,
    .told_fn = on_told,
    .refused_fn = on_refused,
    .fetched_fn = on_fetched};

void
node_control_saw(struct node *node, uint64_t term)
{
    if (node->control.is_there) {
        role_saw(&node->control.role, term, control__now(node));
    }
}

/* ---- streams ---- */

void
node_control_linked(struct sender_stream *stream)
{
    struct node *node = stream->node;
    struct node_control *control = &node->control;
    struct node_name name = name_at(stream->link.name, stream->link.name_len);
    unsigned number;

    if (!control->is_there) {
        return;
    }
    number = number_of(node, &name);
    if (number == ROLE_NOBODY) {
        return;
    }
    if (control->stream[number] != NULL) {
        control->stream[number]->number = ROSTER_SELF;
    }
    control->stream[number] = stream;
    stream->number = number;
    role_linked(&control->role, number, control__now(node));
}

void
node_control_acked(struct sender_stream *stream)
{
    struct node *node = stream->node;
    const struct link_primary *link = &stream->link;
    uint64_t from_us, bytes;
    bool is_near, is_out;

    if (stream->number == ROSTER_SELF) {
        return;
    }
    is_near = lag_of(&node->sender.lag, link->ack.written, &from_us, &bytes) &&
        bytes < NODE_CONTROL_NEAR_BYTES;
    is_out = (link->ack.flags & (ACK_DOUBTFUL | ACK_DISK_FULL)) != 0 ||
        (link->hello_flags & HELLO_NEVER_VOTES) != 0;
    role_acked(&node->control.role, stream->number, link->term,
        semi_sync_position(link), is_out, is_near, control__now(node));
}

void
node_control_unlinked(struct sender_stream *stream)
{
    struct node_control *control = &stream->node->control;
    unsigned number = stream->number;

    if (number == ROSTER_SELF) {
        return;
    }
    ASSERT(control->stream[number] == stream);
    role_unlinked(&control->role, number);
    control->stream[number] = NULL;
    stream->number = ROSTER_SELF;
}

uint64_t
node_control_committed(struct node *node)
{
    return role_committed(&node->control.role, control__now(node));
}

bool
node_control_has_authority(const struct node *node)
{
    return role_has_authority(&node->control.role, node->control.now_us);
}

bool
node_control_is_in_set(const struct sender_stream *stream)
{
    const struct role *role = &stream->node->control.role;

    return stream->number != ROSTER_SELF &&
        quorum_has(role->rule.now.nodes, stream->number);
}

void
node_control_welcomed(struct node *node, uint64_t last)
{
    if (node->control.is_there) {
        role_welcomed(&node->control.role, last, control__now(node));
    }
}

void
node_control_heard(struct node *node)
{
    if (node->control.is_there) {
        role_heard(&node->control.role, true, control__now(node));
    }
}

void
node_control_parted(struct node *node)
{
    if (node->control.is_there) {
        role_parted(&node->control.role, control__now(node));
    }
}

void
node_control_promised(struct node *node, uint64_t term)
{
    if (node->control.is_there) {
        role_promised(&node->control.role, term, control__now(node));
    }
}
