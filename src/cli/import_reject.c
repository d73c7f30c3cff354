/* SPDX-License-Identifier: BSD-3-Clause */
/* What is refused, by a source or by the server. It is told when its batch is
 * done, so once, and in the order of the input: a batch keeps where its lines
 * come from and what was no line in one list, in which
 *
 *   +FROM\n         is of a line that is sent
 *   -WHY\nFROM\n    is none
 *
 * and what is told is WHY\nFROM\n, one after the other. */
#include "cli/import_priv.h"

#include "base/assert.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

enum { SENT = '+', REFUSED = '-', SAID_MOST = 10 };

/* The text at *at, which a newline ends, and moves on behind that. */
static struct rows_span
take_text(const struct buf *texts, size_t *at)
{
    const char *text = texts->data + *at;
    const char *end = memchr(text, '\n', texts->len - *at);
    ASSERT(end != NULL);
    *at = (size_t)(end + 1 - texts->data);
    return (struct rows_span){text, (size_t)(end - text)};
}

void
import__add_sent(struct import_batch *batch, const char *from, size_t from_len)
{
    char *at = buf_reserve(&batch->from, from_len + 2);
    if (at != NULL) {
        at[0] = SENT;
        memcpy(at + 1, from, from_len);
        at[from_len + 1] = '\n';
        batch->from.len += from_len + 2;
    }
}

bool
import__reject(
    struct import *job, const char *why, const char *from, size_t from_len)
{
    struct buf *out = &import__filled(job)->from;
    buf_addf(out, "%c%s\n", REFUSED, why);
    size_t at = out->len;
    buf_add(out, from, from_len);
    for (; at < out->len; at++) {
        char *c = &out->data[at];
        *c = *c == '\0' || *c == '\n' || *c == '\r' ? '?' : *c;
    }
    buf_add_text(out, "\n");
    return !out->failed || import__fail(job, "out of memory");
}

struct rows_span
import__next_sent(struct import_batch *batch)
{
    while (batch->from_at < batch->from.len) {
        struct rows_span text = take_text(&batch->from, &batch->from_at);
        struct rows_span rest = {text.at + 1, text.len - 1};
        if (*text.at == SENT) {
            return rest;
        }
        import__refuse(batch, rest, take_text(&batch->from, &batch->from_at));
    }
    return (struct rows_span){NULL, 0};
}

void
import__refuse(
    struct import_batch *batch, struct rows_span why, struct rows_span from)
{
    buf_add(&batch->rejects, why.at, why.len);
    buf_add_text(&batch->rejects, "\n");
    buf_add(&batch->rejects, from.at, from.len);
    buf_add_text(&batch->rejects, "\n");
}

/* ---- telling ---- */

/* What was refused, and why, as two lines. */
static bool
write_reject(struct import *job, struct rows_span why, struct rows_span from)
{
    FILE *file = job->rejects_file;
    int n = fprintf(file, "# %.*s\n", (int)why.len, why.at);
    for (size_t i = 0; i < from.len; i++) {
        bool is_end = from.at[i] == '\0' || from.at[i] == '\r';
        (void)putc_unlocked(is_end ? '?' : from.at[i], file);
    }
    (void)putc_unlocked('\n', file);
    if (n < 0 || ferror(file) != 0 || fflush(file) != 0) {
        return import__fail(job, "%s: %s", job->rejects, strerror(errno));
    }
    job->place.reject_bytes += (uint64_t)n + from.len + 1;
    return true;
}

static bool
tell(struct import *job, struct rows_span why, struct rows_span from)
{
    struct import_place *place = &job->place;
    if (job->rejects_file != NULL) {
        if (!write_reject(job, why, from)) {
            return false;
        }
    } else if (place->rejects < SAID_MOST) {
        shown_end(&job->shown);
        ask_say("%.*s: %.*s", (int)why.len, why.at,
            from.len > 100 ? 100 : (int)from.len, from.at);
    }
    place->rejects++;
    return place->rejects <= job->rejects_most ||
        import__fail(job,
            "more than %" PRIu64 " lines are refused, the last: %.*s "
            "(--rejects-most)",
            job->rejects_most, why.len > 100 ? 100 : (int)why.len, why.at);
}

bool
import__tell_rejects(struct import *job, struct import_batch *batch)
{
    struct rows_span left = import__next_sent(batch);
    ASSERT(left.at == NULL);
    if (batch->rejects.failed) {
        return import__fail(job, "out of memory");
    }
    for (size_t at = 0; at < batch->rejects.len;) {
        struct rows_span why = take_text(&batch->rejects, &at);
        if (!tell(job, why, take_text(&batch->rejects, &at))) {
            return false;
        }
    }
    return true;
}

bool
import__pass_over(struct import *job, const char *key, size_t len)
{
    return !import_map_is_near(&job->map, key, len) ||
        import__reject(job,
            "what stands for {id} is no whole number from 0 to 2^64-1, and "
            "no name of a counter whose ids are names",
            key, len);
}
