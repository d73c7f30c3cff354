/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SERVER_PROCESS_H
#define SERVER_PROCESS_H

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

/* What the process is to the system: its user, its limits, its background, its
 * pid file. Called at start and at stop, by a process with one thread.
 *
 * All with a message return 0 or an ERR_ with what went wrong appended to
 * it: a text for one line, without newline.
 *
 * The order at start: process_refuse_root, process_narrow_umask,
 * process_raise_fd_limit and process_raise_core_limit (may need root) or
 * process_forbid_core, options_resolve_paths,
 * process_daemonize, process_lock_memory (may need root, and a child does not
 * inherit it), open the sockets (may need root), process_drop_user,
 * process_drop_capabilities,
 * process_allow_core (which becoming another user undoes),
 * process_write_pidfile (as the new user, who can then remove it), start the
 * threads, process_ready. */

enum {
    /* Descriptors beside those of clients: standard streams, listening
     * sockets, files, and what each of up to 256 worker loops opens: epoll,
     * two that wake it, an io_uring and a pipe of libuv's. */
    PROCESS_FDS_RESERVED = 64 + 6 * 256
};

/* Root without a user to become is refused, and with one that does not exist:
 * ERR_BAD_OPTION. user: "" for none. */
int process_refuse_root(const char *user, struct buf *message);

/* Does what try_fn does, and returns what that returns, with the rights of the
 * user that process_drop_user would become; the process is as before then. 0
 * or an ERR_; ERR_SYSTEM also where it cannot become that user, or not be as
 * before. */
int process_try_as(const char *user,
    int (*try_fn)(const void *context, struct buf *message),
    const void *context, struct buf *message);

/* Makes user (a name) the process's user, with that user's groups and no
 * others, for good, and without the capabilities' bounding set. Does nothing
 * unless the process is root. ERR_BAD_OPTION where there is no such user,
 * ERR_SYSTEM. */
int process_drop_user(const char *user, struct buf *message);

/* Gives up every capability of the bounding set that the process may give up:
 * no program it might execute gets them. */
void process_drop_bounding_set(void);

/* Gives up all capabilities, also those that an ordinary user was started
 * with, or that root keeps with -u root. ERR_SYSTEM. */
int process_drop_capabilities(struct buf *message);

/* Opens /dev/null for each standard stream that is closed, so that no file or
 * socket takes its number and is written to as such. The first thing of all. */
void process_fill_streams(void);

/* Closes all descriptors but *fd, which gets another number; the standard
 * streams lead to /dev/null from here on. ERR_SYSTEM. */
int process_keep_only(int *fd, struct buf *message);

/* What the process makes from here on is never writable for others; a mask
 * that takes away more stays. */
void process_narrow_umask(void);

/* Lets the process open n descriptors (RLIMIT_NOFILE); never lowers a limit.
 * ERR_SYSTEM where that is not allowed; the message says what to do. */
int process_raise_fd_limit(unsigned long n, struct buf *message);

/* Raises the limit of the core file's size as far as it goes. ERR_SYSTEM where
 * that is nowhere. */
int process_raise_core_limit(struct buf *message);

/* No core file, neither from the kernel nor by a program that it hands core
 * files to: they hold clients' data. For good. ERR_SYSTEM. */
int process_forbid_core(struct buf *message);

/* Lets the kernel write a core file of a process that was root. ERR_SYSTEM. */
int process_allow_core(struct buf *message);

/* Locks the memory of the process in RAM, what it has and what it will touch.
 * ERR_SYSTEM where that is not allowed, and nothing is locked then: the server
 * can do without, and the message is one for a warning. */
int process_lock_memory(struct buf *message);

/* Goes to the background: the caller goes on as a child in a session of its
 * own, in the directory / unless it stays, with stdin from /dev/null. The
 * parent waits, and exits with status 0 at the child's process_ready, or with
 * 1 where the child ended before: until then stdout and stderr stay, so that
 * who started the server reads why it failed. Relative paths mean something
 * else from here on; options_resolve_paths comes first. *ready_fd is for
 * process_ready. ERR_SYSTEM. */
int process_daemonize(bool stays, int *ready_fd, struct buf *message);

/* Ends the parent of process_daemonize and nulls *ready_fd (-1). stdout and,
 * unless keep_stderr, stderr go to /dev/null from here on. Nothing happens
 * where *ready_fd is -1. ERR_SYSTEM. */
int process_ready(int *ready_fd, bool keep_stderr, struct buf *message);

/* Writes the process id and a newline to path, in place of what is there:
 * first to a file beside it, synced, which is then renamed. ERR_SYSTEM. */
int process_write_pidfile(const char *path, struct buf *message);

/* Removes path where it still holds this process's id: a server that was
 * started meanwhile keeps its own. ERR_SYSTEM where it cannot be removed. */
int process_remove_pidfile(const char *path, struct buf *message);

/* Tells the service manager (systemd's sd_notify protocol), if there is one
 * that wants to know: $NOTIFY_SOCKET. lines: "READY=1" and the like. Never
 * waits: false where the socket is full because nobody reads it, so that a
 * later try may help. */
bool process_notify(const char *lines);

/* The memory that the process can have: the machine's, or less where a cgroup
 * sets a limit. 0 where that cannot be told. */
uint64_t process_memory_bytes(void);

/* The lowest memory.max (cgroups of version 2) or memory.limit_in_bytes (of
 * version 1) of the process's cgroups and those above them; UINT64_MAX where
 * there is none, and a huge number where version 1 has no limit. self: what
 * stands for /proc/self/cgroup; mount: where the cgroups are. */
uint64_t process_cgroup_limit(const char *self, const char *mount);

#endif
