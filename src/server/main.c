/* SPDX-License-Identifier: BSD-3-Clause */
/* Starts the server. */
#include "server/server.h"

#include <stddef.h>

int
main(int argc, char **argv)
{
    return server_run(argc, argv, NULL);
}
