// links: schemas core
/* The guard on bytes that are wrong in one way each, and the framing in front of it. */
#include "schemas/framing.h"
#include "schemas/guard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define BYTES(...)                                                                                           \
	{                                                                                                        \
		(const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ })                           \
	}

static struct schema *schema_of(const char *text)
{
	struct error error;
	struct schema *schema;

	if (schema_parse(&schema, view_of(text), &error) != FATE_OK)
		fail_msg("%s: %s", text, error.message);
	return schema;
}

/* With the places of its fields a record passes where it passes without, for the same reason; and the fields are all of it. */
static void same_by_fields(const struct schema_type *record, struct view body, size_t values_max,
                           enum fate fate, const struct error *error)
{
	struct view fields[8];
	struct error other = { 0 };
	const uint8_t *at = body.data;

	assert_true(record->len <= sizeof(fields) / sizeof(fields[0]));
	assert_int_equal(guard_fields(record, "X", body, values_max, fields, &other), fate);
	if (fate != FATE_OK) {
		assert_int_equal(other.code, error->code);
		assert_string_equal(other.message, error->message);
		return;
	}
	for (size_t i = 0; i < record->len; at += fields[i++].len)
		assert_ptr_equal(fields[i].data, at);
	assert_ptr_equal(at, body.data + body.len);
}

/* On a copy of exact size, so that a sanitizer sees a byte too far. */
static enum fate check(const struct schema *schema, struct view body, size_t values_max, struct error *error)
{
	uint8_t *data = malloc(body.len + (body.len == 0));

	assert_non_null(data);
	if (body.len > 0)
		memcpy(data, body.data, body.len);
	enum fate fate = guard_check(schema->root, "X", (struct view){ data, body.len }, values_max, error);
	if (schema->root->kind == SCHEMA_RECORD)
		same_by_fields(schema->root, (struct view){ data, body.len }, values_max, fate, error);
	free(data);
	return fate;
}

#define ARRAY_OF(type)  "{\"type\":\"array\",\"items\":" type "}"
#define MAP_OF(type)    "{\"type\":\"map\",\"values\":" type "}"
#define RECORD_OF(type) "{\"type\":\"record\",\"name\":\"R\",\"fields\":[{\"name\":\"f\",\"type\":" type "}]}"

struct good {
	const char *schema;
	struct view body;
};

static void test_good(void **state)
{
	const struct good cases[] = {
		{ "\"null\"", { (const uint8_t *)"", 0 } },
		{ "\"boolean\"", BYTES(0) },
		{ "\"boolean\"", BYTES(1) },
		{ "\"int\"", BYTES(0xff, 0xff, 0xff, 0xff, 0x0f) },
		{ "\"int\"", BYTES(0x80, 0x00) }, /* longer than it needs to be */
		{ "\"long\"", BYTES(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01) },
		{ "\"long\"", BYTES(0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00) },
		{ "\"float\"", BYTES(0, 0, 0xc0, 0x7f) },
		{ "\"double\"", BYTES(0, 0, 0, 0, 0, 0, 0xf8, 0x7f) },
		{ "\"bytes\"", BYTES(4, 0xff, 0x00) },
		{ "\"string\"", BYTES(6, 0xe4, 0xb8, 0x96) },
		{ "\"string\"", BYTES(2, 0) },
		{ "{\"type\":\"fixed\",\"name\":\"F\",\"size\":0}", { (const uint8_t *)"", 0 } },
		{ "{\"type\":\"enum\",\"name\":\"E\",\"symbols\":[\"A\",\"B\"]}", BYTES(2) },
		{ "[\"null\",\"int\"]", BYTES(0) },
		{ "[\"null\",\"int\"]", BYTES(2, 1) },
		{ ARRAY_OF("\"int\""), BYTES(0) },
		{ ARRAY_OF("\"int\""), BYTES(4, 0, 0, 2, 0, 0) },
		{ ARRAY_OF("\"int\""), BYTES(3, 4, 0, 0, 0) },
		{ ARRAY_OF("\"null\""), BYTES(6, 0) },
		{ ARRAY_OF("\"null\""), BYTES(5, 0, 0) },
		{ MAP_OF("\"int\""), BYTES(2, 2, 'k', 0, 0) },
		{ MAP_OF("\"null\""), BYTES(4, 2, 'k', 2, 'k', 0) },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct error error;
		struct schema *schema = schema_of(cases[i].schema);
		if (check(schema, cases[i].body, 100, &error) != FATE_OK)
			fail_msg("case %zu, %s: %s", i, cases[i].schema, error.message);
		schema_free(schema);
	}
}

