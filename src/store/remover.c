/* SPDX-License-Identifier: BSD-3-Clause */
/* Removes the records of ids that are another server's by now.
 *
 * It goes through all counters as a dump of the rule does (store/dump_work.h),
 * which sees what is in memory and what is in segments, and deletes each record
 * as a client would: so the log and the replicas are told, what is in a segment
 * gets a tombstone that hides it until the next merge, and members go with
 * their record. It asks for the core when nobody else wants it.
 *
 * Nobody changes these records meanwhile: changes of ids that are handed over
 * are refused. So one pass is enough, and nothing is removed that anybody has
 * written. That holds as long as they are handed over: who takes that back
 * calls remover_hold first, behind which no change of this thread is under way
 * and none begins.
 *
 *   IDLE --+                  +--> ENDED ----+
 *          +--> WANTED --> RUNS              +--> WANTED
 *          |      |           |              |
 *          |      +-----------+--> STOPPED --+
 *
 * What can go wrong: there is no memory or no room, the disk is full, replicas
 * are missing: then the same records are tried again after a while. What cannot
 * be read is counted, and left. The server becomes a replica: it ends. After a
 * restart it has to be asked for again. */
#include "store/remover.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/give_way.h"
#include "base/log.h"
#include "base/num.h"

#include <inttypes.h>
#include <string.h>

enum { NICE = 10 };

static const uint64_t rest_ns = REMOVER_REST_MS * UINT64_C(1000000);

void
remover__move(struct remover *remover, enum remover_state to)
{
    ASSERT(remover->magic == REMOVER_MAGIC);
    ASSERT_STEP(remover_steps, remover->state, to);
    remover->state = to;
}

static bool
is_stopping(const struct remover *it)
{
    /* relaxed: under the lock, or only has to be seen some time */
    return atomic_load_explicit(&it->stopping, memory_order_relaxed);
}

static bool
is_under_way(const struct remover *it)
{
    return it->state == REMOVER_WANTED || it->state == REMOVER_RUNS;
}

/* Why it has to end now; 0: it goes on. */
static int
reason(struct remover *it)
{
    mutex_lock(&it->lock);
    int why = is_stopping(it) ? ERR_CLOSED : it->why;
    mutex_unlock(&it->lock);
    return why;
}

/* Waits a little where that error may pass. Why it has to end, or 0. */
static int
rest(struct remover *it, int trouble)
{
    mutex_lock(&it->lock);
    it->trouble = trouble;
    mutex_unlock(&it->lock);
    clock_sleep_until(it->clock, clock_now_ns(it->clock) + rest_ns);
    return reason(it);
}

/* ---- changes ---- */

/* False where it has to end. */
static bool
enter_batch(struct remover *it)
{
    mutex_lock(&it->lock);
    bool may = it->why == 0 && !is_stopping(it);
    ASSERT(!it->is_at_batch);
    it->is_at_batch = may;
    it->is_answered = false;
    mutex_unlock(&it->lock);
    return may;
}

static void
leave_batch(struct remover *it)
{
    mutex_lock(&it->lock);
    ASSERT(it->is_at_batch);
    it->is_at_batch = false;
    pthread_cond_broadcast(&it->changed);
    mutex_unlock(&it->lock);
}

static void
on_answer(struct store_call *call)
{
    struct remover *it = call->owner;
    ASSERT(it->magic == REMOVER_MAGIC);
    mutex_lock(&it->lock);
    it->is_answered = true;
    pthread_cond_broadcast(&it->changed);
    mutex_unlock(&it->lock);
}

static void
wait_for_answer(struct remover *it)
{
    mutex_lock(&it->lock);
    while (!it->is_answered) {
        mutex_wait(&it->lock, &it->changed);
    }
    mutex_unlock(&it->lock);
}

static void
add_column(struct change *change, const struct schema_column *column)
{
    change->column[change->n_columns] = column->slot;
    change->serial[change->n_columns++] = column->serial;
}

