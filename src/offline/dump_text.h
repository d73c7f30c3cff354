/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OFFLINE_DUMP_TEXT_H
#define OFFLINE_DUMP_TEXT_H

#include "base/buf.h"
#include "wal/entry.h"
#include "wal/history.h"
#include "wal/producers.h"
#include "wal/replica_file.h"

/* Lines of a dump that say who numbers its changes, which numbers were seen,
 * which members records have, and whose the log was; doc/backup.md
 * describes them. Part of the store; nobody else calls it. Each appends one
 * line without its newline; out->failed where memory is out. Pure; any
 * thread. */

/* A producer of the manifest, or one that the log makes. */
void dump_text_producer(
    uint32_t serial, const struct producer_name *name, struct buf *out);

/* What one shard has seen of a producer: a few KB at most. */
void dump_text_window(
    uint32_t serial, const struct producers_window *window, struct buf *out);

/* A member of a counter's column and what it has become, by a word for the
 * line. */
void dump_text_member(const char *word, const struct schema_counter *counter,
    const struct schema_column *column, uint64_t id, uint64_t member,
    uint64_t value, struct buf *out);

/* What the server knows about other copies of its directory. */
void dump_text_replica(const struct replica_file *file, struct buf *out);

/* A term that a manifest has. */
void dump_text_history(const struct history_term *term, struct buf *out);

/* What the log says of a term; dump_text_entry leaves that to it. */
void dump_text_term(const struct entry_term *term, struct buf *out);

/* Ids that are at another group, or here again. */
void dump_text_moved(const struct moved_one *moved, struct buf *out);

/* An entry of the log. False, and nothing, where it is none of a producer and
 * no handover. */
bool dump_text_entry(const struct entry *entry, struct buf *out);

#endif
