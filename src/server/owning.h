/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SERVER_OWNING_H
#define SERVER_OWNING_H

#include "base/qsbr.h"
#include "server/options.h"
#include "session/owner.h"

/* The rule of --owns and --owns-file, which says whose ids are whose. The main
 * thread. */

struct owning {
    struct owner owner;     /* what the sessions ask */
    bool is_wanted;         /* there is a rule */
    const char *path;       /* of --owns-file; NULL: the rule stays */
    const struct owns *old; /* the one before; readers may still have it */
    uint64_t old_grace;     /* its grace period */
};

/* Looks whether the rule that the options give, if any, can be used: 0, or an
 * error with what is wrong appended to *why. */
int owning_check(const struct options *options, struct buf *why);

/* Takes the rule that the options give, if any. They and the logger must
 * outlive *owning. 0, or an error with what is wrong appended to *why. */
int owning_open(struct owning *owning, const struct options *options,
    struct logger *logger, struct buf *why);

/* What the sessions ask; NULL: there is no rule. */
struct owner *owning_owner(struct owning *owning);

/* Reads the file again, if there is one, at a signal of that name, and logs
 * what has come of it. Where it is wrong the rule stays. qsbr: of the threads
 * that serve sessions. */
void owning_reload(
    struct owning *owning, struct qsbr *qsbr, const char *signal);

/* No session is left. */
void owning_close(struct owning *owning);

#endif
