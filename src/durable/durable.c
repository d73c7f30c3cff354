/* SPDX-License-Identifier: BSD-3-Clause */
/* The data directory's life: it is opened, loaded, told of changes, closed.
 * recover.c loads, checkpoint.c makes checkpoints.
 *
 * The engine calls the sink under a shard's lock. What the records have become
 * is encoded on the stack and given to the log in one call, so that the log's
 * own lock is held for one copy, and a shard's changes are in the log in the
 * order in which they were made. */
#include "durable/durable.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/err.h"
#include "cold/segment_head.h"
#include "durable/durable_commit.h"
#include "durable/durable_names.h"
#include "durable/durable_naming.h"
#include "durable/durable_owner.h"
#include "durable/durable_position.h"
#include "durable/durable_replica.h"
#include "durable/producers.h"
#include "durable/recover.h"
#include "durable/snapshot_exchange.h"
#include "engine/engine_copy.h"
#include "wal/entry.h"
#include "wal/frame.h"
#include "wal/replica_file.h"
#include "wal/wal_refuse.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { WRITE_BYTES_MAX = ENTRY_CELLS_BYTES_MAX + ENTRY_NUMBER_BYTES_MAX };

_Static_assert(ENGINE_WRITES_MAX *WRITE_BYTES_MAX <= FRAME_PAYLOAD_MAX / 2,
    "what the engine tells at once is one append");

_Static_assert(
    (int)ENTRY_MEMBERS_HEAD_BYTES_MAX + (int)ENTRY_MEMBER_BYTES_MAX <=
        2 * (int)ENTRY_CELLS_BYTES_MAX,
    "an entry of members is no longer than two of cells for each change");
/* Of one cell each, which is usual where the log has no whole records. */
enum {
    ONE_CELLS_BYTES =
        ENGINE_WRITES_MAX * (ENTRY_HEAD_BYTES_MAX + ENTRY_CELL_BYTES_MAX)
};

#define NS_PER_MS UINT64_C(1000000)

enum { BALLAST_BYTES = DURABLE_BALLAST_BYTES, BALLAST_BYTES_MIN = 64 << 10 };

/* True where write and the one behind it, which is there, make one change of a
 * member. */
static inline bool
is_of_member(const struct engine_write *write)
{
    return write[1].is_pair && write[1].n == 1 && write[1].producer == 0 &&
        write->n > 0;
}

/* True where a change of a member has the form of another one. */
static inline bool
is_alike(const struct engine_write *a, const struct engine_write *b)
{
    bool is_same = a->n == b->n && a[1].serial[0] == b[1].serial[0] &&
        a[1].value[0] == b[1].value[0];
    for (unsigned i = 0; i < a->n && is_same; i++) {
        is_same = a->serial[i] == b->serial[i];
    }
    return is_same;
}

/* Changes of members, from the first of n writes on, as long as they have one
 * form: writes an entry of them to out and returns its length. *n_taken: the
 * writes that are in it. */
static size_t
put_members(
    uint8_t *out, const struct engine_write *write, size_t n, size_t *n_taken)
{
    uint64_t pair_ids = write[1].id;
    unsigned n_changes = 1;
    ASSERT(n >= 2 && is_of_member(write));
    while (n_changes < ENTRY_MEMBERS_MAX && 2 * n_changes + 2 <= n) {
        const struct engine_write *next = &write[2 * n_changes];
        if (!is_of_member(next) || next->producer != 0 ||
            !is_alike(write, next)) {
            break;
        }
        pair_ids |= next[1].id;
        n_changes++;
    }
    const struct entry_members members = {.n_changes = n_changes,
        .n = write->n,
        .pair_bytes = entry_members_bytes(pair_ids),
        .pair_serial = write[1].serial[0],
        .pair_value = write[1].value[0]};
    size_t len = entry_put_members(out, &members, write->serial);
    const uint64_t *id_before = NULL;
    *n_taken = 2 * (size_t)n_changes;
    for (size_t i = 0; i < *n_taken; i += 2) {
        len += entry_put_member(out + len, &members, write[i].id,
            write[i].value, write[i + 1].id, id_before);
        id_before = &write[i].id;
    }
    return len;
}

