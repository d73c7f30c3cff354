/* SPDX-License-Identifier: BSD-3-Clause */
/* wal/wal_replica: a log that is given its batches with their numbers has these
 * and nothing else, whatever fails; what is not the next one is refused and
 * changes nothing; a term is there wholly or not at all. */
#include "unit/wal_replica_help.h"

#include "lib/fake_clock.h"
#include "lib/fault_alloc.h"

#include <errno.h>
#include <sched.h>

static const enum wal_sync modes[] = {
    WAL_SYNC_NONE, WAL_SYNC_INTERVAL, WAL_SYNC_ALWAYS};

/* The batches as they are told, in a log that is opened anew in the midst of
 * them: no number is left out, and none comes that nobody told. */
START_TEST(test_as_told)
{
    for (size_t i = 0; i < COUNT_OF(modes); i++) {
        struct told *told = tell_history(5);
        for (size_t cut = 0; cut <= told->n; cut += 4) {
            struct rig rig;
            replica_init(&rig, modes[i], cut);
            ck_assert_int_eq(rig_open(&rig), 0);
            for (size_t k = 0; k < told->n; k++) {
                const struct told_batch *batch = &told->batch[k];
                if (k == cut) {
                    ck_assert_int_eq(rig_close(&rig), 0);
                    ck_assert_uint_eq(replica_reopen(&rig, told), cut);
                }
                ck_assert_int_eq(put(&rig, batch), 0);
                ck_assert_int_eq(rig_commit(&rig, batch->seq), WAL_COMMITTED);
                ck_assert_uint_eq(wal_last(rig.wal), batch->seq);
            }
            ck_assert_int_eq(rig_close(&rig), 0);
            fake_disk_crash(rig.fake);
            expect_log(rig.disk, told);
            rig_fini(&rig);
        }
        free(told);
    }
}
END_TEST

/* As large as a batch may be. */
START_TEST(test_large)
{
    struct rig rig;
    struct replay_end end;
    uint64_t bytes = 0;
    uint8_t *payload = calloc(1, FRAME_PAYLOAD_MAX);
    ck_assert_ptr_nonnull(payload);
    replica_init(&rig, WAL_SYNC_ALWAYS, 1);
    ck_assert_int_eq(rig_open(&rig), 0);
    for (uint64_t seq = 1; seq <= 3; seq++) {
        ck_assert_int_eq(
            wal_put_batch(rig.wal, seq, payload, FRAME_PAYLOAD_MAX), 0);
        ck_assert_int_eq(rig_commit(&rig, seq), WAL_COMMITTED);
    }
    ck_assert_int_eq(rig_close(&rig), 0);
    struct replay replay = {.disk = rig.disk,
        .epoch = EPOCH,
        .number = 1,
        .batch_fn = count_batch,
        .context = &bytes};
    ck_assert_int_eq(replay_run(&replay, &end), 0);
    ck_assert_uint_eq(bytes, 3 * (uint64_t)FRAME_PAYLOAD_MAX);
    rig_fini(&rig);
    free(payload);
}
END_TEST

static void
expect_refused(struct rig *rig, uint64_t seq, const struct told_batch *batch)
{
    struct wal_stats before = rig_stats(rig);
    ck_assert_int_eq(
        wal_put_batch(rig->wal, seq, batch->bytes, batch->len), ERR_LOG_ORDER);
    struct wal_stats after = rig_stats(rig);
    ck_assert_uint_eq(after.last_seq, before.last_seq);
    ck_assert_uint_eq(after.bytes, before.bytes);
    ck_assert_uint_eq(after.file, before.file);
}

