/* SPDX-License-Identifier: BSD-3-Clause */
/* wal/schema_code: counters made by edits come back with all that the schema's
 * language can say of them; cut anywhere, or with a byte changed, they are no
 * counter or one that could have been made; and what versions to come may add
 * is taken or refused as the format promises. */
#include "wal/schema_code.h"

#include "base/buf.h"
#include "base/bytes.h"
#include "schema/print.h"
#include "schema/schema_priv.h"
#include "unit/check_help.h"

#include <stdio.h>

static struct schema_name
name_of(const char *text)
{
    struct schema_name name = {.len = (uint8_t)strlen(text)};

    memcpy(name.text, text, name.len);
    return name;
}

/* A small counter of two columns. */
static struct schema_counter
small_counter(void)
{
    return (struct schema_counter){
        .name = name_of("post"),
        .key_name = name_of("id"),
        .serial = 3,
        .slot = 200,
        .n_columns = 2,
        .key_hint_bits = 52,
        .overflow_is_error = true,
        .max_jump = 1000,
        .column = {{.name = name_of("likes"),
                       .suffix = name_of("l"),
                       .serial = 7,
                       .slot = 1,
                       .hint_bits = 8,
                       .max_bits = 16,
                       .flags = 300,
                       .default_value = 65535},
            {.name = name_of("views"),
                .serial = 5,
                .slot = 0,
                .max_bits = 64,
                .default_value = UINT64_MAX}},
    };
}

static struct schema_name
random_name(uint64_t *state)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    struct schema_name name = {0};
    size_t len = 20 + random_below(state, SCHEMA_NAME_MAX - 20 + 1);

    for (size_t i = 0; i < len; i++) {
        name.text[i] = letters[random_below(state, i == 0 ? 53 : 63)];
    }
    name.len = (uint8_t)len;
    return name;
}

/* Makes a number a mark or a list. */
static void
random_kind(uint64_t *state, struct schema_column *column)
{
    column->default_value = 0;
    column->source.serial =
        1 + (uint32_t)random_below(state, column->serial - 1);
    if (random_below(state, 2) == 0) {
        column->kind = SCHEMA_FOLLOWS;
        column->hint_bits = 0;
        column->max_bits = 1;
        return;
    }
    column->kind = SCHEMA_MARK;
    column->unread = random_name(state);
    column->source.is_fixed = random_below(state, 2) != 0;
    column->source.id =
        column->source.is_fixed ? random_below(state, UINT64_MAX) : 0;
    column->unmarked_is_none = random_below(state, 2) != 0;
    column->forget =
        column->unmarked_is_none ? random_below(state, UINT64_MAX) : 0;
}

static void
random_column(uint64_t *state, struct schema_column *column, unsigned i)
{
    column->name = random_name(state);
    if (random_below(state, 2) == 0) {
        column->suffix = random_name(state);
    }
    column->serial = UINT32_MAX - i * 3;
    column->slot = (uint8_t)(SCHEMA_COLUMNS_MAX - 1 - i);
    column->max_bits = (uint8_t)(1 + random_below(state, 64));
    column->hint_bits = (uint8_t)random_below(state, column->max_bits + 1u);
    column->flags = (uint32_t)random_below(state, UINT64_C(1) << 32);
    column->default_value =
        random_below(state, UINT64_MAX) & schema_column_max(column);
    if (random_below(state, 4) == 0) {
        random_kind(state, column);
    }
}

/* Makes its last column one of members, which may count in the one before,
 * though columns never come in such an order of their serials. */
static void
random_members(uint64_t *state, struct schema_counter *counter)
{
    unsigned last = counter->n_columns - 1u;
    struct schema_column *members = &counter->column[last];

    if (counter->n_columns == 0 || members->kind != SCHEMA_NUMBER) {
        return;
    }
    members->kind = SCHEMA_MEMBERS;
    members->member_bits = (uint8_t)(16 + random_below(state, 33));
    members->value_bits = (uint8_t)(1 + random_below(state, 8));
    members->max_bits = (uint8_t)(64 - members->member_bits);
    members->hint_bits = 16;
    members->default_value = 0;
    members->pairs = (uint8_t)(counter->slot + 1 + random_below(state, 255));
    if (last > 0 && members[-1].kind == SCHEMA_NUMBER) {
        members[-1].default_value = 0;
        members[-1].serial = members->serial - 1;
        members->counts = members[-1].serial;
    }
}

