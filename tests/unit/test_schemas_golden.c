// links: schemas core
/*
 * Bytes that python3-avro wrote (tests/contract/make_golden.py), both ways: we read from them what they
 * say, and we write them again bit by bit. Then what hostile hands make of them: cut at every length, every
 * byte flipped.
 */
#include "schemas/codec.h"
#include "schemas/fingerprint.h"
#include "schemas/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define GOLDEN FERMATA_SOURCE_DIR "/tests/contract/golden/"

union event {
	struct suspend_event suspend;
	struct approval_event approval;
	struct resume_event resume;
	struct gate_event gate;
};

struct golden {
	const char *name;
	enum record_type type;
};

static const struct golden goldens[] = {
	{ "suspend_story", RECORD_SUSPEND },
	{ "suspend_rich", RECORD_SUSPEND },
	{ "suspend_json_state", RECORD_SUSPEND },
	{ "approval_plain", RECORD_APPROVAL },
	{ "approval_rich", RECORD_APPROVAL },
	{ "resume_story", RECORD_RESUME },
	{ "resume_rich", RECORD_RESUME },
	{ "gate_plain", RECORD_GATE },
	{ "gate_rich", RECORD_GATE },
};
#define GOLDENS (sizeof(goldens) / sizeof(goldens[0]))

static struct codec *codec;
static struct arena *arena;

static struct view load(const char *name, const char *ending)
{
	char path[512];
	static uint8_t room[2][65536];
	static int turn;
	uint8_t *data = room[turn++ & 1];

	snprintf(path, sizeof(path), GOLDEN "%s%s", name, ending);
	FILE *file = fopen(path, "rb");
	if (!file)
		fail_msg("%s is not there", path);
	size_t len = fread(data, 1, sizeof(room[0]), file);
	fclose(file);
	return (struct view){ data, len };
}

static enum fate take(enum record_type type, struct view value, union event *event, struct view *body,
                      struct error *error)
{
	switch (type) {
	case RECORD_SUSPEND:
		return codec_take_suspend(codec, value, arena, &event->suspend, body, error);
	case RECORD_APPROVAL:
		return codec_take_approval(codec, value, arena, &event->approval, body, error);
	case RECORD_RESUME:
		return codec_take_resume(codec, value, arena, &event->resume, error);
	case RECORD_GATE:
		return codec_take_gate(codec, value, arena, &event->gate, error);
	}
	return FATE_FATAL;
}

static enum fate print(enum record_type type, const union event *event, struct buffer *out,
                       struct error *error)
{
	switch (type) {
	case RECORD_SUSPEND:
		return suspend_to_json(&event->suspend, out, error);
	case RECORD_APPROVAL:
		return approval_to_json(&event->approval, out, error);
	case RECORD_RESUME:
		return resume_to_json(&event->resume, out, error);
	case RECORD_GATE:
		return gate_to_json(&event->gate, out, error);
	}
	return FATE_FATAL;
}

/* A resume is spliced around the bytes of its suspend. */
static enum fate put_resume(const struct resume_event *event, struct buffer *out, struct error *error)
{
	struct buffer suspend;
	buffer_init(&suspend, SIZE_MAX);
	enum fate fate = codec_put_suspend(codec, &event->suspend, &suspend, error);
	if (fate == FATE_OK)
		fate =
			codec_put_resume(codec, event, (struct view){ suspend.data + 10, suspend.len - 10 }, out, error);
	buffer_done(&suspend);
	return fate;
}

static enum fate put(enum record_type type, const union event *event, struct buffer *out, struct error *error)
{
	switch (type) {
	case RECORD_SUSPEND:
		return codec_put_suspend(codec, &event->suspend, out, error);
	case RECORD_APPROVAL:
		return codec_put_approval(codec, &event->approval, out, error);
	case RECORD_RESUME:
		return put_resume(&event->resume, out, error);
	case RECORD_GATE:
		return codec_put_gate(codec, &event->gate, out, error);
	}
	return FATE_FATAL;
}

static void must(enum fate fate, const char *what, const struct error *error)
{
	if (fate != FATE_OK)
		fail_msg("%s: %s (%s)", what, error->message, error_code_name(error->code));
}

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

