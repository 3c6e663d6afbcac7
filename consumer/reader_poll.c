#include "consumer/reader_inner.h"

#include "core/clock.h"
#include "core/kafka_glue.h"
#include "core/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INCIDENT_AGAIN_MS 30000 /* an outage that goes on is reported again after this */
#define RESTART_AFTER_MS  500

/* ---- the group ---- */

static void forget_assignment(struct reader *reader)
{
	free(reader->assignment);
	reader->assignment = NULL;
	reader->assignment_len = 0;
}

static void remember_assignment(struct reader *reader, const rd_kafka_topic_partition_list_t *parts)
{
	size_t len = (size_t)parts->cnt;

	forget_assignment(reader);
	reader->assignment = calloc(len ? len : 1, sizeof(*reader->assignment));
	for (size_t i = 0; reader->assignment && i < len; i++) {
		const char *topic = reader_intern(reader, parts->elems[i].topic);

		if (!topic) /* the rest stays unread; the next rebalance tries again */
			return;
		reader->assignment[i] = (struct partition_at){ topic, parts->elems[i].partition, READER_BEGINNING };
		reader->assignment_len = i + 1;
	}
}

/*
 * The answer to an assignment is an empty one: that makes us a full member (heartbeats, later rebalances),
 * and nothing is fetched before reader_start assigns the list with offsets of the caller's.
 */
static void on_assigned(struct reader *reader, const rd_kafka_topic_partition_list_t *parts)
{
	rd_kafka_topic_partition_list_t *none = rd_kafka_topic_partition_list_new(0);

	reader_forget(reader);
	rd_kafka_assign(reader->rk, none);
	rd_kafka_topic_partition_list_destroy(none);
	remember_assignment(reader, parts);
	reader->tell_assigned = true;
}

static void on_revoked(struct reader *reader)
{
	rd_kafka_assign(reader->rk, NULL);
	reader_forget(reader);
	forget_assignment(reader);
	reader->tell_revoked = reader->told_assigned;
	reader->tell_assigned = false;
}

void reader_on_rebalance(rd_kafka_t *rk, rd_kafka_resp_err_t err, rd_kafka_topic_partition_list_t *parts,
                         void *opaque)
{
	struct reader *reader = opaque;

	if (err == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS)
		on_assigned(reader, parts);
	else
		on_revoked(reader);
	rd_kafka_yield(rk); /* the poll that we are in returns, and its caller is told */
}

/* ---- errors beside the stream ---- */

/* One report an incident, so that an outage neither floods the log nor starves the caller's own work. */
static void raise_fault(struct reader *reader, const char *name, const char *reason, const char *doing)
{
	int64_t now = clock_mono_ms();

	if (kafka_error_fate(name) != FATE_FATAL && reader->fault_reported_ms &&
	    now - reader->fault_reported_ms < INCIDENT_AGAIN_MS)
		return;
	if (reader->fault.fate == FATE_FATAL)
		return;
	kafka_error(&reader->fault, name, reason, "%s", doing);
}

static void on_fatal(struct reader *reader)
{
	char reason[200];
	rd_kafka_resp_err_t err = rd_kafka_fatal_error(reader->rk, reason, sizeof(reason));

	error_set_native(&reader->fault, FATE_FATAL, ERR_SERVICE, rd_kafka_err2name(err),
	                 "reading from Kafka failed for good: %s", reason);
}

/* Reading without a group asks for the coordinator of a name that it never uses, and may well lack the right
 * to: that is nobody's business. */
static bool is_noise(const struct reader *reader, int err)
{
	return !reader->in_group && err == RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED;
}

void reader_on_error(rd_kafka_t *rk, int err, const char *reason, void *opaque)
{
	struct reader *reader = opaque;
	const char *name = rd_kafka_err2name(err);

	if (is_noise(reader, err))
		return;
	if (err == RD_KAFKA_RESP_ERR__FATAL) {
		on_fatal(reader);
	} else if (err == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN) {
		raise_fault(reader, name, *reader->down_reason ? reader->down_reason : reason,
		            "could not reach Kafka");
	} else if (err == RD_KAFKA_RESP_ERR__TRANSPORT || err == RD_KAFKA_RESP_ERR__TIMED_OUT) {
		/* One connection; it only matters when it was the last one. */
		snprintf(reader->down_reason, sizeof(reader->down_reason), "%s", reason);
		log_debug("consumer", "%s", reason);
		return;
	} else {
		raise_fault(reader, name, reason, "could not reach Kafka");
	}
	rd_kafka_yield(rk);
}

static enum fate give_fault(struct reader *reader, struct error *error)
{
	enum fate fate = reader->fault.fate;

	if (error)
		*error = reader->fault;
	reader->fault_reported_ms = clock_mono_ms();
	if (fate != FATE_FATAL) /* what is fatal stays so */
		reader->fault = (struct error){ .fate = FATE_OK };
	return fate;
}

/* ---- the stream ---- */

static void incident_over(struct reader *reader)
{
	reader->fault_reported_ms = 0;
	reader->down_reason[0] = '\0';
}

/* Positions never go back but by reader_start: what librdkafka delivers twice is dropped here. */
static bool take_record(struct reader *reader, rd_kafka_message_t *message, struct record *ret_record)
{
	struct fetched *fetched = reader_find(reader, rd_kafka_topic_name(message->rkt), message->partition);
	rd_kafka_timestamp_type_t kind;

	if (!fetched || fetched->paused || message->offset < fetched->position)
		return false;
	fetched->position = message->offset + 1;
	reader->bytes_since_empty += message->len + message->key_len;
	ret_record->at.topic = fetched->topic;
	ret_record->at.partition = message->partition;
	ret_record->at.offset = message->offset;
	ret_record->at.appended_at = kafka_time_us(rd_kafka_message_timestamp(message, &kind));
	ret_record->key = (struct view){ message->key, message->key_len };
	ret_record->value = (struct view){ message->payload, message->len };
	ret_record->message = message;
	return true;
}

