/* SPDX-License-Identifier: BSD-3-Clause */
/* The window: tables begin, close and go.
 *
 * A window is never changed: a new one takes its place, and the old one, and
 * the tables that it alone had, are freed when every reader has been quiescent.
 * Nobody waits for that: what is retired is looked at with each change of the
 * window, and by about_tend.
 *
 * What can go wrong: there is no memory for the next table. Then the newest
 * stays open and takes more than it is for: its error grows, which the figures
 * show, and nothing is lost. */
#include "about/about_copy.h"
#include "about/about_priv.h"

#include "base/err.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    SHARE_FIRST = 70, /* percent, as long as nothing is learned */
    SHARE_LEAST = 20,
    SETTLED = 2 /* of a table that so many closed after, most members have
                 * come */
};

static _Atomic uint64_t *
take_words(const struct about *about)
{
    size_t bytes = (size_t)about__table_bytes(about);
    if (about->alloc != NULL) {
        return alloc_zeroed(about->alloc, bytes);
    }
    /* without reserve: pages come as members do */
    void *words = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (words == MAP_FAILED) {
        return NULL;
    }
    (void)madvise(words, bytes, MADV_HUGEPAGE); /* else slower */
    return words;
}

static void
give_words(const struct about *about, _Atomic uint64_t *words)
{
    size_t bytes = (size_t)about__table_bytes(about);
    if (about->alloc != NULL) {
        alloc_free(about->alloc, (void *)words, bytes);
        return;
    }
    int rv = munmap((void *)words, bytes);
    ASSERT(rv == 0);
}

static struct about_table *
make_table(struct about *about, uint64_t first)
{
    struct about_table *table = calloc(1, sizeof *table);
    if (table == NULL) {
        return NULL;
    }
    table->word = take_words(about);
    if (table->word == NULL) {
        free(table);
        return NULL;
    }
    table->first = first;
    /* relaxed, here and below: changed under the lock only, else figures */
    table->number = 1 +
        atomic_fetch_add_explicit(&about->n_begun, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&about->n_tables, 1, memory_order_relaxed);
    return table;
}

static void
free_table(struct about *about, struct about_table *table)
{
    give_words(about, table->word);
    free(table);
    atomic_fetch_sub_explicit(&about->n_tables, 1, memory_order_relaxed);
}

static struct about_window *
make_window(unsigned n)
{
    ASSERT(n >= 1);
    struct about_window *window = calloc(1,
        sizeof *window +
            n * (sizeof window->table[0] + sizeof window->first[0]));
    if (window != NULL) {
        window->n = n;
        window->first = (uint64_t *)(void *)&window->table[n];
    }
    return window;
}

/* Has all who come see the window, which is complete. */
static void
publish(struct about *about, struct about_window *window)
{
    for (unsigned i = 0; i < window->n; i++) {
        window->first[i] = window->table[i]->first;
    }
    /* seq_cst: see about.c */
    atomic_store(&about->window, window);
}

/* Frees what no reader can see any more. */
static void
free_retired(struct about *about)
{
    mutex_assert_held(&about->lock);
    struct about_table **table = &about->old_tables;
    while (*table != NULL) {
        struct about_table *old = *table;
        if (qsbr_is_over(about->qsbr, old->retired)) {
            *table = old->next;
            free_table(about, old);
        } else {
            table = &old->next;
        }
    }
    struct about_window **window = &about->old_windows;
    while (*window != NULL) {
        struct about_window *old = *window;
        if (qsbr_is_over(about->qsbr, old->retired)) {
            *window = old->next;
            free(old);
        } else {
            window = &old->next;
        }
    }
}

/* How much of what it is for a table has at its close, in percent, so that it
 * is full when the late ones have come: as those did that closed long ago. */
static unsigned
learned_share(const struct about_window *window)
{
    uint64_t n_closed = 0, n_now = 0;
    for (unsigned i = 0; i + SETTLED + 1 < window->n; i++) {
        const struct about_table *table = window->table[i];
        uint64_t n = atomic_load_explicit(&table->n_new, memory_order_relaxed);
        if (n >= table->n_closed) { /* else a start is not done with it */
            n_closed += table->n_closed;
            n_now += n;
        }
    }
    if (n_closed == 0 || n_now <= n_closed) {
        return n_closed == 0 ? SHARE_FIRST : 100;
    }
    unsigned share = (unsigned)((double)n_closed * 100 / (double)n_now);
    return share < SHARE_LEAST ? SHARE_LEAST : share;
}

