/* SPDX-License-Identifier: BSD-3-Clause */
/* wal/log_cut: of a log that is cut behind any batch the beginning is there,
 * and goes on with other batches; the rest is kept aside as far as there is
 * room. It can be begun again from wherever it was broken off. */
#include "wal/log_cut.h"

#include "unit/wal_replica_help.h"

#include <errno.h>

enum { EACH = 3, FIRST_SEQ = 5 };

/* A log on several files, which begins with FIRST_SEQ. */
static struct told *
make_log(struct rig *rig, uint64_t seed)
{
    struct told *told = told_create();
    uint64_t number, seq;
    replica_init(rig, WAL_SYNC_ALWAYS, seed);
    rig->config.start.next_seq = FIRST_SEQ;
    ck_assert_int_eq(rig_open(rig), 0);
    for (unsigned i = 0; i < EACH; i++) {
        ck_assert_int_eq(put(rig, tell(told, FIRST_SEQ + i)), 0);
    }
    for (uint32_t term = 1; term <= 3; term += 2) {
        ck_assert_int_eq(put(rig, tell_term(told, term)), 0);
        for (unsigned i = 0; i < 2 * EACH; i++) {
            ck_assert_int_eq(put(rig, tell(told, seq_make(term, 2 + i))), 0);
            if (i == EACH) {
                ck_assert_int_eq(wal_rotate(rig->wal, &number, &seq), 0);
            }
        }
    }
    ck_assert_int_eq(rig_close(rig), 0);
    return told;
}

static struct log_cut
cut_behind(struct rig *rig, uint64_t seq)
{
    return (struct log_cut){.disk = rig->disk,
        .logger = &rig->logger,
        .epoch = EPOCH,
        .number = 1,
        .seq = seq,
        .keep_bytes = UINT64_MAX};
}

struct cut_names {
    uint64_t n, first, last;
};

static void
note_cut(void *context, const char *name)
{
    struct cut_names *names = context;
    enum names_kind kind;
    uint64_t number;
    if (!names_parse(name, &kind, &number) || kind != NAMES_CUT) {
        return;
    }
    names->n++;
    names->last = number > names->last ? number : names->last;
    names->first =
        names->first == 0 || number < names->first ? number : names->first;
}

/* All that is in cut files. */
static struct told *
read_cuts(struct rig *rig, struct cut_names *names)
{
    struct told *told = told_create();
    *names = (struct cut_names){0};
    ck_assert_int_eq(rig->disk->calls->list(rig->disk, note_cut, names), 0);
    for (uint64_t i = names->first; i != 0 && i <= names->last; i++) {
        ck_assert_int_eq(log_cut_read(rig->disk, i, take_told, told), 0);
    }
    return told;
}

/* Opens the log behind the cut, and puts other batches there: the log has the
 * first n of told, and these. */
static void
go_on(struct rig *rig, const struct replay_end *end, const struct told *told,
    size_t n)
{
    struct told *other = told_create();
    memcpy(other, told, sizeof *other);
    other->n = n;
    struct history terms = told_terms(told, n);
    rig->config.start.terms = &terms;
    rig->config.start.next_number = end->number + 1;
    rig->config.start.next_seq = end->next_seq;
    rig->config.start.before_end = end->end;
    ck_assert_int_eq(rig_open(rig), 0);
    if (n == 0) { /* tell_term would say 0 */
        ck_assert_int_eq(put(rig, tell(other, end->next_seq)), 0);
    }
    ck_assert_int_eq(put(rig, tell_term(other, 40)), 0);
    ck_assert_int_eq(put(rig, tell(other, seq_make(40, 2))), 0);
    ck_assert_int_eq(rig_close(rig), 0);
    expect_log(rig->disk, other);
    free(other);
}

static uint64_t
seq_before(const struct told *told, size_t n)
{
    return n == 0 ? FIRST_SEQ - 1 : told->batch[n - 1].seq;
}

/* Behind each batch, and before the first one. */
START_TEST(test_each_batch)
{
    for (size_t n = 0;; n++) {
        struct rig rig;
        struct replay_end end;
        struct cut_names names;
        struct told *told = make_log(&rig, n);
        const struct log_cut cut = cut_behind(&rig, seq_before(told, n));
        ck_assert_int_eq(log_cut_run(&cut, &end), 0);
        ck_assert_uint_eq(end.next_seq, cut.seq + 1);
        struct told *kept = read_cuts(&rig, &names);
        ck_assert_uint_eq(kept->n, told->n - n);
        for (size_t i = 0; i < kept->n; i++) {
            ck_assert_uint_eq(kept->batch[i].seq, told->batch[n + i].seq);
            ck_assert_int_eq(
                memcmp(kept->batch[i].bytes, told->batch[n + i].bytes,
                    told->batch[n + i].len),
                0);
        }
        free(kept);
        go_on(&rig, &end, told, n);
        bool is_last = n == told->n;
        rig_fini(&rig);
        free(told);
        if (is_last) {
            break;
        }
    }
}
END_TEST

