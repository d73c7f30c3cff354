/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes what a node of replication needs, in the order of a start: the process
 * that connects, then the secret and the sockets, and, whenever a store has
 * been loaded, the node itself.
 *
 * Sessions get at the node by the seam, in a turn of theirs, as readers of the
 * store's qsbr: replication_end takes the node away, waits until all of them
 * have been quiescent since, and stops it then; what they have asked by then
 * the node answers.
 *
 * Which server is followed is what the command line says until somebody orders
 * something else, and that until the process ends: the store may be loaded anew
 * in between. */
#include "server/replication.h"

#include "base/assert.h"
#include "base/err.h"
#include "repl/dial.h"
#include "server/dialler.h"
#include "server/options_repl_check.h"
#include "store/store_repl.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MS_PER_S = 1000, COPY_SILENT_MS = 600 * MS_PER_S };

_Static_assert((int)REPLICA_WRITTEN == OPTIONS_ACK_WRITTEN + 1 &&
        (int)REPLICA_SYNCED == OPTIONS_ACK_SYNCED + 1 &&
        (int)REPLICA_APPLIED == OPTIONS_ACK_APPLIED + 1,
    "the words of --replica-ack are in this order");
_Static_assert((int)GROUP_ADDRESS_MAX == (int)NODE_ADDRESS_MAX &&
        (int)NODE_ADDRESS_MAX == (int)DIAL_ADDRESS_MAX,
    "an address goes from a client to the process that connects");

static struct replication *
of(struct group *group)
{
    struct replication *replication = (struct replication *)group;
    ASSERT(replication->magic == REPLICATION_MAGIC);
    return replication;
}

static struct node *
node_of(struct replication *replication)
{
    /* seq_cst: with the exchange of replication_end and its qsbr_wait */
    return atomic_load(&replication->node);
}

/* ---- what sessions ask ---- */

static const char *
primary_of(struct group *group)
{
    struct node *node = node_of(of(group));
    return node == NULL ? "" : node_primary(node);
}

static bool
is_fresh(struct group *group)
{
    struct node *node = node_of(of(group));
    return node == NULL || node_is_fresh(node);
}

static unsigned
port_of(const struct sockaddr_storage *bound)
{
    const struct sockaddr_in *in = (const void *)bound;
    const struct sockaddr_in6 *in6 = (const void *)bound;
    return ntohs(bound->ss_family == AF_INET ? in->sin_port : in6->sin6_port);
}

/* True where a socket of that family is bound to all addresses of it. */
static bool
is_any(const struct sockaddr_storage *bound)
{
    const struct sockaddr_in *in = (const void *)bound;
    const struct sockaddr_in6 *in6 = (const void *)bound;
    return bound->ss_family == AF_INET
        ? in->sin_addr.s_addr == INADDR_ANY
        : IN6_IS_ADDR_UNSPECIFIED(&in6->sin6_addr);
}

/* True where HOST, of the port that the socket is bound to, comes to it: its
 * address, or, of one that is bound to all, or to that, the loopback. Other
 * names nobody can look up here. */
static bool
is_own_host(const struct sockaddr_storage *bound, const char *host)
{
    const struct sockaddr_in *in = (const void *)bound;
    const struct sockaddr_in6 *in6 = (const void *)bound;
    struct in_addr v4;
    struct in6_addr v6;
    if (bound->ss_family == AF_INET) {
        uint32_t own = ntohl(in->sin_addr.s_addr);
        return (inet_pton(AF_INET, host, &v4) == 1 &&
                   (v4.s_addr == in->sin_addr.s_addr ||
                       (is_any(bound) &&
                           ntohl(v4.s_addr) >> IN_CLASSA_NSHIFT ==
                               IN_LOOPBACKNET))) ||
            (strcmp(host, "localhost") == 0 &&
                (is_any(bound) || own == INADDR_LOOPBACK));
    }
    return inet_pton(AF_INET6, host, &v6) == 1 &&
        (memcmp(&v6, &in6->sin6_addr, sizeof v6) == 0 ||
            (is_any(bound) && IN6_IS_ADDR_LOOPBACK(&v6)));
}

