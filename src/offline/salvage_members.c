/* SPDX-License-Identifier: BSD-3-Clause */
/* Members in a salvage. Where something is lost, the members that are left are
 * counted anew: behind the batches of the new log come some with the counts of
 * the records that say another number.
 *
 * The count of a record that is in a segment, and in nothing newer, cannot be
 * told alone: who reads the log takes what it says of such a record for all of
 * it. So these are looked for in the segments, and told whole.
 *
 * A number must not be given twice, and the engine goes on behind the largest
 * row of pairs, which may be among what is lost. So the mark above the
 * largest number that is left, of a record or of a pair, is put back, in each
 * shard.
 *
 * Where the manifest is made anew, ids have other shards, and a pair is found
 * by the shard of its record: no member can be found then. All that the log
 * says of them is left out, and told. */
#include "offline/salvage_members.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "base/err.h"
#include "offline/member_check.h"
#include "wal/entry.h"
#include "wal/frame.h"
#include "wal/replay.h"

#include <inttypes.h>
#include <string.h>

enum {
    MARK_NUMBERS = 256,                 /* one mark for so many */
    PIECE_BYTES = FRAME_PAYLOAD_MAX / 2 /* of a batch, about */
};

/* ---- what is there ---- */

struct taking {
    struct salvage_members *it;
    const struct schema *schema;
    int err;
};

static void
take_image(void *context, const struct images_entry *entry)
{
    struct taking *taking = context;
    const struct schema_counter *counter =
        schema_counter_at(taking->schema, entry->counter);
    struct image image;
    if (taking->err != 0 || counter == NULL) {
        return;
    }
    taking->err = recover_read(&taking->it->reader, entry, &image);
    if (taking->err == 0 && counter->serial == image.counter_serial) {
        taking->err = member_ids_take_image(
            &taking->it->ids, taking->schema, counter, entry, &image);
    }
}

static int
take_segment(void *context, struct segment *segment,
    const struct manifest_segment *const *part, size_t n)
{
    struct taking *taking = context;
    (void)part;
    (void)n;
    int err =
        member_ids_take_segment(&taking->it->ids, taking->schema, segment);
    segment_close(&segment);
    return err;
}

/* Calls file_fn for the manifest's segments; serial: of one counter, or 0. */
static int
each_segment(struct salvage *salvage, uint32_t serial,
    int (*file_fn)(void *context, struct segment *segment,
        const struct manifest_segment *const *part, size_t n),
    void *context)
{
    struct manifest some = salvage->manifest;
    const struct recover_segments segments = {.manifest = &some,
        .disk = salvage->disk,
        .logger = salvage->logger,
        .file_fn = file_fn,
        .context = context};
    if (serial != 0) {
        size_t n;
        some.segments.segment = (struct manifest_segment *)segments_of(
            &salvage->manifest.segments, serial, &n);
        some.segments.n = n;
    }
    return some.segments.n == 0 ? 0 : recover_each_segment(&segments);
}

int
salvage_members_begin(struct salvage_members *it, struct salvage *salvage,
    const struct schema *schema)
{
    const struct manifest *manifest = &salvage->manifest;
    const struct engine_config config = {.shards = manifest->shards,
        .seed = manifest->seed,
        .hot_bytes = ENGINE_HOT_BYTES_MIN};
    struct taking taking = {.it = it, .schema = schema};
    *it = (struct salvage_members){.salvage = salvage,
        .reader = {.disk = salvage->disk,
            .logger = salvage->logger,
            .images = &manifest->images}};
    int err = engine_create(&config, &it->engine);
    if (err != 0) {
        return err;
    }
    it->ids = (struct member_ids){
        .engine = it->engine, .manifest = manifest, .with_counts = true};
    if (member_ids_has(schema)) {
        taking.err = each_segment(salvage, 0, take_segment, &taking);
        images_each(&manifest->images, take_image, &taking);
    }
    return taking.err;
}

void
salvage_members_fini(struct salvage_members *it)
{
    member_ids_fini(&it->ids);
    recover_reader_fini(&it->reader);
    engine_destroy(&it->engine);
    buf_fini(&it->bytes);
}

