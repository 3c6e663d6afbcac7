#include "kafka_support.h"

#include "core/clock.h"
#include "core/uuid.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct property test_properties[3] = {
	{ "bootstrap.servers", NULL },
	{ "session.timeout.ms", "3000" },
	{ "max.poll.interval.ms", "10000" },
};

const char *test_broker(void)
{
	const char *broker = getenv("FERMATA_TEST_KAFKA");

	if (!broker || !*broker) {
		puts("skipped: FERMATA_TEST_KAFKA does not say where a broker is (scripts/kafka start DIR)");
		return NULL;
	}
	test_properties[0].value = broker;
	return broker;
}

void test_assert_ok(enum fate fate, const struct error *error, const char *call, const char *file, int line)
{
	if (fate == FATE_OK)
		return;
	print_error("%s: fate %d, code %s (%s): %s\n", call, (int)fate, error_code_name(error->code),
	            error->native, error->message);
	_assert_true(0, call, file, line);
}

char *test_name(char name[64], const char *stem)
{
	struct error error;
	struct uuid uuid;
	char text[UUID_TEXT_LEN + 1];

	assert_ok(uuid_make_v7(&uuid, &error));
	uuid_format(&uuid, text);
	snprintf(name, 64, "t-%.20s-%s", stem, text);
	return name;
}

void test_make_topic(const char *name, int32_t partitions)
{
	struct property config[] = { { "message.timestamp.type", "LogAppendTime" },
		                         { "max.message.bytes", "16777216" } };
	struct topic_want want = { name, partitions, config, 2 };
	enum topic_result result;
	char message[1][256];
	struct error error;

	assert_ok(topics_create(test_properties, 1, &want, 1, -1, PATIENCE_MS, &result, message, &error));
	assert_int_equal(result, TOPIC_CREATED);
}

struct producer *test_producer(const char *transactional_id)
{
	struct producer_settings settings = { .properties = test_properties,
		                                  .properties_len = 1,
		                                  .client_id = "test",
		                                  .transactional_id = transactional_id };
	struct producer *producer;
	struct error error;

	assert_ok(producer_open(&producer, &settings, &error));
	return producer;
}

void test_write(struct producer *producer, const char *topic, int32_t partition, int first, int count,
                size_t value_len)
{
	char *value = calloc(1, value_len + 16);
	struct error error;

	memset(value, '.', value_len);
	for (int i = first; i < first + count; i++) {
		char key[16];
		char head[16];
		size_t head_len = (size_t)snprintf(head, sizeof(head), "v%d", i);
		struct outgoing outgoing = { .topic = topic, .partition = partition, .timestamp_us = TIME_NONE };
		enum fate fate;

		snprintf(key, sizeof(key), "k%d", i);
		memcpy(value, head, head_len);
		outgoing.key = view_of(key);
		outgoing.value = (struct view){ (uint8_t *)value, value_len > head_len ? value_len : head_len };
		while ((fate = producer_send(producer, &outgoing, &error)) == FATE_RETRY)
			producer_poll(producer, 10);
		assert_ok(fate);
	}
	free(value);
}

struct reader *test_reader(const char *group, const char *topic)
{
	struct reader_settings settings = { .properties = test_properties,
		                                .properties_len = TEST_PROPERTIES_LEN,
		                                .client_id = "test",
		                                .group = group,
		                                .topics = &topic,
		                                .topics_len = 1 };
	struct reader *reader;
	struct error error;

	assert_ok(reader_open(&reader, &settings, &error));
	return reader;
}

void test_await(struct reader *reader, enum reader_event event, struct record *ret_record)
{
	int64_t until = clock_mono_ms() + PATIENCE_MS;
	enum reader_event got;
	struct error error;

	do {
		enum fate fate = reader_poll(reader, 500, &got, ret_record, &error);

		assert_true(clock_mono_ms() < until);
		if (fate == FATE_RETRY) /* may mend; once an incident */
			print_message("again: %s\n", error.message);
		else
			assert_ok(fate);
		if (got == READER_RECORD && got != event)
			record_done(ret_record);
	} while (got != event);
}

int test_drain(struct reader *reader, int count, bool until_end, int64_t *ret_last)
{
	int64_t until = clock_mono_ms() + PATIENCE_MS;
	struct record record;
	struct error error;
	int records = 0;

	while (records < count || until_end) {
		enum reader_event event;

		assert_true(clock_mono_ms() < until);
		assert_ok(reader_poll(reader, 500, &event, &record, &error));
		if (event == READER_RECORD) {
			*ret_last = record.at.offset;
			records++;
			record_done(&record);
		} else if (event == READER_END) {
			*ret_last = record.at.offset;
			if (until_end)
				return records;
		} else {
			assert_int_equal(event, READER_NOTHING);
		}
	}
	return records;
}
