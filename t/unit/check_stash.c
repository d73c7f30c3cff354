/* SPDX-License-Identifier: BSD-3-Clause */
/* engine/stash against a model, full, torn, without memory and watched. */
#include "engine/stash.h"

#include "base/assert.h"
#include "base/err.h"
#include "lib/fault_alloc.h"
#include "unit/check_help.h"

#include <pthread.h>
#include <stdatomic.h>

enum { COLUMNS = SHAPES_COLUMNS_MAX, MODEL_MAX = 400 };

static const uint64_t LIMIT_BYTES = UINT64_C(1) << 30;

/* What a stash should hold; slow and obvious. */
struct model {
    size_t n;
    uint64_t key[MODEL_MAX];
    uint64_t code[MODEL_MAX][COLUMNS];
};

struct fixture {
    struct fault_alloc fault;
    struct pool pool;
    struct stash *stash;
    struct model model;
};

static void
setup(struct fixture *f, unsigned key_bits, size_t n, unsigned usual_bits)
{
    fault_alloc_init(&f->fault);
    ck_assert_int_eq(
        pool_init(&f->pool, &f->fault.alloc, NULL, LIMIT_BYTES), 0);
    ck_assert_int_eq(
        stash_create(&f->pool, key_bits, n, usual_bits, POOL_NEW, &f->stash),
        0);
    f->model.n = 0;
}

static void
teardown(struct fixture *f)
{
    stash_destroy(&f->pool, &f->stash);
    ck_assert_ptr_null(f->stash);
    stash_destroy(&f->pool, &f->stash);
    pool_fini(&f->pool);
    ck_assert_uint_eq(f->fault.live_bytes, 0);
}

static size_t
model_find(const struct model *model, uint64_t key)
{
    size_t i = 0;
    while (i < model->n && model->key[i] != key) {
        i++;
    }
    return i;
}

static void
model_put(struct model *model, uint64_t key, const uint64_t *code)
{
    size_t i = model_find(model, key);
    ASSERT(i < MODEL_MAX);
    model->n = i < model->n ? model->n : i + 1;
    model->key[i] = key;
    memcpy(model->code[i], code, sizeof(model->code[i]));
}

static void
model_remove(struct model *model, uint64_t key)
{
    size_t i = model_find(model, key);
    ASSERT(i < model->n);
    model->n--;
    model->key[i] = model->key[model->n];
    memmove(model->code[i], model->code[model->n], sizeof(model->code[i]));
}

static void
expect_record(void *context, uint64_t key, const uint64_t *code)
{
    struct model *model = context;
    size_t i = model_find(model, key);
    ASSERT(i < model->n);
    ASSERT(memcmp(model->code[i], code, sizeof(model->code[i])) == 0);
}

/* The stash holds the model and nothing else. */
static void
expect_model(struct fixture *f)
{
    stash_verify(f->stash);
    ck_assert_uint_eq(stash_count(f->stash), f->model.n);
    stash_each(f->stash, expect_record, &f->model);
    for (size_t i = 0; i < f->model.n; i++) {
        uint64_t code[COLUMNS];
        memset(code, 0xaa, sizeof(code));
        ASSERT(stash_find(f->stash, f->model.key[i], code));
        ASSERT(memcmp(code, f->model.code[i], sizeof(code)) == 0);
    }
}

/* Puts, in a larger stash where need be. */
static void
put(struct fixture *f, uint64_t key, const uint64_t *code)
{
    if (!stash_put(f->stash, key, code)) {
        struct stash *grown;
        expect_model(f);
        ck_assert_int_eq(
            stash_grown(&f->pool, f->stash, code, POOL_UPDATE, &grown), 0);
        stash_retire(&f->pool, f->stash);
        f->stash = grown;
        expect_model(f);
        ck_assert(stash_put(f->stash, key, code));
    }
    model_put(&f->model, key, code);
}

static uint64_t
random_bits(uint64_t *state, unsigned n)
{
    uint64_t bits = random_below(state, UINT64_MAX);
    return n == 0 ? 0 : bits >> (64 - n);
}

