#include "schemas/guard.h"

#include "schemas/path.h"

#include <assert.h>
#include <stdio.h>

struct guard {
	const uint8_t *start;
	const uint8_t *at;
	const uint8_t *end;
	size_t values_left;
	const char *name;
	struct error *error;
};

static bool walk(struct guard *g, const struct schema_type *type, unsigned depth,
                 const struct path_step *step);

static bool FM_PRINTF(3, 4) wrong(struct guard *g, const struct path_step *step, const char *fmt, ...)
{
	char path[120], what[120];
	va_list args;

	path_print(step, path, sizeof(path));
	va_start(args, fmt);
	vsnprintf(what, sizeof(what), fmt, args);
	va_end(args);
	error_set(g->error, FATE_REJECT, ERR_MALFORMED, "%s%s%s: %s (at byte %zu of the body)", g->name,
	          path[0] ? "." : "", path, what, (size_t)(g->at - g->start));
	return false;
}

static size_t remaining(const struct guard *g)
{
	return (size_t)(g->end - g->at);
}

/* A zig-zag varint of at most max_bytes. The tenth byte has room for one bit. */
static bool take_varint(struct guard *g, unsigned max_bytes, const struct path_step *step, int64_t *ret_value)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < max_bytes; i++) {
		if (g->at + i == g->end)
			return wrong(g, step, "the bytes end inside of a number");
		uint8_t byte = g->at[i];
		if (i == 9 && byte > 1)
			return wrong(g, step, "a number has more than 64 bits");
		value |= (uint64_t)(byte & 0x7f) << 7 * i;
		if (byte & 0x80)
			continue;
		*ret_value = (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
		g->at += i + 1;
		return true;
	}
	return wrong(g, step, "a number takes more than %u bytes", max_bytes);
}

static bool take_long(struct guard *g, const struct path_step *step, int64_t *ret_value)
{
	if (g->at < g->end && *g->at < 0x80) { /* nearly all of them */
		*ret_value = (int64_t)(*g->at >> 1) ^ -(int64_t)(*g->at & 1);
		g->at++;
		return true;
	}
	return take_varint(g, 10, step, ret_value);
}

static bool walk_int(struct guard *g, const struct path_step *step)
{
	int64_t value;

	if (!take_varint(g, 5, step, &value))
		return false;
	return (value >= INT32_MIN && value <= INT32_MAX) || wrong(g, step, "an int has more than 32 bits");
}

static bool walk_boolean(struct guard *g, const struct path_step *step)
{
	if (g->at == g->end)
		return wrong(g, step, "the bytes end before a boolean");
	if (*g->at > 1)
		return wrong(g, step, "a boolean is neither 0 nor 1");
	g->at++;
	return true;
}

static bool walk_sized(struct guard *g, size_t size, const struct path_step *step)
{
	if (remaining(g) < size)
		return wrong(g, step, "it takes %zu bytes, and %zu are left", size, remaining(g));
	g->at += size;
	return true;
}

static bool walk_bytes(struct guard *g, bool text, const struct path_step *step)
{
	int64_t len;

	if (!take_long(g, step, &len))
		return false;
	if (len < 0)
		return wrong(g, step, "its length is negative");
	if ((uint64_t)len > remaining(g))
		return wrong(g, step, "its length is said to be %lld, and %zu bytes are left", (long long)len,
		             remaining(g));
	if (text && !view_is_utf8((struct view){ g->at, (size_t)len }))
		return wrong(g, step, "the string is not UTF-8");
	g->at += len;
	return true;
}

static bool walk_index(struct guard *g, size_t count, const char *what, const struct path_step *step,
                       int64_t *ret_index)
{
	if (!take_long(g, step, ret_index))
		return false;
	if (*ret_index < 0 || (uint64_t)*ret_index >= count)
		return wrong(g, step, "the index of %s is %lld, and there are %zu", what, (long long)*ret_index,
		             count);
	return true;
}

static bool walk_record(struct guard *g, const struct schema_type *type, unsigned depth,
                        const struct path_step *up)
{
	for (size_t i = 0; i < type->len; i++) {
		struct path_step step = { .up = up, .field = type->fields[i].name };
		if (!walk(g, type->fields[i].type, depth, &step))
			return false;
	}
	return true;
}

/* The head of a block: its count, and how many bytes it says it has (-1: does not say). */
static bool take_block(struct guard *g, const struct schema_type *type, const struct path_step *step,
                       int64_t *ret_count, int64_t *ret_size)
{
	*ret_size = -1;
	if (!take_long(g, step, ret_count))
		return false;
	if (*ret_count == INT64_MIN)
		return wrong(g, step, "the count of a block is out of range");
	if (*ret_count < 0) {
		*ret_count = -*ret_count;
		if (!take_long(g, step, ret_size))
			return false;
		if (*ret_size < 0 || (uint64_t)*ret_size > remaining(g))
			return wrong(g, step, "a block is said to have %lld bytes, and %zu are left",
			             (long long)*ret_size, remaining(g));
	}
	size_t least = type->item->min_len + (type->kind == SCHEMA_MAP);
	if (least > 0 && (uint64_t)*ret_count > remaining(g) / least)
		return wrong(g, step, "it is said to have %lld items, and %zu bytes are left", (long long)*ret_count,
		             remaining(g));
	return true;
}

