/* SPDX-License-Identifier: BSD-3-Clause */
/* The batch read with the line lookup of line_read.h's NEON variant. */
#define LINE_READ_NEON 1
#define READER_NAME reader_neon
#include "engine/reader_body.h"
