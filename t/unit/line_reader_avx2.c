/* SPDX-License-Identifier: BSD-3-Clause */
#define LINE_READ_AVX2 1
#define LINE_READER line_reader_avx2
#include "unit/line_reader.h"

LINE_READER_IS("avx2");
