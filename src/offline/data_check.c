/* SPDX-License-Identifier: BSD-3-Clause */
/* --check reads everything that a start would read, and all blocks of
 * segments, which a start would not; it changes nothing. Whoever finds damage
 * logs it with file and offset. Without a sound manifest nothing else can be
 * read. A damaged image or segment does not stop the check; the log ends at
 * its first damage, since what follows has no meaning without it. */
#include "offline/data_check.h"

#include "base/err.h"
#include "cold/segment_scan.h"
#include "durable/recover.h"
#include "durable/snapshot_exchange.h"
#include "offline/data_names.h"
#include "offline/member_check.h"
#include "offline/reading.h"
#include "wal/names_old.h"
#include "wal/replica_file.h"

#include <inttypes.h>
#include <stdlib.h>

struct check {
    struct disk *disk; /* on which all files have today's names */
    struct names_old_found names;
    struct logger *logger;
    struct manifest manifest;
    struct history terms;        /* of the manifest and the log so far */
    struct moved_list handovers; /* likewise */
    struct recover_schema recover;
    struct recover_reader reader;
    struct engine *engine;     /* knows where ids are; NULL: no counter has had
                             * members */
    struct member_ids members; /* nothing is in it without the engine */
    struct data_names named;   /* nothing is in it where an image is damaged */
    uint64_t image_lines, rolled;
    uint64_t records, image_bytes;
    uint64_t segments, segment_blocks, segment_records, segment_bytes;
    uint64_t changes, edits, numbers;
    struct replay_end end;
    int err;
};

static void
check_image(void *context, const struct images_entry *entry)
{
    struct check *check = context;
    struct image image;
    int err = recover_read(&check->reader, entry, &image);
    if (err != 0) {
        check->err = check->err == 0 ? err : check->err;
        return;
    }
    const struct schema_counter *counter =
        schema_counter_at(check->recover.schema, entry->counter);
    if (check->engine != NULL && counter != NULL &&
        entry->shard < check->manifest.shards &&
        counter->serial == image.counter_serial) {
        err = member_ids_take_image(
            &check->members, check->recover.schema, counter, entry, &image);
        check->err = check->err == 0 ? err : check->err;
    }
    check->image_bytes += entry->len;
    if (manifest_is_of_names(&check->manifest, entry)) {
        return;
    }
    if (manifest_is_of_tables(&check->manifest, entry)) {
        check->image_lines += image.n; /* of tables of members=about */
        return;
    }
    for (uint32_t i = 0; i < image.n; i++) {
        check->records += image.row[i] >= entry->first_row &&
            image.row[i] <= entry->last_row;
    }
}

/* Reads all of a segment, and where it is of records with members once more. */
static int
check_segment(void *context, struct segment *segment,
    const struct manifest_segment *const *part, size_t n)
{
    struct check *check = context;
    const struct segment_head *head = segment_head(segment);
    int err = segment_check(segment, NULL);
    (void)part;
    (void)n;
    if (err == 0) {
        check->segments++;
        check->segment_blocks += head->n_blocks;
        check->segment_records += head->records;
        check->segment_bytes += segment_file_bytes(head);
    }
    if (err == 0 && check->engine != NULL) {
        err = member_ids_take_segment(
            &check->members, check->recover.schema, segment);
    }
    segment_close(&segment);
    return err;
}

/* From the first column of members on, what is read is noted. */
static int
look_for_members(struct check *check)
{
    if (check->engine != NULL || !member_ids_has(check->recover.schema)) {
        return 0;
    }
    const struct engine_config config = {.shards = check->manifest.shards,
        .seed = check->manifest.seed,
        .hot_bytes = ENGINE_HOT_BYTES_MIN};
    int err = engine_create(&config, &check->engine);
    check->members = (struct member_ids){.engine = check->engine,
        .manifest = &check->manifest,
        .with_counts = true};
    return err;
}

/* What the log says of cells. */
static int
check_cells(struct check *check, const struct entry_cells *cells, uint64_t seq)
{
    check->changes += cells->serial[0] != ENTRY_MARK_SERIAL;
    return check->engine == NULL
        ? 0
        : member_ids_take_cells(&check->members, &check->recover, cells, seq);
}

/* An edit of the schema, or something about a producer. */
static int
check_edit(struct check *check, const struct entry *entry, uint64_t seq)
{
    check->edits++;
    int err = seq <= check->manifest.schema_seq ||
            entry->kind == ENTRY_PRODUCER ||
            entry->kind == ENTRY_PRODUCER_JOINED ||
            entry->kind == ENTRY_PRODUCER_DROPPED
        ? 0
        : recover_schema_apply(&check->recover, entry, NULL);
    if (err != 0) {
        log_line(check->logger, LOG_ERROR,
            "log batch %" PRIu64 ": an edit that does not fit the "
            "schema: %s",
            seq, err_text(err));
        return err;
    }
    return look_for_members(check);
}

