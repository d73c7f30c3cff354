/* SPDX-License-Identifier: BSD-3-Clause */
/* The manifest as bytes (doc/format-manifest.md has what follows the head).
 *
 *   OFFSET SIZE
 *        0    8 "TALLYMAN"
 *        8    4 version: 1, or 2 where there has been a segment, or 3 where
 *               there has been a producer, or 4 where histories are named, or
 *               5, where log and checkpoint files have names with suffixes, or
 *               6, where there is a mark, a list, a column of members or a
 *               counter with cold=never, or 7, where there have been terms,
 *               or 8, where ids have been handed over, or 9, where there is
 *               a column of members=about, or 10, where there are names or a
 *               counter with primarykey=text
 *       12    4 shards
 *       16    8 bytes of the file, all of them
 *       24    8 epoch
 *       32    8 seed of the engine
 *       40    8 number of the log file that replay begins with
 *       48    8 number of the next checkpoint file
 *       56    8 sequence number that the schema is of
 *       64    4 last serial number given out
 *       68    4 counters
 *       72    8 images
 *       80    8 sequence number that the last checkpoint is of
 *       88    8 when that ended, in seconds since 1970
 *       96      from version 2 on: 8 bytes, the last number of a segment file,
 *               and 8, the number of segments
 *      112      from version 3 on: 4 bytes, the last serial number of a
 *               producer, and 4, the number of producers
 *      120      from version 4 on: 4 bytes, the number of histories, and 4, the
 *               number of entries about log files
 *      128      from version 5 on: 8 bytes, how many manifests were written
 *      136      from version 7 on: 8 bytes, up to which batch all is committed
 *               from version 4 on the histories, and the entries about log
 *               files
 *               the counters (wal/schema_code.h), the images, the segments
 *               (wal/segments_code.h), the producers (wal/producers.c)
 *               from version 7 on the terms (history_put)
 *               from version 8 on the handovers: 1 byte, how many, which only
 *               from version 9 on may be 0, and each as an entry of the log
 *               has it (wal/entry.h)
 *    len-8    8 checksum of 0..len-9
 *
 * Magic, version and checksum are those of wal/envelope.h. The lowest
 * version that has room for all there is is written, so that a program of then
 * can be started again; it refuses a higher one as newer.
 *
 * What can go wrong: memory, damage. Nothing that is read is believed beyond
 * the bytes that are there: each counter and each image has some. */
#include "wal/manifest.h"

#include "base/assert.h"
#include "base/buf.h"
#include "base/bytes.h"
#include "base/err.h"
#include "wal/entry.h"
#include "wal/envelope.h"
#include "wal/image.h"
#include "wal/schema_code.h"
#include "wal/segments_code.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
    VERSION = 1,
    VERSION_SEGMENTS = 2,
    VERSION_PRODUCERS = 3,
    VERSION_HISTORIES = 4,
    VERSION_NAMES = 5,
    VERSION_KINDS = 6, /* it has the head of version 5 */
    VERSION_TERMS = 7, /* with and without such kinds */
    VERSION_MOVED = 8, /* with the head of version 7,
                                              * with and without terms */
    VERSION_ABOUT = 9, /* likewise, and with and without handovers */
    VERSION_TEXT = MANIFEST_VERSION_NEWEST, /* likewise, and with and without
                                             * columns of about */
    HEAD_BYTES = 96,
    HEAD_MORE_BYTES = 16,     /* of version 2 and above */
    HEAD_LAST_BYTES = 8,      /* of version 3 and above, behind those */
    HEAD_HISTORIES_BYTES = 8, /* of version 4 and above, behind those */
    HEAD_WRITES_BYTES = 8,    /* of version 5 and above, behind those */
    HEAD_TERMS_BYTES = 8,     /* of version 7 and above, behind those */
    HISTORY_BYTES = 8,
    CHECKSUM_BYTES = ENVELOPE_CHECKSUM_BYTES,
    SHARDS_MAX = 4096,
    FLAG_PART = 1,
    FLAG_LIST = 2, /* of another counter or shard than the one before */
    FLAGS = FLAG_PART | FLAG_LIST,
    /* flags, list, rows, their number, seq, file, offset, len, n, history */
    ENTRY_BYTES_MAX = 1 + 1 + 7 * BYTES_VARINT_MAX + 3 * BYTES_VARINT_MAX,
    ENTRY_BYTES_MIN = 8
};

