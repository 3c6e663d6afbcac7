// links: schemas core
/* Records in the framings of a registry, and what the codec says that it misses. */
#include "schemas/catalog.h"
#include "schemas/codec.h"
#include "schemas/fingerprint.h"
#include "schemas/framing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LONG_MS 600000
/* Reads as a SuspendEvent: its unqualified name is the same. Every field is missing but one. */
#define POOR  "{\"type\":\"record\",\"name\":\"com.acme.SuspendEvent\",\"fields\":[]}"
#define OTHER "{\"type\":\"record\",\"name\":\"com.acme.Invoice\",\"fields\":[]}"

struct fixture {
	struct arena *arena;
	struct catalog *catalog;
	struct codec *codec;
	struct buffer value; /* a suspend as a single object */
	struct view body;
};

static void must(enum fate fate, const struct error *error)
{
	if (fate != FATE_OK)
		fail_msg("%s", error->message);
}

static struct suspend_event event(void)
{
	return (struct suspend_event){
		.checkpoint_id_text = VIEW_LITERAL("018f0000-0000-7000-8000-0000000000aa"),
		.session_id = VIEW_LITERAL("S"),
		.suspend_seq = 5,
		.tenant = VIEW_LITERAL("default"),
		.agent = VIEW_LITERAL("a"),
		.agent_version = VIEW_LITERAL("1"),
		.suspended_at = 7,
		.step = { .graph = VIEW_LITERAL("g"), .node = VIEW_LITERAL("n"), .resume_at = VIEW_LITERAL("r") },
		.gate = { .gate_id = VIEW_LITERAL("g"),
		          .title = VIEW_LITERAL("t"),
		          .requested_by = VIEW_LITERAL("r"),
		          .required_approvals = 1,
		          .expires_at = TIME_NONE },
	};
}

static void start_with(struct fixture *f, bool registry, bool asks)
{
	struct error error = { 0 };
	struct catalog_settings settings = { .registry = registry, .asks = asks };
	struct suspend_event suspend = event();

	*f = (struct fixture){ .arena = arena_new((size_t)64 << 20) };
	assert_non_null(f->arena);
	assert_non_null(f->arena);
	must(catalog_new(&f->catalog, &settings, &error), &error);
	must(codec_new(&f->codec, &(struct codec_settings){ .catalog = f->catalog }, &error), &error);
	buffer_init(&f->value, (size_t)1 << 20);
	must(codec_put_suspend(f->codec, &suspend, &f->value, &error), &error);
	f->body =
		(struct view){ f->value.data + FRAMING_SINGLE_OBJECT_LEN, f->value.len - FRAMING_SINGLE_OBJECT_LEN };
}

static void stop(struct fixture *f)
{
	codec_free(f->codec);
	catalog_free(f->catalog);
	buffer_done(&f->value);
	arena_free(f->arena);
}

static struct view with_id(struct fixture *f, int32_t id, struct view body)
{
	struct buffer value;

	buffer_init(&value, (size_t)1 << 20);
	framing_put_id(&value, id);
	buffer_append_view(&value, body);
	struct view copy = arena_copy(f->arena, buffer_view(&value));
	buffer_done(&value);
	return copy;
}

static enum fate take(struct fixture *f, struct view value, struct error *error)
{
	struct suspend_event taken;
	struct view body;
	uint8_t sha256[32], today[32];

	*error = (struct error){ 0 };
	enum fate fate = codec_take_suspend_written(f->codec, value, f->arena, &taken, &body, sha256, error);
	if (fate != FATE_OK)
		return fate;
	codec_schema_sha256(RECORD_SUSPEND, today);
	assert_memory_equal(sha256, today, 32);
	assert_true(view_equal(body, f->body));
	assert_true(view_equal_text(taken.session_id, "S"));
	assert_int_equal(codec_want(f->codec)->kind, WANT_NOTHING);
	return FATE_OK;
}

static void takes(struct fixture *f, struct view value)
{
	struct error error;

	must(take(f, value, &error), &error);
}

