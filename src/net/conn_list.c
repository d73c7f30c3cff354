/* SPDX-License-Identifier: BSD-3-Clause */
/* The lists of connections. Addresses are asked of the system when somebody
 * wants to see them, so a connection that nobody looks at pays for a lock that
 * nobody holds when it comes and when it goes, and for two stores a turn. The
 * lock keeps a socket from being closed, and its number from being used again,
 * while its address is asked for. */
#include "net/conn_list.h"

#include "base/assert.h"
#include "base/uri.h"
#include "session/watch.h"
#include "stats/latency.h"

#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

typedef int name_fn(int fd, struct sockaddr *address, socklen_t *len);

static const char *const names[] = {
#define X(name, text, about) text,
    CONN_STATES(X)
#undef X
};

const char *
conn_state_name(enum conn_state state)
{
    ASSERT((unsigned)state < sizeof names / sizeof *names);
    return names[state];
}

void
conn_list__init(struct conn_list *list)
{
    list->first = NULL;
    mutex_init(&list->lock);
}

void
conn_list__fini(struct conn_list *list)
{
    ASSERT(list->first == NULL);
    mutex_fini(&list->lock);
}

void
conn_list__add(
    struct conn_list *list, struct conn_entry *entry, int fd, uint64_t now_ns)
{
    entry->fd = fd;
    entry->prev = NULL;
    entry->since_ns = now_ns;
    /* relaxed: to be shown only */
    atomic_store_explicit(
        &entry->verb, LATENCY_VERB_COUNT, memory_order_relaxed);
    conn_entry_note(entry, CONN_STATE_READ);
    /* relaxed: to be shown only */
    atomic_store_explicit(&entry->pass, 0, memory_order_relaxed);
    conn_entry_note_command(entry, now_ns);
    mutex_lock(&list->lock);
    entry->next = list->first;
    if (entry->next != NULL) {
        entry->next->prev = entry;
    }
    list->first = entry;
    mutex_unlock(&list->lock);
}

void
conn_list__remove(struct conn_list *list, struct conn_entry *entry)
{
    mutex_lock(&list->lock);
    ASSERT((entry->prev == NULL) == (list->first == entry));
    ASSERT(entry->next == NULL || entry->next->prev == entry);
    if (entry->prev != NULL) {
        entry->prev->next = entry->next;
    } else {
        list->first = entry->next;
    }
    if (entry->next != NULL) {
        entry->next->prev = entry->prev;
    }
    mutex_unlock(&list->lock);
}

/* A client's socket has no path, as a rule, but may have any. */
static void
put_path(const struct sockaddr_un *address, char text[CONN_ADDR_BYTES])
{
    static const char before[] = "unix:";
    const char *path = address->sun_path;
    static_assert(sizeof before + URI_BYTES * sizeof address->sun_path <=
            CONN_ADDR_BYTES,
        "room for a path");
    memcpy(text, before, sizeof before);
    text += sizeof before - 1;
    text[uri_encode_word(
        path, strnlen(path, sizeof address->sun_path), text)] = '\0';
}

/* memcached's form of an address of the internet. */
static void
put_inet(
    int family, const void *address, unsigned port, char text[CONN_ADDR_BYTES])
{
    char host[INET6_ADDRSTRLEN];
    inet_ntop(family, address, host, sizeof host);
    snprintf(text, CONN_ADDR_BYTES,
        family == AF_INET ? "tcp:%s:%u" : "tcp6:[%s]:%u", host, port);
}

/* A socket's address by name: getsockname or getpeername. */
static void
put_addr(int fd, name_fn *name, char text[CONN_ADDR_BYTES])
{
    union {
        struct sockaddr any;
        struct sockaddr_in in;
        struct sockaddr_in6 in6;
        struct sockaddr_un un;
        struct sockaddr_storage storage;
    } address = {.storage = {0}};
    socklen_t len = sizeof address;
    snprintf(text, CONN_ADDR_BYTES, "unknown");
    if (name(fd, &address.any, &len) != 0) {
        return; /* the client has gone */
    }
    switch (address.any.sa_family) {
    case AF_INET:
        put_inet(
            AF_INET, &address.in.sin_addr, ntohs(address.in.sin_port), text);
        break;
    case AF_INET6:
        put_inet(AF_INET6, &address.in6.sin6_addr,
            ntohs(address.in6.sin6_port), text);
        break;
    case AF_UNIX:
        put_path(&address.un, text);
        break;
    default:
        break;
    }
}

void
conn_list_own_addr(int fd, char text[CONN_ADDR_BYTES])
{
    put_addr(fd, getsockname, text);
}

void
conn_list_peer_addr(
    const struct watch_peer *peer, int fd, char text[CONN_ADDR_BYTES])
{
    if (peer != NULL &&
        (peer->family == AF_INET || peer->family == AF_INET6)) {
        put_inet(peer->family, peer->address, peer->port, text);
    } else if (peer != NULL && peer->is_unix) {
        put_addr(fd, getpeername, text);
    } else {
        snprintf(text, CONN_ADDR_BYTES, "unknown");
    }
}

bool
conn_list__mark(struct conn_list *list, int fd)
{
    bool is_there = false;
    mutex_lock(&list->lock);
    for (struct conn_entry *entry = list->first; entry != NULL;
         entry = entry->next) {
        if (entry->fd == fd) {
            is_there = true;
            /* relaxed: the worker is told under a lock */
            atomic_store_explicit(
                &entry->is_unwanted, true, memory_order_relaxed);
        }
    }
    mutex_unlock(&list->lock);
    return is_there;
}

void
conn_list_each(struct conn_list *list,
    void (*each_fn)(void *context, const struct conn_shown *shown),
    void *context)
{
    mutex_lock(&list->lock);
    for (const struct conn_entry *entry = list->first; entry != NULL;
         entry = entry->next) {
        struct conn_shown shown = {.fd = entry->fd, .is_tls = entry->is_tls};
        /* relaxed: to be shown only */
        shown.state =
            atomic_load_explicit(&entry->state, memory_order_relaxed);
        shown.last_command_ns = atomic_load_explicit(
            &entry->last_command_ns, memory_order_relaxed);
        shown.pass = atomic_load_explicit(&entry->pass, memory_order_relaxed);
        shown.bytes_in =
            atomic_load_explicit(&entry->bytes_in, memory_order_relaxed);
        shown.bytes_out =
            atomic_load_explicit(&entry->bytes_out, memory_order_relaxed);
        shown.verb = atomic_load_explicit(&entry->verb, memory_order_relaxed);
        shown.since_ns = entry->since_ns;
        put_addr(entry->fd, getpeername, shown.addr);
        put_addr(entry->fd, getsockname, shown.listen_addr);
        each_fn(context, &shown);
    }
    mutex_unlock(&list->lock);
}
