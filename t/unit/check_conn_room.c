/* SPDX-License-Identifier: BSD-3-Clause */
/* net/conn_room: the account, and that connections whose clients do not go on
 * make room for those whose clients do. */
#include "net/conn_room.h"

#include "unit/item_help.h"

#include <poll.h>
#include <string.h>

enum { MANY_WORKERS = 1000, MIB = 1 << 20 };

START_TEST(test_account)
{
    struct conn_room room;
    struct conn_place a = {0}, b = {0};
    conn_room_init(&room, MANY_WORKERS, 1);
    ck_assert_uint_eq(room.max[CONN_ROOM_REPLIES], CONN_ROOM_SHARE_MIN);
    conn_room_note(&room, &a, CONN_ROOM_REPLIES, CONN_ROOM_COUNTS - 1);
    ck_assert_uint_eq(room.used[CONN_ROOM_REPLIES], 0);
    conn_room_note(&room, &a, CONN_ROOM_REPLIES, MIB);
    ck_assert(!room.is_tight && !room.is_over);
    conn_room_note(&room, &b, CONN_ROOM_REQUESTS, MIB);
    conn_room_note(&room, &b, CONN_ROOM_REPLIES, 1);
    ck_assert_uint_eq(room.used[CONN_ROOM_REQUESTS], 0);
    conn_room_note(&room, &b, CONN_ROOM_REPLIES, MIB);
    ck_assert_uint_eq(room.used[CONN_ROOM_REPLIES], 2 * MIB);
    ck_assert(!room.is_tight && !room.is_over);
    conn_room_note(&room, &b, CONN_ROOM_REPLIES, 3 * MIB);
    ck_assert(room.is_tight && !room.is_over);
    conn_room_note(&room, &b, CONN_ROOM_REPLIES, 11 * MIB + 1);
    ck_assert(room.is_over);
    conn_room_note(&room, &b, CONN_ROOM_REQUESTS, 0);
    conn_room_note(&room, &a, CONN_ROOM_REQUESTS, CONN_ROOM_SHARE_MIN + 1);
    ck_assert(room.is_over && !room.is_tight);
    conn_room_note(&room, &a, CONN_ROOM_REQUESTS, 0);
    ck_assert(!room.is_over && !room.is_tight);
}
END_TEST

START_TEST(test_shares)
{
    struct conn_room room;
    conn_room_init(&room, 4, MIB);
    ck_assert_uint_eq(room.max[CONN_ROOM_REPLIES], 12 * MIB);
    ck_assert_uint_eq(room.max[CONN_ROOM_REQUESTS], 64 * MIB);
    conn_room_init(&room, 4, 100 * MIB); /* room for the largest values */
    ck_assert_uint_eq(room.max[CONN_ROOM_REPLIES], 400 * MIB);
    conn_room_init(&room, 0, MIB);
    ck_assert_uint_eq(room.max[CONN_ROOM_REPLIES], SIZE_MAX);
}
END_TEST

static void
start_small(struct rig *rig)
{
    rig_init(rig);
    rig->config.n_workers = MANY_WORKERS;
    rig->config.value_bytes_max = MIB;
    rig_start(rig);
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
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_account, test_shares, test_replies,
        test_loans, test_requests, test_request_of_an_idle_one};
    return run_tests("conn_room", tests, COUNT_OF(tests));
}
