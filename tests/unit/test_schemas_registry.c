// links: schemas core
/* The registry's client against a server that does whatever may be done to a client. */
#include "tests/unit/test_registry.h"

#include "core/clock.h"

#define SHORT_MS 300

/* --- what is asked --- */

static void expect_request(struct fixture *fixture, const char *begin, const char *end)
{
	char *last = standin_last(fixture->standin);
	size_t len = strlen(last), end_len = strlen(end);

	if (strncmp(last, begin, strlen(begin)) != 0 || len < end_len || strcmp(last + len - end_len, end) != 0)
		fail_msg("asked:\n%s\nand not:\n%s...%s", last, begin, end);
	free(last);
}

static void test_by_id(void **state)
{
	struct fixture *fixture = *state;

	RULES({ "GET /api/schemas/ids/7 ", JSON, "{\"schema\":\"" RECORD_IN_JSON "\"}", PLAIN });
	expect_by_id(fixture, FATE_OK, ERR_NONE, RECORD);
	expect_request(fixture, "GET /api/schemas/ids/7 HTTP/1.1\r\n", "\r\n\r\n");
	char *last = standin_last(fixture->standin);
	assert_non_null(strstr(last, "\r\nAccept: application/vnd.schemaregistry.v1+json, "));
	assert_null(strstr(last, "Authorization"));
	assert_null(strstr(last, "Expect"));
	free(last);
	RULES({ NULL, JSON,
	        "{\"schema\":\"\\\"string\\\"\",\"id\":7,\"schemaType\":\"AVRO\",\"references\":[],\"version\":"
	        "null,"
	        "\"guid\":\"x\",\"metadata\":null,\"ruleSet\":null}",
	        PLAIN });
	expect_by_id(fixture, FATE_OK, ERR_NONE, "\"string\"");
	RULES({ NULL, "200 OK\r\nContent-Type: text/html",
	        "{\"schema\":\"\\\"int\\\"\",\"references\":null,\"schemaType\":null}", PLAIN });
	expect_by_id(fixture, FATE_OK, ERR_NONE, "\"int\"");
	assert_int_equal(standin_connections(fixture->standin), 1); /* kept */
}

static void test_ids_that_cannot_be(void **state)
{
	struct fixture *fixture = *state;
	struct view got;

	assert_int_equal(registry_by_id(fixture->registry, -1, fixture->arena, &got, &fixture->error),
	                 FATE_REJECT);
	assert_int_equal(fixture->error.code, ERR_UNKNOWN_SCHEMA);
	assert_says(fixture, "4294967295");
	assert_int_equal(standin_requests(fixture->standin), 0);
}

static void test_by_guid(void **state)
{
	struct fixture *fixture = *state;
	const uint8_t guid[16] = {
		0x89, 0x79, 0x10, 0x88, 0xaa, 0xbb, 0x4c, 0xcc, 0x8d, 0xdd, 1, 2, 3, 4, 5, 0xff
	};
	struct view got;

	RULES({ "GET /api/schemas/guids/89791088-aabb-4ccc-8ddd-0102030405ff ", JSON,
	        "{\"schema\":\"\\\"long\\\"\"}", PLAIN },
	      { "GET /api/config ", JSON, "{\"compatibilityLevel\":\"NONE\"}", PLAIN });
	assert_int_equal(registry_by_guid(fixture->registry, guid, fixture->arena, &got, &fixture->error),
	                 FATE_OK);
	assert_true(view_equal_text(got, "\"long\""));
	/* A registry that knows no GUIDs has no such address. */
	RULES({ "GET /api/config ", JSON, "{\"compatibilityLevel\":\"NONE\"}", PLAIN },
	      { NULL, NOT_FOUND, "{\"error_code\":0,\"message\":\"no resource\"}", PLAIN });
	assert_int_equal(registry_by_guid(fixture->registry, guid, fixture->arena, &got, &fixture->error),
	                 FATE_REJECT);
	assert_int_equal(fixture->error.code, ERR_UNKNOWN_SCHEMA);
	assert_says(fixture, "89791088-aabb-4ccc-8ddd-0102030405ff");
	assert_says(fixture, "does not know this kind of question");
}

