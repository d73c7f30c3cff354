/* SPDX-License-Identifier: BSD-3-Clause */
/* Names in a salvage. What is lost of the log may be that a name has gone;
 * then it may have two numbers, and a start would refuse that. And a name may
 * be lost whose record is not: its number would be given to another name, with
 * that record. So each record without a name gets one that nobody had. Where
 * the manifest is made anew, names cannot be placed, and all records get such
 * ones. */
#include "offline/salvage_names.h"

#include "base/err.h"
#include "cold/segment_scan.h"
#include "engine/engine.h"
#include "names/names.h"
#include "wal/frame.h"
#include "wal/replay.h"

#include <inttypes.h>
#include <stdio.h>

enum { PIECE_BYTES = FRAME_PAYLOAD_MAX / 2 /* of a batch, about */ };

int
salvage_names_begin(struct salvage_names *it, struct salvage *salvage)
{
    it->salvage = salvage;
    return data_names_begin(
        &it->names, &salvage->manifest, salvage->disk, salvage->logger, false);
}

void
salvage_names_fini(struct salvage_names *it)
{
    data_names_fini(&it->names);
    numbers_fini(&it->ids);
}

bool
salvage_names_has(const struct schema *schema)
{
    bool has = false;
    for (unsigned slot = 0; slot < SCHEMA_COUNTERS_MAX; slot++) {
        const struct schema_counter *counter = schema_counter_at(schema, slot);
        has = has || (counter != NULL && counter->key_is_text);
    }
    return has;
}

int
salvage_names_take(struct salvage_names *it, const struct entry_name *name,
    uint64_t seq, bool *is_kept)
{
    int err = it->salvage->is_made_anew
        ? ERR_CORRUPT
        : durable_naming_replay(&it->names.naming, name, seq);
    *is_kept = err == 0;
    it->n_left_out += err == ERR_CORRUPT;
    return err == ERR_CORRUPT ? 0 : err;
}

static int
note_id(struct salvage_names *it, uint64_t id)
{
    bool is_again = it->ids.n > 0 && it->ids.number[it->ids.n - 1] == id;
    return id < OWN_ID_END || is_again ? 0 : numbers_add(&it->ids, id);
}

int
salvage_names_note(struct salvage_names *it,
    const struct recover_schema *recover, const struct entry_cells *cells)
{
    for (unsigned i = 0; i < cells->n; i++) {
        uint32_t serial = cells->serial[i];
        if (serial < recover->n_places &&
            recover->place[serial].counter != NULL &&
            recover->place[serial].counter->key_is_text) {
            return note_id(it, cells->id);
        }
    }
    return 0;
}

/* ---- behind the log ---- */

struct end {
    struct salvage_names *it;
    const struct schema *schema;
    struct recover_reader reader;
    struct rewrite *rewrite;
    uint64_t max_seq;
    struct buf bytes;
    uint64_t n_twice, n_nameless;
    int err;
};

/* The counter in a slot, if its ids are names and it has that serial. */
static bool
is_text(const struct end *end, unsigned slot, uint32_t serial)
{
    const struct schema_counter *counter =
        schema_counter_at(end->schema, slot);
    return counter != NULL && counter->serial == serial &&
        counter->key_is_text;
}

static void
take_image(void *context, const struct images_entry *entry)
{
    struct end *end = context;
    const struct data_names *names = &end->it->names;
    struct image image;
    if (end->err != 0 || entry->shard >= names->naming.manifest->shards) {
        return;
    }
    end->err = recover_read(&end->reader, entry, &image);
    if (end->err != 0 || !is_text(end, entry->counter, image.counter_serial)) {
        return;
    }
    for (uint32_t i = 0; end->err == 0 && i < image.n; i++) {
        end->err = note_id(
            end->it, engine_id(names->engine, entry->shard, image.row[i]));
    }
}

static int
take_segment(void *context, struct segment *segment,
    const struct manifest_segment *const *part, size_t n)
{
    struct end *end = context;
    const struct segment_head *head = segment_head(segment);
    struct segment_scan *scan = NULL;
    struct segment_records some = {.n = 1};
    int err = 0;
    (void)part;
    (void)n;
    if (is_text(end, head->counter, head->counter_serial)) {
        err = segment_scan_create(segment, 0, NULL, &scan);
        while (err == 0 && some.n > 0) {
            err = segment_scan_next(scan, &some);
            for (size_t i = 0; err == 0 && i < some.n; i++) {
                err = note_id(end->it, some.id[i]);
            }
        }
        segment_scan_destroy(&scan);
    }
    segment_close(&segment);
    return err;
}

