// links: core schemas consumer producer agent executor
/* The two libraries for C programs: what an agent sends is there when it says so, and what an executor takes is
 * taken once, or again, as it chooses. The worker's part is played by the test. */
#include "kafka_support.h"

#include "consumer/executor.h"
#include "core/clock.h"
#include "producer/agent.h"
#include "schemas/codec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fixture {
	char suspends[64];
	char resumes[64];
	char group[64];
	struct codec *codec;
	struct producer *producer;
	struct agent *agent;
};

static int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	struct codec_settings limits = { 0 };
	struct agent_settings settings = { .bootstrap_servers = test_broker(), .topic = fixture->suspends };
	struct error error;

	test_make_topic(test_name(fixture->suspends, "suspends"), 1);
	test_make_topic(test_name(fixture->resumes, "resumes"), 1);
	test_name(fixture->group, "executor");
	assert_ok(codec_new(&fixture->codec, &limits, &error));
	fixture->producer = test_producer(NULL);
	assert_ok(agent_open(&fixture->agent, &settings, &error));
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	agent_close(fixture->agent);
	producer_close(fixture->producer);
	codec_free(fixture->codec);
	free(fixture);
	return 0;
}

static struct suspension *gate_of(const char *session, const char *agent)
{
	struct suspension *suspension = suspension_new(session, agent, "1");

	suspension_step(suspension, "g", "WAITING", "next");
	suspension_say(suspension, ROLE_AGENT, "what was said");
	suspension_put_double(suspension, "VRAM_limit_gb", 16.0);
	suspension_gate(suspension, "gate", "May I?", "usr_99");
	return suspension;
}

/* ---- the agent ---- */

static void what_was_sent_is_there(void **state)
{
	struct fixture *fixture = *state;
	struct reader *reader = test_reader(NULL, NULL);
	struct partition_at part = { fixture->suspends, 0, 0 };
	struct suspension *suspension = gate_of("SESSION-808", "planner");
	struct arena *arena = arena_new(1 << 20);
	struct suspend_event event;
	struct record first;
	struct record second;
	struct error error;
	struct view body;

	suspension_trace(suspension, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "a=b");
	assert_ok(agent_suspend(fixture->agent, suspension, PATIENCE_MS, &error));
	assert_ok(agent_suspend(fixture->agent, suspension, PATIENCE_MS, &error)); /* by its own caution */
	assert_ok(reader_start(reader, &part, 1, &error));
	test_await(reader, READER_RECORD, &first);
	test_await(reader, READER_RECORD, &second);
	assert_true(view_equal(first.value, second.value));
	assert_true(view_equal_text(first.key, suspension_checkpoint_id(suspension)));
	assert_true(view_equal_text(record_header(&first, "ce_id"), suspension_checkpoint_id(suspension)));
	assert_true(view_equal_text(record_header(&first, "ce_type"), "fermata.v1.SuspendEvent"));
	assert_true(view_equal_text(record_header(&first, "tracestate"), "a=b"));
	assert_ok(codec_take_suspend(fixture->codec, first.value, arena, &event, &body, &error));
	assert_true(view_equal_text(event.session_id, "SESSION-808"));
	assert_true(view_equal_text(event.history[0].content, "what was said"));
	record_done(&first);
	record_done(&second);
	suspension_say(suspension, ROLE_USER, "too late"); /* it has been sent */
	assert_int_equal(agent_suspend(fixture->agent, suspension, PATIENCE_MS, &error), FATE_REJECT);
	suspension_free(suspension);
	arena_free(arena);
	reader_close(reader, 5000);
}

static void what_would_be_a_dead_letter_is_refused(void **state)
{
	struct fixture *fixture = *state;
	struct suspension *suspension = gate_of("", "planner");
	struct error error;

	assert_int_equal(agent_suspend(fixture->agent, suspension, PATIENCE_MS, &error), FATE_REJECT);
	assert_non_null(strstr(error.message, "session_id"));
	suspension_free(suspension);
	suspension = gate_of("S", "planner");
	suspension_step(suspension, "g", "", "next");
	assert_int_equal(agent_suspend(fixture->agent, suspension, PATIENCE_MS, &error), FATE_REJECT);
	assert_int_equal(error.code, ERR_NOT_AT_BOUNDARY);
	suspension_free(suspension);
}

