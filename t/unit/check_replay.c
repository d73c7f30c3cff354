/* SPDX-License-Identifier: BSD-3-Clause */
/* wal/replay: how files hang together, what lies beside them, how they are
 * read, and what the operator is told. Damage to what is in them is in
 * check_replay_damage.c. */
#include "base/bytes.h"
#include "base/checksum.h"
#include "base/err.h"
#include "unit/replay_help.h"
#include "wal/note.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

enum { TEXT_BYTES = 4096 };

START_TEST(test_whole)
{
    for (uint64_t seed = 1; seed < 20; seed++) {
        struct chain chain;
        struct replay_end end;

        make_chain(&chain, seed);
        ck_assert_int_eq(run(&chain, NULL, &end), 0);
        ck_assert_uint_eq(chain.n_seen, chain.n_expected);
        ck_assert_uint_eq(end.number, FIRST + FILES - 1);
        ck_assert_uint_eq(end.end, chain.log[2].at[chain.log[2].n]);
        ck_assert_uint_eq(end.torn_bytes, 0);
        ck_assert_uint_ge(chain.n_told, 1);
        ck_assert_uint_eq(chain.told,
            chain.log[1].file.before_end + chain.log[2].file.before_end +
                chain.log[2].bytes.len);
        free_chain(&chain);
    }
}
END_TEST

/* Nobody listens. */
START_TEST(test_nobody)
{
    struct chain chain;
    struct replay_end end;

    make_chain(&chain, 3);
    ck_assert_int_eq(replay_run(&(struct replay){.disk = &chain.still.disk,
                                    .epoch = EPOCH,
                                    .number = FIRST},
                         &end),
        0);
    ck_assert_uint_eq(end.batches, chain.n_expected);
    free_chain(&chain);
}
END_TEST

/* Makes the header of a file anew, sound, after change. */
static int
run_with_header(struct chain *chain, unsigned i, const struct frame_file *file)
{
    struct replay_end end;
    uint8_t before[FRAME_FILE_BYTES];
    uint8_t *bytes = (uint8_t *)chain->log[i].bytes.data;
    int err;

    memcpy(before, bytes, sizeof before);
    frame_file_put(file, bytes);
    err = run(chain, NULL, &end);
    memcpy(bytes, before, sizeof before);
    return err;
}

#define HEADER(i, statement)                                                  \
    ({                                                                        \
        struct frame_file f = chain.log[i].file;                              \
        statement;                                                            \
        run_with_header(&chain, i, &f);                                       \
    })

START_TEST(test_wrong_headers)
{
    struct chain chain;
    struct replay_end end;
    struct log_make *log;

    make_chain(&chain, 15);
    log = chain.log;
    for (unsigned i = 0; i < FILES; i++) {
        ck_assert_int_eq(HEADER(i, f.epoch++), ERR_CORRUPT);
        ck_assert_int_eq(
            HEADER(i, (f.number++, f.before_end = 64)), ERR_CORRUPT);
        ck_assert_int_eq(HEADER(i, f.bytes++), ERR_CORRUPT);
        ck_assert_int_eq(HEADER(i, f.bytes = UINT64_MAX), ERR_CORRUPT);
        ck_assert_int_eq(HEADER(i, f.bytes--), 0);
        ck_assert_int_eq(HEADER(i, f.first_seq++), ERR_CORRUPT);
        ck_assert_int_eq(HEADER(i, f.first_seq--), ERR_CORRUPT);
        if (i > 0) {
            ck_assert_int_eq(HEADER(i, f.before_end = 0), ERR_CORRUPT);
            ck_assert_int_eq(HEADER(i, f.before_end--), ERR_CORRUPT);
            ck_assert_int_eq(HEADER(i, f.before_end++), ERR_CORRUPT);
            ck_assert_int_eq(HEADER(i, f.before_end = 64), ERR_CORRUPT);
        }
    }
    /* at a batch of the file before, but not at the right one */
    ck_assert_int_eq(
        HEADER(1, f.before_end = log[0].at[log[0].n]), ERR_CORRUPT);
    ck_assert_int_eq(
        HEADER(2, f.before_end = log[1].at[log[1].n - 1]), ERR_CORRUPT);
    ck_assert_int_eq(HEADER(0, (void)f), 0);
    ck_assert_int_eq(run(&chain, NULL, &end), 0);
    free_chain(&chain);
}
END_TEST

