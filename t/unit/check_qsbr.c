/* SPDX-License-Identifier: BSD-3-Clause */
/* base/qsbr: what a waiter waits for and what not, the same for one who only
 * asks, and a stress in which readers follow pointers to structs that writers
 * poison and free right after qsbr_wait or once qsbr_is_over. Run it under
 * TSan and ASan too. */
#include "base/qsbr.h"

#include "unit/check_help.h"

#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>

enum {
    READERS = 3,
    WRITERS = 2,
    WRITES = 300, /* of each writer */
    WORDS = 16,
    READS_ONLINE = 50,
    PENDING = 8, /* blocks that a writer who asks lets wait */
    POISON = 0x5a5a5a5a
};

/* All words are equal while it is published. */
struct block {
    uint64_t word[WORDS];
};

struct stress {
    struct qsbr qsbr;
    _Atomic(struct block *) published[WRITERS];
    atomic_bool stop;
    atomic_ulong torn;
    atomic_ulong reads;
};

struct worker {
    struct stress *stress;
    unsigned number;
};

START_TEST(test_epochs)
{
    struct qsbr qsbr;
    struct qsbr_reader reader;

    qsbr_init(&qsbr);
    qsbr_register(&qsbr, &reader);
    ck_assert_uint_eq(atomic_load(&reader.epoch), 0);
    qsbr_online(&qsbr, &reader);
    ck_assert_uint_eq(atomic_load(&reader.epoch), 1);
    qsbr_online(&qsbr, &reader);
    ck_assert_uint_eq(atomic_load(&reader.epoch), 1);
    qsbr_offline(&reader);
    ck_assert_uint_eq(atomic_load(&reader.epoch), 0);
    qsbr_wait(&qsbr);
    qsbr_online(&qsbr, &reader);
    ck_assert_uint_eq(atomic_load(&reader.epoch), 2);
    qsbr_offline(&reader);
    qsbr_unregister(&qsbr, &reader);
    qsbr_wait(&qsbr);
    qsbr_fini(&qsbr);
}
END_TEST

/* Readers may leave from the front, the middle and the end of the list. */
START_TEST(test_registration)
{
    static const int orders[][3] = {
        {0, 1, 2}, {1, 0, 2}, {2, 1, 0}, {1, 2, 0}};
    struct qsbr qsbr;
    struct qsbr_reader reader[3];

    qsbr_init(&qsbr);
    for (int i = 0; i < 4; i++) {
        for (int j = 0; j < 3; j++) {
            qsbr_register(&qsbr, &reader[j]);
        }
        for (int j = 0; j < 3; j++) {
            qsbr_unregister(&qsbr, &reader[orders[i][j]]);
            qsbr_wait(&qsbr);
        }
        ck_assert_ptr_null(qsbr.readers);
    }
    qsbr_fini(&qsbr);
}
END_TEST

struct waiter {
    struct qsbr *qsbr;
    atomic_bool done;
};

static void *
wait_once(void *arg)
{
    struct waiter *waiter = arg;

    qsbr_wait(waiter->qsbr);
    atomic_store(&waiter->done, true);
    return NULL;
}

/* Returns once the waiter has raised the epoch to target. */
static void
await_epoch(struct qsbr *qsbr, uint64_t target)
{
    while (atomic_load(&qsbr->epoch) < target) {
        (void)sched_yield();
    }
}

/* The waiter may not return before the online reader says something; that it
 * does not is looked for a while, that it then does is certain. */
static void
hold_up_waiter(bool by_offline)
{
    struct qsbr qsbr;
    struct qsbr_reader reader, idle;
    struct waiter waiter = {.qsbr = &qsbr};
    pthread_t thread;

    qsbr_init(&qsbr);
    qsbr_register(&qsbr, &reader);
    qsbr_register(&qsbr, &idle);
    qsbr_online(&qsbr, &reader);
    ck_assert_int_eq(pthread_create(&thread, NULL, wait_once, &waiter), 0);
    await_epoch(&qsbr, 2);
    for (int i = 0; i < 1000; i++) {
        ck_assert(!atomic_load(&waiter.done));
        (void)sched_yield();
    }
    if (by_offline) {
        qsbr_offline(&reader);
    } else {
        qsbr_online(&qsbr, &reader);
        ck_assert_uint_eq(atomic_load(&reader.epoch), 2);
    }
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert(atomic_load(&waiter.done));
    qsbr_offline(&reader);
    qsbr_unregister(&qsbr, &reader);
    qsbr_unregister(&qsbr, &idle);
    qsbr_fini(&qsbr);
}

START_TEST(test_wait_for_offline)
{
    hold_up_waiter(true);
}
END_TEST