/* Makes its first column one of members=about. */
static void
random_about(uint64_t *state, struct schema_counter *counter)
{
    struct schema_column *about = &counter->column[0];

    if (counter->n_columns < 3 || about->kind != SCHEMA_NUMBER) {
        return;
    }
    about->kind = SCHEMA_ABOUT;
    about->member_bits = (uint8_t)(16 + random_below(state, 33));
    about->value_bits = 1;
    about->max_bits = 1;
    about->hint_bits = 0;
    about->default_value = 0;
    about->error = (uint16_t)(20 + random_below(state, 981));
    about->memory = (UINT64_C(16) << 20) + random_below(state, 1ull << 45);
}

static struct schema_counter
random_counter(uint64_t *state)
{
    struct schema_counter counter = {
        .name = random_name(state),
        .key_name = random_name(state),
        .serial = 1 + (uint32_t)random_below(state, UINT32_MAX),
        .slot = (uint8_t)random_below(state, SCHEMA_COUNTERS_MAX),
        .n_columns = (uint8_t)random_below(state, SCHEMA_COLUMNS_MAX + 1),
        .key_hint_bits = (uint8_t)random_below(state, 65),
        .absent_is_miss = random_below(state, 2) != 0,
        .overflow_is_error = random_below(state, 2) != 0,
        .exptime_is_ignored = random_below(state, 2) != 0,
        .cold_is_quietest = random_below(state, 2) != 0,
        .max_jump = random_below(state, UINT64_MAX),
        .cold_after = random_below(state, UINT64_MAX),
    };

    if (random_below(state, 4) == 0) {
        counter.cold_is_never = true;
        counter.cold_is_quietest = false;
        counter.cold_after = 0;
    }
    for (unsigned i = 0; i < counter.n_columns; i++) {
        random_column(state, &counter.column[i], i);
    }
    if (counter.cold_is_never) {
        random_members(state, &counter);
    }
    if (random_below(state, 4) == 0) {
        random_about(state, &counter);
        counter.key_is_text = random_below(state, 2) != 0;
    }
    return counter;
}

static void
assert_same_name(const struct schema_name *a, const struct schema_name *b)
{
    ck_assert_uint_eq(a->len, b->len);
    ck_assert_mem_eq(a->text, b->text, sizeof a->text);
}

static void
assert_same_column(
    const struct schema_column *a, const struct schema_column *b)
{
    assert_same_name(&a->name, &b->name);
    assert_same_name(&a->suffix, &b->suffix);
    ck_assert_uint_eq(a->serial, b->serial);
    ck_assert_uint_eq(a->slot, b->slot);
    ck_assert_uint_eq(a->hint_bits, b->hint_bits);
    ck_assert_uint_eq(a->max_bits, b->max_bits);
    ck_assert_uint_eq(a->flags, b->flags);
    ck_assert_uint_eq(a->default_value, b->default_value);
    ck_assert_int_eq(a->kind, b->kind);
    ck_assert_uint_eq(a->source.serial, b->source.serial);
    ck_assert_int_eq(a->source.is_fixed, b->source.is_fixed);
    ck_assert_uint_eq(a->source.id, b->source.id);
    assert_same_name(&a->unread, &b->unread);
    ck_assert_int_eq(a->unmarked_is_none, b->unmarked_is_none);
    ck_assert_uint_eq(a->forget, b->forget);
    ck_assert_uint_eq(a->counts, b->counts);
    ck_assert_uint_eq(a->member_bits, b->member_bits);
    ck_assert_uint_eq(a->value_bits, b->value_bits);
    ck_assert_uint_eq(a->pairs, b->pairs);
    ck_assert_uint_eq(a->error, b->error);
    ck_assert_uint_eq(a->memory, b->memory);
}

