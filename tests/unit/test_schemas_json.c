// links: schemas random_records core
/* Suspends out of JSON, values of --edit, and the small writer. */
#include "schemas/codec.h"
#include "schemas/json.h"
#include "tests/contract/random_records.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct arena *arena;

static const char least[] =
	"{\"session_id\":\"s\",\"agent\":\"a\",\"agent_version\":\"1\","
	"\"step\":{\"graph\":\"g\",\"node\":\"n\",\"resume_at\":\"r\",\"path\":[],\"attempt\":0},"
	"\"history\":[],\"config\":{},\"tool_permissions\":{},"
	"\"gate\":{\"gate_id\":\"i\",\"title\":\"t\",\"requested_by\":\"b\",\"labels\":{}}}";

/* The text with the first `old` replaced. */
static const char *with(const char *text, const char *old, const char *new)
{
	const char *at = strstr(text, old);

	assert_non_null(at);
	return arena_printf(arena, "%.*s%s%s", (int)(at - text), text, new, at + strlen(old));
}

static enum fate take(const char *text, struct suspend_event *event, struct error *error)
{
	struct suspend_filled filled;

	return suspend_from_json(view_of(text), arena, event, &filled, error);
}

static void good(const char *text, struct suspend_event *event)
{
	struct error error;

	if (take(text, event, &error) != FATE_OK)
		fail_msg("%s: %s", text, error.message);
}

static void test_fills(void **state)
{
	struct error error;
	struct suspend_event event, second;
	struct suspend_filled filled;

	(void)state;
	assert_int_equal(suspend_from_json(view_of(least), arena, &event, &filled, &error), FATE_OK);
	assert_true(filled.checkpoint_id && filled.suspended_at && filled.suspend_seq && filled.salt);
	assert_int_equal(event.checkpoint_id_text.len, 36);
	assert_int_equal(event.checkpoint_id_text.data[14], '7');
	assert_true(event.suspend_seq == event.suspended_at);
	assert_true(event.suspended_at > INT64_C(1700000000000000));
	assert_true(view_equal_text(event.tenant, "default"));
	assert_int_equal(event.gate.required_approvals, 1);
	assert_int_equal(event.gate.on_expiry, ON_EXPIRY_REJECT);
	assert_true(event.gate.expires_at == TIME_NONE);
	assert_false(event.state.present || event.gate.action.present);
	good(least, &second);
	assert_memory_not_equal(event.salt, second.salt, SALT_LEN);
	good(with(least, "{\"session_id\"", "{\"suspended_at\":7,\"session_id\""), &event);
	assert_true(event.suspend_seq == 7);
	arena_reset(arena);
}

