/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SESSION_EXEC_ABOUT_H
#define SESSION_EXEC_ABOUT_H

#include "session/exec_shared.h"

/* Changes of members of members=about; what gets have of them is in exec_get.h.
 * The session's thread. */

/* What is wrong with a change of key, a KEY_ABOUT, whatever its value: 0,
 * ERR_UNSEEN, ERR_ABOUT_OP, ERR_NO_MEMBER, ERR_MEMBER. op is that of a number;
 * compares: it is to be done for one cas only. */
int exec_about__fault(const struct key *key, enum change_op op, bool compares);

/* The change, a CHANGE_MEMBER_SET or _ADD of which all is filled but that it is
 * of key's member, is one of that. 0, ERR_UNSEEN, ERR_OVER_MAX. */
int exec_about__take(const struct key *key, struct change *change);

/* Adds the members of the job's changes, which are all of members=about, and
 * counts those that are new; or, with a fault, answers all with that. True
 * where the answer comes later. */
bool exec_about__make(struct session *session, int fault);

/* The store has answered: the job's changes are those of exec_about__make
 * again, with what has come of them. */
void exec_about__end(struct job *job);

#endif
