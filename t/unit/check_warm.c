/* SPDX-License-Identifier: BSD-3-Clause */
/* cold/warm beside cold/block: in every kind of block, what a lookup finds is
 * what is decoded, and nothing else; blocks with a right checksum and wrong
 * content do no harm; memory that runs out is said. What is warm lies in heap
 * blocks of exactly its size, so that ASan sees a read past it. */
#include "cold/warm.h"

#include "lib/fault_alloc.h"
#include "unit/segment_help.h"

struct rig {
    struct records records;
    struct block_room room;
    uint64_t id[BLOCK_RECORDS_MAX];
    uint64_t number[COLUMNS_MAX][BLOCK_RECORDS_MAX];
    uint64_t *code[COLUMNS_MAX];
};

static struct rig *rig;

static void
setup(void)
{
    rig = calloc(1, sizeof *rig);
    ck_assert_ptr_nonnull(rig);
    for (unsigned c = 0; c < COLUMNS_MAX; c++) {
        rig->code[c] = rig->number[c];
    }
}

static void
teardown(void)
{
    block_room_fini(&rig->room);
    free(rig);
}

struct memory {
    void *block;
    size_t bytes;
};

static void *
take_memory(void *context, size_t bytes)
{
    struct memory *memory = context;

    memory->bytes = bytes;
    memory->block = malloc(bytes);
    return memory->block;
}

static void *
take_none(void *context, size_t bytes)
{
    (void)context;
    (void)bytes;
    return NULL;
}

static bool
is_decoded(const struct block *block, uint64_t id)
{
    size_t from = 0;

    for (size_t n = block->n; n > 1;) {
        size_t half = n / 2;

        from += rig->id[from + half] <= id ? half : 0;
        n -= half;
    }
    return rig->id[from] == id;
}

/* Looks for an id that is not there, or is and is compared elsewhere. */
static bool
is_right_beside(
    const struct block *block, const struct warm *warm, uint64_t id)
{
    uint64_t code[COLUMNS_MAX];
    bool found;

    return warm_find(warm, id, BLOCK_COLUMNS_ALL, code, &found) == 0 &&
        found == is_decoded(block, id);
}

/* Asked for some columns only, it leaves the others alone. */
static bool
is_right_in_part(const struct block *block, const struct warm *warm, size_t i)
{
    enum { UNTOUCHED = 0x5a };
    unsigned columns =
        (unsigned)(rig->id[i] * UINT64_C(0x9e3779b97f4a7c15) >> 48);
    uint64_t code[COLUMNS_MAX], none;
    bool found;
    bool same;

    memset(code, UNTOUCHED, sizeof code);
    memset(&none, UNTOUCHED, sizeof none);
    same = warm_find(warm, rig->id[i], columns, code, &found) == 0 && found;
    for (unsigned c = 0; same && c < block->n_columns; c++) {
        same = code[c] == ((columns >> c & 1) != 0 ? rig->number[c][i] : none);
    }
    return same;
}

/* Looks for every step-th record of a block that decodes, and beside it. */
static void
check_all(const struct block *block, const struct warm *warm, size_t step)
{
    bool same = true; /* one assertion for all: each one is a system call */

    for (size_t i = 0; i < block->n; i += step) {
        uint64_t code[COLUMNS_MAX];
        uint64_t id = rig->id[i];
        bool found;

        same = same &&
            warm_find(warm, id, BLOCK_COLUMNS_ALL, code, &found) == 0 && found;
        for (unsigned c = 0; same && c < block->n_columns; c++) {
            same = code[c] == rig->number[c][i];
        }
        same = same && is_right_in_part(block, warm, i) &&
            is_right_beside(block, warm, id + 1) &&
            is_right_beside(block, warm, id - 1) &&
            is_right_beside(block, warm, id + block->shape.stride) &&
            is_right_beside(block, warm, id ^ (uint64_t)1 << i % 64);
    }
    ck_assert(same);
}

static void
check_bytes(const struct block *block, size_t bytes)
{
    size_t marks = (block->n + 63) / 64 * 16;
    size_t head = 400 + sizeof(uint64_t) * block->shape.n_lows;

    if (block->codec == BLOCK_PACKED) {
        /* dense ids may take more than in their tree, and three groups of them
         * as many bits as there are */
        ck_assert_uint_le(bytes, head + marks + 2 * block->len + 3 * 64 * 8);
    }
}

/* Makes one block of the first records; returns how many, its length. */
static size_t
one_block(enum block_codec codec, size_t n, uint8_t *out, size_t *len)
{
    struct block_options options = {
        codec, BLOCK_LEVEL_DEFAULT, rig->records.n_columns};
    struct block_builder *builder;
    size_t made;

    ck_assert_int_eq(block_builder_create(&options, NULL, &builder), 0);
    for (size_t i = 0; i < n && !block_builder_is_full(builder); i++) {
        block_builder_add(builder, rig->records.id[i], rig->records.code[i]);
    }
    ck_assert_int_eq(
        block_builder_cut(builder, true, SEED, out, len, &made), 0);
    block_builder_destroy(&builder);
    return made;
}

/* The first lookups in a block, before and while marks are made, each time in a
 * block that was never looked into. */
