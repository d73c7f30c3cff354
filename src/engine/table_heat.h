/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_TABLE_HEAT_H
#define ENGINE_TABLE_HEAT_H

#include "engine/table.h"

/* How much a table is written: this decides which leaves memory first. It
 * counts the rounds of tend that found the table changed. Each such round
 * counts half as much after every TABLE_HEAT_HALF_MS; so one number says how
 * often and how lately, as in D. Lee et al., "LRFU", IEEE Trans. Computers 50
 * (2001). Writers only clear a mark that is set. A record that is changed all
 * the time counts like a few that are. Under the shard's lock. */

enum {
    TABLE_HEAT_HALF_MS = 600000,
    TABLE_HEAT_STEP_MS = TABLE_HEAT_HALF_MS / 20,
    TABLE_HEAT_STEPS_MAX = 2000 /* after which nothing is left of it */
};

/* 2^(-1/20) */
#define TABLE_HEAT_STEP 0.96593633f

/* One look. now_ms: tend's clock, which never goes back. */
static inline void
table_heat_look(struct table *table, uint64_t now_ms)
{
    if (table->heat_ms == 0 ||
        (now_ms - table->heat_ms) / TABLE_HEAT_STEP_MS >=
            TABLE_HEAT_STEPS_MAX) {
        table->heat = table->heat_ms == 0 ? table->heat : 0;
        table->heat_ms = now_ms;
    }
    while (now_ms - table->heat_ms >= TABLE_HEAT_STEP_MS) {
        table->heat *= TABLE_HEAT_STEP;
        table->heat_ms += TABLE_HEAT_STEP_MS;
    }
    if (!table->is_quiet) {
        table->is_quiet = true;
        table->heat += 1;
    }
}

/* What takes the place of n tables has the mean of their heats by records, so
 * that of a range stays when tables are joined. One that has only part of their
 * records has that part of it: the tables that are cut are those that grow, and
 * where they grow there was nothing to be written before. */
static inline void
table_heat_inherit(
    struct table *table, const struct table *const *from, unsigned n)
{
    double sum = 0, n_records = 0;
    for (unsigned i = 0; i < n; i++) {
        if (from[i] != NULL) {
            sum += (double)from[i]->heat * from[i]->n_records;
            n_records += from[i]->n_records;
            table->heat_ms = table->heat_ms < from[i]->heat_ms
                ? from[i]->heat_ms
                : table->heat_ms;
        }
    }
    if (n_records > 0) {
        double part = (double)table->n_records / n_records;
        table->heat = (float)(sum / n_records * (part < 1 ? part : 1));
    }
}

#endif
