/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/shown.h"

#include "base/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

enum {
    TTY_MS = 200,
    LOG_MS = 10000,
    MS_PER_S = 1000,
    NS_PER_MS = 1000000,
    S_PER_MIN = 60
};

static uint64_t
now_ms(void)
{
    return clock_monotonic_ns() / NS_PER_MS;
}

void
shown_begin(struct shown *shown, const char *what, uint64_t all)
{
    uint64_t now = now_ms();
    *shown = (struct shown){.what = what,
        .all = all,
        .is_tty = isatty(STDERR_FILENO) == 1,
        .began_ms = now,
        .then_ms = now};
    shown->next_ms = now + (shown->is_tty ? TTY_MS : LOG_MS);
}

void
shown_tell(struct shown *shown, uint64_t n, uint64_t parts)
{
    uint64_t now = now_ms();
    char left[64] = "";
    if (now < shown->next_ms) {
        return;
    }
    uint64_t passed = now - shown->then_ms + (now == shown->then_ms);
    if (parts > 0 && parts < shown->all) {
        double share = (double)parts / (double)shown->all;
        double s =
            (double)(now - shown->began_ms) / MS_PER_S * (1 - share) / share;
        (void)snprintf(left, sizeof left,
            ", %.0f %%, about %" PRIu64 ":%02u left", share * 100,
            (uint64_t)s / S_PER_MIN, (unsigned)((uint64_t)s % S_PER_MIN));
    }
    (void)fprintf(stderr,
        "%stallyctl: %" PRIu64 " %s, %" PRIu64 " a second%s%s",
        shown->is_tty ? "\r\033[K" : "", n, shown->what,
        (n - shown->n_then) * MS_PER_S / passed, left,
        shown->is_tty ? "" : "\n");
    (void)fflush(stderr);
    shown->then_ms = now;
    shown->n_then = n;
    shown->next_ms = now + (shown->is_tty ? TTY_MS : LOG_MS);
}

void
shown_end(struct shown *shown)
{
    if (shown->is_tty) {
        (void)fprintf(stderr, "\r\033[K");
        (void)fflush(stderr);
    }
}
