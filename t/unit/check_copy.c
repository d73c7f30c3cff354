/* SPDX-License-Identifier: BSD-3-Clause */
/* repl/copy_*: a snapshot goes from a running store to another disk, and a
 * store that is loaded from it has what the first one had. The connection is
 * cut off again and again; the primary goes on, makes checkpoints, is
 * restarted; frames are lost, doubled and changed. */
#include "unit/copy_help.h"

#include "lib/fake_clock.h"
#include "repl/copy_rate.h"

#include <errno.h>

enum { STEPS = 200, ROUNDS = 6, CUTS = 10 };

/* Files of each kind, and several. */
static void
begin_from(struct rig *rig, uint64_t seed)
{
    rig_init(rig, WAL_SYNC_ALWAYS, ID_RANDOM, seed);
    rig->seals = true;
    rig->data.checkpoint_file_bytes = 4096;
    ck_assert_int_eq(rig_open(rig), 0);
    for (char letter = 'a'; letter < 'e'; letter++) {
        rig_add_counter(rig, letter);
        (void)rig_set_all(rig, letter, 3);
        ck_assert_int_eq(rig_seal_all(rig), 0);
    }
    (void)rig_set_all(rig, 'a', 4);
    ck_assert_int_eq(rig_checkpoint(rig), 0);
    for (unsigned i = 0; i < 3; i++) { /* each start begins a log file */
        (void)rig_set_all(rig, 'b', 5 + i);
        ck_assert_int_eq(rig_close(rig), 0);
        ck_assert_int_eq(rig_open(rig), 0);
    }
    (void)rig_set_all(rig, 'c', 9);
}

static void
end_from(struct rig *rig)
{
    ck_assert_int_eq(rig_seal_wait(rig), 0);
    rig_end(rig);
}

static void
begin_to(struct rig *rig, uint64_t seed)
{
    rig_init(rig, WAL_SYNC_ALWAYS, ID_RANDOM, seed);
}

/* To an empty directory, and to one that is in use meanwhile. */
START_TEST(test_whole)
{
    struct rig from, to;
    struct join join;
    const struct join_config config = {
        .from = &from, .to = &to, .seed = (uint64_t)_i + 1};

    begin_from(&from, (uint64_t)_i + 1);
    begin_to(&to, 77);
    ck_assert_int_eq(join_once(&config, &join), COPY_DONE);
    ck_assert_int_ne(join.is_out, COPY_FAILED);
    ck_assert_uint_gt(join.out_figures.files, 6);
    ck_assert_uint_eq(join.in_figures.files, join.out_figures.files);
    ck_assert_uint_eq(join.in_figures.files_moved, join.in_figures.files);
    ck_assert_uint_eq(join.in_figures.bytes_moved, join.in_figures.bytes);
    ck_assert_uint_eq(join.out_figures.bytes_moved, join.in_figures.bytes);
    ck_assert_uint_eq(join.in_figures.files_kept, 0);
    join_judge(&to, &from, join.last_seq);
    rig_fini(&to);
    end_from(&from);
}
END_TEST

/* What the primary does between two connections. */
static void
go_on(struct rig *from, unsigned n)
{
    (void)rig_work(from, STEPS / 4);
    if (n % 3 == 1) {
        ck_assert_int_eq(rig_checkpoint(from), 0);
    }
    if (n % 4 == 3) {
        ck_assert_int_eq(rig_seal_wait(from), 0);
        ck_assert_int_eq(rig_close(from), 0);
        ck_assert_int_eq(rig_open(from), 0);
    }
}

START_TEST(test_cut_off)
{
    struct rig from, to;
    struct join join;
    struct join_config config = {.from = &from, .to = &to};
    uint64_t random = (uint64_t)_i + 1;
    uint64_t n_kept = 0;

    begin_from(&from, random);
    begin_to(&to, 77);
    unsigned n;
    for (n = 0; n < CUTS; n++) {
        random = random * 6364136223846793005U + 1442695040888963407U;
        config.seed = random;
        config.cut_at = 1 + (random >> 33) % 60000;
        if (join_once(&config, &join) == COPY_DONE) {
            break;
        }
        ck_assert_int_ne(join.is_in, COPY_FAILED);
        ck_assert_int_ne(join.is_out, COPY_FAILED);
        n_kept += join.in_figures.files_kept;
        go_on(&from, n);
    }
    if (join.is_in != COPY_DONE) {
        config.cut_at = 0;
        ck_assert_int_eq(join_once(&config, &join), COPY_DONE);
    }
    ck_assert(n_kept + join.in_figures.files_kept > 0 || n < CUTS / 2);
    ck_assert_uint_eq(join.in_figures.files_moved + join.in_figures.files_kept,
        join.in_figures.files);
    join_judge(&to, &from, join.last_seq);
    rig_fini(&to);
    end_from(&from);
}
END_TEST

