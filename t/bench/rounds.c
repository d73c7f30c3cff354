/* SPDX-License-Identifier: BSD-3-Clause */

/* Comparing loops on one thread. CPU time, not time, so that what else the
 * machine does disturbs little; in turns, so that what remains hits all
 * alike. */

#include "bench/rounds.h"

#include "base/assert.h"
#include "bench/fail.h"
#include "lib/dist.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum {
    HUGE_BYTES = 2 << 20,
    LINE_WORDS = 8,
    BASELINE_IDS = 400000, /* a round */
    STREAM_BASELINE = 7
};

uint64_t
rounds_cpu_ns(void)
{
    struct timespec now;
    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) != 0) {
        fail_errno("clock_gettime");
    }
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

void
rounds_progress(const char *format, ...)
{
    if (isatty(STDERR_FILENO) != 1) {
        return;
    }
    fprintf(stderr, "\r\033[K");
    if (format != NULL) {
        va_list args;
        va_start(args, format);
        vfprintf(stderr, format, args);
        va_end(args);
    }
}

static size_t
whole_pages(size_t bytes)
{
    return (bytes + HUGE_BYTES - 1) / HUGE_BYTES * HUGE_BYTES;
}

void *
rounds_map(size_t bytes)
{
    size_t whole = whole_pages(bytes);
    char *raw = mmap(NULL, whole + HUGE_BYTES, PROT_READ | PROT_WRITE,
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (raw == MAP_FAILED) {
        fail_errno("mmap");
    }
    size_t before = -(uintptr_t)raw % HUGE_BYTES;
    char *memory = raw + before;
    if (before > 0) {
        munmap(raw, before);
    }
    munmap(memory + whole, HUGE_BYTES - before);
    /* where the kernel has no huge pages the rest goes on without */
    (void)madvise(memory, whole, MADV_HUGEPAGE);
    memset(memory, 0, whole);
    return memory;
}

void
rounds_unmap(void *memory, size_t bytes)
{
    if (memory != NULL) {
        munmap(memory, whole_pages(bytes));
    }
}

void
rounds_baseline_init(
    struct rounds_baseline *baseline, size_t lines, size_t draws)
{
    *baseline = (struct rounds_baseline){.lines = lines, .draws = draws};
    baseline->word = rounds_map(lines * LINE_WORDS * sizeof(uint64_t));
    baseline->draw = rounds_map(draws * sizeof(uint64_t));
    struct dist_rng rng;
    dist_rng_init(&rng, 1, STREAM_BASELINE);
    for (size_t i = 0; i < draws; i++) {
        baseline->draw[i] = dist_rng_u64(&rng) % lines;
    }
}

void
rounds_baseline_fini(struct rounds_baseline *baseline)
{
    rounds_unmap(
        baseline->word, baseline->lines * LINE_WORDS * sizeof(uint64_t));
    rounds_unmap(baseline->draw, baseline->draws * sizeof(uint64_t));
}

static void
run_baseline(struct rounds_baseline *baseline, size_t n)
{
    uint64_t sum = 0;
    for (size_t done = 0; done < n; done += ROUNDS_BATCH) {
        if (baseline->at + ROUNDS_BATCH > baseline->draws) {
            baseline->at = 0;
        }
        const uint64_t *draw = baseline->draw + baseline->at;
        for (size_t i = 0; i < ROUNDS_BATCH; i++) {
            __builtin_prefetch(&baseline->word[draw[i] * LINE_WORDS]);
        }
        for (size_t i = 0; i < ROUNDS_BATCH; i++) {
            sum += baseline->word[draw[i] * LINE_WORDS];
        }
        baseline->at += ROUNDS_BATCH;
    }
    baseline->sum += sum;
}

void
rounds_baseline_serial(void *context, size_t n)
{
    struct rounds_baseline *baseline = context;
    uint64_t last = 0;
    for (size_t i = 0; i < n; i++) {
        if (baseline->at == baseline->draws) {
            baseline->at = 0;
        }
        /* every word is 0, which the compiler does not know */
        uint64_t line = baseline->draw[baseline->at++] ^ last;
        last = baseline->word[line * LINE_WORDS];
    }
    baseline->sum += last;
}

static double
baseline_ns(struct rounds_baseline *baseline)
{
    uint64_t begin_ns = rounds_cpu_ns();
    run_baseline(baseline, BASELINE_IDS);
    return (double)(rounds_cpu_ns() - begin_ns) / BASELINE_IDS;
}

double
rounds_run(struct rounds_row *row, size_t n_rows,
    struct rounds_baseline *baseline, unsigned rounds)
{
    ASSERT(rounds >= 1 && rounds <= ROUNDS_MAX);
    double base[ROUNDS_MAX];
    for (unsigned i = 0; i <= rounds; i++) {
        unsigned at = i == 0 ? 0 : i - 1; /* the first is written over */
        double before = baseline_ns(baseline);
        double sum = before;
        for (size_t r = 0; r < n_rows; r++) {
            rounds_progress("round %u of %u: %s", i, rounds, row[r].name);
            uint64_t begin_ns = rounds_cpu_ns();
            row[r].run_fn(row[r].context, row[r].n);
            row[r].ns[at] =
                (double)(rounds_cpu_ns() - begin_ns) / (double)row[r].n;
            double after = baseline_ns(baseline);
            row[r].ratio[at] = row[r].ns[at] / ((before + after) / 2.0);
            before = after;
            sum += after;
        }
        base[at] = sum / (double)(n_rows + 1);
    }
    rounds_progress(NULL);
    return rounds_spread(base, rounds).median;
}

static int
compare(const void *a, const void *b)
{
    double left = *(const double *)a;
    double right = *(const double *)b;
    return (left > right) - (left < right);
}

struct rounds_spread
rounds_spread(double *number, unsigned n)
{
    ASSERT(n > 0);
    qsort(number, n, sizeof(number[0]), compare);
    return (struct rounds_spread){
        .median = (number[(n - 1) / 2] + number[n / 2]) / 2.0,
        .least = number[0],
        .most = number[n - 1]};
}
