/* SPDX-License-Identifier: BSD-3-Clause */
/* repl/feed_filter: random payloads against a slow model, for every residue of
 * several rules: each id's entries are in the payload of one of them, in order,
 * and what is of no id in all; what is never sent; payloads cut at every
 * place. */
#include "repl/feed_filter.h"

#include "base/err.h"
#include "unit/check_help.h"
#include "wal/entry.h"

#include <stdio.h>

enum {
    ROUNDS = 300,
    ENTRIES = 60,
    PAYLOAD = ENTRIES * ENTRY_ABOUT_BYTES_MAX,
    PAIRS_COUNTER = 90, /* serial of a counter that has members */
    MEMBERS = 92,       /* of their column */
    PAIRS = MEMBERS + SCHEMA_PAIRS_SERIALS,
    LATE = 40 /* columns that are made on the way have serials above */
};

struct text {
    uint8_t bytes[PAYLOAD];
    size_t len;
    uint64_t id_before;
    unsigned n; /* columns of that record; 0: there was none */
    uint32_t serial[SCHEMA_COLUMNS_MAX];
};

static uint64_t
random_number(uint64_t *state)
{
    return random_below(state, UINT64_MAX) >> random_below(state, 64);
}

static uint64_t
random_id(uint64_t *state, const struct text *text)
{
    return random_below(state, 2) == 0
        ? text->id_before + random_below(state, 20)
        : random_number(state);
}

static struct schema_counter
counter_of(uint32_t serial)
{
    struct schema_counter counter = {.serial = serial, .n_columns = 2};

    counter.name = (struct schema_name){.len = 1, .text = "c"};
    counter.key_name = (struct schema_name){.len = 1, .text = "k"};
    counter.column[0] = (struct schema_column){.serial = serial + 1,
        .name = {.len = 1, .text = "n"},
        .hint_bits = 8,
        .max_bits = 32};
    counter.column[1] = (struct schema_column){.serial = serial + 2,
        .slot = 1,
        .name = {.len = 1, .text = "m"},
        .hint_bits = 16,
        .max_bits = 32,
        .kind = SCHEMA_MEMBERS,
        .member_bits = 32,
        .value_bits = 1,
        .pairs = 200};
    return counter;
}

/* What comes may be near this record, and have its columns. */
static void
know(struct text *text, uint64_t id, unsigned n, const uint32_t *serial)
{
    text->id_before = id;
    text->n = n;
    memcpy(text->serial, serial, n * sizeof *serial);
}

/* Short ones, too; some of the columns of the record before. */
static void
put_cells(struct text *text, uint64_t *state)
{
    struct entry_cells cells = {.id = random_id(state, text),
        .n = 1 + (unsigned)random_below(state, SCHEMA_COLUMNS_MAX)};
    const struct entry_before before = {
        text->id_before, text->n, text->serial};
    uint64_t form = random_below(state, 4);

    for (unsigned i = 0; i < SCHEMA_COLUMNS_MAX; i++) {
        cells.serial[i] = form == 2 && i > 0
            ? cells.serial[0] + i
            : 1 + (uint32_t)random_below(state, LATE - SCHEMA_COLUMNS_MAX);
        cells.value[i] = random_number(state);
    }
    if (form == 3 && text->n > 0) {
        cells.n = text->n;
        memcpy(cells.serial, text->serial, sizeof cells.serial);
    }
    text->len += form > 0
        ? entry_put_record(text->bytes + text->len, cells.id, cells.n,
              cells.serial, cells.value, text->n > 0 ? &before : NULL)
        : entry_put_columns(text->bytes + text->len, cells.id, cells.n,
              cells.serial, cells.value,
              text->n > 0 ? &text->id_before : NULL);
    know(text, cells.id, cells.n, cells.serial);
}

