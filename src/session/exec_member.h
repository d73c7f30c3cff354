/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SESSION_EXEC_MEMBER_H
#define SESSION_EXEC_MEMBER_H

#include "session/exec_shared.h"

/* Changes of members and of records that have some; what gets have of them is
 * in exec_get.h. The session's thread. */

/* True where a whole record of the counter has numbers: some column is none of
 * members. */
bool exec_member__has_record(const struct schema_counter *counter);

/* What is wrong with a change of key, a KEY_MEMBER: 0, ERR_NO_MEMBER,
 * ERR_MEMBER. compares: it is to be done for one cas only. */
int exec_member__fault(const struct key *key, bool deletes, bool compares);

/* The change, of which all is filled but that it is of key, a KEY_MEMBER, is
 * one of that member; without a member, a CHANGE_DELETE of them all, the number
 * that counts them too. */
void exec_member__take(const struct key *key, struct change *change);

/* 0, or ERR_COUNTED where a change of a record would give another number to a
 * column that counts members: named, or not 0 for incr and decr; where such a
 * one is not named its value does not count, and the column is kept. */
int exec_member__check(const struct schema_counter *counter, bool is_named,
    struct change *change);

/* Counts what only the change of a member does. */
void exec_member__count(struct session *session, const struct change *change);

#endif
