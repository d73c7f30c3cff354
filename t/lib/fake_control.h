/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LIB_FAKE_CONTROL_H
#define LIB_FAKE_CONTROL_H

#include "repl/control.h"

/* etcd in memory, and a control for each node: what is asked is decided at
 * once, and what there is to hear waits until the control gets a turn. One
 * thread. No time passes: leases end when a test says so. */

enum { FAKE_EVENTS_MAX = 16 };

struct fake_control;

/* All zero is one that holds nothing. */
struct fake_etcd {
    struct control_state state;   /* its revision: the newest */
    struct fake_control *primary; /* whose lease the key has; or NULL */
    struct fake_control *node[CONTROL_NODES_MAX];
};

/* What becomes of what is asked. */
enum fake_way {
    FAKE_WELL,
    FAKE_APART, /* not done: NO; and UNREACHABLE is heard */
    FAKE_LOSES, /* done, and the answer is lost: UNKNOWN */
    FAKE_DROPS, /* not done, and there is no answer: UNKNOWN */
    FAKE_LATER  /* UNKNOWN; it is done at fake_control_late */
};

struct fake_control {
    struct control control; /* first: the seam */
    struct fake_etcd *etcd;
    enum fake_way way;
    uint64_t deadline_ns;    /* of beats that come back while it has the key */
    uint64_t heard_revision; /* of the last STATE; 0: none */
    bool is_unreachable;     /* has been heard */
    bool has_late;
    struct control_request late;
    unsigned n_events;
    struct control_event event[FAKE_EVENTS_MAX];
};

void fake_control_init(struct fake_control *fake, struct fake_etcd *etcd,
    control_event_fn *event_fn, void *context);

/* The node hears what waits, and the state where that is another. */
void fake_control_turn(struct fake_control *fake);

/* What FAKE_LATER has kept is done now, or refused; nobody hears of it. True
 * where it is done. */
bool fake_control_late(struct fake_control *fake);

/* Its leases end, by themselves or because it is dead: its keys are gone. */
void fake_control_expire(struct fake_control *fake);

#endif
