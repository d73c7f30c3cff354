/* SPDX-License-Identifier: BSD-3-Clause */
/* The note that a log file is followed, and what damage to it looks like.
 *
 * All of it can be told from the successor's header, byte for byte. It is not
 * synced, so what is found in its place is one of:
 *
 *   the note            as it was written
 *   zeroes              never written, or lost with the power
 *   zeroes, then its    the same, where a sector ends within it
 *   end
 *   its beginning,      the same, or written in part, where the disk failed
 *   then zeroes
 *   something else      a batch that is void, of a file whose sync had failed
 *
 * The last has a checksum of its own, so that it differs from the note in some
 * 32 bits of 64, and hardly ever in as few as FLIPS_MAX (once in 10^9). */
#include "wal/note.h"

#include "base/assert.h"

#include <string.h>

enum {
    SECTOR_BYTES = 512, /* the least that a disk writes as a whole */
    FLIPS_MAX = 8       /* more are not called damage */
};

void
note_put(const struct frame_file *next, uint8_t out[NOTE_BYTES])
{
    struct frame_file head = {
        .epoch = next->epoch, .number = next->number - 1};
    struct frame_batch batch = {.seq = next->first_seq,
        .synced_seq = next->first_seq - 1,
        .payload_bytes = ENTRY_MARK_BYTES};

    ASSERT(next->before_end != 0);
    entry_put_mark(out + FRAME_BATCH_BYTES, ENTRY_MARK_FOLLOWED);
    frame_batch_put(&head, &batch, out);
}

/* The bits in which a and b differ; 0 where b is zeroes. */
static unsigned
count_flips(const uint8_t *a, const uint8_t *b, size_t n)
{
    unsigned flips = 0;
    bool is_zero = true;

    for (size_t i = 0; i < n; i++) {
        flips += (unsigned)__builtin_popcount(a[i] ^ b[i]);
        is_zero = is_zero && b[i] == 0;
    }
    return is_zero ? 0 : flips;
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
note_is_damaged(const struct frame_file *next, const uint8_t in[NOTE_BYTES])
{
    uint8_t note[NOTE_BYTES];
    size_t n = SECTOR_BYTES - next->before_end % SECTOR_BYTES;
    unsigned flips;

    note_put(next, note);
    if (is_beginning(note, in)) {
        return false;
    }
    n = n < NOTE_BYTES ? n : NOTE_BYTES; /* of it in its first sector */
    flips = count_flips(note, in, n);
    flips += count_flips(note + n, in + n, NOTE_BYTES - n);
    return flips > 0 && flips <= FLIPS_MAX;
}
