/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CLI_SCHEMA_COMMAND_H
#define CLI_SCHEMA_COMMAND_H

/* tallyctl schema: shows the schema of a server, compares it with a file, or
 * makes it that of the file. The exit status. */
int schema_command_main(int argc, char *const argv[]);

#endif
