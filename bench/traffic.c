/* traffic.c - suspend events and decisions to the topics, and how far the workers are with them. */
#include "bench/run_inner.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#define QUEUE_BYTES   ((size_t)64 << 20)
#define SPARE_BYTES   ((size_t)1 << 20)
#define FULL_MS       20
#define WAIT_MS       200
#define LOOK_MS       4   /* until something goes on, which is when it begins */
#define SELDOM_MS     15  /* then: to ask costs the server something, too */
#define RARELY_MS     250 /* where there is much to count */
#define MANY_GATES    1000
#define SAMPLE_EVERY  16
#define ZSTD_LEVEL    3
#define FRAMING_BYTES 10 /* of an Avro single object */

/* ---- producers ---- */

enum fate run_producer(const struct run *run, const char *linger_ms, const char *transactional_id,
                       struct producer **ret_producer, struct error *error)
{
	struct producer_settings settings = {
		.client_id = "fermata-bench",
		.transactional_id = transactional_id,
		.message_bytes = 2 * BENCH_SIZE_MAX + SPARE_BYTES,
		.queue_bytes = QUEUE_BYTES,
	};
	size_t len;
	const struct property *users = config_kafka(run->place->config, KAFKA_PRODUCER, &len);
	struct property *all = calloc(len + 1, sizeof(*all));
	enum fate fate;

	if (all == NULL)
		return error_set(error, FATE_FATAL, ERR_MEMORY, "no memory for a producer");
	memcpy(all, users, len * sizeof(*all));
	all[len] = (struct property){ "linger.ms", linger_ms };
	settings.properties = all;
	settings.properties_len = len + 1;
	fate = producer_open(ret_producer, &settings, error);
	free(all);
	return fate;
}

enum fate run_hand_over(struct run *run, struct producer *producer, const struct outgoing *outgoing,
                        struct error *error)
{
	enum fate fate;

	while ((fate = producer_send(producer, outgoing, error)) == FATE_RETRY) {
		producer_poll(producer, FULL_MS);
		fate = run_goes_on(run, error);
		if (fate != FATE_OK)
			return fate;
	}
	return fate;
}

enum fate run_wait_sent(struct run *run, struct producer *producer, struct error *error)
{
	enum fate fate;

	while ((fate = producer_wait(producer, WAIT_MS, error)) == FATE_RETRY) {
		fate = run_goes_on(run, error);
		if (fate != FATE_OK)
			return fate;
	}
	return fate;
}

/* ---- suspend events ---- */

/* What a session's bytes are at the least: zstd's, of some of them. */
static void sample(struct run *run)
{
	size_t len = run->value.len - FRAMING_BYTES;
	size_t cap = ZSTD_compressBound(len);
	void *out = malloc(cap);
	size_t packed =
		out != NULL ? ZSTD_compress(out, cap, run->value.data + FRAMING_BYTES, len, ZSTD_LEVEL) : 0;

	free(out);
	if (packed == 0 || ZSTD_isError(packed))
		return;
	run->zstd_sum += (double)packed;
	run->zstd_len++;
}

static enum fate send_event(struct run *run, uint32_t number, uint32_t seq, uint32_t of, struct uuid *ret_id,
                            struct error *error)
{
	char key[UUID_TEXT_LEN + 1];
	struct outgoing outgoing = { .topic = run_topic(run, PARAM_TOPICS_SUSPENDS),
		                         .partition = PARTITION_BY_KEY,
		                         .timestamp_us = TIME_NONE };
	enum fate fate = session_suspend_grown(run->writer, number, seq, of, &run->value, ret_id, error);

	if (fate != FATE_OK)
		return fate;
	uuid_format(ret_id, key);
	outgoing.key = view_of(key);
	outgoing.value = buffer_view(&run->value);
	fate = run_hand_over(run, run->producer, &outgoing, error);
	if (fate == FATE_OK)
		run->suspends++;
	return fate;
}

enum fate run_send_suspend(struct run *run, struct error *error)
{
	enum fate fate = send_event(run, run->made, 1, 1, &run->ids[run->made], error);

	if (fate != FATE_OK)
		return fate;
	if (run->made % SAMPLE_EVERY == 0)
		sample(run);
	run->made++;
	return FATE_OK;
}

