// links: schemas core
/* Schema resolution, reading by reading: what a datum becomes, or why not and when. */
#include "core/clock.h"
#include "schemas/migrate.h"
#include "schemas/resolve.h"
#include "tests/unit/test_schemas_words.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define BODY(bytes)                                                                                          \
	{                                                                                                        \
		(const uint8_t *)(bytes), sizeof(bytes) - 1                                                          \
	}

static struct resolver *resolver;

struct reading {
	const char *writer, *reader;
	struct view body;
	const char *json; /* what comes out; or what the error holds, when it begins with ! */
};

static const struct reading readings[] = {
	/* primitives and promotions */
	{ INT, LONG, BODY("\x04"), "2" },
	{ INT, FLOAT, BODY("\x82\x80\x80\x10"), "16777216.0" },
	{ LONG, FLOAT, BODY("\x82\x80\x80\x80\x80\x80\x80\x80\x01"), "3.6028797e+16" },
	{ LONG, DOUBLE, BODY("\x82\x80\x80\x80\x80\x80\x80 "), "9007199254740992.0" },
	{ FLOAT, DOUBLE, BODY("\0\0\xc0\x7f"), "\"NaN\"" },
	{ FLOAT, DOUBLE, BODY("\xcd\xcc\xcc="), "0.10000000149011612" },
	{ FLOAT, FLOAT, BODY("\xcd\xcc\xcc="), "0.1" },
	{ STRING, BYTES, BODY("\x04\xc3\xbf"), "\"\xc3\x83\xc2\xbf\"" },
	{ BYTES, STRING, BODY("\x04\xc3\xbf"), "\"\xc3\xbf\"" },
	{ BYTES, STRING, BODY("\x02\xff"), "!string: the writer's bytes are not UTF-8" },
	{ LONG, INT, BODY("\x02"), "!int: the writer's long is not the reader's int (always)" },
	{ DOUBLE, FLOAT, BODY("\0\0\0\0\0\0\0\0"), "!(always)" },
	/* fields: dropped, defaulted, reordered, renamed */
	{ REC("R", F("a", INT) "," F("b", STRING)), REC("R", F("b", STRING)), BODY("\x02\x02x"),
	  "{\"b\":\"x\"}" },
	{ REC("R", F("a", INT) "," F("b", STRING)), REC("R", F("b", STRING)), BODY("\x02\x02\xff"),
	  "!R.b: the string is not UTF-8" },
	{ REC("R", F("gone", STRING) "," F("b", INT)), REC("R", F("b", INT)), BODY("\x02\xff\x02"),
	  "!R.gone: the string is not UTF-8" },
	{ REC("R", F("a", INT) "," F("b", STRING)), REC("R", F("b", STRING) "," F("a", LONG)), BODY("\x02\x02x"),
	  "{\"b\":\"x\",\"a\":1}" },
	{ REC("R", ""), REC("R", FX("n", LONG, "\"default\":9007199254740993")), BODY(""),
	  "{\"n\":9007199254740993}" },
	{ REC("R", ""), REC("R", FX("n", BYTES, "\"default\":\"\\u0000\\u00ff\"")), BODY(""),
	  "{\"n\":\"\\u0000\xc3\xbf\"}" },
	{ REC("R", ""), REC("R", FX("n", FIXED("F", 2), "\"default\":\"\\u00ffa\"")), BODY(""),
	  "{\"n\":\"\xc3\xbf"
	  "a\"}" },
	{ REC("R", ""), REC("R", FX("n", NULLABLE(INT), "\"default\":7")), BODY(""), "{\"n\":{\"int\":7}}" },
	{ REC("R", ""), REC("R", FX("n", FLOAT, "\"default\":1")), BODY(""), "{\"n\":1.0}" },
	{ REC("R", ""), REC("R", FX("n", MAP(ARRAY(INT)), "\"default\":{\"k\":[1,2],\"l\":[]}")), BODY(""),
	  "{\"n\":{\"k\":[1,2],\"l\":[]}}" },
	{ REC("R", ""),
	  REC("R",
	      FX("n", REC("I", FX("x", INT, "\"default\":1") "," F("y", INT)), "\"default\":{\"y\":2,\"z\":3}")),
	  BODY(""), "{\"n\":{\"x\":1,\"y\":2}}" },
	{ REC("R", ""), REC("R", F("n", INT)), BODY(""),
	  "!R.n: the writer has no such field, and the reader has no default for it (always)" },
	{ REC("R", F("old", INT)), REC("R", FX("new", INT, "\"aliases\":[\"old\"]")), BODY("\x02"),
	  "{\"new\":1}" },
	{ REC("R", F("a", INT) "," F("b", STRING)),
	  REC("R", FX("b", INT, "\"aliases\":[\"a\"]") "," FX("a", STRING, "\"aliases\":[\"b\"]")),
	  BODY("\x02\x02x"), "{\"b\":1,\"a\":\"x\"}" },
	{ REC("R", F("a", INT) "," F("b", INT)), REC("R", FX("a", INT, "\"aliases\":[\"b\"]")), BODY("\x02\x02"),
	  "!R.a: two fields of the writer come to it, b is the second (always)" },
	{ REC("R", F("x", INT)),
	  REC("R", FX("a", INT, "\"aliases\":[\"x\"]") "," FX("b", INT, "\"aliases\":[\"x\"]")), BODY("\x02"),
	  "!R.x: two fields of the reader have this alias (always)" },
	{ REC("R", FX("a", INT, "\"aliases\":[\"b\"]")), REC("R", F("b", INT)), BODY("\x02"),
	  "!R.b: the writer has no such" },
	/* names of types */
	{ REC("a.R", ""), REC("b.R", ""), BODY(""), "{}" },
	{ REC("R", ""), REC("S", ""), BODY(""),
	  "!S: the writer's record R is not the reader's S, which has no such alias" },
	{ REC("a.R", ""), "{\"type\":\"record\",\"name\":\"a.S\",\"aliases\":[\"R\"],\"fields\":[]}", BODY(""),
	  "{}" },
	{ REC("b.R", ""), "{\"type\":\"record\",\"name\":\"a.S\",\"aliases\":[\"R\"],\"fields\":[]}", BODY(""),
	  "!alias" },
	{ REC("b.R", ""), "{\"type\":\"record\",\"name\":\"a.S\",\"aliases\":[\"b.R\"],\"fields\":[]}", BODY(""),
	  "{}" },
	{ ENUM("E", "\"A\""), "{\"type\":\"enum\",\"name\":\"N\",\"aliases\":[\"E\"],\"symbols\":[\"B\",\"A\"]}",
	  BODY("\0"), "\"A\"" },
	{ FIXED("F", 2), "{\"type\":\"fixed\",\"name\":\"N\",\"aliases\":[\"F\"],\"size\":2}", BODY("ab"),
	  "\"ab\"" },
	{ FIXED("F", 2), FIXED("F", 3), BODY("ab"), "!the writer's fixed has 2 bytes, the reader's 3 (always)" },
	/* enums */
	{ ENUM("E", "\"A\",\"B\""),
	  "{\"type\":\"enum\",\"name\":\"E\",\"symbols\":[\"B\",\"C\"],\"default\":\"C\"}", BODY("\0"), "\"C\"" },
	{ ENUM("E", "\"A\",\"B\""), ENUM("E", "\"B\""), BODY("\x02"), "\"B\"" },
	{ ENUM("E", "\"A\",\"B\""), ENUM("E", "\"B\""), BODY("\0"),
	  "!has neither the symbol nor a default (only this value)" },
	{ "{\"type\":\"enum\",\"name\":\"E\",\"symbols\":[\"A\",\"B\"],\"default\":\"B\"}", ENUM("E", "\"B\""),
	  BODY("\0"), "!neither" },
	{ ENUM("E", "\"A\""), ENUM("E", "\"B\""), BODY("\0"),
	  "!none of the writer's symbols, and no default (always)" },
	{ REC("R", F("e", ENUM("E", "\"A\",\"B\""))), REC("R", FX("e", ENUM("E", "\"B\""), "\"default\":\"B\"")),
	  BODY("\0"), "!R.e: the reader's enum E has neither" },
	/* unions */
	{ INT, NULLABLE(INT), BODY("\x02"), "{\"int\":1}" },
	{ NULLABLE(INT), INT, BODY("\x02\x02"), "1" },
	{ NULLABLE(INT), INT, BODY("\0"), "!int: the writer's null is not the reader's int (only this value)" },
	{ NULLABLE(STRING), INT, BODY("\0"), "!int: the writer's string is not the reader's int (always)" },
	{ STRING, "[" BYTES "," STRING "]", BODY("\x02x"), "{\"string\":\"x\"}" },
	{ STRING, "[" INT "," BYTES "]", BODY("\x02x"), "{\"bytes\":\"x\"}" },
	{ INT, "[" DOUBLE "," LONG "]", BODY("\x02"), "{\"double\":1.0}" },
	{ INT, "[" STRING ",\"boolean\"]", BODY("\x02"),
	  "!union: the writer's int is no branch of the reader's union" },
	{ REC("b.R", ""), "[" REC("a.R", "") "," REC("b.R", "") "]", BODY(""), "{\"b.R\":{}}" },
	{ REC("c.R", ""), "[" REC("a.R", "") "," REC("b.R", "") "]", BODY(""), "{\"a.R\":{}}" },
	{ REC("c.R", ""),
	  "[" REC("a.R", "") ",{\"type\":\"record\",\"name\":\"b.S\",\"aliases\":[\"c.R\"],\"fields\":[]}]",
	  BODY(""), "{\"b.S\":{}}" },
	{ "[" INT "," STRING "]", "[" STRING "," LONG "]", BODY("\0\x04"), "{\"long\":2}" },
	{ "[]", "[]", BODY(""), "!(always)" },
	/* arrays, maps, decimals */
	{ ARRAY(INT), ARRAY(LONG), BODY("\x01\x04\x02\x04\x02\x06\0"), "!a block is said to have" },
	{ ARRAY(INT), ARRAY(LONG), BODY("\x03\x04\x02\x04\x02\x06\0"), "[1,2,3]" },
	{ ARRAY(INT), ARRAY(STRING), BODY("\0"),
	  "!array[]: the writer's int is not the reader's string (always)" },
	{ MAP(INT), MAP(DOUBLE), BODY("\x02\x02k\x02\0"), "{\"k\":1.0}" },
	{ NULLABLE(ARRAY(INT)), NULLABLE(ARRAY(STRING)), BODY("\x02\0"), "!union[]: the writer's int" },
	{ NULLABLE(ARRAY(INT)), NULLABLE(ARRAY(STRING)), BODY("\0"), "null" },
	{ DECIMAL(4, 2), DECIMAL(4, 2), BODY("\x02\x01"), "\"\\u0001\"" },
	{ DECIMAL(4, 2), DECIMAL(4, 1), BODY("\x02\x01"),
	  "!bytes: the decimals differ in precision or scale (always)" },
	{ DECIMAL(4, 2), BYTES, BODY("\x02\x01"), "\"\\u0001\"" },
	{ DECIMAL(2, 4), DECIMAL(4, 2), BODY("\x02\x01"), "\"\\u0001\"" }, /* the first is none */
	/* circles */
	{ REC("R", F("next", NULLABLE("\"R\"")) "," F("v", INT)),
	  REC("R", F("v", LONG) "," FX("next", NULLABLE("\"R\""), "\"default\":null") "," FX("w", INT,
	                                                                                     "\"default\":5")),
	  BODY("\x02\0\x02\x04"), "{\"v\":2,\"next\":{\"R\":{\"v\":1,\"next\":null,\"w\":5}},\"w\":5}" },
	{ REC("R", F("all", ARRAY("\"R\""))), REC("R", F("all", ARRAY("\"R\""))), BODY("\x02\0\0"),
	  "{\"all\":[{\"all\":[]}]}" },
	{ REC("R", F("next", NULLABLE("\"R\""))), REC("R", F("next", "[" STRING ",\"R\"]")), BODY("\0"),
	  "!R: no value of the writer's R that ends can be read (always)" },
	/* a type first defined in a field that the reader drops or reorders */
	{ REC("R", F("a", REC("I", F("x", INT))) "," F("b", "\"I\"")), REC("R", F("b", REC("I", F("x", LONG)))),
	  BODY("\x02\x04"), "{\"b\":{\"x\":2}}" },
	/* bytes that are wrong */
	{ INT, INT, BODY("\x02\x02"), "!int: 1 bytes are left over" },
	{ INT, INT, BODY("\x80\x80\x80\x80\x80\x01"), "!(only this value)" },
	{ "\"boolean\"", "\"boolean\"", BODY("\x02"), "!boolean: a boolean is neither 0 nor 1" },
	{ NULLABLE(INT), NULLABLE(INT), BODY("\x04"), "!union: the index of the union's branch is 2" },
	{ NULLABLE(INT), NULLABLE(INT), BODY("\x01"), "!union: the index of the union's branch is -1" },
	/* texts that are no schemas */
	{ "\"innt\"", INT, BODY(""), "!the writer's schema: schema: type innt is not defined" },
	{ INT, "{", BODY(""), "!the reader's schema: schema: not JSON" },
};

