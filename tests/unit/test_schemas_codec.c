// links: schemas random_records core
/* Records made at random go out and come back; sizes, kinds and threads; edits compared. */
#include "schemas/codec.h"
#include "schemas/json.h"
#include "schemas/schema.h"
#include "tests/contract/random_records.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ROUNDS 300

static struct codec *codec;
static struct arena *arena;

static int setup(void **state)
{
	struct error error;
	struct codec_settings settings = { 0 };

	(void)state;
	arena = arena_new((size_t)64 << 20);
	assert_non_null(arena);
	return codec_new(&codec, &settings, &error) != FATE_OK;
}

static int teardown(void **state)
{
	(void)state;
	codec_free(codec);
	arena_free(arena);
	return 0;
}

static void must(enum fate fate, const struct error *error)
{
	if (fate != FATE_OK)
		fail_msg("%s (%s)", error->message, error_code_name(error->code));
}

/* Two listings of the same record are the same text; -0.0, NaN and NUL are told apart in it. */
static void assert_same(struct buffer *a, struct buffer *b)
{
	if (!view_equal(buffer_view(a), buffer_view(b)))
		fail_msg("not the same:\n%.*s\n%.*s", (int)a->len, (const char *)a->data, (int)b->len,
		         (const char *)b->data);
	buffer_reset(a);
	buffer_reset(b);
}

static void test_suspends(void **state)
{
	struct dice dice = { 1, arena };
	struct buffer value, again, before, after;

	(void)state;
	buffer_init(&value, SIZE_MAX);
	buffer_init(&again, SIZE_MAX);
	buffer_init(&before, SIZE_MAX);
	buffer_init(&after, SIZE_MAX);
	for (int i = 0; i < ROUNDS; i++) {
		struct error error;
		struct suspend_event event, back;
		struct view body;
		struct guarded_body guarded;
		struct action action;
		random_suspend(&dice, &event);
		must(codec_put_suspend(codec, &event, &value, &error), &error);
		must(codec_take_suspend(codec, buffer_view(&value), arena, &back, &body, &error), &error);
		assert_memory_equal(&back.checkpoint_id, &event.checkpoint_id, sizeof(struct uuid));
		must(codec_guard_suspend_body(body, &guarded, &error), &error);
		codec_read_action(&guarded, &action);
		assert_int_equal(action.present, event.gate.action.present);
		must(suspend_to_json(&event, &before, &error), &error);
		must(suspend_to_json(&back, &after, &error), &error);
		assert_same(&before, &after);
		must(codec_put_suspend(codec, &back, &again, &error), &error);
		assert_same(&value, &again);
		arena_reset(arena);
	}
	buffer_done(&value);
	buffer_done(&again);
	buffer_done(&before);
	buffer_done(&after);
}

static void test_approvals(void **state)
{
	struct dice dice = { 2, arena };
	struct buffer value, before, after;

	(void)state;
	buffer_init(&value, SIZE_MAX);
	buffer_init(&before, SIZE_MAX);
	buffer_init(&after, SIZE_MAX);
	for (int i = 0; i < ROUNDS; i++) {
		struct error error;
		struct approval_event event, back;
		struct view body;
		random_approval(&dice, &event);
		must(codec_put_approval(codec, &event, &value, &error), &error);
		must(codec_take_approval(codec, buffer_view(&value), arena, &back, &body, &error), &error);
		assert_int_equal(body.len, value.len - 10);
		must(approval_to_json(&event, &before, &error), &error);
		must(approval_to_json(&back, &after, &error), &error);
		assert_same(&before, &after);
		assert_true(edits_equal(&event.edits, &back.edits));
		buffer_reset(&value);
		arena_reset(arena);
	}
	buffer_done(&value);
	buffer_done(&before);
	buffer_done(&after);
}

