#include "cli/bench_stage.h"

#include "bench/database.h"
#include "cli/cli.h"
#include "cli/dev_probe.h"
#include "cli/topic_plan.h"
#include "producer/topics.h"
#include "store/store.h"
#include "vault/vault.h"

#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SETTINGS_MAX ((size_t)256 << 10)
#define ARENA_BYTES  ((size_t)1 << 20)
#define TOPICS_MS    30000
#define STOP_MS      12000
#define BARE         BROKER_TOPICS /* in topics[] */
#define HOP          (BROKER_TOPICS + 1)

/* ---- the servers ---- */

static enum fate start_servers(struct stage *stage, struct error *error)
{
	struct world *world = &stage->world;
	enum fate fate = FATE_OK;

	if (stage->dev && world->broker.kind == BROKER_MOCK)
		return error_set(error, FATE_FATAL, ERR_SERVICE,
		                 "there is no Kafka to measure (%.80s), and a mock cluster is none: set "
		                 "kafka.bootstrap.servers, or give --kafka-libs",
		                 world->broker.why);
	if (stage->dev)
		fate = postgres_start(&world->postgres, world->root, world->logs, error);
	if (fate == FATE_OK)
		fate = broker_start(&world->broker, world->root, world->logs, error);
	if (fate == FATE_OK)
		fate = files_free_port(&world->metrics_port, error);
	return fate;
}

enum fate stage_open(struct stage *stage, const struct stage_request *request, struct error *error)
{
	struct world_request world = {
		.name = "bench", .config = request->config, .kafka_libs = request->kafka_libs, .yours = !request->dev
	};
	const char *dsn;
	enum fate fate;

	*stage = (struct stage){ .users = request->config, .dev = request->dev };
	fate = world_open(&stage->world, &world, error);
	if (fate == FATE_OK)
		fate = start_servers(stage, error);
	if (fate != FATE_OK)
		return fate;
	dsn = request->dev ? stage->world.postgres.dsn : config_text(request->config, PARAM_POSTGRES_DSN);
	if (snprintf(stage->admin_dsn, sizeof(stage->admin_dsn), "%s", dsn != NULL ? dsn : "") >=
	    (int)sizeof(stage->admin_dsn))
		return error_set(error, FATE_FATAL, ERR_USAGE, "postgres.dsn is too long");
	return FATE_OK;
}

bool stage_close(struct stage *stage, bool keep_logs)
{
	struct error error;

	if (world_close(&stage->world, keep_logs ? KEEP_LOGS : KEEP_NOTHING, &error))
		return true;
	cli_warn("%s", error.message);
	return false;
}

/* ---- settings ---- */

/* What the user's configuration says about the work itself. Where his records go and what may be decided on them is his
 * alone: a measurement has neither his registry nor his routes. */
static bool is_carried(const char *key)
{
	static const char *const carried[] = { "postgres.prepared", "topics.partitions", "topics.replication",
		                                   "limits.record_bytes", "gates.include_action" };

	for (size_t i = 0; i < sizeof(carried) / sizeof(carried[0]); i++)
		if (!strcmp(key, carried[i]))
			return true;
	return !strncmp(key, "worker.", 7) && strcmp(key, "worker.group") != 0 &&
	       strcmp(key, "worker.metrics.listen") != 0;
}

static void carry(void *context, const struct config_setting *setting)
{
	if (is_carried(setting->key) && strcmp(setting->origin, "default") != 0)
		broker_put_setting(context, "", setting->key, setting->value);
}

static enum fate put_settings(const struct stage *stage, struct buffer *text, struct error *error)
{
	const struct world *world = &stage->world;
	enum fate fate = broker_settings(&world->broker, world->root, text, error);

	buffer_printf(text, "metrics.listen = 127.0.0.1:%d\n[]\n", world->metrics_port);
	broker_put_setting(text, "postgres.", "dsn", stage->dsns[0]);
	broker_put_setting(text, "vault.", "keyring_file", world->keyring);
	buffer_append_text(text, "log.level = warn\n");
	if (stage->retention != NULL) {
		broker_put_setting(text, "retention.", "payload", stage->retention);
		broker_put_setting(text, "retention.", "rows", stage->retention);
	}
	config_each(stage->users, carry, text);
	if (fate == FATE_OK && buffer_failed(text))
		fate = error_set(error, FATE_FATAL, ERR_MEMORY, "no memory for the settings");
	return fate;
}

static enum fate make_settings(struct stage *stage, struct error *error)
{
	struct config_request request = { .file = stage->world.settings };
	struct buffer text;
	enum fate fate;