#define MAGIC                                                                 \
    {                                                                         \
        'T', 'A', 'L', 'L', 'Y', 'M', 'A', 'N'                                \
    }

static const struct envelope envelope_of[] = {
    [VERSION] = {8, MAGIC, VERSION},
    [VERSION_SEGMENTS] = {8, MAGIC, VERSION_SEGMENTS},
    [VERSION_PRODUCERS] = {8, MAGIC, VERSION_PRODUCERS},
    [VERSION_HISTORIES] = {8, MAGIC, VERSION_HISTORIES},
    [VERSION_NAMES] = {8, MAGIC, VERSION_NAMES},
    [VERSION_KINDS] = {8, MAGIC, VERSION_KINDS},
    [VERSION_TERMS] = {8, MAGIC, VERSION_TERMS},
    [VERSION_MOVED] = {8, MAGIC, VERSION_MOVED},
    [VERSION_ABOUT] = {8, MAGIC, VERSION_ABOUT},
    [VERSION_TEXT] = {8, MAGIC, VERSION_TEXT},
};

struct text_look {
    const struct manifest *manifest;
    bool has;
};

static bool
has_kinds(const struct manifest *manifest)
{
    for (uint32_t i = 0; i < manifest->n_counters; i++) {
        if (schema_code_has_kinds(&manifest->counter[i])) {
            return true;
        }
    }
    return false;
}

static bool
has_about(const struct manifest *manifest)
{
    for (uint32_t i = 0; i < manifest->n_counters; i++) {
        if (schema_code_has_about(&manifest->counter[i])) {
            return true;
        }
    }
    return false;
}

static void
note_name(void *context, const struct images_entry *entry)
{
    struct text_look *look = context;

    look->has |= manifest_is_of_names(look->manifest, entry);
}

/* Whether it has names, or counters whose keys they are. */
static bool
has_text(const struct manifest *manifest)
{
    struct text_look look = {.manifest = manifest};

    images_each(&manifest->images, note_name, &look);
    for (uint32_t i = 0; i < manifest->n_counters; i++) {
        look.has |= manifest->counter[i].key_is_text;
    }
    return look.has;
}

/* That whose head has room, but for those above VERSION_TERMS and KINDS.
 * n_histories: those that are named. */
static unsigned
head_version_of(const struct manifest *manifest, size_t n_histories)
{
    return manifest->terms.n > 0              ? VERSION_TERMS
        : manifest->writes > 0                ? VERSION_NAMES
        : n_histories > 0                     ? VERSION_HISTORIES
        : manifest->producers.last_serial > 0 ? VERSION_PRODUCERS
        : manifest->last_segment > 0          ? VERSION_SEGMENTS
                                              : VERSION;
}

static size_t
head_bytes(unsigned version)
{
    return HEAD_BYTES +
        (version >= VERSION_SEGMENTS ? (size_t)HEAD_MORE_BYTES : 0) +
        (version >= VERSION_PRODUCERS ? (size_t)HEAD_LAST_BYTES : 0) +
        (version >= VERSION_HISTORIES ? (size_t)HEAD_HISTORIES_BYTES : 0) +
        (version >= VERSION_NAMES ? (size_t)HEAD_WRITES_BYTES : 0) +
        (version >= VERSION_TERMS ? (size_t)HEAD_TERMS_BYTES : 0);
}

static bool
shards_are_right(uint32_t shards)
{
    return shards >= 1 && shards <= SHARDS_MAX && (shards & (shards - 1)) == 0;
}

