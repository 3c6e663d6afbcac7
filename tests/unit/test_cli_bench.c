// links: cli bench
/* test_cli_bench.c - the table of `fermata bench`: the middle of several rounds, goals, settled beside empty tables. */
#include "test_cli_output.h"

#include "cli/bench_say.h"
#include "cli/screen.h"

#include <string.h>

static const struct bench_figure suspends = { .phase = BENCH_SUSPEND,
	                                          .size = 2048,
	                                          .what = "suspends",
	                                          .unit = "/s",
	                                          .value = 8000,
	                                          .limit = 10000,
	                                          .limit_of = "COPY",
	                                          .goal = 0.8,
	                                          .count = 100,
	                                          .seconds = 2 };

static void give(struct bench_saying *saying, struct bench_figure figure)
{
	struct error error;

	assert_int_equal(bench_say_figure(saying, &figure, &error), FATE_OK);
}

static char *table_of(struct bench_saying *saying)
{
	struct capture capture;
	struct error error;

	screen_force_colours(0);
	capture_begin(&capture);
	assert_int_equal(bench_say_table(saying, &error), FATE_OK);
	return capture_end(&capture);
}

static void assert_has(const char *text, const char *part)
{
	if (strstr(text, part) == NULL)
		fail_msg("\"%s\" is not in:\n%s", part, text);
}

static void assert_lacks(const char *text, const char *part)
{
	if (strstr(text, part) != NULL)
		fail_msg("\"%s\" is in:\n%s", part, text);
}

/* The ratio tells which is the middle one, for the load of the machine is in both of its parts. */
static void the_middle_round_is_shown(void **state)
{
	static struct bench_saying saying;
	static const double rounds[][2] = {
		{ 9000, 10000 }, { 500, 1000 }, { 8100, 9000 }, { 50, 1000 }, { 70, 100 }
	};

	(void)state;
	bench_say_init(&saying, false);
	for (size_t i = 0; i < 5; i++) {
		struct bench_figure figure = suspends;
		figure.value = rounds[i][0];
		figure.limit = rounds[i][1];
		give(&saying, figure);
	}
	char *text = table_of(&saying);
	assert_has(text, "70.0/s");
	assert_has(text, "0.70");
	assert_has(text, ">= 0.8 missed");
	assert_has(text, "100/s, COPY");
	assert_lacks(text, "8,100");
	free(text);
}

static void what_is_not_the_same_has_a_row_of_its_own(void **state)
{
	static struct bench_saying saying;
	struct bench_figure other = suspends;

	(void)state;
	bench_say_init(&saying, false);
	give(&saying, suspends);
	other.limit_of = "reading";
	other.goal = 0;
	give(&saying, other);
	other.size = 32768;
	other.value = 12.34;
	other.limit = 0;
	give(&saying, other);
	char *text = table_of(&saying);
	assert_int_equal(saying.len, 3);
	assert_has(text, ">= 0.8 met");
	assert_has(text, "10,000/s, reading");
	assert_has(text, "32 KiB");
	assert_has(text, "12.3/s");
	free(text);
}

/* Each is compared with that of its own round, and once though it stands beside several limits. */
static void settled_stands_beside_empty(void **state)
{
	static struct bench_saying saying;
	struct error error;

	(void)state;
	bench_say_init(&saying, false);
	for (saying.round = 1; saying.round <= 2; saying.round++) {
		struct bench_figure figure = suspends;
		for (size_t i = 0; i < 4; i++) {
			figure.limit_of = i % 2 == 0 ? "COPY" : "reading";
			figure.settled = i < 2 ? 0 : 1000;
			figure.value = saying.round * (i < 2 ? 1000 : 870);
			give(&saying, figure);
		}
		assert_int_equal(bench_say_settled(&saying, 2048, 1000, &error), FATE_OK);
	}
	assert_int_equal(saying.len, 5);
	assert_int_equal(saying.rows[4].len, 2);
	for (size_t i = 0; i < 2; i++) {
		const struct bench_figure *figure = &saying.rows[4].rounds[i];
		assert_true(figure->value == (double)(870 * (i + 1)) && figure->limit == (double)(1000 * (i + 1)));
		assert_string_equal(figure->limit_of, "on empty tables");
		assert_true(figure->goal == 0.9 && !figure->goal_at_most && !bench_goal_met(figure));
	}
	assert_int_equal(bench_say_settled(&saying, 4096, 1000, &error), FATE_OK);
	assert_int_equal(saying.len, 5);
}

/* Where less is better, a little more is let pass. */
static void settled_may_take_a_little_longer(void **state)
{
	static struct bench_saying saying;
	struct bench_figure figure = {
		.phase = BENCH_LATENCY, .size = 2048, .what = "p50", .unit = "ms", .value = 10
	};
	struct error error;

	(void)state;
	bench_say_init(&saying, false);
	saying.round = 1;
	give(&saying, figure);
	figure.settled = 5;
	figure.value = 11;
	give(&saying, figure);
	assert_int_equal(bench_say_settled(&saying, 2048, 5, &error), FATE_OK);
	assert_true(saying.rows[2].rounds[0].goal_at_most && bench_goal_met(&saying.rows[2].rounds[0]));
}

static void json_comes_at_once(void **state)
{
	static struct bench_saying saying;
	struct capture capture;

	(void)state;
	bench_say_init(&saying, true);
	saying.round = 1;
	capture_begin(&capture);
	give(&saying, suspends);
	char *text = capture_end(&capture);
	assert_has(text,
	           "\"phase\":\"suspend\",\"size\":2048,\"what\":\"suspends\",\"value\":8000.0,\"unit\":\"/s\"");
	assert_has(
		text,
		"\"ratio\":0.800,\"goal_is\":\"at_least\",\"goal_of\":\"ratio\",\"goal\":0.800,\"met\":true}\n");
	free(text);
	text = table_of(&saying);
	assert_string_equal(text, "");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_middle_round_is_shown),
		cmocka_unit_test(what_is_not_the_same_has_a_row_of_its_own),
		cmocka_unit_test(settled_stands_beside_empty),
		cmocka_unit_test(settled_may_take_a_little_longer),
		cmocka_unit_test(json_comes_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
