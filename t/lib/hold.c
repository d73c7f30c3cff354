/* SPDX-License-Identifier: BSD-3-Clause */
/* A store that holds calls, in the order in which they came. Calls are done
 * outside the lock: an answer may lead to the next call at once. */
#include "lib/hold.h"

#include "base/assert.h"
#include "base/err.h"
#include "base/mutex.h"
#include "call/store_calls.h"

#include <pthread.h>
#include <stdlib.h>

enum hold_kind { HOLD_GET, HOLD_CHANGE, HOLD_EDIT };

enum { HOLD_CALLS_MAX = 256 };

struct held {
    enum hold_kind kind;
    void *call;
};

struct hold {
    struct store store; /* first: the seam */
    struct store *inner;
    struct outcomes outcomes;
    struct mutex lock; /* all below */
    pthread_cond_t changed;
    bool logs;
    bool holds;
    bool holds_edits;
    unsigned n;
    struct held held[HOLD_CALLS_MAX];
};

static struct hold *
hold_of(struct store *store)
{
    return (struct hold *)store;
}

/* True where the call is held. */
static bool
take(struct store *store, enum hold_kind kind, void *call)
{
    struct hold *hold = hold_of(store);
    mutex_lock(&hold->lock);
    bool taken = hold->holds && (kind != HOLD_EDIT || hold->holds_edits);
    if (taken) {
        ASSERT(hold->n < HOLD_CALLS_MAX);
        hold->held[hold->n++] = (struct held){kind, call};
        pthread_cond_broadcast(&hold->changed);
    }
    mutex_unlock(&hold->lock);
    return taken;
}

static enum store_answer
hold_get(struct store *store, struct store_get *get)
{
    return take(store, HOLD_GET, get) ? STORE_LATER
                                      : store_get(hold_of(store)->inner, get);
}

static enum store_answer
do_change(struct hold *hold, struct store_change *change)
{
    enum store_answer answer = store_change(hold->inner, change);
    mutex_lock(&hold->lock);
    bool logs = hold->logs;
    mutex_unlock(&hold->lock);
    if (logs) {
        change->seq = outcomes_next(&hold->outcomes);
    }
    return answer;
}

static enum store_answer
hold_change(struct store *store, struct store_change *change)
{
    return take(store, HOLD_CHANGE, change)
        ? STORE_LATER
        : do_change(hold_of(store), change);
}

static enum store_answer
hold_edit(struct store *store, struct store_edit *edit)
{
    return take(store, HOLD_EDIT, edit)
        ? STORE_LATER
        : store_edit(hold_of(store)->inner, edit);
}

static struct store_sum
hold_sum(struct store *store, unsigned counter_slot)
{
    return store_sum(hold_of(store)->inner, counter_slot);
}

static void
hold_tables(struct store *store, unsigned counter_slot, int shard,
    struct engine_sum *sum)
{
    store_tables(hold_of(store)->inner, counter_slot, shard, sum);
}

static bool
hold_survey(struct store *store, unsigned counter_slot, unsigned shard,
    size_t *at, unsigned *n_left, struct engine_sum *sum,
    uint64_t (*width)[ENGINE_WIDTHS])
{
    return store_survey(
        hold_of(store)->inner, counter_slot, shard, at, n_left, sum, width);
}

static uint64_t
hold_hot_bytes(struct store *store, uint64_t *garbage_bytes)
{
    return store_hot_bytes(hold_of(store)->inner, garbage_bytes);
}

static enum store_commit
hold_commit(struct store *store, uint64_t seq)
{
    return outcomes_ask(&hold_of(store)->outcomes, seq);
}

static enum store_commit
hold_outcome(struct store *store, uint64_t seq)
{
    return outcomes_get(&hold_of(store)->outcomes, seq);
}

static uint64_t
hold_seen(struct store *store, const struct cell_key *key, uint32_t n)
{
    (void)key;
    (void)n;
    return outcomes_open(&hold_of(store)->outcomes);
}

