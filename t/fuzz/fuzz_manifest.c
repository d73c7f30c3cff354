/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzzes the reader of the manifest. The bytes are read as they are, and once
 * more with magic, version, length and checksum made right, so that what is
 * behind them is reached. What is read at all has sound images, and encoded,
 * read and encoded again it is the same. Its counters are given to
 * schema_restore, which may refuse them and must not stumble. At last its
 * segments take from its images what is theirs. */
#include "base/assert.h"
#include "base/buf.h"
#include "base/bytes.h"
#include "base/checksum.h"
#include "base/err.h"
#include "schema/restore.h"
#include "wal/manifest.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { HEAD_BYTES = 80, SUM_BYTES = 8 };

static void
restore_all(const struct manifest *manifest)
{
    struct schema *schema = schema_create();
    ASSERT(schema != NULL);
    for (uint32_t i = 0; i < manifest->n_counters; i++) {
        struct schema *next = NULL;
        int err = schema_restore(
            schema, &manifest->counter[i], manifest->last_serial, &next);
        ASSERT(err == 0 || err == ERR_CORRUPT);
        if (err == 0) {
            schema_destroy(&schema);
            schema = next;
        }
    }
    int err = schema_check(schema);
    ASSERT(err == 0 || err == ERR_CORRUPT);
    schema_destroy(&schema);
}

static void
read_manifest(const uint8_t *bytes, size_t len)
{
    struct manifest manifest, again;
    struct buf first = {0};
    struct buf second = {0};
    manifest_init(&manifest);
    manifest_init(&again);
    int err = manifest_decode(bytes, len, &manifest);
    ASSERT(err == 0 || err == ERR_CORRUPT || err == ERR_NEWER_FORMAT);
    if (err == 0) {
        images_verify(&manifest.images);
        segments_verify(&manifest.segments);
        restore_all(&manifest);
        ASSERT(manifest__encode(&manifest, &first) == 0);
        ASSERT(manifest_decode((uint8_t *)first.data, first.len, &again) == 0);
        ASSERT(manifest__encode(&again, &second) == 0);
        ASSERT(first.len == second.len);
        ASSERT(memcmp(first.data, second.data, first.len) == 0);
        size_t n_cut;
        (void)manifest_drop_gone(&manifest);
        ASSERT(manifest_cut_images(&manifest, &n_cut) == 0);
        images_verify(&manifest.images);
    }
    buf_fini(&first);
    buf_fini(&second);
    manifest_fini(&again);
    manifest_fini(&manifest);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    uint8_t *copy;
    read_manifest(bytes, len);
    if (len < HEAD_BYTES) {
        return 0;
    }
    copy = malloc(len + SUM_BYTES);
    ASSERT(copy != NULL);
    memcpy(copy, bytes, len);
    memcpy(copy, "TALLYMAN", 8);
    /* with segments, with kinds of columns, with handovers, or nothing */
    bool is_kept = bytes[8] == 2 || bytes[8] == 6 || bytes[8] == 8;
    bytes_put_u32(copy + 8, is_kept ? bytes[8] : 1);
    bytes_put_u64(copy + 16, len + SUM_BYTES);
    bytes_put_u64(copy + len, checksum64(copy, len, 0));
    read_manifest(copy, len + SUM_BYTES);
    free(copy);
    return 0;
}
