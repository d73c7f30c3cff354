/* SPDX-License-Identifier: BSD-3-Clause */
/* Ids that are not this server's: those of another one by the rule of --owns,
 * and those that have been handed over to another group. Nothing here is called
 * where there are none, nor for a connection that brings records (feed on).
 *
 * Gets are looked at when all keys of a slice are known, in one place for all
 * protocols. The cells of such ids lose their serial, so that the store answers
 * them as gone, without a look, and they are misses (--owns-miss); or their
 * requests are refused, each one whole: no key of it is answered. What has been
 * handed over is always refused. A request of several slices is looked at
 * before the first is answered (exec_get.c). Changes are looked at one by one
 * before they are gathered, and again where they have waited since.
 *
 * Where a counter's ids are names a rule takes the name, as clients do, and the
 * key is looked at when it is read; but for changes that have waited since
 * nothing else asks for these. */
#include "session/exec_get.h"

#include "base/assert.h"
#include "base/err.h"

#include <inttypes.h>

void
exec_ask_owner(struct session *session)
{
    struct executor *executor = session->executor;
    executor->owns = executor->owner == NULL || session->is_feed
        ? NULL
        : owner_rule(executor->owner);
    executor->moved = session->is_feed ? NULL : store_moved(executor->store);
    executor->other_moved = NULL;
    executor->has_others = executor->owns != NULL || executor->moved != NULL;
}

int
exec__other(const struct session *session, uint64_t id)
{
    const struct executor *executor = session->executor;
    if (executor->moved != NULL && moved_find(executor->moved, id) != NULL) {
        return ERR_MOVED;
    }
    return executor->owns != NULL && !owns_has(executor->owns, id)
        ? ERR_NOT_OWNED
        : 0;
}

/* The handover of a name, which is noted; NULL: it is here. A name that is NULL
 * is the own one of the id. */
static const struct moved_one *
find_moved_name(
    struct executor *executor, const char *name, size_t len, uint64_t id)
{
    char text[OWN_DIGITS_MAX];
    if (executor->moved == NULL) {
        return NULL;
    }
    if (name == NULL) {
        len = own_id_name(id, text);
        name = text;
    }
    executor->other_moved = moved_find_name(executor->moved, name, len);
    return executor->other_moved;
}

int
exec__name_other(const struct session *session, const struct key *key)
{
    struct executor *executor = session->executor;
    char text[OWN_DIGITS_MAX];
    if (key->is_bad_name) {
        return ERR_BAD_ID_NAME;
    }
    if (find_moved_name(executor, key->name, key->name_len, key->id) != NULL) {
        return ERR_MOVED;
    }
    if (executor->owns == NULL) {
        return 0;
    }
    if (!owns_takes_names(executor->owns) || executor->owner->misses) {
        return ERR_NAMES_RULE;
    }
    bool has_own_id = key->name == NULL;
    size_t len = has_own_id ? own_id_name(key->id, text) : key->name_len;
    return owns_has_name(executor->owns, has_own_id ? text : key->name, len)
        ? 0
        : ERR_NOT_OWNED;
}

/* True where the ids of the counter in that slot are names. */
static bool
is_by_name(const struct session *session, unsigned counter_slot)
{
    const struct schema_counter *counter = schema_counter_at(
        store_schema(session->executor->store), counter_slot);
    return counter != NULL && counter->key_is_text;
}

int
exec__other_fault(const struct session *session, uint64_t id)
{
    int err = exec__other(session, id);
    return err == ERR_NOT_OWNED && session->executor->owner->misses ? 0 : err;
}

void
exec__note_other(struct session *session, uint64_t id)
{
    struct executor *executor = session->executor;
    const struct owns *owns = executor->owns;
    exec__note_id(session, id);
    if (exec__other(session, id) == ERR_MOVED) {
        exec__count(session, METRIC_moved_refused, 1);
        return;
    }
    exec__count(session, METRIC_not_owned, 1);
    log_line(executor->owner->logger, LOG_WARNING,
        "a client asked for id %" PRIu64 ", which is that of server %" PRIu32
        ": this one has %s",
        id, owns_server_of(owns, id), owns_rule(owns));
}

/* What a change of another server's id is answered with, where that is to be a
 * miss: what it is for an item that is not there. A command that knows no miss
 * is refused: nothing may seem to have been stored. */
static int
miss_of(const struct change *change)
{
    switch (change->op) {
    case CHANGE_INCR:
    case CHANGE_DECR:
    case CHANGE_MARK_INCR:
    case CHANGE_MARK_DECR:
    case CHANGE_MEMBER_INCR:
    case CHANGE_MEMBER_DECR:
        return change->absent == CHANGE_TO_INITIAL ? ERR_NOT_OWNED
                                                   : ERR_NOT_FOUND;
    case CHANGE_DELETE:
    case CHANGE_CAS:
    case CHANGE_MARK_DELETE:
    case CHANGE_MARK_CAS:
    case CHANGE_READ_ALL:
    case CHANGE_MEMBER_DELETE:
    case CHANGE_MEMBER_CAS:
        return ERR_NOT_FOUND;
    case CHANGE_REPLACE:
    case CHANGE_MARK_REPLACE:
    case CHANGE_MEMBER_REPLACE:
        return ERR_NOT_STORED;
    case CHANGE_SET:
    case CHANGE_ADD:
    case CHANGE_MARK_SET:
    case CHANGE_MARK_ADD:
    case CHANGE_MEMBER_SET:
    case CHANGE_MEMBER_ADD:
        break;
    case CHANGE_MARK_FORGET: /* of no client */
        ASSERT(false);
    }
    return ERR_NOT_OWNED;
}

