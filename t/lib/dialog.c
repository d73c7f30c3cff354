/* SPDX-License-Identifier: BSD-3-Clause */
/* A session driven by hand (dialog.h). The reader is online during a call of
 * the session only, so the keeper of the store is never held up. */
#include "lib/dialog.h"

#include "base/assert.h"
#include "proto/reply.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct dialog *
dialog_of_admin(struct admin *admin)
{
    return (struct dialog *)((char *)admin - offsetof(struct dialog, admin));
}

/* "pieces" is answered in three, the second of which is empty. */
static bool
say_stats(struct admin *admin, const char *args, size_t len,
    struct admin_reply *reply, struct reply_stats *out)
{
    enum { PIECES = 3 };
    (void)admin;
    if (len == strlen(" pieces") && memcmp(args, " pieces", len) == 0 &&
        ++reply->step < PIECES) {
        if (reply->step == 1) {
            reply_stats_u64(out, "first", 1);
        }
        return true;
    }
    /* As long as a line may be, without the space before it. */
    size_t n = len > 0 ? len - 1 : 0;
    char *text = malloc(n + 1);
    ASSERT(text != NULL);
    memcpy(text, args + (len > 0), n);
    text[n] = '\0';
    reply_stats_text(out, "args", text);
    free(text);
    reply_stats_end(out);
    return false;
}

static void
set_verbosity(struct admin *admin, unsigned level)
{
    dialog_of_admin(admin)->verbosity = level;
}

/* Any thread. */
static void
on_wake(struct session *session)
{
    struct dialog *dialog =
        (struct dialog *)((char *)session - offsetof(struct dialog, session));
    int rv = sem_post(&dialog->woken);
    ASSERT(rv == 0);
}

void
dialog_open(
    struct dialog *dialog, struct store *store, uint64_t value_bytes_max)
{
    *dialog = (struct dialog){.store = store,
        .admin = {.stats_fn = say_stats,
            .verbosity_fn = set_verbosity,
            .version = "test"},
        .mark = DIALOG_MARK,
        .budget = DIALOG_BUDGET};
    int rv = sem_init(&dialog->woken, 0, 0);
    ASSERT(rv == 0);
    dialog->metrics =
        aligned_alloc(_Alignof(struct metric_set), sizeof *dialog->metrics);
    ASSERT(dialog->metrics != NULL);
    memset(dialog->metrics, 0, sizeof *dialog->metrics);
    executor_init(&dialog->executor, store, dialog->metrics, &dialog->admin,
        value_bytes_max);
    session_init(&dialog->session, &dialog->executor, on_wake);
    qsbr_register(store->qsbr, &dialog->reader);
}

void
dialog_close(struct dialog *dialog)
{
    session_fini(&dialog->session);
    executor_fini(&dialog->executor);
    free(dialog->metrics);
    qsbr_unregister(dialog->store->qsbr, &dialog->reader);
    buf_fini(&dialog->in);
    buf_fini(&dialog->replies);
    sem_destroy(&dialog->woken);
}

void
dialog_add(struct dialog *dialog, const void *bytes, size_t len)
{
    buf_add(&dialog->in, bytes, len);
    ASSERT(!dialog->in.failed);
}

/* What waits is in the replies, in their order. */
static void
check_acks(const struct session_acks *acks, size_t out_len)
{
    const struct session_ack *ack = (const void *)acks->at.data;
    size_t at = 0;
    for (size_t i = 0; i < acks->at.len / sizeof *ack; i++) {
        ASSERT(ack[i].span.at >= at && ack[i].kind <= ACK_PART);
        at = (size_t)ack[i].span.at + ack[i].span.len;
        ASSERT(at <= out_len);
    }
    ASSERT(acks->at.len == 0 || acks->seq != 0);
}

/* What a session promises with each state. */
static void
check_state(const struct dialog *dialog, enum session_state state,
    unsigned budget_left, size_t out_len, size_t consumed)
{
    ASSERT(consumed <= dialog->in.len);
    ASSERT(budget_left <= dialog->budget);
    ASSERT(state != SESSION_FULL || out_len >= dialog->mark);
    ASSERT(state != SESSION_YIELD || budget_left == 0);
    ASSERT(state != SESSION_CLOSE || consumed == dialog->in.len);
    ASSERT(state != SESSION_READY || dialog->session.job == NULL);
    ASSERT(state != SESSION_PARKED || dialog->session.job != NULL);
}

static void
count_state(struct dialog *dialog, enum session_state state)
{
    dialog->n_calls++;
    dialog->n_full += state == SESSION_FULL;
    dialog->n_yield += state == SESSION_YIELD;
    dialog->n_parked += state == SESSION_PARKED;
    dialog->is_closed = state == SESSION_CLOSE;
}

enum session_state
dialog_step(struct dialog *dialog)
{
    struct buf out = {0};
    size_t consumed = 0;
    unsigned budget = dialog->budget;
    size_t len = dialog->in.len;
    char *bytes = malloc(len == 0 ? 1 : len);
    ASSERT(bytes != NULL && !dialog->is_closed);
    if (len > 0) {
        memcpy(bytes, dialog->in.data, len);
    }
    qsbr_online(dialog->store->qsbr, &dialog->reader);
    enum session_state state = session_run(
        &dialog->session, bytes, len, dialog->mark, &budget, &out, &consumed);
    qsbr_offline(&dialog->reader);
    free(bytes);
    ASSERT(!out.failed);
    check_state(dialog, state, budget, out.len, consumed);
    check_acks(&dialog->executor.acks, out.len);
    count_state(dialog, state);
    dialog->n_idle = consumed + out.len > 0 ? 0 : dialog->n_idle + 1;
    ASSERT(dialog->n_idle <= DIALOG_IDLE_MAX);
    if (out.len > dialog->out_bytes_max) {
        dialog->out_bytes_max = out.len;
    }
    buf_consume(&dialog->in, consumed);
    buf_add(&dialog->replies, out.data, out.len);
    ASSERT(!dialog->replies.failed);
    buf_fini(&out);
    return state;
}

void
dialog_wait(struct dialog *dialog)
{
    struct timespec until;
    int value;
    int rv = clock_gettime(CLOCK_REALTIME, &until);
    ASSERT(rv == 0);
    until.tv_sec += DIALOG_WAIT_S;
    do {
        rv = sem_timedwait(&dialog->woken, &until);
    } while (rv != 0 && errno == EINTR);
    ASSERT(rv == 0);
    rv = sem_getvalue(&dialog->woken, &value);
    ASSERT(rv == 0 && value == 0); /* once for each SESSION_PARKED */
    session_wake(&dialog->session);
}

void
dialog_say(struct dialog *dialog, const void *bytes, size_t len)
{
    dialog_add(dialog, bytes, len);
    for (;;) {
        switch (dialog_step(dialog)) {
        case SESSION_READY:
        case SESSION_CLOSE:
            return;
        case SESSION_PARKED:
            dialog_wait(dialog);
            break;
        case SESSION_FULL:
        case SESSION_YIELD:
            break;
        }
    }
}
