/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of ids, in a store on a fake disk: whoever was told of a change of a
 * name finds it under that name after every kind of end, and no number has the
 * records of a name that it had before; checkpoints write what has changed;
 * damage is seen, and a salvage leaves what a start takes. */
#include "durable/durable_naming.h"
#include "engine/marks.h"
#include "names/names.h"
#include "offline/data_check.h"
#include "offline/dump.h"
#include "offline/salvage.h"
#include "store/store_real.h"
#include "unit/durable_help.h"
#include "wal/names.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { NAMES = 6000, PENDING_MAX = 6 };

static const char *const lines[] = {"add counter page",
    "add column page url primarykey=text", "add column page views max=32"};

/* What a name's value may be: where `is_known`, value; else also one of
 * pending, from what was not acknowledged. */
struct state {
    uint32_t value;
    uint32_t pending[PENDING_MAX];
    uint8_t n_pending;
};

struct model {
    struct rig rig;
    struct cell_key key;
    uint32_t last;
    struct state state[NAMES];
};

static size_t
name_of(unsigned i, char *out)
{
    static const char *const form[] = {"https://example.com/list/page-%u.html",
        "somebody.%u@mail.example.org", "%025u", "\xc3\xa4%u-long-enough",
        "short%u", "0%u-f47ac10b-58cc-4372-a567-0e02b2c3d479", "{%u}.{dots}."};
    return (size_t)snprintf(out, NAME_BYTES_MAX, form[i % COUNT_OF(form)], i);
}

static struct names *
names_of(struct model *model)
{
    return model->rig.store->names;
}

/* What is done with the dictionary of each shard, under its lock: the gardener
 * works on it, too. */
struct each {
    struct names *names;
    uint64_t n; /* names, or tables of symbols */
};

static void
do_each(struct model *model, void (*fn)(void *context, unsigned shard),
    struct each *each)
{
    struct engine *engine = ((struct real_store *)model->rig.store)->engine;
    *each = (struct each){.names = names_of(model)};
    for (unsigned i = 0; i < each->names->config.shards; i++) {
        engine_hold(engine, i, fn, each);
    }
}

static void
verify(void *context, unsigned shard)
{
    struct each *each = context;
    dict_verify(names_dict(each->names, shard));
}

static void
count(void *context, unsigned shard)
{
    struct each *each = context;
    each->n += dict_counts(names_dict(each->names, shard)).names;
}

/* Unless the gardener has done so. */
static void
learn(void *context, unsigned shard)
{
    struct each *each = context;
    struct dict *dict = names_dict(each->names, shard);
    uint8_t image[NAME_IMAGE_BYTES_MAX];
    if (dict_wants_table(dict)) {
        ck_assert_int_eq(dict_learn(dict), 0);
    }
    each->n += dict_image_table(dict, 1, image) > 0;
}

/* Opened, or opened anew. */
static void
look_up_column(struct model *model)
{
    const struct schema_counter *counter =
        schema_counter_at(quiet_schema(model->rig.store), 0);
    ck_assert_ptr_nonnull(counter);
    ck_assert(counter->key_is_text);
    model->key = (struct cell_key){.counter = counter->slot,
        .column = counter->column[0].slot,
        .serial = counter->column[0].serial};
}

static void
start(struct model *model, enum wal_sync sync, uint64_t seed)
{
    memset(model, 0, sizeof *model);
    rig_init(&model->rig, sync, ID_SEQUENTIAL, seed);
    ck_assert_int_eq(rig_open(&model->rig), 0);
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        ck_assert_int_eq(rig_edit(&model->rig, lines[i]), 0);
    }
    look_up_column(model);
}

static void
note(struct state *state, uint32_t value, bool is_told)
{
    if (is_told) {
        *state = (struct state){.value = value};
    } else if (state->n_pending < PENDING_MAX) {
        state->pending[state->n_pending++] = value;
    }
}

struct gone {
    struct model *model;
    uint64_t id;
    uint32_t number;
};

/* As the gardener does it. */
static void
drop_held(void *context, unsigned shard)
{
    struct gone *gone = context;
    struct real_store *real = (struct real_store *)gone->model->rig.store;
    struct cell_key key = gone->model->key;
    uint64_t value;
    uint8_t state;
    key.id = gone->id;
    engine_get(real->engine, &key, 1, &value, &state);
    if (state == CELL_DEFAULT) {
        (void)names_drop(real->store.names, shard, gone->number);
    }
}

