// links: schemas core
/* The catalog: what is learnt, denied and forgotten, and how much of it. */
#include "test_schemas_catalog.h"

#include "core/clock.h"
#include "schemas/schema.h"
#include <time.h>

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
		nanosleep(&(struct timespec){ .tv_nsec = 500000 }, NULL);
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

static void test_migrate_to(void **state)
{
	struct catalog *catalog = new_catalog(NULL, true, true);
	struct app_state old = state_of("app.State", V1), out;
	struct state_reader *v1, *v3;
	struct schema_want want;
	struct error error = { 0 };

	(void)state;
	must(state_reader_new(&v1, VIEW_LITERAL(V1), &error), &error);
	must(state_reader_new(&v3, VIEW_LITERAL(V3), &error), &error);
	assert_int_equal(state_migrate_to(catalog, v3, &old, arena, &out, &want, &error), FATE_RETRY);
	assert_int_equal(want.kind, WANT_STATE);
	learn(catalog, &want, V1);
	must(state_migrate_to(catalog, v3, &old, arena, &out, &want, &error), &error);
	assert_true(view_equal(out.body, VIEW_LITERAL("\x0e\x02\x04")));
	assert_int_equal(fingerprint_of_bytes(out.fingerprint.data), fingerprint_of(V3));
	must(state_migrate_to(catalog, v1, &old, arena, &out, &want, &error), &error);
	assert_true(view_equal(out.body, old.body));
	assert_int_equal(state_reader_new(&v1, VIEW_LITERAL("{"), &error), FATE_REJECT);
	assert_non_null(strstr(error.message, "the reader of a state: schema: not JSON"));
	assert_int_equal(state_migrate_to(NULL, v3, &old, arena, &out, &want, &error), FATE_REJECT);
	assert_int_equal(error.code, ERR_UNKNOWN_SCHEMA);
	state_reader_free(v1);
	state_reader_free(v3);
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
		assert_false(buffer_failed(&text));
		fate = catalog_learn(catalog, &want, buffer_view(&text), &error);
	}
	assert_int_equal(fate, FATE_RETRY);
	assert_int_equal(error.code, ERR_MEMORY);
	assert_int_equal(readers, 9);
	assert_non_null(strstr(error.message, "no more than 256 are held"));
	buffer_done(&text);
	catalog_free(catalog);
}

static int start(void **state)
{
	(void)state;
	arena = arena_new((size_t)64 << 20);
	assert_non_null(arena);
	return arena ? 0 : -1;
}

static int stop(void **state)
{
	(void)state;
	arena_free(arena);
	return 0;
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
		cmocka_unit_test(test_migrate_to),
		cmocka_unit_test(test_ceiling),
		cmocka_unit_test(test_ceiling_of_bytes),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
