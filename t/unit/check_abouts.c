/* SPDX-License-Identifier: BSD-3-Clause */
/* about/abouts: the columns follow the schema, each with its sink, and keep
 * what they know; without memory nothing has changed. */
#include "about/abouts.h"

#include "lib/fault_alloc.h"
#include "unit/kinds_help.h"

static const char *const lines[] = {"add counter weibo",
    "add column weibo wid primarykey", "add column weibo views",
    "add column weibo seen members=about memory=16m", /* 3 */
    "add column weibo liked members=exact",           /* 4, 5, 6 */
    "add column weibo met members=about memory=32m"}; /* 7 */

/* Sinks that there are. */
struct rig {
    struct fault_alloc fault;
    struct qsbr qsbr;
    struct qsbr_reader reader;
    struct about_sink sink;
    unsigned n_sinks;
    bool has_none; /* there is no memory for one */
    struct abouts *abouts;
    struct schema *schema;
};

static uint64_t
on_add(struct about_sink *sink, const struct about_pair *pair, size_t n)
{
    (void)sink;
    (void)pair;
    return n;
}

static uint64_t
on_last(struct about_sink *sink)
{
    (void)sink;
    return 1;
}

static void
on_roll(struct about_sink *sink, uint64_t first, uint64_t lowest)
{
    (void)sink;
    (void)first;
    (void)lowest;
}

static struct about_sink *
make_sink(void *context, uint32_t serial)
{
    struct rig *rig = context;
    ck_assert(serial == 3 || serial == 7 || serial == 8);
    rig->n_sinks += !rig->has_none;
    return rig->has_none ? NULL : &rig->sink;
}

static void
end_sink(void *context, struct about_sink *sink)
{
    struct rig *rig = context;
    ck_assert_ptr_eq(sink, &rig->sink);
    rig->n_sinks--;
}

static void
open_rig(struct rig *rig)
{
    *rig = (struct rig){.sink = {on_add, on_last, on_roll}};
    fault_alloc_init(&rig->fault);
    qsbr_init(&rig->qsbr);
    qsbr_register(&rig->qsbr, &rig->reader);
    const struct abouts_config config = {.qsbr = &rig->qsbr,
        .seed = 7,
        .alloc = &rig->fault.alloc,
        .sink_fn = make_sink,
        .sink_end_fn = end_sink,
        .context = rig};
    ck_assert_int_eq(abouts_create(&config, &rig->abouts), 0);
    rig->schema = schema_create();
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        apply(&rig->schema, lines[i]);
    }
}

static void
close_rig(struct rig *rig)
{
    abouts_destroy(&rig->abouts);
    ck_assert_ptr_null(rig->abouts);
    ck_assert_uint_eq(rig->n_sinks, 0);
    ck_assert_uint_eq(rig->fault.live_bytes, 0);
    schema_destroy(&rig->schema);
    qsbr_unregister(&rig->qsbr, &rig->reader);
    qsbr_fini(&rig->qsbr);
}

static int
edit_and_follow(struct rig *rig, const char *line)
{
    apply(&rig->schema, line);
    return abouts_follow(rig->abouts, rig->schema);
}

static uint8_t
ask(struct rig *rig, uint32_t serial, bool adds)
{
    const struct about_pair pair = {5, 6};
    uint8_t out;
    qsbr_online(&rig->qsbr, &rig->reader);
    struct about *about = abouts_find(rig->abouts, serial);
    ck_assert_ptr_nonnull(about);
    if (adds) {
        (void)about_add(about, &pair, 1, 0, &out);
    } else {
        about_get(about, &pair, 1, &out);
    }
    qsbr_offline(&rig->reader);
    return out;
}

static void
expect_serials(struct rig *rig, uint32_t first, uint32_t second)
{
    uint32_t serial = 0;
    ck_assert_ptr_eq(abouts_next(rig->abouts, &serial),
        first == 0 ? NULL : abouts_find(rig->abouts, first));
    ck_assert_uint_eq(serial, first);
    ck_assert_ptr_eq(abouts_next(rig->abouts, &serial),
        second == 0 ? NULL : abouts_find(rig->abouts, second));
    ck_assert_ptr_null(abouts_next(rig->abouts, &serial));
    ck_assert_uint_eq(serial, second == 0 ? first : second);
    unsigned n = (first != 0 ? 1U : 0U) + (second != 0 ? 1U : 0U);
    ck_assert_uint_eq(rig->n_sinks, n);
}

START_TEST(test_they_follow)
{
    struct rig rig;
    open_rig(&rig);
    expect_serials(&rig, 0, 0);
    ck_assert_int_eq(abouts_follow(rig.abouts, rig.schema), 0);
    expect_serials(&rig, 3, 7);
    ck_assert_ptr_null(abouts_find(rig.abouts, 4));
    ck_assert_uint_eq(ask(&rig, 3, true), ABOUT_OUT);
    ck_assert_uint_eq(ask(&rig, 7, false), ABOUT_OUT);
    /* what was there stays, with what it knows */
    struct about *seen = abouts_find(rig.abouts, 3);
    ck_assert_int_eq(abouts_follow(rig.abouts, rig.schema), 0);
    ck_assert_int_eq(
        edit_and_follow(&rig, "change column weibo seen memory=64m"), 0);
    ck_assert_int_eq(edit_and_follow(&rig, "drop column weibo met met"), 0);
    expect_serials(&rig, 3, 0);
    ck_assert_ptr_eq(abouts_find(rig.abouts, 3), seen);
    ck_assert_uint_eq(ask(&rig, 3, false), ABOUT_IN);
    struct about_figures figures;
    qsbr_online(&rig.qsbr, &rig.reader);
    about_figures(seen, &figures);
    ck_assert_uint_eq(figures.tables_max, 4 * ABOUT_TABLES);
    ck_assert_uint_gt(figures.bytes, 0);
    qsbr_offline(&rig.reader);
    /* of the same name, and another one */
    ck_assert_int_eq(
        edit_and_follow(&rig, "add column weibo met members=about memory=16m"),
        0);
    expect_serials(&rig, 3, 8);
    ck_assert_int_eq(edit_and_follow(&rig, "drop counter weibo weibo"), 0);
    expect_serials(&rig, 0, 0);
    close_rig(&rig);
}
END_TEST

START_TEST(test_without_memory)
{
    struct rig rig;
    open_rig(&rig);
    rig.has_none = true;
    ck_assert_int_eq(abouts_follow(rig.abouts, rig.schema), ERR_NO_MEMORY);
    rig.has_none = false;
    expect_serials(&rig, 0, 0);
    for (size_t fail = 1;; fail++) {
        rig.fault.calls = 0;
        rig.fault.fail_from = rig.fault.fail_to = fail;
        int err = abouts_follow(rig.abouts, rig.schema);
        rig.fault.fail_from = rig.fault.fail_to = 0;
        if (err == 0) {
            ck_assert_uint_gt(fail, 2);
            break;
        }
        ck_assert_int_eq(err, ERR_NO_MEMORY);
        expect_serials(&rig, 0, 0);
        ck_assert_uint_eq(rig.fault.live_bytes, 0);
    }
    expect_serials(&rig, 3, 7);
    close_rig(&rig);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_they_follow, test_without_memory};
    return run_tests("abouts", tests, COUNT_OF(tests));
}
