/* SPDX-License-Identifier: BSD-3-Clause */
/* What the log has of members: batches of changes that come and go, some of
 * them numbered, of hot and of cold records, against a model after every kind
 * of end; and how many bytes that takes. */
#include "offline/data_check.h"
#include "unit/files_help.h"
#include "unit/members_help.h"
#include "wal/frame.h"

#include <stdio.h>

enum {
    POSTS = 60,
    USERS = 6,
    BATCH = 64,
    STEPS = 24,
    LINE_MAX = 80,
    LOOKED_AT = 4096, /* bytes of a log file: the batches, and zeroes */
    /* of one of them behind the first: id, count, and a pair's id of 20 bits of
     * a member, 5 of a number and 2 of a shard */
    NEAR_BYTES = 1 + 1 + 4,
    HEAD_BYTES = 3 + 3, /* and an id that is absolute has three more */
    FIRST_ID = 1 << 26 /* among ids of pairs, so that none is near by chance */
};

struct model {
    struct rig rig;
    struct change form;             /* of a member of a record */
    struct store_producer producer; /* serial 0: no change is numbered */
    uint64_t number;
    struct change last[BATCH]; /* the last numbered ones */
    unsigned n_last;
    bool is_member[POSTS][USERS];
    uint64_t plain[POSTS];
};

static uint64_t
id_of(unsigned post)
{
    return FIRST_ID + (uint64_t)post;
}

static void
find_form(struct model *model)
{
    const struct schema *schema = quiet_schema(model->rig.store);
    struct schema_target target, counts;
    ck_assert(schema_find(schema, "liked", 5, &target));
    ck_assert(schema_find(schema, "likes", 5, &counts));
    const struct schema_counter *pairs = schema_pairs(schema, target.column);
    const struct cell_key key = {.serial = target.column->serial,
        .counter = target.counter->slot,
        .column = target.column->slot};
    model->form = change_of(&key, CHANGE_MEMBER_SET, 1);
    model->form.member = (struct change_member){.counter = pairs->slot,
        .bits = target.column->member_bits,
        .counts = true,
        .counts_column = counts.column->slot,
        .counts_serial = counts.column->serial,
        .serial = pairs->column[0].serial};
}

static void
start(struct model *model, uint64_t seed)
{
    memset(model, 0, sizeof *model);
    rig_init(&model->rig, WAL_SYNC_ALWAYS, ID_RANDOM, seed);
    model->rig.config.producers_max = 1;
    ck_assert_int_eq(rig_open(&model->rig), 0);
    members_add_cold_counter(&model->rig);
    find_form(model);
}

static struct change
change_of_member(
    const struct model *model, unsigned post, unsigned user, bool is_member)
{
    struct change change = model->form;
    change.id = id_of(post);
    change.member.member = user;
    change.operand[0] = is_member;
    return change;
}

static void
take_producer(struct model *model)
{
    ck_assert_int_eq(
        store_producer(model->rig.store, "p", 1, &model->producer), 0);
}

static uint64_t
n_of(const struct model *model)
{
    uint64_t n = 0;
    for (unsigned i = 0; i < POSTS * USERS; i++) {
        n += model->is_member[i / USERS][i % USERS];
    }
    return n;
}

/* Another column of a record. */
static struct change
change_of_plain(struct model *model, unsigned post)
{
    const struct schema *schema = quiet_schema(model->rig.store);
    const struct cell_key key = cell_of(schema, id_of(post), "plain");
    model->plain[post] = random_below(&model->rig.random, 300);
    return change_of(&key, CHANGE_SET, model->plain[post]);
}

/* Some members of all posts come and go, and other columns change. */
static void
change_some(struct model *model)
{
    struct change change[BATCH];
    model->n_last = 0;
    for (unsigned i = 0; i < BATCH; i++) {
        unsigned post = (unsigned)random_below(&model->rig.random, POSTS);
        unsigned user = (unsigned)random_below(&model->rig.random, USERS);
        bool is_member = random_below(&model->rig.random, 3) > 0;
        change[i] = change_of_member(model, post, user, is_member);
        if (model->producer.serial != 0 &&
            random_below(&model->rig.random, 4) == 0) {
            change[i].producer = model->producer.serial;
            change[i].producer_slot = model->producer.slot;
            change[i].number = ++model->number;
            model->last[model->n_last++] = change[i];
        }
        model->is_member[post][user] = is_member;
        if (i + 1 < BATCH && random_below(&model->rig.random, 3) == 0) {
            change[++i] = change_of_plain(
                model, (unsigned)random_below(&model->rig.random, POSTS));
        }
    }
    members_seq = do_changes(model->rig.store, change, BATCH);
    for (unsigned i = 0; i < BATCH; i++) {
        ck_assert_int_eq(change[i].err, 0);
    }
}

