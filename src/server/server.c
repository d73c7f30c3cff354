/* SPDX-License-Identifier: BSD-3-Clause */
/* The composition root: makes the parts in order, runs the main loop, takes
 * them down in the reverse order.
 *
 * Order at start (see process.h): options, limits, background, sockets, the
 * schema file's text (perhaps readable for root only), then the user is
 * dropped, then what is not needed any more is given up (server/sandbox.h),
 * and only then threads and clients come. Every failure before that
 * is one line on stderr and exit status 1, and undoes nothing but what the
 * kernel undoes at exit. With a data directory the main loop runs while the
 * store loads; the schema file is read into it when that is done, and then the
 * server is ready. At SIGINT or SIGTERM the listening sockets close first,
 * then each worker ends its connections, then the store syncs its log and
 * goes; SIGUSR1 does the same with a checkpoint before, SIGUSR2 makes one
 * and goes on. A signal that comes during a stop changes nothing.
 *
 * A node of replication may want the directory loaded anew (load_anew): then
 * the main loop takes down what start_threads has made, the store last, and
 * makes it again, while the sockets stay open and whoever connects waits; the
 * connections there are end. The data directory stays locked in between by the
 * descriptors that keep_directory has taken. It may want the server to end,
 * since a process beside it is gone (on_lost). */
#include "server/server.h"

#include "base/assert.h"
#include "base/err.h"
#include "engine/engine.h"
#include "net/listener.h"
#include "net/worker.h"
#include "server/activation.h"
#include "server/admin.h"
#include "server/auth.h"
#include "server/auth_hash.h"
#include "server/data_option.h"
#include "server/given_files.h"
#include "server/http.h"
#include "server/listeners.h"
#include "server/logging.h"
#include "server/offline.h"
#include "server/options.h"
#include "server/options_failover_check.h"
#include "server/owning.h"
#include "server/process.h"
#include "server/remarks.h"
#include "server/replication.h"
#include "server/sandbox.h"
#include "server/schema_file.h"
#include "server/secure.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

_Static_assert(OPTIONS_HOT_MEMORY_MIN == ENGINE_HOT_BYTES_MIN,
    "the option lets through what the engine takes");

_Static_assert((int)OPTIONS_PROTOCOL_AUTO == (int)SESSION_AUTO &&
        (int)OPTIONS_PROTOCOL_ASCII == (int)SESSION_TEXT &&
        (int)OPTIONS_PROTOCOL_BINARY == (int)SESSION_BINARY,
    "the words of --protocol are in this order");

_Static_assert(OPTIONS_LOADING_ANSWER == 0 && OPTIONS_LOADING_REFUSE == 1,
    "the words of --loading are in this order");

_Static_assert((int)OPTIONS_SECCOMP_ON == (int)SANDBOX_ON &&
        (int)OPTIONS_SECCOMP_LOG == (int)SANDBOX_LOG &&
        (int)OPTIONS_SECCOMP_OFF == (int)SANDBOX_OFF,
    "the words of --seccomp are in this order");

enum {
    WORKERS_MAX = 256, /* of -t */
    MS_PER_S = 1000,
    NS_PER_MS = 1000000,
    LOADING_TELL_MS = 1000, /* between words to the service manager */
    LOG_FLUSH_MS = 1000,
    STATUS_BYTES = HEALTH_TEXT_BYTES + 64
};

enum { SERVER_SIGNALS = 5, SERVER_MAGIC = 0x73727672 };

struct server {
    uint32_t magic; /* SERVER_MAGIC */
    struct options options;
    const struct server_hooks *hooks; /* all NULL: none */
    struct logger logger;
    struct conn_gauge gauge;
    struct tls *tls; /* NULL: none is wanted */
    uv_loop_t loop;  /* the main thread's */
    uv_signal_t on_signal[SERVER_SIGNALS];
    uv_async_t loaded; /* the store has loaded, or cannot */
    uv_async_t reload; /* the node wants it destroyed, and loaded anew */
    uv_async_t lost;   /* the node has lost a process that it needs */
    uv_timer_t still_loading; /* meanwhile; then, until READY=1 is told */
    uv_timer_t log_timer;
    unsigned log_ticks; /* of it so far, one a second */
    _Atomic int load_err;
    int err;           /* why the main loop has ended; 0: it was told to */
    uint64_t begun_ns; /* since when it starts, or loads anew */
    struct data_option data_option;
    struct data_dir kept; /* of the data directory beside the store's, so that
                           * it stays locked while there is none */
    struct replication replication;
    struct http http;
    struct activation activation;
    struct listener listener;
    struct owning owning;
    struct auth *auth;   /* NULL: every client may do everything */
    struct store *real;  /* of store_create */
    struct store *store; /* real, or the hooks' */
    struct server_admin admin;
    struct worker *workers[WORKERS_MAX];
    struct conn_rooms rooms; /* the workers'; there where they are */
    unsigned n_workers;
    atomic_uint n_inner; /* of the workers, that take requests of
                                * replicas; the node's thread reads it */
    unsigned next_inner; /* the node's thread: one of these */
    struct watch_hub watch;
    bool has_watch;
    int ready_fd; /* of process_daemonize, or -1 */
    bool has_pidfile;
    bool is_schema_due; /* the schema file, once this server is the primary */
    bool is_lossy;      /* of --salvage */
    struct helpers *helpers; /* the workers'; NULL without TLS */
    struct buf schema_text;
    struct buf ports; /* lines for MEMCACHED_PORT_FILENAME */
    struct buf why;   /* the line for stderr of what failed */
};