static void without_kafka_or_topic_it_says_so(void **state)
{
	struct agent_settings settings = { .bootstrap_servers = "127.0.0.1:1" };
	struct suspension *suspension = gate_of("S", "planner");
	int64_t begun = clock_mono_ms();
	struct agent *agent;
	struct error error;

	(void)state;
	assert_ok(agent_open(&agent, &settings, &error));
	assert_int_equal(agent_suspend(agent, suspension, 1000, &error), FATE_RETRY);
	assert_true(clock_mono_ms() - begun < 4000);
	agent_close(agent);
	settings.bootstrap_servers = test_broker();
	settings.topic = "no-such-topic";
	assert_ok(agent_open(&agent, &settings, &error));
	assert_int_equal(agent_suspend(agent, suspension, PATIENCE_MS, &error), FATE_REJECT);
	assert_non_null(strstr(error.message, "fermata topics create"));
	agent_close(agent);
	suspension_free(suspension);
}

/* ---- the executor ---- */

static void write_bytes(struct fixture *fixture, struct view value)
{
	struct outgoing outgoing = { .topic = fixture->resumes, .value = value, .timestamp_us = TIME_NONE };
	struct error error;

	assert_ok(producer_send(fixture->producer, &outgoing, &error));
	assert_ok(producer_wait(fixture->producer, PATIENCE_MS, &error));
}

/* As a relay does: the suspend record's own bytes in a resume's head and tail. */
static void write_resume(struct fixture *fixture, const char *session, const char *agent, int64_t expires_at)
{
	static const uint8_t frame_len = 10;
	struct suspension *suspension = gate_of(session, agent);
	struct resume_event event = { .verdict = VERDICT_APPROVED,
		                          .resumed_at = clock_real_us(),
		                          .expires_at = expires_at };
	struct agent *there;
	struct agent_settings settings = { .bootstrap_servers = test_broker(), .topic = fixture->suspends };
	struct reader *reader = test_reader(NULL, NULL);
	struct partition_at part = { fixture->suspends, 0, 0 };
	struct buffer out;
	struct record record;
	struct error error;
	int64_t low;

	assert_ok(reader_range(reader, fixture->suspends, 0, PATIENCE_MS, &low, &part.offset, &error));
	assert_ok(agent_open(&there, &settings, &error));
	assert_ok(agent_suspend(there, suspension, PATIENCE_MS, &error));
	agent_close(there);
	assert_ok(reader_start(reader, &part, 1, &error));
	test_await(reader, READER_RECORD, &record);
	event.resume_id_text = view_of(suspension_checkpoint_id(suspension));
	assert_true(uuid_parse(event.resume_id_text, &event.resume_id));
	buffer_init(&out, 1 << 20);
	assert_ok(codec_put_resume(fixture->codec, &event,
	                           (struct view){ record.value.data + frame_len, record.value.len - frame_len },
	                           &out, &error));
	write_bytes(fixture, buffer_view(&out));
	buffer_done(&out);
	record_done(&record);
	suspension_free(suspension);
	reader_close(reader, 5000);
}

static struct executor *executor_of(struct fixture *fixture, const char *agent)
{
	struct executor_settings settings = { .bootstrap_servers = test_broker(),
		                                  .topic = fixture->resumes,
		                                  .group = fixture->group,
		                                  .agent = agent,
		                                  .properties = test_properties + 1,
		                                  .properties_len = 2 };
	struct executor *executor;
	struct error error;

	assert_ok(executor_open(&executor, &settings, &error));
	return executor;
}

/* What may mend is tried again, and said. */
static void take(struct executor *executor, struct resumed *ret_resumed)
{
	int64_t until = clock_mono_ms() + PATIENCE_MS;
	struct error error;
	enum fate fate;

	while ((fate = executor_take(executor, PATIENCE_MS, ret_resumed, &error)) == FATE_RETRY) {
		print_message("again: %s\n", error.message);
		assert_true(clock_mono_ms() < until);
	}
	assert_ok(fate);
	assert_non_null(ret_resumed->event);
}

static void expect(struct executor *executor, const char *session)
{
	struct resumed resumed;

	take(executor, &resumed);
	assert_true(view_equal_text(resumed.event->suspend.session_id, session));
	assert_int_equal(resumed.event->verdict, VERDICT_APPROVED);
	assert_true(view_equal_text(resumed.event->suspend.history[0].content, "what was said"));
	assert_true(resumed.event->suspend.config[0].value.real == 16.0);
}

static void expect_nothing(struct executor *executor)
{
	struct resumed resumed;
	struct error error;

	assert_ok(executor_take(executor, 1500, &resumed, &error));
	assert_null(resumed.event);
}

