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

/* Appends what an option takes, as in "a number from 1 to 256". */
void options__add_wanted(const struct options_row *row, struct buf *out);

#endif
