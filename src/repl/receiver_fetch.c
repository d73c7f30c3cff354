/* SPDX-License-Identifier: BSD-3-Clause */
/* A fetch: a candidate takes what another node has more of the log, by the
 * connection that a replica has to its primary, once. The states:
 *
 *   NONE --> OPEN --> WRITING --> DONE --> NONE
 *              +----------------> FAILED --> NONE
 *
 * What can go wrong: all that can on the way to a primary, and there is no
 * second try; more comes than PEERS_FETCH_BYTES. What had come by then stays:
 * it is the beginning of what that node has. */
#include "base/assert.h"
#include "base/steps.h"
#include "repl/node_priv.h"
#include "repl/receiver_priv.h"

#define BIT(name) STEP_TO(RECEIVER_FETCH_##name)

static const unsigned may_lead[] = {[RECEIVER_FETCH_NONE] = BIT(OPEN),
    [RECEIVER_FETCH_OPEN] = BIT(WRITING) | BIT(FAILED),
    [RECEIVER_FETCH_WRITING] = BIT(DONE),
    [RECEIVER_FETCH_DONE] = BIT(NONE),
    [RECEIVER_FETCH_FAILED] = BIT(NONE)};

static void
move_to(struct receiver *receiver, enum receiver_fetch fetch)
{
    ASSERT_STEP(may_lead, receiver->fetch, fetch);
    receiver->fetch = fetch;
}

void
receiver_fetch(struct node *node, const char *address, uint64_t term)
{
    struct receiver *receiver = &node->receiver;

    ASSERT(node->state == NODE_STATE_FOLLOWING);
    receiver_follow(node, address); /* which ends what there was */
    move_to(receiver, RECEIVER_FETCH_OPEN);
    receiver->fetch_term = term;
    receiver->fetch_bytes = 0;
    if (address[0] == '\0') {
        receiver_end_fetch(receiver, false);
    }
    node_wake_at(node, node->now_us);
}

bool
receiver_count_fetch(struct receiver *receiver)
{
    if (receiver->link.call.purpose != MESSAGE_FETCH) {
        return true;
    }
    receiver->fetch_bytes +=
        (uint64_t)(receiver->link.batches.end - receiver->link.batches.at);
    if (receiver->fetch_bytes <= PEERS_FETCH_BYTES) {
        return true;
    }
    receiver_break(receiver, "it has more than a candidate fetches");
    return false;
}

void
receiver_end_fetch(struct receiver *receiver, bool has_all)
{
    if (receiver->fetch != RECEIVER_FETCH_OPEN) {
        return;
    }
    ASSERT(!has_all || receiver->link.call.purpose == MESSAGE_FETCH);
    move_to(
        receiver, has_all ? RECEIVER_FETCH_WRITING : RECEIVER_FETCH_FAILED);
    if (has_all) { /* as of the last frame */
        node_set_committed(receiver->node,
            link__earlier(
                link_replica_committed(&receiver->link), receiver->put));
    }
    receiver->address[0] = '\0';
    node_wake_at(receiver->node, receiver->node->now_us);
}

void
receiver_turn_fetch(struct receiver *receiver)
{
    struct node *node = receiver->node;

    if (receiver->fetch != RECEIVER_FETCH_WRITING) {
        return;
    }
    if (receiver->put <= node->position.written) {
        move_to(receiver, RECEIVER_FETCH_DONE);
    } else {
        node_wake_at(node, node->now_us + RECEIVER_LOOK_MS * 1000);
    }
}

bool
receiver_is_fetched(struct node *node, uint64_t *term, bool *is_done)
{
    struct receiver *receiver = &node->receiver;

    *is_done = receiver->fetch == RECEIVER_FETCH_DONE;
    *term = receiver->fetch_term;
    if (!*is_done && receiver->fetch != RECEIVER_FETCH_FAILED) {
        return false;
    }
    move_to(receiver, RECEIVER_FETCH_NONE);
    return true;
}