static void
random_code(
    uint64_t *state, unsigned columns, unsigned bits_max, uint64_t *code)
{
    memset(code, 0, COLUMNS * sizeof(*code));
    for (unsigned i = 0; i < columns; i++) {
        unsigned slot = columns <= 4 && random_below(state, 9) > 0
            ? i
            : (unsigned)random_below(state, COLUMNS);
        code[slot] = random_bits(
            state, (unsigned)random_below(state, bits_max + UINT64_C(1)));
    }
}

/* A key that is likely to be there already. */
static uint64_t
random_key(const struct fixture *f, uint64_t *state, unsigned key_bits)
{
    if (f->model.n > 0 && random_below(state, 2) == 0) {
        return f->model.key[random_below(state, f->model.n)];
    }
    uint64_t most = UINT64_MAX >> (64 - key_bits);
    switch (random_below(state, 8)) {
    case 0:
        return 0;
    case 1:
        return most;
    case 2:
        return random_below(state, 100) & most;
    default:
        return random_bits(state, key_bits);
    }
}

/* Exchanges a code for one of as many bits, where there is one. */
static void
flip(struct fixture *f, uint64_t *state, uint64_t key, unsigned column)
{
    struct stash_code found;
    size_t i = model_find(&f->model, key);
    bool there = i < f->model.n && f->model.code[i][column] != 0;
    ASSERT(stash_seek(f->stash, key, column, &found) == there);
    if (there) {
        uint64_t top = UINT64_C(1) << (shapes_bits(found.code) - 1);
        ASSERT(found.code == f->model.code[i][column]);
        f->model.code[i][column] = top | (random_bits(state, 64) & (top - 1));
        stash_flip(f->stash, &found, f->model.code[i][column]);
    }
}

static void
random_step(struct fixture *f, uint64_t *state, unsigned key_bits,
    unsigned columns, unsigned bits_max)
{
    uint64_t key = random_key(f, state, key_bits);
    uint64_t code[COLUMNS];
    bool there = model_find(&f->model, key) < f->model.n;
    uint64_t what = random_below(state, 4);
    if (what == 0 || (!there && f->model.n == MODEL_MAX)) {
        ASSERT(stash_remove(f->stash, key) == there);
        if (there) {
            model_remove(&f->model, key);
        }
    } else {
        random_code(state, columns, bits_max, code);
        put(f, key, code);
    }
    key = random_key(f, state, key_bits);
    flip(f, state, key, (unsigned)random_below(state, COLUMNS));
    memset(code, 0xaa, sizeof(code));
    key = random_key(f, state, key_bits);
    there = model_find(&f->model, key) < f->model.n;
    ASSERT(stash_find(f->stash, key, code) == there);
    if (there) {
        expect_record(&f->model, key, code);
    } else {
        ASSERT(code[0] == UINT64_C(0xaaaaaaaaaaaaaaaa));
    }
}

START_TEST(test_random)
{
    static struct fixture f;
    uint64_t state = 1;
    for (unsigned key_bits = 1; key_bits <= 64; key_bits += key_bits % 7 + 1) {
        for (unsigned round = 0; round < 6; round++) {
            unsigned columns = 1 + (unsigned)random_below(&state, COLUMNS);
            unsigned bits_max = 1 + (unsigned)random_below(&state, 64);
            size_t n = random_below(&state, 20);
            columns = round == 0 ? 3 : columns;
            bits_max = round == 0 ? 4 : round == 1 ? 64 : bits_max;
            setup(&f, key_bits, n, bits_max);
            for (unsigned step = 0; step < 1500; step++) {
                random_step(&f, &state, key_bits, columns, bits_max);
                if (step % 100 == 0) {
                    stash_verify(f.stash);
                }
            }
            expect_model(&f);
            while (f.model.n > 0) {
                ck_assert(stash_remove(f.stash, f.model.key[0]));
                model_remove(&f.model, f.model.key[0]);
                if (f.model.n % 32 == 0) {
                    expect_model(&f);
                }
            }
            teardown(&f);
        }
    }
}
END_TEST

