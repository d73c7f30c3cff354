/* SPDX-License-Identifier: BSD-3-Clause */
/* Seals that take forgotten marks out (forget=), while a call to the disk
 * fails, or one for memory: each in turn, once or for long. A mark that counts
 * is never lost; when all is well again, or behind a crash, a seal leaves none
 * that is forgotten, and --check agrees. */
#include "offline/data_check.h"
#include "unit/faults_help.h"
#include "unit/files_help.h"
#include "unit/heap_help.h"

#include <inttypes.h>

enum { IDS = 40, FORGET = 10, NOW = 100, DOT_ID = 1, FAULTS_MAX = 4000 };

/* A number that only goes up: its changes that a crash may take back, of which
 * there are two at most when one comes. */
struct number {
    uint64_t value, last, before; /* before the last change; before both */
    uint64_t seq, last_seq;       /* of both; 0: committed */
};

struct world {
    struct rig rig;
    struct spared_disk disk;
    struct number dot, at[IDS];
    bool may_fail;
};

static struct files sealed; /* a directory that worlds begin with */

static uint64_t
id_of(unsigned i)
{
    return 2 + 7 * (uint64_t)i;
}

static void
expect_fault(const struct world *it, int err)
{
    EXPECT(err == 0 ||
            (it->may_fail &&
                (err == ERR_COLD_READ || err == ERR_NO_MEMORY ||
                    err == ERR_DISK || err == ERR_DISK_FULL ||
                    err == ERR_CORRUPT || err == ERR_NO_CHECKPOINT)),
        "%s", err_text(err));
}

/* ---- what it has ---- */

/* Sets a cell; false where it is refused, as it may be. */
static bool
set(struct world *it, uint64_t id, const char *name, uint64_t value,
    uint64_t *seq)
{
    struct cell_key key = cell_of(quiet_schema(it->rig.store), id, name);
    struct change change = change_of(&key, CHANGE_SET, value);
    int err = store_fault(it->rig.store);
    if (err == 0) {
        *seq = do_changes(it->rig.store, &change, 1);
        (void)store_commit(it->rig.store, *seq);
        err = change.err;
    }
    expect_fault(it, err);
    return err == 0;
}

static bool
is_committed(const struct world *it, uint64_t seq)
{
    return seq == 0 || store_outcome(it->rig.store, seq) == STORE_COMMITTED;
}

static void
note_committed(const struct world *it, struct number *number)
{
    if (is_committed(it, number->last_seq)) {
        number->last_seq = 0;
        number->before = number->last;
    }
    if (is_committed(it, number->seq)) {
        number->seq = 0;
        number->before = number->last = number->value;
    }
}

static void
raise_number(struct world *it, struct number *number, uint64_t id,
    const char *name, uint64_t by)
{
    uint64_t value = number->value + by, seq = 0;
    note_committed(it, number);
    if (set(it, id, name, value, &seq)) {
        *number = (struct number){
            value, number->value, number->last, seq, number->seq};
    }
}

/* False where it cannot be read. */
static bool
get(struct world *it, uint64_t id, const char *name, uint64_t *value)
{
    struct store_get call = {
        .n = 1, .key = {cell_of(quiet_schema(it->rig.store), id, name)}};
    rig_get(&it->rig, &call);
    bool is_read = call.state[0] != CELL_UNREADABLE;
    expect_fault(it, is_read ? 0 : ERR_COLD_READ);
    *value = call.value[0];
    return is_read;
}

/* A mark as it is stored, which was NOW at first. */
static void
expect_mark(struct world *it, unsigned i, const char *name, uint64_t source,
    bool may_stay)
{
    uint64_t value;
    bool is_forgotten = source > NOW + FORGET;
    if (get(it, id_of(i), name, &value)) {
        EXPECT(value == NOW ? may_stay || !is_forgotten
                            : value == 0 && is_forgotten,
            "%s of %u is %" PRIu64 ", the source %" PRIu64, name, i, value,
            source);
    }
}

static void
read_all(struct world *it, bool may_stay)
{
    for (unsigned i = 0; i < IDS; i++) {
        uint64_t value;
        if (get(it, id_of(i), "at", &value)) {
            EXPECT(value == it->at[i].value, "at %u", i);
        }
        expect_mark(it, i, "seen", it->at[i].value, may_stay);
        expect_mark(it, i, "dotseen", it->dot.value, may_stay);
    }
}

/* ---- worlds ---- */

