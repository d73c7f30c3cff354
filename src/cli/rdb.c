/* SPDX-License-Identifier: BSD-3-Clause */
/* Each function takes what it reads from rdb->at on, and fails where that would
 * pass rdb->end: no length in the file is believed before. */
#include "cli/rdb.h"

#include "base/bytes.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    HEADER_BYTES = 9, /* REDIS0011 */
    VERSION_MIN = 5,  /* from that on there is a checksum */
    VERSION_MAX = 11,
    TEXT_MAX = 1 << 29, /* of a string, as Redis has it */
    TYPE_STRING = 0,
    TYPE_LIST = 1,
    TYPE_SET = 2,
    TYPE_ZSET = 3,
    TYPE_HASH = 4,
    TYPE_ZSET_2 = 5,
    TYPE_HASH_ZIPMAP = 9,
    TYPE_LIST_ZIPLIST = 10,
    TYPE_SET_INTSET = 11,
    TYPE_ZSET_ZIPLIST = 12,
    TYPE_HASH_ZIPLIST = 13,
    TYPE_LIST_QUICKLIST = 14,
    TYPE_STREAM = 15,
    TYPE_HASH_LISTPACK = 16,
    TYPE_ZSET_LISTPACK = 17,
    TYPE_LIST_QUICKLIST_2 = 18,
    TYPE_STREAM_2 = 19,
    TYPE_SET_LISTPACK = 20,
    TYPE_STREAM_3 = 21,
    OP_FUNCTION = 0xf5,
    OP_IDLE = 0xf8,
    OP_FREQ = 0xf9,
    OP_AUX = 0xfa,
    OP_RESIZE = 0xfb,
    OP_EXPIRES_MS = 0xfc,
    OP_EXPIRES_S = 0xfd,
    OP_SELECT = 0xfe,
    OP_END = 0xff,
    CODED_INT8 = 0,
    CODED_INT16 = 1,
    CODED_INT32 = 2,
    CODED_LZF = 3
};

static bool
fail(struct rdb *rdb, const char *why)
{
    if (rdb->why[0] == '\0') {
        (void)snprintf(rdb->why, sizeof rdb->why, "%s", why);
    }
    return false;
}

static bool
is_short(struct rdb *rdb)
{
    return fail(rdb, "a length goes beyond the end of the file");
}

static const uint8_t *
take(struct rdb *rdb, uint64_t n)
{
    if (n > (uint64_t)(rdb->end - rdb->at)) {
        (void)is_short(rdb);
        return NULL;
    }
    const uint8_t *at = rdb->at;
    rdb->at += n;
    return at;
}

/* n bytes, least first, as a number with a sign. */
static int64_t
signed_of(const uint8_t *at, unsigned n)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < n; i++) {
        value |= (uint64_t)at[i] << (8 * i);
    }
    unsigned free = 64 - 8 * n;
    return (int64_t)(value << free) >> free;
}

static uint64_t
big_of(const uint8_t *at, unsigned n)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < n; i++) {
        value = value << 8 | at[i];
    }
    return value;
}

/* ---- lengths and strings ---- */

/* A length, or *is_coded and which code. */
static bool
take_length(struct rdb *rdb, uint64_t *out, bool *is_coded)
{
    const uint8_t *first = take(rdb, 1), *more;
    *is_coded = false;
    if (first == NULL) {
        return false;
    }
    switch (*first >> 6) {
    case 0:
        *out = *first & 63;
        return true;
    case 1:
        more = take(rdb, 1);
        *out = more == NULL ? 0 : (uint64_t)(*first & 63) << 8 | *more;
        return more != NULL;
    case 2:
        if (*first != 0x80 && *first != 0x81) {
            return fail(rdb, "a length of no known form");
        }
        more = take(rdb, *first == 0x80 ? 4 : 8);
        *out = more == NULL ? 0 : big_of(more, *first == 0x80 ? 4 : 8);
        return more != NULL;
    default:
        *is_coded = true;
        *out = *first & 63;
        return true;
    }
}