/* The delete of a whole record: members go behind the other columns. */
static void
make_change(
    struct change *change, const struct schema_counter *counter, uint64_t id)
{
    *change = (struct change){.id = id,
        .op = CHANGE_DELETE,
        .absent = CHANGE_FROM_DEFAULT,
        .counter = counter->slot};
    for (unsigned i = 0; i < counter->n_columns; i++) {
        if (schema_is_in_record(&counter->column[i])) {
            add_column(change, &counter->column[i]);
        }
    }
    bool has_values = change->n_columns > 0;
    for (unsigned i = 0; i < counter->n_columns; i++) {
        if (counter->column[i].kind == SCHEMA_MEMBERS) {
            if (has_values) {
                change->kept |= (uint16_t)(1U << change->n_columns);
            }
            add_column(change, &counter->column[i]);
        }
    }
}

/* Gives change i, by an id, the name that the id has. False where that is not
 * of the rule: the name has gone meanwhile, and maybe another one has come. An
 * online reader. */
static bool
take_name(struct remover *it, uint32_t i)
{
    struct change *change = &it->change[i];
    char *name = it->name_bytes[i];
    size_t len = names_name(it->store->names, change->id, name);
    if (len == 0 || !owns_has_name(it->owns, name, len)) {
        return false;
    }
    if (change->id >= OWN_ID_END) {
        it->name[i] = (struct engine_name){.bytes = name, .len = (uint8_t)len};
        change->name = &it->name[i];
    }
    return true;
}

/* Has *n records removed, whose changes are in it->change then: less of them,
 * where ids are names that are not there any more. 0, or why none of it was
 * begun: ERR_GONE, ERR_NOT_MOVED, or what store_fault says. */
static int
begin_changes(struct remover *it, const struct dump_work *work, uint64_t *id,
    uint32_t *n, struct store_change *call)
{
    qsbr_online(it->store->qsbr, &it->reader);
    const struct schema_counter *counter =
        schema_counter_at(store_schema(it->store), work->slot);
    bool is_there = counter != NULL && counter->serial == work->serial &&
        counter->n_columns > 0;
    int err = !is_there ? ERR_GONE
        : !store_is_moved(it->store, owns_rule(it->owns))
        ? ERR_NOT_MOVED
        : store_fault(it->store);
    uint32_t made = 0;
    for (uint32_t i = 0; err == 0 && i < *n; i++) {
        make_change(&it->change[made], counter, id[i]);
        if (counter->key_is_text && !take_name(it, made)) {
            continue;
        }
        ASSERT(counter->key_is_text || owns_has(it->owns, id[i]));
        id[made++] = id[i];
    }
    *n = err == 0 ? made : *n;
    enum store_answer answer = STORE_DONE;
    *call = (struct store_change){.n = *n, .change = it->change};
    if (err == 0 && *n > 0) {
        call->call = (struct store_call){.done_fn = on_answer, .owner = it};
        answer = store_change(it->store, call);
    }
    qsbr_offline(&it->reader);
    if (answer == STORE_LATER) {
        wait_for_answer(it);
    }
    return err;
}

/* True where the same may come out otherwise later. */
static bool
may_pass(int err)
{
    return err != ERR_GONE && err != ERR_NOT_MOVED && err != ERR_CLOSED &&
        err != ERR_NOT_PRIMARY && err != ERR_NO_PRIMARY && err != ERR_STALE;
}

/* Counts what has become of n changes. Ids to be tried again are put in front,
 * *n_left of them; what is to pass first, or 0. */
static int
take_answers(struct remover *it, uint64_t *id, uint32_t n, uint32_t *n_left)
{
    int trouble = 0;
    uint32_t left = 0;
    mutex_lock(&it->lock);
    for (uint32_t i = 0; i < n; i++) {
        int err = it->change[i].err;
        it->forgotten += err == 0;
        it->unread += err == ERR_COLD_READ;
        if (err != 0 && err != ERR_NOT_FOUND && err != ERR_COLD_READ) {
            id[left++] = id[i];
            trouble = err; /* of ERR_GONE a column was dropped just now */
        }
    }
    it->trouble = 0;
    mutex_unlock(&it->lock);
    *n_left = left;
    return trouble;
}

