/* SPDX-License-Identifier: BSD-3-Clause */
/* engine/pool: the account is exact whatever fails, the limit is kept by many
 * threads at once, and nothing is freed while a reader may look at it. */
#include "engine/pool.h"

#include "base/assert.h"
#include "base/err.h"
#include "lib/fault_alloc.h"
#include "unit/check_help.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>

enum {
    LARGEST = ARENA_CLASSES - 1,
    LIVE_MAX = 500,
    STEPS = 30000,
    GARBAGE_MAX = 16,
    TAKERS = 4,
    TAKES = 20000, /* of each taker */
    READERS = 3,
    WRITERS = 2,
    WRITES = 3000, /* of each writer */
    WORDS = 16,    /* of a published object, at most a piece of class 0 */
    POISON = 0x5a5a5a5a
};

static uint64_t
used(struct pool *pool)
{
    return atomic_load(&pool->used_bytes);
}

START_TEST(test_account)
{
    /* bytes asked for and bytes charged: a piece's, or malloc's for glibc on
     * 64 bits */
    static const size_t block[][2] = {{1, 128}, {128, 128}, {129, 256},
        {4096, 4096}, {8192, 8192}, {8193, 8208}, {100000, 100016}};
    struct pool pool;
    void *out;

    ck_assert_int_eq(pool_init(&pool, NULL, NULL, 1 << 20), 0);
    for (unsigned class_ = 0; class_ < ARENA_CLASSES; class_++) {
        ck_assert_int_eq(pool_take_piece(&pool, class_, POOL_NEW, &out), 0);
        ck_assert_uint_eq((uintptr_t)out % 64, 0);
        memset(out, 0xff, (size_t)128 << class_);
        ck_assert_uint_eq(used(&pool), (uint64_t)128 << class_);
        pool_give_piece(&pool, out, class_);
        ck_assert_uint_eq(used(&pool), 0);
    }
    for (size_t i = 0; i < 2 * COUNT_OF(block); i++) { /* dirty ones too */
        size_t bytes = block[i / 2][0];

        ck_assert_int_eq(pool_take_block(&pool, bytes, POOL_NEW, &out), 0);
        ck_assert_uint_eq(used(&pool), block[i / 2][1]);
        for (size_t j = 0; j < bytes; j++) {
            ck_assert_uint_eq(((unsigned char *)out)[j], 0);
        }
        memset(out, 0xff, bytes);
        pool_give_block(&pool, out, bytes);
        ck_assert_uint_eq(used(&pool), 0);
    }
    pool_fini(&pool);
}
END_TEST

/* To the byte: new records up to the limit, updates a 20th beyond. */
START_TEST(test_limit)
{
    enum { PIECES = 20 };
    const uint64_t limit = PIECES * ARENA_PIECE_BYTES_MAX;
    struct pool pool;
    void *piece[PIECES + 1], *block, *none = &pool;

    ck_assert_int_eq(pool_init(&pool, NULL, NULL, limit), 0);
    for (int i = 0; i < PIECES; i++) {
        ck_assert_int_eq(
            pool_take_piece(&pool, LARGEST, POOL_NEW, &piece[i]), 0);
    }
    ck_assert_uint_eq(used(&pool), limit);
    ck_assert_int_eq(pool_take_piece(&pool, 0, POOL_NEW, &none), ERR_HOT_FULL);
    ck_assert_int_eq(pool_take_block(&pool, 1, POOL_NEW, &none), ERR_HOT_FULL);
    ck_assert_int_eq(
        pool_take_block(&pool, ARENA_PIECE_BYTES_MAX + 1, POOL_UPDATE, &none),
        ERR_HOT_FULL);
    ck_assert_int_eq(pool_take_block(&pool, SIZE_MAX / 2, POOL_UPDATE, &none),
        ERR_HOT_FULL);
    ck_assert_uint_eq(used(&pool), limit);
    ck_assert_int_eq(
        pool_take_piece(&pool, LARGEST, POOL_UPDATE, &piece[PIECES]), 0);
    ck_assert_uint_eq(used(&pool), limit + limit / 20);
    ck_assert_int_eq(
        pool_take_block(&pool, 1, POOL_UPDATE, &none), ERR_HOT_FULL);
    ck_assert_ptr_eq(none, &pool); /* untouched */
    /* one given back is not enough to be below the limit */
    pool_give_piece(&pool, piece[0], LARGEST);
    ck_assert_uint_eq(used(&pool), limit);
    ck_assert_int_eq(pool_take_piece(&pool, 0, POOL_NEW, &none), ERR_HOT_FULL);
    pool_give_piece(&pool, piece[1], LARGEST);
    ck_assert_int_eq(
        pool_take_block(&pool, ARENA_PIECE_BYTES_MAX - 8, POOL_NEW, &block),
        0);
    ck_assert_uint_eq(used(&pool), limit);
    pool_give_block(&pool, block, ARENA_PIECE_BYTES_MAX - 8);
    for (int i = 2; i <= PIECES; i++) {
        pool_give_piece(&pool, piece[i], LARGEST);
    }
    pool_fini(&pool);
}
END_TEST

