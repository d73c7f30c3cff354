/* SPDX-License-Identifier: BSD-3-Clause */
/* dump counter: a counter's records as lines of the dialect that store them
 * again; and forget ids, which the store does in the background. Of a dump the
 * store answers a piece of some hundred records a call, on a thread of its own;
 * what the reply buffer's mark leaves room for is shown, and the next piece is
 * asked for when all of it is. A client that does not read is not asked for
 * either, so a dump takes the same memory whatever there is.
 *
 * Of a counter with a maxjump a line comes first that says its largest id, and
 * again before records above that: whoever loads the lines in their order, or
 * these first, has none refused.
 *
 * Two columns are shown by name: three numbers behind a counter's name are what
 * memcached's clients send before a value, and never store a record. What
 * counts members is left out then, since it takes no value by name; in a line
 * without names it has one, which is ignored when it is loaded. The members'
 * lines are behind that of their record, and make the count. Members of
 * members=about cannot be listed: before the end of the dump a line says how
 * many there are.
 *
 * Where ids are names these are looked up when they are shown: no name is taken
 * out while there is a dump, but on a replica. There a name that has gone has
 * no line, and once a number was given again the dump ends with an error. */
#include "session/exec_admin.h"
#include "session/exec_seen.h"

#include "base/assert.h"
#include "base/err.h"
#include "base/num.h"
#include "base/owns.h"
#include "call/store_calls.h"
#include "proto/reply.h"
#include "schema/print.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    LINE_EXTRA = sizeof "set  \r\n", /* what each begins with, and its end */
    NAMED_COLUMNS = 2
};

/* What stands before the numbers of a record's line. */
struct line_names {
    const char *counter;
    size_t counter_len;
    const struct schema_counter *schema;
    const struct names *of_ids;
    /* with is_named: of these columns, NULL where one is left out */
    const struct schema_name *column[NAMED_COLUMNS];
    bool is_named;
    bool some_went; /* since the dump began: as names go on a replica */
};

static enum store_answer
ask(struct job *job)
{
    return store_dump(job->session->executor->store, &job->records.call);
}

static char *
put(char *at, const char *bytes, size_t len)
{
    memcpy(at, bytes, len);
    return at + len;
}

/* NULL where it, or its counter, has been dropped. */
static const struct schema_column *
column_of(const struct line_names *names, uint32_t serial)
{
    return names->schema == NULL ? NULL
                                 : schema_column_of(names->schema, serial);
}

/* The names of the columns that were read, where they are to be shown. 0, or
 * ERR_OTHER_COLUMNS where one has been dropped since. */
static int
name_columns(const struct store_dump *dump, struct line_names *out)
{
    out->is_named = dump->n_columns == NAMED_COLUMNS;
    for (unsigned i = 0; out->is_named && i < NAMED_COLUMNS; i++) {
        const struct schema_column *column =
            column_of(out, dump->column_serial[i]);
        if (column == NULL) {
            return ERR_OTHER_COLUMNS;
        }
        out->column[i] =
            schema_is_counted(out->schema, column) ? NULL : &column->name;
    }
    return 0;
}

/* The id that is a name, as a word for the record or, with a column, of a cell.
 * A record that has none, which no directory without damage has, is said with
 * a word that is refused when it is loaded. */
static char *
put_name(char *at, const struct line_names *names,
    const struct schema_column *column, uint64_t id)
{
    char name[NAME_ROOM_BYTES];
    size_t len = names_name(names->of_ids, id, name);
    if (len > 0) {
        return at + key_put_word(names->schema, column, name, len, at);
    }
    at = put(at, "{}.", 3);
    return put(at, names->counter, names->counter_len);
}

/* "set NAME ID", or with a column "set NAME ID.SUFFIX", in room for len_max
 * more; NULL: out has failed. */
