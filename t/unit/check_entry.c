/* SPDX-License-Identifier: BSD-3-Clause */
/* wal/entry: random entries there and back, as a model of structs; cut at
 * every place and with every byte changed; and how long they are. */
#include "wal/entry.h"

#include "base/bytes.h"
#include "lib/log_make.h"
#include "unit/check_help.h"

enum { ENTRIES = 2000, APPEND_EVERY = 5 };

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

static struct entry_cells
random_cells(uint64_t *state, uint64_t id_before)
{
    struct entry_cells cells = {
        .n = 1 + (unsigned)random_below(state, SCHEMA_COLUMNS_MAX)};

    cells.id = random_number(state);
    if (random_below(state, 2) == 0) {
        cells.id = random_below(state, 2) == 0 ? id_before + cells.id
                                               : id_before - cells.id;
    }
    for (unsigned i = 0; i < cells.n; i++) {
        cells.serial[i] = random_serial(state);
        cells.value[i] = random_number(state);
    }
    return cells;
}

static void
assert_same_cells(const struct entry_cells *a, const struct entry_cells *b)
{
    ck_assert_uint_eq(a->id, b->id);
    ck_assert_uint_eq(a->n, b->n);
    for (unsigned i = 0; i < a->n; i++) {
        ck_assert_uint_eq(a->serial[i], b->serial[i]);
        ck_assert_uint_eq(a->value[i], b->value[i]);
    }
}

static struct schema_counter
small_counter(void)
{
    return (struct schema_counter){.name = {1, "c"},
        .key_name = {1, "k"},
        .serial = 8,
        .slot = 3,
        .n_columns = 1,
        .column = {{.name = {1, "v"}, .serial = 9, .max_bits = 8}}};
}

static struct entry_term
random_term(uint64_t *state)
{
    struct entry_term term = {
        .term = 1 + (uint32_t)random_below(state, SEQ_TERM_MAX),
        .branch = 1 + random_number(state)};

    term.last_seq = random_below(state, seq_make(term.term - 1, SEQ_N_MAX));
    term.node.len = (uint8_t)(1 + random_below(state, NODE_NAME_MAX));
    memset(term.node.text, 'a' + (int)random_below(state, 26), term.node.len);
    return term;
}

static size_t
put_about(uint8_t *out, uint64_t *state, struct entry *entry)
{
    entry->kind = ENTRY_ABOUT;
    entry->about.serial = random_serial(state);
    entry->about.n = 1 + (unsigned)random_below(state, ENTRY_ABOUT_PAIRS_MAX);
    for (unsigned i = 0; i < entry->about.n; i++) {
        entry->about.id[i] = random_number(state);
        entry->about.member[i] = random_number(state);
    }
    return entry_put_about(out, &entry->about);
}

static size_t
put_name(uint8_t *out, uint64_t *state, struct entry *entry)
{
    struct entry_name *name = &entry->named;
    entry->kind = ENTRY_NAME;
    name->shard = (uint16_t)random_number(state);
    name->number = (uint32_t)random_number(state);
    name->len = (uint8_t)random_below(state, ENTRY_NAME_MAX + 1);
    memset(name->bytes, 128 + (int)random_below(state, 128), name->len);
    return entry_put_name(
        out, name->shard, name->number, name->bytes, name->len);
}

/* Short where it can be or not; of the columns of the record before, or of
 * some that follow one another, now and then. */
static size_t
put_cells(uint8_t *out, uint64_t *state, struct entry *entry,
    const struct entry_cells *before)
{
    struct entry_cells *cells = &entry->cells;
    uint64_t form = random_below(state, 5);

    entry->kind = ENTRY_CELLS;
    *cells = random_cells(state, before != NULL ? before->id : 0);
    if (form == 0) {
        return log_make_cells(out, cells, before != NULL ? &before->id : NULL);
    }
    if (before != NULL && form == 1) {
        cells->n = before->n;
        memcpy(cells->serial, before->serial, sizeof cells->serial);
    }
    for (unsigned i = 1; i < cells->n && form > 2; i++) {
        cells->serial[0] &= UINT32_MAX >> 1;
        cells->serial[0] += cells->serial[0] == 0;
        cells->serial[i] = cells->serial[0] + i;
    }
    return log_make_record(out, cells, before);
}