START_TEST(test_no_limit)
{
    struct pool pool;
    void *out;
    uint64_t limit = UINT64_MAX / 21 * 20;

    /* the least limit whose reserve would pass 2^64 */
    while (limit + limit / 20 > limit) {
        limit++;
    }
    ck_assert_int_eq(pool_init(&pool, NULL, NULL, limit), 0);
    ck_assert_int_eq(pool_take_piece(&pool, 3, POOL_UPDATE, &out), 0);
    pool_give_piece(&pool, out, 3);
    pool_fini(&pool);
    ck_assert_int_eq(pool_init(&pool, NULL, NULL, UINT64_MAX), 0);
    ck_assert_int_eq(pool_take_piece(&pool, 3, POOL_UPDATE, &out), 0);
    pool_give_piece(&pool, out, 3);
    pool_fini(&pool);
}
END_TEST

struct holding {
    void *memory;
    size_t bytes; /* of a block; 0: a piece */
    unsigned class_;
    uint64_t charged;
};

/* One take; returns its err. */
static int
take_any(struct pool *pool, uint64_t *seed, struct holding *out)
{
    enum pool_purpose purpose =
        random_below(seed, 2) == 0 ? POOL_NEW : POOL_UPDATE;

    *out = (struct holding){0};
    if (random_below(seed, 2) == 0) {
        out->class_ = (unsigned)random_below(seed, ARENA_CLASSES);
        out->charged = (uint64_t)128 << out->class_;
        return pool_take_piece(pool, out->class_, purpose, &out->memory);
    }
    out->bytes = 1 + random_below(seed, 2 * ARENA_PIECE_BYTES_MAX);
    out->charged = (out->bytes + 8 + 15) / 16 * 16;
    if (out->charged < 32) {
        out->charged = 32;
    }
    if (pool->arena != NULL && out->bytes <= ARENA_PIECE_BYTES_MAX) {
        out->charged = 128;
        while (out->charged < out->bytes) {
            out->charged *= 2;
        }
    }
    ck_assert_uint_eq(pool_block_bytes(pool, out->bytes), out->charged);
    return pool_take_block(pool, out->bytes, purpose, &out->memory);
}

static void
give_any(struct pool *pool, const struct holding *holding)
{
    if (holding->bytes == 0) {
        pool_give_piece(pool, holding->memory, holding->class_);
    } else {
        pool_give_block(pool, holding->memory, holding->bytes);
    }
}

/* used_bytes follows a model through refusals and failures. */
static void
run_model(struct fault_alloc *fault, uint64_t seed)
{
    static struct holding live[LIVE_MAX];
    const uint64_t limit = 500000;
    struct pool pool;
    uint64_t sum = 0;
    unsigned n = 0, failed[ERR_COUNT] = {0};

    ck_assert_int_eq(
        pool_init(&pool, fault == NULL ? NULL : &fault->alloc, NULL, limit),
        0);
    for (unsigned step = 0; step < STEPS; step++) {
        /* it leans to more, so that the limit is met again and again */
        if (n < LIVE_MAX && random_below(&seed, 100) < 65) {
            int err;

            if (fault != NULL && random_below(&seed, 8) == 0) {
                fault_alloc_arm(fault, 1);
            }
            err = take_any(&pool, &seed, &live[n]);
            failed[err]++;
            if (err == 0) {
                sum += live[n].charged;
                n++;
            }
            ck_assert(err != ERR_HOT_FULL || sum + live[n].charged > limit);
        } else if (n > 0) {
            unsigned i = (unsigned)random_below(&seed, n);

            give_any(&pool, &live[i]);
            sum -= live[i].charged;
            live[i] = live[--n];
        }
        ck_assert_uint_eq(used(&pool), sum);
        ck_assert_uint_le(sum, limit + limit / 20);
    }
    ck_assert_uint_gt(failed[ERR_HOT_FULL], 0);
    ck_assert_int_eq(failed[ERR_NO_MEMORY] > 0, fault != NULL);
    while (n > 0) {
        give_any(&pool, &live[--n]);
    }
    ck_assert_uint_eq(used(&pool), 0);
    pool_fini(&pool);
}

