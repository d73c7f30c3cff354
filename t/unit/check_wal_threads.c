/* SPDX-License-Identifier: BSD-3-Clause */
/* wal/wal with several threads that append, commit, begin files and wait,
 * while the disk fails now and then. Each thread's numbers are found in its
 * order, and all that it was told are committed. */
#include "wal/wal.h"

#include "unit/wal_rig.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>

enum {
    CLIENTS = 4,
    CHANGES = 3000,
    ROTATIONS = 30,
    FAULTS = 20,
    CUTS = 10,
    ENTRY_BYTES = 8
};

static const enum wal_sync modes[] = {
    WAL_SYNC_NONE, WAL_SYNC_INTERVAL, WAL_SYNC_ALWAYS};

/* A client appends pairs of its own number and a number that goes up. */
struct client {
    struct rig *rig;
    uint32_t me;
    uint32_t n; /* acknowledged or not */
    uint32_t n_acked;
    pthread_t thread;
};

static bool
is_mine(const struct client *client, const uint8_t *entry)
{
    return bytes_get_u32(entry) == client->me;
}

static void *
run_client(void *arg)
{
    struct client *client = arg;
    struct rig *rig = client->rig;
    uint8_t entry[ENTRY_BYTES];
    bytes_put_u32(entry, client->me);
    for (unsigned i = 0; i < CHANGES; i++) {
        while (wal_fault(rig->wal) != 0) {
            if (fake_disk_is_dead(rig->fake)) {
                return NULL;
            }
            sched_yield();
        }
        bytes_put_u32(entry + 4, client->n++);
        uint64_t seq = wal_append(rig->wal, entry, sizeof(entry));
        if (i % 3 != 0 && rig_commit(rig, seq) == WAL_COMMITTED) {
            client->n_acked = client->n;
        }
    }
    return NULL;
}

struct gardener {
    struct rig *rig;
    _Atomic bool ends;
    pthread_t thread;
};

/* What a checkpointer and somebody who looks at figures do. */
static void *
run_gardener(void *arg)
{
    struct gardener *gardener = arg;
    struct wal *wal = gardener->rig->wal;
    for (unsigned i = 0; i < ROTATIONS && !atomic_load(&gardener->ends); i++) {
        uint64_t number, seq;
        struct wal_stats stats;
        if (wal_rotate(wal, &number, &seq) == 0) {
            wal_stats(wal, &stats);
            ck_assert_uint_ge(stats.synced_seq, seq);
            ck_assert_uint_ge(stats.file, number);
        }
        (void)wal_sync_up_to(wal, wal_last(wal));
    }
    return NULL;
}

static void
count_batch_of(const struct client *client, const uint8_t *payload, size_t len,
    uint32_t *n)
{
    for (size_t k = 0; k < len; k += ENTRY_BYTES) {
        if (is_mine(client, payload + k)) {
            ck_assert_uint_eq(bytes_get_u32(payload + k + 4), *n);
            (*n)++;
        }
    }
}

/* The numbers of one client that are in the log, in their order. */
static uint32_t
count_of(const struct client *client, struct disk *disk)
{
    struct found_names names = {0};
    struct frame_file file, next;
    uint32_t n = 0;
    ck_assert_int_eq(disk->calls->list(disk, find_name, &names), 0);
    for (size_t i = 0; i < names.n; i++) {
        size_t len, next_len, end;
        struct frame_batch batch;
        uint8_t *bytes = read_log(disk, names.number[i], &len);
        ck_assert_int_eq(frame_file_get(bytes, len, &file), FRAME_OK);
        end = len;
        if (i + 1 < names.n) {
            uint8_t *head = read_log(disk, names.number[i + 1], &next_len);
            ck_assert_int_eq(frame_file_get(head, next_len, &next), FRAME_OK);
            end = next.before_end;
            free(head);
        }
        for (size_t at = FRAME_FILE_BYTES; at < end;
             at += FRAME_BATCH_BYTES + batch.payload_bytes) {
            if (frame_batch_get(&file, bytes + at, len - at, &batch) !=
                FRAME_OK) {
                ck_assert_uint_eq(i + 1, names.n);
                break;
            }
            count_batch_of(client, bytes + at + FRAME_BATCH_BYTES,
                batch.payload_bytes, &n);
        }
        free(bytes);
    }
    return n;
}

