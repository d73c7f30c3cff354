/* SPDX-License-Identifier: BSD-3-Clause */
/* net/worker and net/conn, through socket pairs: turns, back-pressure, ends of
 * all kinds, and calls that the store answers when the client has gone. */
#include "net/worker.h"

#include "lib/hold.h"
#include "lib/park.h"
#include "net/conn.h"
#include "unit/item_help.h"
#include "unit/time_help.h"

#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/ioctl.h>

static void
declare_weibo(int fd)
{
    talk(fd,
        "add counter weibo\r\nadd column weibo weibo_id primarykey\r\n"
        "add column weibo a max=64\r\nadd column weibo b max=64\r\n",
        "STORED\r\nSTORED\r\nSTORED\r\nSTORED\r\n");
}

START_TEST(test_replies)
{
    struct rig rig;
    rig_init(&rig);
    rig_start(&rig);
    int fd = connect_to(&rig, 0);
    int other = connect_to(&rig, 1);
    declare_weibo(fd);
    talk(fd, "set weibo 1 a=5 b=6\r\nincr 1.a 2\r\nget 1.weibo nothing\r\n",
        "STORED\r\n7\r\nVALUE 1.weibo 0 3\r\n7 6\r\nEND\r\n");
    talk(other, "get 1.a\r\n", "VALUE 1.a 0 1\r\n7\r\nEND\r\n");
    talk(other, "version\r\n", "VERSION test\r\n");
    close(other);
    close(fd);
    stop_all(&rig);
}
END_TEST

START_TEST(test_byte_by_byte)
{
    static const char said[] =
        "set a 0 0 5\r\nhel\r\n\r\nget a\r\nnonsense\r\nversion\r\n";
    struct rig rig;
    rig_init(&rig);
    rig_start(&rig);
    int fd = connect_to(&rig, 0);
    for (size_t i = 0; i < sizeof said - 1; i++) {
        send_bytes(fd, said + i, 1);
    }
    expect(fd,
        "STORED\r\nVALUE a 0 5\r\nhel\r\n\r\nEND\r\n"
        "ERROR type help\r\nVERSION test\r\n");
    close(fd);
    stop_all(&rig);
}
END_TEST

/* Values that fill many reads and many writes, among small ones. */
START_TEST(test_large_values)
{
    enum { LARGE = 1000000 };
    static const char head[] = "VALUE big 0 1000000\r\n";
    struct rig rig;
    char *bytes = malloc(LARGE);
    ck_assert_ptr_nonnull(bytes);
    rig_init(&rig);
    rig_start(&rig);
    int fd = connect_to(&rig, 0);
    set_item(fd, "big", LARGE);
    say(fd, "get big\r\nversion\r\nget big big\r\n");
    for (int i = 0; i < 3; i++) {
        expect(fd, head);
        receive(fd, bytes, LARGE);
        for (size_t k = 0; k < LARGE; k++) {
            ck_assert_int_eq(bytes[k], 'v');
        }
        expect(fd, i == 0 ? "\r\nEND\r\nVERSION test\r\n" : "\r\n");
    }
    expect(fd, "END\r\n");
    free(bytes);
    close(fd);
    stop_all(&rig);
}
END_TEST

/* A client that ends after its commands gets all answers first. */
START_TEST(test_end_after_commands)
{
    static const char *const ends[] = {"", "get a", "set a 0 0 5\r\nhel"};
    for (size_t i = 0; i < COUNT_OF(ends); i++) {
        struct rig rig;
        rig_init(&rig);
        rig.config.requests_per_turn = 1;
        rig_start(&rig);
        int fd = connect_to(&rig, 0);
        for (int k = 0; k < 100; k++) {
            say(fd, "version\r\n");
        }
        say(fd, ends[i]);
        ck_assert_int_eq(shutdown(fd, SHUT_WR), 0);
        for (int k = 0; k < 100; k++) {
            expect(fd, "VERSION test\r\n");
        }
        expect_end(fd);
        stop_all(&rig);
    }
}
END_TEST

