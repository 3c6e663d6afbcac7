/*
 * The registry's client against Apicurio. FERMATA_TEST_REGISTRY names a registry that is there already,
 * which is not broken then; else one is started in a temporary folder. Where none can be had the test says
 * so and is skipped; with FERMATA_TEST_REQUIRE it fails.
 */
#include "schemas/ask.h"

#include "core/clock.h"
#include "core/uuid.h"
#include "schemas/texts.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define ROOM        ((size_t)32 * 1024 * 1024)
#define SKIPPED     77
#define UNAVAILABLE 69
#define SCRIPT      FERMATA_SOURCE_DIR "/scripts/apicurio"
#define SHORT_MS    500
#define FIRST       "{\"type\":\"record\",\"name\":\"n.R\",\"fields\":[{\"name\":\"x\",\"type\":\"int\"}]}"
#define FIRST_SPACED                                                                                         \
	"{ \"type\": \"record\", \"name\": \"R\", \"namespace\": \"n\",\n \"fields\": [{\"name\": \"x\", "       \
	"\"type\": \"int\"}] }"
#define SECOND                                                                                               \
	"{\"type\":\"record\",\"name\":\"n.R\",\"fields\":[{\"name\":\"x\",\"type\":\"int\"},"                   \
	"{\"name\":\"y\",\"type\":\"int\",\"default\":0}]}"
#define AT_ODDS "{\"type\":\"record\",\"name\":\"n.R\",\"fields\":[{\"name\":\"x\",\"type\":\"string\"}]}"

static char folder[] = "/tmp/fermata-registry-XXXXXX"; /* of our own registry */
static char url[1024];
static bool ours;

/* --- the server --- */

/* scripts/apicurio COMMAND folder; its output goes to said. Returns its exit code. */
static int script(const char *command, char *said, size_t size)
{
	const char *argv[] = { SCRIPT, command, folder, NULL };
	posix_spawn_file_actions_t files;
	size_t len = 0;
	int ends[2], status = -1;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) != 0)
		return -1;
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, ends[1], STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&files, ends[1], STDERR_FILENO);
	int failed = posix_spawn(&pid, argv[0], &files, NULL, (char *const *)(uintptr_t)argv, environ);
	posix_spawn_file_actions_destroy(&files);
	close(ends[1]);
	for (ssize_t got = 1; failed == 0 && got > 0 && len + 1 < size; len += (size_t)(got > 0 ? got : 0))
		got = read(ends[0], said + len, size - len - 1);
	close(ends[0]);
	said[len] = '\0';
	said[strcspn(said, "\n")] = '\0';
	while (failed == 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		status = -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void run(const char *command)
{
	char said[1024];

	if (script(command, said, sizeof(said)) != 0)
		fail_msg("scripts/apicurio %s: %s", command, said);
}

static void signal_it(int number)
{
	char path[128], text[32] = "";

	snprintf(path, sizeof(path), "%s/registry.pid", folder);
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	assert_non_null(fgets(text, sizeof(text), file));
	(void)fclose(file);
	assert_int_equal(kill((pid_t)strtol(text, NULL, 10), number), 0);
}

/* What our client does not send: references, and types other than AVRO. */
static void post(const char *path, const char *body)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	char request[2048], answer[256] = "";
	const char *at = strstr(url, "127.0.0.1:");

	assert_non_null(at);
	address.sin_port = htons((uint16_t)strtoul(at + 10, NULL, 10));
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	int len = snprintf(request, sizeof(request),
	                   "POST %s%s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
	                   "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
	                   strchr(at, '/'), path, strlen(body), body);
	assert_int_equal(send(fd, request, (size_t)len, MSG_NOSIGNAL), len);
	assert_true(recv(fd, answer, sizeof(answer) - 1, MSG_WAITALL) > 0);
	close(fd);
	if (strncmp(answer, "HTTP/1.1 200 ", 13) != 0)
		fail_msg("%s: %s", path, answer);
}

/* --- fixture --- */

