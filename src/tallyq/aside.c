/* SPDX-License-Identifier: BSD-3-Clause */
/* The file of what could not be counted. It is opened anew for each batch that
 * has something for it, so that it may be renamed or taken away meanwhile.
 *
 * A line is written and synced before the position moves past its message. So
 * after a kill a line may stand there twice, and none is missing. */
#include "tallyq/aside.h"

#include "base/num.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void
put_quoted(struct buf *out, const char *text, size_t len)
{
    buf_add_text(out, "\"");
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c < 0x20 || c > 0x7e || c == '"' || c == '\\') {
            buf_addf(out, "\\x%02x", c);
        } else {
            buf_add(out, text + i, 1);
        }
    }
    buf_add_text(out, "\"");
}

void
aside_put_line(struct buf *out, struct position at, const char *why,
    const char *text, size_t len)
{
    buf_addf(out, "at=%s why=", position_text(at).text);
    put_quoted(out, why, strlen(why));
    buf_add_text(out, " line=");
    put_quoted(out, text, len);
    buf_add_text(out, "\n");
}

void
aside_put_change(struct buf *out, const struct aside_change *change,
    const char *why, size_t why_len)
{
    buf_addf(out, "end=%s tx=%s:%" PRIu64 " digest=%016" PRIx64 " why=",
        position_text(change->end).text, change->name, change->number,
        change->digest);
    put_quoted(out, why, why_len);
    buf_addf(out, " change=\"%.*s %" PRIu64 "\"\n", (int)change->key_len,
        change->key, change->delta);
}

static int
write_all(int fd, const char *text, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, text, len);
        if (n < 0 && errno != EINTR) {
            return errno;
        }
        text += n < 0 ? 0 : n;
        len -= n < 0 ? 0 : (size_t)n;
    }
    return 0;
}

/* Ends a line that a write has left without its end. */
static int
end_line(int fd)
{
    struct stat about;
    char last = '\n';
    if (fstat(fd, &about) != 0) {
        return errno;
    }
    if (!S_ISREG(about.st_mode) || about.st_size == 0) {
        return 0;
    }
    if (pread(fd, &last, 1, about.st_size - 1) != 1) {
        return errno == 0 ? EIO : errno;
    }
    return last == '\n' ? 0 : write_all(fd, "\n", 1);
}

int
aside_write(const char *path, const char *text, size_t len)
{
    int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
    if (fd < 0) {
        return errno;
    }
    int err = end_line(fd);
    if (err == 0) {
        err = write_all(fd, text, len);
    }
    if (err == 0 && len > 0 && fdatasync(fd) != 0 && errno != EINVAL) {
        err = errno;
    }
    (void)close(fd);
    return err;
}

/* The number of a line about a change of that batch. */
static bool
read_number(
    const char *line, const char *name, uint64_t digest, uint64_t *number)
{
    char mark[32];
    const char *tx = strstr(line, " tx=");
    (void)snprintf(mark, sizeof mark, " digest=%016" PRIx64 " ", digest);
    if (strncmp(line, "end=", 4) != 0 || tx == NULL) {
        return false;
    }
    tx += 4;
    size_t len = strlen(name);
    if (strncmp(tx, name, len) != 0 || tx[len] != ':') {
        return false;
    }
    const char *digits = tx + len + 1;
    const char *end = digits + strspn(digits, "0123456789");
    return num_parse_u64(digits, (size_t)(end - digits), number) &&
        strncmp(end, mark, strlen(mark)) == 0;
}

int
aside_find(const char *path, const char *name, uint64_t digest,
    void (*found_fn)(void *context, uint64_t number), void *context)
{
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return errno == ENOENT ? 0 : errno;
    }
    char *line = NULL;
    size_t room = 0;
    uint64_t number = 0;
    errno = 0;
    while (getline(&line, &room, file) > 0) {
        if (read_number(line, name, digest, &number)) {
            found_fn(context, number);
        }
    }
    int err = feof(file) ? 0 : errno == 0 ? EIO : errno;
    free(line);
    (void)fclose(file);
    return err;
}
