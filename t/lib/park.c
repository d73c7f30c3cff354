/* SPDX-License-Identifier: BSD-3-Clause */
/* A parking store. A call is either passed on at once, or put on a list; the
 * thread takes the list as a whole, turns it round, and does the calls: so
 * answers come late, from another thread, and not in the order of the calls.
 * Calls of one session keep their order, since a session waits for each. The
 * thread is an online reader of the store only while it reads.
 *
 * Changes get numbers of a log, those of the inner store's where it has one. A
 * second thread moves what is committed: late, and in steps of its own. */
#include "lib/park.h"

#include "base/err.h"
#include "base/mutex.h"
#include "call/store_calls.h"
#include "lib/outcomes.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

enum park_kind { PARK_GET, PARK_CHANGE, PARK_EDIT };

/* A parked call. The store may use call->next, the kind needs a place. */
struct parked {
    struct parked *next;
    enum park_kind kind;
    void *call;
};

struct park {
    struct store store; /* first: the seam */
    struct store *inner;
    pthread_t thread;
    struct qsbr_reader reader; /* the thread's */
    pthread_t log_thread;
    struct outcomes outcomes;
    struct store_listener listener; /* to the inner store */
    struct mutex lock;              /* all below */
    pthread_cond_t changed;
    struct parked *list;
    uint64_t random;
    unsigned fails; /* one commit in so many; 0: none */
    bool has_log;   /* the inner store gives numbers */
    bool stopping;
};

static uint64_t
next_random(struct park *park)
{
    mutex_lock(&park->lock);
    park->random = park->random * UINT64_C(6364136223846793005) + 1;
    uint64_t random = park->random >> 32;
    mutex_unlock(&park->lock);
    return random;
}

/* False where this commit is to fail. */
static bool
may_commit(struct park *park)
{
    uint64_t random = next_random(park);
    mutex_lock(&park->lock);
    bool may = park->fails == 0 || (random >> 8) % park->fails != 0;
    mutex_unlock(&park->lock);
    return may;
}

static enum store_answer
do_change(struct park *park, struct store_change *change)
{
    enum store_answer answer = store_change(park->inner, change);
    mutex_lock(&park->lock);
    park->has_log = park->has_log || change->seq != 0;
    bool numbers = !park->has_log;
    mutex_unlock(&park->lock);
    if (numbers) {
        change->seq = outcomes_next(&park->outcomes);
    }
    return answer;
}

static void
do_parked(struct park *park, const struct parked *parked)
{
    struct store_call *call = parked->call; /* each begins with it */
    enum store_answer answer = STORE_DONE;
    switch (parked->kind) {
    case PARK_GET:
        qsbr_online(park->store.qsbr, &park->reader);
        answer = store_get(park->inner, parked->call);
        qsbr_offline(&park->reader);
        break;
    case PARK_CHANGE:
        qsbr_online(park->store.qsbr, &park->reader);
        answer = do_change(park, parked->call);
        qsbr_offline(&park->reader);
        break;
    case PARK_EDIT:
        answer = store_edit(park->inner, parked->call);
        break;
    }
    if (answer == STORE_DONE) {
        call->done_fn(call);
    }
}

static struct parked *
take_all(struct park *park)
{
    mutex_lock(&park->lock);
    while (park->list == NULL && !park->stopping) {
        mutex_wait(&park->lock, &park->changed);
    }
    struct parked *list = park->list;
    park->list = NULL;
    mutex_unlock(&park->lock);
    return list;
}

static void *
run(void *arg)
{
    struct park *park = arg;
    struct parked *list;
    qsbr_register(park->store.qsbr, &park->reader);
    while ((list = take_all(park)) != NULL) {
        while (list != NULL) {
            struct parked *next = list->next;
            do_parked(park, list);
            free(list);
            list = next;
        }
    }
    qsbr_unregister(park->store.qsbr, &park->reader);
    return NULL;
}

