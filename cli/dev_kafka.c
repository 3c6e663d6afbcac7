/* dev_kafka.c - settings and flags are those of scripts/kafka, which says why. */
#include "cli/dev_kafka.h"

#include "core/clock.h"

#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VERSION       "4.1.1" /* that scripts/kafka fetches */
#define FORMAT_MS     60000
#define START_MS      60000
#define STOP_MS       10000
#define ASK_MS        250
#define PORTS_TO_TRY  3
#define SETTINGS_SIZE 4096

/* ---- jars ---------------------------------------------------------------------------------- */

bool kafka_has_jars(const char *libs, char ret_version[32])
{
	char pattern[DEV_PATH_MAX];
	glob_t found;

	ret_version[0] = '\0';
	if (snprintf(pattern, sizeof(pattern), "%s/kafka_2.1[0-9]-[0-9]*.jar", libs) >= (int)sizeof(pattern) ||
	    glob(pattern, 0, NULL, &found) != 0)
		return false;
	const char *name = strrchr(found.gl_pathv[0], '/') + strlen("/kafka_2.1x-");
	snprintf(ret_version, 32, "%.*s", (int)(strlen(name) - strlen(".jar")), name);
	globfree(&found);
	return true;
}

bool kafka_cached_jars(char ret_libs[DEV_PATH_MAX])
{
	const char *cache = getenv("XDG_CACHE_HOME");
	const char *home = getenv("HOME");
	char version[32];
	int len = 0;

	if (cache != NULL && cache[0] == '/')
		len = snprintf(ret_libs, DEV_PATH_MAX, "%s/fermata/kafka-" VERSION "/libs", cache);
	else if (home != NULL)
		len = snprintf(ret_libs, DEV_PATH_MAX, "%s/.cache/fermata/kafka-" VERSION "/libs", home);
	return len > 0 && len < DEV_PATH_MAX && kafka_has_jars(ret_libs, version);
}

bool kafka_has_java(void)
{
	char java[DEV_PATH_MAX];
	return files_find_program("java", java);
}

/* ---- starting it --------------------------------------------------------------------------- */

struct maker {
	struct kafka *kafka;
	int port;
	int controller;
	char java[DEV_PATH_MAX];
	char classpath[DEV_PATH_MAX];
	char home[DEV_PATH_MAX];
	char settings[DEV_PATH_MAX]; /* server.properties */
	char tmpdir[DEV_PATH_MAX];   /* the option that keeps what java unpacks out of /tmp: we kill it */
};

static enum fate write_settings(const struct maker *maker, struct error *error)
{
	char text[SETTINGS_SIZE];
	int len = snprintf(text, sizeof(text),
	                   "process.roles=broker,controller\n"
	                   "node.id=1\n"
	                   "controller.quorum.voters=1@127.0.0.1:%d\n"
	                   "listeners=CLIENT://127.0.0.1:%d,CONTROLLER://127.0.0.1:%d\n"
	                   "advertised.listeners=CLIENT://127.0.0.1:%d\n"
	                   "listener.security.protocol.map=CLIENT:PLAINTEXT,CONTROLLER:PLAINTEXT\n"
	                   "controller.listener.names=CONTROLLER\n"
	                   "inter.broker.listener.name=CLIENT\n"
	                   "log.dirs=%s/data\n"
	                   "offsets.topic.replication.factor=1\n"
	                   "offsets.topic.num.partitions=4\n"
	                   "transaction.state.log.replication.factor=1\n"
	                   "transaction.state.log.min.isr=1\n"
	                   "transaction.state.log.num.partitions=4\n"
	                   "share.coordinator.state.topic.replication.factor=1\n"
	                   "share.coordinator.state.topic.min.isr=1\n"
	                   "auto.create.topics.enable=false\n"
	                   "group.initial.rebalance.delay.ms=0\n"
	                   "message.max.bytes=16777216\n"
	                   "replica.fetch.max.bytes=16777216\n"
	                   "log.index.size.max.bytes=1048576\n"
	                   "log.cleaner.dedupe.buffer.size=8388608\n"
	                   "num.network.threads=2\n"
	                   "num.io.threads=4\n"
	                   "background.threads=2\n",
	                   maker->controller, maker->port, maker->controller, maker->port, maker->home);
	if (len < 0 || (size_t)len >= sizeof(text))
		return error_set(error, FATE_FATAL, ERR_BUG, "the settings of the broker do not fit");
	return files_write(maker->settings, 0600, view_of(text), error);
}

/* An id of a cluster is 16 bytes in base64: 22 digits of hex read as such. */
static enum fate format(const struct maker *maker, struct error *error)
{
	char id[23];
	struct process process;
	enum fate fate = files_random_hex(id, 22, error);

