/* SPDX-License-Identifier: BSD-3-Clause */
/* schema: random edits against a model that is a plain list searched from end
 * to end (lib/schema_model.h). After each edit the error, every attribute,
 * slot, serial and the order must be the model's; every possible name is looked
 * up; what is printed must make the same schema again; and old versions must
 * not have changed. */
#include "schema/schema.h"

#include "base/err.h"
#include "lib/schema_model.h"
#include "schema/print.h"
#include "schema/restore.h"
#include "unit/check_help.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CHECKED_ROUNDS = 32, /* everything is compared so often */
    LINE_MAX = 240,
    WORDS_MAX = 12,
    KEPT = 8 /* old versions */
};

/* What names are drawn from: the fewer, the more often they collide, and the
 * fewer for counters, the more columns each has. */
struct mixture {
    int n_names;
    int n_counter_names; /* the first so many of them */
    int rounds;
};

/* The fourth meets the limit of 16 columns, the last that of 256 counters; in
 * the fourth and the fifth marks, lists and members are refused for all there
 * is. */
static const struct mixture mixtures[] = {
    {8, 8, 1000},
    {20, 5, 1000},
    {60, 60, 1000},
    {80, 2, 4000},
    {200, 6, 4000},
    {1200, 1200, 2000},
};

struct run {
    uint64_t random;
    struct mixture mixture;
    struct model model;
    struct schema *schema;
    struct schema *kept[KEPT];
    struct buf kept_dump[KEPT];
    int answers[ERR_COUNT]; /* how often each came */
};

static unsigned
draw(struct run *run, unsigned n)
{
    run->random ^= run->random << 13;
    run->random ^= run->random >> 7;
    run->random ^= run->random << 17;
    return (unsigned)((run->random >> 11) % n);
}

static int
draw_name(struct run *run)
{
    return (int)draw(run, (unsigned)run->mixture.n_names);
}

static int
draw_counter(struct run *run)
{
    return (int)draw(run, (unsigned)run->mixture.n_counter_names);
}

/* Cuts line into words, parses and applies; a version that has been replaced
 * is given to *old, or destroyed where that is NULL. */
static int
apply_line(struct schema **schema, enum schema_edit_op op, const char *line,
    struct schema **old)
{
    struct schema_word word[WORDS_MAX];
    struct schema_edit edit;
    struct schema *next;
    size_t n = 0;
    int err;

    while (*line != '\0') {
        size_t len = strcspn(line, " ");

        ck_assert_uint_lt(n, WORDS_MAX);
        word[n++] = (struct schema_word){line, len};
        line += len;
        line += strspn(line, " ");
    }
    ck_assert_int_eq(schema_edit_parse(op, word, n, &edit), 0);
    err = schema_apply(*schema, &edit, &next);
    if (err == 0) {
        /* of a rename nothing is left that it is about, or another column */
        if (op != SCHEMA_CHANGE_COLUMN || edit.new_name.len == 0) {
            ck_assert_int_eq(schema_has_same(next, &edit),
                op != SCHEMA_DROP_COLUMN && op != SCHEMA_DROP_COUNTER);
        }
        if (old != NULL) {
            *old = *schema;
        } else {
            schema_destroy(schema);
        }
        *schema = next;
    }
    return err;
}

static int
edit_add_counter(struct run *run, char *line)
{
    struct model_counter want = {.used = true,
        .miss = draw(run, 2),
        .error = draw(run, 2),
        .ignore = draw(run, 2),
        .max_jump = draw(run, 2) ? 0 : run->random,
        .quietest = draw(run, 2),
        .cold_after = draw(run, 2) ? 0 : run->random,
        .name = draw_counter(run),
        .key = NOTHING};

    if (draw(run, 3) == 0) {
        want.never = true;
        want.quietest = false;
        want.cold_after = 0;
    }
    snprintf(line, LINE_MAX,
        "n%d absent=%s exptime=%s cold=%s maxjump=%llu cold_after=%llu "
        "overflow=%s",
        want.name, want.miss ? "miss" : "default",
        want.ignore ? "ignore" : "refuse",
        want.never          ? "never"
            : want.quietest ? "quietest"
                            : "oldest",
        (unsigned long long)want.max_jump, (unsigned long long)want.cold_after,
        want.error ? "error" : "saturate");
    return model_add_counter(&run->model, &want);
}

