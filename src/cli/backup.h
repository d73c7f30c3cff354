/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CLI_BACKUP_H
#define CLI_BACKUP_H

/* tallyctl backup DIR: copies the data directory of a running server as it is
 * at one moment; tallyctl backup verify DIR: looks whether that is still so.
 * tallyctl restore DIR --to=DATA: makes a data directory of it. argv[0] is the
 * command. Returns the exit status: 0, 1 where it has not been done, 2 for a
 * wrong command line. One thread. */
int backup_main(int argc, char *const argv[]);
int restore_main(int argc, char *const argv[]);

#endif
