// links: core consumer producer
/* Reading partitions of one's own choosing: starting, seeking, pausing, ends, what is gone. */
#include "kafka_support.h"

#include "core/clock.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct fixture {
	char topic[64];
	struct producer *producer;
	struct reader *reader;
};

static int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	test_make_topic(test_name(fixture->topic, "reader"), 4);
	fixture->producer = test_producer(NULL);
	fixture->reader = test_reader(NULL, NULL);
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	reader_close(fixture->reader, 5000);
	producer_close(fixture->producer);
	free(fixture);
	return 0;
}

static void write_some(struct fixture *fixture, int32_t partition, int first, int count, size_t len)
{
	struct error error;

	test_write(fixture->producer, fixture->topic, partition, first, count, len);
	assert_ok(producer_wait(fixture->producer, PATIENCE_MS, &error));
}

static void start(struct fixture *fixture, int32_t partition, int64_t offset)
{
	struct partition_at part = { fixture->topic, partition, offset };
	struct error error;

	assert_ok(reader_start(fixture->reader, &part, 1, &error));
}

static void records_come_as_they_were_written(void **state)
{
	struct fixture *fixture = *state;
	struct header headers[] = { { "a", VIEW_LITERAL("1") },
		                        { "empty", VIEW_LITERAL("") },
		                        { "null", VIEW_NULL },
		                        { "a", VIEW_LITERAL("2") } };
	struct outgoing cases[] = {
		{ .key = VIEW_LITERAL("key"), .value = VIEW_LITERAL("value"), .headers = headers, .headers_len = 4 },
		{ .key = VIEW_NULL, .value = VIEW_NULL },
		{ .key = VIEW_LITERAL(""), .value = VIEW_LITERAL("") },
		{ .key = VIEW_LITERAL("n\0l"), .value = VIEW_LITERAL("\0") },
	};
	struct arena *arena = arena_new(100000);
	int64_t before = clock_real_us() - 1000;
	struct header *got;
	struct error error;
	size_t got_len;

	for (size_t i = 0; i < 4; i++) {
		cases[i].topic = fixture->topic;
		cases[i].timestamp_us = TIME_NONE;
		assert_ok(producer_send(fixture->producer, &cases[i], &error));
	}
	assert_ok(producer_wait(fixture->producer, PATIENCE_MS, &error));
	start(fixture, 0, READER_BEGINNING);
	for (size_t i = 0; i < 4; i++) {
		struct record record;

		test_await(fixture->reader, READER_RECORD, &record);
		assert_string_equal(record.at.topic, fixture->topic);
		assert_int_equal(record.at.offset, i);
		assert_true(record.at.appended_at >= before && record.at.appended_at <= clock_real_us() + 1000);
		assert_true(view_is_null(record.key) == view_is_null(cases[i].key));
		assert_true(view_is_null(record.value) == view_is_null(cases[i].value));
		assert_true(view_equal(record.key, cases[i].key) || view_is_null(record.key));
		assert_true(view_equal(record.value, cases[i].value) || view_is_null(record.value));
		assert_ok(record_headers(&record, arena, &got, &got_len, &error));
		assert_int_equal(got_len, cases[i].headers_len);
		if (i == 0) {
			assert_true(view_equal_text(record_header(&record, "a"), "2"));
			assert_true(view_is_null(record_header(&record, "b")));
			assert_string_equal(got[0].name, "a");
			assert_true(view_equal_text(got[0].value, "1"));
			assert_true(!view_is_null(got[1].value) && got[1].value.len == 0);
			assert_true(view_is_null(got[2].value));
		}
		record_done(&record);
		record_done(&record);
	}
	arena_free(arena);
}