static void
put_members(struct text *text, uint64_t *state)
{
    const uint32_t serial[] = {91, 92, 3};
    struct entry_members members = {
        .n_changes = 1 + (unsigned)random_below(state, ENTRY_MEMBERS_MAX),
        .n = 1 + (unsigned)random_below(state, 3),
        .pair_bytes = 1 + (unsigned)random_below(state, 8),
        .pair_serial = random_below(state, 2) == 0 ? PAIRS : 7,
        .pair_value = random_below(state, 3)};
    uint64_t id = 0;

    text->len += entry_put_members(text->bytes + text->len, &members, serial);
    for (unsigned i = 0; i < members.n_changes; i++) {
        uint64_t before = id, value[3];
        uint64_t pair = random_number(state) >> (64 - 8 * members.pair_bytes);

        id = random_id(state, text);
        for (unsigned c = 0; c < 3; c++) {
            value[c] = random_number(state);
        }
        text->len += entry_put_member(text->bytes + text->len, &members, id,
            value, pair, i == 0 ? NULL : &before);
        know(text, id, members.n, serial);
    }
}

static void
put_about(struct text *text, uint64_t *state)
{
    struct entry_about about = {.serial = 93,
        .n = 1 + (unsigned)random_below(state, ENTRY_ABOUT_PAIRS_MAX)};

    for (unsigned i = 0; i < about.n; i++) {
        about.id[i] = random_id(state, text);
        about.member[i] = random_number(state);
    }
    text->len += entry_put_about(text->bytes + text->len, &about);
}

/* A cell that is never sent: of a pair that is known, or of one that becomes
 * known on the way. */
static void
put_lone(struct text *text, uint64_t *state, uint32_t serial)
{
    uint64_t id = random_id(state, text);

    text->len += entry_put_cell(text->bytes + text->len, id, serial,
        random_number(state), text->n > 0 ? &text->id_before : NULL);
    know(text, id, 1, &serial);
}

static void
put_other(struct text *text, uint64_t *state)
{
    const struct producer_name name = {.len = 3, .text = "abc"};
    struct schema_counter counter = counter_of(LATE + 1);
    uint8_t *at = text->bytes + text->len;

    switch (random_below(state, 5)) {
    case 0:
        text->len += entry_put_number(
            at, 1 + (uint32_t)random_below(state, 9), 3, random_number(state));
        return;
    case 1:
        text->len += entry_put_producer(at, 7, &name);
        return;
    case 2:
        text->len += entry_put_producer_dropped(at, 7);
        return;
    case 3:
        text->len += entry_put_dropped(at, 9, 1000);
        return;
    default:
        text->len += entry_put_counter(at, &counter, 1000);
        put_lone(text, state, LATE + 3 + SCHEMA_PAIRS_SERIALS);
    }
}

static void
make(struct text *text, uint64_t *state)
{
    struct entry_term term = {.term = 5,
        .branch = 1,
        .last_seq = seq_make(4, 9),
        .node = {.len = 1, .text = "a"}};

    text->len = 0;
    text->id_before = 0;
    text->n = 0;
    if (random_below(state, 4) == 0) {
        text->len += entry__put_term(text->bytes, &term);
    }
    for (uint64_t n = random_below(state, ENTRIES); n > 0; n--) {
        uint64_t kind = random_below(state, 11);

        if (kind < 6) {
            put_cells(text, state);
        } else if (kind < 8) {
            put_members(text, state);
        } else if (kind > 9) {
            put_about(text, state);
        } else if (kind < 9) {
            put_lone(text, state, PAIRS);
        } else {
            put_other(text, state);
        }
    }
}

/* Leaves those members of about that are of the rule; false: none are. */
static bool
keep(struct entry *entry, const struct owns *owns)
{
    struct entry_about *about = &entry->about;
    unsigned n = 0;

    for (unsigned i = 0; i < about->n; i++) {
        if (owns_has(owns, about->id[i])) {
            about->id[n] = about->id[i];
            about->member[n++] = about->member[i];
        }
    }
    about->n = n;
    return n > 0;
}

