/* resumes.c - reading topics as an executor would: resumes, each once, and the plain consumption of a topic. */
#include "bench/run_inner.h"

#include <stdlib.h>
#include <string.h>

#define POLL_MS   50
#define HEAD_US   20000 /* what comes so soon after the first one only says that it has begun */
#define TELL_MASK 255

/* ---- readers ---- */

static enum fate start_reader(const struct run *run, struct reader *reader, const char *topic,
                              struct error *error)
{
	int32_t count = 0;
	struct partition_at *parts;
	enum fate fate = reader_partitions(reader, topic, 10000, &count, error);

	(void)run;
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

enum fate run_reader(const struct run *run, const char *topic, struct reader **ret_reader,
                     struct error *error)
{
	struct reader_settings settings = { .client_id = "fermata-bench", .record_bytes = 2 * BENCH_SIZE_MAX };
	enum fate fate;

	settings.properties = config_kafka(run->place->config, KAFKA_CONSUMER, &settings.properties_len);
	fate = reader_open(ret_reader, &settings, error);
	return fate == FATE_OK ? start_reader(run, *ret_reader, topic, error) : fate;
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
                           struct timing *ret_timing, struct error *error)
{
	struct timing timing = { .count = 0 };
	uint32_t seen = 0, came, head = 0;
	enum fate fate = FATE_OK;
	int64_t first_us = 0;

	while (fate == FATE_OK && seen < count) {
		fate = run_poll_resume(run, POLL_MS, take, context, &came, error);
		seen += came;
		if (came > 0 && first_us == 0)
			first_us = timing.began_us = now_us();
		if (came > 0 && head == 0 && now_us() - first_us > HEAD_US) {
			timing.began_us = now_us();
			head = seen;
		}
		if (came > 0 && (seen & TELL_MASK) == 0)
			run_progress(run, "resumes come", seen, count);
		if (fate == FATE_OK)
			fate = run_goes_on(run, error);
	}
	timing.ended_us = now_us();
	timing.count = seen - head;
	*ret_timing = timing;
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
		}
		if (fate == FATE_OK)
			fate = run_goes_on(run, error);
	}
	ret_timing->ended_us = now_us();
	reader_close(reader, 2000);
	return fate;
}
