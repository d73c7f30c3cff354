/* SPDX-License-Identifier: BSD-3-Clause */
/* repl/role: schedules written by hand. Of each rule that chance seldom shows
 * (t/unit/check_role_random.c) one has to come out wrong without it. */
#include "repl/role.h"

#include "repl/role_rules.h"
#include "unit/check_help.h"
#include "unit/role_found.h"
#include "wal/seq.h"

enum { ORDERS = 32, TTL_US = 3000000, LAG_US = 1500000 };

static const struct role_config config = {.self = 0,
    .copies = 1,
    .least = 1,
    .ttl_us = TTL_US,
    .lag_us = LAG_US,
    .priority = 100,
    .random = 1};
static const struct role_config lonely = {
    .self = 0, .ttl_us = TTL_US, .lag_us = LAG_US, .priority = 100};

static uint64_t rules_out, now_us;
static struct role role;
static struct role_look etcd;
static struct role_order orders[ORDERS];
static unsigned n_orders;

int
role_rule_holds(enum role_rule rule)
{
    return (rules_out >> rule & 1) == 0;
}

/* All that is ordered at this moment. */
static void
turn(void)
{
    n_orders = 0;
    do {
        ck_assert_uint_lt(n_orders, ORDERS);
        role_next(&role, now_us, &orders[n_orders]);
    } while (orders[n_orders++].what != ROLE_DO_WAIT);
    if (rules_out == 0) {
        role_verify(&role);
    }
}

/* The first of that kind; NULL: none was ordered. */
static const struct role_order *
ordered(enum role_what what)
{
    for (unsigned i = 0; i < n_orders; i++) {
        if (orders[i].what == what) {
            return &orders[i];
        }
    }
    return NULL;
}

static void
start(const struct role_config *of, uint64_t promised, bool is_doubtful)
{
    now_us = 1000;
    role_init(&role, of, promised, is_doubtful, now_us);
    role_set_may_lead(&role, true);
    etcd = (struct role_look){.revision = 10,
        .holder = ROLE_NOBODY,
        .term = promised,
        .term_rev = 3,
        .voters = {7, 2},
        .voters_rev = 4,
        .ordered = ROLE_NOBODY,
        .nodes = 7};
}

static void
look(void)
{
    etcd.revision++;
    role_looked(&role, &etcd, now_us);
    turn();
}

static void
pass(uint64_t us)
{
    now_us += us;
    turn();
}

static void
follow(unsigned node, uint64_t term)
{
    etcd.holder = node;
    etcd.term = etcd.key_term = term;
    etcd.key_rev = ++etcd.revision;
    look();
    role_promised(&role, term, now_us);
    turn();
    ck_assert(ordered(ROLE_DO_FOLLOW) != NULL);
}

/* Up to where etcd is asked for a term. */
static void
ask(void)
{
    look();
    pass(ROLE_DELAY_US + ROLE_LATER_US);
    if (role.state == ROLE_ASKING) {
        role_told(&role, 1, false, now_us);
        turn();
    }
}

/* The same by force: all others answer, and hear nobody. */
static void
ask_by_force(void)
{
    look();
    ck_assert(role_force(&role, now_us));
    turn();
    role_told(&role, 1, false, now_us);
    role_told(&role, 2, false, now_us);
    turn();
}

/* etcd gives it. */
static void
take(uint64_t term)
{
    ck_assert(ordered(ROLE_DO_TAKE) != NULL);
    etcd.holder = 0;
    etcd.term = etcd.key_term = term;
    etcd.key_rev = etcd.term_rev = ++etcd.revision;
    role_took(&role, ROLE_YES, &etcd, now_us);
    role_set_lease(&role, now_us + TTL_US);
    turn();
}

static void
gather(uint64_t term)
{
    ask();
    take(term);
}

static void
lead(uint64_t term)
{
    gather(term);
    role_promised(&role, term, now_us);
    turn();
    role_answered(&role, 1, term, 0, false, now_us);
    pass(role.config->copies == 0 ? ROLE_ALL_US : 0);
    ck_assert(ordered(ROLE_DO_BEGIN) != NULL);
    role_set_log(&role, seq_first(term), role.position);
    role_began(&role, term, seq_first(term), now_us);
    turn();
    ck_assert_int_eq(role.state, ROLE_PRIMARY);
}

