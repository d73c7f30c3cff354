/* SPDX-License-Identifier: BSD-3-Clause */
/* Tells the operator about checkpoints that fail, and not too often.
 *
 * While the cause stays, a pass is tried again every few seconds, perhaps for
 * days. The first failure is said at once, then one after a minute, two, four
 * and so on, up to an hour; another cause at once; what somebody asked for
 * always; and once that it is well again. stats count all of them.
 *
 * A failed checkpoint is no reason to refuse changes: the log goes on. So the
 * words here do not say that counters are read-only; where the log is at
 * fault, too, it says so itself. */
#include "durable/checkpoint_priv.h"

#include "base/clock.h"
#include "base/err.h"

#include <inttypes.h>
#include <string.h>

#define NS_PER_S UINT64_C(1000000000)

enum { SAY_GAP_S_MIN = 60, SAY_GAP_S_MAX = 3600 };

bool
checkpoint__is_quiet(const struct checkpointer *owner, uint64_t now_ns)
{
    return owner->n_failed > 0 && !owner->is_asked && now_ns < owner->say_ns;
}

int
checkpoint__log_error(const struct pass *pass, const char *what, int error)
{
    if (!pass->is_quiet) {
        log_line(pass->durable->config.logger, LOG_ERROR,
            "checkpoint: cannot %s: %s", what,
            disk_say(pass->durable->disk, error));
    }
    return disk_err(error);
}

void
checkpoint__log_failed(const struct pass *pass, int err)
{
    struct checkpointer *owner = pass->owner;
    bool is_news = !pass->is_quiet || err != owner->said_err;
    owner->n_failed++;
    if (!is_news) {
        return;
    }
    uint64_t gap_ns = 2 * owner->say_gap_ns;
    if (gap_ns == 0 || err != owner->said_err) {
        gap_ns = SAY_GAP_S_MIN * NS_PER_S;
    }
    owner->say_gap_ns =
        gap_ns < SAY_GAP_S_MAX * NS_PER_S ? gap_ns : SAY_GAP_S_MAX * NS_PER_S;
    owner->say_ns = checkpointer_now_ns(owner) + owner->say_gap_ns;
    owner->said_err = err;
    log_line(pass->durable->config.logger, LOG_ERROR,
        "no checkpoint: %s%s (failure %" PRIu64 ")", err_file_text(err),
        wal_fault(pass->durable->wal) == 0 && owner->n_missing == 0
            ? "; the log has all changes, and grows"
            : "",
        owner->n_failed);
}

void
checkpoint__log_done(const struct pass *pass)
{
    struct checkpointer *owner = pass->owner;
    if (owner->n_failed > 0) {
        log_line(pass->durable->config.logger, LOG_WARNING,
            "checkpoints are made again, after %" PRIu64 " that failed",
            owner->n_failed);
    }
    owner->n_failed = 0;
    owner->say_gap_ns = 0;
    owner->said_err = 0;
}

int
checkpoint__reply(const struct checkpointer *owner, int err)
{
    switch (err) {
    case ERR_DISK_FULL:
    case ERR_DISK:
    case ERR_FILE_SIZE:
        return wal_fault(owner->durable->wal) == 0 ? ERR_NO_CHECKPOINT : err;
    default:
        return err;
    }
}
