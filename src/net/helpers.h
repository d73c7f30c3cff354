/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NET_HELPERS_H
#define NET_HELPERS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Threads of a lower priority that do for the workers what takes too long for
 * a loop. */

struct helpers;
struct worker; /* net/worker.h */

enum { CHORE_MAGIC = 0x524f4843 };

/* A piece of work: the giver's memory, the helpers' from helpers_give until
 * done_fn. */
struct chore {
    uint32_t magic; /* CHORE_MAGIC from helpers_give until done_fn */
    struct chore *next;
    struct worker *worker;                /* the giver */
    void (*do_fn)(struct chore *chore);   /* on a helper's thread */
    void (*done_fn)(struct chore *chore); /* on the giver's, later */
    atomic_bool is_unwanted; /* the giver's: do_fn may be left out */
};

/* Starts as many threads as there are cores, HELPERS_MAX at most. 0, or
 * ERR_NO_MEMORY, ERR_NO_THREAD. */
enum { HELPERS_MAX = 4 };
int helpers_start(struct helpers **out);

/* Has it done, after those that were given before. The worker's thread; never
 * waits. */
void helpers_give(struct helpers *helpers, struct chore *chore);

/* Ends the threads, and nulls *helpers. Nothing may be under way. */
void helpers_stop(struct helpers **helpers);

#endif