/* All files come, and the connection is cut off before the last END. */
static void
copy_but_for_end(const struct join_config *config, uint64_t all)
{
    struct join join;
    struct join_config cut = *config;
    struct copy_figures figures;

    cut.cut_at = all - STREAM_HEAD_BYTES - 8;
    ck_assert_int_eq(join_start(&join, &cut), 0);
    join_run(&join);
    ck_assert_int_eq(join.is_in, COPY_NOTHING);
    for (;;) { /* what has arrived is put */
        copy_in_figures(join.in, &figures);
        if (figures.files_moved == figures.files) {
            break;
        }
        ck_assert_int_eq(sem_wait(&join.wake), 0);
    }
    join_end(&join);
}

/* Whole files stay, and nothing of them is sent again; but for another
 * source. */
START_TEST(test_kept)
{
    struct rig from, to;
    struct join join;
    struct join_config config = {.from = &from, .to = &to, .seed = 5};
    uint64_t all;

    begin_from(&from, 5);
    begin_to(&to, 77);
    ck_assert_int_eq(join_start(&join, &config), 0);
    join_run(&join);
    all = join.down.n;
    join_end(&join);
    rig_fini(&to);

    begin_to(&to, 78);
    copy_but_for_end(&config, all);
    ck_assert_int_eq(join_once(&config, &join), COPY_DONE);
    ck_assert_uint_eq(join.in_figures.files_moved, 0);
    ck_assert_uint_eq(join.out_figures.files_kept, join.out_figures.files);
    ck_assert_uint_eq(join.out_figures.bytes_kept, join.out_figures.bytes);
    ck_assert_uint_lt(join.n_frames, 8);
    join_judge(&to, &from, join.last_seq);
    rig_fini(&to);

    begin_to(&to, 79);
    copy_but_for_end(&config, all);
    config.source = "another";
    ck_assert_int_eq(join_once(&config, &join), COPY_DONE);
    ck_assert_uint_eq(join.in_figures.files_kept, 0);
    join_judge(&to, &from, join.last_seq);
    rig_fini(&to);
    end_from(&from);
}
END_TEST

/* A file that the replica has with other bytes is sent again. */
START_TEST(test_other_sum)
{
    struct rig from, to;
    struct join join;
    const struct join_config config = {.from = &from, .to = &to, .seed = 5};
    uint64_t all;

    begin_from(&from, 5);
    begin_to(&to, 77);
    ck_assert_int_eq(join_start(&join, &config), 0);
    join_run(&join);
    all = join.down.n;
    join_end(&join);
    rig_fini(&to);

    begin_to(&to, 78);
    copy_but_for_end(&config, all);
    ck_assert_int_eq(join_start(&join, &config), 0);
    join.spoils_have = true;
    join_run(&join);
    join_end(&join);
    ck_assert_int_eq(join.is_in, COPY_DONE);
    ck_assert_uint_eq(join.out_figures.files_moved, 1);
    ck_assert_uint_eq(join.in_figures.files_moved, 1);
    ck_assert_uint_eq(join.in_figures.files_kept, join.in_figures.files - 1);
    join_judge(&to, &from, join.last_seq);
    rig_fini(&to);
    end_from(&from);
}
END_TEST

static uint64_t
epoch_of(struct rig *rig)
{
    struct manifest manifest;
    uint64_t epoch;

    manifest_init(&manifest);
    ck_assert_int_eq(manifest_read(rig->data.disk, &manifest, NULL), 0);
    epoch = manifest.epoch;
    manifest_fini(&manifest);
    return epoch;
}

START_TEST(test_epoch)
{
    struct rig from, to;
    struct join join;
    struct join_config config = {.from = &from, .to = &to, .seed = 5};

    begin_from(&from, 5);
    begin_to(&to, 77);
    config.epoch = epoch_of(&from) + 1;
    ck_assert_int_eq(join_once(&config, &join), COPY_FAILED);
    ck_assert_int_eq(join.in_figures.err, ERR_CORRUPT);
    ck_assert_uint_eq(folder_files(&to), 0);
    config.epoch--;
    ck_assert_int_eq(join_once(&config, &join), COPY_DONE);
    join_judge(&to, &from, join.last_seq);
    rig_fini(&to);
    end_from(&from);
}
END_TEST

