/* SPDX-License-Identifier: BSD-3-Clause */
/* cold/block and cold/block_build: what is built comes back, decoded or looked
 * up, whatever the records and the codec; blocks are full; every flipped bit
 * and every missing byte is damage; blocks with a right checksum and wrong
 * content do no harm; memory that runs out is said. Blocks lie in heap blocks
 * of exactly their size, so that ASan sees a read past them. */
#include "cold/block_build.h"

#include "base/err.h"
#include "lib/fault_alloc.h"
#include "lib/id_family.h"
#include "unit/block_help.h"

enum { N_MAX = 20000 };

struct records {
    size_t n;
    unsigned n_columns;
    uint64_t id[N_MAX];
    uint64_t code[COLUMNS_MAX][N_MAX];
};

/* Of one block. */
struct decoded {
    uint64_t id[BLOCK_RECORDS_MAX];
    uint64_t array[COLUMNS_MAX][BLOCK_RECORDS_MAX];
    uint64_t *code[COLUMNS_MAX];
};

struct rig {
    struct records records;
    struct decoded decoded;
    struct block_room room;
};

static struct rig *rig;

static void
make_records(enum id_family family, enum look look, uint64_t seed, size_t n,
    unsigned n_columns)
{
    struct records *records = &rig->records;
    struct dist_rng rng;

    dist_rng_init(&rng, seed, 5);
    records->n = n;
    records->n_columns = n_columns;
    id_family_make(family, seed, n, records->id);
    for (unsigned c = 0; c < n_columns; c++) {
        for (size_t i = 0; i < n; i++) {
            records->code[c][i] = make_code(look, &rng);
        }
    }
    for (unsigned c = 0; c < COLUMNS_MAX; c++) {
        rig->decoded.code[c] = rig->decoded.array[c];
    }
}

static void
add_record(struct block_builder *builder, size_t i)
{
    uint64_t code[COLUMNS_MAX];

    for (unsigned c = 0; c < rig->records.n_columns; c++) {
        code[c] = rig->records.code[c][i];
    }
    block_builder_add(builder, rig->records.id[i], code);
}

static struct block_builder *
new_builder(enum block_codec codec)
{
    struct block_options options = {
        codec, BLOCK_LEVEL_DEFAULT, rig->records.n_columns};
    struct block_builder *builder;

    ck_assert_int_eq(block_builder_create(&options, NULL, &builder), 0);
    return builder;
}

static uint8_t *
tight_copy(const uint8_t *bytes, size_t len)
{
    return (uint8_t *)copy_of((const char *)bytes, len);
}

/* Every fifth id, and ids next to them, by lookup. */
static void
check_finds(const struct block *block, size_t from)
{
    const struct records *records = &rig->records;
    uint64_t code[COLUMNS_MAX];
    bool found;

    for (size_t i = 0; i < block->n; i += i < 5 ? 1 : 97) {
        uint64_t id = records->id[from + i];

        ck_assert_int_eq(block_find(block, &rig->room, id, code, &found), 0);
        ck_assert(found);
        for (unsigned c = 0; c < records->n_columns; c++) {
            ck_assert_uint_eq(code[c], records->code[c][from + i]);
        }
        if (i + 1 == block->n || records->id[from + i + 1] - id > 1) {
            ck_assert_int_eq(
                block_find(block, &rig->room, id + 1, code, &found), 0);
            ck_assert(!found || id == UINT64_MAX);
        }
    }
    if (block->first_id > 0) {
        ck_assert_int_eq(
            block_find(block, &rig->room, block->first_id - 1, code, &found),
            0);
        ck_assert(!found);
    }
}

/* Checks that the block holds n records from `from` on. */
static void
check_block(const uint8_t *bytes, size_t len, size_t from, size_t n)
{
    const struct records *records = &rig->records;
    struct decoded *got = &rig->decoded;
    uint8_t *copy = tight_copy(bytes, len);
    struct block block;

    ck_assert_uint_le(len, BLOCK_BYTES_MAX);
    ck_assert_int_eq(block_open(copy, len, SEED, &block), 0);
    ck_assert_uint_eq(block.len, len);
    ck_assert_uint_eq(block.n, n);
    ck_assert_uint_eq(block.n_columns, records->n_columns);
    ck_assert_int_eq(block_decode(&block, &rig->room, got->id, got->code), 0);
    ck_assert_mem_eq(got->id, records->id + from, n * sizeof(uint64_t));
    for (unsigned c = 0; c < records->n_columns; c++) {
        ck_assert_mem_eq(
            got->code[c], records->code[c] + from, n * sizeof(uint64_t));
    }
    check_finds(&block, from);
    free(copy);
}

