/* SPDX-License-Identifier: BSD-3-Clause */
/* store/keeper: a number that is to count members has no values, whatever is
 * changed while the edit is under way, and whoever knows of it late. */
#include "engine/engine_priv.h"
#include "unit/keeper_help.h"

#include <pthread.h>

/* Whole records of n and c, as a request has them that knows of no members;
 * with_members: of one that does. */
static struct change
record_of(
    struct rig *rig, enum change_op op, uint64_t operand, bool with_members)
{
    static const char *const names[] = {"n", "c", "m"};
    struct cell_key key = find(rig, "n");
    struct change change = change_of(&key, op, operand);
    change.n_columns = with_members ? 3 : 2;
    for (unsigned i = 0; i < change.n_columns; i++) {
        key = find(rig, names[i]);
        change.column[i] = key.column;
        change.serial[i] = key.serial;
        change.operand[i] = operand;
    }
    return change;
}

static int
change_one(struct rig *rig, struct change change)
{
    change.id = 1;
    engine_change(rig->engine, &change, 1);
    return change.err;
}

/* Who resolved a number before it counts members, and changes it then, is
 * refused: nothing else changes it, and a record is not deleted without its
 * members. */
START_TEST(test_counted_is_closed)
{
    struct rig rig;
    rig_init(&rig);
    declare_members(&rig);
    struct cell_key n = find(&rig, "n"), c = find(&rig, "c");
    ck_assert_int_eq(edit_now(&rig, ADD_MEMBERS), 0);
    for (int i = CHANGE_SET; i <= CHANGE_DELETE; i++) {
        enum change_op op = (enum change_op)i;
        change_all(&rig, c, op, 1, ERR_COUNTED);
        ck_assert_int_eq(
            change_one(&rig, record_of(&rig, op, 1, false)), ERR_COUNTED);
    }
    change_all(&rig, c, CHANGE_INCR, 0, 0); /* leaves it as it is */
    struct change change = change_of(&c, CHANGE_INCR, 0);
    change.absent = CHANGE_TO_INITIAL;
    change.initial = 3;
    ck_assert_int_eq(change_one(&rig, change), ERR_COUNTED);
    change = record_of(&rig, CHANGE_SET, 5, false);
    change.operand[1] = 0;
    ck_assert_int_eq(change_one(&rig, change), ERR_COUNTED);
    expect_now(&rig, n, CELL_SET, 7);
    expect_now(&rig, c, CELL_DEFAULT, 0);
    change.kept = 1U << 1;
    ck_assert_int_eq(change_one(&rig, change), 0);
    change.op = CHANGE_INCR;
    change.kept = 0;
    ck_assert_int_eq(change_one(&rig, change), 0);
    change = record_of(&rig, CHANGE_DELETE, 0, true);
    change.serial[2]++; /* of members that are not these */
    ck_assert_int_eq(change_one(&rig, change), ERR_COUNTED);
    change.serial[2]--;
    ck_assert_int_eq(change_one(&rig, change), 0);
    ck_assert_int_eq(edit_now(&rig, "drop column w m m"), 0);
    change_all(&rig, c, CHANGE_INCR, 1, 0);
    expect_now(&rig, c, CELL_SET, 1);
    rig_fini(&rig);
}
END_TEST

/* Gives out memory, and when so many bytes are asked for, once, all records get
 * a value in column c first: as if a client had been there. */
static size_t client_bytes;
static struct cell_key client_key;

static void *
zeroed_beside_client(void *context, size_t bytes)
{
    struct rig *rig = context; /* fault is its first member */
    if (bytes == client_bytes) {
        struct qsbr_reader reader;
        client_bytes = 0;
        reader_begin(&rig->store, &reader);
        change_all(rig, client_key, CHANGE_SET, 7, 0);
        reader_end(&rig->store, &reader);
    }
    return fault_alloc__zeroed(context, bytes);
}

/* Adds members beside that client, with no memory from the n-th call on. True
 * where it was short. */
