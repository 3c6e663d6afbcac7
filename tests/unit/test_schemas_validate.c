// links: schemas core
/* The fine points of the contract, each on a record that is good but for one thing. */
#include "schemas/validate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct arena *arena;
static uint8_t long_text[20000];

static struct view of_len(size_t len)
{
	return (struct view){ long_text, len };
}

static struct suspend_event good_suspend(void)
{
	return (struct suspend_event){
		.session_id = VIEW_LITERAL("s"),
		.suspend_seq = 1,
		.tenant = VIEW_LITERAL(""),
		.agent = VIEW_LITERAL(""),
		.agent_version = VIEW_LITERAL(""),
		.step = { .graph = VIEW_LITERAL(""), .node = VIEW_LITERAL("n"), .resume_at = VIEW_LITERAL("r") },
		.gate = { .gate_id = VIEW_LITERAL(""),
		          .title = VIEW_LITERAL(""),
		          .requested_by = VIEW_LITERAL(""),
		          .required_approvals = 1 },
	};
}

static void refused(const struct suspend_event *event, enum error_code code, const char *words)
{
	struct error error = { 0 };

	if (validate_suspend(event, false, arena, &error) != FATE_REJECT)
		fail_msg("taken, where \"%s\" is wrong", words);
	assert_int_equal(error.code, code);
	if (!strstr(error.message, words))
		fail_msg("%s, where \"%s\" is wrong", error.message, words);
	arena_reset(arena);
}

static void taken(const struct suspend_event *event)
{
	struct error error = { 0 };

	if (validate_suspend(event, false, arena, &error) != FATE_OK)
		fail_msg("%s", error.message);
	arena_reset(arena);
}

