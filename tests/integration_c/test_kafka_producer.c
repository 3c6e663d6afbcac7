// links: core consumer producer
/* Writing: where a key goes, what is too large, what nobody can write; transactions, fencing and the ends that
 * readers of either isolation see; topics. */
#include "kafka_support.h"

#include "core/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct fixture {
	char topic[64];
	char id[64];
	struct producer *producer; /* transactional, initialised */
	struct reader *reader;     /* read_committed */
};

static struct producer *relay(const char *id)
{
	struct producer *producer = test_producer(id);
	struct error error;

	assert_ok(producer_init_transactions(producer, PATIENCE_MS, &error));
	return producer;
}

static int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	struct error error;

	test_make_topic(test_name(fixture->topic, "producer"), 3);
	fixture->producer = relay(test_name(fixture->id, "relay"));
	assert_ok(producer_warm(fixture->producer, fixture->topic, PATIENCE_MS, NULL, &error));
	fixture->reader = test_reader(NULL, NULL);
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	producer_close(fixture->producer);
	reader_close(fixture->reader, 5000);
	free(fixture);
	return 0;
}

static void start(struct fixture *fixture, int32_t partition)
{
	struct partition_at part = { fixture->topic, partition, READER_BEGINNING };
	struct error error;

	assert_ok(reader_start(fixture->reader, &part, 1, &error));
}

/* ---- plain ---- */

static void keys_go_where_kafkas_own_clients_send_them(void **state)
{
	struct fixture *fixture = *state;
	struct partition_at parts[3];
	struct producer *producer = test_producer(NULL);
	struct error error;
	int found = 0;

	for (int i = 0; i < 300; i++) {
		char key[32];
		struct outgoing outgoing = { .topic = fixture->topic,
			                         .partition = PARTITION_BY_KEY,
			                         .value = VIEW_LITERAL("x"),
			                         .timestamp_us = TIME_NONE };

		snprintf(key, sizeof(key), "%.*s%d", i % 7, "session", i);
		outgoing.key = i == 0 ? VIEW_LITERAL("") : view_of(key);
		assert_ok(producer_send(producer, &outgoing, &error));
	}
	assert_ok(producer_wait(producer, PATIENCE_MS, &error));
	for (int32_t p = 0; p < 3; p++)
		parts[p] = (struct partition_at){ fixture->topic, p, READER_BEGINNING };
	assert_ok(reader_start(fixture->reader, parts, 3, &error));
	for (; found < 300; found++) {
		struct record record;

		test_await(fixture->reader, READER_RECORD, &record);
		assert_int_equal(record.at.partition, kafka_partition(record.key, 3));
		record_done(&record);
	}
	producer_close(producer);
}

struct seen {
	int good;
	int bad;
	int64_t last_offset;
	struct error error;
	void *tag;
};

static void on_report(void *context, const struct outgoing *sent, int64_t offset, const struct error *error)
{
	struct seen *seen = context;

	seen->tag = sent->tag;
	if (error) {
		seen->bad++;
		seen->error = *error;
	} else {
		seen->good++;
		seen->last_offset = offset;
	}
}

static void reports_carry_offset_and_tag(void **state)
{
	struct fixture *fixture = *state;
	struct seen seen = { 0 };
	struct producer_settings settings = {
		.properties = test_properties, .properties_len = 1, .report = on_report, .report_context = &seen
	};
	struct outgoing outgoing = { .topic = fixture->topic,
		                         .partition = 1,
		                         .value = VIEW_LITERAL("x"),
		                         .timestamp_us = TIME_NONE,
		                         .tag = &outgoing };
	struct producer *producer;
	struct error error;

	assert_ok(producer_open(&producer, &settings, &error));
	for (int i = 0; i < 3; i++)
		assert_ok(producer_send(producer, &outgoing, &error));
	assert_ok(producer_wait(producer, PATIENCE_MS, &error));
	assert_int_equal(seen.good, 3);
	assert_int_equal(seen.last_offset, 2);
	assert_ptr_equal(seen.tag, &outgoing);
	producer_close(producer);
}

