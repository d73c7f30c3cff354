/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ETCD_TRANSPORT_H
#define ETCD_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The seam between the agent (etcd/agent.h) and the network. The real one is
 * etcd/http.h; a test has one in memory. One thread. */

/* How a call ends. */
#define TRANSPORT_OUTCOMES(X)                                                 \
    X(ANSWER, "etcd has done it: text is what it says")                       \
    X(ERROR, "etcd answers with an error: text is that, keys_is_refusal")     \
    X(UNSENT, "not a byte of it has left: it is not done and will not be")    \
    X(UNSURE, "no answer: it may be done, or be done yet")

enum transport_outcome {
#define X(name, text) TRANSPORT_##name,
    TRANSPORT_OUTCOMES(X)
#undef X
        TRANSPORT_OUTCOMES_N
};

enum { TRANSPORT_LINE_MAX = 4 << 20 /* bytes of an answer, of a line */ };

/* How a call is made. */
struct transport_post {
    unsigned call;    /* 0..; who asks knows by it what has ended */
    const char *path; /* "/v3/..."; static storage */
    char *body;       /* the transport's from here on, freed by it */
    bool is_change;   /* is never sent a second time, whatever happens */
    bool is_stream;   /* line after line comes, until it is ended: no time
                       * limit */
};

struct transport;

struct transport_calls {
    /* Begins a call; none of that number is under way. What comes of it is told
     * later, never before this returns: of a stream each line, and of each call
     * one end. */
    void (*post)(
        struct transport *transport, const struct transport_post *post);
    /* Ends one that is under way: nothing is told of it any more. */
    void (*cancel)(struct transport *transport, unsigned call);
};

struct transport {
    const struct transport_calls *calls;
};

#endif
