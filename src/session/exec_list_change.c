/* SPDX-License-Identifier: BSD-3-Clause */
/* Changes of lists (exec_list.c has how they are stored).
 *
 *   set and the like of a list      LIST_READ -> LIST_STORE
 *   the same where a cas decides    LIST_READ -> LIST_LOOK -> LIST_SUM
 *                                       -> LIST_STORE
 *   an empty value                  LIST_LOOK -> LIST_SUM -> LIST_STORE
 *   of one id that is followed      LIST_LOOK -> LIST_SUM -> LIST_STORE
 *   delete where a cas decides      LIST_LOOK -> LIST_SUM, then it goes
 *
 * What is made of a list is stored under the cas of the item that was read.
 * Where that is another one by then, or none, the change begins anew at
 * LIST_LOOK, so that two that come at once are both done.
 *
 * The cas unique of a list is that of its sum. A new list is marked at what its
 * columns were before the sum is compared, and one that is marked anew at what
 * the sum was made of: what comes between the two is counted, or refused with
 * EXISTS, and never marked unseen. */
#include "base/assert.h"
#include "base/err.h"
#include "base/num.h"
#include "items/items.h"
#include "session/exec_admin.h"
#include "session/exec_list.h"

#include <stdlib.h>
#include <string.h>

enum {
    LIST_TRIES_MAX = 1000,
    RADIX_BITS = 8,
    RADIX = 1 << RADIX_BITS,
    RADIX_PASSES = 64 / RADIX_BITS
};

static struct list_change *
change_of(struct session *session)
{
    ASSERT(session->job != NULL && session->job->stage == JOB_LIST);
    return &session->job->change_of_list;
}

/* The executor's memory for a change, or more where that is in use; NULL where
 * there is none. */
static struct list_work *
take_work(struct executor *executor)
{
    struct list_work *work = executor->list_work;
    executor->list_work = NULL;
    return work != NULL ? work : malloc(sizeof *work);
}

static void
give_work(struct executor *executor, struct list_work *work)
{
    if (executor->list_work == NULL) {
        executor->list_work = work;
    } else {
        free(work);
    }
}

void
exec_list__drop(struct session *session)
{
    struct job *job = session->job;
    if (job == NULL) {
        return;
    }
    ASSERT(!job->waits);
    if (job->stage == JOB_LIST) {
        exec_list__close(session, &job->change_of_list.reading);
        give_work(session->executor, job->change_of_list.work);
        job->change_of_list.work = NULL;
    } else if (job->stage == JOB_GET_FORMAT &&
        job->lists_read < job->n_lists) {
        exec_list__close(session, &job->reading);
    }
}

/* Sorts n numbers; room has as many. By their bytes, the lowest first; a byte
 * in which all are alike costs nothing but the look. */
static void
sort(uint64_t *number, uint64_t *room, unsigned n)
{
    uint64_t *from = number, *to = room;
    for (unsigned pass = 0; pass < RADIX_PASSES; pass++) {
        unsigned shift = pass * RADIX_BITS;
        uint32_t at[RADIX] = {0};
        uint32_t sum = 0;
        for (unsigned i = 0; i < n; i++) {
            at[from[i] >> shift & (RADIX - 1)]++;
        }
        if (at[from[0] >> shift & (RADIX - 1)] == n) {
            continue;
        }
        for (unsigned b = 0; b < RADIX; b++) {
            uint32_t n_here = at[b];
            at[b] = sum;
            sum += n_here;
        }
        for (unsigned i = 0; i < n; i++) {
            to[at[from[i] >> shift & (RADIX - 1)]++] = from[i];
        }
        uint64_t *other = from;
        from = to;
        to = other;
    }
    if (from != number) {
        memcpy(number, from, n * sizeof *number);
    }
}

/* Makes the ids ascend, each once. */
static void
put_in_order(struct coded_room *room)
{
    unsigned n = 1;
    bool ascends = true;
    for (unsigned i = 1; ascends && i < room->n; i++) {
        ascends = room->id[i] > room->id[i - 1];
    }
    if (ascends) {
        return;
    }
    sort(room->id, room->count, room->n);
    for (unsigned i = 1; i < room->n; i++) {
        if (room->id[i] != room->id[n - 1]) {
            room->id[n++] = room->id[i];
        }
    }
    room->n = n;
}