static void
assert_same(const struct schema_counter *a, const struct schema_counter *b)
{
    assert_same_name(&a->name, &b->name);
    assert_same_name(&a->key_name, &b->key_name);
    ck_assert_uint_eq(a->serial, b->serial);
    ck_assert_uint_eq(a->slot, b->slot);
    ck_assert_uint_eq(a->n_columns, b->n_columns);
    ck_assert_uint_eq(a->key_hint_bits, b->key_hint_bits);
#define X(field, ...) ck_assert_uint_eq(a->field, b->field);
    SCHEMA_COUNTER_OPTIONS(X)
    SCHEMA_COUNTER_NUMBERS(X)
#undef X
    for (unsigned i = 0; i < SCHEMA_COLUMNS_MAX; i++) {
        assert_same_column(&a->column[i], &b->column[i]);
    }
}

/* Decodes exactly these bytes; all of them must be used. */
static bool
decode(const uint8_t *bytes, size_t len, struct schema_counter *out)
{
    char *copy = copy_of((const char *)bytes, len);
    const uint8_t *start = (const uint8_t *)copy;
    const uint8_t *at = start;
    bool ok;

    memset(out, 0xa5, sizeof *out);
    ok = schema_code_get(&at, start + len, out);
    ck_assert(ok || at == start);
    ok = ok && at == start + len;
    free(copy);
    return ok;
}

START_TEST(test_round_trip)
{
    uint64_t state = 5;
    struct schema_counter got;

    for (int i = 0; i < 500; i++) {
        struct schema_counter counter = random_counter(&state);
        uint8_t bytes[SCHEMA_CODE_BYTES_MAX];
        size_t len = schema_code_put(bytes, &counter);

        ck_assert(decode(bytes, len, &got));
        assert_same(&counter, &got);
    }
}
END_TEST

/* Applies one line that adds something. */
static void
add(struct schema **schema, enum schema_edit_op op, const char *line)
{
    struct schema_word word[10];
    struct schema_edit edit;
    struct schema *next;
    size_t n = 0;

    while (*line != '\0') {
        ck_assert_uint_lt(n, COUNT_OF(word));
        size_t len = strcspn(line, " ");

        word[n++] = (struct schema_word){line, len};
        line += len + (line[len] == ' ');
    }
    ck_assert_int_eq(schema_edit_parse(op, word, n, &edit), 0);
    ck_assert_int_eq(schema_apply(*schema, &edit, &next), 0);
    schema_destroy(schema);
    *schema = next;
}

/* As the schema prints it after it was bytes. */
static void
check_printed(const struct schema *schema, const char *name)
{
    const struct schema_counter *counter =
        schema_counter(schema, name, strlen(name));
    struct schema_counter got;
    uint8_t bytes[SCHEMA_CODE_BYTES_MAX];
    struct buf before = {0}, after = {0};

    ck_assert_ptr_nonnull(counter);
    ck_assert(decode(bytes, schema_code_put(bytes, counter), &got));
    assert_same(counter, &got);
    ck_assert_int_eq(schema_print(schema, counter, &before), 0);
    ck_assert_int_eq(schema_print(schema, &got, &after), 0);
    ck_assert_uint_eq(before.len, after.len);
    ck_assert_mem_eq(before.data, after.data, before.len);
    buf_fini(&before);
    buf_fini(&after);
}

/* An option of the language that is not in the bytes fails here. */
START_TEST(test_every_option)
{
    struct schema *schema = schema_create();
    char line[200];
    int n = 0;

#define X(field, word, no, yes)                                               \
    (void)snprintf(line, sizeof line, "c%d " word "=" yes, n++);              \
    add(&schema, SCHEMA_ADD_COUNTER, line);
    SCHEMA_COUNTER_OPTIONS(X)
#undef X
#define X(field, word)                                                        \
    (void)snprintf(line, sizeof line, "c%d " word "=12345678901", n++);       \
    add(&schema, SCHEMA_ADD_COUNTER, line);
    SCHEMA_COUNTER_NUMBERS(X)
#undef X
    add(&schema, SCHEMA_ADD_COLUMN, "c0 key hint=33 primarykey");
    add(&schema, SCHEMA_ADD_COLUMN,
        "c0 a hint=9 max=21 default=77 suffix=sa flags=4294967295");
    add(&schema, SCHEMA_ADD_COLUMN, "c0 b");
    add(&schema, SCHEMA_ADD_COLUMN, "c0 c marks=a unread=uc flags=7");
    add(&schema, SCHEMA_ADD_COLUMN,
        "c0 d marks=18446744073709551615.b unread=ud unmarked=none "
        "forget=12345678901 suffix=sd");
    add(&schema, SCHEMA_ADD_COUNTER, "followed cold=never");
    add(&schema, SCHEMA_ADD_COLUMN, "followed fk primarykey");
    add(&schema, SCHEMA_ADD_COLUMN, "followed posts");
    add(&schema, SCHEMA_ADD_COLUMN, "c0 e follows=posts suffix=se flags=1");
    for (int i = 0; i < n; i++) {
        (void)snprintf(line, sizeof line, "c%d", i);
        check_printed(schema, line);
    }
    schema_destroy(&schema);
}
END_TEST

