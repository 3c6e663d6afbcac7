#include "worker/health.h"

#include "core/log.h"
#include "core/metrics.h"
#include "http/http.h"

#include <string.h>

#define LOOK_MS        10000
#define ASK_TIMEOUT_MS 1000

/* Can the worker do its work now, and has intake caught up with what stood at the start? */
static bool is_ready(const struct worker *worker)
{
	return worker_away_ms(worker) == 0 && atomic_load(&worker->fenced_shards) == 0 &&
	       atomic_load(&worker->alarmed_parts) == 0 && atomic_load(&worker->stopped_parts) == 0 &&
	       atomic_load(&worker->broken_schemas) == 0 && atomic_load(&worker->caught_up) &&
	       !worker_stopping(worker);
}

static void serve_metrics(void *context, const struct http_request *request, struct http_response *response)
{
	(void)request;
	metrics_set(METRIC_READY, is_ready(context) ? 1 : 0);
	response->content_type = "text/plain; version=0.0.4; charset=utf-8";
	metrics_write(&response->body);
}

static void serve_live(void *context, const struct http_request *request, struct http_response *response)
{
	(void)context;
	(void)request;
	buffer_append_text(&response->body, "alive\n");
}

static const char *const part_names[PART_COUNT] = {
	[PART_INTAKE_KAFKA] = "intake waits for Kafka",
	[PART_INTAKE_POSTGRES] = "intake waits for PostgreSQL",
	[PART_RELAY] = "a relay waits",
	[PART_REAPER] = "the reaper waits",
	[PART_REGISTRY] = "something waits for the schema registry",
	[PART_START] = "the start waits: the log says for what",
	[PART_GROUP] = "the group is shared with another installation",
};

static const char *const reasons[WAIT_COUNT] = {
	[WAIT_WORLD] = "",
	[WAIT_READ_ONLY] = ": PostgreSQL is read-only (a standby, or default_transaction_read_only is on): point "
					   "postgres.dsn to the primary, or turn it off",
	[WAIT_RIVAL] =
		": workers on another database are in this group: give each installation a worker.group and "
		"topics of its own, or correct postgres.dsn",
};

static void serve_ready(void *context, const struct http_request *request, struct http_response *response)
{
	const struct worker *worker = context;
	(void)request;
	if (is_ready(worker)) {
		buffer_append_text(&response->body, "ready\n");
		return;
	}
	response->status = 503;
	for (int i = 0; i < PART_COUNT; i++)
		if (atomic_load(&worker->away_since_ms[i]) != 0)
			buffer_printf(&response->body, "%s%s\n", part_names[i],
			              reasons[atomic_load(&worker->waits_for[i])]);
	if (atomic_load(&worker->fenced_shards) > 0)
		buffer_printf(
			&response->body,
			"%d shards are taken away from this worker again and again, by something that is not in its "
			"group: look for a second installation with this worker.group\n",
			atomic_load(&worker->fenced_shards));
	if (atomic_load(&worker->alarmed_parts) > 0)
		buffer_printf(&response->body,
		              "partitions that are left alone, for what was to be read next is not there: %d (the "
		              "log and `fermata "
		              "doctor` say which and why, docs/recovery.md what to do); the others go on\n",
		              atomic_load(&worker->alarmed_parts));
	if (atomic_load(&worker->stopped_parts) > 0)
		buffer_printf(
			&response->body,
			"partitions that are stopped, for most of their records become dead letters: %d (the log and "
			"`fermata doctor` say which and why); the others go on\n",
			atomic_load(&worker->stopped_parts));
	if (atomic_load(&worker->broken_schemas) > 0)
		buffer_printf(
			&response->body,
			"files of schemas.path that cannot be used: %d (the log and `fermata doctor` say which and "
			"why); what may need them waits, all else goes on\n",
			atomic_load(&worker->broken_schemas));
	if (!atomic_load(&worker->caught_up))
		buffer_append_text(&response->body,
		                   "approvals wait until the suspends that stood at the start are in\n");
}

static const struct http_route routes[] = {
	{ "GET", "/metrics", serve_metrics },
	{ "GET", "/live", serve_live },
	{ "GET", "/ready", serve_ready },
};

enum fate health_start(struct health *health, struct worker *worker, struct error *error)
{
	health->arena = arena_new((size_t)16 << 20);
	if (health->arena == NULL)
		return error_set(error, FATE_FATAL, ERR_MEMORY, "no memory");
	enum fate fate = worker_open_store(worker, "health", &health->store, error);
	struct http_settings settings = {
		.listen = config_text(worker->config, PARAM_WORKER_METRICS_LISTEN),
		.routes = routes,
		.routes_len = sizeof(routes) / sizeof(routes[0]),
		.context = worker,
	};
	if (fate != FATE_OK || settings.listen == NULL)
		return fate;
	fate = http_start(&health->http, &settings, error);
	if (fate != FATE_OK)
		return error_wrap(error, "worker.metrics.listen");
	if (http_warning(health->http) != NULL)
		log_warn("worker", "%s", http_warning(health->http));
	log_info("worker", "metrics at port %u", (unsigned)http_port(health->http));
	return FATE_OK;
}

/* Records between the positions in PostgreSQL and the high watermarks, over all partitions of a topic. */
static int64_t lag_of(struct worker *worker, const char *topic, const struct position *rows, size_t len)
{
	int64_t lag = 0;
	struct error error;
	for (size_t i = 0; i < len; i++) {
		int64_t low, end;
		if (!view_equal_text(rows[i].topic, topic))
			continue;
		if (reader_range(worker->ends, topic, rows[i].partition, ASK_TIMEOUT_MS, &low, &end, &error) !=
		    FATE_OK)
			return lag; /* the others would not answer either, each after its time */
		if (end > rows[i].next)
			lag += end - rows[i].next;
	}
	return lag;
}

static enum fate look(struct health *health, struct worker *worker, struct error *error)
{
	int64_t outbox, gates, unclaimed;
	struct position *rows;
	size_t len;
	arena_reset(health->arena);
	enum fate fate = store_backlog(health->store, &outbox, &gates, &unclaimed, error);
	if (fate == FATE_OK)
		fate = store_positions(health->store, worker->cluster_id, health->arena, &rows, &len, error);
	if (fate != FATE_OK)
		return fate;
	metrics_set(METRIC_OUTBOX, outbox);
	metrics_set(METRIC_UNCLAIMED, unclaimed);
	metrics_set(METRIC_LAG,
	            lag_of(worker, config_text(worker->config, PARAM_TOPICS_SUSPENDS), rows, len) +
	                lag_of(worker, config_text(worker->config, PARAM_TOPICS_APPROVALS), rows, len));
	return FATE_OK;
}

void health_tick(struct health *health, struct worker *worker)
{
	struct error error;
	if (health->http == NULL || clock_mono_ms() < health->look_at_ms)
		return;
	health->look_at_ms = clock_mono_ms() + LOOK_MS;
	if (look(health, worker, &error) != FATE_OK)
		log_error(LOG_LEVEL_DEBUG, "health", &error);
}

void health_stop(struct health *health)
{
	http_stop(health->http);
	store_close(health->store);
	arena_free(health->arena);
	*health = (struct health){ 0 };
}
