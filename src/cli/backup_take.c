/* SPDX-License-Identifier: BSD-3-Clause */
/* Takes a backup of a running server.
 *
 *   ask       the server lists the files of this moment, and keeps them
 *   prepare   DIR, new or with the notes of a backup that was interrupted
 *   files     each linked, copied, or found in the notes or an earlier backup;
 *             noted when it is synced
 *   release   the server says that all of them stayed: else there is no backup
 *   whole     DIR/BACKUP, durably, which makes it one
 *
 * A log file is copied always, up to what was synced: it is the only kind that
 * the server may write to behind that. What can go wrong: the server, or the
 * connection to it, is gone; the disk. Then the notes stay, and the same
 * command goes on. */
#include "base/assert.h"
#include "base/base64.h"
#include "base/clock.h"
#include "base/disk.h"
#include "base/err.h"
#include "base/num.h"
#include "cli/backup_priv.h"
#include "client/stop.h"
#include "wal/manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NS_PER_S UINT64_C(1000000000)

enum {
    MODE = 0700,
    ALIVE_S = 5, /* between words to the server, so that it keeps us */
    PATH_BYTES = 4096
};

struct taking {
    struct backup_setup *setup;
    struct backup_copy copy;
    struct stop stop;
    struct backup_list list; /* what the server has, then what is here */
    struct buf manifest;     /* its bytes */
    char path[PATH_BYTES];   /* of the data directory */
    bool is_listed;
    bool goes_on;                /* DIR has what an interrupted one has left */
    int source;                  /* the data directory */
    struct backup_folder folder; /* DIR; its list: of the notes */
    struct backup_folder since;  /* fd -1: there is none */
    uint64_t spoken_ns;
    size_t n_linked, n_copied, n_kept;
    uint64_t copied_bytes;
};

/* ---- what the server says ---- */

static int
hex_of(char digit)
{
    return digit >= '0' && digit <= '9' ? digit - '0'
        : digit >= 'A' && digit <= 'F'  ? digit - 'A' + 10
        : digit >= 'a' && digit <= 'f'  ? digit - 'a' + 10
                                        : -1;
}

/* What uri_encode has written. */
static bool
take_path(struct taking *it, const char *text, size_t len)
{
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        int byte = (unsigned char)text[i];
        if (text[i] == '%') {
            int high = i + 2 < len ? hex_of(text[i + 1]) : -1;
            int low = i + 2 < len ? hex_of(text[i + 2]) : -1;
            byte = high < 0 || low < 0 ? 0 : high << 4 | low;
            i += 2;
        }
        if (byte == 0 || n + 1 >= sizeof it->path) {
            return false;
        }
        it->path[n++] = (char)byte;
    }
    it->path[n] = '\0';
    return true;
}

static bool
take_file(struct taking *it, const char *text, size_t len)
{
    const char *space = memchr(text, ' ', len);
    size_t n = space == NULL ? 0 : (size_t)(space - text);
    struct backup_file file = {.xxh3 = 0};
    enum names_kind kind;
    uint64_t number;
    if (n == 0 || n >= sizeof file.name ||
        !num_parse_id(space + 1, len - n - 1, &file.bytes) ||
        file.bytes == 0) {
        return false;
    }
    memcpy(file.name, text, n);
    /* a name that stays in the folder, of a kind that a directory has */
    bool is_known = names_parse(file.name, &kind, &number) ||
        (strncmp(file.name, "segment-", strlen("segment-")) == 0 &&
            strchr(file.name, '/') == NULL);
    return is_known && backup_list_add(&it->list, &file) == 0;
}

static bool
take_manifest(struct taking *it, const char *text, size_t len)
{
    char *room = buf_reserve(&it->manifest, len);
    size_t n = room == NULL ? 0 : base64_decode(text, len, room);
    it->manifest.len += n;
    return n > 0;
}

static enum talk_take
take_line(void *context, const char *line, size_t len)
{
    struct taking *it = context;
    bool is_right = false;
    if (talk_is(line, len, "END")) {
        it->is_listed = true;
        return TALK_END;
    }
    if (talk_begins(line, len, "DIR ")) {
        is_right = take_path(it, line + 4, len - 4);
    } else if (talk_begins(line, len, "BATCH ")) {
        is_right = num_parse_id(line + 6, len - 6, &it->list.last_seq);
    } else if (talk_begins(line, len, "FILE ")) {
        is_right = take_file(it, line + 5, len - 5);
    } else if (talk_begins(line, len, "MANIFEST ")) {
        is_right = take_manifest(it, line + 9, len - 9);
    }
    if (!is_right) {
        (void)backup_copy_fail(&it->copy, "%s says: %.*s",
            it->setup->talk.at.text, (int)(len > 200 ? 200 : len), line);
        return TALK_END;
    }
    return TALK_MORE;
}

