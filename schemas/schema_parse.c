#include "schemas/json_fault.h"
#include "schemas/schema_parser.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARENA_MAX ((size_t)256 * 1024 * 1024) /* 1 MiB of text cannot ask for more */

static struct schema_type *parse_type(struct parser *p, const json_t *json, const char *space, unsigned depth,
                                      const struct place *at);

const char *schema_kind_name(enum schema_kind kind)
{
	static const char *const names[] = { "null",   "boolean", "int",  "long",  "float", "double", "bytes",
		                                 "string", "record",  "enum", "fixed", "array", "map",    "union" };

	return names[kind];
}

long schema_find(const struct schema_type *type, const char *name)
{
	const json_t *position = json_object_get(type->index, name);

	return position ? (long)json_integer_value(position) : -1;
}

static size_t place_print(const struct place *at, char *text, size_t cap)
{
	size_t len = at->up ? place_print(at->up, text, cap) : 0;
	int more = snprintf(text + len, cap - len, "%s%.60s", len > 0 && at->name[0] ? "." : "", at->name);

	return more < 0 || (size_t)more >= cap - len ? cap - 1 : len + (size_t)more;
}

bool parser_wrong(struct parser *p, const struct place *at, const char *fmt, ...)
{
	char where[160] = "", what[256];
	va_list args;

	if (at)
		place_print(at, where, sizeof(where));
	va_start(args, fmt);
	vsnprintf(what, sizeof(what), fmt, args);
	va_end(args);
	error_set(p->error, FATE_REJECT, ERR_INVALID, "schema: %s%s%s", where, where[0] ? ": " : "", what);
	return false;
}

bool parser_no_memory(struct parser *p)
{
	error_set(p->error, FATE_RETRY, ERR_MEMORY, "no memory to parse a schema");
	return false;
}

static struct schema_type *type_new(struct parser *p, enum schema_kind kind, const json_t *json)
{
	struct schema_type *type = arena_alloc(p->arena, sizeof(*type));

	if (!type) {
		parser_no_memory(p);
		return NULL;
	}
	type->kind = kind;
	type->json = json;
	type->finite = kind != SCHEMA_RECORD && kind != SCHEMA_UNION;
	type->pending = 1;
	return type;
}

static struct schema_type *primitive_new(struct parser *p, enum schema_kind kind, const json_t *json)
{
	static const size_t min_len[] = { 0, 1, 1, 1, 4, 8, 1, 1 };
	struct schema_type *type = type_new(p, kind, json);

	if (type)
		type->min_len = min_len[kind];
	return type;
}

/* "string" for itself is the same object everywhere; {"type": "string", ...} keeps its attributes. */
static struct schema_type *primitive_shared(struct parser *p, enum schema_kind kind)
{
	if (!p->primitives[kind])
		p->primitives[kind] = primitive_new(p, kind, NULL);
	return p->primitives[kind];
}

static struct schema_type *parse_name(struct parser *p, const json_t *json, const json_t *attributes,
                                      const char *space, const struct place *at)
{
	int kind = name_primitive(json_string_value(json), json_string_length(json));
	if (kind >= 0)
		return attributes ? primitive_new(p, (enum schema_kind)kind, attributes)
		                  : primitive_shared(p, (enum schema_kind)kind);
	char full[SCHEMA_NAME_MAX + 1];
	if (!name_resolve(p, at, json, space, full))
		return NULL;
	const json_t *ordinal = json_object_get(p->names, full);
	if (!ordinal) {
		parser_wrong(p, at, "type %.200s is not defined", full);
		return NULL;
	}
	return p->named[json_integer_value(ordinal)];
}

static bool grow(struct parser *p, void **array, size_t *cap, size_t len, size_t size)
{
	if (len < *cap)
		return true;
	size_t more = *cap ? *cap * 2 : 16;
	void *bigger = realloc(*array, more * size);
	if (!bigger)
		return parser_no_memory(p);
	*array = bigger;
	*cap = more;
	return true;
}

/* A named type is known by its name from its name on: its own fields may mean it. */
static struct schema_type *define(struct parser *p, enum schema_kind kind, const json_t *json,
                                  const char *space, const char **ret_space, const struct place *at)
{
	const char *full;

	if (!name_define(p, at, json, space, &full, ret_space) || !name_check_aliases(p, at, json, true))
		return NULL;
	struct schema_type *type = type_new(p, kind, json);
	if (!type || !grow(p, (void **)&p->named, &p->named_cap, p->schema->named_len, sizeof(*p->named)))
		return NULL;
	type->name = full;
	type->ordinal = p->schema->named_len;
	p->named[p->schema->named_len++] = type;
	if (json_object_set_new(p->names, full, json_integer((json_int_t)type->ordinal)) != 0) {
		parser_no_memory(p);
		return NULL;
	}
	return type;
}