/* The ids of the value: 0, ERR_BAD_LIST, or ERR_NOT_OWNED or ERR_MOVED where
 * what another server counts would be taken for 0. */
static int
parse_ids(struct session *session, const char *bytes, struct coded_room *room)
{
    struct words words = words_of(bytes, session->request.value);
    bool has_others = session->executor->has_others;
    struct span word;
    room->n = 0;
    while (words_next(&words, &word)) {
        uint64_t id;
        if (room->n == CODED_IDS_MAX ||
            !num_parse_id(bytes + word.at, word.len, &id)) {
            return ERR_BAD_LIST;
        }
        int other = has_others ? exec__other(session, id) : 0;
        if (other != 0) {
            exec__note_other(session, id);
            return other;
        }
        room->id[room->n++] = id;
    }
    if (room->n == 0) {
        return ERR_BAD_LIST;
    }
    put_in_order(room);
    return 0;
}

/* The change is answered: what it holds is given back before that. */
static enum exec_step
answer(struct session *session, const char *bytes, const struct answer *answer,
    struct buf *out)
{
    exec_list__drop(session);
    return exec__answer(session, bytes, answer, out);
}

static enum exec_step
refuse(struct session *session, int err, struct buf *out)
{
    exec_list__drop(session);
    return exec__refuse(session, err, out);
}

/* The answers that are conditions: ERR_NOT_STORED, ERR_EXISTS, ERR_NOT_FOUND;
 * any other err is a refusal. */
static enum exec_step
answer_err(
    struct session *session, const char *bytes, int err, struct buf *out)
{
    const struct request *request = &session->request;
    struct answer no = {.kind = ANSWER_NOT_STORED};
    bool compares = change_of(session)->compares;
    switch (err) {
    case ERR_NOT_STORED:
        break;
    case ERR_EXISTS:
        no.kind = ANSWER_EXISTS;
        exec__count(session, METRIC_cas_badval, compares);
        break;
    case ERR_NOT_FOUND:
        no.kind = ANSWER_NOT_FOUND;
        exec__count(session, METRIC_cas_misses,
            compares && request->op != REQUEST_DELETE);
        exec__count(
            session, METRIC_delete_misses, request->op == REQUEST_DELETE);
        break;
    default:
        return refuse(session, err, out);
    }
    return answer(session, bytes, &no, out);
}

static enum exec_step
answer_done(struct session *session, const char *bytes, struct buf *out)
{
    const struct request *request = &session->request;
    const struct list_change *change = change_of(session);
    bool deletes = request->op == REQUEST_DELETE;
    struct answer done = {.kind = deletes ? ANSWER_DELETED : ANSWER_STORED,
        .cas = deletes ? 0
                       : cell_cas(change->ref.has_member ? change->number : 0),
        .value_len = request->value.len,
        .ttl_s = ANSWER_NEVER,
        .old_ttl_s = ANSWER_NEVER};
    exec__count(session, METRIC_follow_sets, 1);
    exec__count(session, METRIC_delete_hits, deletes);
    exec__count(session, METRIC_cas_hits, !deletes && change->compares);
    return answer(session, bytes, &done, out);
}

static enum store_answer
ask_to_read(struct job *job)
{
    return store_get(
        job->session->executor->store, &job->change_of_list.reading.get);
}

/* What the ids of a new list are at: EXEC_DONE or EXEC_LATER. A change is made
 * in one turn, however long, for it holds much memory: the budget is charged,
 * and the turn may end behind it. */
static enum exec_step
read_ids(struct session *session, struct exec_turn *turn, int *err)
{
    struct list_change *change = change_of(session);
    struct store_get *get = &change->reading.get;
    struct coded_room *room = &change->work->room;
    *err = 0;
    for (;;) {
        if (get->n > 0) {
            if (!exec_list__is_read(get, err)) {
                return EXEC_DONE;
            }
            memcpy(&room->count[change->n_read], get->value,
                get->n * sizeof *room->count);
            change->n_read += get->n;
            get->n = 0;
            if (change->n_read % LIST_TURN_IDS == 0) {
                (void)exec__charge(turn);
            }
        }
        unsigned n = room->n - change->n_read;
        if (n == 0) {
            return EXEC_DONE;
        }
        exec_list__want(&change->ref, &room->id[change->n_read],
            n < CODED_BLOCK_IDS ? n : CODED_BLOCK_IDS, get);
        if (exec__waits(session->job, &get->call, ask_to_read)) {
            return EXEC_LATER;
        }
    }
}