static char *
begin_line(const struct line_names *names, const struct schema_column *column,
    uint64_t id, size_t len_max, struct buf *out)
{
    char *at = buf_reserve(out,
        LINE_EXTRA + names->counter_len + 1 + NAME_BYTES_MAX + KEY_WORD_MORE +
            len_max);
    if (at == NULL) {
        return NULL;
    }
    at = put(at, "set ", 4);
    at = put(at, names->counter, names->counter_len);
    *at++ = ' ';
    if (names->schema != NULL && names->schema->key_is_text) {
        return put_name(at, names, column, id);
    }
    at += num_format_u64(id, at);
    if (column != NULL) {
        const struct schema_name *name =
            column->suffix.len > 0 ? &column->suffix : &column->name;
        *at++ = '.';
        at = put(at, name->text, name->len);
    }
    return at;
}

static void
end_line(char *at, struct buf *out)
{
    at = put(at, "\r\n", 2);
    out->len = (size_t)(at - out->data);
    ASSERT(out->len <= out->capacity);
}

/* set NAME ID VALUE ..., or set NAME ID COLUMN=VALUE ... */
static void
put_record(const struct store_dump *dump, uint32_t i,
    const struct line_names *names, struct buf *out)
{
    const uint64_t *value = &dump->value[(size_t)i * dump->n_columns];
    size_t len_max = (size_t)dump->n_columns * (1 + NUM_U64_DIGITS_MAX) +
        (names->is_named ? NAMED_COLUMNS * (SCHEMA_NAME_MAX + 1) : 0);
    char *at = begin_line(names, NULL, dump->id[i], len_max, out);
    for (unsigned c = 0; at != NULL && c < dump->n_columns; c++) {
        if (names->is_named && names->column[c] == NULL) {
            continue;
        }
        *at++ = ' ';
        if (names->is_named) {
            const struct schema_name *name = names->column[c];
            at = put(at, name->text, name->len);
            *at++ = '=';
        }
        at += num_format_u64(value[c], at);
    }
    if (at != NULL) {
        end_line(at, out);
    }
}

/* set NAME ID.SUFFIX:MEMBER VALUE; false where its column has gone. */
static bool
put_member(const struct store_dump *dump, uint32_t i,
    const struct line_names *names, struct buf *out)
{
    const struct store_dump_member *member = &dump->member[i];
    const struct schema_column *column = column_of(names, member->serial);
    if (column == NULL) {
        return false;
    }
    char *at = begin_line(
        names, column, dump->id[i], 2 + 2 * (size_t)NUM_U64_DIGITS_MAX, out);
    if (at != NULL) {
        *at++ = ':';
        at += num_format_u64(member->member, at);
        *at++ = ' ';
        at += num_format_u64(member->value, at);
        end_line(at, out);
    }
    return true;
}

/* True where the dump goes on behind that error. */
static bool
is_of_some(int err)
{
    return err == ERR_CORRUPT || err == ERR_NEWER_FORMAT || err == ERR_DISK;
}

/* The line that has a piece's records let in where there is a maxjump. */
static void
put_largest(struct session *session, struct buf *out)
{
    struct store_dump *dump = &session->job->records.call;
    const struct schema_counter *counter =
        schema_counter_at(exec__schema(session), dump->slot);
    if (dump->has_largest && counter != NULL &&
        counter->serial == dump->serial && counter->max_jump != 0) {
        schema_print_largest(counter, dump->largest_id, out);
    }
    dump->has_largest = false;
}

/* True for an id that is a name's no more. */
static bool
is_nameless(const struct line_names *names, uint64_t id)
{
    char name[NAME_ROOM_BYTES];
    return names->schema != NULL && names->schema->key_is_text &&
        names_name(names->of_ids, id, name) == 0;
}

/* Shows what the store has answered; false where the buffer is full. Where the
 * columns have gone it shows no more, and the dump has that as its err. */
