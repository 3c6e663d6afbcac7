// links: schemas core
/* Schemas of a folder: which state is migrated, which passes, which waits and why; and records that another
 * version of Fermata wrote. */
#include "schemas/catalog.h"
#include "schemas/codec.h"
#include "schemas/fingerprint.h"
#include "schemas/schema.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define STATE_V1 "{\"type\":\"record\",\"name\":\"app.State\",\"fields\":[{\"name\":\"n\",\"type\":\"int\"}]}"
#define STATE_V2                                                                                             \
	"{\"type\":\"record\",\"name\":\"app.State\",\"aliases\":[\"app.Old\"],\"fields\":[{\"name\":\"count\"," \
	"\"type\":\"long\",\"aliases\":[\"n\"]},{\"name\":\"mode\",\"type\":\"string\",\"default\":\"fast\"}]}"
#define STATE_BAD                                                                                            \
	"{\"type\":\"record\",\"name\":\"app.State\",\"fields\":[{\"name\":\"m\",\"type\":\"int\"}]}"
#define SUSPEND "fermata.v1.SuspendEvent"
#define OLDER   "fermata.v1.SuspendEvent/older.avsc"
#define NEWER   "fermata.v1.SuspendEvent/newer.avsc"

static char folder[64];
static struct arena *arena;

static void must(enum fate fate, const struct error *error)
{
	if (fate != FATE_OK)
		fail_msg("%s", error->message);
}

static void put(const char *name, struct view text)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	FILE *file = fopen(path, "wb");
	assert_non_null(file);
	assert_int_equal(fwrite(text.data, 1, text.len, file), text.len);
	fclose(file);
}

static void make_folder(const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	assert_int_equal(mkdir(path, 0700), 0);
}

static struct catalog *load(void)
{
	struct error error = { 0 };
	struct catalog_settings settings = { .folder = folder };
	struct catalog *catalog;

	must(catalog_new(&catalog, &settings, &error), &error);
	return catalog;
}

static bool changed(struct catalog *catalog)
{
	struct error error = { 0 };
	bool ret;

	must(catalog_folder(catalog, &ret, &error), &error);
	return ret;
}

static struct view canonical_of(const char *text)
{
	struct error error = { 0 };
	struct schema *schema;
	struct buffer out;

	must(schema_parse(&schema, view_of(text), &error), &error);
	buffer_init(&out, SCHEMA_CANONICAL_MAX);
	must(schema_canonical(schema, &out, &error), &error);
	struct view copy = arena_copy(arena, buffer_view(&out));
	buffer_done(&out);
	schema_free(schema);
	return copy;
}

static uint64_t fingerprint_of(const char *text)
{
	return fingerprint_crc64(canonical_of(text));
}

static struct app_state avro_state(const char *name, const char *text, struct view body)
{
	uint8_t bytes[8];

	fingerprint_bytes(fingerprint_of(text), bytes);
	return (struct app_state){
		.present = true,
		.schema = view_of(name),
		.encoding = ENCODING_AVRO,
		.fingerprint = arena_copy(arena, (struct view){ bytes, 8 }),
		.body = body,
	};
}

static void passes(struct catalog *catalog, const struct app_state *in)
{
	struct error error = { 0 };
	struct app_state out;
	struct schema_want want;
	struct view from;

	must(state_migrate(catalog, in, arena, &out, &from, &want, &error), &error);
	assert_true(view_is_null(from));
	assert_int_equal(out.present, in->present); /* field by field: between them there is padding */
	assert_int_equal(out.encoding, in->encoding);
	assert_true(view_equal(out.schema, in->schema));
	assert_true(view_equal(out.fingerprint, in->fingerprint));
	assert_true(view_equal(out.body, in->body));
}

static void refused(struct catalog *catalog, const struct app_state *in, enum error_code code,
                    const char *why)
{
	struct error error = { 0 };
	struct app_state out;
	struct schema_want want;
	struct view from;

	assert_int_equal(state_migrate(catalog, in, arena, &out, &from, &want, &error), FATE_REJECT);
	assert_int_equal(error.code, code);
	if (!strstr(error.message, why))
		fail_msg("%s", error.message);
}

