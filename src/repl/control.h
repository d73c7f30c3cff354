/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPL_CONTROL_H
#define REPL_CONTROL_H

#include "base/node.h"

#include <stdbool.h>
#include <stdint.h>

/* The seam between a node and the service that decides who is primary (etcd):
 * what is kept there for one group, what can be asked of it, and what it says.
 * The real one is a process of its own (etcd/agent.h) behind a pair of sockets
 * (repl/control_pair.h); t/lib/fake_control.h has one in memory, which loses
 * and delays answers where a test tells it to.
 *
 * Revisions are etcd's: each change of anything has a higher one. 0: the key is
 * not there. */

enum {
    CONTROL_TERM_MAX = (1 << 24) - 1,
    CONTROL_ADDRESS_MAX = 255, /* bytes of HOST:PORT */
    CONTROL_ROLE_MAX = 15,     /* bytes of a role's name */
    CONTROL_VOTERS_MAX = 5,
    CONTROL_NODES_MAX = 32, /* of a group, those that only read among them */
    CONTROL_SHARDS_MAX = 1 << 16,
    CONTROL_PRIORITY_MAX = 10000,
    CONTROL_WHY_MAX = 160 /* bytes of a text for one line */
};

/* ---- what is kept ---- */

/* Texts are bytes from 0x21 to 0x7e, ended by a NUL; "": none. */
struct control_address {
    char text[CONTROL_ADDRESS_MAX + 1];
};

/* Which directory the nodes of the group have copies of. Made once. */
struct control_epoch {
    uint64_t revision;
    uint64_t epoch, seed;
    uint32_t shards; /* 1..CONTROL_SHARDS_MAX */
};

/* Who is primary. The key has a lease: it goes where that ends. */
struct control_primary {
    uint64_t revision;
    struct node_name node;
    uint32_t term; /* 1..CONTROL_TERM_MAX */
    uint64_t boot; /* random, of one run of the server: tells it from others of
                    * the same name */
    struct control_address client, repl;
};

/* The set and how many of it make a change committed. */
struct control_voters {
    uint64_t revision;
    uint32_t term; /* in which it was set */
    uint32_t need; /* 1..CONTROL_VOTERS_MAX; above n: nothing is committed */
    uint32_t n;    /* 1..CONTROL_VOTERS_MAX */
    struct node_name node[CONTROL_VOTERS_MAX]; /* each once */
};

/* A node that is alive; its key has a lease. */
struct control_node {
    struct node_name name;
    struct control_address client, repl;
    char role[CONTROL_ROLE_MAX + 1]; /* as stats replication says it */
    uint32_t formats;                /* the newest of the log it can read */
    uint32_t priority;               /* 0..CONTROL_PRIORITY_MAX; 0: never */
    bool votes, is_doubtful;
    bool is_member; /* it was in the group before it has started */
};

/* A switch-over that somebody has asked for. */
struct control_order {
    uint64_t revision;
    struct node_name to;
};

/* All of it at one moment. What has revision 0 is not there, and zero. */
struct control_state {
    uint64_t revision; /* at which it was looked at */
    uint64_t term_revision;
    uint32_t term; /* the highest that was given out; 0: none */
    struct control_epoch epoch;
    struct control_primary primary;
    struct control_voters voters;
    struct control_order order;
    uint32_t n_nodes;
    struct control_node node[CONTROL_NODES_MAX]; /* by name */
};

/* ---- what is asked ---- */

#define CONTROL_REQUESTS(X)                                                    \
    X(BEAT, "the server runs; no result, but an event of its own")             \
    X(TAKE, "become primary: where the keys are as seen, a lease and a term")  \
    X(GIVE_UP, "end the primary's lease, and with it the key")                 \
    X(VOTERS, "set the voters: where term and voters are as seen")             \
    X(NODE,                                                                    \
        "say what this node is; it is said again after a lost lease. A STATE " \
        "follows, also of what was said before: the node may be a new one")    \
    X(EPOCH, "say which directory this is: where nobody has")                  \
    X(ORDER, "ask for a switch-over, or take that back")                       \
    X(KEEP, "put the key that is gone back, in its term, with a new lease")    \
    X(HAND, "give the key up, and order who is to have it, at one moment")

enum control_ask {
#define X(name, text) CONTROL_##name,
    CONTROL_REQUESTS(X)
#undef X
        CONTROL_REQUESTS_N
};