/* True where replication is had at that address here. */
static bool
is_own_address(
    const struct replication *replication, const char *host, const char *port)
{
    for (unsigned i = 0; i < replication->listener.n_sockets; i++) {
        struct sockaddr_storage bound;
        socklen_t len = sizeof bound;
        if (getsockname(replication->fd[i], (struct sockaddr *)&bound, &len) ==
                0 &&
            port_of(&bound) == strtoul(port, NULL, 10) &&
            is_own_host(&bound, host)) {
            return true;
        }
    }
    return false;
}

/* 0, or what is wrong with the address that is to be followed. */
static int
address_fault(const struct replication *replication, const char *address)
{
    char host[DIAL_ADDRESS_MAX + 1], port[DIAL_PORT_MAX + 1];
    if (!dial_split(address, host, port)) {
        return ERR_BAD_ADDRESS;
    }
    return is_own_address(replication, host, port) ? ERR_OWN_ADDRESS : 0;
}

/* An order on its way to the node. */
struct order {
    struct node_order at_node;
    struct group_order *from;
};

static void
on_order_done(struct store_call *call)
{
    struct order *order = call->owner;
    struct group_order *from = order->from;
    from->err = order->at_node.err;
    free(order);
    from->call.done_fn(&from->call);
}

static enum store_answer
give_order(struct group *group, struct group_order *from)
{
    struct node *node = node_of(of(group));
    from->err =
        from->address[0] == '\0' ? 0 : address_fault(of(group), from->address);
    if (from->err == 0 && node == NULL) {
        from->err = ERR_LOADING;
    }
    if (from->err != 0) {
        return STORE_DONE;
    }
    struct order *order = calloc(1, sizeof *order);
    if (order == NULL) {
        from->err = ERR_NO_MEMORY;
        return STORE_DONE;
    }
    order->from = from;
    order->at_node.call =
        (struct store_call){.done_fn = on_order_done, .owner = order};
    memcpy(order->at_node.address, from->address, sizeof from->address);
    node_replicaof(node, &order->at_node);
    return STORE_LATER;
}

/* A wait on its way to the node. */
struct waiting {
    struct node_wait at_node;
    struct group_wait *from;
};

static void
on_wait_done(struct store_call *call)
{
    struct waiting *waiting = call->owner;
    struct group_wait *from = waiting->from;
    from->n_have = waiting->at_node.n_have;
    free(waiting);
    from->call.done_fn(&from->call);
}

static enum store_answer
begin_wait(struct group *group, struct group_wait *from)
{
    struct node *node = node_of(of(group));
    struct waiting *waiting = node == NULL ? NULL : calloc(1, sizeof *waiting);
    if (waiting == NULL) { /* nobody is known to have it */
        from->n_have = 0;
        return STORE_DONE;
    }
    waiting->from = from;
    waiting->at_node =
        (struct node_wait){.call = {.done_fn = on_wait_done, .owner = waiting},
            .seq = from->seq,
            .n = from->n,
            .ms = from->ms,
            .is_unwanted = &from->is_unwanted};
    node_wait(node, &waiting->at_node);
    return STORE_LATER;
}

void
replication_each_stat(struct replication *replication, bool of_replicas,
    node_stat_fn *stat_fn, void *context)
{
    struct node *node = replication->is_wanted ? node_of(replication) : NULL;
    if (node == NULL) {
        return;
    }
    if (of_replicas) {
        node_each_replica(node, stat_fn, context);
    } else {
        node_each_stat(node, stat_fn, context);
    }
}

/* ---- a start ---- */

