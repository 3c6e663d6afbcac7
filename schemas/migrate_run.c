/*
 * Running a plan. The guard has walked the bytes before, so the walk here cannot leave them and is as deep as
 * the guard allows; that it does not is checked all the same, and would be our own mistake. Every step takes a
 * value of the writer's that the guard has counted, so time is linear in the bytes that come and go.
 */
#include "schemas/guard.h"
#include "schemas/path.h"
#include "schemas/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ONLY_THIS " (only this value)"

struct run {
	const uint8_t *at;
	const uint8_t *end;
	struct buffer *out;
	struct buffer scratch; /* a record while its fields are put in order */
	size_t *marks;         /* a stack: where in out the steps of the records around us end */
	size_t marks_len, marks_cap;
	const char *name;
	struct error *error;
};

static bool run(struct run *r, const struct plan_node *node, const struct path_step *step);

/* This value cannot pass, for what the plan says of the node. */
static bool refuse(struct run *r, const struct plan_node *node, const struct path_step *step)
{
	char path[160], why[200];

	path[0] = step ? '.' : '\0';
	path[1] = '\0';
	if (step)
		path_print(step, path + 1, 100);
	plan_explain(node, path, sizeof(path), why, sizeof(why));
	error_set(r->error, FATE_REJECT, ERR_INVALID, "%.60s%s: %s", r->name, path, why);
	plan_say_when(r->error, ONLY_THIS);
	return false;
}

static bool FM_PRINTF(3, 4) wrong(struct run *r, const struct path_step *step, const char *fmt, ...)
{
	char path[100], what[120];
	va_list args;

	path_print(step, path, sizeof(path));
	va_start(args, fmt);
	vsnprintf(what, sizeof(what), fmt, args);
	va_end(args);
	error_set(r->error, FATE_REJECT, ERR_INVALID, "%.60s%s%s: %s", r->name, path[0] ? "." : "", path, what);
	plan_say_when(r->error, ONLY_THIS);
	return false;
}

/* The guard has let bytes through that are not what the plan takes them for. */
static bool mistake(struct run *r)
{
	error_set(r->error, FATE_FATAL, ERR_BUG, "%s: a plan does not follow the guard", r->name);
	return false;
}

static bool take_long(struct run *r, int64_t *ret_value)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < 10 && r->at < r->end; i++) {
		uint8_t byte = *r->at++;
		value |= (uint64_t)(byte & 0x7f) << 7 * i;
		if (byte & 0x80)
			continue;
		*ret_value = (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
		return true;
	}
	return mistake(r);
}

static void put_long(struct run *r, int64_t value)
{
	uint64_t rest = (uint64_t)value << 1 ^ (value < 0 ? UINT64_MAX : 0);
	uint8_t bytes[10];
	size_t len = 0;

	for (; rest >= 0x80; rest >>= 7)
		bytes[len++] = (uint8_t)(rest | 0x80);
	bytes[len++] = (uint8_t)rest;
	buffer_append(r->out, bytes, len);
}

static bool copy(struct run *r, size_t len)
{
	if ((size_t)(r->end - r->at) < len)
		return mistake(r);
	buffer_append(r->out, r->at, len);
	r->at += len;
	return true;
}

/* IEEE 754 bits, little-endian. */
static void put_bits(struct run *r, uint64_t bits, size_t bytes)
{
	uint8_t room[8];

	for (size_t i = 0; i < bytes; i++)
		room[i] = (uint8_t)(bits >> 8 * i);
	buffer_append(r->out, room, bytes);
}

static void put_double(struct run *r, double number)
{
	uint64_t bits;

	memcpy(&bits, &number, sizeof(bits));
	put_bits(r, bits, 8);
}

static bool run_integer(struct run *r)
{
	int64_t value;

	if (!take_long(r, &value))
		return false;
	put_long(r, value);
	return true;
}

/* One rounding, to nearest. */
static bool run_integer_to_float(struct run *r)
{
	int64_t value;
	uint32_t bits;

	if (!take_long(r, &value))
		return false;
	float number = (float)value;
	memcpy(&bits, &number, sizeof(bits));
	put_bits(r, bits, 4);
	return true;
}

static bool run_integer_to_double(struct run *r)
{
	int64_t value;

	if (!take_long(r, &value))
		return false;
	put_double(r, (double)value);
	return true;
}

