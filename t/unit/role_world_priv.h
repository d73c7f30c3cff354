/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIT_ROLE_WORLD_PRIV_H
#define UNIT_ROLE_WORLD_PRIV_H

/* What the parts of unit/role_world share: the world, and what they do to it.
 * Times are of the world unless they are said to be of a node's clock. */

#include "unit/role_world.h"

#include "unit/check_help.h"

enum {
    LOG_MAX = 2048,
    OPS_MAX = 1024,
    EVENTS_MAX = 8192,
    BATCH_MAX = 6,
    ETCD = WORLD_NODES, /* its place in the network */
    PLACES,
    TTL_US = 3000000,
    MARGIN_US = 300000,
    LAG_US = 1500000,
    CLIENT_US = 30000,      /* a change is asked for */
    ETCD_LATE_US = 4000000, /* what it is asked for is done up to so late */
    ANSWER_US = 500000,     /* what was not answered for so long is not */
    /* one that fails at its very end, and the rest behind it */
    CANDIDACY_US = ROLE_DELAY_US + ROLE_LATER_US + ROLE_ORDERED_US +
        3 * ROLE_CANDIDATE_US + ANSWER_US + ROLE_REST_US * 3 / 2,
    /* so long until a group is well again: a key that is kept late lasts as
     * long as a lease; then one candidacy may fail and the
     * next one take as long */
    HEALED_US = ETCD_LATE_US + TTL_US + 2 * CANDIDACY_US
};

struct entry {
    uint64_t seq;
    uint32_t op; /* 0: the entry of a term */
};

enum message_type {
    M_PROBE,
    M_HEARS,
    M_ASK,
    M_ANSWER,
    M_REFUSE,
    M_HELLO,
    M_WELCOME,
    M_CUT,
    M_BATCH,
    M_BEAT,
    M_ACK,
    M_FETCH,
    M_TAIL,
    M_DOWN
};

struct message {
    enum message_type type;
    unsigned session, n;
    uint64_t term, seq; /* seq: a position; of BATCH and TAIL that before */
    bool flag;          /* heard; doubtful; the tail's end; authority */
    struct entry entry[BATCH_MAX];
};

enum etcd_what { E_LOOK, E_TAKE, E_KEEP, E_SET, E_ALIVE, E_REVOKE, E_HAND };

struct request {
    enum etcd_what what;
    unsigned number; /* of the node's requests */
    unsigned lease;
    uint64_t sent_us; /* by the node's clock */
    struct role_order order;
    /* the answer */
    enum role_answer answer;
    uint64_t revision;
    struct role_look look;
};

enum event_type {
    EV_MESSAGE,
    EV_ETCD, /* a request comes there */
    EV_ANSWER,
    EV_LATE, /* a request was not answered */
    EV_TURN,
    EV_TICK, /* of a node: looks, beats, connections */
    EV_SYNC,
    EV_DURABLE,
    EV_CLIENT,
    EV_FAULT,
    EV_HEAL,
    EV_FORCE, /* an operator orders it */
    EV_RELOAD,
    EV_START,
    EV_RESUME
};

struct event {
    enum event_type type;
    unsigned node, from, life, next;
    union {
        struct message message;
        struct request request;
        uint64_t value;
    } of;
};

struct place {
    uint64_t at, order;
    unsigned event;
};

struct stream {
    unsigned session; /* 0: none */
    unsigned sent;    /* entries */
};

struct waiting {
    uint64_t seq;
    uint32_t op;
};

struct node {
    struct role role;
    struct role_config config;
    bool is_up, is_paused;
    unsigned life, held; /* held: events of a paused one, a list */
    unsigned *held_end;
    uint64_t offset_us, rate; /* of its clock, in millionths */
    /* the disk */
    struct entry log[LOG_MAX];
    unsigned n_log, n_synced;
    uint64_t at_op[OPS_MAX]; /* batch that has it; 0: none */
    uint64_t disk_promised;
    bool disk_doubtful;
    /* the process */
    uint64_t turn_us;
    unsigned requests, lease;
    unsigned open[E_HAND + 1]; /* number of the request that is waited for */
    uint64_t alive_us;         /* next keepalive, of the node's clock */
    unsigned follows, session; /* as a replica */
    bool is_welcome;
    uint64_t stream_term, stream_us;
    unsigned gap;
    uint64_t leads; /* term; 0: none */
    enum role_changes changes;
    struct stream stream[WORLD_NODES];
    struct waiting wait[OPS_MAX];
    unsigned n_wait;
    struct role_look seen; /* where looks come when something has changed */
    uint64_t syncs_us;     /* until then its directory is not whole */
    uint64_t fetches;      /* term */
    unsigned source;
};