static void what_is_too_large_is_told_apart(void **state)
{
	struct fixture *fixture = *state;
	struct property config[] = { { "max.message.bytes", "20000" } };
	struct seen seen = { 0 };
	struct producer_settings settings = { .properties = test_properties,
		                                  .properties_len = 1,
		                                  .message_bytes = 100000,
		                                  .report = on_report,
		                                  .report_context = &seen };
	char small[64];
	struct topic_want want = { test_name(small, "small"), 1, config, 1 };
	enum topic_result result;
	char message[1][256];
	uint8_t *noise = malloc(100001);
	struct outgoing outgoing = { .topic = small, .timestamp_us = TIME_NONE, .value = { noise, 100001 } };
	struct producer *producer;
	struct error error;

	(void)fixture;
	for (size_t i = 0; i < 100001; i++)
		noise[i] = (uint8_t)rand();
	assert_ok(topics_create(test_properties, 1, &want, 1, 1, PATIENCE_MS, &result, message, &error));
	assert_ok(producer_open(&producer, &settings, &error));
	assert_int_equal(producer_send(producer, &outgoing, &error), FATE_REJECT);
	assert_int_equal(error.code, ERR_TOO_LARGE);
	outgoing.value.len = 50000;
	assert_ok(producer_send(producer, &outgoing, &error));
	assert_int_equal(producer_wait(producer, PATIENCE_MS, &error), FATE_REJECT);
	assert_int_equal(error.code, ERR_TOO_LARGE);
	assert_int_equal(seen.bad, 1);
	assert_int_equal(seen.error.code, ERR_TOO_LARGE);
	/* one that failed does not spoil the next wait */
	outgoing.value.len = 10000;
	assert_ok(producer_send(producer, &outgoing, &error));
	assert_ok(producer_wait(producer, PATIENCE_MS, &error));
	producer_close(producer);
	free(noise);
}

static void a_full_queue_asks_for_patience(void **state)
{
	struct fixture *fixture = *state;
	struct property nobody[] = { { "bootstrap.servers", "127.0.0.1:1" } };
	struct producer_settings settings = {
		.properties = nobody, .properties_len = 1, .message_bytes = 100000, .queue_bytes = 200000
	};
	static uint8_t bytes[50000];
	struct outgoing outgoing = { .topic = fixture->topic,
		                         .value = { bytes, 50000 },
		                         .timestamp_us = TIME_NONE };
	int64_t begun = clock_mono_ms();
	struct producer *producer;
	struct error error;
	int taken = 0;

	assert_ok(producer_open(&producer, &settings, &error));
	while (producer_send(producer, &outgoing, &error) == FATE_OK)
		taken++;
	assert_int_equal(error.fate, FATE_RETRY);
	assert_in_range(taken, 3, 5);
	assert_int_equal(producer_wait(producer, 300, &error), FATE_RETRY);
	assert_int_equal(error.code, ERR_SERVICE);
	assert_non_null(strstr(error.message, "127.0.0.1:1"));
	producer_close(producer);
	assert_true(clock_mono_ms() - begun < 4000);
}

static void a_missing_topic_is_a_clear_answer(void **state)
{
	struct fixture *fixture = *state;
	struct error error;
	int32_t count = 0;

	assert_ok(producer_warm(fixture->producer, fixture->topic, PATIENCE_MS, &count, &error));
	assert_int_equal(count, 3);
	assert_int_equal(producer_warm(fixture->producer, "no-such-topic", PATIENCE_MS, NULL, &error),
	                 FATE_REJECT);
	assert_non_null(strstr(error.message, "no-such-topic"));
	assert_non_null(strstr(error.message, "fermata topics create"));
}

/* ---- transactions ---- */

static void one_transaction(struct fixture *fixture, int first, int count)
{
	struct error error;

	assert_ok(producer_begin(fixture->producer, &error));
	test_write(fixture->producer, fixture->topic, 0, first, count, 0);
	assert_ok(producer_commit(fixture->producer, &error));
}

static void range_of(struct reader *reader, const char *topic, int64_t *ret_end)
{
	struct error error;
	int64_t low;

	assert_ok(reader_range(reader, topic, 0, PATIENCE_MS, &low, ret_end, &error));
	assert_int_equal(low, 0);
}

static struct reader *uncommitted_reader(void)
{
	struct reader_settings settings = { .properties = test_properties,
		                                .properties_len = 1,
		                                .read_uncommitted = true };
	struct reader *reader;
	struct error error;

	assert_ok(reader_open(&reader, &settings, &error));
	return reader;
}

