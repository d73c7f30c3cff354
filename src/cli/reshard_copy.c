/* SPDX-License-Identifier: BSD-3-Clause */
/* What is there when a move begins: the counters, the records of the rule, and
 * which numbers of producers were seen. Records are read from the node whose
 * log is read from a position on that it had then: so what is read is that, or
 * newer, and what the log says behind that position is newer still, or comes
 * again.
 *
 * A record's line has a value a column, so the columns must be the same in the
 * same order on both sides, before and after they are read: else values would
 * be another column's. */
#include "cli/reshard_priv.h"

#include "base/assert.h"
#include "base/num.h"
#include "schema/print.h"

#include <stdio.h>
#include <string.h>

enum { QUESTION_BYTES = 256, FORGET_LOOK_MS = 200 };

/* ---- an empty new group ---- */

/* Records of all counters, as `show counters` in move->answer has them. */
static uint64_t
count_records(const struct reshard *move)
{
    static const char key[] = " records=";
    uint64_t sum = 0, one = 0;
    const char *at = move->answer.data;
    while (at != NULL && (at = strstr(at, key)) != NULL) {
        at += sizeof key - 1;
        if (num_parse_u64(at, strspn(at, "0123456789"), &one)) {
            sum += one;
        }
    }
    return sum;
}

static enum reshard_went
forget_new(struct reshard *move)
{
    char question[QUESTION_BYTES], state[32] = "";
    (void)snprintf(
        question, sizeof question, "forget ids %s\r\n", move->state.rule);
    enum reshard_went went = reshard__tell(move, move->to, question);
    while (went == RESHARD_OK) {
        went = reshard__ask_new(move, "stats forget\r\n");
        if (went != RESHARD_OK) {
            return went;
        }
        if (!reshard__stat(move, "state", state, sizeof state)) {
            return reshard__fail(
                move, "the new group does not say how far it has forgotten");
        }
        if (strcmp(state, "ended") == 0) {
            return RESHARD_OK;
        }
        if (strcmp(state, "running") != 0) {
            return reshard__fail(move,
                "the new group could not remove what it has of these ids: see "
                "stats forget there, and run this again");
        }
        went = reshard__pause(move, FORGET_LOOK_MS);
    }
    return went;
}

enum reshard_went
reshard__empty_new(struct reshard *move, bool is_dirty)
{
    enum reshard_went went = reshard__ask_new(move, "show counters\r\n");
    if (went != RESHARD_OK) {
        return went;
    }
    uint64_t n = count_records(move);
    if (n == 0) {
        return RESHARD_OK;
    }
    return is_dirty
        ? forget_new(move)
        : reshard__fail(move,
              "the new group has records already. Is --to right? Where they "
              "are left from a move whose --state file is lost, --anew removes "
              "those of these ids first");
}

/* ---- counters ---- */

/* Drops columns of the new group's counter, whose lines are in move->answer,
 * that the source has no more. */
static enum reshard_went
drop_columns(struct reshard *move, const struct schema_counter *counter)
{
    static const char begin[] = "add column ";
    const char *name = counter->name.text;
    enum reshard_went went = RESHARD_OK;
    for (const char *at = move->answer.data; went == RESHARD_OK && *at != '\0';
         at = strchr(at, '\n') + 1) {
        size_t len = strlen(name);
        if (strncmp(at, begin, sizeof begin - 1) != 0) {
            continue;
        }
        const char *column = at + sizeof begin - 1 + len + 1;
        size_t column_len = strcspn(column, " \n");
        bool is_key = counter->key_name.len == column_len &&
            memcmp(counter->key_name.text, column, column_len) == 0;
        if (!is_key &&
            schema_counter_column(counter, column, column_len) == NULL) {
            char line[QUESTION_BYTES];
            int n = snprintf(line, sizeof line, "drop column %s %.*s %.*s\n",
                name, (int)column_len, column, (int)column_len, column);
            went = reshard__send(move, line, (size_t)n, 1);
        }
    }
    return went;
}

/* True where move->answer has the lines of that counter. */
static bool
is_same(const struct reshard *move, const struct schema_counter *counter)
{
    struct buf lines = {0};
    size_t n = 0;
    bool is_so = schema_print(move->lines.schema, counter, &lines) == 0;
    for (size_t i = 0; is_so && i < lines.len; i++) {
        if (lines.data[i] != '\r') {
            is_so = move->answer.data[n++] == lines.data[i];
        }
    }
    is_so = is_so && move->answer.data[n] == '\0';
    buf_fini(&lines);
    return is_so;
}