/* The widest record, the narrowest, and the keys at both ends. */
START_TEST(test_extremes)
{
    static struct fixture f;
    uint64_t code[COLUMNS] = {0};
    setup(&f, 64, 0, 0);
    ck_assert_uint_eq(stash_count(f.stash), 0);
    ck_assert(!stash_find(f.stash, 0, code));
    ck_assert(!stash_remove(f.stash, UINT64_MAX));
    code[15] = 1;
    put(&f, UINT64_MAX, code);
    memset(code, 0xff, sizeof(code));
    put(&f, 0, code);
    expect_model(&f);
    memset(code, 0, sizeof(code));
    put(&f, 0, code);
    expect_model(&f);
    memset(code, 0xff, sizeof(code));
    put(&f, UINT64_MAX, code);
    put(&f, UINT64_MAX - 1, code);
    expect_model(&f);
    teardown(&f);
    /* One record of what it was made for always fits. */
    for (unsigned n = 0; n < 2; n++) {
        setup(&f, 64, n, COLUMNS * 64);
        ck_assert(stash_put(f.stash, 7, code));
        model_put(&f.model, 7, code);
        expect_model(&f);
        teardown(&f);
    }
}
END_TEST

/* A number grows from 0 to 2^64-1, with neighbours before and behind it. */
START_TEST(test_every_width)
{
    static struct fixture f;
    for (unsigned slot = 0; slot < COLUMNS; slot++) {
        uint64_t code[COLUMNS] = {5, 6, 7, 8};
        setup(&f, 27, 4, 10);
        put(&f, 1, code);
        put(&f, 2, code);
        put(&f, 3, code);
        for (unsigned bits = 0; bits <= 64; bits++) {
            code[slot] = bits == 0 ? 0 : UINT64_MAX >> (64 - bits);
            put(&f, 2, code);
            expect_model(&f);
            code[slot] -= bits > 1 ? UINT64_C(1) << (bits - 2) : 0;
            put(&f, 2, code);
            expect_model(&f);
        }
        for (unsigned bits = 64; bits-- > 0;) {
            code[slot] = UINT64_C(1) << bits;
            put(&f, 2, code);
            expect_model(&f);
        }
        teardown(&f);
    }
}
END_TEST

/* A full stash still takes other numbers of the widths it has, and refuses
 * all else without a trace. */
START_TEST(test_full)
{
    static struct fixture f;
    uint64_t state = 2;
    uint64_t key = 0;
    uint64_t code[COLUMNS] = {4, 4, 4};
    setup(&f, 27, 50, 9);
    while (stash_put(f.stash, key, code)) {
        model_put(&f.model, key++, code);
    }
    ck_assert_uint_ge(f.model.n, 50);
    expect_model(&f);
    for (unsigned i = 0; i < 300; i++) {
        for (unsigned j = 0; j < 3; j++) {
            code[j] = 4 + random_below(&state, 4);
        }
        uint64_t any = random_below(&state, f.model.n);
        ck_assert(stash_put(f.stash, any, code));
        model_put(&f.model, any, code);
    }
    expect_model(&f);
    memset(code, 0xff, sizeof(code));
    ck_assert(!stash_put(f.stash, 0, code));
    ck_assert(!stash_put(f.stash, key, code));
    expect_model(&f);
    /* A place that has become free is used again. */
    ck_assert(stash_remove(f.stash, key - 1));
    model_remove(&f.model, key - 1);
    size_t bytes = stash_bytes(f.stash);
    memcpy(code, f.model.code[0], sizeof(code));
    put(&f, key, code);
    ck_assert_uint_eq(stash_bytes(f.stash), bytes);
    expect_model(&f);
    teardown(&f);
}
END_TEST

/* Dead bytes are won back: widths that go up and down for ever do not make the
 * stash larger, and one that has been emptied is as good as new. */
