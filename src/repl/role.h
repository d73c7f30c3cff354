/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPL_ROLE_H
#define REPL_ROLE_H

#include "repl/quorum.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a node of a group is, and becomes, where etcd says who leads. A state
 * machine without sockets, files or a clock: whoever has these tells it what
 * happens, asks what to do next (role_next) until there is nothing, and does
 * it. One thread at a time. Times are microseconds of the node's own clock,
 * which does not go back and goes on while the machine sleeps; all calls say
 * times that do not go back. Nodes are numbers (repl/quorum.h). */

enum {
    ROLE_NOBODY = QUORUM_NODES,
    ROLE_DELAY_US = 200000,    /* a candidate waits for up to so long, */
    ROLE_LATER_US = 500000,    /* and longer who is no voter, or doubtful, */
    ROLE_ORDERED_US = 2000000, /* or for another one that is to lead */
    ROLE_ASKING_US = 300000,   /* questions are said again */
    ROLE_SILENCE_US = 1000000, /* who hears nothing for so long hears none */
    ROLE_CANDIDATE_US =
        2000000,            /* each part of a candidacy; then it is over */
    ROLE_REST_US = 1000000, /* and the next one is not before that */
    ROLE_AGAIN_US = 300000, /* what etcd did not answer is asked for again */
    ROLE_HANDING_US = 1000000, /* changes are parked at most */
    ROLE_NEAR_US = 1000000,    /* a node is near for so long before it votes */
    ROLE_ALL_US = 1000000,     /* without voters promises are waited for */
    ROLE_TERMS_MAX = 1 << 16   /* that another node may be ahead: what is more
                                * cannot come of promotions */
};

/*            look, link lost
 *  REPLICA <----------------> ASKING --> TAKING --> GATHERING --> BEGINNING
 *     ^  ^                      |          |         |   ^           |
 *     |  +----------------------+----------+---------+   v           |
 *     |      too few, refused, a later term  <---- FETCHING          |
 *     |                                              by force: FORCING |
 *     |                                                              v
 *     +---- a later term -- ISOLATED <----------------------->  PRIMARY
 *     +---- handed over --- HANDING  <------------------------------>+
 */
#define ROLE_STATES(X)                                                        \
    X(REPLICA, "replica", "follows who leads, or waits for one")              \
    X(ASKING, "candidate", "asks the voters whether they hear a primary")     \
    X(TAKING, "candidate", "asks etcd for a term")                            \
    X(GATHERING, "candidate", "has a term and asks for promises")             \
    X(FETCHING, "candidate", "gets what a voter has and it has not")          \
    X(FORCING, "candidate", "makes itself the only voter, as was ordered")    \
    X(BEGINNING, "candidate", "its log begins the term")                      \
    X(PRIMARY, "primary", "takes changes")                                    \
    X(ISOLATED, "isolated", "leads, but has no authority: takes none")        \
    X(HANDING, "primary", "parks changes, until another one has all")

enum role_state {
#define X(name, word, text) ROLE_##name,
    ROLE_STATES(X)
#undef X
        ROLE_STATES_N
};

/* Whether a primary takes changes. */
enum role_changes {
    ROLE_CHANGES_REFUSED, /* it does not lead, or without authority */
    ROLE_CHANGES_FEW,     /* too few voters are heard */
    ROLE_CHANGES_PARKED,  /* they wait, and are refused soon */
    ROLE_CHANGES_TAKEN
};

/* The caller's; does not change. */
struct role_config {
    unsigned self;
    unsigned copies, least; /* quorum_need; copies 0: the lease alone */
    uint64_t ttl_us;        /* of the lease */
    uint64_t lag_us;        /* a voter that says nothing for longer is gone */
    unsigned priority;      /* 0: never leads; below 100: later */
    uint64_t random;        /* delays are drawn from it */
};

/* What etcd has, all of one moment. */
struct role_look {
    uint64_t revision; /* of etcd: a later look has no lesser one */
    unsigned holder;   /* of the key `primary`; ROLE_NOBODY: it is not there */
    uint64_t key_term; /* of that key */
    uint64_t key_rev;  /* its modification */
    uint64_t term;     /* the last one given out; 0: none yet */
    uint64_t term_rev; /* its modification */
    struct quorum_voters voters; /* nodes 0: never written */
    uint64_t voters_rev;
    unsigned ordered; /* who is to lead next; ROLE_NOBODY */
    uint32_t nodes;   /* that are alive */
};

enum role_answer { ROLE_YES, ROLE_NO, ROLE_UNKNOWN };

struct role_peer {
    /* what it asked for and was not answered yet; 0: nothing */
    uint64_t asks_term, probes_term;
    /* answers to this node, while a candidate */
    bool has_answered, is_doubtful, is_heard;
    uint64_t last;
    /* of its stream, while this node leads */
    bool is_linked, is_out; /* out: doubtful, disk full, never votes */
    bool is_near;
    uint64_t position, heard_us, near_us;
};

