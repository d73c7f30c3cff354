/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes changes of cold records, and keeps changes that wait for room.
 *
 *   engine: ERR_COLD ---> fetch the records ---> fetch the pairs ---+
 *      ^                                                             |
 *      +------------------- again, with them as bases <--------------+
 *   engine: ERR_HOT_FULL ---> wait for the sealer ---> engine again
 *
 * A change of a cold record is refused by the engine, which knows that it does
 * not have it. The record is fetched, and the change is made again with it as
 * base. If another version covers the id by then, the engine refuses again, and
 * all begins anew; if somebody else has brought the record in meanwhile, the
 * engine ignores the base.
 *
 * The change of a member may want a pair, too (engine/member.c). Which one that
 * is, is known when the record's number is: so a round has two stages. If the
 * record has another number by the time the change is made again, the base is
 * another pair's, which the engine ignores.
 *
 * A fetch ends on a thread of the pool, or on the worker whose ring was reading
 * the block already. A thread of the pool may use the engine (one change at a
 * time), but is not a reader: it takes what it needs of the maps by
 * segment_map__hold.
 *
 * A change that finds the hot memory full waits for the sealer, which makes
 * room and has it made again; WAIT_NS at most, while something can be sealed.
 * The sealer may be in a sync for longer, so the gardener looks at the time.
 * The change that has waited longest gets the room first.
 *
 * Changes of one record are made in their order: behind one that is not made
 * yet, the others wait for the same as it does. In what it is given at once the
 * engine sees to that. */
#include "tier/cold_call.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/err.h"

#include <stdlib.h>

#define WAIT_NS UINT64_C(1000000000)
#define LONG_NS (WAIT_NS / 4)

enum { CHANGE_MAGIC = 0x35c2e97b };

enum { NO_PAIR = UINT32_MAX };

struct cold_change {
    struct fetch_call fetch; /* first */
    uint32_t magic;          /* CHANGE_MAGIC */
    bool is_at_pairs;        /* the round has come to them */
    struct cold *cold;
    struct store_change *change;
    struct cold_change *next; /* who waits for room behind it */
    uint64_t deadline_ns;     /* for room */
    uint64_t room_since_ns;   /* it waits for that, or has; 0: it has not */
    uint32_t n;               /* records under way, pairs behind the others */
    uint32_t n_max;
    unsigned era;   /* of cold->n_changes */
    uint32_t *pair; /* of each change, which of them is its pair, or NO_PAIR */
    struct engine_base *base;
    struct segment_map_file **file; /* references */
    struct fetch_lookup *lookup;
};

static uint32_t
count(const struct store_change *change, int err)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < change->n; i++) {
        n += change->change[i].err == err;
    }
    return n;
}

/* The place of a record among those under way, or n. */
static uint32_t
place_of(const struct cold_change *it, unsigned counter, uint64_t id)
{
    uint32_t k = 0;
    while (k < it->n &&
        (it->lookup[k].id != id ||
            segment_head(it->lookup[k].segment)->counter != counter)) {
        k++;
    }
    return k;
}

/* Makes a record one of those to be fetched, unless it is here by now; its
 * place among them, or n. */
static uint32_t
want(struct cold_change *it, const struct cell_key *key)
{
    struct engine_found found;
    struct segment_map_file *file = NULL;
    uint64_t value;
    uint8_t state;
    uint32_t k = place_of(it, key->counter, key->id);
    if (k < it->n) {
        return k;
    }
    engine_look(it->cold->engine, key, 1, &value, &state, &found);
    if (!found.is_here && found.version != 0) {
        file = segment_map__hold(
            &it->cold->segment_map, key->counter, key->id, found.version);
    }
    if (file == NULL) { /* it is here, or the engine will say more */
        return it->n;
    }
    ASSERT(k < it->n_max);
    ASSERT(segment_head(file->segment)->counter == key->counter);
    it->file[k] = file;
    it->lookup[k] = (struct fetch_lookup){
        .segment = file->segment, .id = key->id, .columns = BLOCK_COLUMNS_ALL};
    it->n++;
    return k;
}