/* What the log does not have, or what is in the manifest already. */
START_TEST(test_refused)
{
    struct rig rig;
    struct replay_end end;
    struct told *told = make_log(&rig, 1);
    uint64_t wrong[] = {1, FIRST_SEQ - 2, FIRST_SEQ + EACH, seq_make(1, 0),
        seq_make(1, 2 * EACH + 2), seq_make(2, 1), seq_make(90, 1),
        UINT64_MAX - 1};
    size_t n_events, n_after;
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        const struct log_cut cut = cut_behind(&rig, wrong[i]);
        ck_assert_int_eq(log_cut_run(&cut, &end), ERR_LOG_GONE);
    }
    struct log_cut cut = cut_behind(&rig, seq_make(1, 2));
    cut.manifest_seq = seq_make(1, 3);
    (void)fake_disk_events(rig.fake, &n_events);
    ck_assert_int_eq(log_cut_run(&cut, &end), ERR_LOG_GONE);
    (void)fake_disk_events(rig.fake, &n_after);
    ck_assert_uint_eq(n_events, n_after);
    expect_log(rig.disk, told);
    cut.manifest_seq = cut.seq;
    ck_assert_int_eq(log_cut_run(&cut, &end), 0);
    rig_fini(&rig);
    free(told);
}
END_TEST

/* Of what is cut only so much is kept, of several cuts the last. */
START_TEST(test_limit)
{
    uint64_t largest = 0;
    for (uint64_t limit = 0; limit < 30000; limit += 997) {
        struct rig rig;
        struct replay_end end;
        struct cut_names names;
        struct told *told = make_log(&rig, limit);
        struct log_cut cut = cut_behind(&rig, seq_before(told, 9));
        cut.keep_bytes = limit;
        ck_assert_int_eq(log_cut_run(&cut, &end), 0);
        struct told *kept = read_cuts(&rig, &names);
        ck_assert_uint_ge(kept->n, largest);
        largest = kept->n;
        free(kept);
        cut.seq = seq_before(told, 2); /* more of it */
        ck_assert_int_eq(log_cut_run(&cut, &end), 0);
        uint64_t bytes = 0;
        kept = read_cuts(&rig, &names);
        for (size_t i = 0; i < kept->n; i++) {
            bytes += FRAME_BATCH_BYTES + kept->batch[i].len;
        }
        ck_assert_uint_le(bytes + FRAME_FILE_BYTES * names.n, limit);
        free(kept);
        go_on(&rig, &end, told, 2);
        rig_fini(&rig);
        free(told);
    }
    ck_assert_uint_gt(largest, 3);
}
END_TEST

/* The machine stops at each call, and the cut is done again. All that was cut
 * is kept, perhaps twice. */
START_TEST(test_power_cut)
{
    for (size_t n = 0; n < 14; n += 3) {
        bool was_stopped = true;
        for (unsigned call = 1; was_stopped; call++) {
            struct rig rig;
            struct replay_end end;
            struct cut_names names;
            struct told *told = make_log(&rig, call);
            const struct log_cut cut = cut_behind(&rig, seq_before(told, n));
            fake_disk_die(rig.fake, call);
            int err = log_cut_run(&cut, &end);
            was_stopped = fake_disk_is_dead(rig.fake);
            ck_assert(was_stopped || err == 0);
            fake_disk_crash(rig.fake);
            ck_assert_int_eq(log_cut_run(&cut, &end), 0);
            struct told *kept = read_cuts(&rig, &names);
            for (size_t i = n; i < told->n; i++) {
                size_t k = 0;
                while (
                    k < kept->n && kept->batch[k].seq != told->batch[i].seq) {
                    k++;
                }
                ck_assert_uint_lt(k, kept->n);
            }
            free(kept);
            fake_disk_crash(rig.fake);
            go_on(&rig, &end, told, n);
            rig_fini(&rig);
            free(told);
        }
    }
}
END_TEST

/* And at each call once more, while the log is opened behind the cut: the cut
 * is done again, or the log goes on behind it. */
START_TEST(test_power_cut_behind)
{
    bool was_stopped = true;
    for (unsigned call = 1; was_stopped; call++) {
        struct rig rig;
        struct replay_end end;
        struct told *told = make_log(&rig, call);
        const struct log_cut cut = cut_behind(&rig, seq_before(told, 5));
        ck_assert_int_eq(log_cut_run(&cut, &end), 0);
        struct history terms = told_terms(told, 5);
        rig.config.start.terms = &terms;
        rig.config.start.next_number = end.number + 1;
        rig.config.start.next_seq = end.next_seq;
        rig.config.start.before_end = end.end;
        fake_disk_die(rig.fake, call);
        ck_assert_int_eq(rig_open(&rig), 0);
        (void)rig_close(&rig);
        was_stopped = fake_disk_is_dead(rig.fake);
        fake_disk_crash(rig.fake);
        ck_assert_int_eq(log_cut_run(&cut, &end), 0);
        go_on(&rig, &end, told, 5);
        rig_fini(&rig);
        free(told);
    }
}
END_TEST

/* Each call fails once: that is said, or it does not matter, and it can be
 * done then. */
START_TEST(test_disk_fails)
{
    bool has_failed = true;
    for (unsigned call = 1; has_failed; call++) {
        struct rig rig;
        struct replay_end end;
        struct told *told = make_log(&rig, call);
        const struct log_cut cut = cut_behind(&rig, seq_before(told, 5));
        fake_disk_fail(rig.fake, FAKE_ALL, call, EIO, false);
        int err = log_cut_run(&cut, &end);
        has_failed = fake_disk_heal(rig.fake) > 0;
        ck_assert(err == 0 || (has_failed && err == ERR_DISK));
        if (err != 0) {
            ck_assert_int_eq(log_cut_run(&cut, &end), 0);
        }
        go_on(&rig, &end, told, 5);
        rig_fini(&rig);
        free(told);
    }
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_each_batch, test_refused, test_limit,
        test_power_cut, test_power_cut_behind, test_disk_fails};
    return run_tests("log cut", tests, COUNT_OF(tests));
}
