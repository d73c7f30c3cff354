/* SPDX-License-Identifier: BSD-3-Clause */
/* store/dump of a sound directory: a disk that does not read, which is no
 * damage, and text that nobody takes. What a dump says, of damage, too, is
 * looked at by check_salvage. */
#include "store/dump.h"
#include "unit/durable_help.h"

#include "base/buf.h"

#include <errno.h>

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

int
main(void)
{
    TCase *tcase = tcase_create("dump");
    tcase_add_test(tcase, test_disk_fails);
    tcase_add_test(tcase, test_nobody_takes);
    tcase_add_test(tcase, test_gone);
    return run_case("dump", tcase);
}
