/* SPDX-License-Identifier: BSD-3-Clause */
/* session/exec_owner: ids of another server are refused, or are misses,
 * whatever asks for them; wherever the bytes are cut, however small a turn is,
 * and whether the store answers at once. The rule may change between two
 * turns. */
#include "lib/park.h"
#include "session/exec.h"
#include "unit/net_help.h"

#include <stdio.h>
#include <string.h>

#define NO                                                                    \
    "CLIENT_ERROR the id is another server's by the rule of --owns "          \
    "(modulo:1/2)\r\n"

#define HANDOVER "handover modulo:0/2 to b.example:11211"
#define AWAY "SERVER_ERROR moved b.example:11211\r\n"

/* Odd ids are ours. */
static const char rule[] = "modulo:1/2";

static struct logger quiet; /* see main */

static const struct exchange refusals[] = {
    {"incr 1.cntcm 3", "3\r\n"},
    {"incr 2.cntcm 3", NO},
    {"incr 1.cntcm 3\r\nincr 1.cntcm 1\r\nincr 2.cntcm 3\r\nincr 1.cntcm 1",
        "6\r\n7\r\n" NO "8\r\n"},
    {"incr 2.cntcm 3 noreply\r\nmn", "MN\r\n"},
    {"get 1.cntcm\r\nget 2.cntcm\r\nget 1.cntcm 2.cntcm\r\nget 1.cntcm",
        "VALUE 1.cntcm 0 1\r\n8\r\nEND\r\n" NO NO
        "VALUE 1.cntcm 0 1\r\n8\r\nEND\r\n"},
    {"mg 1.cntcm v\r\nmg 2.cntcm v\r\nmg 2.cntcm v q\r\nmg 1.cntcm k",
        "VA 1\r\n8\r\n" NO NO "HD k1.cntcm\r\n"},
    {"get 1.weibo 2.weibo", NO},
    {"get weibo 1 2.cntcm", NO},
    {"get weibo 1", "VALUE 1 0 5\r\n8 0 0\r\nEND\r\n"},
    {"gat 0 1.cntcm 2.cntcm", NO},
    {"touch 2.cntcm 0", NO},
    {"set 2.cntcm 0 0 1\r\n5", NO},
    {"set 2.weibo 0 0 5\r\n1 2 3", NO},
    {"set weibo 2 1 2 3 4",
        "CLIENT_ERROR this is a counter: send its id and "
        "one value a column\r\n"},
    {"set weibo 2 cntcm=1", NO},
    {"delete weibo 2", NO},
    {"delete 2.cntcm", NO},
    {"ms 2.cntcm 1\r\n5", NO},
    {"set item 0 0 1\r\n5", "STORED\r\n"},
    {"get item 2.cntcm", NO},
    {"get item", "VALUE item 0 1\r\n5\r\nEND\r\n"},
    {"incr item 1", "6\r\n"},
};

/* Of ids that were handed over; one of items and cells of its own. */
static const struct exchange handovers[] = {
    {"incr 1.cntcm 3", "3\r\n"},
    {"incr 2.cntcm 3", AWAY},
    {"incr 1.cntcm 3\r\nincr 1.cntcm 1\r\nincr 2.cntcm 3\r\nincr 1.cntcm 1",
        "6\r\n7\r\n" AWAY "8\r\n"},
    {"get 1.cntcm\r\nget 2.cntcm\r\nget 1.cntcm 2.cntcm\r\nget 1.cntcm",
        "VALUE 1.cntcm 0 1\r\n8\r\nEND\r\n" AWAY AWAY
        "VALUE 1.cntcm 0 1\r\n8\r\nEND\r\n"},
    {"mg 1.cntcm v\r\nmg 2.cntcm v\r\nmg 2.cntcm v q\r\nmg 1.cntcm k",
        "VA 1\r\n8\r\n" AWAY AWAY "HD k1.cntcm\r\n"},
    {"get 1.weibo 2.weibo", AWAY},
    {"get weibo 1 2.cntcm", AWAY},
    {"get weibo 1", "VALUE 1 0 5\r\n8 0 0\r\nEND\r\n"},
    {"gat 0 1.cntcm 2.cntcm", AWAY},
    {"touch 2.cntcm 0", AWAY},
    {"set 2.cntcm 0 0 1\r\n5", AWAY},
    {"set 2.weibo 0 0 5\r\n1 2 3", AWAY},
    {"set weibo 2 1 2 3 4",
        "CLIENT_ERROR this is a counter: send its id and "
        "one value a column\r\n"},
    {"set weibo 2 cntcm=1", AWAY},
    {"delete weibo 2", AWAY},
    {"delete 2.cntcm", AWAY},
    {"ms 2.cntcm 1\r\n5", AWAY},
    {"set item 0 0 1\r\n5", "STORED\r\n"},
    {"get item 2.cntcm", AWAY},
    {"get item", "VALUE item 0 1\r\n5\r\nEND\r\n"},
    {"incr item 1", "6\r\n"},
};

