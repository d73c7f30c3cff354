/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIT_SALVAGE_HELP_H
#define UNIT_SALVAGE_HELP_H

/* What the tests of offline/salvage share that have batches of a kind lost. */

#include "unit/files_help.h"

#include "base/buf.h"
#include "base/bytes.h"
#include "offline/salvage.h"
#include "wal/entry.h"
#include "wal/frame.h"

enum { SALVAGE_HOLE_BYTES = 8 };

/* Batches whose first entry is of that kind are lost. Returns how many. */
static inline unsigned
lose_batches(struct files *files, enum entry_kind kind)
{
    unsigned n = 0;
    for (size_t i = 0; i < files->n; i++) {
        struct file *file = &files->file[i];
        uint64_t at = FRAME_FILE_BYTES, used = used_bytes(file);
        while (is_log(file) && at + FRAME_BATCH_BYTES < used) {
            uint8_t *batch = file->bytes + at;
            if (batch[FRAME_BATCH_BYTES] == (uint8_t)kind) {
                for (unsigned k = 0; k < SALVAGE_HOLE_BYTES; k++) {
                    batch[FRAME_BATCH_BYTES - SALVAGE_HOLE_BYTES + k] ^= 0x55;
                }
                n++;
            }
            at += FRAME_BATCH_BYTES + bytes_get_u32(batch + 4);
        }
    }
    return n;
}

/* The process ends. */
static inline void
kill_it(struct rig *rig, struct files *files)
{
    fake_disk_die(rig->fake, 1);
    (void)rig_close(rig);
    fake_disk_revive(rig->fake);
    read_files(rig->data.disk, files);
}

/* A salvage of these files, then a start. */
static inline void
salvage(struct rig *rig, struct files *files, enum salvage_outcome wanted,
    const char *says)
{
    struct buf report = {0};
    enum salvage_outcome outcome;
    fake_disk_destroy(&rig->fake);
    rig->fake = disk_of(files);
    rig->data.disk = fake_disk_as_disk(rig->fake);
    free_files(files);
    const struct salvage_config config = {.disk = rig->data.disk,
        .logger = &rig->logger,
        .free_bytes = UINT64_MAX,
        .bits_budget = SALVAGE_BITS_BUDGET,
        .shards = rig->config.shards,
        .seed = 3};
    ck_assert_int_eq(salvage_run(&config, &report, &outcome), 0);
    buf_add(&report, "", 1);
    ck_assert_msg(outcome == wanted, "%d:\n%s", outcome, report.data);
    ck_assert_msg(strstr(report.data, says) != NULL, "%s", report.data);
    buf_fini(&report);
    ck_assert_int_eq(rig_open(rig), 0);
}

#endif
