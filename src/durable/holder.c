/* SPDX-License-Identifier: BSD-3-Clause */
/* Who holds a lock. The kernel's list (proc(5), /proc/locks) has a line a lock:
 *
 *   1: FLOCK  ADVISORY  WRITE 30754 08:01:139738 0 EOF
 *
 * with the process, the device in hexadecimal digits and the inode. Some file
 * systems show another device there than stat(2) does (btrfs, overlayfs): then
 * what is known is who has left its number in the lock file, and whether that
 * process has the file open. */
#include "durable/holder.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum { LINE_BYTES = 256, PATH_BYTES = 64 };

/* The two files; n of them are known. */
struct wanted {
    struct stat file[2];
    unsigned n;
};

static void
add_file(struct wanted *wanted, int fd)
{
    wanted->n += fd >= 0 && fstat(fd, &wanted->file[wanted->n]) == 0;
}

static bool
is_wanted(const struct wanted *wanted, dev_t device, ino_t inode)
{
    for (unsigned i = 0; i < wanted->n; i++) {
        if (wanted->file[i].st_dev == device &&
            wanted->file[i].st_ino == inode) {
            return true;
        }
    }
    return false;
}

static bool
is_there(pid_t pid)
{
    char path[PATH_BYTES];
    (void)snprintf(path, sizeof path, "/proc/%ld", (long)pid);
    return access(path, F_OK) == 0;
}

/* By the kernel's list. */
static pid_t
find_locked(const struct wanted *wanted)
{
    char line[LINE_BYTES];
    pid_t found = 0;
    FILE *locks = fopen("/proc/locks", "re");
    while (locks != NULL && found == 0 &&
        fgets(line, sizeof line, locks) != NULL) {
        unsigned major_number, minor_number;
        unsigned long inode;
        long pid;
        if (sscanf(line, "%*s FLOCK %*s %*s %ld %x:%x:%lu", &pid,
                &major_number, &minor_number, &inode) == 4 &&
            pid > 0 &&
            is_wanted(wanted, makedev(major_number, minor_number), inode) &&
            is_there((pid_t)pid)) {
            found = (pid_t)pid;
        }
    }
    if (locks != NULL) {
        (void)fclose(locks);
    }
    return found;
}

/* Whether a process has one of the files open; false also where nobody may
 * look. */
static bool
has_open(const struct wanted *wanted, pid_t pid)
{
    char path[PATH_BYTES];
    bool has = false;
    (void)snprintf(path, sizeof path, "/proc/%ld/fd", (long)pid);
    DIR *dir = opendir(path);
    for (const struct dirent *entry;
         dir != NULL && !has && (entry = readdir(dir)) != NULL;) {
        struct stat stat;
        has = fstatat(dirfd(dir), entry->d_name, &stat, 0) == 0 &&
            is_wanted(wanted, stat.st_dev, stat.st_ino);
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    return has;
}

pid_t
holder_find(int dir_fd, int lock_fd, pid_t said)
{
    struct wanted wanted = {0};
    add_file(&wanted, dir_fd);
    add_file(&wanted, lock_fd);
    pid_t pid = find_locked(&wanted);
    return pid == 0 && said > 0 && has_open(&wanted, said) ? said : pid;
}
