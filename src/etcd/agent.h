/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ETCD_AGENT_H
#define ETCD_AGENT_H

#include "etcd/transport.h"
#include "repl/control.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What stands between a node and etcd: it asks etcd what the node asks for,
 * keeps two leases alive, the primary's and the node's, as long as the node
 * beats, and looks at the group's keys at each change. Without I/O and without
 * a clock: time comes with each call, in ns of CLOCK_BOOTTIME, and never goes
 * back. One thread. */

enum {
    AGENT_MAGIC = 0x6e656761,
    AGENT_LOOK_MS = 1000, /* at least so often, watch or not */
    AGENT_RETRY_MS = 200, /* after what has failed */
    AGENT_ENDING_MAX = 4, /* leases to be ended at once */
    AGENT_EVENTS_MAX = 16,
    AGENT_MARGIN_MS = 200, /* the least by which a deadline is early; and at
                            * least a tenth of the lease */
    AGENT_TTL_MIN_S = 2,
    AGENT_TTL_MAX_S = 60
};

/* TAKE, and its lease, are of KEEP as well. */
#define AGENT_CALLS(X)                                                        \
    X(LOOK, "/v3/kv/range")                                                   \
    X(WATCH, "/v3/watch")                                                     \
    X(TAKE_GRANT, "/v3/lease/grant")                                          \
    X(NODE_GRANT, "/v3/lease/grant")                                          \
    X(PRIMARY_ALIVE, "/v3/lease/keepalive")                                   \
    X(NODE_ALIVE, "/v3/lease/keepalive")                                      \
    X(REVOKE, "/v3/lease/revoke")                                             \
    X(TAKE, "/v3/kv/txn")                                                     \
    X(VOTERS, "/v3/kv/txn")                                                   \
    X(NODE, "/v3/kv/txn")                                                     \
    X(EPOCH, "/v3/kv/txn")                                                    \
    X(ORDER, "/v3/kv/txn")                                                    \
    X(HAND, "/v3/kv/txn")

enum agent_call {
#define X(name, path) AGENT_##name,
    AGENT_CALLS(X)
#undef X
        AGENT_CALLS_N
};

struct agent_config {
    const char *prefix; /* of keys, /tallyd/CLUSTER/GROUP/ */
    uint32_t ttl_s;     /* of leases, AGENT_TTL_MIN_S..AGENT_TTL_MAX_S */
    uint32_t hang_ms;   /* without a beat for that long the node hangs */
};

/* A lease that is kept alive. */
struct agent_lease {
    uint64_t id;          /* 0: none */
    uint64_t deadline_ns; /* until which it surely is there */
    uint64_t alive_at_ns; /* when it is asked for again */
};

/* A lease that is to end. */
struct agent_ending {
    uint64_t id;
    uint64_t until_ns; /* it has ended by itself then */
};

struct agent {
    uint32_t magic;
    struct agent_config config;
    struct transport *transport;

    bool is_under_way[AGENT_CALLS_N];
    uint64_t sent_ns[AGENT_CALLS_N];
    uint64_t lease[AGENT_CALLS_N]; /* that it is about, or 0 */

    bool is_asked[CONTROL_REQUESTS_N]; /* a result is due */
    uint32_t number[CONTROL_REQUESTS_N];

    uint64_t beat_ns; /* when the last one came */
    bool is_ended;    /* the node is gone */

    struct agent_lease primary, node;
    uint64_t primary_revision; /* of the key, as it was put with the lease */
    uint64_t taking; /* the lease of a TAKE or KEEP that is under way, or 0 */
    uint64_t taking_deadline_ns;
    struct control_request take; /* or KEEP */
    uint64_t handing;            /* the lease of a HAND, likewise */
    struct control_request said; /* the last NODE */
    bool has_said, is_node_due;  /* it is to be put, or put anew */
    bool is_to_be_replaced; /* what is being put is not what was said last */
    uint64_t node_at_ns;    /* not before */
    bool is_giving_up;      /* GIVE_UP waits for the end of all leases */
    bool is_give_up_unsure; /* one of them was left to end by itself */
    unsigned n_ending;
    struct agent_ending ending[AGENT_ENDING_MAX];
    uint64_t revoke_at_ns;

    bool is_look_due;
    bool is_to_be_said;      /* the state of the next look that is begun, also
                             * where it is the same */
    bool is_look_to_be_said; /* of the one that is under way */
    bool is_reachable, is_unreachable_said, is_state_due;
    uint64_t look_at_ns;
    struct control_state state;
    char why[CONTROL_WHY_MAX + 1]; /* of UNREACHABLE */

    unsigned n_events;
    struct control_event event[AGENT_EVENTS_MAX]; /* results and LOST */
};

/* *agent may be anything. prefix and transport stay the caller's. */
void agent_init(struct agent *agent, const struct agent_config *config,
    struct transport *transport, uint64_t now_ns);

/* The node asks. Only while agent_has_events says no. *beat_back is filled
 * where that is a beat: what it is answered with at once. */
void agent_ask(struct agent *agent, const struct control_request *request,
    uint64_t now_ns, struct control_beat *beat_back);

/* The node is gone: both leases end. */
void agent_end(struct agent *agent, uint64_t now_ns);

/* True after agent_end, when nothing is left to do. */
bool agent_is_through(const struct agent *agent);

/* A call has ended. text[0..len): of ANSWER and ERROR. */
void agent_answered(struct agent *agent, enum agent_call call,
    enum transport_outcome outcome, const char *text, size_t len,
    uint64_t now_ns);

/* A line of the watch has come. */
void agent_watched(
    struct agent *agent, const char *text, size_t len, uint64_t now_ns);

/* Does what is due; returns the time of the next thing that is. */
uint64_t agent_turn(struct agent *agent, uint64_t now_ns);

/* What the node is to hear next, or NULL; it stays that until it is said to
 * have been heard. Results and LOST in their order, then the newest state. */
const struct control_event *agent_event(
    struct agent *agent, struct control_event *room);
void agent_heard(struct agent *agent, const struct control_event *event);

/* True where results wait to be heard. */
static inline bool
agent_has_events(const struct agent *agent)
{
    return agent->n_events > 0;
}

#endif
