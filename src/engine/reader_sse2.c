/* SPDX-License-Identifier: BSD-3-Clause */
/* The batch read with the line lookup of line_read.h's SSE2 variant. */
#define LINE_READ_SSE2 1
#define READER_NAME reader_sse2
#include "engine/reader_body.h"
