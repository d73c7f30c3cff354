/* SPDX-License-Identifier: BSD-3-Clause */
/* backup begin, backup end: which files the data directory consists of at this
 * moment, for a program on the same machine that copies them. They stay until
 * the backup ends, or the connection does.
 *
 *   DIR <path, as in an URL>
 *   BATCH <last batch of the log>
 *   FILE <name> <bytes that count>
 *   MANIFEST <some of its bytes, base64>
 *   END */
#include "session/exec_admin.h"

#include "base/assert.h"
#include "base/base64.h"
#include "base/err.h"
#include "base/uri.h"
#include "call/store_calls.h"
#include "proto/reply.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
    HEAD_LINES = 2,
    PIECE_BYTES = 768, /* of the manifest, in a line */
    PIECE_TEXT = PIECE_BYTES / 3 * 4
};

static enum store_answer
ask(struct job *job)
{
    struct session *session = job->session;
    return store_backup(session->executor->store, session->backup);
}

static void
put_dir(const struct store_backup *backup, struct buf *out)
{
    size_t len = strlen(backup->path);
    buf_add_text(out, "DIR ");
    char *room = buf_reserve(out, URI_BYTES * len);
    if (room != NULL) {
        out->len += uri_encode(backup->path, len, room);
    }
    reply_line(out, "");
}

static void
put_piece(const struct store_backup *backup, size_t at, struct buf *out)
{
    size_t left = backup->manifest_bytes - at;
    char text[PIECE_TEXT];
    buf_add_text(out, "MANIFEST ");
    buf_add(out, text,
        base64_encode(backup->manifest + at,
            left < PIECE_BYTES ? left : PIECE_BYTES, text));
    reply_line(out, "");
}

/* Line number i of the answer; false behind the last one. */
static bool
put_line(const struct store_backup *backup, uint64_t i, struct buf *out)
{
    if (i < HEAD_LINES) {
        if (i == 0) {
            put_dir(backup, out);
        } else {
            buf_addf(out, "BATCH %" PRIu64 "\r\n", backup->last_seq);
        }
        return true;
    }
    i -= HEAD_LINES;
    if (i < backup->n_files) {
        const struct store_backup_file *file = &backup->file[i];
        buf_addf(out, "FILE %s %" PRIu64 "\r\n", file->name, file->bytes);
        return true;
    }
    i = (i - backup->n_files) * PIECE_BYTES;
    if (i >= backup->manifest_bytes) {
        reply_line(out, "END");
        return false;
    }
    put_piece(backup, (size_t)i, out);
    return true;
}

void
exec__backup_drop(struct session *session)
{
    if (session->backup != NULL) {
        (void)store_end_backup(session->executor->store, session->backup);
        free(session->backup);
        session->backup = NULL;
    }
}

enum exec_step
exec__backup_resume(struct session *session, struct exec_turn *turn)
{
    struct job *job = session->job;
    ASSERT(session->backup != NULL);
    int err = session->backup->err;
    if (err != 0) {
        exec__backup_drop(session);
        return exec__refuse(session, err, turn->out);
    }
    for (;;) {
        if (turn->out->len >= turn->mark) {
            return EXEC_FULL;
        }
        if (!put_line(session->backup, job->backup_at++, turn->out)) {
            return exec__done(session);
        }
    }
}

enum exec_step
exec__backup_begin(struct session *session, struct exec_turn *turn)
{
    if (session->backup != NULL) {
        return exec__refuse(session, ERR_BACKUP_BUSY, turn->out);
    }
    struct job *job = exec__job(session, JOB_BACKUP);
    session->backup = calloc(1, sizeof *session->backup);
    if (job == NULL || session->backup == NULL) {
        exec__backup_drop(session);
        return exec__refuse(session, ERR_NO_MEMORY, turn->out);
    }
    job->backup_at = 0;
    if (exec__waits(job, &session->backup->call, ask)) {
        return EXEC_LATER;
    }
    return exec__backup_resume(session, turn);
}

enum exec_step
exec__backup_end(struct session *session, struct buf *out)
{
    if (session->backup == NULL) {
        return exec__refuse(session, ERR_NO_BACKUP, out);
    }
    int err = store_end_backup(session->executor->store, session->backup);
    exec__backup_drop(session);
    if (err != 0) {
        return exec__refuse(session, err, out);
    }
    reply_line(out, "OK");
    return exec__done(session);
}
