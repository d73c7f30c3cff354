/* SPDX-License-Identifier: BSD-3-Clause */
/* base/arena: pieces do not overlap, chunks come and go as the header says,
 * and a source that fails changes nothing. It is linked with --wrap=mmap and
 * --wrap=munmap, so that a mapping can fail or come out crooked. */
#include "base/arena.h"

#include "base/assert.h"
#include "lib/fault_alloc.h"
#include "unit/check_help.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    CHUNK = ARENA_CHUNK_BYTES,
    UNITS = ARENA_CHUNK_BYTES / ARENA_PIECE_BYTES_MAX, /* of a chunk */
    LARGEST = ARENA_CLASSES - 1,
    LIVE_MAX = 4000, /* pieces that a random test has at a time */
    STEPS = 60000,
    VERIFY_STEPS = 2000,
    THREADS = 4,
    MANY = 150, /* chunks: more than one word of any bitmap */
    SMALL = 32  /* chunks on small pages, as arena_chunk.c says */
};

struct piece {
    uint64_t *word;
    uint64_t tag; /* what its words hold, but for their index */
    unsigned class_;
};

static size_t
bytes_of(unsigned class_)
{
    return (size_t)128 << class_;
}

/* A piece filled with its tag, so that one that overlaps it shows. */
static struct piece
take(struct arena *arena, unsigned class_, uint64_t tag)
{
    struct piece piece = {arena_take(arena, class_), tag, class_};

    for (size_t i = 0;
         piece.word != NULL && i < bytes_of(class_) / sizeof(uint64_t); i++) {
        piece.word[i] = tag + i;
    }
    return piece;
}

/* ASSERT: on any thread. */
static void
give(struct arena *arena, struct piece piece)
{
    for (size_t i = 0; i < bytes_of(piece.class_) / sizeof(uint64_t); i++) {
        ASSERT(piece.word[i] == piece.tag + i);
    }
    arena_give(arena, piece.word, piece.class_);
}

static void
expect(struct arena *arena, uint64_t used, uint64_t chunks)
{
    struct arena_sum sum = arena_sum(arena);

    ck_assert_uint_eq(sum.used_bytes, used);
    ck_assert_uint_eq(sum.mapped_bytes, chunks * CHUNK);
    arena_verify(arena);
}

START_TEST(test_classes)
{
    struct arena *arena = arena_create(NULL);
    struct piece piece[ARENA_CLASSES][3];
    uint64_t used = 0;

    expect(arena, 0, 0);
    for (unsigned i = 0; i < 3; i++) {
        for (unsigned class_ = 0; class_ < ARENA_CLASSES; class_++) {
            struct piece *it = &piece[class_][i];

            *it = take(arena, class_, (uint64_t)class_ << 32);
            ck_assert_ptr_nonnull(it->word);
            ck_assert_uint_eq((uintptr_t)it->word % bytes_of(class_), 0);
            used += bytes_of(class_);
            expect(arena, used, 1);
        }
    }
    for (unsigned class_ = 0; class_ < ARENA_CLASSES; class_++) {
        for (unsigned i = 0; i < 3; i++) {
            ck_assert_uint_eq(arena_sum(arena).mapped_bytes, CHUNK);
            give(arena, piece[class_][i]);
        }
    }
    expect(arena, 0, 0);
    arena_destroy(&arena);
    ck_assert_ptr_null(arena);
    arena_destroy(&arena);
}
END_TEST

/* Every class uses a whole chunk; the next piece needs another, which goes
 * back to the system as soon as it is empty. */
START_TEST(test_whole_chunk)
{
    struct arena *arena = arena_create(NULL);
    const size_t n_max = CHUNK / 128;
    void **piece = malloc(n_max * sizeof *piece);

    ck_assert_ptr_nonnull(piece);
    for (unsigned class_ = 0; class_ < ARENA_CLASSES; class_++) {
        size_t n = CHUNK / bytes_of(class_);
        void *over;

        for (size_t i = 0; i < n; i++) {
            piece[i] = arena_take(arena, class_);
            ck_assert_ptr_nonnull(piece[i]);
        }
        expect(arena, CHUNK, 1);
        over = arena_take(arena, class_);
        expect(arena, CHUNK + bytes_of(class_), 2);
        arena_give(arena, over, class_);
        expect(arena, CHUNK, 1);
        for (size_t i = 0; i < n; i++) {
            arena_give(arena, piece[i], class_);
        }
        expect(arena, 0, 0);
    }
    free(piece);
    arena_destroy(&arena);
}
END_TEST

