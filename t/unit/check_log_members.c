/* SPDX-License-Identifier: BSD-3-Clause */
/* The log's format where members come and go. t/data/log-v1-members is a log
 * file as the first version that has changes of members (wal/entry_members.h)
 * wrote it; what is in it must come out of every tallyd to come. It was made,
 * once, by
 *
 *   t/unit/check_log_members --make DIRECTORY
 *
 * which also makes seeds of t/fuzz/corpus/fuzz_log. It is never made again. */
#include "wal/replay.h"

#include "lib/log_make.h"
#include "lib/still_disk.h"
#include "unit/check_help.h"
#include "wal/entry.h"

#include <stdio.h>

enum {
    EPOCH = 0x5eed,
    NUMBER = 4,
    FIRST_SEQ = 2000,
    FILE_BYTES_MAX = 1 << 16,
    ZEROES = 64
};

#define POST UINT64_C(4852789411840)

/* What comes out, by batches. */
static const struct item {
    uint64_t seq;
    struct entry_cells cells;
} items[] = {
    {2000, {.id = POST, .n = 1, .serial = {2}, .value = {7}}},
    /* two likes, and a cell near the second post */
    {2000, {.id = POST, .n = 1, .serial = {2}, .value = {127}}},
    {2000, {.id = 0x123456789a, .n = 1, .serial = {5}, .value = {1}}},
    {2000, {.id = POST - 3624, .n = 1, .serial = {2}, .value = {128}}},
    {2000, {.id = 7, .n = 1, .serial = {5}, .value = {1}}},
    {2000, {.id = POST - 3623, .n = 1, .serial = {9}, .value = {3}}},
    /* one that goes, and gave its record a number long ago */
    {2001, {.id = 0, .n = 2, .serial = {2, 3}, .value = {0, 300}}},
    {2001, {.id = 255, .n = 1, .serial = {700}, .value = {0}}},
    /* as large as can be */
    {2002,
        {.id = UINT64_MAX,
            .n = 16,
            .serial = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 300,
                UINT32_MAX},
            .value = {0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048,
                1 << 20, 1 << 30, UINT64_MAX}}},
    {2002, {.id = UINT64_MAX, .n = 1, .serial = {UINT32_MAX}, .value = {255}}},
};

/* Writes items first.. as n changes of members. */
static size_t
put_changes(uint8_t *out, size_t first, unsigned n)
{
    const struct item *item = &items[first];
    struct entry_members members = {.n_changes = n,
        .n = item->cells.n,
        .pair_serial = item[1].cells.serial[0],
        .pair_value = item[1].cells.value[0]};
    uint64_t pair_ids = 0;
    for (unsigned i = 0; i < n; i++) {
        pair_ids |= item[2 * i + 1].cells.id;
    }
    members.pair_bytes = entry_members_bytes(pair_ids);
    size_t len = entry_put_members(out, &members, item->cells.serial);
    for (unsigned i = 0; i < n; i++) {
        const struct entry_cells *record = &item[2 * i].cells;
        len += entry_put_member(out + len, &members, record->id, record->value,
            item[2 * i + 1].cells.id,
            i == 0 ? NULL : &item[2 * i - 2].cells.id);
    }
    return len;
}

/* The file that is t/data/log-v1-members, with zeroes at its end. */
static void
make_log(struct log_make *log)
{
    static const struct frame_file file = {.epoch = EPOCH,
        .number = NUMBER,
        .first_seq = FIRST_SEQ,
        .before_end = 5000};
    uint8_t payload[8 * ENTRY_CELLS_BYTES_MAX];
    log_make_init(log, &file);
    size_t len = log_make_cells(payload, &items[0].cells, NULL);
    len += put_changes(payload + len, 1, 2);
    len += log_make_cells(payload + len, &items[5].cells, &items[3].cells.id);
    log_make_add(log, payload, len, FIRST_SEQ - 1);
    len = put_changes(payload, 6, 1);
    log_make_add(log, payload, len, FIRST_SEQ - 1);
    len = put_changes(payload, 8, 1);
    log_make_add(log, payload, len, FIRST_SEQ);
    log_make_zeroes(log, ZEROES);
}

