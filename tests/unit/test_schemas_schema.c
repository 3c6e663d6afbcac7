// links: schemas core
/* Schema text: what is a schema, what is not and why, canonical forms and fingerprints, and what hostile
 * texts cost. */
#include "core/clock.h"
#include "schemas/fingerprint.h"
#include "schemas/schema.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define REC(fields) "{\"type\":\"record\",\"name\":\"R\",\"fields\":[" fields "]}"

static enum fate parse(const char *text, struct error *error)
{
	struct schema *schema = NULL;
	enum fate fate = schema_parse(&schema, view_of(text), error);

	schema_free(schema);
	return fate;
}

static void test_good(void **state)
{
	static const char *const texts[] = {
		"\"null\"",
		"  \"string\"\n",
		"{\"type\":\"int\"}",
		"{\"type\":{\"type\":\"int\"}}",
		"[\"null\",\"string\"]",
		"[]",
		"[\"int\",{\"type\":\"array\",\"items\":\"int\"},{\"type\":\"map\",\"values\":\"int\"}]",
		"{\"type\":\"fixed\",\"name\":\"F\",\"size\":0}",
		"{\"type\":\"enum\",\"name\":\"E\",\"symbols\":[]}",
		"{\"type\":\"enum\",\"name\":\"E\",\"symbols\":[\"A\",\"B\"],\"default\":\"B\"}",
		REC(""),
		REC("{\"name\":\"next\",\"type\":[\"null\",\"R\"],\"default\":null}"),
		REC("{\"name\":\"all\",\"type\":{\"type\":\"array\",\"items\":\"R\"},\"default\":[]}"),
		REC("{\"name\":\"all\",\"type\":{\"type\":\"map\",\"values\":\"R\"}}"),
		REC("{\"name\":\"a\",\"type\":\"int\",\"order\":\"ignore\",\"aliases\":[\"b\",\"c\"]}"),
		REC("{\"name\":\"a\",\"type\":\"long\",\"default\":9007199254740993}"),
		REC("{\"name\":\"a\",\"type\":\"double\",\"default\":1}"),
		REC("{\"name\":\"a\",\"type\":\"bytes\",\"default\":\"\\u0000\\u00ff\"}"),
		REC("{\"name\":\"a\",\"type\":[\"null\",\"int\"],\"default\":1}"),
		REC("{\"name\":\"a\",\"type\":{\"type\":\"fixed\",\"name\":\"F\",\"size\":2},\"default\":"
		    "\"\\u00ffx\"}"),
		REC("{\"name\":\"a\",\"type\":{\"type\":\"record\",\"name\":\"I\",\"fields\":[{\"name\":\"x\","
		    "\"type\":\"int\","
		    "\"default\":1},{\"name\":\"y\",\"type\":\"int\"}]},\"default\":{\"y\":2}}"),
		/* names: a full name, an inherited namespace, none */
		("{\"type\":\"record\",\"name\":\"a.b.C\",\"fields\":[{\"name\":\"x\",\"type\":{\"type\":\"fixed\","
		 "\"name\":\"F\","
		 "\"size\":1}},{\"name\":\"y\",\"type\":\"F\"},{\"name\":\"z\",\"type\":\"a.b.F\"}]}"),
		"{\"type\":\"record\",\"name\":\"C\",\"namespace\":\"\",\"fields\":[{\"name\":\"x\",\"type\":["
		"\"null\",\"C\"]}]}",
		/* a record whose field has its own name as an alias of a type */
		"{\"type\":\"record\",\"name\":\"R\",\"aliases\":[\"old.R\",\"Q\"],\"fields\":[]}",
		"{\"type\":\"string\",\"logicalType\":\"uuid\",\"anything\":{\"goes\":[1,2]}}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct error error;
		if (parse(texts[i], &error) != FATE_OK)
			fail_msg("%s: %s", texts[i], error.message);
	}
}

