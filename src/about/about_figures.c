/* SPDX-License-Identifier: BSD-3-Clause */
/* What is told of the tables of a column. The share of wrong looks is of the
 * bits that are set, not of what was counted: it is true whatever the ids were
 * like. A table of many lines is sampled, evenly. */
#include "about/about_priv.h"

#include <string.h>

enum {
    SAMPLE = 2048, /* lines of a table */
    BILLION = 1000000000
};

/* Wrong looks in a table, in 10^-9. */
static uint64_t
wrong_of(const struct about *about, const struct about_table *table)
{
    uint32_t set[SAMPLE];
    uint64_t lines = about->shape.lines;
    size_t n = lines < SAMPLE ? (size_t)lines : SAMPLE;
    for (size_t i = 0; i < n; i++) {
        uint64_t line = lines / n * i;
        set[i] = 0;
        for (unsigned j = 0; j < ABOUT_LINE_WORDS; j++) {
            /* relaxed: a figure */
            set[i] += (uint32_t)__builtin_popcountll(
                atomic_load_explicit(&table->word[line * ABOUT_LINE_WORDS + j],
                    memory_order_relaxed));
        }
    }
    return about_shape_wrong(&about->shape, set, n);
}

static uint64_t
one_in(uint64_t wrong)
{
    return wrong == 0 ? 0 : (BILLION + wrong / 2) / wrong;
}

/* Bytes of tables now. */
static uint64_t
bytes_of(const struct about *about)
{
    /* relaxed: a figure */
    return about__table_bytes(about) *
        atomic_load_explicit(&about->n_tables, memory_order_relaxed);
}

void
about_figures(const struct about *about, struct about_figures *out)
{
    const struct about_window *window = about__window(about);
    uint64_t wrong_sum = 0, wrong_most = 0;
    uint64_t above = atomic_load(&about->above);
    memset(out, 0, sizeof *out);
    for (unsigned i = 0; i < window->n; i++) {
        const struct about_table *table = window->table[i];
        /* relaxed, as all below: figures */
        uint64_t n = atomic_load_explicit(&table->n_new, memory_order_relaxed);
        uint64_t wrong = wrong_of(about, table);
        out->members += n;
        out->fullest = n > out->fullest ? n : out->fullest;
        wrong_most = wrong > wrong_most ? wrong : wrong_most;
        wrong_sum += wrong;
    }
    out->tables = window->n;
    out->tables_max =
        atomic_load_explicit(&about->tables_max, memory_order_relaxed);
    out->bytes = bytes_of(about);
    out->first_id = window->table[0]->first;
    out->largest_id = above == 0 ? 0 : above - 1;
    out->members_max = about->shape.members_max;
    out->wrong_one_in = one_in(wrong_sum / window->n);
    out->fullest_wrong = one_in(wrong_most);
    out->closed = window->table[window->n - 1]->number - 1;
    out->forgotten = window->table[0]->number - 1;
    out->share = atomic_load_explicit(&about->close_at, memory_order_relaxed) *
        100 / about->shape.members_max;
}

void
about_verify(const struct about *about)
{
    const struct about_window *window = about__window(about);
    ASSERT(window->n >= 1 && window->n <= ABOUT_TABLES_MAX);
    for (unsigned i = 1; i < window->n; i++) {
        const struct about_table *before = window->table[i - 1];
        ASSERT(before->first < window->table[i]->first);
        ASSERT(before->number < window->table[i]->number);
    }
    ASSERT(atomic_load(&about->n_tables) >= window->n);
    /* nobody has what is the next table's */
    ASSERT(window->n == 1 ||
        atomic_load(&about->above) >= window->table[window->n - 1]->first);
}
