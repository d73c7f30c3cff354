/* SPDX-License-Identifier: BSD-3-Clause */
/* The file of a move:
 *
 *   tallyctl reshard 2
 *   claim CLAIM             12 hexadecimal digits
 *   rule RULE
 *   from NAME
 *   to NAME
 *   phase WORD
 *   cut yes|no
 *   source EPOCH SEED SHARDS
 *   history BYTES           of wal/history.h, in hexadecimal; "-": none
 *   position SEQ
 *   connection OWN PEER     "-": none
 *   dumped NAME,NAME,...    "-": none
 *   sum SUM                 XXH3 of all before, in 16 hexadecimal digits
 *
 * One that was begun before there were claims has "1", and no such line.
 *
 * What is read is right where it would be written so again, byte by byte. */
#include "cli/reshard_state.h"

#include "base/assert.h"
#include "base/checksum.h"
#include "base/disk.h"
#include "base/disk_whole.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    FILE_BYTES_MAX = 16384,
    PATH_BYTES_MAX = 4096,
    HISTORY_DIGITS_MAX = 2 * HISTORY_BYTES_MAX
};

_Static_assert(RESHARD_RULE_MAX == 63 && RESHARD_NAME_MAX == 255 &&
        RESHARD_OWN_MAX == 63 && HISTORY_DIGITS_MAX == 2818 &&
        RESHARD_DUMPED_MAX == 8447,
    "as scan has them");

static const struct {
    const char *word, *text;
} phases[RESHARD_PHASES_N] = {
#define X(name, word, text) [RESHARD_##name] = {word, text},
    RESHARD_PHASES(X)
#undef X
};

const char *
reshard_phase_word(enum reshard_phase phase)
{
    ASSERT(phase < RESHARD_PHASES_N);
    return phases[phase].word;
}

const char *
reshard_phase_text(enum reshard_phase phase)
{
    ASSERT(phase < RESHARD_PHASES_N);
    return phases[phase].text;
}

void
reshard_state_put(const struct reshard_state *state, struct buf *out)
{
    uint8_t history[HISTORY_BYTES_MAX];
    size_t before = out->len, len = history_put(&state->history, history);
    if (state->claim == 0) {
        buf_add_text(out, "tallyctl reshard 1\n");
    } else {
        buf_addf(
            out, "tallyctl reshard 2\nclaim %012" PRIx64 "\n", state->claim);
    }
    buf_addf(out,
        "rule %s\nfrom %s\nto %s\nphase %s\ncut %s\n"
        "source %" PRIu64 " %" PRIu64 " %" PRIu32 "\nhistory ",
        state->rule, state->from, state->to, phases[state->phase].word,
        state->is_cut_asked ? "yes" : "no", state->epoch, state->seed,
        state->shards);
    for (size_t i = 0; i < len; i++) {
        buf_addf(out, "%02x", history[i]);
    }
    buf_addf(out, "\nposition %" PRIu64 "\nconnection %s %s\ndumped %s\n",
        state->position, state->own, state->peer, state->dumped);
    if (!out->failed) {
        buf_addf(out, "sum %016" PRIx64 "\n",
            checksum64(out->data + before, out->len - before, 0));
    }
}

static bool
get_history(const char *digits, struct history *out)
{
    uint8_t bytes[HISTORY_BYTES_MAX];
    size_t len = strlen(digits) / 2;
    const uint8_t *at = bytes;
    for (size_t i = 0; i < len; i++) {
        unsigned byte = 0;
        if (sscanf(digits + 2 * i, "%2x", &byte) != 1) {
            return false;
        }
        bytes[i] = (uint8_t)byte;
    }
    return history_get(&at, bytes + len, out) && at == bytes + len;
}

static bool
get_phase(const char *word, enum reshard_phase *out)
{
    for (unsigned i = 0; i < RESHARD_PHASES_N; i++) {
        if (strcmp(phases[i].word, word) == 0) {
            *out = (enum reshard_phase)i;
            return true;
        }
    }
    return false;
}

