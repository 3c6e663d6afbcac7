#include "worker/startup.h"
#include "worker/learn.h"
#include "worker/rivals.h"

#include "core/log.h"
#include "store/store_facts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define ASK_TIMEOUT_MS 3000
#define WAIT_MS        1000
#define SAY_EVERY_MS   15000
#define DRAIN_AWAY_MS  60000
#define GATES_MS       5000
#define STOPPED_MS     90000 /* more than a minute, in which a partition that is stopped is tried */

/* ---- waiting for the world ---- */

struct patience {
	struct worker *worker;
	const struct worker_options *options;
	int64_t since_ms;
	int64_t say_at_ms;
};

/* After a RETRY: says now and then what is waited for. OK: try again; else the error to end with. */
static enum fate wait_for_world(struct patience *patience, struct error *error)
{
	int64_t now = clock_mono_ms();
	if (now >= patience->say_at_ms) {
		log_warn("worker", "waiting: %s", error->message);
		patience->say_at_ms = now + SAY_EVERY_MS;
	}
	if (patience->options->drain && now - patience->since_ms > DRAIN_AWAY_MS) {
		error->code = ERR_SERVICE;
		return error_wrap(error, "a drain does not wait for longer than a minute");
	}
	if (patience->options->patience_ms > 0 && now - patience->since_ms > patience->options->patience_ms)
		return FATE_RETRY;
	(void)worker_pause(patience->worker, WAIT_MS);
	return FATE_OK;
}

typedef enum fate step(struct worker *worker, const struct worker_options *options, struct store *store,
                       struct error *error);

/* Runs one step until it works, fails for good, or the worker is to stop. */
static enum fate until_done(struct worker *worker, const struct worker_options *options, struct store *store,
                            step *run, struct error *error)
{
	struct patience patience = { worker, options, clock_mono_ms(), 0 };
	while (!worker_stopping(worker)) {
		worker_part_waits_for(worker, PART_START, WAIT_WORLD);
		enum fate fate = run(worker, options, store, error);
		if (fate == FATE_RETRY) {
			if (atomic_load(&worker->waits_for[PART_START]) == WAIT_WORLD)
				worker_part_waits(worker, PART_START, error);
			fate = wait_for_world(&patience, error);
		} else
			return fate;
		if (fate != FATE_OK)
			return fate;
	}
	return FATE_OK;
}

/* ---- the steps ---- */

static enum fate open_vault(struct worker *worker, struct error *error)
{
	size_t command_len;
	const char *const *command = config_list(worker->config, PARAM_VAULT_KEYRING_COMMAND, &command_len);
	struct vault_source source = {
		.keyring_file = config_text(worker->config, PARAM_VAULT_KEYRING_FILE),
		.keyring_command = command_len > 0 ? command : NULL,
		.credentials_directory = getenv("CREDENTIALS_DIRECTORY"),
	};
	enum fate fate = vault_start(error);
	return fate == FATE_OK ? vault_open(&worker->vault, &source, error) : fate;
}

static enum fate step_vault(struct worker *worker, const struct worker_options *options, struct store *store,
                            struct error *error)
{
	(void)options;
	(void)store;
	return open_vault(worker, error);
}

static enum fate step_postgres(struct worker *worker, const struct worker_options *options,
                               struct store *store, struct error *error)
{
	(void)worker;
	(void)options;
	enum fate fate = store_connect(store, error);
	return fate == FATE_OK ? store_check_version(store, error) : fate;
}

static enum fate open_ends(struct worker *worker, struct error *error)
{
	if (worker->ends != NULL)
		return FATE_OK;
	struct reader_settings settings = { .client_id = "fermata-ends",
		                                .read_uncommitted = true,
		                                .prefetch_bytes = (size_t)1 << 20 };
	settings.properties = config_kafka(worker->config, KAFKA_CONSUMER, &settings.properties_len);
	return reader_open(&worker->ends, &settings, error);
}