/* What is left of a chunk is one unit, for slabs of one class after another:
 * it must be a free unit again between them. */
START_TEST(test_slab_goes_back)
{
    struct arena *arena = arena_create(NULL);
    void *unit[UNITS - 1], *slot[64];

    for (int i = 0; i < UNITS - 1; i++) {
        unit[i] = arena_take(arena, LARGEST);
    }
    for (unsigned round = 0; round < 2 * ARENA_CLASSES; round++) {
        unsigned class_ = round % ARENA_CLASSES, n = 64u >> class_;

        for (unsigned i = 0; i < n; i++) {
            slot[i] = arena_take(arena, class_);
        }
        expect(arena, CHUNK, 1);
        for (unsigned i = 0; i < n; i++) { /* every second, then the rest */
            arena_give(
                arena, slot[n == 1 ? 0 : (2 * i + 2 * i / n) % n], class_);
            arena_verify(arena);
        }
        expect(arena, CHUNK - ARENA_PIECE_BYTES_MAX, 1);
    }
    for (int i = 0; i < UNITS - 1; i++) {
        arena_give(arena, unit[i], LARGEST);
    }
    arena_destroy(&arena);
}
END_TEST

/* What was given back in the lowest chunk is taken first. */
START_TEST(test_lowest_first)
{
    enum { N = 4 * UNITS };
    struct arena *arena = arena_create(NULL);
    void *unit[N];
    static const int holes[] = {3 * UNITS + 5, 2 * UNITS + 9, 7, UNITS, 6};
    static const int order[] = {6, 7, UNITS, 2 * UNITS + 9, 3 * UNITS + 5};

    for (int i = 0; i < N; i++) {
        unit[i] = arena_take(arena, LARGEST);
    }
    for (size_t i = 0; i < COUNT_OF(holes); i++) {
        arena_give(arena, unit[holes[i]], LARGEST);
    }
    for (size_t i = 0; i < COUNT_OF(order); i++) {
        ck_assert_ptr_eq(arena_take(arena, LARGEST), unit[order[i]]);
    }
    expect(arena, (uint64_t)4 * CHUNK, 4);
    for (int i = 0; i < N; i++) {
        arena_give(arena, unit[i], LARGEST);
    }
    arena_destroy(&arena);
}
END_TEST

/* Many chunks, that fall empty in an order of chance: at most one is kept. */
START_TEST(test_many_chunks)
{
    struct arena *arena = arena_create(NULL);
    void **unit = malloc(sizeof *unit * MANY * UNITS);
    unsigned order[MANY];
    uint64_t seed = 1, was, n = MANY;

    ck_assert_ptr_nonnull(unit);
    for (unsigned i = 0; i < MANY * UNITS; i++) {
        unit[i] = arena_take(arena, LARGEST);
        ck_assert_ptr_nonnull(unit[i]);
    }
    expect(arena, (uint64_t)MANY * CHUNK, MANY);
    for (unsigned i = 0; i < MANY; i++) {
        unsigned j = (unsigned)random_below(&seed, i + 1);

        order[i] = order[j];
        order[j] = i;
    }
    for (unsigned i = 0; i < MANY; i++) {
        for (unsigned j = 0; j < UNITS; j++) {
            arena_give(arena, unit[order[i] * UNITS + j], LARGEST);
        }
        n--;
        was = arena_sum(arena).mapped_bytes / CHUNK;
        ck_assert_uint_ge(was, n);
        ck_assert_uint_le(was, n + 1);
        ck_assert(n < MANY / 2 || was == n + 1); /* a spare, where it pays */
        ck_assert(n > SMALL || was == n);        /* and none where not */
        expect(arena, n * CHUNK, was);
    }
    expect(arena, 0, 0);
    free(unit);
    arena_destroy(&arena);
}
END_TEST

static void
give_chunk(struct arena *arena, void **unit)
{
    for (unsigned i = 0; i < UNITS; i++) {
        arena_give(arena, unit[i], LARGEST);
    }
}

