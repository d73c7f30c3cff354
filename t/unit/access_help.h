/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIT_ACCESS_HELP_H
#define UNIT_ACCESS_HELP_H

/* Users for tests of sessions: "writer" and "reader", whose passwords are
 * their names. */

#include "lib/dialog.h"
#include "session/access.h"

#include <string.h>

struct fake_access {
    struct access access;
    bool is_late; /* the answer wakes the session */
};

static inline bool
fake_is(const struct access_login *login, const char *name)
{
    return login->user_len == strlen(name) &&
        login->password_len == strlen(name) &&
        memcmp(login->user, name, strlen(name)) == 0 &&
        memcmp(login->password, name, strlen(name)) == 0;
}

static inline bool
fake_check(struct access *access, struct access_login *login)
{
    struct fake_access *fake = (struct fake_access *)access;
    login->rank = fake_is(login, "writer") ? ACCESS_WRITER
        : fake_is(login, "reader")         ? ACCESS_READER
                                           : ACCESS_NOBODY;
    if (fake->is_late) {
        login->done_fn(login);
    }
    return !fake->is_late;
}

static inline struct fake_access
fake_access(bool has_sasl, bool is_late)
{
    return (struct fake_access){
        {.check_fn = fake_check, .has_sasl = has_sasl}, is_late};
}

/* A dialog whose client has to log in. */
static inline void
dialog_guard(struct dialog *dialog, struct fake_access *fake)
{
    dialog->executor.access = &fake->access;
    session_init(&dialog->session, &dialog->executor, dialog->session.wake_fn);
}

#endif
