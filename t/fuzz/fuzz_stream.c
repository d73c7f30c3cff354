/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzzes both ends of the replication stream. The first byte says how: the
 * bytes as they come, to a primary or to a replica; or made into frames that
 * are sealed as they must be, so that what is behind the checksum is reached,
 * to an end that has got so far. Of these each is: type, 1 byte; length, 2
 * bytes; body. How bytes are cut into pieces follows from their hash.
 *
 * Whatever comes, a replica takes only batches that follow, and says no more
 * than it has; a primary believes no acknowledgement of what was not sent. */
#include "base/assert.h"
#include "base/bytes.h"
#include "base/checksum.h"
#include "repl/link_primary.h"
#include "repl/link_replica.h"
#include "repl/message_term.h"

#include "fuzz/fuzz_frames.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

enum how { TO_PRIMARY = 1, SEALED = 2, STAGES = 4, HOWS = 16 };
enum { TERM = 3, ASKS_MAX = 4, PIECE_MAX = 700 };

struct ends {
    struct proof_secret secret;
    struct link_self self[2]; /* of the primary, of the replica */
    struct history history;
    struct link_view view;
    struct link_node node;
    struct link_primary primary;
    struct link_replica replica;
    struct stream_reader reader;
    bool is_primary; /* that is what is fuzzed */
    uint64_t now_us;
};

/* Frames that had a checksum that held, so far in this process. Told at the end
 * where $FUZZ_COUNT is set. */
static struct {
    uint64_t read, taken;
} count;

static void
tell_count(void)
{
    fprintf(stderr, "%llu frames, %llu of them taken by an end\n",
        (unsigned long long)count.read, (unsigned long long)count.taken);
}

/* A reader's buffer is as large for each input; so it is kept. */
static struct stream_reader
reader_of(unsigned i)
{
    static uint8_t kept[3][STREAM_FRAME_MAX];

    return (struct stream_reader){.kept = kept[i]};
}

static struct message_text
text_of(const char *text)
{
    return (struct message_text){
        .at = (const uint8_t *)text, .len = (uint8_t)strlen(text)};
}

static void
begin(struct ends *ends, bool is_primary, bool is_apart)
{
    static const uint8_t nonce[2][STREAM_NONCE_BYTES] = {{1}, {2}};
    const struct link_directory directory = {
        .epoch = 7, .seed = 8, .shards = 16};

    memset(ends, 0, sizeof *ends);
    ends->now_us = 1000000;
    ends->is_primary = is_primary;
    ASSERT(history_begin(&ends->history, 1, 0x11, 50));
    ASSERT(history_begin(&ends->history, TERM, 0x33, seq_make(1, 20)));
    for (unsigned i = 0; i < 2; i++) {
        ends->self[i] = (struct link_self){.group = text_of("g"),
            .name = text_of(i == 0 ? "a" : "b"),
            .secret = &ends->secret,
            .formats = {6, 7, 1},
            .timeout_us = 5000000};
    }
    ends->view = (struct link_view){.directory = directory,
        .term = TERM,
        .history = &ends->history,
        .begin = 10,
        .written = seq_make(TERM, 100),
        .committed = seq_make(TERM, 90)};
    ends->node = (struct link_node){.directory = directory,
        .promised = is_apart ? 2 : TERM,
        .history = &ends->history,
        .written = seq_make(TERM, 40),
        .synced = seq_make(TERM, 30),
        .applied = seq_make(TERM, 20)};
    if (is_apart) {
        ends->view.begin = ends->node.written + 1; /* a snapshot is needed */
    }
    link_primary_init(&ends->primary, &ends->self[0], nonce[0], ends->now_us);
    link_replica_init(&ends->replica, &ends->self[1], nonce[1], ends->now_us);
    ends->reader = reader_of(0);
}

