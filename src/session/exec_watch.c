/* SPDX-License-Identifier: BSD-3-Clause */
/* The events of commands, as memcached has them: each look for an item is an
 * item_get, also the one before it is stored, counted or deleted; each store,
 * also one that is refused, an item_store; each delete that finds it, a
 * deleted. An item that has expired is not found here.
 *
 * Of a cell or record, class 0: a get is an item_get, with the length of what
 * was answered as its size; a change an item_store, whose cmd may be incr or
 * decr as well, or a deleted; to mark all as read is a set of the mark. The key
 * of a change is ID.SUFFIX, ID.SUFFIX:MEMBER or ID.COUNTER, in whichever way it
 * was named. */
#include "session/exec_watch.h"

#include "base/err.h"
#include "base/num.h"
#include "proto/reply.h"
#include "session/exec_admin.h"

#include <string.h>

static size_t
digits_of(uint64_t number)
{
    char text[NUM_U64_DIGITS_MAX];
    return num_format_u64(number, text);
}

static void
tell(struct session *session, const struct watch_event *event, const char *key)
{
    if ((session->executor->watched & watch__kind(event)) != 0) {
        watch_report(session->executor->watch, event, key);
    }
}

static void
tell_get(struct session *session, const char *key, size_t key_len,
    bool is_found, unsigned class_, size_t size)
{
    tell(session,
        &(struct watch_event){.type = WATCH_ITEM_GET,
            .fd = session->fd,
            .status = is_found ? "found" : "not_found",
            .class_ = (uint8_t)class_,
            .key_len = (uint8_t)key_len,
            .size = size},
        key);
}

/* The seconds that an item of that expiry has; 0 where it does not expire, -1
 * where it has. */
static int64_t
ttl_of(struct session *session, uint64_t expiry_s)
{
    int64_t left_s = (int64_t)expiry_s - (int64_t)exec__now_s(session);
    return expiry_s == ITEMS_NEVER ? 0 : left_s > 0 ? left_s : -1;
}

void
exec__watch_before(
    struct session *session, const char *bytes, struct exec_watched *seen)
{
    struct executor *executor = session->executor;
    struct items *items = executor->store->items;
    struct schema_word key = exec__key(session, bytes);
    struct items_terms terms = {.inspects = true};
    struct items_found found;
    *seen = (struct exec_watched){
        .key_len = key.len < sizeof seen->key ? key.len : sizeof seen->key};
    memcpy(seen->key, key.text, seen->key_len);
    items_look(items, key.text, key.len, &terms, exec__now_s(session), &found);
    if (found.item != NULL) {
        seen->is_there = true;
        seen->value_len = found.item->value_len;
        seen->ttl_s = ttl_of(session, found.expiry_s);
        seen->class_ = items_class_of(items, key.len, seen->value_len);
        items_unpin(items, found.item);
    }
    executor->item_err = 0;
    executor->item_is_new = false;
    executor->item_value_len = 0;
    if (session->request.op != REQUEST_TOO_LARGE) {
        tell_get(session, seen->key, seen->key_len, seen->is_there,
            seen->class_, seen->value_len);
    }
}

static const char *
status_of(int err)
{
    switch (err) {
    case 0:
        return "stored";
    case ERR_EXISTS:
        return "exists";
    case ERR_NOT_FOUND:
        return "not_found";
    case ERR_TOO_LARGE:
        return "too_large";
    case ERR_NO_MEMORY:
        return "no_memory";
    default:
        return "not_stored";
    }
}

static const char *
name_of(enum request_op op)
{
    switch (op) {
    case REQUEST_ADD:
        return "add";
    case REQUEST_REPLACE:
        return "replace";
    case REQUEST_APPEND:
        return "append";
    case REQUEST_PREPEND:
        return "prepend";
    case REQUEST_CAS:
        return "cas";
    default:
        return "set";
    }
}

static void
tell_store(struct session *session, const struct exec_watched *seen,
    const char *command, size_t size, int64_t ttl_s)
{
    struct executor *executor = session->executor;
    tell(session,
        &(struct watch_event){.type = WATCH_ITEM_STORE,
            .fd = session->fd,
            .status = status_of(executor->item_err),
            .command = command,
            .class_ = (uint8_t)items_class_of(
                executor->store->items, seen->key_len, size),
            .key_len = (uint8_t)seen->key_len,
            .ttl_s = ttl_s,
            .size = size},
        seen->key);
}

/* A storage command has been answered. */
static void
watch_store(struct session *session, const struct exec_watched *seen)
{
    const struct request *request = &session->request;
    const struct executor *executor = session->executor;
    bool joins =
        request->op == REQUEST_APPEND || request->op == REQUEST_PREPEND;
    uint64_t expiry_s = items_expiry(
        request->exptime, exec__now_s(session), exec__unix_s(session));
    bool is_done = executor->item_err == 0;
    tell_store(session, seen, name_of(request->op),
        is_done ? executor->item_value_len : request->value.len,
        joins ? (is_done ? seen->ttl_s : 0) : ttl_of(session, expiry_s));
}

void
exec__watch_after(struct session *session, const struct exec_watched *seen)
{
    const struct request *request = &session->request;
    const struct executor *executor = session->executor;
    switch (request->op) {
    case REQUEST_TOO_LARGE:
        tell_store(session, seen, name_of(request->stored_as), 0, 0);
        tell_get(session, seen->key, seen->key_len, seen->is_there,
            seen->class_, seen->value_len);
        break;
    case REQUEST_DELETE:
        if (executor->item_err == 0 && !request->terms.outdates) {
            tell(session,
                &(struct watch_event){.type = WATCH_DELETED,
                    .command = request->proto == PROTO_META ? "md" : "delete",
                    .class_ = (uint8_t)seen->class_,
                    .key_len = (uint8_t)seen->key_len,
                    .size = seen->value_len},
                seen->key);
        }
        break;
    case REQUEST_INCR:
    case REQUEST_DECR:
        if (executor->item_err == 0 && executor->item_is_new) {
            tell_store(
                session, seen, "add", digits_of(request->terms.initial), 0);
        }
        break;
    default:
        if (request_is_storage(request->op)) {
            watch_store(session, seen);
        }
        break;
    }
}