/* What Python wrote says to us what Python says that it says. */
static void test_reads(void **state)
{
	(void)state;
	for (const struct golden *g = goldens; g < goldens + GOLDENS; g++) {
		struct error error;
		union event event;
		struct view body;
		struct buffer out;

		memset(&event, 0xee, sizeof(event)); /* a reader fills everything */
		buffer_init(&out, SIZE_MAX);
		must(take(g->type, load(g->name, ".bin"), &event, &body, &error), g->name, &error);
		must(print(g->type, &event, &out, &error), g->name, &error);
		buffer_append_byte(&out, '\n');
		struct view wanted = load(g->name, ".json");
		if (!view_equal(buffer_view(&out), wanted))
			fail_msg("%s reads as\n%.*s", g->name, (int)out.len, (const char *)out.data);
		buffer_done(&out);
		arena_reset(arena);
	}
}

static void test_writes(void **state)
{
	(void)state;
	for (const struct golden *g = goldens; g < goldens + GOLDENS; g++) {
		struct error error;
		union event event;
		struct view body, value = load(g->name, ".bin");
		struct buffer out;

		buffer_init(&out, SIZE_MAX);
		must(take(g->type, value, &event, &body, &error), g->name, &error);
		must(put(g->type, &event, &out, &error), g->name, &error);
		if (!view_equal(buffer_view(&out), value))
			fail_msg("%s: other bytes", g->name);
		buffer_done(&out);
		arena_reset(arena);
	}
}

/* The bytes once more, from the JSON that describes them. A key with NUL is what jansson cannot read. */
static void test_writes_from_json(void **state)
{
	static const char *const names[] = { "suspend_story", "suspend_json_state" };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct error error;
		struct suspend_event event;
		struct suspend_filled filled;
		struct buffer out;

		buffer_init(&out, SIZE_MAX);
		must(suspend_from_json(load(names[i], ".json"), arena, &event, &filled, &error), names[i], &error);
		assert_false(filled.checkpoint_id || filled.salt || filled.suspend_seq || filled.suspended_at);
		must(codec_put_suspend(codec, &event, &out, &error), names[i], &error);
		assert_true(view_equal(buffer_view(&out), load(names[i], ".bin")));
		buffer_done(&out);
		arena_reset(arena);
	}
}

/* The story of SESSION-808 from a struct that was filled by hand. */
static void test_writes_the_story(void **state)
{
	struct view path[] = { VIEW_LITERAL("plan"), VIEW_LITERAL("write_migration"),
		                   VIEW_LITERAL("AWAITING_HUMAN_APPROVAL") };
	struct history_entry history[] = {
		{ .role = ROLE_SYSTEM,
		  .content = VIEW_LITERAL("You are to update the schema of the API's database."),
		  .at = TIME_NONE },
		{ .role = ROLE_AGENT,
		  .content = VIEW_LITERAL("I will write the migration and run the safety checks."),
		  .at = TIME_NONE },
		{ .role = ROLE_AGENT,
		  .content = VIEW_LITERAL("The script is done. I wait for review before I run the deployment tool."),
		  .at = TIME_NONE },
	};
	struct config_entry config[] = {
		{ .key = VIEW_LITERAL("VRAM_limit_gb"), .kind = CONFIG_DOUBLE, .value.real = 16.0 },
		{ .key = VIEW_LITERAL("user_id"), .kind = CONFIG_STRING, .value.string = VIEW_LITERAL("usr_99") },
	};
	struct tool_permission permissions[] = { { VIEW_LITERAL("deployment_tool"), PERMISSION_ASK } };
	struct suspend_event event = {
		.session_id = VIEW_LITERAL("SESSION-808"),
		.suspend_seq = 1,
		.tenant = VIEW_LITERAL("default"),
		.agent = VIEW_LITERAL("schema-agent"),
		.agent_version = VIEW_LITERAL("1.4.0"),
		.suspended_at = 1764486000123456,
		.step = { VIEW_LITERAL("migration"), VIEW_LITERAL("AWAITING_HUMAN_APPROVAL"),
		          VIEW_LITERAL("run_deployment_tool"), path, 3, 0 },
		.history = history,
		.history_len = 3,
		.config = config,
		.config_len = 2,
		.tool_permissions = permissions,
		.tool_permissions_len = 1,
		.gate = { .gate_id = VIEW_LITERAL("deploy"),
		          .title = VIEW_LITERAL("Run the migration"),
		          .requested_by = VIEW_LITERAL("usr_99"),
		          .required_approvals = 1,
		          .expires_at = TIME_NONE },
	};
	struct error error;
	struct buffer out;

	(void)state;
	/* no text of the id: it is made from the bytes, in lower case */
	assert_true(uuid_parse(view_of("0192D3A4-5B6C-7D8E-9F01-23456789ABCD"), &event.checkpoint_id));
	for (uint8_t i = 0; i < SALT_LEN; i++)
		event.salt[i] = i;
	buffer_init(&out, SIZE_MAX);
	must(codec_put_suspend(codec, &event, &out, &error), "story", &error);
	assert_true(view_equal(buffer_view(&out), load("suspend_story", ".bin")));
	buffer_done(&out);
}