/* What holds of every image of the manifest. */
static bool
image_is_right(
    const struct manifest *manifest, const struct images_entry *entry)
{
    return entry->first_row <= entry->last_row &&
        (entry->shard < manifest->shards ||
            manifest_is_of_names(manifest, entry) ||
            (manifest_is_of_tables(manifest, entry) &&
                manifest__has_column(manifest, entry))) &&
        entry->file < manifest->next_file && entry->len > 0 &&
        entry->len <= image_bytes_max() &&
        entry->offset <= (uint64_t)INT64_MAX - entry->len &&
        entry->n <= IMAGE_RECORDS_MAX;
}

/* The entries one behind the other, each against the one before. */
struct image_writer {
    const struct manifest *manifest;
    const struct histories_set *set; /* NULL: histories are left out */
    struct buf *out;
    struct images_entry before;
    bool has_before;
};

static bool
is_same_list(const struct images_entry *a, const struct images_entry *b)
{
    return a->counter == b->counter && a->shard == b->shard;
}

/* Where a block would be that follows that of entry in its file. */
static uint64_t
end_of(const struct images_entry *entry)
{
    return entry->offset + entry->len;
}

static void
put_image(void *context, const struct images_entry *entry)
{
    struct image_writer *writer = context;
    struct images_entry *before = &writer->before;
    uint8_t *out = (uint8_t *)buf_reserve(writer->out, ENTRY_BYTES_MAX);
    size_t len = 1;
    uint64_t next = 0; /* the first row there may be */

    ASSERT(image_is_right(writer->manifest, entry));
    if (out == NULL) {
        return; /* the buffer knows */
    }
    out[0] = entry->part ? FLAG_PART : 0;
    if (!writer->has_before || !is_same_list(entry, before)) {
        out[0] |= FLAG_LIST;
        out[len++] = entry->counter;
        len += bytes_put_varint(out + len, entry->shard);
    } else {
        ASSERT(before->last_row < entry->first_row);
        next = before->last_row + 1;
    }
    len += bytes_put_varint(out + len, entry->first_row - next);
    len += bytes_put_varint(out + len, entry->last_row - entry->first_row);
    len += bytes_put_varint(out + len, bytes_zigzag(entry->seq - before->seq));
    len +=
        bytes_put_varint(out + len, bytes_zigzag(entry->file - before->file));
    len += bytes_put_varint(
        out + len, bytes_zigzag(entry->offset - end_of(before)));
    len += bytes_put_varint(out + len, entry->len);
    len += bytes_put_varint(out + len, entry->n);
    if (writer->set != NULL) {
        len += bytes_put_varint(
            out + len, histories__set_place(writer->set, entry->history));
    }
    ASSERT(len <= ENTRY_BYTES_MAX);
    writer->out->len += len;
    *before = *entry;
    writer->has_before = true;
}

static void
put_head(const struct manifest *manifest, unsigned version,
    const struct histories_set *set, uint8_t *out)
{
    envelope_begin(&envelope_of[version], out);
    bytes_put_u32(out + 12, manifest->shards);
    bytes_put_u64(out + 24, manifest->epoch);
    bytes_put_u64(out + 32, manifest->seed);
    bytes_put_u64(out + 40, manifest->log_number);
    bytes_put_u64(out + 48, manifest->next_file);
    bytes_put_u64(out + 56, manifest->schema_seq);
    bytes_put_u32(out + 64, manifest->last_serial);
    bytes_put_u32(out + 68, manifest->n_counters);
    bytes_put_u64(out + 72, manifest->images.n);
    bytes_put_u64(out + 80, manifest->checkpoint_seq);
    bytes_put_u64(out + 88, manifest->checkpoint_time);
    if (version >= VERSION_SEGMENTS) {
        bytes_put_u64(out + HEAD_BYTES, manifest->last_segment);
        bytes_put_u64(out + HEAD_BYTES + 8, manifest->segments.n);
    }
    if (version >= VERSION_PRODUCERS) {
        out += HEAD_BYTES + HEAD_MORE_BYTES;
        bytes_put_u32(out, manifest->producers.last_serial);
        bytes_put_u32(out + 4, manifest->producers.n);
    }
    if (version >= VERSION_HISTORIES) {
        out += HEAD_LAST_BYTES;
        bytes_put_u32(out, (uint32_t)set->n);
        bytes_put_u32(out + 4, (uint32_t)manifest->histories.n);
    }
    if (version >= VERSION_NAMES) {
        out += HEAD_HISTORIES_BYTES;
        bytes_put_u64(out, manifest->writes);
    }
    if (version >= VERSION_TERMS) {
        out += HEAD_WRITES_BYTES;
        bytes_put_u64(out, manifest->committed_seq);
    }
}

