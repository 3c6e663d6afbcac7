// links: config core
/* test_config_routes.c - which resumes go where. */
#include "test_config_fixture.h"

static const struct route *route_for(const struct fixture *fixture, const char *tenant, const char *agent)
{
	return config_route_for(fixture->config, view_of(tenant), view_of(agent));
}

static void without_routes_there_is_the_default(void **state)
{
	struct fixture *fixture = *state;
	load_good(fixture, "topics.resumes = out\n");
	size_t len;
	config_routes(fixture->config, &len);
	assert_int_equal(len, 0);
	const struct route *route = route_for(fixture, "t", "a");
	assert_string_equal(route->topic, "out");
	assert_int_equal(route->resume_ttl_ms, 0);
	assert_int_equal(route->on_reject, ON_REJECT_PUBLISH);
	assert_null(route->tenant);
	assert_null(route->agent);
	assert_string_equal(config_routes_text(fixture->config), "else topic out\n");
	const char *const *topics = config_resumes_topics(fixture->config, &len);
	assert_int_equal(len, 1);
	assert_string_equal(topics[0], "out");
}

static void the_first_that_matches_counts(void **state)
{
	struct fixture *fixture = *state;
	load_good(fixture, "[routes.zebra]\n"
	                   "agent = deploy-*\n"
	                   "topic = deploys\n"
	                   "resume_ttl = 2h\n"
	                   "[routes.ant]\n"
	                   "tenant = acme\n"
	                   "on_reject = drop\n"
	                   "[routes.bee]\n"
	                   "tenant = a*e\n"
	                   "agent = ?x\n"
	                   "topic = bees\n"
	                   "[routes.cat]\n"
	                   "tenant = **\n"
	                   "topic = deploys\n"
	                   "agent = cat\n");
	size_t len;
	const struct route *routes = config_routes(fixture->config, &len);
	assert_int_equal(len, 4);
	assert_string_equal(routes[0].name, "zebra");
	assert_string_equal(routes[1].name, "ant");
	assert_null(routes[3].tenant);
	assert_string_equal(routes[1].topic, "fermata.resumes");
	assert_int_equal(routes[0].resume_ttl_ms, 7200000);
	assert_int_equal(routes[1].on_reject, ON_REJECT_DROP);
	assert_string_equal(route_for(fixture, "acme", "deploy-1")->name, "zebra");
	assert_string_equal(route_for(fixture, "acme", "deploy")->name, "ant");
	assert_string_equal(route_for(fixture, "able", "ax")->name, "bee");
	assert_string_equal(route_for(fixture, "able", "x")->name, "(default)");
	assert_string_equal(route_for(fixture, "other", "cat")->name, "cat");
	const char *const *topics = config_resumes_topics(fixture->config, &len);
	assert_int_equal(len, 3);
	assert_string_equal(topics[0], "fermata.resumes");
	assert_string_equal(topics[1], "deploys");
	assert_string_equal(topics[2], "bees");
	assert_string_equal(config_routes_text(fixture->config), "tenant 1:* agent 8:deploy-* topic deploys\n"
	                                                         "tenant 4:acme agent 1:* topic fermata.resumes\n"
	                                                         "tenant 3:a*e agent 2:?x topic bees\n"
	                                                         "tenant 1:* agent 3:cat topic deploys\n"
	                                                         "else topic fermata.resumes\n");
	assert_string_equal(shown(fixture, "routes.zebra.resume_ttl").value, "2h");
	assert_string_equal(shown(fixture, "routes.ant.agent").value, "*");
	assert_string_equal(shown(fixture, "routes.ant.agent").origin, "default");
}

static bool matches(struct fixture *fixture, const char *pattern, const void *agent, size_t agent_len)
{
	char override[300];
	snprintf(override, sizeof(override), "routes.r.agent=%s", pattern);
	const char *const overrides[] = { override, NULL };
	if (load(fixture, NULL, overrides) != FATE_OK)
		fail_msg("%s", fixture->error.message);
	uint8_t *copy = malloc(agent_len == 0 ? 1 : agent_len); /* exactly that long, for ASan */
	assert_non_null(copy);
	memcpy(copy, agent, agent_len);
	const struct route *route =
		config_route_for(fixture->config, VIEW_LITERAL("t"), (struct view){ copy, agent_len });
	free(copy);
	return strcmp(route->name, "r") == 0;
}

