/* SPDX-License-Identifier: BSD-3-Clause */
/* tier/cold_take_out: the pairs of records that have lost their members go from
 * segments, too, and no others; what is in a block that cannot be read stays,
 * and is counted; a stop waits for it; seals go on meanwhile. */
#include "unit/files_help.h"
#include "unit/members_help.h"

enum {
    IDS = 300,    /* more than a block of numbers in a shard */
    EACH = 12,    /* members of one, and */
    MANY = 1500,  /* of the first: more than one piece */
    LATE = 100000 /* a member that comes behind a seal */
};

/* The first file: the counter's slot is below that of its pairs. */
#define OF_RECORDS "segment-00000000000000000001.seg"

/* Which records have been given up. */
static bool
goes(uint64_t id)
{
    return id % 3 == 1;
}

static uint64_t
count_of(uint64_t id)
{
    return id == 1 ? (uint64_t)MANY : (uint64_t)EACH;
}

static uint64_t number[IDS + 1]; /* that each record had */

/* Records with members. */
static void
give_members(struct rig *rig)
{
    members_add_cold_counter(rig);
    for (uint64_t id = 1; id <= IDS; id++) {
        for (uint64_t m = 0; m < count_of(id); m++) {
            members_change(rig, id, "liked", 3 * m, 1);
        }
        number[id] = members_get(rig, id, "liked");
        ck_assert_uint_ne(number[id], 0);
    }
}

/* The same, all sealed. */
static void
fill(struct rig *rig)
{
    give_members(rig);
    ck_assert_int_eq(rig_seal_all(rig), 0);
    ck_assert_uint_eq(rig_n_hot(rig), 0);
}

/* As a key without a member does; or the whole record. */
static void
give_up(struct rig *rig, uint64_t id)
{
    struct change change = members_forget_of(rig, id, "liked");
    members_do(rig, &change);
}

static struct engine_numbers
figures(struct rig *rig)
{
    const struct schema *schema = quiet_schema(rig->store);
    struct schema_target target;
    struct engine_numbers out = {0};
    ck_assert(schema_find(schema, "liked", 5, &target));
    store_numbers(rig->store, schema_pairs(schema, target.column)->slot,
        MEMBERS_BITS, 0, &out);
    return out;
}

/* The gardener has done what there was. */
static struct engine_numbers
wait_for_it(struct rig *rig)
{
    struct engine_numbers out;
    do {
        sched_yield();
        out = figures(rig);
    } while (out.waiting > 0 || out.looking > 0);
    return out;
}

/* What is there of a pair. */
static uint64_t
pair_of(struct rig *rig, uint64_t id, uint64_t member, enum cell_state *state)
{
    const struct schema *schema = quiet_schema(rig->store);
    struct schema_target target;
    uint64_t value;
    ck_assert(schema_find(schema, "liked", 5, &target));
    const struct schema_counter *pairs = schema_pairs(schema, target.column);
    const struct cell_key key = {
        .id = store_pair(rig->store, id, number[id], MEMBERS_BITS, member),
        .serial = pairs->column[0].serial,
        .counter = pairs->slot};
    *state = get_cell(rig->store, &key, &value);
    return value;
}

/* All of those that stay, and how many there are of the others. */
static uint64_t
expect_others(struct rig *rig)
{
    uint64_t n_left = 0;
    for (uint64_t id = 1; id <= IDS; id++) {
        for (uint64_t m = 0; m < count_of(id); m++) {
            enum cell_state state;
            uint64_t value = pair_of(rig, id, 3 * m, &state);
            if (goes(id)) {
                n_left += value;
            } else {
                ck_assert_int_eq(state, CELL_SET);
                ck_assert_uint_eq(value, 1);
            }
        }
        ck_assert_uint_eq(
            members_get(rig, id, "liked"), goes(id) ? 0 : number[id]);
    }
    return n_left;
}

static uint64_t
count_all(void)
{
    uint64_t n = 0;
    for (uint64_t id = 1; id <= IDS; id++) {
        n += goes(id) ? count_of(id) : 0;
    }
    return n;
}

static void
begin(struct rig *rig)
{
    rig_init(rig, WAL_SYNC_ALWAYS, ID_RANDOM, 3);
    ck_assert_int_eq(rig_open(rig), 0);
    fill(rig);
}

static void
give_up_all(struct rig *rig)
{
    for (uint64_t id = 1; id <= IDS; id++) {
        if (goes(id)) {
            give_up(rig, id);
        }
    }
}

static void
finish(struct rig *rig)
{
    ck_assert_int_eq(rig_close(rig), 0);
    rig_fini(rig);
}

