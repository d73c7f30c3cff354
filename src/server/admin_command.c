/* SPDX-License-Identifier: BSD-3-Clause */
/* Does commands of administration that proto/text_admin has read.
 *
 * A setting that a command changes is kept as the text that stats settings
 * shows from then on. Most of them are about slabs and lists of memcached's
 * that are not there, and change nothing else. */
#include "server/admin_priv.h"

#include "items/items.h"
#include "proto/reply_stats.h"
#include "server/secure.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Where settings are shown. */
struct sink {
    const struct server_admin *admin;
    struct reply_stats *out;
};

static void
put_setting(void *context, const char *name, const char *value)
{
    struct sink *sink = context;
    mutex_assert_held(&sink->admin->lock);
    for (unsigned i = 0; i < sink->admin->n_changed; i++) {
        if (strcmp(sink->admin->changed[i].name, name) == 0) {
            value = sink->admin->changed[i].value;
        }
    }
    reply_stats_text(sink->out, name, value);
}

void
admin__settings(struct server_admin *admin, struct reply_stats *out)
{
    struct sink sink = {admin, out};
    struct options now = *admin->options;
    /* relaxed: a figure */
    now.verbosity =
        atomic_load_explicit(&admin->logger->verbosity, memory_order_relaxed);
    now.stats_detail = prefixes_are_on(&admin->prefixes);
    now.memory_limit = atomic_load(&admin->memory_limit);
    now.slow_ms = (int)atomic_load(&admin->slow_ms);
    mutex_lock(&admin->lock);
    options_each_setting(&now, put_setting, &sink);
    mutex_unlock(&admin->lock);
    reply_stats_end(out);
}

/* Keeps a setting that has changed; the names are few. */
static void
change(struct server_admin *admin, const struct text_admin_setting *setting)
{
    mutex_assert_held(&admin->lock);
    ASSERT(admin->n_changed <= ADMIN_CHANGED_MAX);
    unsigned i = 0;
    while (i < admin->n_changed &&
        strcmp(admin->changed[i].name, setting->name) != 0) {
        i++;
    }
    if (i < ADMIN_CHANGED_MAX) {
        admin->changed[i] = *setting;
        admin->n_changed = i < admin->n_changed ? admin->n_changed : i + 1;
    }
}

static const char *
change_all(struct server_admin *admin, const struct text_admin *command)
{
    if (command->error != NULL) {
        return command->error;
    }
    mutex_lock(&admin->lock);
    for (unsigned i = 0; i < command->n_settings; i++) {
        change(admin, &command->setting[i]);
    }
    mutex_unlock(&admin->lock);
    return "OK";
}

/* Expired items are reclaimed in the background anyway; the crawler is what
 * memcached's clients ask to do it, and what dumps go through there. */
static const char *
switch_crawler(struct server_admin *admin, const struct text_admin *command)
{
    bool was_on = atomic_exchange(&admin->crawler_is_on, command->is_enabled);
    const char *line = change_all(admin, command);
    return was_on && command->is_enabled
        ? "ERROR failed to start lru crawler thread"
        : line;
}

/* refusal: the answer where dumps are not allowed; NULL: they always are. */
static const char *
allow_dump(struct server_admin *admin, const struct text_admin *command,
    const char *refusal)
{
    if (!atomic_load(&admin->crawler_is_on)) {
        return "CLIENT_ERROR lru crawler disabled";
    }
    return admin->options->no_dump ? refusal : command->error;
}

static const char *
crawl(struct server_admin *admin, const struct text_admin *command)
{
    if (!atomic_load(&admin->crawler_is_on)) {
        return "CLIENT_ERROR lru crawler disabled";
    }
    if (command->error != NULL) {
        return command->error;
    }
    atomic_fetch_add(&admin->crawls, 1);
    return "OK";
}

static const char *
set_memory(struct server_admin *admin, const struct text_admin *command)
{
    enum { MIB_SHIFT = 20 };
    uint64_t bytes = command->megabytes << MIB_SHIFT;
    if (command->error != NULL) {
        return command->error;
    }
    if (admin->options->memory_limit == 0) {
        return "CLIENT_ERROR the server has no items: -m 0";
    }
    mutex_lock(&admin->lock); /* so that what is shown is what is */
    atomic_store(&admin->memory_limit, bytes);
    items_set_limit(admin->store->items, bytes);
    mutex_unlock(&admin->lock);
    log_line(admin->logger, LOG_INFO, "memory for items: %" PRIu64 " MB",
        command->megabytes);
    return "OK";
}

