/* SPDX-License-Identifier: BSD-3-Clause */
/* wal/entry_members: changes of members there and back, among other entries,
 * as a model of structs; how long they are, cut at every place and with every
 * byte changed, and what is refused. */
#include "wal/entry_members.h"

#include "base/bytes.h"
#include "lib/log_make.h"
#include "unit/check_help.h"
#include "wal/entry.h"

enum {
    STEPS = 3000,
    PARTS_MAX = 2 * ENTRY_MEMBERS_MAX,
    BYTES_MAX = ENTRY_MEMBERS_HEAD_BYTES_MAX +
        ENTRY_MEMBERS_MAX * ENTRY_MEMBER_BYTES_MAX
};

static uint64_t
random_number(uint64_t *state)
{
    return random_below(state, UINT64_MAX) >> random_below(state, 64);
}

static uint32_t
random_serial(uint64_t *state)
{
    uint32_t serial = (uint32_t)random_number(state);
    return serial == 0 ? 1 : serial;
}

static struct entry_members
random_form(uint64_t *state, uint32_t *serial)
{
    struct entry_members members = {
        .n_changes = 1 + (unsigned)random_below(state, ENTRY_MEMBERS_MAX),
        .n = 1 + (unsigned)random_below(state, SCHEMA_COLUMNS_MAX),
        .pair_bytes = 1 + (unsigned)random_below(state, 8)};
    for (unsigned i = 0; i < members.n; i++) {
        serial[i] = random_serial(state);
    }
    members.pair_value =
        random_below(state, 2) == 0 ? 1 : random_number(state);
    members.pair_serial = serial[0] + ENTRY_MEMBERS_STEP;
    if (members.pair_serial < ENTRY_MEMBERS_STEP ||
        random_below(state, 2) == 0) {
        members.pair_serial = random_serial(state);
    }
    return members;
}

/* An entry of members; all that it tells goes to part, two for each change. */
static size_t
put_random(uint8_t *out, uint64_t *state, struct entry_cells *part)
{
    uint32_t serial[SCHEMA_COLUMNS_MAX];
    struct entry_members members = random_form(state, serial);
    size_t len = entry_put_members(out, &members, serial);
    for (unsigned i = 0; i < members.n_changes; i++) {
        struct entry_cells *record = &part[2 * i], *pair = record + 1;
        record->id = random_number(state);
        record->n = members.n;
        for (unsigned c = 0; c < members.n; c++) {
            record->serial[c] = serial[c];
            record->value[c] = random_number(state);
        }
        pair->id = random_number(state) >> (64 - 8 * members.pair_bytes);
        pair->n = 1;
        pair->serial[0] = members.pair_serial;
        pair->value[0] = members.pair_value;
        len += entry_put_member(out + len, &members, record->id, record->value,
            pair->id, i == 0 ? NULL : &record[-2].id);
    }
    return len;
}

static void
assert_next(struct entry_reader *reader, const struct entry_cells *cells)
{
    struct entry got;
    ck_assert(entry_has_next(reader));
    ck_assert(entry_next(reader, &got));
    ck_assert_int_eq(got.kind, ENTRY_CELLS);
    ck_assert_uint_eq(got.cells.id, cells->id);
    ck_assert_uint_eq(got.cells.n, cells->n);
    for (unsigned i = 0; i < cells->n; i++) {
        ck_assert_uint_eq(got.cells.serial[i], cells->serial[i]);
        ck_assert_uint_eq(got.cells.value[i], cells->value[i]);
    }
}