static const struct {
	const char *text, *why;
} bads[] = {
	{ "", "empty" },
	{ "{", "not JSON at line 1" },
	{ "3", "a type must be" },
	{ "\"strin\"", "strin is not defined" },
	{ "\"a..b\"", "the name of a type must be" },
	{ "{\"type\":\"record\"}", "needs a name" },
	{ "{\"name\":\"R\"}", "needs \"type\"" },
	{ "{\"type\":\"record\",\"name\":\"R\"}", "needs fields" },
	{ "{\"type\":\"record\",\"type\":\"record\",\"name\":\"R\",\"fields\":[]}", "twice" },
	{ "{\"type\":\"record\",\"name\":\"1R\",\"fields\":[]}", "the name of a type must be" },
	{ "{\"type\":\"record\",\"name\":\"R\",\"namespace\":\"a.\",\"fields\":[]}", "namespace" },
	{ "{\"type\":\"record\",\"name\":\"R\",\"namespace\":3,\"fields\":[]}", "namespace" },
	{ "{\"type\":\"record\",\"name\":\"string\",\"fields\":[]}", "primitive" },
	{ "{\"type\":\"record\",\"name\":\"a.int\",\"fields\":[]}", "primitive" },
	{ "{\"type\":\"record\",\"name\":\"R\",\"aliases\":\"Q\",\"fields\":[]}", "aliases" },
	{ "{\"type\":\"record\",\"name\":\"R\",\"aliases\":[\"Q\",\"-\"],\"fields\":[]}", "aliases[1]" },
	{ REC("3"), "fields[0]" },
	{ REC("{\"name\":\"a\"}"), "R.a: a field needs a type" },
	{ REC("{\"name\":\"a b\",\"type\":\"int\"}"), "the name of a field" },
	{ REC("{\"name\":\"a\\u0000\",\"type\":\"int\"}"), "the name of a field" },
	{ REC("{\"name\":\"a\",\"type\":\"int\"},{\"name\":\"a\",\"type\":\"int\"}"), "a stands there twice" },
	{ REC("{\"name\":\"a\",\"type\":\"int\",\"order\":\"up\"}"), "order" },
	{ REC("{\"name\":\"a\",\"type\":\"int\",\"aliases\":[\"x.y\"]}"), "aliases[0]" },
	{ REC("{\"name\":\"a\",\"type\":\"R\"}"), "R holds itself" },
	{ REC("{\"name\":\"a\",\"type\":[\"R\"]}"), "R holds itself" },
	{ REC("{\"name\":\"a\",\"type\":{\"type\":\"record\",\"name\":\"S\",\"fields\":[{\"name\":\"b\","
	      "\"type\":\"R\"}]}}"),
	  "holds itself" },
	{ REC("{\"name\":\"a\",\"type\":{\"type\":\"record\",\"name\":\"R\",\"fields\":[]}}"),
	  "R is defined twice" },
	{ "{\"type\":\"fixed\",\"name\":\"F\",\"size\":-2}", "size" },
	{ "{\"type\":\"fixed\",\"name\":\"F\",\"size\":1.5}", "size" },
	{ "{\"type\":\"fixed\",\"name\":\"F\",\"size\":4294967296}", "size" },
	{ "{\"type\":\"fixed\",\"name\":\"F\"}", "size" },
	{ "{\"type\":\"enum\",\"name\":\"E\"}", "symbols" },
	{ "{\"type\":\"enum\",\"name\":\"E\",\"symbols\":[\"A\",\"A\"]}", "A stands there twice" },
	{ "{\"type\":\"enum\",\"name\":\"E\",\"symbols\":[\"A-B\"]}", "a symbol" },
	{ "{\"type\":\"enum\",\"name\":\"E\",\"symbols\":[\"A\"],\"default\":\"B\"}", "default of an enum" },
	{ "{\"type\":\"array\"}", "needs items" },
	{ "{\"type\":\"map\"}", "needs values" },
	{ "[\"int\",\"int\"]", "int only once" },
	{ "[\"int\",[\"null\"]]", "a union directly" },
	{ "[{\"type\":\"array\",\"items\":\"int\"},{\"type\":\"array\",\"items\":\"long\"}]", "array only once" },
	{ "[{\"type\":\"fixed\",\"name\":\"F\",\"size\":1},\"F\"]", "F only once" },
	{ REC("{\"name\":\"a\",\"type\":\"int\",\"default\":\"1\"}"), "R.a: the default" },
	{ REC("{\"name\":\"a\",\"type\":\"int\",\"default\":2147483648}"), "the default" },
	{ REC("{\"name\":\"a\",\"type\":\"long\",\"default\":1.5}"), "the default" },
	{ REC("{\"name\":\"a\",\"type\":\"string\",\"default\":null}"), "the default" },
	{ REC("{\"name\":\"a\",\"type\":\"bytes\",\"default\":\"\\u0100\"}"), "the default" },
	{ REC("{\"name\":\"a\",\"type\":[\"null\",\"int\"],\"default\":\"x\"}"), "the default" },
	{ REC("{\"name\":\"a\",\"type\":{\"type\":\"array\",\"items\":\"int\"},\"default\":[1,null]}"),
	  "the default" },
	{ REC("{\"name\":\"a\",\"type\":{\"type\":\"map\",\"values\":\"int\"},\"default\":{\"k\":\"\"}}"),
	  "the default" },
	{ REC("{\"name\":\"a\",\"type\":{\"type\":\"fixed\",\"name\":\"F\",\"size\":2},\"default\":\"x\"}"),
	  "the default" },
	{ REC("{\"name\":\"a\",\"type\":{\"type\":\"enum\",\"name\":\"E\",\"symbols\":[\"A\"]},\"default\":"
	      "\"B\"}"),
	  "the default" },
	{ REC("{\"name\":\"a\",\"type\":{\"type\":\"record\",\"name\":\"I\",\"fields\":[{\"name\":\"x\","
	      "\"type\":\"int\"}]},"
	      "\"default\":{}}"),
	  "the default" },
	{ REC("{\"name\":\"a\",\"type\":[\"R\",\"null\"],\"default\":{}}"), "R.a: the default holds itself" },
	/* a type without namespace is not seen from inside of one */
	{ "[{\"type\":\"fixed\",\"name\":\"F\",\"size\":1},{\"type\":\"record\",\"name\":\"a.R\",\"fields\":["
	  "{\"name\":\"x\","
	  "\"type\":\"F\"}]}]",
	  "a.F is not defined" },
};

