/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TALLYQ_SETUP_H
#define TALLYQ_SETUP_H

#include "base/buf.h"
#include "client/command_line.h"
#include "client/talk.h"
#include "tallyq/source.h"

/* The command line of tallyq. --help and the manual page come out of the one
 * table. One thread. */

/* Name, what stands behind it ("": nothing), text. */
#define SETUP_TABLE(X)                                                        \
    X(from, "QUEUE",                                                          \
        "the queue that is read: redis://HOST[:PORT]/STREAM, "                \
        "nats://HOST[:PORT]/STREAM or kafka://HOST[:PORT]/TOPIC/PARTITION")   \
    X(server, "HOST:PORT[,HOST:PORT...]",                                     \
        "where tallyd is: all nodes of a group, of which the primary is "     \
        "found")                                                              \
    X(name, "NAME",                                                           \
        "under which changes are numbered and the position is kept: 1 to 32 " \
        "letters, digits, '_', '.' or '-', of one queue only; default: the "  \
        "stream's name, or TOPIC.PARTITION")                                  \
    X(aside, "FILE",                                                          \
        "where that is put which cannot be counted; default: NAME.aside")     \
    X(batch, "NUM",                                                           \
        "messages that are counted together at most, 1 to 100000; default: "  \
        "10000")                                                              \
    X(linger, "MS",                                                           \
        "milliseconds that a batch waits for more messages, 0 to 60000: the " \
        "longer, the more of one cell are merged; default: 10")               \
    X(progress, "SECONDS",                                                    \
        "between two lines about progress, 0 to 86400, 0: none; default: 10") \
    X(login, "FILE",                                                          \
        "a file with a line USER:PASSWORD for tallyd's --auth-file")          \
    X(verbose, "", "says what it does, too")                                  \
    X(help, "", "says this")                                                  \
    X(version, "", "says which version this is, and what queues it reads")

enum setup_do { SETUP_RUN, SETUP_HELP, SETUP_MAN, SETUP_VERSION };

enum {
    SETUP_TIMEOUT_MS = 10000 /* without a byte of a server */
};

struct setup {
    enum setup_do what;
    struct source from;
    struct talk talk; /* its servers */
    char name[PRODUCER_NAME_MAX + 1];
    const char *aside; /* of argv, or in aside_name */
    char aside_name[PRODUCER_NAME_MAX + sizeof ".aside"];
    uint64_t batch, linger_ms, progress_s;
    char login[COMMAND_LINE_LOGIN_MAX + 1]; /* "USER PASSWORD"; "": none */
    bool is_verbose;
    struct command_line line; /* its why: where something is wrong */
};

/* False with why where the command line says something wrong. */
bool setup_parse(struct setup *setup, int argc, char *const argv[]);

/* What --help, or the manual page, says about the options. */
void setup_help(enum setup_do what, struct buf *out);

#endif