/* before: cells, or NULL. */
static size_t
put_random(uint8_t *out, uint64_t *state, struct entry *entry,
    const struct entry_cells *before)
{
    struct schema_counter counter = small_counter();

    switch (random_below(state, 20)) {
    case 0:
        entry->kind = ENTRY_COUNTER;
        entry->last_serial = 10;
        return entry_put_counter(out, &counter, 10);
    case 1:
        entry->kind = ENTRY_DROPPED;
        entry->counter_serial = random_serial(state);
        entry->last_serial = UINT32_MAX;
        return entry_put_dropped(out, entry->counter_serial, UINT32_MAX);
    case 2:
        entry->kind = ENTRY_NUMBER;
        entry->producer = random_serial(state);
        entry->shard = (uint16_t)random_number(state);
        entry->number = random_number(state);
        return entry_put_number(
            out, entry->producer, entry->shard, entry->number);
    case 3:
        entry->kind = ENTRY_PRODUCER;
        entry->producer = random_serial(state);
        entry->name.len =
            (uint8_t)(1 + random_below(state, PRODUCER_NAME_MAX));
        memset(entry->name.text, 'a' + (int)random_below(state, 26),
            entry->name.len);
        return entry_put_producer(out, entry->producer, &entry->name);
    case 4:
        entry->kind = ENTRY_PRODUCER_DROPPED;
        entry->producer = random_serial(state);
        return entry_put_producer_dropped(out, entry->producer);
    case 6:
        entry->kind = ENTRY_PRODUCER_JOINED;
        entry->producer = random_serial(state);
        entry->seen = (struct seen_window){0};
        for (uint64_t n = random_below(state, 40) + 1; n > 0; n--) {
            seen_add(&entry->seen, random_below(state, 2000));
        }
        return entry_put_producer_joined(out, entry->producer, &entry->seen);
    case 7:
        return put_about(out, state, entry);
    case 8:
        entry->kind = ENTRY_ABOUT_ROLLED;
        entry->rolled.serial = random_serial(state);
        entry->rolled.first = random_number(state);
        entry->rolled.lowest = entry->rolled.first / 2;
        return entry_put_rolled(out, &entry->rolled);
    case 9:
        return put_name(out, state, entry);
    case 5:
        entry->kind = ENTRY_TERM;
        entry->term = random_term(state);
        return entry__put_term(out, &entry->term);
    default:
        return put_cells(out, state, entry, before);
    }
}

static void
assert_same(const struct entry *a, const struct entry *b)
{
    ck_assert_int_eq(a->kind, b->kind);
    switch (a->kind) {
    case ENTRY_CELLS:
        assert_same_cells(&a->cells, &b->cells);
        return;
    case ENTRY_NUMBER:
        ck_assert_uint_eq(a->shard, b->shard);
        ck_assert_uint_eq(a->number, b->number);
        ck_assert_uint_eq(a->producer, b->producer);
        return;
    case ENTRY_PRODUCER:
        ck_assert_uint_eq(a->name.len, b->name.len);
        ck_assert_mem_eq(a->name.text, b->name.text, a->name.len);
        ck_assert_uint_eq(a->producer, b->producer);
        return;
    case ENTRY_PRODUCER_JOINED:
        ck_assert_mem_eq(&a->seen, &b->seen, sizeof a->seen);
        ck_assert_uint_eq(a->producer, b->producer);
        return;
    case ENTRY_ABOUT:
        ck_assert_uint_eq(a->about.serial, b->about.serial);
        ck_assert_uint_eq(a->about.n, b->about.n);
        ck_assert_mem_eq(
            a->about.id, b->about.id, a->about.n * sizeof a->about.id[0]);
        ck_assert_mem_eq(a->about.member, b->about.member,
            a->about.n * sizeof a->about.member[0]);
        return;
    case ENTRY_ABOUT_ROLLED:
        ck_assert_uint_eq(a->rolled.serial, b->rolled.serial);
        ck_assert_uint_eq(a->rolled.first, b->rolled.first);
        ck_assert_uint_eq(a->rolled.lowest, b->rolled.lowest);
        return;
    case ENTRY_NAME:
        ck_assert_uint_eq(a->named.shard, b->named.shard);
        ck_assert_uint_eq(a->named.number, b->named.number);
        ck_assert_uint_eq(a->named.len, b->named.len);
        ck_assert_mem_eq(a->named.bytes, b->named.bytes, a->named.len);
        return;
    case ENTRY_PRODUCER_DROPPED:
        ck_assert_uint_eq(a->producer, b->producer);
        return;
    case ENTRY_TERM:
        ck_assert_uint_eq(a->term.term, b->term.term);
        ck_assert_uint_eq(a->term.branch, b->term.branch);
        ck_assert_uint_eq(a->term.last_seq, b->term.last_seq);
        ck_assert_uint_eq(a->term.node.len, b->term.node.len);
        ck_assert_mem_eq(
            a->term.node.text, b->term.node.text, a->term.node.len);
        return;
    default:
        break;
    }
    ck_assert_uint_eq(a->last_serial, b->last_serial);
    if (a->kind == ENTRY_DROPPED) {
        ck_assert_uint_eq(a->counter_serial, b->counter_serial);
        return;
    }
    ck_assert_uint_eq(b->counter.serial, 8);
    ck_assert_uint_eq(b->counter.column[0].serial, 9);
    ck_assert_str_eq(b->counter.name.text, "c");
}

