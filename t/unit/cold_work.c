/* SPDX-License-Identifier: BSD-3-Clause */
/* The cold tier of unit/cold_help.h: as plain as the rules allow. */
#include "unit/cold_help.h"

#include "base/err.h"
#include "cold/segment_write.h"
#include "engine/engine_copy.h"
#include "lib/segment_get.h"
#include "schema/restore.h"
#include "unit/edit_help.h"

enum {
    BLOCK_ROWS = COLD_BLOCK_IDS / COLD_SHARDS,
    SLOT = 0,
    COLUMNS_SEED = 5,
    TABLE_RECORDS = 64
};

#define EXPECT(holds, ...)                                                    \
    do {                                                                      \
        if (!(holds)) {                                                       \
            ck_abort_msg(__VA_ARGS__);                                        \
        }                                                                     \
    } while (0)

/* ---- the seams ---- */

static struct cold_file *
file_at(const struct cold_rig *rig, unsigned shard, uint64_t row)
{
    uint64_t block = row / BLOCK_ROWS;
    return block < COLD_BLOCKS ? rig->map[shard][block] : NULL;
}

static const struct cold_rig *
of_cover(const struct engine_cover *cover)
{
    return (const struct cold_rig *)((const char *)cover -
        offsetof(struct cold_rig, cover));
}

static uint64_t
version_of(const struct engine_cover *cover, unsigned slot, unsigned shard,
    uint64_t row)
{
    const struct cold_rig *rig = of_cover(cover);
    const struct cold_file *file =
        slot == SLOT ? file_at(rig, shard, row) : NULL;
    if (file == NULL) {
        return 0;
    }
    return rig->is_loading ? ENGINE_COVER_LOADING : file->number;
}

static bool
any_of(const struct engine_cover *cover, unsigned slot, unsigned shard,
    uint64_t first_row, uint64_t last_row)
{
    for (uint64_t row = first_row;
         row <= last_row && row < BLOCK_ROWS * COLD_BLOCKS; row++) {
        if (version_of(cover, slot, shard, row) != 0) {
            return true;
        }
    }
    return false;
}

static struct cold_file *
add_file(struct cold_rig *rig, uint64_t number, struct segment *segment)
{
    struct cold_file *file = calloc(1, sizeof *file);
    EXPECT(file != NULL && rig->n_files < COLD_FILES_MAX, "too many files");
    file->number = number;
    file->segment = segment;
    rig->file[rig->n_files++] = file;
    return file;
}

static int
take_file(struct durable_segments *segment_map, struct segment *segment,
    const struct manifest_segment *const *part, size_t n)
{
    struct cold_rig *rig = (struct cold_rig *)segment_map;
    struct cold_file *file = add_file(rig, part[0]->number, segment);
    memcpy(file->seq, part[0]->seq, sizeof file->seq);
    for (size_t i = 0; i < n; i++) {
        EXPECT(part[i]->number == file->number && part[i]->counter == SLOT,
            "parts of different files");
        ck_assert_mem_eq(part[i]->seq, file->seq, sizeof file->seq);
        for (uint64_t id = part[i]->first_id; id <= part[i]->last_id;
             id += COLD_BLOCK_IDS) {
            unsigned block = (unsigned)(id / COLD_BLOCK_IDS);
            EXPECT(rig->settled[block] == NULL, "a block covered twice");
            rig->settled[block] = file;
            for (unsigned s = 0; s < COLD_SHARDS; s++) {
                rig->map[s][block] = file;
            }
        }
    }
    return 0;
}

static void
drop_counter(struct durable_segments *segment_map, unsigned slot)
{
    struct cold_rig *rig = (struct cold_rig *)segment_map;
    ck_assert_uint_eq(slot, SLOT);
    memset(rig->map, 0, sizeof rig->map);
    memset(rig->settled, 0, sizeof rig->settled);
}

