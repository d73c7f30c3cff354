/* SPDX-License-Identifier: BSD-3-Clause */

/* A load generator for servers that speak memcached's protocols or Redis's:
 * fills one with the counters of a feed, asks for them, and measures the
 * server's CPU time while doing so.
 *
 * The main thread draws the questions, starts the workers, and then only
 * sleeps: through the warm-up, takes a sample of all counts and of the
 * server's CPU time, through the measured phase, takes another, stops the
 * workers and reports the difference. Without a warm-up, with --ops, and for
 * fill, the measured phase begins before the workers do, so that the first
 * command is in it however late this thread comes to run again. Any error ends
 * the program with status 1. */

#include "base/clock.h"
#include "bench/fail.h"
#include "bench/options.h"
#include "bench/proc.h"
#include "bench/report.h"
#include "bench/tape.h"
#include "bench/worker.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S UINT64_C(1000000000)

enum {
    PROGRESS_NS = 500000000,
    SAMPLE_NS = 50000000,
    NS_PER_MS = 1000000,
    LONGER_MAX = 100,
    EXIT_USAGE = 2
};

/* A phase in which nothing is answered goes on for so much, LONGER_MAX times at
 * most: a busy machine may give no core to a server through a short one. */
static const double LONGER_S = 0.1;

static struct sample
take_sample(const struct options *options, const struct worker *worker)
{
    struct sample sample = {
        .at_ns = clock_monotonic_ns(), .own_cpu_us = proc_own_cpu_us()};
    for (uint64_t i = 0; i < options->threads; i++) {
        sample.ops += atomic_load(&worker[i].tally.ops);
        sample.keys += atomic_load(&worker[i].tally.keys);
        sample.hits += atomic_load(&worker[i].tally.hits);
        sample.records += atomic_load(&worker[i].tally.records);
    }
    if (options->pid != 0) {
        sample.server_cpu_us = proc_cpu_us(options->pid);
        sample.memory = proc_memory(options->pid);
    }
    return sample;
}

static void
show_progress(const struct options *options, const struct worker *worker,
    uint64_t begin_ns)
{
    uint64_t ops = 0;
    for (uint64_t i = 0; i < options->threads; i++) {
        ops += atomic_load(&worker[i].tally.ops);
    }
    uint64_t ns = clock_monotonic_ns() - begin_ns;
    fprintf(stderr, "\r%s: %" PRIu64 " commands, %" PRIu64 " s ",
        options_mode_name(options->mode), ops, ns / NS_PER_S);
}

/* A line of --samples. Records are counted first, so there may be more in the
 * memory than are said to be, never fewer. */
static void
write_sample(FILE *out, const struct options *options,
    const struct worker *worker, uint64_t begin_ns)
{
    struct sample sample = take_sample(options, worker);
    fprintf(out, "%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
        (sample.at_ns - begin_ns) / NS_PER_MS, sample.records,
        sample.memory.rss_bytes, sample.memory.anon_bytes);
}

/* Sleeps until the time, or until all workers have ended. Writes to samples
 * meanwhile, where it is not NULL. */
static void
wait_until(struct run *run, const struct worker *worker, uint64_t end_ns,
    FILE *samples)
{
    bool is_shown = isatty(STDERR_FILENO) == 1;
    uint64_t begin_ns = clock_monotonic_ns();
    uint64_t now_ns = begin_ns;
    mutex_lock(&run->lock);
    while (now_ns < end_ns && run->n_done < run->options->threads) {
        uint64_t next_ns =
            now_ns + (samples != NULL ? SAMPLE_NS : PROGRESS_NS);
        next_ns = next_ns < end_ns ? next_ns : end_ns;
        struct timespec until = {.tv_sec = (time_t)(next_ns / NS_PER_S),
            .tv_nsec = (long)(next_ns % NS_PER_S)};
        (void)mutex_timedwait(&run->lock, &run->done, &until);
        if (is_shown) {
            show_progress(run->options, worker, begin_ns);
        }
        if (samples != NULL) {
            write_sample(samples, run->options, worker, begin_ns);
        }
        now_ns = clock_monotonic_ns();
    }
    mutex_unlock(&run->lock);
    if (is_shown) {
        fprintf(stderr, "\r\033[K");
    }
}