static int
edit_add_key(struct run *run, char *line)
{
    int counter = draw_counter(run), name = draw_name(run);

    snprintf(line, LINE_MAX, "n%d n%d primarykey", counter, name);
    return model_add_key(&run->model, counter, name);
}

/* The name of any column of that counter, mostly, or of another one; or any
 * name. */
static int
draw_source(struct run *run, int counter_name, bool of_any)
{
    struct model_counter *counter = of_any
        ? &run->model.counter[draw(run, SCHEMA_COUNTERS_MAX)]
        : model_find(&run->model, counter_name);

    for (int tries = 0; of_any && !counter->used && tries < 99; tries++) {
        counter = &run->model.counter[draw(run, SCHEMA_COUNTERS_MAX)];
    }
    if (counter == NULL || !counter->used || counter->members_of != 0 ||
        counter->n_columns == 0 || draw(run, 8) == 0) {
        return draw_name(run);
    }
    return counter->column[draw(run, (unsigned)counter->n_columns)].name;
}

/* A mark or a list. */
static int
edit_add_kind(struct run *run, char *line)
{
    int counter = draw_counter(run), source;
    struct model_column want = {.name = draw_name(run),
        .suffix = NOTHING,
        .unread = NOTHING,
        .kind = draw(run, 3) == 0 ? SCHEMA_FOLLOWS : SCHEMA_MARK,
        .flags = draw(run, 2)};
    bool is_list = want.kind == SCHEMA_FOLLOWS;
    int len = snprintf(
        line, LINE_MAX, "n%d n%d flags=%u ", counter, want.name, want.flags);
    size_t left = (size_t)(LINE_MAX - len);

    want.is_fixed = !is_list && draw(run, 2);
    source = draw_source(run, counter, is_list || want.is_fixed);
    if (is_list) {
        snprintf(line + len, left, "follows=n%d", source);
    } else {
        char id[24] = "";

        want.unread = draw_name(run);
        want.none = draw(run, 2);
        want.forget = want.none && draw(run, 2) ? run->random : 0;
        want.id = want.is_fixed ? run->random : 0;
        if (want.is_fixed) {
            snprintf(id, sizeof id, "%llu.", (unsigned long long)want.id);
        }
        len += snprintf(line + len, left, "marks=%sn%d unread=n%d unmarked=%s",
            id, source, want.unread, want.none ? "none" : "all");
        if (want.forget != 0) {
            snprintf(line + len, (size_t)(LINE_MAX - len), " forget=%llu",
                (unsigned long long)want.forget);
        }
    }
    return model_add_column(&run->model, counter, want, source);
}

/* Members; a number that is at hand counts them, or none. */
static int
edit_add_members(struct run *run, char *line)
{
    int counter = draw_counter(run);
    int counts =
        draw(run, 4) == 0 ? NOTHING : draw_source(run, counter, false);
    struct model_column want = {.name = draw_name(run),
        .suffix = draw(run, 2) ? draw_name(run) : NOTHING,
        .unread = NOTHING,
        .kind = SCHEMA_MEMBERS,
        .flags = draw(run, 3),
        .member_bits = 16 + draw(run, 33),
        .value_bits = 1 + draw(run, 8)};
    int len = snprintf(line, LINE_MAX,
        "n%d n%d members=exact max=%u flags=%u member=%u", counter, want.name,
        want.value_bits, want.flags, want.member_bits);

    want.max = 64 - want.member_bits;
    want.hint = SCHEMA_MEMBERS_HINT_BITS;
    if (want.suffix != NOTHING) {
        len += snprintf(
            line + len, (size_t)(LINE_MAX - len), " suffix=n%d", want.suffix);
    }
    if (counts != NOTHING) {
        snprintf(line + len, (size_t)(LINE_MAX - len), " counts=n%d", counts);
    }
    if (want.suffix == want.name) {
        want.suffix = NOTHING;
    }
    return model_add_column(&run->model, counter, want, counts);
}

