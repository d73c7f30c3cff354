/* SPDX-License-Identifier: BSD-3-Clause */
/* The record of a consumer as text, one number a column. */
#include "tallyq/record.h"

#include "base/assert.h"
#include "base/num.h"

#include <string.h>

static const char *const lines[RECORD_DECLARE] = {
    "add counter " RECORD_COUNTER " cold=never",
    "add column " RECORD_COUNTER " " RECORD_COLUMN "id primarykey",
#define COLUMN(name)                                                          \
    "add column " RECORD_COUNTER " " RECORD_COLUMN name " hint=64 max=64"
    COLUMN("done"), COLUMN("done_low"), COLUMN("end"), COLUMN("end_low"),
    COLUMN("number"), COLUMN("digest")
#undef COLUMN
};

const char *
record_declare(unsigned i)
{
    ASSERT(i < RECORD_DECLARE);
    return lines[i];
}

size_t
record_format(const struct record *record, char out[RECORD_TEXT_BYTES + 1])
{
    const uint64_t value[RECORD_COLUMNS] = {record->done.hi, record->done.lo,
        record->end.hi, record->end.lo, record->number, record->digest};
    size_t len = 0;
    for (unsigned i = 0; i < RECORD_COLUMNS; i++) {
        len += num_format_u64(value[i], out + len);
        out[len++] = ' ';
    }
    out[--len] = '\0';
    ASSERT(len <= RECORD_TEXT_BYTES);
    return len;
}

bool
record_parse(const char *text, size_t len, struct record *out)
{
    uint64_t value[RECORD_COLUMNS];
    size_t at = 0;
    for (unsigned i = 0; i < RECORD_COLUMNS; i++) {
        const char *space = memchr(text + at, ' ', len - at);
        bool is_last = i == RECORD_COLUMNS - 1;
        size_t end = space == NULL ? len : (size_t)(space - text);
        if ((space == NULL) != is_last ||
            !num_parse_id(text + at, end - at, &value[i])) {
            return false;
        }
        at = is_last ? end : end + 1;
    }
    struct record read = {.done = {value[0], value[1]},
        .end = {value[2], value[3]},
        .number = value[4],
        .digest = value[5]};
    if (position_compare(read.done, read.end) > 0) {
        return false;
    }
    *out = read;
    return true;
}

bool
record_is(const struct record *record, const struct record *other)
{
    return position_compare(record->done, other->done) == 0 &&
        position_compare(record->end, other->end) == 0 &&
        record->number == other->number && record->digest == other->digest;
}