struct fixture {
	struct registry *registry;
	struct arena *arena;
	char subject[64]; /* of this test alone */
	struct error error;
};

static void open_with(struct fixture *fixture, const char *address, int64_t timeout_ms)
{
	struct registry_settings settings = { .url = address, .timeout_ms = timeout_ms };

	registry_close(fixture->registry);
	if (registry_open(&fixture->registry, &settings, &fixture->error) != FATE_OK)
		fail_msg("%s", fixture->error.message);
}

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	struct uuid uuid;
	char text[UUID_TEXT_LEN + 1];

	assert_non_null(fixture);
	fixture->arena = arena_new(ROOM);
	assert_int_equal(uuid_make_v7(&uuid, &fixture->error), FATE_OK);
	uuid_format(&uuid, text);
	snprintf(fixture->subject, sizeof(fixture->subject), "test-%s", text);
	open_with(fixture, url, 20000); /* a machine that does much else is slow */
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	registry_close(fixture->registry);
	arena_free(fixture->arena);
	free(fixture);
	return 0;
}

static void expect(const struct fixture *fixture, enum fate fate, enum fate wanted, enum error_code code,
                   const char *says)
{
	if (fate != wanted || (fate != FATE_OK && fixture->error.code != code))
		fail_msg("fate %s, code %s: %s", error_fate_name(fate), error_code_name(fixture->error.code),
		         fixture->error.message);
	if (fate != FATE_OK && strstr(fixture->error.message, says) == NULL)
		fail_msg("'%s' is not in: %s", says, fixture->error.message);
}

static void expect_done(const struct fixture *fixture, enum fate fate)
{
	expect(fixture, fate, FATE_OK, ERR_NONE, "-");
}

static int32_t add(struct fixture *fixture, const char *subject, const char *text)
{
	int32_t id = -1;

	expect_done(fixture, registry_register(fixture->registry, subject, view_of(text), &id, &fixture->error));
	assert_true(id > 0);
	return id;
}

static void expect_text(struct fixture *fixture, int32_t id, const char *text)
{
	struct view got;

	expect_done(fixture, registry_by_id(fixture->registry, id, fixture->arena, &got, &fixture->error));
	assert_true(view_equal_text(got, text));
}

/* --- the tests --- */

static void test_register_and_find(void **state)
{
	struct fixture *fixture = *state;
	struct registry_version *versions, latest;
	int32_t id = add(fixture, fixture->subject, FIRST), found;
	size_t len, unusable;

	assert_int_equal(add(fixture, fixture->subject, FIRST), id);
	expect_text(fixture, id, FIRST);
	expect_done(fixture, registry_lookup(fixture->registry, fixture->subject, view_of(FIRST), &found,
	                                     &fixture->error));
	assert_int_equal(found, id);
	/* It compares texts; we compare canonical forms. */
	expect_done(fixture, registry_lookup(fixture->registry, fixture->subject, view_of(FIRST_SPACED), &found,
	                                     &fixture->error));
	assert_int_equal(found, id);
	expect(fixture,
	       registry_lookup(fixture->registry, fixture->subject, view_of(SECOND), &found, &fixture->error),
	       FATE_REJECT, ERR_UNKNOWN_SCHEMA, "none of its 1 versions");
	int32_t second = add(fixture, fixture->subject, SECOND);
	assert_int_not_equal(second, id);
	expect_done(fixture, registry_versions(fixture->registry, fixture->subject, fixture->arena, &versions,
	                                       &len, &unusable, &fixture->error));
	assert_int_equal(len, 2);
	assert_int_equal(unusable, 0);
	assert_int_equal(versions[0].id, id);
	assert_true(view_equal_text(versions[0].text, FIRST));
	assert_int_equal(versions[1].id, second);
	expect_done(fixture, registry_latest(fixture->registry, fixture->subject, fixture->arena, &latest,
	                                     &fixture->error));
	assert_int_equal(latest.id, second);
	assert_int_equal(latest.version, versions[1].version);
	assert_true(view_equal_text(latest.text, SECOND));
}

