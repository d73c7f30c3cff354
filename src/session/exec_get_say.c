/* SPDX-License-Identifier: BSD-3-Clause */
/* Retrieval: from slots to replies, in their order. Cells are most of it, and
 * go straight into the reply buffer, run by run. Items are looked up now. */
#include "base/assert.h"
#include "base/err.h"
#include "base/num.h"
#include "proto/reply.h"
#include "proto/reply_cell.h"
#include "proto/reply_plain.h"
#include "session/exec_admin.h"
#include "session/exec_get.h"

/* A record as text: 16 numbers with a space each. */
enum { RECORD_TEXT_MAX = SCHEMA_COLUMNS_MAX * (NUM_U64_DIGITS_MAX + 1) };

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
 * is answered as a miss. *cas is theirs where the slot shows it, else 0. */
static unsigned
take_values(const struct job *job, const struct slot *slot, uint64_t *value,
    uint64_t *cas)
{
    uint32_t serial[SCHEMA_COLUMNS_MAX];
    bool all_default = true;
    unsigned n = 0;
    ASSERT(slot->n_cells <= SCHEMA_COLUMNS_MAX);
    ASSERT((uint32_t)slot->first + slot->n_cells <= job->get.n);
    for (unsigned i = slot->first; i < slot->first + slot->n_cells; i++) {
        if (job->get.state[i] != CELL_GONE) {
            serial[n] = job->get.key[i].serial;
            value[n++] = job->get.value[i];
            all_default = all_default && job->get.state[i] == CELL_DEFAULT;
        }
    }
    if (all_default && slot->absent_is_miss) {
        n = 0;
    }
    *cas = slot->shows_cas && n > 0 ? record_cas(serial, value, n) : 0;
    return n;
}

/* Answers a request that has this one key: true where it is found. */
static bool
say_single(struct session *session, const char *base, const struct slot *slot,
    struct buf *out)
{
    const struct job *job = session->job;
    const struct echo *echo = &job->single[slot - job->slot];
    uint64_t value[SCHEMA_COLUMNS_MAX] = {0};
    uint64_t cas;
    char text[RECORD_TEXT_MAX];
    if (is_unreadable(job, slot)) { /* no number is made up */
        exec__say_refusal(
            session, exec_get__unreadable_err(job, slot), echo, out);
        return false;
    }
    unsigned n = take_values(job, slot, value, &cas);
    size_t len = reply_join_u64(value, n, text);
    struct answer answer = {.kind = ANSWER_VALUE,
        .value = text,
        .value_len = len,
        .cas = cas,
        .flags = slot->flags,
        .item_bytes = exec__item_bytes(slot->len, len, slot->flags),
        .ttl_s = ANSWER_NEVER,
        .old_ttl_s = ANSWER_NEVER,
        .was_fetched = true};
    if (job->n_lists > 0) {
        answer.ttl_s = answer.old_ttl_s = exec_list__ttl_s(job, slot);
    }
    if (n == 0) {
        answer.kind = ANSWER_MISS;
    } else if (echo->op == REQUEST_TOUCH) {
        answer.kind = ANSWER_TOUCHED;
    } else if (echo->op == REQUEST_INSPECT) {
        answer.kind = ANSWER_ABOUT;
    }
    answer_put(echo, base, &answer, out);
    return n > 0;
}

/* A record, or a cell of a request with one that cannot be read: true where
 * the key is found. */
static bool
say_record(struct session *session, const char *base, const struct slot *slot,
    struct buf *out)
{
    uint64_t value[SCHEMA_COLUMNS_MAX] = {0};
    uint64_t cas;
    char text[RECORD_TEXT_MAX];
    if (is_unreadable(session->job, slot)) { /* told at the end */
        session->job->unreadable_err =
            exec_get__unreadable_err(session->job, slot);
        return false;
    }
    unsigned n = take_values(session->job, slot, value, &cas);
    if (n == 0) {
        return false;
    }
    size_t len = reply_join_u64(value, n, text);
    reply_value(out, base + slot->at, slot->len, slot->flags, text, len,
        slot->shows_cas ? &cas : NULL);
    return true;
}