static void a_large_record_passes_a_small_prefetch(void **state)
{
	struct fixture *fixture = *state;
	struct reader_settings settings = { .properties = test_properties,
		                                .properties_len = 1,
		                                .prefetch_bytes = 1024 * 1024,
		                                .record_bytes = 9 * 1024 * 1024 };
	struct partition_at part = { fixture->topic, 1, 0 };
	struct reader *reader;
	struct error error;
	int64_t last;

	write_some(fixture, 1, 0, 3, 8 * 1024 * 1024);
	assert_ok(reader_open(&reader, &settings, &error));
	assert_ok(reader_start(reader, &part, 1, &error));
	assert_int_equal(test_drain(reader, 3, false, &last), 3);
	reader_close(reader, 5000);
}

static void start_is_a_seek(void **state)
{
	struct fixture *fixture = *state;
	struct record record;
	struct error error;

	write_some(fixture, 0, 0, 2000, 100);
	srand(1);
	for (int i = 0; i < 60; i++) {
		int64_t at = rand() % 2000;

		start(fixture, 0, at);
		for (int64_t n = at; n < 2000 && n < at + rand() % 50 + 1; n++) {
			test_await(fixture->reader, READER_RECORD, &record);
			assert_int_equal(record.at.offset, n);
			record_done(&record);
		}
	}
	assert_ok(reader_start(fixture->reader, NULL, 0, &error));
	for (int i = 0; i < 5; i++) {
		enum reader_event event;

		assert_ok(reader_poll(fixture->reader, 50, &event, &record, &error));
		assert_int_equal(event, READER_NOTHING);
	}
}

/* Four busy partitions, paused and resumed at random while they are written to and read: none may skip or
 * repeat an offset. */
static void pause_and_resume_neither_skip_nor_repeat(void **state)
{
	struct fixture *fixture = *state;
	struct partition_at parts[4];
	int64_t next[4] = { 0 };
	bool paused[4] = { false };
	struct record record;
	struct error error;
	int total = 0;

	for (int32_t p = 0; p < 4; p++) {
		parts[p] = (struct partition_at){ fixture->topic, p, p == 1 ? 0 : READER_BEGINNING };
		write_some(fixture, p, 0, 1500, 300);
	}
	assert_ok(reader_start(fixture->reader, parts, 4, &error));
	srand(2);
	for (int64_t until = clock_mono_ms() + 3 * PATIENCE_MS; total < 4 * 3000;) {
		int32_t chosen = rand() % 4;
		enum reader_event event;

		assert_true(clock_mono_ms() < until);
		if (rand() % 40 == 0) {
			assert_ok(reader_pause(fixture->reader, fixture->topic, chosen, &error));
			paused[chosen] = true;
		}
		if (rand() % 20 == 0) {
			assert_ok(reader_resume(fixture->reader, fixture->topic, chosen, &error));
			paused[chosen] = false;
		}
		if (total == 2000)
			for (int32_t p = 0; p < 4; p++)
				test_write(fixture->producer, fixture->topic, p, 1500, 1500, 300);
		assert_ok(reader_poll(fixture->reader, 5, &event, &record, &error));
		if (event != READER_RECORD)
			continue;
		assert_false(paused[record.at.partition]);
		assert_int_equal(record.at.offset, next[record.at.partition]);
		next[record.at.partition]++;
		total++;
		record_done(&record);
	}
	assert_ok(producer_wait(fixture->producer, PATIENCE_MS, &error));
}

static void the_end_is_told_with_its_offset(void **state)
{
	struct fixture *fixture = *state;
	struct record record;
	int64_t last;

	start(fixture, 2, READER_BEGINNING);
	test_await(fixture->reader, READER_END, &record);
	assert_int_equal(record.at.offset, 0);
	assert_int_equal(record.at.partition, 2);
	write_some(fixture, 2, 0, 7, 0);
	assert_int_equal(test_drain(fixture->reader, 1000, true, &last), 7);
	assert_int_equal(last, 7);
}

