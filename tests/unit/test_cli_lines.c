// links: cli core
/* test_cli_lines.c - lines however they are cut, too long, without an end; and what was seen of gates. */
#include "cli/lines.h"
#include "cli/seen.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct feed {
	int read_end;
	int write_end;
	struct lines lines;
};

static void feed_open(struct feed *feed, size_t ceiling)
{
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	feed->read_end = ends[0];
	feed->write_end = ends[1];
	lines_init(&feed->lines, feed->read_end, ceiling);
}

static void feed_write(struct feed *feed, const char *text)
{
	assert_int_equal(write(feed->write_end, text, strlen(text)), strlen(text));
}

static void feed_end(struct feed *feed)
{
	close(feed->write_end);
}

static void feed_close(struct feed *feed)
{
	close(feed->read_end);
	lines_done(&feed->lines);
}

static void assert_next(struct feed *feed, enum lines_event event, const char *text, size_t number)
{
	struct view line = VIEW_NULL;

	assert_int_equal(lines_next(&feed->lines, 0, &line), event);
	if (text != NULL)
		assert_true(view_equal_text(line, text));
	if (number > 0)
		assert_int_equal(feed->lines.number, number);
}

static void lines_one_by_one(void **state)
{
	struct feed feed;

	(void)state;
	feed_open(&feed, 100);
	assert_next(&feed, LINES_NOTHING, NULL, 0);
	feed_write(&feed, "one\n\nthree\nfo");
	assert_next(&feed, LINES_LINE, "one", 1);
	assert_next(&feed, LINES_LINE, "", 2);
	assert_next(&feed, LINES_LINE, "three", 3);
	assert_next(&feed, LINES_NOTHING, NULL, 0);
	feed_write(&feed, "ur\nlast");
	assert_next(&feed, LINES_LINE, "four", 4);
	feed_end(&feed);
	assert_next(&feed, LINES_LINE, "last", 5);
	assert_next(&feed, LINES_END, NULL, 0);
	assert_next(&feed, LINES_END, NULL, 0);
	feed_close(&feed);
}

/* The same text cut in two at every place. */
static void lines_cut_anywhere(void **state)
{
	static const char text[] = "a\nbcd\n\ne";

	(void)state;
	for (size_t cut = 0; cut < sizeof(text); cut++) {
		enum lines_event event;
		struct feed feed;
		char head[sizeof(text)];
		struct view line;
		size_t count = 0;
		feed_open(&feed, 100);
		memcpy(head, text, cut);
		head[cut] = '\0';
		feed_write(&feed, head);
		while ((event = lines_next(&feed.lines, 0, &line)) == LINES_LINE)
			count++;
		assert_true(event != LINES_FAILED);
		feed_write(&feed, text + cut);
		feed_end(&feed);
		while ((event = lines_next(&feed.lines, 0, &line)) == LINES_LINE)
			count++;
		assert_true(event != LINES_FAILED);
		assert_int_equal(count, 4);
		feed_close(&feed);
	}
}

static void a_line_that_is_too_long_is_passed_over(void **state)
{
	struct feed feed;
	char many[5000];

	(void)state;
	memset(many, 'x', sizeof(many) - 1);
	many[sizeof(many) - 1] = '\0';
	feed_open(&feed, 10);
	feed_write(&feed, "0123456789\n01234567890\nok\n");
	assert_next(&feed, LINES_LINE, "0123456789", 1);
	assert_next(&feed, LINES_TOO_LONG, NULL, 2);
	assert_next(&feed, LINES_LINE, "ok", 3);
	for (int i = 0; i < 10; i++) {
		feed_write(&feed, many);
		assert_next(&feed, LINES_NOTHING, NULL, 0);
	}
	feed_write(&feed, "tail\nnext\n");
	assert_next(&feed, LINES_TOO_LONG, NULL, 4);
	assert_next(&feed, LINES_LINE, "next", 5);
	feed_write(&feed, many);
	feed_end(&feed);
	assert_next(&feed, LINES_TOO_LONG, NULL, 6);
	assert_next(&feed, LINES_END, NULL, 0);
	feed_close(&feed);
}

static void what_cannot_be_read_is_said(void **state)
{
	struct lines lines;
	struct view line;
	int directory = open("/", O_RDONLY);

	(void)state;
	lines_init(&lines, directory, 10);
	assert_int_equal(lines_next(&lines, -1, &line), LINES_FAILED);
	close(directory);
	lines_done(&lines);
}

/* ---- seen ---- */

static struct uuid id_of(uint32_t n)
{
	struct uuid id = { { 0 } };

	memcpy(id.bytes + 8, &n, sizeof(n));
	return id;
}

static void only_newer_versions_are_news(void **state)
{
	struct seen seen = { 0 };
	struct uuid a = id_of(1), b = id_of(2);

	(void)state;
	assert_true(seen_raise(&seen, &a, 5));
	assert_false(seen_raise(&seen, &a, 5));
	assert_false(seen_raise(&seen, &a, 4));
	assert_true(seen_raise(&seen, &b, 1));
	assert_true(seen_raise(&seen, &a, 6));
	assert_int_equal(seen.len, 2);
	seen_done(&seen);
}

static void many_checkpoints_are_seen(void **state)
{
	struct seen seen = { 0 };

	(void)state;
	for (uint32_t n = 0; n < 50000; n++) {
		struct uuid id = id_of(n);
		assert_true(seen_raise(&seen, &id, n + 1));
	}
	assert_int_equal(seen.len, 50000);
	for (uint32_t n = 0; n < 50000; n++) {
		struct uuid id = id_of(n);
		assert_false(seen_raise(&seen, &id, n + 1));
	}
	seen_done(&seen);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_one_by_one),
		cmocka_unit_test(lines_cut_anywhere),
		cmocka_unit_test(a_line_that_is_too_long_is_passed_over),
		cmocka_unit_test(what_cannot_be_read_is_said),
		cmocka_unit_test(only_newer_versions_are_news),
		cmocka_unit_test(many_checkpoints_are_seen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