enum fate run_send_grown(struct run *run, uint32_t number, uint32_t seq, uint32_t of, struct error *error)
{
	struct uuid id;

	return send_event(run, number, seq, of, &id, error);
}

enum fate run_send_suspends(struct run *run, uint32_t count, struct error *error)
{
	enum fate fate = FATE_OK;

	for (uint32_t i = 0; i < count && fate == FATE_OK; i++) {
		fate = run_send_suspend(run, error);
		if (fate == FATE_OK)
			fate = run_goes_on(run, error);
		if (i % 256 == 0)
			run_progress(run, "putting suspend events on the topic", i, count);
	}
	return fate == FATE_OK ? run_wait_sent(run, run->producer, error) : fate;
}

/* ---- decisions ---- */

enum fate run_send_decision(struct run *run, struct producer *producer, struct error *error)
{
	char key[UUID_TEXT_LEN + 1];
	struct outgoing outgoing = { .topic = run_topic(run, PARAM_TOPICS_APPROVALS),
		                         .partition = PARTITION_BY_KEY,
		                         .timestamp_us = TIME_NONE };
	const struct uuid *id = &run->ids[run->decided];
	enum fate fate = session_approve(run->writer, run->decided, id, &run->value, error);

	if (fate != FATE_OK)
		return fate;
	uuid_format(id, key);
	outgoing.key = view_of(key);
	outgoing.value = buffer_view(&run->value);
	fate = run_hand_over(run, producer, &outgoing, error);
	if (fate == FATE_OK) {
		run->decided++;
		run->sent++;
	}
	return fate;
}

enum fate run_send_decisions(struct run *run, uint32_t count, struct error *error)
{
	enum fate fate = FATE_OK;

	for (uint32_t i = 0; i < count && fate == FATE_OK; i++) {
		fate = run_send_decision(run, run->producer, error);
		if (fate == FATE_OK)
			fate = run_goes_on(run, error);
		if (i % 256 == 0)
			run_progress(run, "putting decisions on the topic", i, count);
	}
	return fate == FATE_OK ? run_wait_sent(run, run->producer, error) : fate;
}

/* ---- how far the workers are ---- */

enum fate run_taken_in(struct run *run, int64_t *ret_count, struct error *error)
{
	static const char sql[] =
		"SELECT coalesce(sum(next), 0)::bigint FROM fermata.kafka_offset WHERE topic = $1";

	return database_number(run->database, sql, run_topic(run, PARAM_TOPICS_SUSPENDS), ret_count, error);
}

enum fate run_await_suspends(struct run *run, struct timing *ret_timing, struct error *error)
{
	int64_t start, in, last = -1, first = -1;
	struct timing timing = { .count = 0 };
	enum fate fate = run_taken_in(run, &start, error);

	in = start;
	while (fate == FATE_OK && in < run->suspends) {
		fate = run_pause(run, first < 0 ? LOOK_MS : SELDOM_MS, error);
		if (fate == FATE_OK)
			fate = run_taken_in(run, &in, error);
		if (in > start && first < 0) {
			first = in;
			timing.began_us = now_us();
		}
		if (in != last)
			run_progress(run, "suspend events are taken in", in - start, run->suspends - start);
		last = in;
	}
	timing.ended_us = now_us();
	timing.count = first >= 0 ? in - first : 0;
	if (ret_timing != NULL)
		*ret_timing = timing;
	return fate;
}

enum fate run_stored(struct run *run, int64_t *ret_bytes, struct error *error)
{
	static const char sql[] =
		"SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c"
		" JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'fermata' AND c.relkind = 'r'";

	return database_number(run->database, sql, NULL, ret_bytes, error);
}

enum fate run_await_gates(struct run *run, struct error *error)
{
	int64_t left = 1, last = 0;
	enum fate fate = FATE_OK;

	while (fate == FATE_OK && left > 0) {
		fate = database_number(run->database, "SELECT count(*) FROM fermata.gate_outbox", NULL, &left, error);
		if (left != last)
			run_progress(run, "gate events leave", 0, 0);
		last = left;
		if (fate == FATE_OK && left > 0)
			fate = run_pause(run, left > MANY_GATES ? RARELY_MS : SELDOM_MS, error);
	}
	return fate;
}
