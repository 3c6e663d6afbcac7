#include "producer/producer.h"

#include "core/clock.h"
#include "core/kafka_glue.h"
#include "producer/handle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB             ((size_t)1024 * 1024)
#define DEFAULT_MESSAGE (16 * MIB)
#define DEFAULT_QUEUE   (32 * MIB)
#define SMALLEST_LIMIT  ((size_t)1000) /* librdkafka's own bound of message.max.bytes */
#define TOPICS_MAX      64
#define INIT_SLICE_MS   1000

struct producer {
	rd_kafka_t *rk;
	size_t message_bytes;
	producer_report *report;
	void *report_context;

	/* A handle a topic keeps librdkafka from forgetting what it knows about it. */
	rd_kafka_topic_t *topics[TOPICS_MAX];
	size_t topics_len;

	bool in_transaction;        /* begun, and not committed for sure */
	size_t pending;             /* sent, no report yet */
	struct error first_failure; /* since the last wait or begin; fate OK: none */
	char down_reason[160];      /* the last thing that a connection said */
};

/* ---- reports ---- */

static void remember_failure(struct producer *producer, const struct error *failure)
{
	if (producer->first_failure.fate == FATE_OK)
		producer->first_failure = *failure;
}

static void on_delivery(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque)
{
	struct producer *producer = opaque;
	struct outgoing sent = { .topic = rd_kafka_topic_name(message->rkt),
		                     .partition = message->partition,
		                     .timestamp_us = TIME_NONE,
		                     .tag = message->_private };
	struct error failure = { .fate = FATE_OK };

	(void)rk;
	producer->pending--;
	if (message->err) {
		kafka_error(&failure, rd_kafka_err2name(message->err), rd_kafka_err2str(message->err),
		            "could not write to %s", sent.topic);
		remember_failure(producer, &failure);
	}
	if (producer->report)
		producer->report(producer->report_context, &sent, message->offset, message->err ? &failure : NULL);
}

static void on_error(rd_kafka_t *rk, int err, const char *reason, void *opaque)
{
	struct producer *producer = opaque;

	(void)rk;
	if (err != RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN)
		snprintf(producer->down_reason, sizeof(producer->down_reason), "%s", reason);
}

/* ---- open and close ---- */

static const struct property defaults[] = {
	{ "linger.ms", "0" },
	{ "reconnect.backoff.max.ms", "2000" },
	{ "socket.keepalive.enable", "true" },
	{ "socket.nagle.disable", "true" },
	{ "log.connection.close", "false" },
	{ NULL, NULL },
};

/* The resumes: a transaction flushes whatever lingers, and compression decides how much fits through. */
static const struct property transactional_defaults[] = {
	{ "compression.type", "lz4" },
	{ "linger.ms", "0" },
	{ "reconnect.backoff.max.ms", "2000" },
	{ "socket.keepalive.enable", "true" },
	{ "socket.nagle.disable", "true" },
	{ "log.connection.close", "false" },
	{ NULL, NULL },
};

/* What the protocol needs as it is (kafka_property_owned); set last, on top of all else. */
static void set_owned(rd_kafka_conf_t *conf, const struct producer_settings *settings, size_t message_bytes)
{
	size_t queue_bytes = settings->queue_bytes ? settings->queue_bytes : DEFAULT_QUEUE;

	handle_set(conf, "acks", "all");
	handle_set(conf, "enable.idempotence", "true");
	handle_set(conf, "partitioner", "murmur2_random");
	handle_set(conf, "delivery.report.only.error", "false");
	handle_set_number(conf, "message.max.bytes", message_bytes);
	if (queue_bytes < message_bytes)
		queue_bytes = message_bytes;
	handle_set_number(conf, "queue.buffering.max.kbytes", queue_bytes / 1024 + 1);
	if (settings->delivery_timeout_ms > 0)
		handle_set_number(conf, "message.timeout.ms", (size_t)settings->delivery_timeout_ms);
	if (settings->transactional_id)
		handle_set(conf, "transactional.id", settings->transactional_id);
}

