/* SPDX-License-Identifier: BSD-3-Clause */
/* What people see of a move. */
#include "cli/ask.h"
#include "cli/json.h"
#include "cli/reshard_priv.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void
add_lag(const struct reshard *move, char *out, size_t size)
{
    if (move->lag_ms == UINT64_MAX) {
        (void)snprintf(out, size, "not known");
    } else {
        (void)snprintf(out, size, "%" PRIu64 " ms", move->lag_ms);
    }
}

void
reshard__show(struct reshard *move, bool is_due)
{
    struct reshard_shown *shown = &move->shown;
    char phase[64], lag[32], behind[64];
    if (!is_due && !shown_is_due(&shown->line)) {
        return;
    }
    add_lag(move, lag, sizeof lag);
    (void)snprintf(behind, sizeof behind, ", lag %s", lag);
    (void)snprintf(
        phase, sizeof phase, "%s: ", reshard_phase_text(move->state.phase));
    shown->line.all = shown->total;
    shown_line(&shown->line, phase, shown->lines,
        move->state.phase == RESHARD_DUMP ? shown->copied : 0, behind, is_due);
}

bool
reshard__say_json(const struct reshard *move, enum reshard_went went)
{
    const struct reshard_setup *setup = &move->setup;
    struct buf out = {0};
    struct json json = {.out = &out};
    json_open(&json, NULL, '{');
    json_text(&json, "ids", setup->rule);
    json_text(&json, "from", setup->from_name);
    json_text(&json, "to", setup->to_name);
    json_bool(&json, "is_done", went == RESHARD_OK);
    if (move->has_state) {
        json_text(&json, "phase", reshard_phase_word(move->state.phase));
        json_u64(&json, "lines", move->shown.lines);
    }
    if (went != RESHARD_OK) {
        json_text(&json, "why",
            went == RESHARD_STOP ? "ended by a signal" : move->why);
    }
    json_close(&json);
    return ask_write(&out) == EXIT_SUCCESS;
}

void
reshard__trouble(struct reshard *move, const char *what)
{
    struct reshard_shown *shown = &move->shown;
    uint64_t now = reshard__now_ms();
    bool is_said =
        strncmp(shown->trouble, what, sizeof shown->trouble - 1) == 0 &&
        now - shown->trouble_ms < RESHARD_TROUBLE_MS;
    if (is_said || move->stop.is_asked) {
        return;
    }
    (void)snprintf(shown->trouble, sizeof shown->trouble, "%s", what);
    shown->trouble_ms = now;
    (void)fprintf(stderr, "%stallyctl: %s; it is tried again\n",
        shown_over(&shown->line), what);
}