static bool
say_item(struct session *session, const char *base, const struct slot *slot,
    struct buf *out)
{
    struct items *items = session->executor->store->items;
    const char *key = base + slot->at;
    bool touches = session->job->touches;
    (void)exec__note_near(session, key, slot->len);
    uint64_t now_s = exec__now_s(session);
    uint64_t expiry_s = touches
        ? items_expiry(session->request.exptime, now_s, exec__unix_s(session))
        : ITEMS_NEVER; /* not looked at */
    const struct item *item =
        items_get(items, key, slot->len, now_s, touches, expiry_s);
    exec__count_prefix(session, (struct schema_word){key, slot->len},
        &(struct prefix_counts){.get = 1, .hit = item != NULL});
    if (item == NULL) {
        return false;
    }
    uint64_t number = session->executor->rules.no_cas ? 0 : item->cas;
    const uint64_t *cas = slot->shows_cas ? &number : NULL;
    if (exec__lend(session, item)) {
        exec__note_loan(session, item,
            reply_value_around(
                out, key, slot->len, item->flags, item->value_len, cas));
        return true;
    }
    reply_value(
        out, key, slot->len, item->flags, item->value, item->value_len, cas);
    items_unpin(items, item);
    return true;
}

/* What is said back of a get that is refused: nothing. */
static const struct echo text_echo = {.op = REQUEST_GET};

/* The end of a text request. */
static void
say_end(struct session *session, struct buf *out)
{
    struct job *job = session->job;
    int err = job->unreadable_err;
    if (err != 0) { /* in the place of END: no number is made up */
        job->unreadable_err = 0;
        exec__say_refusal(session, err, &text_echo, out);
        return;
    }
    reply_line(out, "END");
}

/* Is a cell of that state a hit? */
static inline bool
is_found(const struct slot *slot, uint8_t state)
{
    return state == CELL_SET ||
        (state == CELL_DEFAULT && !slot->absent_is_miss);
}

/* Where replies to cells go. */
struct saying {
    char *at;             /* the next one */
    const char *full;     /* where no other one may begin */
    const char *base;     /* of the keys */
    const char *readable; /* see exec_turn's end */
    unsigned hits;
};

/* Is it a cell that is answered without flags and without a cas? */
static inline bool
is_plain(const struct slot *slot)
{
    return slot->kind == SLOT_CELL && slot->flags == 0 && !slot->shows_cas;
}

/* Answers slots from a plain one on, up to end or to one that is not like it
 * or cannot be read. Their keys can be copied at once but for their length.
 * Cells that stand side by side are so in the batch, too. What a slot is like
 * is compared at once. */
static inline const struct slot *
say_run(const struct store_get *get, const struct slot *slot,
    const struct slot *end, struct saying *saying)
{
    static const struct slot is_last = {.is_last = true};
    const struct slot *first = slot;
    const uint64_t *value = &get->value[slot->first];
    const uint8_t *state = &get->state[slot->first];
    const struct slot plain = {
        .kind = SLOT_CELL, .absent_is_miss = slot->absent_is_miss};
    uint64_t traits = slot_traits(&plain);
    uint64_t last_bits = slot_traits(&is_last);
    uint8_t found_from = slot->absent_is_miss ? CELL_SET : CELL_DEFAULT;
    unsigned n_misses = 0;
    char *at = saying->at;
    for (; slot != end; slot++, value++, state++) {
        uint64_t more = slot_traits(slot) ^ traits;
        uint64_t number = *value;
        size_t len = slot->len;
        if ((more != 0 && more != last_bits) || *state > CELL_SET ||
            len > REPLY_KEY_NEAR) {
            break;
        }
        const char *key = saying->base + slot->at;
        if (*state < found_from) {
            n_misses++;
        } else {
            /* so far the key may be looked at: see end_of_run */
            at = reply_put_cell(
                at, key, len, key + REPLY_KEY_NEAR, 0, number, 0);
        }
        if (more != 0) {
            at = reply_put_end(at);
        }
    }
    saying->at = at;
    saying->hits += (unsigned)(slot - first) - n_misses;
    return slot;
}

/* The last of the slots whose keys can be copied at once, and with whose
 * replies the mark is not reached. */
static inline const struct slot *
end_of_run(const struct slot *slot, const struct slot *end,
    const struct saying *saying)
{
    enum { LEN_MAX = REPLY_CELL_ROOM + REPLY_KEY_NEAR };
    ptrdiff_t n = (saying->full - saying->at) / LEN_MAX;
    end = end - slot > n ? slot + n : end;
    while (end != slot &&
        saying->readable - (saying->base + end[-1].at) < REPLY_KEY_NEAR) {
        end--;
    }
    return end;
}