static void
take_batches(struct ends *ends)
{
    struct message_batch batch;

    while (message_next_batch(&ends->replica.batches, &batch)) {
        ASSERT(history_follows(&ends->history, ends->node.written, batch.seq));
        ASSERT(batch.len > 0 && batch.len <= FRAME_PAYLOAD_MAX);
        ends->node.written = batch.seq;
    }
    ASSERT(ends->node.written == ends->replica.received);
}

/* Bodies that neither end asks for yet. */
static void
read_term_frame(const struct stream_frame *frame)
{
    struct message_promise promise;
    struct message_promised promised;
    struct message_fetch fetch;
    struct stream_fault fault;

    count.read++;
    if (frame->type == STREAM_PROMISE) {
        (void)message_get_promise(frame, &promise, &fault);
    } else if (frame->type == STREAM_PROMISED) {
        (void)message_get_promised(frame, &promised, &fault);
    } else if (frame->type == STREAM_FETCH) {
        (void)message_get_fetch(frame, &fetch, &fault);
    }
}

static enum link_do
ask(struct ends *ends, uint8_t out[LINK_SEND_MAX], struct link_order *order)
{
    if (ends->is_primary) {
        link_primary_next(
            &ends->primary, &ends->view, ends->now_us, out, order);
    } else {
        link_replica_next(
            &ends->replica, &ends->node, ends->now_us, out, order);
    }
    return order->what;
}

/* Does what the end wants, a few times. */
static void
ask_all(struct ends *ends)
{
    uint8_t out[LINK_SEND_MAX];
    struct link_order order;

    for (unsigned i = 0; i < ASKS_MAX; i++) {
        switch (ask(ends, out, &order)) {
        case LINK_PROMISE:
            ASSERT(order.term > ends->node.promised);
            ends->node.promised = order.term;
            link_replica_promised(&ends->replica);
            break;
        case LINK_BATCHES:
            message_put_batch(out + STREAM_HEAD_BYTES + MESSAGE_NEWS_BYTES,
                ends->view.written, 1);
            (void)link_primary_seal(&ends->primary, &ends->view, out,
                MESSAGE_BATCH_BYTES + 1, ends->view.written, ends->now_us);
            break;
        case LINK_SEND:
            ASSERT(order.len <= LINK_SEND_MAX);
            break;
        default:
            return;
        }
    }
}

static bool
may_take(const struct ends *ends)
{
    return ends->is_primary || link_replica_may_take(&ends->replica);
}

static void
take(struct ends *ends, const struct stream_frame *frame)
{
    read_term_frame(frame);
    if (!may_take(ends)) {
        return;
    }
    count.taken++;
    ends->now_us += frame->len;
    if (ends->is_primary) {
        if (link_primary_take(&ends->primary, &ends->view, frame,
                ends->now_us) == LINK_YOURS) {
            (void)fuzz_read_file_frame(frame);
        }
        ASSERT(ends->primary.ack.written <= ends->primary.sent);
        ASSERT(ends->primary.sent <= ends->view.written);
    } else if (link_replica_take(&ends->replica, &ends->node, frame,
                   ends->now_us) == LINK_YOURS) {
        if (frame->type == STREAM_BATCHES) {
            take_batches(ends);
        } else {
            (void)fuzz_read_file_frame(frame);
        }
    }
    ends->reader.session =
        ends->is_primary ? ends->primary.session : ends->replica.call.session;
    ask_all(ends);
}

/* False: it is over. */
static bool
put(struct ends *ends, const uint8_t *bytes, size_t len)
{
    struct stream_frame frame;
    enum stream_step step;

    while ((step = stream_read(&ends->reader, &bytes, &len, &frame)) ==
        STREAM_FRAME) {
        take(ends, &frame);
    }
    if (step == STREAM_WRONG && ends->is_primary) {
        link_primary_wrong(&ends->primary, &ends->reader.fault);
    } else if (step == STREAM_WRONG) {
        link_replica_wrong(&ends->replica, &ends->reader.fault);
    }
    ask_all(ends);
    return step == STREAM_MORE;
}