/* Values take each other's place where columns and length are the same, and
 * only there; what is behind them stays. */
START_TEST(test_replace)
{
    uint64_t state = 12;
    unsigned n_replaced = 0;
    for (unsigned round = 0; round < ENTRIES; round++) {
        uint8_t to[2 * ENTRY_CELLS_BYTES_MAX], from[ENTRY_CELLS_BYTES_MAX];
        uint8_t is[sizeof to];
        uint64_t before = random_number(&state);
        struct entry_cells old = {.id = random_number(&state)}, new;
        bool is_same = random_below(&state, 4) > 0;
        struct entry got;
        old.n = 1 + (unsigned)random_below(&state, 3);
        for (unsigned i = 0; i < 3; i++) {
            old.serial[i] = 1 + (uint32_t)random_below(&state, 300);
            old.value[i] = random_below(&state, 256);
        }
        new = old;
        new.n = is_same ? old.n : 1 + (unsigned)random_below(&state, 3);
        for (unsigned i = 0; i < new.n; i++) {
            new.value[i] = random_below(&state, 256);
        }
        if (!is_same) {
            new.serial[random_below(&state, new.n)] += 256;
        }
        memset(to, 0xa5, sizeof to);
        size_t len = log_make_cells(to, &old, &before);
        size_t new_len = log_make_cells(from, &new, &before);
        memcpy(is, to, sizeof to);
        bool is_replaced = entry__replace(to, from);
        ck_assert_int_eq(is_replaced, is_same && len == new_len);
        ck_assert_mem_eq(to + len, is + len, sizeof to - len);
        ck_assert(is_replaced || memcmp(to, is, len) == 0);
        struct entry_reader reader = {.at = to, .end = to + len, .id = before};
        ck_assert(entry_next(&reader, &got));
        assert_same_cells(&got.cells, is_replaced ? &new : &old);
        n_replaced += is_replaced;
    }
    ck_assert_uint_gt(n_replaced, ENTRIES / 4);
}
END_TEST

/* A record that is short, and the same with other values: it is replaced where
 * it says its first column, not where it says none, which may be others. */
