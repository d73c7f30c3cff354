/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIT_PROTO_HELP_H
#define UNIT_PROTO_HELP_H

/* What the tests of proto/ share: schemas made of lines, and requests written
 * as text, so that a table can say what is expected. */

#include "base/buf.h"
#include "proto/request.h"
#include "schema/schema.h"
#include "unit/edit_help.h"

/* Does one edit to *schema. */
static inline void
edit_schema(struct schema **schema, const char *line)
{
    struct schema_edit edit = edit_of(line);
    struct schema *next;
    ck_assert_int_eq(schema_apply(*schema, &edit, &next), 0);
    schema_destroy(schema);
    *schema = next;
}

/* The counter of the whole project's examples, and one that is bare. */
static inline struct schema *
weibo_schema(void)
{
    struct schema *schema = schema_create();
    ck_assert_ptr_nonnull(schema);
    edit_schema(&schema, "add counter weibo");
    edit_schema(&schema, "add column weibo weibo_id primarykey");
    edit_schema(&schema, "add column weibo comment_num suffix=cntcm");
    edit_schema(&schema, "add column weibo repost_num suffix=cntrn");
    edit_schema(&schema, "add counter bare");
    return schema;
}

static inline const char *
op_name(enum request_op op)
{
    static const char *const names[] = {
#define X(name, text) #name,
        REQUEST_OPS(X)
#undef X
    };
    return names[op];
}

static inline void
say_span(
    struct buf *out, const char *name, const char *bytes, struct span span)
{
    if (span.len > 0) {
        buf_addf(out, " %s=[%.*s]", name, (int)span.len, bytes + span.at);
    }
}

static inline void
say_number(struct buf *out, const char *name, uint64_t number)
{
    if (number != 0) {
        buf_addf(out, " %s=%llu", name, (unsigned long long)number);
    }
}

/* Writes a request as its op and all that is not empty, 0 or false:
 * "SET key=[a] value=[hello] flags=1". Ends with a NUL, which is counted. */
static inline void
say_request(struct buf *out, const char *bytes, const struct request *request)
{
    static const char *const edits[] = {
        "add counter", "add column", "drop column", "drop counter"};
    buf_add_text(out, op_name(request->op));
    if (request->op == REQUEST_TOO_LARGE) {
        buf_addf(out, " as=%s", op_name(request->stored_as));
    }
    if (request->op == REQUEST_SCHEMA_EDIT) {
        buf_addf(out, " edit=%s", edits[request->schema_op]);
    }
    if (request->op == REQUEST_ERROR) {
        ck_assert_ptr_nonnull(request->error);
        buf_addf(out, " \"%s\"", request->error);
    } else {
        say_span(out, "key", bytes, request->key);
        say_span(out, "words", bytes, request->words);
        say_span(out, "value", bytes, request->value);
        say_number(out, "flags", request->flags);
        if (request->exptime != 0) {
            buf_addf(out, " exptime=%lld", (long long)request->exptime);
        }
        say_number(out, "number", request->number);
        say_number(out, "cas", request->terms.cas);
    }
    buf_add_text(out, request->noreply ? " noreply" : "");
    say_number(out, "swallow", request->swallow_bytes);
    buf_add_text(out, request->swallow_line ? " swallow_line" : "");
    ck_assert_uint_eq(request->producer.len, 0);
    ck_assert_uint_eq(request->sequence, 0);
    buf_add(out, "", 1);
    ck_assert(!out->failed);
}

#endif
