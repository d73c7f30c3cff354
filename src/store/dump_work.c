/* SPDX-License-Identifier: BSD-3-Clause */
/* The dump of a counter for a client, while the server runs.
 *
 * It goes through the ids upwards. Of each range it copies what the engine
 * has, and takes references to the segments that cover it; then it reads these
 * files and merges both, some records at a time, for as long as its client
 * takes. So what it holds is bounded by the range, whatever there is: 8 MB or
 * so of the engine's records, files, and one piece.
 *
 *   from_id          range_last_id                                last_id
 *   |--- the range: copied ---|--- not looked at yet -----------------|
 *
 * While a range is copied the edit_lock is held: nothing is sealed, merged or
 * made hot again meanwhile, no counter dropped, no column added. So a record is
 * in the copy, or in the files that were listed, or in both (and then the copy
 * counts). Without a data directory there is no such lock, and nothing but
 * drops and new columns to be afraid of: the columns are looked at before and
 * after.
 *
 * A table's records are copied under one hold of its shard's lock: they are of
 * one moment. Tables of a range follow one another.
 *
 * A segment's block that cannot be read is left out, and told; the engine's
 * records over it are not. A read takes many blocks, so the first failure only
 * has the same done again block by block.
 *
 * Where only the ids of a rule are wanted the others are passed over as they
 * come out of the merge, before anybody looks for their members.
 *
 * Of a counter with members the records go into a batch first, some hundred;
 * then their members are looked for (dump_members.h), and each record's line is
 * followed by those of its members. A record that has nothing but members has
 * no line: they make all of it.
 *
 *   NEW --> BETWEEN <--> IN_RANGE        BETWEEN, IN_RANGE --> OVER */
#include "store/dump_work.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "base/err.h"
#include "base/steps.h"
#include "tier/seal_pick.h"

#include <stdlib.h>
#include <string.h>

static const unsigned steps[] = {
    [DUMP_WORK_NEW] = STEP_TO(DUMP_WORK_BETWEEN),
    [DUMP_WORK_BETWEEN] =
        STEP_TO(DUMP_WORK_IN_RANGE) | STEP_TO(DUMP_WORK_OVER),
    [DUMP_WORK_IN_RANGE] =
        STEP_TO(DUMP_WORK_BETWEEN) | STEP_TO(DUMP_WORK_OVER),
    [DUMP_WORK_OVER] = 0,
};

void
dump_work__move(struct dump_work *work, enum dump_work_state to)
{
    ASSERT(work->magic == DUMP_WORK_MAGIC);
    ASSERT_STEP(steps, work->state, to);
    work->state = to;
}

static bool
is_over(const struct dump_work *work)
{
    return work->state == DUMP_WORK_OVER;
}

static bool
is_stopping(const struct dump_source *source)
{
    /* relaxed: it only has to be seen some time */
    return atomic_load_explicit(source->is_stopping, memory_order_relaxed);
}

struct dump_work *
dump_work_create(const struct dump_source *source, unsigned slot,
    uint32_t serial, uint64_t first_id, uint64_t last_id)
{
    /* end_of_row takes the low bits for the shard */
    ASSERT(source->n_shards > 0 &&
        (source->n_shards & (source->n_shards - 1)) == 0);
    struct dump_work *work = calloc(1, sizeof *work);
    struct engine_rows *rows = calloc(source->n_shards, sizeof *rows);
    if (work == NULL || rows == NULL) {
        free(work);
        free(rows);
        return NULL;
    }
    for (unsigned i = 0; i < source->n_shards; i++) {
        rows[i].alloc = source->alloc;
    }
    work->magic = DUMP_WORK_MAGIC;
    work->rows = rows;
    work->slot = slot;
    work->serial = serial;
    work->from_id = first_id;
    work->last_id = last_id;
    work->state = first_id > last_id ? DUMP_WORK_OVER : DUMP_WORK_NEW;
    return work;
}

static void
end_range(struct dump_work *work)
{
    seal_merge_fini(&work->merge);
    segment_map_list_destroy(work->list);
    work->list = NULL;
}