/* Asks for the counter's lines; *is_there: there is one. */
static enum reshard_went
look_new(
    struct reshard *move, const struct schema_counter *counter, bool *is_there)
{
    char question[QUESTION_BYTES];
    enum reshard_went went = reshard__ask_new(move, "show counters\r\n");
    (void)snprintf(
        question, sizeof question, "COUNTER %s ", counter->name.text);
    *is_there =
        went == RESHARD_OK && strstr(move->answer.data, question) != NULL;
    if (*is_there) {
        (void)snprintf(question, sizeof question, "show counter %s\r\n",
            counter->name.text);
        went = reshard__ask_new(move, question);
    }
    return went;
}

static const struct schema_counter *
counter_at(const struct reshard *move, unsigned slot)
{
    const struct schema_counter *counter =
        schema_counter_at(move->lines.schema, slot);
    return counter == NULL || counter->members_of != 0 ? NULL : counter;
}

static enum reshard_went
send_schema(struct reshard *move)
{
    struct buf *text = &move->chunk;
    size_t n = 0;
    buf_clear(text);
    if (schema_print_all(move->lines.schema, text) != 0) {
        return reshard__fail(move, "out of memory");
    }
    for (size_t i = 0; i < text->len; i++) {
        n += text->data[i] == '\n';
    }
    buf_add(text, "", 1);
    return text->failed ? reshard__fail(move, "out of memory")
                        : reshard__send(move, text->data, text->len - 1, n);
}

/* Their entries of the log name no counter any more: of what has gone the
 * source tells a number. */
static enum reshard_went
drop_counters(struct reshard *move)
{
    const char *at = move->state.dumped;
    enum reshard_went went = RESHARD_OK;
    while (went == RESHARD_OK && *at != '\0' && *at != '-') {
        int len = (int)strcspn(at, ",");
        if (schema_counter(move->lines.schema, at, (size_t)len) == NULL) {
            char line[QUESTION_BYTES];
            int n = snprintf(line, sizeof line, "drop counter %.*s %.*s\n",
                len, at, len, at);
            went = reshard__send(move, line, (size_t)n, 1);
        }
        at += len + (at[len] == ',');
    }
    return went;
}

void
reshard__note_counters(struct reshard *move)
{
    reshard_state_clear_dumped(&move->state);
    for (unsigned i = 0; i < SCHEMA_COUNTERS_MAX; i++) {
        const struct schema_counter *counter = counter_at(move, i);
        if (counter != NULL) {
            reshard_state_set_dumped(&move->state, counter->name.text);
        }
    }
}

enum reshard_went
reshard__copy_schema(struct reshard *move)
{
    enum reshard_went went = drop_counters(move);
    bool is_there = false;
    for (unsigned i = 0; went == RESHARD_OK && i < SCHEMA_COUNTERS_MAX; i++) {
        const struct schema_counter *counter = counter_at(move, i);
        if (counter != NULL) {
            went = look_new(move, counter, &is_there);
        }
        if (counter != NULL && went == RESHARD_OK && is_there) {
            went = drop_columns(move, counter);
        }
    }
    if (went == RESHARD_OK) {
        went = send_schema(move);
    }
    for (unsigned i = 0; went == RESHARD_OK && i < SCHEMA_COUNTERS_MAX; i++) {
        const struct schema_counter *counter = counter_at(move, i);
        if (counter == NULL) {
            continue;
        }
        went = look_new(move, counter, &is_there);
        if (went == RESHARD_OK && !(is_there && is_same(move, counter))) {
            return reshard__fail(move,
                "the counter %s is another one in the new group, see show "
                "counter %s on both sides; drop it there, and begin with a "
                "new --state file",
                counter->name.text, counter->name.text);
        }
    }
    return went;
}

/* ---- records ---- */

struct dumping {
    struct reshard *move;
    bool is_first;
    bool is_changed; /* other columns by now */
    bool is_over;    /* an error that is no line of the dump */
};

/* Sends what has come where it is much. */
static bool
send_much(struct reshard *move, size_t limit)
{
    if (move->lines.text.failed) {
        move->went = reshard__fail(move, "out of memory");
        return false;
    }
    if (move->lines.text.len >= limit) {
        move->went = reshard__flush(move);
        reshard__show(move, false);
    }
    return move->went == RESHARD_OK;
}

