/* dev_kafka_ask.c - the few things that are asked of a broker without the product's own commands. */
#include "cli/dev_kafka.h"

#include "core/clock.h"
#include "core/kafka_glue.h"

#include <librdkafka/rdkafka.h>

#include <stdlib.h>

#define TURN_MS 500

static bool set_property(void *context, const char *name, const char *value, char *why, size_t why_cap)
{
	return rd_kafka_conf_set(context, name, value, why, why_cap) == RD_KAFKA_CONF_OK;
}

/* A silent handle: what fails is said by whoever asks. */
static enum fate open_handle(const struct property *properties, size_t len, rd_kafka_t **ret_handle,
                             struct error *error)
{
	char reason[256];
	rd_kafka_conf_t *conf = rd_kafka_conf_new();

	*ret_handle = NULL;
	enum fate fate = kafka_properties_apply(properties, len, set_property, conf, error);
	rd_kafka_conf_set_log_cb(conf, NULL);
	if (fate == FATE_OK) {
		*ret_handle = rd_kafka_new(RD_KAFKA_PRODUCER, conf, reason, sizeof(reason));
		if (*ret_handle == NULL)
			fate = error_set(error, FATE_FATAL, ERR_USAGE, "the settings of Kafka do not go together: %s",
			                 reason);
	}
	if (fate != FATE_OK)
		rd_kafka_conf_destroy(conf);
	return fate;
}

/* In short turns, so that a Ctrl-C is noticed. */
static enum fate await_metadata(rd_kafka_t *handle, int timeout_ms, rd_kafka_resp_err_t *ret_code,
                                struct error *error)
{
	int64_t end = clock_mono_ms() + timeout_ms;
	enum fate fate = FATE_OK;

	do {
		const struct rd_kafka_metadata *metadata = NULL;
		*ret_code =
			rd_kafka_metadata(handle, 0, NULL, &metadata, timeout_ms < TURN_MS ? timeout_ms : TURN_MS);
		if (*ret_code == RD_KAFKA_RESP_ERR_NO_ERROR && metadata->broker_cnt == 0)
			*ret_code = RD_KAFKA_RESP_ERR_BROKER_NOT_AVAILABLE;
		if (metadata != NULL)
			rd_kafka_metadata_destroy(metadata);
		if (*ret_code == RD_KAFKA_RESP_ERR_NO_ERROR)
			return FATE_OK;
		fate = process_pause(1, error);
	} while (fate == FATE_OK && clock_mono_ms() < end);
	return fate;
}

enum fate kafka_answers(const struct property *properties, size_t len, int timeout_ms, struct error *error)
{
	rd_kafka_resp_err_t code;
	rd_kafka_t *handle;
	enum fate fate = open_handle(properties, len, &handle, error);

	if (fate != FATE_OK)
		return fate;
	fate = await_metadata(handle, timeout_ms, &code, error);
	if (fate == FATE_OK && code != RD_KAFKA_RESP_ERR_NO_ERROR)
		fate = error_set_native(
			error, FATE_RETRY, ERR_SERVICE, rd_kafka_err2name(code), "no broker answers at %s: %s",
			kafka_property_find(properties, len, "bootstrap.servers"), rd_kafka_err2str(code));
	rd_kafka_destroy(handle);
	return fate;
}

/* What the broker says about each topic. */
static enum fate look_at_results(rd_kafka_event_t *event, struct error *error)
{
	const rd_kafka_DeleteTopics_result_t *result = rd_kafka_event_DeleteTopics_result(event);
	size_t len = 0;

	if (rd_kafka_event_error(event) != RD_KAFKA_RESP_ERR_NO_ERROR || result == NULL)
		return error_set(error, FATE_RETRY, ERR_SERVICE, "topics were not deleted: %s",
		                 rd_kafka_event_error_string(event));
	const rd_kafka_topic_result_t **topics = rd_kafka_DeleteTopics_result_topics(result, &len);
	for (size_t i = 0; i < len; i++) {
		rd_kafka_resp_err_t code = rd_kafka_topic_result_error(topics[i]);
		if (code != RD_KAFKA_RESP_ERR_NO_ERROR && code != RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART)
			return error_set(error, FATE_RETRY, ERR_SERVICE, "topic %s was not deleted: %s",
			                 rd_kafka_topic_result_name(topics[i]), rd_kafka_err2str(code));
	}
	return FATE_OK;
}

