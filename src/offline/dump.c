/* SPDX-License-Identifier: BSD-3-Clause */
/* --dump writes the numbers of a data directory as text, while no server has
 * it: segments, then images, then the log, in the order in which they count.
 * Of a cell the last line that has it is right. What a running server dumps
 * for a client is store/dumper.c.
 *
 * Members are shown under the id of their record, not that of their pair: so
 * where there are any, all of it is read for the records' numbers first
 * (offline/member_ids.h). Pairs of numbers that no record has are counted, and
 * left out.
 *
 * It reads on behind damage (offline/segment_mend.h, offline/glean.h), and a
 * line says what cannot be read. It turns no bit back. */
#include "offline/dump.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "base/checksum.h"
#include "base/err.h"
#include "base/numbers.h"
#include "durable/recover.h"
#include "durable/snapshot_exchange.h"
#include "engine/engine.h"
#include "names/names.h"
#include "offline/data_names.h"
#include "offline/dump_plan.h"
#include "offline/dump_text.h"
#include "offline/glean.h"
#include "offline/member_ids.h"
#include "offline/segment_mend.h"
#include "schema/print.h"
#include "wal/frame.h"
#include "wal/log_cut.h"
#include "wal/names.h"
#include "wal/replica_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FLUSH_BYTES = 1 << 16 };

struct dump {
    const struct dump_config *config;
    struct manifest manifest;
    struct recover_schema recover; /* as the log has it so far */
    struct engine *engine;         /* knows where ids are, and holds none */
    struct recover_reader reader;
    struct data_names named;   /* of the images that can be read */
    struct member_ids members; /* whose they are; where has_read_members */
    bool has_read_members;
    struct dump_plan plan;
    bool *is_read;   /* owned; of the segments' entries, where wanted */
    struct buf text; /* not written yet */
    uint64_t records, changes, damages;
    uint64_t unreachable; /* members of numbers that no record has */
    int err;              /* of what ends the dump */
};

static void
flush(struct dump *dump)
{
    if (dump->text.failed && dump->err == 0) {
        dump->err = ERR_NO_MEMORY;
    }
    if (dump->err == 0 && dump->text.len > 0) {
        dump->err = dump->config->write_fn(
            dump->config->context, dump->text.data, dump->text.len);
    }
    buf_clear(&dump->text);
}

static void
end_line(struct dump *dump)
{
    buf_add_text(&dump->text, "\n");
    if (dump->text.len >= FLUSH_BYTES) {
        flush(dump);
    }
}

static void __attribute__((format(printf, 2, 3)))
damaged(struct dump *dump, const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    buf_addf(&dump->text, "damaged %s", text);
    end_line(dump);
    dump->damages++;
}

static bool
wants(const struct dump *dump, enum dump_part part)
{
    return dump->config->part == DUMP_ALL || dump->config->part == part;
}

/* ---- the schema ---- */

/* counter: NULL stands for all. */
static void
add_schema(struct dump *dump, const struct schema_counter *counter)
{
    const struct schema *schema = dump->recover.schema;
    struct buf lines = {0};
    if ((counter == NULL ? schema_print_all(schema, &lines)
                         : schema_print(schema, counter, &lines)) != 0) {
        dump->err = ERR_NO_MEMORY;
    }
    for (size_t at = 0; dump->err == 0 && at < lines.len;) {
        const char *line = lines.data + at;
        size_t n = (size_t)((char *)memchr(line, '\r', lines.len - at) - line);
        buf_addf(&dump->text, "schema %.*s", (int)n, line);
        end_line(dump);
        at += n + 2;
    }
    buf_fini(&lines);
}

/* Reads whose the members are, as soon as there is a column that may have
 * some: the log may make the first one. It is no part of what is told of
 * progress. */
static int
read_members(struct dump *dump)
{
    if (dump->has_read_members || !member_ids_has(dump->recover.schema) ||
        !(wants(dump, DUMP_RECORDS) || wants(dump, DUMP_LOG))) {
        return 0;
    }
    dump->members.engine = dump->engine;
    dump->members.manifest = &dump->manifest;
    dump->has_read_members = true;
    return member_ids_read(&dump->members, dump->config->disk, &dump->reader);
}

