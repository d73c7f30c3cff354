/* SPDX-License-Identifier: BSD-3-Clause */
/* Members of which most are in segments, while a call to the disk fails, or one
 * for memory: each in turn, once or for long. They are changed, given up,
 * read, listed, sorted, sealed, merged and taken out meanwhile. Who cannot be
 * answered is told so and has changed nothing, and nobody gets a wrong number;
 * when all is well again, or behind a crash, what was acknowledged is there, a
 * count is that of its members, and --check agrees. */
#include "call/call.h"
#include "offline/data_check.h"
#include "unit/faults_help.h"
#include "unit/files_help.h"
#include "unit/heap_help.h"
#include "unit/members_help.h"

enum { IDS = 14, MEMBERS = 5, STRIDE = 9000, FAULTS_MAX = 4000 };

struct world {
    struct rig rig;
    struct spared_disk disk;
    uint8_t value[IDS][MEMBERS];  /* what they are */
    uint64_t seq[IDS][MEMBERS];   /* with what the last change is committed */
    bool is_unsure[IDS][MEMBERS]; /* a crash may have taken that back */
    bool may_fail;
    unsigned n_failed; /* of what was asked */
};

static struct files sealed; /* a directory that worlds begin with */
static uint64_t
id_of(unsigned i)
{
    return 3 + 17 * (uint64_t)i;
}

static uint64_t
member_of(unsigned m)
{
    return (uint64_t)m * STRIDE;
}

/* Whether all begins with that member. */
static bool
is_first(unsigned i, unsigned m)
{
    return (i + m) % 3 != 0;
}

/* True where it failed as it may. */
static bool
has_failed(struct world *it, int err)
{
    if (err == 0) {
        return false;
    }
    EXPECT(it->may_fail, "%s", err_text(err));
    EXPECT(err == ERR_COLD_READ || err == ERR_NO_MEMORY || err == ERR_DISK ||
            err == ERR_DISK_FULL || err == ERR_CORRUPT ||
            err == ERR_HOT_FULL || err == ERR_NO_CHECKPOINT,
        "%s", err_text(err));
    it->n_failed++;
    return true;
}

/* ---- changes ---- */

/* Of one member; the counter's columns are those of members_add_cold_counter.
 */
static struct change
change_of_member(struct rig *rig, unsigned i, unsigned m, enum change_op op)
{
    return members_change_of(rig, id_of(i), "liked", op, member_of(m), 1);
}

/* Does it, where changes are taken; its err. */
static int
do_one(struct world *it, struct change *change, uint64_t *seq)
{
    int err = store_fault(it->rig.store);
    if (err == 0) {
        *seq = do_changes(it->rig.store, change, 1);
        (void)store_commit(it->rig.store, *seq);
        err = change->err;
    }
    return err;
}

static void
change_one(struct world *it, unsigned i, unsigned m, enum change_op op)
{
    struct change change = change_of_member(&it->rig, i, m, op);
    uint64_t seq = 0;
    int err = do_one(it, &change, &seq);
    bool is_in = it->value[i][m] != 0;
    if (op == CHANGE_MEMBER_ADD && err == ERR_NOT_STORED) {
        EXPECT(is_in, "%u:%u was no member", i, m);
        return;
    }
    if (op == CHANGE_MEMBER_DELETE && err == ERR_NOT_FOUND) {
        EXPECT(!is_in, "%u:%u was a member", i, m);
        return;
    }
    if (!has_failed(it, err)) {
        EXPECT(op != CHANGE_MEMBER_ADD || !is_in, "%u:%u: twice", i, m);
        EXPECT(op != CHANGE_MEMBER_DELETE || is_in, "%u:%u: gone", i, m);
        it->value[i][m] = op != CHANGE_MEMBER_DELETE;
        it->seq[i][m] = seq;
    }
}

/* All members of one. */
static void
give_up(struct world *it, unsigned i)
{
    struct change change = members_forget_of(&it->rig, id_of(i), "liked");
    uint64_t seq = 0;
    int err = do_one(it, &change, &seq);
    if (err == ERR_NOT_FOUND) { /* it may have a number all the same */
        for (unsigned m = 0; m < MEMBERS; m++) {
            EXPECT(it->value[i][m] == 0, "%u:%u was a member", i, m);
        }
        return;
    }
    if (!has_failed(it, err)) {
        for (unsigned m = 0; m < MEMBERS; m++) {
            it->value[i][m] = 0;
            it->seq[i][m] = seq;
        }
    }
}

static void
change_some(struct world *it, unsigned first)
{
    static const enum change_op op[] = {CHANGE_MEMBER_ADD,
        CHANGE_MEMBER_DELETE, CHANGE_MEMBER_SET, CHANGE_MEMBER_DELETE};
    for (unsigned i = first % 2; i < IDS; i += 2) {
        for (unsigned m = 0; m < MEMBERS; m += 2) {
            change_one(it, i, (m + first) % MEMBERS,
                op[(i / 2 + m + first) % COUNT_OF(op)]);
        }
    }
}

