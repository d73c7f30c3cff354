/* SPDX-License-Identifier: BSD-3-Clause */
/* schema/restore: a schema that was made by edits comes back counter by
 * counter, in any order, and goes on as the old one would have; a counter that
 * edits could not have made is refused. */
#include "schema/restore.h"

#include "base/err.h"
#include "lib/fault_alloc.h"
#include "unit/edit_help.h"

#include <stdio.h>

static void
apply(struct schema **schema, const char *line)
{
    struct schema_edit edit = edit_of(line);
    struct schema *next = NULL;
    ck_assert_int_eq(schema_apply(*schema, &edit, &next), 0);
    schema_destroy(schema);
    *schema = next;
}

static void
restore(struct schema **schema, const struct schema_counter *counter,
    uint32_t last_serial)
{
    struct schema *next = NULL;
    uint64_t version = schema_version(*schema);
    ck_assert_int_eq(schema_restore(*schema, counter, last_serial, &next), 0);
    ck_assert_uint_eq(schema_version(next), version + 1);
    schema_destroy(schema);
    *schema = next;
}

/* Slots 0 to 3 with serials up to 10; 1 is free, and serials have gone. */
static struct schema *
some_schema(void)
{
    static const char *const lines[] = {"add counter posts overflow=error",
        "add column posts id primarykey hint=48",
        "add column posts cntcm max=20 default=3 suffix=c", /* 2 */
        "add column posts cntrn flags=9",                   /* 3 */
        "add counter gone", "add counter users maxjump=7",  /* 4, 5 */
        "add column users uid primarykey",
        "add column users seen hint=0", /* 6 */
        "add column posts cntlk max=64 default=18446744073709551615",
        "drop column posts cntcm cntcm", "drop counter gone gone",
        "add counter bare", /* 8 */
        "drop counter bare bare",
        "add counter last absent=miss",    /* 9 in slot 1 */
        "add column posts again suffix=c", /* 10 in slot 0 */
        "add counter more" /* 11 */};
    struct schema *schema = schema_create();
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        apply(&schema, lines[i]);
    }
    return schema;
}

static void
check_same(const struct schema *a, const struct schema *b)
{
    ck_assert_uint_eq(schema_last_serial(a), schema_last_serial(b));
    for (unsigned slot = 0; slot < SCHEMA_COUNTERS_MAX; slot++) {
        const struct schema_counter *x = schema_counter_at(a, slot);
        const struct schema_counter *y = schema_counter_at(b, slot);
        ck_assert_int_eq(x == NULL, y == NULL);
        if (x != NULL) {
            ck_assert_mem_eq(x, y, sizeof *x);
            ck_assert_ptr_eq(schema_counter(b, x->name.text, x->name.len), y);
        }
    }
}

START_TEST(test_a_schema_comes_back_in_any_order)
{
    struct schema *old = some_schema();
    uint32_t last = schema_last_serial(old);
    ck_assert_uint_eq(last, 11);
    for (int step = -1; step <= 1; step += 2) {
        struct schema *made = schema_create();
        for (int i = 0; i < SCHEMA_COUNTERS_MAX; i++) {
            unsigned slot =
                (unsigned)(step > 0 ? i : SCHEMA_COUNTERS_MAX - 1 - i);
            if (schema_counter_at(old, slot) != NULL) {
                restore(&made, schema_counter_at(old, slot), last);
            }
        }
        check_same(old, made);
        schema_destroy(&made);
    }
    schema_destroy(&old);
}
END_TEST

START_TEST(test_it_goes_on_where_it_was)
{
    struct schema *old = some_schema();
    struct schema *made = schema_create();
    for (unsigned slot = 0; slot < SCHEMA_COUNTERS_MAX; slot++) {
        if (schema_counter_at(old, slot) != NULL) {
            restore(&made, schema_counter_at(old, slot), 11);
        }
    }
    apply(&old, "add counter next");
    apply(&made, "add counter next");
    apply(&old, "add column posts next2");
    apply(&made, "add column posts next2");
    check_same(old, made);
    schema_destroy(&old);
    schema_destroy(&made);
}
END_TEST

/* As the log tells it: each state of a counter over the one before. */
START_TEST(test_a_counter_is_replaced_by_what_it_became)
{
    static const char *const lines[] = {"add column posts one",
        "add column posts two suffix=t", "drop column posts one one",
        "add column posts three suffix=one"};
    struct schema *old = some_schema();
    struct schema *made = some_schema();
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        apply(&old, lines[i]);
        restore(
            &made, schema_counter(old, "posts", 5), schema_last_serial(old));
        check_same(old, made);
    }
    struct schema_target target;
    ck_assert(schema_find(made, "one", 3, &target));
    ck_assert_str_eq(target.column->name.text, "three");
    schema_destroy(&old);
    schema_destroy(&made);
}
END_TEST

