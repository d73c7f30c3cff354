/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the lines of --schema at start, the same that a person types, and has
 * the store's keeper do them one after the other. */
#include "server/schema_file.h"

#include "base/assert.h"
#include "base/err.h"
#include "base/mutex.h"
#include "proto/dialect.h"
#include "proto/words.h"
#include "schema/print.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* Waiting for the keeper. */
struct wait {
    struct mutex lock;
    pthread_cond_t done;
    bool is_done; /* under lock */
};

static void
on_done(struct store_call *call)
{
    struct wait *wait = call->owner;
    mutex_lock(&wait->lock);
    wait->is_done = true;
    pthread_cond_signal(&wait->done);
    mutex_unlock(&wait->lock);
}

static int
edit_and_wait(struct store *store, struct store_edit *edit)
{
    struct wait wait = {.is_done = false};
    mutex_init(&wait.lock);
    pthread_cond_init(&wait.done, NULL);
    edit->call = (struct store_call){.done_fn = on_done, .owner = &wait};
    if (store_edit(store, edit) == STORE_LATER) {
        mutex_lock(&wait.lock);
        while (!wait.is_done) {
            mutex_wait(&wait.lock, &wait.done);
        }
        mutex_unlock(&wait.lock);
    }
    pthread_cond_destroy(&wait.done);
    mutex_fini(&wait.lock);
    return edit->err;
}

/* Appends the line, without its end, by which something of the counter was
 * made: a column or the primary key, or, with NULL, itself. */
static void
print_line_of(const struct schema *schema,
    const struct schema_counter *counter, const struct schema_name *column,
    struct buf *out)
{
    struct buf lines = {0}, start = {0};
    buf_add_text(&lines, "\n");
    buf_addf(&start,
        column != NULL ? "\nadd column %s %s " : "\nadd counter %s%s",
        counter->name.text, column != NULL ? column->text : "");
    const char *found = NULL;
    if (schema_print(schema, counter, &lines) == 0 && !start.failed &&
        !lines.failed) {
        found = memmem(lines.data, lines.len, start.data, start.len);
    }
    if (found != NULL) {
        const char *line = found + 1;
        const char *end =
            memchr(line, '\r', lines.len - (size_t)(line - lines.data));
        buf_add(out, line, end == NULL ? 0 : (size_t)(end - line));
    }
    buf_fini(&lines);
    buf_fini(&start);
}

/* The line that is in the way of an edit; nothing where that is no line. */
static void
print_existing(const struct schema *schema, const struct schema_edit *edit,
    int err, struct buf *out)
{
    const struct schema_name *name = &edit->counter.name;
    const struct schema_counter *counter =
        schema_counter(schema, name->text, name->len);
    struct schema_target target;
    if (counter != NULL && err == ERR_TWO_KEYS) {
        print_line_of(schema, counter, &counter->key_name, out);
    } else if (counter != NULL && edit->op == SCHEMA_ADD_COUNTER) {
        print_line_of(schema, counter, NULL, out);
    } else if (counter != NULL) {
        print_line_of(schema, counter, &edit->column.name, out);
    }
    const struct schema_name *const names[] = {&edit->column.suffix,
        edit->op == SCHEMA_ADD_COUNTER ? name : &edit->column.name,
        &edit->column.unread};
    for (size_t i = 0; i < 3 && out->len == 0; i++) {
        if (schema_find(schema, names[i]->text, names[i]->len, &target)) {
            print_line_of(schema, target.counter,
                target.column == NULL ? NULL : &target.column->name, out);
        }
    }
}

/* Appends the change that would make what is there what edit adds; nothing
 * where the server refuses it. */
static void
say_change(const struct schema *schema, const struct schema_edit *edit,
    struct buf *more)
{
    struct schema_edit change;
    struct schema *next = NULL;
    struct buf line = {0};
    if (schema_change_for(schema, edit, &change) &&
        schema_apply(schema, &change, &next) == 0) {
        schema_print_change(&change, &line);
        buf_addf(more, ", or send \"%.*s\"", (int)line.len, line.data);
    }
    schema_destroy(&next);
    buf_fini(&line);
}

/* True where a column that is there has the suffix of the one that edit adds,
 * under another name: it may have had that one before. */
