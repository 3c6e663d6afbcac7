/*
 * Defaults in binary, as a writer of the reader's schema would have written them: exact, for an integer never
 * goes through a double. Each field's is made once; a record's default may leave out members, whose own
 * defaults then stand in it (schema_default.c has seen to it that this ends).
 */
#include "schemas/plan.h"

#include <string.h>

struct encoder {
	struct planner *planner;
	struct buffer *out;
	unsigned deepest;
	bool broken; /* too large or too deep: nothing more is tried */
};

static bool encode(struct encoder *e, const struct schema_type *type, const json_t *json, unsigned depth);

static void put_long(struct buffer *out, int64_t value)
{
	uint64_t rest = (uint64_t)value << 1 ^ (value < 0 ? UINT64_MAX : 0);

	for (; rest >= 0x80; rest >>= 7)
		buffer_append_byte(out, (uint8_t)(rest | 0x80));
	buffer_append_byte(out, (uint8_t)rest);
}

static void put_little_endian(struct buffer *out, uint64_t bits, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		buffer_append_byte(out, (uint8_t)(bits >> 8 * i));
}

static bool put_double(struct buffer *out, const json_t *json)
{
	double number = json_number_value(json);
	uint64_t bits;

	memcpy(&bits, &number, sizeof(bits));
	put_little_endian(out, bits, 8);
	return json_is_number(json);
}

static bool put_float(struct buffer *out, const json_t *json)
{
	float number = json_is_integer(json) ? (float)json_integer_value(json) : (float)json_real_value(json);
	uint32_t bits;

	memcpy(&bits, &number, sizeof(bits));
	put_little_endian(out, bits, 4);
	return json_is_number(json);
}

static bool put_integer(struct buffer *out, const json_t *json, int64_t min, int64_t max)
{
	int64_t value = json_integer_value(json);

	put_long(out, value);
	return json_is_integer(json) && value >= min && value <= max;
}

static bool put_string(struct buffer *out, const json_t *json)
{
	size_t len = json_string_length(json);

	put_long(out, (int64_t)len);
	buffer_append(out, json_string_value(json), len);
	return json_is_string(json);
}

/* A code point U+0000 to U+00FF is a byte; jansson has checked the UTF-8. */
static bool put_bytes(struct buffer *out, const struct schema_type *type, const json_t *json)
{
	const char *text = json_string_value(json);
	size_t len = json_string_length(json), count = 0;

	for (size_t i = 0; text && i < len; i++)
		count += ((uint8_t)text[i] & 0xc0) != 0x80;
	if (!text || (type->kind == SCHEMA_FIXED && count != type->len))
		return false;
	if (type->kind == SCHEMA_BYTES)
		put_long(out, (int64_t)count);
	for (size_t i = 0; i < len; i++) {
		uint8_t byte = (uint8_t)text[i];
		if (byte >= 0x80 && byte != 0xc2 && byte != 0xc3)
			return false;
		if (byte >= 0x80)
			byte = (uint8_t)(byte << 6 | ((uint8_t)text[++i] & 0x3f));
		buffer_append_byte(out, byte);
	}
	return true;
}

static bool put_symbol(struct buffer *out, const struct schema_type *type, const json_t *json)
{
	const char *text = json_string_value(json);
	long position = text && strlen(text) == json_string_length(json) ? schema_find(type, text) : -1;

	put_long(out, position);
	return position >= 0;
}

static bool give_up(struct encoder *e)
{
	e->broken = true;
	return false;
}

/* Keeps what was made for a field, from start on; depth is that of its value, in itself. */
static bool keep(struct planner *p, const struct schema_field *field, size_t start, unsigned depth)
{
	struct view bytes = VIEW_LITERAL("");

	if (p->encoded.len > start)
		bytes = (struct view){ p->encoded.data + start, p->encoded.len - start };
	if (!plan_count(p, bytes.len / 64, 0))
		return false;
	uint8_t *copy = plan_alloc(p, bytes.len, 1);
	if (!copy)
		return false;
	if (bytes.len > 0)
		memcpy(copy, bytes.data, bytes.len);
	p->fallbacks[field->ordinal] = (struct plan_default){ DEFAULT_MADE, { copy, bytes.len }, depth };
	return true;
}

static bool encode_kept(struct encoder *e, const struct plan_default *own, unsigned depth)
{
	if (depth + own->depth > SCHEMA_DEPTH_MAX)
		return give_up(e);
	e->deepest = depth + own->depth > e->deepest ? depth + own->depth : e->deepest;
	buffer_append_view(e->out, own->bytes);
	return true;
}

/*
 * The field's own default, at depth; kept, so that none is made twice. One that would hold itself was asked for
 * by a branch of a union that the default does not fit: schema_default.c has refused the others.
 */
