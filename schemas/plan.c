/*
 * Making a plan: a list of pairs of types to look at, which grows while it is worked off. Nothing here calls
 * itself, so that types that name each other ten thousand deep cost no stack.
 */
#include "schemas/plan.h"

#include <stdlib.h>
#include <string.h>

#define PARTS_MAX ((size_t)200000)
#define LOOKS_MAX ((size_t)10 * 1000 * 1000)
#define ARENA_MAX ((size_t)48 * 1024 * 1024)

bool plan_count(struct planner *p, size_t parts, size_t looks)
{
	p->parts += parts;
	p->looks += looks;
	if (!p->failed && (p->parts > PARTS_MAX || p->looks > LOOKS_MAX)) {
		p->failed = true;
		error_set(p->error, FATE_REJECT, ERR_INVALID,
		          "the two schemas meet in more than %zu places, which is more than is looked at (always)",
		          PARTS_MAX);
	}
	return !p->failed;
}

void plan_no_memory(struct planner *p)
{
	if (!p->failed)
		error_set(p->error, FATE_RETRY, ERR_MEMORY, "no memory to plan a migration");
	p->failed = true;
}

void *plan_alloc(struct planner *p, size_t count, size_t size)
{
	void *data = p->failed ? NULL : arena_array(p->arena, count, size);

	if (!data)
		plan_no_memory(p);
	return data;
}

static size_t pair_hash(const struct schema_type *writer, const struct schema_type *reader)
{
	uint64_t mixed = (uint64_t)(uintptr_t)writer * 0x9e3779b97f4a7c15u;

	mixed = (mixed ^ mixed >> 29 ^ (uint64_t)(uintptr_t)reader) * 0xbf58476d1ce4e5b9u;
	return (size_t)(mixed ^ mixed >> 32);
}

static struct pair_slot *pair_find(struct planner *p, const struct schema_type *writer,
                                   const struct schema_type *reader)
{
	size_t at = pair_hash(writer, reader) & (p->pairs_cap - 1);

	while (p->pairs[at].node && (p->pairs[at].node->writer != writer || p->pairs[at].node->reader != reader))
		at = (at + 1) & (p->pairs_cap - 1);
	return &p->pairs[at];
}

/* Room for one more node in the list and, at half full, in the table. */
static bool grow(struct planner *p)
{
	if (p->nodes_len < p->nodes_cap)
		return true;
	size_t cap = p->nodes_cap ? p->nodes_cap * 2 : 64;
	struct plan_node **nodes = realloc(p->nodes, cap * sizeof(struct plan_node *));
	struct pair_slot *pairs = calloc(2 * cap, sizeof(*pairs));
	if (nodes)
		p->nodes = nodes;
	if (!nodes || !pairs) {
		free(pairs);
		plan_no_memory(p);
		return false;
	}
	free(p->pairs);
	p->pairs = pairs;
	p->pairs_cap = 2 * cap;
	p->nodes_cap = cap;
	for (size_t i = 0; i < p->nodes_len; i++)
		pair_find(p, p->nodes[i]->writer, p->nodes[i]->reader)->node = p->nodes[i];
	return true;
}

static struct plan_node *node_new(struct planner *p, const struct schema_type *writer,
                                  const struct schema_type *reader)
{
	struct plan_node *node = plan_count(p, 1, 0) ? plan_alloc(p, 1, sizeof(*node)) : NULL;

	if (node) {
		node->writer = writer;
		node->reader = reader;
	}
	return node;
}

struct plan_node *plan_node_for(struct planner *p, const struct schema_type *writer,
                                const struct schema_type *reader)
{
	if (p->failed || !grow(p))
		return NULL;
	struct pair_slot *slot = pair_find(p, writer, reader);
	if (!slot->node) {
		struct plan_node *node = node_new(p, writer, reader);
		if (!node)
			return NULL;
		slot->node = node;
		p->nodes[p->nodes_len++] = node;
	}
	return slot->node;
}

