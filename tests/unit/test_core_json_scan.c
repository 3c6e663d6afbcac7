// links: core
// Is it JSON by RFC 8259? Cases in the manner of the well-known parsing suites: what must pass, what must
// not, and what parsers differ about and the contract lets through.
#include "core/json_scan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TEXT(s)                                                                                              \
	{                                                                                                        \
		s, sizeof(s) - 1                                                                                     \
	}

struct text {
	const char *data;
	size_t len;
};

static const struct text yes[] = {
	TEXT("[]"),
	TEXT("{}"),
	TEXT("[[]   ]"),
	TEXT("[\"\"]"),
	TEXT(" [1] "),
	TEXT("\t\n\r {} \t\n\r"),
	TEXT("null"),
	TEXT("true"),
	TEXT("false"),
	TEXT("\"string\""),
	TEXT("42"),
	TEXT("-0.1"),
	TEXT("\"\""),
	TEXT("[null]"),
	TEXT("[1,null,null,null,2]"),
	TEXT("[true,false]"),
	TEXT("[null, 1, \"1\", {}]"),
	TEXT("0"),
	TEXT("-0"),
	TEXT("0e1"),
	TEXT("0e+1"),
	TEXT("0E-10"),
	TEXT("-1.5e+3"),
	TEXT("1E22"),
	TEXT("1e-2"),
	TEXT("0.4e00669999999999999999999999999999999999999999999999999999999999999999999999999999999999999"),
	TEXT("-0.000000000000000000000000000000000000000000000000000000000000000000000000000001"),
	TEXT("1e400"),
	TEXT("-1e+9999"),
	TEXT("123456789012345678901234567890"),
	TEXT("-237462374673276894279832749832"),
	TEXT("[123e65]"),
	TEXT("[20e1]"),
	TEXT("[123.456e78]"),
	TEXT("[-123]"),
	TEXT("[ 4]"),
	TEXT("{\"asd\":\"sdf\"}"),
	TEXT("{\"a\":\"b\",\"a\":\"c\"}"),
	TEXT("{\"\":0}"),
	TEXT("{\"a\":[]}"),
	TEXT("{\"min\": -1.0e+28, \"max\": 1.0e+28}"),
	TEXT("{\n\"a\": \"b\"\n}"),
	TEXT("{\"a\" : {\"b\" : [ { } , [ ] ] } }"),
	TEXT("{\"foo\\u0000bar\": 42}"),
	TEXT("[\"\\u0000\"]"),
	TEXT("[\"\\u0060\\u012a\\u12AB\"]"),
	TEXT("[\"\\uD801\\udc37\"]"),
	TEXT("[\"\\uDADA\"]"),
	TEXT("[\"\\uDd1e\\uD834\"]"),
	TEXT("[\"\\uD800\\n\"]"),
	TEXT("[\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"]"),
	TEXT("[\"\\\\u0000\"]"),
	TEXT("[\"\\\\a\"]"),
	TEXT("[\"a/*b*/c\"]"),
	TEXT("[\"\x7F\"]"),
	TEXT("[\"\xC3\xA9\xE2\x82\xAC\xF0\x9D\x84\x9E\"]"),
	TEXT("[\"\xEF\xBF\xBF\"]"),
	TEXT("[\"\xE2\x80\xA8\xE2\x80\xA9\"]"),
	TEXT("[\"\xEF\xBB\xBF\"]"),
	TEXT("[\"new\xC2\xA0line\"]"),
};