static int
see_batch(void *context, uint64_t seq, const uint8_t *payload, size_t len)
{
    size_t *n_seen = context;
    struct entry_reader reader = {.at = payload, .end = payload + len};
    struct entry entry;
    while (entry_has_next(&reader)) {
        ck_assert_uint_lt(*n_seen, COUNT_OF(items));
        const struct item *item = &items[(*n_seen)++];
        ck_assert(entry_next(&reader, &entry));
        ck_assert_int_eq(entry.kind, ENTRY_CELLS);
        ck_assert_uint_eq(seq, item->seq);
        ck_assert_uint_eq(entry.cells.id, item->cells.id);
        ck_assert_uint_eq(entry.cells.n, item->cells.n);
        for (unsigned i = 0; i < item->cells.n; i++) {
            ck_assert_uint_eq(entry.cells.serial[i], item->cells.serial[i]);
            ck_assert_uint_eq(entry.cells.value[i], item->cells.value[i]);
        }
    }
    return 0;
}

/* Reads a file and asserts that all items are in it. */
static void
check_log(const uint8_t *bytes, size_t len)
{
    struct still_disk still;
    size_t n_seen = 0;
    struct replay_end end;
    still_disk_init(&still);
    still_disk_add(&still, "log-00000000000000000004.wal", bytes, len);
    const struct replay replay = {.disk = &still.disk,
        .epoch = EPOCH,
        .number = NUMBER,
        .batch_fn = see_batch,
        .context = &n_seen};
    ck_assert_int_eq(replay_run(&replay, &end), 0);
    ck_assert_uint_eq(n_seen, COUNT_OF(items));
    ck_assert_uint_eq(end.batches, 3);
    ck_assert_uint_eq(end.end, len - ZEROES);
    ck_assert_uint_eq(end.torn_bytes, 0);
}

static size_t
read_golden(uint8_t *bytes)
{
    static const char path[] = DATA_DIR "/log-v1-members";
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "cannot open %s", path);
    size_t len = fread(bytes, 1, FILE_BYTES_MAX, file);
    ck_assert_int_eq(fclose(file), 0);
    return len;
}

START_TEST(test_golden)
{
    static uint8_t bytes[FILE_BYTES_MAX];
    size_t len = read_golden(bytes);
    check_log(bytes, len);
}
END_TEST

/* The same bytes are written today; but for a new version of the format this
 * need not be so for ever. */
START_TEST(test_today)
{
    static uint8_t bytes[FILE_BYTES_MAX];
    struct log_make log;
    size_t len = read_golden(bytes);
    make_log(&log);
    check_log((const uint8_t *)log.bytes.data, log.bytes.len);
    ck_assert_uint_eq(log.bytes.len, len);
    ck_assert_mem_eq(log.bytes.data, bytes, len);
    log_make_fini(&log);
}
END_TEST

/* Writes a byte, if it is not negative, and what is in bytes. */
static bool
write_file(const char *directory, const char *name, int flags,
    const struct buf *bytes)
{
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "wb");
    if (file == NULL) {
        return false;
    }
    bool ok = flags < 0 || fputc(flags, file) == flags;
    ok = ok && fwrite(bytes->data, 1, bytes->len, file) == bytes->len;
    return fclose(file) == 0 && ok;
}

/* See t/fuzz/fuzz_log.c about the flags. */
static int
make_files(const char *directory)
{
    struct log_make log;
    struct buf payload = {0};
    make_log(&log);
    for (unsigned i = 0; i < log.n; i++) {
        buf_add(&payload, log.bytes.data + log.at[i] + FRAME_BATCH_BYTES,
            log.batch[i].payload_bytes);
    }
    bool ok = write_file(directory, "log-v1-members", -1, &log.bytes) &&
        write_file(directory, "changes-of-members", 1, &log.bytes) &&
        write_file(directory, "changes-of-members-payload", 2, &payload);
    buf_fini(&payload);
    log_make_fini(&log);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

int
main(int argc, char **argv)
{
    const TTest *const tests[] = {test_golden, test_today};
    if (argc == 3 && strcmp(argv[1], "--make") == 0) {
        return make_files(argv[2]);
    }
    return run_tests("log__members", tests, COUNT_OF(tests));
}
