/* SPDX-License-Identifier: BSD-3-Clause */
/* What people see of a move: one line that is written over on a terminal, else
 * a line every ten seconds. */
#include "cli/reshard_priv.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MS_PER_S = 1000 };

static void
add_lag(const struct reshard *move, char *out, size_t size)
{
    if (move->lag_ms == UINT64_MAX) {
        (void)snprintf(out, size, "not known");
    } else {
        (void)snprintf(out, size, "%" PRIu64 " ms", move->lag_ms);
    }
}

void
reshard__show(struct reshard *move, bool is_due)
{
    struct reshard_shown *shown = &move->shown;
    uint64_t now = reshard__now_ms();
    char lag[32] = "", left[48] = "";
    if (!is_due && now < shown->next_ms) {
        return;
    }
    uint64_t passed = now > shown->then_ms ? now - shown->then_ms : 1;
    uint64_t rate = (shown->lines - shown->lines_then) * MS_PER_S / passed;
    add_lag(move, lag, sizeof lag);
    if (move->state.phase == RESHARD_DUMP && shown->total > shown->copied) {
        (void)snprintf(left, sizeof left, ", about %" PRIu64 " left",
            shown->total - shown->copied);
    }
    (void)fprintf(stderr,
        "%stallyctl: %s: %" PRIu64 " lines, %" PRIu64 " a second%s, lag %s%s",
        shown->is_tty ? "\r\033[K" : "", reshard_phase_text(move->state.phase),
        shown->lines, rate, left, lag, shown->is_tty && !is_due ? "" : "\n");
    (void)fflush(stderr);
    shown->then_ms = now;
    shown->lines_then = shown->lines;
    shown->next_ms =
        now + (shown->is_tty ? RESHARD_SHOW_TTY_MS : RESHARD_SHOW_MS);
}

void
reshard__trouble(struct reshard *move, const char *what)
{
    struct reshard_shown *shown = &move->shown;
    uint64_t now = reshard__now_ms();
    bool is_said =
        strncmp(shown->trouble, what, sizeof shown->trouble - 1) == 0 &&
        now - shown->trouble_ms < RESHARD_SHOW_MS;
    if (is_said || move->stop.is_asked) {
        return;
    }
    (void)snprintf(shown->trouble, sizeof shown->trouble, "%s", what);
    shown->trouble_ms = now;
    (void)fprintf(stderr, "%stallyctl: %s; it is tried again\n",
        shown->is_tty ? "\r\033[K" : "", what);
}