static bool
put_piece(struct session *session, struct exec_turn *turn)
{
    struct job *job = session->job;
    struct store_dump *dump = &job->records.call;
    struct span name = session->request.key;
    struct line_names names = {
        .counter = turn->base + name.at, .counter_len = name.len};
    names.schema = schema_counter_at(exec__schema(session), dump->slot);
    names.of_ids = session->executor->store->names;
    names.some_went = names.schema != NULL && names.schema->key_is_text &&
        store_names_dropped(session->executor->store) !=
            job->records.names_dropped;
    int err = dump->n == 0 ? 0 : name_columns(dump, &names);
    if (err != 0) {
        dump->err = err;
        return true;
    }
    put_largest(session, turn->out);
    ASSERT(job->records.at <= dump->n);
    for (; job->records.at < dump->n; job->records.at++) {
        if (turn->out->len >= turn->mark) {
            return false;
        }
        uint32_t i = job->records.at;
        if (names.some_went && is_nameless(&names, dump->id[i])) {
            continue;
        }
        bool is_member = dump->member != NULL && dump->member[i].serial != 0;
        ASSERT(dump->first_id <= dump->id[i] && dump->id[i] <= dump->last_id);
        ASSERT(i == 0 || dump->id[i - 1] < dump->id[i] ||
            (is_member && dump->id[i - 1] == dump->id[i])); /* each once */
        if (!is_member) {
            put_record(dump, i, &names, turn->out);
        } else if (!put_member(dump, i, &names, turn->out)) {
            dump->err = ERR_OTHER_COLUMNS;
            return true;
        }
    }
    return true;
}

/* What a figure of a column is looked for by, and what it is. */
struct figure {
    const char *name;
    char value[NUM_U64_DIGITS_MAX + 1];
};

static void
take_figure(void *context, const char *name, const char *value)
{
    struct figure *figure = context;
    const char *colon = strchr(name, ':');
    if (colon != NULL && strcmp(colon + 1, figure->name) == 0) {
        snprintf(figure->value, sizeof figure->value, "%s", value);
    }
}

/* The columns of members=about, whose members are no lines. */
static void
put_left_out(struct session *session, struct buf *out)
{
    const struct store_dump *dump = &session->job->records.call;
    const struct schema_counter *counter =
        schema_counter_at(exec__schema(session), dump->slot);
    if (counter == NULL || counter->serial != dump->serial) {
        return; /* dropped since */
    }
    for (unsigned i = 0; i < counter->n_columns; i++) {
        const struct schema_column *column = &counter->column[i];
        struct figure figure = {.name = "members"};
        uint32_t serial = column->serial - 1; /* the next one is that */
        if (column->kind == SCHEMA_ABOUT &&
            store_about_stats(
                session->executor->store, &serial, take_figure, &figure) &&
            serial == column->serial) {
            buf_addf(out, "LEFT_OUT %s.%s members=%s\r\n", counter->name.text,
                column->name.text, figure.value);
        }
    }
}

/* acquire: a name that was seen, and what was said before it was put */
static uint64_t
names_again(const struct session *session)
{
    return atomic_load_explicit(
        &session->executor->store->names->n_again, memory_order_acquire);
}

/* True where ids that were copied may have names by now that came later. */
static bool
has_other_names(struct session *session)
{
    const struct store_dump *dump = &session->job->records.call;
    const struct schema_counter *counter =
        schema_counter_at(exec__schema(session), dump->slot);
    return counter != NULL && counter->key_is_text &&
        names_again(session) != session->job->records.names_again;
}

/* Goes on with the reply: EXEC_DONE where that is its end, EXEC_LATER where the
 * next piece is wanted. */
static enum exec_step
show_piece(struct session *session, struct exec_turn *turn)
{
    struct store_dump *dump = &session->job->records.call;
    size_t first = turn->out->len;
    bool is_through = put_piece(session, turn);
    if (has_other_names(session)) {
        turn->out->len = first; /* the lines may be of others */
        return exec__refuse(session, ERR_NAMES_AGAIN, turn->out);
    }
    if (!is_through) {
        return EXEC_FULL;
    }
    if (is_of_some(dump->err)) {
        buf_addf(turn->out,
            "SERVER_ERROR ids %" PRIu64 " to %" PRIu64 ": %s\r\n",
            dump->bad_first, dump->bad_last, err_file_text(dump->err));
    } else if (dump->err != 0) {
        return exec__refuse(session, dump->err, turn->out);
    } else if (dump->is_end) {
        put_left_out(session, turn->out);
        reply_line(turn->out, "END");
        return exec__done(session);
    }
    return EXEC_LATER;
}

/* The same; and what is shown of what is not committed waits. */
static enum exec_step
show(struct session *session, struct exec_turn *turn)
{
    size_t first = turn->out->len;
    enum exec_step step = show_piece(session, turn);
    exec__note_piece(session, step, first, turn);
    return step;
}