START_TEST(test_quit)
{
    struct rig rig;
    rig_init(&rig);
    rig_start(&rig);
    int fd = connect_to(&rig, 0);
    talk(fd, "version\r\nquit\r\nversion\r\n", "VERSION test\r\n");
    expect_end(fd);
    fd = connect_to(&rig, 0);
    say(fd, "GET / HTTP/1.1\r\n");
    expect_end(fd);
    stop_all(&rig);
}
END_TEST

/* One request a turn: the others are not forgotten. */
START_TEST(test_yields)
{
    enum { REQUESTS = 1000 };
    struct rig rig;
    struct buf said = {0};
    rig_init(&rig);
    rig.config.requests_per_turn = 1;
    rig_start(&rig);
    int fd = connect_to(&rig, 0);
    for (int i = 0; i < REQUESTS; i++) {
        buf_add_text(&said, "version\r\n");
    }
    send_bytes(fd, said.data, said.len);
    for (int i = 0; i < REQUESTS; i++) {
        expect(fd, "VERSION test\r\n");
    }
    ck_assert_uint_gt(metric_of(rig.worker[0], METRIC_conn_yields), 0);
    buf_fini(&said);
    close(fd);
    stop_all(&rig);
}
END_TEST

/* A connection over TCP. */
START_TEST(test_tcp)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t len = sizeof address;
    struct rig rig;
    rig_init(&rig);
    rig_start(&rig);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int listening = socket(AF_INET, SOCK_STREAM, 0);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr *any = (struct sockaddr *)&address;
    ck_assert_int_eq(bind(listening, any, len), 0);
    ck_assert_int_eq(listen(listening, 1), 0);
    ck_assert_int_eq(getsockname(listening, any, &len), 0);
    ck_assert_int_eq(connect(fd, any, len), 0);
    int accepted = accept4(listening, NULL, NULL, SOCK_NONBLOCK);
    ck_assert_int_ge(accepted, 0);
    atomic_fetch_add(&rig.gauge.current, 1);
    ck_assert(worker__add_fd(
        rig.worker[1], accepted, false, SESSION_AUTO, TLS_USE_NONE, NULL));
    talk(fd, "version\r\n", "VERSION test\r\n");
    close(listening);
    close(fd);
    stop_all(&rig);
}
END_TEST

/* Round trips on another connection of the same worker: each lets all ready
 * connections have a turn. */
static uint64_t
go_round(int fd, int rounds)
{
    for (int i = 0; i < rounds; i++) {
        talk(fd, "version\r\n", "VERSION test\r\n");
    }
    return (uint64_t)rounds * strlen("version\r\n");
}

enum { ITEM = 1000000 };

/* Hears n answers to a get of the item, which is of ITEM bytes. */
static void
expect_items(int fd, int n)
{
    char *item = malloc(ITEM);
    ck_assert_ptr_nonnull(item);
    for (int i = 0; i < n; i++) {
        expect(fd, "VALUE big 0 1000000\r\n");
        receive(fd, item, ITEM);
        expect(fd, "\r\nEND\r\n");
    }
    free(item);
}

/* Asks n times without reading: what is made for it stays bounded, and nothing
 * more is read from it; when it does read, all is there. */
static void
expect_bounded(struct rig *rig, int other, int n)
{
    enum {
        ROUNDS = 100,
        BOUND = CONN_WRITE_MARK + ITEM + (1 << 20) /* sockets' buffers */
    };
    struct worker *worker = rig->worker[0];
    struct buf said = {0};
    int fd = connect_to(rig, 0);
    uint64_t written = metric_of(worker, METRIC_bytes_written);
    for (int i = 0; i < n; i++) {
        buf_add_text(&said, "get big\r\n");
    }
    send_bytes(fd, said.data, said.len);
    go_round(other, ROUNDS);
    ck_assert_uint_lt(
        metric_of(worker, METRIC_bytes_written) - written, BOUND);
    uint64_t bytes_read = metric_of(worker, METRIC_bytes_read);
    say(fd, "version\r\n");
    bytes_read += go_round(other, ROUNDS);
    ck_assert_uint_eq(metric_of(worker, METRIC_bytes_read), bytes_read);
    expect_items(fd, n);
    expect(fd, "VERSION test\r\n");
    buf_fini(&said);
    close(fd);
}

