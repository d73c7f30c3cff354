/* SPDX-License-Identifier: BSD-3-Clause */
/* incr and decr, with their terms. A number changes in place where it fits and
 * nobody has it pinned. Else it gets a new entry, with room for any number, so
 * that it need not move again. */
#include "items/op.h"

#include "base/err.h"
#include "base/num.h"

#include <string.h>

struct digits {
    char text[NUM_U64_DIGITS_MAX];
    size_t len;
};

static struct digits
digits_of(uint64_t number)
{
    struct digits digits;

    digits.len = num_format_u64(number, digits.text);
    return digits;
}

/* What the number becomes. */
static uint64_t
sum(const struct items_arith *arith, uint64_t number)
{
    if (!arith->negative) {
        return number + arith->delta;
    }
    return number < arith->delta ? 0 : number - arith->delta;
}

/* An empty value is no number before it is the wrong one, as in memcached. */
static int
condition(
    const struct items_arith *arith, const struct entry *old, uint64_t *number)
{
    const struct items_terms *terms = &arith->terms;

    if (old->item.value_len > 0 && terms->compares && terms->cas != 0 &&
        terms->cas != old->item.cas) {
        return ERR_EXISTS;
    }
    return num_parse_lenient_u64(old->item.value, old->item.value_len, number)
        ? 0
        : ERR_NOT_NUMERIC;
}

/* The digits in the draft: 0 or ITEMS__ROOM_WANTED. */
static int
fill(struct op *op, const struct digits *digits, uint32_t flags,
    uint64_t expiry_s)
{
    if (!items__op_has_room(op, NUM_U64_DIGITS_MAX)) {
        return items__op_want(op, NUM_U64_DIGITS_MAX);
    }
    items__op_fill(op, digits->text, digits->len, flags, expiry_s);
    return 0;
}

static int
vivify(struct op *op, struct stripe *stripe)
{
    const struct items_arith *arith = op->ask;
    struct items_number *out = op->answer;
    struct digits digits = digits_of(arith->initial);
    int err = fill(op, &digits, 0, arith->terms.vivify_expiry_s);

    if (err == 0) {
        items__op_publish(op, stripe, NULL, ITEMS__BORN, arith->terms.new_cas);
    }
    out->value = arith->initial;
    out->is_new = true;
    return err;
}

/* Writes the number over the value, where nobody else can see it. As with
 * memcached's padded numbers, one that got longer is a new value: it is not
 * stale, nor read or won by anybody. */
static void
write_over(struct op *op, struct stripe *stripe, struct entry *entry,
    const struct digits *digits, uint64_t cas)
{
    if (digits->len > entry->item.value_len) {
        entry->marks &=
            (uint8_t) ~(ITEMS__STALE | ITEMS__WON | ITEMS__FETCHED);
    }
    memcpy(items__entry_value(entry), digits->text, digits->len);
    items__stripe_resize(stripe, entry, digits->len);
    entry->item.cas = cas == 0 ? items__core_next_cas(op->items) : cas;
    items__core_use(entry, op->now_s);
    op->done = entry;
}

static int
put(struct op *op, struct stripe *stripe, struct entry *old,
    const struct digits *digits)
{
    uint64_t cas = op->terms->new_cas;
    uint8_t heat = old->heat;
    int err;

    if (digits->len <= old->room && items__core_is_alone(old)) {
        write_over(op, stripe, old, digits, cas);
        return 0;
    }
    err = fill(op, digits, old->item.flags, old->expiry_s);
    if (err == 0) {
        items__op_publish(op, stripe, old, ITEMS__HEIR, cas);
        op->done->heat = heat;
    }
    return err;
}

static void
count_hit(struct op *op, struct stripe *stripe, int err)
{
    const struct items_arith *arith = op->ask;

    if (err == 0) {
        unsigned class_ = items__stripe_class(stripe, op->done);

        ITEMS__COUNT(stripe, class_, decr_hits, arith->negative);
        ITEMS__COUNT(stripe, class_, incr_hits, !arith->negative);
    }
}

static int
step(struct op *op, struct stripe *stripe)
{
    const struct items_arith *arith = op->ask;
    struct items_number *out = op->answer;
    struct entry *old =
        items__core_find(op->items, stripe, &op->key, op->now_s);
    struct digits digits;
    uint64_t number = 0;
    int err;

    if (old == NULL) {
        err = op->terms->vivifies ? vivify(op, stripe) : ERR_NOT_FOUND;
    } else {
        out->old_expiry_s = old->expiry_s;
        err = condition(arith, old, &number);
        if (err == 0) {
            out->value = sum(arith, number);
            digits = digits_of(out->value);
            err = put(op, stripe, old, &digits);
            count_hit(op, stripe, err);
        }
    }
    if (err == 0) {
        if (op->terms->touches && !out->is_new) {
            items__core_expire(op->items, op->done, op->terms->expiry_s);
        }
        out->cas = op->done->item.cas;
        out->expiry_s = op->done->expiry_s;
    }
    return err;
}

int
items_arith(struct items *items, const struct items_arith *arith,
    uint64_t now_s, struct items_number *out)
{
    struct items_number answer = {0};
    struct op op =
        items__op_of(items, arith->key, arith->key_len, &arith->terms, now_s);
    int err;

    op.ask = arith;
    op.answer = &answer;
    err = items__op_run(&op, step);
    if (err == 0) {
        *out = answer;
    }
    return err;
}