/* Makes the first column one of members. */
static void
make_members(struct schema_counter *counter)
{
    struct schema_column *members = &counter->column[0];
    *members = (struct schema_column){.name = members->name,
        .suffix = members->suffix,
        .serial = members->serial,
        .slot = members->slot,
        .hint_bits = 16,
        .max_bits = 48,
        .flags = UINT32_MAX,
        .kind = SCHEMA_MEMBERS,
        .member_bits = 16,
        .value_bits = 8,
        .pairs = SCHEMA_COUNTERS_MAX - 2};
    counter->cold_is_quietest = false;
    counter->cold_is_never = true;
    counter->cold_after = 0;
}

/* The largest there is. */
START_TEST(test_largest)
{
    struct schema_counter counter = {.serial = UINT32_MAX,
        .slot = SCHEMA_COUNTERS_MAX - 1,
        .n_columns = SCHEMA_COLUMNS_MAX,
        .key_hint_bits = 64,
        .absent_is_miss = true,
        .overflow_is_error = true,
        .exptime_is_ignored = true,
        .cold_is_quietest = true,
        .max_jump = UINT64_MAX,
        .cold_after = UINT64_MAX};
    uint8_t bytes[SCHEMA_CODE_BYTES_MAX];
    struct schema_counter got;
    char text[40];

    counter.name = name_of("abcdefghijklmnopqrstuvwxyz______");
    counter.key_name = name_of("abcdefghijklmnopqrstuvwxyz_____k");
    for (unsigned i = 0; i < SCHEMA_COLUMNS_MAX; i++) {
        struct schema_column *column = &counter.column[i];

        (void)snprintf(text, sizeof text, "n%031u", i);
        column->name = name_of(text);
        (void)snprintf(text, sizeof text, "s%031u", i);
        column->suffix = name_of(text);
        column->serial = UINT32_MAX - 1 - i;
        column->slot = (uint8_t)i;
        column->hint_bits = column->max_bits = 64;
        column->flags = UINT32_MAX;
        column->default_value = UINT64_MAX;
    }
    size_t len = schema_code_put(bytes, &counter);
    ck_assert_uint_eq(len, 1522); /* as doc/format-log.md says */
    ck_assert(decode(bytes, len, &got));
    assert_same(&counter, &got);

    for (unsigned i = 0; i < SCHEMA_COLUMNS_MAX; i++) {
        struct schema_column *column = &counter.column[i];

        (void)snprintf(text, sizeof text, "u%031u", i);
        column->unread = name_of(text);
        column->kind = SCHEMA_MARK;
        column->default_value = 0;
        column->source = (struct schema_source){
            .serial = UINT32_MAX - SCHEMA_COLUMNS_MAX - 1,
            .is_fixed = true,
            .id = UINT64_MAX};
        column->unmarked_is_none = true;
        column->forget = UINT64_MAX;
    }
    len = schema_code_put(bytes, &counter);
    ck_assert_uint_eq(len, 2338); /* likewise */
    ck_assert(decode(bytes, len, &got));
    assert_same(&counter, &got);

    /* each column has more numbers for one of members */
    make_members(&counter);
    len = schema_code_put(bytes, &counter);
    ck_assert_uint_eq(len, 2338); /* likewise */
    ck_assert(decode(bytes, len, &got));
    assert_same(&counter, &got);
}
END_TEST

START_TEST(test_cut)
{
    struct schema_counter counter = small_counter(), got;
    uint8_t bytes[SCHEMA_CODE_BYTES_MAX];
    size_t len = schema_code_put(bytes, &counter);

    for (size_t have = 0; have < len; have++) {
        ck_assert(!decode(bytes, have, &got));
    }
}
END_TEST

