/* SPDX-License-Identifier: BSD-3-Clause */
/* Retrieval: from the words of requests to slots, and cells of a batch for the
 * store. Each word is gone over once. */
#include "base/assert.h"
#include "base/err.h"
#include "proto/key_digits.h"
#include "session/exec_get.h"

#include <assert.h>
#include <string.h>

static_assert(TEXT_KEY_MAX <= UINT8_MAX, "see struct slot");

/* The slot of a key of len bytes at `at`, with its cells. */
static struct slot *
add_cells(struct job *job, size_t at, size_t len, const struct key *key,
    bool shows_cas)
{
    ASSERT(job->n_slots < EXEC_SLICE_KEYS_MAX);
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
    if (key->kind == KEY_LIST) {
        exec_list__add(job, slot, key);
        return slot;
    }
    if (key_is_number(key->kind)) {
        slot->kind = SLOT_CELL;
        slot->n_cells = 1;
        slot->flags = key->target.column->flags;
        job->get.key[job->get.n++] = exec_get__cell(key->id, &key->target);
        return slot;
    }
    if (key->kind == KEY_MARK || key->kind == KEY_UNREAD) {
        exec_get__add_mark(job, slot, key);
        return slot;
    }
    if (key->kind == KEY_MEMBER) {
        exec_get__add_member(job, slot, key);
        return slot;
    }
    if (key->kind == KEY_ABOUT) {
        exec_get__add_about(job, slot, key);
        return slot;
    }
    ASSERT(job->get.n + counter->n_columns <= STORE_GET_MAX);
    slot->kind = SLOT_RECORD;
    for (unsigned i = 0; i < counter->n_columns; i++) {
        const struct schema_target target = {
            counter, &counter->column[i], false};
        if (schema_is_in_record(target.column)) {
            job->get.key[job->get.n++] = exec_get__cell(key->id, &target);
            slot->n_cells++;
        }
    }
    return slot;
}

/* The same, and notes the name that the cells are of. */
static struct slot *
add_slot(struct job *job, size_t at, size_t len, const struct key *key,
    bool shows_cas)
{
    struct slot *slot = add_cells(job, at, len, key, shows_cas);
    if (key_has_name(key)) {
        exec_get__add_name(job, slot, key);
    }
    return slot;
}

void
exec_get__add_single(struct session *session, const struct key *key)
{
    const struct request *request = &session->request;
    struct job *job = session->job;
    uint32_t shift = (uint32_t)job->request_bytes;
    struct slot *slot =
        add_slot(job, shift + request->key.at, request->key.len, key, true);
    job->single[slot - job->slot] = echo_of(request, shift);
    slot->is_last = true;
    slot->kind = SLOT_SINGLE;
}

