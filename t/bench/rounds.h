/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_ROUNDS_H
#define BENCH_ROUNDS_H

#include <stddef.h>
#include <stdint.h>

/* What is compared is measured in turns: the baseline, a row, the baseline,
 * the next row, and so on, for several rounds. A row's ratio in a round is to
 * the mean of the baselines before and after it. */

enum { ROUNDS_MAX = 101, ROUNDS_BATCH = 100 };

/* CPU time of the calling thread. */
uint64_t rounds_cpu_ns(void);

/* One line on a terminal's stderr; NULL wipes it. */
void rounds_progress(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

/* Memory of zeroes as the engine's arena gets it: aligned to 2 MB, advised to
 * be huge pages; all of it touched. Fails where there is none. */
void *rounds_map(size_t bytes);
void rounds_unmap(void *memory, size_t bytes);

/* The loop that all is compared with: for a batch of 100 ids, prefetch one
 * random line each, then load one word of each. Lines are drawn before, into
 * a ring. */
struct rounds_baseline {
    uint64_t *word; /* owned */
    size_t lines;
    uint64_t *draw; /* owned: lines */
    size_t draws, at;
    uint64_t sum; /* so that nothing is optimised away */
};

void rounds_baseline_init(
    struct rounds_baseline *baseline, size_t lines, size_t draws);
void rounds_baseline_fini(struct rounds_baseline *baseline);

/* The same, each line once the one before has been loaded. */
void rounds_baseline_serial(void *baseline, size_t n);

struct rounds_row {
    const char *name;
    void (*run_fn)(void *context, size_t n); /* n ids */
    void *context;
    size_t n;                 /* ids a round */
    double ns[ROUNDS_MAX];    /* an id */
    double ratio[ROUNDS_MAX]; /* to the baseline */
};

/* Measures n_rows rows in that many rounds, after one that is thrown away;
 * returns the median of the baseline in ns, of each round the mean. */
double rounds_run(struct rounds_row *row, size_t n_rows,
    struct rounds_baseline *baseline, unsigned rounds);

/* Median, least and largest of n numbers, which it sorts. */
struct rounds_spread {
    double median, least, most;
};
struct rounds_spread rounds_spread(double *number, unsigned n);

#endif
