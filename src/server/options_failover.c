/* SPDX-License-Identifier: BSD-3-Clause */
/* What the options of a group mean together in which etcd says who is primary.
 * Who can forge what etcd says decides where changes go: so it is asked by TLS,
 * or on the same machine, or with a word that says that this is known. */
#include "server/options_failover_check.h"

#include "repl/control.h"
#include "repl/dial.h"
#include "server/etcd_option.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

enum { COPIES_MAX = CONTROL_VOTERS_MAX - 1, MS_PER_S = 1000 };

static const char plain_scheme[] = "http://";

_Static_assert(OPTIONS_VOTES_YES == 0 && OPTIONS_VOTES_NO == 1,
    "the words of --replica-votes are in this order");

static bool
is_given(const struct options_text *text)
{
    return text->text[0] != '\0';
}

bool
options_is_automatic(const struct options *options)
{
    return is_given(&options->replicate);
}

bool
options_split_group(
    const char *text, struct node_name *cluster, struct node_name *group)
{
    const char *slash = strchr(text, '/');
    return slash != NULL &&
        node_name_set(cluster, text, (size_t)(slash - text)) &&
        node_name_set(group, slash + 1, strlen(slash + 1));
}

bool
options_split_endpoints(const char *text, struct options_endpoints *endpoints)
{
    char *rest = endpoints->text, *word;
    if (strlen(text) >= sizeof endpoints->text) {
        return false;
    }
    memcpy(endpoints->text, text, strlen(text) + 1);
    endpoints->n = 0;
    while ((word = strsep(&rest, ",")) != NULL) {
        if (endpoints->n == OPTIONS_ENDPOINTS_MAX ||
            !etcd_option_is_endpoint(word)) {
            return false;
        }
        endpoints->endpoint[endpoints->n++] = word;
    }
    return true;
}

/* True where HOST or HOST:PORT is this machine, whatever a name server says. */
static bool
is_loopback(const char *address)
{
    struct in_addr v4;
    struct in6_addr v6;
    char host[OPTIONS_HOST_BYTES];
    bool has_brackets = address[0] == '[';
    size_t len = strcspn(address + has_brackets, has_brackets ? "]" : ":");
    if (len >= sizeof host) {
        return false;
    }
    memcpy(host, address + has_brackets, len);
    host[len] = '\0';
    if (has_brackets) {
        return inet_pton(AF_INET6, host, &v6) == 1 &&
            IN6_IS_ADDR_LOOPBACK(&v6);
    }
    return strcmp(host, "localhost") == 0 ||
        (inet_pton(AF_INET, host, &v4) == 1 &&
            ntohl(v4.s_addr) >> IN_CLASSA_NSHIFT == IN_LOOPBACKNET);
}

/* True where somebody between could say what etcd does not. */
static bool
is_forgeable(const struct options_endpoints *endpoints)
{
    const size_t len = sizeof plain_scheme - 1;
    for (unsigned i = 0; i < endpoints->n; i++) {
        const char *url = endpoints->endpoint[i];
        if (strncmp(url, plain_scheme, len) == 0 && !is_loopback(url + len)) {
            return true;
        }
    }
    return false;
}

/* The first option that says something about etcd, or NULL. */
static const char *
given_in_vain(const struct options *options)
{
    for (enum options_id i = OPTIONS_ID_etcd; i <= OPTIONS_ID_repl_announce;
         i++) {
        if (options->given[i]) {
            return options_row(i)->name;
        }
    }
    return NULL;
}

static bool
is_without_data(const struct options *options)
{
    return strcmp(options->data.text, "none") == 0 ||
        (!is_given(&options->data) && getenv("STATE_DIRECTORY") == NULL);
}

/* The first rule of an automatic group that is broken, or NULL. */
static const char *
broken_rule(const struct options *options)
{
    char host[ADDRESS_MAX + 1], port[ADDRESS_PORT_MAX + 1];
    struct node_name cluster, group;
    struct options_endpoints endpoints;
    if (!options_split_group(options->replicate.text, &cluster, &group)) {
        return "--replicate: wanted is CLUSTER/GROUP, each of letters, "
               "digits, _ . and -";
    }
    if (!is_given(&options->etcd)) {
        return "--replicate wants --etcd: who is primary is said there; "
               "without it, see --replicaof and --repl-port";
    }
    if (!options_split_endpoints(options->etcd.text, &endpoints)) {
        return "--etcd: wanted are addresses such as https://HOST:2379, 8 at "
               "most, with commas between them";
    }
    const struct {
        bool is_broken;
        const char *rule;
    } rules[] = {{is_given(&options->replicaof),
                     "--replicate with --replicaof: leave one out, since etcd "
                     "says who is followed"},
        {options->repl_port == 0,
            "--replicate wants --repl-port: the other servers connect there"},
        {is_without_data(options),
            "--replicate wants a data directory: give --data=DIR"},
        {options->sync == OPTIONS_SYNC_NONE,
            "--sync=none with --replicate: copies would have what the server "
            "itself has lost; leave one out"},
        {is_given(&options->repl_group) &&
                (strlen(options->repl_group.text) != group.len ||
                    memcmp(options->repl_group.text, group.text, group.len) !=
                        0),
            "--repl-group with --replicate: leave it out, the group is the "
            "one behind the slash"},
        {is_forgeable(&endpoints) && !options->repl_insecure,
            "--etcd: http:// to another machine, where whoever is on the way "
            "can say who is primary: give https://, or --repl-insecure"},
        {is_given(&options->etcd_cert) != is_given(&options->etcd_key),
            "--etcd-cert and --etcd-key want each other"},
        {options->hang_timeout_ms > options->lease_ttl_s * MS_PER_S,
            "--hang-timeout is more than --lease-ttl"},
        {options->semi_sync > COPIES_MAX,
            "--semi-sync is at most 4 with --replicate"},
        {options->replica_priority > CONTROL_PRIORITY_MAX,
            "--replica-priority is at most 10000 with --replicate"},
        {is_given(&options->repl_announce) &&
                !address_split(options->repl_announce.text, host, port),
            "--repl-announce: wanted is HOST:PORT"},
        {strcmp(options->node.text, "force") == 0,
            "--node=force: that is a word of the command failover"}};
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        if (rules[i].is_broken) {
            return rules[i].rule;
        }
    }
    return NULL;
}

bool
options__settle_failover(struct options *options, struct buf *message)
{
    if (!options_is_automatic(options)) {
        const char *name = given_in_vain(options);
        if (name != NULL) {
            buf_addf(message, "tallyd: --%s wants --replicate\n", name);
        }
        return name == NULL;
    }
    if (!options->given[OPTIONS_ID_semi_sync]) {
        options->semi_sync = 1;
    }
    const char *rule = broken_rule(options);
    if (rule != NULL) {
        buf_addf(message, "tallyd: %s\n", rule);
        return false;
    }
    const char *group = strchr(options->replicate.text, '/') + 1;
    memcpy(options->repl_group.text, group, strlen(group) + 1);
    return true;
}