/* Twice, out of order, too far, or a term that does not fit. */
START_TEST(test_refused)
{
    struct rig rig;
    struct told *told = told_create();
    struct told *other = told_create();
    replica_init(&rig, WAL_SYNC_INTERVAL, 1);
    ck_assert_int_eq(rig_open(&rig), 0);
    ck_assert_int_eq(put(&rig, tell(told, 1)), 0);
    ck_assert_int_eq(put(&rig, tell(told, 2)), 0);
    const struct told_batch *some = &told->batch[0];
    uint64_t wrong[] = {0, 1, 2, 4, 2 + SEQ_GAP, UINT64_MAX};
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        expect_refused(&rig, wrong[i], some);
    }
    (void)tell(other, 3);
    expect_refused(&rig, seq_first(7), tell_term(other, 7)); /* behind 3 */
    (void)tell_term(told, 7);
    expect_refused(&rig, seq_first(8), &told->batch[2]);
    expect_refused(&rig, seq_make(7, 2), &told->batch[2]);
    ck_assert_int_eq(put(&rig, &told->batch[2]), 0);
    expect_refused(&rig, seq_first(7), &told->batch[2]);
    /* a log with terms has no starts */
    expect_refused(&rig, seq_make(7, 2) + SEQ_GAP, some);
    expect_refused(&rig, seq_first(9), some);
    ck_assert_int_eq(put(&rig, tell(told, seq_make(7, 2))), 0);
    ck_assert_int_eq(rig_close(&rig), 0);
    expect_log(rig.disk, told);
    /* nor has it after it was opened anew */
    (void)replica_reopen(&rig, told);
    expect_refused(&rig, seq_first(9), some);
    ck_assert_int_eq(put(&rig, tell_term(told, 9)), 0);
    ck_assert_int_eq(rig_close(&rig), 0);
    expect_log(rig.disk, told);
    rig_fini(&rig);
    free(told);
    free(other);
}
END_TEST

static struct entry_term
term_of(uint32_t number)
{
    struct entry_term term = {.term = number, .branch = 1000 + number};
    ck_assert(node_name_set(&term.node, "n", 1));
    return term;
}

/* A primary's log: what it appends is in its term. Another log is given all
 * that, and is the same; then it is the primary. */
START_TEST(test_terms)
{
    struct rig one, two;
    struct replay_end end;
    uint64_t seq;
    rig_init(&one, WAL_SYNC_INTERVAL, 1);
    ck_assert_int_eq(rig_open(&one), 0);
    ck_assert_int_eq(rig_commit(&one, rig_append(&one, 5)), WAL_COMMITTED);
    wal_become_replica(one.wal); /* it was alone until now */
    struct entry_term term = term_of(3);
    ck_assert_int_eq(wal_begin_term(one.wal, &term, &seq), 0);
    ck_assert_uint_eq(term.last_seq, 1);
    ck_assert_uint_eq(seq, seq_first(3));
    ck_assert_int_eq(rig_commit(&one, seq), WAL_COMMITTED);
    for (unsigned i = 0; i < 4; i++) {
        uint64_t next = rig_append(&one, 3);
        ck_assert_int_eq(rig_commit(&one, next), WAL_COMMITTED);
        ck_assert_uint_eq(next, seq_make(3, 2 + i));
    }
    ck_assert_int_eq(rig_close(&one), 0);
    struct told *told = read_told(one.disk, &end);
    ck_assert_uint_eq(told->n, 6);
    ck_assert_uint_eq(told->batch[1].seq, seq_first(3));
    replica_init(&two, WAL_SYNC_ALWAYS, 2);
    ck_assert_int_eq(rig_open(&two), 0);
    for (size_t i = 0; i < told->n; i++) {
        ck_assert_int_eq(put(&two, &told->batch[i]), 0);
    }
    term = term_of(4);
    ck_assert_int_eq(wal_begin_term(two.wal, &term, &seq), 0);
    ck_assert_uint_eq(term.last_seq, seq_make(3, 5));
    ck_assert_int_eq(rig_commit(&two, rig_append(&two, 1)), WAL_COMMITTED);
    ck_assert_int_eq(rig_close(&two), 0);
    struct told *more = read_told(two.disk, &end);
    ck_assert_uint_eq(more->n, told->n + 2);
    expect_same(more, told, told->n);
    ck_assert_uint_eq(more->batch[told->n].seq, seq_first(4));
    ck_assert_uint_eq(more->batch[told->n + 1].seq, seq_make(4, 2));
    free(more);
    free(told);
    rig_fini(&one);
    rig_fini(&two);
}
END_TEST

