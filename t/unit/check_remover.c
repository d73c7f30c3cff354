/* SPDX-License-Identifier: BSD-3-Clause */
/* store/remover: ids that are another server's go, from memory and from
 * segments, and no others; faults of memory and of the disk; who may have it
 * begin, and what ends it. */
#include "call/store_calls.h"
#include "lib/fault_alloc.h"
#include "store/store_real.h"
#include "unit/durable_help.h"
#include "unit/steps_help.h"

#include <errno.h>
#include <stdio.h>

enum { RANGE = 16 /* records of a range, about */ };

#define RULE "crc32a:1/3"

static struct remover *
remover_of(struct rig *rig)
{
    return &store__real(rig->store)->remover;
}

/* ---- handovers ---- */

static void
on_edit(struct store_call *call)
{
    sem_post(call->owner);
}

/* The err. */
static int
hand_over(struct rig *rig, const char *rule, const char *address)
{
    struct store_edit edit = {0};
    sem_t come;
    sem_init(&come, 0, 0);
    ck_assert_int_eq(moved_one_set(&edit.handover, rule, strlen(rule), address,
                         strlen(address)),
        0);
    edit.call.done_fn = on_edit;
    edit.call.owner = &come;
    ck_assert_int_eq(store_edit(rig->store, &edit), STORE_LATER);
    while (sem_wait(&come) != 0) {
    }
    sem_destroy(&come);
    return edit.err;
}

/* The err. */
static int
forget(struct rig *rig, const char *rule)
{
    struct owns *owns = NULL;
    struct qsbr_reader reader = {0};
    ck_assert_int_eq(owns_create_rule(rule, strlen(rule), &owns), 0);
    qsbr_register(rig->store->qsbr, &reader);
    qsbr_online(rig->store->qsbr, &reader);
    int err = store_forget(rig->store, &owns);
    qsbr_offline(&reader);
    qsbr_unregister(rig->store->qsbr, &reader);
    ck_assert((owns == NULL) == (err == 0));
    if (owns != NULL) {
        owns_destroy(&owns);
    }
    return err;
}

/* Waits until nothing is under way; how it has ended. */
static enum remover_state
wait_end(struct rig *rig)
{
    struct remover *it = remover_of(rig);
    mutex_lock(&it->lock);
    while (it->state == REMOVER_WANTED || it->state == REMOVER_RUNS) {
        mutex_wait(&it->lock, &it->changed);
    }
    enum remover_state state = it->state;
    mutex_unlock(&it->lock);
    return state;
}

/* Waits until it has met trouble; which. */
static int
wait_trouble(struct rig *rig)
{
    struct remover *it = remover_of(rig);
    int trouble = 0;
    while (trouble == 0) {
        mutex_lock(&it->lock);
        trouble = it->trouble;
        ck_assert(it->state == REMOVER_WANTED || it->state == REMOVER_RUNS);
        mutex_unlock(&it->lock);
        sched_yield();
    }
    return trouble;
}

static void
forget_all(struct rig *rig, const char *rule)
{
    ck_assert_int_eq(forget(rig, rule), 0);
    ck_assert_int_eq(wait_end(rig), REMOVER_ENDED);
}

/* ---- records ---- */

struct note {
    const char *name;
    char value[80];
};

static void
take_stat(void *context, const char *name, const char *value)
{
    struct note *note = context;
    if (strcmp(name, note->name) == 0) {
        (void)snprintf(note->value, sizeof note->value, "%s", value);
    }
}

/* A line of stats forget. */
static void
expect_stat(struct rig *rig, const char *name, const char *value)
{
    struct note note = {.name = name};
    store_forget_stats(rig->store, take_stat, &note);
    ck_assert_str_eq(note.value, value);
}

static void
on_piece(struct store_call *call)
{
    sem_post(call->owner);
}