/* A file under another's name, sound in itself. */
START_TEST(test_renamed)
{
    const struct frame_file file = {.epoch = EPOCH,
        .number = FIRST + 1,
        .first_seq = 1,
        .before_end = FRAME_FILE_BYTES};
    struct chain chain;
    struct replay_end end;

    memset(&chain, 0, sizeof chain);
    still_disk_init(&chain.still);
    log_make_init(&chain.log[0], &file);
    log_make_add(&chain.log[0], "x", 1, 0);
    name_file(&chain, 0);
    names_make(chain.name[0], NAMES_LOG, FIRST);
    ck_assert_int_eq(run(&chain, NULL, &end), ERR_CORRUPT);
    ck_assert_uint_eq(chain.n_seen, 0);
    free_chain(&chain);
}
END_TEST

START_TEST(test_newer)
{
    struct chain chain;
    struct replay_end end;
    uint8_t *head;

    make_chain(&chain, 16);
    head = (uint8_t *)chain.log[1].bytes.data;
    bytes_put_u32(head + 8, FRAME_VERSION + 1);
    ck_assert_int_eq(run(&chain, NULL, &end), ERR_CORRUPT); /* a flipped bit */
    bytes_put_u64(head + 56, checksum64(head, 56, 0));
    ck_assert_int_eq(run(&chain, NULL, &end), ERR_NEWER_FORMAT);
    ck_assert_uint_eq(chain.n_seen, 0); /* found before anything is read */
    free_chain(&chain);
}
END_TEST

/* Sound batches, one number missing or twice: no crash does that. */
START_TEST(test_wrong_seq)
{
    for (int step = -1; step <= 1; step++) {
        struct chain chain;
        struct replay_end end;
        struct log_make *log;
        struct frame_batch batch;

        make_chain(&chain, 17);
        log = last_of(&chain);
        batch = log->batch[log->n - 1];
        batch.seq += (uint64_t)step;
        batch.synced_seq = 0;
        frame_batch_put(&log->file, &batch,
            (uint8_t *)log->bytes.data + log->at[log->n - 1]);
        ck_assert_int_eq(run(&chain, NULL, &end), step == 0 ? 0 : ERR_CORRUPT);
        free_chain(&chain);
    }
}
END_TEST

START_TEST(test_missing)
{
    struct chain chain;
    struct replay_end end;

    make_chain(&chain, 18);
    for (unsigned i = 0; i < FILES; i++) {
        chain.still.file[i].name = NULL;
        ck_assert_int_eq(
            run(&chain, NULL, &end), i == FILES - 1 ? 0 : ERR_CORRUPT);
        chain.still.file[i].name = chain.name[i];
    }
    /* the last one gone: what it said about the one before is gone, too */
    ck_assert_int_eq(run(&chain, NULL, &end), 0);
    free_chain(&chain);
}
END_TEST

START_TEST(test_other_names)
{
    static const char *const others[] = {"log-00000000000000000008.wal.new",
        "checkpoint-00000000000000000009.ckpt", "MANIFEST", "log-8.wal",
        "log-00000000000000000004.wal"};
    struct chain chain;
    struct replay_end end;

    make_chain(&chain, 19);
    for (unsigned i = 0; i < COUNT_OF(others); i++) {
        still_disk_add(&chain.still, others[i], (const uint8_t *)"rubbish", 7);
    }
    ck_assert_int_eq(run(&chain, NULL, &end), 0);
    ck_assert_uint_eq(chain.n_seen, chain.n_expected);
    /* older files only: the first one is missing, this is no new directory */
    for (unsigned i = 0; i < FILES; i++) {
        chain.still.file[i].name = NULL;
    }
    ck_assert_int_eq(run(&chain, NULL, &end), ERR_CORRUPT);
    chain.still.file[FILES + COUNT_OF(others) - 1].name = NULL;
    ck_assert_int_eq(run(&chain, NULL, &end), 0);
    ck_assert_uint_eq(end.number, 0);
    ck_assert_uint_eq(end.next_seq, 1);
    ck_assert_uint_eq(end.batches, 0);
    free_chain(&chain);
}
END_TEST

