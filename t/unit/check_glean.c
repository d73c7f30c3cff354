/* SPDX-License-Identifier: BSD-3-Clause */
/* offline/glean: of a chain of log files, with void batches, each bit turned
 * over, each byte another, each length, a header lost, a file missing. What
 * comes out are batches that were written and count, in order; what does not,
 * is told. */
#include "offline/glean.h"

#include "base/err.h"
#include "unit/replay_help.h"

enum { OTHER = 0x55 }; /* turns several bits of a byte */

struct gleaned {
    struct chain *chain;
    bool is_seen[EXPECTED_MAX];
    size_t n;
    uint64_t last_seq;
    uint64_t n_lost, n_turned, n_headers, n_missing, n_foreign;
    bool may_be_more;
    bool has_void; /* void batches may come, whose successor is lost */
};

static int
take_batch(void *context, const struct glean_batch *batch)
{
    struct gleaned *gleaned = context;
    const struct chain *chain = gleaned->chain;
    uint64_t at = batch->seq - chain->log[0].file.first_seq;
    ck_assert_uint_lt(at, chain->n_expected);
    ck_assert_uint_gt(batch->seq, gleaned->last_seq);
    if (!gleaned->has_void || batch->number != FIRST) {
        ck_assert_uint_eq(batch->len, chain->expected[at].len);
        ck_assert_mem_eq(
            batch->payload, chain->expected[at].payload, batch->len);
    }
    gleaned->last_seq = batch->seq;
    gleaned->is_seen[at] = true;
    gleaned->n++;
    return 0;
}

static void
take_piece(void *context, const struct glean_piece *piece)
{
    struct gleaned *gleaned = context;
    struct buf line = {0};
    gleaned->n_lost += piece->n_batches;
    gleaned->n_turned += piece->kind == GLEAN_TURNED;
    gleaned->n_headers += piece->kind == GLEAN_HEADER;
    gleaned->n_missing += piece->kind == GLEAN_MISSING;
    gleaned->n_foreign += piece->kind == GLEAN_FOREIGN;
    gleaned->may_be_more |= piece->may_be_more;
    glean_say(piece, &line);
    buf_add(&line, "", 1);
    ck_assert_int_eq(strncmp(line.data, "log-", 4), 0);
    ck_assert_int_eq(piece->kind == GLEAN_FOREIGN,
        strstr(line.data, "is of another data directory") != NULL);
    buf_fini(&line);
}

static void
glean_chain(struct chain *chain, bool turns, struct gleaned *out)
{
    struct flip_budget budget = {FLIP_BUDGET};
    const struct still_file *second = &chain->still.file[1];
    *out = (struct gleaned){.chain = chain,
        .has_void = second->len < chain->log[1].bytes.len ||
            second->name != chain->name[1] ||
            histories_epoch(&chain->histories, FIRST + 1, EPOCH) !=
                chain->log[1].file.epoch};
    const struct glean glean = {.disk = &chain->still.disk,
        .epoch = EPOCH,
        .histories = &chain->histories,
        .number = FIRST,
        .budget = turns ? &budget : NULL,
        .batch_fn = take_batch,
        .piece_fn = take_piece,
        .context = out};
    int error;
    ck_assert_int_eq(glean_run(&glean, &error), 0);
    ck_assert_uint_eq(chain->still.n_open, 0);
}

static void
expect_all(const struct gleaned *gleaned)
{
    ck_assert_uint_eq(gleaned->n, gleaned->chain->n_expected);
    ck_assert_uint_eq(gleaned->n_lost, 0);
}

/* What is not told of is there, but for a torn end. */
static void
expect_told(const struct gleaned *gleaned, bool may_be_torn)
{
    uint64_t n = gleaned->n + gleaned->n_lost;
    ck_assert_uint_le(n, gleaned->chain->n_expected);
    ck_assert(n == gleaned->chain->n_expected || gleaned->may_be_more ||
        may_be_torn);
}

