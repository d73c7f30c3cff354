/* SPDX-License-Identifier: BSD-3-Clause */
/* The ids are in a file without a name before the command is begun, so it may
 * answer while it reads: nobody waits for the other. */
#include "cli/truth.h"

#include "base/num.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static bool
fail(struct truth *truth, const char *why)
{
    (void)snprintf(truth->why, sizeof truth->why, "--truth: %s", why);
    return false;
}

static FILE *
write_ids(const uint64_t *id, unsigned n)
{
    FILE *file = tmpfile();
    bool is_written = file != NULL;
    for (unsigned i = 0; is_written && i < n; i++) {
        is_written = fprintf(file, "%" PRIu64 "\n", id[i]) > 0;
    }
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
 * value. Signals that are blocked here are not for it. */
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
            (void)posix_spawnattr_setflags(
                &attributes, POSIX_SPAWN_SETSIGMASK);
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

static bool
take_line(const struct truth *truth, char *line, uint64_t wanted,
    uint64_t *out, bool *is_known)
{
    uint64_t id = 0;
    char *at = line, *text;
    if (!word(&at, &text) || !number(text, &id) || id != wanted) {
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

static bool
take_lines(struct truth *truth, FILE *from, const uint64_t *id, unsigned n,
    uint64_t *out, bool *is_known)
{
    char *line = NULL;
    size_t room = 0;
    bool is_right = true;
    for (unsigned i = 0; is_right && i < n; i++) {
        if (getline(&line, &room, from) < 0) {
            is_right = fail(truth, "it answered fewer lines than ids");
        } else if (!take_line(truth, line, id[i],
                       &out[(size_t)i * truth->n_columns], &is_known[i])) {
            is_right = fail(truth,
                "a line is not ID and a number a column, or \"ID -\", in the "
                "order of the ids");
        }
    }
    if (is_right && getline(&line, &room, from) >= 0) {
        is_right = fail(truth, "it answered more lines than ids");
    }
    free(line);
    return is_right;
}

static bool
run(struct truth *truth, int in, const uint64_t *id, unsigned n, uint64_t *out,
    bool *is_known)
{
    int pair[2], status = 0;
    pid_t pid = 0;
    /* the command has no end of it that is read: where nobody reads any more
     * it is told so, and ends */
    if (pipe2(pair, O_CLOEXEC) != 0) {
        return fail(truth, strerror(errno));
    }
    int err = begin(truth->command, in, pair[1], &pid);
    (void)close(pair[1]);
    FILE *from = fdopen(pair[0], "r");
    bool is_right = err == 0 && from != NULL
        ? take_lines(truth, from, id, n, out, is_known)
        : fail(truth, strerror(err != 0 ? err : errno));
    if (from != NULL) {
        (void)fclose(from);
    } else {
        (void)close(pair[0]);
    }
    if (err == 0) {
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
        }
    }
    if (is_right && (!WIFEXITED(status) || WEXITSTATUS(status) != 0)) {
        is_right = fail(truth, "it did not end with status 0");
    }
    return is_right;
}

bool
truth_ask(struct truth *truth, const uint64_t *id, unsigned n, uint64_t *out,
    bool *is_known)
{
    FILE *ids = write_ids(id, n);
    if (ids == NULL) {
        return fail(truth, "the ids cannot be written to a file");
    }
    bool is_right = run(truth, fileno(ids), id, n, out, is_known);
    (void)fclose(ids);
    return is_right;
}
