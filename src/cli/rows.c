/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines of files that have records. All numbers are checked: what is not
 * exactly one is a bad line, which stores nothing. Of JSON only objects with
 * whole numbers and one string are read, for a row has no more. */
#include "cli/rows.h"

#include "base/num.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS_MAX = SCHEMA_COLUMNS_MAX + 4, SUM_DIGITS = 16 };

struct span {
    const char *at;
    size_t len;
};

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

static bool
is_text(struct span span, const char *text)
{
    return span.len == strlen(text) && memcmp(span.at, text, span.len) == 0;
}

static bool
is_name(struct span span, const struct schema_name *name)
{
    return span.len == name->len && memcmp(span.at, name->text, span.len) == 0;
}

static bool
take_name(struct span span, struct schema_name *out)
{
    if (!schema_is_name(span.at, span.len)) {
        return false;
    }
    out->len = (uint8_t)span.len;
    memcpy(out->text, span.at, span.len);
    out->text[span.len] = '\0';
    return true;
}

static bool
number(struct span span, uint64_t *out)
{
    return num_parse_u64(span.at, span.len, out);
}

static enum rows_took
bad(struct rows_reader *reader, const char *why, struct span span)
{
    int len = span.len > 60 ? 60 : (int)span.len;
    (void)snprintf(
        reader->why, sizeof reader->why, "%s: %.*s", why, len, span.at);
    return ROWS_BAD;
}

/* The next word of text, which spaces part. False at the end. */
static bool
word(struct span *text, struct span *out)
{
    while (text->len > 0 && *text->at == ' ') {
        text->at++;
        text->len--;
    }
    const char *end = memchr(text->at, ' ', text->len);
    out->at = text->at;
    out->len = end == NULL ? text->len : (size_t)(end - text->at);
    text->at += out->len;
    text->len -= out->len;
    return out->len > 0;
}

/* ---- columns ---- */

static bool
begins(struct span span, const char *with)
{
    return span.len >= strlen(with) &&
        memcmp(span.at, with, strlen(with)) == 0;
}

/* What the words behind a column's name make of it. */
struct attributes {
    bool is_key, is_text, is_list, is_members, is_about, is_mark;
    uint64_t default_value;
    struct span suffix, counts;
};

static struct attributes
read_attributes(struct span text)
{
    struct attributes out = {.suffix = {"", 0}, .counts = {"", 0}};
    struct span at;
    while (word(&text, &at)) {
        out.is_text = out.is_text || is_text(at, "primarykey=text");
        out.is_key = out.is_text || out.is_key || is_text(at, "primarykey");
        out.is_list = out.is_list || begins(at, "follows=");
        out.is_members = out.is_members || begins(at, "members=");
        out.is_about = out.is_about || is_text(at, "members=about");
        out.is_mark = out.is_mark || begins(at, "marks=");
        if (begins(at, "default=")) {
            (void)num_parse_u64(at.at + 8, at.len - 8, &out.default_value);
        }
        if (begins(at, "suffix=")) {
            out.suffix = (struct span){at.at + 7, at.len - 7};
        } else if (begins(at, "counts=")) {
            out.counts = (struct span){at.at + 7, at.len - 7};
        }
    }
    return out;
}

static int
column_of(const struct rows_columns *columns, struct span name)
{
    for (unsigned i = 0; i < columns->n; i++) {
        if (!columns->is_list[i] && is_name(name, &columns->name[i])) {
            return (int)i;
        }
    }
    return -1;
}

static bool
take_column(struct rows_columns *columns, struct span text)
{
    struct span counter, name;
    if (!word(&text, &counter) || !is_name(counter, &columns->counter) ||
        !word(&text, &name)) {
        return false;
    }
    struct attributes what = read_attributes(text);
    if (what.is_key) {
        columns->has_names = what.is_text;
        return take_name(name, &columns->key);
    }
    if (what.is_members) {
        int counted = column_of(columns, what.counts);
        if (counted >= 0) {
            columns->is_counted[counted] = true;
        }
        unsigned i = columns->n_members;
        bool is_taken = i < SCHEMA_COLUMNS_MAX &&
            take_name(name, &columns->members_name[i]) &&
            take_name(what.suffix.len > 0 ? what.suffix : name,
                &columns->members[i]);
        columns->n_members += is_taken;
        if (is_taken) {
            columns->is_about[i] = what.is_about;
        }
        return is_taken;
    }
    unsigned i = columns->n;
    if (i == SCHEMA_COLUMNS_MAX || !take_name(name, &columns->name[i])) {
        return false;
    }
    columns->is_list[i] = what.is_list;
    columns->is_mark[i] = what.is_mark;
    columns->default_value[i] = what.default_value;
    columns->n++;
    return true;
}

bool
rows_columns_take(struct rows_columns *columns, const char *line, size_t len)
{
    struct span text = {line, len}, add, what, name;
    if (!word(&text, &add) || !is_text(add, "add") || !word(&text, &what)) {
        return false;
    }
    if (is_text(what, "counter")) {
        return word(&text, &name) && take_name(name, &columns->counter);
    }
    return is_text(what, "column") && take_column(columns, text);
}