static void
ack(unsigned node, uint64_t seq)
{
    role_acked(&role, node, role.term, seq, false, true, now_us);
}

/* What it leads with is written; another node has it, too, until it is to be a
 * voter. */
static void
grow(void)
{
    role_set_log(&role, seq_first(2), seq_first(2));
    role_linked(&role, 1, now_us);
    for (int i = 0; i < 20; i++) {
        ack(1, seq_first(2));
        pass(100000);
        if (ordered(ROLE_DO_SET) != NULL) {
            break;
        }
    }
}

/* ---- one for each rule: false, it comes out wrong ---- */

static bool
first_of_term(void)
{
    start(&config, 1, false);
    role_set_log(&role, seq_make(1, 5), seq_make(1, 5));
    lead(2); /* of which nothing is synced */
    role_linked(&role, 1, now_us);
    ack(1, seq_make(1, 5));
    return role_committed(&role, now_us) == 0;
}

/* One voter has gone, and the other one has nothing yet of what this node got
 * for its term. */
static bool
former_terms(void)
{
    start(&config, 1, false);
    role_set_log(&role, seq_make(1, 5), seq_make(1, 5));
    lead(2);
    role_set_log(&role, seq_first(2), seq_first(2));
    role_linked(&role, 2, now_us);
    for (int i = 0; i < 20; i++) {
        ack(2, seq_make(1, 1));
        pass(100000);
        if (ordered(ROLE_DO_SET) != NULL) {
            return false;
        }
    }
    ack(2, seq_first(2));
    turn();
    return ordered(ROLE_DO_SET) != NULL;
}

static bool
promise_once(void)
{
    start(&config, 5, false);
    role_asked(&role, 1, 3, false, now_us);
    turn();
    return ordered(ROLE_DO_REFUSE) != NULL && ordered(ROLE_DO_ANSWER) == NULL;
}

static bool
promise_durable(void)
{
    start(&config, 1, false);
    role_asked(&role, 1, 3, false, now_us);
    turn();
    if (ordered(ROLE_DO_PROMISE) == NULL || ordered(ROLE_DO_ANSWER) != NULL) {
        return false;
    }
    role_promised(&role, 3, now_us);
    turn();
    return ordered(ROLE_DO_ANSWER) != NULL;
}

static bool
promise_parts(void)
{
    start(&config, 1, false);
    follow(1, 2);
    role_asked(&role, 2, 3, false, now_us);
    turn();
    return orders[0].what == ROLE_DO_FOLLOW && orders[0].node == ROLE_NOBODY;
}

static bool
primary_resigns(void)
{
    start(&config, 1, false);
    lead(2);
    role_asked(&role, 1, 3, false, now_us);
    turn();
    return orders[0].what == ROLE_DO_CEDE && role.state == ROLE_REPLICA;
}

/* Its promise for the later term has gone out; a late one for its own comes. */
static bool
candidate_yields(void)
{
    start(&config, 1, false);
    gather(2);
    role_promised(&role, 2, now_us);
    turn();
    role_asked(&role, 1, 3, false, now_us);
    turn();
    role_promised(&role, 3, now_us);
    turn();
    ck_assert(ordered(ROLE_DO_ANSWER) != NULL);
    role_answered(&role, 2, 2, 0, false, now_us);
    turn();
    return ordered(ROLE_DO_BEGIN) == NULL;
}

/* Between the look and the term the voters have changed. */
static bool
voters_of_term(void)
{
    start(&config, 1, false);
    etcd.voters = (struct quorum_voters){3, 2};
    ask();
    etcd.holder = 0;
    etcd.term = etcd.key_term = 2;
    etcd.key_rev = etcd.term_rev = etcd.voters_rev = ++etcd.revision;
    etcd.voters = (struct quorum_voters){7, 2};
    role_took(&role, ROLE_YES, &etcd, now_us);
    role_promised(&role, 2, now_us);
    turn();
    return ordered(ROLE_DO_ASK) != NULL && ordered(ROLE_DO_BEGIN) == NULL;
}

/* A node that is no voter has a log of a later term than the only voter's: of
 * an earlier term by force. What the voter has counts: the candidate asks for
 * it, and does not lead where the logs part. */