static void
put_counters(const struct manifest *manifest, struct buf *out)
{
    for (uint32_t i = 0; i < manifest->n_counters; i++) {
        char *at = buf_reserve(out, SCHEMA_CODE_BYTES_MAX);

        if (at == NULL) {
            return;
        }
        ASSERT(manifest->counter[i].serial > 0);
        ASSERT(manifest->counter[i].serial <= manifest->last_serial);
        out->len += schema_code_put((uint8_t *)at, &manifest->counter[i]);
    }
}

static void
note_history(void *context, const struct images_entry *entry)
{
    histories__set_add(context, entry->history);
}

/* All that a manifest names. */
static void
gather(const struct manifest *manifest, struct histories_set *set)
{
    for (size_t i = 0; i < manifest->histories.n; i++) {
        histories__set_add(set, manifest->histories.entry[i].history);
    }
    images_each(&manifest->images, note_history, set);
    for (size_t i = 0; i < manifest->segments.n; i++) {
        histories__set_add(set, manifest->segments.segment[i].history);
    }
}

/* The histories, and which log files are of which of them. */
static void
put_histories(const struct histories *histories,
    const struct histories_set *set, struct buf *out)
{
    uint64_t before = 0;

    for (size_t i = 0; i < set->n; i++) {
        uint8_t *at = (uint8_t *)buf_reserve(out, HISTORY_BYTES);

        if (at == NULL) {
            return;
        }
        bytes_put_u64(at, set->history[i]);
        out->len += HISTORY_BYTES;
    }
    for (size_t i = 0; i < histories->n; i++) {
        const struct histories_entry *entry = &histories->entry[i];
        uint8_t *at = (uint8_t *)buf_reserve(out, 2 * BYTES_VARINT_MAX);
        size_t len;

        ASSERT(entry->from > before);
        if (at == NULL) {
            return;
        }
        len = bytes_put_varint(at, entry->from - before - 1);
        len += bytes_put_varint(
            at + len, histories__set_place(set, entry->history));
        out->len += len;
        before = entry->from;
    }
}

/* That which has room for all. */
static unsigned
version_of(const struct manifest *manifest, size_t n_histories)
{
    unsigned version = head_version_of(manifest, n_histories);

    return has_text(manifest)                            ? VERSION_TEXT
        : has_about(manifest)                            ? VERSION_ABOUT
        : manifest->handovers.n > 0                      ? VERSION_MOVED
        : version < VERSION_KINDS && has_kinds(manifest) ? VERSION_KINDS
                                                         : version;
}

static void
put_terms(const struct history *terms, struct buf *out)
{
    uint8_t *at = (uint8_t *)buf_reserve(out, HISTORY_BYTES_MAX);

    ASSERT(history__is_sound(terms));
    if (at != NULL) {
        out->len += history_put(terms, at);
    }
}