static enum fate need_topic(struct worker *worker, const char *topic, int32_t *ret_partitions,
                            struct error *error)
{
	enum fate fate = reader_partitions(worker->ends, topic, ASK_TIMEOUT_MS, ret_partitions, error);
	if (fate != FATE_OK || *ret_partitions > 0)
		return fate;
	if (worker->quiet) /* a command that runs once does not wait for it */
		return error_set(
			error, FATE_FATAL, ERR_USAGE,
			"topic %.100s does not exist: run `fermata topics create`, or correct topics.* in the "
			"configuration",
			topic);
	return error_set(error, FATE_RETRY, ERR_SERVICE, "topic %s does not exist: run `fermata topics create`",
	                 topic);
}

static enum fate step_kafka(struct worker *worker, const struct worker_options *options, struct store *store,
                            struct error *error)
{
	(void)options;
	(void)store;
	static const enum param topics[] = { PARAM_TOPICS_SUSPENDS, PARAM_TOPICS_APPROVALS, PARAM_TOPICS_GATES,
		                                 PARAM_TOPICS_DEAD_LETTERS };
	enum fate fate = open_ends(worker, error);
	if (fate == FATE_OK)
		fate = reader_cluster_id(worker->ends, ASK_TIMEOUT_MS, worker->cluster_id, sizeof(worker->cluster_id),
		                         error);
	for (size_t i = 0; i < sizeof(topics) / sizeof(topics[0]) && fate == FATE_OK; i++) {
		int32_t partitions;
		fate = need_topic(worker, config_text(worker->config, topics[i]), &partitions, error);
	}
	return fate;
}

/* The topics of the configuration behind those that are known already. */
static enum fate add_configured(struct worker *worker, struct error *error)
{
	size_t len;
	const char *const *names = config_resumes_topics(worker->config, &len);
	struct resumes_topic *topics = arena_array(worker->arena, worker->topics_len + len, sizeof(*topics));
	if (topics == NULL)
		return error_set(error, FATE_FATAL, ERR_MEMORY, "no memory for the list of topics");
	if (worker->topics_len > 0)
		memcpy(topics, worker->topics, worker->topics_len * sizeof(*topics));
	worker->topics = topics;
	for (size_t i = 0; i < len; i++) {
		if (worker_partitions(worker, names[i]) != 0)
			continue;
		enum fate fate = need_topic(worker, names[i], &topics[worker->topics_len].partitions, error);
		if (fate != FATE_OK)
			return fate;
		topics[worker->topics_len++].topic = view_of(names[i]);
	}
	return FATE_OK;
}

static enum fate look_at_installation(struct worker *worker, struct store *store, struct error *error)
{
	struct view group, cluster;
	arena_reset(worker->arena);
	enum fate fate = store_installed(store, worker->arena, &group, &cluster, error);
	if (fate == FATE_OK && view_is_null(group))
		return error_set(error, FATE_FATAL, ERR_USAGE,
		                 "no worker has ever run on this database: start one, or run `fermata rebuild`");
	if (fate == FATE_OK && !view_equal_text(cluster, worker->cluster_id))
		return error_set(
			error, FATE_FATAL, ERR_USAGE,
			"this database belongs to the Kafka cluster \"%.*s\", and kafka.bootstrap.servers leads to "
			"\"%s\"",
			(int)cluster.len, (const char *)cluster.data, worker->cluster_id);
	if (fate == FATE_OK)
		fate = store_published_topics(store, worker->arena, &worker->topics, &worker->topics_len, error);
	return fate == FATE_OK ? add_configured(worker, error) : fate;
}

/* Which group works on this database, and which resumes topics were ever published to. */
static enum fate step_installation(struct worker *worker, const struct worker_options *options,
                                   struct store *store, struct error *error)
{
	size_t len;
	const char *const *names = config_resumes_topics(worker->config, &len);
	if (options->look_only)
		return look_at_installation(worker, store, error);
	enum fate looked = options->look == NULL ? FATE_OK : options->look(options->context, store, error);
	if (looked != FATE_OK)
		return looked;
	arena_reset(worker->arena);
	size_t all = len + options->resumes_topics_len;
	struct resumes_topic *topics = arena_array(worker->arena, all, sizeof(*topics));
	if (topics == NULL)
		return error_set(error, FATE_FATAL, ERR_MEMORY, "no memory for the list of topics");
	for (size_t i = 0; i < all; i++) {
		const char *name = i < len ? names[i] : options->resumes_topics[i - len];
		enum fate fate = need_topic(worker, name, &topics[i].partitions, error);
		if (fate != FATE_OK)
			return fate;
		topics[i].topic = view_of(name);
	}
	return store_installation(store, config_text(worker->config, PARAM_WORKER_GROUP), worker->cluster_id,
	                          options->adopt_group, topics, all, worker->arena, &worker->topics,
	                          &worker->topics_len, error);
}

