/* SPDX-License-Identifier: BSD-3-Clause */
/* What the options of replication mean together, and what stands in for those
 * that are not given. What is refused here would start a server that is
 * something else than was meant: a copy that nobody can follow, that forgets at
 * a power cut what the others have, or that others can write to. */
#include "server/options_repl_check.h"

#include "base/node.h"
#include "base/num.h"
#include "repl/dial.h"
#include "repl/proof.h"
#include "server/options_failover_check.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STALE_MS_MAX = 86400000 };

_Static_assert(OPTIONS_ACK_WRITTEN == 0 && OPTIONS_ACK_SYNCED == 1,
    "the words of --replica-ack are in this order");
_Static_assert(OPTIONS_FORWARD_YES == 0 && OPTIONS_FORWARD_NO == 1,
    "the words of --forward-writes are in this order");

static bool
is_given(const struct options_text *text)
{
    return text->text[0] != '\0';
}

bool
options_replicate(const struct options *options)
{
    return is_given(&options->replicaof) || options->repl_port != 0;
}

uint64_t
options_stale_ms(const struct options *options)
{
    const char *text = options->stale_data.text;
    uint64_t ms;
    return num_parse_u64(text, strlen(text), &ms) && ms <= STALE_MS_MAX ? ms
                                                                        : 0;
}

/* The same of --forward-writes. */
static const char *
broken_rule_of_forwarding(const struct options *options)
{
    bool is_closed = is_given(&options->repl_secret) ||
        (options->tls && is_given(&options->ssl_ca_cert));
    if (options->forward_writes == OPTIONS_FORWARD_NO) {
        return NULL;
    }
    if (!options_replicate(options)) {
        return "--forward-writes wants --replicaof or --repl-port";
    }
    return is_given(&options->auth_file) && !is_closed
        ? "--forward-writes with --auth-file wants --repl-secret-file, or "
          "TLS: whoever reaches the port of replication could change counters "
          "without a login"
        : NULL;
}

/* The first rule that is broken, or NULL. */
static const char *
broken_rule(const struct options *options)
{
    char host[ADDRESS_MAX + 1], port[ADDRESS_PORT_MAX + 1];
    const char *stale = options->stale_data.text;
    bool replicates = options_replicate(options);
    const struct {
        bool is_broken;
        const char *rule;
    } rules[] = {{is_given(&options->replicaof) &&
                         !address_split(options->replicaof.text, host, port),
                     "--replicaof: wanted is HOST:PORT"},
        {is_given(&options->replica_announce) &&
                !address_split(options->replica_announce.text, host, port),
            "--replica-announce: wanted is HOST:PORT"},
        {is_given(&options->node) &&
                !node_name_is_right(
                    options->node.text, strlen(options->node.text)),
            "--node: wanted are letters, digits, _ . and -"},
        {is_given(&options->repl_group) &&
                !node_name_is_right(options->repl_group.text,
                    strlen(options->repl_group.text)),
            "--repl-group: wanted are letters, digits, _ . and -"},
        {strcmp(stale, "yes") != 0 && options_stale_ms(options) == 0,
            "--replica-serve-stale-data: wanted is yes, or milliseconds from "
            "1 to 86400000"},
        {replicates && options->leave_group,
            "--leave-group with --replicaof or --repl-port: leave one out"},
        {replicates &&
                (strcmp(options->data.text, "none") == 0 ||
                    (!is_given(&options->data) &&
                        getenv("STATE_DIRECTORY") == NULL)),
            "--replicaof and --repl-port want a data directory: give "
            "--data=DIR"},
        {replicates && options->sync == OPTIONS_SYNC_NONE,
            "--sync=none with --replicaof or --repl-port: copies would have "
            "what the server itself has lost; leave one out"},
        {options->semi_sync > 0 && options->repl_port == 0,
            "--semi-sync wants --repl-port: nobody could connect"},
        {options->min_replicas > options->semi_sync,
            "--min-replicas-to-write is more than --semi-sync"},
        {options->given[OPTIONS_ID_repl_listen] && options->repl_port == 0,
            "--repl-listen wants --repl-port"},
        {is_given(&options->repl_secret) && !proof_is_there(),
            "--repl-secret-file: this build has no OpenSSL, and so no proofs"},
        {replicates && options->tls && !is_given(&options->ssl_ca_cert) &&
                !options->repl_insecure,
            "--enable-ssl with --replicaof or --repl-port: servers verify "
            "one another's certificates: give -o ssl_ca_cert, or "
            "--repl-insecure to replicate without TLS"}};
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        if (rules[i].is_broken) {
            return rules[i].rule;
        }
    }
    for (unsigned i = 0; i < options->repl_listen.n; i++) {
        const struct options_address *one = &options->repl_listen.address[i];
        if (one->tls != OPTIONS_TLS_DEFAULT ||
            one->protocol != OPTIONS_PROTOCOL_AUTO) {
            return "--repl-listen: wanted are addresses only";
        }
    }
    return broken_rule_of_forwarding(options);
}

/* The host name, as far as it can be a node's. */
static void
name_by_host(struct options *options)
{
    char host[NODE_NAME_MAX + 1] = "";
    if (gethostname(host, sizeof host) != 0) {
        return;
    }
    host[sizeof host - 1] = '\0';
    if (node_name_is_right(host, strlen(host))) {
        memcpy(options->node.text, host, strlen(host) + 1);
    }
}

bool
options__settle_repl(struct options *options, struct buf *message)
{
    if (!options__settle_failover(options, message)) {
        return false;
    }
    if (!options->given[OPTIONS_ID_min_replicas]) {
        options->min_replicas = options->semi_sync;
    }
    if (!options->given[OPTIONS_ID_replica_ack]) {
        options->replica_ack = options->sync == OPTIONS_SYNC_ALWAYS
            ? OPTIONS_ACK_SYNCED
            : OPTIONS_ACK_WRITTEN;
    }
    const char *rule = broken_rule(options);
    if (rule == NULL && options_replicate(options) &&
        !is_given(&options->node)) {
        name_by_host(options);
        rule = is_given(&options->node)
            ? NULL
            : "--node is missing: the host name cannot be a name";
    }
    if (rule != NULL) {
        buf_addf(message, "tallyd: %s\n", rule);
    }
    return rule == NULL;
}
