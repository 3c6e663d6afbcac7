#include "schemas/validate.h"

#include <stdlib.h>
#include <string.h>

/* A call, or an answer to one. */
struct mark {
	struct view id;
	size_t entry;
	bool call;
	size_t position; /* of the call within its entry */
};

/* By id, and then as they stand: within an entry its answer before its calls. */
static int compare_marks(const void *a, const void *b)
{
	const struct mark *x = a, *y = b;
	int order = view_compare(x->id, y->id);

	if (order != 0)
		return order;
	if (x->entry != y->entry)
		return x->entry < y->entry ? -1 : 1;
	if (x->call != y->call)
		return x->call ? 1 : -1;
	return x->position < y->position ? -1 : x->position > y->position;
}

static bool is_answer(const struct history_entry *entry)
{
	return entry->role == ROLE_TOOL && !view_is_null(entry->tool_call_id);
}

static size_t mark_all(const struct history_entry *history, size_t len, struct mark *marks)
{
	size_t count = 0;

	for (size_t i = 0; i < len; i++) {
		if (is_answer(&history[i]))
			marks[count++] = (struct mark){ .id = history[i].tool_call_id, .entry = i };
		for (size_t k = 0; k < history[i].tool_calls_len; k++)
			marks[count++] = (struct mark){ history[i].tool_calls[k].id, i, true, k };
	}
	return count;
}

/*
 * The first call of one id that stays open, or NULL. An answer closes the last open call before it, so the
 * calls that stay open are closed from the end: it is enough to remember the first of them and their number.
 */
static const struct mark *first_open(const struct mark *marks, size_t len)
{
	const struct mark *first = NULL;
	size_t open = 0;

	for (size_t i = 0; i < len; i++) {
		if (marks[i].call && open++ == 0)
			first = &marks[i];
		else if (!marks[i].call && open > 0)
			open--;
	}
	return open > 0 ? first : NULL;
}

static size_t last_agent(const struct history_entry *history, size_t len)
{
	while (len > 0 && history[len - 1].role != ROLE_AGENT)
		len--;
	return len > 0 ? len - 1 : SIZE_MAX;
}

static enum fate check_marks(const struct mark *marks, size_t len, size_t allowed, struct error *error)
{
	for (size_t start = 0, end; start < len; start = end) {
		for (end = start + 1; end < len && view_equal(marks[start].id, marks[end].id); end++)
			;
		const struct mark *open = first_open(marks + start, end - start);
		if (open && open->entry != allowed)
			return error_set(error, FATE_REJECT, ERR_NOT_AT_BOUNDARY,
			                 "history[%zu].tool_calls[%zu] has no answer: with limits.boundary = strict only "
			                 "the last AGENT entry may have calls that are open",
			                 open->entry, open->position);
	}
	return FATE_OK;
}

enum fate validate_boundary(const struct history_entry *history, size_t len, struct arena *arena,
                            struct error *error)
{
	size_t count = 0;

	for (size_t i = 0; i < len; i++)
		count += history[i].tool_calls_len + is_answer(&history[i]);
	struct mark *marks = arena_array(arena, count, sizeof(*marks));
	if (!marks)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no room in the arena to check the boundary");
	mark_all(history, len, marks);
	qsort(marks, count, sizeof(*marks), compare_marks);
	return check_marks(marks, count, last_agent(history, len), error);
}
