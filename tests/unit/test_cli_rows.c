// links: cli schemas core
/* test_cli_rows.c - rows of the database as JSON and for people; copies that outlive their page; headers. */
#include "test_cli_output.h"

#include "cli/event_headers.h"
#include "cli/find.h"
#include "cli/person.h"
#include "cli/row_json.h"
#include "cli/screen.h"

#include <string.h>

static const char checkpoint_text[] = "019400a1-7c3e-7d21-9f00-5b1c2d3e4f50";

static struct checkpoint a_row(void)
{
	static struct view approvers[] = { { (const uint8_t *)"alice", 5 }, { (const uint8_t *)"bob", 3 } };
	static struct label labels[] = { { { (const uint8_t *)"team", 4 }, { (const uint8_t *)"db", 2 } } };
	struct checkpoint row = {
		.state = GATE_PENDING,
		.filled = true,
		.tenant = view_of("default"),
		.session_id = view_of("SESSION-808"),
		.gate_id = view_of("deploy"),
		.agent = view_of("planner"),
		.agent_version = view_of("1.4"),
		.requested_by = view_of("agent:planner"),
		.title = view_of("Run\x1b[31m it"),
		.suspend_seq = 7,
		.suspended_at = 1000000,
		.appended_at = 2000000,
		.has_risk = true,
		.risk = RISK_HIGH,
		.required_approvals = 2,
		.approvers = approvers,
		.approvers_len = 2,
		.labels = labels,
		.labels_len = 1,
		.expires_at = TIME_NONE,
		.on_expiry = ON_EXPIRY_HOLD,
		.decided_at = TIME_NONE,
		.approvals = 1,
		.version = 9,
		.changed_at = 3000000,
	};

	assert_true(uuid_parse(view_of(checkpoint_text), &row.id));
	return row;
}

static char *json_of(const struct checkpoint *row)
{
	struct capture capture;
	struct error error;
	struct json_line *line = json_line_new();

	row_json_checkpoint(line, row);
	capture_begin(&capture);
	assert_int_equal(json_line_write(line, &error), FATE_OK);
	return capture_end(&capture);
}

static void assert_in(const char *text, const char *part)
{
	if (strstr(text, part) == NULL)
		fail_msg("%s is not in %s", part, text);
}

static void a_row_as_json(void **state)
{
	struct checkpoint row = a_row();
	char *text = json_of(&row);

	(void)state;
	assert_in(text, "\"checkpoint_id\":\"019400a1-7c3e-7d21-9f00-5b1c2d3e4f50\",\"state\":\"PENDING\"");
	assert_in(text, "\"session_id\":\"SESSION-808\"");
	assert_in(text, "\"title\":\"Run\\u001b[31m it\"");
	assert_in(text, "\"risk\":\"HIGH\"");
	assert_in(text,
	          "\"required_approvals\":2,\"approvers\":[\"alice\",\"bob\"],\"labels\":{\"team\":\"db\"}");
	assert_in(text, "\"suspended_at\":1000000");
	assert_in(text, "\"expires_at\":null,\"on_expiry\":\"HOLD\"");
	assert_in(text, "\"verdict\":null");
	assert_int_equal(strchr(text, '\n') - text, strlen(text) - 1);
	free(text);
}

static void a_row_without_its_suspend(void **state)
{
	struct checkpoint row = a_row();

	(void)state;
	row.filled = false;
	row.state = GATE_UNCLAIMED;
	row.session_id = view_of("");
	char *text = json_of(&row);
	assert_in(text, "\"state\":\"UNCLAIMED\",\"session_id\":null");
	assert_null(strstr(text, "suspended_at"));
	free(text);
}

/* Each long is a time where there is always one, also that which stands for none elsewhere. */
static void the_least_time_as_json(void **state)
{
	struct checkpoint row = a_row();

	(void)state;
	row.suspended_at = INT64_MIN;
	char *text = json_of(&row);
	assert_in(text, "\"suspended_at\":-9223372036854775808,");
	free(text);
}