static enum fate make_conf(struct producer *producer, const struct producer_settings *settings,
                           rd_kafka_conf_t **ret_conf, struct error *error)
{
	const struct property *ours = settings->transactional_id ? transactional_defaults : defaults;
	rd_kafka_conf_t *conf;
	enum fate fate = handle_conf(&conf, ours, settings->properties, settings->properties_len, error);

	if (fate != FATE_OK)
		return fate;
	if (settings->client_id &&
	    !kafka_property_find(settings->properties, settings->properties_len, "client.id"))
		handle_set(conf, "client.id", settings->client_id);
	set_owned(conf, settings, producer->message_bytes);
	/* Always set: without it the flush inside of commit_transaction looks only every 10 ms. */
	rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
	rd_kafka_conf_set_error_cb(conf, on_error);
	rd_kafka_conf_set_opaque(conf, producer);
	*ret_conf = conf;
	return FATE_OK;
}

enum fate producer_open(struct producer **ret_producer, const struct producer_settings *settings,
                        struct error *error)
{
	struct producer *producer = calloc(1, sizeof(*producer));
	rd_kafka_conf_t *conf;
	enum fate fate;

	if (!producer)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "could not allocate a Kafka producer");
	producer->message_bytes = settings->message_bytes ? settings->message_bytes : DEFAULT_MESSAGE;
	if (producer->message_bytes < SMALLEST_LIMIT)
		producer->message_bytes = SMALLEST_LIMIT;
	producer->report = settings->report;
	producer->report_context = settings->report_context;
	fate = make_conf(producer, settings, &conf, error);
	if (fate == FATE_OK)
		fate = handle_open(&producer->rk, conf, error);
	if (fate != FATE_OK) {
		free(producer);
		return fate;
	}
	*ret_producer = producer;
	return FATE_OK;
}

void producer_close(struct producer *producer)
{
	if (!producer)
		return;
	producer->report = NULL;
	for (size_t i = 0; i < producer->topics_len; i++)
		rd_kafka_topic_destroy(producer->topics[i]);
	handle_close(producer->rk, producer, producer->in_transaction);
}

/* ---- writing ---- */

static rd_kafka_topic_t *topic_handle(struct producer *producer, const char *name, struct error *error)
{
	rd_kafka_topic_t *topic;

	for (size_t i = 0; i < producer->topics_len; i++)
		if (!strcmp(rd_kafka_topic_name(producer->topics[i]), name))
			return producer->topics[i];
	if (producer->topics_len == TOPICS_MAX) {
		error_set(error, FATE_FATAL, ERR_BUG, "cannot write to more than %d topics", TOPICS_MAX);
		return NULL;
	}
	topic = rd_kafka_topic_new(producer->rk, name, NULL);
	if (!topic) {
		rd_kafka_resp_err_t err = rd_kafka_last_error();

		kafka_error(error, rd_kafka_err2name(err), rd_kafka_err2str(err), "cannot write to topic %.100s",
		            name);
		return NULL;
	}
	producer->topics[producer->topics_len++] = topic;
	return topic;
}

enum fate producer_warm(struct producer *producer, const char *topic, int timeout_ms, int32_t *ret_partitions,
                        struct error *error)
{
	struct error why = { .fate = FATE_OK };
	rd_kafka_topic_t *handle = topic_handle(producer, topic, &why);
	const struct rd_kafka_metadata *metadata = NULL;
	rd_kafka_resp_err_t err;

	if (!handle) {
		if (error)
			*error = why;
		return why.fate;
	}
	err = rd_kafka_metadata(producer->rk, 0, handle, &metadata, timeout_ms);
	if (!err && metadata->topic_cnt > 0) {
		err = metadata->topics[0].err;
		if (ret_partitions)
			*ret_partitions = metadata->topics[0].partition_cnt;
	}
	if (metadata)
		rd_kafka_metadata_destroy(metadata);
	if (!err)
		return FATE_OK;
	kafka_error(&why, rd_kafka_err2name(err), rd_kafka_err2str(err), "could not find topic %.100s", topic);
	if (err == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART)
		why.fate = FATE_REJECT;
	if (error)
		*error = why;
	return why.fate;
}

