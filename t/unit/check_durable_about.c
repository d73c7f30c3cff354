/* SPDX-License-Identifier: BSD-3-Clause */
/* Members of members=about, in a store on a fake disk: whoever was told that
 * one is in finds it after every kind of end, unless its id is below the
 * window, which no end moves; the log is kept for tables without an image, and
 * goes with one; a column that is dropped leaves nothing. */
#include "about/about_priv.h"
#include "durable/durable_about.h"
#include "offline/data_check.h"
#include "offline/salvage.h"
#include "store/store_real.h"
#include "unit/durable_help.h"
#include "wal/names.h"

#include <stdio.h>

enum { MEMBERS_MAX = 20000, BATCH = 16, FULL = 60, YIELDS = 1000 };

static const char *const lines[] = {"add counter post",
    "add column post id max=64 primarykey",
    "add column post seen members=about memory=16777216 error=100"};

struct model {
    struct rig rig;
    uint32_t serial;
    uint64_t next_id;
    struct about_pair told[MEMBERS_MAX]; /* that they are in */
    size_t n_told;
    uint64_t lowest; /* below it nothing need be known */
};

static struct about *
tables_of(struct model *model)
{
    struct real_store *real = (struct real_store *)model->rig.store;
    return abouts_find(real->abouts, model->serial);
}

static struct about_figures
figures_of(struct model *model)
{
    struct about_figures figures;
    struct qsbr_reader reader;
    reader_begin(model->rig.store, &reader);
    about_figures(tables_of(model), &figures);
    reader_end(model->rig.store, &reader);
    return figures;
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
    struct schema_target target;
    ck_assert(schema_find(quiet_schema(model->rig.store), "seen", 4, &target));
    model->serial = target.column->serial;
}

/* Adds n members of new and of older ids; those that are committed have been
 * told. Tables are full with few. */
static void
add(struct model *model, unsigned n)
{
    struct rig *rig = &model->rig;
    struct store_about call = {.n = n};
    struct qsbr_reader reader;
    ck_assert_uint_le(n, BATCH);
    for (unsigned i = 0; i < n; i++) {
        uint64_t back = random_below(&rig->random, 4) == 0
            ? random_below(&rig->random, model->next_id + 1)
            : 0;
        model->next_id += random_below(&rig->random, 3);
        call.key[i] = (struct store_about_key){model->next_id - back,
            random_below(&rig->random, 1 << 30), model->serial};
    }
    if (store_fault(rig->store) != 0) {
        return;
    }
    reader_begin(rig->store, &reader);
    atomic_store(&tables_of(model)->close_at, FULL);
    store_about_add(rig->store, &call);
    reader_end(rig->store, &reader);
    if (rig_commit(rig, call.seq) != STORE_COMMITTED) {
        return;
    }
    for (unsigned i = 0; i < n && model->n_told < MEMBERS_MAX; i++) {
        ck_assert_int_ne(call.state[i], STORE_ABOUT_GONE);
        if (call.state[i] != STORE_ABOUT_BELOW) {
            model->told[model->n_told++] =
                (struct about_pair){call.key[i].id, call.key[i].member};
        }
    }
}

static void
add_many(struct model *model, unsigned n)
{
    for (; n > 0; n--) {
        add(model, 1 + (unsigned)random_below(&model->rig.random, BATCH));
    }
}

static void
expect_all(struct model *model)
{
    struct store_about call = {.n = 1};
    struct qsbr_reader reader;
    struct about_figures figures = figures_of(model);
    ck_assert_uint_le(figures.first_id, model->lowest);
    reader_begin(model->rig.store, &reader);
    for (size_t i = 0; i < model->n_told; i++) {
        call.key[0] = (struct store_about_key){
            model->told[i].id, model->told[i].member, model->serial};
        store_about_get(model->rig.store, &call);
        EXPECT(call.state[0] ==
                (call.key[0].id < figures.first_id ? STORE_ABOUT_BELOW
                                                   : STORE_ABOUT_IN),
            "member %zu of id %llu", i, (unsigned long long)call.key[0].id);
    }
    about_verify(tables_of(model));
    reader_end(model->rig.store, &reader);
}

