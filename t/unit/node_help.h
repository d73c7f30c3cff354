/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIT_NODE_HELP_H
#define UNIT_NODE_HELP_H

/* Servers that have copies of one directory, as far as replication goes: each a
 * store on a fake disk, a node with a listening socket, and who connects for
 * it. */

#include "repl/dial.h"
#include "repl/node.h"
#include "store/store_repl.h"
#include "unit/digest_help.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>

enum { HOST_WAIT_S = 60, HOST_RELAY_BYTES = 4096 };

struct host;

/* What stands between two nodes: it forwards bytes, so many, and then closes
 * both ends. */
struct relay {
    struct host *host;
    pthread_t thread;
    int near, far; /* sockets */
    uint64_t left; /* bytes; UINT64_MAX: all */
    struct relay *next;
};

struct host {
    struct rig rig;
    struct node *node;
    struct node_config config;
    struct proof_secret secret;
    int listen_fd, pair[2]; /* pair[1]: of who connects */
    char address[32];
    pthread_t dialler;
    bool is_of_group; /* --replicate names one */
    atomic_uint n_dials, n_reloads, n_ends;
    atomic_uint n_looks; /* of the dialler, for requests */
    atomic_bool is_stopping;
    /* written while nobody connects: */
    _Atomic uint64_t relay_bytes; /* a connection breaks after about so many;
                                   * 0: it does not, UINT64_MAX: it is one */
    atomic_bool is_stuck;         /* relays forward nothing */
    _Atomic uint64_t stuck_bytes; /* after about so many to the host that comes
                                   * to be; 0: it does not */
    struct relay *relays;         /* the dialler's, until it is joined */
    uint64_t random;
};

static inline void
host_pause(void)
{
    const struct timespec ms = {.tv_nsec = 1000000};
    (void)nanosleep(&ms, NULL);
}