static size_t size_of(const struct outgoing *outgoing)
{
	size_t size = outgoing->key.len + outgoing->value.len;

	for (size_t i = 0; i < outgoing->headers_len; i++)
		size += strlen(outgoing->headers[i].name) + outgoing->headers[i].value.len;
	return size;
}

/* NULL when there are none. librdkafka copies names and values. */
static rd_kafka_headers_t *headers_of(const struct outgoing *outgoing)
{
	rd_kafka_headers_t *headers;

	if (!outgoing->headers_len)
		return NULL;
	headers = rd_kafka_headers_new(outgoing->headers_len);
	for (size_t i = 0; i < outgoing->headers_len; i++) {
		const struct header *header = &outgoing->headers[i];

		rd_kafka_header_add(headers, header->name, -1, header->value.data, (ssize_t)header->value.len);
	}
	return headers;
}

static rd_kafka_resp_err_t hand_over(struct producer *producer, rd_kafka_topic_t *topic,
                                     const struct outgoing *outgoing)
{
	rd_kafka_headers_t *headers = headers_of(outgoing);
	int64_t ms = outgoing->timestamp_us == TIME_NONE ? 0 : outgoing->timestamp_us / 1000;
	rd_kafka_vu_t parts[8] = {
		{ .vtype = RD_KAFKA_VTYPE_RKT, .u.rkt = topic },
		{ .vtype = RD_KAFKA_VTYPE_PARTITION, .u.i32 = outgoing->partition },
		{ .vtype = RD_KAFKA_VTYPE_MSGFLAGS, .u.i = RD_KAFKA_MSG_F_COPY },
		{ .vtype = RD_KAFKA_VTYPE_VALUE, .u.mem = { (void *)outgoing->value.data, outgoing->value.len } },
		{ .vtype = RD_KAFKA_VTYPE_KEY, .u.mem = { (void *)outgoing->key.data, outgoing->key.len } },
		{ .vtype = RD_KAFKA_VTYPE_TIMESTAMP, .u.i64 = ms }, /* 0: now */
		{ .vtype = RD_KAFKA_VTYPE_OPAQUE, .u.ptr = outgoing->tag },
		{ .vtype = RD_KAFKA_VTYPE_HEADERS, .u.headers = headers },
	};
	rd_kafka_error_t *refused = rd_kafka_produceva(producer->rk, parts, headers ? 8 : 7);
	rd_kafka_resp_err_t err = RD_KAFKA_RESP_ERR_NO_ERROR;

	if (refused) {
		err = rd_kafka_error_code(refused);
		rd_kafka_error_destroy(refused);
		if (headers)
			rd_kafka_headers_destroy(headers);
	}
	return err;
}

enum fate producer_send(struct producer *producer, const struct outgoing *outgoing, struct error *error)
{
	struct error why = { .fate = FATE_OK };
	rd_kafka_topic_t *topic = topic_handle(producer, outgoing->topic, &why);
	rd_kafka_resp_err_t err;

	if (!topic) {
		if (error)
			*error = why;
		return why.fate;
	}
	if (size_of(outgoing) > producer->message_bytes)
		return error_set(error, FATE_REJECT, ERR_TOO_LARGE,
		                 "cannot write to %s: the record has %zu bytes, the limit is %zu", outgoing->topic,
		                 size_of(outgoing), producer->message_bytes);
	err = hand_over(producer, topic, outgoing);
	if (err)
		return kafka_error(error, rd_kafka_err2name(err), rd_kafka_err2str(err), "could not write to %s",
		                   outgoing->topic);
	producer->pending++;
	return FATE_OK;
}

void producer_poll(struct producer *producer, int timeout_ms)
{
	rd_kafka_poll(producer->rk, timeout_ms);
}

static enum fate take_failure(struct producer *producer, struct error *error)
{
	enum fate fate = producer->first_failure.fate;

	if (error && fate != FATE_OK)
		*error = producer->first_failure;
	producer->first_failure = (struct error){ .fate = FATE_OK };
	return fate;
}

enum fate producer_wait(struct producer *producer, int timeout_ms, struct error *error)
{
	enum fate fate;