/* Writes an entry of what the first of n writes, and maybe some behind it, have
 * become to out, and returns its length. *n_taken: how many are in it.
 * *before: the record that the same append has before it, NULL for none, and
 * afterwards its last one. Records are short only where they are whole: others
 * would win little, and older programs could not read the log. In place: for
 * each record of a primary's log, which are whole. */
static inline __attribute__((always_inline)) size_t
put_entry(const struct durable *durable, uint8_t *out,
    const struct engine_write *write, size_t n,
    const struct engine_write **before, size_t *n_taken)
{
    const struct engine_write *last = *before;
    if (__builtin_expect(n >= 2 && is_of_member(write), 0)) {
        size_t len = put_members(out, write, n, n_taken);
        *before = &write[*n_taken - 2];
        return len;
    }
    *n_taken = 1;
    if (write->n == 0) { /* of a number that was done, and changed nothing */
        return 0;
    }
    *before = write;
    if (durable->config.has_whole_records) {
        return entry_put_record(out, write->id, write->n, write->serial,
            write->value,
            last == NULL
                ? NULL
                : &(struct entry_before){last->id, last->n, last->serial});
    }
    return entry_put_columns(out, write->id, write->n, write->serial,
        write->value, last == NULL ? NULL : &last->id);
}

/* Records of several cells, and members. Its frame is large, and each page of
 * it is touched. */
static __attribute__((noinline)) uint64_t
log_records(
    struct durable *durable, const struct engine_write *write, size_t n)
{
    uint8_t entries[ENGINE_WRITES_MAX * ENTRY_CELLS_BYTES_MAX];
    struct wal_row row[ENGINE_WRITES_MAX];
    const struct engine_write *before = NULL;
    size_t len = 0;
    ASSERT(n <= ENGINE_WRITES_MAX);
    for (size_t i = 0; i < n;) {
        size_t n_taken, at = len;
        len += put_entry(
            durable, entries + len, &write[i], n - i, &before, &n_taken);
        for (size_t end = i + n_taken; i < end; i++) {
            row[i] =
                (struct wal_row){write[i].id, (uint32_t)at, write[i].counter};
        }
    }
    ASSERT(len <= sizeof entries);
    return wal_append_rows(durable->wal, entries, len, row, n);
}

/* Writes, some of them numbered: a number and what it changed are one append,
 * and with that in one batch. No later entry takes the place of one of them. */
static __attribute__((noinline)) uint64_t
log_numbered(
    struct durable *durable, const struct engine_write *write, size_t n)
{
    uint8_t entries[ENGINE_WRITES_MAX * WRITE_BYTES_MAX];
    const struct engine_write *before = NULL;
    size_t len = 0;
    for (size_t i = 0, n_taken; i < n; i += n_taken) {
        if (write[i].producer != 0) {
            len += entry_put_number(entries + len, write[i].producer,
                write[i].shard, write[i].number);
        }
        len += put_entry(
            durable, entries + len, &write[i], n - i, &before, &n_taken);
    }
    ASSERT(len <= sizeof entries);
    return wal_append(durable->wal, entries, len);
}

/* What is not one cell each of records that changed alone. */
static __attribute__((noinline)) uint64_t
log_others(struct durable *durable, const struct engine_write *write, size_t n)
{
    uint32_t numbered = 0;
    if (n == 0) {
        return durable_touched(durable);
    }
    for (size_t i = 0; i < n; i++) {
        numbered |= write[i].producer;
    }
    return numbered != 0 ? log_numbered(durable, write, n)
                         : log_records(durable, write, n);
}

static uint64_t
log_writes(
    struct engine_sink *sink, const struct engine_write *write, size_t n)
{
    struct durable *durable = (struct durable *)sink;
    uint8_t entries[ONE_CELLS_BYTES];
    struct wal_row row[ENGINE_WRITES_MAX];
    const uint64_t *id_before = NULL;
    size_t len = 0;
    ASSERT(durable->magic == DURABLE_MAGIC);
    ASSERT(n <= ENGINE_WRITES_MAX);
    if (__builtin_expect(durable_is_replica(durable), 0)) {
        return durable_touched(durable); /* the log has had it before */
    }
    for (size_t i = 0; i < n; i++) {
        const struct engine_write *it = &write[i];
        if (it->n != 1 || it->producer != 0 || (i + 1 < n && it[1].is_pair)) {
            len = 0;
            break;
        }
        row[i] = (struct wal_row){it->id, (uint32_t)len, it->counter};
        len += entry_put_cell(
            entries + len, it->id, it->serial[0], it->value[0], id_before);
        id_before = &it->id;
    }
    return len == 0 ? log_others(durable, write, n)
                    : wal_append_rows(durable->wal, entries, len, row, n);
}

