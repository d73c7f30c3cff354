/* SPDX-License-Identifier: BSD-3-Clause */
/* Each number of the counter is compared with the truth; what differs is looked
 * at twice more, --settle apart. Between the server and the truth there may be
 * a queue: what is still in it differs, and moves. Only where both stood still
 * over all looks is the difference a drift, which is there to stay: something
 * was lost, or counted twice. A number that moves is not judged. */
#include "cli/verify.h"

#include "base/assert.h"
#include "base/num.h"
#include "cli/peer.h"
#include "cli/verify_priv.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SETTLE_DEFAULT = 10,
    SETTLE_MOST = 86400,
    TRUTH_TIMEOUT_S = 600,
    TRUTH_TIMEOUT_S_MAX = 86400,
    SUSPECTS_DEFAULT = 1000000,
    SUSPECTS_MOST = 100000000,
    MS_PER_S = 1000
};

#define TABLE(X)                                                               \
    X(truth, "truth", "COMMAND",                                               \
        "run by /bin/sh for some ids: they come to its standard input, one a " \
        "line; it answers \"ID NUMBER...\" for each, a number a column, or "   \
        "\"ID -\" where it knows nothing of it")                               \
    X(truth_timeout, "truth-timeout", "SECONDS",                               \
        "how long it may take for some ids, up to 1000; then it is ended, "    \
        "with its children; default: 600")                                     \
    X(columns, "columns", "NAME[,NAME...]",                                    \
        "what is compared, in the order of these numbers; default: all "       \
        "numbers that are no marks, and that no members count")                \
    X(settle, "settle", "SECONDS",                                             \
        "how long a change may take from the truth to the server; what "       \
        "differs is looked at twice more, so far apart; default: 10")          \
    X(ids, "ids", "RULE:I/N",                                                  \
        "only ids of this rule, as --owns of tallyd has it: modulo:0/4")       \
    X(more, "more", "FILE",                                                    \
        "ids, one a line, that are looked at besides those that the server "   \
        "has")                                                                 \
    X(fix, "fix", "",                                                          \
        "corrects what stood still, by the difference; wants --state")         \
    X(state, "state", "FILE",                                                  \
        "where corrections are until they are done; the same command "         \
        "finishes them")                                                       \
    X(suspects, "suspects-most", "NUM",                                        \
        "ends when more numbers differ at the first look; default: 1000000")

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

bool
verify__fail(struct verify *job, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    (void)vsnprintf(job->why, sizeof job->why, format, list);
    va_end(list);
    return false;
}

/* ---- the command line ---- */

static bool
take_row(struct ask *ask, unsigned row, const char *value)
{
    struct verify *job = ask->context;
    uint64_t seconds = 0;
    switch ((enum row_id)row) {
    case ROW_truth:
        job->truth.command = value;
        return true;
    case ROW_truth_timeout:
        if (!command_line_number(
                &ask->line, row, value, 1, TRUTH_TIMEOUT_S_MAX, &seconds)) {
            return false;
        }
        job->truth.timeout_s = (uint32_t)seconds;
        return true;
    case ROW_columns:
        job->columns_text = value;
        return true;
    case ROW_settle:
        return command_line_number(
            &ask->line, row, value, 0, SETTLE_MOST, &job->settle_s);
    case ROW_ids:
        return ask_take_rule(ask, value, job->rule);
    case ROW_more:
        job->more = value;
        return true;
    case ROW_fix:
        job->is_fixing = true;
        return true;
    case ROW_state:
        job->state = value;
        return true;
    case ROW_suspects:
        return command_line_number(
            &ask->line, row, value, 1, SUSPECTS_MOST, &job->suspects_most);
    case ROWS_N:
        break;
    }
    return false;
}

static const struct ask_command command = {.name = "verify",
    .usage = "usage: tallyctl verify COUNTER --truth=COMMAND [OPTION]...\n"
             "Compares a counter with what should be in it, and corrects what "
             "differs for good.\n",
    .row = rows,
    .n_rows = ROWS_N,
    .n_words_max = 1,
    .take_fn = take_row};

static const char *
misfit(struct verify *job)
{
    if (job->ask.line.n_words == 0) {
        return "which counter? tallyctl verify COUNTER; see --help";
    }
    job->counter = job->ask.line.word[0];
    if (job->truth.command == NULL) {
        return "--truth must be given; see --help";
    }
    return job->is_fixing && job->state == NULL ? "--fix wants --state" : NULL;
}

/* ---- columns ---- */

static bool
may_compare(const struct rows_columns *columns, unsigned i)
{
    return !columns->is_list[i] && !columns->is_mark[i] &&
        !columns->is_counted[i];
}

