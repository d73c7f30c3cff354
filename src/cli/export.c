/* SPDX-License-Identifier: BSD-3-Clause */
/* export: asks for `dump counter` and writes each of its lines in another form.
 * What is written to a file has another name until it is whole; only then it
 * has its last line, which says so. A dump of which something could not be
 * read, or that has a line which is not understood, is never whole. */
#include "cli/export.h"

#include "base/buf.h"
#include "base/checksum.h"
#include "base/num.h"
#include "cli/ask.h"
#include "cli/peer.h"
#include "cli/rows.h"
#include "cli/shown.h"
#include "client/stop.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CHUNK_BYTES = 1 << 18, PATH_BYTES = 4096, WHY_MAX = 300 };

#define TABLE(X)                                                              \
    X(format, "format", "FORMAT",                                             \
        "csv, tsv, ndjson, or dialect: the lines that store it, with those "  \
        "of the schema; default: csv")                                        \
    X(members, "members", "COLUMN",                                           \
        "of csv and tsv: the members of this column, as id, member and "      \
        "value, instead of the records")                                      \
    X(ids, "ids", "RULE:I/N",                                                 \
        "only ids of this rule, as --owns of tallyd has it: modulo:0/4")      \
    X(output, "output", "FILE",                                               \
        "where to; it has this name when it is whole; default: standard "     \
        "output")                                                             \
    X(no_end, "no-end", "",                                                   \
        "leaves out the last line, which tells import that the file is "      \
        "whole")

enum row_id {
#define X(id, name, argument, text) ROW_##id,
    TABLE(X)
#undef X
        ROWS_N
};

static const struct command_line_row rows[ROWS_N] = {
#define X(id, name, argument, text) {name, argument, text},
    TABLE(X)
#undef X
};

struct exporting {
    struct ask ask;
    const char *counter, *output, *members_name;
    char rule[OWNS_RULE_BYTES];
    enum rows_format format;
    bool has_no_end;

    struct stop stop;
    struct rows_columns columns;
    int members; /* the column that is written; -1: records */
    struct shown shown;
    struct checksum_stream *sum;
    struct buf out;
    FILE *file;
    char part[PATH_BYTES]; /* the file's name until it is whole */
    struct rows_end end;
    uint64_t records, passed_over, missing;
    char why[WHY_MAX];
};

/* ---- the command line ---- */

static bool
take_row(struct ask *ask, unsigned row, const char *value)
{
    struct exporting *job = ask->context;
    switch ((enum row_id)row) {
    case ROW_format:
        return rows_format_of(value, &job->format) ||
            command_line_fail(
                &ask->line, "--format is csv, tsv, ndjson or dialect");
    case ROW_members:
        job->members_name = value;
        return true;
    case ROW_ids:
        return ask_take_rule(ask, value, job->rule);
    case ROW_output:
        job->output = value;
        return strlen(value) < PATH_BYTES - 8 ||
            command_line_fail(&ask->line, "--output: the name is too long");
    case ROW_no_end:
        job->has_no_end = true;
        return true;
    case ROWS_N:
        break;
    }
    return false;
}

static const struct ask_command command = {.name = "export",
    .usage = "usage: tallyctl export COUNTER [OPTION]...\n"
             "Writes the records of a counter to a file, or to standard "
             "output, while they are\nread and changed.\n",
    .row = rows,
    .n_rows = ROWS_N,
    .n_words_max = 1,
    .take_fn = take_row};

/* What is wrong with the options together; NULL: nothing. */
static const char *
misfit(struct exporting *job)
{
    if (job->ask.line.n_words == 0) {
        return "which counter? tallyctl export COUNTER; see --help";
    }
    job->counter = job->ask.line.word[0];
    if (job->members_name != NULL && job->format != ROWS_CSV &&
        job->format != ROWS_TSV) {
        return "--members is for csv and tsv: the other formats have members "
               "with their records";
    }
    return job->ask.is_json && job->output == NULL
        ? "--json says on standard output how it went: give --output"
        : NULL;
}

/* ---- the file ---- */

static bool
fail(struct exporting *job, const char *what, int err)
{
    (void)snprintf(
        job->why, sizeof job->why, "%.200s: %.80s", what, strerror(err));
    return false;
}