static bool
fail_talk(struct taking *it)
{
    return backup_copy_fail(&it->copy, "%s", it->setup->talk.why);
}

static bool
ask(struct taking *it)
{
    static const char line[] = "backup begin\r\n";
    struct talk *talk = &it->setup->talk;
    struct manifest manifest;
    if (!talk_connect(talk) || !talk_login(talk, it->setup->login) ||
        !talk_ask(talk, line, sizeof line - 1, take_line, it)) {
        return fail_talk(it);
    }
    it->spoken_ns = clock_monotonic_ns();
    if (!it->is_listed) {
        return false;
    }
    manifest_init(&manifest);
    int err = manifest_decode(
        (const uint8_t *)it->manifest.data, it->manifest.len, &manifest);
    it->list.epoch = manifest.epoch;
    it->list.taken_s = (uint64_t)clock_unix_s();
    manifest_fini(&manifest);
    return err == 0 ||
        backup_copy_fail(
            &it->copy, "the server's manifest: %s", err_file_text(err));
}

static enum talk_take
take_anything(void *context, const char *line, size_t len)
{
    (void)context;
    (void)line;
    (void)len;
    return TALK_END;
}

/* Between pieces: whether to go on, and a word to the server now and then,
 * which also tells early that it is gone. */
static bool
tick(struct backup_copy *copy)
{
    static const char line[] = "version\r\n";
    struct taking *it = copy->context;
    uint64_t now_ns = clock_monotonic_ns();
    if (stop_is_asked(&it->stop)) {
        return backup_copy_fail(
            copy, "interrupted: the same command goes on with it");
    }
    if (now_ns - it->spoken_ns < ALIVE_S * NS_PER_S) {
        return true;
    }
    it->spoken_ns = now_ns;
    return talk_ask(
               &it->setup->talk, line, sizeof line - 1, take_anything, NULL) ||
        fail_talk(it);
}

static enum talk_take
take_end(void *context, const char *line, size_t len)
{
    struct taking *it = context;
    if (!talk_is(line, len, "OK")) {
        (void)backup_copy_fail(&it->copy, "%s says: %.*s",
            it->setup->talk.at.text, (int)(len > 200 ? 200 : len), line);
    }
    return TALK_END;
}

/* True where all files stayed until now. */
static bool
release(struct taking *it)
{
    static const char line[] = "backup end\r\n";
    it->copy.why[0] = '\0';
    return talk_ask(&it->setup->talk, line, sizeof line - 1, take_end, it)
        ? it->copy.why[0] == '\0'
        : fail_talk(it);
}

/* What has failed is let go at once, not when the server sees that the
 * connection is over: the same command may be said again. */
static void
let_go(struct taking *it)
{
    static const char line[] = "backup end\r\n";
    struct talk *talk = &it->setup->talk;
    if (it->is_listed && talk->fd >= 0) {
        (void)talk_ask(talk, line, sizeof line - 1, take_anything, NULL);
    }
}

/* ---- where it goes ---- */

static bool
open_source(struct taking *it)
{
    const char *path = it->setup->data == NULL ? it->path : it->setup->data;
    struct manifest manifest;
    struct disk *disk;
    it->source = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (it->source < 0) {
        return backup_copy_fail(&it->copy,
            "cannot open the data directory %.150s: %s: run this on the "
            "server's machine, as its user or root; see --data",
            path, strerror(errno));
    }
    if (disk_real_create(it->source, &disk) != 0) {
        return backup_copy_fail(&it->copy, "out of memory");
    }
    manifest_init(&manifest);
    int err = manifest_read(disk, &manifest, NULL);
    bool is_it = err == 0 && manifest.epoch == it->list.epoch;
    manifest_fini(&manifest);
    disk_real_destroy(&disk);
    return is_it ||
        backup_copy_fail(&it->copy,
            "%.150s is not the data directory of that server%s%s; see --data",
            path, err == 0 ? "" : ": ", err == 0 ? "" : err_file_text(err));
}

