/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes what a node of replication needs, in the order of a start: the process
 * that connects, then the secret and the sockets, and, whenever a store has
 * been loaded, the node itself.
 *
 * Sessions get at the node by the seam (replication_group.c), in a turn of
 * theirs, as readers of the store's qsbr: replication_end takes the node away,
 * waits until all of them have been quiescent since, and stops it then; what
 * they have asked by then the node answers.
 *
 * Which server is followed is what the command line says until somebody orders
 * something else, and that until the process ends: the store may be loaded anew
 * in between. */
#include "server/replication.h"

#include "base/assert.h"
#include "base/err.h"
#include "base/small_file.h"
#include "repl/dial.h"
#include "server/dialler.h"
#include "server/etcd_option.h"
#include "server/options_failover_check.h"
#include "server/options_repl_check.h"
#include "server/own_address.h"
#include "server/replication_group.h"
#include "store/store_repl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MS_PER_S = 1000, COPY_SILENT_MS = 600 * MS_PER_S };

_Static_assert((int)REPLICA_WRITTEN == OPTIONS_ACK_WRITTEN + 1 &&
        (int)REPLICA_SYNCED == OPTIONS_ACK_SYNCED + 1 &&
        (int)REPLICA_APPLIED == OPTIONS_ACK_APPLIED + 1,
    "the words of --replica-ack are in this order");

/* ---- a start ---- */

void
replication_init(struct replication *replication,
    const struct options *options, struct logger *logger, uv_loop_t *loop)
{
    *replication = (struct replication){.magic = REPLICATION_MAGIC,
        .group = replication__group(options_is_automatic(options),
            options->forward_writes == OPTIONS_FORWARD_YES),
        .is_wanted = options_replicate(options),
        .options = options,
        .logger = logger,
        .dial_fd = -1,
        .control_fd = -1};
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
    int err = dialler_start(options->user.text,
        options->landlock == OPTIONS_LANDLOCK_ON,
        !has_tls(options) && !options->repl_insecure, &replication->dial_fd,
        why);
    if (err == 0 && options_is_automatic(options)) {
        err = etcd_option_start(options, &replication->control_fd, why);
    }
    return err;
}