static bool
log_of_no_voter(void)
{
    start(&config, 3, false);
    etcd.voters = (struct quorum_voters){quorum_bit(1), 1};
    role_set_log(&role, seq_make(3, 2), seq_make(3, 2));
    gather(4);
    role_promised(&role, 4, now_us);
    turn();
    role_answered(&role, 1, 4, seq_make(2, 7), false, now_us);
    turn();
    if (ordered(ROLE_DO_FETCH) == NULL || ordered(ROLE_DO_BEGIN) != NULL) {
        return false;
    }
    ck_assert_uint_eq(ordered(ROLE_DO_FETCH)->node, 1);
    role_fetched(&role, 4, false, now_us);
    turn();
    return role.state == ROLE_REPLICA && ordered(ROLE_DO_REVOKE) != NULL;
}

/* It has what the voter has: it leads. So it does where another one that is no
 * voter, and is asked since it is by force, has more. */
static void
lead_without_vote(bool is_forced)
{
    start(&config, 3, false);
    etcd.voters = (struct quorum_voters){quorum_bit(1), 1};
    role_set_log(&role, seq_make(3, 2), seq_make(3, 2));
    if (is_forced) {
        ask_by_force();
        take(4);
    } else {
        gather(4);
    }
    role_promised(&role, 4, now_us);
    turn();
    role_answered(&role, 2, 4, seq_make(3, 8), false, now_us);
    role_answered(&role, 1, 4, seq_make(3, is_forced ? 2 : 1), false, now_us);
    turn();
    if (!is_forced) {
        ck_assert_uint_eq(ordered(ROLE_DO_FETCH)->node, 1);
        role_fetched(&role, 4, true, now_us);
        turn();
    }
    ck_assert(ordered(ROLE_DO_BEGIN) != NULL);
}

static bool
lease_alone(void)
{
    start(&lonely, 1, false);
    lead(2);
    role_set_log(&role, seq_first(2), seq_first(2));
    if (role_committed(&role, now_us) != seq_first(2)) {
        return false;
    }
    role_set_log(&role, seq_make(2, 2), seq_make(2, 2));
    return role_committed(&role, role.lease_us) == seq_first(2);
}

/* etcd has lost the key, but the replicas hear the primary. */
static bool
primary_is_heard(void)
{
    start(&config, 1, false);
    look();
    for (int i = 0; i < 30; i++) {
        role_told(&role, 1, true, now_us);
        role_told(&role, 2, true, now_us);
        pass(100000);
        if (ordered(ROLE_DO_TAKE) != NULL) {
            return false;
        }
    }
    return true;
}

static bool
without_authority(void)
{
    start(&config, 1, false);
    lead(2);
    role_set_lease(&role, 0);
    pass(TTL_US + 1);
    return role.state == ROLE_ISOLATED &&
        role.changes == ROLE_CHANGES_REFUSED &&
        !role_has_authority(&role, now_us);
}

static bool
doubt_ends(void)
{
    start(&config, 1, true);
    role_set_log(&role, seq_make(1, 5), seq_make(1, 5));
    follow(1, 2);
    role_welcomed(&role, seq_make(2, 7), now_us);
    role_set_log(&role, seq_make(2, 6), seq_make(2, 6));
    turn();
    if (ordered(ROLE_DO_SURE) != NULL || !role.is_doubtful) {
        return false;
    }
    role_set_log(&role, seq_make(2, 7), seq_make(2, 7));
    turn();
    return ordered(ROLE_DO_SURE) != NULL;
}

/* Where what is synced counts, what is only written may be lost once more. */
static bool
doubt_ends_synced(void)
{
    start(&config, 1, true);
    role_set_log(&role, seq_make(1, 5), seq_make(1, 5));
    follow(1, 2);
    role_welcomed(&role, seq_make(2, 7), now_us);
    role_set_log(&role, seq_make(2, 7), seq_make(2, 6));
    turn();
    if (ordered(ROLE_DO_SURE) != NULL) {
        return false;
    }
    role_set_log(&role, seq_make(2, 7), seq_make(2, 7));
    turn();
    return ordered(ROLE_DO_SURE) != NULL;
}

/* The same of who leads, which has fetched what others have. */
static bool
doubt_of_primary_ends_synced(void)
{
    start(&config, 1, true);
    gather(2);
    role_promised(&role, 2, now_us);
    turn();
    role_answered(&role, 1, 2, 0, false, now_us);
    role_answered(&role, 2, 2, 0, false, now_us);
    turn();
    ck_assert(ordered(ROLE_DO_BEGIN) != NULL);
    role_began(&role, 2, seq_first(2), now_us);
    role_set_log(&role, seq_first(2), 0);
    turn();
    if (ordered(ROLE_DO_SURE) != NULL || !role.is_doubtful) {
        return false;
    }
    role_set_log(&role, seq_first(2), seq_first(2));
    turn();
    return ordered(ROLE_DO_SURE) != NULL;
}