/* A copy behind one that has ordered the exchange is done at once. */
START_TEST(test_done_before)
{
    struct rig from, to;
    struct join join;
    const struct join_config config = {.from = &from, .to = &to, .seed = 5};

    begin_from(&from, 5);
    begin_to(&to, 77);
    ck_assert_int_eq(join_once(&config, &join), COPY_DONE);
    uint64_t last_seq = join.last_seq;
    ck_assert_int_eq(join_once(&config, &join), COPY_DONE);
    ck_assert_uint_eq(join.in_figures.files, 0);
    join_judge(&to, &from, last_seq);
    rig_fini(&to);
    end_from(&from);
}
END_TEST

/* ---- what is wrong ---- */

struct meddling {
    unsigned at;  /* number of the frame, from 1 on */
    unsigned how; /* 0: left out; 1: twice; else a byte of it is changed */
    uint64_t random;
};

static bool
meddle(struct join *join, struct copy_piece *piece)
{
    const struct meddling *meddling = join->context;

    if (join->n_frames != meddling->at) {
        return true;
    }
    switch (meddling->how) {
    case 0:
        if (piece->type == STREAM_END) { /* nobody would say anything more */
            join->cut_at = 0;
        }
        return false;
    case 1:
        way_put(&join->down, piece);
        return true;
    default:
        piece->frame[STREAM_HEAD_BYTES + meddling->random % piece->len] ^=
            (uint8_t)(1 << meddling->random / 7 % 8);
        return true;
    }
}

/* Frame number n is lost, doubled or changed: the copy fails, or nothing was
 * changed that matters; and the next one goes on. False: there are not so
 * many. */
static bool
meddle_once(struct rig *from, unsigned n, unsigned how, unsigned *n_failed)
{
    struct rig to;
    struct join join;
    const struct join_config config = {.from = from, .to = &to, .seed = n};
    struct meddling meddling = {
        .at = n, .how = how, .random = n * 2654435761U + how};

    begin_to(&to, n);
    ck_assert_int_eq(join_start(&join, &config), 0);
    join.meddle_fn = meddle;
    join.context = &meddling;
    join_run(&join);
    unsigned n_frames = join.n_frames;
    uint64_t last_seq = join.last_seq;
    enum copy_next next = join.is_in;
    join_end(&join);
    if (next != COPY_DONE) {
        *n_failed += next == COPY_FAILED;
        ck_assert(!has_file(&to, SNAPSHOT_PREFIX SNAPSHOT_EXCHANGE));
        ck_assert_int_eq(join_once(&config, &join), COPY_DONE);
        last_seq = join.last_seq;
    }
    join_judge(&to, from, last_seq);
    rig_fini(&to);
    return n_frames >= n;
}

START_TEST(test_meddling)
{
    struct rig from;
    unsigned n = 1, n_failed = 0;

    begin_from(&from, 5);
    for (bool goes_on = true; goes_on; n++) {
        goes_on = false;
        for (unsigned how = 0; how < 4; how++) {
            goes_on |= meddle_once(&from, n, how, &n_failed);
        }
    }
    ck_assert_uint_gt(n, 10);
    ck_assert_uint_gt(n_failed, 2 * n);
    end_from(&from);
}
END_TEST

/* Frames of somebody who makes them up. */
START_TEST(test_made_up)
{
    struct rig from;
    struct join join = {.random = 5};
    unsigned n_failed = 0;
    static uint8_t body[200];
    static const struct {
        enum stream_type type;
        uint32_t least, most;
    } types[] = {{STREAM_SNAPSHOT, 26, 89}, {STREAM_FILE, 20, 20},
        {STREAM_DATA, 9, 200}, {STREAM_END, 12, 12}, {STREAM_HAVE, 4, 104}};

    begin_from(&from, 5);
    for (unsigned round = 0; round < 40; round++) {
        struct rig to;
        const struct join_config config = {.from = &from, .to = &to};
        struct copy_piece piece;
        unsigned i = round % COUNT_OF(types);
        struct stream_frame frame = {.type = types[i].type, .body = body};

        begin_to(&to, 77);
        ck_assert_int_eq(join_start(&join, &config), 0);
        frame.len = types[i].least +
            (uint32_t)(round * 7) % (types[i].most - types[i].least + 1);
        for (size_t k = 0; k < sizeof body; k++) {
            body[k] = (uint8_t)(round * 31 + k * 7);
        }
        copy_in_put(join.in, &frame);
        copy_out_take(join.out, &frame);
        while (copy_in_next(join.in, &piece) != COPY_FAILED ||
            copy_out_next(join.out, &piece) != COPY_FAILED) {
            ck_assert_int_eq(sem_wait(&join.wake), 0);
        }
        n_failed++;
        join_end(&join);
        ck_assert_int_eq(join.in_figures.err, ERR_CORRUPT);
        ck_assert_int_eq(join.out_figures.err, ERR_CORRUPT);
        ck_assert_uint_eq(folder_files(&to), 0);
        rig_fini(&to);
    }
    ck_assert_uint_eq(n_failed, 40);
    end_from(&from);
}
END_TEST