/* ---- reads ---- */

static unsigned
count_of(const struct world *it, unsigned i)
{
    unsigned n = 0;
    for (unsigned m = 0; m < MEMBERS; m++) {
        n += it->value[i][m];
    }
    return n;
}

/* A cell of a get; false where it cannot be read. */
static bool
read_at(
    struct world *it, const struct store_get *get, size_t at, uint64_t *value)
{
    *value = get->value[at];
    EXPECT(get->state[at] != CELL_GONE, "a column is gone");
    return !has_failed(
        it, get->state[at] == CELL_UNREADABLE ? ERR_COLD_READ : 0);
}

static void
read_pairs(struct world *it, unsigned i, uint64_t number)
{
    const struct schema *schema = quiet_schema(it->rig.store);
    struct schema_target target;
    struct store_get get = {.n = MEMBERS};
    ck_assert(schema_find(schema, "liked", 5, &target));
    const struct schema_counter *pairs = schema_pairs(schema, target.column);
    for (unsigned m = 0; m < MEMBERS; m++) {
        get.key[m] =
            (struct cell_key){.id = store_pair(it->rig.store, id_of(i), number,
                                  MEMBERS_BITS, member_of(m)),
                .serial = pairs->column[0].serial,
                .counter = pairs->slot};
    }
    rig_get(&it->rig, &get);
    for (unsigned m = 0; m < MEMBERS; m++) {
        uint64_t value;
        if (read_at(it, &get, m, &value)) {
            EXPECT(value == it->value[i][m], "%u:%u is %u, not %u", i, m,
                (unsigned)value, it->value[i][m]);
        }
    }
}

/* Its number; 0: it has none, or it cannot be read. */
static uint64_t
read_record(struct world *it, unsigned i)
{
    const struct schema *schema = quiet_schema(it->rig.store);
    struct store_get get = {.n = 2};
    uint64_t likes, number;
    get.key[0] = cell_of(schema, id_of(i), "likes");
    get.key[1] = cell_of(schema, id_of(i), "liked");
    rig_get(&it->rig, &get);
    if (read_at(it, &get, 0, &likes)) {
        EXPECT(likes == count_of(it, i), "%u: count %u, not %u", i,
            (unsigned)likes, count_of(it, i));
    }
    if (!read_at(it, &get, 1, &number)) {
        return 0;
    }
    EXPECT(number != 0 || count_of(it, i) == 0, "%u has no number", i);
    return number;
}

static void
read_all(struct world *it)
{
    for (unsigned i = 0; i < IDS; i++) {
        uint64_t number = read_record(it, i);
        if (number != 0) {
            read_pairs(it, i, number);
        }
    }
}

/* As a mark over them asks for its members. */
static void
sort_some(struct world *it, unsigned first)
{
    const struct schema *schema = quiet_schema(it->rig.store);
    struct schema_target target;
    ck_assert(schema_find(schema, "liked", 5, &target));
    const struct schema_counter *pairs = schema_pairs(schema, target.column);
    for (unsigned i = first; i < IDS; i += 3) {
        struct answer answer;
        struct qsbr_reader reader;
        struct store_members members = {.key = {.id = id_of(i),
                                            .number = read_record(it, i),
                                            .serial = pairs->column[0].serial,
                                            .pairs = pairs->slot,
                                            .bits = MEMBERS_BITS}};
        struct store_pin pin = {.n = 1, .members = &members};
        if (members.key.number == 0) {
            continue;
        }
        answer_init(&answer);
        pin.call = call_of(&answer);
        reader_begin(it->rig.store, &reader);
        enum store_answer given = store_pin(it->rig.store, &pin);
        reader_end(it->rig.store, &reader);
        if (given == STORE_LATER) {
            answer_wait(&answer);
        }
        answer_fini(&answer);
        unsigned n_above = 0;
        for (unsigned m = MEMBERS; !has_failed(it, members.err) && m-- > 0;) {
            EXPECT(sorted_above(&members.pin, member_of(m)) == n_above,
                "%u: not %u above %u", i, n_above, m);
            n_above += it->value[i][m];
        }
        store_unpin(it->rig.store, &members.pin);
    }
}

/* The place of an id, and of a member. */
static void
find_member(uint64_t id, uint64_t member, unsigned *i, unsigned *m)
{
    *i = (unsigned)((id - 3) / 17);
    *m = (unsigned)(member / STRIDE);
    EXPECT(*i < IDS && id_of(*i) == id, "what id is that?");
    EXPECT(*m < MEMBERS && member_of(*m) == member, "what member is that?");
}