/* The two ends, and the position past the commit marker, which never comes as a record. */
static void ends_differ_while_a_transaction_is_open(void **state)
{
	struct fixture *fixture = *state;
	struct reader *uncommitted = uncommitted_reader();
	struct record record;
	struct error error;
	int64_t stable;
	int64_t high;
	int64_t last;

	one_transaction(fixture, 0, 5);
	start(fixture, 0);
	assert_int_equal(test_drain(fixture->reader, 100, true, &last), 5);
	assert_int_equal(last, 6); /* 5 records and the marker */
	assert_ok(producer_begin(fixture->producer, &error));
	test_write(fixture->producer, fixture->topic, 0, 5, 3, 0);
	for (high = 0; high < 9;) {
		producer_poll(fixture->producer, 10);
		range_of(uncommitted, fixture->topic, &high);
	}
	range_of(fixture->reader, fixture->topic, &stable);
	assert_int_equal(high, 9);
	assert_int_equal(stable, 6);
	for (int i = 0; i < 5; i++) {
		enum reader_event event;

		assert_ok(reader_poll(fixture->reader, 50, &event, &record, &error));
		assert_int_not_equal(event, READER_RECORD);
	}
	assert_ok(producer_commit(fixture->producer, &error));
	assert_int_equal(test_drain(fixture->reader, 3, false, &last), 3);
	assert_int_equal(last, 8);
	test_await(fixture->reader, READER_END, &record);
	assert_int_equal(record.at.offset, 10);
	reader_close(uncommitted, 5000);
}

static void what_was_left_open_is_aborted_by_the_next(void **state)
{
	struct fixture *fixture = *state;
	struct record record;
	struct error error;
	int64_t last;

	one_transaction(fixture, 0, 2);
	assert_ok(producer_begin(fixture->producer, &error));
	test_write(fixture->producer, fixture->topic, 0, 2, 2, 0);
	producer_poll(fixture->producer, 300);
	producer_close(fixture->producer);
	fixture->producer = relay(fixture->id);
	one_transaction(fixture, 4, 1);
	start(fixture, 0);
	assert_int_equal(test_drain(fixture->reader, 2, false, &last), 2);
	test_await(fixture->reader, READER_RECORD, &record);
	assert_true(view_equal_text(record.key, "k4"));
	record_done(&record);
}

/* librdkafka ended the process when the partitions of a transaction were still to be announced. */
static void one_may_be_closed_right_after_its_first_record(void **state)
{
	struct fixture *fixture = *state;
	struct error error;

	for (int i = 0; i < 60; i++) {
		char id[64];
		struct producer *producer = relay(test_name(id, "closed"));

		assert_ok(producer_warm(producer, fixture->topic, PATIENCE_MS, NULL, &error));
		assert_ok(producer_begin(producer, &error));
		test_write(producer, fixture->topic, i % 3, 0, 1, 0);
		producer_close(producer);
	}
}

static void the_older_of_two_is_fenced(void **state)
{
	struct fixture *fixture = *state;
	struct producer *older = fixture->producer;
	struct error error;
	int64_t begun;
	int64_t last;

	assert_ok(producer_begin(older, &error));
	test_write(older, fixture->topic, 0, 0, 2, 0);
	producer_poll(older, 300);
	fixture->producer = relay(fixture->id);
	one_transaction(fixture, 2, 3);
	assert_int_not_equal(producer_commit(older, &error), FATE_OK);
	assert_int_equal(error.code, ERR_FENCED);
	assert_int_not_equal(producer_begin(older, &error), FATE_OK);
	assert_int_equal(error.code, ERR_FENCED);
	assert_int_not_equal(producer_commit(older, &error), FATE_OK);
	begun = clock_mono_ms();
	producer_close(older);
	assert_true(clock_mono_ms() - begun < 2500);
	start(fixture, 0);
	assert_int_equal(test_drain(fixture->reader, 100, true, &last), 3);
}