static void test_register(void **state)
{
	struct fixture *fixture = *state;
	struct registry *registry = fixture->registry;
	int32_t id = -1;

	RULES({ "POST /api/subjects/fermata.gates-value/versions ", JSON, "{\"id\":12}", PLAIN });
	assert_int_equal(registry_register(registry, "fermata.gates-value", VIEW_LITERAL("\"in\\u0074\""), &id,
	                                   &fixture->error),
	                 FATE_OK);
	assert_int_equal(id, 12);
	expect_request(fixture, "POST /api/subjects/fermata.gates-value/versions HTTP/1.1\r\n",
	               "\r\n\r\n{\"schema\":\"\\\"in\\\\u0074\\\"\"}");
	char *last = standin_last(fixture->standin);
	assert_non_null(strstr(last, "\r\nContent-Type: application/vnd.schemaregistry.v1+json\r\n"));
	free(last);

	RULES({ NULL, "409 Conflict\r\nContent-Type: application/json",
	        "{\"error_code\":409,\"message\":\"Schema being registered is\\nincompatible\"}", PLAIN });
	assert_int_equal(registry_register(registry, "s", VIEW_LITERAL("\"int\""), &id, &fixture->error),
	                 FATE_REJECT);
	assert_int_equal(fixture->error.code, ERR_INVALID);
	assert_string_equal(fixture->error.native, "HTTP 409");
	assert_says(fixture, "subject s of the schema registry http://127.0.0.1:");
	assert_says(fixture, "(409): Schema being registered is incompatible");
	assert_int_equal(id, 0);

	RULES({ NULL, "200 OK", "{\"version\":1}", PLAIN });
	assert_int_equal(registry_register(registry, "s", VIEW_LITERAL("\"int\""), &id, &fixture->error),
	                 FATE_RETRY);
	assert_int_equal(fixture->error.code, ERR_SERVICE);
	RULES({ NULL, "200 OK", "{\"id\":2147483648}", PLAIN });
	assert_int_equal(registry_register(registry, "s", VIEW_LITERAL("\"int\""), &id, &fixture->error),
	                 FATE_RETRY);
}

static void test_texts_that_are_not_sent(void **state)
{
	struct fixture *fixture = *state;
	static char large[1024 * 1024 + 1];
	int32_t id;

	memset(large, ' ', sizeof(large));
	assert_int_equal(registry_register(fixture->registry, "s",
	                                   (struct view){ (uint8_t *)large, sizeof(large) }, &id,
	                                   &fixture->error),
	                 FATE_REJECT);
	assert_int_equal(fixture->error.code, ERR_TOO_LARGE);
	assert_int_equal(
		registry_register(fixture->registry, "s", VIEW_LITERAL("\"\xff\""), &id, &fixture->error),
		FATE_REJECT);
	assert_int_equal(fixture->error.code, ERR_INVALID);
	assert_int_equal(standin_requests(fixture->standin), 0);
}

/* As long as it may be, with six characters for each of its own. */
static void test_large_text(void **state)
{
	struct fixture *fixture = *state;
	const size_t len = (size_t)1024 * 1024;
	char *text = malloc(len), *body = malloc(len * 6 + 64);
	int32_t id;
	struct view got;

	memset(text, '\t', len);
	memcpy(text, "\"int\"", 5);
	RULES({ NULL, JSON, "{\"id\":1}", PLAIN });
	assert_int_equal(registry_register(fixture->registry, "s", (struct view){ (uint8_t *)text, len }, &id,
	                                   &fixture->error),
	                 FATE_OK);
	char *last = standin_last(fixture->standin);
	assert_int_equal(strlen(strstr(last, "\r\n\r\n")),
	                 4 + strlen("{\"schema\":\"\\\"int\\\"\"}") + (len - 5) * 2);
	free(last);
	size_t at = (size_t)snprintf(body, 64, "{\"schema\":\"\\\"int\\\"");
	for (size_t i = 5; i < len; i++, at += 6)
		memcpy(body + at, "\\u0009", 6);
	memcpy(body + at, "\"}", 3);
	RULES({ NULL, JSON, body, PLAIN });
	assert_int_equal(registry_by_id(fixture->registry, 7, fixture->arena, &got, &fixture->error), FATE_OK);
	assert_true(view_equal(got, (struct view){ (uint8_t *)text, len }));
	free(text);
	free(body);
}

