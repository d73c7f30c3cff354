/* SPDX-License-Identifier: BSD-3-Clause */
/* store/dumper and store/dump_work: every record once, wherever it is and
 * whatever becomes of it meanwhile; blocks that cannot be read; memory that
 * runs out; and how a dump ends early. */
#include "call/store_calls.h"
#include "cold/block.h"
#include "lib/fault_alloc.h"
#include "store/dumper.h"
#include "unit/durable_help.h"
#include "unit/steps_help.h"

#include <errno.h>
#include <stdio.h>

enum {
    RANGE = 16,              /* records of a range, about */
    ROUNDS = SWEEP_PART(40), /* of a dump beside all else */
    BLOCKS = 3,              /* of a file */
    SEEN_MAX = 4 * RIG_IDS
};

#define FIRST_SEGMENT "segment-00000000000000000001.seg"

/* What a dump has shown. */
struct shown {
    struct store_dump dump;
    struct answer answer;
    size_t n, n_bad;
    uint64_t id[SEEN_MAX], value[SEEN_MAX];
    uint64_t bad_first, bad_last; /* of the last of n_bad */
};

static void
on_piece(struct store_call *call)
{
    struct shown *shown = call->owner;
    sem_post(&shown->answer.come);
}

static void
begin_dump(struct shown *shown, struct rig *rig, uint64_t first, uint64_t last)
{
    memset(shown, 0, sizeof *shown);
    sem_init(&shown->answer.come, 0, 0);
    shown->dump = (struct store_dump){.first_id = first, .last_id = last};
    shown->dump.call.done_fn = on_piece;
    shown->dump.call.owner = shown;
    const struct schema_counter *counter =
        schema_counter(quiet_schema(rig->store), "a", 1);
    ck_assert_ptr_nonnull(counter);
    shown->dump.slot = counter->slot;
    shown->dump.serial = counter->serial;
}

static void
end_dump(struct shown *shown, struct rig *rig)
{
    store_end_dump(rig->store, &shown->dump);
    sem_destroy(&shown->answer.come);
}

/* The next piece; its err. */
static int
take_piece(struct shown *shown, struct rig *rig)
{
    struct store_dump *dump = &shown->dump;
    ck_assert_int_eq(store_dump(rig->store, dump), STORE_LATER);
    while (sem_wait(&shown->answer.come) != 0) {
    }
    for (uint32_t i = 0; i < dump->n; i++) {
        ck_assert_uint_lt(shown->n, SEEN_MAX);
        ck_assert(shown->n == 0 || dump->id[i] > shown->id[shown->n - 1]);
        ck_assert_uint_le(dump->id[i], dump->largest_id);
        ck_assert(shown->n > 0 || dump->has_largest);
        shown->id[shown->n] = dump->id[i];
        shown->value[shown->n++] =
            dump->n_columns == 0 ? 0 : dump->value[i * dump->n_columns];
    }
    if (dump->err == ERR_CORRUPT || dump->err == ERR_DISK) {
        shown->n_bad++;
        shown->bad_first = dump->bad_first;
        shown->bad_last = dump->bad_last;
        return 0;
    }
    return dump->err;
}

/* All pieces; the err that ends it. */
static int
take_all(struct shown *shown, struct rig *rig)
{
    int err = take_piece(shown, rig);
    while (err == 0 && !shown->dump.is_end) {
        err = take_piece(shown, rig);
    }
    return err;
}

static int
dump_all(struct shown *shown, struct rig *rig)
{
    begin_dump(shown, rig, 0, UINT64_MAX);
    int err = take_all(shown, rig);
    end_dump(shown, rig);
    return err;
}

static void
begin(struct rig *rig, enum id_family family)
{
    rig_init(rig, WAL_SYNC_ALWAYS, family, 3);
    rig->data.seal_records = RANGE;
    rig->config.dump_range_records = RANGE;
    ck_assert_int_eq(rig_open(rig), 0);
    rig->seals = true;
    rig_add_counter(rig, 'a');
    (void)rig_set_all(rig, 'a', 5);
}

static void
finish(struct rig *rig)
{
    ck_assert_int_eq(rig_close(rig), 0);
    rig_fini(rig);
}

