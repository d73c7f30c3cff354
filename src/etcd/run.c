/* SPDX-License-Identifier: BSD-3-Clause */
/* Each turn: what the node has asked, what is due, what the node is to hear,
 * what has come from etcd. Requests wait in the pair while results do, so what
 * is kept here has a limit. */
#include "etcd/run.h"

#include "base/assert.h"
#include "base/err.h"
#include "repl/control_pair.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <time.h>

enum { NS_PER_MS = 1000000, NS_PER_S = 1000000000 };
_Static_assert((int)AGENT_CALLS_N <= (int)LOGIN_CALL, "each has its number");

struct run {
    struct agent agent;
    struct login login;
    struct http *http;
    int pair_fd;
    bool is_full; /* the pair has no room */
    struct control_event room;
};

/* Goes on while the machine sleeps, as etcd's leases do. */
static uint64_t
now_ns(void)
{
    struct timespec now;
    int err = clock_gettime(CLOCK_BOOTTIME, &now);
    ASSERT(err == 0);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static void
on_ended(void *context, unsigned call, enum transport_outcome outcome,
    const char *text, size_t len)
{
    struct run *run = context;
    agent_answered(&run->agent, call, outcome, text, len, now_ns());
}

static void
on_line(void *context, unsigned call, const char *text, size_t len)
{
    struct run *run = context;
    ASSERT(call == AGENT_WATCH);
    agent_watched(&run->agent, text, len, now_ns());
}

static void
say_all(struct run *run)
{
    const struct control_event *event;
    run->is_full = false;
    while (!run->agent.is_ended && !run->is_full &&
        (event = agent_event(&run->agent, &run->room)) != NULL) {
        int number = control_pair_say(run->pair_fd, event);
        if (number == 0) {
            agent_heard(&run->agent, event);
        } else if (number == EAGAIN) {
            run->is_full = true;
        } else {
            agent_end(&run->agent, now_ns());
        }
    }
}

static void
ask(struct run *run, const struct control_request *request)
{
    struct control_event event = {.say = CONTROL_SAY_BEAT_BACK};
    agent_ask(&run->agent, request, now_ns(), &event.of.beat);
    if (request->ask == CONTROL_BEAT) {
        /* one that finds no room is one that did not come back */
        (void)control_pair_say(run->pair_fd, &event);
    }
}

static void
hear_all(struct run *run)
{
    struct control_request request;
    while (!run->agent.is_ended && !agent_has_events(&run->agent)) {
        int number = control_pair_hear(run->pair_fd, &request);
        if (number == EAGAIN) {
            return;
        }
        if (number != 0) {
            agent_end(&run->agent, now_ns());
            return;
        }
        ask(run, &request);
        say_all(run);
    }
}

/* Until then, in ms, rounded up. */
static int
ms_until(uint64_t wake_ns)
{
    uint64_t now = now_ns();
    return wake_ns <= now ? 0
                          : (int)((wake_ns - now + NS_PER_MS - 1) / NS_PER_MS);
}

static void
serve(struct run *run)
{
    uint64_t end_ns = UINT64_MAX;
    while (!agent_is_through(&run->agent) && now_ns() < end_ns) {
        hear_all(run);
        uint64_t wake_ns = agent_turn(&run->agent, now_ns());
        say_all(run);
        if (run->agent.is_ended && end_ns == UINT64_MAX) {
            end_ns = now_ns() + (uint64_t)RUN_END_MS * NS_PER_MS;
        }
        short events = run->is_full ? POLLOUT : POLLIN;
        http_wait(run->http, run->agent.is_ended ? -1 : run->pair_fd, events,
            login_is_due(&run->login) ? 0 : ms_until(wake_ns));
        login_turn(&run->login, now_ns());
        http_turn(run->http);
    }
}

int
run_until_gone(int pair_fd, const struct run_config *config)
{
    struct run *run = calloc(1, sizeof *run);
    if (run == NULL) {
        return ERR_NO_MEMORY;
    }
    const struct transport_ears ears = {
        .ended_fn = on_ended, .line_fn = on_line, .context = run};
    run->pair_fd = pair_fd;
    login_init(&run->login, &config->user, &ears);
    const struct transport_ears below = login_ears(&run->login);
    int err = http_create(&run->http, &config->http, &below);
    if (err == 0) {
        login_set_below(&run->login, http_transport(run->http));
        agent_init(&run->agent, &config->agent, login_transport(&run->login),
            now_ns());
        serve(run);
        http_destroy(&run->http);
    }
    login_fini(&run->login);
    free(run);
    return err;
}
