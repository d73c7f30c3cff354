/* SPDX-License-Identifier: BSD-3-Clause */
/* offline/salvage where edits of the schema are among what is lost; where there
 * is nothing to begin with; and where there is no room. */
#include "unit/salvage_help.h"

#include "base/err.h"
#include "wal/manifest.h"
#include "wal/names.h"

enum { SET_TO = 9 };

static void
begin(struct rig *rig)
{
    rig_init(rig, WAL_SYNC_ALWAYS, ID_RANDOM, 4);
    ck_assert_int_eq(rig_open(rig), 0);
    rig_add_counter(rig, 'a');
    (void)rig_set_all(rig, 'a', 1);
    rig_add_counter(rig, 'z');
}

static void
end(struct rig *rig)
{
    store_verify(rig->store);
    ck_assert_int_eq(rig_close(rig), 0);
    rig_fini(rig);
}

/* Whoever has its name (_i is 0) or its place comes when a counter's end is
 * lost: it is gone even so, and has left no number behind. */
START_TEST(test_end_lost)
{
    char letter = _i == 0 ? 'a' : 'b';
    const char column[] = {letter, 'x', '\0'};
    struct rig rig;
    struct files files;
    begin(&rig);
    ck_assert_int_eq(rig_edit(&rig, "drop counter a a"), 0);
    rig_add_counter(&rig, letter);
    struct cell_key key = cell_of(quiet_schema(rig.store), 0, column);
    key.id = rig.history.id[0];
    struct change change = change_of(&key, CHANGE_SET, SET_TO);
    uint64_t seq;
    ck_assert(rig_change(&rig, &change, 1, &seq));
    ck_assert_int_eq(rig_commit(&rig, seq), STORE_COMMITTED);
    kill_it(&rig, &files);
    ck_assert_uint_eq(lose_batches(&files, ENTRY_DROPPED), 1);
    salvage(&rig, &files, SALVAGE_LOSSY,
        "the counter a is gone: its end is among what is lost");
    const struct schema *schema = quiet_schema(rig.store);
    ck_assert((schema_counter(schema, "a", 1) != NULL) == (_i == 0));
    for (size_t i = 0; i < 2; i++) {
        uint64_t found;
        key = cell_of(schema, rig.history.id[i], column);
        (void)get_cell(rig.store, &key, &found);
        ck_assert_uint_eq(found, i == 0 ? SET_TO : 0);
    }
    end(&rig);
}
END_TEST

/* The end of a counter of which nothing is left is left out. */
START_TEST(test_beginning_lost)
{
    struct rig rig;
    struct files files;
    begin(&rig);
    ck_assert_int_eq(rig_edit(&rig, "drop counter a a"), 0);
    kill_it(&rig, &files);
    ck_assert_uint_gt(lose_batches(&files, ENTRY_COUNTER), 0);
    salvage(&rig, &files, SALVAGE_LOSSY,
        "an edit of the schema is left out: what it follows is lost");
    ck_assert_ptr_null(schema_counter(quiet_schema(rig.store), "a", 1));
    end(&rig);
}
END_TEST

static struct file *
find_file(struct files *files, const char *name)
{
    size_t i = 0;
    while (i < files->n && strcmp(files->file[i].name, name) != 0) {
        i++;
    }
    ck_assert_uint_lt(i, files->n);
    return &files->file[i];
}

/* Adds what a start before had and has been removed since. */
static void
add_removed(struct files *files, struct files *before)
{
    for (size_t i = 0; i < before->n; i++) {
        size_t k = 0;
        while (k < files->n &&
            strcmp(files->file[k].name, before->file[i].name) != 0) {
            k++;
        }
        if (k == files->n) {
            ck_assert_uint_lt(k, FILES_MAX);
            files->file[files->n++] = before->file[i];
            before->file[i].bytes = NULL;
        }
    }
}

/* Both manifests are lost, and there is a checkpoint; but the log goes back to
 * its first file, whose header has a bit turned over where _i is 1. */
START_TEST(test_all_in_log)
{
    struct rig rig;
    struct files files, before;
    begin(&rig);
    read_files(rig.data.disk, &before);
    ck_assert_int_eq(rig_checkpoint(&rig), 0);
    ck_assert_int_eq(rig_set_all(&rig, 'a', SET_TO), STORE_COMMITTED);
    kill_it(&rig, &files);
    size_t n = files.n;
    add_removed(&files, &before);
    ck_assert_uint_eq(files.n, n + 1);
    struct file *first = &files.file[n];
    ck_assert(is_log(first) && strstr(first->name, "0001") != NULL);
    for (size_t i = 0; i < n; i++) {
        if (strncmp(files.file[i].name, "MANIFEST", 8) == 0) {
            free(files.file[i].bytes);
            files.file[i].bytes = NULL;
        } else if (is_log(&files.file[i]) && _i == 1) {
            /* of no use for the epoch */
            files.file[i].bytes[FRAME_FILE_BYTES / 2] ^= 1;
        }
    }
    first->bytes[FRAME_FILE_BYTES / 2] ^= (uint8_t)_i;
    free_files(&before);
    salvage(&rig, &files, SALVAGE_LOSSY,
        "checkpoints and segments are left aside");
    rig_expect_all(&rig);
    end(&rig);
}
END_TEST