static void
expect_post(struct model *model, unsigned post)
{
    struct rig *rig = &model->rig;
    const struct schema *schema = quiet_schema(rig->store);
    uint64_t number = members_get(rig, id_of(post), "liked"), n = 0, value;
    for (unsigned user = 0; user < USERS; user++) {
        const struct cell_key pair = {.id = store_pair(rig->store, id_of(post),
                                          number, MEMBERS_BITS, user),
            .serial = model->form.member.serial,
            .counter =
                schema_counter_at(schema, model->form.member.counter)->slot};
        (void)get_cell(rig->store, &pair, &value);
        EXPECT(value == model->is_member[post][user], "%u:%u is %d", post,
            user, (int)value);
        n += value;
    }
    EXPECT(members_get(rig, id_of(post), "likes") == n, "%u has %d", post,
        (int)n);
    EXPECT(members_get(rig, id_of(post), "plain") == model->plain[post],
        "%u has another number", post);
}

/* All members are those of the model, also by --check, which wants no
 * server. */
static void
expect_all(struct model *model)
{
    struct buf out = {0};
    char line[LINE_MAX];
    for (unsigned post = 0; post < POSTS; post++) {
        expect_post(model, post);
    }
    ck_assert_int_eq(rig_close(&model->rig), 0);
    ck_assert_int_eq(
        data_check_disk(model->rig.data.disk, &model->rig.logger, &out), 0);
    buf_add(&out, "", 1);
    (void)snprintf(line, sizeof line, "\nmembers %d\n", (int)n_of(model));
    ck_assert_msg(strstr(out.data, line) != NULL, "%s: %s", line, out.data);
    buf_fini(&out);
    ck_assert_int_eq(rig_open(&model->rig), 0);
}

static void
restart(struct model *model, bool is_power_cut)
{
    struct rig *rig = &model->rig;
    ck_assert_int_eq(rig_commit(rig, members_seq), STORE_COMMITTED);
    fake_disk_die(rig->fake, 1);
    (void)rig_close(rig);
    if (is_power_cut) {
        fake_disk_crash(rig->fake);
    } else {
        fake_disk_revive(rig->fake);
    }
    ck_assert_int_eq(rig_open(rig), 0);
    for (unsigned i = 0; i < model->n_last; i++) {
        struct change again = model->last[i];
        take_producer(model); /* it may have another slot */
        again.producer_slot = model->producer.slot;
        again.operand[0] = !again.operand[0];
        (void)do_changes(rig->store, &again, 1);
        ck_assert(again.err == 0 && again.is_repeat);
    }
}

/* Nothing, a kill, one behind a checkpoint, or behind a seal: then records are
 * cold, and the log has them whole. */
START_TEST(test_model)
{
    struct model model;
    start(&model, 5 + (uint64_t)_i);
    for (unsigned step = 0; step < long_part(STEPS); step++) {
        if (_i % 2 != 0 && model.producer.serial == 0) {
            take_producer(&model);
        }
        change_some(&model);
        if (step % 6 == 2) {
            ck_assert_int_eq(rig_seal_all(&model.rig), 0);
        } else if (step % 6 == 5) {
            ck_assert_int_eq(rig_checkpoint(&model.rig), 0);
        } else if (step % 3 == 0) {
            restart(&model, _i % 4 > 1);
            expect_all(&model);
        }
    }
    restart(&model, _i % 4 > 1);
    expect_all(&model);
    ck_assert_int_eq(rig_close(&model.rig), 0);
    rig_fini(&model.rig);
}
END_TEST

static uint64_t
log_bytes(struct rig *rig)
{
    ck_assert_int_eq(rig_commit(rig, members_seq), STORE_COMMITTED);
    return rig_stat(rig, "bytes") -
        FRAME_BATCH_BYTES * rig_stat(rig, "batches");
}

/* A like of each post, of which all have some: what is common to those of a
 * shard is there once, or twice where there are more than 15. */