START_TEST(test_replace_short)
{
    struct entry_cells before = {.id = 5, .n = 2, .serial = {1, 2}};
    struct entry_cells cells = {
        .id = 6, .n = 2, .serial = {1, 2}, .value = {300, 4}};
    uint8_t first[3][ENTRY_CELLS_BYTES_MAX], next[2][ENTRY_CELLS_BYTES_MAX];
    struct entry got;

    (void)log_make_record(first[0], &cells, NULL);
    (void)log_make_record(next[0], &cells, &before);
    cells.value[1] = 5;
    size_t len = log_make_record(first[1], &cells, NULL);
    (void)log_make_record(next[1], &cells, &before);
    ck_assert(!entry__replace(next[0], next[1]));
    ck_assert(!entry__replace(next[0], first[1]));
    ck_assert(!entry__replace(first[0], next[1]));
    ck_assert(entry__replace(first[0], first[1]));
    ck_assert_mem_eq(first[0], first[1], len);
    struct entry_reader reader = {.at = first[0], .end = first[0] + len};
    ck_assert(entry_next(&reader, &got));
    assert_same_cells(&got.cells, &cells);
    cells.serial[0]++;
    cells.serial[1]++;
    (void)log_make_record(first[2], &cells, NULL);
    ck_assert(!entry__replace(first[0], first[2]));
    (void)log_make_cells(first[2], &cells, NULL);
    ck_assert(!entry__replace(first[0], first[2]));
    ck_assert(!entry__replace(first[2], first[0]));
}
END_TEST

START_TEST(test_round_trip)
{
    uint64_t state = 11;
    struct entry *entry = calloc(ENTRIES, sizeof *entry);
    uint8_t *bytes = malloc((size_t)ENTRIES * ENTRY_COUNTER_BYTES_MAX);
    struct entry_reader reader = {.at = bytes};
    struct entry got;
    const struct entry_cells *before = NULL;
    size_t len = 0;

    ck_assert(entry != NULL && bytes != NULL);
    for (size_t i = 0; i < ENTRIES; i++) {
        if (i % APPEND_EVERY == 0) {
            before = NULL;
        }
        len += put_random(bytes + len, &state, &entry[i], before);
        if (entry[i].kind == ENTRY_CELLS) {
            before = &entry[i].cells;
        }
    }
    reader.end = bytes + len;
    for (size_t i = 0; i < ENTRIES; i++) {
        ck_assert(entry_next(&reader, &got));
        assert_same(&entry[i], &got);
    }
    for (int again = 0; again < 2; again++) {
        ck_assert(entry_next(&reader, &got));
        ck_assert_int_eq(got.kind, ENTRY_END);
    }
    free(entry);
    free(bytes);
}
END_TEST

START_TEST(test_lengths)
{
    struct entry_cells cells = {
        .id = 1000000, .n = 1, .serial = {5}, .value = {7}};
    uint64_t before = 1000001;
    uint8_t out[ENTRY_CELLS_BYTES_MAX];

    ck_assert_uint_eq(log_make_cells(out, &cells, NULL), 6);
    ck_assert_mem_eq(out, "\x09\xc0\x84\x3d\5\7", 6);
    ck_assert_uint_eq(log_make_cells(out, &cells, &before), 4);
    ck_assert_mem_eq(out, "\x0a\1\5\7", 4);
    cells.id = 3; /* shorter than the distance */
    ck_assert_uint_eq(log_make_cells(out, &cells, &before), 4);
    ck_assert_mem_eq(out, "\x09\3\5\7", 4);
    cells = (struct entry_cells){.id = UINT64_MAX, .n = SCHEMA_COLUMNS_MAX};
    for (unsigned i = 0; i < cells.n; i++) {
        cells.serial[i] = UINT32_MAX;
        cells.value[i] = UINT64_MAX;
    }
    ck_assert_uint_eq(
        log_make_cells(out, &cells, NULL), ENTRY_CELLS_BYTES_MAX);
    ck_assert_uint_eq(entry_put_dropped(out, UINT32_MAX, UINT32_MAX),
        ENTRY_DROPPED_BYTES_MAX);
}
END_TEST

/* Of three columns that follow one another: 3 bytes less where the record
 * before has the same ones, 2 where it is the first, or too far away. */