/* Gives what is missing. */
static const struct schema_want *misses(struct fixture *f, struct view value, enum want_kind kind)
{
	struct error error;

	assert_int_equal(take(f, value, &error), FATE_RETRY);
	assert_int_equal(error.code, ERR_UNKNOWN_SCHEMA);
	assert_int_equal(codec_want(f->codec)->kind, kind);
	return codec_want(f->codec);
}

static void refuses(struct fixture *f, struct view value, enum error_code code, const char *why)
{
	struct error error;

	assert_int_equal(take(f, value, &error), FATE_REJECT);
	if (error.code != code || !strstr(error.message, why))
		fail_msg("%s: %s", error_code_name(error.code), error.message);
	assert_int_equal(codec_want(f->codec)->kind, WANT_NOTHING);
}

static void learn(struct fixture *f, const struct schema_want *want, struct view text)
{
	struct error error = { 0 };

	must(catalog_learn(f->catalog, want, text, &error), &error);
}

static void test_an_id_is_missed_and_learnt(void **state)
{
	struct fixture f;

	(void)state;
	start_with(&f, true, true);
	struct view value = with_id(&f, 17, f.body);
	const struct schema_want *want = misses(&f, value, WANT_ID);
	assert_int_equal(want->id, 17);
	learn(&f, want, codec_schema_text(RECORD_SUSPEND));
	takes(&f, value);
	takes(&f, buffer_view(&f.value)); /* a single object is one still */

	value = with_id(&f, 18, f.body);
	want = misses(&f, value, WANT_ID);
	catalog_deny(f.catalog, want, LONG_MS, "there is no such schema");
	refuses(&f, value, ERR_UNKNOWN_SCHEMA,
	        "schema id 18 is not known to the registry of registry.url: there is no such schema");
	catalog_deny(f.catalog, &(struct schema_want){ .kind = WANT_ID, .id = 18 }, 0, NULL);
	(void)misses(&f, value, WANT_ID);
	refuses(&f, with_id(&f, -5, f.body), ERR_UNKNOWN_SCHEMA, "schema id -5: ids are not negative");
	refuses(&f, with_id(&f, INT32_MIN, f.body), ERR_UNKNOWN_SCHEMA, "ids are not negative");
	refuses(&f, VIEW_LITERAL("\0\0\0\1"), ERR_FRAMING, "cut off");
	stop(&f);
}

static void test_ids_of_other_schemas(void **state)
{
	struct fixture f;

	(void)state;
	start_with(&f, true, true);
	learn(&f, &(struct schema_want){ .kind = WANT_ID, .id = 1 }, VIEW_LITERAL(OTHER));
	learn(&f, &(struct schema_want){ .kind = WANT_ID, .id = 2 }, VIEW_LITERAL(POOR));
	learn(&f, &(struct schema_want){ .kind = WANT_ID, .id = 3 }, VIEW_LITERAL("\"string\""));
	learn(&f, &(struct schema_want){ .kind = WANT_ID, .id = 4 }, codec_schema_text(RECORD_GATE));
	refuses(&f, with_id(&f, 1, f.body), ERR_INVALID,
	        "schema id 1 (com.acme.Invoice) where fermata.v1.SuspendEvent is wanted");
	refuses(&f, with_id(&f, 2, VIEW_LITERAL("")), ERR_INVALID, "schema id 2 (com.acme.SuspendEvent)");
	refuses(&f, with_id(&f, 3, f.body), ERR_INVALID, "schema id 3 (string)");
	refuses(&f, with_id(&f, 4, f.body), ERR_INVALID, "schema id 4 (fermata.v1.GateEvent)");
	stop(&f);
}