static_assert((int)TRUTH_COLUMNS_MAX >= (int)SCHEMA_COLUMNS_MAX,
    "each column has room, for none is there twice");

/* One that is there twice would be corrected twice. */
static bool
is_taken(const struct verify *job, unsigned i)
{
    return memchr(job->column, (int)i, job->n_columns) != NULL;
}

static bool
take_columns(struct verify *job)
{
    const char *text = job->columns_text;
    for (unsigned i = 0; text == NULL && i < job->columns.n; i++) {
        if (may_compare(&job->columns, i)) {
            job->column[job->n_columns++] = (uint8_t)i;
        }
    }
    while (text != NULL) {
        size_t len = strcspn(text, ",");
        int i = rows_column_of(&job->columns, text, len);
        if (i < 0 || !may_compare(&job->columns, (unsigned)i) ||
            is_taken(job, (unsigned)i)) {
            return verify__fail(job,
                "--columns: %.*s is no number of %s that can be compared, or "
                "is there twice: marks say how far somebody has read, and "
                "members make what they count",
                len > 60 ? 60 : (int)len, text, job->counter);
        }
        job->column[job->n_columns++] = (uint8_t)i;
        text = text[len] == ',' ? text + len + 1 : NULL;
    }
    job->truth.n_columns = job->n_columns;
    return job->n_columns > 0 ||
        verify__fail(
            job, "%s has no number that can be compared", job->counter);
}

/* ---- the first look ---- */

static bool
add_suspect(struct verify *job, const struct rows_id *id, unsigned column,
    uint64_t here, uint64_t truth)
{
    struct rows_id own = *id;
    if (job->n_suspects == job->suspects_most) {
        return verify__fail(job,
            "more than %" PRIu64 " numbers differ: is --truth of the same "
            "counter? (--suspects-most)",
            job->suspects_most);
    }
    if (job->n_suspects == job->room) {
        size_t room = job->room == 0 ? 1024 : 2 * job->room;
        struct suspect *more =
            realloc(job->suspect, room * sizeof *job->suspect);
        if (more == NULL) {
            return verify__fail(job, "out of memory");
        }
        job->suspect = more;
        job->room = room;
    }
    if (id->name != NULL) {
        char *name = malloc(id->len);
        if (name == NULL) {
            return verify__fail(job, "out of memory");
        }
        memcpy(name, id->name, id->len);
        own.name = name;
    }
    job->suspect[job->n_suspects++] = (struct suspect){
        .id = own, .column = (uint8_t)column, .here = here, .truth = truth};
    return true;
}

/* Asks for the truth about the batch, and gathers what differs. */
static bool
compare(struct verify *job)
{
    if (job->n > 0 &&
        !truth_ask(&job->truth, job->id, job->n, job->there, job->is_known)) {
        return verify__fail(job, "%s", job->truth.why);
    }
    for (unsigned i = 0; i < job->n; i++) {
        job->unknown += !job->is_known[i];
        for (unsigned c = 0; job->is_known[i] && c < job->n_columns; c++) {
            size_t at = (size_t)i * job->n_columns + c;
            if (job->here[at] != job->there[at] &&
                !add_suspect(
                    job, &job->id[i], c, job->here[at], job->there[at])) {
                return false;
            }
        }
    }
    job->looked += job->n;
    job->n = 0;
    shown_tell(&job->shown, job->looked, job->looked);
    return true;
}

/* One more of the batch. */
static void
add_id(struct verify *job, const struct rows_id *id)
{
    struct rows_id *own = &job->id[job->n];
    *own = *id;
    if (id->name != NULL) {
        ASSERT(id->len <= NAME_BYTES_MAX);
        memcpy(job->name[job->n], id->name, id->len);
        own->name = job->name[job->n];
    }
    job->n++;
}

static bool
take_record(struct verify *job, const struct row *row)
{
    uint64_t value[SCHEMA_COLUMNS_MAX];
    memcpy(value, job->columns.default_value, sizeof value);
    for (unsigned i = 0; i < row->n; i++) {
        value[row->cell[i].column] = row->cell[i].value;
    }
    for (unsigned c = 0; c < job->n_columns; c++) {
        job->here[(size_t)job->n * job->n_columns + c] = value[job->column[c]];
    }
    add_id(job, &row->id);
    return job->n < TRUTH_BATCH_MAX || compare(job);
}

static enum talk_take
take_dumped(void *context, const char *line, size_t len)
{
    struct verify *job = context;
    struct row row;
    if (talk_is(line, len, "END")) {
        return TALK_END;
    }
    enum rows_took took = rows_take_dumped(&job->columns, line, len, &row);
    if (took == ROWS_LINE || (took == ROWS_ROW && row.is_member)) {
        return TALK_MORE;
    }
    return took == ROWS_ROW && take_record(job, &row) ? TALK_MORE : TALK_WRONG;
}