/* Has what was changed committed, and waits for that: it is not faster than
 * the disk and the replicas. 0, or why it has to end. */
static int
commit(struct remover *it, uint64_t seq)
{
    int why = 0;
    enum store_commit stands = store_commit(it->store, seq);
    while (stands == STORE_COMMIT_WAITS && why == 0) {
        clock_sleep_until(it->clock, clock_now_ns(it->clock) + rest_ns / 50);
        why = reason(it);
        stands = store_outcome(it->store, seq);
    }
    return why;
}

/* Removes n records, REMOVER_BATCH at most. 0, ERR_GONE, or why it ends. */
static int
remove_batch(struct remover *it, const struct dump_work *work, uint64_t *id,
    uint32_t n, uint64_t *seq)
{
    int err = 0;
    ASSERT(n <= REMOVER_BATCH);
    while (n > 0 && err == 0) {
        struct store_change call;
        if (!enter_batch(it)) {
            return reason(it);
        }
        err = begin_changes(it, work, id, &n, &call);
        leave_batch(it);
        if (err == 0) {
            *seq = call.seq > *seq ? call.seq : *seq;
            int trouble = take_answers(it, id, n, &n);
            err = trouble == 0 ? 0 : rest(it, trouble);
        } else if (may_pass(err)) {
            err = rest(it, err);
        }
    }
    return err;
}

/* Removes what a piece of the work has. */
static int
remove_piece(struct remover *it, struct dump_work *work)
{
    uint64_t seq = 0;
    int err = 0;
    for (uint32_t i = 0; i < work->n && err == 0; i += REMOVER_BATCH) {
        uint32_t n = work->n - i;
        err = remove_batch(it, work, work->id + i,
            n < REMOVER_BATCH ? n : (uint32_t)REMOVER_BATCH, &seq);
        give_way();
    }
    return err == 0 ? commit(it, seq) : err;
}

/* ---- counters ---- */

/* Notes what a piece has looked at. */
static void
note_piece(struct remover *it, const struct dump_work *work, bool is_unread)
{
    mutex_lock(&it->lock);
    it->scanned += work->n + work->n_passed;
    it->unread += is_unread;
    it->trouble = 0;
    mutex_unlock(&it->lock);
}

static int
remove_pieces(struct remover *it, struct dump_work *work)
{
    int err = 0;
    while (err == 0 && !dump_work_is_end(work)) {
        int found = dump_work_next(&it->source, work);
        bool is_unread = dump_members_is_of_disk(found);
        note_piece(it, work, is_unread);
        err = remove_piece(it, work); /* they have come before the error */
        err = err == 0 && !is_unread ? found : err;
        err = err == 0 ? reason(it) : err;
        give_way();
    }
    return err;
}

/* Removes the records of a counter. 0, or why it ends. */
static int
remove_counter(struct remover *it, unsigned slot, uint32_t serial)
{
    uint64_t from_id = 0;
    for (;;) {
        struct dump_work *work =
            dump_work_create(&it->source, slot, serial, from_id, UINT64_MAX);
        int err = ERR_NO_MEMORY;
        if (work != NULL) {
            work->owns = it->owns;
            work->is_of_ids = true;
            err = remove_pieces(it, work);
            from_id = work->from_id;
            dump_work_destroy(&it->source, &work);
        }
        if (err == ERR_GONE) {
            return 0; /* with all its records */
        }
        if (err != ERR_NO_MEMORY && err != ERR_OTHER_COLUMNS) {
            return err;
        }
        err = rest(it, err);
        if (err != 0) {
            return err;
        }
    }
}

/* The next counter from *slot on that has records of its own; false: none. */
static bool
find_counter(struct remover *it, unsigned *slot, uint32_t *serial)
{
    bool found = false;
    qsbr_online(it->store->qsbr, &it->reader);
    const struct schema *schema = store_schema(it->store);
    for (; *slot < SCHEMA_COUNTERS_MAX; (*slot)++) {
        const struct schema_counter *counter =
            schema_counter_at(schema, *slot);
        if (counter != NULL && counter->members_of == 0) {
            *serial = counter->serial;
            found = true;
            break;
        }
    }
    qsbr_offline(&it->reader);
    return found;
}

