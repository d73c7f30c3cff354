/* SPDX-License-Identifier: BSD-3-Clause */
/* Corrections are increments by the difference, each with a number of a
 * producer of this run: whoever changes the same cell meanwhile loses nothing,
 * and one that is sent twice counts once. They are in the file of --state,
 * synced, before the first is sent; its second line says how many of them are
 * known to be done. Fewer than a producer's window of numbers are under way, so
 * one that may have been done is sent again and is in the window. */
#include "cli/verify_priv.h"

#include "base/assert.h"
#include "base/num.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum {
    BATCH = 256, /* a producer's window has 1,024 numbers */
    PAUSE_MS = 1000,
    AT_OFFSET = sizeof "tallyctl verify 1\nat " - 1,
    LINE_MAX_BYTES = 512,
    OF_BYTES = ADDRESS_MAX + SCHEMA_NAME_MAX + 16
};

static const char head[] = "tallyctl verify 1\nat ";

struct fixing {
    struct verify *job;
    FILE *file;
    char producer[VERIFY_PRODUCER_MAX + 1];
    uint64_t at, n; /* corrections that are done; that there are */
    unsigned sent;  /* and their answers that are left */
    bool is_again;  /* a SERVER_ERROR came: the batch is sent once more */
    uint64_t refused;
};

/* ---- the file ---- */

static bool
put_corrections(const struct verify *job, FILE *file)
{
    struct buf key = {0};
    bool is_put = true;
    for (size_t i = 0; i < job->n_suspects; i++) {
        const struct suspect *one = &job->suspect[i];
        if (!verify__is_drift(one)) {
            continue;
        }
        bool is_more = one->truth > one->here;
        buf_clear(&key);
        rows_put_key(&one->id, verify__column(job, one->column), &key);
        (void)fprintf(file, "%s %s ", is_more ? "incr" : "decr", job->counter);
        is_put = is_put && !key.failed;
        (void)fwrite(key.data, 1, key.failed ? 0 : key.len, file);
        (void)fprintf(file, " %" PRIu64 "\n",
            is_more ? one->truth - one->here : one->here - one->truth);
    }
    buf_fini(&key);
    return is_put;
}

/* Corrections are of one server and one counter: to another they would be wrong
 * numbers. */
static void
put_identity(const struct verify *job, char *out, size_t size)
{
    (void)snprintf(out, size, "of %s at %s\n", job->counter,
        job->ask.talk.server[0].text);
}

/* Written aside and renamed: it is there whole, or not at all. */
static bool
write_file(struct verify *job)
{
    char aside[4096], of[OF_BYTES];
    uint32_t random = 0;
    (void)snprintf(aside, sizeof aside, "%s.new", job->state);
    if (getrandom(&random, sizeof random, 0) != sizeof random) {
        return verify__fail(job, "no random number: %s", strerror(errno));
    }
    FILE *file = fopen(aside, "we");
    if (file == NULL) {
        return verify__fail(job, "%s: %s", aside, strerror(errno));
    }
    (void)fprintf(file,
        "%s%020u\nproducer verify-%08" PRIx32 "\nn %" PRIu64 "\n", head, 0U,
        random, job->drifts);
    put_identity(job, of, sizeof of);
    (void)fputs(of, file);
    bool is_written = put_corrections(job, file);
    is_written = is_written && fflush(file) == 0 && ferror(file) == 0 &&
        fsync(fileno(file)) == 0;
    is_written = fclose(file) == 0 && is_written;
    return (is_written && rename(aside, job->state) == 0) ||
        verify__fail(job, "%s: %s", job->state, strerror(errno));
}

/* Opens what was written; *is_there: there is such a file. */
static bool
open_file(struct fixing *fixing, bool *is_there)
{
    struct verify *job = fixing->job;
    char of[OF_BYTES], wanted[OF_BYTES];
    fixing->file = fopen(job->state, "r+e");
    *is_there = fixing->file != NULL;
    if (!*is_there) {
        return errno == ENOENT ||
            verify__fail(job, "%s: %s", job->state, strerror(errno));
    }
    if (fscanf(fixing->file,
            "tallyctl verify 1\nat %" SCNu64 "\nproducer %32s\nn %" SCNu64
            "\n",
            &fixing->at, fixing->producer, &fixing->n) != 3 ||
        fgets(of, sizeof of, fixing->file) == NULL) {
        return verify__fail(job, "%s is no file of corrections", job->state);
    }
    put_identity(job, wanted, sizeof wanted);
    return strcmp(of, wanted) == 0 ||
        verify__fail(job,
            "%.100s has corrections that are not done, %.*s: finish them with "
            "the command that made them, or give another --state",
            job->state, (int)strcspn(of, "\n"), of);
}

