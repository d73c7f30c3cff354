/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CLI_SHOWN_H
#define CLI_SHOWN_H

#include <stdbool.h>
#include <stdint.h>

/* How far long work of a command is, on standard error: on a terminal one line
 * that is written over, else a line every ten seconds: what has been done, how
 * much of it a second, and how long the rest takes. One thread. */
struct shown {
    const char *what; /* "rows" */
    uint64_t all;     /* of what is counted below; 0: not known */
    bool is_tty;
    uint64_t began_ms, next_ms, then_ms, n_then;
};

void shown_begin(struct shown *shown, const char *what, uint64_t all);

/* n things are done, and of what all is made of, parts. */
void shown_tell(struct shown *shown, uint64_t n, uint64_t parts);

/* Ends the terminal's line. */
void shown_end(struct shown *shown);

#endif
