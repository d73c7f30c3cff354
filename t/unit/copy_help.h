/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIT_COPY_HELP_H
#define UNIT_COPY_HELP_H

/* Both ends of a copy, joined by frames in memory that come in random pieces:
 * from the store of a rig to the disk of another one. */

#include "unit/snapshot_help.h"

#include "base/bytes.h"
#include "repl/copy_in.h"
#include "repl/copy_out.h"
#include "repl/message_files.h"

#include <semaphore.h>

enum { JOIN_TERM = 3, JOIN_PIECE_MAX = 200000, JOIN_BYTES_MAX = 1 << 20 };

/* Bytes on their way, and who makes frames of them. */
struct way {
    struct buf bytes; /* owned */
    struct stream_reader reader;
    uint64_t n; /* that have been put in, in all */
};

struct join {
    struct copy_out *out;
    struct copy_in *in;
    struct way down, up;
    sem_t wake;
    uint64_t random;
    uint64_t cut_at;   /* bytes to the replica after which it is cut off */
    uint64_t last_seq; /* in the snapshot; 0: not sent yet */
    enum copy_next is_out, is_in; /* last answers */
    struct copy_figures out_figures, in_figures;
    /* Called with each frame to the replica; may change its body. False: it is
     * left out. NULL: nobody. */
    bool (*meddle_fn)(struct join *join, struct copy_piece *piece);
    void *context;
    bool spoils_have;  /* the last checksum of a HAVE is changed */
    unsigned n_frames; /* to the replica */
};

struct join_config {
    struct rig *from, *to;
    uint64_t seed;
    uint64_t cut_at; /* 0: never */
    uint64_t rate;
    uint64_t epoch;
    const char *source; /* NULL: SOURCE */
    const struct clock *clock;
};

static inline void
join_woken(void *context)
{
    struct join *join = context;

    sem_post(&join->wake);
}

static inline uint64_t
join_random(struct join *join)
{
    join->random = join->random * 6364136223846793005U + 1442695040888963407U;
    return join->random >> 33;
}

static inline int
join_start_out(struct join *join, const struct join_config *config)
{
    const char *source = config->source == NULL ? SOURCE : config->source;
    const struct copy_out_config out = {.store = config->from->store,
        .logger = &config->from->logger,
        .clock = config->clock,
        .source = {(const uint8_t *)source, (uint8_t)strlen(source)},
        .rate = config->rate,
        .pin_bytes_max = UINT64_MAX,
        .hold_ms = 1000000,
        .wake_fn = join_woken,
        .context = join};

    return copy_out_start(&out, &join->out);
}

static inline int
join_start_in(struct join *join, const struct join_config *config)
{
    const struct copy_in_config in = {.disk = config->to->data.disk,
        .logger = &config->to->logger,
        .epoch = config->epoch,
        .wake_fn = join_woken,
        .context = join};

    return copy_in_start(&in, &join->in);
}

/* 0 or the err of the end that did not start; join_end in any case. */
static inline int
join_start(struct join *join, const struct join_config *config)
{
    int err;

    *join = (struct join){.random = config->seed,
        .cut_at = config->cut_at == 0 ? UINT64_MAX : config->cut_at};
    ck_assert_int_eq(sem_init(&join->wake, 0, 0), 0);
    ck_assert_int_eq(stream_reader_init(&join->down.reader), 0);
    ck_assert_int_eq(stream_reader_init(&join->up.reader), 0);
    err = join_start_out(join, config);
    return err == 0 ? join_start_in(join, config) : err;
}

static inline void
join_end(struct join *join)
{
    if (join->out != NULL) {
        copy_out_figures(join->out, &join->out_figures);
    }
    if (join->in != NULL) {
        copy_in_figures(join->in, &join->in_figures);
    }
    copy_out_destroy(&join->out);
    copy_in_destroy(&join->in);
    buf_fini(&join->down.bytes);
    buf_fini(&join->up.bytes);
    stream_reader_fini(&join->down.reader);
    stream_reader_fini(&join->up.reader);
    sem_destroy(&join->wake);
}

static inline void
way_put(struct way *way, const struct copy_piece *piece)
{
    size_t len =
        stream_seal(piece->frame, piece->type, piece->len, JOIN_TERM, 0);

    buf_add(&way->bytes, piece->frame, len);
    ck_assert(!way->bytes.failed);
    way->n += len;
}

