/* SPDX-License-Identifier: BSD-3-Clause */
/* What a node must not forget (wal/replica_file.h). */
#include "base/assert.h"
#include "base/err.h"
#include "repl/node_priv.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

int
node_write_file(struct node *node, const struct replica_file *file)
{
    int err = replica_file_write(store_disk(node->config.store), file);

    if (err == 0) {
        node->config.file = *file;
    }
    return err;
}

int
node_promise(struct node *node, uint64_t term)
{
    struct replica_file file = node->config.file;
    int err;

    ASSERT(term > file.promised && term <= SEQ_TERM_MAX);
    file.promised = (uint32_t)term;
    err = node_write_file(node, &file);
    if (err == 0) {
        node->term = term;
        log_event(node->config.logger, "repl_role", LOG_INFO,
            "term %llu is promised", (unsigned long long)term);
    }
    return err;
}

/* True where the kernel may have lost what this node has acknowledged: another
 * one runs, and nothing says that all was synced. */
static bool
may_have_lost(const struct node *node)
{
    const struct replica_file *file = &node->config.file;

    return !file->is_clean && file->level != REPLICA_SYNCED &&
        memcmp(file->boot_id, node->config.boot_id, REPLICA_BOOT_BYTES) != 0;
}

int
node_begin_file(struct node *node)
{
    const struct node_config *config = &node->config;
    struct replica_file file = config->file;

    /* what the load has done is in it */
    if (replica_file_read(store_disk(config->store), &file) == 0) {
        node->control.is_member = file.cluster.len > 0 && file.promised > 0;
    }
    file.cluster = config->file.cluster; /* which it may be about to join */
    file.group = config->file.group;
    node->config.file = file;
    if (file.node.len > 0 && may_have_lost(node)) {
        file.is_doubtful = true;
        log_event(config->logger, "repl_role", LOG_WARNING,
            "the machine was started anew after a stop that was no clean "
            "one: what this node has acknowledged may be lost");
    }
    node_look(node);
    if (config->control_fd >= 0 && node->position.written == 0) {
        file.is_doubtful = true; /* whatever it had, it has no more */
    }
    file.epoch = node->directory.epoch;
    file.node = config->name; /* its group is one of by hand: not written */
    file.level = config->level;
    file.is_clean = false;
    memcpy(file.boot_id, config->boot_id, REPLICA_BOOT_BYTES);
    return node_write_file(node, &file);
}

static int
digit_of(char c)
{
    return c >= '0' && c <= '9' ? c - '0'
        : c >= 'a' && c <= 'f'  ? c - 'a' + 10
                                : -1;
}

/* The id is written as a UUID is: digits, and some hyphens. */
void
node_boot_id(uint8_t out[REPLICA_BOOT_BYTES])
{
    char text[64];
    size_t n = 0;
    ssize_t len = -1;
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);

    memset(out, 0, REPLICA_BOOT_BYTES);
    if (fd >= 0) {
        len = read(fd, text, sizeof text);
        close(fd);
    }
    for (ssize_t i = 0; i < len && n < REPLICA_BOOT_BYTES * 2; i++) {
        int digit = digit_of(text[i]);

        if (digit >= 0) {
            out[n / 2] = (uint8_t)(out[n / 2] << 4 | digit);
            n++;
        }
    }
}