static void
take_chunk(struct arena *arena, void **unit)
{
    for (unsigned i = 0; i < UNITS; i++) {
        unit[i] = arena_take(arena, LARGEST);
        ck_assert_ptr_nonnull(unit[i]);
    }
}

/* The spare is used before another chunk is mapped, and an arena that is
 * destroyed lets it go. Of two empty chunks the lower becomes the spare. */
START_TEST(test_spare)
{
    enum { N = MANY / 2 };
    struct fault_alloc source;
    struct arena *arena;
    void **unit = malloc(sizeof *unit * N * UNITS);
    void **const low = unit + 10 * UNITS,
                 **const last = unit + (N - 1) * UNITS;
    size_t calls;

    ck_assert_ptr_nonnull(unit);
    fault_alloc_init(&source);
    arena = arena_create(&source.alloc);
    for (unsigned i = 0; i < N; i++) {
        take_chunk(arena, unit + i * UNITS);
    }
    calls = source.calls;
    ck_assert_uint_eq(calls, N);
    for (unsigned round = 0; round < 3; round++) {
        give_chunk(arena, last);
        expect(arena, (uint64_t)(N - 1) * CHUNK, N);
        take_chunk(arena, last);
        expect(arena, (uint64_t)N * CHUNK, N);
    }
    ck_assert_uint_eq(source.calls, calls);
    for (unsigned round = 0; round < 2; round++) {
        void *was = low[0];

        give_chunk(arena, round == 0 ? last : low);
        give_chunk(arena, round == 0 ? low : last);
        expect(arena, (uint64_t)(N - 2) * CHUNK, N - 1);
        take_chunk(arena, low);
        ck_assert_ptr_eq(low[0], was);
        expect(arena, (uint64_t)(N - 1) * CHUNK, N - 1);
        take_chunk(arena, last);
        ck_assert_uint_eq(source.calls, ++calls);
    }
    for (unsigned i = 0; i < N; i++) {
        give_chunk(arena, unit + i * UNITS);
    }
    arena_destroy(&arena);
    ck_assert_uint_eq(source.live_bytes, 0);
    free(unit);
}
END_TEST

/* Grows and shrinks in turn; what lives is known exactly. */
static void
run_model(const struct alloc *source, uint64_t seed)
{
    struct arena *arena = arena_create(source);
    struct piece *live = malloc(sizeof *live * LIVE_MAX);
    uint64_t used = 0;
    unsigned n = 0;

    ck_assert_ptr_nonnull(live);
    for (unsigned step = 1; step <= STEPS; step++) {
        unsigned grow = step / (STEPS / 6) % 2 == 0 ? 7 : 3;

        if (n < LIVE_MAX && (n == 0 || random_below(&seed, 10) < grow)) {
            /* mostly slots of the small classes, or mostly large ones */
            unsigned class_ = (unsigned)random_below(&seed, ARENA_CLASSES);

            live[n] = take(arena, class_, (uint64_t)step << 20);
            ck_assert_ptr_nonnull(live[n].word);
            ck_assert_uint_eq((uintptr_t)live[n].word % 64, 0);
            used += bytes_of(class_);
            n++;
        } else {
            unsigned i = (unsigned)random_below(&seed, n);

            give(arena, live[i]);
            used -= bytes_of(live[i].class_);
            live[i] = live[--n];
        }
        if (step % VERIFY_STEPS == 0) {
            struct arena_sum sum = arena_sum(arena);

            arena_verify(arena);
            ck_assert_uint_eq(sum.used_bytes, used);
            ck_assert_uint_ge(sum.mapped_bytes, used);
        }
    }
    while (n > 0) {
        give(arena, live[--n]);
    }
    expect(arena, 0, 0);
    free(live);
    arena_destroy(&arena);
}

START_TEST(test_model_mmap)
{
    run_model(NULL, 1);
    run_model(NULL, 2);
}
END_TEST

START_TEST(test_model_source)
{
    struct fault_alloc source;

    fault_alloc_init(&source);
    run_model(&source.alloc, 3);
    ck_assert_uint_gt(source.calls, 1);
    ck_assert_uint_eq(source.live_bytes, 0);
}
END_TEST

/* Blocks that begin where no piece may: off bytes after a boundary of 64. */
struct crooked {
    struct alloc alloc;
    size_t off;
    char *newest, *end; /* the last block given */
};