/* Sets a column of one id, by its number in the history. */
static void
set_one(struct rig *rig, const char *column, size_t i, uint64_t value)
{
    struct cell_key key = cell_of(quiet_schema(rig->store), 0, column);
    struct change change;
    uint64_t seq;
    key.id = rig->history.id[i];
    change = change_of(&key, CHANGE_SET, value);
    ck_assert(rig_change(rig, &change, 1, &seq));
    ck_assert_int_eq(change.err, 0);
}

static int
compare_ids(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* All ids of the rig's, once each, with their values: value, but for those of
 * the first n, which have another, and none where that is 0. */
static void
expect_all(const struct shown *shown, const struct rig *rig, uint64_t value,
    size_t n, uint64_t other)
{
    uint64_t id[RIG_IDS];
    size_t at = 0;
    memcpy(id, rig->history.id, sizeof id);
    qsort(id, RIG_IDS, sizeof *id, compare_ids);
    for (size_t i = 0; i < RIG_IDS; i++) {
        bool is_other = false;
        for (size_t k = 0; k < n; k++) {
            is_other = is_other || rig->history.id[k] == id[i];
        }
        if (is_other && other == 0) {
            continue;
        }
        ck_assert_uint_lt(at, shown->n);
        ck_assert_uint_eq(shown->id[at], id[i]);
        ck_assert_uint_eq(shown->value[at++], is_other ? other : value);
    }
    ck_assert_uint_eq(at, shown->n);
}

/* All ids but for those of one range that is told of. */
static void
expect_rest(const struct shown *shown, const struct rig *rig)
{
    ck_assert_uint_eq(shown->n_bad, 1);
    ck_assert_uint_gt(shown->n, 0);
    for (size_t i = 0; i < shown->n; i++) {
        ck_assert(
            shown->id[i] < shown->bad_first || shown->id[i] > shown->bad_last);
    }
    size_t n_lost = RIG_IDS - shown->n, n_inside = 0;
    for (size_t i = 0; i < RIG_IDS; i++) {
        n_inside += rig->history.id[i] >= shown->bad_first &&
            rig->history.id[i] <= shown->bad_last;
    }
    ck_assert_uint_gt(n_lost, 0);
    ck_assert_uint_eq(n_inside, n_lost);
}

static uint64_t
rig_lowest(const struct rig *rig)
{
    uint64_t lowest = UINT64_MAX;
    for (size_t i = 0; i < RIG_IDS; i++) {
        uint64_t id = rig->history.id[i];
        lowest = id < lowest ? id : lowest;
    }
    return lowest;
}

static struct shown shown;

/* Hot, cold, cold with some changed since, cold with some deleted; in memory
 * only; of all families of ids. */
START_TEST(test_everywhere)
{
    struct rig rig;
    begin(&rig, (enum id_family)_i);
    ck_assert_int_eq(dump_all(&shown, &rig), 0);
    expect_all(&shown, &rig, 5, 0, 0);
    ck_assert_int_eq(rig_seal_all(&rig), 0);
    ck_assert_uint_eq(rig_n_hot(&rig), 0);
    ck_assert_int_eq(dump_all(&shown, &rig), 0);
    expect_all(&shown, &rig, 5, 0, 0);
    for (size_t i = 0; i < RIG_IDS / 3; i++) {
        set_one(&rig, "ax", i, 9);
    }
    ck_assert_int_eq(dump_all(&shown, &rig), 0);
    expect_all(&shown, &rig, 5, RIG_IDS / 3, 9);
    for (size_t i = 0; i < RIG_IDS / 3; i++) {
        set_one(&rig, "ax", i, 0);
    }
    ck_assert_int_eq(dump_all(&shown, &rig), 0);
    expect_all(&shown, &rig, 5, RIG_IDS / 3, 0);
    finish(&rig);
}
END_TEST

START_TEST(test_memory_only)
{
    struct rig rig;
    rig_init(&rig, WAL_SYNC_ALWAYS, ID_RANDOM, 3);
    rig.config.data = NULL;
    rig.config.dump_range_records = RANGE;
    ck_assert_int_eq(store_create(&rig.config, &rig.store), 0);
    rig_add_counter(&rig, 'a');
    (void)rig_set_all(&rig, 'a', 5);
    ck_assert_int_eq(dump_all(&shown, &rig), 0);
    expect_all(&shown, &rig, 5, 0, 0);
    ck_assert_int_eq(store_destroy(&rig.store), 0);
    rig_fini(&rig);
}
END_TEST

/* From any id to any other, which may be of one row. */
START_TEST(test_bounds)
{
    struct rig rig;
    uint64_t id[RIG_IDS];
    begin(&rig, _i == 0 ? ID_RANDOM : ID_SEQUENTIAL);
    memcpy(id, rig.history.id, sizeof id);
    qsort(id, RIG_IDS, sizeof *id, compare_ids);
    for (int cold = 0; cold < 2; cold++) {
        for (size_t i = 0; i < RIG_IDS; i += 7) {
            size_t k = i + i % 50 < RIG_IDS ? i + i % 50 : RIG_IDS - 1;
            begin_dump(&shown, &rig, id[i], id[k]);
            ck_assert_int_eq(take_all(&shown, &rig), 0);
            end_dump(&shown, &rig);
            ck_assert_uint_eq(shown.n, k - i + 1);
            ck_assert_uint_eq(shown.id[0], id[i]);
            ck_assert_uint_eq(shown.id[shown.n - 1], id[k]);
        }
        begin_dump(&shown, &rig, 7, 6);
        ck_assert_int_eq(take_all(&shown, &rig), 0);
        ck_assert_uint_eq(shown.n, 0);
        end_dump(&shown, &rig);
        ck_assert_int_eq(rig_seal_all(&rig), 0);
    }
    finish(&rig);
}
END_TEST

/* The ids of the rule that one of n servers has, of those from first on. */
static int
dump_rule(struct shown *out, struct rig *rig, const char *hash, unsigned i,
    unsigned n, uint64_t first)
{
    char text[OWNS_RULE_BYTES];
    struct owns *owns = NULL;
    int len = snprintf(text, sizeof text, "%s:%u/%u", hash, i, n);
    ck_assert_int_eq(owns_create_rule(text, (size_t)len, &owns), 0);
    begin_dump(out, rig, first, UINT64_MAX);
    out->dump.owns = owns;
    int err = take_all(out, rig);
    end_dump(out, rig);
    for (size_t k = 0; k < out->n; k++) {
        ck_assert(owns_has(owns, out->id[k]));
    }
    owns_destroy(&owns);
    return err;
}

/* What the servers of a rule have, together, is all, each once. */
static void
expect_parts(struct rig *rig, const char *hash, unsigned n, uint64_t first)
{
    static struct shown all, part;
    size_t at = 0;
    begin_dump(&all, rig, first, UINT64_MAX);
    ck_assert_int_eq(take_all(&all, rig), 0);
    end_dump(&all, rig);
    for (unsigned i = 0; i < n; i++) {
        ck_assert_int_eq(dump_rule(&part, rig, hash, i, n, first), 0);
        size_t k = 0;
        for (size_t j = 0; j < part.n; j++) {
            while (k < all.n && all.id[k] < part.id[j]) {
                k++;
            }
            ck_assert(k < all.n && all.id[k] == part.id[j]);
            ck_assert_uint_eq(all.value[k], part.value[j]);
        }
        at += part.n;
    }
    ck_assert_uint_eq(at, all.n);
    ck_assert_uint_gt(at, 0);
}

START_TEST(test_rules)
{
    struct rig rig;
    begin(&rig, (enum id_family)_i);
    for (int cold = 0; cold < 2; cold++) {
        expect_parts(&rig, "crc32a", 3, 0);
        expect_parts(&rig, "modulo", 7, rig.history.id[RIG_IDS / 2]);
        ck_assert_int_eq(rig_seal_all(&rig), 0);
        for (size_t i = 0; i < RIG_IDS / 3; i++) {
            set_one(&rig, "ax", i, 9);
        }
    }
    expect_parts(&rig, "md5", 2, 0);
    expect_parts(&rig, "modulo", 1, 0);
    finish(&rig);
}
END_TEST

/* Up to ids without a record, behind which their row goes on. */
START_TEST(test_gaps)
{
    struct rig rig;
    begin(&rig, ID_SEQUENTIAL);
    for (size_t i = 0; i < RIG_IDS; i += 2) {
        set_one(&rig, "ax", i, 0);
    }
    for (int cold = 0; cold < 2; cold++) {
        for (size_t i = 0; i < RIG_IDS; i += 5) {
            begin_dump(&shown, &rig, 0, rig.history.id[i]);
            ck_assert_int_eq(take_all(&shown, &rig), 0);
            end_dump(&shown, &rig);
            ck_assert_uint_eq(shown.n, (i + 1) / 2);
            ck_assert(
                shown.n == 0 || shown.id[shown.n - 1] <= rig.history.id[i]);
        }
        ck_assert_int_eq(rig_seal_all(&rig), 0);
    }
    finish(&rig);
}
END_TEST

/* A read that fails once costs nothing; all that fail are told, and what the
 * engine has there is shown. */
START_TEST(test_reads_that_fail)
{
    struct rig rig;
    begin(&rig, ID_RANDOM);
    ck_assert_int_eq(rig_seal_all(&rig), 0);
    set_one(&rig, "ax", 0, 9);
    for (unsigned n = 1;; n++) {
        fake_disk_fail(rig.fake, 1 << FAKE_READ, n, EIO, false);
        ck_assert_int_eq(dump_all(&shown, &rig), 0);
        ck_assert_uint_eq(shown.n_bad, 0);
        expect_all(&shown, &rig, 5, 1, 9);
        if (fake_disk_heal(rig.fake) == 0) {
            ck_assert_uint_gt(n, 2);
            break;
        }
    }
    fake_disk_fail(rig.fake, 1 << FAKE_READ, 1, EIO, true);
    ck_assert_int_eq(dump_all(&shown, &rig), 0);
    ck_assert_uint_gt(fake_disk_heal(rig.fake), 0);
    ck_assert_uint_gt(shown.n_bad, 1);
    ck_assert_uint_eq(shown.n, 1);
    ck_assert_uint_eq(shown.id[0], rig.history.id[0]);
    ck_assert_uint_eq(shown.value[0], 9);
    finish(&rig);
}
END_TEST

/* One block of a file that is damaged: all other records come, and those of its
 * ids that have changed since. */
START_TEST(test_damage)
{
    struct rig rig;
    begin(&rig, ID_RANDOM);
    rig.data.seal_records = 0;
    ck_assert_int_eq(rig_seal_all(&rig), 0);
    ck_assert_int_eq(rig_close(&rig), 0);
    fake_disk_flip(rig.fake, FIRST_SEGMENT, 4096 + 50, 4);
    ck_assert_int_eq(rig_open(&rig), 0);
    ck_assert_int_eq(dump_all(&shown, &rig), 0);
    expect_rest(&shown, &rig);
    finish(&rig);
}
END_TEST

/* All in one file, of BLOCKS blocks. */
static void
begin_blocks(struct rig *rig, enum id_family family)
{
    static const char *const more[] = {"ay", "az", "aw", "av", "au"};
    char line[RIG_LINE_BYTES];
    begin(rig, family);
    ck_assert_int_eq(rig_close(rig), 0);
    rig->data.seal_records = 0;
    ck_assert_int_eq(rig_open(rig), 0);
    for (size_t k = 0; k < COUNT_OF(more); k++) {
        (void)snprintf(line, sizeof line, "add column a %s max=64", more[k]);
        ck_assert_int_eq(rig_edit(rig, line), 0);
        for (size_t i = 0; i < RIG_IDS; i++) {
            set_one(rig, more[k], i, random_below(&rig->random, UINT64_MAX));
        }
    }
    ck_assert_int_eq(rig_seal_all(rig), 0);
}

/* Each id by itself: what is damaged is told where it may be in that, and only
 * there. */
static void
expect_others(struct rig *rig, uint64_t bad_first, uint64_t bad_last)
{
    for (size_t i = 0; i < RIG_IDS; i++) {
        uint64_t id = rig->history.id[i];
        bool is_bad = id >= bad_first && id <= bad_last;
        begin_dump(&shown, rig, id, id + 1); /* which has no record */
        ck_assert_int_eq(take_all(&shown, rig), 0);
        end_dump(&shown, rig);
        ck_assert_uint_eq(shown.n, !is_bad);
        ck_assert_uint_eq(shown.n_bad, is_bad);
        ck_assert(
            !is_bad || (shown.bad_first == id && shown.bad_last - id <= 1));
    }
}

/* A block of several, be it in front of the others, between them or behind. */
START_TEST(test_damage_of_each)
{
    struct rig rig;
    begin_blocks(&rig, ID_RANDOM);
    ck_assert_int_eq(rig_close(&rig), 0);
    for (uint64_t block = 0; block < BLOCKS; block++) {
        uint64_t at = (block + 1) * BLOCK_BYTES_MAX + 50;
        fake_disk_flip(rig.fake, FIRST_SEGMENT, at, 4);
        ck_assert_int_eq(rig_open(&rig), 0);
        ck_assert_int_eq(dump_all(&shown, &rig), 0);
        expect_rest(&shown, &rig);
        ck_assert_uint_gt(shown.n, RIG_IDS / 4);
        ck_assert(block > 0 || shown.bad_first == rig_lowest(&rig));
        ck_assert(block == 0 || shown.id[0] == rig_lowest(&rig));
        expect_others(&rig, shown.bad_first, shown.bad_last);
        begin_dump(&shown, &rig, rig.history.id[RIG_IDS - 1] + 1, UINT64_MAX);
        ck_assert_int_eq(take_all(&shown, &rig), 0);
        end_dump(&shown, &rig);
        ck_assert_uint_eq(shown.n + shown.n_bad, 0); /* it is not read */
        ck_assert_int_eq(rig_close(&rig), 0);
        fake_disk_flip(rig.fake, FIRST_SEGMENT, at, 4);
    }
    rig_fini(&rig);
}
END_TEST

/* Ranges of a block each, whatever id a dump begins with: also one behind the
 * last record, which the file answers for all the same. */
START_TEST(test_range_of_blocks)
{
    struct rig rig;
    begin_blocks(&rig, (enum id_family)_i);
    ck_assert_int_eq(rig_close(&rig), 0);
    rig.config.dump_range_blocks = 1;
    ck_assert_int_eq(rig_open(&rig), 0);
    ck_assert_int_eq(dump_all(&shown, &rig), 0);
    expect_all(&shown, &rig, 5, 0, 0);
    for (size_t i = 1; i < RIG_IDS; i += 7) { /* the last one, too */
        for (uint64_t more = 0; more < 2; more++) {
            uint64_t first = rig.history.id[i] + more;
            size_t n = 0;
            for (size_t k = 0; k < RIG_IDS; k++) {
                n += rig.history.id[k] >= first;
            }
            begin_dump(&shown, &rig, first, UINT64_MAX);
            ck_assert_int_eq(take_all(&shown, &rig), 0);
            end_dump(&shown, &rig);
            ck_assert_uint_eq(shown.n, n);
            ck_assert(n == 0 || shown.id[0] >= first);
        }
    }
    finish(&rig);
}
END_TEST

/* Memory that runs out at any place ends it, and nothing else. */
START_TEST(test_memory_runs_out)
{
    struct fault_alloc fault;
    struct rig rig;
    size_t n = 0;
    int err;
    fault_alloc_init(&fault);
    rig_init(&rig, WAL_SYNC_ALWAYS, ID_RANDOM, 3);
    rig.config.dump_range_records = RANGE;
    rig.config.dump_alloc = &fault.alloc;
    ck_assert_int_eq(rig_open(&rig), 0);
    rig_add_counter(&rig, 'a');
    (void)rig_set_all(&rig, 'a', 5);
    do {
        fault.calls = fault.failures = 0;
        fault.fail_from = fault.fail_to = ++n;
        err = dump_all(&shown, &rig);
        ck_assert(err == (fault.failures > 0 ? ERR_NO_MEMORY : 0));
    } while (err != 0);
    ck_assert_uint_gt(n, 4);
    expect_all(&shown, &rig, 5, 0, 0);
    finish(&rig);
    ck_assert_uint_eq(fault.live_bytes, 0);
}
END_TEST

/* The counter has gone when its dump comes to be done. */
START_TEST(test_gone)
{
    struct rig rig;
    begin(&rig, ID_RANDOM);
    begin_dump(&shown, &rig, 0, UINT64_MAX);
    ck_assert_int_eq(rig_edit(&rig, "drop counter a a"), 0);
    ck_assert_int_eq(take_all(&shown, &rig), ERR_GONE);
    end_dump(&shown, &rig);
    finish(&rig);
}
END_TEST

START_TEST(test_many)
{
    static struct shown many[DUMPER_WORKS_MAX + 1];
    struct rig rig;
    begin(&rig, ID_RANDOM);
    for (int i = 0; i < DUMPER_WORKS_MAX; i++) {
        begin_dump(&many[i], &rig, 0, UINT64_MAX);
        ck_assert_int_eq(take_piece(&many[i], &rig), 0);
    }
    begin_dump(&many[DUMPER_WORKS_MAX], &rig, 0, UINT64_MAX);
    ck_assert_int_eq(
        take_piece(&many[DUMPER_WORKS_MAX], &rig), ERR_MANY_DUMPS);
    end_dump(&many[DUMPER_WORKS_MAX], &rig);
    end_dump(&many[1], &rig);
    ck_assert_int_eq(dump_all(&many[1], &rig), 0);
    store_end_calls(rig.store);
    ck_assert_int_eq(take_piece(&many[0], &rig), ERR_CLOSED);
    for (int i = 0; i < DUMPER_WORKS_MAX; i++) {
        if (i != 1) {
            end_dump(&many[i], &rig);
        }
    }
    finish(&rig);
}
END_TEST

struct beside {
    struct rig *rig;
    _Atomic bool is_over;
};

static void *
change_all(void *context)
{
    struct beside *beside = context;
    for (uint64_t value = 6; value < 6 + ROUNDS; value++) {
        (void)rig_set_all(beside->rig, 'a', value);
        (void)rig_seal_all(beside->rig);
    }
    atomic_store(&beside->is_over, true);
    return NULL;
}

/* Changes, seals, joins and ranges that become hot beside it: each record that
 * is always there is shown once. */
START_TEST(test_threads)
{
    struct rig rig;
    pthread_t thread;
    unsigned n = 0;
    rig_init(&rig, WAL_SYNC_NONE, (enum id_family)_i, 4);
    rig.data.seal_records = RANGE;
    rig.data.tidy = &at_once;
    rig.config.dump_range_records = RANGE;
    ck_assert_int_eq(rig_open(&rig), 0);
    rig.seals = true;
    rig_add_counter(&rig, 'a');
    (void)rig_set_all(&rig, 'a', 5);
    struct beside beside = {.rig = &rig};
    ck_assert_int_eq(pthread_create(&thread, NULL, change_all, &beside), 0);
    do {
        ck_assert_int_eq(dump_all(&shown, &rig), 0);
        ck_assert_uint_eq(shown.n, RIG_IDS);
        ck_assert_uint_eq(shown.n_bad, 0);
        n++;
    } while (!atomic_load(&beside.is_over));
    pthread_join(thread, NULL);
    ck_assert_int_eq(dump_all(&shown, &rig), 0);
    expect_all(&shown, &rig, 5 + ROUNDS, 0, 0);
    finish(&rig);
}
END_TEST

static void
take_step(struct step it)
{
    struct dump_work work = {
        .magic = DUMP_WORK_MAGIC, .state = (enum dump_work_state)it.from};
    dump_work__move(&work, (enum dump_work_state)it.to);
}

static void
take_step_gone(void *context)
{
    struct dump_work work = {.state = DUMP_WORK_NEW};
    (void)context;
    dump_work__move(&work, DUMP_WORK_BETWEEN);
}

/* Of each two states: whether the one may follow the other; and a dump that is
 * gone takes no step. */
START_TEST(test_states)
{
    enum { N = DUMP_WORK_OVER + 1 };
    static const bool is_legal[N][N] = {
        [DUMP_WORK_NEW] = {[DUMP_WORK_BETWEEN] = true},
        [DUMP_WORK_BETWEEN] =
            {[DUMP_WORK_IN_RANGE] = true, [DUMP_WORK_OVER] = true},
        [DUMP_WORK_IN_RANGE] =
            {[DUMP_WORK_BETWEEN] = true, [DUMP_WORK_OVER] = true},
    };
    expect_steps(take_step, &is_legal[0][0], N);
    ck_assert(!survives(take_step_gone, NULL));
}
END_TEST

int
main(void)
{
    TCase *tcase = tcase_create("dump_work");
    tcase_add_loop_test(tcase, test_everywhere, 0, ID_FAMILY_COUNT);
    tcase_add_test(tcase, test_memory_only);
    tcase_add_loop_test(tcase, test_bounds, 0, 2);
    tcase_add_loop_test(tcase, test_rules, 0, ID_FAMILY_COUNT);
    tcase_add_test(tcase, test_gaps);
    tcase_add_test(tcase, test_reads_that_fail);
    tcase_add_test(tcase, test_damage);
    tcase_add_test(tcase, test_damage_of_each);
    tcase_add_loop_test(tcase, test_range_of_blocks, 0, ID_FAMILY_COUNT);
    tcase_add_test(tcase, test_memory_runs_out);
    tcase_add_test(tcase, test_gone);
    tcase_add_test(tcase, test_many);
    tcase_add_test(tcase, test_states);
    tcase_add_loop_test(tcase, test_threads, 0, 3);
    return run_case("dump_work", tcase);
}