START_TEST(test_dead)
{
    enum { N = 100 };
    static struct fixture f;
    uint64_t state = 7;
    size_t bytes_max = 0;
    uint64_t code[COLUMNS] = {0};
    setup(&f, 27, N, 24);
    for (unsigned i = 0; i < 100 * N; i++) {
        for (unsigned j = 0; j < 3; j++) {
            code[j] = random_bits(&state, 1 + i % 16);
        }
        put(&f, random_below(&state, N), code);
        size_t bytes = stash_bytes(f.stash);
        bytes_max = bytes > bytes_max ? bytes : bytes_max;
    }
    expect_model(&f);
    ck_assert_uint_le(bytes_max, N * 20);
    for (unsigned i = 0; i < N; i++) {
        ck_assert(stash_remove(f.stash, f.model.key[0]));
        model_remove(&f.model, f.model.key[0]);
    }
    expect_model(&f);
    for (unsigned i = 0; i < N; i++) {
        code[0] = code[1] = code[2] = 1;
        ck_assert(stash_put(f.stash, i, code));
        model_put(&f.model, i, code);
    }
    expect_model(&f);
    teardown(&f);
}
END_TEST

/* Beyond 64 KiB of entries places are wider; the model would be too slow. */
START_TEST(test_large)
{
    enum { N = 3000 };
    static struct fixture f;
    setup(&f, 64, 1, 64);
    for (int round = 0; round < 2; round++) {
        for (uint64_t i = 0; i < N; i++) {
            uint64_t code[COLUMNS];
            struct stash *grown;
            for (unsigned j = 0; j < COLUMNS; j++) {
                code[j] = ~(i * COLUMNS + j);
            }
            if (!stash_put(f.stash, i << 40, code)) {
                ck_assert_int_eq(
                    stash_grown(&f.pool, f.stash, code, POOL_NEW, &grown), 0);
                stash_destroy(&f.pool, &f.stash);
                f.stash = grown;
                ck_assert(stash_put(f.stash, i << 40, code));
            }
        }
        ck_assert_uint_eq(stash_count(f.stash), N);
        stash_verify(f.stash);
    }
    for (uint64_t i = 0; i < N; i++) {
        uint64_t code[COLUMNS];
        ASSERT(stash_find(f.stash, i << 40, code));
        for (unsigned j = 0; j < COLUMNS; j++) {
            ASSERT(code[j] == ~(i * COLUMNS + j));
        }
        ASSERT(!stash_find(f.stash, (i << 40) + 1, code));
    }
    teardown(&f);
}
END_TEST

/* What a table of 2^27 rows has: three columns of one to four bits. */
START_TEST(test_bytes)
{
    enum { N = 1000 };
    static struct fixture f;
    uint64_t state = 3;
    struct stash *grown;
    uint64_t code[COLUMNS] = {0};
    setup(&f, 27, 4, 9);
    for (size_t i = 0; i < N; i++) {
        uint64_t key = random_bits(&state, 27);
        for (unsigned j = 0; j < 3; j++) {
            code[j] = 1 + random_below(&state, 15);
        }
        if (!stash_put(f.stash, key, code)) {
            ck_assert_int_eq(
                stash_grown(&f.pool, f.stash, code, POOL_NEW, &grown), 0);
            stash_destroy(&f.pool, &f.stash);
            f.stash = grown;
            ck_assert(stash_put(f.stash, key, code));
        }
    }
    ck_assert_int_eq(stash_grown(&f.pool, f.stash, code, POOL_NEW, &grown), 0);
    stash_destroy(&f.pool, &f.stash);
    f.stash = grown;
    size_t count = stash_count(f.stash);
    ck_assert_uint_ge(count, N - 5);
    ck_assert_uint_le(stash_bytes(f.stash), count * 11 + count / 8);
    for (size_t i = 0; i < count / 10; i++) {
        ck_assert(stash_put(f.stash, random_bits(&state, 27), code));
    }
    count = stash_count(f.stash);
    ck_assert_uint_le(stash_bytes(f.stash), count * 10 + count / 2);
    teardown(&f);
    ck_assert_uint_eq(stash_count(NULL), 0);
    ck_assert_uint_eq(stash_bytes(NULL), 0);
}
END_TEST

