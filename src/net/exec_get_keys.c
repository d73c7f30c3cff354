/* SPDX-License-Identifier: BSD-3-Clause */
/* Retrieval: from the words of requests to slots, and cells of a batch for the
 * store. Each word is gone over once. */
#include "base/assert.h"
#include "net/exec_get.h"

#include <assert.h>
#include <string.h>

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
    struct exec_forms *forms;             /* of names */
    bool shows_cas;
};

static inline void
skip_spaces(struct reading *reading)
{
    while (reading->at < reading->words_end && *reading->at == ' ') {
        reading->at++;
    }
}

/* What cells of a name become; a longer name than a chunk is not foreseen. */
static void
make_form(
    uint64_t word, const struct schema_target *target, struct exec_form *form)
{
    unsigned len = chunk_count_printed(word);
    *form = (struct exec_form){.mask = 0, .word = 1, .next = form};
    if (len == 0 || len == CHUNK_BYTES || target->column == NULL) {
        return;
    }
    form->word = word;
    form->mask = chunk_first(UINT64_MAX, len);
    form->slot = (struct slot){.flags = target->column->flags,
        .n_cells = 1,
        .len = (uint8_t)(1 + len),
        .kind = SLOT_CELL,
        .absent_is_miss = target->counter->absent_is_miss};
    form->cell = exec_get__cell(0, target);
}

/* Sees to it that forms are those of names. */
static void
use_forms(struct exec_forms *forms, const struct key_names *names)
{
    if (forms->n_changes == names->n_changes && forms->next != NULL) {
        return;
    }
    forms->n_changes = names->n_changes;
    forms->next = &forms->form[0];
    for (unsigned i = 0; i < KEY_NAMES; i++) {
        make_form(
            names->name[i].word[0], &names->name[i].target, &forms->form[i]);
    }
}

/* The form of a name of up to seven bytes, and what follows it in a chunk; NULL
 * where there is none. */
static struct exec_form *
find_form(struct exec_forms *forms, uint64_t word)
{
    unsigned len = chunk_count_printed(word);
    if (len == 0 || len == CHUNK_BYTES) {
        return NULL;
    }
    word = chunk_first(word, len);
    unsigned at = key_names__place(word, 0);
    if (forms->form[at].word != word) {
        at ^= 1;
    }
    return forms->form[at].word == word ? &forms->form[at] : NULL;
}

/* How many more keys of cells there is room for. */
static unsigned
room_for(const struct job *job)
{
    unsigned slots = EXEC_SLICE_KEYS_MAX - job->n_slots;
    unsigned cells = STORE_GET_MAX - job->get.n;
    unsigned n =
        cells < SCHEMA_COLUMNS_MAX ? 0 : cells - SCHEMA_COLUMNS_MAX + 1;
    return n < slots ? n : slots;
}

/* An id that has been read at text, and how many digits it has. */
struct last_id {
    const char *text;
    uint64_t id;
    unsigned digits;
};

/* Does text begin with the same id, and a dot? Both may be looked at as
 * take_foreseen says. */
static inline bool
is_last_id(const struct last_id *last, const char *text)
{
    enum { LAST = CHUNK_BYTES - 1 };
    uint64_t differ = chunk_load(text) ^ chunk_load(last->text);
    if (last->digits < LAST) {
        return chunk_first(differ, last->digits + 1) == 0;
    }
    unsigned tail = last->digits - LAST; /* a chunk up to the dot */
    unsigned middle = tail < CHUNK_BYTES ? tail : CHUNK_BYTES;
    differ |= chunk_load(text + middle) ^ chunk_load(last->text + middle);
    differ |= chunk_load(text + tail) ^ chunk_load(last->text + tail);
    return differ == 0;
}

/* Takes keys of cells from text on, as long as each is followed by a space or
 * ends at words_end, and KEY_NAMES__NEAR bytes from it on may be looked at,
 * which they may before limit. What comes next is mostly what came next the
 * last time: as in a page, where each post is asked for the same columns. text
 * is byte number offset of the job. Returns the bytes taken, the space behind
 * the last one not among them. */
