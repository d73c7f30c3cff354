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
    S_PER_MIN = 60,
    PERCENT = 100,
    MB = 1000000,
    TEXT_MAX = 64
};

static uint64_t
now_ms(void)
{
    return clock_monotonic_ns() / NS_PER_MS;
}

static uint64_t
next_ms(const struct shown *shown, uint64_t now)
{
    return now + (shown->is_tty ? TTY_MS : LOG_MS);
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
    shown->next_ms = next_ms(shown, now);
}

void
shown_begin_bytes(struct shown *shown, const char *what, uint64_t all)
{
    shown_begin(shown, what, all);
    shown->is_bytes = true;
}

bool
shown_is_due(const struct shown *shown)
{
    return now_ms() >= shown->next_ms;
}

const char *
shown_over(const struct shown *shown)
{
    return shown->is_tty ? "\r\033[K" : "";
}

/* "5 rows, 3 a second", or "copied 5 MB, 3.0 MB a second". */
static void
put_rate(
    const struct shown *shown, uint64_t n, uint64_t ms, char out[TEXT_MAX * 2])
{
    uint64_t more = n > shown->n_then ? n - shown->n_then : 0;
    if (shown->is_bytes) {
        (void)snprintf(out, (size_t)TEXT_MAX * 2,
            "%s %.0f MB, %.1f MB a second", shown->what, (double)n / MB,
            (double)more / MB * MS_PER_S / (double)ms);
    } else {
        (void)snprintf(out, (size_t)TEXT_MAX * 2,
            "%" PRIu64 " %s, %" PRIu64 " a second", n, shown->what,
            more * MS_PER_S / ms);
    }
}

/* ", 40 %, about 1:02 left", or nothing where that is not known. */
static void
put_left(const struct shown *shown, uint64_t parts, uint64_t now,
    char out[TEXT_MAX])
{
    out[0] = '\0';
    if (parts > 0 && parts < shown->all) {
        double share = (double)parts / (double)shown->all;
        double s =
            (double)(now - shown->began_ms) / MS_PER_S * (1 - share) / share;
        (void)snprintf(out, TEXT_MAX, ", %.0f %%, about %" PRIu64 ":%02u left",
            share * PERCENT, (uint64_t)s / S_PER_MIN,
            (unsigned)((uint64_t)s % S_PER_MIN));
    }
}

void
shown_line(struct shown *shown, const char *before, uint64_t n, uint64_t parts,
    const char *behind, bool stays)
{
    uint64_t now = now_ms();
    uint64_t passed = now - shown->then_ms + (now == shown->then_ms);
    char rate[TEXT_MAX * 2], left[TEXT_MAX];
    put_rate(shown, n, passed, rate);
    put_left(shown, parts, now, left);
    (void)fprintf(stderr, "%stallyctl: %s%s%s%s%s", shown_over(shown), before,
        rate, left, behind, shown->is_tty && !stays ? "" : "\n");
    (void)fflush(stderr);
    shown->then_ms = now;
    shown->n_then = n;
    shown->next_ms = next_ms(shown, now);
}

void
shown_tell(struct shown *shown, uint64_t n, uint64_t parts)
{
    if (shown_is_due(shown)) {
        shown_line(shown, "", n, parts, "", false);
    }
}

void
shown_end(struct shown *shown)
{
    if (shown->is_tty) {
        (void)fputs(shown_over(shown), stderr);
        (void)fflush(stderr);
    }
}
