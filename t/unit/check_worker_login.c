/* SPDX-License-Identifier: BSD-3-Clause */
/* Workers whose clients have to log in: the time for it, and what comes while
 * a login is being answered. */
#include "unit/access_help.h"
#include "unit/time_help.h"

#include <sched.h>
#include <stdatomic.h>

static const char login_line[] = "set x 0 0 13\r\nwriter writer\r\n";

/* Who does not log in is closed, whatever it sends, and whoever has is not. */
START_TEST(test_strangers)
{
    struct fake_access users = fake_access(true, false);
    struct rig rig;
    rig_init(&rig);
    rig.config.access = &users.access;
    rig.config.login_timeout_ms = 100;
    rig_start(&rig);
    int known = connect_to(&rig, 0);
    int silent = connect_to(&rig, 0);
    int refused = connect_to(&rig, 0);
    talk(known, login_line, "STORED\r\n");
    talk(refused, "version\r\n", "CLIENT_ERROR unauthenticated\r\n");
    expect_end_in_time(&rig, silent);
    expect_end_in_time(&rig, refused);
    ck_assert_uint_eq(metric_of(rig.worker[0], METRIC_slow_logins), 2);
    talk(known, "set a 0 0 1\r\nx\r\n", "STORED\r\n");
    close(known);
    stop_all(&rig);
}
END_TEST

/* A login whose answer comes later: what is sent meanwhile waits in the
 * socket, and is done then. */
START_TEST(test_late_login)
{
    enum { VALUE = 5000 };
    char value[VALUE + 1];
    struct fake_access users = fake_access(true, true);
    struct rig rig;
    rig_init(&rig);
    rig.config.access = &users.access;
    rig_start(&rig);
    int fd = connect_to(&rig, 0);
    memset(value, 'v', VALUE);
    value[VALUE] = '\0';
    say(fd, "set x 0 0 13\r\nwriter writer\r\nset a 0 0 5000\r\n");
    say(fd, value);
    say(fd, "\r\n");
    expect(fd, "STORED\r\nSTORED\r\n");
    talk(fd, "delete a\r\n", "DELETED\r\n");
    int other = connect_to(&rig, 0);
    say(other, value); /* no line of 1 KiB is waited for */
    char byte;
    ck_assert_int_le(read(other, &byte, 1), 0); /* the end, or a reset */
    close(other);
    close(fd);
    stop_all(&rig);
}
END_TEST

/* Users whose answer waits until the test gives it. */
struct held_access {
    struct access access;
    struct access_login *_Atomic login;
};

static bool
hold_login(struct access *access, struct access_login *login)
{
    struct held_access *held = (struct held_access *)access;
    atomic_store(&held->login, login);
    return false;
}

/* A login that takes too long: the client is closed, whoever checks it is told
 * that it need not, and the answer still has a place to come to. */
START_TEST(test_closed_while_checked)
{
    struct held_access held = {.access = {.check_fn = hold_login}};
    struct rig rig;
    rig_init(&rig);
    rig.config.access = &held.access;
    rig.config.login_timeout_ms = 100;
    rig_start(&rig);
    struct access_login *login;
    int fd = connect_to(&rig, 0);
    say(fd, login_line);
    while ((login = atomic_load(&held.login)) == NULL) {
        sched_yield();
    }
    expect_end_in_time(&rig, fd);
    ck_assert(atomic_load(&login->is_unwanted));
    login->rank = ACCESS_WRITER;
    login->done_fn(login);
    stop_all(&rig);
}
END_TEST

/* At a stop a login is waited for, as every other answer is. */
START_TEST(test_stop_while_checked)
{
    struct held_access held = {.access = {.check_fn = hold_login}};
    struct rig rig;
    struct access_login *login;
    rig_init(&rig);
    rig.config.access = &held.access;
    rig_start(&rig);
    int fd = connect_to(&rig, 0);
    say(fd, login_line);
    while ((login = atomic_load(&held.login)) == NULL) {
        sched_yield();
    }
    rig_stop(&rig);
    login->rank = ACCESS_WRITER;
    login->done_fn(login);
    rig_join(&rig);
    expect(fd, "STORED\r\n");
    expect_end(fd);
    rig_fini(&rig);
}
END_TEST

/* A reload: who is in by what is no more goes, strangers stay, and a login that
 * was checked by what was before is none. */
static atomic_bool passes_stand;

static bool
still_stands(struct access *access, uint64_t pass)
{
    (void)access;
    return pass == 1 || atomic_load(&passes_stand);
}

static struct access_login *
begin_login(struct held_access *held, int fd)
{
    struct access_login *login;
    atomic_store(&held->login, NULL);
    say(fd, login_line);
    while ((login = atomic_load(&held->login)) == NULL) {
        sched_yield();
    }
    login->rank = ACCESS_WRITER;
    return login;
}

START_TEST(test_revoked)
{
    enum { STAYS, GOES, LATE, STRANGER, N };
    struct held_access held = {
        .access = {.check_fn = hold_login, .stands_fn = still_stands}};
    struct rig rig;
    int fd[N];
    rig_init(&rig);
    rig.config.access = &held.access;
    rig_start(&rig);
    atomic_store(&passes_stand, true);
    for (int i = 0; i < N; i++) {
        fd[i] = connect_to(&rig, i % RIG_WORKERS);
    }
    for (int i = STAYS; i <= GOES; i++) {
        struct access_login *login = begin_login(&held, fd[i]);
        login->pass = i == STAYS ? 1 : 2;
        login->done_fn(login);
        expect(fd[i], "STORED\r\n");
    }
    struct access_login *login = begin_login(&held, fd[LATE]);
    login->pass = 2;
    atomic_store(&passes_stand, false);
    worker_look_at_users(rig.worker[0]);
    worker_look_at_users(rig.worker[1]);
    expect_end(fd[GOES]);
    login->done_fn(login);
    expect(fd[LATE], "CLIENT_ERROR authentication failure\r\n");
    talk(fd[STAYS], "get a\r\n", "END\r\n");
    say(fd[STRANGER], "get a\r\n");
    expect(fd[STRANGER], "CLIENT_ERROR unauthenticated\r\n");
    ck_assert_uint_eq(metric_of(rig.worker[0], METRIC_revoked_logins) +
            metric_of(rig.worker[1], METRIC_revoked_logins),
        1);
    close(fd[STAYS]);
    close(fd[LATE]);
    close(fd[STRANGER]);
    stop_all(&rig);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_strangers, test_late_login,
        test_closed_while_checked, test_stop_while_checked, test_revoked};
    return run_tests("worker_login", tests, COUNT_OF(tests));
}