/* How many records a counter has, of a rule or of none. */
static size_t
count(struct rig *rig, const char *counter, const char *rule)
{
    struct owns *owns = NULL;
    size_t n = 0;
    sem_t come;
    const struct schema_counter *it =
        schema_counter(quiet_schema(rig->store), counter, strlen(counter));
    ck_assert_ptr_nonnull(it);
    if (rule != NULL) {
        ck_assert_int_eq(owns_create_rule(rule, strlen(rule), &owns), 0);
    }
    struct store_dump dump = {.slot = it->slot,
        .serial = it->serial,
        .last_id = UINT64_MAX,
        .owns = owns};
    sem_init(&come, 0, 0);
    dump.call = (struct store_call){.done_fn = on_piece, .owner = &come};
    while (!dump.is_end) {
        ck_assert_int_eq(store_dump(rig->store, &dump), STORE_LATER);
        while (sem_wait(&come) != 0) {
        }
        ck_assert_int_eq(dump.err, 0);
        n += dump.n;
    }
    store_end_dump(rig->store, &dump);
    sem_destroy(&come);
    if (owns != NULL) {
        owns_destroy(&owns);
    }
    return n;
}

/* How many of the rig's ids are of a rule. */
static size_t
n_of(const struct rig *rig, const char *rule)
{
    struct owns *owns = NULL;
    size_t n = 0;
    ck_assert_int_eq(owns_create_rule(rule, strlen(rule), &owns), 0);
    for (size_t i = 0; i < RIG_IDS; i++) {
        n += owns_has(owns, rig->history.id[i]);
    }
    owns_destroy(&owns);
    ck_assert_uint_gt(n, 0);
    return n;
}

/* All of RULE is gone from both counters, and nothing else. */
static void
expect_gone(struct rig *rig)
{
    static const char *const counters[] = {"a", "b"};
    for (size_t i = 0; i < COUNT_OF(counters); i++) {
        ck_assert_uint_eq(count(rig, counters[i], RULE), 0);
        ck_assert_uint_eq(
            count(rig, counters[i], NULL), RIG_IDS - n_of(rig, RULE));
    }
}

static void
open_filled(struct rig *rig)
{
    ck_assert_int_eq(rig_open(rig), 0);
    rig->seals = true;
    rig_add_counter(rig, 'a');
    rig_add_counter(rig, 'b');
    (void)rig_set_all(rig, 'a', 5);
    (void)rig_set_all(rig, 'b', 1000000);
}

static void
begin(struct rig *rig, enum id_family family)
{
    rig_init(rig, WAL_SYNC_ALWAYS, family, 3);
    rig->data.seal_records = RANGE;
    rig->config.dump_range_records = RANGE;
    open_filled(rig);
}

static void
finish(struct rig *rig)
{
    ck_assert_int_eq(rig_close(rig), 0);
    rig_fini(rig);
}

/* Hot; cold; cold and some changed since; and it stays so after a start. */
START_TEST(test_everywhere)
{
    for (int where = 0; where < 3; where++) {
        struct rig rig;
        begin(&rig, (enum id_family)_i);
        if (where > 0) {
            ck_assert_int_eq(rig_seal_all(&rig), 0);
        }
        if (where > 1) {
            (void)rig_set_all(&rig, 'a', 6);
        }
        ck_assert_int_eq(hand_over(&rig, RULE, "h:1"), 0);
        forget_all(&rig, RULE);
        char text[24];
        (void)snprintf(text, sizeof text, "%zu", 2 * n_of(&rig, RULE));
        expect_stat(&rig, "forgotten", text);
        expect_stat(&rig, "state", "ended");
        expect_stat(&rig, "percent", "100");
        expect_stat(&rig, "unread", "0");
        expect_gone(&rig);
        ck_assert_int_eq(rig_close(&rig), 0);
        ck_assert_int_eq(rig_open(&rig), 0);
        expect_stat(&rig, "state", "none");
        expect_gone(&rig);
        forget_all(&rig, RULE); /* the handover is still there */
        expect_stat(&rig, "forgotten", "0");
        finish(&rig);
    }
}
END_TEST

START_TEST(test_memory_only)
{
    struct rig rig;
    rig_init(&rig, WAL_SYNC_ALWAYS, ID_RANDOM, 3);
    rig.config.data = NULL;
    rig.config.dump_range_records = RANGE;
    ck_assert_int_eq(store_create(&rig.config, &rig.store), 0);
    rig_add_counter(&rig, 'a');
    rig_add_counter(&rig, 'b');
    (void)rig_set_all(&rig, 'a', 5);
    (void)rig_set_all(&rig, 'b', 5);
    ck_assert_int_eq(hand_over(&rig, RULE, "h:1"), 0);
    forget_all(&rig, RULE);
    expect_gone(&rig);
    ck_assert_int_eq(store_destroy(&rig.store), 0);
    rig_fini(&rig);
}
END_TEST