static bool walk_item(struct guard *g, const struct schema_type *type, unsigned depth, int64_t position,
                      const struct path_step *up)
{
	struct path_step step = { .up = up, .item = position };

	if (type->kind == SCHEMA_MAP) {
		step.key = true;
		if (!walk_bytes(g, true, &step))
			return false;
		step.key = false;
	}
	return walk(g, type->item, depth, &step);
}

static bool walk_blocks(struct guard *g, const struct schema_type *type, unsigned depth,
                        const struct path_step *step)
{
	int64_t position = 0;

	for (;;) {
		int64_t count, size;
		if (!take_block(g, type, step, &count, &size))
			return false;
		const uint8_t *start = g->at;
		for (int64_t i = 0; i < count; i++) {
			if (!walk_item(g, type, depth, position++, step))
				return false;
		}
		if (size >= 0 && g->at - start != size)
			return wrong(g, step, "a block is said to have %lld bytes, and has %lld", (long long)size,
			             (long long)(g->at - start));
		if (count == 0)
			return true;
	}
}

static bool walk_union(struct guard *g, const struct schema_type *type, unsigned depth,
                       const struct path_step *step)
{
	int64_t index;

	return walk_index(g, type->len, "the union's branch", step, &index) &&
	       walk(g, type->branches[index], depth, step);
}

static bool count_value(struct guard *g, unsigned depth, const struct path_step *step)
{
	if (depth > GUARD_DEPTH_MAX)
		return wrong(g, step, "values are nested more than %d deep", GUARD_DEPTH_MAX);
	if (g->values_left-- > 0)
		return true;
	error_set(g->error, FATE_REJECT, ERR_TOO_LARGE, "%s: it holds too many values", g->name);
	return false;
}

static bool walk(struct guard *g, const struct schema_type *type, unsigned depth,
                 const struct path_step *step)
{
	int64_t number;

	if (!count_value(g, depth, step))
		return false;
	switch (type->kind) {
	case SCHEMA_NULL:
		return true;
	case SCHEMA_BOOLEAN:
		return walk_boolean(g, step);
	case SCHEMA_INT:
		return walk_int(g, step);
	case SCHEMA_LONG:
		return take_long(g, step, &number);
	case SCHEMA_FLOAT:
	case SCHEMA_DOUBLE:
		return walk_sized(g, type->min_len, step);
	case SCHEMA_BYTES:
	case SCHEMA_STRING:
		return walk_bytes(g, type->kind == SCHEMA_STRING, step);
	case SCHEMA_FIXED:
		return walk_sized(g, type->len, step);
	case SCHEMA_ENUM:
		return walk_index(g, type->len, "the symbol", step, &number);
	case SCHEMA_RECORD:
		return walk_record(g, type, depth + 1, step);
	case SCHEMA_ARRAY:
	case SCHEMA_MAP:
		return walk_blocks(g, type, depth + 1, step);
	case SCHEMA_UNION:
		return walk_union(g, type, depth + 1, step);
	}
	return false;
}

/* error is where what is wrong is told; what is not wanted goes into ignored. */
static struct guard guard_of(const char *name, struct view body, size_t values_max, struct error *error,
                             struct error *ignored)
{
	if (view_is_null(body))
		body = VIEW_LITERAL("");
	return (struct guard){ .start = body.data,
		                   .at = body.data,
		                   .end = body.data + body.len,
		                   .values_left = values_max,
		                   .name = name,
		                   .error = error ? error : ignored };
}

static enum fate left_over(const struct schema_type *type, const char *name, size_t len, struct error *error)
{
	bool named = type->kind == SCHEMA_RECORD && type->len > 0;

	return error_set(error, FATE_REJECT, ERR_MALFORMED,
	                 "%s: %zu bytes are left over after its last field%s%s", name, len, named ? ", " : "",
	                 named ? type->fields[type->len - 1].name : "");
}

enum fate guard_prefix(const struct schema_type *type, const char *name, struct view body, size_t values_max,
                       size_t *ret_len, struct error *error)
{
	struct error ignored = { 0 };
	struct guard guard = guard_of(name, body, values_max, error, &ignored);

	if (!walk(&guard, type, 0, NULL))
		return guard.error->fate;
	*ret_len = (size_t)(guard.at - guard.start);
	return FATE_OK;
}

enum fate guard_check(const struct schema_type *type, const char *name, struct view body, size_t values_max,
                      struct error *error)
{
	size_t len;
	enum fate fate = guard_prefix(type, name, body, values_max, &len, error);

	return fate == FATE_OK && len < body.len ? left_over(type, name, body.len - len, error) : fate;
}

enum fate guard_fields(const struct schema_type *record, const char *name, struct view body,
                       size_t values_max, struct view *ret_fields, struct error *error)
{
	struct error ignored = { 0 };
	struct guard guard = guard_of(name, body, values_max, error, &ignored);

	assert(record->kind == SCHEMA_RECORD);
	if (!count_value(&guard, 0, NULL))
		return guard.error->fate;
	for (size_t i = 0; i < record->len; i++) {
		struct path_step step = { .field = record->fields[i].name };
		const uint8_t *start = guard.at;
		if (!walk(&guard, record->fields[i].type, 1, &step))
			return guard.error->fate;
		ret_fields[i] = (struct view){ start, (size_t)(guard.at - start) };
	}
	return guard.at == guard.end ? FATE_OK : left_over(record, name, remaining(&guard), error);
}
