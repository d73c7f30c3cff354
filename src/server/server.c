/* SPDX-License-Identifier: BSD-3-Clause */
/* The composition root: makes the parts in order, runs the main loop, takes
 * them down in the reverse order.
 *
 * Order at start (see process.h): options, limits, background, sockets, the
 * schema file's text (perhaps readable for root only), then the user is
 * dropped, and only then threads and clients come. Every failure before that
 * is one line on stderr and exit status 1, and undoes nothing but what the
 * kernel undoes at exit. At SIGINT or SIGTERM the listening sockets close
 * first, then each worker ends its connections, then the store goes. */
#include "server/server.h"

#include "base/assert.h"
#include "base/err.h"
#include "net/listener.h"
#include "net/worker.h"
#include "server/admin.h"
#include "server/options.h"
#include "server/process.h"
#include "server/schema_file.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

_Static_assert(OPTIONS_HOT_MEMORY_MIN == ENGINE_HOT_BYTES_MIN,
    "the option lets through what the engine takes");

enum { WORKERS_MAX = 256, MS_PER_S = 1000, PATH_BYTES = 1100 };

struct server {
    struct options options;
    const struct server_hooks *hooks; /* NULL: none */
    struct logger logger;
    struct conn_gauge gauge;
    uv_loop_t loop; /* the main thread's */
    uv_signal_t on_int, on_term, on_hup;
    struct listener listener;
    struct store *real;  /* of store_create */
    struct store *store; /* real, or the hooks' */
    struct server_admin admin;
    struct worker *workers[WORKERS_MAX];
    unsigned n_workers;
    int ready_fd; /* of process_daemonize, or -1 */
    bool has_pidfile;
    struct buf schema_text;
    struct buf ports; /* lines for MEMCACHED_PORT_FILENAME */
    struct buf why;   /* the line for stderr of what failed */
};

static void
on_stop_signal(uv_signal_t *signal, int number)
{
    struct server *server = signal->data;
    log_line(&server->logger, LOG_INFO, "stopping (signal %d)", number);
    uv_stop(&server->loop);
}

static void
on_hup(uv_signal_t *signal, int number)
{
    struct server *server = signal->data;
    log_line(&server->logger, LOG_INFO,
        "signal %d: nothing to reload in this version", number);
}

static void
watch_signal(struct server *server, uv_signal_t *watcher, int number,
    uv_signal_cb callback)
{
    uv_signal_init(&server->loop, watcher);
    watcher->data = server;
    uv_signal_start(watcher, callback, number);
}

/* One address of -l. */
static int
listen_on(struct server *server, const struct options_address *address,
    bool optional)
{
    int port = address->port != OPTIONS_NO_PORT ? address->port
                                                : server->options.port;
    unsigned before = server->listener.n_sockets;
    uint16_t bound = 0;
    bool is_v6 = strchr(address->host, ':') != NULL;
    int err = listener_add_tcp(&server->listener, address->host,
        port < 0 ? 0 : (uint16_t)port, optional, &bound, &server->why);
    if (err == 0 && server->listener.n_sockets > before) {
        buf_addf(
            &server->ports, "TCP %s: %u\n", is_v6 ? "INET6" : "INET", bound);
        log_line(&server->logger, LOG_INFO, "listening on %s port %u",
            address->host, bound);
    }
    return err;
}

static int
open_sockets(struct server *server)
{
    const struct options *options = &server->options;
    int err = 0;
    if (options->unix_socket.text[0] != '\0') {
        err = listener_add_unix(&server->listener, options->unix_socket.text,
            (mode_t)options->unix_mask, &server->why);
    }
    for (unsigned i = 0;
         err == 0 && options_want_tcp(options) && i < options->listen.n; i++) {
        err = listen_on(
            server, &options->listen.address[i], options->listen.is_default);
    }
    if (err == 0 && server->listener.n_sockets == 0) {
        if (server->why.len == 0) {
            buf_add_text(
                &server->why, "no address to listen on: give -l, -p or -s");
        }
        err = ERR_SYSTEM;
    }
    return err;
}