START_TEST(test_unread_replies)
{
    struct rig rig;
    rig_init(&rig);
    rig_start(&rig);
    int other = connect_to(&rig, 0);
    set_item(other, "big", ITEM);
    expect_bounded(&rig, other, 50);
    expect_bounded(&rig, other, 1);
    close(other);
    stop_all(&rig);
}
END_TEST

/* The client's end comes while replies, few or many, are on their way. */
START_TEST(test_end_before_replies)
{
    enum { SMALL = 20000, REQUESTS_MAX = 30, ROUNDS = 30 };
    struct rig rig;
    char *item = malloc(SMALL);
    ck_assert_ptr_nonnull(item);
    rig_init(&rig);
    rig_start(&rig);
    int other = connect_to(&rig, 0);
    set_item(other, "a", SMALL);
    for (int n = 1; n <= REQUESTS_MAX; n++) {
        int fd = connect_to(&rig, 0);
        for (int i = 0; i < n; i++) {
            say(fd, "get a\r\n");
        }
        ck_assert_int_eq(shutdown(fd, SHUT_WR), 0);
        go_round(other, ROUNDS);
        for (int i = 0; i < n; i++) {
            expect(fd, "VALUE a 0 20000\r\n");
            receive(fd, item, SMALL);
            expect(fd, "\r\nEND\r\n");
        }
        expect_end(fd);
    }
    free(item);
    close(other);
    stop_all(&rig);
}
END_TEST

/* Time passes until the server has closed; nothing is read. */
static void
pass_until_hangup(struct rig *rig, int fd)
{
    pass_until(rig, fd, POLLRDHUP);
    close(fd);
}

START_TEST(test_slow_reader)
{
    struct rig rig;
    rig_init(&rig);
    rig.config.write_timeout_ms = 1;
    rig_start(&rig);
    int fd = connect_to(&rig, 0);
    set_item(fd, "big", 1000000);
    say(fd, "get big big big\r\n");
    pass_until_hangup(&rig, fd);
    ck_assert_uint_eq(metric_of(rig.worker[0], METRIC_slow_readers), 1);
    ck_assert_uint_eq(metric_of(rig.worker[0], METRIC_slow_commands), 0);
    stop_all(&rig);
}
END_TEST

START_TEST(test_slow_command)
{
    static const char *const begun[] = {
        "get", "set a 0 0 5\r\nhe", "set a 0 0 2000000\r\nhe"};
    struct rig rig;
    rig_init(&rig);
    rig.config.command_timeout_ms = 1;
    rig_start(&rig);
    int idle = connect_to(&rig, 0);
    for (size_t i = 0; i < COUNT_OF(begun); i++) {
        int fd = connect_to(&rig, 0);
        say(fd, begun[i]);
        if (i == 2) {
            expect(fd, "SERVER_ERROR object too large for cache\r\n");
        }
        expect_end_in_time(&rig, fd);
        ck_assert_uint_eq(
            metric_of(rig.worker[0], METRIC_slow_commands), i + 1);
    }
    /* who says nothing at all is not slow */
    talk(idle, "version\r\n", "VERSION test\r\n");
    close(idle);
    stop_all(&rig);
}
END_TEST