/* For a service manager: what a last checkpoint may take, in microseconds; one
 * is made at any stop where files are missing. */
#define LAST_CHECKPOINT_TIME "EXTEND_TIMEOUT_USEC=3600000000"

/* signal, what is to be done */
#define SIGNALS(X)                                                            \
    X(SIGINT, STOP)                                                           \
    X(SIGTERM, STOP)                                                          \
    X(SIGUSR1, CHECKPOINT_AND_STOP)                                           \
    X(SIGUSR2, CHECKPOINT)                                                    \
    X(SIGHUP, RELOAD)

enum signal_deed { STOP, CHECKPOINT_AND_STOP, CHECKPOINT, RELOAD };

static const struct {
    int number;
    const char *name;
    enum signal_deed deed;
} signals[] = {
#define X(number, deed) {number, #number, deed},
    SIGNALS(X)
#undef X
};
_Static_assert(sizeof signals / sizeof signals[0] == SERVER_SIGNALS,
    "one watcher a signal");

/* The place in signals of one that is watched. */
static unsigned
place_of(int number)
{
    unsigned i = 0;
    while (i < SERVER_SIGNALS && signals[i].number != number) {
        i++;
    }
    ASSERT(i < SERVER_SIGNALS);
    return i;
}

/* What is in files and may change while the server runs. */
static void
reload(struct server *server, const char *signal)
{
    struct buf why = {0};
    logging_reload(&server->logger, signal);
    if (server->auth != NULL) {
        auth_reload_said(server->auth, &server->logger, signal);
        for (unsigned i = 0; i < server->n_workers; i++) {
            worker_look_at_users(server->workers[i]);
        }
    }
    if (server->real != NULL) {
        owning_reload(&server->owning, server->real->qsbr, signal);
    }
    if (server->tls != NULL) { /* it logs what comes of it */
        (void)secure_reload(server->tls, &server->logger, &why);
    }
    if (server->logger.path == NULL && server->auth == NULL &&
        server->owning.path == NULL && server->tls == NULL) {
        log_event(&server->logger, "server", LOG_NOTICE,
            "%s: no option names a file that would be read anew", signal);
    }
    buf_fini(&why);
}

static void
on_signal(uv_signal_t *watcher, int number)
{
    struct server *server = watcher->data;
    const char *name = signals[place_of(number)].name;
    ASSERT(server->magic == SERVER_MAGIC);
    switch (signals[place_of(number)].deed) {
    case CHECKPOINT_AND_STOP:
        if (server->real != NULL) {
            store_want_last_checkpoint(server->real);
            (void)process_notify(LAST_CHECKPOINT_TIME);
        }
        break;
    case CHECKPOINT:
        if (server->real != NULL) {
            store_want_checkpoint(server->real);
        }
        return;
    case RELOAD:
        reload(server, name);
        return;
    case STOP:
        break;
    }
    log_event(&server->logger, "server", LOG_NOTICE, "stopping (%s)", name);
    uv_stop(&server->loop);
}

static void
watch_signal(struct server *server, uv_signal_t *watcher, int number)
{
    uv_signal_init(&server->loop, watcher);
    watcher->data = server;
    uv_signal_start(watcher, on_signal, number);
}

/* On a thread of the store. */
static void
on_store_loaded(void *context, int err)
{
    struct server *server = context;
    ASSERT(server->magic == SERVER_MAGIC);
    atomic_store(&server->load_err, err);
    uv_async_send(&server->loaded);
}

static bool
loads(const struct server *server)
{
    return server->data_option.is_wanted &&
        !server->data_option.config.is_missing;
}

