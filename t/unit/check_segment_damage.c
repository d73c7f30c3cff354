/* SPDX-License-Identifier: BSD-3-Clause */
/* cold/segment on damaged files: each flipped bit and each length of a file is
 * told, or changes no answer; so are blocks in a wrong place or of another
 * file. What has right checksums and wrong content does no harm. Files lie in
 * heap blocks of exactly their size, so that ASan sees a read past them. */
#include "unit/segment_help.h"

#include "base/bytes.h"
#include "base/checksum.h"
#include "lib/fake_disk.h"
#include "lib/still_disk.h"

#include <unistd.h>

enum { FILE_BYTES_MAX = 1 << 17 };

struct rig {
    struct records records;
    uint8_t file[FILE_BYTES_MAX], other[FILE_BYTES_MAX];
    size_t len, other_len;
    struct segment_head head;
    struct still_disk still;
    struct logger *logger; /* NULL: nobody is told */
};

static struct rig *rig;

/* Writes the records to a disk in memory and takes the file from there. */
static void
make_file(uint64_t number, uint8_t *out, size_t *len)
{
    struct fake_disk *fake = fake_disk_create(1);
    struct disk *disk = fake_disk_as_disk(fake);
    struct segment_write_config config = {
        .disk = disk, .codec = BLOCK_PACKED, .level = BLOCK_LEVEL_DEFAULT};
    char name[SEGMENT_NAME_BYTES];
    int fd;

    ck_assert_int_eq(
        write_records(&config, number, &rig->records, &rig->head), 0);
    segment_name(name, number, false);
    ck_assert_int_eq(disk->calls->open(disk, name, DISK_READ, &fd), 0);
    ck_assert_int_eq(
        disk->calls->read(disk, fd, out, FILE_BYTES_MAX, 0, len), 0);
    disk->calls->close(disk, fd);
    ck_assert_uint_lt(*len, FILE_BYTES_MAX);
    ck_assert_uint_eq(*len, segment_file_bytes(&rig->head));
    fake_disk_destroy(&fake);
}

static void
setup(void)
{
    rig = calloc(1, sizeof *rig);
    ck_assert_ptr_nonnull(rig);
    make_records(&rig->records, ID_SECONDS, LOOK_WIDE, 340, 3);
    make_file(SEGMENT_NUMBER + 1, rig->other, &rig->other_len);
    make_file(SEGMENT_NUMBER, rig->file, &rig->len);
    ck_assert_uint_ge(rig->head.n_blocks, 3);
}

static void
teardown(void)
{
    free(rig);
}

/* Whatever goes well is right. */
static int
check_gets(const struct segment *segment)
{
    struct records *records = &rig->records;
    struct segment_room room = {0};
    uint64_t code[1][COLUMNS_MAX];
    bool good = true;
    int err = 0;

    for (size_t i = 0; i < records->n; i += 47) {
        bool found;
        int got =
            segment_get(segment, &room, &records->id[i], 1, code, &found);

        good = good &&
            (got == ERR_CORRUPT || got == ERR_NEWER_FORMAT ||
                (got == 0 && found &&
                    memcmp(code[0], records->code[i],
                        records->n_columns * sizeof **code) == 0));
        err = got != 0 ? got : err;
    }
    block_room_fini(&room.room);
    ck_assert(good);
    return err;
}

/* What a check of the whole file said when it was read last. */
static int checked;

/* Opens bytes as the file and reads all of it; the error, 0 only where all
 * answers are those of the file that was written. */
static int
read_as(const uint8_t *bytes, size_t len, uint64_t number, uint64_t epoch)
{
    uint8_t *copy = (uint8_t *)copy_of((const char *)bytes, len);
    struct segment_config config = {.disk = &rig->still.disk};
    char name[SEGMENT_NAME_BYTES];
    struct segment *segment;

    segment_name(name, number, false);
    still_disk_init(&rig->still);
    still_disk_add(&rig->still, name, copy, len);
    int err = segment_open(&config, epoch, number, &segment);
    checked = err;
    if (err == 0) {
        int scanned = scan_records(segment, &rig->records, NULL);
        int got = check_gets(segment);

        checked = segment_check(segment, NULL);
        ck_assert(scanned == 0 || checked != 0);

        check_head(segment_head(segment), &rig->records);
        /* a scan meets whatever a lookup meets */
        ck_assert(got == 0 || scanned != 0);
        err = scanned;
    }
    segment_close(&segment);
    ck_assert_uint_eq(rig->still.n_open, 0);
    free(copy);
    return err;
}

