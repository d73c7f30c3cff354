/* SPDX-License-Identifier: BSD-3-Clause */
/* All three are rows of KEY=VALUE words, once those of connections have been
 * joined. Keys that are not known here are in --json only; known ones that no
 * row has, as of a server of another version, have no column. */
#include "cli/listing.h"

#include "base/assert.h"
#include "cli/amount.h"
#include "cli/ask.h"
#include "cli/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    VALUE_BYTES = 300,
    ROWS_DEFAULT = 20,
    ROWS_MOST = 1000000,
    KILL_BYTES = 64,
    SLOW_MS_MAX = 3600000,
    PERCENT = 100,
    MS_PER_S = 1000
};

static const struct listing_column columns_slow[] = {
    {"when", "at", LISTING_TIME}, {"us", "took", LISTING_US},
    {"why", "waited for", LISTING_TEXT}, {"verb", "verb", LISTING_TEXT},
    {"keys", "keys", LISTING_TEXT}, {"key", "key", LISTING_TEXT},
    {"bytes", "bytes", LISTING_BYTES}, {"parse_us", "parse", LISTING_US},
    {"lock_us", "lock", LISTING_US}, {"room_us", "room", LISTING_US},
    {"cold_us", "cold", LISTING_US}, {"commit_us", "commit", LISTING_US},
    {"socket_us", "socket", LISTING_US}, {"client", "client", LISTING_TEXT},
    {"user", "user", LISTING_TEXT}, {"conn", "conn", LISTING_TEXT},
    {NULL, NULL, LISTING_TEXT}};

const struct listing_column listing_hot[] = {{"key", "id", LISTING_TEXT},
    {"counter", "counter", LISTING_TEXT}, {"gets", "gets", LISTING_NUMBER},
    {"changes", "changes", LISTING_NUMBER}, {"share", "share", LISTING_SHARE},
    {NULL, NULL, LISTING_TEXT}};

const struct listing_column listing_clients[] = {
    {"conn", "conn", LISTING_TEXT}, {"addr", "client", LISTING_TEXT},
    {"user", "user", LISTING_TEXT}, {"tls", "tls", LISTING_TEXT},
    {"state", "state", LISTING_TEXT}, {"age", "age", LISTING_S},
    {"secs_since_last_cmd", "idle", LISTING_S},
    {"last_cmd", "last", LISTING_TEXT}, {"bytes_in", "read", LISTING_BYTES},
    {"bytes_out", "written", LISTING_BYTES}, {NULL, NULL, LISTING_TEXT}};

void
listing_value(
    enum listing_form form, const char *value, char *out, size_t size)
{
    char text[AMOUNT_BYTES];
    char *end = NULL;
    double number = strtod(value, &end);
    struct tm day;
    time_t second = (time_t)(number / MS_PER_S);
    if (end == value || *end != '\0' || !(number >= 0)) {
        form = LISTING_TEXT;
    }
    switch (form) {
    case LISTING_TEXT:
        (void)snprintf(out, size, "%s", value);
        return;
    case LISTING_NUMBER:
        amount_number(number, text);
        break;
    case LISTING_BYTES:
        amount_bytes(number, text);
        break;
    case LISTING_US:
        amount_us((uint64_t)number, text);
        break;
    case LISTING_S:
        amount_seconds(number, text);
        break;
    case LISTING_SHARE:
        (void)snprintf(text, sizeof text, "%.1f %%", number * PERCENT);
        break;
    case LISTING_TIME:
        if (localtime_r(&second, &day) == NULL ||
            strftime(text, sizeof text, "%H:%M:%S", &day) == 0) {
            (void)snprintf(text, sizeof text, "?");
        }
        break;
    }
    (void)snprintf(out, size, "%s", text);
}

static bool
has_key(const struct figures *rows, const char *key)
{
    const char *name = NULL, *value = NULL;
    char text[VALUE_BYTES];
    for (size_t at = 0; figures_next(rows, &at, &name, &value);) {
        if (figures_word(value, key, text, sizeof text)) {
            return true;
        }
    }
    return false;
}