static int
create_store(struct server *server)
{
    const struct options *options = &server->options;
    struct store_config config = {
        .shards = (unsigned)options->shards,
        .hot_bytes = options->hot_memory,
        .producers_max = (uint32_t)options->max_producers,
        .items = {.limit_bytes = atomic_load(&server->admin.memory_limit),
            .item_bytes_max = options->item_size_max,
            .keeps = options->keeps},
        .data =
            server->data_option.is_wanted ? &server->data_option.config : NULL,
        .clock = server->hooks->clock,
    };
    server->data_option.config.loaded_fn = on_store_loaded;
    server->data_option.config.context = server;
    if (getrandom(&config.seed, sizeof config.seed, 0) != sizeof config.seed ||
        getrandom(&config.items.seed, sizeof config.items.seed, 0) !=
            sizeof config.items.seed) {
        buf_addf(&server->why, "no random numbers: %s", strerror(errno));
        return ERR_SYSTEM;
    }
    int err = store_create(&config, &server->real);
    server->store = server->real;
    if (err == 0 && server->hooks->wrap_fn != NULL) {
        err = server->hooks->wrap_fn(server->real, &server->store);
    } /* a wrapper that fails leaves store as it was */
    if (err != 0) {
        buf_addf(&server->why, "cannot make the store: %s%s%s%s",
            err_file_text(err),
            loads(server) ? "; the data directory is " : "",
            loads(server) ? options->data.text : "",
            err == ERR_CORRUPT ? OFFLINE_ADVICE : "");
        return err;
    }
    if (server->real->shards != (unsigned)options->shards) {
        log_line(&server->logger, LOG_INFO,
            "the data directory has %u shards, which stay; --shards=%d is for "
            "new ones",
            server->real->shards, options->shards);
        server->options.shards = (int)server->real->shards;
    }
    return 0;
}

/* Descriptors that the process may have: both ends of each pair of sockets by
 * which replicas' requests come, too. */
static unsigned
fds_of(const struct options *options)
{
    bool forwards = options->forward_writes == OPTIONS_FORWARD_YES;
    return (unsigned)options->conn_limit + PROCESS_FDS_RESERVED +
        (forwards ? 2 * (unsigned)NODE_FORWARD_WINDOW * NODE_STREAMS_MAX : 0);
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
        .clock = server->hooks->clock,
        .tls = server->tls,
        .binding = (enum session_binding)options->protocol,
        .rules = {.no_cas = options->no_cas,
            .no_flush = options->no_flush,
            .no_dump = options->no_dump,
            .no_watch = options->no_watch,
            .no_near = options->near_cells == OPTIONS_NEAR_CELLS_ERROR,
            .no_items = options->memory_limit == 0,
            .holds_reads = options->reads == OPTIONS_READS_COMMITTED
                ? SESSION_HOLDS_READS
                : 0},
        .access = server->auth == NULL ? NULL : auth_access(server->auth),
        .owner = owning_owner(&server->owning),
        .group =
            server->replication.is_wanted ? &server->replication.group : NULL,
        .waits_for_copies = options->semi_sync > 0,
        .value_bytes_max = options->item_size_max,
        .fds_max = fds_of(options),
        .rooms = &server->rooms,
        .n_workers = (unsigned)options->threads,
        .requests_per_turn = (unsigned)options->reqs_per_event,
        .command_timeout_ms = (uint64_t)options->command_timeout_s * MS_PER_S,
        .write_timeout_ms = (uint64_t)options->write_timeout_s * MS_PER_S,
        .idle_timeout_ms = (uint64_t)options->idle_timeout_s * MS_PER_S,
        .login_timeout_ms = WORKER_LOGIN_MS,
        .commit_timeout_ms = (uint64_t)options->commit_timeout_s * MS_PER_S,
        .shake_timeout_ms = WORKER_SHAKE_MS,
        .stop_timeout_ms = WORKER_STOP_MS,
        .slow_ms = atomic_load(&server->admin.slow_ms),
    };
    ASSERT(options->threads <= WORKERS_MAX);
    conn_rooms_init(&server->rooms, options->request_memory,
        options->item_size_max, (unsigned)options->threads);
    int err = watch_start(&server->watch, (unsigned)options->threads);
    server->has_watch = err == 0;
    items_set_witness(server->store->items, &server->watch.witness);
    log_listen(&server->logger, err == 0 ? &server->watch.listener : NULL);
    if (err == 0 && server->tls != NULL) {
        err = helpers_start(&server->helpers);
        config.helpers = server->helpers;
    }
    while (err == 0 && server->n_workers < (unsigned)options->threads) {
        config.watch = &server->watch.ring[server->n_workers];
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
    helpers_stop(&server->helpers);
    /* one of the last to end may have summed the metrics of all */
    admin_keep_metrics(&server->admin);
    for (unsigned i = 0; i < server->n_workers; i++) {
        worker_destroy(&server->workers[i]);
    }
    server->n_workers = 0;
    conn_rooms_fini(&server->rooms);
    server->rooms = (struct conn_rooms){0};
}