/* Not beside another installation: what it holds it would not get back. One that was stopped a moment ago counts until
 * its session is over. */
static enum fate step_alone(struct worker *worker, const struct worker_options *options, struct store *store,
                            struct error *error)
{
	if (options->look_only)
		return FATE_OK;
	enum fate fate = store_installation_mark(store, worker->mark, error);
	if (fate != FATE_OK)
		return fate;
	fate = rivals_look(worker, error);
	if (fate != FATE_OK)
		atomic_store(&worker->waits_for[PART_START], WAIT_RIVAL);
	return fate;
}

static enum fate step_schemas(struct worker *worker, const struct worker_options *options,
                              struct store *store, struct error *error)
{
	if (options->look_only) /* what is read was kept when it was read first */
		return FATE_OK;
	enum fate fate = learn_keep_own(worker, store, error);
	return fate == FATE_OK ? learn_own_ids(worker, store, error) : fate;
}

enum fate startup(struct worker *worker, const struct worker_options *options, struct error *error)
{
	static step *const steps[] = { step_vault,        step_postgres, step_kafka,
		                           step_installation, step_alone,    step_schemas };
	worker->arena = arena_new((size_t)4 << 20);
	if (worker->arena == NULL)
		return error_set(error, FATE_FATAL, ERR_MEMORY, "no memory");
	vault_sha256(view_of(config_routes_text(worker->config)), worker->routes_digest);
	struct store *store = NULL;
	enum fate fate = learn_open(worker, error);
	if (fate == FATE_OK)
		fate = worker_open_store(worker, "start", &store, error);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]) && fate == FATE_OK; i++) {
		if (worker_stopping(worker))
			break;
		fate = until_done(worker, options, store, steps[i], error);
	}
	store_close(store);
	worker_part_ok(worker, PART_START, true);
	return fate;
}

/* ---- drain ---- */

static enum fate add_ends(struct drain *drain, struct worker *worker, struct reader *reader,
                          const char *topic, struct error *error)
{
	int32_t count;
	enum fate fate = need_topic(worker, topic, &count, error);
	if (fate != FATE_OK)
		return fate;
	struct partition_at *grown =
		realloc(drain->ends, (drain->ends_len + (size_t)count) * sizeof(*drain->ends));
	if (grown == NULL)
		return error_set(error, FATE_FATAL, ERR_MEMORY, "no memory for the ends of %s", topic);
	drain->ends = grown;
	for (int32_t i = 0; i < count && fate == FATE_OK; i++) {
		int64_t low, end;
		fate = reader_range(reader, topic, i, ASK_TIMEOUT_MS, &low, &end, error);
		drain->ends[drain->ends_len++] = (struct partition_at){ topic, i, end };
	}
	return fate;
}

/* The ends as a committed reader sees them: what is not committed is nothing to wait for. */
enum fate drain_init(struct drain *drain, struct worker *worker, struct error *error)
{
	struct reader *reader = NULL;
	struct reader_settings settings = { .client_id = "fermata-drain", .prefetch_bytes = (size_t)1 << 20 };
	settings.properties = config_kafka(worker->config, KAFKA_CONSUMER, &settings.properties_len);
	drain->arena = arena_new((size_t)16 << 20);
	if (drain->arena == NULL)
		return error_set(error, FATE_FATAL, ERR_MEMORY, "no memory");
	enum fate fate = worker_open_store(worker, "drain", &drain->store, error);
	if (fate == FATE_OK)
		fate = reader_open(&reader, &settings, error);
	if (fate == FATE_OK)
		fate = add_ends(drain, worker, reader, config_text(worker->config, PARAM_TOPICS_SUSPENDS), error);
	if (fate == FATE_OK)
		fate = add_ends(drain, worker, reader, config_text(worker->config, PARAM_TOPICS_APPROVALS), error);
	reader_close(reader, 1000);
	return fate;
}