/* An edit of the log: what has gone by it, then the counter as it is now. */
static int
add_edit(struct dump *dump, const struct entry *entry)
{
    uint32_t serial = entry->kind == ENTRY_COUNTER ? entry->counter.serial
                                                   : entry->counter_serial;
    int slot = recover_slot_of(dump->recover.schema, serial);
    const struct schema_counter *old = slot < 0
        ? NULL
        : schema_counter_at(dump->recover.schema, (unsigned)slot);
    struct schema_counter gone = {0};
    if (old != NULL) {
        gone = *old;
    }
    int err = recover_schema_apply(&dump->recover, entry, NULL);
    if (err == ERR_CORRUPT) {
        damaged(dump, "an edit that does not fit the schema");
        return 0;
    }
    err = err == 0 ? read_members(dump) : err;
    if (err != 0 || !wants(dump, DUMP_LOG)) {
        return err;
    }
    if (entry->kind == ENTRY_DROPPED) {
        buf_addf(&dump->text, "gone %s", gone.name.text);
        end_line(dump);
        return 0;
    }
    for (unsigned i = 0; i < gone.n_columns; i++) {
        if (schema_column_of(&entry->counter, gone.column[i].serial) == NULL) {
            buf_addf(&dump->text, "gone %s %s", gone.name.text,
                gone.column[i].name.text);
            end_line(dump);
        }
    }
    add_schema(dump, &entry->counter);
    return 0;
}

/* ---- producers ---- */

static void
add_producers(struct dump *dump)
{
    const struct producers_list *list = &dump->manifest.producers;
    uint32_t at = 0;
    for (uint32_t i = 0; i < list->n; i++) {
        uint32_t serial = list->one[i].serial;
        dump_text_producer(serial, &list->one[i].name, &dump->text);
        end_line(dump);
        for (; at < list->n_windows && list->window[at].producer == i; at++) {
            dump_text_window(serial, &list->window[at], &dump->text);
            end_line(dump);
        }
    }
}

/* ---- records ---- */

/* The columns of a file: code[at[i]] is that of the counter's column i, if
 * at[i] >= 0. */
static void
match(const struct schema_counter *counter, const uint32_t *serial, unsigned n,
    int at[SCHEMA_COLUMNS_MAX])
{
    for (unsigned i = 0; i < counter->n_columns; i++) {
        at[i] = -1;
        for (unsigned k = 0; k < n; k++) {
            at[i] = serial[k] == counter->column[i].serial ? (int)k : at[i];
        }
    }
}

/* The name that such an id is by itself; the log and the images have those of
 * others. */
static void
add_own_name(
    struct dump *dump, const struct schema_counter *counter, uint64_t id)
{
    char name[OWN_DIGITS_MAX];
    size_t len = counter->key_is_text ? own_id_name(id, name) : 0;
    if (len > 0) {
        buf_addf(&dump->text, "name %" PRIu64 " %.*s", id, (int)len, name);
        end_line(dump);
    }
}

static void
add_record(struct dump *dump, const struct schema_counter *counter,
    uint64_t id, const uint64_t *const *code, const int *at, size_t row)
{
    bool has_any = false;
    add_own_name(dump, counter, id);
    size_t start = dump->text.len;
    buf_addf(&dump->text, "record %s %" PRIu64, counter->name.text, id);
    for (unsigned i = 0; i < counter->n_columns; i++) {
        if (!schema_is_in_record(&counter->column[i])) {
            continue;
        }
        has_any = true;
        buf_addf(&dump->text, " %" PRIu64,
            bytes_of_code(at[i] < 0 ? 0 : code[at[i]][row],
                counter->column[i].default_value));
    }
    if (!has_any && counter->n_columns > 0) { /* it has nothing but members */
        dump->text.len = start;
        return;
    }
    end_line(dump);
    dump->records++;
}