static bool
take_count(struct rdb *rdb, uint64_t *out)
{
    bool is_coded;
    return take_length(rdb, out, &is_coded) &&
        (!is_coded || fail(rdb, "a count of no known form"));
}

/* LZF (Marc Lehmann): a control byte below 32 has so many bytes and one behind
 * it, which are copied; else its upper 3 bits are a length, and the others and
 * the next byte say from how far back that is copied. Into out[0..out_len). */
static bool
expand(const uint8_t *in, size_t len, uint8_t *out, size_t out_len)
{
    size_t at = 0, to = 0;
    while (at < len) {
        unsigned control = in[at++];
        size_t n = control < 32 ? control + 1 : control >> 5;
        if (control < 32) {
            if (n > len - at || n > out_len - to) {
                return false;
            }
            memcpy(out + to, in + at, n);
            at += n;
            to += n;
            continue;
        }
        if (n == 7) {
            if (at == len) {
                return false;
            }
            n += in[at++];
        }
        n += 2;
        if (at == len) {
            return false;
        }
        size_t back = ((size_t)(control & 31) << 8 | in[at++]) + 1;
        if (back > to || n > out_len - to) {
            return false;
        }
        for (; n > 0; n--, to++) {
            out[to] = out[to - back];
        }
    }
    return to == out_len;
}

static bool
take_packed(struct rdb *rdb, struct buf *into, struct rdb_text *out)
{
    uint64_t packed = 0, len = 0;
    if (!take_count(rdb, &packed) || !take_count(rdb, &len)) {
        return false;
    }
    const uint8_t *at = take(rdb, packed);
    if (at == NULL || len > TEXT_MAX) {
        return fail(rdb, "a compressed string is too long");
    }
    buf_clear(into);
    char *room = buf_reserve(into, len + 1);
    if (room == NULL) {
        return fail(rdb, "out of memory");
    }
    *out = (struct rdb_text){room, len};
    return expand(at, packed, (uint8_t *)room, len) ||
        fail(rdb, "a compressed string cannot be expanded");
}

static bool
put_number(
    struct rdb *rdb, struct buf *into, int64_t number, struct rdb_text *out)
{
    buf_clear(into);
    buf_addf(into, "%" PRId64, number);
    *out = (struct rdb_text){into->data, into->len};
    return !into->failed || fail(rdb, "out of memory");
}

/* A string; what is not there as it is goes into a buffer. */
static bool
take_text(struct rdb *rdb, struct buf *into, struct rdb_text *out)
{
    uint64_t len = 0;
    bool is_coded;
    if (!take_length(rdb, &len, &is_coded)) {
        return false;
    }
    if (is_coded && len == CODED_LZF) {
        return take_packed(rdb, into, out);
    }
    if (is_coded && len > CODED_INT32) {
        return fail(rdb, "a string of no known form");
    }
    const uint8_t *at = take(rdb, is_coded ? (uint64_t)1 << len : len);
    if (at == NULL) {
        return false;
    }
    if (is_coded) {
        return put_number(rdb, into, signed_of(at, 1U << (unsigned)len), out);
    }
    *out = (struct rdb_text){(const char *)at, len};
    return true;
}

/* ---- packed lists ---- */

/* A packed list, and where the next of its entries is. */
struct packed {
    const uint8_t *at, *end;
};

/* Bytes of an entry's head, and of what follows it; is_number: that is one, of
 * `number` where it has no bytes. */
struct form {
    unsigned head, n;
    uint64_t text; /* bytes of a text; 0 of a number */
    bool is_number;
    int64_t number;
};

