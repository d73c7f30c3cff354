/* SPDX-License-Identifier: BSD-3-Clause */
/* One reader of the pair. A reply that nobody waits for any more has come too
 * late; its socket is closed.
 *
 * What can go wrong: who connects is gone, which is said once, or says nothing
 * for too long: who asked is told. */
#include "repl/node_dial.h"

#include "base/assert.h"
#include "base/err.h"
#include "repl/dial.h"
#include "repl/node_priv.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

static void
close_call(struct node *node, struct node_dial_call *call)
{
    struct node_dial_call **at = &node->dial.calls;

    while (*at != call) {
        ASSERT(*at != NULL);
        at = &(*at)->next;
    }
    *at = call->next;
    call->is_open = false;
}

static void
answer(struct node *node, struct node_dial_call *call, int fd, const char *why)
{
    close_call(node, call);
    call->done_fn(call, fd, why);
}

/* Nobody connects any more. */
static void
lose(struct node *node, int error)
{
    log_event(node->config.logger, "repl_link", LOG_ERROR,
        "the process that connects is gone (%s): this server follows nobody "
        "until it is started again",
        strerror(error));
    uv_poll_stop(&node->dial.poll);
    node->config.dial_fd = -1;
    node->dial.is_lost = true;
    while (node->dial.calls != NULL) {
        answer(node, node->dial.calls, -1, err_text(ERR_NO_DIALLER));
    }
}

static void
on_reply(uv_poll_t *poll, int status, int events)
{
    struct node *node = poll->data;
    struct node_dial_call *call = node->dial.calls;
    struct dial_reply reply;
    int error;

    (void)status;
    (void)events;
    ASSERT(node->magic == NODE_MAGIC);
    node->now_us = node_clock_us(node);
    error = dial__receive_reply(node->config.dial_fd, &reply);
    if (error == EAGAIN) {
        return;
    }
    if (error != 0) {
        lose(node, error);
        return;
    }
    while (call != NULL && call->number != reply.number) {
        call = call->next;
    }
    if (call != NULL) {
        answer(node, call, reply.fd, reply.why);
    } else if (reply.fd >= 0) { /* it has come too late */
        close(reply.fd);
    }
}

int
node_dial_start(struct node *node)
{
    struct node_dial *dial = &node->dial;
    int fd = node->config.dial_fd;
    uint32_t drawn;

    /* so that no reply to an earlier node is taken for one to this */
    if (getrandom(&drawn, sizeof drawn, 0) == (ssize_t)sizeof drawn) {
        dial->number = drawn;
    }
    if (fd < 0) {
        return 0;
    }
    if (uv_poll_init(&node->loop, &dial->poll, fd) != 0) {
        return ERR_SYSTEM;
    }
    dial->poll.data = node;
    dial->is_polled = true;
    uv_poll_start(&dial->poll, UV_READABLE, on_reply);
    return 0;
}

void
node_dial_end(struct node *node)
{
    struct node_dial *dial = &node->dial;

    ASSERT(dial->calls == NULL);
    if (dial->is_polled) {
        dial->is_polled = false;
        uv_close((uv_handle_t *)&dial->poll, NULL);
    }
}

const char *
node_dial(struct node *node, struct node_dial_call *call, const char *address)
{
    struct node_dial *dial = &node->dial;
    struct dial_request request = {.number = ++dial->number};
    size_t len = strlen(address);
    int error;

    ASSERT(!call->is_open && call->done_fn != NULL);
    ASSERT(len < sizeof request.address);
    if (node->config.dial_fd < 0) {
        return err_text(ERR_NO_DIALLER);
    }
    memcpy(request.address, address, len);
    error = dial__send_request(node->config.dial_fd, &request);
    if (error != 0) {
        return strerror(error);
    }
    call->number = request.number;
    call->is_open = true;
    call->until_us = node->now_us + NODE_DIAL_MS * UINT64_C(1000);
    call->next = dial->calls;
    dial->calls = call;
    node_wake_at(node, call->until_us);
    return NULL;
}

void
node_dial_forget(struct node *node, struct node_dial_call *call)
{
    if (call->is_open) {
        close_call(node, call);
    }
}

void
node_dial_turn(struct node *node)
{
    struct node_dial_call *call = node->dial.calls;

    while (call != NULL) {
        struct node_dial_call *next = call->next;

        if (node->now_us >= call->until_us) {
            answer(node, call, -1, "who connects does not answer");
            next = node->dial.calls; /* it may have asked anew */
        } else {
            node_wake_at(node, call->until_us);
        }
        call = next;
    }
}