/* A change of voters that was not answered is done after all, behind a look
 * that did not show it. */
static bool
late_change(void)
{
    start(&config, 1, false);
    lead(2);
    grow();
    ck_assert_uint_eq(role.rule.next.nodes, 3);
    role_set(&role, 2, ROLE_UNKNOWN, 0, now_us);
    look();
    role_linked(&role, 2, now_us); /* nothing is to be changed any more */
    role_set_log(&role, seq_make(2, 2), seq_make(2, 2));
    turn();
    ack(2, seq_make(2, 2)); /* of the old voters enough, of the new ones not */
    return role_committed(&role, now_us) == seq_first(2);
}

/* By force, up to where all has been asked for that can be had: promises of
 * others than one voter of three are missing. */
static void
force(void)
{
    start(&config, 1, false);
    role_set_log(&role, seq_make(1, 5), seq_make(1, 5));
    look();
    ck_assert(role_force(&role, now_us));
    turn();
    ck_assert(ordered(ROLE_DO_PROBE) != NULL);
    pass(ROLE_CANDIDATE_US);
    ck_assert(ordered(ROLE_DO_TAKE) != NULL);
    etcd.holder = 0;
    etcd.term = etcd.key_term = 2;
    etcd.key_rev = etcd.term_rev = ++etcd.revision;
    role_took(&role, ROLE_YES, &etcd, now_us);
    role_set_lease(&role, now_us + 2 * TTL_US);
    role_promised(&role, 2, now_us);
    turn();
    ck_assert(ordered(ROLE_DO_ASK) != NULL);
    pass(ROLE_CANDIDATE_US);
}

/* Who leads alone is the only voter before its log begins the term. */
static bool
only_voter(void)
{
    const struct role_order *set;

    force();
    set = ordered(ROLE_DO_SET);
    return ordered(ROLE_DO_BEGIN) == NULL && set != NULL && set->is_forced &&
        set->term == 2 && set->voters_rev == 4 && set->voters.nodes == 1 &&
        set->voters.need == 2;
}

static const struct {
    enum role_rule rule;
    bool (*is_right_fn)(void);
} schedules[] = {
    {ROLE_RULE_FIRST, first_of_term},
    {ROLE_RULE_FORMER, former_terms},
    {ROLE_RULE_RETRY, late_change},
    {ROLE_RULE_BOTH, late_change},
    {ROLE_RULE_ONCE, promise_once},
    {ROLE_RULE_DURABLE, promise_durable},
    {ROLE_RULE_PARTED, promise_parts},
    {ROLE_RULE_RESIGN, primary_resigns},
    {ROLE_RULE_YIELD, candidate_yields},
    {ROLE_RULE_TAKEN_VOTERS, voters_of_term},
    {ROLE_RULE_OF_VOTERS, log_of_no_voter},
    {ROLE_RULE_DEADLINE, lease_alone},
    {ROLE_RULE_ASK_FIRST, primary_is_heard},
    {ROLE_RULE_ISOLATED, without_authority},
    {ROLE_RULE_CAUGHT_UP, doubt_ends},
    {ROLE_RULE_SURE, doubt_ends_synced},
    {ROLE_RULE_SURE, doubt_of_primary_ends_synced},
    {ROLE_RULE_ALONE, only_voter},
};

START_TEST(test_schedules)
{
    for (size_t i = 0; i < COUNT_OF(schedules); i++) {
        rules_out = 0;
        ck_assert_msg(schedules[i].is_right_fn(), "schedule %zu", i);
        rules_out = UINT64_C(1) << schedules[i].rule;
        ck_assert_msg(!schedules[i].is_right_fn(), "without: %zu", i);
    }
    rules_out = 0;
}
END_TEST

/* Each rule is missed by a schedule or by a seed. */
START_TEST(test_none_left)
{
    uint64_t rules = 0;

    for (size_t i = 0; i < COUNT_OF(schedules); i++) {
        rules |= UINT64_C(1) << schedules[i].rule;
    }
    for (size_t i = 0; i < COUNT_OF(role_found); i++) {
        rules |= UINT64_C(1) << role_found[i].rule;
    }
    ck_assert_uint_eq(rules, (UINT64_C(1) << ROLE_RULES_N) - 1);
}
END_TEST

