/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CLI_HEALTH_H
#define CLI_HEALTH_H

#include "base/buf.h"
#include "cli/ask.h"
#include "cli/json.h"

#include <stdbool.h>
#include <stdint.h>

/* What `stats health` says of a server. One thread. */

enum { HEALTH_STATE_MAX = 31 };

struct health {
    struct figures figures;           /* "problem:1" ... are of them */
    char state[HEALTH_STATE_MAX + 1]; /* as the server says; "unknown" */
    uint64_t n_problems;
    bool has_percent; /* while it loads */
    uint64_t percent;
};

/* Asks, over the connection. False: it is lost, see talk.why. *health is zero
 * at first, or of an earlier call. */
bool health_ask(struct ask *ask, struct health *health);
void health_fini(struct health *health);

/* It takes what clients send. */
bool health_is_ready(const struct health *health);

/* It is ready, and nothing is wrong. */
bool health_is_well(const struct health *health);

/* The problem, from 0 on, the worst first: "what; what to do"; NULL: there are
 * no more. */
const char *health_problem(const struct health *health, unsigned i);

/* The line that tells of the worst: "well", "loading, 40 %: ...", or the first
 * problem. No newline. */
void health_line(const struct health *health, struct buf *out);

/* Members state, percent, problems of the object that is open. */
void health_json(const struct health *health, struct json *json);

#endif