static uint64_t
count_records(struct remover *it)
{
    uint64_t total = 0;
    uint32_t serial;
    for (unsigned slot = 0; find_counter(it, &slot, &serial); slot++) {
        total += store_sum(it->store, slot).records;
    }
    return total;
}

/* ---- the thread ---- */

static void
say_end(struct remover *it, int why)
{
    const char *rule = owns_rule(it->owns);
    if (it->logger != NULL && why == 0) {
        log_line(it->logger, it->unread == 0 ? LOG_INFO : LOG_WARNING,
            "forget ids %s: %" PRIu64 " of %" PRIu64
            " records removed in %" PRIu64 " s, %" PRIu64 " could not be read",
            rule, it->forgotten, it->scanned, it->end_s - it->began_s,
            it->unread);
    } else if (it->logger != NULL) {
        log_line(it->logger, LOG_WARNING,
            "forget ids %s ended early, after %" PRIu64
            " records were removed: %s",
            rule, it->forgotten, err_text(why));
    }
}

static void
remove_all(struct remover *it)
{
    uint32_t serial;
    int err = reason(it);
    uint64_t total = count_records(it);
    mutex_lock(&it->lock);
    remover__move(it, REMOVER_RUNS);
    it->total = total;
    mutex_unlock(&it->lock);
    if (it->logger != NULL) {
        log_line(it->logger, LOG_INFO,
            "forget ids %s: begins, there are about %" PRIu64 " records",
            owns_rule(it->owns), total);
    }
    for (unsigned slot = 0; err == 0 && find_counter(it, &slot, &serial);
         slot++) {
        err = remove_counter(it, slot, serial);
    }
    mutex_lock(&it->lock);
    it->why = err;
    it->trouble = 0;
    it->end_s = clock_monotonic_s();
    mutex_unlock(&it->lock);
    say_end(it, err); /* first: who sees the state finds the line */
    mutex_lock(&it->lock);
    remover__move(it, err == 0 ? REMOVER_ENDED : REMOVER_STOPPED);
    pthread_cond_broadcast(&it->changed);
    mutex_unlock(&it->lock);
}

/* False at the end. */
static bool
wait_for_work(struct remover *it)
{
    mutex_lock(&it->lock);
    while (it->state != REMOVER_WANTED && !is_stopping(it)) {
        mutex_wait(&it->lock, &it->changed);
    }
    bool is_over = is_stopping(it);
    mutex_unlock(&it->lock);
    return !is_over;
}

static void *
run(void *arg)
{
    struct remover *it = arg;
    ASSERT(it->magic == REMOVER_MAGIC);
    give_way_begin(NICE);
    qsbr_register(it->store->qsbr, &it->reader);
    while (wait_for_work(it)) {
        remove_all(it);
    }
    qsbr_unregister(it->store->qsbr, &it->reader);
    return NULL;
}

int
remover_start(struct remover *it)
{
    it->magic = REMOVER_MAGIC;
    it->source.is_stopping = &it->stopping;
    it->source.reader = &it->reader;
    atomic_init(&it->stopping, false);
    mutex_init(&it->lock);
    pthread_cond_init(&it->changed, NULL);
    if (pthread_create(&it->thread, NULL, run, it) != 0) {
        remover_fini(it);
        return ERR_NO_THREAD;
    }
    return 0;
}

void
remover_stop(struct remover *it)
{
    ASSERT(it->magic == REMOVER_MAGIC);
    mutex_lock(&it->lock);
    bool was_stopping = is_stopping(it);
    /* relaxed: see is_stopping */
    atomic_store_explicit(&it->stopping, true, memory_order_relaxed);
    pthread_cond_broadcast(&it->changed);
    mutex_unlock(&it->lock);
    if (!was_stopping) {
        pthread_join(it->thread, NULL);
    }
}