void
dump_work_destroy(const struct dump_source *source, struct dump_work **work)
{
    struct dump_work *it = *work;
    if (it == NULL) {
        return;
    }
    ASSERT(it->magic == DUMP_WORK_MAGIC);
    end_range(it);
    for (unsigned i = 0; i < source->n_shards; i++) {
        engine_rows_fini(&it->rows[i]);
    }
    free(it->rows);
    if (it->batch != NULL) {
        dump_members_fini(&it->batch->members);
        free(it->batch);
    }
    it->magic = 0;
    free(it);
    *work = NULL;
}

/* ---- the range ---- */

static void
describe_column(const struct schema *schema,
    const struct schema_counter *counter, unsigned i, enum dump_column *column,
    struct dump_members *members)
{
    const struct schema_column *it = &counter->column[i];
    column[i] = it->kind == SCHEMA_MEMBERS ? DUMP_COLUMN_MEMBERS
        : it->kind == SCHEMA_ABOUT         ? DUMP_COLUMN_NOTHING
        : schema_is_counted(counter, it)   ? DUMP_COLUMN_COUNTS
                                           : DUMP_COLUMN_SHOWN;
    if (it->kind == SCHEMA_MEMBERS) {
        const struct schema_counter *pairs = schema_pairs(schema, it);
        ASSERT(pairs != NULL && pairs->n_columns == 1);
        members->column[members->n_columns++] = (struct dump_members_column){
            it->serial, pairs->column[0].serial, pairs->slot, it->member_bits};
    }
}

/* The counter's columns now, in its order; ERR_GONE where there is no such
 * counter. */
static int
describe(const struct dump_source *source, struct dump_work *work,
    struct segment_head *head, enum dump_column *kind,
    struct dump_members *members)
{
    int err = ERR_GONE;
    members->n_columns = 0;
    *head = (struct segment_head){.counter_serial = work->serial};
    qsbr_online(source->qsbr, source->reader);
    /* seq_cst: as store_schema */
    const struct schema *schema =
        atomic_load_explicit(source->schema, memory_order_seq_cst);
    const struct schema_counter *counter =
        schema_counter_at(schema, work->slot);
    if (counter != NULL && counter->serial == work->serial) {
        ASSERT(counter->n_columns <= SCHEMA_COLUMNS_MAX);
        err = 0;
        work->is_of_names = counter->key_is_text;
        head->n_columns = (uint8_t)counter->n_columns;
        for (unsigned i = 0; i < counter->n_columns; i++) {
            const struct schema_column *column = &counter->column[i];
            head->column[i] = (struct segment_column){
                column->serial, column->slot, column->default_value};
            describe_column(schema, counter, i, kind, members);
        }
    }
    qsbr_offline(source->reader);
    return err;
}

/* Takes the columns as they are at the beginning. */
static int
take_columns(const struct dump_source *source, struct dump_work *work,
    const struct segment_head *head, const enum dump_column *kind,
    const struct dump_members *members)
{
    struct dump_batch *batch = NULL;
    if (members->n_columns > 0 && !work->is_of_ids) {
        batch = calloc(1, sizeof *batch);
        if (batch == NULL) {
            return ERR_NO_MEMORY;
        }
        batch->members = *members;
        batch->members.engine = source->engine;
        batch->members.segment_map = source->segment_map;
        batch->members.rows.alloc = source->alloc;
        batch->members.found_max = source->members_found != 0
            ? source->members_found
            : (uint32_t)DUMP_MEMBERS_FOUND;
        int err = dump_members_init(&batch->members);
        if (err != 0) {
            free(batch);
            return err;
        }
    }
    work->head = *head;
    work->batch = batch;
    for (unsigned i = 0; i < head->n_columns; i++) {
        work->column[i] = kind[i];
        if (dump_column_is_shown(kind[i])) {
            work->shown[work->n_shown++] = head->column[i].serial;
        }
    }
    dump_work__move(work, DUMP_WORK_BETWEEN);
    return 0;
}

