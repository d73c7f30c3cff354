/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPL_NODE_CONTROL_H
#define REPL_NODE_CONTROL_H

#include "repl/control_pair.h"
#include "repl/role.h"
#include "repl/roster.h"

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

/* What a node of a group is, and becomes, where etcd says who leads: the
 * machine that decides it (repl/role.h) is told what comes from etcd, from
 * streams and from other nodes, and what it orders is done. Inside a node; its
 * thread. In a node without a control all of this does nothing. */

enum {
    NODE_CONTROL_BEAT_US = 100000,   /* between beats */
    NODE_CONTROL_AGAIN_US = 300000,  /* what was not done is tried again */
    NODE_CONTROL_EPOCH_US = 3000000, /* who has nothing lets others say for so
                                      * long which directory the group's is */
    NODE_CONTROL_STUCK_US = 5000000, /* what is in its way may pass */
    NODE_CONTROL_TOLD_US = 60000000, /* between lines that say it */
    NODE_CONTROL_NEAR_BYTES = 1 << 20, /* a replica that lacks less is near */
    NODE_CONTROL_BEATS = 64,           /* whose time is known */
    NODE_CONTROL_COPIES_MAX = CONTROL_VOTERS_MAX - 1,
    NODE_CONTROL_NAMES = 512 /* bytes of the names of all voters */
};

struct node;
struct node_failover;
struct sender_stream;

/* What keeps a node from its part in the group. */
#define CONTROL_STUCKS(X)                                                     \
    X(NOT, "no", "nothing does")                                              \
    X(TWIN, "name", "another node has its name")                              \
    X(AHEAD, "term", "it has promised a later term than the primary's")       \
    X(NEVER, "priority", "nobody leads, and it never does")                   \
    X(UNFIT, "directory", "nobody leads, and its directory is not to")        \
    X(BLANK, "etcd", "etcd has nothing of the group, and it was in it")       \
    X(FEW, "voters", "nobody leads, and too few voters answer")

enum control_stuck {
#define X(name, word, text) CONTROL_STUCK_##name,
    CONTROL_STUCKS(X)
#undef X
};

/* A request to etcd that has no result yet. */
struct node_control_ask {
    bool is_open;
    uint32_t number;
    uint64_t term; /* of KEEP, SET; TAKE: that is asked for */
    uint64_t sent_us;
};

/* What others see of it. */
struct node_control_shown {
    bool is_there;
    enum role_state state;
    bool leads, has_authority, has_lease;
    uint64_t lease_us; /* CLOCK_BOOTTIME; 0: none */
    unsigned need;
    bool is_in_doubt; /* voters are asked for, and nobody has answered */
    uint64_t unreachable_us; /* etcd, since then; 0: it is not */
    uint64_t heard_us;       /* something came from etcd; 0: never */
    uint64_t etcd_term;
    enum control_stuck stuck;
    char voters[NODE_CONTROL_NAMES];
};

struct node_control {
    bool is_there;
    struct control_pair pair;
    uv_poll_t poll;
    bool is_poll_open;
    struct role role;
    struct role_config config;
    struct roster roster;
    uint64_t boot;   /* random, of this node */
    uint64_t now_us; /* CLOCK_BOOTTIME, as the machine was told last */

    struct control_state state; /* the newest */
    uint32_t number;            /* of the last request */
    struct node_control_ask ask[CONTROL_REQUESTS_N];
    uint64_t beat_us;                       /* the next one is due */
    uint64_t beaten_us[NODE_CONTROL_BEATS]; /* when each was sent, by number */
    bool is_give_up_due;
    uint64_t give_up_us, node_us, epoch_us; /* not before */
    bool is_take_held; /* it waits for the end of GIVE_UP */
    struct role_order take;
    struct control_node said; /* as etcd was told; name.len 0: not yet */
    uint64_t unreachable_us, heard_us;
    char why[CONTROL_WHY_MAX + 1]; /* that etcd has said no last */

    uint64_t promise_due; /* term that the disk has not taken; 0: none */
    uint64_t promise_us;
    int promise_err; /* that the log has a line of; 0: none */
    enum control_stuck stuck;
    uint64_t stuck_us;                          /* when the log is told */
    struct sender_stream *stream[QUORUM_NODES]; /* that is counted */
    struct node_failover *handing;              /* it is under way */
    bool is_handed;                             /* etcd was asked */
    bool is_forcing;                            /* this node is to lead */
    bool is_end_asked;                          /* lost_fn was called */
    bool is_member; /* it has been in the group: it does not take the group for
                     * a new one where etcd has nothing of it, */
    bool is_epoch_ordered; /* unless by force */
    uint64_t epoch_end_us; /* for so long */

    /* as the log has them */
    enum role_state told_state;
    uint32_t told_voters;
    unsigned told_need;
};

/* The pair is read from now on. 0 or ERR_SYSTEM. */
int node_control_start(struct node *node);

/* The node begins, as a replica of nobody; its file has been written. */
void node_control_begin(struct node *node);

/* What is to be done now. */
void node_control_turn(struct node *node);

/* Answers who waits, and reads no more. */
void node_control_end(struct node *node);

/* True where etcd decides who leads. */
bool node_control_is_there(const struct node *node);

/* True of one that leads without authority; of one that wants to lead. */
bool node_control_is_isolated(const struct node *node);
bool node_control_is_candidate(const struct node *node);

/* At the end of a turn. */
void node_control_show(
    const struct node *node, struct node_control_shown *shown);

/* ---- of a primary's streams ---- */

/* The replica is sent the log from now on; what it says comes; it is over. */
void node_control_linked(struct sender_stream *stream);
void node_control_acked(struct sender_stream *stream);
void node_control_unlinked(struct sender_stream *stream);

/* What is committed, and whether frames are of who leads. */
uint64_t node_control_committed(struct node *node);
bool node_control_has_authority(const struct node *node);

/* True where that replica votes. */
bool node_control_is_in_set(const struct sender_stream *stream);

/* ---- of a replica's ---- */

/* The primary's log ended with batch last when the stream began; a frame with
 * authority; the stream is over; a term was promised for it. */
void node_control_welcomed(struct node *node, uint64_t last);
void node_control_heard(struct node *node);
void node_control_parted(struct node *node);
void node_control_promised(struct node *node, uint64_t term);

/* Somebody has promised that term. */
void node_control_saw(struct node *node, uint64_t term);

#endif
