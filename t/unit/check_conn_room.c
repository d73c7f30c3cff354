/* SPDX-License-Identifier: BSD-3-Clause */
/* net/conn_room: the account, and that connections whose clients do not go on
 * make room for those whose clients do. */
#include "net/conn_room.h"

#include "unit/item_help.h"

#include <poll.h>
#include <sched.h>
#include <semaphore.h>
#include <string.h>

enum { MANY_WORKERS = 1000, MIB = 1 << 20, KIB = 1 << 10 };

static struct conn_rooms rooms; /* of the test at hand */

/* The rooms of two workers of many, which may keep 12 MiB of requests: 3 each,
 * and a pool of 6. */
static void
init_two(struct conn_room room[2])
{
    conn_rooms_init(&rooms, CONN_ROOM_SHARE_MIN, MIB, 2);
    for (int i = 0; i < 2; i++) {
        conn_room_init(&room[i], &rooms, MANY_WORKERS, 1);
    }
}

static void
fini_two(struct conn_room room[2])
{
    for (int i = 0; i < 2; i++) {
        ck_assert_uint_eq(room[i].taken, 0);
    }
    ck_assert_uint_eq(atomic_load(&rooms.total), 0);
    conn_rooms_fini(&rooms);
}

START_TEST(test_account)
{
    struct conn_room two[2];
    struct conn_room *room = &two[0];
    struct conn_place a = {0}, b = {0};
    init_two(two);
    ck_assert_uint_eq(room->replies_max, CONN_ROOM_SHARE_MIN);
    conn_room_note(room, &a, CONN_ROOM_REPLIES, CONN_ROOM_COUNTS - 1);
    ck_assert_uint_eq(room->used[CONN_ROOM_REPLIES], 0);
    conn_room_note(room, &a, CONN_ROOM_REPLIES, MIB);
    ck_assert(!room->is_tight && !room->is_over);
    conn_room_note(room, &b, CONN_ROOM_REQUESTS, MIB);
    conn_room_note(room, &b, CONN_ROOM_REPLIES, 1);
    ck_assert_uint_eq(room->used[CONN_ROOM_REQUESTS], 0);
    conn_room_note(room, &b, CONN_ROOM_REPLIES, MIB);
    ck_assert_uint_eq(room->used[CONN_ROOM_REPLIES], 2 * MIB);
    ck_assert(!room->is_tight && !room->is_over);
    conn_room_note(room, &b, CONN_ROOM_REPLIES, 3 * MIB);
    ck_assert(room->is_tight && !room->is_over);
    conn_room_note(room, &b, CONN_ROOM_REPLIES, 11 * MIB + 1);
    ck_assert(room->is_over);
    conn_room_note(room, &b, CONN_ROOM_REQUESTS, 0);
    conn_room_note(room, &a, CONN_ROOM_REQUESTS, 9 * MIB + 1);
    ck_assert(room->is_over && !room->is_tight);
    conn_room_note(room, &a, CONN_ROOM_REQUESTS, 0);
    ck_assert(!room->is_over && !room->is_tight);
    fini_two(two);
}
END_TEST

/* A worker has its part of the requests, and the pool is for whoever is the
 * first; replies are not counted there. */
START_TEST(test_pool)
{
    struct conn_room room[2];
    struct conn_place a = {0}, b = {0};
    init_two(room);
    conn_room_note(&room[0], &a, CONN_ROOM_REQUESTS, 8 * MIB);
    ck_assert(!room[0].is_over);
    ck_assert_uint_eq(room[0].taken, 5 * MIB);
    conn_room_note(&room[1], &b, CONN_ROOM_REQUESTS, 4 * MIB);
    ck_assert(!room[1].is_over);
    ck_assert_uint_eq(atomic_load(&rooms.taken), 6 * MIB);
    conn_room_note(&room[1], &b, CONN_ROOM_REQUESTS, 4 * MIB + 1);
    ck_assert(room[1].is_over);
    ck_assert_uint_eq(room[1].taken, MIB);
    conn_room_note(&room[1], &b, CONN_ROOM_REPLIES, 12 * MIB);
    ck_assert(!room[1].is_over);
    ck_assert_uint_eq(atomic_load(&rooms.taken), 5 * MIB);
    ck_assert_uint_eq(atomic_load(&rooms.total), 8 * MIB);
    conn_room_note(&room[0], &a, CONN_ROOM_REPLIES, 12 * MIB);
    ck_assert(!room[0].is_over);
    conn_room_note(&room[0], &a, CONN_ROOM_REQUESTS, 0);
    conn_room_note(&room[1], &b, CONN_ROOM_REQUESTS, 0);
    fini_two(room);
}
END_TEST

