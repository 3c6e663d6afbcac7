#include "worker/judge.h"

#include <stdlib.h>

static int by_uuid(const void *a, const void *b)
{
	return uuid_compare(a, b);
}

static size_t sort_unique(struct uuid *ids, size_t len)
{
	if (len == 0)
		return 0;
	qsort(ids, len, sizeof(*ids), by_uuid);
	size_t kept = 1;
	for (size_t i = 1; i < len; i++)
		if (uuid_compare(&ids[i], &ids[kept - 1]) != 0)
			ids[kept++] = ids[i];
	return kept;
}

int judge_compare_lines(const void *a, const void *b)
{
	const struct line *x = a, *y = b;
	int order = view_compare(x->session_id, y->session_id);
	if (order == 0)
		order = view_compare(x->gate_id, y->gate_id);
	return order != 0 ? order : view_compare(x->tenant, y->tenant);
}

static size_t sort_unique_lines(struct line *lines, size_t len)
{
	if (len == 0)
		return 0;
	qsort(lines, len, sizeof(*lines), judge_compare_lines);
	size_t kept = 1;
	for (size_t i = 1; i < len; i++)
		if (judge_compare_lines(&lines[i], &lines[kept - 1]) != 0)
			lines[kept++] = lines[i];
	return kept;
}

enum fate judge_request(struct item **items, size_t len, struct arena *arena,
                        struct batch_request *ret_request, struct error *error)
{
	struct uuid *checkpoints = arena_array(arena, len, sizeof(*checkpoints));
	struct uuid *decisions = arena_array(arena, len, sizeof(*decisions));
	struct line *lines = arena_array(arena, len, sizeof(*lines));
	if (checkpoints == NULL || decisions == NULL || lines == NULL)
		return error_set(error, FATE_REJECT, ERR_MEMORY, "no memory for the ids of a batch");

	size_t checkpoints_len = 0, decisions_len = 0, lines_len = 0;
	for (size_t i = 0; i < len; i++) {
		struct item *item = items[i];
		if (item->judged_dead)
			item->dead = item->judged_dead = false;
		if (item->dead)
			continue;
		if (item->suspend) {
			const struct checkpoint *fresh = item->fresh;
			checkpoints[checkpoints_len++] = fresh->id;
			lines[lines_len++] = (struct line){ fresh->tenant, fresh->session_id, fresh->gate_id };
		} else {
			checkpoints[checkpoints_len++] = item->decision->checkpoint_id;
			decisions[decisions_len++] = item->decision->id;
		}
	}
	ret_request->checkpoints = checkpoints;
	ret_request->checkpoints_len = sort_unique(checkpoints, checkpoints_len);
	ret_request->decisions = decisions;
	ret_request->decisions_len = sort_unique(decisions, decisions_len);
	ret_request->lines = lines;
	ret_request->lines_len = sort_unique_lines(lines, lines_len);
	ret_request->count_unclaimed = decisions_len > 0;
	return FATE_OK;
}

bool judge_is_purged(const struct batch_loaded *loaded, const struct coordinates *at)
{
	for (size_t i = 0; i < loaded->horizons_len; i++) {
		const struct horizon *horizon = &loaded->horizons[i];
		if (horizon->partition == at->partition && view_equal_text(horizon->topic, at->topic))
			return at->offset < horizon->below && at->appended_at <= horizon->until;
	}
	return false;
}