static enum talk_take
take_record(void *context, const char *line, size_t len)
{
    struct dumping *dumping = context;
    struct reshard *move = dumping->move;
    if (talk_is(line, len, "END")) {
        return TALK_END;
    }
    if (talk_begins(line, len, "CLIENT_ERROR ")) {
        dumping->is_changed = true;
        return TALK_WRONG;
    }
    if (!talk_begins(line, len, "set ") &&
        !talk_begins(line, len, "add counter ")) {
        bool is_passing =
            talk_begins(line, len, "SERVER_ERROR too many dumps");
        dumping->is_over = !is_passing;
        return TALK_WRONG;
    }
    buf_add(&move->lines.text, line, len);
    buf_add_text(&move->lines.text, "\n");
    move->shown.copied++;
    return send_much(move, RESHARD_CHUNK_BYTES) ? TALK_MORE : TALK_WRONG;
}

/* How a dump has gone that was broken off. */
static enum reshard_went
after(struct reshard *move, const struct dumping *dumping)
{
    buf_clear(&move->lines.text);
    if (move->went != RESHARD_OK) {
        return move->went;
    }
    if (dumping->is_changed) {
        return RESHARD_ANEW;
    }
    if (dumping->is_over) {
        return reshard__fail(move,
            "the records of the old group cannot be read: %.200s",
            move->node.why);
    }
    reshard__trouble(move, move->node.why);
    return RESHARD_LOST;
}

/* The node's own answer to `show counter`: the columns that its dump has. */
static enum reshard_went
look_old(struct reshard *move, const struct schema_counter *counter)
{
    char question[QUESTION_BYTES];
    (void)snprintf(
        question, sizeof question, "show counter %s\r\n", counter->name.text);
    if (!reshard__ask(move, &move->node, question)) {
        reshard__trouble(move, move->node.why);
        return strstr(move->node.why, "CLIENT_ERROR") != NULL ? RESHARD_ANEW
                                                              : RESHARD_LOST;
    }
    return is_same(move, counter) ? RESHARD_OK : RESHARD_ANEW;
}

static enum reshard_went
copy_counter(struct reshard *move, const struct schema_counter *counter)
{
    struct dumping dumping = {.move = move};
    char question[QUESTION_BYTES];
    enum reshard_went went = look_old(move, counter);
    if (went != RESHARD_OK) {
        return went;
    }
    (void)snprintf(question, sizeof question, "dump counter %s of %s\r\n",
        counter->name.text, move->state.rule);
    if (!talk_ask(
            &move->node, question, strlen(question), take_record, &dumping)) {
        return after(move, &dumping);
    }
    went = reshard__flush(move);
    if (went == RESHARD_OK) {
        went = look_old(move, counter);
    }
    if (went == RESHARD_OK) {
        reshard_state_set_dumped(&move->state, counter->name.text);
        went = reshard__save(move);
    }
    return went;
}

/* NUMBERS NAME HIGHEST BITS, which is the line that joins them in but for how
 * it begins. */
static enum talk_take
take_numbers(void *context, const char *line, size_t len)
{
    static const char begin[] = "NUMBERS ";
    struct dumping *dumping = context;
    struct buf *text = &dumping->move->lines.text;
    if (talk_is(line, len, "END")) {
        return TALK_END;
    }
    if (!talk_begins(line, len, begin)) {
        dumping->is_over = true;
        return TALK_WRONG;
    }
    buf_add_text(text, "numbers ");
    buf_add(text, line + sizeof begin - 1, len - (sizeof begin - 1));
    buf_add_text(text, "\n");
    return send_much(dumping->move, RESHARD_CHUNK_BYTES) ? TALK_MORE
                                                         : TALK_WRONG;
}

static enum reshard_went
copy_numbers(struct reshard *move)
{
    static const char question[] = "dump numbers\r\n";
    struct dumping dumping = {.move = move};
    if (!talk_ask(&move->node, question, sizeof question - 1, take_numbers,
            &dumping)) {
        return after(move, &dumping);
    }
    return reshard__flush(move);
}

enum reshard_went
reshard__copy(struct reshard *move)
{
    enum reshard_went went = reshard__flush(move);
    move->went = RESHARD_OK;
    if (went == RESHARD_OK &&
        !reshard__ask(move, &move->node, "show counters\r\n")) {
        reshard__trouble(move, move->node.why);
        return RESHARD_LOST;
    }
    if (went == RESHARD_OK) {
        move->shown.total = count_records(move) / 2;
    }
    for (unsigned i = 0; went == RESHARD_OK && i < SCHEMA_COUNTERS_MAX; i++) {
        const struct schema_counter *counter = counter_at(move, i);
        if (counter != NULL &&
            !reshard_state_is_dumped(&move->state, counter->name.text)) {
            went = copy_counter(move, counter);
        }
    }
    return went == RESHARD_OK ? copy_numbers(move) : went;
}