static const struct exchange misses[] = {
    {"incr 1.cntcm 3\r\nincr 2.cntcm 3\r\nincr 1.cntcm 1",
        "3\r\nNOT_FOUND\r\n4\r\n"},
    {"incr 2.cntcm 3 noreply\r\nmn", "MN\r\n"},
    {"get 1.cntcm\r\nget 2.cntcm\r\nget 2.cntcm 1.cntcm",
        "VALUE 1.cntcm 0 1\r\n4\r\nEND\r\nEND\r\n"
        "VALUE 1.cntcm 0 1\r\n4\r\nEND\r\n"},
    {"mg 1.cntcm v\r\nmg 2.cntcm v\r\nmg 2.cntcm v q\r\nmn",
        "VA 1\r\n4\r\nEN\r\nMN\r\n"},
    {"get 2.weibo 1.weibo", "VALUE 1.weibo 0 5\r\n4 0 0\r\nEND\r\n"},
    {"get weibo 2 1", "VALUE 1 0 5\r\n4 0 0\r\nEND\r\n"},
    {"touch 2.cntcm 0", "NOT_FOUND\r\n"},
    {"set 2.cntcm 0 0 1\r\n5", NO},
    {"add 2.cntcm 0 0 1\r\n5", NO},
    {"replace 2.cntcm 0 0 1\r\n5", "NOT_STORED\r\n"},
    {"cas 2.cntcm 0 0 1 1\r\n5", "NOT_FOUND\r\n"},
    {"delete 2.cntcm", "NOT_FOUND\r\n"},
    {"set weibo 2 cntcm=1", NO},
    {"decr weibo 2.cntcm 1", "NOT_FOUND\r\n"},
};

/* A rule, and a dialog that is under it. */
struct rig {
    struct owner owner;
    struct owns *owns; /* owned; the owner's at first */
    struct dialog dialog;
};

/* store: NULL, or the caller's. */
static void
open_rig(struct rig *rig, struct store *store)
{
    struct buf why = {0};
    *rig = (struct rig){.owner = {.logger = &quiet}};
    ck_assert_int_eq(owns_create(rule, strlen(rule), &rig->owns, &why), 0);
    buf_fini(&why);
    atomic_init(&rig->owner.owns, rig->owns);
    if (store == NULL) {
        open_new(&rig->dialog);
    } else {
        dialog_open(&rig->dialog, store, SMALL_STORE_ITEM_BYTES);
    }
    declare(&rig->dialog);
    rig->dialog.executor.owner = &rig->owner;
}

/* Of its own store. */
static void
close_rig(struct rig *rig)
{
    close_new(&rig->dialog);
    owns_destroy(&rig->owns);
}

/* How a conversation is held. */
struct manner {
    bool misses;
    bool moves;         /* no rule: the ids were handed over */
    uint64_t park_seed; /* 0: the store answers at once */
    size_t mark, cut;
    unsigned budget;
};

/* All exchanges in two pieces: the replies are all there, in order. */
static void
hold(const struct manner *manner, const struct exchange *exchanges, size_t n)
{
    struct buf said = {0};
    struct buf answers = {0};
    struct store *inner = small_store(NULL);
    struct store *store = inner;
    struct rig rig;
    if (manner->park_seed != 0) {
        ck_assert_int_eq(park_create(inner, manner->park_seed, &store), 0);
    }
    open_rig(&rig, store);
    rig.owner.misses = manner->misses;
    if (manner->moves) {
        rig.dialog.executor.owner = NULL;
        exchange(&rig.dialog, HANDOVER, "OK\r\n");
    }
    rig.dialog.mark = manner->mark;
    rig.dialog.budget = manner->budget;
    join(exchanges, n, &said, &answers);
    buf_add(&answers, "", 1);
    size_t cut = manner->cut < said.len ? manner->cut : said.len;
    dialog_say(&rig.dialog, said.data, cut);
    dialog_say(&rig.dialog, said.data + cut, said.len - cut);
    expect_replies(&rig.dialog, "all of it", answers.data);
    dialog_close(&rig.dialog);
    if (manner->park_seed != 0) {
        park_destroy(&store);
    }
    store_verify(inner);
    store_destroy(&inner);
    owns_destroy(&rig.owns);
    buf_fini(&said);
    buf_fini(&answers);
}

