/* SPDX-License-Identifier: BSD-3-Clause */
/* repl/roster: numbers of nodes, and what etcd says and is asked in both. */
#include "repl/roster.h"
#include "unit/control_help.h"
#include "wal/seq.h"

static struct roster roster;
static struct control_state state;
static struct role_look look;
static uint32_t fresh;

static struct node_name
nth_name(unsigned n)
{
    char text[16];
    (void)snprintf(text, sizeof text, "n%u", n);
    return name_of(text);
}

static void
begin(void)
{
    struct node_name self = name_of("self");
    roster_init(&roster, &self);
    memset(&state, 0, sizeof state);
    fresh = 0;
}

static void
add_node(const struct node_name *name, const char *repl)
{
    struct control_node *node = &state.node[state.n_nodes++];
    node->name = *name;
    (void)snprintf(node->repl.text, sizeof node->repl.text, "%s", repl);
}

/* A name keeps its number; none is fresh while there are others. */
START_TEST(test_numbers)
{
    begin();
    struct node_name self = name_of("self"), none = {0};
    ck_assert_uint_eq(roster_find(&roster, &self), ROSTER_SELF);
    ck_assert_uint_eq(roster_give(&roster, &none, &fresh), ROLE_NOBODY);
    for (unsigned i = 1; i < QUORUM_NODES; i++) {
        struct node_name name = nth_name(i);
        ck_assert_uint_eq(roster_find(&roster, &name), ROLE_NOBODY);
        ck_assert_uint_eq(roster_give(&roster, &name, &fresh), i);
        ck_assert_uint_eq(roster_give(&roster, &name, &fresh), i);
        ck_assert_uint_eq(roster_find(&roster, &name), i);
    }
    ck_assert_uint_eq(fresh, 0);
}
END_TEST

/* When all are given out, the number of one goes that nobody needs. */
START_TEST(test_given_anew)
{
    begin();
    for (unsigned i = 1; i < QUORUM_NODES; i++) {
        struct node_name name = nth_name(i);
        (void)roster_give(&roster, &name, &fresh);
    }
    struct node_name late = name_of("late");
    roster.held = UINT32_MAX;
    ck_assert_uint_eq(roster_give(&roster, &late, &fresh), ROLE_NOBODY);
    roster.held = ~quorum_bit(7);
    ck_assert_uint_eq(roster_give(&roster, &late, &fresh), 7);
    ck_assert_uint_eq(fresh, quorum_bit(7));
    struct node_name gone = nth_name(7);
    ck_assert_uint_eq(roster_find(&roster, &gone), ROLE_NOBODY);
}
END_TEST

START_TEST(test_look)
{
    begin();
    state.revision = 90;
    ck_assert(roster_look(&roster, &state, &look, &fresh));
    ck_assert_uint_eq(look.holder, ROLE_NOBODY);
    ck_assert_uint_eq(look.ordered, ROLE_NOBODY);
    ck_assert_uint_eq(look.voters.nodes, 0);
    struct node_name self = name_of("self"), b = name_of("b"),
                     c = name_of("c");
    state.term = 4;
    state.term_revision = 70;
    state.primary.revision = 71;
    state.primary.node = b;
    state.primary.term = 4;
    (void)strcpy(state.primary.repl.text, "b:2");
    state.voters = (struct control_voters){
        .revision = 80, .term = 4, .need = 2, .n = 2, .node = {self, b}};
    state.order.revision = 85;
    state.order.to = self;
    add_node(&b, "b:1");
    add_node(&c, "c:1");
    ck_assert(roster_look(&roster, &state, &look, &fresh));
    unsigned nb = roster_find(&roster, &b), nc = roster_find(&roster, &c);
    ck_assert_uint_eq(look.revision, 90);
    ck_assert_uint_eq(look.holder, nb);
    ck_assert_uint_eq(look.key_term, 4);
    ck_assert_uint_eq(look.key_rev, 71);
    ck_assert_uint_eq(look.term, 4);
    ck_assert_uint_eq(look.term_rev, 70);
    ck_assert_uint_eq(
        look.voters.nodes, quorum_bit(ROSTER_SELF) | quorum_bit(nb));
    ck_assert_uint_eq(look.voters.need, 2);
    ck_assert_uint_eq(look.voters_rev, 80);
    ck_assert_uint_eq(look.ordered, ROSTER_SELF);
    ck_assert_uint_eq(look.nodes, quorum_bit(nb) | quorum_bit(nc));
    ck_assert_str_eq(roster.repl[nb].text, "b:2"); /* as the key has it */
    ck_assert_str_eq(roster.repl[nc].text, "c:1");
    ck_assert_uint_eq(fresh, 0);
}
END_TEST

/* What cannot be is told, and nothing comes of it. */
START_TEST(test_impossible)
{
    begin();
    state.term = 3;
    state.primary.revision = 5;
    state.primary.node = name_of("b");
    state.primary.term = 4;
    ck_assert(!roster_look(&roster, &state, &look, &fresh));
    state.primary.term = 3;
    ck_assert(roster_look(&roster, &state, &look, &fresh));
    state.term = CONTROL_TERM_MAX;
    ck_assert(!roster_look(&roster, &state, &look, &fresh));
    state.term = 3;
    state.voters.revision = 6;
    ck_assert(!roster_look(&roster, &state, &look, &fresh));
}
END_TEST

