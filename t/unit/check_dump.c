/* SPDX-License-Identifier: BSD-3-Clause */
/* offline/dump of a sound directory: a disk that does not read, which is no
 * damage, and text that nobody takes. What a dump says, of damage, too, is
 * looked at by check_salvage. */
#include "offline/data_check.h"
#include "offline/dump.h"
#include "offline/reading.h"
#include "offline/salvage.h"
#include "unit/durable_help.h"

#include "base/buf.h"
#include "wal/names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct taken {
    struct buf text;
    unsigned n, refused_at; /* calls; from 1 on, 0: none is refused */
};

static int
take(void *context, const char *text, size_t len)
{
    struct taken *taken = context;
    if (++taken->n == taken->refused_at) {
        return ERR_DISK_FULL;
    }
    buf_add(&taken->text, text, len);
    return 0;
}

static int
dump(struct rig *rig, struct taken *taken)
{
    const struct dump_config config = {.disk = rig->data.disk,
        .logger = &rig->logger,
        .write_fn = take,
        .context = taken};
    return dump_run(&config);
}

/* With a segment, images and a log. */
static void
make_directory(struct rig *rig)
{
    rig_init(rig, WAL_SYNC_ALWAYS, ID_CLUSTERS, 5);
    rig->seals = true;
    ck_assert_int_eq(rig_open(rig), 0);
    rig_add_counter(rig, 'a');
    (void)rig_set_all(rig, 'a', 5);
    ck_assert_int_eq(rig_seal_all(rig), 0);
    (void)rig_set_all(rig, 'a', 6);
    ck_assert_int_eq(rig_checkpoint(rig), 0);
    for (uint64_t value = 7; value < 20; value++) { /* more than one write */
        (void)rig_set_all(rig, 'a', value);
    }
    ck_assert_int_eq(rig_close(rig), 0);
}

/* Each call in turn: that is said, or it does not matter. */
START_TEST(test_disk_fails)
{
    struct rig rig;
    struct taken whole = {0};
    unsigned n_said = 0;
    bool has_failed = true;
    make_directory(&rig);
    ck_assert_int_eq(dump(&rig, &whole), 0);
    for (unsigned n = 1; has_failed; n++) {
        struct taken now = {0};
        fake_disk_fail(rig.fake, FAKE_ALL, n, EIO, false);
        int err = dump(&rig, &now);
        has_failed = fake_disk_heal(rig.fake) > 0;
        EXPECT(err == 0 || (err == ERR_DISK && has_failed), "call %u: %s", n,
            err_text(err));
        if (err == 0) {
            ck_assert_uint_eq(now.text.len, whole.text.len);
            ck_assert_int_eq(
                memcmp(now.text.data, whole.text.data, now.text.len), 0);
        }
        n_said += err != 0;
        buf_fini(&now.text);
    }
    ck_assert_uint_gt(n_said, 6);
    buf_fini(&whole.text);
    rig_fini(&rig);
}
END_TEST

/* Its error is the dump's, and it is not asked again. */
START_TEST(test_nobody_takes)
{
    struct rig rig;
    int err = ERR_DISK_FULL;
    unsigned n = 0;
    make_directory(&rig);
    while (err != 0) {
        struct taken now = {.refused_at = ++n};
        err = dump(&rig, &now);
        ck_assert_int_eq(err, now.n < n ? 0 : ERR_DISK_FULL);
        ck_assert_uint_le(now.n, n);
        buf_fini(&now.text);
    }
    ck_assert_uint_gt(n, 2);
    rig_fini(&rig);
}
END_TEST

/* Edits behind the checkpoint: what has gone, and nothing of what stays. */
START_TEST(test_gone)
{
    struct rig rig;
    struct taken now = {0};
    make_directory(&rig);
    ck_assert_int_eq(rig_open(&rig), 0);
    ck_assert_int_eq(rig_edit(&rig, "add column a ay max=8"), 0);
    ck_assert_int_eq(rig_edit(&rig, "drop column a ax ax"), 0);
    rig_add_counter(&rig, 'b');
    ck_assert_int_eq(rig_edit(&rig, "drop counter b b"), 0);
    fake_disk_die(rig.fake, 1); /* no checkpoint at the end */
    (void)rig_close(&rig);
    fake_disk_revive(rig.fake);
    ck_assert_int_eq(dump(&rig, &now), 0);
    buf_add(&now.text, "", 1);
    ck_assert_ptr_nonnull(strstr(now.text.data, "\ngone a ax\n"));
    ck_assert_ptr_nonnull(strstr(now.text.data, "\ngone b\n"));
    ck_assert_ptr_null(strstr(now.text.data, "\ngone a ay\n"));
    ck_assert_ptr_null(strstr(now.text.data, "\ngone a\n"));
    buf_fini(&now.text);
    rig_fini(&rig);
}
END_TEST

/* The first log file is in name. */
static void
note_log(void *context, const char *found)
{
    char *name = context;
    if (strncmp(found, "log-", 4) == 0 &&
        (name[0] == '\0' || strcmp(found, name) < 0)) {
        (void)snprintf(name, NAMES_BYTES, "%s", found);
    }
}

/* A minute passes whenever somebody looks. */
struct minutes {
    struct clock clock;
    _Atomic uint64_t n;
};

static uint64_t
at_minute(const struct clock *clock, uint64_t monotonic_ns)
{
    struct minutes *minutes = (struct minutes *)clock;
    (void)monotonic_ns;
    return 60 * UINT64_C(1000000000) * ++minutes->n;
}