/* No memory, and no more of the budget. */
START_TEST(test_refused)
{
    static struct fixture f;
    uint64_t code[COLUMNS] = {1, 2, 3};
    struct stash *other = NULL;
    setup(&f, 27, 3, 6);
    put(&f, 1, code);
    put(&f, 2, code);
    fault_alloc_arm(&f.fault, 2);
    ck_assert_int_eq(
        stash_create(&f.pool, 27, 3, 6, POOL_NEW, &other), ERR_NO_MEMORY);
    ck_assert_int_eq(
        stash_grown(&f.pool, f.stash, code, POOL_NEW, &other), ERR_NO_MEMORY);
    ck_assert_uint_eq(f.fault.failures, 2);
    ck_assert_int_eq(stash_create(&f.pool, 27, LIMIT_BYTES / 100, 1000,
                         POOL_UPDATE, &other),
        ERR_HOT_FULL);
    ck_assert_int_eq(
        stash_create(&f.pool, 64, SIZE_MAX, 1024, POOL_UPDATE, &other),
        ERR_NO_MEMORY);
    ck_assert_ptr_null(other);
    expect_model(&f);
    stash_retire(&f.pool, NULL);
    teardown(&f);
}
END_TEST

/* Any words behind the head: find and each end, and stay inside (the address
 * sanitizer watches). */
START_TEST(test_torn)
{
    static struct fixture f;
    uint64_t state = 4;
    uint64_t found = 0;
    for (unsigned round = 0; round < 400; round++) {
        unsigned key_bits = 1 + (unsigned)random_below(&state, 64);
        size_t n = 1 + random_below(&state, round % 8 == 0 ? 9000 : 60);
        uint64_t code[COLUMNS] = {1};
        setup(&f, key_bits, n, (unsigned)random_below(&state, 1000));
        size_t words = (stash_bytes(f.stash) - STASH_HEAD_BYTES) / 8;
        _Atomic uint64_t *word = (void *)((char *)f.stash + STASH_HEAD_BYTES);
        uint64_t share = random_below(&state, 5);
        for (size_t i = 0; i < words; i++) {
            uint64_t bits = random_below(&state, UINT64_MAX);
            bits = random_below(&state, 4) < share ? UINT64_MAX : bits;
            atomic_store_explicit(&word[i], bits, memory_order_relaxed);
        }
        for (unsigned i = 0; i < 20; i++) {
            found += stash_find(f.stash, random_bits(&state, key_bits), code);
        }
        teardown(&f);
    }
    ck_assert_uint_gt(found, 0);
}
END_TEST

/* A writer, and readers who check what they find by a sequence counter as the
 * engine does. Keys below KEYS are always there, odd ones never. */
enum { KEYS = 64, READERS = 2, CHANGES = 30000 };

struct watched {
    _Atomic uint64_t sequence;
    struct stash *_Atomic stash;
    _Atomic bool done;
    _Atomic uint64_t reads;
};

/* All columns follow from the first. */
static void
codes_from(uint64_t first, uint64_t *code)
{
    memset(code, 0, COLUMNS * sizeof(*code));
    for (unsigned i = 0; i <= first % COLUMNS; i++) {
        code[i] = first * (i + 1);
    }
}

static bool
watch_once(struct watched *watched, uint64_t key)
{
    uint64_t code[COLUMNS], want[COLUMNS];
    /* acquire: the looks that follow are not older than the counter */
    uint64_t before =
        atomic_load_explicit(&watched->sequence, memory_order_acquire);
    const struct stash *stash =
        atomic_load_explicit(&watched->stash, memory_order_acquire);
    bool found = stash_find(stash, key, code);
    /* relaxed: what was looked at was loaded with acquire, before this */
    uint64_t after =
        atomic_load_explicit(&watched->sequence, memory_order_relaxed);
    if (before % 2 == 1 || before != after) {
        return false;
    }
    ASSERT(found == (key % 2 == 0));
    if (found) {
        codes_from(code[0], want);
        ASSERT(memcmp(code, want, sizeof(code)) == 0);
    }
    return true;
}

static void *
watch(void *context)
{
    struct watched *watched = context;
    uint64_t state = 5, reads = 0;
    while (!atomic_load(&watched->done) || reads == 0) {
        reads += watch_once(watched, random_below(&state, KEYS));
    }
    atomic_fetch_add(&watched->reads, reads);
    return NULL;
}