static void test_unions(void **state)
{
	struct suspend_event event;
	const char *text = with(least, "\"config\":{}",
	                        "\"config\":{\"n\":null,\"t\":true,\"f\":{\"boolean\":false},\"l\":"
	                        "9007199254740993,\"L\":{\"long\":-1},"
	                        "\"d\":16.0,\"D\":{\"double\":3},\"nan\":{\"double\":\"NaN\"},\"inf\":{"
	                        "\"double\":\"-Infinity\"},\"s\":\"NaN\","
	                        "\"S\":{\"string\":\"x\"},\"a\":[\"x\",\"\\u0000\"],\"A\":{\"array\":[]}}");

	(void)state;
	good(text, &event);
	static const enum config_kind kinds[] = { CONFIG_NULL,   CONFIG_BOOLEAN, CONFIG_BOOLEAN, CONFIG_LONG,
		                                      CONFIG_LONG,   CONFIG_DOUBLE,  CONFIG_DOUBLE,  CONFIG_DOUBLE,
		                                      CONFIG_DOUBLE, CONFIG_STRING,  CONFIG_STRING,  CONFIG_STRINGS,
		                                      CONFIG_STRINGS };
	assert_int_equal(event.config_len, 13);
	for (size_t i = 0; i < 13; i++)
		assert_int_equal(event.config[i].kind, kinds[i]);
	assert_true(event.config[3].value.number == INT64_C(9007199254740993));
	assert_true(event.config[6].value.real == 3.0);
	assert_true(isnan(event.config[7].value.real));
	assert_true(event.config[8].value.real == -(double)INFINITY);
	assert_true(view_equal(event.config[11].value.strings.items[1], VIEW_LITERAL("\0")));

	text = with(least, "\"history\":[]",
	            "\"history\":[{\"role\":\"TOOL\",\"content\":\"\\u0000\",\"name\":{\"string\":\"n\"},\"tool_"
	            "call_id\":"
	            "\"c\",\"tool_calls\":[{\"id\":\"i\",\"name\":\"n\",\"arguments\":\"[1e400]\"},{\"id\":\"j\","
	            "\"name\":\"n\","
	            "\"arguments\":{\"a\":[1,2.5]}}],\"at\":{\"long\":5}}]");
	text = with(text, "{\"session_id\"",
	            "{\"state\":{\"fermata.v1.AppState\":{\"schema\":\"s\",\"encoding\":\"AVRO\",\"fingerprint\":"
	            "{\"bytes\":"
	            "\"\\u0000\\u00ff345678\"},\"body\":\"\\u0080x\"}},\"session_id\"");
	text =
		with(text, "\"title\"",
	         "\"action\":{\"Action\":{\"tool\":\"t\",\"arguments\":[],\"risk\":\"HIGH\",\"summary\":\"\"}},"
	         "\"expires_at\":{\"long\":9},\"approvers\":[\"x\"],\"on_expiry\":\"HOLD\",\"title\"");
	good(text, &event);
	assert_true(view_equal_text(event.history[0].name, "n"));
	assert_true(event.history[0].at == 5);
	assert_true(view_equal(event.history[0].content, VIEW_LITERAL("\0")));
	assert_true(view_equal_text(event.history[0].tool_calls[0].arguments, "[1e400]"));
	assert_true(view_equal_text(event.history[0].tool_calls[1].arguments, "{\"a\":[1,2.5]}"));
	assert_true(view_equal(event.state.fingerprint, VIEW_LITERAL("\0\xff"
	                                                             "345678")));
	assert_true(view_equal(event.state.body, VIEW_LITERAL("\x80x")));
	assert_true(view_equal_text(event.gate.action.arguments, "[]"));
	assert_int_equal(event.gate.action.risk, RISK_HIGH);
	assert_true(event.gate.expires_at == 9);
	assert_int_equal(event.gate.on_expiry, ON_EXPIRY_HOLD);
	arena_reset(arena);
}

