// links: schemas core
/* The registry's client and the subjects of a registry: versions, what is found in them, what they would
 * take. */
#include "tests/unit/test_registry.h"

#define VERSION(number, id, schema)                                                                          \
	"{\"subject\":\"s\",\"version\":" #number ",\"id\":" #id ",\"schema\":\"" schema "\"}"
#define NO_SUBJECT  "{\"error_code\":40401,\"message\":\"Subject 's' not found.\"}"
#define NO_SCHEMA   "{\"error_code\":40403,\"message\":\"Schema not found\"}"
#define NO_RESOURCE "{\"error_code\":404,\"message\":\"HTTP 404 Not Found\"}"

/* --- versions --- */

static void ask_versions(struct fixture *fixture, enum fate wanted, enum error_code code, const char *says,
                         struct registry_version **ret_versions, size_t *ret_len, size_t *ret_unusable)
{
	*ret_unusable = 99;
	assert_fate(fixture,
	            registry_versions(fixture->registry, "s", fixture->arena, ret_versions, ret_len, ret_unusable,
	                              &fixture->error),
	            wanted, code, says);
}

static void test_versions(void **state)
{
	struct fixture *fixture = *state;
	struct registry_version *versions;
	size_t len, unusable;

	/* Not in order, one twice, one deleted meanwhile, one of another type, one that says no version. */
	RULES({ "GET /api/subjects/s/versions ", JSON, "[4,1,3,1,2]", PLAIN },
	      { "GET /api/subjects/s/versions/1 ", JSON, VERSION(1, 11, "\\\"int\\\""), PLAIN },
	      { "GET /api/subjects/s/versions/2 ", NOT_FOUND, "{\"error_code\":40402,\"message\":\"Version\"}",
	        PLAIN },
	      { "GET /api/subjects/s/versions/3 ", JSON, "{\"schemaType\":\"JSON\",\"schema\":\"{}\"}", PLAIN },
	      { "GET /api/subjects/s/versions/4 ", JSON, "{\"schema\":\"\\\"long\\\"\"}", PLAIN });
	ask_versions(fixture, FATE_OK, ERR_NONE, NULL, &versions, &len, &unusable);
	assert_int_equal(len, 2);
	assert_int_equal(unusable, 2);
	assert_int_equal(versions[0].version, 1);
	assert_int_equal(versions[0].id, 11);
	assert_true(view_equal_text(versions[0].text, "\"int\""));
	assert_int_equal(versions[1].version, 4);
	assert_int_equal(versions[1].id, 0);
	assert_true(view_equal_text(versions[1].text, "\"long\""));
	assert_int_equal(standin_connections(fixture->standin), 1);
	assert_int_equal(
		registry_versions(fixture->registry, "s", fixture->arena, &versions, &len, NULL, &fixture->error),
		FATE_OK);
}

static void test_no_versions(void **state)
{
	struct fixture *fixture = *state;
	const char *const strange[] = { "{}", "7", "[1,\"2\"]", "[0]", "[-1]", "[1.5]", "[2147483648]", "[", "" };
	struct registry_version *versions;
	size_t len, unusable;

	RULES({ NULL, NOT_FOUND, NO_SUBJECT, PLAIN });
	ask_versions(fixture, FATE_REJECT, ERR_UNKNOWN_SCHEMA, "Subject 's' not found.", &versions, &len,
	             &unusable);
	assert_int_equal(unusable, 0);
	RULES({ NULL, JSON, "[]", PLAIN });
	ask_versions(fixture, FATE_REJECT, ERR_UNKNOWN_SCHEMA, "no version", &versions, &len, &unusable);
	RULES({ NULL, JSON, "null", PLAIN });
	ask_versions(fixture, FATE_REJECT, ERR_UNKNOWN_SCHEMA, "no version", &versions, &len, &unusable);
	for (size_t i = 0; i < sizeof(strange) / sizeof(strange[0]); i++) {
		RULES({ NULL, JSON, strange[i], PLAIN });
		ask_versions(fixture, FATE_RETRY, ERR_SERVICE, "no schema registry's", &versions, &len, &unusable);
	}
	/* It goes away half way. */
	RULES({ "GET /api/subjects/s/versions ", JSON, "[1,2]", PLAIN },
	      { "GET /api/subjects/s/versions/2 ", JSON, VERSION(2, 2, "\\\"int\\\""), PLAIN },
	      { NULL, "503 Service Unavailable", "", PLAIN });
	ask_versions(fixture, FATE_RETRY, ERR_SERVICE, "503", &versions, &len, &unusable);
	assert_null(versions);
}