static void test_headers(void **state)
{
	static const uint8_t guid[17] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17 };
	struct view id_header = { (const uint8_t *)"\0\0\0\0\x11", 5 }, guid_header = { guid, 17 };
	char text[WANT_TEXT_SIZE];
	struct fixture f;

	(void)state;
	start_with(&f, true, true);
	refuses(&f, f.body, ERR_FRAMING, "there is no header __value_schema_id");
	codec_schema_header(f.codec, id_header);
	const struct schema_want *want = misses(&f, f.body, WANT_ID);
	assert_int_equal(want->id, 17);
	learn(&f, want, codec_schema_text(RECORD_SUSPEND));
	refuses(&f, f.body, ERR_FRAMING, "there is no header"); /* for one call only */
	codec_schema_header(f.codec, id_header);
	takes(&f, f.body);
	codec_schema_header(f.codec, guid_header);
	want = misses(&f, f.body, WANT_GUID);
	assert_string_equal(want_text(want, text, sizeof(text)),
	                    "schema GUID 02030405-0607-0809-0a0b-0c0d0e0f1011");
	learn(&f, want, codec_schema_text(RECORD_SUSPEND));
	codec_schema_header(f.codec, guid_header);
	takes(&f, f.body);

	/* Short and long ones of either form, an empty one, and first bytes that mean nothing. */
	struct view wrong[] = { { id_header.data, 4 }, { id_header.data, 0 }, { guid, 16 },
		                    { guid, 5 },           { guid + 1, 16 },      { guid + 1, 5 } };
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		codec_schema_header(f.codec, wrong[i]);
		refuses(&f, f.body, ERR_FRAMING, "its header __value_schema_id is malformed");
	}
	codec_schema_header(f.codec, wrong[0]); /* not looked at */
	takes(&f, buffer_view(&f.value));
	stop(&f);
}

static void test_no_registry(void **state)
{
	struct fixture f;

	(void)state;
	start_with(&f, false, true);
	refuses(&f, with_id(&f, 17, f.body), ERR_FRAMING, "needs registry.url");
	codec_schema_header(f.codec, (struct view){ (const uint8_t *)"\0\0\0\0\x11", 5 });
	refuses(&f, f.body, ERR_FRAMING, "needs registry.url");
	takes(&f, buffer_view(&f.value));
	stop(&f);
	start_with(&f, true, false); /* nobody answers */
	refuses(&f, with_id(&f, 17, f.body), ERR_UNKNOWN_SCHEMA, "schema id 17 is not known");
	stop(&f);
}

static void test_what_is_written_with_an_id_is_read(void **state)
{
	struct error error = { 0 };
	struct suspend_event suspend = event();
	struct buffer out;
	struct fixture f;

	(void)state;
	start_with(&f, true, true);
	learn(&f, &(struct schema_want){ .kind = WANT_ID, .id = 0x01020304 }, codec_schema_text(RECORD_SUSPEND));
	buffer_init(&out, (size_t)1 << 20);
	codec_write_id(f.codec, RECORD_SUSPEND, 0x01020304);
	must(codec_put_suspend(f.codec, &suspend, &out, &error), &error);
	assert_memory_equal(out.data, "\0\1\2\3\4", 5);
	assert_int_equal(out.len, 5 + f.body.len);
	takes(&f, buffer_view(&out));
	buffer_reset(&out);
	codec_write_id(f.codec, RECORD_APPROVAL, 1); /* of another type */
	codec_write_id(f.codec, RECORD_SUSPEND, -1);
	must(codec_put_suspend(f.codec, &suspend, &out, &error), &error);
	assert_true(view_equal(buffer_view(&out), buffer_view(&f.value)));
	buffer_done(&out);
	stop(&f);
}

static char *with_a_later_field(struct fixture *f)
{
	char *copy = arena_text(f->arena, codec_schema_text(RECORD_SUSPEND));

	*strrchr(copy, ']') = '\0';
	return arena_printf(f->arena, "%s,{\"name\":\"later\",\"type\":\"string\"}]}", copy);
}

