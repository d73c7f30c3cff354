/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OFFLINE_SALVAGE_PRIV_H
#define OFFLINE_SALVAGE_PRIV_H

#include "base/flip.h"
#include "base/numbers.h"
#include "durable/recover.h"
#include "offline/salvage.h"
#include "wal/names_old.h"

/* What the parts of a salvage share. Each part has two halves: one looks,
 * without a change to anything, and one mends what the first has found. */

struct salvage {
    const struct salvage_config *config;
    struct disk *disk; /* on which all files have today's names */
    struct names_old_found names;
    struct logger *logger;
    struct buf *report;
    struct flip_budget budget;
    uint64_t history;         /* of new files */
    struct manifest manifest; /* as it was, then as it will be */
    uint64_t need_bytes;      /* of new files, at most */
    bool is_lossy;
    bool is_manifest_bad, is_log_bad;
    bool is_mixed;              /* an older tallyd's, with newer files */
    bool is_made_anew;          /* the manifest: ids have other shards */
    struct images_entry *image; /* owned: n_images damaged ones */
    size_t n_images, images_capacity;
    struct numbers segment; /* the numbers of damaged ones */
    struct numbers log;     /* the numbers of all log files, ascending */
    /* the largest numbers that files have, up to NAMES_NUMBER_MAX, or that the
     * manifest names */
    uint64_t last_log, last_checkpoint, last_segment;
    uint64_t end_log;      /* the last file of a new log; 0: there is none */
    struct replay_end end; /* of the log, where that is sound */
    int error;             /* errno value of what the disk refused, or 0 */
};

/* Appends a line to the report. */
void salvage__say(struct salvage *salvage, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The counter with that serial in the manifest, or NULL. */
const struct schema_counter *salvage__counter(
    const struct salvage *salvage, uint32_t serial);

/* True of damage that is worth mending: else err ends the salvage. */
bool salvage__is_damage(int err);

int salvage__look_at_images(struct salvage *salvage);
int salvage__mend_images(struct salvage *salvage);
int salvage__look_at_segments(struct salvage *salvage);
int salvage__mend_segments(struct salvage *salvage);
int salvage__look_at_log(struct salvage *salvage);
int salvage__mend_log(struct salvage *salvage);

#endif