static void test_refused(void **state)
{
	static const struct {
		const char *old, *new, *why;
	} cases[] = {
		{ "\"session_id\":\"s\",", "", "session_id is missing" },
		{ "\"session_id\":\"s\"", "\"session_id\":3", "session_id must be a string" },
		{ "\"session_id\"", "\"sessionid\"", "sessionid is not a field of the record" },
		{ "\"session_id\"", "\"session id \\u00fc\"", "(a name that is not shown) is not a field" },
		{ "\"agent\"", "\"session_id\":\"s\",\"agent\"", "a key stands there twice" },
		{ "\"labels\":{}", "\"labels\":{\"secret\":3}", "gate.labels[0] must be a string" },
		{ ",\"labels\":{}", "", "gate.labels is missing" },
		{ "\"labels\":{}", "\"labels\":[]", "gate.labels must be an object" },
		{ "\"labels\":{}", "\"labels\":{},\"required_approvals\":2147483648",
		  "gate.required_approvals is out of range" },
		{ "\"labels\":{}", "\"labels\":{},\"on_expiry\":\"NEVER\"",
		  "gate.on_expiry is not one of the symbols" },
		{ "\"labels\":{}", "\"labels\":{},\"action\":{\"tool\":\"t\"}", "gate.action.arguments is missing" },
		{ "\"labels\":{}", "\"labels\":{},\"action\":{\"tool\":\"t\",\"arguments\":3}",
		  "gate.action.arguments must be a string" },
		{ "\"history\":[]", "\"history\":[{\"role\":\"AGENT\",\"content\":\"\"}]",
		  "history[0].tool_calls is missing" },
		{ "\"history\":[]", "\"history\":[{\"role\":\"agent\"}]",
		  "history[0].role is not one of the symbols" },
		{ "\"history\":[]", "\"history\":[3]", "history[0] must be an object" },
		{ "\"history\":[]", "\"history\":{}", "history must be an array" },
		{ "\"attempt\":0", "\"attempt\":0.5", "step.attempt must be an integer" },
		{ "\"path\":[]", "\"path\":[\"a\",null]", "step.path[1] must be a string" },
		{ "\"config\":{}", "\"config\":{\"secret\":{\"a\":1,\"b\":2}}", "config[0] must be null, true" },
		{ "\"config\":{}", "\"config\":{\"secret\":{\"float\":1}}", "config[0] names a branch" },
		{ "\"config\":{}", "\"config\":{\"secret\":{\"long\":1.5}}",
		  "config[0] is not a value of the branch" },
		{ "\"config\":{}", "\"config\":{\"secret\":[\"a\",1]}", "config[0][1] must be a string" },
		{ "\"config\":{}", "\"config\":{\"secret\":9223372036854775808}", "a number is too large" },
		{ "\"tool_permissions\":{}", "\"tool_permissions\":{\"secret\":\"MAYBE\"}",
		  "tool_permissions[0] is not one" },
		{ "{\"session_id\"", "{\"checkpoint_id\":\"x\",\"session_id\"", "checkpoint_id has 1 bytes" },
		{ "{\"session_id\"", "{\"salt\":\"x\",\"session_id\"", "salt must have 16 bytes" },
		{ "{\"session_id\"", "{\"salt\":\"\\u0100\",\"session_id\"", "none above U+00FF" },
		{ "{\"session_id\"", "{\"state\":3,\"session_id\"", "state must be an object" },
		{ "{\"session_id\"", "[\"session_id\"", "the line is not a JSON object" },
		{ "\"step\":{", "\"step\":3,\"x\":{", "x is not a field" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct error error;
		struct suspend_event event;
		if (take(with(least, cases[i].old, cases[i].new), &event, &error) != FATE_REJECT)
			fail_msg("case %zu: taken", i);
		if (error.code != ERR_INVALID || !strstr(error.message, cases[i].why) ||
		    strstr(error.message, "secret"))
			fail_msg("case %zu: %s", i, error.message);
		arena_reset(arena);
	}
}

static void test_refused_lines(void **state)
{
	static const char *const lines[] = { "", " ", "null", "3", "[]", "{", "{}}", "\xff", "{\"a\":\xff}" };
	struct error error;
	struct suspend_event event;

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		assert_int_equal(take(lines[i], &event, &error), FATE_REJECT);
		assert_int_equal(error.code, ERR_INVALID);
	}
	assert_int_equal(take(NULL, &event, &error), FATE_REJECT);
	arena_reset(arena);
}

/* Out as JSON, in again, out again. (A config key with U+0000 is what jansson cannot read, and NaN comes
 * back as a string: both are left out.) */
static bool is_plain(const struct suspend_event *event)
{
	for (size_t i = 0; i < event->config_len; i++) {
		if (view_has_nul(event->config[i].key) ||
		    (event->config[i].kind == CONFIG_DOUBLE && !isfinite(event->config[i].value.real)))
			return false;
	}
	for (size_t i = 0; i < event->tool_permissions_len; i++) {
		if (view_has_nul(event->tool_permissions[i].tool))
			return false;
	}
	return true;
}

static void test_round(void **state)
{
	struct dice dice = { 77, arena };
	int plain = 0;

	(void)state;
	for (int i = 0; i < 300; i++) {
		struct error error;
		struct suspend_event event, back;
		struct suspend_filled filled;
		struct buffer before, after;
		random_suspend(&dice, &event);
		buffer_init(&before, SIZE_MAX);
		buffer_init(&after, SIZE_MAX);
		assert_int_equal(suspend_to_json(&event, &before, &error), FATE_OK);
		if (is_plain(&event)) {
			if (suspend_from_json(buffer_view(&before), arena, &back, &filled, &error) != FATE_OK)
				fail_msg("%s", error.message);
			assert_int_equal(suspend_to_json(&back, &after, &error), FATE_OK);
			assert_true(view_equal(buffer_view(&before), buffer_view(&after)));
			plain++;
		}
		buffer_done(&before);
		buffer_done(&after);
		arena_reset(arena);
	}
	assert_true(plain > 30);
}

