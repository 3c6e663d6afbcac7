#include "cli/dev_broker.h"

#include "worker/worker.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ANSWER_MS  15000
#define DELETE_MS  15000
#define PARTITIONS 6 /* of the mock cluster's topics: what `fermata topics create` gives */

const char *const broker_topic_keys[BROKER_TOPICS] = { "suspends", "approvals", "resumes", "gates",
	                                                   "dead_letters" };
static const char *const topic_ends[BROKER_TOPICS] = { "suspends", "approvals", "resumes", "gates",
	                                                   "dead-letters" };

static bool is_users(const struct config *config)
{
	return strcmp(config_origin(config, PARAM_KAFKA_BOOTSTRAP_SERVERS), "default") != 0;
}

static enum broker_kind choose_kind(struct broker *broker, const struct broker_wish *wish)
{
	if (wish->mock) {
		broker->why = "--mock";
		return BROKER_MOCK;
	}
	if (wish->yours || is_users(broker->config))
		return BROKER_YOURS;
	if (wish->libs != NULL)
		return BROKER_KAFKA;
	if (!kafka_cached_jars(broker->libs))
		broker->why = "no Kafka was fetched; scripts/kafka fetch does it";
	else if (!kafka_has_java())
		broker->why = "there is no java in PATH";
	else
		return BROKER_KAFKA;
	return BROKER_MOCK;
}

/* In a cluster that is not ours there may be an installation already: nothing of it may be touched, neither its
 * topics nor, by a group of the same name, its workers' transactions. */
static enum fate make_names(struct broker *broker, const char *name, struct error *error)
{
	char random[9] = "";
	bool theirs = broker->kind == BROKER_YOURS;

	if (theirs) {
		enum fate fate = files_random_hex(random, 8, error);
		if (fate != FATE_OK)
			return fate;
		snprintf(broker->group, sizeof(broker->group), "fermata-%.8s-%s", name, random);
	} else {
		snprintf(broker->group, sizeof(broker->group), "fermata");
	}
	for (size_t i = 0; i < BROKER_TOPICS; i++)
		snprintf(broker->topics[i], sizeof(broker->topics[i]), "%s.%s", broker->group, topic_ends[i]);
	return FATE_OK;
}

enum fate broker_choose(struct broker *broker, const struct config *config, const struct broker_wish *wish,
                        struct error *error)
{
	memset(broker, 0, sizeof(*broker));
	broker->config = config;
	broker->kind = choose_kind(broker, wish);
	if (wish->libs != NULL &&
	    snprintf(broker->libs, sizeof(broker->libs), "%s", wish->libs) >= (int)sizeof(broker->libs))
		return error_set(error, FATE_FATAL, ERR_USAGE, "--kafka-libs: the path is too long");
	return make_names(broker, wish->name, error);
}

enum fate broker_start(struct broker *broker, const char *root, const char *logs, struct error *error)
{
	const struct property *properties;
	size_t len;
	enum fate fate = FATE_OK;

	switch (broker->kind) {
	case BROKER_KAFKA:
		fate = kafka_start(&broker->kafka, broker->libs, root, logs, error);
		broker->bootstrap = broker->kafka.bootstrap;
		break;
	case BROKER_MOCK:
		fate = mock_start(&broker->mock, error);
		if (fate == FATE_OK)
			broker->bootstrap = mock_bootstrap(broker->mock);
		break;
	case BROKER_YOURS:
		properties = config_kafka(broker->config, KAFKA_ADMIN, &len);
		broker->bootstrap = config_text(broker->config, PARAM_KAFKA_BOOTSTRAP_SERVERS);
		fate = kafka_answers(properties, len, ANSWER_MS, error);
		break;
	}
	return fate;
}

/* ---- settings ------------------------------------------------------------------------------ */

void broker_put_setting(struct buffer *out, const char *prefix, const char *key, const char *value)
{
	buffer_printf(out, "%s%s = \"", prefix, key);
	for (; *value != '\0'; value++) {
		if (*value == '"' || *value == '\\')
			buffer_append_byte(out, '\\');
		buffer_append_byte(out, (uint8_t)*value);
	}
	buffer_append_text(out, "\"\n");
}

/* A value of several lines (a key in PEM) cannot stand in the file of settings: it gets one of its own. */
static enum fate put_property(struct buffer *out, const char *root, const char *prefix,
                              const struct property *property, struct error *error)
{
	char name[DEV_PATH_MAX / 2], key[DEV_PATH_MAX / 2], path[DEV_PATH_MAX];

	if (strchr(property->value, '\n') == NULL) {
		broker_put_setting(out, prefix, property->name, property->value);
		return FATE_OK;
	}
	if (snprintf(key, sizeof(key), "%s_file", property->name) >= (int)sizeof(key) ||
	    snprintf(name, sizeof(name), "kafka.%s%s", prefix, property->name) >= (int)sizeof(name))
		return error_set(error, FATE_FATAL, ERR_USAGE, "kafka.%s%s: the name is too long", prefix,
		                 property->name);
	files_join(path, root, name);
	broker_put_setting(out, prefix, key, path);
	return files_write(path, 0600, view_of(property->value), error);
}

/* The mock cluster wakes no waiting fetch, and lets a member in only when most of its session has passed. */
static const struct property mock_properties[] = {
	{ "fetch.wait.max.ms", "10" },
	{ "session.timeout.ms", "4000" },
	{ "heartbeat.interval.ms", "500" },
	{ "log_level", "3" }, /* it warns of each request that the mock is too old for */
};

