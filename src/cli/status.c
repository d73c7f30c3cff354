/* SPDX-License-Identifier: BSD-3-Clause */
/* Health comes first and by itself: it is answered while all else may be slow,
 * and a server that does not answer is said on the first line, too. */
#include "cli/status.h"

#include "base/clock.h"

#include <stdlib.h>
#include <time.h>

enum {
    INTERVAL_MS = 1000,
    INTERVAL_MS_MAX = 60000,
    NS_PER_MS = 1000000,
    MS_PER_S = 1000
};

enum row { ROW_INTERVAL, ROWS_N };

static const struct command_line_row rows[ROWS_N] = {
    [ROW_INTERVAL] = {"interval", "MS",
        "milliseconds between the two looks that rates are of; 0: no rates; "
        "default: 1000"},
};

struct work {
    struct ask ask;
    struct status status;
    uint64_t interval_ms;
};

static bool
take_row(struct ask *ask, unsigned row, const char *value)
{
    struct work *work = ask->context;
    return command_line_number(
        &ask->line, row, value, 0, INTERVAL_MS_MAX, &work->interval_ms);
}

static const struct ask_command command = {.name = "status",
    .usage = "usage: tallyctl status [OPTION]...\n"
             "What is wrong and what to do, on the first line; then how it "
             "goes. Exit status\n0 where all is well, else 1.\n",
    .row = rows,
    .n_rows = ROWS_N,
    .take_fn = take_row};

static const char *const stats_of[STATUS_PARTS_N] = {
#define X(id, stats, name) [STATUS_##id] = stats,
    STATUS_PARTS(X)
#undef X
};

static void
pause_ms(uint64_t ms)
{
    const struct timespec time = {.tv_sec = (time_t)(ms / MS_PER_S),
        .tv_nsec = (long)(ms % MS_PER_S * NS_PER_MS)};
    (void)nanosleep(&time, NULL);
}

static bool
look(struct work *work)
{
    struct ask *ask = &work->ask;
    struct status *status = &work->status;
    if (!ask_connect(ask) || !health_ask(ask, &status->health)) {
        return false;
    }
    uint64_t then = clock_monotonic_ns();
    for (unsigned i = 0; work->interval_ms > 0 && i <= STATUS_COUNTERS; i++) {
        if (!ask_stats(ask, stats_of[i], &status->before[i])) {
            return false;
        }
    }
    if (work->interval_ms > 0) {
        pause_ms(work->interval_ms);
        status->between_ns = clock_monotonic_ns() - then;
    }
    for (unsigned i = 0; i < STATUS_PARTS_N; i++) {
        if (!ask_stats(ask, stats_of[i], &status->part[i])) {
            return false;
        }
    }
    return true;
}

static int
run(struct work *work)
{
    struct status *status = &work->status;
    struct buf out = {0};
    status->server = work->ask.talk.server[0].text;
    bool is_answered = look(work);
    bool is_well = is_answered && health_is_well(&status->health);
    if (!is_answered && !work->ask.is_json) {
        return ask_fail("%s does not answer: %s; look whether it runs, and "
                        "at its log",
            status->server, work->ask.talk.why);
    }
    if (!is_answered) {
        struct json json = {.out = &out};
        json_open(&json, NULL, '{');
        json_text(&json, "server", status->server);
        json_text(&json, "state", "no answer");
        json_text(&json, "error", work->ask.talk.why);
        json_close(&json);
    } else if (work->ask.is_json) {
        status_json(status, &out);
    } else {
        status_page(status, &out);
    }
    int exit_status = ask_write(&out);
    return is_well ? exit_status : ASK_EXIT_BAD;
}

int
status_main(int argc, char *const argv[])
{
    static struct work work = {.interval_ms = INTERVAL_MS};
    int status = ask_begin(&work.ask, &command, &work, argc, argv);
    if (status == ASK_GO_ON) {
        status = run(&work);
    }
    for (unsigned i = 0; i < STATUS_PARTS_N; i++) {
        figures_fini(&work.status.part[i]);
    }
    for (unsigned i = 0; i <= STATUS_COUNTERS; i++) {
        figures_fini(&work.status.before[i]);
    }
    health_fini(&work.status.health);
    ask_fini(&work.ask);
    return status;
}
