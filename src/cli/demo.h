/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CLI_DEMO_H
#define CLI_DEMO_H

/* tallyctl demo: a million posts in a server, what they take, and how fast
 * pages of them are read. The exit status. */
int demo_main(int argc, char *const argv[]);

#endif