START_TEST(test_short_lengths)
{
    struct entry_cells cells = {
        .id = 1000000, .n = 3, .serial = {5, 6, 7}, .value = {7, 300, 8}};
    struct entry_cells before = cells;
    uint8_t out[ENTRY_CELLS_BYTES_MAX];

    ck_assert_uint_eq(log_make_cells(out, &cells, NULL), 11);
    ck_assert_uint_eq(log_make_record(out, &cells, NULL), 9);
    ck_assert_mem_eq(out, "\x99\xc0\x84\x3d\5\7\xac\2\x08", 9);
    before.id = 999999;
    ck_assert_uint_eq(log_make_record(out, &cells, &before), 6);
    ck_assert_mem_eq(out, "\x9a\2\7\xac\2\x08", 6);
    before.id = 3; /* the distance is the larger number, of as many bytes */
    ck_assert_uint_eq(log_make_record(out, &cells, &before), 8);
    before.id = UINT64_C(1) << 40;
    ck_assert_uint_eq(log_make_record(out, &cells, &before), 9);
    before.n = 2; /* others */
    ck_assert_uint_eq(log_make_record(out, &cells, &before), 9);
    cells.serial[2] = 8;
    ck_assert_uint_eq(log_make_record(out, &cells, NULL), 11);
    cells = (struct entry_cells){.id = 1, .n = SCHEMA_COLUMNS_MAX};
    for (unsigned i = 0; i < cells.n; i++) {
        cells.serial[i] = 1 + i;
    }
    ck_assert_uint_eq(log_make_record(out, &cells, &cells),
        log_make_cells(out, &cells, &cells.id));
}
END_TEST

START_TEST(test_producer_lengths)
{
    struct producer_name name;
    uint8_t out[ENTRY_CELLS_BYTES_MAX];

    ck_assert_uint_eq(entry_put_number(out, 3, 15, 1000), 5);
    ck_assert_mem_eq(out, "\5\3\x0f\xe8\7", 5);
    ck_assert(producer_name_set(&name, "a.b", 3));
    ck_assert_uint_eq(entry_put_producer(out, 300, &name), 7);
    ck_assert_mem_eq(out, "\x0d\xac\2\3a.b", 7);
    ck_assert_uint_eq(entry_put_producer_dropped(out, 3), 2);
    ck_assert_mem_eq(out, "\x15\3", 2);
    ck_assert_uint_eq(
        entry_put_number(out, UINT32_MAX, UINT16_MAX, UINT64_MAX),
        ENTRY_NUMBER_BYTES_MAX);
    ck_assert_uint_eq(entry_put_producer_dropped(out, UINT32_MAX),
        ENTRY_PRODUCER_DROPPED_BYTES_MAX);
    ck_assert(producer_name_set(
        &name, "12345678901234567890123456789012", PRODUCER_NAME_MAX));
    ck_assert_uint_eq(
        entry_put_producer(out, UINT32_MAX, &name), ENTRY_PRODUCER_BYTES_MAX);
    struct seen_window seen = {.high = 65, .bit = {0, 2}};
    ck_assert_uint_eq(entry_put_producer_joined(out, 3, &seen), 13);
    ck_assert_mem_eq(out, "\x1d\3\x41\2\0\2\0\0\0\0\0\0\0", 13);
    seen.high = UINT64_MAX;
    (void)memset(seen.bit, 0xff, sizeof seen.bit);
    ck_assert_uint_eq(entry_put_producer_joined(out, UINT32_MAX, &seen),
        ENTRY_PRODUCER_JOINED_BYTES_MAX);
}
END_TEST

START_TEST(test_term_lengths)
{
    struct entry_term term = {
        .term = 3, .branch = UINT64_C(0x0807060504030201), .last_seq = 300};
    uint8_t out[ENTRY_TERM_BYTES_MAX];
    char name[NODE_NAME_MAX];

    ck_assert(node_name_set(&term.node, "a-1", 3));
    ck_assert_uint_eq(entry__put_term(out, &term), 16);
    ck_assert_mem_eq(out, "\6\3\1\2\3\4\5\6\7\x08\xac\2\3a-1", 16);
    ck_assert(entry_term_is_at(&term, (UINT64_C(3) << 40) + 1, true));
    ck_assert(!entry_term_is_at(&term, (UINT64_C(3) << 40) + 1, false));
    ck_assert(!entry_term_is_at(&term, (UINT64_C(3) << 40) + 2, true));
    ck_assert(!entry_term_is_at(&term, (UINT64_C(2) << 40) + 1, true));
    memset(name, 'n', sizeof name);
    ck_assert(node_name_set(&term.node, name, sizeof name));
    term.term = SEQ_TERM_MAX;
    term.last_seq = seq_make(SEQ_TERM_MAX - 1, SEQ_N_MAX);
    ck_assert_uint_eq(entry__put_term(out, &term), ENTRY_TERM_BYTES_MAX);
}
END_TEST