static void patterns(void **state)
{
	struct fixture *fixture = *state;
	static const struct {
		const char *pattern;
		const char *agent;
		bool match;
	} cases[] = {
		{ "a", "a", true },
		{ "a", "A", false },
		{ "a", "ab", false },
		{ "a", "", false },
		{ "*", "", true },
		{ "***", "x", true },
		{ "a*", "a", true },
		{ "*a", "ba", true },
		{ "*a", "ab", false },
		{ "a*b*c", "a-b-c", true },
		{ "a*b*c", "a-c-b", false },
		{ "*ab*ab", "aababab", true },
		{ "?", "a", true },
		{ "?", "", false },
		{ "?", "ab", false },
		{ "?", "\xc3\xbc", true },
		{ "??", "\xc3\xbc", false },
		{ "*??", "\xc3\xbc", false },
		{ "*?z", "\xc3\xbcz", true },
		{ "\xc3\xbc*", "\xc3\xbcx", true },
		{ "a?c", "abc", true },
		{ "*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaa", false },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (matches(fixture, cases[i].pattern, cases[i].agent, strlen(cases[i].agent)) != cases[i].match)
			fail_msg("pattern %s and agent %s", cases[i].pattern, cases[i].agent);
	}
	assert_false(matches(fixture, "a", "a\0", 2)); /* a view is not a C string */
	assert_true(matches(fixture, "a?", "a\0", 2));
	assert_true(matches(fixture, "*", "\xff\x80\x80", 3));
}

static void what_does_not_move_a_resume_is_not_in_the_text(void **state)
{
	struct fixture *fixture = *state;
	load_good(fixture, "");
	char plain[256];
	snprintf(plain, sizeof(plain), "%s", config_routes_text(fixture->config));
	load_good(fixture, "routes.a.agent = x\nroutes.a.on_reject = drop\nroutes.a.resume_ttl = 1d\n");
	assert_string_equal(config_routes_text(fixture->config), plain);
	load_good(fixture, "routes.a.agent = x\nroutes.a.topic = y\n");
	assert_string_not_equal(config_routes_text(fixture->config), plain);
	snprintf(plain, sizeof(plain), "%s", config_routes_text(fixture->config));
	load_good(fixture, "routes.other.agent = x\nroutes.other.topic = y\nroutes.other.tenant = *\n");
	assert_string_equal(config_routes_text(fixture->config), plain);
}

static void routes_from_the_environment(void **state)
{
	struct fixture *fixture = *state;
	setenv("FERMATA_ROUTES_BIG_ONE_RESUME_TTL", "1h", 1);
	setenv("FERMATA_ROUTES_NEW_AGENT", "n", 1);
	setenv("FERMATA_ROUTES_NEW_ON_REJECT", "drop", 1);
	setenv("FERMATA_ROUTES_X", "n", 1);
	setenv("FERMATA_ROUTES_TOPIC", "n", 1);
	load_good(fixture, "routes.Big-one.agent = b\n");
	size_t len;
	const struct route *routes = config_routes(fixture->config, &len);
	assert_int_equal(len, 2);
	assert_string_equal(routes[0].name, "Big-one");
	assert_int_equal(routes[0].resume_ttl_ms, 3600000);
	assert_string_equal(routes[1].name, "new");
	assert_int_equal(routes[1].on_reject, ON_REJECT_DROP);
	assert_true(warned(fixture, "FERMATA_ROUTES_X is no key"));
	assert_true(warned(fixture, "FERMATA_ROUTES_TOPIC is no key"));
}

static void routes_go_wrong(void **state)
{
	struct fixture *fixture = *state;
	load_bad(fixture, "routes.a.on_reject = maybe\n",
	         "routes.a.on_reject (./fermata.conf:1): \"maybe\" is not one of publish|drop");
	load_bad(fixture, "routes.a.topic = a b\n",
	         "routes.a.topic (./fermata.conf:1): \"a b\" is not a topic's name");
	load_bad(fixture, "routes.a.agent =\n", "is empty");
	load_bad(fixture, "routes..topic = x\n", "a route's key is routes.NAME.FIELD");
	load_bad(fixture, "routes.a.b.topic = x\n", "unknown key routes.a.b.topic: did you mean routes.a.topic?");
	load_good(fixture, "routes.a.topic = x\nroutes.b.topic = y\n");
	assert_true(warned(fixture, "route a matches everything, so route b and what follows never does"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(without_routes_there_is_the_default),
		TEST(the_first_that_matches_counts),
		TEST(patterns),
		TEST(what_does_not_move_a_resume_is_not_in_the_text),
		TEST(routes_from_the_environment),
		TEST(routes_go_wrong),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
