/* SPDX-License-Identifier: BSD-3-Clause */
/* tallyctl backup verify: each file that the list names has its bytes, and all
 * of them together are a data directory on which a start would work. */
#include "base/buf.h"
#include "cli/backup_priv.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* How many files are not as they were; each is told. -1: it cannot go on. */
static size_t
verify_files(struct backup_copy *copy, const struct backup_folder *folder)
{
    const struct backup_list *list = &folder->list;
    size_t n_bad = 0;
    for (size_t i = 0; i < list->n; i++) {
        const struct backup_file *file = &list->file[i];
        uint64_t xxh3 = 0;
        bool is_read = backup_copy_hash(
            copy, folder->files_fd, file->name, file->bytes, &xxh3);
        if (is_read && xxh3 == file->xxh3) {
            continue;
        }
        backup_copy_end(copy);
        n_bad++;
        (void)fprintf(stderr, "tallyctl backup: %s: %s\n", file->name,
            is_read ? "its bytes are not those that were copied" : copy->why);
    }
    return n_bad;
}

static void
say(const struct backup_setup *setup, const struct backup_list *list,
    size_t n_bad, bool is_sound, const struct buf *found)
{
    if (setup->is_json) {
        (void)printf("{\"files\":%zu,\"bytes\":%" PRIu64 ",\"batch\":%" PRIu64
                     ",\"damaged\":%zu,\"sound\":%s}\n",
            list->n, backup_list_bytes(list), list->last_seq, n_bad,
            is_sound ? "true" : "false");
        return;
    }
    (void)printf("%.*s", (int)found->len, found->len > 0 ? found->data : "");
    if (is_sound) {
        (void)printf("the backup is sound: %zu files, %" PRIu64
                     " bytes, up to batch %" PRIu64 "\n",
            list->n, backup_list_bytes(list), list->last_seq);
    }
}

int
backup__verify(struct backup_setup *setup)
{
    struct backup_copy copy = {.what = "read", .rate = setup->rate};
    struct backup_folder folder;
    struct logger logger = {0};
    struct buf found = {0};
    if (!backup__open(&copy, setup->dir, &folder)) {
        return backup__fail("backup", copy.why);
    }
    copy.all_bytes = BACKUP_READINGS * backup_list_bytes(&folder.list);
    bool is_sound = backup_copy_init(&copy);
    size_t n_bad = 0;
    if (is_sound) {
        n_bad = verify_files(&copy, &folder);
        is_sound = backup__check(&copy, folder.files_fd, &logger, &found) &&
            n_bad == 0;
        backup_copy_end(&copy);
        say(setup, &folder.list, n_bad, is_sound, &found);
    }
    if (n_bad > 0) {
        (void)backup_copy_fail(&copy,
            "files of %.150s are damaged: take another backup, and look after "
            "the disk",
            setup->dir);
    }
    backup_copy_fini(&copy);
    backup__close(&folder);
    buf_fini(&found);
    return is_sound && fflush(stdout) == 0 ? EXIT_SUCCESS
                                           : backup__fail("backup", copy.why);
}