/* True where this call is to be parked (and it has been). */
static bool
parks(struct store *store, enum park_kind kind, void *call)
{
    struct park *park = (struct park *)store;
    struct parked *parked = malloc(sizeof *parked);
    bool chosen = next_random(park) % 256 < 128;
    if (parked == NULL) {
        return false;
    }
    *parked = (struct parked){.kind = kind, .call = call};
    mutex_lock(&park->lock);
    if (chosen) {
        parked->next = park->list;
        park->list = parked;
        pthread_cond_signal(&park->changed);
    }
    mutex_unlock(&park->lock);
    if (!chosen) {
        free(parked);
    }
    return chosen;
}

static enum store_answer
park_get(struct store *store, struct store_get *get)
{
    return parks(store, PARK_GET, get)
        ? STORE_LATER
        : store_get(((struct park *)store)->inner, get);
}

static enum store_answer
park_change(struct store *store, struct store_change *change)
{
    return parks(store, PARK_CHANGE, change)
        ? STORE_LATER
        : do_change((struct park *)store, change);
}

static enum store_answer
park_edit(struct store *store, struct store_edit *edit)
{
    return parks(store, PARK_EDIT, edit)
        ? STORE_LATER
        : store_edit(((struct park *)store)->inner, edit);
}

static struct store_sum
park_sum(struct store *store, unsigned counter_slot)
{
    return store_sum(((struct park *)store)->inner, counter_slot);
}

static void
park_tables(struct store *store, unsigned counter_slot, int shard,
    struct engine_sum *sum)
{
    store_tables(((struct park *)store)->inner, counter_slot, shard, sum);
}

static bool
park_survey(struct store *store, unsigned counter_slot, unsigned shard,
    size_t *at, unsigned *n_left, struct engine_sum *sum,
    uint64_t (*width)[ENGINE_WIDTHS])
{
    return store_survey(((struct park *)store)->inner, counter_slot, shard, at,
        n_left, sum, width);
}

static uint64_t
park_hot_bytes(struct store *store, uint64_t *garbage_bytes)
{
    return store_hot_bytes(((struct park *)store)->inner, garbage_bytes);
}

/* What is asked of the inner store for a number: 0 where it gives none. */
static uint64_t
inner_seq(struct park *park, uint64_t seq)
{
    mutex_lock(&park->lock);
    bool has_log = park->has_log;
    mutex_unlock(&park->lock);
    return has_log ? seq : 0;
}

/* The inner store's log has its say, and then it takes its time. */
static enum store_commit
park_commit(struct store *store, uint64_t seq)
{
    struct park *park = (struct park *)store;
    enum store_commit inner = store_commit(park->inner, inner_seq(park, seq));
    if (next_random(park) % 2 == 0 && may_commit(park)) {
        outcomes_commit(&park->outcomes, seq, 0);
    }
    enum store_commit outer = outcomes_ask(&park->outcomes, seq);
    return outer == STORE_COMMITTED ? inner : outer;
}

static enum store_commit
park_outcome(struct store *store, uint64_t seq)
{
    struct park *park = (struct park *)store;
    enum store_commit outer = outcomes_get(&park->outcomes, seq);
    return outer == STORE_COMMITTED
        ? store_outcome(park->inner, inner_seq(park, seq))
        : outer;
}

static uint64_t
park_seen(struct store *store, const struct cell_key *key, uint32_t n)
{
    struct park *park = (struct park *)store;
    uint64_t inner = store_seen(park->inner, key, n);
    uint64_t outer = outcomes_open(&park->outcomes);
    return inner > outer ? inner : outer;
}

static uint64_t
park_pair(struct store *store, uint64_t id, uint64_t number, unsigned bits,
    uint64_t member)
{
    return store_pair(((struct park *)store)->inner, id, number, bits, member);
}

static void
park_numbers(struct store *store, unsigned pairs, unsigned bits,
    unsigned shard, struct engine_numbers *out)
{
    store_numbers(((struct park *)store)->inner, pairs, bits, shard, out);
}

