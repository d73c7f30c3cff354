/* SPDX-License-Identifier: BSD-3-Clause */
/* Mends the log: where a start would refuse it, writes a new one of the sound
 * batches, with their numbers (offline/glean.h, offline/rewrite.h).
 *
 * Edits of the schema must fit each other, though one of them may be lost: a
 * counter whose place another one has that should be gone by then puts an end
 * to that one; an end of a counter that there is not is left out. No serial
 * number that was ever used is given out again, so that old changes stay
 * nobody's.
 *
 * A number that a producer has sent is of a shard. Where the manifest that said
 * which ids are in it is lost, or says that there is none, the number is left
 * out: in another shard it would be looked for in vain. */
#include "offline/salvage_priv.h"

#include "base/assert.h"
#include "base/err.h"
#include "offline/glean.h"
#include "offline/rewrite.h"
#include "offline/salvage_members.h"
#include "offline/salvage_names.h"
#include "schema/restore.h"
#include "wal/frame.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_BYTES = 64 << 20 /* of a new log file */ };

struct work {
    struct salvage *salvage;
    struct recover_schema recover;
    struct history terms; /* so far */
    struct rewrite rewrite;
    struct salvage_members members;
    struct salvage_names names;
    uint32_t max_serial;
    uint64_t batches, changes, strange; /* changes of no column */
    uint64_t n_lost;                    /* batches */
    uint64_t unplaced;                  /* numbers of no shard */
    struct numbers made;                /* owned: serials of producers that
                                         * the log describes, ascending */
    uint64_t nameless;                  /* numbers of no producer */
    bool may_be_more;
};

static int
begin(struct work *work, struct salvage *salvage)
{
    struct schema *schema = schema_create();
    int err = schema == NULL
        ? ERR_NO_MEMORY
        : recover_manifest_schema(&salvage->manifest, &schema);
    work->salvage = salvage;
    work->terms = salvage->manifest.terms;
    if (err == 0) {
        err = recover_schema_init(&work->recover, &schema);
    }
    schema_destroy(&schema);
    return err;
}

/* True of what says how the schema has become, and is not in the manifest. */
static bool
is_edit(const struct work *work, const struct entry *entry, uint64_t seq)
{
    return (entry->kind == ENTRY_COUNTER || entry->kind == ENTRY_DROPPED) &&
        seq > work->salvage->manifest.schema_seq;
}

/* True of a term that cannot begin there, or not behind those before. */
static bool
is_misplaced(
    struct work *work, const struct entry *entry, uint64_t seq, bool is_first)
{
    const struct entry_term *term = &entry->term;
    return entry->kind == ENTRY_TERM &&
        !(entry_term_is_at(term, seq, is_first) &&
            history_begin(
                &work->terms, term->term, term->branch, term->last_seq));
}

/* True of a number whose shard nobody knows. */
static bool
is_unplaced(const struct work *work, const struct entry *entry)
{
    return entry->kind == ENTRY_NUMBER &&
        (work->salvage->is_made_anew ||
            entry->shard >= work->salvage->manifest.shards);
}

/* ---- looking ---- */

static int
look_at_batch(void *context, uint64_t seq, const uint8_t *payload, size_t len)
{
    struct work *work = context;
    struct entry_reader reader = {.at = payload, .end = payload + len};
    struct entry entry;
    while (entry_has_next(&reader)) {
        bool is_first = reader.at == payload;
        if (!entry_next(&reader, &entry)) {
            return ERR_NEWER_FORMAT;
        }
        if (is_misplaced(work, &entry, seq, is_first)) {
            return ERR_CORRUPT;
        }
        int err = is_edit(work, &entry, seq)
            ? recover_schema_apply(&work->recover, &entry, NULL)
            : 0;
        work->unplaced += is_unplaced(work, &entry);
        if (err != 0) {
            return err;
        }
    }
    return 0;
}

static void
count_log(void *context, const char *name)
{
    struct salvage *salvage = context;
    struct disk *disk = salvage->disk;
    enum names_kind kind;
    uint64_t number, from, to = 0;
    int fd;
    if (!names_parse(name, &kind, &number) || kind != NAMES_LOG ||
        number < salvage->manifest.log_number ||
        disk->calls->open(disk, name, DISK_READ, &fd) != 0) {
        return;
    }
    while (
        disk->calls->next_data(disk, fd, to, &from, &to) == 0 && from < to) {
        salvage->need_bytes += to - from;
    }
    disk->calls->close(disk, fd);
}

static int
count_batch(void *context, const struct glean_batch *batch)
{
    uint64_t *n = context;
    (void)batch;
    ++*n;
    return 0;
}

static void
pass_over(void *context, const struct glean_piece *piece)
{
    (void)context;
    (void)piece;
}

