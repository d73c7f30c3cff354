/* SPDX-License-Identifier: BSD-3-Clause */
/* tallyctl restore: a data directory of a backup.
 *
 *   files     each copied, but for the manifest, and compared with its
 *             checksum
 *   archive   log files that are newer, if they are given
 *   log       cut behind the batch that is wanted
 *   manifest  durably: before it no server takes the directory
 *   check     as tallyd --check does
 *
 * Nothing is linked: a server that goes on with these files leaves the backup
 * as it is. A restore that was interrupted is begun anew, in an empty
 * directory. */
#include "cli/backup.h"

#include "base/buf.h"
#include "base/disk.h"
#include "base/err.h"
#include "base/num.h"
#include "cli/ask.h"
#include "cli/backup_priv.h"
#include "offline/rewind.h"
#include "wal/manifest.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MODE = 0700, MS_PER_S = 1000 };

enum id {
#define X(id, name, argument, text) ID_##id,
    RESTORE_OPTIONS(X)
#undef X
        ID_COUNT
};

static const struct command_line_row rows[ID_COUNT] = {
#define X(id, name, argument, text) {name, argument, text},
    RESTORE_OPTIONS(X)
#undef X
};

struct restoring {
    const struct backup_setup *setup;
    struct backup_copy copy;
    struct backup_folder from;
    int to;            /* the directory that is made; -1: none */
    struct disk *disk; /* in it; owned */
    struct logger logger;
    struct manifest manifest;
    size_t n_archived; /* log files of the archive */
    uint64_t until;    /* the last batch that is wanted; 0: all */
    struct rewound log;
};