static void
lock_memory(struct server *server)
{
    struct buf message = {0};
    if (process_lock_memory(&message) != 0) {
        log_line(&server->logger, LOG_WARNING, "%.*s", (int)message.len,
            message.len == 0 ? "" : message.data);
    }
    buf_fini(&message);
}

/* What must happen before there are threads. */
static int
prepare(struct server *server)
{
    struct options *options = &server->options;
    struct buf *why = &server->why;
    unsigned long fds = fds_of(options);
    int err = process_refuse_root(options->user.text, why);
    data_option_choose(&server->data_option, options);
    process_narrow_umask();
    if (err == 0) {
        err = activation_take(&server->activation, why);
    }
    if (err == 0) {
        err = process_raise_fd_limit(fds, why);
    }
    if (err == 0) {
        err = options->core_files ? process_raise_core_limit(why)
                                  : process_forbid_core(why);
    }
    if (err == 0) {
        err = options_resolve_paths(options, why);
    }
    if (err == 0 && options->daemon) {
        /* a core file goes to the working directory */
        err = process_daemonize(options->core_files, &server->ready_fd, why);
    }
    if (err == 0 && options->lock_memory) {
        lock_memory(server);
    }
    if (err == 0) {
        remarks_on_options(options, &server->logger);
    }
    return err;
}

/* Those that are not for clients. */
static int
open_sockets(struct server *server)
{
    int err =
        replication_open(&server->replication, server->tls, &server->why);
    return err == 0 ? http_open(&server->http, &server->why) : err;
}

static int
open_files(struct server *server)
{
    struct options *options = &server->options;
    struct buf *why = &server->why;
    struct listeners listeners = {.options = options,
        .activation = &server->activation,
        .listener = &server->listener,
        .logger = &server->logger,
        .ports = &server->ports,
        .why = why};
    int err = replication_fork(&server->replication, why);
    if (err == 0) {
        err = secure_open(options, &server->logger, &server->tls, why);
    }
    server->admin.tls = server->tls;
    listeners.has_tls = server->tls != NULL;
    if (err == 0) {
        err = listeners_open(&listeners);
    }
    if (err == 0) {
        err = open_sockets(server);
    }
    if (err == 0) { /* who waits for that file finds all sockets */
        err = listeners_write_ports(&listeners);
    }
    if (err == 0) {
        replication_announce(&server->replication, &server->listener);
        err = given_files_read(
            options, &server->data_option, &server->schema_text, why);
    }
    if (err == 0) {
        err = data_option_make(
            &server->data_option, options, &server->logger, why);
    }
    if (err == 0) {
        err = process_drop_user(options->user.text, why);
    }
    if (err == 0) {
        err = process_drop_capabilities(why);
    }
    if (err == 0) {
        secure_look(options, &server->logger);
    }
    if (err == 0 && options->core_files) {
        err = process_allow_core(why);
    }
    if (err == 0 && options->auth_file.text[0] != '\0') {
        err = auth_create(
            options->auth_file.text, options->sasl, &server->auth, why);
        server->admin.access = err == 0 ? auth_access(server->auth) : NULL;
    }
    if (err == 0) {
        err = logging_open(&server->logger, options->log_file.text, why);
    }
    if (err == 0) {
        err = owning_open(&server->owning, options, &server->logger, why);
        server->admin.owner = owning_owner(&server->owning);
    }
    if (err == 0) {
        err = data_option_take(
            &server->data_option, options, &server->logger, why);
    }
    if (err == 0 && options->pidfile.text[0] != '\0') {
        err = process_write_pidfile(options->pidfile.text, why);
        server->has_pidfile = err == 0;
    }
    return err;
}

