/* SPDX-License-Identifier: BSD-3-Clause */
/* tallyd with one rule taken out on purpose, to show that the tests of replicas
 * see that: its log has of a record only the columns that have changed, though
 * there are copies of the directory. It is linked with
 * --wrap=engine_set_whole, so that the wish for whole records gets lost. */
#include "engine/engine.h"
#include "server/server.h"

void __wrap_engine_set_whole(struct engine *engine, bool is_whole);

void
__wrap_engine_set_whole(struct engine *engine, bool is_whole)
{
    (void)engine;
    (void)is_whole;
}

int
main(int argc, char **argv)
{
    return server_run(argc, argv, NULL);
}