static void a_record_too_large_fails_its_transaction(void **state)
{
	struct fixture *fixture = *state;
	struct property config[] = { { "max.message.bytes", "20000" } };
	char small[64];
	struct topic_want want = { test_name(small, "small"), 1, config, 1 };
	enum topic_result result;
	char message[1][256];
	uint8_t *noise = malloc(50000);
	struct outgoing outgoing = { .topic = small, .timestamp_us = TIME_NONE, .value = { noise, 50000 } };
	struct error error;
	int64_t last;

	for (size_t i = 0; i < 50000; i++)
		noise[i] = (uint8_t)rand();
	assert_ok(topics_create(test_properties, 1, &want, 1, 1, PATIENCE_MS, &result, message, &error));
	assert_ok(producer_begin(fixture->producer, &error));
	test_write(fixture->producer, fixture->topic, 0, 0, 2, 0);
	assert_ok(producer_send(fixture->producer, &outgoing, &error));
	assert_int_equal(producer_commit(fixture->producer, &error), FATE_REJECT);
	assert_int_equal(error.code, ERR_TOO_LARGE);
	producer_close(fixture->producer);
	fixture->producer = relay(fixture->id);
	one_transaction(fixture, 2, 1);
	start(fixture, 0);
	assert_int_equal(test_drain(fixture->reader, 100, true, &last), 1);
	free(noise);
}

#define LONE   50
#define ROUNDS 4 /* others may be at work on the machine, not all the time */

/* The mean of so many, each a while after the one before, in us. */
static int64_t lone_transactions(struct fixture *fixture)
{
	int64_t lone_us = 0;

	for (int i = 0; i < LONE; i++) {
		struct timespec other_work = { 0, 2000000 };

		nanosleep(&other_work, NULL);
		int64_t begun = clock_real_us();
		one_transaction(fixture, i, 1);
		lone_us += clock_real_us() - begun;
	}
	return lone_us / LONE;
}

static void a_lone_transaction_is_quick(void **state)
{
	struct fixture *fixture = *state;
	int64_t lone_us = INT64_MAX;
	int64_t begun;

	one_transaction(fixture, 0, 1);
	for (int round = 0; round < ROUNDS && lone_us >= 40000; round++)
		lone_us = lone_transactions(fixture);
	begun = clock_real_us();
	for (int i = 0; i < 10; i++) {
		struct timespec other_work = { 0, 1000000 };
		struct error error;

		nanosleep(&other_work, NULL);
		assert_ok(producer_begin(fixture->producer, &error));
		test_write(fixture->producer, fixture->topic, 0, 0, 500, 2000);
		assert_ok(producer_commit(fixture->producer, &error));
	}
	print_message("lone transaction: mean %lld us; 500 records of 2 kB: mean %lld us\n", (long long)lone_us,
	              (long long)((clock_real_us() - begun) / 10));
	assert_true(lone_us < 40000);
}

static void without_a_broker_init_gives_up_in_time(void **state)
{
	struct property nobody[] = { { "bootstrap.servers", "127.0.0.1:1" } };
	struct producer_settings settings = { .properties = nobody,
		                                  .properties_len = 1,
		                                  .transactional_id = "x" };
	int64_t begun = clock_mono_ms();
	struct producer *producer;
	struct error error;

	(void)state;
	assert_ok(producer_open(&producer, &settings, &error));
	assert_int_equal(producer_init_transactions(producer, 1500, &error), FATE_RETRY);
	assert_in_range(clock_mono_ms() - begun, 1400, 4000);
	assert_int_equal(producer_init_transactions(producer, 100, &error), FATE_RETRY);
	producer_close(producer);
	assert_true(clock_mono_ms() - begun < 6000);
}

/* ---- topics ---- */

static void topics_are_made_once_and_left_alone(void **state)
{
	struct property config[] = { { "cleanup.policy", "compact" },
		                         { "message.timestamp.type", "LogAppendTime" } };
	struct property nonsense[] = { { "cleanup.policy", "whatever" } };
	struct property other[] = { { "cleanup.policy", "delete" } };
	char names[2][64];
	struct topic_want first[] = { { test_name(names[0], "topics"), 3, config, 2 },
		                          { test_name(names[1], "topics"), 1, nonsense, 1 } };
	struct topic_want again[] = { { names[0], 7, other, 1 } };
	enum topic_result results[2];
	char messages[2][256];
	char value[64];
	struct error error;

	(void)state;
	assert_ok(topics_create(test_properties, 1, first, 2, -1, PATIENCE_MS, results, messages, &error));
	assert_int_equal(results[0], TOPIC_CREATED);
	assert_int_equal(results[1], TOPIC_FAILED);
	assert_non_null(strstr(messages[1], "whatever"));
	assert_ok(topics_create(test_properties, 1, again, 1, -1, PATIENCE_MS, results, messages, &error));
	assert_int_equal(results[0], TOPIC_EXISTS);
	assert_ok(topics_setting(test_properties, 1, names[0], "cleanup.policy", PATIENCE_MS, value,
	                         sizeof(value), &error));
	assert_string_equal(value, "compact");
	assert_ok(topics_setting(test_properties, 1, names[0], "message.timestamp.type", PATIENCE_MS, value,
	                         sizeof(value), &error));
	assert_string_equal(value, "LogAppendTime");
	assert_int_equal(topics_setting(test_properties, 1, names[1], "cleanup.policy", PATIENCE_MS, value,
	                                sizeof(value), &error),
	                 FATE_REJECT);
	assert_int_equal(topics_setting(test_properties, 1, names[0], "no.such.setting", PATIENCE_MS, value,
	                                sizeof(value), &error),
	                 FATE_REJECT);
}