static void
run_all(struct rig *rig, struct client *client, bool has_faults)
{
    struct gardener gardener = {.rig = rig};
    for (uint32_t i = 0; i < CLIENTS; i++) {
        client[i] = (struct client){.rig = rig, .me = i};
        ck_assert_int_eq(
            pthread_create(&client[i].thread, NULL, run_client, &client[i]),
            0);
    }
    ck_assert_int_eq(
        pthread_create(&gardener.thread, NULL, run_gardener, &gardener), 0);
    for (unsigned i = 0; has_faults && i < FAULTS; i++) {
        static const unsigned masks[] = {
            1 << FAKE_WRITE, 1 << FAKE_SYNC, 1 << FAKE_RENAME, FAKE_ALL};
        fake_disk_fail(
            rig->fake, masks[i % COUNT_OF(masks)], 3, EIO, i % 2 == 0);
        uint64_t last = wal_last(rig->wal);
        (void)wal_sync_up_to(rig->wal, last);
        (void)fake_disk_heal(rig->fake);
    }
    for (unsigned i = 0; i < CLIENTS; i++) {
        pthread_join(client[i].thread, NULL);
    }
    atomic_store(&gardener.ends, true);
    pthread_join(gardener.thread, NULL);
}

static void
rig_init_small(struct rig *rig, enum wal_sync mode, uint64_t seed)
{
    rig_init(rig, mode, seed);
    rig->config.interval_ms = 10;
    rig->config.file_bytes = 64 << 10;
}

static void
finish_well(enum wal_sync mode, bool has_faults)
{
    struct rig rig;
    struct client client[CLIENTS];
    rig_init_small(&rig, mode, 1);
    ck_assert_int_eq(rig_open(&rig), 0);
    run_all(&rig, client, has_faults);
    ck_assert_int_eq(rig_close(&rig), 0);
    for (unsigned i = 0; i < CLIENTS; i++) {
        ck_assert_uint_eq(count_of(&client[i], rig.disk), CHANGES);
    }
    rig_fini(&rig);
}

START_TEST(test_well)
{
    for (size_t i = 0; i < COUNT_OF(modes); i++) {
        finish_well(modes[i], false);
    }
}
END_TEST

START_TEST(test_faults)
{
    for (size_t i = 0; i < COUNT_OF(modes); i++) {
        finish_well(modes[i], true);
    }
}
END_TEST

/* Who follows the log while it is written, from where it was left. */
struct follower {
    struct rig *rig;
    uint64_t next_seq;
    uint32_t n[CLIENTS]; /* numbers seen of each client, in their order */
    _Atomic bool ends;
    pthread_t thread;
};

static int
follow_batch(void *context, uint64_t seq, const uint8_t *payload, size_t len)
{
    struct follower *follower = context;
    ck_assert_uint_eq(seq, follower->next_seq);
    follower->next_seq++;
    for (size_t k = 0; k < len; k += ENTRY_BYTES) {
        uint32_t of = bytes_get_u32(payload + k);
        ck_assert_uint_lt(of, CLIENTS);
        ck_assert_uint_eq(bytes_get_u32(payload + k + 4), follower->n[of]++);
    }
    return 0;
}

