/* Do two types match, names and attributes alone? (Avro specification, "Schema Resolution".) */
#include "schemas/plan.h"

#include <math.h>
#include <string.h>

#define BYTES_EXACT_MAX 1000 /* no fixed of a sane decimal is larger */

struct decimal {
	bool is;
	json_int_t precision;
	json_int_t scale;
};

/* A decimal that breaks the rules of its attributes is none ("Logical Types": ignored). */
static struct decimal decimal_of(const struct schema_type *type)
{
	struct decimal decimal = { 0 };
	const char *logical = json_string_value(json_object_get(type->json, "logicalType"));
	const json_t *precision = json_object_get(type->json, "precision");
	const json_t *scale = json_object_get(type->json, "scale");

	if (!logical || strcmp(logical, "decimal") != 0 || !json_is_integer(precision) ||
	    (scale && !json_is_integer(scale)))
		return decimal;
	decimal.precision = json_integer_value(precision);
	decimal.scale = json_integer_value(scale);
	decimal.is = decimal.precision > 0 && decimal.scale >= 0 && decimal.scale <= decimal.precision;
	if (type->kind == SCHEMA_FIXED && type->len <= BYTES_EXACT_MAX)
		decimal.is = decimal.is && type->len > 0 &&
		             (double)decimal.precision <= floor((8.0 * (double)type->len - 1) * log10(2));
	return decimal;
}

static enum plan_why match_decimal(const struct schema_type *writer, const struct schema_type *reader)
{
	if (!writer->json || !reader->json)
		return WHY_NOT;
	struct decimal a = decimal_of(writer), b = decimal_of(reader);
	return a.is && b.is && (a.precision != b.precision || a.scale != b.scale) ? WHY_DECIMAL : WHY_NOT;
}

static const char *last_name(const char *full)
{
	const char *dot = strrchr(full, '.');

	return dot ? dot + 1 : full;
}

static bool has_alias(struct planner *p, const struct schema_type *reader, const char *full)
{
	size_t i;
	const json_t *alias, *aliases = json_object_get(reader->json, "aliases");

	if (!plan_count(p, 0, 1 + json_array_size(aliases)))
		return false;
	json_array_foreach(aliases, i, alias)
	{
		if (schema_alias_is(reader, json_string_value(alias), view_of(full)))
			return true;
	}
	return false;
}

static bool has_last_name(const struct schema_type *writer, const struct schema_type *reader)
{
	return strcmp(last_name(writer->name), last_name(reader->name)) == 0;
}

static bool is_promotion(enum schema_kind writer, enum schema_kind reader)
{
	switch (writer) {
	case SCHEMA_INT:
		return reader == SCHEMA_LONG || reader == SCHEMA_FLOAT || reader == SCHEMA_DOUBLE;
	case SCHEMA_LONG:
		return reader == SCHEMA_FLOAT || reader == SCHEMA_DOUBLE;
	case SCHEMA_FLOAT:
		return reader == SCHEMA_DOUBLE;
	case SCHEMA_STRING:
		return reader == SCHEMA_BYTES;
	case SCHEMA_BYTES:
		return reader == SCHEMA_STRING;
	case SCHEMA_NULL:
	case SCHEMA_BOOLEAN:
	case SCHEMA_DOUBLE:
	case SCHEMA_RECORD:
	case SCHEMA_ENUM:
	case SCHEMA_FIXED:
	case SCHEMA_ARRAY:
	case SCHEMA_MAP:
	case SCHEMA_UNION:
		return false;
	}
	return false;
}

enum plan_why plan_match(struct planner *p, const struct schema_type *writer,
                         const struct schema_type *reader)
{
	if (writer->kind != reader->kind)
		return is_promotion(writer->kind, reader->kind) ? WHY_NOT : WHY_TYPE;
	if (writer->name && !has_last_name(writer, reader) && !has_alias(p, reader, writer->name))
		return WHY_NAME;
	if (writer->kind == SCHEMA_FIXED && writer->len != reader->len)
		return WHY_SIZE;
	if (writer->kind == SCHEMA_FIXED || writer->kind == SCHEMA_BYTES)
		return match_decimal(writer, reader);
	return WHY_NOT;
}

/* How well a branch matches: the smaller, the better. */
enum { RANK_EXACT, RANK_ALIAS, RANK_LAST_NAME, RANK_PROMOTION, RANK_NONE };

static int rank_of(struct planner *p, const struct schema_type *writer, const struct schema_type *branch)
{
	if (plan_match(p, writer, branch) != WHY_NOT)
		return RANK_NONE;
	if (writer->kind != branch->kind)
		return RANK_PROMOTION;
	if (!writer->name || strcmp(writer->name, branch->name) == 0)
		return RANK_EXACT;
	return has_alias(p, branch, writer->name) ? RANK_ALIAS : RANK_LAST_NAME;
}

long plan_choose(struct planner *p, const struct schema_type *writer, const struct schema_type *reader)
{
	int best = RANK_NONE;
	long branch = -1;

	for (size_t i = 0; i < reader->len && best != RANK_EXACT && plan_count(p, 0, 1); i++) {
		int rank = rank_of(p, writer, reader->branches[i]);
		if (rank < best) {
			best = rank;
			branch = (long)i;
		}
	}
	return branch;
}
