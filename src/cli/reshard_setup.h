/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CLI_RESHARD_SETUP_H
#define CLI_RESHARD_SETUP_H

#include "base/address.h"
#include "base/buf.h"
#include "base/owns.h"
#include "client/command_line.h"
#include "client/talk.h"
#include "repl/proof.h"

#include <stdbool.h>
#include <stdint.h>

/* The command line of tallyctl reshard. One thread. */

/* What the code calls it, name, what stands behind it ("": nothing), text. */
#define RESHARD_SETUP_TABLE(X)                                                \
    X(from, "from", "HOST:PORT[,HOST:PORT...]",                               \
        "the nodes of the old group, where clients reach them; records are "  \
        "read from the first that answers")                                   \
    X(from_repl, "from-repl", "HOST:PORT[,HOST:PORT...]",                     \
        "their --repl-port, in the same order; changes are read there")       \
    X(to, "to", "HOST:PORT[,HOST:PORT...]",                                   \
        "the nodes of the new group, of which the primary is found")          \
    X(ids, "ids", "RULE:I/N",                                                 \
        "which ids are moved, as --owns has it: crc32a:2/4 or modulo:2/4")    \
    X(state, "state", "FILE",                                                 \
        "where it is kept how far the move is; made if it is not there")      \
    X(cut_over, "cut-over", "",                                               \
        "the new group takes the changes as soon as it has them all; "        \
        "without it that waits for SIGUSR1, or for another run")              \
    X(unsafe, "unsafe", "",                                                   \
        "cut over although a failover of the old group could lose the "       \
        "handover, since its --semi-sync is 0")                               \
    X(anew, "anew", "",                                                       \
        "what the new group has of these ids is removed first, where it has " \
        "records already; needed where the file of a move is lost")           \
    X(from_name, "from-name", "HOST:PORT",                                    \
        "what clients of the new group are told until then; default: the "    \
        "first of --from")                                                    \
    X(to_name, "to-name", "HOST:PORT",                                        \
        "what clients of the old group are told from then on; default: the "  \
        "first of --to")                                                      \
    X(user_file, "user-file", "FILE",                                         \
        "a file with a line USER:PASSWORD of a user who may write, for both " \
        "groups")                                                             \
    SECURE_ROWS(X)                                                            \
    X(repl_secret_file, "repl-secret-file", "FILE",                           \
        "the secret of the old group's --repl-port")                          \
    X(rate, "rate", "NUM",                                                    \
        "lines a second that the new group is sent at most, 0: no limit; "    \
        "default: 0")                                                         \
    X(json, "json", "",                                                       \
        "how it has ended is written to standard output, for a program")      \
    X(help, "help", "", "says this")

enum reshard_do { RESHARD_DO_RUN, RESHARD_DO_HELP, RESHARD_DO_MAN };

enum { RESHARD_TALK_TIMEOUT_MS = 60000 /* without a byte of a server */ };

struct reshard_setup {
    enum reshard_do what;
    struct talk from, from_repl, to; /* their servers */
    struct secure secure;            /* of from and to; --repl-port is plain */
    struct owns *owns;               /* owned */
    char rule[OWNS_RULE_BYTES];
    const char *state; /* of argv */
    bool is_cut_over, is_unsafe, is_anew, is_json;
    char from_name[ADDRESS_MAX + 1], to_name[ADDRESS_MAX + 1];
    char login[COMMAND_LINE_LOGIN_MAX + 1]; /* "USER PASSWORD"; "": none */
    struct proof_secret secret;
    uint64_t rate;
    struct command_line line; /* its why: where something is wrong */
};

/* False with why where the command line says something wrong. In any case
 * reshard_setup_fini is due. */
bool reshard_setup_parse(
    struct reshard_setup *setup, int argc, char *const argv[]);
void reshard_setup_fini(struct reshard_setup *setup);

/* What --help, or the manual page, says about the options. */
void reshard_setup_help(enum reshard_do what, struct buf *out);

#endif