static bool
may_be_renamed(const struct schema *schema, const struct schema_edit *edit)
{
    const struct schema_name *name = &edit->column.name;
    const struct schema_name *suffix = &edit->column.suffix;
    struct schema_target target;
    return edit->op == SCHEMA_ADD_COLUMN && !edit->is_key && suffix->len > 0 &&
        !schema_find(schema, name->text, name->len, &target) &&
        schema_find(schema, suffix->text, suffix->len, &target) &&
        target.column != NULL && !target.is_unread &&
        strcmp(target.counter->name.text, edit->counter.name.text) == 0 &&
        strcmp(target.column->name.text, suffix->text) != 0;
}

/* What is there in place of what a line would add. */
static void
say_existing(const struct schema *schema, const struct schema_edit *edit,
    int err, struct buf *more)
{
    struct buf line = {0};
    if (err == ERR_NAME_TAKEN || err == ERR_TWO_KEYS) {
        print_existing(schema, edit, err, &line);
    }
    if (line.len > 0) {
        buf_addf(more,
            "; the server has \"%.*s\": write the same, or another name",
            (int)line.len, line.data);
        if (err == ERR_NAME_TAKEN && may_be_renamed(schema, edit)) {
            buf_addf(more, "; was %s renamed? Then write its new name",
                edit->column.name.text);
        } else {
            say_change(schema, edit, more);
        }
    }
    buf_fini(&line);
}

/* The same where only the hint differs; false: more does. */
static bool
say_hint(const struct schema *schema, const struct schema_edit *edit, int err,
    struct buf *more)
{
    struct schema_edit change;
    struct buf line = {0};
    if ((err != ERR_NAME_TAKEN && err != ERR_TWO_KEYS) ||
        !schema_change_for(schema, edit, &change) ||
        change.op != SCHEMA_CHANGE_COLUMN ||
        change.changes != SCHEMA_CHANGES_HINT) {
        return false;
    }
    print_existing(schema, edit, err, &line);
    buf_addf(more,
        "only the hint differs, which no number depends on, and the server's "
        "stays: write its line, \"%.*s\"",
        (int)line.len, line.data);
    say_change(schema, edit, more);
    buf_fini(&line);
    return true;
}

/* Makes an edit of a line; *is_edit is false for one that says nothing. */
static int
parse_line(const char *line, uint32_t len, const struct schema *none,
    struct schema_edit *edit, bool *is_edit)
{
    struct words words = {line, 0, len};
    struct span span;
    struct request request = {.op = REQUEST_ERROR};
    *is_edit = words_next(&words, &span) && line[span.at] != '#';
    if (!*is_edit) {
        return 0;
    }
    if (!dialect_parse(span, words, none, &request) ||
        request.op != REQUEST_SCHEMA_EDIT ||
        request.schema_op == SCHEMA_DROP_COUNTER ||
        request.schema_op == SCHEMA_DROP_COLUMN) {
        return ERR_NOT_SCHEMA;
    }
    int err = dialect_edit(line, &request, edit);
    return err == 0 && (edit->changes & SCHEMA_CHANGES_NAME) != 0 &&
            edit->op == SCHEMA_CHANGE_COLUMN
        ? ERR_CHANGE_ONCE
        : err;
}

/* Calls edit_fn for the edit of each line, up to the first error. What more
 * there is to say of that goes to *more; without an error it goes to *notes, a
 * line each (NULL: edit_fn says nothing then). */
static int
each_edit(const char *path, const struct buf *text,
    int (*edit_fn)(
        void *context, const struct schema_edit *edit, struct buf *more),
    void *context, struct buf *notes, struct buf *why)
{
    struct schema *none = schema_create(); /* counters' names mean nothing */
    struct buf more = {0};
    int err = none == NULL ? ERR_NO_MEMORY : 0;
    unsigned line = 0;
    for (size_t at = 0; err == 0 && at < text->len;) {
        const char *start = text->data + at;
        const char *newline = memchr(start, '\n', text->len - at);
        size_t len =
            newline == NULL ? text->len - at : (size_t)(newline - start);
        at += len + 1;
        line++;
        if (len > 0 && start[len - 1] == '\r') {
            len--;
        }
        struct schema_edit edit;
        bool is_edit;
        err = parse_line(start, (uint32_t)len, none, &edit, &is_edit);
        if (err == 0 && is_edit) {
            err = edit_fn(context, &edit, &more);
        }
        if (err == 0 && more.len > 0) {
            ASSERT(notes != NULL);
            buf_addf(
                notes, "%s:%u: %.*s\n", path, line, (int)more.len, more.data);
            buf_clear(&more);
        }
    }
    if (err != 0) {
        buf_addf(why, "%s:%u: %s%.*s", path, line, err_text(err),
            (int)more.len, more.len == 0 ? "" : more.data);
    }
    buf_fini(&more);
    schema_destroy(&none);
    return err;
}

