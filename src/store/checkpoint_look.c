/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether the files that a start would need still have their names.
 *
 * Somebody may remove some of them under a running server: a clean-up, a
 * restore that went to the wrong directory. What was in them is in memory, so
 * a checkpoint makes up for it: it replaces MANIFEST, begins a new log file
 * and lets all older ones go, and writes all images again that were in a
 * checkpoint file which is gone, since their tables count as changed.
 *
 * What is in segments is nowhere else. The server goes on reading one that is
 * gone as long as it has it open, so nothing is wrong with its answers and
 * changes are taken; but no start will do without it. So the operator is told
 * at once, and again every few minutes, to put the file back, which is easy: it
 * never changes, so any copy of it will do. No pass is begun for it, and a stop
 * says what it leaves. Where the range is merged meanwhile, the new segment
 * makes up for it.
 *
 * The checkpointer looks between its passes, when nothing but the log's thread
 * and whoever seals makes names, and none but itself removes any that the
 * manifest has: so what is expected is asked
 * for first, the list is read then, and nothing can be missed wrongly. */
#include "store/checkpoint_priv.h"

#include "base/clock.h"
#include "cold/segment_head.h"
#include "engine/engine_copy.h"
#include "wal/names.h"
#include "wal/wal_refuse.h"

#include <stdlib.h>
#include <string.h>

/* Numbers of files. */
struct numbers {
    uint64_t *number; /* owned; n of capacity; sorted once all are there */
    size_t n, capacity;
};

struct found {
    struct numbers log, checkpoint, segment;
    bool has_manifest;
    bool is_short; /* memory was out */
};

static void
add(struct found *found, struct numbers *numbers, uint64_t number)
{
    if (numbers->n == numbers->capacity) {
        size_t n = numbers->capacity == 0 ? 16 : 2 * numbers->capacity;
        uint64_t *more = realloc(numbers->number, n * sizeof *more);
        if (more == NULL) {
            found->is_short = true;
            return;
        }
        numbers->number = more;
        numbers->capacity = n;
    }
    numbers->number[numbers->n++] = number;
}

static void
note_name(void *context, const char *name)
{
    struct found *found = context;
    enum names_kind kind;
    uint64_t number;
    bool is_new;
    if (strcmp(name, MANIFEST_NAME) == 0) {
        found->has_manifest = true;
    } else if (segment_name_parse(name, &number, &is_new)) {
        if (!is_new) {
            add(found, &found->segment, number);
        }
    } else if (names_parse(name, &kind, &number)) {
        if (kind == NAMES_LOG) {
            add(found, &found->log, number);
        } else if (kind == NAMES_CHECKPOINT) {
            add(found, &found->checkpoint, number);
        }
    }
}

static int
by_number(const void *a, const void *b)
{
    const uint64_t *left = a, *right = b;
    return *left < *right ? -1 : *left > *right;
}

static void
sort(struct numbers *numbers)
{
    if (numbers->n > 0) {
        qsort(numbers->number, numbers->n, sizeof *numbers->number, by_number);
    }
}

static bool
has(const struct numbers *numbers, uint64_t number)
{
    return numbers->n > 0 &&
        bsearch(&number, numbers->number, numbers->n, sizeof number,
            by_number) != NULL;
}

enum {
    SAID_MAX = 8,      /* names in one look */
    SAY_AGAIN_S = 300, /* segments that are still missing */
};

#define NS_PER_S UINT64_C(1000000000)

/* One look. */
struct look {
    struct checkpointer *owner;
    struct found found;
    uint64_t last; /* number of the checkpoint file found missing last */
    uint64_t n_missing;
    uint64_t n_lost; /* segments */
    bool is_to_say;  /* of these */
};

/* Says so, unless the look before had to. */
static void
missing(struct look *look, const char *name)
{
    look->n_missing++;
    if (look->owner->n_missing == 0 && look->n_missing <= SAID_MAX) {
        log_line(look->owner->durable->config.logger, LOG_ERROR,
            "%s was removed from the data directory; a checkpoint makes up "
            "for it, until then a start would be refused: leave the server "
            "running, and the data directory alone",
            name);
    }
}