static bool
flush_out(struct exporting *job)
{
    if (job->out.failed) {
        return fail(job, "rows", ENOMEM);
    }
    if (job->out.len == 0) {
        return true;
    }
    checksum_stream_add(job->sum, job->out.data, job->out.len);
    if (fwrite(job->out.data, 1, job->out.len, job->file) != job->out.len) {
        return fail(
            job, job->output != NULL ? job->output : "standard output", errno);
    }
    buf_clear(&job->out);
    return true;
}

static bool
open_file(struct exporting *job)
{
    job->file = stdout;
    job->sum = checksum_stream_create();
    if (job->sum == NULL) {
        return fail(job, "rows", ENOMEM);
    }
    if (job->output != NULL) {
        (void)snprintf(job->part, sizeof job->part, "%s.part", job->output);
        job->file = fopen(job->part, "we");
    }
    return job->file != NULL || fail(job, job->part, errno);
}

/* The file is whole, and has its name. */
static bool
keep_file(struct exporting *job)
{
    if (!flush_out(job)) {
        return false;
    }
    if (!job->has_no_end) {
        job->end.sum = checksum_stream_sum(job->sum);
        rows_put_end(job->format, &job->end, &job->out);
    }
    if (!flush_out(job) || fflush(job->file) != 0) {
        return fail(job, "the last line", errno);
    }
    if (job->output == NULL) {
        return true;
    }
    bool is_kept =
        fsync(fileno(job->file)) == 0 && rename(job->part, job->output) == 0;
    return is_kept || fail(job, job->output, errno);
}

/* ---- the dump ---- */

/* "SERVER_ERROR ids FIRST to LAST: why": a piece that could not be read. */
static bool
is_piece_missing(const char *line, size_t len)
{
    return talk_begins(line, len, "SERVER_ERROR ids ");
}

static bool
put_line(struct exporting *job, const char *line, size_t len)
{
    struct row row = {0};
    enum rows_took took = rows_take_dumped(&job->columns, line, len, &row);
    if (took == ROWS_BAD) {
        (void)snprintf(job->why, sizeof job->why,
            "a line of the dump is not understood: %.*s",
            len > 100 ? 100 : (int)len, line);
        return false;
    }
    job->records += took == ROWS_ROW && !row.is_member;
    if (job->format == ROWS_DIALECT) {
        buf_add(&job->out, line, len);
        buf_add_text(&job->out, "\n");
        job->end.rows++;
        return true;
    }
    bool is_wanted = took == ROWS_ROW &&
        (job->format == ROWS_NDJSON ||
            (row.is_member ? job->members == row.members : job->members < 0));
    if (is_wanted) {
        rows_put(job->format, &job->columns, &row, &job->out);
        job->end.rows++;
    }
    job->passed_over +=
        took == ROWS_ROW && row.is_member && !is_wanted && job->members < 0;
    return true;
}

static enum talk_take
take_dumped(void *context, const char *line, size_t len)
{
    struct exporting *job = context;
    if (talk_is(line, len, "END")) {
        return TALK_END;
    }
    if (is_piece_missing(line, len)) {
        shown_end(&job->shown);
        ask_say("not read: %.*s", (int)len, line);
        job->missing++;
        return TALK_MORE;
    }
    if (talk_begins(line, len, "LEFT_OUT ")) { /* said at the end */
        return TALK_MORE;
    }
    if (!talk_begins(line, len, "set ") && !talk_begins(line, len, "add ")) {
        return TALK_WRONG;
    }
    if (!put_line(job, line, len)) {
        return TALK_WRONG;
    }
    if (job->out.len >= CHUNK_BYTES) {
        if (!flush_out(job)) {
            return TALK_WRONG;
        }
        shown_tell(&job->shown, job->end.rows, job->records);
    }
    return TALK_MORE;
}

static bool
go_on(void *context)
{
    struct exporting *job = context;
    return !stop_is_asked(&job->stop);
}

/* The lines of the schema, of dialect. */
static enum talk_take
take_schema(void *context, const char *line, size_t len)
{
    struct exporting *job = context;
    if (talk_is(line, len, "END")) {
        return TALK_END;
    }
    buf_add(&job->out, line, len);
    buf_add_text(&job->out, "\n");
    job->end.rows++;
    return talk_begins(line, len, "add ") ? TALK_MORE : TALK_WRONG;
}