/* The cell that a change names first: of a member, the number of its record. */
static struct cell_key
first_cell(const struct change *change)
{
    return (struct cell_key){
        change->id, change->serial[0], change->counter, change->column[0]};
}

/* What a record that has been fetched has in a column with default 0. */
static uint64_t
fetched(const struct fetch_lookup *lookup, uint32_t serial)
{
    const struct segment_head *head = segment_head(lookup->segment);
    uint64_t value = 0;
    for (unsigned c = 0; lookup->found && c < head->n_columns; c++) {
        value = head->column[c].serial == serial ? lookup->code[c] : value;
    }
    return value;
}

/* The number of the record of a change, of a member; 0 where it has none, or
 * where it is not known: then the engine will say more. */
static uint64_t
number_of(const struct cold_change *it, const struct change *change)
{
    const struct cell_key key = first_cell(change);
    struct engine_found found;
    uint64_t number;
    uint8_t state;
    engine_look(it->cold->engine, &key, 1, &number, &state, &found);
    if (found.is_here) {
        return number;
    }
    uint32_t k = place_of(it, change->counter, change->id);
    bool is_known = k < it->n && it->lookup[k].err == 0 &&
        it->file[k]->number == found.version;
    return is_known ? fetched(&it->lookup[k], key.serial) : 0;
}

/* Makes the pair of a change one of those to be fetched, unless it is here, or
 * there is none: under a number that is to be given nothing was ever stored. */
static void
want_pair(struct cold_change *it, uint32_t i)
{
    const struct change *change = &it->change->change[i];
    const struct change_member *member = &change->member;
    uint64_t number = number_of(it, change);
    if (number != 0) {
        const struct cell_key key = {engine_pair(it->cold->engine, change->id,
                                         number, member->bits, member->member),
            member->serial, member->counter, 0};
        uint32_t k = want(it, &key);
        it->pair[i] = k < it->n ? k : NO_PAIR;
    }
}

/* What has been fetched, as a base. */
static void
make_base(const struct fetch_lookup *lookup, struct engine_base *base)
{
    const struct segment_head *head = segment_head(lookup->segment);
    ASSERT(lookup->err != 0 || !lookup->found ||
        (lookup->id >= head->first_id && lookup->id <= head->last_id));
    base->id = lookup->id;
    base->version = head->number;
    base->is_there = lookup->found;
    base->is_to_stay = false;
    base->n_columns = head->n_columns;
    for (unsigned c = 0; c < head->n_columns; c++) {
        base->serial[c] = head->column[c].serial;
        base->code[c] = lookup->found ? lookup->code[c] : 0;
    }
}

static bool
is_same_record(const struct change *a, const struct change *b)
{
    return a->id == b->id && a->counter == b->counter;
}

/* What the last change of the same record before that one still needs: ERR_COLD
 * or ERR_HOT_FULL; 0 where all of them are answered. */
static int
need_before(const struct store_change *all, uint32_t i)
{
    for (uint32_t k = i; k-- > 0;) {
        int err = all->change[k].err;
        if ((err == ERR_HOT_FULL || err == ERR_COLD) &&
            is_same_record(&all->change[k], &all->change[i])) {
            return err;
        }
    }
    return 0;
}

/* Nothing is under way. */
static void
begin_round(struct cold_change *it)
{
    it->n = 0;
    it->is_at_pairs = false;
    for (uint32_t i = 0; i < it->change->n; i++) {
        it->pair[i] = NO_PAIR;
    }
}

