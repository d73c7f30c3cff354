/* SPDX-License-Identifier: BSD-3-Clause */
/* The file that says how far an import is. It is written aside and renamed, and
 * is taken only if it is exactly what would be written. */
#include "cli/import_priv.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Of a file when it was written last, and how long it is: one that was written
 * anew has other rows at that place. */
static void
know_file(struct import *job)
{
    struct stat is = {0};
    bool is_file = job->source == IMPORT_FILE || job->source == IMPORT_RDB;
    int err = !is_file                 ? -1
        : strcmp(job->input, "-") == 0 ? fstat(STDIN_FILENO, &is)
                                       : stat(job->input, &is);
    if (err == 0) {
        (void)snprintf(job->file, sizeof job->file, "%jd %jd.%09ld",
            (intmax_t)is.st_size, (intmax_t)is.st_mtim.tv_sec,
            is.st_mtim.tv_nsec);
    }
}

/* What it is of: another command does not go on where this one was. */
static void
put_identity(const struct import *job, struct buf *out)
{
    buf_addf(out, "%s %s %s %d %d %" PRIu64 " %s %s %s",
        job->ask.talk.server[0].text, job->input,
        job->file[0] == '\0' ? "-" : job->file, (int)job->source,
        (int)job->format, job->database,
        job->counter == NULL ? "-" : job->counter,
        job->columns_text == NULL ? "-" : job->columns_text,
        job->members_name == NULL ? "-" : job->members_name);
    for (unsigned i = 0; i < job->map.n; i++) {
        const struct import_rule *rule = &job->map.rule[i];
        buf_addf(out, " %s{id}%s[%s]=%s.%s", rule->before, rule->behind,
            rule->field, rule->counter.text, rule->column.text);
    }
    buf_add(out, "", 1);
}

static bool
put_state(const struct import *job, const struct import_place *place,
    struct buf *out)
{
    struct buf of = {0};
    put_identity(job, &of);
    if (!of.failed) {
        buf_addf(out,
            "tallyctl import 1\nat %" PRIu64 "\nrows %" PRIu64
            "\nrejects %" PRIu64 " %" PRIu64 "\nof %s\n",
            place->at, place->rows, place->rejects, place->reject_bytes,
            of.data);
    }
    buf_fini(&of);
    return !of.failed && !out->failed;
}

bool
import__save_state(struct import *job)
{
    char aside[IMPORT_PATH_MAX];
    struct buf text = {0};
    if (!job->may_save) {
        return true;
    }
    (void)snprintf(aside, sizeof aside, "%s.new", job->state);
    FILE *file = put_state(job, &job->done, &text) ? fopen(aside, "we") : NULL;
    bool is_there = file != NULL &&
        fwrite(text.data, 1, text.len, file) == text.len &&
        fflush(file) == 0 && fsync(fileno(file)) == 0;
    if (file != NULL) {
        is_there = fclose(file) == 0 && is_there;
    }
    buf_fini(&text);
    return (is_there && rename(aside, job->state) == 0) ||
        import__fail(job, "%s: %s", job->state, strerror(errno));
}

/* Takes the numbers of text, if it is what put_state makes of them. */
static bool
take_state(struct import *job, const char *text)
{
    struct import_place place = {0};
    struct buf again = {0};
    bool is_taken =
        sscanf(text,
            "tallyctl import 1\nat %" SCNu64 "\nrows %" SCNu64
            "\nrejects %" SCNu64 " %" SCNu64,
            &place.at, &place.rows, &place.rejects, &place.reject_bytes) == 4;
    is_taken = is_taken && put_state(job, &place, &again) &&
        strlen(text) == again.len && memcmp(text, again.data, again.len) == 0;
    buf_fini(&again);
    if (is_taken && place.at > 0) { /* else it begins anew */
        job->place = job->done = place;
    }
    return is_taken;
}

bool
import__load_state(struct import *job)
{
    static char text[1 << 16];
    FILE *file =
        job->state == NULL || job->is_anew ? NULL : fopen(job->state, "re");
    know_file(job);
    if (file == NULL) {
        job->may_save =
            job->state != NULL && (job->is_anew || errno == ENOENT);
        return job->state == NULL || job->may_save ||
            import__fail(job, "%s: %s", job->state, strerror(errno));
    }
    size_t n = fread(text, 1, sizeof text - 1, file);
    (void)fclose(file);
    text[n] = '\0';
    job->may_save = take_state(job, text);
    return job->may_save ||
        import__fail(job,
            "%s is of another import, of another server, or of %s as it was "
            "before: give another --state, or --anew to begin at the first "
            "row",
            job->state, job->input);
}
