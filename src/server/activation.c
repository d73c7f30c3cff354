/* SPDX-License-Identifier: BSD-3-Clause */
/* Takes sockets that whoever starts the server leaves open in the descriptors
 * from 3 on (socket activation). The environment says how many, for which
 * process, and their names. The listener finds out whether each listens. */
#include "server/activation.h"

#include "base/err.h"
#include "base/num.h"
#include "server/options.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool
read_number(const char *text, uint64_t *out)
{
    return text != NULL && num_parse_u64(text, strlen(text), out);
}

static int
protocol_of(const char *name, size_t len)
{
    static const struct {
        const char *name;
        int protocol;
    } protocols[] = {{"ascii", OPTIONS_PROTOCOL_ASCII},
        {"binary", OPTIONS_PROTOCOL_BINARY}};
    for (size_t i = 0; i < sizeof protocols / sizeof protocols[0]; i++) {
        if (strlen(protocols[i].name) == len &&
            memcmp(protocols[i].name, name, len) == 0) {
            return protocols[i].protocol;
        }
    }
    return OPTIONS_PROTOCOL_AUTO;
}

static void
fill(struct activation *out, unsigned n, const char *names)
{
    for (out->n = 0; out->n < n; out->n++) {
        size_t len = strcspn(names, ":");
        out->socket[out->n].fd = ACTIVATION_FD_FIRST + (int)out->n;
        out->socket[out->n].protocol = protocol_of(names, len);
        names += names[len] == ':' ? len + 1 : len;
    }
}

int
activation_take(struct activation *out, struct buf *message)
{
    const char *pid_text = getenv("LISTEN_PID");
    const char *count_text = getenv("LISTEN_FDS");
    const char *names = getenv("LISTEN_FDNAMES");
    uint64_t pid, count = 0;
    int err = 0;

    *out = (struct activation){0};
    if (read_number(pid_text, &pid) && pid == (uint64_t)getpid() &&
        count_text != NULL) {
        if (!read_number(count_text, &count) ||
            count > ACTIVATION_SOCKETS_MAX) {
            buf_addf(message, "LISTEN_FDS is not a number up to %d",
                ACTIVATION_SOCKETS_MAX);
            err = ERR_BAD_OPTION;
        } else {
            fill(out, (unsigned)count, names == NULL ? "" : names);
        }
    }
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");
    return err;
}
