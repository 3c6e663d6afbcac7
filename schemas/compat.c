/*
 * Whether everything that a writer may write can be read: a walk over the whole plan, in which a node with parts is
 * entered once and one without is looked at wherever it stands. A plan without a dead end anywhere lets every
 * value through: values end, and each of their parts meets a node that takes it.
 */
#include "schemas/compat.h"

#include "schemas/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define SYMBOLS_SHOWN 3
#define PATH_STEPS    64 /* of a path are shown, those nearest to the root */

/* A node on the walk, and the edge by which it was found. */
struct stop {
	const struct plan_node *node;
	size_t from; /* the stop before it; its own number at the root */
	size_t child;
};

struct walk {
	const struct plan *plan;
	struct stop *stops;
	size_t len, cap;
	struct compat_report *report;
};

static bool visit(struct walk *walk, struct plan_node *node, size_t from, size_t child)
{
	if (!node || (node->seen && node->children_len > 0))
		return true;
	if (walk->len == walk->cap) {
		size_t cap = walk->cap > 0 ? walk->cap * 2 : 64;
		struct stop *stops = realloc(walk->stops, cap * sizeof(*stops));
		if (!stops)
			return false;
		walk->stops = stops;
		walk->cap = cap;
	}
	node->seen = true;
	walk->stops[walk->len++] = (struct stop){ node, from, child };
	return true;
}

/* The path of a stop: its edges are followed back to the root, then printed in the other direction. */
static void print_path(const struct walk *walk, size_t stop, char path[COMPAT_PATH_SIZE])
{
	size_t steps[PATH_STEPS], count = 0, len;

	for (; walk->stops[stop].from != stop; stop = walk->stops[stop].from)
		steps[count++ % PATH_STEPS] = stop;
	len = (size_t)snprintf(path, COMPAT_PATH_SIZE, "%.60s", walk->plan->name);
	for (size_t i = count; i-- > 0 && count - i <= PATH_STEPS;) {
		const struct stop *at = &walk->stops[steps[i % PATH_STEPS]];
		const struct plan_node *parent = walk->stops[at->from].node;
		const char *name = parent->children[at->child].name;
		size_t room = COMPAT_PATH_SIZE - len;
		size_t step = name ? 1 + strnlen(name, 60) : parent->op == PLAN_ARRAY ? 2 : 0;
		if (step >= room)
			break;
		if (name)
			snprintf(path + len, room, ".%.60s", name);
		else if (step > 0)
			snprintf(path + len, room, "[]");
		len += step;
	}
}

static void tell(const struct walk *walk, size_t stop, struct compat_reason *reasons, size_t *count,
                 const char *why)
{
	if (*count < COMPAT_REASONS_MAX) {
		print_path(walk, stop, reasons[*count].path);
		snprintf(reasons[*count].why, COMPAT_WHY_SIZE, "%s", why);
	}
	(*count)++;
}

/* Some symbols have a place, and these have not. */
static bool lacks_symbols(const struct plan_node *node, char *why, size_t cap)
{
	size_t lacking = 0, len = 0;
	char names[160] = "", more[40] = "";

	for (size_t i = 0; i < node->writer->len; i++) {
		if (node->as.symbols[i] >= 0 || ++lacking > SYMBOLS_SHOWN)
			continue;
		int put = snprintf(names + len, sizeof(names) - len, "%s%.40s", len > 0 ? ", " : "",
		                   node->writer->symbols[i]);
		len += put > 0 ? (size_t)put : 0;
	}
	if (lacking > SYMBOLS_SHOWN)
		snprintf(more, sizeof(more), " and %zu more", lacking - SYMBOLS_SHOWN);
	snprintf(why, cap, "the reader's enum %.60s lacks %s%s of the writer's, and has no default",
	         node->reader->name, names, more);
	return lacking > 0;
}

static void judge(struct walk *walk, size_t stop)
{
	const struct plan_node *node = walk->stops[stop].node;
	struct compat_report *report = walk->report;
	char why[COMPAT_WHY_SIZE];

	if (node->dead && node->children_len == 0) {
		plan_say_why(node, why, sizeof(why));
		tell(walk, stop, report->reasons, &report->reasons_count, why);
	} else if (node->op == PLAN_ENUM && lacks_symbols(node, why, sizeof(why))) {
		tell(walk, stop, report->reasons, &report->reasons_count, why);
	} else if (node->op == PLAN_BYTES_TO_STRING) {
		tell(walk, stop, report->warnings, &report->warnings_count,
		     "the writer's bytes become a string: those that are not UTF-8 will be refused");
	}
}

static bool walk_all(struct walk *walk)
{
	if (!visit(walk, walk->plan->root, 0, 0))
		return false;
	for (size_t at = 0; at < walk->len; at++) {
		const struct plan_node *node = walk->stops[at].node;
		judge(walk, at);
		for (size_t i = 0; i < node->children_len; i++) {
			if (!visit(walk, node->children[i].node, at, i))
				return false;
		}
	}
	return true;
}

enum fate compat_check(const struct schema *writer, const struct schema *reader,
                       struct compat_report *ret_report, struct error *error)
{
	struct error ignored = { 0 }, *to = error ? error : &ignored;
	struct plan *plan;
	enum fate fate = plan_make(&plan, writer, reader, to);

	if (fate != FATE_OK)
		return fate;
	memset(ret_report, 0, sizeof(*ret_report));
	struct walk walk = { .plan = plan, .report = ret_report };
	ret_report->never = plan->root->dead || !plan->root->alive;
	if (!walk_all(&walk))
		fate = error_set(to, FATE_RETRY, ERR_MEMORY, "no memory to compare two schemas");
	free(walk.stops);
	migrate_plan_free(plan);
	return fate;
}

/* ---- modes ---- */

static const struct mode {
	const char *name;
	bool backward, forward, all;
} modes[] = {
	[COMPAT_NONE] = { "NONE", false, false, false },
	[COMPAT_BACKWARD] = { "BACKWARD", true, false, false },
	[COMPAT_BACKWARD_TRANSITIVE] = { "BACKWARD_TRANSITIVE", true, false, true },
	[COMPAT_FORWARD] = { "FORWARD", false, true, false },
	[COMPAT_FORWARD_TRANSITIVE] = { "FORWARD_TRANSITIVE", false, true, true },
	[COMPAT_FULL] = { "FULL", true, true, false },
	[COMPAT_FULL_TRANSITIVE] = { "FULL_TRANSITIVE", true, true, true },
};

const char *compat_mode_name(enum compat_mode mode)
{
	return modes[mode].name;
}

bool compat_mode_parse(struct view text, enum compat_mode *ret_mode)
{
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (text.len != strlen(modes[i].name) ||
		    strncasecmp((const char *)text.data, modes[i].name, text.len) != 0)
			continue;
		*ret_mode = (enum compat_mode)i;
		return true;
	}
	return false;
}

bool compat_mode_backward(enum compat_mode mode, bool last)
{
	return modes[mode].backward && (last || modes[mode].all);
}

bool compat_mode_forward(enum compat_mode mode, bool last)
{
	return modes[mode].forward && (last || modes[mode].all);
}