/* Stored notes that are left, of numbers that records have had. */
static uint64_t
count_stored(struct rig *rig)
{
    const struct schema *schema = quiet_schema(rig->store);
    struct schema_target target;
    uint64_t n = 0;
    ck_assert(schema_find(schema, "liked", 5, &target));
    const struct schema_counter *pairs = schema_pairs(schema, target.column);
    for (uint64_t id = 1; id <= IDS; id++) {
        uint64_t within = number[id] % MEMBERS_MARK, value;
        const struct cell_key key = {
            .id = store_pair(rig->store, id,
                number[id] - within + MEMBERS_MARK, MEMBERS_BITS, within),
            .serial = pairs->column[0].serial,
            .counter = pairs->slot};
        n += get_cell(rig->store, &key, &value) == CELL_SET;
    }
    return n;
}

/* All in segments; some in both (_i is 1). Sealed again nothing is left. */
START_TEST(test_all)
{
    struct rig rig;
    uint64_t n_more = 0;
    begin(&rig);
    for (uint64_t id = 1; _i == 1 && id <= IDS; id += 2) {
        members_change(&rig, id, "liked", LATE, 1);
        n_more += goes(id);
    }
    give_up_all(&rig);
    struct engine_numbers out = wait_for_it(&rig);
    ck_assert_uint_eq(out.taken_out, count_all() + n_more);
    ck_assert_uint_eq(out.lost + out.unread, 0);
    ck_assert_uint_eq(expect_others(&rig), 0);
    ck_assert_uint_eq(count_stored(&rig), 0);
    ck_assert_int_eq(rig_seal_all(&rig), 0);
    ck_assert_uint_eq(expect_others(&rig), 0);
    ck_assert_int_eq(rig_close(&rig), 0);
    ck_assert_int_eq(rig_open(&rig), 0);
    ck_assert_uint_eq(expect_others(&rig), 0);
    finish(&rig);
}
END_TEST

/* A stop takes out what it has time for: with so few, all. */
START_TEST(test_stop)
{
    struct rig rig;
    begin(&rig);
    give_up_all(&rig);
    ck_assert_int_eq(rig_close(&rig), 0);
    ck_assert_int_eq(rig_open(&rig), 0);
    ck_assert_uint_eq(figures(&rig).waiting, 0);
    ck_assert_uint_eq(expect_others(&rig), 0);
    finish(&rig);
}
END_TEST

/* Seals the records, or all but them. */
static void
seal_part(struct rig *rig, bool is_of_pairs)
{
    for (unsigned slot = 0; slot < SCHEMA_COUNTERS_MAX; slot++) {
        const struct schema_counter *counter =
            schema_counter_at(quiet_schema(rig->store), slot);
        if (counter != NULL && (counter->members_of != 0) == is_of_pairs) {
            ck_assert(rig_seal_later(rig, slot));
            ck_assert_int_eq(rig_seal_wait(rig), 0);
        }
    }
}

enum { SEAL_RECORDS, SEAL_PAIRS, SEAL_ALL, SEAL_TWICE, SEALS };

/* What waits at a crash goes behind it, wherever records and pairs are; also
 * where what says so is in segments itself. No others go. */
START_TEST(test_crash)
{
    struct rig rig;
    rig_init(&rig, WAL_SYNC_ALWAYS, ID_RANDOM, 3);
    ck_assert_int_eq(rig_open(&rig), 0);
    give_members(&rig);
    if (_i < SEAL_ALL) {
        seal_part(&rig, _i == SEAL_PAIRS);
    } else {
        ck_assert_int_eq(rig_seal_all(&rig), 0);
    }
    give_up_all(&rig);
    if (_i == SEAL_TWICE) {
        ck_assert_int_eq(rig_seal_all(&rig), 0);
    }
    /* behind that all is synced */
    ck_assert_int_eq(edit(rig.store, "add counter other"), 0);
    fake_disk_die(rig.fake, 1);
    (void)rig_close(&rig);
    fake_disk_revive(rig.fake);
    ck_assert_int_eq(rig_open(&rig), 0);
    struct engine_numbers out = wait_for_it(&rig);
    ck_assert_uint_eq(out.lost + out.unread, 0);
    ck_assert_uint_eq(expect_others(&rig), 0);
    ck_assert_uint_eq(count_stored(&rig), 0);
    finish(&rig);
}
END_TEST

/* Members by the figures, once they are exact. */
static uint64_t
count_members(struct rig *rig)
{
    const struct schema *schema = quiet_schema(rig->store);
    struct schema_target target;
    ck_assert(schema_find(schema, "liked", 5, &target));
    unsigned slot = schema_pairs(schema, target.column)->slot;
    struct engine_numbers out;
    do {
        sched_yield();
        out = (struct engine_numbers){0};
        for (unsigned shard = 0; shard < rig->config.shards; shard++) {
            store_numbers(rig->store, slot, MEMBERS_BITS, shard, &out);
        }
    } while (out.counting > 0);
    return store_sum(rig->store, slot).records - out.marks;
}

/* Behind a start what was loaded over segments counts once: new members, those
 * that have changed, and those that are no more. And numbers that are passed
 * over count as nothing. */