static void
put_pieces(struct ends *ends, const uint8_t *bytes, size_t len)
{
    uint64_t hash = checksum64(bytes, len, 1);

    while (len > 0) {
        size_t piece = 1 + (size_t)(hash % PIECE_MAX);
        uint8_t *copy;
        bool is_on;

        piece = piece < len ? piece : len;
        copy = malloc(piece); /* a sanitizer sees a read past it */
        ASSERT(copy != NULL);
        memcpy(copy, bytes, piece);
        is_on = put(ends, copy, piece);
        free(copy);
        if (!is_on) {
            return;
        }
        bytes += piece;
        len -= piece;
        hash = hash * 6364136223846793005U + 1442695040888963407U;
    }
}

/* A frame of those bytes, if the type may be so long. */
static size_t
seal(const struct ends *ends, const uint8_t *bytes, size_t len, uint8_t *out)
{
    static const struct {
        uint32_t least, most;
    } bounds[32] = {
#define X(number, name, least, most) [number] = {(least), (most)},
        STREAM_TYPES(X)
#undef X
    };
    unsigned type = bytes[0] % 32;

    if (bounds[type].most == 0 || len - 3 < bounds[type].least ||
        len - 3 > bounds[type].most) {
        return 0;
    }
    memcpy(out + STREAM_HEAD_BYTES, bytes + 3, len - 3);
    return stream_seal(out, (enum stream_type)type, (uint32_t)(len - 3),
        type == STREAM_HELLO ? ends->node.promised : TERM,
        ends->reader.session);
}

static void
put_sealed(struct ends *ends, const uint8_t *bytes, size_t len)
{
    while (len >= 3) {
        size_t n = 3 + (size_t)bytes_get_u16(bytes + 1);
        uint8_t *frame;
        size_t sealed;

        n = n < len ? n : len;
        frame = malloc(STREAM_HEAD_BYTES + n);
        ASSERT(frame != NULL);
        sealed = seal(ends, bytes, n, frame);
        if (sealed > 0 && !put(ends, frame, sealed)) {
            free(frame);
            return;
        }
        free(frame);
        bytes += n;
        len -= n;
    }
}

/* Both ends greet each other, and what is fuzzed is where it streams, or
 * copies. */
static void
meet(struct ends *ends)
{
    uint8_t out[LINK_SEND_MAX];
    struct link_order order;
    struct stream_reader at[2] = {reader_of(1), reader_of(2)};
    bool is_fuzzed = ends->is_primary;

    for (unsigned i = 0; i < 3; i++) {
        const uint8_t *in = out;
        struct stream_frame frame;

        ends->is_primary = i % 2 == 0;
        ASSERT(ask(ends, out, &order) == LINK_SEND);
        ASSERT(
            stream_read(&at[i % 2], &in, &order.len, &frame) == STREAM_FRAME);
        if (i % 2 == 0) {
            ASSERT(link_replica_take(&ends->replica, &ends->node, &frame,
                       ends->now_us) == LINK_TAKEN);
        } else {
            ASSERT(link_primary_take(&ends->primary, &ends->view, &frame,
                       ends->now_us) == LINK_TAKEN);
        }
        at[0].session = ends->replica.call.session;
        at[1].session = ends->primary.session;
    }
    ends->is_primary = is_fuzzed;
    ends->reader.session = ends->replica.call.session;
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static struct ends ends;
    static bool is_begun;
    unsigned how;

    if (!is_begun) {
        is_begun = true;
        if (getenv("FUZZ_COUNT") != NULL) {
            ASSERT(atexit(tell_count) == 0);
        }
    }
    if (len == 0) {
        return 0;
    }
    how = bytes[0] % HOWS;
    begin(&ends, (how & TO_PRIMARY) != 0, how / STAGES == 2);
    if (how / STAGES > 0) {
        meet(&ends);
    }
    ask_all(&ends);
    if ((how & SEALED) != 0) {
        put_sealed(&ends, bytes + 1, len - 1);
    } else {
        put_pieces(&ends, bytes + 1, len - 1);
    }
    return 0;
}
