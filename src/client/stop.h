/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CLIENT_STOP_H
#define CLIENT_STOP_H

#include <stdbool.h>
#include <stdint.h>

/* SIGTERM and SIGINT, and one more signal, asked for. Begun before any thread,
 * which inherits that they are blocked. */
struct stop {
    int fd;    /* of signals; -1: none */
    int other; /* the other signal; 0: none */
    bool is_asked;
    bool is_told; /* the other one has come */
};

/* 0 or an errno value. */
int stop_init(struct stop *stop, int other);
void stop_fini(struct stop *stop);

/* True from the first SIGTERM or SIGINT on; reads what other has come, too. */
bool stop_is_asked(struct stop *stop);

/* Returns after that time, or when a signal comes. */
void stop_sleep(struct stop *stop, uint64_t ms);

#endif