static void
hold_either(const struct manner *manner)
{
    if (manner->moves) {
        hold(manner, handovers, COUNT_OF(handovers));
    } else if (manner->misses) {
        hold(manner, misses, COUNT_OF(misses));
    } else {
        hold(manner, refusals, COUNT_OF(refusals));
    }
}

START_TEST(test_every_cut)
{
    enum { BYTES_MAX = 900 };
    for (size_t cut = 0; cut < BYTES_MAX; cut += sweep_stride()) {
        hold_either(&(struct manner){
            .mark = DIALOG_MARK, .cut = cut, .budget = DIALOG_BUDGET});
        hold_either(&(struct manner){.misses = true,
            .mark = DIALOG_MARK,
            .cut = cut,
            .budget = DIALOG_BUDGET});
        hold_either(&(struct manner){.moves = true,
            .mark = DIALOG_MARK,
            .cut = cut,
            .budget = DIALOG_BUDGET});
    }
}
END_TEST

START_TEST(test_small_turns)
{
    static const size_t marks[] = {1, 20, 100, DIALOG_MARK};
    for (size_t m = 0; m < COUNT_OF(marks); m++) {
        for (unsigned budget = 1; budget < 6; budget++) {
            for (uint64_t seed = 0; seed < 6; seed++) {
                struct manner manner = {.park_seed = seed,
                    .mark = marks[m],
                    .cut = 100 * seed,
                    .budget = budget};
                hold_either(&manner);
                manner.misses = true;
                hold_either(&manner);
                manner.moves = true;
                hold_either(&manner);
            }
        }
    }
}
END_TEST

/* A get of several slices that began under a rule ends whole under the next. */
START_TEST(test_change)
{
    enum { KEYS = 1000 };
    struct buf why = {0};
    struct buf said = {0};
    struct owns *others = NULL;
    struct rig rig;
    ck_assert_int_eq(owns_create("modulo:0/2", 10, &others, &why), 0);
    open_rig(&rig, NULL);
    rig.dialog.mark = 100; /* so that many turns are needed */
    buf_add_text(&said, "get");
    for (unsigned i = 0; i < KEYS; i++) {
        buf_addf(&said, " %u.cntcm", 2 * i + 1);
    }
    buf_add_text(&said, "\r\n");
    dialog_add(&rig.dialog, said.data, said.len);
    for (unsigned i = 0; i < 20; i++) {
        ck_assert_int_eq(dialog_step(&rig.dialog), SESSION_FULL);
    }
    ck_assert_ptr_eq(owner_exchange(&rig.owner, others), rig.owns);
    dialog_say(&rig.dialog, "mn\r\n", 4);
    char *at = rig.dialog.replies.data;
    for (unsigned i = 0; i < KEYS; i++) {
        char line[64];
        snprintf(line, sizeof line, "VALUE %u.cntcm 0 1\r\n0\r\n", 2 * i + 1);
        ck_assert_int_eq(strncmp(at, line, strlen(line)), 0);
        at += strlen(line);
    }
    ck_assert_int_eq(strncmp(at, "END\r\nMN\r\n", 9), 0);
    close_rig(&rig);
    owns_destroy(&others);
    buf_fini(&said);
    buf_fini(&why);
}
END_TEST

/* One key among many, in whatever slice, and nothing is answered. */
START_TEST(test_many)
{
    enum { KEYS = 1500 };
    static const unsigned places[] = {0, 1, 126, 127, 128, 129, 255, 256, 1023,
        1024, 1025, 1150, 1151, 1152, 1153, KEYS - 1};
    struct rig rig;
    open_rig(&rig, NULL);
    for (size_t i = 0; i < COUNT_OF(places); i++) {
        struct buf said = {0};
        buf_add_text(&said, "get");
        for (unsigned k = 0; k < KEYS; k++) {
            buf_addf(&said, " %u.cntcm", 2 * k + (k != places[i]));
        }
        buf_add(&said, "", 1);
        exchange(&rig.dialog, said.data, NO);
        buf_fini(&said);
    }
    ck_assert_uint_eq(
        metric_of(rig.dialog.metrics, METRIC_not_owned), COUNT_OF(places));
    close_rig(&rig);
}
END_TEST

