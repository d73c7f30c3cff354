/* SPDX-License-Identifier: BSD-3-Clause */
/* Asks no server. The figures are shown rounded: they are no better than the
 * likeness of the numbers to those that were measured. */
#include "cli/plan.h"

#include "cli/amount.h"
#include "cli/ask.h"
#include "cli/json.h"
#include "cli/reckon.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS_MAX = 16, COLUMNS_DEFAULT = 3 };

static const double records_max = 1e15, rate_max = 1e12;

enum row { ROW_RECORDS, ROW_COLUMNS, ROW_IDS, ROW_HOT, ROW_CHANGES, ROWS_N };

static const struct command_line_row rows[ROWS_N] = {
    [ROW_RECORDS] = {"records", "NUM",
        "ids with a number that is not at its default, as 2e9"},
    [ROW_COLUMNS] = {"columns", "NUM",
        "value columns of the counter, 1 to 16; default: 3"},
    [ROW_IDS] = {"ids", "KIND",
        "snowflake: a time and a number in it; random: random 64-bit "
        "numbers; dense: one after the other; default: snowflake"},
    [ROW_HOT] = {"hot-share", "SHARE",
        "how much of them is to be in memory, above 0 and at most 1; "
        "default: 1"},
    [ROW_CHANGES] = {"changes", "NUM", "changes a second; default: 0"},
};

struct plan {
    struct ask ask;
    struct reckon_question question;
};

/* A number above least (from it on where it is 0) to most. */
static bool
take_number(struct ask *ask, const char *name, const char *text, double most,
    bool may_be_0, double *out)
{
    char *end = NULL;
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || !isfinite(value) || value > most ||
        value < 0 || (value == 0 && !may_be_0)) {
        return command_line_fail(&ask->line, "--%s is a number %s to %g", name,
            may_be_0 ? "from 0" : "above 0", most);
    }
    *out = value;
    return true;
}

static bool
take_ids(struct ask *ask, const char *text, enum reckon_ids *out)
{
    for (unsigned i = 0; i < RECKON_IDS_N; i++) {
        if (strcmp(text, reckon_ids_name((enum reckon_ids)i)) == 0) {
            *out = (enum reckon_ids)i;
            return true;
        }
    }
    return command_line_fail(
        &ask->line, "--ids is snowflake, random or dense");
}

static bool
take_row(struct ask *ask, unsigned row, const char *value)
{
    struct plan *plan = ask->context;
    struct reckon_question *question = &plan->question;
    const char *name = rows[row].name;
    double columns = 0;
    switch ((enum row)row) {
    case ROW_RECORDS:
        return take_number(
            ask, name, value, records_max, false, &question->records);
    case ROW_COLUMNS:
        if (!take_number(ask, name, value, COLUMNS_MAX, false, &columns)) {
            return false;
        }
        question->columns = (unsigned)columns;
        return (double)question->columns == columns ||
            command_line_fail(&ask->line, "--columns is a whole number");
    case ROW_IDS:
        return take_ids(ask, value, &question->ids);
    case ROW_HOT:
        return take_number(ask, name, value, 1, false, &question->hot_share);
    case ROW_CHANGES:
        return take_number(
            ask, name, value, rate_max, true, &question->changes);
    case ROWS_N:
        break;
    }
    return false;
}

static const struct ask_command command = {.name = "plan",
    .usage = "usage: tallyctl plan --records=NUM [OPTION]...\n"
             "Says what memory, disk and time to start a server with so many "
             "records will\ntake. It asks no server.\n",
    .row = rows,
    .n_rows = ROWS_N,
    .take_fn = take_row,
    .has_no_server = true};

/* Name in JSON, field. */
#define PLAN_FIGURES(X)                                                       \
    X("hot_memory", hot_memory)                                               \
    X("memory", memory)                                                       \
    X("segments", segments)                                                   \
    X("images", images)                                                       \
    X("log", log)                                                             \
    X("disk", disk)                                                           \
    X("log_a_day", log_day)                                                   \
    X("written_a_day", written_day)                                           \
    X("start_records", start_records)                                         \
    X("start_changes", start_changes)                                         \
    X("start_s_least", start_s_least)                                         \
    X("start_s_most", start_s_most)

static void
add_double(struct json *json, const char *name, double value)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%.2f", value);
    json_figure(json, name, text);
}

static void
add_json(const struct reckon_answer *answer, struct buf *out)
{
    struct json json = {.out = out};
    json_open(&json, NULL, '{');
    add_double(&json, "hot_bytes_a_record", answer->hot_record);
    add_double(&json, "cold_bytes_a_record", answer->cold_record);
    add_double(&json, "log_bytes_a_change", answer->log_change);
#define X(name, field) json_u64(&json, name, (uint64_t)answer->field);
    PLAN_FIGURES(X)
#undef X
    json_open(&json, "constants", '{');
#define X(name, value, text) add_double(&json, #name, reckon_constants.name);
    RECKON_CONSTANTS(X)
#undef X
    json_close(&json);
    json_close(&json);
}

static void
add_line(struct buf *out, const char *name, double bytes, const char *text)
{
    char amount[AMOUNT_BYTES];
    amount_bytes(bytes, amount);
    buf_addf(out, "%-14s %10s  %s\n", name, amount, text);
}

static void
add_text(const struct plan *plan, const struct reckon_answer *answer,
    struct buf *out)
{
    const struct reckon_question *question = &plan->question;
    char least[AMOUNT_BYTES], most[AMOUNT_BYTES];
    buf_addf(out,
        "%g records, %u columns, %s ids, %g %% of them in memory; numbers as "
        "those of\nposts: most are small, more than half are 0 "
        "(doc/measurements.md). %.1f bytes a\nrecord in memory, %.1f in a "
        "segment.\n\n",
        question->records, question->columns, reckon_ids_name(question->ids),
        question->hot_share * 100, answer->hot_record, answer->cold_record);
    add_line(out, "--hot-memory", answer->hot_memory,
        "for the records in memory, with room for changes");
    add_line(out, "memory", answer->memory, "of the process, all in all");
    add_line(out, "segments", answer->segments, "records that are not in it");
    add_line(out, "checkpoints", answer->images,
        "records in memory, twice while one is made");
    add_line(out, "log", answer->log, "until a checkpoint, --checkpoint-log");
    add_line(out, "disk", answer->disk, "these three");
    if (question->changes > 0) {
        add_line(out, "log a day", answer->log_day, "of these changes");
        add_line(out, "written a day", answer->written_day,
            "with checkpoints, what the SSD must bear");
    }
    amount_seconds(answer->start_s_least, least);
    amount_seconds(answer->start_s_most, most);
    buf_addf(out,
        "start          %s behind a checkpoint, up to %s with all of "
        "the log\n",
        least, most);
}

static int
run(const struct plan *plan)
{
    struct reckon_answer answer;
    struct buf out = {0};
    reckon(&plan->question, &answer);
    if (plan->ask.is_json) {
        add_json(&answer, &out);
    } else {
        add_text(plan, &answer, &out);
    }
    return ask_write(&out);
}

int
plan_main(int argc, char *const argv[])
{
    static struct plan plan;
    plan.question = (struct reckon_question){
        .columns = COLUMNS_DEFAULT, .ids = RECKON_SNOWFLAKE, .hot_share = 1};
    int status = ask_begin(&plan.ask, &command, &plan, argc, argv);
    if (status == ASK_GO_ON) {
        status = plan.question.records > 0
            ? run(&plan)
            : ask_misused(&plan.ask, "--records must be given; see --help");
    }
    ask_fini(&plan.ask);
    return status;
}