static const char *const prefixes[KAFKA_SIDE_COUNT] = {
	[KAFKA_CONSUMER] = "consumer.", [KAFKA_PRODUCER] = "producer.", [KAFKA_ADMIN] = ""
};

/* What clients of the broker need besides its address. */
static const struct property *properties_of(const struct broker *broker, enum kafka_side side,
                                            size_t *ret_len)
{
	*ret_len = 0;
	if (broker->kind == BROKER_YOURS)
		return config_kafka(broker->config, side, ret_len);
	if (broker->kind == BROKER_MOCK && side == KAFKA_CONSUMER)
		*ret_len = sizeof(mock_properties) / sizeof(mock_properties[0]);
	return mock_properties;
}

/* Calls take with each of them, and the prefix of its side. */
static enum fate each_property(const struct broker *broker,
                               enum fate (*take)(void *context, const char *prefix,
                                                 const struct property *property, struct error *error),
                               void *context, struct error *error)
{
	enum fate fate = FATE_OK;

	for (int side = 0; side < KAFKA_SIDE_COUNT; side++) {
		size_t len;
		const struct property *properties = properties_of(broker, (enum kafka_side)side, &len);
		for (size_t i = 0; i < len && fate == FATE_OK; i++) {
			if (strcmp(properties[i].name, "bootstrap.servers") != 0)
				fate = take(context, prefixes[side], &properties[i], error);
		}
	}
	return fate;
}

struct file {
	struct buffer *out;
	const char *root;
};

static enum fate to_file(void *context, const char *prefix, const struct property *property,
                         struct error *error)
{
	const struct file *file = context;
	return put_property(file->out, file->root, prefix, property, error);
}

enum fate broker_settings(const struct broker *broker, const char *root, struct buffer *out,
                          struct error *error)
{
	struct file file = { .out = out, .root = root };

	buffer_append_text(out, "[kafka]\n");
	broker_put_setting(out, "", "bootstrap.servers", broker->bootstrap);
	enum fate fate = each_property(broker, to_file, &file, error);
	buffer_append_text(out, "\n[topics]\n");
	for (size_t i = 0; i < BROKER_TOPICS; i++)
		broker_put_setting(out, "", broker_topic_keys[i], broker->topics[i]);
	buffer_append_text(out, "\n[worker]\n");
	broker_put_setting(out, "", "group", broker->group);
	return fate;
}

/* FERMATA_ and the key in capitals, its dots as underscores. */
static enum fate set_variable(const char *section, const char *prefix, const char *key, const char *value,
                              struct error *error)
{
	char name[DEV_PATH_MAX];

	if (snprintf(name, sizeof(name), "FERMATA_%s%s%s", section, prefix, key) >= (int)sizeof(name))
		return error_set(error, FATE_FATAL, ERR_USAGE, "kafka.%s%s: the name is too long", prefix, key);
	for (char *at = name; *at != '\0'; at++)
		*at = *at == '.' ? '_' : (char)toupper((unsigned char)*at);
	if (setenv(name, value, 1) != 0)
		return error_set(error, FATE_FATAL, ERR_MEMORY, "no memory for the environment");
	return FATE_OK;
}

static enum fate to_environment(void *context, const char *prefix, const struct property *property,
                                struct error *error)
{
	(void)context;
	return set_variable("kafka.", prefix, property->name, property->value, error);
}

enum fate broker_environment(const struct broker *broker, struct error *error)
{
	enum fate fate = set_variable("kafka.", "", "bootstrap.servers", broker->bootstrap, error);

	for (size_t i = 0; i < BROKER_TOPICS && fate == FATE_OK; i++)
		fate = set_variable("topics.", "", broker_topic_keys[i], broker->topics[i], error);
	return fate == FATE_OK ? each_property(broker, to_environment, NULL, error) : fate;
}

/* ---- topics and the end -------------------------------------------------------------------- */

enum fate broker_create_topics(struct broker *broker, struct error *error)
{
	enum fate fate = FATE_OK;

	for (size_t i = 0; i < BROKER_TOPICS && fate == FATE_OK; i++)
		fate = mock_create_topic(broker->mock, broker->topics[i], PARTITIONS, error);
	return fate;
}

enum fate broker_delete(const struct broker *broker, const char *const *topics, size_t topics_len,
                        struct error *error)
{
	char relays[sizeof(broker->group) + sizeof(WORKER_RELAYS_SUFFIX)];
	const char *groups[] = { broker->group, relays };
	struct property own = { "bootstrap.servers", broker->bootstrap };
	const struct property *properties = &own;
	size_t len = 1;

	if (broker->kind == BROKER_YOURS)
		properties = config_kafka(broker->config, KAFKA_ADMIN, &len);
	snprintf(relays, sizeof(relays), "%s" WORKER_RELAYS_SUFFIX, broker->group);
	enum fate fate = kafka_delete_topics(properties, len, topics, topics_len, DELETE_MS, error);
	return fate == FATE_OK ? kafka_delete_groups(properties, len, groups, 2, DELETE_MS, error) : fate;
}

bool broker_stop(struct broker *broker, struct error *error)
{
	const char *names[BROKER_TOPICS];

	for (size_t i = 0; i < BROKER_TOPICS; i++)
		names[i] = broker->topics[i];
	kafka_stop(&broker->kafka);
	mock_stop(broker->mock);
	broker->mock = NULL;
	if (broker->kind != BROKER_YOURS || !broker->topics_made)
		return true;
	return broker_delete(broker, names, BROKER_TOPICS, error) == FATE_OK;
}