/* ---- ends ---- */

/* Stopped at any point, it is over by itself, and leaves nothing open. */
START_TEST(test_stop)
{
    struct rig from, to;

    begin_from(&from, 5);
    begin_to(&to, 77);
    for (unsigned n = 0; n < 20; n++) {
        struct join join;
        const struct join_config config = {.from = &from, .to = &to};

        ck_assert_int_eq(join_start(&join, &config), 0);
        for (unsigned k = 0; k < n; k++) {
            (void)join_send(&join);
            (void)join_bring(&join, &join.down, true);
            (void)join_bring(&join, &join.up, false);
        }
        copy_out_stop(join.out);
        copy_in_stop(join.in);
        while (!copy_out_is_over(join.out) || !copy_in_is_over(join.in)) {
            ck_assert_int_eq(sem_wait(&join.wake), 0);
        }
        ck_assert(!copy_out_is_reading(join.out));
        join_end(&join);
    }
    rig_fini(&to);
    end_from(&from);
}
END_TEST

/* The check of what has come is given up at a stop, and nothing is ordered. */
START_TEST(test_stop_in_check)
{
    struct rig from, to;
    struct join join;
    const struct join_config config = {.from = &from, .to = &to, .seed = 5};
    uint64_t all;

    begin_from(&from, 5);
    begin_to(&to, 77);
    ck_assert_int_eq(join_start(&join, &config), 0);
    join_run(&join);
    all = join.down.n;
    join_end(&join);
    rig_fini(&to);

    begin_to(&to, 78);
    copy_but_for_end(&config, all);
    ck_assert_int_eq(join_start(&join, &config), 0);
    while (join.is_out != COPY_DONE || join.down.bytes.len > 0) {
        bool any = join_send(&join);

        if (join.up.n > 0) { /* from then on only the check reads */
            fake_disk_hold(to.fake, FAKE_READ);
        }
        any |= join_bring(&join, &join.down, true);
        any |= join_bring(&join, &join.up, false);
        if (!any && join.is_out != COPY_DONE) {
            ck_assert_int_eq(sem_wait(&join.wake), 0);
        }
    }
    fake_disk_wait_held(to.fake);
    copy_in_stop(join.in);
    unsigned n_reads = fake_disk_count(to.fake, FAKE_READ);
    fake_disk_let_go(to.fake);
    while (!copy_in_is_over(join.in)) {
        ck_assert_int_eq(sem_wait(&join.wake), 0);
    }
    ck_assert_uint_le(fake_disk_count(to.fake, FAKE_READ), n_reads + 1);
    ck_assert(!has_file(&to, SNAPSHOT_PREFIX SNAPSHOT_EXCHANGE));
    join_end(&join);
    ck_assert_int_eq(join_once(&config, &join), COPY_DONE);
    ck_assert_uint_eq(join.in_figures.files_moved, 0);
    join_judge(&to, &from, join.last_seq);
    rig_fini(&to);
    end_from(&from);
}
END_TEST

/* Until it is stopped, or its time is over, the log behind the snapshot is
 * kept; another snapshot may be taken meanwhile. */
START_TEST(test_hold)
{
    struct rig from, to;
    struct join join;
    struct fake_clock clock;
    const struct join_config config = {
        .from = &from, .to = &to, .seed = 5, .clock = &clock.clock};

    fake_clock_init(&clock);
    begin_from(&from, 5);
    begin_to(&to, 77);
    ck_assert_int_eq(join_start(&join, &config), 0);
    join_run(&join);
    ck_assert_int_eq(join.is_in, COPY_DONE);
    ck_assert(!copy_out_is_reading(join.out));
    ck_assert(!copy_out_is_over(join.out));
    for (unsigned i = 0; i < 6; i++) { /* each lets go of log files */
        (void)rig_work(&from, STEPS);
        ck_assert_int_eq(rig_checkpoint(&from), 0);
    }
    struct snapshot snapshot;
    ck_assert_int_eq(snapshot_take(&from, &snapshot), 0);
    struct wal_pin mine;
    ck_assert_int_eq(
        wal_pin(snapshot.wal, &mine, join.last_seq + 1, UINT64_MAX), 0);
    wal_unpin(snapshot.wal, &mine);
    fake_clock_pass(&clock, 2000000);
    while (!copy_out_is_over(join.out)) {
        ck_assert_int_eq(sem_wait(&join.wake), 0);
    }
    ck_assert_int_eq(
        wal_pin(snapshot.wal, &mine, join.last_seq + 1, UINT64_MAX),
        ERR_LOG_GONE);
    snapshot_close(&snapshot);
    join_end(&join);
    join_judge(&to, &from, join.last_seq);
    rig_fini(&to);
    end_from(&from);
}
END_TEST