START_TEST(test_count)
{
    struct rig rig;
    uint64_t n = MANY + (uint64_t)(IDS - 1) * EACH;
    begin(&rig);
    for (unsigned life = 0; life < 3; life++) {
        for (uint64_t id = 1; id <= IDS; id += 2) {
            members_change(&rig, id, "liked", LATE + life, 1); /* new, or */
            members_change(&rig, id, "liked", 3 * life, 0);    /* gone */
        }
        for (unsigned i = 0; i < 5; i++) {
            members_change(&rig, IDS + 10 * life + i + 1, "liked", 1, 1);
            n++;
        }
        ck_assert_uint_eq(count_members(&rig), n);
        if (life == 1) {
            ck_assert_int_eq(rig_seal_all(&rig), 0);
        }
        ck_assert_int_eq(rig_close(&rig), 0);
        ck_assert_int_eq(rig_open(&rig), 0);
        ck_assert_uint_eq(count_members(&rig), n);
    }
    for (uint64_t id = 1; id <= IDS; id += 2) { /* exact from there on */
        members_change(&rig, id, "liked", LATE + 9, 1);
        n++;
    }
    ck_assert_uint_eq(count_members(&rig), n);
    finish(&rig);
}
END_TEST

/* Seals and merges move pairs meanwhile. */
START_TEST(test_seals)
{
    struct rig rig;
    begin(&rig);
    for (uint64_t id = 1; id <= IDS; id++) {
        if (goes(id)) {
            give_up(&rig, id);
        } else if (id % 4 == 0) {
            members_change(&rig, id, "liked", LATE, 1);
            ck_assert_int_eq(rig_seal_all(&rig), 0);
        }
    }
    struct engine_numbers out = wait_for_it(&rig);
    ck_assert_uint_eq(out.taken_out, count_all());
    ck_assert_uint_eq(out.lost + out.unread, 0);
    ck_assert_uint_eq(expect_others(&rig), 0);
    finish(&rig);
}
END_TEST

/* Damages a block; true where some of who goes was in it. */
static bool
has_bad(struct rig *rig, const char *name, uint64_t at)
{
    fake_disk_flip(rig->fake, name, at, 4);
    ck_assert_int_eq(rig_open(rig), 0);
    give_up_all(rig);
    struct engine_numbers out = wait_for_it(rig);
    ck_assert_uint_eq(out.lost, 0);
    ck_assert(out.taken_out <= count_all());
    ck_assert((out.taken_out < count_all()) == (out.unread > 0));
    ck_assert_int_eq(rig_close(rig), 0);
    fake_disk_flip(rig->fake, name, at, 4);
    if (out.unread > 0) { /* the rest is there, for who can read it again */
        ck_assert_int_eq(rig_open(rig), 0);
        ck_assert_uint_eq(expect_others(rig), count_all() - out.taken_out);
        ck_assert_int_eq(rig_close(rig), 0);
    }
    return out.unread > 0;
}

START_TEST(test_damage)
{
    struct rig rig;
    struct files files;
    bool is_found = false;
    begin(&rig);
    ck_assert_int_eq(rig_close(&rig), 0);
    read_files(rig.data.disk, &files);
    for (size_t i = files.n; i-- > 0 && !is_found;) {
        const struct file *file = &files.file[i];
        if (strncmp(file->name, "segment", 7) == 0 &&
            strcmp(file->name, OF_RECORDS) != 0) {
            is_found = has_bad(&rig, file->name, 4096 + 50);
        }
    }
    ck_assert(is_found);
    free_files(&files);
    rig_fini(&rig);
}
END_TEST

/* The column goes while its pairs are being taken out. */
START_TEST(test_dropped)
{
    struct rig rig;
    begin(&rig);
    give_up_all(&rig);
    ck_assert_int_eq(edit(rig.store, "drop column m liked liked"), 0);
    struct schema_target target;
    ck_assert(schema_find(quiet_schema(rig.store), "s", 1, &target));
    struct engine_numbers out;
    do {
        sched_yield();
        out = (struct engine_numbers){0};
        store_numbers(rig.store,
            schema_pairs(quiet_schema(rig.store), target.column)->slot,
            MEMBERS_BITS, 0, &out);
    } while (out.waiting > 0);
    ck_assert_uint_eq(out.lost + out.unread, 0);
    finish(&rig);
}
END_TEST

int
main(void)
{
    TCase *tcase = tcase_create("cold_take_out");
    tcase_add_loop_test(tcase, test_all, 0, 2);
    tcase_add_test(tcase, test_stop);
    tcase_add_loop_test(tcase, test_crash, 0, SEALS);
    tcase_add_test(tcase, test_count);
    tcase_add_test(tcase, test_seals);
    tcase_add_test(tcase, test_damage);
    tcase_add_test(tcase, test_dropped);
    return run_case("cold_take_out", tcase);
}
