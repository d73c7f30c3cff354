/* SPDX-License-Identifier: BSD-3-Clause */
/* wal/manifest_verify: a manifest that may be written passes, and whatever is
 * wrong in one is found. */
#include "unit/breakages.h"
#include "unit/manifest_help.h"
#include "wal/image.h"

enum { SHARDS = 4, LAST_SEQ = 1000 };

static void
add_segment(struct manifest *manifest, uint64_t number, uint64_t first_id,
    uint64_t last_id, uint64_t seq)
{
    uint64_t of_shard[SHARDS] = {seq, seq, seq, seq};
    struct manifest_segment segment = {.number = number,
        .counter_serial = 5,
        .counter = 3,
        .first_id = first_id,
        .last_id = last_id,
        .records = 10,
        .seq = of_shard};
    ck_assert_int_eq(segments_add(&manifest->segments, &segment), 0);
}

static void
add_image(struct manifest *manifest, uint64_t first_row, uint64_t last_row,
    uint64_t seq)
{
    struct images_entry entry = {.first_row = first_row,
        .last_row = last_row,
        .seq = seq,
        .file = 8,
        .len = 100,
        .n = 7,
        .shard = 1,
        .counter = 3};
    ck_assert_int_eq(images_add(&manifest->images, &entry), 0);
}

/* Rows 0..999 of the counter in slot 3 are in a segment; an image beside them,
 * and a newer one of some of its rows. */
static void
make_whole(struct manifest *manifest)
{
    make_bare(manifest, SHARDS);
    manifest->schema_seq = 900;
    manifest->checkpoint_seq = 800;
    manifest->last_serial = 77;
    manifest->last_segment = 40;
    manifest->counter = calloc(2, sizeof *manifest->counter);
    ck_assert_ptr_nonnull(manifest->counter);
    manifest->n_counters = 2;
    manifest->counter[0].slot = 3;
    manifest->counter[0].serial = 5;
    manifest->counter[1].slot = 9;
    manifest->counter[1].serial = 70;
    add_segment(manifest, 40, 0, 3999, 700);
    add_segment(manifest, 39, 8000, 11999, 700);
    add_image(manifest, 500, 599, 700);
    add_image(manifest, 1000, 1999, 500);
    manifest->producers.last_serial = 6;
    manifest->producers.n = 2;
    manifest->producers.one = calloc(2, sizeof *manifest->producers.one);
    ck_assert_ptr_nonnull(manifest->producers.one);
    manifest->producers.one[0].serial = 4;
    manifest->producers.one[1].serial = 6;
    manifest->producers.n_windows = 2;
    manifest->producers.window = calloc(2, sizeof *manifest->producers.window);
    ck_assert_ptr_nonnull(manifest->producers.window);
    manifest->producers.window[1].producer = 1;
    ck_assert_int_eq(histories_add(&manifest->histories, 3, 33), 0);
    ck_assert_int_eq(histories_add(&manifest->histories, 12, 55), 0);
}

/* One of its images. */
static struct images_entry *
image_of(struct manifest *manifest)
{
    return (struct images_entry *)(uintptr_t)images_find(
        &manifest->images, 3, 1, 1000);
}

static void
look(void *context)
{
    manifest_verify(context, LAST_SEQ);
}

#define BREAKAGES(X)                                                          \
    X(it->epoch = 0)                                                          \
    X(it->log_number = 0)                                                     \
    X(it->shards = 3)                                                         \
    X(it->shards = 0)                                                         \
    X(it->schema_seq = LAST_SEQ + 1)                                          \
    X(it->checkpoint_seq = LAST_SEQ + 1)                                      \
    X(it->last_serial = 69)                                                   \
    X(it->counter[1].serial = 0)                                              \
    X(it->counter[1].slot = 3)                                                \
    X(it->last_segment = 39)                                                  \
    X(it->segments.shards = 2)                                                \
    X(it->segments.segment[1].seq[2] = LAST_SEQ + 1)                          \
    X(it->segments.segment[0].last_id = 8003)                                 \
    X(it->segments.segment[0].records = 0)                                    \
    X(add_image(it, 5000, 5999, LAST_SEQ + 1))                                \
    X(add_image(it, 400, 499, 699))                                           \
    X(add_image(it, 2500, 3500, 699))                                         \
    X(it->next_file = 8)                                                      \
    X(image_of(it)->len = 0)                                                  \
    X(image_of(it)->n = IMAGE_RECORDS_MAX + 1)                                \
    X(it->images.n++)                                                         \
    X(it->shards = it->segments.shards = 1)                                   \
    X(it->producers.last_serial = 5)                                          \
    X(it->producers.one[1].serial = 4)                                        \
    X(it->producers.window[1].producer = 2)                                   \
    X(it->producers.window[1].shard = SHARDS)                                 \
    X(it->producers.window[1].producer = 0)                                   \
    X(it->histories.entry[0].history = 0)                                     \
    X(it->histories.entry[0].from = 12)

static const char *const lines[] = {BREAKAGES(BREAKAGE_TEXT)};

static void
break_and_verify(void *context)
{
    struct breakage *breakage = context;
    struct manifest *it = breakage->of;
    BREAKAGES(BREAKAGE_DO)
    manifest_verify(it, LAST_SEQ);
}

START_TEST(test_whole)
{
    struct manifest manifest;
    make_bare(&manifest, SHARDS);
    manifest_verify(&manifest, 0);
    manifest_fini(&manifest);
    make_whole(&manifest);
    manifest_verify(&manifest, LAST_SEQ);
    manifest_fini(&manifest);
}
END_TEST

START_TEST(test_breakages)
{
    struct manifest manifest;
    make_whole(&manifest);
    expect_noticed(break_and_verify, &manifest, lines, COUNT_OF(lines));
    manifest_fini(&manifest);
}
END_TEST

/* What a cut leaves is what may be written. */
START_TEST(test_cut)
{
    struct manifest manifest;
    size_t n_cut;
    make_whole(&manifest);
    add_image(&manifest, 900, 2500, 600);
    ck_assert(!survives(look, &manifest));
    ck_assert_int_eq(manifest_cut_images(&manifest, &n_cut), 0);
    ck_assert_uint_eq(n_cut, 1);
    manifest_verify(&manifest, LAST_SEQ);
    manifest_fini(&manifest);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_whole, test_breakages, test_cut};
    return run_tests("manifest_verify", tests, COUNT_OF(tests));
}
