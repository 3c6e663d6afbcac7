/*
 * Are defaults values of their types, and do they end? A record's default may leave out members that have
 * defaults of their own: those are checked where they stand, never again from here (written naively, that
 * is exponential), and an edge is kept from the field to the one whose default it borrows. A circle of such
 * edges is a default that never ends.
 */
#include "schemas/schema_parser.h"

#include <stdlib.h>
#include <string.h>

#define STEPS_MAX 2000000 /* values looked at and members left out, in all defaults of a schema */

struct edge {
	size_t from, to; /* ordinals of fields */
};

struct checker {
	struct parser *parser;
	size_t steps;
	struct edge *edges;
	size_t edges_len;
	size_t edges_cap;
	size_t from;
	const char *broken; /* why nothing more is looked at */
	bool starved;       /* because there was no memory */
};

static bool fits(struct checker *c, const struct schema_type *type, const json_t *json, unsigned depth);

static bool edge_add(struct checker *c, size_t to)
{
	if (c->edges_len == c->edges_cap) {
		size_t cap = c->edges_cap ? c->edges_cap * 2 : 64;
		struct edge *edges = realloc(c->edges, cap * sizeof(*edges));
		if (!edges) {
			c->broken = "";
			c->starved = true;
			return false;
		}
		c->edges = edges;
		c->edges_cap = cap;
	}
	c->edges[c->edges_len++] = (struct edge){ c->from, to };
	return true;
}

/* One edge for each member that the object leaves out. All of them have defaults. */
static bool borrow(struct checker *c, const struct schema_type *record, const json_t *json)
{
	c->steps += record->len;
	if (c->steps > STEPS_MAX)
		return false;
	for (size_t i = 0; i < record->len; i++) {
		const struct schema_field *field = &record->fields[i];
		if (!json_object_get(json, field->name) && !edge_add(c, field->ordinal))
			return false;
	}
	return true;
}

static bool fits_record(struct checker *c, const struct schema_type *record, const json_t *json,
                        unsigned depth)
{
	size_t known = 0, required = 0;
	const char *key;
	json_t *value;

	if (!json_is_object(json))
		return false;
	/* The iterator takes no const, and changes nothing. */
	json_object_foreach((json_t *)(uintptr_t)json, key, value)
	{
		long position = schema_find(record, key);
		if (position < 0)
			continue;
		const struct schema_field *field = &record->fields[position];
		if (!fits(c, field->type, value, depth + 1))
			return false;
		known++;
		required += field->fallback == NULL;
	}
	return required == record->required && (known == record->len || borrow(c, record, json));
}

/* A failed branch takes its edges with it. */
static bool fits_union(struct checker *c, const struct schema_type *type, const json_t *json, unsigned depth)
{
	for (size_t i = 0; i < type->len && !c->broken; i++) {
		size_t mark = c->edges_len;
		if (fits(c, type->branches[i], json, depth + 1))
			return true;
		c->edges_len = mark;
	}
	return false;
}

static bool fits_items(struct checker *c, const struct schema_type *type, const json_t *json, unsigned depth)
{
	size_t i;
	const char *key;
	json_t *value;

	if (type->kind == SCHEMA_ARRAY) {
		if (!json_is_array(json))
			return false;
		json_array_foreach(json, i, value)
		{
			if (!fits(c, type->item, value, depth + 1))
				return false;
		}
		return true;
	}
	if (!json_is_object(json))
		return false;
	json_object_foreach((json_t *)(uintptr_t)json, key, value)
	{
		if (!fits(c, type->item, value, depth + 1))
			return false;
	}
	return true;
}

/* Bytes are written as code points U+0000 to U+00FF; their number, or -1. */
static long count_bytes(const json_t *json)
{
	const char *text = json_string_value(json);
	size_t len = json_string_length(json);
	long count = 0;

	if (!text)
		return -1;
	for (size_t i = 0; i < len; i++, count++) {
		uint8_t byte = (uint8_t)text[i];
		if (byte < 0x80)
			continue;
		if (byte != 0xc2 && byte != 0xc3)
			return -1;
		i++; /* jansson has checked that the second byte is there */
	}
	return count;
}

static bool fits_integer(const json_t *json, int64_t min, int64_t max)
{
	return json_is_integer(json) && json_integer_value(json) >= min && json_integer_value(json) <= max;
}

