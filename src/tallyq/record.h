/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TALLYQ_RECORD_H
#define TALLYQ_RECORD_H

#include "tallyq/position.h"

#include <stddef.h>

/* How far one consumer is: a record in tallyd itself, of the counter tallyq,
 * whose id is a hash of the consumer's name. doc/queues.md says why it is
 * there. Pure; any thread. */

#define RECORD_COUNTER "tallyq"
/* What its columns' names begin with. */
#define RECORD_COLUMN "tq_"

enum {
    RECORD_COLUMNS = 6,
    RECORD_DECLARE = RECORD_COLUMNS + 2, /* lines */
    RECORD_TEXT_BYTES = RECORD_COLUMNS * 21
};

/* All zero: nothing has been read yet. */
struct record {
    struct position done; /* all messages up to it have been counted */
    struct position end;  /* the batch under way ends with it; done: none is */
    uint64_t number;      /* of that batch's first change; else the next */
    uint64_t digest;      /* of its changes (batch_digest); 0: none */
};

/* Its values as the data of a memcached command; returns the length. out ends
 * with a NUL. */
size_t record_format(
    const struct record *record, char out[RECORD_TEXT_BYTES + 1]);

/* False for what is no such record, with *out untouched. */
bool record_parse(const char *text, size_t len, struct record *out);

bool record_is(const struct record *record, const struct record *other);

/* The i-th line of those that declare the counter; they may be said again.
 * Static storage; i < RECORD_DECLARE. */
const char *record_declare(unsigned i);

#endif