/* Returns when the condition holds; fails after HOST_WAIT_S. */
#define WAIT_UNTIL(condition)                                                 \
    do {                                                                      \
        uint64_t wait_until_s = clock_monotonic_s() + HOST_WAIT_S;            \
        while (!(condition)) {                                                \
            EXPECT(clock_monotonic_s() < wait_until_s, "%s:%d: never: %s",    \
                __FILE__, __LINE__, #condition);                              \
            host_pause();                                                     \
        }                                                                     \
    } while (0)

/* ---- who connects ---- */

/* So many bytes have gone to the host. */
static inline void
relay_count(struct host *host, uint64_t bytes)
{
    uint64_t left = atomic_load(&host->stuck_bytes);
    if (left != 0) {
        atomic_store(&host->stuck_bytes, left > bytes ? left - bytes : 0);
        atomic_store(&host->is_stuck, left <= bytes);
    }
}

/* False: an end is closed, or all was forwarded that is to be. */
static inline bool
relay_some(struct relay *relay, int from, int to)
{
    char bytes[HOST_RELAY_BYTES];
    size_t size =
        relay->left < sizeof bytes ? (size_t)relay->left : sizeof bytes;
    ssize_t n = recv(from, bytes, size, MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN) {
        return true;
    }
    if (n <= 0) {
        return false;
    }
    for (ssize_t done = 0; done < n;) {
        ssize_t sent =
            send(to, bytes + done, (size_t)(n - done), MSG_NOSIGNAL);
        if (sent <= 0) {
            return false;
        }
        done += sent;
    }
    if (from == relay->far) {
        relay_count(relay->host, (uint64_t)n);
    }
    if (relay->left != UINT64_MAX) {
        relay->left -= (uint64_t)n;
    }
    return relay->left > 0;
}

static inline void *
relay_run(void *arg)
{
    struct relay *relay = arg;
    bool goes_on = true;
    while (goes_on && !atomic_load(&relay->host->is_stopping)) {
        struct pollfd wait[] = {{.fd = relay->near, .events = POLLIN},
            {.fd = relay->far, .events = POLLIN}};
        if (atomic_load(&relay->host->is_stuck)) {
            host_pause();
            continue;
        }
        (void)poll(wait, 2, 20);
        if (wait[0].revents != 0) {
            goes_on = relay_some(relay, relay->near, relay->far);
        }
        if (goes_on && wait[1].revents != 0) {
            goes_on = relay_some(relay, relay->far, relay->near);
        }
    }
    (void)close(relay->near);
    (void)close(relay->far);
    return NULL;
}

static inline void
set_nonblocking(int fd)
{
    ck_assert_int_eq(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
}

/* A connection to 127.0.0.1:PORT; -1: nobody is there. */
static inline int
connect_to(const char *address)
{
    struct sockaddr_in addr = {.sin_family = AF_INET,
        .sin_port = htons((uint16_t)atoi(strchr(address, ':') + 1)),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int one = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(fd, 0);
    if (connect(fd, (const struct sockaddr *)&addr, sizeof addr) != 0) {
        (void)close(fd);
        return -1;
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

/* Puts a relay between a connection and who gets it; its fd. */
static inline int
host_relay(struct host *host, int far, uint64_t bytes)
{
    struct relay *relay = calloc(1, sizeof *relay);
    int pair[2];
    ck_assert_ptr_nonnull(relay);
    ck_assert_int_eq(
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    *relay = (struct relay){.host = host,
        .near = pair[0],
        .far = far,
        .left = bytes == UINT64_MAX
            ? bytes
            : 1 + random_below(&host->random, 2 * bytes),
        .next = host->relays};
    host->relays = relay;
    ck_assert_int_eq(
        pthread_create(&relay->thread, NULL, relay_run, relay), 0);
    return pair[1];
}

static inline void
host_dial(struct host *host, const struct dial_request *request)
{
    struct dial_reply reply = {.number = request->number, .fd = -1};
    uint64_t bytes = atomic_load(&host->relay_bytes);
    int fd = connect_to(request->address);
    atomic_fetch_add(&host->n_dials, 1);
    if (fd >= 0 && bytes != 0) {
        fd = host_relay(host, fd, bytes);
    }
    if (fd < 0) {
        (void)strcpy(reply.why, "nobody is there");
    } else {
        set_nonblocking(fd);
        reply.fd = fd;
    }
    ck_assert_int_eq(dial_send_reply(host->pair[1], &reply), 0);
    if (fd >= 0) {
        (void)close(fd);
    }
}

static inline void *
host_dialler(void *arg)
{
    struct host *host = arg;
    while (!atomic_load(&host->is_stopping)) {
        struct pollfd wait = {.fd = host->pair[1], .events = POLLIN};
        struct dial_request request;
        (void)poll(&wait, 1, 20);
        if (dial_receive_request(host->pair[1], &request) == 0) {
            host_dial(host, &request);
        }
        atomic_fetch_add(&host->n_looks, 1);
    }
    while (host->relays != NULL) {
        struct relay *relay = host->relays;
        host->relays = relay->next;
        ck_assert_int_eq(pthread_join(relay->thread, NULL), 0);
        free(relay);
    }
    return NULL;
}

/* ---- hosts ---- */

static inline void
host_reload(void *context)
{
    struct host *host = context;
    atomic_fetch_add(&host->n_reloads, 1);
}

static inline void
host_lost(void *context)
{
    struct host *host = context;
    atomic_fetch_add(&host->n_ends, 1);
}

static inline void
host_listen(struct host *host)
{
    struct sockaddr_in addr = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof addr;
    host->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(host->listen_fd, 0);
    ck_assert_int_eq(
        bind(host->listen_fd, (const struct sockaddr *)&addr, sizeof addr), 0);
    ck_assert_int_eq(listen(host->listen_fd, 64), 0);
    ck_assert_int_eq(
        getsockname(host->listen_fd, (struct sockaddr *)&addr, &len), 0);
    set_nonblocking(host->listen_fd);
    (void)snprintf(host->address, sizeof host->address, "127.0.0.1:%u",
        (unsigned)ntohs(addr.sin_port));
}

/* Makes one; no store is open. */
static inline void
host_init(struct host *host, const char *name, uint64_t seed)
{
    *host = (struct host){.random = seed};
    rig_init(&host->rig, WAL_SYNC_INTERVAL, ID_RANDOM, seed);
    host->rig.data.is_replicated = true;
    host->rig.data.log_file_bytes = UINT64_C(1) << 18;
    host->rig.data.interval_ms = 20;
    host_listen(host);
    ck_assert_int_eq(
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, host->pair), 0);
    set_nonblocking(host->pair[0]);
    set_nonblocking(host->pair[1]);
    host->config = (struct node_config){.logger = &host->rig.logger,
        .secret = &host->secret,
        .listen_fd = &host->listen_fd,
        .n_listen = 1,
        .dial_fd = host->pair[0],
        .control_fd = -1,
        .level = REPLICA_WRITTEN,
        .max_lag_ms = 60000,
        .timeout_ms = 30000,
        .commit_timeout_ms = 1000,
        .copy_silent_ms = 600000,
        .backlog_bytes = UINT64_C(1) << 30,
        .priority = 100,
        .reload_fn = host_reload,
        .lost_fn = host_lost,
        .context = host};
    ck_assert(node_name_set(&host->config.name, name, strlen(name)));
    ck_assert(node_name_set(&host->config.group, "posts", 5));
    node_boot_id(host->config.boot_id);
    ck_assert_int_eq(
        pthread_create(&host->dialler, NULL, host_dialler, host), 0);
}

/* Opens the store, for a node which follows that one; NULL: it is a primary. */
static inline void
host_load(struct host *host, const char *primary)
{
    struct node_config *config = &host->config;
    ck_assert_int_eq(rig_open(&host->rig), 0);
    config->store = host->rig.store;
    config->file = (struct replica_file){0};
    (void)replica_file_read(host->rig.data.disk, &config->file);
    if (host->is_of_group) {
        config->file.cluster = config->file.group = config->group;
    }
    (void)snprintf(config->primary, sizeof config->primary, "%s",
        primary == NULL ? "" : primary);
}

/* The same, and begins the node. */
static inline void
host_open(struct host *host, const char *primary)
{
    struct buf why = {0};
    struct node_config *config = &host->config;
    host_load(host, primary);
    int err = node_start(config, &host->node, &why);
    buf_add(&why, "", 1);
    EXPECT(err == 0, "%s: %s", config->name.text, why.data);
    buf_fini(&why);
}

static inline void
host_close(struct host *host)
{
    node_stop(&host->node);
    ck_assert_int_eq(rig_close(&host->rig), 0);
}

static inline void
host_fini(struct host *host)
{
    atomic_store(&host->is_stopping, true);
    ck_assert_int_eq(pthread_join(host->dialler, NULL), 0);
    (void)close(host->pair[0]);
    (void)close(host->pair[1]);
    (void)close(host->listen_fd);
    rig_fini(&host->rig);
}

/* The directory is loaded anew, as the node asked for. */
static inline void
host_load_again(struct host *host)
{
    char follows[NODE_ADDRESS_MAX + 1];
    node_follows(host->node, follows);
    host_close(host);
    host->config.is_again = true;
    host_open(host, follows);
    host->config.is_again = false;
}

struct host_copying {
    struct disk *from, *to;
};

static inline void
host_copy_file(void *context, const char *name)
{
    struct host_copying *it = context;
    const struct disk_calls *from = it->from->calls, *to = it->to->calls;
    char bytes[4096];
    uint64_t at = 0;
    int in, out;
    size_t n;
    if (strcmp(name, REPLICA_NAME) == 0) {
        return; /* each has its own */
    }
    ck_assert_int_eq(from->open(it->from, name, DISK_READ, &in), 0);
    ck_assert_int_eq(to->open(it->to, name, DISK_CREATE, &out), 0);
    do {
        ck_assert_int_eq(
            from->read(it->from, in, bytes, sizeof bytes, at, &n), 0);
        ck_assert_int_eq(to->write(it->to, out, bytes, n, at), 0);
        at += n;
    } while (n > 0);
    ck_assert_int_eq(to->sync(it->to, out), 0);
    from->close(it->from, in);
    to->close(it->to, out);
}

/* The other one, which is empty, has a copy of its directory; both are
 * closed. */
static inline void
host_copy(struct host *host, struct host *other)
{
    struct host_copying it = {host->rig.data.disk, other->rig.data.disk};
    ck_assert_int_eq(it.from->calls->list(it.from, host_copy_file, &it), 0);
    ck_assert_int_eq(it.to->calls->sync_names(it.to), 0);
}

/* ---- what a node says ---- */

struct host_stat {
    const char *name;
    char value[512];
    bool is_there;
};

static inline void
host_note_stat(void *context, const char *name, const char *value)
{
    struct host_stat *stat = context;
    if (strcmp(name, stat->name) == 0) {
        stat->is_there = true;
        (void)snprintf(stat->value, sizeof stat->value, "%s", value);
    }
}

static inline uint64_t
host_stat(struct host *host, const char *name)
{
    struct host_stat stat = {.name = name};
    node_each_stat(host->node, host_note_stat, &stat);
    return stat.is_there ? strtoull(stat.value, NULL, 10) : 0;
}

static inline bool
host_says(struct host *host, const char *name, const char *value)
{
    struct host_stat stat = {.name = name};
    node_each_stat(host->node, host_note_stat, &stat);
    return stat.is_there && strcmp(stat.value, value) == 0;
}

static inline uint64_t
host_last(struct host *host)
{
    struct store_position position;
    store_position(host->rig.store, &position);
    return position.written;
}

/* True where the other one has applied all that this one has. */
static inline bool
host_is_followed(struct host *host, struct host *other)
{
    (void)store_commit(host->rig.store, rig_stat(&host->rig, "last_seq"));
    return store_applied(other->rig.store) == rig_stat(&host->rig, "last_seq");
}

static inline bool
hosts_are_equal(struct host *a, struct host *b, const char *counter)
{
    struct store_digest one = digest_of(a->rig.store, counter);
    struct store_digest two = digest_of(b->rig.store, counter);
    return one.sum == two.sum && one.records == two.records;
}

/* True where that text is in what the node says of a replica. */
static inline bool
host_replica_says(struct host *host, const char *name, const char *text)
{
    struct host_stat stat = {.name = name};
    node_each_replica(host->node, host_note_stat, &stat);
    return stat.is_there && strstr(stat.value, text) != NULL;
}

/* ---- orders ---- */

/* `replicaof`; the err. */
static inline int
host_replicaof(struct host *host, const char *address)
{
    struct answer answer;
    struct node_order order = {.err = -1};
    answer_init(&answer);
    order.call = call_of(&answer);
    (void)snprintf(order.address, sizeof order.address, "%s", address);
    node_replicaof(host->node, &order);
    answer_wait(&answer);
    answer_fini(&answer);
    return order.err;
}

/* `wait`; how many have it. */
static inline unsigned
host_wait(struct host *host, uint64_t seq, unsigned n, uint64_t ms)
{
    struct answer answer;
    struct node_wait wait = {.seq = seq, .n = n, .ms = ms};
    answer_init(&answer);
    wait.call = call_of(&answer);
    node_wait(host->node, &wait);
    answer_wait(&answer);
    answer_fini(&answer);
    return wait.n_have;
}

/* ---- what there is, and changes of it ---- */

enum { WORLD_IDS = 64, WORLD_CHANGES = 50 };

static const char *const world_lines[] = {"add counter w maxjump=1000000",
    "add column w wid primarykey", "add column w wa default=7",
    "add column w wb max=64", "add column w wc"};

static inline void
world_declare(struct host *host)
{
    edit_all(host->rig.store, world_lines, COUNT_OF(world_lines));
}

/* Changes n cells; with what the last one is committed. */
static inline uint64_t
change_some(struct host *host, unsigned n)
{
    static const char *const name[] = {"wa", "wb", "wc"};
    uint64_t seq = 0;
    for (unsigned i = 0; i < n; i++) {
        struct cell_key key = cell_of(quiet_schema(host->rig.store),
            random_below(&host->random, WORLD_IDS), name[i % 3]);
        struct change change =
            change_of(&key, CHANGE_SET, random_below(&host->random, 1 << 20));
        seq = do_changes(host->rig.store, &change, 1);
        ck_assert_int_eq(change.err, 0);
        (void)store_commit(host->rig.store, seq);
    }
    return seq;
}

/* A primary, and replicas that begin with a copy of its directory. */
struct world {
    struct host a, b, c;
};

static inline void
world_init(struct world *world, unsigned semi_sync, unsigned min_replicas)
{
    host_init(&world->a, "a", 1);
    host_init(&world->b, "b", 2);
    host_init(&world->c, "c", 3);
    host_open(&world->a, NULL);
    world_declare(&world->a);
    (void)change_some(&world->a, WORLD_CHANGES);
    host_close(&world->a);
    host_copy(&world->a, &world->b);
    host_copy(&world->a, &world->c);
    world->a.config.semi_sync = semi_sync;
    world->a.config.min_replicas = min_replicas;
    host_open(&world->a, NULL);
}

static inline void
world_fini(struct world *world)
{
    host_fini(&world->a);
    host_fini(&world->b);
    host_fini(&world->c);
}

#endif