START_TEST(test_sound)
{
    for (uint64_t seed = 1; seed < 50; seed++) {
        struct chain chain;
        struct gleaned gleaned;
        make_chain(&chain, seed);
        glean_chain(&chain, seed % 2 == 0, &gleaned);
        expect_all(&gleaned);
        ck_assert(!gleaned.may_be_more);
        ck_assert_uint_eq(gleaned.n_turned + gleaned.n_headers, 0);
        free_chain(&chain);
    }
}
END_TEST

START_TEST(test_bits)
{
    struct chain chain;
    struct gleaned gleaned;
    make_chain(&chain, 7);
    for (unsigned i = 0; i < FILES; i++) {
        struct buf *bytes = &chain.log[i].bytes;
        for (uint64_t bit = 0; bit < 8 * bytes->len; bit += SWEEP_STEP) {
            bytes->data[bit / 8] ^= (char)(1 << bit % 8);
            glean_chain(&chain, true, &gleaned);
            expect_all(&gleaned);
            bytes->data[bit / 8] ^= (char)(1 << bit % 8);
        }
    }
    free_chain(&chain);
}
END_TEST

/* Of each byte: the one batch that has it is lost, and no other, if it is not
 * in the last file. */
START_TEST(test_bytes)
{
    struct chain chain;
    struct gleaned gleaned;
    make_chain(&chain, 8);
    for (unsigned i = 0; i < FILES; i++) {
        struct buf *bytes = &chain.log[i].bytes;
        bool is_last = i == FILES - 1;
        for (uint64_t at = 0; at < bytes->len; at += SWEEP_STEP) {
            bool is_head = at < FRAME_FILE_BYTES;
            bytes->data[at] ^= OTHER;
            glean_chain(&chain, false, &gleaned);
            expect_told(&gleaned, is_last);
            ck_assert_uint_ge(gleaned.n,
                is_last && !is_head ? n_before_last(&chain)
                                    : chain.n_expected - !is_head);
            ck_assert_uint_eq(gleaned.n_headers, is_head);
            bytes->data[at] ^= OTHER;
        }
    }
    free_chain(&chain);
}
END_TEST

/* Of each length of each file: what is in front of the cut, and all of the
 * other files. */
START_TEST(test_lengths)
{
    struct chain chain;
    struct gleaned gleaned;
    make_chain(&chain, 9);
    for (unsigned i = 0; i < FILES; i++) {
        struct still_file *file = &chain.still.file[i];
        const struct log_make *log = &chain.log[i];
        uint64_t end =
            i + 1 < FILES ? chain.log[i + 1].file.before_end : log->at[log->n];
        uint64_t len = file->len;
        for (file->len = 0; file->len < len; file->len += SWEEP_STEP) {
            size_t n = chain.n_expected;
            for (unsigned k = 0; k < log->n && log->at[k + 1] <= end; k++) {
                n -= log->at[k + 1] > file->len;
            }
            glean_chain(&chain, true, &gleaned);
            ck_assert_uint_ge(gleaned.n, n);
            ck_assert_uint_le(gleaned.n, n + (i == 1 ? VOID : 0));
            expect_told(&gleaned, false);
        }
    }
    free_chain(&chain);
}
END_TEST

START_TEST(test_missing)
{
    for (unsigned i = 0; i < FILES; i++) {
        struct chain chain;
        struct gleaned gleaned;
        make_chain(&chain, 10);
        const char *name = chain.still.file[i].name;
        chain.still.file[i].name = i == 0 ? NULL : "other";
        glean_chain(&chain, false, &gleaned);
        expect_told(&gleaned, i == FILES - 1);
        ck_assert_uint_eq(gleaned.n_missing, i < FILES - 1);
        ck_assert_uint_gt(gleaned.n, 0);
        chain.still.file[i].name = name;
        free_chain(&chain);
    }
}
END_TEST

