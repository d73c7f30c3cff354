/* SPDX-License-Identifier: BSD-3-Clause */
/* wal/replay and damage: every bit is flipped, every length tried, batches are
 * lost in every way; a model that knows only which batches are whole says what
 * must come out. */
#include "base/err.h"
#include "unit/check_help.h"
#include "unit/replay_help.h"
#include "wal/note.h"

/* What must come of a last file of which only some batches are whole. */
static void
check_last(struct chain *chain, const bool *whole, const char *what)
{
    const struct log_make *log = last_of(chain);
    struct replay_end end;
    unsigned gap = 0;
    bool is_damage = false;
    int err = run(chain, NULL, &end);

    while (gap < log->n && whole[gap]) {
        gap++;
    }
    for (unsigned i = gap + 1; i < log->n; i++) {
        is_damage = is_damage ||
            (whole[i] && log->batch[i].synced_seq >= log->batch[gap].seq);
    }
    ck_assert_msg(err == (is_damage ? ERR_CORRUPT : 0), "%s: %d", what, err);
    ck_assert_uint_eq(chain->n_seen, n_before_last(chain) + gap);
    if (err == 0) {
        ck_assert_uint_eq(end.number, FIRST + FILES - 1);
        ck_assert_uint_eq(end.end, log->at[gap]);
    }
}

static void
all_whole(bool whole[LOG_MAKE_BATCHES_MAX])
{
    for (unsigned i = 0; i < LOG_MAKE_BATCHES_MAX; i++) {
        whole[i] = true;
    }
}

static void
flip(struct chain *chain, unsigned file, uint64_t bit)
{
    chain->log[file].bytes.data[bit / 8] ^= (char)(1 << bit % 8);
}

/* Files that have a successor: up to its end each bit counts, and behind it
 * none. */
START_TEST(test_flip_before_last)
{
    struct chain chain;
    struct replay_end end;

    make_chain(&chain, 7);
    for (unsigned file = 0; file < FILES - 1; file++) {
        uint64_t stop = chain.log[file + 1].file.before_end;

        for (uint64_t bit = 0; bit < 8 * chain.log[file].bytes.len;
             bit += SWEEP_STEP) {
            flip(&chain, file, bit);
            ck_assert_int_eq(
                run(&chain, NULL, &end), bit / 8 < stop ? ERR_CORRUPT : 0);
            flip(&chain, file, bit);
        }
    }
    free_chain(&chain);
}
END_TEST

/* True where a bit of that byte of a note counts: it is in the sector of the
 * checksum. */
static bool
is_judged(uint64_t before_end, unsigned byte)
{
    uint64_t sector = (before_end + byte) / 512;

    return (before_end + 24) / 512 == sector &&
        (before_end + 31) / 512 == sector;
}

/* Each bit of the note that a file has a successor counts, where there is one;
 * the batches that are void in a file whose sync failed are none. */
START_TEST(test_flip_note)
{
    enum { CHAINS = SWEEP_PART(20), NOTES = CHAINS * (FILES - 1) };
    unsigned n_judged = 0;

    for (uint64_t seed = 40; seed < 40 + CHAINS; seed++) {
        struct chain chain;
        struct replay_end end;

        make_chain(&chain, seed);
        for (unsigned file = 0; file < FILES - 1; file++) {
            const struct frame_file *next = &chain.log[file + 1].file;
            uint64_t at = next->before_end;
            uint8_t note[NOTE_BYTES];

            note__put(next, next->epoch, note);
            memcpy(chain.log[file].bytes.data + at, note, NOTE_BYTES);
            ck_assert_int_eq(run(&chain, NULL, &end), 0);
            ck_assert_uint_eq(chain.n_seen, chain.n_expected);
            for (unsigned bit = 0; bit < 8 * NOTE_BYTES; bit++) {
                bool judged = is_judged(at, bit / 8);

                flip(&chain, file, 8 * at + bit);
                ck_assert_int_eq(
                    run(&chain, NULL, &end), judged ? ERR_CORRUPT : 0);
                flip(&chain, file, 8 * at + bit);
                n_judged += judged;
            }
        }
        free_chain(&chain);
    }
    ck_assert_uint_gt(n_judged, NOTES * 3 / 4 * 8 * NOTE_BYTES);
}
END_TEST