int
exec__owner_fault(struct session *session, const struct change *change)
{
    if (is_by_name(session, change->counter)) {
        return 0;
    }
    int err = exec__other(session, change->id);
    return err == ERR_NOT_OWNED && session->executor->owner->misses
        ? miss_of(change)
        : err;
}

/* True where the change is of a name that is handed over, which is noted. */
static bool
has_moved_name(struct session *session, const struct change *change)
{
    const struct engine_name *name = change->name;
    return is_by_name(session, change->counter) &&
        find_moved_name(session->executor, name == NULL ? NULL : name->bytes,
            name == NULL ? 0 : name->len, change->id) != NULL;
}

void
exec__note_change(struct session *session, const struct change *change)
{
    exec__note_id(session, change->id);
    if (change->err == ERR_MOVED) {
        (void)has_moved_name(session, change);
    }
}

void
exec__look_again(struct session *session)
{
    struct job *job = session->job;
    for (unsigned i = 0; i < job->store_change.n; i++) {
        struct change *change = &job->change[i];
        if (has_moved_name(session, change)) {
            exec__count(session, METRIC_moved_refused, 1);
        } else if (!is_by_name(session, change->counter) &&
            exec__other(session, change->id) == ERR_MOVED) {
            exec__note_other(session, change->id);
        } else {
            continue;
        }
        job->moved |= UINT64_C(1) << i;
        change->producer = 0;
        for (unsigned c = 0; c < change->n_columns; c++) {
            change->serial[c] = UINT32_MAX; /* no column's */
        }
    }
}

/* The cells of the slot are gone. */
static void
give_up(struct job *job, const struct slot *slot)
{
    for (unsigned i = 0; i < slot->n_cells; i++) {
        job->get.key[slot->first + i].serial = 0;
    }
}

static uint64_t
id_of(const struct job *job, const struct slot *slot)
{
    ASSERT(slot->n_cells > 0 && slot->first < job->get.n);
    return job->get.key[slot->first].id;
}

/* True where whose id that is can be asked by the slot. */
static bool
has_id(const struct session *session, const struct slot *slot)
{
    return slot->n_cells > 0 &&
        !is_by_name(session, session->job->get.key[slot->first].counter);
}

/* The keys of other servers' ids among those gathered are misses, where that is
 * so by the rule of --owns. */
static void
miss_others(struct session *session)
{
    struct job *job = session->job;
    for (unsigned i = 0; i < job->n_slots; i++) {
        struct slot *slot = &job->slot[i];
        if (has_id(session, slot) &&
            exec__other(session, id_of(job, slot)) == ERR_NOT_OWNED) {
            exec__note_other(session, id_of(job, slot));
            give_up(job, slot);
        }
    }
}

bool
exec_get__has_other(struct session *session, unsigned first, unsigned end)
{
    const struct job *job = session->job;
    const struct slot *last = NULL; /* with cells, and owned */
    for (unsigned i = first; i < end; i++) {
        const struct slot *slot = &job->slot[i];
        if (!has_id(session, slot) ||
            (last != NULL && id_of(job, last) == id_of(job, slot))) {
            continue;
        }
        if (exec__other_fault(session, id_of(job, slot)) != 0) {
            exec__note_other(session, id_of(job, slot));
            return true;
        }
        last = slot;
    }
    return false;
}

int
exec_get__refusal(struct session *session, const struct slot *slot)
{
    const struct job *job = session->job;
    const struct slot *first = slot;
    while (first > job->slot && !first[-1].is_last) {
        first--;
    }
    for (; first <= slot && session->executor->has_others; first++) {
        int err = has_id(session, first)
            ? exec__other_fault(session, id_of(job, first))
            : 0;
        if (err != 0) {
            exec__note_id(session, id_of(job, first));
            return err;
        }
    }
    return ERR_MOVED; /* and came back just now */
}

/* Those of one request are refused. */
static void
refuse(struct job *job, unsigned first, unsigned end)
{
    for (unsigned i = first; i < end; i++) {
        struct slot *slot = &job->slot[i];
        give_up(job, slot);
        switch ((enum slot_kind)slot->kind) {
        case SLOT_SINGLE:
        case SLOT_META:
        case SLOT_PACKET:
            slot->kind = SLOT_SINGLE_REFUSED;
            break;
        default:
            slot->kind = SLOT_REFUSED;
            break;
        }
    }
}

void
exec_get__look_for_others(struct session *session)
{
    struct job *job = session->job;
    unsigned first = 0;
    if (session->executor->owns != NULL && session->executor->owner->misses) {
        miss_others(session);
    }
    if (exec_get__is_checked(job)) {
        return;
    }
    for (unsigned i = 0; i < job->n_slots; i++) {
        if (!job->slot[i].is_last) {
            continue;
        }
        if (exec_get__has_other(session, first, i + 1)) {
            refuse(job, first, i + 1);
        }
        first = i + 1;
    }
}
