/* SPDX-License-Identifier: BSD-3-Clause */
/* Retrieval: get, gets, gat, gats, the dialect's get, and of a cell also touch,
 * and what the meta and binary protocols look up.
 *
 * All keys are checked before anything is sent, EXEC_CHECK_KEYS_MAX at a time.
 * Then slices of at most
 * EXEC_SLICE_KEYS_MAX keys are gathered: each key becomes a slot, each cell it
 * names a place in one batch for the store. When the store has answered, the
 * slots are formatted in order; items are looked up then. Between slices, and
 * between slots once the reply buffer is full, the turn can end, so neither
 * the reply buffer nor the time of a turn grows with the number of keys. */
#include "base/assert.h"
#include "base/err.h"
#include "base/num.h"
#include "net/exec_admin.h"
#include "proto/reply.h"

/* A record as text: 16 numbers with a space each. */
enum { RECORD_TEXT_MAX = SCHEMA_COLUMNS_MAX * (NUM_U64_DIGITS_MAX + 1) };

static bool
wants_cas(const struct request *request)
{
    return request->op == REQUEST_GETS || request->op == REQUEST_GATS;
}

static bool
touches(const struct request *request)
{
    return request->op == REQUEST_GAT || request->op == REQUEST_GATS ||
        request->op == REQUEST_TOUCH || request->terms.touches;
}

/* True for a request with one key, whose answer is one struct answer. */
static bool
is_single(const struct request *request)
{
    return request->op == REQUEST_TOUCH || request->op == REQUEST_LOOK ||
        request->op == REQUEST_INSPECT;
}

/* One of the request's keys, as the client means it. */
static struct schema_word
key_text(struct session *session, const char *bytes, struct span span)
{
    return is_single(&session->request)
        ? exec__key(session, bytes)
        : (struct schema_word){bytes + span.at, span.len};
}

/* The counter of a dialect get; NULL where it is another request, or where
 * the counter has been dropped since. */
static const struct schema_counter *
dialect_counter(struct session *session, const char *bytes)
{
    struct span name = session->request.key;
    if (session->request.op != REQUEST_COUNTER_GET) {
        return NULL;
    }
    return schema_counter(exec__schema(session), bytes + name.at, name.len);
}

static int
check_dialect_key(
    const struct schema_counter *counter, const char *text, size_t len)
{
    struct key key;
    if (!key_parse_dialect(counter, text, len, &key)) {
        return key_dialect_fault(text, len);
    }
    return counter->n_columns == 0 ? ERR_NO_COLUMNS : 0;
}

/* A cell never expires: an exptime is refused unless the counter says to
 * ignore it. */
static int
check_exptime(const struct schema *schema, const char *text, size_t len)
{
    struct key key;
    key_parse(schema, text, len, &key);
    return key.kind == KEY_ITEM || key.target.counter->exptime_is_ignored
        ? 0
        : ERR_EXPTIME;
}

/* True where keys can be wrong. */
static bool
needs_check(const struct request *request)
{
    return request->words.len > TEXT_KEY_MAX ||
        request->op == REQUEST_COUNTER_GET ||
        (touches(request) && request->exptime != 0);
}

/* Looks at one key: 0, or the ERR_ to answer. counter: of a dialect get. */
static int
check_key(struct session *session, const struct schema_counter *counter,
    const char *text, size_t len)
{
    const struct request *request = &session->request;
    if (len > TEXT_KEY_MAX) {
        return ERR_BAD_FORMAT;
    }
    if (request->op == REQUEST_COUNTER_GET) {
        return check_dialect_key(counter, text, len);
    }
    return touches(request) && request->exptime != 0
        ? check_exptime(exec__schema(session), text, len)
        : 0;
}

/* Looks at some of the keys that job->words has; after the last one the job
 * is to gather from the first. 0, or the ERR_ to answer. */