/* There is no list: 0 to go on, or what that comes to. */
static int
without_list(struct session *session)
{
    struct list_change *change = change_of(session);
    switch (session->request.op) {
    case REQUEST_DELETE:
    case REQUEST_CAS:
        break;
    case REQUEST_REPLACE:
        return ERR_NOT_STORED;
    default:
        if (change->renews || change->ref.has_member) {
            return ERR_NO_LIST;
        }
        break;
    }
    if (session->request.op == REQUEST_DELETE || change->renews ||
        change->ref.has_member || change->ref.absent_is_miss) {
        return ERR_NOT_FOUND;
    }
    change->was_absent = true; /* and reads as 0 */
    return change->cas == cell_cas(0) ? 0 : ERR_EXISTS;
}

/* There is a list, which is open: 0 to go on, or what that comes to. */
static int
with_list(struct session *session)
{
    const struct list_change *change = change_of(session);
    const struct list_ref *ref = &change->ref;
    enum request_op op = session->request.op;
    uint64_t then;
    bool is_there = !ref->has_member ||
        coded_find(&change->reading.list, ref->member, &then);
    if (op == REQUEST_ADD && is_there) {
        return ERR_NOT_STORED;
    }
    if (is_there) {
        return 0;
    }
    if (op == REQUEST_REPLACE) {
        return ERR_NOT_STORED;
    }
    return op == REQUEST_DELETE || change->compares ? ERR_NOT_FOUND : 0;
}

static int
look(struct session *session)
{
    struct list_change *change = change_of(session);
    struct items_terms terms = {0};
    change->was_absent = false;
    change->step = LIST_STORE;
    if (!exec_list__open(session, &change->ref, &terms, &change->reading)) {
        return without_list(session);
    }
    change->item_cas = change->reading.item->cas;
    if (session->request.op == REQUEST_DELETE && !change->compares &&
        !change->ref.has_member) { /* whatever is in it */
        exec_list__close(session, &change->reading);
        return 0;
    }
    change->step = LIST_SUM;
    if (change->renews) {
        change->work->room.n = 0;
    }
    return with_list(session);
}

/* The list has been read: 0, ERR_EXISTS. */
static int
compare(const struct list_change *change)
{
    return change->compares && change->cas != cell_cas(change->reading.sum)
        ? ERR_EXISTS
        : 0;
}

/* The one id gets its mark, or goes: the list as it is to be, is in the room.
 * 0, ERR_BAD_LIST where it would be too long, or what else is wrong with what
 * the id is at now, which is the batch's answer. */
static int
change_one(struct session *session)
{
    struct list_change *change = change_of(session);
    struct coded_room *room = &change->work->room;
    uint64_t member = change->ref.member, then = 0;
    coded_decode(&change->reading.list, room);
    if (session->request.op == REQUEST_DELETE) {
        (void)coded_remove(room, member);
        return 0;
    }
    uint64_t now = change->reading.get.value[0];
    uint64_t mark = change->mark < now ? change->mark : now;
    if (coded_find(&change->reading.list, member, &then) && then > mark) {
        mark = then;
    } /* else as it is said, for it is new, or moves on */
    if (coded_put(room, member, mark) && room->n > CODED_IDS_MAX) {
        return ERR_BAD_LIST;
    }
    change->number = now > mark ? now - mark : 0;
    return 0;
}

/* What one id is at, where it is to be known. */
static enum exec_step
read_one(struct session *session, int *err)
{
    struct list_change *change = change_of(session);
    struct list_reading *reading = &change->reading;
    uint64_t then = 0;
    *err = 0;
    if (session->request.op == REQUEST_DELETE && !change->compares) {
        return EXEC_DONE;
    }
    if (reading->get.n == 0) {
        exec_list__want(&change->ref, &change->ref.member, 1, &reading->get);
        if (exec__waits(session->job, &reading->get.call, ask_to_read)) {
            return EXEC_LATER;
        }
    }
    if (exec_list__is_read(&reading->get, err) &&
        coded_find(&reading->list, change->ref.member, &then)) {
        uint64_t now = reading->get.value[0];
        reading->sum = now > then ? now - then : 0;
    }
    return EXEC_DONE;
}

