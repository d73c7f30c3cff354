/* SPDX-License-Identifier: BSD-3-Clause */
/* One line for who looks, the exit status for scripts. A server that loads
 * answers, and is not ready. */
#include "cli/ping.h"

#include "base/clock.h"
#include "cli/ask.h"
#include "cli/health.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { NS_PER_US = 1000, VERSION_MAX = 100 };

enum row { ROW_READY, ROWS_N };

static const struct command_line_row rows[ROWS_N] = {
    [ROW_READY] = {"ready", "",
        "fails also where the server answers and is not ready: it loads, or "
        "takes no changes"},
};

struct ping {
    struct ask ask;
    struct health health;
    bool is_ready_asked;
    bool is_answered;
    char version[VERSION_MAX + 1];
    uint64_t us; /* that the answer took, without the connection */
};

static bool
take_row(struct ask *ask, unsigned row, const char *value)
{
    struct ping *ping = ask->context;
    (void)value;
    ping->is_ready_asked = row == ROW_READY;
    return true;
}

static const struct ask_command command = {.name = "ping",
    .usage = "usage: tallyctl ping [--ready] [OPTION]...\n"
             "Asks a server for its version: exit status 0 where it answers, "
             "else 1.\n",
    .row = rows,
    .n_rows = ROWS_N,
    .take_fn = take_row};

static enum talk_take
take_version(void *context, const char *line, size_t len)
{
    static const char begin[] = "VERSION ";
    struct ping *ping = context;
    size_t skip = sizeof begin - 1;
    if (!talk_begins(line, len, begin) || len - skip > VERSION_MAX) {
        return TALK_WRONG;
    }
    memcpy(ping->version, line + skip, len - skip);
    ping->version[len - skip] = '\0';
    return TALK_END;
}

static bool
send_ping(struct ping *ping)
{
    static const char text[] = "version\r\n";
    struct ask *ask = &ping->ask;
    if (!ask_connect(ask)) {
        return false;
    }
    uint64_t then = clock_monotonic_ns();
    ping->is_answered = ask_talk(ask, text, take_version, ping);
    ping->us = (clock_monotonic_ns() - then) / NS_PER_US;
    return ping->is_answered &&
        (!ping->is_ready_asked || health_ask(ask, &ping->health));
}

static void
add_json(const struct ping *ping, bool is_right, struct buf *out)
{
    struct json json = {.out = out};
    json_open(&json, NULL, '{');
    json_text(&json, "server", ping->ask.talk.server[0].text);
    json_bool(&json, "answers", ping->is_answered);
    if (ping->is_answered) {
        json_text(&json, "version", ping->version);
        json_u64(&json, "us", ping->us);
    }
    if (ping->ask.talk.why[0] != '\0') {
        json_text(&json, "error", ping->ask.talk.why);
    } else if (ping->is_ready_asked) {
        json_bool(&json, "ready", is_right);
        health_json(&ping->health, &json);
    }
    json_close(&json);
}

static void
add_text(const struct ping *ping, struct buf *out)
{
    buf_addf(out, "%s answers in %" PRIu64 " us, version %s",
        ping->ask.talk.server[0].text, ping->us, ping->version);
    if (ping->is_ready_asked) {
        buf_add_text(out, health_is_ready(&ping->health) ? ", ready" : ", ");
        if (!health_is_ready(&ping->health)) {
            health_line(&ping->health, out);
        }
    }
    buf_add_text(out, "\n");
}

static int
run(struct ping *ping)
{
    struct buf out = {0};
    bool is_told = send_ping(ping);
    bool is_right =
        is_told && (!ping->is_ready_asked || health_is_ready(&ping->health));
    if (ping->ask.is_json) {
        add_json(ping, is_right, &out);
    } else if (is_told) {
        add_text(ping, &out);
    } else {
        return ask_fail("%s", ping->ask.talk.why);
    }
    int status = ask_write(&out);
    return is_right ? status : ASK_EXIT_BAD;
}

int
ping_main(int argc, char *const argv[])
{
    static struct ping ping;
    int status = ask_begin(&ping.ask, &command, &ping, argc, argv);
    if (status == ASK_GO_ON) {
        status = run(&ping);
    }
    health_fini(&ping.health);
    ask_fini(&ping.ask);
    return status;
}
