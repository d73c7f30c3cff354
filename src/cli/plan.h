/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CLI_PLAN_H
#define CLI_PLAN_H

/* tallyctl plan: memory, disk and start of a server to be. The exit status. */
int plan_main(int argc, char *const argv[]);

#endif
