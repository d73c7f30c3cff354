/* SPDX-License-Identifier: BSD-3-Clause */
/* One move of the same ids to the same group at a time: a second one, with a
 * --state of its own, would remove and bring what the first one has brought
 * already. So a move has a claim at the new group, a producer of numbered
 * changes, for these are durable there and go with its log:
 *
 *   reshard-MOVE-CLAIM  MOVE: 8 hexadecimal digits of the rule and the new
 *                       group; CLAIM: 12, at random, which are in the file
 *
 * So whoever has the file, or a copy of it, goes on with the move. It is looked
 * for at each connection, before a line is sent. Two that begin at once may
 * both see each other, and both end then; never does neither.
 *
 * What can go wrong: `stats producers` shows the 1,000 oldest. A group that had
 * so many before the move began does not show the claim. */
#include "cli/reshard_priv.h"

#include "base/assert.h"
#include "base/checksum.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

enum { CLAIM_BITS = 48 };

enum reshard_went
reshard__name_claim(struct reshard *move)
{
    struct reshard_state *state = &move->state;
    while (state->claim == 0) {
        if (getrandom(&state->claim, sizeof state->claim, 0) !=
            sizeof state->claim) {
            return reshard__fail(move, "no random numbers for a claim");
        }
        state->claim &= (UINT64_C(1) << CLAIM_BITS) - 1;
    }
    uint64_t what = checksum64(state->to, strlen(state->to),
        checksum64(state->rule, strlen(state->rule), 0));
    int n = snprintf(move->claim, sizeof move->claim,
        "reshard-%08" PRIx32 "-%012" PRIx64, (uint32_t)what, state->claim);
    ASSERT(n == (int)sizeof move->claim - 1);
    return RESHARD_OK;
}

bool
reshard__has_rival(
    struct reshard *move, const struct buf *producers, char rival[])
{
    char wanted[sizeof "STAT reshard-12345678-"];
    const char *at = producers->data;
    (void)snprintf(wanted, sizeof wanted, "STAT %.17s", move->claim);
    size_t len = strlen(wanted), claim_len = strlen(move->claim);
    for (; (at = strstr(at, wanted)) != NULL; at += len) {
        const char *name = at + sizeof "STAT " - 1;
        if (strncmp(name, move->claim, claim_len) != 0 &&
            strcspn(name, ":\n") == claim_len) {
            memcpy(rival, name, claim_len);
            rival[claim_len] = '\0';
            return true;
        }
    }
    return false;
}

enum reshard_went
reshard__rivalled(struct reshard *move, const char *rival)
{
    return reshard__fail(move,
        "another tallyctl, with another --state, moves these ids to %.80s "
        "already. Go on with that one; where it is over for good say to the "
        "new group: drop producer %s",
        move->state.to, rival);
}

enum reshard_went
reshard__claim(struct reshard *move)
{
    char line[sizeof move->claim + 32], rival[sizeof move->claim];
    int n = snprintf(line, sizeof line, "numbers %s 1 1\n", move->claim);
    enum reshard_went went = reshard__send(move, line, (size_t)n, 1);
    if (went == RESHARD_OK) {
        went = reshard__ask_new(move, "stats producers\r\n");
    }
    if (went != RESHARD_OK ||
        !reshard__has_rival(move, &move->answer, rival)) {
        return went;
    }
    went = reshard__release(move);
    return went == RESHARD_OK ? reshard__rivalled(move, rival) : went;
}

enum reshard_went
reshard__release(struct reshard *move)
{
    char line[sizeof move->claim + 32];
    int n = snprintf(line, sizeof line, "drop producer %s\n", move->claim);
    return reshard__send(move, line, (size_t)n, 1);
}