static int
read_file(const uint8_t *bytes, size_t len)
{
    return read_as(bytes, len, SEGMENT_NUMBER, SEGMENT_EPOCH);
}

/* Whether byte `at` of the file is left over behind the end of its block. */
static bool
is_slack(size_t at)
{
    size_t block = (at - SEGMENT_HEAD_BYTES) / BLOCK_BYTES_MAX;
    const uint8_t *bytes;

    if (at < SEGMENT_HEAD_BYTES || block >= rig->head.n_blocks) {
        return false;
    }
    bytes = rig->file + segment_block_at((uint32_t)block);
    return at - segment_block_at((uint32_t)block) >= bytes_get_u16(bytes + 2);
}

/* Eight loops have an eighth of the bits each. */
START_TEST(test_every_flipped_bit_is_found)
{
    ck_assert_int_eq(read_file(rig->file, rig->len), 0);
    for (size_t at = 0; at < rig->len; at += sweep_stride()) {
        rig->file[at] ^= (uint8_t)(1 << _i);
        ck_assert_int_eq(
            read_file(rig->file, rig->len), is_slack(at) ? 0 : ERR_CORRUPT);
        ck_assert_int_ne(checked, 0);
        rig->file[at] ^= (uint8_t)(1 << _i);
    }
}
END_TEST

START_TEST(test_every_other_length_is_found)
{
    for (size_t len = 0; len < rig->len; len++) {
        ck_assert_int_eq(read_file(rig->file, len), ERR_CORRUPT);
    }
    for (size_t more = 1; more <= BLOCK_BYTES_MAX; more += 455) {
        ck_assert_int_eq(read_file(rig->file, rig->len + more), ERR_CORRUPT);
    }
    ck_assert_int_eq(read_file(rig->file, rig->len), 0);
}
END_TEST

/* The same bytes under another number or in another directory, and pages of
 * another file with the same records. */
START_TEST(test_foreign_bytes_never_pass)
{
    ck_assert_int_eq(
        read_as(rig->file, rig->len, SEGMENT_NUMBER, SEGMENT_EPOCH + 1),
        ERR_CORRUPT);
    ck_assert_int_eq(
        read_as(rig->file, rig->len, SEGMENT_NUMBER + 1, SEGMENT_EPOCH),
        ERR_CORRUPT);
    ck_assert_int_eq(
        read_as(rig->other, rig->other_len, SEGMENT_NUMBER + 1, SEGMENT_EPOCH),
        0);
    ck_assert_uint_eq(rig->len, rig->other_len);
    for (size_t at = 0; at < rig->len; at += BLOCK_BYTES_MAX) {
        uint8_t kept[BLOCK_BYTES_MAX];
        size_t n = rig->len - at < sizeof kept ? rig->len - at : sizeof kept;

        memcpy(kept, rig->file + at, n);
        memcpy(rig->file + at, rig->other + at, n);
        ck_assert_int_eq(read_file(rig->file, rig->len), ERR_CORRUPT);
        memset(rig->file + at, 0, n);
        ck_assert_int_eq(read_file(rig->file, rig->len), ERR_CORRUPT);
        memcpy(rig->file + at, kept, n);
    }
    uint8_t *first = rig->file + segment_block_at(0);
    memcpy(first, rig->file + segment_block_at(1), BLOCK_BYTES_MAX);
    ck_assert_int_eq(read_file(rig->file, rig->len), ERR_CORRUPT);
}
END_TEST

START_TEST(test_a_missing_file_is_damage)
{
    struct segment_config config = {.disk = &rig->still.disk};
    struct segment *segment;

    still_disk_init(&rig->still);
    ck_assert_int_eq(
        segment_open(&config, SEGMENT_EPOCH, SEGMENT_NUMBER, &segment),
        ERR_CORRUPT);
    ck_assert_ptr_null(segment);
}
END_TEST