static void test_bad(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(bads) / sizeof(bads[0]); i++) {
		struct error error;
		if (parse(bads[i].text, &error) != FATE_REJECT || error.code != ERR_INVALID)
			fail_msg("%s: taken", bads[i].text);
		if (!strstr(error.message, bads[i].why))
			fail_msg("%s: %s", bads[i].text, error.message);
	}
}

/* Every beginning of a schema is none, and none of them crashes. */
static void test_cut(void **state)
{
	static const char text[] = REC("{\"name\":\"a\",\"type\":[\"null\",{\"type\":\"map\",\"values\":\"R\"}],"
	                               "\"default\":null,\"doc\":\"\\u00fc\"}");

	(void)state;
	for (size_t len = 0; len < sizeof(text) - 1; len++) {
		struct schema *schema;
		char *cut = malloc(len + (len == 0));
		assert_non_null(cut);
		memcpy(cut, text, len);
		assert_int_equal(schema_parse(&schema, (struct view){ (uint8_t *)cut, len }, NULL), FATE_REJECT);
		free(cut);
	}
}

static void test_canonical(void **state)
{
	static const struct {
		const char *text, *canonical, *crc64, *md5;
	} cases[] = {
		{ " {\"type\" : \"null\"} ", "\"null\"", "8a8f25cce724dd63", "9b41ef67651c18488a8b08bb67c75699" },
		{ "{\"type\":{\"type\":\"string\",\"logicalType\":\"uuid\"}}", "\"string\"", "c70345637248018f",
		  "095d71cf12556b9d5e330ad575b3df5d" },
		{ "{\"size\":3,\"doc\":\"x\",\"name\":\"F\",\"namespace\":\"a\",\"aliases\":[\"b\"],\"type\":"
		  "\"fixed\"}",
		  "{\"name\":\"a.F\",\"type\":\"fixed\",\"size\":3}", "812a3e5aa5f542f3",
		  "56772cf109d7b3dbb5770cd86c2b7291" },
		{ "{\"type\":\"record\",\"name\":\"n\",\"fields\":[{\"default\":null,\"type\":[\"null\",\"n\"],"
		  "\"name\":\"\\u0078\"}]}",
		  "{\"name\":\"n\",\"type\":\"record\",\"fields\":[{\"name\":\"x\",\"type\":[\"null\",\"n\"]}]}",
		  "3cb974297bb99ccb", "e4367d65358e1cb00e0aae1c1e944787" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct error error;
		struct schema *schema;
		struct buffer out;
		uint8_t md5[16];
		char hex[33];

		assert_int_equal(schema_parse(&schema, view_of(cases[i].text), &error), FATE_OK);
		buffer_init(&out, SCHEMA_CANONICAL_MAX);
		assert_int_equal(schema_canonical(schema, &out, &error), FATE_OK);
		assert_true(view_equal_text(buffer_view(&out), cases[i].canonical));
		fingerprint_hex(fingerprint_crc64(buffer_view(&out)), hex);
		assert_string_equal(hex, cases[i].crc64);
		fingerprint_md5(buffer_view(&out), md5);
		for (size_t k = 0; k < 16; k++)
			snprintf(hex + 2 * k, 3, "%02x", md5[k]);
		assert_string_equal(hex, cases[i].md5);
		buffer_done(&out);
		schema_free(schema);
	}
}

static void test_fingerprint_bytes(void **state)
{
	uint8_t bytes[8];
	char hex[FINGERPRINT_HEX_LEN + 1];

	(void)state;
	fingerprint_bytes(UINT64_C(0x0123456789abcdef), bytes);
	assert_int_equal(bytes[0], 0xef);
	assert_true(fingerprint_of_bytes(bytes) == UINT64_C(0x0123456789abcdef));
	fingerprint_hex(UINT64_C(0x0123456789abcdef), hex);
	assert_string_equal(hex, "efcdab8967452301");
}

static void test_canonical_is_bounded(void **state)
{
	struct error error;
	struct schema *schema;
	struct buffer text, out;

	(void)state;
	/* 1,000 bytes of name for every 3 bytes of text */
	buffer_init(&text, SCHEMA_TEXT_MAX);
	buffer_append_text(&text, "{\"type\":\"record\",\"name\":\"R\",\"namespace\":\"");
	for (int i = 0; i < 1000; i++)
		buffer_append_byte(&text, 'a');
	buffer_append_text(&text, "\",\"fields\":[");
	for (int i = 0; i < 9000; i++)
		buffer_printf(&text,
		              "%s{\"name\":\"f%d\",\"type\":[\"null\",\"R\",{\"type\":\"array\",\"items\":\"R\"}]}",
		              i ? "," : "", i);
	buffer_append_text(&text, "]}");
	assert_false(buffer_failed(&text));
	assert_int_equal(schema_parse(&schema, buffer_view(&text), &error), FATE_OK);
	buffer_init(&out, SCHEMA_CANONICAL_MAX);
	assert_int_equal(schema_canonical(schema, &out, &error), FATE_REJECT);
	buffer_done(&out);
	buffer_done(&text);
	schema_free(schema);
}

static void test_wire_text(void **state)
{
	struct error error;
	struct schema *schema;
	struct buffer out;

	(void)state;
	assert_int_equal(
		schema_parse(
			&schema,
			view_of("{\"type\":\"map\",\"values\":[\"null\",{\"type\":\"map\",\"values\":\"int\"}]}"),
			&error),
		FATE_OK);
	buffer_init(&out, 4096);
	assert_int_equal(schema_wire_text(schema, schema->root, &out, &error), FATE_OK);
	assert_true(view_equal_text(
		buffer_view(&out),
		"{\"type\":\"array\",\"items\":{\"name\":\"fermata.wire.Pair0\",\"type\":\"record\",\"fields\":[{"
		"\"name\":\"key\","
		"\"type\":\"string\"},{\"name\":\"value\",\"type\":[\"null\",{\"type\":\"array\",\"items\":{\"name\":"
		"\"fermata.wire.Pair1\",\"type\":\"record\",\"fields\":[{\"name\":\"key\",\"type\":\"string\"},{"
		"\"name\":\"value\","
		"\"type\":\"int\"}]}}]}]}}"));
	buffer_done(&out);
	schema_free(schema);
}

/* -- what hostile texts cost -- */

typedef void writer(struct buffer *text, int count);

static void many_fields(struct buffer *text, int count)
{
	buffer_append_text(text, "{\"type\":\"record\",\"name\":\"R\",\"fields\":[");
	for (int i = 0; i < count; i++)
		buffer_printf(text, "%s{\"name\":\"f%d\",\"type\":\"int\"}", i ? "," : "", i);
	buffer_append_text(text, "]}");
}

static void many_symbols(struct buffer *text, int count)
{
	buffer_append_text(text, "{\"type\":\"enum\",\"name\":\"E\",\"symbols\":[");
	for (int i = 0; i < count; i++)
		buffer_printf(text, "%s\"s%d\"", i ? "," : "", i);
	buffer_append_text(text, "]}");
}

static void deep_arrays(struct buffer *text, int count)
{
	for (int i = 0; i < count; i++)
		buffer_append_text(text, "{\"type\":\"array\",\"items\":");
	buffer_append_text(text, "\"int\"");
	for (int i = 0; i < count; i++)
		buffer_append_byte(text, '}');
}

/* R0 {a: R1 = {}, b: R1 = {}}, R1 {a: R2 = {} ...: twice as much at every level when checked naively. */
static void nested_defaults(struct buffer *text, int count)
{
	buffer_append_byte(text, '[');
	for (int i = count - 1; i >= 0; i--) {
		if (i == count - 1)
			buffer_printf(text, "{\"type\":\"record\",\"name\":\"R%d\",\"fields\":[]}", i);
		else
			buffer_printf(text,
			              ",{\"type\":\"record\",\"name\":\"R%d\",\"fields\":[{\"name\":\"a\",\"type\":\"R%"
			              "d\",\"default\":{}},"
			              "{\"name\":\"b\",\"type\":\"R%d\",\"default\":{}}]}",
			              i, i + 1, i + 1);
	}
	buffer_append_byte(text, ']');
}

/* A default under a union of two records, at every level: 2^depth tries when nothing counts them. */
static void union_defaults(struct buffer *text, int count)
{
	buffer_append_text(
		text, "[{\"type\":\"record\",\"name\":\"A\",\"fields\":[{\"name\":\"x\",\"type\":[\"null\",\"A\","
			  "{\"type\":\"record\",\"name\":\"B\",\"fields\":[{\"name\":\"x\",\"type\":[\"null\",\"A\","
			  "\"B\"]}]}]}]},"
			  "{\"type\":\"record\",\"name\":\"R\",\"fields\":[{\"name\":\"f\",\"type\":\"A\",\"default\":");
	for (int i = 0; i < count; i++)
		buffer_append_text(text, "{\"x\":");
	buffer_append_text(text, "3");
	for (int i = 0; i < count; i++)
		buffer_append_byte(text, '}');
	buffer_append_text(text, "}]}]");
}

static void long_chain(struct buffer *text, int count)
{
	buffer_append_text(text, "[{\"type\":\"record\",\"name\":\"R0\",\"fields\":[]}");
	for (int i = 1; i < count; i++)
		buffer_printf(text,
		              ",{\"type\":\"record\",\"name\":\"R%d\",\"fields\":[{\"name\":\"a\",\"type\":\"R%d\","
		              "\"default\":{}}]}",
		              i, i - 1);
	buffer_append_byte(text, ']');
}

static void long_namespace(struct buffer *text, int count)
{
	buffer_append_text(text, "{\"type\":\"record\",\"name\":\"R\",\"namespace\":\"");
	for (int i = 0; i < count; i++)
		buffer_append_byte(text, 'n');
	buffer_append_text(text, "\",\"fields\":[]}");
}

static void open_brackets(struct buffer *text, int count)
{
	for (int i = 0; i < count; i++)
		buffer_append_byte(text, '[');
}

static void test_costs(void **state)
{
	static const struct {
		writer *write;
		int count;
		enum fate fate;
		const char *why;
	} cases[] = {
		{ many_fields, 10000, FATE_OK, "" },
		{ many_fields, 10001, FATE_REJECT, "more than 10000 fields" },
		{ many_fields, 30000, FATE_REJECT, "more than 10000 fields" },
		{ many_fields, 100000, FATE_REJECT, "bytes of text" },
		{ many_symbols, 80000, FATE_OK, "" },
		{ deep_arrays, 63, FATE_OK, "" },
		{ deep_arrays, 65, FATE_REJECT, "nested more than 64" },
		{ deep_arrays, 10000, FATE_REJECT, "" },
		{ nested_defaults, 60, FATE_OK, "" },
		{ nested_defaults, 4000, FATE_OK, "" },
		{ union_defaults, 3, FATE_REJECT, "the default" },
		{ union_defaults, 30, FATE_REJECT, "default" },
		{ long_chain, 9000, FATE_OK, "" },
		{ long_namespace, 1022, FATE_OK, "" },
		{ long_namespace, 1023, FATE_REJECT, "full name" },
		{ long_namespace, 500000, FATE_REJECT, "namespace" },
		{ open_brackets, 100000, FATE_REJECT, "nested too deep" },
		{ open_brackets, 1000000, FATE_REJECT, "too many objects" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct error error;
		struct buffer text;
		struct schema *schema = NULL;
		buffer_init(&text, (size_t)16 << 20);
		cases[i].write(&text, cases[i].count);
		int64_t start = clock_mono_ms();
		enum fate fate = schema_parse(&schema, buffer_view(&text), &error);
		int64_t took = clock_mono_ms() - start;
		if (fate != cases[i].fate)
			fail_msg("case %zu: %s", i, fate ? error.message : "taken");
		if (fate != FATE_OK && !strstr(error.message, cases[i].why))
			fail_msg("case %zu: %s", i, error.message);
		if (took > 3000)
			fail_msg("case %zu: took %lld ms", i, (long long)took);
		schema_free(schema);
		buffer_done(&text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_bad),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_canonical),
		cmocka_unit_test(test_fingerprint_bytes),
		cmocka_unit_test(test_canonical_is_bounded),
		cmocka_unit_test(test_wire_text),
		cmocka_unit_test(test_costs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
