/* SPDX-License-Identifier: BSD-3-Clause */
/* names/names behind engine/naming: changes of names, in batches and alone,
 * against a model; names that come and go between the look and the change; what
 * the sink is told makes the same names elsewhere; memory that runs out. */
#include "engine/marks.h"
#include "engine/naming.h"
#include "lib/fault_alloc.h"
#include "names/names.h"
#include "unit/engine_help.h"

#include <string.h>

enum { SHARDS = 8, NAMES = 700, BATCH = 64, ROUNDS = 600 };

struct rig {
    struct fault_alloc fault;
    struct qsbr qsbr;
    struct qsbr_reader reader;
    struct engine *engine;
    struct names *names;
    struct names *copy; /* made of what the sink is told */
    struct names_sink sink;
    struct schema_counter def;
    uint64_t value[NAMES];
    uint64_t random;
};

static void
row_fn(const void *context, uint64_t id, unsigned *shard, uint64_t *row)
{
    engine_row(context, id, shard, row);
}

static uint64_t
id_fn(const void *context, unsigned shard, uint64_t row)
{
    return engine_id(context, shard, row);
}

static struct rig *
rig_of(struct names_sink *sink)
{
    return (struct rig *)((char *)sink - offsetof(struct rig, sink));
}

static void
told_add(struct names_sink *sink, unsigned shard, uint32_t number,
    const char *bytes, size_t len)
{
    struct rig *rig = rig_of(sink);
    engine_assert_held(rig->engine, shard);
    ck_assert_int_eq(names_put_at(rig->copy, shard, number, bytes, len), 0);
}

static void
told_gone(struct names_sink *sink, unsigned shard, uint32_t number)
{
    struct rig *rig = rig_of(sink);
    engine_assert_held(rig->engine, shard);
    names_take_out(rig->copy, shard, number);
}

static size_t
name_of(unsigned i, char *out)
{
    static const char *const form[] = {
        "http://example.org/%u", "n%u", "%u@example.com", "%021u", "%07u"};
    return (size_t)snprintf(out, NAME_BYTES_MAX, form[i % COUNT_OF(form)], i);
}

static void
rig_init(struct rig *rig, uint64_t seed)
{
    memset(rig, 0, sizeof *rig);
    fault_alloc_init(&rig->fault);
    qsbr_init(&rig->qsbr);
    const struct engine_config engine = {.shards = SHARDS,
        .seed = seed,
        .hot_bytes = ROOMY_BYTES,
        .qsbr = &rig->qsbr};
    rig->engine = engine_of(&engine);
    struct names_config config = {.shards = SHARDS,
        .limit_bytes = UINT64_C(1) << 30,
        .row_fn = row_fn,
        .id_fn = id_fn,
        .context = rig->engine};
    names_key(seed, config.key);
    ck_assert_int_eq(names_create(&rig->copy, &config), 0);
    config.alloc = &rig->fault.alloc;
    config.qsbr = &rig->qsbr;
    ck_assert_int_eq(names_create(&rig->names, &config), 0);
    rig->sink = (struct names_sink){told_add, told_gone};
    names_set_sink(rig->names, &rig->sink);
    engine_set_names(rig->engine, &rig->names->hook);
    rig->def = plain_counter(0, 1);
    ck_assert_int_eq(engine_define(rig->engine, &rig->def), 0);
    rig->random = seed;
    qsbr_register(&rig->qsbr, &rig->reader);
    qsbr_online(&rig->qsbr, &rig->reader);
}

static void
rig_fini(struct rig *rig)
{
    qsbr_offline(&rig->reader);
    qsbr_unregister(&rig->qsbr, &rig->reader);
    finish_engine(&rig->engine);
    names_destroy(&rig->names);
    names_destroy(&rig->copy);
    ck_assert_uint_eq(rig->fault.live_bytes, 0);
    qsbr_fini(&rig->qsbr);
}

struct changes {
    unsigned n, of[BATCH];
    char bytes[BATCH][NAME_BYTES_MAX];
    struct names_ask ask[BATCH];
    struct engine_name name[BATCH];
    struct change change[BATCH];
};