/* The number of the last batch in the snapshot, of a frame that goes by. */
static inline void
join_note(struct join *join, const struct copy_piece *piece)
{
    if (piece->type == STREAM_SNAPSHOT) {
        join->last_seq = bytes_get_u64(piece->frame + STREAM_HEAD_BYTES) - 1;
    }
    join->n_frames++;
}

/* True where something was sent. */
static inline bool
join_send(struct join *join)
{
    struct copy_piece piece = {.len = 0};
    bool any = false;

    while (join->down.bytes.len < JOIN_BYTES_MAX &&
        (join->is_out = copy_out_next(join->out, &piece)) == COPY_FRAME) {
        join_note(join, &piece);
        if (join->meddle_fn == NULL || join->meddle_fn(join, &piece)) {
            way_put(&join->down, &piece);
        }
        any = true;
    }
    while ((join->is_in = copy_in_next(join->in, &piece)) == COPY_FRAME) {
        ck_assert_uint_eq(piece.type, STREAM_HAVE);
        if (join->spoils_have) {
            piece.frame[STREAM_HEAD_BYTES + piece.len - 1] ^= 1;
        }
        way_put(&join->up, &piece);
        any = true;
    }
    return any;
}

/* True where the connection is over: cut off, or by one of its ends. */
static inline bool
join_is_over(const struct join *join)
{
    return join->is_in == COPY_DONE || join->is_in == COPY_FAILED ||
        join->is_out == COPY_FAILED ||
        join->down.n - join->down.bytes.len >= join->cut_at;
}

/* A random piece of what is on the way arrives; true where bytes were taken. */
static inline bool
join_bring(struct join *join, struct way *way, bool is_down)
{
    size_t len = way->bytes.len;
    size_t piece = 1 + join_random(join) % JOIN_PIECE_MAX;
    const uint8_t *bytes = (const uint8_t *)way->bytes.data;
    struct stream_frame frame;

    len = len < piece ? len : piece;
    if (is_down && join_is_over(join)) {
        return false;
    }
    if (is_down && len > join->cut_at - (way->n - way->bytes.len)) {
        len = (size_t)(join->cut_at - (way->n - way->bytes.len));
    }
    piece = len;
    while (
        is_down ? copy_in_may_put(join->in) : copy_out_may_take(join->out)) {
        enum stream_step step =
            stream_read(&way->reader, &bytes, &len, &frame);

        ck_assert_int_ne(step, STREAM_WRONG);
        if (step == STREAM_MORE) {
            break;
        }
        if (is_down) {
            copy_in_put(join->in, &frame);
        } else {
            copy_out_take(join->out, &frame);
        }
    }
    buf_consume(&way->bytes, piece - len);
    return piece > len;
}

/* Until it is over. */
static inline void
join_run(struct join *join)
{
    while (!join_is_over(join)) {
        bool any = join_send(join);

        any |= join_bring(join, &join->down, true);
        any |= join_bring(join, &join->up, false);
        if (!any && !join_is_over(join)) {
            ck_assert_int_eq(sem_wait(&join->wake), 0);
        }
    }
}

/* A whole join; what the replica's end says. figures: may be NULL. */
static inline enum copy_next
join_once(const struct join_config *config, struct join *join)
{
    int err = join_start(join, config);

    if (err == 0) {
        join_run(join);
    } else {
        join->is_in = COPY_FAILED;
    }
    join_end(join);
    return join->is_in;
}

/* A store is loaded from what has come: it has what the other one had at
 * last_seq. */
static inline void
join_judge(struct rig *to, struct rig *from, uint64_t last_seq)
{
    const struct captured captured = {.last_seq = last_seq};

    ck_assert_uint_gt(last_seq, 0);
    to->seals = true; /* what it reads may be cold */
    ck_assert_int_eq(rig_open(to), 0);
    expect_copy(to, from, &captured);
    ck_assert_uint_eq(folder_files(to), 0);
    ck_assert_int_eq(rig_close(to), 0);
    ck_assert_int_eq(check_copy(NULL, to->data.disk, &to->logger), 0);
}

#endif