/* One change under the counter; the old stash, where it had to grow, is left
 * in *old: readers may still look at it. */
static void
change_watched(struct fixture *f, struct watched *watched, uint64_t key,
    uint64_t first, struct stash **old)
{
    uint64_t code[COLUMNS];
    codes_from(first, code);
    uint64_t now = atomic_load(&watched->sequence);
    /* relaxed: the stash stores its words with release, after this */
    atomic_store_explicit(&watched->sequence, now + 1, memory_order_relaxed);
    bool done = first == 0 ? stash_remove(f->stash, key) || true
                           : stash_put(f->stash, key, code);
    atomic_store_explicit(&watched->sequence, now + 2, memory_order_release);
    if (!done) {
        *old = f->stash;
        ASSERT(stash_grown(&f->pool, *old, code, POOL_NEW, &f->stash) == 0);
        ASSERT(stash_put(f->stash, key, code));
        atomic_store_explicit(&watched->stash, f->stash, memory_order_release);
    }
}

START_TEST(test_threads)
{
    static struct fixture f;
    static struct stash *old[CHANGES];
    static struct watched watched;
    pthread_t thread[READERS];
    uint64_t state = 6, code[COLUMNS];
    setup(&f, 27, KEYS, 20);
    for (uint64_t key = 0; key < KEYS; key += 2) {
        codes_from(key + 1, code);
        while (!stash_put(f.stash, key, code)) {
            struct stash *grown;
            ASSERT(stash_grown(&f.pool, f.stash, code, POOL_NEW, &grown) == 0);
            stash_destroy(&f.pool, &f.stash);
            f.stash = grown;
        }
    }
    atomic_store(&watched.stash, f.stash);
    for (int i = 0; i < READERS; i++) {
        ck_assert_int_eq(pthread_create(&thread[i], NULL, watch, &watched), 0);
    }
    for (unsigned i = 0; i < CHANGES; i++) {
        uint64_t key = random_below(&state, KEYS / 2) * 2;
        uint64_t first = 1 + random_bits(&state, 1 + i % 40);
        if (i % 4 == 0) { /* keys that come and go, for shifts */
            key += KEYS;
            first = random_below(&state, 2) * 3;
        }
        change_watched(&f, &watched, key, first, &old[i]);
    }
    atomic_store(&watched.done, true);
    for (int i = 0; i < READERS; i++) {
        ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
    }
    ck_assert_uint_gt(atomic_load(&watched.reads), 0);
    stash_verify(f.stash);
    for (unsigned i = 0; i < CHANGES; i++) {
        stash_destroy(&f.pool, &old[i]);
    }
    teardown(&f);
}
END_TEST

/* A walk with stash_next that removes some on the way meets all of them, and
 * the others. */
START_TEST(test_walk)
{
    static struct fixture f;
    uint64_t state = 4;
    for (unsigned round = 0; round < 300; round++) {
        uint64_t one_in = 1 + random_below(&state, 4);
        size_t n = random_below(&state, 120);
        uint64_t code[COLUMNS], key;
        setup(&f, 27, n / 4, 20);
        for (size_t i = 0; i < n; i++) {
            random_code(&state, 3, 20, code);
            put(&f, random_bits(&state, 27), code);
        }
        size_t n_met = 0, n_before = f.model.n;
        uint32_t place = 0;
        while (stash_next(f.stash, &place, &key, code)) {
            expect_record(&f.model, key, code);
            if (key % one_in == 0) {
                ASSERT(stash_remove(f.stash, key));
                model_remove(&f.model, key);
            } else {
                place++;
            }
            n_met++;
        }
        for (size_t i = 0; i < f.model.n; i++) {
            ASSERT(f.model.key[i] % one_in != 0);
        }
        /* those from around the end may be met a second time */
        ASSERT(n_met >= n_before && n_met <= n_before + f.model.n);
        expect_model(&f);
        teardown(&f);
    }
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_random, test_extremes, test_every_width,
        test_full, test_dead, test_large, test_bytes, test_refused, test_torn,
        test_walk, test_threads};
    return run_tests("stash", tests, COUNT_OF(tests));
}
