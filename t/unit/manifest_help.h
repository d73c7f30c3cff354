/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIT_MANIFEST_HELP_H
#define UNIT_MANIFEST_HELP_H

/* What the tests of wal/manifest share: its bytes, read back or damaged. */

#include "wal/manifest.h"

#include "base/buf.h"
#include "base/bytes.h"
#include "base/checksum.h"
#include "base/err.h"
#include "lib/fault_alloc.h"
#include "unit/check_help.h"

#include <stdio.h>

enum { SUM_BYTES = 8, HEAD_BYTES = 96, VERSION_AT = 8, VERSION_ORDINARY = 5 };

/* A manifest without counters, and without a segment. */
static inline void
make_bare(struct manifest *manifest, uint32_t shards)
{
    manifest_init(manifest);
    manifest->epoch = UINT64_C(0xfedcba9876543210);
    manifest->seed = UINT64_C(0x0123456789abcdef);
    manifest->shards = shards;
    manifest->log_number = 12;
    manifest->next_file = 9;
    manifest->segments.shards = shards;
}

/* What some_fn makes, and its bytes; ended with forget. */
static inline void
encode_some(void (*some_fn)(struct manifest *manifest),
    struct manifest *manifest, struct buf *buf)
{
    *buf = (struct buf){0};
    some_fn(manifest);
    ck_assert_int_eq(manifest__encode(manifest, buf), 0);
}

static inline void
forget(struct manifest *manifest, struct buf *buf)
{
    manifest_fini(manifest);
    buf_fini(buf);
}

/* Decodes into a manifest that has nothing yet. The err, with which it has
 * nothing afterwards. */
static inline int
decode(const void *bytes, size_t len, struct manifest *out)
{
    char *copy = copy_of(bytes, len);
    manifest_init(out);
    int err = manifest_decode((uint8_t *)copy, len, out);
    free(copy);
    if (err != 0) {
        ck_assert_ptr_null(out->counter);
        ck_assert_ptr_null(out->images.list);
        ck_assert_ptr_null(out->segments.segment);
        ck_assert_uint_eq(out->last_segment, 0);
    }
    return err;
}

/* Gives bytes that were changed their length and a right checksum. */
static inline void
seal(struct buf *buf)
{
    uint8_t *bytes = (uint8_t *)buf->data;
    bytes_put_u64(bytes + 16, buf->len);
    bytes_put_u64(bytes + buf->len - SUM_BYTES,
        checksum64(bytes, buf->len - SUM_BYTES, 0));
}

/* Decodes a manifest, of which manifest is all but a list: the bytes of that
 * come before the checksum, and n_at is where their number n stands. The err.
 */
static inline int
decode_listed(const struct manifest *manifest, size_t n_at, uint64_t n,
    const void *bytes, size_t len, struct manifest *got)
{
    static const char sum[SUM_BYTES];
    struct buf buf = {0};
    ck_assert_int_eq(manifest__encode(manifest, &buf), 0);
    buf.len -= SUM_BYTES;
    buf_add(&buf, bytes, len);
    buf_add(&buf, sum, SUM_BYTES);
    bytes_put_u64((uint8_t *)buf.data + n_at, n);
    seal(&buf);
    int err = decode(buf.data, buf.len, got);
    buf_fini(&buf);
    return err;
}

/* Each bit that is flipped, each cut and a byte behind are damage of what
 * some_fn makes. */
static inline void
expect_damage_is_seen(void (*some_fn)(struct manifest *manifest))
{
    struct manifest manifest, got;
    struct buf buf;
    encode_some(some_fn, &manifest, &buf);
    for (size_t bit = 0; bit < 8 * buf.len; bit++) {
        buf.data[bit / 8] ^= (char)(1 << bit % 8);
        ck_assert_int_eq(decode(buf.data, buf.len, &got), ERR_CORRUPT);
        buf.data[bit / 8] ^= (char)(1 << bit % 8);
    }
    for (size_t len = 0; len < buf.len; len++) {
        ck_assert_int_eq(decode(buf.data, len, &got), ERR_CORRUPT);
    }
    buf_add(&buf, "", 1);
    ck_assert_int_eq(decode(buf.data, buf.len, &got), ERR_CORRUPT);
    forget(&manifest, &buf);
}

