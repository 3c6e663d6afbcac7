// links: schemas core
/* A registry is asked for what a catalog is missing, and what the catalog makes of it. */
#include "tests/unit/test_registry.h"

#include "schemas/ask.h"
#include "schemas/fingerprint.h"

/* A state's schema in three versions, as text and within JSON. */
#define V1 "{\"type\":\"record\",\"name\":\"app.State\",\"fields\":[{\"name\":\"n\",\"type\":\"int\"}]}"
#define V2 "{\"type\":\"record\",\"name\":\"app.State\",\"fields\":[{\"name\":\"n\",\"type\":\"long\"}]}"
#define V3 "{\"type\":\"record\",\"name\":\"app.State\",\"fields\":[{\"name\":\"n\",\"type\":\"double\"}]}"
#define IN_JSON(t)                                                                                           \
	"{\\\"type\\\":\\\"record\\\",\\\"name\\\":\\\"app.State\\\",\\\"fields\\\":[{\\\"name\\\":\\\"n\\\","   \
	"\\\"type\\\":\\\"" t "\\\"}]}"
#define VERSION(number, id, text) "{\"version\":" #number ",\"id\":" #id ",\"schema\":\"" text "\"}"
#define SUBJECT                   "/api/subjects/states.app.State/versions"

#define HISTORY                                                                                              \
	{ "GET " SUBJECT " ", JSON, "[1,2,3]", PLAIN },                                                          \
		{ "GET " SUBJECT "/1 ", JSON, VERSION(1, 11, IN_JSON("int")), PLAIN },                               \
		{ "GET " SUBJECT "/2 ", JSON, VERSION(2, 12, IN_JSON("long")), PLAIN },                              \
		{ "GET " SUBJECT "/3 ", JSON, VERSION(3, 13, IN_JSON("double")), PLAIN },                            \
	{                                                                                                        \
		"GET " SUBJECT "/latest ", JSON, VERSION(3, 13, IN_JSON("double")), PLAIN                            \
	}

struct world {
	struct fixture *fixture;
	struct catalog *catalog;
	struct view text;
	struct ask_found *found;
	size_t found_len;
	const char *record_subject;
};

static struct world begin(void **state)
{
	struct world world = { .fixture = *state };
	struct catalog_settings settings = { .registry = true, .asks = true };

	assert_done(world.fixture, catalog_new(&world.catalog, &settings, &world.fixture->error));
	return world;
}

static void ask(struct world *world, const struct schema_want *want, enum fate wanted, const char *text)
{
	struct fixture *fixture = world->fixture;

	world->text = VIEW_LITERAL("stale");
	assert_fate(fixture,
	            registry_ask(fixture->registry, world->catalog, want, "states.{schema}",
	                         world->record_subject, fixture->arena, &world->text, &world->found,
	                         &world->found_len, &fixture->error),
	            wanted, ERR_SERVICE, NULL);
	if (!view_equal(world->text, view_of(text)))
		fail_msg("got %.*s", (int)world->text.len, (const char *)world->text.data);
}

static struct schema_want want_of(enum want_kind kind, const char *text)
{
	struct schema_want want = { .kind = kind, .name = "app.State" };
	struct error error;

	assert_int_equal(catalog_identify(view_of(text), &want.fingerprint, want.sha256, &error), FATE_OK);
	return want;
}

/* A state with n = 7, written as V1. */
static enum fate migrate(struct world *world, struct app_state *ret_state, struct schema_want *ret_want)
{
	struct fixture *fixture = world->fixture;
	static uint8_t bytes[8];
	struct schema_want v1 = want_of(WANT_STATE, V1);
	struct view from;

	fingerprint_bytes(v1.fingerprint, bytes);
	const struct app_state in = { .schema = VIEW_LITERAL("app.State"),
		                          .encoding = ENCODING_AVRO,
		                          .fingerprint = { bytes, sizeof(bytes) },
		                          .body = VIEW_LITERAL("\x0e"),
		                          .present = true };
	return state_migrate(world->catalog, &in, fixture->arena, ret_state, &from, ret_want, &fixture->error);
}