	(void)rd_kafka_flush(producer->rk, timeout_ms);
	fate = take_failure(producer, error);
	if (fate != FATE_OK || !producer->pending)
		return fate;
	return error_set(error, FATE_RETRY, ERR_SERVICE,
	                 "could not write to Kafka: %zu records were not acknowledged within %d ms%s%s",
	                 producer->pending, timeout_ms, *producer->down_reason ? ": " : "",
	                 producer->down_reason);
}

/* ---- transactions ---- */

/* Fills *error from what a transaction call returned, and destroys that. A fatal error goes by the name of
 * its cause ("_FENCED"). */
static enum fate transaction_failed(struct producer *producer, rd_kafka_error_t *failure, const char *doing,
                                    struct error *error)
{
	rd_kafka_resp_err_t code = rd_kafka_error_code(failure);
	char reason[160];
	enum fate fate;

	snprintf(reason, sizeof(reason), "%s", rd_kafka_error_string(failure));
	if (code == RD_KAFKA_RESP_ERR__FATAL)
		code = rd_kafka_fatal_error(producer->rk, reason, sizeof(reason));
	fate = kafka_error(error, rd_kafka_err2name(code), reason, "could not %s", doing);
	rd_kafka_error_destroy(failure);
	return fate;
}

/* A call after a fatal error may hang, so it is looked for before each. */
static enum fate check_alive(struct producer *producer, const char *doing, struct error *error)
{
	char reason[160];
	rd_kafka_resp_err_t err = rd_kafka_fatal_error(producer->rk, reason, sizeof(reason));

	if (!err)
		return FATE_OK;
	return kafka_error(error, rd_kafka_err2name(err), reason, "could not %s", doing);
}

/* The one transaction call that may have a short timeout: librdkafka goes on with it and the next call takes
 * it up again. */
enum fate producer_init_transactions(struct producer *producer, int64_t patience_ms, struct error *error)
{
	static const char doing[] = "take over a transactional id";
	int64_t until_ms = clock_mono_ms() + patience_ms;
	rd_kafka_error_t *failure;

	for (;;) {
		enum fate fate = check_alive(producer, doing, error);
		bool again;

		if (fate != FATE_OK)
			return fate;
		failure = rd_kafka_init_transactions(producer->rk, INIT_SLICE_MS);
		rd_kafka_poll(producer->rk, 0);
		again = failure && rd_kafka_error_is_retriable(failure);
		if (!failure)
			return FATE_OK;
		if (!again || clock_mono_ms() >= until_ms)
			return transaction_failed(producer, failure, doing, error);
		rd_kafka_error_destroy(failure);
	}
}

enum fate producer_begin(struct producer *producer, struct error *error)
{
	static const char doing[] = "begin a transaction";
	enum fate fate = check_alive(producer, doing, error);
	rd_kafka_error_t *failure;

	if (fate != FATE_OK)
		return fate;
	producer->first_failure = (struct error){ .fate = FATE_OK };
	failure = rd_kafka_begin_transaction(producer->rk);
	producer->in_transaction = !failure;
	return failure ? transaction_failed(producer, failure, doing, error) : FATE_OK;
}

static rd_kafka_error_t *commit_until_known(struct producer *producer)
{
	rd_kafka_error_t *failure = rd_kafka_commit_transaction(producer->rk, -1);

	while (failure && rd_kafka_error_is_retriable(failure)) {
		rd_kafka_error_destroy(failure);
		failure = rd_kafka_commit_transaction(producer->rk, -1);
	}
	return failure;
}

enum fate producer_commit(struct producer *producer, struct error *error)
{
	static const char doing[] = "commit a transaction";
	enum fate fate = check_alive(producer, doing, error);
	rd_kafka_error_t *failure;

	if (fate != FATE_OK)
		return fate;
	failure = commit_until_known(producer);
	if (failure && rd_kafka_error_is_fatal(failure))
		return transaction_failed(producer, failure, doing, error);
	/* The record that failed says more than "the transaction must be aborted". */
	fate = take_failure(producer, error);
	if (failure && fate == FATE_OK)
		return transaction_failed(producer, failure, doing, error);
	producer->in_transaction = failure != NULL;
	if (failure)
		rd_kafka_error_destroy(failure);
	return fate;
}
