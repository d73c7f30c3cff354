/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes producers, members and terms as text. A window becomes the ranges of
 * the numbers that were seen, lowest first: mostly one, or a few where some
 * came early. */
#include "offline/dump_text.h"

#include <inttypes.h>

void
dump_text_producer(
    uint32_t serial, const struct producer_name *name, struct buf *out)
{
    buf_addf(
        out, "producer %" PRIu32 " %.*s", serial, (int)name->len, name->text);
}

static void
add_range(uint64_t first, uint64_t last, struct buf *out)
{
    buf_addf(out, " %" PRIu64, first);
    if (last > first) {
        buf_addf(out, "-%" PRIu64, last);
    }
}

static void
add_ranges(const struct seen_window *seen, struct buf *out)
{
    uint64_t lowest =
        seen->high < SEEN_WINDOW ? 0 : seen->high - (SEEN_WINDOW - 1);
    uint64_t n_before = 0; /* seen, and not said yet, just below number */
    for (uint64_t number = lowest;; number++) {
        bool is_seen = seen_look(seen, number) == SEEN_BEFORE;
        if (!is_seen && n_before > 0) {
            add_range(number - n_before, number - 1, out);
        }
        n_before = is_seen ? n_before + 1 : 0;
        if (number == seen->high) { /* which was seen */
            add_range(number + 1 - n_before, number, out);
            return;
        }
    }
}

void
dump_text_window(
    uint32_t serial, const struct producers_window *window, struct buf *out)
{
    buf_addf(out, "seen %" PRIu32 " shard %u numbers", serial,
        (unsigned)window->shard);
    add_ranges(&window->seen, out);
}

void
dump_text_member(const char *word, const struct schema_counter *counter,
    const struct schema_column *column, uint64_t id, uint64_t member,
    uint64_t value, struct buf *out)
{
    const struct schema_name *name =
        column->suffix.len > 0 ? &column->suffix : &column->name;
    buf_addf(out, "%s %s %" PRIu64 ".%s:%" PRIu64 " %" PRIu64, word,
        counter->name.text, id, name->text, member, value);
}

void
dump_text_replica(const struct replica_file *file, struct buf *out)
{
    static const char *const level[REPLICA_LEVELS] = {
        [REPLICA_WRITTEN] = "written",
        [REPLICA_SYNCED] = "synced",
        [REPLICA_APPLIED] = "applied"};
    buf_addf(out, "replica node %.*s", (int)file->node.len, file->node.text);
    if (file->group.len > 0) {
        buf_addf(out, " cluster %.*s group %.*s", (int)file->cluster.len,
            file->cluster.text, (int)file->group.len, file->group.text);
    }
    buf_addf(out, " promised %" PRIu32 " level %s", file->promised,
        level[file->level]);
    if (file->cut_seq != 0) {
        buf_addf(out, " cut %" PRIu64, file->cut_seq);
    }
    buf_addf(out, "%s%s%s%s", file->is_doubtful ? " doubtful" : "",
        file->is_clean ? " clean" : "",
        file->is_exchanging ? " exchanging" : "",
        file->is_salvaged ? " salvaged" : "");
}

void
dump_text_history(const struct history_term *term, struct buf *out)
{
    buf_addf(out, "history term %" PRIu64 " branch %016" PRIx64 " last ",
        term->term, term->branch);
    if (term->last == HISTORY_OPEN) {
        buf_add_text(out, "open");
    } else {
        buf_addf(out, "%" PRIu64, term->last);
    }
}

void
dump_text_term(const struct entry_term *term, struct buf *out)
{
    buf_addf(out,
        "term %" PRIu32 " branch %016" PRIx64 " after %" PRIu64 " node %.*s",
        term->term, term->branch, term->last_seq, (int)term->node.len,
        term->node.text);
}

void
dump_text_moved(const struct moved_one *moved, struct buf *out)
{
    bool is_here = moved->address[0] == '\0';
    buf_addf(out, "handover %s %s%s", moved->rule, is_here ? "here" : "to ",
        moved->address);
}

bool
dump_text_entry(const struct entry *entry, struct buf *out)
{
    switch (entry->kind) {
    case ENTRY_NUMBER:
        buf_addf(out, "number %" PRIu32 " shard %u %" PRIu64, entry->producer,
            (unsigned)entry->shard, entry->number);
        return true;
    case ENTRY_PRODUCER:
        dump_text_producer(entry->producer, &entry->name, out);
        return true;
    case ENTRY_PRODUCER_DROPPED:
        buf_addf(out, "producer-gone %" PRIu32, entry->producer);
        return true;
    case ENTRY_MOVED:
        dump_text_moved(&entry->moved, out);
        return true;
    case ENTRY_ABOUT:
        buf_addf(out, "about %" PRIu32, entry->about.serial);
        for (unsigned i = 0; i < entry->about.n; i++) {
            buf_addf(out, " %" PRIu64 ":%" PRIu64, entry->about.id[i],
                entry->about.member[i]);
        }
        return true;
    case ENTRY_ABOUT_ROLLED:
        buf_addf(out, "table %" PRIu32 " from %" PRIu64 " lowest %" PRIu64,
            entry->rolled.serial, entry->rolled.first, entry->rolled.lowest);
        return true;
    case ENTRY_PRODUCER_JOINED:
        buf_addf(out, "seen %" PRIu32 " shard all numbers", entry->producer);
        add_ranges(&entry->seen, out);
        return true;
    default:
        return false;
    }
}