/* The machine stops; what had been told is there. */
static void
crash(struct model *model, bool is_power_cut, unsigned tries)
{
    model->lowest = figures_of(model).first_id;
    rig_crash(&model->rig, is_power_cut, tries);
    expect_all(model);
}

static void
finish(struct model *model)
{
    model->lowest = figures_of(model).first_id;
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
            add_many(&model, 1 + (unsigned)random_below(random, 40));
            if (random_below(random, 2) == 0) {
                ck_assert_int_eq(rig_checkpoint(&model.rig), 0);
            }
            fake_disk_die(
                model.rig.fake, 1 + (unsigned)random_below(random, 60));
            add_many(&model, 20);
            (void)rig_checkpoint(&model.rig);
            crash(&model,
                sync == WAL_SYNC_ALWAYS && random_below(random, 3) > 0,
                1 + round % 3);
        }
        finish(&model);
    }
}
END_TEST

/* As if there were memory for the tables that are there only: with the next
 * close the lowest one goes. */
static void
fill_window(struct model *model)
{
    while (figures_of(model).tables < ABOUT_TABLES_MIN) {
        add(model, BATCH);
    }
    atomic_store(&tables_of(model)->tables_max, figures_of(model).tables);
}

/* A close, and the checkpoint behind it, cut short at each call to the disk; of
 * a full window, where a table goes with it. */
static bool
cut_close(unsigned n, bool is_full)
{
    static struct model model;
    start(&model, WAL_SYNC_ALWAYS, n);
    add_many(&model, 10);
    if (is_full) {
        fill_window(&model);
    }
    ck_assert_int_eq(rig_checkpoint(&model.rig), 0);
    struct about_figures before = figures_of(&model);
    add_many(&model, 2);
    fake_disk_die(model.rig.fake, n);
    add_many(&model, 9);
    bool is_cut = rig_checkpoint(&model.rig) != 0;
    struct about_figures after = figures_of(&model);
    ck_assert(is_cut || after.closed > before.closed);
    ck_assert(is_cut || (after.forgotten > before.forgotten) == is_full);
    crash(&model, n % 3 > 0, 1 + n % 2);
    add_many(&model, 9);
    ck_assert_int_eq(rig_checkpoint(&model.rig), 0);
    crash(&model, true, 1);
    finish(&model);
    return is_cut;
}

static void
sweep_close(bool is_full)
{
    unsigned n = 1;
    while (cut_close(n, is_full)) {
        n = sweep_next(n);
    }
    ck_assert_uint_gt(n, 20);
}

START_TEST(test_cut_close)
{
    sweep_close(false);
}
END_TEST

START_TEST(test_cut_roll)
{
    sweep_close(true);
}
END_TEST

/* Without being asked a pass writes no table for so little: the log stays for
 * it, no pass comes for what stays, and no start counts it twice. */
START_TEST(test_log_stays)
{
    static struct model model;
    struct rig *rig = &model.rig;
    start(&model, WAL_SYNC_ALWAYS, 5);
    ck_assert_int_eq(rig_checkpoint(rig), 0);
    model.lowest = 0;
    ck_assert_int_eq(rig_close(rig), 0);
    rig->data.checkpoint_log_bytes = 2000;
    ck_assert_int_eq(rig_open(rig), 0);
    uint64_t first = rig_stat(rig, "first_file");
    uint64_t images = rig_stat(rig, "live_images");
    for (uint64_t n = 1; n <= 3; n++) {
        for (unsigned i = 0; i < 20; i++) {
            add(&model, BATCH);
        }
        while (rig_stat(rig, "checkpoints") < n) {
            sched_yield();
        }
    }
    ck_assert_uint_le(rig_stat(rig, "first_file"), first + 1);
    ck_assert_uint_eq(rig_stat(rig, "live_images"), images); /* a head */
    crash(&model, true, 1);
    ck_assert_uint_eq(figures_of(&model).members, 3 * 20 * BATCH);
    rig->data.checkpoint_log_bytes = UINT64_MAX;
    crash(&model, true, 1);
    ck_assert_uint_eq(figures_of(&model).members, 3 * 20 * BATCH);
    ck_assert_int_eq(rig_checkpoint(rig), 0);
    ck_assert_uint_gt(rig_stat(rig, "first_file"), first + 3);
    crash(&model, true, 1);
    ck_assert_uint_eq(figures_of(&model).members, 3 * 20 * BATCH);
    finish(&model);
}
END_TEST