/* ---- what is no rule of safety ---- */

/* Nobody has ever led: the first one is its own voter, and takes no changes
 * until another one votes. */
START_TEST(test_first)
{
    const struct role_order *take;

    start(&config, 0, false);
    etcd.voters = (struct quorum_voters){0, 0};
    etcd.term_rev = etcd.voters_rev = 0;
    look();
    pass(ROLE_DELAY_US + ROLE_LATER_US);
    take = ordered(ROLE_DO_TAKE);
    ck_assert_ptr_nonnull(take);
    ck_assert_uint_eq(take->voters.nodes, 1);
    ck_assert_uint_eq(take->voters.need, 2);
    ck_assert_uint_eq(take->key_rev, 0);
    ck_assert_uint_eq(take->term, 1);
    etcd.voters = take->voters;
    etcd.holder = 0;
    etcd.term = etcd.key_term = 1;
    etcd.key_rev = etcd.term_rev = etcd.voters_rev = ++etcd.revision;
    role_took(&role, ROLE_YES, &etcd, now_us);
    role_set_lease(&role, now_us + TTL_US);
    role_promised(&role, 1, now_us);
    turn();
    ck_assert(ordered(ROLE_DO_BEGIN) != NULL);
    role_set_log(&role, seq_first(1), seq_first(1));
    role_began(&role, 1, seq_first(1), now_us);
    turn();
    ck_assert_int_eq(role.changes, ROLE_CHANGES_FEW);
    ck_assert_str_eq(role_word(&role), "primary");
    role_linked(&role, 1, now_us);
    ack(1, seq_first(1));
    pass(ROLE_NEAR_US);
    ck_assert_uint_eq(ordered(ROLE_DO_SET)->voters.nodes, 3);
    ck_assert_uint_eq(role_committed(&role, now_us), 0);
    role_set(&role, 1, ROLE_YES, ++etcd.revision, now_us);
    turn();
    ck_assert_int_eq(ordered(ROLE_DO_CHANGES)->changes, ROLE_CHANGES_TAKEN);
    ck_assert_uint_eq(role_committed(&role, now_us), seq_first(1));
}
END_TEST

START_TEST(test_never)
{
    start(&config, 1, false); /* an empty directory, or another one */
    role_set_may_lead(&role, false);
    look();
    pass(10000000);
    ck_assert_int_eq(role.state, ROLE_REPLICA);
    role_set_may_lead(&role, true);
    ask();
    ck_assert(ordered(ROLE_DO_TAKE) != NULL);
    role_took(&role, ROLE_UNKNOWN, NULL, now_us);
    turn();
    ck_assert(ordered(ROLE_DO_REVOKE) != NULL);
    ck_assert(ordered(ROLE_DO_LOOK) != NULL);
    /* it was done all the same: the key has this node's name */
    etcd.holder = 0;
    etcd.term = etcd.key_term = 2;
    etcd.key_rev = etcd.term_rev = ++etcd.revision;
    look();
    pass(2 * ROLE_REST_US);
    turn();
    role_told(&role, 2, false, now_us);
    turn();
    ck_assert_uint_eq(ordered(ROLE_DO_TAKE)->key_rev, etcd.key_rev);
}
END_TEST

/* Voters are promised for, the longest log is fetched, too few give up. */
START_TEST(test_candidate)
{
    start(&config, 1, false);
    role_set_log(&role, seq_make(1, 5), seq_make(1, 5));
    gather(2);
    ck_assert(ordered(ROLE_DO_ASK) == NULL); /* its own is not durable yet */
    role_promised(&role, 2, now_us);
    turn();
    ck_assert_uint_eq(ordered(ROLE_DO_ASK)->node, 1);
    role_answered(&role, 2, 2, seq_make(1, 9), false, now_us);
    turn();
    ck_assert_uint_eq(ordered(ROLE_DO_FETCH)->node, 2);
    role_fetched(&role, 2, true, now_us); /* but it has not come */
    turn();
    ck_assert_int_eq(role.state, ROLE_REPLICA);
    ck_assert(ordered(ROLE_DO_REVOKE) != NULL);

    start(&config, 1, false);
    gather(2);
    role_promised(&role, 2, now_us);
    pass(ROLE_ASKING_US);
    ck_assert(ordered(ROLE_DO_ASK) != NULL); /* once more */
    role_answered(&role, 1, 2, 0, true, now_us);
    pass(0);
    ck_assert_int_eq(role.state, ROLE_GATHERING);
    pass(ROLE_CANDIDATE_US);
    ck_assert_int_eq(role.state, ROLE_REPLICA);
    role_began(&role, 2, seq_first(2), now_us); /* too late, as it were */
    turn();
    ck_assert_int_eq(orders[0].what, ROLE_DO_CEDE);
}
END_TEST