/* Gives up what is not needed from here on; before there are threads. */
static int
enter_sandbox(struct server *server)
{
    const struct options *options = &server->options;
    struct sandbox_config config = {
        .calls = (enum sandbox_mode)options->seccomp,
        .files = options->landlock == OPTIONS_LANDLOCK_ON ? SANDBOX_ON
                                                          : SANDBOX_OFF,
        .needs_calls = options->given[OPTIONS_ID_seccomp],
        .needs_files = options->given[OPTIONS_ID_landlock],
        .has_ring = options->cold_io != COLD_IO_POOL,
        .log_fd = atomic_load(&server->logger.fd),
    };
    if (loads(server)) {
        sandbox_add_path(&config, SANDBOX_DATA, options->data.text);
    }
    if (loads(server)) {
        sandbox_add_path(&config, SANDBOX_DATA, options->wal_archive.text);
    }
    if (server->has_pidfile) {
        sandbox_add_path(&config, SANDBOX_LEAVE, options->pidfile.text);
    }
    sandbox_add_path(&config, SANDBOX_LEAVE, options->unix_socket.text);
    sandbox_add_path(&config, SANDBOX_LOG_FILE, options->log_file.text);
    if (options->core_files) {
        sandbox_add_path(&config, SANDBOX_DUMP, ".");
    }
    sandbox_add_path(&config, SANDBOX_DEVICE, "/dev/null");
    return sandbox_enter(&config, &server->logger, &server->why);
}

/* Lets clients in. */
static int
open_listeners(struct server *server)
{
    mutex_lock(&server->admin.gate);
    int err = start_workers(server);
    server->admin.n_workers = server->n_workers;
    mutex_unlock(&server->admin.gate);
    if (err == 0 && listener_start(&server->listener) != 0) {
        buf_add_text(&server->why, "cannot watch the listening sockets");
        err = ERR_SYSTEM;
    }
    return err;
}

/* Until the service manager has room for it. */
static void
tell_ready(uv_timer_t *timer)
{
    if (process_notify("READY=1\nSTATUS=serving")) {
        uv_timer_stop(timer);
    } else {
        uv_timer_start(timer, tell_ready, LOADING_TELL_MS, 0);
    }
}

/* On the node's thread. */
static void
want_reload(void *context)
{
    struct server *server = context;
    ASSERT(server->magic == SERVER_MAGIC);
    uv_async_send(&server->reload);
}

/* On the node's thread. */
static void
want_end(void *context)
{
    struct server *server = context;
    ASSERT(server->magic == SERVER_MAGIC);
    uv_async_send(&server->lost);
}

/* A replica's requests come there. The node's thread, which ends before the
 * workers do. */
static bool
serve_replica(void *context, int fd, bool is_binary)
{
    struct server *server = context;
    ASSERT(server->magic == SERVER_MAGIC);
    /* acquire: the workers are there */
    unsigned n = atomic_load_explicit(&server->n_inner, memory_order_acquire);
    return n > 0 &&
        worker_add_inner(server->workers[server->next_inner++ % n], fd,
            is_binary ? SESSION_BINARY : SESSION_TEXT);
}

/* Reads the schema file into the store, and tells what it has beside it. 0 or
 * an ERR_ with a line in *why. */
static int
load_schema(struct server *server, struct buf *why)
{
    struct buf notes = {0};
    int err = schema_file_load(server->real, server->options.schema.text,
        &server->schema_text, &notes, why);
    for (size_t at = 0; at < notes.len;) {
        const char *line = notes.data + at;
        const char *end = memchr(line, '\n', notes.len - at);
        int len = (int)((end == NULL ? notes.data + notes.len : end) - line);
        log_line(&server->logger, LOG_WARNING, "--schema: %.*s", len, line);
        at += (size_t)len + 1;
    }
    buf_fini(&notes);
    return err;
}

/* The counters of the schema file, but of a replica, whose schema is the
 * primary's; then who has waited for the server is told
 * that it serves. */
static int
become_ready(struct server *server)
{
    bool has_counters = !server->data_option.config.is_missing;
    bool is_automatic = options_is_automatic(&server->options);
    const struct replication_calls calls = {.reload_fn = want_reload,
        .lost_fn = want_end,
        .serve_fn = serve_replica,
        .context = server};
    /* first: until then the store of a node is a replica's */
    int err = replication_begin(&server->replication, server->real,
        server->hooks->clock, &calls, &server->why);
    if (err == 0 && is_automatic) {
        server->is_schema_due = server->schema_text.len > 0;
    } else if (err == 0 && has_counters &&
        !replication_is_replica(&server->replication)) {
        err = load_schema(server, &server->why);
    }
    if (err == 0 && server->n_workers == 0) {
        err = open_listeners(server);
    }
    if (err == 0) {
        store_begin(server->real);
        /* release: with the load of serve_replica */
        atomic_store_explicit(
            &server->n_inner, server->n_workers, memory_order_release);
        err = process_ready(
            &server->ready_fd, server->options.verbosity > 0, &server->why);
    }
    if (err == 0) {
        remarks_on_ready(server->store,
            (clock_monotonic_ns() - server->begun_ns) / NS_PER_MS,
            &server->logger);
        tell_ready(&server->still_loading);
    }
    return err;
}

