/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines of files that have records. All numbers are checked: what is not
 * exactly one is a bad line, which stores nothing. Of JSON only objects with
 * whole numbers and one string are read, for a row has no more. */
#include "cli/rows_priv.h"

#include <stdio.h>

static enum rows_took
bad(struct rows_reader *reader, const char *why, struct rows_span span)
{
    int len = span.len > 60 ? 60 : (int)span.len;
    (void)snprintf(
        reader->why, sizeof reader->why, "%s: %.*s", why, len, span.at);
    return ROWS_BAD;
}

static const char no_number[] = "no whole number from 0 to 2^64-1";

static const char *
no_id(const struct rows_reader *reader)
{
    return reader->columns->has_names
        ? "no name of 1 to 200 bytes without white space"
        : no_number;
}

/* ---- csv and tsv ---- */

/* The quote that ends a field, which begins behind at; RFC 4180: two of them
 * are one of the field. NULL: there is none. */
static const char *
end_of_quoted(const char *at, const char *end)
{
    while ((at = memchr(at, '"', (size_t)(end - at))) != NULL) {
        if (at + 1 == end || at[1] != '"') {
            return at;
        }
        at += 2;
    }
    return NULL;
}

/* The next field, of a line that has one. Two quotes that stand for one stay
 * two: no number has any, and of a name they are made one later. False where
 * quotes are wrong. */
static bool
field(
    bool is_csv, struct rows_span *text, struct rows_span *out, bool *is_last)
{
    const char *end;
    char mark = is_csv ? ',' : '\t';
    if (is_csv && text->len > 0 && *text->at == '"') {
        end = end_of_quoted(text->at + 1, text->at + text->len);
        if (end == NULL) {
            return false;
        }
        *out = (struct rows_span){text->at + 1, (size_t)(end - text->at - 1)};
        text->len -= (size_t)(end + 1 - text->at);
        text->at = end + 1;
        if (text->len > 0 && *text->at != mark) {
            return false;
        }
    } else {
        end = memchr(text->at, mark, text->len);
        *out = (struct rows_span){
            text->at, end == NULL ? text->len : (size_t)(end - text->at)};
        text->at += out->len;
        text->len -= out->len;
    }
    *is_last = text->len == 0;
    text->at += !*is_last;
    text->len -= !*is_last;
    return true;
}

static int
meaning_of(const struct rows_reader *reader, struct rows_span name)
{
    const struct rows_columns *columns = reader->columns;
    if (rows__is_name(name, &columns->key) ||
        (rows__is_text(name, "id") && rows__column_of(columns, name) < 0)) {
        return ROWS_ID;
    }
    if (name.len == 0 || rows__is_text(name, "-")) {
        return ROWS_SKIP;
    }
    if (reader->members >= 0) {
        return rows__is_text(name, "member") ? ROWS_MEMBER
            : rows__is_text(name, "value")   ? ROWS_VALUE
                                             : ROWS_NO_FIELD;
    }
    return rows__column_of(columns, name);
}

/* True where the fields before n have what means is. */
static bool
has_field(const struct rows_reader *reader, unsigned n, int means)
{
    for (unsigned i = 0; i < n; i++) {
        if (reader->field[i] == means) {
            return true;
        }
    }
    return false;
}

bool
rows_take_header(struct rows_reader *reader, const char *line, size_t len)
{
    struct rows_span text = {line, len}, name;
    unsigned n = 0;
    bool is_last = false;
    while (!is_last) {
        if (n == ROWS_FIELDS_MAX ||
            !field(reader->format == ROWS_CSV, &text, &name, &is_last)) {
            (void)bad(reader, "no header", (struct rows_span){line, len});
            return false;
        }
        int means = meaning_of(reader, name);
        if (means == ROWS_NO_FIELD ||
            (means != ROWS_SKIP && has_field(reader, n, means))) {
            (void)bad(reader,
                "a field that the counter does not have, or that is there "
                "twice",
                name);
            return false;
        }
        reader->field[n++] = means;
    }
    if (!has_field(reader, n, ROWS_ID) ||
        (reader->members >= 0 && !has_field(reader, n, ROWS_MEMBER))) {
        (void)bad(reader,
            reader->members >= 0 ? "the header has no id, or no member"
                                 : "the header has no id",
            (struct rows_span){line, len});
        return false;
    }
    reader->n_fields = n;
    return true;
}