struct world {
    uint64_t random, now, order;
    unsigned n, copies, least;
    enum world_level level;
    struct node node[WORLD_NODES];
    bool cut[PLACES][PLACES];
    uint64_t fifo[WORLD_NODES][WORLD_NODES];
    struct place heap[EVENTS_MAX];
    unsigned n_heap, free;
    struct role_look etcd;
    unsigned key_lease, leases;
    uint64_t lease_us[OPS_MAX];
    bool is_acked[OPS_MAX];
    unsigned n_ops, lost_from;
    uint64_t acked_term;
    unsigned acker;
    uint64_t forced_term; /* the last one that was begun by force */
    uint64_t power_us;
    uint64_t faults_us; /* until then there are faults */
    uint64_t well_us;   /* then all is to be well: the group by its rules, and
                         * each change has had its turn */
    bool is_healed, is_delayed;
    bool is_eager; /* nobody asks first: so there are more candidates */
    bool has_force;
    bool has_reloads; /* and requests that are not sent, looks only where
                       * something has changed, and logs that are cut short */
    unsigned n_slow;  /* messages of a hundred */
    struct world_result *result;
    struct event event[EVENTS_MAX]; /* last: as they are, from seed to seed */
};

/* The one there is. */
extern struct world *world;

/* ---- role_world.c ---- */

bool world__has_all_rules(void);

/* ---- role_world_events.c ---- */

/* Drawn. */
uint64_t world__below(uint64_t n);
bool world__chance(unsigned percent);
/* The first one of a seed is kept. */
void world__wrong(const char *what, uint64_t a, uint64_t b);
/* It happens delay_us from now; what it is of is for the caller to fill in. An
 * event of a node is of its life at this moment. */
struct event *world__push(
    uint64_t delay_us, enum event_type type, unsigned node);
/* Now is when it happens; to be given back. */
struct event *world__pop(void);
void world__give_back(struct event *event);
unsigned world__number(const struct node *node);
/* The node's own clock. */
uint64_t world__clock(const struct node *node);

/* ---- role_world_log.c ---- */

/* Its last batch; 0: none. The last one that counts, by the level. */
uint64_t world__last(const struct node *node);
uint64_t world__position(const struct node *node);
void world__tell_log(struct node *node);
void world__append(struct node *node, struct entry entry);
/* n entries stay. */
void world__cut(struct node *node, unsigned n);
/* How many entries are not above seq. */
unsigned world__entries_to(const struct node *node, uint64_t seq);
uint64_t world__common(const struct node *node, uint64_t seq);

/* ---- role_world_oracle.c ---- */

void world__commit(struct node *node);
/* True where one leads by etcd, all logs are the same, and all is answered. */
bool world__is_well(void);
void world__check_end(void);
/* What was acknowledged and node has not is lost, as was ordered: in term. */
void world__give_up(const struct node *node, uint64_t term);

/* ---- role_world_net.c ---- */

void world__send(
    struct node *from, unsigned to, const struct message *message);
void world__send_ack(struct node *node);
void world__pump(struct node *node, unsigned to);
void world__connect(struct node *node, unsigned to);
void world__fetch(struct node *node);
void world__hear(
    struct node *node, unsigned from, const struct message *message);

/* ---- role_world_etcd.c ---- */

void world__ask_etcd(struct node *node, enum etcd_what what, unsigned lease,
    const struct role_order *order);
void world__at_etcd(const struct event *event);
void world__get_answer(
    struct node *node, const struct request *request, enum role_answer answer);
unsigned world__new_lease(struct node *node);

/* ---- role_world_node.c ---- */

void world__turn(struct node *node);
void world__start(struct node *node);
void world__resume(struct node *node);
/* Its directory is loaded anew: its role begins from the start, while what it
 * has asked etcd for goes on, and the lease is kept. */
void world__reload(struct node *node);
void world__stop(struct node *node, bool is_power);
void world__happen_in(struct node *node, const struct event *event);

/* ---- role_world_faults.c ---- */

struct node *world__primary(void);
void world__client(void);
void world__heal(void);
void world__force(void);
void world__fault(void);
void world__end_faults(void);

#endif
