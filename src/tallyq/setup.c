/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line, option by option; what is not given is set at the end. */
#include "tallyq/setup.h"

#include "tallyq/feed.h"

#include <string.h>

enum id {
#define X(name, argument, text) ID_##name,
    SETUP_TABLE(X)
#undef X
        ID_COUNT
};

static const struct command_line_row rows[ID_COUNT] = {
#define X(name, argument, text) {#name, argument, text},
    SETUP_TABLE(X)
#undef X
};

static bool
take_name(struct setup *setup, const char *text)
{
    struct producer_name name;
    if (!producer_name_set(&name, text, strlen(text))) {
        return command_line_fail(&setup->line,
            "--name is 1 to %d letters, digits, '_', '.' or "
            "'-'",
            PRODUCER_NAME_MAX);
    }
    memcpy(setup->name, name.text, name.len);
    setup->name[name.len] = '\0';
    return true;
}

static bool
take(struct command_line *line, unsigned row, const char *value)
{
    struct setup *setup = line->context;
    const char *why = NULL;
    switch ((enum id)row) {
    case ID_from:
        why = source_parse(value, &setup->from);
        return why == NULL || command_line_fail(line, "--from: %s", why);
    case ID_server:
        why = talk_take_servers(&setup->talk, value);
        return why == NULL || command_line_fail(line, "--server %s", why);
    case ID_name:
        return take_name(setup, value);
    case ID_aside:
        setup->aside = value;
        return true;
    case ID_batch:
        return command_line_number(
            line, row, value, 1, FEED_MESSAGES_MAX, &setup->batch);
    case ID_linger:
        return command_line_number(
            line, row, value, 0, 60000, &setup->linger_ms);
    case ID_progress:
        return command_line_number(
            line, row, value, 0, 86400, &setup->progress_s);
    case ID_login:
        return command_line_login(line, row, value, setup->login);
    case ID_verbose:
        setup->is_verbose = true;
        return true;
    case ID_help:
        setup->what = value != NULL && strcmp(value, "man") == 0 ? SETUP_MAN
                                                                 : SETUP_HELP;
        return true;
    case ID_version:
        setup->what = SETUP_VERSION;
        return true;
    case ID_COUNT:
        break;
    }
    return false;
}

static bool
finish(struct setup *setup)
{
    struct producer_name name;
    if (setup->what != SETUP_RUN) {
        return true;
    }
    if (setup->from.hosts[0] == '\0' || setup->talk.n_servers == 0) {
        return command_line_fail(
            &setup->line, "--from and --server must be given");
    }
    if (setup->name[0] == '\0') {
        if (!source_name(&setup->from, &name)) {
            return command_line_fail(&setup->line,
                "the queue's name cannot be that of a "
                "producer: give --name=NAME");
        }
        memcpy(setup->name, name.text, name.len);
        setup->name[name.len] = '\0';
    }
    if (setup->aside == NULL) {
        (void)snprintf(setup->aside_name, sizeof setup->aside_name, "%s.aside",
            setup->name);
        setup->aside = setup->aside_name;
    }
    return true;
}

bool
setup_parse(struct setup *setup, int argc, char *const argv[])
{
    *setup = (struct setup){.batch = 10000, .linger_ms = 10, .progress_s = 10};
    setup->line = (struct command_line){
        .row = rows, .n_rows = ID_COUNT, .take_fn = take, .context = setup};
    setup->talk.fd = -1;
    setup->talk.timeout_ms = SETUP_TIMEOUT_MS;
    return command_line_read(&setup->line, argc, argv) && finish(setup);
}

void
setup_help(enum setup_do what, struct buf *out)
{
    if (what == SETUP_MAN) {
        command_line_man(rows, ID_COUNT, out);
        return;
    }
    buf_add_text(out,
        "usage: tallyq --from=QUEUE --server=HOST:PORT [OPTION]...\n"
        "Counts each message of a queue in tallyd, once: lines KEY DELTA.\n"
        "doc/queues.md and tallyq(1) say more.\n\n");
    command_line_help(rows, ID_COUNT, out);
}
