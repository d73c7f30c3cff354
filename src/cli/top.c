/* SPDX-License-Identifier: BSD-3-Clause */
/* On a terminal each look is drawn over the one before, on the screen that
 * terminals have for that, and q or a signal ends it; else the looks stand one
 * below the other. What is drawn goes out in one write. */
#include "cli/top.h"

#include "base/clock.h"
#include "client/stop.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

enum {
    INTERVAL_MS = 1000,
    INTERVAL_MS_LEAST = 100,
    INTERVAL_MS_MOST = 60000,
    LOOKS_MOST = 1000000,
    NS_PER_MS = 1000000,
    LINES_NO_TERMINAL = 50,
    COLUMNS_NO_TERMINAL = 200
};

enum row { ROW_INTERVAL, ROW_COUNT, ROWS_N };

static const struct command_line_row rows[ROWS_N] = {
    [ROW_INTERVAL] = {"interval", "MS",
        "milliseconds between two looks, 100 and more; default: 1000"},
    [ROW_COUNT] = {"count", "NUM", "looks, 0: until it is ended; default: 0"},
};

struct work {
    struct ask ask;
    struct top top;
    uint64_t count;
    struct stop stop;
    bool is_terminal;
    bool has_keys;       /* standard input is a terminal, too, */
    struct termios mode; /* and was in this mode */
};

static bool
take_row(struct ask *ask, unsigned row, const char *value)
{
    struct work *work = ask->context;
    return row == ROW_INTERVAL
        ? command_line_number(&ask->line, row, value, INTERVAL_MS_LEAST,
              INTERVAL_MS_MOST, &work->top.interval_ms)
        : command_line_number(
              &ask->line, row, value, 0, LOOKS_MOST, &work->count);
}

static const struct ask_command command = {.name = "top",
    .usage = "usage: tallyctl top [OPTION]...\n"
             "What a server does, by verb, id and client, again and again. q "
             "ends it.\n",
    .row = rows,
    .n_rows = ROWS_N,
    .take_fn = take_row};

static const char *const stats_of[TOP_PARTS_N] = {
#define X(id, stats) [TOP_##id] = stats,
    TOP_PARTS(X)
#undef X
};

static bool
look(struct work *work, uint64_t *then_ns)
{
    struct top *top = &work->top;
    uint64_t n_conns = 0;
    for (unsigned i = 0; i < TOP_PARTS_N; i++) {
        struct figures old = top->before[i];
        top->before[i] = top->now[i];
        top->now[i] = old;
        figures_clear(&top->now[i]);
    }
    if (!health_ask(&work->ask, &top->health)) {
        return false;
    }
    uint64_t now_ns = clock_monotonic_ns();
    top->between_ns = *then_ns == 0 ? 0 : now_ns - *then_ns;
    *then_ns = now_ns;
    for (unsigned i = 0; i < TOP_PARTS_N; i++) {
        if (i == TOP_CONNS) {
            (void)figures_u64(
                &top->now[TOP_GENERAL], "curr_connections", &n_conns);
            top->has_many_conns = n_conns > TOP_CONNS_MAX;
        }
        if ((i != TOP_CONNS || !top->has_many_conns) &&
            !ask_stats(&work->ask, stats_of[i], &top->now[i])) {
            return false;
        }
    }
    return true;
}

/* ---- the terminal ---- */

static void
put(const char *text, size_t len)
{
    (void)fwrite(text, 1, len, stdout);
    (void)fflush(stdout);
}

static void
put_text(const char *text)
{
    put(text, strlen(text));
}

static void
begin_screen(struct work *work)
{
    work->is_terminal = isatty(STDOUT_FILENO) == 1;
    work->has_keys = work->is_terminal && isatty(STDIN_FILENO) == 1 &&
        tcgetattr(STDIN_FILENO, &work->mode) == 0;
    if (work->has_keys) {
        struct termios mode = work->mode;
        mode.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
        (void)tcsetattr(STDIN_FILENO, TCSANOW, &mode);
    }
    if (work->is_terminal) { /* the other screen, no cursor */
        put_text("\033[?1049h\033[?25l");
    }
}