/* Made, or there and empty. */
static bool
open_empty(struct restoring *it)
{
    const char *path = it->setup->to;
    bool is_empty = true;
    if (mkdir(path, MODE) != 0 && errno != EEXIST) {
        return backup_copy_fail(
            &it->copy, "cannot make %.150s: %s", path, strerror(errno));
    }
    DIR *dir = opendir(path);
    for (struct dirent *entry;
         dir != NULL && (entry = readdir(dir)) != NULL;) {
        is_empty = is_empty &&
            (strcmp(entry->d_name, ".") == 0 ||
                strcmp(entry->d_name, "..") == 0);
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    if (!is_empty) {
        return backup_copy_fail(&it->copy,
            "%.150s is not empty: name another directory, or remove what a "
            "restore that was interrupted has left",
            path);
    }
    it->to = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (it->to < 0) {
        return backup_copy_fail(
            &it->copy, "cannot open %.150s: %s", path, strerror(errno));
    }
    return disk_real_create(it->to, &it->disk) == 0 ||
        backup_copy_fail(&it->copy, "out of memory");
}

/* The manifest is only read here, so that no server takes the directory before
 * all else is in it. */
static bool
copy_file(struct restoring *it, const struct backup_file *file, uint64_t *xxh3)
{
    return strcmp(file->name, MANIFEST_NAME) == 0
        ? backup_copy_hash(
              &it->copy, it->from.files_fd, file->name, file->bytes, xxh3)
        : backup_copy_file(&it->copy, it->from.files_fd, file->name, it->to,
              file->name, file->bytes, xxh3);
}

static bool
copy_files(struct restoring *it)
{
    const struct backup_list *list = &it->from.list;
    it->copy.all_bytes = BACKUP_READINGS * backup_list_bytes(list);
    for (size_t i = 0; i < list->n; i++) {
        const struct backup_file *file = &list->file[i];
        uint64_t xxh3 = 0;
        if (!copy_file(it, file, &xxh3)) {
            return false;
        }
        if (xxh3 != file->xxh3) {
            return backup_copy_fail(&it->copy,
                "%s of the backup is damaged: see tallyctl backup verify, and "
                "restore another backup",
                file->name);
        }
    }
    return true;
}

static bool
take_manifest(struct restoring *it)
{
    struct disk *from;
    if (disk_real_create(it->from.files_fd, &from) != 0) {
        return backup_copy_fail(&it->copy, "out of memory");
    }
    int err = manifest_read(from, &it->manifest, NULL);
    disk_real_destroy(&from);
    return err == 0 ||
        backup_copy_fail(&it->copy, MANIFEST_NAME ": %s", err_file_text(err));
}

static bool
take_archive(struct restoring *it)
{
    const struct backup_list *list = &it->from.list;
    uint64_t last = 0;
    for (size_t i = 0; i < list->n; i++) {
        enum names_kind kind;
        uint64_t number;
        if (names_parse(list->file[i].name, &kind, &number) &&
            kind == NAMES_LOG && number > last) {
            last = number;
        }
    }
    return it->setup->archive == NULL ||
        backup__take_archive(&it->copy, it->setup, it->to, last, &it->manifest,
            &it->n_archived, &it->until);
}

static bool
cut_log(struct restoring *it)
{
    const struct rewind rewind = {.disk = it->disk,
        .logger = &it->logger,
        .manifest = &it->manifest,
        .is_followed = it->n_archived > 0,
        .until = it->until};
    struct buf why = {0};
    int err = rewind_log(&rewind, &it->log, &why);
    if (err != 0) {
        (void)backup_copy_fail(&it->copy, "%.*s",
            (int)(why.len > 0 ? why.len : strlen(err_file_text(err))),
            why.len > 0 ? why.data : err_file_text(err));
    }
    buf_fini(&why);
    return err == 0;
}

static bool
put_manifest(struct restoring *it)
{
    int error = 0;
    int err = rewind_part(&it->manifest, &it->log);
    if (err == 0) {
        err = manifest_write(it->disk, &it->manifest, NULL, &error);
    }
    if (err == 0) {
        err = manifest_write_copy(it->disk, &it->manifest);
    }
    return err == 0 ||
        backup_copy_fail(&it->copy, "cannot write " MANIFEST_NAME ": %s",
            error != 0 ? strerror(error) : err_file_text(err));
}

static bool
run(struct restoring *it)
{
    struct buf found = {0};
    bool is_done = backup__open(&it->copy, it->setup->dir, &it->from) &&
        open_empty(it) && copy_files(it) && take_manifest(it) &&
        take_archive(it) && cut_log(it) &&
        backup__sync(&it->copy, it->to, it->setup->to) &&
        backup__sync_parent(&it->copy, it->to, it->setup->to) &&
        put_manifest(it) &&
        backup__check(&it->copy, it->to, &it->logger, &found);
    buf_fini(&found);
    return is_done;
}

/* How much the archive had tells one that was the wrong one, or empty. */
static void
say(const struct restoring *it)
{
    const struct backup_list *list = &it->from.list;
    if (it->setup->is_json) {
        (void)printf("{\"files\":%zu,\"bytes\":%" PRIu64 ",\"batch\":%" PRIu64
                     ",\"archived\":%zu}\n",
            list->n, backup_list_bytes(list), it->log.last_seq,
            it->n_archived);
        return;
    }
    (void)printf(
        "%s has all up to batch %" PRIu64, it->setup->to, it->log.last_seq);
    if (it->setup->archive != NULL) {
        (void)printf(", with %zu log file%s of the archive", it->n_archived,
            num_plural(it->n_archived));
    }
    (void)printf("; see that it belongs to the server's user\n");
}

static int
restore(const struct backup_setup *setup)
{
    struct restoring it = {.setup = setup,
        .until = setup->until,
        .copy = {.what = "read", .rate = setup->rate},
        .from = {.fd = -1, .files_fd = -1},
        .to = -1};
    manifest_init(&it.manifest);
    bool is_done = backup_copy_init(&it.copy) && run(&it);
    backup_copy_end(&it.copy);
    if (is_done) {
        say(&it);
    }
    if (it.disk != NULL) {
        disk_real_destroy(&it.disk);
    }
    if (it.to >= 0) {
        (void)close(it.to);
    }
    backup__close(&it.from);
    manifest_fini(&it.manifest);
    backup_copy_fini(&it.copy);
    return is_done && fflush(stdout) == 0
        ? EXIT_SUCCESS
        : backup__fail("restore", it.copy.why);
}

/* 2026-01-31T23:59:59Z as seconds since 1970. -1: it is no such text, or there
 * is no such day, of which timegm makes another one. */
static time_t
parse_time(const char *text)
{
    static const char form[] = "%Y-%m-%dT%H:%M:%SZ";
    char again[sizeof("2026-01-31T23:59:59Z")];
    struct tm tm = {0};
    const char *end = strptime(text, form, &tm);
    if (end == NULL || *end != '\0') {
        return -1;
    }
    time_t time_s = timegm(&tm);
    bool is_same = gmtime_r(&time_s, &tm) != NULL &&
        strftime(again, sizeof(again), form, &tm) > 0 &&
        strcmp(again, text) == 0;
    return is_same ? time_s : -1;
}

/* A batch, or a time. */
static bool
take_until(struct backup_setup *setup, const char *text)
{
    time_t time_s = parse_time(text);
    if (time_s > 0) {
        setup->until_ms = (uint64_t)time_s * MS_PER_S;
        return true;
    }
    return (num_parse_id(text, strlen(text), &setup->until) &&
               setup->until > 0 && setup->until < UINT64_MAX) ||
        command_line_fail(&setup->line,
            "--until is a batch, or a time like 2026-01-31T23:59:59Z");
}

static bool
take(struct command_line *line, unsigned row, const char *value)
{
    struct backup_setup *setup = line->context;
    switch ((enum id)row) {
    case ID_to:
        setup->to = value;
        return true;
    case ID_archive:
        setup->archive = value;
        return true;
    case ID_until:
        return take_until(setup, value);
    case ID_rate:
        return backup__take_rate(setup, row, value);
    case ID_json:
        setup->is_json = true;
        return true;
    case ID_help:
    case ID_COUNT:
        break;
    }
    return false;
}

static int
say_help(bool is_man)
{
    struct buf out = {0};
    if (is_man) {
        command_line_man(rows, ID_COUNT, &out);
    } else {
        buf_add_text(&out,
            "usage: tallyctl restore DIR --to=DATA [OPTION]...\n"
            "Makes the data directory DATA of the backup in DIR.\n\n");
        command_line_help(rows, ID_COUNT, &out);
    }
    return ask_write(&out);
}

int
restore_main(int argc, char *const argv[])
{
    struct backup_setup setup = {.line = {.row = rows,
                                     .n_rows = ID_COUNT,
                                     .n_words_max = 1,
                                     .take_fn = take}};
    setup.line.context = &setup;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 ||
            strcmp(argv[i], "--help=man") == 0) {
            return say_help(strcmp(argv[i], "--help=man") == 0);
        }
    }
    bool is_right = command_line_read(&setup.line, argc, argv);
    if (is_right && (setup.line.n_words != 1 || setup.to == NULL)) {
        is_right = command_line_fail(&setup.line,
            "wanted are DIR and --to=DATA; see tallyctl restore --help");
    }
    if (is_right && setup.until_ms != 0 && setup.archive == NULL) {
        is_right = command_line_fail(
            &setup.line, "--until=TIME wants --archive, which has the times");
    }
    if (!is_right) {
        (void)backup__fail("restore", setup.line.why);
        return BACKUP_EXIT_USAGE;
    }
    setup.dir = setup.line.word[0];
    return restore(&setup);
}