START_TEST(test_model)
{
    struct fault_alloc fault;

    run_model(NULL, 1);
    fault_alloc_init(&fault);
    run_model(&fault, 2);
    ck_assert_uint_gt(fault.failures, 0);
    ck_assert_uint_eq(fault.live_bytes, 0);
}
END_TEST

struct taker {
    struct pool *pool;
    uint64_t seed;
    pthread_t thread;
};

static void *
take_many(void *arg)
{
    struct taker *taker = arg;
    void *held[8] = {NULL};

    for (unsigned i = 0; i < TAKES; i++) {
        void **it = &held[random_below(&taker->seed, COUNT_OF(held))];

        if (*it != NULL) {
            pool_give_piece(taker->pool, *it, 0);
            *it = NULL;
        } else if (pool_take_piece(taker->pool, 0, POOL_NEW, it) != 0) {
            *it = NULL;
        }
        ASSERT(used(taker->pool) <= taker->pool->limit_bytes);
    }
    for (size_t i = 0; i < COUNT_OF(held); i++) {
        if (held[i] != NULL) {
            pool_give_piece(taker->pool, held[i], 0);
        }
    }
    return NULL;
}

/* Threads want about 16 pieces, and there is room for 10. */
START_TEST(test_limit_threads)
{
    struct pool pool;
    struct taker taker[TAKERS];

    ck_assert_int_eq(pool_init(&pool, NULL, NULL, 10 * 128), 0);
    for (unsigned i = 0; i < TAKERS; i++) {
        taker[i] = (struct taker){.pool = &pool, .seed = i};
        ck_assert_int_eq(
            pthread_create(&taker[i].thread, NULL, take_many, &taker[i]), 0);
    }
    for (unsigned i = 0; i < TAKERS; i++) {
        ck_assert_int_eq(pthread_join(taker[i].thread, NULL), 0);
    }
    ck_assert_uint_eq(used(&pool), 0);
    pool_fini(&pool);
}
END_TEST

/* Garbage. */

struct diary {
    unsigned n;
    unsigned number[GARBAGE_MAX]; /* in the order of their end */
};

struct object {
    struct pool_garbage garbage;
    struct diary *diary;
    struct object *next; /* retired when this one is freed */
    unsigned number;
};

static struct object *
make_object(struct pool *pool, struct diary *diary, unsigned number)
{
    void *out;

    ck_assert_int_eq(
        pool_take_block(pool, sizeof(struct object), POOL_NEW, &out), 0);
    *(struct object *)out = (struct object){.diary = diary, .number = number};
    return out;
}

static void free_object(struct pool *pool, struct pool_garbage *garbage);

static void
retire(struct pool *pool, struct object *object)
{
    pool_retire(pool, &object->garbage, sizeof *object, free_object);
}

static void
free_object(struct pool *pool, struct pool_garbage *garbage)
{
    struct object *object = (struct object *)garbage;

    object->diary->number[object->diary->n++] = object->number;
    if (object->next != NULL) {
        retire(pool, object->next);
    }
    pool_give_block(pool, object, sizeof *object);
}

static void
free_quietly(struct pool *pool, struct pool_garbage *garbage)
{
    pool_give_block(pool, garbage, sizeof(struct object));
}