static uint64_t
draw_memory(struct run *run)
{
    return SCHEMA_MEMORY_MIN +
        run->random % (SCHEMA_MEMORY_MAX - SCHEMA_MEMORY_MIN + 1);
}

/* Members that may be wrong. */
static int
edit_add_about(struct run *run, char *line)
{
    int counter = draw_counter(run);
    int counts =
        draw(run, 4) == 0 ? NOTHING : draw_source(run, counter, false);
    struct model_column want = {.name = draw_name(run),
        .suffix = draw(run, 2) ? draw_name(run) : NOTHING,
        .unread = NOTHING,
        .kind = SCHEMA_ABOUT,
        .max = 1,
        .flags = draw(run, 3),
        .member_bits = 16 + draw(run, 33),
        .value_bits = 1,
        .error = 20 + draw(run, 981),
        .memory = draw_memory(run)};
    int len = snprintf(line, LINE_MAX,
        "n%d n%d members=about memory=%llu error=%u flags=%u member=%u",
        counter, want.name, (unsigned long long)want.memory, want.error,
        want.flags, want.member_bits);

    if (want.suffix != NOTHING) {
        len += snprintf(
            line + len, (size_t)(LINE_MAX - len), " suffix=n%d", want.suffix);
    }
    if (counts != NOTHING) {
        snprintf(line + len, (size_t)(LINE_MAX - len), " counts=n%d", counts);
    }
    if (want.suffix == want.name) {
        want.suffix = NOTHING;
    }
    return model_add_column(&run->model, counter, want, counts);
}

static int
edit_add_column(struct run *run, char *line)
{
    int counter = draw_counter(run);
    struct model_column want = {.name = draw_name(run),
        .suffix = draw(run, 2) ? draw_name(run) : NOTHING,
        .unread = NOTHING};
    int len;

    want.max = 1 + draw(run, 64);
    want.hint = draw(run, want.max + 1);
    want.flags = draw(run, 4);
    want.default_value = draw(run, 2) ? 0 : run->random >> (64 - want.max);
    len = snprintf(line, LINE_MAX, "n%d n%d max=%u default=%llu hint=%u",
        counter, want.name, want.max, (unsigned long long)want.default_value,
        want.hint);
    if (want.suffix != NOTHING) {
        len += snprintf(
            line + len, (size_t)(LINE_MAX - len), " suffix=n%d", want.suffix);
    }
    snprintf(line + len, (size_t)(LINE_MAX - len), " flags=%u", want.flags);
    if (want.suffix == want.name) {
        want.suffix = NOTHING;
    }
    return model_add_column(&run->model, counter, want, NOTHING);
}

static int
edit_change_column(struct run *run, char *line)
{
    int counter = draw_counter(run), name = draw_name(run), n;
    struct model_change change = {NOTHING, NOTHING, NOTHING, NOTHING, 0};

    bool of_memory = draw(run, 8) == 0;

    if (of_memory) { /* of what has memory, mostly */
        struct model_counter *it = model_find(&run->model, counter);

        for (int i = 0; it != NULL && i < it->n_columns; i++) {
            bool is_about = it->column[i].kind == SCHEMA_ABOUT;

            name = is_about || draw(run, 4) == 0 ? it->column[i].name : name;
        }
    }
    n = snprintf(line, LINE_MAX, "n%d n%d", counter, name);
    if (draw(run, 2) == 0) {
        change.name = draw_name(run);
        n += snprintf(
            line + n, (size_t)(LINE_MAX - n), " name=n%d", change.name);
    }
    if (draw(run, 2) == 0) {
        change.max = 1 + (int)draw(run, SCHEMA_BITS_MAX);
        n += snprintf(line + n, (size_t)(LINE_MAX - n), " max=%d", change.max);
    }
    if (draw(run, 4) == 0) {
        change.hint = (int)draw(run, SCHEMA_BITS_MAX);
        n += snprintf(
            line + n, (size_t)(LINE_MAX - n), " hint=%d", change.hint);
    }
    if (of_memory) {
        change.memory = draw_memory(run);
        n += snprintf(line + n, (size_t)(LINE_MAX - n), " memory=%llu",
            (unsigned long long)change.memory);
    }
    if (n < LINE_MAX && (draw(run, 4) == 0 || strchr(line, '=') == NULL)) {
        change.suffix = draw_name(run);
        snprintf(
            line + n, (size_t)(LINE_MAX - n), " suffix=n%d", change.suffix);
    }
    return model_change_column(&run->model, counter, name, &change);
}