static size_t
take_foreseen(struct job *job, struct reading *reading, const char *text,
    const char *limit, const char *words_end, uint32_t offset)
{
    struct exec_form *before = NULL;
    struct exec_form *form = reading->forms->next;
    struct slot *first = &job->slot[job->n_slots];
    struct slot *end = first + room_for(job);
    struct slot *slot = first;
    struct cell_key *cell = &job->get.key[job->get.n];
    uint16_t number = (uint16_t)job->get.n;
    const char *at = text;
    struct last_id last = {NULL, 0, 0};
    for (; at < limit && slot != end; slot++) {
        bool repeats =
            form->repeats && last.text != NULL && is_last_id(&last, at);
        if (!repeats) {
            uint64_t id_before = last.id;
            last.text = at;
            last.digits = key_id_read(at, &last.id);
            if (last.digits == 0 || at[last.digits] != '.') {
                break;
            }
            repeats = last.id == id_before;
        }
        unsigned dot = last.digits;
        uint64_t word = chunk_load(at + dot + 1);
        if ((word & form->mask) != form->word) {
            form = find_form(reading->forms, word);
            if (form == NULL) {
                break;
            }
            if (before != NULL) {
                before->next = form;
            }
        }
        unsigned len = dot + form->slot.len;
        if (at[len] != ' ' && at + len != words_end) {
            break;
        }
        form->repeats = repeats;
        *slot = form->slot;
        slot->at = offset;
        slot->first = number++;
        slot->len = (uint8_t)len;
        *cell = form->cell;
        cell->id = last.id;
        cell++;
        offset += len + 1;
        at += len + 1;
        before = form;
        form = form->next;
    }
    if (slot == first) {
        return 0;
    }
    unsigned n = (unsigned)(slot - first);
    for (slot = first; reading->shows_cas && slot != first + n; slot++) {
        slot->shows_cas = true;
    }
    reading->forms->next = before->next;
    at--;
    job->key_bytes += (size_t)(at - text) - (n - 1);
    job->n_slots += n;
    job->get.n += n;
    return (size_t)(at - text);
}

/* Takes keys of cells, as they mostly are, up to one that may be something
 * else, and what spaces are before that. */
static void
take_cells(struct job *job, struct reading *reading, const char *base)
{
    const char *words_end = reading->words_end;
    const char *limit = words_end;
    if (reading->end - words_end < KEY_NAMES__NEAR) {
        limit = reading->end - reading->at < KEY_NAMES__NEAR
            ? reading->at
            : reading->end - KEY_NAMES__NEAR + 1;
    }
    if (reading->at < limit) {
        reading->at += take_foreseen(job, reading, reading->at, limit,
            words_end, (uint32_t)(reading->at - base));
        skip_spaces(reading);
    }
    if (reading->at >= limit && reading->at < words_end) {
        char near[2 * KEY_NAMES__NEAR] = {0};
        size_t left = (size_t)(words_end - reading->at);
        memcpy(near, reading->at, left);
        reading->at += take_foreseen(job, reading, near, near + left,
            near + left, (uint32_t)(reading->at - base));
        skip_spaces(reading);
    }
}

/* May the next key be a cell's? */
static inline bool
is_at_id(const struct reading *reading)
{
    return reading->names != NULL && reading->at < reading->words_end &&
        *reading->at >= '1' && *reading->at <= '9';
}

/* Reads the key at reading->at, whatever it is, and makes its slot; a word
 * that a dialect get does not have is skipped. False where it is too long. */
static bool
take_any(struct job *job, struct reading *reading, const char *base)
{
    struct key key;
    uint32_t known = is_at_id(reading)
        ? key_names_read(reading->names, reading->at, reading->words_end,
              reading->end, &key)
        : 0;
    if (known != 0) {
        add_slot(job, (size_t)(reading->at - base), known, &key,
            reading->shows_cas);
        reading->at += known;
        return true;
    }
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
        .forms = &session->executor->forms,
        .shows_cas = session->request.op == REQUEST_GETS ||
            session->request.op == REQUEST_GATS};
    if (job->op == REQUEST_COUNTER_GET) {
        reading.counter = exec_get__counter(session, base);
    } else {
        reading.names = &session->executor->names;
        key_names_use(reading.names, exec__schema(session));
    }
    for (;;) {
        skip_spaces(&reading);
        if (is_at_id(&reading)) {
            use_forms(reading.forms, reading.names);
            take_cells(job, &reading, base);
        }
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