/* Each of the sectors that a note lies in may have what was there before, and
 * the disk may have failed in the midst of it. */
START_TEST(test_torn_note)
{
    struct frame_file next = {
        .epoch = EPOCH, .number = FIRST, .first_seq = 300};
    const struct frame_file file = {.epoch = EPOCH, .number = FIRST - 1};
    const struct frame_batch void_batch = {
        .seq = 301, .synced_seq = 299, .payload_bytes = ENTRY_MARK_BYTES};
    uint64_t state = 17;

    for (uint64_t at = 1024; at < 1536; at++) {
        uint8_t note[NOTE_BYTES], torn[NOTE_BYTES], before[NOTE_BYTES] = {0};
        size_t n = at > 1536 - NOTE_BYTES ? 1536 - at : NOTE_BYTES;

        next.before_end = at;
        note__put(&next, next.epoch, note);
        ck_assert(!note_is_damaged(&next, next.epoch, note));
        for (unsigned what = 0; what < 2; what++) {
            ck_assert(!note_is_damaged(&next, next.epoch, before));
            memcpy(torn, before, NOTE_BYTES);
            memcpy(torn, note, n);
            ck_assert(!note_is_damaged(&next, next.epoch, torn));
            memcpy(torn, note, NOTE_BYTES);
            memcpy(torn, before, n);
            ck_assert(!note_is_damaged(&next, next.epoch, torn));
            memset(torn, 0, NOTE_BYTES);
            memcpy(torn, note, random_below(&state, NOTE_BYTES));
            ck_assert(!note_is_damaged(&next, next.epoch, torn));
            memset(before + FRAME_BATCH_BYTES, 1, ENTRY_MARK_BYTES);
            frame_batch_put(&file, &void_batch, before);
        }
    }
}
END_TEST

/* A void batch stands there instead: like the note in all that can be. */
START_TEST(test_void_for_note)
{
    struct frame_file next = {
        .epoch = EPOCH, .number = FIRST, .first_seq = 300, .before_end = 777};
    const struct frame_file file = {.epoch = EPOCH, .number = FIRST - 1};
    const struct frame_batch batch = {.seq = next.first_seq,
        .synced_seq = next.first_seq - 1,
        .payload_bytes = ENTRY_MARK_BYTES};
    uint64_t state = 18;

    for (unsigned i = 0; i < 100000; i++) {
        uint8_t bytes[NOTE_BYTES];
        uint64_t payload;

        note__put(&next, next.epoch, bytes);
        memcpy(&payload, bytes + FRAME_BATCH_BYTES, sizeof payload);
        payload ^= UINT64_C(1) << random_below(&state, 64) |
            UINT64_C(1) << random_below(&state, 64);
        memcpy(bytes + FRAME_BATCH_BYTES, &payload, sizeof payload);
        frame_batch_put(&file, &batch, bytes);
        ck_assert(!note_is_damaged(&next, next.epoch, bytes));
    }
}
END_TEST

START_TEST(test_flip_last)
{
    for (uint64_t seed = 30; seed < 33; seed++) {
        struct chain chain;
        struct replay_end end;
        const struct log_make *log;
        unsigned batch = 0;

        make_chain(&chain, seed);
        log = last_of(&chain);
        for (uint64_t bit = 0; bit < 8 * log->bytes.len; bit += SWEEP_STEP) {
            bool whole[LOG_MAKE_BATCHES_MAX];

            flip(&chain, FILES - 1, bit);
            if (bit / 8 < FRAME_FILE_BYTES) {
                ck_assert_int_eq(run(&chain, NULL, &end), ERR_CORRUPT);
            } else {
                while (batch < log->n && log->at[batch + 1] <= bit / 8) {
                    batch++;
                }
                all_whole(whole);
                whole[batch] = false; /* behind the last: none */
                check_last(&chain, whole, "flip");
            }
            flip(&chain, FILES - 1, bit);
        }
        free_chain(&chain);
    }
}
END_TEST

