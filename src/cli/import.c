/* SPDX-License-Identifier: BSD-3-Clause */
/* import: the command line, the file that says how far it is, and which source
 * it is. */
#include "cli/import.h"

#include "base/num.h"
#include "cli/import_priv.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    REJECTS_DEFAULT = 1000,
    REJECTS_MOST = 1000000000,
    DATABASE_MAX = 65535
};

#define TABLE(X)                                                               \
    X(format, "format", "FORMAT",                                              \
        "what INPUT is: csv, tsv, ndjson or dialect, a file of rows; rdb, a "  \
        "file of Redis; redis or memcached, HOST:PORT of a server that runs; " \
        "default: csv")                                                        \
    X(counter, "counter", "NAME",                                              \
        "of a file of rows: the counter they are of")                          \
    X(columns, "columns", "NAME[,NAME...]",                                    \
        "of csv and tsv without a header, as MySQL writes them: what its "     \
        "fields are: id, columns, and - for what is passed over")              \
    X(members, "members", "COLUMN",                                            \
        "of csv and tsv: the rows are members of this column: id, member, "    \
        "value")                                                               \
    X(map, "map", "PATTERN=COUNTER.COLUMN",                                    \
        "of rdb, redis and memcached: keys like post:{id}:likes are this "     \
        "column; PATTERN[FIELD] is a field of a hash; where the column has "   \
        "members the key is a set; may be said 64 times")                      \
    X(db, "db", "NUM", "of rdb and redis: which database; default: 0")         \
    X(state, "state", "FILE",                                                  \
        "where it is kept how far it is, so that the same command goes on")    \
    X(anew, "anew", "", "begins anew whatever --state says")                   \
    X(rejects, "rejects", "FILE",                                              \
        "what is refused, each with the reason in front of it; default: the "  \
        "first ten are said")                                                  \
    X(rejects_most, "rejects-most", "NUM",                                     \
        "ends when more are refused; default: 1000")                           \
    X(no_end, "no-end", "",                                                    \
        "the file need not have the last line that export writes")             \
    X(feed, "feed", "",                                                        \
        "stores ids that are another server's, too, by a handover or by "      \
        "--owns: see `feed on` of tallyd")

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

/* ---- the command line ---- */

static bool
take_format(struct import *job, const char *value)
{
    if (rows_format_of(value, &job->format)) {
        job->source = IMPORT_FILE;
        return true;
    }
    static const struct {
        const char *name;
        enum import_source source;
    } sources[] = {{"rdb", IMPORT_RDB}, {"redis", IMPORT_REDIS},
        {"memcached", IMPORT_MEMCACHED}};
    for (unsigned i = 0; i < sizeof sources / sizeof *sources; i++) {
        if (strcmp(value, sources[i].name) == 0) {
            job->source = sources[i].source;
            return true;
        }
    }
    return command_line_fail(&job->ask.line,
        "--format is csv, tsv, ndjson, dialect, rdb, redis or memcached");
}

static bool
take_map(struct import *job, const char *value)
{
    const char *why = import_map_add(&job->map, value);
    return why == NULL || command_line_fail(&job->ask.line, "--map %s", why);
}

static bool
take_row(struct ask *ask, unsigned row, const char *value)
{
    struct import *job = ask->context;
    struct command_line *line = &ask->line;
    switch ((enum row_id)row) {
    case ROW_format:
        return take_format(job, value);
    case ROW_counter:
        job->counter = value;
        return true;
    case ROW_columns:
        job->columns_text = value;
        return true;
    case ROW_members:
        job->members_name = value;
        return true;
    case ROW_map:
        return take_map(job, value);
    case ROW_db:
        return command_line_number(
            line, row, value, 0, DATABASE_MAX, &job->database);
    case ROW_state:
        job->state = value;
        return strlen(value) < IMPORT_PATH_MAX - 8 ||
            command_line_fail(line, "--state: the name is too long");
    case ROW_anew:
        job->is_anew = true;
        return true;
    case ROW_rejects:
        job->rejects = value;
        return true;
    case ROW_rejects_most:
        return command_line_number(
            line, row, value, 0, REJECTS_MOST, &job->rejects_most);
    case ROW_no_end:
        job->has_no_end = true;
        return true;
    case ROW_feed:
        job->is_feed = true;
        return true;
    case ROWS_N:
        break;
    }
    return false;
}

static const struct ask_command command = {.name = "import",
    .usage =
        "usage: tallyctl import INPUT [OPTION]...\n"
        "Stores the records of a file (- is standard input) or of another "
        "server. The\nsame once more changes nothing.\n",
    .row = rows,
    .n_rows = ROWS_N,
    .n_words_max = 1,
    .take_fn = take_row};

