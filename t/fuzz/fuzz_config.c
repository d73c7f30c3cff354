/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzzes the configuration file, with the values of all options behind it: it
 * is read from a file in memory, as --config reads it. What is refused is
 * refused with one line; what is taken can be shown, and made absolute. */
#include "base/assert.h"
#include "base/buf.h"
#include "server/options.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ARG_BYTES = 64 };

static void
count_setting(void *context, const char *name, const char *value)
{
    ASSERT(name[0] != '\0' && strlen(value) < OPTIONS_TEXT_BYTES * 20);
    *(unsigned *)context += 1;
}

static void
count_ignored(void *context, const char *option)
{
    ASSERT(option[0] == '-');
    *(unsigned *)context += 1;
}

/* options of the file; message: what was said. */
static enum options_result
read_options(int fd, struct options *options, struct buf *message)
{
    char name[] = "tallyd";
    char config[ARG_BYTES];
    snprintf(config, sizeof config, "--config=/proc/self/fd/%d", fd);
    char *argv[] = {name, config, NULL};
    return options_parse(2, argv, options, message);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static struct options options;
    struct buf message = {0};
    unsigned n = 0;
    int fd = memfd_create("config", MFD_CLOEXEC);
    ASSERT(fd >= 0 && write(fd, bytes, len) == (ssize_t)len);
    enum options_result result = read_options(fd, &options, &message);
    if (result == OPTIONS_RUN) {
        ASSERT(message.len == 0);
        ASSERT(options.threads >= 1 && options.shards >= 1);
        ASSERT(options.listen.n >= 1);
        options_each_setting(&options, count_setting, &n);
        ASSERT(n > 0);
        options_each_ignored(&options, count_ignored, &n);
        (void)options_resolve_paths(&options, &message);
    } else {
        ASSERT(message.len > 0 && message.data[message.len - 1] == '\n');
        ASSERT(result == OPTIONS_EXIT_OK ||
            memchr(message.data, '\n', message.len) ==
                message.data + message.len - 1);
    }
    buf_fini(&message);
    close(fd);
    return 0;
}
