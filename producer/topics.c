#include "producer/topics.h"

#include "core/clock.h"
#include "core/kafka_glue.h"
#include "producer/handle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ANSWER_MARGIN_MS 2000 /* for the way there and back, on top of what the broker is given */
#define VISIBLE_PAUSE_MS 20

static const struct property defaults[] = {
	{ "client.id", "fermata" },
	{ "log.connection.close", "false" },
	{ NULL, NULL },
};

/* The last thing that a connection said, for the message when nothing answers. */
struct asking {
	char down_reason[160];
};

static void on_error(rd_kafka_t *rk, int err, const char *reason, void *opaque)
{
	struct asking *asking = opaque;

	(void)rk;
	if (err != RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN)
		snprintf(asking->down_reason, sizeof(asking->down_reason), "%s", reason);
}

static enum fate open_handle(const struct property *properties, size_t len, rd_kafka_t **ret_rk,
                             struct asking **ret_asking, struct error *error)
{
	rd_kafka_conf_t *conf;
	struct asking *asking = calloc(1, sizeof(*asking));
	enum fate fate;

	if (!asking)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "could not allocate a Kafka handle");
	fate = handle_conf(&conf, defaults, properties, len, error);
	if (fate == FATE_OK) {
		rd_kafka_conf_set_error_cb(conf, on_error);
		rd_kafka_conf_set_opaque(conf, asking);
		fate = handle_open(ret_rk, conf, error);
	}
	if (fate != FATE_OK)
		free(asking);
	else
		*ret_asking = asking;
	return fate;
}

/* Waits for the answer to an admin request. NULL: none came. */
static rd_kafka_event_t *wait_answer(rd_kafka_t *rk, rd_kafka_queue_t *queue, int timeout_ms)
{
	rd_kafka_event_t *event = rd_kafka_queue_poll(queue, timeout_ms + ANSWER_MARGIN_MS);

	rd_kafka_poll(rk, 0); /* error callbacks */
	return event;
}

static enum fate answer_failed(struct error *error, const rd_kafka_event_t *event,
                               const struct asking *asking, const char *doing)
{
	rd_kafka_resp_err_t err =
		event ? rd_kafka_event_error((rd_kafka_event_t *)event) : RD_KAFKA_RESP_ERR__TIMED_OUT;
	const char *reason = event ? rd_kafka_event_error_string((rd_kafka_event_t *)event) : "no answer";

	if (*asking->down_reason)
		reason = asking->down_reason;
	return kafka_error(error, rd_kafka_err2name(err), reason, "could not %s", doing);
}

static rd_kafka_AdminOptions_t *options_for(rd_kafka_t *rk, rd_kafka_admin_op_t operation, int timeout_ms)
{
	rd_kafka_AdminOptions_t *options = rd_kafka_AdminOptions_new(rk, operation);
	char why[100];

	rd_kafka_AdminOptions_set_request_timeout(options, timeout_ms, why, sizeof(why));
	if (operation == RD_KAFKA_ADMIN_OP_CREATETOPICS)
		rd_kafka_AdminOptions_set_operation_timeout(options, timeout_ms, why, sizeof(why));
	return options;
}

/* ---- creating ---- */

static rd_kafka_NewTopic_t *new_topic(const struct topic_want *want, int16_t replication, char *why,
                                      size_t why_cap)
{
	rd_kafka_NewTopic_t *topic =
		rd_kafka_NewTopic_new(want->name, want->partitions, replication, why, why_cap);

	for (size_t i = 0; topic && i < want->config_len; i++)
		rd_kafka_NewTopic_set_config(topic, want->config[i].name, want->config[i].value);
	return topic;
}

static size_t find_want(const struct topic_want *wanted, size_t len, const char *name)
{
	size_t i = 0;

	while (i < len && strcmp(wanted[i].name, name) != 0)
		i++;
	return i;
}

static void read_results(const rd_kafka_event_t *event, const struct topic_want *wanted, size_t len,
                         enum topic_result *results, char (*messages)[256])
{
	const rd_kafka_CreateTopics_result_t *answer =
		rd_kafka_event_CreateTopics_result((rd_kafka_event_t *)event);
	size_t count;
	const rd_kafka_topic_result_t **topics = rd_kafka_CreateTopics_result_topics(answer, &count);

	for (size_t i = 0; i < count; i++) {
		rd_kafka_resp_err_t err = rd_kafka_topic_result_error(topics[i]);
		const char *reason = rd_kafka_topic_result_error_string(topics[i]);
		size_t at = find_want(wanted, len, rd_kafka_topic_result_name(topics[i]));

		if (at == len)
			continue;
		results[at] = !err                                            ? TOPIC_CREATED
		              : err == RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS ? TOPIC_EXISTS
		                                                              : TOPIC_FAILED;
		if (results[at] == TOPIC_FAILED)
			snprintf(messages[at], sizeof(messages[at]), "%s", reason ? reason : rd_kafka_err2str(err));
	}
}