/* Each call of the disk fails once. */
START_TEST(test_disk_fails)
{
    struct chain chain;
    struct replay_end end;
    uint64_t n_calls;

    make_chain(&chain, 21);
    last_of(&chain)->bytes.data[last_of(&chain)->bytes.len - 1] = 1;
    ck_assert_int_eq(run(&chain, NULL, &end), 0);
    n_calls = chain.still.n_calls;
    ck_assert_uint_gt(n_calls, 10);
    for (uint64_t n = 1; n <= n_calls; n++) {
        chain.still.n_calls = 0;
        chain.still.fail_at = n;
        ck_assert_int_eq(run(&chain, NULL, &end), ERR_DISK);
    }
    chain.still.fail_at = 0;
    ck_assert_int_eq(run(&chain, NULL, &end), 0);
    free_chain(&chain);
}
END_TEST

/* Batches of all sizes in one file of some 20 MB: they lie across the pieces
 * in which it is read. Then one is lost, with and without a witness that lies
 * megabytes behind it. */
START_TEST(test_large)
{
    static const size_t sizes[] = {1, FRAME_PAYLOAD_MAX, 7, 600000,
        FRAME_PAYLOAD_MAX - 1, 400000, 31, FRAME_PAYLOAD_MAX - 31};
    struct frame_file file = {.epoch = EPOCH, .number = FIRST, .first_seq = 1};
    uint8_t *payload = malloc(FRAME_PAYLOAD_MAX);
    struct chain chain;
    struct replay_end end;
    uint64_t state = 1;
    enum { N = 32, LOST = 20, WITNESS = 30 };

    ck_assert_ptr_nonnull(payload);
    for (size_t i = 0; i < FRAME_PAYLOAD_MAX; i++) {
        payload[i] = (uint8_t) "TLYB\0x"[random_below(&state, 6)];
    }
    for (int round = 0; round < 3; round++) {
        memset(&chain, 0, sizeof chain);
        still_disk_init(&chain.still);
        log_make_init(&chain.log[0], &file);
        for (unsigned i = 0; i < N; i++) {
            log_make_add(&chain.log[0], payload, sizes[i % COUNT_OF(sizes)],
                i == WITNESS ? LOST + (round == 2) : 0);
            expect(&chain, &chain.log[0], i);
        }
        log_make_zeroes(&chain.log[0], 3 << 20);
        name_file(&chain, 0);
        chain.log[0].bytes.data[chain.log[0].at[LOST] + 5] ^= round > 0;
        ck_assert_int_eq(
            run(&chain, NULL, &end), round == 2 ? ERR_CORRUPT : 0);
        ck_assert_uint_eq(chain.n_seen, round == 0 ? N : LOST);
        ck_assert_uint_gt(chain.n_told, 5);
        if (round == 1) {
            ck_assert_uint_eq(
                end.torn_bytes, chain.log[0].at[N] - chain.log[0].at[LOST]);
        }
        free_chain(&chain);
    }
    free(payload);
}
END_TEST

