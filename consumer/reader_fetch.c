#include "consumer/reader_inner.h"

#include "core/kafka_glue.h"
#include "core/log.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define WAKE_TIMEOUT_MS 100

struct fetched *reader_find(struct reader *reader, const char *topic, int32_t partition)
{
	for (size_t n = 0; n < reader->fetched_len; n++) {
		size_t i = (reader->last + n) % reader->fetched_len;
		struct fetched *fetched = &reader->fetched[i];

		if (fetched->partition == partition && !strcmp(fetched->topic, topic)) {
			reader->last = i;
			return fetched;
		}
	}
	return NULL;
}

void reader_forget(struct reader *reader)
{
	free(reader->fetched);
	reader->fetched = NULL;
	reader->fetched_len = 0;
	reader->last = 0;
	reader->restart_at_ms = 0;
	reader->bytes_since_empty = 0;
}

/* ---- start ---- */

/* In a group only what the group gave us may be read: a caller that comes too late is told so. */
static bool is_assigned(const struct reader *reader, const struct partition_at *part)
{
	for (size_t i = 0; i < reader->assignment_len; i++)
		if (reader->assignment[i].partition == part->partition &&
		    !strcmp(reader->assignment[i].topic, part->topic))
			return true;
	return false;
}

static enum fate check_parts(const struct reader *reader, const struct partition_at *parts, size_t len,
                             struct error *error)
{
	for (size_t i = 0; i < len; i++) {
		if (parts[i].offset < 0 && parts[i].offset != READER_BEGINNING)
			return error_set(error, FATE_FATAL, ERR_BUG, "cannot read %s[%d] from offset %lld",
			                 parts[i].topic, parts[i].partition, (long long)parts[i].offset);
		if (reader->in_group && !is_assigned(reader, &parts[i]))
			return error_set(error, FATE_RETRY, ERR_STALE,
			                 "could not start reading %s[%d]: the group has taken it away", parts[i].topic,
			                 parts[i].partition);
	}
	return FATE_OK;
}

static rd_kafka_topic_partition_list_t *list_of_one(const struct fetched *fetched, int64_t offset)
{
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);

	rd_kafka_topic_partition_list_add(list, fetched->topic, fetched->partition)->offset = offset;
	return list;
}

static enum fate set_paused(struct reader *reader, const struct fetched *fetched, bool paused,
                            struct error *error)
{
	rd_kafka_topic_partition_list_t *list = list_of_one(fetched, RD_KAFKA_OFFSET_INVALID);
	rd_kafka_resp_err_t err =
		paused ? rd_kafka_pause_partitions(reader->rk, list) : rd_kafka_resume_partitions(reader->rk, list);

	if (!err)
		err = list->elems[0].err;
	rd_kafka_topic_partition_list_destroy(list);
	if (err)
		return kafka_error(error, rd_kafka_err2name(err), rd_kafka_err2str(err), "could not %s %s[%d]",
		                   paused ? "pause" : "resume", fetched->topic, fetched->partition);
	return FATE_OK;
}

enum fate reader_refetch(struct reader *reader, struct error *error)
{
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new((int)reader->fetched_len);
	rd_kafka_resp_err_t err;
	enum fate fate = FATE_OK;

	reader->restart_at_ms = 0;
	reader->bytes_since_empty = 0;
	for (size_t i = 0; i < reader->fetched_len; i++) {
		const struct fetched *fetched = &reader->fetched[i];
		int64_t offset = fetched->position;

		if (offset == POSITION_UNKNOWN)
			offset = RD_KAFKA_OFFSET_BEGINNING;
		rd_kafka_topic_partition_list_add(list, fetched->topic, fetched->partition)->offset = offset;
	}
	err = rd_kafka_assign(reader->rk, list);
	rd_kafka_topic_partition_list_destroy(list);
	if (err)
		return kafka_error(error, rd_kafka_err2name(err), rd_kafka_err2str(err), "could not start reading");
	for (size_t i = 0; i < reader->fetched_len && fate == FATE_OK; i++)
		if (reader->fetched[i].paused)
			fate = set_paused(reader, &reader->fetched[i], true, error);
	return fate;
}

/* A pause outlives an assignment inside of librdkafka; a start means: all of them, from here. */
static enum fate lift_pauses(struct reader *reader, struct error *error)
{
	enum fate fate = FATE_OK;

	for (size_t i = 0; i < reader->fetched_len && fate == FATE_OK; i++)
		if (reader->fetched[i].paused) {
			fate = set_paused(reader, &reader->fetched[i], false, error);
			reader->fetched[i].paused = false;
		}
	return fate;
}

enum fate reader_start(struct reader *reader, const struct partition_at *parts, size_t len,
                       struct error *error)
{
	struct fetched *fetched = NULL;
	enum fate fate = check_parts(reader, parts, len, error);

	if (fate == FATE_OK)
		fate = lift_pauses(reader, error);
	if (fate != FATE_OK)
		return fate;
	if (len && !(fetched = calloc(len, sizeof(*fetched))))
		return error_set(error, FATE_RETRY, ERR_MEMORY, "could not start reading: out of memory");
	for (size_t i = 0; i < len; i++) {
		bool beginning = parts[i].offset == READER_BEGINNING;

		fetched[i].topic = reader_intern(reader, parts[i].topic);
		fetched[i].partition = parts[i].partition;
		fetched[i].position = beginning ? POSITION_UNKNOWN : parts[i].offset;
		if (!fetched[i].topic) {
			free(fetched);
			return error_set(error, FATE_RETRY, ERR_MEMORY, "could not start reading: out of memory");
		}
	}
	reader_forget(reader);
	reader->fetched = fetched;
	reader->fetched_len = len;
	return reader_refetch(reader, error);
}

/* ---- pause ---- */

enum fate reader_pause(struct reader *reader, const char *topic, int32_t partition, struct error *error)
{
	struct fetched *fetched = reader_find(reader, topic, partition);
	enum fate fate;

	if (!fetched || fetched->paused)
		return FATE_OK;
	fate = set_paused(reader, fetched, true, error);
	fetched->paused = fate == FATE_OK;
	return fate;
}

enum fate reader_resume(struct reader *reader, const char *topic, int32_t partition, struct error *error)
{
	struct fetched *fetched = reader_find(reader, topic, partition);
	enum fate fate;

	if (!fetched || !fetched->paused)
		return FATE_OK;
	fate = set_paused(reader, fetched, false, error);
	fetched->paused = fate != FATE_OK;
	return fate;
}

/* ---- a queue that was full ---- */

/*
 * librdkafka before 2.2 looks only once a second whether a full queue has room again, so that a backlog was
 * read with one queue a second. Its threads look when something is asked of their broker, too: ask, when
 * what has come since the queue was last empty is enough to have filled it. An idle reader never gets here.
 */
void reader_wake_fetchers(struct reader *reader)
{
	bool may_have_been_full = reader->bytes_since_empty >= reader->queue_bytes;
	rd_kafka_topic_partition_list_t *list;

	reader->bytes_since_empty = 0;
	if (!reader->needs_waking || !may_have_been_full || !reader->fetched_len)
		return;
	list = rd_kafka_topic_partition_list_new((int)reader->fetched_len);
	for (size_t i = 0; i < reader->fetched_len; i++)
		rd_kafka_topic_partition_list_add(list, reader->fetched[i].topic, reader->fetched[i].partition)
			->offset = RD_KAFKA_OFFSET_END;
	(void)rd_kafka_offsets_for_times(reader->rk, list, WAKE_TIMEOUT_MS);
	rd_kafka_topic_partition_list_destroy(list);
}