/* Changes of any names, some of them twice, some new. */
static void
draw(struct rig *rig, struct changes *it)
{
    it->n = 1 + (unsigned)random_below(&rig->random, BATCH);
    for (unsigned k = 0; k < it->n; k++) {
        unsigned i = (unsigned)random_below(&rig->random, NAMES);
        bool goes = random_below(&rig->random, 3) == 0;
        it->of[k] = i;
        it->ask[k] = (struct names_ask){
            .bytes = it->bytes[k], .len = name_of(i, it->bytes[k])};
        it->name[k] =
            (struct engine_name){it->bytes[k], (uint8_t)it->ask[k].len};
        it->change[k] = change_of(&rig->def,
            goes ? CHANGE_DELETE : CHANGE_INCR, 0, 1, goes ? 0 : 1 + i);
    }
}

static void
look(struct rig *rig, struct changes *it)
{
    names_find(rig->names, it->ask, it->n);
    for (unsigned k = 0; k < it->n; k++) {
        it->change[k].id = it->ask[k].id;
        it->change[k].name = it->ask[k].is_own ? NULL : &it->name[k];
    }
}

static void
judge(struct rig *rig, const struct changes *it)
{
    for (unsigned k = 0; k < it->n; k++) {
        uint64_t *value = &rig->value[it->of[k]];
        const struct change *change = &it->change[k];
        if (change->op == CHANGE_DELETE) {
            CHECK(change->err == (*value == 0 ? ERR_NOT_FOUND : 0));
            *value = 0;
        } else {
            *value += 1 + it->of[k];
            CHECK(change->err == 0 && change->value[0] == *value);
        }
    }
}

static void
drop_held(void *context, unsigned shard)
{
    struct rig *rig = context;
    uint32_t number = 0;
    for (uint64_t id; names_next(rig->names, shard, &number, &id); number++) {
        struct cell_key key = key_of(&rig->def, 0, id);
        uint64_t value;
        uint8_t state;
        engine_get(rig->engine, &key, 1, &value, &state);
        if (state == CELL_DEFAULT) {
            ck_assert(names_drop(rig->names, shard, number));
        }
    }
}

static void
drop_all(struct rig *rig)
{
    for (unsigned i = 0; i < SHARDS; i++) {
        engine_hold(rig->engine, i, drop_held, rig);
    }
}

static void
expect_all(struct rig *rig)
{
    char bytes[NAME_BYTES_MAX], back[NAME_ROOM_BYTES];
    for (unsigned i = 0; i < NAMES; i++) {
        struct names_ask ask = {.bytes = bytes, .len = name_of(i, bytes)};
        struct names_ask copy = ask;
        names_find(rig->names, &ask, 1);
        names_find(rig->copy, &copy, 1);
        CHECK(ask.found == copy.found && ask.id == copy.id);
        expect_value(rig->engine, &rig->def, 0, ask.id, rig->value[i]);
        CHECK(ask.found || rig->value[i] == 0);
        CHECK(ask.found == (names_name(rig->names, ask.id, back) == ask.len));
        CHECK(!ask.found || memcmp(back, bytes, ask.len) == 0);
    }
    for (unsigned i = 0; i < SHARDS; i++) {
        dict_verify(names_dict(rig->names, i));
    }
}

START_TEST(test_model)
{
    static struct rig rig;
    static struct changes changes;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        rig_init(&rig, seed);
        for (unsigned round = 0; round < ROUNDS; round++) {
            draw(&rig, &changes);
            look(&rig, &changes);
            if (random_below(&rig.random, 4) == 0) {
                drop_all(&rig); /* what was found may be gone */
            }
            engine_change(rig.engine, changes.change, changes.n);
            judge(&rig, &changes);
            qsbr_online(&rig.qsbr, &rig.reader);
        }
        expect_all(&rig);
        for (unsigned i = 0; i < NAMES; i++) {
            rig.value[i] = 0;
        }
        drop_all(&rig);
        rig_fini(&rig);
    }
}
END_TEST

/* A change that leaves nothing, and what it is to end with. */
static int
make_vain(struct change *change, unsigned kind)
{
    static const enum change_op op[] = {
        CHANGE_DELETE, CHANGE_INCR, CHANGE_SET, CHANGE_REPLACE, CHANGE_SET};
    change->op = op[kind];
    change->operand[0] = kind == 3 || kind == 4 ? 7 : 0;
    change->compares = kind == 4;
    change->cas = 12345; /* of nothing */
    return kind == 0 ? ERR_NOT_FOUND
        : kind == 3  ? ERR_NOT_STORED
        : kind == 4  ? ERR_EXISTS
                     : 0;
}