struct loading {
    struct store *store;
    uint32_t newest; /* serial that a counter had before */
};

/* True where the edit adds a column to a counter that was there before, with
 * others: it may be the name that one of them had. */
static bool
is_added_later(const struct loading *loading, const struct schema_edit *edit)
{
    const struct schema *schema = store_schema(loading->store);
    const struct schema_counter *counter = schema_counter(
        schema, edit->counter.name.text, edit->counter.name.len);
    return edit->op == SCHEMA_ADD_COLUMN && !edit->is_key && counter != NULL &&
        counter->serial <= loading->newest && counter->n_columns > 0 &&
        !schema_has_same(schema, edit);
}

static int
load_edit(void *context, const struct schema_edit *edit, struct buf *more)
{
    const struct loading *loading = context;
    struct store *store = loading->store;
    struct store_edit call = {.edit = *edit};
    struct qsbr_reader reader;
    qsbr_register(store->qsbr, &reader);
    qsbr_online(store->qsbr, &reader);
    bool is_later = is_added_later(loading, edit);
    qsbr_offline(&reader);
    int err = edit_and_wait(store, &call);
    qsbr_online(store->qsbr, &reader);
    if (err != 0 && say_hint(store_schema(store), edit, err, more)) {
        err = 0;
    } else if (err != 0) {
        say_existing(store_schema(store), edit, err, more);
    } else if (is_later) {
        buf_addf(more,
            "the column %s was added to %s, which has others: where one of "
            "them was renamed, drop this one and write the new name here",
            edit->column.name.text, edit->counter.name.text);
    }
    qsbr_offline(&reader);
    qsbr_unregister(store->qsbr, &reader);
    return err;
}

/* The largest serial of a counter; they only grow. */
static uint32_t
newest_counter(struct store *store)
{
    struct qsbr_reader reader;
    uint32_t newest = 0;
    qsbr_register(store->qsbr, &reader);
    qsbr_online(store->qsbr, &reader);
    const struct schema *schema = store_schema(store);
    for (unsigned slot = 0; slot < SCHEMA_COUNTERS_MAX; slot++) {
        const struct schema_counter *counter = schema_counter_at(schema, slot);
        if (counter != NULL && counter->serial > newest) {
            newest = counter->serial;
        }
    }
    qsbr_offline(&reader);
    qsbr_unregister(store->qsbr, &reader);
    return newest;
}

int
schema_file_load(struct store *store, const char *path, const struct buf *text,
    struct buf *notes, struct buf *why)
{
    struct loading loading = {store, newest_counter(store)};
    return each_edit(path, text, load_edit, &loading, notes, why);
}

/* As the store's keeper does it. *context: NULL, or a schema. */
static int
try_edit(void *context, const struct schema_edit *edit, struct buf *more)
{
    struct schema **schema = context;
    struct schema *next;
    if (*schema == NULL || schema_has_same(*schema, edit)) {
        return 0;
    }
    int err = schema_apply(*schema, edit, &next);
    if (err == 0) {
        schema_destroy(schema);
        *schema = next;
    } else {
        say_existing(*schema, edit, err, more);
    }
    return err;
}

int
schema_file_check(
    const char *path, const struct buf *text, bool is_new, struct buf *why)
{
    struct schema *schema = is_new ? schema_create() : NULL;
    if (is_new && schema == NULL) {
        buf_add_text(why, "out of memory");
        return ERR_NO_MEMORY;
    }
    int err = each_edit(path, text, try_edit, &schema, NULL, why);
    schema_destroy(&schema);
    return err;
}

int
schema_file_read(const char *path, struct buf *text, struct buf *why)
{
    FILE *file = fopen(path, "re");
    int err = 0;
    size_t n = 1;
    if (file == NULL) {
        buf_addf(why, "cannot read %s: %s", path, strerror(errno));
        return ERR_SYSTEM;
    }
    while (err == 0 && n > 0) {
        char *room = buf_reserve(text, BUFSIZ);
        if (room == NULL || text->len > SCHEMA_FILE_BYTES_MAX) {
            err = room == NULL ? ERR_NO_MEMORY : ERR_TOO_LARGE;
            buf_addf(why, "cannot read %s: %s", path, err_text(err));
            break;
        }
        n = fread(room, 1, BUFSIZ, file);
        text->len += n;
    }
    if (err == 0 && ferror(file)) {
        buf_addf(why, "cannot read %s: %s", path, strerror(errno));
        err = ERR_SYSTEM;
    }
    fclose(file);
    return err;
}