static void
drop(struct model *model, uint64_t id)
{
    struct real_store *real = (struct real_store *)model->rig.store;
    struct gone gone = {.model = model, .id = id};
    struct qsbr_reader reader;
    unsigned shard;
    uint64_t row;
    engine_row(real->engine, id, &shard, &row);
    reader_begin(model->rig.store, &reader);
    if (own_id_number_of(row,
            (unsigned)__builtin_ctz(real->durable.manifest.shards),
            &gone.number)) {
        engine_hold(real->engine, shard, drop_held, &gone);
    }
    reader_end(model->rig.store, &reader);
}

/* Makes a change of the value of a name; true: it is its own id. */
static bool
make(struct model *model, unsigned i, enum change_op op, uint32_t operand,
    struct change *change, uint64_t *seq)
{
    struct rig *rig = &model->rig;
    char bytes[NAME_BYTES_MAX];
    struct names_ask ask = {.bytes = bytes, .len = name_of(i, bytes)};
    struct engine_name name = {bytes, (uint8_t)ask.len};
    struct store_change call = {.n = 1, .change = change};
    struct qsbr_reader reader;
    *change = (struct change){.op = op,
        .counter = model->key.counter,
        .n_columns = 1,
        .column = {model->key.column},
        .serial = {model->key.serial},
        .operand = {operand}};
    reader_begin(rig->store, &reader);
    names_find(names_of(model), &ask, 1);
    change->id = ask.id;
    change->name = ask.is_own ? NULL : &name;
    ck_assert_int_eq(store_change(rig->store, &call), STORE_DONE);
    reader_end(rig->store, &reader);
    *seq = call.seq;
    change->name = NULL;
    return ask.is_own;
}

/* Sets the value of a name; 0: it goes. */
static void
set(struct model *model, unsigned i, uint32_t value)
{
    struct change change;
    uint64_t seq;
    if (store_fault(model->rig.store) != 0) {
        return;
    }
    bool is_own = make(model, i, value == 0 ? CHANGE_DELETE : CHANGE_SET,
        value, &change, &seq);
    if (change.err != 0) {
        ck_assert_int_eq(change.err, ERR_NOT_FOUND);
        ck_assert_uint_eq(value, 0);
        return;
    }
    note(&model->state[i], value,
        rig_commit(&model->rig, seq) == STORE_COMMITTED);
    if (value == 0 && !is_own) {
        drop(model, change.id);
    }
}

/* Adds to the value of a name, and says what it is then. */
static uint32_t
add(struct model *model, unsigned i, uint32_t delta)
{
    struct change change;
    uint64_t seq;
    (void)make(model, i, CHANGE_INCR, delta, &change, &seq);
    ck_assert_int_eq(change.err, 0);
    ck_assert_int_eq(rig_commit(&model->rig, seq), STORE_COMMITTED);
    model->state[i] = (struct state){.value = (uint32_t)change.value[0]};
    return (uint32_t)change.value[0];
}

static void
work(struct model *model, unsigned n)
{
    uint64_t *random = &model->rig.random;
    for (; n > 0; n--) {
        unsigned i = (unsigned)random_below(random, NAMES);
        bool goes = random_below(random, 3) == 0;
        set(model, i, goes ? 0 : ++model->last);
    }
}

static uint32_t
value_of(struct model *model, unsigned i, bool *found)
{
    char bytes[NAME_BYTES_MAX], back[NAME_ROOM_BYTES];
    struct names_ask ask = {.bytes = bytes, .len = name_of(i, bytes)};
    struct qsbr_reader reader;
    struct cell_key key = model->key;
    uint64_t value;
    reader_begin(model->rig.store, &reader);
    names_find(names_of(model), &ask, 1);
    if (ask.found) {
        size_t len = names_name(names_of(model), ask.id, back);
        ck_assert_uint_eq(len, ask.len);
        ck_assert_mem_eq(back, bytes, len);
    }
    reader_end(model->rig.store, &reader);
    key.id = ask.id;
    ck_assert_int_ne(get_cell(model->rig.store, &key, &value), CELL_GONE);
    *found = ask.found;
    return (uint32_t)value;
}