static void fill_place(const struct fetched *fetched, int64_t offset, struct record *ret_record)
{
	*ret_record = (struct record){ .at = { fetched->topic, fetched->partition, offset, TIME_NONE } };
}

/* A partition started at its beginning cannot have lost its place: the beginning has moved on between the
 * question and the fetch, or the question failed. It is started again, a moment later. */
static enum reader_event place_gone(struct reader *reader, const struct fetched *fetched,
                                    struct record *ret_record)
{
	if (fetched->position == POSITION_UNKNOWN) {
		reader->restart_at_ms = clock_mono_ms() + RESTART_AFTER_MS;
		return READER_NOTHING;
	}
	fill_place(fetched, fetched->position, ret_record);
	return READER_GONE;
}

static enum reader_event end_reached(struct fetched *fetched, int64_t offset, struct record *ret_record)
{
	if (offset > fetched->position)
		fetched->position = offset;
	fill_place(fetched, fetched->position, ret_record);
	return READER_END;
}

static void stream_error(struct reader *reader, const rd_kafka_message_t *message)
{
	const char *topic = message->rkt ? rd_kafka_topic_name(message->rkt) : "";
	char doing[160];

	if (is_noise(reader, message->err))
		return;
	if (message->err == RD_KAFKA_RESP_ERR__FATAL) {
		on_fatal(reader);
		return;
	}
	if (message->err == RD_KAFKA_RESP_ERR__MAX_POLL_EXCEEDED) {
		log_warn("consumer", "%s", rd_kafka_message_errstr(message));
		return;
	}
	snprintf(doing, sizeof(doing), "could not read from Kafka%s%.100s", *topic ? " topic " : "", topic);
	raise_fault(reader, rd_kafka_err2name(message->err), rd_kafka_message_errstr(message), doing);
}

/* An error in the place of a record. READER_NOTHING: it is no event, perhaps a fault. */
static enum reader_event take_notice(struct reader *reader, const rd_kafka_message_t *message,
                                     struct record *ret_record)
{
	bool is_end = message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF;
	struct fetched *fetched;

	if (!is_end && message->err != RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET) {
		stream_error(reader, message);
		return READER_NOTHING;
	}
	fetched = reader_find(reader, rd_kafka_topic_name(message->rkt), message->partition);
	if (!fetched || fetched->paused)
		return READER_NOTHING;
	return is_end ? end_reached(fetched, message->offset, ret_record)
	              : place_gone(reader, fetched, ret_record);
}

/* What the callbacks left to be told; revoked comes before assigned. */
static enum reader_event take_group_event(struct reader *reader)
{
	if (reader->tell_revoked) {
		reader->tell_revoked = false;
		reader->told_assigned = false;
		return READER_REVOKED;
	}
	if (reader->tell_assigned) {
		reader->tell_assigned = false;
		reader->told_assigned = true;
		return READER_ASSIGNED;
	}
	return READER_NOTHING;
}

static enum reader_event take_message(struct reader *reader, rd_kafka_message_t *message,
                                      struct record *ret_record)
{
	enum reader_event event;

	if (!message->err && take_record(reader, message, ret_record)) {
		incident_over(reader);
		return READER_RECORD;
	}
	event = message->err ? take_notice(reader, message, ret_record) : READER_NOTHING;
	if (event != READER_NOTHING)
		incident_over(reader);
	rd_kafka_message_destroy(message);
	return event;
}

static enum fate restart_lost(struct reader *reader, struct error *error)
{
	if (!reader->restart_at_ms || clock_mono_ms() < reader->restart_at_ms)
		return FATE_OK;
	return reader_refetch(reader, error);
}

/* One message; the queue is looked at without waiting first, to know when it was empty. */
static rd_kafka_message_t *next_message(struct reader *reader, int timeout_ms)
{
	rd_kafka_message_t *message = rd_kafka_consumer_poll(reader->rk, 0);

	if (message || reader->tell_revoked || reader->tell_assigned || reader->fault.fate != FATE_OK)
		return message;
	reader_wake_fetchers(reader);
	if (timeout_ms > 0 && !atomic_load(&reader->woken))
		message = rd_kafka_consumer_poll(reader->rk, timeout_ms);
	atomic_store(&reader->woken, false);
	return message;
}

enum fate reader_poll(struct reader *reader, int timeout_ms, enum reader_event *ret_event,
                      struct record *ret_record, struct error *error)
{
	int64_t until_ms = clock_mono_ms() + timeout_ms;
	enum reader_event event = take_group_event(reader);
	enum fate fate = event == READER_NOTHING ? restart_lost(reader, error) : FATE_OK;
	int64_t left_ms = timeout_ms;

	while (event == READER_NOTHING && fate == FATE_OK && left_ms >= 0) {
		rd_kafka_message_t *message = next_message(reader, (int)left_ms);

		if (message)
			event = take_message(reader, message, ret_record);
		if (event == READER_NOTHING)
			event = take_group_event(reader);
		if (event == READER_NOTHING && reader->fault.fate != FATE_OK)
			fate = give_fault(reader, error);
		if (!message) /* the time is over, or somebody woke us */
			break;
		left_ms = until_ms - clock_mono_ms();
	}
	*ret_event = event;
	return fate;
}

const struct partition_at *reader_assignment(const struct reader *reader, size_t *ret_len)
{
	*ret_len = reader->assignment_len;
	return reader->assignment;
}

bool reader_assignment_lost(const struct reader *reader)
{
	return !reader->assignment || rd_kafka_assignment_lost(reader->rk);
}