/* Whatever is taken of changed bytes could have been put: put and read again
 * it is the same, and where it is as long, the same bytes. */
static void
expect_what_is_taken_could_be_put(const struct schema_counter *counter)
{
    struct schema_counter got, got_again;
    uint8_t bytes[SCHEMA_CODE_BYTES_MAX], again[SCHEMA_CODE_BYTES_MAX];
    size_t len = schema_code_put(bytes, counter);

    for (size_t at = 0; at < len; at++) {
        uint8_t was = bytes[at];

        for (unsigned byte = 0; byte < 256; byte++) {
            bytes[at] = (uint8_t)byte;
            if (decode(bytes, len, &got)) {
                size_t n = schema_code_put(again, &got);

                ck_assert(decode(again, n, &got_again));
                assert_same(&got, &got_again);
                ck_assert_uint_le(n, len);
                ck_assert(n < len || memcmp(again, bytes, n) == 0);
            }
        }
        bytes[at] = was;
    }
}

START_TEST(test_changed)
{
    struct schema_counter counter = small_counter(), got;
    uint8_t bytes[SCHEMA_CODE_BYTES_MAX], again[SCHEMA_CODE_BYTES_MAX];
    size_t len = schema_code_put(bytes, &counter);

    for (size_t at = 0; at < len; at++) {
        uint8_t was = bytes[at];

        for (unsigned byte = 0; byte < 256; byte++) {
            bytes[at] = (uint8_t)byte;
            if (decode(bytes, len, &got)) {
                ck_assert_uint_eq(schema_code_put(again, &got), len);
                ck_assert_mem_eq(again, bytes, len);
            }
        }
        bytes[at] = was;
    }
}
END_TEST

/* What one edit makes of the small counter must not be taken. */
#define REFUSED(statement)                                                    \
    do {                                                                      \
        struct schema_counter c = small_counter();                            \
        uint8_t bytes_[SCHEMA_CODE_BYTES_MAX];                                \
        struct schema_counter got_;                                           \
        statement;                                                            \
        ck_assert(!decode(bytes_, schema_code_put(bytes_, &c), &got_));       \
    } while (0)

START_TEST(test_refused)
{
    REFUSED(c.name.len = 0);
    REFUSED(c.name = name_of("9post"));
    REFUSED(c.name = name_of("po-st"));
    REFUSED(c.name = name_of("po st"));
    REFUSED(c.name.text[1] = '\0');
    REFUSED(c.name = name_of("l")); /* a suffix of it */
    REFUSED(c.key_name = name_of("views"));
    REFUSED(c.key_name.len = 0); /* but it has columns */
    REFUSED(c.key_name.text[0] = '-');
    REFUSED(c.serial = 0);
    REFUSED(c.column[0].name.len = 0);
    REFUSED(c.column[0].serial = 0);
    REFUSED(c.column[0].serial = c.column[1].serial);
    REFUSED(c.column[0].slot = c.column[1].slot);
    REFUSED(c.column[0].max_bits = 0);
    REFUSED(c.column[0].hint_bits = 17);
    REFUSED(c.column[0].default_value = 65536);
    REFUSED(c.column[0].name = name_of("views"));
    REFUSED(c.column[0].suffix = name_of("views"));
    REFUSED(c.column[0].suffix = name_of("likes"));
    REFUSED(c.column[1].suffix = name_of("l"));
    REFUSED(c.column[1].suffix = name_of("likes"));
    REFUSED(c.column[1].suffix = name_of("post"));
}
END_TEST

#define CODE(text) text, sizeof text - 1

/* The small counter, its second column a mark of the first one. */
static struct schema_counter
marked_counter(void)
{
    struct schema_counter counter = small_counter();
    struct schema_column *mark = &counter.column[1];

    mark->serial = 9;
    mark->kind = SCHEMA_MARK;
    mark->default_value = 0;
    mark->source.serial = 7;
    mark->unread = name_of("un");
    return counter;
}