static void test_resumes(void **state)
{
	struct dice dice = { 3, arena };
	struct buffer suspend, value, before, after;

	(void)state;
	buffer_init(&suspend, SIZE_MAX);
	buffer_init(&value, SIZE_MAX);
	buffer_init(&before, SIZE_MAX);
	buffer_init(&after, SIZE_MAX);
	for (int i = 0; i < ROUNDS; i++) {
		struct error error;
		struct resume_event event, back, head;
		random_resume(&dice, &event);
		must(codec_put_suspend(codec, &event.suspend, &suspend, &error), &error);
		struct view body = { suspend.data + 10, suspend.len - 10 };
		must(codec_put_resume(codec, &event, body, &value, &error), &error);
		must(codec_take_resume(codec, buffer_view(&value), arena, &back, &error), &error);
		must(resume_to_json(&event, &before, &error), &error);
		must(resume_to_json(&back, &after, &error), &error);
		assert_same(&before, &after);
		must(codec_take_resume_head(codec, buffer_view(&value), arena, &head, &error), &error);
		assert_memory_equal(&head.resume_id, &event.resume_id, sizeof(struct uuid));
		assert_int_equal(head.verdict, event.verdict);
		assert_int_equal(head.decisions_len, event.decisions_len);
		buffer_reset(&suspend);
		buffer_reset(&value);
		arena_reset(arena);
	}
	buffer_done(&suspend);
	buffer_done(&value);
	buffer_done(&before);
	buffer_done(&after);
}

static void test_gates(void **state)
{
	struct dice dice = { 4, arena };
	struct buffer value, before, after;

	(void)state;
	buffer_init(&value, SIZE_MAX);
	buffer_init(&before, SIZE_MAX);
	buffer_init(&after, SIZE_MAX);
	for (int i = 0; i < ROUNDS; i++) {
		struct error error;
		struct gate_event event, back;
		random_gate(&dice, &event);
		must(codec_put_gate(codec, &event, &value, &error), &error);
		must(codec_take_gate(codec, buffer_view(&value), arena, &back, &error), &error);
		must(gate_to_json(&event, &before, &error), &error);
		must(gate_to_json(&back, &after, &error), &error);
		assert_same(&before, &after);
		buffer_reset(&value);
		arena_reset(arena);
	}
	buffer_done(&value);
	buffer_done(&before);
	buffer_done(&after);
}

static void test_edits(void **state)
{
	struct dice dice = { 5, arena };
	struct buffer body;

	(void)state;
	buffer_init(&body, SIZE_MAX);
	for (int i = 0; i < ROUNDS; i++) {
		struct error error;
		struct edits edits, back;
		random_edits(&dice, &edits);
		if (!edits.present)
			continue;
		must(codec_put_edits(codec, &edits, &body, &error), &error);
		must(codec_take_edits(codec, buffer_view(&body), arena, &back, &error), &error);
		assert_true(edits_equal(&edits, &back));
		for (size_t len = 0; len < body.len; len++)
			assert_int_equal(codec_take_edits(codec, (struct view){ body.data, len }, arena, &back, &error),
			                 FATE_REJECT);
		buffer_reset(&body);
		arena_reset(arena);
	}
	buffer_done(&body);
}

static void test_edits_equal(void **state)
{
	struct config_entry a[] = {
		{ .key = VIEW_LITERAL("x"), .kind = CONFIG_LONG, .value.number = 1 },
		{ .key = VIEW_LITERAL("y"), .kind = CONFIG_DOUBLE, .value.real = 0.0 },
	};
	struct config_entry b[] = { a[1], a[0] };
	struct edits none = { 0 }, x = { true, a, 2, VIEW_NULL }, y = { true, b, 2, VIEW_NULL };

	(void)state;
	assert_true(edits_equal(&none, &none));
	assert_false(edits_equal(&none, &x));
	assert_true(edits_equal(&x, &y)); /* order does not matter */
	b[0].value.real = -0.0;
	assert_false(edits_equal(&x, &y));
	b[0] = a[1];
	b[1].kind = CONFIG_BOOLEAN;
	assert_false(edits_equal(&x, &y));
	y.config_len = 1;
	assert_false(edits_equal(&x, &y));
	y = x;
	y.action_arguments = VIEW_LITERAL("1");
	assert_false(edits_equal(&x, &y));
	x.action_arguments = VIEW_LITERAL("1");
	assert_true(edits_equal(&x, &y));
}