static void
on_loaded(uv_async_t *async)
{
    struct server *server = async->data;
    ASSERT(server->magic == SERVER_MAGIC);
    int err = atomic_load(&server->load_err);
    uv_timer_stop(&server->still_loading);
    if (err != 0) {
        buf_addf(&server->why, "cannot load the data directory %s: %s%s",
            server->options.data.text, err_file_text(err),
            err == ERR_CORRUPT ? OFFLINE_ADVICE : "");
    } else {
        err = become_ready(server);
    }
    if (err != 0) {
        server->err = err;
        uv_stop(&server->loop);
    }
}

/* In a group in which etcd says who is primary, the schema file is read into
 * the store when this server has become that, once. The group serves: what is
 * wrong with it then is told and ends nothing. */
static void
add_schema_late(struct server *server)
{
    struct buf why = {0};
    if (server->is_schema_due && replication_leads(&server->replication)) {
        int err = load_schema(server, &why);
        server->is_schema_due = err == ERR_NOT_PRIMARY;
        if (err != 0) {
            log_line(&server->logger, LOG_WARNING, "--schema: %.*s",
                (int)why.len, why.data == NULL ? "" : why.data);
        }
    }
    buf_fini(&why);
}

static void on_reload(uv_async_t *async);
static void on_lost(uv_async_t *async);
static int stop_threads(struct server *server);

static void
on_log_timer(uv_timer_t *timer)
{
    struct server *server = timer->data;
    ASSERT(server->magic == SERVER_MAGIC);
    log_flush(&server->logger, false);
    add_schema_late(server);
    if (server->log_ticks++ % HEALTH_SAMPLE_S == 0) {
        admin_sample(&server->admin);
    }
}

/* The main loop and what is always on it. */
static int
open_loop(struct server *server)
{
    const struct options *options = &server->options;
    struct listener_config config = {.loop = &server->loop,
        .logger = &server->logger,
        .gauge = &server->gauge,
        .clock = server->hooks->clock,
        .workers = server->workers,
        .n_workers = (unsigned)options->threads,
        .conn_limit = (unsigned)options->conn_limit,
        .backlog = options->listen_backlog,
        .listens_late =
            loads(server) && options->loading == OPTIONS_LOADING_REFUSE,
        .waits = !options->maxconns_fast};
    if (uv_loop_init(&server->loop) != 0) {
        buf_add_text(&server->why, "cannot make an event loop");
        return ERR_SYSTEM;
    }
    listener_init(&server->listener, &config);
    for (unsigned i = 0; i < SERVER_SIGNALS; i++) {
        watch_signal(server, &server->on_signal[i], signals[i].number);
    }
    replication_init(
        &server->replication, options, &server->logger, &server->loop);
    http_init(&server->http, options, &server->logger, &server->loop);
    uv_async_init(&server->loop, &server->loaded, on_loaded);
    uv_async_init(&server->loop, &server->reload, on_reload);
    uv_async_init(&server->loop, &server->lost, on_lost);
    uv_timer_init(&server->loop, &server->still_loading);
    uv_timer_init(&server->loop, &server->log_timer);
    uv_timer_start(
        &server->log_timer, on_log_timer, LOG_FLUSH_MS, LOG_FLUSH_MS);
    server->log_timer.data = server;
    server->loaded.data = server;
    server->reload.data = server;
    server->lost.data = server;
    server->still_loading.data = server;
    return 0;
}

static void
on_still_loading(uv_timer_t *timer)
{
    struct server *server = timer->data;
    struct figures figures = {.text = {{.data = NULL}}};
    struct health health;
    char lines[STATUS_BYTES];
    ASSERT(server->magic == SERVER_MAGIC);
    (void)admin_gather(
        &server->admin, &figures, FIGURES_GROUPS_HEALTH, &health);
    figures_fini(&figures);
    /* in microseconds: ten of our periods */
    (void)snprintf(lines, sizeof lines,
        "STATUS=%s\nEXTEND_TIMEOUT_USEC=10000000",
        health.state == HEALTH_LOADING ? health.problem[0] : "loading");
    (void)process_notify(lines);
}

/* The store closes the directory when it goes; what it has of it is kept for
 * the next one, locks and all. */