/* The numbers freed so far are 0 to n-1, in that order; waiting more wait. */
static void
expect_freed(
    struct pool *pool, const struct diary *diary, unsigned n, unsigned waiting)
{
    ck_assert_uint_eq(diary->n, n);
    for (unsigned i = 0; i < n; i++) {
        ck_assert_uint_eq(diary->number[i], i);
    }
    ck_assert_uint_eq(
        pool_garbage_bytes(pool), waiting * sizeof(struct object));
    /* heads of equal size: what waits is still charged */
    ck_assert(waiting == 0 ? used(pool) == 0 : used(pool) % waiting == 0);
    ck_assert_uint_ge(used(pool), waiting * sizeof(struct object));
}

START_TEST(test_no_readers)
{
    struct pool pool;
    struct diary diary = {0};
    struct qsbr qsbr;

    ck_assert_int_eq(pool_init(&pool, NULL, NULL, 1 << 20), 0);
    retire(&pool, make_object(&pool, &diary, 0));
    expect_freed(&pool, &diary, 1, 0);
    pool_reclaim(&pool);
    pool_drain(&pool);
    pool_fini(&pool);

    qsbr_init(&qsbr);
    diary.n = 0;
    ck_assert_int_eq(pool_init(&pool, NULL, &qsbr, 1 << 20), 0);
    pool_reclaim(&pool);
    pool_drain(&pool);
    retire(&pool, make_object(&pool, &diary, 0));
    expect_freed(&pool, &diary, 0, 1);
    pool_reclaim(&pool);
    expect_freed(&pool, &diary, 1, 0);
    retire(&pool, make_object(&pool, &diary, 1));
    retire(&pool, make_object(&pool, &diary, 2));
    pool_drain(&pool);
    expect_freed(&pool, &diary, 3, 0);
    pool_fini(&pool);
    qsbr_fini(&qsbr);
}
END_TEST

/* New records may use what garbage will soon give back, but no more than half
 * of the reserve. */
START_TEST(test_garbage_limit)
{
    const uint64_t limit = 100000;
    struct pool pool;
    struct diary diary = {0};
    struct qsbr qsbr;
    struct qsbr_reader reader;
    void *filler, *more, *rest, *none;
    size_t bytes = sizeof(struct object);

    qsbr_init(&qsbr);
    qsbr_register(&qsbr, &reader);
    ck_assert_int_eq(pool_init(&pool, NULL, &qsbr, limit), 0);
    qsbr_online(&qsbr, &reader);
    struct object *object[3]; /* together more than the smallest piece */
    for (size_t i = 0; i < COUNT_OF(object); i++) {
        object[i] = make_object(&pool, &diary, 0);
    }
    size_t left = limit - used(&pool) - 8;
    left -= (left + 8) % 16; /* what the heap takes is a multiple of 16 */
    ck_assert_int_eq(pool_take_block(&pool, left, POOL_NEW, &filler), 0);
    ck_assert_uint_gt(used(&pool) + 16, limit);
    ck_assert_int_eq(
        pool_take_block(&pool, bytes - 8, POOL_NEW, &none), ERR_HOT_FULL);
    for (size_t i = 0; i < COUNT_OF(object); i++) {
        retire(&pool, object[i]);
    }
    ck_assert_int_eq(pool_take_block(&pool, bytes / 2, POOL_NEW, &more), 0);
    ck_assert_uint_gt(used(&pool), limit);
    ck_assert_int_eq(
        pool_take_block(&pool, bytes, POOL_NEW, &none), ERR_HOT_FULL);
    qsbr_offline(&reader);
    pool_reclaim(&pool);
    ck_assert_uint_le(used(&pool), limit);
    ck_assert_int_eq(
        pool_take_block(&pool, 8 * bytes, POOL_NEW, &none), ERR_HOT_FULL);
    pool_give_block(&pool, more, bytes / 2);
    pool_give_block(&pool, filler, left);

    /* much garbage */
    qsbr_online(&qsbr, &reader);
    while (used(&pool) + 2 * bytes < limit) {
        struct object *one = make_object(&pool, &diary, 0);
        pool_retire(&pool, &one->garbage, bytes, free_quietly);
    }
    ck_assert_int_eq(pool_take_block(&pool, limit / 50, POOL_NEW, &rest), 0);
    ck_assert_uint_gt(used(&pool), limit);
    ck_assert_int_eq(
        pool_take_block(&pool, limit / 40, POOL_NEW, &none), ERR_HOT_FULL);
    ck_assert_int_eq(
        pool_take_block(&pool, limit / 50, POOL_UPDATE, &more), 0);
    pool_give_block(&pool, more, limit / 50);
    pool_give_block(&pool, rest, limit / 50);
    qsbr_offline(&reader);
    qsbr_unregister(&qsbr, &reader);
    pool_fini(&pool);
    qsbr_fini(&qsbr);
}
END_TEST

