/* SPDX-License-Identifier: BSD-3-Clause */
/* The batch read with the line lookup of line_read.h's PORTABLE variant. */
#define LINE_READ_PORTABLE 1
#define READER_NAME reader_portable
#include "engine/reader_body.h"
