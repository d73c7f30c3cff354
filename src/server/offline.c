/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs --dump and --salvage: opens and locks the directory, writes to standard
 * output, and keeps the old files of a salvage in a directory of its own
 * beside them. They are linked into that, so nothing is copied, and nothing
 * can be lost on the way. src/offline does the work. */
#include "server/offline.h"

#include "base/err.h"
#include "durable/data.h"
#include "offline/dump.h"
#include "offline/reading.h"
#include "offline/salvage.h"
#include "wal/names_old.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

enum {
    PLACE_BYTES = 64,
    PLACE_MODE = 0700,
    FILE_MODE = 0600,
    PLACES_MAX = 100 /* in one second */
};

static int
want_directory(const char *path, const char *option, struct buf *why)
{
    if (strcmp(path, "none") != 0) {
        return 0;
    }
    buf_addf(why, "%s wants a data directory: give --data=DIR", option);
    return ERR_BAD_OPTION;
}

/* The disk of a directory, also of an older tallyd's. *real is behind *disk.
 * 0 or ERR_NO_MEMORY. */
static int
open_disk(const struct data_dir *dir, struct disk **real, struct disk **disk)
{
    if (disk_real_create(dir->dir_fd, real) != 0) {
        return ERR_NO_MEMORY;
    }
    if (names_old_create(*real, disk) != 0) {
        disk_real_destroy(real);
        return ERR_NO_MEMORY;
    }
    return 0;
}

static void
close_disk(struct disk **real, struct disk **disk)
{
    names_old_destroy(disk);
    disk_real_destroy(real);
}

static int
print(void *context, const char *text, size_t len)
{
    (void)context;
    return fwrite(text, 1, len, stdout) == len ? 0 : ERR_SYSTEM;
}

int
offline_dump(
    const struct options *options, struct logger *logger, struct buf *why)
{
    const char *path = options->data.text;
    struct data_dir dir;
    struct disk *real, *disk;
    int err = want_directory(path, "--dump", why);
    if (err == 0) {
        err = data_dir_look(path, &dir, logger, why);
    }
    if (err != 0) {
        return err;
    }
    err = open_disk(&dir, &real, &disk);
    if (err == 0) {
        const struct dump_config config = {.disk = disk,
            .logger = logger,
            .part = (enum dump_part)options->dump_part,
            .write_fn = print};
        err = dump_run(&config);
        close_disk(&real, &disk);
    }
    if (fflush(stdout) != 0 && err == 0) {
        err = ERR_SYSTEM;
    }
    if (err != 0) {
        buf_addf(why, "%s: %s", path, err_file_text(err));
    }
    data_dir_close(&dir);
    return err;
}

/* Where old files are kept. */
struct place {
    int dir_fd;
    int fd; /* -1: it has not been made */
    const struct stat *owner;
    char name[PLACE_BYTES];
};

/* Root writes for the owner of the directory: a server that is not root has to
 * read it. */
static bool
is_for_owner(const struct stat *owner)
{
    return geteuid() == 0 && owner->st_uid != 0;
}

/* 0 or an errno value. */
static int
give(int fd, const struct stat *owner)
{
    return !is_for_owner(owner) ||
            fchown(fd, owner->st_uid, owner->st_gid) == 0
        ? 0
        : errno;
}

