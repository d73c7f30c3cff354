/* SPDX-License-Identifier: BSD-3-Clause */
/* The batch read with the line lookup of line_read.h's AVX2 variant. */
#define LINE_READ_AVX2 1
#define READER_NAME reader_avx2
#include "engine/reader_body.h"
