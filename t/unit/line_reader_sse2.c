/* SPDX-License-Identifier: BSD-3-Clause */
#define LINE_READ_SSE2 1
#define LINE_READER line_reader_sse2
#include "unit/line_reader.h"

LINE_READER_IS("sse2");