static void test_pieces(void **state)
{
	struct error error;
	struct resume_event head;
	struct suspend_event suspend;
	struct view body, value = load("resume_rich", ".bin");
	struct guarded_body guarded;
	struct action action;

	(void)state;
	must(codec_take_resume_head(codec, value, arena, &head, &error), "head", &error);
	assert_int_equal(head.verdict, VERDICT_CANCELLED);
	assert_int_equal(head.decisions_len, 2);
	assert_true(view_equal_text(head.decisions[0].reason, "looks good"));
	assert_true(head.edits.present && head.edits.config_len == 0);
	value = load("suspend_rich", ".bin");
	must(codec_take_suspend(codec, value, arena, &suspend, &body, &error), "suspend", &error);
	assert_ptr_equal(body.data, value.data + 10);
	assert_int_equal(body.len, value.len - 10);
	must(codec_guard_suspend_body(body, &guarded, &error), "guard", &error);
	must(codec_read_suspend_body(codec, body, arena, &suspend, &error), "body", &error);
	codec_read_action(&guarded, &action);
	assert_true(action.present && action.risk == RISK_CRITICAL);
	assert_true(view_equal_text(action.arguments, "{\"x\":[true,null]}"));
	body = load("suspend_story", ".bin");
	body = (struct view){ body.data + 10, body.len - 10 };
	must(codec_guard_suspend_body(body, &guarded, &error), "guard", &error);
	codec_read_action(&guarded, &action);
	assert_false(action.present);
	arena_reset(arena);
}

static void test_fingerprints(void **state)
{
	static const char *const names[] = { "SuspendEvent", "ApprovalEvent", "ResumeEvent", "GateEvent" };
	struct view text = load("fingerprints", ".json");
	const char *at = (const char *)text.data;

	(void)state;
	((uint8_t *)(uintptr_t)text.data)[text.len] = '\0';
	for (int type = RECORD_SUSPEND; type <= RECORD_GATE; type++) {
		char hex[FINGERPRINT_HEX_LEN + 1], sha[65];
		uint8_t bytes[32];

		at = strstr(at, names[type]);
		assert_non_null(at);
		fingerprint_hex(codec_fingerprint((enum record_type)type), hex);
		const char *wanted = strstr(at, "\"crc64\": \"");
		assert_non_null(wanted);
		assert_memory_equal(wanted + 10, hex, 16);
		codec_schema_sha256((enum record_type)type, bytes);
		for (size_t i = 0; i < 32; i++)
			snprintf(sha + 2 * i, 3, "%02x", bytes[i]);
		wanted = strstr(at, "\"sha256\": \"");
		assert_non_null(wanted);
		assert_memory_equal(wanted + 11, sha, 64);
		assert_true(codec_schema_text((enum record_type)type).len > 1000);
	}
}

