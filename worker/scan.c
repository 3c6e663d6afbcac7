#include "worker/scan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define ASK_TIMEOUT_MS 5000
#define POLL_MS        100
#define STILL_MS       20000 /* no progress for so long: the broker is away */
#define CLOSE_MS       1000
#define PREFETCH       ((size_t)8 << 20)

enum fate scan_open(struct scan *scan, const struct config *config, size_t record_bytes, struct error *error)
{
	struct reader_settings settings = {
		.client_id = "fermata-scan",
		.prefetch_bytes = PREFETCH,
		.record_bytes = record_bytes,
	};
	scan->config = config;
	settings.properties = config_kafka(config, KAFKA_CONSUMER, &settings.properties_len);
	return reader_open(&scan->reader, &settings, error);
}

enum fate scan_add(struct scan *scan, const char *topic, struct error *error)
{
	int32_t count = 0;
	enum fate fate = reader_partitions(scan->reader, topic, ASK_TIMEOUT_MS, &count, error);
	if (fate == FATE_OK && count == 0)
		fate =
			error_set(error, FATE_FATAL, ERR_USAGE,
		              "topic %.100s does not exist: run `fermata topics create`, or correct topics.* in the "
		              "configuration",
		              topic);
	if (fate != FATE_OK)
		return fate;
	struct scan_part *parts = reallocarray(scan->parts, scan->len + (size_t)count, sizeof(*parts));
	if (parts == NULL)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for the partitions of %.100s", topic);
	scan->parts = parts;
	for (int32_t i = 0; i < count && fate == FATE_OK; i++) {
		struct scan_part *part = &parts[scan->len];
		*part = (struct scan_part){ .topic = topic, .partition = i, .first_at = TIME_NONE };
		fate = reader_range(scan->reader, topic, i, ASK_TIMEOUT_MS, &part->low, &part->until, error);
		part->from = part->low;
		if (fate == FATE_OK)
			scan->len++;
	}
	return fate;
}

static struct scan_part *find(struct scan *scan, const struct record *at)
{
	for (size_t i = 0; i < scan->len; i++)
		if (scan->parts[i].partition == at->at.partition && strcmp(scan->parts[i].topic, at->at.topic) == 0)
			return &scan->parts[i];
	return NULL;
}

static enum fate start(struct scan *scan, struct error *error)
{
	struct partition_at *places = calloc(scan->len + 1, sizeof(*places));
	if (places == NULL)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for %zu partitions", scan->len);
	size_t len = 0;
	for (size_t i = 0; i < scan->len; i++)
		if (!scan->parts[i].done)
			places[len++] = (struct partition_at){ scan->parts[i].topic, scan->parts[i].partition,
				                                   scan->parts[i].position };
	enum fate fate = reader_start(scan->reader, places, len, error);
	free(places);
	return fate;
}

/* Its records were deleted while we were on the way: what is still there is read. */
static enum fate pass_over(struct scan *scan, struct scan_part *part, struct error *error)
{
	int64_t end;
	enum fate fate =
		reader_range(scan->reader, part->topic, part->partition, ASK_TIMEOUT_MS, &part->low, &end, error);
	if (fate != FATE_OK)
		return fate;
	if (part->low <= part->position)
		return error_set(error, FATE_RETRY, ERR_SERVICE,
		                 "%.100s [%" PRId32 "]: offset %" PRId64 " is not there", part->topic,
		                 part->partition, part->position);
	part->position = part->low;
	part->done = part->position >= part->until;
	return start(scan, error);
}

static enum fate take_record(struct scan *scan, struct scan_part *part, struct record *record,
                             struct error *error)
{
	enum fate fate = FATE_OK;
	if (part != NULL && !part->done && record->at.offset < part->until) {
		if (part->first_at == TIME_NONE)
			part->first_at = record->at.appended_at;
		record->at.topic = part->topic;
		if (scan->each != NULL)
			fate = scan->each(scan->context, part, record, error);
	}
	if (part != NULL) {
		part->position = record->at.offset + 1;
		part->done = part->done || scan->first_only || part->position >= part->until;
	}
	record_done(record);
	return fate;
}

static enum fate take_event(struct scan *scan, enum reader_event event, struct record *record,
                            struct error *error)
{
	struct scan_part *part = event == READER_NOTHING ? NULL : find(scan, record);
	if (event == READER_RECORD)
		return take_record(scan, part, record, error);
	if (event == READER_GONE && part != NULL && !part->done)
		return pass_over(scan, part, error);
	if (event == READER_END && part != NULL) { /* transactions' markers stand behind the last record */
		part->position = record->at.offset;
		part->done = part->done || part->position >= part->until;
	}
	return FATE_OK;
}

static bool all_done(const struct scan *scan)
{
	for (size_t i = 0; i < scan->len; i++)
		if (!scan->parts[i].done)
			return false;
	return true;
}

static enum fate read_on(struct scan *scan, struct error *error)
{
	int64_t moved_ms = clock_mono_ms();
	while (!all_done(scan)) {
		struct record record = { 0 };
		enum reader_event event;
		enum fate fate = reader_poll(scan->reader, POLL_MS, &event, &record, error);
		if (fate == FATE_OK) {
			if (event != READER_NOTHING)
				moved_ms = clock_mono_ms();
			fate = take_event(scan, event, &record, error);
		} else if (fate == FATE_RETRY && clock_mono_ms() - moved_ms < STILL_MS) {
			fate = FATE_OK; /* it is said once an outage; it may be over soon */
		}
		if (fate == FATE_OK && scan->stop != NULL && scan->stop(scan->context))
			fate = error_set(error, FATE_RETRY, ERR_STALE, "it was asked to stop");
		if (fate == FATE_OK && clock_mono_ms() - moved_ms > STILL_MS)
			fate = error_set(error, FATE_RETRY, ERR_SERVICE, "Kafka does not give what it has: is it away?");
		if (fate != FATE_OK)
			return fate;
	}
	return FATE_OK;
}

enum fate scan_run(struct scan *scan, struct error *error)
{
	for (size_t i = 0; i < scan->len; i++) {
		struct scan_part *part = &scan->parts[i];
		part->position = part->from;
		part->done = part->position >= part->until;
	}
	enum fate fate = start(scan, error);
	if (fate == FATE_OK)
		fate = read_on(scan, error);
	return fate == FATE_OK ? reader_start(scan->reader, NULL, 0, error) : fate;
}

void scan_close(struct scan *scan)
{
	reader_close(scan->reader, CLOSE_MS);
	free(scan->parts);
	*scan = (struct scan){ 0 };
}