static void
put_handovers(const struct moved_list *list, struct buf *out)
{
    uint8_t *at = (uint8_t *)buf_reserve(
        out, 1 + (size_t)list->n * ENTRY_MOVED_BYTES_MAX);

    ASSERT(list->n <= MOVED_MAX);
    if (at != NULL) {
        size_t len = 1;

        at[0] = (uint8_t)list->n;
        for (uint32_t i = 0; i < list->n; i++) {
            ASSERT(list->one[i].address[0] != '\0');
            len += entry_put_moved(at + len, &list->one[i]);
        }
        out->len += len;
    }
}

static int
encode(const struct manifest *manifest, const struct histories_set *set,
    struct buf *out)
{
    unsigned version = version_of(manifest, set->n);
    const struct histories_set *named =
        version >= VERSION_HISTORIES ? set : NULL;
    struct image_writer writer = {
        .manifest = manifest, .set = named, .out = out};
    size_t start = out->len;
    size_t len;
    uint8_t *head;

    ASSERT(manifest->epoch != 0 && shards_are_right(manifest->shards));
    ASSERT(manifest->n_counters <= SCHEMA_COUNTERS_MAX);
    histories_verify(&manifest->histories);
    ASSERT(manifest->writes == 0 || manifest_writer(manifest) != 0);
    ASSERT(version < VERSION_KINDS || manifest->writes > 0);
    ASSERT(manifest->terms.n > 0 || manifest->committed_seq == 0);
    ASSERT(segments_last_file(&manifest->segments) <= manifest->last_segment);
    ASSERT(manifest->segments.n == 0 ||
        manifest->segments.shards == manifest->shards);
    head = (uint8_t *)buf_reserve(out, head_bytes(version));
    if (head == NULL) {
        return ERR_NO_MEMORY;
    }
    put_head(manifest, version, set, head);
    out->len += head_bytes(version);
    put_histories(&manifest->histories, set, out);
    put_counters(manifest, out);
    images_each(&manifest->images, put_image, &writer);
    segments_code_put(&manifest->segments, named, out);
    producers__list_put(&manifest->producers, out);
    if (version >= VERSION_TERMS) {
        put_terms(&manifest->terms, out);
    }
    if (version >= VERSION_MOVED) {
        put_handovers(&manifest->handovers, out);
    }
    (void)buf_reserve(out, CHECKSUM_BYTES);
    if (out->failed) {
        out->len = start;
        return ERR_NO_MEMORY;
    }
    len = out->len - start;
    head = (uint8_t *)out->data + start;
    bytes_put_u64(head + 16, len + CHECKSUM_BYTES);
    envelope_end(head, len);
    out->len += CHECKSUM_BYTES;
    return 0;
}

int
manifest__encode(const struct manifest *manifest, struct buf *out)
{
    struct histories_set set = {0};
    int err;

    gather(manifest, &set);
    err = set.is_short ? ERR_NO_MEMORY : encode(manifest, &set, out);
    histories__set_fini(&set);
    return err;
}

/* False where there is no such head; the number of images goes to *n_images,
 * and images, counters and segments stay empty. */
static bool
get_head(
    const uint8_t *in, size_t len, struct manifest *out, uint64_t *n_images)
{
    if (len < HEAD_BYTES + CHECKSUM_BYTES || bytes_get_u64(in + 16) != len) {
        return false;
    }
    out->shards = bytes_get_u32(in + 12);
    out->epoch = bytes_get_u64(in + 24);
    out->seed = bytes_get_u64(in + 32);
    out->log_number = bytes_get_u64(in + 40);
    out->next_file = bytes_get_u64(in + 48);
    out->schema_seq = bytes_get_u64(in + 56);
    out->last_serial = bytes_get_u32(in + 64);
    out->n_counters = bytes_get_u32(in + 68);
    *n_images = bytes_get_u64(in + 72);
    out->checkpoint_seq = bytes_get_u64(in + 80);
    out->checkpoint_time = bytes_get_u64(in + 88);
    out->segments.shards = out->shards;
    return out->epoch != 0 && shards_are_right(out->shards) &&
        out->n_counters <= SCHEMA_COUNTERS_MAX;
}