/* Its breaker has stopped it: not waited for, but while it is being tried. Another worker's is given the time. */
static bool stopped(struct drain *drain, const struct worker *worker)
{
	if (drain->stopped_ms == 0)
		drain->stopped_ms = clock_mono_ms();
	return (atomic_load(&worker->stopped_parts) > 0 && atomic_load(&worker->probing_parts) == 0) ||
	       clock_mono_ms() - drain->stopped_ms > STOPPED_MS;
}

static bool end_reached(struct drain *drain, const struct worker *worker, const struct partition_at *end,
                        const struct position *rows, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (rows[i].partition == end->partition && view_equal_text(rows[i].topic, end->topic))
			return rows[i].waits == WAITS_ALARM || rows[i].next >= end->offset ||
			       (rows[i].waits == WAITS_BREAKER && stopped(drain, worker));
	return end->offset == 0;
}

static bool any_waits(const struct drain *drain, enum position_waits why, const struct position *rows,
                      size_t len)
{
	for (size_t i = 0; i < len; i++)
		for (size_t e = 0; e < drain->ends_len; e++)
			if (rows[i].waits == why && rows[i].partition == drain->ends[e].partition &&
			    rows[i].next < drain->ends[e].offset && view_equal_text(rows[i].topic, drain->ends[e].topic))
				return true;
	return false;
}

/* Gate events leave by the same relays. They are waited for, but not for long: some may not be to be had now,
 * and none of them is lost. */
static enum fate told(struct drain *drain, bool *ret_told, struct error *error)
{
	int64_t outbox, gates, unclaimed;
	enum fate fate = store_backlog(drain->store, &outbox, &gates, &unclaimed, error);
	if (fate != FATE_OK)
		return fate;
	if (drain->quiet_since_ms == 0)
		drain->quiet_since_ms = clock_mono_ms();
	*ret_told = gates == 0 || clock_mono_ms() - drain->quiet_since_ms > GATES_MS;
	return FATE_OK;
}

/* A file of schemas.path cannot be used, and nothing has moved for a minute: somebody has to mend it first. */
static bool is_held(struct drain *drain, const struct worker *worker, const struct position *rows, size_t len,
                    int64_t left)
{
	int64_t sum = left, now = clock_mono_ms();
	for (size_t i = 0; i < len; i++)
		sum += rows[i].next;
	if (atomic_load(&worker->broken_schemas) == 0 || drain->held_since_ms == 0 || sum != drain->held_sum)
		drain->held_since_ms = now;
	drain->held_sum = sum;
	return now - drain->held_since_ms > DRAIN_AWAY_MS;
}

static enum fate look(struct drain *drain, struct worker *worker, bool *ret_done, struct error *error)
{
	struct position *rows;
	size_t len;
	arena_reset(drain->arena);
	enum fate fate = store_positions(drain->store, worker->cluster_id, drain->arena, &rows, &len, error);
	if (fate != FATE_OK)
		return fate;
	if (!any_waits(drain, WAITS_BREAKER, rows, len))
		drain->stopped_ms = 0;
	drain->alarmed = any_waits(drain, WAITS_ALARM, rows, len);
	int64_t left;
	fate = shards_backlog(worker, drain->store, &left, error);
	drain->held = fate == FATE_OK && left >= 0 && is_held(drain, worker, rows, len, left);
	*ret_done = drain->held;
	if (fate != FATE_OK || drain->held)
		return fate;
	for (size_t i = 0; i < drain->ends_len; i++)
		if (!end_reached(drain, worker, &drain->ends[i], rows, len))
			return FATE_OK;
	if (left != 0)
		return FATE_OK;
	return told(drain, ret_done, error);
}

enum fate drain_look(struct drain *drain, struct worker *worker, bool *ret_done, struct error *error)
{
	*ret_done = false;
	enum fate fate = look(drain, worker, ret_done, error);
	if (fate == FATE_OK)
		drain->away_since_ms = 0;
	else if (drain->away_since_ms == 0)
		drain->away_since_ms = clock_mono_ms();
	return fate;
}

void drain_done(struct drain *drain)
{
	store_close(drain->store);
	arena_free(drain->arena);
	free(drain->ends);
}
