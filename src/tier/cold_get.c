/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads cold records.
 *
 *   engine_look ---> segment_map__hold ---> fetch ---> cells filled, call
 * answered
 *
 * A read asks the engine first. A cell that is at its default there, of an id
 * that is covered, may be cold. Then the engine says under the shard's lock
 * whether it has the record, and which version covers it if not; that version
 * is held, and the record is fetched from it. A segment never changes, so what
 * is found there was the record's value at the moment of that look.
 *
 * Sources go the whole way to their versions before the first cell is looked
 * for; then all are fetched together.
 *
 * A fetch ends on a thread of the pool, which is not a reader, or on that of a
 * ring: what it needs is held since before. */
#include "tier/cold_call.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "base/err.h"

#include <stdlib.h>

enum { GET_MAGIC = 0x48b1f6d2 };

/* Keys first..first + n of a get, which are of one record. */
struct part {
    uint32_t first, n;
};

struct cold_get {
    struct fetch_call fetch; /* first */
    uint32_t magic;          /* GET_MAGIC */
    struct store_get *get;
    uint32_t n;
    struct part *part;              /* n */
    struct segment_map_file **file; /* n; references */
    struct fetch_lookup *lookup;    /* n */
};

static bool
is_same_record(const struct cell_key *a, const struct cell_key *b)
{
    return a->id == b->id && a->counter == b->counter;
}

/* The keys from number `at` on, before `end`, that are of one record; true
 * where some of its cells may be in a segment. */
static bool
next_part(const struct cold *cold, const struct store_get *get, uint32_t at,
    uint32_t end, struct part *part)
{
    bool may_be_cold = false;
    *part = (struct part){at, 0};
    for (; at < end && is_same_record(&get->key[part->first], &get->key[at]);
         at++) {
        may_be_cold = may_be_cold || get->state[at] == CELL_DEFAULT;
        part->n++;
    }
    return may_be_cold &&
        segment_map__has(&cold->segment_map, get->key[part->first].counter,
            get->key[part->first].id);
}

/* Reads a record's cells anew; the file that has them, a reference, or NULL
 * where that is all. */
static struct segment_map_file *
look(struct cold *cold, struct store_get *get, const struct part *part)
{
    const struct cell_key *key = &get->key[part->first];
    struct engine_found found;
    struct segment_map_file *file = NULL;
    do {
        engine_look(cold->engine, key, part->n, &get->value[part->first],
            &get->state[part->first], &found);
        if (found.is_here || found.version == 0) {
            return NULL;
        }
        file = segment_map__hold(
            &cold->segment_map, key->counter, key->id, found.version);
    } while (file == NULL); /* another version by now */
    return file;
}

/* Cell i, which is at its default in the engine, as the segment has it. A
 * column that the segment does not have is younger. */
static void
fill_cell(struct store_get *get, uint32_t i, const struct segment_head *head,
    const uint64_t *code)
{
    for (unsigned c = 0; c < head->n_columns; c++) {
        if (head->column[c].serial == get->key[i].serial && code[c] != 0) {
            get->value[i] =
                bytes_of_code(code[c], head->column[c].default_value);
            get->state[i] = CELL_SET;
        }
    }
}

/* Keys that the get has: cells or sources. */
static bool
is_of(const struct store_get *get, const struct part *part)
{
    uint32_t n =
        part->first < STORE_GET_MAX ? get->n : STORE_GET_MAX + get->n_sources;
    return part->n > 0 && part->first + part->n <= n;
}

/* The cells of a part cannot be read. */
static void
give_up(struct store_get *get, const struct part *part)
{
    ASSERT(is_of(get, part));
    for (uint32_t i = part->first; i < part->first + part->n; i++) {
        if (get->state[i] != CELL_GONE) {
            get->state[i] = CELL_UNREADABLE;
        }
    }
}

/* The cells of a part, whose record is in a segment. */
static void
fill_part(struct store_get *get, const struct part *part,
    const struct fetch_lookup *lookup)
{
    const struct segment_head *head = segment_head(lookup->segment);
    ASSERT(is_of(get, part));
    ASSERT(lookup->id == get->key[part->first].id &&
        head->counter == get->key[part->first].counter);
    for (uint32_t i = part->first; i < part->first + part->n; i++) {
        if (get->state[i] != CELL_GONE) {
            fill_cell(get, i, head, lookup->code);
        }
    }
}