static void what_is_acknowledged_is_not_seen_again(void **state)
{
	struct fixture *fixture = *state;
	struct executor *executor = executor_of(fixture, NULL);
	struct error error;

	assert_ok(executor_done(executor, PATIENCE_MS, &error)); /* nothing yet */
	write_resume(fixture, "S1", "planner", TIME_NONE);
	write_resume(fixture, "S2", "planner", TIME_NONE);
	write_resume(fixture, "S3", "planner", TIME_NONE);
	expect(executor, "S1");
	assert_ok(executor_done(executor, PATIENCE_MS, &error));
	expect(executor, "S2");
	executor_close(executor); /* S2 was not acknowledged: it was in work, and is given again */
	executor = executor_of(fixture, NULL);
	expect(executor, "S2");
	assert_ok(executor_done(executor, PATIENCE_MS, &error));
	expect(executor, "S3");
	assert_ok(executor_done(executor, PATIENCE_MS, &error));
	expect_nothing(executor);
	executor_close(executor);
	executor = executor_of(fixture, NULL);
	expect_nothing(executor);
	executor_close(executor);
}

static void others_sessions_are_passed_over(void **state)
{
	struct fixture *fixture = *state;
	struct executor *executor = executor_of(fixture, "mine");
	struct error error;

	write_resume(fixture, "S1", "theirs", TIME_NONE);
	write_resume(fixture, "S2", "mine", TIME_NONE);
	write_bytes(fixture, VIEW_LITERAL("no resume at all"));
	write_resume(fixture, "S3", "mine", TIME_NONE);
	expect(executor, "S2");
	for (enum fate fate = FATE_OK; fate != FATE_REJECT;) {
		struct resumed resumed;

		fate = executor_take(executor, PATIENCE_MS, &resumed, &error);
		assert_null(resumed.event);
	}
	assert_non_null(strstr(error.message, "offset 2"));
	expect(executor, "S3");
	assert_ok(executor_done(executor, PATIENCE_MS, &error));
	executor_close(executor);
}

static void what_is_too_old_is_marked(void **state)
{
	struct fixture *fixture = *state;
	struct executor *executor = executor_of(fixture, NULL);
	struct resumed resumed;

	write_resume(fixture, "S1", "planner", clock_real_us() - 1000000);
	write_resume(fixture, "S2", "planner", clock_real_us() + 3600000000);
	take(executor, &resumed);
	assert_true(resumed.expired);
	take(executor, &resumed);
	assert_false(resumed.expired);
	executor_close(executor);
}

/* What retention has deleted is an alarm, once; then it goes on with what is there. */
static void what_was_deleted_is_an_alarm(void **state)
{
	struct fixture *fixture = *state;
	struct partition_at nowhere = { fixture->resumes, 0, 1000 };
	struct reader *reader = test_reader(fixture->group, fixture->resumes);
	struct executor *executor;
	struct resumed resumed;
	struct record record;
	struct error error;
	enum fate fate;

	write_resume(fixture, "S1", "planner", TIME_NONE);
	test_await(reader, READER_ASSIGNED, &record);
	assert_ok(reader_commit(reader, &nowhere, PATIENCE_MS, &error));
	reader_close(reader, 5000);
	executor = executor_of(fixture, NULL);
	fate = executor_take(executor, PATIENCE_MS, &resumed, &error);
	assert_int_equal(fate, FATE_RETRY);
	assert_non_null(strstr(error.message, "deleted"));
	expect(executor, "S1");
	executor_close(executor);
}

static void who_has_lost_the_partition_is_told(void **state)
{
	struct fixture *fixture = *state;
	struct property impatient[] = { { "session.timeout.ms", "1000" }, { "max.poll.interval.ms", "1500" } };
	struct executor_settings settings = { .bootstrap_servers = test_broker(),
		                                  .topic = fixture->resumes,
		                                  .group = fixture->group,
		                                  .properties = impatient,
		                                  .properties_len = 2 };
	struct executor *slow;
	struct executor *other;
	struct error error;

	write_resume(fixture, "S1", "planner", TIME_NONE);
	assert_ok(executor_open(&slow, &settings, &error));
	expect(slow, "S1");
	other = executor_of(fixture, NULL);
	expect(other, "S1"); /* the slow one works for longer than it may */
	assert_int_equal(executor_done(slow, PATIENCE_MS, &error), FATE_RETRY);
	assert_int_equal(error.code, ERR_STALE);
	assert_ok(executor_done(other, PATIENCE_MS, &error));
	executor_close(other);
	executor_close(slow);
}

int main(void)
{
#define with_broker(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		with_broker(what_was_sent_is_there),
		with_broker(what_would_be_a_dead_letter_is_refused),
		cmocka_unit_test(without_kafka_or_topic_it_says_so),
		with_broker(what_is_acknowledged_is_not_seen_again),
		with_broker(others_sessions_are_passed_over),
		with_broker(what_is_too_old_is_marked),
		with_broker(what_was_deleted_is_an_alarm),
		with_broker(who_has_lost_the_partition_is_told),
	};

	return test_broker() ? cmocka_run_group_tests(tests, NULL, NULL) : SKIPPED;
}