static void test_absent(void **state)
{
	struct fixture *fixture = *state;
	const uint8_t guid[16] = { 1, 2, 3 };
	struct registry_version *versions, latest;
	struct view text;
	int32_t id;
	size_t len;

	expect(fixture, registry_by_id(fixture->registry, INT32_MAX, fixture->arena, &text, &fixture->error),
	       FATE_REJECT, ERR_UNKNOWN_SCHEMA, "schema id 2147483647");
	expect(fixture, registry_by_guid(fixture->registry, guid, fixture->arena, &text, &fixture->error),
	       FATE_REJECT, ERR_UNKNOWN_SCHEMA, "01020300");
	expect(fixture,
	       registry_latest(fixture->registry, fixture->subject, fixture->arena, &latest, &fixture->error),
	       FATE_REJECT, ERR_UNKNOWN_SCHEMA, "no such thing");
	expect(fixture,
	       registry_versions(fixture->registry, fixture->subject, fixture->arena, &versions, &len, NULL,
	                         &fixture->error),
	       FATE_REJECT, ERR_UNKNOWN_SCHEMA, "no such thing");
	expect(fixture,
	       registry_lookup(fixture->registry, fixture->subject, view_of(FIRST), &id, &fixture->error),
	       FATE_REJECT, ERR_UNKNOWN_SCHEMA, "no such thing");
}

static void compare(struct fixture *fixture, const char *text, bool wanted, const char *says)
{
	bool compatible = !wanted;
	struct view why;
	char line[4096];

	expect_done(fixture, registry_compatible(fixture->registry, fixture->subject, view_of(text),
	                                         fixture->arena, &compatible, &why, &fixture->error));
	assert_int_equal(compatible, wanted);
	snprintf(line, sizeof(line), "%.*s", (int)why.len, (const char *)why.data);
	if (strstr(line, says) == NULL)
		fail_msg("'%s' is not in: %s", says, line);
}

static void test_compatibility(void **state)
{
	struct fixture *fixture = *state;
	struct view rule;
	int32_t id;

	compare(fixture, FIRST, true, "");
	if (ours) {
		expect_done(fixture, registry_rule(fixture->registry, fixture->subject, fixture->arena, &rule,
		                                   &fixture->error));
		assert_true(view_equal_text(rule, "BACKWARD"));
	}
	add(fixture, fixture->subject, FIRST);
	expect_done(fixture,
	            registry_rule(fixture->registry, fixture->subject, fixture->arena, &rule, &fixture->error));
	assert_true(rule.len > 0);
	compare(fixture, SECOND, true, "");
	compare(fixture, AT_ODDS, false, "STRING");
	compare(fixture, "no schema", false, "schema");
	expect(fixture,
	       registry_register(fixture->registry, fixture->subject, view_of(AT_ODDS), &id, &fixture->error),
	       FATE_REJECT, ERR_INVALID, "(409): ");
	expect(fixture,
	       registry_register(fixture->registry, fixture->subject, view_of("no schema"), &id, &fixture->error),
	       FATE_REJECT, ERR_INVALID, "(422): ");
}

static void test_strange_subject(void **state)
{
	struct fixture *fixture = *state;
	char subject[128];
	struct registry_version latest;
	struct view *subjects;
	size_t len, seen = 0;

	snprintf(subject, sizeof(subject), "%s a b/../c?d=%%2F#\xc3\xa9", fixture->subject);
	int32_t id = add(fixture, subject, FIRST);
	expect_done(fixture,
	            registry_latest(fixture->registry, subject, fixture->arena, &latest, &fixture->error));
	assert_int_equal(latest.id, id);
	expect_done(fixture,
	            registry_subjects(fixture->registry, fixture->arena, &subjects, &len, &fixture->error));
	for (size_t i = 0; i < len; i++)
		seen += view_equal_text(subjects[i], subject);
	assert_int_equal(seen, 1);
}