static void
fill(struct cold_get *it)
{
    ASSERT(it->magic == GET_MAGIC && it->n > 0);
    for (uint32_t k = 0; k < it->n; k++) {
        if (it->lookup[k].err != 0) {
            give_up(it->get, &it->part[k]);
        } else if (it->lookup[k].found) {
            fill_part(it->get, &it->part[k], &it->lookup[k]);
        }
        segment_map_file_release(it->file[k]);
    }
    it->magic = 0;
    free(it);
}

static void
on_fetched(struct fetch_call *fetch)
{
    struct cold_get *it = (struct cold_get *)fetch;
    ASSERT(it->magic == GET_MAGIC);
    struct store_call *call = &it->get->call;
    fill(it);
    call->done_fn(call);
}

/* Room for n records; one block. */
static struct cold_get *
make_get(struct store_get *get, uint32_t n)
{
    size_t each = sizeof(struct part) + sizeof(struct segment_map_file *) +
        sizeof(struct fetch_lookup);
    struct cold_get *it = malloc(sizeof *it + n * each);
    if (it != NULL) {
        *it = (struct cold_get){.magic = GET_MAGIC, .get = get};
        it->lookup = (struct fetch_lookup *)(it + 1);
        it->file = (struct segment_map_file **)(it->lookup + n);
        it->part = (struct part *)(it->file + n);
    }
    return it;
}

/* The columns of a segment that a part asks for; 0: it has none of them, for
 * they are younger, and there is nothing to be read. */
static unsigned
columns_of(const struct store_get *get, const struct part *part,
    const struct segment_head *head)
{
    unsigned columns = 0;
    for (unsigned c = 0; c < head->n_columns; c++) {
        for (uint32_t i = part->first; i < part->first + part->n; i++) {
            if (head->column[c].serial == get->key[i].serial) {
                columns |= 1U << c;
            }
        }
    }
    return columns;
}

static void
add_lookup(struct cold_get *it, const struct part *part,
    struct segment_map_file *file, unsigned columns)
{
    uint32_t k = it->n++;
    struct fetch_lookup *lookup = &it->lookup[k];
    /* each part has a key or more */
    ASSERT(k < it->get->n + it->get->n_sources);
    it->part[k] = *part;
    it->file[k] = file;
    lookup->segment = file->segment;
    lookup->id = it->get->key[part->first].id;
    lookup->columns = columns;
}

/* Adds to *it, which is made where it is NULL, what of the keys first..end - 1
 * is to be fetched; room for all that may come. */
static void
gather(struct cold *cold, struct store_get *get, uint32_t first, uint32_t end,
    struct cold_get **it)
{
    struct part part;
    for (uint32_t at = first; at < end; at += part.n) {
        struct segment_map_file *file = next_part(cold, get, at, end, &part)
            ? look(cold, get, &part)
            : NULL;
        if (file == NULL) {
            continue;
        }
        unsigned columns = columns_of(get, &part, segment_head(file->segment));
        if (columns == 0) {
            segment_map_file_release(file);
            continue;
        }
        if (*it == NULL) {
            *it = make_get(get,
                at < STORE_GET_MAX ? get->n - at : get->n_sources + get->n);
        }
        if (*it == NULL) {
            segment_map_file_release(file);
            give_up(get, &part);
        } else {
            add_lookup(*it, &part, file, columns);
        }
    }
}

/* Fetches what was gathered; it may be NULL. */
static enum store_answer
fetch(struct cold *cold, struct store_get *get, struct cold_get *it)
{
    if (it == NULL) {
        return STORE_DONE;
    }
    it->fetch.lookup = it->lookup;
    it->fetch.n = it->n;
    it->fetch.done_fn = on_fetched;
    it->fetch.ring = cold_ring_fetch(get->call.ring);
    if (!fetch_begin(cold->fetch, &it->fetch)) {
        return STORE_LATER;
    }
    fill(it);
    return STORE_DONE;
}

enum store_answer
cold_get(struct cold *cold, struct store_get *get)
{
    struct cold_get *it = NULL;
    if (!segment_map_any(&cold->segment_map)) {
        return STORE_DONE;
    }
    gather(cold, get, 0, get->n, &it);
    return fetch(cold, get, it);
}

enum store_answer
cold_get_sources(struct cold *cold, struct store_get *get)
{
    enum { AT = STORE_GET_MAX };
    struct cold_get *it = NULL;
    engine_get(cold->engine, &get->key[AT], get->n_sources, &get->value[AT],
        &get->state[AT]);
    if (segment_map_any(&cold->segment_map)) {
        gather(cold, get, AT, AT + get->n_sources, &it);
    }
    engine_get(cold->engine, get->key, get->n, get->value, get->state);
    if (segment_map_any(&cold->segment_map)) {
        gather(cold, get, 0, get->n, &it);
    }
    return fetch(cold, get, it);
}