/* The next entry, as it stands in a whole payload: what is of the rule, by the
 * record of which it is. False: there is none. */
static bool
next_kept(struct entry_reader *reader, const struct owns *owns,
    const uint64_t **record, struct entry *out)
{
    static uint64_t id;

    while (entry_has_next(reader)) {
        bool is_pair = reader->n_parts % 2 != 0;
        bool is_of_members = reader->n_parts > 0 ||
            (*reader->at & ((1 << ENTRY_KIND_BITS) - 1)) == ENTRY_MEMBERS;
        uint32_t serial;

        ck_assert(entry_next(reader, out));
        if (out->kind == ENTRY_TERM) {
            continue;
        }
        if (out->kind == ENTRY_ABOUT && owns != NULL && !keep(out, owns)) {
            continue;
        }
        if (out->kind != ENTRY_CELLS) {
            return true;
        }
        serial = out->cells.serial[0];
        if (!is_of_members && out->cells.n == 1 &&
            (serial == PAIRS || serial == ENTRY_MARK_SERIAL ||
                serial == LATE + 3 + SCHEMA_PAIRS_SERIALS)) {
            continue;
        }
        if (!is_pair) {
            id = out->cells.id;
        }
        *record = &id;
        if (owns == NULL || owns_has(owns, id)) {
            return true;
        }
    }
    return false;
}

static void
assert_same(const struct entry *a, const struct entry *b)
{
    ck_assert_int_eq(a->kind, b->kind);
    if (a->kind == ENTRY_CELLS) {
        ck_assert_uint_eq(a->cells.id, b->cells.id);
        ck_assert_uint_eq(a->cells.n, b->cells.n);
        for (unsigned i = 0; i < a->cells.n; i++) {
            ck_assert_uint_eq(a->cells.serial[i], b->cells.serial[i]);
            ck_assert_uint_eq(a->cells.value[i], b->cells.value[i]);
        }
    } else if (a->kind == ENTRY_ABOUT) {
        ck_assert_uint_eq(a->about.serial, b->about.serial);
        ck_assert_uint_eq(a->about.n, b->about.n);
        for (unsigned i = 0; i < a->about.n; i++) {
            ck_assert_uint_eq(a->about.id[i], b->about.id[i]);
            ck_assert_uint_eq(a->about.member[i], b->about.member[i]);
        }
    } else if (a->kind == ENTRY_NUMBER) {
        ck_assert_uint_eq(a->producer, b->producer);
        ck_assert_uint_eq(a->number, b->number);
    } else if (a->kind == ENTRY_COUNTER) {
        ck_assert_uint_eq(a->counter.serial, b->counter.serial);
    }
}

/* Filters, and compares with the model; how many entries stay that are of an
 * id. */
static size_t
look(const struct text *text, struct owns *owns)
{
    static uint8_t bytes[PAYLOAD + FEED_FILTER_MORE];
    const struct schema_counter counter = counter_of(PAIRS_COUNTER);
    struct feed_filter filter = {.owns = owns};
    struct entry_reader model = {
        .at = text->bytes, .end = text->bytes + text->len};
    struct entry_reader reader = {.at = bytes};
    struct entry want, got;
    const uint64_t *record;
    size_t len, n = 0;

    ck_assert_int_eq(feed_filter_know(&filter, &counter), 0);
    ck_assert_int_eq(
        feed_filter_run(&filter, text->bytes, text->len, bytes, &len), 0);
    ck_assert_uint_le(len, text->len);
    reader.end = bytes + len;
    while (next_kept(&model, owns, &record, &want)) {
        ck_assert(entry_has_next(&reader));
        ck_assert(entry_next(&reader, &got));
        assert_same(&want, &got);
        n += want.kind == ENTRY_CELLS;
    }
    ck_assert(!entry_has_next(&reader));
    feed_filter_fini(&filter);
    return n;
}