/* A term must be far enough above; the largest one has no other above it. */
START_TEST(test_terms_refused)
{
    struct rig rig;
    uint64_t seq;
    replica_init(&rig, WAL_SYNC_INTERVAL, 1);
    rig.config.start.next_seq = seq_make(5, SEQ_N_MAX) + 1;
    ck_assert_int_eq(rig_open(&rig), 0);
    struct entry_term term = term_of(5);
    ck_assert_int_eq(wal_begin_term(rig.wal, &term, &seq), ERR_LOG_ORDER);
    term.term = SEQ_TERM_MAX + 1;
    ck_assert_int_eq(wal_begin_term(rig.wal, &term, &seq), ERR_LOG_ORDER);
    ck_assert_uint_eq(rig_stats(&rig).file, 1);
    term.term = SEQ_TERM_MAX;
    ck_assert_int_eq(wal_begin_term(rig.wal, &term, &seq), 0);
    ck_assert_uint_eq(seq, seq_first(SEQ_TERM_MAX));
    wal_become_replica(rig.wal);
    ck_assert_int_eq(wal_begin_term(rig.wal, &term, &seq), ERR_LOG_ORDER);
    ck_assert_int_eq(rig_close(&rig), 0);
    rig_fini(&rig);
}
END_TEST

/* A primary that nobody asks marks that all is synced; a replica does not, for
 * the number is not its own. Time passes by a clock that both have; when the
 * one has made its mark, the other one has had time to. */
START_TEST(test_no_marks)
{
    struct rig rig, primary;
    struct fake_clock clock;
    struct told *told = told_create();
    fake_clock_init(&clock);
    rig_init(&primary, WAL_SYNC_ALWAYS, 1);
    replica_init(&rig, WAL_SYNC_ALWAYS, 1);
    rig.config.clock = primary.config.clock = &clock.clock;
    rig.config.idle_ms = primary.config.idle_ms = 500;
    ck_assert_int_eq(rig_open(&primary), 0);
    ck_assert_int_eq(rig_open(&rig), 0);
    for (uint64_t seq = 1; seq <= 20; seq++) {
        ck_assert_int_eq(put(&rig, tell(told, seq)), 0);
        ck_assert_int_eq(rig_commit(&rig, seq), WAL_COMMITTED);
        ck_assert_int_eq(
            rig_commit(&primary, rig_append(&primary, 1)), WAL_COMMITTED);
        fake_clock_pass(&clock, 1000);
        while (rig_stats(&primary).marks < seq) {
            sched_yield();
        }
    }
    ck_assert_uint_eq(rig_stats(&rig).marks, 0);
    ck_assert_int_eq(rig_close(&primary), 0);
    ck_assert_int_eq(rig_close(&rig), 0);
    expect_log(rig.disk, told);
    rig_fini(&primary);
    rig_fini(&rig);
    free(told);
}
END_TEST

/* A primary's log ends with its mark when it becomes a replica's: that can be
 * synced. */
START_TEST(test_mark_at_end)
{
    struct rig rig;
    struct fake_clock clock;
    struct wal_position at;
    fake_clock_init(&clock);
    for (size_t i = 0; i < COUNT_OF(modes); i++) {
        rig_init(&rig, modes[i], 1);
        rig.config.clock = &clock.clock;
        rig.config.idle_ms = 500;
        ck_assert_int_eq(rig_open(&rig), 0);
        uint64_t seq = rig_append(&rig, 1);
        ck_assert_int_eq(rig_commit(&rig, seq), WAL_COMMITTED);
        ck_assert_int_eq(wal_sync_up_to(rig.wal, seq), 0);
        fake_clock_pass(&clock, 1000);
        while (modes[i] != WAL_SYNC_NONE && rig_stats(&rig).mark_seq == 0) {
            sched_yield();
        }
        wal_become_replica(rig.wal);
        wal_position(rig.wal, &at);
        ck_assert_uint_eq(at.last, seq + (modes[i] != WAL_SYNC_NONE));
        ck_assert_int_eq(wal_sync_up_to(rig.wal, at.last), 0);
        seq = at.last;
        wal_position(rig.wal, &at);
        ck_assert_uint_eq(at.synced, seq);
        ck_assert_int_eq(rig_close(&rig), 0);
        rig_fini(&rig);
    }
}
END_TEST