/* The record of a counter of pairs. */
static void
add_pair(struct dump *dump, const char *word,
    const struct schema_counter *pairs, uint64_t pair_id, uint64_t value)
{
    const struct schema *schema = dump->recover.schema;
    const struct schema_counter *counter = schema_owner(schema, pairs);
    const struct schema_column *column = schema_members(schema, pairs);
    struct member_ids_pair pair = member_ids_pair(&dump->members,
        member_ids_find(&dump->members, column->serial), column->member_bits,
        pair_id);
    ASSERT(dump->has_read_members);
    if (pair.is_ours) {
        dump_text_member(
            word, counter, column, pair.id, pair.member, value, &dump->text);
        end_line(dump);
    } else if (!pair.is_mark) {
        dump->unreachable++;
    }
}

static void
add_rows(struct dump *dump, const struct schema_counter *counter,
    const struct images_entry *entry, const struct image *image)
{
    int at[SCHEMA_COLUMNS_MAX];
    match(counter, image->serial, image->n_columns, at);
    for (uint32_t i = 0; i < image->n; i++) {
        if (image->row[i] < entry->first_row ||
            image->row[i] > entry->last_row) {
            continue;
        }
        uint64_t id = engine_id(dump->engine, entry->shard, image->row[i]);
        if (counter->members_of == 0) {
            add_record(dump, counter, id, image->code, at, i);
        } else if (at[0] >= 0 &&
            (image->code[at[0]][i] != 0 ||
                member_ids_is_covered(&dump->members, counter, id))) {
            add_pair(dump, "member", counter, id, image->code[at[0]][i]);
        }
    }
}

/* What the records of a counter are called. */
static void
add_name(struct dump *dump, const struct schema_counter *counter)
{
    const struct schema *schema = dump->recover.schema;
    buf_add_text(&dump->text, schema_owner(schema, counter)->name.text);
    if (counter->members_of != 0) {
        buf_addf(
            &dump->text, ".%s", schema_members(schema, counter)->name.text);
    }
}

/* An image of tables of members=about: which members there are is not in it. */
static void
add_tables(struct dump *dump, const struct schema_counter *counter,
    const struct images_entry *entry, const struct image *image)
{
    const struct schema_column *column = counter == NULL
        ? NULL
        : schema_column_of(counter, image->counter_serial);
    char name[NAMES_BYTES];
    if (column == NULL) {
        return; /* dropped since */
    }
    names_make(name, NAMES_CHECKPOINT, entry->file);
    buf_addf(&dump->text,
        "image %s offset %" PRIu64 " bytes %" PRIu32
        " counter %s column %s batch %" PRIu64 " lines %" PRIu32,
        name, entry->offset, entry->len, counter->name.text, column->name.text,
        entry->seq, entry->n);
    end_line(dump);
}

/* The names that an image is of, as the images have them. */
static void
add_names(struct dump *dump, const struct images_entry *entry)
{
    char name[NAMES_BYTES], text[NAME_ROOM_BYTES];
    unsigned shard = entry->shard - dump->manifest.shards - 1;
    const struct names *names = dump->named.naming.names;
    uint64_t block = entry->first_row >> DURABLE_NAMING_SHIFT;
    uint32_t number = 0;
    uint64_t id;
    names_make(name, NAMES_CHECKPOINT, entry->file);
    buf_addf(&dump->text,
        "image %s offset %" PRIu64 " bytes %" PRIu32
        " names shard %u batch %" PRIu64,
        name, entry->offset, entry->len, shard, entry->seq);
    end_line(dump);
    if (names == NULL || block < DURABLE_NAMING_BLOCKS) {
        return; /* memory was out; or it is a table of symbols */
    }
    for (number = (uint32_t)(block - DURABLE_NAMING_BLOCKS) * NAME_BLOCK_SLOTS;
         names_next(names, shard, &number, &id) &&
         durable_naming_block_row(number / NAME_BLOCK_SLOTS) <=
             entry->last_row;
         number++) {
        size_t len = names_name(names, id, text);
        buf_addf(&dump->text, "name %" PRIu64 " %.*s", id, (int)len, text);
        end_line(dump);
    }
}

/* A name of the log, or that it has gone. */
static void
add_name_entry(struct dump *dump, const struct entry_name *name)
{
    unsigned bits = (unsigned)__builtin_ctz(dump->manifest.shards);
    if (name->shard >= dump->manifest.shards) {
        return; /* a start refuses it */
    }
    uint64_t id = engine_id(
        dump->engine, name->shard, own_id_row_of(name->number, bits));
    buf_addf(&dump->text, "%s %" PRIu64 "%s%.*s",
        name->len > 0 ? "name" : "name-gone", id, name->len > 0 ? " " : "",
        (int)name->len, name->bytes);
    end_line(dump);
}

