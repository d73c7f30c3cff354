/* SPDX-License-Identifier: BSD-3-Clause */
/* Members in a salvage. Where something is lost, the members that are left are
 * counted anew: behind the batches of the new log come some with the counts of
 * the records that say another number.
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
    if (taking->err != 0 || counter == NULL || counter->members_of != 0) {
        return;
    }
    taking->err = recover_read(&taking->it->reader, entry, &image);
    if (taking->err == 0 && counter->serial == image.counter_serial) {
        taking->err =
            member_ids_take_image(&taking->it->ids, counter, entry, &image);
    }
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
    return column != NULL &&
        (column->kind == SCHEMA_MEMBERS || schema_is_counted(counter, column));
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

static int
mend_count(void *context, uint32_t serial, uint64_t id, uint64_t n_members)
{
    struct salvage_members *it = context;
    it->n_counts++;
    return put_cell(it, serial, id, n_members);
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
know(struct salvage_members *it, const struct schema_column *column,
    const struct schema_counter *pairs)
{
    (void)pairs;
    return member_ids_know(&it->ids, column);
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
        .logger = it->salvage->logger};
    struct buf found = {0};
    int err = 0;
    it->rewrite = rewrite;
    it->seq = max_seq + 1;
    if (member_ids_has(schema) && !it->salvage->is_made_anew) {
        err = each_column(it, schema, know);
        err = err == 0 ? member_ids_sort(&it->ids) : err;
        err = err == 0 ? member_check(&check, &found, mend_count, it) : err;
        /* that is what is being mended */
        err = err == ERR_CORRUPT ? 0 : err;
        err = err == 0 ? each_column(it, schema, put_marks) : err;
        err = err == 0 ? end_batch(it) : err;
    }
    if (err == 0) {
        say(it, &found);
    }
    buf_fini(&found);
    return err;
}