static void
expect_rooms(size_t max, size_t value_bytes_max, unsigned n_workers,
    size_t whole, size_t own)
{
    conn_rooms_init(&rooms, max, value_bytes_max, n_workers);
    ck_assert_uint_eq(rooms.max, whole);
    ck_assert_uint_eq(rooms.own, own);
    ck_assert_uint_eq(rooms.pool, whole - n_workers * own);
    conn_rooms_fini(&rooms);
}

START_TEST(test_shares)
{
    struct conn_room room;
    conn_room_init(&room, NULL, 4, MIB);
    ck_assert_uint_eq(room.replies_max, 12 * MIB);
    conn_room_init(&room, NULL, 4, 100 * MIB); /* for the largest */
    ck_assert_uint_eq(room.replies_max, 400 * MIB);
    conn_room_init(&room, NULL, 0, MIB);
    ck_assert_uint_eq(room.replies_max, SIZE_MAX);
    expect_rooms(256 * MIB, MIB, 4, 256 * MIB, 32 * MIB);
    expect_rooms(256 * MIB, MIB, 1, 256 * MIB, 128 * MIB);
    /* a value of each worker: its buffer is a power of two */
    expect_rooms(12 * MIB, MIB, 4, 12 * MIB, 2 * MIB);
    expect_rooms(MIB, MIB, 4, 8 * MIB, 2 * MIB);
    expect_rooms(256 * MIB, 100 * MIB, 4, 512 * MIB, 128 * MIB);
}
END_TEST

static void
start_small(struct rig *rig)
{
    rig_init(rig);
    conn_rooms_init(&rooms, CONN_ROOM_SHARE_MIN, MIB, RIG_WORKERS);
    rig->config.rooms = &rooms;
    rig->config.n_workers = MANY_WORKERS;
    rig->config.value_bytes_max = MIB;
    rig_start(rig);
}

/* Behind stop_all. */
static void
expect_nothing_left(void)
{
    size_t total = atomic_load(&rooms.total);
    size_t taken = atomic_load(&rooms.taken);
    size_t peak = atomic_load(&rooms.peak);
    ck_assert_msg(total == 0, "%zu bytes of requests are left", total);
    ck_assert_msg(taken == 0, "%zu bytes of the pool are left", taken);
    /* a read of each of two workers may leave so much */
    ck_assert_msg(peak <= rooms.max + RIG_WORKERS * 128 * KIB,
        "the most there was: %zu bytes, of %zu", peak, rooms.max);
    conn_rooms_fini(&rooms);
}

/* Waits until one or more of fd have been closed, which is seen behind what
 * has arrived; returns how many. */
static int
count_closed(struct pollfd *polls, int n)
{
    int closed = 0;
    while (poll(polls, (nfds_t)n, -1) < 1) {
    }
    for (int i = 0; i < n; i++) {
        closed += polls[i].revents != 0;
    }
    return closed;
}

/* Those that ask for much and read nothing go, the oldest first; one that
 * reads gets all it asks for. */
START_TEST(test_replies)
{
    enum { CROWD = 24 };
    struct rig rig;
    struct pollfd polls[CROWD];
    char *item = malloc(MIB);
    ck_assert_ptr_nonnull(item);
    start_small(&rig);
    items_set_limit(rig.inner->items, 2 * MIB); /* so that none is lent */
    int other = connect_to(&rig, 0);
    set_item(other, "big", 1000000);
    for (int i = 0; i < CROWD; i++) {
        polls[i].fd = connect_to(&rig, 0);
        polls[i].events = POLLRDHUP;
        say(polls[i].fd, "get big big big big big big\r\n");
        for (int k = 0; k < 3; k++) {
            say(other, "get big\r\n");
            expect(other, "VALUE big 0 1000000\r\n");
            receive(other, item, 1000000);
            expect(other, "\r\nEND\r\n");
        }
    }
    ck_assert_int_ge(count_closed(polls, CROWD), 1);
    ck_assert(polls[0].revents != 0); /* the oldest */
    ck_assert_uint_ge(metric_of(rig.worker[0], METRIC_memory_kicks), 1);
    for (int i = 0; i < CROWD; i++) {
        close(polls[i].fd);
    }
    say(other, "version\r\n");
    expect(other, "VERSION test\r\n");
    close(other);
    free(item);
    stop_all(&rig);
    expect_nothing_left();
}
END_TEST

