/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CLI_BACKUP_PRIV_H
#define CLI_BACKUP_PRIV_H

#include "base/log.h"
#include "cli/backup_copy.h"
#include "cli/backup_list.h"
#include "client/command_line.h"
#include "client/talk.h"

#include <stdbool.h>
#include <stdint.h>

/* Shared among backup*.c and restore.c: the command line, and what the parts
 * have in common. One thread. */

enum {
    BACKUP_EXIT_USAGE = 2,
    BACKUP_READINGS = 2 /* of each file: its checksum, then the check */
};

/* Name, argument, text. */
#define BACKUP_OPTIONS(X)                                                     \
    X(server, "server", "HOST:PORT",                                          \
        "The tallyd that has the data directory, on this machine (default "   \
        "TALLYD_ADDR of the environment, else 127.0.0.1:11211).")             \
    X(user_file, "user-file", "FILE",                                         \
        "Begins with the line USER:PASSWORD of a user who may administrate.") \
    SECURE_ROWS(X)                                                            \
    X(since, "since", "EARLIER",                                              \
        "An earlier backup: files that are in it are linked to it, and not "  \
        "copied again.")                                                      \
    X(data, "data", "PATH",                                                   \
        "The data directory, where this program finds it under another path " \
        "than the server.")                                                   \
    X(copy, "copy", "",                                                       \
        "Copy files that could be hard links to those of the data "           \
        "directory.")                                                         \
    X(rate, "rate", "MB",                                                     \
        "Read that many megabytes a second at most (default 200; 0: as many " \
        "as can be).")                                                        \
    X(json, "json", "", "Say what was done as one line of JSON.")             \
    X(help, "help", "", "Say this.")

/* Name, argument, text. */
#define RESTORE_OPTIONS(X)                                                    \
    X(to, "to", "DATA",                                                       \
        "The data directory that is made; there is none yet, or an empty "    \
        "one.")                                                               \
    X(archive, "archive", "DIR",                                              \
        "The log files behind the backup: what tallyd --wal-archive=DIR has " \
        "copied.")                                                            \
    X(until, "until", "BATCH|TIME",                                           \
        "Up to that batch of the log, and nothing later (default: all that "  \
        "there is); or nothing that was made after that time, "               \
        "2026-01-31T23:59:59Z, by what the archive has noted each second.")   \
    X(rate, "rate", "MB",                                                     \
        "Read that many megabytes a second at most (0, the default: as many " \
        "as can be).")                                                        \
    X(json, "json", "", "Say what was done as one line of JSON.")             \
    X(help, "help", "", "Say this.")

struct backup_setup {
    struct command_line line;
    const char *dir; /* the backup */
    bool verifies;
    bool copies;
    bool is_json;
    uint64_t rate;       /* bytes a second; 0: no limit */
    const char *since;   /* NULL: none */
    const char *data;    /* NULL: as the server says */
    const char *to;      /* of restore */
    const char *archive; /* likewise; NULL: none */
    uint64_t until_ms;   /* likewise, unix time; 0: not by time */
    uint64_t until;      /* likewise; 0: all */
    struct talk talk;
    struct secure secure; /* talk's */
    char login[COMMAND_LINE_LOGIN_MAX + 1];
};

/* backup.c: --rate. False with why in line. */
bool backup__take_rate(
    struct backup_setup *setup, unsigned row, const char *value);

/* An open backup. */
struct backup_folder {
    int fd;                  /* -1: none */
    int files_fd;            /* of BACKUP_FILES in it; likewise */
    struct backup_list list; /* owned */
};

/* backup.c: the lines of a program that has done its work, on stderr, or why it
 * has not; returns the exit status. */
int backup__fail(const char *what, const char *why);

/* Opens a whole backup. False with why in copy. */
bool backup__open(
    struct backup_copy *copy, const char *path, struct backup_folder *out);
void backup__close(struct backup_folder *folder);

/* Reads the small file of that name, of a list. 0, ERR_NOT_FOUND, ERR_... */
int backup__read_list(
    int dir, const char *name, bool is_part, struct backup_list *out);

/* Writes a small file durably in the place of another: 0 or an errno value. */
int backup__put(int dir, const char *name, const char *bytes, size_t len);

/* Syncs a folder. False with why. */
bool backup__sync(struct backup_copy *copy, int dir, const char *name);

/* Syncs the folder that dir, which was opened as path, is in, so that dir stays
 * there. One that this user must not read is left to the system. False with
 * why. */
bool backup__sync_parent(struct backup_copy *copy, int dir, const char *path);

/* Takes a backup; the exit status. */
int backup__take(struct backup_setup *setup);

/* Verifies one; the exit status. */
int backup__verify(struct backup_setup *setup);

/* Brings log files of an archive to the directory `to`, which has those up to
 * number first; they replace that one and follow it, and the manifest says of
 * which history they are. *n: how many. Where until_ms is not 0, *until becomes
 * the last batch that was noted up to then. False with why. */
struct manifest;
bool backup__take_archive(struct backup_copy *copy,
    const struct backup_setup *setup, int to, uint64_t first,
    struct manifest *manifest, size_t *n, uint64_t *until);

/* backup_check.c: has the data directory looked at as --check does, at the rate
 * of copy. False with why. */
bool backup__check(struct backup_copy *copy, int dir, struct logger *logger,
    struct buf *found);

#endif