static void a_decision_as_json(void **state)
{
	struct decision decision = {
		.outcome = OUTCOME_REFUSED,
		.outcome_reason = view_of("wrong_digest: why"),
		.kind = DECISION_APPROVE,
		.decided_by = { view_of("local"), view_of("alice"), view_of("Alice") },
		.decided_at = 5,
		.stated_reason = view_of("checked"),
		.source = { view_of("cli"), view_of("host"), view_of("") },
		.id_text = view_of("ID"),
		.at = { .topic = "t", .partition = 1, .offset = 2, .appended_at = 3 },
	};
	struct decision *both[] = { &decision, &decision };
	struct buffer out;
	struct error error;

	(void)state;
	buffer_init(&out, 1 << 16);
	assert_int_equal(row_json_decisions(both, 2, &out, &error), FATE_OK);
	buffer_append_byte(&out, '\0');
	assert_false(buffer_failed(&out));
	assert_in((char *)out.data, "[{\"decision_id\":\"ID\",");
	assert_in((char *)out.data, "},{\"decision_id\":\"ID\",");
	assert_in((char *)out.data,
	          "\"decided_by\":{\"issuer\":\"local\",\"subject\":\"alice\",\"display\":\"Alice\"}");
	assert_in((char *)out.data, "\"outcome\":\"refused\",\"outcome_reason\":\"wrong_digest: why\"");
	assert_in((char *)out.data, "\"reason\":\"checked\",\"has_edits\":false,");
	assert_in((char *)out.data, "\"checkpoint_digest\":null");
	buffer_done(&out);
}

static void a_row_for_people(void **state)
{
	struct checkpoint row = a_row();
	struct buffer out;

	(void)state;
	screen_force_colours(0);
	buffer_init(&out, 1 << 16);
	person_checkpoint(&out, &row, 3601000000);
	buffer_append_byte(&out, '\0');
	assert_false(buffer_failed(&out));
	assert_in((char *)out.data, "019400a1-7c3e-7d21-9f00-5b1c2d3e4f50  PENDING\n");
	assert_in((char *)out.data, "title       Run\\x1b[31m it\n");
	assert_in((char *)out.data, "approvals   1 of 2\n");
	assert_in((char *)out.data, "approvers   alice, bob\n");
	assert_in((char *)out.data, "(60 min ago), suspend_seq 7\n");
	assert_null(strchr((char *)out.data, 0x1b));
	buffer_done(&out);
}

static void a_copy_outlives_its_page(void **state)
{
	struct arena *page = arena_new(1 << 16), *kept = arena_new(1 << 16);
	assert_non_null(page);
	assert_non_null(kept);
	struct checkpoint row = a_row(), *copy;

	(void)state;
	row.session_id = arena_copy(page, row.session_id);
	row.reason = VIEW_NULL;
	copy = checkpoint_copy(&row, kept);
	arena_free(page);
	assert_non_null(copy);
	assert_true(view_equal_text(copy->session_id, "SESSION-808"));
	assert_true(view_is_null(copy->reason)); /* null stays null */
	assert_true(view_equal_text(copy->approvers[1], "bob"));
	assert_true(view_equal_text(copy->labels[0].value, "db"));
	assert_ptr_not_equal(copy->approvers, row.approvers);
	arena_free(kept);
}

static const char *header(const struct event_headers *headers, const char *name)
{
	for (size_t i = 0; i < headers->len; i++)
		if (!strcmp(headers->list[i].name, name))
			return (const char *)headers->list[i].value.data;
	return "";
}

static void headers_of_events(void **state)
{
	struct event_headers headers;
	struct uuid id;

	(void)state;
	assert_true(uuid_parse(view_of(checkpoint_text), &id));
	unsetenv("TRACEPARENT");
	event_headers_fill(&headers, &id, "fermata.v1.SuspendEvent", 1000000);
	assert_int_equal(headers.len, 6);
	assert_string_equal(header(&headers, "ce_specversion"), "1.0");
	assert_string_equal(header(&headers, "ce_id"), checkpoint_text);
	assert_string_equal(header(&headers, "ce_type"), "fermata.v1.SuspendEvent");
	assert_string_equal(header(&headers, "ce_time"), "1970-01-01T00:00:01.000000Z");
	assert_string_equal(header(&headers, "content-type"), "application/avro");
	setenv("TRACEPARENT", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", 1);
	setenv("TRACESTATE", "a=b", 1);
	event_headers_fill(&headers, &id, "fermata.v1.SuspendEvent", 1000000);
	assert_string_equal(header(&headers, "traceparent"), getenv("TRACEPARENT"));
	assert_string_equal(header(&headers, "tracestate"), "a=b");
	setenv("TRACEPARENT", "00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
	       1); /* hex is lower case */
	event_headers_fill(&headers, &id, "fermata.v1.SuspendEvent", 1000000);
	assert_int_equal(headers.len, 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_row_as_json),          cmocka_unit_test(a_row_without_its_suspend),
		cmocka_unit_test(the_least_time_as_json), cmocka_unit_test(a_decision_as_json),
		cmocka_unit_test(a_row_for_people),       cmocka_unit_test(a_copy_outlives_its_page),
		cmocka_unit_test(headers_of_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
