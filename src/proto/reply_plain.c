/* SPDX-License-Identifier: BSD-3-Clause */
/* The return flags of a plain mg for a cell, which is never new or stale, does
 * not expire, and counts as read before. */
#include "proto/reply_plain.h"

#include "base/assert.h"

static char *
put_number(char *at, char letter, uint64_t number)
{
    *at++ = letter;
    return reply_put_number(at, number);
}

/* The bytes of the word at text, which ends at end if not before. */
static size_t
word_len(const char *text, const char *end)
{
    const char *space = memchr(text, ' ', (size_t)(end - text));
    return (size_t)((space == NULL ? end : space) - text);
}

char *
reply__put_flags(char *at, const struct echo *echo, const char *bytes,
    const char *readable, uint32_t flags, uint64_t cas, size_t value_len)
{
    const char *flag = bytes + echo->meta.at;
    const char *end = flag + echo->meta.len;
    for (size_t len; flag < end; flag += len + 1) {
        len = 1;
        if (*flag == 'q' || *flag == 'v') {
            continue;
        }
        *at++ = ' ';
        switch (*flag) {
        case 'O':
            len = word_len(flag, end);
            memcpy(at, flag, len);
            at += len;
            break;
        case 'k':
            *at++ = 'k';
            at = reply_put_key(
                at, bytes + echo->key.at, echo->key.len, readable);
            break;
        case 'c':
            at = put_number(at, 'c', cas);
            break;
        case 'f':
            at = put_number(at, 'f', flags);
            break;
        case 's':
            at = put_number(at, 's', value_len);
            break;
        case 'h':
            at = put_number(at, 'h', 1);
            break;
        case 'l':
            at = put_number(at, 'l', 0);
            break;
        default:
            ASSERT(*flag == 't');
            memcpy(at, "t-1", 3);
            at += 3;
            break;
        }
    }
    return at;
}
