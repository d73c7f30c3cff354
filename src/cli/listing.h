/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CLI_LISTING_H
#define CLI_LISTING_H

#include "base/buf.h"
#include "cli/figures.h"
#include "cli/table.h"

/* tallyctl slow, hot and clients: what `stats slow`, `stats hot` and `stats
 * conns` tell, as tables. One thread. */

/* How a value is shown. */
enum listing_form {
    LISTING_TEXT,   /* as it is */
    LISTING_NUMBER, /* "12.3k" */
    LISTING_BYTES,
    LISTING_US,
    LISTING_S,
    LISTING_SHARE, /* of 1, in percent */
    LISTING_TIME   /* ms since 1970, as the time of the day here */
};

struct listing_column {
    const char *key; /* in KEY=VALUE */
    const char *head;
    enum listing_form form;
};

/* Columns of each, the last of which has no key. */
extern const struct listing_column listing_hot[];
extern const struct listing_column listing_clients[];

/* Makes of "FD:KEY VALUE" of `stats conns` one figure FD for each connection,
 * with KEY=VALUE words; of listening sockets none. */
void listing_join(const struct figures *conns, struct figures *out);

/* A value as the form has it; what is no number stays as it is. */
void listing_value(
    enum listing_form form, const char *value, char *out, size_t size);

/* Fills the table with those columns of which some row has the key. */
void listing_table(const struct listing_column *columns,
    const struct figures *rows, struct table *table);

/* The commands: exit statuses. */
int listing_slow_main(int argc, char *const argv[]);
int listing_hot_main(int argc, char *const argv[]);
int listing_clients_main(int argc, char *const argv[]);

#endif
