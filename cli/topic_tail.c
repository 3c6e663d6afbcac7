#include "cli/topic_tail.h"
#include "cli/connect.h"
#include "cli/signals.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POLL_MS 200
/* "Now" is when the program was started, not when the broker was asked, and clocks differ a little. */
#define FROM_NOW_US 1000000

/* A partition on the way to its end. */
struct part {
	int64_t end; /* as of the start */
	bool done;
};

struct reading {
	const struct topic_tail *tail;
	struct reader *reader;
	struct partition_at *parts;
	struct part *goals; /* beside parts */
	size_t len;
	size_t left; /* parts that are not done */
	bool complained;
	int64_t heard_ms; /* mono: when Kafka last said anything good */
};

/* ---- where to begin and to end ---- */

static enum fate add_part(struct reading *reading, const char *topic, int32_t partition, struct error *error)
{
	struct partition_at *at = &reading->parts[reading->len];
	struct part *goal = &reading->goals[reading->len];
	int64_t since =
		reading->tail->from_now ? reading->tail->cli->started_at - FROM_NOW_US : reading->tail->since;
	int64_t low;
	enum fate fate =
		reader_range(reading->reader, topic, partition, KAFKA_PATIENCE_MS, &low, &goal->end, error);

	if (fate != FATE_OK)
		return fate;
	*at = (struct partition_at){ topic, partition, low };
	if (since > 0)
		fate = reader_offset_at_time(reading->reader, topic, partition, since, KAFKA_PATIENCE_MS, &at->offset,
		                             error);
	goal->done = at->offset >= goal->end;
	reading->left += goal->done ? 0 : 1;
	reading->len++;
	return fate;
}

static enum fate add_topic(struct reading *reading, const char *topic, struct error *error)
{
	int32_t count = 0;
	int64_t until = clock_mono_ms() + NEW_TOPIC_MS;
	enum fate fate = reader_partitions(reading->reader, topic, KAFKA_PATIENCE_MS, &count, error);

	while (fate == FATE_OK && count == 0 && clock_mono_ms() < until) {
		(void)poll(NULL, 0, 100);
		fate = reader_partitions(reading->reader, topic, KAFKA_PATIENCE_MS, &count, error);
	}
	if (fate != FATE_OK)
		return fate;
	if (count == 0)
		return no_such_topic(topic, error);
	size_t room = reading->len + (size_t)count;
	struct partition_at *parts = reallocarray(reading->parts, room, sizeof(*parts));
	if (parts != NULL)
		reading->parts = parts;
	struct part *goals = reallocarray(reading->goals, room, sizeof(*goals));
	if (goals != NULL)
		reading->goals = goals;
	if (parts == NULL || goals == NULL)
		return error_set(error, FATE_FATAL, ERR_MEMORY, "no memory for the partitions of %.100s", topic);
	for (int32_t i = 0; i < count && fate == FATE_OK; i++)
		fate = add_part(reading, topic, i, error);
	return fate;
}

/* ---- on the way ---- */

/* The position of a partition is `next`: is that its end as of the start? */
static void advance(struct reading *reading, const char *topic, int32_t partition, int64_t next)
{
	for (size_t i = 0; i < reading->len; i++) {
		struct part *goal = &reading->goals[i];
		if (reading->parts[i].partition != partition || strcmp(reading->parts[i].topic, topic) != 0)
			continue;
		reading->parts[i].offset = next;
		if (!goal->done && next >= goal->end) {
			goal->done = true;
			reading->left--;
		}
		return;
	}
}

/* What is gone meanwhile (retention) is passed over: from the first record that is still there. */
static enum fate pass_over(struct reading *reading, const struct record *at, struct error *error)
{
	cli_warn("%s, partition %d: offset %lld is gone, reading on from the first record that is still there",
	         at->at.topic, (int)at->at.partition, (long long)at->at.offset);
	for (size_t i = 0; i < reading->len; i++)
		if (reading->parts[i].partition == at->at.partition && !strcmp(reading->parts[i].topic, at->at.topic))
			reading->parts[i].offset = READER_BEGINNING;
	return reader_start(reading->reader, reading->parts, reading->len, error);
}

/* Brokers away: while following, wait; else only for a while. */
static enum fate brokers_away(struct reading *reading, struct error *error)
{
	if (error->fate == FATE_FATAL)
		return kafka_away(reading->tail->cli, error);
	if (!reading->tail->follow)
		return clock_mono_ms() - reading->heard_ms < KAFKA_PATIENCE_MS
		           ? FATE_OK
		           : kafka_away(reading->tail->cli, error);
	if (!reading->complained)
		cli_warn("%s: waiting for it", error->message);
	reading->complained = true;
	return FATE_OK;
}

static enum fate one_event(struct reading *reading, bool *ret_enough, struct error *error)
{
	enum reader_event event;
	struct record record = { .message = NULL };
	enum fate fate = reader_poll(reading->reader, POLL_MS, &event, &record, error);

	if (fate != FATE_OK)
		return brokers_away(reading, error);
	if (event != READER_NOTHING)
		reading->heard_ms = clock_mono_ms();
	if (event == READER_RECORD) {
		reading->complained = false;
		*ret_enough = !reading->tail->each(reading->tail->context, &record);
		advance(reading, record.at.topic, record.at.partition, record.at.offset + 1);
		record_done(&record);
	} else if (event == READER_END) {
		advance(reading, record.at.topic, record.at.partition, record.at.offset);
	} else if (event == READER_GONE) {
		fate = pass_over(reading, &record, error);
	} else if (event == READER_NOTHING) {
		(void)fflush(stdout);
	}
	return fate;
}

static enum fate read_on(struct reading *reading, struct error *error)
{
	bool enough = false;
	enum fate fate = reader_start(reading->reader, reading->parts, reading->len, error);

	reading->heard_ms = clock_mono_ms();
	while (fate == FATE_OK && !enough && !signals_came() && !ferror(stdout)) {
		if (!reading->tail->follow && reading->left == 0)
			break;
		fate = one_event(reading, &enough, error);
		if (reading->tail->follow)
			(void)fflush(stdout);
	}
	return fate;
}

enum fate topic_tail_read(const struct topic_tail *tail, struct error *error)
{
	struct reading reading = { .tail = tail };
	enum fate fate = connect_reader(tail->cli, false, &reading.reader, error);

	if (tail->follow)
		signals_catch();
	for (size_t i = 0; i < tail->topics_len && fate == FATE_OK; i++)
		fate = add_topic(&reading, tail->topics[i], error);
	fate = fate == FATE_OK ? read_on(&reading, error) : kafka_away(tail->cli, error);
	reader_close(reading.reader, 2000);
	free(reading.parts);
	free(reading.goals);
	return fate;
}
