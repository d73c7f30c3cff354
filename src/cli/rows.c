/* SPDX-License-Identifier: BSD-3-Clause */
/* The forms of files that have records; what is written to them. */
#include "cli/rows_priv.h"

#include "base/num.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *const format_name[] = {"csv", "tsv", "ndjson", "dialect"};

bool
rows_format_of(const char *name, enum rows_format *out)
{
    for (unsigned i = 0; i < sizeof format_name / sizeof *format_name; i++) {
        if (strcmp(name, format_name[i]) == 0) {
            *out = (enum rows_format)i;
            return true;
        }
    }
    return false;
}

/* ---- the last line ---- */

static bool
take_end(
    const char *format, const char *line, size_t len, struct rows_end *end)
{
    char text[ROWS_END_BYTES_MAX];
    if (len >= sizeof text) {
        return false;
    }
    memcpy(text, line, len);
    text[len] = '\0';
    struct buf put = {0};
    *end = (struct rows_end){0};
    bool is_one = sscanf(text, format, &end->rows, &end->sum) == 2;
    if (is_one) { /* only as it is written */
        rows_put_end(*line == '{' ? ROWS_NDJSON : ROWS_CSV, end, &put);
        is_one = !put.failed && put.len == len + 1 &&
            memcmp(put.data, text, len) == 0;
    }
    buf_fini(&put);
    return is_one;
}

bool
rows_is_end(const char *line, size_t len, struct rows_end *out)
{
    static const char plain[] = "# end ", object[] = "{\"end\":";
    bool may_be = len >= sizeof object &&
        (memcmp(line, plain, sizeof plain - 1) == 0 ||
            memcmp(line, object, sizeof object - 1) == 0);
    return may_be &&
        take_end(*line == '{' ? "{\"end\":{\"rows\":%" SCNu64
                                ",\"xxh3\":\"%16" SCNx64 "\"}}"
                              : "# end rows=%" SCNu64 " xxh3=%16" SCNx64,
            line, len, out);
}

void
rows_put_end(
    enum rows_format format, const struct rows_end *end, struct buf *out)
{
    buf_addf(out,
        format == ROWS_NDJSON ? "{\"end\":{\"rows\":%" PRIu64
                                ",\"xxh3\":\"%016" PRIx64 "\"}}\n"
                              : "# end rows=%" PRIu64 " xxh3=%016" PRIx64 "\n",
        end->rows, end->sum);
}

/* ---- writing ---- */

static void
add_name(struct buf *out, const struct schema_name *name)
{
    buf_add(out, name->text, name->len);
}

static void
add_key(const struct rows_columns *columns, struct buf *out)
{
    if (columns->key.len > 0) {
        add_name(out, &columns->key);
    } else {
        buf_add_text(out, "id");
    }
}

void
rows_put_header(enum rows_format format, const struct rows_columns *columns,
    int members, struct buf *out)
{
    const char *mark = format == ROWS_CSV ? "," : "\t";
    if (format != ROWS_CSV && format != ROWS_TSV) {
        return;
    }
    add_key(columns, out);
    for (unsigned i = 0; members < 0 && i < columns->n; i++) {
        if (!columns->is_list[i]) {
            buf_add_text(out, mark);
            add_name(out, &columns->name[i]);
        }
    }
    if (members >= 0) {
        buf_addf(out, "%smember%svalue", mark, mark);
    }
    buf_add_text(out, "\n");
}

static char *
put_text(char *at, const char *text, size_t len)
{
    memcpy(at, text, len);
    return at + len;
}

static char *
put_id(char *at, const struct rows_id *id)
{
    return id->name != NULL ? put_text(at, id->name, id->len)
                            : at + num_put_u64(id->number, at);
}

static char *
put_key(char *at, const struct rows_id *id, const struct schema_name *column)
{
    bool is_name = id->name != NULL;
    at = put_text(at, "{", is_name);
    at = put_id(at, id);
    at = put_text(at, "}", is_name);
    *at++ = '.';
    return put_text(at, column->text, column->len);
}

/* At most. */
static size_t
key_bytes_max(const struct rows_id *id, const struct schema_name *column)
{
    return (id->name != NULL ? id->len : NUM_U64_DIGITS_MAX) + sizeof "{}." +
        column->len;
}

void
rows_put_id(const struct rows_id *id, struct buf *out)
{
    static const struct schema_name none = {.len = 0};
    char *at = buf_reserve(out, key_bytes_max(id, &none));
    if (at != NULL) {
        out->len += (size_t)(put_id(at, id) - at);
    }
}

void
rows_put_key(const struct rows_id *id, const struct schema_name *column,
    struct buf *out)
{
    char *at = buf_reserve(out, key_bytes_max(id, column));
    if (at != NULL) {
        out->len += (size_t)(put_key(at, id, column) - at);
    }
}