/* Reads what there is, and makes of it what is to be stored, in the room. */
static enum exec_step
sum_up(struct session *session, struct exec_turn *turn, int *err)
{
    struct list_change *change = change_of(session);
    bool has_member = change->ref.has_member;
    enum exec_step step = has_member
        ? read_one(session, err)
        : exec_list__sum(session, turn, &change->ref, &change->reading,
              ask_to_read, change->renews ? &change->work->room : NULL, err);
    if (step != EXEC_DONE) {
        return step;
    }
    if (*err == 0) {
        *err = compare(change);
    }
    if (*err == 0 && has_member) {
        *err = change_one(session);
    }
    exec_list__close(session, &change->reading);
    change->step = LIST_STORE;
    return EXEC_DONE;
}

/* The list that was read goes. */
static int
forget(struct session *session)
{
    const struct list_change *change = change_of(session);
    const struct items_terms terms = {
        .is_hidden = true, .compares = true, .cas = change->item_cas};
    char key[LIST_KEY_BYTES];
    exec_list__key(&change->ref, key);
    return items_delete(session->executor->store->items, key, sizeof key,
        &terms, exec__now_s(session));
}

/* How the list is stored: under the item's cas, where it was read, else by the
 * request's own condition. */
static enum items_op
op_of(struct session *session)
{
    const struct list_change *change = change_of(session);
    if (change->was_absent) {
        return ITEMS_ADD;
    }
    if (change->compares || change->renews || change->ref.has_member) {
        return ITEMS_CAS;
    }
    switch (session->request.op) {
    case REQUEST_ADD:
        return ITEMS_ADD;
    case REQUEST_REPLACE:
        return ITEMS_REPLACE;
    default:
        return ITEMS_SET;
    }
}

/* 0, ERR_NOT_STORED, what items_store_and_report says; -1 to begin anew. */
static int
store(struct session *session)
{
    struct list_change *change = change_of(session);
    const struct coded_room *room = &change->work->room;
    enum items_op op = op_of(session);
    uint64_t now_s = exec__now_s(session);
    struct items_stored stored;
    char key[LIST_KEY_BYTES];
    bool deletes = session->request.op == REQUEST_DELETE;
    bool is_ours = deletes || op == ITEMS_CAS || change->was_absent;
    int err;
    if (deletes && (!change->ref.has_member || room->n == 0)) {
        err = forget(session);
    } else {
        exec_list__key(&change->ref, key);
        struct items_store ask = {.op = op,
            .key = key,
            .key_len = sizeof key,
            .value = (const char *)change->work->bytes,
            .value_len = coded_make(
                room->id, room->count, room->n, change->work->bytes),
            .expiry_s = items_expiry(
                session->request.exptime, now_s, exec__unix_s(session)),
            .cas = change->item_cas,
            .terms = {
                .is_hidden = true, .keeps_expiry = change->ref.has_member}};
        err = items_store_and_report(
            session->executor->store->items, &ask, now_s, &stored);
    }
    if (is_ours &&
        (err == ERR_EXISTS || err == ERR_NOT_FOUND || err == ERR_NOT_STORED)) {
        change->step = LIST_LOOK;
        return ++change->n_tries < LIST_TRIES_MAX ? -1 : ERR_LIST_BUSY;
    }
    return err;
}

enum exec_step
exec_list__resume(
    struct session *session, const char *bytes, struct exec_turn *turn)
{
    struct list_change *change = change_of(session);
    enum exec_step step = EXEC_DONE;
    int err = 0;
    for (;;) {
        switch (change->step) {
        case LIST_READ:
            step = read_ids(session, turn, &err);
            if (step == EXEC_DONE) {
                change->step = change->compares ? LIST_LOOK : LIST_STORE;
            }
            break;
        case LIST_LOOK:
            err = look(session);
            break;
        case LIST_SUM:
            step = sum_up(session, turn, &err);
            break;
        case LIST_STORE:
            err = store(session);
            if (err == 0) {
                return answer_done(session, bytes, turn->out);
            }
            break;
        }
        if (step != EXEC_DONE) {
            return step;
        }
        if (err > 0) {
            return answer_err(session, bytes, err, turn->out);
        }
    }
}

