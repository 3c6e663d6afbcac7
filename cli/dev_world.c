#include "cli/dev_world.h"

#include "cli/dev_probe.h"
#include "core/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COMMAND_MS   60000
#define READY_MS     60000
#define STOP_MS      12000
#define POLL_MS      25
#define WORDS_MAX    32
#define SETTINGS_MAX ((size_t)256 << 10)

extern char **environ;

/* ---- directory and environment ------------------------------------------------------------- */

static bool begins(const char *text, const char *start)
{
	return strncmp(text, start, strlen(start)) == 0;
}

/* Variables that would reach past the configuration that we write: ours, those of libpq, systemd's credentials. */
static bool is_in_the_way(const char *variable, bool own_postgres)
{
	return begins(variable, "FERMATA_") || (own_postgres && begins(variable, "PG")) ||
	       begins(variable, "CREDENTIALS_DIRECTORY=");
}

static void clear_environment(bool own_postgres)
{
	char name[256];

	for (size_t i = 0; environ[i] != NULL;) {
		size_t len = strcspn(environ[i], "=");
		if (!is_in_the_way(environ[i], own_postgres) || len == 0 || len >= sizeof(name)) {
			i++;
			continue;
		}
		memcpy(name, environ[i], len);
		name[len] = '\0';
		if (unsetenv(name) != 0)
			i++;
	}
}

static enum fate make_directories(struct world *world, const struct world_request *request,
                                  struct error *error)
{
	char name[32];

	snprintf(name, sizeof(name), "fermata-%.16s", request->name);
	enum fate fate = files_make_root(name, postgres_drops_root(), world->root, error);
	if (fate != FATE_OK)
		return fate;
	files_join(world->logs, world->root, "logs");
	files_join(world->settings, world->root, "fermata.conf");
	files_join(world->keyring, world->root, "keyring");
	return files_make_directory(world->logs, 0700, error);
}

enum fate world_open(struct world *world, const struct world_request *request, struct error *error)
{
	struct broker_wish wish = {
		.libs = request->kafka_libs, .name = request->name, .mock = request->mock, .yours = request->yours
	};

	memset(world, 0, sizeof(*world));
	enum fate fate = processes_begin(error);
	if (fate == FATE_OK)
		fate = files_find_own("fermata", world->fermata, error);
	if (fate == FATE_OK)
		fate = broker_choose(&world->broker, request->config, &wish, error);
	if (fate == FATE_OK)
		fate = make_directories(world, request, error);
	if (fate != FATE_OK)
		return fate;
	clear_environment(!request->yours);
	if (setenv("FERMATA_CONFIG", world->settings, 1) != 0)
		return error_set(error, FATE_FATAL, ERR_MEMORY, "no memory for the environment");
	return FATE_OK;
}

/* ---- commands ------------------------------------------------------------------------------ */

enum fate world_run(struct world *world, const char *program, const char *const *words, process_line *take,
                    void *context, struct process *ret_process, struct error *error)
{
	const char *argv[WORDS_MAX + 2] = { world->fermata };
	char path[DEV_PATH_MAX], name[64];
	bool own = strcmp(program, "fermata") == 0;

	if (!own) {
		enum fate fate = files_find_own(program, path, error);
		if (fate != FATE_OK)
			return fate;
		argv[0] = path;
	}
	for (size_t i = 0; i < WORDS_MAX && words[i] != NULL; i++)
		argv[i + 1] = words[i];
	snprintf(name, sizeof(name), "%.32s.log", own ? words[0] : program);
	files_join(world->log, world->logs, name);
	struct process_spec spec = { .name = own ? words[0] : program, .argv = argv, .log = world->log };
	return process_run(&spec, COMMAND_MS, take, context, ret_process, error);
}

static void keep_last(void *context, const char *line)
{
	char *last = context;
	if (line[0] != '\0')
		snprintf(last, 256, "%s", line);
}

/* The code that an exit code of the contract stands for. */
static enum error_code code_of_exit(int exit_code)
{
	if (exit_code == 69)
		return ERR_SERVICE;
	return exit_code == 75 ? ERR_SYSTEM : ERR_BUG;
}

enum fate world_succeed(struct world *world, const char *const *words, struct error *error)
{
	char last[256] = "";
	struct process process;
	enum fate fate = world_run(world, "fermata", words, keep_last, last, &process, error);

	if (fate == FATE_OK && process.exit_code != 0)
		fate = error_set(error, FATE_FATAL, code_of_exit(process.exit_code),
		                 "fermata %s ended with exit code %d: %s", words[0], process.exit_code, last);
	return fate;
}