/* 33 names at once, where an edit adds two. */
START_TEST(test_the_index_has_room_for_a_whole_counter)
{
    struct schema *old = schema_create();
    apply(&old, "add counter wide");
    apply(&old, "add column wide id primarykey");
    for (unsigned i = 0; i < SCHEMA_COLUMNS_MAX; i++) {
        char line[80];
        snprintf(line, sizeof line, "add column wide n%u suffix=s%u", i, i);
        apply(&old, line);
    }
    struct schema *made = schema_create();
    restore(&made, schema_counter(old, "wide", 4), schema_last_serial(old));
    check_same(old, made);
    schema_destroy(&old);
    schema_destroy(&made);
}
END_TEST

START_TEST(test_a_counter_is_dropped_by_its_serial)
{
    struct schema *old = some_schema();
    struct schema *made = some_schema();
    struct schema *none = NULL;
    uint32_t serial = schema_counter(old, "posts", 5)->serial;
    struct schema *next = NULL;
    apply(&old, "drop counter posts posts");
    ck_assert_int_eq(schema_restore_drop(made, serial, 11, &next), 0);
    schema_destroy(&made);
    check_same(old, next);
    ck_assert_int_eq(
        schema_restore_drop(next, serial, 11, &none), ERR_CORRUPT);
    ck_assert_int_eq(schema_restore_drop(next, 0, 11, &none), ERR_CORRUPT);
    ck_assert_int_eq(schema_restore_drop(next, 9, 8, &none), ERR_CORRUPT);
    /* of a column */
    ck_assert_int_eq(schema_restore_drop(next, 6, 11, &none), ERR_CORRUPT);
    ck_assert_ptr_null(none);
    /* a dropped one's serial is not forgotten, nor does it go back */
    ck_assert_int_eq(schema_restore_drop(next, 9, 20, &none), 0);
    ck_assert_uint_eq(schema_last_serial(none), 20);
    schema_destroy(&next);
    ck_assert_int_eq(schema_restore_drop(none, 11, 12, &next), 0);
    ck_assert_uint_eq(schema_last_serial(next), 20);
    schema_destroy(&none);
    schema_destroy(&next);
    schema_destroy(&old);
}
END_TEST

static void
set_name(struct schema_name *name, const char *text)
{
    *name = (struct schema_name){.len = (uint8_t)strlen(text)};
    memcpy(name->text, text, strlen(text));
}

/* Ways to make a sound counter (two columns, in slot 9, serials 20 to 22) one
 * that cannot be. */
#define WAYS(X)                                                               \
    X(serial_0, c->serial = 0)                                                \
    X(serial_not_given_out, c->serial = 31)                                   \
    X(serial_of_a_counter, c->serial = 9)                                     \
    X(serial_of_another_column, c->serial = 6)                                \
    X(serial_of_its_column, c->serial = 21)                                   \
    X(column_serial_0, c->column[1].serial = 0)                               \
    X(column_serial_not_given_out, c->column[1].serial = 31)                  \
    X(column_serial_of_a_counter, c->column[1].serial = 9)                    \
    X(column_serial_of_another, c->column[1].serial = 6)                      \
    X(column_serial_twice, c->column[1].serial = 21)                          \
    X(slot_taken, c->slot = 0)                                                \
    X(column_slot_twice, c->column[1].slot = 15)                              \
    X(column_slot_16, c->column[1].slot = SCHEMA_COLUMNS_MAX)                 \
    X(max_0, c->column[1].max_bits = 0)                                       \
    X(max_65, c->column[0].max_bits = 65)                                     \
    X(hint_above_max, c->column[0].hint_bits = 9)                             \
    X(default_above_max, c->column[0].default_value = 256)                    \
    X(columns_17, c->n_columns = SCHEMA_COLUMNS_MAX + 1)                      \
    X(key_hint_65, c->key_hint_bits = 65)                                     \
    X(no_key, set_name(&c->key_name, ""))                                     \
    X(name_of_a_counter, set_name(&c->name, "users"))                         \
    X(name_of_a_column, set_name(&c->name, "seen"))                           \
    X(name_of_a_suffix, set_name(&c->name, "c"))                              \
    X(name_of_its_column, set_name(&c->name, "a"))                            \
    X(name_empty, set_name(&c->name, ""))                                     \
    X(name_with_digit_first, set_name(&c->name, "9a"))                        \
    X(name_with_a_space, set_name(&c->name, "a b"))                           \
    X(name_too_long, c->name.len = SCHEMA_NAME_MAX + 1)                       \
    X(name_without_end, c->name.text[c->name.len] = 'x')                      \
    X(column_name_of_a_counter, set_name(&c->column[0].name, "users"))        \
    X(column_name_twice, set_name(&c->column[0].name, "b"))                   \
    X(column_name_a_suffix, set_name(&c->column[0].name, "bs"))               \
    X(column_name_the_key, set_name(&c->column[0].name, "key"))               \
    X(column_name_empty, set_name(&c->column[0].name, ""))                    \
    X(suffix_a_column, set_name(&c->column[1].suffix, "a"))                   \
    X(suffix_its_column, set_name(&c->column[1].suffix, "b"))                 \
    X(suffix_the_key, set_name(&c->column[1].suffix, "key"))                  \
    X(suffix_the_counter, set_name(&c->column[1].suffix, "fresh"))            \
    X(suffix_of_another, set_name(&c->column[1].suffix, "seen"))              \
    X(suffix_no_name, set_name(&c->column[1].suffix, "."))                    \
    X(key_no_name, set_name(&c->key_name, "-"))

