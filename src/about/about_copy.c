/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables for a checkpoint, and from one.
 *
 * Whether a table has changed is seen by what was counted: who adds counts
 * before he sets bits, and logs before that. So what was counted at the mark is
 * in the bits after the grace period, and what was logged before the mark is
 * counted by then: a table that has the count of its image has nothing else,
 * and needs no log. */
#include "about/about_copy.h"

#include "about/about_priv.h"
#include "base/err.h"

#include <stdlib.h>

void
about_copy_mark(struct about *about, uint64_t log, uint64_t before)
{
    mutex_lock(&about->lock);
    const struct about_window *window = about__window(about);
    about->log_marked = log;
    for (unsigned i = 0; i < window->n; i++) {
        struct about_table *table = window->table[i];
        table->log_from = table->log_from == 0 ? before : table->log_from;
        ASSERT(table->log_from <= log);
        /* relaxed: what it counts is looked at after a grace period */
        table->n_marked =
            atomic_load_explicit(&table->n_new, memory_order_relaxed);
        table->is_copied = false;
        table->is_marked = true;
    }
    mutex_unlock(&about->lock);
}

unsigned
about_copy_list(struct about *about, struct about_part out[ABOUT_TABLES_MAX])
{
    mutex_lock(&about->lock);
    const struct about_window *window = about__window(about);
    unsigned n = window->n;
    for (unsigned i = 0; i < n; i++) {
        struct about_table *table = window->table[i];
        uint64_t n_new =
            atomic_load_explicit(&table->n_new, memory_order_relaxed);
        if (table->is_marked && n_new == table->n_imaged) {
            table->log_from = about->log_marked;
        }
        out[i] = (struct about_part){.number = table->number,
            .first = table->first,
            .n_new = n_new,
            .n_closed = table->n_closed,
            .n_imaged = table->n_imaged,
            .log_from = table->is_marked ? table->log_from : about->log_marked,
            .is_changed = table->is_marked && n_new != table->n_imaged};
    }
    mutex_unlock(&about->lock);
    return n;
}

static struct about_table *
find_number(const struct about_window *window, uint64_t number)
{
    for (unsigned i = 0; i < window->n; i++) {
        if (window->table[i]->number == number) {
            return window->table[i];
        }
    }
    return NULL;
}

uint32_t
about_copy_lines(const struct about *about, uint64_t number, uint64_t from,
    uint32_t n, uint64_t *line, uint64_t *code[ABOUT_LINE_WORDS])
{
    const struct about_table *table =
        find_number(about__window(about), number);
    uint32_t n_copied = 0;
    if (table == NULL) {
        return 0;
    }
    ASSERT(from <= about->shape.lines && n <= about->shape.lines - from);
    for (uint64_t at = from; at < from + n; at++) {
        const _Atomic uint64_t *word = table->word + at * ABOUT_LINE_WORDS;
        uint64_t any = 0;
        for (unsigned w = 0; w < ABOUT_LINE_WORDS; w++) {
            /* relaxed: see the head of the file */
            code[w][n_copied] =
                atomic_load_explicit(&word[w], memory_order_relaxed);
            any |= code[w][n_copied];
        }
        line[n_copied] = at;
        n_copied += any != 0;
    }
    return n_copied;
}

void
about_copy_note(struct about *about, uint64_t number)
{
    mutex_lock(&about->lock);
    struct about_table *table = find_number(about__window(about), number);
    if (table != NULL) {
        table->is_copied = table->is_marked;
    }
    mutex_unlock(&about->lock);
}

void
about_copy_end(struct about *about, bool is_durable)
{
    mutex_lock(&about->lock);
    const struct about_window *window = about__window(about);
    for (unsigned i = 0; i < window->n; i++) {
        struct about_table *table = window->table[i];
        if (table->is_copied && is_durable) {
            table->n_imaged = table->n_marked;
            table->log_from = about->log_marked;
        }
        table->is_copied = false;
    }
    mutex_unlock(&about->lock);
}

uint64_t
about_lines(const struct about *about)
{
    return about->shape.lines;
}

uint64_t
about_lines_of(uint64_t memory_bytes)
{
    return memory_bytes / ABOUT_TABLES / ABOUT_LINE_BYTES;
}

uint64_t
about_above(const struct about *about)
{
    return atomic_load(&about->above);
}

/* True where the parts can be a window. */
static bool
parts_fit(uint64_t lines, const struct about_part *part, unsigned n)
{
    if (lines == 0 || lines > ABOUT_LINES_MAX || n == 0 ||
        n > ABOUT_TABLES_MAX) {
        return false;
    }
    for (unsigned i = 0; i < n; i++) {
        if (part[i].number == 0 ||
            (i > 0 &&
                (part[i].first <= part[i - 1].first ||
                    part[i].number <= part[i - 1].number))) {
            return false;
        }
    }
    return true;
}

int
about_load_window(struct about *about, uint64_t lines, uint64_t above,
    const struct about_part *part, unsigned n)
{
    if (!parts_fit(lines, part, n)) {
        return ERR_CORRUPT;
    }
    mutex_lock(&about->lock);
    int err = about__make_anew(about, lines, part, n);
    if (err == 0) {
        atomic_store(&about->above, above);
    }
    mutex_unlock(&about->lock);
    return err;
}

bool
about_load_line(struct about *about, uint64_t number, uint64_t line,
    const uint64_t word[ABOUT_LINE_WORDS])
{
    struct about_table *table = find_number(about__window(about), number);
    if (table == NULL || line >= about->shape.lines) {
        return false;
    }
    for (unsigned w = 0; w < ABOUT_LINE_WORDS; w++) {
        /* relaxed: nobody reads yet */
        atomic_fetch_or_explicit(&table->word[line * ABOUT_LINE_WORDS + w],
            word[w], memory_order_relaxed);
    }
    return true;
}
