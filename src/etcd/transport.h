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

enum {
    TRANSPORT_LINE_MAX = 1 << 20, /* bytes of an answer, of a line; a group's
                                   * keys take a quarter of that */
    TRANSPORT_CALLS_MAX = 16,
    TRANSPORT_WHY_MAX = 255 /* bytes of a text that says what is wrong */
};

/* How a call is made. */
struct transport_post {
    unsigned call;     /* 0..TRANSPORT_CALLS_MAX - 1; who asks knows by it
                        * what has ended */
    const char *path;  /* "/v3/..."; static storage */
    char *body;        /* the transport's from here on, freed by it */
    const char *token; /* that says who asks (etcd/login.h), or NULL; gone when
                        * the call has begun */
    bool is_change;    /* is never sent a second time, whatever happens */
    bool is_stream;    /* line after line comes, until it is ended: no time
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

/* What is told. */
struct transport_ears {
    /* text[0..len): of ANSWER and ERROR as etcd says it, else why, for the log;
     * a stream never ends with an ANSWER or an ERROR. */
    void (*ended_fn)(void *context, unsigned call,
        enum transport_outcome outcome, const char *text, size_t len);
    void (*line_fn)(
        void *context, unsigned call, const char *text, size_t len);
    void *context;
};

#endif