/* The seed of what is no block: doc/format-segment.md. */
static uint64_t
seed_of(uint64_t place)
{
    uint8_t bytes[24];

    bytes_put_u64(bytes, SEGMENT_EPOCH);
    bytes_put_u64(bytes + 8, SEGMENT_NUMBER);
    bytes_put_u64(bytes + 16, place);
    return checksum64(bytes, sizeof bytes, 0);
}

static void
sign_head(uint8_t *file)
{
    bytes_put_u64(file + 4088, checksum64(file, 4088, seed_of(UINT64_MAX)));
}

static void
sign_index(uint8_t *file)
{
    uint8_t *index = file + segment_block_at(rig->head.n_blocks);
    size_t len = rig->head.index_bytes - SEGMENT_SUM_BYTES;

    bytes_put_u64(
        index + len, checksum64(index, len, seed_of(UINT64_MAX - 1)));
}

/* Opens the file, where it lies, and checks all of it. */
static int
check_file(void)
{
    struct segment_config config = {
        .disk = &rig->still.disk, .logger = rig->logger};
    char name[SEGMENT_NAME_BYTES];
    struct segment *segment;

    segment_name(name, SEGMENT_NUMBER, false);
    still_disk_init(&rig->still);
    still_disk_add(&rig->still, name, rig->file, rig->len);
    int err = segment_open(&config, SEGMENT_EPOCH, SEGMENT_NUMBER, &segment);
    if (err == 0) {
        err = segment_check(segment, NULL);
    }
    segment_close(&segment);
    return err;
}

START_TEST(test_a_newer_version_is_told_apart)
{
    static const size_t places[] = {8, 12}; /* version, features */

    for (size_t i = 0; i < COUNT_OF(places); i++) {
        uint8_t old = rig->file[places[i]];

        rig->file[places[i]] ^= 2;
        ck_assert_int_eq(read_file(rig->file, rig->len), ERR_CORRUPT);
        sign_head(rig->file);
        ck_assert_int_eq(read_file(rig->file, rig->len), ERR_NEWER_FORMAT);
        rig->file[places[i]] = old;
    }
    rig->file[8] = 0;
    sign_head(rig->file);
    ck_assert_int_eq(read_file(rig->file, rig->len), ERR_CORRUPT);
    rig->file[8] = 1;
    sign_head(rig->file);
    ck_assert_int_eq(read_file(rig->file, rig->len), 0);
    uint8_t *block = rig->file + segment_block_at(1);
    size_t sum = bytes_get_u16(block + 2) - BLOCK_SUM_BYTES;
    block[0] = BLOCK_VERSION + 1;
    bytes_put_u64(block + sum,
        checksum64(block, sum, segment_seed_block(&rig->head, 1)));
    ck_assert_int_eq(read_file(rig->file, rig->len), ERR_NEWER_FORMAT);
}
END_TEST

/* A head with a flipped bit and a right checksum: refused, unless the bit is in
 * what the file itself does not depend on. */
START_TEST(test_a_wrong_head_that_is_signed)
{
    for (size_t bit = 0; bit < 8 * 4088; bit += sweep_stride()) {
        size_t at = bit / 8;
        bool is_free = (at >= 32 && at < 40) || (at >= 72 && at < 77);

        for (unsigned c = 0; c < rig->records.n_columns; c++) {
            size_t column = 80 + 16 * c;

            is_free = is_free || (at >= column && at < column + 5) ||
                (at >= column + 8 && at < column + 16);
        }
        rig->file[at] ^= (uint8_t)(1 << bit % 8);
        sign_head(rig->file);
        int err = check_file();
        ck_assert(err == ERR_CORRUPT || (is_free && err == 0) ||
            (err == ERR_NEWER_FORMAT && at >= 8 && at < 16));
        rig->file[at] ^= (uint8_t)(1 << bit % 8);
    }
}
END_TEST

