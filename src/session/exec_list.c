/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists of what ids follow: how they are stored and read.
 *
 * A list is an item, so that it is evicted, expires and is flushed as items
 * are. Its key has the serial of its column, which is never used twice, and the
 * id:
 *
 *   0  4  serial, little-endian
 *   4  8  id
 *
 * and is hidden (items_terms): packets and base64 let clients send any bytes
 * for a key, but none names an item that is hidden. Its value is what
 * lists/coded makes of the ids that are followed and what their columns were.
 *
 * A get of a list has a place in the batch as a cell has, with serial 0, which
 * the store answers as gone without a look. When the rest has been read, each
 * list is pinned, decoded a block after the other, and its ids are asked for in
 * a batch of their own; the sum takes the place of the answer. The followed
 * counter has cold=never, so that this is answered at once; where it is not,
 * the job waits with the pin. After LIST_TURN_IDS a request of the turn's
 * budget is used up: the longest list is 16 of them. */
#include "session/exec_list.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "base/err.h"
#include "items/items.h"
#include "session/exec_admin.h"
#include "session/exec_get.h"

#include <assert.h>
#include <string.h>

static_assert(
    (int)CODED_BLOCK_IDS <= (int)STORE_GET_MAX, "a block is one batch");
static_assert(
    (int)LIST_TURN_IDS % (int)CODED_BLOCK_IDS == 0, "turns end with a block");

static struct items *
items_of(struct session *session)
{
    return session->executor->store->items;
}

struct list_ref
exec_list__ref(struct session *session, const struct key *key)
{
    const struct schema_counter *counter = key->target.counter;
    const struct schema_column *column = key->target.column;
    struct schema_target source;
    struct list_ref ref = {.id = key->id,
        .member = key->member,
        .has_member = key->has_member,
        .absent_is_miss = counter->absent_is_miss,
        .serial = column->serial};
    if (schema_source(exec__schema(session), counter, column, &source)) {
        ref.source = exec_get__cell(0, &source);
    } /* else the store says that it is gone */
    return ref;
}

void
exec_list__key(const struct list_ref *ref, char out[LIST_KEY_BYTES])
{
    uint8_t *at = (uint8_t *)out;
    bytes_put_u32(at, ref->serial);
    bytes_put_u64(at + sizeof ref->serial, ref->id);
}

bool
exec_list__open(struct session *session, const struct list_ref *ref,
    struct items_terms *terms, struct list_reading *reading)
{
    char key[LIST_KEY_BYTES];
    struct items_found found;
    exec_list__key(ref, key);
    terms->is_hidden = true;
    terms->yields = true;
    items_look(items_of(session), key, sizeof key, terms, exec__now_s(session),
        &found);
    reading->item = found.item;
    if (found.item == NULL) {
        return false;
    }
    bool is_whole =
        coded_open(&reading->list, found.item->value, found.item->value_len);
    ASSERT(is_whole); /* it is our own */
    reading->walk = (struct coded_walk){0};
    reading->n_ids = 0;
    reading->sum = 0;
    reading->expiry_s = found.expiry_s;
    memset(&reading->get, 0, offsetof(struct store_get, key));
    return true;
}

void
exec_list__close(struct session *session, struct list_reading *reading)
{
    if (reading->item != NULL) {
        items_unpin(items_of(session), reading->item);
        reading->item = NULL;
    }
}

void
exec_list__want(const struct list_ref *ref, const uint64_t *id, unsigned n,
    struct store_get *get)
{
    ASSERT(n >= 1 && n <= STORE_GET_MAX);
    memset(get, 0, offsetof(struct store_get, key));
    get->n = n;
    for (unsigned i = 0; i < n; i++) {
        get->key[i] = ref->source;
        get->key[i].id = id[i];
    }
}

bool
exec_list__is_read(const struct store_get *get, int *err)
{
    *err = 0;
    for (unsigned i = 0; i < get->n; i++) {
        if (get->state[i] > CELL_SET) {
            *err = get->state[i] == CELL_GONE ? ERR_GONE : ERR_COLD_READ;
        }
    }
    return *err == 0;
}

/* Has the store asked for the next ids: false where there are none. */
static bool
want_next(const struct list_ref *ref, struct list_reading *reading)
{
    uint64_t id[CODED_BLOCK_IDS];
    unsigned n = 1;
    if (ref->has_member) { /* one, which may not be there */
        id[0] = ref->member;
        if (reading->n_ids > 0 ||
            !coded_find(&reading->list, ref->member, reading->count)) {
            return false;
        }
    } else {
        n = coded_next(&reading->list, &reading->walk, id, reading->count);
        if (n == 0) {
            return false;
        }
    }
    reading->n_ids += n;
    exec_list__want(ref, id, n, &reading->get);
    return true;
}

/* Adds up what is behind the marks of the batch, which has been read. */
static void
take(struct list_reading *reading, struct coded_room *into)
{
    const struct store_get *get = &reading->get;
    uint64_t sum = reading->sum;
    for (unsigned i = 0; i < get->n; i++) {
        uint64_t now = get->value[i], then = reading->count[i];
        uint64_t behind = now > then ? now - then : 0;
        sum = sum + behind < sum ? UINT64_MAX : sum + behind;
    }
    reading->sum = sum;
    if (into != NULL) {
        ASSERT(into->n + get->n <= CODED_IDS_MAX);
        for (unsigned i = 0; i < get->n; i++) {
            into->id[into->n] = get->key[i].id;
            into->count[into->n++] = get->value[i];
        }
    }
}

