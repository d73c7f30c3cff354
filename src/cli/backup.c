/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of backup, and what taking, verifying and restoring one have
 * in common. */
#include "cli/backup.h"

#include "base/buf.h"
#include "base/disk.h"
#include "base/disk_whole.h"
#include "base/err.h"
#include "base/give_way.h"
#include "cli/ask.h"
#include "cli/backup_priv.h"
#include "offline/data_check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    LIST_BYTES_MAX = 128 << 20,
    RATE_MB_MAX = 1000000,
    RATE_MB_DEFAULT = 200, /* as its option says */
    MB = 1000000,
    NICE = 19,
    TIMEOUT_MS = 30000
};

enum id {
#define X(id, name, argument, text) ID_##id,
    BACKUP_OPTIONS(X)
#undef X
        ID_COUNT
};

static const struct command_line_row rows[ID_COUNT] = {
#define X(id, name, argument, text) {name, argument, text},
    BACKUP_OPTIONS(X)
#undef X
};

int
backup__fail(const char *what, const char *why)
{
    (void)fprintf(stderr, "tallyctl %s: %s\n", what, why);
    return EXIT_FAILURE;
}

int
backup__read_list(
    int dir, const char *name, bool is_part, struct backup_list *out)
{
    struct disk *disk;
    uint8_t *bytes;
    size_t len;
    if (disk_real_create(dir, &disk) != 0) {
        return ERR_NO_MEMORY;
    }
    int error = disk_whole_read(disk, name, LIST_BYTES_MAX, &bytes, &len);
    disk_real_destroy(&disk);
    if (error != 0) {
        return error == ENOENT ? ERR_NOT_FOUND
            : error == EFBIG   ? ERR_CORRUPT
                               : ERR_SYSTEM;
    }
    int err = backup_list_read((const char *)bytes, len, is_part, out);
    free(bytes);
    return err;
}

int
backup__put(int dir, const char *name, const char *bytes, size_t len)
{
    struct disk *disk;
    char name_new[NAMES_BYTES];
    (void)snprintf(name_new, sizeof name_new, "%s.new", name);
    if (disk_real_create(dir, &disk) != 0) {
        return ENOMEM;
    }
    int error = disk_whole_replace(disk, name, name_new, bytes, len, NULL);
    disk_real_destroy(&disk);
    return error;
}

bool
backup__sync(struct backup_copy *copy, int dir, const char *name)
{
    int error = disk_sync_dir(dir);
    return error == 0 ||
        backup_copy_fail(copy, "cannot sync %s: %s", name, strerror(error));
}

