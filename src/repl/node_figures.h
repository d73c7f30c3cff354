/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPL_NODE_FIGURES_H
#define REPL_NODE_FIGURES_H

#include "repl/commit_waits.h"
#include "repl/message.h"
#include "repl/node.h"
#include "repl/node_control.h"

#include <stdint.h>

/* What a node counts, and what of it other threads see: a copy that is made at
 * the end of each turn. */

#define NODE_FIGURES(X)                                                       \
    X(promotions, "times that it became a primary")                           \
    X(demotions, "times that it ceased to be one")                            \
    X(links, "links with a primary that began")                               \
    X(sync_full, "replicas that were told to take a snapshot")                \
    X(sync_partial_ok, "replicas that went on from where they were")          \
    X(sync_partial_err, "replicas that had to cut their log")                 \
    X(sync_bytes, "bytes of snapshots that were sent")                        \
    X(sent_bytes, "bytes sent to replicas")                                   \
    X(sent_batches, "frames of batches sent to replicas")                     \
    X(received_bytes, "bytes that came from primaries")                       \
    X(received_batches, "batches that came from primaries")                   \
    X(cuts, "times that its log was to be cut")                               \
    X(cut_batches, "batches that these were")                                 \
    X(frames_bad, "connections ended because of what came")                   \
    X(refused, "connections refused: too many, or no primary here")           \
    X(places_dropped, "replicas away for which the log is kept no more")      \
    X(accept_pauses, "pauses, since nobody could be accepted")                \
    X(behind, "replicas that the log was not kept for any longer")            \
    X(dial_errors, "times that the primary could not be reached")             \
    X(set_changes, "times that it changed the voters")                        \
    X(handovers, "times that it handed over as ordered")                      \
    X(terms_seen, "the highest term that etcd has given out")                 \
    X(etcd_errors,                                                            \
        "requests to etcd not done, and times it was out of reach")           \
    X(keeper_beats_missed, "beats that could not be sent")                    \
    X(forwarded, "changes of clients that the primary has answered")          \
    X(forwarded_unsure, "those of which nobody knows what came of them")      \
    X(forwarded_late, "requests whose changes were not to be read in time")

struct node_figures {
#define X(name, text) uint64_t name;
    NODE_FIGURES(X)
#undef X
    struct commit_figures commits; /* of a primary */
    struct commit_figures lags; /* of a replica: from when it heard of a batch
                                 * until it was applied; none is late */
};

/* See lag_of. */
struct node_lag {
    bool is_known;
    uint64_t from_us, bytes;
};

/* A replica, as its primary sees it. */
struct node_replica {
    char address[64];
    uint8_t name_len;
    char name[MESSAGE_NAME_MAX + 1]; /* ended by a 0 */
    const char *state;               /* static storage */
    enum message_level level;
    uint64_t written, synced, applied;
    uint64_t heard_us; /* when something came last */
    uint64_t sent_bytes;
    struct node_lag lag;
    uint32_t rtt_us, flags;
    unsigned priority;
    bool is_in_set; /* it votes */
};

struct node_shown {
    enum node_role role;
    uint64_t term, branch;
    uint64_t committed; /* UINT64_MAX: the log alone decides */
    uint64_t written, synced, applied;
    uint64_t last;    /* of the primary's log, as far as it is known */
    const char *link; /* up, down, sync */
    char master[NODE_ADDRESS_MAX + 1]; /* that it follows */
    uint8_t primary_len;
    char primary[MESSAGE_NAME_MAX]; /* what that is called */
    uint64_t fresh_us;     /* when what is shown was new; 0: not known */
    uint64_t heard_us;     /* when something came from the primary; 0: never */
    uint64_t refused_term; /* not below term: see node_priv.h; else 0 */
    char why[NODE_WHY_MAX + 1]; /* that there is no link to the primary */
    struct node_lag unshipped;  /* of a primary */
    bool is_few, is_doubtful, is_paused;
    unsigned n_replicas, n_feeds, n_strangers, n_places;
    struct node_replica replica[NODE_STREAMS_MAX], feed[NODE_FEEDS_MAX];
    struct node_control_shown control;
    struct node_figures figures;
};

struct node;

/* At the end of a turn. */
void node__show(struct node *node);

#endif