static struct items_lent
lent_of(struct rig *rig)
{
    struct items_lent lent;
    items_lent(rig->inner->items, &lent);
    return lent;
}

/* The same with a value that can be lent: nobody has to go, each gets the value
 * that was there when it was looked up, and all is given back, also by those
 * that leave in the middle. */
START_TEST(test_loans)
{
    enum { CROWD = 24 };
    struct rig rig;
    int fd[CROWD];
    char *item = malloc(MIB);
    ck_assert_ptr_nonnull(item);
    start_small(&rig);
    int other = connect_to(&rig, 0);
    set_item(other, "big", 1000000);
    for (int i = 0; i < CROWD; i++) {
        fd[i] = connect_to(&rig, 0);
        say(fd[i], "get big big big big big big big\r\n");
        expect(fd[i], "VALUE big 0 1000000\r\n");
    }
    ck_assert_uint_eq(lent_of(&rig).loans, CROWD);
    ck_assert_uint_lt(lent_of(&rig).lent_bytes, 2 * MIB);
    say(other, "delete big\r\n");
    expect(other, "DELETED\r\n");
    for (int i = 0; i < CROWD; i += 2) {
        receive(fd[i], item, 1000000);
        ck_assert_mem_eq(item, item + 1, 1000000 - 1); /* one byte, repeated */
        expect(fd[i], "\r\nEND\r\n");
        say(fd[i], "version\r\n");
        expect(fd[i], "VERSION test\r\n");
    }
    for (int i = 0; i < CROWD; i++) {
        close(fd[i]);
    }
    while (lent_of(&rig).loans > 0) {
        say(other, "version\r\n");
        expect(other, "VERSION test\r\n");
    }
    ck_assert_uint_eq(metric_of(rig.worker[0], METRIC_memory_kicks), 0);
    close(other);
    free(item);
    stop_all(&rig);
    expect_nothing_left();
}
END_TEST

enum { MOST = 900000 };

/* Most of a value of 1,000,000 bytes; the caller's. */
static char *
make_most(void)
{
    char *most = malloc(MOST + 1);
    ck_assert_ptr_nonnull(most);
    memset(most, 'x', MOST);
    most[MOST] = '\0';
    return most;
}

/* Those that send most of a value and not its end go, too. */
START_TEST(test_requests)
{
    enum { CROWD = 24 };
    struct rig rig;
    struct pollfd polls[CROWD];
    char *most = make_most();
    start_small(&rig);
    int other = connect_to(&rig, 0);
    for (int i = 0; i < CROWD; i++) {
        polls[i].fd = connect_to(&rig, 0);
        polls[i].events = POLLRDHUP;
        say(polls[i].fd, "set a 0 0 1000000\r\n");
        say(polls[i].fd, most);
        set_item(other, "big", 1000000);
    }
    ck_assert_int_ge(count_closed(polls, CROWD), 1);
    ck_assert_uint_ge(metric_of(rig.worker[0], METRIC_memory_kicks), 1);
    for (int i = 0; i < CROWD; i++) {
        close(polls[i].fd);
    }
    close(other);
    free(most);
    stop_all(&rig);
    expect_nothing_left();
}
END_TEST

/* One that has long been there and says nothing may begin a request all the
 * same: those that stand in the middle of theirs are older then. */
