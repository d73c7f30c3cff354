/* SPDX-License-Identifier: BSD-3-Clause */
/* The ids are in a file without a name before the command is begun, so it may
 * answer while it reads: nobody waits for the other. It is heard to its end, or
 * for as long as it may take; then it is ended, with its children. */
#include "cli/truth.h"

#include "base/assert.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/num.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    READ_BYTES = 1 << 16,
    /* A line has up to 17 numbers of 20 digits; who aligns them has room. */
    ANSWER_BYTES_MAX = TRUTH_BATCH_MAX * 4096,
    GRACE_MS = 2000, /* from SIGTERM to SIGKILL */
    NAP_MS = 2,
    NAP_MS_MAX = 100, /* until a signal is seen */
    NS_PER_MS = 1000000,
    MS_PER_S = 1000
};

static bool
fail(struct truth *truth, const char *why)
{
    (void)snprintf(truth->why, sizeof truth->why, "--truth: %s", why);
    return false;
}

static FILE *
write_ids(const struct rows_id *id, unsigned n)
{
    FILE *file = tmpfile();
    struct buf text = {0};
    for (unsigned i = 0; i < n; i++) {
        rows_put_id(&id[i], &text);
        buf_add_text(&text, "\n");
    }
    bool is_written = file != NULL && !text.failed &&
        fwrite(text.data, 1, text.len, file) == text.len;
    buf_fini(&text);
    if (is_written && fflush(file) == 0) {
        rewind(file);
        return file;
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return NULL;
}

/* Begins the command with these as its input and output. 0 or an errno
 * value. Signals that are blocked here are not for it. It is the first of a new
 * group of processes, whose number is its own. */
static int
begin(const char *command, int in, int out, pid_t *pid)
{
    static char shell[] = "/bin/sh", option[] = "-c";
    char *text = strdup(command);
    char *const words[] = {shell, option, text, NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none;
    (void)sigemptyset(&none);
    int err = text == NULL ? ENOMEM : posix_spawn_file_actions_init(&files);
    if (err == 0) {
        err = posix_spawnattr_init(&attributes);
        if (err == 0) {
            (void)posix_spawn_file_actions_adddup2(&files, in, STDIN_FILENO);
            (void)posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
            (void)posix_spawnattr_setsigmask(&attributes, &none);
            (void)posix_spawnattr_setpgroup(&attributes, 0);
            (void)posix_spawnattr_setflags(
                &attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
            err = posix_spawn(pid, shell, &files, &attributes, words, environ);
            (void)posix_spawnattr_destroy(&attributes);
        }
        (void)posix_spawn_file_actions_destroy(&files);
    }
    free(text);
    return err;
}

/* The next word of the line, which spaces or tabs part. */
static bool
word(char **at, char **out)
{
    *at += strspn(*at, " \t");
    *out = *at;
    *at += strcspn(*at, " \t\r\n");
    if (*out == *at) {
        return false;
    }
    if (**at != '\0') {
        *(*at)++ = '\0';
    }
    return true;
}

static bool
number(const char *text, uint64_t *out)
{
    return num_parse_u64(text, strlen(text), out);
}

/* True where the word is that id: a number may have zeroes in front. */
static bool
is_id(const char *text, const struct rows_id *wanted)
{
    uint64_t id = 0;
    return wanted->name == NULL ? number(text, &id) && id == wanted->number
                                : strlen(text) == wanted->len &&
            memcmp(text, wanted->name, wanted->len) == 0;
}

static bool
take_line(const struct truth *truth, char *line, const struct rows_id *wanted,
    uint64_t *out, bool *is_known)
{
    char *at = line, *text;
    if (!word(&at, &text) || !is_id(text, wanted)) {
        return false;
    }
    *is_known = true;
    for (unsigned i = 0; i < truth->n_columns; i++) {
        if (!word(&at, &text)) {
            return false;
        }
        if (i == 0 && strcmp(text, "-") == 0) {
            *is_known = false;
            break;
        }
        if (!number(text, &out[i])) {
            return false;
        }
    }
    return !word(&at, &text);
}

/* The next line of the answer, as a text that ends where it ended. NULL: there
 * is none. */
static char *
next_line(struct buf *answer, size_t *at)
{
    char *line = answer->data + *at;
    size_t left = answer->len - *at;
    if (left == 0) {
        return NULL;
    }
    char *end = memchr(line, '\n', left - 1); /* the last byte is a 0 */
    if (end != NULL) {
        *end = '\0';
        *at += (size_t)(end - line) + 1;
    } else {
        *at = answer->len;
    }
    return line[0] == '\0' && end == NULL ? NULL : line;
}

static bool
take_lines(struct truth *truth, struct buf *answer, const struct rows_id *id,
    unsigned n, uint64_t *out, bool *is_known)
{
    size_t at = 0;
    buf_add(answer, "", 1);
    if (answer->failed) {
        return fail(truth, "out of memory");
    }
    for (unsigned i = 0; i < n; i++) {
        char *line = next_line(answer, &at);
        if (line == NULL) {
            return fail(truth, "it answered fewer lines than ids");
        }
        if (!take_line(truth, line, &id[i], &out[(size_t)i * truth->n_columns],
                &is_known[i])) {
            return fail(truth,
                "a line is not ID and a number a column, or \"ID -\", in the "
                "order of the ids");
        }
    }
    return next_line(answer, &at) == NULL ||
        fail(truth, "it answered more lines than ids");
}

/* ---- the command ---- */

static uint64_t
now_ms(void)
{
    return clock_monotonic_ns() / NS_PER_MS;
}

/* True with why where it is time to end it. */
static bool
is_late(struct truth *truth, uint64_t until_ms)
{
    if (truth->stop != NULL && stop_is_asked(truth->stop)) {
        return !fail(truth, "ended before it had answered");
    }
    if (now_ms() < until_ms) {
        return false;
    }
    (void)snprintf(truth->why, sizeof truth->why,
        "--truth: it did not end within %" PRIu32 " s, and has been ended",
        truth->timeout_s);
    return true;
}

/* Reads all that it answers. False with why. */
static bool
read_all(struct truth *truth, int fd, uint64_t until_ms, struct buf *out)
{
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    while (out->len <= ANSWER_BYTES_MAX) {
        if (is_late(truth, until_ms)) {
            return false;
        }
        int n = poll(&wait, 1, NAP_MS_MAX);
        if (n == 0 || (n < 0 && errno == EINTR)) {
            continue;
        }
        char *room = n < 0 ? NULL : buf_reserve(out, READ_BYTES);
        ssize_t got = room == NULL ? -1 : read(fd, room, READ_BYTES);
        if (got < 0) {
            return fail(
                truth, strerror(room == NULL && n > 0 ? ENOMEM : errno));
        }
        if (got == 0) {
            return true;
        }
        out->len += (size_t)got;
    }
    return fail(truth, "it does not stop to answer");
}

static bool
has_ended(pid_t pid, int *status)
{
    pid_t got = waitpid(pid, status, WNOHANG);
    return got == pid || (got < 0 && errno != EINTR);
}

/* Nothing but looking says that a process has ended: signals are tallyctl's. */
static void
nap(void)
{
    (void)poll(NULL, 0, NAP_MS);
}

/* Ends it with what it has begun: they are a group of processes. */
static void
kill_all(pid_t pid, bool is_over)
{
    int status = 0;
    uint64_t until_ms = now_ms() + GRACE_MS;
    (void)kill(-pid, SIGTERM);
    while (!is_over && now_ms() < until_ms) {
        is_over = has_ended(pid, &status);
        nap();
    }
    (void)kill(-pid, SIGKILL);
    while (!is_over && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
}

/* What it answers, up to its end with status 0. False with why; nothing that
 * it has begun is left then. */
static bool
hear(struct truth *truth, int from, pid_t pid, struct buf *answer)
{
    uint64_t until_ms = now_ms() + (uint64_t)truth->timeout_s * MS_PER_S;
    int status = 0;
    bool is_right = read_all(truth, from, until_ms, answer);
    bool is_over = false;
    while (is_right && !is_over) {
        is_over = has_ended(pid, &status);
        is_right = is_over || !is_late(truth, until_ms);
        if (!is_over) {
            nap();
        }
    }
    if (is_right && (!WIFEXITED(status) || WEXITSTATUS(status) != 0)) {
        is_right = fail(truth, "it did not end with status 0");
    }
    if (!is_right) {
        kill_all(pid, is_over);
    }
    return is_right;
}

static bool
run(struct truth *truth, int in, struct buf *answer)
{
    int pair[2];
    pid_t pid = 0;
    ASSERT(truth->timeout_s > 0);
    if (pipe2(pair, O_CLOEXEC) != 0) {
        return fail(truth, strerror(errno));
    }
    int err = begin(truth->command, in, pair[1], &pid);
    (void)close(pair[1]);
    bool is_right = err == 0 ? hear(truth, pair[0], pid, answer)
                             : fail(truth, strerror(err));
    (void)close(pair[0]);
    return is_right;
}

bool
truth_ask(struct truth *truth, const struct rows_id *id, unsigned n,
    uint64_t *out, bool *is_known)
{
    FILE *ids = write_ids(id, n);
    if (ids == NULL) {
        return fail(truth, "the ids cannot be written to a file");
    }
    struct buf answer = {0};
    bool is_right = run(truth, fileno(ids), &answer) &&
        take_lines(truth, &answer, id, n, out, is_known);
    buf_fini(&answer);
    (void)fclose(ids);
    return is_right;
}
