/* SPDX-License-Identifier: BSD-3-Clause */
/* Commits without a log. Numbers are committed in order, as those of a log
 * are: what failed is committed too once a later number is. */
#include "lib/outcomes.h"

#include "base/assert.h"

void
outcomes_init(struct outcomes *outcomes)
{
    *outcomes = (struct outcomes){0};
    mutex_init(&outcomes->lock);
    mutex_init(&outcomes->listeners_lock);
    pthread_cond_init(&outcomes->changed, NULL);
}

void
outcomes_fini(struct outcomes *outcomes)
{
    ASSERT(outcomes->listeners == NULL);
    pthread_cond_destroy(&outcomes->changed);
    mutex_fini(&outcomes->listeners_lock);
    mutex_fini(&outcomes->lock);
}

uint64_t
outcomes_next(struct outcomes *outcomes)
{
    mutex_lock(&outcomes->lock);
    uint64_t seq = ++outcomes->last;
    mutex_unlock(&outcomes->lock);
    return seq;
}

uint64_t
outcomes_open(struct outcomes *outcomes)
{
    mutex_lock(&outcomes->lock);
    uint64_t seq = outcomes->last > outcomes->committed ? outcomes->last : 0;
    mutex_unlock(&outcomes->lock);
    return seq;
}

/* Under the lock. */
static enum store_commit
standing(const struct outcomes *outcomes, uint64_t seq)
{
    if (seq <= outcomes->committed) {
        return STORE_COMMITTED;
    }
    return seq > outcomes->written && seq <= outcomes->failed
        ? STORE_COMMIT_FAILED
        : STORE_COMMIT_WAITS;
}

enum store_commit
outcomes_ask(struct outcomes *outcomes, uint64_t seq)
{
    mutex_lock(&outcomes->lock);
    if (seq > outcomes->asked) {
        outcomes->asked = seq;
        pthread_cond_broadcast(&outcomes->changed);
    }
    enum store_commit commit = standing(outcomes, seq);
    mutex_unlock(&outcomes->lock);
    return commit;
}

enum store_commit
outcomes_get(struct outcomes *outcomes, uint64_t seq)
{
    mutex_lock(&outcomes->lock);
    enum store_commit commit = standing(outcomes, seq);
    mutex_unlock(&outcomes->lock);
    return commit;
}

int
outcomes_fault(struct outcomes *outcomes)
{
    mutex_lock(&outcomes->lock);
    int fault = outcomes->fault;
    mutex_unlock(&outcomes->lock);
    return fault;
}

void
outcomes_listen(struct outcomes *outcomes, struct store_listener *listener)
{
    mutex_lock(&outcomes->listeners_lock);
    listener->next = outcomes->listeners;
    outcomes->listeners = listener;
    mutex_unlock(&outcomes->listeners_lock);
}

void
outcomes_unlisten(struct outcomes *outcomes, struct store_listener *listener)
{
    mutex_lock(&outcomes->listeners_lock);
    struct store_listener **link = &outcomes->listeners;
    while (*link != listener) {
        link = &(*link)->next;
    }
    *link = listener->next;
    mutex_unlock(&outcomes->listeners_lock);
}

void
outcomes_note(struct outcomes *outcomes)
{
    mutex_lock(&outcomes->listeners_lock);
    for (struct store_listener *listener = outcomes->listeners;
         listener != NULL; listener = listener->next) {
        listener->moved_fn(listener);
    }
    mutex_unlock(&outcomes->listeners_lock);
}

void
outcomes_wait(struct outcomes *outcomes, uint64_t seq)
{
    mutex_lock(&outcomes->lock);
    while (outcomes->asked < seq) {
        mutex_wait(&outcomes->lock, &outcomes->changed);
    }
    mutex_unlock(&outcomes->lock);
}

uint64_t
outcomes_wait_more(struct outcomes *outcomes, uint64_t *from)
{
    mutex_lock(&outcomes->lock);
    for (;;) {
        *from = outcomes->committed > outcomes->failed ? outcomes->committed
                                                       : outcomes->failed;
        if (outcomes->stopping || outcomes->asked > *from) {
            break;
        }
        mutex_wait(&outcomes->lock, &outcomes->changed);
    }
    uint64_t asked = outcomes->stopping ? 0 : outcomes->asked;
    mutex_unlock(&outcomes->lock);
    return asked;
}

void
outcomes_stop(struct outcomes *outcomes)
{
    mutex_lock(&outcomes->lock);
    outcomes->stopping = true;
    pthread_cond_broadcast(&outcomes->changed);
    mutex_unlock(&outcomes->lock);
}

void
outcomes_commit(struct outcomes *outcomes, uint64_t seq, int fault)
{
    mutex_lock(&outcomes->lock);
    if (seq > outcomes->committed) {
        outcomes->committed = seq;
    }
    outcomes->fault = fault;
    mutex_unlock(&outcomes->lock);
    outcomes_note(outcomes);
}

void
outcomes_write(struct outcomes *outcomes, uint64_t seq)
{
    mutex_lock(&outcomes->lock);
    outcomes->written = seq;
    mutex_unlock(&outcomes->lock);
}

void
outcomes_fail(struct outcomes *outcomes, uint64_t seq, int fault)
{
    mutex_lock(&outcomes->lock);
    outcomes->failed = seq;
    outcomes->fault = fault;
    mutex_unlock(&outcomes->lock);
    outcomes_note(outcomes);
}
