/* SPDX-License-Identifier: BSD-3-Clause */
/* What would be sent is tried on a copy of the server's schema first, so that
 * what cannot be done is said before anything has been: columns that a server
 * cannot change, names that are in use. Then line by line; the first one that
 * is refused ends it. */
#include "cli/schema_command.h"

#include "cli/ask.h"
#include "cli/json.h"
#include "cli/schema_text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_BYTES_MAX = 1 << 20, LINE_BYTES = TALK_LINE_MAX + 3 };

enum row { ROW_DROP, ROW_DRY_RUN, ROWS_N };

static const struct command_line_row rows[ROWS_N] = {
    [ROW_DROP] = {"drop", "",
        "of apply: drops what the file has not, with all its numbers"},
    [ROW_DRY_RUN] = {"dry-run", "",
        "of apply: shows the lines that it would send, and sends none"},
};

struct work {
    struct ask ask;
    bool may_drop, is_dry;
    struct schema *has, *wants; /* the server's; the file's */
    struct schema_text_diff diff;
    struct buf plan; /* lines to be sent, in order */
    struct buf done; /* of these, those that were answered */
    char why[SCHEMA_TEXT_WHY_MAX];
};

static bool
take_row(struct ask *ask, unsigned row, const char *value)
{
    struct work *work = ask->context;
    (void)value;
    work->may_drop = work->may_drop || row == ROW_DROP;
    work->is_dry = work->is_dry || row == ROW_DRY_RUN;
    return true;
}

static const struct ask_command command = {.name = "schema",
    .usage =
        "usage: tallyctl schema show [OPTION]...\n"
        "       tallyctl schema diff FILE [OPTION]...\n"
        "       tallyctl schema apply FILE [--drop] [--dry-run] [OPTION]...\n"
        "Shows the counters of a server as lines that make them again; "
        "compares them\nwith a file of such lines (exit status 1 where they "
        "differ); adds to the server\nwhat it has not, and changes what a "
        "server can change.\n",
    .row = rows,
    .n_rows = ROWS_N,
    .n_words_max = 2,
    .take_fn = take_row};

/* ---- the server's and the file's ---- */

/* Puts the server's lines together: `show counters`, then each counter. */
static bool
read_server(struct work *work)
{
    struct ask *ask = &work->ask;
    struct buf names = {0}, lines = {0}, ordered = {0};
    char name[SCHEMA_NAME_MAX + 1], question[LINE_BYTES];
    bool is_right =
        ask_connect(ask) && ask_lines(ask, "show counters\r\n", "END", &names);
    buf_add(&names, "", 1);
    for (const char *at = names.data; is_right && !names.failed && *at != '\0';
         at = strchr(at, '\n') + 1) {
        is_right = sscanf(at, "COUNTER %32s", name) == 1;
        (void)snprintf(question, sizeof question, "show counter %s\r\n", name);
        is_right = is_right && ask_lines(ask, question, "END", &lines);
    }
    if (!is_right) {
        (void)snprintf(work->why, sizeof work->why, "%s", ask->talk.why);
    } else {
        work->has = schema_create();
        is_right = work->has != NULL &&
            schema_text_apply(&lines, &work->has, &ordered, work->why);
    }
    buf_fini(&names);
    buf_fini(&lines);
    buf_fini(&ordered);
    return is_right;
}

static bool
read_all(FILE *file, struct buf *text)
{
    size_t n = 1;
    while (n > 0) {
        char *room = buf_reserve(text, BUFSIZ);
        if (room == NULL || text->len > FILE_BYTES_MAX) {
            errno = room == NULL ? ENOMEM : EFBIG;
            return false;
        }
        n = fread(room, 1, BUFSIZ, file);
        text->len += n;
    }
    return ferror(file) == 0;
}