enum exec_step
exec__records_resume(struct session *session, struct exec_turn *turn)
{
    struct job *job = session->job;
    struct store_dump *dump = &job->records.call;
    for (;;) {
        enum exec_step step = show(session, turn);
        if (step != EXEC_LATER) {
            return step;
        }
        dump->err = 0;
        dump->n = 0;
        job->records.at = 0;
        if (!exec__charge(turn)) {
            return EXEC_YIELD;
        }
        if (exec__waits(job, &dump->call, ask)) {
            return EXEC_LATER;
        }
    }
}

/* The ids that are wanted: none given, all. *owns is the caller's, NULL where
 * no rule is given. */
static int
take_ids(const struct request *request, const char *bytes,
    struct store_dump *dump, struct owns **owns)
{
    struct words words = words_of(bytes, request->words);
    struct span word;
    dump->first_id = 0;
    dump->last_id = UINT64_MAX;
    *owns = NULL;
    bool has_more = words_next(&words, &word);
    if (has_more && !span_is(bytes, word, "of")) {
        bool is_right =
            num_parse_u64(bytes + word.at, word.len, &dump->first_id) &&
            words_next(&words, &word) &&
            num_parse_u64(bytes + word.at, word.len, &dump->last_id);
        if (!is_right) {
            return ERR_BAD_ID;
        }
        has_more = words_next(&words, &word);
    }
    return has_more && words_next(&words, &word)
        ? owns_create_rule(bytes + word.at, word.len, owns)
        : 0;
}

enum exec_step
exec__records_begin(
    struct session *session, const char *bytes, struct exec_turn *turn)
{
    const struct request *request = &session->request;
    struct span name = request->key;
    const struct schema_counter *counter =
        schema_counter(exec__schema(session), bytes + name.at, name.len);
    struct store_dump dump = {0};
    struct owns *owns = NULL;
    if (session->executor->rules.no_dump) {
        reply_line(turn->out, "ERROR key dump not allowed");
        return EXEC_DONE;
    }
    int err = counter == NULL ? ERR_NO_COUNTER : 0;
    err = err == 0 ? take_ids(request, bytes, &dump, &owns) : err;
    if (err == 0 && counter->key_is_text && owns != NULL &&
        !owns_takes_names(owns)) {
        err = ERR_NAMES_RULE;
    } else if (err == 0 && counter->key_is_text &&
        (dump.first_id != 0 || dump.last_id != UINT64_MAX)) {
        err = ERR_NAMES_ORDER;
    }
    if (err != 0 && owns != NULL) {
        owns_destroy(&owns);
    }
    if (err != 0) {
        return exec__refuse(session, err, turn->out);
    }
    struct job *job = exec__job(session, JOB_RECORDS);
    if (job == NULL) {
        if (owns != NULL) {
            owns_destroy(&owns);
        }
        return exec__refuse(session, ERR_NO_MEMORY, turn->out);
    }
    dump.slot = counter->slot;
    dump.serial = counter->serial;
    dump.owns = owns;
    job->records.at = 0;
    if (counter->key_is_text) {
        job->records.names_again = names_again(session);
        job->records.names_dropped =
            store_names_dropped(session->executor->store);
    }
    job->records.owns = owns;
    job->records.call = dump;
    return exec__waits(job, &job->records.call.call, ask)
        ? EXEC_LATER
        : exec__records_resume(session, turn);
}

enum exec_step
exec__forget(struct session *session, const char *bytes, struct buf *out)
{
    struct span rule = session->request.key;
    char text[sizeof "forget ids " + OWNS_RULE_BYTES];
    int len = 0;
    struct owns *owns = NULL;
    int err = owns_create_rule(bytes + rule.at, rule.len, &owns);
    if (err == 0) {
        len = snprintf(text, sizeof text, "forget ids %s", owns_rule(owns));
        ASSERT(len > 0 && (size_t)len < sizeof text);
        err = store_forget(session->executor->store, &owns);
    }
    if (owns != NULL) {
        owns_destroy(&owns);
    }
    if (err != 0) {
        return exec__refuse(session, err, out);
    }
    exec__audit(session, AUDIT_DROPPED, text, (size_t)len);
    reply_line(out, "OK");
    return EXEC_DONE;
}