START_TEST(test_wait_for_quiescent)
{
    hold_up_waiter(false);
}
END_TEST

/* What holds up a target and what not, asked by one thread. */
START_TEST(test_is_over)
{
    struct qsbr qsbr;
    struct qsbr_reader reader, other, late;
    uint64_t first, second;

    qsbr_init(&qsbr);
    first = qsbr_begin(&qsbr);
    ck_assert_uint_eq(first, 2);
    ck_assert(qsbr_is_over(&qsbr, first));

    qsbr_register(&qsbr, &reader);
    qsbr_register(&qsbr, &other);
    ck_assert(qsbr_is_over(&qsbr, first));
    qsbr_online(&qsbr, &reader);
    qsbr_online(&qsbr, &other);
    ck_assert(qsbr_is_over(&qsbr, first));
    first = qsbr_begin(&qsbr);
    ck_assert(!qsbr_is_over(&qsbr, first));
    qsbr_online(&qsbr, &reader); /* also: on this reader's own thread */
    ck_assert(!qsbr_is_over(&qsbr, first));

    second = qsbr_begin(&qsbr);
    ck_assert_uint_gt(second, first);
    qsbr_offline(&other);
    ck_assert(qsbr_is_over(&qsbr, first));
    ck_assert(!qsbr_is_over(&qsbr, second));

    /* neither who registers nor who comes online now can hold it up */
    qsbr_register(&qsbr, &late);
    qsbr_online(&qsbr, &late);
    qsbr_online(&qsbr, &other);
    ck_assert(!qsbr_is_over(&qsbr, second));
    qsbr_offline(&reader);
    ck_assert(qsbr_is_over(&qsbr, second));
    ck_assert(qsbr_is_over(&qsbr, first));

    /* who has left does not */
    first = qsbr_begin(&qsbr);
    qsbr_offline(&late);
    qsbr_unregister(&qsbr, &late);
    ck_assert(!qsbr_is_over(&qsbr, first));
    qsbr_offline(&other);
    qsbr_unregister(&qsbr, &other);
    ck_assert(qsbr_is_over(&qsbr, first));
    qsbr_unregister(&qsbr, &reader);
    qsbr_fini(&qsbr);
}
END_TEST

/* While somebody waits, others may ask, begin, register and leave: were they
 * held up with him, this would never end. */
START_TEST(test_never_blocks)
{
    struct qsbr qsbr;
    struct qsbr_reader reader, other;
    struct waiter waiter = {.qsbr = &qsbr};
    pthread_t thread;

    qsbr_init(&qsbr);
    qsbr_register(&qsbr, &reader);
    qsbr_online(&qsbr, &reader);
    ck_assert_int_eq(pthread_create(&thread, NULL, wait_once, &waiter), 0);
    await_epoch(&qsbr, 2);
    for (int i = 0; i < 500; i++) {
        ck_assert(!qsbr_is_over(&qsbr, 2));
        ck_assert(!qsbr_is_over(&qsbr, qsbr_begin(&qsbr)));
        qsbr_register(&qsbr, &other);
        qsbr_online(&qsbr, &other);
        qsbr_offline(&other);
        qsbr_unregister(&qsbr, &other);
        (void)sched_yield();
    }
    ck_assert(!atomic_load(&waiter.done));
    qsbr_offline(&reader);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert(qsbr_is_over(&qsbr, qsbr_begin(&qsbr)));
    qsbr_unregister(&qsbr, &reader);
    qsbr_fini(&qsbr);
}
END_TEST

static void
read_all(struct stress *stress)
{
    for (int i = 0; i < WRITERS; i++) {
        /* acquire: the words were written before the release */
        const struct block *block =
            atomic_load_explicit(&stress->published[i], memory_order_acquire);
        uint64_t first = block->word[0];

        for (int j = 1; j < WORDS; j++) {
            if (block->word[j] != first || first == POISON) {
                atomic_fetch_add(&stress->torn, 1);
            }
        }
    }
    /* relaxed: a figure */
    atomic_fetch_add_explicit(&stress->reads, 1, memory_order_relaxed);
}

/* Even readers are quiescent between bursts and rarely offline; odd ones go
 * offline after each, and every so often leave and come back. */
static void *
read_until_stopped(void *arg)
{
    struct worker *worker = arg;
    struct stress *stress = worker->stress;
    struct qsbr_reader reader;

    qsbr_register(&stress->qsbr, &reader);
    for (unsigned round = 1; !atomic_load(&stress->stop); round++) {
        qsbr_online(&stress->qsbr, &reader);
        for (unsigned i = 0; i < round % READS_ONLINE; i++) {
            read_all(stress);
        }
        if (worker->number % 2 == 1 || round % 64 == 0) {
            qsbr_offline(&reader);
        }
        if (round % 1024 == 0) {
            qsbr_unregister(&stress->qsbr, &reader);
            qsbr_register(&stress->qsbr, &reader);
        }
    }
    qsbr_offline(&reader);
    qsbr_unregister(&stress->qsbr, &reader);
    return NULL;
}

