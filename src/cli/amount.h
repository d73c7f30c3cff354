/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CLI_AMOUNT_H
#define CLI_AMOUNT_H

#include <stdint.h>

/* Numbers as people read them. Pure. */

enum { AMOUNT_BYTES = 32 };

/* "512 B", "1.5 GB": powers of 1000, as disks are sold. */
void amount_bytes(double bytes, char out[AMOUNT_BYTES]);

/* "812", "12.3k", "4.5M". */
void amount_number(double number, char out[AMOUNT_BYTES]);

/* "0.4 s", "12 s", "3 min 4 s", "2 h 5 min", "3 d 4 h". */
void amount_seconds(double seconds, char out[AMOUNT_BYTES]);

/* "812 us", "1.5 ms", "2.0 s". */
void amount_us(uint64_t us, char out[AMOUNT_BYTES]);

#endif
