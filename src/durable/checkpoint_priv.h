/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DURABLE_CHECKPOINT_PRIV_H
#define DURABLE_CHECKPOINT_PRIV_H

#include "base/buf.h"
#include "durable/checkpoint.h"
#include "durable/recover.h"
#include "engine/engine_copy.h"

/* One pass of the checkpointer, for the files of this module. */

/* A change of the map that waits for the next manifest. */
struct op {
    enum { OP_ADD, OP_DROP } kind;
    struct images_entry entry; /* OP_DROP: its counter, shard and rows */
    bool is_copied;            /* OP_ADD: of a table, which was marked clean */
};

struct pass {
    struct checkpointer *owner;
    struct durable *durable;
    struct engine_rows rows;
    struct recover_reader reader; /* for blocks that are moved */
    struct buf block;             /* images not written yet */
    struct op *op;                /* owned; n_ops of op_capacity */
    size_t n_ops, op_capacity;
    uint64_t seq;       /* the largest of what ops have in them */
    uint64_t about_seq; /* tables of members=about have all up to it */
    uint64_t file;      /* number of the file under way; 0: none */
    uint64_t file_bytes;
    uint64_t step_bytes, file_bytes_max;
    int fd;
    uint64_t rested_ns; /* when it last slept */
    uint64_t n_images, n_records, n_bytes;
    bool is_quiet; /* its failure has been said often enough */
    /* Of the step under way: those who wait for what is covered now. */
    bool is_publish_wanted;
    struct store_call *publish;
    bool has_names; /* images of names were gathered */
};

/* One pass. 0 or ERR_. */
int checkpoint__run(struct checkpointer *owner);

/* A step without a pass: a manifest with what is covered now. 0 or ERR_. */
int checkpoint__publish(struct checkpointer *owner);

/* True where somebody waits for segments to be in the manifest. */
bool checkpoint__is_publish_wanted(struct checkpointer *owner);

/* True where the pass is to be given up. */
bool checkpoint__is_stopping(const struct pass *pass);

/* Gives way to others, if it has worked for a while. */
void checkpoint__rest(struct pass *pass);

/* Appends to pass->op. 0 or ERR_NO_MEMORY. */
int checkpoint__add(struct pass *pass, const struct op *op);

/* Makes what has been gathered durable, and a manifest with it. 0 or ERR_. */
int checkpoint__step(struct pass *pass);

/* Moves blocks out of files of which less than half is live. Nothing is lost
 * where it fails: 0 or ERR_. */
int checkpoint__compact(struct pass *pass);

/* Removes checkpoint and segment files that the manifest does not name; a
 * segment that no manifest has named yet may be on its way into one. Not while
 * there is doubt which manifest is on the disk. */
void checkpoint__remove_dead(struct pass *pass);

/* ---- checkpoint_about.c ---- */

/* The tables are to be as they are now, a log file having begun. Waits for
 * readers. */
void checkpoint__mark_abouts(struct pass *pass, uint64_t log);

/* Gathers images of them; *log_number becomes lower where older log files are
 * needed for what is in none. 0 or ERR_. */
int checkpoint__take_abouts(struct pass *pass, uint64_t *log_number);

/* Gathers heads of columns that have none yet and whose memory has changed: a
 * start that has only the schema would make tables of another size. With each
 * manifest. 0 or ERR_. */
int checkpoint__take_heads(struct pass *pass);

/* What was gathered since the mark is durable, or will never be. */
void checkpoint__end_abouts(struct pass *pass, bool is_durable);

/* ---- checkpoint_naming.c ---- */

/* Gathers images of the names that have changed. 0 or ERR_. */
int checkpoint__take_names(struct pass *pass);

/* What was gathered may never be durable: it counts as changed again. */
void checkpoint__undo_names(struct pass *pass);

/* ---- checkpoint_thread.c ---- */

/* True where the log, which a pass makes shorter, fills the disk. */
bool checkpoint__is_filling(const struct checkpointer *owner);

/* ---- checkpoint_thread.c: who waits for a manifest ---- */

/* Takes those who wait for segments into the pass; lets them wait on. */
void checkpoint__take_publish(struct pass *pass);
void checkpoint__keep_publish(struct pass *pass);
/* Answers a list of struct store_checkpoint. */
void checkpoint__answer(struct store_call *calls, int err);

/* Lets log files go that no start needs, now or when nobody has their names any
 * more. The manifest on the disk is that in memory. */
void checkpoint__forget_log(struct checkpointer *owner);

/* ---- checkpoint_snapshot.c ---- */

/* Answers who waits for a snapshot: with one of what is on the disk now, behind
 * a step; or, where err is not 0, that there is none. */
void checkpoint__hand_over(struct checkpointer *owner, int err);
/* The same in the midst of a step, before its manifest is on the disk. */
void checkpoint__hand_over_early(struct checkpointer *owner);

/* True where no file may be removed, since somebody reads them by their names.
 */
bool checkpoint__keeps_names(struct checkpointer *owner);
/* The disk is full: they are removed all the same from now on. */
void checkpoint__let_names_go(struct checkpointer *owner);

/* ---- checkpoint_look.c ---- */

/* True where files that a start would need have been removed and a pass makes
 * up for it: said, counted, and the tables of images that are gone count as
 * changed. Of segments, for which it cannot, n_lost tells. Between passes. */
bool checkpoint__look(struct checkpointer *owner);

/* ---- checkpoint_owner.c ---- */

/* Whose MANIFEST is, an enum durable_manifest. Where another server has the
 * directory that is said, and the log refuses changes. */
int checkpoint__look_at_owner(struct checkpointer *owner);
/* The same during a pass, once a second. */
void checkpoint__look_at_owner_soon(struct checkpointer *owner);

/* ---- checkpoint_log.c: what the operator and clients are told ---- */

/* Whether a pass that begins now need not say why it fails, as others have
 * just said it. */
bool checkpoint__is_quiet(const struct checkpointer *owner, uint64_t now_ns);

/* What the disk refused; the ERR_ that this is. */
int checkpoint__log_error(
    const struct pass *pass, const char *what, int error);

/* The pass has failed. */
void checkpoint__log_failed(const struct pass *pass, int err);

/* The pass has come through. */
void checkpoint__log_done(const struct pass *pass);

/* What is answered to those who asked for a pass that ended with err. */
int checkpoint__reply(const struct checkpointer *owner, int err);

#endif