uint64_t
durable_log_counter(struct durable *durable,
    const struct schema_counter *counter, uint32_t last_serial)
{
    uint8_t entry[ENTRY_COUNTER_BYTES_MAX];
    mutex_assert_held(&durable->edit_lock);
    ASSERT(!durable_is_replica(durable));
    size_t len = entry_put_counter(entry, counter, last_serial);
    return wal_append(durable->wal, entry, len);
}

uint64_t
durable_log_dropped(
    struct durable *durable, uint32_t counter_serial, uint32_t last_serial)
{
    uint8_t entry[ENTRY_DROPPED_BYTES_MAX];
    mutex_assert_held(&durable->edit_lock);
    ASSERT(!durable_is_replica(durable));
    size_t len = entry_put_dropped(entry, counter_serial, last_serial);
    return wal_append(durable->wal, entry, len);
}

uint64_t
durable_log_moved(struct durable *durable, const struct moved_one *moved)
{
    uint8_t entry[ENTRY_MOVED_BYTES_MAX];
    mutex_assert_held(&durable->edit_lock);
    ASSERT(!durable_is_replica(durable));
    bool has_room = moved_list_put(&durable->handovers, moved);
    ASSERT(has_room);
    engine_settle_all(durable->engine);
    size_t len = entry_put_moved(entry, moved);
    return wal_append(durable->wal, entry, len);
}

uint64_t
durable__log_producer(
    struct durable *durable, uint32_t serial, const struct producer_name *name)
{
    uint8_t entry[ENTRY_PRODUCER_BYTES_MAX];
    ASSERT(!durable_is_replica(durable));
    size_t len = entry_put_producer(entry, serial, name);
    return wal_append(durable->wal, entry, len);
}

uint64_t
durable__log_producer_joined(
    struct durable *durable, uint32_t serial, const struct seen_window *seen)
{
    uint8_t entry[ENTRY_PRODUCER_JOINED_BYTES_MAX];
    ASSERT(!durable_is_replica(durable));
    size_t len = entry_put_producer_joined(entry, serial, seen);
    return wal_append(durable->wal, entry, len);
}

uint64_t
durable__log_producer_dropped(struct durable *durable, uint32_t serial)
{
    uint8_t entry[ENTRY_PRODUCER_DROPPED_BYTES_MAX];
    ASSERT(!durable_is_replica(durable));
    size_t len = entry_put_producer_dropped(entry, serial);
    return wal_append(durable->wal, entry, len);
}

static void
note_remains(void *context, const char *name)
{
    bool *any = context;
    *any |= data_dir__is_remains(name);
}

/* Every number reads as its default from here on: to be seen where a disk is
 * not mounted, or the directory is another one than was meant. A replica is
 * sent what it has not. */
static void
say_new(const struct data_config *config)
{
    log_line(config->logger, LOG_WARNING,
        "the data directory%s%s is new and has no counters%s; where there "
        "should be some, stop the server, see that the right disk is mounted "
        "and --data names the right directory, and see --new-data",
        config->path == NULL ? "" : " ",
        config->path == NULL ? "" : config->path,
        config->is_replicated ? ": a replica takes all from its primary" : "");
}

