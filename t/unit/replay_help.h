/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIT_REPLAY_HELP_H
#define UNIT_REPLAY_HELP_H

/* A chain of three log files, as a rotation and a failed sync leave them, and
 * a look at what replay makes of it: whatever comes out, the batches given out
 * are the first ones that were written, byte by byte. */

#include "lib/log_make.h"
#include "lib/still_disk.h"
#include "unit/check_help.h"
#include "wal/names.h"
#include "wal/replay.h"

enum {
    EPOCH = 4711,
    FIRST = 5, /* number of the first file */
    FILES = 3,
    VOID = 2, /* batches at the end of the first file that count for nothing */
    ZEROES = 70, /* behind the last batch of a file */
    EXPECTED_MAX = FILES * LOG_MAKE_BATCHES_MAX
};

struct expected {
    uint64_t seq;
    char *payload; /* owned */
    size_t len;
};

/* The log, and what is seen of it. */
struct chain {
    struct still_disk still;
    struct log_make log[FILES];
    struct histories histories; /* owned; of the files, for who reads them */
    char name[FILES][NAMES_BYTES];
    struct expected expected[EXPECTED_MAX];
    size_t n_expected;
    size_t n_seen;
    size_t n_told;
    uint64_t told;
    int answer; /* of batch_fn */
};

static inline int
see_batch(void *context, uint64_t seq, const uint8_t *payload, size_t len)
{
    struct chain *chain = context;
    const struct expected *expected = &chain->expected[chain->n_seen];
    if (chain->answer != 0) {
        return chain->answer;
    }
    ck_assert_uint_lt(chain->n_seen, chain->n_expected);
    ck_assert_uint_eq(seq, expected->seq);
    ck_assert_uint_eq(len, expected->len);
    ck_assert_mem_eq(payload, expected->payload, len);
    chain->n_seen++;
    return 0;
}

static inline void
see_progress(void *context, uint64_t n, uint64_t all)
{
    struct chain *chain = context;

    ck_assert_uint_ge(n, chain->told);
    ck_assert_uint_le(n, all);
    chain->told = n;
    chain->n_told++;
}

static inline int
run(struct chain *chain, struct logger *logger, struct replay_end *end)
{
    struct replay replay = {.disk = &chain->still.disk,
        .logger = logger,
        .epoch = EPOCH,
        .histories = &chain->histories,
        .number = FIRST,
        .batch_fn = see_batch,
        .context = chain,
        .progress_fn = see_progress};
    int err;

    memset(end, 0xa5, sizeof *end);
    chain->n_seen = chain->n_told = 0;
    chain->told = 0;
    err = replay_run(&replay, end);
    ck_assert_uint_eq(chain->still.n_open, 0);
    if (err == 0 && end->number != 0) {
        ck_assert_uint_eq(end->batches, chain->n_seen);
        ck_assert_uint_eq(
            end->next_seq, chain->log[0].file.first_seq + chain->n_seen);
    }
    return err;
}

static inline void
expect(struct chain *chain, const struct log_make *log, unsigned i)
{
    const char *payload = log->bytes.data + log->at[i] + FRAME_BATCH_BYTES;
    struct expected *expected = &chain->expected[chain->n_expected++];
    expected->seq = log->batch[i].seq;
    expected->len = log->batch[i].payload_bytes;
    expected->payload = copy_of(payload, expected->len);
}

/* A batch of random bytes; up to which it was synced is random and grows. */
static inline void
add_random(struct log_make *log, uint64_t *state, uint64_t *synced)
{
    uint8_t payload[60];
    size_t len = 1 + random_below(state, sizeof payload);
    uint64_t seq = log->file.first_seq + log->n;
    for (size_t i = 0; i < len; i++) {
        payload[i] = (uint8_t)random_below(state, 256);
    }
    if (random_below(state, 3) == 0) {
        *synced += random_below(state, seq - *synced);
    }
    log_make_add(log, payload, len, *synced);
}

static inline void
name_file(struct chain *chain, unsigned i)
{
    struct log_make *log = &chain->log[i];

    names_make(chain->name[i], NAMES_LOG, log->file.number);
    chain->still.file[i] = (struct still_file){.name = chain->name[i],
        .bytes = (const uint8_t *)log->bytes.data,
        .len = log->bytes.len};
}

/* The first file ends with VOID batches that the second one has again; the
 * third begins where the second ends. epoch: in their headers. */
static inline void
make_chain_of(struct chain *chain, uint64_t seed, const uint64_t epoch[FILES])
{
    struct frame_file file = {.number = FIRST, .first_seq = 100};
    uint64_t state = seed, synced = 90;

    memset(chain, 0, sizeof *chain);
    still_disk_init(&chain->still);
    for (unsigned i = 0; i < FILES; i++) {
        struct log_make *log = &chain->log[i];
        unsigned n = VOID + 3 + (unsigned)random_below(&state, 8);
        unsigned n_void = i == 0 ? VOID : 0;

        file.epoch = epoch[i];
        log_make_init(log, &file);
        for (unsigned j = 0; j < n; j++) {
            add_random(log, &state, &synced);
        }
        for (unsigned j = 0; j < n - n_void; j++) {
            expect(chain, log, j);
        }
        log_make_zeroes(log, ZEROES);
        synced = file.first_seq + n - n_void - 1;
        file.number++;
        file.before_end = log->at[n - n_void];
        file.first_seq += n - n_void;
        name_file(chain, i);
    }
}

static inline void
make_chain(struct chain *chain, uint64_t seed)
{
    static const uint64_t epoch[FILES] = {EPOCH, EPOCH, EPOCH};
    make_chain_of(chain, seed, epoch);
}

static inline void
free_chain(struct chain *chain)
{
    histories_fini(&chain->histories);
    for (unsigned i = 0; i < FILES; i++) {
        log_make_fini(&chain->log[i]);
    }
    for (size_t i = 0; i < chain->n_expected; i++) {
        free(chain->expected[i].payload);
    }
}

static inline struct log_make *
last_of(struct chain *chain)
{
    return &chain->log[FILES - 1];
}

/* Batches before the last file. */
static inline size_t
n_before_last(struct chain *chain)
{
    return chain->n_expected - last_of(chain)->n;
}

#endif