START_TEST(test_a_wrong_index_that_is_signed)
{
    size_t at = segment_block_at(rig->head.n_blocks);
    size_t end = at + rig->head.index_bytes - SEGMENT_SUM_BYTES;

    ck_assert_uint_gt(end, at);
    for (size_t bit = 8 * at; bit < 8 * end; bit += sweep_stride()) {
        rig->file[bit / 8] ^= (uint8_t)(1 << bit % 8);
        sign_index(rig->file);
        ck_assert_int_eq(check_file(), ERR_CORRUPT);
        rig->file[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
}
END_TEST

/* A block with all checksums right whose last id is beyond the next block's
 * first: a lookup would look for it in the other one. */
START_TEST(test_blocks_that_overlap)
{
    struct records *records = &rig->records;
    uint8_t *block = rig->file + segment_block_at(0);
    size_t n = bytes_get_u16(block + 4) + 1, taken, len;
    struct block_options options = {
        BLOCK_PACKED, BLOCK_LEVEL_DEFAULT, records->n_columns};
    struct block_builder *builder;

    ck_assert_uint_lt(records->id[n] + 1, records->id[n + 1]);
    ck_assert_int_eq(block_builder_create(&options, NULL, &builder), 0);
    /* one less than were in it, so that it has room for what is longer */
    for (size_t i = 0; i < n - 1; i++) {
        uint64_t id = i < n - 2 ? records->id[i] : records->id[n] + 1;

        block_builder_add(builder, id, records->code[i]);
    }
    ck_assert_int_eq(
        block_builder_cut(builder, true, segment_seed_block(&rig->head, 0),
            block, &len, &taken),
        0);
    ck_assert_uint_eq(taken, n - 1);
    block_builder_destroy(&builder);
    bytes_put_u64(rig->file + 40, records->n - 1);
    sign_head(rig->file);
    ck_assert_int_eq(check_file(), ERR_CORRUPT);
}
END_TEST

/* What the logger is told when the file is opened and checked, which is err. */
static void
check_told(int err, const char *words)
{
    static struct logger logger;
    char text[1000] = "";
    int end[2];

    ck_assert_int_eq(pipe(end), 0);
    int kept = dup(STDERR_FILENO);
    dup2(end[1], STDERR_FILENO);
    rig->logger = &logger;
    int got = check_file();
    rig->logger = NULL;
    dup2(kept, STDERR_FILENO);
    close(kept);
    close(end[1]);
    ck_assert_int_ge(read(end[0], text, sizeof text - 1), 0);
    close(end[0]);
    ck_assert_int_eq(got, err);
    ck_assert_msg(strstr(text, words) != NULL, "%s", text);
}

START_TEST(test_file_and_offset_are_told)
{
    uint8_t *block = rig->file + segment_block_at(1);

    block[100] ^= 1;
    check_told(ERR_CORRUPT,
        "level=error msg=\"segment-00000000000000000005.seg, offset 8192: "
        "the block is damaged\"\n");
    block[100] ^= 1;
    rig->file[rig->len - 9] ^= 1;
    check_told(ERR_CORRUPT, "offset 16384: the index is damaged\"\n");
    rig->file[rig->len - 9] ^= 1;
    rig->file[5] ^= 1;
    check_told(ERR_CORRUPT, "offset 0: the head is damaged\"\n");
    rig->file[5] ^= 1;
    rig->len--;
    check_told(ERR_CORRUPT, "the length that its head says\"\n");
    rig->len = 1000;
    check_told(ERR_CORRUPT, "offset 1000: the file ends too soon\"\n");
    memcpy(rig->file, rig->other, sizeof rig->file);
    rig->len = rig->other_len;
    check_told(ERR_CORRUPT,
        "offset 0: the file is of another history, data directory or number: "
        "a copy that went on for itself has written it, or this directory "
        "before a backup was put over it\"\n");
}
END_TEST

int
main(void)
{
    TCase *tcase = tcase_create("segment_damage");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, test_every_flipped_bit_is_found, 0, 8);
    tcase_add_test(tcase, test_every_other_length_is_found);
    tcase_add_test(tcase, test_foreign_bytes_never_pass);
    tcase_add_test(tcase, test_a_missing_file_is_damage);
    tcase_add_test(tcase, test_a_newer_version_is_told_apart);
    tcase_add_test(tcase, test_a_wrong_head_that_is_signed);
    tcase_add_test(tcase, test_a_wrong_index_that_is_signed);
    tcase_add_test(tcase, test_blocks_that_overlap);
    tcase_add_test(tcase, test_file_and_offset_are_told);
    return run_case("segment_damage", tcase);
}
