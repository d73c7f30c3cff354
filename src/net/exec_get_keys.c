/* SPDX-License-Identifier: BSD-3-Clause */
/* Retrieval: from the words of requests to slots, and cells of a batch for the
 * store. Each word is gone over once. */
#include "base/assert.h"
#include "net/exec_get.h"

#include <assert.h>

static_assert(TEXT_KEY_MAX <= UINT8_MAX, "see struct slot");

/* The slot of a key of len bytes at `at`, with its cells. */
static struct slot *
add_slot(struct job *job, size_t at, size_t len, const struct key *key,
    bool shows_cas)
{
    struct slot *slot = &job->slot[job->n_slots++];
    *slot = (struct slot){.at = (uint32_t)at,
        .first = (uint16_t)job->get.n,
        .len = (uint8_t)len,
        .kind = SLOT_ITEM,
        .shows_cas = shows_cas};
    job->key_bytes += len;
    if (key->kind == KEY_ITEM) {
        return slot;
    }
    const struct schema_counter *counter = key->target.counter;
    slot->absent_is_miss = counter->absent_is_miss;
    if (key->kind == KEY_CELL) {
        slot->kind = SLOT_CELL;
        slot->n_cells = 1;
        slot->flags = key->target.column->flags;
        job->get.key[job->get.n++] = exec_get__cell(key->id, &key->target);
        return slot;
    }
    slot->kind = SLOT_RECORD;
    slot->n_cells = counter->n_columns;
    for (unsigned i = 0; i < counter->n_columns; i++) {
        const struct schema_target target = {counter, &counter->column[i]};
        job->get.key[job->get.n++] = exec_get__cell(key->id, &target);
    }
    return slot;
}

void
exec_get__add_single(struct session *session, const struct key *key)
{
    const struct request *request = &session->request;
    struct job *job = session->job;
    uint32_t shift = (uint32_t)job->request_bytes;
    struct slot *slot = add_slot(job, shift + request->key.at,
        request->key.len, key, key->kind == KEY_CELL);
    job->single[slot - job->slot] = echo_of(request, shift);
    slot->is_last = true;
    slot->kind = SLOT_SINGLE;
}

/* All keys of the request have slots: the last one ends it. */
static void
end_words(struct job *job, unsigned first)
{
    if (job->n_slots == first) { /* dropped since they were checked */
        job->slot[job->n_slots++] = (struct slot){.kind = SLOT_NOTHING};
    }
    job->slot[job->n_slots - 1].is_last = true;
    job->words.len = 0;
}

/* What the job's words are read with. */
struct reading {
    const char *at;                       /* the next byte */
    const char *words_end;                /* where the words end */
    const char *end;                      /* see exec_turn */
    struct key_names *names;              /* NULL: of a dialect get ... */
    const struct schema_counter *counter; /* ... of this; NULL: dropped */
    bool shows_cas;
};

static inline void
skip_spaces(struct reading *reading)
{
    while (reading->at < reading->words_end && *reading->at == ' ') {
        reading->at++;
    }
}

/* Reads keys of cells, as they mostly are, up to one that may be something
 * else. */
static inline void
take_cells(struct job *job, struct reading *reading, const char *base)
{
    unsigned n = job->n_slots;
    unsigned n_cells = job->get.n;
    size_t key_bytes = job->key_bytes;
    for (; n < EXEC_SLICE_KEYS_MAX &&
         n_cells + SCHEMA_COLUMNS_MAX <= STORE_GET_MAX;
         n++, n_cells++) {
        struct key key;
        skip_spaces(reading);
        if (reading->at == reading->words_end) {
            break;
        }
        uint32_t len = key_names_read(reading->names, reading->at,
            reading->words_end, reading->end, &key);
        if (len == 0 || key.kind != KEY_CELL) {
            break;
        }
        job->get.key[n_cells] = exec_get__cell(key.id, &key.target);
        job->slot[n] = (struct slot){.at = (uint32_t)(reading->at - base),
            .flags = key.target.column->flags,
            .first = (uint16_t)n_cells,
            .n_cells = 1,
            .len = (uint8_t)len,
            .kind = SLOT_CELL,
            .absent_is_miss = key.target.counter->absent_is_miss,
            .shows_cas = reading->shows_cas};
        key_bytes += len;
        reading->at += len;
    }
    job->n_slots = n;
    job->get.n = n_cells;
    job->key_bytes = key_bytes;
}

/* Reads the key at reading->at, whatever it is, and makes its slot; a word
 * that a dialect get does not have is skipped. False where it is too long. */
static bool
take_any(struct job *job, struct reading *reading, const char *base)
{
    struct key key;
    size_t left = (size_t)(reading->words_end - reading->at);
    const char *space = memchr(reading->at, ' ', left);
    size_t len = space == NULL ? left : (size_t)(space - reading->at);
    bool is_known = true;
    if (len > TEXT_KEY_MAX) {
        return false;
    }
    if (reading->names != NULL) {
        key_names_parse(reading->names, reading->at, len, &key);
    } else {
        is_known = reading->counter != NULL &&
            key_parse_dialect(reading->counter, reading->at, len, &key);
    }
    if (is_known) {
        add_slot(
            job, (size_t)(reading->at - base), len, &key, reading->shows_cas);
    }
    reading->at += len;
    return true;
}

bool
exec_get__gather(struct session *session, const char *base, const char *end)
{
    struct job *job = session->job;
    unsigned first = job->n_slots;
    const char *at = base + job->words.at;
    struct reading reading = {.at = at,
        .words_end = at + job->words.len,
        .end = end,
        .shows_cas = session->request.op == REQUEST_GETS ||
            session->request.op == REQUEST_GATS};
    if (job->op == REQUEST_COUNTER_GET) {
        reading.counter = exec_get__counter(session, base);
    } else {
        reading.names = &session->executor->names;
        key_names_use(reading.names, exec__schema(session));
    }
    for (;;) {
        if (reading.names != NULL) {
            take_cells(job, &reading, base);
        }
        skip_spaces(&reading);
        if (reading.at == reading.words_end) {
            end_words(job, first);
            return true;
        }
        if (exec_get__is_full(job)) {
            break;
        }
        if (!take_any(job, &reading, base)) {
            return false;
        }
    }
    job->words.at = (uint32_t)(reading.at - base);
    job->words.len = (uint32_t)(reading.words_end - reading.at);
    return true;
}