static void
run_init(
    struct run *run, const struct options *options, const struct tape *tape)
{
    *run = (struct run){.options = options, .tape = tape};
    atomic_store(&run->begin_ns, UINT64_MAX);
    atomic_store(&run->end_ns, UINT64_MAX);
    verify_init(&run->verify, options);
    pthread_condattr_t monotonic;
    mutex_init(&run->lock);
    if (pthread_condattr_init(&monotonic) != 0 ||
        pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC) != 0 ||
        pthread_cond_init(&run->done, &monotonic) != 0) {
        fail("no condition variable");
    }
    pthread_condattr_destroy(&monotonic);
}

static void
run_fini(struct run *run)
{
    pthread_cond_destroy(&run->done);
    mutex_fini(&run->lock);
    verify_fini(&run->verify);
}

/* Begins the measured phase. */
static struct sample
begin_phase(struct run *run, const struct worker *worker)
{
    struct sample begin = take_sample(run->options, worker);
    atomic_store(&run->begin_ns, begin.at_ns);
    atomic_store(&run->phase, PHASE_MEASURE);
    return begin;
}

static uint64_t
from_now_ns(double seconds)
{
    return clock_monotonic_ns() + (uint64_t)(seconds * (double)NS_PER_S);
}

/* The file of --samples with its first line; NULL without. */
static FILE *
open_samples(const struct options *options, const struct worker *worker)
{
    if (options->samples == NULL) {
        return NULL;
    }
    FILE *file = fopen(options->samples, "w");
    if (file == NULL) {
        fail_errno(options->samples);
    }
    /* so that they are there where the fill fails: that is without exit */
    (void)setvbuf(file, NULL, _IOLBF, 0);
    write_sample(file, options, worker, clock_monotonic_ns());
    return file;
}

/* Starts the open workers, measures them and reports. */
static void
measure(struct run *run, struct worker *worker)
{
    const struct options *options = run->options;
    bool is_counted = options->ops != 0 || options->mode == MODE_FILL;
    FILE *samples = open_samples(options, worker);
    struct sample begin = {0};
    bool is_measured = is_counted || options->warmup_s <= 0.0;
    if (is_measured) {
        begin = begin_phase(run, worker);
    }
    run->start_ns = clock_monotonic_ns();
    for (uint64_t i = 0; i < options->threads; i++) {
        worker_start(&worker[i]);
    }
    uint64_t end_ns = UINT64_MAX;
    if (!is_measured) {
        wait_until(run, worker, from_now_ns(options->warmup_s), NULL);
        begin = begin_phase(run, worker);
    }
    if (!is_counted) {
        end_ns = from_now_ns(options->seconds);
    }
    wait_until(run, worker, end_ns, samples);
    struct sample end = take_sample(options, worker);
    for (int i = 0; i < LONGER_MAX && end.ops == begin.ops; i++) {
        wait_until(run, worker, from_now_ns(LONGER_S), samples);
        end = take_sample(options, worker);
    }
    if (!is_counted) {
        atomic_store(&run->end_ns, end.at_ns);
    }
    atomic_store(&run->phase, PHASE_STOP);
    if (end.ops == begin.ops) {
        fail("no command was answered in the measured phase");
    }
    if (samples != NULL && fclose(samples) != 0) {
        fail_errno(options->samples);
    }

    struct hist hist = {0};
    struct pace_tally paced = {0};
    for (uint64_t i = 0; i < options->threads; i++) {
        worker_join(&worker[i]);
        hist_merge(&hist, &worker[i].hist);
        hist_merge(&paced.lag, &worker[i].paced.lag);
        paced.sent += worker[i].paced.sent;
        paced.late += worker[i].paced.late;
        paced.unsent += worker[i].paced.unsent;
    }
    report(options, &begin, &end, &hist, &paced);
}

int
main(int argc, char **argv)
{
    struct options options;
    switch (options_parse(&options, argc, argv)) {
    case OPTIONS_HELPED:
        return EXIT_SUCCESS;
    case OPTIONS_BAD:
        return EXIT_USAGE;
    case OPTIONS_RUN:
        break;
    }

    struct tape tape = {0};
    if (options.mode != MODE_FILL) {
        tape_init(&tape, &options);
    }
    struct run run;
    run_init(&run, &options, &tape);
    struct worker *worker = calloc(options.threads, sizeof(worker[0]));
    if (worker == NULL) {
        fail("out of memory");
    }
    for (uint64_t i = 0; i < options.threads; i++) {
        worker_open(&worker[i], &run, i);
    }
    measure(&run, worker);
    free(worker);
    run_fini(&run);
    tape_fini(&tape);
    return EXIT_SUCCESS;
}