/* Tells a starting program which ports were bound: whole, or not at all. */
static int
write_port_file(struct server *server)
{
    const char *path = getenv("MEMCACHED_PORT_FILENAME");
    char temporary[PATH_BYTES];
    if (path == NULL) {
        return 0;
    }
    int n = snprintf(temporary, sizeof temporary, "%s.lck", path);
    FILE *file =
        n < 0 || (size_t)n >= sizeof temporary ? NULL : fopen(temporary, "we");
    bool written = file != NULL &&
        (server->ports.len == 0 ||
            fwrite(server->ports.data, server->ports.len, 1, file) == 1);
    if (file != NULL && fclose(file) != 0) {
        written = false;
    }
    if (!written || rename(temporary, path) != 0) {
        buf_addf(&server->why, "cannot write MEMCACHED_PORT_FILENAME %s: %s",
            path, strerror(errno));
        return ERR_SYSTEM;
    }
    return 0;
}

static int
create_store(struct server *server)
{
    const struct options *options = &server->options;
    struct store_config config = {
        .shards = (unsigned)options->shards,
        .hot_bytes = options->hot_memory,
        .items = {.limit_bytes = options->memory_limit,
            .item_bytes_max = options->item_size_max},
    };
    if (getrandom(&config.seed, sizeof config.seed, 0) != sizeof config.seed ||
        getrandom(&config.items.seed, sizeof config.items.seed, 0) !=
            sizeof config.items.seed) {
        buf_addf(&server->why, "no random numbers: %s", strerror(errno));
        return ERR_SYSTEM;
    }
    int err = store_create(&config, &server->real);
    server->store = server->real;
    if (err == 0 && server->hooks != NULL) {
        err = server->hooks->wrap_fn(server->real, &server->store);
    } /* a wrapper that fails leaves store as it was */
    if (err != 0) {
        buf_addf(&server->why, "cannot make the store: %s", err_text(err));
    }
    return err;
}

static int
start_workers(struct server *server)
{
    const struct options *options = &server->options;
    struct worker_config config = {
        .store = server->store,
        .admin = &server->admin.admin,
        .logger = &server->logger,
        .gauge = &server->gauge,
        .value_bytes_max = options->item_size_max,
        .requests_per_turn = (unsigned)options->reqs_per_event,
        .command_timeout_ms = (uint64_t)options->command_timeout_s * MS_PER_S,
        .write_timeout_ms = (uint64_t)options->write_timeout_s * MS_PER_S,
    };
    int err = 0;
    ASSERT(options->threads <= WORKERS_MAX);
    while (err == 0 && server->n_workers < (unsigned)options->threads) {
        err = worker_start(&config, &server->workers[server->n_workers]);
        if (err == 0) {
            server->n_workers++;
        }
    }
    if (err != 0) {
        buf_addf(&server->why, "cannot start worker %u: %s",
            server->n_workers + 1, err_text(err));
    }
    return err;
}

static void
stop_workers(struct server *server)
{
    for (unsigned i = 0; i < server->n_workers; i++) {
        worker_stop(server->workers[i]);
    }
    for (unsigned i = 0; i < server->n_workers; i++) {
        worker_join(server->workers[i]);
    }
    /* one of the last to end may have summed the metrics of all */
    for (unsigned i = 0; i < server->n_workers; i++) {
        worker_destroy(&server->workers[i]);
    }
}

/* What must happen before there are threads. */
static int
prepare(struct server *server)
{
    struct options *options = &server->options;
    struct buf *why = &server->why;
    unsigned long fds =
        (unsigned long)options->conn_limit + PROCESS_FDS_RESERVED;
    int err = process_refuse_root(options->user.text, why);
    if (err == 0) {
        err = process_raise_fd_limit(fds, why);
    }
    if (err == 0) {
        err = options_resolve_paths(options, why);
    }
    if (err == 0 && options->daemon) {
        err = process_daemonize(&server->ready_fd, why);
    }
    return err;
}

/* The main loop and what is always on it. */
static int
open_loop(struct server *server)
{
    const struct options *options = &server->options;
    struct listener_config config = {.loop = &server->loop,
        .logger = &server->logger,
        .gauge = &server->gauge,
        .workers = server->workers,
        .n_workers = (unsigned)options->threads,
        .conn_limit = (unsigned)options->conn_limit,
        .backlog = options->listen_backlog};
    if (uv_loop_init(&server->loop) != 0) {
        buf_add_text(&server->why, "cannot make an event loop");
        return ERR_SYSTEM;
    }
    listener_init(&server->listener, &config);
    watch_signal(server, &server->on_int, SIGINT, on_stop_signal);
    watch_signal(server, &server->on_term, SIGTERM, on_stop_signal);
    watch_signal(server, &server->on_hup, SIGHUP, on_hup);
    return 0;
}

