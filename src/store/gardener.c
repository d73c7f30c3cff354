/* SPDX-License-Identifier: BSD-3-Clause */
/* One round of engine_tend every ROUND_MS. It is never an online reader, so
 * it holds no grace period up. */
#include "store/gardener.h"

#include "base/assert.h"
#include "base/err.h"

#include <time.h>

enum { ROUND_MS = 50, MS_PER_S = 1000, NS_PER_MS = 1000000 };

static uint64_t
now_ms(void)
{
    struct timespec now;
    int rv = clock_gettime(CLOCK_MONOTONIC, &now);
    ASSERT(rv == 0);
    return (uint64_t)now.tv_sec * MS_PER_S +
        (uint64_t)(now.tv_nsec / NS_PER_MS);
}

/* False when it is time to end. */
static bool
sleep_a_round(struct gardener *gardener)
{
    uint64_t until_ms = now_ms() + ROUND_MS;
    struct timespec until = {
        .tv_sec = (time_t)(until_ms / MS_PER_S),
        .tv_nsec = (long)(until_ms % MS_PER_S) * NS_PER_MS,
    };
    pthread_mutex_lock(&gardener->lock);
    while (!gardener->stopping &&
        pthread_cond_timedwait(&gardener->changed, &gardener->lock, &until) ==
            0) {
    }
    bool goes_on = !gardener->stopping;
    pthread_mutex_unlock(&gardener->lock);
    return goes_on;
}

static void *
run(void *arg)
{
    struct gardener *gardener = arg;
    while (sleep_a_round(gardener)) {
        (void)engine_tend(gardener->engine, now_ms());
    }
    return NULL;
}

int
gardener_start(struct gardener *gardener, struct engine *engine)
{
    pthread_condattr_t attr;
    *gardener = (struct gardener){.engine = engine};
    pthread_mutex_init(&gardener->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&gardener->changed, &attr);
    pthread_condattr_destroy(&attr);
    if (pthread_create(&gardener->thread, NULL, run, gardener) != 0) {
        pthread_cond_destroy(&gardener->changed);
        pthread_mutex_destroy(&gardener->lock);
        return ERR_SYSTEM;
    }
    return 0;
}

void
gardener_stop(struct gardener *gardener)
{
    pthread_mutex_lock(&gardener->lock);
    gardener->stopping = true;
    pthread_cond_signal(&gardener->changed);
    pthread_mutex_unlock(&gardener->lock);
    pthread_join(gardener->thread, NULL);
    pthread_cond_destroy(&gardener->changed);
    pthread_mutex_destroy(&gardener->lock);
}