static bool check(const struct reading *reading)
{
	struct error error = { 0 };
	struct buffer out;
	buffer_init(&out, 1 << 20);
	enum fate fate = resolve_datum(resolver, view_of(reading->writer), view_of(reading->reader),
	                               reading->body, &out, &error);

	buffer_append_byte(&out, '\0');
	assert_false(buffer_failed(&out));
	const char *said = fate == FATE_OK ? (const char *)out.data : error.message;
	bool wants_error = reading->json[0] == '!';
	bool good = wants_error ? fate == FATE_REJECT && strstr(said, reading->json + 1)
	                        : fate == FATE_OK && strcmp(said, reading->json) == 0;
	if (!good)
		print_error("%s to %s\n  wanted %s\n  got    %s\n", reading->writer, reading->reader, reading->json,
		            said);
	buffer_done(&out);
	return good;
}

static void test_readings(void **state)
{
	bool good = true;

	(void)state;
	for (size_t i = 0; i < sizeof(readings) / sizeof(readings[0]); i++)
		good = check(&readings[i]) && good;
	assert_true(good);
}

static void line(const char *text, const char *wanted)
{
	struct error error = { 0 };
	struct buffer out;

	buffer_init(&out, 1 << 20);
	assert_int_equal(resolve_line(resolver, view_of(text), &out, &error), FATE_OK);
	buffer_append_byte(&out, '\0');
	assert_false(buffer_failed(&out));
	assert_non_null(strstr((const char *)out.data, wanted));
	buffer_done(&out);
}