static void
refused(struct rig *rig, const struct files *files, uint64_t free_bytes,
    int wanted, const char *says)
{
    struct fake_disk *fake = disk_of(files);
    const struct salvage_config config = {.disk = fake_disk_as_disk(fake),
        .logger = &rig->logger,
        .free_bytes = free_bytes,
        .shards = rig->config.shards,
        .seed = 3};
    struct buf report = {0};
    enum salvage_outcome outcome;
    unsigned writes = fake_disk_count(fake, FAKE_WRITE);
    ck_assert_int_eq(salvage_run(&config, &report, &outcome), wanted);
    buf_add(&report, "", 1);
    ck_assert_msg(strstr(report.data, says) != NULL, "%s", report.data);
    ck_assert_uint_eq(fake_disk_count(fake, FAKE_WRITE), writes);
    ck_assert_uint_eq(fake_disk_count(fake, FAKE_UNLINK), 0);
    buf_fini(&report);
    fake_disk_destroy(&fake);
}

/* Nothing is changed then. */
START_TEST(test_refused)
{
    struct rig rig;
    struct files files;
    begin(&rig);
    kill_it(&rig, &files);
    ck_assert_uint_gt(lose_batches(&files, ENTRY_COUNTER), 0);
    refused(&rig, &files, 1, ERR_DISK_FULL, "there are 1 bytes free");
    for (size_t i = 0; i < files.n; i++) {
        struct file *file = &files.file[i];
        if (strncmp(file->name, "MANIFEST", 8) == 0) {
            file->len = 0;
        } else if (is_log(file)) {
            memset(file->bytes, 0, FRAME_FILE_BYTES);
        }
    }
    refused(&rig, &files, UINT64_MAX, ERR_CORRUPT,
        "the log does not go back to the first file");
    free_files(&files);
    rig_fini(&rig);
}
END_TEST

/* Only the copy is left of the manifests, and it is from a start before the
 * last: one that ended at its step n, perhaps before it had a log file. */
START_TEST(test_copy_behind)
{
    bool is_dead = true;
    for (unsigned n = 1; is_dead; n++) {
        struct rig rig;
        struct files files, older;
        begin(&rig);
        kill_it(&rig, &files);
        free_files(&files);
        fake_disk_die(rig.fake, n);
        if (rig_open(&rig) == 0) {
            (void)rig_close(&rig);
        }
        is_dead = fake_disk_is_dead(rig.fake);
        fake_disk_revive(rig.fake);
        read_files(rig.data.disk, &older);
        ck_assert_int_eq(rig_open(&rig), 0);
        ck_assert_int_eq(rig_set_all(&rig, 'a', SET_TO), STORE_COMMITTED);
        kill_it(&rig, &files);
        struct file *copy = find_file(&files, MANIFEST_COPY);
        struct file *then = find_file(&older, MANIFEST_COPY);
        struct file whole = *copy;
        *copy = *then;
        *then = whole;
        struct file *manifest = find_file(&files, MANIFEST_NAME);
        free(manifest->bytes);
        manifest->bytes = NULL;
        free_files(&older);
        salvage(&rig, &files, SALVAGE_WHOLE, "MANIFEST.copy takes its place");
        rig_expect_all(&rig);
        end(&rig);
    }
}
END_TEST

/* A file between two of one start says another history: it is a stranger's,
 * though no manifest is left that says so. */
START_TEST(test_between)
{
    struct rig rig;
    struct files files;
    rig_init(&rig, WAL_SYNC_ALWAYS, ID_RANDOM, 4);
    rig.data.log_file_bytes = 4096;
    ck_assert_int_eq(rig_open(&rig), 0);
    rig_add_counter(&rig, 'a');
    for (uint64_t value = 1; rig_stat(&rig, "file") < 4; value++) {
        ck_assert_int_eq(rig_set_all(&rig, 'a', value), STORE_COMMITTED);
    }
    kill_it(&rig, &files);
    struct frame_file head;
    char name[NAMES_BYTES];
    names_make(name, NAMES_LOG, 2);
    struct file *log = find_file(&files, name);
    ck_assert_int_eq(frame_file_get(log->bytes, log->len, &head), FRAME_OK);
    head.epoch ^= 1;
    frame_file_put(&head, log->bytes);
    struct file *manifest = find_file(&files, MANIFEST_NAME);
    free(manifest->bytes);
    manifest->bytes = NULL;
    struct fake_disk *fake = disk_of(&files);
    const struct salvage_config config = {.disk = fake_disk_as_disk(fake),
        .logger = &rig.logger,
        .free_bytes = UINT64_MAX};
    struct buf report = {0};
    enum salvage_outcome outcome;
    ck_assert_int_eq(salvage_run(&config, &report, &outcome), 0);
    ck_assert_int_eq(outcome, SALVAGE_LOSSY);
    buf_add(&report, "", 1);
    ck_assert_msg(strstr(report.data, "taken for this directory's") == NULL,
        "%s", report.data);
    ck_assert_msg(strstr(report.data, " is of another data directory") != NULL,
        "%s", report.data);
    buf_fini(&report);
    free_files(&files);
    fake_disk_destroy(&fake);
    rig_fini(&rig);
}
END_TEST

int
main(void)
{
    TCase *tcase = tcase_create("salvage_lost");
    tcase_add_loop_test(tcase, test_end_lost, 0, 2);
    tcase_add_test(tcase, test_beginning_lost);
    tcase_add_loop_test(tcase, test_all_in_log, 0, 2);
    tcase_add_test(tcase, test_refused);
    tcase_add_test(tcase, test_copy_behind);
    tcase_add_test(tcase, test_between);
    return run_case("salvage_lost", tcase);
}