/* What is acknowledged in another term, or before a stream began, is not. */
START_TEST(test_streams)
{
    start(&config, 1, false);
    lead(2);
    role_set_log(&role, seq_make(2, 4), seq_make(2, 4));
    role_acked(&role, 1, 2, seq_make(2, 4), false, true, now_us);
    ck_assert_uint_eq(role_committed(&role, now_us), 0);
    role_linked(&role, 1, now_us);
    role_acked(&role, 1, 1, seq_make(2, 4), false, true, now_us);
    ck_assert_uint_eq(role_committed(&role, now_us), 0);
    ack(1, seq_make(2, 3));
    ck_assert_uint_eq(role_committed(&role, now_us), seq_make(2, 3));
    role_linked(&role, 1, now_us);
    ck_assert_uint_eq(role.peer[1].position, 0);
    ck_assert_uint_eq(role_committed(&role, now_us), seq_make(2, 3));
}
END_TEST

/* An old look shows voters of before that are the same as those asked for. */
START_TEST(test_old_look)
{
    struct role_look old;

    start(&config, 1, false);
    lead(2);
    old = etcd;
    grow();
    role_set(&role, 2, ROLE_YES, etcd.revision + 5, now_us);
    ck_assert_uint_eq(role.rule.now.nodes, 3);
    role_linked(&role, 2, now_us);
    ack(1, seq_first(2));
    ack(2, seq_first(2));
    now_us += ROLE_NEAR_US;
    ack(1, seq_first(2));
    ack(2, seq_first(2));
    turn();
    ck_assert_uint_eq(ordered(ROLE_DO_SET)->voters.nodes, 7);
    role_set(&role, 2, ROLE_UNKNOWN, 0, now_us);
    old.revision++;
    role_looked(&role, &old, now_us);
    ck_assert_uint_eq(old.voters.nodes, 7);
    ck_assert(role.rule.is_changing);
    ck_assert_uint_eq(role.rule.now.nodes, 3);
}
END_TEST

START_TEST(test_hand_over)
{
    start(&config, 1, false);
    lead(2);
    role_set_log(&role, seq_make(2, 4), seq_make(2, 4));
    ck_assert(!role_hand_over(&role, 1, now_us)); /* not connected */
    role_linked(&role, 1, now_us);
    ack(1, seq_make(2, 3));
    ck_assert(!role_hand_over(&role, 0, now_us));
    ck_assert(!role_hand_over(&role, 4, now_us));
    ck_assert(role_hand_over(&role, 1, now_us));
    turn();
    ck_assert_int_eq(ordered(ROLE_DO_CHANGES)->changes, ROLE_CHANGES_PARKED);
    ck_assert(ordered(ROLE_DO_SWITCH) == NULL);
    pass(ROLE_HANDING_US); /* it takes too long */
    ck_assert_int_eq(role.state, ROLE_PRIMARY);
    ck_assert_int_eq(ordered(ROLE_DO_CHANGES)->changes, ROLE_CHANGES_TAKEN);
    ck_assert(role_hand_over(&role, 1, now_us));
    ack(1, seq_make(2, 4));
    turn();
    ck_assert_uint_eq(ordered(ROLE_DO_SWITCH)->seq, seq_make(2, 4));
    ck_assert_uint_eq(ordered(ROLE_DO_HAND)->node, 1);
    ck_assert(ordered(ROLE_DO_CEDE) != NULL);
    ck_assert_int_eq(role.state, ROLE_REPLICA);
    follow(1, 3); /* who hands back at once: it does not rest from before */
    etcd.holder = ROLE_NOBODY;
    etcd.ordered = 0;
    look();
    ck_assert_int_eq(role.state, ROLE_ASKING);

    start(&config, 2, false); /* the heir goes first */
    etcd.ordered = 0;
    look();
    ck_assert_int_eq(role.state, ROLE_ASKING);
}
END_TEST