static int
read_secret(struct replication *replication, struct buf *why)
{
    const struct small_file file = {.option = "--repl-secret-file",
        .what = "the secret",
        .path = replication->options->repl_secret.text,
        .least = PROOF_SECRET_MIN,
        .most = PROOF_SECRET_MAX,
        .is_private = true};
    char bytes[PROOF_SECRET_MAX + 1];
    size_t n;
    int err = small_file_read(&file, bytes, &n, why);
    if (err == 0) {
        memcpy(replication->secret.bytes, bytes, n);
        replication->secret.n_bytes = n;
    }
    explicit_bzero(bytes, sizeof bytes);
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

/* Where the other nodes connect to this one. */
static int
find_own_address(struct replication *replication, struct buf *why)
{
    const struct options *options = replication->options;
    char host[ADDRESS_MAX + 1], port[ADDRESS_PORT_MAX + 1];
    char *out = replication->repl;
    const size_t size = sizeof replication->repl;
    const char *given = options->repl_announce.text;
    const char *client = options->replica_announce.text;
    if (!options_is_automatic(options)) {
        return 0;
    }
    if (given[0] != '\0') {
        memcpy(out, given, strlen(given) + 1);
        return 0;
    }
    if (own_address_choose(
            replication->fd, replication->listener.n_sockets, out, size)) {
        return 0;
    }
    bool has_colon =
        address_split(client, host, port) && strchr(host, ':') != NULL;
    if (client[0] != '\0' &&
        snprintf(out, size, has_colon ? "[%s]:%d" : "%s:%d", host,
            options->repl_port) < (int)size) {
        return 0;
    }
    buf_add_text(why,
        "--replicate: where do the other servers find this one's --repl-port? "
        "It is open at all addresses: give --repl-announce=HOST:PORT");
    return ERR_BAD_OPTION;
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
    if (err == 0) {
        err = open_sockets(replication, why);
    }
    return err == 0 ? find_own_address(replication, why) : err;
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
        (void)own_address_name(
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

bool
replication_leads(const struct replication *replication)
{
    struct node *node = atomic_load(&replication->node);
    return node != NULL && node_leads(node);
}

/* ---- a store that has been loaded ---- */

static bool
is_same(const struct node_name *one, const struct node_name *other)
{
    return one->len == other->len &&
        memcmp(one->text, other->text, one->len) == 0;
}

/* A directory of a group in which etcd says who leads is of that one; one of a
 * group by hand becomes that. */
static int
check_cluster(
    const struct options *options, struct replica_file *file, struct buf *why)
{
    struct node_name cluster, group;
    bool is_right =
        options_split_group(options->replicate.text, &cluster, &group);
    ASSERT(is_right); /* options_failover.c has looked */
    if (file->cluster.len > 0 &&
        (!is_same(&file->cluster, &cluster) ||
            !is_same(&file->group, &group))) {
        buf_addf(why,
            "the data directory %s is of the group %.*s/%.*s, not %s: give "
            "--replicate as before, or start it once with --leave-group",
            options->data.text, (int)file->cluster.len, file->cluster.text,
            (int)file->group.len, file->group.text, options->replicate.text);
        return ERR_BAD_OPTION;
    }
    file->cluster = cluster;
    file->group = group;
    return 0;
}

static int
check_group(
    const struct options *options, struct node_config *config, struct buf *why)
{
    const struct node_name *group = &config->file.group;
    if (options_is_automatic(options)) {
        return check_cluster(options, &config->file, why);
    }
    if (group->len > 0 && !is_same(group, &config->group)) {
        buf_addf(why,
            "the data directory %s is of the group %.*s: give "
            "--repl-group=%.*s",
            options->data.text, (int)group->len, group->text, (int)group->len,
            group->text);
        return ERR_BAD_OPTION;
    }
    return 0;
}

static int
read_file(struct replication *replication, struct node_config *config,
    struct buf *why)
{
    int err = replica_file_read(store_disk(config->store), &config->file);
    if (err == ERR_NOT_FOUND) { /* it has been one of several never before */
        config->file = (struct replica_file){0};
        err = 0;
    }
    if (err != 0) {
        buf_addf(why, "cannot read the file %s in the data directory %s: %s",
            REPLICA_NAME, replication->options->data.text, err_file_text(err));
        return err;
    }
    return check_group(replication->options, config, why);
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
    const struct clock *clock, const struct replication_calls *calls,
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
        .control_fd = replication->control_fd,
        .is_again = replication->has_begun,
        .ttl_ms = (uint64_t)options->lease_ttl_s * MS_PER_S,
        .hang_ms = (uint64_t)options->hang_timeout_ms,
        .votes = options->replica_votes == OPTIONS_VOTES_YES,
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
        .forwards = options->forward_writes == OPTIONS_FORWARD_YES,
        .figures = &replication->figures,
        .reload_fn = calls->reload_fn,
        .lost_fn = calls->lost_fn,
        .serve_fn = calls->serve_fn,
        .context = calls->context};
    set_name(&config.name, &options->node);
    set_name(&config.group, &options->repl_group);
    memcpy(config.client, replication->client, sizeof config.client);
    memcpy(config.repl, replication->repl, sizeof config.repl);
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
        replication->has_begun = true;
        /* seq_cst: see replication__node */
        atomic_store(&replication->node, node);
    }
    return err;
}

void
replication_each_stat(struct replication *replication, bool of_replicas,
    node_stat_fn *stat_fn, void *context)
{
    struct node *node =
        replication->is_wanted ? replication__node(replication) : NULL;
    if (node == NULL) {
        return;
    }
    if (of_replicas) {
        node_each_replica(node, stat_fn, context);
    } else {
        node_each_stat(node, stat_fn, context);
    }
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

/* And the process at its other end ends. */
static void
close_pair(int *fd)
{
    if (*fd >= 0) {
        close(*fd);
        *fd = -1;
    }
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
    close_pair(&replication->dial_fd);
    close_pair(&replication->control_fd);
    replication->is_wanted = false;
}