/* As if the process had been sent a signal: the main loop has one way to
 * stop. */
static const char *
shut_down(struct server_admin *admin, const struct text_admin *command)
{
    if (!admin->options->shutdown_enabled) {
        return "SERVER_ERROR: shutdown not enabled";
    }
    if (command->error != NULL) {
        return command->error;
    }
    kill(getpid(), command->is_graceful ? SIGUSR1 : SIGINT);
    return NULL;
}

static const char *
move_clock(struct server_admin *admin, const struct text_admin *command)
{
    if (!admin->options->debug_time || command->error != NULL) {
        return "ERROR";
    }
    switch (command->op) {
    case TEXT_ADMIN_TIME_STOP:
        clock_shift_stop(&admin->clock);
        break;
    case TEXT_ADMIN_TIME_GO:
        clock_shift_go(&admin->clock);
        break;
    default:
        clock_shift_by(&admin->clock, command->shift_s);
        break;
    }
    return "OK";
}

/* A number that is used again meanwhile is another connection's: who kills
 * looks at stats conns first. */
static const char *
kill_conn(struct server_admin *admin, const struct text_admin *command)
{
    if (command->error != NULL) {
        return command->error;
    }
    for (unsigned i = 0; i < admin->n_workers; i++) {
        if (worker_kill(admin->workers[i], (int)command->conn)) {
            return "OK";
        }
    }
    return "NOT_FOUND";
}

static const char *
set_slow(struct server_admin *admin, const struct text_admin *command)
{
    if (command->error != NULL) {
        return command->error;
    }
    mutex_lock(&admin->lock); /* so that what is shown is what is */
    atomic_store(&admin->slow_ms, (uint32_t)command->slow_ms);
    for (unsigned i = 0; i < admin->n_workers; i++) {
        worker_set_slow(admin->workers[i], command->slow_ms);
    }
    mutex_unlock(&admin->lock);
    return "OK";
}

/* The reply cannot name a file of the server's: the log does. */
static const char *
refresh(struct server_admin *admin)
{
    struct buf why = {0};
    if (admin->tls == NULL) {
        return "ERROR";
    }
    int err = secure_reload(admin->tls, admin->logger, &why);
    buf_fini(&why);
    return err == 0 ? "OK"
                    : "SERVER_ERROR bad certificate files, the old ones "
                      "stay: see the server's log";
}

const char *
admin__command(struct admin *seam, const struct text_admin *command)
{
    struct server_admin *admin = admin__of(seam);
    switch (command->op) {
    case TEXT_ADMIN_SETTINGS:
        return change_all(admin, command);
    case TEXT_ADMIN_LRU_SETTINGS:
        return admin->options->lru_maintainer ? change_all(admin, command)
                                              : "ERROR";
    case TEXT_ADMIN_CRAWLER:
        return switch_crawler(admin, command);
    case TEXT_ADMIN_CRAWL:
        return crawl(admin, command);
    case TEXT_ADMIN_METADUMP:
        return allow_dump(admin, command, "ERROR metadump not allowed");
    case TEXT_ADMIN_MGDUMP:
        return allow_dump(admin, command, "ERROR key dump not allowed");
    case TEXT_ADMIN_MEMLIMIT:
        return set_memory(admin, command);
    case TEXT_ADMIN_SHUTDOWN:
        return shut_down(admin, command);
    case TEXT_ADMIN_KILL:
        return kill_conn(admin, command);
    case TEXT_ADMIN_SLOW:
        return set_slow(admin, command);
    case TEXT_ADMIN_CERTS:
        return refresh(admin);
    case TEXT_ADMIN_WATCH: /* the session's */
    case TEXT_ADMIN_TIME_STOP:
    case TEXT_ADMIN_TIME_GO:
    case TEXT_ADMIN_TIME_SHIFT:
        return move_clock(admin, command);
    case TEXT_ADMIN_REASSIGN: /* always refused; the error says why */
    case TEXT_ADMIN_NOTHING:
        break;
    }
    return command->error;
}