/* True where the log goes on behind its torn end, but for one bit: that was no
 * crash. */
static int
look_behind(
    struct salvage *salvage, const struct replay_end *end, bool *goes_on)
{
    uint64_t n = 0;
    const struct glean glean = {.disk = salvage->disk,
        .epoch = salvage->manifest.epoch,
        .histories = &salvage->manifest.histories,
        .number = salvage->manifest.log_number,
        .budget = &salvage->budget,
        .batch_fn = count_batch,
        .piece_fn = pass_over,
        .context = &n};
    int err = end->torn_bytes == 0 ? 0 : glean_run(&glean, &salvage->error);
    *goes_on = n > end->batches;
    return err;
}

/* What a start would say. */
static int
replay_strictly(
    struct salvage *salvage, struct work *work, struct replay_end *end)
{
    const struct replay replay = {.disk = salvage->disk,
        .logger = salvage->logger,
        .epoch = salvage->manifest.epoch,
        .histories = &salvage->manifest.histories,
        .number = salvage->manifest.log_number,
        .batch_fn = look_at_batch,
        .context = work};
    bool goes_on = false;
    int err = replay_run(&replay, end);
    if (err == 0) {
        err = recover_check_end(&salvage->manifest, end, salvage->logger);
    }
    if (err == 0) {
        err = look_behind(salvage, end, &goes_on);
    }
    if (err == 0 && work->unplaced > 0) {
        err = ERR_CORRUPT;
    }
    return goes_on ? ERR_CORRUPT : err;
}

int
salvage__look_at_log(struct salvage *salvage)
{
    struct work work = {0};
    struct replay_end end = {0};
    int err = begin(&work, salvage);
    if (err == 0) {
        err = replay_strictly(salvage, &work, &end);
        if (err == 0) {
            salvage->end = end;
        }
        /* members and names that are lost with images or segments, or with
         * the shards, are the log's to mend */
        bool is_short = (salvage->n_images > 0 || salvage->segment.n > 0 ||
                            salvage->is_made_anew) &&
            (member_ids_has(work.recover.schema) ||
                salvage_names_has(work.recover.schema));
        if (salvage__is_damage(err) || (err == 0 && is_short)) {
            salvage->is_log_bad = true;
            err = salvage->disk->calls->list(
                      salvage->disk, count_log, salvage) == 0
                ? 0
                : ERR_DISK;
        }
    }
    recover_schema_fini(&work.recover);
    return err;
}

/* ---- mending ---- */

static bool
names_meet(const struct schema_counter *a, const struct schema_counter *b)
{
    return a->name.len == b->name.len &&
        memcmp(a->name.text, b->name.text, a->name.len) == 0;
}

/* True where a counter in that slot, or its name, is in the way of another. */
static bool
is_in_the_way(const struct schema_counter *other, unsigned slot,
    const struct schema_counter *counter)
{
    for (unsigned i = 0; i < counter->n_columns; i++) {
        if (counter->column[i].kind == SCHEMA_MEMBERS &&
            counter->column[i].pairs == slot) {
            return true;
        }
    }
    return slot == counter->slot || names_meet(other, counter);
}

/* Puts an end to whoever has a place of a counter that does not fit. */
static int
make_place(struct work *work, const struct entry *entry, struct buf *out)
{
    uint8_t bytes[ENTRY_DROPPED_BYTES_MAX];
    for (unsigned slot = 0; slot < SCHEMA_COUNTERS_MAX; slot++) {
        const struct schema_counter *other =
            schema_counter_at(work->recover.schema, slot);
        struct entry gone = {
            .kind = ENTRY_DROPPED, .last_serial = entry->last_serial};
        if (other == NULL || !is_in_the_way(other, slot, &entry->counter)) {
            continue;
        }
        other = schema_owner(work->recover.schema, other);
        if (other->serial == entry->counter.serial) {
            continue;
        }
        gone.counter_serial = other->serial;
        salvage__say(work->salvage,
            "the counter %s is gone: its end is among what is lost",
            other->name.text);
        if (recover_schema_apply(&work->recover, &gone, NULL) == 0) {
            buf_add(out, bytes,
                entry_put_dropped(
                    bytes, gone.counter_serial, gone.last_serial));
        }
    }
    return recover_schema_apply(&work->recover, entry, NULL);
}

/* An edit, whose bytes are at..end; out: of the batch as it will be. */
static int
take_edit(struct work *work, const struct entry *entry, const uint8_t *at,
    const uint8_t *end, struct buf *out)
{
    int err = recover_schema_apply(&work->recover, entry, NULL);
    if (err == ERR_CORRUPT && entry->kind == ENTRY_COUNTER) {
        err = make_place(work, entry, out);
    }
    if (entry->last_serial > work->max_serial) {
        work->max_serial = entry->last_serial;
    }
    if (err == ERR_CORRUPT) {
        salvage__say(work->salvage,
            "an edit of the schema is left out: what it follows is lost");
        work->salvage->is_lossy = true;
        return 0;
    }
    if (err == 0) {
        buf_add(out, at, (size_t)(end - at));
    }
    return err;
}