/* From nothing to a state that loads, each want asked for as it comes up. */
static void test_state(void **state)
{
	struct world world = begin(state);
	struct fixture *fixture = world.fixture;
	struct schema_want want;
	struct app_state migrated;

	RULES(HISTORY);
	assert_fate(fixture, migrate(&world, &migrated, &want), FATE_RETRY, ERR_UNKNOWN_SCHEMA, NULL);
	assert_int_equal(want.kind, WANT_READER);
	ask(&world, &want, FATE_OK, V3);
	assert_int_equal(world.found_len, 1);
	assert_int_equal(world.found[0].id, 13);
	assert_int_equal(standin_requests(fixture->standin), 1);
	assert_fate(fixture, migrate(&world, &migrated, &want), FATE_RETRY, ERR_UNKNOWN_SCHEMA, NULL);
	assert_int_equal(want.kind, WANT_STATE);
	ask(&world, &want, FATE_OK, V1);
	assert_int_equal(world.found_len, 3);
	assert_int_equal(world.found[1].id, 12);
	assert_true(view_equal_text(world.found[1].text, V2));
	assert_done(fixture, migrate(&world, &migrated, &want));
	assert_memory_equal(migrated.body.data, "\0\0\0\0\0\0\x1c\x40", 8); /* 7.0 */
	assert_int_equal(catalog_schemas(world.catalog), 3);
	catalog_free(world.catalog);
}

/* A newer version becomes the reader when it is asked for again; one that cannot be used leaves the one
 * before. */
static void test_reader_again(void **state)
{
	struct world world = begin(state);
	struct fixture *fixture = world.fixture;
	struct schema_want reader = want_of(WANT_READER, V1), want;
	struct app_state migrated;

	RULES({ NULL, JSON, VERSION(1, 11, IN_JSON("int")), PLAIN });
	ask(&world, &reader, FATE_OK, V1);
	RULES({ NULL, JSON, VERSION(2, 12, IN_JSON("long")), PLAIN });
	ask(&world, &reader, FATE_OK, V2);
	RULES({ NULL, JSON, "{\"schema\":\"\",\"schemaType\":\"PROTOBUF\"}", PLAIN });
	ask(&world, &reader, FATE_OK, NULL);
	assert_int_equal(catalog_readers(world.catalog), 1);
	assert_done(fixture, migrate(&world, &migrated, &want));
	assert_int_equal(fingerprint_of_bytes(migrated.fingerprint.data), want_of(WANT_STATE, V2).fingerprint);
	catalog_free(world.catalog);
}

static void test_no_reader(void **state)
{
	struct world world = begin(state);
	struct fixture *fixture = world.fixture;
	struct schema_want want;
	struct app_state migrated;

	RULES({ NULL, NOT_FOUND, "{\"error_code\":40401,\"message\":\"no subject\"}", PLAIN });
	assert_fate(fixture, migrate(&world, &migrated, &want), FATE_RETRY, ERR_UNKNOWN_SCHEMA, NULL);
	ask(&world, &want, FATE_OK, NULL);
	assert_int_equal(world.found_len, 0);
	assert_done(fixture, migrate(&world, &migrated, &want)); /* as it is */
	assert_true(view_equal_text(migrated.body, "\x0e"));
	catalog_free(world.catalog);
}

/* What nobody has: the refusal says what the registry said. */
static void test_no_state(void **state)
{
	struct world world = begin(state);
	struct fixture *fixture = world.fixture;
	struct schema_want reader = want_of(WANT_READER, V3), want;
	struct app_state migrated;

	RULES({ "GET " SUBJECT " ", JSON, "[2,3]", PLAIN }, HISTORY);
	ask(&world, &reader, FATE_OK, V3);
	assert_fate(fixture, migrate(&world, &migrated, &want), FATE_RETRY, ERR_UNKNOWN_SCHEMA, NULL);
	ask(&world, &want, FATE_OK, NULL);
	assert_int_equal(world.found_len, 2);
	assert_fate(fixture, migrate(&world, &migrated, &want), FATE_REJECT, ERR_UNKNOWN_SCHEMA,
	            "none of the 2 versions");
	/* The others were learnt all the same. */
	assert_int_equal(catalog_schemas(world.catalog), 2);
	catalog_free(world.catalog);
}

/* An outage denies nothing: the same again later works. */
static void test_outage(void **state)
{
	struct world world = begin(state);
	struct fixture *fixture = world.fixture;
	struct schema_want wants[] = { want_of(WANT_READER, V3),
		                           want_of(WANT_STATE, V1),
		                           want_of(WANT_SHA256, V1),
		                           { .kind = WANT_ID, .id = 7 },
		                           { .kind = WANT_GUID } };
	struct schema_want want;
	struct app_state migrated;

	world.record_subject = "s";
	RULES({ "GET " SUBJECT " ", JSON, "[1]", PLAIN }, { NULL, "503 Service Unavailable", "", PLAIN });
	for (size_t i = 0; i < sizeof(wants) / sizeof(wants[0]); i++) {
		ask(&world, &wants[i], FATE_RETRY, NULL);
		assert_null(world.found);
	}
	RULES(HISTORY);
	for (int i = 0; i < 2; i++) {
		assert_fate(fixture, migrate(&world, &migrated, &want), FATE_RETRY, ERR_UNKNOWN_SCHEMA, NULL);
		ask(&world, &want, FATE_OK, i == 0 ? V3 : V1);
	}
	assert_done(fixture, migrate(&world, &migrated, &want));
	catalog_free(world.catalog);
}

