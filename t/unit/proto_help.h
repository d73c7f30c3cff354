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

static inline void
say_flag(struct buf *out, const char *name, bool is_set)
{
    if (is_set) {
        buf_addf(out, " %s", name);
    }
}

static inline void
say_exptime(struct buf *out, const char *name, int64_t exptime)
{
    if (exptime != 0) {
        buf_addf(out, " %s=%lld", name, (long long)exptime);
    }
}

/* What only the meta and the binary protocol ask, but the cas. */
static inline void
say_terms(struct buf *out, const struct request *request)
{
    const struct terms *terms = &request->terms;
    say_flag(out, "base64", request->key_is_base64);
    say_flag(out, "quiet", request->is_quiet);
    say_flag(out, "compares", terms->compares);
    say_flag(out, "touches", terms->touches);
    say_flag(out, "vivifies", terms->vivifies);
    say_exptime(out, "vivify_exptime", terms->vivify_exptime);
    say_flag(out, "must_exist", terms->must_exist);
    say_flag(out, "recaches", terms->recaches);
    say_exptime(out, "recache", terms->recache_s);
    say_flag(out, "recaches_first", terms->recaches_first);
    say_flag(out, "outdates", terms->outdates);
    say_flag(out, "empties", terms->empties);
    say_flag(out, "peeks", terms->peeks);
    say_flag(out, "wants_value", terms->wants_value);
    say_number(out, "new_cas", terms->new_cas);
    say_number(out, "initial", terms->initial);
}

/* Writes a request as its op and all that is not empty, 0 or false:
 * "SET key=[a] value=[hello] flags=1". Ends with a NUL, which is counted. */
static inline void
say_request(struct buf *out, const char *bytes, const struct request *request)
{
    static const char *const edits[] = {"add counter", "add column",
        "change counter", "change column", "drop column", "drop counter"};
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
        say_exptime(out, "exptime", request->exptime);
        say_number(out, "number", request->number);
        say_number(out, "cas", request->terms.cas);
        say_terms(out, request);
        say_span(out, "meta", bytes, request->meta);
    }
    buf_add_text(out, request->noreply ? " noreply" : "");
    say_number(out, "swallow", request->swallow_bytes);
    buf_add_text(out, request->swallow_line ? " swallow_line" : "");
    buf_add_text(out, request->closes ? " closes" : "");
    if (request->tx.at != 0) {
        buf_addf(out, " %s=[%.*s]", request->has_more ? "more" : "tx",
            (int)request->tx.len, bytes + request->tx.at);
    }
    buf_add(out, "", 1);
    ck_assert(!out->failed);
}

#endif
