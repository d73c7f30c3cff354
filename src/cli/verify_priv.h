/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CLI_VERIFY_PRIV_H
#define CLI_VERIFY_PRIV_H

#include "cli/ask.h"
#include "cli/rows.h"
#include "cli/shown.h"
#include "cli/truth.h"
#include "client/stop.h"

#include <stdbool.h>
#include <stdint.h>

/* Inside of verify. One thread. */

enum { VERIFY_WHY_MAX = 400, VERIFY_PRODUCER_MAX = 32, VERIFY_LOOKS = 3 };

/* A number that differs. */
struct suspect {
    struct rows_id id;    /* a name is the heap's */
    uint64_t here, truth; /* of the first look */
    uint8_t column;       /* of verify.column */
    bool has_moved;       /* either was another at a later look */
    bool is_even;         /* both were alike at the last look */
};

struct verify {
    struct ask ask;
    const char *counter, *columns_text, *more, *state;
    char rule[OWNS_RULE_BYTES];
    uint64_t settle_s, suspects_most;
    bool is_fixing;

    struct stop stop;
    struct shown shown;
    struct rows_columns columns;
    unsigned n_columns; /* that are compared, as truth answers them */
    uint8_t column[TRUTH_COLUMNS_MAX]; /* their places in columns */
    struct truth truth;

    /* the batch that is looked at */
    unsigned n;
    struct rows_id id[TRUTH_BATCH_MAX]; /* names are in name, or a suspect's */
    char name[TRUTH_BATCH_MAX][NAME_BYTES_MAX];
    uint64_t here[TRUTH_BATCH_MAX * TRUTH_COLUMNS_MAX];
    uint64_t there[TRUTH_BATCH_MAX * TRUTH_COLUMNS_MAX];
    bool is_known[TRUTH_BATCH_MAX];

    struct suspect *suspect; /* the heap's */
    size_t n_suspects, room;
    uint64_t looked, unknown;
    uint64_t drifts, moving, corrected, refused;
    struct buf text; /* what is sent */
    char why[VERIFY_WHY_MAX];
};

/* Writes why. Always false. */
__attribute__((format(printf, 2, 3))) bool verify__fail(
    struct verify *job, const char *format, ...);

/* The name that the keys of a number have, of those that are compared. */
static inline const struct schema_name *
verify__column(const struct verify *job, unsigned i)
{
    const struct rows_columns *columns = &job->columns;
    const struct schema_name *suffix = &columns->suffix[job->column[i]];
    return suffix->len > 0 ? suffix : &columns->name[job->column[i]];
}

/* Reads the numbers of id[0..n) of the server to here. False with why. */
bool verify__read_here(struct verify *job);

/* Corrects what stood still: first writes all corrections to --state, each with
 * a number, then sends them; what a run before has left there comes first.
 * False with why. */
bool verify__finish_before(struct verify *job);
bool verify__correct(struct verify *job);

/* A suspect that has not moved, and differs. */
static inline bool
verify__is_drift(const struct suspect *suspect)
{
    return !suspect->has_moved && suspect->here != suspect->truth;
}

#endif