/* Each block by itself: some are parts of one file. */
static int
list_files(struct durable_segments *segment_map, struct segments *out)
{
    struct cold_rig *rig = (struct cold_rig *)segment_map;
    int err = 0;
    for (unsigned i = COLD_BLOCKS; i-- > 0 && err == 0;) {
        struct cold_file *file = rig->settled[i];
        if (file != NULL) {
            const struct segment_head *head = segment_head(file->segment);
            const struct manifest_segment it = {.number = file->number,
                .counter_serial = head->counter_serial,
                .counter = head->counter,
                .first_id = (uint64_t)i * COLD_BLOCK_IDS,
                .last_id = (uint64_t)(i + 1) * COLD_BLOCK_IDS - 1,
                .records = head->records,
                .seq = file->seq};
            err = segments_add(out, &it);
        }
    }
    return err;
}

/* ---- life ---- */

void
cold_init(struct cold_rig *rig, uint64_t seed)
{
    *rig = (struct cold_rig){.segment_map = {.take_fn = take_file,
                                 .drop_fn = drop_counter,
                                 .list_fn = list_files},
        .cover = {.version_fn = version_of, .any_fn = any_of},
        .fake = fake_disk_create(seed),
        .random = seed,
        .data = {.dir = {.dir_fd = -1, .lock_fd = -1},
            .sync = WAL_SYNC_INTERVAL,
            .interval_ms = 1 << 30, /* what is synced is said here */
            .log_file_bytes = WAL_FILE_BYTES_MIN,
            .unsynced_bytes_max = 1 << 20,
            .retry_ms = 1,
            .idle_ms = 1 << 30,
            .checkpoint_log_bytes = UINT64_MAX,
            .checkpoint_step_bytes = 500,
            .checkpoint_file_bytes = 1500,
            .threads = 2}};
    rig->data.disk = fake_disk_as_disk(rig->fake);
    rig->data.logger = &rig->logger;
}

void
cold_fini(struct cold_rig *rig)
{
    fake_disk_destroy(&rig->fake);
}

static void
edit(struct cold_rig *rig, const char *line)
{
    const struct schema *old = atomic_load(&rig->schema);
    struct schema *next;
    const struct schema_edit edit = edit_of(line);
    ck_assert_int_eq(schema_apply(old, &edit, &next), 0);
    const struct schema_counter *counter = schema_counter_at(next, SLOT);
    mutex_lock(&rig->durable.edit_lock);
    ck_assert_int_eq(engine_define(rig->engine, counter), 0);
    uint64_t seq =
        durable_log_counter(&rig->durable, counter, schema_last_serial(next));
    atomic_store(&rig->schema, next);
    mutex_unlock(&rig->durable.edit_lock);
    struct schema *gone = (struct schema *)old;
    schema_destroy(&gone);
    ck_assert_int_eq(wal_sync_up_to(rig->durable.wal, seq), 0);
}

static void
find_columns(struct cold_rig *rig)
{
    const struct schema *schema = atomic_load(&rig->schema);
    if (schema_counter_at(schema, SLOT) == NULL) {
        edit(rig, "add counter c");
        edit(rig, "add column c id primarykey");
        edit(rig, "add column c x max=64");
        edit(rig, "add column c y max=64");
    }
    const struct schema_counter *counter =
        schema_counter_at(atomic_load(&rig->schema), SLOT);
    ck_assert_uint_eq(counter->n_columns, COLD_COLUMNS);
    for (unsigned i = 0; i < COLD_COLUMNS; i++) {
        rig->key[i] = (struct cell_key){.serial = counter->column[i].serial,
            .counter = SLOT,
            .column = counter->column[i].slot};
    }
}

