/* SPDX-License-Identifier: BSD-3-Clause */
/* How far --dump is: the parts that it reads, each with its bytes, in the order
 * of reading. base + size <= all, and done never goes back. */
#include "offline/dump_plan.h"

#include "base/assert.h"
#include "base/err.h"
#include "cold/segment_head.h"
#include "offline/reading.h"
#include "wal/names.h"

#include <stdlib.h>

static int
add(struct dump_plan *plan, uint64_t log, uint64_t bytes)
{
    if (plan->n == plan->capacity) {
        size_t n = 2 * plan->capacity + 16;
        struct dump_plan_part *more = realloc(plan->part, n * sizeof *more);
        if (more == NULL) {
            return ERR_NO_MEMORY;
        }
        plan->part = more;
        plan->capacity = n;
    }
    plan->part[plan->n++] = (struct dump_plan_part){log, bytes};
    plan->all += bytes;
    return 0;
}

int
dump_plan_add(struct dump_plan *plan, uint64_t bytes)
{
    return add(plan, 0, bytes);
}

uint64_t
dump_plan_segment_bytes(struct disk *disk, uint64_t number)
{
    char name[SEGMENT_NAME_BYTES];
    uint64_t bytes = 0;
    int fd;
    segment_name(name, number, false);
    if (disk->calls->open(disk, name, DISK_READ, &fd) != 0) {
        return 0;
    }
    if (disk->calls->size(disk, fd, &bytes) != 0) {
        bytes = 0;
    }
    disk->calls->close(disk, fd);
    return bytes;
}

struct logs {
    struct dump_plan *plan;
    struct disk *disk;
    uint64_t from;
    int err;
};

static void
note_name(void *context, const char *name)
{
    struct logs *logs = context;
    enum names_kind kind;
    uint64_t number;
    if (logs->err == 0 && names_parse(name, &kind, &number) &&
        kind == NAMES_LOG && number >= logs->from) {
        logs->err =
            add(logs->plan, number, reading__data_end(logs->disk, name));
    }
}

static int
by_number(const void *a, const void *b)
{
    const struct dump_plan_part *x = a, *y = b;
    return x->log < y->log ? -1 : x->log > y->log;
}

int
dump_plan_add_logs(struct dump_plan *plan, struct disk *disk, uint64_t from)
{
    struct logs logs = {.plan = plan, .disk = disk, .from = from};
    size_t first = plan->n;
    if (disk->calls->list(disk, note_name, &logs) != 0) {
        return ERR_DISK;
    }
    if (plan->n > first) {
        qsort(plan->part + first, plan->n - first, sizeof plan->part[0],
            by_number);
    }
    return logs.err;
}

void
dump_plan_begin(
    struct dump_plan *plan, struct logger *logger, const struct clock *clock)
{
    progress_begin(&plan->progress, logger, clock_or_system(clock),
        "for a dump", "records and changes", plan->all);
}

void
dump_plan_next(struct dump_plan *plan)
{
    plan->base += plan->size;
    ASSERT(plan->next <= plan->n && plan->base <= plan->all);
    plan->size = plan->next < plan->n ? plan->part[plan->next++].bytes : 0;
}

/* What is told never goes back, and never passes the part under way. */
static void
reach(struct dump_plan *plan, uint64_t bytes, uint64_t units)
{
    uint64_t at = plan->base + (bytes < plan->size ? bytes : plan->size);
    uint64_t more = at > plan->done ? at - plan->done : 0;
    plan->done += more;
    ASSERT(plan->done <= plan->all);
    progress_add(&plan->progress, more, units);
}

void
dump_plan_reach(
    struct dump_plan *plan, uint64_t at, uint64_t of, uint64_t units)
{
    double part = at < of ? (double)at / (double)of : 1;
    reach(plan, (uint64_t)(part * (double)plan->size), units);
}

void
dump_plan_reach_log(
    struct dump_plan *plan, uint64_t number, uint64_t at, uint64_t units)
{
    while (plan->next < plan->n && plan->part[plan->next].log <= number) {
        dump_plan_next(plan);
    }
    reach(plan, at, units);
}

void
dump_plan_end(struct dump_plan *plan, bool is_whole)
{
    while (is_whole && plan->next < plan->n) {
        dump_plan_next(plan);
    }
    if (is_whole) {
        reach(plan, plan->size, 0);
        ASSERT(plan->done == plan->all);
    }
    progress_end(&plan->progress);
}

void
dump_plan_fini(struct dump_plan *plan)
{
    free(plan->part);
    *plan = (struct dump_plan){0};
}
