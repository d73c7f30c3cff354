/* SPDX-License-Identifier: BSD-3-Clause */
/* tallyd with a store that parks calls at random: every transcript must read
 * the same through it. TALLYD_PARK_SEED in the environment chooses which. */
#include "lib/park.h"
#include "server/server.h"

#include <stdlib.h>

static int
wrap(struct store *inner, struct store **out)
{
    const char *seed = getenv("TALLYD_PARK_SEED");
    return park_create(
        inner, seed == NULL ? 1 : strtoull(seed, NULL, 10), out);
}

int
main(int argc, char **argv)
{
    static const struct server_hooks hooks = {
        .wrap_fn = wrap, .unwrap_fn = park_destroy};
    return server_run(argc, argv, &hooks);
}