static void
free_all(struct cold_rig *rig)
{
    struct schema *schema = (struct schema *)atomic_load(&rig->schema);
    schema_destroy(&schema);
    schema_destroy(&rig->loading);
    atomic_store(&rig->schema, NULL);
    engine_destroy(&rig->engine);
    producers_fini(&rig->producers);
    qsbr_fini(&rig->qsbr);
    for (; rig->n_files > 0; rig->n_files--) {
        struct cold_file *file = rig->file[rig->n_files - 1];
        segment_close(&file->segment);
        free(file);
    }
    memset(rig->map, 0, sizeof rig->map);
    memset(rig->settled, 0, sizeof rig->settled);
}

static int
load(struct cold_rig *rig, unsigned shards, uint64_t seed)
{
    const struct engine_config config = {.shards = shards,
        .seed = seed,
        .hot_bytes = ENGINE_HOT_BYTES_MIN,
        .qsbr = &rig->qsbr,
        .table_records_max = TABLE_RECORDS};
    ck_assert_int_eq(engine_create(&config, &rig->engine), 0);
    rig->is_loading = true;
    ck_assert_int_eq(
        producers_init(&rig->producers, shards, 1, &rig->durable), 0);
    rig->durable.producers = &rig->producers;
    rig->durable.segment_map = &rig->segment_map;
    engine_set_cover(rig->engine, &rig->cover);
    rig->loading = schema_create();
    int err = durable_schema(&rig->durable, &rig->loading);
    if (err == 0) {
        err = durable_load(
            &rig->durable, rig->engine, &rig->qsbr, &rig->loading);
    }
    rig->is_loading = false;
    return err;
}

int
cold_open(struct cold_rig *rig)
{
    unsigned shards = COLD_SHARDS;
    uint64_t seed = COLUMNS_SEED;
    int err = durable_open(&rig->durable, &rig->data, &shards, &seed);
    if (err != 0) {
        return err;
    }
    qsbr_init(&rig->qsbr);
    err = load(rig, shards, seed);
    if (err == 0 && wal_fault(rig->durable.wal) != 0) {
        err = wal_fault(rig->durable.wal);
    }
    if (err != 0) {
        (void)durable_close(&rig->durable);
        free_all(rig);
        return err;
    }
    atomic_store(&rig->schema, rig->loading);
    rig->loading = NULL;
    ck_assert_int_eq(
        checkpointer_start(&rig->checkpointer, &rig->durable, &rig->schema),
        0);
    if (!fake_disk_is_dead(rig->fake)) {
        find_columns(rig);
    }
    engine_verify(rig->engine);
    return 0;
}

int
cold_close(struct cold_rig *rig, bool at_end)
{
    (void)checkpointer_stop(&rig->checkpointer, at_end);
    engine_set_sink(rig->engine, NULL);
    int err = durable_close(&rig->durable);
    free_all(rig);
    return err;
}

/* ---- reads and changes ---- */

/* The record in the segment that covers it; not there where nothing does. 0, or
 * what the disk refused. */
static int
read_cold(const struct cold_rig *rig, uint64_t id, struct engine_base *base)
{
    static struct segment_room room;
    uint64_t code[1][SCHEMA_COLUMNS_MAX];
    unsigned shard;
    uint64_t row;
    engine_row(rig->engine, id, &shard, &row);
    const struct cold_file *file = file_at(rig, shard, row);
    *base = (struct engine_base){.id = id};
    if (file == NULL) {
        return false;
    }
    const struct segment_head *head = segment_head(file->segment);
    base->version = file->number;
    base->n_columns = head->n_columns;
    int err = segment_get(file->segment, &room, &id, 1, code, &base->is_there);
    if (err != 0) {
        return err;
    }
    for (unsigned c = 0; c < head->n_columns; c++) {
        base->serial[c] = head->column[c].serial;
        base->code[c] = code[0][c];
    }
    return 0;
}