	buffer_init(&text, SETTINGS_MAX);
	fate = put_settings(stage, &text, error);
	if (fate == FATE_OK)
		fate = files_write(stage->world.settings, 0600, buffer_view(&text), error);
	buffer_done(&text);
	return fate == FATE_OK ? config_load(&stage->config, &request, error) : fate;
}

static enum fate make_keys(struct stage *stage, struct error *error)
{
	char id[KEK_ID_MAX + 1];
	enum fate fate = vault_keyring_generate(stage->world.keyring, id, error);

	return fate == FATE_REJECT ? FATE_OK : fate; /* that of the size before */
}

/* ---- databases ---- */

static enum fate migrate(const char *dsn, struct error *error)
{
	struct store_settings settings = { .dsn = dsn, .name = "fermata bench", .prepared = true };
	struct store *store;
	int from, to;
	enum fate fate = store_open(&store, &settings, error);

	if (fate != FATE_OK)
		return fate;
	fate = store_migrate(store, &from, &to, error);
	store_close(store);
	return fate;
}

static enum fate make_databases(struct stage *stage, struct error *error)
{
	struct database *admin;
	enum fate fate = database_open(&admin, stage->admin_dsn, error);

	if (fate != FATE_OK)
		return fate;
	for (size_t i = 0; i < 2 && fate == FATE_OK; i++) {
		fate = database_dsn(stage->admin_dsn, stage->databases[i], stage->dsns[i], STAGE_DSN_MAX, error);
		if (fate == FATE_OK)
			fate = database_create(admin, stage->databases[i], error);
		stage->databases_made[i] = fate == FATE_OK;
		if (fate == FATE_OK)
			fate = migrate(stage->dsns[i], error);
	}
	database_close(admin);
	return fate;
}

static bool drop_databases(struct stage *stage)
{
	struct database *admin = NULL;
	struct error error = { .fate = FATE_OK };
	bool clean = true;

	if (!stage->databases_made[0] && !stage->databases_made[1])
		return true;
	enum fate opened = database_open(&admin, stage->admin_dsn, &error);
	for (size_t i = 0; i < 2; i++) {
		if (!stage->databases_made[i])
			continue;
		if (opened != FATE_OK || database_drop(admin, stage->databases[i], &error) != FATE_OK) {
			cli_warn("database %s could not be removed: %s; remove it: DROP DATABASE \"%s\"",
			         stage->databases[i], error.message, stage->databases[i]);
			clean = false;
		}
		stage->databases_made[i] = false;
	}
	database_close(admin);
	return clean;
}

/* ---- topics ---- */

/* The topics of an installation as they would be made for it, and two more: one like that of the resumes, one of one
 * partition. */
static enum fate want_topics(struct stage *stage, struct arena *arena, struct topic_want *wanted,
                             struct error *error)
{
	struct topic_plan *plans;
	size_t len;
	int32_t partitions = (int32_t)config_number(stage->config, PARAM_TOPICS_PARTITIONS);
	enum fate fate = topic_plans_make(stage->config, arena, &plans, &len, error);

	if (fate != FATE_OK)
		return fate;
	assert(len == BROKER_TOPICS);
	for (size_t i = 0; i < len; i++) {
		wanted[i] =
			(struct topic_want){ plans[i].name, partitions, plans[i].settings, plans[i].settings_len };
		if (plans[i].kind == TOPIC_RESUMES)
			wanted[BARE] = wanted[HOP] = wanted[i];
	}
	wanted[BARE].name = stage->topics[BARE];
	wanted[HOP].name = stage->topics[HOP];
	wanted[HOP].partitions = 1;
	return FATE_OK;
}

static enum fate create_topics(struct stage *stage, const struct topic_want *wanted, struct error *error)
{
	enum topic_result results[STAGE_TOPICS];
	char messages[STAGE_TOPICS][256];
	size_t len;
	const struct property *properties = config_kafka(stage->config, KAFKA_ADMIN, &len);
	int16_t replication = (int16_t)config_number(stage->config, PARAM_TOPICS_REPLICATION);
	enum fate fate;

	stage->topics_made = true;
	fate = topics_create(properties, len, wanted, STAGE_TOPICS, replication, TOPICS_MS, results, messages,
	                     error);
	for (size_t i = 0; i < STAGE_TOPICS && fate == FATE_OK; i++)
		if (results[i] == TOPIC_FAILED)
			fate = error_set(error, FATE_FATAL, ERR_USAGE, "topic %.80s could not be made: %.120s",
			                 wanted[i].name, messages[i]);
	return fate;
}