/* The first manifest of a directory without one. */
static int
begin_directory(struct durable *durable, unsigned shards, uint64_t seed)
{
    struct manifest *manifest = &durable->manifest;
    struct disk *disk = durable->disk;
    bool any = false;
    ASSERT(manifest->writes == 0 && manifest->images.n == 0);
    ASSERT(shards > 0 && (shards & (shards - 1)) == 0);
    int error = disk->calls->list(disk, note_remains, &any);
    if (error != 0) {
        log_line(durable->config.logger, LOG_ERROR,
            "the data directory cannot be read: %s", disk_text(error));
        return ERR_DISK;
    }
    if (any) {
        log_line(durable->config.logger, LOG_ERROR,
            "the data directory%s%s has files of a server but no %s: restore "
            "it from a backup, see --salvage, or move the files away to begin "
            "with no counters",
            durable->config.path == NULL ? "" : " ",
            durable->config.path == NULL ? "" : durable->config.path,
            MANIFEST_NAME);
        return ERR_CORRUPT;
    }
    int err = histories_draw(&manifest->epoch);
    if (err == 0) {
        err = histories_add(&manifest->histories, 1, durable->history);
    }
    if (err != 0) {
        return err;
    }
    durable->epoch = manifest->epoch;
    manifest->seed = seed;
    manifest->shards = shards;
    manifest->log_number = 1;
    manifest->next_file = 1; /* there is no log yet */
    err = durable__put_manifest(durable, manifest, &error);
    if (err != 0) {
        log_line(durable->config.logger, LOG_ERROR, "cannot write %s: %s",
            MANIFEST_NAME,
            error != 0 ? disk_say(durable->disk, error) : err_file_text(err));
        return err;
    }
    durable->is_history_named = true;
    durable->is_copied = durable__copy_manifest(durable, manifest) == 0;
    say_new(&durable->config);
    return 0;
}

static void
close_disk(struct durable *durable)
{
    durable_end_names(durable);
    if (durable->config.disk == NULL) {
        disk_real_destroy(&durable->disk);
    }
}

/* Reads the manifest, or makes the first one. */
static int
open_manifest(struct durable *durable, unsigned shards, uint64_t seed)
{
    struct disk *disk = durable->disk;
    /* first: what takes its place meanwhile is seen to be another one */
    int error =
        disk->calls->look(disk, MANIFEST_NAME, -1, &durable->manifest_file);
    if (error != 0) {
        durable->manifest_file.inode = 0;
    }
    int err = manifest_read(disk, &durable->manifest, &error);
    if (err == ERR_NOT_FOUND) {
        return begin_directory(durable, shards, seed);
    }
    if (err != 0) {
        recover_log_manifest_error(durable->config.logger, err, error);
        return err;
    }
    durable->is_old = durable->manifest.writes == 0;
    err = durable_check_names(durable);
    durable->epoch = durable->manifest.epoch;
    durable->read_writes = durable->manifest.writes;
    durable->writes = durable->read_writes;
    ASSERT(durable->epoch != 0);
    return err;
}

int
durable_open(struct durable *durable, const struct data_config *config,
    unsigned *shards, uint64_t *seed)
{
    *durable = (struct durable){.sink = {.write_fn = log_writes},
        .magic = DURABLE_MAGIC,
        .config = *config};
    durable->config.clock = clock_or_system(config->clock);
    durable->config.has_whole_records |= config->is_replicated;
    durable_commit__init(durable);
    manifest_init(&durable->manifest);
    durable->disk = config->disk;
    if (durable->disk == NULL &&
        disk_real_create(config->dir.dir_fd, &durable->disk) != 0) {
        return ERR_NO_MEMORY;
    }
    mutex_init(&durable->owner_lock);
    int err = histories_draw(&durable->history);
    if (err == 0) {
        err = durable_replica__begin(durable);
    }
    if (err == 0) {
        err = snapshot_exchange__finish(durable->disk, config->logger);
    }
    if (err == 0) {
        err = durable_look_at_names(durable);
    }
    if (err == 0) {
        err = open_manifest(durable, *shards, *seed);
    }
    if (err == 0) {
        err = durable_replica__cut(durable);
    }
    if (err != 0) {
        mutex_fini(&durable->owner_lock);
        manifest_fini(&durable->manifest);
        close_disk(durable);
        durable->magic = 0;
        return err;
    }
    *shards = durable->manifest.shards;
    *seed = durable->manifest.seed;
    durable->seed = *seed;
    mutex_init(&durable->edit_lock);
    mutex_init(&durable->manifest_lock);
    return 0;
}

/* The engine learns a schema's counters. A guard against strays (maxjump)
 * holds for clients only: what is loaded has passed it once. */
static int
define_all(struct engine *engine, const struct schema *schema, bool guard_only)
{
    for (unsigned slot = 0; slot < SCHEMA_COUNTERS_MAX; slot++) {
        const struct schema_counter *counter = schema_counter_at(schema, slot);
        if (counter == NULL || (guard_only && counter->max_jump == 0)) {
            continue;
        }
        struct schema_counter open = *counter;
        open.max_jump = guard_only ? counter->max_jump : 0;
        int err = engine_define(engine, &open);
        if (err != 0) {
            return err;
        }
    }
    return 0;
}