#define X(name, what)                                                         \
    static void name(struct schema_counter *c)                                \
    {                                                                         \
        what;                                                                 \
    }
WAYS(X)
#undef X

static const struct {
    const char *name;
    void (*spoil)(struct schema_counter *counter);
} ways[] = {
#define X(name, what) {#name, name},
    WAYS(X)
#undef X
};

START_TEST(test_what_edits_cannot_make_is_refused)
{
    struct schema *old = some_schema();
    struct schema *next = NULL;
    struct schema_counter sound = {.serial = 20,
        .slot = 9,
        .n_columns = 2,
        .key_hint_bits = 64,
        .column = {{.serial = 21,
                       .slot = 15,
                       .hint_bits = 8,
                       .max_bits = 8,
                       .default_value = 255},
            {.serial = 22, .max_bits = 1}}};
    set_name(&sound.name, "fresh");
    set_name(&sound.key_name, "key");
    set_name(&sound.column[0].name, "a");
    set_name(&sound.column[1].name, "b");
    set_name(&sound.column[1].suffix, "bs");
    for (size_t i = 0; i < COUNT_OF(ways); i++) {
        struct schema_counter spoilt = sound;
        ways[i].spoil(&spoilt);
        int err = schema_restore(old, &spoilt, 30, &next);
        ck_assert_msg(err == ERR_CORRUPT, "%s", ways[i].name);
        ck_assert_ptr_null(next);
    }
    ck_assert_int_eq(schema_restore(old, &sound, 21, &next), ERR_CORRUPT);
    ck_assert_int_eq(schema_restore(old, &sound, 22, &next), 0);
    ck_assert_uint_eq(schema_last_serial(next), 22);
    schema_destroy(&next);
    schema_destroy(&old);
}
END_TEST

/* Columns behind n_columns are none: an edit adds to zeroes there. */
START_TEST(test_leftovers_do_not_come_along)
{
    struct schema *schema = schema_create();
    struct schema_counter counter = {.serial = 1, .slot = 3};
    set_name(&counter.name, "posts");
    counter.column[0].flags = 9;
    restore(&schema, &counter, 1);
    ck_assert_uint_eq(schema_counter_at(schema, 3)->column[0].flags, 0);
    schema_destroy(&schema);
}
END_TEST

START_TEST(test_without_memory_nothing_is_made)
{
    struct fault_alloc fault;
    fault_alloc_init(&fault);
    struct schema *schema = schema_create_from(&fault.alloc);
    struct schema *next = NULL;
    struct schema_counter counter = {.serial = 1, .slot = 3};
    set_name(&counter.name, "posts");
    fault_alloc_arm(&fault, 1);
    ck_assert_int_eq(
        schema_restore(schema, &counter, 1, &next), ERR_NO_MEMORY);
    ck_assert_ptr_null(next);
    restore(&schema, &counter, 1);
    fault_alloc_arm(&fault, 1);
    ck_assert_int_eq(schema_restore_drop(schema, 1, 1, &next), ERR_NO_MEMORY);
    ck_assert_ptr_null(next);
    schema_destroy(&schema);
    ck_assert_uint_eq(fault.live_bytes, 0);
}
END_TEST

int
main(void)
{
    const TTest *test[] = {test_a_schema_comes_back_in_any_order,
        test_it_goes_on_where_it_was,
        test_a_counter_is_replaced_by_what_it_became,
        test_the_index_has_room_for_a_whole_counter,
        test_a_counter_is_dropped_by_its_serial,
        test_what_edits_cannot_make_is_refused,
        test_leftovers_do_not_come_along, test_without_memory_nothing_is_made};
    return run_tests("restore", test, COUNT_OF(test));
}
