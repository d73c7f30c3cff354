/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SERVER_SERVER_H
#define SERVER_SERVER_H

#include "store/store.h"

/* The whole program, but for the name main: t/system has a second program that
 * puts a store of its own in between. */

/* A store in front of the real one, and a clock; for tests. */
struct server_hooks {
    /* Makes *out from the real store, which it does not own. 0 or an ERR_.
     * NULL: there is none. */
    int (*wrap_fn)(struct store *inner, struct store **out);
    void (*unwrap_fn)(struct store **outer);
    const struct clock *clock; /* outlives the run; NULL: the system's */
};

/* Runs tallyd with a command line until it is told to stop; returns the exit
 * status. hooks may be NULL. Once in a process. */
int server_run(int argc, char **argv, const struct server_hooks *hooks);

#endif
