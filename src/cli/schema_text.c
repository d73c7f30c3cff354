/* SPDX-License-Identifier: BSD-3-Clause */
/* Two schemas are compared as their lines, as schema_print_all writes them: a
 * line is about the same thing in both where its first words are the same, "add
 * counter C" or "add column C X". */
#include "cli/schema_text.h"

#include "base/assert.h"
#include "base/err.h"
#include "schema/print.h"

#include <stdio.h>
#include <string.h>

enum {
    WORDS_MAX = 40,
    COUNTER_WORDS = 3, /* "add counter C" */
    COLUMN_WORDS = 4   /* "add column C X" */
};

/* A line, without its end. */
struct line {
    const char *text;
    size_t len;
};

static bool
fail(char why[SCHEMA_TEXT_WHY_MAX], const struct line *line, int err)
{
    (void)snprintf(why, SCHEMA_TEXT_WHY_MAX, "%s: \"%.*s\"", err_text(err),
        line->len > 250 ? 250 : (int)line->len, line->text);
    return false;
}

/* Takes the next line of text. */
static bool
next_line(const struct buf *text, size_t *at, struct line *line)
{
    if (*at >= text->len) {
        return false;
    }
    line->text = text->data + *at;
    const char *end = memchr(line->text, '\n', text->len - *at);
    line->len = end == NULL ? text->len - *at : (size_t)(end - line->text);
    *at += line->len + 1;
    line->len -= line->len > 0 && line->text[line->len - 1] == '\r';
    return true;
}

static size_t
take_words(const char *line, size_t len, struct schema_word *word)
{
    size_t n = 0;
    for (size_t at = 0; at < len && n <= WORDS_MAX;) {
        size_t start = at;
        while (at < len && line[at] != ' ' && line[at] != '\t') {
            at++;
        }
        if (at > start) {
            word[n].text = line + start;
            word[n++].len = at - start;
        }
        at++;
    }
    return n;
}

static bool
is_word(const struct schema_word *word, const char *text)
{
    return word->len == strlen(text) &&
        memcmp(word->text, text, word->len) == 0;
}

/* 0, or an ERR_ of schema_edit_parse; ERR_NOT_SCHEMA where it is no line of
 * the language. */
static int
parse(const char *line, size_t len, struct schema_edit *edit)
{
    static const struct {
        const char *verb, *what;
        enum schema_edit_op op;
    } forms[] = {{"add", "counter", SCHEMA_ADD_COUNTER},
        {"add", "column", SCHEMA_ADD_COLUMN},
        {"change", "counter", SCHEMA_CHANGE_COUNTER},
        {"change", "column", SCHEMA_CHANGE_COLUMN},
        {"drop", "counter", SCHEMA_DROP_COUNTER},
        {"drop", "column", SCHEMA_DROP_COLUMN}};
    struct schema_word word[WORDS_MAX + 1];
    size_t n = take_words(line, len, word);
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        if (n > 2 && n <= WORDS_MAX && is_word(&word[0], forms[i].verb) &&
            is_word(&word[1], forms[i].what)) {
            return schema_edit_parse(forms[i].op, word + 2, n - 2, edit);
        }
    }
    return ERR_NOT_SCHEMA;
}

/* Applies one line; what is there already is no error. */
static int
apply_edit(struct schema **schema, const struct schema_edit *edit)
{
    struct schema *next = NULL;
    if (schema_has_same(*schema, edit)) {
        return 0;
    }
    int err = schema_apply(*schema, edit, &next);
    if (err == 0) {
        schema_destroy(schema);
        *schema = next;
    }
    return err;
}

bool
schema_text_read(const struct buf *text, struct schema **schema,
    unsigned *n_largest, char why[SCHEMA_TEXT_WHY_MAX])
{
    struct line line;
    unsigned number = 0;
    *n_largest = 0;
    for (size_t at = 0; next_line(text, &at, &line);) {
        struct schema_word word[WORDS_MAX + 1];
        struct schema_edit edit;
        number++;
        if (take_words(line.text, line.len, word) == 0 ||
            word[0].text[0] == '#') {
            continue;
        }
        int err = parse(line.text, line.len, &edit);
        if (err == 0 && edit.op != SCHEMA_ADD_COUNTER &&
            edit.op != SCHEMA_ADD_COLUMN) {
            err = ERR_NOT_SCHEMA;
        }
        if (err == 0) {
            *n_largest += edit.has_largest;
            err = apply_edit(schema, &edit);
        }
        if (err != 0) {
            int n = snprintf(why, SCHEMA_TEXT_WHY_MAX, "%u: ", number);
            ASSERT(n > 0 && n < SCHEMA_TEXT_WHY_MAX / 2);
            (void)snprintf(
                why + n, SCHEMA_TEXT_WHY_MAX - (size_t)n, "%s", err_text(err));
            return false;
        }
    }
    return true;
}