/* The hash table that finds a record's fields and an enum's symbols; its owner lives in the arena. */
static bool index_add(struct parser *p, struct schema_type *type, const char *name, size_t position,
                      const struct place *at)
{
	if (!type->index)
		type->index = json_object();
	if (json_object_get(type->index, name))
		return parser_wrong(p, at, "%.200s stands there twice", name);
	if (json_object_set_new(type->index, name, json_integer((json_int_t)position)) != 0)
		return parser_no_memory(p);
	return true;
}

static const char *parse_simple_name(struct parser *p, const json_t *json, const char *what,
                                     const struct place *at)
{
	const char *text = json_string_value(json);
	size_t len = json_string_length(json);

	if (!text || len > SCHEMA_NAME_MAX || !name_is_valid(text, len)) {
		parser_wrong(p, at, "%s must be a name: letters, digits and _, %d bytes at most", what,
		             SCHEMA_NAME_MAX);
		return NULL;
	}
	return text; /* lives as long as schema->json */
}

static bool check_order(struct parser *p, const json_t *json, const struct place *at)
{
	static const char *const orders[] = { "ascending", "descending", "ignore" };
	const json_t *order = json_object_get(json, "order");

	if (!order)
		return true;
	for (size_t i = 0; json_is_string(order) && i < 3; i++) {
		if (strcmp(json_string_value(order), orders[i]) == 0)
			return true;
	}
	return parser_wrong(p, at, "order must be ascending, descending or ignore");
}

static bool parse_field(struct parser *p, struct schema_type *record, size_t position, const json_t *json,
                        const char *space, unsigned depth, const struct place *up)
{
	struct schema_field *field = &record->fields[position];

	if (!json_is_object(json))
		return parser_wrong(p, up, "fields[%zu] must be an object", position);
	field->name = parse_simple_name(p, json_object_get(json, "name"), "the name of a field", up);
	if (!field->name)
		return false;
	struct place at = { up, field->name };
	if (!index_add(p, record, field->name, position, up) || !name_check_aliases(p, &at, json, false) ||
	    !check_order(p, json, &at))
		return false;
	if (p->fields_len >= SCHEMA_FIELDS_MAX)
		return parser_wrong(p, &at, "more than %d fields", SCHEMA_FIELDS_MAX);
	if (!grow(p, (void **)&p->fields, &p->fields_cap, p->fields_len, sizeof(*p->fields)))
		return false;
	field->ordinal = p->fields_len;
	p->fields[p->fields_len++] = (struct field_entry){ record, field };
	field->json = json;
	field->fallback = json_object_get(json, "default");
	record->required += field->fallback == NULL;
	const json_t *type = json_object_get(json, "type");
	if (!type)
		return parser_wrong(p, &at, "a field needs a type");
	field->type = parse_type(p, type, space, depth + 1, &at);
	return field->type && finite_use(p, record, field->type);
}

static struct schema_type *parse_record(struct parser *p, const json_t *json, const char *space,
                                        unsigned depth, const struct place *up)
{
	const char *inner;
	struct schema_type *record = define(p, SCHEMA_RECORD, json, space, &inner, up);
	if (!record)
		return NULL;
	struct place at = { up, up->name[0] ? "" : record->name };
	const json_t *fields = json_object_get(json, "fields");
	if (!json_is_array(fields)) {
		parser_wrong(p, &at, "a record needs fields, an array");
		return NULL;
	}
	size_t len = json_array_size(fields), min_len = 0;
	record->fields = arena_array(p->arena, len, sizeof(*record->fields));
	if (!record->fields) {
		parser_no_memory(p);
		return NULL;
	}
	for (size_t i = 0; i < len; i++) {
		if (!parse_field(p, record, i, json_array_get(fields, i), inner, depth, &at))
			return NULL;
		size_t more = record->fields[i].type->min_len;
		min_len = more > SIZE_MAX - min_len ? SIZE_MAX : min_len + more;
	}
	record->len = len;
	record->min_len = min_len; /* 0 while it was not complete: a lower bound all the same */
	finite_complete(record);
	return record;
}

static bool parse_symbols(struct parser *p, struct schema_type *type, const json_t *symbols,
                          const struct place *at)
{
	type->len = json_array_size(symbols);
	type->symbols = arena_array(p->arena, type->len, sizeof(*type->symbols));
	if (!type->symbols)
		return parser_no_memory(p);
	for (size_t i = 0; i < type->len; i++) {
		type->symbols[i] = parse_simple_name(p, json_array_get(symbols, i), "a symbol", at);
		if (!type->symbols[i] || !index_add(p, type, type->symbols[i], i, at))
			return false;
	}
	return true;
}