static void test_subjects_in_paths(void **state)
{
	struct fixture *fixture = *state;
	const char *const impossible[] = { "", ".", "..", "\xff", NULL };
	static char large[4098];
	struct registry_version version;

	RULES({ NULL, JSON, "{\"schema\":\"\\\"int\\\"\",\"id\":3,\"version\":2}", PLAIN });
	assert_int_equal(registry_latest(fixture->registry, "a b/c?d%e\xc3\xa9~._-", fixture->arena, &version,
	                                 &fixture->error),
	                 FATE_OK);
	expect_request(fixture, "GET /api/subjects/a%20b%2Fc%3Fd%25e%C3%A9~._-/versions/latest HTTP/1.1\r\n", "");
	assert_int_equal(version.id, 3);
	assert_int_equal(version.version, 2);
	size_t asked = standin_requests(fixture->standin);
	memset(large, 'a', sizeof(large) - 1);
	for (size_t i = 0; i <= sizeof(impossible) / sizeof(impossible[0]); i++) {
		const char *subject = i < sizeof(impossible) / sizeof(impossible[0]) ? impossible[i] : large;
		assert_int_equal(
			registry_latest(fixture->registry, subject, fixture->arena, &version, &fixture->error),
			FATE_REJECT);
		assert_int_equal(fixture->error.code, ERR_INVALID);
	}
	assert_int_equal(standin_requests(fixture->standin), asked);
}

/* --- what there is and cannot be used, and what is not there --- */

static void test_unusable(void **state)
{
	struct fixture *fixture = *state;

	RULES({ NULL, JSON, "{\"schema\":\"syntax = 1;\",\"schemaType\":\"PROTOBUF\"}", PLAIN });
	expect_by_id(fixture, FATE_REJECT, ERR_UNKNOWN_SCHEMA, "type PROTOBUF");
	RULES({ NULL, JSON,
	        "{\"schema\":\"" RECORD_IN_JSON
	        "\",\"references\":[{\"name\":\"a\",\"subject\":\"a\",\"version\":1}]}",
	        PLAIN });
	expect_by_id(fixture, FATE_REJECT, ERR_UNKNOWN_SCHEMA, "references");
	RULES({ NULL, JSON, "{\"schema\":\"{\\\"type\\\":\\\"recor\\\"}\"}", PLAIN });
	expect_by_id(fixture, FATE_REJECT, ERR_UNKNOWN_SCHEMA, "cannot be used");
	RULES({ NULL, JSON, "{\"schema\":\"\"}", PLAIN });
	expect_by_id(fixture, FATE_REJECT, ERR_UNKNOWN_SCHEMA, "cannot be used");
}

static void test_absent(void **state)
{
	struct fixture *fixture = *state;

	RULES({ NULL, NOT_FOUND, "{\"error_code\":40403,\"message\":\"Schema 7 not found\"}", PLAIN });
	expect_by_id(fixture, FATE_REJECT, ERR_UNKNOWN_SCHEMA, "no such thing (404): Schema 7 not found");
	assert_int_equal(standin_requests(fixture->standin), 1);
	/* A 404 that says nothing is believed where there is a registry. */
	RULES({ "GET /api/config ", JSON, "{\"compatibilityLevel\":\"BACKWARD\"}", PLAIN },
	      { NULL, NOT_FOUND, "", PLAIN });
	expect_by_id(fixture, FATE_REJECT, ERR_UNKNOWN_SCHEMA, "no such thing");
}

