/* SPDX-License-Identifier: BSD-3-Clause */
/* Verifies a manifest before it is written: rows of images are disjoint, and
 * ids of segments; no image has rows that a newer segment covers; nothing is
 * newer than the log; no number is above the one that was given out last. From
 * another manifest a start would load wrong numbers.
 *
 * Only for a manifest that this process made: what was read from a disk may be
 * anything. */
#include "wal/manifest.h"

#include "base/assert.h"
#include "wal/image.h"

struct verify {
    const struct manifest *manifest;
    uint64_t last_seq;
    unsigned shard_bits;
    uint32_t serial[SCHEMA_COUNTERS_MAX]; /* of the counter in a slot; 0: there
                                           * is none */
};

/* Rows of a newer segment are not in the image any more. */
static void
verify_cut(const struct verify *verify, const struct images_entry *entry)
{
    uint32_t serial = verify->serial[entry->counter];
    unsigned bits = verify->shard_bits;
    size_t n = 0;

    if (serial == 0 || entry->shard >= verify->manifest->shards ||
        entry->first_row > UINT64_MAX >> bits) {
        return;
    }
    const struct manifest_segment *segment =
        segments_of(&verify->manifest->segments, serial, &n);
    for (size_t i = segments_place(segment, n, entry->first_row << bits);
         i < n && segment[i].first_id >> bits <= entry->last_row; i++) {
        ASSERT(segment[i].seq[entry->shard] <= entry->seq);
    }
}

static void
verify_image(void *context, const struct images_entry *entry)
{
    const struct verify *verify = context;
    const struct manifest *manifest = verify->manifest;

    ASSERT(entry->shard < manifest->shards ||
        manifest_is_of_names(manifest, entry) ||
        (manifest_is_of_tables(manifest, entry) &&
            manifest__has_column(manifest, entry)));
    ASSERT(entry->file < manifest->next_file);
    ASSERT(entry->len > 0 && entry->len <= image_bytes_max());
    ASSERT(entry->n <= IMAGE_RECORDS_MAX);
    ASSERT(entry->seq <= verify->last_seq);
    verify_cut(verify, entry);
}

static void
verify_segments(const struct verify *verify)
{
    const struct segments *segments = &verify->manifest->segments;

    segments_verify(segments);
    ASSERT(segments->n == 0 || segments->shards == verify->manifest->shards);
    ASSERT(segments_last_file(segments) <= verify->manifest->last_segment);
    ASSERT(segments_last_seq(segments) <= verify->last_seq);
}

/* The counters by slot, each of which has one. */
static void
verify_counters(struct verify *verify)
{
    const struct manifest *manifest = verify->manifest;
    struct manifest_counters at = {0};
    struct manifest_counter one;

    ASSERT(manifest->n_counters <= SCHEMA_COUNTERS_MAX);
    while (manifest__next_counter(manifest, &at, &one)) {
        ASSERT(one.serial > 0);
        ASSERT(one.serial <= manifest->last_serial);
        ASSERT(verify->serial[one.slot] == 0);
        verify->serial[one.slot] = one.serial;
    }
}

static void
verify_producers(const struct manifest *manifest)
{
    const struct producers_list *list = &manifest->producers;

    for (uint32_t i = 0; i < list->n; i++) {
        ASSERT(list->one[i].serial <= list->last_serial);
        ASSERT(i == 0 || list->one[i - 1].serial < list->one[i].serial);
    }
    for (uint32_t i = 0; i < list->n_windows; i++) {
        const struct producers_window *window = &list->window[i];

        ASSERT(window->producer < list->n);
        ASSERT(window->shard < manifest->shards);
        ASSERT(i == 0 || window[-1].producer < window->producer ||
            (window[-1].producer == window->producer &&
                window[-1].shard < window->shard));
    }
}

void
manifest_verify(const struct manifest *manifest, uint64_t last_seq)
{
    uint32_t shards = manifest->shards;
    struct verify verify = {.manifest = manifest, .last_seq = last_seq};

    ASSERT(manifest->epoch != 0 && manifest->log_number > 0);
    ASSERT(shards > 0 && (shards & (shards - 1)) == 0);
    ASSERT(manifest->schema_seq <= last_seq);
    ASSERT(manifest->checkpoint_seq <= last_seq);
    ASSERT(history__is_sound(&manifest->terms));
    ASSERT(manifest->committed_seq <= last_seq);
    ASSERT(manifest->handovers.n <= MOVED_MAX);
    verify.shard_bits = (unsigned)__builtin_ctz(shards);
    verify_counters(&verify);
    verify_segments(&verify);
    verify_producers(manifest);
    histories_verify(&manifest->histories);
    images_verify(&manifest->images);
    images_each(&manifest->images, verify_image, &verify);
}