static void
add_image(void *context, const struct images_entry *entry)
{
    struct dump *dump = context;
    const struct schema_counter *counter =
        schema_counter_at(dump->recover.schema, entry->counter);
    struct image image;
    char name[NAMES_BYTES];
    if (dump->err != 0) {
        return;
    }
    names_make(name, NAMES_CHECKPOINT, entry->file);
    int err = recover_read(&dump->reader, entry, &image);
    dump_plan_next(&dump->plan);
    dump_plan_reach(&dump->plan, 1, 1, entry->n);
    if (err == ERR_CORRUPT) {
        damaged(dump,
            "%s, offset %" PRIu64 ": an image of %" PRIu32
            " records cannot be read",
            name, entry->offset, entry->n);
        return;
    }
    if (err != 0) {
        dump->err = err;
        return;
    }
    if (manifest_is_of_names(&dump->manifest, entry)) {
        add_names(dump, entry);
        return;
    }
    if (manifest_is_of_tables(&dump->manifest, entry)) {
        add_tables(dump, counter, entry, &image);
        return;
    }
    if (counter == NULL || counter->serial != image.counter_serial) {
        return; /* dropped since */
    }
    buf_addf(&dump->text,
        "image %s offset %" PRIu64 " bytes %" PRIu32 " counter ", name,
        entry->offset, entry->len);
    add_name(dump, counter);
    buf_addf(&dump->text, " shard %u batch %" PRIu64 " records %" PRIu32,
        entry->shard, entry->seq, entry->n);
    end_line(dump);
    ASSERT(image.n == entry->n && image.n_columns <= SCHEMA_COLUMNS_MAX);
    add_rows(dump, counter, entry, &image);
}

static void
take_piece(void *context, const struct segment_mend_piece *piece)
{
    static const char *const text[] = {
        [SEGMENT_MEND_MISSING] = "it is missing, or another's",
        [SEGMENT_MEND_HEAD] = "its head, and so all of it",
        [SEGMENT_MEND_INDEX] = "its index",
        [SEGMENT_MEND_TURNED] = "a bit",
        [SEGMENT_MEND_BLOCKS] = "blocks",
    };
    char name[SEGMENT_NAME_BYTES];
    segment_name(name, piece->number, false);
    if (piece->kind == SEGMENT_MEND_BLOCKS) {
        damaged(context,
            "%s, offset %" PRIu64 ": %" PRIu64 " blocks with the ids %" PRIu64
            " to %" PRIu64 " cannot be read",
            name, piece->at, piece->n_blocks, piece->first_id, piece->last_id);
    } else {
        damaged(context, "%s, offset %" PRIu64 ": %s cannot be read", name,
            piece->at, text[piece->kind]);
    }
}

/* True where the manifest says that the file is what answers for an id. */
static bool
is_covered(
    const struct dump *dump, uint32_t serial, uint64_t id, uint64_t number)
{
    const struct manifest_segment *segment =
        segments_find(&dump->manifest.segments, serial, id);
    return segment != NULL && segment->number == number;
}

static void
add_blocks(struct dump *dump, struct segment_mend *mend,
    const struct schema_counter *counter, uint64_t records)
{
    const struct segment_head *head = segment_mend_head(mend);
    struct segment_records some = {.n = 1};
    uint32_t serial[SCHEMA_COLUMNS_MAX];
    int at[SCHEMA_COLUMNS_MAX];
    ASSERT(head->n_columns <= SCHEMA_COLUMNS_MAX);
    for (unsigned i = 0; i < head->n_columns; i++) {
        serial[i] = head->column[i].serial;
    }
    uint64_t n_read = 0;
    match(counter, serial, head->n_columns, at);
    while (dump->err == 0 && some.n > 0) {
        dump->err = segment_mend_next(mend, &some);
        n_read += dump->err == 0 ? some.n : 0;
        ASSERT(segment_mend_given(mend) == n_read);
        for (size_t i = 0; dump->err == 0 && i < some.n; i++) {
            if (!is_covered(dump, counter->serial, some.id[i], head->number)) {
                continue;
            }
            if (counter->members_of == 0) {
                add_record(dump, counter, some.id[i], some.code, at, i);
            } else if (at[0] >= 0) {
                add_pair(
                    dump, "member", counter, some.id[i], some.code[at[0]][i]);
            }
        }
        dump_plan_reach(
            &dump->plan, segment_mend_given(mend), records, some.n);
    }
}