/* No record may be at fault for an address that leads elsewhere. */
static void test_wrong_address(void **state)
{
	struct fixture *fixture = *state;

	RULES({ NULL, NOT_FOUND, "{\"error_code\":404,\"message\":\"HTTP 404 Not Found\"}", PLAIN });
	expect_by_id(fixture, FATE_RETRY, ERR_SERVICE, "is the path in registry.url right?");
	RULES({ NULL, "404 Not Found", "<html>", PLAIN });
	expect_by_id(fixture, FATE_RETRY, ERR_SERVICE, "no schema registry");
	RULES({ "GET /api/config ", "503 Service Unavailable", "", PLAIN }, { NULL, "404 Not Found", "", PLAIN });
	expect_by_id(fixture, FATE_RETRY, ERR_SERVICE, "404");
	RULES({ "GET /api/config ", NULL, NULL, RESET }, { NULL, "404 Not Found", "", PLAIN });
	expect_by_id(fixture, FATE_RETRY, ERR_SERVICE, "gives no answer");
	RULES({ NULL, "301 Moved Permanently\r\nLocation: http://127.0.0.1:1/elsewhere", "", PLAIN });
	expect_by_id(fixture, FATE_RETRY, ERR_SERVICE, "sends elsewhere");
	RULES({ NULL, "200 OK\r\nContent-Type: text/html", "<html>Please sign in</html>", PLAIN });
	expect_by_id(fixture, FATE_RETRY, ERR_SERVICE, "no schema registry's");
}

/* --- what may mend --- */

static void test_statuses(void **state)
{
	struct fixture *fixture = *state;
	const struct {
		const char *status;
		enum fate fate;
		enum error_code code;
		const char *says;
	} cases[] = {
		{ "400 Bad Request", FATE_REJECT, ERR_INVALID, "refuses (400): because" },
		{ "401 Unauthorized", FATE_RETRY, ERR_SERVICE, "credentials" },
		{ "403 Forbidden", FATE_RETRY, ERR_SERVICE, "denies" },
		{ "405 Method Not Allowed", FATE_RETRY, ERR_SERVICE, "405" },
		{ "407 Proxy Authentication Required", FATE_RETRY, ERR_SERVICE, "407" },
		{ "408 Request Timeout", FATE_RETRY, ERR_SERVICE, "too long" },
		{ "409 Conflict", FATE_REJECT, ERR_INVALID, "refuses (409): because" },
		{ "413 Content Too Large", FATE_REJECT, ERR_TOO_LARGE, "413" },
		{ "422 Unprocessable Entity", FATE_REJECT, ERR_INVALID, "refuses (422): because" },
		{ "429 Too Many Requests", FATE_RETRY, ERR_SERVICE, "too often" },
		{ "500 Internal Server Error", FATE_RETRY, ERR_SERVICE, "cannot now (500): because" },
		{ "503 Service Unavailable", FATE_RETRY, ERR_SERVICE, "503" },
		{ "600 What", FATE_RETRY, ERR_SERVICE, "600" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		RULES({ NULL, cases[i].status, "{\"error_code\":50001,\"message\":\"because\"}", PLAIN });
		expect_by_id(fixture, cases[i].fate, cases[i].code, cases[i].says);
		/* The message of one who refuses credentials might quote them. */
		if (strncmp(cases[i].status, "401", 3) == 0 || strncmp(cases[i].status, "403", 3) == 0)
			assert_null(strstr(fixture->error.message, "because"));
	}
	RULES({ NULL, "400 Bad Request", "<html>The plain HTTP request was sent to HTTPS port</html>", PLAIN });
	expect_by_id(fixture, FATE_RETRY, ERR_SERVICE, "400");
	RULES({ NULL, "204 No Content", NULL, PLAIN });
	expect_by_id(fixture, FATE_RETRY, ERR_SERVICE, "no schema registry's");
}

static void test_strange_answers(void **state)
{
	struct fixture *fixture = *state;
	const char *const bodies[] = {
		"",
		"null",
		"[]",
		"\"\\\"int\\\"\"",
		"7",
		"{}",
		"{\"schema\":null}",
		"{\"schema\":{\"type\":\"int\"}}",
		"{\"schema\":\"\\\"int\\\"\",\"schema\":\"\\\"long\\\"\"}",
		"{\"schema\":\"\\\"int\\\"\",\"schemaType\":7}",
		"{\"schema\":\"\\\"int\\\"\",\"references\":{}}",
		"{\"schema\":\"\\\"int\\\"\",\"id\":\"7\"}",
		"{\"schema\":\"\\\"int\\\"\",\"id\":-7}",
		"{\"schema\":\"\\\"int\\\"\",\"version\":0}",
		"{\"schema\":\"\\\"int\\\"\"} and more",
		"{\"schema\":\"\\\"i\xffnt\\\"\"}",
		"{\"schema\":\"\\\"i\\ud800nt\\\"\"}",
		"{\"schema\":\"\\\"i\\u0000nt\\\"\"}",
	};

	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
		RULES({ NULL, JSON, bodies[i], PLAIN });
		expect_by_id(fixture, FATE_RETRY, ERR_SERVICE, "no schema registry's");
	}
	/* Three million lists would be a tree of 400 MB. */
	char *heavy = malloc(6000001);
	memset(heavy, ',', 6000000);
	for (size_t i = 1; i + 1 < 6000000; i += 3)
		memcpy(heavy + i, "[]", 2);
	heavy[0] = '[';
	heavy[5999999] = ']';
	heavy[6000000] = '\0';
	RULES({ NULL, JSON, heavy, PLAIN });
	expect_by_id(fixture, FATE_RETRY, ERR_SERVICE, "no schema registry's");
	free(heavy);
}

