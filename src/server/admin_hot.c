/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers stats hot: the ids that all workers together have met most. */
#include "server/admin_priv.h"

#include "base/err.h"
#include "call/store_calls.h"
#include "names/names.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { NAME_BYTES = 16, VALUE_BYTES = 512 };

/* The counter that an id is of; NULL where it has been dropped meanwhile, or
 * the column by which the id was met: another counter may be in that slot. */
static const struct schema_counter *
counter_of(const struct schema *schema, const struct hot_one *one)
{
    const struct schema_counter *counter =
        schema_counter_at(schema, one->counter);
    for (unsigned i = 0; counter != NULL && i < counter->n_columns; i++) {
        if (counter->column[i].serial == one->serial) {
            return counter;
        }
    }
    return NULL;
}

/* What an id is called; its length, 0: it has no name any more, or not yet, or
 * another one than when it was met. */
static int
put_key(struct server_admin *admin, const struct schema_counter *counter,
    const struct hot_one *one, char out[NAME_ROOM_BYTES])
{
    const struct names *names = admin->store->names;
    if (!counter->key_is_text) {
        return snprintf(out, NAME_ROOM_BYTES, "%" PRIu64, one->id);
    }
    size_t len = names_name(names, one->id, out);
    bool is_other = one->name != 0 && one->name != names_tag(names, out, len);
    return is_other ? 0 : (int)len;
}

void
admin__hot(struct server_admin *admin, struct reply_stats *out)
{
    const struct schema *schema = store_schema(admin->store);
    struct hot_list *list = calloc(1, sizeof *list);
    unsigned n = 0;
    if (list == NULL) {
        reply_stats_error(out, ERR_NO_MEMORY);
        return;
    }
    for (unsigned i = 0; i < admin->n_workers; i++) {
        hot_read(&admin->workers[i]->executor.hot, list);
    }
    hot_sort(list);
    uint64_t all = list->total[HOT_GET] + list->total[HOT_CHANGE];
    for (unsigned i = 0; i < list->n && n < HOT_SHOWN; i++) {
        char name[NAME_BYTES], value[VALUE_BYTES];
        const struct hot_one *one = &list->one[i];
        const struct schema_counter *counter = counter_of(schema, one);
        char key[NAME_ROOM_BYTES];
        int key_len = counter == NULL ? 0 : put_key(admin, counter, one, key);
        if (key_len == 0) {
            continue;
        }
        uint64_t uses = one->n[HOT_GET] + one->n[HOT_CHANGE];
        double share = uses < all ? (double)uses / (double)all : 1.0;
        (void)snprintf(name, sizeof name, "%u", ++n);
        (void)snprintf(value, sizeof value,
            "key=%.*s counter=%s gets=%" PRIu64 " changes=%" PRIu64
            " share=%.4f",
            key_len, key, counter->name.text, one->n[HOT_GET],
            one->n[HOT_CHANGE], share);
        reply_stats_text(out, name, value);
    }
    free(list);
    reply_stats_end(out);
}
