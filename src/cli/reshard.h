/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CLI_RESHARD_H
#define CLI_RESHARD_H

/* tallyctl reshard: moves the ids of a rule to a new group while they change.
 * argv[0] is the command. Returns the exit status: 0 where the new group has
 * taken over, 1 where it has not, 2 for a wrong command line. One thread. */
int reshard_main(int argc, char *const argv[]);

#endif