/* Freed only after the reader was quiescent, and then what was retired before
 * that, not what came later. */
START_TEST(test_order)
{
    struct pool pool;
    struct diary diary = {0};
    struct qsbr qsbr;
    struct qsbr_reader reader, idle;

    qsbr_init(&qsbr);
    qsbr_register(&qsbr, &reader);
    qsbr_register(&qsbr, &idle);
    ck_assert_int_eq(pool_init(&pool, NULL, &qsbr, 1 << 20), 0);
    qsbr_online(&qsbr, &reader);
    for (unsigned i = 0; i < 3; i++) {
        retire(&pool, make_object(&pool, &diary, i));
        pool_reclaim(&pool);
        expect_freed(&pool, &diary, 0, i + 1);
    }
    qsbr_online(&qsbr, &reader);
    for (unsigned i = 3; i < 5; i++) {
        retire(&pool, make_object(&pool, &diary, i));
    }
    expect_freed(&pool, &diary, 0, 5);
    pool_reclaim(&pool);
    expect_freed(&pool, &diary, 3, 2);
    pool_reclaim(&pool);
    expect_freed(&pool, &diary, 3, 2);
    /* a reader that comes later cannot hold them */
    qsbr_online(&qsbr, &idle);
    qsbr_offline(&reader);
    pool_reclaim(&pool);
    expect_freed(&pool, &diary, 5, 0);
    retire(&pool, make_object(&pool, &diary, 5));
    pool_reclaim(&pool);
    expect_freed(&pool, &diary, 5, 1);
    qsbr_offline(&idle);
    pool_reclaim(&pool);
    expect_freed(&pool, &diary, 6, 0);
    qsbr_unregister(&qsbr, &reader);
    qsbr_unregister(&qsbr, &idle);
    pool_fini(&pool);
    qsbr_fini(&qsbr);
}
END_TEST

/* Garbage made while garbage is freed waits for readers of its own. */
START_TEST(test_chain)
{
    struct pool pool;
    struct diary diary = {0};
    struct qsbr qsbr;
    struct object *first;

    qsbr_init(&qsbr);
    ck_assert_int_eq(pool_init(&pool, NULL, &qsbr, 1 << 20), 0);
    first = make_object(&pool, &diary, 0);
    first->next = make_object(&pool, &diary, 1);
    first->next->next = make_object(&pool, &diary, 2);
    retire(&pool, first);
    pool_reclaim(&pool);
    ck_assert_uint_eq(diary.n, 1);
    ck_assert_uint_eq(pool_garbage_bytes(&pool), sizeof *first);
    pool_fini(&pool); /* frees the rest */
    ck_assert_uint_eq(diary.n, 3);
    qsbr_fini(&qsbr);
}
END_TEST

struct drainer {
    struct pool *pool;
    atomic_bool done;
};

static void *
drain_once(void *arg)
{
    struct drainer *drainer = arg;

    pool_drain(drainer->pool);
    atomic_store(&drainer->done, true);
    return NULL;
}

/* Waits for the reader; meanwhile nobody is kept from reclaiming and retiring,
 * and what is retired then is not waited for. */