/* All keys of the request have slots: the last one ends it. */
static void
end_words(struct job *job, unsigned first)
{
    if (job->n_slots == first) { /* dropped since they were checked */
        ASSERT(job->n_slots < EXEC_SLICE_KEYS_MAX);
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

/* What cells of a name become; a longer one than fits into a chunk with the dot
 * before it is not foreseen, nor is what is no number. */
static void
make_form(const struct key_name *name, struct exec_form *form)
{
    const struct schema_target *target = &name->target;
    uint64_t word = name->word[0];
    unsigned len = chunk_count_printed(word);
    *form = (struct exec_form){.mask = 0, .word = 1, .next = form};
    if (len == 0 || len == CHUNK_BYTES || !key_is_number(name->kind)) {
        return;
    }
    const struct slot slot = {.flags = target->column->flags,
        .kind = SLOT_CELL,
        .absent_is_miss = target->counter->absent_is_miss};
    form->len = 1 + len;
    form->word = word << 8 | '.';
    form->mask = UINT64_MAX >> 8 * (CHUNK_BYTES - form->len);
    form->place = slot_place(0, 0, 1, (uint8_t)form->len);
    form->traits = slot_traits(&slot);
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
        make_form(&names->name[i], &forms->form[i]);
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
    word = word << 8 | '.';
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

/* Keys of a request, or a copy of some: up to words_end, where a space, the
 * end of a line, or a 0 is. What may be looked at is begin..end. */
struct text {
    const char *begin, *words_end, *end;
};

/* How far keys of cells have been taken. */
struct walk {
    const char *at;           /* the next key */
    uint64_t place;           /* of its slot, without what its form knows */
    struct slot *slot, *full; /* its slot, and behind the last one */
    struct cell_key *cell;    /* its cell */
    struct exec_form *form;   /* what it is likely to be */
    struct exec_form *before; /* of the key before it; NULL: there is none */
    unsigned digits;          /* that its id is likely to have; 0: unknown */
};

/* The next key is a cell of that id, and len bytes long. */
static inline void
take_cell(struct walk *walk, uint64_t id, unsigned len)
{
    struct exec_form *form = walk->form;
    slot_put(walk->slot++, walk->place + form->place, form->traits);
    *walk->cell = form->cell;
    walk->cell->id = id;
    walk->cell++;
    walk->place += slot_place(len + 1, 1, 0, 0);
    walk->at += len + 1;
    walk->before = form;
    walk->form = form->next;
}

/* The digits of an id of n at text before its last 16; zeros behind them. */
static inline uint64_t
first_digits(const char *text, unsigned n)
{
    return chunk_first(chunk_load(text), n - KEY_DIGITS_WIDE);
}

/* Adds what first_digits has to the number of the others: false where they are
 * no digits. */
static inline bool
add_first_digits(uint64_t first, unsigned n, uint64_t *id)
{
    const uint64_t shift = UINT64_C(10000000000000000);
    unsigned n_first = n - KEY_DIGITS_WIDE;
    *id += shift * chunk_value(chunk_last(first, n_first));
    return chunk_count_digits(first) == n_first;
}

/* Takes keys as long as they are what they are likely to be: of so many digits
 * each, and of the form that came next the last time. Nothing of a key is
 * waited for to begin with the next one. */
static inline __attribute__((always_inline)) void
take_likely(struct walk *walk, const struct text *text, bool is_long)
{
    struct walk it = *walk;
    unsigned n = it.digits;
    unsigned back = is_long ? 0 : KEY_DIGITS_WIDE - n;
    if (text->end - it.at < n + CHUNK_BYTES || it.at - text->begin < back) {
        return;
    }
    const char *last = text->end - n - CHUNK_BYTES;
    const char *words_end = text->words_end;
    struct key_digits mask = key_digits_mask(is_long ? KEY_DIGITS_WIDE : n);
    struct key_digits before = key_digits_nines(mask);
    uint64_t before_first = is_long ? UINT64_MAX : 0; /* none */
    uint64_t id = key_digits_value(before);
    last = last < words_end ? last : words_end - 1;
    while (it.at <= last && it.slot != it.full) {
        struct key_digits digits = key_digits_before(it.at + n, mask);
        uint64_t first = is_long ? first_digits(it.at, n) : 0;
        unsigned len = n + it.form->len;
        if (!key_digits_are_same(digits, before) || first != before_first) {
            if (!key_digits_are_digits(digits) || *it.at == '0') {
                break;
            }
            id = key_digits_value(digits);
            if (is_long && !add_first_digits(first, n, &id)) {
                break;
            }
            before = digits;
            before_first = first;
        }
        /* now it is known that the line does not end before the name */
        if ((chunk_load(it.at + n) & it.form->mask) != it.form->word ||
            (it.at[len] != ' ' && it.at + len != words_end)) {
            break;
        }
        take_cell(&it, id, len);
    }
    *walk = it;
}

/* Takes one key of a cell, whatever its form and its id are: false where it
 * may be something else. KEY_NAMES__NEAR bytes may be looked at. */
static bool
take_unlikely(
    struct walk *walk, const struct text *text, struct exec_forms *forms)
{
    const char *at = walk->at;
    uint64_t id;
    unsigned n = key_id_read(at, &id);
    if (n == 0 || at[n] != '.') {
        return false;
    }
    if ((chunk_load(at + n) & walk->form->mask) != walk->form->word) {
        struct exec_form *form = find_form(forms, chunk_load(at + n + 1));
        if (form == NULL) {
            return false;
        }
        walk->form = form;
        if (walk->before != NULL) {
            walk->before->next = form;
        }
    }
    unsigned len = n + walk->form->len;
    if (at[len] != ' ' && at + len != text->words_end) {
        return false;
    }
    walk->place -= slot_place(0, 0, 0, (uint8_t)walk->digits);
    walk->place += slot_place(0, 0, 0, (uint8_t)n);
    walk->digits = n;
    take_cell(walk, id, len);
    return true;
}

/* Takes keys of cells from `from` on, the job's byte number offset, as long as
 * each is followed by a space or ends at words_end. What comes next is mostly
 * what came next the last time: as in a page, where each post is asked for the
 * same columns. Returns the bytes taken, the space behind the last one not
 * among them. */
static size_t
take_foreseen(struct job *job, struct reading *reading,
    const struct text *text, const char *from, uint32_t offset)
{
    struct exec_forms *forms = reading->forms;
    struct slot *first = &job->slot[job->n_slots];
    struct walk walk = {.at = from,
        .slot = first,
        .full = first + room_for(job),
        .cell = &job->get.key[job->get.n],
        .form = forms->next,
        .digits = forms->digits,
        .place = slot_place(
            offset, (uint16_t)job->get.n, 0, (uint8_t)forms->digits)};
    do {
        if (walk.digits > KEY_DIGITS_WIDE) {
            take_likely(&walk, text, true);
        } else if (walk.digits > 0) {
            take_likely(&walk, text, false);
        }
    } while (walk.slot != walk.full && walk.at < text->words_end &&
        text->end - walk.at >= KEY_NAMES__NEAR &&
        take_unlikely(&walk, text, forms));
    unsigned n = (unsigned)(walk.slot - first);
    if (n == 0) {
        return 0;
    }
    for (unsigned i = 0; reading->shows_cas && i < n; i++) {
        first[i].shows_cas = true;
    }
    forms->next = walk.form;
    forms->digits = walk.digits;
    size_t taken = (size_t)(walk.at - from) - 1;
    job->key_bytes += taken - (n - 1);
    job->n_slots += n;
    job->get.n += n;
    return taken;
}

/* Takes keys of cells, as they mostly are, up to one that may be something
 * else, and what spaces are before that. */
static void
take_cells(struct job *job, struct reading *reading, const char *base)
{
    const struct text text = {base, reading->words_end, reading->end};
    reading->at += take_foreseen(
        job, reading, &text, reading->at, (uint32_t)(reading->at - base));
    skip_spaces(reading);
    size_t left = (size_t)(reading->words_end - reading->at);
    if (left > 0 && reading->end - reading->at < KEY_NAMES__NEAR) {
        char near[KEY_DIGITS_WIDE + 2 * KEY_NAMES__NEAR] = {0};
        char *at = near + KEY_DIGITS_WIDE;
        const struct text copy = {near, at + left, near + sizeof near};
        memcpy(at, reading->at, left);
        reading->at += take_foreseen(
            job, reading, &copy, at, (uint32_t)(reading->at - base));
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

/* The last key was a member's. */
static inline bool
is_behind_member(const struct job *job)
{
    unsigned n = job->n_members;
    unsigned n_abouts = job->n_abouts;
    return (n > 0 && job->member[n - 1].cell + 1U == job->get.n) ||
        (n_abouts > 0 && job->about_cell[n_abouts - 1] + 1U == job->get.n);
}

/* What follows a mark, what is unread, or a member is likely to be another one:
 * then keys of cells are not looked for first. */
static inline bool
is_behind_other(const struct job *job)
{
    return (job->n_slots > 0 &&
               job->slot[job->n_slots - 1].kind == SLOT_MARK) ||
        is_behind_member(job);
}

/* The length of the key at reading->at if that is one of an id, of a name met
 * lately; 0 where it may be anything else. */
static inline uint32_t
read_known(
    const struct job *job, const struct reading *reading, struct key *key)
{
    if (!is_at_id(reading)) {
        return 0;
    }
    return is_behind_member(job)
        ? key_names_read_member(reading->names, reading->at,
              reading->words_end, reading->end, key)
        : key_names_read(reading->names, reading->at, reading->words_end,
              reading->end, key);
}

/* Reads the key at reading->at, whatever it is, up to a space or the end of the
 * words: *len, and *is_known where it is none that a dialect get does not
 * have. 0 or an ERR_. */
static int
read_any(struct session *session, const struct reading *reading,
    struct key *key, size_t *len, bool *is_known)
{
    size_t left = (size_t)(reading->words_end - reading->at);
    const char *space = memchr(reading->at, ' ', left);
    *len = space == NULL ? left : (size_t)(space - reading->at);
    if (*len > TEXT_KEY_MAX) {
        return ERR_BAD_FORMAT;
    }
    if (reading->names == NULL) {
        *is_known = reading->counter != NULL &&
            key_parse_dialect(reading->counter, reading->at, *len, key);
        return 0;
    }
    key_names_parse(reading->names, reading->at, *len, key);
    return key->kind == KEY_ITEM && !session->job->is_alone /* else checked */
        ? exec__near(session, reading->at, *len)
        : 0;
}

/* Makes the slot of the key at reading->at; a word that a dialect get does not
 * have is skipped. 0 or an ERR_, see exec_get__gather. */
static int
take_any(struct session *session, struct reading *reading, const char *base,
    struct span *bad)
{
    struct job *job = session->job;
    struct key key;
    bool is_known = true;
    int err = 0;
    size_t at = (size_t)(reading->at - base);
    size_t len = read_known(job, reading, &key);
    if (len == 0) {
        err = read_any(session, reading, &key, &len, &is_known);
    }
    if (err == 0 && reading->names != NULL && !job->is_alone) {
        err = exec__key_fault(session, &key); /* else it is checked */
    }
    if (err != 0) {
        *bad = (struct span){(uint32_t)at, (uint32_t)len};
        return err;
    }
    if (is_known) {
        add_slot(job, at, len, &key, reading->shows_cas);
    }
    reading->at += len;
    return 0;
}

int
exec_get__gather(struct session *session, const char *base, const char *end,
    struct span *bad)
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
        if (is_at_id(&reading) && !is_behind_other(job)) {
            use_forms(reading.forms, reading.names);
            take_cells(job, &reading, base);
        }
        if (reading.at == reading.words_end) {
            end_words(job, first);
            return 0;
        }
        if (exec_get__is_full(job)) {
            break;
        }
        int err = take_any(session, &reading, base, bad);
        if (err != 0) {
            return err;
        }
    }
    job->words.at = (uint32_t)(reading.at - base);
    job->words.len = (uint32_t)(reading.words_end - reading.at);
    return 0;
}
