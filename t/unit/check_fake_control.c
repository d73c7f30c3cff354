/* SPDX-License-Identifier: BSD-3-Clause */
/* t/lib/fake_control: it decides as etcd does, and each way in which an answer
 * can fail to come is one that the seam allows. */
#include "lib/fake_control.h"

#include "unit/control_help.h"

struct node {
    struct fake_control fake;
    struct control_state state;
    struct control_result result;
    unsigned n_lost, n_unreachable, n_states;
    uint64_t deadline_ns;
};

static struct fake_etcd etcd;
static struct node a, b;

static void
hear(void *context, const struct control_event *event)
{
    struct node *node = context;
    switch (event->say) {
    case CONTROL_SAY_BEAT_BACK:
        node->deadline_ns = event->of.beat.deadline_ns;
        break;
    case CONTROL_SAY_RESULT:
        node->result = event->of.result;
        break;
    case CONTROL_SAY_STATE:
        node->state = event->of.state;
        node->n_states++;
        break;
    case CONTROL_SAY_LOST:
        node->n_lost++;
        break;
    default:
        node->n_unreachable++;
        break;
    }
}

static void
begin(void)
{
    memset(&etcd, 0, sizeof etcd);
    memset(&a, 0, sizeof a);
    memset(&b, 0, sizeof b);
    fake_control_init(&a.fake, &etcd, hear, &a);
    fake_control_init(&b.fake, &etcd, hear, &b);
    fake_control_turn(&a.fake);
    fake_control_turn(&b.fake);
    ck_assert_uint_eq(a.n_states, 1);
}

static enum control_outcome
ask(struct node *node, const struct control_request *request)
{
    ck_assert(control_ask(&node->fake.control, request));
    node->result.number = 0;
    fake_control_turn(&node->fake);
    ck_assert_uint_eq(node->result.number, request->number);
    return node->result.outcome;
}

START_TEST(test_decides)
{
    struct control_request request = take_request("a", 1, 0, 0);
    begin();
    ck_assert_int_eq(ask(&a, &request), CONTROL_YES);
    uint64_t key = a.result.revision;
    request = take_request("b", 1, 0, 0);
    ck_assert_int_eq(ask(&b, &request), CONTROL_NO);
    ck_assert_uint_eq(b.state.primary.revision, key);
    request = voters_request(1, 2, 3, 0);
    ck_assert_int_eq(ask(&a, &request), CONTROL_YES);
    ck_assert_int_eq(ask(&a, &request), CONTROL_NO); /* seen is another now */
    request = take_request("a", 2, key, key);
    ck_assert_int_eq(ask(&a, &request), CONTROL_YES);
    ck_assert_uint_eq(a.result.voters.need, 2);
    a.fake.deadline_ns = 5;
    request = (struct control_request){.ask = CONTROL_BEAT};
    ck_assert(control_ask(&a.fake.control, &request));
    fake_control_turn(&a.fake);
    ck_assert_uint_eq(a.deadline_ns, 5);
    request = node_request("b");
    ck_assert_int_eq(ask(&b, &request), CONTROL_YES);
    request = node_request("a");
    ck_assert_int_eq(ask(&a, &request), CONTROL_YES);
    fake_control_turn(&b.fake);
    ck_assert_uint_eq(b.state.n_nodes, 2);
    ck_assert_int_eq(b.state.node[0].name.text[0], 'a');
    fake_control_expire(&a.fake);
    fake_control_turn(&a.fake);
    fake_control_turn(&b.fake);
    ck_assert_uint_eq(a.n_lost, 1);
    ck_assert_uint_eq(b.state.n_nodes, 1);
    ck_assert_uint_eq(b.state.primary.revision, 0);
    ck_assert_uint_eq(b.state.term, 2);
}
END_TEST

