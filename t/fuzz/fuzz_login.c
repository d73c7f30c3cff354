/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzzes a session whose client has to log in (fuzz_session.h), whatever it
 * speaks. The first byte says who it is: nobody, who finds no user that fits,
 * one who has logged in and may only read, or one who may log in by what it
 * says. Whatever the first two say, nothing has changed afterwards. */
#include "base/assert.h"
#include "fuzz/fuzz_session.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static bool
let_none_in(struct access *access, struct access_login *login)
{
    struct fake_access *fake = (struct fake_access *)access;
    login->rank = ACCESS_NOBODY;
    if (fake->is_late) {
        login->done_fn(login);
    }
    return !fake->is_late;
}

/* Nobody but who logs in as reader. */
static bool
let_reader_in(struct access *access, struct access_login *login)
{
    struct fake_access *fake = (struct fake_access *)access;
    login->rank = fake_is(login, "reader") ? ACCESS_READER : ACCESS_NOBODY;
    if (fake->is_late) {
        login->done_fn(login);
    }
    return !fake->is_late;
}

/* What is there after the input. */
static void
look_after(const struct world *world, const uint8_t *bytes, size_t len,
    struct buf *seen)
{
    const struct manner plain = {.mark = DIALOG_MARK, .budget = DIALOG_BUDGET};
    struct store *store = small_store(NULL);
    struct buf replies = {0};
    say_whole(store, world->before, &replies);
    say_cut(world, store, &plain, bytes, len, &replies);
    say_whole(store, world->after, seen);
    ASSERT(!seen->failed);
    buf_fini(&replies);
    store_destroy(&store);
}

static void
expect_no_change(const struct world *world, const uint8_t *bytes, size_t len)
{
    struct buf before = {0};
    struct buf after = {0};
    look_after(world, bytes, 0, &before);
    look_after(world, bytes, len, &after);
    ASSERT(before.len == after.len);
    ASSERT(memcmp(before.data, after.data, before.len) == 0);
    buf_fini(&before);
    buf_fini(&after);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    enum { NOBODY, READER, ANYBODY, KINDS, LATE = 4, SASL = 8 };
    if (len == 0) {
        return 0;
    }
    int kind = bytes[0] % 4 % KINDS;
    struct fake_access users =
        fake_access((bytes[0] & SASL) != 0, (bytes[0] & LATE) != 0);
    struct world world = *counters_world();
    world.users = &users;
    if (kind != ANYBODY) {
        users.access.check_fn = kind == READER ? let_reader_in : let_none_in;
    }
    if (kind == READER) {
        world.login = "set x 0 0 13\r\nreader reader\r\n";
    }
    fuzz_session(&world, bytes + 1, len - 1);
    if (kind != ANYBODY) {
        expect_no_change(&world, bytes + 1, len - 1);
    }
    return 0;
}
