/* SPDX-License-Identifier: BSD-3-Clause */
#define LINE_READ_PORTABLE 1
#define LINE_READER line_reader_portable
#include "unit/line_reader.h"

LINE_READER_IS("portable");
