/* SPDX-License-Identifier: BSD-3-Clause */
/* An array of numbers that doubles when it is full. numbers_has searches by
 * halves, so it needs them in order. */
#include "base/numbers.h"

#include "base/err.h"

#include <stdlib.h>

enum { FIRST_N = 16 };

int
numbers_add(struct numbers *numbers, uint64_t number)
{
    if (numbers->n == numbers->capacity) {
        size_t n = numbers->capacity == 0 ? FIRST_N : 2 * numbers->capacity;
        uint64_t *more = realloc(numbers->number, n * sizeof *more);
        if (more == NULL) {
            return ERR_NO_MEMORY;
        }
        numbers->number = more;
        numbers->capacity = n;
    }
    numbers->number[numbers->n++] = number;
    return 0;
}

static int
by_number(const void *a, const void *b)
{
    const uint64_t *left = a, *right = b;
    return *left < *right ? -1 : *left > *right;
}

void
numbers_sort(struct numbers *numbers)
{
    if (numbers->n > 0) {
        qsort(numbers->number, numbers->n, sizeof *numbers->number, by_number);
    }
}

bool
numbers_has(const struct numbers *numbers, uint64_t number)
{
    return numbers->n > 0 &&
        bsearch(&number, numbers->number, numbers->n, sizeof number,
            by_number) != NULL;
}

void
numbers_fini(struct numbers *numbers)
{
    free(numbers->number);
    *numbers = (struct numbers){0};
}