static void
expect_all(struct model *model)
{
    for (unsigned i = 0; i < NAMES; i++) {
        struct state *state = &model->state[i];
        bool found;
        uint32_t value = value_of(model, i, &found);
        bool is_right = value == state->value;
        for (unsigned k = 0; k < state->n_pending; k++) {
            is_right = is_right || value == state->pending[k];
        }
        EXPECT(is_right || state->n_pending == PENDING_MAX,
            "name %u is %u, not %u", i, value, state->value);
        EXPECT(value == 0 || found, "name %u has a value and no id", i);
        *state = (struct state){.value = value};
    }
    struct each each;
    do_each(model, verify, &each);
}

static void
crash(struct model *model, bool is_power_cut, unsigned tries)
{
    rig_crash(&model->rig, is_power_cut, tries);
    look_up_column(model);
    expect_all(model);
}

static void
finish(struct model *model)
{
    expect_all(model);
    rig_end(&model->rig);
}

START_TEST(test_crashes)
{
    const enum wal_sync modes[] = {WAL_SYNC_INTERVAL, WAL_SYNC_ALWAYS};
    static struct model model;
    for (uint64_t seed = 1; seed <= SWEEP_PART(6); seed++) {
        enum wal_sync sync = modes[seed % COUNT_OF(modes)];
        start(&model, sync, seed);
        for (unsigned round = 0; round < 8; round++) {
            uint64_t *random = &model.rig.random;
            work(&model, 1 + (unsigned)random_below(random, 600));
            if (random_below(random, 2) == 0) {
                ck_assert_int_eq(rig_checkpoint(&model.rig), 0);
            }
            fake_disk_die(
                model.rig.fake, 1 + (unsigned)random_below(random, 60));
            work(&model, 30);
            (void)rig_checkpoint(&model.rig);
            crash(&model,
                sync == WAL_SYNC_ALWAYS && random_below(random, 3) > 0,
                1 + round % 3);
        }
        finish(&model);
    }
}
END_TEST

/* A checkpoint, with names that move between numbers before, beside and behind
 * it, cut short at each call to the disk. */
static bool
cut_checkpoint(unsigned n)
{
    static struct model model;
    start(&model, WAL_SYNC_ALWAYS, n);
    work(&model, 300);
    ck_assert_int_eq(rig_checkpoint(&model.rig), 0);
    work(&model, 60);
    fake_disk_die(model.rig.fake, n);
    work(&model, 4);
    bool is_cut = rig_checkpoint(&model.rig) != 0;
    work(&model, 4);
    crash(&model, n % 3 > 0, 1 + n % 2);
    work(&model, 60);
    ck_assert_int_eq(rig_checkpoint(&model.rig), 0);
    crash(&model, true, 1);
    finish(&model);
    return is_cut;
}

START_TEST(test_cut_checkpoint)
{
    unsigned n = 1;
    while (cut_checkpoint(n)) {
        n = sweep_next(n);
    }
    ck_assert_uint_gt(n, 15);
}
END_TEST

/* What a look at the positions of images does, under the lock of a shard. */
struct position {
    struct durable_naming it;
    const struct images *images;
    unsigned n; /* shards with an image */
};

static void
replay_gone(void *context, unsigned shard)
{
    struct position *position = context;
    struct dict *dict = names_dict(position->it.names, shard);
    struct entry_name gone = {.shard = (uint16_t)shard};
    char name[NAME_ROOM_BYTES];
    if (!dict_next(dict, &gone.number)) {
        return;
    }
    const struct images_entry *image = images_find(position->images, 0,
        durable_naming_shard(position->it.manifest, shard),
        durable_naming_block_row(gone.number / NAME_BLOCK_SLOTS));
    ck_assert_ptr_nonnull(image);
    ck_assert_uint_gt(image->seq, 1);
    for (uint64_t seq = image->seq - 1; seq <= image->seq + 1; seq++) {
        ck_assert_int_eq(durable_naming_replay(&position->it, &gone, seq), 0);
        ck_assert_int_eq(
            dict_name(dict, gone.number, name) > 0, seq <= image->seq);
    }
    position->n++;
}

/* An entry from before an image leaves what the image has: where a salvage has
 * lost what came between, the number would have an older name. */