/* Takes the id. A field of csv that stood in quotes, where two of them may
 * stand for one, is written anew without. */
static bool
take_id(struct rows_reader *reader, struct rows_span at, bool is_quoted,
    struct row *row)
{
    if (!is_quoted || !reader->columns->has_names ||
        memchr(at.at, '"', at.len) == NULL) {
        return rows_id_of(reader->columns, at.at, at.len, &row->id);
    }
    size_t n = 0;
    for (size_t i = 0; i < at.len; i++) {
        if (n == sizeof reader->text) {
            return false;
        }
        reader->text[n++] = at.at[i];
        i += at.at[i] == '"';
    }
    return rows_id_of(reader->columns, reader->text, n, &row->id);
}

/* Where the number of a field goes; NULL: nowhere. */
static uint64_t *
place_of(int means, struct row *row)
{
    switch (means) {
    case ROWS_SKIP:
    case ROWS_ID:
        return NULL;
    case ROWS_MEMBER:
        return &row->member;
    case ROWS_VALUE:
        return &row->value;
    default:
        row->cell[row->n].column = (uint8_t)means;
        return &row->cell[row->n].value;
    }
}

static enum rows_took
take_fields(struct rows_reader *reader, struct rows_span line, struct row *row)
{
    struct rows_span text = line, at;
    bool is_csv = reader->format == ROWS_CSV, is_last = false;
    unsigned i = 0;
    row->is_member = reader->members >= 0;
    row->members = row->is_member ? (uint8_t)reader->members : 0;
    row->value = row->is_member;
    for (; !is_last; i++) {
        bool is_quoted = is_csv && text.len > 0 && *text.at == '"';
        if (!field(is_csv, &text, &at, &is_last)) {
            return bad(reader, "a quote without its other", line);
        }
        if (i >= reader->n_fields) {
            return bad(reader, "more fields than the header has", line);
        }
        int means = reader->field[i];
        uint64_t *out = place_of(means, row);
        if (means >= 0 && (at.len == 0 || rows__is_text(at, "\\N"))) {
            continue;
        }
        if (means == ROWS_ID && !take_id(reader, at, is_quoted, row)) {
            return bad(reader, no_id(reader), at);
        }
        if (out != NULL && !rows__number(at, out)) {
            return bad(reader, no_number, at);
        }
        row->n += means >= 0;
    }
    if (i < reader->n_fields) {
        return bad(reader, "fewer fields than the header has", line);
    }
    return row->n > 0 || row->is_member ? ROWS_ROW : ROWS_NONE;
}

/* ---- ndjson ---- */

static void
skip_white(struct rows_span *text)
{
    while (text->len > 0 && (*text->at == ' ' || *text->at == '\t')) {
        text->at++;
        text->len--;
    }
}

static bool
take_char(struct rows_span *text, char c)
{
    skip_white(text);
    if (text->len == 0 || *text->at != c) {
        return false;
    }
    text->at++;
    text->len--;
    return true;
}

/* "text", with the escapes that are in it. */
static bool
take_coded(struct rows_span *text, struct rows_span *out)
{
    if (!take_char(text, '"')) {
        return false;
    }
    size_t n = 0;
    while (n < text->len && text->at[n] != '"') {
        n += text->at[n] == '\\' ? 2 : 1;
    }
    if (n >= text->len) {
        return false;
    }
    *out = (struct rows_span){text->at, n};
    text->at += n + 1;
    text->len -= n + 1;
    return true;
}

/* "text", without an escape in it. */
static bool
take_string(struct rows_span *text, struct rows_span *out)
{
    return take_coded(text, out) && memchr(out->at, '\\', out->len) == NULL;
}

static bool
take_digits(struct rows_span *text, uint64_t *out)
{
    skip_white(text);
    size_t n = 0;
    while (n < text->len && text->at[n] >= '0' && text->at[n] <= '9') {
        n++;
    }
    struct rows_span digits = {text->at, n};
    text->at += n;
    text->len -= n;
    return num_parse_id(digits.at, digits.len, out);
}

/* What a row of ndjson has had by now. */
struct had {
    bool id, members, member, value;
};