static void
add_segment(struct dump *dump, const struct manifest_segment *part)
{
    static const struct segment_head nobody_knows;
    const struct schema_counter *counter =
        schema_counter_at(dump->recover.schema, part->counter);
    const struct segment_mend_config config = {.disk = dump->config->disk,
        .epoch = manifest_segment_epoch(&dump->manifest, part),
        .number = part->number,
        .guess = &nobody_knows,
        .piece_fn = take_piece,
        .context = dump};
    struct segment_mend *mend = NULL;
    char name[SEGMENT_NAME_BYTES];
    ASSERT(counter != NULL); /* is_read has found it */
    dump_plan_next(&dump->plan);
    segment_name(name, part->number, false);
    buf_addf(&dump->text, "segment %s counter ", name);
    add_name(dump, counter);
    buf_addf(&dump->text, " records %" PRIu64, part->records);
    end_line(dump);
    dump->err = segment_mend_open(&config, &mend);
    if (dump->err == 0 && mend != NULL) {
        add_blocks(dump, mend, counter, part->records);
    }
    segment_mend_close(&mend);
}

/* True of the entries by which files are read: each file once, though several
 * may name it, and none of a counter that has been dropped since. */
static bool
is_read(const struct dump *dump, size_t i)
{
    const struct manifest_segment *segment = dump->manifest.segments.segment;
    const struct schema_counter *counter =
        schema_counter_at(dump->recover.schema, segment[i].counter);
    for (size_t k = 0; k < i; k++) {
        if (segment[k].number == segment[i].number) {
            return false;
        }
    }
    return counter != NULL && counter->serial == segment[i].counter_serial;
}

static void
add_segments(struct dump *dump)
{
    const struct segments *segments = &dump->manifest.segments;
    for (size_t i = 0; dump->err == 0 && i < segments->n; i++) {
        if (dump->is_read[i]) {
            add_segment(dump, &segments->segment[i]);
        }
    }
}

/* ---- the log ---- */

/* True where an image or a segment has that change already. */
static bool
is_old(const struct dump *dump, const struct schema_counter *counter,
    uint64_t id, uint64_t seq)
{
    unsigned shard;
    uint64_t row;
    engine_row(dump->engine, id, &shard, &row);
    ASSERT(shard < dump->manifest.shards);
    const struct images_entry *entry = images_find(
        &dump->manifest.images, counter->slot, (uint16_t)shard, row);
    const struct manifest_segment *segment =
        segments_find(&dump->manifest.segments, counter->serial, id);
    return (entry != NULL && entry->seq >= seq) ||
        (segment != NULL && segment->seq[shard] >= seq);
}

/* A cell of a record, where it has a place there: what counts members has
 * none, since they make it. */
static void
add_cell(struct dump *dump, const struct schema_counter *counter,
    uint32_t serial, uint64_t value)
{
    const struct schema_column *column = schema_column_of(counter, serial);
    if (column != NULL && schema_is_in_record(column) &&
        !schema_is_counted(counter, column)) {
        buf_addf(&dump->text, " %s=%" PRIu64, column->name.text, value);
    }
}