/* With a twentieth more records it would not have fitted. */
static void
check_full(enum block_codec codec, size_t from, size_t n)
{
    struct block_builder *builder = new_builder(codec);
    uint8_t out[BLOCK_BYTES_MAX];
    size_t more = n + n / 20 + 1;
    size_t len, taken;

    if (n == BLOCK_RECORDS_MAX || from + more > rig->records.n) {
        block_builder_destroy(&builder);
        return;
    }
    /* what it has is all that there is: then it must not take more */
    for (size_t i = from; i < from + more; i++) {
        while (block_builder_is_full(builder)) {
            ck_assert_int_eq(
                block_builder_cut(builder, false, SEED, out, &len, &taken), 0);
            if (len > 0) {
                ck_assert_uint_le(taken, more);
                block_builder_destroy(&builder);
                return;
            }
        }
        add_record(builder, i);
    }
    ck_assert_int_eq(
        block_builder_cut(builder, true, SEED, out, &len, &taken), 0);
    ck_assert_uint_lt(taken, more);
    block_builder_destroy(&builder);
}

/* Builds all blocks and checks each; how many there were. is_steady: the shape
 * of the ids does not hang on a few of them more or less. */
static size_t
build_and_check(enum block_codec codec, bool is_steady)
{
    struct block_builder *builder = new_builder(codec);
    uint8_t out[BLOCK_BYTES_MAX];
    size_t next = 0, from = 0, blocks = 0;

    while (from < rig->records.n) {
        bool is_end = next == rig->records.n;
        size_t len, n;

        if (!is_end && !block_builder_is_full(builder)) {
            add_record(builder, next++);
            continue;
        }
        ck_assert_int_eq(
            block_builder_cut(builder, is_end, SEED, out, &len, &n), 0);
        if (len == 0) {
            ck_assert(!is_end && !block_builder_is_full(builder));
            continue;
        }
        check_block(out, len, from, n);
        for (size_t i = len; i < sizeof out; i++) {
            ck_assert_uint_eq(out[i], 0);
        }
        if (blocks == 0 && is_steady) {
            check_full(codec, from, n);
        }
        from += n;
        blocks++;
    }
    ck_assert_uint_eq(block_builder_count(builder), 0);
    block_builder_destroy(&builder);
    return blocks;
}

START_TEST(test_blocks_come_back)
{
    static const unsigned columns[] = {1, 3, COLUMNS_MAX};
    enum block_codec codec = (enum block_codec)_i;

    for (int family = 0; family < ID_FAMILY_COUNT; family++) {
        for (int look = 0; look < LOOK_COUNT; look++) {
            unsigned n_columns = columns[(family + look) % 3];

            make_records((enum id_family)family, (enum look)look,
                (uint64_t)(1 + family), n_columns > 3 ? 600 : 4000, n_columns);
            build_and_check(codec, family != ID_SPREAD);
        }
    }
}
END_TEST

START_TEST(test_few_records)
{
    for (int codec = 0; codec <= BLOCK_AUTO; codec++) {
        for (size_t n = 1; n <= 5; n++) {
            make_records(ID_RANDOM, LOOK_WIDE, n, n, COLUMNS_MAX);
            ck_assert_uint_eq(
                build_and_check((enum block_codec)codec, true), 1);
        }
        make_records(ID_SEQUENTIAL, LOOK_EXTREME, 1, 3, 1);
        rig->records.id[0] = 0;
        rig->records.id[2] = UINT64_MAX;
        ck_assert_uint_eq(build_and_check((enum block_codec)codec, true), 1);
    }
}
END_TEST

/* As many as a block may have, in a few bytes. */
START_TEST(test_records_are_bounded)
{
    for (int codec = 0; codec <= BLOCK_AUTO; codec++) {
        make_records(ID_SEQUENTIAL, LOOK_ZERO, 1, N_MAX, 1);
        memset(rig->records.code[0], 0, sizeof rig->records.code[0]);
        ck_assert_uint_eq(build_and_check((enum block_codec)codec, true), 2);
    }
}
END_TEST

/* One block of the codec with up to n records; its length. */
static size_t
one_block(enum block_codec codec, size_t n, uint8_t *out, size_t *taken)
{
    struct block_builder *builder = new_builder(codec);
    size_t len;

    for (size_t i = 0; i < n && !block_builder_is_full(builder); i++) {
        add_record(builder, i);
    }
    ck_assert_int_eq(
        block_builder_cut(builder, true, SEED, out, &len, taken), 0);
    block_builder_destroy(&builder);
    return len;
}

