/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIT_CONTROL_HELP_H
#define UNIT_CONTROL_HELP_H

/* What the tests of the seam to etcd share. */

#include "repl/control.h"
#include "unit/check_help.h"

#include <stdio.h>

static inline struct node_name
name_of(const char *text)
{
    struct node_name name = {0};
    ck_assert(node_name_set(&name, text, strlen(text)));
    return name;
}

static inline struct control_request
take_request(const char *name, uint32_t term, uint64_t key, uint64_t seen)
{
    struct control_request request = {.ask = CONTROL_TAKE, .number = 1};
    struct control_primary *primary = &request.of.take.primary;
    request.of.take.term_revision = seen;
    primary->revision = key;
    primary->node = name_of(name);
    primary->term = term;
    primary->boot = UINT64_MAX;
    (void)snprintf(
        primary->client.text, sizeof primary->client.text, "%s:1", name);
    (void)snprintf(primary->repl.text, sizeof primary->repl.text, "[::1]:2");
    return request;
}

static inline struct control_request
keep_request(const char *name, uint32_t term, uint64_t key, uint64_t seen)
{
    struct control_request request = {.ask = CONTROL_KEEP, .number = 4};
    request.of.keep.primary = take_request(name, term, key, 0).of.take.primary;
    request.of.keep.term_revision = seen;
    return request;
}

static inline struct control_request
hand_request(const char *to)
{
    return (struct control_request){
        .ask = CONTROL_HAND, .number = 5, .of.hand.to = name_of(to)};
}

/* The names are a, b, c, ... */
static inline struct control_request
voters_request(uint32_t term, uint32_t need, uint32_t n, uint64_t seen)
{
    struct control_request request = {.ask = CONTROL_VOTERS,
        .number = 2,
        .of.voters = {.revision = seen, .term = term, .need = need, .n = n}};
    for (uint32_t i = 0; i < n; i++) {
        const char text[] = {(char)('a' + i), '\0'};
        request.of.voters.node[i] = name_of(text);
    }
    return request;
}

static inline struct control_request
node_request(const char *name)
{
    struct control_request request = {.ask = CONTROL_NODE,
        .number = 3,
        .of.node = {.formats = 6, .priority = 100, .votes = true}};
    request.of.node.name = name_of(name);
    (void)snprintf(
        request.of.node.role, sizeof request.of.node.role, "replica");
    return request;
}

#endif