static void test_lines(void **state)
{
	(void)state;
	line("{\"id\":1,\"writer\":\"int\",\"reader\":\"\\\"long\\\"\",\"body\":\"AQ==\"}",
	     "{\"id\":1,\"ok\":true,\"body\":\"AQ==\"}");
	line("{\"id\":\"a\",\"writer\":\"{\\\"type\\\":\\\"int\\\"}\",\"reader\":{\"type\":\"double\"},\"body\":"
	     "\"Ag\"}",
	     "{\"id\":\"a\",\"ok\":true,\"body\":\"AAAAAAAA8D8=\"}");
	line("{\"id\":[2],\"writer\":[\"null\",\"int\"],\"reader\":\"int\",\"body\":\"AA==\"}",
	     "{\"id\":[2],\"ok\":false,\"error\":\"int: the writer's null is not the reader's int (only this "
	     "value)\","
	     "\"when\":\"value\"}");
	line("{\"writer\":\"int\",\"reader\":\"string\",\"body\":\"\"}", "\"when\":\"never\"");
	line("{\"writer\":\"int\",\"reader\":\"oops\",\"body\":\"\"}", "\"when\":\"never\"");
	line("{\"writer\":\"int\",\"reader\":\"int\",\"body\":\"A\"}", "body is not base64");
	line("{\"writer\":\"int\",\"reader\":\"int\",\"body\":\"A*==\"}", "body is not base64");
	line("{\"writer\":\"int\",\"reader\":\"int\"}", "needs writer, reader and body");
	line("[]", "not a JSON object");
	line("{", "not JSON");
	line("", "not JSON");
}