/* Whatever is in it, a file that is shorter than it was made has been cut off,
 * which is told before anything of the log is given out. */
START_TEST(test_truncate)
{
    struct chain chain;
    struct replay_end end;

    make_chain(&chain, 9);
    for (unsigned file = 0; file < FILES; file++) {
        uint64_t *len = &chain.still.file[file].len;
        uint64_t made = chain.log[file].bytes.len;

        for (*len = 0; *len <= made; *len += SWEEP_STEP) {
            ck_assert_int_eq(
                run(&chain, NULL, &end), *len < made ? ERR_CORRUPT : 0);
        }
        *len = made;
    }
    free_chain(&chain);
}
END_TEST

/* A file that is longer than it was made is read as far as it was. */
START_TEST(test_longer)
{
    struct chain chain;
    struct replay_end end;
    struct log_make *log;

    make_chain(&chain, 9);
    log = last_of(&chain);
    log->file.bytes = log->at[log->n - 1];
    frame_file_put(&log->file, (uint8_t *)log->bytes.data);
    ck_assert_int_eq(run(&chain, NULL, &end), 0);
    ck_assert_uint_eq(chain.n_seen, chain.n_expected - 1);
    free_chain(&chain);
}
END_TEST

/* Any bytes of the last file never reached the disk, as whole batches. */
START_TEST(test_holes)
{
    for (uint64_t seed = 50; seed < 50 + SWEEP_PART(300); seed++) {
        uint64_t state = seed;
        struct chain chain;
        struct log_make *log;
        bool whole[LOG_MAKE_BATCHES_MAX];

        make_chain(&chain, seed);
        log = last_of(&chain);
        for (unsigned i = 0; i < log->n; i++) {
            whole[i] = random_below(&state, 5) != 0;
            if (!whole[i]) {
                memset(log->bytes.data + log->at[i], 0,
                    log->at[i + 1] - log->at[i]);
            }
        }
        check_last(&chain, whole, "holes");
        free_chain(&chain);
    }
}
END_TEST

/* Any piece of the last file never reached the disk. */
START_TEST(test_zeroed)
{
    for (uint64_t seed = 400; seed < 400 + SWEEP_PART(300); seed++) {
        uint64_t state = seed;
        struct chain chain;
        struct log_make *log;
        bool whole[LOG_MAKE_BATCHES_MAX];
        uint64_t from, to;

        make_chain(&chain, seed);
        log = last_of(&chain);
        from = FRAME_FILE_BYTES +
            random_below(&state, log->bytes.len - FRAME_FILE_BYTES);
        to = from + random_below(&state, log->bytes.len - from + 1);
        for (unsigned i = 0; i < log->n; i++) {
            uint64_t first = log->at[i] > from ? log->at[i] : from;
            uint64_t stop = log->at[i + 1] < to ? log->at[i + 1] : to;

            whole[i] = true; /* zeroes over zeroes change nothing */
            for (uint64_t at = first; at < stop; at++) {
                whole[i] = whole[i] && log->bytes.data[at] == 0;
            }
        }
        memset(log->bytes.data + from, 0, to - from);
        check_last(&chain, whole, "zeroed");
        free_chain(&chain);
    }
}
END_TEST