/* Puts on behind the first n; returns how many are in then. An error of the
 * disk is tried again now and then. */
static size_t
put_on(struct rig *rig, const struct told *told, size_t n, size_t *n_acked)
{
    for (; n < told->n; n++) {
        if (put(rig, &told->batch[n]) != 0) {
            break;
        }
        if (rig_commit(rig, told->batch[n].seq) == WAL_COMMITTED) {
            *n_acked = n + 1;
        }
    }
    return n;
}

/* Each call of the disk fails once, of the syncs and of all. No batch gets
 * lost, none is there twice, and the next ones are taken when it is well. */
static bool
fail_once(
    enum wal_sync mode, const struct told *told, unsigned mask, unsigned n)
{
    struct rig rig;
    size_t n_acked = 0, n_in = 0;
    replica_init(&rig, mode, n);
    ck_assert_int_eq(rig_open(&rig), 0);
    fake_disk_fail(rig.fake, mask, n, EIO, false);
    while (n_in < told->n) { /* where the log is refused it is tried again */
        n_in = put_on(&rig, told, n_in, &n_acked);
    }
    bool has_failed = fake_disk_heal(rig.fake) > 0;
    ck_assert_int_eq(wal_sync_up_to(rig.wal, told->batch[told->n - 1].seq), 0);
    ck_assert_int_eq(rig_close(&rig), 0);
    fake_disk_crash(rig.fake);
    expect_log(rig.disk, told);
    rig_fini(&rig);
    return has_failed;
}

START_TEST(test_disk_fails)
{
    struct told *told = tell_history(3);
    for (size_t i = 0; i < COUNT_OF(modes); i++) {
        unsigned n = 1;
        for (; fail_once(modes[i], told, FAKE_ALL, n); n += SWEEP_STEP) {
        }
        ck_assert_uint_gt(n, 20);
        n = 1;
        for (; fail_once(modes[i], told, 1 << FAKE_SYNC, n); n++) {
        }
        ck_assert_uint_gt(n, 3);
    }
    free(told);
}
END_TEST

/* The machine stops at each call. What was acknowledged as synced is there,
 * what is there is the beginning of all, and the rest can be put behind it. */
START_TEST(test_power_cut)
{
    struct told *told = tell_history(3);
    bool was_stopped = true;
    for (unsigned n = 1; was_stopped; n += SWEEP_STEP) {
        struct rig rig;
        size_t n_acked = 0;
        replica_init(&rig, WAL_SYNC_ALWAYS, n);
        ck_assert_int_eq(rig_open(&rig), 0);
        fake_disk_die(rig.fake, n);
        (void)put_on(&rig, told, 0, &n_acked);
        (void)rig_close(&rig);
        was_stopped = fake_disk_is_dead(rig.fake);
        fake_disk_crash(rig.fake);
        size_t n_in = replica_reopen(&rig, told);
        ck_assert_uint_ge(n_in, n_acked);
        ck_assert_uint_eq(put_on(&rig, told, n_in, &n_acked), told->n);
        ck_assert_int_eq(rig_close(&rig), 0);
        fake_disk_crash(rig.fake);
        expect_log(rig.disk, told);
        rig_fini(&rig);
    }
    free(told);
}
END_TEST

/* Memory runs out: the batch is refused, and is taken when there is some. */
START_TEST(test_no_memory)
{
    struct rig rig;
    struct fault_alloc fault;
    struct told *told = tell_history(3);
    size_t n_acked = 0;
    uint8_t *payload = calloc(1, FRAME_PAYLOAD_MAX);
    ck_assert_ptr_nonnull(payload);
    fault_alloc_init(&fault);
    replica_init(&rig, WAL_SYNC_ALWAYS, 1);
    rig.config.alloc = &fault.alloc;
    ck_assert_int_eq(rig_open(&rig), 0);
    uint64_t seq[] = {1, SEQ_GAP + 1};
    for (size_t i = 0; i < COUNT_OF(seq); i++) {
        fault_alloc_arm(&fault, 1);
        ck_assert_int_eq(
            wal_put_batch(rig.wal, seq[i], payload, FRAME_PAYLOAD_MAX),
            ERR_NO_MEMORY);
        ck_assert_uint_eq(wal_last(rig.wal), 0);
    }
    ck_assert_uint_eq(put_on(&rig, told, 0, &n_acked), told->n);
    ck_assert_int_eq(rig_close(&rig), 0);
    expect_log(rig.disk, told);
    rig_fini(&rig);
    free(payload);
    free(told);
}
END_TEST

