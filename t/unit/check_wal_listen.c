/* SPDX-License-Identifier: BSD-3-Clause */
/* wal/wal_listen: who is told that outcomes may have changed, and who is not
 * any more, in whatever order they go. */
#include "unit/wal_rig.h"

#include <stdatomic.h>

struct counted {
    struct wal_listener listener;
    _Atomic unsigned n; /* how often it was told */
};

static void
count(struct wal_listener *listener)
{
    struct counted *counted = (struct counted *)((char *)listener -
        offsetof(struct counted, listener));
    atomic_fetch_add(&counted->n, 1);
}

/* Each of three goes once, while the others stay; the rig's own has been there
 * before them all. */
START_TEST(test_each_goes)
{
    struct counted counted[3];
    struct rig rig;
    rig_init(&rig, WAL_SYNC_ALWAYS, 1);
    rig.config.interval_ms = 1000000; /* nothing is synced by itself */
    ck_assert_int_eq(rig_open(&rig), 0);
    for (size_t i = 0; i < COUNT_OF(counted); i++) {
        counted[i].listener = (struct wal_listener){.moved_fn = count};
        atomic_init(&counted[i].n, 0);
        wal_listen(rig.wal, &counted[i].listener);
    }
    wal_unlisten(rig.wal, &counted[_i].listener);
    ck_assert_ptr_null(counted[_i].listener.next);
    unsigned before = atomic_load(&counted[_i].n);
    unsigned n_told = rig_n_told(&rig);
    ck_assert_int_eq(rig_commit(&rig, rig_append(&rig, 1)), WAL_COMMITTED);
    rig_wait_told(&rig, n_told);
    for (size_t i = 0; i < COUNT_OF(counted); i++) {
        if (i != (size_t)_i) {
            wal_unlisten(rig.wal, &counted[i].listener);
            /* told before the rig's, which is the oldest */
            ck_assert_uint_gt(atomic_load(&counted[i].n), 0);
        }
    }
    ck_assert_uint_eq(atomic_load(&counted[_i].n), before);
    ck_assert_int_eq(rig_close(&rig), 0);
    rig_fini(&rig);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_each_goes};
    return run_tests_often("wal listeners", tests, COUNT_OF(tests), 3);
}