static void
read_record(
    const struct cold_rig *rig, uint64_t id, uint64_t out[COLD_COLUMNS])
{
    struct cell_key key[COLD_COLUMNS];
    uint8_t state[COLD_COLUMNS];
    struct engine_found found;
    struct engine_base base;
    for (unsigned i = 0; i < COLD_COLUMNS; i++) {
        key[i] = rig->key[i];
        key[i].id = id;
    }
    engine_look(rig->engine, key, COLD_COLUMNS, out, state, &found);
    if (!found.is_here) {
        int err = read_cold(rig, id, &base);
        EXPECT(err == 0, "a segment cannot be read: %s", err_text(err));
        EXPECT(found.version == base.version, "another version");
        for (unsigned i = 0; i < COLD_COLUMNS; i++) {
            for (unsigned c = 0; base.is_there && c < base.n_columns; c++) {
                out[i] =
                    base.serial[c] == key[i].serial ? base.code[c] : out[i];
            }
        }
    }
}

void
cold_judge(struct cold_rig *rig)
{
    engine_verify(rig->engine);
    for (uint64_t id = 0; id < COLD_IDS; id++) {
        uint64_t found[COLD_COLUMNS];
        read_record(rig, id, found);
        bool is_right = memcmp(found, rig->value[id], sizeof found) == 0;
        bool is_before = rig->has_doubt && id == rig->doubt_id &&
            memcmp(found, rig->before, sizeof found) == 0;
        EXPECT(is_right || is_before, "id %d is %llu %llu, must be %llu %llu",
            (int)id, (unsigned long long)found[0],
            (unsigned long long)found[1],
            (unsigned long long)rig->value[id][0],
            (unsigned long long)rig->value[id][1]);
        memcpy(rig->value[id], found, sizeof found);
    }
    rig->has_doubt = false;
}

static uint64_t
do_change(struct cold_rig *rig, struct change *change)
{
    struct engine_base base;
    uint64_t seq = engine_change(rig->engine, change, 1);
    int err = change->err == ERR_COLD ? read_cold(rig, change->id, &base) : 0;
    if (err != 0) {
        change->err = err;
    } else if (change->err == ERR_COLD) {
        change->base = &base;
        seq = engine_change(rig->engine, change, 1);
        EXPECT(change->err != ERR_COLD, "refused with its base");
        change->base = NULL;
    }
    return seq;
}

bool
cold_change(struct cold_rig *rig, uint64_t id, enum change_op op,
    unsigned first, unsigned n, const uint64_t *operand)
{
    struct change change = {
        .id = id, .op = op, .counter = SLOT, .n_columns = (uint8_t)n};
    if (wal_fault(rig->durable.wal) != 0 || rig->has_doubt) {
        return false;
    }
    for (unsigned i = 0; i < n; i++) {
        change.column[i] = rig->key[first + i].column;
        change.serial[i] = rig->key[first + i].serial;
        change.operand[i] = operand[i];
    }
    uint64_t seq = do_change(rig, &change);
    if (change.err != 0) {
        EXPECT(change.err == ERR_NOT_FOUND || change.err == ERR_DISK, "%s",
            err_text(change.err));
        return change.err == ERR_NOT_FOUND;
    }
    rig->doubt_id = id;
    memcpy(rig->before, rig->value[id], sizeof rig->before);
    for (unsigned i = 0; i < n; i++) {
        rig->value[id][first + i] = change.value[i];
    }
    rig->has_doubt =
        !rig->is_lazy && wal_sync_up_to(rig->durable.wal, seq) != 0;
    return !rig->has_doubt;
}

bool
cold_work(struct cold_rig *rig, unsigned n)
{
    static const enum change_op ops[] = {CHANGE_INCR, CHANGE_INCR, CHANGE_INCR,
        CHANGE_SET, CHANGE_SET, CHANGE_DECR, CHANGE_DELETE, CHANGE_DELETE};
    uint64_t *random = &rig->random;
    for (unsigned i = 0; i < n; i++) {
        uint64_t id = random_below(random, COLD_IDS);
        unsigned first = (unsigned)random_below(random, COLD_COLUMNS);
        unsigned columns =
            1 + (unsigned)random_below(random, COLD_COLUMNS - first);
        uint64_t operand[COLD_COLUMNS];
        for (unsigned c = 0; c < COLD_COLUMNS; c++) {
            operand[c] = random_below(random, 3) == 0
                ? 0
                : random_below(random, 1 << random_below(random, 20));
        }
        if (!cold_change(rig, id, ops[random_below(random, COUNT_OF(ops))],
                first, columns, operand)) {
            return false;
        }
    }
    return true;
}