START_TEST(test_refused_kinds)
{
#define REFUSED_KIND(statement)                                               \
    REFUSED(c = marked_counter(); ck_assert(schema_code_has_kinds(&c));       \
            statement)
    REFUSED_KIND(c.column[1].unread = name_of("9un"));
    REFUSED_KIND(c.column[1].unread = name_of("post"));
    REFUSED_KIND(c.column[1].unread = name_of("id"));
    REFUSED_KIND(c.column[1].unread = name_of("likes"));
    REFUSED_KIND(c.column[1].unread = name_of("l"));
    REFUSED_KIND(c.column[1].unread = name_of("views"));
    REFUSED_KIND(c.column[1].suffix = c.column[1].unread);
    REFUSED_KIND(c.column[0].suffix = c.column[1].unread);
    REFUSED_KIND(c.column[0].name = c.column[1].unread);
    REFUSED_KIND(c.column[1].default_value = 1);
    REFUSED_KIND(c.column[1].source.serial = 0);
    REFUSED_KIND(c.column[1].source.serial = 9);
    REFUSED_KIND(c.column[1].source.id = 1);
    REFUSED_KIND(c.column[1].forget = 1);
    REFUSED_KIND(c.column[0].source.serial = 2);
    REFUSED_KIND(c.column[0].forget = 1);
    REFUSED_KIND(c.column[0].unmarked_is_none = true);
    REFUSED_KIND(c.column[0].kind = SCHEMA_FOLLOWS); /* its widths */
    REFUSED(c.cold_is_never = c.cold_is_quietest = true);
    REFUSED(c.cold_is_never = true; c.cold_after = 1);
#undef REFUSED_KIND
}
END_TEST

/* The small counter, its second column one of members that counts in the
 * first one. */
static struct schema_counter
members_counter(void)
{
    struct schema_counter counter = small_counter();
    struct schema_column *members = &counter.column[1];

    counter.cold_is_quietest = false;
    counter.cold_is_never = true;
    counter.cold_after = 0;
    counter.column[0].default_value = 0;
    members->serial = 9;
    members->kind = SCHEMA_MEMBERS;
    members->default_value = 0;
    members->member_bits = 33;
    members->value_bits = 1;
    members->max_bits = 31;
    members->hint_bits = 16;
    members->counts = 7;
    members->pairs = (uint8_t)(counter.slot + 1);
    return counter;
}

START_TEST(test_refused_members)
{
#define REFUSED_MEMBERS(statement)                                            \
    REFUSED(c = members_counter(); ck_assert(schema_code_has_kinds(&c));      \
            statement)
    REFUSED_MEMBERS(c.column[1].max_bits = 32);
    REFUSED_MEMBERS(c.column[1].hint_bits = 15);
    REFUSED_MEMBERS(c.column[1].default_value = 1);
    REFUSED_MEMBERS(c.column[1].value_bits = 0);
    REFUSED_MEMBERS(c.column[1].member_bits = 15; c.column[1].max_bits = 49);
    REFUSED_MEMBERS(c.column[1].counts = 8);
    REFUSED_MEMBERS(c.column[1].counts = 9);
    REFUSED_MEMBERS(c.column[0].default_value = 1);
    REFUSED_MEMBERS(c.column[0].pairs = 1);
    REFUSED_MEMBERS(c.column[0].counts = 2);
    REFUSED_MEMBERS(c.column[0].member_bits = 33);
    REFUSED_MEMBERS(c.column[0].value_bits = 1);
    REFUSED_MEMBERS(c.column[1].pairs = c.slot);
    REFUSED_MEMBERS(c.column[1].source.serial = 7);
#undef REFUSED_MEMBERS
}
END_TEST

/* The small counter, its second column one of members=about. */
static struct schema_counter
about_counter(void)
{
    struct schema_counter counter = members_counter();
    struct schema_column *about = &counter.column[1];

    about->kind = SCHEMA_ABOUT;
    about->max_bits = 1;
    about->hint_bits = 0;
    about->pairs = 0;
    about->error = 100;
    about->memory = UINT64_C(16) << 20;
    return counter;
}

