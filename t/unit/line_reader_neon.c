/* SPDX-License-Identifier: BSD-3-Clause */
#define LINE_READ_NEON 1
#define LINE_READER line_reader_neon
#include "unit/line_reader.h"

LINE_READER_IS("neon");
