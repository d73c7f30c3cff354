/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of reshard, option by option; what is not given is set at
 * the end. */
#include "cli/reshard_setup.h"

#include "base/err.h"
#include "base/small_file.h"

#include <stdio.h>
#include <string.h>

enum { RATE_MAX = 100000000 };

enum id {
#define X(id, name, argument, text) ID_##id,
    RESHARD_SETUP_TABLE(X)
#undef X
        ID_COUNT
};

static const struct command_line_row rows[ID_COUNT] = {
#define X(id, name, argument, text) {name, argument, text},
    RESHARD_SETUP_TABLE(X)
#undef X
};

static bool
take_servers(struct command_line *line, unsigned row, const char *value,
    struct talk *talk)
{
    const char *why = talk_take_servers(talk, value);
    return why == NULL ||
        command_line_fail(line, "--%s %s", line->row[row].name, why);
}

static bool
take_name(struct command_line *line, unsigned row, const char *value,
    char out[ADDRESS_MAX + 1])
{
    if (!talk_is_address(value, strlen(value))) {
        return command_line_fail(
            line, "--%s is HOST:PORT", line->row[row].name);
    }
    memcpy(out, value, strlen(value) + 1);
    return true;
}

static void
drop_rule(struct reshard_setup *setup)
{
    if (setup->owns != NULL) {
        owns_destroy(&setup->owns);
    }
}

static bool
take_rule(struct reshard_setup *setup, const char *value)
{
    drop_rule(setup);
    int err = owns_create_rule(value, strlen(value), &setup->owns);
    if (err != 0) {
        return command_line_fail(&setup->line, "--ids: %s", err_text(err));
    }
    memcpy(setup->rule, owns_rule(setup->owns),
        strlen(owns_rule(setup->owns)) + 1);
    return true;
}

static bool
take_secret(struct reshard_setup *setup, const char *path)
{
    const struct small_file file = {.option = "--repl-secret-file",
        .what = "the secret",
        .path = path,
        .least = PROOF_SECRET_MIN,
        .most = PROOF_SECRET_MAX,
        .is_private = true};
    char bytes[PROOF_SECRET_MAX + 1];
    struct buf why = {0};
    size_t n = 0;
    if (!proof_is_there()) {
        return command_line_fail(
            &setup->line, "--repl-secret-file: a build without OpenSSL");
    }
    int err = small_file_read(&file, bytes, &n, &why);
    if (err == 0) {
        memcpy(setup->secret.bytes, bytes, n);
        setup->secret.n_bytes = n;
    } else {
        (void)command_line_fail(&setup->line, "%.*s", (int)why.len, why.data);
    }
    explicit_bzero(bytes, sizeof bytes);
    buf_fini(&why);
    return err == 0;
}

static bool
take_secure(struct reshard_setup *setup, unsigned row, const char *value)
{
    const char *why = secure_take(&setup->secure, rows[row].name, value);
    return why == NULL ||
        command_line_fail(&setup->line, "--%s %s", rows[row].name, why);
}

static bool
take(struct command_line *line, unsigned row, const char *value)
{
    struct reshard_setup *setup = line->context;
    switch ((enum id)row) {
    case ID_from:
        return take_servers(line, row, value, &setup->from);
    case ID_from_repl:
        return take_servers(line, row, value, &setup->from_repl);
    case ID_to:
        return take_servers(line, row, value, &setup->to);
    case ID_ids:
        return take_rule(setup, value);
    case ID_state:
        setup->state = value;
        return true;
    case ID_cut_over:
        setup->is_cut_over = true;
        return true;
    case ID_unsafe:
        setup->is_unsafe = true;
        return true;
    case ID_anew:
        setup->is_anew = true;
        return true;
    case ID_json:
        setup->is_json = true;
        return true;
    case ID_from_name:
        return take_name(line, row, value, setup->from_name);
    case ID_to_name:
        return take_name(line, row, value, setup->to_name);
    case ID_user_file:
        return command_line_login(line, row, value, setup->login);
    case ID_tls:
    case ID_tls_ca:
    case ID_tls_name:
    case ID_tls_cert:
    case ID_tls_key:
        return take_secure(setup, row, value);
    case ID_repl_secret_file:
        return take_secret(setup, value);
    case ID_rate:
        return command_line_number(
            line, row, value, 0, RATE_MAX, &setup->rate);
    case ID_help:
        setup->what = value != NULL && strcmp(value, "man") == 0
            ? RESHARD_DO_MAN
            : RESHARD_DO_HELP;
        return true;
    case ID_COUNT:
        break;
    }
    return false;
}

static bool
finish(struct reshard_setup *setup)
{
    struct command_line *line = &setup->line;
    char why[SECURE_WHY_MAX + 1];
    if (setup->what != RESHARD_DO_RUN) {
        return true;
    }
    if (setup->from.n_servers == 0 || setup->from_repl.n_servers == 0 ||
        setup->to.n_servers == 0 || setup->owns == NULL ||
        setup->state == NULL) {
        return command_line_fail(line,
            "--from, --from-repl, --to, --ids and --state must be given; see "
            "--help");
    }
    if (setup->from.n_servers != setup->from_repl.n_servers) {
        return command_line_fail(line,
            "--from and --from-repl are of the same nodes, in the same order");
    }
    if (setup->from_name[0] == '\0') {
        memcpy(setup->from_name, setup->from.server[0].text,
            sizeof setup->from_name);
    }
    if (setup->to_name[0] == '\0') {
        memcpy(
            setup->to_name, setup->to.server[0].text, sizeof setup->to_name);
    }
    if (strcmp(setup->from_name, setup->to_name) == 0) {
        return command_line_fail(line, "--from and --to are the same group");
    }
    setup->from.secure = setup->to.secure = &setup->secure;
    return secure_begin(&setup->secure, why) ||
        command_line_fail(line, "%s", why);
}

bool
reshard_setup_parse(struct reshard_setup *setup, int argc, char *const argv[])
{
    const struct talk talk = {.fd = -1, .timeout_ms = RESHARD_TALK_TIMEOUT_MS};
    *setup =
        (struct reshard_setup){.from = talk, .from_repl = talk, .to = talk};
    setup->line = (struct command_line){
        .row = rows, .n_rows = ID_COUNT, .take_fn = take, .context = setup};
    return command_line_read(&setup->line, argc, argv) && finish(setup);
}

void
reshard_setup_fini(struct reshard_setup *setup)
{
    drop_rule(setup);
    talk_fini(&setup->from);
    talk_fini(&setup->from_repl);
    talk_fini(&setup->to);
    secure_fini(&setup->secure);
    explicit_bzero(&setup->secret, sizeof setup->secret);
    explicit_bzero(setup->login, sizeof setup->login);
}

void
reshard_setup_help(enum reshard_do what, struct buf *out)
{
    if (what == RESHARD_DO_MAN) {
        command_line_man(rows, ID_COUNT, out);
        return;
    }
    buf_add_text(out,
        "usage: tallyctl reshard --from=HOST:PORT --from-repl=HOST:PORT\n"
        "       --to=HOST:PORT --ids=RULE:I/N --state=FILE [OPTION]...\n"
        "Moves the records of some ids to a new group while they change. It\n"
        "may be ended at any time, and goes on where the same is said again.\n"
        "doc/replication.md and tallyctl(1) say more.\n\n");
    command_line_help(rows, ID_COUNT, out);
}
