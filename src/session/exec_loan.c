/* SPDX-License-Identifier: BSD-3-Clause */
/* Large values of items: whether they are lent, and what that means for the
 * turn.
 *
 * A reply whose value is lent has all its bytes but those in turn->out, and
 * the executor's loan says where they belong. Nothing else is begun behind it
 * in the turn (mark is 0 then), so what follows it is at most the end of its
 * own request. Where replies are on their way already, or wait for the log,
 * the turn ends before such a value, without having looked it up; it is looked
 * up when the others are gone.
 *
 * What can go wrong: too much is lent already, or the value has become large
 * since it was looked at. Then it is copied. Memory for the end of its reply:
 * then the whole of it is taken back, with the loan (loan_take_back). */
#include "session/exec_admin.h"

#include "base/assert.h"

static struct items *
items_of(struct session *session)
{
    return session->executor->store->items;
}

bool
exec__awaits_loan(struct session *session, const char *key, size_t key_len)
{
    struct executor *executor = session->executor;
    struct loan *loan = &executor->loan;
    bool is_free = loan->use == LOAN_NOW && executor->acks.seq == 0;
    if (loan->use == LOAN_NEVER || is_free ||
        items_value_len(items_of(session), key, key_len,
            exec__now_s(session)) < loan->bytes_min) {
        return false;
    }
    loan->is_awaited = true;
    return true;
}

bool
exec__lend(struct session *session, const struct item *item)
{
    struct executor *executor = session->executor;
    struct loan *loan = &executor->loan;
    if (loan->use != LOAN_NOW || item->value_len < loan->bytes_min ||
        executor->acks.seq != 0) {
        return false;
    }
    ASSERT(loan->item == NULL);
    return items_lend(items_of(session), item);
}

void
exec__note_loan(struct session *session, const struct item *item, size_t at)
{
    ASSERT(session->executor->loan.item == NULL);
    session->executor->loan.item = item;
    session->executor->loan.at = at;
}

void
loan_take_back(struct executor *executor)
{
    if (executor->loan.item != NULL) {
        items_unlend(executor->store->items, executor->loan.item);
        executor->loan.item = NULL;
    }
}
