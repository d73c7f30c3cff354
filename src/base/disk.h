/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_DISK_H
#define BASE_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* One directory of files, and every call that durability rests on; a seam:
 * t/lib/fake_disk has an implementation in memory that loses what was not
 * synced and fails on demand. All calls but disk_close return 0 or an errno
 * value; interrupted calls are repeated and short ones go on. Any thread, but
 * one thread at a time for one file, except that reads may run beside each
 * other, and a sync beside a write: it then covers the writes that had returned
 * when it began. */

enum disk_open {
    DISK_READ,   /* must exist */
    DISK_DIRECT, /* the same, for reads past the page cache: of whole
                  * DISK_DIRECT_BYTES, at multiples of that and into memory
                  * that is aligned so; EINVAL where that cannot be done */
    DISK_WRITE,  /* must exist; read and write */
    DISK_CREATE, /* must not exist; mode 0600; read and write */
};

enum { DISK_DIRECT_BYTES = 4096 }; /* what every device can do */

/* What an open says, in the place of an errno value, where something has the
 * name that is no regular file: a directory, a FIFO, a socket, a device. It
 * never waits for who is at the other end of one. Above all errno values. */
enum { DISK_NOT_REGULAR = 4096 };

/* The same of what another server has taken: no call of a disk says it, but who
 * asks whether one may be made. */
enum { DISK_TAKEN = DISK_NOT_REGULAR + 1 };

/* What tells one file from another, and whether it is as it was. */
struct disk_file {
    uint64_t device, inode; /* inode 0: not known */
    uint64_t bytes;
    uint64_t changed_ns; /* when its bytes or its length last changed */
    uint64_t names;      /* that lead to it; 0: somebody has removed it */
};

struct disk;
struct disk_ring;

struct disk_calls {
    int (*open)(
        struct disk *disk, const char *name, enum disk_open how, int *fd);
    void (*close)(struct disk *disk, int fd);
    int (*read)(struct disk *disk, int fd, void *bytes, size_t len,
        uint64_t at, size_t *n_read); /* less than len: the file ends there */
    int (*write)(struct disk *disk, int fd, const void *bytes, size_t len,
        uint64_t at); /* on failure some of it may be there */
    int (*allocate)(struct disk *disk, int fd, uint64_t at, uint64_t len);
    int (*truncate)(struct disk *disk, int fd, uint64_t len);
    /* Gives the room of these bytes back: they read as zeroes, and the file is
     * as long as before. EOPNOTSUPP where that cannot be done. */
    int (*punch)(struct disk *disk, int fd, uint64_t at, uint64_t len);
    /* The first run of bytes at or behind at that may be other than zero;
     * *from == *to where there is none. */
    int (*next_data)(
        struct disk *disk, int fd, uint64_t at, uint64_t *from, uint64_t *to);
    int (*size)(struct disk *disk, int fd, uint64_t *len);
    /* Bytes that files can still take, as far as the file system tells. */
    int (*room)(struct disk *disk, uint64_t *bytes);
    /* Which file has that name (its own, where that is a link); name NULL: of
     * the open file. ENOENT where no file has it. */
    int (*look)(
        struct disk *disk, const char *name, int fd, struct disk_file *out);
    int (*sync)(struct disk *disk, int fd); /* fdatasync; after a failure the
                              * file must not be synced again, whatever it
                              * says then: what it had may be gone */
    int (*rename)(struct disk *disk, const char *from, const char *to);
    int (*unlink)(struct disk *disk, const char *name);
    int (*sync_names)(struct disk *disk); /* the directory itself */
    /* Calls name_fn for each name but . and .., in no order. */
    int (*list)(struct disk *disk,
        void (*name_fn)(void *context, const char *name), void *context);
    /* A ring of the calling thread for reads of its files (base/disk_ring.h),
     * up to n_reads (1..DISK_RING_READS_MAX) of them under way; freed by
     * disk_ring_destroy. 0, or ENOSYS where there is none, EPERM where it is
     * forbidden, ENOMEM. NULL: there is none. */
    int (*ring)(struct disk *disk, unsigned n_reads, struct disk_ring **out);
    /* As disk_text, with what the disk knows besides. NULL: as disk_text. */
    const char *(*text)(struct disk *disk, int error);
    /* These bytes are not read or written again soon: the page cache need not
     * keep them, for the sake of others. A hint; bytes that are not synced
     * stay. NULL: nothing is done. */
    void (*uncache)(struct disk *disk, int fd, uint64_t at, uint64_t len);
};

/* What every implementation begins with. */
struct disk {
    const struct disk_calls *calls;
};

/* What a call says (not 0), for people, and what to do where that is known:
 * static, or of strerror. Any thread. */
const char *disk_text(int error);

/* The same of a call of this disk: also that there are no inodes. */
const char *disk_say(struct disk *disk, int error);

/* The same of a call that was about a file in that directory. */
const char *disk_text_at(int dir_fd, int error);

/* Syncs a directory: 0 or an errno value. A file system that cannot do that
 * (EINVAL) is no error, as sync_names has it: there, what has been renamed may
 * have its old name after a power cut. */
int disk_sync_dir(int dir_fd);

/* False of such a file system. */
bool disk_syncs_names(int dir_fd);

/* Which error it is for clients that a call failed so (errno_value not 0):
 * ERR_DISK_FULL, ERR_FILE_SIZE, ERR_DIR_TAKEN, else ERR_DISK. */
int disk_err(int errno_value);

/* Gives the room behind end of a file of len bytes back, as well as that goes.
 * The block with end in it stays as it is, so that nothing before is touched.
 */
void disk_hole(struct disk *disk, int fd, uint64_t end, uint64_t len);

/* The real one, in the directory that dir_fd is open on (the caller's, must
 * stay open). *out is the caller's; freed by disk_real_destroy. 0 or ENOMEM. */
int disk_real_create(int dir_fd, struct disk **out);

/* Files that the disk makes from now on are given to that user and group; as
 * root. */
void disk_real_give(struct disk *disk, uid_t uid, gid_t gid);
void disk_real_destroy(struct disk **disk);

#endif
