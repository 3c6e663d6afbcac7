// links: schemas core
/* The catalog: what is learnt, denied and forgotten, which reader stands, what a reload changes, and all
 * of it while others look. */
#include "core/clock.h"
#include "schemas/catalog.h"
#include "schemas/fingerprint.h"
#include "schemas/schema.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define LONG_MS              600000
#define STATE(fields)        "{\"type\":\"record\",\"name\":\"app.State\",\"fields\":[" fields "]}"
#define FIELD(name, type)    "{\"name\":\"" name "\",\"type\":\"" type "\"}"
#define DEFAULT(name, value) "{\"name\":\"" name "\",\"type\":\"long\",\"default\":" value "}"
#define V1                   STATE(FIELD("n", "int"))
#define V2                   STATE(FIELD("n", "long") "," DEFAULT("extra", "1"))
#define V3                   STATE(FIELD("n", "long") "," DEFAULT("extra", "1") "," DEFAULT("more", "2"))

static char folder[64];
static struct arena *arena;

static void must(enum fate fate, const struct error *error)
{
	if (fate != FATE_OK)
		fail_msg("%s", error->message);
}

static void put(const char *name, const char *text)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	FILE *file = fopen(path, "wb");
	assert_non_null(file);
	assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
	fclose(file);
}

static void gone(const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	assert_int_equal(remove(path), 0);
}

static void make_folder(const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	assert_int_equal(mkdir(path, 0700), 0);
}

static struct catalog *new_catalog(const char *path, bool registry, bool asks)
{
	struct error error = { 0 };
	struct catalog_settings settings = { .folder = path, .registry = registry, .asks = asks };
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

static uint64_t fingerprint_of(const char *text)
{
	struct error error = { 0 };
	uint64_t fingerprint;
	uint8_t sha256[32];

	must(catalog_identify(view_of(text), &fingerprint, sha256, &error), &error);
	return fingerprint;
}

static struct schema_want want_of(enum want_kind kind, const char *name, uint64_t fingerprint)
{
	struct schema_want want = { .kind = kind, .fingerprint = fingerprint };

	snprintf(want.name, sizeof(want.name), "%s", name);
	return want;
}

static void learn(struct catalog *catalog, const struct schema_want *want, const char *text)
{
	struct error error = { 0 };

	must(catalog_learn(catalog, want, view_of(text), &error), &error);
}

static void learn_reader(struct catalog *catalog, const char *name, const char *text)
{
	struct schema_want want = want_of(WANT_READER, name, 0);

	learn(catalog, &want, text);
}

/* A state with n = 7. */
static struct app_state state_of(const char *name, const char *text)
{
	uint8_t bytes[8];

	fingerprint_bytes(fingerprint_of(text), bytes);
	return (struct app_state){
		.present = true,
		.schema = view_of(name),
		.encoding = ENCODING_AVRO,
		.fingerprint = arena_copy(arena, (struct view){ bytes, 8 }),
		.body = VIEW_LITERAL("\x0e"),
	};
}

/* What becomes of it, or NULL when it passes unchanged. */
static const char *body_of(struct catalog *catalog, const struct app_state *in)
{
	struct error error = { 0 };
	struct app_state out;
	struct schema_want want;
	struct view from;

	must(state_migrate(catalog, in, arena, &out, &from, &want, &error), &error);
	assert_int_equal(want.kind, WANT_NOTHING);
	if (!view_is_null(from))
		return arena_text(arena, out.body);
	assert_true(view_equal(out.body, in->body));
	return NULL;
}

static struct schema_want misses(struct catalog *catalog, const struct app_state *in)
{
	struct error error = { 0 };
	struct app_state out;
	struct schema_want want;
	struct view from;