static bool
ask(struct exporting *job, const char *question, talk_line_fn line_fn)
{
    if (talk_ask(&job->ask.talk, question, strlen(question), line_fn, job)) {
        return true;
    }
    if (job->why[0] == '\0') {
        (void)snprintf(job->why, sizeof job->why, "%s", job->ask.talk.why);
    }
    return false;
}

static bool
begin(struct exporting *job)
{
    uint64_t n = 0;
    if (!ask_connect(&job->ask) ||
        !peer_columns(&job->ask.talk, job->counter, &job->columns, &n)) {
        (void)snprintf(job->why, sizeof job->why, "%s", job->ask.talk.why);
        return false;
    }
    job->members = -1;
    if (job->members_name != NULL) {
        job->members = rows_members_of(
            &job->columns, job->members_name, strlen(job->members_name));
        if (job->members < 0) {
            (void)snprintf(job->why, sizeof job->why,
                "%.40s has no column of members %.40s", job->counter,
                job->members_name);
            return false;
        }
        if (job->columns.is_about[job->members]) {
            (void)snprintf(job->why, sizeof job->why,
                "%.40s has members=about: no server can list them, see "
                "tallyctl backup",
                job->members_name);
            return false;
        }
    }
    shown_begin(&job->shown, "rows", job->rule[0] == '\0' ? n : 0);
    return open_file(job);
}

static bool
run(struct exporting *job)
{
    char question[256];
    if (!begin(job)) {
        return false;
    }
    job->ask.talk.tick_fn = go_on;
    job->ask.talk.context = job;
    if (job->format == ROWS_DIALECT) {
        (void)snprintf(
            question, sizeof question, "show counter %s\r\n", job->counter);
        if (!ask(job, question, take_schema)) {
            return false;
        }
    }
    rows_put_header(job->format, &job->columns, job->members, &job->out);
    (void)snprintf(question, sizeof question, "dump counter %s%s%s\r\n",
        job->counter, job->rule[0] == '\0' ? "" : " of ", job->rule);
    if (!ask(job, question, take_dumped)) {
        return false;
    }
    if (job->missing > 0) {
        (void)snprintf(job->why, sizeof job->why,
            "%" PRIu64 " ranges could not be read: the rows of the others "
            "were written, without the last line",
            job->missing);
        return flush_out(job) && fflush(job->file) == 0 && false;
    }
    return keep_file(job);
}

static int
say_done(struct exporting *job)
{
    (void)fprintf(stderr, "tallyctl: %" PRIu64 " row%s of %s\n", job->end.rows,
        num_plural(job->end.rows), job->counter);
    if (job->passed_over > 0) {
        (void)fprintf(stderr,
            "tallyctl: %" PRIu64 " members are not among them: see --members, "
            "or --format=ndjson\n",
            job->passed_over);
    }
    for (unsigned i = 0; i < job->columns.n_members; i++) {
        if (job->columns.is_about[i]) {
            (void)fprintf(stderr,
                "tallyctl: members of %s are not among them: they are "
                "members=about, see tallyctl backup\n",
                job->columns.members_name[i].text);
        }
    }
    if (!job->ask.is_json) {
        return EXIT_SUCCESS;
    }
    struct buf out = {0};
    buf_addf(&out, "{\"rows\":%" PRIu64 ",\"members_left_out\":%" PRIu64 "}\n",
        job->end.rows, job->passed_over);
    return ask_write(&out);
}

static int
run_and_say(struct exporting *job)
{
    bool is_done = stop_init(&job->stop, 0) == 0 && run(job);
    shown_end(&job->shown);
    if (is_done) {
        return say_done(job);
    }
    return ask_fail("%s",
        job->stop.is_asked ? "ended by a signal: the file is not whole"
                           : job->why);
}

static void
finish(struct exporting *job)
{
    ask_fini(&job->ask);
    stop_fini(&job->stop);
    buf_fini(&job->out);
    checksum_stream_destroy(&job->sum);
    if (job->output != NULL && job->file != NULL) {
        (void)fclose(job->file);
    }
}

int
export_main(int argc, char *const argv[])
{
    static struct exporting job;
    job.stop.fd = -1;
    int status = ask_begin(&job.ask, &command, &job, argc, argv);
    if (status == ASK_GO_ON) {
        const char *why = misfit(&job);
        status = why == NULL ? run_and_say(&job) : ask_misused(&job.ask, why);
    }
    finish(&job);
    return status;
}
