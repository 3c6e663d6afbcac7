/* Guarded bytes as Avro's JSON encoding (Avro specification, "JSON Encoding"). */
#include "schemas/json_write.h"
#include "schemas/resolve.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct reader {
	const uint8_t *at;
	struct json_writer json;
};

static void write_value(struct reader *r, const struct schema_type *type);

static int64_t take_long(struct reader *r)
{
	uint64_t value = 0;
	unsigned shift = 0;

	for (; *r->at & 0x80; shift += 7)
		value |= (uint64_t)(*r->at++ & 0x7f) << shift;
	value |= (uint64_t)*r->at++ << shift;
	return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}

static struct view take(struct reader *r, size_t len)
{
	struct view taken = { r->at, len };

	r->at += len;
	return taken;
}

static struct view take_sized(struct reader *r)
{
	size_t len = (size_t)take_long(r);

	return take(r, len);
}

static uint64_t take_bits(struct reader *r, size_t bytes)
{
	uint64_t bits = 0;

	for (size_t i = 0; i < bytes; i++)
		bits |= (uint64_t)*r->at++ << 8 * i;
	return bits;
}

/* 6 to 9 digits, as few as read back as the same float. */
static void write_float(struct reader *r)
{
	uint32_t bits = (uint32_t)take_bits(r, 4);
	float number;
	char text[40];

	memcpy(&number, &bits, sizeof(number));
	if (isnan(number) || isinf(number)) {
		json_double(&r->json, (double)number);
		return;
	}
	for (int digits = 6; digits <= 9; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, (double)number);
		if (strtof(text, NULL) == number)
			break;
	}
	char *comma = strchr(text, ',');
	if (comma)
		*comma = '.';
	if (!strpbrk(text, ".e"))
		memcpy(text + strlen(text), ".0", 3);
	json_word(&r->json, text);
}

static void write_double(struct reader *r)
{
	uint64_t bits = take_bits(r, 8);
	double number;

	memcpy(&number, &bits, sizeof(number));
	json_double(&r->json, number);
}

static void write_record(struct reader *r, const struct schema_type *type)
{
	json_open(&r->json, '{');
	for (size_t i = 0; i < type->len; i++) {
		json_name(&r->json, type->fields[i].name);
		write_value(r, type->fields[i].type);
	}
	json_close(&r->json, '}');
}

static void write_items(struct reader *r, const struct schema_type *type)
{
	bool map = type->kind == SCHEMA_MAP;
	int64_t count;

	json_open(&r->json, map ? '{' : '[');
	while ((count = take_long(r)) != 0 && !buffer_failed(r->json.out)) {
		if (count < 0) {
			count = -count;
			(void)take_long(r);
		}
		for (; count > 0 && !buffer_failed(r->json.out); count--) {
			if (map)
				json_name_view(&r->json, take_sized(r));
			write_value(r, type->item);
		}
	}
	json_close(&r->json, map ? '}' : ']');
}

static void write_union(struct reader *r, const struct schema_type *type)
{
	const struct schema_type *branch = type->branches[take_long(r)];

	if (branch->kind == SCHEMA_NULL) {
		json_word(&r->json, "null");
		return;
	}
	json_open(&r->json, '{');
	json_name(&r->json, branch->name ? branch->name : schema_kind_name(branch->kind));
	write_value(r, branch);
	json_close(&r->json, '}');
}

static void write_value(struct reader *r, const struct schema_type *type)
{
	switch (type->kind) {
	case SCHEMA_NULL:
		json_word(&r->json, "null");
		return;
	case SCHEMA_BOOLEAN:
		json_word(&r->json, *r->at++ ? "true" : "false");
		return;
	case SCHEMA_INT:
	case SCHEMA_LONG:
		json_number(&r->json, take_long(r));
		return;
	case SCHEMA_FLOAT:
		write_float(r);
		return;
	case SCHEMA_DOUBLE:
		write_double(r);
		return;
	case SCHEMA_BYTES:
		json_bytes(&r->json, take_sized(r));
		return;
	case SCHEMA_FIXED:
		json_bytes(&r->json, take(r, type->len));
		return;
	case SCHEMA_STRING:
		json_text(&r->json, take_sized(r));
		return;
	case SCHEMA_ENUM:
		json_text(&r->json, view_of(type->symbols[take_long(r)]));
		return;
	case SCHEMA_RECORD:
		write_record(r, type);
		return;
	case SCHEMA_ARRAY:
	case SCHEMA_MAP:
		write_items(r, type);
		return;
	case SCHEMA_UNION:
		write_union(r, type);
		return;
	}
}

enum fate resolve_json(const struct schema_type *type, struct view body, struct buffer *out,
                       struct error *error)
{
	struct reader reader = { .at = body.data, .json = { .out = out } };
	size_t start = out->len;

	write_value(&reader, type);
	if (!buffer_failed(out))
		return FATE_OK;
	enum fate fate =
		buffer_refused(out, error, "as JSON it takes more than %zu bytes (only this value)", out->ceiling);
	out->len = start;
	out->failed = out->starved = false;
	return fate;
}