/* ---- cells ---- */

/* The digits of a slot's values as they were answered; 0 where it is a miss. */
static size_t
size_of(const struct job *job, const struct slot *slot)
{
    size_t size = 0;
    for (unsigned i = 0; i < slot->n_cells; i++) {
        size += (i > 0) + digits_of(job->get.value[slot->first + i]);
    }
    return size;
}

static bool
is_hit(const struct job *job, const struct slot *slot)
{
    bool has_some = !slot->absent_is_miss;
    for (unsigned i = 0; i < slot->n_cells; i++) {
        uint8_t state = job->get.state[slot->first + i];
        if (state == CELL_GONE || state == CELL_UNREADABLE) {
            return false;
        }
        has_some = has_some || state == CELL_SET;
    }
    return slot->n_cells > 0 && has_some;
}

static void
tell_item(struct session *session, const char *key, size_t key_len)
{
    struct items *items = session->executor->store->items;
    struct items_terms terms = {.inspects = true};
    struct items_found found;
    items_look(items, key, key_len, &terms, exec__now_s(session), &found);
    bool is_found = found.item != NULL;
    size_t size = is_found ? found.item->value_len : 0;
    tell_get(session, key, key_len, is_found,
        is_found ? items_class_of(items, key_len, size) : 0, size);
    if (is_found) {
        items_unpin(items, found.item);
    }
}

void
exec__watch_slots(struct session *session, const char *base, unsigned first)
{
    const struct job *job = session->job;
    for (unsigned i = first; i < job->formatted; i++) {
        const struct slot *slot = &job->slot[i];
        const char *key = base + slot->at;
        if (slot->kind == SLOT_ITEM) {
            tell_item(session, key, slot->len);
        } else if (slot->kind != SLOT_NOTHING) {
            bool hit = is_hit(job, slot);
            tell_get(
                session, key, slot->len, hit, 0, hit ? size_of(job, slot) : 0);
        }
    }
}

static const char *
change_name(enum change_op op)
{
    switch (op) {
    case CHANGE_ADD:
    case CHANGE_MARK_ADD:
    case CHANGE_MEMBER_ADD:
        return "add";
    case CHANGE_REPLACE:
    case CHANGE_MARK_REPLACE:
    case CHANGE_MEMBER_REPLACE:
        return "replace";
    case CHANGE_CAS:
    case CHANGE_MARK_CAS:
    case CHANGE_MEMBER_CAS:
        return "cas";
    case CHANGE_INCR:
    case CHANGE_MARK_INCR:
    case CHANGE_MEMBER_INCR:
        return "incr";
    case CHANGE_DECR:
    case CHANGE_MARK_DECR:
    case CHANGE_MEMBER_DECR:
        return "decr";
    default:
        return "set";
    }
}

/* The id that a change is of, as it stands in a key. */
static size_t
put_id(const struct schema_counter *counter, const struct change *change,
    char *out)
{
    if (!counter->key_is_text) {
        return num_format_u64(change->id, out);
    }
    if (change->name == NULL) {
        return own_id_name(change->id, out);
    }
    memcpy(out, change->name->bytes, change->name->len);
    return change->name->len;
}

/* ID.SUFFIX, ID.SUFFIX:MEMBER or ID.COUNTER; 0 where that has been dropped. */
static size_t
key_of(struct session *session, const struct change *change,
    char key[WATCH_LINE_BYTES])
{
    const struct schema_counter *counter =
        schema_counter_at(exec__schema(session), change->counter);
    const struct schema_name *name = NULL;
    bool is_of_members =
        false; /* which may name the number that counts them */
    if (counter == NULL) {
        return 0;
    }
    for (unsigned i = 0; i < counter->n_columns; i++) {
        const struct schema_column *column = &counter->column[i];
        if (column->serial == change->serial[0]) {
            name = column->suffix.len > 0 ? &column->suffix : &column->name;
            is_of_members = !schema_is_in_record(column);
        }
    }
    if (change->n_columns > 1 && !is_of_members) {
        name = &counter->name;
    }
    if (name == NULL) {
        return 0;
    }
    size_t n = put_id(counter, change, key);
    key[n++] = '.';
    memcpy(key + n, name->text, name->len);
    n += name->len;
    if (change_is_of_member(change)) {
        key[n++] = ':';
        n += num_format_u64(change->member.member, key + n);
    }
    return n;
}

void
exec__watch_change(struct session *session, const struct change *change)
{
    char key[WATCH_LINE_BYTES];
    size_t size = 0;
    size_t key_len = key_of(session, change, key);
    bool deletes = change->op == CHANGE_DELETE ||
        change->op == CHANGE_MARK_DELETE || change->op == CHANGE_MEMBER_DELETE;
    if (key_len == 0 || (deletes && change->err != 0)) {
        return;
    }
    for (unsigned i = 0; change->err == 0 && i < change->n_columns; i++) {
        size += (i > 0) + digits_of(change->value[i]);
    }
    tell(session,
        &(struct watch_event){
            .type = deletes ? WATCH_DELETED : WATCH_ITEM_STORE,
            .fd = session->fd,
            .status = status_of(change->err),
            .command = deletes ? "delete" : change_name(change->op),
            .key_len = (uint8_t)key_len,
            .size = deletes ? 0 : size},
        key);
}