static struct block *
make_block(uint64_t value)
{
    struct block *block = malloc(sizeof *block);

    if (block == NULL) {
        abort();
    }
    for (int i = 0; i < WORDS; i++) {
        block->word[i] = value;
    }
    return block;
}

/* The old block was unpublished and waited for: nobody may look any more. */
static void
poison(struct block *block)
{
    for (int i = 0; i < WORDS; i++) {
        ((volatile struct block *)block)->word[i] = POISON;
    }
    free(block);
}

/* What a writer who only asks has unpublished and not freed yet. */
struct pending {
    struct block *block[PENDING];
    uint64_t target[PENDING];
    unsigned n;
};

/* Frees all that is over; keeps at it until there is room for one more. */
static void
free_pending(struct qsbr *qsbr, struct pending *pending, unsigned n_max)
{
    unsigned n;

    do {
        n = 0;
        for (unsigned i = 0; i < pending->n; i++) {
            if (qsbr_is_over(qsbr, pending->target[i])) {
                poison(pending->block[i]);
            } else {
                pending->block[n] = pending->block[i];
                pending->target[n++] = pending->target[i];
            }
        }
        pending->n = n;
        if (n > n_max) {
            (void)sched_yield();
        }
    } while (n > n_max);
}

/* Even writers wait for each grace period, odd ones ask. */
static void *
write_many(void *arg)
{
    struct worker *worker = arg;
    struct stress *stress = worker->stress;
    struct pending pending = {.n = 0};
    unsigned writes = long_part(WRITES);

    for (uint64_t i = 0; i < writes; i++) {
        /* release: readers see the words */
        struct block *old =
            atomic_exchange_explicit(&stress->published[worker->number],
                make_block(i), memory_order_release);

        if (worker->number % 2 == 0) {
            qsbr_wait(&stress->qsbr);
            poison(old);
        } else {
            pending.block[pending.n] = old;
            pending.target[pending.n++] = qsbr_begin(&stress->qsbr);
            free_pending(&stress->qsbr, &pending, PENDING - 1);
        }
    }
    free_pending(&stress->qsbr, &pending, 0);
    return NULL;
}

START_TEST(test_stress)
{
    static struct stress stress;
    struct worker workers[READERS + WRITERS];
    pthread_t threads[READERS + WRITERS];

    qsbr_init(&stress.qsbr);
    atomic_store(&stress.stop, false);
    for (unsigned i = 0; i < WRITERS; i++) {
        atomic_store(&stress.published[i], make_block(0));
    }
    for (unsigned i = READERS + WRITERS; i-- > 0;) {
        /* readers first: writers would be done before they have begun */
        while (i < WRITERS && atomic_load(&stress.reads) == 0) {
            (void)sched_yield();
        }
        workers[i] = (struct worker){
            .stress = &stress, .number = i < WRITERS ? i : i - WRITERS};
        ck_assert_int_eq(
            pthread_create(&threads[i], NULL,
                i < WRITERS ? write_many : read_until_stopped, &workers[i]),
            0);
    }
    for (int i = 0; i < READERS + WRITERS; i++) {
        if (i == WRITERS) {
            atomic_store(&stress.stop, true);
        }
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    }
    ck_assert_uint_eq(atomic_load(&stress.torn), 0);
    for (int i = 0; i < WRITERS; i++) {
        ck_assert_uint_eq(
            atomic_load(&stress.published[i])->word[0], long_part(WRITES) - 1);
        free(atomic_load(&stress.published[i]));
    }
    qsbr_fini(&stress.qsbr);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("qsbr");
    TCase *tcase = tcase_create("qsbr");
    SRunner *sr = srunner_create(suite);
    int failed;

    tcase_set_timeout(tcase, HELP_TIMEOUT_S);
    tcase_add_test(tcase, test_epochs);
    tcase_add_test(tcase, test_registration);
    tcase_add_test(tcase, test_wait_for_offline);
    tcase_add_test(tcase, test_wait_for_quiescent);
    tcase_add_test(tcase, test_is_over);
    tcase_add_test(tcase, test_never_blocks);
    tcase_add_test(tcase, test_stress);
    suite_add_tcase(suite, tcase);
    srunner_set_tap(sr, "-");
    srunner_run_all(sr, CK_SILENT);
    failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