static enum fate make_topics(struct stage *stage, struct error *error)
{
	struct arena *arena = arena_new(ARENA_BYTES);
	struct topic_want wanted[STAGE_TOPICS];
	enum fate fate;

	if (arena == NULL)
		return error_set(error, FATE_FATAL, ERR_MEMORY, "no memory for the list of topics");
	fate = want_topics(stage, arena, wanted, error);
	if (fate == FATE_OK)
		fate = create_topics(stage, wanted, error);
	arena_free(arena);
	return fate;
}

static bool delete_topics(struct stage *stage)
{
	struct error error = { .fate = FATE_OK };
	const char *names[STAGE_TOPICS];

	if (!stage->topics_made)
		return true;
	for (size_t i = 0; i < STAGE_TOPICS; i++)
		names[i] = stage->topics[i];
	stage->topics_made = false;
	if (broker_delete(&stage->world.broker, names, STAGE_TOPICS, &error) == FATE_OK)
		return true;
	cli_warn("topics and groups %s* could not be removed: %s; remove them with Kafka's own tools",
	         stage->world.broker.group, error.message);
	return false;
}

/* ---- the ground ---- */

static void name_ground(struct stage *stage)
{
	static const char *const ends[STAGE_TOPICS] = { [BARE] = "bare", [HOP] = "hop" };
	struct broker *broker = &stage->world.broker;

	snprintf(broker->group, sizeof(broker->group), "fermata-bench-%s", stage->random);
	for (size_t i = 0; i < STAGE_TOPICS; i++)
		snprintf(stage->topics[i], sizeof(stage->topics[i]), "%s.%s", broker->group,
		         i < BROKER_TOPICS ? broker_topic_keys[i] : ends[i]);
	for (size_t i = 0; i < BROKER_TOPICS; i++)
		snprintf(broker->topics[i], sizeof(broker->topics[i]), "%s", stage->topics[i]);
	snprintf(stage->databases[0], STAGE_NAME_MAX, "fermata_bench_%s", stage->random);
	snprintf(stage->databases[1], STAGE_NAME_MAX, "fermata_bench_%s_copy", stage->random);
}

enum fate ground_make(struct stage *stage, const char *retention, struct error *error)
{
	enum fate fate = files_random_hex(stage->random, sizeof(stage->random) - 1, error);

	name_ground(stage);
	stage->retention = retention;
	if (fate == FATE_OK)
		fate = make_databases(stage, error);
	if (fate == FATE_OK)
		fate = make_keys(stage, error);
	if (fate == FATE_OK)
		fate = make_settings(stage, error);
	if (fate == FATE_OK)
		fate = make_topics(stage, error);
	stage->place = (struct bench_place){ .config = stage->config,
		                                 .dsn = stage->dsns[0],
		                                 .scratch_dsn = stage->dsns[1],
		                                 .bare_topic = stage->topics[BARE],
		                                 .hop_topic = stage->topics[HOP] };
	return fate;
}

bool ground_clear(struct stage *stage)
{
	stage_stop_worker(stage, false); /* it leaves its groups, which can be removed then */
	bool topics = delete_topics(stage);
	bool databases = drop_databases(stage);

	config_free(stage->config);
	stage->config = NULL;
	return topics && databases;
}

/* ---- the worker ---- */

enum fate stage_start_worker(struct stage *stage, long *ret_pid, struct error *error)
{
	char program[DEV_PATH_MAX], log[DEV_PATH_MAX];
	const char *argv[] = { program, NULL };
	struct process_spec spec = { .name = "the worker", .argv = argv, .log = log };
	enum fate fate = files_find_own("fermata-worker", program, error);

	files_join(log, stage->world.logs, "worker.log");
	if (fate == FATE_OK)
		fate = process_start(&stage->world.worker, &spec, error);
	*ret_pid = (long)stage->world.worker.pid;
	return fate;
}

bool stage_worker_ready(const struct stage *stage)
{
	return probe_ready(stage->world.metrics_port);
}

void stage_stop_worker(struct stage *stage, bool kill_it)
{
	struct process *worker = &stage->world.worker;

	if (!process_ended(worker) && kill_it)
		kill(worker->pid, SIGKILL);
	(void)process_stop(worker, STOP_MS);
	*worker = (struct process){ .pid = 0 };
}

enum fate stage_pause(struct stage *stage, int64_t ms, struct error *error)
{
	enum fate fate = process_pause(ms, error);

	return fate == FATE_OK ? world_check(&stage->world, error) : fate;
}