static bool run_float_to_double(struct run *r)
{
	uint32_t bits = 0;
	float number;

	if (r->end - r->at < 4)
		return mistake(r);
	for (int i = 0; i < 4; i++)
		bits |= (uint32_t)*r->at++ << 8 * i;
	memcpy(&number, &bits, sizeof(number));
	put_double(r, (double)number);
	return true;
}

static bool run_bytes(struct run *r, bool text, const struct path_step *step)
{
	int64_t len;

	if (!take_long(r, &len))
		return false;
	if (len < 0 || len > r->end - r->at)
		return mistake(r);
	if (text && !view_is_utf8((struct view){ r->at, (size_t)len }))
		return wrong(r, step, "the writer's bytes are not UTF-8, and the reader wants a string");
	put_long(r, len);
	return copy(r, (size_t)len);
}

static bool run_enum(struct run *r, const struct plan_node *node, const struct path_step *step)
{
	int64_t symbol;

	if (!take_long(r, &symbol))
		return false;
	if (symbol < 0 || (uint64_t)symbol >= node->writer->len)
		return mistake(r);
	if (node->as.symbols[symbol] < 0)
		return wrong(r, step, "the reader's enum %.60s has neither the symbol nor a default",
		             node->reader->name);
	put_long(r, node->as.symbols[symbol]);
	return true;
}

static bool drop(struct run *r, const struct schema_type *type)
{
	size_t len;
	struct view rest = { r->at, (size_t)(r->end - r->at) };

	if (guard_prefix(type, r->name, rest, MIGRATE_VALUES_MAX, &len, NULL) != FATE_OK)
		return mistake(r);
	r->at += len;
	return true;
}

static bool run_step(struct run *r, const struct plan_step *todo, const struct path_step *up)
{
	struct path_step step = { .up = up, .field = todo->name };

	if (todo->kind == STEP_FIELD)
		return run(r, todo->node, &step);
	if (todo->kind == STEP_DROP)
		return drop(r, todo->drop);
	buffer_append_view(r->out, todo->bytes);
	return true;
}

static bool push_mark(struct run *r)
{
	if (r->marks_len == r->marks_cap) {
		size_t cap = r->marks_cap ? 2 * r->marks_cap : 64;
		size_t *marks = realloc(r->marks, cap * sizeof(*marks));
		if (!marks) {
			error_set(r->error, FATE_RETRY, ERR_MEMORY, "no memory to migrate a value");
			return false;
		}
		r->marks = marks;
		r->marks_cap = cap;
	}
	r->marks[r->marks_len++] = r->out->len;
	return true;
}

/* A buffer that nothing was put into has no bytes to point at. */
static const uint8_t *held(const struct buffer *buffer, size_t offset)
{
	return buffer->data ? buffer->data + offset : (const uint8_t *)"";
}

/* The output of the steps, which begins at start and whose ends are the marks from base on, goes where the
 * pieces say. */
static bool put_in_order(struct run *r, const struct plan_node *node, size_t start, size_t base)
{
	const size_t *ends = r->marks + base;

	if (buffer_failed(r->out))
		return true; /* it is said at the end */
	r->scratch.len = 0;
	buffer_append(&r->scratch, held(r->out, start), r->out->len - start);
	if (buffer_failed(&r->scratch)) {
		error_set(r->error, FATE_RETRY, ERR_MEMORY, "no memory to migrate a value");
		return false;
	}
	r->out->len = start;
	for (size_t i = 0; i < node->as.record.pieces_len; i++) {
		const struct plan_piece *piece = &node->as.record.pieces[i];
		size_t from = piece->step == 0 ? start : piece->step == SIZE_MAX ? 0 : ends[piece->step - 1];
		if (piece->step == SIZE_MAX)
			buffer_append_view(r->out, piece->bytes);
		else
			buffer_append(r->out, held(&r->scratch, from - start), ends[piece->step] - from);
	}
	return true;
}

static bool run_record(struct run *r, const struct plan_node *node, const struct path_step *step)
{
	size_t start = r->out->len, base = r->marks_len;
	bool pieces = node->as.record.pieces != NULL;

	for (size_t i = 0; i < node->as.record.steps_len; i++) {
		if (!run_step(r, &node->as.record.steps[i], step) || (pieces && !push_mark(r)))
			return false;
	}
	if (pieces && !put_in_order(r, node, start, base))
		return false;
	r->marks_len = base;
	return true;
}