static bool
listpack_form(const struct packed *in, struct form *form)
{
    const uint8_t *at = in->at;
    size_t left = (size_t)(in->end - at);
    *form = (struct form){.head = 1};
    if ((*at & 0x80) == 0) {
        form->is_number = true;
        form->number = *at;
    } else if ((*at & 0xc0) == 0x80) {
        form->text = *at & 63;
    } else if ((*at & 0xe0) == 0xc0 && left > 1) {
        int64_t value = (int64_t)(*at & 31) << 8 | at[1];
        form->head = 2;
        form->is_number = true;
        form->number = value >= 1 << 12 ? value - (1 << 13) : value;
    } else if ((*at & 0xf0) == 0xe0 && left > 1) {
        form->head = 2;
        form->text = (uint64_t)(*at & 15) << 8 | at[1];
    } else if (*at == 0xf0 && left > 4) {
        form->head = 5;
        form->text = bytes_get_u32(at + 1);
    } else if (*at >= 0xf1 && *at <= 0xf4) {
        static const uint8_t bytes[] = {2, 3, 4, 8};
        form->is_number = true;
        form->n = bytes[*at - 0xf1];
    } else {
        return false;
    }
    return true;
}

/* How many bytes say the length of an entry of len bytes behind it. */
static unsigned
back_bytes(uint64_t len)
{
    return len <= 127     ? 1
        : len < 16383     ? 2
        : len < 2097151   ? 3
        : len < 268435455 ? 4
                          : 5;
}

static bool
ziplist_form(const struct packed *in, struct form *form)
{
    const uint8_t *at = in->at;
    size_t left = (size_t)(in->end - at);
    *form = (struct form){.head = *at == 0xfe ? 5 : 1};
    if (left <= form->head) {
        return false;
    }
    at += form->head++;
    left -= form->head;
    if (*at >> 6 == 0) {
        form->text = *at & 63;
    } else if (*at >> 6 == 1 && left >= 1) {
        form->head++;
        form->text = (uint64_t)(*at & 63) << 8 | at[1];
    } else if (*at >> 6 == 2 && left >= 4) {
        form->head += 4;
        form->text = big_of(at + 1, 4);
    } else if (*at >> 6 == 3) {
        form->is_number = true;
        form->n = *at == 0xc0 ? 2
            : *at == 0xd0     ? 4
            : *at == 0xe0     ? 8
            : *at == 0xf0     ? 3
            : *at == 0xfe     ? 1
                              : 0;
        form->number = (*at & 15) - 1;
        return form->n > 0 || (*at > 0xf0 && *at < 0xfe);
    } else {
        return false;
    }
    return true;
}

/* The next entry; *is_end: there is none. */
static bool
take_entry(struct rdb *rdb, struct packed *in, bool is_listpack,
    struct buf *into, struct rdb_text *out, bool *is_end)
{
    struct form form;
    *is_end = in->at < in->end && *in->at == 0xff;
    if (*is_end) {
        return true;
    }
    if (in->at >= in->end ||
        !(is_listpack ? listpack_form(in, &form) : ziplist_form(in, &form))) {
        return fail(rdb, "a packed list has an entry of no known form");
    }
    uint64_t len = form.head + form.n + form.text;
    uint64_t all = len + (is_listpack ? back_bytes(len) : 0);
    if (all > (uint64_t)(in->end - in->at)) {
        return is_short(rdb);
    }
    const uint8_t *data = in->at + form.head;
    in->at += all;
    if (!form.is_number) {
        *out = (struct rdb_text){(const char *)data, form.text};
        return true;
    }
    return put_number(
        rdb, into, form.n > 0 ? signed_of(data, form.n) : form.number, out);
}