static void test_unusable(void **state)
{
	struct fixture *fixture = *state;
	struct registry_version *versions, latest;
	size_t len, unusable;
	char path[128], body[512];

	if (!ours) {
		print_message("left out: it needs a registry of its own\n");
		skip();
	}
	snprintf(path, sizeof(path), "/subjects/%s/versions", fixture->subject);
	add(fixture, fixture->subject, FIRST);
	snprintf(
		body, sizeof(body),
		"{\"schema\":\"{\\\"type\\\":\\\"record\\\",\\\"name\\\":\\\"n.R\\\",\\\"fields\\\":[{\\\"name\\\":"
		"\\\"x\\\",\\\"type\\\":\\\"int\\\"},{\\\"name\\\":\\\"z\\\",\\\"type\\\":[\\\"null\\\",\\\"n.R2\\\"]"
		","
		"\\\"default\\\":null}]}\",\"references\":[{\"name\":\"n.R2\",\"subject\":\"%s-2\",\"version\":1}]}",
		fixture->subject);
	char other[80];
	snprintf(other, sizeof(other), "%s-2", fixture->subject);
	add(fixture, other, "{\"type\":\"record\",\"name\":\"n.R2\",\"fields\":[]}");
	post(path, body);
	expect(fixture,
	       registry_latest(fixture->registry, fixture->subject, fixture->arena, &latest, &fixture->error),
	       FATE_REJECT, ERR_UNKNOWN_SCHEMA, "references");
	expect_done(fixture, registry_versions(fixture->registry, fixture->subject, fixture->arena, &versions,
	                                       &len, &unusable, &fixture->error));
	assert_int_equal(len, 1);
	assert_int_equal(unusable, 1);
	snprintf(other, sizeof(other), "%s-p", fixture->subject);
	snprintf(path, sizeof(path), "/subjects/%s/versions", other);
	post(path,
	     "{\"schemaType\":\"PROTOBUF\",\"schema\":\"syntax = \\\"proto3\\\"; message A { int32 x = 1; }\"}");
	expect(fixture, registry_latest(fixture->registry, other, fixture->arena, &latest, &fixture->error),
	       FATE_REJECT, ERR_UNKNOWN_SCHEMA, "type PROTOBUF");
}

/* What Fermata itself writes is taken, and comes back as what it was. */
static void test_our_records(void **state)
{
	struct fixture *fixture = *state;
	char subject[128];
	struct view text;

	for (size_t i = 0; i < SCHEMA_TEXTS; i++) {
		int32_t id = 0, found = 0;
		snprintf(subject, sizeof(subject), "%s-%s", fixture->subject, schema_texts[i].name);
		expect_done(fixture, registry_register(fixture->registry, subject, schema_texts[i].text, &id,
		                                       &fixture->error));
		expect_done(fixture, registry_lookup(fixture->registry, subject, schema_texts[i].text, &found,
		                                     &fixture->error));
		assert_int_equal(found, id);
		expect_done(fixture, registry_by_id(fixture->registry, id, fixture->arena, &text, &fixture->error));
		assert_true(text.len > 100);
	}
}

/* A catalog that knows nothing learns the reader of a state, and what the state was written with. */
static void test_ask(void **state)
{
	struct fixture *fixture = *state;
	struct catalog_settings settings = { .registry = true, .asks = true };
	struct schema_want want = { .kind = WANT_READER };
	struct catalog *catalog;
	struct ask_found *found;
	struct view text;
	size_t len;

	add(fixture, fixture->subject, FIRST);
	int32_t second = add(fixture, fixture->subject, SECOND);
	snprintf(want.name, sizeof(want.name), "%s", fixture->subject);
	expect_done(fixture, catalog_new(&catalog, &settings, &fixture->error));
	expect_done(fixture, registry_ask(fixture->registry, catalog, &want, "{schema}", NULL, fixture->arena,
	                                  &text, &found, &len, &fixture->error));
	assert_true(view_equal_text(text, SECOND));
	assert_int_equal(found[0].id, second);
	want.kind = WANT_STATE;
	expect_done(fixture, catalog_identify(view_of(FIRST), &want.fingerprint, want.sha256, &fixture->error));
	expect_done(fixture, registry_ask(fixture->registry, catalog, &want, "{schema}", NULL, fixture->arena,
	                                  &text, &found, &len, &fixture->error));
	assert_true(view_equal_text(text, FIRST));
	assert_int_equal(len, 2);
	assert_int_equal(catalog_schemas(catalog), 2);
	catalog_free(catalog);
}

