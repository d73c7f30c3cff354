/* SPDX-License-Identifier: BSD-3-Clause */
/* net/conn_room: the account, and that connections whose clients do not go on
 * make room for those whose clients do. */
#include "net/conn_room.h"

#include "unit/item_help.h"

#include <poll.h>
#include <sched.h>
#include <string.h>

enum { MANY_WORKERS = 1000, MIB = 1 << 20, KIB = 1 << 10 };

static struct conn_rooms rooms; /* of the test at hand */

/* The rooms of two workers of many, which may keep 12 MiB of requests. */
static void
init_two(struct conn_room room[2])
{
    conn_rooms_init(&rooms, CONN_ROOM_SHARE_MIN, MIB);
    for (int i = 0; i < 2; i++) {
        conn_room_init(&room[i], &rooms, NULL, MANY_WORKERS, 1);
    }
}

static void
fini_two(struct conn_room room[2])
{
    for (int i = 0; i < 2; i++) {
        conn_room_leave(&room[i]);
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
    conn_room_note(room, &a, CONN_ROOM_REQUESTS, CONN_ROOM_SHARE_MIN + 1);
    ck_assert(room->is_over && !room->is_tight);
    conn_room_note(room, &a, CONN_ROOM_REQUESTS, 0);
    ck_assert(!room->is_over && !room->is_tight);
    fini_two(two);
}
END_TEST

/* Requests of all workers are one sum; replies are not. */
START_TEST(test_one_sum)
{
    struct conn_room room[2];
    struct conn_place a = {0}, b = {0};
    init_two(room);
    conn_room_note(&room[0], &a, CONN_ROOM_REQUESTS, 8 * MIB);
    ck_assert(!room[0].is_over);
    conn_room_note(&room[1], &b, CONN_ROOM_REQUESTS, 4 * MIB);
    ck_assert(!room[1].is_over);
    conn_room_note(&room[1], &b, CONN_ROOM_REQUESTS, 4 * MIB + 1);
    ck_assert(room[1].is_over);
    conn_room_note(&room[1], &b, CONN_ROOM_REPLIES, 12 * MIB);
    ck_assert(!room[1].is_over);
    ck_assert_uint_eq(atomic_load(&rooms.total), 8 * MIB);
    conn_room_note(&room[0], &a, CONN_ROOM_REPLIES, 12 * MIB);
    ck_assert(!room[0].is_over);
    conn_room_note(&room[0], &a, CONN_ROOM_REQUESTS, 0);
    conn_room_note(&room[1], &b, CONN_ROOM_REQUESTS, 0);
    fini_two(room);
}
END_TEST

START_TEST(test_shares)
{
    struct conn_room room;
    conn_room_init(&room, NULL, NULL, 4, MIB);
    ck_assert_uint_eq(room.replies_max, 12 * MIB);
    conn_room_init(&room, NULL, NULL, 4, 100 * MIB); /* for the largest */
    ck_assert_uint_eq(room.replies_max, 400 * MIB);
    conn_room_init(&room, NULL, NULL, 0, MIB);
    ck_assert_uint_eq(room.replies_max, SIZE_MAX);
    conn_rooms_init(&rooms, 256 * MIB, MIB);
    ck_assert_uint_eq(rooms.max, 256 * MIB);
    conn_rooms_fini(&rooms);
    conn_rooms_init(&rooms, 256 * MIB, 100 * MIB);
    ck_assert_uint_eq(rooms.max, 400 * MIB);
    conn_rooms_fini(&rooms);
}
END_TEST

static void
start_small(struct rig *rig)
{
    rig_init(rig);
    conn_rooms_init(&rooms, CONN_ROOM_SHARE_MIN, MIB);
    rig->config.rooms = &rooms;
    rig->config.n_workers = MANY_WORKERS;
    rig->config.value_bytes_max = MIB;
    rig_start(rig);
}

/* Behind stop_all. */
static void
expect_nothing_left(void)
{
    ck_assert_uint_eq(atomic_load(&rooms.total), 0);
    /* a read of each of two workers may leave so much */
    ck_assert_uint_le(atomic_load(&rooms.peak), rooms.max + 2 * 128 * KIB);
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

/* The worker that has most makes room for another one's clients. */
START_TEST(test_other_worker)
{
    enum { CROWD = 11, OTHERS = 3 };
    struct rig rig;
    struct pollfd polls[CROWD];
    int other[OTHERS];
    char *most = make_most();
    start_small(&rig);
    for (int i = 0; i < CROWD; i++) {
        polls[i].fd = connect_to(&rig, 0);
        polls[i].events = POLLRDHUP;
        say(polls[i].fd, "set a 0 0 1000000\r\n");
        say(polls[i].fd, most);
        while (atomic_load(&rooms.total) < (size_t)(i + 1) * MIB) {
            sched_yield();
        }
    }
    for (int i = 0; i < OTHERS; i++) {
        other[i] = connect_to(&rig, 1);
        say(other[i], "set b 0 0 900000\r\n");
        say(other[i], most);
    }
    ck_assert_int_ge(count_closed(polls, CROWD), 1);
    ck_assert(polls[0].revents != 0); /* the oldest */
    for (int i = 0; i < OTHERS; i++) {
        say(other[i], "\r\n");
        expect(other[i], "STORED\r\n");
        close(other[i]);
    }
    ck_assert_uint_ge(metric_of(rig.worker[0], METRIC_memory_kicks), 1);
    ck_assert_uint_eq(metric_of(rig.worker[1], METRIC_memory_kicks), 0);
    for (int i = 0; i < CROWD; i++) {
        close(polls[i].fd);
    }
    free(most);
    stop_all(&rig);
    expect_nothing_left();
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_account, test_shares, test_replies,
        test_loans, test_one_sum, test_other_worker, test_requests,

        test_request_of_an_idle_one};
    return run_tests("conn_room", tests, COUNT_OF(tests));
}