void
replication_init(struct replication *replication,
    const struct options *options, struct logger *logger, uv_loop_t *loop)
{
    *replication = (struct replication){.magic = REPLICATION_MAGIC,
        .group = {.primary_fn = primary_of,
            .is_fresh_fn = is_fresh,
            .order_fn = give_order,
            .wait_fn = begin_wait},
        .is_wanted = options_replicate(options),
        .options = options,
        .logger = logger,
        .dial_fd = -1};
    if (!replication->is_wanted) {
        return;
    }
    const struct listener_config config = {
        .loop = loop, .logger = logger, .backlog = NODE_STREAMS_MAX};
    listener_init(&replication->listener, &config);
    memcpy(replication->primary, options->replicaof.text,
        strlen(options->replicaof.text) + 1);
}

/* True where replication goes by TLS. */
static bool
has_tls(const struct options *options)
{
    return options->tls && options->ssl_ca_cert.text[0] != '\0';
}

int
replication_fork(struct replication *replication, struct buf *why)
{
    const struct options *options = replication->options;
    if (!replication->is_wanted) {
        return 0;
    }
    return dialler_start(options->user.text,
        options->landlock == OPTIONS_LANDLOCK_ON,
        !has_tls(options) && !options->repl_insecure, &replication->dial_fd,
        why);
}

/* As PostgreSQL sees keys: others must not read it, and a group only one of
 * root's. */
static bool
is_open_to_others(const struct stat *info)
{
    return (info->st_mode & (S_IRWXO | S_IWGRP)) != 0 ||
        ((info->st_mode & S_IRGRP) != 0 && info->st_uid != 0);
}

/* What is in the file but for line ends behind it. */
static int
take_secret(
    int fd, const char *path, struct proof_secret *out, struct buf *why)
{
    uint8_t bytes[PROOF_SECRET_MAX + 1];
    struct stat info;
    ssize_t n = fstat(fd, &info) == 0 ? read(fd, bytes, sizeof bytes) : -1;
    if (n < 0) {
        buf_addf(why, "cannot read the secret %s: %s", path, strerror(errno));
        return ERR_SYSTEM;
    }
    while (n > 0 && (bytes[n - 1] == '\n' || bytes[n - 1] == '\r')) {
        n--;
    }
    const char *wrong = !S_ISREG(info.st_mode) ? "it is no file"
        : is_open_to_others(&info) ? "others can read it: chmod 0600"
        : n < PROOF_SECRET_MIN     ? "it is shorter than 32 bytes"
        : n > PROOF_SECRET_MAX     ? "it is longer than 1024 bytes"
                                   : NULL;
    if (wrong != NULL) {
        buf_addf(why, "--repl-secret-file=%s: %s", path, wrong);
    } else {
        memcpy(out->bytes, bytes, (size_t)n);
        out->n_bytes = (size_t)n;
    }
    explicit_bzero(bytes, sizeof bytes);
    return wrong == NULL ? 0 : ERR_BAD_OPTION;
}

static int
read_secret(struct replication *replication, struct buf *why)
{
    const char *path = replication->options->repl_secret.text;
    if (path[0] == '\0') {
        return 0;
    }
    /* non-blocking: a pipe of that name must not hold us up */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        buf_addf(why, "cannot open the secret %s: %s", path, strerror(errno));
        return ERR_SYSTEM;
    }
    int err = take_secret(fd, path, &replication->secret, why);
    close(fd);
    return err;
}