/* Sends the request and waits for its answer. */
static enum fate ask_to_delete(rd_kafka_t *handle, rd_kafka_DeleteTopic_t **topics, size_t len,
                               int timeout_ms, struct error *error)
{
	rd_kafka_queue_t *queue = rd_kafka_queue_new(handle);
	enum fate fate;

	rd_kafka_DeleteTopics(handle, topics, len, NULL, queue);
	rd_kafka_event_t *event = rd_kafka_queue_poll(queue, timeout_ms);
	if (event != NULL)
		fate = look_at_results(event, error);
	else
		fate = error_set(error, FATE_RETRY, ERR_SERVICE, "topics were not deleted: no answer within %d s",
		                 timeout_ms / 1000);
	if (event != NULL)
		rd_kafka_event_destroy(event);
	rd_kafka_queue_destroy(queue);
	return fate;
}

enum fate kafka_delete_topics(const struct property *properties, size_t len, const char *const *names,
                              size_t names_len, int timeout_ms, struct error *error)
{
	rd_kafka_t *handle;
	enum fate fate = open_handle(properties, len, &handle, error);

	if (fate != FATE_OK)
		return fate;
	rd_kafka_DeleteTopic_t **topics = calloc(names_len, sizeof(*topics));
	if (topics == NULL) {
		rd_kafka_destroy(handle);
		return error_set(error, FATE_FATAL, ERR_MEMORY, "out of memory");
	}
	for (size_t i = 0; i < names_len; i++)
		topics[i] = rd_kafka_DeleteTopic_new(names[i]);
	fate = ask_to_delete(handle, topics, names_len, timeout_ms, error);
	rd_kafka_DeleteTopic_destroy_array(topics, names_len);
	free(topics);
	rd_kafka_destroy(handle);
	return fate;
}

/* What the coordinators say about each group. */
static enum fate look_at_groups(rd_kafka_event_t *event, struct error *error)
{
	const rd_kafka_DeleteGroups_result_t *result = rd_kafka_event_DeleteGroups_result(event);
	size_t len = 0;

	if (rd_kafka_event_error(event) != RD_KAFKA_RESP_ERR_NO_ERROR || result == NULL)
		return error_set(error, FATE_RETRY, ERR_SERVICE, "groups were not deleted: %s",
		                 rd_kafka_event_error_string(event));
	const rd_kafka_group_result_t **groups = rd_kafka_DeleteGroups_result_groups(result, &len);
	for (size_t i = 0; i < len; i++) {
		const rd_kafka_error_t *failure = rd_kafka_group_result_error(groups[i]);
		if (failure != NULL && rd_kafka_error_code(failure) != RD_KAFKA_RESP_ERR_GROUP_ID_NOT_FOUND)
			return error_set(error, FATE_RETRY, ERR_SERVICE, "group %s was not deleted: %s",
			                 rd_kafka_group_result_name(groups[i]), rd_kafka_error_string(failure));
	}
	return FATE_OK;
}

static enum fate ask_to_delete_groups(rd_kafka_t *handle, rd_kafka_DeleteGroup_t **groups, size_t len,
                                      int timeout_ms, struct error *error)
{
	rd_kafka_queue_t *queue = rd_kafka_queue_new(handle);
	enum fate fate;

	rd_kafka_DeleteGroups(handle, groups, len, NULL, queue);
	rd_kafka_event_t *event = rd_kafka_queue_poll(queue, timeout_ms);
	if (event != NULL)
		fate = look_at_groups(event, error);
	else
		fate = error_set(error, FATE_RETRY, ERR_SERVICE, "groups were not deleted: no answer within %d s",
		                 timeout_ms / 1000);
	if (event != NULL)
		rd_kafka_event_destroy(event);
	rd_kafka_queue_destroy(queue);
	return fate;
}

enum fate kafka_delete_groups(const struct property *properties, size_t len, const char *const *names,
                              size_t names_len, int timeout_ms, struct error *error)
{
	rd_kafka_t *handle;
	enum fate fate = open_handle(properties, len, &handle, error);

	if (fate != FATE_OK)
		return fate;
	rd_kafka_DeleteGroup_t **groups = calloc(names_len, sizeof(*groups));
	if (groups == NULL) {
		rd_kafka_destroy(handle);
		return error_set(error, FATE_FATAL, ERR_MEMORY, "out of memory");
	}
	for (size_t i = 0; i < names_len; i++)
		groups[i] = rd_kafka_DeleteGroup_new(names[i]);
	fate = ask_to_delete_groups(handle, groups, names_len, timeout_ms, error);
	rd_kafka_DeleteGroup_destroy_array(groups, names_len);
	free(groups);
	rd_kafka_destroy(handle);
	return fate;
}
