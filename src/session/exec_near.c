/* SPDX-License-Identifier: BSD-3-Clause */
/* Keys of items that look as if a cell had been meant: a suffix that is typed
 * wrong, a name or a prefix in the place of an id. What is stored under one is
 * no counter, whatever the client believes: it goes when memory is short, and
 * with the server. So each such key counts, whether it is refused or not, once
 * a request that has it; of a get that is refused, the first one. The log has
 * some of them, at most NEAR_LINES a worker in NEAR_WINDOW_S. Keys of cells do
 * not come here, nor do most others (key_names_may_be_near). */
#include "session/exec_admin.h"

#include "proto/key.h"

enum { NEAR_LINES = 10, NEAR_WINDOW_S = 60 };

int
exec__look_near(struct session *session, const char *key, size_t len)
{
    return key_near(exec__schema(session), key, len);
}

/* True where one more line may be logged. */
static bool
may_say(struct session *session)
{
    struct executor *executor = session->executor;
    uint64_t now_s = exec__now_s(session);
    if (now_s - executor->near_since_s >= NEAR_WINDOW_S) {
        executor->near_since_s = now_s;
        executor->near_said = 0;
    }
    return executor->near_said++ < NEAR_LINES;
}

int
exec__count_near(struct session *session, const char *key, size_t len)
{
    struct admin *admin = session->executor->admin;
    int err = key_near(exec__schema(session), key, len);
    if (err == 0) {
        return 0;
    }
    exec__count(session, METRIC_near_cells, 1);
    if (admin->near_fn != NULL && may_say(session)) {
        admin->near_fn(admin, session, err, key, len);
    }
    return session->executor->rules.no_near ? err : 0;
}