/* Answers a cell: false where it is none, or cannot be read. kind: SLOT_CELL
 * or SLOT_MARK. */
static inline bool
say_cell(const struct store_get *get, const struct slot *slot,
    enum slot_kind kind, struct saying *saying)
{
    uint8_t state = get->state[slot->first];
    if (slot->kind != kind || state == CELL_UNREADABLE) {
        return false;
    }
    if (is_found(slot, state)) {
        uint64_t value = get->value[slot->first];
        saying->at = reply_put_cell(saying->at, saying->base + slot->at,
            slot->len, saying->readable, slot->flags, value,
            slot->shows_cas ? cell_cas(value) : 0);
        saying->hits++;
    }
    if (slot->is_last) {
        saying->at = reply_put_end(saying->at);
    }
    return true;
}

/* Answers cells of one kind (see say_cell) from the next slot on, up to a slot
 * that is something else, to a request with a cell that cannot be read, or to
 * mark bytes; how many keys were found. */
static inline __attribute__((always_inline)) unsigned
say_kind(struct session *session, struct exec_turn *turn, enum slot_kind kind)
{
    struct job *job = session->job;
    struct buf *out = turn->out;
    const struct slot *slot = &job->slot[job->formatted];
    const struct slot *end = &job->slot[job->n_slots];
    size_t room = (size_t)REPLY_CELL_ROOM * (size_t)(end - slot);
    char *start = buf_reserve(out, job->key_bytes + room);
    if (start == NULL || job->unreadable_err != 0) {
        return 0;
    }
    struct saying saying = {.at = start,
        .full = start + (turn->mark - out->len),
        .base = turn->base,
        .readable = turn->end};
    for (; slot != end && saying.at < saying.full; slot++) {
        if (kind == SLOT_CELL && end - slot > 1 && is_plain(slot)) {
            const struct slot *run_end = end_of_run(slot, end, &saying);
            slot = say_run(&job->get, slot, run_end, &saying);
        }
        if (slot == end || !say_cell(&job->get, slot, kind, &saying)) {
            break;
        }
    }
    out->len += (size_t)(saying.at - start);
    ASSERT(out->len <= out->capacity);
    job->formatted = (unsigned)(slot - job->slot);
    return saying.hits;
}

static __attribute__((noinline)) unsigned
say_cells(struct session *session, struct exec_turn *turn)
{
    return say_kind(session, turn, SLOT_CELL);
}

/* The same for what was worked out. */
static __attribute__((noinline)) unsigned
say_marks(struct session *session, struct exec_turn *turn)
{
    return say_kind(session, turn, SLOT_MARK);
}

static inline bool
returns_key(uint8_t opcode)
{
    return opcode == BINARY_GETK || opcode == BINARY_GETKQ;
}

/* Writes the answer to a plain mg or packet to at: the end of it. */
static inline __attribute__((always_inline)) char *
put_plain(char *at, const struct exec_turn *turn, const struct slot *slot,
    const struct echo *echo, uint64_t value)
{
    const char *key = turn->base + slot->at;
    return slot->kind == SLOT_META
        ? reply_put_meta(at, echo, turn->base, turn->end, slot->flags, value,
              cell_cas(value))
        : reply_put_packet(at, echo, returns_key(echo->opcode) ? key : NULL,
              slot->len, turn->end, slot->flags, value, cell_cas(value));
}

/* The same as say_cells for plain requests of the other two protocols, up to
 * one that is told of a miss, or is something else. */
static __attribute__((noinline)) unsigned
say_plain(struct session *session, struct exec_turn *turn)
{
    struct job *job = session->job;
    const struct store_get *get = &job->get;
    struct buf *out = turn->out;
    unsigned i = job->formatted;
    unsigned hits = 0;
    size_t room = (size_t)REPLY_PLAIN_ROOM * (job->n_slots - i);
    char *start = buf_reserve(out, job->key_bytes + room);
    if (start == NULL) {
        return 0;
    }
    char *at = start;
    size_t left = turn->mark - out->len;
    for (; i < job->n_slots && (size_t)(at - start) < left; i++) {
        const struct slot *slot = &job->slot[i];
        const struct echo *echo = &job->single[i];
        uint8_t state = get->state[slot->first];
        bool is_there = is_found(slot, state);
        if ((slot->kind != SLOT_META && slot->kind != SLOT_PACKET) ||
            state == CELL_UNREADABLE || (!is_there && !echo->is_quiet)) {
            break;
        }
        if (is_there) {
            at = put_plain(at, turn, slot, echo, get->value[slot->first]);
            hits++;
        }
    }
    out->len += (size_t)(at - start);
    ASSERT(out->len <= out->capacity);
    job->formatted = i;
    return hits;
}