/* The string that is an id. */
static bool
take_name(struct rows_reader *reader, struct rows_span *text, struct row *row)
{
    struct rows_span coded;
    size_t len = 0;
    return take_coded(text, &coded) &&
        rows__unescape(coded, reader->text, &len) &&
        rows_id_of(reader->columns, reader->text, len, &row->id);
}

static bool
take_number_of(struct rows_reader *reader, struct rows_span name,
    struct rows_span *text, struct row *row, struct had *had)
{
    static const char *const known[] = {"id", "member", "value"};
    const struct rows_columns *columns = reader->columns;
    bool *const is_had[] = {&had->id, &had->member, &had->value};
    uint64_t *const to[] = {&row->id.number, &row->member, &row->value};
    int column = rows__column_of(columns, name);
    for (unsigned i = 0; column < 0 && i < 3; i++) {
        if (rows__is_text(name, known[i]) ||
            (i == 0 && rows__is_name(name, &columns->key))) {
            if (*is_had[i]) {
                return false;
            }
            *is_had[i] = true;
            return i == 0 && columns->has_names ? take_name(reader, text, row)
                                                : take_digits(text, to[i]);
        }
    }
    for (unsigned i = 0; i < row->n; i++) {
        column = row->cell[i].column == column ? -1 : column;
    }
    if (column < 0 || !take_digits(text, &row->cell[row->n].value)) {
        return false;
    }
    row->cell[row->n++].column = (uint8_t)column;
    return true;
}

static bool
take_pair(struct rows_reader *reader, struct rows_span *text, struct row *row,
    struct had *had)
{
    const struct rows_columns *columns = reader->columns;
    struct rows_span name, value;
    if (!take_string(text, &name) || !take_char(text, ':')) {
        return false;
    }
    if (!rows__is_text(name, "members") ||
        rows__column_of(columns, name) >= 0) {
        return take_number_of(reader, name, text, row, had);
    }
    if (had->members || !take_string(text, &value)) {
        return false;
    }
    int members = rows__members_of(columns, value);
    had->members = true;
    row->members = (uint8_t)members;
    return members >= 0;
}

static enum rows_took
take_object(struct rows_reader *reader, struct rows_span line, struct row *row)
{
    struct rows_span text = line;
    struct had had = {0};
    bool is_right = take_char(&text, '{');
    while (is_right) {
        is_right = take_pair(reader, &text, row, &had);
        if (is_right && !take_char(&text, ',')) {
            break;
        }
    }
    is_right = is_right && take_char(&text, '}');
    skip_white(&text);
    row->is_member = had.members;
    if (had.members ? row->n > 0 || !had.member : had.member || had.value) {
        is_right = false;
    }
    if (had.members && !had.value) {
        row->value = 1;
    }
    return is_right && text.len == 0 && had.id
        ? ROWS_ROW
        : bad(reader, "no object with \"id\" and numbers of the counter",
              line);
}

/* ---- reading ---- */

/* As rows_take, with what members count. */
static enum rows_took
take_any(
    struct rows_reader *reader, const char *line, size_t len, struct row *row)
{
    struct rows_span text = {line, len};
    enum rows_took took;
    switch (reader->format) {
    case ROWS_DIALECT:
        took = rows_take_dumped(reader->columns, line, len, row);
        return took == ROWS_BAD
            ? bad(reader, "no line of this counter that stores", text)
            : took;
    case ROWS_NDJSON:
        return take_object(reader, text, row);
    case ROWS_CSV:
    case ROWS_TSV:
        break;
    }
    return take_fields(reader, text, row);
}

enum rows_took
rows_take(struct rows_reader *reader, const char *line, size_t len,
    struct row *row, struct rows_end *end)
{
    unsigned n = 0;
    row->id = (struct rows_id){0};
    row->member = row->value = 0; /* cells behind n are not read */
    row->n = row->members = 0;
    row->is_member = false;
    if (len == 0) {
        return ROWS_NONE;
    }
    if ((*line == '#' || *line == '{') && rows_is_end(line, len, end)) {
        return ROWS_END;
    }
    enum rows_took took = take_any(reader, line, len, row);
    if (took != ROWS_ROW || row->is_member) {
        return took;
    }
    for (unsigned i = 0; i < row->n; i++) {
        if (!reader->columns->is_counted[row->cell[i].column]) {
            row->cell[n++] = row->cell[i];
        }
    }
    row->n = n;
    return n > 0 ? ROWS_ROW : ROWS_NONE;
}