static uint64_t
hold_pair(struct store *store, uint64_t id, uint64_t number, unsigned bits,
    uint64_t member)
{
    return store_pair(hold_of(store)->inner, id, number, bits, member);
}

static void
hold_numbers(struct store *store, unsigned pairs, unsigned bits,
    unsigned shard, struct engine_numbers *out)
{
    store_numbers(hold_of(store)->inner, pairs, bits, shard, out);
}

static enum store_answer
hold_pin(struct store *store, struct store_pin *pin)
{
    return store_pin(hold_of(store)->inner, pin);
}

static void
hold_unpin(struct store *store, struct sorted_pin *pin)
{
    store_unpin(hold_of(store)->inner, pin);
}

static void
hold_sorted_figures(struct store *store, struct sorted_figures *out)
{
    store_sorted_figures(hold_of(store)->inner, out);
}

static void
hold_about_get(struct store *store, struct store_about *about)
{
    store_about_get(hold_of(store)->inner, about);
}

static void
hold_about_add(struct store *store, struct store_about *about)
{
    store_about_add(hold_of(store)->inner, about);
}

static void
hold_names_stats(struct store *store,
    void (*stat_fn)(void *context, const char *name, const char *value),
    void *context)
{
    store_names_stats(hold_of(store)->inner, stat_fn, context);
}

static bool
hold_about_stats(struct store *store, uint32_t *serial,
    void (*stat_fn)(void *context, const char *name, const char *value),
    void *context)
{
    return store_about_stats(hold_of(store)->inner, serial, stat_fn, context);
}

static int
hold_fault(struct store *store)
{
    return outcomes_fault(&hold_of(store)->outcomes);
}

static void
hold_listen(struct store *store, struct store_listener *listener)
{
    outcomes_listen(&hold_of(store)->outcomes, listener);
}

static void
hold_unlisten(struct store *store, struct store_listener *listener)
{
    outcomes_unlisten(&hold_of(store)->outcomes, listener);
}

static enum store_answer
hold_checkpoint(struct store *store, struct store_checkpoint *checkpoint)
{
    return store_checkpoint(hold_of(store)->inner, checkpoint);
}

static void
hold_data_stats(struct store *store,
    void (*stat_fn)(void *context, const char *name, const char *value),
    void *context)
{
    store_data_stats(hold_of(store)->inner, stat_fn, context);
}

static int
hold_producer(struct store *store, const char *name, size_t len,
    struct store_producer *out)
{
    return store_producer(hold_of(store)->inner, name, len, out);
}

static int
hold_join_window(
    struct store *store, const struct store_window *window, uint64_t *seq)
{
    return store_join_window(((struct hold *)store)->inner, window, seq);
}

static uint32_t
hold_windows(
    struct store *store, uint32_t *at, struct store_window *out, uint32_t n)
{
    return store_windows(((struct hold *)store)->inner, at, out, n);
}

static void
hold_producer_stats(struct store *store,
    void (*stat_fn)(void *context, const char *name, const char *value),
    void *context)
{
    store_producer_stats(hold_of(store)->inner, stat_fn, context);
}

static int
hold_forget(struct store *store, struct owns **owns)
{
    return store_forget(hold_of(store)->inner, owns);
}

static void
hold_forget_stats(struct store *store,
    void (*stat_fn)(void *context, const char *name, const char *value),
    void *context)
{
    store_forget_stats(hold_of(store)->inner, stat_fn, context);
}

