/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FUZZ_SESSION_H
#define FUZZ_SESSION_H

/* Fuzzes a session on a real store: whatever bytes come, in whatever pieces,
 * in turns of whatever size, and whether the store answers at once or later,
 * the replies are the same, and nothing breaks. The input is what a client
 * sends, so that seeds can be read; how it is cut follows from its hash. */

#include "base/assert.h"
#include "base/clock.h"
#include "lib/dialog.h"
#include "lib/park.h"
#include "lib/small_store.h"
#include "unit/access_help.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { VALUE_MAX = 300, CUTS_MAX = 8 };

/* What is said, each on a session of its own, before the input and after it;
 * the replies count, too. */
struct world {
    const char *before;
    const char *after;
    struct fake_access *users; /* NULL: nobody has to log in; else who sends
                                * the input has to */
    const char *login;         /* said before the input; NULL: nothing */
};

/* Counters with marks, members and lists, and a look at them. */
#define FUZZ_KINDS                                                            \
    "add counter post cold=never\r\n"                                         \
    "add column post pid primarykey\r\n"                                      \
    "add column post likes max=2\r\n"                                         \
    "add column post liked members=exact counts=likes flags=3\r\n"            \
    "add column post score members=exact max=8 member=16 suffix=sc\r\n"       \
    "add counter board\r\n"                                                   \
    "add column board bid primarykey\r\n"                                     \
    "add column board notice members=exact member=40\r\n"                     \
    "add counter author cold=never\r\n"                                       \
    "add column author aid primarykey\r\n"                                    \
    "add column author posts suffix=p\r\n"                                    \
    "add counter user\r\n"                                                    \
    "add column user uid primarykey\r\n"                                      \
    "add column user at\r\n"                                                  \
    "add column user seen marks=at unread=new flags=2\r\n"                    \
    "add column user as marks=1.p unread=an unmarked=none forget=9\r\n"       \
    "add column user inbox members=exact counts=at suffix=in\r\n"             \
    "add column user iseen marks=inbox unread=uni flags=4\r\n"                \
    "add column user nseen marks=1.notice unread=unn unmarked=none\r\n"       \
    "add column user feed follows=posts suffix=f flags=6\r\n"

#define FUZZ_KINDS_LOOK                                                       \
    "get user 0 1 7\r\nget 7.new 7.an 1.new 1.as\r\n"                         \
    "get post 0 1 1.liked:7\r\nget 1.likes 1.liked:7 1.liked:8 1.sc:5\r\n"    \
    "get 7.at 7.uni 7.unn 7.iseen 7.nseen 7.in:1 7.in:5 1.notice:9\r\n"       \
    "get 7.f 7.f:3 8.f 3.p\r\n"

/* Counters of several kinds, and a look at them and at some items. */
static inline const struct world *
counters_world(void)
{
    static const struct world world = {
        "add counter weibo\r\n"
        "add column weibo weibo_id primarykey\r\n"
        "add column weibo comment_num hint=16 max=32 suffix=cntcm\r\n"
        "add column weibo repost_num hint=2 max=8 default=5 flags=4 "
        "suffix=cntrn\r\n"
        "add counter opt absent=miss overflow=error exptime=ignore "
        "cold=quietest cold_after=9\r\n"
        "add column opt opt_id primarykey\r\n"
        "add column opt a max=64\r\n"
        "add counter bare\r\n" FUZZ_KINDS,
        "get weibo 0 1 2 1234\r\nget 1.opt 1.a 1234.a a b c\r\n" FUZZ_KINDS_LOOK
        "show counters\r\n",
        NULL, NULL};
    return &world;
}

/* How one conversation is held. */
struct manner {
    uint64_t random; /* also which calls are parked */
    unsigned n_cuts; /* pieces - 1 */
    size_t mark;
    unsigned budget;
    bool parks;
};