/* The columns are those of the beginning. */
static int
check_columns(const struct dump_source *source, struct dump_work *work)
{
    struct segment_head now;
    enum dump_column kind[SCHEMA_COLUMNS_MAX];
    struct dump_members members = {0};
    int err = describe(source, work, &now, kind, &members);
    if (err == 0 && work->state == DUMP_WORK_NEW) {
        err = take_columns(source, work, &now, kind, &members);
    }
    bool is_same = err == 0 && now.n_columns == work->head.n_columns;
    for (unsigned i = 0; is_same && i < now.n_columns; i++) {
        is_same = now.column[i].serial == work->head.column[i].serial;
    }
    return err != 0 ? err : is_same ? 0 : ERR_OTHER_COLUMNS;
}

/* Records of the engine that a range may have, about. */
static uint64_t
range_records(const struct dump_source *source, const struct dump_work *work)
{
    uint64_t n = DUMP_RANGE_BYTES /
        (sizeof(uint64_t) * (UINT64_C(1) + work->head.n_columns));
    if (source->range_records != 0) {
        return source->range_records;
    }
    return n < DUMP_RANGE_MIN ? DUMP_RANGE_MIN : n;
}

/* The last id of the row that has this one. */
static uint64_t
end_of_row(const struct dump_source *source, uint64_t id)
{
    return id | (source->n_shards - 1);
}

/* Where a range that begins at from_id has had enough of the first segment
 * there; UINT64_MAX where there is none. */
static uint64_t
cold_end(const struct dump_source *source, const struct dump_work *work,
    const struct segment_map_list *list)
{
    if (list == NULL || list->n == 0) {
        return UINT64_MAX;
    }
    const struct segment_map_entry *entry = &list->entry[0];
    const struct segment *segment = entry->file->segment;
    ASSERT(entry->first_id <= entry->last_id);
    ASSERT(entry->last_id >= work->from_id); /* the list is clipped */
    uint32_t n = source->range_blocks != 0 ? source->range_blocks
                                           : (uint32_t)DUMP_RANGE_BLOCKS;
    /* none may be left: an entry answers for ids behind the last record */
    uint32_t block = segment_from(segment,
        entry->first_id > work->from_id ? entry->first_id : work->from_id);
    ASSERT(block <= segment_head(segment)->n_blocks);
    if (segment_head(segment)->n_blocks - block <= n) {
        return entry->last_id;
    }
    uint64_t end = end_of_row(source, segment_first_id(segment, block + n));
    return end < entry->last_id ? end : entry->last_id;
}

/* Chooses range_last_id; over where there is nothing from from_id on. */
static int
choose_range(const struct dump_source *source, struct dump_work *work)
{
    ASSERT(work->from_id <= work->last_id);
    const struct seal pick = {.engine = source->engine,
        .n_shards = source->n_shards,
        .chunk = range_records(source, work)};
    struct seal_candidate hot;
    struct segment_map_list *list = NULL;
    bool has_hot = seal_pick_next(&pick, work->slot, work->from_id, &hot);
    int err = source->segment_map == NULL
        ? 0
        : segment_map_list(source->segment_map, work->slot, work->from_id,
              work->last_id, &list);
    if (err != 0) {
        return err;
    }
    bool has_cold = list != NULL && list->n > 0;
    uint64_t end = cold_end(source, work, list);
    segment_map_list_destroy(list);
    if (has_hot && hot.range.last_id < end) {
        end = hot.range.last_id;
    }
    work->range_last_id = end < work->last_id ? end : work->last_id;
    /* it goes on: a range has one id at least */
    ASSERT(work->range_last_id >= work->from_id);
    if (!has_hot && !has_cold) {
        dump_work__move(work, DUMP_WORK_OVER);
    }
    return 0;
}

static int
copy_rows(const struct dump_source *source, struct dump_work *work)
{
    unsigned n = source->n_shards;
    for (unsigned shard = 0; shard < n; shard++) {
        int err = is_stopping(source)
            ? ERR_CLOSED
            : engine_copy_range(source->engine, work->slot, shard,
                  work->from_id / n, work->range_last_id / n,
                  &work->rows[shard]);
        if (err != 0) {
            return err;
        }
        ASSERT(work->rows[shard].n_columns <= SCHEMA_COLUMNS_MAX);
    }
    return 0;
}

