#include "cli/connect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SPARE_BYTES ((size_t)1 << 20) /* key, headers, decisions */
#define CLOSE_MS    2000

/* What to do, behind a message that does not say so itself. */
static void advise(struct error *error, const char *advice)
{
	size_t len = strlen(error->message);

	if (strchr(error->message, ';') == NULL && strchr(error->message, '`') == NULL &&
	    len + 2 + strlen(advice) < sizeof(error->message))
		snprintf(error->message + len, sizeof(error->message) - len, "; %s", advice);
}

enum fate connect_store_bare(const struct cli *cli, struct store **ret_store, struct error *error)
{
	struct store_settings settings = {
		.dsn = config_text(cli->config, PARAM_POSTGRES_DSN),
		.name = "fermata command",
		.prepared = config_flag(cli->config, PARAM_POSTGRES_PREPARED),
	};
	enum fate fate = store_open(ret_store, &settings, error);

	if (fate != FATE_OK)
		return fate;
	fate = store_connect(*ret_store, error);
	if (fate == FATE_OK)
		return FATE_OK;
	if (error->code == ERR_SERVICE)
		advise(error, "start it, or correct postgres.dsn");
	store_close(*ret_store);
	*ret_store = NULL;
	return fate;
}

enum fate connect_store(const struct cli *cli, struct store **ret_store, struct error *error)
{
	enum fate fate = connect_store_bare(cli, ret_store, error);

	if (fate != FATE_OK)
		return fate;
	fate = store_check_version(*ret_store, error);
	if (fate == FATE_OK)
		return FATE_OK;
	store_close(*ret_store);
	*ret_store = NULL;
	return fate;
}

enum fate connect_vault(const struct cli *cli, struct vault **ret_vault, struct error *error)
{
	size_t command_len;
	const char *const *command = config_list(cli->config, PARAM_VAULT_KEYRING_COMMAND, &command_len);
	struct vault_source source = {
		.keyring_file = config_text(cli->config, PARAM_VAULT_KEYRING_FILE),
		.keyring_command = command_len > 0 ? command : NULL,
		.credentials_directory = getenv("CREDENTIALS_DIRECTORY"),
	};

	return vault_open(ret_vault, &source, error);
}

size_t widest_record(const struct config *config)
{
	/* The suspend, edits out of a decision, the decisions. */
	return 2 * (size_t)config_number(config, PARAM_LIMITS_RECORD_BYTES) + SPARE_BYTES;
}

enum fate connect_reader(const struct cli *cli, bool uncommitted, struct reader **ret_reader,
                         struct error *error)
{
	struct reader_settings settings = {
		.client_id = "fermata-command",
		.read_uncommitted = uncommitted,
		.record_bytes = widest_record(cli->config) + SPARE_BYTES,
	};

	settings.properties = config_kafka(cli->config, KAFKA_CONSUMER, &settings.properties_len);
	return reader_open(ret_reader, &settings, error);
}

enum fate kafka_away(const struct cli *cli, struct error *error)
{
	const char *brokers = config_text(cli->config, PARAM_KAFKA_BOOTSTRAP_SERVERS);

	if (error->code != ERR_SERVICE || brokers == NULL)
		return error->fate;
	if (strstr(error->message, brokers) == NULL)
		(void)!error_wrap(error, "Kafka at %.80s", brokers);
	advise(error, "start it, or correct kafka.bootstrap.servers");
	return error->fate;
}

enum fate no_such_topic(const char *topic, struct error *error)
{
	return error_set(error, FATE_FATAL, ERR_USAGE,
	                 "topic %.100s does not exist: run `fermata topics create`, or correct topics.* in the "
	                 "configuration",
	                 topic);
}

enum fate connect_topic(const struct cli *cli, const char *topic, struct error *error)
{
	struct reader *reader = NULL;
	int32_t partitions = 0;
	enum fate fate = connect_reader(cli, true, &reader, error);

	if (fate == FATE_OK)
		fate = reader_partitions(reader, topic, KAFKA_PATIENCE_MS, &partitions, error);
	reader_close(reader, CLOSE_MS);
	if (fate != FATE_OK)
		return kafka_away(cli, error);
	return partitions > 0 ? FATE_OK : no_such_topic(topic, error);
}

/* A topic that was made a moment ago is not known to every broker at once. */
static enum fate warm(struct producer *producer, const char *topic, struct error *error)
{
	int64_t until = clock_mono_ms() + NEW_TOPIC_MS;
	enum fate fate;

	while ((fate = producer_warm(producer, topic, KAFKA_PATIENCE_MS, NULL, error)) == FATE_REJECT) {
		if (clock_mono_ms() >= until)
			return no_such_topic(topic, error);
		producer_poll(producer, 100);
	}
	return fate;
}

enum fate connect_producer(const struct cli *cli, const char *topic, producer_report *report, void *context,
                           struct producer **ret_producer, struct error *error)
{
	struct producer_settings settings = {
		.client_id = "fermata-command",
		.message_bytes = (size_t)config_number(cli->config, PARAM_LIMITS_RECORD_BYTES) + SPARE_BYTES,
		.delivery_timeout_ms = 3 * KAFKA_PATIENCE_MS,
		.report = report,
		.report_context = context,
	};
	enum fate fate;

	settings.properties = config_kafka(cli->config, KAFKA_PRODUCER, &settings.properties_len);
	fate = producer_open(ret_producer, &settings, error);
	if (fate != FATE_OK)
		return fate;
	fate = warm(*ret_producer, topic, error);
	if (fate == FATE_OK)
		return FATE_OK;
	producer_close(*ret_producer);
	*ret_producer = NULL;
	return kafka_away(cli, error);
}