static int
get_counters(const uint8_t **in, const uint8_t *end, struct manifest *out)
{
    uint32_t n = out->n_counters;

    out->n_counters = 0;
    if (n == 0) {
        return 0;
    }
    out->counter = calloc(n, sizeof *out->counter);
    if (out->counter == NULL) {
        return ERR_NO_MEMORY;
    }
    for (; out->n_counters < n; out->n_counters++) {
        struct schema_counter *counter = &out->counter[out->n_counters];

        if (!schema_code_get(in, end, counter) || counter->serial == 0 ||
            counter->serial > out->last_serial) {
            return ERR_CORRUPT;
        }
    }
    return 0;
}

static bool
get_below(
    const uint8_t **in, const uint8_t *end, uint64_t limit, uint64_t *out)
{
    return bytes_get_varint(in, end, out) && *out < limit;
}

/* Adds a distance; false where the sum passes 2^64-1. */
static bool
get_above(const uint8_t **in, const uint8_t *end, uint64_t from, uint64_t *out)
{
    uint64_t distance;

    return bytes_get_varint(in, end, &distance) &&
        !__builtin_add_overflow(from, distance, out);
}

/* Adds a distance that may be negative. */
static bool
get_near(const uint8_t **in, const uint8_t *end, uint64_t from, uint64_t *out)
{
    uint64_t code;

    if (!bytes_get_varint(in, end, &code)) {
        return false;
    }
    *out = from + bytes_unzigzag(code);
    return true;
}

/* Reads which list the entry is in, and its first row; *entry is the one
 * before, unless this is the first. Lists ascend. */
static bool
get_place(const uint8_t **in, const uint8_t *end, bool is_first,
    struct images_entry *entry)
{
    uint8_t flags = *(*in)++;
    uint64_t next = entry->last_row + 1;
    uint64_t shard;

    entry->part = (flags & FLAG_PART) != 0;
    if ((flags & ~(unsigned)FLAGS) != 0 || *in == end) {
        return false;
    }
    if ((flags & FLAG_LIST) != 0) {
        uint8_t counter = *(*in)++;

        if (!get_below(in, end, 2 * SHARDS_MAX + 1, &shard) ||
            (!is_first &&
                (counter < entry->counter ||
                    (counter == entry->counter && shard <= entry->shard)))) {
            return false;
        }
        entry->counter = counter;
        entry->shard = (uint16_t)shard;
        next = 0;
    } else if (is_first || next == 0) {
        return false;
    }
    return get_above(in, end, next, &entry->first_row);
}

/* Makes *entry, which is the one before, the next one. */
static bool
get_image(const uint8_t **in, const uint8_t *end,
    const struct histories_set *set, const struct manifest *out,
    struct images_entry *entry)
{
    uint64_t offset_near = end_of(entry);
    uint64_t len, n, place = 0;

    if (end - *in < ENTRY_BYTES_MIN ||
        !get_place(in, end, out->images.n == 0, entry) ||
        !get_above(in, end, entry->first_row, &entry->last_row) ||
        !get_near(in, end, entry->seq, &entry->seq) ||
        !get_near(in, end, entry->file, &entry->file) ||
        !get_near(in, end, offset_near, &entry->offset) ||
        !get_below(in, end, UINT32_MAX, &len) ||
        !get_below(in, end, UINT32_MAX, &n) ||
        (set != NULL && !bytes_get_varint(in, end, &place)) ||
        (set != NULL && !histories__set_get(set, place, &entry->history))) {
        return false;
    }
    entry->len = (uint32_t)len;
    entry->n = (uint32_t)n;
    return image_is_right(out, entry);
}

static int
get_images(const uint8_t **in, const uint8_t *end, uint64_t n,
    const struct histories_set *set, struct manifest *out)
{
    struct images_entry entry = {0};

    for (; n > 0; n--) {
        if (!get_image(in, end, set, out, &entry)) {
            return ERR_CORRUPT;
        }
        if (images_add(&out->images, &entry) != 0) {
            return ERR_NO_MEMORY;
        }
    }
    return 0;
}