/* At a stop, replies that are on their way arrive whole. */
START_TEST(test_stop_with_replies)
{
    static const char head[] = "VALUE big 0 1000000\r\n";
    size_t reply_len = sizeof head - 1 + ITEM + strlen("\r\nEND\r\n");
    size_t len = sizeof head - 1;
    char bytes[4096];
    struct rig rig;
    ssize_t n;
    rig_init(&rig);
    rig_start(&rig);
    int idle = connect_to(&rig, 0);
    int fd = connect_to(&rig, 0);
    set_item(fd, "big", ITEM);
    say(fd, "get big\r\nget big\r\nget big\r\n"); /* one read takes all */
    expect(fd, head);
    rig_stop(&rig);
    while ((n = read(fd, bytes, sizeof bytes)) > 0) {
        len += (size_t)n;
    }
    ck_assert_int_eq(n, 0);
    ck_assert_uint_ge(len, reply_len);
    ck_assert_uint_eq(len % reply_len, 0);
    close(fd);
    expect_end(idle);
    rig_join(&rig);
    rig_fini(&rig);
}
END_TEST

/* At a stop a client that does not read is not waited for for ever. */
START_TEST(test_stop_with_an_unread_reply)
{
    struct rig rig;
    rig_init(&rig);
    rig.config.stop_timeout_ms = WORKER_STOP_MS;
    rig_start(&rig);
    int fd = connect_to(&rig, 0);
    set_item(fd, "big", 1000000);
    talk(fd, "get big\r\n", "VALUE big 0 1000000\r\n");
    rig_stop(&rig);
    pass_until_hangup(&rig, fd);
    rig_join(&rig);
    rig_fini(&rig);
}
END_TEST

/* Sockets that are handed over at a stop are closed, not lost. */
START_TEST(test_stop_with_new_sockets)
{
    enum { CLIENTS = 20 };
    int fd[CLIENTS];
    struct rig rig;
    rig_init(&rig);
    rig_start(&rig);
    for (int i = 0; i < CLIENTS; i++) {
        fd[i] = connect_to(&rig, i % RIG_WORKERS);
    }
    rig_stop(&rig);
    rig_join(&rig);
    for (int i = 0; i < CLIENTS; i++) {
        expect_end(fd[i]);
    }
    rig_fini(&rig);
}
END_TEST

/* stop_ms: how long a stop waits for what is held. */
static void
hold_init_until(struct rig *rig, uint64_t stop_ms)
{
    rig_init(rig);
    rig->config.stop_timeout_ms = stop_ms;
    ck_assert_int_eq(hold_create(rig->inner, &rig->store), 0);
    rig_start(rig);
}

static void
hold_init(struct rig *rig)
{
    hold_init_until(rig, RIG_NEVER_MS);
}

static void
hold_fini(struct rig *rig)
{
    hold_destroy(&rig->store);
    rig_fini(rig);
}

/* A connection whose command waits does not make others wait; its own
 * commands wait for it. */
START_TEST(test_parked)
{
    struct rig rig;
    hold_init(&rig);
    int fd = connect_to(&rig, 0);
    int other = connect_to(&rig, 0);
    declare_weibo(fd);
    hold_begin(rig.store, true);
    say(fd, "incr 1.a 1\r\nversion\r\nget 1.a\r\nset 1.a 0 0 1\r\n5");
    hold_wait(rig.store, 1);
    say(fd, "\r\nversion\r\n");
    talk(other, "version\r\n", "VERSION test\r\n");
    say(other, "drop counter weibo weibo\r\nversion\r\n");
    hold_wait(rig.store, 2);
    hold_end(rig.store);
    ck_assert_uint_eq(hold_release(rig.store), 2);
    expect(fd, "1\r\nVERSION test\r\n");
    expect(other, "DELETED\r\nVERSION test\r\n");
    close(fd);
    close(other);
    rig_stop(&rig);
    rig_join(&rig);
    hold_fini(&rig);
}
END_TEST

/* What arrives while a command waits is kept, but only once, however much the
 * client sends; nor is its end forgotten. */
