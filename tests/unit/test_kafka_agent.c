// links: core schemas agent
/* What the builder of a suspension puts together, as a decoder sees it. No broker. */
#include "core/kafka_env.h"
#include "producer/agent.h"
#include "producer/agent_inner.h"
#include "schemas/codec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct fixture {
	struct codec *codec;
	struct arena *arena;
	struct buffer value;
	struct suspend_event event;
};

static int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	struct codec_settings settings = { 0 };
	struct error error;

	assert_int_equal(codec_new(&fixture->codec, &settings, &error), FATE_OK);
	fixture->arena = arena_new(1 << 24);
	assert_non_null(fixture->arena);
	buffer_init(&fixture->value, 1 << 24);
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	codec_free(fixture->codec);
	arena_free(fixture->arena);
	buffer_done(&fixture->value);
	free(fixture);
	return 0;
}

/* Encodes and decodes; the event is in the fixture. */
static void round_trip(struct fixture *fixture, struct suspension *suspension)
{
	struct error error = { .message = "" };
	struct view body;
	enum fate fate;

	assert_int_equal(suspension->fault.fate, FATE_OK);
	buffer_reset(&fixture->value);
	fate = codec_put_suspend(fixture->codec, &suspension->event, &fixture->value, &error);
	if (fate != FATE_OK)
		print_error("%s\n", error.message);
	assert_int_equal(fate, FATE_OK);
	assert_int_equal(codec_take_suspend(fixture->codec, buffer_view(&fixture->value), fixture->arena,
	                                    &fixture->event, &body, &error),
	                 FATE_OK);
}

static struct suspension *story(void)
{
	struct suspension *s = suspension_new("SESSION-808", "api-migrator", "1.0.0");

	suspension_step(s, "migration", "AWAITING_HUMAN_APPROVAL", "run_deployment_tool");
	suspension_say(s, ROLE_SYSTEM, "Update the schema.");
	suspension_say(s, ROLE_AGENT, "I will.");
	suspension_put_double(s, "VRAM_limit_gb", 16.0);
	suspension_put_text(s, "user_id", "usr_99");
	suspension_gate(s, "schema-change", "Run it?", "usr_99");
	return s;
}

static void the_least_is_a_whole_record(void **state)
{
	struct fixture *fixture = *state;
	struct suspension *s = suspension_new("S", "a", "1");
	const struct suspend_event *event = &fixture->event;

	suspension_step(s, "", "node", "next");
	round_trip(fixture, s);
	assert_true(view_equal_text(event->session_id, "S"));
	assert_true(view_equal_text(event->tenant, "default"));
	assert_true(view_equal_text(event->checkpoint_id_text, suspension_checkpoint_id(s)));
	assert_int_equal(event->checkpoint_id.bytes[6] >> 4, 7);
	assert_int_equal(event->suspend_seq, event->suspended_at);
	assert_int_equal(event->step.attempt, 1);
	assert_int_equal(event->gate.required_approvals, 1);
	assert_int_equal(event->gate.expires_at, TIME_NONE);
	assert_false(event->gate.action.present);
	assert_false(event->state.present);
	suspension_free(s);
}

static void add_much(struct suspension *s)
{
	const char *const tags[] = { "a", "b" };

	for (int i = 0; i < 70; i++) {
		char text[16];

		snprintf(text, sizeof(text), "%d", i);
		suspension_say(s, ROLE_USER, text);
		suspension_step_path(s, text);
		suspension_put_long(s, text, i);
		suspension_permit(s, text, PERMISSION_ASK);
		suspension_approver(s, text);
		suspension_label(s, text, text);
	}
	suspension_say_as(s, ROLE_AGENT, "planner", "calls");
	suspension_tool_call(s, "c1", "grep", "{}");
	suspension_tool_call(s, "c2", "ls", "[1]");
	suspension_tool_call(s, "c3", "ls", "null");
	suspension_tool_answer(s, "c1", "grep", "nothing");
	suspension_put_null(s, "null");
	suspension_put_boolean(s, "flag", true);
	suspension_put_texts(s, "tags", tags, 2);
	suspension_put_texts(s, "none", NULL, 0);
	suspension_put_text(s, "7", "again"); /* another value, another kind */
	suspension_permit(s, "3", PERMISSION_DENY);
	suspension_label(s, "5", "again");
}

