/* SPDX-License-Identifier: BSD-3-Clause */
/* Keeps the rule of --owns while the server runs. A file that is read again
 * becomes the rule whole, or nothing of it does. Workers read the rule once a
 * turn, as readers of the store's qsbr: the next reload frees the old one,
 * when its grace period is mostly long over, or the stop does. */
#include "server/owning.h"

#include "base/assert.h"
#include "base/err.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Appends the file's bytes to *text. */
static int
read_fd(int fd, const char *path, struct buf *text, struct buf *why)
{
    enum { PIECE = 4096 };
    struct stat info;
    ssize_t got = 1;
    if (fstat(fd, &info) == 0 && !S_ISREG(info.st_mode)) {
        buf_addf(why, "%s is not a file", path);
        return ERR_SYSTEM;
    }
    while (got > 0 && text->len <= OWNS_TEXT_BYTES_MAX) {
        char *room = buf_reserve(text, PIECE);
        if (room == NULL) {
            buf_add_text(why, err_text(ERR_NO_MEMORY));
            return ERR_NO_MEMORY;
        }
        got = read(fd, room, PIECE);
        if (got < 0 && errno == EINTR) {
            got = 1;
        } else if (got > 0) {
            text->len += (size_t)got;
        }
    }
    if (got < 0) {
        buf_addf(why, "cannot read %s: %s", path, strerror(errno));
        return ERR_SYSTEM;
    }
    if (got > 0) {
        buf_addf(why, "%s is longer than %d bytes", path, OWNS_TEXT_BYTES_MAX);
        return ERR_TOO_LARGE;
    }
    return 0;
}

/* The rule in the file. */
static int
read_file(const char *path, struct owns **out, struct buf *why)
{
    struct buf text = {0};
    /* non-blocking: a pipe of that name must not hold us up */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        buf_addf(why, "cannot open %s: %s", path, strerror(errno));
        return ERR_SYSTEM;
    }
    int err = read_fd(fd, path, &text, why);
    close(fd);
    if (err == 0) {
        size_t before = why->len;
        buf_addf(why, "%s: ", path);
        err = owns_create(text.len == 0 ? "" : text.data, text.len, out, why);
        why->len = err == 0 ? before : why->len;
    }
    buf_fini(&text);
    return err;
}

/* The rule that the options give; NULL: they give none. */
static int
read_rule(const struct options *options, struct owns **out, struct buf *why)
{
    const char *rule = options->owns.text;
    *out = NULL;
    if (rule[0] == '\0') {
        return options->owns_file.text[0] == '\0'
            ? 0
            : read_file(options->owns_file.text, out, why);
    }
    size_t before = why->len;
    buf_add_text(why, "--owns: ");
    int err = owns_create(rule, strlen(rule), out, why);
    why->len = err == 0 ? before : why->len;
    return err;
}

int
owning_check(const struct options *options, struct buf *why)
{
    struct owns *owns;
    int err = read_rule(options, &owns, why);
    if (err == 0 && owns != NULL) {
        owns_destroy(&owns);
    }
    return err;
}

int
owning_open(struct owning *owning, const struct options *options,
    struct logger *logger, struct buf *why)
{
    struct owns *owns;
    int err = read_rule(options, &owns, why);
    if (err != 0 || owns == NULL) {
        return err;
    }
    if (options->owns.text[0] == '\0') {
        owning->path = options->owns_file.text;
    }
    atomic_init(&owning->owner.owns, owns);
    owning->owner.misses = options->owns_miss;
    owning->owner.logger = logger;
    owning->is_wanted = true;
    log_line(logger, LOG_INFO, "ids of this server: %s", owns_rule(owns));
    return 0;
}

struct owner *
owning_owner(struct owning *owning)
{
    return owning->is_wanted ? &owning->owner : NULL;
}

static void
free_old(struct owning *owning)
{
    struct owns *old = (struct owns *)owning->old;
    if (old != NULL) {
        owns_destroy(&old);
    }
    owning->old = NULL;
}

void
owning_reload(struct owning *owning, struct qsbr *qsbr, const char *signal)
{
    struct logger *logger = owning->owner.logger;
    struct buf why = {0};
    struct owns *owns;
    if (owning->path == NULL) {
        return;
    }
    if (read_file(owning->path, &owns, &why) != 0) {
        log_line(logger, LOG_ERROR, "%.*s; the rule stays %s", (int)why.len,
            why.len == 0 ? "" : why.data,
            owns_rule(owner_rule(&owning->owner)));
        buf_fini(&why);
        return;
    }
    if (owning->old != NULL && !qsbr_is_over(qsbr, owning->old_grace)) {
        qsbr_wait(qsbr); /* two reloads within a turn of a worker */
    }
    free_old(owning);
    owning->old = owner_exchange(&owning->owner, owns);
    owning->old_grace = qsbr_begin(qsbr);
    log_line(logger, LOG_NOTICE, "%s: ids of this server: %s", signal,
        owns_rule(owns));
    buf_fini(&why);
}

void
owning_close(struct owning *owning)
{
    free_old(owning);
    if (owning->is_wanted) {
        struct owns *owns = (struct owns *)owner_rule(&owning->owner);
        owns_destroy(&owns);
        owning->is_wanted = false;
    }
}
