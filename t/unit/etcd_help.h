/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIT_ETCD_HELP_H
#define UNIT_ETCD_HELP_H

/* Hosts (unit/node_help.h) of a group whose primary etcd knows: one in memory
 * (lib/fake_control.h), and a thread that speaks with it for each of them, by
 * pairs as the real process does. */

#include "lib/fake_control.h"
#include "repl/control_pair.h"
#include "unit/node_help.h"

enum { ETCD_HOSTS = 3, ETCD_LEASE_MS = 3000 };

struct etcd_seat {
    struct fake_control fake;
    int pair[2];       /* [0] is the node's */
    uint64_t lease_ms; /* of deadlines; 0: there are none */
};

struct etcd_room {
    pthread_t thread;
    pthread_mutex_t lock; /* of all that follows */
    struct fake_etcd etcd;
    struct etcd_seat seat[ETCD_HOSTS];
    bool is_stopping;
};

static inline void
etcd_say(void *context, const struct control_event *event)
{
    struct etcd_seat *seat = context;
    (void)control_pair_say(seat->pair[1], event);
}

static inline void
etcd_serve(struct etcd_seat *seat)
{
    struct control_request request;
    seat->fake.deadline_ns = seat->lease_ms == 0
        ? 0
        : clock_boottime_ns() + seat->lease_ms * 1000000;
    while (control_pair_hear(seat->pair[1], &request) == 0) {
        (void)control_ask(&seat->fake.control, &request);
        fake_control_turn(&seat->fake);
    }
    fake_control_turn(&seat->fake);
}

static inline void *
etcd_run(void *arg)
{
    struct etcd_room *room = arg;
    bool is_stopping = false;
    while (!is_stopping) {
        struct pollfd wait[ETCD_HOSTS];
        pthread_mutex_lock(&room->lock);
        for (unsigned i = 0; i < ETCD_HOSTS; i++) {
            etcd_serve(&room->seat[i]);
            wait[i] =
                (struct pollfd){.fd = room->seat[i].pair[1], .events = POLLIN};
        }
        is_stopping = room->is_stopping;
        pthread_mutex_unlock(&room->lock);
        (void)poll(wait, ETCD_HOSTS, 5);
    }
    return NULL;
}

static inline void
etcd_init(struct etcd_room *room)
{
    memset(room, 0, sizeof *room);
    ck_assert_int_eq(pthread_mutex_init(&room->lock, NULL), 0);
    for (unsigned i = 0; i < ETCD_HOSTS; i++) {
        struct etcd_seat *seat = &room->seat[i];
        ck_assert_int_eq(
            socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, seat->pair),
            0);
        set_nonblocking(seat->pair[0]);
        fake_control_init(&seat->fake, &room->etcd, etcd_say, seat);
        seat->lease_ms = ETCD_LEASE_MS;
    }
    ck_assert_int_eq(pthread_create(&room->thread, NULL, etcd_run, room), 0);
}

static inline void
etcd_fini(struct etcd_room *room)
{
    pthread_mutex_lock(&room->lock);
    room->is_stopping = true;
    pthread_mutex_unlock(&room->lock);
    ck_assert_int_eq(pthread_join(room->thread, NULL), 0);
    for (unsigned i = 0; i < ETCD_HOSTS; i++) {
        (void)close(room->seat[i].pair[0]);
        (void)close(room->seat[i].pair[1]);
    }
    ck_assert_int_eq(pthread_mutex_destroy(&room->lock), 0);
}

/* The leases of that seat end. */
static inline void
etcd_expire(struct etcd_room *room, unsigned i)
{
    pthread_mutex_lock(&room->lock);
    fake_control_expire(&room->seat[i].fake);
    pthread_mutex_unlock(&room->lock);
}

static inline void
etcd_set(
    struct etcd_room *room, unsigned i, enum fake_way way, uint64_t lease_ms)
{
    pthread_mutex_lock(&room->lock);
    room->seat[i].fake.way = way;
    room->seat[i].lease_ms = lease_ms;
    pthread_mutex_unlock(&room->lock);
}

/* Who speaks with etcd for that seat dies; its leases end. */
static inline void
etcd_hang_up(struct etcd_room *room, unsigned i)
{
    pthread_mutex_lock(&room->lock);
    fake_control_expire(&room->seat[i].fake);
    (void)shutdown(room->seat[i].pair[1], SHUT_RDWR);
    pthread_mutex_unlock(&room->lock);
}

/* What etcd has at this moment. */
static inline struct control_state
etcd_state(struct etcd_room *room)
{
    struct control_state state;
    pthread_mutex_lock(&room->lock);
    state = room->etcd.state;
    pthread_mutex_unlock(&room->lock);
    return state;
}

/* True where that seat has been told of all that etcd has. */
static inline bool
etcd_has_told(struct etcd_room *room, unsigned i)
{
    pthread_mutex_lock(&room->lock);
    bool has_told =
        room->seat[i].fake.heard_revision == room->etcd.state.revision;
    pthread_mutex_unlock(&room->lock);
    return has_told;
}

/* True where that node has the key. */
static inline bool
etcd_has_primary(struct etcd_room *room, const char *name)
{
    struct control_state state = etcd_state(room);
    return state.primary.node.len == strlen(name) &&
        memcmp(state.primary.node.text, name, strlen(name)) == 0;
}

static inline unsigned
etcd_n_voters(struct etcd_room *room)
{
    return etcd_state(room).voters.n;
}

/* The host is one of the group, at that seat. */
static inline void
etcd_join(struct etcd_room *room, unsigned i, struct host *host,
    unsigned copies, unsigned least)
{
    struct node_config *config = &host->config;
    config->control_fd = room->seat[i].pair[0];
    config->ttl_ms = ETCD_LEASE_MS;
    config->votes = true;
    host->is_of_group = true;
    config->semi_sync = copies;
    config->min_replicas = least;
    (void)snprintf(config->repl, sizeof config->repl, "%s", host->address);
    (void)snprintf(config->client, sizeof config->client, "%.*s:11211",
        config->name.len, config->name.text);
}

/* All that etcd had is gone, as of one that was set up anew. Nobody has
 * leases. */
static inline void
etcd_wipe(struct etcd_room *room)
{
    pthread_mutex_lock(&room->lock);
    room->etcd.state =
        (struct control_state){.revision = room->etcd.state.revision + 1};
    pthread_mutex_unlock(&room->lock);
}

/* The process is gone, and who speaks with etcd ends its leases. */
static inline void
etcd_kill(struct etcd_room *room, unsigned i, struct host *host)
{
    host_close(host);
    etcd_expire(room, i);
}

/* `failover`, with or without force; the err. */
static inline int
host_failover(struct host *host, const char *to, bool is_forced)
{
    struct answer answer;
    struct node_failover order = {.err = -1, .is_forced = is_forced};
    answer_init(&answer);
    order.call = call_of(&answer);
    ck_assert(to[0] == '\0' || node_name_set(&order.to, to, strlen(to)));
    node_failover(host->node, &order);
    answer_wait(&answer);
    answer_fini(&answer);
    return order.err;
}

#endif
