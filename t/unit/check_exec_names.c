/* SPDX-License-Identifier: BSD-3-Clause */
/* Gets by names that wait for the store: a name that is taken out meanwhile,
 * and whose number another one has by then, is answered as a name without a
 * record, and never with what the other one has; a dump likewise. */
#include "engine/marks.h"
#include "names/names.h"
#include "store/store_real.h"
#include "unit/held_help.h"

#include <stdio.h>

static const char *const schema[] = {"add counter site",
    "add column site url primarykey=text", "add column site hits default=7",
    "add column site likes", "add column site liked members=exact"};

#define OLD "the.one.that.goes"
#define STAYS "the.one.that.stays"
#define NEW "the.one.that.comes"

static void
open_names(struct held_dialog *held)
{
    open_held(held);
    hold_end(held->hold);
    for (size_t i = 0; i < COUNT_OF(schema); i++) {
        exchange(&held->other, schema[i], "STORED\r\n");
    }
}

/* As a reader that is quiescent behind it. */
static uint64_t
id_of(struct real_store *real, const char *name, bool *found)
{
    struct names_ask ask = {.bytes = name, .len = strlen(name)};
    struct qsbr_reader reader;
    qsbr_register(&real->qsbr, &reader);
    qsbr_online(&real->qsbr, &reader);
    names_find(real->store.names, &ask, 1);
    qsbr_offline(&reader);
    qsbr_unregister(&real->qsbr, &reader);
    *found = ask.found;
    return ask.id;
}

struct dropped {
    struct real_store *real;
    uint32_t number;
};

static void
drop(void *context, unsigned shard)
{
    struct dropped *it = context;
    ck_assert(names_drop(it->real->store.names, shard, it->number));
    atomic_fetch_add(&it->real->names_dropped, 1);
}

static void
collect(void *context, unsigned shard)
{
    struct dropped *it = context;
    dict_collect(names_dict(it->real->store.names, shard));
}

/* As the gardener does. */
static void
take_out(struct real_store *real, const char *name)
{
    struct dropped it = {.real = real};
    unsigned shard;
    uint64_t row;
    bool found;
    uint64_t id = id_of(real, name, &found);
    ck_assert(found);
    engine_row(real->engine, id, &shard, &row);
    it.number = (uint32_t)row;
    engine_hold(real->engine, shard, drop, &it);
}

static unsigned
shard_of(struct real_store *real, uint64_t id)
{
    unsigned shard;
    uint64_t row;
    engine_row(real->engine, id, &shard, &row);
    return shard;
}

/* Has other names come until one has the number that OLD had. */
static void
put_new(struct held_dialog *held, struct real_store *real, uint64_t id)
{
    unsigned shard = shard_of(real, id);
    struct dropped it = {.real = real};
    bool found;
    for (unsigned i = 0; i < 100000; i++) {
        char name[64], said[96];
        snprintf(name, sizeof name, NEW "/%u", i);
        snprintf(said, sizeof said, "incr %s.hits 90", name);
        if (shard_of(real, id_of(real, name, &found)) != shard) {
            continue;
        }
        engine_hold(real->engine, shard, collect, &it);
        exchange(&held->other, said, "97\r\n");
        if (id_of(real, name, &found) == id) {
            return;
        }
    }
    ck_abort_msg("the number is not given again");
}

START_TEST(test_number_of_another)
{
    struct held_dialog held;
    open_names(&held);
    struct real_store *real = store__real(held.inner);
    bool found;
    exchange(&held.other, "incr " OLD ".hits 1", "8\r\n");
    exchange(&held.other, "incr " STAYS ".hits 2", "9\r\n");
    uint64_t id = id_of(real, OLD, &found);
    ck_assert(found);
    hold_begin(held.hold, false);
    held_add(&held, "get " OLD ".hits " STAYS ".hits " OLD ".site\r\n");
    exchange(&held.other, "delete " OLD ".site", "DELETED\r\n");
    take_out(real, OLD);
    put_new(&held, real, id);
    held_release(&held);
    (void)step_through(&held);
    expect_replies(&held.dialog, "get",
        "VALUE " OLD ".hits 0 1\r\n7\r\nVALUE " STAYS ".hits 0 1\r\n9\r\n"
        "VALUE " OLD ".site 0 3\r\n7 0\r\nEND\r\n");
    hold_end(held.hold);
    close_held(&held);
}
END_TEST

/* Says it, which waits for the store. */
static void
ask_for_dump(struct dialog *dialog)
{
    const char said[] = "dump counter site\r\n";
    dialog_add(dialog, said, sizeof said - 1);
    ck_assert_int_eq(dialog_step(dialog), SESSION_PARKED);
}

static void
expect_dump(struct dialog *dialog, const char *wanted)
{
    do {
        dialog_wait(dialog);
    } while (dialog_step(dialog) == SESSION_PARKED);
    expect_replies(dialog, "dump", wanted);
}

/* A dump at a replica, which takes names out while there is one: a name that
 * went has no line; where a number was given again there is none at all. */
START_TEST(test_dump)
{
    struct held_dialog held;
    open_names(&held);
    struct real_store *real = store__real(held.inner);
    exchange(&held.other, "incr " OLD ".hits 1", "8\r\n");
    exchange(&held.other, "incr " STAYS ".likes 2", "2\r\n");
    ask_for_dump(&held.other);
    take_out(real, OLD);
    expect_dump(&held.other, "set site " STAYS " hits=7 likes=2\r\nEND\r\n");
    ask_for_dump(&held.other);
    atomic_fetch_add(&real->store.names->n_again, 1);
    expect_dump(&held.other,
        "SERVER_ERROR names went and came meanwhile, begin anew or ask the "
        "primary\r\n");
    close_held(&held);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_number_of_another, test_dump};
    return run_tests("exec_names", tests, COUNT_OF(tests));
}