static void *
crooked_zeroed(void *context, size_t bytes)
{
    struct crooked *crooked = context;
    void *block;

    ck_assert_int_eq(posix_memalign(&block, 64, crooked->off + bytes), 0);
    memset(block, 0, crooked->off + bytes);
    crooked->newest = (char *)block + crooked->off;
    crooked->end = crooked->newest + bytes;
    return crooked->newest;
}

static void
crooked_free(void *context, void *block, size_t bytes)
{
    const struct crooked *crooked = context;

    (void)bytes;
    free((char *)block - crooked->off);
}

START_TEST(test_crooked_source)
{
    for (size_t off = 0; off < 64; off += 16) {
        struct crooked crooked = {
            {crooked_zeroed, crooked_free, &crooked}, off, NULL, NULL};
        struct arena *arena = arena_create(&crooked.alloc);
        struct piece unit[3 * UNITS];

        for (unsigned i = 0; i < COUNT_OF(unit); i++) {
            unit[i] = take(arena, LARGEST, (uint64_t)i << 20);
            ck_assert_uint_eq((uintptr_t)unit[i].word % 64, 0);
            /* a sanitizer would not see it: the arena says what is poison */
            ck_assert((char *)unit[i].word >= crooked.newest);
            ck_assert(
                (char *)unit[i].word + ARENA_PIECE_BYTES_MAX <= crooked.end);
        }
        expect(arena, (uint64_t)3 * CHUNK, 3);
        for (unsigned i = 0; i < COUNT_OF(unit); i++) {
            give(arena, unit[i]);
        }
        arena_destroy(&arena);
    }
}
END_TEST

/* The n-th chunk fails twice, for a large piece or for a slot: nothing changes,
 * and once there is memory again it goes on. */
static void
fail_chunk(unsigned nth, unsigned class_)
{
    struct fault_alloc source;
    struct arena *arena;
    const unsigned n = (nth - 1) * UNITS;
    struct piece *piece = malloc(sizeof *piece * (n + 1));

    ck_assert_ptr_nonnull(piece);
    fault_alloc_init(&source);
    source.fail_from = nth;
    source.fail_to = nth + 1;
    arena = arena_create(&source.alloc);
    for (unsigned i = 0; i < n; i++) {
        piece[i] = take(arena, LARGEST, (uint64_t)i << 10);
        ck_assert_ptr_nonnull(piece[i].word);
    }
    for (unsigned i = 0; i < 2; i++) {
        ck_assert_ptr_null(arena_take(arena, class_));
        ck_assert_uint_eq(source.failures, i + 1);
        expect(arena, (uint64_t)n * ARENA_PIECE_BYTES_MAX, nth - 1);
    }
    piece[n] = take(arena, class_, (uint64_t)n << 10);
    ck_assert_ptr_nonnull(piece[n].word);
    for (unsigned i = 0; i <= n; i++) {
        give(arena, piece[i]);
    }
    expect(arena, 0, 0);
    arena_destroy(&arena);
    ck_assert_uint_eq(source.live_bytes, 0);
    free(piece);
}

START_TEST(test_chunk_fails)
{
    for (unsigned nth = 1; nth <= 5; nth++) {
        fail_chunk(nth, LARGEST);
        fail_chunk(nth, 5);
        fail_chunk(nth, 0);
    }
}
END_TEST

/* What mmap does in this program: mapping is counted, the fail-th call from now
 * fails, and crooked mappings begin a page after where they should. */
static struct {
    bool crooked;
    unsigned fail;
    int64_t mapped_bytes;
} system_is;

void *__real_mmap(
    void *address, size_t bytes, int protect, int flags, int fd, off_t offset);
void *__wrap_mmap(
    void *address, size_t bytes, int protect, int flags, int fd, off_t offset);
int __real_munmap(void *address, size_t bytes);
int __wrap_munmap(void *address, size_t bytes);