void
remover_fini(struct remover *it)
{
    ASSERT(it->magic == REMOVER_MAGIC && it->n_holds == 0);
    ASSERT(!it->is_at_batch);
    it->magic = 0;
    if (it->owns != NULL) {
        owns_destroy(&it->owns);
    }
    pthread_cond_destroy(&it->changed);
    mutex_fini(&it->lock);
}

/* ---- other threads ---- */

int
remover_begin(struct remover *it, struct owns **owns)
{
    ASSERT(it->magic == REMOVER_MAGIC);
    mutex_lock(&it->lock);
    int err = is_stopping(it)                          ? ERR_CLOSED
        : is_under_way(it) || it->n_holds > 0          ? ERR_FORGETS
        : !store_is_moved(it->store, owns_rule(*owns)) ? ERR_NOT_MOVED
                                                       : 0;
    if (err == 0) {
        if (it->owns != NULL) {
            owns_destroy(&it->owns);
        }
        it->owns = *owns;
        *owns = NULL;
        remover__move(it, REMOVER_WANTED);
        it->why = 0;
        it->total = it->scanned = it->forgotten = it->unread = 0;
        it->began_s = clock_monotonic_s();
        pthread_cond_broadcast(&it->changed);
    }
    mutex_unlock(&it->lock);
    return err;
}

void
remover_hold(struct remover *it, const char *rule, int why)
{
    ASSERT(it->magic == REMOVER_MAGIC && why != 0);
    mutex_lock(&it->lock);
    it->n_holds++;
    if (is_under_way(it) && it->why == 0 &&
        (rule == NULL || strcmp(rule, owns_rule(it->owns)) == 0)) {
        it->why = why;
    }
    while (it->why != 0 && it->is_at_batch) {
        mutex_wait(&it->lock, &it->changed);
    }
    mutex_unlock(&it->lock);
}

void
remover_release(struct remover *it)
{
    ASSERT(it->magic == REMOVER_MAGIC);
    mutex_lock(&it->lock);
    ASSERT(it->n_holds > 0);
    it->n_holds--;
    mutex_unlock(&it->lock);
}

static const char *
word_of(const struct remover *it)
{
    static const char *const words[] = {
#define X(name, word, text) [REMOVER_##name] = word,
        REMOVER_STATES(X)
#undef X
    };
    return it->trouble != 0 && it->state == REMOVER_RUNS ? "waiting"
                                                         : words[it->state];
}

/* How far it is; all only at the end, since records come and go. */
static uint64_t
percent(const struct remover *it)
{
    if (it->state == REMOVER_ENDED) {
        return 100;
    }
    uint64_t whole = it->total == 0 ? 0 : it->scanned / (it->total / 100 + 1);
    return whole > 99 ? 99 : whole;
}

static void
say(void (*stat_fn)(void *context, const char *name, const char *value),
    void *context, const char *name, uint64_t value)
{
    char text[NUM_U64_DIGITS_MAX + 1];
    text[num_format_u64(value, text)] = '\0';
    stat_fn(context, name, text);
}

void
remover_each_stat(struct remover *it,
    void (*stat_fn)(void *context, const char *name, const char *value),
    void *context)
{
    mutex_lock(&it->lock);
    int why = it->trouble != 0 ? it->trouble : it->why;
    uint64_t end_s = is_under_way(it) ? clock_monotonic_s() : it->end_s;
    stat_fn(context, "state", word_of(it));
    if (it->owns != NULL) {
        stat_fn(context, "rule", owns_rule(it->owns));
        say(stat_fn, context, "percent", percent(it));
        say(stat_fn, context, "records", it->total);
        say(stat_fn, context, "scanned", it->scanned);
        say(stat_fn, context, "forgotten", it->forgotten);
        say(stat_fn, context, "unread", it->unread);
        say(stat_fn, context, "seconds", end_s - it->began_s);
    }
    if (why != 0) {
        stat_fn(context, "reason", err_text(why));
    }
    mutex_unlock(&it->lock);
}