#define ROLE_ORDERS(X)                                                        \
    X(WAIT, "until something happens, or until_us")                           \
    X(CEDE, "does not lead any more: held replies fail, streams end")         \
    X(FOLLOW, "take the log of node, of that term or a later one")            \
    X(PROMISE, "make it durable that term is promised; role_promised")        \
    X(ANSWER, "tell node that term is promised, with the last batch")         \
    X(REFUSE, "tell node that term is not promised, and which is")            \
    X(HEARS, "tell node whether a primary is heard: is_heard")                \
    X(PROBE, "ask node whether it hears a primary")                           \
    X(ASK, "ask node to promise term")                                        \
    X(FETCH, "get what node has, within term; role_fetched")                  \
    X(BEGIN, "begin term in the log; role_began")                             \
    X(CHANGES, "changes: whether they are taken")                             \
    X(TAKE, "ask etcd for a term; role_took")                                 \
    X(KEEP, "put the key of term back; role_kept")                            \
    X(REVOKE, "give up the lease of the last TAKE or KEEP")                   \
    X(SET, "write voters, by term and voters_rev; role_set")                  \
    X(LOOK, "look at etcd anew; role_looked")                                 \
    X(SWITCH, "tell all streams: nothing comes behind batch seq")             \
    X(HAND, "in one transaction: node is ordered, and the key goes")          \
    X(SURE, "make it durable that this node is not doubtful")

enum role_what {
#define X(name, text) ROLE_DO_##name,
    ROLE_ORDERS(X)
#undef X
        ROLE_ORDERS_N
};

struct role_order {
    enum role_what what;
    unsigned node; /* FOLLOW: ROLE_NOBODY ends the stream at once */
    uint64_t term, seq, until_us;
    bool is_heard;
    enum role_changes changes;
    /* SET, BEGIN: without enough promises, as was ordered; what others have
     * acknowledged and this node has not is lost */
    bool is_forced;
    /* TAKE: compares the key's modification (0: it is not there) and term_rev,
     * and where there are no voters yet writes these. term:
     * the least that it may be. The answer has the
     * voters of the same transaction. SET compares term and voters_rev. */
    uint64_t key_rev, term_rev, voters_rev;
    struct quorum_voters voters;
};

struct role {
    const struct role_config *config;
    enum role_state state;
    uint64_t since_us; /* of state */
    uint64_t random;
    struct role_look look; /* the newest */
    bool has_looked;
    /* this node */
    bool may_lead; /* has the group's directory, whole */
    bool is_doubtful;
    uint64_t last, position; /* of its log; as it counts, by the level */
    uint64_t promised;       /* durable */
    uint64_t promising;      /* >= promised: is to be */
    uint64_t seen;           /* the highest that another one has promised, as
                              * it said: a term that this node takes is above */
    bool is_promise_asked;
    struct role_peer peer[QUORUM_NODES];
    /* replica */
    unsigned follows;      /* as ordered */
    uint64_t follows_term; /* likewise */
    uint64_t heard_us;     /* the primary, with authority; 0: not */
    uint64_t sure_at; /* doubt ends when that batch counts; 0: not known */
    bool is_sure_due;
    bool is_part_due; /* the stream has to end first */
    uint64_t next_us; /* a candidacy, not before; 0: none is due */
    uint64_t rest_us; /* likewise, as one has failed */
    /* candidate */
    uint64_t term; /* this node's, from TAKE on; 0: none */
    uint32_t said; /* whom it has asked in this round */
    uint64_t said_us;
    uint32_t asked;    /* who is asked for a promise */
    unsigned source;   /* of the fetch */
    bool is_forced;    /* it is to lead without enough promises as well */
    bool is_alone;     /* and does: as the only voter */
    bool is_ordered;   /* what etcd or the log is asked for, in this state */
    bool is_take_open; /* etcd has not answered the last TAKE */
    bool is_revoke_due, is_cede_due, is_look_due;
    /* primary */
    struct quorum_rule rule;
    uint64_t voters_rev, first, committed;
    uint64_t lease_us; /* its deadline; 0: there is none */
    bool is_set_sent, is_set_refused, is_keep_sent;
    bool is_set_open;         /* a SET had no answer: it may come to be */
    uint64_t set_us, keep_us; /* not before that */
    uint64_t set_revision;    /* a look of that or a later one explains why */
    enum role_changes changes;
    unsigned heir; /* HANDING; ROLE_NOBODY: none */
    bool is_hand_due;
};

/* A node starts: as a replica. promised and is_doubtful as they are on the
 * disk. */