START_TEST(test_refused_about)
{
#define REFUSED_ABOUT(statement)                                              \
    REFUSED(c = about_counter(); ck_assert(schema_code_has_about(&c));        \
            statement)
    REFUSED_ABOUT(c.column[1].max_bits = 2);
    REFUSED_ABOUT(c.column[1].hint_bits = 1);
    REFUSED_ABOUT(c.column[1].default_value = 1);
    REFUSED_ABOUT(c.column[1].value_bits = 2);
    REFUSED_ABOUT(c.column[1].member_bits = 15);
    REFUSED_ABOUT(c.column[1].counts = 8);
    REFUSED_ABOUT(c.column[1].pairs = 1);
    REFUSED_ABOUT(c.column[1].error = 19);
    REFUSED_ABOUT(c.column[1].memory--);
    REFUSED_ABOUT(c.column[1].source.serial = 7);
    REFUSED_ABOUT(c.column[0].error = 100);
    REFUSED_ABOUT(c.column[0].memory = UINT64_C(16) << 20);
    REFUSED_ABOUT(c.column[0].default_value = 1); /* it is counted in */
#undef REFUSED_ABOUT
    REFUSED(c = members_counter(); c.column[1].error = 100);
    REFUSED(c = members_counter(); c.column[1].memory = UINT64_C(1) << 30);
}
END_TEST

START_TEST(test_changed_kinds)
{
    struct schema_counter counter = marked_counter();

    expect_what_is_taken_could_be_put(&counter);
    counter.cold_is_never = true;
    counter.column[1].source.is_fixed = true;
    counter.column[1].source.id = 300;
    counter.column[1].unmarked_is_none = true;
    counter.column[1].forget = 301;
    expect_what_is_taken_could_be_put(&counter);
    counter.column[0].kind = SCHEMA_FOLLOWS;
    counter.column[0].source.serial = 2;
    counter.column[0].default_value = 0;
    counter.column[0].hint_bits = 0;
    counter.column[0].max_bits = 1;
    expect_what_is_taken_could_be_put(&counter);
    counter = members_counter();
    expect_what_is_taken_could_be_put(&counter);
    counter = about_counter();
    expect_what_is_taken_could_be_put(&counter);
}
END_TEST

/* A counter without the new kinds has the bytes of before; one with them has
 * six numbers a column only where all columns are numbers. */
START_TEST(test_only_kinds_take_more)
{
    static const char number[] = "\5\1\0\0\0\0\1c\1k\1\6\1a\0\2\0\0\1\0\0";
    static const char list[] = "\5\3\0\0\0\0\1c\1k\1\x8\1a\0\4\0\0\1\0\0\2\2";
    static const char mark[] = "\5\1\0\0\x10\0\1c\1k\2\x8"
                               "\1a\0\2\0\0\1\0\0\0\0"
                               "\1b\0\3\1\0\1\0\0\1\2\1u";
    static const char members[] = "\5\1\0\0\x10\0\1c\1k\2\xf"
                                  "\1a\0\2\0\0\1\0\0\0\0\0\0\0\0\0\0\0"
                                  "\1b\0\3\1\x10\x1f\0\0\3\0\0\0\0"
                                  "\2\x21\1\4";
    static const struct {
        const char *bytes;
        size_t len;
        bool has_kinds;
    } code[] = {{CODE(number), false}, {CODE(list), true},
        {CODE(members), true}, {CODE(mark), true}};
    struct schema_counter got;
    uint8_t bytes[SCHEMA_CODE_BYTES_MAX];

    for (size_t i = 0; i < COUNT_OF(code); i++) {
        ck_assert_msg(
            decode((const uint8_t *)code[i].bytes, code[i].len, &got),
            "code %zu", i);
        ck_assert_int_eq(schema_code_has_kinds(&got), code[i].has_kinds);
        ck_assert_uint_eq(schema_code_put(bytes, &got), code[i].len);
        ck_assert_mem_eq(bytes, code[i].bytes, code[i].len);
    }
    got.n_columns = 1;
    ck_assert(schema_code_has_kinds(&got)); /* it is never cold */
    got.cold_is_never = false;
    ck_assert(!schema_code_has_kinds(&got));
}
END_TEST

/* Where the numbers of a counter without names and columns begin and end is
 * known: so is what a version with one more, or one less, writes. */