static int
edit_drop_column(struct run *run, char *line)
{
    int counter = draw_counter(run), name = draw_name(run);

    snprintf(line, LINE_MAX, "n%d n%d n%d", counter, name, name);
    return model_drop_column(&run->model, counter, name);
}

static int
edit_drop_counter(struct run *run, char *line)
{
    int name = draw_counter(run);

    snprintf(line, LINE_MAX, "n%d n%d", name, name);
    return model_drop_counter(&run->model, name);
}

/* One random edit of both; true where it was done. */
static bool
edit_both(struct run *run, struct schema **old)
{
    unsigned dice = draw(run, 100);
    enum schema_edit_op op = SCHEMA_ADD_COLUMN;
    char line[LINE_MAX];
    int err, expected;

    if (dice < 25) {
        op = SCHEMA_ADD_COUNTER;
        expected = edit_add_counter(run, line);
    } else if (dice < 45) {
        expected = edit_add_key(run, line);
    } else if (dice < 70) {
        expected = edit_add_column(run, line);
    } else if (dice < 82) {
        expected = edit_add_kind(run, line);
    } else if (dice < 86) {
        expected = edit_add_members(run, line);
    } else if (dice < 90) {
        expected = edit_add_about(run, line);
    } else if (dice < 94) {
        op = SCHEMA_CHANGE_COLUMN;
        expected = edit_change_column(run, line);
    } else if (dice < 99) {
        op = SCHEMA_DROP_COLUMN;
        expected = edit_drop_column(run, line);
    } else {
        op = SCHEMA_DROP_COUNTER;
        expected = edit_drop_counter(run, line);
    }
    err = apply_line(&run->schema, op, line, old);
    ck_assert_msg(err == expected, "%s: \"%s\" instead of \"%s\"", line,
        err_text(err), err_text(expected));
    run->answers[err]++;
    return err == 0;
}

static void
check_name(const struct schema_name *name, int number)
{
    char text[16] = "";

    if (number != NOTHING) {
        snprintf(text, sizeof text, "n%d", number);
    }
    ck_assert_str_eq(name->text, text);
    ck_assert_uint_eq(name->len, strlen(text));
}

static void
check_counter(
    const struct schema_counter *counter, const struct model_counter *model)
{
    char text[16];

    if (model->members_of != 0) {
        snprintf(text, sizeof text, "#%u", (unsigned)model->members_of);
        ck_assert_str_eq(counter->name.text, text);
    } else {
        check_name(&counter->name, model->name);
    }
    ck_assert_uint_eq(counter->members_of, model->members_of);
    check_name(&counter->key_name, model->key);
    ck_assert_int_eq(counter->absent_is_miss, model->miss);
    ck_assert_int_eq(counter->overflow_is_error, model->error);
    ck_assert_int_eq(counter->exptime_is_ignored, model->ignore);
    ck_assert_int_eq(counter->cold_is_quietest, model->quietest);
    ck_assert_int_eq(counter->cold_is_never, model->never);
    ck_assert_uint_eq(counter->max_jump, model->max_jump);
    ck_assert_uint_eq(counter->cold_after, model->cold_after);
    ck_assert_uint_eq(counter->serial, model->serial);
    ck_assert_int_eq(counter->n_columns, model->n_columns);
    for (int i = 0; i < model->n_columns; i++) {
        const struct schema_column *column = &counter->column[i];
        const struct model_column *want = &model->column[i];

        check_name(&column->name, want->name);
        check_name(&column->suffix, want->suffix);
        ck_assert_uint_eq(column->slot, want->slot);
        ck_assert_uint_eq(column->serial, want->serial);
        ck_assert_uint_eq(column->hint_bits, want->hint);
        ck_assert_uint_eq(column->max_bits, want->max);
        ck_assert_uint_eq(column->flags, want->flags);
        ck_assert_uint_eq(column->default_value, want->default_value);
        ck_assert_int_eq(column->kind, want->kind);
        check_name(&column->unread, want->unread);
        ck_assert_uint_eq(column->source.serial, want->source);
        ck_assert_int_eq(column->source.is_fixed, want->is_fixed);
        ck_assert_uint_eq(column->source.id, want->id);
        ck_assert_int_eq(column->unmarked_is_none, want->none);
        ck_assert_uint_eq(column->forget, want->forget);
        ck_assert_uint_eq(column->member_bits, want->member_bits);
        ck_assert_uint_eq(column->value_bits, want->value_bits);
        ck_assert_uint_eq(column->counts, want->counts);
        ck_assert_uint_eq(column->pairs, want->pairs);
        ck_assert_uint_eq(column->error, want->error);
        ck_assert_uint_eq(column->memory, want->memory);
    }
}