void
listing_table(const struct listing_column *columns, const struct figures *rows,
    struct table *table)
{
    const struct listing_column *used[TABLE_COLUMNS_MAX];
    const char *head[TABLE_COLUMNS_MAX], *name = NULL, *value = NULL;
    char text[VALUE_BYTES], shown[VALUE_BYTES];
    unsigned n = 0;
    for (; columns->key != NULL; columns++) {
        if (has_key(rows, columns->key)) {
            ASSERT(n < TABLE_COLUMNS_MAX);
            head[n] = columns->head;
            used[n++] = columns;
        }
    }
    if (n == 0) {
        head[0] = "none";
        table_begin(table, head, 1);
        return;
    }
    table_begin(table, head, n);
    for (size_t at = 0; figures_next(rows, &at, &name, &value);) {
        for (unsigned i = 0; i < n; i++) {
            (void)figures_word(value, used[i]->key, text, sizeof text);
            listing_value(used[i]->form, text, shown, sizeof shown);
            table_cell(table, shown);
        }
    }
}

/* ---- connections ---- */

static void
end_conn(struct figures *out, struct buf *line, bool *is_listening)
{
    if (line->len > 0 && !*is_listening) {
        bool is_taken =
            !line->failed && figures_take(out, line->data, line->len);
        out->text.failed = out->text.failed || !is_taken;
    }
    *is_listening = false;
    buf_clear(line);
}

void
listing_join(const struct figures *conns, struct figures *out)
{
    const char *name = NULL, *value = NULL, *fd = "";
    struct buf line = {0};
    size_t fd_len = 0;
    bool is_listening = false;
    figures_clear(out);
    for (size_t at = 0; figures_next(conns, &at, &name, &value);) {
        size_t len = strcspn(name, ":");
        const char *key = name[len] == ':' ? name + len + 1 : name + len;
        if (len != fd_len || memcmp(fd, name, len) != 0) {
            end_conn(out, &line, &is_listening);
            fd = name;
            fd_len = len;
            buf_addf(
                &line, "STAT %.*s conn=%.*s", (int)len, name, (int)len, name);
        }
        is_listening = is_listening || strcmp(value, "conn_listening") == 0;
        buf_addf(&line, " %s=%s", key, value);
    }
    end_conn(out, &line, &is_listening);
    buf_fini(&line);
}

/* ---- the commands ---- */

struct listing {
    struct ask ask;
    const struct listing_column *columns;
    const char *stats; /* of the server */
    uint64_t rows_most;
    const char *kill; /* the connection that is to be ended; NULL: none */
    const char *set;  /* milliseconds from which on it is slow; likewise */
    struct figures told, rows;
};

/* The first is of all; the second is of one of them, whose it is. */
enum row { ROW_ROWS, ROW_OWN, ROWS_N };

#define ROW_OF_ALL                                                            \
    {                                                                         \
        "rows", "NUM", "how many rows are shown at most, 0: all; default: 20" \
    }

static const struct command_line_row rows_kill[ROWS_N] = {
    [ROW_ROWS] = ROW_OF_ALL,
    [ROW_OWN] = {"kill", "CONN",
        "ends the connection of that number, in place of showing them"},
};

static const struct command_line_row rows_set[ROWS_N] = {
    [ROW_ROWS] = ROW_OF_ALL,
    [ROW_OWN] = {"set", "MS",
        "what takes so many milliseconds is slow from now on, 0: nothing; in "
        "place of showing them. --slow of the server's next start is as it "
        "was"},
};

static bool
take_row(struct ask *ask, unsigned row, const char *value)
{
    struct listing *listing = ask->context;
    uint64_t number = 0;
    if (row == ROW_ROWS) {
        return command_line_number(
            &ask->line, row, value, 0, ROWS_MOST, &listing->rows_most);
    }
    bool is_kill = ask->command->row == rows_kill;
    *(is_kill ? &listing->kill : &listing->set) = value;
    return command_line_number(&ask->line, row, value, is_kill ? 1 : 0,
        is_kill ? UINT64_MAX : SLOW_MS_MAX, &number);
}

static void
add_json(const struct figures *figures, struct buf *out)
{
    const char *name = NULL, *value = NULL;
    char key[VALUE_BYTES], text[VALUE_BYTES];
    struct json json = {.out = out};
    json_open(&json, NULL, '[');
    for (size_t at = 0; figures_next(figures, &at, &name, &value);) {
        json_open(&json, NULL, '{');
        while (*value != '\0') {
            size_t len = strcspn(value, " "), key_len = strcspn(value, "= ");
            if (key_len < len && key_len < sizeof key) {
                memcpy(key, value, key_len);
                key[key_len] = '\0';
                (void)figures_word(value, key, text, sizeof text);
                json_figure(&json, key, text);
            }
            value += len;
            value += *value == ' ';
        }
        json_close(&json);
    }
    json_close(&json);
}