/* ---- costs ---- */

static enum fate plan(struct view writer, struct view reader, struct view body, struct error *error,
                      int64_t *ret_us)
{
	struct schema *from = NULL, *to = NULL;
	struct plan *made = NULL;
	struct buffer out;
	int64_t start = clock_mono_ms();

	buffer_init(&out, (size_t)16 << 20);
	assert_int_equal(schema_parse(&from, writer, error), FATE_OK);
	assert_int_equal(schema_parse(&to, reader, error), FATE_OK);
	enum fate fate = migrate_plan_new(&made, from, to, error);
	if (fate == FATE_OK)
		fate = migrate_run(made, body, &out, error);
	migrate_plan_free(made);
	schema_free(from);
	schema_free(to);
	buffer_done(&out);
	*ret_us = clock_mono_ms() - start;
	return fate;
}

/* Under a sanitizer or valgrind everything takes longer. */
#define SLOW_MS 5000

/* 60 records, each with two defaults {} of the next: 2^60 values. */
static void test_doubling_defaults(void **state)
{
	struct buffer text;
	struct error error = { 0 };
	int64_t ms;

	(void)state;
	buffer_init(&text, SCHEMA_TEXT_MAX);
	buffer_append_text(&text, "{\"type\":\"record\",\"name\":\"R\",\"fields\":[");
	for (int i = 60; i >= 0; i--) {
		buffer_printf(
			&text,
			"{\"name\":\"f%d\",\"default\":{},\"type\":{\"type\":\"record\",\"name\":\"R%d\",\"fields\":[", i,
			i);
		if (i == 60)
			buffer_append_text(&text, "{\"name\":\"a\",\"type\":\"int\",\"default\":1}");
		else
			buffer_printf(&text,
			              "{\"name\":\"a\",\"type\":\"R%d\",\"default\":{}},{\"name\":\"b\",\"type\":\"R%d\","
			              "\"default\":{}}",
			              i + 1, i + 1);
		buffer_append_text(&text, i ? "]}}," : "]}}");
	}
	buffer_append_text(&text, "]}");
	enum fate fate = plan(VIEW_LITERAL(REC("R", "")), buffer_view(&text), VIEW_LITERAL(""), &error, &ms);
	assert_int_equal(fate, FATE_REJECT);
	assert_non_null(strstr(error.message, "its default takes more than"));
	assert_true(ms < SLOW_MS);
	buffer_done(&text);
}