struct plan_node *plan_dead_end(struct planner *p, enum plan_why why, const struct schema_type *writer,
                                const struct schema_type *reader, const char *name)
{
	struct plan_node *node = node_new(p, writer, reader);

	if (node) {
		node->why = why;
		node->name = name;
		node->dead = true;
	}
	return node;
}

static bool children_new(struct planner *p, struct plan_node *node, size_t len)
{
	if (!plan_count(p, len, 0))
		return false;
	node->children = plan_alloc(p, len, sizeof(*node->children));
	node->children_len = node->children ? len : 0;
	return node->children != NULL;
}

static void fill_child(struct planner *p, struct plan_node *node, enum plan_op op,
                       const struct schema_type *writer, const struct schema_type *reader)
{
	if (!children_new(p, node, 1))
		return;
	node->op = op;
	node->children[0].node = plan_node_for(p, writer, reader);
}

static void fill_from_union(struct planner *p, struct plan_node *node)
{
	if (!children_new(p, node, node->writer->len))
		return;
	node->op = PLAN_FROM_UNION;
	for (size_t i = 0; i < node->writer->len && !p->failed; i++)
		node->children[i].node = plan_node_for(p, node->writer->branches[i], node->reader);
}

static void fill_to_union(struct planner *p, struct plan_node *node)
{
	long branch = plan_choose(p, node->writer, node->reader);

	if (branch < 0) {
		node->why = WHY_BRANCH;
		return;
	}
	node->as.branch = (size_t)branch;
	fill_child(p, node, PLAN_TO_UNION, node->writer, node->reader->branches[branch]);
}

/* The reader's own default takes the symbols that it does not have. */
static long fallback_symbol(const struct schema_type *reader)
{
	const char *name = json_string_value(json_object_get(reader->json, "default"));

	return name ? schema_find(reader, name) : -1;
}

static void fill_enum(struct planner *p, struct plan_node *node)
{
	const struct schema_type *writer = node->writer, *reader = node->reader;
	long fallback = fallback_symbol(reader);
	bool any = false;
	int32_t *symbols =
		plan_count(p, writer->len / 8, writer->len) ? plan_alloc(p, writer->len, sizeof(*symbols)) : NULL;
	if (!symbols)
		return;
	for (size_t i = 0; i < writer->len; i++) {
		long position = schema_find(reader, writer->symbols[i]);
		symbols[i] = (int32_t)(position >= 0 ? position : fallback);
		any = any || symbols[i] >= 0;
	}
	node->op = any ? PLAN_ENUM : PLAN_DEAD;
	node->why = any ? WHY_NOT : WHY_SYMBOLS;
	node->as.symbols = symbols;
}

static enum plan_op integer_op(enum schema_kind reader)
{
	if (reader == SCHEMA_FLOAT)
		return PLAN_INTEGER_TO_FLOAT;
	return reader == SCHEMA_DOUBLE ? PLAN_INTEGER_TO_DOUBLE : PLAN_INTEGER;
}

/* The types match; neither is a union. */
static void fill_same(struct planner *p, struct plan_node *node)
{
	enum schema_kind reader = node->reader->kind;

	switch (node->writer->kind) {
	case SCHEMA_NULL:
		node->op = PLAN_NULL;
		return;
	case SCHEMA_BOOLEAN:
		node->op = PLAN_BOOLEAN;
		return;
	case SCHEMA_INT:
	case SCHEMA_LONG:
		node->op = integer_op(reader);
		return;
	case SCHEMA_FLOAT:
		node->op = reader == SCHEMA_FLOAT ? PLAN_FLOAT : PLAN_FLOAT_TO_DOUBLE;
		return;
	case SCHEMA_DOUBLE:
		node->op = PLAN_DOUBLE;
		return;
	case SCHEMA_BYTES:
		node->op = reader == SCHEMA_STRING ? PLAN_BYTES_TO_STRING : PLAN_BYTES;
		return;
	case SCHEMA_STRING:
		node->op = PLAN_BYTES;
		return;
	case SCHEMA_FIXED:
		node->op = PLAN_FIXED;
		return;
	case SCHEMA_ENUM:
		fill_enum(p, node);
		return;
	case SCHEMA_RECORD:
		plan_fill_record(p, node);
		return;
	case SCHEMA_ARRAY:
	case SCHEMA_MAP:
		fill_child(p, node, PLAN_ARRAY, node->writer->item, node->reader->item);
		return;
	case SCHEMA_UNION:
		return;
	}
}