/* ---- sealing ---- */

struct sealing {
    struct cold_rig *rig;
    unsigned first, last; /* blocks */
    struct engine_rows rows[COLD_SHARDS];
    size_t at[COLD_SHARDS]; /* of the next row */
    struct cold_file *file; /* NULL: no record is left */
    unsigned shard;
};

/* The record of an id as the engine had it, else as a segment has it; all 0
 * where there is none. */
static int
next_record(struct sealing *it, uint64_t id, uint64_t code[COLD_COLUMNS])
{
    const struct cold_rig *rig = it->rig;
    struct engine_base base;
    unsigned shard;
    uint64_t row;
    engine_row(rig->engine, id, &shard, &row);
    const struct engine_rows *rows = &it->rows[shard];
    size_t at = it->at[shard];
    memset(code, 0, COLD_COLUMNS * sizeof *code);
    if (at < rows->n && rows->row[at] == row) {
        for (unsigned c = 0; c < rows->n_columns; c++) {
            for (unsigned i = 0; i < COLD_COLUMNS; i++) {
                if (rows->serial[c] == rig->key[i].serial) {
                    code[i] = rows->code[c][at];
                }
            }
        }
        it->at[shard]++;
        return 0;
    }
    int err = read_cold(rig, id, &base);
    if (err == 0 && base.is_there) {
        memcpy(code, base.code, COLD_COLUMNS * sizeof *code);
    }
    return err;
}

static int
write_file(struct sealing *it)
{
    struct cold_rig *rig = it->rig;
    const struct segment_write_config config = {
        .disk = rig->data.disk, .codec = BLOCK_PACKED};
    const struct segment_config open_config = {
        .disk = rig->data.disk, .logger = &rig->logger};
    const struct schema_counter *counter =
        schema_counter_at(atomic_load(&rig->schema), SLOT);
    struct segment_head head = {.epoch = rig->durable.epoch,
        .counter_serial = counter->serial,
        .counter = SLOT,
        .n_columns = COLD_COLUMNS};
    struct segment_writer *writer = NULL;
    struct segment *segment;
    uint64_t code[COLD_COLUMNS];
    int err = 0;
    for (unsigned i = 0; i < COLD_COLUMNS; i++) {
        head.column[i] =
            (struct segment_column){rig->key[i].serial, rig->key[i].column, 0};
    }
    for (uint64_t id = (uint64_t)it->first * COLD_BLOCK_IDS;
         err == 0 && id < (uint64_t)(it->last + 1) * COLD_BLOCK_IDS; id++) {
        err = next_record(it, id, code);
        if (err != 0 || (code[0] | code[1]) == 0) {
            continue;
        }
        if (writer == NULL) {
            head.number = durable_next_segment(&rig->durable);
            err = segment_write_begin(&config, &head, &writer);
        }
        err = err == 0 ? segment_write_add(writer, id, code) : err;
    }
    if (err != 0) {
        segment_write_abort(&writer);
        return err;
    }
    if (writer == NULL) {
        return 0;
    }
    err = segment_write_end(&writer, &head);
    if (err == 0) {
        err = segment_open(&open_config, head.epoch, head.number, &segment);
    }
    if (err == 0) {
        it->file = add_file(rig, head.number, segment);
    }
    return err;
}

