/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CLI_VERIFY_H
#define CLI_VERIFY_H

/* tallyctl verify: compares a counter with what should be in it. argv[0] is the
 * command. Returns the exit status: 0 where nothing differs, or all that did
 * has been corrected; 1 where something does, or went wrong; 2 for a wrong
 * command line. One thread. */
int verify_main(int argc, char *const argv[]);

#endif