static void test_cut_off(void **state)
{
	struct fixture *fixture = *state;

	RULES({ NULL, NULL, NULL, RESET });
	expect_by_id(fixture, FATE_RETRY, ERR_SERVICE, "gives no answer");
	RULES({ NULL, JSON, "{\"schema\":\"\\\"int\\\"\"}", CUT });
	expect_by_id(fixture, FATE_RETRY, ERR_SERVICE, "gives no answer");
	RULES({ NULL, NULL, "SSH-2.0-whatever\r\n", NOISE });
	expect_by_id(fixture, FATE_RETRY, ERR_SERVICE, "does it speak HTTP there?");
	RULES({ NULL, "200 OK", NULL, CHATTY });
	expect_by_id(fixture, FATE_RETRY, ERR_SERVICE, "headers");
	/* And after all of that it works. */
	RULES({ NULL, JSON, "{\"schema\":\"\\\"int\\\"\"}", PLAIN });
	expect_by_id(fixture, FATE_OK, ERR_NONE, "\"int\"");
}

static void test_too_large(void **state)
{
	struct fixture *fixture = *state;
	char *large = malloc(7 * 1024 * 1024 + 1);

	memset(large, 'x', 7 * 1024 * 1024);
	large[7 * 1024 * 1024] = '\0';
	RULES({ NULL, JSON, large, PLAIN });
	expect_by_id(fixture, FATE_REJECT, ERR_TOO_LARGE, "bytes that are taken");
	RULES({ NULL, JSON, large, ENDLESS });
	expect_by_id(fixture, FATE_REJECT, ERR_TOO_LARGE, "bytes that are taken");
	RULES({ NULL, "500 Internal Server Error", large, ENDLESS });
	expect_by_id(fixture, FATE_RETRY, ERR_SERVICE, "500");
	RULES({ NULL, JSON, "{\"schema\":\"\\\"int\\\"\"}", PLAIN });
	expect_by_id(fixture, FATE_OK, ERR_NONE, "\"int\"");
	free(large);
}

