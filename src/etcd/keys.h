/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ETCD_KEYS_H
#define ETCD_KEYS_H

#include "repl/control.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a group keeps in etcd, as text: the bodies of requests to etcd's JSON
 * gateway (/v3/...), and what its answers say: doc/format-etcd.md. Pure; any
 * thread. */

enum {
    KEYS_PREFIX_MAX = 160,
    KEYS_LOOK_MAX = 128 /* keys of an answer: a group's, and some more */
};

/* Bodies: the caller's to free, NULL where memory is out. prefix ends with a
 * slash; lease is etcd's number of one. */
char *keys_range(const char *prefix);
char *keys_watch(const char *prefix, uint64_t from_revision);
char *keys_grant(uint32_t ttl_s);
char *keys_lease(uint64_t lease); /* of keepalive and revoke */

char *keys_authenticate(const char *name, const char *password);

/* The transaction of a request: TAKE, KEEP, VOTERS, NODE, EPOCH, ORDER. The
 * same rules as repl/control.h says of what is asked. lease: of TAKE, KEEP and
 * NODE. */
char *keys_change(
    const char *prefix, const struct control_request *request, uint64_t lease);

/* That of HAND. primary_revision: of the key, which this process has put. */
char *keys_hand(
    const char *prefix, const struct node_name *to, uint64_t primary_revision);

/* Answers. False where text is none of that kind, and *why says what is wrong
 * for those that have one. */

/* Of keys_range. Keys beside the group's are passed over. */
bool keys_read_state(const char *prefix, const char *text, size_t len,
    struct control_state *state, char why[CONTROL_WHY_MAX + 1]);

/* Of keys_change and keys_hand. *revision: etcd's, when it was done or refused.
 * *voters: as they were at that moment, where the transaction has asked and
 * they are there and right, else revision 0. */
bool keys_read_change(const char *prefix, const char *text, size_t len,
    bool *is_done, uint64_t *revision, struct control_voters *voters);

/* Of keys_grant, and of a keepalive: *ttl_s is 0 where the lease is over. */
bool keys_read_grant(const char *text, size_t len, uint64_t *lease);
bool keys_read_alive(const char *text, size_t len, uint32_t *ttl_s);

/* Of keys_authenticate: at most most bytes of graphic text. */
bool keys_read_token(const char *text, size_t len, char *token, size_t most);

/* One line of a watch. */
enum keys_watched {
    KEYS_WATCHED_NOTHING, /* it has begun, or goes on */
    KEYS_WATCHED_CHANGE,
    KEYS_WATCHED_END /* it is over: compacted, an error, or no such line */
};
enum keys_watched keys_read_watch(const char *text, size_t len);

/* Of an answer that is an error: true where etcd says that the request was
 * wrong or cannot be done, so that it will never be; false for any other, which
 * may have been carried out. *why gets etcd's own words, or what there is. */
bool keys_is_refusal(
    const char *text, size_t len, char why[CONTROL_WHY_MAX + 1]);

/* The error says that etcd does not know who asks, or not any more: nothing of
 * the call was done, whichever it was. */
bool keys_is_no_token(const char *text, size_t len);

/* The error says that nobody needs to say who asks. */
bool keys_is_auth_off(const char *text, size_t len);

/* The error says that the lease is not there. */
bool keys_is_no_lease(const char *text, size_t len);

#endif