static int
check_keys(struct session *session, const char *bytes)
{
    struct job *job = session->job;
    const struct schema_counter *counter = dialect_counter(session, bytes);
    struct words words = words_of(bytes, job->words);
    struct span key;
    if (session->request.op == REQUEST_COUNTER_GET && counter == NULL) {
        return ERR_GONE; /* dropped since the line was parsed */
    }
    for (unsigned i = 0; i < EXEC_CHECK_KEYS_MAX; i++) {
        if (!words_next(&words, &key)) {
            job->words = session->request.words;
            job->stage = JOB_GET_GATHER;
            return job->has_keys ? 0 : ERR_BAD_ID;
        }
        struct schema_word text = key_text(session, bytes, key);
        int err = check_key(session, counter, text.text, text.len);
        if (err != 0) {
            return err;
        }
        job->has_keys = true;
    }
    job->words = words_rest(&words);
    return 0;
}

static void
add_cell(struct job *job, uint64_t id, const struct schema_counter *counter,
    const struct schema_column *column)
{
    job->get.key[job->get.n++] = (struct cell_key){.id = id,
        .serial = column->serial,
        .counter = counter->slot,
        .column = column->slot};
}

static void
add_slot(struct job *job, struct span text, const struct key *key)
{
    struct slot *slot = &job->slot[job->n_slots++];
    *slot = (struct slot){.key = text, .first = (uint16_t)job->get.n};
    if (key->kind == KEY_ITEM) {
        return;
    }
    const struct schema_counter *counter = key->target.counter;
    slot->absent_is_miss = counter->absent_is_miss;
    if (key->kind == KEY_CELL) {
        slot->n_cells = 1;
        slot->flags = key->target.column->flags;
        add_cell(job, key->id, counter, key->target.column);
        return;
    }
    slot->is_record = true;
    slot->n_cells = counter->n_columns;
    for (unsigned i = 0; i < counter->n_columns; i++) {
        add_cell(job, key->id, counter, &counter->column[i]);
    }
}

/* Takes the next slice of keys. */
static void
gather(struct session *session, const char *bytes)
{
    struct job *job = session->job;
    const struct schema *schema = exec__schema(session);
    const struct schema_counter *counter = dialect_counter(session, bytes);
    bool is_dialect = session->request.op == REQUEST_COUNTER_GET;
    struct words words = words_of(bytes, job->words);
    struct span text;
    job->n_slots = 0;
    job->formatted = 0;
    job->get.n = 0;
    while (job->n_slots < EXEC_SLICE_KEYS_MAX &&
        job->get.n + SCHEMA_COLUMNS_MAX <= STORE_GET_MAX &&
        words_next(&words, &text)) {
        struct key key;
        if (!is_dialect) {
            struct schema_word word = key_text(session, bytes, text);
            key_parse(schema, word.text, word.len, &key);
        } else if (counter == NULL ||
            !key_parse_dialect(counter, bytes + text.at, text.len, &key)) {
            continue; /* dropped since the keys were checked */
        }
        add_slot(job, text, &key);
    }
    job->words = words_rest(&words);
}

/* True where a cell of the slot could not be read. */
static bool
is_unreadable(const struct job *job, const struct slot *slot)
{
    for (unsigned i = slot->first; i < slot->first + slot->n_cells; i++) {
        if (job->get.state[i] == CELL_UNREADABLE) {
            return true;
        }
    }
    return false;
}

/* The values of the slot's columns, without those that have been dropped since
 * the key was parsed, to value[SCHEMA_COLUMNS_MAX]; how many. 0 where the slot
 * is answered as a miss. */
static unsigned
take_values(const struct job *job, const struct slot *slot, uint64_t *value)
{
    bool all_default = true;
    unsigned n = 0;
    for (unsigned i = slot->first; i < slot->first + slot->n_cells; i++) {
        if (job->get.state[i] != CELL_GONE) {
            value[n++] = job->get.value[i];
            all_default = all_default && job->get.state[i] == CELL_DEFAULT;
        }
    }
    return all_default && slot->absent_is_miss ? 0 : n;
}

