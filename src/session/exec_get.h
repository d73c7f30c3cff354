/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SESSION_EXEC_GET_H
#define SESSION_EXEC_GET_H

#include "session/exec_shared.h"

/* What the exec_get*.c files share: the session's thread. base is the first
 * byte of the job's first request, from which its spans are counted. */

/* The counter of a dialect get; NULL where it is another request, or where
 * the counter has been dropped since. bytes[0] is the request's first one. */
const struct schema_counter *exec_get__counter(
    struct session *session, const char *bytes);

/* Makes slots of words that job->words has, until there is no room for any
 * more in the slice; the others are left in job->words, which is empty where
 * none is left. 0, or the ERR_ to refuse the request with, *bad being the word
 * then: too long, or, unless the job is alone, refused by exec__near. end: see
 * exec_turn. */
int exec_get__gather(struct session *session, const char *base,
    const char *end, struct span *bad);

/* The same for the one key of the session's request, which names a cell or a
 * record: it is answered as a struct answer. */
void exec_get__add_single(struct session *session, const struct key *key);

/* Gives the slot, whose key is a mark's or names what is unread, its cells; and
 * has what it needs of its source read (exec_mark.c). */
void exec_get__add_mark(
    struct job *job, struct slot *slot, const struct key *key);
/* True where the job's marks need members; they have pins then. */
static inline bool
exec_get__needs_pins(const struct job *job)
{
    return job->n_marks > 0 && job->pins.n > 0;
}
/* Works out the job's marks; the store has answered. */
void exec_get__work_out_marks(struct session *session);

/* Why a cell of a slot is CELL_UNREADABLE: ERR_COLD_READ; of a mark over
 * members also ERR_CLOSED, ERR_NO_MEMORY. */
int exec_get__unreadable_err(const struct job *job, const struct slot *slot);

/* Gives the slot, whose key is of members, its cell; and has the number of its
 * id read before (exec_member.c). */
void exec_get__add_member(
    struct job *job, struct slot *slot, const struct key *key);
/* Asks for a slice with members, or with marks that need some, whose owners
 * have been looked at: true where an answer comes later, and then this is to be
 * called again unless the stage is JOB_GET_FORMAT. */
bool exec_get__ask_members(struct session *session);
/* Works out the job's members; the store has answered. */
void exec_get__work_out_members(struct job *job);
/* Gives the slot, whose key is of members=about, its cell (exec_about.c). */
void exec_get__add_about(
    struct job *job, struct slot *slot, const struct key *key);
/* Asks for these members of a slice, whose owners have been looked at; before
 * its cells. */
void exec_get__ask_abouts(struct session *session);
/* Puts the answers in the places of their cells; the store has answered. */
void exec_get__work_out_abouts(struct job *job);
/* Asks for the cells of the job's batch. */
enum store_answer exec_get__ask(struct job *job);

/* The place in a batch of a cell. */
static inline struct cell_key
exec_get__cell(uint64_t id, const struct schema_target *target)
{
    return (struct cell_key){.id = id,
        .serial = target->column->serial,
        .counter = target->counter->slot,
        .column = target->column->slot};
}

/* Keys by names that have no id by themselves (exec_names.c): notes the name of
 * the slot, whose cells are those of get.key from its first on. */
void exec_get__add_name(
    struct job *job, const struct slot *slot, const struct key *key);
/* exec__name_tag of the name that the cell is of; 0: its id is its own. */
uint32_t exec_get__name_tag(const struct job *job, unsigned cell);
/* Gives the cells their ids; before they are asked for. */
void exec_get__find_names(struct session *session);
/* Those of names that have been taken out meanwhile are not there; the store
 * has answered. */
void exec_get__look_for_names(struct session *session);

/* True where there may be no room for one more key. */
static inline bool
exec_get__is_full(const struct job *job)
{
    return job->n_slots == EXEC_SLICE_KEYS_MAX ||
        job->name_bytes > EXEC_NAMES_BYTES - NAME_BYTES_MAX ||
        job->get.n + SCHEMA_COLUMNS_MAX > STORE_GET_MAX;
}

/* Ids that are not this server's (exec_owner.c); only where
 * session->executor->has_others. The keys gathered that are of other servers'
 * ids become misses, or their requests are refused. */
void exec_get__look_for_others(struct session *session);
/* True where one of the job's slots first to end - 1 is of such an id: counts
 * and logs one. */
bool exec_get__has_other(
    struct session *session, unsigned first, unsigned end);
/* Why a slot, which is SLOT_REFUSED and its request's last or
 * SLOT_SINGLE_REFUSED, is: the ERR_ to say now. */
int exec_get__refusal(struct session *session, const struct slot *slot);
/* True where the job's one request had all its keys checked, ids too. */
bool exec_get__is_checked(const struct job *job);

/* Answers slots until the slice is done or out has mark bytes: true where it
 * is done. */
bool exec_get__format(struct session *session, struct exec_turn *turn);
/* The same where executor->watched is not 0: and does what that asks for. */
bool exec_get__format_more(struct session *session, struct exec_turn *turn);

#endif
