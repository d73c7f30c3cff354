/* SPDX-License-Identifier: BSD-3-Clause */
/* Gives rights up in this order: new rights by execve, since the kernel wants
 * that before the others; then files; then system calls, whose filter lets no
 * ruleset be made any more. */
#include "server/sandbox.h"

#include "base/assert.h"
#include "base/err.h"

#include <errno.h>
#include <string.h>
#include <sys/prctl.h>

void
sandbox_add_path(
    struct sandbox_config *config, enum sandbox_right right, const char *path)
{
    if (path[0] == '\0') {
        return;
    }
    ASSERT(config->n_paths < SANDBOX_PATHS_MAX);
    config->path[config->n_paths++] =
        (struct sandbox_path){.right = right, .path = path};
}

struct part {
    const char *option;
    const char *what;
    enum sandbox_mode mode;
    bool is_needed;
    int (*hold_fn)(const struct sandbox_config *config, struct buf *message);
};

static int
enter_part(const struct part *part, const struct sandbox_config *config,
    struct logger *logger, struct buf *message)
{
    struct buf why = {0};
    if (part->mode == SANDBOX_OFF) {
        return 0;
    }
    int err = part->hold_fn(config, &why);
    if (err == 0) {
        log_line(logger, LOG_INFO, "%s: %s", part->what,
            part->mode == SANDBOX_LOG ? "the kernel logs others" : "held");
    } else if (part->is_needed) {
        buf_addf(message, "%s: %.*s", part->option, (int)why.len,
            why.len == 0 ? "" : why.data);
    } else {
        log_line(logger, LOG_INFO, "%s: not held: %.*s", part->what,
            (int)why.len, why.len == 0 ? "" : why.data);
        err = 0;
    }
    buf_fini(&why);
    return err;
}

int
sandbox_enter(const struct sandbox_config *config, struct logger *logger,
    struct buf *message)
{
    const struct part files = {"--landlock=on", "files and network (Landlock)",
        config->files, config->needs_files, sandbox_hold_files};
    const struct part calls = {"--seccomp=on", "system calls (seccomp)",
        config->calls, config->needs_calls, sandbox_hold_calls};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        buf_addf(message, "cannot forbid new privileges: %s", strerror(errno));
        return ERR_SYSTEM;
    }
    int err = enter_part(&files, config, logger, message);
    return err != 0 ? err : enter_part(&calls, config, logger, message);
}