static void
set_close_at(struct about *about, const struct about_window *window)
{
    uint64_t close_at = about->shape.members_max * learned_share(window) / 100;
    /* relaxed: when it is seen does not matter */
    atomic_store_explicit(
        &about->close_at, close_at > 0 ? close_at : 1, memory_order_relaxed);
}

/* Puts a window in the place of the one there is, and retires the first n_gone
 * tables of that. */
static void
replace(struct about *about, struct about_window *next, unsigned n_gone)
{
    mutex_assert_held(&about->lock);
    struct about_window *old = atomic_load(&about->window);
    set_close_at(about, next);
    publish(about, next);
    uint64_t retired = qsbr_begin(about->qsbr);
    for (unsigned i = 0; i < n_gone; i++) {
        old->table[i]->retired = retired;
        old->table[i]->next = about->old_tables;
        about->old_tables = old->table[i];
    }
    old->retired = retired;
    old->next = about->old_windows;
    about->old_windows = old;
    free_retired(about);
}

/* A window without the first n_gone tables of old, with a new one behind them
 * where newest is not NULL. NULL when memory is out. */
static struct about_window *
make_next(const struct about_window *old, unsigned n_gone,
    struct about_table *newest)
{
    unsigned n = old->n - n_gone;
    struct about_window *next = make_window(n + (newest != NULL));
    if (next == NULL) {
        return NULL;
    }
    memcpy(next->table, old->table + n_gone, n * sizeof next->table[0]);
    if (newest != NULL) {
        ASSERT(n == 0 || newest->first > next->table[n - 1]->first);
        next->table[n] = newest;
    }
    return next;
}

/* Sets the limit: where the next table begins. UINT64_MAX: it cannot. */
static uint64_t
set_limit(struct about *about)
{
    uint64_t first;
    do {
        first = atomic_load(&about->above);
        atomic_store(&about->limit, first);
    } while (atomic_load(&about->above) != first);
    return first;
}

/* Begins a table with the id first, and has n_gone go. 0 or ERR_NO_MEMORY:
 * nothing has changed. */
static int
begin(struct about *about, uint64_t first, unsigned n_gone, bool is_logged)
{
    struct about_window *old = atomic_load(&about->window);
    struct about_table *closing = old->table[old->n - 1];
    struct about_table *newest = make_table(about, first);
    struct about_window *next =
        newest == NULL ? NULL : make_next(old, n_gone, newest);
    if (next == NULL) {
        if (newest != NULL) {
            free_table(about, newest);
            atomic_fetch_sub_explicit(
                &about->n_begun, 1, memory_order_relaxed);
        }
        return ERR_NO_MEMORY;
    }
    closing->n_closed =
        atomic_load_explicit(&closing->n_new, memory_order_relaxed);
    if (is_logged && about->sink != NULL) {
        about->sink->roll_fn(about->sink, first, next->table[0]->first);
    }
    replace(about, next, n_gone);
    return 0;
}

void
about__close(struct about *about)
{
    mutex_lock(&about->lock);
    const struct about_window *window = atomic_load(&about->window);
    const struct about_table *newest = window->table[window->n - 1];
    unsigned tables_max = (unsigned)atomic_load_explicit(
        &about->tables_max, memory_order_relaxed);
    if (atomic_load_explicit(&newest->n_new, memory_order_relaxed) >=
        atomic_load_explicit(&about->close_at, memory_order_relaxed)) {
        uint64_t first = set_limit(about);
        ASSERT(first > newest->first); /* it has members */
        if (first != UINT64_MAX) {
            unsigned n_gone =
                window->n < tables_max ? 0 : window->n + 1 - tables_max;
            (void)begin(about, first, n_gone, true);
        }
        atomic_store(&about->limit, UINT64_MAX);
    }
    mutex_unlock(&about->lock);
}

void
about__await(struct about *about)
{
    mutex_lock(&about->lock);
    mutex_unlock(&about->lock);
}

int
about_redo_roll(struct about *about, uint64_t first, uint64_t lowest)
{
    int err = 0;
    mutex_lock(&about->lock);
    const struct about_window *window = atomic_load(&about->window);
    unsigned n_gone = 0;
    while (n_gone < window->n && window->table[n_gone]->first < lowest) {
        n_gone++;
    }
    if (first > window->table[window->n - 1]->first) {
        err = begin(about, first, n_gone, false);
    }
    mutex_unlock(&about->lock);
    return err;
}