/* Hardly anything is left over behind records of a few bytes. */
START_TEST(test_a_block_is_full)
{
    for (int codec = 0; codec <= BLOCK_AUTO; codec++) {
        make_records(ID_SECONDS, LOOK_POSTS, 3, N_MAX, 3);
        struct block_builder *builder = new_builder((enum block_codec)codec);
        uint8_t out[BLOCK_BYTES_MAX];
        size_t next = 0, slack = 0, blocks = 0;

        for (;;) {
            size_t len, n;

            while (!block_builder_is_full(builder) && next < rig->records.n) {
                add_record(builder, next++);
            }
            if (next == rig->records.n) {
                break;
            }
            ck_assert_int_eq(
                block_builder_cut(builder, false, SEED, out, &len, &n), 0);
            if (len > 0) {
                slack += BLOCK_BYTES_MAX - len;
                blocks++;
            }
        }
        ck_assert_uint_gt(blocks, 5);
        /* a record is 2 to 12 bytes */
        ck_assert_uint_lt(slack / blocks, 12);
        block_builder_destroy(&builder);
    }
}
END_TEST

START_TEST(test_auto_is_the_smallest)
{
    for (int family = 0; family < ID_FAMILY_COUNT; family++) {
        for (int look = 0; look < LOOK_COUNT; look++) {
            uint8_t out[BLOCK_BYTES_MAX];
            size_t n, auto_n, auto_len;

            make_records((enum id_family)family, (enum look)look, 3, 60, 3);
            auto_len = one_block(BLOCK_AUTO, 60, out, &auto_n);
            for (int codec = 0; codec < BLOCK_AUTO; codec++) {
                size_t len = one_block((enum block_codec)codec, 60, out, &n);

                ck_assert(auto_n > n || (auto_n == n && auto_len <= len));
            }
        }
    }
}
END_TEST

/* A codec that was far longer is tried again soon: behind posts, for which zstd
 * is no good, numbers come that repeat. */
START_TEST(test_auto_tries_again)
{
    enum { POSTS = 8000, FIRST = 12 }; /* blocks */
    size_t n_zstd = 0, n_blocks = 0, next = 0;

    make_records(ID_SECONDS, LOOK_POSTS, 3, N_MAX, 3);
    for (size_t i = POSTS; i < N_MAX; i++) {
        for (unsigned c = 0; c < 3; c++) {
            rig->records.code[c][i] =
                (c + i % 3 + 1) * UINT64_C(0x9e3779b97f4a7c15);
        }
    }
    struct block_builder *builder = new_builder(BLOCK_AUTO);

    while (block_builder_count(builder) > 0 || next < N_MAX) {
        uint8_t out[BLOCK_BYTES_MAX];
        size_t len, n;

        while (next < N_MAX && !block_builder_is_full(builder)) {
            add_record(builder, next++);
        }
        ck_assert_int_eq(
            block_builder_cut(builder, next == N_MAX, SEED, out, &len, &n), 0);
        n_blocks += len > 0;
        n_zstd += len > 0 && out[1] == BLOCK_ZSTD;
        ck_assert(n_blocks > 1 || n_zstd == 0);
    }
    block_builder_destroy(&builder);
    ck_assert_uint_gt(n_blocks, FIRST);
    ck_assert_uint_gt(n_zstd, 0);
}
END_TEST

/* So it is behind very many blocks for which it was no good, too: at most every
 * 64th is a try. */
START_TEST(test_auto_rests_for_so_long_and_no_longer)
{
    enum { COLUMNS = 16, WIDE = 300, BEHIND = 70 }; /* blocks */
    const struct block_options options = {BLOCK_AUTO, 3, COLUMNS};
    struct block_builder *builder;
    size_t n_blocks = 0, n_behind = 0, n_zstd = 0;

    ck_assert_int_eq(block_builder_create(&options, NULL, &builder), 0);
    for (uint64_t id = 1; n_behind < BEHIND && n_zstd == 0; id++) {
        uint64_t code[COLUMNS];
        uint8_t out[BLOCK_BYTES_MAX];
        size_t len, n;

        for (uint64_t c = 0; c < COLUMNS; c++) {
            code[c] = n_blocks < WIDE
                ? checksum64(&(uint64_t[]){id, c}, 2 * sizeof id, SEED)
                : UINT64_C(0x9e3779b97f4a7c15);
        }
        block_builder_add(builder, id, code);
        while (block_builder_is_full(builder)) {
            ck_assert_int_eq(
                block_builder_cut(builder, false, SEED, out, &len, &n), 0);
            n_zstd += len > 0 && out[1] == BLOCK_ZSTD;
            n_behind += len > 0 && n_blocks >= WIDE;
            n_blocks += len > 0;
            ck_assert(n_blocks > WIDE || n_zstd == 0);
        }
    }
    block_builder_destroy(&builder);
    ck_assert_uint_eq(n_zstd, 1);
}
END_TEST