/* Answers a request that has this one key; n: how many values there are. */
static void
answer_single(struct session *session, const char *bytes,
    const struct slot *slot, const uint64_t *value, unsigned n,
    struct buf *out)
{
    const struct request *request = &session->request;
    struct echo echo = echo_of(request, 0);
    char text[RECORD_TEXT_MAX];
    size_t len = reply_join_u64(value, n, text);
    struct answer answer = {.kind = ANSWER_VALUE,
        .value = text,
        .value_len = len,
        .cas = n == 0 || slot->is_record ? 0 : cell_cas(value[0]),
        .flags = slot->flags,
        .item_bytes = exec__item_bytes(slot->key.len, len, slot->flags),
        .ttl_s = ANSWER_NEVER,
        .old_ttl_s = ANSWER_NEVER,
        .was_fetched = true};
    if (n == 0) {
        answer.kind = ANSWER_MISS;
    } else if (request->op == REQUEST_TOUCH) {
        answer.kind = ANSWER_TOUCHED;
    } else if (request->op == REQUEST_INSPECT) {
        answer.kind = ANSWER_ABOUT;
    }
    answer_put(&echo, bytes, &answer, out);
}

static bool
format_cells(struct session *session, const char *bytes,
    const struct slot *slot, struct buf *out)
{
    const char *key = bytes + slot->key.at;
    uint64_t value[SCHEMA_COLUMNS_MAX];
    if (is_unreadable(session->job, slot)) { /* told at the end */
        session->job->has_unreadable = true;
        return false;
    }
    unsigned n = take_values(session->job, slot, value);
    if (is_single(&session->request)) {
        answer_single(session, bytes, slot, value, n, out);
        return n > 0;
    }
    if (n == 0) {
        return false;
    }
    uint64_t cas = slot->is_record ? 0 : cell_cas(value[0]);
    const uint64_t *cas_shown = wants_cas(&session->request) ? &cas : NULL;
    if (!slot->is_record) {
        reply_value_u64(
            out, key, slot->key.len, slot->flags, value[0], cas_shown);
        return true;
    }
    char text[RECORD_TEXT_MAX];
    size_t len = reply_join_u64(value, n, text);
    reply_value(out, key, slot->key.len, slot->flags, text, len, cas_shown);
    return true;
}

static bool
format_item(struct session *session, const char *bytes,
    const struct slot *slot, struct buf *out)
{
    struct items *items = session->executor->store->items;
    const struct request *request = &session->request;
    const char *key = bytes + slot->key.at;
    if (is_single(request)) { /* it was a cell, and has been dropped since */
        answer_single(session, bytes, slot, NULL, 0, out);
        return false;
    }
    uint64_t now_s = exec__now_s(session);
    uint64_t expiry_s = touches(request)
        ? items_expiry(request->exptime, now_s, exec__unix_s(session))
        : ITEMS_NEVER; /* not looked at */
    const struct item *item = items_get(
        items, key, slot->key.len, now_s, touches(request), expiry_s);
    exec__count_prefix(session, (struct schema_word){key, slot->key.len},
        &(struct prefix_counts){.get = 1, .hit = item != NULL});
    if (item == NULL) {
        return false;
    }
    uint64_t cas = session->executor->rules.no_cas ? 0 : item->cas;
    reply_value(out, key, slot->key.len, item->flags, item->value,
        item->value_len, wants_cas(request) ? &cas : NULL);
    items_unpin(items, item);
    return true;
}

