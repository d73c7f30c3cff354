/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/peer.h"

#include "base/num.h"

#include <stdio.h>
#include <string.h>

enum { QUESTION_BYTES = 128 };

static enum talk_take
take_column(void *context, const char *line, size_t len)
{
    if (talk_is(line, len, "END")) {
        return TALK_END;
    }
    return !talk_is_error(line, len) && rows_columns_take(context, line, len)
        ? TALK_MORE
        : TALK_WRONG;
}

struct counting {
    const char *name;
    uint64_t n;
};

/* COUNTER NAME columns=N records=N */
static enum talk_take
take_counter(void *context, const char *line, size_t len)
{
    static const char begin[] = "COUNTER ", key[] = " records=";
    struct counting *counting = context;
    size_t name_len = strlen(counting->name), at = sizeof begin - 1 + name_len;
    if (talk_is(line, len, "END")) {
        return TALK_END;
    }
    if (talk_is_error(line, len)) {
        return TALK_WRONG;
    }
    if (len > at && line[at] == ' ' &&
        memcmp(line + sizeof begin - 1, counting->name, name_len) == 0) {
        const char *found = memmem(line, len, key, sizeof key - 1);
        if (found != NULL) {
            found += sizeof key - 1;
            size_t n = 0;
            while (
                found + n < line + len && found[n] >= '0' && found[n] <= '9') {
                n++;
            }
            (void)num_parse_u64(found, n, &counting->n);
        }
    }
    return TALK_MORE;
}

bool
peer_columns(struct talk *talk, const char *counter, struct rows_columns *out,
    uint64_t *n_records)
{
    static const char counters[] = "show counters\r\n";
    char question[QUESTION_BYTES];
    struct counting counting = {.name = counter};
    *out = (struct rows_columns){0};
    if (!schema_is_name(counter, strlen(counter))) {
        (void)snprintf(
            talk->why, sizeof talk->why, "%.60s is no counter", counter);
        return false;
    }
    (void)snprintf(question, sizeof question, "show counter %s\r\n", counter);
    if (!talk_ask(talk, question, strlen(question), take_column, out) ||
        !talk_ask(
            talk, counters, sizeof counters - 1, take_counter, &counting)) {
        return false;
    }
    *n_records = counting.n;
    return true;
}