/* ---- the log ---- */

/* True of a cell that means nothing where ids have other shards. */
static bool
is_void(const struct recover_schema *recover, uint32_t serial)
{
    const struct recover_place *place =
        serial < recover->n_places ? &recover->place[serial] : NULL;
    const struct schema_counter *counter =
        place == NULL ? NULL : place->counter;
    if (counter == NULL || counter->members_of != 0) {
        return counter != NULL;
    }
    const struct schema_column *column = schema_column_of(counter, serial);
    const struct schema_column *by =
        column == NULL ? NULL : schema_counted_by(counter, column);
    return column != NULL &&
        (column->kind == SCHEMA_MEMBERS ||
            (by != NULL && by->kind == SCHEMA_MEMBERS));
}

/* What is left of cells, behind those written before in the same batch. */
static void
put_rest(struct salvage_members *it, const struct recover_schema *recover,
    const struct entry_cells *cells, bool is_first, struct buf *out)
{
    uint8_t bytes[ENTRY_HEAD_BYTES_MAX +
        SCHEMA_COLUMNS_MAX * ENTRY_CELL_BYTES_MAX];
    struct entry_cells rest = {.id = cells->id};
    for (unsigned i = 0; i < cells->n; i++) {
        if (!is_void(recover, cells->serial[i])) {
            rest.serial[rest.n] = cells->serial[i];
            rest.value[rest.n++] = cells->value[i];
        }
    }
    it->has_before = it->has_before && !is_first;
    it->n_left_out += rest.n < cells->n;
    if (rest.n > 0) {
        buf_add(out, bytes,
            entry_put_columns(bytes, rest.id, rest.n, rest.serial, rest.value,
                it->has_before ? &it->before : NULL));
        it->has_before = true;
        it->before = rest.id;
    }
}

int
salvage_members_take(struct salvage_members *it,
    const struct recover_schema *recover, const struct entry_cells *cells,
    uint64_t seq, bool is_first, struct buf *out, bool *is_put)
{
    *is_put = it->salvage->is_made_anew;
    if (*is_put) {
        put_rest(it, recover, cells, is_first, out);
        return 0;
    }
    return member_ids_take_cells(&it->ids, recover, cells, seq);
}

/* ---- behind it ---- */

/* Writes what has come together as a batch of its own. */
static int
end_batch(struct salvage_members *it)
{
    struct rewrite *rewrite = it->rewrite;
    int err = 0;
    if (it->bytes.failed) {
        return ERR_NO_MEMORY;
    }
    if (it->bytes.len > 0) {
        uint64_t seq =
            rewrite->next_seq > it->seq ? rewrite->next_seq : it->seq;
        /* those that are lost may have had numbers behind the last */
        seq += it->has_batch ? 0 : REPLAY_SEQ_GAP;
        it->has_batch = true;
        err = rewrite_add(rewrite, seq, seq - 1,
            (const uint8_t *)it->bytes.data, (uint32_t)it->bytes.len);
    }
    buf_clear(&it->bytes);
    return err;
}

static int
put_cell(
    struct salvage_members *it, uint32_t serial, uint64_t id, uint64_t value)
{
    uint8_t bytes[ENTRY_HEAD_BYTES_MAX + ENTRY_CELL_BYTES_MAX];
    buf_add(&it->bytes, bytes, entry_put_cell(bytes, id, serial, value, NULL));
    return it->bytes.len < PIECE_BYTES ? 0 : end_batch(it);
}

/* The counter that has that column. */
static const struct schema_counter *
counter_of(const struct schema *schema, uint32_t serial)
{
    for (unsigned slot = 0; slot < SCHEMA_COUNTERS_MAX; slot++) {
        const struct schema_counter *counter = schema_counter_at(schema, slot);
        if (counter != NULL && schema_column_of(counter, serial) != NULL) {
            return counter;
        }
    }
    return NULL;
}