static void
check_lookup(struct run *run, int name)
{
    int column;
    bool is_unread;
    const struct model_counter *want =
        model_lookup(&run->model, name, &column, &is_unread);
    struct schema_target target;
    char text[16];
    size_t len = (size_t)snprintf(text, sizeof text, "n%d", name);
    const struct schema_counter *counter =
        schema_counter(run->schema, text, len);

    ck_assert_int_eq(
        schema_find(run->schema, text, len, &target), want != NULL);
    ck_assert_int_eq(counter != NULL, want != NULL && column == NOTHING);
    if (want == NULL) {
        return;
    }
    ck_assert_uint_eq(
        target.counter->slot, (unsigned)(want - run->model.counter));
    if (column == NOTHING) {
        ck_assert_ptr_null(target.column);
        ck_assert_ptr_eq(target.counter, counter);
    } else {
        ck_assert_ptr_eq(target.column, &target.counter->column[column]);
        ck_assert_int_eq(target.is_unread, is_unread);
        ck_assert_ptr_eq(schema_counter_column(target.counter, text, len),
            is_unread ? NULL : target.column);
    }
}

static void
check_all(struct run *run)
{
    ck_assert_int_eq(schema_check(run->schema), 0);
    for (unsigned i = 0; i < SCHEMA_COUNTERS_MAX; i++) {
        const struct schema_counter *counter =
            schema_counter_at(run->schema, i);

        ck_assert_int_eq(counter != NULL, run->model.counter[i].used);
        if (counter != NULL) {
            ck_assert_uint_eq(counter->slot, i);
            check_counter(counter, &run->model.counter[i]);
        }
    }
    for (int name = 0; name <= run->mixture.n_names; name++) {
        check_lookup(run, name);
    }
}

static void
dump(const struct schema *schema, struct buf *out)
{
    buf_clear(out);
    buf_addf(out, "%llu\r\n", (unsigned long long)schema_version(schema));
    for (unsigned i = 0; i < SCHEMA_COUNTERS_MAX; i++) {
        const struct schema_counter *counter = schema_counter_at(schema, i);

        if (counter != NULL) {
            if (counter->members_of == 0) { /* else there are no lines */
                ck_assert_int_eq(schema_print(schema, counter, out), 0);
            }
            buf_addf(out, "%u %u\r\n", counter->slot, counter->serial);
            for (unsigned j = 0; j < counter->n_columns; j++) {
                buf_addf(out, "%u %u %u\r\n", counter->column[j].slot,
                    counter->column[j].serial, counter->column[j].pairs);
            }
        }
    }
    ck_assert(!out->failed);
}

static void
check_and_drop_kept(struct run *run, unsigned at)
{
    struct buf now = {0};

    if (run->kept[at] != NULL) {
        dump(run->kept[at], &now);
        ck_assert_uint_eq(now.len, run->kept_dump[at].len);
        ck_assert_mem_eq(now.data, run->kept_dump[at].data, now.len);
        schema_destroy(&run->kept[at]);
    }
    buf_fini(&now);
}