static void test_states(void **state)
{
	struct error error = { 0 };
	struct app_state out, v1 = avro_state("app.State", STATE_V1, VIEW_LITERAL("\x0e"));
	struct schema_want want;
	struct view from;
	char hex[FINGERPRINT_HEX_LEN + 1];

	(void)state;
	put("app.State.avsc", VIEW_LITERAL(STATE_V2));
	make_folder("app.State");
	put("app.State/1.avsc", VIEW_LITERAL(STATE_V1));
	put("app.State/README", VIEW_LITERAL("not a schema"));
	put(".hidden.avsc", VIEW_LITERAL("nor this"));
	struct catalog *catalog = load();
	assert_int_equal(catalog_readers(catalog), 1);
	assert_int_equal(catalog_schemas(catalog), 2);
	assert_false(changed(catalog));

	must(state_migrate(catalog, &v1, arena, &out, &from, &want, &error), &error);
	assert_true(view_equal(out.body, VIEW_LITERAL("\x0e\x08"
	                                              "fast")));
	fingerprint_hex(fingerprint_of(STATE_V1), hex);
	assert_true(view_equal_text(from, hex));
	assert_true(view_equal_text(out.schema, "app.State"));
	assert_int_equal(fingerprint_of_bytes(out.fingerprint.data), fingerprint_of(STATE_V2));
	passes(catalog, &out); /* it is today's now */

	struct app_state renamed = avro_state("app.Old", STATE_V1, VIEW_LITERAL("\x0e"));
	must(state_migrate(catalog, &renamed, arena, &out, &from, &want, &error), &error);
	assert_true(view_equal_text(out.schema, "app.State"));

	struct app_state other = avro_state("some.Other", STATE_V1, VIEW_LITERAL("anything"));
	passes(catalog, &other);
	passes(NULL, &v1);
	passes(catalog, &(struct app_state){ .present = false });
	struct app_state json = { .present = true,
		                      .encoding = ENCODING_JSON,
		                      .body = VIEW_LITERAL("{\"a\":1e400}") };
	passes(catalog, &json);
	json.body = VIEW_LITERAL("{\"secret\":");
	refused(catalog, &json, ERR_INVALID, "state.body: it is said to be JSON");
	catalog_free(catalog);
}

static void test_states_refused(void **state)
{
	struct catalog *catalog = load();
	struct app_state cut = avro_state("app.State", STATE_V1, VIEW_LITERAL("\x80"));
	struct app_state today = avro_state("app.State", STATE_V2, VIEW_LITERAL("\x0e\x08xx"));
	struct app_state unknown = avro_state("app.State", STATE_BAD, VIEW_LITERAL("\x0e"));

	(void)state;
	refused(catalog, &cut, ERR_MALFORMED, "state, written with schema");
	refused(catalog, &today, ERR_MALFORMED, "state: app.State.mode");
	refused(catalog, &unknown, ERR_UNKNOWN_SCHEMA, "put it into the folder app.State");
	put("app.State/bad.avsc", VIEW_LITERAL(STATE_BAD));
	assert_true(changed(catalog));
	refused(catalog, &unknown, ERR_INVALID, "State.count: the writer has no such field");
	unknown.fingerprint = VIEW_LITERAL("x");
	refused(catalog, &unknown, ERR_INVALID, "state.fingerprint");
	catalog_free(catalog);
}

static void test_folder(void **state)
{
	struct error error = { 0 };
	struct catalog_settings settings = { .folder = "" };
	struct catalog *catalog;

	(void)state;
	put("broken.avsc", VIEW_LITERAL("{\"type\":"));
	catalog = load();
	assert_int_equal(catalog_broken(catalog), 1);
	put("broken.avsc", VIEW_LITERAL("\"int\""));
	assert_true(changed(catalog));
	assert_int_equal(catalog_broken(catalog), 0);
	catalog_free(catalog);
	must(catalog_new(&catalog, &settings, &error), &error);
	assert_false(changed(catalog));
	assert_int_equal(catalog_schemas(catalog), 0);
	catalog_free(catalog);
	settings.folder = "/nowhere/at/all";
	assert_int_equal(catalog_new(&catalog, &settings, &error), FATE_FATAL);
	assert_non_null(strstr(error.message, "/nowhere/at/all"));
}

/* ---- records of another version ---- */

static struct suspend_event event(void)
{
	static const uint8_t fingerprint[8] = "12345678";