/* A sink of one who is slow to set bits: a checkpoint begins when he has logged
 * them. */
struct slow {
    struct about_sink sink; /* first */
    struct about_sink *inner;
    struct rig *rig;
    struct rig_later later;
};

static uint64_t
log_and_wait(struct about_sink *sink, const struct about_pair *pair, size_t n)
{
    struct slow *slow = (struct slow *)sink;
    uint64_t file = rig_stat(slow->rig, "file");
    uint64_t passes = rig_stat(slow->rig, "checkpoints");
    uint64_t seq = slow->inner->add_fn(slow->inner, pair, n);
    rig_checkpoint_later(slow->rig, &slow->later);
    while (rig_stat(slow->rig, "file") == file) {
        sched_yield();
    }
    /* it must not end now; one that did would, soon */
    for (unsigned i = 0; i < YIELDS; i++) {
        ck_assert_uint_eq(rig_stat(slow->rig, "checkpoints"), passes);
        sched_yield();
    }
    return seq;
}

/* What comes while a checkpoint is made is in its images, or in a file of the
 * log that this keeps, and so it is for the next one. */
START_TEST(test_beside_a_checkpoint)
{
    static struct model model;
    struct rig *rig = &model.rig;
    struct slow slow = {.sink = {.add_fn = log_and_wait}, .rig = rig};
    struct rig_later later;
    start(&model, WAL_SYNC_ALWAYS, 13);
    add(&model, BATCH);
    /* all has been copied when a file is made for it */
    fake_disk_hold_name(rig->fake, FAKE_OPEN, "checkpoint-");
    rig_checkpoint_later(rig, &later);
    fake_disk_wait_held(rig->fake);
    add(&model, 1);
    fake_disk_let_go(rig->fake);
    ck_assert_int_eq(rig_wait(&later), 0);
    ck_assert_int_eq(rig_checkpoint(rig), 0);
    crash(&model, true, 1);
    slow.inner = tables_of(&model)->sink;
    tables_of(&model)->sink = &slow.sink;
    add(&model, 1);
    tables_of(&model)->sink = slow.inner;
    ck_assert_int_eq(rig_wait(&slow.later), 0);
    crash(&model, true, 1);
    finish(&model);
}
END_TEST

/* Less memory, more, and none. */
START_TEST(test_edits)
{
    static struct model model;
    struct rig *rig = &model.rig;
    start(&model, WAL_SYNC_ALWAYS, 9);
    add_many(&model, 150);
    ck_assert_uint_gt(figures_of(&model).tables, 10);
    ck_assert_int_eq(rig_checkpoint(rig), 0);
    ck_assert_int_eq(
        rig_edit(rig, "change column post seen memory=33554432"), 0);
    ck_assert_uint_eq(figures_of(&model).tables_max, 2 * ABOUT_TABLES);
    add_many(&model, 400);
    crash(&model, true, 1);
    ck_assert_uint_eq(figures_of(&model).tables_max, 2 * ABOUT_TABLES);
    ck_assert_uint_gt(figures_of(&model).tables, ABOUT_TABLES);
    ck_assert_int_eq(rig_checkpoint(rig), 0);
    ck_assert_int_eq(
        rig_edit(rig, "change column post seen memory=16777216"), 0);
    ck_assert_uint_eq(figures_of(&model).tables, ABOUT_TABLES);
    crash(&model, true, 1);
    ck_assert_uint_eq(figures_of(&model).tables, ABOUT_TABLES);
    ck_assert_int_eq(rig_edit(rig, "drop column post seen seen"), 0);
    ck_assert_ptr_null(tables_of(&model));
    ck_assert_int_eq(rig_checkpoint(rig), 0);
    ck_assert_uint_eq(rig_stat(rig, "live_images"), 0);
    rig_crash(rig, true, 1);
    ck_assert_ptr_null(tables_of(&model));
    rig_end(rig);
}
END_TEST

/* The name of a checkpoint file that is there. */
struct found {
    char name[FAKE_NAME_BYTES];
};

static void
note_name(void *context, const char *name)
{
    struct found *found = context;
    if (strncmp(name, "checkpoint-", 11) == 0) {
        (void)snprintf(found->name, sizeof found->name, "%s", name);
    }
}