static void
count_cells(struct work *work, const struct entry_cells *cells)
{
    bool is_strange = true;
    if (cells->serial[0] == ENTRY_MARK_SERIAL) {
        return;
    }
    for (unsigned i = 0; i < cells->n; i++) {
        uint32_t serial = cells->serial[i];
        work->max_serial =
            serial > work->max_serial ? serial : work->max_serial;
        is_strange =
            is_strange && serial > schema_last_serial(work->recover.schema);
    }
    work->changes++;
    work->strange += is_strange;
}

/* True of a number whose producer neither the manifest nor the log says
 * anything of. One that was dropped before the manifest was written, the
 * manifest knows of: it has the last serial. */
static bool
is_nameless(const struct work *work, uint64_t serial)
{
    return serial > work->salvage->manifest.producers.last_serial &&
        !numbers_has(&work->made, serial);
}

static int
take_producer(struct work *work, const struct entry *entry)
{
    const struct numbers *made = &work->made;
    if (entry->kind == ENTRY_NUMBER || entry->kind == ENTRY_PRODUCER_JOINED) {
        work->nameless += is_nameless(work, entry->producer);
    }
    return entry->kind == ENTRY_PRODUCER &&
            (made->n == 0 || made->number[made->n - 1] < entry->producer)
        ? numbers_add(&work->made, entry->producer)
        : 0;
}

/* Cells, whose bytes are at..end; is_first: of their batch. */
static int
take_cells(struct work *work, const struct glean_batch *batch,
    const struct entry_cells *cells, const uint8_t *at, const uint8_t *end,
    bool is_first, struct buf *out)
{
    bool is_put;
    int err = salvage_members_take(&work->members, &work->recover, cells,
        batch->seq, is_first, out, &is_put);
    if (err == 0 && !is_put) {
        buf_add(out, at, (size_t)(end - at));
    }
    count_cells(work, cells);
    return err == 0 ? salvage_names_note(&work->names, &work->recover, cells)
                    : err;
}

static int
take_name(struct work *work, const struct glean_batch *batch,
    const struct entry_name *name, const uint8_t *at, const uint8_t *end,
    struct buf *out)
{
    bool is_kept;
    int err = salvage_names_take(&work->names, name, batch->seq, &is_kept);
    if (is_kept) {
        buf_add(out, at, (size_t)(end - at));
    }
    return err;
}

static int
take_payload(
    struct work *work, const struct glean_batch *batch, struct buf *out)
{
    bool is_first = true;
    struct entry_reader reader = {
        .at = batch->payload, .end = batch->payload + batch->len};
    struct entry entry;
    while (entry_has_next(&reader)) {
        const uint8_t *at = reader.at;
        int err = 0;
        if (!entry_next(&reader, &entry)) {
            return ERR_NEWER_FORMAT;
        }
        ASSERT(reader.at > at && reader.at <= reader.end); /* is copied */
        if (is_edit(work, &entry, batch->seq)) {
            err = take_edit(work, &entry, at, reader.at, out);
        } else if (is_unplaced(work, &entry)) {
            work->unplaced++;
        } else if (is_misplaced(
                       work, &entry, batch->seq, at == batch->payload)) {
            salvage__say(work->salvage,
                "a term is left out: it cannot begin in its batch");
            work->salvage->is_lossy = true;
        } else if (entry.kind == ENTRY_CELLS) {
            err = take_cells(
                work, batch, &entry.cells, at, reader.at, is_first, out);
            is_first = false;
        } else if (entry.kind == ENTRY_NAME) {
            err = take_name(work, batch, &entry.named, at, reader.at, out);
        } else {
            err = take_producer(work, &entry);
            buf_add(out, at, (size_t)(reader.at - at));
        }
        if (err != 0) {
            return err;
        }
    }
    if (out->len > FRAME_PAYLOAD_MAX) { /* by the ends of counters */
        return ERR_TOO_LARGE;
    }
    return out->failed ? ERR_NO_MEMORY : 0;
}

static int
take_batch(void *context, const struct glean_batch *batch)
{
    struct work *work = context;
    struct buf out = {0};
    int err = take_payload(work, batch, &out);
    work->batches++;
    if (err == 0 && out.len > 0) { /* else nothing of it is left */
        err = rewrite_add(&work->rewrite, batch->seq, batch->synced_seq,
            (const uint8_t *)out.data, (uint32_t)out.len);
    }
    buf_fini(&out);
    return err;
}