static int
open_sockets(struct replication *replication, struct buf *why)
{
    const struct options *options = replication->options;
    struct listener *listener = &replication->listener;
    struct buf ports = {0};
    size_t before = why->len;
    int err = 0;
    buf_addf(why, "--repl-port=%d: ", options->repl_port);
    size_t named = why->len;
    for (unsigned i = 0;
         err == 0 && options->repl_port != 0 && i < options->repl_listen.n;
         i++) {
        const struct options_address *one = &options->repl_listen.address[i];
        int port =
            one->port != OPTIONS_NO_PORT ? one->port : options->repl_port;
        struct listener_address address = {.host = one->host,
            .port = (uint16_t)port,
            .optional = options->repl_listen.is_default,
            .loopback_only = !has_tls(options) && !options->repl_insecure,
            .advice = "--repl-listen=127.0.0.1, or -Z with -o ssl_ca_cert for "
                      "TLS, or --repl-insecure"};
        err = listener_add_tcp(listener, &address, &ports, why);
    }
    if (err == 0 && options->repl_port != 0 && listener->n_sockets == 0) {
        if (why->len == named) {
            buf_add_text(why, "no address for replicas: give --repl-listen");
        }
        err = ERR_SYSTEM;
    }
    for (unsigned i = 0; i < listener->n_sockets; i++) {
        replication->fd[i] = listener->socket[i].fd;
    }
    why->len = err == 0 ? before : why->len;
    if (err == 0 && ports.len > 0) {
        log_line(replication->logger, LOG_INFO,
            "replicas may connect to port %d%s", options->repl_port,
            has_tls(options) ? ", with TLS" : "");
    }
    buf_fini(&ports);
    return err;
}

/* Which start of the kernel it is tells whether there was a power cut. */
static void
look_at_boot_id(struct replication *replication)
{
    static const uint8_t none[REPLICA_BOOT_BYTES];
    node_boot_id(replication->boot_id);
    if (memcmp(replication->boot_id, none, sizeof none) == 0) {
        log_line(replication->logger, LOG_WARNING,
            "/proc/sys/kernel/random/boot_id cannot be read (ProcSubset=all "
            "lets a service of systemd): after a power cut this server will "
            "not say that it is doubtful");
    }
}

int
replication_open(
    struct replication *replication, struct tls *tls, struct buf *why)
{
    if (!replication->is_wanted) {
        return 0;
    }
    replication->tls = has_tls(replication->options) ? tls : NULL;
    look_at_boot_id(replication);
    int err = read_secret(replication, why);
    return err == 0 ? open_sockets(replication, why) : err;
}

/* The address of a socket, where it is one that others could connect to. */
static bool
name_socket(int fd, char *out, size_t size)
{
    struct sockaddr_storage bound;
    socklen_t len = sizeof bound;
    char host[INET6_ADDRSTRLEN];
    const struct sockaddr_in *in = (const void *)&bound;
    const struct sockaddr_in6 *in6 = (const void *)&bound;
    if (getsockname(fd, (struct sockaddr *)&bound, &len) != 0) {
        return false;
    }
    if (bound.ss_family == AF_INET && in->sin_addr.s_addr != INADDR_ANY) {
        inet_ntop(AF_INET, &in->sin_addr, host, sizeof host);
        (void)snprintf(out, size, "%s:%u", host, ntohs(in->sin_port));
        return true;
    }
    if (bound.ss_family == AF_INET6 &&
        !IN6_IS_ADDR_UNSPECIFIED(&in6->sin6_addr)) {
        inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof host);
        (void)snprintf(out, size, "[%s]:%u", host, ntohs(in6->sin6_port));
        return true;
    }
    return false;
}

void
replication_announce(
    struct replication *replication, const struct listener *clients)
{
    const char *given = replication->options->replica_announce.text;
    char *client = replication->client;
    if (!replication->is_wanted) {
        return;
    }
    if (given[0] != '\0') {
        memcpy(client, given, strlen(given) + 1);
        return;
    }
    for (unsigned i = 0; i < clients->n_sockets && client[0] == '\0'; i++) {
        (void)name_socket(
            clients->socket[i].fd, client, sizeof replication->client);
    }
    if (client[0] == '\0') {
        log_line(replication->logger, LOG_WARNING,
            "replicas cannot tell clients where this server is: give "
            "--replica-announce=HOST:PORT");
    }
}

bool
replication_is_replica(const struct replication *replication)
{
    struct node *node = atomic_load(&replication->node);
    return node != NULL && !node_leads(node);
}

/* ---- a store that has been loaded ---- */