/* splitmix64 (Steele, Lea, Flood, 2014). */
static inline uint64_t
next_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* FNV-1a (Fowler, Noll, Vo). */
static inline uint64_t
hash_of(const uint8_t *bytes, size_t len)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < len; i++) {
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    }
    return hash;
}

static inline struct manner
manner_of(uint64_t hash)
{
    static const size_t marks[] = {1, 30, 200, DIALOG_MARK};
    struct manner manner = {.random = hash};
    uint64_t r = next_random(&manner.random);
    manner.n_cuts = 1 + r % CUTS_MAX;
    manner.mark = marks[(r >> 8) % 4];
    manner.budget = 1 + (r >> 16) % 5;
    manner.parks = (r >> 24) % 2 == 0;
    return manner;
}

/* What is said on a session of its own, whole; the replies are added. */
static inline void
say_whole(struct store *store, const char *said, struct buf *replies)
{
    struct dialog dialog;
    dialog_open(&dialog, store, VALUE_MAX);
    dialog_say(&dialog, said, strlen(said));
    buf_add(replies, dialog.replies.data, dialog.replies.len);
    dialog_close(&dialog);
}

/* The input in pieces; the replies are added. */
static inline void
say_cut(const struct world *world, struct store *store,
    const struct manner *manner, const uint8_t *bytes, size_t len,
    struct buf *replies)
{
    struct dialog dialog;
    uint64_t random = manner->random;
    size_t at = 0;
    dialog_open(&dialog, store, VALUE_MAX);
    if (world->users != NULL) {
        dialog_guard(&dialog, world->users);
    }
    if (world->login != NULL) {
        dialog_say(&dialog, world->login, strlen(world->login));
    }
    dialog.mark = manner->mark;
    dialog.budget = manner->budget;
    for (unsigned left = manner->n_cuts + 1; left > 0; left--) {
        size_t end = len;
        if (left > 1) {
            end = at + (size_t)(next_random(&random) % (len - at + 1));
        }
        if (!dialog.is_closed) {
            dialog_say(&dialog, bytes + at, end - at);
        }
        at = end;
    }
    buf_add(replies, dialog.replies.data, dialog.replies.len);
    dialog_close(&dialog);
}

/* A whole conversation with a fresh store. */
static inline void
hold(const struct world *world, const struct manner *manner,
    const uint8_t *bytes, size_t len, struct buf *replies)
{
    struct store *inner = small_store(NULL);
    struct store *store = inner;
    say_whole(inner, world->before, replies);
    if (manner->parks) {
        int err = park_create(inner, manner->random, &store);
        ASSERT(err == 0);
    }
    say_cut(world, store, manner, bytes, len, replies);
    if (manner->parks) {
        park_destroy(&store);
    }
    say_whole(inner, world->after, replies);
    ASSERT(!replies->failed);
    store_verify(inner);
    store_destroy(&inner);
}

/* Both conversations; false where a clock's second has passed meanwhile, so
 * that what expires need not be the same. */
static inline bool
compare(const struct world *world, const uint8_t *bytes, size_t len)
{
    const struct manner plain = {.mark = DIALOG_MARK, .budget = DIALOG_BUDGET};
    const struct manner manner = manner_of(hash_of(bytes, len));
    struct buf whole = {0};
    struct buf cut = {0};
    uint64_t now_s = clock_monotonic_s();
    int64_t unix_now_s = clock_unix_s();
    hold(world, &plain, bytes, len, &whole);
    hold(world, &manner, bytes, len, &cut);
    bool in_time =
        now_s == clock_monotonic_s() && unix_now_s == clock_unix_s();
    if (in_time) {
        ASSERT(whole.len == cut.len);
        ASSERT(memcmp(whole.data, cut.data, whole.len) == 0);
    }
    buf_fini(&whole);
    buf_fini(&cut);
    return in_time;
}

static inline void
fuzz_session(const struct world *world, const uint8_t *bytes, size_t len)
{
    enum { TRIES = 3 };
    for (int i = 0; i < TRIES && !compare(world, bytes, len); i++) {
    }
}

#endif