START_TEST(test_request_of_an_idle_one)
{
    enum { CROWD = 80 };
    struct rig rig;
    int fd[CROWD];
    char *most = make_most();
    start_small(&rig);
    int idle = connect_to(&rig, 0);
    say(idle, "version\r\n");
    expect(idle, "VERSION test\r\n");
    for (int i = 0; i < CROWD; i++) {
        fd[i] = connect_to(&rig, 0);
        say(fd[i], "set a 0 0 1000000\r\n");
        (void)send(fd[i], most, MOST, MSG_NOSIGNAL); /* may be told to go */
    }
    say(idle, "set b 0 0 900000\r\n");
    say(idle, most);
    say(idle, "\r\n");
    expect(idle, "STORED\r\n");
    ck_assert_uint_ge(metric_of(rig.worker[0], METRIC_memory_kicks), 1);
    for (int i = 0; i < CROWD; i++) {
        close(fd[i]);
    }
    close(idle);
    free(most);
    stop_all(&rig);
    expect_nothing_left();
}
END_TEST

/* What a worker's thread is held up with. */
struct hold {
    struct chore chore;
    sem_t is_held, may_go_on;
};

static void
wait_for(sem_t *sem)
{
    while (sem_wait(sem) != 0) { /* a signal */
    }
}

static void
stay(struct chore *chore)
{
    struct hold *hold = (struct hold *)chore; /* its first member */
    sem_post(&hold->is_held);
    wait_for(&hold->may_go_on);
}

/* Returns when the thread does nothing else any more. */
static void
hold_up(struct hold *hold, struct worker *worker)
{
    hold->chore = (struct chore){.magic = CHORE_MAGIC, .done_fn = stay};
    ck_assert_int_eq(sem_init(&hold->is_held, 0, 0), 0);
    ck_assert_int_eq(sem_init(&hold->may_go_on, 0, 0), 0);
    worker__chore_done(worker, &hold->chore);
    wait_for(&hold->is_held);
}

/* A worker whose clients hold the whole pool, and which does nothing more,
 * leaves another one its part: clients there are served, nobody is closed for
 * them, and all together keep no more than they may. */
START_TEST(test_other_worker)
{
    enum { CROWD = 11, FIT = 9, OTHERS = 3 };
    static const char line[] = "set a 0 0 1000000\r\n";
    struct rig rig;
    struct hold hold;
    int fd[CROWD];
    int other[OTHERS];
    char *most = make_most();
    start_small(&rig);
    for (uint64_t i = 0; i < CROWD; i++) {
        fd[i] = connect_to(&rig, 0);
        say(fd[i], line);
        say(fd[i], most);
        while (metric_of(rig.worker[0], METRIC_bytes_read) <
            (i + 1) * (sizeof line - 1 + MOST)) {
            sched_yield();
        }
    }
    hold_up(&hold, rig.worker[0]);
    ck_assert_uint_ge(atomic_load(&rooms.total), (size_t)FIT * MIB);
    for (int i = 0; i < OTHERS; i++) {
        other[i] = connect_to(&rig, 1);
        say(other[i], "set b 0 0 900000\r\n");
        say(other[i], most);
    }
    for (int i = 0; i < OTHERS; i++) {
        say(other[i], "\r\n");
        expect(other[i], "STORED\r\n");
        close(other[i]);
    }
    /* a line of keys that is larger than the part has no room */
    struct pollfd alone = {.fd = connect_to(&rig, 1), .events = POLLRDHUP};
    say(alone.fd, "get ");
    for (int i = 0; i < OTHERS; i++) {
        (void)send(alone.fd, most, MOST, MSG_NOSIGNAL);
    }
    ck_assert_int_eq(count_closed(&alone, 1), 1);
    close(alone.fd);
    sem_post(&hold.may_go_on);
    for (int i = 0; i < CROWD; i++) {
        close(fd[i]);
    }
    ck_assert_uint_eq(
        metric_of(rig.worker[0], METRIC_memory_kicks), CROWD - FIT);
    ck_assert_uint_eq(metric_of(rig.worker[1], METRIC_memory_kicks), 1);
    stop_all(&rig);
    sem_destroy(&hold.is_held);
    sem_destroy(&hold.may_go_on);
    free(most);
    expect_nothing_left();
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_account, test_shares, test_replies,
        test_loans, test_pool, test_other_worker, test_requests,
        test_request_of_an_idle_one};
    return run_tests("conn_room", tests, COUNT_OF(tests));
}