/* How many there are of what later versions have. */
struct counts {
    uint64_t images, segments;
    uint32_t producers, histories, logs;
};

/* What the heads of versions from 2 on have more. A version is the lowest that
 * has room: one that is not needed is damage. Whether versions from 6 on are
 * needed, what is behind the head says (get_all). */
static bool
get_head_more(const uint8_t **in, const uint8_t *end, unsigned version,
    struct manifest *out, struct counts *n)
{
    if ((size_t)(end - *in) < head_bytes(version) - HEAD_BYTES) {
        return false;
    }
    if (version >= VERSION_SEGMENTS) {
        out->last_segment = bytes_get_u64(*in);
        n->segments = bytes_get_u64(*in + 8);
        *in += HEAD_MORE_BYTES;
    }
    if (version >= VERSION_PRODUCERS) {
        out->producers.last_serial = bytes_get_u32(*in);
        n->producers = bytes_get_u32(*in + 4);
        *in += HEAD_LAST_BYTES;
    }
    if (version >= VERSION_HISTORIES) {
        n->histories = bytes_get_u32(*in);
        n->logs = bytes_get_u32(*in + 4);
        *in += HEAD_HISTORIES_BYTES;
    }
    if (version >= VERSION_NAMES) {
        out->writes = bytes_get_u64(*in);
        *in += HEAD_WRITES_BYTES;
    }
    if (version >= VERSION_TERMS) {
        out->committed_seq = bytes_get_u64(*in);
        *in += HEAD_TERMS_BYTES;
    }
    return head_version_of(out, n->histories) ==
        (version >= VERSION_KINDS ? (unsigned)VERSION_NAMES : version) &&
        (version < VERSION_NAMES || n->logs > 0);
}

/* Which of the versions it is. */
static int
check(const uint8_t *bytes, size_t len, unsigned *version)
{
    int err = ERR_NEWER_FORMAT;

    for (unsigned v = VERSION; v <= VERSION_TEXT && err == ERR_NEWER_FORMAT;
         v++) {
        err = envelope_check(&envelope_of[v], bytes, len);
        *version = v;
    }
    return err;
}

static int
get_set(const uint8_t **in, const uint8_t *end, uint32_t n,
    struct histories_set *set)
{
    uint64_t before = 0;

    for (; n > 0; n--) {
        uint64_t history;

        if (end - *in < HISTORY_BYTES) {
            return ERR_CORRUPT;
        }
        history = bytes_get_u64(*in);
        *in += HISTORY_BYTES;
        if (history <= before) {
            return ERR_CORRUPT;
        }
        histories__set_add(set, history);
        before = history;
    }
    return set->is_short ? ERR_NO_MEMORY : 0;
}

/* Which log files are of which history. */
static int
get_logs(const uint8_t **in, const uint8_t *end, uint32_t n,
    const struct histories_set *set, struct histories *out)
{
    uint64_t from = 0;

    for (; n > 0; n--) {
        uint64_t distance, place, history;

        if (!bytes_get_varint(in, end, &distance) ||
            distance >= UINT64_MAX - from ||
            !bytes_get_varint(in, end, &place) ||
            !histories__set_get(set, place, &history) || history == 0) {
            return ERR_CORRUPT;
        }
        from += distance + 1;
        if (histories_add(out, from, history) != 0) {
            return ERR_NO_MEMORY;
        }
    }
    return 0;
}

/* Terms, which from version 8 on need not be there. */
static int
get_terms(const uint8_t **in, const uint8_t *end, unsigned version,
    struct manifest *out)
{
    return history_get(in, end, &out->terms) &&
            (version == VERSION_TERMS
                    ? out->terms.n > 0
                    : out->terms.n > 0 || out->committed_seq == 0)
        ? 0
        : ERR_CORRUPT;
}

