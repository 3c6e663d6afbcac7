/*
 * The fields of two records. Defaults that stand side by side become one piece of bytes, so that running a
 * record costs no more steps than the writer has fields, however many the reader fills in.
 */
#include "schemas/plan.h"

#include <string.h>

#define FALLBACK_BYTES_MAX ((size_t)8 * 1024 * 1024)
#define NOT_THERE          SIZE_MAX
#define OF_TWO             (-1)

struct fields {
	const struct schema_type *writer;
	const struct schema_type *reader;
	size_t *source; /* by position in the reader: the writer's field, or NOT_THERE */
	size_t *target; /* the other way round */
};

/* alias -> position of its field in a reader's record, made once. */
static const json_t *aliases_of(struct planner *p, const struct schema_type *reader)
{
	json_t *map = p->aliases[reader->ordinal];
	if (map)
		return map;
	map = json_object();
	for (size_t i = 0; i < reader->len; i++) {
		size_t position;
		const json_t *alias, *aliases = json_object_get(reader->fields[i].json, "aliases");
		json_array_foreach(aliases, position, alias)
		{
			const char *name = json_string_value(alias);
			const json_t *other = json_object_get(map, name);
			json_int_t value = other && json_integer_value(other) != (json_int_t)i ? OF_TWO : (json_int_t)i;
			if (json_object_set_new(map, name, json_integer(value)) != 0)
				p->failed = true;
		}
	}
	p->aliases[reader->ordinal] = map;
	if (!map || p->failed) {
		p->failed = true;
		error_set(p->error, FATE_RETRY, ERR_MEMORY, "no memory to plan a migration");
	}
	return map;
}

/* The only child is what stands in the way. */
static void block(struct planner *p, struct plan_node *node, enum plan_why why, const char *field,
                  const char *name)
{
	node->children = plan_alloc(p, 1, sizeof(*node->children));
	if (!node->children)
		return;
	node->children_len = 1;
	node->children[0].name = field;
	node->children[0].node = plan_dead_end(p, why, node->writer, node->reader, name);
}

/* Aliases rewrite the writer's names; then equal names meet. False: the record is blocked. */
static bool meet(struct planner *p, struct plan_node *node, struct fields *fields)
{
	const json_t *aliases = aliases_of(p, fields->reader);

	for (size_t i = 0; i < fields->reader->len && !p->failed; i++)
		fields->source[i] = NOT_THERE;
	for (size_t i = 0; i < fields->writer->len && !p->failed; i++) {
		const char *name = fields->writer->fields[i].name;
		const json_t *alias = json_object_get(aliases, name);
		long position = alias ? (long)json_integer_value(alias) : schema_find(fields->reader, name);
		fields->target[i] = position < 0 ? NOT_THERE : (size_t)position;
		if (alias && position == OF_TWO) {
			block(p, node, WHY_ALIAS, name, name);
			return false;
		}
		if (position < 0)
			continue;
		if (fields->source[position] != NOT_THERE) {
			block(p, node, WHY_CLASH, fields->reader->fields[position].name, name);
			return false;
		}
		fields->source[position] = i;
	}
	return !p->failed;
}

/* The nodes of the reader's fields; one that cannot be had is a dead end. */
static void bear(struct planner *p, struct plan_node *node, const struct fields *fields)
{
	size_t len = fields->reader->len;

	node->children = plan_alloc(p, len, sizeof(*node->children));
	node->children_len = node->children ? len : 0;
	for (size_t i = 0; i < node->children_len && !p->failed; i++) {
		const struct schema_field *field = &fields->reader->fields[i];
		struct plan_child *child = &node->children[i];
		child->name = field->name;
		if (fields->source[i] != NOT_THERE)
			child->node = plan_node_for(p, fields->writer->fields[fields->source[i]].type, field->type);
		else if (!field->fallback)
			child->node = plan_dead_end(p, WHY_MISSING, node->writer, field->type, NULL);
		else if (view_is_null(plan_encode_default(p, field)))
			child->node = plan_dead_end(p, WHY_DEFAULT, node->writer, field->type, NULL);
		if (!node->dead && child->node && child->node->dead) {
			node->dead = true;
			node->cause = i;
		}
	}
}

/* The defaults of the reader's fields from..to, one after the other. */
static struct view join_defaults(struct planner *p, const struct schema_type *reader, size_t from, size_t to)
{
	struct view joined = VIEW_LITERAL("");
	size_t len = 0;
	uint8_t *room = NULL;

