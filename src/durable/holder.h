/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DURABLE_HOLDER_H
#define DURABLE_HOLDER_H

#include <sys/types.h>

/* The process that has a lock (flock) on one of two open files, either of which
 * may be -1; 0: nobody here can tell, as of one on another host or in another
 * name space of processes. said: who says so of itself, 0 for nobody: it is
 * believed only where it has one of the files open. Any thread. */
pid_t holder_find(int dir_fd, int lock_fd, pid_t said);

#endif
