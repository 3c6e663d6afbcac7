#include "cli/text_set.h"

#include <stdlib.h>

#define CAP_FIRST 1024
#define BYTES_MAX ((size_t)4 << 30)

/* FNV-1a (Fowler, Noll, Vo), 64 bits. */
static uint64_t hash(struct view text)
{
	uint64_t bits = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < text.len; i++)
		bits = (bits ^ text.data[i]) * UINT64_C(0x100000001b3);
	return bits;
}

/* Where it is, or the free place where it would be. */
static size_t place(const struct text_set *set, struct view text)
{
	size_t at = (size_t)hash(text) & (set->cap - 1);

	while (!view_is_null(set->entries[at]) && !view_equal(set->entries[at], text))
		at = (at + 1) & (set->cap - 1);
	return at;
}

static enum fate no_memory(struct error *error)
{
	return error_set(error, FATE_FATAL, ERR_MEMORY, "no memory for what was seen before");
}

enum fate text_set_init(struct text_set *set, struct error *error)
{
	*set = (struct text_set){ .arena = arena_new(BYTES_MAX),
		                      .entries = calloc(CAP_FIRST, sizeof(*set->entries)),
		                      .cap = CAP_FIRST };
	return set->arena != NULL && set->entries != NULL ? FATE_OK : no_memory(error);
}

bool text_set_has(const struct text_set *set, struct view text)
{
	return !view_is_null(set->entries[place(set, text)]);
}

/* Half of the places stay free. */
static bool make_room(struct text_set *set)
{
	const struct text_set old = *set;
	size_t cap = 2 * old.cap;

	if (2 * (old.len + 1) <= old.cap)
		return true;
	struct view *entries = calloc(cap, sizeof(*entries));
	if (entries == NULL)
		return false;
	set->entries = entries;
	set->cap = cap;
	for (size_t i = 0; i < old.cap; i++)
		if (!view_is_null(old.entries[i]))
			set->entries[place(set, old.entries[i])] = old.entries[i];
	free(old.entries);
	return true;
}

enum fate text_set_add(struct text_set *set, struct view text, bool *ret_new, struct error *error)
{
	bool fresh = !text_set_has(set, text);

	if (ret_new != NULL)
		*ret_new = fresh;
	if (!fresh)
		return FATE_OK;
	struct view copy = arena_copy(set->arena, text);
	if (view_is_null(copy) || !make_room(set))
		return no_memory(error);
	set->entries[place(set, copy)] = copy;
	set->len++;
	return FATE_OK;
}

void text_set_done(struct text_set *set)
{
	arena_free(set->arena);
	free(set->entries);
	*set = (struct text_set){ 0 };
}