static void everything_arrives(void **state)
{
	struct fixture *fixture = *state;
	struct suspension *s = story();
	const struct suspend_event *event = &fixture->event;

	add_much(s);
	suspension_seq(s, 42);
	suspension_tenant(s, "acme");
	suspension_attempt(s, 3);
	suspension_state_json(s, "app.State", "{\"x\":1}");
	suspension_action(s, "deploy", "{\"n\":1e400}", RISK_CRITICAL, "does it");
	suspension_quorum(s, 2);
	suspension_expiry(s, 1893456000000000, ON_EXPIRY_HOLD);
	round_trip(fixture, s);
	assert_int_equal(event->suspend_seq, 42);
	assert_true(view_equal_text(event->tenant, "acme"));
	assert_int_equal(event->step.attempt, 3);
	assert_int_equal(event->step.path_len, 70);
	assert_true(view_equal_text(event->step.path[69], "69"));
	assert_int_equal(event->history_len, 2 + 70 + 2);
	assert_true(view_equal_text(event->history[71].content, "69"));
	assert_int_equal(event->history[72].tool_calls_len, 3);
	assert_true(view_equal_text(event->history[72].tool_calls[1].arguments, "[1]"));
	assert_true(view_equal_text(event->history[72].name, "planner"));
	assert_int_equal(event->history[73].role, ROLE_TOOL);
	assert_true(view_equal_text(event->history[73].tool_call_id, "c1"));
	assert_int_equal(event->config_len, 2 + 70 + 4);
	assert_int_equal(event->config[0].kind, CONFIG_DOUBLE);
	assert_true(event->config[0].value.real == 16.0);
	assert_int_equal(event->config[9].kind, CONFIG_STRING);
	assert_true(view_equal_text(event->config[9].value.string, "again"));
	assert_int_equal(event->tool_permissions_len, 70);
	assert_int_equal(event->tool_permissions[3].permission, PERMISSION_DENY);
	assert_int_equal(event->gate.approvers_len, 70);
	assert_int_equal(event->gate.labels_len, 70);
	assert_true(view_equal_text(event->gate.labels[5].value, "again"));
	assert_true(event->state.present && event->state.encoding == ENCODING_JSON);
	assert_int_equal(event->gate.action.risk, RISK_CRITICAL);
	assert_int_equal(event->gate.required_approvals, 2);
	assert_int_equal(event->gate.expires_at, 1893456000000000);
	assert_int_equal(event->gate.on_expiry, ON_EXPIRY_HOLD);
	suspension_free(s);
}

static void no_two_are_alike_and_one_stays_the_same(void **state)
{
	struct fixture *fixture = *state;
	struct suspension *one = story();
	struct suspension *two = story();
	uint8_t salt[SALT_LEN];
	struct buffer first;

	assert_string_not_equal(suspension_checkpoint_id(one), suspension_checkpoint_id(two));
	round_trip(fixture, one);
	memcpy(salt, fixture->event.salt, sizeof(salt));
	buffer_init(&first, 1 << 20);
	buffer_append_view(&first, buffer_view(&fixture->value));
	round_trip(fixture, one);
	assert_true(view_equal(buffer_view(&first), buffer_view(&fixture->value)));
	round_trip(fixture, two);
	assert_memory_not_equal(salt, fixture->event.salt, sizeof(salt));
	buffer_done(&first);
	suspension_free(one);
	suspension_free(two);
}

static void the_next_suspension_carries_the_session_on(void **state)
{
	struct fixture *fixture = *state;
	struct suspension *before = story();
	struct resume_event resumed = { 0 };
	struct suspension *next;
	char old_id[UUID_TEXT_LEN + 1];

	add_much(before);
	suspension_seq(before, 7);
	snprintf(old_id, sizeof(old_id), "%s", suspension_checkpoint_id(before));
	round_trip(fixture, before);
	suspension_free(before);
	resumed.suspend = fixture->event;
	next = suspension_next(&resumed);
	suspension_say(next, ROLE_AGENT, "done");
	suspension_put_long(next, "one more", 1);
	suspension_permit(next, "one more", PERMISSION_ALLOW);
	suspension_step_path(next, "one more");
	suspension_version(next, "1.0.1");
	suspension_gate(next, "second", "And now?", "usr_99");
	round_trip(fixture, next);
	assert_int_equal(fixture->event.suspend_seq, 8);
	assert_true(view_equal_text(fixture->event.session_id, "SESSION-808"));
	assert_true(view_equal_text(fixture->event.agent_version, "1.0.1"));
	assert_string_not_equal(old_id, suspension_checkpoint_id(next));
	assert_int_equal(fixture->event.history_len, 2 + 70 + 2 + 1);
	assert_true(view_equal_text(fixture->event.history[0].content, "Update the schema."));
	assert_true(view_equal_text(fixture->event.history[74].content, "done"));
	assert_int_equal(fixture->event.config_len, 2 + 70 + 4 + 1);
	assert_int_equal(fixture->event.step.path_len, 71);
	assert_int_equal(fixture->event.gate.approvers_len, 0);
	assert_true(view_equal_text(fixture->event.gate.gate_id, "second"));
	suspension_free(next);
}