/* A later term comes between SWITCH and HAND: nothing of it is left for the
 * next time that this node leads. */
START_TEST(test_hand_cut)
{
    struct role_order order;

    start(&config, 1, false);
    lead(2);
    role_set_log(&role, seq_make(2, 4), seq_make(2, 4));
    role_linked(&role, 1, now_us);
    ack(1, seq_make(2, 4));
    ck_assert(role_hand_over(&role, 1, now_us));
    do {
        role_next(&role, now_us, &order);
        ck_assert_int_ne(order.what, ROLE_DO_WAIT);
    } while (order.what != ROLE_DO_SWITCH);
    role_asked(&role, 2, 5, false, now_us);
    turn();
    ck_assert_int_eq(role.state, ROLE_REPLICA);
    ck_assert(ordered(ROLE_DO_HAND) == NULL);
    role_promised(&role, 5, now_us);
    turn();

    lead(6);
    role_set_log(&role, seq_make(6, 4), seq_make(6, 4));
    role_linked(&role, 1, now_us);
    ack(1, seq_make(6, 3));
    ck_assert(role_hand_over(&role, 1, now_us));
    turn();
    ck_assert(ordered(ROLE_DO_HAND) == NULL); /* it has not all yet */
    ack(1, seq_make(6, 4));
    turn();
    ck_assert_uint_eq(ordered(ROLE_DO_SWITCH)->seq, seq_make(6, 4));
    ck_assert_uint_eq(ordered(ROLE_DO_HAND)->node, 1);
}
END_TEST

/* By force, alone: it takes no changes until another node has all and votes. */
START_TEST(test_force)
{
    force();
    role_set(&role, 2, ROLE_YES, ++etcd.revision, now_us);
    turn();
    ck_assert(ordered(ROLE_DO_BEGIN)->is_forced);
    role_set_log(&role, seq_first(2), seq_first(2));
    role_began(&role, 2, seq_first(2), now_us);
    turn();
    ck_assert_int_eq(role.state, ROLE_PRIMARY);
    ck_assert_int_eq(role.changes, ROLE_CHANGES_FEW);
    role_linked(&role, 1, now_us);
    ack(1, seq_make(1, 5));
    pass(ROLE_NEAR_US);
    ck_assert(ordered(ROLE_DO_SET) == NULL); /* it lacks something */
    ack(1, seq_first(2));
    turn();
    ck_assert_uint_eq(ordered(ROLE_DO_SET)->voters.nodes, 3);
    ck_assert(!ordered(ROLE_DO_SET)->is_forced);
    ck_assert_uint_eq(role_committed(&role, now_us), 0);
    role_set(&role, 2, ROLE_YES, ++etcd.revision, now_us);
    turn();
    ck_assert_int_eq(ordered(ROLE_DO_CHANGES)->changes, ROLE_CHANGES_TAKEN);
    ck_assert(!role_force(&role, now_us)); /* it leads */

    /* what one that answers has and this node has not is fetched */
    start(&config, 1, false);
    look();
    ck_assert(role_force(&role, now_us));
    pass(ROLE_CANDIDATE_US);
    etcd.holder = 0;
    etcd.voters.need = 1; /* all three have to promise */
    etcd.term = etcd.key_term = 2;
    etcd.key_rev = etcd.term_rev = ++etcd.revision;
    role_took(&role, ROLE_YES, &etcd, now_us);
    role_promised(&role, 2, now_us);
    role_answered(&role, 2, 2, seq_make(1, 9), false, now_us);
    turn();
    ck_assert(ordered(ROLE_DO_FETCH) == NULL);
    pass(ROLE_CANDIDATE_US);
    ck_assert_uint_eq(ordered(ROLE_DO_FETCH)->node, 2);
    role_set_log(&role, seq_make(1, 9), seq_make(1, 9));
    role_fetched(&role, 2, true, now_us);
    turn();
    ck_assert(ordered(ROLE_DO_SET)->is_forced);
    /* no answer: it is none, and nobody else is by that */
    role_set(&role, 2, ROLE_UNKNOWN, 0, now_us);
    turn();
    ck_assert_int_eq(role.state, ROLE_REPLICA);
    ck_assert(ordered(ROLE_DO_REVOKE) != NULL);
    ck_assert(!role.is_forced);
}
END_TEST