/* Tables whose image is gone count as changed. */
static void
look_for_image(void *context, const struct images_entry *entry)
{
    struct look *look = context;
    char name[NAMES_BYTES];
    if (has(&look->found.checkpoint, entry->file)) {
        return;
    }
    engine_mark(look->owner->durable->engine, entry->counter, entry->shard,
        entry->first_row, entry->last_row);
    if (entry->file != look->last) {
        look->last = entry->file;
        names_make(name, NAMES_CHECKPOINT, entry->file);
        missing(look, name);
    }
}

static void
lost(struct look *look, uint64_t number)
{
    char name[SEGMENT_NAME_BYTES];
    look->n_lost++;
    if (look->is_to_say && look->n_lost <= SAID_MAX) {
        segment_name(name, number, false);
        log_line(look->owner->durable->config.logger, LOG_ERROR,
            "%s was removed from the data directory, and nothing else has what "
            "is in it: the server still reads it, but no start will be able "
            "to. Leave the server running, and put the file back from a "
            "backup that has it (a segment never changes)",
            name);
    }
}

/* Segments that a start would need. */
static void
look_for_segments(struct look *look)
{
    struct checkpointer *owner = look->owner;
    const struct segments *segments = &owner->durable->manifest.segments;
    uint64_t now_ns = checkpointer_now_ns(owner);
    uint64_t last = 0;
    look->is_to_say = now_ns >= owner->say_lost_ns;
    for (size_t i = 0; i < segments->n; i++) {
        uint64_t number = segments->segment[i].number;
        if (number != last && !has(&look->found.segment, number)) {
            lost(look, number);
        }
        last = number;
    }
    if (look->n_lost > owner->n_lost) {
        durable_count(&owner->durable->stats.missing_files,
            look->n_lost - owner->n_lost);
    }
    if (look->n_lost == 0) {
        owner->say_lost_ns = 0;
    } else if (look->is_to_say) {
        owner->say_lost_ns = now_ns + SAY_AGAIN_S * NS_PER_S;
    }
    if (look->n_lost == 0 && owner->n_lost > 0) {
        log_line(owner->durable->config.logger, LOG_WARNING,
            "all segments are there again");
    }
    owner->n_lost = look->n_lost;
}

static void
look_for_all(struct look *look, uint64_t first_log, uint64_t last_log)
{
    char name[NAMES_BYTES];
    sort(&look->found.log);
    sort(&look->found.checkpoint);
    sort(&look->found.segment);
    look_for_segments(look);
    if (!look->found.has_manifest) {
        look->owner->is_in_doubt = true;
        missing(look, MANIFEST_NAME);
    }
    for (uint64_t number = first_log; number <= last_log; number++) {
        if (!has(&look->found.log, number)) {
            names_make(name, NAMES_LOG, number);
            missing(look, name);
        }
    }
    images_each(&look->owner->durable->manifest.images, look_for_image, look);
}

bool
checkpoint__look(struct checkpointer *owner)
{
    struct durable *durable = owner->durable;
    struct look look = {.owner = owner};
    struct wal_stats stats;
    wal_stats(durable->wal, &stats);
    /* a log that cannot be written may have no file yet */
    if (wal_write_fault(durable->wal) != 0) {
        return owner->n_missing > 0;
    }
    int error =
        durable->disk->calls->list(durable->disk, note_name, &look.found);
    bool is_known = error == 0 && !look.found.is_short;
    if (is_known) {
        look_for_all(&look, durable->manifest.log_number, stats.file);
    }
    free(look.found.log.number);
    free(look.found.checkpoint.number);
    free(look.found.segment.number);
    if (!is_known) {
        return owner->n_missing > 0;
    }
    if (look.n_missing > owner->n_missing) {
        durable_count(
            &durable->stats.missing_files, look.n_missing - owner->n_missing);
    }
    owner->n_missing = look.n_missing;
    return look.n_missing > 0;
}