/* What is wrong with the options together; NULL: nothing. */
static const char *
misfit(struct import *job)
{
    bool has_fields = job->source == IMPORT_FILE &&
        (job->format == ROWS_CSV || job->format == ROWS_TSV);
    bool is_address =
        job->source == IMPORT_REDIS || job->source == IMPORT_MEMCACHED;
    if (job->ask.line.n_words == 0) {
        return "import what? tallyctl import INPUT; see --help";
    }
    job->input = job->ask.line.word[0];
    if (job->source == IMPORT_FILE && job->counter == NULL) {
        return "--counter must be given";
    }
    if ((job->source == IMPORT_FILE) != (job->map.n == 0)) {
        return job->map.n == 0 ? "--map must be given, once or more often"
                               : "--map is for rdb, redis and memcached";
    }
    if (!has_fields &&
        (job->columns_text != NULL || job->members_name != NULL)) {
        return "--columns and --members are for csv and tsv";
    }
    if (job->source == IMPORT_MEMCACHED && job->state != NULL) {
        return "--state is not for memcached, which lists its keys in one go: "
               "to begin anew does no harm";
    }
    return is_address && !talk_is_address(job->input, strlen(job->input))
        ? "INPUT is HOST:PORT of the other server"
        : NULL;
}

/* ---- running ---- */

static bool
open_rejects(struct import *job)
{
    uint64_t bytes = job->place.reject_bytes;
    struct stat is = {0};
    if (job->rejects == NULL) {
        return true;
    }
    job->rejects_file = fopen(job->rejects, bytes == 0 ? "we" : "r+e");
    if (job->rejects_file == NULL ||
        fstat(fileno(job->rejects_file), &is) != 0) {
        return import__fail(job, "%s: %s", job->rejects, strerror(errno));
    }
    if ((uint64_t)is.st_size < bytes) {
        return import__fail(job,
            "%s has been cut off since: give --anew to begin at the first row",
            job->rejects);
    }
    return (ftruncate(fileno(job->rejects_file), (off_t)bytes) == 0 &&
               fseeko(job->rejects_file, 0, SEEK_END) == 0) ||
        import__fail(job, "%s: %s", job->rejects, strerror(errno));
}

static bool
know_map(struct import *job)
{
    for (unsigned i = 0; i < job->map.n; i++) {
        struct import_rule *rule = &job->map.rule[i];
        const struct rows_columns *columns =
            import__columns(job, rule->counter.text);
        if (columns == NULL) {
            return false;
        }
        const char *why = import_map_know(rule, columns);
        if (why != NULL) {
            return import__fail(job, "--map ...=%s.%s: %s", rule->counter.text,
                rule->column.text, why);
        }
    }
    return true;
}

static bool
read_source(struct import *job)
{
    switch (job->source) {
    case IMPORT_FILE:
        return import__file(job);
    case IMPORT_RDB:
        return import__rdb(job);
    case IMPORT_REDIS:
        return import__redis(job);
    case IMPORT_MEMCACHED:
        return import__memcached(job);
    }
    return false;
}

static bool
run(struct import *job)
{
    return import__load_state(job) && open_rejects(job) && know_map(job) &&
        import__finish(job, read_source(job)) && import__save_state(job);
}

static int
say(struct import *job, bool is_done)
{
    const struct import_place *place = &job->place;
    bool is_whole = is_done && place->rejects == 0;
    shown_end(&job->shown);
    if (!is_done) {
        (void)ask_fail("%s", job->why);
    }
    (void)fprintf(stderr,
        "tallyctl: %" PRIu64 " %s stored, %" PRIu64 " refused%s%s\n",
        place->rows, place->rows == 1 ? "row is" : "rows are", place->rejects,
        place->rejects > 0 && job->rejects != NULL ? ", see " : "",
        place->rejects > 0 && job->rejects != NULL ? job->rejects : "");
    if (!is_done && job->may_save) {
        (void)import__save_state(job);
        (void)fprintf(stderr, "tallyctl: the same command goes on there\n");
    }
    if (job->ask.is_json) {
        struct buf out = {0};
        buf_addf(&out,
            "{\"rows\":%" PRIu64 ",\"rejects\":%" PRIu64 ",\"is_whole\":%s}\n",
            place->rows, place->rejects, is_whole ? "true" : "false");
        is_whole = ask_write(&out) == EXIT_SUCCESS && is_whole;
    }
    return is_whole ? EXIT_SUCCESS : ASK_EXIT_BAD;
}

static void
finish(struct import *job)
{
    ask_fini(&job->ask);
    stop_fini(&job->stop);
    import__free_batches(job);
    if (job->rejects_file != NULL) {
        (void)fclose(job->rejects_file);
    }
}

int
import_main(int argc, char *const argv[])
{
    static struct import job;
    job.stop.fd = -1;
    job.rejects_most = REJECTS_DEFAULT;
    int status = ask_begin(&job.ask, &command, &job, argc, argv);
    if (status == ASK_GO_ON) {
        const char *why = misfit(&job);
        status = why != NULL ? ask_misused(&job.ask, why)
            : stop_init(&job.stop, 0) == 0
            ? say(&job, run(&job))
            : ask_fail("signals cannot be asked for");
    }
    finish(&job);
    return status;
}