static void
end_screen(struct work *work)
{
    if (work->is_terminal) {
        put_text("\033[?25h\033[?1049l");
    }
    if (work->has_keys) {
        (void)tcsetattr(STDIN_FILENO, TCSANOW, &work->mode);
    }
}

/* Draws a frame: each line takes the place of the one that was there. */
static bool
draw(struct work *work)
{
    struct winsize size = {.ws_row = 0};
    struct buf frame = {0}, out = {0};
    unsigned lines = LINES_NO_TERMINAL, columns = COLUMNS_NO_TERMINAL;
    if (work->is_terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 &&
        size.ws_row > 1 && size.ws_col > 0) {
        lines = size.ws_row - 1U; /* the last newline would scroll */
        columns = size.ws_col;
    }
    top_frame(&work->top, lines, columns, &frame);
    buf_add_text(&out, work->is_terminal ? "\033[H" : "");
    for (size_t at = 0; at < frame.len;) {
        const char *line = frame.data + at;
        const char *end = memchr(line, '\n', frame.len - at);
        size_t len = end == NULL ? frame.len - at : (size_t)(end - line);
        buf_add(&out, line, len);
        buf_add_text(&out, work->is_terminal ? "\033[K\n" : "\n");
        at += len + 1;
    }
    buf_add_text(&out, work->is_terminal ? "\033[J" : "\n");
    bool is_right = !frame.failed && !out.failed;
    if (is_right) {
        put(out.data, out.len);
    }
    buf_fini(&frame);
    buf_fini(&out);
    return is_right && ferror(stdout) == 0;
}

static uint64_t
now_ms(void)
{
    return clock_monotonic_ns() / NS_PER_MS;
}

/* Waits for the next look. False: it is to end. */
static bool
pause_or_key(struct work *work)
{
    uint64_t until = now_ms() + work->top.interval_ms;
    for (uint64_t now = now_ms(); now < until; now = now_ms()) {
        struct pollfd wait[2] = {{.fd = work->stop.fd, .events = POLLIN},
            {.fd = work->has_keys ? STDIN_FILENO : -1, .events = POLLIN}};
        (void)poll(wait, 2, (int)(until - now));
        if (stop_is_asked(&work->stop)) {
            return false;
        }
        if (work->stop.is_told) { /* the window has another size */
            work->stop.is_told = false;
            (void)draw(work);
        }
        char key = 0;
        if (wait[1].revents != 0 &&
            (read(STDIN_FILENO, &key, 1) != 1 || key == 'q')) {
            return false;
        }
    }
    return true;
}

static int
run(struct work *work)
{
    struct ask *ask = &work->ask;
    uint64_t then_ns = 0, n = 0;
    bool is_right = ask_connect(ask), goes_on = is_right;
    work->top.server = ask->talk.server[0].text;
    if (is_right && stop_init(&work->stop, SIGWINCH) != 0) {
        return ask_fail("no descriptor for signals");
    }
    if (is_right) {
        begin_screen(work);
    }
    while (goes_on) {
        is_right = look(work, &then_ns) && draw(work);
        n++;
        goes_on = is_right && n != work->count && pause_or_key(work);
    }
    end_screen(work);
    stop_fini(&work->stop);
    return is_right
        ? EXIT_SUCCESS
        : ask_fail("%s",
              ask->talk.why[0] == '\0' ? "standard output takes nothing"
                                       : ask->talk.why);
}

int
top_main(int argc, char *const argv[])
{
    static struct work work = {.stop = {.fd = -1}};
    work.top.interval_ms = INTERVAL_MS;
    int status = ask_begin(&work.ask, &command, &work, argc, argv);
    if (status == ASK_GO_ON && work.ask.is_json) {
        status = ask_misused(
            &work.ask, "has no JSON: status, hot and clients have");
    } else if (status == ASK_GO_ON) {
        status = run(&work);
    }
    for (unsigned i = 0; i < TOP_PARTS_N; i++) {
        figures_fini(&work.top.now[i]);
        figures_fini(&work.top.before[i]);
    }
    health_fini(&work.top.health);
    ask_fini(&work.ask);
    return status;
}
