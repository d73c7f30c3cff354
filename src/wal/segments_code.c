/* SPDX-License-Identifier: BSD-3-Clause */
/* The segments one behind the other, each against the one before, so that most
 * numbers take a byte: ids as rows, which are ids without the bits of the
 * shard; and the sequence numbers of the shards, which come of one round over
 * the shards and lie near each other, each against the one before it.
 *
 * What can go wrong: memory, damage. */
#include "wal/segments_code.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/bytes.h"
#include "base/err.h"

enum {
    /* serial, slot, rows, their number, file, records, history */
    FIXED_BYTES_MAX = 1 + 6 * BYTES_VARINT_MAX,
    FIXED_BYTES_MIN = 5
};

/* What of one entry is in front of its sequence numbers. */
struct fixed {
    uint32_t serial;
    uint8_t slot;
    uint64_t first_row, last_row, number, records;
};

static unsigned
bits_of(uint32_t shards)
{
    return (unsigned)__builtin_ctz(shards);
}

static struct fixed
fixed_of(const struct segments *segments, const struct manifest_segment *from)
{
    unsigned bits = bits_of(segments->shards);

    return (struct fixed){.serial = from->counter_serial,
        .slot = from->counter,
        .first_row = from->first_id >> bits,
        .last_row = from->last_id >> bits,
        .number = from->number,
        .records = from->records};
}

static size_t
put_fixed(uint8_t *out, const struct fixed *it, const struct fixed *before)
{
    uint64_t next = before->last_row + 1;

    ASSERT(before->serial <= it->serial);
    ASSERT(before->serial != it->serial || before->last_row < it->first_row);
    size_t len = bytes_put_varint(out, it->serial - before->serial);

    if (it->serial != before->serial) {
        out[len++] = it->slot;
        next = 0;
    }
    len += bytes_put_varint(out + len, it->first_row - next);
    len += bytes_put_varint(out + len, it->last_row - it->first_row);
    len +=
        bytes_put_varint(out + len, bytes_zigzag(it->number - before->number));
    return len + bytes_put_varint(out + len, it->records);
}

void
segments_code_put(const struct segments *segments,
    const struct histories_set *set, struct buf *out)
{
    struct fixed before = {0};
    uint64_t seq = 0;

    for (size_t i = 0; i < segments->n; i++) {
        const struct manifest_segment *segment = &segments->segment[i];
        struct fixed it = fixed_of(segments, segment);
        uint8_t *at = (uint8_t *)buf_reserve(
            out, FIXED_BYTES_MAX + segments->shards * BYTES_VARINT_MAX);
        size_t len;

        ASSERT(segments_is_right(segments, segment));
        if (at == NULL) {
            return; /* the buffer knows */
        }
        len = put_fixed(at, &it, &before);
        if (set != NULL) {
            len += bytes_put_varint(
                at + len, histories__set_place(set, segment->history));
        }
        for (uint32_t s = 0; s < segments->shards; s++) {
            len += bytes_put_varint(
                at + len, bytes_zigzag(segment->seq[s] - seq));
            seq = segment->seq[s];
        }
        out->len += len;
        before = it;
    }
}

static bool
get_sum(const uint8_t **in, const uint8_t *end, uint64_t from, uint64_t *out)
{
    uint64_t distance;

    return bytes_get_varint(in, end, &distance) &&
        !__builtin_add_overflow(from, distance, out);
}

static bool
get_near(const uint8_t **in, const uint8_t *end, uint64_t *number)
{
    uint64_t code;

    if (!bytes_get_varint(in, end, &code)) {
        return false;
    }
    *number += bytes_unzigzag(code);
    return true;
}

/* Makes *it, which is the one before, the next one; is_right_fixed is still to
 * be asked. */
static bool
get_fixed(const uint8_t **in, const uint8_t *end, struct fixed *it)
{
    uint64_t serial, next = it->last_row + 1;

    if (end - *in < FIXED_BYTES_MIN ||
        !get_sum(in, end, it->serial, &serial) || serial > UINT32_MAX) {
        return false;
    }
    if (serial != it->serial) {
        if (*in == end) {
            return false;
        }
        it->slot = *(*in)++;
        next = 0;
    } else if (next == 0) {
        return false; /* the one before had the last row of all */
    }
    it->serial = (uint32_t)serial;
    return get_sum(in, end, next, &it->first_row) &&
        get_sum(in, end, it->first_row, &it->last_row) &&
        get_near(in, end, &it->number) &&
        bytes_get_varint(in, end, &it->records);
}

/* Reads the sequence numbers; *seq is the one before. */
static bool
get_seq(const uint8_t **in, const uint8_t *end, uint64_t *seq, uint64_t *out,
    uint32_t shards)
{
    for (uint32_t s = 0; s < shards; s++) {
        if (!get_near(in, end, seq)) {
            return false;
        }
        out[s] = *seq;
    }
    return true;
}

static bool
is_right_fixed(const struct fixed *it, uint64_t last_file, unsigned bits)
{
    return it->serial > 0 && it->records > 0 && it->number > 0 &&
        it->number <= last_file && it->last_row <= UINT64_MAX >> bits;
}

/* *history stays 0 where entries have none. */
static bool
get_history(const uint8_t **in, const uint8_t *end,
    const struct histories_set *set, uint64_t *history)
{
    uint64_t place;

    *history = 0;
    return set == NULL ||
        (bytes_get_varint(in, end, &place) &&
            histories__set_get(set, place, history));
}

/* Reads one behind another into *seq, which is room for the shards. */
static int
get_one(const uint8_t **in, const uint8_t *end, struct fixed *it,
    uint64_t *last_seq, uint64_t *seq, const struct segments_code *code,
    struct segments *out)
{
    unsigned bits = bits_of(out->shards);
    struct manifest_segment segment;
    uint64_t history;

    if (!get_fixed(in, end, it) ||
        !is_right_fixed(it, code->last_file, bits) ||
        !get_history(in, end, code->set, &history) ||
        !get_seq(in, end, last_seq, seq, out->shards)) {
        return ERR_CORRUPT;
    }
    segment = (struct manifest_segment){.number = it->number,
        .history = history,
        .counter_serial = it->serial,
        .counter = it->slot,
        .first_id = it->first_row << bits,
        .last_id = it->last_row << bits | (out->shards - 1),
        .records = it->records,
        .seq = seq};
    return segments_add(out, &segment);
}

int
segments_code_get(const uint8_t **in, const uint8_t *end,
    const struct segments_code *code, struct segments *out)
{
    size_t room = out->shards * sizeof(uint64_t);
    uint64_t *seq = alloc_zeroed(out->alloc, room);
    struct fixed it = {0};
    uint64_t last_seq = 0;
    int err = seq == NULL ? ERR_NO_MEMORY : 0;

    for (uint64_t n = code->n; n > 0 && err == 0; n--) {
        err = get_one(in, end, &it, &last_seq, seq, code, out);
    }
    alloc_free(out->alloc, seq, room);
    return err;
}