START_TEST(test_bytes_while_parked)
{
    enum { LINES = 8000, READS_MAX = 2 };
    struct rig rig;
    struct buf said = {0};
    struct buf answer = {0};
    hold_init(&rig);
    int fd = connect_to(&rig, 0);
    int other = connect_to(&rig, 0);
    declare_weibo(fd);
    for (int i = 0; i < LINES; i++) {
        buf_add_text(&said, "version\r\n");
        buf_add_text(&answer, "VERSION test\r\n");
    }
    hold_begin(rig.store, true);
    say(fd, "get 1.a\r\n");
    hold_wait(rig.store, 1);
    uint64_t before = metric_of(rig.worker[0], METRIC_bytes_read);
    send_bytes(fd, said.data, said.len);
    ck_assert_int_eq(shutdown(fd, SHUT_WR), 0);
    for (int i = 0; i < 2 * READS_MAX; i++) {
        talk(other, "version\r\n", "VERSION test\r\n");
    }
    uint64_t read = metric_of(rig.worker[0], METRIC_bytes_read) - before;
    ck_assert_uint_lt(read, READS_MAX * WORKER_READ_BYTES);
    ck_assert_uint_lt(read, said.len);
    hold_end(rig.store);
    ck_assert_uint_eq(hold_release(rig.store), 1);
    expect(fd, "VALUE 1.a 0 1\r\n0\r\nEND\r\n");
    buf_add(&answer, "", 1);
    expect(fd, answer.data);
    buf_fini(&answer);
    expect_end(fd);
    buf_fini(&said);
    close(other);
    rig_stop(&rig);
    rig_join(&rig);
    hold_fini(&rig);
}
END_TEST

/* The client goes while its command waits; then the answer comes. */
START_TEST(test_closed_while_parked)
{
    static const char *const said[] = {"incr 1.a 1\r\n", "get 1.a 2.a\r\n",
        "incr 1.a 1\r\nincr 1.a 1\r\nquit\r\n", "get weibo 1\r\nget"};
    struct rig rig;
    hold_init(&rig);
    int other = connect_to(&rig, 1);
    declare_weibo(other);
    for (size_t i = 0; i < COUNT_OF(said); i++) {
        int fd = connect_to(&rig, 0);
        hold_begin(rig.store, true);
        say(fd, said[i]);
        hold_wait(rig.store, 1);
        close(fd);
        hold_end(rig.store);
        ck_assert_uint_eq(hold_release(rig.store), 1);
        while (atomic_load(&rig.gauge.current) > 1) {
            sched_yield(); /* until it has gone, with what it had left */
        }
    }
    close(other);
    rig_stop(&rig);
    rig_join(&rig);
    hold_fini(&rig);
}
END_TEST

/* The server stops while a command waits; it is answered, and the client
 * hears it. */
START_TEST(test_stopped_while_parked)
{
    struct rig rig;
    hold_init(&rig);
    int fd = connect_to(&rig, 0);
    int idle = connect_to(&rig, 0);
    declare_weibo(fd);
    hold_begin(rig.store, true);
    say(fd, "incr 1.a 1\r\n");
    hold_wait(rig.store, 1);
    rig_stop(&rig);
    expect_end(idle); /* so the order to stop has been seen */
    hold_end(rig.store);
    ck_assert_uint_eq(hold_release(rig.store), 1);
    expect(fd, "1\r\n");
    expect_end(fd);
    rig_join(&rig);
    hold_fini(&rig);
}
END_TEST

/* The same where the answer comes after the deadline: the socket is closed
 * then, and the memory waits. */
START_TEST(test_answered_after_the_stop)
{
    struct rig rig;
    hold_init_until(&rig, WORKER_STOP_MS);
    int fd = connect_to(&rig, 0);
    declare_weibo(fd);
    hold_begin(rig.store, true);
    say(fd, "incr 1.a 1\r\nincr 1.a 1\r\n");
    hold_wait(rig.store, 1);
    rig_stop(&rig);
    expect_end_in_time(&rig, fd);
    hold_end(rig.store);
    ck_assert_uint_eq(hold_release(rig.store), 1);
    rig_join(&rig);
    hold_fini(&rig);
}
END_TEST