static void a_wrong_part_is_remembered(void **state)
{
	struct suspension *s;

	(void)state;
	s = suspension_new(NULL, "a", "1");
	assert_int_equal(s->fault.fate, FATE_REJECT);
	assert_non_null(strstr(s->fault.message, "session_id"));
	suspension_free(s);
	s = story();
	suspension_say(s, ROLE_USER, "x");
	suspension_tool_call(s, "1", "t", "{}"); /* the last entry is the USER's */
	suspension_say(s, ROLE_USER, NULL);      /* the first fault counts */
	assert_non_null(strstr(s->fault.message, "AGENT"));
	suspension_free(s);
	suspension_say(NULL, ROLE_USER, "x");
	suspension_put_long(NULL, "k", 1);
	assert_string_equal(suspension_checkpoint_id(NULL), "");
	suspension_free(NULL);
}

static void the_environment_gives_properties(void **state)
{
	char path[] = "/tmp/fermata-test-XXXXXX";
	int file = mkstemp(path);
	struct arena *arena = arena_new(1 << 22);
	assert_non_null(arena);
	struct property *properties;
	struct error error;
	size_t len;

	(void)state;
	assert_int_equal(write(file, "hunter2\n", 8), 8);
	close(file);
	unsetenv("FERMATA_KAFKA_BOOTSTRAP_SERVERS");
	setenv("FERMATA_KAFKA_PRODUCER_LINGER_MS", "7", 1);
	setenv("FERMATA_KAFKA_CONSUMER_FETCH_WAIT_MAX_MS", "10", 1);
	setenv("FERMATA_KAFKA_SECURITY_PROTOCOL", "SASL_SSL", 1);
	setenv("FERMATA_KAFKA_SASL_PASSWORD_FILE", path, 1);
	setenv("FERMATA_KAFKA_LOG_LEVEL", "7", 1);
	setenv("FERMATA_KAFKA_PORT_9092_TCP_ADDR", "10.0.0.1", 1);
	setenv("FERMATA_KAFKA_SERVICE_HOST", "10.0.0.1", 1);
	assert_int_equal(kafka_environment("producer", arena, &properties, &len, &error), FATE_OK);
	assert_int_equal(len, 4);
	assert_string_equal(properties[3].name, "linger.ms");
	assert_int_equal(kafka_environment("consumer", arena, &properties, &len, &error), FATE_OK);
	assert_int_equal(len, 4);
	assert_string_equal(properties[3].name, "fetch.wait.max.ms");
	for (size_t i = 0; i < 3; i++)
		if (!strcmp(properties[i].name, "sasl.password"))
			assert_string_equal(properties[i].value, "hunter2");
		else if (!strcmp(properties[i].name, "log_level"))
			assert_string_equal(properties[i].value, "7");
		else
			assert_string_equal(properties[i].name, "security.protocol");
	unlink(path);
	assert_int_equal(kafka_environment("consumer", arena, &properties, &len, &error), FATE_REJECT);
	assert_non_null(strstr(error.message, "sasl.password"));
	arena_free(arena);
}

int main(void)
{
#define with_codec(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		with_codec(the_least_is_a_whole_record),
		with_codec(everything_arrives),
		with_codec(no_two_are_alike_and_one_stays_the_same),
		with_codec(the_next_suspension_carries_the_session_on),
		cmocka_unit_test(a_wrong_part_is_remembered),
		cmocka_unit_test(the_environment_gives_properties),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
