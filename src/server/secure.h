/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SERVER_SECURE_H
#define SERVER_SECURE_H

#include "base/buf.h"
#include "base/log.h"
#include "net/tls.h"
#include "server/options.h"

/* TLS as the options want it. */

/* Reads certificates and key, perhaps as root; *options must outlive *out. *out
 * is NULL where no TLS is wanted. 0, or an ERR_ with what is wrong appended to
 * *why, without newline. */
int secure_open(const struct options *options, struct logger *logger,
    struct tls **out, struct buf *why);

/* Reads them anew; where that fails the old ones stay, and the log and *why say
 * so. Any thread; it reads files. */
int secure_reload(struct tls *tls, struct logger *logger, struct buf *why);

/* Warns where secure_reload will not be able to read the files: after the user
 * was changed. */
void secure_look(const struct options *options, struct logger *logger);

#endif
