/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests like the one before them. What a client
 * pipelines mostly is: a hundred increments, or a hundred packets that ask for
 * a cell each. The first of them has been parsed, looked at and gathered in
 * the usual way; here those behind it are read in one pass (proto/plain.h) and
 * gathered straight away, as many as are whole, of the same kind, and plain.
 * The next one that is not goes the usual way again, which knows all about it,
 * and so does whatever follows when nothing more may be gathered.
 *
 * Nothing is decided here that the usual way decides otherwise: whether a
 * client may do what it asks for has been settled for the first of a kind, or
 * by the session. */
#include "session/exec_get.h"
#include "session/exec_member.h"

#include "base/assert.h"
#include "base/num.h"
#include "proto/plain.h"

#include <assert.h>

static_assert(EXEC_BATCH_MAX <= 64, "a bit each in job.plain");

enum { /* what a change adds to job.reply_bytes_max */
    CHANGE_BYTES_MAX = EXEC_ANSWER_TEXT_MAX + NUM_U64_DIGITS_MAX + 1
};

typedef uint32_t read_fn(
    const struct key_names *names, const char *text, struct plain *out);

/* A request has been read: takes it, whose first byte is the job's byte
 * number at. */
typedef void take_fn(
    struct session *session, const struct plain *plain, uint32_t at);

/* One more change, but for its operation. */
static inline struct change *
add_change(struct job *job, const struct plain *plain)
{
    struct change *change = &job->change[job->store_change.n++];
    const struct schema_target *target = &plain->key.target;
    change->id = plain->key.id;
    change->absent = CHANGE_FROM_DEFAULT;
    change->compares = false;
    change->is_redo = false;
    change->producer = 0;
    change->counter = target->counter->slot;
    change->n_columns = 1;
    change->column[0] = target->column->slot;
    change->serial[0] = target->column->serial;
    change->operand[0] = plain->number;
    change->base = NULL; /* the store finds it where it is needed */
    change->name = NULL;
    job->reply_bytes_max += CHANGE_BYTES_MAX;
    return change;
}

static inline void
take_count(struct session *session, const struct plain *plain, uint32_t at)
{
    struct job *job = session->job;
    struct change *change = add_change(job, plain);
    (void)at;
    change->op = plain->is_decr ? CHANGE_DECR : CHANGE_INCR;
    job->plain |= UINT64_C(1) << (change - job->change);
}

/* Of a set or an add. */
static inline struct change *
add_store(struct job *job, const struct plain *plain, uint32_t at)
{
    struct change *change = add_change(job, plain);
    change->kept = 0;
    change->of_record = false;
    job->echo[change - job->change] =
        (struct echo){.op = plain->is_add ? REQUEST_ADD : REQUEST_SET,
            .proto = PROTO_TEXT,
            .value_len = plain->value_len,
            .key = {at + plain->at.at, plain->at.len}};
    return change;
}

static inline void
take_store(struct session *session, const struct plain *plain, uint32_t at)
{
    struct change *change = add_store(session->job, plain, at);
    change->op = plain->is_add ? CHANGE_ADD : CHANGE_SET;
}

static inline void
take_member(struct session *session, const struct plain *plain, uint32_t at)
{
    struct change *change = add_store(session->job, plain, at);
    change->op = plain->is_add ? CHANGE_MEMBER_ADD : CHANGE_MEMBER_SET;
    exec_member__take(&plain->key, change);
}

/* The slot of a cell. */
static inline struct slot *
add_slot(struct job *job, const struct plain *plain, uint32_t at,
    enum slot_kind kind, bool shows_cas)
{
    const struct schema_target *target = &plain->key.target;
    struct slot *slot = &job->slot[job->n_slots++];
    *slot = (struct slot){.at = at + plain->at.at,
        .flags = target->column->flags,
        .first = (uint16_t)job->get.n,
        .n_cells = 1,
        .len = (uint8_t)plain->at.len,
        .kind = (uint8_t)kind,
        .absent_is_miss = target->counter->absent_is_miss,
        .shows_cas = shows_cas,
        .is_last = true};
    job->get.key[job->get.n++] = exec_get__cell(plain->key.id, target);
    job->key_bytes += plain->at.len;
    return slot;
}

static inline void
take_get(struct session *session, const struct plain *plain, uint32_t at)
{
    add_slot(session->job, plain, at, SLOT_CELL, false);
}

static inline void
take_meta(struct session *session, const struct plain *plain, uint32_t at)
{
    struct job *job = session->job;
    struct slot *slot = add_slot(job, plain, at, SLOT_META, true);
    job->single[slot - job->slot] = (struct echo){.op = REQUEST_LOOK,
        .proto = PROTO_META,
        .is_quiet = plain->is_quiet,
        .wants_value = plain->wants_value,
        .key = {slot->at, slot->len},
        .meta = {at + plain->meta.at, plain->meta.len}};
}

static inline void
take_packet(struct session *session, const struct plain *plain, uint32_t at)
{
    struct job *job = session->job;
    struct slot *slot = add_slot(job, plain, at, SLOT_PACKET, true);
    job->single[slot - job->slot] = (struct echo){.op = REQUEST_LOOK,
        .proto = PROTO_BINARY,
        .opcode = plain->opcode,
        .is_quiet = plain->is_quiet,
        .wants_value = true,
        .opaque = plain->opaque,
        .key = {slot->at, slot->len}};
}

typedef void follow_fn(
    struct session *session, const char *bytes, struct exec_turn *turn);

