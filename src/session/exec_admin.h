/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SESSION_EXEC_ADMIN_H
#define SESSION_EXEC_ADMIN_H

#include "session/exec_shared.h"

/* Commands of administration, dumps of items, and what the server's admin has
 * to do with single keys. Inside exec_*.c only; the session's thread. */

/* A command of administration: EXEC_DONE, EXEC_CLOSE, or as
 * exec__dump_resume. bytes[0] is the request's first byte. */
enum exec_step exec__admin(
    struct session *session, const char *bytes, struct exec_turn *turn);

/* Goes on with a dump: EXEC_DONE, EXEC_FULL or EXEC_YIELD. */
enum exec_step exec__dump_resume(
    struct session *session, struct exec_turn *turn);

/* The reply to stats: begins it, and goes on; likewise. bytes[0] is the
 * request's first byte. */
enum exec_step exec__stats_begin(
    struct session *session, const char *bytes, struct exec_turn *turn);
enum exec_step exec__stats_resume(
    struct session *session, struct exec_turn *turn);

/* A dump of a counter: begins it, and goes on. As exec__dump_resume, and
 * EXEC_LATER. bytes[0] is the request's first byte. */
enum exec_step exec__records_begin(
    struct session *session, const char *bytes, struct exec_turn *turn);
enum exec_step exec__records_resume(
    struct session *session, struct exec_turn *turn);

/* Has the ids of a rule removed; answers that this has begun. */
enum exec_step exec__forget(
    struct session *session, const char *bytes, struct buf *out);

/* A digest of a counter: begins it, and goes on. As exec__records_begin. */
enum exec_step exec__digest_begin(
    struct session *session, const char *bytes, struct exec_turn *turn);
enum exec_step exec__digest_resume(
    struct session *session, struct exec_turn *turn);

/* Has the files of the data directory kept, for this connection, and lists
 * them; goes on with that. As exec__records_begin. */
enum exec_step exec__backup_begin(
    struct session *session, struct exec_turn *turn);
enum exec_step exec__backup_resume(
    struct session *session, struct exec_turn *turn);

/* They need not be kept any more: answers whether they were. */
enum exec_step exec__backup_end(struct session *session, struct buf *out);

/* The same at the end of a session; there may be none. */
void exec__backup_drop(struct session *session);

/* What producers have seen: one that has seen more elsewhere. */
enum exec_step exec__numbers(
    struct session *session, const char *bytes, struct exec_turn *turn);

/* A dump of what all have seen. As exec__dump_resume. */
enum exec_step exec__dump_numbers_begin(
    struct session *session, struct exec_turn *turn);
enum exec_step exec__dump_numbers_resume(
    struct session *session, struct exec_turn *turn);

/* Counts an item's key by its prefix, where somebody wants that. Not of meta
 * commands, as in memcached. */
void exec__count_prefix(struct session *session, struct schema_word key,
    const struct prefix_counts *counts);

/* The items' clock: seconds that do not jump, and unix time. */
uint64_t exec__now_s(const struct session *session);
int64_t exec__unix_s(const struct session *session);

#endif