static int
read_file(struct replication *replication, struct node_config *config,
    struct buf *why)
{
    const struct node_name *group = &config->file.group;
    int err = replica_file_read(store_disk(config->store), &config->file);
    if (err == ERR_NOT_FOUND) { /* it has been one of several never before */
        config->file = (struct replica_file){0};
        return 0;
    }
    if (err != 0) {
        buf_addf(why, "cannot read the file %s in the data directory %s: %s",
            REPLICA_NAME, replication->options->data.text, err_file_text(err));
        return err;
    }
    if (group->len > 0 &&
        (group->len != config->group.len ||
            memcmp(group->text, config->group.text, group->len) != 0)) {
        buf_addf(why,
            "the data directory %s is of the group %.*s: give "
            "--repl-group=%.*s",
            replication->options->data.text, (int)group->len, group->text,
            (int)group->len, group->text);
        return ERR_BAD_OPTION;
    }
    return 0;
}

static void
set_name(struct node_name *name, const struct options_text *text)
{
    if (text->text[0] != '\0') {
        bool is_right = node_name_set(name, text->text, strlen(text->text));
        ASSERT(is_right); /* options_repl.c has looked */
    }
}

int
replication_begin(struct replication *replication, struct store *store,
    const struct clock *clock, void (*reload_fn)(void *context), void *context,
    struct buf *why)
{
    const struct options *options = replication->options;
    struct node *node;
    if (!replication->is_wanted) {
        return 0;
    }
    struct node_config config = {.store = store,
        .logger = replication->logger,
        .clock = clock,
        .secret = &replication->secret,
        .tls = replication->tls,
        .listen_fd = replication->fd,
        .n_listen = replication->listener.n_sockets,
        .dial_fd = replication->dial_fd,
        .level = (enum replica_level)(options->replica_ack + REPLICA_WRITTEN),
        .semi_sync = (unsigned)options->semi_sync,
        .min_replicas = (unsigned)options->min_replicas,
        .max_lag_ms = (uint64_t)options->max_lag_ms,
        .timeout_ms = (uint64_t)options->repl_timeout_s * MS_PER_S,
        .commit_timeout_ms = (uint64_t)options->commit_timeout_s * MS_PER_S,
        .backlog_bytes = options->repl_backlog,
        .snapshot_rate = options->repl_rate,
        .copy_silent_ms = COPY_SILENT_MS,
        .stale_ms = options_stale_ms(options),
        .priority = (unsigned)options->replica_priority,
        .figures = &replication->figures,
        .reload_fn = reload_fn,
        .context = context};
    set_name(&config.name, &options->node);
    set_name(&config.group, &options->repl_group);
    memcpy(config.client, replication->client, sizeof config.client);
    memcpy(config.boot_id, replication->boot_id, sizeof config.boot_id);
    memcpy(config.primary, replication->primary, sizeof config.primary);
    int err = read_file(replication, &config, why);
    if (err == 0) {
        size_t before = why->len;
        err = node_start(&config, &node, why);
        if (err != 0 && why->len == before) {
            buf_addf(why, "cannot replicate: %s", err_file_text(err));
        }
    }
    if (err == 0) {
        replication->qsbr = store->qsbr;
        atomic_store(&replication->node, node); /* seq_cst: see node_of */
    }
    return err;
}

void
replication_end(struct replication *replication)
{
    struct node *node = atomic_exchange(&replication->node, NULL);
    if (node == NULL) {
        return;
    }
    qsbr_wait(replication->qsbr);
    node_follows(node, replication->primary);
    node_stop(&node);
}

void
replication_close(struct replication *replication)
{
    ASSERT(atomic_load(&replication->node) == NULL);
    if (!replication->is_wanted) {
        return;
    }
    listener_stop(&replication->listener);
    explicit_bzero(&replication->secret, sizeof replication->secret);
    if (replication->dial_fd >= 0) {
        close(replication->dial_fd); /* and the process ends */
        replication->dial_fd = -1;
    }
    replication->is_wanted = false;
}