START_TEST(test_position)
{
    static struct model model;
    struct real_store *real;
    start(&model, WAL_SYNC_ALWAYS, 23);
    work(&model, 500);
    ck_assert_int_eq(rig_checkpoint(&model.rig), 0);
    real = (struct real_store *)model.rig.store;
    struct position position = {.it = durable__naming(&real->durable),
        .images = &real->durable.manifest.images};
    for (unsigned i = 0; i < position.it.names->config.shards; i++) {
        engine_hold(real->engine, i, replay_gone, &position);
    }
    ck_assert_uint_gt(position.n, 0);
    rig_end(&model.rig);
}
END_TEST

/* Tables of symbols are there when blocks want them. */
START_TEST(test_symbols)
{
    static struct model model;
    struct each each;
    start(&model, WAL_SYNC_ALWAYS, 21);
    for (unsigned round = 0; round < 6; round++) {
        for (unsigned i = 0; i < NAMES; i++) {
            if (random_below(&model.rig.random, 3) > 0) {
                set(&model, i, ++model.last);
            }
        }
        do_each(&model, learn, &each);
        work(&model, 500);
        ck_assert_int_eq(rig_checkpoint(&model.rig), 0);
        work(&model, 500);
        crash(&model, true, 1);
    }
    ck_assert_uint_gt(each.n, 0);
    finish(&model);
}
END_TEST

/* A checkpoint without changes writes nothing; one with few little. */
START_TEST(test_only_what_changed)
{
    static struct model model;
    struct rig *rig = &model.rig;
    struct each each;
    start(&model, WAL_SYNC_ALWAYS, 5);
    for (unsigned i = 0; i < NAMES; i++) {
        set(&model, i, ++model.last);
    }
    ck_assert_int_eq(rig_checkpoint(rig), 0);
    uint64_t images = rig_stat(rig, "checkpoint_images");
    ck_assert_uint_gt(images, 0);
    ck_assert_int_eq(rig_checkpoint(rig), 0);
    ck_assert_uint_eq(rig_stat(rig, "checkpoint_images"), images);
    set(&model, 0, 0);
    ck_assert_int_eq(rig_checkpoint(rig), 0);
    ck_assert_uint_le(rig_stat(rig, "checkpoint_images"), images + 3);
    crash(&model, true, 1);
    /* all gone, and nothing is left of them */
    for (unsigned i = 0; i < NAMES; i++) {
        set(&model, i, 0);
    }
    ck_assert_int_eq(rig_checkpoint(rig), 0);
    crash(&model, true, 1);
    do_each(&model, count, &each);
    ck_assert_uint_eq(each.n, 0);
    /* tables of symbols stay */
    ck_assert_uint_le(
        rig_stat(rig, "live_images"), names_of(&model)->config.shards);
    finish(&model);
}
END_TEST

/* What a checkpoint that failed has copied is in the next one. */
START_TEST(test_failed_checkpoint)
{
    static struct model model;
    struct rig *rig = &model.rig;
    start(&model, WAL_SYNC_ALWAYS, 41);
    rig->data.checkpoint_step_bytes = 0; /* all of it is one step */
    ck_assert_int_eq(rig_close(rig), 0);
    ck_assert_int_eq(rig_open(rig), 0);
    work(&model, 500);
    fake_disk_fail_name(rig->fake, FAKE_OPEN, EIO, "checkpoint-");
    ck_assert_int_ne(rig_checkpoint(rig), 0);
    (void)fake_disk_heal(rig->fake);
    rig_wait_writable(rig);
    ck_assert_int_eq(rig_checkpoint(rig), 0);
    crash(&model, true, 1);
    finish(&model);
}
END_TEST

struct look {
    const struct manifest *manifest;
    struct images_entry largest;
};

static void
note_names(void *context, const struct images_entry *entry)
{
    struct look *look = context;
    if (manifest_is_of_names(look->manifest, entry) &&
        entry->len > look->largest.len) {
        look->largest = *entry;
    }
}

static int
check_files(struct rig *rig)
{
    struct buf out = {0};
    int err = data_check_disk(rig->data.disk, &rig->logger, &out);
    buf_add(&out, "", 1);
    ck_assert(err != 0 || strstr(out.data, "\nnames 0\n") == NULL);
    buf_fini(&out);
    return err;
}