bool
schema_text_lines(const struct schema *schema, struct buf *out)
{
    struct buf lines = {0};
    struct line line;
    bool is_right = schema_print_all(schema, &lines) == 0;
    for (size_t at = 0; is_right && next_line(&lines, &at, &line);) {
        buf_add(out, line.text, line.len);
        buf_add_text(out, "\n");
    }
    buf_fini(&lines);
    return is_right && !out->failed;
}

/* Applies what can be by now of the lines; what cannot goes to left. 0, or what
 * the first of those was refused for, with that line in *refused. */
static int
apply_some(const struct buf *lines, struct schema **schema, struct buf *done,
    struct buf *left, struct line *refused)
{
    struct line line;
    int first = 0;
    for (size_t at = 0; next_line(lines, &at, &line);) {
        struct schema_edit edit;
        int err = parse(line.text, line.len, &edit);
        err = err == 0 ? apply_edit(schema, &edit) : err;
        struct buf *out = err == 0 ? done : left;
        buf_add(out, line.text, line.len);
        buf_add_text(out, "\n");
        if (err != 0 && first == 0) {
            first = err;
            *refused = line;
        }
    }
    return first;
}

bool
schema_text_apply(const struct buf *lines, struct schema **schema,
    struct buf *done, char why[SCHEMA_TEXT_WHY_MAX])
{
    struct buf now = {0}, left = {0};
    struct line refused = {"", 0};
    int err = lines->len > 0 ? -1 : 0;
    bool is_stuck = false;
    buf_add(&now, lines->data, lines->len);
    while (err != 0 && !is_stuck && !now.failed && !left.failed) {
        size_t before = now.len;
        buf_clear(&left);
        err = apply_some(&now, schema, done, &left, &refused);
        is_stuck = err != 0 && left.len >= before;
        if (!is_stuck) {
            struct buf other = now;
            now = left;
            left = other;
        }
    }
    bool has_failed = now.failed || left.failed || done->failed;
    if (has_failed) {
        (void)snprintf(why, SCHEMA_TEXT_WHY_MAX, "out of memory");
    } else if (err != 0) {
        (void)fail(why, &refused, err);
    }
    buf_fini(&now);
    buf_fini(&left);
    return err == 0 && !has_failed;
}

/* ---- one against the other ---- */

/* What a line is about: the bytes of its first words. */
static size_t
about(const struct line *line)
{
    struct schema_word word[WORDS_MAX + 1];
    size_t n = take_words(line->text, line->len, word);
    size_t last =
        n > 1 && is_word(&word[1], "counter") ? COUNTER_WORDS : COLUMN_WORDS;
    ASSERT(n >= last);
    return (size_t)(word[last - 1].text - line->text) + word[last - 1].len;
}

/* The line of text that is about the same as this one. */
static bool
find_line(const struct buf *text, const struct line *like, struct line *found)
{
    size_t len = about(like);
    for (size_t at = 0; next_line(text, &at, found);) {
        if (about(found) == len && memcmp(found->text, like->text, len) == 0) {
            return true;
        }
    }
    return false;
}

/* The same but for the word that begins so. */
static bool
differs_only_in(
    const struct line *one, const struct line *other, const char *begin)
{
    struct schema_word a[WORDS_MAX + 1], b[WORDS_MAX + 1];
    size_t n = take_words(one->text, one->len, a), len = strlen(begin);
    bool is_so = n == take_words(other->text, other->len, b);
    for (size_t i = 0; is_so && i < n; i++) {
        bool is_it = a[i].len > len && b[i].len > len &&
            memcmp(a[i].text, begin, len) == 0 &&
            memcmp(b[i].text, begin, len) == 0;
        is_so = is_it ||
            (a[i].len == b[i].len &&
                memcmp(a[i].text, b[i].text, a[i].len) == 0);
    }
    return is_so;
}

static void
add_changed(struct schema_text_diff *diff, const struct line *has,
    const struct line *wants)
{
    diff->n_changed++;
    buf_addf(&diff->changed,
        "! the server has  %.*s\n! the file has    %.*s\n", (int)has->len,
        has->text, (int)wants->len, wants->text);
    buf_addf(&diff->changed, "  %s\n",
        differs_only_in(has, wants, "hint=")
            ? "Only the hint differs, a first guess of widths that no number "
              "depends on:\n  write the server's into the file."
            : "A server cannot change that: write the server's line into the "
              "file, or use\n  another name.");
}

/* Notes the change that makes the server's line the file's; false where a
 * server makes none. */
