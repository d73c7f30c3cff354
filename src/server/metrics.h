/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SERVER_METRICS_H
#define SERVER_METRICS_H

#include "base/buf.h"
#include "server/figures.h"
#include "server/health.h"

/* Figures in the form that Prometheus reads. Pure. */

enum metrics_form {
    METRICS_TEXT, /* Prometheus' own, 0.0.4 */
    METRICS_OPEN  /* OpenMetrics 1.0.0 */
};

/* Static storage. */
const char *metrics_content_type(enum metrics_form form);

/* Appends all metrics of which there are figures. */
void metrics_put(enum metrics_form form, const struct figures *figures,
    const struct health *health, struct buf *out);

/* Appends the tables of doc/metrics.md: every metric that there can be. */
void metrics_document(struct buf *out);

#endif
