/* SPDX-License-Identifier: BSD-3-Clause */
/* The columns of a counter, from the lines that declare it, and the lines of a
 * dump, which follow them. */
#include "cli/rows_priv.h"

static bool
take_name(struct rows_span span, struct schema_name *out)
{
    if (!schema_is_name(span.at, span.len)) {
        return false;
    }
    out->len = (uint8_t)span.len;
    memcpy(out->text, span.at, span.len);
    out->text[span.len] = '\0';
    return true;
}

/* The next word of text, which spaces part. False at the end. */
static bool
word(struct rows_span *text, struct rows_span *out)
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

static bool
begins(struct rows_span span, const char *with)
{
    return span.len >= strlen(with) &&
        memcmp(span.at, with, strlen(with)) == 0;
}

/* What the words behind a column's name make of it. */
struct attributes {
    bool is_key, is_text, is_list, is_members, is_about, is_mark;
    uint64_t default_value;
    struct rows_span suffix, counts;
};

static struct attributes
read_attributes(struct rows_span text)
{
    struct attributes out = {.suffix = {"", 0}, .counts = {"", 0}};
    struct rows_span at;
    while (word(&text, &at)) {
        out.is_text = out.is_text || rows__is_text(at, "primarykey=text");
        out.is_key =
            out.is_text || out.is_key || rows__is_text(at, "primarykey");
        out.is_list = out.is_list || begins(at, "follows=");
        out.is_members = out.is_members || begins(at, "members=");
        out.is_about = out.is_about || rows__is_text(at, "members=about");
        out.is_mark = out.is_mark || begins(at, "marks=");
        if (begins(at, "default=")) {
            (void)num_parse_u64(at.at + 8, at.len - 8, &out.default_value);
        }
        if (begins(at, "suffix=")) {
            out.suffix = (struct rows_span){at.at + 7, at.len - 7};
        } else if (begins(at, "counts=")) {
            out.counts = (struct rows_span){at.at + 7, at.len - 7};
        }
    }
    return out;
}

int
rows__column_of(const struct rows_columns *columns, struct rows_span name)
{
    for (unsigned i = 0; i < columns->n; i++) {
        if (!columns->is_list[i] && rows__is_name(name, &columns->name[i])) {
            return (int)i;
        }
    }
    return -1;
}

