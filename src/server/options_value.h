/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SERVER_OPTIONS_VALUE_H
#define SERVER_OPTIONS_VALUE_H

#include "base/buf.h"
#include "server/options.h"

#include <stdbool.h>

/* For the files of the module options only. */

/* Sets the option of row to text, as its type and range allow; first: nothing
 * was given for it before, so a list or a count begins anew. text is ignored
 * for options without argument. False where text is refused. */
bool options__set_value(const struct options_row *row, const char *text,
    bool first, struct options *options);

/* Appends the line that refuses text as the value of row's option. where: what
 * stands before its name, "--" or "-o " or "FILE:LINE: ". */
void options__add_refusal(const struct options_row *row, const char *text,
    const char *where, struct buf *out);

#endif