static const struct store_calls hold_calls = {
    .get = hold_get,
    .change = hold_change,
    .edit = hold_edit,
    .producer = hold_producer,
    .join_window = hold_join_window,
    .windows = hold_windows,
    .producer_stats = hold_producer_stats,
    .forget = hold_forget,
    .forget_stats = hold_forget_stats,
    .commit = hold_commit,
    .outcome = hold_outcome,
    .seen = hold_seen,
    .fault = hold_fault,
    .pair = hold_pair,
    .numbers = hold_numbers,
    .pin = hold_pin,
    .unpin = hold_unpin,
    .sorted_figures = hold_sorted_figures,
    .about_get = hold_about_get,
    .about_add = hold_about_add,
    .about_stats = hold_about_stats,
    .names_stats = hold_names_stats,
    .listen = hold_listen,
    .unlisten = hold_unlisten,
    .sum = hold_sum,
    .tables = hold_tables,
    .survey = hold_survey,
    .hot_bytes = hold_hot_bytes,
    .checkpoint = hold_checkpoint,
    .data_stats = hold_data_stats,
};

int
hold_create(struct store *inner, struct store **out)
{
    struct hold *hold = calloc(1, sizeof *hold);
    if (hold == NULL) {
        return ERR_NO_MEMORY;
    }
    hold->store = *inner;
    hold->store.calls = &hold_calls;
    hold->inner = inner;
    mutex_init(&hold->lock);
    pthread_cond_init(&hold->changed, NULL);
    outcomes_init(&hold->outcomes);
    *out = &hold->store;
    return 0;
}

void
hold_begin(struct store *store, bool edits)
{
    struct hold *hold = hold_of(store);
    mutex_lock(&hold->lock);
    hold->holds = true;
    hold->holds_edits = edits;
    mutex_unlock(&hold->lock);
}

void
hold_end(struct store *store)
{
    struct hold *hold = hold_of(store);
    mutex_lock(&hold->lock);
    hold->holds = false;
    mutex_unlock(&hold->lock);
}

struct outcomes *
hold_log(struct store *store, bool logs)
{
    struct hold *hold = hold_of(store);
    mutex_lock(&hold->lock);
    hold->logs = logs;
    mutex_unlock(&hold->lock);
    return &hold->outcomes;
}

void
hold_wait(struct store *store, unsigned n)
{
    struct hold *hold = hold_of(store);
    mutex_lock(&hold->lock);
    while (hold->n < n) {
        mutex_wait(&hold->lock, &hold->changed);
    }
    mutex_unlock(&hold->lock);
}

/* A get or a change, as a reader of its own, so that any thread may release
 * calls. */
static enum store_answer
do_online(struct hold *hold, const struct held *held)
{
    struct qsbr_reader reader;
    qsbr_register(hold->store.qsbr, &reader);
    qsbr_online(hold->store.qsbr, &reader);
    enum store_answer answer = held->kind == HOLD_GET
        ? store_get(hold->inner, held->call)
        : do_change(hold, held->call);
    qsbr_offline(&reader);
    qsbr_unregister(hold->store.qsbr, &reader);
    return answer;
}

static void
do_held(struct hold *hold, const struct held *held)
{
    struct store_call *call = held->call; /* each begins with it */
    enum store_answer answer = STORE_DONE;
    switch (held->kind) {
    case HOLD_GET:
    case HOLD_CHANGE:
        answer = do_online(hold, held);
        break;
    case HOLD_EDIT:
        answer = store_edit(hold->inner, held->call);
        break;
    }
    if (answer == STORE_DONE) {
        call->done_fn(call);
    }
}

unsigned
hold_release(struct store *store)
{
    struct hold *hold = hold_of(store);
    struct held held[HOLD_CALLS_MAX];
    mutex_lock(&hold->lock);
    unsigned n = hold->n;
    for (unsigned i = 0; i < n; i++) {
        held[i] = hold->held[i];
    }
    hold->n = 0;
    mutex_unlock(&hold->lock);
    for (unsigned i = 0; i < n; i++) {
        do_held(hold, &held[i]);
    }
    return n;
}

void
hold_destroy(struct store **outer)
{
    struct hold *hold = hold_of(*outer);
    ASSERT(hold->n == 0);
    outcomes_fini(&hold->outcomes);
    pthread_cond_destroy(&hold->changed);
    mutex_fini(&hold->lock);
    free(hold);
    *outer = NULL;
}