static int
take_range(const struct dump_source *source, struct dump_work *work)
{
    if (source->durable != NULL) {
        mutex_assert_held(&source->durable->edit_lock);
    }
    ASSERT(work->list == NULL); /* the range before has been left */
    int err = check_columns(source, work);
    if (err == 0) {
        err = choose_range(source, work);
    }
    if (err != 0 || is_over(work)) {
        return err;
    }
    if (source->segment_map != NULL) {
        err = segment_map_list(source->segment_map, work->slot, work->from_id,
            work->range_last_id, &work->list);
    }
    if (err == 0) {
        err = copy_rows(source, work);
    }
    return err == 0 ? check_columns(source, work) : err;
}

/* Has the merge begin at from_id: of what the engine has, and what is left of
 * the list. */
static int
begin_merge(const struct dump_source *source, struct dump_work *work)
{
    for (unsigned shard = 0; shard < source->n_shards; shard++) {
        struct engine_rows *rows = &work->rows[shard];
        uint32_t n = 0;
        while (n < rows->n &&
            engine_id(source->engine, shard, rows->row[n]) < work->from_id) {
            n++;
        }
        ASSERT(n <= rows->n);
        if (n == 0) { /* there may be no arrays */
            continue;
        }
        rows->n -= n;
        rows->row += n;
        for (unsigned i = 0; i < rows->n_columns; i++) {
            rows->code[i] += n;
        }
    }
    bool is_narrow = work->merge.is_narrow;
    work->merge = (struct seal_merge){.engine = source->engine,
        .rows = work->rows,
        .list = work->list,
        .head = &work->head,
        .is_narrow = is_narrow};
    return seal_merge_init(&work->merge, source->n_shards);
}

static int
begin_range(const struct dump_source *source, struct dump_work *work)
{
    struct durable *durable = source->durable;
    if (durable != NULL) {
        mutex_lock(&durable->edit_lock);
    }
    int err = take_range(source, work);
    if (durable != NULL) {
        mutex_unlock(&durable->edit_lock);
    }
    if (err != 0 || is_over(work)) {
        return err;
    }
    dump_work__move(work, DUMP_WORK_IN_RANGE);
    work->merge.is_narrow = false;
    return begin_merge(source, work);
}

/* ---- records ---- */

/* The list without what comes up to that id. */
static void
cut_list(struct segment_map_list *list, uint64_t last_id)
{
    uint64_t before = 0;
    size_t n = 0;
    for (size_t i = 0; i < list->n; i++) {
        struct segment_map_entry entry = list->entry[i];
        ASSERT(i == 0 || entry.first_id > before);
        before = entry.last_id;
        if (entry.last_id <= last_id) {
            segment_map_file_release(entry.file);
        } else {
            if (entry.first_id <= last_id) {
                entry.first_id = last_id + 1;
            }
            list->entry[n++] = entry;
        }
    }
    list->n = n;
}

/* The merge has met a block that cannot be read. Does all from from_id on
 * again, block by block; where that was so already, leaves it out. */
static int
pass_block(const struct dump_source *source, struct dump_work *work, int err)
{
    const struct seal_merge *merge = &work->merge;
    bool is_told = merge->is_narrow;
    bool has_cut = is_told || work->from_id > 0;
    uint64_t cut = work->from_id - 1; /* no record comes a second time */
    if (merge->scan == NULL || err == ERR_NO_MEMORY) {
        return err;
    }
    if (is_told) {
        ASSERT(merge->at_entry < work->list->n);
        const struct segment_map_entry *entry =
            &work->list->entry[merge->at_entry];
        const struct segment *segment = entry->file->segment;
        const struct segment_head *head = segment_head(segment);
        uint32_t block = segment_scan_failed(merge->scan);
        ASSERT(block < head->n_blocks);
        uint64_t first = segment_first_id(segment, block);
        uint64_t last = head->last_id;
        cut = entry->last_id; /* there is nothing behind the last block */
        if (block + 1 < head->n_blocks) {
            last = segment_first_id(segment, block + 1) - 1;
            /* the block may go on where another file answers */
            cut = last < cut ? last : cut;
        }
        work->bad_first = first < entry->first_id ? entry->first_id : first;
        work->bad_last = last > entry->last_id ? entry->last_id : last;
        ASSERT(work->bad_first <= work->bad_last);
    }
    seal_merge_fini(&work->merge);
    if (has_cut) {
        cut_list(work->list, cut);
    }
    work->merge.is_narrow = true;
    int again = begin_merge(source, work);
    return again != 0 ? again : is_told ? err : 0;
}