static bool
scan(struct reshard_state *state, const char *text)
{
    char word[16] = "", cut[4] = "", digits[HISTORY_DIGITS_MAX + 1] = "";
    int head = 0;
    *state = (struct reshard_state){0};
    if (sscanf(text, "tallyctl reshard 2 claim %12" SCNx64 "%n", &state->claim,
            &head) != 1) {
        state->claim = 0;
        (void)sscanf(text, "tallyctl reshard 1%n", &head);
    }
    int n = sscanf(text + head,
        " rule %63s from %255s to %255s phase %15s cut %3s "
        "source %" SCNu64 " %" SCNu64 " %" SCNu32
        " history %2818s position %" SCNu64
        " connection %63s %255s dumped %8447s",
        state->rule, state->from, state->to, word, cut, &state->epoch,
        &state->seed, &state->shards, digits, &state->position, state->own,
        state->peer, state->dumped);
    state->is_cut_asked = strcmp(cut, "yes") == 0;
    return n == 13 && get_phase(word, &state->phase) &&
        get_history(digits, &state->history);
}

bool
reshard_state_get(struct reshard_state *state, const char *text, size_t len)
{
    char ended[FILE_BYTES_MAX + 1];
    struct buf again = {0};
    if (len > FILE_BYTES_MAX) {
        return false;
    }
    memcpy(ended, text, len);
    ended[len] = '\0';
    if (!scan(state, ended)) {
        return false;
    }
    reshard_state_put(state, &again);
    bool is_same = !again.failed && again.len == len &&
        memcmp(again.data, text, len) == 0;
    buf_fini(&again);
    return is_same;
}

bool
reshard_state_is_dumped(const struct reshard_state *state, const char *name)
{
    size_t len = strlen(name);
    for (const char *at = state->dumped; at != NULL;) {
        if (strncmp(at, name, len) == 0 &&
            (at[len] == ',' || at[len] == '\0')) {
            return true;
        }
        at = strchr(at, ',');
        at += at != NULL;
    }
    return false;
}

void
reshard_state_set_dumped(struct reshard_state *state, const char *name)
{
    bool is_first = strcmp(state->dumped, "-") == 0;
    size_t len = is_first ? 0 : strlen(state->dumped);
    if (!reshard_state_is_dumped(state, name)) {
        int n = snprintf(state->dumped + len, sizeof state->dumped - len,
            "%s%s", is_first ? "" : ",", name);
        ASSERT(n > 0 && (size_t)n < sizeof state->dumped - len);
    }
}

void
reshard_state_clear_dumped(struct reshard_state *state)
{
    memcpy(state->dumped, "-", sizeof "-");
}

/* ---- the file ---- */

/* Opens the directory of a path as a disk; *name points into path. 0 or an
 * errno value. */
static int
open_dir(const char *path, struct disk **disk, int *fd, const char **name)
{
    char dir[PATH_BYTES_MAX];
    const char *slash = strrchr(path, '/');
    size_t len = slash == NULL ? 0 : (size_t)(slash - path) + 1;
    if (len >= sizeof dir) {
        return ENAMETOOLONG;
    }
    memcpy(dir, path, len);
    dir[len] = '\0';
    *name = path + len;
    *fd = open(len == 0 ? "." : dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*fd < 0) {
        return errno;
    }
    int err = disk_real_create(*fd, disk);
    if (err != 0) {
        (void)close(*fd);
    }
    return err;
}

int
reshard_state_read(const char *path, struct reshard_state *state)
{
    struct disk *disk = NULL;
    const char *name = NULL;
    uint8_t *bytes = NULL;
    size_t len = 0;
    int fd = -1;
    int err = open_dir(path, &disk, &fd, &name);
    if (err != 0) {
        return err;
    }
    err = disk_whole_read(disk, name, FILE_BYTES_MAX, &bytes, &len);
    if (err == 0 && !reshard_state_get(state, (const char *)bytes, len)) {
        err = EBADMSG;
    } else if (err == ENOENT) {
        *state =
            (struct reshard_state){.own = "-", .peer = "-", .dumped = "-"};
        err = 0;
    }
    free(bytes);
    disk_real_destroy(&disk);
    (void)close(fd);
    return err == EFBIG || err == DISK_NOT_REGULAR ? EBADMSG : err;
}

int
reshard_state_write(const char *path, const struct reshard_state *state)
{
    struct disk *disk = NULL;
    const char *name = NULL;
    struct buf text = {0};
    char name_new[PATH_BYTES_MAX];
    int fd = -1;
    int err = open_dir(path, &disk, &fd, &name);
    if (err != 0) {
        return err;
    }
    reshard_state_put(state, &text);
    int n = snprintf(name_new, sizeof name_new, "%s.new", name);
    err = text.failed ? ENOMEM
        : n < 0 || (size_t)n >= sizeof name_new
        ? ENAMETOOLONG
        : disk_whole_replace(disk, name, name_new, text.data, text.len, NULL);
    buf_fini(&text);
    disk_real_destroy(&disk);
    (void)close(fd);
    return err;
}
