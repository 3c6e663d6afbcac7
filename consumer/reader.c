#include "consumer/reader_inner.h"

#include "core/clock.h"
#include "core/deadline.h"
#include "core/kafka_glue.h"
#include "core/log.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MIB                  ((size_t)1024 * 1024)
#define DEFAULT_PREFETCH     (16 * MIB)
#define DEFAULT_RECORD       (8 * MIB + MIB / 4)
#define SMALLEST_FETCH       (MIB / 2)
#define LARGEST_FETCH        ((size_t)1000000000) /* librdkafka's own bounds */
#define LARGEST_RECEIVE      ((size_t)2000000000)
#define DEFAULT_SESSION_MS   45000
#define LONGEST_HEARTBEAT_MS 3000
#define BEATS_A_SESSION      4
#define CLOSE_POLL_MS        50

/* ---- properties ---- */

static bool set_property(void *context, const char *name, const char *value, char *why, size_t why_cap)
{
	return rd_kafka_conf_set(context, name, value, why, why_cap) == RD_KAFKA_CONF_OK;
}

/* For our own: a name that this librdkafka does not know is not an error. Returns whether it is known. */
static bool set_ours(rd_kafka_conf_t *conf, const char *name, const char *value)
{
	return rd_kafka_conf_set(conf, name, value, NULL, 0) == RD_KAFKA_CONF_OK;
}

static void set_size(rd_kafka_conf_t *conf, const char *name, size_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%zu", value);
	set_ours(conf, name, text);
}

static size_t at_least(size_t value, size_t floor)
{
	return value > floor ? value : floor;
}

static size_t at_most(size_t value, size_t ceiling)
{
	return value < ceiling ? value : ceiling;
}

/*
 * What librdkafka may hold for us: a queue of half the ceiling, and answers of at most the other half, which
 * come in on top of a queue that was almost full. A broker sends the first batch of an answer even when it is
 * larger than all limits, so the largest record needs no room in fetch.max.bytes, only in receive.*, which
 * counts the whole answer: one such batch on top of the rest.
 */
static void set_memory(struct reader *reader, rd_kafka_conf_t *conf, const struct reader_settings *settings)
{
	size_t ceiling = settings->prefetch_bytes ? settings->prefetch_bytes : DEFAULT_PREFETCH;
	size_t record = settings->record_bytes ? settings->record_bytes : DEFAULT_RECORD;
	size_t fetch = at_most(at_least(ceiling / 2, SMALLEST_FETCH), LARGEST_FETCH);
	size_t receive = at_least(fetch + 2 * record, 128 * MIB);

	reader->queue_bytes = at_least(ceiling / 2, 1024);
	set_size(conf, "queued.max.messages.kbytes", reader->queue_bytes / 1024);
	set_ours(conf, "message.max.bytes", "1000"); /* only bounds fetch.max.bytes from below here */
	set_size(conf, "fetch.max.bytes", fetch);
	set_size(conf, "max.partition.fetch.bytes", at_most(fetch, MIB));
	set_size(conf, "receive.message.max.bytes", at_most(receive, LARGEST_RECEIVE));
}

/* A group learns of a change with the next heartbeat, so a short session needs short beats. */
static void set_heartbeat(rd_kafka_conf_t *conf, const struct reader_settings *settings)
{
	const char *session =
		kafka_property_find(settings->properties, settings->properties_len, "session.timeout.ms");
	long session_ms = session ? strtol(session, NULL, 10) : DEFAULT_SESSION_MS;
	long beat_ms = session_ms / BEATS_A_SESSION;

	if (beat_ms > 0)
		set_size(conf, "heartbeat.interval.ms", at_most((size_t)beat_ms, LONGEST_HEARTBEAT_MS));
}