static int
check_number(struct check *check, const struct entry *entry, uint64_t seq)
{
    check->numbers++;
    return recover_check_shard(&check->manifest, entry, seq, check->logger);
}

/* is_first: the entry is the first of its batch. */
static int
check_entry(struct check *check, const struct entry *entry, uint64_t seq,
    bool is_first)
{
    switch (entry->kind) {
    case ENTRY_CELLS:
        return check_cells(check, &entry->cells, seq);
    case ENTRY_NUMBER:
        return check_number(check, entry, seq);
    case ENTRY_TERM:
        return recover_add_term(
            &check->terms, &entry->term, seq, is_first, check->logger);
    case ENTRY_ABOUT:
        check->changes += entry->about.n;
        return 0;
    case ENTRY_ABOUT_ROLLED:
        check->rolled++;
        return 0;
    case ENTRY_NAME:
        check->changes++;
        return durable_naming_replay(&check->named.naming, &entry->named, seq);
    case ENTRY_MOVED:
        check->edits++;
        return recover_add_moved(&check->handovers, &entry->moved, seq,
            &check->manifest, check->logger);
    default:
        return check_edit(check, entry, seq);
    }
}

static int
check_batch(void *context, uint64_t seq, const uint8_t *payload, size_t len)
{
    struct check *check = context;
    struct entry_reader reader = {.at = payload, .end = payload + len};
    struct entry entry;
    while (entry_has_next(&reader)) {
        const uint8_t *at = reader.at;
        if (!entry_next(&reader, &entry)) {
            log_line(check->logger, LOG_ERROR,
                "log batch %" PRIu64 ": an entry of an unknown kind, written "
                "by a newer tallyd; start that one",
                seq);
            return ERR_NEWER_FORMAT;
        }
        int err = check_entry(check, &entry, seq, at == payload);
        if (err != 0) {
            return err;
        }
    }
    return 0;
}

static int
check_schema(struct check *check)
{
    struct schema *schema = schema_create();
    int err = schema == NULL
        ? ERR_NO_MEMORY
        : recover_manifest_schema(&check->manifest, &schema);
    if (err == 0) {
        err = recover_schema_init(&check->recover, &schema);
    }
    if (err == 0) {
        err = look_for_members(check);
    }
    if (err != 0) {
        log_line(check->logger, LOG_ERROR, "%s: counters: %s", MANIFEST_NAME,
            err_text(err));
    }
    schema_destroy(&schema);
    return err;
}

/* The copy, which no start reads: so it is no damage, but is told. */
static void
look_at_copy(const struct check *check)
{
    struct manifest copy;
    manifest_init(&copy);
    if (manifest_read_copy(check->disk, &copy) == ERR_CORRUPT) {
        log_line(check->logger, LOG_WARNING,
            "%s is damaged; nothing but --salvage reads it, and the next "
            "start writes it anew",
            MANIFEST_COPY);
    }
    manifest_fini(&copy);
}

/* What there is to know about copies that others have. */
static int
look_at_replica(const struct check *check)
{
    struct replica_file file;
    int err = replica_file_read(check->disk, &file);
    if (err == ERR_NOT_FOUND) {
        return 0;
    }
    if (err != 0) {
        log_line(check->logger, LOG_ERROR, "%s: %s", REPLICA_NAME,
            err_file_text(err));
    } else if (file.epoch != 0 && file.epoch != check->manifest.epoch) {
        log_line(check->logger, LOG_ERROR, "%s is of another directory",
            REPLICA_NAME);
        err = ERR_CORRUPT;
    }
    return err;
}

/* Members are compared where all else could be read. */
static int
check_members(struct check *check, struct buf *out)
{
    const struct member_check members = {.members = &check->members,
        .schema = check->recover.schema,
        .reader = &check->reader,
        .disk = check->disk,
        .logger = check->logger};
    if (check->engine == NULL || check->err != 0) {
        return 0;
    }
    int err = member_ids_know(&check->members, check->recover.schema);
    err = err == 0 ? member_ids_sort(&check->members) : err;
    return err == 0 ? member_check(&members, out, NULL) : err;
}

