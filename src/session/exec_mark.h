/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SESSION_EXEC_MARK_H
#define SESSION_EXEC_MARK_H

#include "session/exec_shared.h"

/* Changes of marks and their sources; what gets have of them is in exec_get.h.
 * key is a mark's, or names what is unread. The session's thread. */

/* True where --owns is given, and the mark's source is another server's: what
 * is unread is not known here. */
bool exec_mark__is_elsewhere(
    const struct session *session, const struct key *key);

/* True where a change gathered is of the record that key's source is in, and
 * that is to be read beforehand: then what is gathered is to be done first. */
bool exec_mark__must_settle(struct session *session, const struct key *key);

/* Says in the job's next change where it finds its source, and has that read
 * beforehand if it is another record's. */
void exec_mark__take_source(struct session *session, const struct key *key);

/* The sources have been read, in that get: asks for the members that are
 * sources to be pinned, by exec_mark__ask_pins. */
void exec_mark__want_pins(struct job *job, const struct store_get *get);
enum store_answer exec_mark__ask_pins(struct job *job);

/* Gives back what the job has pinned. */
void exec_mark__unpin(struct job *job);

/* Gives the changes gathered what job->sources, which is answered, has for
 * them. */
void exec_mark__give_sources(struct job *job);

/* Where changes were refused since their sources, members, could not be had,
 * their err says why: not only the disk keeps them. */
void exec_mark__name_errors(struct job *job);

#endif
