/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OFFLINE_DUMP_PLAN_H
#define OFFLINE_DUMP_PLAN_H

#include "base/disk.h"
#include "base/progress.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a dump is going to read, part by part in that order, and how far it is:
 * what is told begins at 0, never passes what there is, and ends there. All
 * zero is empty. One thread. */
struct dump_plan {
    struct progress progress;
    struct dump_plan_part {
        uint64_t log; /* the number of a log file; 0: it is none */
        uint64_t bytes;
    } * part; /* owned: n of capacity */
    size_t n, capacity;
    size_t next;   /* behind the part under way */
    uint64_t all;  /* bytes of all parts */
    uint64_t base; /* of those before the one under way */
    uint64_t size; /* of that one; 0: there is none */
    uint64_t done; /* told */
};

/* Adds a part that is no log file. 0 or ERR_NO_MEMORY. */
int dump_plan_add(struct dump_plan *plan, uint64_t bytes);

/* The bytes of a segment file; 0 where it cannot be read. */
uint64_t dump_plan_segment_bytes(struct disk *disk, uint64_t number);

/* Adds all log files from number `from` on, by number: of each what is in it,
 * not its length, which is a hole for the most part. 0, ERR_NO_MEMORY,
 * ERR_DISK (the directory cannot be read). */
int dump_plan_add_logs(
    struct dump_plan *plan, struct disk *disk, uint64_t from);

/* Reading begins; clock, logger: as of progress_begin. */
void dump_plan_begin(
    struct dump_plan *plan, struct logger *logger, const struct clock *clock);

/* The next part that is no log file begins. */
void dump_plan_next(struct dump_plan *plan);

/* `at` of `of` is read of the part under way, and units more records or
 * changes. */
void dump_plan_reach(
    struct dump_plan *plan, uint64_t at, uint64_t of, uint64_t units);

/* The log is read up to that offset of file number; units: likewise. */
void dump_plan_reach_log(
    struct dump_plan *plan, uint64_t number, uint64_t at, uint64_t units);

/* Reading ends, of all there is where that is whole. */
void dump_plan_end(struct dump_plan *plan, bool is_whole);

void dump_plan_fini(struct dump_plan *plan);

#endif