static void test_edit(void **state)
{
	static const struct {
		const char *text;
		enum config_kind kind;
	} cases[] = {
		{ "null", CONFIG_NULL },       { "true", CONFIG_BOOLEAN }, { " 12 ", CONFIG_LONG },
		{ "1.5", CONFIG_DOUBLE },      { "1e2", CONFIG_DOUBLE },   { "\"12\"", CONFIG_STRING },
		{ "twelve", CONFIG_STRING },   { "", CONFIG_STRING },      { "True", CONFIG_STRING },
		{ "[\"a\"]", CONFIG_STRINGS }, { "[a]", CONFIG_STRING },   { "{\"double\":\"NaN\"}", CONFIG_DOUBLE },
		{ "NaN", CONFIG_STRING },
	};
	static const char *const bad[] = { "[1]", "{}", "{\"a\":1,\"b\":2}", "9223372036854775808", "1e400" };
	struct error error;
	struct config_entry entry;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(config_entry_from_text(view_of("k"), view_of(cases[i].text), arena, &entry, &error),
		                 FATE_OK);
		if (entry.kind != cases[i].kind)
			fail_msg("%s: %d", cases[i].text, entry.kind);
		assert_true(view_equal_text(entry.key, "k"));
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(config_entry_from_text(view_of("k"), view_of(bad[i]), arena, &entry, &error),
		                 FATE_REJECT);
		assert_int_equal(error.code, ERR_INVALID);
	}
	assert_int_equal(config_entry_from_text(view_of("k"), view_of("\xff"), arena, &entry, &error),
	                 FATE_REJECT);
	assert_int_equal(config_entry_from_text(view_of("\xff"), view_of("1"), arena, &entry, &error),
	                 FATE_REJECT);
	arena_reset(arena);
}

static void test_line(void **state)
{
	struct error error;
	struct buffer out;
	struct view texts[] = { VIEW_LITERAL("a"), VIEW_NULL };
	struct label labels[] = { { VIEW_LITERAL("\0"), VIEW_LITERAL("\"") } };
	struct json_line *line = json_line_new();

	(void)state;
	buffer_init(&out, 1000);
	buffer_append_text(&out, ">");
	json_line_text(line, "text", VIEW_LITERAL("x\0\x1f\x7f\\\n"));
	json_line_text(line, "null", VIEW_NULL);
	json_line_text(line, "bad", VIEW_LITERAL("a\xff\xc3"));
	json_line_number(line, "number", INT64_MIN);
	json_line_time(line, "time", TIME_NONE);
	json_line_time(line, "time2", 5);
	json_line_flag(line, "flag", true);
	json_line_bytes(line, "bytes", VIEW_LITERAL("\0\x80\xff\""));
	json_line_texts(line, "texts", texts, 2);
	json_line_map(line, "map", labels, 1);
	json_line_raw(line, "raw", VIEW_LITERAL("{\"n\":1e400,\"n\":2}"));
	assert_int_equal(json_line_end(line, &out, &error), FATE_OK);
	assert_true(view_equal_text(
		buffer_view(&out),
		">{\"text\":\"x\\u0000\\u001f\x7f\\\\\\n\",\"null\":null,\"bad\":\"a\xef\xbf\xbd\xef\xbf\xbd\","
		"\"number\":-9223372036854775808,\"time\":null,\"time2\":5,\"flag\":true,"
		"\"bytes\":\"\\u0000\xc2\x80\xc3\xbf\\\"\",\"texts\":[\"a\",null],\"map\":{\"\\u0000\":\"\\\"\"},"
		"\"raw\":{\"n\":1e400,\"n\":2}}"));
	buffer_done(&out);
	buffer_init(&out, 3);
	assert_int_equal(json_line_end(json_line_new(), &out, &error), FATE_OK);
	assert_true(view_equal_text(buffer_view(&out), "{}"));
	assert_int_equal(json_line_end(json_line_new(), &out, &error), FATE_REJECT);
	buffer_done(&out);
}

static int setup(void **state)
{
	(void)state;
	arena = arena_new((size_t)64 << 20);
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
		cmocka_unit_test(test_fills),         cmocka_unit_test(test_unions), cmocka_unit_test(test_refused),
		cmocka_unit_test(test_refused_lines), cmocka_unit_test(test_round),  cmocka_unit_test(test_edit),
		cmocka_unit_test(test_line),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