static int
members_of(const struct rows_columns *columns, struct span name)
{
    for (unsigned i = 0; i < columns->n_members; i++) {
        if (is_name(name, &columns->members[i]) ||
            is_name(name, &columns->members_name[i])) {
            return (int)i;
        }
    }
    return -1;
}

int
rows_members_of(
    const struct rows_columns *columns, const char *name, size_t len)
{
    return members_of(columns, (struct span){name, len});
}

int
rows_column_of(
    const struct rows_columns *columns, const char *name, size_t len)
{
    return column_of(columns, (struct span){name, len});
}

/* ---- lines of a dump ---- */

/* ID.SUFFIX:MEMBER VALUE */
static bool
dumped_member(const struct rows_columns *columns, struct span key,
    struct span text, struct row *out)
{
    const char *dot = memchr(key.at, '.', key.len);
    const char *colon = memchr(key.at, ':', key.len);
    struct span value;
    if (dot == NULL || colon == NULL || colon < dot) {
        return false;
    }
    struct span id = {key.at, (size_t)(dot - key.at)};
    struct span suffix = {dot + 1, (size_t)(colon - dot - 1)};
    struct span member = {colon + 1, (size_t)(key.at + key.len - colon - 1)};
    int members = members_of(columns, suffix);
    out->is_member = true;
    out->members = (uint8_t)members;
    return members >= 0 && number(id, &out->id) &&
        number(member, &out->member) && word(&text, &value) &&
        number(value, &out->value) && !word(&text, &value);
}

/* A value a column, or COLUMN=VALUE. */
static bool
dumped_cell(const struct rows_columns *columns, struct span at, unsigned i,
    struct row *out)
{
    const char *equals = memchr(at.at, '=', at.len);
    int column = (int)i;
    if (equals != NULL) {
        struct span name = {at.at, (size_t)(equals - at.at)};
        column = column_of(columns, name);
        at = (struct span){equals + 1, at.len - name.len - 1};
    }
    if (column < 0 || (unsigned)column >= columns->n ||
        out->n == SCHEMA_COLUMNS_MAX ||
        !number(at, &out->cell[out->n].value)) {
        return false;
    }
    if (!columns->is_list[column]) {
        out->cell[out->n++].column = (uint8_t)column;
    }
    return true;
}

