/* SPDX-License-Identifier: BSD-3-Clause */
/* The segments of a manifest: one array, sorted by the serial of the counter
 * and the ids. There are thousands at most, and they change as a whole with
 * each manifest; what has to be quick is to find the one that covers an id,
 * while a log is replayed.
 *
 * What can go wrong: memory. Room is made before anything is changed. */
#include "wal/segments.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/err.h"

#include <string.h>

enum { START = 8 };

static size_t
seq_bytes(const struct segments *segments)
{
    return segments->shards * sizeof(uint64_t);
}

static void
free_seq(const struct segments *segments, struct manifest_segment *segment)
{
    alloc_free(segments->alloc, segment->seq, seq_bytes(segments));
}

void
segments_fini(struct segments *segments)
{
    for (size_t i = 0; i < segments->n; i++) {
        free_seq(segments, &segments->segment[i]);
    }
    alloc_free(segments->alloc, segments->segment,
        segments->capacity * sizeof *segments->segment);
    *segments = (struct segments){
        .alloc = segments->alloc, .shards = segments->shards};
}

bool
segments_is_right(
    const struct segments *segments, const struct manifest_segment *segment)
{
    /* shards are a power of two, so that 2^64 is a multiple of them */
    return segment->number > 0 && segment->counter_serial > 0 &&
        segment->records > 0 && segment->first_id <= segment->last_id &&
        segment->first_id % segments->shards == 0 &&
        (segment->last_id + 1) % segments->shards == 0;
}

/* Whether all of a stands before all of b. */
static bool
is_before(const struct manifest_segment *a, const struct manifest_segment *b)
{
    return a->counter_serial != b->counter_serial
        ? a->counter_serial < b->counter_serial
        : a->last_id < b->first_id;
}

static bool
reserve(struct segments *segments)
{
    size_t more = segments->capacity == 0 ? START : 2 * segments->capacity;
    struct manifest_segment *made;

    if (segments->n < segments->capacity) {
        return true;
    }
    made = alloc_zeroed(segments->alloc, more * sizeof *made);
    if (made == NULL) {
        return false;
    }
    if (segments->n > 0) {
        memcpy(made, segments->segment, segments->n * sizeof *made);
    }
    alloc_free(
        segments->alloc, segments->segment, segments->capacity * sizeof *made);
    segments->segment = made;
    segments->capacity = more;
    return true;
}

int
segments_add(struct segments *segments, const struct manifest_segment *segment)
{
    size_t at = segments->n;
    struct manifest_segment *place;
    uint64_t *seq;

    ASSERT(segments->shards > 0 && segments_is_right(segments, segment));
    if (!reserve(segments)) {
        return ERR_NO_MEMORY;
    }
    seq = alloc_zeroed(segments->alloc, seq_bytes(segments));
    if (seq == NULL) {
        return ERR_NO_MEMORY;
    }
    memcpy(seq, segment->seq, seq_bytes(segments));
    while (at > 0 && is_before(segment, &segments->segment[at - 1])) {
        at--; /* mostly they come in order */
    }
    ASSERT(at == 0 || is_before(&segments->segment[at - 1], segment));
    place = &segments->segment[at];
    ASSERT(segments->n < segments->capacity);
    memmove(place + 1, place, (segments->n - at) * sizeof *place);
    *place = *segment;
    place->seq = seq;
    segments->n++;
    return 0;
}

void
segments_drop(struct segments *segments,
    bool (*is_gone_fn)(
        const void *context, const struct manifest_segment *segment),
    const void *context)
{
    size_t n = 0;

    for (size_t i = 0; i < segments->n; i++) {
        if (is_gone_fn(context, &segments->segment[i])) {
            free_seq(segments, &segments->segment[i]);
        } else {
            segments->segment[n++] = segments->segment[i];
        }
    }
    segments->n = n;
}

/* The first entry of that serial or a later one. */
static size_t
serial_place(const struct segments *segments, uint64_t serial)
{
    size_t low = 0, high = segments->n;

    while (low < high) {
        size_t mid = low + (high - low) / 2;

        if (segments->segment[mid].counter_serial < serial) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low;
}

const struct manifest_segment *
segments_of(
    const struct segments *segments, uint32_t counter_serial, size_t *n)
{
    size_t low = serial_place(segments, counter_serial);

    *n = serial_place(segments, (uint64_t)counter_serial + 1) - low;
    ASSERT(low + *n <= segments->n);
    return *n == 0 ? NULL : segments->segment + low;
}

size_t
segments_place(const struct manifest_segment *segment, size_t n, uint64_t id)
{
    size_t low = 0, high = n;

    while (low < high) {
        size_t mid = low + (high - low) / 2;

        if (segment[mid].last_id < id) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low;
}

const struct manifest_segment *
segments_find(
    const struct segments *segments, uint32_t counter_serial, uint64_t id)
{
    size_t n;
    const struct manifest_segment *segment =
        segments_of(segments, counter_serial, &n);
    size_t place = segments_place(segment, n, id);

    return place < n && segment[place].first_id <= id ? &segment[place] : NULL;
}

bool
segments_has_file(const struct segments *segments, uint64_t number)
{
    for (size_t i = 0; i < segments->n; i++) {
        if (segments->segment[i].number == number) {
            return true;
        }
    }
    return false;
}

uint64_t
segments_last_file(const struct segments *segments)
{
    uint64_t last = 0;

    for (size_t i = 0; i < segments->n; i++) {
        uint64_t number = segments->segment[i].number;

        last = number > last ? number : last;
    }
    return last;
}

uint64_t
segments_last_seq(const struct segments *segments)
{
    uint64_t last = 0;

    for (size_t i = 0; i < segments->n; i++) {
        for (uint32_t shard = 0; shard < segments->shards; shard++) {
            uint64_t seq = segments->segment[i].seq[shard];

            last = seq > last ? seq : last;
        }
    }
    return last;
}

void
segments_verify(const struct segments *segments)
{
    ASSERT(segments->n <= segments->capacity);
    for (size_t i = 0; i < segments->n; i++) {
        const struct manifest_segment *segment = &segments->segment[i];

        ASSERT(segments_is_right(segments, segment) && segment->seq != NULL);
        ASSERT(i == 0 || is_before(segment - 1, segment));
    }
}
