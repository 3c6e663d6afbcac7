/* The two ways that a schema is printed: the parsing canonical form, and for avro-c. */
#include "schemas/schema.h"

#include <stdlib.h>

struct printer {
	struct buffer *out;
	bool *seen; /* by ordinal: printed already, from now on its name stands for it */
	bool for_avro_c;
	size_t pairs; /* records {key, value} so far */
};

static void print_type(struct printer *p, const struct schema_type *type);

static void print_name(struct printer *p, const char *name)
{
	buffer_append_byte(p->out, '"');
	buffer_append_text(p->out, name);
	buffer_append_byte(p->out, '"');
}

static void print_head(struct printer *p, const struct schema_type *type)
{
	buffer_append_text(p->out, "{\"name\":");
	print_name(p, type->name);
	buffer_append_text(p->out, ",\"type\":");
	print_name(p, schema_kind_name(type->kind));
}

static void print_record(struct printer *p, const struct schema_type *type)
{
	print_head(p, type);
	buffer_append_text(p->out, ",\"fields\":[");
	for (size_t i = 0; i < type->len; i++) {
		buffer_append_text(p->out, i ? ",{\"name\":" : "{\"name\":");
		print_name(p, type->fields[i].name);
		buffer_append_text(p->out, ",\"type\":");
		print_type(p, type->fields[i].type);
		buffer_append_byte(p->out, '}');
	}
	buffer_append_text(p->out, "]}");
}

static void print_enum(struct printer *p, const struct schema_type *type)
{
	print_head(p, type);
	buffer_append_text(p->out, ",\"symbols\":[");
	for (size_t i = 0; i < type->len; i++) {
		if (i)
			buffer_append_byte(p->out, ',');
		print_name(p, type->symbols[i]);
	}
	buffer_append_text(p->out, "]}");
}

static void print_union(struct printer *p, const struct schema_type *type)
{
	buffer_append_byte(p->out, '[');
	for (size_t i = 0; i < type->len; i++) {
		if (i)
			buffer_append_byte(p->out, ',');
		print_type(p, type->branches[i]);
	}
	buffer_append_byte(p->out, ']');
}

static void print_array(struct printer *p, const struct schema_type *type)
{
	buffer_append_text(p->out, "{\"type\":\"array\",\"items\":");
	print_type(p, type->item);
	buffer_append_byte(p->out, '}');
}

/* In the canonical form a map; for avro-c the array of its entries. */
static void print_map(struct printer *p, const struct schema_type *type)
{
	if (p->for_avro_c)
		buffer_printf(p->out,
		              "{\"type\":\"array\",\"items\":{\"name\":\"fermata.wire.Pair%zu\",\"type\":\"record\","
		              "\"fields\":[{\"name\":\"key\",\"type\":\"string\"},{\"name\":\"value\",\"type\":",
		              p->pairs++);
	else
		buffer_append_text(p->out, "{\"type\":\"map\",\"values\":");
	print_type(p, type->item);
	buffer_append_text(p->out, p->for_avro_c ? "}]}}" : "}");
}

static void print_named(struct printer *p, const struct schema_type *type)
{
	if (p->seen[type->ordinal]) {
		print_name(p, type->name);
		return;
	}
	p->seen[type->ordinal] = true;
	if (type->kind == SCHEMA_RECORD) {
		print_record(p, type);
	} else if (type->kind == SCHEMA_ENUM) {
		print_enum(p, type);
	} else {
		print_head(p, type);
		buffer_printf(p->out, ",\"size\":%zu}", type->len);
	}
}

static void print_type(struct printer *p, const struct schema_type *type)
{
	if (buffer_failed(p->out))
		return;
	if (type->name)
		print_named(p, type);
	else if (type->kind == SCHEMA_ARRAY)
		print_array(p, type);
	else if (type->kind == SCHEMA_MAP)
		print_map(p, type);
	else if (type->kind == SCHEMA_UNION)
		print_union(p, type);
	else
		print_name(p, schema_kind_name(type->kind));
}

static enum fate print(const struct schema *schema, const struct schema_type *type, bool for_avro_c,
                       struct buffer *out, struct error *error)
{
	bool *seen = calloc(schema->named_len + 1, sizeof(*seen));
	if (!seen)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory to print a schema");
	struct printer printer = { .out = out, .seen = seen, .for_avro_c = for_avro_c };
	print_type(&printer, type);
	free(seen);
	if (out->starved)
		return buffer_refused(out, error, "a schema");
	if (buffer_failed(out))
		return error_set(error, FATE_REJECT, ERR_INVALID,
		                 "schema: its canonical form is longer than %zu bytes", out->ceiling);
	return FATE_OK;
}

enum fate schema_canonical(const struct schema *schema, struct buffer *out, struct error *error)
{
	return print(schema, schema->root, false, out, error);
}

enum fate schema_wire_text(const struct schema *schema, const struct schema_type *type, struct buffer *out,
                           struct error *error)
{
	return print(schema, type, true, out, error);
}