/* A topic that was made just now has no leader yet for some who ask, and what is acknowledged may not be below the high
 * watermark yet. */
static void await_end(struct reader *reader, const char *topic, int32_t partition, int64_t wanted)
{
	int64_t low, end = -1, until = clock_mono_ms() + PATIENCE_MS;
	struct error error;
	enum fate fate;

	do
		fate = reader_range(reader, topic, partition, PATIENCE_MS, &low, &end, &error);
	while ((fate == FATE_RETRY || (fate == FATE_OK && end < wanted)) && clock_mono_ms() < until);
	assert_ok(fate);
	assert_int_equal(end, wanted);
}

static void records_are_deleted_below_a_place(void **state)
{
	const int64_t below[] = { 4, 0 };
	struct producer *producer = test_producer(NULL);
	int64_t low, end;
	struct error error;
	char name[64];

	(void)state;
	test_make_topic(test_name(name, "trim"), 2);
	test_write(producer, name, 0, 0, 10, 0);
	test_write(producer, name, 1, 0, 3, 0);
	struct reader *reader = test_reader(NULL, name);
	await_end(reader, name, 0, 10);
	await_end(reader, name, 1, 3);
	assert_ok(topics_trim(test_properties, 1, name, below, 2, PATIENCE_MS, &error));
	assert_ok(reader_range(reader, name, 0, PATIENCE_MS, &low, &end, &error));
	assert_int_equal(low, 4);
	assert_int_equal(end, 10);
	assert_ok(reader_range(reader, name, 1, PATIENCE_MS, &low, &end, &error));
	assert_int_equal(low, 0);
	assert_int_equal(end, 3);
	/* past the end, and of what is not there */
	assert_int_not_equal(
		topics_trim(test_properties, 1, name, (const int64_t[]){ 99, 0 }, 2, PATIENCE_MS, &error), FATE_OK);
	assert_non_null(strstr(error.message, name));
	assert_int_not_equal(topics_trim(test_properties, 1, "no-such-topic", below, 1, 2000, &error), FATE_OK);
	reader_close(reader, 1000);
	producer_close(producer);
}

static void no_broker_is_a_retry_that_says_where(void **state)
{
	struct property nobody[] = { { "bootstrap.servers", "127.0.0.1:1" } };
	struct topic_want want = { "any", 1, NULL, 0 };
	enum topic_result result;
	char message[1][256];
	struct error error;

	(void)state;
	assert_int_equal(topics_create(nobody, 1, &want, 1, -1, 1000, &result, message, &error), FATE_RETRY);
	assert_int_equal(error.code, ERR_SERVICE);
	assert_non_null(strstr(error.message, "127.0.0.1:1"));
}

int main(void)
{
#define with_broker(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		with_broker(keys_go_where_kafkas_own_clients_send_them),
		with_broker(reports_carry_offset_and_tag),
		with_broker(what_is_too_large_is_told_apart),
		with_broker(a_full_queue_asks_for_patience),
		with_broker(a_missing_topic_is_a_clear_answer),
		with_broker(ends_differ_while_a_transaction_is_open),
		with_broker(what_was_left_open_is_aborted_by_the_next),
		with_broker(one_may_be_closed_right_after_its_first_record),
		with_broker(the_older_of_two_is_fenced),
		with_broker(a_record_too_large_fails_its_transaction),
		with_broker(a_lone_transaction_is_quick),
		cmocka_unit_test(without_a_broker_init_gives_up_in_time),
		cmocka_unit_test(topics_are_made_once_and_left_alone),
		cmocka_unit_test(records_are_deleted_below_a_place),
		cmocka_unit_test(no_broker_is_a_retry_that_says_where),
	};

	return test_broker() ? cmocka_run_group_tests(tests, NULL, NULL) : SKIPPED;
}