START_TEST(test_every_flipped_bit_and_every_cut_is_damage)
{
    enum block_codec codec = (enum block_codec)_i;
    uint8_t out[BLOCK_BYTES_MAX];
    struct block block;
    size_t n;

    make_records(ID_MILLIS, LOOK_POSTS, 1, 1000, 3);
    size_t len = one_block(codec, 400, out, &n);
    for (size_t bit = 0; bit < 8 * len; bit += SWEEP_STEP) {
        out[bit / 8] ^= (uint8_t)(1 << bit % 8);
        int err = block_open(out, sizeof out, SEED, &block);
        ck_assert(err == ERR_CORRUPT);
        out[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    for (size_t cut = 0; cut < len; cut++) {
        uint8_t *copy = tight_copy(out, cut);
        ck_assert_int_eq(block_open(copy, cut, SEED, &block), ERR_CORRUPT);
        free(copy);
    }
    ck_assert_int_eq(block_open(out, len, SEED + 1, &block), ERR_CORRUPT);
    ck_assert_int_eq(block_open(out, len, SEED, &block), 0);
}
END_TEST

START_TEST(test_a_newer_version_is_told_apart)
{
    uint8_t out[BLOCK_BYTES_MAX];
    struct block block;
    size_t n;

    make_records(ID_SECONDS, LOOK_POSTS, 1, 100, 2);
    size_t len = one_block(BLOCK_AUTO, 100, out, &n);
    out[0] = BLOCK_VERSION + 1;
    ck_assert_int_eq(block_open(out, len, SEED, &block), ERR_CORRUPT);
    sign(out, len);
    ck_assert_int_eq(block_open(out, len, SEED, &block), ERR_NEWER_FORMAT);
    out[0] = 0;
    sign(out, len);
    ck_assert_int_eq(block_open(out, len, SEED, &block), ERR_CORRUPT);
}
END_TEST

/* Whatever stands in a block with a right checksum: it is refused, or what is
 * decoded keeps its promises and is what is found. */
static void
read_whatever(const uint8_t *bytes, size_t len)
{
    struct decoded *got = &rig->decoded;
    uint8_t *copy = tight_copy(bytes, len);
    uint64_t code[COLUMNS_MAX];
    struct block block;
    bool found;
    int err = block_open(copy, len, SEED, &block);

    if (err == 0) {
        ck_assert(block.n >= 1 && block.n <= BLOCK_RECORDS_MAX);
        ck_assert_uint_le(block.n_columns, COLUMNS_MAX);
        err = block_decode(&block, &rig->room, got->id, got->code);
        ck_assert(err == 0 || err == ERR_CORRUPT);
        bool good = err == 0;
        for (size_t i = 0; i < block.n; i += 1 + block.n / 5) {
            uint64_t id = good ? got->id[i] : rig->records.id[i % 100];

            ck_assert(!good || i == 0 || id > got->id[i - 1]);
            err = block_find(&block, &rig->room, id, code, &found);
            ck_assert(err == 0 || (err == ERR_CORRUPT && !good));
            ck_assert(found || !good);
            for (unsigned c = 0; good && c < block.n_columns; c++) {
                ck_assert_uint_eq(code[c], got->code[c][i]);
            }
        }
    } else {
        ck_assert(err == ERR_CORRUPT || err == ERR_NEWER_FORMAT);
    }
    free(copy);
}

START_TEST(test_a_right_checksum_does_not_make_it_sound)
{
    enum block_codec codec = (enum block_codec)_i;
    uint8_t out[BLOCK_BYTES_MAX];
    size_t n;

    for (int family = 0; family < ID_FAMILY_COUNT; family++) {
        make_records((enum id_family)family, LOOK_POSTS, 1, 100, 2);
        size_t len = one_block(codec, 100, out, &n);
        read_worse(out, len, read_whatever);
    }
}
END_TEST

/* One pass with the n-th allocation failing; false where none did. */
static bool
pass_with_fault(enum block_codec codec, size_t fail)
{
    struct fault_alloc fault;
    struct block_builder *builder;
    struct block_room room;
    struct block block;
    uint8_t out[BLOCK_BYTES_MAX];
    uint64_t code[COLUMNS_MAX];
    struct block_options options = {codec, BLOCK_LEVEL_DEFAULT, 2};
    size_t len = 0, n = 0;
    bool found;

    fault_alloc_init(&fault);
    fault.fail_from = fault.fail_to = fail;
    room = (struct block_room){.alloc = &fault.alloc};
    if (block_builder_create(&options, &fault.alloc, &builder) != 0) {
        ck_assert_ptr_null(builder);
        goto done;
    }
    for (size_t i = 0; i < 100; i++) {
        add_record(builder, i);
    }
    for (int tries = 0; tries < 2 && len == 0; tries++) {
        int err = block_builder_cut(builder, true, SEED, out, &len, &n);
        ck_assert(err == 0 || (err == ERR_NO_MEMORY && len == 0));
        ck_assert_uint_eq(block_builder_count(builder), 100 - n);
    }
    check_block(out, len, 0, n);
    ck_assert_int_eq(block_open(out, len, SEED, &block), 0);
    for (size_t i = 0; i < 2; i++) {
        int err = block_find(&block, &room, rig->records.id[50], code, &found);
        ck_assert(err == 0 ? found : err == ERR_NO_MEMORY && !found);
        err = block_decode(&block, &room, rig->decoded.id, rig->decoded.code);
        ck_assert(err == 0 || (err == ERR_NO_MEMORY && i == 0));
    }
    ck_assert_uint_eq(rig->decoded.id[50], rig->records.id[50]);
    block_builder_destroy(&builder);
done:
    block_room_fini(&room);
    ck_assert_uint_eq(fault.live_bytes, 0);
    return fault.failures > 0;
}

START_TEST(test_memory_that_runs_out)
{
    for (int codec = 0; codec <= BLOCK_AUTO; codec++) {
        size_t fail = 1;

        make_records(ID_SECONDS, LOOK_POSTS, 1, 100, 2);
        while (pass_with_fault((enum block_codec)codec, fail)) {
            fail++;
        }
        ck_assert_uint_gt(fail, 5);
    }
}
END_TEST

/* What a column that is nearly always 0 takes beside a column of bits. */
START_TEST(test_rare_columns_are_cheap)
{
    uint8_t out[BLOCK_BYTES_MAX];
    size_t one, three;

    make_records(ID_SEQUENTIAL, LOOK_ZERO, 1, 4000, 3);
    one_block(BLOCK_PACKED, 400, out, &three);
    size_t len = one_block(BLOCK_PACKED, 400, out, &three);
    ck_assert_uint_eq(three, 400);
    rig->records.n_columns = 1;
    size_t len_of_one = one_block(BLOCK_PACKED, 400, out, &one);
    ck_assert_uint_eq(one, 400);
    ck_assert_uint_lt(8 * (len - len_of_one), 2 * 400 / 2);
}
END_TEST

int
main(void)
{
    TCase *tcase = tcase_create("block");

    rig = calloc(1, sizeof *rig);
    if (rig == NULL) {
        return EXIT_FAILURE;
    }
    tcase_add_loop_test(tcase, test_blocks_come_back, 0, BLOCK_AUTO + 1);
    tcase_add_test(tcase, test_few_records);
    tcase_add_test(tcase, test_records_are_bounded);
    tcase_add_test(tcase, test_a_block_is_full);
    tcase_add_test(tcase, test_auto_is_the_smallest);
    tcase_add_test(tcase, test_auto_tries_again);
    tcase_add_test(tcase, test_auto_rests_for_so_long_and_no_longer);
    tcase_add_loop_test(tcase, test_every_flipped_bit_and_every_cut_is_damage,
        0, BLOCK_AUTO + 1);
    tcase_add_test(tcase, test_a_newer_version_is_told_apart);
    tcase_add_loop_test(tcase, test_a_right_checksum_does_not_make_it_sound, 0,
        BLOCK_AUTO + 1);
    tcase_add_test(tcase, test_memory_that_runs_out);
    tcase_add_test(tcase, test_rare_columns_are_cheap);
    int status = run_case("block", tcase);
    block_room_fini(&rig->room);
    free(rig);
    return status;
}
