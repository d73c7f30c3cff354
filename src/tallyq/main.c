/* SPDX-License-Identifier: BSD-3-Clause */
/* tallyq: from a queue to tallyd. Puts the parts together: one queue, one
 * connection, one thread of its own. Exit status 0 at SIGTERM, 1 for an error,
 * 2 for a wrong command line. */
#include "config.h"

#include "base/err.h"
#include "tallyq/aside.h"
#include "tallyq/feed.h"
#include "tallyq/setup.h"

#include <stdlib.h>
#include <string.h>

enum { EXIT_USAGE = 2 };

static int
say(enum setup_do what)
{
    struct buf out = {0};
    if (what == SETUP_VERSION) {
        buf_addf(
            &out, "tallyq %s, reads:%s\n", PACKAGE_VERSION, source_kinds());
    } else {
        setup_help(what, &out);
    }
    bool is_said = !out.failed &&
        fwrite(out.data, 1, out.len, stdout) == out.len && fflush(stdout) == 0;
    buf_fini(&out);
    return is_said ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int
run(struct setup *setup, struct broker *broker, struct stop *stop)
{
    static struct logger logger;
    struct feed *feed = malloc(sizeof *feed);
    if (feed == NULL) {
        (void)fprintf(stderr, "tallyq: out of memory\n");
        return EXIT_FAILURE;
    }
    logger.verbosity = setup->is_verbose ? 1 : 0;
    const struct feed_config config = {.broker = broker,
        .talk = &setup->talk,
        .logger = &logger,
        .stop = stop,
        .name = setup->name,
        .aside_path = setup->aside,
        .messages = (uint32_t)setup->batch,
        .linger_ms = (uint32_t)setup->linger_ms,
        .progress_s = (uint32_t)setup->progress_s,
        .login = setup->login[0] == '\0' ? NULL : setup->login};
    feed_init(feed, &config);
    int err = feed_run(feed);
    feed_fini(feed);
    free(feed);
    log_close(&logger);
    return err == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int
main(int argc, char *argv[])
{
    static struct setup setup;
    struct stop stop = {.fd = -1};
    const char *why = NULL;
    if (!setup_parse(&setup, argc, argv)) {
        (void)fprintf(stderr, "tallyq: %s\n", setup.line.why);
        return EXIT_USAGE;
    }
    if (setup.what != SETUP_RUN) {
        return say(setup.what);
    }
    int err = aside_write(setup.aside, "", 0);
    if (err != 0) {
        (void)fprintf(stderr, "tallyq: %s: %s\n", setup.aside, strerror(err));
        return EXIT_FAILURE;
    }
    if (stop_init(&stop, 0) != 0) {
        (void)fprintf(stderr, "tallyq: no descriptor for signals\n");
        return EXIT_FAILURE;
    }
    struct broker *broker = source_open(&setup.from, &why);
    if (broker == NULL) {
        (void)fprintf(stderr, "tallyq: %s\n", why);
        stop_fini(&stop);
        return EXIT_FAILURE;
    }
    int status = run(&setup, broker, &stop);
    broker->calls->close(&broker);
    talk_fini(&setup.talk);
    stop_fini(&stop);
    return status;
}
