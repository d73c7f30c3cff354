/* SPDX-License-Identifier: BSD-3-Clause */
/* Formatting of text replies: room for a whole reply is reserved once, then
 * filled without further checks. Where memory is out the buffer is marked as
 * failed and its connection is closed, so a reply is never cut. */
#include "proto/reply.h"

#include "base/err.h"
#include "base/num.h"

#include <string.h>

enum {
    /* "VALUE ", three numbers, spaces, two CRLF, rounded up */
    VALUE_OVERHEAD_MAX = 96
};

void
reply_line(struct buf *out, const char *line)
{
    buf_add_text(out, line);
    buf_add(out, "\r\n", 2);
}

bool
reply_is_server_error(int err)
{
    switch (err) {
    case ERR_NO_MEMORY:
    case ERR_HOT_FULL:
    case ERR_MANY_PRODUCERS:
    case ERR_MANY_DUMPS:
    case ERR_NAMES_AGAIN:
    case ERR_BACKUP_BUSY:
    case ERR_BACKUP_GONE:
    case ERR_FORGETS:
    case ERR_MANY_MEMBERS:
    case ERR_LIST_BUSY:
    case ERR_TOO_LARGE:
    case ERR_CLOSED:
    case ERR_SYSTEM:
    case ERR_NO_THREAD:
    case ERR_LOADING:
    case ERR_NOT_PRIMARY:
    case ERR_NO_PRIMARY:
    case ERR_MOVED:
    case ERR_BY_ETCD:
    case ERR_NOT_HANDED:
    case ERR_STALE:
    case ERR_FEW_REPLICAS:
    case ERR_NO_DIALLER:
    case ERR_DISK_FULL:
    case ERR_DISK:
    case ERR_UNSURE:
    case ERR_UNSURE_SLOW:
    case ERR_UNSURE_COPIES:
    case ERR_UNSURE_PRIMARY:
    case ERR_FORWARD_BUSY:
    case ERR_UNCOMMITTED:
    case ERR_UNCOMMITTED_SLOW:
    case ERR_LOG_FULL:
    case ERR_FILE_SIZE:
    case ERR_DIR_TAKEN:
    case ERR_NO_CHECKPOINT:
    case ERR_COLD_READ:
    case ERR_NO_DATA_DIR:
        return true;
    default:
        return false;
    }
}

static void
add_error(struct buf *out, int err)
{
    buf_add_text(
        out, reply_is_server_error(err) ? "SERVER_ERROR " : "CLIENT_ERROR ");
    buf_add_text(out, err_text(err));
}

void
reply__error(struct buf *out, int err)
{
    add_error(out, err);
    reply_line(out, "");
}

void
reply__error_about(struct buf *out, int err, const char *detail)
{
    add_error(out, err);
    bool is_address = err == ERR_NOT_PRIMARY || err == ERR_MOVED;
    buf_addf(out, is_address ? " %s\r\n" : " (%s)\r\n", detail);
}

void
reply_number(struct buf *out, uint64_t number)
{
    char text[NUM_U64_DIGITS_MAX + 2];
    size_t n = num_format_u64(number, text);
    text[n] = '\r';
    text[n + 1] = '\n';
    buf_add(out, text, n + 2);
}

static char *
put(char *at, const char *bytes, size_t len)
{
    memcpy(at, bytes, len);
    return at + len;
}

/* The line before the value. */
static inline char *
put_value_line(char *at, const char *key, size_t key_len, uint32_t flags,
    size_t value_len, const uint64_t *cas)
{
    at = put(at, "VALUE ", 6);
    at = put(at, key, key_len);
    *at++ = ' ';
    at += num_format_u64(flags, at);
    *at++ = ' ';
    at += num_format_u64(value_len, at);
    if (cas != NULL) {
        *at++ = ' ';
        at += num_format_u64(*cas, at);
    }
    return put(at, "\r\n", 2);
}

void
reply_value(struct buf *out, const char *key, size_t key_len, uint32_t flags,
    const char *value, size_t value_len, const uint64_t *cas)
{
    char *start = buf_reserve(out, key_len + value_len + VALUE_OVERHEAD_MAX);
    if (start == NULL) {
        return;
    }
    char *at = put_value_line(start, key, key_len, flags, value_len, cas);
    at = put(at, value, value_len);
    at = put(at, "\r\n", 2);
    out->len += (size_t)(at - start);
}

size_t
reply_value_around(struct buf *out, const char *key, size_t key_len,
    uint32_t flags, size_t value_len, const uint64_t *cas)
{
    char *start = buf_reserve(out, key_len + VALUE_OVERHEAD_MAX);
    if (start == NULL) {
        return out->len;
    }
    char *at = put_value_line(start, key, key_len, flags, value_len, cas);
    out->len += (size_t)(at - start);
    size_t value_at = out->len;
    buf_add(out, "\r\n", 2); /* has been reserved */
    return value_at;
}

size_t
reply_join_u64(const uint64_t *number, size_t n, char *text)
{
    char *at = text;
    for (size_t i = 0; i < n; i++) {
        if (i > 0) {
            *at++ = ' ';
        }
        at += num_format_u64(number[i], at);
    }
    return (size_t)(at - text);
}
