/* SPDX-License-Identifier: BSD-3-Clause */
/* The note that a log file is followed, and what damage to it looks like.
 *
 * All of it can be told from the successor's header and the history of its own
 * file, byte for byte. It is not synced, so each of the sectors that it lies in
 * (one, seldom two) has its part of the note, or what was there before: zeroes,
 * or a batch that is void, of a file whose sync had failed or of the torn end
 * of one; or a beginning of the note, where the disk failed in the midst of
 * it.
 *
 * A void batch has a checksum of its own, so that it differs from the note in
 * some 32 bits there, and hardly ever in as few as FLIPS_MAX (once in 10^9). So
 * a sector is judged if it has all of the checksum; of the few bytes that may
 * stand in another one nothing can be said. */
#include "wal/note.h"

#include "base/assert.h"

#include <string.h>

enum {
    SECTOR_BYTES = 512, /* the least that a disk writes as a whole */
    CHECKSUM_AT = 24,   /* of a batch; 8 bytes (frame.h) */
    FLIPS_MAX = 8       /* more are not called damage */
};

void
note__put(
    const struct frame_file *next, uint64_t epoch, uint8_t out[NOTE_BYTES])
{
    struct frame_file head = {.epoch = epoch, .number = next->number - 1};
    struct frame_batch batch = {.seq = next->first_seq,
        .synced_seq = next->first_seq - 1,
        .payload_bytes = ENTRY_MARK_BYTES};

    ASSERT(next->before_end != 0 && next->number > 1);
    entry_put_mark(out + FRAME_BATCH_BYTES, ENTRY_MARK_FOLLOWED);
    frame_batch_put(&head, &batch, out);
}

/* True where bytes from..to, which lie in one sector, were the note's and
 * are not now. */
static bool
is_part_damaged(const uint8_t *note, const uint8_t *in, size_t from, size_t to)
{
    unsigned flips = 0;
    bool is_zero = true;

    if (from > CHECKSUM_AT || to < CHECKSUM_AT + 8) {
        return false;
    }
    for (size_t i = from; i < to; i++) {
        flips += (unsigned)__builtin_popcount(note[i] ^ in[i]);
        is_zero = is_zero && in[i] == 0;
    }
    return !is_zero && flips > 0 && flips <= FLIPS_MAX;
}

/* True where in is the note up to some byte, and zeroes behind it. */
static bool
is_beginning(const uint8_t *note, const uint8_t *in)
{
    size_t n = NOTE_BYTES;

    while (n > 0 && in[n - 1] == 0) {
        n--;
    }
    return memcmp(note, in, n) == 0;
}

bool
note_is_damaged(const struct frame_file *next, uint64_t epoch,
    const uint8_t in[NOTE_BYTES])
{
    uint8_t note[NOTE_BYTES];
    size_t n = SECTOR_BYTES - next->before_end % SECTOR_BYTES;

    if (next->before_end == 0 || next->first_seq == 0 ||
        next->first_seq == UINT64_MAX) {
        return false; /* no server wrote that header, and so no note */
    }
    note__put(next, epoch, note);
    if (is_beginning(note, in)) {
        return false;
    }
    n = n < NOTE_BYTES ? n : NOTE_BYTES; /* of it in its first sector */
    return is_part_damaged(note, in, 0, n) ||
        is_part_damaged(note, in, n, NOTE_BYTES);
}