uint64_t
durable_next_segment(struct durable *durable)
{
    /* relaxed: a number for each, and nothing hangs on it */
    uint64_t number = atomic_fetch_add_explicit(
                          &durable->last_segment, 1, memory_order_relaxed) +
        1;
    ASSERT(number != 0); /* a file there may say 2^62, not more */
    return number;
}

void
durable_spare_segment(struct durable *durable, uint64_t number)
{
    /* relaxed: whoever spares a number was given it before */
    ASSERT(number <=
        atomic_load_explicit(&durable->last_segment, memory_order_relaxed));
    /* release: a file of that number is made afterwards, so whoever finds it
     * in the directory, and then looks here by acquire, sees that */
    atomic_store_explicit(
        &durable->spared_segment, number, memory_order_release);
}

/* Allocates it from the start on, where it has had some bytes before. An errno
 * value: why it is not whole. */
static int
fill_ballast(struct disk *disk, int fd, uint64_t had, bool takes_part)
{
    int whole = disk->calls->allocate(disk, fd, 0, BALLAST_BYTES);
    int error = whole;
    for (uint64_t bytes = BALLAST_BYTES / 2;
         error != 0 && takes_part && bytes > had && bytes >= BALLAST_BYTES_MIN;
         bytes /= 2) {
        error = disk->calls->allocate(disk, fd, 0, bytes);
    }
    if (error != 0) { /* some of it may have been allocated */
        (void)disk->calls->truncate(disk, fd, had);
    }
    return whole;
}

int
durable__keep_ballast(struct durable *durable, bool takes_part)
{
    struct disk *disk = durable->disk;
    uint64_t had = 0, has = 0;
    int fd;
    int error = disk->calls->open(disk, DURABLE_BALLAST, DISK_WRITE, &fd);
    if (error == ENOENT) {
        error = disk->calls->open(disk, DURABLE_BALLAST, DISK_CREATE, &fd);
    }
    if (error == 0) {
        error = disk->calls->size(disk, fd, &had);
        error = error == 0 ? fill_ballast(disk, fd, had, takes_part) : error;
        (void)disk->calls->size(disk, fd, &has);
        disk->calls->close(disk, fd);
        if (has == 0) {
            (void)disk->calls->unlink(disk, DURABLE_BALLAST);
        }
    }
    return error != 0 && disk_err(error) == ERR_DISK_FULL ? ERR_DISK_FULL : 0;
}

bool
durable__drop_ballast(struct durable *durable)
{
    struct disk *disk = durable->disk;
    return disk->calls->unlink(disk, DURABLE_BALLAST) == 0;
}

void
durable__refuse(struct durable *durable, bool is_refusing)
{
    if (is_refusing && !durable->is_refusing) {
        log_line(durable->config.logger, LOG_ERROR,
            "there is no room on the disk for a checkpoint and the ballast: "
            "counters are read-only until there is");
    }
    durable->is_refusing = is_refusing;
    wal_refuse(durable->wal, is_refusing ? ERR_DISK_FULL : 0);
}

/* Removes a file that neither the manifest nor the log knows. */
static void
remove_orphan(void *context, const char *name)
{
    struct durable *durable = context;
    const struct manifest *manifest = &durable->manifest;
    enum names_kind kind;
    uint64_t number;
    ASSERT(durable->magic == DURABLE_MAGIC);
    mutex_assert_held(&durable->manifest_lock);
    bool is_orphan = strcmp(name, MANIFEST_NAME ".new") == 0 ||
        strcmp(name, MANIFEST_COPY ".new") == 0 ||
        strcmp(name, REPLICA_NAME ".new") == 0;
    bool is_new;
    if (segment_name_parse(name, &number, &is_new)) {
        is_orphan = is_new || !segments_has_file(&manifest->segments, number);
    }
    if (names_parse(name, &kind, &number)) {
        is_orphan = kind == NAMES_LOG_NEW || kind == NAMES_CUT_NEW ||
            (kind == NAMES_LOG && number < manifest->log_number &&
                durable->config.archive == NULL) || /* it sees to them */
            (kind == NAMES_LOG && number > durable->log_end.number) ||
            (kind == NAMES_CHECKPOINT && !durable->names_orphans &&
                images_file_bytes(&manifest->images, number) == 0);
    }
    if (is_orphan) {
        log_line(durable->config.logger, LOG_INFO,
            "removing %s: nothing names it", name);
        (void)durable->disk->calls->unlink(durable->disk, name);
    }
}

