/* SPDX-License-Identifier: BSD-3-Clause */
/* Chooses, makes and locks the data directory, fills in its options, and runs
 * --check. Where the start fails, data_option_undo unmakes a directory that
 * this start has made, unless another server has it. */
#include "server/data_option.h"

#include "base/err.h"
#include "offline/data_check.h"
#include "server/options_repl_check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEFAULT_DIR "tallyd-data"

enum { MS_PER_S = 1000, THREADS_MAX = 64 };

_Static_assert((int)WAL_SYNC_NONE == OPTIONS_SYNC_NONE &&
        (int)WAL_SYNC_INTERVAL == OPTIONS_SYNC_INTERVAL &&
        (int)WAL_SYNC_ALWAYS == OPTIONS_SYNC_ALWAYS,
    "the words of --sync are in this order");

void
data_option_choose(struct data_option *data_option, struct options *options)
{
    const char *given = getenv("STATE_DIRECTORY");
    char *text = options->data.text;
    *data_option = (struct data_option){.dir_fd = -1,
        .archive_fd = -1,
        .is_default = text[0] == '\0',
        .is_wanted = strcmp(text, "none") != 0,
        .config.dir = {.dir_fd = -1, .lock_fd = -1}};
    if (!data_option->is_default) {
        return;
    }
    /* systemd separates several with colons; the first one is ours */
    size_t len = given == NULL ? 0 : strcspn(given, ":");
    if (len > 0 && len < sizeof options->data.text) {
        memcpy(text, given, len);
        text[len] = '\0';
    } else {
        memcpy(text, DEFAULT_DIR, sizeof DEFAULT_DIR);
    }
}

/* There is no directory, and none can be made: fine where nobody named one.
 * One that is there and cannot be used is another matter: it has numbers that
 * would seem to be gone. */
static void
go_without(
    struct data_option *data_option, struct logger *logger, struct buf *why)
{
    log_line(logger, LOG_WARNING,
        "%.*s; the server starts as a cache without counters: give a "
        "directory with --data, or --data=none to keep counters in memory",
        (int)why->len, why->len == 0 ? "" : why->data);
    buf_clear(why);
    data_option->config.is_missing = true;
}

static struct data_dir_terms
terms_of(const struct options *options)
{
    return (struct data_dir_terms){.user = options->user.text,
        .log_fd = -1,
        .must_be_used = options->new_data == OPTIONS_NEW_DATA_REFUSE,
        .no_lock = options->no_lock};
}

bool
data_option_is_new(
    const struct data_option *data_option, const struct options *options)
{
    struct stat stat;
    return data_option->is_wanted && lstat(options->data.text, &stat) != 0 &&
        errno == ENOENT;
}

int
data_option_make(struct data_option *data_option,
    const struct options *options, struct logger *logger, struct buf *why)
{
    if (!data_option->is_wanted) {
        return 0;
    }
    const struct data_dir_terms terms = terms_of(options);
    int err = data_dir_make(options->data.text, &terms, &data_option->dir_fd,
        &data_option->is_made, why);
    if (err == ERR_NO_DATA_DIR && data_option->is_default &&
        !options_replicate(options)) {
        go_without(data_option, logger, why);
        err = 0;
    }
    return err;
}

static unsigned
threads_to_load(void)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : n > THREADS_MAX ? THREADS_MAX : (unsigned)n;
}

/* As the user that stays, who must be able to make files there. */
static int
open_archive(struct data_option *data_option, const struct options *options,
    struct buf *why)
{
    const char *path = options->wal_archive.text;
    if (path[0] == '\0') {
        return 0;
    }
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) != 0) {
        buf_addf(why,
            "--wal-archive=%s: %s: it is to be a directory into which the "
            "server's user may write",
            path, strerror(errno));
        if (fd >= 0) {
            close(fd);
        }
        return ERR_SYSTEM;
    }
    if (disk_real_create(fd, &data_option->config.archive) != 0) {
        close(fd);
        return ERR_NO_MEMORY;
    }
    data_option->archive_fd = fd;
    return 0;
}

void
data_option_fini(struct data_option *data_option)
{
    if (data_option->config.archive != NULL) {
        disk_real_destroy(&data_option->config.archive);
        close(data_option->archive_fd);
    }
}

int
data_option_take(struct data_option *data_option,
    const struct options *options, struct logger *logger, struct buf *why)
{
    struct data_config *config = &data_option->config;
    int fd = data_option->dir_fd;
    if (!data_option->is_wanted || config->is_missing) {
        if (options->wal_archive.text[0] != '\0') {
            buf_add_text(
                why, "--wal-archive wants a data directory, see --data");
            return ERR_NO_DATA_DIR;
        }
        return 0;
    }
    data_option->dir_fd = -1;
    struct data_dir_terms terms = terms_of(options);
    terms.log_fd = log_descriptor(logger);
    int err = data_dir_lock(fd, options->data.text, &terms, &config->dir, why);
    if (err != 0) {
        /* whoever has the lock has the directory, though this one made it */
        data_option->is_made &= err != ERR_DIR_IN_USE;
        return err;
    }
    if (!disk_syncs_names(config->dir.dir_fd)) {
        log_line(logger, LOG_WARNING,
            "the file system of the data directory %s cannot sync "
            "directories: after a power cut files may be missing or have "
            "their old names, and a start be refused",
            options->data.text);
    }
    config->path = options->data.text;
    config->sync = (enum wal_sync)options->sync;
    config->interval_ms = (uint64_t)options->sync_interval_ms;
    config->log_file_bytes = options->log_file_bytes;
    config->unsynced_bytes_max = options->log_memory;
    config->checkpoint_log_bytes = options->checkpoint_log;
    config->checkpoint_ms =
        (uint64_t)options->checkpoint_interval_s * MS_PER_S;
    config->cold_threads = (unsigned)options->cold_threads;
    config->cold_cache_bytes = options->cold_cache;
    config->cold_io = (enum cold_io)options->cold_io;
    config->cold_codec = (unsigned)options->cold_codec;
    config->cold_level = (int)options->cold_level;
    config->is_replicated = options_replicate(options);
    config->leaves_group = options->leave_group;
    config->keep_cut_bytes = options->keep_cut;
    config->threads = threads_to_load();
    config->logger = logger;
    return open_archive(data_option, options, why);
}

void
data_option_undo(
    struct data_option *data_option, const struct options *options)
{
    int fd = data_option->dir_fd;
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        data_option->is_made = false; /* somebody else has it meanwhile */
    }
    if (data_option->is_made) {
        data_dir_unmake(&data_option->config.dir, options->data.text);
    }
    if (fd >= 0) {
        close(fd);
        data_option->dir_fd = -1;
    }
}

int
data_option_check(
    const struct options *options, struct logger *logger, struct buf *why)
{
    const char *path = options->data.text;
    struct data_dir dir;
    struct buf found = {0};
    if (strcmp(path, "none") == 0) {
        buf_add_text(why, "--check wants a data directory: give --data=DIR");
        return ERR_BAD_OPTION;
    }
    int err = data_dir_look(path, &dir, logger, why);
    if (err != 0) {
        return err;
    }
    err = data_check(&dir, logger, &found);
    fwrite(found.data, 1, found.len, stdout);
    if (err == 0 && fflush(stdout) != 0) {
        err = ERR_SYSTEM;
    }
    if (err != 0) {
        buf_addf(why, "%s: %s", path, err_file_text(err));
    }
    buf_fini(&found);
    data_dir_close(&dir);
    return err;
}