static int
keep_directory(struct server *server)
{
    const struct data_dir *dir = &server->data_option.config.dir;
    if (!server->replication.is_wanted) {
        return 0;
    }
    server->kept.dir_fd = fcntl(dir->dir_fd, F_DUPFD_CLOEXEC, 0);
    server->kept.lock_fd =
        dir->lock_fd < 0 ? -1 : fcntl(dir->lock_fd, F_DUPFD_CLOEXEC, 0);
    if (server->kept.dir_fd < 0 ||
        (dir->lock_fd >= 0 && server->kept.lock_fd < 0)) {
        buf_addf(&server->why, "cannot keep the data directory open: %s",
            strerror(errno));
        return ERR_SYSTEM;
    }
    return 0;
}

/* What there is each time that a store is loaded; all before it is there once.
 */
static int
start_threads(struct server *server)
{
    int err = keep_directory(server);
    if (err == 0) {
        err = create_store(server);
    }
    if (err != 0) {
        return err;
    }
    server->admin.store = server->store;
    admin_open(&server->admin);
    if (!loads(server)) {
        return become_ready(server);
    }
    uv_timer_start(&server->still_loading, on_still_loading, LOADING_TELL_MS,
        LOADING_TELL_MS);
    return server->options.loading == OPTIONS_LOADING_ANSWER
        ? open_listeners(server)
        : 0;
}

static int
load_anew(struct server *server)
{
    listener_hold(&server->listener);
    int err = stop_threads(server);
    if (err != 0) {
        return err;
    }
    server->data_option.config.dir = server->kept;
    server->kept = (struct data_dir){.dir_fd = -1, .lock_fd = -1};
    err = start_threads(server);
    return err;
}

static void
on_reload(uv_async_t *async)
{
    struct server *server = async->data;
    ASSERT(server->magic == SERVER_MAGIC);
    log_event(&server->logger, "server", LOG_NOTICE,
        "loading the data directory anew");
    server->begun_ns = clock_monotonic_ns();
    server->err = load_anew(server);
    if (server->err != 0) {
        uv_stop(&server->loop);
    }
}

/* All is saved as at any end; whoever looks after the server sees the status,
 * and starts it anew, with all its processes. */
static void
on_lost(uv_async_t *async)
{
    struct server *server = async->data;
    ASSERT(server->magic == SERVER_MAGIC);
    if (server->err == 0) {
        buf_add_text(&server->why,
            "a process beside this server is gone, and it is not the primary: "
            "it ends, to be started anew");
        server->err = ERR_SYSTEM;
    }
    uv_stop(&server->loop);
}

static int
serve(struct server *server)
{
    if (!server->data_option.is_wanted) {
        log_line(&server->logger, LOG_WARNING,
            "counters live in memory only: they are gone when the server "
            "stops");
    }
    uv_run(&server->loop, UV_RUN_DEFAULT);
    (void)process_notify("STOPPING=1");
    (void)process_notify(LAST_CHECKPOINT_TIME);
    return server->err;
}

/* Not before all is saved: a signal without a watcher ends the process. From
 * here on one that comes waits for the exit; the other threads are gone. */
static void
close_signals(struct server *server)
{
    sigset_t set;
    sigemptyset(&set);
    for (unsigned i = 0; i < SERVER_SIGNALS; i++) {
        sigaddset(&set, signals[i].number);
    }
    (void)pthread_sigmask(SIG_BLOCK, &set, NULL);
    for (unsigned i = 0; i < SERVER_SIGNALS; i++) {
        uv_close((uv_handle_t *)&server->on_signal[i], NULL);
    }
}

/* Undoes start_threads, as far as that has come; it may be called anew. */
static int
stop_threads(struct server *server)
{
    int err = 0;
    admin_shut(&server->admin);
    replication_end(&server->replication);
    /* relaxed: nobody reads it any more */
    atomic_store_explicit(&server->n_inner, 0, memory_order_relaxed);
    if (server->real != NULL) {
        store_end_calls(server->real);
    }
    stop_workers(server);
    if (server->has_watch) {
        items_set_witness(server->store->items, NULL);
        log_listen(&server->logger, NULL); /* the node's thread is gone */
        watch_stop(&server->watch);
        server->watch = (struct watch_hub){0};
        server->has_watch = false;
    }
    if (server->store != server->real) {
        server->hooks->unwrap_fn(&server->store);
    }
    if (server->real != NULL) {
        err = store_destroy(&server->real);
        if (err != 0) {
            buf_addf(&server->why, "not all changes are on disk: %s",
                err_text(err));
        }
    }
    server->store = NULL;
    server->admin.store = NULL;
    return err;
}

