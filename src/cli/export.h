/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CLI_EXPORT_H
#define CLI_EXPORT_H

/* tallyctl export: a counter's records as a file (cli/rows.h). argv[0] is the
 * command. Returns the exit status: 0 where the file is whole, 1 where it is
 * not, 2 for a wrong command line. One thread. */
int export_main(int argc, char *const argv[]);

#endif