static void
count_keys(struct session *session, unsigned n, unsigned hits)
{
    if (session->request.op == REQUEST_INSPECT) {
        exec__count(session, METRIC_cmd_meta, n);
    } else if (touches(&session->request)) {
        exec__count(session, METRIC_cmd_touch, n);
        exec__count(session, METRIC_touch_hits, hits);
        exec__count(session, METRIC_touch_misses, n - hits);
    } else {
        exec__count(session, METRIC_cmd_get, n);
        exec__count(session, METRIC_get_hits, hits);
        exec__count(session, METRIC_get_misses, n - hits);
    }
}

/* Answers slots until the slice is done or the reply buffer full: true where
 * it is done. */
static bool
format(struct session *session, const char *bytes, struct exec_turn *turn)
{
    struct job *job = session->job;
    unsigned first = job->formatted;
    unsigned hits = 0;
    while (job->formatted < job->n_slots && turn->out->len < turn->mark) {
        const struct slot *slot = &job->slot[job->formatted++];
        bool is_cell = slot->n_cells > 0 || slot->is_record;
        hits += is_cell ? format_cells(session, bytes, slot, turn->out)
                        : format_item(session, bytes, slot, turn->out);
    }
    count_keys(session, job->formatted - first, hits);
    return job->formatted == job->n_slots;
}

static enum store_answer
ask(struct job *job)
{
    return store_get(job->session->executor->store, &job->get);
}

/* Takes and asks for the next slice: true where the answer comes later. */
static bool
next_slice(struct session *session, const char *bytes)
{
    struct job *job = session->job;
    gather(session, bytes);
    job->stage = JOB_GET_FORMAT;
    exec__count(session, METRIC_cell_gets, job->get.n);
    return job->get.n > 0 && exec__waits(job, &job->get.call, ask);
}

/* Ends the turn for this request, or takes one from the turn's budget. */
static bool
must_yield(struct exec_turn *turn)
{
    if (*turn->budget == 0) {
        return true;
    }
    (*turn->budget)--;
    return false;
}

/* True while there are keys to gather. */
static bool
has_more(const struct job *job, const char *bytes)
{
    struct words words = words_of(bytes, job->words);
    struct span key;
    return words_next(&words, &key);
}

enum exec_step
exec__get_resume(
    struct session *session, const char *bytes, struct exec_turn *turn)
{
    struct job *job = session->job;
    while (job->stage == JOB_GET_CHECK) {
        int err = check_keys(session, bytes);
        if (err != 0) {
            return exec__refuse(session, err, turn->out);
        }
        if (job->stage == JOB_GET_CHECK && must_yield(turn)) {
            return EXEC_YIELD;
        }
    }
    for (;;) {
        if (job->stage == JOB_GET_GATHER && next_slice(session, bytes)) {
            return EXEC_LATER;
        }
        if (!format(session, bytes, turn)) {
            return EXEC_FULL;
        }
        job->stage = JOB_GET_GATHER;
        if (!has_more(job, bytes)) {
            break;
        }
        if (must_yield(turn)) {
            return EXEC_YIELD;
        }
    }
    if (job->has_unreadable) { /* in the place of END: no number is made up */
        return exec__refuse(session, ERR_COLD_READ, turn->out);
    }
    if (!is_single(&session->request)) {
        reply_line(turn->out, "END");
    }
    return exec__done(session);
}

enum exec_step
exec__get_begin(
    struct session *session, const char *bytes, struct exec_turn *turn)
{
    struct request *request = &session->request;
    if (is_single(request)) {
        request->words = request->key;
    }
    struct job *job = exec__job(
        session, needs_check(request) ? JOB_GET_CHECK : JOB_GET_GATHER);
    if (job == NULL && is_single(request)) {
        return exec__refuse(session, ERR_NO_MEMORY, turn->out);
    }
    if (job == NULL) {
        reply_line(
            turn->out, "SERVER_ERROR out of memory writing get response");
        return EXEC_DONE;
    }
    job->words = request->words;
    job->has_keys = false;
    job->has_unreadable = false;
    return exec__get_resume(session, bytes, turn);
}
