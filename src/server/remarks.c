/* SPDX-License-Identifier: BSD-3-Clause */
/* Logs what the operator should know at the start. */
#include "server/remarks.h"

#include "base/num.h"
#include "call/store_calls.h"
#include "schema/schema.h"

#include <config.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#define MIB 1048576.0

static void
say_ignored(void *context, const char *option)
{
    log_line(
        context, LOG_INFO, "%s has no meaning here and is ignored", option);
}

void
remarks_on_options(const struct options *options, struct logger *logger)
{
    options_each_ignored(options, say_ignored, logger);
    if (options->drop_privileges && options->seccomp != OPTIONS_SECCOMP_ON) {
        log_line(logger, LOG_WARNING,
            "-o drop_privileges: --seccomp forbids no system call");
    }
    if (options->ssl_chain_cert.text[0] != '\0' && !options->tls) {
        log_line(logger, LOG_WARNING,
            "-o ssl_chain_cert without --enable-ssl: there is no TLS");
    }
}

void
remarks_on_start(const struct options *options, struct logger *logger)
{
    static const char *const sync[] = {"none", "interval", "always"};

    if (strcmp(options->data.text, "none") == 0) {
        log_line(logger, LOG_NOTICE,
            "tallyd %s starts as process %d, without a data directory",
            PACKAGE_VERSION, (int)getpid());
        return;
    }
    log_line(logger, LOG_NOTICE,
        "tallyd %s starts as process %d, with the data directory %s, "
        "--sync=%s",
        PACKAGE_VERSION, (int)getpid(), options->data.text,
        sync[options->sync]);
}

void
remarks_on_ready(struct store *store, uint64_t took_ms, struct logger *logger)
{
    struct qsbr_reader reader;
    const struct schema *schema;
    unsigned counters = 0, columns = 0;
    uint64_t records = 0, cold_bytes = 0, garbage;

    qsbr_register(store->qsbr, &reader);
    qsbr_online(store->qsbr, &reader);
    schema = store_schema(store);
    for (unsigned slot = 0; slot < SCHEMA_COUNTERS_MAX; slot++) {
        const struct schema_counter *counter = schema_counter_at(schema, slot);
        if (counter != NULL && counter->members_of == 0) {
            struct store_sum sum = store_sum(store, slot);
            counters++;
            columns += counter->n_columns;
            records += sum.records;
            cold_bytes += sum.cold_bytes;
        }
    }
    qsbr_offline(&reader);
    qsbr_unregister(store->qsbr, &reader);
    log_line(logger, LOG_NOTICE,
        "ready in %" PRIu64 " ms: %u counter%s of %u column%s, %" PRIu64
        " record%s, %.1f MB in memory, %.1f MB in segments",
        took_ms, counters, num_plural(counters), columns, num_plural(columns),
        records, num_plural(records),
        (double)store_hot_bytes(store, &garbage) / MIB,
        (double)cold_bytes / MIB);
}
