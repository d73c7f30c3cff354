/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_OWNS_H
#define BASE_OWNS_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Which ids are this server's where clients or a proxy spread them over
 * several: the rule of --owns. It computes what they compute of the id's
 * decimal digits, the hash tag of {1234}.cntcm, or of a name that is an id, the
 * hash tag of {anna}.hits. Immutable once made. */

/* Way; the words for it, which may have "-HASH" behind; text. */
#define OWNS_WAYS(X)                                                          \
    X(KETAMA, "ketama",                                                       \
        "twemproxy's ketama, libmemcached's weighted one: about 160 points "  \
        "a server, of MD5")                                                   \
    X(CONSISTENT, "consistent",                                               \
        "libmemcached's ketama without weights: 100 points a server, of "     \
        "the hash of the keys")

enum {
    OWNS_SERVERS_MAX = 1024,
    OWNS_WEIGHT_MAX = 1000000,
    OWNS_NAME_MAX = 255,           /* bytes of a server's name */
    OWNS_TEXT_BYTES_MAX = 1 << 20, /* of a rule with its list of servers */
    OWNS_RULE_BYTES = 64           /* of owns_rule, with the NUL */
};

struct owns;

/* Makes the rule that text[0..len) says: lines, which may be separated by
 * commas too, where empty ones and what begins with # are skipped. The first is
 *
 *     RULE:I/N            this is server number I, from 0, of N
 *
 * with RULE one of
 *
 *     modulo              the id itself, modulo N
 *     HASH                a hash of base/keyhash.h, modulo N
 *     ketama[-HASH]       see OWNS_WAYS; md5 without HASH
 *     consistent[-HASH]   likewise; one_at_a_time without HASH
 *
 * Behind it stand the N servers in the order of the clients, for the last two
 * always, for the others where they have weights, as twemproxy lists them:
 *
 *     HOST:PORT:WEIGHT [NAME]
 *
 * 0 with *out, which the caller frees with owns_destroy; ERR_BAD_FORMAT with
 * what is wrong appended to *why, or ERR_NO_MEMORY. */
int owns_create(
    const char *text, size_t len, struct owns **out, struct buf *why);
void owns_destroy(struct owns **owns);

/* The same of a rule that is told in one word, as commands have it: RULE:I/N
 * with modulo or a HASH, which need no list of servers. 0 with *out, which the
 * caller destroys; ERR_BAD_RULE or ERR_NO_MEMORY. Two rules are the same where
 * their owns_rule is the same text. */
int owns_create_rule(const char *text, size_t len, struct owns **out);

/* The number, from 0, of the server that the id belongs to. Any thread. */
uint32_t owns_server_of(const struct owns *owns, uint64_t id);

/* True where that is this server. */
bool owns_has(const struct owns *owns, uint64_t id);

/* False for a rule that is about numbers alone (modulo): no name is any
 * server's by it. */
bool owns_takes_names(const struct owns *owns);

/* The same of an id that is a name of len bytes; owns_takes_names is true. A
 * name that is the decimal digits of a number belongs where the number does. */
uint32_t owns_server_of_name(
    const struct owns *owns, const char *name, size_t len);

/* True where owns_takes_names is, and that is this server. */
bool owns_has_name(const struct owns *owns, const char *name, size_t len);

/* "RULE:I/N", with the hash by its name; the rule's storage. */
const char *owns_rule(const struct owns *owns);

#endif