static void test_record_bytes(void **state)
{
	struct error error;
	struct codec *small;
	struct codec_settings settings = { .record_bytes = 3000 };
	struct dice dice = { 6, arena };
	struct suspend_event event, back;
	struct view body;
	struct buffer value;

	(void)state;
	must(codec_new(&small, &settings, &error), &error);
	buffer_init(&value, SIZE_MAX);
	random_suspend(&dice, &event);
	event.history_len = 0;
	event.config_len = 0;
	must(codec_put_suspend(small, &event, &value, &error), &error);
	must(codec_take_suspend(small, buffer_view(&value), arena, &back, &body, &error), &error);
	struct history_entry entry = { .content = { arena_alloc(arena, 3000), 3000 }, .at = TIME_NONE };
	event.history = &entry;
	event.history_len = 1;
	buffer_reset(&value);
	/* U+0000 three thousand times is text; it is only too much */
	assert_int_equal(codec_put_suspend(small, &event, &value, &error), FATE_REJECT);
	assert_int_equal(error.code, ERR_TOO_LARGE);
	assert_int_equal(value.len, 0);
	must(codec_put_suspend(codec, &event, &value, &error), &error);
	assert_int_equal(codec_take_suspend(small, buffer_view(&value), arena, &back, &body, &error),
	                 FATE_REJECT);
	assert_int_equal(error.code, ERR_TOO_LARGE);
	assert_non_null(strstr(error.message, "limits.record_bytes allows 3000"));
	buffer_done(&value);
	codec_free(small);
	arena_reset(arena);
}

/* The record of another topic is well known, and is not what is wanted here. */
static void test_another_record(void **state)
{
	struct error error;
	struct dice dice = { 7, arena };
	struct approval_event event;
	struct suspend_event back;
	struct view body;
	struct buffer value;

	(void)state;
	buffer_init(&value, SIZE_MAX);
	random_approval(&dice, &event);
	must(codec_put_approval(codec, &event, &value, &error), &error);
	assert_int_equal(codec_take_suspend(codec, buffer_view(&value), arena, &back, &body, &error),
	                 FATE_REJECT);
	assert_int_equal(error.code, ERR_UNKNOWN_SCHEMA);
	assert_non_null(strstr(error.message, "is ApprovalEvent, where SuspendEvent is wanted"));
	buffer_done(&value);
	arena_reset(arena);
}

/* What a reader refuses, a writer does not write, and takes back what it had begun. */
static void test_writer_checks(void **state)
{
	struct error error;
	struct dice dice = { 8, arena };
	struct suspend_event event;
	struct approval_event approval;
	struct buffer value;

	(void)state;
	buffer_init(&value, SIZE_MAX);
	buffer_append_text(&value, "before");
	random_suspend(&dice, &event);
	event.session_id = VIEW_LITERAL("\xff");
	assert_int_equal(codec_put_suspend(codec, &event, &value, &error), FATE_REJECT);
	assert_int_equal(error.code, ERR_MALFORMED);
	assert_non_null(strstr(error.message, "session_id"));
	event.session_id = VIEW_LITERAL("");
	assert_int_equal(codec_put_suspend(codec, &event, &value, &error), FATE_REJECT);
	assert_int_equal(error.code, ERR_INVALID);
	random_approval(&dice, &approval);
	approval.checkpoint_id_text = VIEW_LITERAL("x");
	assert_int_equal(codec_put_approval(codec, &approval, &value, &error), FATE_REJECT);
	assert_int_equal(error.code, ERR_INVALID);
	assert_true(view_equal_text(buffer_view(&value), "before"));
	buffer_done(&value);
	arena_reset(arena);
}

