/* SPDX-License-Identifier: BSD-3-Clause */
/* Turns one bit after the other over, asks whether that is right, and turns it
 * back. */
#include "base/flip.h"

#include <limits.h>

bool
flip_find(const struct flip *flip, struct flip_budget *budget, size_t *at)
{
    uint64_t price = (uint64_t)flip->n * CHAR_BIT * flip->cost;
    if (budget == NULL || flip->n > FLIP_BYTES_MAX || price > budget->bytes) {
        return false;
    }
    budget->bytes -= price;
    for (size_t i = 0; i < flip->n; i++) {
        for (unsigned bit = 0; bit < CHAR_BIT; bit++) {
            flip->bytes[i] ^= (uint8_t)(1u << bit);
            if (flip->is_right_fn(flip->context)) {
                *at = i;
                return true;
            }
            flip->bytes[i] ^= (uint8_t)(1u << bit);
        }
    }
    return false;
}
