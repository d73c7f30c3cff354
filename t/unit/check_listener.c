/* SPDX-License-Identifier: BSD-3-Clause */
/* net/listener: addresses that can and cannot be bound, the socket file, the
 * limit of connections, and handing out. The listener's loop is run by the
 * test's own thread, step by step, while it waits for something. */
#include "net/listener.h"

#include "base/err.h"
#include "unit/steps_help.h"
#include "unit/worker_help.h"

#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* A listener with its loop, workers, and a folder for socket files. */
struct bench {
    struct rig rig;
    uv_loop_t loop;
    struct listener listener;
    struct buf ports;
    struct buf why;
    char folder[64];
};

static void
bench_init(struct bench *bench, unsigned conn_limit)
{
    const char *top = getenv("TMPDIR");
    rig_init(&bench->rig);
    rig_start(&bench->rig);
    ck_assert_int_eq(uv_loop_init(&bench->loop), 0);
    bench->ports = (struct buf){0};
    bench->why = (struct buf){0};
    struct listener_config config = {.loop = &bench->loop,
        .logger = &bench->rig.logger,
        .gauge = &bench->rig.gauge,
        .workers = bench->rig.worker,
        .n_workers = RIG_WORKERS,
        .conn_limit = conn_limit,
        .backlog = 16};
    listener_init(&bench->listener, &config);
    snprintf(bench->folder, sizeof bench->folder, "%s/tallyd-XXXXXX",
        top == NULL || strlen(top) > 40 ? "/tmp" : top);
    ck_assert_ptr_nonnull(mkdtemp(bench->folder));
}

static void
bench_fini(struct bench *bench)
{
    listener_stop(&bench->listener);
    uv_run(&bench->loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&bench->loop), 0);
    rig_stop(&bench->rig);
    rig_join(&bench->rig);
    rig_fini(&bench->rig);
    buf_fini(&bench->ports);
    buf_fini(&bench->why);
    ck_assert_int_eq(rmdir(bench->folder), 0);
}

static int
add_tcp(struct bench *bench, const char *host, uint16_t port, bool optional)
{
    struct listener_address address = {
        .host = host, .port = port, .optional = optional};
    return listener_add_tcp(
        &bench->listener, &address, &bench->ports, &bench->why);
}

/* The port of the last line; 0 where there is none. */
static uint16_t
last_port(const struct buf *ports)
{
    const char *colon = memrchr(ports->data, ':', ports->len);
    return colon == NULL ? 0 : (uint16_t)strtoul(colon + 1, NULL, 10);
}

/* A path in the bench's folder. */
static const char *
path_of(struct bench *bench, char *path, size_t size)
{
    snprintf(path, size, "%s/socket", bench->folder);
    return path;
}

static void
expect_why(struct bench *bench, const char *part)
{
    buf_add(&bench->why, "", 1);
    ck_assert_msg(strstr(bench->why.data, part) != NULL, "'%s' not in '%s'",
        part, bench->why.data);
    buf_clear(&bench->why);
}

static uint16_t
add_loopback(struct bench *bench)
{
    ck_assert_int_eq(add_tcp(bench, "127.0.0.1", 0, false), 0);
    ck_assert_uint_eq(bench->why.len, 0);
    uint16_t port = last_port(&bench->ports);
    ck_assert_uint_ne(port, 0);
    return port;
}