/* How many tables memory is for. */
static uint64_t
tables_for(const struct about *about, uint64_t memory_bytes)
{
    uint64_t n = memory_bytes / about__table_bytes(about);
    n = n < ABOUT_TABLES_MIN ? ABOUT_TABLES_MIN : n;
    return n > ABOUT_TABLES_MAX ? ABOUT_TABLES_MAX : n;
}

void
about_resize(struct about *about, uint64_t memory_bytes)
{
    mutex_lock(&about->lock);
    struct about_window *old = atomic_load(&about->window);
    uint64_t n = tables_for(about, memory_bytes);
    about->memory_bytes = memory_bytes;
    atomic_store_explicit(&about->tables_max, n, memory_order_relaxed);
    if (old->n > n) {
        unsigned n_gone = old->n - (unsigned)n;
        struct about_window *next = make_next(old, n_gone, NULL);
        if (next != NULL) { /* else they go with the next close */
            replace(about, next, n_gone);
        }
    }
    mutex_unlock(&about->lock);
}

/* Frees a window that nobody saw, and its tables. */
static void
free_window(struct about *about, struct about_window *window)
{
    for (unsigned i = 0; i < window->n; i++) {
        if (window->table[i] != NULL) {
            free_table(about, window->table[i]);
        }
    }
    free(window);
}

int
about__make_anew(struct about *about, uint64_t lines,
    const struct about_part *part, unsigned n)
{
    mutex_assert_held(&about->lock);
    struct about_window *old = atomic_load(&about->window);
    struct about_window *next = make_window(n);
    if (next == NULL) {
        return ERR_NO_MEMORY;
    }
    uint64_t old_lines = about->shape.lines;
    about_shape_resize(&about->shape, lines);
    for (unsigned i = 0; i < n; i++) {
        next->table[i] = make_table(about, part[i].first);
        if (next->table[i] == NULL) {
            free_window(about, next);
            about_shape_resize(&about->shape, old_lines);
            return ERR_NO_MEMORY;
        }
        next->table[i]->number = part[i].number;
        next->table[i]->n_closed = part[i].n_closed;
        next->table[i]->n_imaged = part[i].n_new;
        atomic_init(&next->table[i]->n_new, part[i].n_new);
    }
    about_shape_resize(&about->shape, old_lines);
    free_window(about, old);
    about_shape_resize(&about->shape, lines);
    publish(about, next);
    atomic_store(&about->n_begun, part[n - 1].number);
    atomic_store(&about->tables_max, tables_for(about, about->memory_bytes));
    set_close_at(about, next);
    return 0;
}

void
about_tend(struct about *about)
{
    mutex_lock(&about->lock);
    free_retired(about);
    set_close_at(about, atomic_load(&about->window));
    mutex_unlock(&about->lock);
}

int
about_create(const struct about_config *config, struct about **out)
{
    uint64_t lines = about_lines_of(config->memory_bytes);
    struct about *about = calloc(1, sizeof *about);
    struct about_window *window = make_window(1);
    if (about == NULL || window == NULL) {
        goto err_after_alloc;
    }
    about->magic = ABOUT_MAGIC;
    about_shape_init(
        &about->shape, lines, config->error, config->seed, config->serial);
    about->memory_bytes = config->memory_bytes;
    about->qsbr = config->qsbr;
    about->sink = config->sink;
    about->alloc = config->alloc;
    window->table[0] = make_table(about, 0);
    if (window->table[0] == NULL) {
        goto err_after_alloc;
    }
    mutex_init(&about->lock);
    publish(about, window);
    atomic_init(&about->limit, UINT64_MAX);
    atomic_init(&about->tables_max, tables_for(about, config->memory_bytes));
    set_close_at(about, window);
    *out = about;
    return 0;

err_after_alloc:
    free(window);
    free(about);
    return ERR_NO_MEMORY;
}

void
about_destroy(struct about **about_at)
{
    struct about *about = *about_at;
    ASSERT(about->magic == ABOUT_MAGIC);
    struct about_window *window = atomic_load(&about->window);
    for (unsigned i = 0; i < window->n; i++) {
        free_table(about, window->table[i]);
    }
    free(window);
    while (about->old_tables != NULL) {
        struct about_table *old = about->old_tables;
        about->old_tables = old->next;
        free_table(about, old);
    }
    while (about->old_windows != NULL) {
        struct about_window *old = about->old_windows;
        about->old_windows = old->next;
        free(old);
    }
    ASSERT(atomic_load(&about->n_tables) == 0);
    mutex_fini(&about->lock);
    about->magic = 0;
    free(about);
    *about_at = NULL;
}