#define LINKS 2400

/* Records n0.C, n1.C, ..., each of which names the one before it, as fields called prefix0, prefix1, ... */
static void chain(struct buffer *text, const char *prefix)
{
	for (int i = 0; i < LINKS; i++) {
		buffer_printf(text,
		              "{\"name\":\"%s%d\",\"default\":[],\"type\":{\"type\":\"array\",\"items\":", prefix, i);
		buffer_printf(text, "{\"type\":\"record\",\"name\":\"n%d.C\",\"fields\":[", i);
		if (i > 0)
			buffer_printf(text, "{\"name\":\"x\",\"type\":[\"null\",\"n%d.C\"]}", i - 1);
		buffer_append_text(text, "]}}},");
	}
}

/* Two chains that meet at all kinds of distances: nearly as many pairs as the product of their lengths. */
static void test_many_pairs(void **state)
{
	struct buffer writer, reader;
	struct error error = { 0 };
	int64_t ms;

	(void)state;
	buffer_init(&writer, SCHEMA_TEXT_MAX);
	buffer_init(&reader, SCHEMA_TEXT_MAX);
	buffer_append_text(&writer, "{\"type\":\"record\",\"name\":\"Top\",\"fields\":[");
	buffer_append_text(&reader, "{\"type\":\"record\",\"name\":\"Top\",\"fields\":[");
	chain(&writer, "f");
	chain(&reader, "g");
	for (int i = 0; i < LINKS; i++)
		buffer_printf(&reader, "{\"name\":\"f%d\",\"type\":{\"type\":\"array\",\"items\":\"n%d.C\"}},", i,
		              i * 1009 % LINKS);
	buffer_append_text(&writer, "{\"name\":\"z\",\"type\":\"int\"}]}");
	buffer_append_text(&reader, "{\"name\":\"z\",\"type\":\"int\"}]}");
	enum fate fate = plan(buffer_view(&writer), buffer_view(&reader), VIEW_LITERAL("\0"), &error, &ms);
	assert_int_equal(fate, FATE_REJECT);
	assert_non_null(strstr(error.message, "meet in more than"));
	assert_true(ms < SLOW_MS);
	buffer_done(&writer);
	buffer_done(&reader);
}