/* Only of a handover of that very rule, and one at a time. */
START_TEST(test_refusals)
{
    struct rig rig;
    begin(&rig, ID_RANDOM);
    ck_assert_int_eq(forget(&rig, RULE), ERR_NOT_MOVED);
    ck_assert_int_eq(hand_over(&rig, "crc32a:2/3", "h:1"), 0);
    ck_assert_int_eq(forget(&rig, RULE), ERR_NOT_MOVED);
    ck_assert_int_eq(hand_over(&rig, RULE, "h:1"), 0);
    ck_assert_int_eq(hand_over(&rig, RULE, ""), 0);
    ck_assert_int_eq(forget(&rig, RULE), ERR_NOT_MOVED);
    ck_assert_int_eq(hand_over(&rig, RULE, "h:1"), 0);
    remover_hold(remover_of(&rig), NULL, ERR_NOT_PRIMARY);
    ck_assert_int_eq(forget(&rig, RULE), ERR_FORGETS);
    remover_release(remover_of(&rig));
    expect_stat(&rig, "state", "none");
    ck_assert_uint_eq(count(&rig, "a", NULL), RIG_IDS);
    forget_all(&rig, RULE);
    expect_gone(&rig);
    store_end_calls(rig.store);
    ck_assert_int_eq(forget(&rig, RULE), ERR_CLOSED);
    finish(&rig);
}
END_TEST

/* A log that cannot be written any more behind the records of the first
 * counter: those of the second one have to wait. */
static void
begin_trouble(struct rig *rig)
{
    begin(rig, ID_RANDOM);
    ck_assert_int_eq(rig_seal_all(rig), 0);
    ck_assert_int_eq(hand_over(rig, RULE, "h:1"), 0);
    ck_assert_int_eq(hand_over(rig, "crc32a:2/3", "h:1"), 0);
    fake_disk_fail(rig->fake, 1 << FAKE_SYNC | 1 << FAKE_WRITE, 1, EIO, true);
    ck_assert_int_eq(forget(rig, RULE), 0);
    ck_assert_int_ne(wait_trouble(rig), 0);
    expect_stat(rig, "state", "waiting");
}

START_TEST(test_disk)
{
    struct rig rig;
    begin_trouble(&rig);
    ck_assert_int_ne(forget(&rig, RULE), 0); /* the disk's fault */
    ck_assert_uint_gt(fake_disk_heal(rig.fake), 0);
    ck_assert_int_eq(wait_end(&rig), REMOVER_ENDED);
    expect_gone(&rig);
    finish(&rig);
}
END_TEST

/* Each read that fails once: what could not be read is counted, and goes when
 * it is asked for again. */
START_TEST(test_reads_that_fail)
{
    struct rig rig;
    for (unsigned n = 1;; n = whole_next(n)) {
        begin(&rig, ID_RANDOM);
        ck_assert_int_eq(rig_seal_all(&rig), 0);
        ck_assert_int_eq(hand_over(&rig, RULE, "h:1"), 0);
        fake_disk_fail(rig.fake, 1 << FAKE_READ, n, EIO, n % 4 == 0);
        forget_all(&rig, RULE);
        bool is_over = fake_disk_heal(rig.fake) == 0;
        size_t left = count(&rig, "a", RULE) + count(&rig, "b", RULE);
        struct note note = {.name = "unread"};
        store_forget_stats(rig.store, take_stat, &note);
        /* what could not be read may have none of the rule */
        ck_assert(left == 0 || strcmp(note.value, "0") != 0);
        forget_all(&rig, RULE);
        expect_stat(&rig, "unread", "0");
        expect_gone(&rig);
        finish(&rig);
        if (is_over) {
            ck_assert_uint_gt(n, 2);
            break;
        }
    }
}
END_TEST