static void
add_cells(struct dump *dump, const struct entry_cells *cells, uint64_t seq)
{
    const struct schema_counter *counter = NULL;
    size_t start = dump->text.len, head = start;
    if (cells->serial[0] == ENTRY_MARK_SERIAL) {
        buf_addf(&dump->text, "mark %" PRIu64, cells->value[0]);
        end_line(dump);
        return;
    }
    for (unsigned i = 0; i < cells->n; i++) {
        uint32_t serial = cells->serial[i];
        const struct recover_place *place = serial < dump->recover.n_places
            ? &dump->recover.place[serial]
            : NULL;
        if (place == NULL || place->counter == NULL) {
            continue; /* dropped since */
        }
        bool is_past = is_old(dump, place->counter, cells->id, seq);
        if (place->counter->members_of != 0) {
            add_pair(dump, is_past ? "old-member" : "member", place->counter,
                cells->id, cells->value[i]);
            return;
        }
        if (counter == NULL) {
            counter = place->counter;
            add_own_name(dump, counter, cells->id);
            start = dump->text.len;
            buf_addf(&dump->text, "%s %s %" PRIu64, is_past ? "old" : "cells",
                counter->name.text, cells->id);
            head = dump->text.len;
        }
        add_cell(dump, counter, serial, cells->value[i]);
    }
    if (dump->text.len > head) {
        end_line(dump);
    } else {
        dump->text.len = start; /* nothing but what members make */
    }
}

static int
add_batch(void *context, const struct glean_batch *batch)
{
    struct dump *dump = context;
    struct entry_reader reader = {
        .at = batch->payload, .end = batch->payload + batch->len};
    struct entry entry;
    char name[NAMES_BYTES];
    uint64_t before = dump->changes;
    names_make(name, NAMES_LOG, batch->number);
    if (wants(dump, DUMP_LOG)) {
        buf_addf(&dump->text,
            "batch %" PRIu64 " synced %" PRIu64 " %s offset %" PRIu64
            " bytes %" PRIu32 " checksum %016" PRIx64,
            batch->seq, batch->synced_seq, name, batch->at, batch->len,
            checksum64(batch->payload, batch->len, 0));
        end_line(dump);
    }
    while (entry_has_next(&reader)) {
        int err = 0;
        if (!entry_next(&reader, &entry)) {
            return ERR_NEWER_FORMAT;
        }
        if (entry.kind == ENTRY_CELLS && wants(dump, DUMP_LOG)) {
            dump->changes += entry.cells.serial[0] != ENTRY_MARK_SERIAL;
            add_cells(dump, &entry.cells, batch->seq);
        }
        if (entry.kind == ENTRY_TERM && wants(dump, DUMP_LOG)) {
            dump_text_term(&entry.term, &dump->text);
            end_line(dump);
        }
        if (entry.kind == ENTRY_NAME && wants(dump, DUMP_LOG)) {
            add_name_entry(dump, &entry.named);
        }
        if ((wants(dump, DUMP_LOG) || wants(dump, DUMP_PRODUCERS)) &&
            dump_text_entry(&entry, &dump->text)) {
            end_line(dump);
        }
        if ((entry.kind == ENTRY_COUNTER || entry.kind == ENTRY_DROPPED) &&
            batch->seq > dump->manifest.schema_seq) {
            err = add_edit(dump, &entry);
        }
        if (err != 0) {
            return err;
        }
    }
    dump_plan_reach_log(&dump->plan, batch->number,
        batch->at + FRAME_BATCH_BYTES + batch->len, dump->changes - before);
    return dump->err;
}

static void
take_glean(void *context, const struct glean_piece *piece)
{
    struct dump *dump = context;
    struct buf line = {0};
    glean_say(piece, &line);
    damaged(dump, "%.*s", (int)line.len, line.data == NULL ? "" : line.data);
    buf_fini(&line);
}

static void
add_log(struct dump *dump)
{
    const struct glean glean = {.disk = dump->config->disk,
        .epoch = dump->manifest.epoch,
        .histories = &dump->manifest.histories,
        .number = dump->manifest.log_number,
        .batch_fn = add_batch,
        .piece_fn = take_glean,
        .context = dump};
    int error;
    int err = glean_run(&glean, &error);
    dump->err = dump->err == 0 ? err : dump->err;
}

/* ---- what was cut off the log ---- */