/* The parts of a packed hash, or set. */
static bool
read_packed(struct rdb *rdb, const struct rdb_sink *sink, bool is_listpack,
    bool is_hash)
{
    struct rdb_text bytes, field = {0}, text;
    struct buf first = {0};
    bool is_end = false, is_right = take_text(rdb, &rdb->packed, &bytes);
    size_t head = is_listpack ? 6 : 10;
    if (is_right && bytes.len <= head) {
        is_right = is_short(rdb);
    }
    struct packed in = {0};
    if (is_right) {
        in.at = (const uint8_t *)bytes.at + head;
        in.end = (const uint8_t *)bytes.at + bytes.len;
    }
    while (is_right) {
        if (is_hash) {
            is_right =
                take_entry(rdb, &in, is_listpack, &first, &field, &is_end);
            if (!is_right || is_end) {
                break;
            }
        }
        is_right =
            take_entry(rdb, &in, is_listpack, &rdb->text, &text, &is_end);
        if (!is_right || is_end) {
            is_right = is_right && (!is_hash || is_short(rdb));
            break;
        }
        is_right = sink->part_fn(
            sink->context, is_hash ? RDB_HASH : RDB_SET, &field, &text);
    }
    buf_fini(&first);
    return is_right;
}

static bool
read_intset(struct rdb *rdb, const struct rdb_sink *sink)
{
    static const struct rdb_text none;
    struct rdb_text bytes, text;
    if (!take_text(rdb, &rdb->packed, &bytes)) {
        return false;
    }
    const uint8_t *at = (const uint8_t *)bytes.at;
    uint64_t width = bytes.len < 8 ? 0 : bytes_get_u32(at);
    uint64_t n = bytes.len < 8 ? 0 : bytes_get_u32(at + 4);
    if ((width != 2 && width != 4 && width != 8) ||
        bytes.len != 8 + width * n) {
        return fail(rdb, "a set of numbers has another length");
    }
    for (uint64_t i = 0; i < n; i++) {
        if (!put_number(rdb, &rdb->text,
                signed_of(at + 8 + i * width, (unsigned)width), &text) ||
            !sink->part_fn(sink->context, RDB_SET, &none, &text)) {
            return false;
        }
    }
    return true;
}

/* ---- values ---- */

static bool
skip_texts(struct rdb *rdb, uint64_t n)
{
    struct rdb_text text;
    bool is_right = true;
    for (; is_right && n > 0; n--) {
        is_right = take_text(rdb, &rdb->text, &text);
    }
    return is_right;
}

static bool
skip_many(struct rdb *rdb, unsigned texts_each)
{
    uint64_t n = 0;
    return take_count(rdb, &n) &&
        (n <= (uint64_t)(rdb->end - rdb->at) || is_short(rdb)) &&
        skip_texts(rdb, n * texts_each);
}

static bool
skip_counts(struct rdb *rdb, unsigned n)
{
    uint64_t value;
    bool is_right = true;
    for (; is_right && n > 0; n--) {
        is_right = take_count(rdb, &value);
    }
    return is_right;
}

/* A sorted set with numbers as text: a length of 253 and more is one of three
 * special numbers. */
static bool
skip_zset(struct rdb *rdb)
{
    uint64_t n = 0;
    bool is_right = take_count(rdb, &n);
    for (; is_right && n > 0; n--) {
        const uint8_t *len = skip_texts(rdb, 1) ? take(rdb, 1) : NULL;
        is_right = len != NULL && (*len >= 253 || take(rdb, *len) != NULL);
    }
    return is_right;
}

static bool
skip_zset_2(struct rdb *rdb)
{
    uint64_t n = 0;
    bool is_right = take_count(rdb, &n);
    for (; is_right && n > 0; n--) {
        is_right = skip_texts(rdb, 1) && take(rdb, 8) != NULL;
    }
    return is_right;
}

static bool
skip_quicklist_2(struct rdb *rdb)
{
    uint64_t n = 0;
    bool is_right = take_count(rdb, &n);
    for (; is_right && n > 0; n--) {
        is_right = skip_counts(rdb, 1) && skip_texts(rdb, 1);
    }
    return is_right;
}

/* What consumers of a group have not acknowledged. */
static bool
skip_pending(struct rdb *rdb, bool has_times)
{
    uint64_t n = 0;
    bool is_right = take_count(rdb, &n);
    for (; is_right && n > 0; n--) {
        is_right = take(rdb, 16) != NULL &&
            (!has_times || (take(rdb, 8) != NULL && skip_counts(rdb, 1)));
    }
    return is_right;
}