START_TEST(test_drain)
{
    struct pool pool;
    struct diary diary = {0};
    struct qsbr qsbr;
    struct qsbr_reader reader, late;
    struct drainer drainer = {.pool = &pool};
    pthread_t thread;

    qsbr_init(&qsbr);
    qsbr_register(&qsbr, &reader);
    ck_assert_int_eq(pool_init(&pool, NULL, &qsbr, 1 << 20), 0);
    qsbr_online(&qsbr, &reader);
    retire(&pool, make_object(&pool, &diary, 0));
    ck_assert_int_eq(pthread_create(&thread, NULL, drain_once, &drainer), 0);
    while (atomic_load(&qsbr.epoch) < 3) { /* 2 is the garbage's own */
        (void)sched_yield();
    }
    for (int i = 0; i < 500; i++) {
        pool_reclaim(&pool);
        ck_assert(!atomic_load(&drainer.done));
        (void)sched_yield();
    }
    expect_freed(&pool, &diary, 0, 1);
    qsbr_register(&qsbr, &late);
    qsbr_online(&qsbr, &late);
    retire(&pool, make_object(&pool, &diary, 1));
    qsbr_offline(&reader);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    expect_freed(&pool, &diary, 1, 1);
    qsbr_offline(&late);
    qsbr_unregister(&qsbr, &late);
    qsbr_unregister(&qsbr, &reader);
    pool_fini(&pool);
    ck_assert_uint_eq(diary.n, 2);
    qsbr_fini(&qsbr);
}
END_TEST

/* A 40th of the limit may wait for readers; more is waited for. */
START_TEST(test_drain_excess)
{
    const uint64_t limit = 40 * sizeof(struct object) * 4;
    struct pool pool;
    struct diary diary = {0};
    struct qsbr qsbr;
    struct qsbr_reader reader;

    qsbr_init(&qsbr);
    qsbr_register(&qsbr, &reader);
    ck_assert_int_eq(pool_init(&pool, NULL, &qsbr, limit), 0);
    qsbr_online(&qsbr, &reader);
    unsigned n = 0;
    do { /* the first time with nothing; it would wait for ourselves */
        pool_drain_excess(&pool);
        retire(&pool, make_object(&pool, &diary, n++));
    } while (pool_garbage_bytes(&pool) <= limit / 40);
    ck_assert_uint_gt(n, 1);
    expect_freed(&pool, &diary, 0, n);
    qsbr_offline(&reader);
    pool_drain_excess(&pool);
    expect_freed(&pool, &diary, n, 0);
    qsbr_unregister(&qsbr, &reader);
    pool_fini(&pool);
    qsbr_fini(&qsbr);
}
END_TEST

/* Readers follow pointers to pieces whose words are all equal; free_fn poisons
 * a piece and gives it back to the arena, which hands it out again. */
struct shared {
    struct pool_garbage garbage;
    _Atomic uint64_t word[WORDS - 4];
};

_Static_assert(sizeof(struct shared) <= 128, "a piece of class 0");

struct stress {
    struct pool pool;
    struct qsbr qsbr;
    _Atomic(struct shared *) published[WRITERS];
    atomic_bool stop;
    atomic_ulong torn;
    atomic_ulong reads;
    atomic_ulong freed;
};

struct worker {
    struct stress *stress;
    unsigned number;
    pthread_t thread;
};

static struct shared *
make_shared(struct stress *stress, uint64_t value)
{
    struct shared *shared;
    void *out;
    int err = pool_take_piece(&stress->pool, 0, POOL_NEW, &out);

    ASSERT(err == 0);
    shared = out;
    for (size_t i = 0; i < COUNT_OF(shared->word); i++) {
        /* relaxed: published by the exchange that follows */
        atomic_store_explicit(&shared->word[i], value, memory_order_relaxed);
    }
    return shared;
}

static void
free_shared(struct pool *pool, struct pool_garbage *garbage)
{
    struct stress *stress = (struct stress *)pool; /* its first field */
    struct shared *shared = (struct shared *)garbage;

    /* plain stores: a reader that still looks is a race for TSan */
    memset((void *)shared, POISON & 0xff, sizeof *shared);
    pool_give_piece(pool, shared, 0);
    atomic_fetch_add(&stress->freed, 1);
}

static void
read_all(struct stress *stress)
{
    for (unsigned i = 0; i < WRITERS; i++) {
        /* acquire: the words were written before the release */
        struct shared *shared =
            atomic_load_explicit(&stress->published[i], memory_order_acquire);
        /* relaxed, here and below: they do not change while they live */
        uint64_t first =
            atomic_load_explicit(&shared->word[0], memory_order_relaxed);

        for (size_t j = 1; j < COUNT_OF(shared->word); j++) {
            if (first >= WRITES ||
                atomic_load_explicit(&shared->word[j], memory_order_relaxed) !=
                    first) {
                atomic_fetch_add(&stress->torn, 1);
            }
        }
    }
    /* relaxed: a figure */
    atomic_fetch_add_explicit(&stress->reads, 1, memory_order_relaxed);
}