/* In version 8 there is at least one; no rule stands twice. */
static int
get_handovers(const uint8_t **in, const uint8_t *end, unsigned version,
    struct moved_list *out)
{
    struct entry_reader reader = {.at = *in + 1, .end = end};
    struct entry entry;
    uint32_t n = *in < end ? **in : 0;

    if (*in == end || (n == 0 && version == VERSION_MOVED) || n > MOVED_MAX) {
        return ERR_CORRUPT;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (!entry_next(&reader, &entry) || entry.kind != ENTRY_MOVED ||
            entry.moved.address[0] == '\0' ||
            moved_list_find(out, entry.moved.rule) != NULL) {
            return ERR_CORRUPT;
        }
        (void)moved_list_put(out, &entry.moved);
    }
    *in = reader.at;
    return 0;
}

/* What is behind the head of that version. */
static int
get_all(const uint8_t **in, const uint8_t *end, unsigned version,
    const struct counts *n, struct histories_set *set, struct manifest *out)
{
    const struct histories_set *named =
        version >= VERSION_HISTORIES ? set : NULL;
    const struct segments_code segments = {
        .n = n->segments, .last_file = out->last_segment, .set = named};
    int err = get_set(in, end, n->histories, set);

    if (err == 0) {
        err = get_logs(in, end, n->logs, set, &out->histories);
    }
    if (err == 0) {
        err = get_counters(in, end, out);
    }
    if (err == 0 && version < VERSION_TERMS &&
        has_kinds(out) != (version == VERSION_KINDS)) {
        err = ERR_CORRUPT;
    }
    if (err == 0 && version <= VERSION_ABOUT &&
        has_about(out) != (version == VERSION_ABOUT)) {
        err = ERR_CORRUPT;
    }
    if (err == 0) {
        err = get_images(in, end, n->images, named, out);
    }
    if (err == 0 && has_text(out) != (version == VERSION_TEXT)) {
        err = ERR_CORRUPT;
    }
    if (err == 0) {
        err = segments_code_get(in, end, &segments, &out->segments);
    }
    if (err == 0) {
        err = producers__list_get(
            in, end, n->producers, out->shards, &out->producers);
    }
    if (err == 0 && version >= VERSION_TERMS) {
        err = get_terms(in, end, version, out);
    }
    if (err == 0 && version >= VERSION_MOVED) {
        err = get_handovers(in, end, version, &out->handovers);
    }
    return err;
}

/* Segments of a counter are in its slot, and one with cold=never has none. */
static bool
slots_agree(const struct manifest *manifest)
{
    struct manifest_counters at = {0};
    struct manifest_counter one;

    while (manifest__next_counter(manifest, &at, &one)) {
        size_t n;
        const struct manifest_segment *segment =
            segments_of(&manifest->segments, one.serial, &n);

        for (; n > 0; n--, segment++) {
            if (segment->counter != one.slot || one.cold_is_never) {
                return false;
            }
        }
    }
    return true;
}

int
manifest_decode(const uint8_t *bytes, size_t len, struct manifest *out)
{
    const uint8_t *at = bytes + HEAD_BYTES;
    const uint8_t *end;
    struct counts n = {0};
    struct histories_set set = {0};
    unsigned version;
    int err = check(bytes, len, &version);

    ASSERT(out->counter == NULL && out->images.n == 0);
    if (err != 0) {
        return err;
    }
    end = bytes + len - CHECKSUM_BYTES;
    if (!get_head(bytes, len, out, &n.images) ||
        !get_head_more(&at, end, version, out, &n)) {
        err = ERR_CORRUPT;
    } else {
        err = get_all(&at, end, version, &n, &set, out);
    }
    histories__set_fini(&set);
    if (err == 0 && (at != end || !slots_agree(out))) {
        err = ERR_CORRUPT;
    }
    if (err != 0) {
        manifest_fini(out);
    }
    return err;
}
