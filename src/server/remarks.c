/* SPDX-License-Identifier: BSD-3-Clause */
/* Logs what the operator should know of the options at the start. */
#include "server/remarks.h"

static void
say_ignored(void *context, const char *option)
{
    log_line(
        context, LOG_INFO, "%s has no meaning here and is ignored", option);
}

void
remarks_on_options(const struct options *options, struct logger *logger)
{
    options_each_ignored(options, say_ignored, logger);
    if (options->drop_privileges && options->seccomp != OPTIONS_SECCOMP_ON) {
        log_line(logger, LOG_WARNING,
            "-o drop_privileges: --seccomp forbids no system call");
    }
    if (options->ssl_chain_cert.text[0] != '\0' && !options->tls) {
        log_line(logger, LOG_WARNING,
            "-o ssl_chain_cert without --enable-ssl: there is no TLS");
    }
}