/* Answers the next slot, whatever it is: true where its key is found. */
static bool
say_slot(struct session *session, struct exec_turn *turn)
{
    struct job *job = session->job;
    const struct slot *slot = &job->slot[job->formatted++];
    struct buf *out = turn->out;
    bool is_hit = false;
    switch ((enum slot_kind)slot->kind) {
    case SLOT_SINGLE:
    case SLOT_META: /* of those that say_plain leaves */
    case SLOT_PACKET:
        return say_single(session, turn->base, slot, out);
    case SLOT_ITEM:
        is_hit = say_item(session, turn->base, slot, out);
        if (exec__has_lent(session)) {
            turn->mark = 0;
        }
        break;
    case SLOT_CELL: /* of those that say_cells leaves */
    case SLOT_MARK:
    case SLOT_RECORD:
        is_hit = say_record(session, turn->base, slot, out);
        break;
    case SLOT_SINGLE_REFUSED:
        exec__say_refusal(session, exec_get__refusal(session, slot),
            &job->single[slot - job->slot], out);
        return false;
    case SLOT_REFUSED:
        if (slot->is_last) {
            exec__say_refusal(
                session, exec_get__refusal(session, slot), &text_echo, out);
        }
        return false;
    case SLOT_NOTHING:
        break;
    }
    if (slot->is_last) {
        say_end(session, out);
    }
    return is_hit;
}

static void
count_keys(struct session *session, unsigned n, unsigned hits)
{
    const struct job *job = session->job;
    if (job->op == REQUEST_INSPECT) {
        exec__count(session, METRIC_cmd_meta, n);
    } else if (job->touches) {
        exec__count(session, METRIC_cmd_touch, n);
        exec__count(session, METRIC_touch_hits, hits);
        exec__count(session, METRIC_touch_misses, n - hits);
    } else {
        exec__count(session, METRIC_cmd_get, n);
        exec__count(session, METRIC_get_hits, hits);
        exec__count(session, METRIC_get_misses, n - hits);
    }
}

/* The replies from the first slot on find no memory: notes whose that is, where
 * it is said. */
static void
note_failure(const struct job *job, unsigned first, struct exec_turn *turn)
{
    switch ((enum slot_kind)job->slot[first].kind) {
    case SLOT_SINGLE:
    case SLOT_META:
    case SLOT_PACKET:
    case SLOT_SINGLE_REFUSED:
        turn->unanswered = job->single[first];
        turn->is_known = true;
        return;
    default:
        return;
    }
}

/* True where the turn has to end before the next slot. */
static bool
must_wait(struct session *session, const struct exec_turn *turn)
{
    const struct job *job = session->job;
    const struct slot *slot = &job->slot[job->formatted];
    return slot->kind == SLOT_ITEM &&
        exec__awaits_loan(session, turn->base + slot->at, slot->len);
}

bool
exec_get__format(struct session *session, struct exec_turn *turn)
{
    struct job *job = session->job;
    unsigned first = job->formatted;
    unsigned hits = 0;
    while (job->formatted < job->n_slots && turn->out->len < turn->mark) {
        unsigned before = job->formatted;
        switch (job->slot[before].kind) {
        case SLOT_CELL:
            hits += say_cells(session, turn);
            break;
        case SLOT_MARK:
            hits += say_marks(session, turn);
            break;
        case SLOT_META:
        case SLOT_PACKET:
            hits += say_plain(session, turn);
            break;
        default:
            break;
        }
        if (job->formatted == before) {
            if (must_wait(session, turn)) {
                break;
            }
            hits += say_slot(session, turn);
        }
    }
    if (turn->out->failed) {
        note_failure(job, first, turn);
    }
    unsigned n = job->formatted - first;
    if (n > 0 && job->slot[job->formatted - 1].kind == SLOT_NOTHING) {
        n--;
    }
    ASSERT(hits <= n); /* a key has one answer */
    count_keys(session, n, hits);
    return job->formatted == job->n_slots;
}