/* Behind an entry of members cells are near its last record. */
START_TEST(test_round_trip)
{
    uint64_t state = 21;
    for (unsigned step = 0; step < STEPS; step++) {
        struct entry_cells part[PARTS_MAX + 1];
        uint8_t bytes[BYTES_MAX + ENTRY_CELLS_BYTES_MAX];
        size_t len = put_random(bytes, &state, part);
        struct entry_reader reader = {.at = bytes};
        struct entry got;
        size_t n = 2 * (size_t)(bytes[0] >> ENTRY_KIND_BITS & 15);
        const uint64_t before = part[n - 2].id;
        ck_assert_uint_le(len, BYTES_MAX);
        part[n] = (struct entry_cells){.id = before + random_number(&state),
            .n = 1,
            .serial = {5},
            .value = {random_number(&state)}};
        len += log_make_cells(bytes + len, &part[n], &before);
        reader.end = bytes + len;
        for (size_t i = 0; i <= n; i++) {
            assert_next(&reader, &part[i]);
        }
        ck_assert(!entry_has_next(&reader));
        ck_assert(entry_next(&reader, &got));
        ck_assert_int_eq(got.kind, ENTRY_END);
    }
}
END_TEST

/* Two likes of 1000 and 998, which have 5 and 300 then; a member that goes, of
 * a record with two cells. */
static size_t
put_likes(uint8_t *out)
{
    struct entry_members members = {.n_changes = 2,
        .n = 1,
        .pair_bytes = 3,
        .pair_serial = 5,
        .pair_value = 1};
    const uint32_t serial[1] = {2};
    const uint64_t value[2] = {5, 300};
    const uint64_t id = 1000;
    size_t len = entry_put_members(out, &members, serial);
    len += entry_put_member(out + len, &members, id, value, 0x123456, NULL);
    return len + entry_put_member(out + len, &members, 998, &value[1], 7, &id);
}

static size_t
put_gone(uint8_t *out)
{
    struct entry_members members = {
        .n_changes = 1, .n = 2, .pair_bytes = 1, .pair_serial = 9};
    const uint32_t serial[2] = {2, 4};
    const uint64_t value[2] = {0, 127};
    size_t len = entry_put_members(out, &members, serial);
    return len + entry_put_member(out + len, &members, 3, value, 200, NULL);
}

START_TEST(test_lengths)
{
    uint8_t out[BYTES_MAX];
    ck_assert_uint_eq(put_likes(out), 3 + 2 + 1 + 3 + 1 + 2 + 3);
    ck_assert_mem_eq(out,
        "\x17\x20\2"
        "\xe8\7\5\x56\x34\x12"
        "\3\xac\2\7\0\0",
        15);
    ck_assert_uint_eq(put_gone(out), 6 + 1 + 2 + 1);
    ck_assert_mem_eq(out,
        "\x8f\x81\2\4\x9\0"
        "\3\0\x7f\xc8",
        10);
    ck_assert_uint_eq(entry_members_bytes(0), 1);
    ck_assert_uint_eq(entry_members_bytes(255), 1);
    ck_assert_uint_eq(entry_members_bytes(256), 2);
    ck_assert_uint_eq(entry_members_bytes(UINT64_MAX), 8);
    struct entry_members members = {.n_changes = ENTRY_MEMBERS_MAX,
        .n = SCHEMA_COLUMNS_MAX,
        .pair_bytes = 8,
        .pair_serial = UINT32_MAX,
        .pair_value = UINT64_MAX};
    uint64_t value[SCHEMA_COLUMNS_MAX];
    uint32_t serial[SCHEMA_COLUMNS_MAX];
    for (unsigned i = 0; i < SCHEMA_COLUMNS_MAX; i++) {
        serial[i] = UINT32_MAX;
        value[i] = UINT64_MAX;
    }
    ck_assert_uint_eq(entry_put_members(out, &members, serial),
        ENTRY_MEMBERS_HEAD_BYTES_MAX);
    ck_assert_uint_eq(
        entry_put_member(out, &members, UINT64_MAX, value, UINT64_MAX, NULL),
        ENTRY_MEMBER_BYTES_MAX);
}
END_TEST

/* True where exactly these bytes are entries; a reader that refuses stays. */
static bool
reads(const uint8_t *bytes, size_t len)
{
    char *copy = copy_of((const char *)bytes, len);
    struct entry_reader reader = {
        .at = (const uint8_t *)copy, .end = (const uint8_t *)copy + len};
    struct entry got = {.kind = ENTRY_CELLS};
    bool ok = true;
    while (ok && entry_has_next(&reader)) {
        const uint8_t *at = reader.at;
        unsigned n_parts = reader.n_parts;
        ok = entry_next(&reader, &got);
        ck_assert(ok ? reader.at > at : reader.at == at);
        ck_assert(ok || reader.n_parts == n_parts);
        ck_assert(reader.at <= reader.end);
    }
    free(copy);
    return ok;
}