static bool fits(struct checker *c, const struct schema_type *type, const json_t *json, unsigned depth)
{
	if (++c->steps > STEPS_MAX)
		c->broken = "the defaults of the schema leave out too much or are too long";
	if (depth > SCHEMA_DEPTH_MAX)
		c->broken = "a default is nested too deep";
	if (c->broken)
		return false;
	switch (type->kind) {
	case SCHEMA_NULL:
		return json_is_null(json);
	case SCHEMA_BOOLEAN:
		return json_is_boolean(json);
	case SCHEMA_INT:
		return fits_integer(json, INT32_MIN, INT32_MAX);
	case SCHEMA_LONG:
		return fits_integer(json, INT64_MIN, INT64_MAX);
	case SCHEMA_FLOAT:
	case SCHEMA_DOUBLE:
		return json_is_number(json);
	case SCHEMA_BYTES:
		return count_bytes(json) >= 0;
	case SCHEMA_FIXED:
		return count_bytes(json) == (long)type->len;
	case SCHEMA_STRING:
		return json_is_string(json);
	case SCHEMA_ENUM:
		return json_is_string(json) && strlen(json_string_value(json)) == json_string_length(json) &&
		       schema_find(type, json_string_value(json)) >= 0;
	case SCHEMA_RECORD:
		return fits_record(c, type, json, depth);
	case SCHEMA_ARRAY:
	case SCHEMA_MAP:
		return fits_items(c, type, json, depth);
	case SCHEMA_UNION:
		return fits_union(c, type, json, depth);
	}
	return false;
}

static bool wrong(struct checker *c, size_t ordinal, const char *text)
{
	const struct field_entry *entry = &c->parser->fields[ordinal];
	struct place record = { NULL, entry->record->name };
	struct place at = { &record, entry->field->name };

	return parser_wrong(c->parser, &at, "%s", text);
}

/* The edges sorted by from: start[f] is the first one of field f (counting sort). */
static size_t *sort_edges(struct checker *c, size_t fields, struct edge *ret_sorted)
{
	size_t *start = calloc(fields + 2, sizeof(*start));
	if (!start)
		return NULL;
	for (size_t i = 0; i < c->edges_len; i++)
		start[c->edges[i].from + 2]++;
	for (size_t f = 2; f < fields + 2; f++)
		start[f] += start[f - 1];
	for (size_t i = 0; i < c->edges_len; i++)
		ret_sorted[start[c->edges[i].from + 1]++] = c->edges[i];
	return start;
}

/*
 * Takes away fields that nobody (who is left) borrows from, until none is left or there is a circle
 * (A. B. Kahn, "Topological sorting of large networks", CACM 5, 1962). Gives a field on or behind a circle,
 * or the number of fields.
 */
static size_t find_circle(const struct edge *sorted, const size_t *start, size_t edges_len, size_t fields,
                          size_t *users, size_t *queue)
{
	size_t head = 0, tail = 0;

	for (size_t i = 0; i < edges_len; i++)
		users[sorted[i].to]++;
	for (size_t f = 0; f < fields; f++) {
		if (users[f] == 0)
			queue[tail++] = f;
	}
	while (head < tail) {
		size_t f = queue[head++];
		for (size_t i = start[f]; i < start[f + 1]; i++) {
			if (--users[sorted[i].to] == 0)
				queue[tail++] = sorted[i].to;
		}
	}
	for (size_t f = 0; f < fields && tail < fields; f++) {
		if (users[f] > 0)
			return f;
	}
	return fields;
}

static bool check_circles(struct checker *c)
{
	size_t fields = c->parser->fields_len;
	if (c->edges_len == 0)
		return true;
	struct edge *sorted = calloc(c->edges_len, sizeof(*sorted));
	size_t *start = sorted ? sort_edges(c, fields, sorted) : NULL;
	size_t *users = calloc(2 * fields, sizeof(*users));
	bool good = start && users;
	if (!good)
		parser_no_memory(c->parser);
	size_t circle = good ? find_circle(sorted, start, c->edges_len, fields, users, users + fields) : fields;
	free(sorted);
	free(start);
	free(users);
	return good && (circle == fields || wrong(c, circle, "the default holds itself, so it has no end"));
}

static bool check_fields(struct checker *c)
{
	for (size_t f = 0; f < c->parser->fields_len; f++) {
		const struct schema_field *field = c->parser->fields[f].field;
		c->from = f;
		if (!field->fallback || fits(c, field->type, field->fallback, 0))
			continue;
		if (c->starved)
			return parser_no_memory(c->parser);
		return wrong(c, f, c->broken ? c->broken : "the default is not a value of the field's type");
	}
	return true;
}

bool defaults_check(struct parser *p)
{
	struct checker checker = { .parser = p };
	bool good = check_fields(&checker) && check_circles(&checker);

	free(checker.edges);
	return good;
}