static void
say_figures(const struct check *check, struct buf *out)
{
    const struct replay_end *end = &check->end;
    unsigned n_counters = 0;
    for (unsigned slot = 0; slot < SCHEMA_COUNTERS_MAX; slot++) {
        const struct schema_counter *counter =
            schema_counter_at(check->recover.schema, slot);
        n_counters += counter != NULL && counter->members_of == 0;
    }
    buf_addf(out, "counters %u\n", n_counters);
    buf_addf(out, "producers %" PRIu32 "\n", check->manifest.producers.n);
    buf_addf(out, "handovers %" PRIu32 "\n", check->handovers.n);
    buf_addf(out, "images %zu\n", check->manifest.images.n);
    buf_addf(out, "image_records %" PRIu64 "\n", check->records);
    buf_addf(out, "image_lines %" PRIu64 "\n", check->image_lines);
    buf_addf(out, "names %" PRIu64 "\n", data_names_count(&check->named));
    buf_addf(out, "image_bytes %" PRIu64 "\n", check->image_bytes);
    buf_addf(out, "segments %" PRIu64 "\n", check->segments);
    buf_addf(out, "segment_blocks %" PRIu64 "\n", check->segment_blocks);
    buf_addf(out, "segment_records %" PRIu64 "\n", check->segment_records);
    buf_addf(out, "segment_bytes %" PRIu64 "\n", check->segment_bytes);
    buf_addf(out, "log_batches %" PRIu64 "\n", end->batches);
    buf_addf(out, "log_changes %" PRIu64 "\n", check->changes);
    buf_addf(out, "log_edits %" PRIu64 "\n", check->edits);
    buf_addf(out, "log_tables %" PRIu64 "\n", check->rolled);
    buf_addf(out, "log_numbers %" PRIu64 "\n", check->numbers);
    buf_addf(out, "log_torn_bytes %" PRIu64 "\n", end->torn_bytes);
    buf_addf(out, "log_left_out %" PRIu64 "\n", end->left_out);
}

static int
check_all(struct check *check, struct buf *out)
{
    struct replay_end *end = &check->end;
    struct replay replay = {.disk = check->disk,
        .logger = check->logger,
        .batch_fn = check_batch,
        .context = check};
    const struct recover_segments segments = {.manifest = &check->manifest,
        .disk = check->disk,
        .logger = check->logger,
        .file_fn = check_segment,
        .context = check};
    int error;
    int err = manifest_read(check->disk, &check->manifest, &error);
    if (err == ERR_NOT_FOUND) {
        log_line(check->logger, LOG_ERROR,
            "there is no %s: this is no data directory; give the right one "
            "with --data, restore it from a backup, or see --salvage",
            MANIFEST_NAME);
    } else if (err != 0) {
        recover_log_manifest_error(check->logger, err, error);
    }
    if (err == 0) {
        err = check_schema(check);
    }
    if (err != 0) {
        return err;
    }
    look_at_copy(check);
    check->err = recover_check_names(
        &check->manifest, check->names.today, check->logger);
    err = look_at_replica(check);
    check->err = check->err == 0 ? err : check->err;
    err = recover_each_segment(&segments); /* what images say is newer */
    check->err = check->err == 0 ? err : check->err;
    images_each(&check->manifest.images, check_image, check);
    if (check->err == 0) {
        check->err = data_names_begin(&check->named, &check->manifest,
            check->disk, check->logger, false);
    }
    check->terms = check->manifest.terms;
    check->handovers = check->manifest.handovers;
    replay.epoch = check->manifest.epoch;
    replay.histories = &check->manifest.histories;
    replay.number = check->manifest.log_number;
    err = replay_run(&replay, end);
    if (err == 0) {
        err = recover_check_end(&check->manifest, end, check->logger);
    }
    if (err == 0) {
        err = durable_naming_end_load(&check->named.naming);
    }
    say_figures(check, out);
    if (err == 0) {
        err = check_members(check, out);
    }
    return err != 0 ? err : check->err;
}

/* A torn end is no damage that is known of, but it is not nothing. */
static void
say_result(struct buf *out, int err, const struct replay_end *end)
{
    if (err != 0) {
        buf_add_text(out, err_file_text(err));
    } else if (end->torn_bytes == 0) {
        buf_add_text(out, "all is well");
    } else {
        recover_say_torn(end, out);
    }
    buf_add_text(out, "\n");
}

int
data_check_disk(struct disk *disk, struct logger *logger, struct buf *out)
{
    struct check check = {.logger = logger};
    int err = snapshot_exchange_refuse(disk, logger);
    if (err != 0) {
        return err;
    }
    int error = names_old_find(disk, &check.names);
    if (error != 0) {
        log_line(logger, LOG_ERROR, "the data directory cannot be read: %s",
            disk_say(disk, error));
        return ERR_DISK;
    }
    if (names_old_create(disk, &check.disk) != 0) {
        return ERR_NO_MEMORY;
    }
    manifest_init(&check.manifest);
    check.reader = (struct recover_reader){.disk = check.disk,
        .logger = logger,
        .images = &check.manifest.images};
    err = check_all(&check, out);
    say_result(out, err, &check.end);
    data_names_fini(&check.named);
    member_ids_fini(&check.members);
    engine_destroy(&check.engine);
    recover_schema_fini(&check.recover);
    recover_reader_fini(&check.reader);
    manifest_fini(&check.manifest);
    names_old_destroy(&check.disk);
    return err;
}

int
data_check(const struct data_dir *dir, struct logger *logger, struct buf *out)
{
    struct reading reading;
    struct disk *real, *disk;
    if (disk_real_create(dir->dir_fd, &real) != 0) {
        return ERR_NO_MEMORY;
    }
    int err = reading_begin(
        &reading, real, logger, &clock_system, "for a check", &disk);
    if (err == 0) {
        err = data_check_disk(disk, logger, out);
        reading_end(&reading, &disk);
    }
    disk_real_destroy(&real);
    return err;
}
