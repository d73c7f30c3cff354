/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CLI_IMPORT_H
#define CLI_IMPORT_H

/* tallyctl import: records out of a file or another server. argv[0] is the
 * command. Returns the exit status: 0 where all of it is stored, 1 where
 * something is not, 2 for a wrong command line. One thread. */
int import_main(int argc, char *const argv[]);

#endif