/* A file of another directory, or of another number in this one, instead of
 * each: nothing of it counts. */
START_TEST(test_foreign)
{
    for (unsigned i = 0; i < FILES; i++) {
        struct chain chain;
        struct gleaned gleaned;
        make_chain(&chain, 13);
        struct frame_file file = chain.log[i].file;
        struct still_file own = chain.still.file[i];
        struct log_make other;
        file.epoch += _i == 0;
        file.number += _i == 1;
        log_make_init(&other, &file);
        for (unsigned k = 0; k < chain.log[i].n; k++) {
            log_make_add(&other, "other", 5, 0);
        }
        chain.still.file[i].bytes = (const uint8_t *)other.bytes.data;
        chain.still.file[i].len = other.bytes.len;
        glean_chain(&chain, true, &gleaned);
        chain.still.file[i] = own;
        expect_told(&gleaned, i == FILES - 1);
        ck_assert_uint_eq(gleaned.n_foreign, 1);
        ck_assert(gleaned.may_be_more);
        ck_assert_uint_ge(gleaned.n, chain.n_expected - chain.log[i].n);
        log_make_fini(&other);
        free_chain(&chain);
    }
}
END_TEST

/* A file that is known to have had a successor, by the mark at its end, of this
 * version or an older one: what is damaged before the mark was synced, so it is
 * no torn end. After other marks, nobody knows. */
START_TEST(test_followed)
{
    static const enum entry_mark marks[] = {
        ENTRY_MARK_FOLLOWED_OLD, ENTRY_MARK_FOLLOWED, ENTRY_MARK_IDLE};
    for (size_t i = 0; i < COUNT_OF(marks); i++) {
        const struct frame_file file = {
            .epoch = EPOCH, .number = FIRST, .first_seq = 100};
        bool is_followed = marks[i] != ENTRY_MARK_IDLE;
        uint8_t mark[ENTRY_MARK_BYTES];
        struct gleaned gleaned;
        struct chain chain;
        memset(&chain, 0, sizeof chain);
        still_disk_init(&chain.still);
        struct log_make *log = &chain.log[0];
        log_make_init(log, &file);
        for (unsigned k = 0; k < 3; k++) {
            log_make_add(log, "batch", 5, 0);
            expect(&chain, log, k);
        }
        entry_put_mark(mark, marks[i]);
        log_make_add(log, mark, sizeof mark, 0);
        name_file(&chain, 0);
        log->bytes.data[log->at[1] + FRAME_BATCH_BYTES] ^= OTHER;
        glean_chain(&chain, false, &gleaned);
        ck_assert_uint_eq(gleaned.n, is_followed ? 2 : 1);
        ck_assert_uint_eq(gleaned.n_lost, is_followed);
        ck_assert_uint_eq(gleaned.n_missing, is_followed);
        ck_assert(gleaned.may_be_more == is_followed);
        free_chain(&chain);
    }
}
END_TEST

/* Behind a file that follows nobody is the log of a salvage that did not come
 * to its end. */
START_TEST(test_unfinished)
{
    struct chain chain;
    struct gleaned gleaned;
    struct log_make log;
    char name[NAMES_BYTES];
    const struct frame_file file = {
        .epoch = EPOCH, .number = FIRST + FILES, .first_seq = 100};
    make_chain(&chain, 11);
    log_make_init(&log, &file);
    log_make_add(&log, "other", 5, 0);
    names_make(name, NAMES_LOG, file.number);
    still_disk_add(
        &chain.still, name, (const uint8_t *)log.bytes.data, log.bytes.len);
    glean_chain(&chain, true, &gleaned);
    expect_all(&gleaned);
    log_make_fini(&log);
    free_chain(&chain);
}
END_TEST

/* Files are read that are there, however far apart their numbers are; what is
 * missing between them is one line. */