/* As a field of csv. */
static void
put_quoted(const struct rows_id *id, struct buf *out)
{
    if (id->name == NULL ||
        (memchr(id->name, ',', id->len) == NULL &&
            memchr(id->name, '"', id->len) == NULL)) {
        rows_put_id(id, out);
        return;
    }
    buf_add_text(out, "\"");
    for (size_t i = 0; i < id->len; i++) {
        buf_add(out, "\"", id->name[i] == '"');
        buf_add(out, &id->name[i], 1);
    }
    buf_add_text(out, "\"");
}

/* As a value of ndjson. */
static void
put_value(const struct rows_id *id, struct buf *out)
{
    if (id->name == NULL) {
        buf_add_u64(out, id->number);
        return;
    }
    buf_add_text(out, "\"");
    for (size_t i = 0; i < id->len;) {
        unsigned char c = (unsigned char)id->name[i];
        size_t n = rows__utf8_len(&id->name[i], id->len - i);
        if (n == 0) {
            buf_addf(out, "\\udc%02x", (unsigned)c);
            n = 1;
        } else {
            buf_add(out, "\\", c == '"' || c == '\\');
            buf_add(out, &id->name[i], n);
        }
        i += n;
    }
    buf_add_text(out, "\"");
}

static void
put_object(
    const struct rows_columns *columns, const struct row *row, struct buf *out)
{
    buf_add_text(out, "{\"");
    add_key(columns, out);
    buf_add_text(out, "\":");
    put_value(&row->id, out);
    for (unsigned i = 0; i < row->n; i++) {
        buf_add_text(out, ",\"");
        add_name(out, &columns->name[row->cell[i].column]);
        buf_add_text(out, "\":");
        buf_add_u64(out, row->cell[i].value);
    }
    if (row->is_member) {
        buf_add_text(out, ",\"members\":\"");
        add_name(out, &columns->members_name[row->members]);
        buf_addf(out, "\",\"member\":%" PRIu64 ",\"value\":%" PRIu64,
            row->member, row->value);
    }
    buf_add_text(out, "}\n");
}

void
rows_put(enum rows_format format, const struct rows_columns *columns,
    const struct row *row, struct buf *out)
{
    const char *mark = format == ROWS_CSV ? "," : "\t";
    if (format == ROWS_DIALECT) {
        rows_put_set(columns, row, out);
        return;
    }
    if (format == ROWS_NDJSON) {
        put_object(columns, row, out);
        return;
    }
    if (format == ROWS_CSV) {
        put_quoted(&row->id, out);
    } else {
        rows_put_id(&row->id, out);
    }
    if (row->is_member) {
        buf_addf(out, "%s%" PRIu64 "%s%" PRIu64 "\n", mark, row->member, mark,
            row->value);
        return;
    }
    for (unsigned i = 0, at = 0; i < columns->n; i++) {
        if (columns->is_list[i]) {
            continue;
        }
        buf_add_text(out, mark);
        if (at < row->n && row->cell[at].column == i) {
            buf_add_u64(out, row->cell[at++].value);
        }
    }
    buf_add_text(out, "\n");
}

/* At most so many bytes: an import makes one for each row, so that room is
 * asked for once. */
static size_t
set_bytes_max(const struct rows_columns *columns, const struct row *row)
{
    enum { SIGNS = 16 /* "set ", spaces, marks, the end */ };
    size_t bytes = SIGNS + columns->counter.len +
        key_bytes_max(&row->id,
            row->is_member ? &columns->members[row->members]
                           : &columns->counter) +
        2 * NUM_U64_DIGITS_MAX;
    for (unsigned i = 0; i < row->n; i++) {
        bytes += columns->name[row->cell[i].column].len + NUM_U64_DIGITS_MAX +
            sizeof " =";
    }
    return bytes;
}

void
rows_put_set(
    const struct rows_columns *columns, const struct row *row, struct buf *out)
{
    char *begin = buf_reserve(out, set_bytes_max(columns, row)), *at = begin;
    if (begin == NULL) {
        return;
    }
    at = put_text(at, "set ", 4);
    at = put_text(at, columns->counter.text, columns->counter.len);
    *at++ = ' ';
    if (row->is_member) {
        at = put_key(at, &row->id, &columns->members[row->members]);
        *at++ = ':';
        at += num_put_u64(row->member, at);
        *at++ = ' ';
        at += num_put_u64(row->value, at);
    } else if (row->id.name != NULL &&
        memchr(row->id.name, '.', row->id.len) != NULL) {
        at = put_key(at, &row->id, &columns->counter);
    } else {
        at = put_id(at, &row->id);
    }
    for (unsigned i = 0; i < row->n; i++) {
        const struct schema_name *name = &columns->name[row->cell[i].column];
        *at++ = ' ';
        at = put_text(at, name->text, name->len);
        *at++ = '=';
        at += num_put_u64(row->cell[i].value, at);
    }
    *at++ = '\n';
    out->len += (size_t)(at - begin);
}