/* How many changes may be gathered before exec_must_flush says so. */
static inline unsigned
room_for_changes(const struct session *session, const struct exec_turn *turn)
{
    const struct job *job = session->job;
    unsigned n = EXEC_BATCH_MAX - job->store_change.n;
    size_t used = turn->out->len + job->reply_bytes_max;
    size_t left = used < turn->mark ? turn->mark - used : 0;
    size_t fit = (left + CHANGE_BYTES_MAX - 1) / CHANGE_BYTES_MAX;
    return fit < n ? (unsigned)fit : n;
}

/* Likewise of gets of a cell, each a slot. */
static inline unsigned
room_for_gets(const struct session *session)
{
    const struct job *job = session->job;
    ASSERT(exec__is_getting(session));
    if (exec__get_is_full(session)) {
        return 0;
    }
    unsigned slots = EXEC_SLICE_KEYS_MAX - job->n_slots;
    unsigned cells = STORE_GET_MAX - SCHEMA_COLUMNS_MAX + 1 - job->get.n;
    return slots < cells ? slots : cells;
}

/* Gathers what follows; made once for each kind. Of gets the owner is asked
 * later, with the whole slice. Gets take nothing of the
 * budget: the first one of their slice has paid for all. */
static inline __attribute__((always_inline)) void
follow(struct session *session, const char *bytes, struct exec_turn *turn,
    read_fn *read, take_fn *take, bool is_get, bool asks_owner)
{
    struct job *job = session->job;
    const struct key_names *names = &session->executor->names;
    char near[2 * PLAIN_BYTES];
    const char *text = bytes;
    const char *end = turn->end;
    bool is_near = false;
    unsigned most =
        is_get ? room_for_gets(session) : room_for_changes(session, turn);
    unsigned n = 0;
    if (!is_get && most > *turn->budget) {
        most = *turn->budget;
    }
    while (n < most) {
        struct plain plain;
        if (end - text < PLAIN_BYTES && !is_near) {
            size_t left = (size_t)(end - text);
            memcpy(near, text, left);
            memset(near + left, 0, sizeof near - left);
            text = near;
            end = near + left;
            is_near = true;
        }
        uint32_t len = read(names, text, &plain);
        if (len == 0 || len > end - text) {
            break;
        }
        if (asks_owner && exec__is_other(session, plain.key.id)) {
            break; /* the usual way says so */
        }
        take(session, &plain, (uint32_t)job->request_bytes);
        job->request_bytes += len;
        text += len;
        n++;
    }
    if (is_get) {
        job->n_requests += n;
    } else {
        *turn->budget -= n;
    }
}

static void
follow_counts(
    struct session *session, const char *bytes, struct exec_turn *turn)
{
    follow(session, bytes, turn, plain_count, take_count, false, false);
}

static void
follow_own_counts(
    struct session *session, const char *bytes, struct exec_turn *turn)
{
    follow(session, bytes, turn, plain_count, take_count, false, true);
}

static void
follow_stores(
    struct session *session, const char *bytes, struct exec_turn *turn)
{
    follow(session, bytes, turn, plain_store, take_store, false,
        session->executor->has_others);
}

static void
follow_members(
    struct session *session, const char *bytes, struct exec_turn *turn)
{
    follow(session, bytes, turn, plain_member, take_member, false,
        session->executor->has_others);
}

static void
follow_gets(struct session *session, const char *bytes, struct exec_turn *turn)
{
    follow(session, bytes, turn, plain_get, take_get, true, false);
}

static void
follow_metas(
    struct session *session, const char *bytes, struct exec_turn *turn)
{
    follow(session, bytes, turn, plain_meta, take_meta, true, false);
}

static void
follow_packets(
    struct session *session, const char *bytes, struct exec_turn *turn)
{
    follow(session, bytes, turn, plain_packet, take_packet, true, false);
}

/* The same for a set or an add; NULL where it is no change of a cell or a
 * record that has been gathered, or one of members=about. */
static follow_fn *
store_follower(const struct job *job)
{
    unsigned n = job->store_change.n;
    if (job->stage != JOB_GATHER || job->of_about || n == 0) {
        return NULL;
    }
    return change_is_of_member(&job->change[n - 1]) ? follow_members
                                                    : follow_stores;
}

/* What gathers those that follow the session's request; NULL where there is
 * no such thing. */
static follow_fn *
follower(const struct session *session)
{
    const struct request *request = &session->request;
    switch (request->op) {
    case REQUEST_INCR:
    case REQUEST_DECR:
        if (request->proto != PROTO_TEXT) {
            return NULL;
        }
        return session->executor->has_others ? follow_own_counts
                                             : follow_counts;
    case REQUEST_SET:
    case REQUEST_ADD:
        return request->proto != PROTO_TEXT ? NULL
                                            : store_follower(session->job);
    case REQUEST_GET:
        return session->job->is_alone ? NULL : follow_gets;
    case REQUEST_LOOK:
        if (session->job->is_alone) {
            return NULL;
        }
        return request->proto == PROTO_META ? follow_metas : follow_packets;
    default:
        return NULL;
    }
}

void
exec_follow(struct session *session, const char *bytes, struct exec_turn *turn)
{
    follow_fn *follow_all = turn->end == bytes || exec__is_forwarding(session)
        ? NULL
        : follower(session);
    if (follow_all != NULL) {
        key_names_use(&session->executor->names, exec__schema(session));
        follow_all(session, bytes, turn);
    }
}