START_TEST(test_keeps_and_hands)
{
    struct control_request request = take_request("a", 1, 0, 0);
    request.of.take.voters = voters_request(1, 2, 1, 0).of.voters;
    begin();
    ck_assert_int_eq(ask(&a, &request), CONTROL_YES);
    uint64_t seen = a.result.revision;
    ck_assert_uint_eq(a.result.voters.need, 2);
    ck_assert_uint_eq(a.result.voters.revision, seen);
    request = keep_request("a", 1, 0, seen);
    ck_assert_int_eq(ask(&a, &request), CONTROL_NO); /* the key is there */
    ck_assert_uint_eq(a.result.revision, etcd.state.revision);
    fake_control_expire(&a.fake);
    ck_assert_int_eq(ask(&a, &request), CONTROL_YES);
    ck_assert_uint_eq(a.state.term_revision, seen);
    request = keep_request("a", 1, a.state.primary.revision, seen);
    ck_assert_int_eq(ask(&a, &request), CONTROL_YES);
    request = hand_request("b");
    ck_assert_int_eq(ask(&b, &request), CONTROL_NO); /* it has no key */
    ck_assert_int_eq(ask(&a, &request), CONTROL_YES);
    ck_assert_uint_eq(a.state.primary.revision, 0);
    ck_assert_uint_eq(a.state.order.to.len, 1);
    request = keep_request("a", 1, 0, seen + 1);
    ck_assert_int_eq(ask(&a, &request), CONTROL_NO);
    a.fake.way = FAKE_LOSES;
    request = keep_request("a", 1, 0, seen);
    ck_assert_int_eq(ask(&a, &request), CONTROL_UNKNOWN);
    ck_assert_uint_eq(a.state.primary.revision, 0); /* given up */
    request = take_request("b", 2, 0, seen);
    request.of.take.voters = voters_request(2, 1, 2, 0).of.voters;
    ck_assert_int_eq(ask(&b, &request), CONTROL_YES);
    ck_assert_uint_eq(b.result.voters.n, 1); /* there are some */
    ck_assert_uint_eq(b.state.order.revision, 0);
}
END_TEST

START_TEST(test_ways)
{
    struct control_request request = take_request("a", 1, 0, 0);
    begin();
    a.fake.way = FAKE_LOSES;
    ck_assert_int_eq(ask(&a, &request), CONTROL_UNKNOWN);
    ck_assert_uint_eq(a.state.term, 1); /* taken, and given up */
    ck_assert_uint_eq(a.state.primary.revision, 0);
    a.fake.way = FAKE_APART;
    request = voters_request(1, 1, 1, 0);
    ck_assert_int_eq(ask(&a, &request), CONTROL_NO);
    ck_assert_uint_eq(a.n_unreachable, 1);
    a.fake.way = FAKE_DROPS;
    ck_assert_int_eq(ask(&a, &request), CONTROL_UNKNOWN);
    ck_assert_uint_eq(a.state.voters.revision, 0);
    a.fake.way = FAKE_LOSES;
    ck_assert_int_eq(ask(&a, &request), CONTROL_UNKNOWN);
    ck_assert_uint_ne(a.state.voters.revision, 0);
}
END_TEST

/* A look that does not show a change settles nothing; another change that has
 * seen the same does. */
START_TEST(test_late)
{
    struct control_request request = take_request("a", 1, 0, 0);
    begin();
    ck_assert_int_eq(ask(&a, &request), CONTROL_YES);
    a.fake.way = FAKE_LATER;
    request = voters_request(1, 1, 1, 0);
    ck_assert_int_eq(ask(&a, &request), CONTROL_UNKNOWN);
    ck_assert_uint_eq(a.state.voters.revision, 0);
    ck_assert(fake_control_late(&a.fake));
    fake_control_turn(&a.fake);
    ck_assert_uint_ne(a.state.voters.revision, 0);

    request = voters_request(1, 2, 2, a.state.voters.revision);
    ck_assert_int_eq(ask(&a, &request), CONTROL_UNKNOWN);
    a.fake.way = FAKE_WELL;
    ck_assert_int_eq(ask(&a, &request), CONTROL_YES);
    ck_assert(!fake_control_late(&a.fake));
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        test_decides, test_keeps_and_hands, test_ways, test_late};
    return run_tests("fake_control", tests, COUNT_OF(tests));
}
