/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CLIENT_TALK_H
#define CLIENT_TALK_H

#include "base/address.h"
#include "base/buf.h"
#include "client/secure.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A connection to one of several tallyd servers, and lines over it. While it
 * lasts all that is said goes to one server, which has not lost anything that
 * it had: a server that has to take changes back ends its connections. One
 * thread. */

enum {
    TALK_SERVERS_MAX = 16,
    TALK_WHY_MAX = 200,
    TALK_TICK_MS = 50,
    TALK_OWN_MAX = 63,   /* bytes of talk_own_address */
    TALK_LINE_MAX = 2048 /* of an answer */
};

struct talk_address {
    /* HOST:PORT; "": none; of talk_take_server maybe a path */
    char text[ADDRESS_MAX + 1];
};

struct talk {
    unsigned n_servers; /* 1..TALK_SERVERS_MAX, the caller's */
    struct talk_address server[TALK_SERVERS_MAX];
    uint32_t timeout_ms; /* for a connection, and without any byte */
    /* for a whole answer, and its bytes; 0: it may go on for ever */
    uint32_t answer_ms_max;
    size_t answer_bytes_max;
    /* TLS, where it says so; begun, and the caller's. NULL: none */
    const struct secure *secure;
    /* What follows is 0 at first, and fd -1. */
    unsigned next;             /* the server to be tried next, */
    struct talk_address other; /* or this one: named by a server */
    struct talk_address at;    /* the one that fd is connected to */
    int fd;
    struct secure_stream *stream; /* over fd; NULL: plain */
    uint64_t until_ms; /* when what is waited for must be there; 0: whenever */
    struct buf in;
    size_t taken;               /* of in */
    size_t got_bytes;           /* of the answer */
    char why[TALK_WHY_MAX + 1]; /* of the last failure */
    /* While it waits it is called each TALK_TICK_MS; NULL: nobody is. False:
     * it waits no longer, and the connection ends. */
    bool (*tick_fn)(void *context);
    void *context;
};

/* What a look at a line says. */
enum talk_take {
    TALK_MORE, /* there are more lines to come */
    TALK_END,  /* it was the last one */
    TALK_WRONG /* it is none that can be: the connection ends; why is set, and
                * a primary that the line names is the next one to be asked */
};

typedef enum talk_take (*talk_line_fn)(
    void *context, const char *line, size_t len);

/* Of a line of an answer, which no 0 ends. */
static inline bool
talk_begins(const char *line, size_t len, const char *with)
{
    size_t n = strlen(with);
    return len >= n && memcmp(line, with, n) == 0;
}

static inline bool
talk_is(const char *line, size_t len, const char *text)
{
    return len == strlen(text) && memcmp(line, text, len) == 0;
}

/* True for a line that says why there is no answer. */
static inline bool
talk_is_error(const char *line, size_t len)
{
    return talk_begins(line, len, "SERVER_ERROR ") ||
        talk_begins(line, len, "CLIENT_ERROR ") ||
        talk_begins(line, len, "ERROR");
}

/* True for HOST:PORT, [HOST]:PORT. */
bool talk_is_address(const char *text, size_t len);

/* Takes HOST:PORT[,HOST:PORT...] as the servers. NULL, or what is wrong, to be
 * read behind the name of an option; static storage. */
const char *talk_take_servers(struct talk *talk, const char *text);

/* Takes HOST:PORT, or the path of a Unix socket, which begins with a slash, as
 * the only server. NULL, or what is wrong, as above. */
const char *talk_take_server(struct talk *talk, const char *text);

/* Connects to the next server in turn, with TLS where that is wanted. False:
 * not connected, see why. */
bool talk_connect(struct talk *talk);

/* Sends text[0..len) and hands lines to line_fn, without what ends them, until
 * that says it was the last one. False where the connection has been lost or
 * ended, also since the answer was too long: what was done with what was sent
 * is not known. */
bool talk_ask(struct talk *talk, const char *text, size_t len,
    talk_line_fn line_fn, void *context);

/* Sends ahead, where more is to be sent before all of it is answered: returns
 * as soon as the socket has all of text[0..len). Lines that come meanwhile go
 * to line_fn, which says TALK_MORE while any is to come. False as of talk_ask.
 */
bool talk_send(struct talk *talk, const char *text, size_t len,
    talk_line_fn line_fn, void *context);

/* Hands on the lines of what talk_send has sent until line_fn says TALK_END;
 * more may follow then. False as of talk_ask. */
bool talk_await(struct talk *talk, talk_line_fn line_fn, void *context);

/* Says who the client is: "USER PASSWORD"; "" or NULL: nobody, and nothing is
 * said. False as of talk_ask, or where it is refused. */
bool talk_login(struct talk *talk, const char *login);

/* The local end of the connection as stats conns of the other end shows it,
 * "tcp:1.2.3.4:5" or "tcp6:[::1]:5"; "" where it has none. */
void talk_own_address(const struct talk *talk, char out[TALK_OWN_MAX + 1]);

/* Ends the connection, if there is one. */
void talk_close(struct talk *talk);
void talk_fini(struct talk *talk);

#endif
