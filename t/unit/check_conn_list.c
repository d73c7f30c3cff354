/* SPDX-License-Identifier: BSD-3-Clause */
/* net/conn_list: what is shown of connections, while they come and go. */
#include "net/conn_list.h"

#include "unit/check_help.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ROUNDS = 2000, THREADS = 2 };

struct found {
    unsigned n;
    struct conn_shown last;
};

static void
note(void *context, const struct conn_shown *shown)
{
    struct found *found = context;
    found->n++;
    found->last = *shown;
}

static struct found
look(struct conn_list *list)
{
    struct found found = {0};
    conn_list_each(list, note, &found);
    return found;
}

/* A listening socket and one that is connected to it, on a loopback address. */
static int
connect_pair(int family, int *listening, int *accepted)
{
    struct sockaddr_storage address = {.ss_family = (sa_family_t)family};
    socklen_t len = family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                       : sizeof(struct sockaddr_in);
    if (family == AF_INET6) {
        ((struct sockaddr_in6 *)&address)->sin6_addr = in6addr_loopback;
    } else {
        ((struct sockaddr_in *)&address)->sin_addr.s_addr =
            htonl(INADDR_LOOPBACK);
    }
    *listening = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (*listening < 0 ||
        bind(*listening, (struct sockaddr *)&address, len) != 0) {
        close(*listening);
        return -1;
    }
    ck_assert_int_eq(listen(*listening, 1), 0);
    ck_assert_int_eq(
        getsockname(*listening, (struct sockaddr *)&address, &len), 0);
    int client = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(connect(client, (struct sockaddr *)&address, len), 0);
    *accepted = accept(*listening, NULL, NULL);
    ck_assert_int_ge(*accepted, 0);
    return client;
}

static void
show_pair(int family, const char *start)
{
    struct conn_list list;
    struct conn_entry entry;
    char text[CONN_ADDR_BYTES];
    int listening;
    int accepted;
    int client = connect_pair(family, &listening, &accepted);
    if (client < 0) {
        return; /* this machine has not got the family */
    }
    conn_list__init(&list);
    conn_list__add(&list, &entry, accepted, 77);
    struct found found = look(&list);
    ck_assert_uint_eq(found.n, 1);
    ck_assert_int_eq(found.last.fd, accepted);
    ck_assert_uint_eq(found.last.last_command_ns, 77);
    ck_assert_int_eq(strncmp(found.last.addr, start, strlen(start)), 0);
    conn_list_own_addr(listening, text);
    ck_assert_str_eq(found.last.listen_addr, text);
    conn_list_own_addr(client, text);
    ck_assert_str_eq(found.last.addr, text);
    conn_list__remove(&list, &entry);
    ck_assert_uint_eq(look(&list).n, 0);
    conn_list__fini(&list);
    close(client);
    close(accepted);
    close(listening);
}

START_TEST(test_addresses)
{
    show_pair(AF_INET, "tcp:127.0.0.1:");
    show_pair(AF_INET6, "tcp6:[::1]:");
}
END_TEST

START_TEST(test_unix)
{
    struct conn_list list;
    struct conn_entry entry[3];
    int pair[2];
    ck_assert_int_eq(
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    conn_list__init(&list);
    for (int i = 0; i < 3; i++) {
        conn_list__add(&list, &entry[i], pair[0], 0);
    }
    ck_assert_uint_eq(look(&list).n, 3);
    ck_assert_int_eq((int)look(&list).last.state, (int)CONN_STATE_READ);
    ck_assert_str_eq(look(&list).last.addr, "unix:");
    conn_list__remove(&list, &entry[1]); /* the middle, then the ends */
    ck_assert_uint_eq(look(&list).n, 2);
    conn_list__remove(&list, &entry[2]);
    conn_entry_note(&entry[0], CONN_STATE_NREAD);
    conn_entry_note_command(&entry[0], 5);
    ck_assert_uint_eq(look(&list).n, 1);
    ck_assert_uint_eq(look(&list).last.last_command_ns, 5);
    ck_assert_str_eq(conn_state_name(look(&list).last.state), "conn_nread");
    close(pair[1]);
    close(pair[0]); /* a test only: listed sockets are open */
    ck_assert_str_eq(look(&list).last.addr, "unknown");
    conn_list__remove(&list, &entry[0]);
    conn_list__fini(&list);
}
END_TEST

/* Sockets are closed, and their numbers used again, while another thread
 * looks: it never sees one that is not of the list. */
struct crowd {
    struct conn_list list;
    _Atomic bool ends;
};

static void *
come_and_go(void *arg)
{
    struct crowd *crowd = arg;
    for (int i = 0; i < ROUNDS; i++) {
        struct conn_entry entry;
        int pair[2];
        ck_assert_int_eq(
            socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
        conn_list__add(&crowd->list, &entry, pair[0], 1);
        conn_entry_note(&entry, CONN_STATE_PARSE_CMD);
        conn_entry_note_command(&entry, 2);
        conn_list__remove(&crowd->list, &entry);
        close(pair[0]);
        close(pair[1]);
    }
    atomic_store(&crowd->ends, true);
    return NULL;
}

static void
expect_open(void *context, const struct conn_shown *shown)
{
    (void)context;
    ck_assert_str_eq(shown->addr, "unix:");
    ck_assert_uint_ge(shown->last_command_ns, 1);
}

START_TEST(test_threads)
{
    static struct crowd crowd;
    pthread_t thread[THREADS];
    conn_list__init(&crowd.list);
    for (int i = 0; i < THREADS; i++) {
        ck_assert_int_eq(
            pthread_create(&thread[i], NULL, come_and_go, &crowd), 0);
    }
    while (!atomic_load(&crowd.ends)) {
        conn_list_each(&crowd.list, expect_open, NULL);
        sched_yield();
    }
    for (int i = 0; i < THREADS; i++) {
        ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
    }
    conn_list__fini(&crowd.list);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_addresses, test_unix, test_threads};
    return run_tests("conn_list", tests, COUNT_OF(tests));
}