struct bad {
	const char *schema;
	struct view body;
	const char *why;
};

static void test_bad(void **state)
{
	const struct bad cases[] = {
		{ "\"null\"", BYTES(0), "1 bytes are left over" },
		{ "\"boolean\"", { (const uint8_t *)"", 0 }, "end before" },
		{ "\"boolean\"", BYTES(2), "neither 0 nor 1" },
		{ "\"boolean\"", BYTES(7), "neither 0 nor 1" },
		{ "\"int\"", BYTES(0x80), "end inside" },
		{ "\"int\"", BYTES(0x80, 0x80, 0x80, 0x80, 0x80, 0x00), "more than 5 bytes" },
		{ "\"int\"", BYTES(0x80, 0x80, 0x80, 0x80, 0x10), "more than 32 bits" },
		{ "\"int\"", BYTES(0x81, 0x80, 0x80, 0x80, 0x10), "more than 32 bits" },
		{ "\"long\"", BYTES(0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00), "64 bits" },
		{ "\"long\"", BYTES(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02), "64 bits" },
		{ "\"float\"", BYTES(0, 0, 0), "takes 4 bytes, and 3 are left" },
		{ "\"double\"", BYTES(0, 0, 0, 0, 0, 0, 0), "takes 8 bytes" },
		{ "\"bytes\"", BYTES(1), "its length is negative" },
		{ "\"bytes\"", BYTES(4, 0), "its length is said to be 2, and 1 bytes are left" },
		{ "\"bytes\"", BYTES(0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01), "is said to be" },
		{ "\"string\"", BYTES(2, 0xff), "not UTF-8" },
		{ "\"string\"", BYTES(4, 0xc0, 0x80), "not UTF-8" },
		{ "\"string\"", BYTES(6, 0xed, 0xa0, 0x80), "not UTF-8" },
		{ "{\"type\":\"fixed\",\"name\":\"F\",\"size\":4}", BYTES(1, 2, 3), "takes 4 bytes" },
		{ "{\"type\":\"enum\",\"name\":\"E\",\"symbols\":[\"A\"]}", BYTES(2),
		  "the index of the symbol is 1" },
		{ "{\"type\":\"enum\",\"name\":\"E\",\"symbols\":[\"A\"]}", BYTES(1), "is -1" },
		{ "{\"type\":\"enum\",\"name\":\"E\",\"symbols\":[\"A\"]}", BYTES(0x80, 0x89, 0x7a), "is 1000000" },
		{ "[\"null\",\"int\"]", BYTES(4), "branch is 2" },
		{ "[\"null\",\"int\"]", BYTES(1), "branch is -1" },
		{ ARRAY_OF("\"int\""), BYTES(2, 0), "end inside of a number" },
		{ ARRAY_OF("\"int\""), BYTES(10, 0, 0), "said to have 5 items, and 2 bytes" },
		{ ARRAY_OF("\"int\""), BYTES(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01),
		  "count of a block is out of range" },
		{ ARRAY_OF("\"int\""), BYTES(3, 2, 0, 0, 0), "said to have 1 bytes, and has 2" },
		{ ARRAY_OF("\"int\""), BYTES(1, 4, 0, 0), "said to have 2 bytes, and has 1" },
		{ ARRAY_OF("\"int\""), BYTES(1, 1, 0, 0), "said to have -1 bytes" },
		{ ARRAY_OF("\"int\""), BYTES(1, 40, 0, 0), "said to have 20 bytes, and 2 are left" },
		{ MAP_OF("\"int\""), BYTES(2, 2, 0xff, 0, 0), "X.[0].key: the string is not UTF-8" },
		{ MAP_OF("\"boolean\""), BYTES(2, 0, 2, 0), "X.[0]: a boolean" },
		{ RECORD_OF(ARRAY_OF("\"boolean\"")), BYTES(4, 0, 3, 0),
		  "X.f[1]: a boolean is neither 0 nor 1 (at byte 2" },
		{ RECORD_OF("\"int\""), BYTES(0, 0, 0), "2 bytes are left over after its last field, f" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct error error;
		struct schema *schema = schema_of(cases[i].schema);
		if (check(schema, cases[i].body, 100, &error) != FATE_REJECT || error.code != ERR_MALFORMED)
			fail_msg("case %zu, %s: taken", i, cases[i].schema);
		if (!strstr(error.message, cases[i].why))
			fail_msg("case %zu, %s: %s", i, cases[i].schema, error.message);
		schema_free(schema);
	}
}

/* Items that take no bytes are counted all the same: 2^40 of them, 2^62 of them. */
static void test_items_without_bytes(void **state)
{
	const struct view bodies[] = {
		BYTES(0x80, 0x80, 0x80, 0x80, 0x80, 0x40, 0),
		BYTES(0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01, 0),
	};
	struct schema *schema = schema_of(ARRAY_OF("\"null\""));

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct error error;
		assert_int_equal(check(schema, bodies[i], 1000000, &error), FATE_REJECT);
		assert_int_equal(error.code, ERR_TOO_LARGE);
	}
	schema_free(schema);
}

