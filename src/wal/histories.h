/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WAL_HISTORIES_H
#define WAL_HISTORIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Which history a file is of. Each process that changes a data directory draws
 * a random number, not 0, which is in the heads of all files that it writes;
 * the manifest has it, too, for each file. Two copies of a directory that both
 * go on, and a directory and a backup that takes its place, write files of the
 * same numbers; but these are never taken for each other's. A history of 0 is
 * that of a file that was written before there were histories: it has the epoch
 * of the directory in that place, or, in an image, 0. */

/* What a file of another history is told with, behind its name. */
#define HISTORIES_FOREIGN                                                     \
    "is of another history: a copy of this data directory that went on for "  \
    "itself has written it, or this directory before a backup was put over "  \
    "it; put back the file that belongs here, restore the backup into an "    \
    "empty directory, or see --salvage"

/* Draws one. 0 or ERR_SYSTEM. Any thread. */
int histories_draw(uint64_t *history);

/* Log files from number `from` on are of that history, up to the next entry. */
struct histories_entry {
    uint64_t from; /* from 1 on, ascending */
    uint64_t history;
};

/* Of the log files of a directory; all zero is empty. One thread at a time. */
struct histories {
    struct histories_entry *entry; /* owned */
    size_t n, capacity;
};

void histories_fini(struct histories *histories);

/* Log files from that number (>= 1) on are of that history (not 0); what was
 * said of them does not hold any more. 0 or ERR_NO_MEMORY (nothing has
 * changed). */
int histories_add(
    struct histories *histories, uint64_t from, uint64_t history);

/* Lets go of what is said of log files before that number only. */
void histories_forget(struct histories *histories, uint64_t number);

/* The history of log file number; 0: it was written before there were any. */
uint64_t histories_of(const struct histories *histories, uint64_t number);

/* What log file number has in its header: its history, or the directory's
 * epoch; histories may be NULL: as an empty one. */
uint64_t histories_epoch(
    const struct histories *histories, uint64_t number, uint64_t epoch);

/* A copy, the caller's; what was in *out is not looked at. 0 or ERR_NO_MEMORY
 * (*out is empty). */
int histories_copy(const struct histories *from, struct histories *out);

/* Asserts that they are in order. */
void histories_verify(const struct histories *histories);

/* All histories that a manifest names, each once, ascending: in entries a place
 * in this list stands for each. All zero is empty. One thread at a time. */
struct histories_set {
    uint64_t *history; /* owned */
    size_t n, capacity;
    uint64_t last; /* that was added */
    bool is_short; /* of memory: some are missing */
};

void histories__set_fini(struct histories_set *set);

/* Adds one; 0, and what is in it, is passed over. */
void histories__set_add(struct histories_set *set, uint64_t history);

/* Its place, from 1 on; 0 for 0. It is in the set. */
uint64_t histories__set_place(
    const struct histories_set *set, uint64_t history);

/* False where there is no such place. */
bool histories__set_get(
    const struct histories_set *set, uint64_t place, uint64_t *history);

#endif
