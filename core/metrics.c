#include "core/metrics.h"

#include <assert.h>
#include <inttypes.h>
#include <stdatomic.h>

enum kind { COUNTER, GAUGE, HISTOGRAM };

struct description {
	enum kind kind;
	const char *name;
	const char *help; /* without backslashes and newlines, which the format would have escaped */
};

static const struct description descriptions[METRIC_COUNT] = {
#define METRIC(id, kind, name, help) [METRIC_##id] = { kind, name, help },
#include "core/metrics.def"
#undef METRIC
};

static const char *const kind_names[] = {
	[COUNTER] = "counter",
	[GAUGE] = "gauge",
	[HISTOGRAM] = "histogram",
};

/* From a lone decision's few milliseconds to what waited for somebody to mend something. */
static const struct {
	int64_t us;
	const char *le;
} bounds[] = {
	{ 1000, "0.001" },    { 2500, "0.0025" },     { 5000, "0.005" },  { 10000, "0.01" },  { 25000, "0.025" },
	{ 50000, "0.05" },    { 100000, "0.1" },      { 250000, "0.25" }, { 500000, "0.5" },  { 1000000, "1" },
	{ 2500000, "2.5" },   { 5000000, "5" },       { 10000000, "10" }, { 30000000, "30" }, { 60000000, "60" },
	{ 300000000, "300" }, { 3600000000, "3600" },
};
#define BOUND_COUNT (sizeof(bounds) / sizeof(bounds[0]))

/* A plain number is in `value`; a histogram has its sum there (us) and its observations, each counted
 * in one bucket only, in `buckets` (the last one: above every bound). */
static struct {
	_Atomic int64_t value;
	_Atomic int64_t buckets[BOUND_COUNT + 1];
} cells[METRIC_COUNT];

void metrics_add(enum metric metric, int64_t amount)
{
	assert(descriptions[metric].kind != HISTOGRAM);
	atomic_fetch_add_explicit(&cells[metric].value, amount, memory_order_relaxed);
}

void metrics_set(enum metric metric, int64_t value)
{
	assert(descriptions[metric].kind == GAUGE);
	atomic_store_explicit(&cells[metric].value, value, memory_order_relaxed);
}

static int64_t load_bucket(enum metric metric, size_t i)
{
	return atomic_load_explicit(&cells[metric].buckets[i], memory_order_relaxed);
}

int64_t metrics_get(enum metric metric)
{
	int64_t count = 0;

	if (descriptions[metric].kind != HISTOGRAM)
		return atomic_load_explicit(&cells[metric].value, memory_order_relaxed);
	for (size_t i = 0; i <= BOUND_COUNT; i++)
		count += load_bucket(metric, i);
	return count;
}

void metrics_observe_us(enum metric metric, int64_t us)
{
	size_t bucket = 0;

	assert(descriptions[metric].kind == HISTOGRAM);
	if (us < 0)
		us = 0; /* two machines' clocks, or one that was set back */
	while (bucket < BOUND_COUNT && us > bounds[bucket].us)
		bucket++;
	atomic_fetch_add_explicit(&cells[metric].buckets[bucket], 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&cells[metric].value, us, memory_order_relaxed);
}

/* The format's buckets are cumulative, and _count has to equal the last one, so it is not read again. */
static void write_histogram(struct buffer *out, enum metric metric)
{
	const char *name = descriptions[metric].name;
	int64_t count = 0;

	for (size_t i = 0; i <= BOUND_COUNT; i++) {
		count += load_bucket(metric, i);
		buffer_printf(out, "%s_bucket{le=\"%s\"} %" PRId64 "\n", name,
		              i < BOUND_COUNT ? bounds[i].le : "+Inf", count);
	}
	int64_t sum_us = atomic_load_explicit(&cells[metric].value, memory_order_relaxed);
	buffer_printf(out, "%s_sum %" PRId64 ".%06" PRId64 "\n", name, sum_us / 1000000, sum_us % 1000000);
	buffer_printf(out, "%s_count %" PRId64 "\n", name, count);
}

void metrics_write(struct buffer *out)
{
	for (size_t i = 0; i < METRIC_COUNT; i++) {
		const struct description *description = &descriptions[i];
		buffer_printf(out, "# HELP %s %s\n", description->name, description->help);
		buffer_printf(out, "# TYPE %s %s\n", description->name, kind_names[description->kind]);
		if (description->kind == HISTOGRAM)
			write_histogram(out, (enum metric)i);
		else
			buffer_printf(out, "%s %" PRId64 "\n", description->name, metrics_get((enum metric)i));
	}
}