/* Nothing that leaves nothing gives a name a number, in a batch or alone, and
 * what comes behind it in the batch still does. */
START_TEST(test_vain)
{
    static struct rig rig;
    static struct changes changes;
    struct names_sums sums = {0};
    rig_init(&rig, 5);
    for (unsigned round = 0; round < 50; round++) {
        int wanted[BATCH];
        draw(&rig, &changes);
        for (unsigned k = 0; k < changes.n; k++) {
            wanted[k] = make_vain(&changes.change[k], (k + round) % 5);
        }
        look(&rig, &changes);
        engine_change(
            rig.engine, changes.change, round % 5 == 0 ? 1 : changes.n);
        for (unsigned k = 0; k < (round % 5 == 0 ? 1 : changes.n); k++) {
            CHECK(changes.change[k].err == wanted[k]);
        }
    }
    for (unsigned i = 0; i < SHARDS; i++) {
        names_add_sums(rig.names, i, &sums);
    }
    ck_assert_uint_eq(sums.names, 0);
    for (unsigned round = 0; round < 50; round++) {
        draw(&rig, &changes);
        for (unsigned k = 0; k < changes.n; k++) {
            changes.change[k] = change_of(&rig.def, CHANGE_INCR, 0, 1, k % 2);
        }
        look(&rig, &changes);
        engine_change(rig.engine, changes.change, changes.n);
        for (unsigned k = 0; k < changes.n; k++) {
            uint64_t *value = &rig.value[changes.of[k]];
            *value += k % 2;
            CHECK(changes.change[k].err == 0 &&
                changes.change[k].value[0] == *value);
        }
        qsbr_online(&rig.qsbr, &rig.reader);
    }
    expect_all(&rig);
    rig_fini(&rig);
}
END_TEST

/* Memory that fails refuses some changes and no others. */
START_TEST(test_memory)
{
    static struct rig rig;
    static struct changes changes;
    unsigned n_refused = 0;
    rig_init(&rig, 7);
    for (unsigned round = 0; round < ROUNDS; round++) {
        draw(&rig, &changes);
        look(&rig, &changes);
        rig.fault.fail_from =
            rig.fault.calls + 1 + random_below(&rig.random, 6);
        rig.fault.fail_to = rig.fault.fail_from + round % 4;
        engine_change(rig.engine, changes.change, changes.n);
        rig.fault.fail_from = rig.fault.fail_to = 0;
        for (unsigned k = 0; k < changes.n; k++) {
            struct change *change = &changes.change[k];
            uint64_t *value = &rig.value[changes.of[k]];
            if (change->err == 0) {
                *value = change->op == CHANGE_DELETE
                    ? 0
                    : *value + 1 + changes.of[k];
                CHECK(change->value[0] == *value);
            } else if (change->err != ERR_NOT_FOUND) {
                CHECK(change->err == ERR_NO_MEMORY);
                n_refused++;
            }
        }
        if (round % 10 == 9) {
            drop_all(&rig);
        }
        qsbr_online(&rig.qsbr, &rig.reader);
    }
    ck_assert_uint_gt(n_refused, 10);
    expect_all(&rig);
    rig_fini(&rig);
}
END_TEST

/* The key is the seed's, for good: shards follow from it. */
START_TEST(test_key)
{
    uint8_t key[SIPHASH_KEY_BYTES], other[SIPHASH_KEY_BYTES];
    static const uint8_t of_one[SIPHASH_KEY_BYTES] = {0x82, 0xa6, 0x7e, 0x77,
        0x4b, 0x97, 0x7d, 0x2a, 0x37, 0x01, 0xfe, 0x5d, 0x06, 0xe1, 0xff,
        0xdc};
    names_key(1, key);
    names_key(2, other);
    ck_assert_mem_eq(key, of_one, sizeof key);
    ck_assert_mem_ne(key, other, sizeof key);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        test_model, test_vain, test_memory, test_key};
    return run_tests("naming", tests, COUNT_OF(tests));
}