/* Looks at a log while it is written. */
struct looking {
    struct wal *wal;
    unsigned n_unknown; /* batches whose term was not known */
    _Atomic bool is_over;
};

static void *
look_on(void *arg)
{
    struct looking *it = arg;
    while (!atomic_load(&it->is_over)) {
        struct history terms;
        uint64_t last = wal_last(it->wal);
        wal_terms(it->wal, &terms); /* of a later batch, or the same one */
        it->n_unknown +=
            seq_term(last) != 0 && history_find(&terms, last) == NULL;
        sched_yield();
    }
    return NULL;
}

/* Whoever sees a batch of a term sees the term. */
START_TEST(test_terms_beside)
{
    enum { TERMS = 40 };
    struct rig rig;
    struct told *told = told_create();
    struct looking it = {.n_unknown = 0};
    pthread_t thread;
    replica_init(&rig, WAL_SYNC_ALWAYS, 1);
    ck_assert_int_eq(rig_open(&rig), 0);
    it.wal = rig.wal;
    atomic_init(&it.is_over, false);
    ck_assert_int_eq(pthread_create(&thread, NULL, look_on, &it), 0);
    for (uint32_t term = 1; term <= TERMS; term++) {
        ck_assert_int_eq(put(&rig, tell_term(told, term)), 0);
        sched_yield();
    }
    atomic_store(&it.is_over, true);
    pthread_join(thread, NULL);
    ck_assert_uint_eq(it.n_unknown, 0);
    ck_assert_int_eq(rig_close(&rig), 0);
    expect_log(rig.disk, told);
    rig_fini(&rig);
    free(told);
}
END_TEST

/* Lets go what is held of a disk, once it is and others have had their turn. */
static void *
let_go_late(void *arg)
{
    enum { TURNS = 2000 };
    struct fake_disk *fake = arg;
    fake_disk_wait_held(fake);
    for (unsigned i = 0; i < TURNS; i++) {
        sched_yield();
    }
    fake_disk_let_go(fake);
    return NULL;
}

/* Whoever has begun a term finds it in the log, however long its file takes;
 * and there was something to be synced before. */
START_TEST(test_term_is_written)
{
    enum { TERMS = 8 };
    struct rig rig;
    replica_init(&rig, WAL_SYNC_INTERVAL, 1);
    ck_assert_int_eq(rig_open(&rig), 0);
    for (uint32_t number = 1; number <= TERMS; number++) {
        struct entry_term term = {.term = number, .branch = number};
        struct wal_position at;
        pthread_t thread;
        uint64_t seq;
        ck_assert(node_name_set(&term.node, "n", 1));
        fake_disk_hold_name(rig.fake, FAKE_OPEN, "log-");
        ck_assert_int_eq(
            pthread_create(&thread, NULL, let_go_late, rig.fake), 0);
        ck_assert_int_eq(wal_begin_term(rig.wal, &term, &seq), 0);
        wal_position(rig.wal, &at);
        ck_assert_uint_eq(at.written, seq);
        ck_assert_uint_eq(at.terms.at[at.terms.n - 1].term, number);
        pthread_join(thread, NULL);
        seq = wal_append(rig.wal, "\x09\1\2\3", 4);
        (void)wal_commit(rig.wal, seq); /* written, if not yet synced */
        wal_become_replica(rig.wal);
    }
    ck_assert_int_eq(rig_close(&rig), 0);
    rig_fini(&rig);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_as_told, test_large, test_refused,
        test_terms, test_terms_refused, test_no_marks, test_mark_at_end,
        test_disk_fails, test_power_cut, test_no_memory, test_terms_beside,
        test_term_is_written};
    return run_tests("wal replica", tests, COUNT_OF(tests));
}
