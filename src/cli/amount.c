/* SPDX-License-Identifier: BSD-3-Clause */
/* Three digits or so: whoever wants more takes --json. */
#include "cli/amount.h"

#include "base/assert.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

enum { MINUTE = 60, HOUR = 3600, DAY = 86400, US_PER_MS = 1000 };

static const double step = 1000, us_per_s = 1e6;

/* With the largest unit that leaves it at 1 or more; what is shown as 1000 of
 * one is 1.0 of the next. */
static void
scale(double value, const char *const unit[], size_t n_units,
    char out[AMOUNT_BYTES])
{
    static const double rounds_up = 999.5;
    size_t i = 0;
    ASSERT(value >= 0);
    while (value >= rounds_up && i + 1 < n_units) {
        value /= step;
        i++;
    }
    (void)snprintf(out, AMOUNT_BYTES, "%.*f%s", i > 0 && value < 99.95 ? 1 : 0,
        value, unit[i]);
}

void
amount_bytes(double bytes, char out[AMOUNT_BYTES])
{
    static const char *const unit[] = {
        " B", " kB", " MB", " GB", " TB", " PB", " EB"};
    scale(bytes, unit, sizeof unit / sizeof unit[0], out);
}

void
amount_number(double number, char out[AMOUNT_BYTES])
{
    static const char *const unit[] = {"", "k", "M", "G", "T", "P", "E"};
    scale(number, unit, sizeof unit / sizeof unit[0], out);
}

void
amount_seconds(double seconds, char out[AMOUNT_BYTES])
{
    ASSERT(seconds >= 0);
    uint64_t s = (uint64_t)seconds;
    if (s < MINUTE) {
        (void)snprintf(
            out, AMOUNT_BYTES, "%.*f s", seconds < 10 ? 1 : 0, seconds);
    } else if (s < HOUR) {
        (void)snprintf(out, AMOUNT_BYTES, "%" PRIu64 " min %" PRIu64 " s",
            s / MINUTE, s % MINUTE);
    } else if (s < DAY) {
        (void)snprintf(out, AMOUNT_BYTES, "%" PRIu64 " h %" PRIu64 " min",
            s / HOUR, s % HOUR / MINUTE);
    } else {
        (void)snprintf(out, AMOUNT_BYTES, "%" PRIu64 " d %" PRIu64 " h",
            s / DAY, s % DAY / HOUR);
    }
}

void
amount_us(uint64_t us, char out[AMOUNT_BYTES])
{
    if (us < US_PER_MS) {
        (void)snprintf(out, AMOUNT_BYTES, "%" PRIu64 " us", us);
    } else if ((double)us < us_per_s) {
        (void)snprintf(out, AMOUNT_BYTES, "%.1f ms", (double)us / US_PER_MS);
    } else {
        (void)snprintf(out, AMOUNT_BYTES, "%.1f s", (double)us / us_per_s);
    }
}