/* ---- the steps ----------------------------------------------------------------------------- */

static void FM_PRINTF(2, 3) tell_detail(struct told *told, const char *fmt, ...)
{
	size_t len = strlen(told->details);
	va_list args;

	va_start(args, fmt);
	vsnprintf(told->details + len, sizeof(told->details) - len, fmt, args);
	va_end(args);
}

static enum fate start_postgres(struct world *world, struct error *error)
{
	enum fate fate = postgres_start(&world->postgres, world->root, world->logs, error);
	memcpy(world->log, world->postgres.log, sizeof(world->log));
	return fate;
}

static void tell_postgres(const struct world *world, struct told *told)
{
	const struct postgres *postgres = &world->postgres;

	snprintf(told->title, sizeof(told->title), "PostgreSQL %s, a private cluster", postgres->version);
	tell_detail(told, "127.0.0.1:%d, data in %s\n", postgres->port, postgres->data);
	tell_detail(told, "fsync on%s%s\n", postgres->user[0] != '\0' ? ", run as user " : "", postgres->user);
}

static enum fate start_broker(struct world *world, struct error *error)
{
	if (world->broker.kind == BROKER_KAFKA)
		files_join(world->log, world->logs, "kafka.log");
	else
		world->log[0] = '\0';
	return broker_start(&world->broker, world->root, world->logs, error);
}

static void tell_broker(const struct world *world, struct told *told)
{
	const struct broker *broker = &world->broker;

	switch (broker->kind) {
	case BROKER_YOURS:
		snprintf(told->title, sizeof(told->title), "Kafka: yours, at %.96s", broker->bootstrap);
		tell_detail(told, "topics of its own, %s.*, are deleted at the end\n", broker->group);
		break;
	case BROKER_KAFKA:
		snprintf(told->title, sizeof(told->title), "Apache Kafka %s, one node", broker->kafka.version);
		tell_detail(told, "%s, KRaft, data in %s/kafka\n", broker->bootstrap, world->root);
		break;
	case BROKER_MOCK:
		snprintf(told->title, sizeof(told->title), "Kafka: the mock cluster of librdkafka");
		tell_detail(told, "%s, in the memory of this process (%s)\n", broker->bootstrap, broker->why);
		tell_detail(told, "It shows the way of a session. What it cannot do: keep records on disk, hide\n"
		                  "those of aborted transactions, fence an older producer. So it cannot show that\n"
		                  "a session resumes exactly once across crashes: that takes a real Kafka.\n");
		break;
	}
}

static enum fate write_settings(const struct world *world, struct error *error)
{
	struct buffer text;

	buffer_init(&text, SETTINGS_MAX);
	buffer_append_text(&text, "# Of one run; the directory goes with it.\n");
	enum fate fate = broker_settings(&world->broker, world->root, &text, error);
	buffer_printf(&text, "metrics.listen = 127.0.0.1:%d\n", world->metrics_port);
	buffer_printf(&text, "\n[postgres]\ndsn = \"%s\"\n", world->postgres.dsn);
	buffer_printf(&text, "\n[vault]\nkeyring_file = \"%s\"\n", world->keyring);
	if (fate == FATE_OK && buffer_failed(&text))
		fate = error_set(error, FATE_FATAL, ERR_MEMORY, "no memory for the settings");
	if (fate == FATE_OK)
		fate = files_write(world->settings, 0600, buffer_view(&text), error);
	buffer_done(&text);
	return fate;
}

static enum fate make_keys(struct world *world, struct error *error)
{
	static const char *const words[] = { "keys", "generate", NULL };
	enum fate fate = files_free_port(&world->metrics_port, error);

	if (fate == FATE_OK)
		fate = write_settings(world, error);
	if (fate == FATE_OK)
		fate = broker_environment(&world->broker, error);
	return fate == FATE_OK ? world_succeed(world, words, error) : fate;
}

static void tell_keys(const struct world *world, struct told *told)
{
	snprintf(told->title, sizeof(told->title), "fermata keys generate");
	tell_detail(told, "the key that seals what is kept: %s, mode 0600\n", world->keyring);
}

static enum fate migrate(struct world *world, struct error *error)
{
	static const char *const words[] = { "migrate", NULL };
	return world_succeed(world, words, error);
}

static void tell_migrate(const struct world *world, struct told *told)
{
	(void)world;
	snprintf(told->title, sizeof(told->title), "fermata migrate");
	tell_detail(told, "the tables, in schema fermata of the database\n");
}