static bool
skip_group(struct rdb *rdb, unsigned type)
{
    uint64_t n = 0;
    bool is_right = skip_texts(rdb, 1) &&
        skip_counts(rdb, type == TYPE_STREAM ? 2 : 3) &&
        skip_pending(rdb, true) && take_count(rdb, &n);
    for (; is_right && n > 0; n--) {
        is_right = skip_texts(rdb, 1) &&
            take(rdb, type == TYPE_STREAM_3 ? 16 : 8) != NULL &&
            skip_pending(rdb, false);
    }
    return is_right;
}

static bool
skip_stream(struct rdb *rdb, unsigned type)
{
    uint64_t n = 0;
    bool is_right = skip_many(rdb, 2) &&
        skip_counts(rdb, type == TYPE_STREAM ? 3 : 8) && take_count(rdb, &n);
    for (; is_right && n > 0; n--) {
        is_right = skip_group(rdb, type);
    }
    return is_right;
}

static bool
skip_value(struct rdb *rdb, unsigned type)
{
    switch (type) {
    case TYPE_STRING:
    case TYPE_HASH_ZIPMAP:
    case TYPE_LIST_ZIPLIST:
    case TYPE_SET_INTSET:
    case TYPE_ZSET_ZIPLIST:
    case TYPE_HASH_ZIPLIST:
    case TYPE_HASH_LISTPACK:
    case TYPE_ZSET_LISTPACK:
    case TYPE_SET_LISTPACK:
        return skip_texts(rdb, 1);
    case TYPE_LIST:
    case TYPE_SET:
    case TYPE_LIST_QUICKLIST:
        return skip_many(rdb, 1);
    case TYPE_HASH:
        return skip_many(rdb, 2);
    case TYPE_ZSET:
        return skip_zset(rdb);
    case TYPE_ZSET_2:
        return skip_zset_2(rdb);
    case TYPE_LIST_QUICKLIST_2:
        return skip_quicklist_2(rdb);
    case TYPE_STREAM:
    case TYPE_STREAM_2:
    case TYPE_STREAM_3:
        return skip_stream(rdb, type);
    default:
        return fail(rdb,
            "it has a value of a module, or of a newer Redis: see "
            "--format=redis");
    }
}

static bool
read_many(struct rdb *rdb, const struct rdb_sink *sink, bool is_hash)
{
    struct rdb_text field = {0}, text;
    struct buf first = {0};
    uint64_t n = 0;
    bool is_right = take_count(rdb, &n);
    for (; is_right && n > 0; n--) {
        is_right = (!is_hash || take_text(rdb, &first, &field)) &&
            take_text(rdb, &rdb->text, &text) &&
            sink->part_fn(
                sink->context, is_hash ? RDB_HASH : RDB_SET, &field, &text);
    }
    buf_fini(&first);
    return is_right;
}

static bool
read_value(struct rdb *rdb, unsigned type, const struct rdb_sink *sink)
{
    static const struct rdb_text none;
    struct rdb_text text;
    switch (type) {
    case TYPE_STRING:
        return take_text(rdb, &rdb->text, &text) &&
            sink->part_fn(sink->context, RDB_STRING, &none, &text);
    case TYPE_HASH:
    case TYPE_SET:
        return read_many(rdb, sink, type == TYPE_HASH);
    case TYPE_HASH_LISTPACK:
    case TYPE_SET_LISTPACK:
        return read_packed(rdb, sink, true, type == TYPE_HASH_LISTPACK);
    case TYPE_HASH_ZIPLIST:
        return read_packed(rdb, sink, false, true);
    case TYPE_SET_INTSET:
        return read_intset(rdb, sink);
    default:
        return skip_value(rdb, type) &&
            sink->part_fn(sink->context, RDB_OTHER, &none, &none);
    }
}

/* ---- the file ---- */

