/* SPDX-License-Identifier: BSD-3-Clause */
/* One move of the same ids to the same group at a time: a second one, with a
 * --state of its own, would remove and bring what the first one has brought
 * already. So a move has a claim at the new group, a producer of numbered
 * changes, for these are durable there and go with its log:
 *
 *   reshard-MOVE-WHO    MOVE: 8 hexadecimal digits of the rule and the new
 *                       group; WHO: 12 of the machine and the --state
 *
 * WHO is reckoned, and not kept, so that the same command has the same claim,
 * also where its file was lost. It is looked for at each connection, before a
 * line is sent. Two that begin at once may both see each other, and both end
 * then; never does neither. */
#include "cli/reshard_priv.h"

#include "base/assert.h"
#include "base/checksum.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WHO_BITS = 48, MACHINE_BYTES = 300 };

/* What differs from machine to machine. */
static uint64_t
machine_sum(void)
{
    char text[MACHINE_BYTES] = "";
    FILE *file = fopen("/etc/machine-id", "re");
    if (file == NULL || fgets(text, sizeof text, file) == NULL) {
        (void)gethostname(text, sizeof text - 1);
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return checksum64(text, strlen(text), 0);
}

enum reshard_went
reshard__name_claim(struct reshard *move, const char *lock_path)
{
    const struct reshard_state *state = &move->state;
    char *path = realpath(lock_path, NULL);
    if (path == NULL) {
        return reshard__fail(
            move, "--state=%.120s cannot be found", move->setup.state);
    }
    uint64_t who = checksum64(path, strlen(path), machine_sum());
    uint64_t what = checksum64(state->to, strlen(state->to),
        checksum64(state->rule, strlen(state->rule), 0));
    free(path);
    int n = snprintf(move->claim, sizeof move->claim,
        "reshard-%08" PRIx32 "-%012" PRIx64, (uint32_t)what,
        who & ((UINT64_C(1) << WHO_BITS) - 1));
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