/* Behind the end of the last file is what was never a batch of it. */
START_TEST(test_torn)
{
    struct chain chain;
    struct replay_end end;
    struct log_make *log;
    uint64_t state = 2, stop;

    make_chain(&chain, 12);
    log = last_of(&chain);
    stop = log->at[log->n];
    for (int round = 0; round < SWEEP_PART(1000); round++) {
        size_t from = random_below(&state, ZEROES);
        size_t len = 1 + random_below(&state, ZEROES - from);

        memset(log->bytes.data + stop, 0, ZEROES);
        for (size_t i = 0; i < len; i++) {
            log->bytes.data[stop + from + i] =
                (char)(1 + random_below(&state, 255));
        }
        ck_assert_int_eq(run(&chain, NULL, &end), 0);
        ck_assert_uint_eq(chain.n_seen, chain.n_expected);
        ck_assert_uint_eq(end.end, stop);
        ck_assert_uint_eq(end.torn_bytes, from + len);
    }
    free_chain(&chain);
}
END_TEST

/* A batch of another file, with the very number that is due. */
START_TEST(test_stray_batch)
{
    struct chain chain;
    struct replay_end end;
    struct log_make *log, stray;
    struct frame_file file;
    uint64_t stop;

    make_chain(&chain, 12);
    log = last_of(&chain);
    stop = log->at[log->n];
    file = log->file;
    file.first_seq += log->n;
    for (int round = 0; round < 3; round++) {
        file.number = log->file.number + (round == 0);
        file.epoch = EPOCH + (round == 1);
        log_make_init(&stray, &file);
        log_make_add(&stray, "x", 1, 0);
        memcpy(log->bytes.data + stop, stray.bytes.data + FRAME_FILE_BYTES,
            FRAME_BATCH_BYTES + 1);
        log_make_fini(&stray);
        if (round < 2) {
            ck_assert_int_eq(run(&chain, NULL, &end), 0);
            ck_assert_uint_eq(end.end, stop);
            ck_assert_uint_eq(end.torn_bytes, FRAME_BATCH_BYTES + 1);
        }
    }
    free(chain.expected[0].payload); /* of its own it would have passed */
    chain.expected[0].payload = copy_of("", 0);
    chain.answer = ERR_GONE;
    ck_assert_int_eq(run(&chain, NULL, &end), ERR_GONE);
    ck_assert_int_eq(replay_run(&(struct replay){.disk = &chain.still.disk,
                                    .epoch = EPOCH,
                                    .number = FIRST},
                         &end),
        0);
    ck_assert_uint_eq(end.batches, chain.n_expected + 1);
    free_chain(&chain);
}
END_TEST

/* A file without batches behind it, as a clean stop leaves one: then what is
 * before must be whole. */
START_TEST(test_after_clean_stop)
{
    struct chain chain;
    struct replay_end end;
    struct frame_file file;
    struct log_make empty, *log;
    char name[NAMES_BYTES];

    make_chain(&chain, 20);
    log = last_of(&chain);
    file = (struct frame_file){.epoch = EPOCH,
        .number = log->file.number + 1,
        .first_seq = log->file.first_seq + log->n,
        .before_end = log->at[log->n]};
    log_make_init(&empty, &file);
    names_make(name, NAMES_LOG, file.number);
    still_disk_add(&chain.still, name, (const uint8_t *)empty.bytes.data,
        empty.bytes.len);
    ck_assert_int_eq(run(&chain, NULL, &end), 0);
    ck_assert_uint_eq(end.number, file.number);
    ck_assert_uint_eq(end.end, FRAME_FILE_BYTES);
    for (uint64_t bit = 0; bit < 8 * log->at[log->n]; bit += SWEEP_STEP) {
        flip(&chain, FILES - 1, bit);
        ck_assert_int_eq(run(&chain, NULL, &end), ERR_CORRUPT);
        flip(&chain, FILES - 1, bit);
    }
    log_make_fini(&empty);
    free_chain(&chain);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_flip_before_last, test_flip_note,
        test_torn_note, test_void_for_note, test_flip_last, test_truncate,
        test_longer, test_holes, test_zeroed, test_torn, test_stray_batch,
        test_after_clean_stop};

    return run_tests("replay_damage", tests, COUNT_OF(tests));
}