/* The counter that has the marks is the second one. */
static void
seal(struct world *it)
{
    ck_assert(rig_seal_later(&it->rig, 1));
    expect_fault(it, rig_seal_wait(&it->rig));
}

/* Every step-th id, from first on, has had so much more. */
static void
raise_some(struct world *it, unsigned first, unsigned step, uint64_t by)
{
    for (unsigned i = first; i < IDS; i += step) {
        raise_number(it, &it->at[i], id_of(i), "at", by);
    }
}

static void
work(struct world *it)
{
    raise_some(it, 0, 5, FORGET + 1);
    raise_some(it, 1, 5, FORGET);
    seal(it);
    read_all(it, true);
    raise_number(it, &it->dot, DOT_ID, "dot", FORGET + 1);
    raise_some(it, 2, 10, 1); /* the others are in segments alone */
    seal(it);
    raise_some(it, 1, 5, 1);
    read_all(it, true);
}

static void
rig_of(struct world *it, uint64_t seed)
{
    *it = (struct world){.dot = {NOW, NOW, NOW, 0, 0}};
    rig_init(&it->rig, WAL_SYNC_ALWAYS, ID_RANDOM, seed);
    rig_take_clock(&it->rig);
    it->rig.seals = true;
    it->rig.config.alloc = &heap_alloc;
    it->rig.data.seal_records = 16;
    for (unsigned i = 0; i < IDS; i++) {
        it->at[i] = (struct number){NOW, NOW, NOW, 0, 0};
    }
}

/* The directory that worlds begin with: all is in segments, and counts. */
static void
make_directory(void)
{
    static const char *const lines[] = {"add counter b cold=never",
        "add column b bid primarykey", "add column b dot max=40",
        "add counter u", "add column u uid primarykey",
        "add column u n suffix=at",
        "add column u s suffix=seen marks=n unread=new unmarked=none "
        "forget=10",
        "add column u d suffix=dotseen marks=1.dot unread=newdot "
        "unmarked=none forget=10"};
    struct world it;
    uint64_t seq;
    rig_of(&it, 1);
    ck_assert_int_eq(rig_open(&it.rig), 0);
    edit_all(it.rig.store, lines, COUNT_OF(lines));
    (void)set(&it, DOT_ID, "dot", NOW, &seq);
    for (unsigned i = 0; i < IDS; i++) {
        (void)set(&it, id_of(i), "at", NOW, &seq);
        (void)set(&it, id_of(i), "seen", NOW, &seq);
        (void)set(&it, id_of(i), "dotseen", NOW, &seq);
    }
    seal(&it);
    ck_assert_uint_eq(rig_cold_stat(&it.rig, "seal_forgotten"), 0);
    read_all(&it, false);
    ck_assert_int_eq(rig_close(&it.rig), 0);
    read_files(it.rig.data.disk, &sealed);
    rig_fini(&it.rig);
}

