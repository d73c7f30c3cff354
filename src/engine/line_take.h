/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_LINE_TAKE_H
#define ENGINE_LINE_TAKE_H

#include "engine/line_steps.h"

/* The last step of line_look.h, which is the only one to include this. */

_Static_assert(offsetof(struct line_form, extra_bits) + sizeof(uint64_t) ==
            sizeof(struct line_form) &&
        offsetof(struct line_form, wide) ==
            offsetof(struct line_form, extra_bits) + 2,
    "see line_look_tail");

#if LINE_READ_HAVE

LINE_TARGET_BEGIN

/* What step 2 says of one. */
struct line_look_at {
    const struct line *const *line;
    const uint64_t *byte;
};

LINE_READ_INLINE uint64_t
line_look_payload(struct line_look_at at, unsigned i)
{
    return line_match_bytes(at.line[i], (unsigned)at.byte[i]);
}

/* extra_bits in the low 8 bits, wide in the third and the fourth 8. */
LINE_READ_INLINE uint64_t
line_look_tail(const struct line_form *const *form, unsigned i)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    uint64_t tail;
    const char *end = (const char *)(form[i] + 1);
    memcpy(&tail, end - sizeof tail, sizeof tail);
    return tail;
#else
    return form[i]->extra_bits | (uint64_t)form[i]->wide << 16;
#endif
}

/* Step 3: is it the record, and its values. */
LINE_READ_INLINE bool
line_look_take(
    struct line_looks *looks, struct line_look_steps *steps, uint32_t n)
{
    lanes wide = {0};
    for (uint32_t i = 0; i < n; i += LANES) {
        lanes tail = LANES_EACH(line_look_tail, &looks->form[i]);
        lanes extra_bits = tail & UINT8_MAX;
        wide |= tail >> 16 >> lanes_load(&looks->shape[i]);
        lanes byte = lanes_load(&steps->byte[i]);
        struct line_look_at where = {&looks->line[i], &steps->byte[i]};
        lanes payload = LANES_EACH(line_look_payload, where);
        payload >>= lanes_load(&looks->at[i]) - (byte << 3);
        lanes extra = payload & ((lanes_all(1) << extra_bits) - 1);
        lanes remainder = lanes_load(&looks->remainder[i]);
        lanes match = lanes_load(&steps->match[i]);
        lanes is_found =
            (lanes)(extra == remainder >> LINE_TAG_BITS) & (lanes)(match != 0);
        lanes lacks = lanes_load(&steps->lacks[i]);
        lanes_store(&looks->is_found[i], is_found);
        lanes_store(&looks->bits[i], payload >> extra_bits & is_found);
        lanes_store(&looks->is_open[i], (lacks | match) & ~is_found);
    }
    return lanes_any(wide & 1);
}

LINE_TARGET_END

#endif
#endif