START_TEST(test_counts)
{
    struct rig rig;
    struct dialog *dialog = &rig.dialog;
    open_rig(&rig, NULL);
    exchange(dialog, "get 2.cntcm 4.cntcm\r\nincr 2.cntcm 1\r\nget 1.cntcm",
        NO NO "VALUE 1.cntcm 0 1\r\n0\r\nEND\r\n");
    exchange(dialog, "incr 2.cntcm 1 noreply", "");
    ck_assert_uint_eq(metric_of(dialog->metrics, METRIC_not_owned), 3);
    ck_assert_uint_eq(metric_of(dialog->metrics, METRIC_noreply_refused), 1);
    rig.owner.misses = true;
    exchange(dialog, "get 2.cntcm 4.cntcm", "END\r\n");
    exchange(dialog, "incr 2.cntcm 1", "NOT_FOUND\r\n");
    ck_assert_uint_eq(metric_of(dialog->metrics, METRIC_not_owned), 6);
    ck_assert_uint_eq(metric_of(dialog->metrics, METRIC_cell_changes), 0);
    close_rig(&rig);
}
END_TEST

static const struct exchange marks[] = {
    {"add column weibo seen marks=comment_num unread=unseen", "STORED\r\n"},
    {"add column weibo far marks=1.repost_num unread=unfar", "STORED\r\n"},
    {"set weibo 1 cntcm=5 cntrn=7", "STORED\r\n"},
    {"get 1.unseen 1.unfar 3.unfar",
        "VALUE 1.unseen 0 1\r\n5\r\nVALUE 1.unfar 0 1\r\n7\r\n"
        "VALUE 3.unfar 0 1\r\n7\r\nEND\r\n"},
    {"set 3.far 0 0 1\r\n4\r\nset 2.seen 0 0 1\r\n4", "STORED\r\n" NO},
};

static const struct exchange refused_marks[] = {
    {"get 1.unseen\r\nget 2.unfar 1.unfar\r\nmg 2.unseen v\r\nmg 1.unfar v",
        "VALUE 1.unseen 0 1\r\n5\r\nEND\r\n" NO NO "VA 1\r\n7\r\n"},
    {"delete 2.unfar", NO},
    {"incr 2.far 1", NO},
    {"ms 2.seen 1\r\n5", NO},
};

static const struct exchange missed_marks[] = {
    {"get 2.unfar 1.unfar 2.seen\r\nmg 2.unseen v",
        "VALUE 1.unfar 0 1\r\n7\r\nEND\r\nEN\r\n"},
    {"delete 2.unfar", "NOT_FOUND\r\n"},
    {"delete 2.far", "NOT_FOUND\r\n"},
    {"incr 2.far 1", "NOT_FOUND\r\n"},
    {"cas 2.far 0 0 1 1\r\n5", "NOT_FOUND\r\n"},
    {"replace 2.far 0 0 1\r\n5", "NOT_STORED\r\n"},
    {"add 2.far 0 0 1\r\n5", NO},
};

START_TEST(test_marks)
{
    struct rig rig;
    open_rig(&rig, NULL);
    PLAY(&rig.dialog, marks);
    PLAY(&rig.dialog, refused_marks);
    rig.owner.misses = true;
    PLAY(&rig.dialog, missed_marks);
    close_rig(&rig);
}
END_TEST

/* Which ids went where; a rule beside it; one that feeds; and what stays
 * unsaid ends the connection. */
static const struct exchange rules[] = {
    {"handover modulo:3/4 to c:1\r\nhandover modulo:2/8 to d:1",
        "OK\r\nOK\r\n"},
    {"incr 2.cntcm 1", "SERVER_ERROR moved d:1\r\n"},
    {"incr 3.cntcm 1", "SERVER_ERROR moved c:1\r\n"},
    {"incr 4.cntcm 1", NO},
    {"incr 5.cntcm 1", "1\r\n"},
    {"get 5.cntcm 3.cntcm\r\nget 3.cntcm\r\nget 2.cntcm 3.cntcm",
        "SERVER_ERROR moved c:1\r\nSERVER_ERROR moved c:1\r\n"
        "SERVER_ERROR moved d:1\r\n"},
    {"show handovers",
        "HANDOVER modulo:3/4 c:1\r\nHANDOVER modulo:2/8 d:1\r\nEND\r\n"},
    {"feed on\r\nincr 2.cntcm 4\r\nincr 3.cntcm 5\r\nincr 4.cntcm 6",
        "OK\r\n4\r\n5\r\n6\r\n"},
    {"get 2.cntcm 3.cntcm 4.cntcm\r\nfeed off\r\nget 2.cntcm",
        "VALUE 2.cntcm 0 1\r\n4\r\nVALUE 3.cntcm 0 1\r\n5\r\n"
        "VALUE 4.cntcm 0 1\r\n6\r\nEND\r\nOK\r\nSERVER_ERROR moved d:1\r\n"},
    {"handover modulo:2/8 here\r\nget 2.cntcm", "OK\r\n" NO},
    {"handover modulo:2/8 here\r\nhandover ketama:0/2 to a:1\r\n"
     "handover modulo:0/2 to a",
        "OK\r\nCLIENT_ERROR a rule is HASH:I/N or modulo:I/N: ids of server "
        "I, from 0, of N\r\n"
        "CLIENT_ERROR an address is HOST:PORT, with a port from 1 to "
        "65535\r\n"},
};