static void test_too_many_versions(void **state)
{
	struct fixture *fixture = *state;
	struct registry_version *versions;
	size_t len, unusable, at = 0;
	char *list = malloc(REGISTRY_VERSIONS_MAX * 8 + 16);

	for (int i = 1; i <= REGISTRY_VERSIONS_MAX + 1; i++)
		at += (size_t)snprintf(list + at, 12, "%c%d", i == 1 ? '[' : ',', i);
	memcpy(list + at, "]", 2);
	RULES({ NULL, JSON, list, PLAIN });
	ask_versions(fixture, FATE_REJECT, ERR_TOO_LARGE, "a list of 1001", &versions, &len, &unusable);
	free(list);
}

/* The oldest are left out when all of them are too much text. */
static void test_much_text(void **state)
{
	struct fixture *fixture = *state;
	const size_t size = (size_t)1000 * 1000;
	struct registry_version *versions;
	size_t len, unusable;
	char *body = malloc(size + 100);
	size_t at = (size_t)snprintf(body, 64, "{\"id\":1,\"schema\":\"\\\"int\\\"");

	memset(body + at, ' ', size - 5);
	memcpy(body + at + size - 5, "\"}", 3);
	RULES({ "GET /api/subjects/s/versions ", JSON, "[1,2,3,4,5,6,7,8,9,10]", PLAIN },
	      { NULL, JSON, body, PLAIN });
	ask_versions(fixture, FATE_OK, ERR_NONE, NULL, &versions, &len, &unusable);
	assert_int_equal(len, REGISTRY_VERSIONS_BYTES / size);
	assert_int_equal(unusable, 10 - len);
	assert_int_equal(versions[0].version, 10 - len + 1);
	assert_int_equal(versions[len - 1].version, 10);
	assert_int_equal(versions[0].text.len, size);
	free(body);
}

static void test_latest(void **state)
{
	struct fixture *fixture = *state;
	struct registry_version version;

	RULES({ "GET /api/subjects/s/versions/latest ", JSON, VERSION(9, 3, RECORD_IN_JSON), PLAIN });
	assert_done(fixture, registry_latest(fixture->registry, "s", fixture->arena, &version, &fixture->error));
	assert_int_equal(version.version, 9);
	assert_int_equal(version.id, 3);
	assert_true(view_equal_text(version.text, RECORD));
	RULES({ NULL, NOT_FOUND, NO_SUBJECT, PLAIN });
	assert_fate(fixture, registry_latest(fixture->registry, "s", fixture->arena, &version, &fixture->error),
	            FATE_REJECT, ERR_UNKNOWN_SCHEMA, "subject s of the schema registry http://127.0.0.1:");
	assert_true(view_is_null(version.text));
}

static void test_small_arena(void **state)
{
	struct fixture *fixture = *state;
	struct arena *arena = arena_new(16);
	assert_non_null(arena);
	struct registry_version version;

	RULES({ NULL, JSON, VERSION(9, 3, RECORD_IN_JSON), PLAIN });
	assert_fate(fixture, registry_latest(fixture->registry, "s", arena, &version, &fixture->error),
	            FATE_RETRY, ERR_MEMORY, "no room");
	arena_free(arena);
}

static void test_subjects(void **state)
{
	struct fixture *fixture = *state;
	struct view *subjects;
	size_t len;

	RULES({ "GET /api/subjects ", JSON, "[\"a\",\"b c/d\"]", PLAIN });
	assert_done(fixture,
	            registry_subjects(fixture->registry, fixture->arena, &subjects, &len, &fixture->error));
	assert_int_equal(len, 2);
	assert_true(view_equal_text(subjects[1], "b c/d"));
	RULES({ NULL, JSON, "null", PLAIN });
	assert_done(fixture,
	            registry_subjects(fixture->registry, fixture->arena, &subjects, &len, &fixture->error));
	assert_int_equal(len, 0);
	RULES({ NULL, JSON, "[\"a\",7]", PLAIN });
	assert_fate(fixture,
	            registry_subjects(fixture->registry, fixture->arena, &subjects, &len, &fixture->error),
	            FATE_RETRY, ERR_SERVICE, "no text in a list");
	size_t at = 1, most = REGISTRY_SUBJECTS_MAX + 1;
	char *list = malloc(most * 4 + 2);
	for (size_t i = 0; i < most; i++, at += 4)
		memcpy(list + at, "\"s\",", 4);
	list[0] = '[';
	memcpy(list + at - 1, "]", 2);
	RULES({ NULL, JSON, list, PLAIN });
	assert_fate(fixture,
	            registry_subjects(fixture->registry, fixture->arena, &subjects, &len, &fixture->error),
	            FATE_REJECT, ERR_TOO_LARGE, "a list of 100001");
	free(list);
}

/* --- looking up --- */