static bool is_visible(rd_kafka_t *rk, const char *name, int timeout_ms)
{
	rd_kafka_topic_t *topic = rd_kafka_topic_new(rk, name, NULL);
	const struct rd_kafka_metadata *metadata = NULL;
	bool visible = topic && !rd_kafka_metadata(rk, 0, topic, &metadata, timeout_ms) &&
	               metadata->topic_cnt == 1 && !metadata->topics[0].err;

	if (metadata)
		rd_kafka_metadata_destroy(metadata);
	if (topic)
		rd_kafka_topic_destroy(topic);
	return visible;
}

/* A broker hears of a new topic a moment after the controller has made it; who comes right after us must not be
 * told that there is none. */
static void wait_visible(rd_kafka_t *rk, const struct topic_want *wanted, size_t len,
                         const enum topic_result *results, int timeout_ms)
{
	int64_t until_ms = clock_mono_ms() + timeout_ms;

	for (size_t i = 0; i < len; i++)
		while (results[i] == TOPIC_CREATED && !is_visible(rk, wanted[i].name, timeout_ms) &&
		       clock_mono_ms() < until_ms)
			rd_kafka_poll(rk, VISIBLE_PAUSE_MS);
}

static enum fate request_topics(rd_kafka_t *rk, rd_kafka_NewTopic_t **topics, const struct topic_want *wanted,
                                size_t len, int timeout_ms, const struct asking *asking,
                                enum topic_result *results, char (*messages)[256], struct error *error)
{
	rd_kafka_AdminOptions_t *options = options_for(rk, RD_KAFKA_ADMIN_OP_CREATETOPICS, timeout_ms);
	rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
	rd_kafka_event_t *event;
	enum fate fate = FATE_OK;

	rd_kafka_CreateTopics(rk, topics, len, options, queue);
	event = wait_answer(rk, queue, timeout_ms);
	if (!event || rd_kafka_event_error(event))
		fate = answer_failed(error, event, asking, "create topics");
	else
		read_results(event, wanted, len, results, messages);
	if (event)
		rd_kafka_event_destroy(event);
	rd_kafka_queue_destroy(queue);
	rd_kafka_AdminOptions_destroy(options);
	return fate;
}

enum fate topics_create(const struct property *properties, size_t properties_len,
                        const struct topic_want *wanted, size_t len, int16_t replication, int timeout_ms,
                        enum topic_result *results, char (*messages)[256], struct error *error)
{
	rd_kafka_NewTopic_t **topics = calloc(len ? len : 1, sizeof(rd_kafka_NewTopic_t *));
	struct asking *asking = NULL;
	rd_kafka_t *rk = NULL;
	char why[128] = "out of memory";
	size_t made = 0;
	enum fate fate;

	if (!topics)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "could not create topics: %s", why);
	for (size_t i = 0; i < len; i++) {
		results[i] = TOPIC_FAILED;
		snprintf(messages[i], sizeof(messages[i]), "the broker said nothing about it");
	}
	while (made < len && (topics[made] = new_topic(&wanted[made], replication, why, sizeof(why))))
		made++;
	if (made < len)
		fate =
			error_set(error, FATE_FATAL, ERR_USAGE, "cannot create topic %.100s: %s", wanted[made].name, why);
	else
		fate = open_handle(properties, properties_len, &rk, &asking, error);
	if (fate == FATE_OK && len)
		fate = request_topics(rk, topics, wanted, len, timeout_ms, asking, results, messages, error);
	if (fate == FATE_OK)
		wait_visible(rk, wanted, len, results, timeout_ms);
	handle_close(rk, asking, false);
	rd_kafka_NewTopic_destroy_array(topics, made);
	free(topics);
	return fate;
}

/* ---- asking ---- */

static const char *find_setting(const rd_kafka_ConfigResource_t *resource, const char *setting)
{
	size_t count;
	const rd_kafka_ConfigEntry_t **entries = rd_kafka_ConfigResource_configs(resource, &count);

	for (size_t i = 0; i < count; i++)
		if (!strcmp(rd_kafka_ConfigEntry_name(entries[i]), setting))
			return rd_kafka_ConfigEntry_value(entries[i]);
	return NULL;
}

