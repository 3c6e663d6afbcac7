/*
 * Does a value of each type exist? Fields, branches and references are edges; what is known to have a
 * value tells its users. Each edge is walked once (Dowling and Gallier, "Linear-time algorithms for testing
 * the satisfiability of propositional Horn formulae", 1984), so circles of any length cost nothing extra.
 */
#include "schemas/schema_parser.h"

/*
 * pending counts what a record still waits for: its fields whose types have no known value, and one for
 * not being complete. A union waits for any one branch.
 */
bool finite_use(struct parser *p, struct schema_type *user, struct schema_type *part)
{
	if (part->finite) {
		if (user->kind == SCHEMA_UNION)
			user->finite = true; /* nobody can have used it before it was complete */
		return true;
	}
	struct schema_use *use = arena_alloc(p->arena, sizeof(*use));
	if (!use)
		return parser_no_memory(p);
	*use = (struct schema_use){ .user = user, .next = part->uses };
	part->uses = use;
	user->pending++;
	return true;
}

static bool hears(struct schema_type *user)
{
	if (user->finite)
		return false;
	user->pending--;
	return user->kind == SCHEMA_UNION || user->pending == 0;
}

/* The list of uses of what became finite is appended to the work: no recursion. */
static void tell(struct schema_use *work)
{
	while (work) {
		struct schema_type *user = work->user;
		work = work->next;
		if (!hears(user))
			continue;
		user->finite = true;
		struct schema_use *more = user->uses;
		user->uses = NULL;
		while (more) {
			struct schema_use *next = more->next;
			more->next = work;
			work = more;
			more = next;
		}
	}
}

void finite_complete(struct schema_type *type)
{
	if (type->kind == SCHEMA_RECORD && --type->pending == 0)
		type->finite = true;
	if (type->finite) {
		struct schema_use *uses = type->uses;
		type->uses = NULL;
		tell(uses);
	}
}