/* The ids of all records that may be there. */
static int
note_all(struct end *end)
{
    const struct salvage *salvage = end->it->salvage;
    const struct recover_segments segments = {.manifest = &salvage->manifest,
        .disk = salvage->disk,
        .logger = salvage->logger,
        .file_fn = take_segment,
        .context = end};
    images_each(&salvage->manifest.images, take_image, end);
    if (end->err == 0 && salvage->manifest.segments.n > 0) {
        end->err = recover_each_segment(&segments);
    }
    if (end->err == 0 && end->it->ids.n > 0) {
        numbers_sort(&end->it->ids);
    }
    return end->err;
}

/* A batch of the entries that have come together. */
static int
end_batch(struct end *end)
{
    struct rewrite *rewrite = end->rewrite;
    struct buf *bytes = &end->bytes;
    uint64_t seq = rewrite->next_seq > end->max_seq ? rewrite->next_seq
                                                    : end->max_seq + 1;
    int err = 0;
    if (bytes->failed) {
        return ERR_NO_MEMORY;
    }
    if (bytes->len > 0) {
        /* those that are lost may have had numbers behind the last */
        seq += REPLAY_SEQ_GAP;
        err = rewrite_add(rewrite, seq, seq - 1, (const uint8_t *)bytes->data,
            (uint32_t)bytes->len);
    }
    buf_clear(bytes);
    return err;
}

static int
put(struct end *end, unsigned shard, uint32_t number, const char *name,
    size_t len)
{
    uint8_t entry[ENTRY_NAME_BYTES_MAX];
    buf_add(
        &end->bytes, entry, entry_put_name(entry, shard, number, name, len));
    return end->bytes.len > PIECE_BYTES ? end_batch(end) : 0;
}

/* A name that belongs into the shard, for an id without one. */
static int
name_id(struct end *end, uint64_t id)
{
    struct names *names = end->it->names.naming.names;
    unsigned shards = end->it->names.naming.manifest->shards, shard;
    char name[NAME_ROOM_BYTES];
    uint64_t row;
    uint32_t number;
    int err = ERR_CORRUPT;
    engine_row(end->it->names.engine, id, &shard, &row);
    if (names_name(names, id, name) > 0 ||
        !own_id_number_of(row, (unsigned)__builtin_ctz(shards), &number) ||
        number >= DICT_NUMBER_END) {
        return 0;
    }
    for (unsigned i = 0; err == ERR_CORRUPT; i++) {
        size_t len =
            (size_t)snprintf(name, sizeof name, "lost-%" PRIu64 "-%u", id, i);
        err = names_put_at(names, shard, number, name, len);
        if (err == 0) {
            end->n_nameless++;
            err = put(end, shard, number, name, len);
        }
    }
    return err;
}

static void
say(const struct end *end)
{
    struct salvage *salvage = end->it->salvage;
    if (end->n_twice > 0) {
        salvage__say(salvage,
            "log: %" PRIu64 " names had two numbers, since it is lost that "
            "the one had gone; the first keeps it",
            end->n_twice);
    }
    if (end->it->n_left_out > 0) {
        salvage__say(salvage,
            "log: %" PRIu64 " names are left out, since nothing says in which "
            "shards they were",
            end->it->n_left_out);
    }
    if (end->n_nameless > 0) {
        salvage__say(salvage,
            "%" PRIu64 " records have lost their name: they are there under "
            "names that begin with lost- and their id",
            end->n_nameless);
    }
    salvage->is_lossy |=
        end->n_twice > 0 || end->it->n_left_out > 0 || end->n_nameless > 0;
}

int
salvage_names_end(struct salvage_names *it, const struct schema *schema,
    struct rewrite *rewrite, uint64_t max_seq)
{
    struct names *names = it->names.naming.names;
    struct end end = {.it = it,
        .schema = schema,
        .reader = {.disk = it->salvage->disk,
            .logger = it->salvage->logger,
            .images = &it->salvage->manifest.images},
        .rewrite = rewrite,
        .max_seq = max_seq};
    unsigned shard;
    uint32_t number;
    int err = 0;
    for (; err == 0 && names_end_load(names, &shard, &number) != 0;
         end.n_twice++) {
        names_take_out(names, shard, number);
        err = put(&end, shard, number, NULL, 0);
    }
    err = err == 0 ? note_all(&end) : err;
    for (size_t i = 0; err == 0 && i < it->ids.n; i++) {
        err = name_id(&end, it->ids.number[i]);
    }
    err = err == 0 ? end_batch(&end) : err;
    if (err == 0) {
        say(&end);
    }
    recover_reader_fini(&end.reader);
    buf_fini(&end.bytes);
    return err;
}