/* How many entries there are that are of an id. */
static size_t
count_all(const struct text *text)
{
    struct entry_reader model = {
        .at = text->bytes, .end = text->bytes + text->len};
    const uint64_t *record;
    struct entry entry;
    size_t n = 0;

    while (next_kept(&model, NULL, &record, &entry)) {
        n += entry.kind == ENTRY_CELLS;
    }
    return n;
}

static void
go_through(const char *rule, unsigned n, uint64_t seed)
{
    static struct text text;
    struct owns *owns[8];
    char name[32];

    for (unsigned i = 0; i < n; i++) {
        snprintf(name, sizeof name, "%s:%u/%u", rule, i, n);
        ck_assert_int_eq(owns_create_rule(name, strlen(name), &owns[i]), 0);
    }
    for (unsigned round = 0; round < ROUNDS; round++) {
        size_t kept = 0;

        make(&text, &seed);
        for (unsigned i = 0; i < n; i++) {
            kept += look(&text, owns[i]);
        }
        ck_assert_uint_eq(kept, count_all(&text));
    }
    for (unsigned i = 0; i < n; i++) {
        owns_destroy(&owns[i]);
    }
}

START_TEST(test_residues)
{
    go_through("modulo", 1, 1);
    go_through("modulo", 2, 2);
    go_through("modulo", 8, 3);
    go_through("crc32a", 4, 4);
}
END_TEST

/* The largest id is one below 0: written out it takes more bytes than all that
 * was before it. */
START_TEST(test_about_around_the_end)
{
    struct entry_about about = {
        .serial = 93, .n = 2, .id = {0, UINT64_MAX}, .member = {5, 6}};
    uint8_t bytes[ENTRY_ABOUT_BYTES_MAX];
    struct feed_filter filter = {0};
    struct entry entry;
    struct owns *owns;
    size_t n = 0, len = entry_put_about(bytes, &about);
    uint8_t *out = malloc(len + FEED_FILTER_MORE);

    ck_assert_ptr_nonnull(out);
    ck_assert_int_eq(owns_create_rule("modulo:1/2", 10, &owns), 0);
    filter.owns = owns;
    ck_assert_int_eq(feed_filter_run(&filter, bytes, len, out, &n), 0);
    ck_assert_uint_le(n, len);
    struct entry_reader reader = {.at = out, .end = out + n};
    ck_assert(entry_next(&reader, &entry) && !entry_has_next(&reader));
    ck_assert_int_eq(entry.kind, ENTRY_ABOUT);
    ck_assert_uint_eq(entry.about.id[entry.about.n - 1], UINT64_MAX);
    ck_assert_uint_eq(entry.about.member[entry.about.n - 1], 6);
    owns_destroy(&owns);
    free(out);
}
END_TEST

START_TEST(test_marks)
{
    uint8_t mark[ENTRY_MARK_BYTES], out[ENTRY_MARK_BYTES + FEED_FILTER_MORE];
    struct feed_filter filter = {0};
    struct owns *owns;
    size_t n = 1;

    ck_assert_int_eq(owns_create_rule("modulo:0/1", 10, &owns), 0);
    filter.owns = owns;
    entry_put_mark(mark, ENTRY_MARK_IDLE);
    ck_assert_int_eq(feed_filter_run(&filter, mark, sizeof mark, out, &n), 0);
    ck_assert_uint_eq(n, 0);
    owns_destroy(&owns);
}
END_TEST