/* A default for each of two million items that take no bytes. */
static void test_amplified(void **state)
{
	struct error error = { 0 };
	int64_t ms;

	(void)state;
	enum fate fate = plan(
		VIEW_LITERAL(ARRAY(REC("R", ""))),
		VIEW_LITERAL(ARRAY(REC("R", FX("s", STRING, "\"default\":\"0123456789012345678901234567890\"")))),
		VIEW_LITERAL("\x80\x92\xf4\x01\0"), &error, &ms);
	assert_int_equal(fate, FATE_REJECT);
	assert_int_equal(error.code, ERR_TOO_LARGE);
	assert_true(ms < SLOW_MS);
}

/* Names as long as they may be leave room for the end of the message. */
static void test_long_names(void **state)
{
	struct error error = { 0 };
	struct buffer writer, reader;
	int64_t ms;
	char name[SCHEMA_NAME_MAX + 1];

	(void)state;
	memset(name, 'n', SCHEMA_NAME_MAX);
	name[SCHEMA_NAME_MAX] = '\0';
	buffer_init(&writer, SCHEMA_TEXT_MAX);
	buffer_init(&reader, SCHEMA_TEXT_MAX);
	for (int always = 0; always < 2; always++) {
		buffer_reset(&writer);
		buffer_reset(&reader);
		buffer_printf(&writer,
		              "{\"type\":\"record\",\"name\":\"%s\",\"fields\":[{\"name\":\"%s\",\"type\":%s}]}",
		              name, name, always ? "\"int\"" : "[\"null\",\"int\"]");
		buffer_printf(&reader,
		              "{\"type\":\"record\",\"name\":\"%s\",\"fields\":[{\"name\":\"%s\",\"type\":{\"type\":"
		              "\"map\",\"values\":"
		              "\"int\"}}]}",
		              name, name);
		if (!always) {
			buffer_reset(&reader);
			buffer_printf(
				&reader,
				"{\"type\":\"record\",\"name\":\"%s\",\"fields\":[{\"name\":\"%s\",\"type\":\"int\"}]}", name,
				name);
		}
		enum fate fate = plan(buffer_view(&writer), buffer_view(&reader), VIEW_LITERAL("\0"), &error, &ms);
		assert_int_equal(fate, FATE_REJECT);
		assert_non_null(strstr(error.message, always ? "(always)" : "(only this value)"));
	}
	buffer_done(&writer);
	buffer_done(&reader);
}