static bool has_id(void *context, const struct catalog_entry *entry)
{
	int32_t *id = context;

	*id = entry->registry_id > 0 ? entry->registry_id : *id;
	return true;
}

static void test_ids(void **state)
{
	struct world world = begin(state);
	struct fixture *fixture = world.fixture;
	struct schema_want id = { .kind = WANT_ID, .id = 7 }, guid = { .kind = WANT_GUID, .guid = { 0xab, 1 } };
	int32_t seen = 0;

	RULES({ "GET /api/schemas/ids/7 ", JSON, "{\"schema\":\"" IN_JSON("int") "\"}", PLAIN },
	      { "GET /api/schemas/guids/ab010000-0000-0000-0000-000000000000 ", JSON,
	        "{\"schema\":\"" IN_JSON("long") "\"}", PLAIN });
	ask(&world, &id, FATE_OK, V1);
	assert_int_equal(world.found_len, 1);
	assert_int_equal(world.found[0].id, 7);
	ask(&world, &guid, FATE_OK, V2);
	assert_int_equal(world.found[0].id, 0);
	catalog_each(world.catalog, has_id, &seen);
	assert_int_equal(seen, 7);
	RULES({ NULL, NOT_FOUND, "{\"error_code\":40403,\"message\":\"Schema 7 not found\"}", PLAIN });
	id.id = 8;
	ask(&world, &id, FATE_OK, NULL);
	catalog_free(world.catalog);
}

/* Records of Fermata's own in versions that this program does not have. */
static void test_records(void **state)
{
	struct world world = begin(state);
	struct fixture *fixture = world.fixture;
	struct schema_want sealed = want_of(WANT_SHA256, V2), sent = want_of(WANT_FINGERPRINT, V1);

	snprintf(sent.name, sizeof(sent.name), "fermata.v1.SuspendEvent");
	sealed.name[0] = '\0';
	RULES(HISTORY);
	ask(&world, &sealed, FATE_OK, NULL); /* nobody said which subject */
	assert_int_equal(standin_requests(fixture->standin), 0);
	world.record_subject = "states.app.State";
	ask(&world, &sealed, FATE_OK, V2);
	assert_int_equal(world.found_len, 3);
	assert_int_equal(catalog_schemas(world.catalog), 1);
	ask(&world, &sent, FATE_OK, V1);
	sent.fingerprint++;
	ask(&world, &sent, FATE_OK, NULL);
	catalog_free(world.catalog);
}

static void test_subjects_of_states(void **state)
{
	struct world world = begin(state);
	struct fixture *fixture = world.fixture;
	struct schema_want want = want_of(WANT_READER, V1);
	const struct {
		const char *pattern, *request;
	} cases[] = {
		{ "{schema}", "GET /api/subjects/app.State/versions/latest " },
		{ "a {schema}/{schema}{schema",
		  "GET /api/subjects/a%20app.State%2Fapp.State%7Bschema/versions/latest " },
		{ "all", "GET /api/subjects/all/versions/latest " },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		RULES({ cases[i].request, JSON, VERSION(1, 11, IN_JSON("int")), PLAIN });
		assert_done(fixture, registry_ask(fixture->registry, world.catalog, &want, cases[i].pattern, NULL,
		                                  fixture->arena, &world.text, &world.found, &world.found_len,
		                                  &fixture->error));
		assert_true(view_equal_text(world.text, V1));
	}
	/* Names come from whoever sends a state. */
	size_t asked = standin_requests(fixture->standin);
	snprintf(want.name, sizeof(want.name), "..");
	assert_done(fixture, registry_ask(fixture->registry, world.catalog, &want, "{schema}", NULL,
	                                  fixture->arena, &world.text, &world.found, &world.found_len, NULL));
	assert_true(view_is_null(world.text));
	assert_done(fixture, registry_ask(fixture->registry, world.catalog, &want, NULL, NULL, fixture->arena,
	                                  &world.text, &world.found, &world.found_len, NULL));
	assert_true(view_is_null(world.text));
	assert_int_equal(standin_requests(fixture->standin), asked);
	catalog_free(world.catalog);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_state),  TEST(test_reader_again), TEST(test_no_reader), TEST(test_no_state),
		TEST(test_outage), TEST(test_ids),          TEST(test_records),   TEST(test_subjects_of_states),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
