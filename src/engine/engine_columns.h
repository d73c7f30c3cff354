/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_ENGINE_COLUMNS_H
#define ENGINE_ENGINE_COLUMNS_H

#include "engine/engine_copy.h"
#include "engine/engine_priv.h"

/* The columns of copies against those that a counter has now. */

/* The columns of a view into rows. */
void engine__take_columns(const struct view *view, struct engine_rows *rows);

/* True where rows have the columns of a view. */
bool engine__has_columns(
    const struct view *view, const struct engine_rows *rows);

/* The arrays of those columns of a copy that a counter has now. */
struct carry_rows engine__choose_columns(
    const struct view *view, const struct engine_rows *from);

#endif
