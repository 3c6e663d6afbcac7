#include "worker/judge.h"

#include "schemas/codec.h"
#include "vault/vault.h"

#define EDITS_ROOM 64 /* edits as structs take at most so many times the bytes that they are sealed from */

static enum fate open_edits(const struct judge_settings *settings, const struct decision *decision,
                            struct arena *arena, struct edits *ret_edits, struct error *error)
{
	struct view plain;
	enum fate fate = vault_unseal_edits(settings->vault, VIEW_LITERAL(""), &decision->checkpoint_id,
	                                    &decision->id, &decision->edits, arena, &plain, error);
	if (fate != FATE_OK)
		return fate;
	return codec_take_edits(settings->codec, plain, arena, ret_edits, error);
}

/* They are opened in an arena of their own: one batch may have many to compare, and its arena would not hold all. */
enum fate judge_compare_edits(const struct judge_settings *settings, const struct decision *a,
                              const struct decision *b, bool *ret_same, struct error *error)
{
	*ret_same = a->has_edits == b->has_edits;
	if (!a->has_edits || !b->has_edits)
		return FATE_OK;
	size_t plain_len = (size_t)a->edits.plain_len + b->edits.plain_len;
	struct arena *arena = arena_new(EDITS_ROOM * plain_len + ((size_t)1 << 20));
	if (arena == NULL)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory to compare edits");
	struct edits left, right;
	enum fate fate = open_edits(settings, a, arena, &left, error);
	if (fate == FATE_OK)
		fate = open_edits(settings, b, arena, &right, error);
	if (fate == FATE_OK)
		*ret_same = edits_equal(&left, &right);
	arena_free(arena);
	if (fate != FATE_REJECT)
		return fate;
	*ret_same = false;
	return FATE_OK;
}