/* Makes one change again, with what has been fetched. */
static void
make_again(struct cold_change *it, uint32_t i)
{
    struct store_change *all = it->change;
    struct change *change = &all->change[i];
    uint32_t k = place_of(it, change->counter, change->id);
    uint32_t pair = it->pair[i];
    ASSERT(pair == NO_PAIR || (pair < it->n && change_is_of_member(change)));
    if ((k < it->n && it->lookup[k].err != 0) ||
        (pair != NO_PAIR && it->lookup[pair].err != 0)) {
        change->err = ERR_COLD_READ;
        return;
    }
    change->base = k < it->n ? &it->base[k] : NULL;
    if (pair != NO_PAIR) {
        change->member.base = &it->base[pair];
    }
    uint64_t seq = engine_change(it->cold->engine, change, 1);
    change->base = NULL;
    if (pair != NO_PAIR) {
        change->member.base = NULL;
    }
    all->seq = seq > all->seq ? seq : all->seq;
}

/* Makes the changes again that were refused with err, in their order, with what
 * has been fetched; those behind one that is refused are refused like it. */
static void
again(struct cold_change *it, int err)
{
    struct store_change *all = it->change;
    ASSERT(it->magic == CHANGE_MAGIC && it->n <= it->n_max);
    ASSERT(err == ERR_COLD || (err == ERR_HOT_FULL && it->n == 0));
    for (uint32_t k = 0; k < it->n; k++) {
        make_base(&it->lookup[k], &it->base[k]);
    }
    for (uint32_t i = 0; i < all->n; i++) {
        struct change *change = &all->change[i];
        if (change->err != err) {
            continue;
        }
        int before = need_before(all, i);
        if (before != 0) {
            change->err = before;
        } else {
            make_again(it, i);
        }
    }
    for (uint32_t k = 0; k < it->n; k++) {
        segment_map_file_release(it->file[k]);
    }
}

static void on_change_fetched(struct fetch_call *fetch);

/* Asks for what a stage of the round wants; those before `from` are there. */
static bool
fetch_from(struct cold_change *it, uint32_t from)
{
    it->fetch = (struct fetch_call){.lookup = it->lookup + from,
        .n = it->n - from,
        .done_fn = on_change_fetched};
    return it->n == from || fetch_begin(it->cold->fetch, &it->fetch);
}

/* The first stage; false where it has to be waited for. */
static bool
fetch_records(struct cold_change *it)
{
    begin_round(it);
    for (uint32_t i = 0; i < it->change->n; i++) {
        const struct change *change = &it->change->change[i];
        if (change->err == ERR_COLD) {
            const struct cell_key key = first_cell(change);
            (void)want(it, &key);
        }
    }
    return fetch_from(it, 0);
}

/* The second one. */
static bool
fetch_pairs(struct cold_change *it)
{
    uint32_t n_records = it->n;
    ASSERT(it->magic == CHANGE_MAGIC && !it->is_at_pairs);
    it->is_at_pairs = true;
    for (uint32_t i = 0; i < it->change->n; i++) {
        const struct change *change = &it->change->change[i];
        if (change->err == ERR_COLD && change_is_of_member(change)) {
            want_pair(it, i);
        }
    }
    return fetch_from(it, n_records);
}

/* Goes on until all changes are answered, true; or until a fetch has to be
 * waited for. */
static bool
go_on(struct cold_change *it)
{
    while (count(it->change, ERR_COLD) > 0) {
        if (!fetch_records(it) || !fetch_pairs(it)) {
            return false;
        }
        again(it, ERR_COLD);
    }
    return true;
}

static void
append(struct cold_changes *list, struct cold_change *it)
{
    ASSERT(it->magic == CHANGE_MAGIC);
    it->next = NULL;
    if (list->first == NULL) {
        list->first = it;
    } else {
        list->last->next = it;
    }
    list->last = it;
}

/* Puts a list before another one, which has both then. */
static void
prepend(struct cold_changes *list, const struct cold_changes *front)
{
    if (front->first == NULL) {
        return;
    }
    ASSERT(front->last != NULL && front->last->next == NULL);
    front->last->next = list->first;
    if (list->first == NULL) {
        list->last = front->last;
    }
    list->first = front->first;
}

