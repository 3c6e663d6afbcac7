// links: cli core
/* test_cli_screen.c - nothing from outside steers a terminal; times, columns and tables. */
#include "test_cli_output.h"

#include "cli/person.h"
#include "cli/screen.h"
#include "cli/table.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <time.h>

#define SECOND INT64_C(1000000)
#define HOUR   (3600 * SECOND)

static void assert_clean(struct view text, const char *expected)
{
	struct buffer out;

	buffer_init(&out, 1 << 16);
	put_clean(&out, text);
	buffer_append_byte(&out, '\0');
	assert_false(buffer_failed(&out));
	assert_string_equal((const char *)out.data, expected);
	buffer_done(&out);
}

static void no_text_steers_the_terminal(void **state)
{
	const uint8_t csi[] = { 0xc2, 0x9b, '3', '1', 'm' };          /* C1: in one character */
	const uint8_t turned[] = { 0xe2, 0x80, 0xae, 't', 'x', 't' }; /* right-to-left override */

	(void)state;
	assert_clean(view_of("Grüße, 世界 🎼"), "Grüße, 世界 🎼");
	assert_clean(view_of("\x1b[31mred\x1b]0;title\x07"), "\\x1b[31mred\\x1b]0;title\\x07");
	assert_clean(view_of("a\tb\rc\nd\x7f"), "a\\tb\\rc d\\x7f");
	assert_clean((struct view){ (const uint8_t *)"a\0b", 3 }, "a\\x00b");
	assert_clean((struct view){ csi, sizeof(csi) }, "\\x9b31m");
	assert_clean((struct view){ turned, sizeof(turned) }, "\\u{202e}txt");
	assert_clean(view_of("\xff\xc3(\xed\xa0\x80"), "\\xff\\xc3(\\xed\\xa0\\x80");
	assert_clean(view_of("\xf3\xa0\x81\x81"), "\\u{e0041}"); /* tags: text that is not seen */
	assert_clean(VIEW_NULL, "");
}

static void every_byte_below_a_blank_is_escaped(void **state)
{
	struct buffer out;

	(void)state;
	buffer_init(&out, 64);
	for (uint8_t byte = 0; byte < 0x20; byte++) {
		buffer_reset(&out);
		put_clean(&out, (struct view){ &byte, 1 });
		for (size_t i = 0; i < out.len; i++)
			assert_true(out.data[i] >= 0x20);
	}
	buffer_done(&out);
}

static void lines_are_indented(void **state)
{
	struct buffer out;

	(void)state;
	buffer_init(&out, 1 << 10);
	put_clean_lines(&out, view_of("one\ntwo\x1b\n\nfour\n\n"), 3);
	buffer_append_byte(&out, '\0');
	assert_false(buffer_failed(&out));
	assert_string_equal((const char *)out.data, "one\n   two\\x1b\n   \n   four");
	buffer_done(&out);
}

static void columns(void **state)
{
	(void)state;
	assert_int_equal(text_columns(view_of("abc")), 3);
	assert_int_equal(text_columns(view_of("ü")), 1);
	assert_int_equal(text_columns(view_of("世界")), 4);
	assert_int_equal(text_columns(view_of("e\xcc\x81")), 1); /* a combining accent */
	assert_int_equal(text_cut(view_of("世界"), 3), 3);       /* half a character is none */
	assert_int_equal(text_cut(view_of("abc"), 9), 3);
}

static void assert_ago(int64_t at, int64_t now, const char *expected)
{
	char text[48];

	assert_string_equal(format_ago(at, now, text, sizeof(text)), expected);
}

static void times_relative_to_now(void **state)
{
	int64_t now = INT64_C(1796024267018000);

	(void)state;
	assert_ago(now, now, "now");
	assert_ago(now - 5 * SECOND, now, "5 s ago");
	assert_ago(now - 119 * SECOND, now, "119 s ago");
	assert_ago(now - 2 * 60 * SECOND, now, "2 min ago");
	assert_ago(now - 3 * HOUR, now, "3 h ago");
	assert_ago(now - 3 * 24 * HOUR, now, "3 d ago");
	assert_ago(now + 2 * 24 * HOUR, now, "in 2 d");
	assert_ago(TIME_NONE, now, "-");
	assert_ago(TIME_NONE + 1, INT64_MAX, "106751991 d ago"); /* whatever the wire says */
	assert_ago(INT64_MAX, TIME_NONE + 1, "in 106751991 d");
}

static void times_readable(void **state)
{
	char text[96];

	(void)state;
	setenv("TZ", "UTC", 1);
	tzset();
	assert_string_equal(format_clock(INT64_C(1796024267018000), text, sizeof(text)),
	                    "2026-11-30 07:37:47 UTC");
	assert_string_equal(format_clock(-1, text, sizeof(text)), "1969-12-31 23:59:59 UTC");
	assert_string_equal(format_when(SECOND, 2 * HOUR + SECOND, text, sizeof(text)),
	                    "1970-01-01 00:00:01 UTC (2 h ago)");
	assert_string_equal(format_when(TIME_NONE, 0, text, sizeof(text)), "-");
	assert_string_equal(format_clock(INT64_MAX, text, sizeof(text)), "9223372036854775807 us");
}

static void colours_only_where_they_are_wanted(void **state)
{
	(void)state;
	screen_force_colours(0);
	assert_string_equal(colour_on(COLOUR_RED), "");
	assert_string_equal(colour_off(COLOUR_RED), "");
	screen_force_colours(1);
	assert_string_equal(colour_on(COLOUR_RED), "\x1b[31m");
	assert_string_equal(colour_off(COLOUR_RED), "\x1b[0m");
	assert_string_equal(colour_off(COLOUR_NONE), "");
	screen_force_colours(-1);
	setenv("NO_COLOR", "1", 1);
	assert_false(screen_colours());
	screen_force_colours(0);
}

