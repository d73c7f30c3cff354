/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SERVER_SANDBOX_H
#define SERVER_SANDBOX_H

#include "base/buf.h"
#include "base/log.h"

#include <stdbool.h>

/* What a server gives up once it has opened what it needs, so that a fault in
 * it is worth less to who finds one: rights by execve, system calls
 * (seccomp), and writing to files and to the network (Landlock). Called once,
 * by a process with one thread: threads that are started later are held by it,
 * and nothing takes it back. doc/security.md says what is left.
 *
 * All return 0 or an ERR_ with what went wrong appended to message, a text for
 * one line without newline. */

/* The words of --seccomp, and of --landlock. */
enum sandbox_mode { SANDBOX_ON, SANDBOX_LOG, SANDBOX_OFF };

/* What may be done beneath a path; see the table in server/sandbox_files.c. */
enum sandbox_right {
    SANDBOX_DATA,  /* a directory: files are made, written, renamed, removed */
    SANDBOX_LEAVE, /* a file's path: its directory, to remove it at the stop */
    SANDBOX_LOG_FILE, /* likewise, to make and write it anew after a rename */
    SANDBOX_DUMP,     /* a directory: a core file may come */
    SANDBOX_DEVICE    /* a device that is written to */
};

struct sandbox_path {
    enum sandbox_right right;
    const char *path; /* "": none */
};

enum { SANDBOX_PATHS_MAX = 8 };

struct sandbox_config {
    enum sandbox_mode calls; /* --seccomp */
    enum sandbox_mode files; /* --landlock: never SANDBOX_LOG */
    bool needs_calls;        /* ON by the operator's word: an error without */
    bool needs_files;
    bool may_connect; /* by TCP, to anybody; for sandbox_hold_files */
    bool has_ring;    /* workers make an io_uring each */
    int log_fd;       /* takes the last words, beside stderr; 0: it is that */
    unsigned n_paths;
    struct sandbox_path path[SANDBOX_PATHS_MAX];
};

/* Adds a path to *config. There must be room. */
void sandbox_add_path(
    struct sandbox_config *config, enum sandbox_right right, const char *path);

/* Goes in. What the kernel or the build has not got is said to the logger, as
 * information, and is an error (ERR_SYSTEM) only where it is needed. */
int sandbox_enter(const struct sandbox_config *config, struct logger *logger,
    struct buf *message);

/* The parts of sandbox_enter. Each returns ERR_SYSTEM where the kernel, the
 * build or a path does not allow it. */
int sandbox_hold_calls(
    const struct sandbox_config *config, struct buf *message);
int sandbox_hold_files(
    const struct sandbox_config *config, struct buf *message);

/* For a child that connects (server/child.h): what it never calls ends it. To
 * be called by a process with one thread. */
int sandbox_hold_child_calls(struct buf *message);

#endif