	for (size_t i = from; i < to; i++)
		len += plan_encode_default(p, &reader->fields[i]).len;
	p->fallback_bytes += len;
	if (p->fallback_bytes > FALLBACK_BYTES_MAX)
		(void)plan_count(p, SIZE_MAX / 2, 0);
	if (len > 0)
		room = plan_alloc(p, len, 1);
	if (!room)
		return joined;
	joined = (struct view){ room, len };
	for (size_t i = from; i < to; i++) {
		struct view bytes = plan_encode_default(p, &reader->fields[i]);
		if (bytes.len > 0)
			memcpy(room, bytes.data, bytes.len);
		room += bytes.len;
	}
	return joined;
}

static void add_bytes(struct plan_node *node, struct view bytes)
{
	if (bytes.len > 0)
		node->as.record.steps[node->as.record.steps_len++] =
			(struct plan_step){ .kind = STEP_BYTES, .bytes = bytes };
}

/* What is done with the writer's field. */
static void add_step(struct plan_node *node, const struct fields *fields, size_t field)
{
	struct plan_step *step = &node->as.record.steps[node->as.record.steps_len++];
	size_t target = fields->target[field];

	if (target == NOT_THERE)
		*step = (struct plan_step){ .kind = STEP_DROP,
			                        .name = fields->writer->fields[field].name,
			                        .drop = fields->writer->fields[field].type };
	else
		*step = (struct plan_step){ .kind = STEP_FIELD,
			                        .name = fields->reader->fields[target].name,
			                        .node = node->children[target].node };
}

static void fill_ordered(struct planner *p, struct plan_node *node, const struct fields *fields)
{
	size_t next = 0;

	for (size_t i = 0; i < fields->writer->len; i++) {
		size_t target = fields->target[i];
		if (target != NOT_THERE) {
			add_bytes(node, join_defaults(p, fields->reader, next, target));
			next = target + 1;
		}
		add_step(node, fields, i);
	}
	add_bytes(node, join_defaults(p, fields->reader, next, fields->reader->len));
}

static void add_piece(struct plan_node *node, size_t step, struct view bytes)
{
	if (step != SIZE_MAX || bytes.len > 0)
		node->as.record.pieces[node->as.record.pieces_len++] = (struct plan_piece){ step, bytes };
}

static void fill_reordered(struct planner *p, struct plan_node *node, const struct fields *fields)
{
	const struct schema_type *reader = fields->reader;
	size_t next = 0;

	for (size_t i = 0; i < fields->writer->len; i++)
		add_step(node, fields, i);
	for (size_t i = 0; i < reader->len; i++) {
		if (fields->source[i] == NOT_THERE)
			continue;
		add_piece(node, SIZE_MAX, join_defaults(p, reader, next, i));
		add_piece(node, fields->source[i], VIEW_NULL);
		next = i + 1;
	}
	add_piece(node, SIZE_MAX, join_defaults(p, reader, next, reader->len));
}

static bool is_ordered(const struct fields *fields)
{
	size_t next = 0;

	for (size_t i = 0; i < fields->writer->len; i++) {
		size_t target = fields->target[i];
		if (target == NOT_THERE)
			continue;
		if (target < next)
			return false;
		next = target + 1;
	}
	return true;
}

void plan_fill_record(struct planner *p, struct plan_node *node)
{
	struct fields fields = { .writer = node->writer, .reader = node->reader };
	size_t most = fields.writer->len + fields.reader->len + 1;
	if (!plan_count(p, most, most))
		return;
	fields.source = plan_alloc(p, fields.reader->len, sizeof(*fields.source));
	fields.target = plan_alloc(p, fields.writer->len, sizeof(*fields.target));
	if (!fields.source || !fields.target || !meet(p, node, &fields))
		return;
	bear(p, node, &fields);
	if (p->failed || node->dead)
		return;
	node->op = PLAN_RECORD;
	bool ordered = is_ordered(&fields);
	node->as.record.steps = plan_alloc(p, most, sizeof(*node->as.record.steps));
	if (!ordered)
		node->as.record.pieces = plan_alloc(p, most, sizeof(*node->as.record.pieces));
	if (p->failed)
		return;
	if (ordered)
		fill_ordered(p, node, &fields);
	else
		fill_reordered(p, node, &fields);
}