/* Under the shard's lock. */
static void
publish_shard(void *context)
{
    struct sealing *it = context;
    struct cold_rig *rig = it->rig;
    uint64_t seq = wal_cut(rig->durable.wal);
    if (it->file != NULL) {
        it->file->seq[it->shard] = seq;
    }
    for (unsigned i = it->first; i <= it->last; i++) {
        rig->map[it->shard][i] = it->file;
    }
}

static void
evict(struct sealing *it)
{
    struct cold_rig *rig = it->rig;
    mutex_lock(&rig->durable.edit_lock);
    for (it->shard = 0; it->shard < COLD_SHARDS; it->shard++) {
        ck_assert_int_eq(engine_evict(rig->engine, SLOT, it->shard,
                             &it->rows[it->shard], publish_shard, it),
            0);
    }
    for (unsigned i = it->first; i <= it->last; i++) {
        rig->settled[i] = it->file;
    }
    mutex_unlock(&rig->durable.edit_lock);
}

int
cold_seal(struct cold_rig *rig, unsigned first, unsigned last,
    void (*meanwhile_fn)(struct cold_rig *rig))
{
    struct sealing it = {.rig = rig, .first = first, .last = last};
    for (unsigned s = 0; s < COLD_SHARDS; s++) {
        ck_assert_int_eq(
            engine_copy_range(rig->engine, SLOT, s,
                (uint64_t)first * BLOCK_ROWS,
                (uint64_t)(last + 1) * BLOCK_ROWS - 1, &it.rows[s]),
            0);
    }
    int err = write_file(&it);
    if (err == 0 && meanwhile_fn != NULL) {
        meanwhile_fn(rig);
    }
    if (err == 0) {
        evict(&it);
    }
    for (unsigned s = 0; s < COLD_SHARDS; s++) {
        engine_rows_fini(&it.rows[s]);
    }
    return err;
}

/* ---- what the checkpointer is asked ---- */

static void
comes(struct store_call *call)
{
    ck_assert_int_eq(sem_post(&((struct cold_asked *)call)->come), 0);
}

static void
ask(struct cold_rig *rig, struct cold_asked *asked,
    void (*want_fn)(struct checkpointer *, struct store_checkpoint *))
{
    *asked =
        (struct cold_asked){.call = {.call = {.done_fn = comes}, .err = -1}};
    ck_assert_int_eq(sem_init(&asked->come, 0, 0), 0);
    want_fn(&rig->checkpointer, &asked->call);
}

void
cold_ask(struct cold_rig *rig, struct cold_asked *asked)
{
    ask(rig, asked, checkpointer_want_segments);
}

int
cold_wait(struct cold_asked *asked)
{
    while (sem_wait(&asked->come) != 0) {
    }
    (void)sem_destroy(&asked->come);
    return asked->call.err;
}

int
cold_publish(struct cold_rig *rig)
{
    struct cold_asked asked;
    cold_ask(rig, &asked);
    return cold_wait(&asked);
}

int
cold_checkpoint(struct cold_rig *rig)
{
    struct cold_asked asked;
    ask(rig, &asked, checkpointer_want);
    return cold_wait(&asked);
}

/* ---- the machine ---- */

void
cold_crash(struct cold_rig *rig, bool is_power_cut)
{
    if (!fake_disk_is_dead(rig->fake)) {
        fake_disk_die(rig->fake, 1);
    }
    (void)cold_close(rig, false);
    if (is_power_cut) {
        fake_disk_crash(rig->fake);
    } else {
        fake_disk_revive(rig->fake);
    }
    ck_assert_int_eq(cold_open(rig), 0);
    cold_judge(rig);
}

static void
count_file(void *context, const char *name)
{
    unsigned *n = context;
    uint64_t number;
    bool is_new;
    *n += segment_name_parse(name, &number, &is_new);
}

unsigned
cold_count_files(struct cold_rig *rig)
{
    unsigned n = 0;
    struct disk *disk = rig->data.disk;
    ck_assert_int_eq(disk->calls->list(disk, count_file, &n), 0);
    return n;
}
