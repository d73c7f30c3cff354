/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SERVER_OPTIONS_EXTENDED_H
#define SERVER_OPTIONS_EXTENDED_H

#include "base/buf.h"
#include "server/options.h"

/* The values of -o. For the files of the module options only. */

/* Sets the defaults of all names. */
void options__extended_defaults(struct options *options);

/* Sets what list names, and marks it in options->extended_given. where says
 * which place gave it. 0, or ERR_BAD_OPTION with a line in message; the names
 * before the refused one are set then. */
int options__take_extended(struct options *options, const char *list,
    const char *where, struct buf *message);

/* Takes from *from what is given there and not in *options. */
void options__merge_extended(
    struct options *options, const struct options *from);

#endif
