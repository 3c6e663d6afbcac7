// links: cli core
/* The search that the demo shows: it finds what is there, wherever it lies, and nothing else. */
#include "cli/demo_search.h"

#include "cli/dev_files.h"

// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
// clang-format on

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct place {
	char root[DEV_ROOT_MAX];
	struct search search;
};

static int make_place(void **state)
{
	static struct place place;
	struct error error;

	memset(&place, 0, sizeof(place));
	*state = &place;
	return files_make_root("test-search", false, place.root, &error) == FATE_OK ? 0 : -1;
}

static int remove_place(void **state)
{
	const struct place *place = *state;
	return files_remove(place->root) ? 0 : -1;
}

static void put_file(const struct place *place, const char *name, struct view content)
{
	char path[DEV_PATH_MAX];
	struct error error;

	files_join(path, place->root, name);
	assert_int_equal(files_write(path, 0600, content, &error), FATE_OK);
}

static void put_directory(const struct place *place, const char *name)
{
	char path[DEV_PATH_MAX];
	struct error error;

	files_join(path, place->root, name);
	assert_int_equal(files_make_directory(path, 0700, &error), FATE_OK);
}

static void test_finds_what_is_there(void **state)
{
	struct place *place = *state;
	struct error error;

	put_directory(place, "a");
	put_directory(place, "a/b");
	put_file(place, "a/b/deep", VIEW_LITERAL("\0\0needle\0needleneedle"));
	put_file(place, "end", VIEW_LITERAL("at the very end: needle"));
	put_file(place, "start", VIEW_LITERAL("needle"));
	put_file(place, "part", VIEW_LITERAL("needl"));
	put_file(place, "empty", VIEW_LITERAL(""));
	search_add(&place->search, VIEW_LITERAL("needle"));
	search_add(&place->search, VIEW_LITERAL("haystack"));
	search_add(&place->search, VIEW_LITERAL(""));
	assert_int_equal(place->search.len, 2);
	assert_int_equal(search_run(&place->search, place->root, &error), FATE_OK);
	assert_int_equal(place->search.needles[0].found, 5);
	assert_int_equal(place->search.needles[1].found, 0);
	assert_int_equal(place->search.files, 4);
	assert_int_equal(place->search.bytes, 21 + 23 + 6 + 5);
}

static void test_links_are_not_followed(void **state)
{
	struct place *place = *state;
	char from[DEV_PATH_MAX];
	struct error error;

	put_directory(place, "in");
	put_file(place, "out", VIEW_LITERAL("needle"));
	files_join(from, place->root, "in/link");
	assert_int_equal(symlink("../out", from), 0);
	files_join(from, place->root, "in");
	search_add(&place->search, VIEW_LITERAL("needle"));
	/* A link in a database leads out of it (a tablespace): that it was not looked into must not go unsaid. */
	assert_int_equal(search_run(&place->search, from, &error), FATE_FATAL);
	assert_int_equal(place->search.needles[0].found, 0);
}

static void test_a_directory_that_is_not_there(void **state)
{
	struct place *place = *state;
	char path[DEV_PATH_MAX];
	struct error error;

	files_join(path, place->root, "nowhere");
	search_add(&place->search, VIEW_LITERAL("needle"));
	assert_int_equal(search_run(&place->search, path, &error), FATE_OK);
	assert_int_equal(place->search.files, 0);
}

static void assert_needle(const struct search *search, size_t i, const char *text)
{
	assert_true(i < search->len);
	assert_true(view_equal_text(search->needles[i].text, text));
}

static void test_runs_of_words(void **state)
{
	struct place *place = *state;
	struct search *search = &place->search;

	search_add_runs(search, VIEW_LITERAL("I write the migration now"), 4);
	assert_int_equal(search->len, 2);
	assert_needle(search, 0, "I write the migration");
	assert_needle(search, 1, "write the migration now");
	search->len = 0;
	search_add_runs(search, VIEW_LITERAL("too few words"), 4);
	assert_int_equal(search->len, 0);
	search_add_runs(search, VIEW_LITERAL("just three words"), 3);
	assert_int_equal(search->len, 1);
	assert_needle(search, 0, "just three words");
	search->len = 0;
	search_add_runs(search, VIEW_LITERAL("a b"), 1);
	assert_int_equal(search->len, 2);
	assert_needle(search, 1, "b");
}

static void test_no_more_than_fit(void **state)
{
	struct place *place = *state;

	for (size_t i = 0; i < NEEDLES_MAX + 10; i++)
		search_add(&place->search, VIEW_LITERAL("x"));
	assert_int_equal(place->search.len, NEEDLES_MAX);
}

static void count_lines(void *context, const char *line)
{
	buffer_printf(context, "%s|", line);
}

static void assert_tail(const struct place *place, struct view content, size_t count, const char *expected)
{
	char path[DEV_PATH_MAX];
	struct buffer lines;

	put_file(place, "log", content);
	files_join(path, place->root, "log");
	buffer_init(&lines, 65536);
	files_tail(path, count, count_lines, &lines);
	buffer_append_byte(&lines, '\0');
	assert_false(buffer_failed(&lines));
	assert_string_equal((const char *)lines.data, expected);
	buffer_done(&lines);
}

static void test_the_end_of_a_log(void **state)
{
	const struct place *place = *state;

	assert_tail(place, VIEW_LITERAL("one\ntwo\nthree\n"), 2, "two|three|");
	assert_tail(place, VIEW_LITERAL("one\ntwo\nthree"), 2, "two|three|");
	assert_tail(place, VIEW_LITERAL("one\n"), 5, "one|");
	assert_tail(place, VIEW_LITERAL("one\n\n"), 5, "one||");
	assert_tail(place, VIEW_LITERAL(""), 5, "");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_place, remove_place)
	const struct CMUnitTest tests[] = {
		TEST(test_finds_what_is_there),
		TEST(test_links_are_not_followed),
		TEST(test_a_directory_that_is_not_there),
		TEST(test_runs_of_words),
		TEST(test_no_more_than_fit),
		TEST(test_the_end_of_a_log),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