static void
begin(struct world *it, uint64_t seed)
{
    rig_of(it, seed);
    fake_disk_destroy(&it->rig.fake);
    it->rig.fake = disk_of(&sealed);
    spared_disk_init(&it->disk, fake_disk_as_disk(it->rig.fake));
    it->rig.data.disk = &it->disk.disk;
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

/* A call of the log that has failed may be told only now that all is well: by
 * when something is committed it has been. */
static void
wait_for_log(struct world *it)
{
    bool is_committed = false;
    while (!is_committed) {
        uint64_t seq = 0;
        rig_wait_writable(&it->rig);
        is_committed = set(it, DOT_ID, "dot", it->dot.value, &seq) &&
            rig_commit(&it->rig, seq) == STORE_COMMITTED;
    }
    rig_wait_writable(&it->rig);
}

/* All is well, and so is a seal of all that there is. */
static void
heal(struct world *it)
{
    struct rig *rig = &it->rig;
    wait_for_log(it);
    it->may_fail = false;
    read_all(it, true);
    raise_number(it, &it->dot, DOT_ID, "dot", FORGET + 1);
    raise_some(it, 0, 1, 1);
    seal(it);
    read_all(it, false);
    ck_assert_uint_eq(rig_n_hot(rig), 1); /* the dot */
    store_verify(rig->store);
    ck_assert_int_eq(rig_close(rig), 0);
    expect_sound(it);
    ck_assert_int_eq(rig_open(rig), 0);
    read_all(it, false);
}

/* What was not committed may be gone. */
static void
take_up(struct world *it, struct number *number, uint64_t id, const char *name)
{
    uint64_t value;
    ck_assert(get(it, id, name, &value));
    EXPECT(value == number->value || value == number->last ||
            value == number->before,
        "%s of %" PRIu64 " is %" PRIu64 ", not %" PRIu64 " (%" PRIu64
        " before, of batch %" PRIu64 ")",
        name, id, value, number->value, number->before, number->seq);
    *number = (struct number){value, value, value, 0, 0};
}

static void
crash(struct world *it, bool is_power_cut)
{
    struct rig *rig = &it->rig;
    it->may_fail = false;
    note_committed(it, &it->dot);
    for (unsigned i = 0; i < IDS; i++) {
        note_committed(it, &it->at[i]);
    }
    fake_disk_die(rig->fake, 1);
    (void)rig_close(rig);
    if (is_power_cut) {
        fake_disk_crash(rig->fake);
    } else {
        fake_disk_revive(rig->fake);
    }
    ck_assert_int_eq(rig_open(rig), 0);
    take_up(it, &it->dot, DOT_ID, "dot");
    for (unsigned i = 0; i < IDS; i++) {
        take_up(it, &it->at[i], id_of(i), "at");
    }
}

/* ---- faults ---- */

START_TEST(test_no_fault)
{
    struct world it;
    begin(&it, 1);
    ck_assert_int_eq(rig_open(&it.rig), 0);
    raise_some(&it, 0, 5, FORGET + 1);
    raise_some(&it, 1, 5, FORGET);
    seal(&it);
    ck_assert_uint_eq(rig_cold_stat(&it.rig, "seal_forgotten"), IDS / 5);
    read_all(&it, false);
    raise_number(&it, &it.dot, DOT_ID, "dot", FORGET + 1);
    raise_some(&it, 0, 1, 1);
    seal(&it);
    read_all(&it, false);
    heal(&it);
    ck_assert_int_eq(rig_close(&it.rig), 0);
    rig_fini(&it.rig);
}
END_TEST

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

START_TEST(test_disk)
{
    fail_by_turns(fail_call, FAKE_READ, EIO);
    fail_by_turns(fail_call, FAKE_WRITE, EIO);
    fail_by_turns(fail_call, FAKE_WRITE, ENOSPC);
    fail_by_turns(fail_call, FAKE_SYNC, EIO);
    fail_by_turns(fail_call, FAKE_OPEN, EIO);
    fail_by_turns(fail_call, FAKE_RENAME, EIO);
}
END_TEST

/* So many calls for memory fail, from number n on; false where there is no
 * n-th. */
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
    heap_spare();
    rig_fini(rig);
    heap_unspare();
    return any;
}

START_TEST(test_memory)
{
    unsigned n = 1;
    while (fail_memory(n, _i == 0 ? 1 : 40)) {
        n = sweep_next(n);
        ck_assert_uint_lt(n, FAULTS_MAX);
    }
    ck_assert_uint_gt(n, 50); /* fewer would prove little */
}
END_TEST

/* All marks are forgotten, of records in a segment but for one: a seal brings
 * in no more than its chunk, and each later one goes on. */
START_TEST(test_bound)
{
    enum { CHUNK = 16 };
    struct world it;
    uint64_t n_before = 0;
    begin(&it, 1);
    ck_assert_int_eq(rig_open(&it.rig), 0);
    raise_number(&it, &it.dot, DOT_ID, "dot", FORGET + 1);
    for (unsigned n_seals = 0; n_before < IDS; n_seals++) {
        ck_assert_uint_lt(n_seals, IDS);
        raise_some(&it, IDS - 1, 1, 1); /* so that there is one to be sealed */
        seal(&it);
        uint64_t n = rig_cold_stat(&it.rig, "seal_forgotten");
        ck_assert_uint_gt(n, n_before);
        ck_assert_uint_le(n - n_before, CHUNK);
        n_before = n;
    }
    ck_assert_uint_eq(n_before, IDS);
    ck_assert_int_eq(rig_close(&it.rig), 0);
    rig_fini(&it.rig);
}
END_TEST

int
main(void)
{
    TCase *tcase = tcase_create("seal forget");
    tcase_add_unchecked_fixture(tcase, make_directory, NULL);
    tcase_add_test(tcase, test_no_fault);
    tcase_add_test(tcase, test_bound);
    tcase_add_test(tcase, test_disk);
    tcase_add_loop_test(tcase, test_memory, 0, 2);
    return run_case("seal forget", tcase);
}