/* A connection that the other side gave up meanwhile costs nobody an error. */
static void test_stale_connection(void **state)
{
	struct fixture *fixture = *state;
	int32_t id;

	RULES({ "GET ", JSON, "{\"schema\":\"\\\"int\\\"\"}", LEAVE }, { "POST ", JSON, "{\"id\":5}", LEAVE });
	for (int i = 0; i < 3; i++) {
		expect_by_id(fixture, FATE_OK, ERR_NONE, "\"int\"");
		assert_int_equal(
			registry_register(fixture->registry, "s", VIEW_LITERAL("\"int\""), &id, &fixture->error),
			FATE_OK);
		assert_int_equal(id, 5);
	}
	assert_int_equal(standin_connections(fixture->standin), 6);
}

static void expect_within(struct fixture *fixture, int64_t least_ms, int64_t most_ms, const char *says)
{
	int64_t started = clock_mono_ms();

	expect_by_id(fixture, FATE_RETRY, ERR_SERVICE, says);
	assert_in_range(clock_mono_ms() - started, least_ms, most_ms);
}

static void test_time(void **state)
{
	struct fixture *fixture = *state;

	open_with(fixture, &(struct registry_settings){ .url = fixture->url, .timeout_ms = SHORT_MS });
	RULES({ NULL, NULL, NULL, SILENT });
	expect_within(fixture, SHORT_MS - 50, 5000, "registry.timeout");
	RULES({ NULL, JSON, "{\"schema\":\"\\\"int\\\"\"}", TRICKLE });
	expect_within(fixture, SHORT_MS - 50, 5000, "registry.timeout");
	/* What comes first may not use up more than the time of all. */
	RULES({ "GET /api/config ", NULL, NULL, SILENT }, { NULL, "404 Not Found", "", PLAIN });
	expect_within(fixture, SHORT_MS - 50, 5000, "registry.timeout");
}

static void test_outage(void **state)
{
	struct fixture *fixture = *state;

	RULES({ NULL, JSON, "{\"schema\":\"\\\"int\\\"\"}", PLAIN });
	expect_by_id(fixture, FATE_OK, ERR_NONE, "\"int\"");
	standin_go(fixture->standin);
	expect_within(fixture, 0, 5000, "is it up, and registry.url right?");
	standin_listen(fixture->standin, fixture->standin->port);
	expect_by_id(fixture, FATE_OK, ERR_NONE, "\"int\"");
	open_with(fixture, &(struct registry_settings){ .url = "http://nowhere.invalid:81" });
	struct view got;
	assert_int_equal(registry_by_id(fixture->registry, 7, fixture->arena, &got, &fixture->error), FATE_RETRY);
	assert_int_equal(fixture->error.code, ERR_SERVICE);
	assert_says(fixture, "nowhere.invalid:81");
}

static void *interrupt(void *context)
{
	struct fixture *fixture = context;

	while (standin_requests(fixture->standin) == 0)
		usleep(1000);
	registry_interrupt(fixture->registry);
	return NULL;
}

static void test_interrupt(void **state)
{
	struct fixture *fixture = *state;
	pthread_t thread;

	open_with(fixture, &(struct registry_settings){ .url = fixture->url, .timeout_ms = 60000 });
	RULES({ NULL, NULL, NULL, SILENT });
	assert_int_equal(pthread_create(&thread, NULL, interrupt, fixture), 0);
	expect_within(fixture, 0, 20000, "interrupted");
	pthread_join(thread, NULL);
	expect_within(fixture, 0, 20000, "interrupted");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_by_id),
		TEST(test_ids_that_cannot_be),
		TEST(test_by_guid),
		TEST(test_register),
		TEST(test_texts_that_are_not_sent),
		TEST(test_large_text),
		TEST(test_subjects_in_paths),
		TEST(test_unusable),
		TEST(test_absent),
		TEST(test_wrong_address),
		TEST(test_statuses),
		TEST(test_strange_answers),
		TEST(test_cut_off),
		TEST(test_too_large),
		TEST(test_stale_connection),
		TEST(test_time),
		TEST(test_outage),
		TEST(test_interrupt),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