static bool
note_done(struct fixing *fixing)
{
    char text[NUM_U64_DIGITS_MAX + 1];
    int fd = fileno(fixing->file);
    (void)snprintf(text, sizeof text, "%020" PRIu64, fixing->at);
    return (pwrite(fd, text, NUM_U64_DIGITS_MAX, AT_OFFSET) ==
                   NUM_U64_DIGITS_MAX &&
               fdatasync(fd) == 0) ||
        verify__fail(
            fixing->job, "%s: %s", fixing->job->state, strerror(errno));
}

/* ---- sending ---- */

static enum talk_take
take_answer(void *context, const char *line, size_t len)
{
    static const char below[] = "CLIENT_ERROR that number is below";
    struct fixing *fixing = context;
    ASSERT(fixing->sent > 0);
    if (talk_begins(line, len, "SERVER_ERROR not primary")) {
        return TALK_WRONG;
    }
    if (talk_begins(line, len, "SERVER_ERROR ")) {
        fixing->is_again = true;
    } else if (!talk_begins(line, len, below) &&
        (len == 0 || *line < '0' || *line > '9')) {
        fixing->refused++; /* the column is gone, or it is above its max */
    }
    fixing->sent--;
    return fixing->sent == 0 ? TALK_END : TALK_MORE;
}

/* The next lines of the file, numbered. */
static bool
gather(struct fixing *fixing)
{
    char line[LINE_MAX_BYTES];
    struct buf *text = &fixing->job->text;
    buf_clear(text);
    fixing->sent = 0;
    while (fixing->sent < BATCH && fixing->at + fixing->sent < fixing->n &&
        fgets(line, sizeof line, fixing->file) != NULL) {
        fixing->sent++;
        buf_addf(text, "%.*s tx=%s:%" PRIu64 "\r\n", (int)strcspn(line, "\n"),
            line, fixing->producer, fixing->at + fixing->sent);
    }
    return (!text->failed && fixing->sent > 0) ||
        verify__fail(
            fixing->job, "%s ends before its last line", fixing->job->state);
}

static bool
pause_and_go_on(struct verify *job, const char *why)
{
    (void)fprintf(stderr, "tallyctl: %s; it is tried again\n", why);
    stop_sleep(&job->stop, PAUSE_MS);
    return !stop_is_asked(&job->stop) ||
        verify__fail(job,
            "ended by a signal; the same command finishes the corrections");
}

static bool
send_batch(struct fixing *fixing)
{
    struct verify *job = fixing->job;
    unsigned n = fixing->sent;
    while (true) {
        fixing->sent = n;
        fixing->is_again = false;
        fixing->refused = 0;
        bool is_sent = (job->ask.talk.fd >= 0 || ask_connect(&job->ask)) &&
            talk_ask(&job->ask.talk, job->text.data, job->text.len,
                take_answer, fixing);
        if (is_sent && !fixing->is_again) {
            fixing->at += n;
            job->refused += fixing->refused;
            job->corrected += n - fixing->refused;
            return note_done(fixing);
        }
        if (!pause_and_go_on(job,
                is_sent ? "the server says: not now" : job->ask.talk.why)) {
            return false;
        }
    }
}

static enum talk_take
take_dropped(void *context, const char *line, size_t len)
{
    (void)context;
    return talk_is(line, len, "DELETED") ||
            talk_begins(line, len, "CLIENT_ERROR ")
        ? TALK_END
        : TALK_WRONG;
}

/* Its numbers are not needed any more, and then the file is not. */
static bool
forget(struct fixing *fixing)
{
    struct verify *job = fixing->job;
    buf_clear(&job->text);
    buf_addf(&job->text, "drop producer %s\r\n", fixing->producer);
    return (!job->text.failed &&
               talk_ask(&job->ask.talk, job->text.data, job->text.len,
                   take_dropped, NULL) &&
               unlink(job->state) == 0) ||
        verify__fail(job,
            "the corrections are done, but %s is left, or the producer %s: "
            "run it again",
            job->state, fixing->producer);
}

/* From the first correction on that is not known to be done. */
static bool
send_all(struct fixing *fixing)
{
    char line[LINE_MAX_BYTES];
    for (uint64_t i = 0; i < fixing->at; i++) {
        if (fgets(line, sizeof line, fixing->file) == NULL) {
            return verify__fail(fixing->job, "%s ends before its last line",
                fixing->job->state);
        }
    }
    while (fixing->at < fixing->n) {
        if (!gather(fixing) || !send_batch(fixing)) {
            return false;
        }
    }
    return (fixing->job->ask.talk.fd >= 0 || ask_connect(&fixing->job->ask)) &&
        forget(fixing);
}

bool
verify__finish_before(struct verify *job)
{
    struct fixing fixing = {.job = job};
    bool is_there = false;
    bool is_done =
        open_file(&fixing, &is_there) && (!is_there || send_all(&fixing));
    if (fixing.file != NULL) {
        (void)fclose(fixing.file);
    }
    return is_done;
}

bool
verify__correct(struct verify *job)
{
    return write_file(job) && verify__finish_before(job);
}