static struct schema_type *parse_enum(struct parser *p, const json_t *json, const char *space,
                                      const struct place *at)
{
	const char *inner;
	struct schema_type *type = define(p, SCHEMA_ENUM, json, space, &inner, at);
	if (!type)
		return NULL;
	const json_t *symbols = json_object_get(json, "symbols"), *fallback = json_object_get(json, "default");
	if (!json_is_array(symbols)) {
		parser_wrong(p, at, "an enum needs symbols, an array of names");
		return NULL;
	}
	if (!parse_symbols(p, type, symbols, at))
		return NULL;
	if (fallback && (!json_is_string(fallback) || schema_find(type, json_string_value(fallback)) < 0)) {
		parser_wrong(p, at, "the default of an enum must be one of its symbols");
		return NULL;
	}
	type->min_len = 1;
	return type;
}

static struct schema_type *parse_fixed(struct parser *p, const json_t *json, const char *space,
                                       const struct place *at)
{
	const char *inner;
	struct schema_type *type = define(p, SCHEMA_FIXED, json, space, &inner, at);
	if (!type)
		return NULL;
	const json_t *size = json_object_get(json, "size");
	json_int_t value = json_integer_value(size);
	if (!json_is_integer(size) || value < 0 || value > INT32_MAX) {
		parser_wrong(p, at, "a fixed needs a size, a number from 0 to %d", INT32_MAX);
		return NULL;
	}
	type->len = type->min_len = (size_t)value;
	return type;
}

static struct schema_type *parse_collection(struct parser *p, enum schema_kind kind, const json_t *json,
                                            const char *space, unsigned depth, const struct place *at)
{
	const char *member = kind == SCHEMA_ARRAY ? "items" : "values";
	const json_t *item = json_object_get(json, member);
	if (!item) {
		parser_wrong(p, at, "%s needs %s, a type", kind == SCHEMA_ARRAY ? "an array" : "a map", member);
		return NULL;
	}
	struct schema_type *type = type_new(p, kind, json);
	if (!type)
		return NULL;
	type->min_len = 1;
	type->item = parse_type(p, item, space, depth + 1, at);
	return type->item ? type : NULL;
}

/* May branch stand in the union: is there no other of its kind, or of its name? */
static bool check_branch(struct parser *p, json_t *seen, const struct schema_type *branch,
                         const struct place *at)
{
	const char *name = branch->name ? branch->name : schema_kind_name(branch->kind);

	if (branch->kind == SCHEMA_UNION)
		return parser_wrong(p, at, "a union may not hold a union directly");
	if (json_object_get(seen, name))
		return parser_wrong(p, at, "a union may hold %.200s only once", name);
	return json_object_set_new(seen, name, json_true()) == 0 || parser_no_memory(p);
}

static bool parse_branches(struct parser *p, struct schema_type *type, json_t *seen, const char *space,
                           unsigned depth, const struct place *at)
{
	size_t min_len = SIZE_MAX;

	for (size_t i = 0; i < type->len; i++) {
		struct schema_type *branch = parse_type(p, json_array_get(type->json, i), space, depth + 1, at);
		if (!branch || !check_branch(p, seen, branch, at) || !finite_use(p, type, branch))
			return false;
		type->branches[i] = branch;
		min_len = branch->min_len < min_len ? branch->min_len : min_len;
	}
	type->min_len = type->len == 0 ? 1 : min_len == SIZE_MAX ? SIZE_MAX : min_len + 1;
	return true;
}

static struct schema_type *parse_union(struct parser *p, const json_t *json, const char *space,
                                       unsigned depth, const struct place *at)
{
	struct schema_type *type = type_new(p, SCHEMA_UNION, json);
	if (!type)
		return NULL;
	type->len = json_array_size(json);
	type->branches = arena_array(p->arena, type->len, sizeof(struct schema_type *));
	json_t *seen = json_object();
	bool good = (type->branches && seen) || parser_no_memory(p);
	type->finite = type->len == 0; /* the specification's own vectors have one; that no value passes it is for
	                                  the guard to say */
	good = good && parse_branches(p, type, seen, space, depth, at);
	json_decref(seen);
	if (!good)
		return NULL;
	finite_complete(type);
	return type;
}

static struct schema_type *parse_object(struct parser *p, const json_t *json, const char *space,
                                        unsigned depth, const struct place *at)
{
	const json_t *type = json_object_get(json, "type");

	if (json_is_object(type) || json_is_array(type))
		return parse_type(p, type, space, depth + 1, at);
	const char *name = json_string_value(type);
	if (!name) {
		parser_wrong(p, at, "an object needs \"type\", the name of a type");
		return NULL;
	}
	if (strcmp(name, "record") == 0)
		return parse_record(p, json, space, depth, at);
	if (strcmp(name, "enum") == 0)
		return parse_enum(p, json, space, at);
	if (strcmp(name, "fixed") == 0)
		return parse_fixed(p, json, space, at);
	if (strcmp(name, "array") == 0 || strcmp(name, "map") == 0)
		return parse_collection(p, name[0] == 'a' ? SCHEMA_ARRAY : SCHEMA_MAP, json, space, depth, at);
	return parse_name(p, type, json, space, at);
}

