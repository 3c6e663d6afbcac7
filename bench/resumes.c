/* resumes.c - reading topics as an executor would: resumes, each once, and the plain consumption of a topic. */
#include "bench/run_inner.h"

#include <stdlib.h>
#include <string.h>

#define POLL_MS      50
#define ASK_MS       10000
#define LOOK_MS      2
#define TELL_MASK    255
#define CONSUME_MASK 4095

/* ---- readers ---- */

static enum fate start_reader(struct reader *reader, const char *topic, struct error *error)
{
	int32_t count = 0;
	struct partition_at *parts;
	enum fate fate = reader_partitions(reader, topic, ASK_MS, &count, error);

	if (fate != FATE_OK)
		return fate;
	parts = calloc((size_t)count + 1, sizeof(*parts));
	if (parts == NULL)
		return error_set(error, FATE_FATAL, ERR_MEMORY, "no memory for a reader");
	for (int32_t i = 0; i < count; i++)
		parts[i] = (struct partition_at){ topic, i, READER_BEGINNING };
	fate = reader_start(reader, parts, (size_t)count, error);
	free(parts);
	return fate;
}

static enum fate open_reader(const struct run *run, bool uncommitted, struct reader **ret_reader,
                             struct error *error)
{
	struct reader_settings settings = { .client_id = "fermata-bench",
		                                .read_uncommitted = uncommitted,
		                                .record_bytes = 2 * BENCH_SIZE_MAX };

	settings.properties = config_kafka(run->place->config, KAFKA_CONSUMER, &settings.properties_len);
	return reader_open(ret_reader, &settings, error);
}

enum fate run_reader(const struct run *run, const char *topic, struct reader **ret_reader,
                     struct error *error)
{
	enum fate fate = open_reader(run, false, ret_reader, error);

	return fate == FATE_OK ? start_reader(*ret_reader, topic, error) : fate;
}

enum fate run_asker(const struct run *run, struct reader **ret_reader, struct error *error)
{
	return open_reader(run, true, ret_reader, error);
}

/* ---- resumes ---- */

/* Whose is it? One that is nobody's, or comes again, is a fault of the product. */
static enum fate know_resume(struct run *run, const struct record *record, uint32_t *ret_number,
                             struct error *error)
{
	if (!session_number(run->writer, record->key, ret_number) || *ret_number >= run->made)
		return error_set(error, FATE_FATAL, ERR_BUG,
		                 "a resume came that no session of this run is waiting for");
	if (run->resumed[*ret_number]++ > 0)
		return error_set(error, FATE_FATAL, ERR_BUG, "the resume of session %u came twice", *ret_number);
	return FATE_OK;
}

enum fate run_poll_resume(struct run *run, int timeout_ms, take_resume *take, void *context,
                          uint32_t *ret_seen, struct error *error)
{
	struct record record;
	enum reader_event event;
	uint32_t number;
	enum fate fate = reader_poll(run->resumes, timeout_ms, &event, &record, error);

	*ret_seen = 0;
	if (fate == FATE_RETRY) /* brokers that are away for a moment */
		return run_pause(run, timeout_ms, error);
	if (fate != FATE_OK || event != READER_RECORD)
		return fate;
	fate = know_resume(run, &record, &number, error);
	if (fate == FATE_OK && take != NULL)
		fate = take(context, &record, number, error);
	record_done(&record);
	*ret_seen = 1;
	return fate;
}

enum fate run_read_resumes(struct run *run, uint32_t count, take_resume *take, void *context,
                           struct error *error)
{
	uint32_t seen = 0, came;
	enum fate fate = FATE_OK;

	while (fate == FATE_OK && seen < count) {
		fate = run_poll_resume(run, POLL_MS, take, context, &came, error);
		seen += came;
		if (came > 0 && (seen & TELL_MASK) == 0)
			run_progress(run, "resumes come", seen, count);
		if (fate == FATE_OK)
			fate = run_goes_on(run, error);
	}
	return fate;
}

/* ---- when they begin ---- */

/* The ends of all partitions, of what is not committed too, put together. */
static enum fate sum_ends(struct run *run, int32_t partitions, int64_t *ret_sum, struct error *error)
{
	int64_t low, end;
	enum fate fate = FATE_OK;

	*ret_sum = 0;
	for (int32_t i = 0; i < partitions && fate == FATE_OK; i++) {
		fate = reader_range(run->ends, run_topic(run, PARAM_TOPICS_RESUMES), i, ASK_MS, &low, &end, error);
		*ret_sum += end;
	}
	return fate;
}

/* The first record of the first transaction is there long before any can be read. */
static enum fate await_first(struct run *run, int32_t partitions, int64_t before, int64_t *ret_us,
                             struct error *error)
{
	int64_t sum = before;
	enum fate fate = FATE_OK;

	while (fate == FATE_OK && sum <= before) {
		fate = run_pause(run, LOOK_MS, error);
		if (fate == FATE_OK)
			fate = sum_ends(run, partitions, &sum, error);
	}
	*ret_us = now_us();
	return fate;
}

enum fate run_time_resumes(struct run *run, uint32_t count, take_resume *take, void *context,
                           struct timing *ret_timing, struct error *error)
{
	int32_t partitions = 0;
	int64_t before = 0;
	enum fate fate =
		reader_partitions(run->ends, run_topic(run, PARAM_TOPICS_RESUMES), ASK_MS, &partitions, error);

	if (fate == FATE_OK)
		fate = sum_ends(run, partitions, &before, error);
	if (fate == FATE_OK)
		fate = run_start_worker(run, NULL, error);
	if (fate == FATE_OK)
		fate = await_first(run, partitions, before, &ret_timing->began_us, error);
	if (fate == FATE_OK)
		fate = run_read_resumes(run, count, take, context, error);
	ret_timing->ended_us = now_us();
	ret_timing->count = count;
	return fate;
}

/* ---- a whole topic ---- */

enum fate limit_consume(struct run *run, struct timing *ret_timing, struct error *error)
{
	struct reader *reader = NULL;
	struct record record;
	enum reader_event event;
	enum fate fate = run_reader(run, run_topic(run, PARAM_TOPICS_SUSPENDS), &reader, error);

	*ret_timing = (struct timing){ .count = 0 };
	run_progress(run, "reading the suspend events", 0, 0);
	while (fate == FATE_OK && ret_timing->count < (int64_t)run->made) {
		fate = reader_poll(reader, POLL_MS, &event, &record, error);
		if (fate == FATE_RETRY)
			fate = FATE_OK;
		else if (fate == FATE_OK && event == READER_RECORD) {
			ret_timing->began_us = ret_timing->count++ == 0 ? now_us() : ret_timing->began_us;
			record_done(&record);
			if ((ret_timing->count & CONSUME_MASK) == 0)
				run_progress(run, "reading the suspend events", ret_timing->count, run->made);
		}
		if (fate == FATE_OK)
			fate = run_goes_on(run, error);
	}
	ret_timing->ended_us = now_us();
	reader_close(reader, 2000);
	return fate;
}