/* The largest image of names on the disk, which is closed. */
static struct images_entry
find_image(struct rig *rig, char name[NAMES_BYTES], unsigned *shards)
{
    struct manifest manifest;
    struct look look = {.manifest = &manifest};
    manifest_init(&manifest);
    ck_assert_int_eq(manifest_read(rig->data.disk, &manifest, NULL), 0);
    *shards = manifest.shards;
    images_each(&manifest.images, note_names, &look);
    ck_assert_uint_gt(look.largest.len, 0);
    names_make(name, NAMES_CHECKPOINT, look.largest.file);
    manifest_fini(&manifest);
    return look.largest;
}

/* No name gets what another one had. */
static void
expect_fresh(struct model *model)
{
    for (unsigned i = 0; i < NAMES; i++) {
        uint32_t before = model->state[i].value;
        EXPECT(add(model, i, 5) == before + 5, "name %u is not %u", i,
            before + 5);
    }
}

/* A bit of an image that is another one is found at the start; what cannot be
 * mended is lost, and nothing else. */
START_TEST(test_damage)
{
    static struct model model;
    struct rig *rig = &model.rig;
    char name[NAMES_BYTES];
    struct buf report = {0};
    enum salvage_outcome outcome;
    unsigned shards, n_lost = 0;
    start(&model, WAL_SYNC_ALWAYS, 11);
    work(&model, 1000);
    ck_assert_int_eq(rig_checkpoint(rig), 0);
    work(&model, 100);
    ck_assert_int_eq(rig_close(rig), 0);
    ck_assert_int_eq(check_files(rig), 0);
    struct images_entry image = find_image(rig, name, &shards);
    for (uint64_t at = 0; at < image.len; at += 1 + image.len / 30) {
        uint64_t offset = image.offset + at;
        fake_disk_flip(rig->fake, name, offset, (uint8_t)(1 << at % 8));
        ck_assert_int_eq(rig_open(rig), ERR_CORRUPT);
        ck_assert_int_eq(check_files(rig), ERR_CORRUPT);
        fake_disk_flip(rig->fake, name, offset, (uint8_t)(1 << at % 8));
    }
    fake_disk_flip(rig->fake, name, image.offset + image.len / 2, 0xff);
    const struct salvage_config config = {.disk = rig->data.disk,
        .logger = &rig->logger,
        .free_bytes = UINT64_MAX,
        .shards = shards};
    ck_assert_int_eq(salvage_run(&config, &report, &outcome), 0);
    ck_assert_int_eq(outcome, SALVAGE_LOSSY);
    buf_add(&report, "", 1);
    ck_assert_ptr_nonnull(strstr(report.data, "names of shard"));
    ck_assert_int_eq(check_files(rig), 0);
    ck_assert_int_eq(rig_open(rig), 0);
    look_up_column(&model);
    for (unsigned i = 0; i < NAMES; i++) {
        bool found;
        uint32_t value = value_of(&model, i, &found);
        EXPECT(value == 0 || value == model.state[i].value,
            "name %u is %u, not %u", i, value, model.state[i].value);
        model.state[i].value = value;
        n_lost += !found;
    }
    ck_assert_uint_gt(n_lost, 0);
    expect_fresh(&model);
    work(&model, 300);
    crash(&model, true, 1);
    buf_fini(&report);
    finish(&model);
}
END_TEST

static struct names_ask
ask_for(struct model *model, unsigned i)
{
    char bytes[NAME_BYTES_MAX];
    struct names_ask ask = {.bytes = bytes, .len = name_of(i, bytes)};
    struct qsbr_reader reader;
    reader_begin(model->rig.store, &reader);
    names_find(names_of(model), &ask, 1);
    reader_end(model->rig.store, &reader);
    ask.bytes = NULL;
    return ask;
}

static unsigned
shard_of(struct model *model, unsigned i)
{
    unsigned shard;
    uint64_t row;
    engine_row(((struct real_store *)model->rig.store)->engine,
        ask_for(model, i).id, &shard, &row);
    return shard;
}

struct place {
    struct disk *disk;
    const char *bytes;
    size_t len;
    char file[FAKE_NAME_BYTES]; /* "": not found */
    uint64_t at;
};