	const char *argv[] = { maker->java,
		                   maker->tmpdir,
		                   "-XX:-UsePerfData",
		                   "-Xshare:auto",
		                   "-XX:TieredStopAtLevel=1",
		                   "-cp",
		                   maker->classpath,
		                   "kafka.tools.StorageTool",
		                   "format",
		                   "-t",
		                   id,
		                   "-c",
		                   maker->settings,
		                   NULL };
	struct process_spec spec = {
		.name = "Kafka's format tool", .argv = argv, .directory = maker->home, .log = maker->kafka->log
	};
	if (fate == FATE_OK)
		fate = process_run(&spec, FORMAT_MS, NULL, NULL, &process, error);
	if (fate == FATE_OK && process.exit_code != 0)
		fate =
			error_set(error, FATE_FATAL, ERR_SERVICE,
		              "Kafka's storage could not be formatted (exit code %d; Kafka 4 wants Java 17 or later)",
		              process.exit_code);
	return fate;
}

/* Without the second of the JVM's compilers: in a broker that does not live for days it takes half a processor for
 * minutes, and what it makes is not faster at what is done here (docs/decisions/0036). */
static enum fate launch(struct maker *maker, struct error *error)
{
	const char *argv[] = { maker->java,
		                   "-Xms128m",
		                   "-Xmx768m",
		                   maker->tmpdir,
		                   "-XX:-UsePerfData",
		                   "-XX:TieredStopAtLevel=1",
		                   "-XX:+UseSerialGC",
		                   "-XX:+ExitOnOutOfMemoryError",
		                   "-Djava.awt.headless=true",
		                   "-Dorg.slf4j.simpleLogger.showDateTime=true",
		                   "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
		                   "-cp",
		                   maker->classpath,
		                   "kafka.Kafka",
		                   maker->settings,
		                   NULL };
	struct process_spec spec = { .name = "Kafka",
		                         .argv = argv,
		                         .directory = maker->home,
		                         .log = maker->kafka->log,
		                         .stop_signal = SIGKILL };
	return process_start(&maker->kafka->process, &spec, error);
}

static enum fate await_broker(struct kafka *kafka, struct error *error)
{
	const struct property property = { "bootstrap.servers", kafka->bootstrap };
	int64_t end = clock_mono_ms() + START_MS;

	while (kafka_answers(&property, 1, ASK_MS, error) != FATE_OK) {
		if (process_ended(&kafka->process))
			return error_set(error, FATE_RETRY, ERR_SERVICE,
			                 "Kafka ended while it was starting (exit code %d)", kafka->process.exit_code);
		if (clock_mono_ms() >= end)
			return error_set(error, FATE_RETRY, ERR_SERVICE, "Kafka does not answer at %s after %d s",
			                 kafka->bootstrap, START_MS / 1000);
		enum fate fate = process_pause(1, error);
		if (fate != FATE_OK)
			return fate;
	}
	return FATE_OK;
}

/* The storage is formatted for the ports in the settings, of which it keeps none. */
static enum fate start_on_some_port(struct maker *maker, struct error *error)
{
	struct kafka *kafka = maker->kafka;
	enum fate fate = FATE_OK;

	for (int i = 0; i < PORTS_TO_TRY; i++) {
		fate = files_free_port(&maker->port, error);
		if (fate == FATE_OK)
			fate = files_free_port(&maker->controller, error);
		snprintf(kafka->bootstrap, sizeof(kafka->bootstrap), "127.0.0.1:%d", maker->port);
		if (fate == FATE_OK)
			fate = write_settings(maker, error);
		if (fate == FATE_OK && i == 0)
			fate = format(maker, error);
		if (fate == FATE_OK)
			fate = launch(maker, error);
		if (fate == FATE_OK)
			fate = await_broker(kafka, error);
		if (fate != FATE_RETRY || processes_signal() != 0 || !process_ended(&kafka->process))
			break;
	}
	return fate;
}

enum fate kafka_start(struct kafka *kafka, const char *libs, const char *root, const char *logs,
                      struct error *error)
{
	struct maker maker = { .kafka = kafka };

	memset(kafka, 0, sizeof(*kafka));
	files_join(kafka->log, logs, "kafka.log");
	files_join(maker.home, root, "kafka");
	files_join(maker.settings, maker.home, "server.properties");
	if (!kafka_has_jars(libs, kafka->version))
		return error_set(error, FATE_FATAL, ERR_SERVICE,
		                 "there is no Kafka (kafka_2.13-VERSION.jar) in %s: scripts/kafka fetch gets one",
		                 libs);
	if (!files_find_program("java", maker.java))
		return error_set(error, FATE_FATAL, ERR_SERVICE,
		                 "Kafka wants java, and there is none in PATH: apt-get install default-jre-headless");
	if (snprintf(maker.classpath, sizeof(maker.classpath), "%s/*", libs) >= (int)sizeof(maker.classpath))
		return error_set(error, FATE_FATAL, ERR_USAGE, "the path of Kafka's jars is too long");
	snprintf(maker.tmpdir, sizeof(maker.tmpdir), "-Djava.io.tmpdir=%.256s", maker.home);
	enum fate fate = files_make_directory(maker.home, 0700, error);
	if (fate == FATE_OK)
		fate = start_on_some_port(&maker, error);
	return fate;
}

void kafka_stop(struct kafka *kafka)
{
	(void)process_stop(&kafka->process, STOP_MS);
}