	assert_int_equal(state_migrate(catalog, in, arena, &out, &from, &want, &error), FATE_RETRY);
	assert_int_equal(error.code, ERR_UNKNOWN_SCHEMA);
	return want;
}

static void refuses(struct catalog *catalog, const struct app_state *in, const char *why)
{
	struct error error = { 0 };
	struct app_state out;
	struct schema_want want;
	struct view from;

	assert_int_equal(state_migrate(catalog, in, arena, &out, &from, &want, &error), FATE_REJECT);
	assert_int_equal(error.code, ERR_UNKNOWN_SCHEMA);
	if (!strstr(error.message, why))
		fail_msg("%s", error.message);
	assert_int_equal(want.kind, WANT_NOTHING);
}

static void test_wants(void **state)
{
	struct schema_want wants[] = {
		{ .kind = WANT_NOTHING },
		{ .kind = WANT_ID, .id = 17 },
		{ .kind = WANT_ID, .id = -17 },
		{ .kind = WANT_GUID, .guid = { 0xab } },
		{ .kind = WANT_SHA256, .sha256 = { 0xab } },
		want_of(WANT_FINGERPRINT, "a.B", 0x0102),
		want_of(WANT_STATE, "a.B", 0x0102),
		want_of(WANT_STATE, "a.C", 0x0102),
		want_of(WANT_STATE, "a.B", 0x0103),
		want_of(WANT_READER, "a.B", 0),
	};
	const char *texts[] = {
		"nothing",
		"schema id 17",
		"schema id -17",
		"schema GUID ab000000-0000-0000-0000-000000000000",
		"the schema of a SuspendEvent with SHA-256 ab00000000000000...",
		"the schema of a.B with fingerprint 0201000000000000",
		"the schema with fingerprint 0201000000000000 of a state a.B",
		"the schema with fingerprint 0201000000000000 of a state a.C",
		"the schema with fingerprint 0301000000000000 of a state a.B",
		"the reader of a.B",
	};
	size_t len = sizeof(wants) / sizeof(wants[0]);
	char text[WANT_TEXT_SIZE];

	(void)state;
	for (size_t i = 0; i < len; i++) {
		assert_string_equal(want_text(&wants[i], text, sizeof(text)), texts[i]);
		for (size_t j = 0; j < len; j++)
			assert_int_equal(want_equal(&wants[i], &wants[j]), i == j);
	}
	wants[1].fingerprint = 5; /* no part of an id */
	assert_true(want_equal(&wants[1], &(struct schema_want){ .kind = WANT_ID, .id = 17 }));
}

static void test_identify(void **state)
{
	struct error error = { 0 };
	uint64_t fingerprint;
	uint8_t sha256[32];

	(void)state;
	must(catalog_identify(VIEW_LITERAL("{\"type\":\"int\"}"), &fingerprint, sha256, &error), &error);
	assert_true(fingerprint == UINT64_C(0x7275d51a3f395c8f)); /* the specification's own vector */
	assert_int_equal(catalog_identify(VIEW_LITERAL("{"), &fingerprint, sha256, &error), FATE_REJECT);
	assert_int_equal(error.code, ERR_INVALID);
}

static void test_states_by_the_registry(void **state)
{
	struct catalog *catalog = new_catalog(NULL, true, true);
	struct app_state old = state_of("app.State", V1);

	(void)state;
	struct schema_want want = misses(catalog, &old);
	assert_int_equal(want.kind, WANT_READER);
	assert_string_equal(want.name, "app.State");
	learn(catalog, &want, V2);
	want = misses(catalog, &old);
	assert_int_equal(want.kind, WANT_STATE);
	assert_string_equal(want.name, "app.State");
	assert_true(want.fingerprint == fingerprint_of(V1));
	catalog_deny(catalog, &want, LONG_MS, "the subject has no such version");
	refuses(catalog, &old, "register it under its subject, then retry: the subject has no such version");
	learn(catalog, &want, V1); /* which ends the denial */
	assert_string_equal(body_of(catalog, &old), "\x0e\x02");
	assert_int_equal(catalog_readers(catalog), 1);
	assert_int_equal(catalog_schemas(catalog), 2);

	/* A newer version: it is the reader, and what the last one wrote needs no asking. */
	struct app_state second = state_of("app.State", V2);
	second.body = VIEW_LITERAL("\x0e\x06");
	assert_null(body_of(catalog, &second));
	learn_reader(catalog, "app.State", V3);
	assert_string_equal(body_of(catalog, &old), "\x0e\x02\x04");
	assert_string_equal(body_of(catalog, &second), "\x0e\x06\x04");
	assert_int_equal(catalog_readers(catalog), 1);
	learn_reader(catalog, "app.State", V3); /* nothing new */
	assert_int_equal(catalog_readers(catalog), 1);
	assert_int_equal(catalog_schemas(catalog), 3);

	struct app_state other = state_of("app.Other", V1);
	want = misses(catalog, &other);
	catalog_deny(catalog, &want, LONG_MS, NULL);
	assert_null(body_of(catalog, &other));
	other.schema = VIEW_LITERAL("../of no/registry");
	assert_null(body_of(catalog, &other));
	other.schema = VIEW_LITERAL("");
	assert_null(body_of(catalog, &other));
	catalog_free(catalog);
}

static void test_nobody_to_ask(void **state)
{
	struct catalog *catalog = new_catalog(NULL, true, false);
	struct app_state old = state_of("app.State", V1);

	(void)state;
	assert_null(body_of(catalog, &old));
	learn_reader(catalog, "app.State", V2);
	refuses(catalog, &old, "register it under its subject, then retry");
	catalog_free(catalog);
	catalog = new_catalog(NULL, false, true);
	assert_null(body_of(catalog, &old)); /* without a registry only a folder has readers */
	catalog_free(catalog);
}

static void test_what_is_no_answer(void **state)
{
	struct catalog *catalog = new_catalog(NULL, true, true);
	struct schema_want want = want_of(WANT_STATE, "app.State", fingerprint_of(V1));
	struct error error = { 0 };

	(void)state;
	assert_int_equal(catalog_learn(catalog, &want, VIEW_LITERAL(V2), &error), FATE_REJECT);
	assert_int_equal(error.code, ERR_UNKNOWN_SCHEMA);
	assert_non_null(strstr(error.message, "of a state app.State: a schema of another fingerprint"));
	assert_int_equal(catalog_learn(catalog, &want, VIEW_LITERAL("{\"type\":"), &error), FATE_REJECT);
	assert_int_equal(error.code, ERR_INVALID);
	assert_non_null(strstr(error.message, "of a state app.State: schema: not JSON"));
	assert_int_equal(catalog_schemas(catalog), 0);
	catalog_free(catalog);
}

static void wait_past(int64_t ms)
{
	int64_t end = clock_mono_ms() + ms;

	while (clock_mono_ms() <= end)
		continue;
}

static void test_denials_end(void **state)
{
	struct catalog *catalog = new_catalog(NULL, true, true);
	struct app_state in = state_of("app.State", V1);
	struct schema_want want = misses(catalog, &in);

	(void)state;
	catalog_deny(catalog, &want, LONG_MS, NULL);
	assert_null(body_of(catalog, &in));
	catalog_deny(catalog, &want, 3, NULL); /* the last word counts */
	wait_past(3);
	assert_int_equal(misses(catalog, &in).kind, WANT_READER);
	catalog_deny(catalog, &want, INT64_MAX, NULL);
	assert_null(body_of(catalog, &in));

	/* The oldest of more than 4,096 is forgotten. */
	for (int i = 0; i < 4096; i++) {
		assert_null(body_of(catalog, &in));
		catalog_deny(catalog, &(struct schema_want){ .kind = WANT_ID, .id = i }, LONG_MS, NULL);
	}
	assert_int_equal(misses(catalog, &in).kind, WANT_READER);
	for (int i = 0; i < 10000; i++)
		catalog_deny(catalog, &want, LONG_MS, NULL);
	assert_null(body_of(catalog, &in));
	catalog_free(catalog);
}

static void test_folder_before_registry(void **state)
{
	struct catalog *catalog = new_catalog(folder, true, true);
	struct app_state old = state_of("app.State", V1);

	(void)state;
	learn_reader(catalog, "app.State", V3);
	learn(catalog, &(struct schema_want){ .kind = WANT_ID, .id = 3 }, V1); /* not as a state */
	assert_int_equal(misses(catalog, &old).kind, WANT_STATE);
	put("app.State.avsc", V2);
	make_folder("app.State");
	put("app.State/1.avsc", V1);
	assert_true(changed(catalog));
	assert_string_equal(body_of(catalog, &old), "\x0e\x02");
	gone("app.State.avsc");
	assert_true(changed(catalog));
	assert_string_equal(body_of(catalog, &old), "\x0e\x02\x04"); /* what was found is known still */
	gone("app.State/1.avsc");
	assert_true(changed(catalog));
	assert_false(changed(catalog));
	assert_string_equal(body_of(catalog, &old), "\x0e\x02\x04");
	gone("app.State");
	catalog_free(catalog);
}

static void test_reload(void **state)
{
	struct error error = { 0 };
	bool is_changed = true;

	(void)state;
	put("app.State.avsc", V2);
	make_folder("app.State");
	put("app.State/1.avsc", V1);
	struct catalog *catalog = new_catalog(folder, false, false);
	struct app_state old = state_of("app.State", V1);
	assert_string_equal(body_of(catalog, &old), "\x0e\x02");
	put("app.State.avsc", V3 " ");
	put("broken.avsc", "{");
	assert_int_equal(catalog_folder(catalog, &is_changed, &error), FATE_FATAL);
	assert_int_equal(error.code, ERR_USAGE);
	assert_non_null(strstr(error.message, "broken.avsc"));
	assert_false(is_changed);
	assert_string_equal(body_of(catalog, &old), "\x0e\x02"); /* as it was */
	gone("broken.avsc");
	assert_true(changed(catalog));
	assert_string_equal(body_of(catalog, &old), "\x0e\x02\x04");
	assert_int_equal(catalog_readers(catalog), 1);
	gone("app.State.avsc");
	assert_true(changed(catalog));
	assert_null(body_of(catalog, &old));
	assert_int_equal(catalog_readers(catalog), 0);
	put("app.State.avsc", V2);
	assert_true(changed(catalog));
	assert_string_equal(body_of(catalog, &old), "\x0e\x02");
	assert_int_equal(catalog_schemas(catalog), 3);
	gone("app.State.avsc");
	gone("app.State/1.avsc");
	gone("app.State");
	catalog_free(catalog);
}

/* One canonical form in two texts, which differ in what they match: decimals of one scale, and of another. */
static void test_same_form_in_two_texts(void **state)
{
#define DECIMAL(scale)                                                                                       \
	STATE("{\"name\":\"n\",\"type\":{\"type\":\"bytes\",\"logicalType\":\"decimal\",\"precision\":4,"        \
	      "\"scale\":" scale "}}")
#define WITH_EXTRA                                                                                           \
	STATE("{\"name\":\"n\",\"type\":{\"type\":\"bytes\",\"logicalType\":\"decimal\",\"precision\":4,"        \
	      "\"scale\":2}}," DEFAULT("extra", "1"))
	(void)state;
	make_folder("app.State");
	make_folder("a.Other");
	put("a.Other/1.avsc", DECIMAL("1"));
	put("app.State/1.avsc", DECIMAL("2"));
	put("app.State.avsc", WITH_EXTRA);
	struct catalog *catalog = new_catalog(folder, false, false);
	struct app_state in = state_of("app.State", DECIMAL("1"));
	in.body = VIEW_LITERAL("\x02\x01");
	assert_string_equal(body_of(catalog, &in), "\x02\x01\x02"); /* the same folder before another */
	gone("app.State/1.avsc");
	put("app.State/2.avsc", DECIMAL("3"));
	assert_true(changed(catalog));
	struct error error = { 0 };
	struct app_state out;
	struct schema_want want;
	struct view from;
	assert_int_equal(state_migrate(catalog, &in, arena, &out, &from, &want, &error), FATE_REJECT);
	assert_int_equal(error.code, ERR_INVALID); /* what is there now before what was */
	gone("app.State/2.avsc");
	gone("app.State.avsc");
	gone("app.State");
	gone("a.Other/1.avsc");
	gone("a.Other");
	catalog_free(catalog);
}

static void test_migrate_to(void **state)
{
	struct catalog *catalog = new_catalog(NULL, true, true);
	struct app_state old = state_of("app.State", V1), out;
	struct schema_want want;
	struct error error = { 0 };

	(void)state;
	assert_int_equal(state_migrate_to(catalog, VIEW_LITERAL(V3), &old, arena, &out, &want, &error),
	                 FATE_RETRY);
	assert_int_equal(want.kind, WANT_STATE);
	learn(catalog, &want, V1);
	must(state_migrate_to(catalog, VIEW_LITERAL(V3), &old, arena, &out, &want, &error), &error);
	assert_true(view_equal(out.body, VIEW_LITERAL("\x0e\x02\x04")));
	assert_int_equal(fingerprint_of_bytes(out.fingerprint.data), fingerprint_of(V3));
	must(state_migrate_to(catalog, VIEW_LITERAL(V1), &old, arena, &out, &want, &error), &error);
	assert_true(view_equal(out.body, old.body));
	assert_int_equal(state_migrate_to(catalog, VIEW_LITERAL("{"), &old, arena, &out, &want, &error),
	                 FATE_REJECT);
	assert_non_null(strstr(error.message, "the reader of a state: schema: not JSON"));
	assert_int_equal(state_migrate_to(NULL, VIEW_LITERAL(V3), &old, arena, &out, &want, &error), FATE_REJECT);
	assert_int_equal(error.code, ERR_UNKNOWN_SCHEMA);
	catalog_free(catalog);
}

struct listing {
	char text[2048];
	size_t most;
};

static bool list(void *context, const struct catalog_entry *entry)
{
	static const char *const from[] = { "program", "folder", "elsewhere" };
	struct listing *listing = context;
	size_t len = strlen(listing->text);

	snprintf(listing->text + len, sizeof(listing->text) - len, "%s%s %s %d\n", entry->name,
	         entry->reader ? "!" : "", from[entry->from], (int)entry->registry_id);
	return --listing->most > 0;
}

static void test_each(void **state)
{
	struct listing listing = { .most = 100 };
	struct schema_want want = { .kind = WANT_ID, .id = 12 };

	(void)state;
	put("app.State.avsc", V2);
	make_folder("app.State");
	put("app.State/1.avsc", V1);
	put("plain.avsc", "\"int\"");
	struct catalog *catalog = new_catalog(folder, true, true);
	learn(catalog, &want, STATE(FIELD("x", "int")));
	learn_reader(catalog, "z.Z", "\"string\"");
	catalog_each(catalog, list, &listing);
	assert_string_equal(listing.text, "app.State! folder 0\n"
	                                  "app.State folder 0\n"
	                                  "app.State elsewhere 12\n"
	                                  "fermata.v1.ApprovalEvent! program 0\n"
	                                  "fermata.v1.GateEvent! program 0\n"
	                                  "fermata.v1.ResumeEvent! program 0\n"
	                                  "fermata.v1.SuspendEvent! program 0\n"
	                                  "plain! folder 0\n"
	                                  "string! elsewhere 0\n");
	listing = (struct listing){ .most = 1 };
	catalog_each(catalog, list, &listing);
	assert_string_equal(listing.text, "app.State! folder 0\n");
	gone("app.State/1.avsc");
	gone("app.State");
	gone("app.State.avsc");
	gone("plain.avsc");
	catalog_free(catalog);
}

/* A hundred thousand, and no more. */
static void test_ceiling(void **state)
{
	struct catalog *catalog = new_catalog(NULL, true, true);
	struct schema_want want = { .kind = WANT_ID };
	struct error error = { 0 };
	enum fate fate = FATE_OK;
	char text[64];

	(void)state;
	while (fate == FATE_OK) {
		want.id++;
		snprintf(text, sizeof(text), "{\"type\":\"fixed\",\"name\":\"F%d\",\"size\":1}", want.id);
		fate = catalog_learn(catalog, &want, view_of(text), &error);
	}
	assert_int_equal(fate, FATE_RETRY);
	assert_int_equal(error.code, ERR_MEMORY);
	assert_int_equal(want.id, 100001);
	assert_non_null(strstr(error.message, "100000 schemas that were asked for are held, and no more"));
	want.id = 5;
	learn(catalog, &want, "{\"type\":\"fixed\",\"name\":\"F7\",\"size\":1}"); /* it has that */
	catalog_free(catalog);
}

/* A reader is held as it was parsed, and that counts: here nearly 32 MiB of tree each. */
static void test_ceiling_of_bytes(void **state)
{
	struct catalog *catalog = new_catalog(NULL, true, true);
	struct schema_want want = { .kind = WANT_READER };
	struct error error = { 0 };
	enum fate fate = FATE_OK;
	struct buffer text;
	int readers = 0;

	(void)state;
	buffer_init(&text, SCHEMA_TEXT_MAX);
	buffer_append_text(&text, "{\"type\":\"int\",\"x\":[{}");
	for (int i = 0; i < 115000; i++)
		buffer_append_text(&text, ",{}");
	buffer_append_text(&text, "]}");
	while (fate == FATE_OK && readers < 20) {
		snprintf(want.name, sizeof(want.name), "a.R%d", readers++);
		buffer_append_byte(&text, ' '); /* another text */
		fate = catalog_learn(catalog, &want, buffer_view(&text), &error);
	}
	assert_int_equal(fate, FATE_RETRY);
	assert_int_equal(error.code, ERR_MEMORY);
	assert_int_equal(readers, 9);
	assert_non_null(strstr(error.message, "no more than 256 are held"));
	buffer_done(&text);
	catalog_free(catalog);
}

/* ---- many threads ---- */

struct crowd {
	struct catalog *catalog;
	struct app_state old;
	atomic_bool stop;
	atomic_size_t seen;
};

static void *look(void *context)
{
	struct crowd *crowd = context;
	struct arena *own = arena_new((size_t)1 << 20);
	struct app_state out;
	struct schema_want want;
	struct view from;
	struct error error;
	struct listing listing = { .most = 100 };
	bool sound = own != NULL;

	while (sound && !atomic_load(&crowd->stop)) {
		arena_reset(own);
		enum fate fate = state_migrate(crowd->catalog, &crowd->old, own, &out, &from, &want, &error);
		/* By one reader or the other, or by none: never by half of one. */
		sound = fate == FATE_OK && (view_equal(out.body, VIEW_LITERAL("\x0e\x02")) ||
		                            view_equal(out.body, VIEW_LITERAL("\x0e\x02\x04")) || view_is_null(from));
		if (atomic_fetch_add(&crowd->seen, 1) % 16 == 0)
			catalog_each(crowd->catalog, list, &listing);
		listing = (struct listing){ .most = 100 };
	}
	arena_free(own);
	return sound ? crowd : NULL;
}

static void test_threads(void **state)
{
	struct crowd crowd = { .old = state_of("app.State", V1) };
	pthread_t threads[3];
	void *sound;

	(void)state;
	make_folder("app.State");
	put("app.State/1.avsc", V1);
	crowd.catalog = new_catalog(folder, true, true);
	learn_reader(crowd.catalog, "app.State", V3);
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, look, &crowd), 0);
	for (int i = 0; i < 200 || i % 2 != 0 || atomic_load(&crowd.seen) < 1000; i++) {
		struct schema_want want = { .kind = WANT_ID, .id = i };
		if (i % 2 == 0)
			put("app.State.avsc", i % 4 == 0 ? V2 : V3 " ");
		else
			gone("app.State.avsc");
		assert_true(changed(crowd.catalog));
		learn_reader(crowd.catalog, "app.State", i % 3 == 0 ? V2 : V3);
		learn(crowd.catalog, &want, i % 3 == 0 ? V2 : V3);
		want.id = -1;
		catalog_deny(crowd.catalog, &want, LONG_MS, NULL);
	}
	atomic_store(&crowd.stop, true);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(pthread_join(threads[i], &sound), 0);
		assert_non_null(sound);
	}
	gone("app.State/1.avsc");
	gone("app.State");
	catalog_free(crowd.catalog);
}

static int start(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/fermata-catalog.XXXXXX");
	arena = arena_new((size_t)64 << 20);
	return arena && mkdtemp(folder) ? 0 : -1;
}

static int stop(void **state)
{
	(void)state;
	arena_free(arena);
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wants),
		cmocka_unit_test(test_identify),
		cmocka_unit_test(test_states_by_the_registry),
		cmocka_unit_test(test_nobody_to_ask),
		cmocka_unit_test(test_what_is_no_answer),
		cmocka_unit_test(test_denials_end),
		cmocka_unit_test(test_folder_before_registry),
		cmocka_unit_test(test_reload),
		cmocka_unit_test(test_same_form_in_two_texts),
		cmocka_unit_test(test_migrate_to),
		cmocka_unit_test(test_each),
		cmocka_unit_test(test_ceiling),
		cmocka_unit_test(test_ceiling_of_bytes),
		cmocka_unit_test(test_threads),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
