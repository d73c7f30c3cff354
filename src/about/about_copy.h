/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ABOUT_ABOUT_COPY_H
#define ABOUT_ABOUT_COPY_H

#include "about/about.h"

/* What a checkpoint takes of the tables, and a start puts back. The log is
 * needed from some file on for what no image has; which one that is is kept
 * here, by numbers that only the caller understands, and that go up.
 *
 *   mark, then a grace period, then list, lines, and end
 *
 * What was logged before the mark is in the tables when the grace period is
 * over. One thread at a time. */

/* A table as it is now. */
struct about_part {
    uint64_t number;   /* the how-manieth of the column, from 1 */
    uint64_t first;    /* id */
    uint64_t n_new;    /* members that were added */
    uint64_t n_closed; /* of these, before it closed; 0: it is open */
    uint64_t n_imaged; /* of n_new, for certain, those that its image has */
    uint64_t log_from; /* what was added to it and is in no image was logged
                        * from there on */
    bool is_changed;   /* something was added since its image */
};

/* From now on what is logged is logged from `log` on. before: what was said
 * last time, for tables that are newer than that. */
void about_copy_mark(struct about *about, uint64_t log, uint64_t before);

/* The tables, by ascending ids: returns how many. */
unsigned about_copy_list(
    struct about *about, struct about_part out[ABOUT_TABLES_MAX]);

/* Copies lines `from`..from + n - 1 of the table with that number, but for
 * those without a member, and returns how many there are: line[i] is its
 * number, code[w][i] its w-th word. The table may be gone: none are. An online
 * reader. */
uint32_t about_copy_lines(const struct about *about, uint64_t number,
    uint64_t from, uint32_t n, uint64_t *line,
    uint64_t *code[ABOUT_LINE_WORDS]);

/* All of that table has been copied since the mark. */
void about_copy_note(struct about *about, uint64_t number);

/* Images of the tables that were noted are durable, or will never be. */
void about_copy_end(struct about *about, bool is_durable);

uint64_t about_lines(const struct about *about); /* of a table */
/* The same of one that is made with so much memory. */
uint64_t about_lines_of(uint64_t memory_bytes);
uint64_t about_above(const struct about *about); /* largest id + 1; 0: none */

/* Makes empty tables of that many lines in the place of all there are: n (1..
 * ABOUT_TABLES_MAX) parts, by ascending ids and numbers. Nobody reads. 0 or
 * ERR_NO_MEMORY: nothing has changed; ERR_CORRUPT: these cannot be. */
int about_load_window(struct about *about, uint64_t lines, uint64_t above,
    const struct about_part *part, unsigned n);

/* Adds a line's words to that table; false where there is none, or no such
 * line. Any thread. */
bool about_load_line(struct about *about, uint64_t number, uint64_t line,
    const uint64_t word[ABOUT_LINE_WORDS]);

#endif