static void
add_to_batch(struct dump_work *work, uint64_t id, const uint64_t *code)
{
    struct dump_batch *batch = work->batch;
    unsigned n_numbers = 0, n_shown = 0;
    uint32_t at = batch->n++;
    ASSERT(at < DUMP_MEMBERS_RECORDS);
    batch->id[at] = id;
    batch->is_shown[at] = false;
    for (unsigned i = 0; i < work->head.n_columns; i++) {
        if (work->column[i] == DUMP_COLUMN_MEMBERS) {
            batch->number[at * batch->members.n_columns + n_numbers++] =
                code[i];
        }
        if (!dump_column_is_shown(work->column[i])) {
            continue;
        }
        batch->value[at * work->n_shown + n_shown++] =
            bytes_of_code(code[i], work->head.column[i].default_value);
        bool counts =
            work->column[i] == DUMP_COLUMN_SHOWN || work->shows_counts;
        batch->is_shown[at] = batch->is_shown[at] || (counts && code[i] != 0);
    }
    ASSERT(n_numbers == batch->members.n_columns && n_shown == work->n_shown);
}

/* True where the id is of the rule. One whose name has gone is of none. */
static bool
is_wanted(const struct dump_source *source, const struct dump_work *work,
    uint64_t id)
{
    char name[NAME_ROOM_BYTES];
    if (work->owns == NULL) {
        return true;
    }
    if (!work->is_of_names || source->names == NULL) {
        return owns_has(work->owns, id);
    }
    qsbr_online(source->qsbr, source->reader);
    size_t len = names_name(source->names, id, name);
    qsbr_offline(source->reader);
    return len > 0 && owns_has_name(work->owns, name, len);
}

static void
add_record(const struct dump_source *source, struct dump_work *work,
    uint64_t id, const uint64_t *code)
{
    const struct segment_head *head = &work->head;
    ASSERT(id >= work->from_id && id <= work->range_last_id); /* none twice */
    if (!is_wanted(source, work, id)) {
        work->n_passed++;
        return;
    }
    if (work->batch != NULL) {
        add_to_batch(work, id, code);
        return;
    }
    ASSERT(work->n < DUMP_WORK_RECORDS);
    uint64_t *value = &work->value[(size_t)work->n * work->n_shown];
    for (unsigned i = 0; !work->is_of_ids && i < head->n_columns; i++) {
        if (dump_column_is_shown(work->column[i])) {
            *value++ = bytes_of_code(code[i], head->column[i].default_value);
        }
    }
    work->id[work->n++] = id;
}

/* A piece ends, though it may be empty: others wait for their turn. */
static bool
has_passed_many(const struct dump_work *work)
{
    return work->n_passed >= DUMP_WORK_PASSED;
}

/* Records that have come together, or have been passed over. */
static bool
is_full(const struct dump_work *work)
{
    bool has_many = work->batch == NULL
        ? work->n == DUMP_WORK_RECORDS
        : work->batch->n == DUMP_MEMBERS_RECORDS;
    return has_many || has_passed_many(work);
}

/* The range under way is done with. */
static void
leave_range(struct dump_work *work)
{
    ASSERT(work->range_last_id <= work->last_id);
    bool is_last = work->range_last_id == work->last_id;
    work->from_id = work->range_last_id + 1;
    end_range(work);
    dump_work__move(work, is_last ? DUMP_WORK_OVER : DUMP_WORK_BETWEEN);
}

