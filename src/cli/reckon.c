/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers of a record are those of the posts of doc/measurements.md: most are
 * small, more than half are 0. */
#include "cli/reckon.h"

#include "base/assert.h"

#include <stddef.h>

enum { SECONDS_A_DAY = 86400, MEASURED_COLUMNS = 3 };

const struct reckon_constants reckon_constants = {
#define X(name, value, text) .name = (value),
    RECKON_CONSTANTS(X)
#undef X
};

static const struct {
    unsigned columns;
    double hot, cold;
} by_columns[] = {
#define X(columns, hot, cold) {columns, hot, cold},
    RECKON_COLUMNS(X)
#undef X
};

static const struct {
    const char *name;
    double hot, cold, log;
} by_ids[RECKON_IDS_N] = {
#define X(id, name, text, hot, cold, log)                                     \
    [RECKON_##id] = {name, hot, cold, log},
    RECKON_IDS(X)
#undef X
};

const char *
reckon_ids_name(enum reckon_ids ids)
{
    ASSERT(ids < RECKON_IDS_N);
    return by_ids[ids].name;
}

/* Of a record with snowflake ids and so many columns. */
static void
take_columns(unsigned columns, double *hot, double *cold)
{
    size_t i = 1;
    ASSERT(columns >= 1 && columns <= 16);
    while (by_columns[i].columns < columns) {
        i++;
    }
    double share = (double)(columns - by_columns[i - 1].columns) /
        (double)(by_columns[i].columns - by_columns[i - 1].columns);
    *hot = by_columns[i - 1].hot +
        share * (by_columns[i].hot - by_columns[i - 1].hot);
    *cold = by_columns[i - 1].cold +
        share * (by_columns[i].cold - by_columns[i - 1].cold);
}

void
reckon(const struct reckon_question *question, struct reckon_answer *answer)
{
    const struct reckon_constants *with = &reckon_constants;
    double hot = 0, cold = 0, hot_three = 0, cold_three = 0;
    ASSERT(question->records > 0 && question->ids < RECKON_IDS_N);
    ASSERT(question->hot_share > 0 && question->hot_share <= 1);
    take_columns(question->columns, &hot, &cold);
    take_columns(MEASURED_COLUMNS, &hot_three, &cold_three);
    /* the id takes the same, however many columns stand behind it */
    hot += by_ids[question->ids].hot - hot_three;
    cold += by_ids[question->ids].cold - cold_three;
    double n_hot = question->records * question->hot_share;
    double n_cold = question->records - n_hot;
    double log_most = with->log_max, log = by_ids[question->ids].log;
    *answer = (struct reckon_answer){
        .hot_record = hot * with->loose,
        .cold_record = cold,
        .log_change = log,
        .hot_memory = n_hot * hot * with->loose / with->seal_share,
        .segments = n_cold * cold * with->segment_copies,
        .images =
            n_hot * (with->image_bytes + hot - hot_three) * with->image_copies,
        .log = log_most,
        .log_day = question->changes * log * SECONDS_A_DAY,
        .start_records = n_hot,
        .start_changes = log_most / log,
        .start_s_least = n_hot / with->load_rate,
    };
    answer->memory =
        answer->hot_memory + n_cold * with->cold_index + with->other_memory;
    answer->disk = answer->segments + answer->images + answer->log;
    answer->written_day = answer->log_day * with->written;
    answer->start_s_most =
        answer->start_s_least + answer->start_changes / with->replay_rate;
}