static void json_for_readers_of_lines(void **state)
{
	struct capture capture;
	struct buffer out;
	char *text;

	(void)state;
	buffer_init(&out, 1 << 10);
	buffer_append_text(&out, "{\"a\":\"\x7f\xc2\x80\xc2\x85\xc2\x9f\xc2\xa0 \xe2\x80\xa8\xe2\x80\xa9 ü\"}");
	capture_begin(&capture);
	screen_write_json(&out);
	text = capture_end(&capture);
	assert_true(screen_whole());
	assert_string_equal(text, "{\"a\":\"\\u007f\\u0080\\u0085\\u009f\xc2\xa0 \\u2028\\u2029 ü\"}\n");
	assert_int_equal(out.len, 0);
	free(text);
	buffer_done(&out);
}

static void a_table(void **state)
{
	static const char *const titles[] = { "NAME", "B", "TEXT" };
	struct cell rows[][3] = {
		{ { view_of("x"), COLOUR_NONE }, { view_of("世界"), COLOUR_NONE }, { view_of("a\nb"), COLOUR_NONE } },
		{ { view_of("longer"), COLOUR_NONE },
		  { view_of(""), COLOUR_NONE },
		  { view_of("\x1b"), COLOUR_NONE } },
	};
	struct capture capture;
	struct table table;
	struct error error;
	char *text;

	(void)state;
	screen_force_colours(0);
	assert_int_equal(table_init(&table, titles, 3, &error), FATE_OK);
	capture_begin(&capture);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(table_row(&table, rows[i], &error), FATE_OK);
	table_flush(&table);
	table_flush(&table);
	text = capture_end(&capture);
	assert_true(screen_whole());
	assert_string_equal(text, "NAME    B     TEXT\n"
	                          "x       世界  a b\n"
	                          "longer        \\x1b\n");
	free(text);
	table_done(&table);
}

/* More rows than are gathered at a time: all are there, and the titles once. */
static void a_long_table(void **state)
{
	static const char *const titles[] = { "N" };
	struct capture capture;
	struct table table;
	struct error error;
	char number[16], *text;
	size_t lines = 0;

	(void)state;
	assert_int_equal(table_init(&table, titles, 1, &error), FATE_OK);
	capture_begin(&capture);
	for (int i = 0; i < 1000; i++) {
		snprintf(number, sizeof(number), "%d", i);
		struct cell cell = { view_of(number), COLOUR_NONE };
		assert_int_equal(table_row(&table, &cell, &error), FATE_OK);
	}
	table_flush(&table);
	text = capture_end(&capture);
	assert_true(screen_whole());
	for (const char *at = text; (at = strchr(at, '\n')) != NULL; at++)
		lines++;
	assert_int_equal(lines, 1001);
	assert_int_equal(strncmp(text, "N\n0\n1\n", 6), 0);
	assert_non_null(strstr(text, "\n999\n"));
	free(text);
	table_done(&table);
}

static void assert_value(const struct config_entry *entry, const char *expected)
{
	struct buffer out;

	buffer_init(&out, 1 << 10);
	put_config_value(&out, entry);
	buffer_append_byte(&out, '\0');
	assert_false(buffer_failed(&out));
	assert_string_equal((const char *)out.data, expected);
	buffer_done(&out);
}

static void values_of_variables(void **state)
{
	struct view items[] = { view_of("a"), view_of("b\x1b") };

	(void)state;
	assert_value(&(struct config_entry){ .kind = CONFIG_NULL }, "null");
	assert_value(&(struct config_entry){ .kind = CONFIG_BOOLEAN, .value.boolean = true }, "true");
	assert_value(&(struct config_entry){ .kind = CONFIG_LONG, .value.number = INT64_MIN },
	             "-9223372036854775808");
	assert_value(&(struct config_entry){ .kind = CONFIG_DOUBLE, .value.real = 16.0 },
	             "16.0"); /* never an integer */
	assert_value(&(struct config_entry){ .kind = CONFIG_DOUBLE, .value.real = 0.1 }, "0.1");
	assert_value(&(struct config_entry){ .kind = CONFIG_DOUBLE, .value.real = -0.0 }, "-0.0");
	assert_value(&(struct config_entry){ .kind = CONFIG_DOUBLE, .value.real = 1e300 }, "1e+300");
	assert_value(&(struct config_entry){ .kind = CONFIG_DOUBLE, .value.real = NAN }, "NaN");
	assert_value(&(struct config_entry){ .kind = CONFIG_DOUBLE, .value.real = -INFINITY }, "-Infinity");
	assert_value(&(struct config_entry){ .kind = CONFIG_STRING, .value.string = view_of("x\ny") }, "\"x y\"");
	assert_value(&(struct config_entry){ .kind = CONFIG_STRINGS, .value.strings = { items, 2 } },
	             "[\"a\", \"b\\x1b\"]");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_text_steers_the_terminal),
		cmocka_unit_test(every_byte_below_a_blank_is_escaped),
		cmocka_unit_test(lines_are_indented),
		cmocka_unit_test(columns),
		cmocka_unit_test(times_relative_to_now),
		cmocka_unit_test(times_readable),
		cmocka_unit_test(colours_only_where_they_are_wanted),
		cmocka_unit_test(json_for_readers_of_lines),
		cmocka_unit_test(a_table),
		cmocka_unit_test(a_long_table),
		cmocka_unit_test(values_of_variables),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
