/* SPDX-License-Identifier: BSD-3-Clause */
/* store/applier: a replica has the members of members=about that its primary
 * has, in the same tables, beside checkpoints, through crashes, and as the next
 * primary. */
#include "about/about_priv.h"
#include "store/store_real.h"
#include "unit/applier_help.h"

enum { ROUNDS = 60, BATCH = 12, FULL = 50, MEMBERS_MAX = 2 * ROUNDS * BATCH };

struct added {
    struct pair pair;
    uint32_t serial;
    uint64_t next_id;
    struct about_pair one[MEMBERS_MAX];
    size_t n;
};

static struct about *
tables_of(const struct added *added, const struct rig *rig)
{
    const struct real_store *real = (const struct real_store *)rig->store;
    return abouts_find(real->abouts, added->serial);
}

/* Adds some to whoever is primary. */
static void
add(struct added *added, struct rig *rig)
{
    struct store_about call = {.n = BATCH};
    struct qsbr_reader reader;
    for (unsigned i = 0; i < BATCH; i++) {
        uint64_t back = random_below(&rig->random, 30);
        added->next_id += 2;
        call.key[i] = (struct store_about_key){
            added->next_id - (back < added->next_id ? back : 0),
            random_below(&rig->random, 1 << 30), added->serial};
        ck_assert_uint_lt(added->n, MEMBERS_MAX);
        added->one[added->n++] =
            (struct about_pair){call.key[i].id, call.key[i].member};
    }
    reader_begin(rig->store, &reader);
    atomic_store(&tables_of(added, rig)->close_at, FULL);
    store_about_add(rig->store, &call);
    reader_end(rig->store, &reader);
    ck_assert_int_eq(rig_commit(rig, call.seq), STORE_COMMITTED);
}

static struct about_figures
figures_of(const struct added *added, struct rig *rig)
{
    struct about_figures figures;
    struct qsbr_reader reader;
    reader_begin(rig->store, &reader);
    about_figures(tables_of(added, rig), &figures);
    reader_end(rig->store, &reader);
    return figures;
}

static void
expect_all(const struct added *added, struct rig *rig)
{
    struct store_about call = {.n = 1};
    struct qsbr_reader reader;
    uint64_t first = figures_of(added, rig).first_id;
    reader_begin(rig->store, &reader);
    for (size_t i = 0; i < added->n; i++) {
        call.key[0] = (struct store_about_key){
            added->one[i].id, added->one[i].member, added->serial};
        store_about_get(rig->store, &call);
        ck_assert_int_eq(call.state[0],
            call.key[0].id < first ? STORE_ABOUT_BELOW : STORE_ABOUT_IN);
    }
    reader_end(rig->store, &reader);
}

static void
expect_same(struct added *added)
{
    struct about_figures a = figures_of(added, &added->pair.primary);
    struct about_figures b = figures_of(added, &added->pair.replica);
    ck_assert_uint_eq(a.tables, b.tables);
    ck_assert_uint_eq(a.first_id, b.first_id);
    ck_assert_uint_eq(a.largest_id, b.largest_id);
    ck_assert_uint_eq(a.closed, b.closed);
    ck_assert_uint_eq(a.wrong_one_in, b.wrong_one_in);
    expect_all(added, &added->pair.replica);
}

static void
begin(struct added *added)
{
    static const char *const lines[] = {"add counter post",
        "add column post id max=64 primarykey",
        "add column post seen members=about memory=16777216"};
    struct schema_target target;
    memset(added, 0, sizeof *added);
    pair_init(&added->pair, 3, true);
    edit_all(added->pair.primary.store, lines, COUNT_OF(lines));
    catch_up(&added->pair);
    ck_assert(schema_find(
        quiet_schema(added->pair.primary.store), "seen", 4, &target));
    added->serial = target.column->serial;
}

START_TEST(test_about)
{
    static struct added added;
    struct pair *pair = &added.pair;
    struct rig *replica = &pair->replica;
    begin(&added);
    for (unsigned round = 0; round < ROUNDS; round++) {
        add(&added, &pair->primary);
        if (round % 4 == 0) {
            ship(pair);
        }
        if (round % 15 == 7) {
            catch_up(pair);
            ck_assert_int_eq(rig_checkpoint(replica), 0);
        }
        if (round % 20 == 19) {
            catch_up(pair);
            fake_disk_die(replica->fake, 1);
            (void)rig_close(replica);
            fake_disk_revive(replica->fake);
            open_replicated(replica);
            pair->shipped = store_applied(replica->store);
        }
    }
    catch_up(pair);
    ck_assert_uint_gt(figures_of(&added, replica).closed, 8);
    expect_same(&added);
    (void)begin_term(replica, "b");
    for (unsigned round = 0; round < ROUNDS / 2; round++) {
        add(&added, replica);
    }
    expect_all(&added, replica);
    pair_fini(pair);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_about};
    return run_tests("applier_about", tests, COUNT_OF(tests));
}