static int
open_files(struct server *server)
{
    struct options *options = &server->options;
    struct buf *why = &server->why;
    int err = open_sockets(server);
    if (err == 0) {
        err = write_port_file(server);
    }
    if (err == 0 && options->schema.text[0] != '\0') {
        err =
            schema_file_read(options->schema.text, &server->schema_text, why);
    }
    if (err == 0) {
        err = process_drop_user(options->user.text, why);
    }
    if (err == 0 && options->pidfile.text[0] != '\0') {
        err = process_write_pidfile(options->pidfile.text, why);
        server->has_pidfile = err == 0;
    }
    return err;
}

static int
start_threads(struct server *server)
{
    int err = create_store(server);
    if (err == 0) {
        err = schema_file_load(server->real, server->options.schema.text,
            &server->schema_text, &server->why);
    }
    if (err != 0) {
        return err;
    }
    server->admin.store = server->store;
    err = start_workers(server);
    server->admin.n_workers = server->n_workers;
    if (err == 0 && listener_start(&server->listener) != 0) {
        buf_add_text(&server->why, "cannot watch the listening sockets");
        err = ERR_SYSTEM;
    }
    return err;
}

static int
serve(struct server *server)
{
    log_line(&server->logger, LOG_WARNING,
        "counters live in memory only in this version: they are gone when "
        "the server stops%s",
        server->options.data.text[0] == '\0' ? ""
                                             : " (--data is not used yet)");
    int err = process_ready(
        &server->ready_fd, server->options.verbosity > 0, &server->why);
    if (err == 0) {
        uv_run(&server->loop, UV_RUN_DEFAULT);
    }
    return err;
}

/* Takes down what there is, after open_loop. */
static int
stop_all(struct server *server)
{
    int err = 0;
    listener_stop(&server->listener);
    uv_close((uv_handle_t *)&server->on_int, NULL);
    uv_close((uv_handle_t *)&server->on_term, NULL);
    uv_close((uv_handle_t *)&server->on_hup, NULL);
    uv_run(&server->loop, UV_RUN_DEFAULT);
    stop_workers(server);
    if (server->store != server->real) {
        server->hooks->unwrap_fn(&server->store);
    }
    if (server->real != NULL) {
        store_destroy(&server->real);
    }
    if (server->has_pidfile) {
        err =
            process_remove_pidfile(server->options.pidfile.text, &server->why);
    }
    uv_loop_close(&server->loop);
    return err;
}

static int
run(struct server *server)
{
    signal(SIGPIPE, SIG_IGN);
    server->admin.options = &server->options;
    server->admin.logger = &server->logger;
    server->admin.gauge = &server->gauge;
    server->admin.workers = server->workers;
    int err = prepare(server);
    if (err == 0) {
        err = open_loop(server);
    }
    if (err != 0) {
        return err;
    }
    err = open_files(server);
    if (err == 0) {
        err = start_threads(server);
    }
    if (err == 0) {
        err = serve(server);
    }
    int stop_err = stop_all(server);
    return err != 0 ? err : stop_err;
}

static void
free_server(struct server *server)
{
    admin_fini(&server->admin);
    buf_fini(&server->schema_text);
    buf_fini(&server->ports);
    buf_fini(&server->why);
    free(server);
}

int
server_run(int argc, char **argv, const struct server_hooks *hooks)
{
    struct buf message = {0};
    struct server *server = calloc(1, sizeof *server);
    int status = EXIT_FAILURE;
    if (server == NULL) {
        return status;
    }
    server->hooks = hooks;
    server->ready_fd = -1;
    admin_init(&server->admin);
    enum options_result result =
        options_parse(argc, argv, &server->options, &message);
    if (result == OPTIONS_RUN) {
        atomic_init(&server->logger.verbosity, server->options.verbosity);
        int err = run(server);
        if (err != 0) {
            log_line(&server->logger, LOG_ERROR, "%.*s", (int)server->why.len,
                server->why.len == 0 ? "" : server->why.data);
        }
        status = err == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
    } else {
        bool fine = result == OPTIONS_EXIT_OK;
        fwrite(message.data, 1, message.len, fine ? stdout : stderr);
        status = fine && fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
    }
    buf_fini(&message);
    free_server(server);
    return status;
}