static void look_up(struct fixture *fixture, enum fate wanted, enum error_code code, const char *says,
                    int32_t id)
{
	int32_t got = -1;

	assert_fate(fixture, registry_lookup(fixture->registry, "s", VIEW_LITERAL(RECORD), &got, &fixture->error),
	            wanted, code, says);
	assert_int_equal(got, id);
}

static void test_lookup(void **state)
{
	struct fixture *fixture = *state;

	RULES({ "POST /api/subjects/s ", JSON, VERSION(1, 21, "whatever"), PLAIN });
	look_up(fixture, FATE_OK, ERR_NONE, NULL, 21);
	char *last = standin_last(fixture->standin);
	assert_non_null(strstr(last, "\r\n\r\n{\"schema\":\"" RECORD_IN_JSON "\"}"));
	free(last);
	RULES({ NULL, NOT_FOUND, NO_SUBJECT, PLAIN });
	look_up(fixture, FATE_REJECT, ERR_UNKNOWN_SCHEMA, "not found", 0);
	assert_int_equal(standin_requests(fixture->standin), 2); /* there is nothing to look through */
	RULES({ NULL, "500 Internal Server Error", "", PLAIN });
	look_up(fixture, FATE_RETRY, ERR_SERVICE, "500", 0);
}

/* A registry that compares texts does not find the schema that somebody wrote with other blanks and a doc. */
static void test_lookup_by_form(void **state)
{
	struct fixture *fixture = *state;
	const char *other =
		"{ \\\"name\\\": \\\"R\\\", \\\"namespace\\\": \\\"n\\\", \\\"doc\\\": \\\"d\\\", \\\"type\\\": "
		"\\\"record\\\", \\\"fields\\\": [ {\\\"type\\\": \\\"int\\\", \\\"name\\\": \\\"x\\\"} ] }";
	char body[400];

	snprintf(body, sizeof(body), "{\"version\":2,\"id\":22,\"schema\":\"%s\"}", other);
	RULES({ "POST /api/subjects/s ", NOT_FOUND, NO_SCHEMA, PLAIN },
	      { "GET /api/subjects/s/versions ", JSON, "[1,2,3]", PLAIN },
	      { "GET /api/subjects/s/versions/2 ", JSON, body, PLAIN },
	      { NULL, JSON, VERSION(1, 23, "\\\"int\\\""), PLAIN });
	look_up(fixture, FATE_OK, ERR_NONE, NULL, 22);
	RULES({ "POST /api/subjects/s ", NOT_FOUND, NO_SCHEMA, PLAIN },
	      { "GET /api/subjects/s/versions ", JSON, "[1,2,3]", PLAIN },
	      { NULL, JSON, VERSION(1, 23, "\\\"int\\\""), PLAIN });
	look_up(fixture, FATE_REJECT, ERR_UNKNOWN_SCHEMA, "none of its 3 versions", 0);
}

/* --- compatibility --- */

static void compare(struct fixture *fixture, bool compatible, const char *why)
{
	bool got = !compatible;
	struct view got_why = VIEW_LITERAL("stale");

	assert_done(fixture, registry_compatible(fixture->registry, "s", VIEW_LITERAL(RECORD), fixture->arena,
	                                         &got, &got_why, &fixture->error));
	assert_int_equal(got, compatible);
	if (!view_equal(got_why, view_of(why)))
		fail_msg("'%.*s' is not '%s'", (int)got_why.len, (const char *)got_why.data, why == NULL ? "" : why);
}

static void test_compatible(void **state)
{
	struct fixture *fixture = *state;

	RULES({ "POST /api/compatibility/subjects/s/versions?verbose=true ", JSON, "{\"is_compatible\":true}",
	        PLAIN });
	compare(fixture, true, NULL);
	RULES({ NULL, JSON, "{\"is_compatible\":false,\"messages\":[\"one\\n\",7,\"two\xc3\xa9\"]}", PLAIN });
	compare(fixture, false, "one ; two\xc3\xa9");
	RULES({ NULL, JSON, "{\"is_compatible\":false,\"reason\":\"because\"}", PLAIN });
	compare(fixture, false, "because");
	RULES({ NULL, JSON, "{\"is_compatible\":false,\"reason\":null,\"messages\":null}", PLAIN });
	compare(fixture, false, NULL);
	RULES({ NULL, NOT_FOUND, NO_SUBJECT, PLAIN });
	compare(fixture, true, NULL);
	RULES({ NULL, "422 Unprocessable Entity", "{\"error_code\":42201,\"message\":\"no schema\"}", PLAIN });
	compare(fixture, false, "no schema");
	/* One that knows only the question about one version. */
	RULES({ "POST /api/compatibility/subjects/s/versions/latest?verbose=true ", JSON,
	        "{\"is_compatible\":true}", PLAIN },
	      { "POST ", NOT_FOUND, NO_RESOURCE, PLAIN });
	compare(fixture, true, NULL);
	RULES({ "POST /api/compatibility/subjects/s/versions/latest?verbose=true ", JSON,
	        "{\"is_compatible\":true}", PLAIN },
	      { "POST ", "405 Method Not Allowed", "", PLAIN });
	compare(fixture, true, NULL);
}

