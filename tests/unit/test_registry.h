/* test_registry.h - a registry's client and a stand-in that it asks. */
#ifndef FERMATA_TESTS_UNIT_TEST_REGISTRY_H
#define FERMATA_TESTS_UNIT_TEST_REGISTRY_H

#include "tests/unit/test_registry_standin.h"

#include "schemas/registry.h"

#define ROOM      ((size_t)32 * 1024 * 1024)
#define JSON      "200 OK\r\nContent-Type: application/vnd.schemaregistry.v1+json"
#define NOT_FOUND "404 Not Found\r\nContent-Type: application/json"

/* A record with one int, as its text and within JSON. */
#define RECORD "{\"type\":\"record\",\"name\":\"n.R\",\"fields\":[{\"name\":\"x\",\"type\":\"int\"}]}"
#define RECORD_IN_JSON                                                                                       \
	"{\\\"type\\\":\\\"record\\\",\\\"name\\\":\\\"n.R\\\",\\\"fields\\\":[{\\\"name\\\":\\\"x\\\","         \
	"\\\"type\\\":\\\"int\\\"}]}"

struct fixture {
	struct standin *standin;
	struct registry *registry;
	struct arena *arena;
	char url[64];
	struct error error;
};

static inline void open_with(struct fixture *fixture, const struct registry_settings *settings)
{
	registry_close(fixture->registry);
	if (registry_open(&fixture->registry, settings, &fixture->error) != FATE_OK)
		fail_msg("%s", fixture->error.message);
}

static inline int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	fixture->standin = standin_start();
	fixture->arena = arena_new(ROOM);
	assert_non_null(fixture->arena);
	snprintf(fixture->url, sizeof(fixture->url), "http://127.0.0.1:%u/api/", fixture->standin->port);
	open_with(fixture, &(struct registry_settings){ .url = fixture->url });
	*state = fixture;
	return 0;
}

static inline int tear_down(void **state)
{
	struct fixture *fixture = *state;

	registry_close(fixture->registry);
	standin_stop(fixture->standin);
	arena_free(fixture->arena);
	free(fixture);
	return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#define RULES(...) STANDIN_RULES(fixture->standin, __VA_ARGS__)

static inline void assert_says(const struct fixture *fixture, const char *text)
{
	if (strstr(fixture->error.message, text) == NULL)
		fail_msg("'%s' is not in: %s", text, fixture->error.message);
}

/* fate is what the call that filled fixture->error returned. */
static inline void assert_fate(const struct fixture *fixture, enum fate fate, enum fate wanted,
                               enum error_code code, const char *says)
{
	if (fate != wanted || (fate != FATE_OK && fixture->error.code != code))
		fail_msg("fate %s, code %s: %s", error_fate_name(fate), error_code_name(fixture->error.code),
		         fixture->error.message);
	if (fate != FATE_OK && says != NULL)
		assert_says(fixture, says);
}

/* What asking for schema id 7 comes to: its text, or what the message says. */
static inline void expect_by_id(struct fixture *fixture, enum fate fate, enum error_code code,
                                const char *text)
{
	struct view got = VIEW_LITERAL("stale");

	fixture->error = (struct error){ 0 };
	assert_fate(fixture, registry_by_id(fixture->registry, 7, fixture->arena, &got, &fixture->error), fate,
	            code, text);
	if (fate == FATE_OK) {
		assert_true(view_equal_text(got, text));
		return;
	}
	assert_true(view_is_null(got));
	assert_says(fixture, "127.0.0.1");
	assert_says(fixture, "schema id 7");
}

#define assert_done(fixture, fate) assert_fate(fixture, fate, FATE_OK, ERR_NONE, NULL)

#endif