/* A batch of a cut file, by the schema as it is now. */
static int
add_cut_batch(void *context, uint64_t seq, const uint8_t *payload, size_t len)
{
    struct dump *dump = context;
    struct entry_reader reader = {.at = payload, .end = payload + len};
    struct entry entry;
    buf_addf(&dump->text, "cut-batch %" PRIu64 " bytes %zu", seq, len);
    end_line(dump);
    while (entry_has_next(&reader)) {
        if (!entry_next(&reader, &entry)) {
            return ERR_NEWER_FORMAT;
        }
        if (entry.kind == ENTRY_CELLS) {
            add_cells(dump, &entry.cells, UINT64_MAX); /* nowhere else */
        } else if (entry.kind == ENTRY_TERM) {
            dump_text_term(&entry.term, &dump->text);
            end_line(dump);
        } else if (entry.kind == ENTRY_NAME) {
            add_name_entry(dump, &entry.named);
        } else if (dump_text_entry(&entry, &dump->text)) {
            end_line(dump);
        }
    }
    return dump->err;
}

struct cuts {
    struct numbers numbers; /* owned */
    int err;
};

static void
note_cut(void *context, const char *name)
{
    struct cuts *cuts = context;
    enum names_kind kind;
    uint64_t number;
    if (cuts->err == 0 && names_parse(name, &kind, &number) &&
        kind == NAMES_CUT) {
        cuts->err = numbers_add(&cuts->numbers, number);
    }
}

static void
add_cuts(struct dump *dump)
{
    struct disk *disk = dump->config->disk;
    struct cuts cuts = {.err = 0};
    int err =
        disk->calls->list(disk, note_cut, &cuts) == 0 ? cuts.err : ERR_DISK;
    numbers_sort(&cuts.numbers);
    for (size_t i = 0; err == 0 && i < cuts.numbers.n; i++) {
        char name[NAMES_BYTES];
        names_make(name, NAMES_CUT, cuts.numbers.number[i]);
        buf_addf(&dump->text, "cut %s", name);
        end_line(dump);
        err = log_cut_read(disk, cuts.numbers.number[i], add_cut_batch, dump);
        if (err == ERR_CORRUPT) {
            damaged(dump, "%s: the rest of it cannot be read", name);
            err = 0;
        }
    }
    numbers_fini(&cuts.numbers);
    dump->err = dump->err == 0 ? err : dump->err;
}

/* ---- all ---- */

static int
open_directory(struct dump *dump)
{
    struct schema *schema = schema_create();
    int err = schema == NULL ? ERR_NO_MEMORY : 0;
    int error;
    if (err == 0) {
        err = manifest_read(dump->config->disk, &dump->manifest, &error);
    }
    if (err != 0 && schema != NULL) {
        recover_log_manifest_error(dump->config->logger, err, error);
    }
    if (err == 0) {
        err = recover_manifest_schema(&dump->manifest, &schema);
    }
    if (err == 0) {
        err = recover_schema_init(&dump->recover, &schema);
    }
    if (err == 0) {
        const struct engine_config config = {.shards = dump->manifest.shards,
            .seed = dump->manifest.seed,
            .hot_bytes = ENGINE_HOT_BYTES_MIN};
        err = engine_create(&config, &dump->engine);
    }
    schema_destroy(&schema);
    return err;
}

static void
plan_image(void *context, const struct images_entry *entry)
{
    struct dump *dump = context;
    if (dump->err == 0) {
        dump->err = dump_plan_add(&dump->plan, entry->len);
    }
}

/* What is going to be read, in that order. */
static void
make_plan(struct dump *dump)
{
    const struct manifest *manifest = &dump->manifest;
    struct disk *disk = dump->config->disk;
    dump->is_read = calloc(manifest->segments.n + 1, sizeof *dump->is_read);
    if (dump->is_read == NULL) {
        dump->err = ERR_NO_MEMORY;
    }
    for (size_t i = 0; wants(dump, DUMP_RECORDS) && dump->err == 0 &&
         i < manifest->segments.n;
         i++) {
        dump->is_read[i] = is_read(dump, i);
        if (dump->is_read[i]) {
            dump->err = dump_plan_add(&dump->plan,
                dump_plan_segment_bytes(
                    disk, manifest->segments.segment[i].number));
        }
    }
    if (wants(dump, DUMP_RECORDS)) {
        images_each(&manifest->images, plan_image, dump);
    }
    if (dump->err == 0 && dump->config->part != DUMP_RECORDS) {
        dump->err =
            dump_plan_add_logs(&dump->plan, disk, manifest->log_number);
    }
}