static void fill(struct planner *p, struct plan_node *node)
{
	if (node->writer->kind == SCHEMA_UNION) {
		fill_from_union(p, node);
	} else if (node->reader->kind == SCHEMA_UNION) {
		fill_to_union(p, node);
	} else {
		node->why = plan_match(p, node->writer, node->reader);
		if (node->why == WHY_NOT)
			fill_same(p, node);
	}
	node->dead = node->op == PLAN_DEAD;
}

static const char *root_name(const struct schema_type *type)
{
	const char *dot = type->name ? strrchr(type->name, '.') : NULL;

	if (!type->name)
		return schema_kind_name(type->kind);
	return dot ? dot + 1 : type->name;
}

/* The root must let some value through. */
static enum fate check_root(const struct plan *plan, struct error *error)
{
	char path[160] = "", why[200];
	struct plan_node *root = plan->root;

	if (root->alive && !root->dead)
		return FATE_OK;
	if (!root->dead)
		root->why = WHY_ENDLESS;
	plan_explain(root, path, sizeof(path), why, sizeof(why));
	error_set(error, FATE_REJECT, ERR_INVALID, "%.60s%s: %s", plan->name, path, why);
	plan_say_when(error, " (always)");
	return FATE_REJECT;
}

static void build(struct planner *p)
{
	const struct schema *reader = p->plan->reader;
	size_t fields = 0;

	for (size_t i = 0; i < reader->named_len; i++)
		fields += reader->named[i]->kind == SCHEMA_RECORD ? reader->named[i]->len : 0;
	p->aliases = calloc(reader->named_len + 1, sizeof(*p->aliases));
	p->fallbacks = plan_alloc(p, fields, sizeof(*p->fallbacks));
	if (!p->aliases)
		plan_no_memory(p);
	p->plan->root = plan_node_for(p, p->plan->writer->root, reader->root);
	for (size_t i = 0; i < p->nodes_len && !p->failed; i++)
		fill(p, p->nodes[i]);
	if (!p->failed)
		(void)plan_mark(p);
}

static void planner_done(struct planner *p)
{
	for (size_t i = 0; p->aliases && i < p->plan->reader->named_len; i++)
		json_decref(p->aliases[i]);
	free(p->aliases);
	free(p->nodes);
	free(p->pairs);
	buffer_done(&p->encoded);
}

enum fate plan_make(struct plan **ret_plan, const struct schema *writer, const struct schema *reader,
                    struct error *error)
{
	struct plan *plan = calloc(1, sizeof(*plan));
	if (!plan || !(plan->arena = arena_new(ARENA_MAX))) {
		free(plan);
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory to plan a migration");
	}
	plan->writer = writer;
	plan->reader = reader;
	plan->name = root_name(reader->root);
	struct planner planner = { .plan = plan, .arena = plan->arena, .error = error };
	buffer_init(&planner.encoded, MIGRATE_DEFAULT_MAX);
	build(&planner);
	planner_done(&planner);
	if (planner.failed) {
		migrate_plan_free(plan);
		return error->fate;
	}
	*ret_plan = plan;
	return FATE_OK;
}

enum fate migrate_plan_new(struct plan **ret_plan, const struct schema *writer, const struct schema *reader,
                           struct error *error)
{
	struct error ignored = { 0 }, *to = error ? error : &ignored;
	struct plan *plan;
	enum fate fate = plan_make(&plan, writer, reader, to);

	if (fate != FATE_OK)
		return fate;
	fate = check_root(plan, to);
	if (fate == FATE_OK)
		*ret_plan = plan;
	else
		migrate_plan_free(plan);
	return fate;
}

void migrate_plan_free(struct plan *plan)
{
	if (!plan)
		return;
	arena_free(plan->arena);
	free(plan);
}

const struct schema_type *migrate_reader(const struct plan *plan)
{
	return plan->reader->root;
}