static void
look_in_log(void *context, const char *name)
{
    struct place *place = context;
    struct disk *disk = place->disk;
    uint64_t size;
    size_t n;
    int fd;
    if (strncmp(name, "log-", 4) != 0) {
        return;
    }
    ck_assert_int_eq(disk->calls->open(disk, name, DISK_READ, &fd), 0);
    ck_assert_int_eq(disk->calls->size(disk, fd, &size), 0);
    char *all = malloc(size);
    ck_assert_ptr_nonnull(all);
    ck_assert_int_eq(disk->calls->read(disk, fd, all, size, 0, &n), 0);
    disk->calls->close(disk, fd);
    const char *at = memmem(all, n, place->bytes, place->len);
    if (at != NULL) {
        (void)snprintf(place->file, sizeof place->file, "%s", name);
        place->at = (uint64_t)(at - all);
    }
    free(all);
}

/* Destroys the batch of the log that has a name, which stands there once. */
static void
destroy_batch(struct rig *rig, const char *bytes, size_t len)
{
    struct place place = {.disk = rig->data.disk, .bytes = bytes, .len = len};
    place.disk->calls->list(place.disk, look_in_log, &place);
    ck_assert_str_ne(place.file, "");
    for (unsigned i = 0; i < 8; i++) {
        fake_disk_flip(rig->fake, place.file, place.at + i, 0xff);
    }
}

/* It is lost that a name has gone, and it has come again: a salvage leaves it
 * one number, and a start takes that. */
START_TEST(test_twice)
{
    static struct model model;
    struct rig *rig = &model.rig;
    struct buf report = {0};
    enum salvage_outcome outcome;
    char bytes[NAME_BYTES_MAX];
    unsigned other = 0;
    start(&model, WAL_SYNC_ALWAYS, 31);
    set(&model, 0, 1);
    uint64_t first = ask_for(&model, 0).id;
    do {
        other++;
    } while (ask_for(&model, other).is_own ||
        shard_of(&model, other) != shard_of(&model, 0));
    set(&model, 0, 0);
    ck_assert(!ask_for(&model, 0).found);
    set(&model, other, 7); /* its batch has the end of the first, too */
    ck_assert_uint_eq(ask_for(&model, other).id, first);
    set(&model, 0, 3);
    ck_assert_uint_ne(ask_for(&model, 0).id, first);
    ck_assert_int_eq(rig_close(rig), 0);
    destroy_batch(rig, bytes, name_of(other, bytes));
    const struct salvage_config config = {.disk = rig->data.disk,
        .logger = &rig->logger,
        .free_bytes = UINT64_MAX};
    ck_assert_int_eq(salvage_run(&config, &report, &outcome), 0);
    ck_assert_int_eq(outcome, SALVAGE_LOSSY);
    buf_add(&report, "", 1);
    EXPECT(strstr(report.data, "had two numbers") != NULL, "%s", report.data);
    ck_assert_int_eq(check_files(rig), 0);
    ck_assert_int_eq(rig_open(rig), 0);
    look_up_column(&model);
    ck_assert_uint_eq(ask_for(&model, 0).id, first);
    ck_assert(!ask_for(&model, other).found);
    buf_fini(&report);
    for (unsigned i = 0; i < NAMES; i++) {
        bool found;
        model.state[i] = (struct state){.value = value_of(&model, i, &found)};
    }
    work(&model, 100);
    crash(&model, true, 1);
    finish(&model);
}
END_TEST

/* Without a manifest nobody knows where names belong: records have other names
 * then, and no name has another one's record. */
START_TEST(test_lost_manifest)
{
    static struct model model;
    struct rig *rig = &model.rig;
    struct disk *disk;
    struct buf report = {0};
    enum salvage_outcome outcome;
    uint64_t n = 0;
    struct each each;
    start(&model, WAL_SYNC_ALWAYS, 51);
    disk = rig->data.disk;
    work(&model, 1000);
    for (unsigned i = 0; i < NAMES; i++) {
        bool is_own = ask_for(&model, i).is_own;
        n += !is_own && model.state[i].value != 0;
        model.state[i].value = is_own ? model.state[i].value : 0;
    }
    ck_assert_int_eq(rig_close(rig), 0);
    (void)disk->calls->unlink(disk, MANIFEST_COPY);
    ck_assert_int_eq(disk->calls->unlink(disk, MANIFEST_NAME), 0);
    const struct salvage_config config = {.disk = disk,
        .logger = &rig->logger,
        .free_bytes = UINT64_MAX,
        .seed = 999,
        .shards = 8};
    ck_assert_int_eq(salvage_run(&config, &report, &outcome), 0);
    ck_assert_int_eq(outcome, SALVAGE_LOSSY);
    buf_add(&report, "", 1);
    EXPECT(strstr(report.data, "have lost their name") != NULL, "%s",
        report.data);
    ck_assert_int_eq(check_files(rig), 0);
    ck_assert_int_eq(rig_open(rig), 0);
    look_up_column(&model);
    do_each(&model, count, &each);
    ck_assert_uint_ge(each.n, n); /* of some a record may have gone, too */
    expect_fresh(&model);
    crash(&model, true, 1);
    buf_fini(&report);
    finish(&model);
}
END_TEST

