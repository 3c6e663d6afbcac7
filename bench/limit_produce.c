/*
 * limit_produce.c - what Kafka takes without a worker: the same resumes, transactional, as many in a transaction as the
 * relay puts there, compressed as the relay's, one producer a partition, each in a thread of its own.
 */
#include "bench/run_inner.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEPT_BYTES ((size_t)128 << 20)
#define FULL_MS    10
#define LOOK_MS    20
#define INIT_MS    30000
#define SHARDS_MAX 1000

/* ---- keeping records ---- */

enum fate kept_init(struct kept *kept, size_t cap, struct error *error)
{
	*kept = (struct kept){ .arena = arena_new(KEPT_BYTES),
		                   .records = calloc(cap, sizeof(*kept->records)),
		                   .cap = cap };
	if (kept->arena != NULL && kept->records != NULL)
		return FATE_OK;
	return error_set(error, FATE_FATAL, ERR_MEMORY, "no memory for the resumes");
}

void kept_done(struct kept *kept)
{
	arena_free(kept->arena);
	free(kept->records);
}

enum fate kept_take(void *context, const struct record *record, uint32_t number, struct error *error)
{
	struct kept *kept = context;
	struct header *headers;
	struct outgoing *outgoing = &kept->records[kept->len];

	(void)number;
	kept->full = kept->full || kept->len == kept->cap ||
	             arena_used(kept->arena) + record->value.len + ((size_t)64 << 10) > KEPT_BYTES;
	if (kept->full)
		return FATE_OK;
	*outgoing = (struct outgoing){ .partition = record->at.partition, .timestamp_us = TIME_NONE };
	enum fate fate = record_headers(record, kept->arena, &headers, &outgoing->headers_len, error);
	if (fate != FATE_OK)
		return fate;
	outgoing->headers = headers;
	outgoing->key = arena_copy(kept->arena, record->key);
	outgoing->value = arena_copy(kept->arena, record->value);
	if (outgoing->key.data == NULL || outgoing->value.data == NULL)
		return error_set(error, FATE_FATAL, ERR_MEMORY, "no memory for the resumes");
	kept->len++;
	return FATE_OK;
}

/* ---- producing them ---- */

struct lane {
	struct run *run;
	const struct kept *kept;
	int32_t partition;
	atomic_bool *stop;
	struct producer *producer;
	pthread_t thread;
	bool started;
	atomic_bool ended;
	struct error error;
	enum fate fate;
};

static enum fate send_one(struct lane *lane, const struct outgoing *kept)
{
	struct outgoing outgoing = *kept;
	enum fate fate;

	outgoing.topic = lane->run->place->bare_topic;
	while ((fate = producer_send(lane->producer, &outgoing, &lane->error)) == FATE_RETRY &&
	       !atomic_load(lane->stop))
		producer_poll(lane->producer, FULL_MS);
	return fate;
}

/* One transaction, from record `at` on; *ret_next is where the next one begins. */
static enum fate send_transaction(struct lane *lane, size_t at, size_t *ret_next)
{
	size_t records_max = (size_t)config_number(lane->run->place->config, PARAM_WORKER_RELAY_BATCH);
	size_t bytes_max = (size_t)config_number(lane->run->place->config, PARAM_WORKER_RELAY_BYTES);
	size_t records = 0, bytes = 0;
	enum fate fate = producer_begin(lane->producer, &lane->error);

	for (; at < lane->kept->len && fate == FATE_OK && records < records_max && bytes < bytes_max; at++) {
		const struct outgoing *record = &lane->kept->records[at];
		if (record->partition != lane->partition)
			continue;
		fate = send_one(lane, record);
		records++;
		bytes += record->value.len;
	}
	*ret_next = at;
	return fate == FATE_OK ? producer_commit(lane->producer, &lane->error) : fate;
}

static void *produce(void *context)
{
	struct lane *lane = context;
	size_t at = 0;

	while (at < lane->kept->len && lane->fate == FATE_OK && !atomic_load(lane->stop))
		lane->fate = send_transaction(lane, at, &at);
	atomic_store(&lane->ended, true);
	return NULL;
}

/* A producer that could begin at once. */
static enum fate open_lane(struct lane *lane, struct error *error)
{
	char id[128];
	enum fate fate;

	snprintf(id, sizeof(id), "%.100s.%d", lane->run->place->bare_topic, (int)lane->partition);
	fate = run_producer(lane->run, "0", id, &lane->producer, error);
	if (fate == FATE_OK)
		fate = producer_warm(lane->producer, lane->run->place->bare_topic, INIT_MS, NULL, error);
	if (fate == FATE_OK)
		fate = producer_init_transactions(lane->producer, INIT_MS, error);
	return fate;
}

static enum fate start_lane(struct lane *lane, struct error *error)
{
	int failure = pthread_create(&lane->thread, NULL, produce, lane);

	if (failure != 0)
		return error_set_errno(error, FATE_FATAL, failure, "cannot start a thread");
	lane->started = true;
	return FATE_OK;
}

/* Until all have ended. */
static enum fate attend(struct run *run, struct lane *lanes, size_t len, struct error *error)
{
	enum fate fate = FATE_OK;

	for (size_t i = 0; i < len; i++)
		while (lanes[i].started && !atomic_load(&lanes[i].ended)) {
			if (fate == FATE_OK)
				fate = run_pause(run, LOOK_MS / 4, error);
			else /* they were told to stop: within a transaction */
				(void)!run->host->pause(run->host->context, LOOK_MS, NULL);
			if (fate != FATE_OK)
				atomic_store(lanes[i].stop, true);
		}
	return fate;
}

static enum fate join(struct lane *lanes, size_t len, enum fate fate, struct error *error)
{
	for (size_t i = 0; i < len; i++) {
		if (lanes[i].started)
			(void)pthread_join(lanes[i].thread, NULL);
		if (fate == FATE_OK && lanes[i].fate != FATE_OK) {
			fate = lanes[i].fate;
			*error = lanes[i].error;
		}
		producer_close(lanes[i].producer);
	}
	return fate;
}

enum fate limit_produce(struct run *run, const struct kept *kept, struct timing *ret_timing,
                        struct error *error)
{
	atomic_bool stop = false;
	int32_t partitions = 0;
	enum fate fate = reader_partitions(run->resumes, run->place->bare_topic, INIT_MS, &partitions, error);
	size_t len = partitions > 0 && partitions <= SHARDS_MAX ? (size_t)partitions : 0;
	struct lane *lanes = calloc(len + 1, sizeof(*lanes));

	if (lanes == NULL)
		return error_set(error, FATE_FATAL, ERR_MEMORY, "no memory for the producers");
	run_progress(run, "the same resumes without a worker", 0, 0);
	for (size_t i = 0; i < len; i++)
		lanes[i] = (struct lane){ .run = run, .kept = kept, .partition = (int32_t)i, .stop = &stop };
	for (size_t i = 0; i < len && fate == FATE_OK; i++)
		fate = open_lane(&lanes[i], error);
	ret_timing->began_us = now_us();
	for (size_t i = 0; i < len && fate == FATE_OK; i++)
		fate = start_lane(&lanes[i], error);
	if (fate != FATE_OK)
		atomic_store(&stop, true);
	enum fate attended = attend(run, lanes, len, fate == FATE_OK ? error : NULL);
	ret_timing->ended_us = now_us();
	ret_timing->count = (int64_t)kept->len;
	fate = join(lanes, len, fate == FATE_OK ? attended : fate, error);
	free(lanes);
	return fate;
}