void *
__wrap_mmap(
    void *address, size_t bytes, int protect, int flags, int fd, off_t offset)
{
    enum { PAGE = 4096 };
    char *start, *from;
    size_t more = system_is.crooked ? CHUNK + PAGE : 0, before;

    if (system_is.fail > 0 && --system_is.fail == 0) {
        return MAP_FAILED;
    }
    start = __real_mmap(address, bytes + more, protect, flags, fd, offset);
    if (start == MAP_FAILED || more == 0) {
        system_is.mapped_bytes += start == MAP_FAILED ? 0 : (int64_t)bytes;
        return start;
    }
    before = (CHUNK - (uintptr_t)start % CHUNK) % CHUNK + PAGE;
    from = start + before;
    ck_assert_int_eq(__real_munmap(start, before), 0);
    if (more > before) {
        ck_assert_int_eq(__real_munmap(from + bytes, more - before), 0);
    }
    system_is.mapped_bytes += (int64_t)bytes;
    return from;
}

int
__wrap_munmap(void *address, size_t bytes)
{
    system_is.mapped_bytes -= (int64_t)bytes;
    return __real_munmap(address, bytes);
}

/* Chunks are aligned all the same, and nothing stays mapped. */
START_TEST(test_crooked_system)
{
    enum { N = 5 * UNITS };
    struct arena *arena = arena_create(NULL);
    struct piece unit[N];

    system_is.crooked = true;
    for (unsigned i = 0; i < N; i++) {
        unit[i] = take(arena, LARGEST, (uint64_t)i << 20);
        ck_assert_ptr_nonnull(unit[i].word);
        ck_assert_uint_eq((uintptr_t)unit[i].word % ARENA_PIECE_BYTES_MAX, 0);
    }
    ck_assert_int_eq(system_is.mapped_bytes, 5 * CHUNK);
    expect(arena, (uint64_t)5 * CHUNK, 5);
    for (unsigned i = 0; i < N; i++) {
        give(arena, unit[i]);
    }
    ck_assert_int_eq(system_is.mapped_bytes, 0);
    for (unsigned fail = 1; fail <= 2; fail++) { /* the first, the second */
        system_is.fail = fail;
        ck_assert_ptr_null(arena_take(arena, 0));
        ck_assert_int_eq(system_is.mapped_bytes, 0);
        expect(arena, 0, 0);
    }
    system_is.fail = 3;
    unit[0] = take(arena, 0, 0);
    ck_assert_ptr_nonnull(unit[0].word);
    give(arena, unit[0]);
    arena_destroy(&arena);
}
END_TEST

/* True where the mapping that has address has the flag: "hg" is advice for
 * huge pages, "nh" against them (proc(5), VmFlags). Without such flags at
 * all, by a kernel without huge pages, *known stays. */
static bool
has_flag(const void *address, const char *flag, bool *known)
{
    FILE *file = fopen("/proc/self/smaps", "r");
    char line[512];
    bool inside = false, has = false;
    unsigned long start, end;

    if (file == NULL) {
        return false;
    }
    while (fgets(line, sizeof line, file) != NULL) {
        if (sscanf(line, "%lx-%lx ", &start, &end) == 2) {
            inside = (uintptr_t)address >= start && (uintptr_t)address < end;
        } else if (inside && strncmp(line, "VmFlags:", 8) == 0) {
            has = strstr(line, flag) != NULL;
            *known = *known || strstr(line, " hg") != NULL ||
                strstr(line, " nh") != NULL;
        }
    }
    (void)fclose(file);
    return has;
}

/* The first n_small chunks have small pages, all others huge ones. */
static void
expect_pages(void *const *unit, unsigned n_chunks, unsigned n_small)
{
    bool known = false;
    for (unsigned i = 0; i < n_chunks; i++) {
        const char *flag = i < n_small ? " nh" : " hg";
        bool has = has_flag(unit[i * UNITS], flag, &known);

        ck_assert_msg(has || !known, "chunk %u lacks%s", i, flag);
    }
}

/* A small process never pays 2 MB for a few KB; a large one has huge pages
 * only, once it has been trimmed for a while. */
