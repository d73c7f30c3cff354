/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CLI_SHOWN_H
#define CLI_SHOWN_H

#include <stdbool.h>
#include <stdint.h>

/* How far long work of a command is, on standard error: on a terminal one line
 * that is written over, else a line every ten seconds: what has been done, how
 * much of it a second, and how long the rest takes. One thread. */
struct shown {
    const char *what; /* "rows"; of bytes what was done, "copied" */
    uint64_t all;     /* of what is counted below; 0: not known. The caller may
                       * change it */
    bool is_tty;
    bool is_bytes;
    uint64_t began_ms, next_ms, then_ms, n_then;
};

void shown_begin(struct shown *shown, const char *what, uint64_t all);

/* The same for bytes, which are shown as MB. */
void shown_begin_bytes(struct shown *shown, const char *what, uint64_t all);

/* n things are done, and of what all is made of, parts. */
void shown_tell(struct shown *shown, uint64_t n, uint64_t parts);

/* True when it is time for a line. */
bool shown_is_due(const struct shown *shown);

/* Writes one now; before and behind: what else is to be in it, or "". stays:
 * also on a terminal it is not written over. */
void shown_line(struct shown *shown, const char *before, uint64_t n,
    uint64_t parts, const char *behind, bool stays);

/* What begins another line on that terminal, or file. Static storage. */
const char *shown_over(const struct shown *shown);

/* Ends the terminal's line. */
void shown_end(struct shown *shown);

#endif