static enum store_answer
park_pin(struct store *store, struct store_pin *pin)
{
    return store_pin(((struct park *)store)->inner, pin);
}

static void
park_unpin(struct store *store, struct sorted_pin *pin)
{
    store_unpin(((struct park *)store)->inner, pin);
}

static void
park_sorted_figures(struct store *store, struct sorted_figures *out)
{
    store_sorted_figures(((struct park *)store)->inner, out);
}

static void
park_about_get(struct store *store, struct store_about *about)
{
    store_about_get(((struct park *)store)->inner, about);
}

static void
park_about_add(struct store *store, struct store_about *about)
{
    store_about_add(((struct park *)store)->inner, about);
}

static void
park_names_stats(struct store *store,
    void (*stat_fn)(void *context, const char *name, const char *value),
    void *context)
{
    store_names_stats(((struct park *)store)->inner, stat_fn, context);
}

static bool
park_about_stats(struct store *store, uint32_t *serial,
    void (*stat_fn)(void *context, const char *name, const char *value),
    void *context)
{
    return store_about_stats(
        ((struct park *)store)->inner, serial, stat_fn, context);
}

static int
park_fault(struct store *store)
{
    return store_fault(((struct park *)store)->inner);
}

static void
park_listen(struct store *store, struct store_listener *listener)
{
    outcomes_listen(&((struct park *)store)->outcomes, listener);
}

static void
park_unlisten(struct store *store, struct store_listener *listener)
{
    outcomes_unlisten(&((struct park *)store)->outcomes, listener);
}

/* The inner store's log has moved: any thread. */
static void
on_moved(struct store_listener *listener)
{
    struct park *park =
        (struct park *)((char *)listener - offsetof(struct park, listener));
    outcomes_note(&park->outcomes);
}

/* The log's thread: what was asked for is committed late, or fails. */
static void *
run_log(void *arg)
{
    struct park *park = arg;
    uint64_t from, asked;
    while ((asked = outcomes_wait_more(&park->outcomes, &from)) != 0) {
        uint64_t random = next_random(park);
        uint64_t seq = from + 1 + (random >> 8) % (asked - from);
        for (uint64_t i = random % 4; i > 0; i--) {
            sched_yield();
        }
        if (may_commit(park)) {
            outcomes_commit(&park->outcomes, seq, 0);
        } else {
            outcomes_fail(&park->outcomes, seq, 0);
        }
    }
    return NULL;
}

static enum store_answer
park_checkpoint(struct store *store, struct store_checkpoint *checkpoint)
{
    return store_checkpoint(((struct park *)store)->inner, checkpoint);
}

static enum store_answer
park_seal(struct store *store, struct store_seal *seal)
{
    return store_seal(((struct park *)store)->inner, seal);
}

static enum store_answer
park_dump(struct store *store, struct store_dump *dump)
{
    return store_dump(((struct park *)store)->inner, dump);
}

static enum store_answer
park_backup(struct store *store, struct store_backup *backup)
{
    return store_backup(((struct park *)store)->inner, backup);
}

static int
park_end_backup(struct store *store, struct store_backup *backup)
{
    return store_end_backup(((struct park *)store)->inner, backup);
}

static void
park_end_dump(struct store *store, struct store_dump *dump)
{
    store_end_dump(((struct park *)store)->inner, dump);
}

static void
park_data_stats(struct store *store,
    void (*stat_fn)(void *context, const char *name, const char *value),
    void *context)
{
    store_data_stats(((struct park *)store)->inner, stat_fn, context);
}

static void
park_cold_stats(struct store *store,
    void (*stat_fn)(void *context, const char *name, const char *value),
    void *context)
{
    store_cold_stats(((struct park *)store)->inner, stat_fn, context);
}

static int
park_producer(struct store *store, const char *name, size_t len,
    struct store_producer *out)
{
    return store_producer(((struct park *)store)->inner, name, len, out);
}