/* Defaults of ours that the user may change. */
static void set_defaults(struct reader *reader, rd_kafka_conf_t *conf, const struct reader_settings *settings)
{
	if (settings->client_id)
		set_ours(conf, "client.id", settings->client_id);
	set_memory(reader, conf, settings);
	set_heartbeat(conf, settings);
	/* A new partition is asked for only after the answer that is under way: this is how long a start or
	 * a seek on an idle connection takes at worst. A record that comes ends the wait at once. */
	set_ours(conf, "fetch.wait.max.ms", "100");
	set_ours(conf, "fetch.error.backoff.ms", "100");
	set_ours(conf, "reconnect.backoff.max.ms", "2000");
	set_ours(conf, "topic.metadata.refresh.interval.ms", "10000"); /* topics that are made later */
	set_ours(conf, "socket.keepalive.enable", "true");
	set_ours(conf, "socket.nagle.disable", "true");
	set_ours(conf, "log.connection.close", "false");
	reader->needs_waking = !set_ours(conf, "fetch.queue.backoff.ms", "5"); /* librdkafka 2.2 has it */
}

/* What the protocol needs as it is: set last, so that nothing of the user's comes on top. */
static void set_owned(rd_kafka_conf_t *conf, const struct reader_settings *settings)
{
	static atomic_uint counter;
	char nobody[64];

	/* Reading without a group needs the name of one all the same; nothing is ever committed to it. */
	snprintf(nobody, sizeof(nobody), "fermata-none-%ld-%u", (long)getpid(), atomic_fetch_add(&counter, 1));
	set_ours(conf, "group.id", settings->group ? settings->group : nobody);
	set_ours(conf, "group.protocol", "classic");
	set_ours(conf, "partition.assignment.strategy", "range");
	set_ours(conf, "enable.auto.commit", "false");
	set_ours(conf, "enable.auto.offset.store", "false");
	set_ours(conf, "enable.partition.eof", "true");
	set_ours(conf, "auto.offset.reset", "error");
	set_ours(conf, "allow.auto.create.topics", "false");
	set_ours(conf, "check.crcs", "true");
	set_ours(conf, "log.queue", "false");
	set_ours(conf, "isolation.level", settings->read_uncommitted ? "read_uncommitted" : "read_committed");
}

static void on_log(const rd_kafka_t *rk, int severity, const char *facility, const char *text)
{
	(void)rk;
	kafka_log("consumer", severity, facility, text);
}

static enum fate make_conf(struct reader *reader, const struct reader_settings *settings,
                           rd_kafka_conf_t **ret_conf, struct error *error)
{
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	enum fate fate;

	set_defaults(reader, conf, settings);
	fate = kafka_properties_apply(settings->properties, settings->properties_len, set_property, conf, error);
	if (fate != FATE_OK) {
		rd_kafka_conf_destroy(conf);
		return fate;
	}
	set_owned(conf, settings);
	rd_kafka_conf_set_log_cb(conf, on_log);
	rd_kafka_conf_set_error_cb(conf, reader_on_error);
	rd_kafka_conf_set_rebalance_cb(conf, reader_on_rebalance);
	rd_kafka_conf_set_opaque(conf, reader);
	*ret_conf = conf;
	return FATE_OK;
}

/* ---- open ---- */

static enum fate subscribe(struct reader *reader, const struct reader_settings *settings, struct error *error)
{
	rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new((int)settings->topics_len);
	rd_kafka_resp_err_t err;

	for (size_t i = 0; i < settings->topics_len; i++)
		rd_kafka_topic_partition_list_add(topics, settings->topics[i], RD_KAFKA_PARTITION_UA);
	err = rd_kafka_subscribe(reader->rk, topics);
	rd_kafka_topic_partition_list_destroy(topics);
	if (err)
		return kafka_error(error, rd_kafka_err2name(err), rd_kafka_err2str(err), "cannot join group %s",
		                   settings->group);
	return FATE_OK;
}

static void release(struct reader *reader)
{
	for (size_t i = 0; i < reader->names_len; i++)
		free(reader->names[i]);
	free(reader->names);
	free(reader->assignment);
	free(reader->fetched);
	free(reader);
}