/* The column that is counted by the one of that serial. */
static struct member_ids_column *
counted_by(struct salvage_members *it, uint32_t serial)
{
    size_t i = 0;
    while (i < it->ids.n && it->ids.column[i].counts != serial) {
        i++;
    }
    return i == it->ids.n ? NULL : &it->ids.column[i];
}

static int
mend_count(void *context, uint32_t serial, uint64_t id, uint64_t n_members)
{
    struct salvage_members *it = context;
    struct member_ids_column *column = counted_by(it, serial);
    const struct schema_counter *counter = counter_of(it->schema, serial);
    ASSERT(column != NULL && counter != NULL);
    it->n_counts++;
    return member_ids_is_covered(&it->ids, counter, id) &&
            latest_find(&column->here, id) == NULL
        ? latest_add(&column->mend, id, n_members)
        : put_cell(it, serial, id, n_members);
}

/* Where the record's change is lost that gave its members up, it has them. */
static int
mend_wrong(void *context, uint32_t serial, uint64_t pair_id)
{
    struct salvage_members *it = context;
    it->n_notes++;
    return put_cell(it, serial, pair_id, 0);
}

/* ---- whole records ---- */

/* Records of a segment, with counts that are to be others. */
struct mending {
    struct salvage_members *it;
    const struct schema_counter *counter;
};

/* What a record has in a column of its segment; true where it is to be another
 * than there. */
static bool
take_value(const struct mending *mending, const struct segment_column *column,
    uint64_t id, uint64_t code, uint64_t *value)
{
    struct member_ids_column *known = counted_by(mending->it, column->serial);
    const struct latest_one *count =
        known == NULL ? NULL : latest_find(&known->mend, id);
    *value = bytes_of_code(code, column->default_value);
    if (count != NULL) {
        *value = count->value;
    }
    return count != NULL;
}

/* Tells all of record i, where it is one of those. */
static int
mend_record(void *context, const struct segment_head *head,
    const struct segment_records *some, size_t i)
{
    const struct mending *mending = context;
    uint8_t bytes[ENTRY_HEAD_BYTES_MAX +
        SCHEMA_COLUMNS_MAX * ENTRY_CELL_BYTES_MAX];
    uint32_t serial[SCHEMA_COLUMNS_MAX];
    uint64_t value[SCHEMA_COLUMNS_MAX];
    struct buf *out = &mending->it->bytes;
    unsigned n = 0;
    bool is_mended = false;
    for (unsigned c = 0; c < head->n_columns; c++) {
        const struct segment_column *column = &head->column[c];
        if (schema_column_of(mending->counter, column->serial) != NULL) {
            is_mended |= take_value(
                mending, column, some->id[i], some->code[c][i], &value[n]);
            serial[n++] = column->serial;
        }
    }
    if (!is_mended) {
        return 0;
    }
    buf_add(out, bytes,
        entry_put_columns(bytes, some->id[i], n, serial, value, NULL));
    return out->len < PIECE_BYTES ? 0 : end_batch(mending->it);
}

static int
mend_segment(void *context, struct segment *segment,
    const struct manifest_segment *const *part, size_t n)
{
    struct mending *mending = context;
    (void)part;
    (void)n;
    int err = member_ids_each_record(
        &mending->it->ids, mending->counter, segment, mend_record, mending);
    segment_close(&segment);
    return err;
}

/* Of all counters. */
static int
mend_records(struct salvage_members *it)
{
    int err = 0;
    bool any[SCHEMA_COUNTERS_MAX] = {false};
    for (size_t i = 0; i < it->ids.n; i++) {
        struct member_ids_column *column = &it->ids.column[i];
        if (column->mend.n > 0) {
            any[counter_of(it->schema, column->serial)->slot] = true;
            latest_sort(&column->mend);
        }
    }
    for (unsigned slot = 0; err == 0 && slot < SCHEMA_COUNTERS_MAX; slot++) {
        struct mending mending = {it, schema_counter_at(it->schema, slot)};
        if (any[slot]) {
            err = each_segment(
                it->salvage, mending.counter->serial, mend_segment, &mending);
        }
    }
    return err;
}