static void
take_piece(void *context, const struct glean_piece *piece)
{
    struct work *work = context;
    struct buf line = {0};
    glean_say(piece, &line);
    salvage__say(work->salvage, "%.*s", (int)line.len,
        line.data == NULL ? "" : line.data);
    work->salvage->is_lossy |= glean_is_loss(piece);
    work->n_lost += piece->n_batches;
    work->may_be_more |= piece->may_be_more;
    buf_fini(&line);
}

/* The largest sequence number that anything but the log has. */
static void
note_seq(void *context, const struct images_entry *entry)
{
    uint64_t *seq = context;
    *seq = entry->seq > *seq ? entry->seq : *seq;
}

static uint64_t
max_seq(const struct manifest *manifest)
{
    uint64_t seq = manifest->schema_seq > manifest->checkpoint_seq
        ? manifest->schema_seq
        : manifest->checkpoint_seq;
    images_each(&manifest->images, note_seq, &seq);
    for (size_t i = 0; i < manifest->segments.n; i++) {
        for (uint32_t k = 0; k < manifest->segments.shards; k++) {
            uint64_t other = manifest->segments.segment[i].seq[k];
            seq = other > seq ? other : seq;
        }
    }
    return seq;
}

static void
say_numbers(struct work *work)
{
    if (work->unplaced > 0) {
        salvage__say(work->salvage,
            "log: %" PRIu64 " numbers of producers could not be placed, since "
            "%s has not the shards they were of: they are left out, and "
            "retries of those changes may count twice",
            work->unplaced, MANIFEST_NAME);
        work->salvage->is_lossy = true;
    }
    if (work->nameless > 0) {
        salvage__say(work->salvage,
            "log: %" PRIu64 " numbers are of producers that nothing "
            "describes: retries of those changes may count twice",
            work->nameless);
        work->salvage->is_lossy = true;
    }
}

static void
say_log(struct work *work)
{
    salvage__say(work->salvage,
        "log: %" PRIu64 " batches with %" PRIu64 " changes are saved, %" PRIu64
        " batches are lost%s",
        work->batches, work->changes, work->n_lost,
        work->may_be_more ? ", and what nobody knows of" : "");
    if (work->strange > 0) {
        salvage__say(work->salvage,
            "log: %" PRIu64 " changes are of columns that nothing describes",
            work->strange);
        work->salvage->is_lossy = true;
    }
    say_numbers(work);
}

int
salvage__mend_log(struct salvage *salvage)
{
    struct work work = {0};
    const struct glean glean = {.disk = salvage->disk,
        .epoch = salvage->manifest.epoch,
        .histories = &salvage->manifest.histories,
        .number = salvage->manifest.log_number,
        .budget = &salvage->budget,
        .batch_fn = take_batch,
        .piece_fn = take_piece,
        .context = &work};
    int err = begin(&work, salvage);
    work.rewrite = (struct rewrite){.disk = salvage->disk,
        .epoch = salvage->history,
        .number = salvage->last_log + 1,
        .file_bytes = FILE_BYTES};
    if (err == 0) {
        err =
            salvage_members_begin(&work.members, salvage, work.recover.schema);
    }
    if (err == 0) {
        err = salvage_names_begin(&work.names, salvage);
    }
    if (err == 0) {
        err = glean_run(&glean, &salvage->error);
    }
    if (err == 0) {
        err = salvage_members_end(&work.members, work.recover.schema,
            &work.rewrite, max_seq(&salvage->manifest));
    }
    if (err == 0) {
        err = salvage_names_end(&work.names, work.recover.schema,
            &work.rewrite, max_seq(&salvage->manifest));
    }
    if (err == 0) {
        err = rewrite_end(&work.rewrite, max_seq(&salvage->manifest));
    } else {
        rewrite_abort(&work.rewrite);
    }
    if (err == 0) {
        ASSERT(work.rewrite.number > salvage->last_log);
        ASSERT(work.rewrite.at_number >= work.rewrite.number);
        say_log(&work);
        salvage->manifest.log_number = work.rewrite.number;
        salvage->manifest.histories.n = 0;
        err = histories_add(&salvage->manifest.histories, work.rewrite.number,
            salvage->history);
        salvage->end_log = work.rewrite.at_number;
        if (work.max_serial > salvage->manifest.last_serial) {
            salvage->manifest.last_serial = work.max_serial;
        }
    } else if (work.rewrite.error != 0) {
        salvage->error = work.rewrite.error;
    }
    salvage_members_fini(&work.members);
    salvage_names_fini(&work.names);
    recover_schema_fini(&work.recover);
    numbers_fini(&work.made);
    return err;
}
