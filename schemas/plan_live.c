/*
 * Which nodes let a value through? Two questions, each answered by telling the users of what became known, so
 * that each edge is walked once (as in schema_finite.c).
 *
 * Dead: the types do not fit. A record, array or map dies with any of its parts, a union with all of them; a
 * circle by itself kills nobody. Alive: there is a value, one that ends, which passes. A record lives when all
 * of its parts do, a union when one does, an array or map always: it may be empty.
 */
#include "schemas/plan.h"

#include <stdio.h>
#include <string.h>

static bool use(struct planner *p, struct plan_node *user, size_t child)
{
	struct plan_node *node = user->children[child].node;
	struct plan_user *edge = plan_alloc(p, 1, sizeof(*edge));

	if (!edge)
		return false;
	*edge = (struct plan_user){ user, child, node->users };
	node->users = edge;
	return true;
}

/* The work is a list through the nodes themselves: nobody is put on it twice. */
struct work {
	struct plan_node **nodes;
	size_t len;
};

static size_t parts_of(const struct plan_node *node)
{
	size_t parts = 0;

	for (size_t i = 0; i < node->children_len; i++)
		parts += node->children[i].node != NULL;
	return parts;
}

/* More to say than that the types are not the same? */
static bool is_telling(const struct plan_node *node)
{
	return node->children_len > 0 || (node->why != WHY_TYPE && node->why != WHY_BRANCH);
}

/* A union that has lost all its branches gives the reason of the one that has most to say; null has least. */
static size_t cause_of(const struct plan_node *node, size_t child)
{
	size_t cause = child;

	if (node->op != PLAN_FROM_UNION)
		return child;
	for (size_t i = node->children_len; i-- > 0;) {
		if (node->children[i].node->writer->kind != SCHEMA_NULL)
			cause = i;
	}
	for (size_t i = node->children_len; i-- > 0;) {
		if (is_telling(node->children[i].node))
			cause = i;
	}
	return cause;
}

static void bury(struct work *work, struct plan_node *node, size_t child)
{
	if (node->dead || (node->op == PLAN_FROM_UNION && --node->pending > 0))
		return;
	node->dead = true;
	node->cause = cause_of(node, child);
	work->nodes[work->len++] = node;
}

static void mark_dead(struct planner *p, struct work *work)
{
	for (size_t i = 0; i < p->nodes_len; i++) {
		struct plan_node *node = p->nodes[i];
		node->pending = parts_of(node);
		if (node->op == PLAN_FROM_UNION && node->children_len == 0)
			node->dead = true;
		if (node->dead)
			work->nodes[work->len++] = node;
	}
	for (size_t done = 0; done < work->len; done++) {
		for (struct plan_user *user = work->nodes[done]->users; user; user = user->next)
			bury(work, user->node, user->child);
	}
}

static void revive(struct work *work, struct plan_node *node)
{
	if (node->dead || node->alive)
		return;
	if (node->op == PLAN_RECORD && node->pending > 0 && --node->pending > 0)
		return;
	node->alive = true;
	work->nodes[work->len++] = node;
}

static void mark_alive(struct planner *p, struct work *work)
{
	for (size_t i = 0; i < p->nodes_len; i++) {
		struct plan_node *node = p->nodes[i];
		node->pending = parts_of(node);
		if (node->pending == 0 || node->op == PLAN_ARRAY)
			revive(work, node);
	}
	for (size_t done = 0; done < work->len; done++) {
		for (struct plan_user *user = work->nodes[done]->users; user; user = user->next)
			revive(work, user->node);
	}
}

bool plan_mark(struct planner *p)
{
	struct work work = { .nodes = plan_alloc(p, p->nodes_len, sizeof(*work.nodes)) };

	if (!work.nodes)
		return false;
	for (size_t i = 0; i < p->nodes_len; i++) {
		for (size_t child = 0; child < p->nodes[i]->children_len; child++) {
			if (p->nodes[i]->children[child].node && !use(p, p->nodes[i], child))
				return false;
		}
	}
	mark_dead(p, &work);
	work.len = 0;
	mark_alive(p, &work);
	return true;
}

static const char *type_name(const struct schema_type *type)
{
	return type->name ? type->name : schema_kind_name(type->kind);
}

void plan_say_why(const struct plan_node *node, char *why, size_t cap)
{
	const char *writer = type_name(node->writer), *reader = type_name(node->reader);

	switch (node->why) {
	case WHY_TYPE:
	case WHY_NOT:
		snprintf(why, cap, "the writer's %.60s is not the reader's %.60s", writer, reader);
		return;
	case WHY_NAME:
		snprintf(why, cap, "the writer's %s %.60s is not the reader's %.60s, which has no such alias",
		         schema_kind_name(node->writer->kind), writer, reader);
		return;
	case WHY_SIZE:
		snprintf(why, cap, "the writer's fixed has %zu bytes, the reader's %zu", node->writer->len,
		         node->reader->len);
		return;
	case WHY_DECIMAL:
		snprintf(why, cap, "the decimals differ in precision or scale");
		return;
	case WHY_BRANCH:
		snprintf(why, cap, "the writer's %.60s is no branch of the reader's union", writer);
		return;
	case WHY_SYMBOLS:
		snprintf(why, cap, "the reader's enum %.60s has none of the writer's symbols, and no default",
		         reader);
		return;
	case WHY_MISSING:
		snprintf(why, cap, "the writer has no such field, and the reader has no default for it");
		return;
	case WHY_CLASH:
		snprintf(why, cap, "two fields of the writer come to it, %.60s is the second", node->name);
		return;
	case WHY_ALIAS:
		snprintf(why, cap, "two fields of the reader have this alias");
		return;
	case WHY_DEFAULT:
		snprintf(why, cap, "its default takes more than %zu bytes or is nested more than %d deep",
		         MIGRATE_DEFAULT_MAX, SCHEMA_DEPTH_MAX);
		return;
	case WHY_ENDLESS:
		snprintf(why, cap, "no value of the writer's %.60s that ends can be read", writer);
		return;
	}
}

/* Causes go from a node to one that was dead before it, so they end. */
void plan_explain(const struct plan_node *node, char *path, size_t path_cap, char *why, size_t why_cap)
{
	size_t len = strlen(path);

	while (node->dead && node->children_len > 0) {
		const struct plan_child *child = &node->children[node->cause];
		const char *dot = child->name ? "." : node->op == PLAN_ARRAY ? "[]" : "";
		int more = snprintf(path + len, path_cap - len, "%s%.60s", dot, child->name ? child->name : "");
		if (more > 0 && (size_t)more < path_cap - len)
			len += (size_t)more;
		node = child->node;
	}
	plan_say_why(node, why, why_cap);
}

void plan_say_when(struct error *error, const char *when)
{
	size_t len = strlen(error->message), most = sizeof(error->message) - 1 - strlen(when);

	snprintf(error->message + (len < most ? len : most), strlen(when) + 1, "%s", when);
}
