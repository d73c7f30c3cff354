/* SPDX-License-Identifier: BSD-3-Clause */
/* Ids that are names (primarykey=text), where a name is no id by itself: the
 * dictionaries of the store say which id it has (names/names.h).
 *
 * The names of a slice of gets are looked up together when all of it is
 * gathered, before anything else is asked. A name without an id gets one that
 * has no record. What the store answers at once is right, for an id stays that
 * of its name until the thread is quiescent. While a request waits for the
 * disk a name may be taken out, its record being gone, and its id be given to
 * another one: so the names are looked up again behind it, and one that has
 * another id by then was without a record at some moment since. One that has
 * the same id had it all the time, or was taken out once and came again, unless
 * it has been taken out twice, between which another one may have had the id:
 * that takes STORE_NAMES_PAUSE_S at least, or another round on a replica, after
 * which nothing is said of it.
 *
 * The names of changes are looked up likewise, so that the memory of their
 * records can be asked for; what counts is what the engine finds under the lock
 * (engine/naming.h). */
#include "session/exec_get.h"

#include "base/assert.h"
#include "session/exec_admin.h"

#include <assert.h>
#include <string.h>

static_assert((int)EXEC_BATCH_MAX <= (int)EXEC_SLICE_KEYS_MAX &&
        (int)EXEC_SLICE_KEYS_MAX <= UINT8_MAX,
    "see find and struct job");

/* ---- gets ---- */

void
exec_get__add_name(
    struct job *job, const struct slot *slot, const struct key *key)
{
    ASSERT(job->n_names < EXEC_SLICE_KEYS_MAX);
    ASSERT(key->name_len <= EXEC_NAMES_BYTES - job->name_bytes);
    job->name[job->n_names++] = (struct slot_name){.cell = slot->first,
        .n_cells = (uint8_t)(job->get.n - slot->first),
        .len = key->name_len,
        .at = job->name_bytes};
    memcpy(&job->name_text[job->name_bytes], key->name, key->name_len);
    job->name_bytes += key->name_len;
}

/* Looks all names of the job up. */
static void
ask(const struct job *job, struct names_ask ask[EXEC_SLICE_KEYS_MAX])
{
    for (unsigned i = 0; i < job->n_names; i++) {
        const struct slot_name *it = &job->name[i];
        ask[i] = (struct names_ask){
            .bytes = &job->name_text[it->at], .len = it->len};
    }
    names_find(job->session->executor->store->names, ask, job->n_names);
}

uint32_t
exec__name_tag(
    const struct job *job, uint64_t id, const char *bytes, size_t len)
{
    const struct names *names = job->session->executor->store->names;
    return names_is_nobodys(names, id) ? 0 : names_tag(names, bytes, len);
}

uint32_t
exec_get__name_tag(const struct job *job, unsigned cell)
{
    for (unsigned i = 0; i < job->n_names; i++) {
        const struct slot_name *it = &job->name[i];
        if (cell >= it->cell && cell - it->cell < it->n_cells) {
            return exec__name_tag(
                job, it->id, &job->name_text[it->at], it->len);
        }
    }
    return 0;
}

void
exec_get__find_names(struct session *session)
{
    struct names_ask found[EXEC_SLICE_KEYS_MAX];
    const struct store *store = session->executor->store;
    struct job *job = session->job;
    job->names_rounds = store_names_rounds(store);
    job->names_dropped = store_names_dropped(store);
    job->names_s = exec__now_s(session);
    ask(job, found);
    for (unsigned i = 0; i < job->n_names; i++) {
        struct slot_name *it = &job->name[i];
        ASSERT(it->cell + it->n_cells <= job->get.n);
        it->id = found[i].id;
        for (unsigned k = 0; k < it->n_cells; k++) {
            job->get.key[it->cell + k].id = it->id;
        }
    }
}

/* The cells of a name: as they are without a record, or not to be had. */
static void
put(struct job *job, const struct slot_name *name, enum cell_state state)
{
    const struct schema *schema = exec__schema(job->session);
    for (unsigned k = 0; k < name->n_cells; k++) {
        unsigned cell = name->cell + k;
        const struct cell_key *key = &job->get.key[cell];
        const struct schema_counter *counter =
            schema_counter_at(schema, key->counter);
        const struct schema_column *column =
            counter == NULL ? NULL : schema_column_of(counter, key->serial);
        if (job->get.state[cell] != CELL_GONE) {
            job->get.value[cell] = column == NULL ? 0 : column->default_value;
            job->get.state[cell] = (uint8_t)state;
        }
    }
}

void
exec_get__look_for_names(struct session *session)
{
    struct names_ask found[EXEC_SLICE_KEYS_MAX];
    const struct store *store = session->executor->store;
    struct job *job = session->job;
    if (store_names_dropped(store) == job->names_dropped) {
        job->n_names = 0; /* none was taken out: mostly it has not waited */
        return;
    }
    uint64_t n_rounds = store_names_rounds(store) - job->names_rounds;
    bool is_late = n_rounds > 1 ||
        (n_rounds == 1 &&
            exec__now_s(session) - job->names_s >= STORE_NAMES_PAUSE_S - 1);
    ask(job, found);
    for (unsigned i = 0; i < job->n_names; i++) {
        const struct slot_name *it = &job->name[i];
        if (found[i].id != it->id) {
            put(job, it, CELL_DEFAULT);
        } else if (is_late && found[i].found) {
            put(job, it, CELL_UNREADABLE);
        }
    }
    job->n_names = 0; /* once only */
}

/* ---- changes ---- */

void
exec__take_name(struct job *job, const struct key *key)
{
    unsigned i = job->store_change.n;
    ASSERT(i < EXEC_BATCH_MAX && key->name_len <= NAME_BYTES_MAX);
    char *text = job->change_name_text[i];
    memcpy(text, key->name, key->name_len);
    job->change_name[i] =
        (struct engine_name){.bytes = text, .len = key->name_len};
    job->change[i].name = &job->change_name[i];
    job->has_names = true;
}

void
exec__find_names(struct session *session)
{
    struct names_ask found[EXEC_BATCH_MAX];
    uint8_t of[EXEC_BATCH_MAX];
    struct job *job = session->job;
    unsigned n = 0;
    for (unsigned i = 0; i < job->store_change.n; i++) {
        const struct change *change = &job->change[i];
        if (change->name != NULL) {
            found[n] = (struct names_ask){
                .bytes = change->name->bytes, .len = change->name->len};
            of[n++] = (uint8_t)i;
        }
    }
    names_find(session->executor->store->names, found, n);
    for (unsigned k = 0; k < n; k++) {
        job->change[of[k]].id = found[k].id;
    }
}