static bool
look_at_dump(struct verify *job)
{
    char question[256];
    (void)snprintf(question, sizeof question, "dump counter %s%s%s\r\n",
        job->counter, job->rule[0] == '\0' ? "" : " of ", job->rule);
    if (!talk_ask(
            &job->ask.talk, question, strlen(question), take_dumped, job)) {
        return job->why[0] != '\0'
            ? false
            : verify__fail(job, "%s", job->ask.talk.why);
    }
    return compare(job);
}

/* The ids of --more. */
static bool
look_at_more(struct verify *job)
{
    char line[NAME_BYTES_MAX + 64];
    struct rows_id id;
    FILE *file = job->more == NULL ? NULL : fopen(job->more, "re");
    bool is_right = job->more == NULL || file != NULL ||
        verify__fail(job, "%s: %s", job->more, strerror(errno));
    while (
        is_right && file != NULL && fgets(line, sizeof line, file) != NULL) {
        size_t len = strcspn(line, "\r\n");
        if (!rows_id_of(&job->columns, line, len, &id)) {
            is_right = verify__fail(
                job, "%s: %.*s is no id", job->more, (int)len, line);
            continue;
        }
        add_id(job, &id);
        if (job->n == TRUTH_BATCH_MAX) {
            is_right = verify__read_here(job) && compare(job);
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return is_right && verify__read_here(job) && compare(job);
}

/* ---- later looks ---- */

static int
compare_suspects(const void *left, const void *right)
{
    const struct suspect *a = left, *b = right;
    int compared = rows_compare_ids(&a->id, &b->id);
    return compared != 0 ? compared : (int)a->column - (int)b->column;
}

static void
forget_name(struct suspect *suspect)
{
    free((void *)(uintptr_t)suspect->id.name);
}

/* What came twice, in the dump and in --more, is one. */
static void
make_single(struct verify *job)
{
    size_t n = 0;
    if (job->n_suspects == 0) {
        return;
    }
    qsort(
        job->suspect, job->n_suspects, sizeof *job->suspect, compare_suspects);
    for (size_t i = 1; i < job->n_suspects; i++) {
        struct suspect *one = &job->suspect[i];
        if (compare_suspects(&job->suspect[n], one) != 0) {
            job->suspect[++n] = *one;
            continue;
        }
        if (job->suspect[n].here != one->here ||
            job->suspect[n].truth != one->truth) {
            job->suspect[n].has_moved = true;
        }
        forget_name(one);
    }
    job->n_suspects = n + 1;
}

/* The batch is of suspects from first on. */
static bool
look_again_at(struct verify *job, size_t first, size_t end)
{
    if (!verify__read_here(job) ||
        !truth_ask(&job->truth, job->id, job->n, job->there, job->is_known)) {
        return job->why[0] != '\0' ? false
                                   : verify__fail(job, "%s", job->truth.why);
    }
    unsigned at = 0;
    for (size_t i = first; i < end; i++) {
        struct suspect *one = &job->suspect[i];
        at += rows_compare_ids(&job->id[at], &one->id) != 0;
        size_t cell = (size_t)at * job->n_columns + one->column;
        one->has_moved = one->has_moved || !job->is_known[at] ||
            job->here[cell] != one->here || job->there[cell] != one->truth;
        one->is_even =
            job->is_known[at] && job->here[cell] == job->there[cell];
    }
    job->n = 0;
    return true;
}

static bool
look_again(struct verify *job)
{
    size_t first = 0;
    if (!ask_connect(&job->ask)) { /* the one before was idle for long */
        return verify__fail(job, "%s", job->ask.talk.why);
    }
    for (size_t i = 0; i < job->n_suspects; i++) {
        const struct rows_id *id = &job->suspect[i].id;
        if (job->n > 0 && rows_compare_ids(&job->id[job->n - 1], id) == 0) {
            continue;
        }
        if (job->n == TRUTH_BATCH_MAX) {
            if (!look_again_at(job, first, i)) {
                return false;
            }
            first = i;
        }
        job->id[job->n++] = *id;
    }
    return job->n == 0 || look_again_at(job, first, job->n_suspects);
}

static bool
settle(struct verify *job)
{
    for (uint64_t s = 0; s < job->settle_s; s++) {
        stop_sleep(&job->stop, MS_PER_S);
        if (stop_is_asked(&job->stop)) {
            return false;
        }
    }
    return true;
}

/* ---- what came out ---- */

static void
judge(struct verify *job)
{
    for (size_t i = 0; i < job->n_suspects; i++) {
        const struct suspect *one = &job->suspect[i];
        if (!verify__is_drift(one)) {
            job->moving += !one->is_even;
            continue;
        }
        job->drifts++;
        if (job->ask.is_json) {
            continue;
        }
        buf_clear(&job->text);
        rows_put_id(&one->id, &job->text);
        (void)fwrite(job->text.data, 1, job->text.len, stdout);
        (void)printf(".%s is %" PRIu64 ", the truth is %" PRIu64 "\n",
            job->columns.name[job->column[one->column]].text, one->here,
            one->truth);
    }
}

/* What a replica lacks is still to come: a correction would count it twice. */
static bool
is_primary(struct verify *job)
{
    struct figures figures = {.error = ""};
    if (!ask_stats(&job->ask, "replication", &figures)) {
        figures_fini(&figures);
        return verify__fail(job, "%s", job->ask.talk.why);
    }
    const char *role = figures_text(&figures, "role");
    bool is_so = figures.error[0] == '\0' &&
        (role == NULL || strcmp(role, "primary") == 0);
    if (!is_so) {
        (void)verify__fail(job,
            "--fix is for a primary, and %s %s%.100s: nothing is corrected; "
            "give the primary as --server",
            job->ask.talk.at.text,
            figures.error[0] == '\0' ? "has the role " : "answers ",
            figures.error[0] == '\0' ? role : figures.error);
    }
    figures_fini(&figures);
    return is_so;
}

static bool
run(struct verify *job)
{
    uint64_t n = 0;
    if (!ask_connect(&job->ask) ||
        !peer_columns(&job->ask.talk, job->counter, &job->columns, &n)) {
        return verify__fail(job, "%s", job->ask.talk.why);
    }
    if (!take_columns(job) ||
        (job->is_fixing && !(is_primary(job) && verify__finish_before(job)))) {
        return false;
    }
    job->corrected = job->refused = 0;
    shown_begin(&job->shown, "ids", job->rule[0] == '\0' ? n : 0);
    if (!look_at_dump(job) || !look_at_more(job)) {
        return false;
    }
    make_single(job);
    for (unsigned i = 1; i < VERIFY_LOOKS && job->n_suspects > 0; i++) {
        if (!settle(job) || !look_again(job)) {
            return job->why[0] != '\0'
                ? false
                : verify__fail(job, "ended by a signal: nothing is corrected");
        }
    }
    judge(job);
    return !job->is_fixing || job->drifts == 0 || verify__correct(job);
}

static int
say(struct verify *job)
{
    struct buf out = {0};
    bool is_well = job->drifts == job->corrected;
    (void)fprintf(stderr,
        "tallyctl: %" PRIu64 " id%s of %s: %" PRIu64 " number%s for good, "
        "%" PRIu64 " of them are corrected; %" PRIu64 " still moved, and of "
        "%" PRIu64 " id%s the truth knows nothing\n",
        job->looked, num_plural(job->looked), job->counter, job->drifts,
        job->drifts == 1 ? " differs" : "s differ", job->corrected,
        job->moving, job->unknown, num_plural(job->unknown));
    if (job->ask.is_json) {
        buf_addf(&out,
            "{\"ids\":%" PRIu64 ",\"drifts\":%" PRIu64
            ",\"corrected\":%" PRIu64 ",\"refused\":%" PRIu64
            ",\"moving\":%" PRIu64 ",\"unknown\":%" PRIu64 "}\n",
            job->looked, job->drifts, job->corrected, job->refused,
            job->moving, job->unknown);
    }
    int status = ask_write(&out);
    return status == EXIT_SUCCESS && is_well ? EXIT_SUCCESS : ASK_EXIT_BAD;
}

static int
run_and_say(struct verify *job)
{
    if (stop_init(&job->stop, 0) != 0) {
        return ask_fail("signals cannot be asked for");
    }
    bool is_done = run(job);
    shown_end(&job->shown);
    return is_done ? say(job) : ask_fail("%s", job->why);
}

int
verify_main(int argc, char *const argv[])
{
    static struct verify job;
    job.stop.fd = -1;
    job.settle_s = SETTLE_DEFAULT;
    job.suspects_most = SUSPECTS_DEFAULT;
    job.truth.timeout_s = TRUTH_TIMEOUT_S;
    job.truth.stop = &job.stop;
    int status = ask_begin(&job.ask, &command, &job, argc, argv);
    if (status == ASK_GO_ON) {
        const char *why = misfit(&job);
        status = why == NULL ? run_and_say(&job) : ask_misused(&job.ask, why);
    }
    ask_fini(&job.ask);
    stop_fini(&job.stop);
    buf_fini(&job.text);
    for (size_t i = 0; i < job.n_suspects; i++) {
        forget_name(&job.suspect[i]);
    }
    free(job.suspect);
    return status;
}