/* True where exactly these bytes are entries; a reader that refuses stays. */
static bool
reads(const uint8_t *bytes, size_t len, struct entry *out)
{
    char *copy = copy_of((const char *)bytes, len);
    struct entry_reader reader = {
        .at = (const uint8_t *)copy, .end = (const uint8_t *)copy + len};
    const uint8_t *at;
    bool ok;

    do {
        at = reader.at;
        ok = entry_next(&reader, out);
        ck_assert(reader.at <= reader.end);
        ck_assert(
            ok ? reader.at > at || out->kind == ENTRY_END : reader.at == at);
    } while (ok && out->kind != ENTRY_END);
    free(copy);
    return ok;
}

enum { ENDS = 12 };

/* One of each kind; ends[] are the lengths of all that is whole. */
static size_t
one_of_each(uint8_t *out, size_t ends[ENDS])
{
    struct entry_term term = {.term = 300, .branch = 1, .last_seq = 70000};
    struct entry_cells cells = {
        .id = 70000, .n = 2, .serial = {5, 600}, .value = {7, UINT64_MAX}};
    struct schema_counter counter = small_counter();
    struct producer_name name;
    size_t len = 0;

    ends[0] = 0;
    ends[1] = len += log_make_cells(out, &cells, NULL);
    cells.id++;
    ends[2] = len += log_make_cells(out + len, &cells, &(uint64_t){70000});
    ends[3] = len += entry_put_counter(out + len, &counter, 9);
    ends[4] = len += entry_put_dropped(out + len, 300, 301);
    ends[5] = len += entry_put_number(out + len, 300, 7, 70000);
    (void)producer_name_set(&name, "p.1", 3);
    ends[6] = len += entry_put_producer(out + len, 300, &name);
    ends[7] = len += entry_put_producer_dropped(out + len, 300);
    (void)node_name_set(&term.node, "n.1", 3);
    ends[8] = len += entry__put_term(out + len, &term);
    struct seen_window seen = {.high = 700, .bit = {1}};
    seen_add(&seen, 700);
    ends[9] = len += entry_put_producer_joined(out + len, 300, &seen);
    struct entry_cells next = cells;
    next.id++;
    ends[10] = len += log_make_record(out + len, &next, &cells);
    next.serial[1] = next.serial[0] + 1;
    ends[11] = len += log_make_record(out + len, &next, NULL);
    return len;
}

START_TEST(test_cut)
{
    uint8_t bytes[2 * ENTRY_COUNTER_BYTES_MAX];
    size_t ends[ENDS], len = one_of_each(bytes, ends), whole = 0;
    struct entry got;

    for (size_t have = 0; have <= len; have++) {
        bool is_whole = have == ends[whole];

        ck_assert_int_eq(reads(bytes, have, &got), is_whole);
        whole += is_whole;
    }
    ck_assert_uint_eq(whole, COUNT_OF(ends));
}
END_TEST

START_TEST(test_changed)
{
    uint8_t bytes[2 * ENTRY_COUNTER_BYTES_MAX];
    size_t ends[ENDS], len = one_of_each(bytes, ends);
    struct entry got;

    for (size_t at = 0; at < len; at++) {
        uint8_t was = bytes[at];

        for (unsigned byte = 0; byte < 256; byte++) {
            bytes[at] = (uint8_t)byte;
            (void)reads(bytes, len, &got);
        }
        bytes[at] = was;
    }
}
END_TEST