bool
backup__sync_parent(struct backup_copy *copy, int dir, const char *path)
{
    int parent = openat(dir, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int error = parent < 0 ? errno : disk_sync_dir(parent);
    if (parent >= 0) {
        (void)close(parent);
    }
    return error == 0 || error == EACCES ||
        backup_copy_fail(copy,
            "cannot sync the directory that %.150s is in: "
            "%s",
            path, strerror(error));
}

void
backup__close(struct backup_folder *folder)
{
    if (folder->files_fd >= 0) {
        (void)close(folder->files_fd);
    }
    if (folder->fd >= 0) {
        (void)close(folder->fd);
    }
    backup_list_fini(&folder->list);
    folder->fd = -1;
    folder->files_fd = -1;
}

bool
backup__open(
    struct backup_copy *copy, const char *path, struct backup_folder *out)
{
    *out = (struct backup_folder){.files_fd = -1};
    out->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (out->fd < 0) {
        return backup_copy_fail(
            copy, "cannot open %.150s: %s", path, strerror(errno));
    }
    int err = backup__read_list(out->fd, BACKUP_WHOLE, false, &out->list);
    if (err == ERR_NOT_FOUND &&
        faccessat(out->fd, BACKUP_PART, F_OK, 0) == 0) {
        backup__close(out);
        return backup_copy_fail(
            copy, "%.150s: the backup was interrupted: begin it again", path);
    }
    if (err != 0) {
        backup__close(out);
        return err == ERR_NOT_FOUND
            ? backup_copy_fail(copy, "%.150s is no backup", path)
            : backup_copy_fail(copy, "%.150s/" BACKUP_WHOLE ": %s", path,
                  err_file_text(err));
    }
    out->files_fd =
        openat(out->fd, BACKUP_FILES, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (out->files_fd < 0) {
        int error = errno;
        backup__close(out);
        return backup_copy_fail(copy,
            "cannot open %.150s/" BACKUP_FILES ": %s", path, strerror(error));
    }
    return true;
}

bool
backup__take_rate(struct backup_setup *setup, unsigned row, const char *value)
{
    bool is_right = command_line_number(
        &setup->line, row, value, 0, RATE_MB_MAX, &setup->rate);
    setup->rate *= MB;
    return is_right;
}

static bool
take(struct command_line *line, unsigned row, const char *value)
{
    struct backup_setup *setup = line->context;
    const char *why;
    switch ((enum id)row) {
    case ID_server:
        why = talk_take_servers(&setup->talk, value);
        return why == NULL || command_line_fail(line, "--server %s", why);
    case ID_user_file:
        return command_line_login(line, row, value, setup->login);
    case ID_tls:
    case ID_tls_ca:
    case ID_tls_name:
    case ID_tls_cert:
    case ID_tls_key:
        why = secure_take(&setup->secure, rows[row].name, value);
        return why == NULL ||
            command_line_fail(line, "--%s %s", rows[row].name, why);
    case ID_since:
        setup->since = value;
        return true;
    case ID_data:
        setup->data = value;
        return true;
    case ID_copy:
        setup->copies = true;
        return true;
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

/* True where --help is among the words: 0 or "man" decides which text. */
static bool
wants_help(int argc, char *const argv[], bool *is_man)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 ||
            strcmp(argv[i], "--help=man") == 0) {
            *is_man = argv[i][strlen("--help")] == '=';
            return true;
        }
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
            "usage: tallyctl backup DIR [OPTION]...\n"
            "       tallyctl backup verify DIR\n"
            "Copies the data directory of a running tallyd, as it is at one "
            "moment, to\nDIR; or looks whether all of such a copy is sound.\n"
            "\n");
        command_line_help(rows, ID_COUNT, &out);
    }
    return ask_write(&out);
}

/* The words: DIR, or verify DIR. */
static bool
take_words(struct backup_setup *setup)
{
    struct command_line *line = &setup->line;
    setup->verifies =
        line->n_words == 2 && strcmp(line->word[0], "verify") == 0;
    if (line->n_words != (setup->verifies ? 2U : 1U)) {
        return command_line_fail(
            line, "wanted is DIR, or verify DIR; see tallyctl backup --help");
    }
    setup->dir = line->word[line->n_words - 1];
    return true;
}

/* Where --server is not given. */
static bool
take_default(struct backup_setup *setup)
{
    const char *why = setup->talk.n_servers > 0
        ? NULL
        : talk_take_server(&setup->talk, ask_address());
    return why == NULL ||
        command_line_fail(&setup->line, "TALLYD_ADDR %s", why);
}

static bool
begin_secure(struct backup_setup *setup)
{
    char why[SECURE_WHY_MAX + 1];
    return secure_begin(&setup->secure, why) ||
        command_line_fail(&setup->line, "%s", why);
}

int
backup_main(int argc, char *const argv[])
{
    struct backup_setup setup = {.line = {.row = rows,
                                     .n_rows = ID_COUNT,
                                     .n_words_max = 2,
                                     .take_fn = take},
        .rate = (uint64_t)RATE_MB_DEFAULT * MB,
        .talk = {.timeout_ms = TIMEOUT_MS, .fd = -1}};
    bool is_man;
    setup.line.context = &setup;
    if (wants_help(argc, argv, &is_man)) {
        return say_help(is_man);
    }
    setup.talk.secure = &setup.secure;
    if (!command_line_read(&setup.line, argc, argv) || !take_words(&setup) ||
        !take_default(&setup) || !begin_secure(&setup)) {
        (void)backup__fail("backup", setup.line.why);
        secure_fini(&setup.secure);
        return BACKUP_EXIT_USAGE;
    }
    give_way_begin(NICE); /* the server and its clients are on this machine */
    int status =
        setup.verifies ? backup__verify(&setup) : backup__take(&setup);
    explicit_bzero(setup.login, sizeof setup.login);
    talk_fini(&setup.talk);
    secure_fini(&setup.secure);
    return status;
}