static bool
take_column(struct rows_columns *columns, struct rows_span text)
{
    struct rows_span counter, name;
    if (!word(&text, &counter) || !rows__is_name(counter, &columns->counter) ||
        !word(&text, &name)) {
        return false;
    }
    struct attributes what = read_attributes(text);
    if (what.is_key) {
        columns->has_names = what.is_text;
        return take_name(name, &columns->key);
    }
    if (what.is_members) {
        int counted = rows__column_of(columns, what.counts);
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
    if (what.suffix.len > 0 && !take_name(what.suffix, &columns->suffix[i])) {
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
    struct rows_span text = {line, len}, add, what, name;
    if (!word(&text, &add) || !rows__is_text(add, "add") ||
        !word(&text, &what)) {
        return false;
    }
    if (rows__is_text(what, "counter")) {
        return word(&text, &name) && take_name(name, &columns->counter);
    }
    return rows__is_text(what, "column") && take_column(columns, text);
}

int
rows__members_of(const struct rows_columns *columns, struct rows_span name)
{
    for (unsigned i = 0; i < columns->n_members; i++) {
        if (rows__is_name(name, &columns->members[i]) ||
            rows__is_name(name, &columns->members_name[i])) {
            return (int)i;
        }
    }
    return -1;
}

int
rows_members_of(
    const struct rows_columns *columns, const char *name, size_t len)
{
    return rows__members_of(columns, (struct rows_span){name, len});
}

int
rows_column_of(
    const struct rows_columns *columns, const char *name, size_t len)
{
    return rows__column_of(columns, (struct rows_span){name, len});
}

/* ---- ids ---- */

bool
rows_id_of(const struct rows_columns *columns, const char *text, size_t len,
    struct rows_id *out)
{
    *out = (struct rows_id){0};
    if (!columns->has_names) {
        return num_parse_u64(text, len, &out->number);
    }
    out->name = text;
    out->len = len;
    return name_is_valid(text, len);
}

int
rows_compare_ids(const struct rows_id *left, const struct rows_id *right)
{
    if (left->name == NULL) {
        return (left->number > right->number) - (left->number < right->number);
    }
    size_t len = left->len < right->len ? left->len : right->len;
    int compared = memcmp(left->name, right->name, len);
    return compared != 0 ? compared
                         : (left->len > right->len) - (left->len < right->len);
}

/* ---- lines of a dump ---- */

/* What the word of a line is about. */
struct about {
    struct rows_span id;
    int members; /* -1: a record; else a member, in digits: */
    struct rows_span member;
};

/* True where that is behind the last dot of a name in the key of some cell, or
 * of all members. */
static bool
is_of_cell(const struct rows_columns *columns, struct rows_span behind)
{
    bool is_one = rows__members_of(columns, behind) >= 0;
    for (unsigned i = 0; !is_one && i < columns->n; i++) {
        is_one = rows__is_name(behind, &columns->name[i]) ||
            (columns->suffix[i].len > 0 &&
                rows__is_name(behind, &columns->suffix[i]));
    }
    return is_one;
}

/* What stands behind the dot, SUFFIX:MEMBER; false: it is no member. */
static bool
take_member(const struct rows_columns *columns, struct rows_span behind,
    struct about *out)
{
    const char *colon = memchr(behind.at, ':', behind.len);
    if (colon == NULL) {
        return false;
    }
    struct rows_span suffix = {behind.at, (size_t)(colon - behind.at)};
    out->member = (struct rows_span){
        colon + 1, (size_t)(behind.at + behind.len - colon - 1)};
    out->members = rows__members_of(columns, suffix);
    return out->members >= 0;
}

/* Takes the braces from a name, or the mark of a proxy: what stands before the
 * last dot of a key is written so. */
static void
take_form(struct rows_span *name)
{
    static const char mark[] = "|#|";
    size_t len = sizeof mark - 1;
    if (name->len >= 2 && name->at[0] == '{' &&
        name->at[name->len - 1] == '}') {
        name->at++;
        name->len -= 2;
    } else if (name->len >= len &&
        memcmp(name->at + name->len - len, mark, len) == 0) {
        name->len -= len;
    }
}

/* Where ids are names: NAME, NAME.COUNTER or NAME.SUFFIX:MEMBER, as the server
 * takes it. */
static bool
take_named(const struct rows_columns *columns, struct rows_span key,
    struct about *out)
{
    const char *dot = memrchr(key.at, '.', key.len);
    out->id = key;
    if (dot == NULL) {
        return true;
    }
    struct rows_span before = {key.at, (size_t)(dot - key.at)};
    struct rows_span behind = {dot + 1, key.len - before.len - 1};
    if (rows__is_name(behind, &columns->counter) ||
        take_member(columns, behind, out)) {
        out->id = before;
        take_form(&out->id);
        return true;
    }
    return !is_of_cell(columns, behind);
}

/* ID or ID.SUFFIX:MEMBER */
static bool
take_about(const struct rows_columns *columns, struct rows_span key,
    struct about *out)
{
    *out = (struct about){.id = key, .members = -1};
    if (columns->has_names) {
        return take_named(columns, key, out);
    }
    const char *dot = memchr(key.at, '.', key.len);
    if (dot == NULL) {
        return true;
    }
    out->id.len = (size_t)(dot - key.at);
    struct rows_span behind = {dot + 1, key.len - out->id.len - 1};
    return take_member(columns, behind, out);
}

/* The rest of the line of a member. */
static bool
dumped_member(
    const struct about *about, struct rows_span text, struct row *out)
{
    struct rows_span value;
    out->is_member = true;
    out->members = (uint8_t)about->members;
    return rows__number(about->member, &out->member) && word(&text, &value) &&
        rows__number(value, &out->value) && !word(&text, &value);
}

/* A value a column, or COLUMN=VALUE. */
static bool
dumped_cell(const struct rows_columns *columns, struct rows_span at,
    unsigned i, struct row *out)
{
    const char *equals = memchr(at.at, '=', at.len);
    int column = (int)i;
    if (equals != NULL) {
        struct rows_span name = {at.at, (size_t)(equals - at.at)};
        column = rows__column_of(columns, name);
        at = (struct rows_span){equals + 1, at.len - name.len - 1};
    }
    if (column < 0 || (unsigned)column >= columns->n ||
        out->n == SCHEMA_COLUMNS_MAX ||
        !rows__number(at, &out->cell[out->n].value)) {
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
    struct rows_span text = {line, len}, at;
    struct about about;
    *out = (struct row){0};
    if (!word(&text, &at)) {
        return ROWS_BAD;
    }
    if (rows__is_text(at, "add")) {
        bool is_of = word(&text, &at) &&
            (rows__is_text(at, "counter") || rows__is_text(at, "column")) &&
            word(&text, &at) && rows__is_name(at, &columns->counter);
        return is_of ? ROWS_LINE : ROWS_BAD;
    }
    if (!rows__is_text(at, "set") || !word(&text, &at) ||
        !rows__is_name(at, &columns->counter) || !word(&text, &at)) {
        return ROWS_BAD;
    }
    if (!take_about(columns, at, &about) ||
        !rows_id_of(columns, about.id.at, about.id.len, &out->id)) {
        return ROWS_BAD;
    }
    if (about.members >= 0) {
        return dumped_member(&about, text, out) ? ROWS_ROW : ROWS_BAD;
    }
    for (unsigned i = 0; word(&text, &at); i++) {
        if (!dumped_cell(columns, at, i, out)) {
            return ROWS_BAD;
        }
    }
    return ROWS_ROW;
}
