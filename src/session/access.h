/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SESSION_ACCESS_H
#define SESSION_ACCESS_H

#include "proto/login.h"
#include "proto/request.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Who may do what. Every request of every protocol passes access_gate once,
 * between its parser and its execution, and there is no other such place. */

/* What a client is, from the least to the most. */
#define ACCESS_RANKS(X)                                                       \
    X(NOBODY, "has not said who it is, or not rightly")                       \
    X(READER, "may read only")                                                \
    X(WRITER, "may do everything")

enum access_rank {
#define X(name, text) ACCESS_##name,
    ACCESS_RANKS(X)
#undef X
};

/* Class of a request; the least rank that may make it, or NEVER; text. */
#define ACCESS_CLASSES(X)                                                     \
    X(LOGIN, NOBODY, "says who it is, or asks how that is said")              \
    X(VERSION, NOBODY, "asks for the version")                                \
    X(TALK, READER, "neither reads nor changes anything")                     \
    X(READ, READER, "reads counters, items or figures")                       \
    X(CHANGE, WRITER, "changes counters, items or when they expire")          \
    X(RULE, WRITER, "changes the schema, or what the server does")            \
    X(UNREAD, NEVER, "is not looked at before the login")

enum access_class {
#define X(name, rank, text) ACCESS_CLASS_##name,
    ACCESS_CLASSES(X)
#undef X
        ACCESS_CLASS_COUNT
};

enum {
    ACCESS_NEVER = ACCESS_WRITER + 1,
    ACCESS_REFUSALS_MAX = 8 /* of one connection before its login; the last
                             * one closes it */
};

/* The class of a request whose first byte is bytes[0]. Pure. */
enum access_class access_class_of(
    const struct request *request, const char *bytes);

/* Whether a client of that rank may make a request of that class. Pure. */
bool access_allows(enum access_rank rank, enum access_class class_);

/* One login under way: the asker's memory, the answerer's until done_fn. */
struct access_login {
    struct access_login *next, *behind, *hindmost; /* the answerer's */
    void (*done_fn)(struct access_login *login);
    void *owner;               /* the asker's */
    uint64_t from;             /* session's */
    _Atomic bool is_unwanted;  /* the asker has gone: no answer is as good */
    char user[LOGIN_WORD_MAX]; /* and zeroes behind it */
    char password[LOGIN_WORD_MAX];  /* likewise */
    uint8_t user_len, password_len; /* bytes of these, at least 1 */
    enum access_rank rank;          /* the answer; NOBODY: refused */
    uint64_t pass;                  /* what it was let in by */
};

/* What the sessions ask of the server about users; a seam. */
struct access {
    /* Finds out who it is, on any thread. True: rank is set. False: done_fn is
     * called later, once, on any thread, perhaps before this returns. */
    bool (*check_fn)(struct access *access, struct access_login *login);
    /* Whether who was let in by that pass still is; any thread. NULL: who is in
     * stays in. */
    bool (*stands_fn)(struct access *access, uint64_t pass);
    /* The name of the user whose pass that is, and a NUL; false where there is
     * none any more. Any thread. NULL: users have no names. */
    bool (*name_fn)(
        struct access *access, uint64_t pass, char name[LOGIN_WORD_MAX + 1]);
    bool has_sasl; /* the binary protocol has logins; else it has no way in */
};

struct session;

/* The gate: lets the session's request, just parsed, pass as it is, or makes
 * it one that is answered with why not, and where it must, then closes. The
 * session's thread. */
void access__gate_closed(struct session *session, const char *bytes);

/* True where the session's client would not be let in any more as what it is.
 * The session's thread. */
bool access_is_void(const struct session *session);

/* Counts one refusal before the login; the last one that is let pass closes
 * the connection. */
void access__note_refusal(struct session *session);

#endif