static int
connect_tcp(uint16_t port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(fd, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ck_assert_int_eq(
        connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

static struct sockaddr_un
unix_address(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    ck_assert_uint_lt(strlen(path), sizeof address.sun_path);
    memcpy(address.sun_path, path, strlen(path) + 1);
    return address;
}

static int
connect_unix(const char *path)
{
    struct sockaddr_un address = unix_address(path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(
        connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

/* Runs the loop until the next connections have been accepted. */
static void
accept_one(struct bench *bench)
{
    uint64_t before = atomic_load(&bench->rig.gauge.total) +
        atomic_load(&bench->rig.gauge.rejected);
    while (atomic_load(&bench->rig.gauge.total) +
            atomic_load(&bench->rig.gauge.rejected) ==
        before) {
        uv_run(&bench->loop, UV_RUN_ONCE);
    }
}

/* Says something, so that the answer shows which side took it. */
static void
expect_served(int fd)
{
    talk(fd, "version\r\n", "VERSION test\r\n");
}

START_TEST(test_hands_out_in_turn)
{
    enum { CLIENTS = 6 };
    struct bench bench;
    int fd[CLIENTS];
    bench_init(&bench, 100);
    uint16_t port = add_loopback(&bench);
    ck_assert_int_eq(listener_start(&bench.listener), 0);
    for (int i = 0; i < CLIENTS; i++) {
        fd[i] = connect_tcp(port);
        accept_one(&bench);
        expect_served(fd[i]);
    }
    ck_assert_uint_eq(atomic_load(&bench.rig.gauge.current), CLIENTS);
    ck_assert_uint_eq(atomic_load(&bench.rig.gauge.total), CLIENTS);
    for (int i = 0; i < RIG_WORKERS; i++) {
        ck_assert_uint_eq(metric_of(bench.rig.worker[i], METRIC_bytes_read),
            CLIENTS / RIG_WORKERS * strlen("version\r\n"));
    }
    for (int i = 0; i < CLIENTS; i++) {
        close(fd[i]);
    }
    bench_fini(&bench);
}
END_TEST

START_TEST(test_limit)
{
    struct bench bench;
    bench_init(&bench, 2);
    uint16_t port = add_loopback(&bench);
    ck_assert_int_eq(listener_start(&bench.listener), 0);
    int first = connect_tcp(port);
    accept_one(&bench);
    int second = connect_tcp(port);
    accept_one(&bench);
    for (int i = 0; i < 3; i++) {
        int third = connect_tcp(port);
        accept_one(&bench);
        expect(third, "ERROR Too many open connections\r\n");
        expect_end(third);
    }
    ck_assert_uint_eq(atomic_load(&bench.rig.gauge.rejected), 3);
    ck_assert_uint_eq(atomic_load(&bench.rig.gauge.total), 2);
    expect_served(first);
    talk(second, "version\r\nquit\r\n", "VERSION test\r\n");
    expect_end(second);
    while (atomic_load(&bench.rig.gauge.current) == 2) {
        sched_yield(); /* the place is given back a moment later */
    }
    second = connect_tcp(port);
    accept_one(&bench);
    expect_served(second);
    close(first);
    close(second);
    bench_fini(&bench);
}
END_TEST

/* Runs the loop until the gauge says so. */
static void
run_until(struct bench *bench, bool is_accepting)
{
    while (atomic_load(&bench->rig.gauge.is_accepting) != is_accepting) {
        uv_run(&bench->loop, UV_RUN_ONCE);
    }
}

/* Above the limit clients wait: they are connected by the kernel, and served
 * as soon as there is room; nobody is turned away. */
START_TEST(test_limit_waits)
{
    enum { ROUNDS = 3 };
    struct bench bench;
    struct conn_gauge *gauge = &bench.rig.gauge;
    bench_init(&bench, 1);
    bench.listener.config.waits = true;
    uint16_t port = add_loopback(&bench);
    ck_assert(!atomic_load(&gauge->is_accepting));
    ck_assert_int_eq(listener_start(&bench.listener), 0);
    ck_assert(atomic_load(&gauge->is_accepting));
    int now = connect_tcp(port);
    accept_one(&bench);
    for (unsigned i = 0; i < ROUNDS; i++) {
        int next = connect_tcp(port);
        run_until(&bench, false);
        ck_assert_uint_eq(atomic_load(&gauge->pauses), i + 1);
        expect_served(now);
        for (int turn = 0; turn < 4; turn++) { /* the pause goes on */
            uv_run(&bench.loop, UV_RUN_ONCE);
        }
        ck_assert_uint_eq(atomic_load(&gauge->pauses), i + 1);
        ck_assert_uint_eq(atomic_load(&gauge->total), i + 1);
        close(now);
        /* it goes on, and pauses again behind the next one: within one turn of
         * the loop, where this thread had no core meanwhile */
        while (atomic_load(&gauge->total) == i + 1) {
            uv_run(&bench.loop, UV_RUN_ONCE);
        }
        expect_served(next);
        now = next;
    }
    ck_assert_uint_gt(atomic_load(&gauge->pause_us), 0);
    ck_assert_uint_eq(atomic_load(&gauge->rejected), 0);
    ck_assert_uint_eq(atomic_load(&gauge->current), 1);
    close(now);
    while (!atomic_load(&gauge->is_accepting)) {
        uv_run(&bench.loop, UV_RUN_NOWAIT); /* whether or not someone waits */
        (void)usleep(1000);
    }
    bench_fini(&bench);
}
END_TEST

/* While it is held who comes waits, and who is there is served; a pause that
 * was under way ends with it. */
START_TEST(test_hold)
{
    struct bench bench;
    struct conn_gauge *gauge = &bench.rig.gauge;
    bench_init(&bench, 2);
    bench.listener.config.waits = true;
    uint16_t port = add_loopback(&bench);
    ck_assert_int_eq(listener_start(&bench.listener), 0);
    int first = connect_tcp(port);
    accept_one(&bench);
    for (unsigned i = 0; i < 2; i++) {
        listener_hold(&bench.listener);
        ck_assert(!atomic_load(&gauge->is_accepting));
        int next = connect_tcp(port);
        for (int turn = 0; turn < 4; turn++) {
            uv_run(&bench.loop, UV_RUN_NOWAIT);
        }
        ck_assert_uint_eq(atomic_load(&gauge->total), i + 1);
        expect_served(first);
        ck_assert_int_eq(listener_start(&bench.listener), 0);
        accept_one(&bench);
        expect_served(next);
        if (i > 0) {
            close(next);
            break;
        }
        int third = connect_tcp(port);
        run_until(&bench, false); /* it pauses; and is held so */
        close(next);
        close(third);
        while (atomic_load(&gauge->current) > 1) {
            sched_yield();
        }
        bench.listener.config.conn_limit = 4;
    }
    close(first);
    bench_fini(&bench);
}
END_TEST

START_TEST(test_port_in_use)
{
    struct bench bench;
    struct bench other;
    char why[80];
    bench_init(&bench, 10);
    bench_init(&other, 10);
    uint16_t taken = add_loopback(&bench);
    (void)snprintf(why, sizeof why,
        "cannot listen on 127.0.0.1 port %u: Address already in use",
        (unsigned)taken);
    ck_assert_int_eq(add_tcp(&other, "127.0.0.1", taken, false), ERR_SYSTEM);
    expect_why(&other, why);
    /* not even where the address is optional: its family is there */
    ck_assert_int_eq(add_tcp(&other, "127.0.0.1", taken, true), ERR_SYSTEM);
    bench_fini(&other);
    bench_fini(&bench);
}
END_TEST

/* A line for each socket, by its family and with its port. */
static void
expect_lines(struct bench *bench)
{
    struct buf wanted = {0};
    for (unsigned i = 0; i < bench->listener.n_sockets; i++) {
        struct sockaddr_in6 bound; /* the port is where that of v4 is */
        socklen_t len = sizeof bound;
        ck_assert_int_eq(getsockname(bench->listener.socket[i].fd,
                             (struct sockaddr *)&bound, &len),
            0);
        ck_assert_uint_ne(bound.sin6_port, 0);
        buf_addf(&wanted, "TCP %s: %u\n",
            bound.sin6_family == AF_INET6 ? "INET6" : "INET",
            ntohs(bound.sin6_port));
    }
    ck_assert_uint_eq(bench->ports.len, wanted.len);
    ck_assert_mem_eq(bench->ports.data, wanted.data, wanted.len);
    buf_fini(&wanted);
}

START_TEST(test_addresses)
{
    struct bench bench;
    bench_init(&bench, 10);
    /* of a network for documentation (RFC 5737): no machine has it */
    ck_assert_int_eq(add_tcp(&bench, "192.0.2.1", 0, false), ERR_SYSTEM);
    expect_why(&bench, "cannot listen on 192.0.2.1 port 0: ");
    ck_assert_int_eq(add_tcp(&bench, "192.0.2.1", 0, true), 0);
    ck_assert_uint_eq(bench.listener.n_sockets, 0);
    ck_assert_int_eq(add_tcp(&bench, "no such name", 0, false), ERR_SYSTEM);
    expect_why(&bench, "cannot resolve no such name: ");
    ck_assert_int_eq(add_tcp(&bench, "*", 0, true), 0);
    ck_assert_uint_ge(bench.listener.n_sockets, 1);
    expect_lines(&bench);
    bench_fini(&bench);
}
END_TEST

static unsigned
open_fds(void)
{
    unsigned n = 0;
    for (int fd = 0; fd < 1024; fd++) {
        n += fcntl(fd, F_GETFD) != -1;
    }
    return n;
}

START_TEST(test_too_many_addresses)
{
    struct bench bench;
    bench_init(&bench, 10);
    for (int i = 0; i < LISTENER_SOCKETS_MAX; i++) {
        add_loopback(&bench);
    }
    unsigned before = open_fds();
    ck_assert_int_eq(add_tcp(&bench, "127.0.0.1", 0, false), ERR_SYSTEM);
    expect_why(&bench, "more than 64 addresses");
    ck_assert_uint_eq(open_fds(), before);
    bench_fini(&bench);
}
END_TEST

START_TEST(test_unix_mask)
{
    static const mode_t masks[] = {0700, 0660, 0666, 0777, 0600};
    for (size_t i = 0; i < COUNT_OF(masks); i++) {
        struct bench bench;
        char path[128];
        struct stat info;
        bench_init(&bench, 10);
        mode_t before = umask(022);
        path_of(&bench, path, sizeof path);
        ck_assert_int_eq(
            listener_add_unix(&bench.listener, path, masks[i], &bench.why), 0);
        ck_assert_uint_eq(umask(before), 022); /* as it was */
        ck_assert_int_eq(lstat(path, &info), 0);
        ck_assert(S_ISSOCK(info.st_mode));
        ck_assert_uint_eq(info.st_mode & 0777, masks[i]);
        ck_assert_int_eq(listener_start(&bench.listener), 0);
        int fd = connect_unix(path);
        accept_one(&bench);
        expect_served(fd);
        close(fd);
        bench_fini(&bench); /* the folder is empty then */
    }
}
END_TEST

/* A file whose server has gone without removing it. */
static void
leave_stale(const char *path)
{
    struct sockaddr_un address = unix_address(path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    ck_assert_int_eq(listen(fd, 1), 0);
    close(fd);
}

START_TEST(test_unix_stale)
{
    struct bench bench;
    char path[128];
    bench_init(&bench, 10);
    leave_stale(path_of(&bench, path, sizeof path));
    ck_assert_int_eq(
        listener_add_unix(&bench.listener, path, 0700, &bench.why), 0);
    ck_assert_uint_eq(bench.why.len, 0);
    ck_assert_int_eq(listener_start(&bench.listener), 0);
    int fd = connect_unix(path);
    accept_one(&bench);
    expect_served(fd);
    close(fd);
    bench_fini(&bench);
}
END_TEST

START_TEST(test_unix_live)
{
    struct bench bench;
    struct bench other;
    char path[128];
    bench_init(&bench, 10);
    bench_init(&other, 10);
    path_of(&bench, path, sizeof path);
    ck_assert_int_eq(
        listener_add_unix(&bench.listener, path, 0700, &bench.why), 0);
    ck_assert_int_eq(
        listener_add_unix(&other.listener, path, 0700, &other.why),
        ERR_SYSTEM);
    expect_why(&other, "Address already in use");
    bench_fini(&other); /* and leaves the file to its owner */
    ck_assert_int_eq(listener_start(&bench.listener), 0);
    /* the other's look is the first connection, and has ended */
    int fd = connect_unix(path);
    accept_one(&bench);
    expect_served(fd);
    close(fd);
    bench_fini(&bench);
}
END_TEST

/* A live server that is behind with accepting must neither lose its socket
 * nor hold the other up. */
START_TEST(test_unix_full_backlog)
{
    struct bench bench;
    char path[128];
    bench_init(&bench, 10);
    path_of(&bench, path, sizeof path);
    struct sockaddr_un address = unix_address(path);
    int listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int waiting = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr *any = (struct sockaddr *)&address;
    ck_assert_int_eq(bind(listening, any, sizeof address), 0);
    ck_assert_int_eq(listen(listening, 0), 0);
    ck_assert_int_eq(connect(waiting, any, sizeof address), 0);
    ck_assert_int_eq(
        listener_add_unix(&bench.listener, path, 0700, &bench.why),
        ERR_SYSTEM);
    expect_why(&bench, "Address already in use");
    close(waiting);
    close(listening);
    ck_assert_int_eq(unlink(path), 0);
    bench_fini(&bench);
}
END_TEST

/* Anything but a stale stream socket is somebody else's. */
START_TEST(test_unix_other_files)
{
    struct bench bench;
    char path[128];
    struct stat info;
    bench_init(&bench, 10);
    path_of(&bench, path, sizeof path);
    int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    close(fd);
    ck_assert_int_eq(
        listener_add_unix(&bench.listener, path, 0700, &bench.why),
        ERR_SYSTEM);
    expect_why(&bench, "File exists");
    ck_assert_int_eq(lstat(path, &info), 0);
    ck_assert(S_ISREG(info.st_mode));
    ck_assert_int_eq(unlink(path), 0);
    /* a datagram socket */
    struct sockaddr_un address = unix_address(path);
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    ck_assert_int_eq(
        listener_add_unix(&bench.listener, path, 0700, &bench.why),
        ERR_SYSTEM);
    expect_why(&bench, path);
    close(fd);
    ck_assert_int_eq(unlink(path), 0);
    bench_fini(&bench);
}
END_TEST

START_TEST(test_unix_bad_paths)
{
    struct bench bench;
    char path[200];
    bench_init(&bench, 10);
    memset(path, 'x', sizeof path);
    path[sizeof path - 1] = '\0';
    ck_assert_int_eq(
        listener_add_unix(&bench.listener, path, 0700, &bench.why),
        ERR_SYSTEM);
    expect_why(&bench, "File name too long");
    ck_assert_int_eq(
        listener_add_unix(&bench.listener, "", 0700, &bench.why), ERR_SYSTEM);
    buf_clear(&bench.why);
    ck_assert_int_eq(listener_add_unix(&bench.listener, "/no/such/folder/s",
                         0700, &bench.why),
        ERR_SYSTEM);
    expect_why(&bench, "/no/such/folder/s: No such file or directory");
    bench_fini(&bench);
}
END_TEST

/* Without file descriptors accepting pauses, and goes on when there are some
 * again. */
START_TEST(test_out_of_fds)
{
    struct bench bench;
    struct rlimit old;
    bench_init(&bench, 10);
    uint16_t port = add_loopback(&bench);
    ck_assert_int_eq(listener_start(&bench.listener), 0);
    int fd = connect_tcp(port);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &old), 0);
    struct rlimit none = {0, old.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    uv_handle_t *pause = (uv_handle_t *)&bench.listener.pause;
    while (!uv_is_active(pause)) {
        uv_run(&bench.loop, UV_RUN_ONCE);
    }
    for (int turn = 0; turn < 4; turn++) { /* tries again, in vain */
        uv_run(&bench.loop, UV_RUN_ONCE);
    }
    ck_assert_uint_eq(atomic_load(&bench.rig.gauge.current), 0);
    ck_assert(!atomic_load(&bench.rig.gauge.is_accepting));
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &old), 0);
    accept_one(&bench);
    expect_served(fd);
    ck_assert(atomic_load(&bench.rig.gauge.is_accepting));
    ck_assert_uint_eq(atomic_load(&bench.rig.gauge.pauses), 1);
    close(fd);
    bench_fini(&bench);
}
END_TEST

/* No descriptor is free, up to the first that is: the limit is put there. */
static void
use_up(struct rlimit *old)
{
    int next = dup(STDERR_FILENO);
    ck_assert_int_ge(next, 0);
    close(next);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, old), 0);
    struct rlimit limit = {(rlim_t)next, old->rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* The one that is kept serves to tell clients, one after the other; where they
 * wait above the limit of connections they wait here, too (waits). */
static void
last_fd(bool waits)
{
    enum { CLIENTS = 3 };
    static const char too_many[] = "ERROR Too many open connections\r\n";
    struct bench bench;
    struct rlimit old;
    int fd[CLIENTS];
    char line[64];
    bench_init(&bench, 10);
    bench.listener.config.waits = waits;
    uint16_t port = add_loopback(&bench);
    ck_assert_int_eq(listener_start(&bench.listener), 0);
    for (unsigned i = 0; i < CLIENTS; i++) {
        fd[i] = connect_tcp(port);
    }
    use_up(&old);
    uv_handle_t *pause = (uv_handle_t *)&bench.listener.pause;
    for (unsigned i = 0; !waits && i < CLIENTS; i++) {
        while (atomic_load(&bench.rig.gauge.rejected) <= i) {
            uv_run(&bench.loop, UV_RUN_ONCE);
        }
        ssize_t n = read(fd[i], line, sizeof line);
        ck_assert_int_eq(n, sizeof too_many - 1);
        ck_assert_mem_eq(line, too_many, sizeof too_many - 1);
        ck_assert_int_eq(read(fd[i], line, sizeof line), 0);
    }
    while (waits && !uv_is_active(pause)) {
        uv_run(&bench.loop, UV_RUN_ONCE);
    }
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &old), 0);
    if (waits) {
        for (unsigned i = 0; i < CLIENTS; i++) {
            while (atomic_load(&bench.rig.gauge.total) <= i) {
                uv_run(&bench.loop, UV_RUN_ONCE);
            }
            expect_served(fd[i]);
        }
    }
    ck_assert_uint_eq(
        atomic_load(&bench.rig.gauge.rejected), waits ? 0 : CLIENTS);
    ck_assert_uint_eq(atomic_load(&bench.rig.gauge.pauses), waits ? 1 : 0);
    int last = connect_tcp(port);
    accept_one(&bench);
    expect_served(last);
    for (unsigned i = 0; i < CLIENTS; i++) {
        close(fd[i]);
    }
    close(last);
    bench_fini(&bench);
}

START_TEST(test_last_fd)
{
    last_fd(false);
}
END_TEST

START_TEST(test_last_fd_waits)
{
    last_fd(true);
}
END_TEST

/* Stopped before it was started. */
START_TEST(test_never_started)
{
    struct bench bench;
    char path[128];
    bench_init(&bench, 10);
    add_loopback(&bench);
    ck_assert_int_eq(listener_add_unix(&bench.listener,
                         path_of(&bench, path, sizeof path), 0700, &bench.why),
        0);
    bench_fini(&bench);
}
END_TEST

/* Which addresses nobody else reaches; none of a name's is bound where one is
 * another's. */
START_TEST(test_loopback_only)
{
    static const struct {
        const char *host;
        bool is_ours;
    } rows[] = {{"127.0.0.1", true}, {"127.255.0.9", true},
        {"localhost", true}, {"0.0.0.0", false}, {"*", false}, {"::", false},
        {"10.0.0.1", false}, {"128.0.0.1", false}, {"126.255.255.255", false},
        {"::ffff:10.0.0.1", false}, {"fe80::1", false}, {"::2", false}};
    struct bench bench;
    bench_init(&bench, 8);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct listener_address address = {
            .host = rows[i].host, .loopback_only = true, .optional = true};
        unsigned before = bench.listener.n_sockets;
        buf_clear(&bench.why);
        int err = listener_add_tcp(
            &bench.listener, &address, &bench.ports, &bench.why);
        ck_assert_msg(err == (rows[i].is_ours ? 0 : ERR_NOT_LOOPBACK),
            "%s: %d", rows[i].host, err);
        ck_assert_msg((bench.listener.n_sockets > before) == rows[i].is_ours,
            "%s", rows[i].host);
        ck_assert((bench.why.len > 0) == !rows[i].is_ours);
    }
    bench_fini(&bench);
}
END_TEST

/* Its states: each step that listener.c does not draw aborts. */

static void
take_step(struct step it)
{
    (void)listener__step(
        (enum listener_state)it.from, (enum listener_state)it.to);
}

START_TEST(test_steps)
{
    enum { N = LISTENER_STATES_N + 1 /* and one that is none */ };
    static const bool may[N][N] = {
        [LISTENER_NEW] =
            {[LISTENER_ACCEPTS] = true, [LISTENER_STOPPED] = true},
        [LISTENER_ACCEPTS] = {[LISTENER_PAUSED] = true,
            [LISTENER_HELD] = true,
            [LISTENER_STOPPED] = true},
        [LISTENER_PAUSED] = {[LISTENER_TRIES] = true,
            [LISTENER_ACCEPTS] = true,
            [LISTENER_HELD] = true,
            [LISTENER_STOPPED] = true},
        [LISTENER_TRIES] = {[LISTENER_PAUSED] = true,
            [LISTENER_ACCEPTS] = true,
            [LISTENER_HELD] = true,
            [LISTENER_STOPPED] = true},
        [LISTENER_HELD] =
            {[LISTENER_ACCEPTS] = true, [LISTENER_STOPPED] = true},
    };
    expect_steps(take_step, &may[0][0], N);
}
END_TEST

static void
start_again(void *context)
{
    (void)listener_start(context);
}

/* What is stopped neither starts nor stops again. */
START_TEST(test_stopped)
{
    struct bench bench;
    bench_init(&bench, 10);
    struct listener other;
    listener_init(&other, &bench.listener.config);
    listener_stop(&other);
    ck_assert(!survives(start_again, &other));
    bench_fini(&bench);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_hands_out_in_turn, test_limit,
        test_limit_waits, test_hold, test_port_in_use, test_addresses,
        test_too_many_addresses, test_unix_mask, test_unix_stale,
        test_unix_live, test_unix_full_backlog, test_unix_other_files,
        test_unix_bad_paths, test_out_of_fds, test_last_fd, test_last_fd_waits,
        test_never_started, test_loopback_only, test_steps, test_stopped};
    return run_tests("listener", tests, COUNT_OF(tests));
}