/* True where any of it waits for room, and not for too long yet. */
static bool
may_wait(const struct cold_change *it)
{
    return count(it->change, ERR_HOT_FULL) > 0 &&
        clock_now_ns(it->cold->clock) < it->deadline_ns;
}

/* Queues a change for the sealer, if any of it waits for room and there will
 * be some. */
static bool
wait_for_room(struct cold_change *it)
{
    struct cold *cold = it->cold;
    bool waits = false;
    if (!may_wait(it)) {
        return false;
    }
    if (it->room_since_ns == 0) {
        it->room_since_ns = clock_monotonic_ns();
    }
    mutex_lock(&cold->lock);
    if (cold->makes_room) {
        append(&cold->waiting, it);
        /* relaxed: a figure */
        atomic_fetch_add_explicit(&cold->room_waits, 1, memory_order_relaxed);
        waits = true;
    }
    mutex_unlock(&cold->lock);
    return waits;
}

/* False where all is answered; the change is the caller's again then. */
static bool
is_under_way(struct cold_change *it)
{
    return !go_on(it) || wait_for_room(it);
}

static void
destroy_change(struct cold_change *it)
{
    struct cold *cold = it->cold;
    ASSERT(it->magic == CHANGE_MAGIC && count(it->change, ERR_COLD) == 0);
    unsigned era = it->era;
    it->magic = 0;
    free(it);
    /* release: who sees that none is left sees what they have done */
    uint32_t n = atomic_fetch_sub_explicit(
        &cold->n_changes[era], 1, memory_order_release);
    ASSERT(n > 0);
}

bool
cold_has_changes(struct cold *cold)
{
    /* acquire, both: see destroy_change */
    return atomic_load_explicit(&cold->n_changes[0], memory_order_acquire) >
        0 ||
        atomic_load_explicit(&cold->n_changes[1], memory_order_acquire) > 0;
}

void
cold_begin_era(struct cold *cold)
{
    /* relaxed: this thread is the only one that stores it, and who loads it
     * matters behind a grace period */
    unsigned era = atomic_load_explicit(&cold->era, memory_order_relaxed);
    atomic_store_explicit(&cold->era, 1 - era, memory_order_relaxed);
}

bool
cold_is_era_over(struct cold *cold)
{
    /* relaxed: as above. acquire: see destroy_change */
    unsigned era = atomic_load_explicit(&cold->era, memory_order_relaxed);
    return atomic_load_explicit(
               &cold->n_changes[1 - era], memory_order_acquire) == 0;
}

static void
answer(struct cold_change *it)
{
    struct store_call *call = &it->change->call;
    if (it->room_since_ns != 0) {
        it->change->room_ns = clock_monotonic_ns() - it->room_since_ns;
    }
    destroy_change(it);
    call->done_fn(call);
}

static void
on_change_fetched(struct fetch_call *fetch)
{
    struct cold_change *it = (struct cold_change *)fetch;
    ASSERT(it->magic == CHANGE_MAGIC && it->n > 0);
    if (!it->is_at_pairs && !fetch_pairs(it)) {
        return;
    }
    again(it, ERR_COLD);
    if (!is_under_way(it)) {
        answer(it);
    }
}

void
cold__begin(struct cold *cold, bool makes_room)
{
    ASSERT(cold->magic == COLD_MAGIC);
    mutex_lock(&cold->lock);
    cold->makes_room = makes_room;
    mutex_unlock(&cold->lock);
}