static int
make_place(struct place *place)
{
    time_t now = time(NULL);
    struct tm when;
    char stamp[PLACE_BYTES / 2];
    (void)localtime_r(&now, &when);
    (void)strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", &when);
    int error = EEXIST;
    for (unsigned i = 1; error == EEXIST && i < PLACES_MAX; i++) {
        (void)snprintf(place->name, sizeof place->name,
            i == 1 ? "salvage-%s" : "salvage-%s-%u", stamp, i);
        error =
            mkdirat(place->dir_fd, place->name, PLACE_MODE) == 0 ? 0 : errno;
    }
    if (error != 0) {
        return error;
    }
    place->fd =
        openat(place->dir_fd, place->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (place->fd < 0) {
        return errno;
    }
    error = give(place->fd, place->owner);
    return error == 0 ? disk_sync_dir(place->dir_fd) : error;
}

static int
keep(void *context, const char *name)
{
    struct place *place = context;
    int error = place->fd >= 0 ? 0 : make_place(place);
    if (error != 0) {
        return error;
    }
    char old[NAMES_BYTES];
    int rv = linkat(place->dir_fd, name, place->fd, name, 0);
    if (rv != 0 && errno == ENOENT && names_old_make(name, old)) {
        rv = linkat(place->dir_fd, old, place->fd, old, 0);
    }
    return rv == 0 ? disk_sync_dir(place->fd) : errno;
}

static void
say(void *context, const char *line)
{
    (void)context;
    puts(line);
    (void)fflush(stdout);
}

/* The report beside the old files; that it cannot be written is no reason to
 * call the salvage failed. */
static void
write_report(const struct place *place, const struct buf *report)
{
    int fd = place->fd < 0 ? -1
                           : openat(place->fd, "report",
                                 O_WRONLY | O_CREAT | O_CLOEXEC, FILE_MODE);
    if (fd >= 0) {
        ssize_t n = write(fd, report->data, report->len);
        (void)n;
        (void)give(fd, place->owner);
        (void)fsync(fd);
        close(fd);
    }
    if (place->fd >= 0) {
        printf("the old files and this report are in %s; remove it when you "
               "need them no more\n",
            place->name);
    }
}

static int
salvage(const struct options *options, struct logger *logger,
    const struct data_dir *dir, bool *is_lossy)
{
    struct stat owner;
    struct place place = {.dir_fd = dir->dir_fd, .fd = -1, .owner = &owner};
    struct buf report = {0};
    struct statvfs room;
    enum salvage_outcome outcome = SALVAGE_SOUND;
    struct reading reading;
    struct disk *real;
    struct salvage_config config = {.logger = logger,
        .free_bytes = UINT64_MAX,
        .bits_budget = SALVAGE_BITS_BUDGET,
        .codec = (unsigned)options->cold_codec,
        .level = options->cold_level,
        .shards = (unsigned)options->shards,
        .say_fn = say,
        .keep_fn = keep,
        .context = &place};
    if (getrandom(&config.seed, sizeof config.seed, 0) != sizeof config.seed ||
        fstat(dir->dir_fd, &owner) != 0 || give(dir->lock_fd, &owner) != 0) {
        return ERR_SYSTEM;
    }
    if (fstatvfs(dir->dir_fd, &room) == 0) {
        config.free_bytes = (uint64_t)room.f_bavail * room.f_frsize;
    }
    if (disk_real_create(dir->dir_fd, &real) != 0) {
        return ERR_NO_MEMORY;
    }
    if (is_for_owner(&owner)) {
        disk_real_give(real, owner.st_uid, owner.st_gid);
    }
    int err = reading_begin(
        &reading, real, logger, &clock_system, "for a salvage", &config.disk);
    if (err == 0) {
        err = salvage_run(&config, &report, &outcome);
        reading_end(&reading, &config.disk);
    }
    disk_real_destroy(&real);
    *is_lossy = err == 0 && outcome == SALVAGE_LOSSY;
    write_report(&place, &report);
    if (place.fd >= 0) {
        close(place.fd);
    }
    buf_fini(&report);
    return err;
}

/* Refuses a directory in which nothing ever was, or is any more. */
static int
refuse_empty(int dir_fd, const char *path, struct buf *why)
{
    static const char *const nothing[] = {
        ".", "..", "lock", "lost+found" /* of the file system */};
    bool is_empty = true;
    int copy = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = copy < 0 ? NULL : fdopendir(copy);
    if (dir == NULL) {
        if (copy >= 0) {
            close(copy);
        }
        return 0; /* who locks it says why */
    }
    for (struct dirent *entry; is_empty && (entry = readdir(dir)) != NULL;) {
        is_empty = false;
        for (size_t i = 0; i < sizeof nothing / sizeof nothing[0]; i++) {
            is_empty |= strcmp(entry->d_name, nothing[i]) == 0;
        }
    }
    closedir(dir);
    if (is_empty) {
        buf_addf(why,
            "the data directory %s is empty: there is nothing to salvage, and "
            "nothing has been changed; see that its disk is mounted and "
            "--data names the right one",
            path);
    }
    return is_empty ? ERR_NO_DATA_DIR : 0;
}

int
offline_salvage(const struct options *options, struct logger *logger,
    bool *is_lossy, struct buf *why)
{
    const char *path = options->data.text;
    const struct data_dir_terms terms = {
        .user = "", .log_fd = -1, .no_lock = options->no_lock};
    struct data_dir dir;
    int err = want_directory(path, "--salvage", why);
    if (err != 0) {
        return err;
    }
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        buf_addf(why, "cannot open the data directory %s: %s", path,
            strerror(errno));
        return ERR_SYSTEM;
    }
    err = refuse_empty(fd, path, why);
    if (err != 0) {
        close(fd);
        return err;
    }
    err = data_dir_lock(fd, path, &terms, &dir, why);
    if (err != 0) {
        return err;
    }
    err = salvage(options, logger, &dir, is_lossy);
    if (err != 0) {
        buf_addf(why, "%s: not salvaged: %s", path, err_file_text(err));
    }
    data_dir_close(&dir);
    return err;
}