static void
check_first(const struct block *block, size_t step)
{
    enum { LOOKUPS = 4 };
    bool same = true;

    for (size_t i = 0; i < block->n; i += step) {
        struct memory memory = {0};
        struct warm *warm;
        uint64_t code[COLUMNS_MAX];
        bool found;

        ck_assert_int_eq(
            warm_make(block, &rig->room, take_memory, &memory, &warm), 0);
        for (size_t look = 0; look < LOOKUPS; look++) {
            size_t at = (i + look * block->n / LOOKUPS) % block->n;

            same = same &&
                warm_find(
                    warm, rig->id[at], BLOCK_COLUMNS_ALL, code, &found) == 0 &&
                found && code[0] == rig->number[0][at] &&
                is_right_beside(block, warm, rig->id[at] + 1);
        }
        free(memory.block);
    }
    ck_assert(same);
}

START_TEST(test_what_is_found_is_what_is_decoded)
{
    static const size_t count[] = {1, 2, 64, 65, 66, 129, 5000};
    enum block_codec codec = (enum block_codec)(_i % BLOCK_CODEC_COUNT);
    enum id_family family = (enum id_family)(_i / BLOCK_CODEC_COUNT);
    uint8_t out[BLOCK_BYTES_MAX];
    struct block block;
    size_t len;

    for (int which = 0; which < LOOK_COUNT; which++) {
        for (size_t i = 0; i < COUNT_OF(count); i++) {
            struct memory memory = {0};
            struct warm *warm;

            make_records(&rig->records, family, (enum look)which, count[i], 3);
            size_t made = one_block(codec, count[i], out, &len);
            ck_assert_int_eq(block_open(out, len, SEED, &block), 0);
            ck_assert_uint_eq(block.n, made);
            ck_assert_int_eq(
                block_decode(&block, &rig->room, rig->id, rig->code), 0);
            ck_assert_int_eq(
                warm_make(&block, &rig->room, take_memory, &memory, &warm), 0);
            check_first(&block, 1 + made / 30);
            memset(out, 0xff, sizeof out); /* the block is not needed */
            check_bytes(&block, memory.bytes);
            check_all(&block, warm, 1);
            free(memory.block);
        }
    }
}
END_TEST

/* Whatever stands in a block: what decodes is found, what does not does no
 * harm. */
static void
read_whatever(const uint8_t *bytes, size_t len)
{
    struct memory memory = {0};
    struct block block;
    struct warm *warm;
    uint64_t code[COLUMNS_MAX];
    bool found;

    if (block_open(bytes, len, SEED, &block) != 0) {
        return;
    }
    bool good = block_decode(&block, &rig->room, rig->id, rig->code) == 0;
    int err = warm_make(&block, &rig->room, take_memory, &memory, &warm);
    if (err != 0 && (err != ERR_CORRUPT || good)) {
        ck_abort();
    }
    if (err == 0 && good) {
        check_all(&block, warm, 1 + block.n / 5);
    }
    for (size_t i = 0; err == 0 && !good && i < rig->records.n; i += 7) {
        int find_err = warm_find(
            warm, rig->records.id[i], BLOCK_COLUMNS_ALL, code, &found);
        if (find_err != 0 && (find_err != ERR_CORRUPT || found)) {
            ck_abort();
        }
        if (find_err != 0 && /* what is known stays known */
            warm_find(warm, rig->records.id[i], BLOCK_COLUMNS_ALL, code,
                &found) != ERR_CORRUPT) {
            ck_abort();
        }
    }
    free(memory.block);
}

START_TEST(test_a_right_checksum_does_not_make_it_sound)
{
    enum block_codec codec = (enum block_codec)_i;
    uint8_t out[BLOCK_BYTES_MAX];
    size_t len;

    for (int family = 0; family < ID_FAMILY_COUNT; family++) {
        make_records(
            &rig->records, (enum id_family)family, LOOK_POSTS, 150, 2);
        (void)one_block(codec, 150, out, &len);
        read_worse(out, len, read_whatever);
    }
}
END_TEST

START_TEST(test_memory_that_runs_out)
{
    enum block_codec codec = (enum block_codec)_i;
    uint8_t out[BLOCK_BYTES_MAX];
    struct block block;
    struct warm *warm;
    size_t len;
    bool failed = true;

    make_records(&rig->records, ID_CLUSTERS, LOOK_POSTS, 300, 2);
    (void)one_block(codec, 300, out, &len);
    ck_assert_int_eq(block_open(out, len, SEED, &block), 0);
    ck_assert_int_eq(
        warm_make(&block, &rig->room, take_none, NULL, &warm), ERR_NO_MEMORY);
    for (size_t n = 1; failed; n++) {
        struct memory memory = {0};
        struct block_room room = {0};
        struct fault_alloc fault;

        fault_alloc_init(&fault);
        fault.fail_from = fault.fail_to = n;
        room.alloc = &fault.alloc;
        int err = warm_make(&block, &room, take_memory, &memory, &warm);
        failed = fault.failures > 0;
        ck_assert_int_eq(err, failed ? ERR_NO_MEMORY : 0);
        block_room_fini(&room);
        free(memory.block);
    }
}
END_TEST

int
main(void)
{
    TCase *tcase = tcase_create("warm");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, test_what_is_found_is_what_is_decoded, 0,
        BLOCK_CODEC_COUNT * ID_FAMILY_COUNT);
    tcase_add_loop_test(tcase, test_a_right_checksum_does_not_make_it_sound, 0,
        BLOCK_CODEC_COUNT);
    tcase_add_loop_test(
        tcase, test_memory_that_runs_out, 0, BLOCK_CODEC_COUNT);
    return run_case("warm", tcase);
}
