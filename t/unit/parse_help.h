/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIT_PARSE_HELP_H
#define UNIT_PARSE_HELP_H

/* What the tests of parsers of lines share: tables of requests, every row of
 * which is parsed at once, byte by byte and with every one cut. */

#include "proto/text.h"
#include "unit/proto_help.h"

#include <stdlib.h>
#include <string.h>

enum { VALUE_MAX = 1000 };

#define KEY_249                                                               \
    "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk"        \
    "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk"        \
    "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk"        \
    "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk"
#define KEY_250 KEY_249 "k"
#define KEY_251 KEY_250 "k"

#define BAD_FORMAT "ERROR \"CLIENT_ERROR bad command line format\""
#define BAD_CHUNK "ERROR \"CLIENT_ERROR bad data chunk\""

/* Bytes of one whole request, and the request as say_request writes it. */
struct row {
    const char *bytes;
    const char *request;
};

/* One call on a copy of the first n bytes. */
static inline enum parse_status
parse(const struct schema *schema, const char *bytes, size_t n,
    struct parse_scan *scan, struct request *out)
{
    char *copy = copy_of(bytes, n);
    enum parse_status status =
        text_parse(copy, n, schema, VALUE_MAX, scan, out);
    free(copy);
    return status;
}

static inline void
expect_request(const struct row *row, const struct request *request)
{
    struct buf said = {0};
    say_request(&said, row->bytes, request);
    ck_assert_str_eq(said.data, row->request);
    ck_assert_uint_eq(request->len, strlen(row->bytes));
    buf_fini(&said);
}

/* At once, byte by byte, and with every one cut. What stands behind the
 * request makes no difference. */
static inline void
play_row(const struct schema *schema, const struct row *row)
{
    size_t len = strlen(row->bytes);
    char *longer = malloc(len + 2);
    struct parse_scan scan = {0, 0};
    struct request request;
    ck_assert_ptr_nonnull(longer);
    memcpy(longer, row->bytes, len);
    memcpy(longer + len, "\nx", 2);
    for (size_t n = 0; n < len; n++) {
        struct parse_scan fresh = {0, 0};
        ck_assert_int_eq(
            parse(schema, longer, n, &scan, &request), PARSE_MORE);
        ck_assert_int_eq(
            parse(schema, longer, n, &fresh, &request), PARSE_MORE);
        ck_assert_int_eq(
            parse(schema, longer, len + 2, &fresh, &request), PARSE_REQUEST);
        expect_request(row, &request);
    }
    ck_assert_int_eq(
        parse(schema, longer, len, &scan, &request), PARSE_REQUEST);
    expect_request(row, &request);
    free(longer);
}

static inline void
play(const struct row *row, size_t n)
{
    struct schema *schema = weibo_schema();
    for (size_t i = 0; i < n; i++) {
        play_row(schema, &row[i]);
    }
    schema_destroy(&schema);
}

#endif