static struct schema_type *parse_type(struct parser *p, const json_t *json, const char *space, unsigned depth,
                                      const struct place *at)
{
	if (depth > SCHEMA_DEPTH_MAX) {
		parser_wrong(p, at, "types are nested more than %d deep", SCHEMA_DEPTH_MAX);
		return NULL;
	}
	if (json_is_string(json))
		return parse_name(p, json, NULL, space, at);
	if (json_is_array(json))
		return parse_union(p, json, space, depth, at);
	if (json_is_object(json))
		return parse_object(p, json, space, depth, at);
	parser_wrong(p, at, "a type must be a name, an object or an array of branches");
	return NULL;
}

/* Records and unions that wait for themselves. */
static bool check_finite(struct parser *p)
{
	struct place top = { NULL, "" };

	for (size_t i = 0; i < p->schema->named_len; i++) {
		if (!p->named[i]->finite)
			return parser_wrong(p, &top, "%.200s holds itself without a way out, so no value of it can exist",
			                    p->named[i]->name);
	}
	return true;
}

static enum fate load_json(struct schema *schema, struct view text, struct error *error)
{
	json_error_t detail;
	bool starved = false;

	if (text.len > SCHEMA_TEXT_MAX)
		return error_set(error, FATE_REJECT, ERR_INVALID, "schema: %zu bytes of text, at most %zu are taken",
		                 text.len, SCHEMA_TEXT_MAX);
	if (!view_is_null(text) && schema_weigh(text) > SCHEMA_WEIGHT_MAX)
		return error_set(
			error, FATE_REJECT, ERR_INVALID,
			"schema: its JSON has too many objects, arrays and values (more than %zu bytes of memory)",
			SCHEMA_WEIGHT_MAX);
	if (!view_is_null(text))
		schema->json =
			json_take(text, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL, &detail, &starved);
	if (schema->json)
		return FATE_OK;
	if (view_is_null(text) || text.len == 0)
		return error_set(error, FATE_REJECT, ERR_INVALID, "schema: the text is empty");
	if (starved)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for a schema");
	return error_set(error, FATE_REJECT, ERR_INVALID, "schema: not JSON at line %d, column %d: %s",
	                 detail.line, detail.column, json_fault(&detail));
}

static bool parse_root(struct parser *p)
{
	struct place top = { NULL, "" };

	p->names = json_object();
	if (!p->names)
		return parser_no_memory(p);
	p->schema->root = parse_type(p, p->schema->json, "", 0, &top);
	return p->schema->root && check_finite(p) && defaults_check(p);
}

/* The hash tables of records and enums are not the arena's. Keeps them for schema_free. */
static void parser_done(struct parser *p, bool good)
{
	struct schema *schema = p->schema;
	struct schema_type **named = good ? arena_array(p->arena, schema->named_len, sizeof(*named)) : NULL;

	if (named && schema->named_len > 0)
		memcpy(named, p->named, schema->named_len * sizeof(*named));
	schema->named = named;
	for (size_t i = 0; !named && i < schema->named_len; i++)
		json_decref(p->named[i]->index);
	free(p->named);
	free(p->fields);
	json_decref(p->names);
}

enum fate schema_parse(struct schema **ret_schema, struct view text, struct error *error)
{
	struct error ignored = { 0 };
	struct schema *schema = calloc(1, sizeof(*schema));
	if (!schema || !(schema->arena = arena_new(ARENA_MAX))) {
		free(schema);
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory to parse a schema");
	}
	struct error *to = error ? error : &ignored;
	struct parser parser = { .schema = schema, .arena = schema->arena, .error = to };
	enum fate fate = load_json(schema, text, to);
	if (fate == FATE_OK) {
		bool good = parse_root(&parser);
		parser_done(&parser, good);
		if (good && !schema->named)
			good = parser_no_memory(&parser);
		fate = good ? FATE_OK : to->fate;
	}
	if (fate != FATE_OK) {
		schema_free(schema);
		return fate;
	}
	*ret_schema = schema;
	return FATE_OK;
}

void schema_free(struct schema *schema)
{
	if (!schema)
		return;
	for (size_t i = 0; schema->named && i < schema->named_len; i++)
		json_decref(schema->named[i]->index);
	arena_free(schema->arena);
	json_decref(schema->json);
	free(schema);
}
