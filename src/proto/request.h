/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PROTO_REQUEST_H
#define PROTO_REQUEST_H

#include "schema/schema.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The one request type that every parser makes and the executor takes. */

#define REQUEST_OPS(X)                                                        \
    X(GET, "values of keys")                                                  \
    X(GETS, "values and cas uniques of keys")                                 \
    X(GAT, "values of keys, which get a new exptime")                         \
    X(GATS, "the same with cas uniques")                                      \
    X(SET, "store")                                                           \
    X(ADD, "store where there is nothing")                                    \
    X(REPLACE, "store where there is something")                              \
    X(APPEND, "add bytes behind a value")                                     \
    X(PREPEND, "add bytes before a value")                                    \
    X(CAS, "store where nothing has changed")                                 \
    X(DELETE, "delete a key")                                                 \
    X(INCR, "add to a number")                                                \
    X(DECR, "subtract from a number")                                         \
    X(TOUCH, "give a key a new exptime")                                      \
    X(FLUSH_ALL, "forget all items")                                          \
    X(VERSION, "the version")                                                 \
    X(VERBOSITY, "how much is logged")                                        \
    X(STATS, "figures")                                                       \
    X(ADMIN, "a command of administration, see proto/text_admin.h")           \
    X(LOOK, "the value of one key, and what else is asked about it")          \
    X(INSPECT, "what is known of one item")                                   \
    X(NOOP, "an answer, so that the quiet ones before it are known")          \
    X(QUIT, "close the connection")                                           \
    X(TOO_LARGE, "a store whose value is above the limit")                    \
    X(COUNTER_GET, "dialect: read records and cells")                         \
    X(COUNTER_SET, "dialect: write a record or cell")                         \
    X(COUNTER_ADD, "dialect: write what is at its default")                   \
    X(COUNTER_REPLACE, "dialect: write what is not at its default")           \
    X(COUNTER_DELETE, "dialect: back to the default")                         \
    X(COUNTER_INCR, "dialect: add to a record or cell")                       \
    X(COUNTER_DECR, "dialect: subtract from a record or cell")                \
    X(COUNTER_MISUSE, "a command that a counter's name does not take")        \
    X(COUNTER_STORE, "one that stores an item under a counter's name")        \
    X(SCHEMA_EDIT, "dialect: add or drop a counter or column")                \
    X(DROP_PRODUCER, "dialect: forget who numbers its changes")               \
    X(HANDOVER, "dialect: ids are another group's, or this one's again")      \
    X(SHOW_HANDOVERS, "dialect: list which ids are another group's")          \
    X(FEED, "dialect: this connection brings records of other groups")        \
    X(NUMBERS, "dialect: numbers that a producer's changes had elsewhere")    \
    X(DUMP_NUMBERS, "dialect: numbers of all producers' changes")             \
    X(SHOW_COUNTERS, "dialect: list the counters")                            \
    X(SHOW_COUNTER, "dialect: the lines that make a counter")                 \
    X(CHECKPOINT, "dialect: make a checkpoint")                               \
    X(DUMP, "dialect: read out a counter's records")                          \
    X(DIGEST, "dialect: the sum over a counter's records")                    \
    X(BACKUP, "dialect: keep the data directory's files for a backup")        \
    X(FORGET, "dialect: remove ids that have been handed over")               \
    X(SEAL, "dialect: move a counter's records to the cold tier")             \
    X(REPLICAOF, "dialect: follow another server, or none")                   \
    X(FAILOVER, "dialect: another server is to be the primary")               \
    X(WAIT, "dialect: until replicas have the last change")                   \
    X(HELP, "dialect: what can be typed")                                     \
    X(LOGIN, "who the client is, see proto/login.h")                          \
    X(LOGIN_WAYS, "how it may say so")                                        \
    X(UNREAD, "a line before the login: nobody has looked at what it says")   \
    X(ERROR, "not a request: the reply is in error")

enum request_op {
#define X(name, text) REQUEST_##name,
    REQUEST_OPS(X)
#undef X
};

/* True for the commands that bring a value. */
static inline bool
request_is_storage(enum request_op op)
{
    switch (op) {
    case REQUEST_SET:
    case REQUEST_ADD:
    case REQUEST_REPLACE:
    case REQUEST_APPEND:
    case REQUEST_PREPEND:
    case REQUEST_CAS:
        return true;
    default:
        return false;
    }
}

/* A part of the request's bytes, counted from the request's first byte, so
 * that a waiting request survives its bytes being moved. */