/* The mark above the largest number of a shard. */
static int
put_mark(struct salvage_members *it, const struct schema_column *column,
    uint32_t serial, unsigned shard, uint64_t number)
{
    unsigned bits = (unsigned)__builtin_ctz(it->salvage->manifest.shards);
    uint64_t mark = number - number % MARK_NUMBERS + MARK_NUMBERS;
    uint64_t row = mark << column->member_bits;
    if (row >> column->member_bits != mark || row << bits >> bits != row) {
        return 0; /* it had none */
    }
    return put_cell(it, serial, engine_id(it->engine, shard, row), 1);
}

/* Of all columns of members. */
static int
each_column(struct salvage_members *it, const struct schema *schema,
    int (*column_fn)(struct salvage_members *it,
        const struct schema_column *column,
        const struct schema_counter *pairs))
{
    int err = 0;
    for (unsigned slot = 0; err == 0 && slot < SCHEMA_COUNTERS_MAX; slot++) {
        const struct schema_counter *pairs = schema_counter_at(schema, slot);
        if (pairs != NULL && pairs->members_of != 0) {
            err = column_fn(it, schema_members(schema, pairs), pairs);
        }
    }
    return err;
}

static int
put_marks(struct salvage_members *it, const struct schema_column *column,
    const struct schema_counter *pairs)
{
    const struct member_ids_column *known =
        member_ids_find(&it->ids, column->serial);
    int err = 0;
    for (unsigned shard = 0; err == 0 && shard < it->salvage->manifest.shards;
         shard++) {
        if (known->largest[shard] != 0) {
            err = put_mark(it, column, pairs->column[0].serial, shard,
                known->largest[shard]);
        }
    }
    return err;
}

static void
say(struct salvage_members *it, const struct buf *found)
{
    struct salvage *salvage = it->salvage;
    if (it->n_counts > 0) {
        salvage__say(salvage,
            "%" PRIu64 " counts of members are made those of what is left",
            it->n_counts);
        salvage->is_lossy = true;
    }
    if (it->n_notes > 0) {
        salvage__say(salvage,
            "%" PRIu64 " records have their members back: that they were "
            "given up is lost",
            it->n_notes);
        salvage->is_lossy = true;
    }
    for (size_t at = 0; at < found->len;) { /* lines as of --check */
        const char *line = found->data + at;
        size_t n =
            (size_t)((char *)memchr(line, '\n', found->len - at) - line);
        salvage__say(salvage, "%.*s", (int)n, line);
        at += n + 1;
    }
    if (it->n_left_out > 0) {
        salvage__say(salvage,
            "log: %" PRIu64 " changes of members are left out, since nothing "
            "says in which shards they were: no record has members any more",
            it->n_left_out);
        salvage->is_lossy = true;
    }
}

int
salvage_members_end(struct salvage_members *it, const struct schema *schema,
    struct rewrite *rewrite, uint64_t max_seq)
{
    const struct member_check check = {.members = &it->ids,
        .schema = schema,
        .reader = &it->reader,
        .disk = it->salvage->disk,
        .logger = it->salvage->logger};
    const struct member_check_mender mender = {
        .context = it, .miscount_fn = mend_count, .wrong_fn = mend_wrong};
    struct buf found = {0};
    int err = 0;
    it->rewrite = rewrite;
    it->schema = schema;
    it->seq = max_seq + 1;
    if (member_ids_has(schema) && !it->salvage->is_made_anew) {
        err = member_ids_know(&it->ids, schema);
        err = err == 0 ? member_ids_sort(&it->ids) : err;
        err = err == 0 ? member_check(&check, &found, &mender) : err;
        /* that is what is being mended */
        err = err == ERR_CORRUPT ? 0 : err;
        err = err == 0 ? mend_records(it) : err;
        err = err == 0 ? each_column(it, schema, put_marks) : err;
        err = err == 0 ? end_batch(it) : err;
    }
    if (err == 0) {
        say(it, &found);
    }
    buf_fini(&found);
    return err;
}