static uint64_t
bytes_of(struct disk *disk, const char *name)
{
    uint64_t bytes = 0;
    int fd;
    ck_assert_int_eq(disk->calls->open(disk, name, DISK_READ, &fd), 0);
    ck_assert_int_eq(disk->calls->size(disk, fd, &bytes), 0);
    disk->calls->close(disk, fd);
    return bytes;
}

/* What --check says. */
static int
check_files(struct rig *rig)
{
    struct buf out = {0};
    int err = data_check_disk(rig->data.disk, &rig->logger, &out);
    buf_add(&out, "", 1);
    ck_assert(err != 0 || strstr(out.data, "image_lines 0\n") == NULL);
    buf_fini(&out);
    return err;
}

/* A bit of an image that is another one is found at the start. */
START_TEST(test_flips)
{
    static struct model model;
    struct rig *rig = &model.rig;
    struct found found = {{0}};
    start(&model, WAL_SYNC_ALWAYS, 11);
    rig->data.checkpoint_step_bytes = 0;
    rig->data.checkpoint_file_bytes = 0;
    add_many(&model, 12);
    model.lowest = figures_of(&model).first_id;
    ck_assert_int_eq(rig_close(rig), 0);
    ck_assert_int_eq(rig_open(rig), 0);
    ck_assert_int_eq(rig_checkpoint(rig), 0);
    ck_assert_int_eq(rig_close(rig), 0);
    rig->data.disk->calls->list(rig->data.disk, note_name, &found);
    uint64_t bytes = bytes_of(rig->data.disk, found.name);
    for (uint64_t at = 0; at < bytes; at += 1 + bytes / 40) {
        fake_disk_flip(rig->fake, found.name, at, (uint8_t)(1 << at % 8));
        ck_assert_int_eq(rig_open(rig), ERR_CORRUPT);
        ck_assert_int_eq(check_files(rig), ERR_CORRUPT);
        fake_disk_flip(rig->fake, found.name, at, (uint8_t)(1 << at % 8));
    }
    ck_assert_int_eq(check_files(rig), 0);
    ck_assert_int_eq(rig_open(rig), 0);
    finish(&model);
}
END_TEST

static void
note_head(void *context, const struct images_entry *entry)
{
    struct images_entry *head = context;
    if (durable_about_is_head(entry)) {
        *head = *entry;
    }
}

/* Without its head a column is lost but for the log, and nothing is left of it
 * that a start would take for later tables. */
START_TEST(test_lost_head)
{
    static struct model model;
    struct rig *rig = &model.rig;
    char name[NAMES_BYTES];
    struct manifest manifest;
    struct images_entry head = {0};
    struct buf report = {0};
    enum salvage_outcome outcome;
    start(&model, WAL_SYNC_ALWAYS, 17);
    add_many(&model, 30);
    ck_assert_int_eq(rig_checkpoint(rig), 0);
    ck_assert_int_eq(rig_close(rig), 0);
    ck_assert_int_eq(manifest_read(rig->data.disk, &manifest, NULL), 0);
    images_each(&manifest.images, note_head, &head);
    names_make(name, NAMES_CHECKPOINT, head.file);
    fake_disk_flip(rig->fake, name, head.offset + head.len / 2, 0xff);
    const struct salvage_config config = {.disk = rig->data.disk,
        .logger = &rig->logger,
        .free_bytes = UINT64_MAX,
        .shards = manifest.shards};
    ck_assert_int_eq(salvage_run(&config, &report, &outcome), 0);
    ck_assert_int_eq(outcome, SALVAGE_LOSSY);
    buf_add(&report, "", 1);
    ck_assert_ptr_nonnull(strstr(report.data, "all tables of a column"));
    ck_assert_int_eq(rig_open(rig), 0);
    ck_assert_uint_eq(rig_stat(rig, "live_images"), 0);
    model.n_told = 0;
    add_many(&model, 30);
    crash(&model, true, 1);
    manifest_fini(&manifest);
    buf_fini(&report);
    finish(&model);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_crashes, test_cut_close, test_cut_roll,
        test_log_stays, test_beside_a_checkpoint, test_edits, test_flips,
        test_lost_head};
    return run_tests("durable_about", tests, COUNT_OF(tests));
}