static bool
read_key(struct rdb *rdb, unsigned type, const struct rdb_sink *sink)
{
    bool is_wanted = false;
    struct rdb_key key = {
        .database = rdb->database, .expires_ms = rdb->expires_ms};
    rdb->expires_ms = 0;
    return take_text(rdb, &rdb->key, &key.name) &&
        sink->key_fn(sink->context, &key, &is_wanted) &&
        (is_wanted ? read_value(rdb, type, sink) : skip_value(rdb, type));
}

/* What stands before a key, or between keys. */
static bool
read_op(struct rdb *rdb, unsigned op)
{
    const uint8_t *at;
    switch (op) {
    case OP_FUNCTION:
        return skip_texts(rdb, 1);
    case OP_AUX:
        return skip_texts(rdb, 2);
    case OP_IDLE:
        return skip_counts(rdb, 1);
    case OP_FREQ:
        return take(rdb, 1) != NULL;
    case OP_RESIZE:
        return skip_counts(rdb, 2);
    case OP_SELECT:
        return take_count(rdb, &rdb->database);
    case OP_EXPIRES_MS:
        at = take(rdb, 8);
        rdb->expires_ms = at == NULL ? 0 : bytes_get_u64(at);
        return at != NULL;
    case OP_EXPIRES_S:
        at = take(rdb, 4);
        rdb->expires_ms = at == NULL ? 0 : (uint64_t)bytes_get_u32(at) * 1000;
        return at != NULL;
    default:
        return fail(rdb, "it has something of a module, or of a newer Redis");
    }
}

bool
rdb_read(struct rdb *rdb, const struct rdb_sink *sink)
{
    while (true) {
        const uint8_t *first = take(rdb, 1);
        if (first == NULL) {
            return false;
        }
        if (*first == OP_END) {
            return true;
        }
        if (!(*first >= OP_FUNCTION ? read_op(rdb, *first)
                                    : read_key(rdb, *first, sink))) {
            return false;
        }
    }
}

/* CRC-64 as Redis has it (crc64.c): the polynomial of Jones, reflected. */
static uint64_t
crc64(const uint8_t *bytes, size_t len)
{
    static const uint64_t polynomial = 0x95ac9329ac4bc9b5;
    uint64_t table[256], crc = 0;
    for (unsigned i = 0; i < 256; i++) {
        table[i] = i;
        for (unsigned bit = 0; bit < 8; bit++) {
            table[i] = table[i] >> 1 ^ ((table[i] & 1) != 0 ? polynomial : 0);
        }
    }
    for (size_t i = 0; i < len; i++) {
        crc = table[(crc ^ bytes[i]) & 255] ^ crc >> 8;
    }
    return crc;
}

bool
rdb_verify(struct rdb *rdb, const uint8_t *bytes, size_t len)
{
    unsigned version = 0;
    *rdb = (struct rdb){.at = bytes, .end = bytes + len};
    if (len < HEADER_BYTES + 1 || memcmp(bytes, "REDIS", 5) != 0) {
        return fail(rdb, "it does not begin as a dump file of Redis does");
    }
    for (unsigned i = 5; i < HEADER_BYTES; i++) {
        if (bytes[i] < '0' || bytes[i] > '9') {
            return fail(rdb, "its version is no number");
        }
        version = version * 10 + bytes[i] - '0';
    }
    if (version < VERSION_MIN || version > VERSION_MAX) {
        return fail(rdb,
            "it is of a Redis before 2.6, or newer than 7.2: see "
            "--format=redis");
    }
    rdb->at += HEADER_BYTES;
    if (len < HEADER_BYTES + 9 || bytes[len - 9] != OP_END) {
        return fail(rdb, "it has no end: it was cut off");
    }
    rdb->end -= 8;
    uint64_t sum = bytes_get_u64(bytes + len - 8);
    return sum == 0 || sum == crc64(bytes, len - 8) ||
        fail(rdb, "its bytes have another checksum than it says");
}

void
rdb_fini(struct rdb *rdb)
{
    buf_fini(&rdb->key);
    buf_fini(&rdb->text);
    buf_fini(&rdb->packed);
}
