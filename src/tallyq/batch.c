/* SPDX-License-Identifier: BSD-3-Clause */
/* Merges the lines of messages by cell.
 *
 * Changes stand in the order in which their cells came first, since that gives
 * them their numbers. Where a sum would pass 2^64 - 1, a second change of the
 * same cell is begun. A message is never divided: a batch ends between two.
 *
 * The table from key to change is open, probed line by line; it is at most a
 * quarter full. */
#include "tallyq/batch.h"

#include "base/assert.h"
#include "base/checksum.h"
#include "base/num.h"
#include "tallyq/aside.h"
#include "tallyq/record.h"

#include <string.h>

static const char form[] = "a line is KEY DELTA";
static const char bad_key[] =
    "a key has 1 to 250 bytes, none of them white space or a control byte";
static const char own_key[] = "the key is one of tallyq's own";
static const char bad_delta[] = "a delta is 1 to 18446744073709551615";
static const char many[] = "a message changes at most 1000 cells";

_Static_assert(BATCH_SLOTS >= 4 * BATCH_CHANGES_MAX, "few slots are used");
_Static_assert(BATCH_CHANGES_MAX < UINT16_MAX, "a slot holds an index + 1");

struct line {
    const char *key;
    size_t key_len;
    uint64_t delta;
};

void
batch_clear(struct batch *batch)
{
    struct buf aside = batch->aside;
    buf_clear(&aside);
    memset(batch, 0, sizeof *batch);
    batch->aside = aside;
}

void
batch_fini(struct batch *batch)
{
    buf_fini(&batch->aside);
    batch_clear(batch);
}

static bool
is_own(const char *key, size_t len)
{
    static const char *const names[] = {
        "." RECORD_COLUMN, "." RECORD_COUNTER, RECORD_COUNTER "."};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        if (memmem(key, len, names[i], strlen(names[i])) != NULL) {
            return true;
        }
    }
    return false;
}

/* What is wrong with a line, or NULL. */
static const char *
parse(const char *text, size_t len, struct line *out)
{
    const char *space = len == 0 ? NULL : memchr(text, ' ', len);
    if (space == NULL) {
        return form;
    }
    out->key = text;
    out->key_len = (size_t)(space - text);
    if (out->key_len == 0 || out->key_len > BATCH_KEY_MAX) {
        return bad_key;
    }
    for (size_t i = 0; i < out->key_len; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c < 0x21 || c == 0x7f) {
            return bad_key;
        }
    }
    if (is_own(text, out->key_len)) {
        return own_key;
    }
    bool is_number =
        num_parse_u64(space + 1, len - out->key_len - 1, &out->delta);
    return is_number && out->delta > 0 ? NULL : bad_delta;
}

/* The next line of text from *at on, without what ends it; false: no more. A
 * text without a byte has one, which is empty. */
static bool
next_line(const char *text, size_t len, size_t *at, size_t *end, size_t *next)
{
    if (*at > len || (*at == len && len > 0)) {
        return false;
    }
    const char *newline =
        len == *at ? NULL : memchr(text + *at, '\n', len - *at);
    *end = newline == NULL ? len : (size_t)(newline - text);
    *next = *end + 1;
    if (*end > *at && text[*end - 1] == '\r') {
        --*end;
    }
    return true;
}

/* The slot of the key's latest change, or the empty one where it belongs. */
static uint16_t *
find(struct batch *batch, const char *key, size_t len)
{
    size_t at = checksum64(key, len, 0) % BATCH_SLOTS;
    while (batch->slot[at] != 0) {
        const struct batch_change *change =
            &batch->change[batch->slot[at] - 1];
        if (change->key_len == len && memcmp(change->key, key, len) == 0) {
            break;
        }
        at = (at + 1) % BATCH_SLOTS;
    }
    return &batch->slot[at];
}

static bool
merges(const struct batch *batch, const uint16_t *slot, uint64_t delta)
{
    return *slot != 0 && batch->change[*slot - 1].delta <= UINT64_MAX - delta;
}

static void
add(struct batch *batch, const struct line *line)
{
    uint16_t *slot = find(batch, line->key, line->key_len);
    batch->n_lines++;
    if (merges(batch, slot, line->delta)) {
        batch->change[*slot - 1].delta += line->delta;
        return;
    }
    ASSERT(batch->n < BATCH_CHANGES_MAX);
    struct batch_change *change = &batch->change[batch->n++];
    change->delta = line->delta;
    change->key_len = (uint8_t)line->key_len;
    memcpy(change->key, line->key, line->key_len);
    *slot = (uint16_t)batch->n;
}

/* How many changes the message may add: no fewer than it does. */
static size_t
count_new(struct batch *batch, const char *text, size_t len)
{
    size_t n = 0, at = 0, end = 0, next = 0;
    struct line line;
    for (; next_line(text, len, &at, &end, &next); at = next) {
        if (parse(text + at, end - at, &line) == NULL) {
            n += !merges(
                batch, find(batch, line.key, line.key_len), line.delta);
        }
        if (n > BATCH_CHANGES_MAX) {
            break;
        }
    }
    return n;
}

static void
put_aside(struct batch *batch, struct position at, const char *why,
    const char *text, size_t len)
{
    batch->n_bad++;
    aside_put_line(&batch->aside, at, why, text, len);
}

static void
take_lines(
    struct batch *batch, struct position place, const char *text, size_t len)
{
    size_t at = 0, end = 0, next = 0;
    struct line line;
    for (; next_line(text, len, &at, &end, &next); at = next) {
        const char *why = parse(text + at, end - at, &line);
        if (why != NULL) {
            put_aside(batch, place, why, text + at, end - at);
        } else {
            add(batch, &line);
        }
    }
}

bool
batch_take(
    struct batch *batch, struct position at, const char *text, size_t len)
{
    ASSERT(position_compare(at, batch->last) > 0);
    size_t n = count_new(batch, text, len);
    if (batch->n_messages > 0 &&
        (batch->n + n > BATCH_CHANGES_MAX ||
            batch->aside.len > BATCH_ASIDE_BYTES)) {
        return false;
    }
    batch->n_messages++;
    batch->last = at;
    if (n > BATCH_CHANGES_MAX) {
        put_aside(batch, at, many, text, len);
    } else {
        take_lines(batch, at, text, len);
    }
    return true;
}

uint64_t
batch_digest(const struct batch *batch)
{
    uint64_t sum = 1;
    for (uint32_t i = 0; i < batch->n; i++) {
        const struct batch_change *change = &batch->change[i];
        sum = checksum64(change->key, change->key_len, sum);
        sum = checksum64(&change->delta, sizeof change->delta, sum);
    }
    return sum == 0 ? 1 : sum;
}