/* Ceilings: of the buffer that is written to, of the arena that is read into. Nobody crashes. */
static void test_ceilings(void **state)
{
	struct error error;
	struct dice dice = { 9, arena };
	struct suspend_event event, back;
	struct view body;
	struct buffer value, narrow;
	struct arena *tiny = arena_new(64);
	assert_non_null(tiny);

	(void)state;
	random_suspend(&dice, &event);
	buffer_init(&value, SIZE_MAX);
	buffer_init(&narrow, 100);
	must(codec_put_suspend(codec, &event, &value, &error), &error);
	assert_int_equal(codec_put_suspend(codec, &event, &narrow, &error), FATE_REJECT);
	assert_int_equal(error.code, ERR_TOO_LARGE);
	assert_int_equal(codec_take_suspend(codec, buffer_view(&value), tiny, &back, &body, &error), FATE_RETRY);
	assert_int_equal(error.code, ERR_MEMORY);
	must(codec_take_suspend(codec, buffer_view(&value), arena, &back, &body, &error), &error);
	buffer_done(&value);
	buffer_done(&narrow);
	arena_free(tiny);
	arena_reset(arena);
}

static void *work(void *seed)
{
	struct error error;
	struct codec_settings settings = { 0 };
	struct codec *own;
	struct arena *room = arena_new((size_t)64 << 20);
	assert_non_null(room);
	struct dice dice = { (uint64_t)(uintptr_t)seed, room };
	struct buffer value;
	intptr_t good = 0;

	buffer_init(&value, SIZE_MAX);
	if (codec_new(&own, &settings, &error) != FATE_OK)
		return NULL;
	for (int i = 0; i < 50; i++) {
		struct suspend_event event, back;
		struct view body;
		random_suspend(&dice, &event);
		good += codec_put_suspend(own, &event, &value, &error) == FATE_OK &&
		        codec_take_suspend(own, buffer_view(&value), room, &back, &body, &error) == FATE_OK &&
		        view_equal(back.session_id, event.session_id);
		buffer_reset(&value);
		arena_reset(room);
	}
	codec_free(own);
	buffer_done(&value);
	arena_free(room);
	return (void *)good;
}

static void test_threads(void **state)
{
	pthread_t threads[4];

	(void)state;
	for (uintptr_t i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, work, (void *)(i + 10)), 0);
	for (size_t i = 0; i < 4; i++) {
		void *good;
		pthread_join(threads[i], &good);
		assert_int_equal((intptr_t)good, 50);
	}
}

/* Claims of counts in a record of a hundred bytes must not cost memory: the guard sees them first. */
static void test_huge_claims(void **state)
{
	struct error error;
	struct dice dice = { 11, arena };
	struct suspend_event event, back;
	struct view body;
	struct buffer value;

	(void)state;
	buffer_init(&value, SIZE_MAX);
	random_suspend(&dice, &event);
	event.step.path_len = event.history_len = event.config_len = 0;
	must(codec_put_suspend(codec, &event, &value, &error), &error);
	for (size_t at = 10; at + 9 < value.len; at++) {
		uint8_t saved[9];
		memcpy(saved, value.data + at, 9);
		memcpy(value.data + at, "\xfe\xff\xff\xff\xff\xff\xff\xff\x7f", 9);
		enum fate fate = codec_take_suspend(codec, buffer_view(&value), arena, &back, &body, &error);
		assert_true(fate == FATE_REJECT || fate == FATE_OK); /* inside of salt it is as good as any */
		memcpy(value.data + at, saved, 9);
		arena_reset(arena);
	}
	buffer_done(&value);
}

/* -- our structs against the schemas -- */

static struct schema *schema_of(enum record_type type)
{
	struct error error;
	struct schema *schema;

	must(schema_parse(&schema, codec_schema_text(type), &error), &error);
	return schema;
}

static const char *name_at(const char *type, int i)
{
	if (strcmp(type, "fermata.v1.Role") == 0)
		return role_name((enum role)i);
	if (strcmp(type, "fermata.v1.Permission") == 0)
		return permission_name((enum permission)i);
	if (strcmp(type, "fermata.v1.Encoding") == 0)
		return encoding_name((enum encoding)i);
	if (strcmp(type, "fermata.v1.Risk") == 0)
		return risk_name((enum risk)i);
	if (strcmp(type, "fermata.v1.OnExpiry") == 0)
		return on_expiry_name((enum on_expiry)i);
	if (strcmp(type, "fermata.v1.DecisionKind") == 0)
		return decision_kind_name((enum decision_kind)i);
	if (strcmp(type, "fermata.v1.Verdict") == 0)
		return verdict_name((enum verdict)i);
	if (strcmp(type, "fermata.v1.GateState") == 0)
		return gate_state_name((enum gate_state)i);
	return "no such enum";
}