/* What is wrong with the request, whatever the list is. */
static int
check(const struct session *session, const struct key *key)
{
    const struct request *request = &session->request;
    const struct terms *terms = &request->terms;
    bool expires =
        request->exptime != 0 && !key->target.counter->exptime_is_ignored;
    switch (request->op) {
    case REQUEST_TOO_LARGE:
        return ERR_TOO_LARGE;
    case REQUEST_SET:
    case REQUEST_ADD:
    case REQUEST_REPLACE:
    case REQUEST_CAS:
    case REQUEST_DELETE:
        break;
    default:
        return ERR_LIST_OP;
    }
    if (session->executor->rules.no_items &&
        request->op != REQUEST_DELETE) { /* a list is one */
        return ERR_NO_ITEMS;
    }
    if (request->has_tx || request->tx.at != 0) {
        return ERR_LIST_TX;
    }
    if (terms->new_cas != 0) {
        return ERR_OWN_CAS;
    }
    if (terms->outdates && request->op == REQUEST_DELETE) {
        return ERR_NOT_STALE;
    }
    return key->has_member && expires ? ERR_EXPTIME : 0;
}

/* What a change of another server's id is answered with; 0: it is ours. */
static int
owner_fault(struct session *session, uint64_t id)
{
    if (!session->executor->has_others) {
        return 0;
    }
    const struct change change = {
        .id = id, .op = exec__change_op(session->request.op)};
    int err = exec__owner_fault(session, &change);
    if (err != 0) {
        exec__note_other(session, id);
    }
    return err;
}

/* Fills the change from the request: 0, or what is wrong with it. */
static int
fill(struct session *session, const char *bytes, const struct key *key)
{
    const struct request *request = &session->request;
    struct list_change *change = change_of(session);
    struct span value = request->value;
    bool deletes = request->op == REQUEST_DELETE;
    change->ref = exec_list__ref(session, key);
    change->cas = request->terms.cas;
    change->compares = request->op == REQUEST_CAS ||
        (request->terms.compares && request->op != REQUEST_ADD);
    if (deletes) {
        change->step = LIST_LOOK;
        return 0;
    }
    if (key->has_member) {
        change->step = LIST_LOOK;
        return num_parse_u64(bytes + value.at, value.len, &change->mark)
            ? 0
            : ERR_BAD_VALUE;
    }
    change->renews = value.len == 0;
    change->step = change->renews ? LIST_LOOK : LIST_READ;
    return change->renews ? 0 : parse_ids(session, bytes, &change->work->room);
}

enum exec_step
exec_list__begin(struct session *session, const char *bytes,
    const struct key *key, struct exec_turn *turn)
{
    enum exec_step step = exec__settle_all(session, turn);
    if (step != EXEC_DONE) {
        return step;
    }
    int err = check(session, key);
    struct list_work *work = err == 0 ? take_work(session->executor) : NULL;
    struct job *job = work == NULL ? NULL : exec__job(session, JOB_LIST);
    if (job == NULL) {
        free(work);
        return exec__refuse(
            session, err == 0 ? ERR_NO_MEMORY : err, turn->out);
    }
    struct list_change *change = &job->change_of_list;
    memset(change, 0, offsetof(struct list_change, reading));
    change->work = work;
    change->reading.item = NULL;
    change->reading.get.n = 0;
    exec__count(
        session, METRIC_cmd_set, request_is_storage(session->request.op));
    err = owner_fault(session, key->id);
    if (err == 0 && key->has_member) {
        err = owner_fault(session, key->member);
    }
    if (err == 0) {
        err = fill(session, bytes, key);
    }
    return err == 0 ? exec_list__resume(session, bytes, turn)
                    : answer_err(session, bytes, err, turn->out);
}

int
exec_list__check(
    const struct schema_counter *counter, const struct change *change)
{
    for (unsigned c = 0; c < counter->n_columns; c++) {
        const struct schema_column *column = &counter->column[c];
        if (column->kind != SCHEMA_FOLLOWS) {
            continue;
        }
        for (unsigned i = 0; i < change->n_columns; i++) {
            if (change->serial[i] == column->serial &&
                change->operand[i] != 0) {
                return ERR_LIST_OP;
            }
        }
    }
    return 0;
}