static void an_offset_that_is_gone_is_an_alarm(void **state)
{
	struct fixture *fixture = *state;
	struct record record;
	int64_t last;

	write_some(fixture, 3, 0, 5, 0);
	start(fixture, 3, 1000);
	test_await(fixture->reader, READER_GONE, &record);
	assert_string_equal(record.at.topic, fixture->topic);
	assert_int_equal(record.at.partition, 3);
	assert_int_equal(record.at.offset, 1000);
	start(fixture, 3, 2);
	assert_int_equal(test_drain(fixture->reader, 3, false, &last), 3);
}

static void questions_are_answered(void **state)
{
	struct fixture *fixture = *state;
	struct error error;
	char id[64];
	int64_t low;
	int64_t end;
	int64_t offset;
	int64_t between;
	int32_t count;

	write_some(fixture, 0, 0, 3, 0);
	assert_ok(reader_range(fixture->reader, fixture->topic, 0, PATIENCE_MS, &low, &end, &error));
	assert_int_equal(low, 0);
	assert_int_equal(end, 3);
	assert_ok(reader_partitions(fixture->reader, fixture->topic, PATIENCE_MS, &count, &error));
	assert_int_equal(count, 4);
	assert_ok(reader_partitions(fixture->reader, "no-such-topic", PATIENCE_MS, &count, &error));
	assert_int_equal(count, 0);
	assert_ok(reader_cluster_id(fixture->reader, PATIENCE_MS, id, sizeof(id), &error));
	assert_int_equal(strlen(id), 22);
	assert_int_equal(reader_cluster_id(fixture->reader, PATIENCE_MS, id, 4, &error), FATE_FATAL);
	between = clock_real_us() + 2000;
	while (clock_real_us() < between + 2000)
		producer_poll(fixture->producer, 1);
	write_some(fixture, 0, 3, 2, 0);
	assert_ok(
		reader_offset_at_time(fixture->reader, fixture->topic, 0, between, PATIENCE_MS, &offset, &error));
	assert_int_equal(offset, 3);
	assert_ok(reader_offset_at_time(fixture->reader, fixture->topic, 0, between + 3600000000, PATIENCE_MS,
	                                &offset, &error));
	assert_int_equal(offset, 5);
}

static void *wake(void *argument)
{
	struct timespec moment = { 0, 200000000 };

	nanosleep(&moment, NULL);
	reader_stop_waiting(argument);
	return NULL;
}

static void another_thread_can_end_the_wait(void **state)
{
	struct fixture *fixture = *state;
	int64_t begun = clock_mono_ms();
	enum reader_event event;
	struct record record;
	struct error error;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, wake, fixture->reader), 0);
	assert_ok(reader_poll(fixture->reader, PATIENCE_MS, &event, &record, &error));
	assert_int_equal(event, READER_NOTHING);
	pthread_join(thread, NULL);
	reader_stop_waiting(fixture->reader); /* nobody waits: the next one that would does not */
	assert_ok(reader_poll(fixture->reader, PATIENCE_MS, &event, &record, &error));
	assert_true(clock_mono_ms() - begun < PATIENCE_MS / 2);
}

/* A start or a seek on an idle connection waits for the fetch that is under way, a lone record for nothing. */
static void a_lone_record_is_seen_at_once(void **state)
{
	struct fixture *fixture = *state;
	int64_t sum_us = 0;
	int64_t worst_us = 0;
	struct record record;

	start(fixture, 0, READER_BEGINNING);
	test_await(fixture->reader, READER_END, &record);
	write_some(fixture, 0, 0, 1, 0);
	test_await(fixture->reader, READER_RECORD, &record);
	record_done(&record);
	for (int i = 0; i < 50; i++) {
		int64_t begun;
		struct error error;
		enum reader_event event;

		assert_ok(reader_poll(fixture->reader, 30, &event, &record, &error));
		begun = clock_real_us();
		test_write(fixture->producer, fixture->topic, 0, i, 1, 2000);
		test_await(fixture->reader, READER_RECORD, &record);
		record_done(&record);
		sum_us += clock_real_us() - begun;
		if (clock_real_us() - begun > worst_us)
			worst_us = clock_real_us() - begun;
		assert_ok(producer_wait(fixture->producer, PATIENCE_MS, &error));
	}
	print_message("lone record, written to read: mean %lld us, worst %lld us\n", (long long)(sum_us / 50),
	              (long long)worst_us);
	assert_true(sum_us / 50 < 20000);
}

