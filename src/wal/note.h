/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WAL_NOTE_H
#define WAL_NOTE_H

#include "wal/entry.h"
#include "wal/frame.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What stands in a log file where its successor says that it is void from on:
 * a batch with the mark ENTRY_MARK_FOLLOWED. Pure; any thread. */

enum { NOTE_BYTES = FRAME_BATCH_BYTES + ENTRY_MARK_BYTES };

/* next: the successor's header, before_end not 0; epoch: that of the file where
 * the note is. */
void note__put(
    const struct frame_file *next, uint64_t epoch, uint8_t out[NOTE_BYTES]);

/* next, epoch: as above. True where the bytes at next->before_end were a note
 * once and are not now: they differ from it in a few bits. What a power cut or
 * a disk that failed left of it, and void batches, are no damage. */
bool note_is_damaged(const struct frame_file *next, uint64_t epoch,
    const uint8_t in[NOTE_BYTES]);

#endif