static bool encode_own(struct encoder *e, const struct schema_field *field, unsigned depth)
{
	struct plan_default *own = &e->planner->fallbacks[field->ordinal];
	size_t mark = e->out->len;
	unsigned deepest = e->deepest;

	if (own->state == DEFAULT_MADE)
		return encode_kept(e, own, depth);
	if (own->state == DEFAULT_MAKING)
		return false;
	own->state = DEFAULT_MAKING;
	e->deepest = depth;
	bool good = encode(e, field->type, field->fallback, depth) && !buffer_failed(e->out) &&
	            keep(e->planner, field, mark, e->deepest - depth);
	if (!good)
		own->state = DEFAULT_NEW;
	e->deepest = e->deepest > deepest ? e->deepest : deepest;
	return good;
}

static bool encode_record(struct encoder *e, const struct schema_type *type, const json_t *json,
                          unsigned depth)
{
	if (!json_is_object(json))
		return false;
	if (!plan_count(e->planner, 0, type->len))
		return give_up(e);
	for (size_t i = 0; i < type->len && !e->broken; i++) {
		const struct schema_field *field = &type->fields[i];
		const json_t *member = json_object_get(json, field->name);
		if (!member && !field->fallback)
			return false;
		if (!(member ? encode(e, field->type, member, depth + 1) : encode_own(e, field, depth + 1)))
			return false;
	}
	return !e->broken;
}

static bool encode_items(struct encoder *e, const struct schema_type *type, const json_t *json,
                         unsigned depth)
{
	size_t i, len = json_array_size(json);
	json_t *value;

	if (!json_is_array(json))
		return false;
	if (len > 0)
		put_long(e->out, (int64_t)len);
	json_array_foreach(json, i, value)
	{
		if (!encode(e, type->item, value, depth + 1))
			return false;
	}
	put_long(e->out, 0);
	return true;
}

static bool encode_entries(struct encoder *e, const struct schema_type *type, const json_t *json,
                           unsigned depth)
{
	size_t len = json_object_size(json);
	const char *key;
	json_t *value;

	if (!json_is_object(json))
		return false;
	if (len > 0)
		put_long(e->out, (int64_t)len);
	/* The iterator takes no const, and changes nothing. */
	json_object_foreach((json_t *)(uintptr_t)json, key, value)
	{
		put_long(e->out, (int64_t)strlen(key));
		buffer_append_text(e->out, key);
		if (!encode(e, type->item, value, depth + 1))
			return false;
	}
	put_long(e->out, 0);
	return true;
}

/* The first branch that it fits. */
static bool encode_union(struct encoder *e, const struct schema_type *type, const json_t *json,
                         unsigned depth)
{
	size_t mark = e->out->len;

	for (size_t i = 0; i < type->len && !e->broken; i++) {
		put_long(e->out, (int64_t)i);
		if (encode(e, type->branches[i], json, depth))
			return true;
		e->out->len = mark;
	}
	return false;
}

static bool encode(struct encoder *e, const struct schema_type *type, const json_t *json, unsigned depth)
{
	struct buffer *out = e->out;

	if (depth > SCHEMA_DEPTH_MAX || buffer_failed(out) || !plan_count(e->planner, 0, 1))
		return give_up(e);
	e->deepest = depth > e->deepest ? depth : e->deepest;
	switch (type->kind) {
	case SCHEMA_NULL:
		return json_is_null(json);
	case SCHEMA_BOOLEAN:
		buffer_append_byte(out, json_is_true(json));
		return json_is_boolean(json);
	case SCHEMA_INT:
		return put_integer(out, json, INT32_MIN, INT32_MAX);
	case SCHEMA_LONG:
		return put_integer(out, json, INT64_MIN, INT64_MAX);
	case SCHEMA_FLOAT:
		return put_float(out, json);
	case SCHEMA_DOUBLE:
		return put_double(out, json);
	case SCHEMA_BYTES:
	case SCHEMA_FIXED:
		return put_bytes(out, type, json);
	case SCHEMA_STRING:
		return put_string(out, json);
	case SCHEMA_ENUM:
		return put_symbol(out, type, json);
	case SCHEMA_RECORD:
		return encode_record(e, type, json, depth);
	case SCHEMA_ARRAY:
		return encode_items(e, type, json, depth);
	case SCHEMA_MAP:
		return encode_entries(e, type, json, depth);
	case SCHEMA_UNION:
		return encode_union(e, type, json, depth);
	}
	return false;
}

struct view plan_encode_default(struct planner *p, const struct schema_field *field)
{
	struct plan_default *own = &p->fallbacks[field->ordinal];
	struct encoder encoder = { .planner = p, .out = &p->encoded };

	if (own->state == DEFAULT_NEW) {
		buffer_reset(&p->encoded);
		if (!encode_own(&encoder, field, 0))
			own->state = DEFAULT_FAILED;
		if (p->encoded.starved)
			plan_no_memory(p);
		p->encoded.failed = p->encoded.starved = false;
	}
	return own->state == DEFAULT_MADE ? own->bytes : VIEW_NULL;
}