static void test_lengths(void **state)
{
	struct suspend_event event = good_suspend();
	static const struct {
		size_t offset, max;
		const char *words;
	} fields[] = {
		{ offsetof(struct suspend_event, session_id), 255, "session_id has 256 bytes: at most 255" },
		{ offsetof(struct suspend_event, tenant), 255, "tenant has 256" },
		{ offsetof(struct suspend_event, agent), 255, "agent has 256" },
		{ offsetof(struct suspend_event, agent_version), 255, "agent_version has 256" },
		{ offsetof(struct suspend_event, gate.gate_id), 255, "gate.gate_id has 256" },
		{ offsetof(struct suspend_event, gate.requested_by), 255, "gate.requested_by has 256" },
		{ offsetof(struct suspend_event, gate.title), 1024, "gate.title has 1025 bytes: at most 1024" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		struct view *field = (struct view *)((char *)&event + fields[i].offset), saved = *field;
		*field = of_len(fields[i].max);
		taken(&event);
		*field = of_len(fields[i].max + 1);
		refused(&event, ERR_INVALID, fields[i].words);
		*field = VIEW_LITERAL("a\0b");
		refused(&event, ERR_INVALID, "has U+0000 in it");
		*field = saved;
	}
}

static void test_numbers(void **state)
{
	struct suspend_event event = good_suspend();

	(void)state;
	event.session_id = VIEW_LITERAL("");
	refused(&event, ERR_INVALID, "session_id is empty");
	event = good_suspend();
	event.suspend_seq = 0;
	refused(&event, ERR_INVALID, "suspend_seq is 0: it must be at least 1");
	event.suspend_seq = INT64_MIN;
	refused(&event, ERR_INVALID, "suspend_seq is -9223372036854775808");
	event = good_suspend();
	event.gate.required_approvals = 0;
	refused(&event, ERR_INVALID, "gate.required_approvals is 0: it must be at least 1");
	event = good_suspend();
	event.step.node = VIEW_LITERAL("");
	refused(&event, ERR_NOT_AT_BOUNDARY, "step.node is empty");
	event = good_suspend();
	event.step.resume_at = VIEW_LITERAL("");
	refused(&event, ERR_NOT_AT_BOUNDARY, "step.resume_at is empty");
}

static void test_audience(void **state)
{
	struct suspend_event event = good_suspend();
	struct view approvers[] = { of_len(8192), of_len(8000) };
	struct label labels[] = { { of_len(100), of_len(92) }, { VIEW_LITERAL(""), VIEW_LITERAL("") } };

	(void)state;
	event.gate.approvers = approvers;
	event.gate.approvers_len = 2;
	event.gate.labels = labels;
	event.gate.labels_len = 2;
	taken(&event);
	event.gate.labels[1].value = VIEW_LITERAL("x");
	refused(&event, ERR_INVALID, "gate.approvers and gate.labels have 16385 bytes together: at most 16384");
	event.gate.labels[1].value = VIEW_LITERAL("");
	event.gate.labels[1].key = event.gate.labels[0].key = VIEW_LITERAL("k");
	refused(&event, ERR_INVALID, "gate.labels has a key twice");
	event.gate.labels[1].key = VIEW_LITERAL("\0");
	refused(&event, ERR_INVALID, "gate.labels[1] has U+0000");
	event.gate.labels[1].key = VIEW_LITERAL("l");
	approvers[1] = VIEW_LITERAL("\0");
	refused(&event, ERR_INVALID, "gate.approvers[1] has U+0000");
}

static void test_maps(void **state)
{
	struct suspend_event event = good_suspend();
	struct config_entry config[] = { { .key = VIEW_LITERAL("a\0b") },
		                             { .key = VIEW_LITERAL("b") },
		                             { .key = VIEW_LITERAL("a\0c") } };
	struct tool_permission permissions[] = { { VIEW_LITERAL("t"), PERMISSION_ALLOW },
		                                     { VIEW_LITERAL("u"), PERMISSION_DENY } };

	(void)state;
	event.config = config;
	event.config_len = 3;
	event.tool_permissions = permissions;
	event.tool_permissions_len = 2;
	taken(&event);
	config[2].key = config[0].key;
	refused(&event, ERR_INVALID, "config has a key twice");
	config[2].key = VIEW_LITERAL("");
	permissions[1].tool = VIEW_LITERAL("t");
	refused(&event, ERR_INVALID, "tool_permissions has a key twice");
}

static void test_json(void **state)
{
	struct suspend_event event = good_suspend();
	struct tool_call calls[] = { { VIEW_LITERAL("i"), VIEW_LITERAL("n"), VIEW_LITERAL("1e400") },
		                         { VIEW_LITERAL("j"), VIEW_LITERAL("n"), VIEW_LITERAL("\"\\u0000\"") } };
	struct history_entry history = { .role = ROLE_AGENT,
		                             .content = VIEW_LITERAL("\0"),
		                             .tool_calls = calls,
		                             .tool_calls_len = 2,
		                             .at = TIME_NONE };

	(void)state;
	event.history = &history;
	event.history_len = 1;
	event.gate.action =
		(struct action){ true, VIEW_LITERAL("\0"), VIEW_LITERAL("{}"), RISK_LOW, VIEW_LITERAL("\0") };
	taken(&event);
	event.history[0].tool_calls[1].arguments = VIEW_LITERAL("");
	refused(&event, ERR_INVALID, "history[0].tool_calls[1].arguments is not JSON");
	event.history[0].tool_calls[1].arguments = VIEW_LITERAL("0");
	event.gate.action.arguments = VIEW_LITERAL("{'a':1}");
	refused(&event, ERR_INVALID, "gate.action.arguments is not JSON");
}

static void test_state(void **state)
{
	struct suspend_event event = good_suspend();

	(void)state;
	event.state = (struct app_state){ true, VIEW_LITERAL("s"), ENCODING_AVRO, VIEW_LITERAL("12345678"),
		                              VIEW_LITERAL("\xff") };
	taken(&event);
	event.state.fingerprint = VIEW_LITERAL("1234567");
	refused(&event, ERR_INVALID, "state.fingerprint has 7 bytes");
	event.state.fingerprint = VIEW_NULL;
	refused(&event, ERR_INVALID, "state.fingerprint is null");
	event.state.encoding = ENCODING_JSON;
	refused(&event, ERR_INVALID, "state.body is not JSON");
	event.state.body = VIEW_LITERAL("[]");
	taken(&event);
	event.state.fingerprint = VIEW_LITERAL("12345678");
	refused(&event, ERR_INVALID, "state.fingerprint must be null");
}

static void test_uuid(void **state)
{
	struct error error;
	struct uuid a, b;

	(void)state;
	assert_int_equal(validate_uuid(VIEW_LITERAL("0192d3a4-5b6c-7d8e-9f01-23456789abcd"), "id", &a, &error),
	                 FATE_OK);
	assert_int_equal(validate_uuid(VIEW_LITERAL("0192D3A4-5B6C-7D8E-9F01-23456789ABCD"), "id", &b, &error),
	                 FATE_OK);
	assert_int_equal(uuid_compare(&a, &b), 0);
	assert_int_equal(validate_uuid(VIEW_LITERAL("0192d3a4-5b6c-7d8e-9f01-23456789abcg"), "id", &a, &error),
	                 FATE_REJECT);
	assert_string_equal(error.message,
	                    "id is not a uuid: 36 characters, hexadecimal digits with four hyphens");
	assert_int_equal(validate_uuid(VIEW_LITERAL(""), "id", &a, &error), FATE_REJECT);
	assert_non_null(strstr(error.message, "id has 0 bytes"));
	assert_int_equal(validate_id_to_put(VIEW_NULL, "id", &error), FATE_OK);
}

static void test_approval(void **state)
{
	struct error error;
	const struct approval_event good = {
		.session_id = VIEW_LITERAL(""),
		.decided_by = { of_len(255), of_len(255), of_len(4096) },
		.reason = of_len(4096),
		.source = { VIEW_LITERAL(""), VIEW_LITERAL(""), VIEW_LITERAL("") },
	};
	static const struct {
		size_t offset, max;
		const char *words;
	} fields[] = {
		{ offsetof(struct approval_event, session_id), 255, "session_id has" },
		{ offsetof(struct approval_event, decided_by.issuer), 255, "decided_by.issuer has" },
		{ offsetof(struct approval_event, decided_by.subject), 255, "decided_by.subject has" },
		{ offsetof(struct approval_event, decided_by.display), 4096, "decided_by.display has" },
		{ offsetof(struct approval_event, reason), 4096, "reason has 4097 bytes: at most 4096" },
		{ offsetof(struct approval_event, source.system), 4096, "source.system has" },
		{ offsetof(struct approval_event, source.ref), 4096, "source.ref has" },
		{ offsetof(struct approval_event, source.delivery_id), 4096, "source.delivery_id has" },
	};

	(void)state;
	assert_int_equal(validate_approval(&good, arena, &error), FATE_OK);
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		struct approval_event event = good;
		struct view *field = (struct view *)((char *)&event + fields[i].offset);
		*field = of_len(fields[i].max + 1);
		assert_int_equal(validate_approval(&event, arena, &error), FATE_REJECT);
		if (!strstr(error.message, fields[i].words))
			fail_msg("%s", error.message);
		*field = VIEW_LITERAL("\0");
		assert_int_equal(validate_approval(&event, arena, &error), FATE_REJECT);
	}
	struct approval_event event = good;
	event.edits = (struct edits){ .present = true, .action_arguments = VIEW_LITERAL("") };
	assert_int_equal(validate_approval(&event, arena, &error), FATE_REJECT);
	assert_string_equal(error.message, "edits.action_arguments is not JSON");
	event = good;
	event.signature = (struct signature){ true, of_len(256), VIEW_LITERAL(""), VIEW_LITERAL("") };
	assert_int_equal(validate_approval(&event, arena, &error), FATE_REJECT);
	assert_non_null(strstr(error.message, "signature.key_id"));
	arena_reset(arena);
}