/* What was told never falls, never passes 100 %, and ends there, not before.
 * Returns in how many steps. */
static unsigned
expect_progress(const char *said, const char *begins)
{
    unsigned n = 0, steps = 0, percent = 0, last = 0;
    for (const char *at = said; (at = strstr(at, begins)) != NULL; n++) {
        at += strlen(begins);
        percent = (unsigned)strtoul(at, NULL, 10);
        ck_assert_msg(percent >= last && percent <= 100, "%s", said);
        ck_assert_msg(n > 0 || percent < 100, "%s", said);
        steps += percent > last;
        last = percent;
    }
    ck_assert_msg(percent == 100, "%s", said);
    return steps;
}

/* Each part, with files that it has no use for, and damaged ones (_i is 1). */
START_TEST(test_progress)
{
    enum { SAID_BYTES = 1 << 20 };
    static const struct clock_calls calls = {.at = at_minute};
    static char said[SAID_BYTES];
    struct rig rig;
    make_directory(&rig);
    struct disk *disk = rig.data.disk;
    char name[NAMES_BYTES];
    int fd;
    names_make(name, NAMES_CHECKPOINT, 99);
    ck_assert_int_eq(disk->calls->open(disk, name, DISK_CREATE, &fd), 0);
    ck_assert_int_eq(
        disk->calls->write(disk, fd, said, sizeof said / 2, 0), 0);
    disk->calls->close(disk, fd);
    name[0] = '\0';
    ck_assert_int_eq(disk->calls->list(disk, note_log, name), 0);
    ck_assert_int_eq(disk->calls->open(disk, name, DISK_WRITE, &fd), 0);
    if (_i == 1) {
        ck_assert_int_eq(disk->calls->write(disk, fd, "?", 1, 200), 0);
    }
    disk->calls->close(disk, fd);
    for (int part = DUMP_ALL; part <= DUMP_PRODUCERS; part++) {
        struct minutes minutes = {.clock = {&calls}};
        struct logger logger = {.is_unlimited = true};
        struct taken taken = {0};
        const struct dump_config config = {.disk = disk,
            .logger = &logger,
            .clock = &minutes.clock,
            .part = (enum dump_part)part,
            .write_fn = take,
            .context = &taken};
        int log = memfd_create("log", MFD_CLOEXEC);
        atomic_init(&logger.fd, log);
        int err = dump_run(&config);
        ck_assert_int_eq(
            err, _i == 1 && part != DUMP_RECORDS ? ERR_CORRUPT : 0);
        ssize_t n = pread(log, said, sizeof said - 1, 0);
        said[n < 0 ? 0 : n] = '\0';
        unsigned steps = expect_progress(said, "loading for a dump: ");
        ck_assert_msg(steps >= 2, "%d: %s", part, said);
        close(log);
        buf_fini(&taken.text);
    }
    rig_fini(&rig);
}
END_TEST

/* What a rejoin has cut off, which no start reads. */
static void
add_cut_file(struct disk *disk)
{
    enum { BYTES = 1 << 20 };
    static char zeros[BYTES];
    char name[NAMES_BYTES];
    int fd;
    names_make(name, NAMES_CUT, 1);
    ck_assert_int_eq(disk->calls->open(disk, name, DISK_CREATE, &fd), 0);
    ck_assert_int_eq(disk->calls->write(disk, fd, zeros, BYTES, 0), 0);
    disk->calls->close(disk, fd);
}

/* Of what reads the whole directory, some of it twice, and writes nothing. */
START_TEST(test_reading)
{
    enum { SAID_BYTES = 1 << 20 };
    static const struct clock_calls calls = {.at = at_minute};
    static char said[SAID_BYTES];
    static const char *const what[] = {"for a check", "for a salvage"};
    struct rig rig;
    make_directory(&rig);
    add_cut_file(rig.data.disk);
    for (size_t i = 0; i < sizeof what / sizeof what[0]; i++) {
        struct minutes minutes = {.clock = {&calls}};
        struct logger logger = {.is_unlimited = true};
        struct logger quiet = {0};
        struct reading reading;
        struct buf found = {0};
        struct disk *disk;
        enum salvage_outcome outcome = SALVAGE_LOSSY;
        char begins[64];
        int log = memfd_create("log", MFD_CLOEXEC);
        atomic_init(&logger.fd, log);
        ck_assert_int_eq(reading_begin(&reading, rig.data.disk, &logger,
                             &minutes.clock, what[i], &disk),
            0);
        const struct salvage_config config = {
            .disk = disk, .logger = &quiet, .free_bytes = UINT64_MAX};
        ck_assert_int_eq(i == 0 ? data_check_disk(disk, &quiet, &found)
                                : salvage_run(&config, &found, &outcome),
            0);
        reading_end(&reading, &disk);
        ck_assert(i == 0 || outcome == SALVAGE_SOUND);
        ssize_t n = pread(log, said, sizeof said - 1, 0);
        said[n < 0 ? 0 : n] = '\0';
        (void)snprintf(begins, sizeof begins, "loading %s: ", what[i]);
        ck_assert_msg(expect_progress(said, begins) >= 2, "%s", said);
        close(log);
        buf_fini(&found);
    }
    rig_fini(&rig);
}
END_TEST

int
main(void)
{
    TCase *tcase = tcase_create("dump");
    tcase_add_test(tcase, test_disk_fails);
    tcase_add_test(tcase, test_nobody_takes);
    tcase_add_test(tcase, test_gone);
    tcase_add_loop_test(tcase, test_progress, 0, 2);
    tcase_add_test(tcase, test_reading);
    return run_case("dump", tcase);
}