/* Names go with no id that a rule has, and what stands around them stays. */
START_TEST(test_names)
{
    uint8_t in[PAYLOAD], wanted[PAYLOAD], out[PAYLOAD + FEED_FILTER_MORE];
    const struct schema_counter counter = counter_of(20);
    struct feed_filter filter = {0};
    struct owns *owns;
    size_t n = 0, len = 0, n_wanted;

    ck_assert_int_eq(owns_create_rule("modulo:0/1", 10, &owns), 0);
    filter.owns = owns;
    n_wanted = entry_put_counter(wanted, &counter, LATE);
    len += entry_put_name(in, 3, 7, "a-name-of-some-length", 21);
    memcpy(in + len, wanted, n_wanted);
    len += n_wanted;
    len += entry_put_name(in + len, 3, 7, NULL, 0);
    ck_assert_int_eq(feed_filter_run(&filter, in, len, out, &n), 0);
    ck_assert_uint_eq(n, n_wanted);
    ck_assert_mem_eq(out, wanted, n);
    feed_filter_fini(&filter);
    owns_destroy(&owns);
}
END_TEST

/* Records of the same columns, of which every third is left out, whose number
 * takes other bytes than those of its neighbours: what is sent is not longer,
 * though the distance over what is left out is long. */
START_TEST(test_lengths_of_numbers)
{
    static const uint32_t firsts[] = {1, 200, 20000, 1U << 28};
    struct owns *owns;
    ck_assert_int_eq(owns_create_rule("modulo:0/2", 10, &owns), 0);
    for (unsigned n = 1; n <= SCHEMA_COLUMNS_MAX; n++) {
        for (size_t f = 0; f < COUNT_OF(firsts); f++) {
            uint64_t id[] = {3 << 19, (1 << 14) + 1, 1 << 8}, last = 0;
            uint8_t in[64 * ENTRY_CELLS_BYTES_MAX];
            uint8_t out[sizeof in + FEED_FILTER_MORE];
            uint32_t serial[SCHEMA_COLUMNS_MAX];
            uint64_t value[SCHEMA_COLUMNS_MAX] = {0};
            struct feed_filter filter = {.owns = owns};
            size_t len = 0, out_len;
            for (unsigned i = 0; i < n; i++) {
                serial[i] = firsts[f] + i + (i > 1); /* no run */
            }
            for (unsigned i = 0; i < 64; i++, id[i % 3] += 2) {
                const struct entry_before before = {last, n, serial};
                last = id[i % 3];
                len += entry_put_record(
                    in + len, last, n, serial, value, i > 0 ? &before : NULL);
            }
            ck_assert_int_eq(
                feed_filter_run(&filter, in, len, out, &out_len), 0);
            ck_assert_uint_lt(out_len, len);
            feed_filter_fini(&filter);
        }
    }
    owns_destroy(&owns);
}
END_TEST

/* Where it is cut an entry is not whole, or it ends before one. */
START_TEST(test_cut)
{
    static struct text text;
    struct feed_filter filter = {0};
    unsigned n_wrong = 0, n_right = 0;
    struct owns *owns;
    uint64_t state = 5;

    ck_assert_int_eq(owns_create_rule("modulo:0/1", 10, &owns), 0);
    filter.owns = owns;
    do {
        make(&text, &state);
    } while (text.len < 1000);
    for (size_t cut = 0; cut <= text.len; cut++) {
        char *copy = copy_of((const char *)text.bytes, cut);
        uint8_t *out = malloc(cut + FEED_FILTER_MORE);
        size_t n;
        int err;

        ck_assert_ptr_nonnull(out);
        err = feed_filter_run(&filter, (const uint8_t *)copy, cut, out, &n);
        ck_assert(err == 0 || err == ERR_CORRUPT);
        n_right += err == 0;
        n_wrong += err != 0;
        free(out);
        free(copy);
    }
    ck_assert_uint_gt(n_right, 5);
    ck_assert_uint_gt(n_wrong, n_right);
    feed_filter_fini(&filter);
    owns_destroy(&owns);
}
END_TEST

int
main(void)
{
    const TTest *tests[] = {test_residues, test_about_around_the_end,
        test_marks, test_names, test_lengths_of_numbers, test_cut};

    return run_tests("feed_filter", tests, COUNT_OF(tests));
}