/* Applies every printed line to an empty schema and prints that. */
static void
check_round_trip(const struct schema *schema)
{
    struct schema *copy = schema_create();
    struct buf text = {0}, again = {0};
    char line[LINE_MAX];
    size_t at = 0, len;

    ck_assert_int_eq(schema_print_all(schema, &text), 0);
    while (at < text.len) {
        const char *start = text.data + at;
        const char *end = memchr(start, '\r', text.len - at);

        ck_assert_ptr_nonnull(end);
        len = (size_t)(end - start);
        ck_assert_int_eq(end[1], '\n');
        ck_assert_uint_lt(len, LINE_MAX);
        memcpy(line, start, len);
        line[len] = '\0';
        ck_assert_int_eq(
            apply_line(&copy,
                strncmp(line, "add counter ", 12) == 0 ? SCHEMA_ADD_COUNTER
                                                       : SCHEMA_ADD_COLUMN,
                strchr(line + 4, ' ') + 1, NULL),
            0);
        at += len + 2;
    }
    ck_assert_int_eq(schema_print_all(copy, &again), 0);
    ck_assert_uint_eq(again.len, text.len);
    ck_assert_mem_eq(again.data, text.data, text.len);
    buf_fini(&text);
    buf_fini(&again);
    schema_destroy(&copy);
}

static void
run_edits(struct run *run)
{
    struct schema *old;
    unsigned at;

    run->schema = schema_create();
    ck_assert_ptr_nonnull(run->schema);
    for (int round = 0; round < run->mixture.rounds; round++) {
        at = draw(run, KEPT);
        check_and_drop_kept(run, at);
        dump(run->schema, &run->kept_dump[at]);
        if (edit_both(run, &old)) {
            run->kept[at] = old;
        }
        if (round % CHECKED_ROUNDS == 0) {
            check_all(run);
        }
    }
    for (at = 0; at < KEPT; at++) {
        check_and_drop_kept(run, at);
        buf_fini(&run->kept_dump[at]);
    }
    check_all(run);
    check_round_trip(run->schema);
    schema_destroy(&run->schema);
}

START_TEST(test_random_edits)
{
    static struct run run;

    memset(&run, 0, sizeof run);
    run.random = UINT64_C(0x9e3779b97f4a7c15) * (uint64_t)(_i + 1);
    run.mixture = mixtures[_i];
    run_edits(&run);
    ck_assert_int_gt(run.answers[0], 0);
    ck_assert_int_gt(run.answers[ERR_NAME_TAKEN], 0);
    if (run.mixture.n_names == 8) {
        ck_assert_int_gt(run.answers[ERR_CHANGE_KEY], 0);
    }
    if (run.mixture.n_names == 200) {
        ck_assert_int_gt(run.answers[ERR_CHANGE_DOWN], 0);
    }
    if (run.mixture.n_names == 80 || run.mixture.n_names == 200) {
        ck_assert_int_gt(run.answers[ERR_CHANGE_WIDTH], 0);
        ck_assert_int_gt(run.answers[ERR_BAD_SOURCE], 0);
        ck_assert_int_gt(run.answers[ERR_SOURCE_KIND], 0);
        ck_assert_int_gt(run.answers[ERR_NO_FOLLOWED], 0);
        ck_assert_int_gt(run.answers[ERR_FOLLOW_COLD], 0);
        ck_assert_int_gt(run.answers[ERR_BAD_COUNTS], 0);
        ck_assert_int_gt(run.answers[ERR_NOT_ABOUT], 0);
        ck_assert_int_gt(run.answers[ERR_IN_USE], 0);
    }
    if (run.mixture.n_counter_names == 2) {
        ck_assert_int_gt(run.answers[ERR_ABOUT_SOURCE], 0);
        ck_assert_int_gt(run.answers[ERR_TOO_MANY_COLUMNS], 0);
    }
    if (run.mixture.n_names == 1200) {
        ck_assert_int_gt(run.answers[ERR_TOO_MANY_COUNTERS], 0);
    }
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("schema_model");
    TCase *tcase = tcase_create("schema_model");
    SRunner *sr = srunner_create(suite);
    int failed;

    tcase_set_timeout(tcase, HELP_TIMEOUT_S);
    tcase_add_loop_test(
        tcase, test_random_edits, 0, sizeof mixtures / sizeof mixtures[0]);
    suite_add_tcase(suite, tcase);
    srunner_set_tap(sr, "-");
    srunner_run_all(sr, CK_SILENT);
    failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