/* Memory for what is copied runs out at any place: it goes on a while later. */
START_TEST(test_memory_of_copies)
{
    for (unsigned n = 1;; n = whole_next(n)) {
        struct fault_alloc fault;
        struct rig rig;
        fault_alloc_init(&fault);
        rig_init(&rig, WAL_SYNC_ALWAYS, ID_RANDOM, 3);
        rig.config.dump_range_records = RIG_IDS / 2;
        rig.config.dump_alloc = &fault.alloc;
        open_filled(&rig);
        ck_assert_int_eq(hand_over(&rig, RULE, "h:1"), 0);
        fault.fail_from = fault.fail_to = n;
        forget_all(&rig, RULE);
        bool has_failed = fault.failures > 0;
        fault.fail_from = fault.fail_to = 0;
        expect_gone(&rig);
        finish(&rig);
        ck_assert_uint_eq(fault.live_bytes, 0);
        if (!has_failed) {
            ck_assert_uint_gt(n, 4);
            break;
        }
    }
}
END_TEST

/* While it waits ids are handed back: where they are its own nothing more
 * goes, though the log cannot take the handover. */
START_TEST(test_handed_back)
{
    struct rig rig;
    begin_trouble(&rig);
    ck_assert_int_ne(hand_over(&rig, "crc32a:2/3", ""), 0);
    expect_stat(&rig, "state", "waiting");
    ck_assert_int_ne(hand_over(&rig, RULE, ""), 0);
    ck_assert_uint_gt(fake_disk_heal(rig.fake), 0); /* it might go on now */
    ck_assert_int_eq(wait_end(&rig), REMOVER_STOPPED);
    expect_stat(&rig, "state", "stopped");
    expect_stat(&rig, "reason", err_text(ERR_HANDED_BACK));
    rig_wait_writable(&rig);
    size_t left = count(&rig, "a", RULE) + count(&rig, "b", RULE);
    char text[24];
    (void)snprintf(text, sizeof text, "%zu", 2 * n_of(&rig, RULE) - left);
    expect_stat(&rig, "forgotten", text);
    ck_assert_uint_gt(left, 0);
    ck_assert_int_eq(hand_over(&rig, RULE, ""), 0);
    ck_assert_int_eq(forget(&rig, RULE), ERR_NOT_MOVED);
    finish(&rig);
}
END_TEST

/* A stop in the middle: nothing is in doubt, and it may be said again. */
START_TEST(test_stopped)
{
    struct rig rig;
    begin(&rig, ID_RANDOM);
    ck_assert_int_eq(hand_over(&rig, RULE, "h:1"), 0);
    ck_assert_int_eq(forget(&rig, RULE), 0);
    ck_assert_int_eq(rig_close(&rig), 0);
    ck_assert_int_eq(rig_open(&rig), 0);
    ck_assert_uint_eq(count(&rig, "a", NULL) - count(&rig, "a", RULE),
        RIG_IDS - n_of(&rig, RULE));
    forget_all(&rig, RULE);
    expect_gone(&rig);
    finish(&rig);
}
END_TEST

static void
take_step(struct step it)
{
    struct remover remover = {
        .magic = REMOVER_MAGIC, .state = (enum remover_state)it.from};
    remover__move(&remover, (enum remover_state)it.to);
}

START_TEST(test_states)
{
    enum { N = REMOVER_STATES_N };
    static const bool is_legal[N][N] = {
        [REMOVER_IDLE] = {[REMOVER_WANTED] = true},
        [REMOVER_WANTED] = {[REMOVER_RUNS] = true, [REMOVER_STOPPED] = true},
        [REMOVER_RUNS] = {[REMOVER_ENDED] = true, [REMOVER_STOPPED] = true},
        [REMOVER_ENDED] = {[REMOVER_WANTED] = true},
        [REMOVER_STOPPED] = {[REMOVER_WANTED] = true},
    };
    expect_steps(take_step, &is_legal[0][0], N);
}
END_TEST

int
main(void)
{
    TCase *tcase = tcase_create("remover");
    tcase_add_loop_test(tcase, test_everywhere, 0, ID_FAMILY_COUNT);
    tcase_add_test(tcase, test_memory_only);
    tcase_add_test(tcase, test_refusals);
    tcase_add_test(tcase, test_disk);
    tcase_add_test(tcase, test_reads_that_fail);
    tcase_add_test(tcase, test_memory_of_copies);
    tcase_add_test(tcase, test_handed_back);
    tcase_add_test(tcase, test_stopped);
    tcase_add_test(tcase, test_states);
    return run_case("remover", tcase);
}