/* A copy of exact size on the heap, so that the sanitizer sees a byte too far. */
static uint8_t *exact(struct view value, size_t len)
{
	uint8_t *data = malloc(len + (len == 0));

	assert_non_null(data);
	memcpy(data, value.data, len);
	return data;
}

/* No beginning of a record is a record: the encoding has no optional end. */
static void test_cut_anywhere(void **state)
{
	(void)state;
	for (const struct golden *g = goldens; g < goldens + GOLDENS; g++) {
		struct view value = load(g->name, ".bin");
		for (size_t len = 0; len < value.len; len++) {
			struct error error;
			union event event;
			struct view body;
			uint8_t *data = exact(value, len);
			enum fate fate = take(g->type, (struct view){ data, len }, &event, &body, &error);
			if (fate != FATE_REJECT)
				fail_msg("%s cut to %zu bytes: %d", g->name, len, fate);
			assert_int_equal(error.code, len < 10 ? ERR_FRAMING : ERR_MALFORMED);
			free(data);
			arena_reset(arena);
		}
	}
}

static void test_bytes_after(void **state)
{
	(void)state;
	for (const struct golden *g = goldens; g < goldens + GOLDENS; g++) {
		struct error error;
		union event event;
		struct view body, value = load(g->name, ".bin");
		uint8_t *data = malloc(value.len + 1);
		assert_non_null(data);
		memcpy(data, value.data, value.len);
		data[value.len] = 0;
		value = (struct view){ data, value.len + 1 };
		assert_int_equal(take(g->type, value, &event, &body, &error), FATE_REJECT);
		assert_int_equal(error.code, ERR_MALFORMED);
		assert_non_null(strstr(error.message, "1 bytes are left over"));
		free(data);
		arena_reset(arena);
	}
}

/* Whatever is still taken is a record that is written back as the same bytes, or a shorter spelling of them
 * (varints and blocks may be spelt in more than one way). */
static void check_flip(const struct golden *g, struct view value)
{
	struct error error;
	union event event;
	struct view body;
	struct buffer out;

	if (take(g->type, value, &event, &body, &error) != FATE_OK) {
		assert_int_equal(error.fate, FATE_REJECT);
		return;
	}
	buffer_init(&out, SIZE_MAX);
	must(put(g->type, &event, &out, &error), g->name, &error);
	assert_true(out.len <= value.len);
	buffer_done(&out);
}

static void test_every_byte_flipped(void **state)
{
	static const uint8_t masks[] = { 0x01, 0x02, 0x40, 0x80, 0xff };

	(void)state;
	for (const struct golden *g = goldens; g < goldens + GOLDENS; g++) {
		struct view value = load(g->name, ".bin");
		for (size_t i = 0; i < value.len; i++) {
			for (size_t m = 0; m < sizeof(masks); m++) {
				uint8_t *data = exact(value, value.len);
				data[i] ^= masks[m];
				check_flip(g, (struct view){ data, value.len });
				free(data);
				arena_reset(arena);
			}
		}
	}
}

/* A frame that is not ours is never decoded, however little of it is wrong. */
static void test_every_bit_of_the_frame(void **state)
{
	(void)state;
	for (unsigned bit = 0; bit < 80; bit++) {
		struct error error;
		union event event;
		struct view body, value = load("suspend_story", ".bin");
		uint8_t *data = exact(value, value.len);
		data[bit / 8] ^= (uint8_t)(1u << bit % 8);
		value.data = data;
		assert_int_equal(take(RECORD_SUSPEND, value, &event, &body, &error), FATE_REJECT);
		assert_int_equal(error.code, bit < 16 ? ERR_FRAMING : ERR_UNKNOWN_SCHEMA);
		free(data);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reads),
		cmocka_unit_test(test_writes),
		cmocka_unit_test(test_writes_from_json),
		cmocka_unit_test(test_writes_the_story),
		cmocka_unit_test(test_pieces),
		cmocka_unit_test(test_fingerprints),
		cmocka_unit_test(test_cut_anywhere),
		cmocka_unit_test(test_bytes_after),
		cmocka_unit_test(test_every_byte_flipped),
		cmocka_unit_test(test_every_bit_of_the_frame),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
