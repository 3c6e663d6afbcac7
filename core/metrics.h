/* metrics.h - counters, gauges and histograms of this process, in Prometheus' text format 0.0.4. */
#ifndef FERMATA_CORE_METRICS_H
#define FERMATA_CORE_METRICS_H

#include "core/memory.h"

enum metric {
#define METRIC(id, kind, name, help) METRIC_##id,
#include "core/metrics.def"
#undef METRIC
	METRIC_COUNT,
};

/* Thread-safe, lock-free. */
void metrics_add(enum metric metric, int64_t amount);
void metrics_set(enum metric metric, int64_t value);
/* Of a histogram: how many observations there were. */
int64_t metrics_get(enum metric metric);
/* For histograms: one observation, in microseconds. */
void metrics_observe_us(enum metric metric, int64_t us);
/* Writes all of them, HELP and TYPE lines included. */
void metrics_write(struct buffer *out);

#endif