static enum fate read_setting(const rd_kafka_event_t *event, const char *topic, const char *setting,
                              char *ret_value, size_t cap, struct error *error)
{
	const rd_kafka_DescribeConfigs_result_t *answer =
		rd_kafka_event_DescribeConfigs_result((rd_kafka_event_t *)event);
	size_t count;
	const rd_kafka_ConfigResource_t **resources = rd_kafka_DescribeConfigs_result_resources(answer, &count);
	rd_kafka_resp_err_t err =
		count ? rd_kafka_ConfigResource_error(resources[0]) : RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
	const char *value;

	if (err == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART)
		return error_set_native(error, FATE_REJECT, ERR_NO, rd_kafka_err2name(err),
		                        "there is no topic %.100s; run `fermata topics create`", topic);
	if (err)
		return kafka_error(error, rd_kafka_err2name(err), rd_kafka_err2str(err),
		                   "could not read the settings of topic %.100s", topic);
	value = find_setting(resources[0], setting);
	if (!value || strlen(value) >= cap)
		return error_set(error, FATE_REJECT, ERR_NO, "topic %.100s has no setting %.60s", topic, setting);
	memcpy(ret_value, value, strlen(value) + 1);
	return FATE_OK;
}

enum fate topics_setting(const struct property *properties, size_t properties_len, const char *topic,
                         const char *setting, int timeout_ms, char *ret_value, size_t cap,
                         struct error *error)
{
	rd_kafka_ConfigResource_t *resource;
	rd_kafka_AdminOptions_t *options;
	struct asking *asking;
	rd_kafka_queue_t *queue;
	rd_kafka_event_t *event;
	rd_kafka_t *rk;
	enum fate fate = open_handle(properties, properties_len, &rk, &asking, error);

	if (fate != FATE_OK)
		return fate;
	resource = rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, topic);
	options = options_for(rk, RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS, timeout_ms);
	queue = rd_kafka_queue_new(rk);
	rd_kafka_DescribeConfigs(rk, &resource, 1, options, queue);
	event = wait_answer(rk, queue, timeout_ms);
	if (!event || rd_kafka_event_error(event))
		fate = answer_failed(error, event, asking, "read the settings of a topic");
	else
		fate = read_setting(event, topic, setting, ret_value, cap, error);
	if (event)
		rd_kafka_event_destroy(event);
	rd_kafka_queue_destroy(queue);
	rd_kafka_AdminOptions_destroy(options);
	rd_kafka_ConfigResource_destroy(resource);
	handle_close(rk, asking, false);
	return fate;
}

/* ---- letting go ---- */

static rd_kafka_topic_partition_list_t *list_below(const char *topic, const int64_t *below,
                                                   int32_t partitions)
{
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(partitions);

	for (int32_t i = 0; i < partitions; i++)
		rd_kafka_topic_partition_list_add(list, topic, i)->offset = below[i];
	return list;
}

static enum fate read_trimmed(const rd_kafka_event_t *event, const char *topic, struct error *error)
{
	const rd_kafka_topic_partition_list_t *list =
		rd_kafka_DeleteRecords_result_offsets(rd_kafka_event_DeleteRecords_result((rd_kafka_event_t *)event));

	for (int i = 0; i < list->cnt; i++)
		if (list->elems[i].err)
			return kafka_error(
				error, rd_kafka_err2name(list->elems[i].err), rd_kafka_err2str(list->elems[i].err),
				"could not delete records of partition %d of %.100s", (int)list->elems[i].partition, topic);
	return FATE_OK;
}

enum fate topics_trim(const struct property *properties, size_t properties_len, const char *topic,
                      const int64_t *below, int32_t partitions, int timeout_ms, struct error *error)
{
	struct asking *asking;
	rd_kafka_t *rk;
	enum fate fate = open_handle(properties, properties_len, &rk, &asking, error);

	if (fate != FATE_OK)
		return fate;
	rd_kafka_topic_partition_list_t *list = list_below(topic, below, partitions);
	rd_kafka_DeleteRecords_t *records = rd_kafka_DeleteRecords_new(list);
	rd_kafka_AdminOptions_t *options = options_for(rk, RD_KAFKA_ADMIN_OP_DELETERECORDS, timeout_ms);
	rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
	rd_kafka_DeleteRecords(rk, &records, 1, options, queue);
	rd_kafka_event_t *event = wait_answer(rk, queue, timeout_ms);
	if (!event || rd_kafka_event_error(event))
		fate = answer_failed(error, event, asking, "delete records");
	else
		fate = read_trimmed(event, topic, error);
	if (event)
		rd_kafka_event_destroy(event);
	rd_kafka_queue_destroy(queue);
	rd_kafka_AdminOptions_destroy(options);
	rd_kafka_DeleteRecords_destroy(records);
	rd_kafka_topic_partition_list_destroy(list);
	handle_close(rk, asking, false);
	return fate;
}