void
cold__retry(struct cold *cold, bool makes_room)
{
    struct cold_changes still = {NULL, NULL};
    ASSERT(cold->magic == COLD_MAGIC);
    mutex_lock(&cold->lock);
    struct cold_change *it = cold->waiting.first, *next;
    cold->waiting.first = NULL;
    cold->makes_room = makes_room;
    mutex_unlock(&cold->lock);
    for (; it != NULL; it = next) {
        ASSERT(it->magic == CHANGE_MAGIC && it->cold == cold);
        next = it->next;
        begin_round(it);
        again(it, ERR_HOT_FULL);
        if (!go_on(it)) {
            continue; /* it comes back when it has been fetched */
        }
        if (makes_room && may_wait(it)) {
            append(&still, it);
        } else {
            answer(it);
        }
    }
    mutex_lock(&cold->lock);
    prepend(&cold->waiting, &still);
    mutex_unlock(&cold->lock);
}

bool
cold__waits_long(struct cold *cold)
{
    uint64_t until_ns = clock_now_ns(cold->clock) + WAIT_NS - LONG_NS;
    ASSERT(cold->magic == COLD_MAGIC);
    mutex_lock(&cold->lock);
    const struct cold_change *first = cold->waiting.first;
    bool waits_long = first != NULL && first->deadline_ns <= until_ns;
    mutex_unlock(&cold->lock);
    return waits_long;
}

void
cold_expire(struct cold *cold)
{
    struct cold_changes late = {NULL, NULL}, on_time = {NULL, NULL};
    uint64_t now_ns = clock_now_ns(cold->clock);
    struct cold_change *it, *next;
    ASSERT(cold->magic == COLD_MAGIC);
    mutex_lock(&cold->lock);
    for (it = cold->waiting.first; it != NULL; it = next) {
        next = it->next;
        append(now_ns >= it->deadline_ns ? &late : &on_time, it);
    }
    cold->waiting = on_time;
    mutex_unlock(&cold->lock);
    for (it = late.first; it != NULL; it = next) {
        next = it->next;
        answer(it); /* it stays refused */
    }
}

static struct cold_change *
make_change(struct cold *cold, struct store_change *change)
{
    uint32_t n = change->n; /* with pairs: */
    for (uint32_t i = 0; i < change->n; i++) {
        n += change_is_of_member(&change->change[i]);
    }
    size_t each = sizeof(struct engine_base) +
        sizeof(struct segment_map_file *) + sizeof(struct fetch_lookup);
    struct cold_change *it =
        malloc(sizeof *it + n * each + change->n * sizeof *it->pair);
    if (it != NULL) {
        *it = (struct cold_change){.magic = CHANGE_MAGIC,
            .cold = cold,
            .change = change,
            .deadline_ns = clock_now_ns(cold->clock) + WAIT_NS,
            .n_max = n,
            /* relaxed: see cold_begin_era */
            .era = atomic_load_explicit(&cold->era, memory_order_relaxed)};
        it->lookup = (struct fetch_lookup *)(it + 1);
        it->base = (struct engine_base *)(it->lookup + n);
        it->file = (struct segment_map_file **)(it->base + n);
        it->pair = (uint32_t *)(it->file + n);
        begin_round(it);
        /* relaxed: who waits for it to end waits for a grace period first */
        atomic_fetch_add_explicit(
            &cold->n_changes[it->era], 1, memory_order_relaxed);
    }
    return it;
}

enum store_answer
cold_change(struct cold *cold, struct store_change *change)
{
    bool any = false;
    for (uint32_t i = 0; i < change->n; i++) {
        int err = change->change[i].err;
        any |= err == ERR_COLD || err == ERR_HOT_FULL;
    }
    if (!any) {
        return STORE_DONE;
    }
    struct cold_change *it = make_change(cold, change);
    if (it == NULL) {
        for (uint32_t i = 0; i < change->n; i++) {
            if (change->change[i].err == ERR_COLD) {
                change->change[i].err = ERR_NO_MEMORY;
            }
        }
        return STORE_DONE;
    }
    if (is_under_way(it)) {
        return STORE_LATER;
    }
    destroy_change(it);
    return STORE_DONE;
}