enum rows_took
rows_take_dumped(const struct rows_columns *columns, const char *line,
    size_t len, struct row *out)
{
    struct span text = {line, len}, at;
    *out = (struct row){0};
    if (!word(&text, &at)) {
        return ROWS_BAD;
    }
    if (is_text(at, "add")) {
        bool is_of = word(&text, &at) &&
            (is_text(at, "counter") || is_text(at, "column")) &&
            word(&text, &at) && is_name(at, &columns->counter);
        return is_of ? ROWS_LINE : ROWS_BAD;
    }
    if (!is_text(at, "set") || !word(&text, &at) ||
        !is_name(at, &columns->counter) || !word(&text, &at)) {
        return ROWS_BAD;
    }
    if (memchr(at.at, '.', at.len) != NULL) {
        return dumped_member(columns, at, text, out) ? ROWS_ROW : ROWS_BAD;
    }
    if (!number(at, &out->id)) {
        return ROWS_BAD;
    }
    for (unsigned i = 0; word(&text, &at); i++) {
        if (!dumped_cell(columns, at, i, out)) {
            return ROWS_BAD;
        }
    }
    return ROWS_ROW;
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
    return len > 0 &&
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

/* ---- csv and tsv ---- */

/* The next field, of a line that has one. False where quotes are wrong. */
static bool
field(bool is_csv, struct span *text, struct span *out, bool *is_last)
{
    const char *end;
    char mark = is_csv ? ',' : '\t';
    if (is_csv && text->len > 0 && *text->at == '"') {
        end = memchr(text->at + 1, '"', text->len - 1);
        if (end == NULL) {
            return false;
        }
        *out = (struct span){text->at + 1, (size_t)(end - text->at - 1)};
        text->len -= (size_t)(end + 1 - text->at);
        text->at = end + 1;
        if (text->len > 0 && *text->at != mark) {
            return false;
        }
    } else {
        end = memchr(text->at, mark, text->len);
        *out = (struct span){
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
meaning_of(const struct rows_reader *reader, struct span name)
{
    const struct rows_columns *columns = reader->columns;
    if (is_name(name, &columns->key) ||
        (is_text(name, "id") && column_of(columns, name) < 0)) {
        return ROWS_ID;
    }
    if (name.len == 0 || is_text(name, "-")) {
        return ROWS_SKIP;
    }
    if (reader->members >= 0) {
        return is_text(name, "member") ? ROWS_MEMBER
            : is_text(name, "value")   ? ROWS_VALUE
                                       : ROWS_NO_FIELD;
    }
    return column_of(columns, name);
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
    struct span text = {line, len}, name;
    unsigned n = 0;
    bool is_last = false;
    while (!is_last) {
        if (n == ROWS_FIELDS_MAX ||
            !field(reader->format == ROWS_CSV, &text, &name, &is_last)) {
            (void)bad(reader, "no header", (struct span){line, len});
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
            (struct span){line, len});
        return false;
    }
    reader->n_fields = n;
    return true;
}

/* Where the number of a field goes; NULL: nowhere. */
static uint64_t *
place_of(int means, struct row *row)
{
    switch (means) {
    case ROWS_SKIP:
        return NULL;
    case ROWS_ID:
        return &row->id;
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
take_fields(struct rows_reader *reader, struct span line, struct row *row)
{
    struct span text = line, at;
    bool is_csv = reader->format == ROWS_CSV, is_last = false;
    unsigned i = 0;
    row->is_member = reader->members >= 0;
    row->members = row->is_member ? (uint8_t)reader->members : 0;
    row->value = row->is_member;
    for (; !is_last; i++) {
        if (!field(is_csv, &text, &at, &is_last)) {
            return bad(reader, "a quote without its other", line);
        }
        if (i >= reader->n_fields) {
            return bad(reader, "more fields than the header has", line);
        }
        int means = reader->field[i];
        uint64_t *out = place_of(means, row);
        if (means >= 0 && (at.len == 0 || is_text(at, "\\N"))) {
            continue;
        }
        if (out != NULL && !number(at, out)) {
            return bad(reader, "no whole number from 0 to 2^64-1", at);
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
skip_white(struct span *text)
{
    while (text->len > 0 && (*text->at == ' ' || *text->at == '\t')) {
        text->at++;
        text->len--;
    }
}

static bool
take_char(struct span *text, char c)
{
    skip_white(text);
    if (text->len == 0 || *text->at != c) {
        return false;
    }
    text->at++;
    text->len--;
    return true;
}

/* "text", without an escape in it. */
static bool
take_string(struct span *text, struct span *out)
{
    if (!take_char(text, '"')) {
        return false;
    }
    const char *end = memchr(text->at, '"', text->len);
    if (end == NULL) {
        return false;
    }
    *out = (struct span){text->at, (size_t)(end - text->at)};
    text->at = end + 1;
    text->len -= out->len + 1;
    return memchr(out->at, '\\', out->len) == NULL;
}

static bool
take_digits(struct span *text, uint64_t *out)
{
    skip_white(text);
    size_t n = 0;
    while (n < text->len && text->at[n] >= '0' && text->at[n] <= '9') {
        n++;
    }
    struct span digits = {text->at, n};
    text->at += n;
    text->len -= n;
    return num_parse_id(digits.at, digits.len, out);
}

/* What a row of ndjson has had by now. */
struct had {
    bool id, members, member, value;
};

static bool
take_number_of(const struct rows_columns *columns, struct span name,
    struct span *text, struct row *row, struct had *had)
{
    static const char *const known[] = {"id", "member", "value"};
    bool *const is_had[] = {&had->id, &had->member, &had->value};
    uint64_t *const to[] = {&row->id, &row->member, &row->value};
    int column = column_of(columns, name);
    for (unsigned i = 0; column < 0 && i < 3; i++) {
        if (is_text(name, known[i]) ||
            (i == 0 && is_name(name, &columns->key))) {
            if (*is_had[i]) {
                return false;
            }
            *is_had[i] = true;
            return take_digits(text, to[i]);
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
take_pair(const struct rows_columns *columns, struct span *text,
    struct row *row, struct had *had)
{
    struct span name, value;
    if (!take_string(text, &name) || !take_char(text, ':')) {
        return false;
    }
    if (!is_text(name, "members") || column_of(columns, name) >= 0) {
        return take_number_of(columns, name, text, row, had);
    }
    if (had->members || !take_string(text, &value)) {
        return false;
    }
    int members = members_of(columns, value);
    had->members = true;
    row->members = (uint8_t)members;
    return members >= 0;
}

static enum rows_took
take_object(struct rows_reader *reader, struct span line, struct row *row)
{
    struct span text = line;
    struct had had = {0};
    bool is_right = take_char(&text, '{');
    while (is_right) {
        is_right = take_pair(reader->columns, &text, row, &had);
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
    struct span text = {line, len};
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
    *row = (struct row){0};
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

static void
put_object(
    const struct rows_columns *columns, const struct row *row, struct buf *out)
{
    buf_add_text(out, "{\"");
    add_key(columns, out);
    buf_add_text(out, "\":");
    buf_add_u64(out, row->id);
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
    buf_add_u64(out, row->id);
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

void
rows_put_set(
    const struct rows_columns *columns, const struct row *row, struct buf *out)
{
    buf_add_text(out, "set ");
    add_name(out, &columns->counter);
    buf_add_text(out, " ");
    buf_add_u64(out, row->id);
    if (row->is_member) {
        buf_add_text(out, ".");
        add_name(out, &columns->members[row->members]);
        buf_addf(out, ":%" PRIu64 " %" PRIu64, row->member, row->value);
    }
    for (unsigned i = 0; i < row->n; i++) {
        buf_add_text(out, " ");
        add_name(out, &columns->name[row->cell[i].column]);
        buf_add_text(out, "=");
        buf_add_u64(out, row->cell[i].value);
    }
    buf_add_text(out, "\n");
}