static void test_wrong_path(void **state)
{
	struct fixture *fixture = *state;
	char address[1100];
	struct view text;

	snprintf(address, sizeof(address), "%s/elsewhere", url);
	open_with(fixture, address, 20000);
	expect(fixture, registry_by_id(fixture->registry, 1, fixture->arena, &text, &fixture->error), FATE_RETRY,
	       ERR_SERVICE, "is the path in registry.url right?");
}

static void expect_outage(struct fixture *fixture, int64_t most_ms)
{
	struct view text;
	int32_t id;
	int64_t started = clock_mono_ms();

	expect(fixture, registry_by_id(fixture->registry, 1, fixture->arena, &text, &fixture->error), FATE_RETRY,
	       ERR_SERVICE, "gives no answer");
	expect(fixture,
	       registry_register(fixture->registry, fixture->subject, view_of(FIRST), &id, &fixture->error),
	       FATE_RETRY, ERR_SERVICE, "gives no answer");
	assert_in_range(clock_mono_ms() - started, 0, 2 * most_ms);
}

static void test_outage(void **state)
{
	struct fixture *fixture = *state;

	if (!ours) {
		print_message("left out: it needs a registry of its own\n");
		skip();
	}
	int32_t id = add(fixture, fixture->subject, FIRST);
	open_with(fixture, url, SHORT_MS);
	signal_it(SIGSTOP);
	expect_outage(fixture, SHORT_MS + 2000);
	signal_it(SIGCONT);
	open_with(fixture, url, 20000);
	expect_text(fixture, id, FIRST);
	run("kill");
	expect_outage(fixture, 5000);
	run("start");
	expect_text(fixture, id, FIRST); /* the same client, the same data */
	assert_int_equal(add(fixture, fixture->subject, FIRST), id);
}

/* --- main --- */

/* 0: there is one; else the exit code of the test. */
static int find_registry(void)
{
	const char *given = getenv("FERMATA_TEST_REGISTRY");
	char said[1024];

	if (given != NULL && given[0] != '\0') {
		snprintf(url, sizeof(url), "%s", given);
		return 0;
	}
	if (mkdtemp(folder) == NULL)
		return 1;
	int code = script("start", said, sizeof(said));
	ours = code == 0;
	snprintf(url, sizeof(url), "%s", said);
	if (ours)
		return 0;
	fprintf(stderr, "left out: everything that needs a real schema registry: %s\n", said);
	return code == UNAVAILABLE && getenv("FERMATA_TEST_REQUIRE") == NULL ? SKIPPED : 1;
}

static void remove_folder(void)
{
	const char *argv[] = { "rm", "-rf", folder, NULL };
	char said[1024];
	pid_t pid;

	(void)script("stop", said, sizeof(said));
	if (posix_spawnp(&pid, argv[0], NULL, NULL, (char *const *)(uintptr_t)argv, environ) == 0)
		(void)waitpid(pid, NULL, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_register_and_find),
		TEST(test_absent),
		TEST(test_compatibility),
		TEST(test_strange_subject),
		TEST(test_unusable),
		TEST(test_our_records),
		TEST(test_ask),
		TEST(test_wrong_path),
		TEST(test_outage),
	};
	int code = find_registry();

	if (code == 0)
		code = cmocka_run_group_tests(tests, NULL, NULL);
	if (getenv("FERMATA_TEST_REGISTRY") == NULL)
		remove_folder();
	return code;
}