static int
show(struct listing *listing)
{
    struct ask *ask = &listing->ask;
    struct buf out = {0};
    struct table table = {.n_columns = 0};
    if (!ask_stats(ask, listing->stats, &listing->told)) {
        return ask_fail("%s", ask->talk.why);
    }
    if (listing->told.error[0] != '\0') {
        return ask_fail("%s answers `stats %s` with %s%s",
            ask->talk.server[0].text, listing->stats, listing->told.error,
            listing->told.is_name_unknown ? ": it is older than this program"
                                          : "");
    }
    bool is_conns = listing->columns == listing_clients;
    if (is_conns) {
        listing_join(&listing->told, &listing->rows);
    }
    const struct figures *shown = is_conns ? &listing->rows : &listing->told;
    if (ask->is_json) {
        add_json(shown, &out);
    } else {
        listing_table(listing->columns, shown, &table);
        table_print(&table,
            listing->rows_most == 0 ? ROWS_MOST : (unsigned)listing->rows_most,
            &out);
    }
    out.failed = out.failed || shown->text.failed;
    table_fini(&table);
    return ask_write(&out);
}

static int
end_one(struct listing *listing)
{
    struct ask *ask = &listing->ask;
    struct buf others = {0};
    char line[KILL_BYTES];
    (void)snprintf(line, sizeof line, "kill conn %s\r\n", listing->kill);
    bool is_ended = ask_lines(ask, line, "OK", &others);
    buf_fini(&others);
    return is_ended ? EXIT_SUCCESS
                    : ask_fail("connection %s was not ended: %s",
                          listing->kill, ask->talk.why);
}

static int
set_slow(struct listing *listing)
{
    struct ask *ask = &listing->ask;
    struct buf others = {0};
    char line[KILL_BYTES];
    (void)snprintf(line, sizeof line, "slow %s\r\n", listing->set);
    bool is_set = ask_lines(ask, line, "OK", &others);
    buf_fini(&others);
    return is_set ? EXIT_SUCCESS
                  : ask_fail("it stays as it was: %s", ask->talk.why);
}

static int
listing_main(struct listing *listing, const struct ask_command *command,
    int argc, char *const argv[])
{
    listing->rows_most = ROWS_DEFAULT;
    int status = ask_begin(&listing->ask, command, listing, argc, argv);
    if (status == ASK_GO_ON && !ask_connect(&listing->ask)) {
        status = ask_fail("%s", listing->ask.talk.why);
    } else if (status == ASK_GO_ON) {
        status = listing->kill != NULL ? end_one(listing)
            : listing->set != NULL     ? set_slow(listing)
                                       : show(listing);
    }
    figures_fini(&listing->told);
    figures_fini(&listing->rows);
    ask_fini(&listing->ask);
    return status;
}

int
listing_slow_main(int argc, char *const argv[])
{
    static const struct ask_command command = {.name = "slow",
        .usage = "usage: tallyctl slow [--set=MS] [OPTION]...\n"
                 "Commands that took long, the newest first, and what they "
                 "waited for;\nor sets what is long.\n",
        .row = rows_set,
        .n_rows = ROWS_N,
        .take_fn = take_row};
    static struct listing listing = {.columns = columns_slow, .stats = "slow"};
    return listing_main(&listing, &command, argc, argv);
}

int
listing_hot_main(int argc, char *const argv[])
{
    static const struct ask_command command = {.name = "hot",
        .usage = "usage: tallyctl hot [OPTION]...\n"
                 "Ids that are asked for and changed most of late, the "
                 "hottest first.\n",
        .row = rows_kill,
        .n_rows = ROW_OWN,
        .take_fn = take_row};
    static struct listing listing = {.columns = listing_hot, .stats = "hot"};
    return listing_main(&listing, &command, argc, argv);
}

int
listing_clients_main(int argc, char *const argv[])
{
    static const struct ask_command command = {.name = "clients",
        .usage = "usage: tallyctl clients [--kill=CONN] [OPTION]...\n"
                 "Connections: who, since when, what it does; or ends one.\n",
        .row = rows_kill,
        .n_rows = ROWS_N,
        .take_fn = take_row};
    static struct listing listing = {
        .columns = listing_clients, .stats = "conns"};
    return listing_main(&listing, &command, argc, argv);
}