/* As many nodes as there may be, and who votes and leads is none of them: these
 * have numbers first. */
START_TEST(test_all_full)
{
    begin();
    for (unsigned i = 0; i < CONTROL_NODES_MAX; i++) {
        struct node_name name = nth_name(i);
        add_node(&name, "x:1");
    }
    ck_assert(roster_look(&roster, &state, &look, &fresh));
    ck_assert_uint_eq(quorum_count(look.nodes), QUORUM_NODES - 1);
    state.term = 1;
    state.primary = (struct control_primary){
        .revision = 2, .node = name_of("leader"), .term = 1};
    state.voters.revision = 3;
    state.voters.need = 3;
    for (unsigned i = 0; i < CONTROL_VOTERS_MAX; i++) {
        struct node_name name = nth_name(100 + i);
        state.voters.node[state.voters.n++] = name;
    }
    ck_assert(roster_look(&roster, &state, &look, &fresh));
    ck_assert_uint_eq(quorum_count(look.voters.nodes), CONTROL_VOTERS_MAX);
    ck_assert_uint_ne(look.holder, ROLE_NOBODY);
    ck_assert_uint_eq(look.voters.nodes & quorum_bit(look.holder), 0);
    ck_assert_uint_eq(fresh & look.voters.nodes, look.voters.nodes);
}
END_TEST

START_TEST(test_requests)
{
    begin();
    struct node_name b = name_of("b");
    struct control_primary self = {
        .node = name_of("self"), .boot = 9, .revision = 1, .term = 1};
    unsigned nb = roster_give(&roster, &b, &fresh);
    struct role_order order = {.what = ROLE_DO_TAKE,
        .key_rev = 11,
        .term_rev = 12,
        .term = 3,
        .voters = {.nodes = quorum_bit(ROSTER_SELF), .need = 2}};
    struct control_request out;
    ck_assert(roster_request(&roster, &order, &self, 7, &out));
    ck_assert_int_eq(out.ask, CONTROL_TAKE);
    ck_assert_uint_eq(out.of.take.primary.revision, 11);
    ck_assert_uint_eq(out.of.take.primary.term, 8); /* behind what was seen */
    ck_assert_uint_eq(out.of.take.primary.boot, 9);
    ck_assert_uint_eq(out.of.take.term_revision, 12);
    ck_assert_uint_eq(out.of.take.voters.n, 1);
    ck_assert_uint_eq(out.of.take.voters.need, 2);
    order.term = 30;
    ck_assert(roster_request(&roster, &order, &self, 7, &out));
    ck_assert_uint_eq(out.of.take.primary.term, 30); /* and as the log asks */
    ck_assert(!roster_request(&roster, &order, &self, SEQ_TERM_MAX, &out));
    order.what = ROLE_DO_KEEP;
    ck_assert(roster_request(&roster, &order, &self, 30, &out));
    ck_assert_int_eq(out.ask, CONTROL_KEEP);
    ck_assert_uint_eq(out.of.keep.primary.revision, 0);
    ck_assert_uint_eq(out.of.keep.primary.term, 30);
    ck_assert_uint_eq(out.of.keep.term_revision, 12);
    order.what = ROLE_DO_SET;
    order.voters_rev = 13;
    order.voters.nodes |= quorum_bit(nb);
    ck_assert(roster_request(&roster, &order, &self, 30, &out));
    ck_assert_int_eq(out.ask, CONTROL_VOTERS);
    ck_assert_uint_eq(out.of.voters.revision, 13);
    ck_assert_uint_eq(out.of.voters.term, 30);
    ck_assert_uint_eq(out.of.voters.n, 2);
    ck_assert_mem_eq(&out.of.voters.node[1], &b, sizeof b);
    order.what = ROLE_DO_HAND;
    order.node = nb;
    ck_assert(roster_request(&roster, &order, &self, 30, &out));
    ck_assert_int_eq(out.ask, CONTROL_HAND);
    ck_assert_mem_eq(&out.of.hand.to, &b, sizeof b);
    order.what = ROLE_DO_REVOKE;
    ck_assert(roster_request(&roster, &order, &self, 30, &out));
    ck_assert_int_eq(out.ask, CONTROL_GIVE_UP);
}
END_TEST

START_TEST(test_names)
{
    begin();
    struct node_name b = name_of("b");
    uint32_t both =
        quorum_bit(ROSTER_SELF) | quorum_bit(roster_give(&roster, &b, &fresh));
    char text[16], little[6];
    roster_names(&roster, both, text, sizeof text);
    ck_assert_str_eq(text, "self,b");
    roster_names(&roster, both, little, sizeof little);
    ck_assert_str_eq(little, "self,");
    roster_names(&roster, 0, text, sizeof text);
    ck_assert_str_eq(text, "");
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_numbers, test_given_anew, test_look,
        test_impossible, test_all_full, test_requests, test_names};
    return run_tests("roster", tests, COUNT_OF(tests));
}