struct span {
    uint32_t at;
    uint32_t len;
};

/* Whose words the answer is to have. One connection may mix text and meta. */
enum request_proto { PROTO_TEXT, PROTO_META, PROTO_BINARY };

/* What only the meta and the binary protocol can ask; all zero: nothing. */
struct terms {
    bool compares;   /* only where cas is the one that is stored */
    bool touches;    /* LOOK, INCR, DECR, DELETE: exptime is the new one */
    bool vivifies;   /* a miss makes what is missing, with vivify_exptime */
    bool must_exist; /* INCR, DECR: a cell at its default is a miss, too */
    bool recaches;   /* LOOK: one client is told to make the value anew when
                       * less than recache_s is left */
    bool recaches_first; /* LOOK: before exptime is the new one */
    bool outdates;       /* SET: an older cas stores a stale value; DELETE: the
                       * item becomes stale */
    bool empties;        /* DELETE: the value goes, the item stays, with new
                       * client flags */
    bool peeks;          /* LOOK: no use that counts */
    bool wants_value;    /* LOOK, INCR, DECR: answered with the value */
    uint64_t cas;        /* CAS looks at it, too */
    uint64_t new_cas;    /* to be given to what is stored; 0: the next one */
    uint64_t initial;    /* INCR, DECR: the value of what a miss makes */
    int64_t vivify_exptime;
    int64_t recache_s; /* an exptime */
};

struct request {
    enum request_op op;
    enum request_proto proto;
    bool noreply;
    bool is_quiet;             /* META, BINARY: the usual answer is left out */
    bool closes;               /* the connection, once it is answered and what
                                * is to be skipped has come */
    bool key_is_base64;        /* META */
    bool has_more;             /* tx is not a number but a word that items let
                                * pass and no change of a cell has */
    bool has_tx;               /* text: some word behind is tx=, well or not */
    bool may_be_dialect;       /* ERROR: right if a counter has that name */
    uint8_t opcode;            /* BINARY: as sent */
    uint32_t opaque;           /* BINARY: likewise */
    enum request_op stored_as; /* TOO_LARGE: the storage command */
    enum schema_edit_op schema_op; /* SCHEMA_EDIT */
    uint32_t len;                  /* bytes of the whole request */
    struct span key;   /* of a command with one; dialect: the counter's name,
                        * or a node's, or a rule */
    struct span words; /* GET..: all keys; dialect: what follows key; STATS:
                        * the arguments; ADMIN: the line; FAILOVER: the word
                        * force, or nothing */
    struct span value; /* the data block of a storage command */
    uint32_t flags;
    int64_t exptime;
    uint64_t number;  /* delta, or level; FEED: 1 is on */
    struct span tx;   /* PRODUCER:NUMBER as sent, may be anything; at 0:
                           * the change is not numbered */
    struct span meta; /* META: all flags, as sent */
    struct terms terms;
    const char *error; /* ERROR: the reply without CRLF; static storage;
                             * LOGIN: likewise, or NULL: there is a value */
    int err;           /* ERROR, LOGIN, BINARY: what is wrong; PARSE_CLOSE;
                        * text, meta: what closes */
    uint64_t swallow_bytes; /* to be skipped behind the request */
    bool swallow_line;      /* likewise, up to and with the next newline */
};

/* Makes *out all zero. In pieces, which compilers store side by side: of more
 * bytes at once they make an instruction that is slow to begin. */
static inline void
request_clear(struct request *out)
{
    enum { PIECE = 64 };
    char *at = (char *)out;
    size_t left = sizeof *out;
    _Static_assert(sizeof *out >= 2 * PIECE, "or pieces are to be fewer");
    memset(at, 0, PIECE);
    memset(at + PIECE, 0, PIECE);
    memset(at + 2 * PIECE, 0, left - 2 * PIECE);
}

/* What a parser says of the bytes it was given. */
enum parse_status {
    PARSE_MORE,    /* not a whole request yet */
    PARSE_REQUEST, /* *out is filled; skip out->len bytes for the next one */
    PARSE_CLOSE    /* no way to go on: close without a reply; out->err is the
                    * ERR_ for the log */
};

/* What a parser remembers of a request it has seen only a part of. All zero at
 * the start of each request. */
struct parse_scan {
    size_t scanned; /* text: bytes known to hold no newline */
    size_t need;    /* below this many bytes it is not worth to look again */
};

#endif