START_TEST(test_bytes)
{
    struct model model;
    struct change change[POSTS];
    start(&model, 4);
    for (unsigned user = 0; user < 2; user++) {
        uint64_t before = user == 0 ? 0 : log_bytes(&model.rig);
        for (unsigned post = 0; post < POSTS; post++) {
            change[post] = change_of_member(&model, post, user, true);
            model.is_member[post][user] = true;
        }
        members_seq = do_changes(model.rig.store, change, POSTS);
        if (user == 1) {
            uint64_t bytes = log_bytes(&model.rig) - before;
            ck_assert_uint_ge(bytes, POSTS * NEAR_BYTES + 4 * HEAD_BYTES);
            ck_assert_uint_le(bytes, POSTS * NEAR_BYTES + 8 * HEAD_BYTES);
        }
    }
    expect_all(&model);
    ck_assert_int_eq(rig_close(&model.rig), 0);
    rig_fini(&model.rig);
}
END_TEST

/* Where records are told whole, numbers of another shard that count behind
 * members are records of their own. */
START_TEST(test_whole)
{
    enum { SHARDS = 4, EACH = POSTS / SHARDS };
    enum { NEW, TOGETHER, ROUNDS };
    /* With numbers told as pairs there are 16 more; and a byte for each of the
     * numbers but the first, if it says its column. */
    enum { BYTES = 222 };
    static const char *const lines[] = {"add counter one",
        "add column one oid primarykey", "add column one ones"};
    struct model model;
    struct change change[2 * EACH];
    memset(&model, 0, sizeof model);
    rig_init(&model.rig, WAL_SYNC_ALWAYS, ID_RANDOM, 4);
    model.rig.data.has_whole_records = true;
    ck_assert_int_eq(rig_open(&model.rig), 0);
    members_add_cold_counter(&model.rig);
    find_form(&model);
    edit_all(model.rig.store, lines, sizeof lines / sizeof lines[0]);
    struct cell_key key = cell_of(quiet_schema(model.rig.store), 0, "ones");
    uint64_t bytes[ROUNDS];
    for (unsigned round = 0; round < ROUNDS; round++) {
        uint64_t before = round == 0 ? 0 : log_bytes(&model.rig);
        for (unsigned i = 0; i < EACH; i++) {
            change[i] = change_of_member(&model, i * SHARDS, round, true);
            model.is_member[i * SHARDS][round] = true;
            key.id = FIRST_ID + i * SHARDS + 1;
            change[EACH + i] = change_of(&key, CHANGE_INCR, 1);
        }
        members_seq = do_changes(model.rig.store, change, 2 * EACH);
        bytes[round] = log_bytes(&model.rig) - before;
    }
    ck_assert_uint_eq(bytes[TOGETHER], BYTES);
    restart(&model, true);
    expect_all(&model);
    for (unsigned i = 0; i < EACH; i++) {
        key.id = FIRST_ID + i * SHARDS + 1;
        expect_cell(model.rig.store, &key, CELL_SET, ROUNDS);
    }
    ck_assert_int_eq(rig_close(&model.rig), 0);
    rig_fini(&model.rig);
}
END_TEST

/* Each byte of the log with a bit flipped is damage, or what a crash leaves;
 * never another number of members. */
START_TEST(test_flipped)
{
    struct model model;
    struct rig *rig = &model.rig;
    struct buf out = {0};
    struct files files;
    char line[LINE_MAX];
    start(&model, 4);
    change_some(&model);
    change_some(&model);
    expect_all(&model);
    ck_assert_int_eq(rig_close(rig), 0);
    (void)snprintf(line, sizeof line, "\nmembers %d\n", (int)n_of(&model));
    read_files(rig->data.disk, &files);
    for (size_t i = 0; i < files.n; i++) {
        const struct file *file = &files.file[i];
        bool is_log = strncmp(file->name, "log-", 4) == 0;
        uint64_t len = file->len < LOOKED_AT ? file->len : LOOKED_AT;
        for (uint64_t at = 0; is_log && at < len; at++) {
            uint8_t bit = (uint8_t)(1U << at % 8);
            fake_disk_flip(rig->fake, file->name, at, bit);
            buf_clear(&out);
            int err = data_check_disk(rig->data.disk, &rig->logger, &out);
            buf_add(&out, "", 1);
            EXPECT(err != 0 || strstr(out.data, line) != NULL,
                "%s, offset %d, bit %d", file->name, (int)at, bit);
            fake_disk_flip(rig->fake, file->name, at, bit);
        }
    }
    buf_fini(&out);
    free_files(&files);
    rig_fini(rig);
}
END_TEST

int
main(void)
{
    TCase *tcase = tcase_create("durable_members");
    tcase_add_loop_test(tcase, test_model, 0, 8);
    tcase_add_test(tcase, test_bytes);
    tcase_add_test(tcase, test_whole);
    tcase_add_test(tcase, test_flipped);
    return run_case("durable_members", tcase);
}