/* A reader that pauses for its own work lets the queue fill up; librdkafka 2.0.2 by itself then fetches once a
 * second (17 s for this). */
static void a_backlog_is_read_without_stalls(void **state)
{
	struct fixture *fixture = *state;
	struct reader_settings settings = { .properties = test_properties,
		                                .properties_len = 1,
		                                .prefetch_bytes = 4 * 1024 * 1024 };
	struct timespec work = { 0, 5000000 };
	struct partition_at parts[4];
	struct reader *reader;
	struct error error;
	int64_t begun;
	int64_t last;

	for (int32_t p = 0; p < 4; p++) {
		parts[p] = (struct partition_at){ fixture->topic, p, 0 };
		write_some(fixture, p, 0, 8000, 2000);
	}
	assert_ok(reader_open(&reader, &settings, &error));
	assert_ok(reader_start(reader, parts, 4, &error));
	begun = clock_mono_ms();
	for (int batch = 0; batch < 125; batch++) {
		nanosleep(&work, NULL);
		assert_int_equal(test_drain(reader, 256, false, &last), 256);
	}
	print_message("64 MB in batches of 256 with 5 ms of work between: %lld ms\n",
	              (long long)(clock_mono_ms() - begun));
	assert_true(clock_mono_ms() - begun < 10000);
	reader_close(reader, 5000);
}

static void wrong_settings_are_refused(void **state)
{
	struct property wrong[][1] = { { { "no.such.property", "1" } },
		                           { { "isolation.level", "read_uncommitted" } },
		                           { { "session.timeout.ms", "never" } } };

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct reader_settings settings = { .properties = wrong[i], .properties_len = 1 };
		struct reader *reader;
		struct error error;

		assert_int_equal(reader_open(&reader, &settings, &error), FATE_FATAL);
		assert_int_equal(error.code, ERR_USAGE);
		assert_non_null(strstr(error.message, wrong[i][0].name));
	}
}

static void brokers_away_is_a_retry_once(void **state)
{
	struct property nobody[] = { { "bootstrap.servers", "127.0.0.1:1" } };
	struct reader_settings settings = { .properties = nobody, .properties_len = 1 };
	int64_t until = clock_mono_ms() + 3000;
	struct reader *reader;
	struct error error;
	int told = 0;

	(void)state;
	assert_ok(reader_open(&reader, &settings, &error));
	while (clock_mono_ms() < until) {
		enum reader_event event;
		struct record record;
		enum fate fate = reader_poll(reader, 200, &event, &record, &error);

		told += fate == FATE_RETRY;
		assert_true(fate == FATE_RETRY || fate == FATE_OK);
	}
	assert_int_equal(told, 1);
	assert_non_null(strstr(error.message, "127.0.0.1:1"));
	until = clock_mono_ms();
	reader_close(reader, 3000);
	assert_true(clock_mono_ms() - until < 3500);
}

int main(void)
{
#define with_broker(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		with_broker(records_come_as_they_were_written),
		with_broker(a_large_record_passes_a_small_prefetch),
		with_broker(start_is_a_seek),
		with_broker(pause_and_resume_neither_skip_nor_repeat),
		with_broker(the_end_is_told_with_its_offset),
		with_broker(an_offset_that_is_gone_is_an_alarm),
		with_broker(questions_are_answered),
		with_broker(another_thread_can_end_the_wait),
		with_broker(a_lone_record_is_seen_at_once),
		with_broker(a_backlog_is_read_without_stalls),
		cmocka_unit_test(wrong_settings_are_refused),
		cmocka_unit_test(brokers_away_is_a_retry_once),
	};

	return test_broker() ? cmocka_run_group_tests(tests, NULL, NULL) : SKIPPED;
}