/* Before a log file is made or gets its name. */
static int
may_begin_log(void *context)
{
    struct durable *durable = context;
    ASSERT(durable->magic == DURABLE_MAGIC);
    return durable_may_write(durable) == 0 ? 0 : DISK_TAKEN;
}

/* What is to be done before the log's first file; it calls this until it works.
 * Files go only then: the names are synced, those in the manifest too, and an
 * older copy of it, which may name them, has been replaced. */
static int
prepare_log(void *context)
{
    struct durable *durable = context;
    ASSERT(durable->magic == DURABLE_MAGIC);
    int error = may_begin_log(durable);
    if (error == 0) {
        error = log_end_keep(&durable->log_end);
    }
    mutex_lock(&durable->manifest_lock);
    if (error == 0) {
        error = durable__name_history(durable);
    }
    if (error == 0) {
        (void)durable->disk->calls->list(
            durable->disk, remove_orphan, durable);
    }
    mutex_unlock(&durable->manifest_lock);
    return error;
}

static void
name_log(struct durable *durable)
{
    mutex_assert_held(&durable->manifest_lock);
    struct manifest *manifest = &durable->manifest;
    if (manifest_names_log(manifest)) {
        if (!durable->is_copied) {
            (void)durable__copy_manifest(durable, manifest);
        }
        return;
    }
    uint64_t next_file = manifest->next_file;
    manifest->next_file = MANIFEST_NEXT_FILE_MIN;
    int error;
    int err = durable__put_manifest(durable, manifest, &error);
    if (err != 0) { /* tried again at the next start */
        manifest->next_file = next_file;
        log_line(durable->config.logger, LOG_WARNING,
            "cannot replace %s: %s; until a checkpoint or the next start a "
            "log file that gets lost may not be missed",
            MANIFEST_NAME,
            error != 0 ? disk_say(durable->disk, error) : err_file_text(err));
        return;
    }
    (void)durable__copy_manifest(durable, manifest);
}

void
durable__name_log(struct durable *durable)
{
    if (wal_write_fault(durable->wal) != 0) {
        return;
    }
    (void)wal_last(durable->wal); /* its lock: prepare_log is behind us */
    mutex_lock(&durable->manifest_lock);
    name_log(durable);
    mutex_unlock(&durable->manifest_lock);
}

/* Whether the log has no room, or none but what a process that has ended kept
 * for a checkpoint, which changes would take. */
static bool
is_full(struct durable *durable)
{
    int fault = wal_write_fault(durable->wal);
    return fault == ERR_DISK_FULL ||
        (fault == 0 && durable__keep_ballast(durable, true) != 0);
}

static int
open_log(struct durable *durable, const struct replay_end *end)
{
    const struct data_config *config = &durable->config;
    struct manifest *manifest = &durable->manifest;
    bool is_first = end->number == 0;
    bool keeps = durable_replica__keeps_numbers(durable, end);
    struct wal_config wal = {.disk = durable->disk,
        .logger = config->logger,
        .sync = config->sync,
        .interval_ms = config->interval_ms,
        .file_bytes = config->log_file_bytes,
        .unsynced_bytes_max = config->unsynced_bytes_max,
        .retry_ms = config->retry_ms,
        .idle_ms = config->idle_ms,
        .clock = config->clock,
        .prepare_fn = prepare_log,
        .may_fn = may_begin_log,
        .context = durable,
        .start = {.epoch = durable->history,
            .before_epoch = end->epoch,
            .first_number = manifest->log_number, /* prepare_log */
            .next_number = is_first ? manifest->log_number : end->number + 1,
            .next_seq = keeps ? end->next_seq : recover__next_seq(end),
            .is_replica = keeps,
            .terms = &durable->terms,
            .before_end = is_first ? 0 : end->end}};
    int err = recover_check_end(manifest, end, config->logger);
    if (err == 0 && keeps) {
        err = recover__check_seq(manifest, end->next_seq, config->logger);
    }
    if (err != 0) {
        return err;
    }
    ASSERT(is_first || end->number >= manifest->log_number);
    ASSERT(is_first || end->end >= FRAME_FILE_BYTES);
    err = histories_add(
        &manifest->histories, wal.start.next_number, durable->history);
    if (err == 0) {
        err = durable__check_owner(durable);
    }
    if (err == 0) {
        err = durable_carry_over(durable);
    }
    if (err != 0) {
        return err;
    }
    durable->log_end = (struct log_end){.disk = durable->disk,
        .epoch = end->epoch,
        .number = end->number,
        .end = end->end};
    err = wal_open(&wal, &durable->wal);
    if (err == 0) {
        ASSERT(wal_last(durable->wal) + 1 == wal.start.next_seq);
        durable__name_log(durable);
        err = durable_replica__end(durable);
    }
    if (err == 0 && is_full(durable)) {
        durable__refuse(durable, true); /* a checkpoint comes first */
    }
    return err;
}

