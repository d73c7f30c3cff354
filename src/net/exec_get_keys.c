/* SPDX-License-Identifier: BSD-3-Clause */
/* Retrieval: from the words of requests to slots, and cells of a batch for the
 * store. Each word is gone over once. */
#include "base/assert.h"
#include "net/exec_get.h"

#include <assert.h>

static_assert(TEXT_KEY_MAX <= UINT8_MAX, "see struct slot");

bool
exec_get__is_full(const struct job *job)
{
    return job->n_slots == EXEC_SLICE_KEYS_MAX ||
        job->get.n + SCHEMA_COLUMNS_MAX > STORE_GET_MAX;
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

/* The slot of a key of len bytes at `at`, with its cells. */
static inline struct slot *
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
        add_cell(job, key->id, counter, key->target.column);
        return slot;
    }
    slot->kind = SLOT_RECORD;
    slot->n_cells = counter->n_columns;
    for (unsigned i = 0; i < counter->n_columns; i++) {
        add_cell(job, key->id, counter, &counter->column[i]);
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

/* What the job's words are read with, in the order in which they stand. */
struct keys {
    const char *at;
    const char *words_end;
    const char *end;                      /* see exec_turn */
    struct key_names *names;              /* NULL: of a dialect get of ... */
    const struct schema_counter *counter; /* ... this one; NULL: dropped */
};

/* Reads the key at keys->at, of which there is a first byte: its length. It is
 * not told what too long a key is, or one that a dialect get does not have. */
static inline size_t
read_key(const struct keys *keys, struct key *key, bool *is_known)
{
    size_t left = (size_t)(keys->words_end - keys->at);
    *is_known = true;
    if (keys->names != NULL) {
        uint32_t len = key_names_read(
            keys->names, keys->at, keys->words_end, keys->end, key);
        if (__builtin_expect(len != 0, 1)) {
            return len;
        }
    }
    const char *space = memchr(keys->at, ' ', left);
    size_t len = space == NULL ? left : (size_t)(space - keys->at);
    if (len > TEXT_KEY_MAX) {
        *is_known = false;
    } else if (keys->names != NULL) {
        key_names_parse(keys->names, keys->at, len, key);
    } else {
        *is_known = keys->counter != NULL &&
            key_parse_dialect(keys->counter, keys->at, len, key);
    }
    return len;
}

bool
exec_get__gather(struct session *session, const char *base, const char *end)
{
    struct job *job = session->job;
    bool is_dialect = job->op == REQUEST_COUNTER_GET;
    bool shows_cas =
        session->request.op == REQUEST_GETS || job->op == REQUEST_GATS;
    unsigned first = job->n_slots;
    struct keys keys = {.at = base + job->words.at, .end = end};
    keys.words_end = keys.at + job->words.len;
    if (is_dialect) {
        keys.counter = exec_get__counter(session, base);
    } else {
        keys.names = &session->executor->names;
        key_names_use(keys.names, exec__schema(session));
    }
    for (;;) {
        struct key key;
        bool is_known;
        while (keys.at < keys.words_end && *keys.at == ' ') {
            keys.at++;
        }
        if (keys.at == keys.words_end) {
            end_words(job, first);
            return true;
        }
        if (exec_get__is_full(job)) {
            break;
        }
        size_t len = read_key(&keys, &key, &is_known);
        if (__builtin_expect(is_known, 1)) {
            add_slot(job, (size_t)(keys.at - base), len, &key, shows_cas);
        } else if (!is_dialect) {
            return false;
        }
        keys.at += len;
    }
    job->words.at = (uint32_t)(keys.at - base);
    job->words.len = (uint32_t)(keys.words_end - keys.at);
    return true;
}