START_TEST(test_far)
{
    static const uint64_t numbers[] = {1000000, UINT64_MAX - 1, UINT64_MAX};
    struct chain chain;
    struct gleaned gleaned;
    char name[sizeof numbers / sizeof numbers[0]][NAMES_BYTES];
    make_chain(&chain, 13);
    for (unsigned i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        names_make(name[i], NAMES_LOG, numbers[i]);
        still_disk_add(&chain.still, name[i], (const uint8_t *)"", 0);
        glean_chain(&chain, i % 2 == 0, &gleaned);
        expect_all(&gleaned);
        ck_assert_uint_eq(gleaned.n_missing, i == 0 ? 1 : 2);
        ck_assert(gleaned.may_be_more);
    }
    free_chain(&chain);
}
END_TEST

/* Files of several histories, their headers lost or not; and one that is of
 * none of these. */
START_TEST(test_histories)
{
    static const uint64_t epoch[FILES] = {33, 44, 55};
    for (unsigned i = 0; i < FILES; i++) {
        struct chain chain;
        struct gleaned gleaned;
        make_chain_of(&chain, 21 + i, epoch);
        for (unsigned k = 0; k < FILES; k++) {
            ck_assert_int_eq(
                histories_add(&chain.histories, FIRST + k, epoch[k]), 0);
        }
        glean_chain(&chain, false, &gleaned);
        expect_all(&gleaned);
        ck_assert(!gleaned.may_be_more);
        memset(chain.log[i].bytes.data, OTHER, FRAME_FILE_BYTES);
        glean_chain(&chain, false, &gleaned);
        expect_all(&gleaned);
        ck_assert_uint_eq(gleaned.n_headers, 1);
        frame_file_put(&chain.log[i].file, (uint8_t *)chain.log[i].bytes.data);
        chain.histories.entry[i].history++;
        glean_chain(&chain, true, &gleaned);
        ck_assert_uint_eq(gleaned.n_foreign, 1);
        ck_assert(gleaned.may_be_more);
        ck_assert_uint_ge(gleaned.n, chain.n_expected - chain.log[i].n);
        free_chain(&chain);
    }
}
END_TEST

/* A disk that does not read is not taken for damage. */
START_TEST(test_disk_fails)
{
    struct chain chain;
    struct gleaned gleaned;
    make_chain(&chain, 12);
    glean_chain(&chain, false, &gleaned);
    uint64_t n_calls = chain.still.n_calls;
    unsigned n_failed = 0;
    for (uint64_t at = 1; at <= n_calls; at++) {
        struct gleaned again = {.chain = &chain};
        const struct glean glean = {.disk = &chain.still.disk,
            .epoch = EPOCH,
            .number = FIRST,
            .batch_fn = take_batch,
            .piece_fn = take_piece,
            .context = &again};
        int error;
        chain.still.n_calls = 0;
        chain.still.fail_at = at;
        int err = glean_run(&glean, &error);
        ck_assert(err == ERR_DISK ? error != 0 : err == 0);
        ck_assert_uint_eq(chain.still.n_open, 0);
        n_failed += err != 0;
    }
    ck_assert_uint_gt(n_failed, FILES);
    free_chain(&chain);
}
END_TEST

int
main(void)
{
    TCase *tcase = tcase_create("glean");
    tcase_add_test(tcase, test_sound);
    tcase_add_test(tcase, test_bits);
    tcase_add_test(tcase, test_far);
    tcase_add_test(tcase, test_histories);
    tcase_add_test(tcase, test_bytes);
    tcase_add_test(tcase, test_lengths);
    tcase_add_test(tcase, test_missing);
    tcase_add_loop_test(tcase, test_foreign, 0, 2);
    tcase_add_test(tcase, test_followed);
    tcase_add_test(tcase, test_unfinished);
    tcase_add_test(tcase, test_disk_fails);
    return run_case("glean", tcase);
}
