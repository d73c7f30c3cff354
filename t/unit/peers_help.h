/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIT_PEERS_HELP_H
#define UNIT_PEERS_HELP_H

/* Nodes that ask each other, each as in unit/node_help.h, but its loop is run
 * by the test's thread, one after the other, so that all calls are made where a
 * node makes them. */

#include "repl/node_priv.h"
#include "unit/node_help.h"

enum { TERM = 9 /* of a candidate */ };

struct said {
    unsigned n;
    struct node_name name;
    uint64_t term, last;
    bool flag;
};

/* A node, and what it was told last. */
struct member {
    struct host host; /* first */
    bool is_run;      /* by the test's thread */
    struct said asked, answered, told, refused, fetched;
};

static inline struct member *
member_of(struct node *node)
{
    return node->config.context;
}

static inline void
note(struct said *said, const struct node_name *name, uint64_t term,
    uint64_t last, bool flag)
{
    said->n++;
    said->name = name == NULL ? (struct node_name){0} : *name;
    said->term = term;
    said->last = last;
    said->flag = flag;
}

static inline void
on_asked(struct node *node, const struct node_name *name, uint64_t term,
    uint64_t last, bool is_probe)
{
    note(&member_of(node)->asked, name, term, last, is_probe);
}

static inline void
on_answered(struct node *node, const struct node_name *name, uint64_t term,
    uint64_t last, bool is_doubtful)
{
    note(&member_of(node)->answered, name, term, last, is_doubtful);
}

static inline void
on_told(struct node *node, const struct node_name *name, bool is_heard)
{
    note(&member_of(node)->told, name, 0, 0, is_heard);
}

static inline void
on_refused(struct node *node, const struct node_name *name, uint64_t promised)
{
    note(&member_of(node)->refused, name, promised, 0, false);
}

static inline void
on_fetched(struct node *node, uint64_t term, bool is_done)
{
    note(&member_of(node)->fetched, NULL, term, 0, is_done);
}

static const struct peers_calls member_calls = {
    on_asked, on_answered, on_told, on_refused, on_fetched};

struct group {
    struct member a, b, c;
};

static inline void
member_open(struct member *member, const char *primary)
{
    struct host *host = &member->host;
    struct buf why = {0};

    host_load(host, primary);
    ck_assert_int_eq(node__open(&host->config, &host->node, &why), 0);
    buf_fini(&why);
    host->node->peers.calls = &member_calls;
    host->node->thread = pthread_self();
    node__listen(host->node);
    member->is_run = true;
}

static inline void
member_close(struct member *member)
{
    struct host *host = &member->host;

    if (!member->is_run) {
        return;
    }
    member->is_run = false;
    node__want_end(host->node);
    (void)uv_run(&host->node->loop, UV_RUN_DEFAULT);
    node__close(host->node);
    host->node = NULL;
    ck_assert_int_eq(rig_close(&host->rig), 0);
}

static inline void
turn(struct group *group)
{
    struct member *members[] = {&group->a, &group->b, &group->c};

    for (unsigned i = 0; i < COUNT_OF(members); i++) {
        if (members[i]->is_run) {
            (void)uv_run(&members[i]->host.node->loop, UV_RUN_NOWAIT);
        }
    }
}

/* Runs all nodes until the condition holds. */
#define RUN_UNTIL(group, condition)                                           \
    do {                                                                      \
        uint64_t run_until_s = clock_monotonic_s() + HOST_WAIT_S;             \
        while (!(condition)) {                                                \
            EXPECT(clock_monotonic_s() < run_until_s, "%s:%d: never: %s",     \
                __FILE__, __LINE__, #condition);                              \
            turn(group);                                                      \
            host_pause();                                                     \
        }                                                                     \
    } while (0)

static inline void
group_init(struct group *group)
{
    memset(group, 0, sizeof *group);
    host_init(&group->a.host, "a", 1);
    host_init(&group->b.host, "b", 2);
    host_init(&group->c.host, "c", 3);
    host_open(&group->a.host, NULL);
    world_declare(&group->a.host);
    (void)change_some(&group->a.host, WORLD_CHANGES);
    host_close(&group->a.host);
    host_copy(&group->a.host, &group->b.host);
    host_copy(&group->a.host, &group->c.host);
}

static inline void
group_fini(struct group *group)
{
    member_close(&group->a);
    member_close(&group->b);
    member_close(&group->c);
    host_fini(&group->a.host);
    host_fini(&group->b.host);
    host_fini(&group->c.host);
}

/* It follows nobody, and has promised that term. */
static inline void
promise(struct member *member, uint64_t term)
{
    struct node *node = member->host.node;

    receiver_follow(node, "");
    ck_assert_int_eq(node_promise(node, term), 0);
}

static inline void
ask(struct member *member, struct member *other, uint64_t term, bool is_probe)
{
    peers_ask(member->host.node, &other->host.config.name, other->host.address,
        term, is_probe);
}

/* a leads and writes n batches of its term, b has all of them; then a goes, and
 * both others, which follow nobody, have promised TERM. */
static inline void
lose_primary(struct group *group, unsigned n)
{
    struct host *a = &group->a.host;

    host_open(a, NULL);
    while (seq_n(host_last(a)) < n) { /* the log gathers changes as it likes */
        (void)change_some(a, n);
    }
    member_open(&group->b, a->address);
    RUN_UNTIL(group, host_is_followed(a, &group->b.host));
    host_close(a);
    member_open(&group->c, "127.0.0.1:1");
    promise(&group->b, TERM);
    promise(&group->c, TERM);
}

static inline bool
is_name(const struct said *said, const char *name)
{
    return said->name.len == strlen(name) &&
        memcmp(said->name.text, name, said->name.len) == 0;
}

#endif
