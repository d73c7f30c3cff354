/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CLI_PING_H
#define CLI_PING_H

/* tallyctl ping: does a server answer, and is it ready? The exit status. */
int ping_main(int argc, char *const argv[]);

#endif