START_TEST(test_huge_pages)
{
    enum { LARGE = 96, N = LARGE * UNITS, MARK = 97 };
    struct arena *arena = arena_create(NULL);
    void **unit = malloc(sizeof *unit * N);
    unsigned n = 0;

    ck_assert_ptr_nonnull(unit);
    while (n < (LARGE - 1) * UNITS) {
        unit[n++] = arena_take(arena, LARGEST);
    }
    for (unsigned i = 0; i < n; i += MARK) {
        memset(unit[i], (int)(i & 0xff), ARENA_PIECE_BYTES_MAX);
    }
    arena_trim(arena);
    expect_pages(unit, LARGE - 1, SMALL);
    while (n < N) {
        unit[n++] = arena_take(arena, LARGEST);
    }
    for (unsigned i = 0; i < SMALL; i++) {
        arena_trim(arena);
        arena_verify(arena);
    }
    expect_pages(unit, LARGE, 0);
    for (unsigned i = 0; i < (LARGE - 1) * UNITS; i += MARK) {
        const unsigned char *byte = unit[i];
        ck_assert_uint_eq(byte[0], i & 0xff);
        ck_assert_mem_eq(byte, byte + 1, ARENA_PIECE_BYTES_MAX - 1);
    }
    for (unsigned i = 0; i < N; i++) {
        arena_give(arena, unit[i], LARGEST);
    }
    free(unit);
    arena_destroy(&arena);
}
END_TEST

struct worker {
    struct arena *arena;
    uint64_t seed;
    pthread_t thread;
};

static void *
work(void *arg)
{
    enum { LIVE = 300, WORKER_STEPS = 20000 };
    struct worker *worker = arg;
    struct piece live[LIVE];
    unsigned n = 0;

    for (unsigned step = 0; step < WORKER_STEPS; step++) {
        if (n < LIVE && (n == 0 || random_below(&worker->seed, 2) == 0)) {
            live[n] = take(worker->arena,
                (unsigned)random_below(&worker->seed, ARENA_CLASSES),
                worker->seed);
            ASSERT(live[n].word != NULL);
            n++;
        } else {
            unsigned i = (unsigned)random_below(&worker->seed, n);

            give(worker->arena, live[i]);
            live[i] = live[--n];
        }
    }
    while (n > 0) {
        give(worker->arena, live[--n]);
    }
    return NULL;
}

START_TEST(test_threads)
{
    struct arena *arena = arena_create(NULL);
    struct worker worker[THREADS];

    for (unsigned i = 0; i < THREADS; i++) {
        worker[i] = (struct worker){.arena = arena, .seed = i};
        ck_assert_int_eq(
            pthread_create(&worker[i].thread, NULL, work, &worker[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        arena_verify(arena);
        ck_assert_int_eq(pthread_join(worker[i].thread, NULL), 0);
    }
    expect(arena, 0, 0);
    arena_destroy(&arena);
}
END_TEST

static void
give_twice(struct arena *arena)
{
    void *other = arena_take(arena, 2), *piece = arena_take(arena, 2);

    (void)other; /* so that neither the slab nor the account falls empty */
    arena_give(arena, piece, 2);
    arena_give(arena, piece, 2);
}

static void
give_unit_twice(struct arena *arena)
{
    void *other = arena_take(arena, LARGEST);
    void *piece = arena_take(arena, LARGEST);

    (void)other;
    arena_give(arena, piece, LARGEST);
    arena_give(arena, piece, LARGEST);
}

static void
give_as_other_class(struct arena *arena)
{
    (void)arena_take(arena, 2);
    (void)arena_take(arena, 3);
    arena_give(arena, arena_take(arena, 3), 2);
}

static void
give_stranger(struct arena *arena)
{
    static char stranger[ARENA_PIECE_BYTES_MAX];

    (void)arena_take(arena, 0);
    arena_give(arena, stranger, 0);
}

static void
keep_one(struct arena *arena)
{
    (void)arena_take(arena, 0);
    arena_destroy(&arena);
}

START_TEST(test_misuse)
{
    static void (*const misuse[])(struct arena *) = {give_twice,
        give_unit_twice, give_as_other_class, give_stranger, keep_one};

    for (size_t i = 0; i < COUNT_OF(misuse); i++) {
        struct arena *arena = arena_create(NULL);
        int status;
        pid_t child = fork();

        ck_assert_int_ge(child, 0);
        if (child == 0) {
            (void)signal(SIGABRT, SIG_DFL);
            (void)close(STDERR_FILENO);
            misuse[i](arena);
            _exit(0);
        }
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
        arena_destroy(&arena);
    }
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_classes, test_whole_chunk,
        test_slab_goes_back, test_lowest_first, test_many_chunks, test_spare,
        test_model_mmap, test_model_source, test_crooked_source,
        test_chunk_fails, test_crooked_system, test_huge_pages, test_threads,
        test_misuse};

    return run_tests("arena", tests, COUNT_OF(tests));
}