struct control_request {
    enum control_ask ask;
    uint32_t number; /* the result has it, or the beat's event */
    union {
        struct {
            struct control_primary primary; /* its revision: of the key that is
                                             * replaced, which is of the same
                                             * node; 0: there is none */
            uint64_t term_revision;         /* seen */
            struct control_voters voters; /* n 0: none. Else, where nobody has
                                             * set any yet, they are set in the
                                             * same transaction; their revision:
                                             * 0 */
        } take;
        struct {
            struct control_primary primary; /* of this node, term and boot; its
                                             * revision: of the key, where it
                                             * was seen and is that very one; 0:
                                             * it was not there */
            uint64_t term_revision;         /* seen: nobody has a later term */
        } keep;
        struct {
            struct node_name to;
        } hand;                       /* only by who has the key */
        struct control_voters voters; /* its revision: seen */
        struct control_node node;
        struct control_epoch epoch; /* its revision: 0 */
        struct control_order order; /* to.len 0: none; its revision: 0 */
    } of;
};

/* ---- what is said ---- */

#define CONTROL_OUTCOMES(X)                                                   \
    X(YES, "it is done")                                                      \
    X(NO, "it is not done and will not be")                                   \
    X(UNKNOWN, "it may be done, or be done yet")

enum control_outcome {
#define X(name, text) CONTROL_##name,
    CONTROL_OUTCOMES(X)
#undef X
        CONTROL_OUTCOMES_N
};

#define CONTROL_EVENTS(X)                                                     \
    X(BEAT_BACK, "a beat has come, and how long the lease holds")             \
    X(RESULT, "how a request came out; one for each but a beat")              \
    X(STATE, "something has changed; the first thing of all")                 \
    X(LOST, "the primary's lease is over; not after GIVE_UP and HAND")        \
    X(UNREACHABLE, "nothing answers; a STATE follows when something does")

enum control_say {
#define X(name, text) CONTROL_SAY_##name,
    CONTROL_EVENTS(X)
#undef X
        CONTROL_EVENTS_N
};

/* Behind each result that is not YES comes a STATE of a look that was begun
 * after it, also where nothing is another, or UNREACHABLE: so a NO's reason is
 * in the first STATE that has its revision or a later one.
 *
 * A result of UNKNOWN: TAKE and KEEP have given their lease up, so that the
 * key, should it come, is not kept alive: look, and ask anew. VOTERS may be
 * done after a look that does not show it: only a later VOTERS with the same
 * revision seen, whose result is YES or NO of a comparison, settles it, since
 * no two changes that have seen the same can both be done; the look after that
 * says which was. HAND has ended the lease, whatever comes out.
 *
 * The order is taken back by the TAKE that is done, whoever's it is.
 *
 * GIVE_UP ends what TAKE and KEEP that are under way bring, too: they are
 * UNKNOWN then, or NO. It waits for a HAND that is under way. */
struct control_result {
    uint32_t number;
    enum control_outcome outcome;
    /* Of etcd, when it was done, or compared and refused; what was changed has
     * that very one. 0 where nothing is known of the keys: UNKNOWN, and a NO
     * that no comparison has said (nobody could be asked, another one is under
     * way, no lease, no right). Such a NO says nothing of what others have
     * done: who would conclude something from that takes it as UNKNOWN. */
    uint64_t revision;
    struct control_voters voters;  /* of TAKE's YES: at that same moment, as
                                    * found or as set; else revision 0 */
    char why[CONTROL_WHY_MAX + 1]; /* unless YES; for the log */
};

struct control_beat {
    uint32_t number;
    uint64_t deadline_ns; /* CLOCK_BOOTTIME until which the primary's key is
                           * surely this process's, or 0. After the YES of TAKE
                           * and KEEP; not from asking GIVE_UP or HAND on */
};

struct control_event {
    enum control_say say;
    union {
        struct control_beat beat;
        struct control_result result;
        struct control_state state;
        char why[CONTROL_WHY_MAX + 1]; /* LOST, UNREACHABLE */
    } of;
};

/* ---- the seam ---- */

/* Takes what is said; the event is the caller's, and gone afterwards. On the
 * thread that gives the control its turns. NULL: nothing will come any more,
 * the other end is gone; requests without a result are UNKNOWN. */
typedef void control_event_fn(
    void *context, const struct control_event *event);

struct control;

struct control_calls {
    /* Asks; never waits, and calls nothing back before it has returned. At most
     * one request of a kind, BEAT apart, is under way; but a NODE replaces one
     * that is, which becomes UNKNOWN. False where it could not
     * be asked: nothing of it is or will be done. */
    bool (*ask)(
        struct control *control, const struct control_request *request);
};

/* What every implementation begins with. */
struct control {
    const struct control_calls *calls;
    control_event_fn *event_fn;
    void *context;
};

static inline bool
control_ask(struct control *control, const struct control_request *request)
{
    return control->calls->ask(control, request);
}

#endif
