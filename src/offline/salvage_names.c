/* SPDX-License-Identifier: BSD-3-Clause */
/* Names in a salvage. What is lost of the log may be that a name has gone; then
 * it may have two numbers, and a start would refuse that. Records stay what they
 * are: those of a number without a name cannot be asked for. */
#include "offline/salvage_names.h"

#include "base/err.h"
#include "names/names.h"
#include "wal/frame.h"
#include "wal/replay.h"

#include <inttypes.h>

enum { PIECE_BYTES = FRAME_PAYLOAD_MAX / 2 /* of a batch, about */ };

int
salvage_names_begin(struct salvage_names *it, struct salvage *salvage)
{
    it->salvage = salvage;
    return salvage->is_made_anew
        ? 0
        : data_names_begin(
              &it->names, &salvage->manifest, salvage->disk, salvage->logger);
}

void
salvage_names_fini(struct salvage_names *it)
{
    data_names_fini(&it->names);
}

int
salvage_names_take(struct salvage_names *it, const struct entry_name *name,
    uint64_t seq, bool *is_kept)
{
    int err = it->names.naming.names == NULL
        ? ERR_CORRUPT
        : durable_naming_replay(&it->names.naming, name, seq);
    *is_kept = err == 0;
    it->n_left_out += err == ERR_CORRUPT;
    return err == ERR_CORRUPT ? 0 : err;
}

/* A batch of the entries that have come together. */
static int
end_batch(struct buf *bytes, struct rewrite *rewrite, uint64_t max_seq)
{
    uint64_t seq =
        rewrite->next_seq > max_seq ? rewrite->next_seq : max_seq + 1;
    int err = 0;
    if (bytes->failed) {
        return ERR_NO_MEMORY;
    }
    if (bytes->len > 0) {
        /* those that are lost may have had numbers behind the last */
        seq += REPLAY_SEQ_GAP;
        err = rewrite_add(rewrite, seq, seq - 1, (const uint8_t *)bytes->data,
            (uint32_t)bytes->len);
    }
    buf_clear(bytes);
    return err;
}

int
salvage_names_end(
    struct salvage_names *it, struct rewrite *rewrite, uint64_t max_seq)
{
    struct names *names = it->names.naming.names;
    struct buf bytes = {0};
    uint8_t entry[ENTRY_NAME_BYTES_MAX];
    unsigned shard;
    uint32_t number;
    uint64_t n = 0;
    int err = 0;
    for (; err == 0 && names != NULL &&
         names_end_load(names, &shard, &number) != 0;
         n++) {
        names_take_out(names, shard, number);
        buf_add(&bytes, entry, entry_put_name(entry, shard, number, NULL, 0));
        if (bytes.len > PIECE_BYTES) {
            err = end_batch(&bytes, rewrite, max_seq);
        }
    }
    err = err == 0 ? end_batch(&bytes, rewrite, max_seq) : err;
    if (err == 0 && n > 0) {
        salvage__say(it->salvage,
            "log: %" PRIu64 " names had two numbers, since it is lost that "
            "the one had gone; the first keeps it",
            n);
        it->salvage->is_lossy = true;
    }
    if (err == 0 && it->n_left_out > 0) {
        salvage__say(it->salvage,
            "log: %" PRIu64 " names are left out, since nothing says in which "
            "shards they were",
            it->n_left_out);
        it->salvage->is_lossy = true;
    }
    buf_fini(&bytes);
    return err;
}