enum fate reader_open(struct reader **ret_reader, const struct reader_settings *settings, struct error *error)
{
	struct reader *reader = calloc(1, sizeof(*reader));
	rd_kafka_conf_t *conf = NULL;
	char why[200];
	enum fate fate;

	if (!reader)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "could not allocate a Kafka reader");
	reader->in_group = settings->group != NULL;
	fate = make_conf(reader, settings, &conf, error);
	if (fate != FATE_OK) {
		release(reader);
		return fate;
	}
	reader->rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, why, sizeof(why));
	if (!reader->rk) {
		rd_kafka_conf_destroy(conf);
		release(reader);
		return error_set(error, FATE_FATAL, ERR_USAGE, "cannot set up a Kafka consumer: %s", why);
	}
	rd_kafka_poll_set_consumer(reader->rk);
	reader->queue = rd_kafka_queue_get_consumer(reader->rk);
	fate = reader->in_group ? subscribe(reader, settings, error) : FATE_OK;
	if (fate != FATE_OK)
		reader_close(reader, 1000);
	else
		*ret_reader = reader;
	return fate;
}

const char *reader_intern(struct reader *reader, const char *topic)
{
	char **names;

	for (size_t i = 0; i < reader->names_len; i++)
		if (!strcmp(reader->names[i], topic))
			return reader->names[i];
	names = realloc(reader->names, (reader->names_len + 1) * sizeof(*names));
	if (!names)
		return NULL;
	reader->names = names;
	names[reader->names_len] = strdup(topic);
	if (!names[reader->names_len])
		return NULL;
	return names[reader->names_len++];
}

void reader_stop_waiting(struct reader *reader)
{
	atomic_store(&reader->woken, true);
	rd_kafka_queue_yield(reader->queue);
}

/* ---- close ---- */

/*
 * Leaving a group talks to its coordinator, and librdkafka 2.0.2 waits for the answer as long as it takes;
 * so does the end of its threads. The positions are in PostgreSQL: nothing is lost by a close that is cut
 * short, the group notices after session.timeout.ms.
 */
struct closing {
	struct reader *reader;
	int64_t leave_until_ms;
};

static void leave_group(struct reader *reader, int64_t until_ms)
{
	rd_kafka_queue_t *queue = rd_kafka_queue_new(reader->rk);
	rd_kafka_error_t *refused = rd_kafka_consumer_close_queue(reader->rk, queue);

	if (refused) { /* a fatal error of the handle: it is out of the group already */
		rd_kafka_error_destroy(refused);
		until_ms = 0;
	}
	/* Not rd_kafka_queue_poll_callback: 2.0.2 aborts when a record is still in the queue. */
	while (clock_mono_ms() < until_ms && !rd_kafka_consumer_closed(reader->rk)) {
		rd_kafka_message_t *message = rd_kafka_consume_queue(queue, CLOSE_POLL_MS);

		if (message)
			rd_kafka_message_destroy(message);
	}
	rd_kafka_queue_destroy(queue);
}

static void close_work(void *context)
{
	struct closing *closing = context;
	struct reader *reader = closing->reader;

	if (reader->in_group)
		leave_group(reader, closing->leave_until_ms);
	rd_kafka_queue_destroy(reader->queue);
	rd_kafka_destroy_flags(reader->rk, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
	release(reader);
	free(closing);
}

void reader_close(struct reader *reader, int64_t deadline_ms)
{
	struct closing *closing;
	bool started;

	if (!reader)
		return;
	closing = malloc(sizeof(*closing));
	if (!closing) /* left open: the process is about to have other sorrows */
		return;
	closing->reader = reader;
	closing->leave_until_ms = clock_mono_ms() + deadline_ms * 3 / 4; /* the rest is for ending the threads */
	if (!deadline_run(close_work, closing, deadline_ms, &started)) {
		if (!started)
			free(closing);
		log_warn("consumer", "could not close a Kafka consumer within %lld ms: it is left behind",
		         (long long)deadline_ms);
	}
}