static bool
count_meanwhile(size_t n)
{
    struct rig rig;
    rig_init(&rig);
    declare_members(&rig);
    const struct schema *old = atomic_load(&rig.schema);
    struct cell_key pairs = {
        .serial = schema_last_serial(old) + 3, .counter = 1};
    client_key = find(&rig, "c");
    client_bytes = counter__bytes(rig.engine); /* of the one of pairs */
    rig.fault.alloc.zeroed_fn = zeroed_beside_client;
    arm(&rig, n, SIZE_MAX / 2);
    int err = edit_now(&rig, ADD_MEMBERS);
    disarm(&rig);
    bool has_failed = rig.fault.failures > 0;
    ck_assert(
        err == ERR_COUNTS_VALUES || (has_failed && err == ERR_NO_MEMORY));
    ck_assert_ptr_eq(atomic_load(&rig.schema), old);
    change_all(&rig, pairs, CHANGE_SET, 1, ERR_GONE);
    expect_now(&rig, pairs, CELL_GONE, 0);
    change_all(&rig, client_key, CHANGE_SET, 7, 0);
    change_all(&rig, client_key, CHANGE_INCR, 1, 0);
    expect_now(&rig, client_key, CELL_SET, 8);
    change_all(&rig, client_key, CHANGE_DELETE, 0, 0);
    client_bytes = 0;
    ck_assert_int_eq(edit_now(&rig, ADD_MEMBERS), 0);
    change_all(&rig, client_key, CHANGE_INCR, 1, ERR_COUNTED);
    expect_members(&rig);
    rig_fini(&rig);
    return has_failed;
}

/* A value that comes when nobody has found one, and before the engine knows of
 * members, has the edit taken back. */
START_TEST(test_members_counted_meanwhile)
{
    size_t n = 3; /* the client gets what it needs */
    while (count_meanwhile(n)) {
        n++;
    }
    ck_assert_uint_gt(n, 4);
}
END_TEST

/* Memory for several threads at a time. */
static pthread_mutex_t alloc_lock = PTHREAD_MUTEX_INITIALIZER;

static void *
zeroed_of_many(void *context, size_t bytes)
{
    pthread_mutex_lock(&alloc_lock);
    void *block = fault_alloc__zeroed(context, bytes);
    pthread_mutex_unlock(&alloc_lock);
    return block;
}

static void
free_of_many(void *context, void *block, size_t bytes)
{
    pthread_mutex_lock(&alloc_lock);
    fault_alloc__free(context, block, bytes);
    pthread_mutex_unlock(&alloc_lock);
}

/* What clients do to column c meanwhile: each record gets a value, and loses it
 * again. */
struct clients {
    struct rig *rig;
    struct cell_key key;
    atomic_bool is_over;
};

static void
one_more(struct clients *it, enum change_op op, uint64_t operand)
{
    struct change change = change_of(&it->key, op, operand);
    engine_change(it->rig->engine, &change, 1);
    ck_assert(change.err == 0 || change.err == ERR_COUNTED ||
        (op == CHANGE_DELETE && change.err == ERR_NOT_FOUND));
}

static void *
run_clients(void *arg)
{
    struct clients *it = arg;
    struct qsbr_reader reader;
    reader_begin(&it->rig->store, &reader);
    while (!atomic_load(&it->is_over)) {
        it->key.id = (it->key.id + 1) % IDS;
        one_more(it, CHANGE_INCR, 1);
        one_more(it, CHANGE_DELETE, 0);
        qsbr_online(it->rig->store.qsbr, &reader);
    }
    reader_end(&it->rig->store, &reader);
    return NULL;
}

/* Members are added and dropped meanwhile: while they are there the number has
 * no value. */
START_TEST(test_counted_beside_clients)
{
    enum { ROUNDS = 1000 };
    struct rig rig;
    pthread_t thread;
    rig_init(&rig);
    rig.fault.alloc.zeroed_fn = zeroed_of_many;
    rig.fault.alloc.free_fn = free_of_many;
    declare_members(&rig);
    struct clients clients = {.rig = &rig, .key = find(&rig, "c")};
    struct cell_key c = clients.key;
    atomic_init(&clients.is_over, false);
    ck_assert_int_eq(pthread_create(&thread, NULL, run_clients, &clients), 0);
    for (unsigned i = 0; i < ROUNDS; i++) {
        int err = edit_now(&rig, ADD_MEMBERS);
        ck_assert(err == 0 || err == ERR_COUNTS_VALUES);
        if (err == 0) {
            expect_now(&rig, c, CELL_DEFAULT, 0);
            ck_assert_int_eq(edit_now(&rig, "drop column w m m"), 0);
        }
    }
    atomic_store(&clients.is_over, true);
    pthread_join(thread, NULL);
    rig_fini(&rig);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_counted_is_closed,
        test_members_counted_meanwhile, test_counted_beside_clients};
    return run_tests("keeper_counts", tests, COUNT_OF(tests));
}
