/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums of what workers have timed. Their histograms are only read; what stats
 * reset makes old is taken off. Where there is no memory for that they go on as
 * they are. */
#include "server/admin_priv.h"

#include <stdlib.h>

/* Of one path, of workers that there are and that there were. */
static void
sum_path(const struct server_admin *admin, enum latency_verb verb,
    enum latency_path path, struct hist_sum *sum)
{
    mutex_assert_held(&admin->lock);
    for (unsigned i = 0; i < admin->n_workers; i++) {
        latency_read(admin->workers[i]->latency, verb, path, sum);
    }
    if (admin->kept_latency != NULL) {
        hist_sum_add(sum, &admin->kept_latency->request[verb][path]);
    }
    if (admin->old_latency != NULL) {
        hist_sum_forget(sum, &admin->old_latency->request[verb][path]);
    }
}

void
admin__latency_sum(struct server_admin *admin, enum latency_verb verb,
    enum latency_path path, struct hist_sum *sum)
{
    mutex_lock(&admin->lock);
    for (unsigned i = 0; i < LATENCY_PATH_COUNT; i++) {
        if (path == LATENCY_PATH_COUNT || path == i) {
            struct hist_sum one = {.count = 0};
            sum_path(admin, verb, (enum latency_path)i, &one);
            hist_sum_add(sum, &one);
        }
    }
    mutex_unlock(&admin->lock);
}

void
admin__reset_latency(struct server_admin *admin)
{
    struct latency_sums *old = calloc(1, sizeof *old);
    mutex_assert_held(&admin->lock);
    if (old == NULL) {
        return;
    }
    free(admin->old_latency);
    admin->old_latency = old;
    for (unsigned i = 0; i < admin->n_workers; i++) {
        latency_sums_read(old, admin->workers[i]->latency);
        slow_clear(admin->workers[i]->slow);
    }
    for (unsigned verb = 0; verb < LATENCY_VERB_COUNT; verb++) {
        for (unsigned path = 0; path < LATENCY_PATH_COUNT; path++) {
            if (admin->kept_latency != NULL) {
                hist_sum_add(&old->request[verb][path],
                    &admin->kept_latency->request[verb][path]);
            }
        }
    }
}

void
admin__keep_latency(struct server_admin *admin)
{
    mutex_assert_held(&admin->lock);
    if (admin->kept_latency == NULL) {
        admin->kept_latency = calloc(1, sizeof *admin->kept_latency);
    }
    if (admin->kept_latency == NULL) { /* they begin at 0 again */
        free(admin->old_latency);
        admin->old_latency = NULL;
        return;
    }
    for (unsigned i = 0; i < admin->n_workers; i++) {
        latency_sums_read(admin->kept_latency, admin->workers[i]->latency);
    }
}