static int
add_records(const struct dump_source *source, struct dump_work *work)
{
    uint64_t code[SCHEMA_COLUMNS_MAX];
    uint64_t id;
    bool is_end = false;
    while (!is_full(work) && !is_end) {
        int err = seal_merge_next(&work->merge, &id, code, &is_end);
        if (err != 0) {
            err = pass_block(source, work, err);
            if (err != 0) {
                return err;
            }
            is_end = false;
        } else if (!is_end && id > work->range_last_id) {
            is_end = true; /* a row has some ids more */
        } else if (!is_end) {
            add_record(source, work, id, code);
            work->from_id = id + 1; /* 0 behind the last id: see below */
            is_end = id == work->range_last_id;
        }
    }
    if (is_end) {
        leave_range(work);
    }
    return 0;
}

/* ---- members ---- */

/* The line of a batch's next record, where it has one. */
static void
put_record(struct dump_work *work)
{
    struct dump_batch *batch = work->batch;
    uint32_t i = batch->next_record++;
    size_t n = work->n_shown;
    ASSERT(i < batch->n && work->n < DUMP_WORK_RECORDS);
    if (batch->is_shown[i]) {
        for (size_t c = 0; c < n; c++) {
            work->value[work->n * n + c] = batch->value[i * n + c];
        }
        batch->one[work->n] = (struct store_dump_member){0};
        work->id[work->n++] = batch->id[i];
    }
}

static void
put_member(struct dump_work *work, const struct dump_members_one *found)
{
    struct dump_batch *batch = work->batch;
    ASSERT(work->n < DUMP_WORK_RECORDS && found->record < batch->next_record);
    ASSERT(found->column < batch->members.n_columns && found->value != 0);
    batch->one[work->n] =
        (struct store_dump_member){batch->members.column[found->column].serial,
            found->value, found->member};
    work->id[work->n++] = batch->id[found->record];
}

/* Goes on with a batch, until the piece is full or the batch is out. */
static int
put_batch(const struct dump_source *source, struct dump_work *work)
{
    struct dump_batch *batch = work->batch;
    struct dump_members *members = &batch->members;
    while (work->n < DUMP_WORK_RECORDS && !dump_batch_is_out(batch)) {
        const struct dump_members_one *found =
            &members->found[batch->next_found];
        bool has_found = batch->next_found < members->n_found;
        if (has_found && found->record < batch->next_record) {
            put_member(work, found);
            batch->next_found++;
        } else if (has_found || batch->next_record < members->at) {
            put_record(work);
        } else {
            int err =
                is_stopping(source) ? ERR_CLOSED : dump_members_next(members);
            bool goes_on = err == 0 || dump_members_is_of_disk(err);
            int other = goes_on ? check_columns(source, work) : err;
            if (other != 0) {
                return other;
            }
            batch->next_found = 0;
            if (err != 0) {
                work->bad_first = work->bad_last = members->bad_id;
                return err;
            }
        }
    }
    return 0;
}

/* Has a batch begin that has been filled. */
static void
begin_batch(struct dump_batch *batch)
{
    batch->next_record = 0;
    batch->next_found = 0;
    dump_members_begin(&batch->members, batch->n, batch->id, batch->number);
}

/* What there is to be done next of a piece. */
static int
go_on(const struct dump_source *source, struct dump_work *work)
{
    struct dump_batch *batch = work->batch;
    if (!dump_batch_is_out(batch)) {
        return put_batch(source, work);
    }
    if (work->state != DUMP_WORK_IN_RANGE) {
        return begin_range(source, work);
    }
    if (batch != NULL) {
        batch->n = 0;
    }
    int err = add_records(source, work);
    if (batch != NULL) {
        begin_batch(batch);
    }
    return err;
}

/* It is as large as may be. */
static bool
is_piece(const struct dump_work *work)
{
    return work->n == DUMP_WORK_RECORDS ||
        (has_passed_many(work) && dump_batch_is_out(work->batch));
}

int
dump_work_next(const struct dump_source *source, struct dump_work *work)
{
    int err = 0;
    ASSERT(work->magic == DUMP_WORK_MAGIC);
    work->n = 0;
    work->n_passed = 0;
    work->bad_first = work->bad_last = 0;
    while (err == 0 && !is_piece(work) && !dump_work_is_end(work)) {
        err = is_stopping(source) ? ERR_CLOSED : go_on(source, work);
    }
    return err;
}