START_TEST(test_handovers)
{
    struct rig rig;
    open_rig(&rig, NULL);
    PLAY(&rig.dialog, rules);
    ck_assert_uint_eq(metric_of(rig.dialog.metrics, METRIC_moved_refused), 6);
    rig.owner.misses = true;
    exchange(&rig.dialog, "get 4.cntcm 5.cntcm\r\nget 4.cntcm 3.cntcm",
        "VALUE 5.cntcm 0 1\r\n1\r\nEND\r\nSERVER_ERROR moved c:1\r\n");
    close_rig(&rig);
}
END_TEST

/* A mark about a number of an id that went, and a list of such ids. */
static const struct exchange moved_marks[] = {
    {"add column weibo seen marks=comment_num unread=unseen", "STORED\r\n"},
    {"add column weibo far marks=1.repost_num unread=unfar", "STORED\r\n"},
    {"set weibo 1 cntcm=5 cntrn=7", "STORED\r\n"},
    {"handover modulo:1/2 to c:1", "OK\r\n"},
    {"get 1.unseen\r\nmg 1.unfar v\r\nset 1.seen 0 0 1\r\n4",
        "SERVER_ERROR moved c:1\r\nSERVER_ERROR moved c:1\r\n"
        "SERVER_ERROR moved c:1\r\n"},
    {"set 2.far 0 0 1\r\n4\r\ndelete 2.unfar",
        "SERVER_ERROR moved c:1\r\nSERVER_ERROR moved c:1\r\n"},
    {"get 2.unfar 2.unseen", "VALUE 2.unseen 0 1\r\n0\r\nEND\r\n"},
};

START_TEST(test_moved_marks)
{
    struct rig rig;
    open_rig(&rig, NULL);
    rig.dialog.executor.owner = NULL;
    PLAY(&rig.dialog, moved_marks);
    close_rig(&rig);
}
END_TEST

/* The id of a mark goes while its source is being read: no change is made. */
static bool
hand_over_meanwhile(uint64_t seed)
{
    struct store *inner = small_store(NULL);
    struct store *store;
    struct dialog other;
    struct rig rig;
    ck_assert_int_eq(park_create(inner, seed, &store), 0);
    open_rig(&rig, store);
    rig.dialog.executor.owner = NULL;
    dialog_open(&other, inner, SMALL_STORE_ITEM_BYTES);
    for (size_t i = 0; i < 3; i++) {
        exchange(&rig.dialog, marks[i].said, marks[i].answer);
    }
    dialog_add(&rig.dialog, "set 2.far 0 0 1\r\n4\r\n", 20);
    bool waits = dialog_step(&rig.dialog) == SESSION_PARKED;
    bool is_parked = waits && rig.dialog.session.job->stage == JOB_SOURCES;
    if (is_parked) {
        exchange(&other, HANDOVER, "OK\r\n");
    }
    if (waits) {
        dialog_wait(&rig.dialog);
    }
    dialog_say(&rig.dialog, "", 0);
    expect_replies(&rig.dialog, "the mark", is_parked ? AWAY : "STORED\r\n");
    exchange(&other, "feed on\r\nget 2.far",
        is_parked ? "OK\r\nVALUE 2.far 0 1\r\n0\r\nEND\r\n"
                  : "OK\r\nVALUE 2.far 0 1\r\n4\r\nEND\r\n");
    dialog_close(&other);
    dialog_close(&rig.dialog);
    park_destroy(&store);
    store_destroy(&inner);
    owns_destroy(&rig.owns);
    return is_parked;
}

START_TEST(test_moved_meanwhile)
{
    unsigned n = 0;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        n += hand_over_meanwhile(seed);
    }
    ck_assert_uint_gt(n, 0);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_every_cut, test_small_turns,
        test_change, test_many, test_counts, test_marks, test_handovers,
        test_moved_marks, test_moved_meanwhile};
    if (log_open(&quiet, "/dev/null") != 0) {
        return 1;
    }
    return run_tests("owner", tests, COUNT_OF(tests));
}