static void test_depth(void **state)
{
	struct error error;
	struct schema *schema = schema_of(
		"{\"type\":\"record\",\"name\":\"R\",\"fields\":[{\"name\":\"r\",\"type\":[\"null\",\"R\"]}]}");
	uint8_t body[100000];

	(void)state;
	memset(body, 2, sizeof(body)); /* the branch R, for ever */
	assert_int_equal(check(schema, (struct view){ body, sizeof(body) }, SIZE_MAX, &error), FATE_REJECT);
	assert_int_equal(error.code, ERR_MALFORMED);
	assert_non_null(strstr(error.message, "nested more than 64 deep"));
	body[10] = 0;
	assert_int_equal(check(schema, (struct view){ body, 11 }, SIZE_MAX, &error), FATE_OK);
	schema_free(schema);
}

static void test_prefix(void **state)
{
	struct error error;
	size_t len = 99;
	struct schema *schema = schema_of("\"string\"");
	static const uint8_t body[] = { 4, 'a', 'b', 'c' };

	(void)state;
	assert_int_equal(guard_prefix(schema->root, "X", (struct view){ body, 4 }, 10, &len, &error), FATE_OK);
	assert_int_equal(len, 3);
	assert_int_equal(guard_prefix(schema->root, "X", VIEW_NULL, 10, &len, &error), FATE_REJECT);
	schema_free(schema);
}

/* -- framing -- */

static void test_frame(void **state)
{
	static const uint8_t value[] = { 0xc3, 1, 0xef, 0xcd, 0xab, 0x89, 0x67, 0x45, 0x23, 0x01, 'b', 'o' };
	struct error error;
	struct frame frame;
	struct buffer out;

	(void)state;
	assert_int_equal(framing_take((struct view){ value, sizeof(value) }, &frame, &error), FATE_OK);
	assert_true(frame.fingerprint == UINT64_C(0x0123456789abcdef));
	assert_ptr_equal(frame.body.data, value + 10);
	assert_int_equal(frame.body.len, 2);
	assert_int_equal(framing_take((struct view){ value, 10 }, &frame, &error), FATE_OK);
	assert_int_equal(frame.body.len, 0);
	buffer_init(&out, 100);
	framing_put(&out, UINT64_C(0x0123456789abcdef));
	assert_true(view_equal(buffer_view(&out), (struct view){ value, 10 }));
	buffer_done(&out);
}

static void test_bad_frames(void **state)
{
	const struct {
		struct view value;
		const char *why;
	} cases[] = {
		{ { NULL, 0 }, "is null" },
		{ { (const uint8_t *)"", 0 }, "is empty" },
		{ BYTES(0, 0, 0, 1, 2, 9), "Confluent's framing (00, schema id 258), which needs registry.url" },
		{ BYTES(0, 0, 0), "needs registry.url" },
		{ BYTES(0xc3), "cut off" },
		{ BYTES(0xc3, 1, 0, 0, 0, 0, 0, 0, 0), "cut off: single-object encoding has 10 bytes" },
		{ BYTES(0xc3, 2, 0, 0, 0, 0, 0, 0, 0, 0), "no framing" },
		{ BYTES('{', '}'), "no framing" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct error error;
		struct frame frame;
		assert_int_equal(framing_take(cases[i].value, &frame, &error), FATE_REJECT);
		assert_int_equal(error.code, ERR_FRAMING);
		if (!strstr(error.message, cases[i].why))
			fail_msg("case %zu: %s", i, error.message);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_bad),
		cmocka_unit_test(test_items_without_bytes),
		cmocka_unit_test(test_depth),
		cmocka_unit_test(test_prefix),
		cmocka_unit_test(test_frame),
		cmocka_unit_test(test_bad_frames),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