static void test_compatible_fails(void **state)
{
	struct fixture *fixture = *state;
	const struct rule rules[] = {
		{ NULL, JSON, "{\"is_compatible\":\"yes\"}", PLAIN },
		{ NULL, JSON, "[]", PLAIN },
		{ NULL, NOT_FOUND, NO_RESOURCE, PLAIN },
		{ NULL, "429 Too Many Requests", "", PLAIN },
		{ NULL, NULL, NULL, RESET },
	};
	bool compatible;
	struct view why;

	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		standin_rules(fixture->standin, &rules[i], 1);
		assert_fate(fixture,
		            registry_compatible(fixture->registry, "s", VIEW_LITERAL(RECORD), fixture->arena,
		                                &compatible, &why, &fixture->error),
		            FATE_RETRY, ERR_SERVICE, "subject s");
		assert_false(compatible);
	}
}

static void test_long_why(void **state)
{
	struct fixture *fixture = *state;
	char *body = malloc(20000);
	size_t at = (size_t)snprintf(body, 64, "{\"is_compatible\":false,\"messages\":[");
	bool compatible;
	struct view why;

	for (int i = 0; i < 1000; i++, at += 15)
		memcpy(body + at, "\"a long story\",", 15);
	memcpy(body + at - 1, "]}", 3);
	RULES({ NULL, JSON, body, PLAIN });
	assert_done(fixture, registry_compatible(fixture->registry, "s", VIEW_LITERAL(RECORD), fixture->arena,
	                                         &compatible, &why, &fixture->error));
	assert_in_range(why.len, 1900, 2100);
	free(body);
}

/* --- rules --- */

static void expect_rule(struct fixture *fixture, const char *rule)
{
	struct view got;

	assert_done(fixture, registry_rule(fixture->registry, "s", fixture->arena, &got, &fixture->error));
	assert_true(view_equal_text(got, rule));
}

static void test_rule(void **state)
{
	struct fixture *fixture = *state;
	struct view rule;

	RULES({ "GET /api/config/s ", JSON, "{\"compatibilityLevel\":\"FULL_TRANSITIVE\"}", PLAIN });
	expect_rule(fixture, "FULL_TRANSITIVE");
	RULES({ "GET /api/config ", JSON, "{\"compatibility\":\"BACKWARD\"}", PLAIN },
	      { NULL, NOT_FOUND, "{\"error_code\":40408,\"message\":\"no rule of its own\"}", PLAIN });
	expect_rule(fixture, "BACKWARD");
	RULES({ "GET /api/config ", JSON, "{\"compatibilityLevel\":\"NONE\"}", PLAIN },
	      { NULL, NOT_FOUND, "", PLAIN });
	expect_rule(fixture, "NONE");
	RULES({ "GET /api/config ", JSON, "{\"compatibilityLevel\":\"FORWARD\"}", PLAIN },
	      { NULL, JSON, "{\"compatibilityLevel\":\"NONE\"}", PLAIN });
	expect_rule(fixture, "NONE");
	assert_done(fixture, registry_rule(fixture->registry, NULL, fixture->arena, &rule, &fixture->error));
	assert_true(view_equal_text(rule, "FORWARD"));
	RULES({ NULL, NULL, NULL, RESET });
	assert_fate(fixture, registry_rule(fixture->registry, NULL, fixture->arena, &rule, &fixture->error),
	            FATE_RETRY, ERR_SERVICE, "schema registry");
	RULES({ NULL, JSON, "{}", PLAIN });
	assert_fate(fixture, registry_rule(fixture->registry, "s", fixture->arena, &rule, &fixture->error),
	            FATE_RETRY, ERR_SERVICE, "compatibilityLevel");
	RULES({ NULL, NOT_FOUND, NO_RESOURCE, PLAIN });
	assert_fate(fixture, registry_rule(fixture->registry, "s", fixture->arena, &rule, &fixture->error),
	            FATE_RETRY, ERR_SERVICE, "path in registry.url");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_versions),       TEST(test_no_versions), TEST(test_too_many_versions), TEST(test_much_text),
		TEST(test_latest),         TEST(test_small_arena), TEST(test_subjects),          TEST(test_lookup),
		TEST(test_lookup_by_form), TEST(test_compatible),  TEST(test_compatible_fails),  TEST(test_long_why),
		TEST(test_rule),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