/* -- limits.boundary = strict -- */

struct line {
	enum role role;
	const char *answers;  /* or NULL */
	const char *calls[3]; /* up to NULL */
};

static enum fate boundary(const struct line *lines, size_t len, struct error *error)
{
	struct history_entry *history = arena_array(arena, len, sizeof(*history));

	for (size_t i = 0; i < len; i++) {
		history[i].role = lines[i].role;
		history[i].tool_call_id = view_of(lines[i].answers);
		history[i].tool_calls = arena_array(arena, 3, sizeof(struct tool_call));
		for (size_t k = 0; k < 3 && lines[i].calls[k]; k++) {
			history[i].tool_calls[k].id = view_of(lines[i].calls[k]);
			history[i].tool_calls_len = k + 1;
		}
	}
	enum fate fate = validate_boundary(history, len, arena, error);
	arena_reset(arena);
	return fate;
}

static void test_boundary(void **state)
{
	static const struct {
		struct line lines[6];
		const char *why; /* NULL: good */
	} cases[] = {
		{ { { ROLE_USER, NULL, { 0 } } }, NULL },
		{ { { ROLE_AGENT, NULL, { "a" } } }, NULL },
		{ { { ROLE_AGENT, NULL, { "a" } }, { ROLE_TOOL, "a", { 0 } }, { ROLE_AGENT, NULL, { 0 } } }, NULL },
		{ { { ROLE_AGENT, NULL, { "a", "b" } },
		    { ROLE_TOOL, "b", { 0 } },
		    { ROLE_TOOL, "a", { 0 } },
		    { ROLE_AGENT, NULL, { "c" } } },
		  NULL },
		{ { { ROLE_AGENT, NULL, { "a", "b" } }, { ROLE_TOOL, "b", { 0 } }, { ROLE_USER, NULL, { 0 } } },
		  NULL },
		{ { { ROLE_AGENT, NULL, { "a", "b" } }, { ROLE_TOOL, "b", { 0 } }, { ROLE_AGENT, NULL, { 0 } } },
		  "history[0].tool_calls[0] has no answer" },
		{ { { ROLE_USER, NULL, { "a" } } }, "history[0].tool_calls[0]" },
		{ { { ROLE_AGENT, NULL, { "a" } }, { ROLE_USER, "a", { 0 } }, { ROLE_AGENT, NULL, { 0 } } },
		  "history[0]" },
		/* an answer before its call is none */
		{ { { ROLE_TOOL, "a", { 0 } }, { ROLE_AGENT, NULL, { "a" } }, { ROLE_AGENT, NULL, { 0 } } },
		  "history[1].tool_calls[0]" },
		/* the same id twice: each call wants an answer of its own */
		{ { { ROLE_AGENT, NULL, { "a" } }, { ROLE_TOOL, "a", { 0 } }, { ROLE_AGENT, NULL, { "a" } } }, NULL },
		{ { { ROLE_AGENT, NULL, { "a" } }, { ROLE_AGENT, NULL, { "a" } }, { ROLE_TOOL, "a", { 0 } } },
		  "history[0].tool_calls[0]" },
		{ { { ROLE_AGENT, NULL, { "a", "a" } }, { ROLE_TOOL, "a", { 0 } }, { ROLE_AGENT, NULL, { 0 } } },
		  "history[0].tool_calls[0]" },
		{ { { ROLE_AGENT, NULL, { "", "x" } },
		    { ROLE_TOOL, "", { 0 } },
		    { ROLE_TOOL, "x", { 0 } },
		    { ROLE_AGENT, NULL, { 0 } } },
		  NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct error error = { 0 };
		size_t len = 0;
		/* SYSTEM (0) with nothing else is the end of the list */
		while (len < 6 && (cases[i].lines[len].role != ROLE_SYSTEM || cases[i].lines[len].calls[0]))
			len++;
		enum fate fate = boundary(cases[i].lines, len, &error);
		if ((fate == FATE_OK) != (cases[i].why == NULL))
			fail_msg("case %zu: %s", i, fate ? error.message : "taken");
		if (cases[i].why && (error.code != ERR_NOT_AT_BOUNDARY || !strstr(error.message, cases[i].why)))
			fail_msg("case %zu: %s", i, error.message);
	}
}

static int setup(void **state)
{
	(void)state;
	memset(long_text, 'x', sizeof(long_text));
	arena = arena_new(1 << 20);
	assert_non_null(arena);
	return arena == NULL;
}

static int teardown(void **state)
{
	(void)state;
	arena_free(arena);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lengths), cmocka_unit_test(test_numbers),  cmocka_unit_test(test_audience),
		cmocka_unit_test(test_maps),    cmocka_unit_test(test_json),     cmocka_unit_test(test_state),
		cmocka_unit_test(test_uuid),    cmocka_unit_test(test_approval), cmocka_unit_test(test_boundary),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