/* The numbers of core/records.h are the wire's: each symbol of each enum stands where its name is. */
static void test_enums(void **state)
{
	(void)state;
	for (int type = RECORD_SUSPEND; type <= RECORD_GATE; type++) {
		struct schema *schema = schema_of((enum record_type)type);
		for (size_t i = 0; i < schema->named_len; i++) {
			const struct schema_type *named = schema->named[i];
			for (size_t k = 0; named->kind == SCHEMA_ENUM && k < named->len; k++)
				assert_string_equal(named->symbols[k], name_at(named->name, (int)k));
		}
		schema_free(schema);
	}
}

/* The bytes of a suspend are copied into the resume: the fields in the middle must be the same ones. */
static void test_resume_holds_suspend(void **state)
{
	struct schema *suspend = schema_of(RECORD_SUSPEND), *resume = schema_of(RECORD_RESUME);

	(void)state;
	long first = schema_find(resume->root, suspend->root->fields[0].name);
	assert_int_equal(first, 4);
	assert_int_equal(resume->root->len, suspend->root->len + 8);
	for (size_t i = 0; i < suspend->root->len; i++) {
		const struct schema_field *a = &suspend->root->fields[i], *b = &resume->root->fields[4 + i];
		struct error error;
		struct buffer x, y;
		buffer_init(&x, SIZE_MAX);
		buffer_init(&y, SIZE_MAX);
		assert_string_equal(a->name, b->name);
		must(schema_wire_text(suspend, a->type, &x, &error), &error);
		must(schema_wire_text(resume, b->type, &y, &error), &error);
		assert_same(&x, &y);
		buffer_done(&x);
		buffer_done(&y);
	}
	schema_free(suspend);
	schema_free(resume);
}

static void test_strict_boundary(void **state)
{
	struct error error;
	struct codec *strict;
	struct codec_settings settings = { .strict_boundary = true };
	struct dice dice = { 12, arena };
	struct suspend_event event, back;
	struct view body;
	struct tool_call call = { VIEW_LITERAL("c"), VIEW_LITERAL("t"), VIEW_LITERAL("{}") };
	struct history_entry history[2] = {
		{ .role = ROLE_AGENT, .tool_calls = &call, .tool_calls_len = 1, .at = 1 },
		{ .role = ROLE_AGENT, .at = 2 }
	};
	struct buffer value;

	(void)state;
	must(codec_new(&strict, &settings, &error), &error);
	buffer_init(&value, SIZE_MAX);
	random_suspend(&dice, &event);
	event.history = history;
	event.history_len = 2;
	must(codec_put_suspend(codec, &event, &value, &error), &error);
	must(codec_take_suspend(codec, buffer_view(&value), arena, &back, &body, &error), &error);
	assert_int_equal(codec_take_suspend(strict, buffer_view(&value), arena, &back, &body, &error),
	                 FATE_REJECT);
	assert_int_equal(error.code, ERR_NOT_AT_BOUNDARY);
	codec_free(strict);
	buffer_done(&value);
	arena_reset(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_suspends),        cmocka_unit_test(test_approvals),
		cmocka_unit_test(test_resumes),         cmocka_unit_test(test_gates),
		cmocka_unit_test(test_edits),           cmocka_unit_test(test_edits_equal),
		cmocka_unit_test(test_record_bytes),    cmocka_unit_test(test_another_record),
		cmocka_unit_test(test_writer_checks),   cmocka_unit_test(test_ceilings),
		cmocka_unit_test(test_threads),         cmocka_unit_test(test_huge_claims),
		cmocka_unit_test(test_enums),           cmocka_unit_test(test_resume_holds_suspend),
		cmocka_unit_test(test_strict_boundary),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