/* Each allocation for images and segments fails once, and it is more than n_min
 * of them: what some_fn makes is not decoded then. At last it is, and same_fn
 * compares. */
static inline void
expect_want_of_memory_is_seen(void (*some_fn)(struct manifest *manifest),
    size_t n_min,
    void (*same_fn)(const struct manifest *a, const struct manifest *b))
{
    struct manifest manifest, got;
    struct buf buf;
    struct fault_alloc fault;
    fault_alloc_init(&fault);
    encode_some(some_fn, &manifest, &buf);
    manifest_init(&got);
    got.images.alloc = got.segments.alloc = &fault.alloc;
    for (size_t n = 1;; n++) {
        size_t failures = fault.failures;
        fault.fail_from = fault.fail_to = fault.calls + n;
        int err = manifest_decode((uint8_t *)buf.data, buf.len, &got);
        if (fault.failures == failures) {
            ck_assert_int_eq(err, 0);
            ck_assert_uint_gt(n, n_min);
            break;
        }
        ck_assert_int_eq(err, ERR_NO_MEMORY);
        ck_assert_uint_eq(fault.live_bytes, 0);
    }
    same_fn(&got, &manifest);
    manifest_fini(&got);
    ck_assert_uint_eq(fault.live_bytes, 0);
    forget(&manifest, &buf);
}

/* What some_fn makes has that version, is read back, as same_fn says, and is no
 * manifest under another version from the ordinary one on. */
static inline void
expect_version(void (*some_fn)(struct manifest *manifest), unsigned expected,
    void (*same_fn)(const struct manifest *a, const struct manifest *b))
{
    struct manifest manifest, got;
    struct buf buf;
    encode_some(some_fn, &manifest, &buf);
    uint8_t *version_at = (uint8_t *)buf.data + VERSION_AT;
    ck_assert_uint_eq(bytes_get_u32(version_at), expected);
    ck_assert_int_eq(decode(buf.data, buf.len, &got), 0);
    same_fn(&got, &manifest);
    manifest_fini(&got);
    for (unsigned version = VERSION_ORDINARY;
         version <= MANIFEST_VERSION_NEWEST + 1; version++) {
        bytes_put_u32(version_at, version);
        seal(&buf);
        int err = decode(buf.data, buf.len, &got);
        ck_assert_int_eq(err,
            version == expected                     ? 0
                : version > MANIFEST_VERSION_NEWEST ? ERR_NEWER_FORMAT
                                                    : ERR_CORRUPT);
        if (err == 0) {
            manifest_fini(&got);
        }
    }
    forget(&manifest, &buf);
}

/* Writes a golden file that is not there: once, by a test with $MAKE_GOLDEN
 * set. */
static inline void
make_golden(const char *path, const struct buf *buf)
{
    FILE *file = fopen(path, "wbx");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(buf->data, 1, buf->len, file), buf->len);
    ck_assert_int_eq(fclose(file), 0);
}

/* A golden file is what some_fn makes, by same_fn, and that is encoded to the
 * same bytes to this day. */
static inline void
expect_golden(const char *path, void (*some_fn)(struct manifest *manifest),
    void (*same_fn)(const struct manifest *a, const struct manifest *b))
{
    struct manifest manifest, got;
    struct buf buf;
    char bytes[4096];
    encode_some(some_fn, &manifest, &buf);
    if (getenv("MAKE_GOLDEN") != NULL && access(path, F_OK) != 0) {
        make_golden(path, &buf);
    }
    FILE *file = fopen(path, "rb");
    ck_assert_ptr_nonnull(file);
    size_t len = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    ck_assert_int_eq(decode(bytes, len, &got), 0);
    same_fn(&got, &manifest);
    ck_assert_uint_eq(buf.len, len);
    ck_assert_mem_eq(buf.data, bytes, len);
    manifest_fini(&got);
    forget(&manifest, &buf);
}

#endif