/* Even readers are quiescent between bursts and rarely offline. */
static void *
read_until_stopped(void *arg)
{
    struct worker *worker = arg;
    struct stress *stress = worker->stress;
    struct qsbr_reader reader;

    qsbr_register(&stress->qsbr, &reader);
    for (unsigned round = 1; !atomic_load(&stress->stop); round++) {
        qsbr_online(&stress->qsbr, &reader);
        for (unsigned i = 0; i < round % 20; i++) {
            read_all(stress);
        }
        if (worker->number % 2 == 1 || round % 64 == 0) {
            qsbr_offline(&reader);
        }
    }
    qsbr_offline(&reader);
    qsbr_unregister(&stress->qsbr, &reader);
    return NULL;
}

/* Even writers are online readers themselves and reclaim so; odd ones are not
 * and wait for all every now and then. */
static void *
write_many(void *arg)
{
    struct worker *worker = arg;
    struct stress *stress = worker->stress;
    const bool is_reader = worker->number % 2 == 0;
    struct qsbr_reader reader;

    qsbr_register(&stress->qsbr, &reader);
    for (uint64_t i = 0; i < WRITES; i++) {
        struct shared *old;

        if (is_reader) {
            qsbr_online(&stress->qsbr, &reader);
        }
        /* release: readers see the words */
        old = atomic_exchange_explicit(&stress->published[worker->number],
            make_shared(stress, i), memory_order_acq_rel);
        pool_retire(&stress->pool, &old->garbage, sizeof *old, free_shared);
        if (is_reader) {
            read_all(stress);
        } else if (i % 64 == 0) {
            pool_drain(&stress->pool);
        }
        pool_reclaim(&stress->pool);
    }
    qsbr_offline(&reader);
    qsbr_unregister(&stress->qsbr, &reader);
    return NULL;
}

START_TEST(test_threads)
{
    static struct stress stress;
    struct worker worker[READERS + WRITERS];

    qsbr_init(&stress.qsbr);
    ck_assert_int_eq(
        pool_init(&stress.pool, NULL, &stress.qsbr, UINT64_C(1) << 30), 0);
    for (unsigned i = 0; i < WRITERS; i++) {
        atomic_store(&stress.published[i], make_shared(&stress, 0));
    }
    for (unsigned i = READERS + WRITERS; i-- > 0;) {
        /* readers first: writers would be done before they have begun */
        while (i < WRITERS && atomic_load(&stress.reads) == 0) {
            (void)sched_yield();
        }
        worker[i] = (struct worker){
            .stress = &stress, .number = i < WRITERS ? i : i - WRITERS};
        ck_assert_int_eq(
            pthread_create(&worker[i].thread, NULL,
                i < WRITERS ? write_many : read_until_stopped, &worker[i]),
            0);
    }
    for (unsigned i = 0; i < READERS + WRITERS; i++) {
        if (i == WRITERS) {
            atomic_store(&stress.stop, true);
        }
        ck_assert_int_eq(pthread_join(worker[i].thread, NULL), 0);
    }
    ck_assert_uint_eq(atomic_load(&stress.torn), 0);
    pool_drain(&stress.pool);
    ck_assert_uint_eq(pool_garbage_bytes(&stress.pool), 0);
    ck_assert_uint_eq(atomic_load(&stress.freed), WRITERS * WRITES);
    ck_assert_uint_eq(used(&stress.pool), WRITERS * 128);
    for (unsigned i = 0; i < WRITERS; i++) {
        struct shared *last = atomic_load(&stress.published[i]);

        ck_assert_uint_eq(atomic_load(&last->word[0]), WRITES - 1);
        pool_retire(&stress.pool, &last->garbage, 1, free_shared);
    }
    pool_fini(&stress.pool);
    qsbr_fini(&stress.qsbr);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_account, test_limit, test_no_limit,
        test_model, test_limit_threads, test_no_readers, test_garbage_limit,
        test_order, test_chain, test_drain, test_drain_excess, test_threads};

    return run_tests("pool", tests, COUNT_OF(tests));
}
