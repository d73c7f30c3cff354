/* SPDX-License-Identifier: BSD-3-Clause */
/* A parking store. A call is either passed on at once, or put on a list; the
 * thread takes the list as a whole, turns it round, and does the calls: so
 * answers come late, from another thread, and not in the order of the calls.
 * Calls of one session keep their order, since a session waits for each. The
 * thread is an online reader of the store only while it reads. */
#include "lib/park.h"

#include "base/err.h"

#include <pthread.h>
#include <stdbool.h>
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
    pthread_mutex_t lock;      /* all below */
    pthread_cond_t changed;
    struct parked *list;
    uint64_t random;
    bool stopping;
};

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
        answer = store_change(park->inner, parked->call);
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
    pthread_mutex_lock(&park->lock);
    while (park->list == NULL && !park->stopping) {
        pthread_cond_wait(&park->changed, &park->lock);
    }
    struct parked *list = park->list;
    park->list = NULL;
    pthread_mutex_unlock(&park->lock);
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
    bool chosen;
    if (parked == NULL) {
        return false;
    }
    *parked = (struct parked){.kind = kind, .call = call};
    pthread_mutex_lock(&park->lock);
    park->random = park->random * UINT64_C(6364136223846793005) + 1;
    chosen = (park->random >> 40) % 2 == 0;
    if (chosen) {
        parked->next = park->list;
        park->list = parked;
        pthread_cond_signal(&park->changed);
    }
    pthread_mutex_unlock(&park->lock);
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
        : store_change(((struct park *)store)->inner, change);
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

static void
park_widths(struct store *store, unsigned counter_slot,
    uint64_t width[SCHEMA_COLUMNS_MAX][ENGINE_WIDTHS])
{
    store_widths(((struct park *)store)->inner, counter_slot, width);
}

static uint64_t
park_hot_bytes(struct store *store, uint64_t *garbage_bytes)
{
    return store_hot_bytes(((struct park *)store)->inner, garbage_bytes);
}

static const struct store_calls park_calls = {
    .get = park_get,
    .change = park_change,
    .edit = park_edit,
    .sum = park_sum,
    .tables = park_tables,
    .widths = park_widths,
    .hot_bytes = park_hot_bytes,
};

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
    pthread_mutex_init(&park->lock, NULL);
    pthread_cond_init(&park->changed, NULL);
    if (pthread_create(&park->thread, NULL, run, park) != 0) {
        free(park);
        return ERR_SYSTEM;
    }
    *out = &park->store;
    return 0;
}

void
park_destroy(struct store **outer)
{
    struct park *park = (struct park *)*outer;
    pthread_mutex_lock(&park->lock);
    park->stopping = true;
    pthread_cond_signal(&park->changed);
    pthread_mutex_unlock(&park->lock);
    pthread_join(park->thread, NULL);
    pthread_cond_destroy(&park->changed);
    pthread_mutex_destroy(&park->lock);
    free(park);
    *outer = NULL;
}