/* What `dump counter` says: all, or all but what it says it cannot read. */
static void
list_all(struct world *it)
{
    const struct schema_counter *counter =
        schema_counter(quiet_schema(it->rig.store), "m", 1);
    struct answer answer;
    struct store_dump dump = {.last_id = UINT64_MAX,
        .slot = counter->slot,
        .serial = counter->serial};
    unsigned n_said = 0, n_members = 0;
    bool is_whole = true;
    answer_init(&answer);
    dump.call = call_of(&answer);
    while (!dump.is_end && (dump.err == 0 || dump.err == ERR_CORRUPT)) {
        dump.err = 0;
        ck_assert_int_eq(store_dump(it->rig.store, &dump), STORE_LATER);
        answer_wait(&answer);
        is_whole = !has_failed(it, dump.err) && is_whole;
        for (uint32_t k = 0; k < dump.n && dump.member != NULL; k++) {
            unsigned i, m;
            if (dump.member[k].serial != 0) {
                find_member(dump.id[k], dump.member[k].member, &i, &m);
                EXPECT(it->value[i][m] == 1, "%u:%u is no member", i, m);
                n_said++;
            }
        }
    }
    for (unsigned i = 0; i < IDS; i++) {
        n_members += count_of(it, i);
    }
    EXPECT(is_whole ? n_said == n_members : n_said <= n_members,
        "%u members said of %u", n_said, n_members);
    store_end_dump(it->rig.store, &dump);
    answer_fini(&answer);
}

/* ---- worlds ---- */

/* A seal that fails leaves all as it was. */
static void
seal_all(struct world *it)
{
    (void)has_failed(it, rig_seal_all(&it->rig));
}

static void
work(struct world *it)
{
    read_all(it);
    sort_some(it, 0);
    list_all(it);
    change_some(it, 0);
    give_up(it, 3);
    give_up(it, 8);
    list_all(it);
    seal_all(it);
    sort_some(it, 1);
    change_some(it, 1);
    give_up(it, 5);
    read_all(it);
    seal_all(it);
    list_all(it);
    read_all(it);
}

static void
rig_of(struct world *it, uint64_t seed)
{
    rig_init(&it->rig, WAL_SYNC_ALWAYS, ID_RANDOM, seed);
    rig_take_clock(&it->rig);
    it->rig.seals = true;
    it->rig.config.alloc = &heap_alloc;
    it->rig.data.seal_records = 16;
}

/* The directory that worlds begin with: most is in segments, some in front. */
static void
make_directory(void)
{
    struct world it = {.may_fail = false};
    rig_of(&it, 1);
    ck_assert_int_eq(rig_open(&it.rig), 0);
    members_add_cold_counter(&it.rig);
    for (unsigned i = 0; i < IDS; i++) {
        for (unsigned m = 0; m < MEMBERS; m++) {
            if (is_first(i, m)) {
                change_one(&it, i, m, CHANGE_MEMBER_SET);
            }
        }
        if (i == IDS - 3) {
            ck_assert_int_eq(rig_seal_all(&it.rig), 0);
        }
    }
    ck_assert_int_eq(rig_close(&it.rig), 0);
    read_files(it.rig.data.disk, &sealed);
    rig_fini(&it.rig);
}

static void
begin(struct world *it, uint64_t seed)
{
    *it = (struct world){.may_fail = false};
    rig_of(it, seed);
    fake_disk_destroy(&it->rig.fake);
    it->rig.fake = disk_of(&sealed);
    spared_disk_init(&it->disk, fake_disk_as_disk(it->rig.fake));
    it->rig.data.disk = &it->disk.disk;
    for (unsigned i = 0; i < IDS; i++) {
        for (unsigned m = 0; m < MEMBERS; m++) {
            it->value[i][m] = is_first(i, m);
        }
    }
}

/* What is given up is taken out; the gardener's rounds pass meanwhile. */
static void
wait_taken_out(struct world *it)
{
    enum { LOOK_NS = 200000, PASS_MS = 200 };
    const struct schema *schema = quiet_schema(it->rig.store);
    struct schema_target target;
    struct engine_numbers out;
    ck_assert(schema_find(schema, "liked", 5, &target));
    do {
        fake_clock_pass(&it->rig.clock, PASS_MS);
        clock_sleep_until(&clock_system, clock_monotonic_ns() + LOOK_NS);
        out = (struct engine_numbers){0};
        store_numbers(it->rig.store, schema_pairs(schema, target.column)->slot,
            MEMBERS_BITS, 0, &out);
    } while (out.waiting > 0);
}

static void
expect_sound(struct world *it)
{
    struct buf out = {0};
    int err = data_check_disk(it->rig.data.disk, &it->rig.logger, &out);
    buf_add(&out, "", 1);
    ck_assert_msg(err == 0, "%s", out.data);
    buf_fini(&out);
}

