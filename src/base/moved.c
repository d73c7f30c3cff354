/* SPDX-License-Identifier: BSD-3-Clause */
/* Handovers as a list of texts, and as what answers for ids. There are few of
 * them, so a list is looked through. */
#include "base/moved.h"

#include "base/assert.h"
#include "base/err.h"

#include <stdlib.h>
#include <string.h>

struct moved {
    struct moved_list list;
    struct owns *owns[MOVED_MAX]; /* of the list's rules; owned */
};

static bool
take_address(char out[ADDRESS_MAX + 1], const char *text, size_t len)
{
    char host[ADDRESS_MAX + 1], port[ADDRESS_PORT_MAX + 1];
    if (len > ADDRESS_MAX || memchr(text, '\0', len) != NULL) {
        return false;
    }
    memcpy(out, text, len);
    memset(out + len, 0, ADDRESS_MAX + 1 - len);
    return len == 0 || address_split(out, host, port);
}

int
moved_one_set(struct moved_one *out, const char *rule, size_t rule_len,
    const char *address, size_t address_len)
{
    struct owns *owns;
    if (!take_address(out->address, address, address_len)) {
        return ERR_BAD_ADDRESS;
    }
    int err = owns_create_rule(rule, rule_len, &owns);
    if (err != 0) {
        return err;
    }
    const char *text = owns_rule(owns);
    size_t len = strlen(text);
    ASSERT(len > 0 && len < sizeof out->rule);
    memset(out->rule, 0, sizeof out->rule);
    memcpy(out->rule, text, len);
    owns_destroy(&owns);
    return 0;
}

bool
moved_one_is_right(
    const char *rule, size_t rule_len, const char *address, size_t address_len)
{
    struct moved_one one;
    return moved_one_set(&one, rule, rule_len, address, address_len) == 0 &&
        strlen(one.rule) == rule_len && memcmp(one.rule, rule, rule_len) == 0;
}

/* Where the handover of that rule is; list->n: nowhere. */
static uint32_t
place_of(const struct moved_list *list, const char *rule)
{
    uint32_t i = 0;
    ASSERT(list->n <= MOVED_MAX);
    while (i < list->n && strcmp(list->one[i].rule, rule) != 0) {
        i++;
    }
    return i;
}

const struct moved_one *
moved_list_find(const struct moved_list *list, const char *rule)
{
    uint32_t i = place_of(list, rule);
    return i < list->n ? &list->one[i] : NULL;
}

bool
moved_list_put(struct moved_list *list, const struct moved_one *one)
{
    uint32_t i = place_of(list, one->rule);
    ASSERT(one->rule[0] != '\0');
    if (one->address[0] != '\0') {
        if (i == MOVED_MAX) {
            return false;
        }
        list->one[i] = *one;
        list->n += i == list->n;
    } else if (i < list->n) {
        list->n--;
        memmove(&list->one[i], &list->one[i + 1],
            (list->n - i) * sizeof list->one[0]);
    }
    return true;
}

int
moved_create(const struct moved_list *list, struct moved **out)
{
    struct moved *moved = calloc(1, sizeof *moved);
    int err = moved == NULL ? ERR_NO_MEMORY : 0;
    ASSERT(list->n > 0 && list->n <= MOVED_MAX);
    for (uint32_t i = 0; err == 0 && i < list->n; i++) {
        const char *rule = list->one[i].rule;
        err = owns_create_rule(rule, strlen(rule), &moved->owns[i]);
        ASSERT(err == 0 || err == ERR_NO_MEMORY);
        moved->list.one[i] = list->one[i];
        moved->list.n += err == 0;
    }
    if (err != 0) {
        moved_destroy(&moved);
        return err;
    }
    *out = moved;
    return 0;
}

void
moved_destroy(struct moved **moved)
{
    struct moved *it = *moved;
    *moved = NULL;
    for (uint32_t i = 0; it != NULL && i < it->list.n; i++) {
        owns_destroy(&it->owns[i]);
    }
    free(it);
}

const struct moved_one *
moved_find(const struct moved *moved, uint64_t id)
{
    for (uint32_t i = 0; i < moved->list.n; i++) {
        if (owns_has(moved->owns[i], id)) {
            return &moved->list.one[i];
        }
    }
    return NULL;
}

const struct moved_one *
moved_find_name(const struct moved *moved, const char *name, size_t len)
{
    for (uint32_t i = 0; i < moved->list.n; i++) {
        if (owns_has_name(moved->owns[i], name, len)) {
            return &moved->list.one[i];
        }
    }
    return NULL;
}

bool
moved_one_takes_names(const struct moved_one *one)
{
    static const char modulo[] = "modulo:";
    return strncmp(one->rule, modulo, sizeof modulo - 1) != 0;
}

const struct moved_list *
moved_list_of(const struct moved *moved)
{
    static const struct moved_list none;
    return moved == NULL ? &none : &moved->list;
}
