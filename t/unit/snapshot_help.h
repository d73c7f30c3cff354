/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIT_SNAPSHOT_HELP_H
#define UNIT_SNAPSHOT_HELP_H

/* Snapshots of a rig's store, and copies of them on the disk of another rig. */

#include "offline/data_check.h"
#include "unit/durable_help.h"

#include "base/checksum.h"
#include "durable/snapshot.h"
#include "durable/snapshot_exchange.h"
#include "durable/snapshot_folder.h"
#include "durable/snapshot_put.h"

#define SOURCE "node-a"

/* A snapshot's bytes, so that it can be copied again and again. */
struct captured {
    struct buf manifest;         /* owned */
    struct snapshot_files files; /* owned */
    uint8_t **bytes;             /* owned; of each file */
    uint64_t *xxh3;              /* owned */
    uint64_t last_seq;
};

/* Asks for one and waits; its err. */
static inline int
snapshot_take(struct rig *rig, struct snapshot *snapshot)
{
    struct answer answer;
    answer_init(&answer);
    *snapshot = (struct snapshot){
        .call = call_of(&answer), .pin_bytes_max = UINT64_MAX, .err = -1};
    store_want_snapshot(rig->store, snapshot);
    answer_wait(&answer);
    answer_fini(&answer);
    return snapshot->err;
}

/* All of what a rig's store has now. */
static inline void
capture(struct rig *rig, struct captured *out)
{
    struct snapshot snapshot;
    ck_assert_int_eq(snapshot_take(rig, &snapshot), 0);
    size_t n = snapshot.files.n;
    *out = (struct captured){.bytes = calloc(n, sizeof *out->bytes),
        .xxh3 = calloc(n, sizeof *out->xxh3),
        .last_seq = snapshot.last_seq};
    ck_assert(out->bytes != NULL && out->xxh3 != NULL);
    buf_add(&out->manifest, snapshot.manifest.data, snapshot.manifest.len);
    out->files.file = calloc(n, sizeof *out->files.file);
    ck_assert(out->files.file != NULL && !out->manifest.failed);
    out->files.n = n;
    out->files.capacity = n;
    for (size_t i = 0; i < n; i++) {
        out->files.file[i] = snapshot.files.file[i];
        size_t len = (size_t)snapshot.files.file[i].bytes;
        out->bytes[i] = malloc(len);
        ck_assert_ptr_nonnull(out->bytes[i]);
        ck_assert_int_eq(
            snapshot_read(&snapshot, i, 0, out->bytes[i], len), 0);
        ck_assert_int_eq(snapshot_hash(&snapshot, i, &out->xxh3[i]), 0);
        ck_assert_uint_eq(out->xxh3[i], checksum64(out->bytes[i], len, 0));
    }
    snapshot_close(&snapshot);
}

static inline void
captured_fini(struct captured *captured)
{
    for (size_t i = 0; i < captured->files.n; i++) {
        free(captured->bytes[i]);
    }
    free(captured->bytes);
    free(captured->xxh3);
    buf_fini(&captured->manifest);
    snapshot_files_fini(&captured->files);
}

static inline int
begin_copy(struct snapshot_put *put, const struct captured *from)
{
    return snapshot_put_begin(
        put, SOURCE, from->manifest.data, from->manifest.len, &from->files);
}

/* Copies file number i, in pieces of some bytes. The first err. */
static inline int
copy_file(struct snapshot_put *put, const struct captured *from, size_t i,
    size_t piece)
{
    uint64_t end = from->files.file[i].bytes;
    int err = snapshot_put_file(put, i);
    for (uint64_t at = 0; err == 0 && at < end; at += piece) {
        size_t len = end - at < piece ? (size_t)(end - at) : piece;
        err = snapshot_put_write(put, at, from->bytes[i] + at, len);
    }
    return err == 0 ? snapshot_put_end(put, from->xxh3[i]) : err;
}

/* Copies what is not here. */
static inline int
copy_rest(struct snapshot_put *put, const struct captured *from, size_t piece)
{
    int err = 0;
    for (size_t i = 0; err == 0 && i < from->files.n; i++) {
        err = put->plan.here[i].is_whole ? 0 : copy_file(put, from, i, piece);
    }
    return err;
}

/* As --check reads it. */
static inline int
check_copy(void *context, struct disk *disk, struct logger *logger)
{
    struct buf out = {0};
    (void)context;
    int err = data_check_disk(disk, logger, &out);
    buf_fini(&out);
    return err;
}

/* A whole copy on that rig's disk, up to the order of the exchange. */
static inline int
copy_all(struct rig *to, const struct captured *from, size_t piece)
{
    struct snapshot_put put;
    int err = snapshot_put_open(&put, to->data.disk, &to->logger);
    if (err == 0) {
        err = begin_copy(&put, from);
        if (err == 0) {
            err = copy_rest(&put, from, piece);
        }
        if (err == 0) {
            err = snapshot_put_exchange(&put, check_copy, NULL);
        }
        snapshot_put_close(&put);
    }
    return err;
}

/* Steps of a history that are in batches up to seq. */
static inline size_t
steps_up_to(const struct answered *history, uint64_t seq)
{
    size_t n = history->n_steps;
    while (n > 0 &&
        (answered_seq(history, n - 1) == 0 ||
            answered_seq(history, n - 1) > seq)) {
        n--;
    }
    return n;
}

/* The open store of rig `to` has what `from` had when it was captured. */
static inline void
expect_copy(struct rig *to, struct rig *from, const struct captured *captured)
{
    struct answered own = to->history;
    to->history = from->history;
    rig_judge(to, steps_up_to(&from->history, captured->last_seq), false);
    if (rig_stat(to, "replayed_batches") > 0) {
        ck_assert_uint_eq(rig_stat(to, "replay_seq"), captured->last_seq);
    }
    from->history = to->history; /* what it has allocated */
    to->history = own;
}

static inline void
note_folder(void *context, const char *name)
{
    unsigned *n = context;
    *n += snapshot_folder__has(name);
}

/* Files of the folder on that rig's disk. */
static inline unsigned
folder_files(struct rig *rig)
{
    unsigned n = 0;
    struct disk *disk = rig->data.disk;
    ck_assert_int_eq(disk->calls->list(disk, note_folder, &n), 0);
    return n;
}

static inline bool
has_file(struct rig *rig, const char *name)
{
    struct disk_file is;
    struct disk *disk = rig->data.disk;
    return disk->calls->look(disk, name, -1, &is) == 0;
}

#endif