static bool
open_folder(struct taking *it)
{
    const char *path = it->setup->dir;
    struct backup_folder *folder = &it->folder;
    if ((mkdir(path, MODE) != 0 && errno != EEXIST) ||
        (folder->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0) {
        return backup_copy_fail(
            &it->copy, "cannot make %.150s: %s", path, strerror(errno));
    }
    if (faccessat(folder->fd, BACKUP_WHOLE, F_OK, 0) == 0) {
        return backup_copy_fail(&it->copy,
            "%.150s has a backup: name another directory, and see --since",
            path);
    }
    int err = backup__read_list(folder->fd, BACKUP_PART, true, &folder->list);
    if (err == ERR_NOT_FOUND) { /* it may have been made just before a crash */
        (void)unlinkat(folder->fd, BACKUP_FILES, AT_REMOVEDIR);
    }
    if (mkdirat(folder->fd, BACKUP_FILES, MODE) != 0 &&
        (errno != EEXIST || err == ERR_NOT_FOUND)) {
        return backup_copy_fail(&it->copy,
            "%.150s has files that are no backup: name another directory",
            path);
    }
    folder->files_fd =
        openat(folder->fd, BACKUP_FILES, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder->files_fd < 0) {
        return backup_copy_fail(&it->copy,
            "cannot open %.150s/" BACKUP_FILES ": %s", path, strerror(errno));
    }
    it->goes_on = err != ERR_NOT_FOUND;
    if (err == 0) {
        (void)fprintf(stderr,
            "tallyctl backup: goes on with the backup that was interrupted\n");
    }
    return true;
}

/* The notes begin anew: what is kept of the old ones is noted again. */
static bool
begin_notes(struct taking *it)
{
    struct buf head = {0};
    backup_list_put_head(&it->list, &head);
    int error = head.failed
        ? ENOMEM
        : backup__put(it->folder.fd, BACKUP_PART, head.data, head.len);
    buf_fini(&head);
    return error == 0 ||
        backup_copy_fail(
            &it->copy, "cannot write " BACKUP_PART ": %s", strerror(error));
}

/* A file is here, synced under its name. */
static bool
note(struct taking *it, const struct backup_file *file)
{
    struct buf line = {0};
    backup_list_put_file(file, &line);
    int fd =
        openat(it->folder.fd, BACKUP_PART, O_WRONLY | O_APPEND | O_CLOEXEC);
    bool is_noted = !line.failed && fd >= 0 &&
        write(fd, line.data, line.len) == (ssize_t)line.len &&
        fdatasync(fd) == 0;
    if (fd >= 0) {
        (void)close(fd);
    }
    buf_fini(&line);
    return is_noted ||
        backup_copy_fail(
            &it->copy, "cannot write " BACKUP_PART ": %s", strerror(errno));
}

/* ---- files ---- */

static bool
is_log(const char *name)
{
    enum names_kind kind;
    uint64_t number;
    return names_parse(name, &kind, &number) && kind == NAMES_LOG;
}

/* The same file in that list and folder, by its length and its ends. */
static const struct backup_file *
find_same(const struct taking *it, const struct backup_folder *in,
    const struct backup_file *file)
{
    const struct backup_file *found =
        in->fd < 0 ? NULL : backup_list_find(&in->list, file->name);
    return found != NULL && found->bytes == file->bytes &&
            !is_log(file->name) &&
            backup_copy_is_same(
                it->source, in->files_fd, file->name, file->bytes)
        ? found
        : NULL;
}

/* Links it, to the earlier backup or to the data directory. *is_here false: it
 * is to be copied. */
static bool
link_file(struct taking *it, struct backup_file *file, bool *is_here)
{
    const struct backup_file *earlier = find_same(it, &it->since, file);
    *is_here = false;
    if (earlier != NULL &&
        !backup_copy_link(&it->copy, it->since.files_fd, it->folder.files_fd,
            file->name, is_here)) {
        return false;
    }
    if (*is_here) {
        file->xxh3 = earlier->xxh3;
        it->copy.done_bytes += file->bytes;
        return true;
    }
    if (it->setup->copies || is_log(file->name)) {
        return true;
    }
    return backup_copy_link(&it->copy, it->source, it->folder.files_fd,
               file->name, is_here) &&
        (!*is_here ||
            backup_copy_hash(&it->copy, it->folder.files_fd, file->name,
                file->bytes, &file->xxh3));
}

static bool
bring(struct taking *it, struct backup_file *file)
{
    const struct backup_file *kept = find_same(it, &it->folder, file);
    bool is_here = false;
    if (kept != NULL) {
        file->xxh3 = kept->xxh3;
        it->copy.done_bytes += file->bytes;
        it->n_kept++;
        return note(it, file);
    }
    if (!link_file(it, file, &is_here)) {
        return false;
    }
    if (is_here) {
        it->n_linked++;
    } else {
        if (!backup_copy_file(&it->copy, it->source, file->name,
                it->folder.files_fd, file->name, file->bytes, &file->xxh3)) {
            return false;
        }
        it->n_copied++;
        it->copied_bytes += file->bytes;
    }
    return backup__sync(&it->copy, it->folder.files_fd, BACKUP_FILES) &&
        note(it, file);
}

static void
remove_other(void *context, const char *name)
{
    struct taking *it = context;
    if (backup_list_find(&it->list, name) == NULL) {
        (void)unlinkat(it->folder.files_fd, name, 0);
    }
}

/* What an interrupted one has left that this one does not have, also what it
 * had not noted yet. */
static bool
remove_others(struct taking *it)
{
    struct disk *disk;
    if (disk_real_create(it->folder.files_fd, &disk) != 0) {
        return backup_copy_fail(&it->copy, "out of memory");
    }
    int error = disk->calls->list(disk, remove_other, it);
    disk_real_destroy(&disk);
    return error == 0 ||
        backup_copy_fail(
            &it->copy, "cannot read " BACKUP_FILES ": %s", strerror(error));
}

static bool
bring_all(struct taking *it)
{
    it->copy.all_bytes = backup_list_bytes(&it->list);
    for (size_t i = 0; i < it->list.n; i++) {
        if (!tick(&it->copy) || !bring(it, &it->list.file[i])) {
            return false;
        }
        backup_copy_show(&it->copy);
    }
    return !it->goes_on || remove_others(it);
}

static bool
put_manifest(struct taking *it)
{
    struct backup_file file = {.name = MANIFEST_NAME,
        .bytes = it->manifest.len,
        .xxh3 = checksum64(it->manifest.data, it->manifest.len, 0)};
    int error = backup__put(it->folder.files_fd, MANIFEST_NAME,
        it->manifest.data, it->manifest.len);
    if (error != 0) {
        return backup_copy_fail(
            &it->copy, "cannot write " MANIFEST_NAME ": %s", strerror(error));
    }
    return backup_list_add(&it->list, &file) == 0 ||
        backup_copy_fail(&it->copy, "out of memory");
}

/* From here on it is a backup. */
static bool
make_whole(struct taking *it)
{
    struct buf text = {0};
    backup_list_put_head(&it->list, &text);
    for (size_t i = 0; i < it->list.n; i++) {
        backup_list_put_file(&it->list.file[i], &text);
    }
    if (!text.failed) {
        backup_list_put_end(it->list.n, &text);
    }
    int error = text.failed
        ? ENOMEM
        : backup__put(it->folder.fd, BACKUP_WHOLE, text.data, text.len);
    buf_fini(&text);
    if (error != 0) {
        return backup_copy_fail(
            &it->copy, "cannot write " BACKUP_WHOLE ": %s", strerror(error));
    }
    (void)unlinkat(it->folder.fd, BACKUP_PART, 0);
    return true;
}

static void
say(const struct taking *it)
{
    uint64_t bytes = backup_list_bytes(&it->list);
    if (it->setup->is_json) {
        (void)printf("{\"files\":%zu,\"bytes\":%" PRIu64 ",\"batch\":%" PRIu64
                     ",\"copied\":%zu,\"copied_bytes\":%" PRIu64
                     ",\"linked\":%zu,\"kept\":%zu}\n",
            it->list.n, bytes, it->list.last_seq, it->n_copied,
            it->copied_bytes, it->n_linked, it->n_kept);
        return;
    }
    (void)printf("the backup is whole: %zu files, %" PRIu64
                 " bytes, up to batch %" PRIu64 "; %zu copied (%" PRIu64
                 " bytes), %zu linked, %zu that were there\n",
        it->list.n, bytes, it->list.last_seq, it->n_copied, it->copied_bytes,
        it->n_linked, it->n_kept);
}

static bool
run(struct taking *it)
{
    if (it->setup->since != NULL &&
        !backup__open(&it->copy, it->setup->since, &it->since)) {
        return false;
    }
    return ask(it) && open_source(it) && open_folder(it) && begin_notes(it) &&
        bring_all(it) && put_manifest(it) &&
        backup__sync(&it->copy, it->folder.files_fd, BACKUP_FILES) &&
        backup__sync_parent(&it->copy, it->folder.fd, it->setup->dir) &&
        release(it) && make_whole(it);
}

int
backup__take(struct backup_setup *setup)
{
    struct taking it = {.setup = setup,
        .copy = {.what = "copied", .rate = setup->rate, .tick_fn = tick},
        .source = -1,
        .folder = {.fd = -1, .files_fd = -1},
        .since = {.fd = -1, .files_fd = -1}};
    it.copy.context = &it;
    if (stop_init(&it.stop, 0) != 0) {
        return backup__fail("backup", "cannot wait for signals");
    }
    bool is_done = backup_copy_init(&it.copy) && run(&it);
    backup_copy_end(&it.copy);
    if (is_done) {
        say(&it);
    } else {
        let_go(&it);
    }
    if (it.source >= 0) {
        (void)close(it.source);
    }
    backup__close(&it.folder);
    backup__close(&it.since);
    backup_list_fini(&it.list);
    buf_fini(&it.manifest);
    backup_copy_fini(&it.copy);
    stop_fini(&it.stop);
    return is_done && fflush(stdout) == 0
        ? EXIT_SUCCESS
        : backup__fail("backup", it.copy.why);
}
