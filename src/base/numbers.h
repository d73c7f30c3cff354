/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_NUMBERS_H
#define BASE_NUMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An array of numbers that grows. All zero is empty. One thread at a time. */
struct numbers {
    uint64_t *number; /* owned; n of capacity */
    size_t n, capacity;
};

/* At the end. 0 or ERR_NO_MEMORY. */
int numbers_add(struct numbers *numbers, uint64_t number);

/* They ascend from now on. */
void numbers_sort(struct numbers *numbers);

/* They ascend. */
bool numbers_has(const struct numbers *numbers, uint64_t number);

/* Empty again. */
void numbers_fini(struct numbers *numbers);

#endif