/* As connect_to, with bytes that are there when the worker takes it over. */
static int
connect_saying(struct rig *rig, const char *text, size_t len)
{
    int pair[2];
    ck_assert_int_eq(
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    ck_assert_int_eq(fcntl(pair[1], F_SETFL, O_NONBLOCK), 0);
    send_bytes(pair[0], text, len);
    atomic_fetch_add(&rig->gauge.current, 1);
    ck_assert(worker__add_fd(
        rig->worker[0], pair[1], true, SESSION_AUTO, TLS_USE_NONE, NULL));
    return pair[0];
}

/* Returns when so many bytes can be read. */
static void
wait_for_bytes(int fd, int n_least)
{
    int n = 0;
    do {
        sched_yield();
        ck_assert_int_eq(ioctl(fd, FIONREAD, &n), 0);
    } while (n < n_least);
}

/* Who says nothing is closed; not who waits for an answer, or has not read
 * what was answered. */
START_TEST(test_idle)
{
    enum { VALUE = 50000, GETS = 40, ROUNDS = 2 };
    static char item[VALUE + 1024] = "set a 0 0 50000\r\n";
    static char reply[VALUE + 64];
    size_t len = strlen(item);
    struct rig rig;
    rig_init(&rig);
    rig.config.idle_timeout_ms = 6000;
    ck_assert_int_eq(hold_create(rig.inner, &rig.store), 0);
    rig_start(&rig);
    hold_begin(rig.store, true);
    memset(item + len, 'v', VALUE);
    len += VALUE;
    memcpy(item + len, "\r\n", 2);
    len += 2;
    for (int i = 0; i < GETS; i++) {
        memcpy(item + len, "get a\r\n", 7);
        len += 7;
    }
    int reading = connect_saying(&rig, item, len);
    const char edit[] = "add counter weibo\r\n";
    int waiting = connect_saying(&rig, edit, strlen(edit));
    hold_wait(rig.store, 1);
    wait_for_bytes(reading, 2 * VALUE); /* others wait behind them */
    for (int i = 0; i < ROUNDS; i++) {  /* each is closed by another sweep */
        expect_end_in_time(&rig, connect_to(&rig, 0));
    }
    ck_assert_uint_eq(metric_of(rig.worker[0], METRIC_idle_kicks), ROUNDS);
    expect(reading, "STORED\r\n");
    for (int i = 0; i < GETS; i++) {
        receive(
            reading, reply, strlen("VALUE a 0 50000\r\n\r\nEND\r\n") + VALUE);
    }
    ck_assert_uint_eq(hold_release(rig.store), 1);
    hold_end(rig.store);
    expect(waiting, "STORED\r\n");
    expect_end_in_time(&rig, reading); /* now they are idle too */
    expect_end_in_time(&rig, waiting);
    ck_assert_uint_eq(metric_of(rig.worker[0], METRIC_idle_kicks), ROUNDS + 2);
    rig_stop(&rig);
    rig_join(&rig);
    hold_fini(&rig);
}
END_TEST

/* Clients that count in cells of their own through a store that parks calls,
 * and that go at any moment. */
struct counting {
    struct rig *rig;
    unsigned id;
    uint64_t random;
    uint64_t sent;  /* increments asked for */
    uint64_t heard; /* of these, answered */
    pthread_t thread;
};

enum { COUNTERS = 4, VISITS = 40, PIPELINE = 20 };

/* Asks for n increments, hears k of them, and goes. */
static void
visit(struct counting *counting, unsigned n, unsigned k)
{
    char line[64];
    int fd = connect_to(counting->rig, (int)counting->id % RIG_WORKERS);
    for (unsigned i = 0; i < n; i++) {
        snprintf(line, sizeof line, "incr weibo %u 1 1\r\nget %u.a x\r\n",
            counting->id, counting->id);
        say(fd, line);
    }
    counting->sent += n;
    for (unsigned i = 0; i < k; i++) {
        unsigned long long a, b, got;
        char bytes[128];
        size_t len = 0;
        do {
            receive(fd, bytes + len, 1);
            bytes[++len] = '\0';
        } while (len < 6 || strcmp(bytes + len - 5, "END\r\n") != 0);
        ck_assert_int_eq(
            sscanf(
                bytes, "%llu %llu\r\nVALUE %*u.a 0 %*u\r\n%llu", &a, &b, &got),
            3);
        ck_assert_uint_eq(a, b);
        ck_assert_uint_ge(got, a); /* an earlier visit's may still come */
        ck_assert_uint_gt(a, counting->heard);
        counting->heard = a;
    }
    close(fd);
}

static void *
run_counting(void *arg)
{
    struct counting *counting = arg;
    for (int i = 0; i < VISITS; i++) {
        unsigned n = 1 + (unsigned)random_below(&counting->random, PIPELINE);
        bool hears_all = i == 0 || random_below(&counting->random, 2) == 0;
        visit(counting, n,
            hears_all ? n : (unsigned)random_below(&counting->random, n));
        if (hears_all && i == 0) {
            ck_assert_uint_eq(counting->heard, counting->sent);
        }
    }
    return NULL;
}

START_TEST(test_clients_that_go)
{
    struct rig rig;
    struct counting counting[COUNTERS];
    struct store *parked;
    rig_init(&rig);
    ck_assert_int_eq(park_create(rig.inner, 3, &parked), 0);
    rig.store = parked;
    rig_start(&rig);
    int fd = connect_to(&rig, 0);
    declare_weibo(fd);
    for (unsigned i = 0; i < COUNTERS; i++) {
        counting[i] = (struct counting){.rig = &rig, .id = i, .random = i};
        ck_assert_int_eq(pthread_create(&counting[i].thread, NULL,
                             run_counting, &counting[i]),
            0);
    }
    for (unsigned i = 0; i < COUNTERS; i++) {
        pthread_join(counting[i].thread, NULL);
        ck_assert_uint_gt(counting[i].heard, 0);
        ck_assert_uint_le(counting[i].heard, counting[i].sent);
    }
    close(fd);
    rig_stop(&rig);
    rig_join(&rig);
    park_destroy(&parked);
    rig_fini(&rig);
}
END_TEST

/* Stops right after the commands, again and again: an answer may be on its
 * way to the mailbox of a worker that ends. */
START_TEST(test_stop_while_answers_come)
{
    enum { ROUNDS = 100, CLIENTS = 4 };
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        struct rig rig;
        struct store *parked;
        int fd[CLIENTS];
        rig_init(&rig);
        ck_assert_int_eq(park_create(rig.inner, seed, &parked), 0);
        rig.store = parked;
        rig_start(&rig);
        for (int i = 0; i < CLIENTS; i++) {
            fd[i] = connect_to(&rig, i % RIG_WORKERS);
        }
        declare_weibo(fd[0]);
        for (int i = 0; i < CLIENTS; i++) {
            say(fd[i], "incr 1.a 1\r\nget 1.a 2.b\r\nincr 2.b 1\r\n");
            if (i % 2 == 0) {
                close(fd[i]);
            }
        }
        rig_stop(&rig);
        rig_join(&rig);
        close(fd[1]);
        close(fd[3]);
        park_destroy(&parked);
        rig_fini(&rig);
    }
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_replies, test_byte_by_byte,
        test_large_values, test_end_after_commands, test_quit, test_yields,
        test_tcp, test_unread_replies, test_end_before_replies,
        test_slow_reader, test_slow_command, test_idle, test_stop_with_replies,
        test_stop_with_an_unread_reply, test_stop_with_new_sockets,
        test_parked, test_bytes_while_parked, test_closed_while_parked,
        test_stopped_while_parked, test_answered_after_the_stop,
        test_clients_that_go, test_stop_while_answers_come};
    return run_tests("worker", tests, COUNT_OF(tests));
}