	return (struct suspend_event){
		.checkpoint_id_text = VIEW_LITERAL("018f0000-0000-7000-8000-0000000000aa"),
		.session_id = VIEW_LITERAL("S"),
		.suspend_seq = 5,
		.tenant = VIEW_LITERAL("default"),
		.agent = VIEW_LITERAL("a"),
		.agent_version = VIEW_LITERAL("1"),
		.suspended_at = 7,
		.step = { .graph = VIEW_LITERAL("g"), .node = VIEW_LITERAL("n"), .resume_at = VIEW_LITERAL("r") },
		.state = { .present = true,
		           .schema = VIEW_LITERAL("app.State"),
		           .encoding = ENCODING_AVRO,
		           .fingerprint = { fingerprint, 8 },
		           .body = VIEW_LITERAL("\x0e") },
		.gate = { .gate_id = VIEW_LITERAL("g"),
		          .title = VIEW_LITERAL("t"),
		          .requested_by = VIEW_LITERAL("r"),
		          .required_approvals = 1,
		          .expires_at = TIME_NONE },
	};
}

/* Today's schema without the field tenant (an older one), or with a field more (a newer one). */
static char *change_schema(bool older)
{
	struct view text = codec_schema_text(RECORD_SUSPEND);
	char *copy = arena_text(arena, text);
	char *changed = NULL;

	if (older) {
		char *name = strstr(copy, "\"name\": \"tenant\"");
		assert_non_null(name);
		while (*name != '{')
			name--;
		char *end = strchr(name, '}');
		assert_non_null(end);
		end = strchr(end, '{');
		*name = '\0';
		changed = arena_printf(arena, "%s%s", copy, end);
	} else {
		char *end = strrchr(copy, ']');
		*end = '\0';
		changed = arena_printf(arena, "%s,{\"name\":\"later\",\"type\":\"string\"}]}", copy);
	}
	assert_non_null(changed);
	return changed;
}

/* The body of event() as that schema has it. */
static struct view change_body(struct view body, bool older)
{
	size_t tenant = 1 + 36 + 1 + 1 + 1, gone = 1 + strlen("default");
	struct buffer out;

	buffer_init(&out, 1 << 20);
	buffer_append(&out, body.data, older ? tenant : body.len);
	if (older)
		buffer_append(&out, body.data + tenant + gone, body.len - tenant - gone);
	else
		buffer_append(&out, "\x02x", 2);
	struct view copy = arena_copy(arena, buffer_view(&out));
	buffer_done(&out);
	return copy;
}

static void framed(struct buffer *out, uint64_t fingerprint, struct view body)
{
	uint8_t bytes[8];

	buffer_reset(out);
	fingerprint_bytes(fingerprint, bytes);
	buffer_append(out, "\xc3\x01", 2);
	buffer_append(out, bytes, 8);
	buffer_append_view(out, body);
}

static void check_version(struct codec *codec, struct codec *plain, struct view today_body, bool older)
{
	struct error error = { 0 };
	struct guarded_body guarded;
	struct suspend_event taken;
	struct view body, today;
	struct buffer value;
	uint8_t sha256[32], wanted[32];
	const char *text = change_schema(older);
	struct view sent = change_body(today_body, older);

	buffer_init(&value, 1 << 20);
	framed(&value, fingerprint_of(text), sent);
	assert_int_equal(codec_take_suspend(plain, buffer_view(&value), arena, &taken, &body, &error),
	                 FATE_REJECT);
	assert_int_equal(error.code, ERR_UNKNOWN_SCHEMA);
	must(codec_take_suspend_written(codec, buffer_view(&value), arena, &taken, &body, sha256, &error),
	     &error);
	assert_true(view_equal_text(taken.tenant, "default"));
	assert_true(view_equal_text(taken.gate.title, "t"));
	assert_true(view_equal(body, sent));
	assert_ptr_equal(body.data, value.data + 10);
	fingerprint_sha256(canonical_of(text), wanted);
	assert_memory_equal(sha256, wanted, 32);

	must(codec_today(codec, sha256, body, &today, &error), &error);
	assert_true(view_equal(today, today_body));
	must(codec_guard_suspend_body(today, &guarded, &error), &error);
	codec_forget(codec);
	for (size_t i = 0; i < today.len; i++)
		assert_int_equal(today.data[i], 0); /* it was the codec's, and has kept nothing of it */
	assert_int_equal(codec_today(plain, sha256, body, &today, &error), FATE_REJECT);
	assert_int_equal(error.code, ERR_UNKNOWN_SCHEMA);
	value.len--;
	assert_int_equal(codec_take_suspend(codec, buffer_view(&value), arena, &taken, &body, &error),
	                 FATE_REJECT);
	assert_int_equal(error.code, ERR_MALFORMED);
	buffer_done(&value);
}