/* What the operator is told. */
static void
lines_of(struct chain *chain, char text[TEXT_BYTES])
{
    struct logger logger = {0};
    struct replay_end end;
    int ends[2];
    int saved = dup(STDERR_FILENO);
    ssize_t n;

    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_ge(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
    ck_assert_int_ge(dup2(ends[1], STDERR_FILENO), 0);
    (void)run(chain, &logger, &end);
    ck_assert_int_ge(dup2(saved, STDERR_FILENO), 0);
    n = read(ends[0], text, TEXT_BYTES - 1);
    text[n < 0 ? 0 : n] = '\0';
    close(ends[0]);
    close(ends[1]);
    close(saved);
}

static void
check_line(
    struct chain *chain, const char *level, const char *name, uint64_t at)
{
    char text[TEXT_BYTES], start[100];

    lines_of(chain, text);
    (void)snprintf(start, sizeof start, " level=%s msg=\"%s ", level, name);
    ck_assert_msg(strstr(text, start) != NULL, "%s%s", start, text);
    (void)snprintf(start, sizeof start, " at offset %" PRIu64 ": ", at);
    ck_assert_msg(strstr(text, start) != NULL, "%s%s", start, text);
    ck_assert_ptr_eq(strchr(text, '\n'), text + strlen(text) - 1);
}

START_TEST(test_lines)
{
    struct chain chain;
    struct log_make *log;
    char text[TEXT_BYTES];

    make_chain(&chain, 22);
    log = chain.log;
    lines_of(&chain, text);
    ck_assert_str_eq(text, "");
    log[0].bytes.data[log[0].at[1] + 9] ^= 1;
    check_line(&chain, "error", chain.name[0], log[0].at[1]);
    log[0].bytes.data[log[0].at[1] + 9] ^= 1;
    log[2].bytes.data[log[2].at[log[2].n] + 40] = 1;
    check_line(&chain, "warning", chain.name[2], log[2].at[log[2].n]);
    log[1].bytes.data[3] ^= 1;
    check_line(&chain, "error", chain.name[1], 0);
    log[1].bytes.data[3] ^= 1;
    chain.still.file[1].name = NULL;
    lines_of(&chain, text);
    ck_assert_ptr_nonnull(strstr(text, chain.name[1]));
    ck_assert_ptr_nonnull(strstr(text, " is missing"));
    free_chain(&chain);
}
END_TEST

/* Files of several histories follow each other; one that the manifest has
 * under another history is refused, and nothing is given out. */
START_TEST(test_histories)
{
    static const uint64_t epoch[FILES] = {EPOCH, 11, 22};
    struct chain chain;
    struct replay_end end;
    char text[TEXT_BYTES];

    for (uint64_t seed = 1; seed < 20; seed++) {
        make_chain_of(&chain, seed, epoch);
        ck_assert_int_eq(run(&chain, NULL, &end), ERR_CORRUPT);
        ck_assert_int_eq(histories_add(&chain.histories, FIRST + 1, 11), 0);
        ck_assert_int_eq(run(&chain, NULL, &end), ERR_CORRUPT);
        ck_assert_int_eq(histories_add(&chain.histories, FIRST + 2, 22), 0);
        ck_assert_int_eq(run(&chain, NULL, &end), 0);
        ck_assert_uint_eq(chain.n_seen, chain.n_expected);
        ck_assert_uint_eq(end.epoch, 22);
        for (unsigned i = 0; i < FILES; i++) {
            struct histories_entry *entry;

            chain.histories.n = 0;
            for (unsigned k = 0; k < FILES; k++) {
                ck_assert_int_eq(
                    histories_add(&chain.histories, FIRST + k, epoch[k]), 0);
            }
            ck_assert_int_eq(run(&chain, NULL, &end), 0);
            entry = &chain.histories.entry[i];
            entry->history++;
            lines_of(&chain, text);
            ck_assert_ptr_nonnull(strstr(text, chain.name[i]));
            ck_assert_ptr_nonnull(strstr(text, " is of another history: "));
            ck_assert_ptr_nonnull(strstr(text, "--salvage\""));
            ck_assert_int_eq(run(&chain, NULL, &end), ERR_CORRUPT);
            ck_assert_uint_eq(chain.n_seen, 0);
        }
        free_chain(&chain);
    }
}
END_TEST

/* A note is sealed as a batch of the file that it is in. */
START_TEST(test_note_of_a_history)
{
    static const uint64_t epoch[FILES] = {33, 44, 44};
    struct chain chain;
    struct replay_end end;
    struct log_make *log;

    make_chain_of(&chain, 5, epoch);
    log = &chain.log[0];
    ck_assert_int_eq(histories_add(&chain.histories, FIRST, 33), 0);
    ck_assert_int_eq(histories_add(&chain.histories, FIRST + 1, 44), 0);
    ck_assert_int_eq(run(&chain, NULL, &end), 0);
    note__put(&chain.log[1].file, 33,
        (uint8_t *)log->bytes.data + chain.log[1].file.before_end);
    ck_assert_int_eq(run(&chain, NULL, &end), 0);
    /* alone it says that others are missing */
    chain.still.file[1].name = chain.still.file[2].name = NULL;
    ck_assert_int_eq(run(&chain, NULL, &end), ERR_CORRUPT);
    note__put(&chain.log[1].file, 44,
        (uint8_t *)log->bytes.data + chain.log[1].file.before_end);
    ck_assert_int_eq(run(&chain, NULL, &end), 0);
    free_chain(&chain);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_whole, test_nobody, test_wrong_headers,
        test_renamed, test_newer, test_wrong_seq, test_missing,
        test_other_names, test_disk_fails, test_large, test_lines,
        test_histories, test_note_of_a_history};

    return run_tests("replay", tests, COUNT_OF(tests));
}