START_TEST(test_other_versions)
{
    static const struct {
        const char *bytes;
        size_t len;
        bool ok;
    } code[] = {
        {CODE("\5\1\0\0\0\0\1c\0\0\6"), true},
        {CODE("\6\1\0\0\0\0\1\1c\0\0\6"), true},
        {CODE("\7\1\0\0\0\0\0\0\1c\0\0\6"), true},
        {CODE("\7\1\0\0\0\0\0\1\1c\0\0\6"), false},
        {CODE("\4\1\0\0\0\1c\0\0\6"), true},
        {CODE("\0\1c\0\0\6"), false}, /* no serial */
        {CODE("\1\1\1c\0\0\6"), true},
        {CODE("\x41\1\1c\0\0\6"), false},
        {CODE("\5\1\0\0\0\0\1c\1k\1\6\1a\0\2\0\0\1\0\0"), true},
        {CODE("\5\1\0\0\0\0\1c\1k\1\7\1a\0\2\0\0\1\0\0\0"), true},
        {CODE("\5\1\0\0\0\0\1c\1k\1\7\1a\0\2\0\0\1\0\0\1"), false},
        {CODE("\5\1\0\0\0\0\1c\1k\1\4\1a\0\2\0\0\1"), true},
        {CODE("\5\1\0\0\0\0\1c\1k\1\3\1a\0\2\0\0"), false}, /* no max */
        {CODE("\5\1\0\0\0\0\1c\1k\1\x41\1a\0\2\0\0\1\0\0"), false},
        {CODE("\6\1\0\0\x0f\0\0\1c\0\0\6"), true},
        {CODE("\6\1\0\0\x10\0\0\1c\0\0\6"), true},
        {CODE("\6\1\0\0\x20\0\0\1c\0\0\6"), true},  /* ids are names */
        {CODE("\6\1\0\0\x40\0\0\1c\0\0\6"), false}, /* unknown option */
        {CODE("\5\1\0\0\0\0\1c\1k\1\xb\1a\0\2\0\0\1\0\0\0\0\0\0\0"), true},
        {CODE("\5\1\0\0\0\0\1c\1k\1\xc\1a\0\2\0\0\1\0\0\0\0\0\0\0\0"), true},
        {CODE("\5\1\0\0\0\0\1c\1k\1\xc\1a\0\2\0\0\1\0\0\0\0\0\0\0\1"), false},
        {CODE("\5\1\0\0\0\0\1c\1k\1\x8\1a\0\2\0\0\1\0\0\3\1"), false},
    };
    struct schema_counter got;

    for (size_t i = 0; i < COUNT_OF(code); i++) {
        ck_assert_msg(decode((const uint8_t *)code[i].bytes, code[i].len,
                          &got) == code[i].ok,
            "code %zu", i);
    }
}
END_TEST

/* What one of five numbers says, and one of six. */
START_TEST(test_cold_options)
{
    static const char before[] = "\5\1\0\0\7\11\1c\0\0\6";
    static const char today[] = "\6\1\0\0\10\11\12\1c\0\0\6";
    struct schema_counter got;

    ck_assert(decode((const uint8_t *)before, sizeof before - 1, &got));
    ck_assert(!got.cold_is_quietest);
    ck_assert(got.exptime_is_ignored);
    ck_assert_uint_eq(got.max_jump, 9);
    ck_assert_uint_eq(got.cold_after, 0);
    ck_assert(decode((const uint8_t *)today, sizeof today - 1, &got));
    ck_assert(got.cold_is_quietest);
    ck_assert(!got.exptime_is_ignored);
    ck_assert_uint_eq(got.max_jump, 9);
    ck_assert_uint_eq(got.cold_after, 10);

    /* and is said in as many */
    uint8_t bytes[SCHEMA_CODE_BYTES_MAX];
    ck_assert_uint_eq(schema_code_put(bytes, &got), sizeof today - 1);
    ck_assert_mem_eq(bytes, today, sizeof today - 1);
    got.cold_after = 0;
    got.cold_is_quietest = false;
    got.exptime_is_ignored = true;
    got.overflow_is_error = true;
    got.absent_is_miss = true;
    ck_assert_uint_eq(schema_code_put(bytes, &got), sizeof before - 1);
    ck_assert_mem_eq(bytes, before, sizeof before - 1);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_round_trip, test_every_option,
        test_largest, test_cut, test_changed, test_refused,
        test_other_versions, test_cold_options, test_refused_kinds,
        test_refused_members, test_refused_about, test_changed_kinds,
        test_only_kinds_take_more};

    return run_tests("schema_code", tests, COUNT_OF(tests));
}