static const struct text no[] = {
	TEXT(""),
	TEXT(" "),
	TEXT("\n"),
	TEXT("\0"),
	TEXT("[1]\0"),
	TEXT("null\0"),
	TEXT("[\0]"),
	TEXT("["),
	TEXT("]"),
	TEXT("{"),
	TEXT("}"),
	TEXT("[}"),
	TEXT("{]"),
	TEXT("[]]"),
	TEXT("{}}"),
	TEXT("[1"),
	TEXT("[1}"),
	TEXT("{\"a\":1]"),
	TEXT("[[]"),
	TEXT("[{]}"),
	TEXT("[[[1]]"),
	TEXT("[[1]]]"),
	TEXT(","),
	TEXT(":"),
	TEXT("[1,]"),
	TEXT("[,1]"),
	TEXT("[,]"),
	TEXT("[1,,2]"),
	TEXT("[1 2]"),
	TEXT("[\"a\" \"b\"]"),
	TEXT("[1:2]"),
	TEXT("[\"\": 1]"),
	TEXT("[1],"),
	TEXT("[] []"),
	TEXT("1 2"),
	TEXT("\"a\" \"b\""),
	TEXT("true false"),
	TEXT("{} x"),
	TEXT("{\"a\"}"),
	TEXT("{\"a\":}"),
	TEXT("{\"a\" 1}"),
	TEXT("{\"a\",1}"),
	TEXT("{\"a\"::1}"),
	TEXT("{:1}"),
	TEXT("{1:1}"),
	TEXT("{a:1}"),
	TEXT("{'a':1}"),
	TEXT("{\"a\":1,}"),
	TEXT("{,\"a\":1}"),
	TEXT("{\"a\":1,,\"b\":2}"),
	TEXT("{\"a\":1 \"b\":2}"),
	TEXT("{\"a\":1,\"b\"}"),
	TEXT("{null:null}"),
	TEXT("{[]:1}"),
	TEXT("{\"a\":1"),
	TEXT("{\"a\""),
	TEXT("{\"a\":"),
	TEXT("{\"a"),
	TEXT("{\"a\":1,"),
	TEXT("[1,"),
	TEXT("nul"),
	TEXT("nulll"),
	TEXT("tru"),
	TEXT("truee"),
	TEXT("fals"),
	TEXT("True"),
	TEXT("NULL"),
	TEXT("undefined"),
	TEXT("t"),
	TEXT("n"),
	TEXT("f"),
	TEXT("NaN"),
	TEXT("-NaN"),
	TEXT("Infinity"),
	TEXT("-Infinity"),
	TEXT("Inf"),
	TEXT("-"),
	TEXT("+"),
	TEXT("+1"),
	TEXT("++1"),
	TEXT("--1"),
	TEXT("-+1"),
	TEXT("- 1"),
	TEXT("01"),
	TEXT("-01"),
	TEXT("00"),
	TEXT("012"),
	TEXT("-012"),
	TEXT("1."),
	TEXT("-2."),
	TEXT(".5"),
	TEXT("-.5"),
	TEXT("1.e1"),
	TEXT("0.e1"),
	TEXT("1.2."),
	TEXT("1e"),
	TEXT("1E"),
	TEXT("1e+"),
	TEXT("1e-"),
	TEXT("1eE2"),
	TEXT("1e1.5"),
	TEXT("1e+-2"),
	TEXT("0x1"),
	TEXT("0x42"),
	TEXT("1_000"),
	TEXT("1a"),
	TEXT("1.8011670033376514H-308"),
	TEXT("[1+2]"),
	TEXT("e1"),
	TEXT("\xEF\xBC\x91"),
	TEXT("\""),
	TEXT("\"a"),
	TEXT("\"\\\""),
	TEXT("\"\\"),
	TEXT("'a'"),
	TEXT("`a`"),
	TEXT("a"),
	TEXT("\"\\a\""),
	TEXT("\"\\x00\""),
	TEXT("\"\\'\""),
	TEXT("\"\\0\""),
	TEXT("\"\\\0\""),
	TEXT("\"\\U0000\""),
	TEXT("\"\\u\""),
	TEXT("\"\\u0\""),
	TEXT("\"\\u00\""),
	TEXT("\"\\u000\""),
	TEXT("\"\\u000"),
	TEXT("\"\\u000g\""),
	TEXT("\"\\u 000\""),
	TEXT("\"\\u-001\""),
	TEXT("\"\\ \""),
	TEXT("\"a\nb\""),
	TEXT("\"a\tb\""),
	TEXT("\"a\rb\""),
	TEXT("\"a\0b\""),
	TEXT("\"\x1F\""),
	TEXT("\"\\\n\""),
	TEXT("\"\\\xF0\x9F\x8C\x80\""),
	TEXT("[1]//"),
	TEXT("/**/1"),
	TEXT("1/**/"),
	TEXT("#1"),
	TEXT("{\"a\":/*x*/1}"),
	TEXT("[1]x"),
	TEXT("<null>"),
	TEXT("[*]"),
	TEXT("\xEF\xBB\xBF{}"),
	TEXT("\xEF\xBB\xBF"),
	TEXT("\xFF\xFE[\0]\0"),
	TEXT("\0[\0]"),
	TEXT("\xC2\xA0"
	     "1"),
	TEXT("1\xC2\xA0"),
	TEXT("\x0B"
	     "1"),
	TEXT("\x0C"
	     "1"),
	TEXT("[\x0C]"),
	TEXT("1\xE2\x81\xA0"),
	TEXT("[\xE2\x81\xA0]"),
	TEXT("\"\xFF\""),
	TEXT("\"\xC3\""),
	TEXT("\"\xC0\xAF\""),
	TEXT("\"\xED\xA0\x80\""),
	TEXT("\"\xF4\x90\x80\x80\""),
	TEXT("\"\x80\""),
	TEXT("\"\xE0\x80\x80\""),
	TEXT("{\"\xFF\":1}"),
	TEXT("1\xFF"),
	TEXT("\xE5"),
	TEXT("[\xC3\xA9]"),
};