static int
park_join_window(
    struct store *store, const struct store_window *window, uint64_t *seq)
{
    return store_join_window(((struct park *)store)->inner, window, seq);
}

static uint32_t
park_windows(
    struct store *store, uint32_t *at, struct store_window *out, uint32_t n)
{
    return store_windows(((struct park *)store)->inner, at, out, n);
}

static void
park_producer_stats(struct store *store,
    void (*stat_fn)(void *context, const char *name, const char *value),
    void *context)
{
    store_producer_stats(((struct park *)store)->inner, stat_fn, context);
}

static int
park_forget(struct store *store, struct owns **owns)
{
    return store_forget(((struct park *)store)->inner, owns);
}

static void
park_forget_stats(struct store *store,
    void (*stat_fn)(void *context, const char *name, const char *value),
    void *context)
{
    store_forget_stats(((struct park *)store)->inner, stat_fn, context);
}

static const struct store_calls park_calls = {
    .get = park_get,
    .change = park_change,
    .edit = park_edit,
    .producer = park_producer,
    .join_window = park_join_window,
    .windows = park_windows,
    .producer_stats = park_producer_stats,
    .forget = park_forget,
    .forget_stats = park_forget_stats,
    .commit = park_commit,
    .outcome = park_outcome,
    .seen = park_seen,
    .fault = park_fault,
    .pair = park_pair,
    .numbers = park_numbers,
    .pin = park_pin,
    .unpin = park_unpin,
    .sorted_figures = park_sorted_figures,
    .about_get = park_about_get,
    .about_add = park_about_add,
    .about_stats = park_about_stats,
    .names_stats = park_names_stats,
    .listen = park_listen,
    .unlisten = park_unlisten,
    .sum = park_sum,
    .tables = park_tables,
    .survey = park_survey,
    .hot_bytes = park_hot_bytes,
    .checkpoint = park_checkpoint,
    .seal = park_seal,
    .dump = park_dump,
    .end_dump = park_end_dump,
    .backup = park_backup,
    .end_backup = park_end_backup,
    .data_stats = park_data_stats,
    .cold_stats = park_cold_stats,
};

/* Does what is parked, and ends the thread. */
static void
stop_thread(struct park *park)
{
    mutex_lock(&park->lock);
    park->stopping = true;
    pthread_cond_signal(&park->changed);
    mutex_unlock(&park->lock);
    pthread_join(park->thread, NULL);
}

static void
free_park(struct park *park)
{
    outcomes_fini(&park->outcomes);
    pthread_cond_destroy(&park->changed);
    mutex_fini(&park->lock);
    free(park);
}

int
park_create(struct store *inner, uint64_t seed, struct store **out)
{
    struct park *park = calloc(1, sizeof *park);
    if (park == NULL) {
        return ERR_NO_MEMORY;
    }
    park->store = *inner;
    park->store.calls = &park_calls;
    park->inner = inner;
    park->random = seed;
    mutex_init(&park->lock);
    pthread_cond_init(&park->changed, NULL);
    outcomes_init(&park->outcomes);
    if (pthread_create(&park->thread, NULL, run, park) != 0) {
        goto err_after_outcomes;
    }
    if (pthread_create(&park->log_thread, NULL, run_log, park) != 0) {
        stop_thread(park);
        goto err_after_outcomes;
    }
    park->listener.moved_fn = on_moved;
    store_listen(inner, &park->listener);
    *out = &park->store;
    return 0;

err_after_outcomes:
    free_park(park);
    return ERR_SYSTEM;
}

void
park_fail(struct store *outer, unsigned one_in)
{
    struct park *park = (struct park *)outer;
    mutex_lock(&park->lock);
    park->fails = one_in;
    mutex_unlock(&park->lock);
}

void
park_destroy(struct store **outer)
{
    struct park *park = (struct park *)*outer;
    store_unlisten(park->inner, &park->listener);
    stop_thread(park);
    outcomes_stop(&park->outcomes);
    pthread_join(park->log_thread, NULL);
    free_park(park);
    *outer = NULL;
}