void role_init(struct role *role, const struct role_config *config,
    uint64_t promised, bool is_doubtful, uint64_t now_us);

/* What to do next; ROLE_DO_WAIT: nothing. Each order is given once. */
void role_next(struct role *role, uint64_t now_us, struct role_order *order);

/* What happens. Each may be told at any time; what is no longer waited for
 * changes nothing. Of etcd each order is answered, if only with ROLE_UNKNOWN:
 * then it may be done later all the same. revision: of etcd, when it was done
 * or refused. What was not sent is ROLE_UNKNOWN, but for TAKE. */

/* May this node lead: its directory is the group's and whole? */
void role_set_may_lead(struct role *role, bool may_lead);

/* The log ends with batch last; up to position it counts, by the level. */
void role_set_log(struct role *role, uint64_t last, uint64_t position);

void role_looked(
    struct role *role, const struct role_look *look, uint64_t now_us);
void role_took(struct role *role, enum role_answer answer,
    const struct role_look *look, uint64_t now_us);
void role_kept(struct role *role, uint64_t term, enum role_answer answer,
    uint64_t now_us);
void role_set(struct role *role, uint64_t term, enum role_answer answer,
    uint64_t revision, uint64_t now_us);

/* The lease is good until then, at the least; 0: it is none any more. */
void role_set_lease(struct role *role, uint64_t deadline_us);

/* It is durable that term is promised: as ordered, or because the stream of a
 * primary that was ordered turned out to be of a later term. */
void role_promised(struct role *role, uint64_t term, uint64_t now_us);

/* node asks for a promise of term; is_probe: only whether a primary is
 * heard. */
void role_asked(struct role *role, unsigned node, uint64_t term, bool is_probe,
    uint64_t now_us);

/* node has promised term, which this node asked for, and its log ends with
 * batch last. */
void role_answered(struct role *role, unsigned node, uint64_t term,
    uint64_t last, bool is_doubtful, uint64_t now_us);

/* node answers that it hears a primary with authority, or none. */
void role_told(
    struct role *role, unsigned node, bool is_heard, uint64_t now_us);

/* Somebody has promised term, which is why it refuses or asks. The next term
 * that this node takes is above it, if it is not ROLE_TERMS_MAX ahead. */
void role_saw(struct role *role, uint64_t term, uint64_t now_us);

/* The fetch ended: the log has all of the source, or it failed. */
void role_fetched(
    struct role *role, uint64_t term, bool is_done, uint64_t now_us);

/* The log has begun term with batch seq; 0: it could not. */
void role_began(
    struct role *role, uint64_t term, uint64_t seq, uint64_t now_us);

/* That number is another node's from now on: nothing is known of it. */
void role_forget(struct role *role, unsigned node);

/* Of a replica's stream: the primary's log ended with last when it began; a
 * frame came, with authority or not; it is over. */
void role_welcomed(struct role *role, uint64_t last, uint64_t now_us);
void role_heard(struct role *role, bool has_authority, uint64_t now_us);
void role_parted(struct role *role, uint64_t now_us);

/* Of a primary's stream to node: it begins; an ACK came, of a stream of that
 * term; it is over. is_out: doubtful, disk full, or never votes; is_near: it
 * lacks little. */
void role_linked(struct role *role, unsigned node, uint64_t now_us);
void role_acked(struct role *role, unsigned node, uint64_t term,
    uint64_t position, bool is_out, bool is_near, uint64_t now_us);
void role_unlinked(struct role *role, unsigned node);

/* `failover NODE`: of a primary. False: it does not lead, or that node does not
 * follow it as a voter. */
bool role_hand_over(struct role *role, unsigned node, uint64_t now_us);

/* `failover NODE force`, at NODE: it leads, if etcd gives it a term, with what
 * it has and what those who answer have, whether or not they are enough. If
 * they are not, it is the only voter to begin with, and the others are cut to
 * what it has. It is over when this node leads or is a replica again: then
 * etcd, a voter who hears a primary, or a later term was against it, and it may
 * be asked for again. False: etcd was not seen yet, somebody else has the key,
 * this node leads, or it must not lead. */
bool role_force(struct role *role, uint64_t now_us);

/* What may be acknowledged: up to this batch. Does not go back in a term; 0
 * where this node does not lead. To be asked when a reply is sent, not before:
 * without copies only the lease allows it. */
uint64_t role_committed(struct role *role, uint64_t now_us);

/* True where reads here, and frames sent, are of who leads: a primary that has
 * its lease, or is heard by as many voters as are needed. */
bool role_has_authority(const struct role *role, uint64_t now_us);

/* True where a primary is heard, or leads here. */
bool role_hears(const struct role *role, uint64_t now_us);

/* "replica"; static storage. */
const char *role_word(const struct role *role);

void role_verify(const struct role *role);

#endif