static void test_versions(void **state)
{
	struct error error = { 0 };
	struct suspend_event today = event();
	struct codec_settings settings = { 0 };
	struct codec *codec, *plain;
	struct buffer value;
	struct view body;
	uint8_t sha256[32];

	(void)state;
	make_folder(SUSPEND);
	put(OLDER, view_of(change_schema(true)));
	put(NEWER, view_of(change_schema(false)));
	struct catalog *catalog = load();
	must(codec_new(&plain, &settings, &error), &error);
	settings.catalog = catalog;
	must(codec_new(&codec, &settings, &error), &error);
	buffer_init(&value, 1 << 20);
	must(codec_put_suspend(codec, &today, &value, &error), &error);
	struct view whole = { value.data + 10, value.len - 10 };
	must(codec_take_suspend_written(codec, buffer_view(&value), arena, &today, &body, sha256, &error),
	     &error);
	must(codec_today(codec, sha256, body, &body, &error), &error);
	assert_ptr_equal(body.data, whole.data);
	check_version(codec, plain, whole, true);
	check_version(codec, plain, whole, false);
	buffer_done(&value);
	codec_free(codec);
	codec_free(plain);
	catalog_free(catalog);
}

/* What the relay will do: read the state, migrate it, put it back. */
static void test_replace(void **state)
{
	struct error error = { 0 };
	struct suspend_event before = event(), after;
	struct codec_settings settings = { 0 };
	struct codec *codec;
	struct guarded_body guarded, changed;
	struct buffer value, out;
	struct app_state held, other = { .present = true,
		                             .schema = VIEW_LITERAL("x"),
		                             .encoding = ENCODING_JSON,
		                             .fingerprint = VIEW_NULL,
		                             .body = VIEW_LITERAL("{}") };

	(void)state;
	must(codec_new(&codec, &settings, &error), &error);
	buffer_init(&value, 1 << 20);
	buffer_init(&out, 1 << 20);
	must(codec_put_suspend(codec, &before, &value, &error), &error);
	struct view body = { value.data + 10, value.len - 10 };
	must(codec_guard_suspend_body(body, &guarded, &error), &error);
	codec_read_state(&guarded, &held);
	assert_true(held.present && view_equal_text(held.schema, "app.State") && held.fingerprint.len == 8);
	must(codec_replace_state(&guarded, &held, &out, &error), &error);
	assert_true(view_equal(buffer_view(&out), body));
	buffer_reset(&out);
	must(codec_replace_state(&guarded, &other, &out, &error), &error);
	must(codec_read_suspend_body(codec, buffer_view(&out), arena, &after, &error), &error);
	assert_true(view_equal_text(after.state.body, "{}") && view_is_null(after.state.fingerprint));
	assert_true(view_equal_text(after.gate.title, "t"));
	other.present = false;
	buffer_reset(&out);
	must(codec_replace_state(&guarded, &other, &out, &error), &error);
	must(codec_guard_suspend_body(buffer_view(&out), &changed, &error), &error);
	codec_read_state(&changed, &held);
	assert_false(held.present);
	buffer_done(&out);
	buffer_done(&value);
	codec_free(codec);
}

static int start(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/fermata-states.XXXXXX");
	arena = arena_new((size_t)64 << 20);
	assert_non_null(arena);
	return arena && mkdtemp(folder) ? 0 : -1;
}

static int stop(void **state)
{
	static const char *const files[] = { "app.State/1.avsc",
		                                 "app.State/README",
		                                 "app.State/bad.avsc",
		                                 "app.State",
		                                 "app.State.avsc",
		                                 ".hidden.avsc",
		                                 OLDER,
		                                 NEWER,
		                                 SUSPEND,
		                                 "broken.avsc" };
	char path[256];

	(void)state;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, files[i]);
		(void)remove(path);
	}
	(void)rmdir(folder);
	arena_free(arena);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_states),   cmocka_unit_test(test_states_refused), cmocka_unit_test(test_folder),
		cmocka_unit_test(test_versions), cmocka_unit_test(test_replace),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