/* True where one of the ids to be read has been handed over since the list was
 * stored: it is counted elsewhere. */
static bool
has_moved(struct session *session, const struct store_get *get)
{
    for (unsigned i = 0; i < get->n; i++) {
        if (exec__other(session, get->key[i].id) == ERR_MOVED) {
            exec__note_other(session, get->key[i].id);
            return true;
        }
    }
    return false;
}

enum exec_step
exec_list__sum(struct session *session, struct exec_turn *turn,
    const struct list_ref *ref, struct list_reading *reading,
    enum store_answer (*ask)(struct job *job), struct coded_room *into,
    int *err)
{
    struct store_get *get = &reading->get;
    ASSERT(reading->item != NULL);
    for (;;) {
        if (get->n > 0) {
            if (!exec_list__is_read(get, err)) {
                break;
            }
            take(reading, into);
            if (session->executor->rules.holds_reads != 0) {
                /* told by now is all that was seen: exec_seen.c asks later */
                (void)store_seen(session->executor->store, get->key, get->n);
            }
            get->n = 0;
            if (reading->n_ids % LIST_TURN_IDS == 0 &&
                reading->n_ids < reading->list.n && !exec__charge(turn) &&
                into == NULL) {
                return EXEC_YIELD;
            }
        }
        *err = 0;
        if (!want_next(ref, reading)) {
            break;
        }
        if (session->executor->moved != NULL && has_moved(session, get)) {
            *err = ERR_MOVED;
            break;
        }
        if (exec__waits(session->job, &get->call, ask)) {
            return EXEC_LATER;
        }
    }
    exec__count(session, METRIC_follow_ids, reading->n_ids);
    return EXEC_DONE;
}

void
exec_list__add(struct job *job, struct slot *slot, const struct key *key)
{
    ASSERT(job->n_lists < EXEC_SLICE_KEYS_MAX);
    struct list_read *list = &job->list[job->n_lists++];
    list->ref = exec_list__ref(job->session, key);
    list->cell = slot->first;
    list->ttl_s = ANSWER_NEVER;
    job->list_ids = 0;
    job->reading.item = NULL;
    slot->kind = SLOT_CELL;
    slot->n_cells = 1;
    slot->flags = key->target.column->flags;
    job->get.key[job->get.n++] = (struct cell_key){.id = key->id};
}

int64_t
exec_list__ttl_s(const struct job *job, const struct slot *slot)
{
    for (unsigned i = 0; i < job->n_lists; i++) {
        if (job->list[i].cell == slot->first) {
            return job->list[i].ttl_s;
        }
    }
    return ANSWER_NEVER;
}

static enum store_answer
ask_to_read(struct job *job)
{
    return store_get(job->session->executor->store, &job->reading.get);
}

/* Begins with the next list: false where there is none, which is its answer. */
static bool
begin(struct session *session, struct list_read *list)
{
    struct job *job = session->job;
    const struct request *request = &session->request;
    uint64_t now_s = exec__now_s(session);
    struct items_terms terms = {
        .touches = job->touches, .inspects = job->op == REQUEST_INSPECT};
    if (session->executor->has_others &&
        exec__is_other(session, list->ref.id)) {
        return false; /* it stays gone, or its request is refused */
    }
    if (job->touches) {
        terms.expiry_s =
            items_expiry(request->exptime, now_s, exec__unix_s(session));
    }
    exec__count(session, METRIC_follow_reads, 1);
    if (!exec_list__open(session, &list->ref, &terms, &job->reading)) {
        exec__count(session, METRIC_follow_misses, 1);
        job->get.value[list->cell] = 0;
        job->get.state[list->cell] =
            job->op == REQUEST_TOUCH ? CELL_GONE : CELL_DEFAULT;
        return false;
    }
    if (job->reading.expiry_s != ITEMS_NEVER) {
        list->ttl_s = job->reading.expiry_s > now_s
            ? (int64_t)(job->reading.expiry_s - now_s)
            : 0;
    }
    return true;
}

/* The list has been read, or err says why not. */
static void
end(struct session *session, const struct list_read *list, int err)
{
    struct job *job = session->job;
    struct list_reading *reading = &job->reading;
    uint8_t state = CELL_SET; /* whatever the sum: there is a list */
    if (err != 0) {
        /* no list of this server's, if some are counted elsewhere */
        state =
            err == ERR_GONE || err == ERR_MOVED ? CELL_GONE : CELL_UNREADABLE;
    } else if (list->ref.has_member && reading->n_ids == 0) {
        state = CELL_DEFAULT; /* it is not followed */
    }
    job->get.value[list->cell] = reading->sum;
    job->get.state[list->cell] = state;
    exec_list__close(session, reading);
}

enum exec_step
exec_list__read(struct session *session, struct exec_turn *turn)
{
    struct job *job = session->job;
    for (; job->lists_read < job->n_lists; job->lists_read++) {
        struct list_read *list = &job->list[job->lists_read];
        ASSERT(list->cell < job->get.n);
        if (job->reading.item != NULL || begin(session, list)) {
            int err;
            enum exec_step step = exec_list__sum(session, turn, &list->ref,
                &job->reading, ask_to_read, NULL, &err);
            if (step != EXEC_DONE) {
                return step;
            }
            end(session, list, err);
            job->list_ids += job->reading.n_ids % LIST_TURN_IDS;
        }
        if (job->list_ids >= LIST_TURN_IDS) {
            if (!exec__charge(turn)) {
                job->lists_read++;
                return EXEC_YIELD;
            }
            job->list_ids -= LIST_TURN_IDS;
        }
    }
    return EXEC_DONE;
}