/* Whose the log was, of a directory that others have copies of. */
static void
add_terms(struct dump *dump)
{
    const struct manifest *manifest = &dump->manifest;
    struct replica_file file;
    for (unsigned i = 0; i < manifest->terms.n; i++) {
        dump_text_history(&manifest->terms.at[i], &dump->text);
        end_line(dump);
    }
    if (replica_file_read(dump->config->disk, &file) == 0) {
        dump_text_replica(&file, &dump->text);
        end_line(dump);
    }
    if (manifest->terms.n > 0) {
        buf_addf(
            &dump->text, "committed batch %" PRIu64, manifest->committed_seq);
        end_line(dump);
    }
}

static void
add_handovers(struct dump *dump)
{
    const struct moved_list *list = &dump->manifest.handovers;
    for (uint32_t i = 0; i < list->n; i++) {
        dump_text_moved(&list->one[i], &dump->text);
        end_line(dump);
    }
}

static void
add_all(struct dump *dump)
{
    const struct manifest *manifest = &dump->manifest;
    buf_addf(&dump->text, "tallyd dump 1");
    end_line(dump);
    buf_addf(&dump->text,
        "manifest shards %" PRIu32 " log %" PRIu64 " batch %" PRIu64
        " images %zu segments %zu",
        manifest->shards, manifest->log_number, manifest->checkpoint_seq,
        manifest->images.n, manifest->segments.n);
    end_line(dump);
    if (wants(dump, DUMP_LOG)) {
        add_terms(dump);
    }
    if (dump->config->part != DUMP_SCHEMA &&
        dump->config->part != DUMP_PRODUCERS) {
        add_schema(dump, NULL);
    }
    if (wants(dump, DUMP_PRODUCERS)) {
        add_producers(dump);
    }
    if (wants(dump, DUMP_LOG)) {
        add_handovers(dump);
    }
    dump->err = dump->err == 0 ? read_members(dump) : dump->err;
    if (wants(dump, DUMP_RECORDS)) {
        add_segments(dump);
        if (dump->err == 0) { /* of what is damaged the images tell */
            dump->err = data_names_begin(&dump->named, manifest,
                dump->config->disk, dump->config->logger, true);
        }
        images_each(&manifest->images, add_image, dump);
    }
    if (dump->err == 0 && dump->config->part != DUMP_RECORDS) {
        add_log(dump);
    }
    if (dump->err == 0 && wants(dump, DUMP_LOG)) {
        add_cuts(dump);
    }
    if (dump->config->part == DUMP_SCHEMA) {
        add_schema(dump, NULL); /* as it is at the end of the log */
    }
    if (dump->unreachable > 0) {
        buf_addf(
            &dump->text, "unreachable members %" PRIu64, dump->unreachable);
        end_line(dump);
    }
    buf_addf(&dump->text,
        "end records %" PRIu64 " changes %" PRIu64 " damaged %" PRIu64,
        dump->records, dump->changes, dump->damages);
    end_line(dump);
    flush(dump);
}

int
dump_run(const struct dump_config *config)
{
    struct dump dump = {.config = config,
        .reader = {.disk = config->disk, .logger = config->logger}};
    manifest_init(&dump.manifest);
    dump.reader.images = &dump.manifest.images;
    int err = snapshot_exchange_refuse(config->disk, config->logger);
    if (err == 0) {
        err = open_directory(&dump);
    }
    if (err == 0) {
        make_plan(&dump);
        err = dump.err;
    }
    if (err == 0) {
        dump_plan_begin(&dump.plan, config->logger, config->clock);
        add_all(&dump);
        dump_plan_end(&dump.plan, dump.err == 0);
        err = dump.err;
    }
    if (err == 0 && dump.damages > 0) {
        err = ERR_CORRUPT;
    }
    data_names_fini(&dump.named);
    engine_destroy(&dump.engine);
    recover_reader_fini(&dump.reader);
    recover_schema_fini(&dump.recover);
    member_ids_fini(&dump.members);
    manifest_fini(&dump.manifest);
    buf_fini(&dump.text);
    dump_plan_fini(&dump.plan);
    free(dump.is_read);
    return err;
}