static bool
read_file(struct work *work, const char *path)
{
    FILE *file = fopen(path, "re");
    struct buf text = {0};
    char why[SCHEMA_TEXT_WHY_MAX] = "";
    unsigned n_largest = 0;
    bool is_read = file != NULL && read_all(file, &text);
    if (!is_read) {
        (void)snprintf(
            work->why, sizeof work->why, "%s: %s", path, strerror(errno));
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    work->wants = schema_create();
    if (is_read && work->wants != NULL) {
        is_read = schema_text_read(&text, &work->wants, &n_largest, why);
        (void)snprintf(
            work->why, sizeof work->why, "%.100s:%.290s", path, why);
    }
    if (is_read && n_largest > 0) {
        (void)fprintf(stderr,
            "tallyctl: %s: largest= is left out: no server keeps it; send "
            "such a line by hand, or start with the file as --schema\n",
            path);
    }
    buf_fini(&text);
    return is_read && work->wants != NULL;
}

/* ---- what is shown ---- */

static void
add_marked(struct buf *out, char mark, const struct buf *lines)
{
    for (size_t at = 0; at < lines->len;) {
        const char *line = lines->data + at;
        const char *end = memchr(line, '\n', lines->len - at);
        size_t len = end == NULL ? lines->len - at : (size_t)(end - line);
        buf_addf(out, "%c %.*s\n", mark, (int)len, line);
        at += len + 1;
    }
}

static bool
is_same(const struct schema_text_diff *diff)
{
    return diff->n_add + diff->n_change + diff->n_drop + diff->n_changed == 0;
}

static int
say_diff(struct work *work)
{
    const struct schema_text_diff *diff = &work->diff;
    struct buf out = {0};
    if (work->ask.is_json) {
        struct json json = {.out = &out};
        json_open(&json, NULL, '{');
        json_bool(&json, "same", is_same(diff));
        ask_json_lines(&json, "add", &diff->add);
        ask_json_lines(&json, "drop", &diff->drop);
        ask_json_lines(&json, "change", &diff->change);
        ask_json_lines(&json, "changed", &diff->changed);
        json_bool(&json, "other_order", diff->is_order_other);
        json_close(&json);
    } else {
        buf_add(&out, diff->changed.data, diff->changed.len);
        add_marked(&out, '-', &diff->drop);
        add_marked(&out, '~', &diff->change);
        add_marked(&out, '+', &diff->add);
        buf_add_text(&out, is_same(diff) ? "the same\n" : "");
        buf_add_text(&out,
            diff->is_order_other
                ? "note: columns stand in another order than in the file; "
                  "numbers of whole records\n  come in the server's order, "
                  "new columns behind the others\n"
                : "");
    }
    int status = ask_write(&out);
    return is_same(diff) ? status : ASK_EXIT_BAD;
}

static int
show(struct work *work)
{
    struct buf out = {0}, lines = {0};
    bool is_right = schema_text_lines(work->has, &lines);
    if (is_right && work->ask.is_json) {
        struct json json = {.out = &out};
        json_open(&json, NULL, '{');
        ask_json_lines(&json, "lines", &lines);
        json_close(&json);
    } else if (is_right) {
        buf_add(&out, lines.data, lines.len);
    }
    out.failed = out.failed || !is_right;
    buf_fini(&lines);
    return ask_write(&out);
}

/* ---- apply ---- */

/* Finds the order of the lines, on the copy. False: it cannot be done. */
static bool
make_plan(struct work *work)
{
    struct schema_text_diff *diff = &work->diff;
    if (diff->n_changed > 0) {
        (void)fwrite(diff->changed.data, 1, diff->changed.len, stderr);
        (void)snprintf(work->why, sizeof work->why,
            "nothing was sent: %u of the file's lines differ from the "
            "server's, see above",
            diff->n_changed);
        return false;
    }
    if (diff->n_drop > 0 && !work->may_drop) {
        (void)fprintf(stderr,
            "tallyctl: left as they are, since the file has them not and "
            "--drop is not given: %u\n",
            diff->n_drop);
        buf_clear(&diff->drop);
    }
    return schema_text_apply(
               &diff->drop, &work->has, &work->plan, work->why) &&
        schema_text_apply(&diff->change, &work->has, &work->plan, work->why) &&
        schema_text_apply(&diff->add, &work->has, &work->plan, work->why);
}

/* Sends one line of the plan. */
static bool
send_line(struct work *work, const char *line, size_t len)
{
    struct ask *ask = &work->ask;
    struct buf others = {0};
    char text[LINE_BYTES];
    bool is_drop = talk_begins(line, len, "drop ");
    if (len > TALK_LINE_MAX) {
        (void)snprintf(work->why, sizeof work->why, "a line too long");
        return false;
    }
    memcpy(text, line, len);
    memcpy(text + len, "\r\n", sizeof "\r\n");
    bool is_done =
        ask_lines(ask, text, is_drop ? "DELETED" : "STORED", &others);
    if (is_done) {
        buf_add(&work->done, line, len);
        buf_add_text(&work->done, "\n");
    } else {
        (void)snprintf(work->why, sizeof work->why,
            "%.150s, of \"%.*s\"; the lines before it are done, say the same "
            "again",
            ask->talk.why, len > 100 ? 100 : (int)len, line);
    }
    buf_fini(&others);
    return is_done;
}

static bool
send_plan(struct work *work)
{
    const struct buf *plan = &work->plan;
    bool is_right = true;
    for (size_t at = 0; is_right && at < plan->len;) {
        const char *line = plan->data + at;
        const char *end = memchr(line, '\n', plan->len - at);
        size_t len = end == NULL ? plan->len - at : (size_t)(end - line);
        is_right = send_line(work, line, len);
        at += len + 1;
    }
    return is_right;
}

static int
say_applied(struct work *work)
{
    struct buf out = {0};
    const struct buf *lines = work->is_dry ? &work->plan : &work->done;
    if (work->ask.is_json) {
        struct json json = {.out = &out};
        json_open(&json, NULL, '{');
        json_bool(&json, "dry_run", work->is_dry);
        ask_json_lines(&json, "lines", lines);
        json_close(&json);
    } else {
        buf_add(&out, lines->data, lines->len);
    }
    return ask_write(&out);
}

static int
apply(struct work *work)
{
    if (!make_plan(work)) {
        return ask_fail("%s", work->why);
    }
    bool is_right = work->is_dry || send_plan(work);
    int status = say_applied(work);
    return is_right ? status : ask_fail("%s", work->why);
}

static int
run(struct work *work, const char *verb, const char *path)
{
    if ((path != NULL && !read_file(work, path)) || !read_server(work)) {
        return ask_fail(
            "%s", work->why[0] == '\0' ? "out of memory" : work->why);
    }
    if (path == NULL) {
        return show(work);
    }
    if (!schema_text_diff_make(work->has, work->wants, &work->diff)) {
        return ask_fail("out of memory");
    }
    return strcmp(verb, "diff") == 0 ? say_diff(work) : apply(work);
}

/* What is wrong with the words; NULL: nothing. */
static const char *
misuse(const struct work *work)
{
    const struct command_line *line = &work->ask.line;
    const char *verb = line->n_words > 0 ? line->word[0] : "";
    bool is_show = strcmp(verb, "show") == 0;
    bool is_apply = strcmp(verb, "apply") == 0;
    if (!is_show && !is_apply && strcmp(verb, "diff") != 0) {
        return "wanted is show, diff FILE or apply FILE; see --help";
    }
    if (line->n_words != (is_show ? 1 : 2)) {
        return is_show ? "show takes no file" : "name a file; see --help";
    }
    return (work->may_drop || work->is_dry) && !is_apply
        ? "--drop and --dry-run are of apply"
        : NULL;
}

int
schema_command_main(int argc, char *const argv[])
{
    static struct work work;
    int status = ask_begin(&work.ask, &command, &work, argc, argv);
    const char *wrong = status == ASK_GO_ON ? misuse(&work) : NULL;
    if (wrong != NULL) {
        status = ask_misused(&work.ask, wrong);
    } else if (status == ASK_GO_ON) {
        const struct command_line *line = &work.ask.line;
        status = run(
            &work, line->word[0], line->n_words == 2 ? line->word[1] : NULL);
    }
    schema_destroy(&work.has);
    schema_destroy(&work.wants);
    schema_text_diff_fini(&work.diff);
    buf_fini(&work.plan);
    buf_fini(&work.done);
    ask_fini(&work.ask);
    return status;
}
