/* SPDX-License-Identifier: BSD-3-Clause */
/* The server weighs what is wrong and says what to do; here it is only shown.
 */
#include "cli/health.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { NAME_BYTES = 32, PROBLEMS_SHOWN_MAX = 64 };

bool
health_ask(struct ask *ask, struct health *health)
{
    if (!ask_stats(ask, "health", &health->figures)) {
        return false;
    }
    const char *state = figures_text(&health->figures, "state");
    (void)snprintf(health->state, sizeof health->state, "%s",
        state == NULL ? "unknown" : state);
    (void)figures_u64(&health->figures, "problems", &health->n_problems);
    health->has_percent =
        figures_u64(&health->figures, "percent", &health->percent);
    return true;
}

void
health_fini(struct health *health)
{
    figures_fini(&health->figures);
}

bool
health_is_ready(const struct health *health)
{
    return strcmp(health->state, "ready") == 0;
}

bool
health_is_well(const struct health *health)
{
    return health_is_ready(health) && health->n_problems == 0;
}

const char *
health_problem(const struct health *health, unsigned i)
{
    char name[NAME_BYTES];
    (void)snprintf(name, sizeof name, "problem:%u", i + 1);
    return i < PROBLEMS_SHOWN_MAX ? figures_text(&health->figures, name)
                                  : NULL;
}

void
health_line(const struct health *health, struct buf *out)
{
    const char *worst = health_problem(health, 0);
    if (health->figures.error[0] != '\0') {
        buf_addf(out, "health is not known: `stats health` is answered %s; %s",
            health->figures.error,
            health->figures.is_name_unknown
                ? "the server is older than this program, look at its log"
                : "look at the server's log");
        return;
    }
    if (health_is_well(health)) {
        buf_add_text(out, "well");
        return;
    }
    bool says_state = worst != NULL &&
        strncmp(worst, health->state, strlen(health->state)) == 0;
    if (!health_is_ready(health) && !says_state) {
        buf_add_text(out, health->state);
        if (health->has_percent) {
            buf_addf(out, ", %" PRIu64 " %%", health->percent);
        }
        buf_add_text(out, worst == NULL ? "" : ": ");
    }
    buf_add_text(out, worst == NULL ? "" : worst);
}

void
health_json(const struct health *health, struct json *json)
{
    const char *problem = NULL;
    json_text(json, "state", health->state);
    if (health->has_percent) {
        json_u64(json, "percent", health->percent);
    }
    json_open(json, "problems", '[');
    for (unsigned i = 0; (problem = health_problem(health, i)) != NULL; i++) {
        json_text(json, NULL, problem);
    }
    json_close(json);
}
