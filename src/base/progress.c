/* SPDX-License-Identifier: BSD-3-Clause */
/* Tells how far a long piece of work is: a line of a terminal that is written
 * over every TTY_NS, else a line of the log every LOG_S. Whichever thread adds
 * when it is time writes the line; the others go on. */
#include "base/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#define NS_PER_S UINT64_C(1000000000)

enum { TTY_NS = 250000000, LOG_S = 5, PERCENT = 100 };

void
progress_begin(struct progress *progress, struct logger *logger,
    const struct clock *clock, const char *what, const char *unit,
    uint64_t all_bytes)
{
    progress->logger = logger;
    progress->clock = clock;
    progress->what = what;
    progress->unit = unit;
    progress->is_tty = isatty(STDERR_FILENO) == 1;
    atomic_init(&progress->all_bytes, all_bytes);
    progress->began_ns = clock_now_ns(progress->clock);
    atomic_init(&progress->bytes, 0);
    atomic_init(&progress->units, 0);
    atomic_init(&progress->next_ns,
        progress->began_ns +
            (progress->is_tty ? (uint64_t)TTY_NS : LOG_S * NS_PER_S));
}

static void
report(struct progress *progress, uint64_t bytes, uint64_t now_ns)
{
    /* relaxed: a figure */
    uint64_t units =
        atomic_load_explicit(&progress->units, memory_order_relaxed);
    uint64_t all =
        atomic_load_explicit(&progress->all_bytes, memory_order_relaxed);
    all = all > bytes ? all : bytes;
    double s = (double)(now_ns - progress->began_ns + 1) / (double)NS_PER_S;
    double rate = (double)units / s;
    double left = s * (double)(all - bytes) / (double)bytes;
    unsigned percent = all == 0 ? PERCENT : (unsigned)(bytes * PERCENT / all);
    if (progress->is_tty) {
        fprintf(stderr,
            "\rtallyd: loading %s: %u %%, %" PRIu64 " %s, %.0f a second, "
            "%.0f s left ",
            progress->what, percent, units, progress->unit, rate, left);
    } else {
        log_line(progress->logger, LOG_WARNING,
            "loading %s: %u %%, %" PRIu64 " %s, %.0f a second, %.0f s left",
            progress->what, percent, units, progress->unit, rate, left);
    }
}

void
progress_add(struct progress *progress, uint64_t bytes, uint64_t units)
{
    /* relaxed, all: figures; the exchange lets one thread tell */
    uint64_t now_ns = clock_now_ns(progress->clock);
    uint64_t done = bytes +
        atomic_fetch_add_explicit(
            &progress->bytes, bytes, memory_order_relaxed);
    atomic_fetch_add_explicit(&progress->units, units, memory_order_relaxed);
    uint64_t next =
        atomic_load_explicit(&progress->next_ns, memory_order_relaxed);
    uint64_t then_ns =
        now_ns + (progress->is_tty ? (uint64_t)TTY_NS : LOG_S * NS_PER_S);
    /* without a byte nobody knows how long it takes */
    if (done > 0 && now_ns >= next &&
        atomic_compare_exchange_strong_explicit(&progress->next_ns, &next,
            then_ns, memory_order_relaxed, memory_order_relaxed)) {
        report(progress, done, now_ns);
    }
}

void
progress_end(struct progress *progress)
{
    /* relaxed: figures; all who added have been joined */
    uint64_t units =
        atomic_load_explicit(&progress->units, memory_order_relaxed);
    uint64_t ns = clock_now_ns(progress->clock) - progress->began_ns;
    if (progress->is_tty && ns > TTY_NS) {
        fputs("\r\033[K", stderr);
    }
    if (units > 0) {
        log_line(progress->logger, LOG_INFO,
            "loaded %s: %" PRIu64 " %s in %.3f s", progress->what, units,
            progress->unit, (double)ns / (double)NS_PER_S);
    }
}