START_TEST(test_cut)
{
    uint8_t bytes[2 * BYTES_MAX];
    size_t first = put_likes(bytes), len = first + put_gone(bytes + first);
    for (size_t have = 0; have <= len; have++) {
        ck_assert_int_eq(
            reads(bytes, have), have == 0 || have == first || have == len);
    }
}
END_TEST

START_TEST(test_changed)
{
    uint8_t bytes[2 * BYTES_MAX];
    size_t len = put_likes(bytes);
    len += put_gone(bytes + len);
    for (size_t at = 0; at < len; at++) {
        uint8_t was = bytes[at];
        for (unsigned byte = 0; byte < 256; byte++) {
            bytes[at] = (uint8_t)byte;
            (void)reads(bytes, len);
        }
        bytes[at] = was;
    }
}
END_TEST

START_TEST(test_refused)
{
    static const struct {
        const char *bytes;
        size_t len;
    } bad[] = {
        {"\x07\0\1\1\1\1", 6},                      /* no changes */
        {"\x87\0\1\1\1\1\1", 7},                    /* likewise */
        {"\x0f\0\0\1\1\1", 6},                      /* serial 0 */
        {"\x8f\0\1\0\1\1\1", 7},                    /* the pairs' is */
        {"\x0f\0\xfd\xff\xff\xff\x0f\1\1\1", 10},   /* it would be */
        {"\x8f\0\1\x80\x80\x80\x80\x10\1\1\1", 11}, /* is 2^32 */
        {"\x0f\x80\1\x80\0\1\1\1", 8},              /* a long zero */
        {"\x0f\0\1\x80\0\1\1", 7}, {"\x0f\0\1\1\x80\0\1", 7},
        {"\x0f\1\1\1\1\1", 6},     /* a cell is missing */
        {"\x0f\x10\1\1\1\1", 6},   /* half an id */
        {"\x17\0\1\1\1\1", 6},     /* one of two */
        {"\x17\0\1\1\1\1\1\1", 8}, /* one and a half */
    };
    static const char *const good[] = {"\x0f\0\1\1\1\1",
        "\x0f\0\xfc\xff\xff\xff\x0f\1\1\1", "\x17\0\1\1\1\1\1\1\1"};
    static const size_t good_len[] = {6, 10, 9};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        ck_assert_msg(
            !reads((const uint8_t *)bad[i].bytes, bad[i].len), "%zu", i);
    }
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        ck_assert_msg(reads((const uint8_t *)good[i], good_len[i]), "%zu", i);
    }
}
END_TEST

/* What has members takes nobody's place, and nobody takes its place: the bytes
 * are not those of cells. */
START_TEST(test_replace)
{
    const struct entry_cells cells = {
        .id = 1000, .n = 2, .serial = {2, 3}, .value = {1, 1}};
    uint8_t likes[BYTES_MAX], other[BYTES_MAX], was[BYTES_MAX];
    for (unsigned n = 1; n <= 2; n++) {
        struct entry_cells some = cells;
        memset(other, 0, sizeof other);
        memset(likes, 0, sizeof likes);
        some.n = n;
        (void)put_likes(likes);
        likes[0] = (uint8_t)((unsigned)ENTRY_MEMBERS | n << ENTRY_KIND_BITS);
        (void)log_make_cells(other, &some, NULL);
        memcpy(was, likes, sizeof was);
        ck_assert(!entry__replace(likes, other));
        ck_assert_mem_eq(likes, was, sizeof was);
        memcpy(was, other, sizeof was);
        ck_assert(!entry__replace(other, likes));
        ck_assert_mem_eq(other, was, sizeof was);
        ck_assert(!entry__replace(likes, likes));
    }
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_round_trip, test_lengths, test_cut,
        test_changed, test_refused, test_replace};
    return run_tests("entry__members", tests, COUNT_OF(tests));
}