int
durable_load(struct durable *durable, struct engine *engine, struct qsbr *qsbr,
    struct schema **schema)
{
    struct replay_end end = {0};
    uint64_t began_ns = clock_monotonic_ns();
    const struct durable_naming naming = durable__naming(durable);
    ASSERT(durable->magic == DURABLE_MAGIC);
    ASSERT(durable->wal == NULL && durable->engine == NULL);
    durable->engine = engine;
    durable->qsbr = qsbr;
    durable->terms = durable->manifest.terms;
    durable->handovers = durable->manifest.handovers;
    engine_begin_loading(engine);
    int err = define_all(engine, *schema, false);
    if (err == 0) {
        err =
            producers__load(durable->producers, &durable->manifest.producers);
    }
    if (err == 0) {
        err = recover__segments(durable);
    }
    durable_naming__begin(&naming);
    if (err == 0) {
        err = recover__images(durable, *schema);
    }
    uint64_t loaded_ns = clock_monotonic_ns();
    if (err == 0) {
        err = recover__log(durable, schema, &end);
    }
    durable_note(&durable->stats.replay_ms,
        (clock_monotonic_ns() - loaded_ns) / NS_PER_MS);
    engine_end_loading(engine);
    if (err == 0) {
        err = durable_naming_end_load(&naming);
    }
    if (err == 0) {
        err = open_log(durable, &end);
    }
    if (err == 0) {
        err = define_all(engine, *schema, true);
    }
    if (err == 0) {
        err = durable_naming__log(durable);
    }
    if (err != 0) {
        return err;
    }
    durable_note(&durable->stats.live_images, durable->manifest.images.n);
    durable_note(&durable->stats.live_segments, durable->manifest.segments.n);
    durable_note(
        &durable->stats.last_checkpoint_seq, durable->manifest.checkpoint_seq);
    durable_note(&durable->stats.last_checkpoint_time,
        durable->manifest.checkpoint_time);
    durable_note(&durable->stats.replayed_batches, end.batches);
    durable->loaded_seq = end.number == 0 ? 0 : end.next_seq - 1;
    durable_note(&durable->stats.load_ms,
        (clock_monotonic_ns() - began_ns) / NS_PER_MS);
    engine_set_sink(engine, &durable->sink);
    engine_set_whole(engine, durable->config.has_whole_records);
    return 0;
}

void
durable_cancel(struct durable *durable)
{
    /* relaxed: a wish, nothing hangs on it */
    atomic_store_explicit(&durable->is_cancelled, true, memory_order_relaxed);
}

bool
durable__is_cancelled(struct durable *durable)
{
    /* relaxed: see durable_cancel */
    return atomic_load_explicit(&durable->is_cancelled, memory_order_relaxed);
}

int
durable_close(struct durable *durable)
{
    int err = 0;
    ASSERT(durable->magic == DURABLE_MAGIC);
    if (durable->wal != NULL) {
        err = wal_close(&durable->wal);
        if (err != 0) {
            log_line(durable->config.logger, LOG_ERROR,
                "the log could not be synced at the stop: %s; changes since "
                "its last sync may be lost",
                err_text(err));
        } else {
            durable_replica__close(durable);
        }
    }
    durable_naming__close(durable);
    mutex_fini(&durable->manifest_lock);
    mutex_fini(&durable->edit_lock);
    mutex_fini(&durable->owner_lock);
    manifest_fini(&durable->manifest);
    close_disk(durable);
    data_dir_close(&durable->config.dir);
    durable->magic = 0;
    return err;
}
