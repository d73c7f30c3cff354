/* SPDX-License-Identifier: BSD-3-Clause */
/* A build without etcd. */
#include "base/err.h"
#include "server/etcd_option.h"

bool
etcd_option_is_endpoint(const char *url)
{
    (void)url;
    return false;
}

int
etcd_option_start(const struct options *options, int *pair_fd, struct buf *why)
{
    (void)options;
    (void)pair_fd;
    buf_add_text(why, "this build cannot speak with etcd");
    return ERR_BAD_OPTION;
}