static enum fate create_topics(struct world *world, struct error *error)
{
	static const char *const words[] = { "topics", "create", NULL };

	if (world->broker.kind == BROKER_MOCK)
		return broker_create_topics(&world->broker, error);
	world->broker.topics_made = true;
	return world_succeed(world, words, error);
}

static void tell_topics(const struct world *world, struct told *told)
{
	bool mock = world->broker.kind == BROKER_MOCK;

	snprintf(told->title, sizeof(told->title), "%s",
	         mock ? "topics, made inside the mock cluster" : "fermata topics create");
	tell_detail(told, "%s.{suspends,approvals,resumes,gates,dead-letters}\n", world->broker.group);
}

static enum fate await_worker(struct world *world, struct error *error)
{
	int64_t end = clock_mono_ms() + READY_MS;

	while (!probe_ready(world->metrics_port)) {
		enum fate fate = world_check(world, error);
		if (fate == FATE_OK && clock_mono_ms() >= end)
			fate = error_set(error, FATE_RETRY, ERR_SYSTEM, "the worker is not ready after %d s",
			                 READY_MS / 1000);
		if (fate == FATE_OK)
			fate = process_pause(POLL_MS, error);
		if (fate != FATE_OK)
			return fate;
	}
	return FATE_OK;
}

static enum fate start_worker(struct world *world, struct error *error)
{
	const char *argv[] = { world->fermata, "worker", NULL };

	files_join(world->log, world->logs, "worker.log");
	struct process_spec spec = { .name = "the worker", .argv = argv, .log = world->log };
	enum fate fate = process_start(&world->worker, &spec, error);
	return fate == FATE_OK ? await_worker(world, error) : fate;
}

static void tell_worker(const struct world *world, struct told *told)
{
	snprintf(told->title, sizeof(told->title), "fermata worker");
	tell_detail(told, "process %d, log in %s\n", (int)world->worker.pid, world->worker.log);
}

const struct world_step world_steps[] = {
	{ "starting PostgreSQL", start_postgres, tell_postgres, NULL },
	{ "starting the broker", start_broker, tell_broker, NULL },
	{ "making the keys", make_keys, tell_keys, NULL },
	{ "making the tables", migrate, tell_migrate, NULL },
	{ "making the topics", create_topics, tell_topics, NULL },
	{ "starting the worker", start_worker, tell_worker, NULL },
};

const size_t world_steps_len = sizeof(world_steps) / sizeof(world_steps[0]);

/* ---- the life of it ------------------------------------------------------------------------ */

static enum fate check_process(struct process *process, struct error *error)
{
	bool started = process->name[0] != '\0';

	if (!started || !process_ended(process))
		return FATE_OK;
	return error_set(error, FATE_RETRY, process->exit_code == 70 ? ERR_BUG : ERR_SERVICE,
	                 "%s ended of itself, with exit code %d: its log is %s", process->name,
	                 process->exit_code, process->log);
}

enum fate world_check(struct world *world, struct error *error)
{
	struct process *processes[] = { &world->postgres.process, &world->broker.kafka.process, &world->worker };
	enum fate fate = FATE_OK;

	for (size_t i = 0; i < sizeof(processes) / sizeof(processes[0]) && fate == FATE_OK; i++) {
		fate = check_process(processes[i], error);
		if (fate != FATE_OK)
			memcpy(world->log, processes[i]->log, sizeof(world->log));
	}
	return fate;
}

static bool not_the_logs(void *context, const char *path, bool directory)
{
	(void)directory;
	const struct world *world = context;
	size_t len = strlen(world->logs);

	if (strncmp(path, world->logs, len) == 0 && (path[len] == '/' || path[len] == '\0'))
		return true;
	if (strcmp(path, world->root) != 0)
		(void)remove(path);
	return true;
}

static bool clean_up(struct world *world, enum world_keep keep, struct error *error)
{
	if (world->root[0] == '\0' || keep == KEEP_ALL)
		return true;
	if (keep == KEEP_LOGS)
		return files_walk(world->root, not_the_logs, world);
	if (files_remove(world->root))
		return true;
	(void)error_set(error, FATE_FATAL, ERR_SYSTEM, "cannot remove all of %s", world->root);
	return false;
}

bool world_close(struct world *world, enum world_keep keep, struct error *error)
{
	(void)process_stop(&world->worker, STOP_MS);
	bool stopped = broker_stop(&world->broker, error);
	postgres_stop(&world->postgres);
	return clean_up(world, keep, error) && stopped;
}