static const struct {
    const char *bytes;
    size_t len;
} bad[] = {
    {"\x00", 1}, /* END is not in files */
    {"\x08", 1},
    {"\x07", 1},                         /* a kind to come */
    {"\x0e\1\1\1\1\1\1\1\1\1\1\1n", 13}, /* uses of kind 6 to come */
    {"\xfe\1\1\1\1\1\1\1\1\1\1\1n", 13},
    {"\x06\0\1\1\1\1\1\1\1\1\1\1n", 13},               /* term 0 */
    {"\x06\x80\x80\x80\x08\1\1\1\1\1\1\1\1\1\1n", 16}, /* 2^24 */
    {"\x06\1\0\0\0\0\0\0\0\0\1\1n", 13},               /* no branch */
    {"\x06\1\1\1\1\1\1\1\1\1\1\0", 12},                /* no name */
    {"\x06\1\1\1\1\1\1\1\1\1\1\2n", 13},               /* a cut one */
    {"\x06\1\1\1\1\1\1\1\1\1\1\1:", 13},               /* no safe one */
    {"\x06\1\1\1\1\1\1\1\1\1\x80\x80\x80\x80\x80\x20\1n",
        18},       /* what is before it is of it */
    {"\x25\1", 2}, /* uses of kind 5 to come */
    {"\xfd\1", 2},
    {"\x05\0\1\1", 4},         /* serial 0 */
    {"\x05\1\x80\x80\4\1", 6}, /* shard 2^16 */
    {"\x05\1\1", 3},           /* no number */
    {"\x0d\0\1x", 4},          /* serial 0 */
    {"\x0d\1\0", 3},           /* no name */
    {"\x0d\1\2x", 4},          /* a cut one */
    {"\x0d\1\1:", 4},          /* no safe one */
    {"\x15\0", 2},
    {"\x1d\0\1\1\0\2\0\0\0\0\0\0\0", 13}, /* serial 0 */
    {"\x1d\1\1\0\0", 5},                  /* nothing was seen */
    {"\x1d\1\1\1\0\1\0\0\0\0\0\0\0", 13}, /* not the highest */
    {"\x1d\1\1\1\0\6\0\0\0\0\0\0\0", 13}, /* one above it */
    {"\x1d\1\1\3\0\2\0\0\0\0\0\0\0", 13}, /* a word is missing */
    {"\x01\1\1\1", 4},                    /* no cells */
    {"\x8a\1\1", 3},               /* the column before, and there is none */
    {"\x8a\1\1\1", 4},             /* likewise */
    {"\x11\1\5\1\6\1\x8a\1\1", 9}, /* one, and there are two before */
    {"\x09\1\5\1\x92\1\1\1", 8},   /* two, and there is one before */
    {"\x09\1\5\1\x8a\1", 6},       /* no value */
    {"\x91\1\5\1", 4},             /* one value, and they are two */
    {"\x91\1\0\1\1", 5},           /* serial 0 */
    {"\x91\1\xff\xff\xff\xff\x0f\1\1", 9}, /* serials up to 2^32 */
    {"\x09\1\0\1", 4},                     /* serial 0 */
    {"\x09\1\x80\x80\x80\x80\x10\1", 8},   /* serial 2^32 */
    {"\x09\x80\0\1\1", 5},                 /* a long zero */
    {"\x04\2\0", 3},
    {"\x04\0\0", 3},
    {"\x04\2\3", 3}, /* dropped one that was never given out */
    {"\x0c\2\1", 3},
};

START_TEST(test_refused)
{
    static const uint8_t good[] = "\x04\2\1";
    static const uint8_t term[] = "\x06\1\1\1\1\1\1\1\1\1\1\1n";
    struct schema_counter counter = small_counter();
    uint8_t bytes[ENTRY_COUNTER_BYTES_MAX];
    struct entry got;
    size_t len;

    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        ck_assert_msg(
            !reads((const uint8_t *)bad[i].bytes, bad[i].len, &got), "%zu", i);
    }
    ck_assert(reads(good, 3, &got));
    ck_assert(reads(term, sizeof term - 1, &got));
    ck_assert(reads(bytes, entry_put_counter(bytes, &counter, 9), &got));
    ck_assert(!reads(bytes, entry_put_counter(bytes, &counter, 8), &got));
    counter.n_columns = 0;
    ck_assert(reads(bytes, entry_put_counter(bytes, &counter, 8), &got));
    ck_assert(!reads(bytes, entry_put_counter(bytes, &counter, 7), &got));
    len = entry_put_counter(bytes, &counter, 8);
    bytes[0] |= 8; /* a number of cells */
    ck_assert(!reads(bytes, len, &got));
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_replace, test_replace_short,
        test_round_trip, test_lengths, test_short_lengths,
        test_producer_lengths, test_term_lengths, test_cut, test_changed,
        test_refused};

    return run_tests("entry", tests, COUNT_OF(tests));
}