/* All that is synced by now. */
static void
catch_up(struct follower *follower)
{
    struct wal_stats stats;
    struct replay_end end;
    wal_stats(follower->rig->wal, &stats);
    struct replay replay = {.disk = follower->rig->disk,
        .epoch = EPOCH,
        .number = 1,
        .from_seq = follower->next_seq,
        .last_seq = stats.synced_seq,
        .batch_fn = follow_batch,
        .context = follower};
    if (stats.synced_seq >= follower->next_seq) {
        ck_assert_int_eq(replay_run(&replay, &end), 0);
        if (stats.synced_seq < REPLAY_SEQ_GAP) {
            ck_assert_uint_eq(follower->next_seq, stats.synced_seq + 1);
        }
    }
}

static void *
run_follower(void *arg)
{
    struct follower *follower = arg;
    while (!atomic_load(&follower->ends)) {
        catch_up(follower);
    }
    return NULL;
}

static uint64_t
last_number(struct disk *disk)
{
    struct found_names names = {0};
    ck_assert_int_eq(disk->calls->list(disk, find_name, &names), 0);
    ck_assert_uint_gt(names.n, 0);
    return names.number[names.n - 1];
}

START_TEST(test_follower)
{
    struct rig rig;
    struct client client[CLIENTS];
    struct follower follower = {.rig = &rig, .next_seq = 1};
    rig_init_small(&rig, WAL_SYNC_INTERVAL, 1);
    ck_assert_int_eq(rig_open(&rig), 0);
    ck_assert_int_eq(
        pthread_create(&follower.thread, NULL, run_follower, &follower), 0);
    run_all(&rig, client, false);
    ck_assert_int_eq(wal_sync_up_to(rig.wal, wal_last(rig.wal)), 0);
    atomic_store(&follower.ends, true);
    pthread_join(follower.thread, NULL);
    catch_up(&follower);
    for (unsigned i = 0; i < CLIENTS; i++) {
        ck_assert_uint_eq(follower.n[i], CHANGES);
    }
    uint64_t last = wal_last(rig.wal);
    ck_assert_int_eq(rig_close(&rig), 0);
    /* a start that leaves numbers out: what is behind the last batch is not
     * looked at */
    rig.config.start = (struct wal_start){.epoch = EPOCH,
        .next_number = last_number(rig.disk) + 1,
        .next_seq = last + 1 + REPLAY_SEQ_GAP,
        .before_end = FRAME_FILE_BYTES};
    ck_assert_int_eq(rig_open(&rig), 0);
    catch_up(&follower);
    ck_assert_uint_eq(follower.next_seq, last + 1);
    ck_assert_int_eq(rig_close(&rig), 0);
    rig_fini(&rig);
}
END_TEST

/* Everything stops at the n-th call, with several threads at it. */
static void
stop_at(enum wal_sync mode, unsigned n, bool is_power_cut)
{
    struct rig rig;
    struct client client[CLIENTS];
    rig_init_small(&rig, mode, n);
    ck_assert_int_eq(rig_open(&rig), 0);
    fake_disk_die(rig.fake, n);
    run_all(&rig, client, false);
    (void)rig_close(&rig);
    if (is_power_cut) {
        fake_disk_crash(rig.fake);
    } else {
        fake_disk_revive(rig.fake);
    }
    for (unsigned i = 0; i < CLIENTS; i++) {
        uint32_t found = count_of(&client[i], rig.disk);
        ck_assert_uint_le(found, client[i].n);
        if (mode == WAL_SYNC_ALWAYS ||
            (mode == WAL_SYNC_INTERVAL && !is_power_cut)) {
            ck_assert_uint_ge(found, client[i].n_acked);
        }
    }
    rig_fini(&rig);
}

START_TEST(test_stop)
{
    for (size_t i = 0; i < COUNT_OF(modes); i++) {
        for (unsigned k = 0; k < CUTS; k++) {
            stop_at(modes[i], 1 + k * k * 13, k % 2 == 0);
        }
    }
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        test_well, test_follower, test_faults, test_stop};
    return run_tests("wal_threads", tests, COUNT_OF(tests));
}