START_TEST(test_without_vote)
{
    lead_without_vote(false);
    lead_without_vote(true);
}
END_TEST

/* Where it is not done, and where it is not needed. */
START_TEST(test_force_not)
{
    start(&config, 1, false);
    ck_assert(!role_force(&role, now_us)); /* etcd was not seen */
    role_set_may_lead(&role, false);
    look();
    ck_assert(!role_force(&role, now_us));
    role_set_may_lead(&role, true);
    etcd.holder = 1;
    etcd.key_term = etcd.term;
    look();
    ck_assert(!role_force(&role, now_us)); /* another one leads */

    start(&config, 1, false); /* a voter hears one */
    look();
    ck_assert(role_force(&role, now_us));
    role_told(&role, 2, true, now_us);
    pass(ROLE_CANDIDATE_US);
    ck_assert(ordered(ROLE_DO_TAKE) == NULL);
    ck_assert_int_eq(role.state, ROLE_REPLICA);

    start(&config, 1, false); /* enough of them answer */
    look();
    ck_assert(role_force(&role, now_us));
    lead(2);
    ck_assert(!ordered(ROLE_DO_BEGIN) || !ordered(ROLE_DO_BEGIN)->is_forced);
    ck_assert_uint_eq(role.rule.now.nodes, 7);
}
END_TEST

/* The key goes while the voters hear the primary: it is put back. */
START_TEST(test_keep)
{
    start(&config, 1, false);
    lead(2);
    etcd.holder = ROLE_NOBODY;
    look();
    ck_assert_uint_eq(ordered(ROLE_DO_KEEP)->term, 2);
    turn();
    ck_assert(ordered(ROLE_DO_KEEP) == NULL);
    role_kept(&role, 2, ROLE_UNKNOWN, now_us);
    pass(ROLE_AGAIN_US);
    ck_assert(ordered(ROLE_DO_KEEP) != NULL);
    etcd.holder = 1;
    etcd.term = etcd.key_term = 3;
    look();
    ck_assert_int_eq(orders[0].what, ROLE_DO_CEDE);
    role_saw(&role, 9, now_us);
}
END_TEST

/* Who asks for promises is refused for a later term: the next one that it takes
 * is above that at once, so that whoever is ahead is not left behind. */
START_TEST(test_ahead)
{
    start(&config, 1, false);
    ask_by_force();
    ck_assert_uint_eq(ordered(ROLE_DO_TAKE)->term, 2);
    etcd.holder = 0;
    etcd.term = etcd.key_term = 2;
    role_took(&role, ROLE_YES, &etcd, now_us);
    turn();
    role_promised(&role, 2, now_us);
    role_saw(&role, 2 + ROLE_TERMS_MAX + 1, now_us); /* it cannot be */
    role_saw(&role, 9, now_us);
    turn();
    ck_assert_int_eq(role.state, ROLE_REPLICA);
    etcd.holder = ROLE_NOBODY;
    ask_by_force();
    ck_assert_uint_eq(ordered(ROLE_DO_TAKE)->term, 10);
}
END_TEST

/* Of a refusal only a look that is no older says why. */
START_TEST(test_refused)
{
    for (int is_ours = 0; is_ours < 2; is_ours++) {
        start(&config, 1, false);
        lead(2);
        grow();
        role_set(&role, 2, ROLE_UNKNOWN, 0, now_us);
        pass(ROLE_AGAIN_US);
        ck_assert_uint_eq(ordered(ROLE_DO_SET)->voters_rev, 4);
        role_set(&role, 2, ROLE_NO, etcd.revision + 5, now_us);
        look();
        ck_assert(role.rule.is_changing);
        etcd.revision += 5;
        etcd.voters_rev = 15;
        etcd.voters = (struct quorum_voters){is_ours ? 3 : 5, 2};
        look();
        ck_assert(!role.rule.is_changing);
        ck_assert_int_eq(role.state, is_ours ? ROLE_PRIMARY : ROLE_REPLICA);
    }
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_schedules, test_none_left, test_first,
        test_never, test_candidate, test_streams, test_old_look,
        test_hand_over, test_hand_cut, test_force, test_without_vote,
        test_force_not, test_keep, test_ahead, test_refused};

    return run_tests("role", tests, COUNT_OF(tests));
}
