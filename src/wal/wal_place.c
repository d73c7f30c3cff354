/* SPDX-License-Identifier: BSD-3-Clause */
/* Says where the log is, for those who look after its files, and takes what
 * they have found: the log's thread acts on that. */
#include "wal/wal_place.h"

#include "base/assert.h"
#include "wal/names.h"
#include "wal/wal_priv.h"

#include <errno.h>
#include <string.h>

void
wal_place(struct wal *wal, struct wal_place *out)
{
    wal__lock(wal);
    *out = (struct wal_place){.number = wal->file.head.number,
        .is = wal->file.is,
        .bytes = wal->file.head.bytes,
        .end =
            wal->file.fd < 0 ? 0 : wal__file_offset(&wal->file, &wal->synced),
        .seq = wal->synced.seq,
        .is_calm = !wal__is_taken(wal)};
    memcpy(out->made, wal->made, sizeof out->made);
    out->is_given_up = wal__is_failing(wal);
    if (wal->file.fd < 0) {
        out->is.inode = 0;
    }
    wal__unlock(wal);
}

void
wal_spoilt(struct wal *wal, uint64_t number)
{
    ASSERT(number > 0);
    wal__lock(wal);
    wal->spoilt = number;
    wal->is_look_wanted = true;
    wal__wake(wal);
    wal__unlock(wal);
}

void
wal_ask(struct wal *wal)
{
    wal__lock(wal);
    wal->is_look_wanted = true;
    wal__wake(wal);
    wal__unlock(wal);
}

bool
wal_is_broken(struct disk *disk, uint64_t number, uint64_t bytes)
{
    struct frame_file head;
    int err = wal__file_head(disk, number, &head);
    return err == 0 ? bytes < head.bytes : err == EBADMSG;
}