static bool run_item(struct run *r, const struct plan_node *node, int64_t position,
                     const struct path_step *up)
{
	struct path_step step = { .up = up, .item = position };

	if (node->writer->kind == SCHEMA_MAP && !run_bytes(r, false, &step))
		return false;
	return run(r, node->children[0].node, &step);
}

/* Block by block; the sizes of blocks, where the writer gave any, are left away. */
static bool run_items(struct run *r, const struct plan_node *node, const struct path_step *step)
{
	int64_t position = 0, count, size;

	do {
		if (!take_long(r, &count))
			return false;
		if (count < 0 && !take_long(r, &size))
			return false;
		count = count < 0 ? -count : count;
		put_long(r, count);
		for (int64_t i = 0; i < count; i++) {
			if (!run_item(r, node, position++, step))
				return false;
		}
	} while (count != 0);
	return true;
}

static bool run_from_union(struct run *r, const struct plan_node *node, const struct path_step *step)
{
	int64_t branch;

	if (!take_long(r, &branch))
		return false;
	if (branch < 0 || (uint64_t)branch >= node->children_len)
		return mistake(r);
	return run(r, node->children[branch].node, step);
}

static bool run(struct run *r, const struct plan_node *node, const struct path_step *step)
{
	if (node->dead)
		return refuse(r, node, step);
	switch (node->op) {
	case PLAN_DEAD:
		return refuse(r, node, step);
	case PLAN_NULL:
		return true;
	case PLAN_BOOLEAN:
		return copy(r, 1);
	case PLAN_INTEGER:
		return run_integer(r);
	case PLAN_INTEGER_TO_FLOAT:
		return run_integer_to_float(r);
	case PLAN_INTEGER_TO_DOUBLE:
		return run_integer_to_double(r);
	case PLAN_FLOAT:
		return copy(r, 4);
	case PLAN_FLOAT_TO_DOUBLE:
		return run_float_to_double(r);
	case PLAN_DOUBLE:
		return copy(r, 8);
	case PLAN_BYTES:
	case PLAN_BYTES_TO_STRING:
		return run_bytes(r, node->op == PLAN_BYTES_TO_STRING, step);
	case PLAN_FIXED:
		return copy(r, node->writer->len);
	case PLAN_ENUM:
		return run_enum(r, node, step);
	case PLAN_RECORD:
		return run_record(r, node, step);
	case PLAN_ARRAY:
		return run_items(r, node, step);
	case PLAN_FROM_UNION:
		return run_from_union(r, node, step);
	case PLAN_TO_UNION:
		put_long(r, (int64_t)node->as.branch);
		return run(r, node->children[0].node, step);
	}
	return mistake(r);
}

/* The guard's refusals are of this value. */
static enum fate guarded(const struct schema_type *type, const char *name, struct view body,
                         struct error *error)
{
	enum fate fate = guard_check(type, name, body, MIGRATE_VALUES_MAX, error);

	if (fate == FATE_REJECT)
		plan_say_when(error, ONLY_THIS);
	return fate;
}

static enum fate run_all(const struct plan *plan, struct view body, struct buffer *out, struct error *error)
{
	size_t start = out->len;
	struct run r = {
		.at = body.data, .end = body.data + body.len, .out = out, .name = plan->name, .error = error
	};

	buffer_init(&r.scratch, out->ceiling);
	bool good = run(&r, plan->root, NULL);
	if (good && r.at != r.end)
		good = mistake(&r);
	buffer_done(&r.scratch);
	free(r.marks);
	if (!good)
		return error->fate;
	if (buffer_failed(out))
		return buffer_refused(
			out, error,
			"%.60s: under the reader's schema it takes more than the %zu bytes that there is "
			"room for (only this value)",
			plan->name, out->ceiling - start);
	return guarded(plan->reader->root, plan->name, (struct view){ held(out, start), out->len - start },
	               error);
}

enum fate migrate_run(const struct plan *plan, struct view body, struct buffer *out, struct error *error)
{
	struct error ignored = { 0 }, *to = error ? error : &ignored;
	size_t start = out->len;
	enum fate fate;

	if (view_is_null(body))
		body = VIEW_LITERAL("");
	fate = guarded(plan->writer->root, plan->name, body, to);
	if (fate == FATE_OK)
		fate = run_all(plan, body, out, to);
	if (fate != FATE_OK) {
		out->len = start;
		out->failed = out->starved = false;
	}
	return fate;
}
