/* SPDX-License-Identifier: BSD-3-Clause */
/* tallyctl: commands for who runs tallyd, one row each. Exit status 2 for a
 * wrong command line; else that of the command: 0 where it is well. */
#include "config.h"

#include "cli/ask.h"
#include "cli/backup.h"
#include "cli/demo.h"
#include "cli/export.h"
#include "cli/import.h"
#include "cli/listing.h"
#include "cli/ping.h"
#include "cli/plan.h"
#include "cli/reshard.h"
#include "cli/schema_command.h"
#include "cli/status.h"
#include "cli/top.h"
#include "cli/verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Name, function (argv[0] is the command), text. */
#define COMMANDS(X)                                                           \
    X("status", status_main, "what is wrong, what to do, and how it goes")    \
    X("ping", ping_main, "does it answer, and is it ready?")                  \
    X("top", top_main, "what it does, by verb, id and client, live")          \
    X("slow", listing_slow_main, "commands that took long, and why")          \
    X("hot", listing_hot_main, "ids that are asked for most")                 \
    X("clients", listing_clients_main, "who is connected; or ends one")       \
    X("schema", schema_command_main,                                          \
        "shows the counters, compares them with a file, adds what it lacks")  \
    X("export", export_main, "writes a counter's records to a file")          \
    X("import", import_main,                                                  \
        "stores the records of a file, or of Redis or memcached")             \
    X("verify", verify_main,                                                  \
        "compares a counter with what should be in it, and corrects it")      \
    X("plan", plan_main, "memory, disk and start of a server to be")          \
    X("demo", demo_main,                                                      \
        "a million posts: what they take, and how fast they are read")        \
    X("backup", backup_main,                                                  \
        "copies the data directory of a running server; verifies copies")     \
    X("restore", restore_main, "makes a data directory of a backup")          \
    X("reshard", reshard_main,                                                \
        "moves the records of some ids to a new group while they change")

enum { EXIT_USAGE = 2 };

static const struct {
    const char *name;
    int (*main_fn)(int argc, char *const argv[]);
    const char *text;
} commands[] = {
#define X(name, fn, text) {name, fn, text},
    COMMANDS(X)
#undef X
};

static int
say_help(FILE *out)
{
    (void)fprintf(out,
        "usage: tallyctl COMMAND [OPTION]...\n"
        "Commands for who runs tallyd; tallyctl help COMMAND says more.\n"
        "\n");
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        (void)fprintf(out, "  %-12s %s\n", commands[i].name, commands[i].text);
    }
    return fflush(out) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int
run(const char *name, int argc, char *const argv[])
{
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        if (strcmp(name, commands[i].name) == 0) {
            return commands[i].main_fn(argc, argv);
        }
    }
    (void)fprintf(
        stderr, "tallyctl: no command %s; see tallyctl --help\n", name);
    return EXIT_USAGE;
}

/* `help COMMAND` is `COMMAND --help`; `help --help=man` what the manual page
 * says of the options that all commands have. */
static int
help(int argc, char *const argv[])
{
    static char option[] = "--help";
    if (argc > 2) {
        (void)fprintf(stderr, "tallyctl: help takes one command\n");
        return EXIT_USAGE;
    }
    if (argc == 2 && strcmp(argv[1], "--help=man") == 0) {
        struct buf out = {0};
        ask_man_shared(&out);
        return ask_write(&out);
    }
    char *const asked[] = {argv[argc - 1], option, NULL};
    return argc == 1 ? say_help(stdout) : run(argv[1], 2, asked);
}

int
main(int argc, char *argv[])
{
    if (argc < 2) {
        (void)say_help(stderr);
        return EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0) {
        return say_help(stdout);
    }
    if (strcmp(argv[1], "--version") == 0) {
        return printf("tallyctl %s\n", PACKAGE_VERSION) > 0 ? EXIT_SUCCESS
                                                            : EXIT_FAILURE;
    }
    return strcmp(argv[1], "help") == 0 ? help(argc - 1, argv + 1)
                                        : run(argv[1], argc - 1, argv + 1);
}