/* Takes down what there is, after open_loop. */
static int
stop_all(struct server *server)
{
    listener_stop(&server->listener);
    uv_close((uv_handle_t *)&server->still_loading, NULL);
    uv_close((uv_handle_t *)&server->log_timer, NULL);
    if (server->auth != NULL) { /* sessions that wait for it get their end */
        auth_stop(server->auth);
    }
    int err = stop_threads(server);
    http_stop(&server->http);
    if (server->auth != NULL) {
        auth_destroy(&server->auth);
    }
    replication_close(&server->replication);
    data_dir_close(&server->kept);
    /* the store's loader sends no more, nor the node */
    uv_close((uv_handle_t *)&server->loaded, NULL);
    uv_close((uv_handle_t *)&server->reload, NULL);
    uv_close((uv_handle_t *)&server->lost, NULL);
    close_signals(server);
    uv_run(&server->loop, UV_RUN_DEFAULT);
    if (server->has_pidfile) {
        int rm_err =
            process_remove_pidfile(server->options.pidfile.text, &server->why);
        err = err == 0 ? rm_err : err;
    }
    uv_loop_close(&server->loop);
    return err;
}

static bool
is_offline(const struct options *options)
{
    return options->check || options->salvage || options->dump;
}

/* What is done with the directory of no server, instead of all else. */
static int
run_offline(struct server *server)
{
    const struct options *options = &server->options;
    int err = options->salvage
        ? process_refuse_root(options->user.text, &server->why)
        : 0;
    data_option_choose(&server->data_option, &server->options);
    if (err == 0) {
        err = process_drop_user(options->user.text, &server->why);
    }
    if (err != 0) {
        return err;
    }
    if (options->salvage) {
        return offline_salvage(
            options, &server->logger, &server->is_lossy, &server->why);
    }
    return options->dump
        ? offline_dump(options, &server->logger, &server->why)
        : data_option_check(options, &server->logger, &server->why);
}

static int
run(struct server *server)
{
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a write fails with EFBIG instead */
    server->admin.logger = &server->logger;
    server->admin.gauge = &server->gauge;
    server->admin.workers = server->workers;
    server->admin.listener = &server->listener;
    server->admin.rooms = &server->rooms;
    server->admin.replication = &server->replication;
    if (server->options.hash_password) {
        return auth_hash_make(&server->why);
    }
    server->admin.watch = &server->watch;
    if (is_offline(&server->options)) {
        server->logger.is_unlimited = true; /* it is all there is to say */
        return run_offline(server);
    }
    server->logger.never_waits = true;
    server->begun_ns = clock_monotonic_ns();
    int err = prepare(server);
    if (err == 0) {
        err = open_loop(server);
    }
    if (err != 0) {
        return err;
    }
    err = open_files(server);
    if (err == 0) {
        err = enter_sandbox(server);
    }
    if (err != 0) {
        data_option_undo(&server->data_option, &server->options);
    } else {
        remarks_on_start(&server->options, &server->logger);
        err = http_start(&server->http, &server->admin, &server->why);
    }
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
    data_option_fini(&server->data_option);
    owning_close(&server->owning);
    tls_destroy(&server->tls);
    buf_fini(&server->schema_text);
    buf_fini(&server->ports);
    buf_fini(&server->why);
    server->magic = 0;
    free(server);
}

int
server_run(int argc, char **argv, const struct server_hooks *hooks)
{
    static const struct server_hooks none;
    struct buf message = {0};
    struct server *server = calloc(1, sizeof *server);
    int status = EXIT_FAILURE;
    process_fill_streams();
    if (server == NULL) {
        return status;
    }
    server->magic = SERVER_MAGIC;
    server->hooks = hooks != NULL ? hooks : &none;
    server->ready_fd = -1;
    server->kept = (struct data_dir){.dir_fd = -1, .lock_fd = -1};
    enum options_result result =
        options_parse(argc, argv, &server->options, &message);
    admin_init(&server->admin, &server->options);
    if (result == OPTIONS_RUN) {
        atomic_init(&server->logger.verbosity, server->options.verbosity);
        int err = run(server);
        logging_end(&server->logger, err, &server->why);
        status = err != 0      ? EXIT_FAILURE
            : server->is_lossy ? OFFLINE_LOSSY
                               : EXIT_SUCCESS;
    } else {
        bool fine = result == OPTIONS_EXIT_OK;
        fwrite(message.data, 1, message.len, fine ? stdout : stderr);
        status = fine && fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
    }
    buf_fini(&message);
    free_server(server);
    return status;
}
