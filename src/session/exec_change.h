/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SESSION_EXEC_CHANGE_H
#define SESSION_EXEC_CHANGE_H

#include "session/exec_shared.h"

/* What the exec_change*.c files share: the session's thread. */

/* Counts and answers a change that has not been given to the store: its err
 * says that there is nothing to change. bytes: what echo's spans are counted
 * from. */
void exec_change__say_miss(struct session *session,
    const struct change *change, const struct echo *echo, const char *bytes,
    struct buf *out);

#endif
