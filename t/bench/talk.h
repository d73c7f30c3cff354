/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_TALK_H
#define BENCH_TALK_H

#include "bench/worker.h"

#include <stdbool.h>
#include <stdint.h>

/* What is said on a connection: commands of the worker's mode, and their
 * replies. The worker's thread only. */

/* Appends the next command to conn->out; its depth must not be reached. False
 * where the work is done. due_ns: when it was to be sent, for its latency. */
bool talk_ask(struct worker *worker, struct conn *conn, uint64_t due_ns);

/* Takes all whole replies of conn->in; counts, and with --verify checks, what
 * they answer. Errors from the server end the program. */
void talk_hear(struct worker *worker, struct conn *conn, uint64_t now_ns);

#endif