static bool
add_change(struct schema_text_diff *diff, const struct schema *from,
    const struct line *wants)
{
    struct schema_edit add, change;
    struct schema *next = NULL;
    int err = parse(wants->text, wants->len, &add);
    bool is_one = err == 0 && schema_change_for(from, &add, &change) &&
        schema_apply(from, &change, &next) == 0;
    if (is_one) {
        diff->n_change++;
        schema_print_change(&change, &diff->change);
        buf_add_text(&diff->change, "\n");
    }
    schema_destroy(&next);
    return is_one;
}

static void
add_line(struct buf *out, const struct line *line, unsigned *n)
{
    buf_add(out, line->text, line->len);
    buf_add_text(out, "\n");
    ++*n;
}

/* Of a line that only `from` has. The columns of a counter go with it. */
static void
add_drop(struct schema_text_diff *diff, const struct line *line,
    const struct buf *to)
{
    struct schema_word word[WORDS_MAX + 1];
    size_t n = take_words(line->text, line->len, word);
    bool is_counter = is_word(&word[1], "counter");
    const char *last = word[is_counter ? 2 : 3].text;
    int last_len = (int)word[is_counter ? 2 : 3].len;
    struct line found, counter;
    char text[sizeof "add counter " + SCHEMA_NAME_MAX];
    int len = snprintf(
        text, sizeof text, "add counter %.*s", (int)word[2].len, word[2].text);
    ASSERT(len > 0 && (size_t)len < sizeof text);
    counter = (struct line){text, (size_t)len};
    if (!is_counter && !find_line(to, &counter, &found)) {
        return;
    }
    if (!is_counter && n > 0 &&
        (is_word(&word[n - 1], "primarykey") ||
            is_word(&word[n - 1], "primarykey=text"))) {
        diff->n_changed++;
        buf_addf(&diff->changed,
            "! the file lacks   %.*s\n  A primary key goes with its counter "
            "only: write the line into the file.\n",
            (int)line->len, line->text);
        return;
    }
    diff->n_drop++;
    if (is_counter) {
        buf_addf(&diff->drop, "drop counter %.*s %.*s\n", last_len, last,
            last_len, last);
    } else {
        buf_addf(&diff->drop, "drop column %.*s %.*s %.*s\n", (int)word[2].len,
            word[2].text, last_len, last, last_len, last);
    }
}

/* Whether the columns that a counter of to has and from has too stand at the
 * same places. */
static bool
has_order(const struct schema *from, const struct schema_counter *to)
{
    const struct schema_counter *counter =
        schema_counter(from, to->name.text, to->name.len);
    unsigned place = 0;
    bool is_new_before = false;
    for (unsigned i = 0; counter != NULL && i < to->n_columns; i++) {
        const struct schema_name *name = &to->column[i].name;
        const struct schema_column *column =
            schema_counter_column(counter, name->text, name->len);
        if (column == NULL) {
            is_new_before = true;
            continue;
        }
        unsigned at = (unsigned)(column - counter->column);
        if (is_new_before || at < place) {
            return false;
        }
        place = at;
    }
    return true;
}

static void
compare_orders(const struct schema *from, const struct schema *to,
    struct schema_text_diff *diff)
{
    for (unsigned slot = 0; slot < SCHEMA_COUNTERS_MAX; slot++) {
        const struct schema_counter *counter = schema_counter_at(to, slot);
        if (counter != NULL && counter->members_of == 0 &&
            !has_order(from, counter)) {
            diff->is_order_other = true;
        }
    }
}

bool
schema_text_diff_make(const struct schema *from, const struct schema *to,
    struct schema_text_diff *diff)
{
    struct buf has = {0}, wants = {0};
    struct line line, found;
    bool is_right =
        schema_print_all(from, &has) == 0 && schema_print_all(to, &wants) == 0;
    for (size_t at = 0; is_right && next_line(&has, &at, &line);) {
        if (!find_line(&wants, &line, &found)) {
            add_drop(diff, &line, &wants);
        } else if ((found.len != line.len ||
                       memcmp(found.text, line.text, line.len) != 0) &&
            !add_change(diff, from, &found)) {
            add_changed(diff, &line, &found);
        }
    }
    for (size_t at = 0; is_right && next_line(&wants, &at, &line);) {
        if (!find_line(&has, &line, &found)) {
            add_line(&diff->add, &line, &diff->n_add);
        }
    }
    compare_orders(from, to, diff);
    is_right = is_right && !diff->drop.failed && !diff->add.failed &&
        !diff->changed.failed && !diff->change.failed;
    buf_fini(&has);
    buf_fini(&wants);
    return is_right;
}

void
schema_text_diff_fini(struct schema_text_diff *diff)
{
    buf_fini(&diff->drop);
    buf_fini(&diff->add);
    buf_fini(&diff->changed);
    buf_fini(&diff->change);
}