/* A version that is to come: by fingerprint, by id, and by what was sealed. */
static void test_versions(void **state)
{
	struct error error = { 0 };
	struct suspend_event taken;
	uint64_t fingerprint;
	uint8_t sha256[32], written[32];
	struct buffer value;
	struct view body, today;
	struct fixture f;

	(void)state;
	start_with(&f, true, true);
	struct view text = view_of(with_a_later_field(&f));
	must(catalog_identify(text, &fingerprint, sha256, &error), &error);
	buffer_init(&value, (size_t)1 << 20);
	framing_put(&value, fingerprint);
	buffer_append_view(&value, f.body);
	buffer_append(&value, "\x02x", 2);
	struct view sent = { value.data + 10, value.len - 10 };

	assert_int_equal(codec_today(f.codec, sha256, sent, &today, &error), FATE_RETRY);
	assert_int_equal(codec_want(f.codec)->kind, WANT_SHA256);
	assert_memory_equal(codec_want(f.codec)->sha256, sha256, 32);
	const struct schema_want *want = misses(&f, buffer_view(&value), WANT_FINGERPRINT);
	assert_string_equal(want->name, "fermata.v1.SuspendEvent");
	assert_true(want->fingerprint == fingerprint);
	assert_int_equal(catalog_learn(f.catalog, want, codec_schema_text(RECORD_SUSPEND), &error), FATE_REJECT);
	assert_int_equal(error.code, ERR_UNKNOWN_SCHEMA);
	assert_non_null(strstr(error.message, "a schema of another fingerprint was given for it"));
	(void)misses(&f, buffer_view(&value), WANT_FINGERPRINT);
	learn(&f, codec_want(f.codec), text);
	must(codec_take_suspend_written(f.codec, buffer_view(&value), f.arena, &taken, &body, written, &error),
	     &error);
	assert_memory_equal(written, sha256, 32);
	assert_true(view_equal(body, sent));
	must(codec_today(f.codec, sha256, sent, &today, &error), &error); /* by what it is, however it came */
	assert_true(view_equal(today, f.body));

	struct view with = with_id(&f, 9, sent);
	learn(&f, misses(&f, with, WANT_ID), text);
	must(codec_take_suspend_written(f.codec, with, f.arena, &taken, &body, written, &error), &error);
	assert_memory_equal(written, sha256, 32);
	buffer_done(&value);
	stop(&f);
}

static void test_sealed_ones(void **state)
{
	struct error error = { 0 };
	uint8_t sha256[32] = { 7 };
	struct view today;
	struct fixture f;

	(void)state;
	start_with(&f, false, true);
	assert_int_equal(codec_today(f.codec, sha256, f.body, &today, &error), FATE_RETRY);
	const struct schema_want want = *codec_want(f.codec);
	assert_int_equal(catalog_learn(f.catalog, &want, codec_schema_text(RECORD_SUSPEND), &error), FATE_REJECT);
	assert_non_null(strstr(error.message, "another SHA-256"));
	catalog_deny(f.catalog, &want, LONG_MS, "nobody has it");
	assert_int_equal(codec_today(f.codec, sha256, f.body, &today, &error), FATE_REJECT);
	assert_int_equal(error.code, ERR_UNKNOWN_SCHEMA);
	assert_non_null(strstr(error.message, "then retry: nobody has it"));
	assert_int_equal(codec_want(f.codec)->kind, WANT_NOTHING);
	/* The fingerprint of another record's schema is nobody's to look for. */
	struct buffer value;
	buffer_init(&value, 4096);
	framing_put(&value, codec_fingerprint(RECORD_GATE));
	buffer_append(&value, "x", 1);
	refuses(&f, buffer_view(&value), ERR_UNKNOWN_SCHEMA, "is GateEvent, where SuspendEvent is wanted");
	buffer_done(&value);
	stop(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_id_is_missed_and_learnt),
		cmocka_unit_test(test_ids_of_other_schemas),
		cmocka_unit_test(test_headers),
		cmocka_unit_test(test_no_registry),
		cmocka_unit_test(test_what_is_written_with_an_id_is_read),
		cmocka_unit_test(test_versions),
		cmocka_unit_test(test_sealed_ones),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