/* All is well: so is all that there is, and it stays so. */
static void
heal(struct world *it)
{
    struct rig *rig = &it->rig;
    it->may_fail = false;
    rig_wait_writable(rig);
    read_all(it);
    list_all(it);
    sort_some(it, 2);
    change_some(it, 2);
    give_up(it, 1);
    ck_assert_int_eq(rig_seal_all(rig), 0);
    wait_taken_out(it);
    read_all(it);
    store_verify(rig->store);
    ck_assert_int_eq(rig_close(rig), 0);
    expect_sound(it);
    ck_assert_int_eq(rig_open(rig), 0);
    read_all(it);
    list_all(it);
}

/* The machine stops, or the process: what was not committed may be gone. What
 * there is now is taken for what they are. */
static void
crash(struct world *it, bool is_power_cut)
{
    struct rig *rig = &it->rig;
    uint64_t value;
    for (unsigned i = 0; i < IDS; i++) {
        for (unsigned m = 0; m < MEMBERS; m++) {
            it->is_unsure[i][m] = it->seq[i][m] != 0 &&
                store_outcome(rig->store, it->seq[i][m]) != STORE_COMMITTED;
        }
    }
    fake_disk_die(rig->fake, 1);
    (void)rig_close(rig);
    if (is_power_cut) {
        fake_disk_crash(rig->fake);
    } else {
        fake_disk_revive(rig->fake);
    }
    ck_assert_int_eq(rig_open(rig), 0);
    for (unsigned i = 0; i < IDS; i++) {
        for (unsigned m = 0; m < MEMBERS; m++) {
            if (it->is_unsure[i][m]) {
                value = members_value(rig, id_of(i), "liked", member_of(m));
                it->value[i][m] = value != 0;
            }
        }
    }
}

/* ---- faults ---- */

/* False where there is no n-th call of that kind any more. */
static bool
fail_call(const struct fault *fault, unsigned n)
{
    struct world it;
    struct rig *rig = &it.rig;
    begin(&it, n + fault->forever);
    ck_assert_int_eq(rig_open(rig), 0);
    it.may_fail = true;
    fail_nth(rig, fault, n);
    work(&it);
    rig->is_in_vain = false;
    bool any = fake_disk_heal(rig->fake) > 0;
    if (n % 4 < 2) {
        crash(&it, n % 4 == 0);
    }
    heal(&it);
    ck_assert_int_eq(rig_close(rig), 0);
    rig_fini(rig);
    return any;
}

static void
fail_each(enum fake_call call, int err)
{
    fail_by_turns(fail_call, call, err);
}

START_TEST(test_reads)
{
    fail_each(FAKE_READ, EIO);
}
END_TEST

START_TEST(test_writes)
{
    fail_each(FAKE_WRITE, EIO);
    fail_each(FAKE_WRITE, ENOSPC);
}
END_TEST

START_TEST(test_others)
{
    fail_each(FAKE_SYNC, EIO);
    fail_each(FAKE_OPEN, EIO);
    fail_each(FAKE_RENAME, EIO);
    fail_each(FAKE_UNLINK, EIO);
}
END_TEST

/* What the test asks for is its own. */
static void
finish_spared(struct rig *rig)
{
    heap_spare();
    rig_fini(rig);
    heap_unspare();
}

/* So many calls for memory fail, from number n on; false where there is no
 * n-th. A shard that is being published waits for memory, so they end. */
static bool
fail_memory(unsigned n, unsigned n_calls)
{
    struct world it;
    struct rig *rig = &it.rig;
    heap_spare();
    begin(&it, n);
    heap_unspare();
    int live = heap_live();
    ck_assert_int_eq(rig_open(rig), 0);
    it.may_fail = true;
    heap_fail(n, n + n_calls - 1);
    work(&it);
    bool any = heap_heal() > 0;
    if (n % 8 == 0) {
        crash(&it, false);
    }
    heal(&it);
    ck_assert_int_eq(rig_close(rig), 0);
    live = heap_live() - live;
    EXPECT(live == 0, "call %u fails: %d blocks are left", n, live);
    finish_spared(rig);
    return any;
}

START_TEST(test_memory)
{
    unsigned n = 1;
    while (fail_memory(n, _i == 0 ? 1 : 40)) {
        n = sweep_next(n);
        ck_assert_uint_lt(n, FAULTS_MAX);
    }
    ck_assert_uint_gt(n, 100); /* fewer would prove little */
}
END_TEST

int
main(void)
{
    TCase *tcase = tcase_create("cold member faults");
    tcase_add_unchecked_fixture(tcase, make_directory, NULL);
    tcase_add_test(tcase, test_reads);
    tcase_add_test(tcase, test_writes);
    tcase_add_test(tcase, test_others);
    tcase_add_loop_test(tcase, test_memory, 0, 2);
    return run_case("cold member faults", tcase);
}