static int
take_text(void *context, const char *text, size_t len)
{
    buf_add(context, text, len);
    return 0;
}

/* A dump has each name with the id that its record has, from an image or from
 * the log. */
START_TEST(test_dump)
{
    static struct model model;
    struct rig *rig = &model.rig;
    struct buf out = {0};
    char bytes[NAME_BYTES_MAX], line[2 * NAME_BYTES_MAX];
    uint64_t id[2];
    start(&model, WAL_SYNC_ALWAYS, 3);
    for (unsigned i = 0; i < COUNT_OF(id); i++) {
        set(&model, i, ++model.last);
        ck_assert_int_eq(i > 0 ? 0 : rig_checkpoint(rig), 0);
        struct names_ask ask = ask_for(&model, i);
        ck_assert(ask.found && !ask.is_own);
        id[i] = ask.id;
    }
    set(&model, 4, ++model.last);
    ck_assert_int_eq(rig_close(rig), 0);
    const struct dump_config config = {.disk = rig->data.disk,
        .logger = &rig->logger,
        .write_fn = take_text,
        .context = &out};
    ck_assert_int_eq(dump_run(&config), 0);
    buf_add(&out, "", 1);
    for (unsigned i = 0; i < COUNT_OF(id); i++) {
        size_t len = name_of(i, bytes);
        (void)snprintf(line, sizeof line, "\nname %llu %.*s\n",
            (unsigned long long)id[i], (int)len, bytes);
        EXPECT(strstr(out.data, line) != NULL, "%s", line);
        (void)snprintf(
            line, sizeof line, "page %llu ", (unsigned long long)id[i]);
        EXPECT(strstr(out.data, line) != NULL, "%s: %s", line, out.data);
    }
    EXPECT(strstr(out.data, " short4\n") != NULL, "its own id: %s", out.data);
    buf_fini(&out);
    ck_assert_int_eq(rig_open(rig), 0);
    look_up_column(&model);
    finish(&model);
}
END_TEST

/* An image of names that is damaged: the names of the others are shown. */
START_TEST(test_dump_of_damage)
{
    static struct model model;
    struct rig *rig = &model.rig;
    struct buf out = {0};
    char name[NAMES_BYTES];
    unsigned shards, n = 0;
    start(&model, WAL_SYNC_ALWAYS, 9);
    work(&model, 3000);
    ck_assert_int_eq(rig_checkpoint(rig), 0);
    ck_assert_int_eq(rig_close(rig), 0);
    struct images_entry entry = find_image(rig, name, &shards);
    fake_disk_flip(rig->fake, name, entry.offset + entry.len / 2, 1);
    const struct dump_config config = {.disk = rig->data.disk,
        .logger = &rig->logger,
        .part = DUMP_RECORDS,
        .write_fn = take_text,
        .context = &out};
    ck_assert_int_eq(dump_run(&config), ERR_CORRUPT);
    buf_add(&out, "", 1);
    for (const char *at = out.data; (at = strstr(at, "\nname ")) != NULL;
         at++) {
        n += strstr(at, " https://") != NULL &&
            strstr(at, " https://") < strchr(at + 1, '\n');
    }
    ck_assert_uint_gt(n, 100);
    buf_fini(&out);
    fake_disk_flip(rig->fake, name, entry.offset + entry.len / 2, 1);
    ck_assert_int_eq(rig_open(rig), 0);
    look_up_column(&model);
    finish(&model);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_crashes, test_cut_checkpoint,
        test_failed_checkpoint, test_position, test_symbols,
        test_only_what_changed, test_damage, test_twice, test_lost_manifest,
        test_dump_of_damage, test_dump};
    return run_tests("durable_naming", tests, COUNT_OF(tests));
}