/* In memory of just that size, so that a byte read beyond it is seen by the sanitizers. */
static bool scan_exact(const char *text, size_t len)
{
	uint8_t *data = malloc(len > 0 ? len : 1);

	assert_non_null(data);
	memcpy(data, text, len);
	bool answer = json_scan((struct view){ data, len });
	free(data);
	return answer;
}

static void what_is_json(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++)
		if (!scan_exact(yes[i].data, yes[i].len))
			fail_msg("refused: %s", yes[i].data);
}

static void what_is_not(void **state)
{
	(void)state;
	assert_false(json_scan(VIEW_NULL));
	for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++)
		if (scan_exact(no[i].data, no[i].len))
			fail_msg("accepted number %zu: %s", i, no[i].data);
}

/* Every beginning of a text that does not end in a number is not JSON. */
static void a_text_cut_short_is_not_json(void **state)
{
	(void)state;
	static const char text[] = "{\"a\":[1.5e+3,true,null,{\"b\\u00e9\":\"c\\n\"}],\"d\":false}";

	assert_true(scan_exact(text, sizeof(text) - 1));
	for (size_t len = 0; len < sizeof(text) - 1; len++)
		assert_false(scan_exact(text, len));
}

static void arrays_to_the_limit(void **state)
{
	(void)state;
	size_t depth = JSON_SCAN_DEPTH_MAX;
	char *text = malloc(2 * depth + 2);

	assert_non_null(text);
	memset(text, '[', depth);
	memset(text + depth, ']', depth);
	assert_true(scan_exact(text, 2 * depth));
	assert_false(scan_exact(text, 2 * depth - 1));
	text[2 * depth - 1] = '}';
	assert_false(scan_exact(text, 2 * depth));
	memset(text, '[', depth + 1);
	memset(text + depth + 1, ']', depth + 1);
	assert_false(scan_exact(text, 2 * depth + 2));
	free(text);
}

/* Objects and arrays in turn, so that each level's bit is remembered, also where another was before. */
static void mixed_nesting_is_matched(void **state)
{
	(void)state;
	enum { PAIRS = JSON_SCAN_DEPTH_MAX / 2 };
	struct buffer text;

	buffer_init(&text, (size_t)1024 * 1024);
	buffer_append_text(&text, "[");
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < PAIRS - 1; i++)
			buffer_append_text(&text, round == 0 ? "[{\"k\":" : "{\"k\":[");
		buffer_append_text(&text, "1");
		for (int i = 0; i < PAIRS - 1; i++)
			buffer_append_text(&text, round == 0 ? "}]" : "]}");
		buffer_append_text(&text, round == 0 ? "," : "]");
	}
	assert_false(buffer_failed(&text));
	assert_true(json_scan(buffer_view(&text)));
	text.data[text.len - 3] = '}'; /* these two were the other way round */
	text.data[text.len - 2] = ']';
	assert_false(json_scan(buffer_view(&text)));
	buffer_done(&text);
}

static void hostile_nesting_ends_at_once(void **state)
{
	(void)state;
	size_t len = (size_t)8 * 1024 * 1024;
	char *text = malloc(len);

	assert_non_null(text);
	memset(text, '[', len);
	assert_false(json_scan((struct view){ (const uint8_t *)text, len }));
	for (size_t i = 0; i + 5 < len; i += 5)
		memcpy(text + i, "{\"\":[", 5);
	assert_false(json_scan((struct view){ (const uint8_t *)text, len }));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_json),
		cmocka_unit_test(what_is_not),
		cmocka_unit_test(a_text_cut_short_is_not_json),
		cmocka_unit_test(arrays_to_the_limit),
		cmocka_unit_test(mixed_nesting_is_matched),
		cmocka_unit_test(hostile_nesting_ends_at_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