/* ---- the rate ---- */

START_TEST(test_rate)
{
    const uint64_t second = 1000000000, now = 50 * second;
    struct copy_rate rate;

    copy_rate_init(&rate, 1000, now);
    /* the bucket holds a tenth of a second */
    ck_assert_uint_eq(copy_rate_take(&rate, 100, now), now);
    ck_assert_uint_eq(copy_rate_take(&rate, 500, now), now);
    ck_assert_uint_eq(copy_rate_take(&rate, 1, now), now + second / 2);
    /* a rest is not made up for beyond that */
    ck_assert_uint_eq(
        copy_rate_take(&rate, 100, now + 9 * second), now + 9 * second);
    ck_assert_uint_eq(
        copy_rate_take(&rate, 1, now + 9 * second), now + 9 * second);
    ck_assert_uint_eq(copy_rate_take(&rate, 1, now + 9 * second),
        now + 9 * second + second / 1000);
    copy_rate_init(&rate, 0, now);
    ck_assert_uint_eq(copy_rate_take(&rate, UINT32_MAX, now), now);
    ck_assert_uint_eq(copy_rate_take(&rate, UINT32_MAX, now), now);
    copy_rate_init(&rate, 1, 0);
    ck_assert_uint_eq(copy_rate_take(&rate, UINT32_MAX, 0), 0);
    ck_assert_uint_eq(copy_rate_take(&rate, 1, 0), UINT32_MAX * second);
}
END_TEST

/* While the clock stands no more goes out than the bucket has; the rest when it
 * goes on. */
START_TEST(test_rate_of_copy)
{
    struct rig from, to;
    struct join join;
    struct fake_clock clock;
    const struct join_config config = {.from = &from,
        .to = &to,
        .seed = 5,
        .rate = 20000,
        .clock = &clock.clock};

    fake_clock_init(&clock);
    fake_clock_stand(&clock);
    begin_from(&from, 5);
    begin_to(&to, 77);
    ck_assert_int_eq(join_start(&join, &config), 0);
    unsigned n_passed = 0;
    while (!join_is_over(&join)) {
        bool any = join_send(&join);

        any |= join_bring(&join, &join.down, true);
        any |= join_bring(&join, &join.up, false);
        if (!any && sem_trywait(&join.wake) != 0) {
            fake_clock_pass(&clock, 1);
            n_passed++;
            sched_yield();
        }
    }
    ck_assert_int_eq(join.is_in, COPY_DONE);
    copy_out_figures(join.out, &join.out_figures);
    /* less the burst, and the last piece, which nobody waits for */
    ck_assert_uint_gt(join.out_figures.bytes_moved, 20000);
    ck_assert_uint_ge(n_passed + 1000, join.out_figures.bytes_moved / 20);
    join_end(&join);
    join_judge(&to, &from, join.last_seq);
    rig_fini(&to);
    end_from(&from);
}
END_TEST

int
main(void)
{
    TCase *tcase = tcase_create("copy");
    tcase_add_loop_test(tcase, test_whole, 0, ROUNDS);
    tcase_add_loop_test(tcase, test_cut_off, 0, ROUNDS);
    tcase_add_test(tcase, test_kept);
    tcase_add_test(tcase, test_other_sum);
    tcase_add_test(tcase, test_epoch);
    tcase_add_test(tcase, test_done_before);
    tcase_add_test(tcase, test_meddling);
    tcase_add_test(tcase, test_made_up);
    tcase_add_test(tcase, test_stop);
    tcase_add_test(tcase, test_stop_in_check);
    tcase_add_test(tcase, test_hold);
    tcase_add_test(tcase, test_rate);
    tcase_add_test(tcase, test_rate_of_copy);
    return run_case("copy", tcase);
}