/* Records that name each other, one after the other, deeper than any stack. */
static void test_long_chain(void **state)
{
	struct buffer text;
	struct error error = { 0 };
	int64_t ms;

	(void)state;
	buffer_init(&text, SCHEMA_TEXT_MAX);
	buffer_append_text(&text, "{\"type\":\"record\",\"name\":\"Top\",\"fields\":[");
	for (int i = 0; i < 4900; i++) {
		buffer_printf(&text, "{\"name\":\"f%d\",\"type\":{\"type\":\"array\",\"items\":", i);
		buffer_printf(&text, "{\"type\":\"record\",\"name\":\"C%d\",\"fields\":[", i);
		if (i > 0)
			buffer_printf(&text, "{\"name\":\"x\",\"type\":[\"null\",\"C%d\"]}", i - 1);
		buffer_append_text(&text, i < 4899 ? "]}}}," : "]}}}");
	}
	buffer_append_text(&text, "]}");
	uint8_t body[4900] = { 0 };
	enum fate fate =
		plan(buffer_view(&text), buffer_view(&text), (struct view){ body, sizeof(body) }, &error, &ms);
	if (fate != FATE_OK)
		fail_msg("%s", error.message);
	assert_true(ms < SLOW_MS);
	buffer_done(&text);
}

/* ---- cache ---- */

struct user {
	struct migrate_cache *cache;
	bool good;
};

static void *use_cache(void *data)
{
	static const char *const texts[] = { INT, LONG, DOUBLE, STRING };
	struct user *user = data;
	struct error error;
	const struct plan *held;

	user->good = true;
	for (int i = 0; i < 400; i++) {
		int from = i % 4, to = i / 4 % 4;
		bool possible = from == to || (from < to && to < 3);
		enum fate fate =
			migrate_cache_hold(user->cache, view_of(texts[from]), view_of(texts[to]), &held, &error);
		if (fate != (possible ? FATE_OK : FATE_REJECT) || (!possible && !strstr(error.message, "(always)")))
			user->good = false;
		if (fate == FATE_OK)
			migrate_cache_release(user->cache, held);
	}
	return NULL;
}

static void test_cache(void **state)
{
	struct error error;
	struct user users[4];
	pthread_t threads[4];
	struct migrate_cache *cache;
	const struct plan *one, *two;

	(void)state;
	assert_int_equal(migrate_cache_new(&cache, 3, &error), FATE_OK);
	assert_int_equal(migrate_cache_hold(cache, view_of(INT), view_of(LONG), &one, &error), FATE_OK);
	assert_int_equal(migrate_cache_hold(cache, view_of(INT), view_of(LONG), &two, &error), FATE_OK);
	assert_ptr_equal(one, two);
	migrate_cache_release(cache, two);
	for (int i = 0; i < 4; i++) {
		users[i] = (struct user){ cache, false };
		assert_int_equal(pthread_create(&threads[i], NULL, use_cache, &users[i]), 0);
	}
	for (int i = 0; i < 4; i++) {
		pthread_join(threads[i], NULL);
		assert_true(users[i].good);
	}
	migrate_cache_release(cache, one);
	migrate_cache_free(cache);
}

static int start(void **state)
{
	struct error error;

	(void)state;
	return resolver_new(&resolver, &error) == FATE_OK ? 0 : -1;
}

static int stop(void **state)
{
	(void)state;
	resolver_free(resolver);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_readings),
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_doubling_defaults),
		cmocka_unit_test(test_many_pairs),
		cmocka_unit_test(test_amplified),
		cmocka_unit_test(test_long_chain),
		cmocka_unit_test(test_cache),
		cmocka_unit_test(test_long_names),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
